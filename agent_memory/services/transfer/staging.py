"""Staging of an import: the entries of a file, validated one by one and kept in a temporary file.

There are two passes because others wait while a store is being written: reading a large file can
take a minute, importing what was staged a few seconds.
"""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Self

from pydantic import BaseModel
from pydantic_core import from_json
from pydantic_core import to_json as to_json_bytes

from agent_memory.errors import (
    StorageError,
    StorageFull,
    StorageUnavailable,
    ValidationError,
    without_secrets,
)
from agent_memory.models.agent import AgentConfig
from agent_memory.models.columns import JSON_COLUMNS, ORIGINAL_CATEGORY
from agent_memory.models.enums import MemoryCategory, OnSecret
from agent_memory.models.fields import to_json
from agent_memory.models.portable import (
    Entry,
    PassedOver,
    PortableAgent,
    PortableChange,
    PortableEntity,
    PortableEntry,
    PortableModel,
    PortableRejection,
    PortableRelationship,
    PortableReview,
    PortableTombstone,
    PortableValues,
    PortableVector,
    Section,
    StagedEntry,
    content_id,
    portable_row,
)
from agent_memory.models.protocols import SecretScanner
from agent_memory.models.record import Record, validated
from agent_memory.models.reports import ImportNote
from agent_memory.models.safety import FoundSecrets
from agent_memory.models.times import format_time
from agent_memory.runtime.addresses import Address, ServerAddress
from agent_memory.runtime.temporary_files import temporary_file, temporary_folder
from agent_memory.services.policies.secrets import apply_secret_policy
from agent_memory.text.counts import counted

_MODELS: Final[dict[Section, type[Record]]] = {
    Section.AGENT: PortableAgent,
    Section.SCRATCHPAD: PortableEntry,
    Section.REJECTION: PortableRejection,
    Section.ENTITY: PortableEntity,
    Section.RELATIONSHIP: PortableRelationship,
    Section.REVIEW: PortableReview,
    Section.MODEL: PortableModel,
    Section.VECTOR: PortableVector,
    Section.CHANGE: PortableChange,
    Section.TOMBSTONE: PortableTombstone,
}
_SECTIONS: Final = {section.value: section for section in Section}
_ABOUT_MEMORIES: Final = frozenset(
    {
        Section.SCRATCHPAD,
        Section.ENTITY,
        Section.RELATIONSHIP,
        Section.REVIEW,
        Section.VECTOR,
        Section.CHANGE,
    }
)
_MOST_LISTED: Final = 1_000
_PAGE: Final = 100
"""Entries held at a time; each may have a megabyte."""
_TOLD: Final = 500
"""The number of entries between two progress reports."""
_MOST_KINDS: Final = 30
_OTHER_KINDS: Final = "items of other kinds"


@dataclass(slots=True)
class _Draft:
    """An entry in progress: its values by column, or why it is refused.

    ``values`` and ``repairs`` are set when it is validated.
    """

    entry: Entry
    error: str | None
    is_left_out: bool = False
    """Whether its memory was refused, which is already reported."""
    values: dict[str, Any] = field(init=False)
    repairs: list[str] = field(init=False)
    secrets: FoundSecrets | None = None


class Staging:
    """The entries of one file on their way into a store. Use it as a context manager.

    ``count`` is how many were staged; ``refused``, ``repaired`` and ``repeated`` (the same entry
    twice) count those, of which the first 1,000 each are listed. ``on_secret`` is what to do with
    secrets, before anything is staged; ``noticed`` has the memories in which some were left.
    """

    def __init__(
        self,
        categories: Sequence[str],
        *,
        session_id: str,
        on_secret: str,
        scanner: SecretScanner | None = None,
    ) -> None:
        self.agent_id: str | None = None
        self.count = 0
        self.refused = 0
        self.repaired = 0
        self.repeated = 0
        self.refusals: list[ImportNote] = []
        self.repairs: list[ImportNote] = []
        self.noticed: dict[str, FoundSecrets] = {}
        self._on_secret = on_secret
        self._scanner = scanner
        self._categories = {*MemoryCategory.all_values(), *categories}
        self._session_id = session_id
        self._is_past_memories = False
        self._seen: dict[str, int] = {}
        self._passed_over: Counter[str] = Counter()
        self._generated_ids: dict[str, str | None] = {}  # by the place of a memory without an id
        try:
            self._aside = temporary_file()
        except OSError as error:
            raise _unwritable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self._aside.close()
        except OSError as full:  # pending writes did not fit either
            if error is None:
                raise _unwritable(full) from full

    def read(self, entries: Iterable[Entry | PassedOver]) -> Iterator[int]:
        """Validate and stage entries; yield at intervals how many were read."""
        number = 0
        page: list[Entry] = []
        for number, entry in enumerate(entries, 1):
            if isinstance(entry, PassedOver):
                self._pass_over(entry)
            else:
                if page and (entry.section is not page[0].section or len(page) == _PAGE):
                    self._read_page(page)
                    page = []
                page.append(entry)
            if number % _TOLD == 0:
                yield number
        self._read_page(page)
        yield number

    def _pass_over(self, part: PassedOver) -> None:
        """Count what was left out; a file may name any number of kinds."""
        is_listed = part.what in self._passed_over or len(self._passed_over) < _MOST_KINDS
        self._passed_over[part.what if is_listed else _OTHER_KINDS] += part.number

    def entries(self) -> Iterator[StagedEntry]:
        """Yield what was staged, in order."""
        try:
            self._aside.seek(0)
        except OSError as error:
            raise _unwritable(error) from error
        for line in self._aside:
            section, place, values = from_json(line)
            yield StagedEntry(_SECTIONS[section], place, values)

    def left_out(self) -> list[str]:
        """Return what a file of another program contains that did not become a memory."""
        counts = [f"{what}: {count:,}" for what, count in self._passed_over.items() if count]
        return [f"skipped: {'; '.join(counts)}"] if counts else []

    def notes(self) -> list[str]:
        """Return which memories seem to contain secrets, by some of their ids."""
        if not self.noticed:
            return []
        some = [f"{memory_id} ({secrets})" for memory_id, secrets in self.noticed.items()][:3]
        count = len(self.noticed)
        subject = counted(count, "memory seems to contain", "memories seem to contain")
        return [f"{subject} secrets: {'; '.join(some)}{', …' if count > 3 else ''}"]

    def raise_refusal(self, path: Address | ServerAddress) -> None:
        """Raise ``ValidationError`` if an entry was refused."""
        if not self.refused:
            return
        first = self.refusals[0]
        more = f" (and {self.refused - 1:,} more)" if self.refused > 1 else ""
        faults = [
            {"loc": (note.place,), "msg": note.message, "type": "value_error", "input": note.place}
            for note in self.refusals
        ]
        raise ValidationError(
            f"{path}: {first.place}: {first.message}{more}. Nothing was imported: correct it,"
            " or skip invalid entries with --skip-bad (skip_bad=True)",
            faults,
        )

    def _read_page(self, page: Sequence[Entry]) -> None:
        """Validate and stage entries of one section, each step for all of them.

        Doing all steps for one entry after another takes a third longer: the processor's caches for
        a step are cold again by the next entry.
        """
        drafts = [_Draft(entry, error=entry.error) for entry in page]
        for step in (self._validate, self._screen, self._complete, self._stage):
            for draft in drafts:
                if draft.error is None and not draft.is_left_out:
                    try:
                        step(draft)
                    except ValidationError as error:
                        draft.error = str(error)
        for draft in drafts:
            if draft.error is not None:
                self._refuse(draft.entry, draft.error)

    def _refuse(self, entry: Entry, reason: str) -> None:
        self.refused += 1
        if len(self.refusals) < _MOST_LISTED:
            memory_id = entry.fields.get("id")
            named = memory_id if isinstance(memory_id, str) else None
            message = without_secrets(reason)
            self.refusals.append(ImportNote(place=entry.place, memory_id=named, message=message))

    def _validate(self, draft: _Draft) -> None:
        entry = draft.entry
        if entry.section in _ABOUT_MEMORIES:
            self._is_past_memories = True
        elif entry.section is Section.MEMORY and self._is_past_memories:
            message = "memories must come before the scratchpad, vectors and changes"
            raise ValidationError.of("memories", message, entry.place)
        fields = self._with_generated_id(entry)
        if fields is None:
            draft.is_left_out = True
            return
        if entry.section is Section.MEMORY:
            draft.values = portable_row(fields)
        else:
            draft.values = _values_of(validated(_MODELS[entry.section], fields))
        draft.repairs = [*entry.repairs]

    def _screen(self, draft: _Draft) -> None:
        values = draft.values
        if draft.entry.section is Section.MEMORY:
            draft.secrets = self._secrets_in(values)
        elif draft.entry.section is Section.CHANGE:
            for name in ("old", "new"):
                draft.repairs += self._notice(self._secrets_in(values.get(name)), values["id"])

    def _complete(self, draft: _Draft) -> None:
        values, place = draft.values, draft.entry.place
        if draft.entry.section is Section.MEMORY:
            draft.repairs += self._completed(values, place)
            draft.repairs += self._notice(draft.secrets, values["id"])
        elif draft.entry.section is Section.AGENT:
            draft.repairs += self._take_agent(values)

    def _stage(self, draft: _Draft) -> None:
        """Write an entry to the temporary file, one per line: JSON has no line breaks."""
        entry, values = draft.entry, to_json_bytes(draft.values)
        if entry.section is Section.MEMORY and self._is_repeated(draft.values["id"], values):
            return
        self._repair(entry, draft.values, draft.repairs)
        place = to_json_bytes(entry.place)
        line = b'["%b",%b,%b]\n' % (entry.section.encode(), place, values)
        try:
            self._aside.write(line)
        except OSError as error:
            raise _unwritable(error) from error
        self.count += 1

    def _take_agent(self, values: dict[str, Any]) -> list[str]:
        """Keep the settings that exist here, and accept the categories among them."""
        self.agent_id = values.pop("agent_id", self.agent_id)
        config = values.get("config")
        if not config:
            return []
        unknown = sorted(config.keys() - AgentConfig.model_fields.keys())
        known_settings = {name: value for name, value in config.items() if name not in unknown}
        settings = validated(AgentConfig, known_settings, at=("config",))
        values["config"] = settings.model_dump(mode="json", exclude_unset=True)
        self._categories.update(settings.categories)
        return [f"config: {name} is not a setting: skipped" for name in unknown]

    def _secrets_in(self, values: dict[str, Any] | None) -> FoundSecrets | None:
        """Return what looks like secrets in an entry, and mask them if the policy says so."""
        if not values:
            return None
        masked, secrets = apply_secret_policy(
            values, memory_id="", setting=self._on_secret, scanner=self._scanner
        )
        values.update(masked)
        return secrets

    def _notice(self, secrets: FoundSecrets | None, memory_id: str) -> list[str]:
        """Record which memory contains secrets, or return a note that they were masked."""
        if secrets is None:
            return []
        if secrets.decision is OnSecret.MASK:
            return [f"masked {secrets}"]
        if memory_id in self.noticed or len(self.noticed) < _MOST_LISTED:
            self.noticed.setdefault(memory_id, secrets)
        return []

    def _with_generated_id(self, entry: Entry) -> dict[str, Any] | None:
        """Return an entry's fields; without an id, they get that of the memory at its place.

        Returns ``None`` if that memory was refused, which is already reported.
        """
        if "id" in entry.fields or entry.section in (Section.AGENT, Section.TOMBSTONE):
            return entry.fields
        if entry.section is Section.MEMORY:
            self._generated_ids[entry.place] = None
        elif entry.place in self._generated_ids:
            memory_id = self._generated_ids[entry.place]
            return None if memory_id is None else {**entry.fields, "id": memory_id}
        return entry.fields

    def _completed(self, values: dict[str, Any], place: str) -> list[str]:
        """Give a memory an id, if it has none, and a category that is known here."""
        repairs = []
        category = values.get("category")
        if category is not None and category not in self._categories:
            values["category"] = MemoryCategory.NOTE.value
            values[ORIGINAL_CATEGORY] = category
            repairs.append(
                f"category: {category!r:.80} is unknown here: imported as a note, with its"
                " category in the metadata"
            )
        if "id" not in values:
            identity = (values.get(name) for name in ("content", "timestamp", "user_id", "run_id"))
            values["id"] = content_id(*identity)
            self._generated_ids[place] = values["id"]
        return repairs

    def _is_repeated(self, memory_id: str, staged: bytes) -> bool:
        if memory_id not in self._seen:
            self._seen[memory_id] = hash(staged)
            return False
        if self._seen[memory_id] != hash(staged):
            message = "an earlier entry has the same id and different content"
            raise ValidationError.of("id", message, memory_id)
        self.repeated += 1
        return True

    def _repair(self, entry: Entry, values: Mapping[str, Any], repairs: Sequence[str]) -> None:
        if not repairs:
            return
        self.repaired += 1
        room = _MOST_LISTED - len(self.repairs)
        self.repairs += [
            ImportNote(
                place=entry.place, memory_id=values.get("id"), message=without_secrets(repair)
            )
            for repair in repairs[:room]
        ]


def _unwritable(error: OSError) -> StorageError:
    """Build the error for a temporary folder that is full or unusable."""
    place, advice = temporary_folder(), "another folder with TMPDIR. Nothing was imported"
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageUnavailable(f"{place} cannot be used: {error}. Name {advice}")
    return StorageFull(
        f"{place} has no room for the import: {error}. Free space there, or name {advice}"
    )


def _values_of(record: Record) -> dict[str, Any]:
    """Return the fields of a record that are set, as the columns of a store hold them."""
    values: dict[str, Any] = {}
    fields_set = record.model_fields_set
    for name, value in vars(record).items():
        if value is None or name not in fields_set:
            continue
        if name == "statements":
            values[name] = {
                memory_id: _statement_values(statement) for memory_id, statement in value.items()
            }
        else:
            is_plain = type(value) is str or type(value) is int
            values[name] = value if is_plain else _column_value(name, value)
    return values


def _statement_values(statement: Record) -> dict[str, Any]:
    """Return everything about a statement, including that something is not said."""
    fields = {name: getattr(statement, name) for name in statement.model_fields_set}
    return {name: _column_value(name, value) for name, value in fields.items()}


def _column_value(name: str, value: object) -> Any:  # noqa: ANN401 - any column
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, list | dict):
        return to_json(value) if name in JSON_COLUMNS else value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, PortableValues):
        return _values_of(value)
    if isinstance(value, BaseModel):
        value = json.loads(value.model_dump_json(exclude_none=True, exclude_defaults=True))
    is_data = name in JSON_COLUMNS and not isinstance(value, str)
    return to_json(value) if is_data else value

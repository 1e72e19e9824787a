"""``scratchpad.yaml``, and its backup of any length: document A's format, written and read.

Written as A shows it, so that any YAML reader gets the same data back. Read one entry at a time:
ours, A's, B's with nothing but ``memories``, or a handwritten one.
"""

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, create_model

from agent_memory.errors import ValidationError
from agent_memory.formats import settings
from agent_memory.formats.protocol import MEMORIES_ALONE, Codec, Sample, Source, Written
from agent_memory.formats.record_shapes import LEFT_OUT, as_it_came
from agent_memory.formats.yaml_reader import Item, read_items
from agent_memory.formats.yaml_writer import flow
from agent_memory.models.enums import MemoryCategory
from agent_memory.models.field_types import AgentId, Text
from agent_memory.models.fields import clean_text
from agent_memory.models.limits import (
    BACKUP_SUFFIX,
    DEFAULT_SCRATCHPAD_SIZE,
    MAX_SCRATCHPAD_SIZE,
    METADATA_FILENAME,
    MIN_SCRATCHPAD_SIZE,
    SCRATCHPAD_FILENAME,
)
from agent_memory.models.memory import Memory, given_back
from agent_memory.models.memory_fields import MEMORY_FIELDS, TaskMetadata, fields_beyond
from agent_memory.models.portable import Entry, Natural, Positive, Section, fields_as_told
from agent_memory.models.record import Record, validated
from agent_memory.models.row_repair import mended_text
from agent_memory.models.scratchpad import ScratchpadMemoryEntry
from agent_memory.models.times import NEWEST_TIME, parse_time, to_utc
from agent_memory.runtime.files import written_atomically

_FIELDS: Final = frozenset(Memory.model_fields) - {"agent_id"}
_FURTHER: Final = fields_beyond(
    ScratchpadMemoryEntry.model_fields,
    "kind importance created_by_session user_id run_id memory_type archived task_metadata metadata"
    " updated_at version",
)
"""The fields that a backup has beyond A's seven keys, in this order."""
_BEGINS: Final = re.compile(
    r"(?:\s|[#%].*+|---(?=\s))*+[\"']?(?:agent_id|last_updated|max_size|memories)[\"']?\s*:(?=\s|$)"
)
_HAS_MEMORIES: Final = re.compile(r"^[\"']?memories[\"']?\s*:(?=\s|$)", re.MULTILINE)


class ScratchpadYaml(Codec):
    """The hot set: A's ``scratchpad.yaml``, to the letter."""

    name = "scratchpad"

    def recognises(self, sample: Sample) -> bool:
        """Return whether it is a mapping that begins with one of A's keys and has ``memories``.

        An agent's folder with such a file, as A and B have it, is recognised too.
        """
        if sample.is_folder:
            return (sample.path / SCRATCHPAD_FILENAME).is_file()
        text = sample.text()
        if text.startswith("{"):  # JSON is YAML too, but has its own formats
            return False
        return bool(_BEGINS.match(text) and _HAS_MEMORIES.search(text))

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the agent, if the file names it, the memories, and the scratchpad's order.

        All memories are in the scratchpad, the first of the file as the last to enter. If there are
        more than ``max_size``, or than any scratchpad can have, only the newest are, as A keeps
        them. The scratchpad entry of a memory without ``id`` has none either, but that memory's
        ``place``.

        For an agent's folder, the contents of its ``metadata.json`` come first.
        """
        return _entries_of_folder(path) if path.is_dir() else _entries(path)

    def write(self, path: Path, source: Source) -> Written:
        """Write the seven keys of each memory of the hot set, and nothing else."""
        pad = source.scratchpad()
        categories = _original_categories(source, pad.memories)
        entries = (
            _entry(memory, categories.get(memory.id, memory.category)) for memory in pad.memories
        )
        head = _head(source.agent_id, source.changed_at, pad.max_size)
        count = _write(path, head, entries)
        note = (
            "only the scratchpad's memories, with seven fields each: `backup` has all"
            " memories, `store` also the history"
        )
        return Written(count, [note])


class BackupYaml(ScratchpadYaml):
    """All memories with all of their fields, in the same format."""

    name = "backup"

    def write(self, path: Path, source: Source) -> Written:
        """Write all memories, archived ones too."""
        count = write_scratchpad(
            path,
            map(as_it_came, source.memories()),
            agent_id=source.agent_id,
            last_updated=source.changed_at,
            max_size=source.scratchpad().max_size,
        )
        return Written(count, [MEMORIES_ALONE])


CODEC: Final[Codec] = ScratchpadYaml()
BACKUP: Final[Codec] = BackupYaml()


# Writing ------------------------------------------------------------------------------------


def write_scratchpad(
    path: Path,
    memories: Iterable[Memory],
    *,
    agent_id: str,
    last_updated: datetime,
    max_size: int,
) -> int:
    """Write memories as a scratchpad file of mode 0600, and return how many there were.

    The file holds all of them, even more than ``max_size``. An entry has A's seven keys, then those
    fields of ``Memory`` that differ from their defaults (``embedding`` is left out). The file at
    ``path`` is replaced once the new one is complete. Half of a surrogate pair, which YAML cannot
    hold, becomes U+FFFD.

    Raises ``StorageFull`` if the disk is full, ``StorageUnavailable`` if the file cannot be
    written, and ``ValidationError`` for metadata that is nested hundreds deep.
    """
    return _write(path, _head(agent_id, last_updated, max_size), map(_full_entry, memories))


def _head(agent_id: str, last_updated: datetime, max_size: int) -> str:
    return (
        f"agent_id: {flow(agent_id)}\nlast_updated: {flow(last_updated)}\nmax_size: {max_size}\n\n"
    )


def _write(path: Path, head: str, entries: Iterable[str]) -> int:
    count = 0
    with written_atomically(path) as file:
        file.write(head.encode())
        for count, entry in enumerate(entries, start=1):
            file.write(b"\n" if count > 1 else b"memories:\n")
            file.write(entry.encode())
        if not count:
            file.write(b"memories: []\n")
    return count


def _entry(memory: Memory | ScratchpadMemoryEntry, category: str) -> str:
    return (
        f"  - id: {flow(memory.id)}\n"
        f"    timestamp: {flow(memory.timestamp)}\n"
        f"    category: {flow(category)}\n"
        f"    content: {flow(mended_text(memory.content))}\n"  # no YAML reader accepts a NUL
        f"    tags: {flow(memory.tags)}\n"
        f"    access_count: {memory.access_count}\n"
        f"    last_accessed: {flow(memory.last_accessed)}\n"
    )


def _full_entry(memory: Memory) -> str:
    try:
        further = "".join(f"    {key}: {flow(value)}\n" for key, value in _further(memory))
    except RecursionError as error:
        message = f"of the memory {memory.id} is nested too deeply to be written"
        raise ValidationError.of("metadata", message, memory.id) from error
    return _entry(memory, memory.category) + further


def _further(memory: Memory) -> Iterator[tuple[str, object]]:
    """Yield the fields that are not among A's seven keys and not at their default."""
    for name in _FURTHER:
        value = getattr(memory, name)
        if isinstance(value, TaskMetadata):
            value = value.model_dump(exclude_defaults=True)
        usual = memory.timestamp if name == "updated_at" else MEMORY_FIELDS[name].default
        if value != usual:
            yield name, value


def _original_categories(
    source: Source, entries: Sequence[ScratchpadMemoryEntry]
) -> dict[str, str]:
    """Return the categories, by id, that entries had before an import changed them.

    The original category is in the memory, not in the entry of the hot set.
    """
    notes = {entry.id for entry in entries if entry.category == MemoryCategory.NOTE.value}
    categories: dict[str, str] = {}
    for memory in source.memories() if notes else ():
        if memory.id in notes:
            categories[memory.id] = given_back(memory)[0]
            if len(categories) == len(notes):
                break
    return categories


# Reading ------------------------------------------------------------------------------------


def memory_fields(entry: object) -> dict[str, Any]:
    """Return the fields of ``Memory`` in an entry of a YAML file.

    A key that ``Memory`` does not have goes into the metadata. Null is ignored, except for
    ``last_accessed``, where it means never. Raises ``ValidationError`` for an invalid entry.
    """
    if not isinstance(entry, dict):
        raise ValidationError("must be a mapping with a content key")
    fields = {
        key: value
        for key, value in entry.items()
        if key in _FIELDS and (value is not None or key == "last_accessed")
    }
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValidationError.of("metadata", "must be a mapping", metadata)
    unknown = {k: v for k, v in entry.items() if k not in _FIELDS and v is not None}
    if twice := sorted(unknown.keys() & metadata.keys()):
        message = "is both in the entry and in its metadata: remove one"
        raise ValidationError.of(twice[0], message, unknown[twice[0]])
    if unknown:
        fields["metadata"] = {**metadata, **unknown}
    return fields


def memory_entry(item: Item) -> Entry:
    """Return the memory in an item, or its error."""
    place = f"line {item.line}"
    if item.error is not None:
        return Entry(Section.MEMORY, {}, place, item.error)
    try:
        values = memory_fields(item.value)
    except ValidationError as error:
        return Entry(Section.MEMORY, {}, place, str(error))
    if "created_by_session" in values:  # every backup's entries have it; A's keys do not
        values = {**values, **LEFT_OUT, **values}
    return Entry(Section.MEMORY, values, place)


def _entries(path: Path) -> Iterator[Entry]:
    has_memories = False
    max_size = MAX_SCRATCHPAD_SIZE
    newest = _Newest()
    for item in read_items(path):
        if item.key == "memories":
            has_memories = True
            if _is_of_list(path, item):
                yield (entry := memory_entry(item))
                newest.add(entry)
        elif item.key in ("agent_id", "max_size") and (item.error or item.value is not None):
            entry = _told_of_agent(item)
            if item.key == "agent_id" or entry.error is not None:
                yield entry
            elif isinstance(size := item.value, int):
                max_size = min(max_size, size)
                is_usual = size == DEFAULT_SCRATCHPAD_SIZE
                if MIN_SCRATCHPAD_SIZE <= size <= MAX_SCRATCHPAD_SIZE and not is_usual:
                    fields = {"config": {"scratchpad_max_size": size}}
                    yield Entry(Section.AGENT, fields, entry.place)
    if not has_memories:
        raise ValidationError(
            f"{path}: is not a scratchpad: it must be a mapping with a list `memories`"
        )
    yield from newest.members(max_size)


def _entries_of_folder(folder: Path) -> Iterator[Entry]:
    backup = SCRATCHPAD_FILENAME + BACKUP_SUFFIX
    if (folder / backup).is_file():
        repair = f"was not read: import {folder / backup} separately if you want it too"
        yield Entry(Section.AGENT, {}, backup, repairs=(repair,))
    metadata = folder / METADATA_FILENAME
    if metadata.is_file():
        for entry in settings.CODEC.read(metadata):
            yield entry._replace(place=f"{METADATA_FILENAME}: {entry.place}")
    yield from _entries(folder / SCRATCHPAD_FILENAME)


class _Newest:
    """The newest memories of a file, as many as a scratchpad can have.

    ``max_size`` may come at the end of the file, after any number of memories.
    """

    def __init__(self) -> None:
        self._count = 0
        self._heap: list[tuple[datetime, int, Entry]] = []

    def add(self, memory: Entry) -> None:
        """Keep the next memory of the file if it is among the newest."""
        if memory.error is not None:
            return
        self._count += 1
        # With equal times the first of the file counts as the newest: A's sort keeps their order.
        item = (_written_at(memory), -self._count, memory)
        if len(self._heap) < MAX_SCRATCHPAD_SIZE:
            heapq.heappush(self._heap, item)
        else:
            heapq.heappushpop(self._heap, item)

    def members(self, max_size: int) -> Iterator[Entry]:
        """Yield the entries of the scratchpad, the last to enter last."""
        if self._count > max_size:
            chosen = heapq.nlargest(max(max_size, 0), self._heap)[::-1]
        else:
            chosen = sorted(self._heap, key=lambda item: item[1])
        for _, _, memory in chosen:
            identity = {"id": memory.fields["id"]} if memory.fields.get("id") is not None else {}
            yield Entry(Section.SCRATCHPAD, {**identity, "reason": "stored"}, memory.place)


def _written_at(memory: Entry) -> datetime:
    """Return when a memory was written; one without a time is new here, so it is the newest."""
    timestamp = memory.fields.get("timestamp")
    try:
        return to_utc(timestamp) if isinstance(timestamp, datetime) else parse_time(str(timestamp))
    except ValueError:
        return NEWEST_TIME


def _is_of_list(path: Path, item: Item) -> bool:
    """Return whether an item is an element of the list; a list itself must be empty."""
    if item.number is None and (item.error is not None or item.value not in (None, [])):
        why = item.error or "must be a list of memories"
        raise ValidationError(f"{path}: line {item.line}: {item.key}: {why}")
    return item.number is not None


def _told_of_agent(item: Item) -> Entry:
    """Return the value of a key of the head, or its error."""
    place, error = f"line {item.line}", item.error
    is_text = item.key == "agent_id"
    fits = item.number is None and type(item.value) is (str if is_text else int)
    if error is None and not fits:
        want = "a string: put it between double quotes" if is_text else "a whole number"
        error = f"{item.key}: must be {want}"
    fields = {item.key: item.value} if is_text and error is None else {}
    return Entry(Section.AGENT, fields, place, error)


# Reading as a whole -------------------------------------------------------------------------


@dataclass(slots=True)
class ScratchpadFile:
    """The contents of a scratchpad file.

    Each of ``memories`` is a mapping with every field of ``Memory`` but ``agent_id`` and
    ``embedding``; times are aware and in UTC, ``task_metadata`` is a mapping. A field missing from
    the entry has its default: ``None`` for ``id``, ``timestamp``, ``last_accessed`` and
    ``created_by_session``, the ``timestamp`` for ``updated_at``. The values have the right types;
    the limits of a memory (the length of its content, the categories) are not checked here.
    ``config`` has the agent's settings in the file: the size, if it is not the default.
    """

    agent_id: str | None = None
    memories: list[dict[str, Any]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)


_Whole = Annotated[str, Field(min_length=1), AfterValidator(clean_text)]
_Entry = create_model(
    "_Entry",
    __base__=Record,
    __doc__="One entry: the types of its fields, and what they are when it does not tell.",
    **fields_as_told(
        {
            "id": _Whole,
            "content": _Whole,
            "text": Text,
            "list": list[Text],
            "count": Natural,
            "version": Positive,
        }
    ),
)


class _Head(Record):
    """The head of a file, without its memories."""

    agent_id: AgentId


def read_scratchpad(path: Path) -> ScratchpadFile:
    """Read a scratchpad file as a whole; an error in one entry is an error of the file.

    A time without zone is UTC; an empty value is the default. Raises ``ValidationError`` with the
    line and the key for a file that is not a scratchpad (invalid YAML, a duplicate key, an alias,
    an id that two entries have, a value of the wrong type, a file of over 2 GB), and
    ``StorageUnavailable`` if the file cannot be read.
    """
    scratchpad = ScratchpadFile()
    seen: set[str] = set()
    for entry in _entries(path):
        try:
            _take(scratchpad, entry, seen)
        except ValidationError as error:
            faults = [{**fault, "loc": (entry.place, *fault["loc"])} for fault in error.errors()]
            raise ValidationError(f"{path}: {entry.place}: {error}", faults) from error
    return scratchpad


def _take(scratchpad: ScratchpadFile, entry: Entry, seen: set[str]) -> None:
    if entry.error is not None:
        raise ValidationError(entry.error)
    if entry.section is Section.AGENT and "agent_id" in entry.fields:
        scratchpad.agent_id = validated(_Head, entry.fields).agent_id
    elif entry.section is Section.AGENT:
        scratchpad.config |= entry.fields.get("config", {})
    elif entry.section is Section.MEMORY:
        memory = validated(_Entry, entry.fields).model_dump()
        if memory["id"] in seen:
            raise ValidationError.of("id", "an earlier entry has the same id", memory["id"])
        if memory["id"] is not None:
            seen.add(memory["id"])
        memory["updated_at"] = memory["updated_at"] or memory["timestamp"]
        scratchpad.memories.append(memory)

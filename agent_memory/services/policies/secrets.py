"""What becomes of secrets in what is to be stored, before any of it is written.

All ways into a store end here once, with values that are valid: a memory, changes of one, or an
entry of a file by column. What comes out is what may be stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_memory.errors import SecretFound, ValidationError
from agent_memory.models.enums import OnSecret
from agent_memory.models.fields import to_json
from agent_memory.models.limits import MAX_MEMORY_CONTENT_LENGTH, MAX_TAG_LENGTH
from agent_memory.models.memory_fields import JSON_COLUMNS, TaskMetadata
from agent_memory.models.protocols import SecretScanner
from agent_memory.models.safety import FoundSecrets, SecretPolicy, is_secret_decision
from agent_memory.text.secrets import (
    SecretSpan,
    find_secrets,
    kind_of,
    mask_of,
    merge_spans,
    replace_spans,
)

_LOOKED_AT: Final = ("content", "tags", "metadata", "task_metadata")
_OF_TASKS: Final = ("outcome", "blockers")
_LONGEST_PLACE: Final = 80
_SHORT_MASK: Final = "***"


class SecretScreening:
    """Values as they may be stored if secrets are masked, and what was found in them."""

    def __init__(self) -> None:
        self.masked: dict[str, Any] = {}
        self.kinds: list[str] = []
        self.places: list[str] = []

    def found(self, memory_id: str, **more: Any) -> FoundSecrets:  # noqa: ANN401 - its fields
        """Return what may be told of it."""
        kinds, places = (list(dict.fromkeys(it)) for it in (self.kinds, self.places))
        return FoundSecrets.model_construct(memory_id=memory_id, kinds=kinds, fields=places, **more)


def screened(values: Mapping[str, Any], scanner: SecretScanner | None = None) -> SecretScreening:
    """Look for secrets in what is said of a memory, by field; JSON may be data or its text.

    Only fields that hold one are in ``masked``. ``scanner`` is used instead of the library's own.
    """
    looking = _Looking(scanner)
    for name in _LOOKED_AT:
        value = values.get(name)
        if value:
            looking.look(name, value)
    return looking.seen


def settled(
    values: Mapping[str, Any],
    *,
    memory_id: str,
    setting: OnSecret,
    said: SecretPolicy | None = None,
    scanner: SecretScanner | None = None,
    index: int | None = None,
) -> tuple[dict[str, Any], FoundSecrets | None]:
    """Return which values are to be stored otherwise than they were given, and what was found.

    ``setting`` is the file's, ``said`` the caller's; ``index`` is the place in a list. Raises
    ``SecretFound`` where secrets are refused. Nothing is found where they are to be kept.
    """
    if (said or setting) == OnSecret.KEEP:
        return {}, None
    seen = screened(values, scanner)
    if not seen.kinds:
        return {}, None
    found = seen.found(memory_id, index=index, decision=setting)
    decision = decided(found, said)
    found = found.model_copy(update={"decision": decision})
    if decision is OnSecret.REFUSE:
        raise refusal(found, at=() if index is None else (index,))
    if decision is OnSecret.KEEP:
        return {}, None
    return (seen.masked if decision is OnSecret.MASK else {}), found


def decided(found: FoundSecrets, said: SecretPolicy | None) -> OnSecret:
    """Return what is to be done with secrets: what the caller says, else what the setting says."""
    answer = said(found) if callable(said) else said
    if answer is None:
        return found.decision or OnSecret.WARN
    if not is_secret_decision(answer):
        message = "must be warn, mask, refuse, keep or a function that says one of them"
        raise ValidationError.of("on_secret", message, answer)
    return OnSecret(answer)


def refusal(found: FoundSecrets, *, at: Sequence[int] = ()) -> SecretFound:
    """Make the error for secrets that are refused: no word of it comes from them."""
    message = (
        f"looks like it holds a secret ({', '.join(found.kinds)}): leave it out, or store it with"
        " on_secret mask or warn"
    )
    faults = [
        {
            "loc": (*at, place),
            "msg": message,
            "type": "secret",
            "input": place,
            "ctx": {"kinds": found.kinds},
        }
        for place in found.fields
    ]
    where = ".".join(map(str, (*at, found.fields[0])))
    return SecretFound(f"{where}: {message}", faults)


class _Looking:
    """One look at the values of a memory."""

    def __init__(self, scanner: SecretScanner | None) -> None:
        self.seen = SecretScreening()
        self._scanner = scanner

    def look(self, name: str, value: object) -> None:
        """Look at one field, and keep what it is with the secrets masked, if it holds any."""
        before = len(self.seen.kinds)
        masked = self._masked(name, value)
        if len(self.seen.kinds) > before:
            self.seen.masked[name] = masked

    def _masked(self, name: str, value: object) -> object:
        if name == "content":
            return self._text(name, str(value), longest=MAX_MEMORY_CONTENT_LENGTH)
        if isinstance(value, str) and name in JSON_COLUMNS:
            data = _read(value)
            return self._text(name, value) if data is None else to_json(self._masked(name, data))
        if isinstance(value, TaskMetadata):
            told = {one: getattr(value, one) for one in _OF_TASKS}
            return value.model_copy(update=self._data(name, told))
        if name == "tags" and isinstance(value, list):
            return self._tags(value)
        return self._data(name, value)

    def _tags(self, tags: list[Any]) -> list[Any]:
        """Mask tags: they were made small before, and two may be the same now."""
        texts = [
            self._text("tags", tag, longest=MAX_TAG_LENGTH, any_case=True).lower()
            if isinstance(tag, str)
            else tag
            for tag in tags
        ]
        return list(dict.fromkeys(texts)) if all(isinstance(it, str) for it in texts) else texts

    def _data(self, place: str, value: Any, name: str = "") -> Any:  # noqa: ANN401 - JSON data
        """Mask JSON data; ``name`` is the key that a value stands under."""
        if isinstance(value, str):
            return self._value(place, value, name)
        if isinstance(value, list):
            return [self._data(place, item, name) for item in value]
        if not isinstance(value, Mapping):
            return value
        made: dict[str, Any] = {}
        for key, item in value.items():
            safe = _free(self._text(place, str(key)), made)
            made[safe] = self._data(f"{place}.{safe}", item, str(key))
        return made

    def _value(self, place: str, value: str, name: str) -> str:
        """Mask a value of metadata, which is a secret too if its key says so."""
        kind = kind_of(name, value) if name and self._scanner is None else None
        if kind is None:
            return self._text(place, value)
        self._note(place, kind)
        return mask_of(kind)

    def _text(
        self, place: str, text: str, *, longest: int | None = None, any_case: bool = False
    ) -> str:
        spans = self._spans(text, any_case=any_case)
        if not spans:
            return text
        for span in spans:
            self._note(place, span.kind)
        masked = replace_spans(text, spans, mask_of)
        if longest is not None and len(masked) > longest:
            masked = replace_spans(text, spans, lambda _: _SHORT_MASK)[:longest]
        return masked

    def _spans(self, text: str, *, any_case: bool) -> list[SecretSpan]:
        if self._scanner is None:
            return find_secrets(text, any_case=any_case)
        return merge_spans(SecretSpan(*found) for found in self._scanner.find(text))

    def _note(self, place: str, kind: str) -> None:
        self.seen.kinds.append(kind)
        self.seen.places.append(place if len(place) <= _LONGEST_PLACE else place.partition(".")[0])


def _read(text: str) -> Any:  # noqa: ANN401 - JSON data
    """Read JSON; ``None`` for what another program has broken."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Return a key that is not taken: two keys that are secrets have the same mask."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free


# Telling ------------------------------------------------------------------------------------

_LOGGER: Final = "agent_memory"
_MOST_LOGGED: Final = 20


def log(noticed: Sequence[FoundSecrets]) -> None:
    """Log what was found in memories that are stored now: their ids and the kinds, no secret."""
    import logging  # noqa: PLC0415 - 3 ms of a start of 180, for a line seldom written

    logger = logging.getLogger(_LOGGER)
    for found in noticed[:_MOST_LOGGED]:
        logger.warning("%s", told(found))
    if (more := len(noticed) - _MOST_LOGGED) > 0:
        logger.warning("%d more memories look like they hold secrets: see `secrets`", more)


def told(found: FoundSecrets) -> str:
    """Say what was found in a memory, and what was done with it."""
    if found.decision is OnSecret.MASK:
        return f"memory {found.memory_id}: masked {found}"
    return f"memory {found.memory_id} looks like it holds a secret ({found}): stored as it is"

"""The policy on secrets: warn, mask, refuse or keep, applied before anything is written.

Every way into a store passes through here once, with validated values: a memory, changes of one, or
an entry of a file by column. The result is what may be stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_memory.errors import SecretFound, ValidationError
from agent_memory.models.columns import JSON_COLUMNS
from agent_memory.models.enums import OnSecret, is_secret_decision
from agent_memory.models.fields import decode_json, is_bottomless, to_json
from agent_memory.models.limits import MAX_MEMORY_CONTENT_LENGTH, MAX_TAG_LENGTH
from agent_memory.models.memory_fields import TaskMetadata
from agent_memory.models.protocols import SecretScanner
from agent_memory.models.safety import FoundSecrets, SecretPolicy
from agent_memory.runtime.logs import logger
from agent_memory.text.secrets import (
    SecretSpan,
    find_secrets,
    kind_of,
    mask_of,
    may_hold_secrets,
    merge_spans,
    replace_spans,
)

_LOOKED_AT: Final = ("content", "tags", "metadata", "task_metadata", "reviews")
"""``reviews`` exists only in the history: the reviews of a memory when it was deleted."""
_OF_TASKS: Final = ("outcome", "blockers")
_LONGEST_PLACE: Final = 80
_SHORT_MASK: Final = "***"


def screen_for_secrets(
    values: Mapping[str, Any], scanner: SecretScanner | None = None
) -> SecretScreening:
    """Look for secrets in the fields of a memory; JSON may be data or its text.

    Only fields that contain one are in ``masked``. ``scanner`` replaces the library's own.
    """
    screening = SecretScreening(scanner)
    for name in _LOOKED_AT:
        value = values.get(name)
        # To parse JSON and go through it takes ten times as long as to rule it out.
        if value and (name == "content" or scanner is not None or may_hold_secrets("", value)):
            screening.screen(name, value)
    return screening


def apply_secret_policy(
    values: Mapping[str, Any],
    *,
    memory_id: str,
    setting: str,
    policy: SecretPolicy | None = None,
    scanner: SecretScanner | None = None,
    index: int | None = None,
) -> tuple[dict[str, Any], FoundSecrets | None]:
    """Return the values that masking changes, and the report of the secrets, if there are any.

    ``setting`` is the file's, ``policy`` the caller's; ``index`` is the position in a list. Raises
    ``SecretFound`` if secrets are refused. If they are kept, nothing is scanned.
    """
    if (policy or setting) == OnSecret.KEEP:
        return {}, None
    content, *others = map(values.get, _LOOKED_AT)
    if scanner is None and not may_hold_secrets(str(content or ""), *filter(None, others)):
        return {}, None
    screening = screen_for_secrets(values, scanner)
    if not screening.kinds:
        return {}, None
    secrets = screening.report(memory_id, index=index, decision=OnSecret(setting))
    decision = decide(secrets, policy)
    secrets = secrets.model_copy(update={"decision": decision})
    if decision is OnSecret.REFUSE:
        raise refusal(secrets, at=() if index is None else (index,))
    if decision is OnSecret.KEEP:
        return {}, None
    return (screening.masked if decision is OnSecret.MASK else {}), secrets


def decide(secrets: FoundSecrets, policy: SecretPolicy | None) -> OnSecret:
    """Return what to do with secrets: the caller's policy takes precedence over the setting."""
    answer = policy(secrets) if callable(policy) else policy
    if answer is None:
        return secrets.decision or OnSecret.WARN
    if not is_secret_decision(answer):
        message = "must be warn, mask, refuse, keep or a function that returns one of them"
        raise ValidationError.of("on_secret", message, answer)
    return OnSecret(answer)


def refusal(secrets: FoundSecrets, *, at: Sequence[int] = ()) -> SecretFound:
    """Build the error for refused secrets: no word of it comes from them."""
    message = (
        f"seems to contain a secret ({', '.join(secrets.kinds)}): leave it out, or store it"
        " with on_secret mask or warn"
    )
    faults = [
        {
            "loc": (*at, place),
            "msg": message,
            "type": "secret",
            "input": place,
            "ctx": {"kinds": secrets.kinds},
        }
        for place in secrets.fields
    ]
    where = ".".join(map(str, (*at, secrets.fields[0])))
    return SecretFound(f"{where}: {message}", faults)


class SecretScreening:
    """Screens the fields of one memory: masks secrets, and records their kinds and places."""

    def __init__(self, scanner: SecretScanner | None) -> None:
        self.masked: dict[str, Any] = {}
        self.kinds: list[str] = []
        self.places: list[str] = []
        self._scanner = scanner

    def report(self, memory_id: str, **more: Any) -> FoundSecrets:  # noqa: ANN401 - its fields
        """Return what may be reported about the secrets: no word of it comes from them."""
        kinds, places = (list(dict.fromkeys(names)) for names in (self.kinds, self.places))
        return FoundSecrets.model_construct(memory_id=memory_id, kinds=kinds, fields=places, **more)

    def screen(self, name: str, value: object) -> None:
        """Screen one field, and keep its masked form if it contains a secret."""
        before = len(self.kinds)
        masked = self._masked(name, value)
        if len(self.kinds) > before:
            self.masked[name] = masked

    def _masked(self, name: str, value: object) -> object:
        if name == "content":
            return self._text(name, str(value), longest=MAX_MEMORY_CONTENT_LENGTH)
        if isinstance(value, str) and name in JSON_COLUMNS:
            data = _read(value)
            if data is None or isinstance(data, str):  # an integer of over 64 bits is read as text
                return self._text(name, value)
            return to_json(self._masked(name, data))
        if isinstance(value, TaskMetadata):
            fields = {field: getattr(value, field) for field in _OF_TASKS}
            return value.model_copy(update=self._data(name, fields))
        if name == "tags" and isinstance(value, list):
            return self._tags(value)
        return self._data(name, value)

    def _tags(self, tags: list[Any]) -> list[Any]:
        """Mask tags: they were lower-cased before, and two may be equal now."""
        texts = [
            self._text("tags", tag, longest=MAX_TAG_LENGTH, any_case=True).lower()
            if isinstance(tag, str)
            else tag
            for tag in tags
        ]
        return list(dict.fromkeys(texts)) if all(isinstance(text, str) for text in texts) else texts

    def _data(self, place: str, value: Any, name: str = "") -> Any:  # noqa: ANN401 - JSON data
        """Mask JSON data; ``name`` is the key of the value."""
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
        """Mask a value of metadata, which is also a secret if its key says so."""
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
        return merge_spans(SecretSpan(*span) for span in self._scanner.find(text))

    def _note(self, place: str, kind: str) -> None:
        self.kinds.append(kind)
        self.places.append(place if len(place) <= _LONGEST_PLACE else place.partition(".")[0])


def _read(text: str) -> Any:  # noqa: ANN401 - JSON data
    """Parse JSON; ``None`` if another program wrote it invalid, or nested too deep to traverse.

    An invalid number such as 9e999 stays a text: as infinity it could not be written again, and
    failed every screening.
    """
    try:
        data = decode_json(text)
    except (ValueError, RecursionError):
        return None
    return None if is_bottomless(data) else data


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Return an unused key: two keys that are secrets have the same mask."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free


# Reporting ----------------------------------------------------------------------------------

_MOST_LOGGED: Final = 20


def log(noticed: Sequence[FoundSecrets]) -> None:
    """Log what was found in memories that are stored now: their ids and the kinds, no secret."""
    for secrets in noticed[:_MOST_LOGGED]:
        logger().warning("%s", describe(secrets))
    if (more := len(noticed) - _MOST_LOGGED) > 0:
        logger().warning("%d more memories seem to contain secrets: see `secrets`", more)


def describe(secrets: FoundSecrets) -> str:
    """Describe the secrets of a memory, and what was done with them."""
    if secrets.decision is OnSecret.MASK:
        return f"memory {secrets.memory_id}: masked {secrets}"
    return f"memory {secrets.memory_id} seems to contain a secret ({secrets}): stored as it is"

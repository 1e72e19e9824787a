"""The rules for the parts of a memory: agent id, memory id, content, tags, metadata.

``validate_…`` and ``normalize_tags`` are document A's, with its mistakes corrected; ``clean_…``
return the value as it is stored, or raise a ``ValueError`` that says what to do.
"""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models.limits import (
    MAX_MEMORY_CONTENT_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS_PER_MEMORY,
    SESSION_VARIABLE,
)

UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""What SQLite cannot store unchanged: NUL, and half of a surrogate pair."""
_AGENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNNAMED_SESSION: Final = re.compile(r"session-[0-9a-f]{12}|sqlite3")
"""The names that ``choose_session_name`` generates, and the default in the file's schema for a row
that another program inserted."""
_MEMORY_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
# Windows opens these as devices, whatever directory they are in.
_WINDOWS_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
)
_MAX_METADATA_DEPTH: Final = 20
_DEEPEST_WALKED: Final = 100
"""Pydantic serializes 255 levels, and Python's own stack ends a few hundred levels further."""
MAX_SCOPE_ID_LENGTH: Final = 128
"""Characters in the id of a user or a run."""


def validate_agent_id(agent_id: str) -> bool:
    r"""Return whether an agent id is valid.

    It has 1 to 64 letters, digits, hyphens and underscores and nothing else (not even a final
    newline), and is not the name of a Windows device.
    """
    return (
        isinstance(agent_id, str)
        and _AGENT_ID.fullmatch(agent_id) is not None
        and agent_id.lower() not in _WINDOWS_DEVICES
    )


is_valid_agent_id = validate_agent_id
"""B's and D's name for the same."""


def is_key(text: str) -> bool:
    """Return whether a key consists only of characters that an HTTP header can hold.

    With any other, the client's own error would print the key.
    """
    return all("!" <= letter <= "~" for letter in text)


def sanitize_agent_id(agent_id: str) -> str:
    """Remove the characters that an agent id cannot have, and cut it at 64.

    The result may still be invalid: an empty text, or a device's name.
    """
    return re.sub(r"[^A-Za-z0-9_-]", "", agent_id)[:64]


def clean_agent_id(agent_id: str) -> str:
    """Return the agent id, or raise ``ValueError``."""
    if not validate_agent_id(agent_id):
        raise ValueError(
            f"{agent_id!r:.100} is not an agent id: use 1 to 64 letters, digits, '-' and '_',"
            " and not a Windows device name such as 'con'"
        )
    return agent_id


def is_memory_id(memory_id: object) -> bool:
    """Return whether this is a valid memory id."""
    return isinstance(memory_id, str) and _MEMORY_ID.fullmatch(memory_id) is not None


def clean_memory_id(memory_id: str) -> str:
    """Return the memory id, or raise ``ValueError``."""
    if not is_memory_id(memory_id):
        raise ValueError(
            f"{memory_id!r:.160} is not a memory id:"
            " use 1 to 128 letters, digits, '-', '_', '.' and ':'"
        )
    return memory_id


def _fault_of_text(text: str) -> str | None:
    """Return why SQLite cannot store a text unchanged, or ``None`` if it can."""
    if "\x00" in text:
        return "has a NUL character, at which other SQLite tools would cut it: remove it"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "is not valid UTF-8 (it has half of a surrogate pair): remove it"
    return None


def _is_blank(text: str) -> bool:
    """Return whether nothing of a text is visible: white space, controls, zero-width characters."""
    return not text[:1].isalnum() and all(
        letter.isspace() or unicodedata.category(letter) in ("Cf", "Cc") for letter in text
    )


def validate_memory_content(content: str) -> tuple[bool, str | None]:
    """Return whether a content may be stored, and if not, why.

    It has at least one visible character, and at most 10,000 characters (code points).
    """
    if _is_blank(content):
        return False, "Content cannot be empty"
    if len(content) > MAX_MEMORY_CONTENT_LENGTH:
        return False, (
            f"Content exceeds {MAX_MEMORY_CONTENT_LENGTH} characters (it has {len(content)}):"
            " store it as several memories"
        )
    if fault := _fault_of_text(content):
        return False, f"Content {fault}"
    return True, None


def clean_content(content: str) -> str:
    """Return the content, or raise ``ValueError``."""
    is_valid, reason = validate_memory_content(content)
    if not is_valid:
        raise ValueError(reason)
    return content


def validate_tags(tags: list[str]) -> tuple[bool, str | None]:
    """Return whether tags may be stored, and if not, why: at most 20, of up to 50 characters."""
    if len(tags) > MAX_TAGS_PER_MEMORY:
        return False, f"Too many tags (maximum {MAX_TAGS_PER_MEMORY}, got {len(tags)})"
    for number, tag in enumerate(tags, 1):
        if not tag.strip():
            return False, "Empty tags not allowed"
        if len(tag) > MAX_TAG_LENGTH:
            return False, (
                f"Tag {number} exceeds {MAX_TAG_LENGTH} characters (it has {len(tag):,})"
            )
        if fault := _fault_of_text(tag):
            return False, f"Tag {number} {fault}"
    return True, None


def normalize_tags(tags: Iterable[str]) -> list[str]:
    """Strip and lower-case tags, drop empty and repeated ones, and keep the order.

    (A passed them through ``set``, so that their order changed from run to run.)
    """
    return list(dict.fromkeys(filter(None, [tag.strip().lower() for tag in tags])))


def clean_tags(tags: list[str]) -> list[str]:
    """Return the tags as they are stored, or raise ``ValueError``."""
    normalized = normalize_tags(tags)
    is_valid, reason = validate_tags(normalized)
    if not is_valid:
        raise ValueError(reason)
    return normalized


def clean_text(text: str) -> str:
    """Return a text that the file can store, or raise ``ValueError``."""
    if fault := _fault_of_text(text):
        raise ValueError(f"the text {fault}")
    return text


def clean_label(label: str) -> str:
    """Return the name of a session, user or run, or raise ``ValueError``."""
    if not label.strip() or len(label) > 200:
        raise ValueError(f"must be a name of 1 to 200 characters, not of {len(label):,}")
    return clean_text(label)


def clean_scope_id(scope_id: str) -> str:
    """Return the id of a user or a run, or raise ``ValueError``.

    Common ids are accepted (a UUID, an e-mail address, ``auth0|5f7c``): 1 to 128 printable
    characters, with no space at either end.
    """
    if not 1 <= len(scope_id) <= MAX_SCOPE_ID_LENGTH:
        raise ValueError(
            f"an id must have 1 to {MAX_SCOPE_ID_LENGTH} characters, not {len(scope_id):,}"
        )
    if not scope_id.isprintable() or scope_id != scope_id.strip():
        raise ValueError(
            f"{scope_id!r:.160} is not an id of a user or a run: use printable characters,"
            " with no space at either end"
        )
    return clean_text(scope_id)


def new_memory_id() -> str:
    """Return a new id: ``mem-`` and 12 hexadecimal digits."""
    return f"mem-{os.urandom(6).hex()}"


def choose_session_name(name: str | None) -> str:
    """Return the session's name: the argument, else the environment variable, else a new name.

    Raises ``ValidationError``.
    """
    chosen = name or os.environ.get(SESSION_VARIABLE) or f"session-{os.urandom(6).hex()}"
    if not isinstance(chosen, str):
        raise ValidationError.of("session_id", "must be a string", chosen)
    try:
        return clean_label(chosen)
    except ValueError as error:
        raise ValidationError.of("session_id", str(error), chosen) from error


@lru_cache(maxsize=4_096)  # a search calls it for hundreds of rows, mostly of a few sessions
def is_named_session(session: str) -> bool:
    """Return whether a session was named by somebody.

    What a named session stores belongs together: a conversation, a run. What a process stores
    without a name may be unrelated.
    """
    return _UNNAMED_SESSION.fullmatch(session) is None


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as plain JSON data, or raise ``ValueError``.

    Keys are strings; values are strings, finite numbers, booleans, ``None``, and lists and mappings
    of these, nested at most 20 deep.
    """
    return {clean_key(key): _plain(value, str(key), 1) for key, value in metadata.items()}


def is_bottomless(value: object) -> bool:
    """Return whether JSON data is nested too deep for some code to walk through it."""
    inner = [value]
    for _ in range(_DEEPEST_WALKED):
        nested = [item for item in inner if isinstance(item, list | dict)]
        if not nested:
            return False
        inner = [
            item for each in nested for item in (each.values() if isinstance(each, dict) else each)
        ]
    return True


def clean_key(key: object) -> str:
    """Return a metadata key, or raise ``ValueError``."""
    if not isinstance(key, str):
        kind = type(key).__name__
        raise ValueError(f"a metadata key is a {kind}, not a string")  # noqa: TRY004 - pydantic
    if fault := _fault_of_text(key):
        raise ValueError(f"a metadata key {fault}")
    return key


def _plain(value: object, path: str, depth: int) -> Any:  # noqa: ANN401 - JSON data
    """Check one value of metadata; ``path`` says where it is."""
    if depth > _MAX_METADATA_DEPTH:
        raise ValueError(f"metadata {path:.100} is nested over {_MAX_METADATA_DEPTH} levels deep")
    if isinstance(value, str):
        if fault := _fault_of_text(value):
            raise ValueError(f"metadata {path:.100} {fault}")
        return value
    if value is None or isinstance(value, (int, float)):  # in half the time of a union
        _refuse_number(value, path)
        return value
    if isinstance(value, Mapping):
        return {
            clean_key(key): _plain(item, f"{path}.{key}", depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{n}]", depth + 1) for n, item in enumerate(value)]
    raise ValueError(
        f"metadata {path:.100} is a {type(value).__name__}, which JSON cannot represent"
    )


def _refuse_number(value: float | None, path: str) -> None:
    """Raise ``ValueError`` for a number that JSON, or its next reader, cannot represent."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"metadata {path:.100} is {value}, which JSON cannot represent")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(
            f"metadata {path:.100} is an integer of over 64 bits: store it as a string"
        )


_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False
)  # json.dumps() would create one for each call


def without_none(**fields: object) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def to_json(value: object) -> str:
    """Return JSON as the file holds it: without white space, and with non-ASCII text unescaped."""
    return _ENCODER.encode(value)


def finite_or_text(text: str) -> float | str:
    """Return a JSON number, or its text if it exceeds a float: JSON has no infinity."""
    number = float(text)
    return number if math.isfinite(number) else text


def integer_or_text(text: str) -> int | str:
    """Return a JSON integer, or its text if it has more than 64 bits."""
    return int(text) if len(text) <= 20 and -(2**63) <= int(text) < 2**63 else text


decode_json: Final = json.JSONDecoder(
    parse_int=integer_or_text, parse_float=finite_or_text, parse_constant=str
).decode
"""Parses another program's JSON; numbers that cannot be stored stay text: 9e999, 10^30, NaN."""

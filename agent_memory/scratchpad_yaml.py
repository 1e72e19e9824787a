"""``scratchpad.yaml``, and its backup of any length: document A's format, written and read.

Written as A shows it, so that any YAML reader gets the same data back. Read as strangers' data:
by events, one entry at a time, since PyYAML's own loading lets libyaml recurse until the process
crashes (``[`` 200,000 times), follows aliases that unfold to gigabytes, and keeps the last of two
equal keys.
"""

import contextlib
import errno
import os
import re
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from json import JSONEncoder
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, TypeVar

from pydantic import Field
from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import StorageError, StorageFull, StorageUnavailable, ValidationError
from agent_memory.files import sync_to_disk
from agent_memory.models.memory import Memory, TaskMetadata
from agent_memory.models.record import Record
from agent_memory.strict_yaml import read_yaml
from agent_memory.times import UtcDatetime, format_time
from agent_memory.validation import AgentId, Metadata, Text
from agent_memory.vocabulary import Importance, MemoryCategory, MemoryKind, MemoryType

MAX_FILE_BYTES: Final = 2 * 10**9

_MAX_PLAIN_KEY: Final = 1000  # of 1,024 characters, past which YAML wants a "?" before a key

# What JSON leaves as it is in a text, but YAML takes for line breaks or refuses.
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_to_json: Final = JSONEncoder(ensure_ascii=False).encode


# Writing ------------------------------------------------------------------------------------


def write_scratchpad(
    path: Path,
    memories: Iterable[Memory],
    *,
    agent_id: str,
    last_updated: datetime,
    max_size: int,
) -> int:
    """Write memories as a scratchpad file of mode 0600, and return how many they were.

    The file holds all of them, however few ``max_size`` allows. An entry has A's seven keys, then
    those fields of ``Memory`` that differ from their defaults (``embedding`` is left out). The
    file is made beside ``path`` and moved there when it is whole and on the disk: what stands
    there before stays until then. A symbolic link there is replaced, never followed. Half of a
    surrogate pair, which no YAML can hold, becomes U+FFFD.

    Raises ``StorageFull`` when the disk is, ``StorageUnavailable`` when the file cannot be
    written, ``ValidationError`` for metadata that is nested hundreds deep.
    """
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    head = (
        f"agent_id: {_quoted(agent_id)}\n"
        f"last_updated: {_time(last_updated)}\n"
        f"max_size: {max_size}\n\n"
    )
    try:
        count = _write_private(unfinished, head, memories)
        unfinished.replace(path)
        sync_to_disk(path.parent)
    except OSError as error:
        raise _storage_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    return count


def _write_private(path: Path, head: str, memories: Iterable[Memory]) -> int:
    count = 0
    with open(path, "xb", 2**20, opener=_open_private) as file:
        file.write(head.encode())
        for count, memory in enumerate(memories, start=1):
            file.write(b"\n" if count > 1 else b"memories:\n")
            file.write(_entry(memory).encode())
        if not count:
            file.write(b"memories: []\n")
        file.flush()
        os.fsync(file.fileno())
    return count


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _storage_error(path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"{path} does not fit: free space on its disk. Nothing stored was lost")
    return StorageUnavailable(f"{path} cannot be written: {error}")


def _entry(memory: Memory) -> str:
    lines = [
        f"  - id: {_quoted(memory.id)}",
        f"    timestamp: {_time(memory.timestamp)}",
        f"    category: {_quoted(memory.category)}",
        f"    content: {_quoted(memory.content)}",
        f"    tags: {_flow(memory.tags)}",
        f"    access_count: {memory.access_count}",
        f"    last_accessed: {_flow(memory.last_accessed)}",
    ]
    try:
        lines += [f"    {key}: {_flow(value)}" for key, value in _further(memory)]
    except RecursionError as error:
        message = f"of the memory {memory.id} is nested too deep to be written"
        raise ValidationError.of("metadata", message, memory.id) from error
    return "\n".join(lines) + "\n"


def _further(memory: Memory) -> Iterator[tuple[str, object]]:
    """Yield what A's seven keys do not tell and is not the default."""
    task = memory.task_metadata
    fields: tuple[tuple[str, object, object], ...] = (
        ("kind", memory.kind, MemoryKind.LEARNING),
        ("importance", memory.importance, Importance.MEDIUM),
        ("created_by_session", memory.created_by_session, None),
        ("user_id", memory.user_id, None),
        ("run_id", memory.run_id, None),
        ("memory_type", memory.memory_type, MemoryType.STANDARD),
        ("archived", memory.archived, False),
        ("task_metadata", task and task.model_dump(exclude_defaults=True), None),
        ("metadata", memory.metadata, {}),
        ("updated_at", memory.updated_at, memory.timestamp),
        ("version", memory.version, 1),
    )
    return ((key, value) for key, value, default in fields if value != default)


def _flow(value: object) -> str:
    """Write a value on one line, such that YAML 1.1 and 1.2 both read the same data."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(_key(key) + _flow(item) for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _to_json(value)


def _quoted(text: str) -> str:
    """Write a text between double quotes, on one line."""
    return _NOT_IN_YAML.sub(_escaped, _to_json(text))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def _key(key: str) -> str:
    text = _quoted(key)
    return f"? {text} : " if len(text) > _MAX_PLAIN_KEY else f"{text}: "


def _float(number: float) -> str:
    # YAML 1.1 takes 1e-07 for a text: it wants the point. And it writes infinity as .inf.
    text = repr(number)
    if "n" in text:
        return text.replace("inf", ".inf").replace("nan", ".nan")
    return text if "." in text else text.replace("e", ".0e")


def _time(moment: datetime) -> str:
    return f'"{format_time(moment).replace(".000000Z", "Z")}"'


# Reading ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScratchpadFile:
    """What a scratchpad file holds.

    Each of ``memories`` is a mapping with every field of ``Memory`` but ``agent_id`` and
    ``embedding``, times aware and in UTC, ``task_metadata`` a mapping. What the entry did not
    tell has its default: ``None`` for ``id``, ``timestamp``, ``last_accessed`` and
    ``created_by_session``, the ``timestamp`` for ``updated_at``. Keys that are not of the format
    stand in its ``metadata``. The values have the right types; the limits of a memory (the length
    of its content, the categories) are not checked here.
    """

    agent_id: str | None
    max_size: int | None
    memories: list[dict[str, Any]]


Model = TypeVar("Model", bound=Record)
Natural = Annotated[int, Field(ge=0, lt=2**63)]


class _Entry(Record):
    """One entry: the types of its fields, and what they are when it does not tell."""

    id: Text | None = Field(default=None, min_length=1)
    content: Text = Field(min_length=1)
    category: Text = MemoryCategory.NOTE.value
    tags: list[Text] = Field(default_factory=list)
    timestamp: UtcDatetime | None = None
    access_count: Natural = 0
    last_accessed: UtcDatetime | None = None
    kind: MemoryKind = MemoryKind.LEARNING
    importance: Importance = Importance.MEDIUM
    created_by_session: Text | None = None
    user_id: Text | None = None
    run_id: Text | None = None
    memory_type: MemoryType = MemoryType.STANDARD
    archived: bool = False
    task_metadata: TaskMetadata | None = None
    metadata: Metadata = Field(default_factory=dict)
    updated_at: UtcDatetime | None = None
    version: Natural = Field(default=1, ge=1)


class _Head(Record):
    """What a file tells beside its memories."""

    agent_id: AgentId | None = None
    max_size: Natural | None = None


def read_scratchpad(path: Path) -> ScratchpadFile:
    """Read a scratchpad file: ours, document A's, or one that was written by hand.

    A time without zone is UTC; an empty value is the default. What is no scratchpad (wrong YAML,
    a key that stands twice, an alias, an id that two entries have, a value of the wrong type, a
    file of over 2 GB) is ``ValidationError`` with the line, or with the number of the entry from
    1 and the key. A file that cannot be read is ``StorageUnavailable``.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            _refuse_unfit(file)
            return _scratchpad(read_yaml(file))
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        raise ValidationError(f"{path}: {error}", error.errors()) from error


def _open_at_once(path: str, flags: int) -> int:
    # A pipe would keep the opening waiting for somebody to write into it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _refuse_unfit(file: BinaryIO) -> None:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ValidationError("is not a file")
    if status.st_size > MAX_FILE_BYTES:
        raise ValidationError(f"is larger than {MAX_FILE_BYTES:,} bytes")


def _scratchpad(data: object) -> ScratchpadFile:
    if not isinstance(data, dict) or "memories" not in data:
        raise ValidationError("is no scratchpad: that is a mapping with a list `memories`")
    entries = [] if data["memories"] is None else data["memories"]
    if not isinstance(entries, list):
        raise ValidationError.of("memories", "must be a list", entries)
    head = _validated(_Head, data)
    seen: set[str | None] = set()
    for number, entry in enumerate(entries, start=1):
        try:
            # In its place: a second list of 100,000 entries would take as much memory again.
            entries[number - 1] = memory = _memory(entry)
            if memory["id"] in seen:
                raise ValidationError.of("id", "an earlier entry has it too", memory["id"])
        except ValidationError as error:
            faults = [{**f, "loc": ("memories", number, *f["loc"])} for f in error.errors()]
            raise ValidationError(f"entry {number}: {error}", faults) from error
        seen.add(memory["id"])
        seen.discard(None)
    return ScratchpadFile(head.agent_id, head.max_size, entries)


def _memory(entry: object) -> dict[str, Any]:
    """Return an entry's fields; what is not of the format goes into its metadata."""
    if not isinstance(entry, dict):
        raise ValidationError.of("entry", "must be a mapping with a content", entry)
    known = {key: value for key, value in entry.items() if key in _Entry.model_fields}
    unknown = {key: value for key, value in entry.items() if key not in known}
    metadata = known.get("metadata") or {}
    if unknown and isinstance(metadata, dict):
        if twice := sorted(unknown.keys() & metadata.keys()):
            message = "stands both in the entry and in its metadata"
            raise ValidationError.of(twice[0], message, unknown[twice[0]])
        known["metadata"] = {**metadata, **unknown}
    memory = _validated(_Entry, known).model_dump()
    memory["updated_at"] = memory["updated_at"] or memory["timestamp"]
    return memory


def _validated(model: type[Model], data: Mapping[str, object]) -> Model:
    given = {key: value for key, value in data.items() if value is not None}
    try:
        return model.model_validate(given)
    except PydanticValidationError as error:
        raise ValidationError.from_pydantic(error) from error

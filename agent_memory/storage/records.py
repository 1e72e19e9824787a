"""Plain records that cross the seam: what tables take and return, the same for every engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeGuard

from agent_memory.errors import StorageCorrupt
from agent_memory.models.embedding import EmbeddingModel
from agent_memory.models.enums import MemoryKind
from agent_memory.models.fields import decode_json, normalize_tags, to_json
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import HISTORIC, MEMORY_FIELDS, MemoryField, TaskMetadata
from agent_memory.models.times import format_time, read_stored_time, shifted
from agent_memory.storage.centering import Centred
from agent_memory.text.normalize import exact_form, near_form

Row = tuple[Any, ...]

MEMORY_COLUMNS: Final = ("seq", *MEMORY_FIELDS)
"""The columns of a memory, in the order in which a table gives them."""


def page_end(row_id: int, *, after: int) -> int:
    """Return the row id at which a page ends: the next page is read from there on.

    In a damaged file the rows can be out of order: reading them by the page would never end. That
    is ``StorageCorrupt``.
    """
    if row_id <= after:
        raise StorageCorrupt(f"the file is damaged: row {row_id} comes after row {after}")
    return row_id


RowValues = dict[str, Any]
"""A row: by column, what it holds."""


@dataclass(slots=True)  # not frozen: a search makes hundreds, and that takes thrice as long
class Signals:
    """What ranking needs of a memory beside its words."""

    row_id: int
    session: str
    timestamp: str
    access_count: int


def is_same_value(value: object, other: object) -> bool:
    """Return whether two values of a field are the same in the file: ``True`` is not 1 there."""
    return value == other and column_value(value) == column_value(other)


def column_value(value: object) -> object:
    """Return a field's value as its column holds it."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, TaskMetadata):
        return value.model_dump_json(exclude_none=True, exclude_defaults=True)
    if isinstance(value, list | dict):
        return to_json(value)
    return value


def memory_of_values(row: Sequence[Any], agent_id: str) -> Memory:
    """Make the model of a row, its values in the order of ``MEMORY_COLUMNS``, without validation.

    A row that another program wrote may hold what the library would refuse (a category of its
    own, a damaged text): it must be readable all the same.
    """
    values = zip(_READERS.items(), row[1:], strict=True)
    fields = {name: read(value) if read else value for (name, read), value in values}
    return Memory.model_construct(agent_id=agent_id, embedding=None, **fields)


def memory_of_row(row: Mapping[str, Any], *, agent_id: str) -> Memory:
    """Make the model of a row that is given by column."""
    return memory_of_values(tuple(map(row.get, MEMORY_COLUMNS)), agent_id)


def fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as plain data, without values that every new memory has."""
    fields: dict[str, Any] = {}
    for name, of_memory in MEMORY_FIELDS.items():
        value = row[name]
        if value is None or (of_memory.column.kind == "count" and value == of_memory.default):
            continue
        if name == "updated_at" and value == row["timestamp"]:
            continue
        fields[name] = _plain(of_memory, value)
    return fields


def _plain(of_memory: MemoryField, value: Any) -> Any:  # noqa: ANN401 - any column
    """Return a column's value as plain data."""
    if of_memory.column.kind == "flag":
        return bool(value)
    if not of_memory.is_json:
        return value
    try:
        plain = json.loads(value)
    except (ValueError, RecursionError):  # another program's: `check` reports it
        return value
    if of_memory.column.kind == "list" and _is_list_of_texts(plain):
        return normalize_tags(plain)
    return plain


def _is_list_of_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _reader_of_word(row: MemoryField) -> Callable[[str], Enum]:
    """Return what reads a word of an enum; another program's word is read as the default."""
    words: type[Enum] = type(row.default)

    def read(word: str) -> Enum:
        try:
            return words(word)
        except ValueError:
            default: Enum = row.default
            return default

    return read


def read_json(text: str) -> Any:  # noqa: ANN401 - JSON data
    """Read JSON of whatever program; ``None`` for what is none.

    An escape can stand for half a character, which no output can take.
    """
    try:
        value = decode_json(text)
    except (ValueError, RecursionError):
        return None
    if "\\u" not in text:
        return value
    from agent_memory.models.row_repair import storable  # noqa: PLC0415 - seldom used

    return storable(value)


def _read_list(text: str | None) -> list[str]:
    """Read tags as the table of tags has them: another program may have written ``["DB"]``."""
    value = read_json(text or "[]")
    return normalize_tags(map(str, value)) if isinstance(value, list) else []


def _read_object(text: str | None) -> dict[str, Any]:
    value = read_json(text or "{}")
    return value if isinstance(value, dict) else {}


def _read_task(text: str | None) -> TaskMetadata | None:
    if text is None:
        return None
    try:
        return TaskMetadata.model_validate_json(text)
    except ValueError:
        return None


def _reader_of(row: MemoryField) -> Callable[[Any], Any] | None:
    """Return what reads a field from its column; ``None`` where both hold the same."""
    if row.column.kind == "word":
        return _reader_of_word(row)
    if row.column.kind == "time" and row.is_optional:
        return lambda text: read_stored_time(text) if text else None
    readers: dict[str, Callable[[Any], Any]] = {
        "list": _read_list,
        "object": _read_object,
        "task": _read_task,
        "time": read_stored_time,
        "flag": bool,
    }
    return readers.get(row.column.kind)


_READERS: Final = {name: _reader_of(row) for name, row in MEMORY_FIELDS.items()}


class Change(NamedTuple):
    """One change as the table holds it: the values are those of the columns of ``memories``.

    A column that was NULL is left out; JSON columns are their text.
    """

    change_id: int
    memory_id: str
    event: str
    changed_at: str
    session_id: str | None
    old: dict[str, Any]
    new: dict[str, Any]

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns that changed."""
        return frozenset({*self.old, *self.new})


def is_as_it_was_added(change: Change, row: Mapping[str, Any] | None) -> bool:
    """Return whether a change added a memory as its row still is: exports then say no more."""
    return (
        change.event == "ADD"
        and row is not None
        and change.new == {name: row[name] for name in HISTORIC if row[name] is not None}
    )


class Operation(NamedTuple):
    """What was done, and the numbers of its first and last change in the history."""

    operation_id: int
    verb: str
    first_change: int
    last_change: int
    done_at: str
    session_id: str | None


Reason = Literal["stored", "accessed", "promoted"]


RECALL_WINDOW: Final = timedelta(hours=1)
"""How long a memory that was given out is remembered as such."""


def recall_window(now: datetime) -> tuple[str, str]:
    """Return the first and the last moment at which what was given out counts.

    A later one was written before the clock was set back: nothing is known of its age.
    """
    return format_time(shifted(now, -RECALL_WINDOW)), format_time(now)


class DuplicateCandidate(NamedTuple):
    """A memory that may say the same; ``tags`` are JSON.

    ``timestamp`` is when it was learned, ``recalled_at`` when it was last given out, if that is
    known.
    """

    row_id: int
    memory_id: str
    content: str
    user_id: str | None
    run_id: str | None
    category: str
    tags: str
    timestamp: str
    recalled_at: str | None


def fingerprint_of(content: str, user_id: str | None, run_id: str | None) -> int:
    """Return the number that near duplicates about the same user, of the same run, have alike.

    The library alone makes it: with a function of its own in the triggers, no other program could
    write to the file. A release that changes the forms must set all fingerprints to NULL.
    """
    parts = (near_form(exact_form(content)), user_id or "", run_id or "")
    digest = hashlib.blake2b("\x00".join(parts).encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@dataclass(frozen=True)
class DuplicateQuery:
    """A text about a user, of a run, of which it is asked whether it is there already.

    ``recalled`` is the span (as texts) in which a memory must have been given out to make the text
    its echo; ``None`` when it cannot be one. ``index`` is the text's place in a list.
    """

    content: str
    user_id: str | None
    run_id: str | None
    recalled: tuple[str, str] | None = None
    index: int | None = None


class Alternative(NamedTuple):
    """What may stand in a memory for a word of a query: a form of it, its parts, what was meant.

    All of ``words``, as the index holds them, must stand in a memory; where ``is_phrase``, one
    right after the other. ``written`` says them to people; ``weight`` is what it counts beside the
    word itself.
    """

    words: tuple[str, ...]
    written: str
    weight: float = 1.0
    is_phrase: bool = False


class Term(NamedTuple):
    """A word of a query: as the index holds it, stemmed, and as it was written.

    ``is_prefix`` stands for all words that begin so; ``is_name`` tells that the query writes it
    as a name. ``alternatives`` are what counts as the word too.
    """

    word: str
    written: str
    is_prefix: bool = False
    is_name: bool = False
    alternatives: tuple[Alternative, ...] = ()

    @property
    def match(self) -> str:
        """Return the FTS5 query for this term alone: quoted, so that nothing is an operator.

        FTS5 stems it itself. It must not be given a stem: that of "databas" is "databa".
        """
        quoted = '"' + self.written.replace('"', '""') + '"'
        return f"{quoted} *" if self.is_prefix else quoted


@dataclass(slots=True)  # not frozen, as ``Signals``
class WordCounts:
    """The words of a memory: how often terms of the query stand in it, and how many in all.

    ``counts`` is by the place of the term in the query, in its order, without those that are not
    there. ``opens`` tells whether its first word is one of the terms, ``asks`` whether it ends with
    a question. ``variants`` has what stands in it for words of the query, by the word asked for.
    """

    counts: Mapping[int, float]
    length: int
    opens: bool
    asks: bool
    variants: Mapping[str, str] = field(default_factory=dict)


class Usage(NamedTuple):
    """How a memory is used, times as the file holds them.

    ``size`` is of its content, in bytes. ``is_kept`` tells that nothing may archive it by itself.
    ``task`` is a task's metadata as JSON, read by nobody yet.
    """

    row_id: int
    kind: MemoryKind
    last_used: str
    updated_at: str
    access_count: int
    size: int
    is_kept: bool
    task: bytes | None


@dataclass(frozen=True)
class Amount:
    """How many memories there are, and the bytes of their contents."""

    count: int = 0
    size: int = 0


class GraphMoment(NamedTuple):
    """A time that the graph is looked at, as it is stored, and whose graph; ``None``: everybody's.

    ``is_past`` lets memories count that were deleted later. With a ``run_id`` only what memories of
    this run say is seen, and what was said by hand in it.
    """

    stamp: str
    user_id: str | None
    is_past: bool
    run_id: str | None = None


class Closing(NamedTuple):
    """The end of a relationship: when, the memory that says so, if any, and its change; and now.

    Times are as they are stored.
    """

    at: str
    memory_id: str | None
    change_id: int | None
    now: str


@dataclass(frozen=True)
class ErasedText:
    """What memories say and ever said, as far as the file knows.

    ``contents`` and ``strings`` (tags, and the keys and texts of metadata) are texts, in which
    bytes that are not UTF-8 are half surrogate pairs. ``vectors`` are those of the embeddings, and
    the hashes of the texts that they were made of. ``statements`` are the contents by memory.
    """

    contents: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    vectors: set[bytes] = field(default_factory=set)
    statements: list[Statement] = field(default_factory=list)

    def add(self, other: ErasedText) -> None:
        """Take over what another says."""
        self.contents.update(other.contents)
        self.strings.update(other.strings)
        self.vectors.update(other.vectors)
        self.statements.extend(other.statements)


class Tombstone(NamedTuple):
    """A mark of something that was erased, by its hash, made with a ``key``: 16 bytes each.

    ``kind`` is ``id`` (of a memory) or ``content`` (of one, and the user whom it was about),
    ``erased_at`` the time as it is stored.
    """

    key: bytes
    hash: bytes
    kind: Literal["id", "content"]
    erased_at: str


class Statement(NamedTuple):
    """What a memory says and ever said, and about whom: all its contents and its ``user_id``s."""

    memory_id: str
    contents: frozenset[str]
    user_ids: frozenset[str | None]

    def content_hashes(self, key: bytes) -> set[bytes]:
        """Return the hashes of the contents, each with each of the users."""
        return {
            hash_of_content(key, content, user_id)
            for content in self.contents
            for user_id in self.user_ids
        }

    def hashes(self, key: bytes) -> set[bytes]:
        """Return the hashes by which tombstones know the memory: of its id and its contents."""
        return {hash_of_id(key, self.memory_id), *self.content_hashes(key)}


def hash_of_id(key: bytes, memory_id: str) -> bytes:
    """Return the hash by which a tombstone knows the id of a memory."""
    return _keyed_hash(key, b"id", memory_id)


def hash_of_content(key: bytes, content: str, user_id: str | None) -> bytes:
    """Return the hash by which a tombstone knows what a memory said, in its exact form.

    What one user had erased another may still say, so the user is part of it.
    """
    about = "" if user_id is None else f"\x00{user_id}"
    return _keyed_hash(key, b"content", exact_form(content) + about)


def _keyed_hash(key: bytes, kind: bytes, text: str) -> bytes:
    data = text.encode(errors="surrogatepass")  # another program's may be no UTF-8
    return hashlib.blake2b(data, digest_size=16, key=key, person=kind).digest()


class RemovedRows(NamedTuple):
    """How many rows were removed: memories, changes in the history, embeddings."""

    memories: int
    changes: int
    embeddings: int


class RemainingText(NamedTuple):
    """Texts that a table holds: of a ``memory``, whose id is the ``name``; or of ``other`` things.

    A ``place`` is one where somebody can write what they want; the ``name`` says which.
    """

    kind: Literal["memory", "place", "other"]
    name: str
    text: bytes


VECTOR_COLUMNS: Final = ("storage_backend", "migration_date", "migration", "embeddings_generated")
"""Columns that tell of the move to search by meaning."""


class QueryVector(NamedTuple):
    """A query's vector, quantized, and the model that it and the vectors it meets are of.

    ``seen`` is the vector as seen from the middle of the store, if cosines are to be from there.
    """

    model: EmbeddingModel
    data: bytes
    seen: Centred | None = None

    @property
    def asked(self) -> bytes | Centred:
        """Return what cosines are asked with."""
        return self.data if self.seen is None else self.seen

    @property
    def direction(self) -> bytes:
        """Return what the nearest vectors point to."""
        return self.data if self.seen is None else self.seen.data


class NearestVectors(NamedTuple):
    """Cosines by row of the nearest, and what was not as it should be."""

    cosines: dict[int, float]
    degraded: str | None = None


class Purged(NamedTuple):
    """How many memories lost what was erased, and how many of these are gone altogether."""

    erased: int
    memories: int

    def plus(self, other: Purged) -> Purged:
        """Return the sum of both."""
        return Purged(self.erased + other.erased, self.memories + other.memories)


class FileSummary(NamedTuple):
    """What a file says of itself: whose it is, the version of its schema, its page size."""

    agent_id: str | None
    version: int
    page_size: int


class Replaced(NamedTuple):
    """Where the content that was there is kept, and whether its rejections and tombstones hold on.

    ``purged`` tells what was erased here and was taken out of the new content.
    """

    aside: Path | None
    rejections_kept: bool
    purged: Purged = Purged(0, 0)

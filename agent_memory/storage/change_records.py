"""Plain records that cross the seam besides those of a search: changes, the graph, erasure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from agent_memory.models.columns import HISTORIC, USAGE
from agent_memory.models.enums import MemoryKind
from agent_memory.storage.records import RowValues
from agent_memory.text.normalize import exact_form

CREATED: Final = ("id", *HISTORIC, *USAGE)
"""The columns of a memory that comes back."""


class Change(NamedTuple):
    """One change as the table holds it; its values are those of the columns of ``memories``.

    A column that was NULL is left out; JSON columns are kept as text.
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


def reverted(row: RowValues | None, changes: Iterable[Change]) -> RowValues | None:
    """Return a row as it was before some changes, which are given oldest first."""
    row = None if row is None else dict(row)
    for change in reversed(list(changes)):
        if change.event == "ADD":
            row = None
        elif change.event == "DELETE":
            row = {"id": change.memory_id, **dict.fromkeys(CREATED[1:]), **change.old}
        elif row is not None:
            row.update({name: change.old.get(name) for name in change.columns})
    return row


@dataclass(frozen=True)
class DuplicateQuery:
    """A text about a user, of a run, to be checked for duplicates.

    ``recalled`` is the period (as text) in which a memory must have been returned to make the text
    its echo, or ``None`` if it cannot be one. ``index`` is the text's position in a list.
    """

    content: str
    user_id: str | None
    run_id: str | None
    recalled: tuple[str, str] | None = None
    index: int | None = None


class Usage(NamedTuple):
    """How a memory is used, with times in stored form.

    ``size`` is that of its content, in bytes. ``is_kept`` means that it must not be archived
    automatically. ``task`` is a task's metadata as JSON, not yet parsed.
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
    """The number of memories, and the bytes of their contents."""

    count: int = 0
    size: int = 0


class GraphMoment(NamedTuple):
    """When the graph is viewed, in stored form, and whose graph (``None``: everybody's).

    With ``is_past``, memories deleted later also count. With a ``run_id``, only what the memories
    of this run say is visible, and what was stated by hand in it.
    """

    stamp: str
    user_id: str | None
    is_past: bool
    run_id: str | None = None


class Closing(NamedTuple):
    """The end of a relationship: when, the memory that says so, if any, its change; and now.

    Times are in stored form.
    """

    at: str
    memory_id: str | None
    change_id: int | None
    now: str


@dataclass(frozen=True)
class ErasedText:
    """What memories say and ever said, as far as the file knows.

    In ``contents`` and ``strings`` (tags, and the keys and texts of metadata), bytes that are not
    UTF-8 are half surrogate pairs. ``vectors`` are those of the embeddings, and the hashes of the
    texts they were made from. ``statements`` are the contents by memory.
    """

    contents: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    vectors: set[bytes] = field(default_factory=set)
    statements: list[Statement] = field(default_factory=list)

    def add(self, other: ErasedText) -> None:
        """Add the contents of another."""
        self.contents.update(other.contents)
        self.strings.update(other.strings)
        self.vectors.update(other.vectors)
        self.statements.extend(other.statements)


class Tombstone(NamedTuple):
    """The mark of something erased: its hash, made with a ``key``; each has 16 bytes.

    ``kind`` is ``id`` (of a memory) or ``content`` (of a memory, together with its user);
    ``erased_at`` is the time in stored form.
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
        """Return the hashes of the contents, each combined with each of the users."""
        return {
            hash_of_content(key, content, user_id)
            for content in self.contents
            for user_id in self.user_ids
        }

    def hashes(self, key: bytes) -> set[bytes]:
        """Return the hashes by which tombstones identify the memory: of its id and its contents."""
        return {hash_of_id(key, self.memory_id), *self.content_hashes(key)}


def contradictions(
    tombstones: Sequence[Tombstone], statements: Iterable[Statement]
) -> list[tuple[str, Tombstone]]:
    """Return the memories that say something erased, each with a tombstone of it.

    Such a thing is being imported, or is in a row that another program wrote.
    """
    if not tombstones:
        return []
    known = {(tombstone.key, tombstone.hash): tombstone for tombstone in tombstones}
    keys = {key for key, _ in known}
    return [
        (statement.memory_id, known[key, digest])
        for statement in statements
        for key in keys
        for digest in statement.hashes(key)
        if (key, digest) in known
    ]


def hash_of_id(key: bytes, memory_id: str) -> bytes:
    """Return the hash by which a tombstone identifies the id of a memory."""
    return _keyed_hash(key, b"id", memory_id)


def hash_of_content(key: bytes, content: str, user_id: str | None) -> bytes:
    """Return the hash by which a tombstone identifies what a memory said, in its exact form.

    The user is part of it, since another user may still say what one had erased.
    """
    about = "" if user_id is None else f"\x00{user_id}"
    return _keyed_hash(key, b"content", exact_form(content) + about)


def _keyed_hash(key: bytes, kind: bytes, text: str) -> bytes:
    data = text.encode(errors="surrogatepass")  # another program's text may not be UTF-8
    return hashlib.blake2b(data, digest_size=16, key=key, person=kind).digest()


class RemovedRows(NamedTuple):
    """The numbers of rows removed: memories, changes in the history, embeddings.

    ``by_hand`` is the number of entities and relationships that were stated by hand.
    """

    memories: int
    changes: int
    embeddings: int
    by_hand: int = 0


class RemainingText(NamedTuple):
    """A text that a table holds: of a ``memory``, whose id is the ``name``, or of something else.

    A ``place`` is one where anybody can write anything; the ``name`` says which.
    """

    kind: Literal["memory", "place", "other"]
    name: str
    text: bytes


VECTOR_COLUMNS: Final = ("storage_backend", "migration_date", "migration", "embeddings_generated")
"""The columns about the migration to search by meaning."""


class Purged(NamedTuple):
    """The number of memories that lost erased text, and how many of them were deleted entirely."""

    erased: int
    memories: int

    def plus(self, other: Purged) -> Purged:
        """Return the sum of both."""
        return Purged(self.erased + other.erased, self.memories + other.memories)


class FileSummary(NamedTuple):
    """What a file says about itself: its agent, schema version and page size."""

    agent_id: str | None
    version: int
    page_size: int


class Replaced(NamedTuple):
    """Where the previous content is kept, and whether its rejections and tombstones survive.

    ``purged`` counts what was erased here and removed from the new content.
    """

    aside: Path | None
    rejections_kept: bool
    purged: Purged = Purged(0, 0)

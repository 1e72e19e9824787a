"""What a transaction offers, table by table: the part of the seam that each engine implements.

``storage.sqlite.tables`` is what stands behind it for SQLite, and tells the details of each
method. A transaction is open when a method is called; ``Engine.read`` and ``Engine.write`` begin
one. Rows are known by their row id, a number that never changes, and memories by their id too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Literal, Protocol

from agent_memory.models.agent import (
    AgentConfig,
    AgentMetadata,
    MigrationInfo,
)
from agent_memory.models.decision import Review
from agent_memory.models.enums import MemoryKind
from agent_memory.models.memory import HistoryEntry, Memory
from agent_memory.models.safety import Rejection
from agent_memory.storage.filters import Filter
from agent_memory.storage.records import (
    Amount,
    Change,
    DuplicateCandidate,
    ErasedText,
    Operation,
    Reason,
    RemainingText,
    RemovedRows,
    RowValues,
    Signals,
    Usage,
)
from agent_memory.text.dates import Span


class MemoryTable(Protocol):
    """The table of memories: rows in, models out."""

    def insert(self, memory: Memory) -> int:
        """Add a memory and return its row id. An id that exists already is ``ValidationError``."""

    def exists(self, memory_id: str) -> bool:
        """Return whether there is a memory of that id, archived ones included."""

    def row_id_of(self, memory_id: str) -> int | None:
        """Return the row id of a memory, or ``None``."""

    def ids_of(self, row_ids: Sequence[int]) -> list[str]:
        """Return the ids of these rows, in the order of the rows."""

    def get(self, memory_id: str, *, agent_id: str) -> Memory | None:
        """Return a memory, or ``None``."""

    def get_many(self, row_ids: Iterable[int], *, agent_id: str) -> dict[int, Memory]:
        """Return the memories of these rows, by row id."""

    def readable(self, *, after: int, until: int, agent_id: str) -> list[Memory]:
        """Return what can be read of a span of rows of a damaged file: ``after`` is not in it."""

    def recent(self, filters: Filter, *, limit: int, offset: int, agent_id: str) -> list[Memory]:
        """Return the newest memories that pass the filters, newest first."""

    def ids(self, filters: Filter) -> list[str]:
        """Return the ids of the memories that pass the filters, oldest first."""

    def count(self, filters: Filter) -> int:
        """Count the memories that pass the filters."""

    def is_empty(self) -> bool:
        """Return whether there are no memories, archived ones counted too."""

    def last_row_id(self) -> int:
        """Return the highest row id, 0 when there is no memory."""

    def last_row_id_of_damaged(self) -> int:
        """Return the highest row id that was ever given, where the table may not be readable."""

    def update(self, row_id: int, changes: Mapping[str, Any], *, now: datetime) -> None:
        """Set some fields of a memory; its version goes up by one."""

    def delete(self, row_id: int) -> None:
        """Remove a memory; its history stays."""

    def count_accesses(self, accesses: Mapping[int, tuple[int, str]]) -> None:
        """Add to the access counts: by row id, how many, and the time of the last."""

    def ranking_signals(self, row_ids: Sequence[int], filters: Filter) -> list[Signals]:
        """Return what ranking needs of these rows, leaving out those that do not pass."""

    def between(self, filters: Filter, spans: Iterable[Span], *, limit: int) -> list[int]:
        """Return the newest rows of each span of days under a filter, ``limit`` of each."""

    def neighbours(self, row_ids: Sequence[int]) -> dict[int, dict[int, int]]:
        """Return the two rows before and the two after each, in its session, by distance."""


class MemoryRowTable(Protocol):
    """Rows of the table of memories as they are, by column."""

    def get(self, memory_id: str) -> RowValues | None:
        """Return the row of a memory, or ``None``."""

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, RowValues]:
        """Return the rows of several memories, by id."""

    def iterate(self, *, page: int = 1000) -> Iterator[RowValues]:
        """Yield all rows in the order in which they were stored, read by the page."""

    def insert(self, values: Mapping[str, Any]) -> int:
        """Add a row of the columns that are given, and return its row id."""

    def update(self, memory_id: str, values: Mapping[str, Any], *, updated_at: str) -> None:
        """Change columns of a row; its version goes up by one."""

    def set_values(self, memory_id: str, row: Mapping[str, Any]) -> None:
        """Make a row what it is to be, its version and its times too; all columns must be given."""

    def delete(self, memory_id: str) -> None:
        """Remove a row; its history stays."""

    def delete_many(self, memory_ids: Sequence[str]) -> None:
        """Remove several rows; their history stays."""

    def is_free(self, row_id: int) -> bool:
        """Return whether no memory has this row id."""

    def archive(self, memory_ids: Sequence[str], *, archived: bool, now: datetime) -> int:
        """Archive memories, or bring them back; return how many were not so before."""

    def last_use(self) -> str | None:
        """Return when a memory was last changed or accessed, as it is stored."""

    def texts_with(self, word: str) -> Iterator[list[str]]:
        """Yield id, content, tags, metadata and task metadata of the rows that may hold a word."""


class HistoryTable(Protocol):
    """The table of changes."""

    def last_change(self) -> int:
        """Return the number of the newest change, 0 for none."""

    def sign(self, memory_id: str, *, since: int, session_id: str, now: datetime) -> None:
        """Say which session made the changes after ``since``, and when by the store's clock."""

    def sign_all(self, *, since: int, session_id: str, now: datetime) -> None:
        """Say which session made all the changes after ``since``, and when."""

    def sign_between(self, after: int, until: int, *, session_id: str, now: datetime) -> None:
        """Say which session made the changes from one number (not in it) to another, and when."""

    def iterate(self, *, page: int = 1000) -> Iterator[Change]:
        """Yield all changes, oldest first, read by the page."""

    def texts(self, *, page: int = 1000) -> Iterator[list[str]]:
        """Yield memory id, old and new values of every change, as text, whatever they hold."""

    def between(self, first: int, last: int) -> list[Change]:
        """Return the changes from one number to another, oldest first."""

    def of_memory(self, memory_id: str) -> list[Change]:
        """Return all changes of a memory, oldest first."""

    def changed_after(self, moment: datetime) -> list[str]:
        """Return the ids of the memories that were changed after a moment."""

    def born_after(self, moment: datetime) -> list[str]:
        """Return the ids of the memories of which nothing is known until after a moment."""

    def insert(self, change: Change) -> None:
        """Add a change that was made elsewhere."""

    def ids_with_history(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that have a history."""

    def forget(self, memory_ids: Sequence[str], *, after: int, until: int) -> None:
        """Drop the changes of some memories from one number (not in it) to another."""

    def forget_after(self, moment: datetime, newest: int) -> None:
        """Drop the changes after a moment, and those numbered above ``newest``."""

    def entries(self, memory_id: str | None, *, limit: int) -> list[HistoryEntry]:
        """Return the changes of one memory, or of all, newest first."""


class OperationTable(Protocol):
    """The table of what was done to several memories at once, or for good."""

    def last_number(self) -> int:
        """Return the highest number that a change was ever given, deleted ones included."""

    def record(self, verb: str, *, since: int, session_id: str, now: datetime) -> None:
        """Record that the changes after number ``since`` are one operation, if there are any."""

    def record_irreversible(self, verb: str, *, session_id: str, now: datetime) -> None:
        """Note that something was done that ``undo`` cannot take back."""

    def last(self) -> Operation | None:
        """Return the last operation, if there was any."""


class AgentTable(Protocol):
    """The table with the one row of the agent."""

    def identity(self) -> str | None:
        """Return whose file this is."""

    def config(self) -> AgentConfig:
        """Return the settings that the file holds. Raises ``ConfigurationError`` for wrong ones."""

    def set_config(self, settings: AgentConfig) -> None:
        """Write the settings that were set."""

    def merge_config(self, settings: Mapping[str, Any]) -> None:
        """Write some settings, which must be valid; the others stay."""

    def count_queries(self, *, queries: int, total_ms: float, now: datetime) -> None:
        """Add searches and their time to the counters, and note that the agent was active."""

    def queries(self) -> int:
        """Return how many searches are counted."""

    def count_promotions(self, promotions: int) -> None:
        """Add to the number of memories that came into the scratchpad by use or by hand."""

    def count_embeddings(self, embeddings: int) -> None:
        """Add to the number of vectors that were made."""

    def set_backend(
        self, backend: Literal["file", "vector"], *, migration: MigrationInfo, now: datetime
    ) -> None:
        """Write down how memories are searched from now on, and how it came to that."""

    def migration(self) -> MigrationInfo:
        """Return how the last move went, as far as there was one."""

    def was_rolled_back(self) -> bool:
        """Return whether search is by keyword because somebody went back to it."""

    def metadata(self, *, memory_count: int) -> AgentMetadata:
        """Return the agent's metadata with the figures as they stand."""

    def row(self) -> dict[str, Any]:
        """Return what the file says of the agent, by column, JSON read."""

    def set_row(self, values: Mapping[str, Any]) -> None:
        """Write what a file said of the agent, by column, as far as it told."""


class ScratchpadTable(Protocol):
    """The table of the memories in the scratchpad."""

    def enter(self, row_ids: Sequence[int], reason: Reason, *, now: datetime) -> None:
        """Put memories in. One that is there stays as it is, unless it is promoted by hand now."""

    def evict(self, *, max_size: int, keep: Sequence[int] = ()) -> list[str]:
        """Take out the least recently used beyond ``max_size`` and return their ids."""

    def leave(self, row_id: int) -> bool:
        """Take one memory out, and return whether it was in."""

    def contains(self, row_id: int) -> bool:
        """Return whether a memory is in."""

    def members(self) -> list[int]:
        """Return the rows that are in, most recently used first, then most often (B)."""

    def reasons(self) -> dict[int, Reason]:
        """Return why each row is in."""

    def promotable(self, row_ids: Sequence[int], *, threshold: int) -> list[int]:
        """Return those of the rows that are not in and were accessed often enough to be."""

    def size(self) -> int:
        """Count the entries, without those of archived memories."""

    def count_promoted(self) -> int:
        """Count the entries that were promoted by hand, without those of archived memories."""

    def put(self, row_id: int, *, reason: str, entered_at: str) -> None:
        """Put a memory in as it was in before; one that is there stays as it is."""

    def entries(self) -> list[tuple[str, str, str]]:
        """Return the id, when it came in and why of each entry, in the order of coming in."""


class RecallTable(Protocol):
    """The table of when each memory was last given out."""

    def row_ids_of(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """Return the row ids of memories, by id."""

    def record(self, recalled: Mapping[int, str], now: datetime) -> None:
        """Write down when rows were given out, and forget what was long ago."""

    def is_any_recent(self, now: datetime) -> bool:
        """Return whether anything was given out of late."""


class RejectionTable(Protocol):
    """The table of rejected values, as hashes."""

    def add(self, words_hash: bytes, word_count: int, reason: str | None, now: datetime) -> bool:
        """Reject a value, and return whether it was not rejected yet."""

    def put(self, values: Mapping[str, Any]) -> None:
        """Take over a rejection that a file tells of; one of the same value stays as it is."""

    def remove(self, words_hash: bytes) -> bool:
        """Lift the rejection of a value, and return whether there was one."""

    def remove_by_id(self, rejection_id: int) -> bool:
        """Lift a rejection, and return whether there was one."""

    def find(self, words_hash: bytes) -> Rejection | None:
        """Return the rejection of a value, or ``None``."""

    def all(self) -> list[Rejection]:
        """Return all rejections, oldest first."""

    def hashes_by_length(self) -> Mapping[int, AbstractSet[bytes]]:
        """Return the hashes of the rejected values by how many words those have."""


class ReviewTable(Protocol):
    """The table of memories that are in question."""

    def add(
        self,
        row_id: int,
        *,
        replaced_by: str | None,
        confidence: float | None,
        reasoning: str | None,
        session_id: str,
        now: datetime,
    ) -> int:
        """Put a memory in question, if it is not, and return the number of the review."""

    def put(self, row_id: int, values: Mapping[str, Any]) -> None:
        """Take over a review that a file tells of."""

    def all(self) -> list[Review]:
        """Return all reviews, oldest first."""

    def get(self, review_id: int) -> Review | None:
        """Return a review, or ``None``."""

    def is_stale(self, review_id: int) -> bool:
        """Return whether the memory was changed since it was put in question."""

    def forget_reasoning(self) -> None:
        """Leave out why the memories are in question."""

    def drop(self, review_id: int) -> None:
        """Take a review away, as it is decided."""


class FingerprintTable(Protocol):
    """The table of fingerprints, by which near duplicates are found."""

    def put(self, fingerprints: Iterable[tuple[int, int]]) -> None:
        """Write fingerprints down, each with the row of its memory."""

    def present(self, fingerprints: Sequence[int]) -> set[int]:
        """Return those of some fingerprints that any memory has."""

    def is_complete(self) -> bool:
        """Return whether every memory has its fingerprint."""

    def complete_page(self) -> list[int]:
        """Make the fingerprints of a page of memories that another program wrote or changed."""

    def is_left(self, completed: Sequence[int]) -> bool:
        """Return whether a page that was just completed is not: the file is damaged then."""

    def same(self, fingerprint: int, *, limit: int) -> list[DuplicateCandidate]:
        """Return the memories that have a fingerprint and are not archived, oldest first."""

    def of_rows(self, row_ids: Sequence[int]) -> dict[int, int]:
        """Return the fingerprint of each of these rows, made now for one that has none yet."""

    def of_unarchived(self, row_ids: Sequence[int]) -> list[DuplicateCandidate]:
        """Return the memories of these rows that are not archived, oldest first."""

    def same_without(self, fingerprint: int) -> Iterator[int]:
        """Yield the rows that would have this fingerprint, of those that have none yet."""

    def repeated(self) -> list[tuple[int, int]]:
        """Return the fingerprints that several memories have, and how many, oldest memory first."""


class UsageQueries(Protocol):
    """How much each memory is used, and how much there is of each kind."""

    def uses(self, kinds: Collection[MemoryKind], *, recent_since: datetime) -> list[Usage]:
        """Return how each unarchived memory of these kinds is used, least recently first."""

    def texts(self, row_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return the id and content of each row; of a damaged content, what can be read."""

    def amounts(self, kinds: Collection[MemoryKind]) -> defaultdict[str, Amount]:
        """Count the memories of each of these kinds that are not archived."""

    def archived_amounts(self, memory_ids: Sequence[str]) -> dict[MemoryKind, tuple[int, int]]:
        """Return, by kind, how many of these are archived, and the bytes of their contents."""

    def least_used(self, kind: MemoryKind, *, limit: int) -> list[str]:
        """Return the ids of the least recently used of a kind that may be archived."""


class ErasureQueries(Protocol):
    """What erasing for good removes from the tables, and what may be left."""

    def known_ids(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that are of memories, archived ones too, or have a history."""

    def texts_of(self, memory_ids: Sequence[str]) -> ErasedText:
        """Return what these memories say and ever said."""

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        """Remove every row of these memories but those of the vector indexes."""

    def unused_words(self, words: Iterable[str]) -> list[str]:
        """Return those of the words that stand in no memory, as the keyword index holds them."""

    def remaining_texts(self) -> Iterator[RemainingText]:
        """Yield all texts that the tables hold, read by the page."""

    def remaining_vectors(self) -> Iterator[bytes]:
        """Yield all vectors that the tables hold, with the hashes of their texts."""

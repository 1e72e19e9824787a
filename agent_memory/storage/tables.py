"""Protocols of the tables: what a transaction offers, implemented by each engine.

A transaction is open when a method is called; ``Engine.read`` and ``Engine.write`` begin one. A row
is identified by its row id, a number that never changes; a memory also by its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent_memory.models.agent import AgentConfig, AgentMetadata, MigrationInfo
from agent_memory.models.decision import Review
from agent_memory.models.enums import MemoryOrder
from agent_memory.models.excerpt import MemoryExcerpt
from agent_memory.models.memory import HistoryEntry, Memory
from agent_memory.models.safety import Rejection
from agent_memory.storage.change_records import Change, Tombstone
from agent_memory.storage.filters import Filter
from agent_memory.storage.fingerprints import DuplicateCandidate
from agent_memory.storage.records import Operation, Reason, RowValues, Signals
from agent_memory.text.dates import Span

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner


class MemoryTable(Protocol):
    """The table of memories: rows in, models out."""

    def insert(self, memory: Memory) -> int:
        """Add a memory and return its row id. Raises ``ValidationError`` if its id exists."""

    def exists(self, memory_id: str) -> bool:
        """Return whether a memory with this id exists, archived or not."""

    def row_id_of(self, memory_id: str) -> int | None:
        """Return the row id of a memory, or ``None``."""

    def ids_of(self, row_ids: Sequence[int]) -> list[str]:
        """Return the ids of these rows, in the order of the rows."""

    def get(self, memory_id: str) -> Memory | None:
        """Return a memory, or ``None``."""

    def get_many(self, row_ids: Iterable[int]) -> dict[int, Memory]:
        """Return the memories of these rows, by row id."""

    def excerpts(self, row_ids: Iterable[int]) -> dict[int, MemoryExcerpt]:
        """Return the excerpts of the memories of these rows, by row id."""

    def recent_excerpts(self, filters: Filter, *, limit: int) -> list[MemoryExcerpt]:
        """Return the excerpts of the newest memories that pass the filters."""

    def readable(self, *, after: int, until: int) -> list[Memory]:
        """Return a damaged file's readable memories, row ids above ``after`` to ``until``."""

    def recent(
        self,
        filters: Filter,
        *,
        limit: int,
        offset: int,
        after: str | None = None,
        order: MemoryOrder = MemoryOrder.NEWEST,
    ) -> list[Memory]:
        """Return the first memories that pass the filters, in the given order.

        With ``after``, the list starts behind the memory with this id, which itself need not pass.
        """

    def beginnings(self, filters: Filter, *, characters: int, limit: int) -> list[str]:
        """Return the first characters of the newest memories that pass the filters."""

    def ids(self, filters: Filter) -> list[str]:
        """Return the ids of the memories that pass the filters, oldest first."""

    def count(self, filters: Filter) -> int:
        """Count the memories that pass the filters."""

    def row_ids(
        self, filters: Filter, *, among: Sequence[int] | None = None, limit: int = -1
    ) -> list[int]:
        """Return the rows, all or those ``among``, that pass the filters, in any order."""

    def share_passing(self, filters: Filter) -> float:
        """Return the approximate share of the memories that pass a filter, from 0 to 1."""

    def is_empty(self) -> bool:
        """Return whether there are no memories at all, archived ones included."""

    def has_others(self, owner: Owner) -> bool:
        """Return whether there are memories that do not belong to this owner."""

    def last_row_id(self) -> int:
        """Return the highest row id, or 0 if there is no memory."""

    def last_row_id_of_damaged(self) -> int:
        """Return the highest row id ever assigned, even if the table may be unreadable."""

    def update(self, row_id: int, changes: Mapping[str, Any], *, now: datetime) -> None:
        """Set some fields of a memory; its version goes up by one.

        Unless the text is among them, the memory's reviews stay about it as it is.
        """

    def count_accesses(self, accesses: Mapping[int, tuple[int, str]]) -> None:
        """Add to the access counts: by row id, the number of accesses and the time of the last."""

    def ranking_signals(self, row_ids: Sequence[int], filters: Filter) -> list[Signals]:
        """Return what ranking needs of these rows, omitting those that do not pass."""

    def between(self, filters: Filter, spans: Iterable[Span], *, limit: int) -> list[int]:
        """Return, for each span of days, the newest ``limit`` rows that pass the filters."""

    def neighbours(
        self, row_ids: Sequence[int], owner: Owner | None = None
    ) -> dict[int, dict[int, int]]:
        """Return the two rows before and the two after each in its session, by distance."""


class MemoryRowTable(Protocol):
    """Stored rows of the table of memories, by column."""

    def get(self, memory_id: str) -> RowValues | None:
        """Return the row of a memory, or ``None``."""

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, RowValues]:
        """Return the rows of several memories, by id."""

    def iterate(self, *, page: int = 1000) -> Iterator[RowValues]:
        """Yield all rows in the order in which they were stored, reading one page at a time."""

    def insert(self, values: Mapping[str, Any]) -> int:
        """Add a row with the given columns, and return its row id."""

    def insert_many(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Add up to 1,000 rows, each with its id, in order; return the row ids by id.

        Missing columns get the defaults of a new memory.
        """

    def update(self, memory_id: str, values: Mapping[str, Any], *, updated_at: str) -> None:
        """Change columns of a row; its version goes up by one.

        Unless the text is among them, the memory's reviews stay about it as it is.
        """

    def set_values(self, memory_id: str, row: Mapping[str, Any]) -> None:
        """Set all columns of a row, including version and times; all must be given."""

    def delete(self, memory_id: str) -> None:
        """Delete a row; see ``delete_many``."""

    def delete_many(self, memory_ids: Sequence[str]) -> None:
        """Delete several rows; their history stays.

        The history keeps their open reviews, and those of other memories that they were to replace:
        in ``reviews`` of the old values, as JSON in the form of exports.
        """

    def is_free(self, row_id: int) -> bool:
        """Return whether no memory has this row id."""

    def archive(self, memory_ids: Sequence[str], *, archived: bool, now: datetime) -> int:
        """Archive or unarchive memories; return how many of them changed.

        Their reviews stay about them as they are.
        """

    def last_use(self) -> str | None:
        """Return when a memory was last changed or accessed, in stored form."""

    def texts_with(self, word: str) -> Iterator[list[str]]:
        """Yield id, content, tags, metadata and task metadata of the rows that may hold a word."""


class HistoryTable(Protocol):
    """The table of every change of a memory."""

    def last_change(self) -> int:
        """Return the change id of the newest change, or 0 if there is none."""

    def last_change_of(self, user_id: str, run_id: str | None) -> int:
        """Return the newest change of the memories of a user, or of one of their runs, or 0."""

    def sign(self, memory_id: str, *, since: int, session_id: str, now: datetime) -> None:
        """Record the session and time of a memory's changes after the change id ``since``."""

    def sign_all(self, *, since: int, session_id: str, now: datetime) -> None:
        """Record the session and time of all changes after the change id ``since``."""

    def sign_between(self, after: int, until: int, *, session_id: str, now: datetime) -> None:
        """Record the session and time of the changes above change id ``after``, up to ``until``."""

    def iterate(self, *, page: int = 1000) -> Iterator[Change]:
        """Yield all changes, oldest first, reading one page at a time."""

    def texts(self, *, page: int = 1000) -> Iterator[list[str]]:
        """Yield memory id, old and new values of every change, as text, whatever they contain."""

    def between(self, first: int, last: int) -> list[Change]:
        """Return the changes from one change id to another, oldest first."""

    def of_memory(self, memory_id: str) -> list[Change]:
        """Return all changes of a memory, oldest first."""

    def changed_after(self, moment: datetime) -> list[str]:
        """Return the ids of the memories changed after a moment."""

    def born_after(self, moment: datetime) -> list[str]:
        """Return the ids of the memories whose history begins after a moment."""

    def insert(self, changes: Iterable[Change]) -> None:
        """Insert changes made in another file, in order."""

    def replace(self, change: Change) -> None:
        """Replace the change that has the change id of this one."""

    def forget_reviews(self) -> None:
        """Delete the reviews that are kept with deletions."""

    def ids_with_history(self, memory_ids: Sequence[str]) -> set[str]:
        """Return the subset of the ids that have a history."""

    def forget(self, memory_ids: Sequence[str], *, after: int, until: int) -> None:
        """Delete the changes of some memories above change id ``after``, up to ``until``."""

    def forget_after(self, moment: datetime, newest: int) -> None:
        """Delete changes above ``newest``, and those after a moment that none up to it follows."""

    def entries(
        self, memory_id: str | None, *, limit: int, before: int | None = None
    ) -> list[HistoryEntry]:
        """Return the changes of a memory, or of all, newest first; or those ``before`` one."""

    def entries_of(
        self, user_id: str, run_id: str | None, *, limit: int, before: int | None = None
    ) -> list[HistoryEntry]:
        """Return the changes of the memories of a user, or of one of their runs, newest first.

        That are the memories that are theirs now, or were when they were deleted; what was done to
        them before they were is included.
        """


class OperationTable(Protocol):
    """The table of operations: groups of changes made by one verb, and what cannot be undone."""

    def last_number(self) -> int:
        """Return the highest change id ever assigned, deleted changes included."""

    def record(self, verb: str, *, since: int, session_id: str, now: datetime) -> None:
        """Record the changes after change id ``since`` as one operation, if there are any."""

    def record_irreversible(self, verb: str, *, session_id: str, now: datetime) -> None:
        """Record an operation that ``undo`` cannot take back."""

    def around(self, change_id: int) -> Operation | None:
        """Return the newest operation that a change belongs to, or ``None``."""

    def last(self) -> Operation | None:
        """Return the last operation, or ``None``."""


class AgentTable(Protocol):
    """The table with the agent's single row."""

    def identity(self) -> str | None:
        """Return the id of the agent whose file this is, or ``None``."""

    def config(self) -> AgentConfig:
        """Return the file's settings. Raises ``ConfigurationError`` if any is invalid."""

    def readable_config(self) -> AgentConfig:
        """Return the settings, with the default for each invalid one: for reading only.

        Writes go by ``config``: a setting that cannot be read may be the one that refuses secrets.
        """

    def settings(self) -> str:
        """Return the settings as stored, as JSON: ``{}`` if none was ever set."""

    def set_config(self, settings: AgentConfig) -> None:
        """Replace the file's settings with those that were set explicitly."""

    def merge_config(self, settings: Mapping[str, Any]) -> None:
        """Change some settings, which must be valid, and keep the others."""

    def count_queries(self, *, queries: int, total_ms: float, now: datetime) -> None:
        """Add searches and their time to the counters, and record that the agent was active."""

    def queries(self) -> int:
        """Return the number of searches counted."""

    def count_promotions(self, promotions: int) -> None:
        """Add to the number of memories that entered the scratchpad by use or by hand."""

    def count_embeddings(self, embeddings: int) -> None:
        """Add to the number of vectors computed."""

    def set_backend(
        self, backend: Literal["file", "vector"], *, migration: MigrationInfo, now: datetime
    ) -> None:
        """Set how memories are searched from now on, and record the migration that led to it."""

    def migration(self) -> MigrationInfo:
        """Return the record of the last vector migration, empty if there was none."""

    def was_rolled_back(self) -> bool:
        """Return whether search is by keyword because a migration was rolled back."""

    def metadata(self, *, memory_count: int) -> AgentMetadata:
        """Return the agent's metadata with current figures."""

    def row(self) -> dict[str, Any]:
        """Return the agent's row by column, with JSON parsed and NULLs left out."""

    def set_row(self, values: Mapping[str, Any]) -> None:
        """Set the given columns of the agent's row."""


class ScratchpadTable(Protocol):
    """The table of the memories in the scratchpad."""

    def enter(self, row_ids: Sequence[int], reason: Reason, *, now: datetime) -> None:
        """Insert memories. An existing entry is kept unless it is now promoted by hand."""

    def by_user(self, row_ids: Sequence[int]) -> dict[str | None, list[int]]:
        """Group some rows of memories by user, in their order."""

    def evict(self, *, max_size: int, keep: Sequence[int] | None = None) -> list[str]:
        """Evict each user's least recently used entries beyond ``max_size``, and return their ids.

        ``keep`` are rows that just entered and stay; then only their users' entries are evicted.
        """

    def leave(self, row_id: int) -> bool:
        """Remove one memory, and return whether it was in the scratchpad."""

    def members(self, *, user_id: str | None = None) -> list[int]:
        """Return the row ids of all entries, most recently used first, then most often (B).

        With ``user_id``, only those of one user.
        """

    def reasons(self, row_ids: Sequence[int]) -> dict[int, Reason]:
        """Return the reasons of those rows that are in the scratchpad, by row id."""

    def promotable(self, row_ids: Sequence[int], *, threshold: int) -> list[int]:
        """Return the rows not in the scratchpad that were accessed at least ``threshold`` times."""

    def size(self) -> int:
        """Count the entries, not counting those of archived memories."""

    def count_promoted(self, user_id: str | None) -> int:
        """Count a user's entries promoted by hand, not counting those of archived memories.

        ``None`` means the memories about nobody in particular.
        """

    def put(self, row_id: int, *, reason: str, entered_at: str) -> None:
        """Insert an entry with its former reason and time; an existing entry is kept."""

    def entries(self) -> list[tuple[str, str, str]]:
        """Return the memory id, time and reason of each entry, oldest entry first."""


class RecallTable(Protocol):
    """The table of when each memory was last returned to the agent."""

    def row_ids_of(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """Return the row ids of memories, by memory id."""

    def record(self, recalled: Mapping[int, str], now: datetime) -> None:
        """Record when rows were returned to the agent, and delete entries outside the window."""

    def is_any_recent(self, now: datetime) -> bool:
        """Return whether any memory was returned within the recall window."""


class RejectionTable(Protocol):
    """The table of rejected values, as hashes."""

    def add(self, words_hash: bytes, word_count: int, reason: str | None, now: datetime) -> bool:
        """Insert a rejection, and return whether it is new.

        An existing one keeps its time, and its reason if it has one.
        """

    def put(self, values: Mapping[str, Any]) -> None:
        """Insert an imported rejection; an existing one of the same value is kept."""

    def remove(self, words_hash: bytes) -> bool:
        """Delete the rejection of a value, and return whether there was one."""

    def remove_by_id(self, rejection_id: int) -> bool:
        """Delete a rejection by its id, and return whether there was one."""

    def find(self, words_hash: bytes) -> Rejection | None:
        """Return the rejection of a value, or ``None``."""

    def all(self) -> list[Rejection]:
        """Return all rejections, oldest first."""

    def hashes_by_length(self) -> Mapping[int, AbstractSet[bytes]]:
        """Return the hashes of the rejected values, by number of words."""


class TombstoneTable(Protocol):
    """The table of erased things, as keyed hashes."""

    def keys(self) -> list[bytes]:
        """Return the keys that the hashes are made with; none if nothing was erased."""

    def erased_at(self, key: bytes, digest: bytes) -> str | None:
        """Return when the thing with this hash was erased, in stored form, or ``None``."""

    def all(self) -> list[Tombstone]:
        """Return all tombstones, oldest first, in an order that says nothing of the memories."""

    def put(self, tombstone: Tombstone) -> bool:
        """Insert a tombstone, and return whether it is new."""

    def remove(self, key: bytes, digest: bytes) -> bool:
        """Delete a tombstone, and return whether there was one."""

    def latest(self) -> str | None:
        """Return when something was last erased, in stored form."""


class ReviewTable(Protocol):
    """The table of memories under review."""

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
        """Insert a review of a memory, unless the same one is open already; return its id."""

    def put(self, row_id: int, values: Mapping[str, Any]) -> None:
        """Insert an imported review."""

    def all(self) -> list[Review]:
        """Return all reviews that are not dismissed, oldest first."""

    def get(self, review_id: int) -> Review | None:
        """Return a review that is not dismissed, or ``None``."""

    def of_memory(self, memory_id: str) -> list[Review]:
        """Return the open reviews of a memory as it is now, oldest first."""

    def because_of(self, memory_id: str) -> list[tuple[Review, str | None]]:
        """Return the reviews of memories, as they are now, that this one is to replace.

        With each, oldest first, comes when it was closed, in stored form, if it is.
        """

    def newer_and_closed(self, memory_id: str) -> list[tuple[str, str | None]]:
        """Return by what a memory's reviews, oldest first, replace it; when closed, if they are."""

    def closed(self, review_id: int) -> tuple[str, str] | None:
        """Return the memory of a closed review, and when it was closed; ``None`` if it is open."""

    def last_decided(self, owner: Owner, *, since: int) -> Operation | None:
        """Return the owner's last operation that only added or dismissed reviews, unless undone.

        With ``since``, only if it was no earlier than this change.
        """

    def take_back(self, operation: Operation, owner: Owner | None) -> list[str]:
        """Undo what an operation did to reviews of an owner's memories, or of all; return those."""

    def newer_of(self, row_ids: Sequence[int]) -> dict[int, int]:
        """Return, for each of the rows under review, the newest row that is to replace it."""

    def replaced_by(self, memory_id: str) -> list[tuple[str, int]]:
        """Return what approved reviews deleted or shortened for a memory: ids, and the changes."""

    def forget_reasoning(self) -> None:
        """Clear the reasoning of all reviews."""

    def dismiss(self, review_id: int, *, now: datetime) -> None:
        """Mark a review as dismissed: it is no longer open."""

    def ask_again(self, review_id: int) -> bool:
        """Reopen a dismissed review, and return whether it was dismissed."""

    def reopen(self, memory_id: str, closed_at: str) -> int:
        """Reopen the reviews of a memory that were closed at a time, in stored form; count them."""

    def renew(self, memory_id: str) -> None:
        """Let the reviews of a memory, as it was before its last change, be about it as it is."""


class FingerprintTable(Protocol):
    """The table of fingerprints: hashes used to find near duplicates."""

    def put(self, fingerprints: Iterable[tuple[int, int]]) -> None:
        """Set fingerprints, given as pairs of a fingerprint and its memory's row id."""

    def present(self, fingerprints: Sequence[int]) -> set[int]:
        """Return the subset of the fingerprints that any memory has."""

    def is_complete(self) -> bool:
        """Return whether every memory has its fingerprint."""

    def complete_page(self) -> list[int]:
        """Compute the fingerprints of a page of memories that lack one; return their row ids."""

    def is_left(self, completed: Sequence[int]) -> bool:
        """Return whether a page just completed still lacks some: then the file is damaged."""

    def same(self, fingerprint: int, *, limit: int) -> list[DuplicateCandidate]:
        """Return the unarchived memories that have a fingerprint, oldest first."""

    def of_rows(self, row_ids: Sequence[int]) -> dict[int, int]:
        """Return the fingerprint of each of these rows, computing it if it is missing."""

    def of_unarchived(self, row_ids: Sequence[int]) -> list[DuplicateCandidate]:
        """Return the unarchived memories among these rows, oldest first."""

    def same_without(self, fingerprint: int) -> Iterator[int]:
        """Yield the rows that have no fingerprint yet but whose text would have this one."""

    def repeated(self) -> list[tuple[int, int]]:
        """Return the fingerprints shared by several memories, with counts, oldest memory first."""

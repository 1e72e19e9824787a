"""What a transaction offers for statistics, for retention, and for erasing memories permanently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from agent_memory.models.enums import MemoryKind
from agent_memory.storage.change_records import (
    Amount,
    ErasedText,
    RemainingText,
    RemovedRows,
    Statement,
    Usage,
)

StatisticsField = Literal["category", "source", "session"]
"""What memories are counted by; the source is the one in ``metadata``."""


class DayOfChanges(NamedTuple):
    """The number of changes of one kind on a day, and how many bytes contents grew by."""

    day: str
    event: str
    changes: int
    grown_bytes: int


class Totals(NamedTuple):
    """The numbers of unarchived and archived memories, and the bytes of their contents.

    ``file_bytes`` is the size of the file, or in a database that of the agent's rows.
    """

    memories: int
    archived: int
    content_bytes: int
    file_bytes: int


class StatisticsQueries(Protocol):
    """Queries for statistics. Days are ISO 8601 in UTC; times are in stored form."""

    def stored_by_day(
        self, field: StatisticsField, *, since: str
    ) -> list[tuple[str | None, str, int]]:
        """Return how many memories of each value are dated on each day, including archived ones."""

    def changes_by_day(self, *, since: str) -> list[DayOfChanges]:
        """Return how many changes of each kind are in the history, by day."""

    def totals(self) -> Totals:
        """Count the memories, the bytes of their contents, and those of the file."""

    def never_recalled(self, *, written_until: str, limit: int) -> tuple[int, list[str]]:
        """Count the unarchived memories that no search returned; return the ids of the oldest."""

    def most_recalled(self, *, limit: int) -> list[tuple[str, int]]:
        """Return the ids and access counts of the most accessed unarchived memories."""

    def written(self, memory_ids: Collection[str]) -> dict[str, str]:
        """Return when the unarchived ones of these memories were last written, by id."""


class UsageQueries(Protocol):
    """Queries on how each memory is used, and on the number and size of each kind."""

    def uses(self, kinds: Collection[MemoryKind], *, recent_since: datetime) -> list[Usage]:
        """Return how each unarchived memory of these kinds is used, least recently used first.

        A memory was last used when it was last accessed, stored or changed, whichever is latest.
        Among memories used at the same time, the less often used comes first, then the older.
        Memories of high importance, promoted by hand, or used after ``recent_since`` are marked as
        kept.
        """

    def texts(self, row_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return the id and content of each row; of damaged content, the readable part."""

    def amounts(self, kinds: Collection[MemoryKind]) -> defaultdict[str, Amount]:
        """Count the unarchived memories of each of these kinds."""

    def archived_amounts(self, memory_ids: Sequence[str]) -> dict[MemoryKind, tuple[int, int]]:
        """Return, by kind, how many of these are archived, and the bytes of their contents."""

    def least_used(self, kind: MemoryKind, *, limit: int) -> list[str]:
        """Return the ids of the least recently used memories of a kind that may be archived.

        Those are neither archived, nor of high importance, nor promoted by hand.
        """


class ErasureQueries(Protocol):
    """Queries that erase memories permanently, and find what is left of them."""

    def known_ids(self, memory_ids: Sequence[str]) -> set[str]:
        """Return the ids that belong to a memory, archived or not, or have a history."""

    def texts_of(self, memory_ids: Sequence[str]) -> ErasedText:
        """Return all texts and vectors of these memories, including those in their history."""

    def statements(self, memory_ids: Sequence[str] | None = None) -> Iterator[Statement]:
        """Yield what each memory says, and what each says and said in its history.

        With ``memory_ids``, only those memories.
        """

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        """Delete every row of these memories except those of the vector indexes."""

    def unused_words(self, words: Iterable[str]) -> list[str]:
        """Return the words that no memory contains, as the keyword index holds them."""

    def remaining_texts(self) -> Iterator[RemainingText]:
        """Yield all texts in the tables, reading one page at a time."""

    def places_beyond(self) -> list[str]:
        """Return where the store's operator may still have what was removed, for a receipt."""

    def remaining_vectors(self) -> Iterator[bytes]:
        """Yield all vectors in the tables, and the hashes of their texts."""

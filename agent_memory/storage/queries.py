"""What a transaction offers for statistics and for erasing memories for good."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from agent_memory.storage.change_records import ErasedText, RemainingText, RemovedRows, Statement

StatisticsField = Literal["category", "source", "session"]
"""What memories are counted by; the source is that of ``metadata``."""


class DayOfChanges(NamedTuple):
    """How many changes of one kind there were on a day, and by how many bytes contents grew."""

    day: str
    event: str
    changes: int
    grown_bytes: int


class Totals(NamedTuple):
    """How many memories there are, archived or not, the bytes of their contents and of all rows.

    ``file_bytes`` is the size of the file where there is one.
    """

    memories: int
    archived: int
    content_bytes: int
    file_bytes: int


class StatisticsQueries(Protocol):
    """Queries for statistics. Days are ISO 8601, in UTC, and times as they are stored."""

    def stored_by_day(
        self, field: StatisticsField, *, since: str
    ) -> list[tuple[str | None, str, int]]:
        """Return how many memories of each value are dated on each day, archived ones too."""

    def changes_by_day(self, *, since: str) -> list[DayOfChanges]:
        """Return how many changes of each kind the history has, by day."""

    def totals(self) -> Totals:
        """Count the memories, the bytes of their contents, and those of the file."""

    def never_recalled(self, *, written_until: str, limit: int) -> tuple[int, list[str]]:
        """Count the unarchived memories that no search returned; return the oldest ones' ids."""

    def most_recalled(self, *, limit: int) -> list[tuple[str, int]]:
        """Return ids and access counts of the most accessed memories that are not archived."""

    def written(self, memory_ids: Collection[str]) -> dict[str, str]:
        """Return when those of the memories that are not archived were last written, by id."""


class ErasureQueries(Protocol):
    """Queries that erase memories for good, and read what is left of them."""

    def known_ids(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that are of memories, archived ones too, or have a history."""

    def texts_of(self, memory_ids: Sequence[str]) -> ErasedText:
        """Return all texts and vectors of these memories, their history's too."""

    def statements(self, memory_ids: Sequence[str] | None = None) -> Iterator[Statement]:
        """Yield what each memory says, and what each says and said in its history.

        Only those of some ids, if they are given.
        """

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        """Delete every row of these memories but those of the vector indexes."""

    def unused_words(self, words: Iterable[str]) -> list[str]:
        """Return those of the words that stand in no memory, as the keyword index holds them."""

    def remaining_texts(self) -> Iterator[RemainingText]:
        """Yield all texts that the tables hold, read by the page."""

    def places_beyond(self) -> list[str]:
        """Return where the store's operator may still have what was removed, for a receipt."""

    def remaining_vectors(self) -> Iterator[bytes]:
        """Yield all vectors that the tables hold, with the hashes of their texts."""

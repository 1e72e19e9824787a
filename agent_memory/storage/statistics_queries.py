"""What a transaction offers for statistics, and what these queries give."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple, Protocol

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

"""What the tables common to SQLite and PostgreSQL require of the database of either."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from agent_memory.storage.records import Row, Values

Value = TypeVar("Value")


class SQLDatabase(Protocol):
    """What the common tables require of the database of either engine."""

    AMONG: str
    """The SQL of "is one of these", following a column. ``listed`` makes its value."""
    GREATEST: str
    LEAST: str
    """The functions that return the greatest and the least of their values, none of them NULL."""
    LIST: str
    LIST_ITEMS: str
    """The functions that aggregate values to a JSON list, and return its items as ``value``."""
    PADDED: str
    """The SQL of a number with leading zeros; the number's name is formatted into it."""
    AS_BYTES: str
    """The SQL of the bytes of a text; the text's name is formatted into it."""
    SOURCE_NUMBER: str
    """The column that numbers the rows of ``entity_sources`` and ``relationship_sources``."""
    ROW_KEY: str
    """The primary key of a table that has one row, or none, for each memory."""

    @property
    def location(self) -> str:
        """Where the memories are, for messages."""

    def listed(self, values: Iterable[Any]) -> object:
        """Return the values that ``AMONG`` stands for, as a single parameter."""

    def counting(self) -> AbstractContextManager[None]:
        """Run statements that only update counters, after which what is cached is still right."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Let an error in the body undo what the body did, so that the transaction can go on."""

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Compute a value once per snapshot of this thread's read, and return it."""

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute a statement and return the number of rows changed directly, without triggers."""

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of many lists of values."""

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows."""

    def row(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row, or ``None``."""

    def value(self, sql: str, values: Values = ()) -> Any:  # noqa: ANN401 - any column
        """Return the first column of the first row, or ``None``."""

"""What SQLite and PostgreSQL have alike: conditions, and the tables here, a module each.

A statement here marks its values as ``?``. What an engine says in its own way, and what it alone
needs, is added by a class of its own, in the module of that table in its folder.
"""

# Without postponed annotations, of which a NamedTuple would compile each: hooks import this.
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from agent_memory.storage.records import Row


class SQLDatabase(Protocol):
    """What the tables ask of the database of either engine."""

    AMONG: str
    """The SQL of "is one of these", behind a column. ``listed`` makes the value of it."""
    GREATEST: str
    LEAST: str
    """The functions that return the greatest and the least of their values, none of them NULL."""
    AS_BYTES: str
    """The SQL of the bytes of a text, whose name is put into it."""
    SOURCE_NUMBER: str
    """The column that numbers the rows of ``entity_sources`` and ``relationship_sources``."""

    @property
    def location(self) -> str:
        """Where the memories are, for messages."""

    def listed(self, values: Iterable[Any]) -> object:
        """Return the values that ``AMONG`` stands for, as one."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Let what the body did be undone by an error in it, and the transaction go on."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement and return how many rows it changed itself, without triggers."""

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of many value lists."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows."""

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row, or ``None``."""

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - any column
        """Return the first column of the first row, or ``None``."""


class Table:
    """A table or an index of one agent. It begins no transaction: its caller has one open."""

    def __init__(self, database: SQLDatabase) -> None:
        self._db = database


class Condition(NamedTuple):
    """What an engine makes of a filter: SQL on ``m``, and the values for its placeholders."""

    sql: str
    values: tuple[Any, ...] = ()


def joined(parts: list[Condition], word: str, *, empty: str) -> Condition:
    """Return the condition of several with a word between them, and of none the ``empty`` one."""
    if not parts:
        return Condition(empty)
    if len(parts) == 1:
        return parts[0]
    sql = "(" + word.join(part.sql for part in parts) + ")"
    return Condition(sql, tuple(value for part in parts for value in part.values))

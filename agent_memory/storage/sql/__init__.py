"""What SQLite and PostgreSQL have in common: conditions, and tables, one module each.

Statements here mark their values with ``?``, or ``:name`` if they have names. What an engine writes
differently, or alone needs, is added by a subclass in the module of that table in its folder.
"""

# No postponed annotations: a NamedTuple would compile each of them, and hooks import this.
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agent_memory.storage.sql.database import SQLDatabase


class Table:
    """A table or an index of one agent. It begins no transaction: its caller has one open."""

    def __init__(self, database: "SQLDatabase") -> None:
        self._db = database

    def _among(self, name: str) -> str:
        """Return the SQL of "is one of these", following a column, for a named value."""
        return self._db.AMONG.replace("?", f":{name}")

    def _bytes(self, *texts: str) -> str:
        """Return the SQL of some texts, separated by commas, that reads them as bytes."""
        return ", ".join(map(self._db.AS_BYTES.format, texts))


class Condition(NamedTuple):
    """A filter compiled by an engine: SQL on ``m``, and the values for its placeholders."""

    sql: str
    values: tuple[Any, ...] = ()


def joined(parts: list[Condition], word: str, *, empty: str) -> Condition:
    """Join conditions with a word, or return ``empty`` as the condition if there are none."""
    if not parts:
        return Condition(empty)
    if len(parts) == 1:
        return parts[0]
    sql = "(" + word.join(part.sql for part in parts) + ")"
    return Condition(sql, tuple(value for part in parts for value in part.values))

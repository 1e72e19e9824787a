"""What SQLite and PostgreSQL have alike: conditions, and the tables here, a module each.

A statement here marks its values as ``?``. What an engine says in its own way, and what it alone
needs, is added by a class of its own, in the module of that table in its folder.
"""

# Without postponed annotations, of which a NamedTuple would compile each: hooks import this.
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agent_memory.storage.sql.database import SQLDatabase


class Table:
    """A table or an index of one agent. It begins no transaction: its caller has one open."""

    def __init__(self, database: "SQLDatabase") -> None:
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

"""Conditions in SQL: what an engine makes of filters. Only the engines import this."""

# Without postponed annotations, of which a NamedTuple would compile each: hooks import this.
from typing import Any, NamedTuple


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

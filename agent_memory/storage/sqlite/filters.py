"""Filters compiled to SQL conditions on the table ``memories AS m``.

Every key and value is bound. SQL is assembled only from text in this module.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any, Final

from agent_memory.models.columns import ORIGINAL_CATEGORY
from agent_memory.models.fields import to_json
from agent_memory.storage.filters import (
    AccessedOften,
    All,
    AmongIds,
    AnyOf,
    Archived,
    Equals,
    Filter,
    HasTag,
    HasTaskStatus,
    InCategories,
    InMetadata,
    NoRepeatOf,
    Not,
    Since,
    Until,
)
from agent_memory.storage.sql import Condition, joined

_AMONG_TAGGED: Final = "m.seq IN (SELECT t.seq FROM memory_tags AS t WHERE"
_OF_USER: Final = "m.user_id = ?"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789 _.:/-")
_ESCAPED: Final = '"u00" *'
"""What the index makes of any of these if someone wrote it as a JSON escape: ``\\u006b`` for
"k"."""


def with_tags_looked_up(condition: Condition, row_id: str = "m.seq") -> Condition:
    """Return a condition that looks up each tag by row, whose number is in the column ``row_id``.

    Otherwise SQLite first lists all memories with the tag, and may go by that list.
    """
    looked_up = f"(SELECT count(*) FROM memory_tags AS t WHERE t.seq = {row_id} AND"
    return condition._replace(sql=condition.sql.replace(_AMONG_TAGGED, looked_up))


def with_users_listed(condition: Condition, row_id: str) -> Condition:
    """Return a condition that tests a row against the list of a user's rows before other tests.

    Its number must be in a column of a table that is scanned first.
    """
    listed = f"{row_id} IN (SELECT u.seq FROM memories AS u WHERE u.user_id = ?)"
    return condition._replace(sql=condition.sql.replace(_OF_USER, listed))


def tags_of(filters: Filter) -> list[str]:
    """Return the tags that a filter asks for."""
    if isinstance(filters, HasTag):
        return [filters.tag]
    if isinstance(filters, Not):
        return tags_of(filters.part)
    parts = filters.parts if isinstance(filters, All | AnyOf) else ()
    return [tag for part in parts for tag in tags_of(part)]


def match_of_tags(filters: Filter) -> str:
    """Return an FTS5 query for the tags that every memory passing a filter must have.

    It is empty if there are none, or if the index may hold a tag in another form: it indexes the
    JSON as someone wrote it, who may have escaped a character, or a letter outside ASCII.
    """
    if isinstance(filters, HasTag):
        is_plain = _PLAIN.issuperset(filters.tag) and any(map(str.isalnum, filters.tag))
        return f'{{tags}} : ("{filters.tag}" OR {_ESCAPED})' if is_plain else ""
    if isinstance(filters, All):
        return " AND ".join(match for part in filters.parts if (match := match_of_tags(part)))
    matches = [match_of_tags(part) for part in filters.parts] if isinstance(filters, AnyOf) else []
    return f"({' OR '.join(matches)})" if all(matches) and matches else ""


def users_of(filters: Filter) -> list[str]:
    """Return the users to whose memories a filter is restricted."""
    parts = filters.parts if isinstance(filters, All) else (filters,)
    equal = [part for part in parts if isinstance(part, Equals) and part.column == "user_id"]
    return [str(part.value) for part in equal]


@singledispatch
def compiled(filters: Filter) -> Condition:
    """Return the SQL condition of a filter."""
    raise TypeError(f"{type(filters).__name__} is not a filter that SQLite supports")


@compiled.register
def _(filters: All) -> Condition:
    condition = joined([compiled(part) for part in filters.parts], " AND ", empty="1")
    if any(isinstance(part, AmongIds) for part in filters.parts):
        # Otherwise SQLite scans all memories of a user for a few ids.
        condition = condition._replace(sql=condition.sql.replace("m.user_id", "+m.user_id"))
    return condition


@compiled.register
def _(filters: AnyOf) -> Condition:
    return joined([compiled(part) for part in filters.parts], " OR ", empty="0")


@compiled.register
def _(filters: Not) -> Condition:
    inner = compiled(filters.part)
    return Condition(f"NOT ({inner.sql})", inner.values)


@compiled.register
def _(filters: Equals) -> Condition:
    # The column name comes only from ``storage.filters``.
    return Condition(f"m.{filters.column} = ?", (filters.value,))


@compiled.register
def _(filters: AmongIds) -> Condition:
    return Condition("m.id IN (SELECT value FROM json_each(?))", (to_json(list(filters.ids)),))


@compiled.register
def _(filters: InCategories) -> Condition:
    parts = [_one_of("m.category", filters.names)]
    if filters.foreign:
        key = f"m.metadata ->> '{ORIGINAL_CATEGORY}'"
        sql = f"CASE WHEN json_valid(m.metadata) THEN {key} END"
        parts.append(_one_of(sql, filters.foreign))
    return joined(parts, " OR ", empty="0")


def _one_of(sql: str, names: Sequence[str]) -> Condition:
    """Compare ignoring case; SQLite does so only for ASCII, else Python is called for each row."""
    among = "IN (SELECT value FROM json_each(?))"
    if all(map(str.isascii, names)):
        return Condition(f"{sql} COLLATE NOCASE {among}", (to_json(list(names)),))
    if all(name.lower() == name.upper() for name in names):
        return Condition(f"{sql} {among}", (to_json(list(names)),))
    folded = to_json([name.casefold() for name in names])
    return Condition(f"casefold(CAST({sql} AS BLOB)) {among}", (folded,))


@compiled.register
def _(filters: HasTag) -> Condition:
    # SQLite does not lower capitals outside ASCII that another program wrote.
    tag = filters.tag
    same, value = (
        ("t.tag = ?", tag)
        if tag.isascii()
        else ("casefold(CAST(t.tag AS BLOB)) = ?", tag.casefold())
    )
    return Condition(f"{_AMONG_TAGGED} {same})", (value,))


@compiled.register
def _(filters: Archived) -> Condition:
    # "<> 0" because it has an index: SQLite does not infer that 1 is not 0.
    return Condition("m.archived <> 0" if filters.archived else "m.archived = 0")


@compiled.register
def _(filters: Since) -> Condition:
    return Condition("m.timestamp >= ?", (filters.moment,))


@compiled.register
def _(filters: Until) -> Condition:
    return Condition("m.timestamp <= ?", (filters.moment,))


@compiled.register
def _(filters: HasTaskStatus) -> Condition:
    sql = "CASE WHEN json_valid(m.task_metadata) THEN m.task_metadata ->> 'status' END = ?"
    return Condition(sql, (filters.status.value,))


@compiled.register
def _(filters: AccessedOften) -> Condition:
    return Condition("m.access_count >= ?", (filters.least,))


@compiled.register
def _(filters: NoRepeatOf) -> Condition:
    row_ids = [row_id for row_id, _ in filters.fingerprints]
    fingerprints = [fingerprint for _, fingerprint in filters.fingerprints]
    return Condition(
        "m.seq NOT IN (SELECT seq FROM fingerprints"
        " WHERE fingerprint IN (SELECT value FROM json_each(?))"
        " AND seq NOT IN (SELECT value FROM json_each(?)))",
        (to_json(fingerprints), to_json(row_ids)),
    )


@compiled.register
def _(filters: InMetadata) -> Condition:
    test = _OPERATORS[filters.operator](filters.operand)
    return joined([_at(path, test) for path in filters.paths], " OR ", empty="0")


def _at(path: list[str], test: Condition) -> Condition:
    """Return the condition that ``test`` holds for the value at a path in the metadata."""
    # A value that is not an object (or metadata that is not JSON) counts as an empty object:
    # otherwise json_each would fail the whole search because of one row.
    sources = ["json_each(CASE WHEN json_valid(m.metadata) THEN m.metadata ELSE '{}' END) AS j0"]
    sources += [
        f"json_each(CASE j{n}.type WHEN 'object' THEN j{n}.value ELSE '{{}}' END) AS j{n + 1}"
        for n in range(len(path) - 1)
    ]
    keys = " AND ".join(f"j{n}.key = ?" for n in range(len(path)))
    sql = test.sql.replace("@", f"j{len(path) - 1}")
    return Condition(
        f"EXISTS (SELECT 1 FROM {', '.join(sources)} WHERE {keys} AND {sql})",
        (*path, *test.values),
    )


# Conditions on a value, written "@" until its position is known. JSON's types are kept apart: true
# is not 1, and a list is not null.

_TYPES: Final[dict[type, str]] = {
    bool: "('true', 'false')",
    int: "('integer', 'real')",
    float: "('integer', 'real')",
    str: "('text')",
    type(None): "('null')",
}


def _equal(value: object) -> Condition:
    if type(value) not in _TYPES:
        same = "sorted_json(CAST(@.value AS BLOB)) = sorted_json(?)"
        sql = f"@.type IN ('array', 'object') AND {same}"
        return Condition(sql, (to_json(value),))
    return Condition(f"@.type IN {_TYPES[type(value)]} AND @.atom IS ?", (value,))


def _compared(sign: str) -> Callable[[object], Condition]:
    def compare(value: object) -> Condition:
        # SQLite sorts every text after every number: only values of one type are compared.
        return Condition(f"@.type IN {_TYPES[type(value)]} AND @.atom {sign} ?", (value,))

    return compare


def _in_list(values: object) -> Condition:
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(?) AS wanted WHERE wanted.atom IS @.atom"
        " AND replace(wanted.type, 'real', 'integer') = replace(@.type, 'real', 'integer'))",
        (to_json(values),),
    )


def _contains(value: object) -> Condition:
    element = _equal(value)
    in_list = element.sql.replace("@", "element")
    return Condition(
        "CASE @.type WHEN 'text' THEN instr(@.atom, ?) > 0 WHEN 'array' THEN"
        f" EXISTS (SELECT 1 FROM json_each(@.value) AS element WHERE {in_list}) ELSE 0 END",
        (None if value is None or isinstance(value, bool) else str(value), *element.values),
    )


def _contains_any_case(value: object) -> Condition:
    if not isinstance(value, str):
        return _contains(value)
    folded = value.casefold()
    return Condition(
        "CASE @.type WHEN 'text' THEN instr(casefold(CAST(@.atom AS BLOB)), ?) > 0"
        " WHEN 'array' THEN"
        " EXISTS (SELECT 1 FROM json_each(@.value) AS element"
        " WHERE element.type = 'text' AND casefold(CAST(element.atom AS BLOB)) = ?) ELSE 0 END",
        (folded, folded),
    )


_OPERATORS: Final[dict[str, Callable[[Any], Condition]]] = {
    "eq": _equal,
    "gt": _compared(">"),
    "gte": _compared(">="),
    "lt": _compared("<"),
    "lte": _compared("<="),
    "in": _in_list,
    "contains": _contains,
    "icontains": _contains_any_case,
}

"""Filters compiled to SQL conditions on the table ``memories AS m``.

Every key and value is bound. SQL is assembled only from text in this module. A text with a NUL
character, which PostgreSQL cannot store, is the value of no column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import singledispatch
from typing import Any, Final, NamedTuple

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

_REPLACEMENT: Final = "\ufffd"
"""What ``readable_json`` in the migrations turns a NUL character into."""

_FEW: Final = 20_000
"""Up to this many rows are listed from an index, in 4 ms, so that no other memory is read."""
_INDEXED: Final = ("created_by_session", "user_id")


class Passing(NamedTuple):
    """Which memories pass: a condition on ``m``, and one on ``p.seq``, the row of a posting.

    The latter is tested before the memory is read, and may let more pass.
    """

    memory: Condition
    row: Condition = Condition("true")

    @property
    def texts(self) -> dict[str, str]:
        """Return the SQL of both, by name."""
        return {"memory": self.memory.sql, "row": self.row.sql}

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the values for their placeholders."""
        return (*self.memory.values, *self.row.values)


def passing(filters: Filter) -> Passing:
    """Return the conditions with which a filter restricts postings."""
    listed = [_if_few(rows) for rows in map(_rows_of, _parts(filters)) if rows is not None]
    return Passing(compiled(filters), joined(listed, " AND ", empty="true"))


def _parts(filters: Filter) -> Iterator[Filter]:
    if isinstance(filters, All):
        for part in filters.parts:
            yield from _parts(part)
    else:
        yield filters


def _if_few(rows: Condition) -> Condition:
    """Return the condition that a row is among those listed by an index, unless they are many.

    Testing a posting then takes 0.2 µs, and reading a memory 8.
    """
    # LIMIT makes the planner hash them, however many it expects.
    sql = f"""CASE WHEN (SELECT count(*) <= {_FEW} FROM ({rows.sql} LIMIT {_FEW + 1}) AS listed)
  THEN p.seq IN ({rows.sql} LIMIT {_FEW}) ELSE true END"""
    return Condition(sql, rows.values * 2)


def _rows_of(filters: Filter) -> Condition | None:
    """Return the query of the rows that pass a filter, if an index lists them."""
    if isinstance(filters, HasTag):
        same = _same_tag(filters)
        return Condition(f"SELECT t.seq FROM memory_tags AS t WHERE {same.sql}", same.values)
    if isinstance(filters, AnyOf):
        parts = [rows for rows in map(_rows_of, filters.parts) if rows is not None]
        if not parts or len(parts) < len(filters.parts):
            return None
        union = joined(parts, " UNION ALL ", empty="")
        return Condition(f"SELECT u.seq FROM ({union.sql}) AS u", union.values)
    if isinstance(filters, Since | Until) or (
        isinstance(filters, Equals) and filters.column in _INDEXED
    ):
        condition = compiled(filters)
        sql = f"SELECT m.seq FROM memories AS m WHERE {condition.sql}"
        return Condition(sql, condition.values)
    return None


@singledispatch
def compiled(filters: Filter) -> Condition:
    """Return the SQL condition of a filter."""
    raise TypeError(f"{type(filters).__name__} is not a filter that PostgreSQL supports")


@compiled.register
def _(filters: All) -> Condition:
    return joined([compiled(part) for part in filters.parts], " AND ", empty="true")


@compiled.register
def _(filters: AnyOf) -> Condition:
    return joined([compiled(part) for part in filters.parts], " OR ", empty="false")


@compiled.register
def _(filters: Not) -> Condition:
    inner = compiled(filters.part)
    return Condition(f"NOT ({inner.sql})", inner.values)


@compiled.register
def _(filters: Equals) -> Condition:
    # The column name comes only from ``storage.filters``.
    return _same(f"m.{filters.column}", filters.value)


@compiled.register
def _(filters: AmongIds) -> Condition:
    return Condition("m.id = ANY(%s)", (_storable(filters.ids),))


@compiled.register
def _(filters: InCategories) -> Condition:
    parts = [_one_of("m.category", filters.names)]
    if filters.foreign:
        sql = f"(readable_json(m.metadata) ->> '{ORIGINAL_CATEGORY}')"
        parts.append(_one_of(sql, filters.foreign))
    return joined(parts, " OR ", empty="false")


def _one_of(sql: str, names: Sequence[str]) -> Condition:
    """Compare ignoring case. First literally: for that the server can estimate the rows."""
    exact = _storable(names)
    is_ascii = all(map(str.isascii, names))
    # ``folded`` takes six times as long per row.
    form = f'lower({sql} COLLATE "C")' if is_ascii else f"folded({sql})"
    small = [name.lower() if is_ascii else name.casefold() for name in exact]
    return Condition(f"({sql} = ANY(%s) OR {form} = ANY(%s))", (exact, small))


@compiled.register
def _(filters: HasTag) -> Condition:
    same = _same_tag(filters)
    sql = f"m.seq IN (SELECT t.seq FROM memory_tags AS t WHERE {same.sql})"
    return Condition(sql, same.values)


@compiled.register
def _(filters: Archived) -> Condition:
    # "<> 0" because it has an index.
    return Condition("m.archived <> 0" if filters.archived else "m.archived = 0")


@compiled.register
def _(filters: Since) -> Condition:
    return Condition("m.timestamp >= %s", (filters.moment,))


@compiled.register
def _(filters: Until) -> Condition:
    return Condition("m.timestamp <= %s", (filters.moment,))


@compiled.register
def _(filters: HasTaskStatus) -> Condition:
    sql = "readable_json(m.task_metadata) ->> 'status' = %s"
    return Condition(sql, (filters.status.value,))


@compiled.register
def _(filters: AccessedOften) -> Condition:
    return Condition("m.access_count >= %s", (filters.least,))


@compiled.register
def _(filters: NoRepeatOf) -> Condition:
    row_ids = [row_id for row_id, _ in filters.fingerprints]
    fingerprints = [fingerprint for _, fingerprint in filters.fingerprints]
    return Condition(
        "NOT EXISTS (SELECT 1 FROM fingerprints AS f WHERE f.seq = m.seq"
        " AND f.fingerprint = ANY(%s::bigint[]) AND f.seq <> ALL(%s::bigint[]))",
        (fingerprints, row_ids),
    )


@compiled.register
def _(filters: InMetadata) -> Condition:
    test = _OPERATORS[filters.operator](filters.operand)
    return joined([_at(path, test) for path in filters.paths], " OR ", empty="false")


def _same_tag(filters: HasTag) -> Condition:
    # The trigger that writes tags does not lower capitals outside ASCII that another program wrote.
    tag = filters.tag
    return _same("t.tag", tag) if tag.isascii() else _same("folded(t.tag)", tag.casefold())


def _same(column: str, value: str) -> Condition:
    return Condition("false") if "\x00" in value else Condition(f"{column} = %s", (value,))


def _storable(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if "\x00" not in text]


def _readable(text: str) -> str:
    return text.replace("\x00", _REPLACEMENT)


def _at(path: list[str], test: Condition) -> Condition:
    """Return the condition that ``test`` holds for the value at a path in the metadata."""
    value = "readable_json(m.metadata)" + " -> %s::text" * len(path)
    # OFFSET 0 keeps the value from being extracted again for each use.
    sql = f"EXISTS (SELECT 1 FROM (SELECT {value} AS value OFFSET 0) AS v WHERE {test.sql})"
    return Condition(sql, (*map(_readable, path), *test.values))


# Conditions on a value, ``v.value``. JSON's types are kept apart: true is not 1, and a list is not
# null. SQL may evaluate conditions in any order, except those of a CASE.


def _equal(value: object, of: str = "v.value") -> Condition:
    text = _readable_json(value)
    if isinstance(value, list | tuple | dict):
        # As text: of two equal numbers, one may be written as a float.
        return Condition(f"{of}::text = (%s::jsonb)::text", (text,))
    return Condition(f"{of} = %s::jsonb", (text,))


def _readable_json(value: object) -> str:
    return to_json(_without_nul(value))


def _without_nul(value: object) -> object:
    if isinstance(value, str):
        return _readable(value)
    if isinstance(value, Mapping):
        return {_readable(str(key)): _without_nul(item) for key, item in value.items()}
    return [_without_nul(item) for item in value] if isinstance(value, list | tuple) else value


def _compared(sign: str) -> Callable[[object], Condition]:
    def compare(value: object) -> Condition:
        operand: str | Decimal
        if isinstance(value, str):
            kind, compared, operand = "string", "(v.value #>> '{}') COLLATE \"C\"", _readable(value)
        else:
            kind, compared, operand = "number", "v.value::numeric", Decimal(repr(value))
        sql = f"CASE jsonb_typeof(v.value) WHEN '{kind}' THEN {compared} {sign} %s ELSE false END"
        return Condition(sql, (operand,))

    return compare


def _in_list(values: Sequence[object]) -> Condition:
    return Condition("v.value = ANY(%s::jsonb[])", ([_readable_json(value) for value in values],))


def _contains(value: object) -> Condition:
    element = _equal(value, "element")
    part = None if value is None or isinstance(value, bool) else _readable(str(value))
    return Condition(
        "CASE jsonb_typeof(v.value) WHEN 'string' THEN strpos(v.value #>> '{}', %s::text) > 0"
        " WHEN 'array' THEN EXISTS (SELECT 1 FROM jsonb_array_elements(v.value) AS element"
        f" WHERE {element.sql}) ELSE false END",
        (part, *element.values),
    )


def _contains_any_case(value: object) -> Condition:
    if not isinstance(value, str):
        return _contains(value)
    part = _readable(value).casefold()
    return Condition(
        "CASE jsonb_typeof(v.value) WHEN 'string'"
        " THEN strpos(folded(v.value #>> '{}'), %s::text) > 0"
        " WHEN 'array' THEN EXISTS (SELECT 1 FROM jsonb_array_elements(v.value) AS element"
        " WHERE jsonb_typeof(element) = 'string' AND folded(element #>> '{}') = %s) ELSE false END",
        (part, part),
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

"""Filters as SQL conditions on the table ``memories AS m``.

Every key and value is bound. What is put together into SQL is the text of this module alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models.enums import ORIGINAL_CATEGORY, MemoryCategory
from agent_memory.models.fields import clean_key, clean_metadata, to_json
from agent_memory.models.search import SearchFilters
from agent_memory.models.times import format_time

_MAX_DEPTH: Final = 10
_MAX_CONDITIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in SQL on ``m``, and the values for its question marks."""

    sql: str
    values: tuple[Any, ...] = ()

    @property
    def is_narrowing(self) -> bool:
        """Return whether it can leave out more than archived memories."""
        return self.sql not in (EVERYTHING.sql, NOT_ARCHIVED.sql)

    @property
    def leaves_out_archived(self) -> bool:
        """Return whether no archived memory can meet it."""
        return NOT_ARCHIVED.sql in self.sql

    def and_also(self, other: Condition) -> Condition:
        """Return the condition that both hold."""
        return _joined([self, other], " AND ", empty=EVERYTHING)

    def of_archived(self, *, archived: bool) -> Condition:
        """Return the condition that this one holds and the memory is archived, or is not."""
        only = Condition("m.archived = 1") if archived else NOT_ARCHIVED
        return only if self.sql == EVERYTHING.sql else _joined([self, only], " AND ", empty=only)


EVERYTHING: Final = Condition("1")
_NOTHING: Final = Condition("0")
NOT_ARCHIVED: Final = Condition("m.archived = 0")


def condition_of(filters: SearchFilters, *, agent_id: str) -> Condition:
    """Return the condition that all the given filters hold.

    ``agent_id`` is the file's own: a filter for another agent finds nothing. Raises
    ``ValidationError`` for a custom filter that cannot be understood.
    """
    parts = [*_column_conditions(filters), *_tag_conditions(filters)]
    if filters.archived is not None:
        parts.append(NOT_ARCHIVED if not filters.archived else Condition("m.archived = 1"))
    if filters.agent_id is not None and filters.agent_id != agent_id:
        parts.append(_NOTHING)
    if filters.date_range and filters.date_range.start:
        parts.append(Condition("m.timestamp >= ?", (format_time(filters.date_range.start),)))
    if filters.date_range and filters.date_range.end:
        parts.append(Condition("m.timestamp <= ?", (format_time(filters.date_range.end),)))
    if filters.task_status is not None:
        sql = """CASE WHEN json_valid(m.task_metadata) THEN m.task_metadata ->> 'status' END = ?"""
        parts.append(Condition(sql, (filters.task_status.value,)))
    if filters.min_access_count:
        parts.append(Condition("m.access_count >= ?", (filters.min_access_count,)))
    if filters.custom_filters:
        parts.append(_CustomFilters().compile(filters.custom_filters, depth=1))
    return _joined(parts, " AND ", empty=EVERYTHING)


def scope_of(filters: SearchFilters, *, agent_id: str) -> Condition:
    """Return the part of the filters that says whose memories may be seen at all."""
    named = {name: getattr(filters, name) for name in ("user_id", "run_id", "agent_id")}
    # What has a default_factory is given too: Pydantic inspects its signature, for 0.2 ms each.
    only = SearchFilters.model_construct(**named, archived=None, tags=[], custom_filters={})
    return condition_of(only, agent_id=agent_id)


def _column_conditions(filters: SearchFilters) -> list[Condition]:
    parts = [
        Condition(f"m.{column} = ?", (str(value),))
        for column, value in (
            ("user_id", filters.user_id),
            ("run_id", filters.run_id),
            ("memory_type", filters.memory_type),
            ("kind", filters.kind),
            ("importance", filters.importance),
            ("created_by_session", filters.session_id),
        )
        if value is not None
    ]
    if filters.category is not None:
        wanted = [filters.category] if isinstance(filters.category, str) else filters.category
        parts.append(_of_category(wanted))
    return parts


def _of_category(wanted: list[str]) -> Condition:
    """Return the condition for categories; those of others' words are in the metadata."""
    parts = [Condition("m.category IN (SELECT value FROM json_each(?))", (to_json(wanted),))]
    if foreign := sorted(set(wanted) - set(MemoryCategory)):
        sql = (
            f"CASE WHEN json_valid(m.metadata) THEN m.metadata ->> '{ORIGINAL_CATEGORY}' END"
            " IN (SELECT value FROM json_each(?))"
        )
        parts.append(Condition(sql, (to_json(foreign),)))
    return _joined(parts, " OR ", empty=EVERYTHING)


def _tag_conditions(filters: SearchFilters) -> list[Condition]:
    if not filters.tags:
        return []
    each = [_has_tag(tag) for tag in filters.tags]
    return [_joined(each, " AND " if filters.tags_match == "all" else " OR ", empty=EVERYTHING)]


def _has_tag(tag: str) -> Condition:
    # SQLite leaves capitals outside ASCII as a program other than this one wrote them.
    same, value = ("t.tag = ?", tag) if tag.isascii() else ("casefold(t.tag) = ?", tag.casefold())
    return Condition(f"m.seq IN (SELECT t.seq FROM memory_tags AS t WHERE {same})", (value,))


def _joined(parts: list[Condition], word: str, *, empty: Condition) -> Condition:
    if not parts:
        return empty
    if len(parts) == 1:
        return parts[0]
    sql = "(" + word.join(part.sql for part in parts) + ")"
    return Condition(sql, tuple(value for part in parts for value in part.values))


class _CustomFilters:
    """Compiles C's ``custom_filters`` over the JSON in ``m.metadata``."""

    def __init__(self) -> None:
        self._conditions = 0

    def compile(self, filters: Mapping[str, Any], *, depth: int) -> Condition:
        """Return the condition that every entry of the mapping holds."""
        if depth > _MAX_DEPTH:
            raise _refused("filters", f"nested over {_MAX_DEPTH} deep: write it flatter", depth)
        parts: list[Condition] = []
        for key, value in filters.items():
            if key in ("AND", "OR"):
                parts.append(self._group(key, value, depth))
            elif key == "NOT":
                inner = self.compile(_mapping(key, value), depth=depth + 1)
                parts.append(Condition(f"NOT ({inner.sql})", inner.values))
            else:
                parts.append(self._key(key, value))
        return _joined(parts, " AND ", empty=EVERYTHING)

    def _group(self, word: str, value: object, depth: int) -> Condition:
        if not isinstance(value, list | tuple):
            raise _refused(word, "takes a list of filters", value)
        parts = [self.compile(_mapping(word, item), depth=depth + 1) for item in value]
        return _joined(parts, f" {word} ", empty=EVERYTHING if word == "AND" else _NOTHING)

    def _key(self, key: str, value: object) -> Condition:
        try:
            clean_key(key)
        except ValueError as error:
            raise _refused(key, str(error), value) from error
        operators = value if isinstance(value, Mapping) else {"eq": value}
        if not operators:
            raise _refused(key, "has no operator", value)
        parts = [self._operation(key, name, operand) for name, operand in operators.items()]
        return _joined(parts, " AND ", empty=EVERYTHING)

    def _operation(self, key: str, name: str, operand: object) -> Condition:
        self._conditions += 1
        if self._conditions > _MAX_CONDITIONS:
            raise _refused("filters", f"over {_MAX_CONDITIONS} conditions", key)
        if key.count(".") > _MAX_DEPTH:
            raise _refused(key, f"reaches over {_MAX_DEPTH} deep", operand)
        if name not in _OPERATORS:
            raise _refused(key, f"unknown operator {name!r}: use {', '.join(_OPERATORS)}", operand)
        positive = _OPPOSITES.get(name, name)
        found = _somewhere(key, _OPERATORS[positive](key, operand))
        return Condition(f"NOT {found.sql}", found.values) if positive != name else found


def _somewhere(key: str, test: Condition) -> Condition:
    """Return the condition that ``test`` holds for the value under a key, dots reaching inside."""
    paths = [[key]] if "." not in key else [[key], key.split(".")]
    return _joined([_at(path, test) for path in paths], " OR ", empty=_NOTHING)


def _at(path: list[str], test: Condition) -> Condition:
    # A value that is no object (or metadata that is no JSON) is taken for an empty one: json_each
    # would fail the whole search for the sake of one row.
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


# What holds of a value, which is written "@" until its place is known. JSON's types are kept apart:
# true is not 1, and a list is not null.

_TYPES: Final[dict[type, str]] = {
    bool: "('true', 'false')",
    int: "('integer', 'real')",
    float: "('integer', 'real')",
    str: "('text')",
    type(None): "('null')",
}


def _equal(key: str, operand: object) -> Condition:
    if isinstance(operand, list | tuple | Mapping):
        sql = "@.type IN ('array', 'object') AND sorted_json(@.value) = sorted_json(?)"
        try:
            clean_metadata({key: operand})  # what no memory can have is not looked for
        except ValueError as error:
            raise _refused(key, f"cannot be compared: {error}", operand) from error
        return Condition(sql, (_json(key, operand),))
    value = _scalar(key, operand)
    return Condition(f"@.type IN {_TYPES[type(value)]} AND @.atom IS ?", (value,))


def _compared(sign: str) -> Callable[[str, object], Condition]:
    def compare(key: str, operand: object) -> Condition:
        value = _scalar(key, operand)
        if value is None or isinstance(value, bool):
            raise _refused(key, f"{sign} needs a number or a text", operand)
        # SQLite puts every text after every number: only like is compared with like.
        return Condition(f"@.type IN {_TYPES[type(value)]} AND @.atom {sign} ?", (value,))

    return compare


def _one_of(key: str, operand: object) -> Condition:
    if not isinstance(operand, list | tuple):
        raise _refused(key, "in and nin take a list of values", operand)
    values = [_scalar(key, value) for value in operand]
    return Condition(
        "EXISTS (SELECT 1 FROM json_each(?) AS wanted WHERE wanted.atom IS @.atom"
        " AND replace(wanted.type, 'real', 'integer') = replace(@.type, 'real', 'integer'))",
        (to_json(values),),
    )


def _contains(key: str, operand: object) -> Condition:
    value = _scalar(key, operand)
    element = _equal(key, value)
    in_list = element.sql.replace("@", "element")
    return Condition(
        "CASE @.type WHEN 'text' THEN instr(@.atom, ?) > 0 WHEN 'array' THEN"
        f" EXISTS (SELECT 1 FROM json_each(@.value) AS element WHERE {in_list}) ELSE 0 END",
        (None if value is None or isinstance(value, bool) else str(value), *element.values),
    )


def _contains_any_case(key: str, operand: object) -> Condition:
    if not isinstance(operand, str):
        return _contains(key, operand)
    folded = str(_scalar(key, operand)).casefold()
    return Condition(
        "CASE @.type WHEN 'text' THEN instr(casefold(@.atom), ?) > 0 WHEN 'array' THEN"
        " EXISTS (SELECT 1 FROM json_each(@.value) AS element"
        " WHERE element.type = 'text' AND casefold(element.atom) = ?) ELSE 0 END",
        (folded, folded),
    )


_OPERATORS: Final[dict[str, Callable[[str, object], Condition]]] = {
    "eq": _equal,
    "ne": _equal,
    "gt": _compared(">"),
    "gte": _compared(">="),
    "lt": _compared("<"),
    "lte": _compared("<="),
    "in": _one_of,
    "nin": _one_of,
    "contains": _contains,
    "icontains": _contains_any_case,
}
_OPPOSITES: Final = {"ne": "eq", "nin": "in"}


def _scalar(key: str, operand: object) -> str | int | float | None:
    if isinstance(operand, float) and not math.isfinite(operand):
        raise _refused(key, "is not a finite number", operand)
    if isinstance(operand, int) and not -(2**63) <= operand < 2**63:
        raise _refused(key, "is an integer of over 64 bits", operand)
    if isinstance(operand, str) and not operand.isascii():
        _json(key, operand)
    # Of a member of an enum, or another class of texts or numbers, the text or number that it is.
    if operand is None or isinstance(operand, bool):
        return operand
    if isinstance(operand, str):
        return str.__str__(operand)
    if isinstance(operand, int | float):
        return int.__index__(operand) if isinstance(operand, int) else float.__float__(operand)
    raise _refused(key, "needs a text, a number, true, false or null", operand)


def _json(key: str, operand: object) -> str:
    try:
        text = to_json(operand)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(key, f"cannot be compared: {error}", operand) from error
    return text


def _mapping(word: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _refused(word, "takes filters, each a mapping of key to condition", value)
    return value


def _refused(key: str, message: str, value: object) -> ValidationError:
    return ValidationError.of(f"custom_filters.{key}", message, value)

"""Filters: a small tree that decides which memories pass, compiled by each engine for its tables.

The tree is built from ``SearchFilters`` and checked here, once: an engine gets only what it can
compile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, dataclass_transform

from agent_memory.errors import ValidationError
from agent_memory.models.fields import clean_key, clean_metadata, to_json
from agent_memory.models.times import format_time

if TYPE_CHECKING:
    from agent_memory.models.enums import TaskStatus
    from agent_memory.models.excerpt import SearchFilterValues
    from agent_memory.models.search import SearchFilters

_MAX_DEPTH: Final = 10
_MAX_CONDITIONS: Final = 100

Operator = Literal["eq", "gt", "gte", "lt", "lte", "in", "contains", "icontains"]
"""The tests of a metadata value. ``ne`` and ``nin`` are ``Not`` of their opposites."""
OPERATORS: Final[dict[str, Operator]] = {
    "eq": "eq",
    "ne": "eq",
    "gt": "gt",
    "gte": "gte",
    "lt": "lt",
    "lte": "lte",
    "in": "in",
    "nin": "in",
    "contains": "contains",
    "icontains": "icontains",
}
_NEGATED: Final = ("ne", "nin")


@dataclass_transform(frozen_default=True)
class Filter:
    """A node of the tree. Its class and fields decide which memories pass.

    The fields of a class are its annotations; to its users it is a frozen data class. It does not
    use ``dataclasses``, whose import and work for these few classes would take a sixth of a hook's
    time.
    """

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Record the names of the fields."""
        cls._names = tuple(cls.__annotations__)

    def __init__(self, *values: object, **named: object) -> None:
        names = self._names
        # Defaults are set too: otherwise ``All()`` would not equal ``All(())``.
        defaults = {name: getattr(type(self), name) for name in names if hasattr(type(self), name)}
        fields = {**defaults, **dict(zip(names, values, strict=False)), **named}
        if len(values) + len(named) > len(names) or fields.keys() != {*names}:
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(names)}")
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse changes: others may hold the same filter."""
        raise AttributeError(f"a filter cannot be changed: {name} keeps its value")

    def __eq__(self, other: object) -> bool:
        """Return whether the other is the same tree, not merely an equivalent one."""
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    @property
    def is_narrowing(self) -> bool:
        """Return whether it can exclude more than archived memories."""
        return self not in (EVERYTHING, NOT_ARCHIVED)

    @property
    def leaves_out_archived(self) -> bool:
        """Return whether no archived memory passes."""
        return self == NOT_ARCHIVED

    def and_also(self, *others: Filter) -> Filter:
        """Return the conjunction of this filter and the others."""
        return all_of(self, *others)


class All(Filter):
    """Passes memories that pass every part; without parts, all memories."""

    parts: tuple[Filter, ...] = ()

    @property
    def leaves_out_archived(self) -> bool:
        """Return whether any part excludes archived memories."""
        return any(part.leaves_out_archived for part in self.parts)


class AnyOf(Filter):
    """Passes memories that pass at least one part; without parts, none."""

    parts: tuple[Filter, ...] = ()


class Not(Filter):
    """Passes memories that do not pass the part."""

    part: Filter


class Equals(Filter):
    """Passes memories with a value in a column, such as ``user_id`` or ``kind``."""

    column: str
    value: str


class AmongIds(Filter):
    """Passes memories with one of these ids."""

    ids: tuple[str, ...]


class InCategories(Filter):
    """Passes memories of one of these categories, in any case, as with tags.

    ``foreign`` are those that another program's export may have used: such a name is kept in the
    metadata, beside the category ``note``.
    """

    names: tuple[str, ...]
    foreign: tuple[str, ...]


class HasTag(Filter):
    """Passes memories with a tag."""

    tag: str


class Archived(Filter):
    """Passes archived memories, or unarchived ones."""

    archived: bool


class Since(Filter):
    """Passes memories dated at or after a moment, given in stored form."""

    moment: str


class Until(Filter):
    """Passes memories dated at or before a moment, given in stored form."""

    moment: str


class HasTaskStatus(Filter):
    """Passes tasks with this status."""

    status: TaskStatus


class AccessedOften(Filter):
    """Passes memories accessed at least this many times."""

    least: int


class InMetadata(Filter):
    """Passes memories whose metadata have a matching value under a key; dots reach into objects.

    JSON's types are kept apart: ``true`` is not 1, a list is not null.
    """

    key: str
    operator: Operator
    operand: Any

    @property
    def paths(self) -> list[list[str]]:
        """Return where the value may be: under the key itself, and inside objects."""
        return [[self.key]] if "." not in self.key else [[self.key], self.key.split(".")]


class NoRepeatOf(Filter):
    """Passes memories that repeat none of these, given as pairs of row id and fingerprint."""

    fingerprints: tuple[tuple[int, int], ...]


EVERYTHING: Final[Filter] = All()
NOTHING: Final[Filter] = AnyOf()
NOT_ARCHIVED: Final[Filter] = Archived(archived=False)
ARCHIVED: Final[Filter] = Archived(archived=True)
_SAMPLE: Final = 500
"""How many memories are sampled to estimate the share that passes a filter."""
_GOLDEN: Final = (5**0.5 - 1) / 2


def all_of(*parts: Filter) -> Filter:
    """Return the conjunction of the parts; a single part is returned as it is."""
    inner = tuple(part for part in parts if part != EVERYTHING)
    return inner[0] if len(inner) == 1 else All(inner)


def any_of(*parts: Filter) -> Filter:
    """Return the disjunction of the parts; a single part is returned as it is."""
    return parts[0] if len(parts) == 1 else AnyOf(parts)


def filter_of(filters: SearchFilters | SearchFilterValues | None, *, agent_id: str) -> Filter:
    """Return the tree for all these filters; without any, archived memories do not pass.

    ``agent_id`` is the store's own: a filter for another agent matches nothing. Raises
    ``ValidationError`` for an invalid custom filter.
    """
    if filters is None:
        return NOT_ARCHIVED
    parts = [*_of_columns(filters), *_of_tags(filters)]
    if filters.ids is not None:
        parts.append(AmongIds(tuple(filters.ids)))
    if filters.archived is not None:
        parts.append(Archived(filters.archived))
    if filters.agent_id is not None and filters.agent_id != agent_id:
        parts.append(NOTHING)
    if filters.date_range and filters.date_range.start:
        parts.append(Since(format_time(filters.date_range.start)))
    if filters.date_range and filters.date_range.end:
        parts.append(Until(format_time(filters.date_range.end)))
    if filters.task_status is not None:
        parts.append(HasTaskStatus(filters.task_status))
    if filters.min_access_count:
        parts.append(AccessedOften(filters.min_access_count))
    if filters.custom_filters:
        parts.append(_CustomFilters().parse(filters.custom_filters, depth=1))
    return all_of(*parts)


def scope_of(filters: SearchFilters | SearchFilterValues | None, *, agent_id: str) -> Filter:
    """Return the part of the filters that decides whose memories may be seen at all."""
    if filters is None:
        return EVERYTHING
    parts = [
        Equals(column, value)
        for column, value in (("user_id", filters.user_id), ("run_id", filters.run_id))
        if value is not None
    ]
    is_other = filters.agent_id is not None and filters.agent_id != agent_id
    return all_of(*parts, *([NOTHING] if is_other else []))


def _of_columns(filters: SearchFilters | SearchFilterValues) -> list[Filter]:
    parts: list[Filter] = [
        Equals(column, str(value))
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
        from agent_memory.models.enums import MemoryCategory  # noqa: PLC0415 - seldom asked for

        wanted = [filters.category] if isinstance(filters.category, str) else filters.category
        foreign = sorted(set(wanted) - set(MemoryCategory))
        parts.append(InCategories(tuple(wanted), tuple(foreign)))
    return parts


def _of_tags(filters: SearchFilters | SearchFilterValues) -> list[Filter]:
    if not filters.tags:
        return []
    tags = [HasTag(tag) for tag in filters.tags]
    return [all_of(*tags) if filters.tags_match == "all" else any_of(*tags)]


class _CustomFilters:
    """Parses C's ``custom_filters`` on the metadata, and counts their conditions."""

    def __init__(self) -> None:
        self._conditions = 0

    def parse(self, filters: Mapping[str, Any], *, depth: int) -> Filter:
        """Return the conjunction of the mapping's entries."""
        if depth > _MAX_DEPTH:
            raise _refusal("filters", f"nested over {_MAX_DEPTH} levels deep: flatten it", depth)
        parts: list[Filter] = []
        for key, value in filters.items():
            if key in ("AND", "OR"):
                parts.append(self._group(key, value, depth))
            elif key == "NOT":
                parts.append(Not(self.parse(_mapping(key, value), depth=depth + 1)))
            else:
                parts.append(self._entry(key, value))
        return all_of(*parts)

    def _group(self, word: str, value: object, depth: int) -> Filter:
        if not isinstance(value, list | tuple):
            raise _refusal(word, "takes a list of filters", value)
        parts = [self.parse(_mapping(word, item), depth=depth + 1) for item in value]
        return all_of(*parts) if word == "AND" else any_of(*parts)

    def _entry(self, key: str, value: object) -> Filter:
        try:
            clean_key(key)
        except ValueError as error:
            raise _refusal(key, str(error), value) from error
        operators = value if isinstance(value, Mapping) else {"eq": value}
        if not operators:
            raise _refusal(key, "has no operator", value)
        return all_of(*(self._test(key, name, operand) for name, operand in operators.items()))

    def _test(self, key: str, name: str, operand: object) -> Filter:
        self._conditions += 1
        if self._conditions > _MAX_CONDITIONS:
            raise _refusal("filters", f"over {_MAX_CONDITIONS} conditions", key)
        if key.count(".") > _MAX_DEPTH:
            raise _refusal(key, f"reaches over {_MAX_DEPTH} levels deep", operand)
        if name not in OPERATORS:
            raise _refusal(key, f"unknown operator {name!r}: use {', '.join(OPERATORS)}", operand)
        operator = OPERATORS[name]
        test = InMetadata(key, operator, _operand(key, operator, operand))
        return Not(test) if name in _NEGATED else test


def _operand(key: str, operator: Operator, operand: object) -> object:
    """Return an operand in the form that engines compare. Raises ``ValidationError``."""
    if operator == "in":
        if not isinstance(operand, list | tuple):
            raise _refusal(key, "in and nin take a list of values", operand)
        return [_scalar(key, value) for value in operand]
    if operator == "eq" and isinstance(operand, list | tuple | Mapping):
        try:
            clean_metadata({key: operand})  # refuses what no memory can contain
        except ValueError as error:
            raise _refusal(key, f"cannot be compared: {error}", operand) from error
        _refuse_unwritable(key, operand)
        return operand
    value = _scalar(key, operand)
    if operator in ("gt", "gte", "lt", "lte") and (value is None or isinstance(value, bool)):
        sign = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}[operator]
        raise _refusal(key, f"{sign} needs a number or a text", operand)
    return value


def _scalar(key: str, operand: object) -> str | int | float | None:
    if isinstance(operand, float) and not math.isfinite(operand):
        raise _refusal(key, "is not a finite number", operand)
    if isinstance(operand, int) and not -(2**63) <= operand < 2**63:
        raise _refusal(key, "is an integer of over 64 bits", operand)
    if isinstance(operand, str) and not operand.isascii():
        _refuse_unwritable(key, operand)
    # The plain value of an enum member, or of another subclass of str, int or float.
    if operand is None or isinstance(operand, bool):
        return operand
    if isinstance(operand, str):
        return str.__str__(operand)
    if isinstance(operand, int | float):
        return int.__index__(operand) if isinstance(operand, int) else float.__float__(operand)
    raise _refusal(key, "needs a text, a number, true, false or null", operand)


def _refuse_unwritable(key: str, operand: object) -> None:
    try:
        to_json(operand).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusal(key, f"cannot be compared: {error}", operand) from error


def _mapping(word: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _refusal(word, "takes filters, each a mapping of key to condition", value)
    return value


def _refusal(key: str, message: str, value: object) -> ValidationError:
    return ValidationError.of(f"custom_filters.{key}", message, value)


def spread_rows(last: int) -> list[int]:
    """Return a sample of the rows 1 to ``last``, to estimate the share that passes a filter.

    They are spread by the golden ratio: if users take turns, every 500th row could always be the
    same user's.
    """
    return sorted(
        {1 + int(last * (number * _GOLDEN % 1)) for number in range(_SAMPLE)} if last else ()
    )

"""Filters of LangGraph's ``search``: what they mean, and what our own filters can express of it.

The file's own filters narrow the rows down; ``matches`` then decides. So the former may pass too
many rows, but never too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_memory import ValidationError

_MOST: Final = 50
"""The most conditions passed to the file; it accepts 100."""
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$gt": lambda value, operand: value > operand,
    "$gte": lambda value, operand: value >= operand,
    "$lt": lambda value, operand: value < operand,
    "$lte": lambda value, operand: value <= operand,
}
_OPERATORS: Final = ("$eq", "$ne", *_COMPARE)
_MISSING: Final = object()


def refuse_unknown(wanted: Mapping[str, Any]) -> None:
    """Raise ``ValidationError`` if a filter has an unknown operator."""
    for key, value in wanted.items():
        if not isinstance(value, Mapping):
            continue
        if not _has_operators(value):
            refuse_unknown(value)
            continue
        unknown = [name for name in value if name not in _OPERATORS]
        if unknown:
            message = f"has the unknown operator {unknown[0]!r:.80}: use {', '.join(_OPERATORS)}"
            raise ValidationError.of(f"filter.{key}", message, None)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a value meets a filter; a missing key counts as ``None``."""
    return all(_meets(_at(value, key), condition) for key, condition in wanted.items())


def custom_filters_of(wanted: Mapping[str, Any], *, under: str) -> dict[str, Any]:
    """Return ``custom_filters`` that every value passes that meets a filter.

    ``under`` is the path of the values in the metadata.
    """
    filters: dict[str, Any] = {}
    for key, condition in wanted.items():
        operators = condition if isinstance(condition, Mapping) else {"$eq": condition}
        if "." in key or not _is_plain(key) or not _has_operators(operators):
            continue  # a key with dots is ambiguous
        usable = {
            name.removeprefix("$"): operand
            for name, operand in operators.items()
            if _is_plain(operand) and not (name in _COMPARE and isinstance(operand, bool))
        }
        if usable and len(filters) < _MOST // len(_OPERATORS):
            filters[f"{under}.{key}"] = usable
    return filters


def _is_plain(operand: object) -> bool:
    """Return whether the file can compare it: a text, a finite number of 64 bits, or a boolean."""
    if isinstance(operand, str):
        return operand.isprintable()
    if isinstance(operand, float):
        return math.isfinite(operand)
    return isinstance(operand, int) and -(2**63) <= operand < 2**63


def _has_operators(condition: Mapping[Any, Any]) -> bool:
    return any(str(key).startswith("$") for key in condition)


def _at(value: Mapping[str, Any], key: str) -> object:
    """Return the value at a key, or at a path of keys separated by dots."""
    if key in value or "." not in key:
        return value.get(key)
    actual: Any = value
    for part in key.split("."):
        actual = actual.get(part, _MISSING) if isinstance(actual, Mapping) else _MISSING
    return None if actual is _MISSING else actual


def _meets(actual: object, condition: object) -> bool:
    if isinstance(condition, Mapping) and _has_operators(condition):
        return all(_operation(actual, name, operand) for name, operand in condition.items())
    if isinstance(condition, Mapping):
        if not isinstance(actual, Mapping):
            return False
        return all(_meets(actual.get(key), inner) for key, inner in condition.items())
    if isinstance(condition, list | tuple):
        return (
            isinstance(actual, list)
            and len(actual) == len(condition)
            and all(map(_meets, actual, condition))
        )
    return _is_same(actual, condition)


def _operation(actual: object, name: str, operand: object) -> bool:
    if name in ("$eq", "$ne"):
        return _is_same(actual, operand) is (name == "$eq")
    are_texts = isinstance(actual, str) and isinstance(operand, str)
    return (are_texts or (_is_number(actual) and _is_number(operand))) and _COMPARE[name](
        actual, operand
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_same(actual: object, wanted: object) -> bool:
    """Return whether two values are equal: ``True`` is not 1, and a list equals a tuple."""
    if isinstance(actual, list) and isinstance(wanted, list | tuple):
        return len(actual) == len(wanted) and all(map(_is_same, actual, wanted))
    if isinstance(actual, Mapping) and isinstance(wanted, Mapping):
        return actual.keys() == wanted.keys() and all(
            _is_same(inner, wanted[key]) for key, inner in actual.items()
        )
    return isinstance(actual, bool) is isinstance(wanted, bool) and actual == wanted

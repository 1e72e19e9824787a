"""Checks of arguments that need no models, whose import takes longer than a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, Final

from agent_memory.errors import ValidationError, shortened


def check_query(query: str) -> str:
    """Return the query. Any string is one; anything else raises ``ValidationError``."""
    if not isinstance(query, str):
        raise ValidationError.of("query", "must be a string", query)
    return query


def check_whole_number(name: str, value: int, *, lowest: int, highest: int = 2**63 - 1) -> int:
    """Return a whole number within its limits, or raise ``ValidationError``."""
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        is_huge = isinstance(value, int) and value > highest
        has_limit = highest < 2**63 - 1 or is_huge
        limits = f"from {lowest} to {highest}" if has_limit else f"of at least {lowest}"
        message = f"must be a whole number {limits}, not {shortened(value)}"
        raise ValidationError.of(name, message, value)
    return value


def check_flags(**flags: bool) -> None:
    """Raise ``ValidationError`` for a flag that is neither true nor false; 1 and 0 are accepted."""
    for name, value in flags.items():
        if not isinstance(value, int) or value not in (0, 1):
            raise ValidationError.of(name, "must be True or False", value)


_LIBRARY: Final = f"{__name__.partition('.')[0]}."


class WithCheckedFlags:
    """Makes the library's subclasses check the boolean arguments of their public methods.

    Without it, ``import_(dry_run=None)`` imported, and ``export(overwrite="no")`` overwrote. A flag
    is an argument whose default is a bool. Subclasses that users write are left alone, since the
    meaning of their defaults is not known.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.__module__.startswith(_LIBRARY):
            return
        for name, method in [*vars(cls).items()]:
            if name.startswith("_") or not isinstance(method, FunctionType):
                continue
            defaults = getattr(method, "__wrapped__", method).__kwdefaults__ or {}
            if flags := [flag for flag, value in defaults.items() if isinstance(value, bool)]:
                setattr(cls, name, _with_checked(method, flags))


def _with_checked(method: Callable[..., Any], flags: Sequence[str]) -> Callable[..., Any]:
    @wraps(method)
    def checked(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the method's own
        check_flags(**{flag: options[flag] for flag in flags if flag in options})
        return method(*arguments, **options)

    return checked

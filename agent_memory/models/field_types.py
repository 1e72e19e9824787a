"""The types of fields that models share: a Pydantic annotation for each rule of ``fields``.

They are separate from the rules, and from ``times``, because code that reads a file does not need
Pydantic, whose import takes longer than a search.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr

from agent_memory.models.fields import (
    clean_agent_id,
    clean_content,
    clean_label,
    clean_memory_id,
    clean_metadata,
    clean_scope_id,
    clean_tags,
    clean_text,
)
from agent_memory.models.times import parse_point, parse_time, to_utc


def _refuse_scalar_text(value: object) -> object:
    """Refuse a single text instead of a list: ``tags="db"`` would become ``["d", "b"]``."""
    if isinstance(value, (str, bytes)):
        raise ValueError("give a list of strings, such as ['database']")  # noqa: TRY004 - pydantic
    return list(value) if isinstance(value, (tuple, set, frozenset)) else value


AgentId = Annotated[str, AfterValidator(clean_agent_id)]
MemoryId = Annotated[str, AfterValidator(clean_memory_id)]
Content = Annotated[str, AfterValidator(clean_content)]
Tags = Annotated[list[str], BeforeValidator(_refuse_scalar_text), AfterValidator(clean_tags)]
Text = Annotated[str, AfterValidator(clean_text)]
Label = Annotated[str, AfterValidator(clean_label)]
ScopeId = Annotated[str, AfterValidator(clean_scope_id)]
Metadata = Annotated[dict[str, Any], AfterValidator(clean_metadata)]


def _read_end(value: object) -> object:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    return parse_point(value, ends=True) if isinstance(value, str) else _read_time(value)


def _read_start(value: object) -> object:
    return parse_point(value) if isinstance(value, str) else _read_time(value)


def _read_time(value: object) -> object:
    """Refuse numbers, which Pydantic would take for seconds since 1970."""
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, int | float):
        raise ValueError("write a time like 2026-01-28T12:00:00Z")  # noqa: TRY004 - pydantic
    return value


UtcDatetime = Annotated[datetime, BeforeValidator(_read_time), AfterValidator(to_utc)]
"""A field for a time in UTC; it accepts a datetime or ISO 8601 text."""
UtcStart = Annotated[datetime, BeforeValidator(_read_start), AfterValidator(to_utc)]
"""The same for the beginning of a range: it may be ``7d`` ago, ``today`` or ``yesterday``."""
UtcEnd = Annotated[datetime, BeforeValidator(_read_end), AfterValidator(to_utc)]
"""The same for the end of a range: a date alone ends with its day."""


def is_clean_text(value: object) -> bool:
    """Return whether a text field accepts a value unchanged: an address that is, is not secret."""
    try:
        return value is None or (isinstance(value, str) and clean_text(value) == value)
    except ValueError:
        return False


def covered(value: object) -> SecretStr | None:
    """Wrap a possible secret so that no error shows it; anything but a text is refused later."""
    if value is None or isinstance(value, SecretStr):
        return value
    return SecretStr(value.strip() if isinstance(value, str) else " ")

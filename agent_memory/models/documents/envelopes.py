"""C's envelopes for the result of a verb, or for the error that it raised (C, 12 and 13)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import (
    AgentMemoryError,
    ValidationError,
    described,
    with_notes,
    without_secrets,
)
from agent_memory.models.documents.responses import (
    ErrorCode,
    ErrorDetail,
    ErrorResponse,
    ResponseMetadata,
    SuccessResponse,
)

_UNEXPECTED: Final = "Unexpected error: this is a bug in agent-memory, not in the request"
_MOST_SHOWN: Final = 80


def new_request_id() -> str:
    """Return a new request id: ``req_`` and 12 hexadecimal digits."""
    return f"req_{secrets.token_hex(6)}"


def success(
    data: object, *, started: datetime, now: datetime, request_id: str | None = None
) -> SuccessResponse:
    """Wrap the result of a verb: JSON data or models; ``None`` becomes an empty object.

    ``started`` and ``now`` are aware times; the envelope has the milliseconds between them, at
    least 0.
    """
    return SuccessResponse(
        data={} if data is None else data,
        metadata=ResponseMetadata(
            timestamp=now,
            processing_time_ms=max(0, round((now - started).total_seconds() * 1000)),
            request_id=request_id,
        ),
    )


def failure(
    error: Exception,
    *,
    now: datetime,
    request_id: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> ErrorResponse:
    """Wrap an error, under one of C's codes.

    An error of this library keeps its message, which contains no secret; the details have its
    ``memory_id`` and ``errors`` (``loc``, ``msg``, ``type``, ``input``), and what the caller adds.
    Any other error becomes an INTERNAL_ERROR without further details: its message was not written
    for users.
    """
    if isinstance(error, PydanticValidationError):
        error = ValidationError.from_pydantic(error)
    code, message = ErrorCode.INTERNAL_ERROR, _UNEXPECTED
    shown = dict(details or {})
    if isinstance(error, AgentMemoryError):
        is_listed = error.code in list(ErrorCode)
        code, message = ErrorCode(error.code) if is_listed else code, _printable(with_notes(error))
        shown = {**_details(error), **shown}
    return ErrorResponse(
        error=ErrorDetail(
            code=code,
            message=message,
            details=shown or None,
            timestamp=now,
            request_id=request_id,
        )
    )


def _details(error: AgentMemoryError) -> dict[str, Any]:
    """Return what an error carries besides its message, as JSON data."""
    details: dict[str, Any] = {}
    memory_id = getattr(error, "memory_id", None)
    if isinstance(memory_id, str) and memory_id:
        details["memory_id"] = without_secrets(_shortened(memory_id))
    if isinstance(error, ValidationError) and (faults := error.errors()):
        details["errors"] = [_fault(fault) for fault in faults]
    return details


def _fault(fault: Mapping[str, Any]) -> dict[str, Any]:
    loc = [part if isinstance(part, int) else _shortened(str(part)) for part in fault["loc"]]
    fields: dict[str, Any] = {"loc": loc}
    fields |= {name: _printable(str(fault[name])) for name in ("msg", "type") if name in fault}
    if "input" in fault:
        fields["input"] = _shown(fault["input"])
    return fields


def _shown(value: object) -> object:
    if isinstance(value, str):
        return _shortened(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinity and no NaN
    return described(value)


def _shortened(text: str) -> str:
    text = _printable(text)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def _printable(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="backslashreplace").decode()

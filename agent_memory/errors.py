"""Every error that the library raises: one tree under ``AgentMemoryError``.

Each class carries a ``code``, the one that document C lists for it, and each message says what
was wrong, with the value, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import ValidationError as PydanticValidationError


class AgentMemoryError(Exception):
    """The base of all errors of this library."""

    code: ClassVar[str] = "INTERNAL_ERROR"


class ValidationError(AgentMemoryError, ValueError):
    """A value that was given cannot be accepted. Nothing was stored or changed.

    ``errors()`` lists each fault as a mapping with ``loc`` (a tuple: where), ``msg`` (what),
    ``type`` and ``input`` (the value), as Pydantic does.
    """

    code: ClassVar[str] = "VALIDATION_ERROR"

    def __init__(self, message: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self._errors = [dict(error) for error in errors]

    @classmethod
    def of(
        cls, field: str, message: str, value: object, *, at: Sequence[str | int] = ()
    ) -> ValidationError:
        """Make the error for one field; ``at`` goes before its name."""
        fault = {"loc": (*at, field), "msg": message, "type": "value_error", "input": value}
        # A lone surrogate in a field's name must not keep the message from being printed.
        printable = f"{field}: {message}".encode(errors="backslashreplace").decode()
        return cls(printable, [fault])

    @classmethod
    def from_pydantic(
        cls, error: PydanticValidationError, *, at: Sequence[str | int] = ()
    ) -> ValidationError:
        """Turn Pydantic's error into ours; ``at`` goes before each place."""
        faults: list[dict[str, Any]] = [
            {
                **fault,
                "loc": (*at, *fault["loc"]),
                "msg": fault["msg"].removeprefix("Value error, "),
            }
            for fault in error.errors(include_url=False, include_context=False)
        ]
        lines = [
            f"{'.'.join(str(part) for part in fault['loc']) or 'value'}: {fault['msg']}"
            f" (got {_shortened(fault['input'])})"
            for fault in faults
        ]
        return cls("; ".join(lines), faults)

    def errors(self) -> list[dict[str, Any]]:
        """List the faults, one mapping each."""
        return [dict(error) for error in self._errors]


class DuplicateMemory(ValidationError):
    """A memory that says the same is there, and ``on_duplicate`` is ``refuse``.

    ``memory_id`` is that of the one that is there: update it, or store with
    ``on_duplicate="keep"``. Of several that were refused, ``errors()`` has each with its place.
    """

    def __init__(
        self, message: str, errors: Sequence[Mapping[str, Any]] = (), *, memory_id: str = ""
    ) -> None:
        super().__init__(message, errors)
        self.memory_id = memory_id


class RejectedContent(ValidationError):
    """The memory holds a value that was rejected: see ``AgentMemory.reject``. Nothing was stored.

    Neither the message nor ``errors()`` has the value.
    """


class LimitReached(ValidationError):
    """A hard limit of the agent's retention policy would be passed. Nothing was stored."""


class MissingAgentIdentity(AgentMemoryError):
    """Nobody said which agent's memory is meant."""

    code: ClassVar[str] = "INVALID_SESSION"


class MemoryNotFound(AgentMemoryError, LookupError):
    """There is no memory with that id."""

    code: ClassVar[str] = "MEMORY_NOT_FOUND"

    def __init__(self, memory_id: str) -> None:
        super().__init__(
            f"There is no memory {_shortened(memory_id)}. `recent` and `search` list the ids."
        )
        self.memory_id = memory_id


class PermissionDenied(AgentMemoryError):
    """The session may not do this."""

    code: ClassVar[str] = "PERMISSION_DENIED"


class RateLimitExceeded(AgentMemoryError):
    """Too much was asked in too short a time."""

    code: ClassVar[str] = "RATE_LIMIT_EXCEEDED"


class ProviderError(AgentMemoryError):
    """A language model or embedding service failed."""

    code: ClassVar[str] = "PROVIDER_ERROR"


class EmbeddingError(ProviderError):
    """An embedding could not be had. The memory itself is safe."""


class ConfigurationError(AgentMemoryError):
    """The settings contradict each other or the file."""

    code: ClassVar[str] = "VALIDATION_ERROR"


class MigrationError(AgentMemoryError):
    """A move to another storage backend or schema stopped. The store is as it was."""


class StorageError(AgentMemoryError):
    """The file could not be read or written."""


class StorageLocked(StorageError):
    """Another process held the file for longer than the busy timeout."""


class StorageFull(StorageError):
    """The disk is full. What was stored before is safe and can be read."""


class StorageReadOnly(StorageError):
    """The file, its directory or this handle cannot be written."""


class StorageUnavailable(StorageError):
    """The file cannot be opened: it is missing, a directory, a link, or not permitted."""


class StorageCorrupt(StorageError):
    """The file is damaged."""


class NotAMemoryFile(StorageError):
    """The file is something else: not a database, or another program's."""


class NewerSchema(StorageError):
    """A newer version of this library made the file."""


class StorageClosed(StorageError):
    """The store was used after ``close``."""


def _shortened(value: object) -> str:
    """Show a value in an error message, in 80 characters at most."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."

"""Every error that the library raises: one tree under ``AgentMemoryError``.

Each class carries a ``code``, the one that document C lists for it, and each message says what
was wrong, with the value, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from pydantic import ValidationError as PydanticValidationError

_SAID_BY_USERS: Final = frozenset(
    "content tags metadata task_metadata outcome blockers item items texts session session_id"
    " user_id run_id created_by_session".split()
)
"""Fields whose values are described in errors, not shown: anything may stand in them."""


class AgentMemoryError(Exception):
    """The base of all errors of this library. No message shows a key that has a known format."""

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, *details: object) -> None:
        super().__init__(*map(without_secrets, details))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be pickled and copied as it is: another process must be told the same.

        By itself Python calls the constructor with the message, which not every kind takes.
        """
        return _remade, (type(self), self.args), self.__dict__


class ValidationError(AgentMemoryError, ValueError):
    """A value that was given cannot be accepted. Nothing was stored or changed.

    ``errors()`` lists each fault as a mapping with ``loc`` (a tuple: where), ``msg`` (what),
    ``type`` and ``input`` (the value), as Pydantic does. Contents, tags, metadata and what else may
    hold a secret are described instead: "a text of 12 characters".
    """

    code: ClassVar[str] = "VALIDATION_ERROR"

    def __init__(self, message: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self._errors = [
            {name: without_secrets(value) for name, value in error.items()} for error in errors
        ]

    @classmethod
    def of(
        cls,
        field: str,
        message: str,
        value: object,
        *,
        at: Sequence[str | int] = (),
        kind: str = "value_error",
    ) -> ValidationError:
        """Make the error for one field; ``at`` goes before its name, ``kind`` is its type."""
        is_shown = field.partition("[")[0] not in _SAID_BY_USERS
        shown = value if is_shown else described(value)
        fault = {"loc": (*at, field), "msg": message, "type": kind, "input": shown}
        # A lone surrogate in a field's name must not keep the message from being printed.
        printable = f"{field}: {message}".encode(errors="backslashreplace").decode()
        return cls(printable, [fault])

    @classmethod
    def from_pydantic(
        cls,
        error: PydanticValidationError,
        *,
        at: Sequence[str | int] = (),
        words: Mapping[str, str] | None = None,
    ) -> ValidationError:
        """Turn Pydantic's error into ours; ``at`` goes before each place.

        ``words`` has messages of the caller's own by the type of the fault. They show no value.
        """
        faults = []
        lines = []
        for fault in error.errors(include_url=False, include_context=False):
            loc = (*at, *fault["loc"])
            own = (words or {}).get(fault["type"])
            message = own or fault["msg"].removeprefix("Value error, ")
            is_shown = _is_shown(fault)
            value = fault["input"] if is_shown else described(fault["input"])
            faults.append({**fault, "loc": loc, "msg": message, "input": value})
            got = "" if own else f" (got {_shortened(value) if is_shown else value})"
            place = ".".join(f"{part!s:.80}" for part in loc)  # a key may be a text of megabytes
            lines.append(f"{place or 'value'}: {message}{got}")
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

    def without_details(self) -> RejectedContent:
        """Return it without the owner's reason, for who may not know it."""
        return RejectedContent("it holds a value that may not be stored: nothing was stored")


class SecretFound(ValidationError):
    """The memory holds what looks like a secret, and ``on_secret`` is ``refuse``.

    Nothing was stored. Neither the message nor ``errors()`` has the secret.
    """

    def without_details(self) -> SecretFound:
        """Return it without the setting that lets it pass, for who may not change that."""
        kinds = ", ".join(self._errors[0]["ctx"]["kinds"])
        message = f"it looks like it holds a secret ({kinds}): leave that out"
        return SecretFound(message, [{**fault, "msg": message} for fault in self._errors])


class LimitReached(ValidationError):
    """A hard limit of the agent's retention policy would be passed. Nothing was stored."""

    def without_details(self) -> LimitReached:
        """Return it without how much there is of what others store, for who may not know it."""
        return LimitReached(
            "the agent's retention policy has no room for more memories: nothing was stored"
        )


class MissingAgentIdentity(AgentMemoryError):
    """Nobody said which agent's memory is meant."""

    code: ClassVar[str] = "INVALID_SESSION"


class InvalidSession(ValidationError):
    """Who is meant (user, agent, run) was not said, or said in a way that cannot be."""

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


class EmbeddingRefused(EmbeddingError):
    """The service refuses these texts, and would refuse them again.

    One text of a batch may be the cause: ask for the halves of the batch, and leave out what is
    refused by itself.
    """


class ConfigurationError(AgentMemoryError):
    """The settings contradict each other or the file."""

    code: ClassVar[str] = "VALIDATION_ERROR"


class MigrationError(AgentMemoryError):
    """A move to another storage backend or schema stopped. The store is as it was."""


class StorageError(AgentMemoryError):
    """The file could not be read or written.

    ``is_undone`` says that the server is known to have kept nothing of what was asked, and would
    do it if it were asked again: it broke a deadlock, or the connection was lost before a commit.
    """

    is_undone: bool = False


class StorageLocked(StorageError):
    """Another process held the file for longer than the busy timeout."""


class StorageFull(StorageError):
    """The disk is full. What was stored before is safe and can be read."""


class StorageReadOnly(StorageError):
    """The file, its directory or this handle cannot be written.

    ``is_asked_for`` says that whoever opened the memory asked to only read it.
    """

    is_asked_for: bool = False


class StorageUnavailable(StorageError):
    """The file cannot be opened: it is missing, a directory, a link, or not permitted."""


class AgentNotFound(StorageUnavailable):
    """The agent has no memory file."""

    code: ClassVar[str] = "AGENT_NOT_FOUND"


class StorageCorrupt(StorageError):
    """The file is damaged."""


class StorageUntrusted(StorageError):
    """The file holds a trigger, or a changed view or table, that is not this library's.

    It can be read. Nothing is written, for that could run what somebody else put there. The message
    names it, and says how to get rid of it.
    """


class NotAMemoryFile(StorageError):
    """The file is something else: not a database, or another program's."""


class NewerSchema(StorageError):
    """A newer version of this library made the file."""


class StorageClosed(StorageError):
    """The store was used after ``close``."""


def opened_read_only(location: object) -> StorageReadOnly:
    """Return the error of a memory that was opened with ``read_only=True``."""
    error = StorageReadOnly(f"{location} was opened read-only: open it without read_only")
    error.is_asked_for = True
    return error


def _remade(kind: type[AgentMemoryError], details: tuple[object, ...]) -> AgentMemoryError:
    return kind.__new__(kind, *details)


def with_notes(error: BaseException) -> str:
    """Return an error's text with its notes: advice that belongs to no place that quotes it."""
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


def other_agent(location: object, agent_id: str, expected: str) -> ConfigurationError:
    """Return the error for what holds the memories of another agent than was expected."""
    return ConfigurationError(
        f"{location} holds the memories of agent {agent_id!r}, not of {expected!r}:"
        f" use the agent id {agent_id!r}, or AgentMemory.open(path)"
    )


_MOST_BITS: Final = 1024


def described(value: object) -> object:
    """Return what may be said in an error of a value that nobody should see: its size.

    A number, a truth and ``None`` are themselves; a number of thousands of digits cannot be shown.
    """
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length():,} bits"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return f"a text of {len(value):,} characters"
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return f"a {type(value).__name__} of {len(value):,}"
    return f"a {type(value).__name__}"


def _is_shown(fault: Mapping[str, Any]) -> bool:
    """Return whether a value may be shown: not what users said, nor what has no place here."""
    is_known = fault["type"] not in ("extra_forbidden", "missing")
    return is_known and _SAID_BY_USERS.isdisjoint(fault["loc"])


def without_secrets(value: Any) -> Any:  # noqa: ANN401 - whatever is said
    """Return what is said with what looks like a secret masked, if it is a text."""
    if not isinstance(value, str):
        return value
    # An error is seldom made, and most starts make none.
    from agent_memory.text.secrets import mask_secrets  # noqa: PLC0415

    return mask_secrets(value)


def _shortened(value: object) -> str:
    """Show a value in an error message, in 80 characters at most."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deep to be shown"
    except ValueError:  # of a number of thousands of digits, itself or in it
        return str(described(value))
    return text if len(text) <= 80 else text[:77] + "..."

"""Every error that the library raises: one tree under ``AgentMemoryError``.

Each class carries a ``code``, the one that document C lists for it, and each message says what
was wrong, with the value, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from pydantic import ValidationError as PydanticValidationError

_SAID_BY_USERS: Final = frozenset(
    "content tags metadata task_metadata outcome blockers item items texts session session_id"
    " user_id run_id created_by_session".split()
)
"""Fields whose values errors describe and do not show, because they may contain anything."""

_LIMITS: Final = {
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "more than",
    "less than": "less than",
}


class AgentMemoryError(Exception):
    """The base class of all errors of this library. Messages mask keys in a known format."""

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, *details: object) -> None:
        super().__init__(*map(without_secrets, details))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the error as it is, so that another process gets the same one.

        By default Python calls the constructor with the message, which not every subclass accepts.
        """
        return _remade, (type(self), self.args), self.__dict__


class ValidationError(AgentMemoryError, ValueError):
    """A value cannot be accepted. Nothing was stored or changed.

    ``errors()`` lists each fault as a mapping with ``loc`` (a tuple: where), ``msg`` (what),
    ``type`` and ``input`` (the value), as Pydantic does. Contents, tags, metadata and other values
    that may hold a secret are described instead of shown: "a string of 12 characters".
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
        """Return the error for one field; ``at`` precedes its name, ``kind`` is its ``type``."""
        is_shown = field.partition("[")[0] not in _SAID_BY_USERS
        shown = value if is_shown else described(value)
        fault = {"loc": (*at, field), "msg": message, "type": kind, "input": shown}
        # A lone surrogate in a field's name must not keep the message from being printed.
        place = ".".join(map(str, (*at, field)))
        printable = f"{place}: {message}".encode(errors="backslashreplace").decode()
        return cls(printable, [fault])

    @classmethod
    def from_pydantic(
        cls,
        error: PydanticValidationError,
        *,
        at: Sequence[str | int] = (),
        words: Mapping[str, str] | None = None,
        fields: Collection[str] = (),
    ) -> ValidationError:
        """Convert Pydantic's error to ours; ``at`` is put before each ``loc``.

        ``words`` maps types of faults to the caller's own messages, which show no value. ``fields``
        are those that the model has, for a key that it does not know.
        """
        faults = []
        lines = []
        for fault in error.errors(include_url=False, include_context=False):
            loc = (*at, *fault["loc"])
            own = (words or {}).get(fault["type"])
            message = own or in_plain_words(fault["msg"])
            if fields and fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
                message = f"is not permitted: the fields are {', '.join(fields)}"
            is_shown = _is_shown(fault)
            value = fault["input"] if is_shown else described(fault["input"])
            faults.append({**fault, "loc": loc, "msg": message, "input": value})
            # A check of several fields names them; all of its model would be Python's notation.
            is_whole = fault["type"] == "value_error" and isinstance(value, Mapping)
            # If a field is missing, the value is what has the other fields.
            has_none = own or is_whole or fault["type"] == "missing"
            got = "" if has_none else f" (got {shortened(value) if is_shown else value})"
            place = ".".join(f"{part!s:.80}" for part in loc)  # a key may be a text of megabytes
            lines.append(f"{place or 'value'}: {message}{got}")
        return cls("; ".join(lines), faults)

    def errors(self) -> list[dict[str, Any]]:
        """Return the faults, one mapping each."""
        return [dict(error) for error in self._errors]


class DuplicateMemory(ValidationError):
    """A memory that says the same already exists, and ``on_duplicate`` is ``refuse``.

    ``memory_id`` is the id of the existing memory: update it, or store with
    ``on_duplicate="keep"``. If several memories were refused, ``errors()`` lists each with its
    position.
    """

    def __init__(
        self, message: str, errors: Sequence[Mapping[str, Any]] = (), *, memory_id: str = ""
    ) -> None:
        super().__init__(message, errors)
        self.memory_id = memory_id


class RejectedContent(ValidationError):
    """The memory contains a text rejected with ``AgentMemory.reject``. Nothing was stored.

    Neither the message nor ``errors()`` contains that text.
    """

    def without_details(self) -> RejectedContent:
        """Return the error without the owner's reason, for a caller who may not know it."""
        return RejectedContent("it contains a value that may not be stored: nothing was stored")


class SecretFound(ValidationError):
    """The memory contains what looks like a secret, and ``on_secret`` is ``refuse``.

    Nothing was stored. Neither the message nor ``errors()`` contains the secret.
    """

    def without_details(self) -> SecretFound:
        """Return the error without the setting that allows it, for a caller who cannot set it."""
        kinds = ", ".join(self._errors[0]["ctx"]["kinds"])
        message = f"it seems to contain a secret ({kinds}): leave that out"
        return SecretFound(message, [{**fault, "msg": message} for fault in self._errors])


class LimitReached(ValidationError):
    """A hard limit of the agent's retention policy would be exceeded. Nothing was stored."""

    def without_details(self) -> LimitReached:
        """Return the error without how much others store, for a caller who may not know it."""
        return LimitReached(
            "the agent's retention policy has no room for more memories: nothing was stored"
        )


class MissingAgentIdentity(AgentMemoryError):
    """No agent is named, so it is unknown whose memory is meant."""

    code: ClassVar[str] = "INVALID_SESSION"


class InvalidSession(ValidationError):
    """The user, agent or run of a session is missing, invalid or the wrong one."""

    code: ClassVar[str] = "INVALID_SESSION"


class MemoryNotFound(AgentMemoryError, LookupError):
    """There is no memory with that id."""

    code: ClassVar[str] = "MEMORY_NOT_FOUND"

    def __init__(self, memory_id: str) -> None:
        super().__init__(
            f"There is no memory {shortened(memory_id)}. `recent` and `search` list the ids."
        )
        self.memory_id = memory_id


class PermissionDenied(AgentMemoryError):
    """The session is not allowed to do this."""

    code: ClassVar[str] = "PERMISSION_DENIED"


class RateLimitExceeded(AgentMemoryError):
    """Too many requests in too short a time."""

    code: ClassVar[str] = "RATE_LIMIT_EXCEEDED"


class ProviderError(AgentMemoryError):
    """A language model or embedding service failed."""

    code: ClassVar[str] = "PROVIDER_ERROR"


class EmbeddingError(ProviderError):
    """An embedding could not be obtained. The memory itself is safe."""


class EmbeddingRefused(EmbeddingError):
    """The service refuses these texts, and would refuse them again.

    A single text of the batch may be the cause: retry each half of the batch, and leave out a text
    that is refused on its own.
    """


class ConfigurationError(AgentMemoryError):
    """A setting is invalid or contradicts another one or the file, or a package is missing."""

    code: ClassVar[str] = "VALIDATION_ERROR"


class MigrationError(AgentMemoryError):
    """A migration to another storage backend or schema failed. The store is as it was before."""


class StorageError(AgentMemoryError):
    """The file could not be read or written.

    ``is_undone`` means that the server is known to have kept nothing of the transaction, and that
    it can be retried: the server broke a deadlock, or the connection was lost before the commit.
    """

    is_undone: bool = False


class StorageLocked(StorageError):
    """Another process held the file for longer than the busy timeout."""


class StorageFull(StorageError):
    """The disk is full. What was stored before is safe and can be read."""


class StorageReadOnly(StorageError):
    """The file, its directory or this handle is read-only.

    ``is_asked_for`` means that the caller opened the memory to read it only.
    """

    is_asked_for: bool = False


class StorageUnavailable(StorageError):
    """The file cannot be opened: it is missing, a directory or a link, or access is denied."""


class AgentNotFound(StorageUnavailable):
    """The agent has no memory file."""

    code: ClassVar[str] = "AGENT_NOT_FOUND"


class StorageCorrupt(StorageError):
    """The file is damaged."""


class StorageUntrusted(StorageError):
    """The file contains a trigger, or a changed view or table, that is not this library's.

    It can be read, but nothing is written, because that could run code that somebody else put
    there. The message names the object, and says how to remove it.
    """


class NotAMemoryFile(StorageError):
    """The file is something else: not a database, or another program's database."""


class NewerSchema(StorageError):
    """A newer version of this library created the file."""


class StorageClosed(StorageError):
    """The store was used after ``close``."""


def opened_read_only(location: object) -> StorageReadOnly:
    """Return the error for a memory that was opened with ``read_only=True``."""
    error = StorageReadOnly(f"{location} was opened read-only: open it without read_only")
    error.is_asked_for = True
    return error


def _remade(kind: type[AgentMemoryError], details: tuple[object, ...]) -> AgentMemoryError:
    return kind.__new__(kind, *details)


def with_notes(error: BaseException) -> str:
    """Return an error's text followed by its notes, the advice that is not part of its message."""
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


def other_agent(location: object, agent_id: str, expected: str) -> ConfigurationError:
    """Return the error for a location that holds the memories of an agent other than expected."""
    import shlex  # noqa: PLC0415 - seldom used

    return ConfigurationError(
        f"{location} holds the memories of agent {agent_id!r}, not of {expected!r}:"
        f" if its folder was renamed, name it {agent_id!r} again, or open the file by its path,"
        f" `--db {shlex.quote(str(location))}` in a shell,"
        f" AgentMemory.open({str(location)!r}) in Python"
    )


_MOST_BITS: Final = 1024


def in_plain_words(message: str) -> str:
    """Return Pydantic's message about a value, with a limit as our own messages have it."""
    message = message.removeprefix("Value error, ")
    for words, plain in _LIMITS.items():
        message = message.replace(f"Input should be {words}", f"must be {plain}")
    return message


def described(value: object) -> object:
    """Describe a value that must not be shown in an error, by its type and size.

    Numbers, booleans and ``None`` are returned as they are, except for an integer of thousands of
    digits, which cannot be printed.
    """
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length():,} bits"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return f"a string of {len(value):,} characters"
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return f"a {type(value).__name__} of {len(value):,}"
    return f"a {type(value).__name__}"


def _is_shown(fault: Mapping[str, Any]) -> bool:
    """Return whether a value may be shown: not what users wrote, nor unknown or missing fields."""
    is_known = fault["type"] not in ("extra_forbidden", "missing")
    return is_known and _SAID_BY_USERS.isdisjoint(fault["loc"])


def without_secrets(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return a text with apparent secrets masked; any other value is returned as it is."""
    if not isinstance(value, str):
        return value
    # Errors are rare: most processes never need this module.
    from agent_memory.text.secrets import mask_secrets  # noqa: PLC0415

    return mask_secrets(value)


def shortened(value: object) -> str:
    """Return the representation of a value for an error message, at most 80 characters long."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply to be shown"
    except ValueError:  # it is, or contains, a number of thousands of digits
        return str(described(value))
    return text if len(text) <= 80 else text[:77] + "..."

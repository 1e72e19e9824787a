"""The messages a model gets for a failed call: it has the tools, and neither Python nor a shell.

The library's errors say what an owner can do: lift a rejection, store a secret all the same. An
agent with a shell beside the tools would do it. So its messages name only what its tools can do.
"""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError as PydanticValidationError

from agent_memory import (
    AgentMemoryError,
    AgentNotFound,
    DuplicateMemory,
    LimitReached,
    MemoryNotFound,
    RejectedContent,
    SecretFound,
    StorageReadOnly,
    ValidationError,
)

_NO_OBJECT: Final = "must be a JSON object"
_WORDS: Final = {
    "missing": "is required",
    "extra_forbidden": "unknown argument",
    "model_type": _NO_OBJECT,
    "dict_type": _NO_OBJECT,
}
"""JSON terms in place of Pydantic's Python ones."""
_FOR_THE_USER: Final[dict[type[AgentMemoryError], str]] = {
    StorageReadOnly: "this memory can only be read here: only the user can have it changed",
    AgentNotFound: "there is no memory here, and none may be created: only the user can allow it",
}
"""Messages for errors that no tool can resolve: the library's own say how else to open the
memory."""


def argument_error(error: PydanticValidationError) -> ValidationError:
    """Return the error for arguments that a tool does not accept."""
    return ValidationError.from_pydantic(error, words=_WORDS)


def message_for_model(error: AgentMemoryError) -> str:
    """Return an error's message for a model; it says what the model's tools can do, if anything."""
    if isinstance(error, MemoryNotFound):
        known = "memory_search and memory_list_recent show the ids"
        return f"there is no memory {error.memory_id!r:.80}: {known}"
    if isinstance(error, DuplicateMemory):
        return f"it is already stored, as {error.memory_id}: memory_update changes that one"
    if isinstance(error, SecretFound):
        return str(error.without_details())
    if isinstance(error, RejectedContent):
        return f"{error.without_details()}; the owner of this memory does not want it back"
    if isinstance(error, LimitReached):
        return (
            f"{error.without_details()}; memory_forget makes room: ask the user what may be deleted"
        )
    message = _FOR_THE_USER.get(type(error)) or str(error)
    cause, _, advice = message.rpartition(": ")
    own = "memory_update or memory_forget it, or call this with still_true: true"
    return f"{cause}: {own}" if "dismiss the review" in advice else message

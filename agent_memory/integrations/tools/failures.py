"""What a model is told of a call that failed: it has the tools, and neither Python nor a shell.

The errors of the library say what an owner can do: lift a rejection, store a secret all the same.
An agent that has a shell beside the tools would do it. So it is told what its tools can do.
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
    "missing": "is needed",
    "extra_forbidden": "there is no such argument",
    "model_type": _NO_OBJECT,
    "dict_type": _NO_OBJECT,
}
"""Of JSON, where Pydantic speaks of Python."""
_FOR_THE_USER: Final[dict[type[AgentMemoryError], str]] = {
    StorageReadOnly: "this memory can only be read here: only the user can have it changed",
    AgentNotFound: "there is no memory here, and none may be made: only the user can allow it",
}
"""Of what no tool can do anything about: the library's errors say how it is opened otherwise."""


def argument_error(error: PydanticValidationError) -> ValidationError:
    """Return the error for arguments that a tool does not take."""
    return ValidationError.from_pydantic(error, words=_WORDS)


def message_for_model(error: AgentMemoryError) -> str:
    """Return what a model is told of an error: where its tools can do something, what."""
    if isinstance(error, MemoryNotFound):
        known = "memory_search and memory_list_recent show the ids"
        return f"there is no memory {error.memory_id!r:.80}: {known}"
    if isinstance(error, DuplicateMemory):
        return f"it is there already, as {error.memory_id}: memory_update changes that one"
    if isinstance(error, SecretFound):
        return str(error.without_details())
    if isinstance(error, RejectedContent):
        return f"{error.without_details()}; the owner of this memory does not want it back"
    if isinstance(error, LimitReached):
        return f"{error.without_details()}; memory_forget makes room: ask the user what may go"
    return _FOR_THE_USER.get(type(error)) or str(error)

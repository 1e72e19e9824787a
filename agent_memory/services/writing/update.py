"""Updates a memory in one transaction, and records the session that did it in the history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent_memory.errors import MemoryNotFound, ValidationError
from agent_memory.services.erasure.tombstones import Tombstones
from agent_memory.services.policies.admission import Admission
from agent_memory.storage.engine import Engine
from agent_memory.storage.memory_values import is_same_value

if TYPE_CHECKING:
    from agent_memory.models.agent import AgentConfig
    from agent_memory.models.memory import Memory


def update(
    engine: Engine,
    memory: Memory,
    changes: Mapping[str, Any],
    *,
    now: datetime,
    settings: AgentConfig | None = None,
) -> None:
    """Change fields of a memory; nothing is written if all of them have these values already.

    Must run inside ``write()``. Raises ``RejectedContent`` and ``LimitReached``, as storing does.
    """
    effective = changed_values(memory, changes)
    if not effective:
        return
    updated = memory.model_copy(update=effective)
    admission = Admission(engine, settings)
    admission.refuse(updated, fields=effective.keys())
    admission.refuse_move(memory, updated)
    engine.memories.update(row_id_of(engine, memory.id), effective, now=now)
    if "content" in effective or "user_id" in effective:
        Tombstones(engine).lift(updated.id, updated.content, updated.user_id)


def memory_of(engine: Engine, memory_id: str) -> Memory:
    """Return a memory to change, or raise ``MemoryNotFound``."""
    memory = engine.memories.get(memory_id)
    if memory is None:
        raise MemoryNotFound(memory_id)
    return memory


def row_id_of(engine: Engine, memory_id: str) -> int:
    """Return the row of a memory, or raise ``MemoryNotFound``."""
    row_id = engine.memories.row_id_of(memory_id)
    if row_id is None:
        raise MemoryNotFound(memory_id)
    return row_id


def check_version(memory: Memory, expected: int | None) -> None:
    """Raise ``ValidationError`` if a memory was changed since the caller read it."""
    if expected is not None and memory.version != expected:
        message = f"the memory is at version {memory.version}: get it again, then update"
        raise ValidationError.of("if_version", message, expected)


def changed_values(memory: Memory, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from those of the memory, as the file holds them."""
    return {
        name: value
        for name, value in values.items()
        if not is_same_value(getattr(memory, name), value)
    }


@contextlib.contextmanager
def signed(engine: Engine, memory_id: str, session_id: str, now: datetime) -> Iterator[None]:
    """Record in the history that this session made the changes of the body."""
    before = engine.history.last_change()
    yield
    engine.history.sign(memory_id, since=before, session_id=session_id, now=now)


@contextlib.contextmanager
def recorded(engine: Engine, verb: str, session_id: str, now: datetime) -> Iterator[None]:
    """Sign all changes of the body, and record them as one operation, if there are any."""
    before = engine.operations.last_number()
    yield
    engine.history.sign_all(since=before, session_id=session_id, now=now)
    engine.operations.record(verb, since=before, session_id=session_id, now=now)

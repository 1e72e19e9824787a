"""Changing fields of a memory, inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent_memory.models.agent import AgentConfig
from agent_memory.models.memory import Memory
from agent_memory.services.policies.admission import Admission
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import is_same_value


def change(
    engine: Engine,
    row_id: int,
    there: Memory,
    changes: Mapping[str, Any],
    *,
    now: datetime,
    settings: AgentConfig | None = None,
) -> bool:
    """Give a memory some other values, and return whether any was another than it had.

    Must run inside ``write()``. Raises ``RejectedContent`` and ``LimitReached``, as storing does.
    """
    effective = {
        name: value
        for name, value in changes.items()
        if not is_same_value(getattr(there, name), value)
    }
    if not effective:
        return False
    wanted = there.model_copy(update=effective)
    admission = Admission(engine, settings)
    admission.refuse(wanted, fields=effective.keys())
    admission.refuse_move(there, wanted)
    engine.memories.update(row_id, effective, now=now)
    return True

"""All groups of verbs together: what a session narrows, and ``AgentMemory`` offers."""

from __future__ import annotations

from agent_memory.api.conversations import ConversationVerbs
from agent_memory.api.lifecycle import LifecycleVerbs
from agent_memory.api.maintenance import MaintenanceVerbs
from agent_memory.api.moving import MoveVerbs
from agent_memory.api.scratchpad import ScratchpadVerbs


class MemoryVerbs(ConversationVerbs, ScratchpadVerbs, MaintenanceVerbs, LifecycleVerbs, MoveVerbs):
    """The verbs of an open memory, of every group."""

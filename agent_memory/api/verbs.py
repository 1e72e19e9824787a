"""All groups of verbs together: what ``AgentMemory`` offers, and a session narrows."""

from __future__ import annotations

from agent_memory.api.conversations import ConversationVerbs
from agent_memory.api.lifecycle import LifecycleVerbs
from agent_memory.api.maintenance import MaintenanceVerbs
from agent_memory.api.scratchpad import ScratchpadVerbs
from agent_memory.api.transfer import TransferVerbs


class MemoryVerbs(
    ConversationVerbs, ScratchpadVerbs, MaintenanceVerbs, LifecycleVerbs, TransferVerbs
):
    """The verbs of an open memory, of every group."""

"""Anthropic's memory tool for one agent's memory. It needs the extra ``anthropic``.

``AgentMemoryTool`` is for the client, ``AsyncAgentMemoryTool`` for the asynchronous one. The model
sees files under ``/memories``; each is a memory in the agent's file, so it can be searched,
exported and undone, and is in the history, like any other.
"""

from agent_memory.integrations.registry import missing_package

try:
    from agent_memory.integrations.anthropic_memory.tool import (
        AgentMemoryTool,
        AsyncAgentMemoryTool,
    )
except ModuleNotFoundError as error:
    raise missing_package("anthropic_memory", error) from error

__all__ = ["AgentMemoryTool", "AsyncAgentMemoryTool"]

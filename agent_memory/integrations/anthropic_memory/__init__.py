"""Anthropic's memory tool over one agent's memory. It needs the extra ``anthropic``.

``AgentMemoryTool`` is for the client, ``AsyncAgentMemoryTool`` for the asynchronous one. The model
sees files under ``/memories``; each is a memory in the agent's file, so that it is found by our
searches, exported, kept in the history and undone like any other.
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

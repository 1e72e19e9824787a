"""LangGraph's store over one agent's memory. It needs the extra ``langgraph``.

``AgentMemoryStore`` keeps each item as a memory in the agent's file: it can be searched, exported
and undone, and is in the history, like any other. Its exact value is in the memory's metadata; the
content is its text, for searches.
"""

from agent_memory.integrations.registry import missing_package

try:
    from agent_memory.integrations.langgraph.store import AgentMemoryStore
except ModuleNotFoundError as error:
    raise missing_package("langgraph", error) from error

__all__ = ["AgentMemoryStore"]

"""The tools that a model calls."""

from agent_memory.integrations.tools.arguments import MOST_RESULTS
from agent_memory.integrations.tools.definitions import TOOLS, Style, Tool
from agent_memory.integrations.tools.memory_tools import (
    DATA_NOTICE,
    MOST_CHARACTERS,
    MemoryTools,
    ToolResult,
)

__all__ = [
    "DATA_NOTICE",
    "MOST_CHARACTERS",
    "MOST_RESULTS",
    "TOOLS",
    "MemoryTools",
    "Style",
    "Tool",
    "ToolResult",
]

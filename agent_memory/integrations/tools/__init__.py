"""The tools that a model calls."""

from agent_memory.integrations.tools.arguments import MOST_RESULTS
from agent_memory.integrations.tools.memory_tools import (
    DATA_NOTICE,
    MOST_CHARACTERS,
    TOOLS,
    MemoryTools,
    Style,
    Tool,
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

"""The tools that a model calls."""

from agent_memory.integrations.tools.memory_tools import *  # noqa: F403

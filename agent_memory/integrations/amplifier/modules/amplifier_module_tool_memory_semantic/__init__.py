"""``tool-memory-semantic`` for bundles: all of it is in ``integrations.amplifier.tools``."""

from agent_memory.integrations.amplifier.tools import mount

__all__ = ["mount"]

__amplifier_module_type__ = "tool"

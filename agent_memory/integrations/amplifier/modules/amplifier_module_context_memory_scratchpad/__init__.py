"""``context-memory-scratchpad`` for bundles: it is all in ``integrations.amplifier.scratchpad``."""

from agent_memory.integrations.amplifier.context_manager import mount

__all__ = ["mount"]

__amplifier_module_type__ = "context"

"""``context-memory-scratchpad`` for bundles: see ``integrations.amplifier.context_manager``."""

from agent_memory.integrations.amplifier.context_manager import mount

__all__ = ["mount"]

__amplifier_module_type__ = "context"

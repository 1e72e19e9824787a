"""``hooks-memory-capture`` for bundles: all of it is in ``integrations.amplifier.capture_hook``."""

from agent_memory.integrations.amplifier.capture_hook import mount

__all__ = ["mount"]

__amplifier_module_type__ = "hook"

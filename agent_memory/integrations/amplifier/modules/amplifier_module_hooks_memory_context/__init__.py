"""``hooks-memory-context`` for bundles: all of it is in ``integrations.amplifier.context_hook``."""

from agent_memory.integrations.amplifier.context_hook import mount

__all__ = ["mount"]

__amplifier_module_type__ = "hook"

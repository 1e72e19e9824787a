"""The public API: ``AgentMemory`` and what belongs beside it. It validates and delegates."""

"""The facade: ``AgentMemory`` and what stands beside it. It validates, delegates and tells."""

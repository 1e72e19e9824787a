"""What is done with memories: one transaction a verb, whatever the engine."""

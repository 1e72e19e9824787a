"""The graph: entities that memories name, and their relationships."""

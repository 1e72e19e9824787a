"""Statistics of a memory: its growth, its use, its gaps, and recommendations."""

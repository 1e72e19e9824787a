"""Statistics of a memory: how it grew, how it is used, where its gaps are, what to look at."""

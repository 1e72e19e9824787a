"""A memory file and its embedder."""

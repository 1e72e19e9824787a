"""Embedders of a store, and migrations to other vectors. Only this folder uses ``embeddings``."""

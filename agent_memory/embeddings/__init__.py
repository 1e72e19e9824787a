"""Embedders: what turns texts into vectors, here or at a service, and what guards the library.

``registry.create_embedder`` makes one by its name, ``checked.CheckedEmbedder`` stands between any
embedder and the library, ``chain.EmbedderChain`` falls back from one to the next. The packages that
they need are imported at their first use.
"""

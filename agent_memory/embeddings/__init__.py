"""Embedders, which turn texts into vectors, locally or through a service.

``registry.create_embedder`` creates one by name, ``checked.CheckedEmbedder`` checks the answers of
any embedder for the library, ``chain.EmbedderChain`` falls back from one to the next. The packages
that they need are imported when first used.
"""

"""Embedders: what turns texts into vectors, here or at a service, and what guards the library.

``create_embedder`` makes one by its name, ``CheckedEmbedder`` stands between any embedder and the
library, ``EmbedderChain`` falls back from one to the next. The packages that they need are
imported at their first use.
"""

from agent_memory.embeddings.async_generator import EmbeddingGenerator
from agent_memory.embeddings.chain import EmbedderChain
from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.fastembed import FastEmbedEmbedder
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.refused import EmbeddingRefused
from agent_memory.embeddings.registry import (
    EmbedderSpec,
    create_embedder,
    embedder_names,
    refuse_unknown,
)
from agent_memory.embeddings.sentence_transformers import SentenceTransformerEmbedder
from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.embeddings.usage import EmbeddingUsage
from agent_memory.embeddings.wordllama import WordLlamaEmbedder

__all__ = [
    "CheckedEmbedder",
    "EmbedderChain",
    "EmbedderSettings",
    "EmbedderSpec",
    "EmbeddingGenerator",
    "EmbeddingRefused",
    "EmbeddingUsage",
    "FastEmbedEmbedder",
    "OpenAIEmbedder",
    "SentenceTransformerEmbedder",
    "WordLlamaEmbedder",
    "create_embedder",
    "embedder_names",
    "refuse_unknown",
]

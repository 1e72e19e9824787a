"""Embedders: what turns texts into vectors, here or at a service, and what guards the library.

``create_embedder`` makes one by its name, ``CheckedEmbedder`` stands between any embedder and the
library, ``EmbedderChain`` falls back from one to the next. The packages that they need are
imported at their first use.
"""

from agent_memory.embedders.chain import EmbedderChain
from agent_memory.embedders.checking import CheckedEmbedder
from agent_memory.embedders.fastembed import FastEmbedEmbedder
from agent_memory.embedders.generator import EmbeddingGenerator
from agent_memory.embedders.openai import OpenAIEmbedder
from agent_memory.embedders.refused import EmbeddingRefused
from agent_memory.embedders.registry import (
    EmbedderSpec,
    create_embedder,
    embedder_names,
    refuse_unknown,
)
from agent_memory.embedders.sentence_transformers import SentenceTransformerEmbedder
from agent_memory.embedders.settings import EmbedderSettings
from agent_memory.embedders.usage import EmbeddingUsage
from agent_memory.embedders.wordllama import WordLlamaEmbedder

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

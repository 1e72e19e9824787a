"""The words that memories are described with, and the limits that documents A to E set."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypedDict

from agent_memory.text.normalize import DuplicateGrade as DuplicateGrade  # noqa: PLC0414


class MemoryCategory(StrEnum):
    """What a memory is about (A). An agent's configuration may add its own words."""

    PREFERENCE = "preference"
    DECISION = "decision"
    DISCOVERY = "discovery"
    PATTERN = "pattern"
    TASK = "task"
    BUGFIX = "bugfix"
    NOTE = "note"
    QUESTION = "question"
    INSIGHT = "insight"

    @classmethod
    def all_values(cls) -> set[str]:
        """Return the nine words."""
        return {category.value for category in cls}


ORIGINAL_CATEGORY: Final = "original_category"
"""The key of the metadata that keeps the category that a note came with, unknown here."""


class ObservationType(StrEnum):
    """What an observation captured by a hook is about (A): the words of ``MemoryCategory``."""

    PREFERENCE = "preference"
    DECISION = "decision"
    DISCOVERY = "discovery"
    PATTERN = "pattern"
    TASK = "task"
    BUGFIX = "bugfix"
    NOTE = "note"
    QUESTION = "question"
    INSIGHT = "insight"


class MemoryKind(StrEnum):
    """How long a memory is meant to live (E)."""

    CORE = "core"
    LEARNING = "learning"
    TASK = "task"


class Importance(StrEnum):
    """How much a memory matters (E)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class TaskStatus(StrEnum):
    """How far a task is (E)."""

    COMPLETED = "completed"
    IN_PROGRESS = "in-progress"
    BLOCKED = "blocked"


class MemoryType(StrEnum):
    """What sort of record a memory is (C)."""

    STANDARD = "STANDARD"
    PROCEDURAL = "PROCEDURAL"
    GRAPH = "GRAPH"


class StorageBackend(StrEnum):
    """How an agent's memories are searched (A): by keyword, or by meaning too."""

    FILE = "file"
    VECTOR = "vector"


class MatchType(StrEnum):
    """How a search found a memory (A). By the graph alone, ours, only where that was asked for."""

    SCRATCHPAD = "scratchpad"
    VECTOR = "vector"
    KEYWORD = "keyword"
    PROMOTED = "promoted"
    GRAPH = "graph"


class HistoryEvent(StrEnum):
    """What happened to a memory."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class EventName(StrEnum):
    """What is told of a memory while it is used (B)."""

    STORED = "memory:stored"
    SEARCHED = "memory:searched"
    PROMOTED = "memory:promoted"
    MIGRATION_SUGGESTED = "memory:migration_suggested"
    MIGRATION_STARTED = "memory:migration_started"
    MIGRATION_PROGRESS = "memory:migration_progress"
    MIGRATION_COMPLETED = "memory:migration_completed"
    MIGRATION_FAILED = "memory:migration_failed"


class EmbeddingModelSpec(TypedDict):
    """What A says of an embedding model: numbers a vector, dollars, tokens a text."""

    dimensions: int
    cost_per_1k_tokens: float
    max_tokens: int


EMBEDDING_MODELS: Final[dict[str, EmbeddingModelSpec]] = {
    "text-embedding-3-small": {
        "dimensions": 1536,
        "cost_per_1k_tokens": 0.00002,
        "max_tokens": 8191,
    },
    "text-embedding-3-large": {
        "dimensions": 3072,
        "cost_per_1k_tokens": 0.00013,
        "max_tokens": 8191,
    },
}


class ModelTraits(TypedDict):
    """What was found out about an embedding model.

    ``similarity_floor`` is the cosine, seen from the middle of a store, below which two texts have
    nothing to do with each other: nine of ten questions that are foreign to a store have no memory
    above it. ``vector_weight`` is how much a cosine of 0.5 counts in a search, where the words
    count 1;
    ``texts_per_second`` about how many short texts it embeds.
    """

    similarity_floor: float
    vector_weight: float
    texts_per_second: int


_WORDLLAMA: Final[ModelTraits] = {
    "similarity_floor": 0.4,
    "vector_weight": 1.1,
    "texts_per_second": 3_000,
}
# Set with care, not measured: that needs a key. The pace is A's, 5 s a batch of 100.
_OPENAI: Final[ModelTraits] = {
    "similarity_floor": 0.4,
    "vector_weight": 0.8,
    "texts_per_second": 20,
}
MODEL_TRAITS: Final[dict[str, ModelTraits]] = {
    "wordllama-l2-supercat-256": _WORDLLAMA,
    "wordllama-l2-supercat-128": _WORDLLAMA,
    "wordllama-l2-supercat-64": _WORDLLAMA,
    "all-MiniLM-L6-v2": {
        "similarity_floor": 0.4,
        "vector_weight": 0.8,
        "texts_per_second": 100,
    },
    "text-embedding-3-small": _OPENAI,
    "text-embedding-3-large": _OPENAI,
}

DEFAULT_VECTOR_WEIGHT: Final = 0.8
"""The weight of a model of which none is known: MiniLM's."""
DEFAULT_SIMILARITY_FLOOR: Final = 0.4
"""Its floor, likewise."""

QDRANT_CONFIG: Final = {
    "collection_name": "memories",
    "vectors_config": {"size": 1536, "distance": "Cosine"},
}
"""A's vector collection, as the JSON that Qdrant takes. Nothing here needs it."""

DEFAULT_MEMORY_ROOT: Final = "~/.amplifier/memory"
SCRATCHPAD_FILENAME: Final = "scratchpad.yaml"
VECTOR_DB_FILENAME: Final = "memories.db"
METADATA_FILENAME: Final = "metadata.json"
BACKUP_SUFFIX: Final = ".backup"
EVENTS_FILENAME: Final = "events.jsonl"

MAX_MEMORY_CONTENT_LENGTH: Final = 10_000
"""Characters (code points) in a memory's content."""
MAX_SCRATCHPAD_SIZE: Final = 100
"""Entries."""
MAX_TAGS_PER_MEMORY: Final = 20
MAX_TAG_LENGTH: Final = 50
"""Characters."""

DEFAULT_SEARCH_LIMIT: Final = 5
MAX_SEARCH_LIMIT: Final = 100
DEFAULT_SIMILARITY_THRESHOLD: Final = 0.75
"""Of the gate: the share of the best similarity of a query that a good answer has."""

DEFAULT_MIGRATION_THRESHOLD: Final = 5_000
"""Memories from which on a move to semantic search is suggested."""
MIGRATION_BATCH_SIZE: Final = 100
"""Texts embedded at a time."""


class OnDuplicate(StrEnum):
    """What is done with a text that is stored already: keep both, merge it, or refuse it."""

    KEEP = "keep"
    MERGE = "merge"
    REFUSE = "refuse"


class OnSecret(StrEnum):
    """What is done with a secret in what is to be stored.

    ``warn``: it is stored, and told. ``mask``: it is replaced before anything is written.
    ``refuse``: nothing is stored. ``keep``: it is not looked for.
    """

    WARN = "warn"
    MASK = "mask"
    REFUSE = "refuse"
    KEEP = "keep"

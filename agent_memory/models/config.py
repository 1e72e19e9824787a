"""Settings of the tools, the context and the capture hook (A), with A's defaults and limits."""

import re
from typing import Final, Literal

from pydantic import ConfigDict, Field, field_validator

from agent_memory.models.memory import ACCESS_BOOST_RATE, FRESHNESS_DECAY_RATE
from agent_memory.models.record import Record
from agent_memory.validation import Text
from agent_memory.vocabulary import (
    DEFAULT_MEMORY_ROOT,
    DEFAULT_MIGRATION_THRESHOLD,
    DEFAULT_SEARCH_LIMIT,
    DEFAULT_SIMILARITY_THRESHOLD,
    MAX_MEMORY_CONTENT_LENGTH,
    MAX_SCRATCHPAD_SIZE,
    MAX_SEARCH_LIMIT,
    MIGRATION_BATCH_SIZE,
)

DEFAULT_CAPTURE_PATTERNS: Final = (
    r"\b(remember|important|decided to|learned that)\b",
    r"\b(discovered|solved by|preference:)\b",
    r"\b(TODO|FIXME|NOTE):\s",
)


class MemoryToolConfig(Record):
    """How memories are stored and searched.

    ``similarity_threshold``, when it is set here or in the agent's file, is the least similarity
    (0 to 1) of a hit; unset, B's gate decides, as a share of the best similarity of each query.
    ``freshness_decay_rate`` is per day, ``access_boost_rate`` per access.

    ``auto_migrate`` moves to search by meaning at ``migration_threshold`` memories, in the
    background or, with the strategy ``immediate``, before the store that reached it returns. A
    search waits ``embedding_timeout_seconds`` for the embedder at most, and so does a store after
    its commit, for each batch of what it stored. Embeddings are cached in memory for
    ``cache_ttl_seconds``. ``embedding_model``, when it is set, is the model that OpenAI's client
    asks for; ``embedding_dimensions`` is A's and has no effect yet: use
    AGENT_MEMORY_EMBEDDING_DIMENSIONS, or an ``OpenAIEmbedder``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    storage_root: Text = DEFAULT_MEMORY_ROOT
    default_search_limit: int = Field(default=DEFAULT_SEARCH_LIMIT, ge=1, le=MAX_SEARCH_LIMIT)
    similarity_threshold: float = Field(default=DEFAULT_SIMILARITY_THRESHOLD, ge=0.0, le=1.0)
    embedding_model: Text = "text-embedding-3-small"
    embedding_dimensions: int = Field(default=1536, ge=512)
    migration_threshold: int = Field(default=DEFAULT_MIGRATION_THRESHOLD, ge=100)
    auto_migrate: bool = False
    migration_strategy: Literal["background", "immediate"] = "background"
    migration_batch_size: int = Field(default=MIGRATION_BATCH_SIZE, ge=10)
    enable_caching: bool = True
    cache_ttl_seconds: int = Field(default=300, ge=0)
    embedding_timeout_seconds: float = Field(default=5.0, gt=0.0, le=600.0)
    freshness_decay_rate: float = Field(default=FRESHNESS_DECAY_RATE, ge=0.0)
    access_boost_rate: float = Field(default=ACCESS_BOOST_RATE, ge=0.0)


class MemoryContextConfig(Record):
    """How the scratchpad is put before an agent. The budget is in tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_budget: int = Field(default=2000, ge=500, le=5000)
    max_scratchpad_entries: int = Field(default=50, ge=10, le=MAX_SCRATCHPAD_SIZE)
    promotion_access_threshold: int = Field(default=3, ge=1)
    include_timestamps: bool = True
    include_categories: bool = True
    include_tags: bool = True
    exclude_categories: list[str] = Field(default_factory=list)


class MemoryCaptureConfig(Record):
    """What a hook captures by itself. Lengths are in characters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    capture_patterns: list[str] = Field(default_factory=lambda: list(DEFAULT_CAPTURE_PATTERNS))
    min_confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    observe_tool_outputs: bool = True
    observe_turn_completions: bool = True
    observe_session_end: bool = False
    min_content_length: int = Field(default=10, ge=1)
    max_content_length: int = Field(default=MAX_MEMORY_CONTENT_LENGTH, ge=100)
    max_captures_per_session: int = Field(default=100, ge=1)
    async_capture: bool = True

    @field_validator("capture_patterns")
    @classmethod
    def validate_patterns(cls, patterns: list[str]) -> list[str]:
        """Refuse what is not a regular expression now rather than at the first capture."""
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns

"""Settings of the tools, the context and the capture hook (A), with A's defaults and limits."""

import re
from typing import Any, Final, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from agent_memory.models.field_types import Text, covered, is_clean_text
from agent_memory.models.fields import is_key
from agent_memory.models.limits import (
    DEFAULT_MEMORY_ROOT,
    DEFAULT_MIGRATION_THRESHOLD,
    DEFAULT_SEARCH_LIMIT,
    DEFAULT_SIMILARITY_THRESHOLD,
    MAX_MEMORY_CONTENT_LENGTH,
    MAX_SCRATCHPAD_SIZE,
    MAX_SEARCH_LIMIT,
    MIGRATION_BATCH_SIZE,
)
from agent_memory.models.record import Record
from agent_memory.models.relevance import ACCESS_BOOST_RATE, FRESHNESS_DECAY_RATE

_SECRET: Final = re.compile("key|token|secret|password", re.IGNORECASE)

DEFAULT_CAPTURE_PATTERNS: Final = (
    r"\b(remember|important|decided to|learned that)\b",
    r"\b(discovered\b|solved by\b|preference:)",  # A's \b after ":" fails before a space
    r"\b(TODO|FIXME|NOTE):\s",
)


class MemoryToolConfig(Record, extra="forbid", frozen=True):
    """How memories are stored and searched.

    ``similarity_threshold``, if set here or in the agent's file, is the minimum similarity (0 to 1)
    of a hit; if unset, the gate decides, as a share of each query's best similarity.
    ``freshness_decay_rate`` is per day, ``access_boost_rate`` per access.

    ``auto_migrate`` switches to search by meaning at ``migration_threshold`` memories, in the
    background or, with the strategy ``immediate``, before the ``store`` that reaches it returns. A
    search waits at most ``embedding_timeout_seconds`` for the embedder, and so does a store after
    its commit, for each batch of what it stored. Embeddings are cached in memory for
    ``cache_ttl_seconds``.

    The other ``embedding_`` fields configure embedders that are given by name. If set, they take
    precedence over the environment; see ``EmbedderSettings`` for the order. ``embedding_api_key``,
    ``embedding_base_url``, ``embedding_model``, ``embedding_dimensions``, ``embedding_batch_size``
    (1 to 2,048 texts per request), ``embedding_timeout`` (seconds per attempt of a request, up to a
    day; default 30) and ``embedding_max_retries`` (0 to 20; default 2) are those of
    ``OpenAIEmbedder``. The key is never shown when the settings are printed or dumped.
    """

    storage_root: Text = DEFAULT_MEMORY_ROOT
    default_search_limit: int = Field(default=DEFAULT_SEARCH_LIMIT, ge=1, le=MAX_SEARCH_LIMIT)
    similarity_threshold: float = Field(default=DEFAULT_SIMILARITY_THRESHOLD, ge=0.0, le=1.0)
    embedding_model: Text = "text-embedding-3-small"
    embedding_dimensions: int = Field(default=1536, ge=512, lt=2**63)
    embedding_api_key: SecretStr | None = None
    embedding_base_url: Text | None = Field(default=None, repr=False)  # may hold a password
    embedding_batch_size: int | None = Field(default=None, ge=1, le=2048)
    embedding_timeout: float | None = Field(default=None, gt=0.0, le=86_400.0)
    embedding_max_retries: int | None = Field(default=None, ge=0, le=20)
    migration_threshold: int = Field(default=DEFAULT_MIGRATION_THRESHOLD, ge=100, lt=2**63)
    auto_migrate: bool = False
    migration_strategy: Literal["background", "immediate"] = "background"
    migration_batch_size: int = Field(default=MIGRATION_BATCH_SIZE, ge=10, lt=2**63)
    enable_caching: bool = True
    cache_ttl_seconds: int = Field(default=300, ge=0, lt=2**63)
    embedding_timeout_seconds: float = Field(default=5.0, gt=0.0, le=600.0)
    freshness_decay_rate: float = Field(default=FRESHNESS_DECAY_RATE, ge=0.0, le=1e6)
    access_boost_rate: float = Field(default=ACCESS_BOOST_RATE, ge=0.0, le=1e6)

    @model_validator(mode="before")
    @classmethod
    def hide_keys(cls, values: Any) -> Any:  # noqa: ANN401 - whatever the caller gave
        """Mask possible secrets first: errors show values, even those of a mistyped field name.

        An address may contain a password, so one that will be refused is masked too.
        """
        if not isinstance(values, dict):
            return values
        return {
            name: covered(value)
            if _SECRET.search(str(name))
            or (name == "embedding_base_url" and not is_clean_text(value))
            else value
            for name, value in values.items()
        }

    @field_validator("embedding_api_key")
    @classmethod
    def validate_key(cls, key: SecretStr | None) -> SecretStr | None:
        """Refuse a key that an HTTP header cannot hold."""
        if key is not None and not is_key(key.get_secret_value()):
            raise ValueError("must be a string without spaces or other characters that no key has")
        return key


class MemoryContextConfig(Record, extra="forbid", frozen=True):
    """How the scratchpad is presented to an agent. The budget is in tokens.

    ``include_sources`` (ours) adds to each memory its id, the session that stored it and the user
    it is about: about ten tokens each.
    """

    token_budget: int = Field(default=2000, ge=500, le=5000)
    max_scratchpad_entries: int = Field(default=50, ge=10, le=MAX_SCRATCHPAD_SIZE)
    promotion_access_threshold: int = Field(default=3, ge=1, lt=2**63)
    include_timestamps: bool = True
    include_categories: bool = True
    include_tags: bool = True
    include_sources: bool = True
    exclude_categories: list[str] = Field(default_factory=list)


class MemoryCaptureConfig(Record, extra="forbid", frozen=True):
    """What a hook captures automatically. Lengths are those of a sentence, in characters.

    ``capture_patterns`` ignore case, and are tried on one line at a time, on at most 1,000
    characters of it. ``max_captures_per_output`` (ours) is the maximum number of sentences captured
    from one text, the most confident first; ``queue_size`` (ours) is how many texts may wait for
    the background: those that arrive while the queue is full are counted and dropped.
    """

    capture_patterns: list[str] = Field(default_factory=lambda: list(DEFAULT_CAPTURE_PATTERNS))
    min_confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    observe_tool_outputs: bool = True
    observe_turn_completions: bool = True
    observe_session_end: bool = False
    min_content_length: int = Field(default=10, ge=1)
    max_content_length: int = Field(default=MAX_MEMORY_CONTENT_LENGTH, ge=100)
    max_captures_per_session: int = Field(default=100, ge=1)
    max_captures_per_output: int = Field(default=10, ge=1)
    async_capture: bool = True
    queue_size: int = Field(default=1000, ge=1)

    @field_validator("capture_patterns")
    @classmethod
    def validate_patterns(cls, patterns: list[str]) -> list[str]:
        """Refuse an invalid regular expression now rather than at the first capture."""
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns

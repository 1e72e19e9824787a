"""C's configuration of the whole system: model, stores, embedder, graph, pace, watching (C, 10)."""

import logging
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, StrictBool, ValidationInfo, field_validator

from agent_memory.models.documents.config_section import (
    ConfigSection,
    Named,
    Seconds,
    Secret,
    Whole,
)
from agent_memory.models.fields import Text
from agent_memory.models.record import SparseRecord

_LOOKED_UP: Final = ("model", "organization", "base_url")
_LEVELS: Final = {"WARN": logging.WARNING}


class LLMConfig(ConfigSection):
    """The language model that extracts facts and decides (C, 10 and 11).

    ``model`` is the provider's name of it, without which there is nothing to ask.
    ``temperature`` is 0 to 2 (Anthropic's 0 to 1), ``max_tokens`` those of an answer, ``timeout``
    seconds for each attempt, ``max_retries`` 0 to 20. ``base_url`` is another server that speaks
    the provider's API; it may hold a password, and is not shown. The prompts replace the library's.
    """

    section = "llm"

    provider: Literal["openai", "anthropic"] = "openai"
    api_key: Secret = None
    model: Named | None = None
    temperature: float = Field(default=0.0, strict=True, ge=0.0, le=2.0)
    max_tokens: Whole = Field(default=1000, ge=1)
    timeout: Seconds = 30
    max_retries: Whole = Field(default=3, ge=0, le=20)
    custom_fact_extraction_prompt: Text | None = Field(default=None, min_length=1)
    custom_update_memory_prompt: Text | None = Field(default=None, min_length=1)
    organization: Named | None = None
    base_url: Named | None = Field(default=None, repr=False)

    @field_validator("temperature")
    @classmethod
    def _fits_the_provider(cls, temperature: float, info: ValidationInfo) -> float:
        if info.data.get("provider") == "anthropic" and temperature > 1.0:
            raise ValueError("Anthropic's models take a temperature of 0 to 1")
        return temperature

    @field_validator("organization")
    @classmethod
    def _has_organizations(cls, organization: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("provider") == "anthropic" and organization is not None:
            raise ValueError("is OpenAI's: leave it out with the provider anthropic")
        return organization

    def settings(self, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return what is set, the key too, with every ``${NAME}`` looked up.

        It is what ``AgentMemory.add(llm=…)`` takes. Raises ``ConfigurationError`` for a variable
        that is not set.
        """
        values: dict[str, Any] = {
            name: value
            for name in type(self).model_fields
            if (value := getattr(self, name)) is not None and name != "api_key"
        }
        values |= {name: self.resolved(name, environ) for name in _LOOKED_UP if name in values}
        key = self.resolved_api_key(environ)
        return values if key is None else {**values, "api_key": key}


class OpenAIConfig(LLMConfig):
    """A model of OpenAI's, or of a server that speaks its API (C, 11)."""

    provider: Literal["openai"] = "openai"


class AnthropicConfig(LLMConfig):
    """A model of Anthropic's (C, 11). ``temperature`` is 0 to 1."""

    provider: Literal["anthropic"] = "anthropic"


class VectorStoreConfig(ConfigSection):
    """A vector store elsewhere (C, 10 and 11): read, kept, and not used.

    Vectors live in the agent's own file: see ``refuse_remote_store``. ``timeout`` is in seconds.
    """

    section = "vector_store"

    provider: Literal["qdrant"] = "qdrant"
    host: Named = "localhost"
    port: Whole = Field(default=6333, ge=1, le=65_535)
    api_key: Secret = None
    collection_name: Named = "memories"
    vector_size: Whole = Field(default=1536, ge=1, le=65_536)
    distance_metric: Literal["cosine", "euclidean", "dot"] = "cosine"
    timeout: Seconds = 30
    use_https: StrictBool = False
    verify_ssl: StrictBool = True


class QdrantConfig(VectorStoreConfig):
    """C's name of a vector store that is Qdrant (C, 11)."""


class EmbedderConfig(ConfigSection):
    """What makes the vectors (C, 10): OpenAI's client, or a model that runs here.

    ``huggingface`` is a model of sentence-transformers. What is ``None`` is left to the embedder.
    ``batch_size`` is texts a request, up to 2,048. ``base_url`` (ours) is another server that
    speaks OpenAI's API; it is not shown.
    """

    section = "embedder"

    provider: Literal["openai", "huggingface"] = "openai"
    model: Named | None = None
    api_key: Secret = None
    dimensions: Whole | None = Field(default=None, ge=1, le=20_000)
    batch_size: Whole | None = Field(default=None, ge=1, le=2_048)
    base_url: Named | None = Field(default=None, repr=False)


class GraphStoreConfig(ConfigSection):
    """Whether entities and relationships are kept (C, 10).

    They live in the agent's own file: ``provider`` is ``None`` or ``sqlite``, and no
    ``connection_string`` is used. See ``refuse_remote_store``.
    """

    section = "graph_store"

    enabled: StrictBool = False
    provider: Named | None = None
    connection_string: Secret = None


class PerformanceConfig(ConfigSection):
    """How much is done at a time (C, 10).

    ``batch_size`` is how many memories a move to search by meaning embeds at a time, at least 10.
    ``enable_caching`` keeps embeddings in memory for a while. ``cache_size`` (in entries) and
    ``parallel_requests`` (to a provider) are kept for other programs: here one request is made
    after the other, and the cache has a size of its own.
    """

    section = "performance"

    cache_size: Whole = Field(default=1000, ge=0)
    batch_size: Whole = Field(default=100, ge=10, le=10_000)
    parallel_requests: Whole = Field(default=1, ge=1, le=100)
    enable_caching: StrictBool = True


class MonitoringConfig(ConfigSection):
    """What is told of the work (C, 10). Nothing is sent to ``metrics_endpoint``: it is only kept.

    ``log_level`` is of the logger ``agent_memory`` where ``enabled``.
    """

    section = "monitoring"

    enabled: StrictBool = False
    metrics_endpoint: Named | None = Field(default=None, repr=False)
    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = "INFO"

    def logging_level(self) -> int:
        """Return the level as ``logging`` has it."""
        return _LEVELS.get(self.log_level) or logging.getLevelNamesMapping()[self.log_level]


class SystemConfig(SparseRecord):
    """C's configuration of the whole system (C, 10). Every section may be left out.

    Without ``llm`` conversations are read by rules, without ``embedder`` the agent's own settings
    say which there is. ``load_system_config`` reads one; its JSON has every key covered, but
    references to the environment as they were given.
    """

    model_config = ConfigDict(extra="forbid")

    llm: LLMConfig | None = None
    vector_store: VectorStoreConfig | None = None
    embedder: EmbedderConfig | None = None
    graph_store: GraphStoreConfig = Field(default_factory=GraphStoreConfig)
    performance: PerformanceConfig = Field(default_factory=PerformanceConfig)
    monitoring: MonitoringConfig = Field(default_factory=MonitoringConfig)

"""C's configuration of the whole system: models, stores, graph, performance, monitoring (C, 10)."""

import logging
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    SecretStr,
    StrictBool,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from agent_memory.errors import ConfigurationError
from agent_memory.models.field_types import Text, covered, is_clean_text
from agent_memory.models.fields import is_key
from agent_memory.models.record import SparseRecord

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET: Final = re.compile("key|token|secret|password|connection", re.IGNORECASE)
_SECRETS: Final = ("api_key", "connection_string")
_ADDRESSES: Final = ("base_url", "metrics_endpoint")
_COVERED: Final = "*" * 10  # what a secret is dumped as
_KEY_VARIABLES: Final = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


def _clean_secret(value: object) -> SecretStr | None:
    """Return a key, or refuse an invalid one without showing it."""
    if value is None:
        return None
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or not text or not is_key(text):
        raise ValueError("must be a string without spaces, or ${NAME} for an environment variable")
    if text == _COVERED:
        raise ValueError("is a masked secret, not the secret itself: give the secret, or ${NAME}")
    if "${" in text and reference_in(text) is None:
        raise ValueError(
            "contains ${ but is not exactly ${NAME}: a reference must be the whole value"
        )
    return SecretStr(text)


def _clean_named(text: str) -> str:
    if not text.strip() or len(text) > 500:
        raise ValueError(f"must be a string of 1 to 500 characters, not of {len(text):,}")
    return text


def _dumped(secret: SecretStr | None) -> str | None:
    """Return a reference as it was given, and mask anything else."""
    if secret is None:
        return None
    text = secret.get_secret_value()
    return text if reference_in(text) else _COVERED


# When it reads JSON, Pydantic's own validator rejects a value that is already a SecretStr.
Secret = Annotated[
    SecretStr | None,
    PlainValidator(_clean_secret),
    PlainSerializer(_dumped, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "password"}, {"type": "null"}]}),
]
"""A key, which is never shown, or ``${NAME}`` for one in the environment, which is dumped."""
Whole = Annotated[int, Field(strict=True, lt=2**31)]
"""An integer: neither text nor a boolean, which Python would count as 0 or 1."""
Seconds = Annotated[int, Field(strict=True, ge=1, le=86_400)]
"""A duration of 1 second to a day."""
Named = Annotated[Text, AfterValidator(_clean_named)]
"""A text of 1 to 500 characters that is not blank."""


def reference_in(text: str | None) -> str | None:
    """Return the NAME of a text that is exactly ``${NAME}``, else ``None``."""
    match = _REFERENCE.fullmatch(text or "")
    return None if match is None else match[1]


class ConfigSection(SparseRecord, extra="forbid", protected_namespaces=()):
    """A section of the configuration. Its texts may be ``${NAME}``: an environment variable.

    A reference is kept as it is, and looked up when the value is needed. Invalid values raise
    Pydantic's ``ValidationError``.
    """

    section: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _with_secrets_covered(cls, values: Any) -> Any:  # noqa: ANN401 - whatever was given
        """Mask possible secrets: errors show values, even those of a mistyped field name."""
        if not isinstance(values, Mapping):
            return values
        return {
            name: covered(value) if cls._is_hidden(name, value) else value
            for name, value in values.items()
        }

    @classmethod
    def _is_hidden(cls, name: object, value: object) -> bool:
        if name in _ADDRESSES:
            # An address that will be refused may contain a password.
            return value == "" or not is_clean_text(value)
        is_field = name in cls.model_fields
        return name in _SECRETS if is_field else _SECRET.search(str(name)) is not None

    def resolved(self, field: str, environ: Mapping[str, str] | None = None) -> str | None:
        """Return the text of a field with ``${NAME}`` looked up, or ``None`` if it is not set.

        ``environ`` is the process's environment by default. Raises a ``ConfigurationError`` that
        names the field and the variable if the variable is missing or empty.
        """
        value = getattr(self, field)
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        name = reference_in(text)
        if name is None:
            return text
        value = (os.environ if environ is None else environ).get(name, "").strip()
        if not value:
            raise ConfigurationError(
                f"{self.section}.{field} is ${{{name}}}, and the environment variable {name} is"
                " not set: set it, or give the value itself"
            )
        return value

    def resolved_api_key(self, environ: Mapping[str, str] | None = None) -> str | None:
        """Return the key, looked up if it is ``${NAME}``.

        If none is set, it is taken from the provider's usual variable (OPENAI_API_KEY,
        ANTHROPIC_API_KEY), else ``None``. Raises ``ConfigurationError`` if a variable that is named
        is not set, or if the key has a character that no key can have.
        """
        key = self.resolved("api_key", environ)
        if key is None:
            variable = _KEY_VARIABLES.get(getattr(self, "provider", ""), "")
            key = (os.environ if environ is None else environ).get(variable, "").strip() or None
        if key is not None and not is_key(key):
            raise ConfigurationError(
                f"{self.section}.api_key has a character that no key has: copy it again"
            )
        return key


_LOOKED_UP: Final = ("model", "organization", "base_url")
_LEVELS: Final = {"WARN": logging.WARNING}


class LLMConfig(ConfigSection):
    """The language model that extracts facts and makes decisions.

    ``model`` is the provider's name for it; without it no model can be called. ``temperature`` is 0
    to 2 (Anthropic: 0 to 1), ``max_tokens`` the limit of an answer, ``timeout`` seconds per
    attempt, ``max_retries`` 0 to 20. ``base_url`` is another server that implements the provider's
    API; it may contain a password, and is not shown. The prompts replace the library's.
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
            raise ValueError("is for OpenAI only: leave it out with the provider anthropic")
        return organization

    def settings(self, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the fields that are set, including the key, with every ``${NAME}`` looked up.

        This is what ``AgentMemory.add(llm=…)`` takes. Raises ``ConfigurationError`` for a variable
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
    """A model of OpenAI, or of a server that implements its API."""

    provider: Literal["openai"] = "openai"


class AnthropicConfig(LLMConfig):
    """A model of Anthropic. ``temperature`` is 0 to 1."""

    provider: Literal["anthropic"] = "anthropic"


class VectorStoreConfig(ConfigSection):
    """An external store. Without one, memories and vectors are in the agent's own file.

    ``pgvector`` and ``postgresql`` (ours) mean a database, whose address ``connection_string``
    (ours) gives as ``postgresql://user@host/database``: memories and vectors are stored in it, and
    ``collection_name`` is the schema there. See ``store_root`` and ``refuse_remote_store``.
    ``timeout`` is in seconds.
    """

    section = "vector_store"

    provider: Literal["qdrant", "pgvector", "postgresql"] = "qdrant"
    connection_string: Secret = None
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
    """A vector store of type Qdrant."""

    provider: Literal["qdrant"] = "qdrant"


class EmbedderConfig(ConfigSection):
    """The source of vectors: OpenAI's client, or a local model.

    ``huggingface`` is a model of sentence-transformers. Fields that are ``None`` are left to the
    embedder. ``batch_size`` is texts per request, up to 2,048. ``base_url`` (ours) is another
    server that implements OpenAI's API; it is not shown.
    """

    section = "embedder"

    provider: Literal["openai", "huggingface"] = "openai"
    model: Named | None = None
    api_key: Secret = None
    dimensions: Whole | None = Field(default=None, ge=1, le=20_000)
    batch_size: Whole | None = Field(default=None, ge=1, le=2_048)
    base_url: Named | None = Field(default=None, repr=False)


class GraphStoreConfig(ConfigSection):
    """Whether entities and relationships are kept.

    They are stored with the memories: ``provider`` is ``None``, ``sqlite``, or ``postgresql`` if
    ``vector_store`` names a database, and ``connection_string`` is not used. See
    ``refuse_remote_store``.
    """

    section = "graph_store"

    enabled: StrictBool = False
    provider: Named | None = None
    connection_string: Secret = None


class PerformanceConfig(ConfigSection):
    """How much is done at a time.

    ``batch_size`` is how many memories a migration to search by meaning embeds at a time, at least
    10. ``enable_caching`` keeps embeddings in memory for a while. ``cache_size`` (in entries) and
    ``parallel_requests`` (to a provider) are kept for other programs: here requests are sequential,
    and the cache has a size of its own.
    """

    section = "performance"

    cache_size: Whole = Field(default=1000, ge=0)
    batch_size: Whole = Field(default=100, ge=10, le=10_000)
    parallel_requests: Whole = Field(default=1, ge=1, le=100)
    enable_caching: StrictBool = True


class MonitoringConfig(ConfigSection):
    """Logging. Nothing is sent to ``metrics_endpoint``: it is only stored.

    ``log_level`` is that of the logger ``agent_memory``, if ``enabled``.
    """

    section = "monitoring"

    enabled: StrictBool = False
    metrics_endpoint: Named | None = Field(default=None, repr=False)
    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = "INFO"

    def logging_level(self) -> int:
        """Return the level as a number of ``logging``."""
        return _LEVELS.get(self.log_level) or logging.getLevelNamesMapping()[self.log_level]


class SystemConfig(SparseRecord, extra="forbid"):
    """The configuration of a whole system. Every section is optional.

    Without ``llm``, conversations are read by rules; without ``embedder``, the agent's own settings
    choose one. ``load_system_config`` reads a configuration; its JSON has every key masked, and
    references to the environment as they were given.
    """

    llm: LLMConfig | None = None
    vector_store: VectorStoreConfig | None = None
    embedder: EmbedderConfig | None = None
    graph_store: GraphStoreConfig = Field(default_factory=GraphStoreConfig)
    performance: PerformanceConfig = Field(default_factory=PerformanceConfig)
    monitoring: MonitoringConfig = Field(default_factory=MonitoringConfig)

"""C's configuration of the whole system: model, stores, embedder, graph, pace, watching (C, 10)."""

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
    """Return a key, or refuse what none can be, without showing it."""
    if value is None:
        return None
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or not text or not is_key(text):
        raise ValueError("must be a text without spaces, or ${NAME} for an environment variable")
    if text == _COVERED:
        raise ValueError("is the cover of a secret, not the secret: give it, or ${NAME}")
    if "${" in text and reference_in(text) is None:
        raise ValueError("has a ${ that begins no ${NAME}: a reference stands alone")
    return SecretStr(text)


def _clean_named(text: str) -> str:
    if not text.strip() or len(text) > 500:
        raise ValueError(f"a text of 1 to 500 characters is needed, not one of {len(text):,}")
    return text


def _dumped(secret: SecretStr | None) -> str | None:
    """Write a reference as it was given, and cover anything else."""
    if secret is None:
        return None
    text = secret.get_secret_value()
    return text if reference_in(text) else _COVERED


# Pydantic's own reading of a SecretStr takes none that was covered before where JSON is read.
Secret = Annotated[
    SecretStr | None,
    PlainValidator(_clean_secret),
    PlainSerializer(_dumped, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "password"}, {"type": "null"}]}),
]
"""A key, or ``${NAME}`` for one in the environment. It is shown nowhere; a reference is dumped."""
Whole = Annotated[int, Field(strict=True, lt=2**31)]
"""A whole number: no text, and no truth, which Python would count as 0 or 1."""
Seconds = Annotated[int, Field(strict=True, ge=1, le=86_400)]
"""A span of 1 second to a day."""
Named = Annotated[Text, AfterValidator(_clean_named)]
"""A text of 1 to 500 characters that is not blank."""


def reference_in(text: str | None) -> str | None:
    """Return the NAME of a text that is ``${NAME}``, from its first character to its last."""
    match = _REFERENCE.fullmatch(text or "")
    return None if match is None else match[1]


class ConfigSection(SparseRecord, extra="forbid", protected_namespaces=()):
    """One section of the configuration. A text of it may be ``${NAME}``: an environment variable.

    A reference is kept as it is, and looked up when the value is asked for. Making one from wrong
    values raises Pydantic's ``ValidationError``.
    """

    section: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _with_secrets_covered(cls, values: Any) -> Any:  # noqa: ANN401 - whatever was given
        """Cover what may be secret: an error has the value, that of a mistyped name too."""
        if not isinstance(values, Mapping):
            return values
        return {
            name: covered(value) if cls._is_hidden(name, value) else value
            for name, value in values.items()
        }

    @classmethod
    def _is_hidden(cls, name: object, value: object) -> bool:
        if name in _ADDRESSES:
            # One that will be refused may hold a password.
            return value == "" or not is_clean_text(value)
        is_field = name in cls.model_fields
        return name in _SECRETS if is_field else _SECRET.search(str(name)) is not None

    def resolved(self, field: str, environ: Mapping[str, str] | None = None) -> str | None:
        """Return the text of a field, with ``${NAME}`` looked up; ``None`` where it is not set.

        ``environ`` is the process's environment unless it is given. Raises ``ConfigurationError``
        that names the field and the variable where there is none, or it holds nothing.
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
        """Return the key, looked up where it is ``${NAME}``.

        Where none is set, it is that of the provider's usual variable (OPENAI_API_KEY,
        ANTHROPIC_API_KEY), or ``None``. Raises ``ConfigurationError`` for a variable that is not
        set, and for one that holds what no key can be.
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
    """The language model that extracts facts and decides.

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
    """A model of OpenAI's, or of a server that speaks its API."""

    provider: Literal["openai"] = "openai"


class AnthropicConfig(LLMConfig):
    """A model of Anthropic's. ``temperature`` is 0 to 1."""

    provider: Literal["anthropic"] = "anthropic"


class VectorStoreConfig(ConfigSection):
    """A store elsewhere. Without one, memories and vectors live in the agent's own file.

    ``pgvector`` and ``postgresql`` (ours) are a database, which ``connection_string`` (ours) names
    as ``postgresql://user@host/database``: memories and vectors live in it, and ``collection_name``
    is the schema there. See ``store_root`` and ``refuse_remote_store``. ``timeout`` is in seconds.
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
    """A vector store that is Qdrant."""

    provider: Literal["qdrant"] = "qdrant"


class EmbedderConfig(ConfigSection):
    """What makes the vectors: OpenAI's client, or a model that runs here.

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
    """Whether entities and relationships are kept.

    They live where the memories do: ``provider`` is ``None``, ``sqlite``, or ``postgresql`` where
    ``vector_store`` names a database, and no ``connection_string`` is used. See
    ``refuse_remote_store``.
    """

    section = "graph_store"

    enabled: StrictBool = False
    provider: Named | None = None
    connection_string: Secret = None


class PerformanceConfig(ConfigSection):
    """How much is done at a time.

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
    """What is told of the work. Nothing is sent to ``metrics_endpoint``: it is only kept.

    ``log_level`` is of the logger ``agent_memory`` where ``enabled``.
    """

    section = "monitoring"

    enabled: StrictBool = False
    metrics_endpoint: Named | None = Field(default=None, repr=False)
    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = "INFO"

    def logging_level(self) -> int:
        """Return the level as ``logging`` has it."""
        return _LEVELS.get(self.log_level) or logging.getLevelNamesMapping()[self.log_level]


class SystemConfig(SparseRecord, extra="forbid"):
    """The configuration of a whole system. Every section may be left out.

    Without ``llm`` conversations are read by rules, without ``embedder`` the agent's own settings
    say which there is. ``load_system_config`` reads one; its JSON has every key covered, but
    references to the environment as they were given.
    """

    llm: LLMConfig | None = None
    vector_store: VectorStoreConfig | None = None
    embedder: EmbedderConfig | None = None
    graph_store: GraphStoreConfig = Field(default_factory=GraphStoreConfig)
    performance: PerformanceConfig = Field(default_factory=PerformanceConfig)
    monitoring: MonitoringConfig = Field(default_factory=MonitoringConfig)

"""Reads C's system configuration from a file, a mapping and the environment (C, 10)."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from pydantic import BaseModel, SecretStr
from pydantic import ValidationError as PydanticValidationError

from agent_memory.embeddings.registry import EmbedderSpec, create_embedder
from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.errors import (
    ConfigurationError,
    StorageError,
    ValidationError,
    described,
    in_plain_words,
)
from agent_memory.models.documents.system_config import (
    EmbedderConfig,
    LLMConfig,
    SystemConfig,
    VectorStoreConfig,
)
from agent_memory.models.embedding_traits import EMBEDDING_MODELS
from agent_memory.runtime.addresses import POSTGRES_SCHEMES, server_address
from agent_memory.runtime.files import read_steadily
from agent_memory.runtime.logs import logger
from agent_memory.runtime.paths import with_home

MAX_CONFIG_BYTES: Final = 1_000_000
"""The longest file of settings that is read."""
LLM_VARIABLES: Final = {
    "provider": "AGENT_MEMORY_LLM_PROVIDER",
    "model": "AGENT_MEMORY_LLM_MODEL",
    "base_url": "AGENT_MEMORY_LLM_BASE_URL",
    "api_key": "AGENT_MEMORY_LLM_API_KEY",
}
"""The environment variables that count before what a file says of ``llm``."""

_OF_MEMORIES: Final = {
    "batch_size": "migration_batch_size",
    "enable_caching": "enable_caching",
}
"""Settings of ``performance``, and what ``MemoryToolConfig`` calls them."""
_UNUSED: Final = {
    "performance.cache_size": "the embedding cache has a fixed size",
    "performance.parallel_requests": "requests are made one at a time",
    "monitoring.metrics_endpoint": "nothing is sent; `configure event_log` writes a log file",
}
"""C's settings that are read and kept but have no effect here; setting one logs a warning."""
_OF_ONE_PROVIDER: Final = ("api_key", "model", "base_url", "organization")
_SECTIONS: Final = {
    name: next(
        kind for kind in (*getattr(field.annotation, "__args__", ()), field.annotation) if kind
    )
    for name, field in SystemConfig.model_fields.items()
}
_DATABASES: Final = ("pgvector", "postgresql")
"""Providers of ``vector_store`` that are a database."""
_EXAMPLE: Final = "postgresql://user@host/database"

ConfigSource = str | os.PathLike[str] | Mapping[str, Any] | SystemConfig | None
"""What ``load_system_config`` takes."""


def load_system_config(
    source: ConfigSource = None, environ: Mapping[str, str] | None = None
) -> SystemConfig:
    """Return the configuration in a YAML or JSON file, a mapping, or the environment.

    A file is JSON if its name ends with ``.json``, else YAML. Values that are null in the file or
    blank in the environment count as not set. A ``SystemConfig`` is returned unchanged. These
    variables of ``environ`` (default: the environment of the process) take precedence over the
    source:

    - AGENT_MEMORY_LLM_PROVIDER: ``openai`` or ``anthropic``. If the source names the other
      provider, its key, model, base_url and organization are ignored.
    - AGENT_MEMORY_LLM_MODEL, AGENT_MEMORY_LLM_BASE_URL
    - AGENT_MEMORY_LLM_API_KEY: the key, or ``${NAME}`` to use another variable

    A value ``${NAME}`` is resolved only when it is needed (``resolved_api_key``), so the variable
    may be missing until then. Raises ``ConfigurationError`` that names every invalid setting and,
    for an unknown one, the nearest known one. A setting without effect here is logged as a warning.
    """
    if isinstance(source, SystemConfig):
        return source
    place = ""
    if source is None:
        settings: object = {}
    elif isinstance(source, Mapping):
        settings = dict(source)
    elif isinstance(source, str | os.PathLike):
        path = with_home(source)
        settings, place = _read(path), f"{path}: "
    else:
        kind = type(source).__name__
        raise ConfigurationError(f"a {kind} is not a configuration: give a path or a mapping")
    if settings is None:
        settings = {}
    if not isinstance(settings, dict):
        kind = type(settings).__name__
        raise ConfigurationError(f"{place}is a {kind}, not a mapping of sections")
    sections = {name: _drop_nulls(value) for name, value in settings.items() if value is not None}
    from_outside = _read_environment(os.environ if environ is None else environ)
    config = _validate(_override(sections, from_outside), from_outside, place)
    for name, reason in _UNUSED.items():
        section, _, setting = name.partition(".")
        if setting in getattr(config, section).model_fields_set:
            logger().warning("%s%s has no effect: %s", place, name, reason)
    return config


def memory_arguments(
    config: SystemConfig, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the arguments for ``AgentMemory`` that follow from a configuration.

    Pass them as ``AgentMemory("bob", **arguments)``. ``embedder`` is created if its section is
    present. Of ``performance``, ``enable_caching`` and ``batch_size`` (for migrations) are used if
    set. The language model goes to ``add`` instead: ``config.llm.settings()``. ``root`` is present
    if ``vector_store`` names a database. If ``monitoring`` is enabled, it sets the level of the
    logger ``agent_memory``. Raises ``ConfigurationError`` for a remote store of another kind, an
    environment variable that is not set, or an embedder that is not available.
    """
    refuse_remote_store(config)
    if config.monitoring.enabled:
        logger().setLevel(config.monitoring.logging_level())
    root = store_root(config, environ)
    arguments: dict[str, Any] = {} if root is None else {"root": root}
    if config.embedder is not None:
        arguments["embedder"] = create_embedder(*embedder_arguments(config.embedder, environ))
    pace = config.performance
    names = [name for name in _OF_MEMORIES if name in pace.model_fields_set]
    if names:
        arguments["config"] = {_OF_MEMORIES[name]: getattr(pace, name) for name in names}
    return arguments


def refuse_remote_store(config: SystemConfig) -> None:
    """Raise ``ConfigurationError`` for a remote store that is not a PostgreSQL database."""
    store, graph = config.vector_store, config.graph_store
    if store is not None and store.provider not in _DATABASES:
        raise ConfigurationError(
            f"vector_store.provider is {store.provider!r}: vectors are stored and searched"
            " next to their memories, in the agent's SQLite file or in PostgreSQL. Leave the"
            " section vector_store out, or use the provider pgvector with the"
            " connection_string postgresql://user@host/database to keep them on a server;"
            " `agent-memory migrate` turns on search by meaning"
        )
    here = ("sqlite",) if store is None else _DATABASES
    if graph.enabled and graph.provider not in (None, *here):
        raise ConfigurationError(
            f"graph_store.provider is {graph.provider!r:.80}: entities and relationships are"
            " stored with the memories. Leave provider and connection_string out"
        )
    if graph.enabled and graph.connection_string is not None:
        raise ConfigurationError(
            "graph_store.connection_string is set: entities and relationships are stored with"
            " the memories. Leave it out"
        )


def store_root(config: SystemConfig, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the ``root`` for ``AgentMemory`` that ``vector_store`` names; ``None`` without one.

    For a database, ``collection_name`` becomes the schema, ``timeout`` the statement timeout, and
    ``use_https`` requires TLS, with a verified certificate unless ``verify_ssl`` is false; each if
    it is set. Raises ``ConfigurationError`` for settings that do not apply to a database, and for
    an environment variable that is not set.
    """
    store = config.vector_store
    if store is None or store.provider not in _DATABASES:
        return None
    _refuse_foreign_settings(store, config.embedder)
    url = store.resolved("connection_string", environ)
    if url is None or url.partition("://")[0] not in POSTGRES_SCHEMES:
        raise ConfigurationError(
            f"vector_store.connection_string must name a database, such as {_EXAMPLE}, when"
            f" the provider is {store.provider!r}"
        )
    in_address = dict(parse_qsl(url.partition("?")[2], keep_blank_values=True))
    options = {}
    for setting, name, value in (
        ("collection_name", "schema", store.collection_name),
        ("timeout", "options", f"-c statement_timeout={store.timeout}s"),
        ("use_https", "sslmode", "verify-full" if store.verify_ssl else "require"),
    ):
        if setting not in store.model_fields_set or not getattr(store, setting):
            continue
        if name in in_address:
            raise ConfigurationError(
                f"vector_store.{setting} is {getattr(store, setting)!r:.80}, and the"
                f" connection_string already has {name}=: leave one of them out"
            )
        options[name] = value
    if options:
        url += ("&" if "?" in url else "?") + urlencode(options, quote_via=quote)
    server_address(url)  # raises for what cannot be one
    return url


def _refuse_foreign_settings(store: VectorStoreConfig, embedder: EmbedderConfig | None) -> None:
    """Raise ``ConfigurationError`` for a setting of a vector store that a database has not."""
    for name in ("host", "port", "api_key"):
        value = getattr(store, name)
        if name in store.model_fields_set and value is not None:
            is_secret = name == "api_key" or "@" in str(value)
            raise ConfigurationError(
                f"vector_store.{name} is {'set' if is_secret else f'{value!r:.80}'}: with the"
                f" provider {store.provider!r}, put it into the connection_string, such as"
                f" {_EXAMPLE}"
            )
    if store.distance_metric != "cosine":
        raise ConfigurationError(
            f"vector_store.distance_metric is {store.distance_metric!r}: only 'cosine' is supported"
        )
    size = None if embedder is None else embedder.dimensions
    if "vector_size" in store.model_fields_set and size not in (None, store.vector_size):
        raise ConfigurationError(
            f"vector_store.vector_size is {store.vector_size}, and embedder.dimensions"
            f" {size}: the embedder decides the size of vectors, so leave vector_size out"
        )


def embedder_arguments(
    config: EmbedderConfig | None, environ: Mapping[str, str] | None = None
) -> tuple[EmbedderSpec, EmbedderSettings]:
    """Return the arguments of ``create_embedder`` for C's section ``embedder``.

    Without a section it is ``auto``. ``huggingface`` means a model of sentence-transformers, with
    its own number of dimensions. Raises ``ConfigurationError`` for an environment variable that is
    not set, and for a model that the provider does not have.
    """
    if config is None:
        return "auto", EmbedderSettings()
    model = config.resolved("model", environ)
    if config.provider == "huggingface":
        if model in EMBEDDING_MODELS:
            raise ConfigurationError(
                f"embedder.model is {model!r}, which is OpenAI's: with the provider huggingface,"
                " name a model of sentence-transformers, such as 'all-MiniLM-L6-v2'"
            )
        return "sentence-transformers", EmbedderSettings(model=model, batch_size=config.batch_size)
    return "openai", EmbedderSettings(
        api_key=config.resolved_api_key(environ),
        base_url=config.resolved("base_url", environ),
        model=model,
        dimensions=config.dimensions,
        batch_size=config.batch_size,
    )


# Reading ------------------------------------------------------------------------------------


def _read(path: Path) -> object:
    # 15 ms: most processes read no settings.
    from agent_memory.formats import json_reader, yaml_reader  # noqa: PLC0415 - an edge

    content = _content(path)
    try:
        if path.suffix.lower() == ".json":
            return json_reader.parse(content.decode("utf-8-sig"))
        return yaml_reader.read_yaml(io.BytesIO(content))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is not UTF-8: {error.reason}") from error
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _content(path: Path) -> bytes:
    try:
        with read_steadily(path) as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    except (StorageError, ValueError) as error:  # a NUL in a path is a ValueError
        raise ConfigurationError(f"the settings cannot be read: {error}") from error
    if len(content) > MAX_CONFIG_BYTES:
        raise ConfigurationError(
            f"{path}: is longer than {MAX_CONFIG_BYTES:,} bytes: this is not a settings file"
        )
    return content


def _drop_nulls(section: object) -> object:
    if not isinstance(section, Mapping):
        return section
    return {name: value for name, value in section.items() if value is not None}


def _read_environment(environ: Mapping[str, str]) -> dict[str, str]:
    values = {name: environ.get(variable, "").strip() for name, variable in LLM_VARIABLES.items()}
    return {name: value for name, value in values.items() if value}


def _override(sections: dict[str, object], from_outside: Mapping[str, str]) -> dict[str, object]:
    """Put what the environment says in place of what a file says."""
    section = sections.get("llm", {})
    if isinstance(section, LLMConfig):
        section = section.model_dump(exclude_unset=True)
    if not from_outside or not isinstance(section, Mapping):
        return sections
    usual = LLMConfig.model_fields["provider"].default
    is_other = from_outside.get("provider", section.get("provider", usual)) != section.get(
        "provider", usual
    )
    dropped = _OF_ONE_PROVIDER if is_other else ()
    kept = {name: value for name, value in section.items() if name not in dropped}
    return {**sections, "llm": {**kept, **from_outside}}


# Refusing -----------------------------------------------------------------------------------


def _validate(
    sections: dict[str, object], from_outside: Mapping[str, str], place: str
) -> SystemConfig:
    try:
        return SystemConfig.model_validate(sections)
    except PydanticValidationError as error:
        faults = "; ".join(_describe_faults(error, from_outside))
    # Not raised from Pydantic's error, which has the values.
    raise ConfigurationError(place + faults)


def _describe_faults(
    error: PydanticValidationError, from_outside: Mapping[str, str]
) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_context=False):
        loc = fault["loc"]
        name = ".".join(map(str, loc))
        if fault["type"] == "extra_forbidden":
            yield f"{name:.150}: unknown setting: {_nearest(loc)}"
            continue
        source = ""
        if len(loc) == 2 and loc[0] == "llm" and loc[1] in from_outside:
            source = f", from {LLM_VARIABLES[str(loc[1])]}"
        message = in_plain_words(fault["msg"])
        yield f"{name:.150}: {message} (got {_show(fault['input'])}{source})"


def _nearest(loc: tuple[str | int, ...]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - of an error alone

    section: type[BaseModel] = SystemConfig if len(loc) == 1 else _SECTIONS[str(loc[0])]
    names = list(section.model_fields)
    (nearest, *_) = get_close_matches(str(loc[-1]).lower(), names, n=1, cutoff=0.0)
    return f"did you mean {nearest!r}? The settings are {', '.join(names)}"


def _show(value: object) -> object:
    """Show a value of one line; of what may be secret or long, its kind alone."""
    if isinstance(value, SecretStr):
        return "a value that is not shown"
    if isinstance(value, str) and len(value) <= 60:
        return repr(value)
    return described(value)

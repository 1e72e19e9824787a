"""The choice of the embedder: from the request, the settings, and what the file holds.

What a file says is data, and may come from anywhere. It names the model that a service is asked
for, never the service, and no model that would be loaded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent_memory.embeddings.registry import EmbedderSpec
from agent_memory.embeddings.settings import DEFAULT_MODEL, EmbedderSettings
from agent_memory.errors import ConfigurationError
from agent_memory.models.agent import AgentConfig
from agent_memory.models.config import MemoryToolConfig
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.models.embedding_traits import EMBEDDING_MODELS
from agent_memory.services.vectors import VectorState

_FIELDS: Final = {
    "embedding_base_url": "base_url",
    "embedding_model": "model",
    "embedding_dimensions": "dimensions",
    "embedding_batch_size": "batch_size",
    "embedding_timeout": "timeout_seconds",
    "embedding_max_retries": "max_retries",
}


def settings_of(config: MemoryToolConfig, in_file: AgentConfig) -> EmbedderSettings:
    """Return the settings for embedders; A's defaults are not explicit and do not count."""
    key = config.embedding_api_key
    names = config.model_fields_set & _FIELDS.keys()
    return EmbedderSettings(
        api_key=None if key is None else key.get_secret_value(),
        file_model=in_file.embedding_model
        if "embedding_model" in in_file.model_fields_set
        else None,
        **{_FIELDS[name]: getattr(config, name) for name in names},
    )


def is_auto(spec: EmbedderSpec) -> bool:
    """Return whether the choice of the embedder was left open."""
    return isinstance(spec, str) and spec.strip() == "auto"


def embedder_to_serve(
    spec: EmbedderSpec, model: EmbeddingModel, settings: EmbedderSettings
) -> tuple[EmbedderSpec, EmbedderSettings]:
    """Return the requested embedder, set up to make vectors like those in the file.

    OpenAI's client is asked for the file's model and dimensions, whatever the settings say:
    searches keep using them until `migrate` changes them.
    """
    if is_auto(spec):
        # The file names an embedder with its model; a configured model is for a migration.
        spec, settings = _named_in_file(model), replace(settings, model=None)
    is_single = isinstance(spec, str) and "," not in spec
    if not _is_of_openai(model) or (is_single and not _is_openai(spec)):
        return spec, settings  # with the file's model, another embedder would load that
    # Not as openai:MODEL, since names are split at commas.
    settings = replace(settings, model=model.model, dimensions=_dimensions_to_ask(model, settings))
    if is_single:
        return "openai", settings
    if isinstance(spec, str | list | tuple):
        members = spec.split(",") if isinstance(spec, str) else spec
        return ["openai" if _is_openai(member) else member for member in members], settings
    return spec, settings


def embedder_to_migrate_to(
    state: VectorState, settings: EmbedderSettings
) -> tuple[EmbedderSpec, EmbedderSettings]:
    """Return the embedder to migrate to if none is named.

    If OpenAI's model is configured, that is OpenAI's; else the embedder of a migration in progress,
    or of the last one, for OpenAI's client with the model and dimensions of the settings; else
    ``"auto"``.
    """
    if settings.model:
        return "openai", settings
    building, current = state.building, state.active
    if building is not None and settings.dimensions is None:
        return embedder_to_serve("auto", building, settings)  # keep what was paid for
    current = building or current
    if current is None:
        return "auto", settings
    if not _is_openai(current.embedder):
        return _named_in_file(current), settings
    model = settings.openai_model() or current.model
    is_same = model == current.model and settings.openai_dimensions() is None
    dimensions = _dimensions_to_ask(current, settings) if is_same else settings.dimensions
    return "openai", replace(settings, model=model, dimensions=dimensions)


def difference(
    spec: EmbedderSpec, active: EmbeddingModel, settings: EmbedderSettings
) -> str | None:
    """Return a note if a migration would change to a different OpenAI model than the one in use."""
    if is_auto(spec):
        if not (settings.model or _is_openai(active.embedder)):
            return None
        state = VectorState(active, None, is_behind=False, lacks_index=False, is_unsorted=False)
        spec, settings = embedder_to_migrate_to(state, settings)
    if not (isinstance(spec, str) and _is_openai(spec)):
        return None
    model = settings.openai_model(spec.partition(":")[2].strip()) or DEFAULT_MODEL
    dimensions = settings.openai_dimensions()
    if model == active.model and dimensions in (None, active.dimensions):
        return None
    wanted = f"{model} with {dimensions} dimensions" if dimensions else model
    return (
        f"the stored vectors were made by {active.model} with {active.dimensions} dimensions,"
        f" but {wanted} is configured: run `agent-memory migrate` to embed them again"
    )


def _is_openai(spec: object) -> bool:
    """Return whether a name is that of OpenAI's client alone."""
    return isinstance(spec, str) and "," not in spec and spec.strip().partition(":")[0] == "openai"


def _is_of_openai(model: EmbeddingModel) -> bool:
    """Return whether OpenAI's client made a file's vectors; for a chain, as far as can be known."""
    members = model.embedder.split(",")
    is_known = model.model in EMBEDDING_MODELS
    return (all if not is_known else any)(_is_openai(member) for member in members)


def _dimensions_to_ask(model: EmbeddingModel, settings: EmbedderSettings) -> int | None:
    """Return the dimensions to request for vectors like the file's; ``None`` for the default.

    Many models that A does not list reject the parameter: it is sent only if configured.
    """
    spec = EMBEDDING_MODELS.get(model.model)
    is_short = spec is not None and model.dimensions != spec["dimensions"]
    return model.dimensions if is_short or settings.openai_dimensions() else None


def _named_in_file(model: EmbeddingModel) -> str:
    """Return the embedder that a file names, unless the name says which model to load.

    A file may come from anywhere, and a model from a hub or a directory can contain code.
    """
    names = [name.strip() for name in model.embedder.split(",")]
    if any(name.startswith("sentence-transformers:") for name in names):
        raise ConfigurationError(
            f"the memory names the embedder {model.embedder!r:.100}: to load that model, name"
            " it yourself (AGENT_MEMORY_EMBEDDER, or embedder=)"
        )
    return model.embedder

"""Embedders by name: ours, those of other packages, chains of them, or what is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from agent_memory.embeddings.chain import EmbedderChain
from agent_memory.embeddings.fastembed import FastEmbedEmbedder
from agent_memory.embeddings.openai import KEY_VARIABLE, OpenAIEmbedder
from agent_memory.embeddings.sentence_transformers import SentenceTransformerEmbedder
from agent_memory.embeddings.settings import EmbedderSettings, is_installed, text_setting
from agent_memory.embeddings.wordllama import WordLlamaEmbedder
from agent_memory.errors import ConfigurationError
from agent_memory.models.embedding_traits import EMBEDDING_MODELS
from agent_memory.models.protocols import Embedder

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EmbedderSpec = str | Embedder | Sequence[str | Embedder] | None
"""What ``create_embedder`` takes."""

_BUILT_IN: Final = ("openai", "wordllama", "local", "sentence-transformers", "fastembed")
_ENTRY_POINTS: Final = "agent_memory.embedders"
_NOTHING_SET: Final = EmbedderSettings()


def create_embedder(
    spec: EmbedderSpec, settings: EmbedderSettings = _NOTHING_SET
) -> Embedder | None:
    """Return the embedder that is meant, or ``None`` for none.

    ``spec`` is ``None`` or ``"none"``; an object of the ``Embedder`` protocol, which is returned;
    a name of ``embedder_names``, with an optional model (``"openai:text-embedding-3-large"``,
    ``"wordllama:128"``, ``"sentence-transformers:/path/to/model"``); ``"auto"``: OpenAI where
    OPENAI_API_KEY or one of the ``settings``' key, ``base_url`` and model is set, else what is
    installed of wordllama, sentence-transformers and fastembed, else none; or several of these, in
    a list or with commas between them, for an ``EmbedderChain``, which leaves out those that cannot
    be had here. ``settings`` are for what is named, and say in which order they count.

    Another package adds a name with an entry point of the group ``agent_memory.embedders``: a
    callable that takes the model, or ``None``, and returns an embedder.

    Raises ``ConfigurationError`` for an unknown name, and for an embedder that cannot be had.
    """
    if isinstance(spec, str) and "," in spec:
        return _create_chain(spec.split(","), settings)
    if isinstance(spec, list | tuple):
        return _create_chain(spec, settings)
    if isinstance(spec, str):
        # OpenAI's models are no one else's.
        model = None if settings.model in EMBEDDING_MODELS else settings.model
        return _create_by_name(spec, settings, default_model=model)
    if spec is None:
        return None
    if not isinstance(spec, type) and callable(getattr(spec, "embed", None)):
        return spec  # type: ignore[return-value]  # isinstance would run its properties
    raise ConfigurationError(
        f"{spec!r:.100} is no embedder: give a name ({', '.join(embedder_names())}), or an object"
        " with `model`, `dimensions` and `embed`"
    )


def refuse_unknown(spec: EmbedderSpec) -> None:
    """Raise ``ConfigurationError`` for a name that there is not; nothing is loaded or made."""
    for one in spec.split(",") if isinstance(spec, str) else spec if _is_list(spec) else ():
        if isinstance(one, str):
            _refuse_unknown(one)


def _is_list(spec: EmbedderSpec) -> TypeGuard[Sequence[str | Embedder]]:
    return isinstance(spec, list | tuple)


def embedder_names() -> list[str]:
    """List the names that ``create_embedder`` knows, other packages' included."""
    return sorted({"auto", "none", *_BUILT_IN, *_third_parties()})


def _create_chain(specs: Sequence[str | Embedder], settings: EmbedderSettings) -> Embedder | None:
    members: list[Embedder] = []
    faults: list[str] = []
    for spec in specs:
        _refuse_unknown(spec)
        try:
            # One model cannot be that of several: it is OpenAI's, among those that are named.
            member = (
                _create_by_name(spec, settings)
                if isinstance(spec, str)
                else create_embedder(spec, settings)
            )
        except ConfigurationError as error:
            faults.append(str(error))
        else:
            members += [] if member is None else [member]
    if faults and not members:
        raise ConfigurationError(f"no embedder of the chain can be had: {'; '.join(faults)}")
    return EmbedderChain(members) if members else None


def _create_by_name(
    spec: str, settings: EmbedderSettings, *, default_model: str | None = None
) -> Embedder | None:
    """Make one embedder; ``default_model`` is for another than OpenAI's where none is named."""
    _refuse_unknown(spec)
    name, _, model = spec.strip().partition(":")
    if name == "auto":
        name, model = _find_at_hand(settings), ""
    if name == "none":
        return None
    if name == "openai":
        return _create_openai(model, settings)
    if name in ("wordllama", "local"):
        return _create_wordllama(model)  # there is one, so no setting names another
    model = model or default_model or ""
    if name == "sentence-transformers":
        return SentenceTransformerEmbedder(model) if model else SentenceTransformerEmbedder()
    if name == "fastembed":
        return FastEmbedEmbedder(model) if model else FastEmbedEmbedder()
    return _create_foreign(_third_parties()[name], model or None)


def _refuse_unknown(spec: str | Embedder) -> None:
    """Refuse a name that was mistyped: of a chain, too, which else would leave it out."""
    if not isinstance(spec, str):
        return
    name = spec.strip().partition(":")[0]
    if name not in {"auto", "none", *_BUILT_IN} and name not in _third_parties():
        raise ConfigurationError(
            f"there is no embedder {spec.strip()!r:.100}: the names are"
            f" {', '.join(embedder_names())}"
        )


def _find_at_hand(settings: EmbedderSettings) -> str:
    """Return the name that ``auto`` stands for. An address in the environment may be for others."""
    is_set = settings.api_key or settings.base_url or settings.model
    if is_set or text_setting(None, KEY_VARIABLE):
        return "openai"
    for package in ("wordllama", "sentence_transformers", "fastembed"):
        if is_installed(package):
            return package.replace("_", "-")
    return "none"


def _create_openai(model: str, settings: EmbedderSettings) -> Embedder:
    return OpenAIEmbedder(
        settings.openai_model(model),
        api_key=settings.api_key,
        base_url=settings.base_url,
        dimensions=settings.dimensions,
        batch_size=settings.batch_size,
        timeout_seconds=settings.timeout_seconds,
        max_retries=settings.max_retries,
    )


def _create_wordllama(dimensions: str) -> Embedder:
    if dimensions and not dimensions.isdecimal():
        raise ConfigurationError(
            "wordllama is followed by its dimensions, as in wordllama:128, not by"
            f" {dimensions!r:.100}"
        )
    return WordLlamaEmbedder(int(dimensions)) if dimensions else WordLlamaEmbedder()


def _third_parties() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 10 ms

    return {entry.name: entry for entry in entry_points(group=_ENTRY_POINTS)}


def _create_foreign(entry: EntryPoint, model: str | None) -> Embedder:
    try:
        embedder = entry.load()(model)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"the embedder {entry.name} ({entry.value}) cannot be had:"
            f" {type(error).__name__}: {error!s:.300}"
        ) from error
    if not callable(getattr(embedder, "embed", None)):
        raise ConfigurationError(
            f"the embedder {entry.name} ({entry.value}) made {embedder!r:.100}, which has no embed"
        )
    return embedder  # type: ignore[no-any-return]  # as far as can be seen without asking it

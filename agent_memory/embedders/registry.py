"""Embedders by name: ours, those of other packages, chains of them, or what is at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from agent_memory.embedders.chain import EmbedderChain
from agent_memory.embedders.fastembed import FastEmbedEmbedder
from agent_memory.embedders.openai import KEY_VARIABLE, OpenAIEmbedder
from agent_memory.embedders.sentence_transformers import SentenceTransformerEmbedder
from agent_memory.embedders.settings import is_installed, text_setting
from agent_memory.embedders.wordllama import WordLlamaEmbedder
from agent_memory.errors import ConfigurationError
from agent_memory.protocols import Embedder

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EmbedderSpec = str | Embedder | Sequence[str | Embedder] | None
"""What ``create_embedder`` takes."""

_ENTRY_POINTS: Final = "agent_memory.embedders"


def create_embedder(spec: EmbedderSpec) -> Embedder | None:
    """Return the embedder that is meant, or ``None`` for none.

    ``spec`` is ``None`` or ``"none"``; an object of the ``Embedder`` protocol, which is returned;
    a name of ``embedder_names``, with an optional model (``"openai:text-embedding-3-large"``,
    ``"wordllama:128"``, ``"sentence-transformers:/path/to/model"``); ``"auto"``: OpenAI where
    OPENAI_API_KEY is set, else what is installed of wordllama, sentence-transformers and fastembed,
    else none; or several of these, in a list or with commas between them, for an ``EmbedderChain``,
    which leaves out those that cannot be had here.

    Another package adds a name with an entry point of the group ``agent_memory.embedders``: a
    callable that takes the model, or ``None``, and returns an embedder.

    Raises ``ConfigurationError`` for an unknown name, and for an embedder that cannot be had.
    """
    if isinstance(spec, str) and "," in spec:
        return _create_chain(spec.split(","))
    if isinstance(spec, list | tuple):
        return _create_chain(spec)
    if isinstance(spec, str):
        return _create_by_name(spec.strip())
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


def _create_chain(specs: Sequence[str | Embedder]) -> Embedder | None:
    members: list[Embedder] = []
    faults: list[str] = []
    for spec in specs:
        _refuse_unknown(spec)
        try:
            member = create_embedder(spec)
        except ConfigurationError as error:
            faults.append(str(error))
        else:
            members += [] if member is None else [member]
    if faults and not members:
        raise ConfigurationError(f"no embedder of the chain can be had: {'; '.join(faults)}")
    return EmbedderChain(members) if members else None


def _create_by_name(spec: str) -> Embedder | None:
    _refuse_unknown(spec)
    name, _, model = spec.partition(":")
    if name == "none":
        return None
    if name == "auto":
        found = _find_at_hand()
        return None if found is None else _create_by_name(found)
    if name in _BUILT_IN:
        return _BUILT_IN[name](model or None)
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


def _find_at_hand() -> str | None:
    if text_setting(None, KEY_VARIABLE):
        return "openai"
    for package in ("wordllama", "sentence_transformers", "fastembed"):
        if is_installed(package):
            return package.replace("_", "-")
    return None


def _create_wordllama(model: str | None) -> Embedder:
    if model is not None and not model.isdecimal():
        raise ConfigurationError(
            f"wordllama is followed by its dimensions, as in wordllama:128, not by {model!r:.100}"
        )
    return WordLlamaEmbedder(int(model)) if model else WordLlamaEmbedder()


def _create_sentence_transformers(model: str | None) -> Embedder:
    return SentenceTransformerEmbedder(model) if model else SentenceTransformerEmbedder()


def _create_fastembed(model: str | None) -> Embedder:
    return FastEmbedEmbedder(model) if model else FastEmbedEmbedder()


_BUILT_IN: Final[dict[str, Callable[[str | None], Embedder]]] = {
    "openai": OpenAIEmbedder,
    "wordllama": _create_wordllama,
    "local": _create_wordllama,
    "sentence-transformers": _create_sentence_transformers,
    "fastembed": _create_fastembed,
}


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

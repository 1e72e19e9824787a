"""Embeddings from the ONNX models that fastembed runs locally."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.onnx_models import keep_from_telemetry
from agent_memory.embeddings.prefixes import prefixes_of
from agent_memory.embeddings.settings import PROBE_TEXT, EmbedderSettings
from agent_memory.runtime.fork_safety import Once
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DEFAULT_MODEL: Final = "BAAI/bge-small-en-v1.5"


class FastEmbedEmbedder:
    """Runs a model from fastembed's list: extra ``fastembed``.

    ``model`` is its name in that list. fastembed downloads it once, unless ``directory`` has its
    files. If the model is known to tell questions from passages, each gets its prefix. Raises
    ``ConfigurationError`` if the package is not installed; the model is loaded when first used.
    """

    def __init__(self, model: str = _DEFAULT_MODEL, *, directory: str | None = None) -> None:
        require_package("fastembed", extra="fastembed")
        self._prefixes = prefixes_of(model)
        self.model = self._prefixes.mark(model)
        self.name = "fastembed" if model == _DEFAULT_MODEL else f"fastembed:{model}"
        self._loaded = _shared(model, directory)

    @property
    def dimensions(self) -> int:
        """The length of a vector; this loads the model."""
        return len(self.embed([PROBE_TEXT])[0])

    def load(self) -> None:
        """Load the model if it is not loaded yet, which takes seconds."""
        self._loaded.get()

    def embed(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return an array for each text; the model reads only the beginning of a long one."""
        return self._embed(self._prefixes.passage, texts)

    def embed_queries(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return an array for each query."""
        return self._embed(self._prefixes.query, texts)

    def _embed(self, prefix: str, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return list(self._loaded.get().embed([prefix + text for text in texts]))


def create(model: str, _settings: EmbedderSettings) -> FastEmbedEmbedder:
    """Return the embedder for a model; an empty text means the default."""
    return FastEmbedEmbedder(model or _DEFAULT_MODEL)


@cache
def _shared(model: str, directory: str | None) -> Once[Any]:
    """Return the only instance of a model in this process: it takes 100 MB and seconds to load."""

    def load() -> Any:  # noqa: ANN401 - the package is optional
        keep_from_telemetry()
        return import_module("fastembed").TextEmbedding(model, specific_model_path=directory)

    return Once(load)

"""Embeddings from the models that sentence-transformers runs locally."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.prefixes import prefixes_of
from agent_memory.embeddings.settings import PROBE_TEXT, EmbedderSettings
from agent_memory.runtime.fork_safety import Once
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DEFAULT_MODEL: Final = "all-MiniLM-L6-v2"


class SentenceTransformerEmbedder:
    """Runs a sentence-transformers model: extra ``sentence-transformers``.

    ``model`` is a name at Hugging Face, from where the package downloads it once, or a directory
    that contains the model. The memory file records the last part of either, so that a model keeps
    its name when it is moved. If the model is known to tell questions from passages, each gets its
    prefix. Raises ``ConfigurationError`` if the package is not installed; the model is loaded when
    first used.
    """

    def __init__(self, model: str = _DEFAULT_MODEL) -> None:
        require_package("sentence_transformers", extra="sentence-transformers")
        # "." has no last part of its own.
        name = (
            Path(model).resolve().name
            if Path(model).is_dir()
            else model.rsplit("/", maxsplit=1)[-1]
        )
        self._prefixes = prefixes_of(name)
        self.model = self._prefixes.mark(name)
        is_default = model == _DEFAULT_MODEL
        self.name = "sentence-transformers" if is_default else f"sentence-transformers:{model}"
        self._loaded = _shared(model)

    @property
    def dimensions(self) -> int:
        """The length of a vector; this loads the model."""
        return len(self.embed([PROBE_TEXT])[0])

    def load(self) -> None:
        """Load the model if it is not loaded yet, which takes seconds."""
        self._loaded.get()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text; the model reads only the start of a long one."""
        return self._embed(self._prefixes.passage, texts)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each query, as rows of an array."""
        return self._embed(self._prefixes.query, texts)

    def _embed(self, prefix: str, texts: Sequence[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self._loaded.get().encode(
            [prefix + text for text in texts], normalize_embeddings=True, show_progress_bar=False
        )
        return rows


def create(model: str, _settings: EmbedderSettings) -> SentenceTransformerEmbedder:
    """Return the embedder for a model; an empty text means the default."""
    return SentenceTransformerEmbedder(model or _DEFAULT_MODEL)


@cache
def _shared(model: str) -> Once[Any]:
    """Return the only instance of a model in this process: it takes 100 MB and seconds to load."""
    return Once(lambda: import_module("sentence_transformers").SentenceTransformer(model))

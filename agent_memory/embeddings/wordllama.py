"""Local embeddings with wordllama, whose weights are part of its package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.errors import ConfigurationError
from agent_memory.runtime.fork_safety import Once
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SIZES: Final = (64, 128, 256)


class WordLlamaEmbedder:
    """Embeds locally and offline: extra ``local``, 0.1 ms per text, 120 MB of memory.

    ``dimensions`` is 256, 128 or 64; shorter vectors are the first components of the full ones. A
    text's vector does not depend on the other texts in the batch. Raises ``ConfigurationError`` for
    other dimensions, and if wordllama is not installed; it is loaded at the first embedding, once
    per process.
    """

    def __init__(self, dimensions: int = 256) -> None:
        if dimensions not in _SIZES:
            raise ConfigurationError(f"wordllama has 64, 128 or 256 dimensions, not {dimensions!r}")
        require_package("wordllama", extra="local")
        self.dimensions = dimensions
        self.model = f"wordllama-l2-supercat-{dimensions}"
        self.name = "wordllama" if dimensions == 256 else f"wordllama:{dimensions}"

    @property
    def is_instant(self) -> bool:
        """Whether a short text needs no time limit: the weights are loaded."""
        return _model.is_made

    def load(self) -> None:
        """Load the weights if they are not loaded yet, which takes half a second."""
        _model.get()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text, as rows of an array."""
        import numpy as np  # noqa: PLC0415 - of the extra

        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        """Return the mean of the vectors of the text's tokens, normalized to length 1.

        wordllama's own ``embed`` pads all texts of a batch to the longest: 64 texts, one of them
        with 10,000 rare characters, would take 2 GB. It also starts threads, about which its
        tokenizer complains on stderr after a fork.
        """
        import numpy as np  # noqa: PLC0415 - of the extra

        model = _model.get()
        tokens = model.tokenizer.encode(text, add_special_tokens=False).ids
        if tokens:
            mean = model.embedding[tokens, : self.dimensions].mean(axis=0)
            length = np.linalg.norm(mean)
            if length > 0:
                return np.asarray(mean / length, dtype=np.float32)
        return self._vector_of_nothing()

    def _vector_of_nothing(self) -> NDArray[np.float32]:
        """Return the vector of a text without tokens, such as the empty one.

        It is not zero (a zero vector has no cosine), is always the same, and is close to nothing:
        components of equal size and alternating signs have a cosine of at most 0.2 with real texts.
        """
        import numpy as np  # noqa: PLC0415 - of the extra

        signs = np.resize(np.array([1, -1], dtype=np.float32), self.dimensions)
        return signs / np.float32(self.dimensions**0.5)


def create(dimensions: str, _settings: EmbedderSettings) -> WordLlamaEmbedder:
    """Return the embedder with these dimensions; an empty text means all."""
    if dimensions and not dimensions.isdecimal():
        raise ConfigurationError(
            "wordllama is followed by its dimensions, as in wordllama:128, not by"
            f" {dimensions!r:.100}"
        )
    return WordLlamaEmbedder(int(dimensions)) if dimensions else WordLlamaEmbedder()


def _load() -> Any:  # noqa: ANN401 - wordllama has no types
    """Load the weights from the package.

    By default wordllama looks for its tokenizer in the wrong directory, and then downloads it.
    """
    import logging  # noqa: PLC0415 - only to quiet wordllama
    from importlib import import_module  # noqa: PLC0415 - only where wordllama is used
    from pathlib import Path  # noqa: PLC0415 - likewise

    # Its import configures the root logger, so that every INFO of the program appears on stderr.
    # A root logger that already has a handler is left alone.
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        wordllama = import_module("wordllama")
    finally:
        logging.getLogger().removeHandler(handler)
    directory = Path(wordllama.__file__ or "").parent
    model = wordllama.WordLlama.load(cache_dir=directory, disable_download=True)
    model.tokenizer.no_padding()
    return model


_model: Final = Once(_load)

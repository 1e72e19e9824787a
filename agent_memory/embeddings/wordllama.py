"""Embeddings without a service: wordllama, whose weights come with its package."""

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
    """Embeds here and now, without a network: extra ``local``, 0.1 ms a text, 120 MB of memory.

    ``dimensions`` are 256, or the first 128 or 64 of these. A text's vector does not depend on the
    texts beside it. Raises ``ConfigurationError`` for other dimensions, and where wordllama is not
    installed; it is loaded at the first embedding, once in a process.
    """

    def __init__(self, dimensions: int = 256) -> None:
        if dimensions not in _SIZES:
            raise ConfigurationError(f"wordllama has 64, 128 or 256 dimensions, not {dimensions!r}")
        require_package("wordllama", extra="local")
        self.dimensions = dimensions
        self.model = f"wordllama-l2-supercat-{dimensions}"
        self.name = "wordllama" if dimensions == 256 else f"wordllama:{dimensions}"

    def load(self) -> None:
        """Load the weights, if they are not loaded yet: half a second."""
        _model.get()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row of length 1 for each text."""
        import numpy as np  # noqa: PLC0415 - of the extra

        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        """Return the mean of the vectors of the text's tokens, of length 1.

        wordllama's own ``embed`` fills up all texts of a batch to its longest one: 64 texts, one of
        them of 10,000 rare characters, would take 2 GB. It also starts threads, of which its
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

        It has a length (a zero vector has no cosine), is the same every time, and is near nothing:
        components of one size and of both signs have a cosine of 0.2 at most with real texts.
        """
        import numpy as np  # noqa: PLC0415 - of the extra

        signs = np.resize(np.array([1, -1], dtype=np.float32), self.dimensions)
        return signs / np.float32(self.dimensions**0.5)


def create(dimensions: str, _settings: EmbedderSettings) -> WordLlamaEmbedder:
    """Return the embedder of as many dimensions, the empty text for all."""
    if dimensions and not dimensions.isdecimal():
        raise ConfigurationError(
            "wordllama is followed by its dimensions, as in wordllama:128, not by"
            f" {dimensions!r:.100}"
        )
    return WordLlamaEmbedder(int(dimensions)) if dimensions else WordLlamaEmbedder()


def _load() -> Any:  # noqa: ANN401 - wordllama has no types
    """Load the weights that stand in the package.

    Left to itself wordllama looks for its tokenizer in the wrong directory, and then downloads it.
    """
    import logging  # noqa: PLC0415 - only to quiet wordllama
    from importlib import import_module  # noqa: PLC0415 - only where wordllama is used
    from pathlib import Path  # noqa: PLC0415 - likewise

    # Its import sets up the root logger, so that every INFO of the program appears on stderr.
    # A root logger that has a handler is left alone.
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

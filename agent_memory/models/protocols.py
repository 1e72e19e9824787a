"""The protocols of the parts that users may implement themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine measures how close their meanings are.

    Any object of this shape can be given to ``AgentMemory(embedder=…)``. ``model`` names the vector
    space: vectors of two models are never compared, so a model that is retrained needs a new name.
    ``embed`` may be called from another thread, and may raise anything when it fails: the memory
    stays safe, is found by keyword, and is embedded later.

    An embedder may also have any of:

    - ``similarity_floor``: the cosine, -1 to 1, below which two texts are unrelated. It is measured
      from the mean of a store's vectors.
    - ``vector_weight``: how much such a cosine of 0.5 counts beside the words, which count 1.
    - ``cost_per_1k_tokens``: in dollars.
    - ``batch_size``: texts per call.
    - ``name``: how to request the same embedder in another process.
    - ``load()``: called once before the first ``embed``, and allowed more time.
    - ``embed_queries(texts)``: for models that tell questions from passages, as E5, BGE and nomic
      do. It embeds what is asked, ``embed`` what is stored; without it, ``embed`` does both.

    See ``MODEL_TRAITS``. An embedder that changes how it embeds what is stored needs a new
    ``model``.
    """

    @property
    def model(self) -> str:
        """The model's name, 1 to 200 characters."""

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""

    def embed(self, texts: Sequence[str]) -> Iterable[Iterable[float]]:
        """Return one vector of ``dimensions`` finite numbers, not all zero, for each text.

        Vectors may be lists or numpy arrays.
        """


@runtime_checkable
class SecretScanner(Protocol):
    """Finds keys, tokens and passwords in a text, for ``AgentMemory(secret_scanner=…)``.

    It replaces the library's own scanner, and may be called from several threads. If it raises, the
    verb raises the same exception, and nothing is stored.
    """

    def find(self, text: str) -> Iterable[tuple[int, int, str]]:
        """Return the start, the end (exclusive) and the kind of each secret.

        The kind, such as "AWS access key", is shown and stored in place of the secret.
        """


class Reranker(Protocol):
    """Reorders the hits of a search: a function, for ``search(…, reranker=…)``.

    A cross-encoder is one line: ``lambda query, texts: model.predict([(query, t) for t in texts])``
    with a ``CrossEncoder`` of sentence-transformers, or ``model.rerank`` with a
    ``TextCrossEncoder`` of fastembed. If it raises, ``degraded`` reports the error and the order
    stays.
    """

    def __call__(self, query: str, texts: Sequence[str], /) -> Iterable[float]:
        """Return a score for each text, in the order of the texts; higher is better."""


@runtime_checkable
class LanguageModel(Protocol):
    """Answers a prompt with JSON: extracts facts, and decides what they change in the memories.

    Its answers are never trusted: they are parsed strictly, and an invalid answer loses no fact. It
    may raise anything; that is reported as a ``ProviderError``.
    """

    @property
    def model(self) -> str:
        """The model's name, as its provider knows it."""

    def complete(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any]) -> str:
        """Return the model's answer: the text of one JSON object that should match ``schema``.

        ``messages`` are mappings of ``role`` (``system`` or ``user``) and ``content``. ``schema``
        is a JSON schema with a ``title``, for providers that can enforce one on the output.
        """

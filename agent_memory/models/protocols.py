"""What the library asks of a part that somebody else may write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine tells how near their meanings are.

    Any object of this shape can be given to ``AgentMemory(embedder=…)``. ``model`` names the space
    of the vectors: vectors of two models are never compared, so a model that is trained anew needs
    a new name. ``embed`` may be called from another thread, and raises what it likes when it
    fails: the memory stays safe, found by keyword, and is embedded later.

    An embedder may also have any of ``similarity_floor`` (a cosine of -1 to 1, of vectors seen
    from the middle of a store's, below which two texts have nothing to do with each other),
    ``vector_weight`` (how much such a cosine of 0.5 counts beside the words, which count 1),
    ``cost_per_1k_tokens`` (dollars), ``batch_size`` (texts a call), ``name`` (how to ask for it
    again in another process) and ``load()`` (to be called once before the first ``embed``, and
    allowed more time); see ``MODEL_TRAITS``.

    Where a model tells questions from passages, as E5, BGE and nomic do, ``embed_queries(texts)``
    embeds what is asked, as ``embed`` does what is stored; without it, ``embed`` does both. An
    embedder that comes to embed what is stored by another rule needs a new ``model``.
    """

    @property
    def model(self) -> str:
        """The model's name, 1 to 200 characters."""

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""

    def embed(self, texts: Sequence[str]) -> Iterable[Iterable[float]]:
        """Return one vector of ``dimensions`` finite numbers, not all zero, for each text.

        Lists will do, and so will numpy's arrays.
        """


@runtime_checkable
class SecretScanner(Protocol):
    """Finds keys, tokens and passwords in a text, for ``AgentMemory(secret_scanner=…)``.

    It is used instead of the library's own, and may be called from several threads. What it
    raises comes out of the verb as it is, and nothing is stored.
    """

    def find(self, text: str) -> Iterable[tuple[int, int, str]]:
        """Return where each secret begins and ends (before which character), and what it is.

        What it is, such as "AWS access key", is shown and stored in place of the secret.
        """


class Reranker(Protocol):
    """Puts hits in an order of its own: a function, for ``search(…, reranker=…)``.

    A cross-encoder is one line: ``lambda query, texts: model.predict([(query, t) for t in texts])``
    with a ``CrossEncoder`` of sentence-transformers, or ``model.rerank`` with a
    ``TextCrossEncoder`` of fastembed. What it raises is told in ``degraded``, and the order stays.
    """

    def __call__(self, query: str, texts: Sequence[str], /) -> Iterable[float]:
        """Return a score for each text, in their order: the higher, the better it answers."""


@runtime_checkable
class LanguageModel(Protocol):
    """Answers a prompt with JSON: it extracts facts and decides what they mean for the memories.

    What it answers is never trusted: it is parsed strictly, and what is wrong with it loses no
    fact. It may raise what it likes; that is told as a ``ProviderError``.
    """

    @property
    def model(self) -> str:
        """The model's name, as the provider knows it."""

    def complete(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any]) -> str:
        """Return the model's answer: the text of one JSON object that should meet ``schema``.

        ``messages`` are mappings of ``role`` (``system`` or ``user``) and ``content``. ``schema``
        is a JSON schema with a ``title``, for providers whose output can be held to one.
        """

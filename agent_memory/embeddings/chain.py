"""A chain of embedders: when one fails, the next one answers."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Sequence

from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.settings import PROBE_TEXT
from agent_memory.embeddings.usage import EmbeddingUsage
from agent_memory.errors import ConfigurationError, EmbeddingError, EmbeddingRefused
from agent_memory.models.protocols import Embedder
from agent_memory.runtime import fork_safety


class EmbedderChain:
    """Tries its members in order, and never mixes the vectors of two models.

    The first member that answers settles the chain on its model and dimensions, unless ``settle``
    did before; from then on only members with the same model and dimensions are asked. So a second
    server for the same model is a backup at any time, a second model only until the chain is
    settled. Threads may share it. Raises ``ConfigurationError`` for a chain without members.
    """

    def __init__(self, embedders: Sequence[Embedder]) -> None:
        if not embedders:
            raise ConfigurationError("a chain of embedders needs at least one embedder")
        # The user of the chain has a cache; another one here would only hold the vectors twice.
        self._members = [CheckedEmbedder(embedder, cache_size=0) for embedder in embedders]
        self._settled: tuple[str, int] | None = None
        self._lock = fork_safety.Lock()

    @property
    def model(self) -> str:
        """The model on which the chain is settled; if it is not settled yet, a member is asked."""
        return self._settle_by_asking()[0]

    @property
    def dimensions(self) -> int:
        """The length of a vector; if the chain is not settled yet, a member is asked."""
        return self._settle_by_asking()[1]

    @property
    def name(self) -> str:
        """The members' names, separated by commas."""
        return ",".join(member.name for member in self._members)

    @property
    def batch_size(self) -> int:
        """The number of texts per batch that every member accepts."""
        return min(member.batch_size for member in self._members)

    @property
    def base_url(self) -> str | None:
        """The value of the first member with the settled model."""
        return self._settled_member().base_url

    @property
    def similarity_floor(self) -> float | None:
        """The value of the members with the settled model."""
        return self._settled_member().similarity_floor

    @property
    def vector_weight(self) -> float:
        """The value of the members with the settled model."""
        return self._settled_member().vector_weight

    @property
    def cost_per_1k_tokens(self) -> float:
        """The value of the first member with the settled model."""
        return self._settled_member().cost_per_1k_tokens

    @property
    def usage(self) -> EmbeddingUsage:
        """The usage of all members together."""
        return sum((member.usage for member in self._members), EmbeddingUsage())

    def settle(self, model: str, dimensions: int) -> None:
        """Settle the chain on the model of a file.

        Raises ``ConfigurationError`` if no member has it, or if the chain is settled on another.
        """
        if not any(self._settles(member, model, dimensions) for member in self._members):
            models = ", ".join(member.model for member in self._members)
            raise ConfigurationError(
                f"no embedder of the chain has model {model!r} with {dimensions} dimensions;"
                f" it has {models}"
            )
        if not self._agree_on(model, dimensions):
            raise ConfigurationError(
                f"the chain already uses {self._settled}, and cannot embed for {model!r} with"
                f" {dimensions} dimensions: create another chain for that"
            )

    def load(self) -> None:
        """Load the settled model, in members that have something to load."""
        for member in self._members:
            if self._settled and member.model == self._settled[0]:
                with contextlib.suppress(EmbeddingError, ConfigurationError):
                    member.load()  # if it fails, another member may answer

    def embed(self, texts: Sequence[str]) -> list[array[float]]:
        """Return one vector for each text, all of the same model.

        Raises an ``EmbeddingError`` that names each member and its error; ``EmbeddingRefused`` if
        one of them answered, but refused these texts.
        """
        return self._embed(texts, CheckedEmbedder.embed)

    def embed_queries(self, texts: Sequence[str]) -> list[array[float]]:
        """Return one vector for each query; raises as ``embed`` does."""
        return self._embed(texts, CheckedEmbedder.embed_queries)

    def _embed(
        self,
        texts: Sequence[str],
        embed: Callable[[CheckedEmbedder, Sequence[str]], list[array[float]]],
    ) -> list[array[float]]:
        if not texts:
            return []
        faults: list[tuple[CheckedEmbedder, Exception]] = []
        for member in self._members:
            try:
                if self._settled is None or _has(member, *self._settled):
                    vectors = embed(member, texts)
                    if self._agree_on(member.model, member.dimensions):
                        return vectors
                    # Meanwhile another thread settled the chain on another model.
                    return self._embed(texts, embed)
            except (EmbeddingError, ConfigurationError) as error:
                faults.append((member, error))
        raise _failure(faults)

    def _settles(self, member: CheckedEmbedder, model: str, dimensions: int) -> bool:
        """Return whether a member has a model; if it cannot tell its dimensions, by name alone."""
        try:
            return _has(member, model, dimensions)
        except EmbeddingError:
            return member.model == model

    def _agree_on(self, model: str, dimensions: int) -> bool:
        """Settle the chain unless it is settled; return whether it is settled on these values."""
        with self._lock.bare:
            self._settled = self._settled or (model, dimensions)
            return self._settled == (model, dimensions)

    def _settle_by_asking(self) -> tuple[str, int]:
        if self._settled is None:
            self.embed([PROBE_TEXT])
        if self._settled is None:  # embed either raises or settles the chain
            raise EmbeddingError("no embedder of the chain answered")
        return self._settled

    def _settled_member(self) -> CheckedEmbedder:
        model, _ = self._settle_by_asking()
        return next(member for member in self._members if member.model == model)


def _has(member: CheckedEmbedder, model: str, dimensions: int) -> bool:
    return member.model == model and member.dimensions == dimensions


def _failure(faults: list[tuple[CheckedEmbedder, Exception]]) -> EmbeddingError:
    causes = "; ".join(f"{member.name}: {error}" for member, error in faults)
    refused = any(isinstance(error, EmbeddingRefused) for _, error in faults)
    kind = EmbeddingRefused if refused else EmbeddingError
    failure = kind(f"no embedder of the chain answered ({causes})")
    failure.__cause__ = faults[-1][1] if faults else None
    return failure

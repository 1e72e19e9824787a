"""The cost of embeddings: requests, texts, tokens, dollars."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_BYTES_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """What an embedder has been used for so far. Usages can be added: ``first + second``.

    ``requests`` counts those that were answered; ``tokens`` is the service's count, or an estimate
    if it gives none; ``cost_usd`` is in dollars.
    """

    requests: int = 0
    texts: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: EmbeddingUsage) -> EmbeddingUsage:
        return EmbeddingUsage(
            requests=self.requests + other.requests,
            texts=self.texts + other.texts,
            tokens=self.tokens + other.tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )

    def __sub__(self, earlier: EmbeddingUsage) -> EmbeddingUsage:
        return EmbeddingUsage(
            requests=self.requests - earlier.requests,
            texts=self.texts - earlier.texts,
            tokens=self.tokens - earlier.tokens,
            cost_usd=self.cost_usd - earlier.cost_usd,
        )

    @classmethod
    def of_request(
        cls, texts: int, tokens: int, *, cost_per_1k_tokens: float = 0.0
    ) -> EmbeddingUsage:
        """Return the usage of one answered request."""
        return cls(1, texts, tokens, tokens / 1000 * cost_per_1k_tokens)


def estimate_tokens(texts: Iterable[str]) -> int:
    """Return estimated tokens of texts: a quarter of the UTF-8 bytes of each, rounded up."""
    return sum(-(-len(text.encode(errors="replace")) // _BYTES_PER_TOKEN) for text in texts)

"""Document D's interface to embeddings: asynchronous, and OpenAI's by default."""

from __future__ import annotations

from array import array

from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.settings import DEFAULT_MODEL
from agent_memory.embeddings.usage import EmbeddingUsage
from agent_memory.errors import ValidationError
from agent_memory.models.protocols import Embedder


class EmbeddingGenerator:
    """Generates embeddings without blocking the event loop.

    ``model`` is one of OpenAI's, and ``api_key`` comes from OPENAI_API_KEY by default; an
    ``embedder`` replaces both. A text that was embedded in the last five minutes is not embedded
    again. Raises ``ConfigurationError`` if there is no key.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        api_key: str | None = None,
        *,
        embedder: Embedder | None = None,
    ) -> None:
        self._embedder = CheckedEmbedder(embedder or OpenAIEmbedder(model, api_key=api_key))

    @property
    def usage(self) -> EmbeddingUsage:
        """Requests, texts, tokens and dollars so far."""
        return self._embedder.usage

    async def generate(self, text: str) -> list[float]:
        """Return the embedding of a text.

        Raises ``ValidationError`` for an empty text, ``EmbeddingError`` if the service fails.
        """
        vectors = await self._embed([_checked(text, "text")])
        return vectors[0].tolist()

    async def generate_batch(self, texts: list[str]) -> list[list[float]]:
        """Return the embeddings of texts, in order; raises as ``generate`` does."""
        if isinstance(texts, str):
            raise ValidationError.of("texts", "give a list of strings", texts)
        checked = [_checked(text, f"texts[{number}]") for number, text in enumerate(texts)]
        return [vector.tolist() for vector in await self._embed(checked)]

    async def _embed(self, texts: list[str]) -> list[array[float]]:
        import asyncio  # noqa: PLC0415 - the caller has imported it already

        return await asyncio.to_thread(self._embedder.embed, texts)


def _checked(text: object, field: str) -> str:
    if not isinstance(text, str):
        raise ValidationError.of(field, "give a string", text)
    if not text.strip():
        raise ValidationError.of(field, "give a string that is not empty", text)
    return text

"""The rows of embedding tables: models, and texts that are waiting to be embedded."""

from typing import Literal, NamedTuple


class EmbeddingModel(NamedTuple):
    """A model whose vectors are in a file; the fields are the columns of its table."""

    model_id: int
    model: str
    dimensions: int
    embedder: str
    base_url: str | None
    state: Literal["building", "active"]
    similarity_floor: float | None
    vector_weight: float
    is_indexed: bool

    def is_same(self, other: "EmbeddingModel") -> bool:
        """Return whether the two can be compared: the same model, dimensions and server."""
        return (self.model, self.dimensions, self.base_url) == (
            other.model,
            other.dimensions,
            other.base_url,
        )


class QueuedMemory(NamedTuple):
    """A memory that has changed since the embeddings were last brought up to date.

    ``text`` is ``None`` if the memory was deleted, or if its bytes are not valid text.
    """

    row_id: int
    text: str | None
    is_gone: bool
    is_archived: bool
    is_refused: bool


class PendingText(NamedTuple):
    """A memory whose embedding is missing or outdated, by its row number."""

    row_id: int
    text: str

"""What tables keep of vectors: the model that they come from, and texts that wait for one."""

from typing import Literal, NamedTuple


class EmbeddingModel(NamedTuple):
    """A model whose vectors are in a file; the fields are those of the table."""

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
        """Return whether the two can be compared: the model, its size, who made them."""
        return (self.model, self.dimensions, self.base_url) == (
            other.model,
            other.dimensions,
            other.base_url,
        )


class QueuedMemory(NamedTuple):
    """A memory that something happened to since the embeddings were last looked at.

    ``text`` is ``None`` where the memory is gone, and where its bytes are no text.
    """

    row_id: int
    text: str | None
    is_gone: bool
    is_archived: bool
    is_refused: bool


class PendingText(NamedTuple):
    """A memory whose embedding is missing or of another text, by its row number."""

    row_id: int
    text: str

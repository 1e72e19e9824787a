"""The model that a file's vectors come from, and a text that waits for its vector."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
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


@dataclass(frozen=True, slots=True)
class QueuedMemory:
    """A memory that something happened to since the embeddings were last looked at.

    ``text`` is ``None`` where the memory is gone, and where its bytes are no text.
    """

    seq: int
    text: str | None
    is_gone: bool
    is_archived: bool
    is_refused: bool


@dataclass(frozen=True, slots=True)
class PendingText:
    """A memory whose embedding is missing or of another text, by its row number."""

    seq: int
    text: str

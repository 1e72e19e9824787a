"""Protocols of the indexes: keywords, similar texts, embeddings, vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from agent_memory.models.agent import (
    Problem,
)
from agent_memory.models.duplicate import Duplicate
from agent_memory.models.embedding_rows import EmbeddingModel, PendingText, QueuedMemory
from agent_memory.storage.cells import CellSample
from agent_memory.storage.centering import Centred
from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.filters import EVERYTHING, Filter
from agent_memory.storage.quantization import Quantized
from agent_memory.storage.records import Alternative, NearestVectors, QueryVector, Term, WordCounts


class KeywordIndex(Protocol):
    """The FTS5 index of words."""

    def terms_of(self, query: str) -> list[Term]:
        """Return the distinct terms of a query, 64 at most, without stop words."""

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        """Return in how many memories each term stands, or about how many an alternative of it."""

    def tokens(self, words: Sequence[str]) -> list[str]:
        """Return some words as the index holds them; what is no single word is an empty text."""

    def vocabulary(
        self, words: Iterable[str], prefixes: Iterable[str], filters: Filter
    ) -> dict[str, int]:
        """Return the words in the index that are among ``words`` or begin with a prefix.

        The values are how many memories have each. Filters that let many memories pass may be left
        out of account: ``examples`` tells whether one of them has a word.
        """

    def examples(self, alternative: Alternative, filters: Filter, *, limit: int) -> list[str]:
        """Return texts of memories that pass the filters and have an alternative of a word."""

    def candidates(
        self,
        terms: Sequence[Term],
        frequencies: Sequence[int],
        filters: Filter,
        *,
        needed: int,
        limit: int,
    ) -> tuple[list[int], list[Term]]:
        """Return the rows that match best by FTS5's own measure, and the terms left out of it."""

    def postings(self, terms: Sequence[Term], filters: Filter) -> list[list[int]]:
        """Return, for each term, the rows that have it, of the memories that pass the filters."""

    def words(self, row_ids: Sequence[int], terms: Sequence[Term]) -> dict[int, WordCounts]:
        """Return the words of these rows as the index has them, by row id."""


class SimilarityQueries(Protocol):
    """Queries for the memories that have many words in common with a text."""

    def similar(self, question: DuplicateQuery, *, without: Sequence[str] = ()) -> list[Duplicate]:
        """Return the memories with most words in common, five at most, but those of some ids."""

    def is_corrected(self, question: DuplicateQuery, same: Sequence[Duplicate]) -> bool:
        """Return whether a memory newer than all with the same text says something similar."""


class EmbeddingTable(Protocol):
    """The tables of embedding models, of vectors, and of the embedding queue."""

    def models(self) -> list[EmbeddingModel]:
        """Return the models of the file: the active one, and one that is being built."""

    def add_model(self, model: EmbeddingModel, *, now: datetime) -> int:
        """Add a model that is to be built, and return its number."""

    def activate(self, model_id: int) -> None:
        """Make a model the active one, which searches use."""

    def drop_model(self, model_id: int) -> None:
        """Delete a model, and by cascade its vectors."""

    def set_indexed(self, model_id: int, *, is_indexed: bool) -> None:
        """Set whether the index of a model follows its vectors."""

    def put(self, model_id: int, pending: PendingText, vector: Quantized) -> bool:
        """Insert or replace a memory's vector; return whether the memory still has that text."""

    def of_same_text(self, model_id: int, text: str) -> Quantized | None:
        """Return the vector that another memory of the same text has."""

    def drop_other_texts(self, row_id: int, text: str) -> list[int]:
        """Delete the vectors that a memory has of another text; return the models that had one."""

    def get(self, model: EmbeddingModel, row_id: int) -> Quantized | None:
        """Return the vector of a memory; one of another length is none."""

    def count(self, model_id: int) -> int:
        """Count the vectors of a model."""

    def archived_among(self, row_ids: Sequence[int]) -> set[int]:
        """Return those of the rows that are archived."""

    def iterate(
        self, model_id: int, *, page: int = 1000
    ) -> Iterator[tuple[str, bytes, float, bytes]]:
        """Yield memory id, hash of the text, scale and bytes of each vector of a model."""

    def is_queue_empty(self) -> bool:
        """Return whether no memory changed since the embeddings were last brought up to date."""

    def queued_memories(self, *, after: int, limit: int) -> list[QueuedMemory]:
        """Return queued memories from a row on; -1 for no limit."""

    def count_queued(self) -> int:
        """Count the memories in the embedding queue."""

    def dequeue(self, row_ids: Iterable[int]) -> None:
        """Remove rows from the embedding queue."""

    def clear_queue(self) -> None:
        """Empty the embedding queue."""

    def queue_missing(self, model_id: int) -> int:
        """Queue every memory that has no vector of a model, and return their number."""

    def refuse(self, pending: Iterable[PendingText]) -> None:
        """Record that the embedder refused these texts: they are not embedded again."""

    def forget_refusals(self) -> None:
        """Clear the refusals, so that every text is tried again, by another embedder perhaps."""

    def texts_without_vector(self, model_id: int, *, after: int, limit: int) -> list[PendingText]:
        """Return readable memories without a vector of a model, from a row on."""

    def count_texts_without_vector(self, model_id: int) -> tuple[int, int]:
        """Return how many memories have no vector of a model, and the bytes of their texts."""

    def sample(self, model_id: int, size: int) -> list[tuple[int, str]]:
        """Return rows and ids of some memories that have a vector and are not archived."""

    def sample_with_texts(self, model_id: int, size: int) -> list[tuple[PendingText, Quantized]]:
        """Return some memories with their texts and vectors."""


class VectorIndex(Protocol):
    """The vector index of one open file: nearest vectors, kept in step with the memories."""

    def center(self, query: QueryVector, filters: Filter = EVERYTHING) -> QueryVector:
        """Return a query centred on the mean of the vectors of memories that pass the filters."""

    def nearest(self, query: QueryVector, filters: Filter) -> NearestVectors:
        """Return the nearest of the memories that pass the filters. Must run inside ``read()``."""

    def cosines(
        self, model_id: int, row_ids: Sequence[int], query: bytes | Centred
    ) -> dict[int, float]:
        """Return the cosine of each of these rows with a query, where its vector is current."""

    def is_missing(self, model: EmbeddingModel) -> bool:
        """Return whether a model has no codes where it could have them."""

    def begin(self, model: EmbeddingModel) -> None:
        """Begin the index of a model, unless it is begun already. Must run inside ``write()``."""

    def build(self, model: EmbeddingModel, limit: int) -> bool:
        """Put so many more vectors into an index that was begun; return whether some are left.

        It serves once none are. Must run inside ``write()``.
        """

    def is_unsorted(self, model: EmbeddingModel) -> bool:
        """Return whether codes are on their way into new cells."""

    def cells_due(self, model: EmbeddingModel) -> CellSample | None:
        """Return what new cells are to be made from, if the index has outgrown those it has."""

    def make_cells(self, model: EmbeddingModel, centres: Sequence[int], *, vectors: int) -> None:
        """Retire the cells of an index, and add new ones. Must run inside ``write()``."""

    def sort(self, model: EmbeddingModel, limit: int) -> None:
        """Move so many codes at most from retired cells to others. Must run inside ``write()``."""

    def enter(self, model: EmbeddingModel, entries: Sequence[tuple[int, bytes]]) -> None:
        """Insert or replace vectors, by row id."""

    def leave(self, model: EmbeddingModel, row_ids: Sequence[int]) -> None:
        """Remove rows."""

    def drop(self, model: EmbeddingModel) -> None:
        """Drop the index of a model."""

    def forget_deleted(self) -> None:
        """Remove the memories whose rows were erased."""

    def problems_of(self, model: EmbeddingModel) -> list[Problem]:
        """Check every vector of a model, and its index against them."""

    def repair_model(self, model: EmbeddingModel) -> None:
        """Delete the wrong vectors of a model and rebuild its index. Must run in ``write()``."""

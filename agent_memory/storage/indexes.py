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
    """The keyword index of full text."""

    def terms_of(self, query: str) -> list[Term]:
        """Return the distinct terms of a query without stop words, 64 at most."""

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        """Return how many memories contain each term, or about how many an alternative of it."""

    def tokens(self, words: Sequence[str]) -> list[str]:
        """Return words as the index holds them; anything but a single word becomes ""."""

    def vocabulary(
        self, words: Iterable[str], prefixes: Iterable[str], filters: Filter
    ) -> dict[str, int]:
        """Return the words in the index that are among ``words`` or begin with a prefix.

        The values are the numbers of memories that contain each. Filters that let many memories
        pass may be ignored: ``examples`` tells whether any passing memory contains a word.
        """

    def examples(self, alternative: Alternative, filters: Filter, *, limit: int) -> list[str]:
        """Return texts of memories that pass the filters and contain an alternative of a word."""

    def candidates(
        self,
        terms: Sequence[Term],
        frequencies: Sequence[int],
        filters: Filter,
        *,
        needed: int,
        limit: int,
    ) -> tuple[list[int], list[Term]]:
        """Return the rows that match best by BM25 as FTS5 computes it, and the terms left out.

        The rows come best first, ``limit`` at most. The terms left out are the most common, with
        too many matches to score. They are used only if the others leave fewer than ``needed``
        rows; then the newest rows that contain them follow.
        """

    def postings(self, terms: Sequence[Term], filters: Filter) -> list[list[int]]:
        """Return, for each term, the rows that contain it, of memories that pass the filters."""

    def words(self, row_ids: Sequence[int], terms: Sequence[Term]) -> dict[int, WordCounts]:
        """Return the words of these rows as the index has them, by row id."""


class SimilarityQueries(Protocol):
    """Queries for memories that share many words with a text."""

    def similar(self, question: DuplicateQuery, *, without: Sequence[str] = ()) -> list[Duplicate]:
        """Return up to five memories that share most words, leaving out the ids ``without``.

        They are found by the text's rarest words: if each is in over a thousand memories, some are
        missed.
        """

    def is_corrected(self, question: DuplicateQuery, same: Sequence[Duplicate]) -> bool:
        """Return whether a memory newer than all with the same text says something similar.

        Then the text is no echo: the agent may be reverting that correction.
        """


class EmbeddingTable(Protocol):
    """The tables of embedding models, vectors, and the embedding queue."""

    def models(self) -> list[EmbeddingModel]:
        """Return the file's models: the active one, and one being built."""

    def add_model(self, model: EmbeddingModel, *, now: datetime) -> int:
        """Add a model to be built, and return its number."""

    def activate(self, model_id: int) -> None:
        """Make a model the active one, which searches use."""

    def drop_model(self, model_id: int) -> None:
        """Delete a model, and by cascade its vectors."""

    def set_indexed(self, model_id: int, *, is_indexed: bool) -> None:
        """Set whether the index of a model follows its vectors."""

    def put(self, model_id: int, pending: PendingText, vector: Quantized) -> bool:
        """Insert or replace a memory's vector; return whether the memory still has that text."""

    def of_same_text(self, model_id: int, text: str) -> Quantized | None:
        """Return the vector of another memory with the same text, if there is one."""

    def drop_other_texts(self, row_id: int, text: str) -> list[int]:
        """Delete a memory's vectors that belong to another text; return the models that had one."""

    def get(self, model: EmbeddingModel, row_id: int) -> Quantized | None:
        """Return the vector of a memory; one of the wrong length counts as none."""

    def count(self, model_id: int) -> int:
        """Count the vectors of a model."""

    def archived_among(self, row_ids: Sequence[int]) -> set[int]:
        """Return the subset of the rows that are archived."""

    def iterate(
        self, model_id: int, *, page: int = 1000
    ) -> Iterator[tuple[str, bytes, float, bytes]]:
        """Yield the memory id, text hash, scale and bytes of each vector of a model."""

    def is_queue_empty(self) -> bool:
        """Return whether no memory changed since the embeddings were last brought up to date."""

    def queued_memories(self, *, after: int, limit: int) -> list[QueuedMemory]:
        """Return the queued memories after a row; a ``limit`` of -1 means all."""

    def count_queued(self) -> int:
        """Count the memories in the embedding queue."""

    def dequeue(self, row_ids: Iterable[int]) -> None:
        """Remove rows from the embedding queue."""

    def clear_queue(self) -> None:
        """Empty the embedding queue."""

    def queue_missing(self, model_id: int) -> int:
        """Queue every memory that has no vector of a model, and return their number."""

    def refuse(self, pending: Iterable[PendingText]) -> None:
        """Record that the embedder refused these texts, so that they are not embedded again."""

    def forget_refusals(self) -> None:
        """Clear the refusals, so that every text is tried again, perhaps by another embedder."""

    def texts_without_vector(self, model_id: int, *, after: int, limit: int) -> list[PendingText]:
        """Return readable memories after a row that have no vector of a model."""

    def count_texts_without_vector(self, model_id: int) -> tuple[int, int]:
        """Return how many memories have no vector of a model, and the bytes of their texts."""

    def sample(self, model_id: int, size: int) -> list[tuple[int, str]]:
        """Return the rows and ids of some unarchived memories that have a vector."""

    def sample_with_texts(self, model_id: int, size: int) -> list[tuple[PendingText, Quantized]]:
        """Return some memories with their texts and vectors."""


class VectorIndex(Protocol):
    """The vector index of one open store: nearest vectors, kept in step with the memories."""

    def center(self, query: QueryVector, filters: Filter = EVERYTHING) -> QueryVector:
        """Return a query centred on the mean of the vectors of memories that pass the filters."""

    def nearest(self, query: QueryVector, filters: Filter) -> NearestVectors:
        """Return the nearest memories that pass the filters. Must run inside ``read()``.

        The filters apply before the nearest are chosen: excluded memories take nobody's place.
        """

    def cosines(
        self, model_id: int, row_ids: Sequence[int], query: bytes | Centred
    ) -> dict[int, float]:
        """Return the cosine of each of these rows with a query, if its vector is current."""

    def is_missing(self, model: EmbeddingModel) -> bool:
        """Return whether a model has no codes although it could have them."""

    def begin(self, model: EmbeddingModel) -> None:
        """Begin the index of a model unless it has been begun. Must run inside ``write()``."""

    def build(self, model: EmbeddingModel, limit: int) -> bool:
        """Add up to ``limit`` vectors to an index that was begun; return whether any are left.

        The index serves searches once none are left. Must run inside ``write()``.
        """

    def is_unsorted(self, model: EmbeddingModel) -> bool:
        """Return whether codes are still being moved into new cells."""

    def cells_due(self, model: EmbeddingModel) -> CellSample | None:
        """Return the sample to make new cells from, if the index has outgrown its cells."""

    def make_cells(self, model: EmbeddingModel, centres: Sequence[int], *, vectors: int) -> None:
        """Retire the cells of an index and add new ones. Must run inside ``write()``."""

    def sort(self, model: EmbeddingModel, limit: int) -> None:
        """Move up to ``limit`` codes from retired cells to others. Must run inside ``write()``."""

    def enter(self, model: EmbeddingModel, entries: Sequence[tuple[int, bytes]]) -> None:
        """Insert or replace vectors, by row id."""

    def leave(self, model: EmbeddingModel, row_ids: Sequence[int]) -> None:
        """Remove rows."""

    def drop(self, model: EmbeddingModel) -> None:
        """Drop the index of a model."""

    def forget_deleted(self) -> None:
        """Remove the memories whose rows were erased."""

    def problems_of(self, model: EmbeddingModel) -> list[Problem]:
        """Check every vector of a model, and its index against the vectors."""

    def repair_model(self, model: EmbeddingModel) -> None:
        """Delete a model's wrong vectors and rebuild its index. Must run inside ``write()``."""

"""A memory as C's Memory Record, and C's search (C, 1 and 6)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import (
    Field,
    FiniteFloat,
    PlainSerializer,
)

from agent_memory.errors import ValidationError
from agent_memory.models.columns import ORIGINAL_CATEGORY
from agent_memory.models.documents.record_rules import CustomMetadata, Embedding, clean_embedding
from agent_memory.models.enums import MemoryCategory, MemoryType
from agent_memory.models.field_types import Content, Label, MemoryId, Tags, Text, UtcDatetime
from agent_memory.models.limits import MAX_SEARCH_LIMIT
from agent_memory.models.memory import Memory, given_back
from agent_memory.models.record import SparseRecord
from agent_memory.models.search import SearchFilters, SearchResults

DEFAULT_RECORD_LIMIT: Final = 10
"""The default limit of C's search."""
DEFAULT_SCORE_THRESHOLD: Final = 0.7
"""C's minimum score. It only counts if it was set: see ``SearchQuery.search_arguments``."""


# The record ---------------------------------------------------------------------------------


class MemoryRecordMetadata(SparseRecord, extra="forbid"):
    """The owner, the times and the category of a record.

    C requires a ``user_id``; a memory that is about nobody has none here.
    """

    user_id: Label | None = None
    agent_id: Label | None = None
    run_id: Label | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime | None = None
    memory_type: MemoryType | None = None
    category: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    tags: Tags | None = None
    custom_metadata: CustomMetadata | None = None


class MemoryRecord(SparseRecord, extra="forbid"):
    """A memory as a record: with nested metadata, a version, and a score if a search found it.

    ``id`` is a UUID, or an id of this library. Fields that are ``None`` are left out of its JSON,
    whose keys have a fixed order. ``score`` is finite, ``version`` starts at 1. Invalid values
    raise Pydantic's ``ValidationError``.
    """

    id: MemoryId
    content: Content
    embedding: Embedding | None = None
    score: FiniteFloat | None = None
    metadata: MemoryRecordMetadata
    version: Annotated[int, Field(ge=1, lt=2**63)] | None = None

    @classmethod
    def from_memory(
        cls,
        memory: Memory,
        *,
        score: float | None = None,
        embedding: Sequence[float] | None = None,
    ) -> "MemoryRecord":
        """Return the record of a memory; ``embedding`` defaults to the memory's own.

        The memory's values are not validated: its metadata may be longer and deeper than that of a
        record from elsewhere. What C has no field for (kind, importance, accesses, the session, a
        task's details) is left out.
        """
        category, custom = given_back(memory)
        vector = memory.embedding if embedding is None else embedding
        return cls.model_construct(
            id=memory.id,
            content=memory.content,
            embedding=None if vector is None else clean_embedding(vector),
            score=score,
            metadata=MemoryRecordMetadata.model_construct(
                user_id=memory.user_id,
                agent_id=memory.agent_id,
                run_id=memory.run_id,
                created_at=memory.timestamp,
                updated_at=memory.updated_at,
                memory_type=memory.memory_type,
                category=category,
                tags=list(memory.tags) or None,
                custom_metadata=custom or None,
            ),
            version=memory.version,
        )

    def to_memory_input(
        self, *, agent_id: str | None = None, categories: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the set fields as arguments for ``AgentMemory.store`` and ``store_many``.

        A category that is neither one of the nine nor one of the agent's own ``categories`` becomes
        a note with the original in ``metadata["original_category"]``; ``from_memory`` restores it.
        If the record belongs to an agent other than ``agent_id``, that agent's name goes to
        ``metadata["agent_id"]``. The embedding, the score, the version and the time of the last
        change are not stored: the store has its own.
        """
        record = self.metadata
        metadata = dict(record.custom_metadata or {})
        category = record.category
        if category is not None and category not in {*MemoryCategory.all_values(), *categories}:
            metadata[ORIGINAL_CATEGORY] = category
            category = MemoryCategory.NOTE.value
        if agent_id is not None and record.agent_id not in (None, agent_id):
            metadata["agent_id"] = record.agent_id
        fields = {
            "id": self.id,
            "content": self.content,
            "category": category,
            "tags": record.tags,
            "user_id": record.user_id,
            "run_id": record.run_id,
            "memory_type": record.memory_type,
            "timestamp": record.created_at,
            "metadata": metadata or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


# The search ---------------------------------------------------------------------------------


def _as_given(filters: SearchFilters) -> dict[str, Any]:
    return filters.model_dump(mode="json", exclude_unset=True)


GivenFilters = Annotated[SearchFilters, PlainSerializer(_as_given)]
"""Filters whose JSON contains only the fields that were set."""
Limit = Annotated[int, Field(strict=True, ge=1, le=MAX_SEARCH_LIMIT)]
Threshold = Annotated[float, Field(ge=0.0, le=1.0)]


class SearchQuery(SparseRecord, extra="forbid"):
    """The request of a search: any text, filters, and the maximum number of records.

    ``limit`` is 1 to 100. ``include_embeddings`` requests the records' vectors too.
    """

    query: str
    filters: GivenFilters = Field(default_factory=SearchFilters)
    limit: Limit = DEFAULT_RECORD_LIMIT
    score_threshold: Threshold = DEFAULT_SCORE_THRESHOLD
    include_embeddings: bool = False

    def search_arguments(self) -> dict[str, Any]:
        """Return the arguments for ``AgentMemory.search``.

        ``score_threshold`` only counts if it was set. A fixed 0.7, for any model, would hide right
        answers: without a threshold each query has its own. Raises ``ValidationError`` if
        ``include_embeddings`` is set: a search returns no vectors.
        """
        if self.include_embeddings:
            message = (
                "a search returns no vectors: leave it out, and get them with"
                " export(format='record-json', embeddings=True)"
            )
            raise ValidationError.of("include_embeddings", message, self.include_embeddings)
        arguments: dict[str, Any] = {
            "query": self.query,
            "limit": self.limit,
            "filters": self.filters,
        }
        if "score_threshold" in self.model_fields_set:
            arguments["similarity_threshold"] = self.score_threshold
        return arguments


class RecordSearchMetadata(SparseRecord, extra="forbid"):
    """How a search went. Times are whole milliseconds.

    Ours are ``explanation``, why it found nothing, and ``degraded``, what it had to do without;
    both are left out of the JSON if empty.
    """

    query_time: UtcDatetime
    processing_time_ms: int = Field(ge=0)
    embedding_time_ms: int = Field(default=0, ge=0)
    vector_search_time_ms: int = Field(default=0, ge=0)
    filters_applied: dict[str, Any] = Field(default_factory=dict)
    explanation: str | None = None
    degraded: list[str] | None = None


class MemorySearchResponse(SparseRecord, extra="forbid"):
    """The result of a search: records, best first, and how the search went.

    ``total_count`` is the number of memories that matched; the records are the first of them.
    """

    results: list[MemoryRecord]
    total_count: int = Field(ge=0)
    search_metadata: RecordSearchMetadata

    @classmethod
    def from_results(
        cls,
        results: SearchResults,
        *,
        score_threshold: float | None = None,
        embeddings: Mapping[str, Sequence[float]] | None = None,
    ) -> "MemorySearchResponse":
        """Return the response for the results of ``AgentMemory.search``.

        A record's ``score`` is the hit's similarity, 0 to 1, which a threshold is compared with;
        the order is by relevance, so scores need not decrease. ``embeddings`` maps ids to vectors,
        for those that have one. ``score_threshold``, if it was set, is listed among the filters.
        """
        how = results.search_metadata
        applied = dict(how.filters_applied)
        if score_threshold is not None:
            applied["score_threshold"] = score_threshold
        vectors = embeddings or {}
        return cls.model_construct(
            results=[
                MemoryRecord.from_memory(
                    hit.memory, score=hit.similarity, embedding=vectors.get(hit.memory.id)
                )
                for hit in results
            ],
            total_count=results.total_count,
            search_metadata=RecordSearchMetadata.model_construct(
                query_time=how.query_time,
                processing_time_ms=round(how.processing_time_ms),
                embedding_time_ms=round(how.embedding_time_ms),
                vector_search_time_ms=round(how.vector_search_time_ms),
                filters_applied=applied,
                explanation=None if results.results else how.explanation,
                degraded=list(how.degraded) or None,
            ),
        )

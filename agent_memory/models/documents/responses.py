"""What is asked and answered in C's envelopes: success, error, adding, searching (C, 12 to 15)."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from agent_memory.models.conversation import ExtractedFacts, MemoryOperations, Message
from agent_memory.models.documents.record import GivenFilters, Limit, MemoryRecord, Threshold
from agent_memory.models.documents.record_rules import CustomMetadata
from agent_memory.models.field_types import MemoryId, Text, UtcDatetime
from agent_memory.models.record import SparseRecord
from agent_memory.models.safety import FoundSecrets
from agent_memory.models.search import SearchResults
from agent_memory.models.session import SessionContext, SessionName, SessionRun


class ErrorCode(StrEnum):
    """What sort of error it was."""

    INVALID_SESSION = "INVALID_SESSION"
    MEMORY_NOT_FOUND = "MEMORY_NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"


class ErrorDetail(SparseRecord):
    """An error: its code, a message that says what to do, and what else is known of it."""

    code: ErrorCode
    message: str
    details: dict[str, Any] | None = None
    timestamp: UtcDatetime
    request_id: Text | None = None


class ErrorResponse(SparseRecord):
    """The answer where something failed."""

    error: ErrorDetail


class ResponseMetadata(SparseRecord):
    """When an answer was made, and how long that took, in whole milliseconds."""

    timestamp: UtcDatetime
    processing_time_ms: int = Field(ge=0)
    request_id: Text | None = None


class SuccessResponse(SparseRecord):
    """The answer where all went well; ``data`` is the operation's own."""

    success: Literal[True] = True
    data: Any
    metadata: ResponseMetadata


# Adding -------------------------------------------------------------------------------------


class AddMemoryRequest(SparseRecord, extra="forbid"):
    """Messages to be remembered, whose they are, and what all that comes of them has."""

    messages: list[Message] = Field(min_length=1)
    user_id: SessionName
    agent_id: SessionName | None = None
    run_id: SessionRun | None = None
    metadata: CustomMetadata | None = None

    def session(self) -> SessionContext:
        """Return the session that the ids are of, with every permission."""
        return SessionContext(user_id=self.user_id, agent_id=self.agent_id, run_id=self.run_id)


class AddedMemory(SparseRecord):
    """What became of one fact: ``memory`` is what the memory says, or said before a DELETE.

    ``id`` is ``None`` where there is no memory of it: nothing was done, or only shown.
    ``previous_memory`` (ours) is what an updated one said before.
    """

    id: MemoryId | None = None
    event: Literal["ADD", "UPDATE", "DELETE", "NONE"]
    memory: Text
    previous_memory: Text | None = None


class AddMemoryMetadata(SparseRecord):
    """How the adding went. Times are whole milliseconds.

    ``problems`` (ours) says in words what went wrong on the way, such as an answer of a model that
    could not be used; it is left out where nothing did. ``decided_by`` (ours) is ``model``,
    ``rules``, or ``raw`` where neither could decide; ``reviews`` (ours) are the numbers of the
    questions that somebody is asked: see ``AgentMemory.reviews``. ``passed_over`` (ours) counts
    messages, and parts of them, that nobody said: calls of tools and what those returned.
    ``secrets`` (ours) tells of what looks like secrets in what was stored, and shows none.
    """

    timestamp: UtcDatetime
    processing_time_ms: int = Field(ge=0)
    facts_extracted: int = Field(ge=0)
    operations_performed: int = Field(ge=0)
    request_id: Text | None = None
    decided_by: Literal["model", "rules", "raw"] | None = None
    problems: list[str] | None = None
    reviews: list[int] | None = None
    passed_over: int | None = None
    secrets: list[FoundSecrets] | None = None


class AddMemoryResponse(SparseRecord):
    """What became of the facts in some messages, in their order.

    ``facts`` and ``operations`` are what was extracted and decided on the way,
    each operation with its reasoning; they are ``None`` where messages were stored as
    they are, and are no part of the JSON.
    """

    success: Literal[True] = True
    data: list[AddedMemory]
    metadata: AddMemoryMetadata
    facts: ExtractedFacts | None = Field(default=None, exclude=True, repr=False)
    operations: MemoryOperations | None = Field(default=None, exclude=True, repr=False)


# Searching ----------------------------------------------------------------------------------


class SearchMemoryRequest(SparseRecord, extra="forbid"):
    """What is looked for, and among whose memories; any text is a query.

    ``limit`` is 1 to 100, and 10 unless it is given; ``score_threshold`` (0 to 1) drops what is
    less alike.
    """

    query: str
    user_id: SessionName
    agent_id: SessionName | None = None
    run_id: SessionRun | None = None
    limit: Limit | None = None
    filters: GivenFilters | None = None
    score_threshold: Threshold | None = None

    def session(self) -> SessionContext:
        """Return the session that the ids are of, with every permission."""
        return SessionContext(user_id=self.user_id, agent_id=self.agent_id, run_id=self.run_id)


class FoundMemories(SparseRecord):
    """The records that a search found, best first, and how many memories matched (C, 15)."""

    results: list[MemoryRecord]
    total_count: int = Field(ge=0)


class SearchTimings(SparseRecord):
    """How long the parts of a search took, in whole milliseconds (C, 15).

    ``explanation`` and ``degraded`` are as in ``RecordSearchMetadata``.
    """

    embedding_time_ms: int = Field(default=0, ge=0)
    vector_search_time_ms: int = Field(default=0, ge=0)
    explanation: str | None = None
    degraded: list[str] | None = None


class SearchMemoryMetadata(SparseRecord):
    """When an answer was made, how long that took, and its parts (C, 15)."""

    timestamp: UtcDatetime
    processing_time_ms: int = Field(ge=0)
    request_id: Text | None = None
    search_metadata: SearchTimings


class SearchMemoryResponse(SparseRecord):
    """What a search found."""

    success: Literal[True] = True
    data: FoundMemories
    metadata: SearchMemoryMetadata

    @classmethod
    def from_results(
        cls, results: SearchResults, *, now: datetime, request_id: str | None = None
    ) -> "SearchMemoryResponse":
        """Make it of what ``AgentMemory.search`` returned; scores are the hits' similarities."""
        how = results.search_metadata
        records = [MemoryRecord.from_memory(hit.memory, score=hit.similarity) for hit in results]
        return cls(
            data=FoundMemories.model_construct(results=records, total_count=results.total_count),
            metadata=SearchMemoryMetadata(
                timestamp=now,
                processing_time_ms=round(how.processing_time_ms),
                request_id=request_id,
                search_metadata=SearchTimings(
                    embedding_time_ms=round(how.embedding_time_ms),
                    vector_search_time_ms=round(how.vector_search_time_ms),
                    explanation=None if results.results else how.explanation,
                    degraded=list(how.degraded) or None,
                ),
            ),
        )

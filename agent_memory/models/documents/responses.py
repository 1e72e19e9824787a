"""The requests and responses in C's envelopes: success, error, adding, searching (C, 12 to 15)."""

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
    """The kind of an error."""

    INVALID_SESSION = "INVALID_SESSION"
    MEMORY_NOT_FOUND = "MEMORY_NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"


class ErrorDetail(SparseRecord):
    """An error: its code, a message that says what to do, and further details."""

    code: ErrorCode
    message: str
    details: dict[str, Any] | None = None
    timestamp: UtcDatetime
    request_id: Text | None = None


class ErrorResponse(SparseRecord):
    """The response if an operation failed."""

    error: ErrorDetail


class ResponseMetadata(SparseRecord):
    """When a response was made, and how long that took, in whole milliseconds."""

    timestamp: UtcDatetime
    processing_time_ms: int = Field(ge=0)
    request_id: Text | None = None


class SuccessResponse(SparseRecord):
    """The response if an operation succeeded; ``data`` is its result."""

    success: Literal[True] = True
    data: Any
    metadata: ResponseMetadata


# Adding -------------------------------------------------------------------------------------


class AddMemoryRequest(SparseRecord, extra="forbid"):
    """Messages to learn from, their owner, and metadata for all memories that result."""

    messages: list[Message] = Field(min_length=1)
    user_id: SessionName
    agent_id: SessionName | None = None
    run_id: SessionRun | None = None
    metadata: CustomMetadata | None = None

    def session(self) -> SessionContext:
        """Return the session for the ids, with all permissions."""
        return SessionContext(user_id=self.user_id, agent_id=self.agent_id, run_id=self.run_id)


class AddedMemory(SparseRecord):
    """The outcome for one fact: ``memory`` is what the memory says, or said before a DELETE.

    ``id`` is ``None`` if there is no memory for it: nothing was done, or it was a preview.
    ``previous_memory`` (ours) is what an updated memory said before.
    """

    id: MemoryId | None = None
    event: Literal["ADD", "UPDATE", "DELETE", "NONE"]
    memory: Text
    previous_memory: Text | None = None


class AddMemoryMetadata(SparseRecord):
    """How adding went.

    - ``problems`` (ours): what went wrong on the way, in words, such as a model's answer that could
      not be used; left out if nothing did.
    - ``decided_by`` (ours): ``model``, ``rules``, or ``raw`` if neither could decide.
    - ``reviews`` (ours): the numbers of new reviews, see ``AgentMemory.reviews``.
    - ``passed_over`` (ours): the number of messages, and parts of messages, that nobody said: tool
      calls and their results.
    - ``secrets`` (ours): apparent secrets in what was stored, without showing them.
    - ``reason`` (ours): why nothing was kept or changed, in a few words; left out if something was.

    Times are whole milliseconds.
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
    reason: Text | None = None


class AddMemoryResponse(SparseRecord):
    """The outcomes for the facts in some messages, in order.

    ``facts`` and ``operations`` are what was extracted and decided on the way, each operation with
    its reasoning; they are ``None`` if messages were stored as they are, and are not part of the
    JSON. ``success`` is false if facts were refused, by a limit for example, and nothing else came
    of the messages; ``metadata.problems`` says why.
    """

    success: bool = True
    data: list[AddedMemory]
    metadata: AddMemoryMetadata
    facts: ExtractedFacts | None = Field(default=None, exclude=True, repr=False)
    operations: MemoryOperations | None = Field(default=None, exclude=True, repr=False)


# Searching ----------------------------------------------------------------------------------


class SearchMemoryRequest(SparseRecord, extra="forbid"):
    """The request of a search: any text as query, and the owner of the memories.

    ``limit`` is 1 to 100, default 10; ``score_threshold`` (0 to 1) drops less similar records.
    """

    query: str
    user_id: SessionName
    agent_id: SessionName | None = None
    run_id: SessionRun | None = None
    limit: Limit | None = None
    filters: GivenFilters | None = None
    score_threshold: Threshold | None = None

    def session(self) -> SessionContext:
        """Return the session for the ids, with all permissions."""
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
    """When a response was made, how long that took, and the timings of its parts (C, 15)."""

    timestamp: UtcDatetime
    processing_time_ms: int = Field(ge=0)
    request_id: Text | None = None
    search_metadata: SearchTimings


class SearchMemoryResponse(SparseRecord):
    """The result of a search."""

    success: Literal[True] = True
    data: FoundMemories
    metadata: SearchMemoryMetadata

    @classmethod
    def from_results(
        cls, results: SearchResults, *, now: datetime, request_id: str | None = None
    ) -> "SearchMemoryResponse":
        """Return the response for results of ``AgentMemory.search``; scores are similarities."""
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

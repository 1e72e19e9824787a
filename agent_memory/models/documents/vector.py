"""A's models of a vector store: a point, and a query with its filter."""

from typing import Any

from pydantic import Field, FiniteFloat

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.limits import (
    DEFAULT_SEARCH_LIMIT,
    DEFAULT_SIMILARITY_THRESHOLD,
    MAX_SEARCH_LIMIT,
)
from agent_memory.models.record import Record
from agent_memory.models.times import format_time


class VectorPoint(Record):
    """A memory's id, its vector, and ``Memory.to_vector_payload()``."""

    id: str
    vector: list[FiniteFloat] = Field(min_length=1)
    payload: dict[str, Any]


class VectorSearchQuery(Record):
    """The request of a vector search: the vector, limit, minimum similarity and filters."""

    query_vector: list[FiniteFloat] = Field(min_length=1)
    limit: int = Field(default=DEFAULT_SEARCH_LIMIT, ge=1, le=MAX_SEARCH_LIMIT)
    score_threshold: float = Field(default=DEFAULT_SIMILARITY_THRESHOLD, ge=0.0, le=1.0)
    category_filter: str | None = None
    tags_filter: list[str] | None = None
    date_range: tuple[UtcDatetime, UtcDatetime] | None = None

    def to_qdrant_filter(self) -> dict[str, Any] | None:
        """Return the filters as JSON for Qdrant, or ``None`` if there are none.

        (A left ``date_range`` out.)
        """
        must: list[dict[str, Any]] = []
        if self.category_filter:
            must.append({"key": "category", "match": {"value": self.category_filter}})
        must += [{"key": "tags", "match": {"value": tag}} for tag in self.tags_filter or ()]
        if self.date_range:
            start, end = self.date_range
            span = {"gte": format_time(start), "lte": format_time(end)}
            must.append({"key": "timestamp", "range": span})
        return {"must": must} if must else None

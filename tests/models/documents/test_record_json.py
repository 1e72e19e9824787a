"""C's JSON: every shape comes back from its model as it was, but for white space."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from conftest import Clock
from pydantic import BaseModel, ValidationError

from agent_memory import AgentMemory, DateRange, SearchFilters
from agent_memory.errors import ValidationError as Refusal
from agent_memory.models.documents.record import MemoryRecord, MemorySearchResponse, SearchQuery
from agent_memory.models.documents.responses import (
    AddMemoryRequest,
    AddMemoryResponse,
    ErrorResponse,
    SearchMemoryRequest,
    SearchMemoryResponse,
    SuccessResponse,
)
from agent_memory.models.session import SessionContext

UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

RECORD = """
{
  "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
  "content": "Ann likes plum dumplings",
  "embedding": [0.1, -0.2, 0.3, 1.0],
  "metadata": {
    "user_id": "ann_7",
    "agent_id": "helper_2",
    "run_id": "talk-456",
    "created_at": "2024-01-15T10:30:00Z",
    "updated_at": "2024-01-16T10:30:00Z",
    "memory_type": "STANDARD",
    "category": "tastes",
    "tags": ["food", "plums"],
    "custom_metadata": {"confidence": 0.95, "source": "talk", "seen": [1, null, {"deep": true}]}
  },
  "version": 1
}
"""
SESSION = """
{
  "user_id": "ann_7",
  "agent_id": "helper_2",
  "run_id": "talk-456",
  "session_type": "RUN",
  "permissions": {"read": true, "write": true, "delete": false},
  "metadata": {"topic": "dinner", "language": "en"}
}
"""
QUERY = """
{
  "query": "what does Ann eat?",
  "filters": {
    "user_id": "ann_7",
    "run_id": "talk-456",
    "memory_type": "PROCEDURAL",
    "category": "tastes",
    "tags": ["food"],
    "date_range": {"start": "2024-01-01T00:00:00Z", "end": "2024-01-31T12:00:00Z"},
    "custom_filters": {"confidence": {"gte": 0.9}}
  },
  "limit": 10,
  "score_threshold": 0.7,
  "include_embeddings": false
}
"""
RESULTS = """
{
  "results": [
    {
      "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
      "content": "Ann likes plum dumplings",
      "score": 0.95,
      "metadata": {
        "user_id": "ann_7",
        "created_at": "2024-01-15T10:30:00Z",
        "memory_type": "STANDARD",
        "category": "tastes"
      }
    }
  ],
  "total_count": 1,
  "search_metadata": {
    "query_time": "2024-01-15T10:35:00Z",
    "processing_time_ms": 45,
    "embedding_time_ms": 20,
    "vector_search_time_ms": 15,
    "filters_applied": {"user_id": "ann_7", "score_threshold": 0.7}
  }
}
"""
ERROR = """
{
  "error": {
    "code": "MEMORY_NOT_FOUND",
    "message": "there is no 7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "details": {"memory_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "user_id": "ann_7"},
    "timestamp": "2024-01-15T10:30:00Z",
    "request_id": "req_123456"
  }
}
"""
SUCCESS = """
{
  "success": true,
  "data": {
    "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "event": "ADD",
    "content": "Ann likes plum dumplings"
  },
  "metadata": {
    "timestamp": "2024-01-15T10:30:00Z",
    "processing_time_ms": 150,
    "request_id": "req_123456"
  }
}
"""
ADD_REQUEST = """
{
  "messages": [{"role": "user", "content": "I like plum dumplings best"}],
  "user_id": "ann_7",
  "agent_id": "helper_2",
  "run_id": "talk-456",
  "metadata": {"category": "tastes", "tags": ["food", "plums"]}
}
"""
ADD_RESPONSE = """
{
  "success": true,
  "data": [
    {
      "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
      "event": "ADD",
      "memory": "Ann likes plum dumplings best"
    }
  ],
  "metadata": {
    "timestamp": "2024-01-15T10:30:00Z",
    "processing_time_ms": 250,
    "facts_extracted": 1,
    "operations_performed": 1
  }
}
"""
SEARCH_REQUEST = """
{
  "query": "what does she eat?",
  "user_id": "ann_7",
  "limit": 5,
  "filters": {"category": "tastes"}
}
"""
SEARCH_RESPONSE = """
{
  "success": true,
  "data": {
    "results": [
      {
        "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "content": "Ann likes plum dumplings best",
        "score": 0.95,
        "metadata": {
          "user_id": "ann_7",
          "created_at": "2024-01-15T10:30:00Z",
          "category": "tastes"
        }
      }
    ],
    "total_count": 1
  },
  "metadata": {
    "timestamp": "2024-01-15T10:35:00Z",
    "processing_time_ms": 45,
    "search_metadata": {"embedding_time_ms": 20, "vector_search_time_ms": 15}
  }
}
"""
SHAPES: list[tuple[type[BaseModel], str]] = [
    (MemoryRecord, RECORD),
    (SessionContext, SESSION),
    (SearchQuery, QUERY),
    (MemorySearchResponse, RESULTS),
    (ErrorResponse, ERROR),
    (SuccessResponse, SUCCESS),
    (AddMemoryRequest, ADD_REQUEST),
    (AddMemoryResponse, ADD_RESPONSE),
    (SearchMemoryRequest, SEARCH_REQUEST),
    (SearchMemoryResponse, SEARCH_RESPONSE),
]


def packed(text: str) -> str:
    """Return JSON without white space; keys keep their order, and numbers their digits."""
    return json.dumps(json.loads(text), separators=(",", ":"))


@pytest.mark.parametrize(("model", "text"), SHAPES, ids=[model.__name__ for model, _ in SHAPES])
def test_the_json_comes_back_byte_for_byte(model: type[BaseModel], text: str) -> None:
    assert model.model_validate_json(text).model_dump_json() == packed(text)
    again = model.model_validate(json.loads(text))
    assert json.dumps(again.model_dump(mode="json"), separators=(",", ":")) == packed(text)


@pytest.mark.parametrize(
    ("model", "text"),
    [(model, text) for model, text in SHAPES if model is not SuccessResponse],
    ids=[model.__name__ for model, _ in SHAPES if model is not SuccessResponse],
)
def test_every_field_of_an_answer_and_a_request_is_looked_at(
    model: type[BaseModel], text: str
) -> None:
    data = json.loads(text)
    for name in data:
        with pytest.raises(ValidationError):
            model.model_validate({**data, name: object()})


@pytest.mark.parametrize(
    "model", [SessionContext, MemoryRecord, SearchQuery, AddMemoryRequest, SearchMemoryRequest]
)
def test_a_key_that_is_not_known_is_refused_and_not_lost(model: type[BaseModel]) -> None:
    data = json.loads(next(text for it, text in SHAPES if it is model))
    with pytest.raises(ValidationError, match="colour"):
        model.model_validate({**data, "colour": "plum"})


# Records of memories ------------------------------------------------------------------------


def test_a_record_is_stored_and_comes_back_with_what_it_said(memory: AgentMemory) -> None:
    record = MemoryRecord.model_validate_json(RECORD)
    fields = record.to_memory_input(agent_id="bob")
    assert memory.store(**fields) == UUID
    stored = memory.get(UUID)
    assert stored is not None
    assert (stored.category, stored.metadata["original_category"]) == ("note", "tastes")
    assert stored.metadata["agent_id"] == "helper_2"

    again = MemoryRecord.from_memory(stored, score=0.5, embedding=(1, 0.25))
    assert list(again.model_dump(mode="json")) == [
        "id", "content", "embedding", "score", "metadata", "version",
    ]  # fmt: skip
    assert (again.score, again.embedding, again.version) == (0.5, [1.0, 0.25], 1)
    assert (again.id, again.content) == (record.id, record.content)
    mine, was = again.metadata, record.metadata
    assert (mine.category, mine.tags, mine.user_id, mine.run_id) == (
        was.category, was.tags, was.user_id, was.run_id,
    )  # fmt: skip
    assert (mine.created_at, mine.memory_type) == (was.created_at, was.memory_type)
    assert mine.agent_id == "bob"
    assert mine.custom_metadata == {**(was.custom_metadata or {}), "agent_id": "helper_2"}


def test_a_category_of_the_nine_or_the_agents_own_is_stored_as_it_is() -> None:
    for word in ("decision", "tastes"):
        data = {**json.loads(RECORD), "metadata": {"created_at": "2024-01-15", "category": word}}
        fields = MemoryRecord.model_validate(data).to_memory_input(categories=["tastes"])
        assert fields["category"] == word
        assert "metadata" not in fields


def test_a_memory_whose_metadata_no_record_may_have_still_becomes_one(memory: AgentMemory) -> None:
    deep: Any = "x" * 2_000
    for _ in range(10):
        deep = {"in": deep}
    memory_id = memory.store("a plum", metadata={"user_id": "me", "deep": deep})
    stored = memory.get(memory_id)
    assert stored is not None
    custom = MemoryRecord.from_memory(stored).model_dump(mode="json")["metadata"]["custom_metadata"]
    assert custom == {"user_id": "me", "deep": deep}


# Searching ----------------------------------------------------------------------------------


@pytest.fixture
def plums(memory: AgentMemory, clock: Clock) -> AgentMemory:
    """Return a memory of some weeks ago, so that what is alike is no longer as relevant."""
    memory.store("Ann likes plums", user_id="ann", category="preference", tags=["food"])
    memory.store("Plums are ripe in September", user_id="ann")
    memory.store("Ben grows plums", user_id="ben")
    clock.forward(days=30)
    return memory


def test_what_a_search_found_is_told_in_both_of_cs_shapes(plums: AgentMemory) -> None:
    found = plums.search("plums", filters={"user_id": "ann"})
    vectors = {found[0].memory.id: [0.5, 0.25]}
    told = MemorySearchResponse.from_results(found, score_threshold=0.2, embeddings=vectors)
    again = MemorySearchResponse.model_validate_json(told.model_dump_json())
    assert again == told
    assert [it.id for it in told.results] == [hit.memory.id for hit in found]
    assert [it.score for it in told.results] == [hit.similarity for hit in found]
    assert all(hit.relevance_score < hit.similarity for hit in found)
    assert [it.embedding for it in told.results] == [[0.5, 0.25], None]
    assert (told.total_count, len(told.results)) == (2, 2)
    assert list(told.model_dump(mode="json")["search_metadata"]) == [
        "query_time", "processing_time_ms", "embedding_time_ms", "vector_search_time_ms",
        "filters_applied",
    ]  # fmt: skip
    applied = told.search_metadata.filters_applied
    assert applied == {"user_id": "ann", "score_threshold": 0.2}
    assert told.search_metadata.query_time == found.search_metadata.query_time

    later = found.search_metadata.query_time + timedelta(seconds=1)
    answer = SearchMemoryResponse.from_results(found, now=later, request_id="req_1")
    assert SearchMemoryResponse.model_validate_json(answer.model_dump_json()) == answer
    assert answer.data.results == [it.model_copy(update={"embedding": None}) for it in told.results]
    assert (answer.metadata.timestamp, answer.metadata.request_id) == (later, "req_1")
    assert list(answer.model_dump(mode="json")["metadata"]["search_metadata"]) == [
        "embedding_time_ms", "vector_search_time_ms",
    ]  # fmt: skip


def test_a_search_that_found_nothing_says_why(plums: AgentMemory) -> None:
    found = plums.search("plums", filters={"user_id": "zoe"})
    why = found.search_metadata.explanation
    assert why
    assert MemorySearchResponse.from_results(found).search_metadata.explanation == why
    answer = SearchMemoryResponse.from_results(found, now=found.search_metadata.query_time)
    assert answer.model_dump(mode="json")["metadata"]["search_metadata"]["explanation"] == why


def test_a_query_is_asked_with_its_filters_and_only_with_a_threshold_that_was_given(
    plums: AgentMemory,
) -> None:
    asked = SearchQuery(query="plums", filters=SearchFilters(user_id="ben"), limit=1)
    assert (asked.score_threshold, asked.include_embeddings) == (0.7, False)
    assert "similarity_threshold" not in asked.search_arguments()
    (hit,) = plums.search(**asked.search_arguments())
    assert hit.memory.user_id == "ben"

    strict = SearchQuery(query="plums and pears", score_threshold=0.999)
    assert strict.search_arguments()["similarity_threshold"] == 0.999
    assert len(plums.search(**strict.search_arguments())) == 0
    assert SearchQuery(query="").limit == 10


def test_only_the_filters_that_were_given_are_written() -> None:
    query = SearchQuery(query="x", filters=SearchFilters(archived=None, date_range=DateRange()))
    assert query.model_dump(mode="json")["filters"] == {"archived": None, "date_range": {}}
    assert SearchQuery(query="x").model_dump(mode="json")["filters"] == {}


def test_a_request_makes_the_session_of_its_ids() -> None:
    added = AddMemoryRequest.model_validate_json(ADD_REQUEST).session()
    assert (added.user_id, added.agent_id, added.run_id) == ("ann_7", "helper_2", "talk-456")
    assert added.session_type == "RUN"
    found = SearchMemoryRequest.model_validate_json(SEARCH_REQUEST).session()
    assert (found.user_id, found.session_type) == ("ann_7", "USER")


@pytest.mark.parametrize("model", [model for model, _ in SHAPES], ids=lambda model: model.__name__)
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_every_shape_has_a_json_schema_with_the_keys_of_its_json(
    model: type[BaseModel], mode: Any
) -> None:
    text = next(text for it, text in SHAPES if it is model)
    schema = model.model_json_schema(mode=mode)
    if mode == "validation":
        assert json.loads(text).keys() <= schema["properties"].keys()
    json.dumps(schema)


def test_a_search_gives_no_vectors_and_says_so() -> None:
    asked = SearchQuery(query="tea", include_embeddings=True)
    with pytest.raises(Refusal, match="include_embeddings"):
        asked.search_arguments()

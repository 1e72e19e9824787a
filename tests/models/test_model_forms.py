"""The models of document A as JSON, YAML and vectors, and what a migration is expected to take."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conftest import NOW
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_memory import (
    AgentMetadata,
    Memory,
    MemorySearchResult,
    MigrationPlan,
    MigrationProgress,
    Observation,
    ObservationType,
    Scratchpad,
    ScratchpadMemoryEntry,
    StorageBackend,
    VectorPoint,
    VectorSearchQuery,
)

# How long an example takes is no matter of these tests.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ELEVEN_KEYS = (
    "id agent_id content category tags embedding timestamp last_accessed access_count"
    " created_by_session metadata"
).split()
ENTRY_KEYS = "id timestamp category content tags access_count last_accessed".split()


def a_memory(**fields: Any) -> Memory:
    least = {"agent_id": "bob", "content": "x", "category": "note", "created_by_session": "s"}
    return Memory(**{**least, **fields})


# A's examples -------------------------------------------------------------------------------

MEMORY: dict[str, Any] = {
    "id": "mem-a3f2c1b4e5d6",
    "agent_id": "bob",
    "content": "Tabs, not spaces",
    "category": "preference",
    "tags": ["database", "postgresql", "tools"],
    "embedding": None,
    "timestamp": "2026-01-28T12:00:00Z",
    "last_accessed": "2026-01-30T14:30:00Z",
    "access_count": 3,
    "created_by_session": "session-abc-123",
    "metadata": {"source": "explicit_user_statement", "confidence": 0.95},
}
SCRATCHPAD: dict[str, Any] = {
    "agent_id": "bob",
    "last_updated": "2026-01-30T16:00:00Z",
    "max_size": 50,
    "memories": [
        {
            "id": "mem-a3f2c1b4e5d6",
            "timestamp": "2026-01-28T12:00:00Z",
            "category": "preference",
            "content": "Tabs, not spaces",
            "tags": ["database"],
            "access_count": 3,
            "last_accessed": "2026-01-30T14:00:00Z",
        },
        {
            "id": "mem-c3d4e5f6a7b8",
            "timestamp": "2026-01-26T10:15:00Z",
            "category": "task",
            "content": "TODO: water the plants",
            "tags": [],
            "access_count": 0,
            "last_accessed": None,
        },
    ],
}
METADATA: dict[str, Any] = {
    "agent_id": "bob",
    "created_at": "2026-01-15T10:00:00Z",
    "memory_count": 327,
    "storage_backend": "vector",
    "migration_date": "2026-01-20T14:30:00Z",
    "last_accessed": "2026-01-30T16:00:00Z",
    "stats": {
        "total_queries": 145,
        "avg_query_latency_ms": 87.3,
        "storage_size_mb": 3.2,
        "embeddings_generated": 327,
        "scratchpad_promotions": 12,
    },
    "config": {
        "scratchpad_max_size": 50,
        "migration_threshold": 5000,
        "auto_migrate": False,
        "embedding_model": "text-embedding-3-small",
        "similarity_threshold": 0.75,
    },
    "migration": {
        "backup_path": "scratchpad.yaml.backup",
        "can_rollback": True,
        "migration_duration_seconds": 45.2,
    },
}


def test_the_example_of_a_memory_comes_back_as_it_was() -> None:
    written = json.loads(Memory.model_validate(MEMORY).model_dump_json())
    assert {key: written[key] for key in ELEVEN_KEYS} == MEMORY


def test_the_example_in_the_schema_of_a_memory_is_a_memory() -> None:
    for example in Memory.model_json_schema()["examples"]:
        assert Memory.model_validate(example).id == example["id"]


def test_the_example_of_a_search_result_is_one() -> None:
    result = MemorySearchResult.model_validate(
        {"memory": MEMORY, "relevance_score": 0.87, "match_type": "vector"}
    )
    assert (result.memory.id, result.relevance_score, result.match_type) == (
        "mem-a3f2c1b4e5d6",
        0.87,
        "vector",
    )


def test_the_example_of_a_scratchpad_comes_back_as_it_was() -> None:
    written = Scratchpad.model_validate(SCRATCHPAD).model_dump(mode="json")
    assert written == SCRATCHPAD
    # The file is written in this order.
    assert list(written) == list(SCRATCHPAD)
    assert all(list(entry) == ENTRY_KEYS for entry in written["memories"])


def test_times_that_a_yaml_reader_made_into_datetimes_are_taken() -> None:
    moment = datetime(2026, 1, 28, 12, 0)  # noqa: DTZ001 - YAML without an offset
    entry = {**SCRATCHPAD["memories"][0], "timestamp": moment}
    scratchpad = Scratchpad.model_validate({"agent_id": "bob", "memories": [entry]})
    assert scratchpad.memories[0].timestamp == moment.replace(tzinfo=UTC)


def test_the_example_of_an_agents_metadata_comes_back_as_it_was() -> None:
    written = AgentMetadata.model_validate(METADATA).model_dump(mode="json")
    config = written["config"]
    assert config.pop("categories") == []
    assert config.pop("migration_strategy") == "background"
    assert config.pop("on_duplicate") is None
    assert config.pop("on_secret") == "warn"
    assert config.pop("retention") is None
    assert config.pop("backups_kept") == 5
    assert config.pop("sharing") is None
    assert config.pop("event_log") == "off"
    assert config.pop("vector_index") == "vec0"
    assert written == METADATA
    assert list(written) == list(METADATA)


@pytest.mark.parametrize(
    ("count", "backend", "due"),
    [(4_999, "file", False), (5_000, "file", True), (5_000, "vector", False)],
)
def test_a_move_is_due_from_the_threshold_on(count: int, backend: str, due: bool) -> None:
    metadata = AgentMetadata.model_validate(
        {"agent_id": "bob", "memory_count": count, "storage_backend": backend}
    )
    assert metadata.should_migrate() is due


# JSON ---------------------------------------------------------------------------------------


def test_the_json_of_a_memory_begins_with_the_eleven_keys_of_a() -> None:
    pairs = json.loads(a_memory().model_dump_json(), object_pairs_hook=list)
    assert [key for key, _ in pairs][:11] == ELEVEN_KEYS


def test_a_memory_with_everything_comes_back_from_json_equal() -> None:
    memory = a_memory(
        **{
            **MEMORY,
            "embedding": [0.1, -0.25, 1e-9],
            "kind": "task",
            "importance": "high",
            "task_metadata": {"status": "blocked", "blockers": ["rain"]},
            "archived": True,
            "user_id": "ann",
            "run_id": "run-1",
            "memory_type": "PROCEDURAL",
            "version": 7,
        }
    )
    assert Memory.model_validate_json(memory.model_dump_json()) == memory


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@UNTIMED
@given(
    content=TEXTS.map(lambda text: f"a{text}"),
    tags=st.lists(TEXTS.map(lambda text: text[:20]), max_size=20),
    metadata=st.dictionaries(TEXTS, JSON_VALUES, max_size=4),
    moment=st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_any_memory_comes_back_from_json_equal(
    content: str, tags: list[str], metadata: dict[str, Any], moment: datetime
) -> None:
    memory = a_memory(content=content, tags=tags, metadata=metadata, timestamp=moment)
    again = Memory.model_validate_json(memory.model_dump_json())
    assert again == memory
    assert (again.content, again.metadata, again.timestamp) == (content, metadata, moment)


# Other shapes -------------------------------------------------------------------------------


def test_a_scratchpad_entry_has_the_keys_of_a_and_makes_an_entry() -> None:
    memory = Memory.model_validate(MEMORY)
    entry = memory.to_scratchpad_entry()
    assert list(entry) == ENTRY_KEYS
    again = ScratchpadMemoryEntry.model_validate(entry)
    for key in ENTRY_KEYS:
        assert getattr(again, key) == getattr(memory, key)
    assert a_memory().to_scratchpad_entry()["last_accessed"] is None


def test_a_vector_payload_has_the_keys_of_a_and_fits_a_point() -> None:
    payload = Memory.model_validate(MEMORY).to_vector_payload()
    assert (
        list(payload)
        == (
            "content agent_id timestamp category tags access_count last_accessed created_by_session"
            " metadata"
        ).split()
    )
    assert datetime.fromisoformat(payload["timestamp"]) == datetime(2026, 1, 28, 12, 0, tzinfo=UTC)
    point = VectorPoint(id="mem-a3f2c1b4e5d6", vector=[0.123, -0.456], payload=payload)
    assert json.loads(point.model_dump_json())["payload"] == payload


@pytest.mark.parametrize("kind", list(ObservationType))
def test_an_observation_becomes_a_memory_marked_as_captured(kind: ObservationType) -> None:
    seen = Observation(
        content="the build is red",
        observation_type=kind,
        source="turn-3",
        keywords=["Build", "build"],
        confidence=0.8,
        session_id="session-1",
        timestamp=NOW,
    )
    memory = seen.to_memory("bob")
    assert (memory.agent_id, memory.content, memory.category) == (
        "bob",
        "the build is red",
        kind.value,
    )
    assert (memory.tags, memory.created_by_session, memory.timestamp) == (
        ["build"],
        "session-1",
        NOW,
    )
    assert memory.metadata == {"source": "turn-3", "confidence": 0.8, "auto_captured": True}


# Vectors ------------------------------------------------------------------------------------

WRONG_VECTORS: list[Any] = [
    [],
    [0.1, float("nan")],
    [float("inf")],
    [-float("inf"), 0.0],
    ["north"],
    [None],
    0.5,
]


@pytest.mark.parametrize("length", [1, 256, 1536, 3072])
def test_a_vector_may_have_any_length(length: int) -> None:
    vector = [0.5] * length
    assert a_memory(embedding=vector).embedding == vector
    assert VectorPoint(id="m", vector=vector, payload={}).vector == vector
    assert VectorSearchQuery(query_vector=vector).query_vector == vector


@pytest.mark.parametrize("vector", WRONG_VECTORS)
def test_a_vector_that_is_empty_or_not_finite_is_refused(vector: Any) -> None:
    with pytest.raises(ValidationError):
        a_memory(embedding=vector)
    with pytest.raises(ValidationError):
        VectorPoint(id="m", vector=vector, payload={})
    with pytest.raises(ValidationError):
        VectorSearchQuery(query_vector=vector)


def test_a_vector_query_without_filters_has_no_filter() -> None:
    assert VectorSearchQuery(query_vector=[1.0]).to_qdrant_filter() is None


def test_the_filter_of_a_vector_query_has_every_condition() -> None:
    query = VectorSearchQuery(
        query_vector=[1.0],
        category_filter="task",
        tags_filter=["a", "b"],
        date_range=(NOW - timedelta(days=1), NOW),
    )
    assert query.to_qdrant_filter() == {
        "must": [
            {"key": "category", "match": {"value": "task"}},
            {"key": "tags", "match": {"value": "a"}},
            {"key": "tags", "match": {"value": "b"}},
            {
                "key": "timestamp",
                "range": {
                    "gte": "2026-01-29T16:00:00.000000Z",
                    "lte": "2026-01-30T16:00:00.000000Z",
                },
            },
        ]
    }


# Migration ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "model", "seconds", "dollars"),
    [
        (0, "text-embedding-3-small", 0.0, 0.0),
        (1, "text-embedding-3-small", 5.0, 0.000001),
        (100, "text-embedding-3-small", 5.0, 0.0001),
        (101, "text-embedding-3-small", 10.0, 0.000101),
        (5_000, "text-embedding-3-small", 250.0, 0.005),
        (5_000, "text-embedding-3-large", 250.0, 0.0325),
        (5_000, "some-other-model", 250.0, 0.005),
    ],
)
def test_what_a_migration_is_expected_to_take(
    count: int, model: str, seconds: float, dollars: float
) -> None:
    metadata = AgentMetadata.model_validate(
        {"agent_id": "bob", "memory_count": count, "config": {"embedding_model": model}}
    )
    plan = MigrationPlan.create("bob", metadata)
    assert plan.memory_count == count
    assert plan.estimated_duration_seconds == seconds
    assert plan.estimated_cost_usd == pytest.approx(dollars)
    assert (plan.current_backend, plan.target_backend) == (
        StorageBackend.FILE,
        StorageBackend.VECTOR,
    )
    assert (plan.batch_size, plan.backup_path) == (100, "bob/scratchpad.yaml.backup")


def progress(count: int, **fields: Any) -> MigrationProgress:
    metadata = AgentMetadata(agent_id="bob", memory_count=count)
    plan = MigrationPlan.create("bob", metadata)
    return MigrationProgress(plan=plan, status="running", **fields)


@pytest.mark.parametrize(
    ("count", "done", "percent"), [(0, 0, 100.0), (8, 0, 0.0), (8, 2, 25.0), (8, 8, 100.0)]
)
def test_percent_complete(count: int, done: int, percent: float) -> None:
    assert progress(count, memories_processed=done).percent_complete() == percent


def test_a_migration_takes_from_its_start_to_its_end_or_to_now() -> None:
    assert progress(1).elapsed_seconds() is None
    later = NOW + timedelta(minutes=2)
    assert progress(1, started_at=NOW).elapsed_seconds(later) == 120.0
    ended = progress(1, started_at=NOW, completed_at=NOW + timedelta(seconds=45))
    assert ended.elapsed_seconds(later) == 45.0

"""The models of document A: names, defaults, limits, and the mistakes that were put right."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

import pytest
from conftest import NOW
from pydantic import BaseModel, ValidationError

import agent_memory
from agent_memory import (
    AgentConfig,
    AgentMetadata,
    AgentStats,
    Memory,
    MemoryCaptureConfig,
    MemoryCategory,
    MemoryContextConfig,
    MemorySearchResult,
    MemoryToolConfig,
    MigrationInfo,
    MigrationPlan,
    MigrationProgress,
    Observation,
    Scratchpad,
    ScratchpadMemoryEntry,
    VectorPoint,
    VectorSearchQuery,
)

NINE = {
    "preference", "decision", "discovery", "pattern", "task", "bugfix", "note", "question",
    "insight",
}  # fmt: skip
# What a model of A needs, beside the field that a test is about.
LEAST: dict[type[BaseModel], dict[str, Any]] = {
    Memory: {"agent_id": "bob", "content": "x", "category": "note", "created_by_session": "s"},
    Observation: {
        "content": "x", "observation_type": "note", "source": "turn", "session_id": "s"
    },
    ScratchpadMemoryEntry: {"id": "mem-1", "timestamp": NOW, "category": "note", "content": "x"},
    Scratchpad: {"agent_id": "bob"},
    AgentMetadata: {"agent_id": "bob"},
    VectorSearchQuery: {"query_vector": [1.0]},
    VectorPoint: {"id": "mem-1", "vector": [1.0], "payload": {}},
    MigrationPlan: {
        "agent_id": "bob", "current_backend": "file", "target_backend": "vector",
        "memory_count": 4, "estimated_duration_seconds": 5.0, "estimated_cost_usd": 0.0,
    },
}  # fmt: skip
LEAST[MemorySearchResult] = {
    "memory": LEAST[Memory],
    "relevance_score": 1.0,
    "match_type": "keyword",
}
LEAST[MigrationProgress] = {"plan": LEAST[MigrationPlan], "status": "running"}


def made(model: type[BaseModel], **fields: Any) -> Any:
    """Make a model with what it needs and the given fields."""
    return model(**{**LEAST.get(model, {}), **fields})


def a_memory(**fields: Any) -> Memory:
    return Memory(**{**LEAST[Memory], **fields})


# Names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    "Memory MemorySearchResult Observation ScratchpadMemoryEntry Scratchpad AgentStats AgentConfig"
    " MigrationInfo AgentMetadata VectorPoint VectorSearchQuery MemoryToolConfig"
    " MemoryContextConfig MemoryCaptureConfig MigrationPlan MigrationProgress".split(),
)
def test_each_model_of_a_has_its_name(name: str) -> None:
    model = getattr(agent_memory, name)
    assert issubclass(model, BaseModel)
    assert model.__name__ == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MemoryCategory", NINE),
        ("ObservationType", NINE),
        ("StorageBackend", {"file", "vector"}),
        ("MatchType", {"scratchpad", "vector", "keyword", "promoted", "graph"}),  # the last is ours
    ],
)
def test_each_enum_of_a_has_its_words(name: str, words: set[str]) -> None:
    enum = getattr(agent_memory, name)
    assert issubclass(enum, Enum)
    assert {member.value for member in enum} == words
    assert {member.name for member in enum} == {word.upper() for word in words}
    # Each is its own text: A writes them into YAML, JSON and messages.
    assert all(str(member) == member == member.value for member in enum)


def test_the_categories_can_be_asked_for_as_a_set() -> None:
    assert MemoryCategory.all_values() == NINE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEFAULT_MEMORY_ROOT", "~/.amplifier/memory"),
        ("SCRATCHPAD_FILENAME", "scratchpad.yaml"),
        ("VECTOR_DB_FILENAME", "memories.db"),
        ("METADATA_FILENAME", "metadata.json"),
        ("BACKUP_SUFFIX", ".backup"),
        ("MAX_MEMORY_CONTENT_LENGTH", 10_000),
        ("MAX_SCRATCHPAD_SIZE", 100),
        ("MAX_TAGS_PER_MEMORY", 20),
        ("MAX_TAG_LENGTH", 50),
        ("DEFAULT_SEARCH_LIMIT", 5),
        ("MAX_SEARCH_LIMIT", 100),
        ("DEFAULT_SIMILARITY_THRESHOLD", 0.75),
        ("DEFAULT_MIGRATION_THRESHOLD", 5_000),
        ("MIGRATION_BATCH_SIZE", 100),
    ],
)
def test_each_constant_of_a_has_its_value(name: str, value: object) -> None:
    assert getattr(agent_memory, name) == value


@pytest.mark.parametrize(
    ("model", "dimensions", "cost"),
    [("text-embedding-3-small", 1536, 0.00002), ("text-embedding-3-large", 3072, 0.00013)],
)
def test_the_embedding_models_of_a(model: str, dimensions: int, cost: float) -> None:
    assert agent_memory.EMBEDDING_MODELS[model] == {
        "dimensions": dimensions,
        "cost_per_1k_tokens": cost,
        "max_tokens": 8191,
    }


def test_the_vector_collection_of_a() -> None:
    config = agent_memory.QDRANT_CONFIG
    assert config["collection_name"] == "memories"
    assert config["vectors_config"] == {"size": 1536, "distance": "Cosine"}


# Defaults and limits ------------------------------------------------------------------------

NO_LIMIT = None
# model, field, default, lowest, highest, refused
LIMITS: list[tuple[type[BaseModel], str, Any, Any, Any, list[Any]]] = [
    (Memory, "access_count", 0, 0, NO_LIMIT, [-1, 0.5, None, "many"]),
    (Observation, "confidence", 0.5, 0.0, 1.0, [-0.01, 1.01, float("nan")]),
    (ScratchpadMemoryEntry, "access_count", 0, 0, NO_LIMIT, [-1]),
    (Scratchpad, "max_size", 50, 10, 100, [9, 101, 50.5]),
    (AgentStats, "total_queries", 0, 0, NO_LIMIT, [-1]),
    (AgentStats, "avg_query_latency_ms", 0.0, 0.0, NO_LIMIT, [-0.1]),
    (AgentStats, "storage_size_mb", 0.0, 0.0, NO_LIMIT, [-0.1]),
    (AgentStats, "embeddings_generated", 0, 0, NO_LIMIT, [-1]),
    (AgentStats, "scratchpad_promotions", 0, 0, NO_LIMIT, [-1]),
    (AgentConfig, "scratchpad_max_size", 50, 10, 100, [9, 101]),
    (AgentConfig, "migration_threshold", 5000, 100, NO_LIMIT, [99]),
    (AgentConfig, "similarity_threshold", 0.75, 0.0, 1.0, [-0.01, 1.01, float("nan")]),
    (AgentMetadata, "memory_count", 0, 0, NO_LIMIT, [-1]),
    (AgentMetadata, "storage_backend", "file", "file", "vector", ["qdrant", "", "file\n", None]),
    (VectorSearchQuery, "limit", 5, 1, 100, [0, 101]),
    (VectorSearchQuery, "score_threshold", 0.75, 0.0, 1.0, [-0.01, 1.01, float("nan")]),
    (MemoryToolConfig, "default_search_limit", 5, 1, 100, [0, 101]),
    (MemoryToolConfig, "similarity_threshold", 0.75, 0.0, 1.0, [-0.01, 1.01]),
    (MemoryToolConfig, "embedding_dimensions", 1536, 512, NO_LIMIT, [511]),
    (MemoryToolConfig, "migration_threshold", 5000, 100, NO_LIMIT, [99]),
    (MemoryToolConfig, "migration_batch_size", 100, 10, NO_LIMIT, [9]),
    (MemoryToolConfig, "cache_ttl_seconds", 300, 0, NO_LIMIT, [-1]),
    (MemoryToolConfig, "freshness_decay_rate", 0.1, 0.0, NO_LIMIT, [-0.1, float("nan")]),
    (MemoryToolConfig, "access_boost_rate", 0.05, 0.0, NO_LIMIT, [-0.1, float("nan")]),
    (MemoryContextConfig, "token_budget", 2000, 500, 5000, [499, 5001]),
    (MemoryContextConfig, "max_scratchpad_entries", 50, 10, 100, [9, 101]),
    (MemoryContextConfig, "promotion_access_threshold", 3, 1, NO_LIMIT, [0]),
    (MemoryCaptureConfig, "min_confidence", 0.5, 0.0, 1.0, [-0.01, 1.01]),
    (MemoryCaptureConfig, "min_content_length", 10, 1, NO_LIMIT, [0]),
    (MemoryCaptureConfig, "max_content_length", 10_000, 100, NO_LIMIT, [99]),
    (MemoryCaptureConfig, "max_captures_per_session", 100, 1, NO_LIMIT, [0]),
    (MigrationPlan, "batch_size", 100, 1, NO_LIMIT, [0]),
    (MigrationProgress, "memories_processed", 0, 0, NO_LIMIT, [-1]),
]


@pytest.mark.parametrize(("model", "field", "default", "lowest", "highest", "refused"), LIMITS)
def test_a_field_has_the_default_and_the_limits_of_a(
    model: type[BaseModel], field: str, default: Any, lowest: Any, highest: Any, refused: list[Any]
) -> None:
    assert getattr(made(model), field) == default
    for value in (lowest, 1_000_000 if highest is NO_LIMIT else highest):
        assert getattr(made(model, **{field: value}), field) == value
    for value in refused:
        with pytest.raises(ValidationError):
            made(model, **{field: value})


@pytest.mark.parametrize(
    ("model", "field", "default"),
    [
        (Memory, "tags", []),
        (Memory, "embedding", None),
        (Memory, "last_accessed", None),
        (Memory, "metadata", {}),
        (Observation, "keywords", []),
        (Scratchpad, "memories", []),
        (AgentConfig, "auto_migrate", False),
        (AgentConfig, "embedding_model", "text-embedding-3-small"),
        (MigrationInfo, "backup_path", None),
        (MigrationPlan, "backup_path", None),
        (MigrationInfo, "can_rollback", False),
        (MigrationInfo, "migration_duration_seconds", None),
        (AgentMetadata, "migration_date", None),
        (AgentMetadata, "migration", None),
        (AgentMetadata, "stats", AgentStats()),
        (AgentMetadata, "config", AgentConfig()),
        (VectorSearchQuery, "category_filter", None),
        (VectorSearchQuery, "tags_filter", None),
        (VectorSearchQuery, "date_range", None),
        (MemoryToolConfig, "storage_root", "~/.amplifier/memory"),
        (MemoryToolConfig, "embedding_model", "text-embedding-3-small"),
        (MemoryToolConfig, "auto_migrate", False),
        (MemoryToolConfig, "enable_caching", True),
        (MemoryContextConfig, "include_timestamps", True),
        (MemoryContextConfig, "include_categories", True),
        (MemoryContextConfig, "include_tags", True),
        (MemoryContextConfig, "exclude_categories", []),
        (MemoryCaptureConfig, "observe_tool_outputs", True),
        (MemoryCaptureConfig, "observe_turn_completions", True),
        (MemoryCaptureConfig, "observe_session_end", False),
        (MemoryCaptureConfig, "async_capture", True),
        (MigrationProgress, "errors", []),
        (MigrationProgress, "can_retry", True),
        (MigrationProgress, "started_at", None),
        (MigrationProgress, "completed_at", None),
    ],
)
def test_a_field_without_limits_has_the_default_of_a(
    model: type[BaseModel], field: str, default: object
) -> None:
    assert getattr(made(model), field) == default


@pytest.mark.parametrize("model", list(LEAST))
def test_what_a_model_needs_is_needed(model: type[BaseModel]) -> None:
    for field in LEAST[model]:
        without = {name: value for name, value in LEAST[model].items() if name != field}
        with pytest.raises(ValidationError) as error:
            model(**without)
        assert error.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize("status", ["pending", "running", "completed", "failed", "rolled_back"])
def test_a_migration_has_one_of_five_states(status: str) -> None:
    assert made(MigrationProgress, status=status).status == status
    with pytest.raises(ValidationError):
        made(MigrationProgress, status=status + "\n")


@pytest.mark.parametrize("text", ["Remember: tabs", "we decided to wait", "it was solved by luck"])
def test_the_capture_patterns_of_a_find_what_they_are_for(text: str) -> None:
    patterns = MemoryCaptureConfig().capture_patterns
    assert len(patterns) == 3
    assert any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
    assert not any(re.search(pattern, "the sky is blue", re.IGNORECASE) for pattern in patterns)


def test_a_capture_pattern_that_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(ValidationError, match="regular expression"):
        MemoryCaptureConfig(capture_patterns=["fine", "(open"])


@pytest.mark.parametrize("model", [MemoryToolConfig, MemoryContextConfig, MemoryCaptureConfig])
def test_a_misspelt_setting_is_refused_rather_than_ignored(model: type[BaseModel]) -> None:
    with pytest.raises(ValidationError):
        model(tokn_budget=1000)


@pytest.mark.parametrize("category", ["", "Note", "note\n", " note", "other", None])
def test_a_word_that_is_no_category_is_refused(category: Any) -> None:
    with pytest.raises(ValidationError):
        a_memory(category=category)


def test_a_memory_makes_its_own_id_in_the_form_of_a() -> None:
    ids = {a_memory().id for _ in range(200)}
    assert len(ids) == 200
    for memory_id in ids:
        assert len(memory_id) == 16
        assert memory_id.startswith("mem-")
        int(memory_id[4:], 16)


# The mistakes put right ---------------------------------------------------------------------


def full_scratchpad(size: int = 10) -> Scratchpad:
    """Fill a scratchpad; entry ``n`` was last accessed on the ``n + 1``st of January."""
    scratchpad = Scratchpad(agent_id="bob", max_size=size)
    for day in range(size):
        accessed = datetime(2026, 1, day + 1, tzinfo=UTC)
        scratchpad.add_memory(a_memory(id=f"mem-{day}", timestamp=accessed, last_accessed=accessed))
    return scratchpad


def ids(scratchpad: Scratchpad) -> set[str]:
    return {entry.id for entry in scratchpad.memories}


def test_an_entry_just_added_stays_and_the_least_recently_used_one_goes() -> None:
    scratchpad = full_scratchpad()
    # Its own time is the oldest of all: when it entered is what counts.
    scratchpad.add_memory(a_memory(id="mem-new", timestamp=datetime(2001, 1, 1, tzinfo=UTC)))
    assert ids(scratchpad) == {"mem-new", *(f"mem-{n}" for n in range(1, 10))}


def test_an_entry_just_added_stays_even_if_it_was_last_accessed_long_ago() -> None:
    scratchpad = full_scratchpad()
    long_ago = datetime(2001, 1, 1, tzinfo=UTC)
    scratchpad.add_memory(a_memory(id="mem-new", timestamp=long_ago, last_accessed=long_ago))
    assert ids(scratchpad) == {"mem-new", *(f"mem-{n}" for n in range(1, 10))}


def test_a_scratchpad_keeps_the_last_ones_added_when_none_was_ever_accessed() -> None:
    scratchpad = Scratchpad(agent_id="bob", max_size=10)
    for number in range(25):
        scratchpad.add_memory(a_memory(id=f"mem-{number}", timestamp=NOW))
        assert f"mem-{number}" in ids(scratchpad)
        assert len(scratchpad.memories) <= 10
    assert "mem-0" not in ids(scratchpad)


def test_a_scratchpad_that_is_read_too_long_keeps_the_most_recent() -> None:
    entries = [
        made(ScratchpadMemoryEntry, id=f"mem-{n}", timestamp=NOW + timedelta(minutes=n))
        for n in range(12)
    ]
    scratchpad = Scratchpad(agent_id="bob", max_size=10, memories=entries)
    assert ids(scratchpad) == {f"mem-{n}" for n in range(2, 12)}


def test_tags_keep_the_order_in_which_they_were_first_seen() -> None:
    tags = [" Zebra", "apple", "zebra ", "", "Mango", "APPLE", "  "]
    assert a_memory(tags=tags).tags == ["zebra", "apple", "mango"]


@pytest.mark.parametrize(("accesses", "score"), [(0, 1.0), (20, 2.0), (41, 3.05), (1000, 51.0)])
def test_a_relevance_score_has_no_upper_bound(accesses: int, score: float) -> None:
    memory = a_memory(access_count=accesses, timestamp=NOW)
    found = memory.calculate_relevance_score(1.0, NOW)
    assert found == pytest.approx(score)
    result = MemorySearchResult(memory=memory, relevance_score=found, match_type="keyword")
    assert result.relevance_score == found


def test_a_relevance_score_below_zero_is_refused() -> None:
    with pytest.raises(ValidationError):
        made(MemorySearchResult, relevance_score=-0.01)


@pytest.mark.parametrize(
    ("age", "days"),
    [
        (timedelta(days=-400), 0),
        (timedelta(microseconds=-1), 0),
        (timedelta(hours=23, minutes=59, seconds=59), 0),
        (timedelta(days=1), 1),
        (timedelta(days=1, hours=23), 1),
        (timedelta(days=90), 90),
    ],
)
def test_age_counts_whole_days_and_is_never_negative(age: timedelta, days: int) -> None:
    score = a_memory(timestamp=NOW - age).calculate_relevance_score(0.5, NOW)
    assert score == pytest.approx(0.5 / (1 + 0.1 * days))


def test_the_two_factors_of_a_score_are_multiplied() -> None:
    memory = a_memory(timestamp=NOW - timedelta(days=10), access_count=4)
    assert memory.calculate_relevance_score(0.8, NOW) == pytest.approx(0.8 * 0.5 * 1.2)


@pytest.mark.parametrize(("accesses", "worthy"), [(2, False), (3, True)])
def test_three_accesses_make_a_memory_worthy_of_the_scratchpad(accesses: int, worthy: bool) -> None:
    assert a_memory(access_count=accesses).should_promote_to_scratchpad() is worthy


@pytest.mark.parametrize("agent_id", ["bob\n", "\nbob", "", "a b", "a" * 65, "../bob", "böb"])
@pytest.mark.parametrize("model", [Memory, Scratchpad, AgentMetadata])
def test_no_model_takes_a_wrong_agent_id(model: type[BaseModel], agent_id: str) -> None:
    with pytest.raises(ValidationError):
        made(model, agent_id=agent_id)


@pytest.mark.parametrize(
    "given_time",
    [
        datetime(2026, 1, 30, 16, 0),  # noqa: DTZ001 - a naive time means UTC
        datetime(2026, 1, 30, 17, 30, tzinfo=timezone(timedelta(hours=1, minutes=30))),
        "2026-01-30T16:00:00",
        "2026-01-30T16:00:00Z",
        "2026-01-30T11:00:00-05:00",
    ],
)
def test_every_time_becomes_aware_and_utc(given_time: datetime | str) -> None:
    memory = a_memory(timestamp=given_time, last_accessed=given_time)
    for found in (memory.timestamp, memory.last_accessed):
        assert found == NOW
        assert found is not None
        assert found.tzinfo is UTC
    assert a_memory().timestamp.tzinfo is UTC
    assert made(Scratchpad).last_updated.tzinfo is UTC


@pytest.mark.parametrize(
    "letter",
    ["a", "é", "e\u0301", "😀", "👩‍👩‍👧‍👦", "界"],
    ids=["ascii", "composed", "combining", "emoji", "zwj", "han"],
)
def test_content_is_counted_in_code_points(letter: str) -> None:
    for length in (9_999, 10_000):
        content = (letter * length)[:length]
        assert a_memory(content=content).content == content
    with pytest.raises(ValidationError, match="10000"):
        a_memory(content=(letter * 10_001)[:10_001])


def test_content_may_be_one_character_and_not_none() -> None:
    assert a_memory(content="x").content == "x"
    for content in ("", " ", "\n\t"):
        with pytest.raises(ValidationError):
            a_memory(content=content)

"""JSON and JSONL of memories: what is written, in two shapes, and whatever may be read."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import TESTS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sources import ListSource, fields_of

from agent_memory import (
    AgentMemory,
    Importance,
    Memory,
    MemoryKind,
    MemoryType,
    StorageUnavailable,
    TaskMetadata,
    TaskStatus,
    ValidationError,
)
from agent_memory.formats.json_reader import MAX_ITEM, read_items
from agent_memory.formats.protocol import MEMORIES_ALONE, Codec
from agent_memory.formats.registry import codec
from agent_memory.models.portable import Entry, Section

UNTIMED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=60,
)
FORMATS = ("json", "jsonl", "record-json", "record-jsonl")
MOMENT = datetime(2026, 1, 30, 16, tzinfo=UTC)
PLAIN = Memory(
    id="mem-a3f2c1b4e5d6",
    agent_id="bob",
    content="Prefer PostgreSQL for new projects",
    category="preference",
    tags=["database", "postgresql"],
    timestamp=MOMENT,
    updated_at=MOMENT,
    created_by_session="session-abc-123",
)
FULL = Memory(
    id="550e8400-e29b-41d4-a716-446655440000",
    agent_id="bob",
    content='Two lines,\none\u2028with "quotes" and \U0001f600',
    category="task",
    tags=["ünïcode"],
    timestamp=MOMENT,
    last_accessed=datetime(2026, 2, 1, 8, 30, 0, 250_000, tzinfo=UTC),
    access_count=7,
    created_by_session="session-2",
    metadata={"sure": 0.95, "nested": {"list": [1, None, "x"]}, "created_at": "by hand"},
    kind=MemoryKind.TASK,
    importance=Importance.HIGH,
    task_metadata=TaskMetadata(status=TaskStatus.BLOCKED, blockers=["the release"]),
    archived=True,
    updated_at=datetime(2026, 2, 2, tzinfo=UTC),
    user_id="user_123",
    run_id="conversation_456",
    memory_type=MemoryType.PROCEDURAL,
    version=3,
)
RECORD: dict[str, Any] = {
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "content": "User prefers Italian cuisine, especially pasta dishes",
    "metadata": {
        "user_id": "user_123",
        "agent_id": "assistant_001",
        "run_id": "conversation_456",
        "created_at": "2024-01-15T10:30:00Z",
        "updated_at": "2024-01-15T10:30:00Z",
        "memory_type": "STANDARD",
        "category": "preferences",
        "tags": ["food", "cuisine", "italian"],
        "custom_metadata": {"confidence": 0.95, "source": "conversation"},
    },
    "version": 1,
}
RECORD_FIELDS: dict[str, Any] = {
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "content": "User prefers Italian cuisine, especially pasta dishes",
    "user_id": "user_123",
    "run_id": "conversation_456",
    "timestamp": "2024-01-15T10:30:00Z",
    "updated_at": "2024-01-15T10:30:00Z",
    "memory_type": "STANDARD",
    "category": "preferences",
    "tags": ["food", "cuisine", "italian"],
    "metadata": {"confidence": 0.95, "source": "conversation"},
    "version": 1,
}


def written(name: str, folder: Path, *memories: Memory) -> bytes:
    path = folder / f"out.{name}"
    result = codec(name).write(path, ListSource(memories))
    assert result.memories == len(memories)
    assert [note for note in result.notes if note != MEMORIES_ALONE] == []
    return path.read_bytes()


def read(data: bytes | str, folder: Path, name: str = "json") -> list[Entry]:
    path = folder / f"in.{name}"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(codec(name).read(path))


def memories_of(entries: list[Entry]) -> list[dict[str, Any]]:
    """Return the fields of the memories, which must all be without a fault."""
    assert [entry.error for entry in entries if entry.error] == []
    return [entry.fields for entry in entries if entry.section is Section.MEMORY]


def only(data: bytes | str, folder: Path, name: str = "json") -> dict[str, Any]:
    (fields,) = memories_of(read(data, folder, name))
    return fields


# What is written ----------------------------------------------------------------------------


def test_json_is_an_array_with_one_memory_a_line_as_pydantic_writes_it(tmp_path: Path) -> None:
    data = written("json", tmp_path, PLAIN, FULL)
    first, second = PLAIN.model_dump_json(), FULL.model_dump_json()
    assert data.decode() == f"[\n{first},\n{second}\n]\n"
    assert Memory.model_validate(json.loads(data)[1]) == FULL


def test_jsonl_has_one_memory_a_line_as_pydantic_writes_it(tmp_path: Path) -> None:
    data = written("jsonl", tmp_path, PLAIN, FULL)
    assert data.decode() == f"{PLAIN.model_dump_json()}\n{FULL.model_dump_json()}\n"


def test_the_keys_of_the_documents_come_first_in_its_order(tmp_path: Path) -> None:
    (told,) = json.loads(written("json", tmp_path, PLAIN))
    assert list(told)[:11] == [
        "id", "agent_id", "content", "category", "tags", "embedding", "timestamp",
        "last_accessed", "access_count", "created_by_session", "metadata",
    ]  # fmt: skip
    assert told["timestamp"] == "2026-01-30T16:00:00Z"
    assert told["embedding"] is None


def test_a_record_has_the_keys_of_a_memory_record(tmp_path: Path) -> None:
    (line,) = written("record-jsonl", tmp_path, PLAIN).decode().splitlines()
    assert json.loads(line) == {
        "id": "mem-a3f2c1b4e5d6",
        "content": "Prefer PostgreSQL for new projects",
        "metadata": {
            "agent_id": "bob",
            "created_at": "2026-01-30T16:00:00Z",
            "updated_at": "2026-01-30T16:00:00Z",
            "memory_type": "STANDARD",
            "category": "preference",
            "tags": ["database", "postgresql"],
            "custom_metadata": {"agent_memory": {"created_by_session": "session-abc-123"}},
        },
        "version": 1,
    }
    assert [*json.loads(line)["metadata"]][:3] == ["agent_id", "created_at", "updated_at"]
    array = written("record-json", tmp_path, PLAIN, PLAIN).decode()
    assert array == f"[\n{line},\n{line}\n]\n"


def test_a_record_keeps_what_it_has_no_place_for_under_one_key(tmp_path: Path) -> None:
    (record,) = json.loads(written("record-json", tmp_path, FULL))
    assert record["metadata"]["custom_metadata"] == {
        **FULL.metadata,
        "agent_memory": {
            "kind": "task",
            "importance": "high",
            "task_metadata": {
                "status": "blocked",
                "completed_at": None,
                "blockers": ["the release"],
                "outcome": None,
            },
            "archived": True,
            "access_count": 7,
            "last_accessed": "2026-02-01T08:30:00.250000Z",
            "created_by_session": "session-2",
        },
    }


@pytest.mark.parametrize(("name", "empty"), [("json", b"[]\n"), ("jsonl", b"")])
def test_an_empty_store_is_a_file_without_memories(name: str, empty: bytes, tmp_path: Path) -> None:
    assert written(name, tmp_path) == written(f"record-{name}", tmp_path) == empty
    assert read(empty, tmp_path, name) == []


@pytest.mark.parametrize("name", FORMATS)
def test_an_embedding_is_written_if_there_is_one_and_read(name: str, tmp_path: Path) -> None:
    embedded = PLAIN.model_copy(update={"embedding": [0.25, -1e-7, 1.0]})
    without, with_it = memories_of(
        read(written(name, tmp_path, PLAIN, embedded), tmp_path, name.removeprefix("record-"))
    )
    assert "embedding" not in without
    assert with_it["embedding"] == [0.25, -1e-7, 1.0]


@pytest.mark.parametrize("name", FORMATS)
def test_a_category_that_was_kept_as_a_note_is_given_back(name: str, tmp_path: Path) -> None:
    kept = PLAIN.model_copy(
        update={"category": "note", "metadata": {"original_category": "incident", "sure": True}}
    )
    fields = only(written(name, tmp_path, kept), tmp_path, name.removeprefix("record-"))
    assert fields["category"] == "incident"
    assert fields["metadata"] == {"sure": True}


@pytest.mark.parametrize("name", FORMATS)
def test_what_another_program_left_in_the_metadata_is_no_reason_to_write_no_json(
    name: str, tmp_path: Path
) -> None:
    odd = Memory.model_construct(**{**PLAIN.__dict__, "metadata": {"n": float("inf")}})
    assert only(written(name, tmp_path, odd), tmp_path, name.removeprefix("record-"))
    deep: Any = 1
    for _ in range(2000):
        deep = [deep]
    bottomless = Memory.model_construct(**{**PLAIN.__dict__, "metadata": {"deep": deep}})
    old = tmp_path / f"out.{name}"
    old.write_text("the old export")
    with pytest.raises(ValidationError, match=r"metadata: of the memory mem-a3f2c1b4e5d6"):
        codec(name).write(old, ListSource([PLAIN, bottomless]))
    assert old.read_text() == "the old export"


# There and back -----------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
TIMES = st.datetimes(timezones=st.just(UTC))
METADATA = st.dictionaries(
    TEXTS | st.sampled_from(["agent_memory", "created_at", "memory_type", "custom_metadata", "id"]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXTS,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(TEXTS | st.just("created_by_session"), inner, max_size=3)
        ),
        max_leaves=5,
    ),
    max_size=3,
)
MEMORIES = st.builds(
    Memory,
    agent_id=st.just("bob"),
    content=TEXTS.map(lambda text: f"x{text}"),
    category=st.sampled_from(["note", "task", "insight"]),
    tags=st.lists(st.sampled_from(["a", "b c", "ß"]), unique=True),
    timestamp=TIMES,
    last_accessed=st.none() | TIMES,
    access_count=st.integers(0, 2**31),
    created_by_session=st.sampled_from(["s", "\u2028s"]),
    metadata=METADATA,
    kind=st.sampled_from(["core", "learning", "task"]),
    importance=st.sampled_from(["high", "medium", "low"]),
    task_metadata=st.none()
    | st.just({"status": "completed", "completed_at": "2026-01-01", "outcome": "done"}),
    archived=st.booleans(),
    updated_at=TIMES,
    user_id=st.none() | st.just("user"),
    run_id=st.none() | st.just("run"),
    memory_type=st.sampled_from(["STANDARD", "PROCEDURAL", "GRAPH"]),
    version=st.integers(1, 2**31),
)


@pytest.mark.parametrize("name", FORMATS)
@UNTIMED
@given(memories=st.lists(MEMORIES, max_size=4))
def test_what_was_written_is_read_and_written_the_same(
    name: str, memories: list[Memory], tmp_path: Path
) -> None:
    data = written(name, tmp_path, *memories)
    entries = read(data, tmp_path, name)
    agents = [entry.fields for entry in entries if entry.section is Section.AGENT]
    assert agents == [{"agent_id": "bob"}][: len(memories)]
    back = [Memory(**{**fields, "agent_id": "bob"}) for fields in memories_of(entries)]
    assert back == memories
    assert written(name, tmp_path, *back) == data


@pytest.mark.parametrize("own", [{"created_by_session": "x"}, {"metadata": 1}, {}, [], 3, None])
def test_what_a_memory_has_by_itself_under_the_kept_key_is_not_mixed_up(
    own: object, tmp_path: Path
) -> None:
    memory = PLAIN.model_copy(update={"metadata": {"agent_memory": own, "a": 1}})
    fields = only(written("record-json", tmp_path, memory), tmp_path)
    assert fields["metadata"] == memory.metadata


@pytest.mark.parametrize(
    "own", [{"version": 2}, {"created_by_session": "x", "version": 2}, {}, [], "x"]
)
def test_what_others_keep_under_the_kept_key_stays_metadata(own: object, tmp_path: Path) -> None:
    custom = {"agent_memory": own, "a": 1}
    foreign = {**RECORD, "metadata": {**RECORD["metadata"], "custom_metadata": custom}}
    assert only(json.dumps(foreign), tmp_path) == {**RECORD_FIELDS, "metadata": custom}


def test_what_a_search_returned_is_read_as_its_memories(
    memory: AgentMemory, tmp_path: Path
) -> None:
    for content in ("we use PostgreSQL", "the database is PostgreSQL 17"):
        memory.store(content, category="decision")
    found = memory.search("PostgreSQL")
    assert len(found) == 2
    text = found.model_dump_json(indent=2)
    for name, data in (("json", text), ("jsonl", found.model_dump_json())):
        back = memories_of(read(data, tmp_path, name))
        assert back == [{**fields_of(hit.memory), "last_accessed": None} for hit in found]


@pytest.mark.parametrize("name", ["json", "jsonl"])
def test_a_conversation_is_told_which_verb_takes_it(name: str, tmp_path: Path) -> None:
    text = json.dumps({"messages": [{"role": "user", "content": "I live in Oslo."}]})
    (entry,) = read(text, tmp_path, name)
    assert entry.error == "is a conversation, not a memory: use `add` to learn from it"


# The shapes that are read -------------------------------------------------------------------


def test_the_memory_of_the_data_models_is_read_as_it_stands(tmp_path: Path) -> None:
    example = """{
  "id": "mem-a3f2c1b4e5d6",
  "agent_id": "bob",
  "content": "Prefer PostgreSQL for new projects",
  "category": "preference",
  "tags": ["database", "postgresql"],
  "embedding": null,
  "timestamp": "2026-01-30T16:00:00Z",
  "last_accessed": null,
  "access_count": 0,
  "created_by_session": "session-abc-123",
  "metadata": {}
}
"""
    assert read(example, tmp_path) == [
        Entry(Section.AGENT, {"agent_id": "bob"}, "line 1, item 1"),
        Entry(
            Section.MEMORY,
            {
                "id": "mem-a3f2c1b4e5d6",
                "content": "Prefer PostgreSQL for new projects",
                "category": "preference",
                "tags": ["database", "postgresql"],
                "timestamp": "2026-01-30T16:00:00Z",
                "last_accessed": None,
                "access_count": 0,
                "created_by_session": "session-abc-123",
                "metadata": {},
            },
            "line 1, item 1",
        ),
    ]


def test_a_memory_record_is_read(tmp_path: Path) -> None:
    entries = read(json.dumps(RECORD, indent=2), tmp_path)
    assert entries[0] == Entry(Section.AGENT, {"agent_id": "assistant_001"}, "line 1, item 1")
    assert memories_of(entries) == [RECORD_FIELDS]
    with_vector = {**RECORD, "embedding": [0.1, -0.2, 0.3], "score": 0.9}
    assert only(json.dumps(with_vector), tmp_path) == {
        **RECORD_FIELDS,
        "embedding": [0.1, -0.2, 0.3],
    }


def test_a_record_that_was_shortened_with_dots_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = json.dumps(RECORD, indent=2).splitlines()
    lines.insert(3, '  "embedding": [0.1, -0.2, 0.3, ...],')
    with pytest.raises(ValidationError, match=r"in\.json: line 4: is not JSON: .* before '\.\.\."):
        read("\n".join(lines), tmp_path)


RESULT = {
    "memory": {"id": "mem-abc123", "content": "x", "category": "preference", "tags": ["db"]},
    "relevance_score": 0.87,
    "match_type": "vector",
}
SEARCHED = {
    "results": [{"id": "r", "content": "x", "score": 0.95, "metadata": {"memory_type": "GRAPH"}}],
    "total_count": 1,
    "search_metadata": {"filters_applied": {"content": "x"}},
}


@pytest.mark.parametrize(
    ("item", "fields"),
    [
        ({"content": "x"}, {"content": "x"}),
        (
            {"content": "x", "session_id": "s-1", "kind": "core", "tags": []},
            {"content": "x", "created_by_session": "s-1", "kind": "core", "tags": []},
        ),
        (
            {"content": "x", "session_id": "a", "created_by_session": "b"},
            {"content": "x", "created_by_session": "b", "metadata": {"session_id": "a"}},
        ),
        (RESULT, RESULT["memory"]),
        (SEARCHED, {"id": "r", "content": "x", "memory_type": "GRAPH"}),
        (
            {"success": True, "data": SEARCHED, "metadata": {"timestamp": "2024-01-15T10:35:00Z"}},
            {"id": "r", "content": "x", "memory_type": "GRAPH"},
        ),
        ({"success": True, "data": {"content": "x"}}, {"content": "x"}),
        ({"agent": "z", "memories": [{"content": "x"}]}, {"content": "x"}),
        ({"memories": [RESULT]}, RESULT["memory"]),
        (
            {"content": "x", "session_id": "s", "metadata": {"created_at": "then"}},
            {"content": "x", "created_by_session": "s", "metadata": {"created_at": "then"}},
        ),
        ({"results": "[", "content": "x"}, {"content": "x", "metadata": {"results": "["}}),
        # Null tells nothing, but that a memory was never accessed.
        (
            {"content": "x", "tags": None, "user_id": None, "last_accessed": None, "foo": None},
            {"content": "x", "last_accessed": None},
        ),
        # What no field is of goes into the metadata, and a score of one query nowhere.
        (
            {"content": "x", "foo": [1], "metadata": {"bar": None}, "relevance_score": 1.5},
            {"content": "x", "metadata": {"bar": None, "foo": [1]}},
        ),
        (
            {"content": "x", "foo": 1, "metadata": {"created_at": "2026-01-01", "version": "b"}},
            {"content": "x", "timestamp": "2026-01-01", "metadata": {"foo": 1, "version": "b"}},
        ),
        # Metadata of A's may have the words of C's.
        (
            {"content": "x", "timestamp": "2026-01-01", "metadata": {"created_at": "then"}},
            {"content": "x", "timestamp": "2026-01-01", "metadata": {"created_at": "then"}},
        ),
        ({"content": "x", "results": [1]}, {"content": "x", "metadata": {"results": [1]}}),
        (
            {"content": "x", "metadata": {"é": "\ud800"}},
            {"content": "x", "metadata": {"é": "\ud800"}},
        ),
    ],
    ids=str,
)
def test_each_item_is_read_by_its_shape_whatever_the_format(
    item: dict[str, Any], fields: dict[str, Any], tmp_path: Path
) -> None:
    for name in FORMATS:
        assert only(json.dumps(item), tmp_path, name) == fields
    for text in (json.dumps([item, item]), json.dumps(item, indent=2) * 2):
        assert memories_of(read(text, tmp_path)) == [fields, fields]


def test_of_agents_the_first_is_told_and_another_is_kept_in_the_metadata(tmp_path: Path) -> None:
    agents = {"a": None, "b": "bob", "c": "bob", "d": "alice"}
    lines = "\n".join(json.dumps({"content": c, "agent_id": a}) for c, a in agents.items())
    none, agent, first, same, other = read(lines, tmp_path, "jsonl")
    assert agent == Entry(Section.AGENT, {"agent_id": "bob"}, "line 2")
    assert [one.fields for one in (none, first, same)] == [{"content": c} for c in "abc"]
    assert other.fields == {"content": "d", "metadata": {"agent_id": "alice"}}
    assert "'alice'" in other.repairs[0]
    (unfit,) = read('{"content": "x", "agent_id": "my agent"}', tmp_path)
    assert unfit.fields["metadata"] == {"agent_id": "my agent"}


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"content": "x", "metadata": [1]}, "metadata: is a JSON list"),
        ({"content": "x", "metadata": "y"}, "metadata: is a JSON str"),
        ({"content": "x", "foo": 1, "metadata": {"foo": 2}}, "'foo' is both beside the metadata"),
        (
            {"content": "x", "metadata": {"created_at": "2026-01-01", "custom_metadata": "y"}},
            "custom_metadata: is a JSON str",
        ),
        (
            {
                "content": "x",
                "metadata": {"memory_type": "GRAPH", "custom_metadata": {"a": 1}},
                "a": 2,
            },
            "'a' is both beside",
        ),
        ({"results": [1]}, "is a JSON int, not an object"),
        (None, "null, not an object|NoneType, not an object"),
        ([], "is a JSON list, not an object"),
        ([[{"content": "x"}]], "is a JSON list, not an object"),
        ("content", "is a JSON str, not an object"),
        (7.5, "is a JSON float, not an object"),
    ],
    ids=str,
)
def test_an_item_that_cannot_be_used_is_told_and_the_next_one_read(
    item: object, error: str, tmp_path: Path
) -> None:
    for name, text in (
        ("json", json.dumps([item, {"content": "good"}])),
        ("jsonl", f'{json.dumps(item)}\n{{"content": "good"}}'),
    ):
        wrong, good = read(text, tmp_path, name)
        assert wrong.fields == {}
        assert re.search(error, wrong.error or "")
        assert (good.fields, good.error) == ({"content": "good"}, None)


# Bad files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ('{"content": "x", "metadata": {"n": NaN}}', "NaN"),
        ('{"content": "x", "metadata": {"n": [-Infinity]}}', "-Infinity"),
        ('{"content": "x", "metadata": {"n": 1e999}}', "1e999"),
        ('{"content": "x", "access_count": ' + "7" * 5000 + "}", "5,000 digits"),
        ('{"content": "x", "content": "y"}', "'content' occurs twice"),
        ('{"content": "x", "metadata": {"a": 1, "\\u0061": 2}}', "'a' occurs twice"),
        ('{"content": "' + "x" * MAX_ITEM + '"}', "longer than 1,000,000"),
    ],
    ids=lambda value: value[-30:],
)
def test_what_breaks_a_rule_is_told_of_its_item_and_the_next_one_is_read(
    item: str, error: str, tmp_path: Path
) -> None:
    good = '{"content": "good"}'
    wrong, last = read(f"[{item},\n{good}]", tmp_path)
    assert (wrong.place, last.place) == ("line 1, item 1", "line 2, item 2")
    assert error in (wrong.error or "")
    assert last.fields == {"content": "good"}
    first, wrong, last = read(f"{good}\n{item}\n{good}", tmp_path, "jsonl")
    assert (wrong.place, last.place) == ("line 2", "line 3")
    assert error in (wrong.error or "")
    assert first.fields == last.fields == {"content": "good"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[\n{"content": "x"},\n', "line 3: is not JSON: .*cut off"),
        ('[\n{"content": "x"}\n', "line 3: is not JSON: .*',' or ']' is missing at the end"),
        ('[\n{"content": "x"', "line 2: is not JSON: .*cut off"),
        ('[\n{"content": "x', "line 2: is not JSON: "),
        ('{"content": "x"', "line 1: is not JSON: .*missing at the end"),
        ('[\n{"content": "x"}\n{"content": "y"}]', "line 3: is not JSON: .* is missing before"),
        ('[{"content": "x"},\n]', "line 2: is not JSON"),
        ('{"content": "x"},\n{"content": "y"}', "line 1: is not JSON: .* before ','"),
        ('{"content": "x",\n}', "line 2: is not JSON: a key between double quotes"),
        ("{'content': 'x'}", "line 1: is not JSON: a key between double quotes"),
        ('{"content" "x"}', "line 1: is not JSON: ':' is missing"),
        ('[{"content": "tab\there"}]', "line 1: is not JSON: Invalid control character"),
        ('[\n\n{"content": "a\nb"}]', "line 3: is not JSON: Invalid control character"),
        ('[{"a": 01}]', "line 1: is not JSON"),
        ("hello", "line 1: is not JSON: .* before 'hello'"),
        ("\x00", "line 1: is not JSON"),
        ("[" * 100_000, "line 1: is nested too deeply"),
        ('[\n{"metadata":' + '{"a":' * 100_000, "line 2: is nested too deeply"),
        ('[{"content": "' + "x" * 3 * MAX_ITEM, "line 1: is longer than 1,000,000"),
        ("{" + ",".join(f'"{n}": 1' for n in range(200_000)) + "}", "line 1: is longer than"),
    ],
    ids=lambda value: value[:30],
)
def test_json_that_cannot_be_read_past_is_refused_with_the_file_and_the_line(
    text: str, error: str, tmp_path: Path
) -> None:
    with pytest.raises(ValidationError, match=rf"/in\.json: {error}"):
        read(text, tmp_path)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'[{"content": "\xff"}]', 1),
        (b'[\n{"content": "\xed\xa0\x80"}]', 2),
        (b'[\n{"content": "x"}, \n\xc3', 3),
        ('[{"content": "x"}]'.encode("utf-16"), 1),
    ],
    ids=ascii,
)
def test_what_is_not_utf8_is_refused(data: bytes, line: int, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=rf"/in\.json: line {line}: is not UTF-8"):
        read(data, tmp_path)


def test_items_before_the_one_that_cannot_be_read_past_are_yielded(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('[{"content": "x"}, oops]')
    reading = codec("json").read(path)
    assert next(reading).fields == {"content": "x"}
    with pytest.raises(ValidationError, match="oops"):
        next(reading)


@pytest.mark.parametrize("name", FORMATS)
def test_a_byte_order_mark_windows_lines_and_other_line_breaks_are_read(
    name: str, tmp_path: Path
) -> None:
    line = '{"content": "a\u2028b\x85c"}'
    data = f"\ufeff{line}\r\n\r\n{line}\r\n"
    assert memories_of(read(data, tmp_path, name)) == [{"content": "a\u2028b\x85c"}] * 2


@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_a_pipe_and_nothing_are_no_files(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, problem in (
        (tmp_path, StorageUnavailable),
        (tmp_path / "pipe", ValidationError),
        (tmp_path / "nothing", StorageUnavailable),
        (tmp_path / "no" / "thing", StorageUnavailable),
    ):
        with pytest.raises(problem, match=str(place)):
            list(codec(name).read(place))


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_changes_while_it_is_read_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(written(name, tmp_path, PLAIN, FULL))
    reading = codec(name).read(path)
    next(reading)
    with path.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(ValidationError, match="changed while it was read"):
        list(reading)


# Long files ---------------------------------------------------------------------------------


class Trickle(io.RawIOBase):
    """A file that gives as many bytes at a time as it was told to."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__()
        self._data = io.BytesIO(data)
        self._size = size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, self._size))


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab\\"'), inner),
    max_leaves=8,
)


@UNTIMED
@given(
    st.lists(VALUES, max_size=4),
    st.sampled_from([None, 0, 3]),
    st.booleans(),
    st.integers(1, 9),
)
def test_wherever_a_file_is_cut_into_pieces_its_items_are_the_same(
    values: list[Any], indent: int | None, plain: bool, size: int
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=plain)
    data = text.encode(errors="replace")
    wanted = json.loads(data)
    found = list(read_items(Trickle(data, size)))  # type: ignore[arg-type]
    assert [item.error for item in found] == [None] * len(wanted)
    assert [item.value for item in found] == wanted
    if indent is not None and values:
        assert found[0].line == 2
    one_by_one = "\n".join(json.dumps(value, indent=indent) for value in wanted).encode()
    singly = list(read_items(Trickle(one_by_one, size)))  # type: ignore[arg-type]
    flat = [part for one in wanted for part in (one if isinstance(one, list) else [one])]
    assert [item.value for item in singly] == flat


@UNTIMED
@given(st.text('[]{}",:1eE.-ntfalsrue \n\\u', max_size=40), st.integers(1, 9))
def test_whatever_the_text_is_it_is_read_as_python_reads_it_or_refused(
    text: str, size: int
) -> None:
    data = f"[{text}]".encode()
    try:
        wanted = json.loads(data, object_pairs_hook=_strictly)
    except ValueError:
        wanted = None
    try:
        found = list(read_items(Trickle(data, size)))  # type: ignore[arg-type]
    except ValidationError:
        found = None
    if wanted is not None:
        assert found is not None
        assert [item.value for item in found] == wanted
    elif found is not None and len(found) == 1:
        # Only what JSON is but for a rule, or arrays that stand one after another.
        assert found[0].error is not None or "][" in "".join(data.decode().split())


BOTH = "has a 'content' and a list of items"
ANSWER = {"success": True, "data": {"content": "x"}}


@pytest.mark.parametrize(
    ("text", "values", "error"),
    [
        ('{"content": "x", "content": "y"}', [None], "'content' occurs twice"),
        ('{"a": {"b": 1, "b": 2}, "content": "y"}', [None], "'b' occurs twice"),
        ('{"results": [1, {}], "content": "x"}', [1, {}, None], BOTH),
        ('{"success": true, "data": {}, "content": "x"}', [{}, None], BOTH),
        ('{"success": true, "data": {"memories": [1]}, "results": [2]}', [1, 2], None),
        (json.dumps({"success": True, "data": ANSWER}), [ANSWER], None),
        (json.dumps({"content": "x", **ANSWER}), [{"content": "x", **ANSWER}], None),
        ('{"data": {"content": "x"}}', [{"data": {"content": "x"}}], None),
        ('{"results": []}', [], None),
        ("{}", [{}], None),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_an_object_is_the_same_whether_it_is_held_as_a_whole_or_not(
    text: str, values: list[Any], error: str | None, size: int
) -> None:
    found = list(read_items(Trickle(text.encode(), size)))  # type: ignore[arg-type]
    assert [item.value for item in found] == values
    assert [item.error for item in found[:-1] if item.error] == []
    assert error is None or error in (found[-1].error or "")
    assert error is not None or [item.error for item in found] == [None] * len(values)


def test_answers_in_answers_without_end_are_refused() -> None:
    data = b'{"success": true, "data": ' * 50_000
    for size in (100, len(data)):
        with pytest.raises(ValidationError, match="line 1: is nested too deeply"):
            list(read_items(Trickle(data, size)))  # type: ignore[arg-type]


def _strictly(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def many(count: int) -> Iterator[Memory]:
    for number in range(count):
        yield PLAIN.model_copy(update={"id": f"mem-{number:012x}", "content": f"{number} " * 900})


@pytest.mark.parametrize("form", [*FORMATS, "envelope", "pretty"])
def test_a_long_file_is_never_held_in_memory(form: str, tmp_path: Path) -> None:
    count = 2_000
    path = tmp_path / "long"
    name = form if form in FORMATS else "json"
    codec(name).write(path, ListSource(list(many(count))))
    if form == "envelope":
        path.write_text(f'{{"total_count": {count}, "results": {path.read_text()}}}')
    if form == "pretty":
        path.write_text("\n".join(json.dumps(o, indent=1) for o in json.loads(path.read_text())))
    assert path.stat().st_size > 6 * 2**20
    tracemalloc.start()
    try:
        read = sum(entry.section is Section.MEMORY for entry in codec(name).read(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == count
    assert peak < 3 * 2**20


@pytest.mark.parametrize(("name", "letter"), [("json", "x"), ("json", " "), ("jsonl", "x")])
def test_a_line_of_50_mb_does_not_fill_the_memory(name: str, letter: str, tmp_path: Path) -> None:
    path = tmp_path / "endless"
    with path.open("w") as file:
        file.write('{"content": "' if letter == "x" else "[")
        for _ in range(50):
            file.write(letter * 1_000_000)
        file.write('{"content": "x"}]' if letter == " " else '"}\n{"content": "good"}\n')
    tracemalloc.start()
    try:
        if (name, letter) == ("json", "x"):
            with pytest.raises(ValidationError, match="line 1: is longer than"):
                list(codec(name).read(path))
        else:
            contents = [entry.fields.get("content") for entry in codec(name).read(path)]
            assert contents == (["x"] if letter == " " else [None, "good"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20


# Where it is written ------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_private_and_takes_the_place_of_a_link(name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / "out"
    link.symlink_to(victim)
    before = os.umask(0)
    try:
        codec(name).write(link, ListSource([PLAIN]))
    finally:
        os.umask(before)
    assert victim.read_text() == "precious"
    assert not link.is_symlink()
    assert stat.S_IMODE(link.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"victim", "out"}


@pytest.mark.parametrize("name", FORMATS)
def test_a_place_that_cannot_be_written_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "no" / "folder"):
        with pytest.raises(StorageUnavailable, match=str(place)):
            codec(name).write(place, ListSource([PLAIN]))
    assert {path.name for path in tmp_path.iterdir()} == {"folder"}


class Breaking(ListSource):
    """A store that cannot be read to its end."""

    def memories(self) -> Iterator[Memory]:
        yield PLAIN
        raise StorageUnavailable("the disk went away")


@pytest.mark.parametrize("name", FORMATS)
def test_what_stood_there_stays_when_the_store_cannot_be_read(name: str, tmp_path: Path) -> None:
    old = tmp_path / "out"
    old.write_text("the old export")
    with pytest.raises(StorageUnavailable, match="went away"):
        codec(name).write(old, Breaking([]))
    assert old.read_text() == "the old export"
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


WRITE_TOO_MUCH = """
import errno, resource, signal, sys
from pathlib import Path
from agent_memory import StorageError
from agent_memory.formats.registry import codec
from test_json_formats import many
from sources import ListSource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
try:
    codec(sys.argv[1]).write(Path(sys.argv[2]), ListSource(list(many(600))))
except StorageError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("name", FORMATS)
def test_what_does_not_fit_leaves_the_old_file_and_nothing_half_done(
    name: str, tmp_path: Path
) -> None:
    old = tmp_path / "out"
    old.write_text("the old export")
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path[:0] = {[here, str(TESTS)]!r}\n{WRITE_TOO_MUCH}"
    ran = subprocess.run(
        [sys.executable, "-c", code, name, str(old)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("Storage")
    assert str(old) in ran.stdout
    assert old.read_text() == "the old export"
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_the_formats_are_codecs() -> None:
    for name in FORMATS:
        one: Codec = codec(name)
        assert (one.name, one.is_folder) == (name, False)


# Other programs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "metadata"),
    [
        (  # mem0's get_all()
            {
                "results": [
                    {
                        "id": "5b2a1f1e-6f0e-4f0f-9d1e-1f2e3d4c5b6a",
                        "memory": "Likes green tea",
                        "hash": "ab12",
                        "metadata": {"topic": "drinks"},
                        "created_at": "2025-03-04T05:06:07.5-07:00",
                        "updated_at": None,
                        "user_id": "mara",
                    }
                ]
            },
            ("Likes green tea", "2025-03-04T12:06:07.500000+00:00", [], "mara"),
            {"topic": "drinks", "hash": "ab12"},
        ),
        (  # mcp-memory-service
            {
                "export_metadata": {"version": "8.0"},
                "memories": [
                    {
                        "content": "Use ruff",
                        "content_hash": "aa",
                        "tags": ["Style"],
                        "created_at": 1741064767.5,
                        "created_at_iso": "2025-03-04T05:06:07Z",
                        "updated_at": 1741064767.5,
                        "memory_type": "decision",
                        "metadata": {"x": 1},
                    }
                ],
            },
            ("Use ruff", "2025-03-04T05:06:07.500000+00:00", ["style"], None),
            {"x": 1, "content_hash": "aa", "original_type": "decision"},
        ),
    ],
    ids=["mem0", "mcp-memory-service"],
)
def test_exports_of_other_programs_keep_their_times(
    text: dict[str, Any],
    expected: tuple[str, str, list[str], str | None],
    metadata: dict[str, Any],
    tmp_path: Path,
) -> None:
    (tmp_path / "in.json").write_text(json.dumps(text))
    with AgentMemory("bob", root=tmp_path) as memory:
        assert memory.import_(tmp_path / "in.json").new == 1
        assert memory.import_(tmp_path / "in.json").same == 1
        (taken,) = memory.list_recent()
    known = (taken.content, taken.timestamp.isoformat(), taken.tags, taken.user_id)
    assert (known, taken.metadata) == (expected, metadata)

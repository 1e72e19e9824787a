"""Document E's folder there and back: nothing is lost, and E's own tools have the last word."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_directory_export import T0, UUID, files, lines, made, write

from agent_memory import AgentMemory, Memory, TaskMetadata
from agent_memory.formats.directory import CODEC

MARCH = T0.replace(month=3, microsecond=123456)
EVERYTHING: dict[str, Any] = {
    "id": "mem-a3f2c1b4e5d6",
    "content": "Prefer PostgreSQL\nfor “new” projects \u2028 \U0001f600",
    "category": "preference",
    "tags": ["database", "größe"],
    "timestamp": T0.replace(year=2025),
    "last_accessed": MARCH,
    "access_count": 7,
    "created_by_session": "session-9",
    "metadata": {"sure": 0.95, "deep": {"list": [1, None, True, {"a": "b"}]}, "id": "mine"},
    "kind": "task",
    "importance": "high",
    "task_metadata": TaskMetadata(status="blocked", blockers=["api"], outcome="none yet"),
    "archived": True,
    "updated_at": MARCH,
    "user_id": "alice",
    "run_id": "run-1",
    "memory_type": "PROCEDURAL",
    "version": 4,
}


def back(path: Path) -> list[Memory]:
    """Read a folder, in which nothing may be wrong, and return its memories."""
    memories = []
    for entry in CODEC.read(path):
        assert entry.error is None, entry
        assert entry.repairs == (), entry
        memories.append(Memory(**entry.fields, agent_id="bob"))
    return memories


def by_id(memories: list[Memory]) -> dict[str, Memory]:
    return {one.id: one for one in memories}


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("content", ["short", "x" * 9000])
def test_everything_comes_back(tmp_path: Path, content: str, archived: bool) -> None:
    rich = made(**{**EVERYTHING, "content": content, "archived": archived})
    plain = made(0, content=content + "y", archived=archived)
    write(tmp_path, rich, plain)
    assert by_id(back(tmp_path)) == by_id([rich, plain])


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("accessed", [None, T0, T0 + timedelta(microseconds=1)])
def test_whether_it_was_accessed_comes_back(
    tmp_path: Path, count: int, accessed: datetime | None
) -> None:
    memory = made(access_count=count, last_accessed=accessed)
    write(tmp_path, memory)
    assert back(tmp_path) == [memory]


def test_a_category_that_came_from_elsewhere_goes_back_there(tmp_path: Path) -> None:
    write(tmp_path, made(metadata={"original_category": "fact", "more": 1}))
    assert lines(tmp_path / "learnings.jsonl")[0]["category"] == "fact"
    (entry,) = CODEC.read(tmp_path)
    assert entry.fields["category"] == "fact"
    assert entry.fields["metadata"] == {"more": 1}


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
TIMES = st.datetimes(
    datetime(1, 1, 3), datetime(9999, 12, 28), timezones=st.just(UTC)  # noqa: DTZ001
) | st.just(T0)  # fmt: skip
MEMORIES = st.builds(
    made,
    content=TEXTS.map(lambda text: f"x{text}"),
    category=st.sampled_from(["note", "task", "insight"]),
    tags=st.lists(TEXTS.map(lambda tag: f"t{tag[:45]}"), max_size=12),
    kind=st.sampled_from(["core", "learning", "task"]),
    importance=st.sampled_from(["high", "medium", "low"]),
    timestamp=TIMES,
    updated_at=TIMES,
    last_accessed=st.none() | TIMES,
    access_count=st.integers(0, 3),
    archived=st.booleans(),
    version=st.integers(1, 3),
    user_id=st.none() | st.just("alice"),
    task_metadata=st.none()
    | st.builds(
        TaskMetadata,
        status=st.sampled_from(["completed", "in-progress", "blocked"]),
        completed_at=st.none() | TIMES,
        blockers=st.lists(TEXTS, max_size=2),
        outcome=st.none() | TEXTS,
    ),
    metadata=st.dictionaries(TEXTS, st.none() | st.integers(-9, 9) | TEXTS, max_size=3).filter(
        lambda found: "original_category" not in found
    ),
)


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
@given(st.lists(MEMORIES, min_size=1, max_size=6))
def test_whatever_a_memory_is_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, found: list[Memory]
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    store = [
        one.model_copy(update={"id": UUID.format(n) if n % 2 else f"mem-{n:012x}"})
        for n, one in enumerate(found)
    ]
    write(folder, *store)
    assert by_id(back(folder)) == by_id(store)
    before = files(folder)
    write(folder, *store)
    assert files(folder) == before


def test_a_real_store_comes_back_in_another(memory: AgentMemory, tmp_path: Path) -> None:
    for n in range(30):
        memory.store(
            f"memory {n} about databases",
            tags=[f"tag-{n % 4}"],
            kind=("core", "learning", "task")[n % 3],
            metadata={"n": n},
            task_metadata={"status": "in-progress"} if n % 3 == 2 else None,
        )
    memory.search("databases", limit=3)
    memory.store("x" * 8000, user_id="alice")
    memory.export(tmp_path / "folder", format="directory")
    with AgentMemory.open(tmp_path / "other.db", agent_id="bob") as other:
        report = other.import_(tmp_path / "folder")
        assert (report.format, report.new, report.refusals) == ("directory", 31, [])
        assert by_id(other.list_recent(100)) == by_id(memory.list_recent(100))
        other.export(tmp_path / "again", format="directory")
    first, again = files(tmp_path / "folder"), files(tmp_path / "again")
    for name in ("core_memories.jsonl", "learnings.jsonl", "tasks.jsonl", "beyond_limits.jsonl"):
        assert again[name] == first[name]


# E's tools ----------------------------------------------------------------------------------


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Rewrite a file of E's as a tool does that knows nothing of ours."""
    items = lines(path)
    for item in items:
        change(item)
    path.write_text("\n".join(json.dumps(item, separators=(",", ":")) for item in items))


def test_what_another_tool_changed_counts(tmp_path: Path) -> None:
    memory = made(**{**EVERYTHING, "archived": False, "access_count": 0, "last_accessed": None})
    write(tmp_path, memory)

    def use(item: dict[str, Any]) -> None:
        item |= {"content": "changed", "category": "insight", "tags": ["new"], "access_count": 3}
        item |= {"accessed_at": "2027-01-01T00:00:00Z", "importance": "low"}
        item |= {"updated_at": "2027-01-02T00:00:00Z", "source": "tool", "sure": "now"}

    edited(tmp_path / "tasks.jsonl", use)
    changes = {
        "content": "changed",
        "category": "insight",
        "tags": ["new"],
        "access_count": 3,
        "last_accessed": datetime(2027, 1, 1, tzinfo=UTC),
        "importance": "low",
        "updated_at": datetime(2027, 1, 2, tzinfo=UTC),
        "metadata": {**memory.metadata, "source": "tool", "sure": "now"},
    }
    assert back(tmp_path) == [Memory(**{**dict(memory), **changes})]


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({"status": "completed", "outcome": "it works"}, {"status": "completed",
                                                          "outcome": "it works"}),
        ({"status": "completed"}, {"status": "completed"}),
        ({"status": "blocked", "blockers": []}, {"status": "blocked", "blockers": [],
                                                 "outcome": "none yet"}),
        (None, None),
    ],
)  # fmt: skip
def test_what_another_tool_made_of_a_task_counts(
    tmp_path: Path, told: dict[str, Any] | None, wanted: dict[str, Any] | None
) -> None:
    write(tmp_path, made(**{**EVERYTHING, "archived": False}))

    def change(item: dict[str, Any]) -> None:
        del item["task_metadata"]
        if told is not None:
            item["task_metadata"] = told

    edited(tmp_path / "tasks.jsonl", change)
    (entry,) = CODEC.read(tmp_path)
    assert entry.fields.get("task_metadata") == wanted


def test_what_another_tool_deleted_added_and_moved_counts(tmp_path: Path) -> None:
    store = [made(n, id=f"mem-{n:012x}", kind="task", metadata={"n": n}) for n in range(5)]
    write(tmp_path, *store)
    raw = (tmp_path / "tasks.jsonl").read_bytes().split(b"\n")
    archive = tmp_path / "archive" / "2026"
    archive.mkdir(parents=True)
    (archive / "tasks_2026_Q1.jsonl").write_bytes(raw[2].replace(b":false}", b":true}"))
    added = json.dumps({**json.loads(raw[0]), "id": UUID.format(9), "content": "added"}).encode()
    (tmp_path / "tasks.jsonl").write_bytes(b"\n".join([raw[4], raw[0], raw[3], added]))
    (tmp_path / "index.json").unlink()
    found = [entry.fields for entry in CODEC.read(tmp_path)]
    assert [one["id"] for one in found] == [
        store[4].id, store[0].id, store[3].id, UUID.format(9), store[2].id,
    ]  # fmt: skip
    assert [one.get("metadata") for one in found] == [
        {"n": 4}, {"n": 0}, {"n": 3}, None, {"n": 2},
    ]  # fmt: skip
    assert [one["archived"] for one in found] == [False] * 4 + [True]
    assert "created_by_session" not in found[3]


def test_without_our_files_the_rest_is_read(tmp_path: Path) -> None:
    write(tmp_path, made(**{**EVERYTHING, "archived": False}), made(1, content="x" * 6000))
    (tmp_path / "agent_memory.jsonl").unlink()
    (tmp_path / "beyond_limits.jsonl").unlink()
    (memory,) = (entry.fields for entry in CODEC.read(tmp_path))
    assert memory["content"] == EVERYTHING["content"]
    assert "metadata" not in memory


def test_a_line_of_ours_that_is_broken_is_told(tmp_path: Path) -> None:
    write(tmp_path, made(1, metadata={"n": 1}), made(2, metadata={"n": 2}))
    path = tmp_path / "agent_memory.jsonl"
    first, second = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([first[:-9], second, second, b'{"x":1}']))
    entries = list(CODEC.read(tmp_path))
    faults = [entry for entry in entries if entry.error is not None]
    memories = [entry for entry in entries if entry.error is None]
    assert [fault.place for fault in faults] == [
        f"agent_memory.jsonl: line {number}" for number in (1, 3, 4)
    ]
    assert [one.fields.get("metadata") for one in memories] == [None, {"n": 2}]


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"x" * 25_000_000 + b"\n", b"\r\n\r\n"])
def test_our_lines_are_found_after_whatever_stands_before_them(
    tmp_path: Path, before: bytes
) -> None:
    store = [made(n, metadata={"n": n}) for n in range(3)]
    write(tmp_path, *store)
    path = tmp_path / "agent_memory.jsonl"
    path.write_bytes(before + path.read_bytes().replace(b"\n", b"\r\n"))
    found = [entry.fields["metadata"] for entry in CODEC.read(tmp_path) if entry.error is None]
    assert found == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_one_file_of_a_folder_is_read_with_what_is_beside_it(tmp_path: Path) -> None:
    memory = made(**{**EVERYTHING, "archived": False})
    write(tmp_path, memory, made(1))
    (entry,) = CODEC.read(tmp_path / "tasks.jsonl")
    assert Memory(**entry.fields, agent_id="bob") == memory

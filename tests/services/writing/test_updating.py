"""Changing memories: only what is given changes, once, and against the version that was read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock
from reads import stored

from agent_memory import (
    AgentMemory,
    MemoryNotFound,
    TaskMetadata,
    TaskStatus,
    ValidationError,
)

COMPLETED = TaskMetadata(status=TaskStatus.COMPLETED, completed_at=NOW)


@pytest.fixture
def memory_id(memory: AgentMemory, clock: Clock) -> str:
    """A memory with every field set, stored an hour before the clock's time."""
    made = memory.store(
        "Old text",
        category="task",
        tags=["old"],
        kind="task",
        importance="high",
        user_id="ursula",
        run_id="run-1",
        memory_type="PROCEDURAL",
        task_metadata={"status": "in-progress"},
        metadata={"a": 1},
    )
    clock.forward(hours=1)
    return made


def test_a_user_is_taken_off_a_memory_and_its_run_stays(memory: AgentMemory) -> None:
    """A run is a conversation, and may have been with nobody: each goes on its own."""
    memory_id = memory.store("Prefer tea", user_id="ann", run_id="r1")
    changed = memory.update(memory_id, user_id=None)
    assert (changed.user_id, changed.run_id) == (None, "r1")
    assert memory.update(memory_id, run_id=None).run_id is None


@pytest.mark.parametrize(
    ("field", "given", "expected"),
    [
        ("content", "New text", "New text"),
        ("category", "decision", "decision"),
        ("tags", ["New", "new ", "other"], ["new", "other"]),
        ("tags", [], []),
        ("kind", "core", "core"),
        ("importance", "low", "low"),
        ("user_id", "victor", "victor"),
        ("user_id", None, None),
        ("run_id", "run-2", "run-2"),
        ("run_id", None, None),
        ("memory_type", "GRAPH", "GRAPH"),
        ("timestamp", "2020-02-02", datetime(2020, 2, 2, tzinfo=UTC)),
        ("task_metadata", {"status": "completed", "completed_at": NOW}, COMPLETED),
        ("task_metadata", None, None),
        ("metadata", {"b": {"c": 2}}, {"b": {"c": 2}}),
        ("metadata", {}, {}),
    ],
)
def test_one_field_changes_and_no_other(
    memory: AgentMemory, memory_id: str, root: Path, field: str, given: Any, expected: object
) -> None:
    before = stored(memory, memory_id)
    changed = memory.update(memory_id, **{field: given})
    assert getattr(changed, field) == expected
    assert changed.version == 2
    assert changed.updated_at == NOW + timedelta(hours=1)
    rest = {field, "version", "updated_at"}
    assert changed.model_dump(exclude=rest) == before.model_dump(exclude=rest)
    assert stored(memory, memory_id) == changed
    with AgentMemory("bob", root=root, read_only=True) as other:
        assert stored(other, memory_id) == changed


def test_several_fields_change_together_in_one_version(memory: AgentMemory, memory_id: str) -> None:
    changed = memory.update(memory_id, content="New", tags=["x"], importance="low")
    assert (changed.content, changed.tags, changed.importance) == ("New", ["x"], "low")
    assert changed.version == 2
    assert len(memory.history(memory_id)) == 2


def test_each_change_raises_the_version(memory: AgentMemory, memory_id: str) -> None:
    versions = [memory.update(memory_id, content=f"Text {n}").version for n in range(4)]
    assert versions == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"content": "Old text"},
        {"tags": ["OLD "]},
        {"metadata": {"a": 1}, "user_id": "ursula"},
        {"task_metadata": {"status": "in-progress", "blockers": []}},
        {"timestamp": NOW},
    ],
    ids=str,
)
def test_a_change_to_what_is_there_changes_nothing(
    memory: AgentMemory, memory_id: str, changes: dict[str, Any]
) -> None:
    before = stored(memory, memory_id)
    assert memory.update(memory_id, **changes) == before
    assert stored(memory, memory_id) == before
    assert len(memory.history(memory_id)) == 1


@pytest.mark.parametrize(
    ("old", "new"), [({"a": 1}, {"a": True}), ({"a": 1}, {"a": 1.0}), ({"a": 0}, {"a": False})]
)
def test_values_that_python_takes_for_equal_are_a_change_all_the_same(
    memory: AgentMemory, old: dict[str, Any], new: dict[str, Any]
) -> None:
    memory_id = memory.store("x", metadata=old)
    memory.update(memory_id, metadata=new)
    assert repr(stored(memory, memory_id).metadata) == repr(new)


def test_the_right_version_lets_a_change_through(memory: AgentMemory, memory_id: str) -> None:
    assert memory.update(memory_id, content="Two", if_version=1).version == 2
    assert memory.update(memory_id, content="Three", if_version=2).version == 3


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_version_that_is_not_the_current_one_refuses_the_change(
    memory: AgentMemory, memory_id: str, version: int
) -> None:
    memory.update(memory_id, content="Two")
    before = stored(memory, memory_id)
    with pytest.raises(ValidationError, match="version 2") as caught:
        memory.update(memory_id, content="Three", if_version=version)
    assert caught.value.errors()[0]["loc"] == ("if_version",)
    assert stored(memory, memory_id) == before


def test_of_two_who_read_the_same_version_the_second_is_refused(
    memory: AgentMemory, memory_id: str, root: Path
) -> None:
    with AgentMemory("bob", root=root) as other:
        read = stored(other, memory_id).version
        memory.update(memory_id, content="First", if_version=read)
        with pytest.raises(ValidationError):
            other.update(memory_id, content="Second", if_version=read)
    assert stored(memory, memory_id).content == "First"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"content": ""}, "content"),
        ({"content": None}, "content"),
        ({"content": "a\x00"}, "content"),
        ({"category": "unheard-of"}, "category"),
        ({"category": None}, "category"),
        ({"tags": "x"}, "tags"),
        ({"tags": None}, "tags"),
        ({"kind": "eternal"}, "kind"),
        ({"importance": None}, "importance"),
        ({"user_id": ""}, "user_id"),
        ({"memory_type": "x"}, "memory_type"),
        ({"timestamp": None}, "timestamp"),
        ({"timestamp": "soon"}, "timestamp"),
        ({"task_metadata": {"status": "x"}}, "task_metadata"),
        ({"metadata": {"x": float("inf")}}, "metadata"),
        ({"metadata": None}, "metadata"),
        # What nobody may change, and what there is not.
        ({"id": "m2"}, "id"),
        ({"session_id": "s2"}, "session_id"),
        ({"version": 9}, "version"),
        ({"access_count": 9}, "access_count"),
        ({"importence": "low"}, "importence"),
        ({"content; DROP TABLE memories": "x"}, "content; DROP TABLE memories"),
    ],
)
def test_a_refused_change_is_named_and_changes_nothing(
    memory: AgentMemory, memory_id: str, changes: dict[str, Any], field: str
) -> None:
    before = stored(memory, memory_id)
    with pytest.raises(ValidationError) as caught:
        memory.update(memory_id, **{"run_id": "run-2", **changes})
    assert {fault["loc"][0] for fault in caught.value.errors()} == {field}
    assert stored(memory, memory_id) == before
    assert len(memory.history(memory_id)) == 1


def test_searches_find_the_new_text_and_tags_and_date_and_no_longer_the_old(
    memory: AgentMemory, memory_id: str
) -> None:
    memory.update(memory_id, content="Fresh wording", tags=["modern"], timestamp="1999-03-01")
    for query in ("wording", "modern", "March 1999"):
        assert [hit.memory.id for hit in memory.search(query)] == [memory_id], query
    for query in ("text", "old", "January 2026"):
        assert len(memory.search(query)) == 0, query
    assert memory.count(filters={"tags": ["modern"]}) == 1
    assert memory.count(filters={"tags": ["old"]}) == 0


def test_a_change_leaves_the_access_count_alone(memory: AgentMemory, memory_id: str) -> None:
    assert len(memory.search("text")) == 1
    memory.info()
    changed = memory.update(memory_id, importance="low")
    assert (changed.access_count, changed.version) == (1, 2)
    assert changed.last_accessed == NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    "verb",
    [
        lambda memory, of: memory.update(of, content="x"),
        lambda memory, of: memory.update(of),
        lambda memory, of: memory.delete(of),
        lambda memory, of: memory.promote(of),
        lambda memory, of: memory.demote(of),
    ],
    ids=["update", "update of nothing", "delete", "promote", "demote"],
)
@pytest.mark.parametrize("memory_id", ["mem-000000000000", "a\x00b", "\ud800"], ids=ascii)
def test_changing_what_is_not_there_is_refused(
    memory: AgentMemory, verb: Callable[[AgentMemory, str], object], memory_id: str
) -> None:
    memory.store("something")
    with pytest.raises(MemoryNotFound):
        verb(memory, memory_id)
    assert [entry.event for entry in memory.history()] == ["ADD"]

"""What became of each memory: every change, by whom and when, with the old and the new values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import NOW, Clock, Visitor

from agent_memory import AgentMemory, MemoryNotFound, ValidationError


def test_storing_is_recorded_with_all_values(memory: AgentMemory) -> None:
    memory_id = memory.store("Prefer tea", category="preference", session_id="session-9")
    (entry,) = memory.history(memory_id)
    assert (entry.memory_id, entry.event) == (memory_id, "ADD")
    assert (entry.changed_at, entry.session_id) == (NOW, "session-9")
    assert entry.old_values is None
    assert entry.new_values == {
        "content": "Prefer tea",
        "category": "preference",
        "tags": [],
        "kind": "learning",
        "importance": "medium",
        "memory_type": "STANDARD",
        "timestamp": "2026-01-30T16:00:00.000000Z",
        "created_by_session": "session-9",
        "archived": False,
        "metadata": {},
    }


def test_a_memory_that_happened_long_ago_is_recorded_at_the_time_of_storing(
    memory: AgentMemory,
) -> None:
    (entry,) = memory.history(memory.store("x", timestamp="1999-01-01"))
    assert entry.changed_at == NOW


def test_an_update_is_recorded_with_the_changed_values_only(
    memory: AgentMemory, clock: Clock, root: Path
) -> None:
    memory_id = memory.store("Prefer tea", importance="low", user_id="ursula")
    clock.forward(days=2)
    with AgentMemory("bob", root=root, clock=clock, session_id="session-2") as other:
        other.update(memory_id, content="Prefer coffee", importance="low", user_id=None)
    newest, _ = memory.history(memory_id)
    assert newest.event == "UPDATE"
    assert newest.changed_at == NOW + timedelta(days=2)
    assert newest.session_id == "session-2"
    assert newest.old_values == {"content": "Prefer tea", "user_id": "ursula"}
    assert newest.new_values == {"content": "Prefer coffee"}


def test_a_deletion_is_recorded_with_all_that_is_gone_and_the_history_stays(
    memory: AgentMemory, clock: Clock, root: Path
) -> None:
    memory_id = memory.store("Prefer tea", tags=["drink"])
    memory.update(memory_id, content="Prefer coffee")
    assert len(memory.search("coffee")) == 1
    clock.forward(minutes=5)
    memory.delete(memory_id)
    with AgentMemory("bob", root=root) as other:
        entries = other.history(memory_id)
    assert [entry.event for entry in entries] == ["DELETE", "UPDATE", "ADD"]
    deletion = entries[0]
    assert deletion.changed_at == NOW + timedelta(minutes=5)
    assert deletion.session_id == "session-1"
    assert deletion.new_values is None
    assert deletion.old_values is not None
    assert deletion.old_values["content"] == "Prefer coffee"
    assert deletion.old_values["tags"] == ["drink"]
    assert deletion.old_values["version"] == 2
    assert deletion.old_values["access_count"] == 1
    assert deletion.old_values["last_accessed"] == "2026-01-30T16:00:00.000000Z"


def test_a_memory_stored_again_under_its_old_id_goes_on_in_the_same_history(
    memory: AgentMemory,
) -> None:
    memory.store("first", id="m1")
    memory.delete("m1")
    memory.store("second", id="m1")
    assert [entry.event for entry in memory.history("m1")] == ["ADD", "DELETE", "ADD"]


def test_accesses_and_the_scratchpad_are_no_changes(memory: AgentMemory) -> None:
    memory_id = memory.store("Prefer tea")
    for _ in range(4):
        assert len(memory.search("tea")) == 1
    memory.demote(memory_id)
    memory.promote(memory_id)
    assert memory.info().stats.total_queries == 4
    found = memory.get(memory_id)
    assert found is not None
    assert (found.access_count, found.version, found.updated_at) == (4, 1, NOW)
    assert [entry.event for entry in memory.history(memory_id)] == ["ADD"]


def test_lists_and_mappings_come_back_as_such(memory: AgentMemory) -> None:
    memory_id = memory.store("x", tags=["a"], metadata={"n": [1, {"ü": None}], "gone": None})
    memory.update(
        memory_id, tags=["b", "c"], metadata={"m": True}, task_metadata={"status": "blocked"}
    )
    memory.update(memory_id, task_metadata=None)
    last, middle, first = memory.history(memory_id)
    assert first.new_values is not None
    assert first.new_values["metadata"] == {"n": [1, {"ü": None}], "gone": None}
    assert middle.old_values == {
        "tags": ["a"], "metadata": {"n": [1, {"ü": None}], "gone": None},
    }  # fmt: skip
    assert middle.new_values == {
        "tags": ["b", "c"], "metadata": {"m": True}, "task_metadata": {"status": "blocked"},
    }  # fmt: skip
    assert last.old_values == {"task_metadata": {"status": "blocked"}}
    assert last.new_values == {}


@pytest.mark.parametrize("content", ['it\'s "quoted"', "line\nbreak", "数据库 😀", "null", "{}"])
def test_any_text_comes_back_as_it_was(memory: AgentMemory, content: str) -> None:
    memory_id = memory.store(content)
    memory.update(memory_id, content="other")
    newest = memory.history(memory_id)[0]
    assert newest.old_values == {"content": content}


# Order and limit ----------------------------------------------------------------------------------


def test_the_history_of_all_has_the_newest_first_and_ends_at_the_limit(
    memory: AgentMemory, clock: Clock
) -> None:
    first = memory.store("first")
    second = memory.store("second")
    clock.forward(days=-9)  # the order is that of the changes, whatever the clock said
    memory.update(first, content="first again")
    memory.delete(second)
    entries = memory.history()
    assert [(entry.event, entry.memory_id) for entry in entries] == [
        ("DELETE", second), ("UPDATE", first), ("ADD", second), ("ADD", first),
    ]  # fmt: skip
    assert [entry.change_id for entry in entries] == [4, 3, 2, 1]
    assert memory.history(limit=2) == entries[:2]
    assert memory.history(first, limit=1) == [entries[1]]


def test_without_a_limit_it_ends_at_100(memory: AgentMemory) -> None:
    memory.store_many({"content": f"text {n}"} for n in range(120))
    assert len(memory.history()) == 100
    assert len(memory.history(limit=120)) == 120


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_1_is_refused_as_for_the_newest_memories(
    memory: AgentMemory, limit: int
) -> None:
    memory.store("x")
    with pytest.raises(ValidationError) as caught:
        memory.history(limit=limit)
    assert caught.value.errors()[0]["loc"] == ("limit",)


@pytest.mark.parametrize("memory_id", ["mem-000000000000", "", "\ud800"], ids=ascii)
def test_an_id_that_never_was_has_no_history(memory: AgentMemory, memory_id: str) -> None:
    memory.store("x")
    with pytest.raises(MemoryNotFound):
        memory.history(memory_id)


# Changes by other programs ------------------------------------------------------------------------


def test_a_change_by_another_program_is_recorded_without_a_session(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory_id = memory.store("Prefer tea", tags=["drink"])
    visitor(memory.path, "UPDATE memories SET content = 'Prefer coffee', tags = '[\"cup\"]'")
    newest, added = memory.history(memory_id)
    assert (newest.event, newest.session_id) == ("UPDATE", None)
    assert newest.old_values == {"content": "Prefer tea", "tags": ["drink"]}
    assert newest.new_values == {"content": "Prefer coffee", "tags": ["cup"]}
    # Another program knows nothing of the store's clock: it is the real time.
    assert abs(datetime.now(UTC) - newest.changed_at) < timedelta(days=1)
    assert (added.event, added.session_id) == ("ADD", "session-1")
    changed = memory.get(memory_id)
    assert changed is not None
    assert changed.version == 2
    assert changed.updated_at == newest.changed_at


def test_an_update_that_another_program_overtook_is_refused(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory_id = memory.store("Prefer tea")
    visitor(memory.path, "UPDATE memories SET importance = 'high'")
    with pytest.raises(ValidationError, match="version 2"):
        memory.update(memory_id, content="Prefer coffee", if_version=1)
    assert memory.update(memory_id, content="Prefer coffee", if_version=2).version == 3


def test_the_next_change_by_the_library_is_signed_and_the_visitors_is_not(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory_id = memory.store("Prefer tea")
    visitor(memory.path, "UPDATE memories SET importance = 'high'")
    memory.update(memory_id, importance="low")
    sessions = [entry.session_id for entry in memory.history(memory_id)]
    assert sessions == ["session-1", None, "session-1"]


def test_what_another_program_writes_without_changing_anything_is_not_recorded(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory_id = memory.store("Prefer tea")
    visitor(memory.path, "UPDATE memories SET content = content, importance = 'medium'")
    visitor(memory.path, "UPDATE memories SET access_count = 5")
    assert [entry.event for entry in memory.history(memory_id)] == ["ADD"]
    found = memory.get(memory_id)
    assert found is not None
    assert found.version == 1


def test_what_another_program_adds_and_deletes_is_recorded(
    memory: AgentMemory, visitor: Visitor
) -> None:
    gone = memory.store("Prefer tea")
    visitor(
        memory.path,
        f"DELETE FROM memories WHERE id = '{gone}';;"
        "INSERT INTO memories (id, content) VALUES ('by-hand', 'Prefer milk')",
    )
    added, deleted, _ = memory.history()
    assert (added.event, added.memory_id, added.session_id) == ("ADD", "by-hand", "sqlite3")
    assert (deleted.event, deleted.memory_id, deleted.session_id) == ("DELETE", gone, None)
    assert deleted.old_values is not None
    assert deleted.old_values["content"] == "Prefer tea"


def test_archiving_by_another_program_is_a_change(memory: AgentMemory, visitor: Visitor) -> None:
    memory_id = memory.store("Prefer tea")
    visitor(memory.path, "UPDATE memories SET archived = 1")
    newest = memory.history(memory_id)[0]
    assert newest.old_values == {"archived": False}
    assert newest.new_values == {"archived": True}


def test_json_that_another_program_edits_with_sql_functions_is_recorded_as_json(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory.store("Prefer tea", id="first", tags=["a"], metadata={"n": 1})
    visitor(
        memory.path,
        "UPDATE memories SET metadata = json_set(metadata, '$.gone', NULL),"
        " tags = json_insert(tags, '$[#]', 'b');;"
        "INSERT INTO memories (id, content, tags, metadata) VALUES ('second', 'Prefer milk',"
        " json_array('c'), json_object('k', NULL))",
    )
    newest = memory.history("first")[0]
    assert newest.old_values == {"tags": ["a"], "metadata": {"n": 1}}
    assert newest.new_values == {"tags": ["a", "b"], "metadata": {"n": 1, "gone": None}}
    (added,) = memory.history("second")
    assert added.new_values is not None
    assert (added.new_values["tags"], added.new_values["metadata"]) == (["c"], {"k": None})


def test_a_history_goes_on_behind_a_change_though_others_are_made(memory: AgentMemory) -> None:
    for number in range(5):
        memory.store(f"fact {number}")
    seen = [entry.change_id for entry in memory.history(limit=2)]
    memory.store("stored meanwhile")
    while page := memory.history(limit=2, before=seen[-1]):
        seen += [entry.change_id for entry in page]
    assert seen == [5, 4, 3, 2, 1]
    memory.update(memory.list_recent(1)[0].id, content="changed")
    own = memory.history(memory.list_recent(1)[0].id)
    assert memory.history(own[0].memory_id, before=own[0].change_id) == own[1:]
    memory.delete(own[0].memory_id)
    assert memory.history(own[0].memory_id, before=own[-1].change_id) == []
    with pytest.raises(MemoryNotFound):
        memory.history("mem-000000000000", before=5)
    with pytest.raises(ValidationError, match="before"):
        memory.history(before=0)

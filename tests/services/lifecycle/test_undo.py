"""Undo: of the last that was done, of a given change, of an undo; and what it refuses."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory, MemoryNotFound, RejectedContent, ValidationError


def test_a_stored_memory_is_taken_back_and_stored_again(memory: AgentMemory) -> None:
    memory_id = memory.store("Prefer PostgreSQL", tags=["database"])
    done = memory.undo()
    assert (done.verb, done.memory_ids) == ("ADD", [memory_id])
    assert memory.get(memory_id) is None
    assert len(memory.search("PostgreSQL")) == 0
    memory.undo()
    back = memory.get(memory_id)
    assert back is not None
    assert (back.content, back.tags) == ("Prefer PostgreSQL", ["database"])
    assert memory.search("PostgreSQL")[0].memory.id == memory_id


def test_an_update_is_undone_field_by_field(memory: AgentMemory) -> None:
    memory_id = memory.store("Prefer MySQL", category="preference", user_id="ann")
    before = memory.get(memory_id)
    assert before is not None
    memory.update(memory_id, content="Prefer PostgreSQL", user_id=None, metadata={"sure": True})
    assert memory.undo().verb == "UPDATE"
    after = memory.get(memory_id)
    assert after is not None
    assert after.version == 3
    same = {"version", "updated_at"}
    assert after.model_dump(exclude=same) == before.model_dump(exclude=same)


def test_a_deleted_memory_comes_back_whole(memory: AgentMemory) -> None:
    first = memory.store("the first of two", session_id="s")
    second = memory.store(
        "the second",
        session_id="s",
        kind="task",
        importance="high",
        run_id="r",
        metadata={"a": [1, None, {"b": "ü"}]},
        task_metadata={"status": "blocked", "blockers": ["a key"]},
    )
    memory.promote(second)
    for _ in range(4):
        memory.search("second")
    memory.info()
    before = memory.get(second)
    memory.delete(second)
    assert [it.id for it in memory.scratchpad().memories] == [first]
    memory.undo()
    after = memory.get(second)
    assert before is not None
    assert after is not None
    same = {"version", "updated_at"}
    assert after.model_dump(exclude=same) == before.model_dump(exclude=same)
    assert after.access_count >= 4
    assert {it.id for it in memory.scratchpad().memories} == {first, second}
    # It has its old place among the others of its session, and is still the one promoted by hand.
    assert [it.id for it in memory.list_recent(2)] == [second, first]
    assert memory.promote(second).promoted is False


@pytest.mark.parametrize("verb", ["store_many", "archive", "import"])
def test_what_one_verb_did_to_several_is_undone_as_one(
    memory: AgentMemory, tmp_path: Path, verb: str
) -> None:
    kept = memory.store("was there before")
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"content": "one"}\n{"content": "two"}\n{"content": "three"}\n')
    if verb == "import":
        ids = [kept]
        assert memory.import_(lines).new == 3
    else:
        ids = memory.store_many([{"content": "one"}, {"content": "two"}])
        if verb == "archive":
            memory.archive(ids)
            assert memory.count() == 1
    done = memory.undo()
    assert done.verb == verb
    if verb == "archive":
        assert memory.count() == 3
    else:
        assert [it.id for it in memory.list_recent()] == [kept]
    memory.undo()
    assert memory.count() == {"store_many": 3, "archive": 1, "import": 4}[verb]


def test_a_given_change_is_undone_and_later_ones_of_others_stay(memory: AgentMemory) -> None:
    first = memory.store("the first")
    other = memory.store("the other")
    memory.update(first, content="the first, changed")
    memory.update(other, content="the other, changed")
    change = next(it for it in memory.history(first) if it.event == "UPDATE")
    memory.undo(change.change_id)
    found = {it.id: it.content for it in memory.list_recent()}
    assert found == {first: "the first", other: "the other, changed"}


def test_a_change_is_undone_with_all_that_the_same_verb_did(memory: AgentMemory) -> None:
    first, second, third = (memory.store(f"fact {number}") for number in range(3))
    kept = memory.merge(first, [second])
    assert (kept.id, memory.get(second)) == (first, None)
    memory.delete(third)  # what was done since stays
    (change,) = memory.history(second, limit=1)
    assert memory.undo(change.change_id, whole=True).verb == "merge"
    assert {row.id for row in memory.list_recent()} == {first, second}
    (alone,) = memory.history(third, limit=1)
    memory.undo(alone.change_id, whole=True)
    assert {row.id for row in memory.list_recent()} == {first, second, third}


def test_a_merge_takes_over_what_the_others_have_beyond(memory: AgentMemory) -> None:
    first = memory.store("one", tags=["a"], metadata={"by": "Ann", "n": 1})
    second = memory.store("two", tags=["b"], importance="high", metadata={"n": 2, "m": 3})
    third = memory.store("three", tags=["a", "c"])
    kept = memory.merge(first, [second, third])
    assert (kept.content, kept.tags, kept.importance) == ("one", ["a", "b", "c"], "high")
    assert kept.metadata == {"by": "Ann", "n": 1, "m": 3}
    assert kept == memory.get(first)
    memory.undo()
    restored = [row for row in map(memory.get, (first, second, third)) if row is not None]
    assert [row.tags for row in restored] == [["a"], ["b"], ["a", "c"]]
    assert restored[0].importance == "medium"


@pytest.mark.parametrize("others", [[], ["mem-1"], ["mem-2", "mem-1"]])
def test_a_merge_needs_others(memory: AgentMemory, others: list[str]) -> None:
    memory.store("one", id="mem-1")
    memory.store("two", id="mem-2")
    with pytest.raises(ValidationError, match="must be the ids of other memories"):
        memory.merge("mem-1", others)
    with pytest.raises(MemoryNotFound, match="mem-3"):
        memory.merge("mem-1", ["mem-2", "mem-3"])
    assert memory.count() == 2


@pytest.mark.parametrize("owner", [{"user_id": "ben"}, {"user_id": "ann", "run_id": "work"}, {}])
def test_a_merge_gives_nobody_what_is_anothers(memory: AgentMemory, owner: dict[str, Any]) -> None:
    mine = memory.store("I live in Oslo", user_id="ann", id="mine")
    same = memory.store("I live in Oslo", user_id="ann", id="same", on_duplicate="keep")
    other = memory.store("I live in Oslo", id="other", tags=["home"], **owner)
    for keep, gone in ((mine, other), (other, mine)):
        with pytest.raises(ValidationError, match=f"{gone} has the .*_id .*, {keep} has "):
            memory.merge(keep, [same, gone] if keep == mine else [gone])
    assert memory.count() == 3
    memory.update(other, user_id="ann", run_id=None)
    assert memory.merge(mine, [same, other]).tags == ["home"]


def test_changes_of_other_fields_do_not_stand_in_the_way(memory: AgentMemory) -> None:
    memory_id = memory.store("text", tags=["old"])
    memory.update(memory_id, tags=["new"])
    change = memory.history(memory_id)[0]
    memory.update(memory_id, content="other text")
    memory.undo(change.change_id)
    after = memory.get(memory_id)
    assert after is not None
    assert (after.content, after.tags) == ("other text", ["old"])


def test_what_a_later_change_builds_upon_is_refused(memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    memory.update(memory_id, content="two")
    memory.update(memory_id, content="three")
    added, first, last = reversed(memory.history(memory_id))
    before = memory.history()
    for change in (added, first):
        with pytest.raises(
            ValidationError, match=f"by change {first.change_id + (change is first)}"
        ):
            memory.undo(change.change_id)
    assert memory.history() == before
    memory.undo(last.change_id)
    after = memory.get(memory_id)
    assert after is not None
    assert after.content == "two"


def test_an_older_change_is_undone_after_the_newer_one_was(memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    for content in ("two", "three", "four"):
        memory.update(memory_id, content=content, metadata={"is": [content, None]})
    added, second, third, fourth = (it.change_id for it in reversed(memory.history(memory_id)))
    for newest, left in ((fourth, "three"), (third, "two"), (second, "one")):
        memory.undo(newest)
        assert [it.content for it in memory.list_recent()] == [left]
    memory.undo(added)
    assert memory.get(memory_id) is None
    memory.undo()
    assert [it.content for it in memory.list_recent()] == ["one"]


def test_a_change_that_was_done_again_stands_in_the_way(memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    memory.update(memory_id, content="two", tags=["b"])
    older = memory.history(memory_id)[0]
    memory.delete(memory_id)
    memory.undo()  # it is there again
    memory.update(memory_id, content="three")
    memory.undo()
    memory.undo()
    redo = memory.history(memory_id)[0]
    with pytest.raises(ValidationError, match=f"by change {redo.change_id} .*undo that one first"):
        memory.undo(older.change_id)
    memory.undo(redo.change_id)
    memory.undo(older.change_id)
    after = memory.get(memory_id)
    assert after is not None
    assert (after.content, after.tags) == ("one", [])
    with pytest.raises(ValidationError, match="already as it was before"):
        memory.undo(older.change_id)


def test_advice_on_what_to_undo_first_leads_there(memory: AgentMemory) -> None:
    """The change that is named can be undone, or names one that can."""
    memory_id = memory.store("one")
    memory.update(memory_id, content="two")
    wanted = memory.history(memory_id)[0].change_id
    memory.update(memory_id, content="three", tags=["b"])
    memory.update(memory_id, tags=["c"])
    memory.update(memory_id, content="two")
    memory.update(memory_id, content="four")
    to_undo = [wanted]
    for _ in range(8):
        try:
            memory.undo(to_undo[-1])
            to_undo.pop()
        except ValidationError as refusal:
            to_undo.append(int(str(refusal).split("by change ")[1].split()[0]))
        if not to_undo:
            break
    after = memory.get(memory_id)
    assert after is not None
    assert (to_undo, after.content, after.tags) == ([], "one", ["c"])


def test_a_change_that_was_taken_back_is_not_named_as_what_to_undo_first(
    memory: AgentMemory,
) -> None:
    memory_id = memory.store("one")
    memory.update(memory_id, content="two")
    memory.update(memory_id, tags=["b"])
    tags, content, added = (entry.change_id for entry in memory.history(memory_id))
    memory.undo(content)
    with pytest.raises(ValidationError, match=f"by change {tags} .*undo that one first"):
        memory.undo(added)
    memory.undo(tags)
    memory.undo(added)
    assert memory.get(memory_id) is None


def test_what_one_verb_did_is_undone_though_a_part_of_it_was(memory: AgentMemory) -> None:
    first, second, third = memory.store_many({"content": f"fact {number}"} for number in range(3))
    change = memory.history(first)[0]
    memory.delete(second)
    memory.update(third, content="fact 3")
    with pytest.raises(ValidationError, match=third):
        memory.undo(change.change_id, whole=True)
    memory.undo()
    assert memory.undo(change.change_id, whole=True).memory_ids == [first, third]
    assert memory.count() == 0
    with pytest.raises(ValidationError, match="already as it was before"):
        memory.undo(change.change_id, whole=True)
    memory.undo()
    assert {it.id for it in memory.list_recent()} == {first, third}


def test_nothing_to_undo_says_so(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError, match="nothing has been changed yet"):
        memory.undo()
    with pytest.raises(ValidationError, match="no such change"):
        memory.undo(17)
    with pytest.raises(ValidationError, match="whole number"):
        memory.undo(0)


def test_after_an_erasure_no_older_change_is_taken_for_the_last(memory: AgentMemory) -> None:
    kept = memory.store("this stays")
    memory.erase(memory.store("a secret that goes"))
    with pytest.raises(ValidationError, match="`erase`"):
        memory.undo()
    assert memory.get(kept) is not None
    memory.update(kept, content="this stays, changed")
    memory.undo()
    after = memory.get(kept)
    assert after is not None
    assert after.content == "this stays"


def test_an_undo_brings_no_rejected_value_back(memory: AgentMemory) -> None:
    memory_id = memory.store("the password is hunter2")
    memory.delete(memory_id)
    memory.reject("hunter2")
    with pytest.raises(RejectedContent):
        memory.undo()
    assert memory.get(memory_id) is None


def test_a_change_by_another_program_is_undone(
    memory: AgentMemory, visitor: Callable[[Path, str], str]
) -> None:
    memory_id = memory.store("as the library stored it")
    visitor(memory.path, "UPDATE memories SET content = 'as somebody wrote it'")
    assert memory.search("somebody")[0].memory.id == memory_id
    memory.undo()
    assert memory.search("library stored")[0].memory.content == "as the library stored it"


def test_a_place_in_the_scratchpad_that_another_program_made_up_is_left_out(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory_id = memory.store("comes back")
        memory.delete(memory_id)
    with closing(sqlite3.connect(memory.path)) as connection, connection:
        connection.execute(
            "UPDATE history SET old_values = json_set(old_values, '$.scratchpad', 'rumour 2026')"
            " WHERE event = 'DELETE'"
        )
    with AgentMemory("bob", root=root) as memory:
        memory.undo()
        assert memory.get(memory_id) is not None
        assert not memory.scratchpad().memories


@pytest.mark.parametrize("is_changed", [False, True], ids=["inserted", "changed"])
@pytest.mark.parametrize(
    ("column", "value", "mended"),
    [
        ("content", "a\x00b", "a<00>b"),
        ("kind", "rumour", "learning"),
        ("importance", "huge", "medium"),
    ],
)
def test_what_the_constraints_refuse_comes_back_mended(
    root: Path, column: str, value: str, mended: str, is_changed: bool
) -> None:
    """Written past them by another program, it kept all before it from being undone."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("first", id="by-hand" if is_changed else "other")
    row = {"id": "by-hand", "content": "by hand"} | {column: value}
    with closing(sqlite3.connect(memory.path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        if is_changed:
            connection.execute(f"UPDATE memories SET {column} = ?", (value,))
        else:
            places = ", ".join(f":{name}" for name in row)
            connection.execute(f"INSERT INTO memories ({', '.join(row)}) VALUES ({places})", row)
    with AgentMemory("bob", root=root) as memory:
        memory.undo()
        memory.undo()
        brought_back = memory.get("by-hand")
        assert brought_back is not None
        assert getattr(brought_back, column) == mended
        assert brought_back.metadata[f"unreadable_{column}"]


def test_an_undo_is_signed(memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    memory.undo()
    newest = memory.history(memory_id)[0]
    assert (newest.event, newest.session_id) == ("DELETE", "session-1")


def test_archiving_takes_out_of_searches_and_keeps(memory: AgentMemory) -> None:
    memory_id = memory.store("an old plan")
    memory.promote(memory_id)
    (changed,) = memory.archive(memory_id)
    assert changed.archived
    assert len(memory.search("old plan")) == 0
    assert memory.search("old plan", filters={"archived": True})[0].memory.id == memory_id
    assert memory.scratchpad().memories == []
    assert memory.context() == ""
    assert memory.archive([memory_id])[0].version == changed.version  # nothing to do
    memory.unarchive([memory_id])
    assert memory.search("old plan")[0].memory.id == memory_id
    assert [it.id for it in memory.scratchpad().memories] == [memory_id]


def test_archiving_is_all_or_nothing(memory: AgentMemory) -> None:
    memory_id = memory.store("an old plan")
    with pytest.raises(MemoryNotFound):
        memory.archive([memory_id, "mem-000000000000"])
    assert memory.count() == 1


# Questions --------------------------------------------------------------------------------------


def asked(memory: AgentMemory) -> tuple[str, str]:
    """Put a memory in question by another, and return both ids."""
    memory.add("I live in Oslo.", user_id="alice")
    memory.add("I moved to Bergen.", user_id="alice")
    (review,) = memory.reviews()
    assert review.replaced_by is not None
    return review.memory_id, review.replaced_by


@pytest.mark.parametrize("gone", ["older", "newer", "both", "both, newer first"])
def test_a_question_comes_back_with_the_memories_that_it_is_about(
    memory: AgentMemory, gone: str
) -> None:
    older, newer = asked(memory)
    ids = {"older": [older], "newer": [newer], "both": [older, newer]}
    memory.delete_many(ids.get(gone, [newer, older]))
    assert memory.reviews() == []
    memory.undo()
    (review,) = memory.reviews()
    assert (review.memory_id, review.replaced_by) == (older, newer)


def test_what_is_done_again_asks_again(memory: AgentMemory) -> None:
    ids = asked(memory)
    memory.undo()
    assert memory.reviews() == []
    memory.undo()
    (review,) = memory.reviews()
    assert (review.memory_id, review.replaced_by) == ids


def test_what_was_changed_meanwhile_is_not_asked_about(memory: AgentMemory) -> None:
    older, newer = asked(memory)
    memory.delete(newer)
    (deletion,) = memory.history(newer, limit=1)
    memory.update(older, content="I live in Rome.")
    memory.undo(deletion.change_id)
    assert memory.get(newer) is not None
    assert memory.reviews() == []

"""A memory's life through the public verbs: tidied, limited, backed up, undone, erased, killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from conftest import CHECKOUT, NOW, Clock, Visitor
from places import forked
from reads import stored

from agent_memory import (
    AgentMemory,
    LimitReached,
    Memory,
    MemoryNotFound,
    MemoryStorage,
    RejectedContent,
    RetentionPolicy,
    StorageClosed,
    StorageReadOnly,
    ValidationError,
)
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import APPLICATION_ID

Verb = Callable[[AgentMemory, Path], Any]

TWO_CORE: Final = {"limits": {"core": {"max_memories": 2, "enforcement": "hard"}}}
MANY: Final = 1_000


def state(memory: AgentMemory) -> dict[str, Memory]:
    """Return all memories, archived ones too."""
    found = memory.list_recent(10_000, filters={"archived": None})
    return {it.id: it for it in found}


def reasons(memory: AgentMemory) -> list[str | None]:
    return [it.reason for it in memory.backups()]


def files(folder: Path) -> dict[str, bytes]:
    """Return what is in each file below a folder."""
    return {str(it): it.read_bytes() for it in folder.rglob("*") if it.is_file()}


def line(path: Path, **fields: object) -> Path:
    """Write one memory into a file of JSON lines."""
    path.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    return path


# Tidying ----------------------------------------------------------------------------------------


@pytest.fixture
def lived_in(memory: AgentMemory, clock: Clock) -> list[str]:
    """Make a store of a hundred days; return what the policy of document E archives of it."""
    memory.configure(retention="standard")
    memory.store("an old core fact", id="core", kind="core")
    memory.store("an old learning", id="old")
    memory.store("an old learning that matters", id="dear", importance="high")
    memory.store("an old learning that was promoted", id="promoted")
    memory.promote("promoted")
    memory.store("an old learning about walnuts", id="used")
    memory.store("an old task", id="blocked", kind="task", task_metadata={"status": "blocked"})
    memory.store("a done task", id="done", kind="task")
    clock.forward(days=10)
    memory.store("a learning of ninety days", id="ninety")
    clock.forward(days=1)
    memory.store("a learning of eighty-nine days", id="eighty-nine")
    clock.forward(days=58)
    memory.update("done", task_metadata={"status": "completed"})
    clock.forward(days=2)
    memory.store("a task done lately", id="lately", kind="task")
    memory.update("lately", task_metadata={"status": "completed"})
    clock.forward(days=28)
    assert memory.search("walnuts")[0].memory.id == "used"
    clock.forward(days=1)
    return ["old", "ninety", "done"]


def test_the_standard_policy_does_what_the_document_says(
    memory: AgentMemory, clock: Clock, lived_in: list[str]
) -> None:
    memory.info()  # writes what the search counted
    before, told = state(memory), memory.history(limit=1000)
    planned = memory.tidy(dry_run=True)
    assert [it.memory_id for it in planned.archived] == lived_in
    assert [it.reason for it in planned.archived] == [
        "not used for 100 days",
        "not used for 90 days",
        "completed 31 days ago",
    ]
    assert (planned.dry_run, planned.kept, planned.backup) == (True, [], None)
    assert (state(memory), memory.history(limit=1000), memory.backups()) == (before, told, [])

    report = memory.tidy()
    assert report.archived == planned.archived
    after = state(memory)
    assert {it.id for it in after.values() if it.archived} == set(lived_in)
    for memory_id in before.keys() - set(lived_in):
        assert after[memory_id] == before[memory_id]
    (backup,) = memory.backups()
    assert (backup.reason, backup.path, backup.memory_count) == ("tidy", report.backup, len(before))
    assert backup.path.endswith(".before-tidy.db")
    assert (memory.info().memory_count, memory.info().archived_count) == (7, 3)

    clock.forward(days=8)
    done = memory.undo()
    assert (done.verb, sorted(done.memory_ids)) == ("tidy", sorted(lived_in))
    assert [it for it in state(memory).values() if it.archived] == []
    assert memory.undo().verb == "undo"
    assert {it.id for it in state(memory).values() if it.archived} == set(lived_in)


def test_a_dry_run_knows_of_a_search_of_a_moment_ago(memory: AgentMemory, clock: Clock) -> None:
    memory.configure(retention="standard")
    memory.store("the quartz plan")
    clock.forward(days=100)
    assert len(memory.search("quartz plan")) == 1
    assert memory.tidy(dry_run=True).archived == []
    assert memory.tidy().archived == []


def test_more_learnings_than_the_document_allows_are_tidied_least_used_first(
    memory: AgentMemory, clock: Clock
) -> None:
    memory.configure(retention="standard")
    for number in range(3):
        memory.store(f"an early learning {number}", id=f"early-{number}")
        clock.forward(minutes=1)
    memory.store_many([{"content": f"a later learning {number}"} for number in range(500)])
    kept = memory.tidy()
    assert kept.archived == []
    assert len(kept.kept) == 1
    assert "3 learnings are over the limit of 500" in kept.kept[0]
    clock.forward(days=8)
    report = memory.tidy()
    assert [it.memory_id for it in report.archived] == ["early-0", "early-1", "early-2"]
    assert {it.reason for it in report.archived} == {"over the limit of 500 learnings"}
    assert memory.count() == 500


def test_without_a_policy_or_anything_to_archive_nothing_is_done(
    memory: AgentMemory, clock: Clock
) -> None:
    memory.store("an old learning")
    clock.forward(days=1000)
    (note,) = memory.tidy().kept
    assert "configure retention standard" in note
    memory.configure(retention="standard")
    assert len(memory.tidy().archived) == 1
    told = memory.history()
    assert memory.tidy().archived == []
    assert (memory.history(), reasons(memory)) == (told, ["tidy"])


def test_what_was_tidied_is_found_in_the_archive_and_stays_when_it_is_brought_back(
    memory: AgentMemory, clock: Clock
) -> None:
    memory.configure(retention="standard")
    memory_id = memory.store("the quartz plan")
    clock.forward(days=100)
    memory.tidy()
    assert len(memory.search("quartz")) == 0
    assert memory.search("quartz", filters={"archived": True})[0].memory.id == memory_id
    (back,) = memory.unarchive(memory_id)
    assert not back.archived
    assert memory.search("quartz", count_accesses=False)[0].memory.id == memory_id
    assert memory.tidy().archived == []
    clock.forward(days=90)
    assert [it.memory_id for it in memory.tidy().archived] == [memory_id]


# Settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "days"),
    [
        ("standard", 90),
        ({"archive_learnings_after_days": 5}, 5),
        (RetentionPolicy(archive_learnings_after_days=7), 7),
        (None, None),
    ],
)
def test_a_policy_is_a_name_or_an_object_and_stays_in_the_file(
    memory: AgentMemory, root: Path, given: Any, days: int | None
) -> None:
    memory.configure(retention={"archive_learnings_after_days": 1}, backups_kept=3)
    memory.configure(retention=given)
    with AgentMemory("bob", root=root, create=False) as other:
        config = other.configure()
        assert config.backups_kept == 3
        policy = config.retention
    assert (policy and policy.archive_learnings_after_days) == days
    assert (policy is None) == (given is None)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("weekly", "retention: 'weekly' is not a policy: use standard"),
        ([], "retention"),
        ({"recent_days": -1}, "retention.recent_days"),
        ({"archive_tasks_after_days": 0}, "retention.archive_tasks_after_days"),
        ({"archive_after_days": 3}, "retention.archive_after_days"),
        ({"limits": {"dream": {"max_memories": 3}}}, "retention.limits.dream"),
        ({"limits": {"core": {"max_memories": 0}}}, "retention.limits.core.max_memories"),
        ({"limits": {"core": {"enforcement": "firm"}}}, "retention.limits.core.enforcement"),
    ],
)
def test_a_policy_that_is_none_is_refused_by_the_field(
    memory: AgentMemory, given: Any, named: str
) -> None:
    memory.configure(retention="standard")
    with pytest.raises(ValidationError, match=f"^{re.escape(named)}"):
        memory.configure(retention=given)
    policy = memory.configure().retention
    assert policy is not None
    assert policy.archive_tasks_after_days == 30


@pytest.mark.parametrize("count", [-1, 1001, 1.5, "many", None])
def test_a_number_of_backups_that_is_none_is_refused(memory: AgentMemory, count: Any) -> None:
    with pytest.raises(ValidationError, match=r"^backups_kept: .*\(got "):
        memory.configure(backups_kept=count)
    assert memory.configure().backups_kept == 5


# Hard limits ------------------------------------------------------------------------------------


def _import(memory: AgentMemory, folder: Path, policy: Any = "skip", **fields: object) -> Any:
    return memory.import_(line(folder / "one.jsonl", **fields), on_conflict=policy)


WAYS_IN: Final[dict[str, Verb]] = {
    "store": lambda m, _: m.store("a third", kind="core"),
    "store_many": lambda m, _: m.store_many(
        [{"content": "a learning"}, {"content": "a third", "kind": "core"}]
    ),
    "update the kind": lambda m, _: m.update("learning", kind="core"),
    "update the archived": lambda m, _: m.update("archived", archived=False),
    "unarchive": lambda m, _: m.unarchive(["learning", "archived"]),
    "import a new one": lambda m, folder: _import(m, folder, content="a third", kind="core"),
    "import a change": lambda m, folder: _import(
        m, folder, "replace", id="learning", content="a learning", kind="core"
    ),
}


@pytest.fixture
def full(memory: AgentMemory) -> AgentMemory:
    """Fill the room that there is for core memories; a third one is archived."""
    memory.store("in the archive", id="archived", kind="core")
    memory.archive("archived")
    memory.configure(retention=TWO_CORE, backups_kept=0)
    memory.store("the first", id="first", kind="core")
    memory.store("the second", id="second", kind="core")
    memory.store("a learning", id="learning")
    return memory


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_hard_limit_is_kept_at_every_way_in(full: AgentMemory, tmp_path: Path, way: str) -> None:
    before, told = state(full), full.history()
    with pytest.raises(LimitReached, match="hard limit of 2") as refused:
        WAYS_IN[way](full, tmp_path)
    assert (state(full), full.history()) == (before, told)
    # What it says to do makes room.
    advice = re.search(r"`agent-memory archive ([^`]+)`", str(refused.value))
    assert advice is not None
    ids = shlex.split(advice[1])
    assert set(ids) == {"first", "second"}
    full.archive(ids[0])
    WAYS_IN[way](full, tmp_path)
    assert full.count(filters={"kind": "core"}) == 2


def test_a_dry_run_of_an_import_tells_of_a_hard_limit(full: AgentMemory, tmp_path: Path) -> None:
    path = line(tmp_path / "one.jsonl", content="a third", kind="core")
    report = full.import_(path, dry_run=True)
    assert (report.new, report.refused) == (0, 1)
    assert "hard limit of 2" in report.refusals[0].message


def test_what_has_no_room_is_left_out_of_an_import_that_skips(
    full: AgentMemory, tmp_path: Path
) -> None:
    path = tmp_path / "three.jsonl"
    path.write_text(
        '{"content": "one"}\n{"content": "two", "kind": "core"}\n{"content": "three"}\n'
    )
    report = full.import_(path, skip_bad=True)
    assert (report.new, report.refused) == (2, 1)
    assert "hard limit of 2" in report.refusals[0].message


def test_an_import_that_has_no_room_names_the_line(full: AgentMemory, tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text('{"content": "one"}\n{"content": "two", "kind": "core"}\n')
    with pytest.raises(LimitReached, match="line 2"):
        full.import_(path)


def test_a_soft_limit_refuses_nothing(memory: AgentMemory, tmp_path: Path) -> None:
    soft = {"core": {"max_memories": 1}, "learning": {"max_memories": 1, "max_bytes": 5}}
    memory.configure(retention={"limits": soft})
    memory.store("the first", id="first", kind="core")
    memory.store("a learning", id="learning")
    memory.store("in the archive", id="archived", kind="core")
    memory.archive("archived")
    for way in WAYS_IN.values():
        way(memory, tmp_path)
    assert memory.count() == 7


# Backups ----------------------------------------------------------------------------------------

DESTRUCTIVE: Final[dict[str, Verb]] = {
    "tidy": lambda m, _: m.tidy(),
    "import": lambda m, folder: _import(m, folder, "replace", id="old", content="replaced"),
    "erase": lambda m, _: m.erase("old"),
    "migration": lambda m, _: m.migrate(embedder="wordllama"),
}


@pytest.fixture
def old(memory: AgentMemory, clock: Clock) -> AgentMemory:
    """Make a store that has something to tidy, to replace and to erase."""
    memory.configure(retention="standard")
    memory.store("the quartz plan", id="old")
    clock.forward(days=100)
    return memory


@pytest.mark.parametrize("reason", DESTRUCTIVE)
def test_what_was_there_before_something_destructive_can_be_restored(
    old: AgentMemory, tmp_path: Path, reason: str
) -> None:
    before = stored(old, "old")
    done = DESTRUCTIVE[reason](old, tmp_path)
    (backup,) = old.backups()
    assert (backup.reason, backup.memory_count, backup.problem) == (reason, 1, None)
    assert reason not in ("tidy", "import") or done.backup == backup.path
    report = AgentMemory.restore(old.path, "latest")
    if reason == "erase":  # a restore leaves out what was erased; an import can be asked for it
        assert (report.memory_count, report.erased, old.get("old")) == (0, 1, None)
        assert old.import_(backup.path).erased == 1
        assert old.import_(backup.path, include_erased=True).new == 1
        assert stored(old, "old") == before
        return
    assert stored(old, "old") == before
    assert old.search("quartz plan", count_accesses=False)[0].memory.id == "old"
    (change,) = old.history()
    with pytest.raises(ValidationError, match="`restore`"):
        old.undo()  # not of what was the last before the backup
    assert old.undo(change.change_id).verb == "ADD"


def test_nothing_is_backed_up_before_what_destroys_nothing(
    memory: AgentMemory, tmp_path: Path
) -> None:
    memory.store("the quartz plan", id="old")
    memory.tidy()
    _import(memory, tmp_path, "skip", id="old", content="something else")
    _import(memory, tmp_path, "keep-both", id="old", content="something else")
    memory.import_(tmp_path / "one.jsonl", on_conflict="replace", dry_run=True)
    with pytest.raises(MemoryNotFound):
        memory.erase("mem-000000000000")
    with pytest.raises(ValidationError, match="nothing was erased"):
        memory.erase(filters={"category": "decision"})
    assert memory.backups() == []


def test_the_newest_backups_are_kept_as_many_as_the_setting_says(
    old: AgentMemory, tmp_path: Path, clock: Clock
) -> None:
    by_hand = old.backup()
    for number in range(7):
        clock.forward(hours=1)
        _import(old, tmp_path, "replace", id="old", content=f"replaced {number}")
    assert reasons(old) == ["import"] * 5 + [None]
    old.configure(backups_kept=2)
    clock.forward(hours=1)
    _import(old, tmp_path, "replace", id="old", content="replaced")
    assert reasons(old) == ["import"] * 2 + [None]
    old.configure(backups_kept=0)
    clock.forward(days=200)
    assert old.tidy().backup is None
    assert _import(old, tmp_path, "replace", id="old", content="again").backup is None
    listed = old.backups()
    assert [it.reason for it in listed] == ["import", "import", None]
    assert listed[-1].path == str(by_hand)


@pytest.mark.parametrize("how", ["name", "latest", "path"])
def test_an_open_memory_goes_on_with_what_was_restored(
    memory: AgentMemory, clock: Clock, how: str
) -> None:
    kept = memory.store("the walnut plan")
    memory.update(kept, content="the quartz plan")
    backup = memory.backup()
    clock.forward(days=1)
    memory.update(kept, content="the basalt plan")
    memory.store("the marble plan")
    AgentMemory.restore(memory.path, {"name": backup.name, "latest": "latest"}.get(how, backup))
    assert memory.search("plan")[0].memory.content == "the quartz plan"
    assert [it.event for it in memory.history()] == ["UPDATE", "ADD"]
    assert memory.undo(memory.history()[0].change_id).memory_ids == [kept]
    assert stored(memory, kept).content == "the walnut plan"
    assert memory.get(kept, as_of=NOW + timedelta(days=1)) == stored(memory, kept)


# The archive ------------------------------------------------------------------------------------


def test_archived_memories_are_where_they_are_asked_for(memory: AgentMemory, clock: Clock) -> None:
    plans = [
        {"content": f"plan {kind} {importance}", "kind": kind, "importance": importance}
        for kind in ("core", "learning", "task")
        for importance in ("high", "low")
    ]
    ids = memory.store_many(plans)
    clock.forward(hours=1)
    memory.archive(ids[:4])
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 2),
        ({"archived": True}, 4),
        ({"archived": None}, 6),
        ({"kind": "core"}, 0),
        ({"kind": "core", "archived": True}, 2),
        ({"kind": "learning", "importance": "high", "archived": True}, 1),
        ({"importance": "low"}, 1),
        ({"importance": "low", "archived": None}, 3),
    ]
    for filters, count in cases:
        assert memory.count(filters=filters) == count
        assert len(memory.list_recent(filters=filters)) == count
        assert len(memory.search("plan", 10, filters=filters)) == count
    # Before that none was in the archive, and afterwards these were.
    assert len(memory.list_recent(as_of=NOW)) == 6
    assert memory.list_recent(filters={"archived": True}, as_of=NOW) == []
    assert len(memory.list_recent(filters={"archived": True}, as_of=clock.now)) == 4
    first = memory.history(ids[0])[0]
    assert (first.event, first.old_values, first.new_values) == (
        "UPDATE", {"archived": False}, {"archived": True},
    )  # fmt: skip
    assert first.changed_at == NOW + timedelta(hours=1)


def test_what_was_undone_is_known_to_be_there(memory: AgentMemory) -> None:
    memory_id = memory.store("Prefer PostgreSQL for all new projects", tags=["database"])
    memory.delete(memory_id)
    memory.undo()
    assert [it.memory_id for it in memory.duplicates("prefer postgresql for all new projects")] == [
        memory_id
    ]
    assert memory.search("postgresql", tags=["database"])[0].memory.id == memory_id
    memory.update(memory_id, content="Prefer SQLite for all new projects", tags=["file"])
    memory.undo()
    found = memory.duplicates("Prefer PostgreSQL for all new projects")
    assert [it.grade for it in found] == ["exact"]
    assert len(memory.search("projects", tags=["file"])) == 0
    assert memory.search("projects", tags=["database"])[0].memory.id == memory_id


# The past ---------------------------------------------------------------------------------------


def test_the_past_of_what_came_from_another_store(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    memory.store("deleted before the move", id="deleted")
    clock.forward(days=1)
    memory.delete("deleted")
    memory.store("kept through the move", id="kept")
    memory.export(tmp_path / "all.yaml")
    clock.forward(days=1)
    with AgentMemory("bob", root=tmp_path / "other", clock=clock) as other:
        clock.now = NOW
        other.store("here all the time", id="own")
        clock.forward(days=2)
        other.import_(tmp_path / "all.yaml")
        assert {it.id for it in other.list_recent(as_of=clock.now)} == {"own", "kept"}
        assert {it.id for it in other.list_recent(as_of=NOW)} == {"own", "deleted"}
        assert other.search("before the move", as_of=NOW)[0].memory.id == "deleted"
        assert other.check().problems == []


def test_a_clock_that_was_put_back_confuses_nothing(memory: AgentMemory, clock: Clock) -> None:
    memory.configure(retention="standard")
    first = memory.store("the first text")
    clock.forward(days=-300)
    memory.update(first, content="the second text")
    second = memory.store("stored in the past")
    memory.archive(second)
    assert memory.tidy().archived == []
    clock.forward(days=-1)
    memory.erase(memory.store("erased in the past"))
    memory.delete(second)
    assert [it.event for it in memory.history(second)] == ["DELETE", "UPDATE", "ADD"]
    assert memory.undo().verb == "DELETE"
    assert stored(memory, second).archived
    change = next(it for it in memory.history(first) if it.event == "UPDATE")
    memory.undo(change.change_id)
    assert stored(memory, first).content == "the first text"
    for moment in (clock.now, NOW - timedelta(days=150), NOW):
        listed = {it.id: it for it in memory.list_recent(filters={"archived": None}, as_of=moment)}
        single = {it: memory.get(it, as_of=moment) for it in (first, second)}
        assert listed == {it: found for it, found in single.items() if found is not None}
    assert memory.list_recent(filters={"archived": None}, as_of=NOW) == list(state(memory).values())


# Erased and rejected ----------------------------------------------------------------------------


def test_what_was_erased_and_rejected_comes_back_by_no_way(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    memory_id = memory.store("the vault code is 8317-4420", id="secret")
    memory.export(tmp_path / "all.yaml")
    before = clock.now
    clock.forward(days=1)
    backup = memory.backup(tmp_path / "by-hand.db")
    receipt = memory.erase(memory_id, backups=True)
    assert (receipt.memories, receipt.clean) == (1, True)
    memory.reject("8317-4420", reason="a code that was leaked")
    assert memory.get(memory_id) is None
    assert memory.get(memory_id, as_of=before) is None
    assert memory.list_recent(as_of=before) == []
    with pytest.raises(MemoryNotFound):
        memory.history(memory_id)
    with pytest.raises(ValidationError, match="`erase`"):
        memory.undo()
    other = memory.store("something else")
    for way in (
        lambda: memory.store("Code: 8317 4420"),
        lambda: memory.update(other, metadata={"code": "8317 4420"}),
        lambda: memory.import_(tmp_path / "all.yaml", include_erased=True),
    ):
        with pytest.raises(RejectedContent) as refused:
            way()
        assert "8317" not in str(refused.value)
    path = tmp_path / "all.yaml"
    assert memory.import_(path, skip_bad=True, include_erased=True).refused == 1
    left_out = memory.import_(path)
    assert (left_out.new, left_out.erased) == (0, 1)
    assert memory.count() == 1
    # A restored backup is a whole state but for what was erased, and the rejection holds.
    report = AgentMemory.restore(memory.path, backup)
    assert (report.memory_count, report.erased, report.rejected) == (0, 1, 0)
    assert memory.holders("8317 4420") == []
    with pytest.raises(RejectedContent):
        memory.store("8317-4420 again")


@pytest.mark.parametrize("filters", [{}, {"tags_match": "any"}, {"custom_filters": {}}])
def test_filters_that_describe_nothing_erase_nothing(
    memory: AgentMemory, filters: dict[str, Any]
) -> None:
    memory.store("kept")
    with pytest.raises(ValidationError, match="filters"):
        memory.erase(filters=filters)
    assert memory.count() == 1


# Read only and closed ---------------------------------------------------------------------------

WRITING: Final[dict[str, Verb]] = {
    "store": lambda m, _: m.store("new"),
    "store_many": lambda m, _: m.store_many([{"content": "new"}]),
    "update": lambda m, _: m.update("old", content="new"),
    "delete": lambda m, _: m.delete("old"),
    "archive": lambda m, _: m.archive("old"),
    "unarchive": lambda m, _: m.unarchive("archived"),
    "tidy": lambda m, _: m.tidy(),
    "undo": lambda m, _: m.undo(),
    "undo a change": lambda m, _: m.undo(1),
    "erase": lambda m, _: m.erase("old"),
    "erase described ones": lambda m, _: m.erase(filters={"category": "note"}),
    "erase from backups": lambda m, _: m.erase("old", backups=True),
    "finish_erasing": lambda m, _: m.finish_erasing(),
    "reject": lambda m, _: m.reject("hunter2"),
    "lift": lambda m, _: m.lift("hunter2"),
    "promote": lambda m, _: m.promote("old"),
    "demote": lambda m, _: m.demote("old"),
    "configure": lambda m, _: m.configure(retention=None),
    "import": lambda m, folder: m.import_(folder / "one.jsonl"),
    "import to replace": lambda m, folder: m.import_(folder / "one.jsonl", on_conflict="replace"),
    "migrate": lambda m, _: m.migrate(embedder="wordllama"),
    "rollback": lambda m, _: m.rollback(),
    "repair": lambda m, _: m.check(repair=True),
}

READING: Final[dict[str, Verb]] = {
    "search": lambda m, _: [hit.memory.id for hit in m.search("quartz plan")] == ["old"],
    "search as of": lambda m, _: len(m.search("plan", as_of=NOW)) == 2,
    "get": lambda m, _: m.get("archived").archived,  # type: ignore[union-attr]
    "get as of": lambda m, _: not m.get("archived", as_of=NOW).archived,  # type: ignore[union-attr]
    "list_recent": lambda m, _: len(m.list_recent()) == 1,
    "list_recent as of": lambda m, _: len(m.list_recent(as_of=NOW)) == 2,
    "count": lambda m, _: m.count() == 1,
    "history": lambda m, _: [it.event for it in m.history("archived")] == ["UPDATE", "ADD"],
    "tidy dry": lambda m, _: [it.memory_id for it in m.tidy(dry_run=True).archived] == ["old"],
    "import dry": lambda m, folder: m.import_(folder / "one.jsonl", dry_run=True).kept == 1,
    "holders": lambda m, _: m.holders("quartz") == ["old"],
    "rejections": lambda m, _: len(m.rejections()) == 1,
    "backups": lambda m, _: len(m.backups()) == 1,
    "scratchpad": lambda m, _: len(m.scratchpad().memories) == 1,
    "context": lambda m, _: "quartz" in m.context(),
    "info": lambda m, _: m.info().archived_count == 1,
    "duplicates": lambda m, _: len(m.duplicates("the quartz plan")) == 1,
    "duplicate_groups": lambda m, _: list(m.duplicate_groups()) == [],
    "migration_plan": lambda m, _: m.migration_plan(embedder="wordllama").memory_count == 2,
    "configure nothing": lambda m, _: m.configure().retention is not None,
}


@pytest.fixture
def only_read(root: Path, clock: Clock, tmp_path: Path) -> Iterator[AgentMemory]:
    """Open a store read-only that all verbs have work in."""
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory.configure(retention="standard")
        memory.store("the quartz plan", id="old")
        memory.store("the basalt plan", id="archived")
        clock.forward(days=100)
        memory.archive("archived")
        memory.reject("hunter2")
        memory.backup()
    line(tmp_path / "one.jsonl", id="old", content="replaced")
    with AgentMemory("bob", root=root, clock=clock, read_only=True, embedder=None) as opened:
        yield opened


@pytest.mark.file_only("the file is made read-only")
@pytest.mark.parametrize("verb", WRITING)
def test_nothing_is_written_where_it_may_only_be_read(
    only_read: AgentMemory, root: Path, tmp_path: Path, verb: str
) -> None:
    before = files(root)
    with pytest.raises(StorageReadOnly, match="read-only"):
        WRITING[verb](only_read, tmp_path)
    assert files(root) == before


@pytest.mark.file_only("the file is made read-only")
@pytest.mark.parametrize("verb", READING)
def test_all_that_reads_works_where_it_may_only_be_read(
    only_read: AgentMemory, root: Path, tmp_path: Path, verb: str
) -> None:
    before = files(root)
    assert READING[verb](only_read, tmp_path)
    assert files(root) == before


@pytest.mark.file_only("it opens the file")
@pytest.mark.parametrize("verb", [*WRITING, *READING, "backup", "export"])
def test_a_closed_memory_says_so(old: AgentMemory, tmp_path: Path, verb: str) -> None:
    line(tmp_path / "one.jsonl", id="old", content="replaced")
    with AgentMemory.open(old.path) as memory:
        pass
    last: dict[str, Verb] = {
        "backup": lambda m, folder: m.backup(folder / "copy.db"),
        "export": lambda m, folder: m.export(folder / "all.yaml"),
    }
    with pytest.raises(StorageClosed, match="open the memory again"):
        (WRITING | READING | last)[verb](memory, tmp_path)


# Wrong arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["archive", "unarchive", "erase"])
@pytest.mark.parametrize("ids", [None, 17, b"mem-1", [None], ["first", 3], "\ud800"])
def test_what_is_no_id_is_refused(full: AgentMemory, verb: str, ids: Any) -> None:
    before = state(full)
    with pytest.raises((ValidationError, MemoryNotFound)):
        getattr(full, verb)(ids)
    assert state(full) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.lift(2**70),
        lambda m: m.lift(1.5),
        lambda m: m.undo("3"),
        lambda m: m.undo(True),
        lambda m: m.undo(2**63),
        lambda m: m.erase([]),
        lambda m: m.erase("first", filters={"kind": "core"}),
        lambda m: m.erase(filters={"colour": "red"}),
    ],
    ids=["lift a huge number", "lift a part", "undo a text", "undo a truth", "undo a huge number",
         "erase nothing", "erase both", "erase a colour"],
)  # fmt: skip
def test_what_is_no_number_text_or_filter_is_refused(
    full: AgentMemory, call: Callable[[AgentMemory], Any]
) -> None:
    before = state(full)
    with pytest.raises(ValidationError):
        call(full)
    assert state(full) == before


# Other programs ---------------------------------------------------------------------------------


def test_changes_of_another_program_are_undone_one_by_one(
    memory: AgentMemory, clock: Clock, visitor: Visitor
) -> None:
    clock.now = datetime.now(UTC) - timedelta(days=2)  # other programs have no other clock
    memory.store("the walnut plan", id="plan", tags=["old"])
    memory.store("the quartz plan", id="gone", importance="high")
    before = state(memory)
    clock.forward(days=1)
    yesterday = clock.now
    visitor(
        memory.path,
        """UPDATE memories SET content = 'the basalt plan', tags = '["new"]' WHERE id = 'plan'"""
        ";;DELETE FROM memories WHERE id = 'gone'"
        ";;INSERT INTO memories (id, content) VALUES ('theirs', 'the marble plan')"
        ";;UPDATE memories SET archived = 1 WHERE id = 'plan'",
    )
    clock.now = datetime.now(UTC)
    assert {it.id: it for it in memory.list_recent(as_of=yesterday)} == before
    assert memory.search("walnut", tags=["old"], as_of=yesterday)[0].memory == before["plan"]
    assert memory.get("theirs", as_of=yesterday) is None
    changes = [it.change_id for it in memory.history(limit=4)]
    for change in changes:
        memory.undo(change)
    after = state(memory)
    same = {"version", "updated_at"}
    assert {it: found.model_dump(exclude=same) for it, found in after.items()} == {
        it: found.model_dump(exclude=same) for it, found in before.items()
    }
    assert memory.search("walnut", tags=["old"])[0].memory.id == "plan"


def test_what_another_program_wrote_can_be_erased(memory: AgentMemory, visitor: Visitor) -> None:
    memory.store("the walnut plan", id="plan")
    visitor(
        memory.path,
        "INSERT INTO memories (id, content) VALUES ('theirs', 'the marble plan of the visitor')"
        ";;UPDATE memories SET content = 'the basalt plan of the visitor' WHERE id = 'theirs'"
        ";;DELETE FROM memories WHERE id = 'theirs'",
    )
    receipt = memory.erase("theirs", backups=True)
    assert (receipt.memories, receipt.changes, receipt.clean) == (0, 3, True)
    data = memory.path.read_bytes()
    assert b"visitor" not in data
    assert b"walnut" in data
    assert len(memory.search("marble basalt")) == 0


def test_a_history_that_another_program_damaged_does_not_hide_the_rest(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory.store("the walnut plan", id="plan")
    memory.update("plan", content="the quartz plan")
    visitor(memory.path, "UPDATE history SET old_values = '[1]' WHERE event = 'UPDATE'")
    assert [it.event for it in memory.history("plan")] == ["UPDATE", "ADD"]
    with pytest.raises(ValidationError):
        memory.undo()
    assert stored(memory, "plan").content == "the quartz plan"


# An older file ----------------------------------------------------------------------------------

_MAKE_OF_NINE: Final = """
import hashlib, pathlib, sqlite3, sys
path, folder, application, record = sys.argv[1:]
c = sqlite3.connect(path, isolation_level=None)
c.execute(f"PRAGMA application_id = {application}")
c.execute(record)
for file in sorted(pathlib.Path(folder).glob("000[1-9]_*.sql")):
    sql = file.read_text(encoding="utf-8")
    c.executescript(sql)
    digest = hashlib.sha256(sql.encode()).hexdigest()
    values = (int(file.name[:4]), file.name, digest, "2026-01-01T00:00:00.000000Z")
    c.execute("INSERT INTO schema_migrations VALUES (?, ?, ?, ?)", values)
c.execute("PRAGMA user_version = 9")
c.execute("INSERT INTO agent (agent_id, created_at, last_accessed)"
          " VALUES ('bob', '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z')")
for day in (1, 2, 3):
    moment = f"2026-01-0{day}T00:00:00.000000Z"
    values = (f"m{day}", f"the old text {day}", '["old"]', moment, moment, day)
    c.execute("INSERT INTO memories (id, content, tags, timestamp, updated_at, access_count)"
              " VALUES (?, ?, ?, ?, ?, ?)", values)
c.execute("UPDATE memories SET content = 'the changed text', version = 2,"
          " updated_at = '2026-01-05T00:00:00.000000Z' WHERE id = 'm2'")
c.execute("DELETE FROM memories WHERE id = 'm3'")
c.execute("UPDATE history SET changed_at = '2026-01-06T00:00:00.000000Z' WHERE event = 'DELETE'")
"""


@pytest.fixture
def of_nine(tmp_path: Path) -> Path:
    """Make a file of the ninth schema without the library: two memories, and one deleted."""
    path = tmp_path / "old" / "memories.db"
    path.parent.mkdir()
    folder = CHECKOUT / "migrations"
    words = [str(path), str(folder), str(APPLICATION_ID), schema._CREATE_RECORD]
    done = subprocess.run(
        [sys.executable, "-c", _MAKE_OF_NINE, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return path


def test_a_file_of_the_ninth_schema_keeps_its_history(of_nine: Path, clock: Clock) -> None:
    with AgentMemory.open(of_nine, clock=clock) as memory:
        assert [(it.event, it.memory_id) for it in memory.history()] == [
            ("DELETE", "m3"), ("UPDATE", "m2"), ("ADD", "m3"), ("ADD", "m2"), ("ADD", "m1"),
        ]  # fmt: skip
        texts = {
            "2026-01-02T12:00:00Z": {"m1": "the old text 1", "m2": "the old text 2"},
            "2026-01-05T12:00:00Z": {
                "m1": "the old text 1", "m2": "the changed text", "m3": "the old text 3",
            },
            "2026-01-07": {"m1": "the old text 1", "m2": "the changed text"},
        }  # fmt: skip
        for moment, expected in texts.items():
            assert {it.id: it.content for it in memory.list_recent(as_of=moment)} == expected
        (backup,) = memory.backups()
        assert (backup.reason, backup.memory_count) == ("upgrade", 2)


def test_an_old_deletion_is_undone(of_nine: Path, clock: Clock) -> None:
    with AgentMemory.open(of_nine, clock=clock) as memory:
        done = memory.undo()
        assert (done.verb, done.memory_ids) == ("DELETE", ["m3"])
        back = stored(memory, "m3")
        assert (back.content, back.tags, back.access_count) == ("the old text 3", ["old"], 3)
        assert memory.search("old text 3")[0].memory.id == "m3"
        change = next(it for it in memory.history("m2") if it.event == "UPDATE")
        memory.undo(change.change_id)
        assert stored(memory, "m2").content == "the old text 2"
        assert stored(memory, "m2").version == 3
        memory.info()
        assert memory.check().problems == []
        # The backup of before the upgrade is a way back as well.
        report = AgentMemory.restore(memory.path, "latest")
        assert report.upgraded_from == 9
        assert {it.id for it in memory.list_recent()} == {"m1", "m2"}


# Processes --------------------------------------------------------------------------------------

_STORES: Final = """
import sys, time
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1]) as memory:
    for number in range(int(sys.argv[2])):
        print(memory.store(f"child learned fact number{number}"), flush=True)
        time.sleep(0.002)
"""


def test_one_process_undoes_while_another_stores(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("there before")
        words = [sys.executable, "-c", _STORES, str(root), "150"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            ids = [child.stdout.readline().strip()]
            undone = []
            while child.poll() is None:
                undone.append(memory.undo())
                time.sleep(0.005)
            # communicate() would read the pipe, past the lines that readline() took out of it.
            ids += child.stdout.read().split()
        assert child.returncode == 0
        assert len(ids) == len(set(ids)) == 150
        assert len(undone) >= 3
        # Each undo took one memory away, or brought one back that an undo had taken away.
        assert {len(it.memory_ids) for it in undone} == {1}
        for memory_id in ids:
            events = [str(it.event) for it in memory.history(memory_id, limit=100_000)][::-1]
            assert events == ["ADD", "DELETE"] * (len(events) // 2) + ["ADD"] * (len(events) % 2)
            assert (memory.get(memory_id) is not None) == (len(events) % 2 == 1)
        assert memory.check().problems == []


@pytest.mark.file_only("tidy backs the file up, and as_of copies it")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_all_the_verbs(old: AgentMemory, clock: Clock, tmp_path: Path) -> None:
    clock.forward(days=1)
    old.search("quartz", count_accesses=False)

    def lives() -> None:
        assert [it.memory_id for it in old.tidy(dry_run=True).archived] == ["old"]
        assert old.tidy().backup is not None
        assert old.undo().verb == "tidy"
        assert old.list_recent(as_of=NOW)[0].id == "old"
        old.reject("hunter2")
        old.archive(old.store("in the archive", id="archived"))
        old.erase(old.store("a slip of the tongue"))
        _import(old, tmp_path, "replace", id="old", content="replaced by the child")

    child = forked(lives)
    old.store("the parent goes on", id="parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stored(old, "archived").archived
    assert stored(old, "old").content == "replaced by the child"
    assert stored(old, "parent").content == "the parent goes on"
    assert sorted(map(str, reasons(old))) == ["erase", "import", "tidy"]
    assert len(old.rejections()) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("verb", ["tidy", "undo"])
def test_whenever_it_is_killed_all_is_done_or_nothing(root: Path, clock: Clock, verb: str) -> None:
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory.configure(retention={"archive_learnings_after_days": 1, "recent_days": 0})
        memory.store_many([{"content": f"a fact number{n}"} for n in range(MANY)])
    clock.forward(days=9)

    def lives(started: int) -> None:
        with AgentMemory("bob", root=root, clock=clock) as memory:
            os.write(started, b"1")
            memory.tidy() if verb == "tidy" else memory.undo()

    ends, killed = set(), 0
    for milliseconds in (0, 1, 2, 5, 10, 20, 30, 40, 60, 80, 120, 200, None):
        with AgentMemory("bob", root=root, clock=clock, create=False) as memory:
            # What is tidied once is brought back, and ages anew; an undo undoes the undo before.
            if verb == "tidy" and memory.count(filters={"archived": True}):
                memory.undo()
        clock.forward(days=2)
        killed += _forked(lives, milliseconds) == -signal.SIGKILL
        with AgentMemory("bob", root=root, clock=clock, create=False) as memory:
            found = memory.count(filters={"archived": None}), memory.count()
            assert found in {(MANY, MANY), (MANY, 0), (0, 0)}
            assert len(memory.search("number700", 1, count_accesses=False)) == bool(found[1])
            # Half a backup may be left beside it: it is named, and no damage.
            assert {problem.kind for problem in memory.check().problems} <= {"leftover"}
            ends.add(found)
    assert killed >= 3
    assert ends == {(MANY, MANY), (MANY, 0) if verb == "tidy" else (0, 0)}


def _forked(work: Callable[[int], None], milliseconds: int | None) -> int:
    """Run something in a forked child, kill it so long after it began, return how it ended."""
    began, started = os.pipe()
    child = forked(lambda: work(started))
    assert os.read(began, 1) == b"1"
    if milliseconds is not None:
        time.sleep(milliseconds / 1000)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(began)
    os.close(started)
    return code


# The asynchronous face --------------------------------------------------------------------------


def test_the_asynchronous_storage_goes_on_as_before(root: Path) -> None:
    async def lives() -> None:
        async with MemoryStorage("bob", root=root) as storage:
            first, second = await asyncio.gather(
                storage.store("the quartz plan", ["stone"]), storage.store("the walnut plan")
            )
            with AgentMemory("bob", root=root) as memory:
                memory.archive(first)
                assert [it.id for it in await storage.search("plan")] == [second]
                found = await storage.get(first)
                assert found is not None
                assert (found.archived, found.tags) == (True, ["stone"])
                memory.undo()
                assert {it.id for it in await storage.search("plan")} == {first, second}
                memory.reject("hunter2")
                memory.erase(second)
            with pytest.raises(RejectedContent):
                await storage.store("the password is hunter2")
            assert await storage.get(second) is None
            assert [it.id for it in await storage.search("plan")] == [first]

    asyncio.run(lives())


def test_what_may_only_be_read_is_checked_and_not_repaired(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store("Lunch is at noon", tags=["food"])
    with AgentMemory("bob", root=root, read_only=True, embedder=None) as reader:
        assert (reader.check().problems, reader.check().memory_count) == ([], 1)
        with pytest.raises(StorageReadOnly, match="open it without read_only") as refusal:
            reader.check(repair=True)
        assert refusal.value.is_asked_for

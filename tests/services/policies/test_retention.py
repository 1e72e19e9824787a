"""Tidying: what a policy archives and what it never touches, and what hard limits refuse."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock, Visitor, engine_of
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory, Memory, StorageClosed
from agent_memory.errors import LimitReached
from agent_memory.models.enums import MemoryKind
from agent_memory.models.retention import RETENTION_PRESETS, RetentionPolicy, TidyItem
from agent_memory.models.times import format_time
from agent_memory.services.policies import retention
from agent_memory.storage.sql import usage
from agent_memory.storage.sqlite.engine import SQLiteEngine

LEARNINGS = RetentionPolicy(archive_learnings_after_days=90)
TASKS = RetentionPolicy(archive_tasks_after_days=30)
STANDARD = RetentionPolicy.model_validate(RETENTION_PRESETS["standard"])
MOMENT = timedelta(microseconds=1)


def tidied(memory: AgentMemory, policy: RetentionPolicy) -> tuple[list[TidyItem], list[str]]:
    """Return what tidying would archive now, and its notes."""
    memory.info()  # writes what searches counted
    engine = engine_of(memory)
    with engine.read():
        return retention.plan(engine, policy, now=memory._now())


def going(memory: AgentMemory, policy: RetentionPolicy) -> list[str]:
    return [item.memory_id for item in tidied(memory, policy)[0]]


def notes(memory: AgentMemory, policy: RetentionPolicy) -> list[str]:
    return tidied(memory, policy)[1]


def refuse(
    memory: AgentMemory, policy: RetentionPolicy, adding: Mapping[MemoryKind, tuple[int, int]]
) -> None:
    engine = engine_of(memory)
    with engine.write():
        retention.refuse_beyond(engine, policy, adding)


def over_soft(memory: AgentMemory, policy: RetentionPolicy) -> list[str]:
    engine = engine_of(memory)
    with engine.read():
        return retention.over_soft(engine, policy)


def limited(
    kind: str, count: int | None = None, size: int | None = None, *, hard: bool = False, **more: Any
) -> RetentionPolicy:
    limit = {"max_memories": count, "max_bytes": size, "enforcement": "hard" if hard else "soft"}
    return RetentionPolicy.model_validate({"limits": {kind: limit}, **more})


def completed(moment: str | None = None) -> dict[str, Any]:
    """Return the fields of a task that is done."""
    done = {"status": "completed"} | ({"completed_at": moment} if moment else {})
    return {"kind": "task", "task_metadata": done}


def fill(memory: AgentMemory, clock: Clock, count: int, **fields: Any) -> list[str]:
    """Store memories a minute apart, oldest first."""
    made = []
    for n in range(count):
        made.append(memory.store(f"memory number{n}", id=f"m{n}", **fields))
        clock.forward(minutes=1)
    return made


@pytest.fixture
def loose(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    """Open a memory that other programs damage in a test."""
    with AgentMemory("bob", root=root, clock=clock) as opened:
        yield opened


# Learnings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "is_old"),
    [
        (timedelta(days=89), False),
        (timedelta(days=90) - MOMENT, False),
        (timedelta(days=90), True),
        (timedelta(days=91), True),
    ],
)
def test_a_learning_goes_on_the_day(
    memory: AgentMemory, clock: Clock, age: timedelta, is_old: bool
) -> None:
    stored = memory.store("Prefer PostgreSQL")
    clock.now += age
    assert going(memory, LEARNINGS) == ([stored] if is_old else [])


def test_what_goes_is_told_with_the_reason(memory: AgentMemory, clock: Clock) -> None:
    memory.store("Prefer PostgreSQL", id="m1")
    clock.forward(days=95, hours=23)
    assert tidied(memory, LEARNINGS) == (
        [
            TidyItem(
                memory_id="m1",
                kind=MemoryKind.LEARNING,
                content="Prefer PostgreSQL",
                reason="not used for 95 days",
                last_used=NOW,
            )
        ],
        [],
    )


def test_a_learning_that_was_found_is_in_use(memory: AgentMemory, clock: Clock) -> None:
    stored = memory.store("Prefer PostgreSQL")
    clock.forward(days=60)
    assert len(memory.search("postgresql")) == 1
    found_at = clock.now
    clock.forward(days=89)
    assert going(memory, LEARNINGS) == []
    clock.forward(days=1)
    ((item,), _) = tidied(memory, LEARNINGS)
    assert (item.memory_id, item.last_used) == (stored, found_at)


def test_a_learning_that_was_changed_is_in_use(memory: AgentMemory, clock: Clock) -> None:
    stored = memory.store("Prefer PostgreSQL")
    assert len(memory.search("postgresql")) == 1
    clock.forward(days=60)
    memory.update(stored, tags=["database"])
    clock.forward(days=89)
    assert going(memory, LEARNINGS) == []
    clock.forward(days=1)
    assert going(memory, LEARNINGS) == [stored]


def test_when_a_thing_happened_is_no_use_of_it(memory: AgentMemory, clock: Clock) -> None:
    memory.store("long ago", id="old", timestamp="1999-01-01")
    memory.store("yet to come", id="new", timestamp="2030-01-01")
    assert going(memory, LEARNINGS) == []
    clock.forward(days=90)
    assert going(memory, LEARNINGS) == ["old", "new"]


def test_the_rule_for_learnings_is_for_them_alone(memory: AgentMemory, clock: Clock) -> None:
    memory.store("a core memory", kind="core")
    memory.store("a task", kind="task")
    memory.store("a done task", **completed())
    learning = memory.store("a learning")
    clock.forward(days=1000)
    assert going(memory, LEARNINGS) == [learning]


def test_a_rule_that_is_off_archives_nothing(memory: AgentMemory, clock: Clock) -> None:
    memory.store("a learning")
    memory.store("a done task", **completed())
    clock.forward(days=10_000)
    assert tidied(memory, RetentionPolicy()) == ([], [])


def test_days_beyond_all_time_archive_nothing(memory: AgentMemory, clock: Clock) -> None:
    memory.store("a learning")
    memory.store("a done task", **completed())
    clock.forward(days=10_000)
    never = RetentionPolicy(archive_learnings_after_days=10**12, archive_tasks_after_days=10**12)
    assert tidied(memory, never) == ([], [])
    forever = RetentionPolicy(archive_learnings_after_days=1, recent_days=10**12)
    assert tidied(memory, forever) == ([], [])


def test_what_is_archived_is_not_archived_again(memory: AgentMemory, clock: Clock) -> None:
    stored = memory.store("a learning")
    clock.forward(days=100)
    assert going(memory, LEARNINGS) == [stored]
    memory.update(stored, archived=True)
    clock.forward(days=100)
    assert tidied(memory, LEARNINGS) == ([], [])


# Tasks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "is_old"),
    [(timedelta(days=29), False), (timedelta(days=30) - MOMENT, False), (timedelta(days=30), True)],
)
def test_a_task_goes_after_its_completion(
    memory: AgentMemory, clock: Clock, age: timedelta, is_old: bool
) -> None:
    stored = memory.store("ship it", kind="task", task_metadata={"status": "in-progress"})
    clock.forward(days=50)
    done = {"status": "completed", "completed_at": clock.now}
    memory.update(stored, task_metadata=done)
    clock.now += age
    items, _ = tidied(memory, TASKS)
    assert [(item.memory_id, item.reason) for item in items] == (
        [(stored, "completed 30 days ago")] if is_old else []
    )


def test_without_the_time_of_its_completion_its_last_change_counts(
    memory: AgentMemory, clock: Clock
) -> None:
    stored = memory.store("ship it", kind="task", task_metadata={"status": "blocked"})
    clock.forward(days=50)
    memory.update(stored, task_metadata={"status": "completed"})
    clock.forward(days=29)
    assert going(memory, TASKS) == []
    clock.forward(days=1)
    assert going(memory, TASKS) == [stored]


@pytest.mark.parametrize("status", ["in-progress", "blocked", None])
def test_a_task_that_is_not_done_stays(
    memory: AgentMemory, clock: Clock, status: str | None
) -> None:
    at = format_time(NOW - timedelta(days=400))
    task = {"status": status, "completed_at": at} if status else None
    memory.store("ship it", kind="task", task_metadata=task)
    clock.forward(days=400)
    assert going(memory, TASKS) == []


def test_a_done_thing_that_is_no_task_stays(memory: AgentMemory, clock: Clock) -> None:
    for kind in ("learning", "core"):
        memory.store(f"a {kind}", **{**completed("2020-01-01"), "kind": kind})
    clock.forward(days=400)
    assert going(memory, TASKS) == []


def test_a_done_task_that_is_looked_at_goes_once_that_is_no_longer_recent(
    memory: AgentMemory, clock: Clock
) -> None:
    stored = memory.store("ship the harbour", **completed())
    clock.forward(days=29)
    assert len(memory.search("harbour")) == 1
    clock.forward(days=7, microseconds=-1)
    assert going(memory, TASKS) == []
    clock.forward(microseconds=1)
    ((item,), _) = tidied(memory, TASKS)
    assert (item.memory_id, item.reason) == (stored, "completed 36 days ago")


def test_a_task_that_was_done_before_it_was_stored_stays_while_it_is_recent(
    memory: AgentMemory, clock: Clock
) -> None:
    stored = memory.store("ship it", **completed("2020-01-01"))
    clock.forward(days=7, microseconds=-1)
    assert going(memory, TASKS) == []
    clock.forward(microseconds=1)
    assert going(memory, TASKS) == [stored]


@pytest.mark.parametrize(
    "done", ["2025-12-31T16:00:00Z", "2025-12-31T17:00:00+01:00", "2025-12-31"]
)
def test_a_completion_that_another_program_wrote_is_understood(
    memory: AgentMemory, clock: Clock, visitor: Visitor, done: str
) -> None:
    stored = memory.store("ship it", kind="task")
    clock.forward(days=7)
    wanted = f'{{"status":"completed","completed_at":"{done}"}}'
    sql = "UPDATE memories SET version = 2, task_metadata = '{}', updated_at = '{}'"
    visitor(memory.path, sql.format(wanted, format_time(NOW - timedelta(days=10))))
    clock.now = NOW - timedelta(microseconds=1)
    assert going(memory, TASKS) == ([stored] if len(done) == 10 else [])
    clock.now = NOW
    assert going(memory, TASKS) == [stored]


@pytest.mark.parametrize(
    "damage",
    [
        '\'{"status":"completed"\'',
        "''",
        "'[\"completed\"]'",
        "'{}'",
        '\'{"status":"done"}\'',
        '\'{"status":["completed"]}\'',
        '\'{"status":"completed","completed_at":"soon"}\'',
        '\'{"status":"completed","completed_at":17}\'',
        "'{\"a\":' || replace(hex(zeroblob(5000)), '0', '[')",
        "CAST(x'7b22737461747573223a22ff227d' AS TEXT)",
    ],
)
def test_a_task_whose_metadata_is_damaged_is_not_done(
    loose: AgentMemory, clock: Clock, visitor: Visitor, damage: str
) -> None:
    loose.store("ship it", id="damaged", **completed())
    loose.store("ship that", id="sound", **completed())
    visitor(
        loose.path,
        "PRAGMA ignore_check_constraints = ON;;DROP TRIGGER history_of_changed;;"
        f"UPDATE memories SET task_metadata = {damage} WHERE id = 'damaged'",
    )
    clock.forward(days=400)
    assert going(loose, TASKS) == ["sound"]


# What is never touched --------------------------------------------------------------------------

EAGER = RetentionPolicy.model_validate(
    {
        "archive_learnings_after_days": 1,
        "archive_tasks_after_days": 1,
        "limits": {kind: {"max_memories": 1, "max_bytes": 1} for kind in MemoryKind},
    }
)
"""A policy of which every rule wants everything."""
OF_EACH_KIND: list[dict[str, Any]] = [{"kind": "learning"}, completed(), {"kind": "core"}]


@pytest.mark.parametrize("fields", OF_EACH_KIND, ids=lambda fields: fields["kind"])
def test_high_importance_keeps(memory: AgentMemory, clock: Clock, fields: dict[str, Any]) -> None:
    memory.store("dear", importance="high", **fields)
    others = [memory.store(one, importance=one, **fields) for one in ("medium", "low")]
    clock.forward(days=400)
    assert going(memory, EAGER) == others


@pytest.mark.parametrize("fields", OF_EACH_KIND, ids=lambda fields: fields["kind"])
def test_what_was_promoted_by_hand_is_kept(
    memory: AgentMemory, clock: Clock, fields: dict[str, Any]
) -> None:
    promoted = memory.store("dear", **fields)
    used = memory.store("a lantern that is often asked for", **fields)
    memory.demote(used)
    for _ in range(3):
        assert memory.search("lantern")[0].memory.id == used
    stored = memory.store("in the scratchpad because it was stored", **fields)
    memory.promote(promoted)
    clock.forward(days=400)
    assert {one.id for one in memory.scratchpad().memories} == {promoted, used, stored}
    assert sorted(going(memory, EAGER)) == sorted([used, stored])
    memory.demote(promoted)
    assert sorted(going(memory, EAGER)) == sorted([promoted, used, stored])


@pytest.mark.parametrize("fields", OF_EACH_KIND, ids=lambda fields: fields["kind"])
def test_what_was_used_recently_is_kept(
    memory: AgentMemory, clock: Clock, fields: dict[str, Any]
) -> None:
    made = fill(memory, clock, 2, **fields)
    memory.update("m1", tags=["red"])
    clock.now = NOW + timedelta(days=3)
    assert memory.search("number0")[0].memory.id == "m0"
    clock.now = NOW + timedelta(days=7)
    assert going(memory, EAGER) == []
    clock.forward(minutes=2)
    assert going(memory, EAGER) == ["m1"]
    clock.now = NOW + timedelta(days=10) - MOMENT
    assert going(memory, EAGER) == ["m1"]
    clock.now += MOMENT
    assert sorted(going(memory, EAGER)) == made


def test_with_no_recent_days_what_was_just_stored_may_go(memory: AgentMemory) -> None:
    stored = memory.store("a learning")
    policy = limited("learning", size=5)
    assert going(memory, policy) == []
    assert going(memory, policy.model_copy(update={"recent_days": 0})) == [stored]


# Soft limits ------------------------------------------------------------------------------------


def test_the_least_recently_used_beyond_a_limit_go(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 5)
    clock.forward(days=1)
    assert memory.search("number0")[0].memory.id == "m0"
    memory.update("m2", tags=["red"])
    clock.forward(days=10)
    assert going(memory, limited("learning", 5)) == []
    items, said = tidied(memory, limited("learning", 3))
    assert [(it.memory_id, it.reason) for it in items] == [
        ("m1", "over the limit of 3 learnings"),
        ("m3", "over the limit of 3 learnings"),
    ]
    assert said == []
    assert going(memory, limited("learning", 1)) == ["m1", "m3", "m4", "m2"]


def test_of_those_used_at_the_same_time_the_less_often_used_goes_first(
    memory: AgentMemory, clock: Clock
) -> None:
    memory.store_many({"content": f"memory number{n}", "id": f"m{n}"} for n in range(4))
    for word in ("number0", "number0", "number1", "number3"):
        assert memory.search(word, limit=1)[0].memory.id == word.replace("number", "m")
    clock.forward(days=10)
    assert going(memory, limited("learning", 1)) == ["m2", "m1", "m3"]


def test_bytes_are_counted_as_utf_8_has_them(memory: AgentMemory, clock: Clock) -> None:
    for n, content in enumerate(["数据库", "abc", "naïve"]):  # 9, 3 and 6 bytes
        memory.store(content, id=f"m{n}")
        clock.forward(minutes=1)
    clock.forward(days=10)
    assert going(memory, limited("learning", size=18)) == []
    items, said = tidied(memory, limited("learning", size=17))
    assert [(it.memory_id, it.reason) for it in items] == [
        ("m0", "over the limit of 17 bytes of learnings")
    ]
    assert said == []
    assert going(memory, limited("learning", size=9)) == ["m0"]
    assert going(memory, limited("learning", size=8)) == ["m0", "m1"]
    assert going(memory, limited("learning", size=5)) == ["m0", "m1", "m2"]


def test_both_limits_of_a_kind_are_kept(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 4)  # of 14 bytes each
    clock.forward(days=10)
    items, _ = tidied(memory, limited("learning", 3, 30))
    assert [(it.memory_id, it.reason) for it in items] == [
        ("m0", "over the limit of 3 learnings"),
        ("m1", "over the limit of 30 bytes of learnings"),
    ]


def test_what_is_archived_counts_no_more(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 4)
    memory.update("m3", archived=True)
    clock.forward(days=10)
    assert going(memory, limited("learning", 3, 3 * 14)) == []


def test_each_kind_has_its_own_limit(memory: AgentMemory, clock: Clock) -> None:
    for n, kind in enumerate(["task", "core", "learning"] * 2):
        memory.store(f"memory number{n}", id=f"m{n}", kind=kind)
        clock.forward(minutes=1)
    clock.forward(days=10)
    assert going(memory, limited("learning", 1)) == ["m2"]
    assert going(memory, limited("task", 1)) == ["m0"]
    assert going(memory, limited("core", 1)) == ["m1"]
    assert going(memory, EAGER) == ["m2", "m5", "m1", "m4", "m0", "m3"]


def test_what_the_rules_of_age_archive_is_gone_before_a_limit_is_applied(
    memory: AgentMemory, clock: Clock
) -> None:
    made = fill(memory, clock, 2)
    clock.forward(days=80)
    memory.store("a newer one", id="newer")
    memory.store("the newest", id="newest")
    clock.forward(days=10)
    both = limited("learning", 2, archive_learnings_after_days=90)
    items, _ = tidied(memory, both)
    assert [(it.memory_id, it.reason) for it in items] == [
        (made[0], "not used for 90 days"),
        (made[1], "not used for 90 days"),
    ]
    both = limited("learning", 1, archive_learnings_after_days=90)
    assert going(memory, both) == [*made, "newer"]


def test_of_tasks_beyond_their_limit_completed_ones_go_first(
    memory: AgentMemory, clock: Clock
) -> None:
    open_task = {"kind": "task", "task_metadata": {"status": "in-progress"}}
    for n, fields in enumerate([open_task, completed(), {"kind": "task"}, completed()]):
        memory.store(f"memory number{n}", id=f"m{n}", **fields)
        clock.forward(minutes=1)
    clock.forward(days=10)
    assert going(memory, limited("task", 3)) == ["m1"]
    assert sorted(going(memory, limited("task", 2))) == ["m1", "m3"]
    assert sorted(going(memory, limited("task", 1))) == ["m0", "m1", "m3"]


def test_core_memories_go_only_by_a_soft_limit(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 3, kind="core")
    clock.forward(days=400)
    assert tidied(memory, STANDARD) == ([], [])
    assert going(memory, limited("core", 2)) == ["m0"]
    assert going(memory, limited("core", 2, hard=True)) == []


def test_rules_come_in_their_order_and_in_them_the_least_recently_used(
    memory: AgentMemory, clock: Clock
) -> None:
    for n, fields in enumerate([completed(), {"kind": "core"}, {}, {}, completed(), {}]):
        memory.store(f"memory number{n}", id=f"m{n}", **fields)
        clock.forward(days=1)
    clock.forward(days=20)
    policy = RetentionPolicy.model_validate(
        {
            "archive_learnings_after_days": 23,
            "archive_tasks_after_days": 25,
            "limits": {
                "task": {"max_bytes": 1},
                "core": {"max_bytes": 1},
                "learning": {"max_bytes": 1},
            },
        }
    )
    assert [(it.memory_id, it.reason.split()[0]) for it in tidied(memory, policy)[0]] == [
        ("m2", "not"),
        ("m3", "not"),
        ("m0", "completed"),
        ("m1", "over"),
        ("m5", "over"),
        ("m4", "over"),
    ]


@pytest.mark.file_only("PostgreSQL has a plan of its own")
def test_the_reviews_are_looked_through_once(memory: AgentMemory) -> None:
    """Each memory looked through all of them."""
    engine = engine_of(memory)
    assert isinstance(engine, SQLiteEngine)
    database = engine.database
    sql = usage._SELECT_LEAST_USED.format(greatest=database.GREATEST)
    plan = [row[3] for row in database.rows(f"EXPLAIN QUERY PLAN {sql}", ("learning", 1))]
    assert [step for step in plan if step.startswith("CORRELATED")] == []


# Notes ------------------------------------------------------------------------------------------


def test_a_limit_that_cannot_be_kept_is_told(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 4, importance="high")
    clock.forward(days=10)
    dear = "but each is of high importance, promoted by hand, a possible correction or used within"
    assert tidied(memory, limited("learning", 2, 50)) == (
        [],
        [
            f"2 learnings are over the limit of 2, {dear} 7 days",
            f"the learnings are 6 bytes over the limit of 50, {dear} 7 days",
        ],
    )
    one = "1 learning is over the limit of 3"
    assert notes(memory, limited("learning", 3, recent_days=1)) == [f"{one}, {dear} 1 day"]
    assert notes(memory, limited("learning", 3, recent_days=0)) == [
        f"{one}, but each is of high importance, promoted by hand or a possible correction"
    ]


def test_what_is_kept_does_not_keep_the_others(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 2, kind="task", importance="high")
    memory.store("an ordinary task", id="ordinary", kind="task")
    clock.forward(days=10)
    items, said = tidied(memory, limited("task", 1))
    assert [it.memory_id for it in items] == ["ordinary"]
    (note,) = said
    assert note.startswith("1 task is over the limit of 1, but each is of high importance")


def test_a_hard_limit_that_is_passed_already_is_told(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 3, kind="core")
    assert tidied(memory, limited("core", 3, 42, hard=True)) == ([], [])
    items, (note,) = tidied(memory, limited("core", 1, hard=True))
    assert items == []
    assert note == (
        "2 core memories are over the limit of 1, which is a hard limit: archive or delete"
        " some by hand"
    )


def test_soft_limits_that_are_passed_are_listed(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 3)
    memory.store("a task", kind="task")
    advice = "`agent-memory tidy` archives the least used"
    assert over_soft(memory, limited("learning", 3, 42)) == []
    assert over_soft(memory, limited("learning", 2, 41)) == [
        f"1 learning is over the limit of 2: {advice}",
        f"the learnings are 1 byte over the limit of 41: {advice}",
    ]
    assert over_soft(memory, limited("learning", 2, hard=True)) == []
    memory.update("m0", archived=True)
    assert over_soft(memory, limited("learning", 2)) == []
    assert over_soft(memory, limited("core", 1)) == []


# Files that another program wrote ---------------------------------------------------------------


def test_a_kind_that_is_unknown_counts_as_a_learning(
    loose: AgentMemory, clock: Clock, visitor: Visitor
) -> None:
    fill(loose, clock, 2)
    visitor(
        loose.path,
        "PRAGMA ignore_check_constraints = ON;;DROP TRIGGER history_of_changed;;"
        "UPDATE memories SET kind = 'idea' WHERE id = 'm0'",
    )
    clock.forward(days=100)
    assert going(loose, LEARNINGS) == ["m0", "m1"]
    assert going(loose, limited("learning", 1)) == ["m0"]
    assert over_soft(loose, limited("learning", 1)) != []


def test_a_content_that_is_damaged_does_not_keep_the_others(
    loose: AgentMemory, clock: Clock, visitor: Visitor
) -> None:
    fill(loose, clock, 2)
    visitor(
        loose.path,
        "UPDATE memories SET content = CAST(x'6d656dff79' AS TEXT), version = 2 WHERE id = 'm0'",
    )
    clock.forward(days=100)
    items, _ = tidied(loose, LEARNINGS)
    assert [it.content for it in items] == ["mem\ufffdy", "memory number1"]


def test_an_access_that_another_program_wrote_counts(
    memory: AgentMemory, clock: Clock, visitor: Visitor
) -> None:
    fill(memory, clock, 3)
    clock.forward(days=100)
    moments = {"m0": clock.now - timedelta(days=90), "m1": clock.now - timedelta(days=89)}
    for memory_id, moment in moments.items():
        visitor(
            memory.path,
            f"UPDATE memories SET last_accessed = '{format_time(moment)}' WHERE id = '{memory_id}'",
        )
    assert going(memory, LEARNINGS) == ["m2", "m0"]


# Hard limits ------------------------------------------------------------------------------------


def test_a_hard_limit_can_be_filled_and_not_passed(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 3, kind="core")  # of 14 bytes each
    for policy in (limited("core", 5, hard=True), limited("core", size=62, hard=True)):
        refuse(memory, policy, {MemoryKind.CORE: (2, 20)})
        with pytest.raises(LimitReached):
            refuse(memory, policy, {MemoryKind.CORE: (3, 21)})


def test_the_refusal_says_what_is_full_and_what_to_do(memory: AgentMemory, clock: Clock) -> None:
    memory.update(memory.store("in the archive", kind="core"), archived=True)
    fill(memory, clock, 6, kind="core")
    memory.update("m0", importance="high")
    memory.promote("m1")
    clock.forward(days=1)
    assert memory.search("number2")[0].memory.id == "m2"
    memory.info()  # writes what the search counted
    with pytest.raises(LimitReached) as refused:
        refuse(memory, limited("core", 6, hard=True), {MemoryKind.CORE: (1, 1)})
    advice = (
        "archive or delete some, the least used first: `agent-memory archive m3 m4 m5`, or"
        " raise the limit with `agent-memory configure retention`"
    )
    assert str(refused.value) == (
        "kind: 6 core memories are stored, and 1 more would exceed the hard limit of 6: " + advice
    )
    (fault,) = refused.value.errors()
    assert (fault["loc"], fault["input"]) == (("kind",), "core")
    with pytest.raises(LimitReached) as refused:
        refuse(memory, limited("core", size=84, hard=True), {MemoryKind.CORE: (1, 1000)})
    assert str(refused.value) == (
        "kind: the core memories take up 84 bytes, and 1,000 more would exceed the hard limit"
        " of 84: " + advice
    )


def test_with_nothing_to_suggest_the_refusal_names_nothing(memory: AgentMemory) -> None:
    memory.store("dear", kind="core", importance="high")
    with pytest.raises(LimitReached, match=r"1 core memory is stored.*some, or raise the limit"):
        refuse(memory, limited("core", 1, hard=True), {MemoryKind.CORE: (1, 4)})


def test_what_does_not_grow_is_not_refused(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 3, kind="core")
    policy = limited("core", 2, 20, hard=True)
    refuse(memory, policy, {MemoryKind.CORE: (0, 0)})
    refuse(memory, policy, {MemoryKind.CORE: (0, -5)})
    refuse(memory, policy, {})
    refuse(memory, limited("core", size=20, hard=True), {MemoryKind.CORE: (1, -5)})
    with pytest.raises(LimitReached, match="bytes"):
        refuse(memory, policy, {MemoryKind.CORE: (0, 1)})


def test_a_soft_limit_and_other_kinds_refuse_nothing(memory: AgentMemory, clock: Clock) -> None:
    fill(memory, clock, 3, kind="core")
    adding = {MemoryKind.CORE: (9, 900), MemoryKind.LEARNING: (9, 900)}
    refuse(memory, limited("core", 1, 1), adding)
    refuse(memory, limited("task", 1, 1, hard=True), adding)
    with pytest.raises(LimitReached, match="0 learnings are stored, and 9 more"):
        refuse(memory, limited("learning", 8, hard=True), adding)


def test_where_no_hard_limit_is_concerned_the_file_is_not_asked(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        engine = engine_of(memory)
    soft, hard = limited("core", 1), limited("core", 1, hard=True)
    retention.refuse_beyond(engine, soft, {MemoryKind.CORE: (1, 1)})
    retention.refuse_beyond(engine, hard, {MemoryKind.LEARNING: (1, 1)})
    retention.refuse_beyond(engine, limited("core", hard=True), {MemoryKind.CORE: (1, 1)})
    assert retention.over_soft(engine, hard) == []
    with pytest.raises(StorageClosed):
        retention.refuse_beyond(engine, hard, {MemoryKind.CORE: (1, 1)})


def test_what_comes_back_from_the_archive_counts(memory: AgentMemory, clock: Clock) -> None:
    made = fill(memory, clock, 4, kind="core")  # of 14 bytes each
    memory.store("a learning", id="learning")
    for memory_id in ("m0", "m1", "learning"):
        memory.update(memory_id, archived=True)
    engine = engine_of(memory)
    for policy in (limited("core", 3, hard=True), limited("core", size=42, hard=True)):
        with engine.write():
            retention.refuse_return(engine, policy, ["m0", "m2", "m3", "learning", "nowhere"])
        with engine.write(), pytest.raises(LimitReached, match=r"core memories .* hard limit"):
            retention.refuse_return(engine, policy, made)
    for free in (None, limited("core", 1)):
        with engine.write():
            retention.refuse_return(engine, free, made)


# Any store, any policy --------------------------------------------------------------------------

DAYS = st.integers(0, 12)
SOME_DAYS = st.none() | st.integers(1, 9)
MADE = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(MemoryKind),
        "importance": st.sampled_from(["high", "medium", "low"]),
        "length": st.integers(1, 30),
        "stored": DAYS,
        "used": st.none() | DAYS,
        "completed": st.none() | st.integers(0, 20),
        "is_promoted": st.sampled_from([False, False, True]),
    }
)
LIMIT = st.fixed_dictionaries(
    {
        "max_memories": st.none() | st.integers(1, 4),
        "max_bytes": st.none() | st.integers(5, 90),
        "enforcement": st.sampled_from(["soft", "soft", "hard"]),
    }
)
POLICY = st.fixed_dictionaries(
    {
        "archive_learnings_after_days": SOME_DAYS,
        "archive_tasks_after_days": SOME_DAYS,
        "recent_days": st.integers(0, 9),
        "limits": st.dictionaries(st.sampled_from(MemoryKind), LIMIT),
    }
).map(RetentionPolicy.model_validate)


def make(memory: AgentMemory, clock: Clock, number: int, made: Mapping[str, Any]) -> str:
    """Store a memory, and use it, so many days ago."""
    clock.now = NOW - timedelta(days=made["stored"])
    task = None
    if made["completed"] is not None:
        done = NOW - timedelta(days=made["completed"])
        task = {"status": "completed", "completed_at": done}
    memory_id = memory.store(
        f"word{number} {'x' * made['length']}",
        kind=made["kind"],
        importance=made["importance"],
        task_metadata=task,
        on_duplicate="keep",
    )
    if made["is_promoted"]:
        memory.promote(memory_id)
    if made["used"] is not None:
        clock.now = NOW - timedelta(days=min(made["used"], made["stored"]))
        assert memory.search(f"word{number}")[0].memory.id == memory_id
    clock.now = NOW
    return memory_id


def last_used(one: Memory) -> timedelta:
    """Return how long ago a memory was last used."""
    return NOW - max(one.updated_at, one.last_accessed or one.updated_at)


def is_kept(one: Memory, promoted: set[str], policy: RetentionPolicy) -> bool:
    is_recent = last_used(one) < timedelta(days=policy.recent_days)
    return one.importance == "high" or one.id in promoted or is_recent


def is_old(one: Memory, policy: RetentionPolicy) -> bool:
    """Return whether a rule about age wants a memory."""
    if one.kind == "learning" and policy.archive_learnings_after_days is not None:
        return last_used(one).days >= policy.archive_learnings_after_days
    done = one.task_metadata and one.task_metadata.completed_at
    if one.kind == "task" and done and policy.archive_tasks_after_days is not None:
        return (NOW - done).days >= policy.archive_tasks_after_days
    return False


def is_over(those: list[Memory], policy: RetentionPolicy, kind: MemoryKind) -> bool:
    """Return whether memories are more than the soft limit of a kind allows."""
    limit = policy.limits.get(kind)
    if limit is None or limit.enforcement == "hard":
        return False
    of_kind = [one for one in those if one.kind is kind]
    size = sum(len(one.content.encode()) for one in of_kind)
    return (limit.max_memories is not None and len(of_kind) > limit.max_memories) or (
        limit.max_bytes is not None and size > limit.max_bytes
    )


@pytest.mark.file_only("its stores are files")
@settings(deadline=None, max_examples=60)
@given(all_made=st.lists(MADE, max_size=8), policy=POLICY)
def test_any_store_is_tidied_once_and_what_is_dear_is_never_touched(
    all_made: list[dict[str, Any]], policy: RetentionPolicy
) -> None:
    clock = Clock()
    with (
        tempfile.TemporaryDirectory() as root,
        AgentMemory("bob", root=root, clock=clock, synchronous="NORMAL") as memory,
    ):
        ids = [make(memory, clock, number, made) for number, made in enumerate(all_made)]
        items, said = tidied(memory, policy)
        there = {one.id: one for one in memory.list_recent()}
        promoted = {one for one, made in zip(ids, all_made, strict=True) if made["is_promoted"]}
        free = {one for one in there if not is_kept(there[one], promoted, policy)}
        gone = {item.memory_id for item in items}
        assert len(gone) == len(items)
        assert gone <= free
        old = {item.memory_id for item in items if "limit" not in item.reason}
        assert old == {one for one in free if is_old(there[one], policy)}
        left = [one for one in there.values() if one.id not in gone]
        for kind in MemoryKind:
            if is_over(left, policy, kind):
                assert not free & {one.id for one in left if one.kind is kind}
            # None went that could have stayed.
            for last in [i for i in items if i.kind is kind and i.memory_id not in old][-1:]:
                assert is_over([*left, there[last.memory_id]], policy, kind)
        soft = [note for note in said if "but each" in note]
        assert bool(soft) is any(is_over(left, policy, kind) for kind in MemoryKind)
        for item in items:
            memory.update(item.memory_id, archived=True)
        assert tidied(memory, policy) == ([], said)

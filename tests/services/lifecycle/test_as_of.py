"""The store as it stood at a time: one memory, the newest, a search, an export."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import NOW, Clock

from agent_memory import AgentMemory, ValidationError


@pytest.fixture
def days(memory: AgentMemory, clock: Clock) -> dict[str, str]:
    """Live through four days: store two, change one, delete the other, store a third."""
    first = memory.store("We use MySQL for the shop", tags=["database"])
    second = memory.store("The office is closed on Mondays")
    clock.forward(days=1)
    memory.update(first, content="We use PostgreSQL for the shop")
    clock.forward(days=1)
    memory.delete(second)
    clock.forward(days=1)
    third = memory.store("The shop sells lamps", user_id="ann")
    memory.archive(first)
    clock.forward(days=1)
    return {"first": first, "second": second, "third": third}


def at(day: float) -> str:
    from datetime import timedelta

    return (NOW + timedelta(days=day)).isoformat()


@pytest.mark.file_only("it reads the past")
@pytest.mark.parametrize(
    ("day", "contents"),
    [
        (-1, []),
        (0.5, ["We use MySQL for the shop", "The office is closed on Mondays"]),
        (1.5, ["We use PostgreSQL for the shop", "The office is closed on Mondays"]),
        (2.5, ["We use PostgreSQL for the shop"]),
        (3.5, ["The shop sells lamps"]),
    ],
)
def test_the_newest_as_they_were(
    memory: AgentMemory, days: dict[str, str], day: float, contents: list[str]
) -> None:
    assert len(days) == 3
    found = memory.list_recent(as_of=at(day))
    assert sorted(it.content for it in found) == sorted(contents)
    each = {it: memory.get(it, as_of=at(day)) for it in days.values()}
    there = {it.id: it for it in each.values() if it is not None and not it.archived}
    assert {it.id: it for it in found} == there


def test_a_search_as_of_a_day_finds_what_was_known_then(
    memory: AgentMemory, days: dict[str, str]
) -> None:
    assert memory.search("which database, MySQL?", as_of=at(0.5))[0].memory.content.count("MySQL")
    hit = memory.search("PostgreSQL", as_of=at(1.5))[0]
    assert (hit.memory.id, hit.memory.version) == (days["first"], 2)
    assert len(memory.search("MySQL", as_of=at(1.5))) == 0
    assert memory.search("office Mondays", as_of=at(1.5))[0].memory.id == days["second"]
    assert memory.get(days["second"], as_of=at(2.5)) is None
    found = memory.search("office Mondays", as_of=at(2.5))
    assert days["second"] not in {it.memory.id for it in found}
    (tagged,) = memory.search("shop", tags=["database"], as_of=at(0.5))
    assert tagged.memory.id == days["first"]


@pytest.mark.file_only("it reads the past")
def test_what_was_deleted_and_came_back_has_its_version_and_time_of_then(
    memory: AgentMemory, clock: Clock
) -> None:
    memory_id = memory.store("The shop opens at eight")
    clock.forward(days=1)
    memory.update(memory_id, content="The shop opens at nine")
    then = memory.get(memory_id)
    clock.forward(days=1)
    memory.delete(memory_id)
    clock.forward(days=1)
    memory.undo()
    clock.forward(days=1)
    memory.update(memory_id, content="The shop opens at ten")
    assert memory.get(memory_id, as_of=at(1.5)) == then
    assert memory.list_recent(as_of=at(1.5)) == [then]


def test_looking_back_changes_nothing(memory: AgentMemory, days: dict[str, str]) -> None:
    assert days
    before = memory.history(limit=1000), memory.list_recent(), memory.info().stats.total_queries
    memory.search("PostgreSQL", as_of=at(1.5))
    memory.list_recent(as_of=at(0.5))
    assert (
        memory.history(limit=1000), memory.list_recent(), memory.info().stats.total_queries
    ) == before  # fmt: skip


@pytest.mark.file_only("it reads the past")
def test_many_changes_go_back_at_once(memory: AgentMemory, clock: Clock) -> None:
    first = memory.store("an old word: quartz", tags=["keep"])
    clock.forward(days=1)
    newer = [{"content": f"a newer word: basalt {n}", "tags": ["new"]} for n in range(700)]
    memory.store_many(newer)
    memory.update(first, content="an old word: marble", tags=[])
    (hit,) = memory.search("quartz", as_of=at(0.5))
    assert (hit.memory.id, hit.memory.tags) == (first, ["keep"])
    assert len(memory.search("quartz", tags=["keep"], as_of=at(0.5))) == 1
    assert len(memory.search("basalt", as_of=at(0.5))) == 0
    assert [it.id for it in memory.list_recent(1000, as_of=at(0.5))] == [first]


def test_an_export_as_of_a_time_is_that_of_the_store_then(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    memory.store("one")
    kept = memory.store("two")
    then = memory.export(tmp_path / "then.yaml")
    clock.forward(hours=1)
    memory.update(kept, content="two, changed")
    memory.store("three")
    memory.export(tmp_path / "later.yaml", as_of=NOW)
    assert then.memory_count == 2
    lines = {
        name: [it for it in (tmp_path / f"{name}.yaml").read_text().splitlines()
               if "last_accessed" not in it]
        for name in ("then", "later")
    }  # fmt: skip
    assert lines["later"] == lines["then"]


def test_by_meaning_as_well(memory: AgentMemory, clock: Clock) -> None:
    first = memory.store("We chose PostgreSQL for the new service")
    memory.store("The cat sleeps on the sofa all day")
    memory.migrate(embedder="wordllama")
    clock.forward(days=1)
    memory.delete(first)
    memory.store("Lunch is at noon")
    assert memory.search("database choice", limit=1, as_of=at(0.5))[0].memory.id == first
    assert first not in {hit.memory.id for hit in memory.search("database choice")}


def test_a_date_is_the_whole_of_its_day_as_it_is_for_until(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    memory.store("stored that day", id="mem-1", timestamp=clock())
    date = clock().date()
    day = date.isoformat()
    clock.forward(days=1)
    memory.update("mem-1", content="changed on the next day")
    memory.store("stored on the next day", timestamp=clock())
    for listed in (
        memory.list_recent(as_of=date),
        [hit.memory for hit in memory.search("stored", since=date, until=date, as_of=date)],
        memory.list_recent(as_of=day),
        [hit.memory for hit in memory.search("stored", since=day, until=day, as_of=day)],
        [memory.get("mem-1", as_of=day)],
        [hit.memory for hit in memory.search("stored", as_of=day)],
    ):
        assert [it and it.content for it in listed] == ["stored that day"]
    assert memory.export(tmp_path / "then.yaml", as_of=day).memory_count == 1
    assert memory.list_recent(as_of=f"{day}T00:00:00Z") == []


def test_a_time_that_is_none_is_refused(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError, match="as_of"):
        memory.get("mem-1", as_of="yesterday-ish")
    with pytest.raises(ValidationError, match="as_of"):
        memory.list_recent(as_of="2026-02-30")
    with pytest.raises(ValidationError, match="shared"):
        memory.search("x", as_of=NOW, shared=["team"])


def test_a_search_before_the_first_memory_does_not_say_that_there_are_none_now(
    memory: AgentMemory,
) -> None:
    memory.store("Deploys need two approvals")
    found = memory.search("deploys", as_of="2020-01-01T00:00:00Z").search_metadata
    assert found.reason == "nothing_stored"
    assert found.explanation == "this agent had no memories at 2020-01-01T00:00:00.000000Z"

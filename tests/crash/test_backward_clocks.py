"""Clocks that go back, by themselves or by another machine's: order and history hold."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from conftest import NOW, Clock
from places import finished
from survival.verbs import NAME, Verb, Words, verbs

from agent_memory import AgentMemory


class Backward(Clock):
    """A clock of which each look is an hour before the one before."""

    def __call__(self) -> datetime:
        self.now -= timedelta(hours=1)
        return self.now


@pytest.fixture
def backward() -> Backward:
    return Backward()


def test_history_has_the_order_in_which_things_were_done(root: Path, backward: Backward) -> None:
    with AgentMemory("bob", root=root, clock=backward) as memory:
        ids = [memory.store(f"fact {n} of the walnut") for n in range(20)]
        assert len(set(ids)) == 20
        for turn in range(4):
            memory.update(ids[3], content=f"changed {turn} times")
        memory.delete(ids[5])
        numbers = [entry.change_id for entry in memory.history(limit=100)]
        assert numbers == sorted(numbers, reverse=True)
        told = [entry.new_values for entry in reversed(memory.history(ids[3]))]
        assert [(it or {}).get("content") for it in told][1:] == [
            f"changed {turn} times" for turn in range(4)
        ]
        found = memory.get(ids[3])
        assert found is not None
        assert (found.content, found.version) == ("changed 3 times", 5)
        assert memory.history(ids[5])[0].event == "DELETE"
        assert memory.check().problems == []


def test_undoing_takes_back_what_was_done_last(root: Path, backward: Backward) -> None:
    with AgentMemory("bob", root=root, clock=backward, session_id="s") as memory:
        memory.store_many([{"id": f"fact-{n}", "content": f"fact {n}"} for n in range(10)])
        memory.delete_many(["fact-1", "fact-2"])
        memory.archive(["fact-3"])
        memory.undo()
        assert memory.count() == 8
        memory.undo()  # of the undoing
        assert memory.count() == 7
        assert memory.check().problems == []


def test_backups_keep_the_order_in_which_they_were_made(root: Path, backward: Backward) -> None:
    with AgentMemory("bob", root=root, clock=backward) as memory:
        memory.configure(backups_kept=3)
        for turn in range(6):
            memory.store(f"fact {turn}", id=f"fact-{turn}")
            memory.delete_many([f"fact-{turn}"])
        by_hand = [memory.backup() for _ in range(3)]
        assert len(set(by_hand)) == 3
        automatic = [one for one in memory.backups() if one.reason]
        assert len(automatic) <= 3
        counts = [one.memory_count or 0 for one in automatic]
        assert counts == sorted(counts, reverse=True)


def test_a_tidying_and_an_echo_raise_nothing(root: Path, clock: Clock) -> None:
    with AgentMemory("bob", root=root, clock=clock, embedder=None) as memory:
        memory.configure(retention="standard")
        memory.store_many([{"content": f"walnut fact {n}"} for n in range(10)])
        assert memory.search("walnut fact 3")
        clock.now = NOW - timedelta(days=900)  # the echo is of the future
        assert memory.tidy().archived == []
        before = memory.count()
        again = memory.store("walnut fact 3")
        assert memory.get(again) is not None
        assert memory.count() in (before, before + 1)
        assert memory.search("walnut", now=clock.now)
        assert memory.context()
        clock.now = NOW + timedelta(days=1)
        assert {it.memory_id for it in memory.tidy().archived} <= {again}  # stored so long ago
        assert memory.count() >= 10
        assert memory.check().problems == []


@pytest.mark.parametrize("verb", [it for it in verbs() if not it.opens], ids=lambda it: it.name)
def test_every_verb_runs_with_a_clock_that_goes_back(verb: Verb, tmp_path: Path) -> None:
    verb.prepare(tmp_path)
    with AgentMemory.open(tmp_path / NAME) as memory:
        before = {one.id for one in memory.list_recent(1000)}
    clock = Backward()
    options: dict[str, object] = {"embedder": None, "clock": clock}
    if verb.name in ("embed", "migrate", "switch of model", "rollback"):
        options["embedder"] = Words(verb.dimensions)
    with AgentMemory.open(tmp_path / NAME, **options) as memory:  # type: ignore[arg-type]
        verb.act(memory, tmp_path)
        numbers = [entry.change_id for entry in memory.history(limit=1000)]
        assert numbers == sorted(numbers, reverse=True)
        assert memory.check().problems == []
        gone = before - {one.id for one in memory.list_recent(1000)}
    destroys = "delete erase archive undo restore tidy add approve merge"
    assert not gone or verb.name.startswith(tuple(destroys.split())), gone


def test_an_export_of_the_past_has_the_beginning_of_each_history(
    root: Path, clock: Clock, tmp_path: Path
) -> None:
    clock.now = NOW + timedelta(days=365)  # a year ahead, until it is set right
    with AgentMemory("bob", root=root, clock=clock) as memory:
        changed, deleted = memory.store("walnut in the hall"), memory.store("lantern at the door")
        clock.now = NOW
        memory.update(changed, content="walnut in the yard")
        memory.delete(deleted)
        after = memory.store("granite by the gate")
        memory.export(tmp_path / "past.yaml", as_of=NOW + timedelta(days=1))
    with AgentMemory("carol", root=root, clock=clock) as other:
        other.import_(tmp_path / "past.yaml")
        assert {one.id for one in other.list_recent(10)} == {changed, after}
        assert [entry.event for entry in other.history(changed)] == ["UPDATE", "ADD"]
        assert [entry.event for entry in other.history(deleted)] == ["DELETE", "ADD"]
        other.undo()
        assert other.check().problems == []


def test_an_export_of_the_past_has_the_ends_of_each_relationship(
    root: Path, clock: Clock, tmp_path: Path
) -> None:
    clock.now = NOW + timedelta(days=365)
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory.graph.add("Ann", "knows", "Bea")
        clock.now = NOW
        memory.graph.add("Ann", "knows", "Cid")
        memory.export(tmp_path / "past.yaml", as_of=NOW + timedelta(days=1))
    with AgentMemory("carol", root=root, clock=clock) as other:
        other.import_(tmp_path / "past.yaml")
        assert [edge.target for edge in other.graph.relationships()] == ["Cid"]
        assert {entity.name for entity in other.graph.entities()} == {"Ann", "Cid"}
        assert other.check().problems == []


_STORES = """
import random, sys
from datetime import UTC, datetime, timedelta
from agent_memory import AgentMemory
chance = random.Random(int(sys.argv[2]))
def clock():
    return datetime(2026, 1, 30, tzinfo=UTC) + timedelta(seconds=chance.uniform(-1e8, 1e8))
with AgentMemory("bob", root=sys.argv[1], clock=clock, session_id=sys.argv[2]) as memory:
    for number in range(25):
        memory.store(f"process {sys.argv[2]} fact {number} of the walnut")
        memory.search("walnut")
"""


def test_processes_whose_clocks_disagree_lose_nothing(root: Path) -> None:
    run: Callable[[int], str] = lambda number: finished(_STORES, root, number)  # noqa: E731
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3)))
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 75
        found = memory.history(limit=1000)
        assert len({entry.change_id for entry in found}) == len(found)
        order = {number: [] for number in range(3)}  # type: ignore[var-annotated]
        for entry in reversed(found):
            if entry.event == "ADD":
                words = str((entry.new_values or {}).get("content", "")).split()
                order[int(words[1])].append(int(words[3]))
        assert order == {number: list(range(25)) for number in range(3)}
        recent = [one.timestamp for one in memory.list_recent(100)]
        assert recent == sorted(recent, reverse=True)
        assert memory.check().problems == []

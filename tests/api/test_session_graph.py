"""What an attacker would try: learn from his run's graph what other runs of the user say.

The same is said in one run of two stores: alone, and among what other runs, and the user in none,
say of the same and of others. Whatever a session of that run is told must be the same in both.

``GRAPH_SEEDS=50 pytest tests/api/test_session_graph.py`` tries more stories than a few.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock

from agent_memory import AgentMemory, AgentMemoryError, ValidationError
from agent_memory.api.session import SessionMemory

NAMES = ("Ann", "Ben", "ACME", "Acme Inc", "Oslo", "I", "tea")
VERBS = ("lives_in", "works_at", "likes", "knows")
QUERY = "Ann Acme Inc tea lives in Oslo"
SEEDS = int(os.environ.get("GRAPH_SEEDS", "2"))
ID = re.compile(r"(mem|ent|rel)-[0-9a-f]{12}")
Step = tuple[str, dict[str, Any]]


def session_of(memory: AgentMemory, run_id: str | None) -> SessionMemory:
    """Open the session of a run of Alice, or of Alice herself."""
    run = {} if run_id is None else {"run_id": run_id}
    return memory.session({"user_id": "alice", **run})


def seen(session: SessionMemory, place: Path) -> str:
    """Return all that a session is told of its graph, with the ids by the order they come in."""
    graph = session.graph
    verbs: list[Callable[[], object]] = [
        graph.entities,
        graph.relationships,
        lambda: graph.relationships(include_closed=True),
        lambda: graph.relationships(as_of=NOW + timedelta(hours=5)),
        lambda: graph.export(place, format="json", overwrite=True).read_text("utf-8"),
        lambda: [hit.memory.id for hit in session.search(QUERY, 3, graph=True)],
    ]
    for name in NAMES:
        verbs += [
            partial(graph.entity, name),
            partial(graph.relationships, name),
            partial(graph.neighbours, name, 3),
            partial(distance, session, name),
            partial(graph.related_memory_ids, f"what of {name}?"),
        ]
    return shown(*map(told, verbs))


def distance(session: SessionMemory, name: str) -> int:
    """Return how far Oslo is: of several ways as long, `path` tells any."""
    return len(session.graph.path(name, "Oslo").names)


def told(verb: Callable[[], object]) -> str:
    try:
        return repr(verb())
    except AgentMemoryError as error:
        return f"{type(error).__name__}: {error}"


def shown(*texts: str) -> str:
    """Return texts, in which ids are counted: they are random."""
    numbers: dict[str, int] = {}
    return ID.sub(lambda found: f"#{numbers.setdefault(found[0], len(numbers))}", "\n".join(texts))


def own_steps(dice: random.Random) -> Iterator[Step]:
    """Yield what is done in the run that is looked at."""
    for number in range(14):
        kind = dice.choice(("add", "add", "add", "update", "remove", "entity", "undo", "forget"))
        yield kind, values_of(dice, number)


def others_steps(dice: random.Random, number: int) -> Iterator[Step]:
    """Yield what is done meanwhile in other runs, and by Alice in none."""
    for place in range(dice.randrange(4)):
        run_id = dice.choice(("other", "third", None))
        kind = dice.choice(("add", "add", "update", "entity"))
        if run_id is not None and dice.random() < 0.3:  # Alice herself may delete what is a run's
            kind = dice.choice(("remove", "delete", "undo"))
        values = values_of(dice, 100 * number + place)
        yield kind, {**values, "confidence": 0.99, "run_id": run_id, "temporal_context": "secretly"}


def values_of(dice: random.Random, number: int) -> dict[str, Any]:
    source, target = dice.sample(NAMES, 2)
    return {
        "number": number,
        "source": source,
        "relationship": dice.choice(VERBS),
        "target": target,
        "confidence": dice.choice((0.2, 0.5, 0.8)),
        "valid_from": NOW - timedelta(days=dice.randrange(300)),
        "temporal_context": dice.choice((None, "these days", "in summer")),
        "type": dice.choice((None, "person", "company")),
    }


def take(memory: AgentMemory, step: Step, run_id: str | None) -> str:
    """Take a step, in a session of a run, and return what it tells."""
    kind, values = step
    session = session_of(memory, run_id)
    edge = [values[name] for name in ("source", "relationship", "target")]
    more = {name: values[name] for name in ("confidence", "valid_from")}
    mine = [memory.id for memory in session.list_recent(50)]
    if kind in ("add", "update", "entity"):
        text = f"{values['number']}: {' '.join(edge)} {values['confidence']}"
        memory_id = session.store(text, id=f"{session.id_prefix}{values['number']}")
    match kind:
        case "add":
            context = values["temporal_context"]
            return told(lambda: session.graph.add(
                *edge, memory_id=memory_id, temporal_context=context, **more))  # fmt: skip
        case "update":
            return told(lambda: session.graph.update(*edge, memory_id=memory_id, **more))
        case "entity":
            confidence = values["confidence"]
            return told(lambda: session.graph.add_entity(
                edge[0], memory_id=memory_id, type=values["type"],
                confidence=confidence))  # fmt: skip
        case "remove":
            return told(lambda: session.graph.remove(*edge))
        case "undo":
            return told(lambda: session.undo().verb)
        case _:
            return told(lambda: session.delete(mine[values["number"] % len(mine)]) if mine else 0)


@pytest.mark.file_only("its stores are files")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_run_is_told_the_same_whatever_other_runs_say(tmp_path: Path, seed: int) -> None:
    results = []
    for is_alone in (True, False):
        clock, dice = Clock(), random.Random(seed)
        answers = []
        root = tmp_path / str(is_alone)
        with AgentMemory("bob", root=root, clock=clock) as memory:
            for number, step in enumerate(own_steps(random.Random(seed))):
                clock.forward(hours=1)
                for other in () if is_alone else others_steps(dice, number):
                    take(memory, other, other[1]["run_id"])
                answers.append(shown(take(memory, step, "mine")))
                answers.append(seen(session_of(memory, "mine"), tmp_path / "graph.json"))
            assert memory.check().problems == []
        results.append(answers)
    for alone, among_others in zip(*results, strict=True):
        assert among_others == alone


@pytest.fixture
def runs(memory: AgentMemory) -> tuple[SessionMemory, SessionMemory]:
    """Give the sessions of two runs of Alice."""
    return session_of(memory, "first"), session_of(memory, "second")


def test_how_sure_another_run_is_and_since_when_is_not_shown(
    memory: AgentMemory, clock: Clock, runs: tuple[SessionMemory, SessionMemory]
) -> None:
    mine, other = runs
    own, others = mine.store("Ann lives in Oslo"), other.store("Ann lives in OSLO")
    mine.graph.add(
        "Ann", "lives_in", "Oslo", memory_id=own, confidence=0.4, valid_from="2026-01-01"
    )
    before = shown(told(mine.graph.relationships), told(mine.graph.entities))
    clock.forward(days=1)
    other.graph.add("ANN", "lives_in", "OSLO", memory_id=others, confidence=0.9,
                    valid_from="2019-05-01", temporal_context="secretly")  # fmt: skip
    other.graph.add_entity("Ann", type="spy", confidence=0.7, memory_id=others)
    assert shown(told(mine.graph.relationships), told(mine.graph.entities)) == before
    (edge,) = other.graph.relationships()
    assert (edge.source, edge.confidence, edge.temporal_context) == ("ANN", 0.9, "secretly")
    (edge,) = memory.graph.relationships(user_id="alice")
    assert (edge.source, edge.confidence, edge.valid_from.year) == ("Ann", 0.9, 2019)
    assert edge.source_memory_ids == [own, others]


def test_what_another_run_ended_still_holds(
    memory: AgentMemory, clock: Clock, runs: tuple[SessionMemory, SessionMemory]
) -> None:
    mine, other = runs
    own = mine.store("I live in Oslo")
    mine.graph.add("I", "lives_in", "Oslo", memory_id=own)
    clock.forward(days=1)
    other.graph.add("I", "lives_in", "Rome", memory_id=other.store("I live in Rome"))
    assert [edge.target for edge in mine.graph.relationships()] == ["Oslo"]
    assert [edge.target for edge in memory.graph.relationships()] == ["Rome"]
    clock.forward(days=1)
    change = mine.graph.update("I", "lives_in", "Bonn", memory_id=mine.store("I moved to Bonn"))
    assert (len(change.closed), change.note) == (1, None)
    (old, new) = mine.graph.relationships(include_closed=True)
    assert (old.target, old.valid_to, new.target) == ("Oslo", clock.now, "Bonn")
    assert [edge.target for edge in other.graph.relationships()] == ["Rome"]
    assert [edge.target for edge in memory.graph.relationships()] == ["Bonn"]


def test_a_run_takes_back_what_its_own_memories_say(
    memory: AgentMemory, runs: tuple[SessionMemory, SessionMemory]
) -> None:
    mine, other = runs
    own = mine.store("Ann likes tea")
    mine.graph.add("Ann", "likes", "tea", memory_id=own)
    other.graph.add("Ann", "likes", "tea", memory_id=other.store("tea for Ann"))
    mine.graph.remove("Ann", "likes", "tea")
    assert mine.graph.relationships() == memory.graph.relationships() == []
    assert [edge.target for edge in other.graph.relationships()] == ["tea"]
    mine.delete(own)  # which says so
    assert [edge.target for edge in memory.graph.relationships()] == ["tea"]


def test_what_is_said_again_after_another_run_ended_it_is_one_relationship(
    memory: AgentMemory, clock: Clock, runs: tuple[SessionMemory, SessionMemory]
) -> None:
    mine, other = runs
    for session, city in ((mine, "Oslo"), (other, "Rome"), (mine, "Oslo")):
        text = f"On {clock.now:%d %B} I live in {city}"
        session.graph.add("I", "lives_in", city, memory_id=session.store(text), confidence=0.5)
        clock.forward(days=1)
    assert len(memory.graph.relationships(include_closed=True)) == 3
    (edge,) = mine.graph.relationships(include_closed=True)
    assert (edge.target, edge.valid_to, len(edge.source_memory_ids)) == ("Oslo", None, 2)
    mine.graph.remove("I", "lives_in", "Oslo")
    (edge,) = mine.graph.relationships(include_closed=True)
    assert edge.valid_to == clock.now
    assert memory.graph.relationships() == []
    assert [edge.target for edge in other.graph.relationships()] == ["Rome"]


def test_the_names_of_another_run_lead_nowhere(
    runs: tuple[SessionMemory, SessionMemory],
) -> None:
    mine, other = runs
    own, others = mine.store("Acme is in Oslo"), other.store("Acme, called Zeppelin")
    mine.graph.add("Acme", "is_in", "Oslo", memory_id=own)
    other.graph.add_entity("Acme", aliases=["Zeppelin"], memory_id=others)
    other.graph.add_entity("Kraken", memory_id=others)
    assert mine.graph.entity("Zeppelin") is None
    assert mine.graph.related_memory_ids("what of Zeppelin?") == []
    with pytest.raises(ValidationError, match="no entity"):
        mine.graph.neighbours("Zeppelin")
    acme = mine.graph.add_entity("Acme", aliases=["Kraken"], memory_id=own)
    assert acme.aliases == ["Kraken"]  # no error says that another run has one of that name
    assert mine.graph.entity("kraken") == acme


def test_what_a_memory_of_a_run_says_no_more_holds_there_no_more(
    runs: tuple[SessionMemory, SessionMemory],
) -> None:
    mine, other = runs
    for session in runs:
        session.add("I live in Oslo.", graph=True)
    answer = mine.add("Actually I live in Rome, not Oslo.", graph=True)
    assert [memory.event for memory in answer.data] == ["UPDATE"]
    assert "Oslo" not in [edge.target for edge in mine.graph.relationships()]
    assert [edge.target for edge in other.graph.relationships()] == ["Oslo"]

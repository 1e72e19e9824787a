"""Changing the graph: what holds, what held, what is refused, and whose it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import Clock

from agent_memory import AgentMemory, MemoryNotFound, ValidationError
from agent_memory.api.graph import MemoryGraph
from agent_memory.models.graph import EdgeView, GraphAction


@pytest.fixture
def graph(memory: AgentMemory) -> MemoryGraph:
    return memory.graph


def told(edges: list[EdgeView]) -> list[str]:
    return [f"{it.source} {it.relationship} {it.target}" for it in edges]


def update(action: str, *words: str, **more: Any) -> dict[str, Any]:
    source, relationship, target = words
    return {"action": action, "source": source, "relationship": relationship, "target": target,
            **more}  # fmt: skip


# Opening and closing ------------------------------------------------------------------------------


def test_what_is_added_holds_from_now_on(graph: MemoryGraph, clock: Clock) -> None:
    before = clock.now
    clock.forward(days=1)
    edge = graph.add("Alice", "works at", "Acme", confidence=0.8, temporal_context="current")
    assert (edge.source, edge.relationship, edge.target) == ("Alice", "works_at", "Acme")
    assert (edge.valid_from, edge.valid_to, edge.confidence) == (clock.now, None, 0.8)
    assert graph.relationships() == graph.relationships("acme") == [edge]
    assert graph.relationships(as_of=before) == []
    assert edge.record().metadata.temporal_context == "current"
    assert edge.id.startswith("rel-")
    assert edge.source_id.startswith("ent-")


def test_a_changed_fact_closes_the_old_edge_and_opens_a_new_one(
    graph: MemoryGraph, clock: Clock
) -> None:
    old = graph.add("I", "likes", "pasta", user_id="u1")
    last_week = clock.now
    clock.forward(days=7)
    change = graph.update(
        "user", "loves", "Pasta", old_relationship="likes", confidence=0.9, user_id="u1"
    )
    assert (change.closed, change.note, change.refused) == ([old.id], None, False)
    assert told(graph.relationships(user_id="u1")) == ["USER_ID loves pasta"]
    assert told(graph.relationships(user_id="u1", as_of=last_week)) == ["USER_ID likes pasta"]
    # At the moment of the change the new one holds, and only that.
    assert told(graph.relationships(as_of=clock.now)) == ["USER_ID loves pasta"]
    every = graph.relationships(include_closed=True)
    assert [(it.relationship, it.valid_to) for it in every] == [
        ("likes", clock.now), ("loves", None),
    ]  # fmt: skip


def test_remove_closes_and_never_deletes(graph: MemoryGraph, clock: Clock) -> None:
    edge = graph.add("Alice", "plays", "chess")
    clock.forward(days=1)
    assert graph.remove("alice", "plays", "Chess").closed == [edge.id]
    assert graph.relationships() == []
    assert told(graph.relationships(include_closed=True)) == ["Alice plays chess"]
    with pytest.raises(ValidationError, match=r"no such relationship holds now.*alice plays Chess"):
        graph.remove("alice", "plays", "Chess")
    again = graph.add("Alice", "plays", "chess")
    assert again.id != edge.id


def test_what_holds_already_is_not_doubled(
    graph: MemoryGraph, memory: AgentMemory, clock: Clock
) -> None:
    ids = memory.store_many([{"content": "Alice plays chess"}, {"content": "Alice: chess again"}])
    first = graph.add("Alice", "plays", "chess", confidence=0.5, memory_id=ids[0])
    clock.forward(days=1)
    second = graph.add("ALICE", "Plays", " chess ", confidence=0.7, memory_id=ids[1])
    assert second.id == first.id
    assert (second.confidence, second.source_memory_ids) == (0.7, ids)
    assert second.valid_from == first.valid_from
    earlier = graph.add("Alice", "plays", "chess", valid_from="2020-01-01")
    assert (earlier.id, earlier.valid_from.year) == (first.id, 2020)


def test_some_relationships_hold_with_one_at_a_time(graph: MemoryGraph, clock: Clock) -> None:
    graph.add("Alice", "lives_in", "Paris")
    clock.forward(days=1)
    graph.add("Alice", "lives_in", "Berlin")
    graph.add("Alice", "likes", "tea")
    graph.add("Alice", "likes", "coffee")
    graph.add("Alice", "reads", "Emma", exclusive=True)
    graph.add("Alice", "reads", "Ulysses", exclusive=True)
    graph.add("Alice", "works_at", "Acme")
    graph.add("Alice", "works_at", "Beta", exclusive=False)
    assert told(graph.relationships()) == [
        "Alice lives_in Berlin", "Alice likes tea", "Alice likes coffee", "Alice reads Ulysses",
        "Alice works_at Acme", "Alice works_at Beta",
    ]  # fmt: skip


def test_what_began_later_stays_when_an_older_fact_is_told(graph: MemoryGraph) -> None:
    graph.add("Alice", "lives_in", "Berlin", valid_from="2024-01-01")
    paris = graph.add("Alice", "lives_in", "Paris", valid_from="2020-01-01")
    assert paris.valid_to is not None
    assert paris.valid_to.year == 2024
    assert told(graph.relationships()) == ["Alice lives_in Berlin"]
    assert told(graph.relationships(as_of="2022-01-01")) == ["Alice lives_in Paris"]


def test_what_begins_in_the_future_does_not_hold_yet(graph: MemoryGraph, clock: Clock) -> None:
    graph.add("Alice", "visits", "Rome", valid_from="2026-07-01")
    assert graph.relationships() == []
    clock.forward(days=365)
    assert told(graph.relationships()) == ["Alice visits Rome"]


# Instructions -------------------------------------------------------------------------------------


def test_instructions_are_carried_out_in_order_and_told(graph: MemoryGraph) -> None:
    graph.add("USER_ID", "likes", "Italian cuisine", user_id="u1")
    report = graph.apply(
        {
            "updates": [
                update("UPDATE", "USER_ID", "loves", "Italian cuisine", old_relationship="likes"),
                update("ADD", "USER_ID", "especially_enjoys", "pasta dishes", confidence=0.85),
                update("DELETE", "USER_ID", "especially_enjoys", "pasta dishes"),
            ]
        },
        user_id="u1",
    )
    assert [(it.action, it.refused, it.note) for it in report.changes] == [
        (GraphAction.UPDATE, False, None),
        (GraphAction.ADD, False, None),
        (GraphAction.DELETE, False, None),
    ]
    assert told(graph.relationships(user_id="u1")) == ["USER_ID loves Italian cuisine"]


def test_an_instruction_about_what_is_not_there_touches_nothing_else(graph: MemoryGraph) -> None:
    kept = graph.add("Alice", "likes", "tea")
    graph.add("Alice", "likes", "coffee")
    report = graph.apply(
        {
            "updates": [
                update("DELETE", "Alice", "loves", "tea"),
                update("DELETE", "Alicia", "likes", "tea"),
                update("UPDATE", "Alice", "adores", "milk", old_relationship="likes"),
                update("UPDATE", "Alice", "likes", "juice"),
            ]
        }
    )
    assert [it.refused for it in report.changes] == [True, True, False, False]
    assert report.refused == report.changes[:2]
    assert "these two had no likes to replace: it was added" in str(report.changes[2].note)
    assert "2 relationships are likes" in str(report.changes[3].note)
    assert [it.closed for it in report.changes] == [[], [], [], []]
    assert kept in graph.relationships()
    assert told(graph.relationships()) == [
        "Alice likes tea", "Alice likes coffee", "Alice adores milk", "Alice likes juice",
    ]  # fmt: skip
    assert graph.entity("Alicia") is None


def test_an_update_without_an_old_relationship_moves_the_target(graph: MemoryGraph) -> None:
    old = graph.add("Alice", "drives", "a van")
    report = graph.apply({"updates": [update("UPDATE", "Alice", "drives", "a bus")]})
    assert report.changes[0].closed == [old.id]
    again = graph.apply({"updates": [update("UPDATE", "Alice", "drives", "a bus")]})
    assert (again.changes[0].closed, again.changes[0].note) == ([], "it already holds")
    assert told(graph.relationships()) == ["Alice drives a bus"]


def test_all_instructions_or_none(graph: MemoryGraph) -> None:
    one = update("ADD", "Alice", "likes", "tea")
    with pytest.raises(MemoryNotFound, match="mem-none"):
        graph.apply({"updates": [one]}, source_memory_ids=["mem-none"])
    with pytest.raises(ValidationError, match="confidence"):
        graph.apply({"updates": [one, {**one, "confidence": 7}]})
    assert graph.entities() == []


def test_a_rejected_value_is_refused_and_not_said(graph: MemoryGraph, memory: AgentMemory) -> None:
    memory.reject("hunter2")
    report = graph.apply({"updates": [update("ADD", "Alice", "uses", "hunter2"),
                                      update("ADD", "Alice", "uses", "vim")]})  # fmt: skip
    assert [it.refused for it in report.changes] == [True, False]
    assert "hunter2" not in str(report.changes[0].note)
    assert told(graph.relationships()) == ["Alice uses vim"]
    assert graph.entity("hunter2") is None


# Names --------------------------------------------------------------------------------------------


def test_names_that_mean_the_same_are_one_entity(graph: MemoryGraph) -> None:
    graph.add("New York", "is_in", "America")
    graph.add("NEW  york", "has", "the Met")
    assert [it.name for it in graph.entities()] == ["New York", "America", "the Met"]


def test_the_user_is_one_entity_however_they_are_called(graph: MemoryGraph) -> None:
    for name in ("USER_ID", "user", "I", "me", "The user", "u1"):
        graph.add(name, "likes", "tea", user_id="u1")
    (user, tea) = graph.entities(user_id="u1")
    assert (user.name, user.type, user.aliases) == ("USER_ID", "person", ["user", "I", "me"])
    assert graph.entity("i", user_id="u1") == user
    assert user.record().metadata.user_id == "u1"
    assert tea.record().metadata.agent_id == "bob"


def test_an_entity_gets_a_type_and_aliases(graph: MemoryGraph) -> None:
    first = graph.add_entity("Robert", aliases=["Bob", "bobby"], confidence=0.6)
    assert (first.type, first.aliases, first.confidence) == (None, ["Bob", "bobby"], 0.6)
    second = graph.add_entity("BOB", type="person", aliases=["Bobby", "Rob"])
    assert (second.id, second.name, second.type) == (first.id, "Robert", "person")
    assert second.aliases == ["Bob", "bobby", "Rob"]
    graph.add_entity("Alice")
    with pytest.raises(ValidationError, match="is already a name of 'Robert': merge the two"):
        graph.add_entity("Alice", aliases=["Rob"])


def test_merging_moves_aliases_relationships_and_memories(
    graph: MemoryGraph, memory: AgentMemory
) -> None:
    ids = memory.store_many([{"content": "Bob plays chess"}, {"content": "Robert plays chess"}])
    graph.add_entity("Bob", type="person", aliases=["Bobby"], memory_id=ids[0])
    graph.add("Bob", "plays", "chess", memory_id=ids[0])
    graph.add("Robert", "plays", "chess", memory_id=ids[1])
    graph.add("Alice", "knows", "Bob")
    merged = graph.merge("Robert", "Bobby")
    assert (merged.name, merged.type, merged.aliases) == ("Robert", "person", ["Bobby", "Bob"])
    assert sorted(merged.source_memory_ids) == sorted(ids)
    assert told(graph.relationships()) == ["Robert plays chess", "Alice knows Robert"]
    assert sorted(graph.relationships("bob")[0].source_memory_ids) == sorted(ids)
    assert graph.merge("bob", "Robert") == merged
    with pytest.raises(ValidationError, match="no entity has the name 'Nobody'"):
        graph.merge("Robert", "Nobody")


# Whose it is --------------------------------------------------------------------------------------


def test_users_do_not_see_each_others_graphs(graph: MemoryGraph, memory: AgentMemory) -> None:
    theirs = memory.store("I like secrets", user_id="u2")
    graph.add("I", "likes", "tea", user_id="u1")
    graph.add("I", "likes", "secrets", memory_id=theirs)
    graph.add("secrets", "are_about", "tea", user_id="u2")
    assert told(graph.relationships(user_id="u1")) == ["USER_ID likes tea"]
    assert told(graph.relationships(user_id="u2")) == [
        "USER_ID likes secrets", "secrets are_about tea",
    ]  # fmt: skip
    assert len(graph.relationships()) == 3
    assert [it.name for it in graph.entities(user_id="u1")] == ["USER_ID", "tea"]
    assert graph.entity("secrets", user_id="u1") is None
    assert told(graph.neighbours("tea", 4, user_id="u1").edges) == ["USER_ID likes tea"]
    assert graph.related_memory_ids("what of secrets do I like?", user_id="u1") == []
    assert graph.related_memory_ids("what of secrets do I like?", user_id="u2") == [theirs]
    assert not graph.path("me", "tea", user_id="u2", max_depth=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.relationships("secrets", user_id="u1"),
        lambda g: g.neighbours("secrets", user_id="u1"),
        lambda g: g.path("me", "secrets", user_id="u1"),
        lambda g: g.merge("me", "secrets", user_id="u1"),
    ],
    ids=["relationships", "neighbours", "path", "merge"],
)
def test_what_only_another_user_has_is_as_unknown_as_what_nobody_has(
    graph: MemoryGraph, call: Callable[[MemoryGraph], object]
) -> None:
    graph.add("me", "likes", "secrets", user_id="u2")
    graph.add("me", "likes", "tea", user_id="u1")
    with pytest.raises(ValidationError, match="no entity has the name 'secrets'"):
        call(graph)


def test_a_memory_of_another_user_is_no_source(graph: MemoryGraph, memory: AgentMemory) -> None:
    theirs, ours = memory.store("a", user_id="u2"), memory.store("b", user_id="u1")
    with pytest.raises(MemoryNotFound):
        graph.add("I", "like", "tea", user_id="u1", memory_id=theirs)
    with pytest.raises(ValidationError, match="several users"):
        graph.apply({"updates": []}, source_memory_ids=[theirs, ours])


# What is given ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("", "likes", "tea"), {}, "source: a name must have 1 to 200"),
        (("Alice", "  ", "tea"), {}, "relationship: "),
        (("Alice", "likes", "x" * 201), {}, "target: .*201"),
        (("Alice", "likes", 5), {}, "target: must be a string"),
        (("Alice", "likes", "a\x00b"), {}, "NUL"),
        (("Alice", "likes", "tea"), {"confidence": 1.1}, "confidence: must be a number from 0"),
        (("Alice", "likes", "tea"), {"confidence": True}, "confidence"),
        (("Alice", "likes", "tea"), {"valid_from": "soon"}, "'soon' is not a time"),
        (("Alice", "likes", "tea"), {"user_id": " "}, "user_id"),
    ],
)
def test_what_cannot_be_added_is_named(
    graph: MemoryGraph, words: tuple[Any, Any, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        graph.add(*words, **options)
    assert graph.entities() == []


def test_unknown_memories_names_and_bounds_are_refused(graph: MemoryGraph) -> None:
    with pytest.raises(MemoryNotFound, match="mem-none"):
        graph.add("Alice", "likes", "tea", memory_id="mem-none")
    assert graph.entity("Alice") is None
    graph.add_entity("Alice")
    for depth in (0, 9):
        with pytest.raises(ValidationError, match=r"depth.*from 1 to 8"):
            graph.neighbours("Alice", depth)
    with pytest.raises(ValidationError, match="'Nobody'"):
        graph.path("Alice", "Nobody")
    with pytest.raises(ValidationError, match="must be a list"):
        graph.add_entity("Alice", aliases="Al")

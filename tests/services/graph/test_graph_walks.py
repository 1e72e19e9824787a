"""Walking through the graph: neighbours, paths, cycles, bounds, and what a query names."""

from __future__ import annotations

from collections import deque
from itertools import count

import pytest
from conftest import Clock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory
from agent_memory.api.graph import MemoryGraph
from agent_memory.models.enums import MatchType
from agent_memory.storage import graph_tables

QUICK = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
NUMBERS = count()
EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=14)


@pytest.fixture
def graph(memory: AgentMemory) -> MemoryGraph:
    return memory.graph


def join(graph: MemoryGraph, *pairs: str, **options: str) -> None:
    for pair in pairs:
        source, target = pair.split(">")
        graph.add(source, "knows", target, **options)  # type: ignore[arg-type]


def test_neighbours_are_told_by_distance_whatever_way_edges_point(graph: MemoryGraph) -> None:
    join(graph, "a>b", "c>a", "b>d", "d>e", "x>y")
    near = graph.neighbours("A")
    assert [(it.name, it.distance) for it in near.neighbours] == [("b", 1), ("c", 1)]
    assert len(near.edges) == 2
    far = graph.neighbours("a", 3)
    assert {it.name: it.distance for it in far.neighbours} == {"b": 1, "c": 1, "d": 2, "e": 3}
    assert (far.name, far.truncated, len(far.edges)) == ("a", False, 4)


def test_a_path_is_a_shortest_one_and_tells_its_edges(graph: MemoryGraph) -> None:
    join(graph, "a>b", "b>c", "c>a", "d>c", "d>e", "b>f", "f>g", "g>e", "q>r")
    path = graph.path("a", "e")
    assert path.names == ["a", "c", "d", "e"]
    assert [(it.source, it.target) for it in path.edges] == [("c", "a"), ("d", "c"), ("d", "e")]
    assert not graph.path("a", "e", max_depth=2)
    assert not graph.path("a", "q", max_depth=8).truncated
    here = graph.path("a", "a")
    assert here
    assert (here.names, here.edges) == (["a"], [])


def test_walks_go_by_what_held_then(graph: MemoryGraph, clock: Clock) -> None:
    join(graph, "a>b", "b>c")
    before = clock.now
    clock.forward(days=1)
    graph.remove("b", "knows", "c")
    assert not graph.path("a", "c")
    assert graph.path("a", "c", as_of=before).names == ["a", "b", "c"]
    assert [it.name for it in graph.neighbours("a", 3).neighbours] == ["b"]
    assert [it.name for it in graph.neighbours("a", 3, as_of=before).neighbours] == ["b", "c"]
    with pytest.raises(ValueError, match="as_of"):
        graph.path("a", "c", as_of="someday")


def distances(edges: list[tuple[int, int]], start: int) -> dict[int, int]:
    """Return how far everything is from a start, by the textbook."""
    found, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for one, other in edges:
            for near, far in ((one, other), (other, one)):
                if near == here and far not in found:
                    found[far] = found[here] + 1
                    queue.append(far)
    return found


@QUICK
@given(edges=EDGES, end=st.integers(0, 7), depth=st.integers(1, 8))
def test_walks_agree_with_the_textbook(
    memory: AgentMemory, edges: list[tuple[int, int]], end: int, depth: int
) -> None:
    graph, user = memory.graph, f"u{next(NUMBERS)}"
    for one, other in edges:
        graph.add(f"n{one}", "knows", f"n{other}", user_id=user)
    graph.add_entity(f"n{end}", user_id=user)
    start = edges[0][0]
    wanted = distances(edges, start)
    found = graph.neighbours(f"n{start}", depth, user_id=user)
    assert {it.name: it.distance for it in found.neighbours} == {
        f"n{node}": steps for node, steps in wanted.items() if 0 < steps <= depth
    }
    path = graph.path(f"n{start}", f"n{end}", depth, user_id=user)
    steps = wanted.get(end, 99)
    assert bool(path) is (steps <= depth)
    if path:
        assert len(path.edges) == steps
        for here, there, edge in zip(path.names, path.names[1:], path.edges, strict=False):
            assert {here, there} == {edge.source, edge.target}


def test_a_walk_that_is_too_wide_says_so(
    graph: MemoryGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(graph, *(f"hub>n{n}" for n in range(12)), "n3>far")
    monkeypatch.setattr(graph_tables, "MOST_REACHED", 5)
    found = graph.neighbours("hub", 2)
    assert found.truncated
    assert 0 < len(found.neighbours) <= 6
    path = graph.path("hub", "far", max_depth=8)
    assert path or path.truncated


# What a query names -------------------------------------------------------------------------------


def test_memories_at_what_a_query_names_come_best_first(
    graph: MemoryGraph, memory: AgentMemory, clock: Clock
) -> None:
    ids = memory.store_many(
        {"content": text}
        for text in ("Alice works at Acme Corp", "Alice likes tea", "Acme Corp is in Berlin", "no")
    )
    graph.add("Alice", "works_at", "Acme Corp", memory_id=ids[0])
    graph.add("Alice", "likes", "tea", memory_id=ids[1])
    graph.add("Acme Corp", "is_in", "Berlin", memory_id=ids[2])
    found = graph.related_memory_ids("Does Alice still work at Acme Corp?")
    assert (found[0], sorted(found)) == (ids[0], sorted(ids[:3]))
    assert graph.related_memory_ids("what does alice's job have to do with tea?")[0] == ids[1]
    # What is at a neighbour comes last.
    assert graph.related_memory_ids("Alice")[-1] == ids[2]
    assert graph.related_memory_ids("Alice", limit=1) in ([ids[0]], [ids[1]])
    for query in ("", "?!", "nobody is here", 'x" OR 1 --', "\x00", "a " * 5000):
        assert graph.related_memory_ids(query) == []
    memory.archive(ids[1])
    clock.forward(days=1)
    graph.remove("Alice", "works_at", "Acme Corp")
    assert graph.related_memory_ids("Alice") == []


@pytest.mark.parametrize("odd", ["\ud800", "\udfff\udc00", "\x00"], ids=ascii)
def test_what_no_text_can_hold_parts_the_words_of_a_query(
    graph: MemoryGraph, memory: AgentMemory, odd: str
) -> None:
    told = memory.store("Alice likes tea", user_id="u1")
    graph.add("Alice", "likes", "tea", memory_id=told)
    session = memory.session({"user_id": "u1"})
    for query in (f"what does alice{odd}b like", f"{odd}Alice", f"al{odd}ice and tea{odd}"):
        assert graph.related_memory_ids(query) == [told]
        assert session.graph.related_memory_ids(query) == [told]
        for searched in (memory, session):
            assert [hit.memory.id for hit in searched.search(query, graph=True)] == [told]
    assert graph.related_memory_ids(odd) == []


def test_what_the_graph_adds_is_marked_if_it_may_be_out_of_date(memory: AgentMemory) -> None:
    for content in ("I like jazz.", "I no longer like jazz."):
        memory.add(content, user_id="u1")
    (review,) = memory.reviews()
    memory.graph.add("Miles", "plays", "jazz", memory_id=review.memory_id)
    hits = memory.search("Miles", graph=True)
    assert [(hit.match_type, hit.under_review) for hit in hits] == [(MatchType.GRAPH, True)]


def test_my_and_me_name_the_user(graph: MemoryGraph, memory: AgentMemory) -> None:
    mine = memory.store("I live in Berlin", user_id="u1")
    graph.add("I", "lives_in", "Berlin", memory_id=mine)
    assert graph.related_memory_ids("where is my home?", user_id="u1") == [mine]
    assert graph.related_memory_ids("where is home?", user_id="u1") == []
    assert graph.related_memory_ids("where is U1?", user_id="u1") == [mine]


def test_a_user_is_looked_up_by_id_among_all_users(graph: MemoryGraph, clock: Clock) -> None:
    for user_id, place in (("alice", "Oslo"), ("Ben", "Berlin")):
        graph.add("I", "lives_in", place, user_id=user_id)
    before = clock.now
    clock.forward(days=1)
    graph.add("Alice", "knows", "Zoe", user_id="Ben")
    for name in ("ben", "Ben"):
        (edge,) = graph.relationships(name)
        assert (edge.for_display().source, edge.target) == ("Ben", "Berlin")
        assert graph.neighbours(name).for_display().name == "Ben"
    assert {edge.target for edge in graph.relationships("Alice")} == {"Oslo", "Zoe"}
    assert [edge.target for edge in graph.relationships("Alice", as_of=before)] == ["Oslo"]
    assert graph.path("Oslo", "Alice").for_display().names == ["Oslo", "alice"]
    user = graph.entity("alice")
    assert user is not None
    assert (user.name, user.user_id, user.for_display().name) == ("USER_ID", "alice", "alice")

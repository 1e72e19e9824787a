"""Sessions: what is another user's cannot be read, counted, changed or hinted at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    InvalidSession,
    LimitReached,
    MemoryNotFound,
    PermissionDenied,
    RejectedContent,
    SessionContext,
    ValidationError,
)
from agent_memory.api.session import SessionMemory
from agent_memory.api.session_graph import SessionGraph
from agent_memory.models.decision import Decision

SECRET = "walnut"
NOWHERE = "mem-000000000000"
SOON = datetime.now(UTC) + timedelta(days=1)
Call = Callable[[SessionMemory, str], object]

# Each verb of a session, asked of an id; those that take none are asked for what they find.
BY_ID: dict[str, Call] = {
    "get": lambda session, memory_id: session.get(memory_id),
    "history": lambda session, memory_id: session.history(memory_id),
    "list_recent": lambda session, memory_id: session.list_recent(after=memory_id),
    "update": lambda session, memory_id: session.update(memory_id, content="taken over"),
    "delete": lambda session, memory_id: session.delete(memory_id),
    "store": lambda session, memory_id: session.store("taken over", id=memory_id),
    "store_many": lambda session, memory_id: session.store_many(
        [{"content": "taken over", "id": memory_id}]
    ),
    "validate": lambda session, memory_id: session.validate({"content": "x", "id": memory_id}),
    "promote": lambda session, memory_id: session.promote(memory_id),
    "demote": lambda session, memory_id: session.demote(memory_id),
    "archive": lambda session, memory_id: session.archive(memory_id),
    "unarchive": lambda session, memory_id: session.unarchive(memory_id),
    "delete_many": lambda session, memory_id: session.delete_many([memory_id]),
}
BY_FILTER: dict[str, Callable[[SessionMemory, Any], object]] = {
    "search": lambda session, filters: session.search("the plan", 100, filters=filters),
    "get_all": lambda session, filters: session.get_all(filters=filters),
    "list_recent": lambda session, filters: session.list_recent(100, filters=filters),
    "count": lambda session, filters: session.count(filters=filters),
    "delete_all": lambda session, filters: session.delete_all(filters=filters),
}
OF_GRAPH: dict[str, Callable[[SessionMemory, str, str], object]] = {
    "entities": lambda session, *_: session.graph.entities(),
    "entity": lambda session, name, _: session.graph.entity(name),
    "relationships": lambda session, name, _: session.graph.relationships(name),
    "neighbours": lambda session, name, _: session.graph.neighbours(name, 8),
    "path": lambda session, name, other: session.graph.path(name, other),
    "add": lambda session, name, other: session.graph.add(name, "knows", other, memory_id=NOWHERE),
    "add_entity": lambda session, name, _: session.graph.add_entity(name, memory_id=NOWHERE),
    "update": lambda session, name, other: session.graph.update(
        name, "knows", other, memory_id=NOWHERE
    ),
    "apply": lambda session, *_: session.graph.apply({"updates": []}, source_memory_ids=[NOWHERE]),
    "merge": lambda session, name, other: session.graph.merge(name, other),
    "remove": lambda session, name, other: session.graph.remove(name, "lives_in", other),
    "related_memory_ids": lambda session, name, _: session.graph.related_memory_ids(name),
}
WIDE: tuple[Any, ...] = (
    None,
    {},
    {"archived": None},
    {"custom_filters": {"OR": [{"owner": "ben"}, {"owner": {"ne": "nobody"}}]}},
    {"custom_filters": {"NOT": {"owner": "nobody"}}},
    {"tags": ["wood"], "tags_match": "any"},
    {"session_id": "bens-session"},
    {"min_access_count": 0},
)


@pytest.fixture
def memory(root: Path) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        yield memory


@pytest.fixture
def bens(memory: AgentMemory) -> str:
    """What Ben's memory has for an id; Alice has another memory."""
    memory.session({"user_id": "alice"}).store("Alice likes oak", tags=["wood"])
    return memory.store(
        f"Ben keeps the {SECRET} plan",
        user_id="ben",
        run_id="bens-run",
        session_id="bens-session",
        tags=["wood"],
        metadata={"owner": "ben"},
    )


@pytest.fixture
def alice(memory: AgentMemory) -> SessionMemory:
    return memory.session({"user_id": "alice"})


def outcome(call: Call, session: SessionMemory, memory_id: str) -> str:
    """Return all that a caller can see, with the id that was asked for left out."""
    try:
        seen = repr(call(session, memory_id))
    except AgentMemoryError as error:
        seen = f"{type(error).__name__}: {error} {getattr(error, 'errors', list)()}"
    return seen.replace(memory_id, "<id>")


def test_every_verb_of_a_session_is_tried_here() -> None:
    verbs = {name for name in vars(SessionMemory) if not name.startswith("_")}
    of_reviews = {"reviews", "under_review", "approve", "dismiss", "decide"}
    of_the_file = {"agent_id", "backend", "close", "embedding_usage", "id_prefix", "on_duplicate"}
    below = {"add", "context", "duplicates", "export", "graph", "scratchpad", "session_id", "undo"}
    assert verbs == BY_ID.keys() | BY_FILTER.keys() | of_reviews | of_the_file | below
    of_graph = {name for name in vars(SessionGraph) if not name.startswith("_")}
    assert of_graph == OF_GRAPH.keys() | {"export"}


@pytest.mark.parametrize("verb", BY_ID)
def test_the_id_of_anothers_memory_is_like_one_that_never_was(
    memory: AgentMemory, alice: SessionMemory, bens: str, verb: str
) -> None:
    before = memory.get(bens)
    seen = outcome(BY_ID[verb], alice, bens)
    assert SECRET not in seen
    assert seen == outcome(BY_ID[verb], alice, NOWHERE)
    assert memory.get(bens) == before


@pytest.mark.parametrize("verb", ["history", "get", "update", "delete"])
def test_so_is_that_of_one_that_was_deleted(
    memory: AgentMemory, alice: SessionMemory, bens: str, verb: str
) -> None:
    memory.delete(bens)
    assert outcome(BY_ID[verb], alice, bens) == outcome(BY_ID[verb], alice, NOWHERE)
    assert SECRET not in outcome(BY_ID[verb], alice, bens)


@pytest.mark.parametrize("verb", BY_FILTER)
@pytest.mark.parametrize("filters", WIDE, ids=repr)
def test_no_filter_reaches_another_user(
    memory: AgentMemory, alice: SessionMemory, bens: str, verb: str, filters: Any
) -> None:
    seen = outcome(lambda session, _: BY_FILTER[verb](session, filters), alice, NOWHERE)
    assert SECRET not in seen
    assert bens not in seen
    if verb == "count":
        assert seen in ("0", "1")
    assert memory.get(bens) is not None


@pytest.mark.parametrize("verb", BY_FILTER)
def test_nor_does_one_by_its_id(
    memory: AgentMemory, alice: SessionMemory, bens: str, verb: str
) -> None:
    assert memory.count(filters={"ids": [bens, NOWHERE]}) == 1
    seen = outcome(lambda session, it: BY_FILTER[verb](session, {"ids": [it]}), alice, bens)
    nowhere = outcome(lambda session, it: BY_FILTER[verb](session, {"ids": [it]}), alice, NOWHERE)
    if verb != "search":  # which tells how long it took
        assert seen == nowhere
    assert SECRET not in seen
    assert memory.get(bens) is not None


@pytest.mark.parametrize("name", ["user_id", "run_id", "agent_id"])
@pytest.mark.parametrize("verb", BY_FILTER)
def test_to_ask_for_another_is_refused_whether_it_is_there_or_not(
    memory: AgentMemory, bens: str, verb: str, name: str
) -> None:
    session = memory.session({"user_id": "alice", "run_id": "run-1"})
    there = {"user_id": "ben", "run_id": "bens-run", "agent_id": "carol"}[name]
    seen = []
    for value in (there, "nobody"):
        with pytest.raises(PermissionDenied) as told:
            BY_FILTER[verb](session, {name: value})
        seen.append(str(told.value).replace(value, "<value>"))
    assert seen[0] == seen[1]
    assert memory.get(bens) is not None


AT_A_TIME: dict[str, Call] = {
    "get": lambda session, memory_id: session.get(memory_id, as_of=SOON),
    "list_recent": lambda session, memory_id: session.list_recent(as_of=SOON, after=memory_id),
}


@pytest.mark.parametrize("verb", AT_A_TIME)
@pytest.mark.parametrize("is_deleted", [False, True])
def test_nor_was_it_at_any_time(
    memory: AgentMemory, alice: SessionMemory, bens: str, verb: str, is_deleted: bool
) -> None:
    run = memory.session({"user_id": "ben", "run_id": "other"})
    if is_deleted:
        memory.delete(bens)
    for session in (alice, run):
        seen = outcome(AT_A_TIME[verb], session, bens)
        assert seen == outcome(AT_A_TIME[verb], session, NOWHERE)
        assert SECRET not in seen


def test_as_of_shows_what_was_the_sessions_at_that_time(
    root: Path, tmp_path: Path, clock: Clock
) -> None:
    with AgentMemory("bob", root=root, clock=clock, embedder=None) as memory:
        alice, ben = (memory.session({"user_id": user}) for user in ("alice", "ben"))
        run = memory.session({"user_id": "alice", "run_id": "r"})
        first = alice.store("Alice likes oak")
        clock.forward(hours=1)
        moved = alice.store("the plan of Alice")
        early = clock.now
        clock.forward(hours=1)
        memory.update(moved, content=f"the {SECRET} plan of Ben", user_id="ben")
        memory.promote(moved)
        for _ in range(3):
            ben.search(f"{SECRET} plan")
        late = clock.now
        clock.forward(hours=1)
        alice.update(first, content="Alice likes elm")

        def texts(session: SessionMemory, when: datetime) -> list[str]:
            listed = [each.content for each in session.list_recent(as_of=when)]
            one_by_one = [session.get(each, as_of=when) for each in (moved, first)]
            assert [each.content for each in one_by_one if each is not None] == listed
            place = tmp_path / "then.jsonl"
            session.export(place, format="jsonl", as_of=when, overwrite=True)
            lines = [json.loads(line) for line in place.read_text("utf-8").splitlines()]
            exported = [line["content"] for line in lines if "content" in line]
            assert sorted(exported) == sorted(listed)
            return listed

        assert texts(alice, early) == ["the plan of Alice", "Alice likes oak"]
        assert texts(alice, late) == ["Alice likes oak"]
        assert texts(ben, early) == []
        assert texts(ben, late) == [f"the {SECRET} plan of Ben"]
        assert texts(run, early) == []
        assert alice.get(moved) is None
        assert [each.id for each in alice.list_recent(as_of=early, order="oldest")] == [
            first,
            moved,
        ]
        (rest,) = alice.list_recent(as_of=early, after=moved)
        assert rest.content == "Alice likes oak"
        for session, when in ((alice, late), (ben, early), (run, early)):
            with pytest.raises(MemoryNotFound):
                session.list_recent(as_of=when, after=moved)

        # What Ben did with it since is not Alice's to know.
        assert memory.get(moved).access_count == 3  # type: ignore[union-attr]
        then = [alice.get(moved, as_of=early), *alice.list_recent(1, as_of=early)]
        assert [(each.access_count, each.last_accessed) for each in then if each] == [(0, None)] * 2
        place = tmp_path / "then.yaml"
        alice.export(place, format="scratchpad", as_of=early)
        assert moved not in place.read_text(encoding="utf-8")
        assert first in place.read_text(encoding="utf-8")
        memory.delete(moved)
        deleted = alice.get(moved, as_of=early)
        assert deleted is not None
        assert (deleted.content, deleted.access_count) == ("the plan of Alice", 0)
        assert ben.get(moved, as_of=early) is None


def test_a_list_goes_on_after_ones_own_memory_in_any_order(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    ids = [alice.store(f"note {n}", importance=level) for n, level in enumerate(("low", "high"))]
    (oak,) = alice.list_recent(order="oldest", limit=1)
    assert [each.id for each in alice.list_recent(order="oldest", after=oak.id)] == ids
    by_importance = [each.id for each in alice.list_recent(order="importance")]
    assert by_importance == [ids[1], oak.id, ids[0]]
    assert [each.id for each in alice.list_recent(order="importance", after=ids[1])] == [
        oak.id,
        ids[0],
    ]
    run = memory.session({"user_id": "alice", "run_id": "r"})
    with pytest.raises(MemoryNotFound):
        run.list_recent(after=ids[0])
    with pytest.raises(ValidationError, match="after"):
        alice.list_recent(after=oak)  # type: ignore[arg-type]
    assert bens not in by_importance


def review_of(memory: AgentMemory, memory_id: str) -> int:
    content = memory.get(memory_id).content  # type: ignore[union-attr]
    step = Decision("DELETE", memory_id=memory_id, seen=content, in_review=True, reasoning=SECRET)
    memory._apply_decisions([step], keep_copies=False)
    return max(review.review_id for review in memory.reviews())


def test_reviews_are_decided_together_or_not_at_all(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    run = memory.session({"user_id": "alice", "run_id": "r"})
    (oak,) = alice.get_all()
    other = alice.store("Alice likes elm")
    of_run = run.store("Alice likes ash")
    reviews = {each: review_of(memory, each) for each in (oak.id, other, of_run, bens)}
    seen = []
    for foreign in (reviews[bens], 99):
        for ids in ({"approve": [reviews[oak.id], foreign]}, {"dismiss": [foreign]}):
            with pytest.raises(ValidationError) as refusal:
                alice.decide(**ids)
            seen.append(f"{refusal.value} {refusal.value.errors()}".replace(str(foreign), "<id>"))
    assert len(set(seen)) == 1
    with pytest.raises(ValidationError, match="no such review"):
        run.decide(approve=[reviews[of_run]], dismiss=[reviews[other]])
    assert len(memory.reviews()) == 4
    deleted, dismissed = alice.decide(approve=[reviews[oak.id]], dismiss=[reviews[other]])
    assert ([each.id for each in deleted], [each.memory_id for each in dismissed]) == (
        [oak.id],
        [other],
    )
    assert dismissed[0].reasoning == SECRET
    assert run.decide(approve=[reviews[of_run]])[0][0].content == "Alice likes ash"
    assert [each.memory_id for each in memory.reviews()] == [bens]
    assert alice.decide() == ([], [])


@pytest.mark.parametrize(("permission", "way"), [("delete", "approve"), ("write", "dismiss")])
def test_a_decision_takes_the_permission_for_each_way(
    memory: AgentMemory, alice: SessionMemory, permission: str, way: str
) -> None:
    oak, elm = alice.store("Alice likes oak"), alice.store("Alice likes elm")
    reviews = [review_of(memory, each) for each in (oak, elm)]
    other_way = {"approve": "dismiss", "dismiss": "approve"}[way]
    permissions = {"read": False, "write": True, "delete": True, permission: False}
    session = memory.session({"user_id": "alice", "permissions": permissions})
    for ids in ([0], [99], reviews[:1]):
        with pytest.raises(PermissionDenied, match=f"may not {permission}"):
            session.decide(**{way: ids, other_way: reviews[1:]})
    assert len(memory.reviews()) == 2
    shown = session.decide(**{other_way: reviews[1:]})
    assert elm in repr(shown)
    assert "Alice likes" not in repr(shown)
    assert SECRET not in repr(shown)
    assert [each.review_id for each in memory.reviews()] == reviews[:1]


def test_questions_about_another_users_memories_are_like_none(
    memory: AgentMemory, bens: str, alice: SessionMemory
) -> None:
    step = Decision("DELETE", memory_id=bens, seen=f"Ben keeps the {SECRET} plan", in_review=True)
    memory._apply_decisions([step], keep_copies=False)
    (review,) = memory.reviews()
    assert alice.reviews() == []
    for verb in (alice.approve, alice.dismiss):
        for number in (review.review_id, 99):
            with pytest.raises(ValidationError, match="no such review"):
                verb(number)
    ben = memory.session({"user_id": "ben"})
    assert [it.memory_id for it in ben.reviews()] == [bens]
    ben.dismiss(review.review_id)
    assert memory.reviews() == []


def test_which_memories_are_under_review_is_told_of_the_sessions_own(
    memory: AgentMemory, alice: SessionMemory
) -> None:
    ben = memory.session({"user_id": "ben"})
    for text in ("I live in Oslo.", "I moved to Bergen."):
        ben.add(text)
    ids = [each.id for each in memory.get_all()]
    assert ben.under_review(ids) == memory.under_review(ids) == {memory.reviews()[0].memory_id}
    assert alice.under_review(ids) == set()
    (older,) = ben.under_review(ids)
    assert ben.under_review(older) == memory.under_review(older) == {older}


def test_a_session_gives_nothing_away_and_takes_no_more_than_it_may(memory: AgentMemory) -> None:
    permissions = {"read": False, "write": True, "delete": False}
    session = memory.session({"user_id": "alice", "permissions": permissions})
    memory_id = session.store(f"Alice keeps the {SECRET} plan")
    assert SECRET not in repr(session.update(memory_id, tags=["plan"]))
    for wrong in ({"user_id": None}, {"run_id": None}, {"archived": True}):
        with pytest.raises(PermissionDenied):
            session.update(memory_id, **wrong)
    refused: list[Callable[[], object]] = [
        lambda: session.add("The plan is new.", dry_run=True),
        lambda: session.add("The plan is new.", llm=lambda *_: "{}"),
        lambda: session.add("The plan is new.", may_delete=True, llm="none"),  # type: ignore[call-arg]
        lambda: session.store("The plan", on_duplicate=lambda _: "keep"),
    ]
    for call in refused:
        with pytest.raises(PermissionDenied):
            call()
    found = memory.get(memory_id)
    assert found is not None
    assert (found.user_id, found.archived) == ("alice", False)


def test_errors_carry_nothing_of_what_they_stand_for(
    memory: AgentMemory, bens: str, alice: SessionMemory
) -> None:
    memory.reject("xylophone", reason="Ben said so")
    with pytest.raises(RejectedContent) as told:
        alice.store("a xylophone")
    assert told.value.__context__ is None
    assert "Ben" not in str(told.value)
    assert not any(letter.isdigit() for letter in str(told.value))
    assert memory.get(bens) is not None


def test_what_was_read_from_a_memory_does_not_follow_it_to_another_user(
    memory: AgentMemory, alice: SessionMemory, tmp_path: Path
) -> None:
    memory.add("I work at Walnutcorp.", user_id="ben", graph=True)
    ben = memory.session({"user_id": "ben"})
    (edge,) = ben.graph.relationships()
    (memory_id,) = edge.source_memory_ids
    memory.update(memory_id, user_id="alice")
    assert ben.graph.relationships() == []
    assert alice.graph.relationships() == []
    assert memory.check().problems == []
    memory.export(tmp_path / "all.yaml", format="store")
    with AgentMemory(memory.agent_id, root=tmp_path) as other:
        other.import_(tmp_path / "all.yaml")
        other.export(tmp_path / "again.yaml", format="store")
    assert (tmp_path / "again.yaml").read_text() == (tmp_path / "all.yaml").read_text()


@pytest.mark.parametrize("verb", OF_GRAPH)
def test_another_users_graph_is_like_none(
    memory: AgentMemory, bens: str, alice: SessionMemory, verb: str
) -> None:
    memory.graph.add("Ben", "lives_in", "Oslo", memory_id=bens)
    call = OF_GRAPH[verb]

    def seen(source: str, target: str) -> str:
        told = outcome(lambda session, _: call(session, source, target), alice, NOWHERE)
        return told.replace(source, "<one>").replace(target, "<other>")

    assert seen("Ben", "Oslo") == seen("Zed", "Nome")
    assert bens not in seen("Ben", "Oslo")
    assert len(memory.graph.relationships(user_id="ben")) == 1


def test_anothers_memory_says_nothing_in_ones_graph(
    memory: AgentMemory, bens: str, alice: SessionMemory
) -> None:
    for memory_id in (bens, NOWHERE):
        with pytest.raises(MemoryNotFound):
            alice.graph.add("Alice", "knows", "Ben", memory_id=memory_id)
    alice.graph.add("Alice", "lives_in", "Rome")
    assert [it.target for it in alice.graph.relationships("Alice")] == ["Rome"]
    assert memory.graph.relationships(user_id="ben") == []


def test_what_is_stored_is_the_sessions_and_found_by_it_alone(memory: AgentMemory) -> None:
    run = memory.session({"user_id": "alice", "run_id": "run-1"})
    user = memory.session({"user_id": "alice"})
    ben = memory.session({"user_id": "ben"})
    in_run, of_user = run.store("the elephant in the run"), user.store("the elephant of hers")
    found = memory.get(in_run)
    assert found is not None
    assert (found.user_id, found.run_id, found.created_by_session) == ("alice", "run-1", "run-1")
    assert [hit.memory.id for hit in run.search("elephant")] == [in_run]
    assert {hit.memory.id for hit in user.search("elephant")} == {in_run, of_user}
    assert [*ben.search("elephant")] == []
    assert (run.count(), user.count(), ben.count()) == (1, 2, 0)
    assert run.get(of_user) is None
    assert [it.id for it in user.get_all(filters={"run_id": "run-1"})] == [in_run]


def test_about_nobody_is_nobodys(memory: AgentMemory) -> None:
    memory_id = memory.store("The office is in Oslo")
    assert memory.session({"user_id": "alice"}).get(memory_id) is None


def test_a_session_deletes_its_own_and_no_more(memory: AgentMemory, bens: str) -> None:
    alice = memory.session({"user_id": "alice"})
    archived = alice.store("an old note")
    memory.archive(archived)
    gone = alice.delete_all()
    assert {it.user_id for it in gone} == {"alice"}
    assert archived in {it.id for it in gone}
    assert [it.event for it in alice.history(archived)] == ["DELETE", "UPDATE", "ADD"]
    assert memory.count() == 1
    assert memory.get(bens) is not None


def test_a_history_begins_where_the_memory_became_the_sessions(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    memory.update(bens, content="Ben has the plan no more")
    memory.update(bens, user_id="alice", content="Alice has a plan")
    assert alice.history(bens) == []
    alice.update(bens, content="Alice has her plan")
    told = alice.history(bens)
    assert [it.new_values for it in told] == [{"content": "Alice has her plan"}]
    assert SECRET not in repr(told)
    assert alice.history(bens, before=told[0].change_id) == []


def test_a_history_of_all_is_of_the_sessions_memories(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    own = [alice.store(f"Alice, number {number}") for number in range(3)]
    memory.update(bens, content="Ben has another plan")
    alice.delete(own[0])
    memory.store_many({"content": f"note {number}"} for number in range(1_001))  # over a page
    told = [(each.event, each.memory_id) for each in alice.history()]
    mine = [("DELETE", own[0]), *(("ADD", each) for each in reversed(own))]
    assert [each for each in told if each[1] in own] == mine
    assert bens not in {memory_id for _, memory_id in told}
    assert [each.event for each in alice.history(limit=1)] == ["DELETE"]
    everything = alice.history()
    for place, entry in enumerate(everything):
        following = everything[place + 1 :]
        assert alice.history(limit=2, before=entry.change_id) == following[:2]
    last, first = alice.history(own[0])
    assert alice.history(own[0], before=last.change_id) == [first]
    assert alice.history(own[0], before=first.change_id) == []
    assert memory.session({"user_id": "alice", "run_id": "r"}).history(before=10_000) == []
    newest = memory.history(bens)[0].change_id + 1
    for number in (newest, 10_000):
        with pytest.raises(MemoryNotFound):
            alice.history(bens, before=number)
    for asked in (None, own[0]):
        with pytest.raises(ValidationError, match="before"):
            alice.history(asked, before=0)


@pytest.mark.parametrize(
    ("permission", "calls"),
    [
        ("read", ["search", "get", "get_all", "list_recent", "count", "history", "export"]),
        ("write", ["add", "store", "update"]),
        ("delete", ["delete", "delete_all"]),
    ],
)
def test_what_a_session_may_not_do_it_does_not(
    memory: AgentMemory, bens: str, permission: str, calls: list[str]
) -> None:
    permissions = {"read": True, "write": True, "delete": True, permission: False}
    session = memory.session({"user_id": "ben", "permissions": permissions})
    words: dict[str, tuple[Any, ...]] = {
        "get_all": (),
        "list_recent": (),
        "count": (),
        "delete_all": (),
    }
    before = memory.list_recent(100)
    for name in calls:
        with pytest.raises(PermissionDenied, match=f"may not {permission}"):
            getattr(session, name)(*words.get(name, (bens,)))
    assert memory.list_recent(100) == before
    others = {"search", "get", "store", "delete"} - set(calls)
    for name in sorted(others):
        getattr(session, name)(bens if name in ("get", "delete") else "something new")


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"user_id": ""},
        {"user_id": "alice\n"},
        {"user_id": " alice"},
        {"user_id": "alice", "agent_id": "carol"},
        {"user_id": "alice", "session_type": "RUN"},
        {"user_id": "alice", "run_id": "run\t1"},
        {"user_id": "a" * 129},
        {"user_id": "alice", "permissions": {"read": "maybe"}},
        SessionContext(user_id="alice").model_copy(update={"user_id": None}),
        SessionContext(user_id="alice").model_copy(update={"user_id": ""}),
        SessionContext(user_id="alice").model_copy(update={"session_type": "RUN"}),
        "alice",
        None,
    ],
    ids=repr,
)
def test_what_is_no_session_is_refused(memory: AgentMemory, context: Any) -> None:
    with pytest.raises(InvalidSession) as told:
        memory.session(context)
    assert told.value.code == "INVALID_SESSION"


@pytest.mark.usefixtures("bens")
def test_a_limit_does_not_tell_how_much_others_have(
    memory: AgentMemory, alice: SessionMemory
) -> None:
    memory.configure(retention={"limits": {"learning": {"max_memories": 2, "enforcement": "hard"}}})
    with pytest.raises(LimitReached, match=r"\d"):
        memory.store("one more")
    with pytest.raises(LimitReached) as told:
        alice.store("one more")
    assert not any(letter.isdigit() for letter in str(told.value))


def test_many_of_anothers_words_are_not_told_of(memory: AgentMemory) -> None:
    memory.store_many({"content": f"{SECRET} number {n}", "user_id": "ben"} for n in range(3_000))
    alice = memory.session({"user_id": "alice"})
    alice.store(f"one {SECRET}")
    found = alice.search(f"{SECRET} number")
    assert memory.search(f"{SECRET} number").search_metadata.degraded != []
    assert found.search_metadata.degraded == []
    assert found.total_count == 1


def test_a_session_of_another_users_run_sees_nothing(memory: AgentMemory, bens: str) -> None:
    session = memory.session({"user_id": "alice", "run_id": "bens-run"})
    assert session.get_all() == []
    with pytest.raises(MemoryNotFound):
        session.delete(bens)


IDS = (
    "9f1c2d3e-4b5a-6789-abcd-ef0123456789",
    "ann.o'hara+memory@example.org",
    "auth0|5f7c8ec7c33c6c004bbafe82",
    "Åse Ærø",
    "a" * 128,
)


@pytest.mark.parametrize("user_id", IDS)
def test_users_and_runs_have_the_ids_that_people_have(memory: AgentMemory, user_id: str) -> None:
    session = memory.session({"user_id": user_id, "run_id": f"{user_id}"[:100]})
    memory_id = session.store("The kettle is red")
    session.add("I live in Oslo.")
    assert session.get(memory_id) is not None
    assert session.count() == 2
    assert memory.session({"user_id": user_id}).count() == 2


@pytest.mark.parametrize("name", ["user_id", "run_id"])
@pytest.mark.parametrize("wrong", ["a" * 129, "line\nbreak", " alice", "bell\x07", ""])
def test_nothing_is_stored_for_whom_no_session_could_be(
    memory: AgentMemory, name: str, wrong: str
) -> None:
    memory_id = memory.store("a kettle")
    calls: list[Callable[[], object]] = [
        lambda: memory.store("x", **{name: wrong}),  # type: ignore[arg-type]
        lambda: memory.store_many([{"content": "x", name: wrong}]),
        lambda: memory.update(memory_id, **{name: wrong}),  # type: ignore[arg-type]
        lambda: memory.add("I live in Oslo.", **{name: wrong}),  # type: ignore[arg-type]
        lambda: memory.graph.add("Ann", "knows", "Ben", **{name: wrong}),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(ValidationError) as refusal:
            call()
        assert name in str(refusal.value)
    assert memory.count() == 1


def test_a_context_cannot_be_widened_by_copying_it(memory: AgentMemory, bens: str) -> None:
    context = SessionContext(user_id="alice", run_id="run-1")
    for changes in ({"user_id": None}, {"user_id": ["alice", "ben"]}, {"permissions": None}):
        with pytest.raises(InvalidSession):
            SessionMemory(memory, context.model_copy(update=changes))
    assert memory.get(bens) is not None


def test_each_user_has_a_scratchpad_and_a_context(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    memory.promote(bens)
    (own,) = alice.get_all()
    promotion = alice.promote(own.id)
    assert (promotion.evicted, promotion.scratchpad_size) == (None, 1)
    assert [entry.id for entry in alice.scratchpad().memories] == [own.id]
    assert "oak" in alice.context()
    assert SECRET not in alice.context()
    assert SECRET in memory.session({"user_id": "ben"}).context()
    assert alice.demote(own.id)
    assert alice.context() == ""


def test_a_promotion_does_not_tell_what_of_others_it_evicted(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    memory.configure(scratchpad_max_size=10)
    for n in range(9):
        memory.promote(memory.store(f"plan {n}", user_id="ben"))
    memory.promote(bens)
    (own,) = alice.get_all()
    assert alice.promote(own.id).evicted is None
    assert [entry.id for entry in alice.scratchpad().memories] == [own.id]


@pytest.mark.parametrize("form", ["json", "jsonl", "record-json", "scratchpad", "backup"])
def test_a_session_exports_its_own_and_no_more(
    memory: AgentMemory, alice: SessionMemory, bens: str, tmp_path: Path, form: str
) -> None:
    memory.promote(bens)
    place = tmp_path / f"alice.{form}"
    report = alice.export(place, format=form)
    text = place.read_text(encoding="utf-8")
    assert "oak" in text
    assert SECRET not in text
    assert bens not in text
    assert report.memory_count == 1
    with AgentMemory.open(tmp_path / "again.db") as again:
        again.import_(place)
        assert [found.content for found in again.list_recent()] == ["Alice likes oak"]


@pytest.mark.parametrize("form", ["store", "sqlite", "metadata", "settings", "directory"])
def test_a_session_exports_no_format_that_holds_the_agents(
    alice: SessionMemory, tmp_path: Path, form: str
) -> None:
    with pytest.raises(PermissionDenied, match="format"):
        alice.export(tmp_path / "all", format=form)
    assert list(tmp_path.glob("all*")) == []


def test_undo_takes_back_an_add_that_only_asked(memory: AgentMemory, alice: SessionMemory) -> None:
    """It undid the storing of the memory that was asked about."""
    ben = memory.session({"user_id": "ben"})
    for session in (alice, ben):
        session.store("I live in Oslo.")
        assert session.add("Forget that I live in Oslo.").data == []
    ben.store("I like tea.")
    assert alice.undo().verb == "add"
    assert [review.user_id for review in memory.reviews()] == ["ben"]
    assert [kept.content for kept in alice.get_all()] == ["I live in Oslo."]
    ben.undo()  # of the tea, which was later
    assert [kept.content for kept in ben.get_all()] == ["I live in Oslo."]
    assert [review.user_id for review in memory.reviews()] == ["ben"]


def test_undo_is_of_ones_own_changes(memory: AgentMemory, alice: SessionMemory, bens: str) -> None:
    (own,) = alice.get_all()
    alice.update(own.id, content="Alice likes elm")
    alice.archive(own.id)
    memory.update(bens, content="Ben has another plan")
    assert alice.undo().memory_ids == [own.id]
    assert alice.get_all()[0].content == "Alice likes elm"
    assert alice.undo().verb == "undo"  # what was undone is done again
    alice.undo()
    change = next(entry for entry in alice.history(own.id) if entry.event == "ADD")
    bens_change = memory.history(bens)[0].change_id
    for number in (bens_change, 10_000):
        with pytest.raises(ValidationError, match="no such change"):
            alice.undo(number)
    with pytest.raises(ValidationError, match="since been changed again"):
        alice.undo(change.change_id)
    found = memory.get(bens)
    assert found is not None
    assert found.content == "Ben has another plan"


def test_of_what_one_verb_did_to_several_users_one_takes_back_only_ones_own(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    (own,) = alice.get_all()
    memory.delete_many([own.id, bens])
    assert alice.undo().memory_ids == [own.id]
    assert alice.get(own.id) is not None
    assert memory.get(bens) is None


def test_a_change_before_a_memory_was_ones_own_is_anothers(
    memory: AgentMemory, alice: SessionMemory, bens: str
) -> None:
    memory.update(bens, content="Ben has the plan no more")
    numbers = [entry.change_id for entry in memory.history(bens)]
    memory.update(bens, user_id="alice")
    for number in numbers:
        with pytest.raises(ValidationError, match="no such change"):
            alice.undo(number)


def test_an_id_is_taken_only_with_the_sessions_own_beginning(
    memory: AgentMemory, alice: SessionMemory
) -> None:
    ben = memory.session({"user_id": "ben"})
    run = memory.session({"user_id": "alice", "run_id": "r"})
    assert len({session.id_prefix for session in (alice, ben, run)}) == 3
    memory_id = f"{alice.id_prefix}note"
    assert alice.store("a note", id=memory_id) == memory_id
    for other in (ben, run):
        with pytest.raises(PermissionDenied, match=f"must begin with '{other.id_prefix}'"):
            other.store("a note", id=memory_id)


def test_a_run_sees_nothing_of_other_runs_through_the_graph(memory: AgentMemory) -> None:
    first = memory.session({"user_id": "alice", "run_id": "first"})
    second = memory.session({"user_id": "alice", "run_id": "second"})
    secret = first.store("Zed keeps the walnut")
    shared = second.store("Ann knows Ben")
    first.graph.add("Zed", "keeps", "walnut", memory_id=secret)
    first.graph.add("Ann", "knows", "Ben", memory_id=secret)
    first.graph.add_entity("Ann", aliases=["Agent Zed"], memory_id=secret)
    told = second.graph.add("Ann", "knows", "Ben", memory_id=shared)
    seen = [
        told,
        second.graph.entities(),
        second.graph.relationships(include_closed=True),
        second.graph.neighbours("Ann", 8),
        second.graph.path("Ann", "Ben"),
        second.graph.related_memory_ids("Ann Zed walnut"),
        second.graph.entity("Zed"),
    ]
    assert "Ann" in repr(seen)
    for hidden in ("Zed", "walnut", secret, "first"):
        assert hidden not in repr(seen)
    for call in (
        lambda: second.graph.relationships("Zed"),
        lambda: second.graph.remove("Zed", "keeps", "walnut"),
        lambda: second.graph.merge("Ann", "Zed"),
        lambda: second.graph.add("Zed", "keeps", "oak"),
    ):
        with pytest.raises((ValidationError, PermissionDenied)):
            call()
    user = memory.session({"user_id": "alice"})
    assert {edge.target for edge in user.graph.relationships()} == {"walnut", "Ben"}


def test_a_runs_graph_is_written_out_alone(memory: AgentMemory, tmp_path: Path) -> None:
    first = memory.session({"user_id": "alice", "run_id": "first"})
    second = memory.session({"user_id": "alice", "run_id": "second"})
    for session, name in ((first, "walnut"), (second, "oak")):
        session.graph.add("Ann", "likes", name, memory_id=session.store(f"Ann likes {name}"))
    written = second.graph.export(tmp_path / "graph.json", format="json").read_text("utf-8")
    assert "oak" in written
    assert "walnut" not in written


# What an attacker would try ---------------------------------------------------------------------


def problems_of(session: SessionMemory, text: str, **more: Any) -> str:
    return repr(session.add(text, **more).metadata.problems)


def test_what_add_could_not_keep_tells_nothing_of_others(
    memory: AgentMemory, alice: SessionMemory
) -> None:
    for n in range(7):
        memory.store(f"Ben has plan number {n}", user_id="ben", importance="high")
    (own,) = alice.get_all() or [None]  # type: ignore[list-item]
    assert own is None
    limits = {"learning": {"max_memories": 3, "enforcement": "hard"}}
    memory.configure(retention={"limits": limits})
    problems = problems_of(alice, "The tea is in the cupboard.")
    assert "no room" in problems
    assert not any(letter.isdigit() for letter in problems)
    assert memory.add("The tea is in the cupboard.", user_id="alice").metadata.problems != problems


def test_nor_the_owners_reason_of_a_rejection(memory: AgentMemory, alice: SessionMemory) -> None:
    memory.reject("Oslo", reason="Ben hides there")
    for problems in (problems_of(alice, "I live in Oslo."), problems_of(
        alice, "I live in Oslo.", graph=True
    )):  # fmt: skip
        assert "may not be stored" in problems
        assert "Ben" not in problems
    with pytest.raises(PermissionDenied):
        alice.add("I live in Oslo.", is_confidential=False)  # type: ignore[call-arg]
    report = alice.graph.apply(
        {"updates": [{"action": "ADD", "source": "Ann", "relationship": "in", "target": "Oslo"}]}
    )
    assert report.refused
    assert "Ben" not in repr(report)
    assert "Ben" in repr(memory.add("I live in Oslo.", user_id="alice").metadata.problems)

"""What an attacker would try: learn from his own session's searches what other users have.

The same session is asked in two stores that differ in what others have alone. Whatever it is told
of scores, rarity, reasons, near misses and places must be the same in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW
from embedding_server import WordEmbedder

from agent_memory import AgentMemory, SearchResults, SessionContext
from agent_memory.api.session import SessionMemory
from agent_memory.storage.term_counts import FEW_TEXTS

ROOMS = ("kitchen", "garden", "cellar", "attic", "garage", "hall", "office")
THINGS = ("lamp", "ladder", "kettle", "violin", "atlas")
QUERIES = (
    "where is the violin in the attic?",
    "walnut",
    "walnut ladder",
    "What did we put beside the kettle in January 2026?",
    "Merger Zürich lamp",
    "合併 lamp",
    "?",
)
TOLD = {"query_time", "processing_time_ms", "keyword_search_time_ms", "embedding_time_ms",
        "vector_search_time_ms"}  # fmt: skip


def own_items(count: int) -> Iterator[dict[str, Any]]:
    """Yield memories of Alice, between which there is room for others of the same process."""
    for number in range(count):
        room, thing = ROOMS[number % len(ROOMS)], THINGS[number % len(THINGS)]
        yield {
            "id": f"own-{number}",
            "content": f"The {thing} number {number} stands in the {room}",
            "user_id": "alice",
            "session_id": f"day-{number // 20}",
            "timestamp": NOW - timedelta(minutes=20 * (count - number)),
        }


def others_items(count: int) -> Iterator[dict[str, Any]]:
    """Yield what others say with words that Alice asks for, in the sessions that hers are in."""
    for number in range(count):
        yield {
            "content": f"walnut merger {number} in Zürich: the violin, the kettle, the attic, 合併",
            "user_id": ("ben", "carol", None)[number % 3],
            "session_id": f"day-{number // 60}",
            "timestamp": NOW - timedelta(minutes=7 * (count - number), seconds=30),
        }


def seen(session: SessionMemory) -> Iterator[tuple[str, object]]:
    """Yield all that a session is told by its searches, but for the time that they took."""
    for query in QUERIES:
        for more in ({}, {"category": "decision"}, {"similarity_threshold": 0.9}):
            results = session.search(query, 10, explain=True, count_accesses=False, **more)
            yield query, dumped(results)


def dumped(results: SearchResults) -> object:
    hits = [hit.model_dump(exclude={"memory"}) | {"id": hit.memory.id} for hit in results]
    return hits, results.total_count, results.search_metadata.model_dump(exclude=TOLD)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., SessionMemory]]:
    """Make stores in which Alice has the same, and others have something or other."""
    opened: list[AgentMemory] = []

    def make(
        others: list[dict[str, Any]], *, own: int, embedder: WordEmbedder | None = None
    ) -> SessionMemory:
        root = tmp_path / str(len(opened))
        memory = AgentMemory("bob", root=root, clock=lambda: NOW, embedder=embedder)
        opened.append(memory)
        memory.store_many(others[: len(others) // 2])
        memory.store_many(own_items(own))
        memory.store_many(others[len(others) // 2 :])
        if embedder is not None:
            memory.migrate()
        return memory.session({"user_id": "alice"})

    yield make
    for memory in opened:
        memory.close()


FEW = [{"content": "One note of somebody else", "user_id": "ben"}]


@pytest.mark.file_only("its stores are files")
@pytest.mark.parametrize("own", [40, FEW_TEXTS + 200], ids=["few", "many"])
def test_a_search_tells_nothing_of_the_words_of_others(
    world: Callable[..., SessionMemory], own: int
) -> None:
    quiet, loud = world(FEW, own=own), world(list(others_items(900)), own=own)
    assert list(seen(quiet)) == list(seen(loud))


def test_a_search_is_the_same_where_there_is_nobody_else(
    world: Callable[..., SessionMemory],
) -> None:
    assert list(seen(world([], own=40))) == list(seen(world(list(others_items(900)), own=40)))


@pytest.mark.file_only("its stores are files")
def test_a_search_by_meaning_tells_nothing_of_what_others_mean(
    world: Callable[..., SessionMemory],
) -> None:
    quiet = world(FEW, own=60, embedder=WordEmbedder())
    loud = world(list(others_items(600)), own=60, embedder=WordEmbedder())
    first, second = list(seen(quiet)), list(seen(loud))
    assert "'cosine': 0." in repr(first)
    assert first == second


def test_a_search_of_a_run_tells_nothing_of_other_runs(tmp_path: Path) -> None:
    told = []
    for place, texts in enumerate((["a note"], ["the walnut merger", "the violin"] * 12)):
        with AgentMemory("bob", root=tmp_path / str(place), clock=lambda: NOW) as memory:
            other = memory.session({"user_id": "alice", "run_id": "other"})
            run = memory.session({"user_id": "alice", "run_id": "mine"})
            for number in range(20):
                memory.store(
                    f"The violin number {number} is in the attic",
                    id=f"own-{number}", user_id="alice", run_id="mine", session_id="day",
                )  # fmt: skip
            other.store_many({"content": f"{text} {n}"} for n, text in enumerate(texts))
            told.append(list(seen(run)))
    assert told[0] == told[1]


def test_others_have_no_place_between_what_a_user_said(world: Callable[..., SessionMemory]) -> None:
    """Two of hers stand beside each other, whoever said something in between."""
    talk = [
        {"content": text, "user_id": "alice", "session_id": "talk", "timestamp": NOW, "id": name}
        for name, text in (("asked", "Where did the violin go?"), ("answered", "To the loft."))
    ]
    between = [
        {"content": f"number {n}", "user_id": "ben", "session_id": "talk", "timestamp": NOW}
        for n in range(4)
    ]
    session = world([talk[0], *between, talk[1], *between], own=0)
    assert [hit.memory.id for hit in session.search("the violin")] == ["asked", "answered"]


def test_what_others_promote_evicts_nothing_of_a_user(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path, clock=lambda: NOW) as memory:
        memory.configure(scratchpad_max_size=10)
        alice = memory.session({"user_id": "alice"})
        ben = memory.session({"user_id": "ben"})
        hers = [alice.store(f"her note number {n}") for n in range(3)]
        agents = memory.store("a note about nobody")
        for n in range(12):
            assert ben.promote(ben.store(f"his walnut {n}")).scratchpad_size <= 10
        memory.store_many({"content": f"his other {n}", "user_id": "ben"} for n in range(30))
        assert {entry.id for entry in alice.scratchpad().memories} == set(hers)
        assert len(ben.scratchpad().memories) == 10
        assert len(memory.scratchpad().memories) == 14
        assert agents in {entry.id for entry in memory.scratchpad().memories}
        hit = alice.search("note number", 1)[0]
        assert hit.match_type == "scratchpad"
        memory.update(hers[0], user_id="ben")
        assert {entry.id for entry in alice.scratchpad().memories} == set(hers[1:])


def test_a_store_of_many_users_keeps_the_newest_of_each(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path, clock=lambda: NOW) as memory:
        memory.configure(scratchpad_max_size=10)
        memory.store_many(
            {"content": f"note {n}", "user_id": ("alice", "ben")[n % 2]} for n in range(40)
        )
        for user, last in (("alice", 38), ("ben", 39)):
            entries = memory.session({"user_id": user}).scratchpad().memories
            assert {entry.content for entry in entries} == {
                f"note {n}" for n in range(last - 18, last + 1, 2)
            }


def test_the_scratchpads_file_holds_no_more_than_a_allows(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path / "r", clock=lambda: NOW) as memory:
        memory.configure(scratchpad_max_size=10)
        memory.store_many({"content": f"note {n}", "user_id": f"u{n % 5}"} for n in range(40))
        report = memory.export(tmp_path / "scratchpad.yaml", format="scratchpad")
        assert report.memory_count == 10
        assert len(memory.scratchpad().memories) == 40


def test_a_session_is_searched_with_any_filter(root: Path) -> None:
    """What is read once for a search is kept by its filters, and a list has no hash."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("the others drink coffee", user_id="ann")
        kitchen = memory.store("tea at noon", user_id="eve", metadata={"place": "kitchen"})
        memory.store("tea at night", user_id="eve", metadata={"place": True})
        session = memory.session(SessionContext(user_id="eve"))

        def ids(place: object) -> list[str]:
            hits = session.search("tea", filters={"custom_filters": {"place": place}})
            return [hit.memory.id for hit in hits]

        assert ids({"in": ["kitchen", "garden"]}) == [kitchen]
        assert len(ids(True)) == 1
        assert ids(1) == []

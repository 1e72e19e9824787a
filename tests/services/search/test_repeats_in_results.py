"""Many copies of one text take one place in the results, whatever the search looks at first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock
from embedding_server import WordEmbedder
from reads import contents

from agent_memory import AgentMemory, SearchResults
from agent_memory.services.search.candidates import MATCHING

pytestmark = pytest.mark.file_only("its stores are files")

COPIES = 300
UNLIKE = 600
"""Memories of nothing that is asked for: else the middle of all vectors were that of the copies."""
COPY = "The dog has a kennel"
OTHERS = [
    f"The dog sleeps in the {room} of the old house, where a kennel used to stand for years"
    for room in ("kitchen", "cellar", "garage", "attic", "hall")
]
BILINGUAL = WordEmbedder("bilingual", english={"hund": "dog", "huette": "kennel"}, batch_size=500)
BY_KEYWORD = "dog kennel"
BY_MEANING = "hund huette"


@pytest.fixture(scope="module", params=[None, BILINGUAL], ids=["keyword", "vectors"])
def kennels(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentMemory]:
    """Open a store of many copies of one text and five others that match the same questions."""
    root: Path = tmp_path_factory.mktemp("copies")
    texts = [COPY] * (COPIES // 2) + OTHERS + [COPY] * (COPIES // 2)
    with AgentMemory("bob", root=root, clock=Clock(), embedder=request.param) as memory:
        memory.store_many(
            {"content": text, "session_id": f"of {place}", "tags": ["home"]}
            for place, text in enumerate(texts)
        )
        memory.store_many(
            {"content": f"word{place} is beside word{place + 1}", "session_id": f"unlike {place}"}
            for place in range(UNLIKE)
        )
        if request.param is not None:
            memory.migrate()
        yield memory


def ask(memory: AgentMemory, question: str, limit: int, **options: Any) -> SearchResults:
    return memory.search(question, limit, count_accesses=False, **options)


def questions(memory: AgentMemory) -> list[str]:
    return [BY_KEYWORD, BY_MEANING] if memory.info().storage_backend == "vector" else [BY_KEYWORD]


def test_copies_take_one_place_of_five(kennels: AgentMemory) -> None:
    for question in questions(kennels):
        results = ask(kennels, question, 5)
        assert len(results) == 5, question
        assert len(set(contents(results))) == 5, question
        assert contents(results).count(COPY) == 1, question


def test_all_that_differs_is_found_beside_the_copies(kennels: AgentMemory) -> None:
    for question in questions(kennels):
        assert {COPY, *OTHERS} <= set(contents(ask(kennels, question, 6))), question


@pytest.mark.parametrize("limit", [1, 5, 6, 20])
def test_the_repeats_of_a_hit_are_other_memories_that_say_the_same(
    kennels: AgentMemory, limit: int
) -> None:
    """Each is named once, and none of them is a hit."""
    for question in questions(kennels):
        results = ask(kennels, question, limit)
        hits = {hit.memory.id for hit in results}
        repeats = [memory_id for hit in results for memory_id in hit.repeats]
        assert repeats, question
        assert len(repeats) == len(set(repeats))
        assert not hits & set(repeats)
        for hit in results:
            assert bool(hit.repeats) == (hit.memory.content == COPY)
        assert {memory.content for memory in map(kennels.get, repeats) if memory} == {COPY}


@pytest.mark.parametrize("limit", [5, 6, 20])
def test_the_total_count_has_the_hits_and_their_repeats(kennels: AgentMemory, limit: int) -> None:
    results = ask(kennels, BY_KEYWORD, limit)
    matching = [hit for hit in results if hit.memory.content in (COPY, *OTHERS)]
    shown = len(matching) + sum(len(hit.repeats) for hit in results)
    assert MATCHING <= results.total_count <= COPIES + len(OTHERS)
    assert results.total_count >= min(shown, MATCHING)


def test_as_many_as_were_asked_for_need_no_reason(kennels: AgentMemory) -> None:
    for question in questions(kennels):
        metadata = ask(kennels, question, 5).search_metadata
        assert (metadata.reason, metadata.explanation) == (None, None), question
        assert metadata.near_misses == []


def test_when_nothing_else_matches_no_filter_is_blamed(kennels: AgentMemory) -> None:
    """All that matches has the tag: the copies that were left out are no near misses."""
    results = ask(kennels, BY_KEYWORD, 20, tags=["home"])
    assert results.search_metadata.reason == "few_matches"
    assert "filter" not in str(results.search_metadata.explanation)
    assert results.search_metadata.near_misses == []
    assert sorted(contents(results)) == sorted([COPY, *OTHERS])


def test_a_filter_holds_when_others_are_looked_for(kennels: AgentMemory) -> None:
    untagged = kennels.store(f"{OTHERS[0]} and a dog kennel", session_id="untagged")
    try:
        found = contents(ask(kennels, BY_KEYWORD, 10, tags=["home"]))
    finally:
        kennels.delete(untagged)
    assert sorted(found) == sorted([COPY, *OTHERS])


def test_a_threshold_holds_when_others_are_looked_for(kennels: AgentMemory) -> None:
    results = ask(kennels, BY_KEYWORD, 10, similarity_threshold=0.999)
    assert contents(results) == [COPY]
    assert results[0].similarity >= 0.999
    assert results.search_metadata.reason == "few_matches"

"""The middle of a store's vectors and the floor: the same for all handles, and for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock
from embedding_server import WordEmbedder, text_vector

from agent_memory import AgentMemory, SearchResults
from agent_memory.services.search.ranking import MEANING_PLACE_STEP, Ranking, RankingRates, rank
from agent_memory.services.search.signals import Candidate, CosineScale, QueryProfile
from agent_memory.services.search.strength import floor_of
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import QueryVector
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.embeddings import EmbeddingTable
from agent_memory.storage.sqlite.vector_index import VectorIndex

FLOOR = 0.4
LEAST_SHARE = 0.3
QUESTIONS = ["a parrot in the kitchen", "renewal of certificates", "a dog in the garden"]
ROOMS = ["kitchen", "garden", "cellar", "attic", "garage", "hall", "office"]
PETS = ["dog", "cat", "parrot", "rabbit", "pony"]
SERVICES = ["payment", "login", "search", "mail", "backup"]


def fact(place: int) -> str:
    """Return one of many facts: of a household first, then of a company."""
    if place <= 256:
        pet, room = PETS[place % len(PETS)], ROOMS[place % len(ROOMS)]
        return f"The {pet} number {place} was in the {room}, where the violin is"
    service = SERVICES[place % len(SERVICES)]
    return f"Certificate {place} of the {service} service is to be renewed by the operators"


def fill(root: Path, first: int, last: int) -> None:
    """Store facts by a handle that embeds nothing."""
    with AgentMemory("bob", root=root, clock=Clock(), embedder=None) as silent:
        silent.store_many(
            {"content": fact(place), "session_id": f"of {place}"}
            for place in range(first, last + 1)
        )


def opened(root: Path, embedder: Any = "wordllama") -> AgentMemory:
    return AgentMemory("bob", root=root, clock=Clock(), embedder=embedder)


def ask(memory: AgentMemory, question: str, **options: Any) -> SearchResults:
    return memory.search(question, 20, explain=True, count_accesses=False, **options)


def answers(memory: AgentMemory) -> list[list[tuple[str, float, float | None]]]:
    """Return what is found for each question, in order, with how near it is."""
    return [
        [
            (hit.memory.id, hit.relevance_score, hit.score.cosine if hit.score else None)
            for hit in ask(memory, question)
        ]
        for question in QUESTIONS
    ]


# Handles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size_at_first", [256, 490])
def test_handles_of_different_age_find_the_same_in_the_same_order(
    root: Path, size_at_first: int
) -> None:
    """One searched when there were fewer vectors: the middle that it saw is not kept."""
    fill(root, 1, size_at_first)
    with opened(root) as older:
        older.migrate()
        answers(older)
        fill(root, size_at_first + 1, 511)
        older.embed()
        found = answers(older)
        with opened(root) as newer:
            assert found == answers(newer)
    assert all(found)


@pytest.mark.parametrize("embedded_in_a_search", [10, 50], ids=["most missing", "some missing"])
def test_a_handle_that_searched_while_vectors_were_missing_tells_the_middle_anew(
    root: Path, embedded_in_a_search: int
) -> None:
    """Each search embeds a batch, so three of them see 36 or 156 vectors of 230 at most."""
    embedder = WordEmbedder(batch_size=embedded_in_a_search)
    fill(root, 1, 6)
    with opened(root, embedder) as older:
        older.migrate()
        fill(root, 7, 230)
        answers(older)
        assert older.info().pending_embeddings > 0
        older.embed()
        found = answers(older)
        with opened(root, embedder) as newer:
            assert found == answers(newer)
    assert any(found)


@contextmanager
def file_of(root: Path, dimensions: int) -> Iterator[tuple[Database, QueryVector]]:
    """Make a file whose only model has so many dimensions, and a query of that model."""
    embedder = WordEmbedder(dimensions=dimensions)
    with opened(root, embedder) as memory:
        memory.store_many(
            {"content": fact(place), "session_id": f"of {place}"} for place in range(1, 21)
        )
        memory.migrate()
        path = memory.path
    database = Database(path)
    (model,) = EmbeddingTable(database).models()
    yield database, QueryVector(model, quantize(text_vector("violin", dimensions)).data)
    database.close()


def test_the_middles_of_two_files_are_not_mixed_up(tmp_path: Path) -> None:
    """Both models have the same number in their files, which have as many memories."""
    with (
        file_of(tmp_path / "one", 64) as (one, of_one),
        file_of(tmp_path / "two", 32) as (two, of_two),
    ):
        assert of_one.model.model_id == of_two.model.model_id
        indexes = {one: VectorIndex(one), two: VectorIndex(two)}
        for database, query in [(one, of_one), (two, of_two), (one, of_one)]:
            with database.read():
                seen = indexes[database].center(query).seen
                fresh = VectorIndex(database).center(query).seen
            assert seen is not None
            assert len(seen.middle.numbers) == query.model.dimensions
            assert seen == fresh


def test_after_a_change_of_the_model_a_handle_sees_from_the_middle_of_the_new_one(
    root: Path,
) -> None:
    fill(root, 1, 40)
    small = WordEmbedder(model="small", dimensions=32)
    with opened(root, WordEmbedder()) as older:
        older.migrate()
        answers(older)
        older.migrate(embedder=small)
        found = answers(older)
    with opened(root, small) as newer:
        assert found == answers(newer)
    assert any(found)


# Cosines ----------------------------------------------------------------------------------------


def test_what_is_found_by_its_words_has_a_cosine_though_many_are_nearer(root: Path) -> None:
    """A hundred are the nearest at most, and this one is none of them."""
    wordy = "zebra " + " ".join(f"filler{place}" for place in range(40))
    with opened(root, WordEmbedder()) as memory:
        memory.store_many(
            {"content": f"dog {place}", "session_id": f"of {place}"} for place in range(150)
        )
        memory.store(wordy, session_id="apart")
        memory.migrate()
        hits = {hit.memory.content: hit.score for hit in ask(memory, "dog dog dog zebra")}
    assert (score := hits[wordy]) is not None
    assert score.cosine is not None
    assert score.cosine < max(other.cosine or 0.0 for other in hits.values() if other)


# The floor --------------------------------------------------------------------------------------


def query(corpus_size: int, *frequencies: int) -> QueryProfile:
    return QueryProfile(frequencies, corpus_size, cosine_scale=CosineScale(weight=1.0, floor=FLOOR))


def test_the_floor_grows_with_the_store_up_to_that_of_the_model() -> None:
    floors = [floor_of(query(size)) for size in (1, 6, 50, 300, 10_000)]
    assert floors == sorted(floors)
    assert floors[1] < floors[2] < floors[3]
    assert floors[3:] == pytest.approx([FLOOR, FLOOR])


@pytest.mark.parametrize("size", [0, 1, 2, 6, 50, 300, 10_000])
def test_the_floor_is_never_under_its_least_share(size: int) -> None:
    assert LEAST_SHARE * FLOOR <= floor_of(query(size)) <= FLOOR


def test_the_floor_of_the_smallest_store_is_the_least_share() -> None:
    assert floor_of(query(1)) == pytest.approx(LEAST_SHARE * FLOOR)


def test_without_a_model_no_cosine_reaches_the_floor() -> None:
    assert floor_of(QueryProfile((), 10)) == 1.0


# Kept places ------------------------------------------------------------------------------------


def candidate(row_id: int, *counts: int, cosine: float | None = None) -> Candidate:
    present = {place: count for place, count in enumerate(counts) if count}
    return Candidate(row_id, f"session-{row_id}", present, 10, date(2026, 1, 30), cosine=cosine)


def by_chance(cosine: float, *, size: int) -> Ranking:
    """Rank six that have a common word of four by chance, and one that has only that cosine."""
    others = [candidate(row_id, 1, 0, 0, 0) for row_id in range(1, 7)]
    asked = query(size, max(1, size // 8), 1, 1, 1)
    return rank([*others, candidate(7, 0, 0, 0, 0, cosine=cosine)], asked, RankingRates())


def kept(found: Ranking) -> list[int]:
    return [hit.row_id for hit in found.order if hit.has_kept_place]


@pytest.mark.parametrize("size", [1, 6, 50, 300, 10_000])
def test_a_place_is_kept_for_a_cosine_above_half_the_floor(size: int) -> None:
    half = floor_of(query(size)) / 2
    assert kept(by_chance(half * 1.01, size=size)) == [7]
    assert by_chance(half * 1.01, size=size).order[MEANING_PLACE_STEP - 1].row_id == 7
    assert kept(by_chance(half * 0.99, size=size)) == []
    assert by_chance(half * 0.99, size=size).order[-1].row_id == 7


def test_what_would_stand_there_anyway_stands_by_more_than_its_meaning() -> None:
    """The fourth of four by words has the nearest meaning: its place is its own."""
    found = rank(
        [
            candidate(1, 3, 0, 0, 0),
            candidate(2, 3, 0, 0, 0),
            candidate(3, 3, 0, 0, 0),
            candidate(4, 1, 0, 0, 0, cosine=FLOOR * 0.6),
        ],
        QueryProfile((3_000, 1, 1, 1), 10_000, cosine_scale=CosineScale(weight=0.01, floor=FLOOR)),
        RankingRates(),
    )
    assert [hit.row_id for hit in found.order][-1] == 4
    assert kept(found) == []


HOBBIES = [
    "Small talk about food in the office",
    "A food market opens on Monday, small and cheap",
    "The small truck brings food",
    "Small print on food labels",
    "Food in small portions",
    "Small shelves for the food",
]
QUESTION = "Which small food gets the puppy Bello Barker"
NEAREST = "Dogs love biscuits: our young hound eats nothing else"


@pytest.fixture
def kept_place(root: Path) -> Path:
    with opened(root) as memory:
        for text in [*HOBBIES, NEAREST, *(f"The lift of house {n} was checked" for n in range(20))]:
            memory.store(text, session_id=f"alone with {text}")
        memory.migrate()
    return root


def test_a_kept_place_is_told_and_comes_back_from_json(kept_place: Path) -> None:
    with opened(kept_place) as memory:
        results = ask(memory, QUESTION)
    told = [hit.memory.content for hit in results if hit.score and hit.score.has_kept_place]
    assert NEAREST in told
    assert [hit.memory.content for hit in results][MEANING_PLACE_STEP - 1] in told
    again = SearchResults.model_validate_json(results.model_dump_json())
    assert again == results
    assert told == [hit.memory.content for hit in again if hit.score and hit.score.has_kept_place]


def test_the_shell_tells_a_kept_place_and_no_other(
    kept_place: Path, cli: Callable[..., Any]
) -> None:
    with opened(kept_place) as memory:
        results = ask(memory, QUESTION)
    expected = sum(hit.score.has_kept_place for hit in results if hit.score)
    shown = cli("--agent", "bob", "search", QUESTION, "--limit", "20", "--explain")
    assert shown.code == 0, shown.err
    assert expected > 0
    assert shown.out.count("in a place reserved for the closest in meaning") == expected

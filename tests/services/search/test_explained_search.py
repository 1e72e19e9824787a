"""Results that explain themselves, and what they show of the order: dates, names, questions.

Real files, by keyword and with wordllama's real weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock
from reads import contents

from agent_memory import AgentMemory, SearchResults
from agent_memory.models.search import ScoreExplanation
from agent_memory.services.search.ranking import CONTRAST
from agent_memory.services.search.strength import STRENGTH_FLOOR

TALK = [
    "Ann: Where did you go with the children last summer?",
    "Bob: We went to the lake near Siena, the children swam every day",
    "Ann: That sounds lovely. Did the dog come along?",
    "Bob: No, he stayed with my sister. She has a garden.",
    "Ann: I started to learn the violin in March",
    "Bob: My brother plays the violin in an orchestra in Siena",
]
WORK = [
    "The deploy of the payment service failed because of a missing certificate",
    "The certificate of the payment service is renewed every ninety days",
    "Prefer PostgreSQL for new services",
    "The staging server is rebuilt every Monday",
]
QUESTIONS = [
    "Where did Bob go with the children?",
    "who plays the violin",
    "certificate of the payment service",
    "what happened at the lake in Siena last summer",
    "PostgreSQL",
    "what broke in the last two weeks?",
]
PARTS = [
    "keyword", "keyword_neighbours", "keyword_session", "vector", "vector_neighbours",
    "vector_session", "subject", "date", "question",
]  # fmt: skip


@pytest.fixture(scope="module", params=[None, "wordllama"], ids=["keyword", "wordllama"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentMemory]:
    """Open a store of two sessions of different age, of which some memories were used."""
    clock = Clock(NOW - timedelta(days=40))
    root = tmp_path_factory.mktemp("explained")
    with AgentMemory("bob", root=root, clock=clock, embedder=request.param) as memory:
        for session, texts in (("talk", TALK), ("work", WORK)):
            for text in texts:
                memory.store(text, session_id=session)
                clock.forward(minutes=1)
            clock.now = NOW - timedelta(days=3)
        if request.param:
            memory.migrate(embedder=request.param)
        clock.now = NOW
        for _ in range(7):
            memory.search("PostgreSQL")
        memory.info()  # writes the accesses that were counted
        yield memory


def ask(memory: AgentMemory, question: str, **options: Any) -> SearchResults:
    return memory.search(question, 20, explain=True, count_accesses=False, **options)


def score(found: Any) -> ScoreExplanation:
    assert isinstance(found.score, ScoreExplanation)
    return found.score


def store_apart(memory: AgentMemory, *contents: str, **fields: Any) -> None:
    """Store memories in a session each, so that none is near another."""
    for text in contents:
        memory.store(text, session_id=f"alone with {text}", **fields)


# What a score is made of ------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_parts_make_the_score(store: AgentMemory, question: str) -> None:
    results = ask(store, question)
    assert results
    best = max(score(hit).evidence for hit in results)
    for hit in results:
        found = score(hit)
        assert sum(getattr(found, part) for part in PARTS) == pytest.approx(found.evidence)
        assert found.relative == pytest.approx((found.evidence / best) ** CONTRAST)
        assert hit.similarity == pytest.approx(found.relative * found.strength)
        assert hit.relevance_score == pytest.approx(
            hit.similarity * found.freshness * found.access_boost
        )
        assert hit.passed_gate is (found.relative >= found.gate)
        assert found.strength >= STRENGTH_FLOOR
    assert results[0].passed_gate


@pytest.mark.parametrize("question", QUESTIONS)
def test_freshness_and_access_boost_are_those_of_the_memory(
    store: AgentMemory, question: str
) -> None:
    for hit in ask(store, question):
        memory = hit.memory
        fresh = memory.model_copy(update={"access_count": 0})
        new = memory.model_copy(update={"timestamp": NOW})
        assert score(hit).freshness == pytest.approx(fresh.calculate_relevance_score(1.0, NOW))
        assert score(hit).access_boost == pytest.approx(new.calculate_relevance_score(1.0, NOW))


def test_a_used_memory_has_a_boost_and_a_lower_gate(store: AgentMemory) -> None:
    by_content = {hit.memory.content: score(hit) for hit in ask(store, "PostgreSQL services")}
    used, unused = by_content.pop("Prefer PostgreSQL for new services"), [*by_content.values()]
    assert unused
    assert all(used.access_boost > 1.0 == other.access_boost for other in unused)
    assert all(used.gate < other.gate for other in unused)


def test_an_old_memory_that_was_never_used_has_a_higher_gate(store: AgentMemory) -> None:
    old, new = (score(ask(store, word)[0]) for word in ("violin", "certificate"))
    assert old.gate > new.gate
    assert old.freshness < new.freshness < 1.0


def test_the_order_is_the_same_with_and_without_explanation(store: AgentMemory) -> None:
    for question in QUESTIONS:
        without = store.search(question, 20, count_accesses=False)
        explained = ask(store, question)
        assert contents(without) == contents(explained)
        assert [hit.similarity for hit in without] == [hit.similarity for hit in explained]
        assert all(hit.score is None for hit in without)


def test_near_misses_have_scores_too(store: AgentMemory) -> None:
    def misses(**options: Any) -> Sequence[Any]:
        results = store.search("the violin and a zebra", similarity_threshold=1.0, **options)
        assert all(hit.similarity == 1.0 for hit in results)
        return results.search_metadata.near_misses

    assert misses()
    assert all(miss.score is None for miss in misses())
    for miss in misses(explain=True):
        found = score(miss)
        assert sum(getattr(found, part) for part in PARTS) == pytest.approx(found.evidence)
        assert miss.similarity == pytest.approx(found.relative * found.strength)
        assert miss.similarity < 1.0


def test_near_misses_below_the_floor_say_how_strong_they_are(store: AgentMemory) -> None:
    results = ask(store, "which zebra of Quentin ate the orchestra of Timbuktu and Zanzibar?")
    assert (list(results), results.search_metadata.reason) == ([], "below_floor")
    assert results.search_metadata.near_misses
    for miss in results.search_metadata.near_misses:
        assert score(miss).strength < STRENGTH_FLOOR
        assert f"{score(miss).strength:.0%}" in miss.reason


@pytest.mark.parametrize("question", QUESTIONS)
def test_results_with_scores_come_back_from_json(store: AgentMemory, question: str) -> None:
    results = ask(store, question)
    text = results.model_dump_json()
    assert SearchResults.model_validate_json(text) == results
    assert SearchResults.model_validate(json.loads(text)).results[0].score == results[0].score


def test_only_a_search_by_meaning_has_parts_of_meaning(store: AgentMemory) -> None:
    results = ask(store, "who plays the violin")
    by_meaning = results.search_metadata.backend == "vector"
    for hit in results:
        assert (score(hit).cosine is not None) is by_meaning
    assert (score(results[0]).vector > 0.0) is by_meaning
    assert (score(results[0]).vector_session > 0.0) is by_meaning


def test_parts_say_where_the_words_stood(store: AgentMemory) -> None:
    found = {hit.memory.content: score(hit) for hit in ask(store, "orchestra")}
    hit, neighbour = found[TALK[5]], found[TALK[4]]
    assert hit.keyword > 0.0 == neighbour.keyword
    assert hit.keyword_neighbours > neighbour.keyword_neighbours > 0.0
    assert hit.keyword_session == neighbour.keyword_session > 0.0


# Questions and subjects -------------------------------------------------------------------------


def test_what_ends_with_a_question_comes_after_what_answers(plain: AgentMemory) -> None:
    store_apart(plain, "My bicycle is green", "Is my bicycle green?")
    results = ask(plain, "green bicycle")
    assert contents(results) == ["My bicycle is green", "Is my bicycle green?"]
    told, asked = map(score, results)
    assert told.question == 0.0 > asked.question
    assert told.keyword == asked.keyword


@pytest.mark.parametrize(
    ("content", "asks"),
    [
        ("Is my bicycle green?", True),
        ("Is my bicycle green? [a photo of a bicycle]", True),
        ("bicycle は緑ですか\uff1f", True),
        ("bicycle: http://example.org/?green", False),
        ("Is my bicycle green? It is.", False),
        ("Is my bicycle green? Yes", False),
        ("What a bicycle!", False),
        ("The bicycle", False),
    ],
)
def test_whether_a_memory_asks_is_seen_at_its_end(
    plain: AgentMemory, content: str, asks: bool
) -> None:
    plain.store(content)
    (hit,) = ask(plain, "bicycle")
    assert (score(hit).question < 0.0) is asks


def test_who_speaks_comes_before_who_is_spoken_of(plain: AgentMemory) -> None:
    store_apart(plain, "Carla: the piano is old", "the piano is old, Carla")
    results = ask(plain, "What did Carla say of the piano?")
    assert contents(results) == ["Carla: the piano is old", "the piano is old, Carla"]
    assert score(results[0]).subject > 0.0 == score(results[1]).subject


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question", ["What is the violin of Zoltan?", "Does Zoltan play the violin, Bob?"]
)
def test_a_question_about_somebody_unknown_finds_nothing_but_near_misses(
    plain: AgentMemory, question: str
) -> None:
    store_apart(plain, "Carla plays the violin", "Dmitri sold a bicycle")
    results = ask(plain, question)
    assert list(results) == []
    assert results.search_metadata.reason == "below_floor"
    (miss,) = results.search_metadata.near_misses
    assert miss.content == "Carla plays the violin"
    assert contents(ask(plain, "Does Carla play the violin?")) == ["Carla plays the violin"]


@pytest.mark.parametrize(
    "question",
    [
        "where is the violin",
        "violin, please",
        "VIOLIN",
        "Carla NOT violin",
        "Has she an Italian violin?",
    ],
)
def test_words_that_are_no_names_take_no_answer_away(plain: AgentMemory, question: str) -> None:
    store_apart(plain, "Carla plays the violin")
    assert contents(ask(plain, question)) == ["Carla plays the violin"]


# Dates ------------------------------------------------------------------------------------------


@pytest.fixture
def diary(plain: AgentMemory) -> AgentMemory:
    """Store one memory of each of some days, and none that says a date."""
    for days, text in {
        0: "The release went out",
        1: "Ingrid repaired the printer",
        9: "Omar renewed the contract",
        60: "The office moved to another street",
        400: "Keiko joined the team",
    }.items():
        store_apart(plain, text, timestamp=NOW - timedelta(days=days))
    return plain


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what happened yesterday?", "Ingrid repaired the printer"),
        ("what did we do last week", "Omar renewed the contract"),
        ("what was done on 29 January 2026?", "Ingrid repaired the printer"),
        ("what happened on 2026-01-21", "Omar renewed the contract"),
        ("anything about two months ago?", "The office moved to another street"),
        ("what was in December 2024", "Keiko joined the team"),
        ("what happened today?", "The release went out"),
    ],
)
def test_a_question_about_a_time_finds_what_is_of_it_without_a_common_word(
    diary: AgentMemory, question: str, first: str
) -> None:
    results = ask(diary, question)
    assert contents(results)[0] == first
    assert score(results[0]).date > 0.0
    assert results[0].match_type in ("keyword", "scratchpad")
    assert all(score(hit).date < score(results[0]).date for hit in results[1:])


def test_dates_are_seen_from_the_moment_that_is_given(diary: AgentMemory) -> None:
    later = NOW - timedelta(days=399)
    assert contents(ask(diary, "what happened yesterday?", now=later))[0] == "Keiko joined the team"


def test_words_and_the_time_together_are_more_than_either(diary: AgentMemory) -> None:
    store_apart(diary, "Omar sold the printer", timestamp=NOW - timedelta(days=9))
    evidence = {
        hit.memory.content: score(hit).evidence
        for hit in ask(diary, "what about the printer last week?")
    }
    assert max(evidence, key=evidence.__getitem__) == "Omar sold the printer"
    assert evidence["Ingrid repaired the printer"] > evidence["Omar renewed the contract"] > 0.0


def test_of_a_time_at_which_nothing_happened_nothing_is_found(diary: AgentMemory) -> None:
    results = ask(diary, "what happened on 3 March 2019?")
    assert list(results) == []
    assert results.search_metadata.reason in ("no_match", "below_floor")


def test_filters_hold_for_what_is_of_the_time_too(diary: AgentMemory) -> None:
    diary.store("The fridge is empty", category="task", timestamp=NOW - timedelta(days=1))
    assert contents(ask(diary, "what happened yesterday?", category="task")) == [
        "The fridge is empty"
    ]


@pytest.mark.parametrize("moment", ["00:00:00", "23:59:59.999999"])
def test_a_day_is_whole(diary: AgentMemory, moment: str) -> None:
    store_apart(diary, "Just then", timestamp=datetime.fromisoformat(f"2026-01-12T{moment}+00:00"))
    assert contents(ask(diary, "what happened on 12 January 2026?"))[0] == "Just then"


def test_a_text_of_very_many_dates_is_searched_for(diary: AgentMemory) -> None:
    """An agent may search with a whole log."""
    log = "\n".join(f"{2000 + day % 25}-01-{1 + day % 28:02} line {day}" for day in range(3_000))
    assert isinstance(ask(diary, f"printer {log}"), SearchResults)


# Handles ----------------------------------------------------------------------------------------


def test_a_handle_that_searched_before_the_vectors_came_sees_them_like_a_new_one(
    root: Path, clock: Clock
) -> None:
    """The middle of the vectors may be that of some of them, but not of nothing."""

    def cosines(memory: AgentMemory) -> dict[str, float | None]:
        return {hit.memory.content: score(hit).cosine for hit in ask(memory, "violin orchestra")}

    texts = [f"{text} {number}" for number in range(40) for text in TALK]
    with AgentMemory("bob", root=root, clock=clock, embedder="wordllama") as memory:
        memory.migrate(embedder="wordllama")
        with AgentMemory("bob", root=root, clock=clock, embedder=None) as silent:
            silent.store_many({"content": text, "session_id": text} for text in texts)
        assert None in cosines(memory).values()  # most of them have no vector yet
        assert memory.embed() > 0
        with AgentMemory("bob", root=root, clock=clock, embedder="wordllama") as other:
            expected, found = cosines(other), cosines(memory)
        both = expected.keys() & found.keys()
        assert both
        assert None not in expected.values()
        assert [found[text] for text in both] == pytest.approx(
            [expected[text] for text in both], abs=0.05
        )

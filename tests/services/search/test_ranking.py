"""The order of search results, as a pure function: its laws, and its borders."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_candidates import (
    RARE,
    SCALES,
    SPACE,
    TODAY,
    UNTIMED,
    by_row_id,
    candidate,
    order,
    parts,
    query,
    ranking,
)

from agent_memory import Memory
from agent_memory.models.relevance import relevance_score
from agent_memory.services.search.ranking import (
    CONTRAST,
    Ranking,
    RankingRates,
    confidence,
    gate,
    rank,
)
from agent_memory.services.search.scoring import MEANING_POWER, WEIGHTS, Weights
from agent_memory.services.search.signals import Candidate, CosineScale, QueryProfile
from agent_memory.services.search.strength import (
    HANDFUL,
    MANY,
    OTHER_LANGUAGES,
    STRENGTH_FLOOR,
    STRENGTH_FLOOR_OF_A_HANDFUL,
    strength_floor,
)
from agent_memory.text.dates import Span

pytestmark = pytest.mark.file_only("no engine is asked")

WORDS_ALONE = Weights(*[0.0] * 7)
"""Weights that leave nothing but a memory's own words."""


Question = tuple[list[Candidate], QueryProfile, RankingRates]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Draw candidates with sessions and neighbours, as a store would give them."""
    terms = draw(st.integers(0, 3))
    size = draw(st.integers(1, 8))
    sessions = [draw(st.sampled_from("abc")) for _ in range(size)]
    days = st.integers(0, 60).map(lambda days: TODAY - timedelta(days=days))
    candidates = []
    for row_id in range(1, size + 1):
        counts = draw(st.tuples(*[st.integers(0, 3)] * terms))
        around = {
            distance: row_id + distance
            for distance in (-2, -1, 1, 2)
            if 1 <= row_id + distance <= size
            and sessions[row_id + distance - 1] == sessions[row_id - 1]
        }
        candidates.append(
            Candidate(
                row_id=row_id,
                session=sessions[row_id - 1],
                counts={place: count for place, count in enumerate(counts) if count},
                length=sum(counts) + draw(st.integers(0, 40)),
                day=draw(days),
                age_days=draw(st.integers(0, 4_000)),
                access_count=draw(st.integers(0, 50)),
                neighbours=around,
                cosine=draw(st.none() | st.floats(-1, 1)),
                opens=any(counts) and draw(st.booleans()),
                asks=draw(st.booleans()),
            )
        )
    asked = QueryProfile(
        frequencies=[
            sum(1 for one in candidates if term in one.counts) + draw(st.integers(0, 500))
            for term in range(terms)
        ],
        corpus_size=draw(st.integers(size, 5_000)),
        name_terms=draw(st.sets(st.integers(0, max(0, terms - 1)))),
        spans=[Span(day, day) for day in draw(st.lists(days, max_size=2))],
        cosine_scale=draw(st.none() | SCALES),
    )
    rates = RankingRates(
        decay=draw(st.floats(0, 2)), boost=draw(st.floats(0, 2)), gate=draw(st.floats(0, 1))
    )
    return candidates, asked, rates


# Laws -------------------------------------------------------------------------------------------


@UNTIMED
@given(questions(), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_candidates(
    question: Question, chance: random.Random
) -> None:
    candidates, asked, rates = question
    before = list(candidates)
    first = rank(candidates, asked, rates)
    assert candidates == before  # what was given is not changed
    assert rank(candidates, asked, rates) == first
    chance.shuffle(candidates)
    assert rank(candidates, asked, rates) == first


@UNTIMED
@given(questions())
def test_every_candidate_with_evidence_is_there_once_and_no_other(question: Question) -> None:
    candidates, asked, _ = question
    evidence = parts(candidates, asked, WEIGHTS)
    expected = sorted(row_id for row_id, found in evidence.items() if found.total > 0)
    found = rank(*question)
    assert sorted(order(found)) == expected
    assert all(ranked.evidence == evidence[ranked.row_id] for ranked in found.order)


@UNTIMED
@given(questions())
def test_whatever_has_a_word_of_the_query_is_there_and_matches(question: Question) -> None:
    candidates, asked, rates = question
    found = by_row_id(rank(candidates, asked, rates))
    for one in candidates:
        if one.counts:
            assert found[one.row_id].matches
            assert found[one.row_id].by_words


@UNTIMED
@given(questions())
def test_similarity_and_strength_are_0_to_1(question: Question) -> None:
    found = rank(*question)
    assert 0.0 <= found.strength <= 1.0
    for ranked in found.order:
        assert 0.0 <= ranked.relative <= 1.0
        assert 0.0 <= ranked.similarity <= found.strength
        assert math.isfinite(ranked.relevance)
        assert ranked.relevance >= 0.0
        assert ranked.matches or not ranked.by_words
    if found.order:
        # Nothing is as similar as it could be but the best, which has the whole strength.
        assert max(ranked.relative for ranked in found.order) == 1.0
        assert max(ranked.similarity for ranked in found.order) == found.strength


@UNTIMED
@given(questions())
def test_a_share_of_the_best_evidence_makes_the_similarity(question: Question) -> None:
    found = rank(*question)
    best = max((ranked.evidence.total for ranked in found.order), default=1.0)
    for ranked in found.order:
        assert ranked.relative == pytest.approx((ranked.evidence.total / best) ** CONTRAST)
        assert ranked.similarity == pytest.approx(ranked.relative * found.strength)


@UNTIMED
@given(questions())
def test_good_answers_come_first_by_relevance_and_then_the_rest_by_similarity(
    question: Question,
) -> None:
    """As long as meaning has no places of its own: see test_ranking_by_meaning.py."""
    candidates, asked, rates = question
    found = rank(candidates, asked._replace(cosine_scale=None), rates).order
    good = [ranked for ranked in found if ranked.passed_gate]
    rest = [ranked for ranked in found if not ranked.passed_gate]
    assert found == good + rest
    assert all(one.relevance >= two.relevance for one, two in pairwise(good))
    assert all(one.similarity >= two.similarity for one, two in pairwise(rest))
    assert bool(good) == bool(found)  # the best of a question always passes


@UNTIMED
@given(questions())
def test_relevance_is_the_formula_of_a(question: Question) -> None:
    rates = question[2]
    for ranked in rank(*question).order:
        assert ranked.relevance == relevance_score(
            ranked.similarity,
            age_days=ranked.candidate.age_days,
            access_count=ranked.candidate.access_count,
            decay_rate=rates.decay,
            boost_rate=rates.boost,
        )


@UNTIMED
@given(questions())
def test_age_and_use_move_no_similarity(question: Question) -> None:
    candidates, asked, rates = question
    fresh = [one._replace(age_days=0, access_count=0) for one in candidates]
    before, after = by_row_id(rank(candidates, asked, rates)), by_row_id(rank(fresh, asked, rates))
    assert {row_id: one.similarity for row_id, one in before.items()} == {
        row_id: one.similarity for row_id, one in after.items()
    }


# Nothing to find --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidates", "asked"),
    [
        ([], query(3)),
        ([], query()),
        ([candidate(1, 0, 0), candidate(2, 0, 0)], query(3, 4)),
        ([candidate(1), candidate(2)], query()),
        ([candidate(1, 0, length=0)], query(0)),
        ([candidate(1, 0, cosine=-0.1)], query(0, cosine_scale=SPACE)),
    ],
)
def test_without_any_evidence_nothing_is_found(
    candidates: list[Candidate], asked: QueryProfile
) -> None:
    assert ranking(candidates, asked) == Ranking([], 0.0)


@pytest.mark.parametrize("space", [None, SPACE])
def test_among_more_memories_an_answer_must_have_more_of_the_question(
    space: CosineScale | None,
) -> None:
    sizes = [1, HANDFUL, 20, 200, MANY, 1_000_000]
    asked = QueryProfile([1], corpus_size=1, cosine_scale=space)
    floors = [strength_floor(asked._replace(corpus_size=size)) for size in sizes]
    assert floors[0] == floors[1] == STRENGTH_FLOOR_OF_A_HANDFUL
    assert floors[1] < floors[2] < floors[3] < floors[4]
    assert floors[4] == floors[5] == pytest.approx(STRENGTH_FLOOR)


@UNTIMED
@given(questions())
def test_what_words_alone_find_is_found_with_a_model(question: Question) -> None:
    candidates, asked, rates = question
    without = rank(candidates, asked._replace(cosine_scale=None), rates)
    found = rank(candidates, asked._replace(cosine_scale=SPACE), rates)
    assert found.strength >= without.strength
    assert not without.order or found.floor == without.floor


def test_the_words_of_one_and_the_meaning_of_another_make_no_answer() -> None:
    asked = query(3, 3, 3, cosine_scale=SPACE)
    words, meaning = candidate(1, 1, 0, 0), candidate(2, cosine=SPACE.floor + 0.01)
    both = words._replace(cosine=meaning.cosine)
    apart, together = ranking([words, meaning], asked), ranking([both], asked)
    assert apart.strength == ranking([words], asked).strength
    assert together.strength == pytest.approx(apart.strength + 0.01 * 8)


def test_a_question_in_another_language_than_english_is_answered_by_less() -> None:
    asked = QueryProfile([1], corpus_size=500)
    others = strength_floor(asked._replace(is_english=False))
    assert others == pytest.approx(strength_floor(asked) - OTHER_LANGUAGES)


def test_the_two_commoner_words_of_five_are_an_answer_among_few_and_chance_among_many() -> None:
    def found(size: int) -> Ranking:
        rare, common = size // 140, size // 20
        asked = QueryProfile([rare, rare, rare, common, common], corpus_size=size)
        return ranking([candidate(1, 0, 0, 0, 1, 1, length=30)], asked)

    few, many = found(200), found(MANY)
    assert few.strength == pytest.approx(many.strength, abs=0.02)
    assert few.strength > few.floor
    assert many.strength < many.floor


# What comes first -------------------------------------------------------------------------------


@UNTIMED
@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any),
    st.integers(0, 2),
    st.lists(st.integers(1, 1_500), min_size=3, max_size=3),
)
def test_one_more_of_the_words_ranks_higher(
    counts: list[int], term: int, frequencies: list[int]
) -> None:
    more = list(counts)
    more[term] += 1
    # The one with less is the newer one, so that a tie would go to it.
    found = ranking([candidate(1, *more), candidate(2, *counts)], query(*frequencies))
    assert order(found) == [1, 2]
    assert by_row_id(found)[1].similarity > by_row_id(found)[2].similarity


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"length": 5}, {"length": 50}),
        ({"cosine": 0.6}, {"cosine": 0.3}),
        ({"cosine": 0.3}, {}),
        ({"opens": True}, {}),
        ({}, {"asks": True}),
        ({}, {"day": TODAY - timedelta(days=90)}),
        ({"neighbours": {1: 3}}, {}),
        ({"session": "of the third"}, {}),
    ],
)
def test_what_speaks_for_a_memory_puts_it_first(
    better: dict[str, Any], worse: dict[str, Any]
) -> None:
    """The worse one is the newer row, so that a tie would go to it."""
    third = candidate(3, 1, session="of the third", cosine=-0.5)
    pair = [candidate(1, 1, **better), candidate(2, 1, **worse)]
    asked = query(20, cosine_scale=SPACE, spans=[Span(TODAY, TODAY)])
    found = [row_id for row_id in order(ranking([*pair, third], asked)) if row_id != 3]
    assert found == [1, 2]


def test_of_equals_the_newest_comes_first() -> None:
    assert order(ranking([candidate(n, 1) for n in (2, 9, 5)])) == [9, 5, 2]


def test_weights_of_ones_own_are_taken() -> None:
    pair = [candidate(1, 2), candidate(2, 1, opens=True)]
    loud = WORDS_ALONE._replace(subject=10.0)
    assert order(rank(pair, RARE, RankingRates(), WORDS_ALONE)) == [1, 2]
    assert order(rank(pair, RARE, RankingRates(), loud)) == [2, 1]


# What matches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "count", "matches", "by_words"),
    [
        ({}, 1, True, True),
        ({"cosine": 0.1}, 1, True, True),
        ({"cosine": 0.9}, 1, True, True),
        ({"cosine": 0.9}, 0, True, False),
        ({"cosine": 0.21}, 0, True, False),
        ({"cosine": 0.2}, 0, False, False),
        ({"cosine": 0.1}, 0, False, False),
        ({}, 0, False, False),
        ({"day": TODAY - timedelta(days=365)}, 0, True, True),  # the date that is asked for
    ],
)
def test_a_match_has_a_word_a_date_or_a_cosine_above_the_floor(
    fields: dict[str, Any], count: int, matches: bool, by_words: bool
) -> None:
    # The other one lets the first be in the order at all: by its session.
    other = candidate(2, 1, cosine=-0.5, session="same")
    one = candidate(1, count, session="same", **fields)
    long_ago = TODAY - timedelta(days=365)
    asked = query(20, cosine_scale=SPACE, spans=[Span(long_ago, long_ago)])
    found = by_row_id(ranking([one, other], asked))[1]
    assert (found.matches, found.by_words) == (matches, by_words)


def test_a_memory_found_through_its_neighbour_is_no_match() -> None:
    found = by_row_id(ranking([candidate(1, 0, neighbours={-1: 2}), candidate(2, 2)]))
    assert not found[1].matches
    assert 0.0 < found[1].similarity < found[2].similarity


# The gate ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accesses", "age", "threshold"),
    [
        (0, 0, 0.75),
        (0, 30, 0.75),
        (0, 31, 0.85),
        (1, 31, 0.75),
        (5, 31, 0.75),
        (5, 4_000, 0.75),
        (6, 0, 0.70),
        (6, 31, 0.70),
        (1_000, 4_000, 0.70),
    ],
)
def test_the_thresholds_of_the_gate(accesses: int, age: int, threshold: float) -> None:
    one = candidate(1, 1, access_count=accesses, age_days=age)
    assert gate(one, 0.75) == pytest.approx(threshold)
    # A different middle moves all three.
    assert gate(one, 0.60) == pytest.approx(threshold - 0.15)
    assert ranking([one], gate=0.5).order[0].gate == pytest.approx(threshold - 0.25)


def test_no_threshold_is_over_the_best_similarity() -> None:
    assert gate(candidate(1, 1, age_days=31), 1.0) == 1.0
    assert ranking([candidate(1, 1, age_days=31)], gate=1.0).order[0].passed_gate


@pytest.mark.parametrize(
    ("share", "fields", "passes"),
    [
        (0.72, {"access_count": 5}, False),
        (0.72, {"access_count": 6}, True),
        (0.80, {"age_days": 30}, True),
        (0.80, {"age_days": 31}, False),
        (0.80, {"age_days": 31, "access_count": 1}, True),
        (0.60, {"access_count": 1_000}, False),
        (0.90, {"age_days": 4_000}, True),
    ],
)
def test_who_passes_the_gate_at_its_borders(
    share: float, fields: dict[str, int], passes: bool
) -> None:
    # With meaning alone the share of the evidence is known: it is that of the cosines, to a power.
    cosine = 0.8 * share ** (1 / MEANING_POWER / CONTRAST)
    pair = [candidate(1, cosine=0.8), candidate(2, cosine=cosine, **fields)]
    found = by_row_id(rank(pair, query(cosine_scale=SPACE), RankingRates(), WORDS_ALONE))
    assert found[2].relative == pytest.approx(share)
    assert found[2].passed_gate is passes


def test_a_share_equal_to_the_threshold_passes_and_the_next_lower_does_not() -> None:
    pair = [candidate(1, 9), candidate(2, 2)]
    share = by_row_id(ranking(pair))[2].relative
    assert 0.0 < share < 1.0
    assert by_row_id(ranking(pair, gate=share))[2].passed_gate
    assert not by_row_id(ranking(pair, gate=math.nextafter(share, 1)))[2].passed_gate


def test_a_fresh_memory_below_the_gate_does_not_outrank_an_old_answer() -> None:
    old = candidate(1, 9, 1, age_days=3_000)
    fresh = candidate(2, 1, 0, age_days=0, access_count=50)
    found = ranking([old, fresh], query(20, 20))
    assert order(found) == [1, 2]
    assert not by_row_id(found)[2].passed_gate
    assert by_row_id(found)[2].relevance > by_row_id(found)[1].relevance


# Age and use ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "accesses", "factor"), [(0, 0, 1.0), (10, 0, 0.5), (0, 4, 1.2), (10, 4, 0.6)]
)
def test_relevance_by_hand(age: int, accesses: int, factor: float) -> None:
    ranked = ranking([candidate(1, 1, age_days=age, access_count=accesses)]).order[0]
    assert ranked.similarity == 1.0
    assert ranked.relevance == pytest.approx(factor)
    now = datetime(2026, 1, 30, tzinfo=UTC)
    memory = Memory(
        agent_id="bob",
        content="x",
        category="note",
        created_by_session="s",
        timestamp=now - timedelta(days=age),
        access_count=accesses,
    )
    assert ranked.relevance == memory.calculate_relevance_score(1.0, now)


def test_among_good_answers_the_newer_and_the_used_come_first() -> None:
    equals = [
        candidate(1, 1, age_days=5),
        candidate(2, 1, age_days=2),
        candidate(3, 1, age_days=5, access_count=30),
    ]
    assert order(ranking(equals)) == [3, 2, 1]
    assert order(ranking(equals, decay=0.0, boost=0.0)) == [3, 2, 1]
    assert order(ranking(equals, boost=0.0)) == [2, 3, 1]


def test_a_confidence_is_the_share_of_relevant_hits_that_was_counted() -> None:
    """As the guide on measurements has it: even a perfect similarity is right in six of ten."""
    similarities = (0.0, 0.5, 0.8, 1.0)
    by_words = [confidence(similarity, by_meaning=False) for similarity in similarities]
    by_meaning = [confidence(similarity, by_meaning=True) for similarity in similarities]
    assert by_words == pytest.approx([0.01, 0.11, 0.35, 0.60], abs=0.01)
    assert by_meaning == pytest.approx([0.015, 0.095, 0.25, 0.43], abs=0.01)


def _two_sessions(**asked: bool) -> Ranking:
    """Rank two memories of one session, and one of another that has a little less."""
    monday = [candidate(1, 1, session="monday"), candidate(2, 1, session="monday", length=12)]
    tuesday = candidate(3, 1, session="tuesday", length=13)
    return rank([*monday, tuesday], query(20, **asked), RankingRates(), WORDS_ALONE)


def test_asked_for_several_things_a_second_session_comes_before_the_second_of_one() -> None:
    plain, spread = _two_sessions(), _two_sessions(asks_for_several=True)
    assert [hit.row_id for hit in plain.order] == [1, 2, 3]
    assert [hit.row_id for hit in spread.order] == [1, 3, 2]
    scores = {hit.row_id: hit.similarity for hit in plain.order}
    assert {hit.row_id: hit.similarity for hit in spread.order} == scores
    assert (spread.passed, spread.matches) == (plain.passed, plain.matches)

"""What cosines add to the order of search results, as a pure function: its laws, its borders."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory.ranking import STRENGTH_FLOOR, Candidate, Ranked, Ranking, Rates, Space, rank

# How long an example takes is no matter of these tests.
UNTIMED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
CORPUS = 2_000
SPACE = Space(weight=1.0, floor=0.2)
RARE = (20,)
"""In how many memories the query's one word stands."""

Question = tuple[list[Candidate], list[int], int, Rates]


def candidate(seq: int, *counts: int, cosine: float | None = None, **fields: Any) -> Candidate:
    """Make a candidate alone in its session, of ten words, stored today and never accessed."""
    given_fields = {
        "session": f"session-{seq}",
        "length": 10,
        "age_days": 0,
        "access_count": 0,
        "neighbours": {},
        **fields,
    }
    return Candidate(seq=seq, counts=counts, cosine=cosine, **given_fields)


def ranking(
    candidates: Sequence[Candidate],
    space: Space | None = SPACE,
    *,
    frequencies: Sequence[int] = RARE,
) -> Ranking:
    return rank(candidates, frequencies, CORPUS, Rates(), space)


def by_seq(found: Ranking) -> dict[int, Ranked]:
    return {ranked.seq: ranked for ranked in found.order}


def order(found: Ranking) -> list[int]:
    return [ranked.seq for ranked in found.order]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Draw candidates with sessions, neighbours and cosines, as a store would give them."""
    terms = draw(st.integers(0, 3))
    size = draw(st.integers(1, 8))
    sessions = [draw(st.sampled_from("abc")) for _ in range(size)]
    candidates = []
    for seq in range(1, size + 1):
        counts = draw(st.tuples(*[st.integers(0, 3)] * terms))
        around = {
            distance: seq + distance
            for distance in (-2, -1, 1, 2)
            if 1 <= seq + distance <= size and sessions[seq + distance - 1] == sessions[seq - 1]
        }
        candidates.append(
            Candidate(
                seq=seq,
                session=sessions[seq - 1],
                counts=counts,
                length=sum(counts) + draw(st.integers(0, 40)),
                age_days=draw(st.integers(0, 4_000)),
                access_count=draw(st.integers(0, 50)),
                neighbours=around,
                cosine=draw(st.none() | st.floats(-1, 1)),
            )
        )
    frequencies = [
        sum(1 for one in candidates if one.counts[term]) + draw(st.integers(0, 500))
        for term in range(terms)
    ]
    rates = Rates(draw(st.floats(0, 2)), draw(st.floats(0, 2)), draw(st.floats(0, 1)))
    return candidates, frequencies, draw(st.integers(size, 5_000)), rates


SPACES = st.builds(Space, weight=st.floats(0, 10), floor=st.floats(-1, 0.9))


# Laws -------------------------------------------------------------------------------------------


@UNTIMED
@given(questions(), SPACES)
def test_similarity_and_strength_are_0_to_1(question: Question, space: Space) -> None:
    found = rank(*question, space)
    assert 0.0 <= found.strength <= 1.0
    for ranked in found.order:
        assert 0.0 <= ranked.similarity <= found.strength
        assert ranked.relevance >= 0.0
        assert ranked.matches or not ranked.by_words


@UNTIMED
@given(questions(), SPACES, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_candidates(
    question: Question, space: Space, chance: random.Random
) -> None:
    candidates, frequencies, size, rates = question
    first = rank(candidates, frequencies, size, rates, space)
    assert rank(candidates, frequencies, size, rates, space) == first
    shuffled = list(candidates)
    chance.shuffle(shuffled)
    assert order(rank(shuffled, frequencies, size, rates, space)) == order(first)
    assert rank(shuffled, frequencies, size, rates, space) == first


@UNTIMED
@given(questions(), st.floats(-1, 0.9))
def test_a_weight_of_0_gives_the_order_of_the_words(question: Question, floor: float) -> None:
    with_weight = rank(*question, Space(0.0, floor))
    by_words = rank(*question)
    assert order(with_weight) == order(by_words)
    if with_weight.strength == by_words.strength:
        places = [(one.seq, one.similarity, one.passed_gate) for one in by_words.order]
        assert [(one.seq, one.similarity, one.passed_gate) for one in with_weight.order] == places


@UNTIMED
@given(questions())
def test_cosines_without_a_space_count_nothing(question: Question) -> None:
    candidates, frequencies, size, rates = question
    without = [replace(one, cosine=None) for one in candidates]
    assert rank(candidates, frequencies, size, rates) == rank(without, frequencies, size, rates)


@UNTIMED
@given(questions(), SPACES)
def test_a_space_without_any_cosine_changes_nothing(question: Question, space: Space) -> None:
    candidates, frequencies, size, rates = question
    without = [replace(one, cosine=None) for one in candidates]
    found = rank(without, frequencies, size, rates, space)
    assert found == rank(without, frequencies, size, rates)


@UNTIMED
@given(questions(), st.floats(0.01, 1), st.floats(-0.5, 0.5))
def test_where_the_cosines_of_a_model_begin_and_how_far_they_reach_does_not_matter(
    question: Question, stretch: float, shift: float
) -> None:
    """Min-max: only the strength, which has its floor, looks at the cosines themselves."""
    candidates, frequencies, size, rates = question
    coarse = [
        replace(one, cosine=None if one.cosine is None else round(one.cosine, 2))
        for one in candidates
    ]
    moved = [
        replace(one, cosine=None if one.cosine is None else one.cosine * stretch + shift)
        for one in coarse
    ]
    space = Space(1.0, floor=-3.0)  # everything is above it
    first = by_seq(rank(coarse, frequencies, size, rates, space))
    second = by_seq(rank(moved, frequencies, size, rates, space))
    best = max((one.similarity for one in first.values()), default=1.0)
    other_best = max((one.similarity for one in second.values()), default=1.0)
    for seq in first.keys() & second.keys():
        relative = first[seq].similarity / best
        assert second[seq].similarity / other_best == pytest.approx(relative, abs=1e-6)


# What a cosine is worth -------------------------------------------------------------------------


@pytest.mark.parametrize(("weight", "first"), [(0.5, 1), (1.5, 2)])
def test_the_weight_says_how_much_the_best_meaning_counts_beside_the_best_words(
    weight: float, first: int
) -> None:
    by_words = candidate(1, 1, cosine=0.3)
    by_meaning = candidate(2, 0, cosine=0.9)
    found = ranking([by_words, by_meaning], Space(weight, 0.2))
    assert order(found)[0] == first
    similarities = by_seq(found)
    weaker, stronger = sorted(one.similarity for one in similarities.values())
    assert weaker / stronger == pytest.approx(min(weight, 1 / weight))


def test_of_three_cosines_the_least_counts_0_the_most_1_and_the_middle_half() -> None:
    found = ranking([candidate(seq, 0, cosine=seq / 10) for seq in (5, 6, 7)])
    best = by_seq(found)[7].similarity
    assert by_seq(found)[6].similarity / best == pytest.approx(0.5)
    assert 5 not in by_seq(found)  # it has no evidence at all


def test_equal_cosines_count_alike_and_fully() -> None:
    found = ranking([candidate(seq, 0, cosine=0.6) for seq in (1, 2, 3)])
    assert [one.similarity for one in found.order] == [found.strength] * 3
    assert order(found) == [3, 2, 1]  # the newest first


def test_a_candidate_without_a_cosine_is_ranked_by_its_words() -> None:
    waiting = candidate(1, 1)
    found = by_seq(ranking([waiting, candidate(2, 0, cosine=0.3), candidate(3, 0, cosine=0.8)]))
    assert found[1].by_words
    assert found[1].matches
    assert found[1].similarity == found[3].similarity  # the best of each kind, the weight is 1
    assert 2 not in found


def test_words_and_meaning_together_come_before_either_alone() -> None:
    both, words, meaning = (
        candidate(1, 1, cosine=0.8),
        candidate(2, 1, cosine=0.1),
        candidate(3, 0, cosine=0.8),
    )
    assert order(ranking([both, words, meaning]))[0] == 1


def test_a_query_without_words_is_answered_by_meaning_alone() -> None:
    candidates = [candidate(seq, cosine=cosine) for seq, cosine in ((1, 0.3), (2, 0.9), (3, 0.5))]
    found = ranking(candidates, frequencies=())
    assert order(found)[:2] == [2, 3]
    assert found.strength > STRENGTH_FLOOR
    assert not any(one.by_words for one in found.order)
    assert rank(candidates, (), CORPUS, Rates(), None) == Ranking([], 0.0)


@pytest.mark.parametrize(
    ("best", "floor", "share"),
    [(1.0, 0.2, 1.0), (0.6, 0.2, 0.5), (0.5, 0.0, 0.5), (0.5, -1.0, 0.75)],
)
def test_above_the_floor_the_strength_grows_from_the_least_of_an_answer_to_1(
    best: float, floor: float, share: float
) -> None:
    candidates = [candidate(1, 0, cosine=best), candidate(2, 0, cosine=-0.9)]
    expected = STRENGTH_FLOOR + (1 - STRENGTH_FLOOR) * share
    assert ranking(candidates, Space(1.0, floor)).strength == pytest.approx(expected)


@pytest.mark.parametrize("best", [0.2, 0.1, -0.5])
def test_at_the_floor_and_below_there_is_no_strength(best: float) -> None:
    candidates = [candidate(1, 0, cosine=best), candidate(2, 0, cosine=-0.9)]
    assert ranking(candidates, Space(1.0, 0.2)).strength == 0.0


def test_the_strength_is_that_of_the_words_where_they_are_stronger() -> None:
    assert ranking([candidate(1, 1, cosine=0.21)]).strength == 1.0


@pytest.mark.parametrize(
    ("count", "cosine", "matches", "by_words"),
    [
        (1, None, True, True),
        (1, 0.1, True, True),
        (1, 0.9, True, True),
        (0, 0.9, True, False),
        (0, 0.21, True, False),
        (0, 0.2, False, False),
        (0, 0.1, False, False),
        (0, None, False, False),
    ],
)
def test_a_match_has_a_word_or_a_cosine_above_the_floor(
    count: int, cosine: float | None, matches: bool, by_words: bool
) -> None:
    # The other one lets the first be in the order at all: by its session.
    other = candidate(2, 1, cosine=-0.5, session="same")
    (found,) = [
        one
        for one in ranking([candidate(1, count, cosine=cosine, session="same"), other]).order
        if one.seq == 1
    ]
    assert (found.matches, found.by_words) == (matches, by_words)


def test_below_a_negative_floor_a_candidate_without_a_cosine_is_still_no_match() -> None:
    waiting = candidate(1, 0, session="same")
    other = candidate(2, 1, cosine=0.5, session="same")
    found = by_seq(ranking([waiting, other], Space(1.0, -0.5)))
    assert not found[1].matches


def test_neighbours_and_sessions_give_their_meaning_too() -> None:
    question = candidate(1, 0, cosine=0.9, session="talk", neighbours={1: 2})
    answer = candidate(2, 0, session="talk", neighbours={-1: 1})
    far = candidate(3, 0, cosine=0.1)
    found = by_seq(ranking([question, answer, far]))
    assert found[1].similarity > found[2].similarity > 0.0
    assert 3 not in found
    assert not found[2].matches

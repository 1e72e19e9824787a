"""The order of search results, as a pure function: its laws, and its borders."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory import Memory
from agent_memory.models.memory import relevance_score
from agent_memory.ranking import Candidate, Ranked, Ranking, Rates, gate, rank

# How long an example takes is no matter of these tests.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
CORPUS = 2_000


def candidate(seq: int, *counts: int, **fields: Any) -> Candidate:
    """Make a candidate alone in its session, of ten words, stored today and never accessed."""
    given_fields = {
        "session": f"session-{seq}",
        "length": 10,
        "age_days": 0,
        "access_count": 0,
        "neighbours": {},
        **fields,
    }
    return Candidate(seq=seq, counts=counts, **given_fields)


def ranking(
    candidates: Sequence[Candidate], frequencies: Sequence[int] = (20,), **rates: float
) -> Ranking:
    return rank(candidates, frequencies, CORPUS, Rates(**rates))


def by_seq(found: Ranking) -> Mapping[int, Ranked]:
    return {ranked.seq: ranked for ranked in found.order}


def order(found: Ranking) -> list[int]:
    return [ranked.seq for ranked in found.order]


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Candidate], list[int], int, Rates]:
    """Draw candidates with sessions and neighbours, as a store would give them."""
    terms = draw(st.integers(1, 4))
    size = draw(st.integers(1, 9))
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
            )
        )
    frequencies = [
        sum(1 for one in candidates if one.counts[term]) + draw(st.integers(0, 500))
        for term in range(terms)
    ]
    rates = Rates(
        decay=draw(st.floats(0, 2)), boost=draw(st.floats(0, 2)), gate=draw(st.floats(0, 1))
    )
    return candidates, frequencies, draw(st.integers(size, 5_000)), rates


# Laws ---------------------------------------------------------------------------------------


@UNTIMED
@given(questions(), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_candidates(
    question: tuple[list[Candidate], list[int], int, Rates], chance: random.Random
) -> None:
    candidates, frequencies, size, rates = question
    before = list(candidates)
    first = rank(candidates, frequencies, size, rates)
    assert candidates == before  # what was given is not changed
    assert rank(candidates, frequencies, size, rates) == first
    chance.shuffle(candidates)
    assert rank(candidates, frequencies, size, rates) == first


@UNTIMED
@given(questions())
def test_every_candidate_with_evidence_is_there_once_and_no_other(
    question: tuple[list[Candidate], list[int], int, Rates],
) -> None:
    candidates, frequencies, size, rates = question
    with_words = {one.seq for one in candidates if any(one.counts)}
    sessions = {one.session for one in candidates if any(one.counts)}
    # Neighbours are of the same session, so a session with a word in it is all the evidence.
    expected = sorted(one.seq for one in candidates if one.session in sessions)
    found = rank(candidates, frequencies, size, rates)
    assert sorted(order(found)) == expected
    assert {ranked.seq for ranked in found.order if ranked.matches} == with_words


@UNTIMED
@given(questions())
def test_similarity_and_strength_are_0_to_1(
    question: tuple[list[Candidate], list[int], int, Rates],
) -> None:
    found = rank(*question)
    assert 0.0 <= found.strength <= 1.0
    for ranked in found.order:
        assert 0.0 < ranked.similarity <= 1.0
        assert ranked.similarity <= found.strength
        assert ranked.relevance > 0.0
    if found.order:
        # Nothing is as similar as it could be but the best, which has the whole strength.
        assert max(ranked.similarity for ranked in found.order) == found.strength > 0.0


@UNTIMED
@given(questions())
def test_good_answers_come_first_by_relevance_and_then_the_rest_by_similarity(
    question: tuple[list[Candidate], list[int], int, Rates],
) -> None:
    found = rank(*question).order
    good = [ranked for ranked in found if ranked.passed_gate]
    rest = [ranked for ranked in found if not ranked.passed_gate]
    assert found == good + rest
    assert all(one.relevance >= two.relevance for one, two in pairwise(good))
    assert all(one.similarity >= two.similarity for one, two in pairwise(rest))
    assert bool(good) == bool(found)  # the best of a question always passes


@UNTIMED
@given(questions())
def test_relevance_is_the_formula_of_a(
    question: tuple[list[Candidate], list[int], int, Rates],
) -> None:
    candidates, _, _, rates = question
    given_candidates = {one.seq: one for one in candidates}
    for ranked in rank(*question).order:
        one = given_candidates[ranked.seq]
        assert ranked.relevance == relevance_score(
            ranked.similarity,
            age_days=one.age_days,
            access_count=one.access_count,
            decay_rate=rates.decay,
            boost_rate=rates.boost,
        )


@UNTIMED
@given(questions())
def test_age_and_use_move_no_similarity(
    question: tuple[list[Candidate], list[int], int, Rates],
) -> None:
    candidates, frequencies, size, rates = question
    fresh = [replace(one, age_days=0, access_count=0) for one in candidates]
    before = by_seq(rank(candidates, frequencies, size, rates))
    after = by_seq(rank(fresh, frequencies, size, rates))
    assert {seq: one.similarity for seq, one in before.items()} == {
        seq: one.similarity for seq, one in after.items()
    }


# Nothing to find ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidates", "frequencies"),
    [
        ([], [3]),
        ([], []),
        ([candidate(1, 0, 0), candidate(2, 0, 0)], [3, 4]),
        ([candidate(1), candidate(2)], []),
        ([candidate(1, 0, length=0)], [0]),
    ],
)
def test_without_any_of_the_words_nothing_is_found(
    candidates: list[Candidate], frequencies: list[int]
) -> None:
    assert ranking(candidates, frequencies) == Ranking([], 0.0)


# Words --------------------------------------------------------------------------------------


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    found = ranking([candidate(1, 1, 0), candidate(2, 0, 1)], [3, 900])
    assert order(found) == [1, 2]
    assert order(ranking([candidate(1, 1, 0), candidate(2, 0, 1)], [900, 3])) == [2, 1]


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
    found = ranking([candidate(1, *more), candidate(2, *counts)], frequencies)
    assert order(found) == [1, 2]
    assert by_seq(found)[1].similarity > by_seq(found)[2].similarity


def test_a_short_text_ranks_higher_than_a_long_one_with_the_same_words() -> None:
    found = ranking([candidate(1, 1, length=5), candidate(2, 1, length=50)])
    assert order(found) == [1, 2]


def test_of_equals_the_newest_comes_first() -> None:
    assert order(ranking([candidate(n, 1) for n in (2, 9, 5)])) == [9, 5, 2]


def test_a_question_of_which_few_words_are_known_is_weak() -> None:
    strong = ranking([candidate(1, 1, 1)], [3, 3]).strength
    weak = ranking([candidate(1, 1, 0)], [3, 3]).strength
    weaker = ranking([candidate(1, 1, 0)], [900, 3]).strength
    assert strong == 1.0
    assert weak == pytest.approx(0.5)
    assert 0.0 < weaker < weak


# Neighbours and sessions --------------------------------------------------------------------


def similarity_beside(neighbours: Mapping[int, int], **fields: Any) -> float:
    """Return the similarity of memory 1, which has a word; 2 has it more often, 3 has not."""
    candidates = [
        candidate(1, 1, neighbours=neighbours, **fields),
        candidate(2, 3),
        candidate(3, 0),
    ]
    return by_seq(ranking(candidates))[1].similarity


def test_a_neighbour_with_the_words_helps_the_nearer_the_more() -> None:
    alone = similarity_beside({})
    assert similarity_beside({1: 2}) > similarity_beside({2: 2}) > alone
    assert similarity_beside({-1: 2}) == similarity_beside({1: 2})
    assert similarity_beside({3: 2}) == alone
    assert similarity_beside({1: 3}) == alone  # has none of the words
    assert similarity_beside({1: 99}) == alone  # is no candidate


def test_a_memory_without_the_words_is_found_through_its_neighbour() -> None:
    found = by_seq(ranking([candidate(1, 0, neighbours={-1: 2}), candidate(2, 2)]))
    assert not found[1].matches
    assert 0.0 < found[1].similarity < found[2].similarity


def test_a_session_about_the_matter_helps_its_memories() -> None:
    alone = [candidate(1, 1), candidate(2, 1), candidate(3, 1), candidate(4, 3)]
    together = [replace(one, session="s") if one.seq < 4 else one for one in alone]
    before, after = by_seq(ranking(alone)), by_seq(ranking(together))
    assert after[1].similarity > before[1].similarity
    # A stranger in the session is lifted less than those that have the words themselves.
    stranger = by_seq(ranking([*together, candidate(5, 0, session="s")]))[5]
    assert 0.0 < stranger.similarity < after[1].similarity


def test_of_a_session_only_the_three_best_count() -> None:
    three = [candidate(n, 1, session="s") for n in (1, 2, 3)] + [candidate(9, 3)]
    four = [*three, candidate(4, 1, session="s")]
    # The mean length stays the same, so nothing else changes either.
    assert by_seq(ranking(four))[1].similarity == by_seq(ranking(three))[1].similarity


# The gate -----------------------------------------------------------------------------------

BORDERS = [
    (0, 0, 0.75),
    (0, 30, 0.75),
    (0, 31, 0.85),
    (1, 31, 0.75),
    (5, 31, 0.75),
    (5, 4_000, 0.75),
    (6, 0, 0.70),
    (6, 31, 0.70),
    (1_000, 4_000, 0.70),
]


@pytest.mark.parametrize(("accesses", "age", "threshold"), BORDERS)
def test_the_thresholds_of_the_gate(accesses: int, age: int, threshold: float) -> None:
    one = candidate(1, 1, access_count=accesses, age_days=age)
    assert gate(one, 0.75) == pytest.approx(threshold)
    # A different middle moves all three.
    assert gate(one, 0.60) == pytest.approx(threshold - 0.15)


def test_no_threshold_is_over_the_best_similarity() -> None:
    assert gate(candidate(1, 1, age_days=31), 1.0) == 1.0
    assert ranking([candidate(1, 1, age_days=31)], gate=1.0).order[0].passed_gate


def second_of_two(counts: tuple[int, int], **fields: Any) -> Ranked:
    """Return the weaker of two candidates that have one word so many times."""
    found = ranking([candidate(1, counts[0]), candidate(2, counts[1], **fields)])
    return by_seq(found)[2]


@pytest.mark.parametrize(
    ("counts", "share", "fields", "passes"),
    [
        ((9, 2), (0.70, 0.75), {"access_count": 5}, False),
        ((9, 2), (0.70, 0.75), {"access_count": 6}, True),
        ((12, 3), (0.75, 0.85), {"age_days": 30}, True),
        ((12, 3), (0.75, 0.85), {"age_days": 31}, False),
        ((12, 3), (0.75, 0.85), {"age_days": 31, "access_count": 1}, True),
        ((9, 1), (0.0, 0.70), {"access_count": 1_000}, False),
        ((9, 5), (0.85, 1.0), {"age_days": 4_000}, True),
    ],
)
def test_who_passes_the_gate_at_its_borders(
    counts: tuple[int, int], share: tuple[float, float], fields: dict[str, int], passes: bool
) -> None:
    second = second_of_two(counts, **fields)
    assert share[0] < second.similarity < share[1]
    assert second.passed_gate is passes


def test_a_share_equal_to_the_threshold_passes_and_the_next_lower_does_not() -> None:
    pair = [candidate(1, 9), candidate(2, 2)]
    share = by_seq(ranking(pair))[2].similarity
    assert by_seq(ranking(pair, gate=share))[2].passed_gate
    assert not by_seq(ranking(pair, gate=math.nextafter(share, 1)))[2].passed_gate


def test_a_fresh_memory_below_the_gate_does_not_outrank_an_old_answer() -> None:
    old = candidate(1, 9, age_days=3_000)
    fresh = candidate(2, 1, age_days=0, access_count=50)
    found = ranking([old, fresh])
    assert order(found) == [1, 2]
    assert by_seq(found)[2].relevance > by_seq(found)[1].relevance


# Age and use --------------------------------------------------------------------------------


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

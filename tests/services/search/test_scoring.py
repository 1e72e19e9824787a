"""The evidence for a candidate, part by part: what each part looks at, and what it does not.

No weight stands here: tests set weights of their own, or compare one candidate with another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_candidates import PARTS, PLAIN, SPACE, TODAY, UNTIMED, candidate, parts, query, talk

from agent_memory.services.search.scoring import (
    NEAR_COSINE,
    SESSION_BEST,
    SHORT,
    WEIGHTS,
    Weights,
    weigh,
)
from agent_memory.services.search.signals import CosineScale, rarity
from agent_memory.text.dates import Span

pytestmark = pytest.mark.file_only("no engine is asked")

# How long it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [60, 120, 600])
def test_what_a_long_memory_loses_of_its_surroundings_its_own_words_have(length: int) -> None:
    pair = talk(candidate(1, 1, 1, length=length), candidate(2, 1, 0, length=length))
    evidence = parts(pair, query(20, 30))
    fade = 60 / length
    assert evidence[1].words_around == evidence[1].words_of_session == pytest.approx(fade)
    assert evidence[1].words == pytest.approx(1 + (1 - fade) * 2)
    assert evidence[2].words / evidence[1].words > 0.0


def test_a_text_is_held_back_for_its_length_whatever_else_is_stored() -> None:
    """With lengths measured against their mean, one long text moved all the others."""
    pair = [candidate(1, 1, length=15), candidate(2, 2, length=60)]
    alone = parts(pair, query(20))
    beside = parts([*pair, candidate(3, 1, length=3_000)], query(20))
    assert [alone[row_id].words for row_id in (1, 2)] == [beside[row_id].words for row_id in (1, 2)]


# A memory's own words ---------------------------------------------------------------------------


def test_the_best_by_words_has_1_and_one_without_any_0() -> None:
    found = parts([candidate(1, 2, 1), candidate(2, 1, 0), candidate(3, 0, 0)], query(20, 30))
    assert found[1].words == 1.0 > found[2].words > found[3].words == 0.0


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    pair = [candidate(1, 1, 0), candidate(2, 0, 1)]
    rare_first, common_first = parts(pair, query(3, 900)), parts(pair, query(900, 3))
    assert rare_first[1].words > rare_first[2].words
    assert common_first[1].words < common_first[2].words


def test_a_short_text_has_more_of_a_word_than_a_long_one() -> None:
    found = parts([candidate(1, 1, length=5), candidate(2, 1, length=50)], query(20))
    assert found[1].words > found[2].words > 0.0


def test_repeating_a_word_counts_less_each_time() -> None:
    found = parts([candidate(row_id, row_id) for row_id in (1, 2, 3)], query(20))
    assert found[2].words - found[1].words > found[3].words - found[2].words > 0.0


def test_a_word_that_the_query_repeats_counts_more_and_less_each_time() -> None:
    one, other = candidate(1, 1, 0), candidate(2, 0, 1)
    found = [
        parts([one, other], query(20, 20, times=[times, 1]))[2].words
        for times in (1, 2, 3, 4, 1_000)
    ]
    assert found[0] == 1.0
    assert found[0] - found[1] > found[1] - found[2] > found[2] - found[3] > 0.0
    assert found[-1] > 0.1  # a pasted log does not drown the question


def test_of_a_session_too_what_the_query_repeats_counts_more() -> None:
    both = [candidate(1, 1, 0), candidate(2, 0, 1)]
    found = parts(both, query(20, 20, times=[3, 1]))
    assert found[1].words_of_session > found[2].words_of_session > 0.0


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_rarer_word_weighs_more_and_none_less_than_nothing(one: int, two: int) -> None:
    size = 10**6
    assert rarity(one, size) > 0.0
    assert (rarity(one, size) > rarity(two, size)) is (one < two)


@pytest.mark.parametrize(("frequency", "size"), [(5, 0), (10, 3), (0, 0), (1, 1)])
def test_a_word_that_is_in_more_memories_than_there_are_is_weighed_too(
    frequency: int, size: int
) -> None:
    """Between counting words and rows, another process may have deleted some."""
    assert math.isfinite(rarity(frequency, size))
    assert rarity(frequency, size) > 0.0


@UNTIMED
@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=6),
    st.lists(st.integers(1, 1_500), min_size=3, max_size=3),
    st.integers(0, 2),
    st.data(),
)
def test_adding_a_word_never_lowers_the_words_of_a_memory(
    all_counts: list[tuple[int, ...]], frequencies: list[int], term: int, data: st.DataObject
) -> None:
    lengths = [sum(counts) + data.draw(st.integers(1, 40)) for counts in all_counts]
    candidates = [
        candidate(row_id, *counts, length=length)
        for row_id, (counts, length) in enumerate(zip(all_counts, lengths, strict=True))
    ]
    chosen = data.draw(st.integers(0, len(candidates) - 1))
    counts = candidates[chosen].counts
    more = list(candidates)
    more[chosen] = candidates[chosen]._replace(counts={**counts, term: counts.get(term, 0) + 1})
    asked = query(*frequencies)
    before, after = parts(candidates, asked), parts(more, asked)
    assert after[chosen].words >= before[chosen].words - 1e-12
    for row_id in before.keys() - {chosen}:
        assert after[row_id].words <= before[row_id].words + 1e-12


# Words around it, and of its session ------------------------------------------------------------


def around(neighbours: Mapping[int, int]) -> float:
    """Return the words around memory 1, which has one; 2 has it more often, 3 has it not."""
    candidates = [candidate(1, 1, neighbours=neighbours), candidate(2, 3), candidate(3, 0)]
    return parts(candidates, query(20))[1].words_around


def test_a_neighbours_words_count_the_more_the_nearer_it_is() -> None:
    assert around({1: 2}) > around({2: 2}) > around({})
    assert around({-1: 2}) == around({1: 2})
    assert around({-1: 2, 1: 2}) > around({1: 2})
    assert around({3: 2}) == around({})  # too far


def test_a_neighbour_without_the_words_only_makes_the_text_longer() -> None:
    assert around({1: 3}) < around({})
    # One that is no candidate has none of the words, and a length like any other.
    assert around({1: 99}) < around({})


def test_a_memory_without_the_words_has_those_around_it() -> None:
    found = parts(talk(candidate(1, 0), candidate(2, 2)), query(20))
    assert found[1].words == 0.0 < found[1].words_around < found[2].words_around == 1.0


def test_a_neighbour_in_one_direction_is_enough() -> None:
    """A memory that was found only as a neighbour may not know those next to it."""
    found = parts([candidate(1, 0, neighbours={-1: 2}), candidate(2, 2)], query(20))
    assert found[1].words_around > 0.0


def test_all_memories_of_a_session_have_its_words_alike() -> None:
    found = parts([*talk(candidate(1, 2), candidate(2, 0)), candidate(3, 0)], query(20))
    assert found[1].words_of_session == found[2].words_of_session == 1.0
    assert found[3].words_of_session == 0.0


def test_a_session_with_more_of_the_words_has_more() -> None:
    both = talk(candidate(1, 1, 0), candidate(2, 0, 1))
    apart = [candidate(3, 1, 0), candidate(4, 0, 0)]
    found = parts([*both, *apart], query(20, 20))
    assert found[1].words_of_session > found[3].words_of_session > 0.0


# Meaning at three scales ------------------------------------------------------------------------


def test_a_near_cosine_is_worth_the_weight_of_the_model() -> None:
    for weight in (0.5, 1.0, 2.5):
        found = parts(
            [candidate(1, cosine=NEAR_COSINE)], query(cosine_scale=CosineScale(weight, 0.2))
        )
        assert found[1].meaning == pytest.approx(weight)


def test_meaning_grows_faster_than_the_cosine() -> None:
    cosines = [0.1, 0.2, 0.4, 0.8]
    candidates = [candidate(row_id, cosine=cosine) for row_id, cosine in enumerate(cosines)]
    found = parts(candidates, query(cosine_scale=SPACE))
    for row_id in range(3):
        assert found[row_id + 1].meaning > 2 * found[row_id].meaning > 0.0


@pytest.mark.parametrize("cosine", [None, 0.0, -0.2, -1.0])
def test_without_a_cosine_above_0_there_is_no_meaning(cosine: float | None) -> None:
    found = parts(
        talk(candidate(1, cosine=cosine), candidate(2, cosine=-1.0)), query(cosine_scale=SPACE)
    )
    assert found[1].total == found[2].total == 0.0


def test_a_neighbours_meaning_counts_the_more_the_nearer_it_is() -> None:
    found = parts(
        talk(candidate(1, cosine=0.9), candidate(2), candidate(3), candidate(4)),
        query(cosine_scale=SPACE),
    )
    around_it = [found[row_id].meaning_around for row_id in (1, 2, 3, 4)]
    assert around_it[0] == 0.0  # its own is not around it
    assert around_it[1] > around_it[2] > around_it[3] == 0.0


def test_a_neighbour_that_is_no_candidate_has_no_meaning() -> None:
    found = parts([candidate(1, cosine=0.4, neighbours={1: 99})], query(cosine_scale=SPACE))
    assert found[1].meaning_around == 0.0


def test_the_meaning_of_a_session_is_that_of_its_best() -> None:
    best = [candidate(row_id, cosine=0.6) for row_id in range(SESSION_BEST)]
    weak = [candidate(row_id, cosine=0.1) for row_id in range(10, 14)]
    asked = query(cosine_scale=SPACE)
    alone, among = parts(talk(*best), asked), parts(talk(*best, *weak), asked)
    # As if all were as near as the best of them; what is farther takes nothing off.
    assert alone[0].meaning_of_session == pytest.approx(alone[0].meaning)
    assert among[0].meaning_of_session == pytest.approx(alone[0].meaning_of_session)
    assert among[13].meaning_of_session == among[0].meaning_of_session


def test_one_near_memory_makes_no_session_about_the_matter() -> None:
    one = parts(talk(candidate(1, cosine=0.6), candidate(2)), query(cosine_scale=SPACE))
    two = parts(talk(candidate(1, cosine=0.6), candidate(2, cosine=0.6)), query(cosine_scale=SPACE))
    assert 0.0 < one[1].meaning_of_session < two[1].meaning_of_session < two[1].meaning


def test_words_count_as_much_as_the_share_of_the_query_that_is_there() -> None:
    """Where no memory has more than one word of many, the meaning decides."""
    pair = [candidate(1, 1, 0, 0, cosine=0.1), candidate(2, 0, 0, 0, cosine=0.9)]
    asked = query(20, 0, 0, cosine_scale=SPACE)
    share = weigh(pair, asked).coverage
    assert 0.0 < share < 1.0
    assert parts(pair, asked)[1].words == share
    # Without any cosine there is nothing else to decide, so the best by words has 1.
    without = [one._replace(cosine=None) for one in pair]
    assert parts(without, asked)[1].words == 1.0
    assert parts(pair, asked._replace(cosine_scale=None))[1].words == 1.0


# Subject, date, question ------------------------------------------------------------------------


def test_a_first_word_that_is_asked_for_counts() -> None:
    found = parts([candidate(1, 1, opens=True), candidate(2, 1)], query(20))
    assert found[1].subject == PLAIN.subject
    assert found[2].subject == 0.0
    assert found[1].words == found[2].words


def test_a_question_that_is_answered_at_length_may_tell_as_well_as_ask() -> None:
    def taken_off(reply: int) -> float:
        asks, answer = talk(candidate(1, 1, asks=True), candidate(2, 0, length=reply))
        found = parts([asks, answer], query(20))[1]
        return -found.question / (found.total - found.question)

    assert taken_off(5) == taken_off(SHORT) == pytest.approx(PLAIN.question)
    assert taken_off(4 * SHORT) == pytest.approx(PLAIN.question / 4)


def test_the_first_word_of_a_long_text_is_worth_less() -> None:
    short, long = candidate(1, 1, opens=True), candidate(2, 1, opens=True, length=4 * SHORT)
    found = parts([short, long], query(20))
    assert found[2].subject == found[1].subject / 4


def test_a_date_counts_as_near_as_it_is() -> None:
    span = Span(TODAY - timedelta(days=7), TODAY - timedelta(days=5))
    days = [TODAY - timedelta(days=days) for days in (6, 4, 1, 300)]
    candidates = [candidate(row_id, day=day) for row_id, day in enumerate(days)]
    found = parts(candidates, query(spans=[span]))
    assert [found[row_id].date for row_id in range(4)] == [span.nearness(day) for day in days]
    assert found[0].date == PLAIN.date > found[1].date > found[2].date > found[3].date == 0.0


def test_of_several_dates_the_nearest_counts() -> None:
    far, near = (Span(day, day) for day in (TODAY - timedelta(days=300), TODAY))
    found = parts([candidate(1)], query(spans=[far, near]))
    assert found[1].date == PLAIN.date
    assert parts([candidate(1)], query())[1].date == 0.0


def test_a_long_memory_that_ends_with_a_question_loses_less_of_its_share() -> None:
    lost = []
    for length in (20, 40, 200):
        evidence = parts([candidate(1, 1, length=length, asks=True)], query(20))[1]
        lost.append(-evidence.question / (evidence.total - evidence.question))
    assert lost == pytest.approx([PLAIN.question, PLAIN.question / 2, PLAIN.question / 10])


def test_a_question_loses_its_share_of_all_the_rest() -> None:
    full = candidate(1, 2, cosine=0.5, opens=True)
    asked = query(20, cosine_scale=SPACE, spans=[Span(TODAY, TODAY)])
    (told,), (asking,) = (parts([one], asked).values() for one in (full, full._replace(asks=True)))
    assert told.question == 0.0
    assert asking.total == pytest.approx((1 - PLAIN.question) * told.total)
    assert {name: getattr(asking, name) for name in PARTS if name != "question"} == {
        name: getattr(told, name) for name in PARTS if name != "question"
    }


# Weights ----------------------------------------------------------------------------------------

RICH = talk(
    candidate(1, 1, 0, cosine=0.5, opens=True),
    candidate(2, 0, 2, cosine=0.7, asks=True),
    candidate(3, 0, 0, cosine=0.3),
)
RICH_QUERY = query(20, 40, cosine_scale=SPACE, spans=[Span(TODAY, TODAY)])


@pytest.mark.parametrize("name", Weights._fields)
def test_a_weight_of_0_takes_its_part_away_and_no_other(name: str) -> None:
    full = parts(RICH, RICH_QUERY)
    less = parts(RICH, RICH_QUERY, PLAIN._replace(**{name: 0.0}))
    assert any(getattr(one, name) != 0.0 for one in full.values())
    for row_id, one in less.items():
        assert getattr(one, name) == 0.0
        for other in set(PARTS) - {name, "question"}:
            assert getattr(one, other) == getattr(full[row_id], other)


@pytest.mark.parametrize("name", Weights._fields)
def test_a_part_is_worth_its_weight(name: str) -> None:
    full = parts(RICH, RICH_QUERY)
    double = parts(RICH, RICH_QUERY, PLAIN._replace(**{name: 2 * getattr(PLAIN, name)}))
    for row_id, one in double.items():
        assert getattr(one, name) == pytest.approx(2 * getattr(full[row_id], name))


def test_a_model_whose_weight_is_0_has_no_meaning() -> None:
    found = parts(RICH, RICH_QUERY._replace(cosine_scale=CosineScale(0.0, 0.2)))
    for one in found.values():
        assert one.meaning == one.meaning_around == one.meaning_of_session == 0.0


def test_the_total_is_the_sum_of_all_parts() -> None:
    for one in parts(RICH, RICH_QUERY, WEIGHTS).values():
        assert one.total == pytest.approx(sum(getattr(one, name) for name in PARTS))

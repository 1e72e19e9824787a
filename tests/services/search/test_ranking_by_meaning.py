"""What cosines add to the order of search results: their weight, and places of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_candidates import SPACE, UNTIMED, by_row_id, candidate, order, query, ranking

from agent_memory.services.search.ranking import (
    MEANING_PLACE_STEP,
    WELL_COVERED,
    RankedHit,
    Ranking,
)
from agent_memory.services.search.scoring import weigh
from agent_memory.services.search.signals import Candidate, CosineScale, QueryProfile
from agent_memory.services.search.strength import STRENGTH_FLOOR

pytestmark = pytest.mark.file_only("its stores are files")

# Weight -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("weight", "first"), [(0.01, 1), (100.0, 2)])
def test_the_model_says_what_its_meaning_counts_beside_words(weight: float, first: int) -> None:
    pair = [candidate(1, 1, cosine=0.3), candidate(2, 0, cosine=0.6)]
    assert order(ranking(pair, query(20, cosine_scale=CosineScale(weight, 0.2))))[0] == first


def test_a_query_without_words_is_answered_by_meaning_alone() -> None:
    candidates = [
        candidate(row_id, cosine=cosine) for row_id, cosine in ((1, 0.3), (2, 0.9), (3, 0.5))
    ]
    found = ranking(candidates, query(cosine_scale=SPACE))
    assert order(found) == [2, 3, 1]
    assert found.strength > STRENGTH_FLOOR
    assert not any(one.by_words for one in found.order)
    assert ranking(candidates, query()) == Ranking([], 0.0)


def test_below_a_negative_floor_a_candidate_without_a_cosine_is_still_no_match() -> None:
    waiting = candidate(1, 0, session="same")
    other = candidate(2, 1, cosine=0.5, session="same")
    found = by_row_id(ranking([waiting, other], query(20, cosine_scale=CosineScale(1.0, -0.5))))
    assert not found[1].matches


@UNTIMED
@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.floats(-1, 1)), max_size=8))
def test_cosines_without_a_model_change_nothing(pairs: list[tuple[int, float | None]]) -> None:
    candidates = [
        candidate(row_id, count, cosine=near) for row_id, (count, near) in enumerate(pairs)
    ]
    without = [one._replace(cosine=None) for one in candidates]
    found, expected = ranking(candidates, query(20)), ranking(without, query(20))
    assert found.strength == expected.strength
    assert [(one.row_id, one.similarity, one.matches) for one in found.order] == [
        (one.row_id, one.similarity, one.matches) for one in expected.order
    ]


# Places for meaning -----------------------------------------------------------------------------


def documented(found: Ranking) -> list[int]:
    """Return the order by gate, relevance and similarity alone."""

    def place(one: RankedHit) -> tuple[bool, float, float, int]:
        score = one.relevance if one.passed_gate else one.similarity
        return not one.passed_gate, -score, -one.similarity, -one.row_id

    return [one.row_id for one in sorted(found.order, key=place)]


def by_chance(cosine: float) -> tuple[list[Candidate], QueryProfile]:
    """Return ten candidates with one word of five, and, last of all, one with this cosine."""
    talk = [candidate(row_id, 9 - row_id // 2, 0, 0, 0, 0, cosine=0.01) for row_id in range(10)]
    meant = candidate(99, 0, 0, 0, 0, 0, cosine=cosine)
    asked = query(300, 0, 0, 0, 0, cosine_scale=CosineScale(weight=0.01, floor=0.2))
    assert weigh([*talk, meant], asked).coverage < WELL_COVERED
    return [*talk, meant], asked


def test_where_words_say_little_the_nearest_by_meaning_has_the_fourth_place() -> None:
    candidates, asked = by_chance(cosine=0.6)
    found = ranking(candidates, asked)
    assert documented(found).index(99) > MEANING_PLACE_STEP
    assert order(found)[MEANING_PLACE_STEP - 1] == 99
    assert sorted(order(found)) == sorted(documented(found))


def test_where_a_memory_has_most_of_the_words_they_decide() -> None:
    candidates, asked = by_chance(cosine=0.6)
    candidates[0] = candidates[0]._replace(counts={0: 9, 1: 1})
    asked = asked._replace(frequencies=(300,) * 5, name_terms={0})
    found = ranking(candidates, asked)
    assert weigh(candidates, asked).coverage >= 0.5
    assert order(found) == documented(found)


@pytest.mark.parametrize("cosine", [0.02, 0.1])
def test_what_has_nothing_to_do_with_the_query_is_given_no_place(cosine: float) -> None:
    candidates, asked = by_chance(cosine)
    found = ranking(candidates, asked)
    assert asked.cosine_scale is not None
    assert cosine <= asked.cosine_scale.floor / 2
    assert order(found) == documented(found)


@UNTIMED
@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.floats(-1, 1)), max_size=20))
def test_all_other_places_are_those_by_gate_relevance_and_similarity(
    pairs: list[tuple[int, float | None]],
) -> None:
    candidates = [
        candidate(row_id, count, cosine=near) for row_id, (count, near) in enumerate(pairs)
    ]
    found = ranking(candidates, query(20, cosine_scale=SPACE))
    assert sorted(order(found)) == sorted(documented(found))
    others = [
        row_id
        for place, row_id in enumerate(order(found))
        if place % MEANING_PLACE_STEP != MEANING_PLACE_STEP - 1
    ]
    places = [documented(found).index(row_id) for row_id in others]
    assert places == sorted(places)

"""The evidence for any candidates: how strong the best answer is, and laws of all the parts."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made_candidates import (
    CORPUS,
    PARTS,
    PLAIN,
    SCALES,
    SPACE,
    TODAY,
    UNTIMED,
    candidate,
    parts,
    query,
    talk,
)

from agent_memory.services.search.scoring import Evidence, weigh
from agent_memory.services.search.signals import Candidate, CosineScale, QueryProfile, rarity
from agent_memory.services.search.strength import (
    LIGHT_WEIGHT,
    NAME_WEIGHT,
    STRENGTH_FLOOR,
    TOGETHER,
    TOGETHER_WORDS,
)
from agent_memory.text.dates import Span

pytestmark = pytest.mark.file_only("no engine is asked")


def strength(candidates: Sequence[Candidate], asked: QueryProfile) -> float:
    return weigh(candidates, asked).strength


def together(known: int, asked: int) -> float:
    """Return what the weights of the words count for, that so many of so many are in one memory."""
    return float((known / asked) ** TOGETHER)


# Strength ---------------------------------------------------------------------------------------


def test_the_strength_is_the_share_of_the_query_that_one_memory_has() -> None:
    whole = strength([candidate(1, 1, 1)], query(3, 3))
    half = strength([candidate(1, 1, 0)], query(3, 3))
    less = strength([candidate(1, 1, 0)], query(900, 3))
    assert whole == 1.0
    assert half == pytest.approx(0.5 * together(1, 2))
    assert 0.0 < less < half
    # Two memories that have half each are no whole answer.
    assert strength([candidate(1, 1, 0), candidate(2, 0, 1)], query(3, 3)) == half


def test_how_often_a_word_stands_makes_a_short_memory_no_surer() -> None:
    """Rounding once made it so in the last place: which memory was first looked at then told."""
    asked = query(0, 0, corpus_size=0)
    found = {strength([candidate(1, 0, count)], asked) for count in range(1, 60)}
    assert found == {0.5 * together(1, 2)}


def test_a_name_that_nobody_has_weighs_more_than_another_word() -> None:
    known = [candidate(1, 1, 0)]
    assert strength(known, query(3, 0, name_terms={1})) < strength(known, query(3, 0))
    assert strength(known, query(3, 0, name_terms={0})) > strength(known, query(3, 0))
    equal = strength(known, query(3, 3, name_terms={1}))
    assert equal == pytest.approx(together(1, 2) / (1 + NAME_WEIGHT))


def test_a_word_that_says_little_weighs_less_whether_a_memory_has_it_or_not() -> None:
    known = [candidate(1, 1, 0)]
    assert strength(known, query(3, 0, light_terms={0})) < strength(known, query(3, 0))
    assert strength(known, query(3, 0, light_terms={1})) > strength(known, query(3, 0))
    equal = strength(known, query(3, 3, light_terms={0}))
    assert equal == pytest.approx(together(1, 2) * LIGHT_WEIGHT / (1 + LIGHT_WEIGHT))
    assert strength(known, query(3, 3, light_terms={0, 1})) == strength(known, query(3, 3))


def test_a_word_in_most_memories_is_a_common_one_unless_they_are_few() -> None:
    """It counted as one in a thousand do, or as nothing where a few notes have one subject."""
    known = [candidate(1, 1, 0)]

    def of_most(size: int, **known_of: set[int]) -> float:
        return strength(known, query(size * 3 // 4, 0, corpus_size=size, **known_of))

    seldom = strength(known, query(3, 0, corpus_size=12))
    assert of_most(1_000) < 0.2 < of_most(100) < of_most(12) < seldom
    # Of three memories it tells nothing, and a name is whom it is asked about.
    assert strength(known, query(3, 0, corpus_size=3)) == seldom
    assert of_most(12, name_terms={0}) > seldom


def test_of_a_very_long_query_not_every_word_must_be_found() -> None:
    known = [candidate(1, 1, *[0] * 40)]
    weak = strength(known, query(3, *[0] * 40))
    assert weak == strength([candidate(1, 1, *[0] * 20)], query(3, *[0] * 20)) > 0.0


def test_words_that_say_a_date_need_not_stand_in_a_memory_of_that_time() -> None:
    """\"What broke last week?\": neither word is in the memory, and it is the answer."""
    span = Span(TODAY, TODAY)
    counts = [1, 0, 0]  # broke, last, week
    asked = query(20, 30, 30, spans=[span], date_terms={1, 2})
    assert strength([candidate(1, *counts)], asked) == 1.0
    long_ago = TODAY - timedelta(days=200)
    assert strength([candidate(1, *counts, day=long_ago)], asked) < 1.0
    assert strength([candidate(1, *counts)], query(20, 30, 30)) < 1.0


def test_a_query_of_a_date_alone_is_answered_by_what_is_of_it() -> None:
    asked = query(30, 30, spans=[Span(TODAY, TODAY)], date_terms={0, 1})
    assert strength([candidate(1, 0, 0)], asked) == 1.0
    assert strength([candidate(1, 0, 0, day=TODAY - timedelta(days=200))], asked) == 0.0


@pytest.mark.parametrize("cosine", [None, -1.0, 0.0, 0.1, 0.2])
def test_up_to_the_floor_of_its_model_a_cosine_adds_no_strength(cosine: float | None) -> None:
    assert strength([candidate(1, 0, cosine=cosine)], query(20, cosine_scale=SPACE)) == 0.0


def test_above_the_floor_the_best_cosine_adds_the_more_the_larger_it_is() -> None:
    cosines = [0.21, 0.22, 0.24]
    found = [
        strength(
            [candidate(1, 0, cosine=it), candidate(2, 0, cosine=-0.9)], query(3, cosine_scale=SPACE)
        )
        for it in cosines
    ]
    assert 0.0 < found[0] < found[1] < found[2] <= 1.0
    half = query(3, 3, cosine_scale=SPACE)
    with_words = strength([candidate(1, 1, 0, cosine=0.25)], half)
    assert with_words > strength([candidate(1, 1, 0, cosine=0.1)], half)


def test_a_meaning_that_is_far_takes_nothing_away() -> None:
    asked = query(3, 3, cosine_scale=SPACE)
    far, none = candidate(1, 1, 0, cosine=-0.5), candidate(1, 1, 0)
    assert strength([far], asked) == strength([none], asked) == strength([none], query(3, 3)) > 0


DOUBTING = SPACE._replace(doubt=0.5)


def test_a_far_meaning_casts_doubt_on_the_words_if_its_model_was_measured_to_know() -> None:
    asked = query(3, 3, cosine_scale=DOUBTING)
    sure, *doubted = (
        strength([candidate(1, 1, 0, cosine=cosine)], asked)
        for cosine in (SPACE.floor, SPACE.floor / 2, 0.0, -0.5)
    )
    assert sure == strength([candidate(1, 1, 0)], asked)
    assert doubted == pytest.approx([0.75 * sure, 0.5 * sure, 0.5 * sure])


def test_the_longer_a_memory_the_less_its_meaning_casts_doubt_on_its_words() -> None:
    asked = query(3, 3, cosine_scale=DOUBTING)

    def trust(length: int) -> float:
        far, none = (candidate(1, 1, 0, cosine=it, length=length) for it in (-0.5, None))
        return strength([far], asked) / strength([none], asked)

    assert trust(90) == pytest.approx(0.5)
    assert trust(180) == pytest.approx(0.75)


def test_no_doubt_is_cast_on_keywords_or_other_languages() -> None:
    keywords = query(3, 3, cosine_scale=DOUBTING, is_phrased=False)
    far, none = candidate(1, 1, 0, cosine=-0.5), candidate(1, 1, 0)
    assert strength([far], keywords) == strength([none], keywords)


def test_words_that_are_met_together_say_more_than_as_much_weight_in_fewer() -> None:
    # The first word weighs as much as the other three.
    weight = rarity(1, CORPUS)
    others = next(n for n in range(1, CORPUS) if 3 * rarity(n, CORPUS) ** 0.6 <= weight**0.6)
    asked = query(1, others, others, others)
    alone, three = (
        strength([candidate(1, *counts)], asked) for counts in ((1, 0, 0, 0), (0, 1, 1, 1))
    )
    assert alone / three == pytest.approx(together(1, 3), rel=0.01)


def test_of_many_words_ten_are_together() -> None:
    many = [1] * TOGETHER_WORDS
    assert strength([candidate(1, *many, *[0] * 30)], query(*[3] * 40)) == 1.0
    assert strength([candidate(1, *many[1:], *[0] * 31)], query(*[3] * 40)) == pytest.approx(
        together(TOGETHER_WORDS - 1, TOGETHER_WORDS)
    )
    # More than ten count no more than their weight.
    rare = [3] * 5
    ten, fifteen = (
        strength([candidate(1, *[1] * size)], query(*[900] * size, *rare))
        for size in (TOGETHER_WORDS, TOGETHER_WORDS + 5)
    )
    assert fifteen / ten == pytest.approx(1.5)


def test_a_word_in_a_long_text_says_less_unless_it_is_said_again_and_again() -> None:
    asked = query(3, 3)
    short, long, often = (
        strength([candidate(1, count, 0, length=length)], asked)
        for count, length in ((1, 30), (1, 3_000), (20, 3_000))
    )
    assert long < often < short


def test_pairs_of_characters_that_are_nowhere_weigh_no_more_than_their_share() -> None:
    words = query(60, 60, 60, 0, 0, 0, 0, 0)
    pairs = words._replace(pair_terms=frozenset(range(8)))
    met = [candidate(1, 1, 1, 1)]
    weight = rarity(60, CORPUS) ** 0.6, rarity(0, CORPUS) ** 0.6
    share = 3 * weight[0] / (3 * weight[0] + 5 * weight[1])
    assert strength(met, pairs) == pytest.approx(together(3, 8) * share)
    assert strength(met, words) == pytest.approx(together(3, 8) * 3 * weight[0] / (5 * weight[1]))


def test_of_a_long_query_in_pairs_eight_are_enough() -> None:
    asked = query(*[3] * 40, pair_terms=frozenset(range(40)))
    eight, four = (strength([candidate(1, *[1] * met)], asked) for met in (8, 4))
    assert eight == pytest.approx(together(8, TOGETHER_WORDS))
    assert four == pytest.approx(0.5 * together(4, TOGETHER_WORDS))


def test_pairs_that_are_no_words_count_nothing_and_other_light_words_half() -> None:
    asked = query(3, 3, light_terms=frozenset([1]))
    assert strength([candidate(1, 1, 0)], asked) == pytest.approx(together(1, 2) * 2 / 3)
    pairs = asked._replace(pair_terms=frozenset([0, 1]))
    assert strength([candidate(1, 1, 0)], pairs) == pytest.approx(1.0)
    assert strength([candidate(1, 0, 1)], pairs) == 0.0


def test_a_text_of_pairs_is_twice_as_many_words_long() -> None:
    asked = query(3, 3, 3)
    pairs = asked._replace(pair_terms=frozenset(range(3)))
    of_words, of_pairs = (
        strength([candidate(1, 1, 1, 0, length=length)], wanted)
        for wanted, length in ((asked, 300), (pairs, 600))
    )
    assert of_words == pytest.approx(of_pairs)


def test_all_the_words_of_a_query_are_no_chance_however_long_the_text() -> None:
    page = candidate(1, 1, 1, length=3_000)
    assert strength([page], query(3, 3)) == 1.0
    guess = page._replace(counts={0: 0.5, 1: 0.5})
    assert strength([guess], query(3, 3)) == pytest.approx(0.5)


def test_a_rare_word_alone_does_not_make_up_for_three_that_are_missing() -> None:
    asked = query(1, 60, 60, 60)._replace(corpus_size=1_000)
    rare, common = (
        strength([candidate(1, *counts)], asked) for counts in ((1, 0, 0, 0), (0, 1, 1, 1))
    )
    assert rare < STRENGTH_FLOOR < common


def test_no_strength_is_over_1() -> None:
    assert (
        strength([candidate(1, 1, cosine=1.0)], query(3, cosine_scale=CosineScale(1.0, -1.0)))
        == 1.0
    )


# Nothing to weigh, and any candidates -----------------------------------------------------------


@pytest.mark.parametrize("space", [None, SPACE])
@pytest.mark.parametrize("frequencies", [(), (3,), (3, 4)])
def test_no_candidates_have_no_evidence(
    frequencies: tuple[int, ...], space: CosineScale | None
) -> None:
    found = weigh([], query(*frequencies, cosine_scale=space))
    assert (found.parts, found.coverage, found.strength) == ({}, 0.0, 0.0)


@pytest.mark.parametrize(
    ("candidates", "asked"),
    [
        ([candidate(1, 0, 0), candidate(2, 0, 0)], query(3, 4)),
        ([candidate(1), candidate(2)], query()),
        ([candidate(1, 0, length=0)], query(0)),
        (talk(candidate(1, 0, length=0), candidate(2, 0, length=0)), query(0, cosine_scale=SPACE)),
    ],
)
def test_without_words_meaning_or_date_there_is_no_evidence(
    candidates: list[Candidate], asked: QueryProfile
) -> None:
    found = weigh(candidates, asked)
    assert found.parts == {one.row_id: Evidence() for one in candidates}
    assert (found.coverage, found.strength) == (0.0, 0.0)


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Candidate], QueryProfile]:
    """Draw candidates of two sessions, and a query."""
    terms = draw(st.integers(0, 3))
    counts = st.tuples(*[st.integers(0, 3)] * terms)
    days = st.integers(-40, 40).map(lambda days: TODAY + timedelta(days=days))
    plain = [
        candidate(
            row_id,
            *draw(counts),
            length=draw(st.integers(0, 40)),
            day=draw(days),
            cosine=draw(st.none() | st.floats(-1, 1)),
            opens=draw(st.booleans()),
            asks=draw(st.booleans()),
        )
        for row_id in range(draw(st.integers(0, 6)))
    ]
    candidates = [*talk(*plain[::2]), *plain[1::2]]
    places = st.sets(st.integers(0, terms - 1)) if terms else st.just(set())
    asked = QueryProfile(
        frequencies=draw(st.lists(st.integers(0, 500), min_size=terms, max_size=terms)),
        corpus_size=draw(st.integers(0, 5_000)),
        name_terms=draw(places),
        spans=[Span(min(pair), max(pair)) for pair in draw(st.lists(st.tuples(days, days)))],
        date_terms=draw(places),
        cosine_scale=draw(st.none() | SCALES),
    )
    return candidates, asked


@UNTIMED
@given(questions(), st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(
    question: tuple[list[Candidate], QueryProfile], chance: random.Random
) -> None:
    candidates, asked = question
    first = weigh(candidates, asked)
    assert weigh(candidates, asked) == first
    chance.shuffle(candidates)
    assert weigh(candidates, asked) == first


@UNTIMED
@given(questions())
def test_every_part_is_a_number_and_only_a_question_takes_off(
    question: tuple[list[Candidate], QueryProfile],
) -> None:
    found = weigh(*question)
    assert found.parts.keys() == {one.row_id for one in question[0]}
    assert 0.0 <= found.coverage <= 1.0
    assert 0.0 <= found.strength <= 1.0
    for one in map(found.evidence_for, found.parts):
        assert all(math.isfinite(getattr(one, name)) for name in PARTS)
        assert all(getattr(one, name) >= 0.0 for name in PARTS if name != "question")
        assert one.question <= 0.0 <= one.total


@UNTIMED
@given(questions())
def test_the_parts_of_words_are_at_most_their_weight(
    question: tuple[list[Candidate], QueryProfile],
) -> None:
    for one in parts(*question).values():
        assert max(one.words, one.words_around, one.words_of_session) <= 1.0
        assert one.subject in (0.0, PLAIN.subject)
        assert one.date <= PLAIN.date


@UNTIMED
@given(questions())
def test_cosines_without_a_model_count_nothing(
    question: tuple[list[Candidate], QueryProfile],
) -> None:
    candidates, asked = question
    assume(asked.cosine_scale is None)
    without = [one._replace(cosine=None) for one in candidates]
    assert weigh(candidates, asked) == weigh(without, asked)

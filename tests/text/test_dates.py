"""Dates in questions: which days each expression says, what says none, and how they fade."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.text.dates import Span, date_spans, other_forms

UNTIMED = settings(deadline=None)
TODAY = date(2026, 1, 30)
"""A Friday."""
DAYS = st.dates()


def days_of(text: str, today: date = TODAY) -> list[tuple[str, str]]:
    return [(span.first.isoformat(), span.last.isoformat()) for span in date_spans(text, today)]


# What says a date -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        # A day, with its year and without: then the last one that was.
        ("2023-05-07", "2023-05-07", "2023-05-07"),
        ("7 May 2023", "2023-05-07", "2023-05-07"),
        ("7th of May, 2023", "2023-05-07", "2023-05-07"),
        ("on May 7, 2023", "2023-05-07", "2023-05-07"),
        ("MAY 7TH 2023", "2023-05-07", "2023-05-07"),
        ("Sept. 3 2024", "2024-09-03", "2024-09-03"),
        ("the 1st of jan", "2026-01-01", "2026-01-01"),
        ("on 30 January", "2026-01-30", "2026-01-30"),
        ("on 31 January", "2025-01-31", "2025-01-31"),
        ("December 24", "2025-12-24", "2025-12-24"),
        ("29 February 2024", "2024-02-29", "2024-02-29"),
        # A month or a year.
        ("May 2023", "2023-05-01", "2023-05-31"),
        ("February, 2024", "2024-02-01", "2024-02-29"),
        ("in May", "2025-05-01", "2025-05-31"),
        ("last March", "2025-03-01", "2025-03-31"),
        ("in January", "2026-01-01", "2026-01-31"),
        ("since dec", "2025-12-01", "2025-12-31"),
        ("the October party", "2025-10-01", "2025-10-31"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("between May and June", "2025-05-01", "2025-06-30"),
        ("between May and June 2023", "2023-05-01", "2023-06-30"),
        ("from November to February", "2025-11-01", "2026-02-28"),
        ("between Nov and Feb 2024", "2023-11-01", "2024-02-29"),
        ("the first week of May", "2025-05-01", "2025-05-07"),
        ("the third week in January", "2026-01-15", "2026-01-21"),
        ("the last week of February 2024", "2024-02-23", "2024-02-29"),
        # A season.
        ("summer 2022", "2022-06-01", "2022-08-31"),
        ("the spring of 2023", "2023-03-01", "2023-05-31"),
        ("fall 2024", "2024-09-01", "2024-11-30"),
        ("winter 2024", "2024-12-01", "2025-02-28"),
        ("winter 2026", "2025-12-01", "2026-02-28"),  # that of 2026 has not begun
        ("last summer", "2025-06-01", "2025-08-31"),
        ("this winter", "2025-12-01", "2026-02-28"),
        # As far from today.
        ("today", "2026-01-30", "2026-01-30"),
        ("this morning", "2026-01-30", "2026-01-30"),
        ("yesterday", "2026-01-29", "2026-01-29"),
        ("last night", "2026-01-29", "2026-01-29"),
        ("the day before yesterday", "2026-01-28", "2026-01-28"),
        ("3 days ago", "2026-01-27", "2026-01-27"),
        ("a couple of days ago", "2026-01-28", "2026-01-28"),
        ("on Thursday", "2026-01-29", "2026-01-29"),
        ("last Saturday", "2026-01-24", "2026-01-24"),
        ("on Friday", "2026-01-23", "2026-01-23"),  # not today: that is "today"
        # A unit that is over, or that goes on.
        ("this week", "2026-01-26", "2026-01-30"),
        ("last weekend", "2026-01-24", "2026-01-25"),
        ("over the weekend", "2026-01-24", "2026-01-25"),
        ("two weekends ago", "2026-01-17", "2026-01-18"),
        ("last fortnight", "2026-01-12", "2026-01-25"),
        ("the last two fortnights", "2026-01-02", "2026-01-30"),
        ("this month", "2026-01-01", "2026-01-30"),
        ("last month", "2025-12-01", "2025-12-31"),
        ("last year", "2025-01-01", "2025-12-31"),
    ],
)
def test_an_expression_says_these_days(text: str, first: str, last: str) -> None:
    assert days_of(text) == [(first, last)]
    assert days_of(f"What did Ann say {text}?") == [(first, last)]
    assert days_of(text.upper()) == [(first, last)]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("a week ago", 7),
        ("two weeks ago", 14),
        ("a fortnight ago", 14),
        ("3 weeks ago", 21),
        ("a month ago", 30),
        ("six months ago", 180),
        ("two years ago", 730),
    ],
)
def test_so_long_ago_is_give_or_take_half_of_the_unit(text: str, days: int) -> None:
    (span,) = date_spans(text, TODAY)
    middle = TODAY - timedelta(days=days)
    assert span.first < middle < span.last
    # As much before as after, and less than the whole unit.
    assert abs((middle - span.first) - (span.last - middle)) <= timedelta(days=1)
    assert span.last - span.first <= timedelta(days=days)


@pytest.mark.parametrize(
    ("text", "days"), [("last 3 days", 3), ("the past two weeks", 14), ("previous 6 months", 180)]
)
def test_the_last_so_many_reach_to_today(text: str, days: int) -> None:
    assert date_spans(text, TODAY) == [Span(TODAY - timedelta(days=days), TODAY)]


@pytest.mark.parametrize("weekday", [0, 4, 6])
def test_last_week_is_from_monday_to_sunday(weekday: int) -> None:
    today = date(2026, 1, 26) + timedelta(days=weekday)
    assert date_spans("last week", today) == [Span(date(2026, 1, 19), date(2026, 1, 25))]


@pytest.mark.parametrize("weekday", range(7))
def test_a_weekend_is_a_saturday_and_its_sunday(weekday: int) -> None:
    today = date(2026, 1, 26) + timedelta(days=weekday)
    (last,) = date_spans("last weekend", today)
    assert (last.first, last.last) == (date(2026, 1, 24), date(2026, 1, 25))
    (this,) = date_spans("this weekend", today)
    assert this.first.weekday() == 5
    assert this.last - this.first == timedelta(days=1)
    assert today < this.last or weekday < 5 or today in (this.first, this.last)


def test_each_of_several_dates_is_found() -> None:
    found = date_spans("Was it on 7 May 2023, in June 2024 or yesterday?", TODAY)
    assert set(found) == {
        Span(date(2023, 5, 7), date(2023, 5, 7)),
        Span(date(2024, 6, 1), date(2024, 6, 30)),
        Span(date(2026, 1, 29), date(2026, 1, 29)),
    }


@pytest.mark.parametrize(
    "text", ["on 7 May 2023", "2023-05-07", "two weeks ago", "the last 3 months", "last May"]
)
def test_what_says_more_is_not_read_as_what_says_less_as_well(text: str) -> None:
    assert len(date_spans(text, TODAY)) == 1


@pytest.mark.parametrize(
    ("text", "is_relative"),
    [
        ("last week", True), ("two days ago", True), ("the last 3 months", True),
        ("yesterday", True), ("over the weekend", True),
        ("on Monday", False), ("last summer", False), ("on 7 May", False), ("2023-05-07", False),
    ],
)  # fmt: skip
def test_a_span_tells_whether_it_says_how_long_ago(text: str, is_relative: bool) -> None:
    (span,) = date_spans(text, TODAY)
    assert span.is_relative == is_relative


@pytest.mark.parametrize(
    ("text", "word", "forms"),
    [
        ("on May 7th, 2023", "7th", {"7", "07", "2023 05 07", "07 05 2023", "7 5 2023"}),
        ("on 7 Sept", "sept", {"september", "sep", "2025 09 07", "2026 09 07"}),
        ("on 21 March", "21", {"21st"}),
        ("on 12 March", "12", {"12th"}),
        ("on 2023-05-07", "05", {"7 may", "may 7th", "07 05 2023"}),
        ("in June 2024", "2024", {"2024 06"}),
        ("in October", "october", {"oct"}),
    ],
)
def test_a_date_is_written_in_other_ways(text: str, word: str, forms: set[str]) -> None:
    (span,) = date_spans(text, TODAY)
    others = other_forms(span)[word]
    assert forms <= set(others)
    assert word not in others


@pytest.mark.parametrize("text", ["last week", "on Monday", "in 2023", "this summer"])
def test_what_names_no_day_is_written_in_no_other_way(text: str) -> None:
    (span,) = date_spans(text, TODAY)
    assert other_forms(span) == {}


def test_of_a_month_without_its_year_no_digits_are_told() -> None:
    (span,) = date_spans("in October", TODAY)
    assert other_forms(span) == {"in": [], "october": ["oct"]}


def test_a_span_tells_how_the_text_speaks_of_it() -> None:
    (span,) = date_spans("What broke Last Week, Bob?", TODAY)
    assert span.phrase == "Last Week"
    assert span == Span(span.first, span.last)  # it is the same span however it is said


@pytest.mark.parametrize("text", ["the day of 29 February", "on Feb 29"])
def test_the_last_29_february_is_that_of_the_last_leap_year(text: str) -> None:
    assert days_of(text) == [("2024-02-29", "2024-02-29")]


@pytest.mark.parametrize(
    "text", ["2023-05-07T10:00:00", "2023-05-07T10:00:00Z", "2023-05-07 10:00"]
)
def test_a_time_as_programs_write_it_says_its_day(text: str) -> None:
    assert days_of(text) == [("2023-05-07", "2023-05-07")]


# What says none ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "which database did we choose",
        "may I come in",
        "we may march on Rome",
        "it may",
        "may be",
        "the second one",
        "he sat in the sun",
        "decided, marred, juniper, novel",
        "monday",  # of which week?
        "at 10:30",
        "version 3.5.7",
        "port 2023",
        "item 12",
        "ago",
        "next week",
        "in the weekday plan",
        "daylight, midnight, yearly",
        "mi cumpleaños es el mar 3 de mayo",
    ],
)
def test_words_that_say_no_date_are_passed_over(text: str) -> None:
    assert date_spans(text, TODAY) == []


@pytest.mark.parametrize("text", ["this may be wrong", "I think this may take a while"])
def test_the_verb_may_is_no_month(text: str) -> None:
    assert date_spans(text, TODAY) == []


@pytest.mark.parametrize(
    "text",
    [
        "2023-13-01",
        "2023-02-30",
        "2023-00-00",
        "31 April 2023",
        "30 February",
        "29 February 2023",
        "0 May 2023",
        "99 May 2023",
        "7 May 0000",
        "May 0000",
        "9999 years ago",
        "9999 months ago",
        "the last 9999 years",
    ],
)
def test_a_date_that_there_is_not_is_passed_over(text: str) -> None:
    assert date_spans(text, TODAY) == []


EXPRESSIONS = [
    "yesterday", "last week", "this week", "last weekend", "this weekend", "last month",
    "this month", "last year", "this year", "two weeks ago", "a year ago", "200 years ago",
    "the last 3 days", "on Monday", "in May", "last December", "on 7 May", "29 February",
    "the day before yesterday", "December 31",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("today", [date.min, date(1, 1, 2), date(1, 12, 31), date.max])
def test_on_the_first_and_the_last_day_there_is_each_is_read_or_passed_over(
    text: str, today: date
) -> None:
    for span in date_spans(text, today):
        assert span.first <= span.last


def test_what_was_before_the_first_day_is_passed_over() -> None:
    assert date_spans("yesterday", date.min) == []
    assert date_spans("last year, last month, last week, 3 days ago", date.min) == []
    assert date_spans("today", date.min) == [Span(date.min, date.min)]


# Any text ---------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    """
    a an one couple few 0 1 7 31 99 2023 0000 9999 of in on last this past previous since day days
    week weeks month year weekend ago night may March sept. sunday yesterday today - , . : 1st 2nd
    2023-05-07 ² ٣ \u017funday f\u0131ve augu\u017ft \u0130n
    """.split()
)
TEXTS = st.text() | st.lists(PIECES, max_size=12).map(" ".join)


@UNTIMED
@given(TEXTS, DAYS)
def test_any_text_is_read(text: str, today: date) -> None:
    for span in date_spans(text, today):
        assert span.first <= span.last
        assert span.phrase in text
        assert span.phrase.strip()
        assert span.nearness(span.first) == span.nearness(span.last) == 1.0
    assert date_spans(text, today) == date_spans(text, today)


@pytest.mark.parametrize(
    "text",
    ["augu\u017ft 2023", "in augu\u017ft", "last \u017funday", "f\u0131ve days ago",
     "last \u017fix weeks"],
)  # fmt: skip
def test_letters_that_only_look_like_those_of_a_date_are_read_without_error(text: str) -> None:
    """Python's patterns take a long s for an s when they do not mind capitals."""
    assert date_spans(text, TODAY) in (
        [],
        date_spans(text.translate({0x17F: "s", 0x131: "i"}), TODAY),
    )


@pytest.mark.parametrize("piece", ["1 ", "in ", "last ", "7 may ", "1 of ", " ", "2023-", "may "])
def test_a_very_long_text_is_read(piece: str) -> None:
    # A pattern that goes back over the same characters would take minutes.
    for span in date_spans(piece * (200_000 // len(piece)) + "yesterday", TODAY):
        assert span.first <= span.last


def test_of_a_text_full_of_dates_only_some_are_read() -> None:
    """Each is looked up in the file: 2,000 in a log of 40 KB made a search take 46 seconds."""
    log = "\n".join(
        f"{date(2020, 1, 1) + timedelta(days=line)} line {line}" for line in range(2_000)
    )
    assert 0 < len(date_spans(log, TODAY)) <= 100
    assert 0 < len(date_spans("2021-01-05 " * 20_000, TODAY)) <= 100


# Nearness ---------------------------------------------------------------------------------------

SPANS = st.tuples(DAYS, DAYS).map(lambda pair: Span(min(pair), max(pair)))


@given(SPANS, st.data())
def test_every_day_of_a_span_is_as_near_as_can_be(span: Span, data: st.DataObject) -> None:
    assert span.nearness(data.draw(st.dates(span.first, span.last))) == 1.0


@given(SPANS, DAYS)
def test_nearness_is_1_within_and_less_without(span: Span, day: date) -> None:
    nearness = span.nearness(day)
    assert 0.0 <= nearness <= 1.0
    assert (nearness == 1.0) is (span.first <= day <= span.last)


def test_nearness_falls_off_day_by_day_down_to_nothing() -> None:
    span = Span(TODAY, TODAY)
    after = [span.nearness(TODAY + timedelta(days=days)) for days in range(400)]
    before = [span.nearness(TODAY - timedelta(days=days)) for days in range(400)]
    for falling in (after, before):
        assert falling[0] == 1.0
        assert falling[-1] == 0.0
        assert all(one > two or one == two == 0.0 for one, two in pairwise(falling))


def test_a_day_after_counts_more_than_one_as_far_before() -> None:
    span = Span(TODAY, TODAY)
    for days in (1, 3, 7):
        after = span.nearness(TODAY + timedelta(days=days))
        assert after > span.nearness(TODAY - timedelta(days=days)) > 0.0

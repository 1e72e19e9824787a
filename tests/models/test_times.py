"""Times: aware, in UTC, and as text of one width whose order is their order."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from conftest import NOW, Clock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory, Memory, ValidationError
from agent_memory.models.times import (
    age_in_days,
    format_briefly,
    format_time,
    now_utc,
    parse_time,
    read_stored_time,
    shifted,
    to_utc,
)

# How long an example takes is no matter of these tests.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Offsets go up to a day, so a day is left at both ends of what a time can be.
LOWEST = datetime(1, 1, 3)  # noqa: DTZ001 - hypothesis adds the zone
HIGHEST = datetime(9999, 12, 29)  # noqa: DTZ001
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
AWARE = st.datetimes(LOWEST, HIGHEST, timezones=OFFSETS)
NAIVE = st.datetimes(LOWEST, HIGHEST)


@UNTIMED
@given(AWARE)
def test_a_time_comes_back_from_text_as_the_same_moment(moment: datetime) -> None:
    text = format_time(moment)
    for read in (parse_time, read_stored_time):
        again = read(text)
        assert again == moment
        assert again.tzinfo is UTC
    assert format_time(parse_time(text)) == text


@UNTIMED
@given(AWARE)
def test_iso_text_with_any_offset_is_read(moment: datetime) -> None:
    assert parse_time(moment.isoformat()) == moment


@UNTIMED
@given(NAIVE)
def test_a_naive_time_means_utc(moment: datetime) -> None:
    assert to_utc(moment) == moment.replace(tzinfo=UTC)
    assert parse_time(moment.isoformat()) == moment.replace(tzinfo=UTC)
    assert format_time(moment) == format_time(moment.replace(tzinfo=UTC))


@UNTIMED
@given(AWARE | NAIVE)
def test_the_text_of_a_time_is_27_characters(moment: datetime) -> None:
    text = format_time(moment)
    assert len(text) == 27
    assert text.isascii()
    assert (text[10], text[19], text[26]) == ("T", ".", "Z")


@UNTIMED
@given(AWARE, AWARE)
def test_the_order_of_texts_is_the_order_of_times(first: datetime, second: datetime) -> None:
    assert (format_time(first) < format_time(second)) == (first < second)
    assert (format_time(first) == format_time(second)) == (first == second)


def test_a_whole_second_sorts_before_its_fractions() -> None:
    fractions = [0, 1, 10, 500_000, 999_999]
    moments = [NOW.replace(microsecond=n) for n in fractions] + [NOW + timedelta(seconds=1)]
    texts = [format_time(moment) for moment in moments]
    assert all(one < two for one, two in itertools.pairwise(texts))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOW, "2026-01-30T16:00:00.000000Z"),
        (NOW.replace(microsecond=7), "2026-01-30T16:00:00.000007Z"),
        (datetime(987, 6, 5, 4, 3, 2, tzinfo=UTC), "0987-06-05T04:03:02.000000Z"),
        (
            datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2))),
            "2025-12-31T23:00:00.000000Z",
        ),
    ],
)
def test_how_a_time_is_written(moment: datetime, text: str) -> None:
    assert format_time(moment) == text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-30", datetime(2026, 1, 30, tzinfo=UTC)),
        (" 2026-01-30T16:00 ", NOW),
        ("2026-01-30 16:00:00", NOW),
        ("2026-01-30T16:00:00Z", NOW),
        ("2026-01-30T21:30:00+05:30", NOW),
        ("2026-01-30T16:00:00.123456789Z", NOW.replace(microsecond=123456)),
        ("2026-01-30T16:00:00.9999999Z", NOW.replace(microsecond=999_999)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_a_time_that_a_person_writes_is_read(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment


WRONG = [
    "",
    " ",
    "yesterday",
    "2026-02-30",
    "2026-13-01",
    "0000-01-01",
    "10000-01-01",
    "2026-01-30T24:00:01",
    "2026-01-30T12:00:60",
    "2026-01-30T12:60",
    "2026-01-30T12:00+25:00",
    "1769788800",
    "11111111111111111111",
    "2026-01-30x12:00",
    "1769788800.5",
    "2026-01-30T16:00:00Z; DROP",
    "2026-01-30\x00",
    "\ud800",
    "0001-01-01T00:00+05:30",
    "9999-12-31T23:59:59-05:00",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: write it like") as error:
        parse_time(text)
    assert repr(text) in str(error.value)


def test_every_verb_reads_a_time_as_people_write_it(memory: AgentMemory, clock: Clock) -> None:
    for days in (0, 1, 8):
        memory.store(f"walnut {days}", timestamp=clock.now - timedelta(days=days))

    def contents(**options: Any) -> set[str]:
        return {hit.memory.content for hit in memory.search("walnut", **options)}

    assert contents(since="7d") == {"walnut 0", "walnut 1"}
    assert contents(since="today") == {"walnut 0"}
    for text in ("7d ago", "2 DAYS ago", "1 week ago", "1w  ago", "30 hours"):
        assert contents(since=text) == {"walnut 0", "walnut 1"}
    assert "walnut 8" in contents(filters={"date_range": {"start": "5000 weeks ago"}})
    assert contents(since="1 hour ago") == {"walnut 0"}
    assert "walnut 8" in contents(filters={"date_range": {"start": "5000w"}})
    assert contents(since="Yesterday") == {"walnut 0", "walnut 1"}
    assert contents(until="yesterday") == {"walnut 1", "walnut 8"}
    assert contents(since="yesterday", until="yesterday") == {"walnut 1"}
    assert memory.statistics(since="7d").memory_count == 3
    assert len(memory.list_recent(as_of="today")) == 3
    with pytest.raises(ValidationError, match="12h, 7d, 2w ago"):
        memory.search("walnut", since="last week")
    start, end = (format_briefly(clock.now - timedelta(days=days)) for days in (1, 2))
    with pytest.raises(ValidationError, match=f"^since: {start} is after until, {end}: swap"):
        memory.search("walnut", since="1d", until="2 days ago")
    dates = {"start": clock.now, "end": clock.now - timedelta(days=2)}
    with pytest.raises(ValidationError, match=f" until {end}: swap the two$"):
        memory.search("walnut", filters={"date_range": dates})
    with pytest.raises(ValidationError):
        memory.store("x", timestamp="last week")


@pytest.mark.parametrize("text", sorted(set(WRONG) - {"yesterday"}))
def test_a_search_since_no_time_is_refused(memory: AgentMemory, text: str) -> None:
    for name in ("since", "until"):
        with pytest.raises(ValidationError) as error:
            memory.search("anything", **{name: text})  # type: ignore[arg-type]
        assert error.value.errors()[0]["loc"] == (name,)


EDGES = [
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
]


@pytest.mark.parametrize("moment", EDGES)
def test_a_time_without_a_counterpart_in_utc_is_refused(
    memory: AgentMemory, moment: datetime
) -> None:
    for convert in (to_utc, format_time):
        with pytest.raises(ValueError, match="cannot be converted to UTC"):
            convert(moment)
    for given_time in (moment, moment.isoformat()):
        with pytest.raises(ValidationError):
            memory.store("content", timestamp=given_time)
        with pytest.raises(ValidationError):
            memory.search("content", since=given_time)
    assert memory.count() == 0


@pytest.mark.parametrize(
    "moment",
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
    ids=["first", "last"],
)
def test_the_first_and_the_last_time_can_be_stored(memory: AgentMemory, moment: datetime) -> None:
    found = memory.get(memory.store("the end of the world", timestamp=moment))
    assert found is not None
    assert found.timestamp == moment
    # Its age must not break the arithmetic of a search.
    assert [hit.memory.id for hit in memory.search("world")] == [found.id]


class Autumn(tzinfo):
    """A zone on the night when its clocks go back from two hours ahead of UTC to one."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1 if moment is not None and moment.fold else 2)

    def dst(self, moment: datetime | None) -> timedelta:
        return self.utcoffset(moment) - timedelta(hours=1)

    def tzname(self, moment: datetime | None) -> str:
        return f"UTC+{self.utcoffset(moment)}"


AUTUMN = Autumn()


def test_the_hour_that_comes_twice_keeps_its_two_moments() -> None:
    first = datetime(2025, 10, 26, 2, 30, tzinfo=AUTUMN, fold=0)
    second = datetime(2025, 10, 26, 2, 30, tzinfo=AUTUMN, fold=1)
    assert first == second  # what Python says of times in one zone
    assert to_utc(second) - to_utc(first) == timedelta(hours=1)
    assert format_time(first) < format_time(second)
    assert age_in_days(first, second + timedelta(days=1)) == 1


@UNTIMED
@given(AWARE, AWARE)
def test_age_is_whole_days_and_never_negative(moment: datetime, now: datetime) -> None:
    days = age_in_days(moment, now)
    assert isinstance(days, int)
    if now <= moment:
        assert days == 0
    else:
        assert timedelta(days=days) <= now - moment < timedelta(days=days + 1)


@pytest.mark.parametrize("text", ["", "gone", "2026-99-99", "9999-12-31T23:59:59-05:00"])
def test_a_stored_time_that_was_damaged_reads_as_the_oldest(text: str) -> None:
    damaged = read_stored_time(text)
    assert damaged.tzinfo is UTC
    assert damaged < datetime(2, 1, 1, tzinfo=UTC)
    assert len(format_time(damaged)) == 27


@pytest.mark.parametrize("days", [10_000_000, -10_000_000, 999_999_999, -999_999_999])
def test_a_span_never_leaves_the_years_that_a_time_can_have(days: int) -> None:
    moved = shifted(NOW, timedelta(days=days))
    assert moved.year == (9999 if days > 0 else 1)
    assert len(format_time(moved)) == 27


def test_a_span_within_the_years_is_added_exactly() -> None:
    assert shifted(NOW, timedelta(days=-30, hours=1)) == NOW - timedelta(days=30) + timedelta(
        hours=1
    )


def test_the_default_clock_is_aware_and_utc() -> None:
    assert now_utc().tzinfo is UTC
    memory = Memory(agent_id="bob", content="x", category="note", created_by_session="s")
    assert memory.timestamp.tzinfo is UTC
    assert abs(memory.timestamp - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_wrong_time_is_not_quoted_whole() -> None:
    with pytest.raises(ValueError, match="is not a time") as error:
        parse_time("9" * 1_000_000)
    assert len(str(error.value)) < 200

"""Times of day, however they are written."""

from __future__ import annotations

import pytest

from agent_memory.text.times import MOST_TIMES, times_in


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("at 2:30 pm", "14 30"),
        ("at 2.30pm", "14 30"),
        ("at 2:30 p.m.", "14 30"),
        ("14:30", "2 30 pm"),
        ("um 14.30 Uhr", "14h30"),
        ("2:30", "14 30"),  # in the afternoon, or not
        ("2:30", "2 30 am"),
        ("7h42", "7 42"),
        ("19 Uhr", "19 00"),
        ("19 Uhr", "7 pm"),
        ("à 17h00", "17 00"),
        ("the 6am job", "06 00"),
        ("12 am", "0 00"),
        ("12 pm", "12 00"),
        ("0:30", "12 30 am"),
    ],
)
def test_a_time_is_written_in_other_ways(text: str, form: str) -> None:
    (time,) = times_in(text)
    assert form in time.others


@pytest.mark.parametrize(
    "text",
    [
        "version 2.30",
        "chapter 3:4",
        "12:99",
        "24:00",
        "10:00:05",
        "13 pm",
        "1.2:30",
        "30 people",
        "7 helpers",
        "14.30",
        "it takes 8 h",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert times_in(text) == []


def test_a_time_that_tells_the_half_of_the_day_is_of_that_alone() -> None:
    for text in ("2:30 am", "02:30"):
        (time,) = times_in(text)
        assert "14 30" not in time.others


def test_of_many_times_a_few_are_read() -> None:
    assert len(times_in(" ".join(f"1:{minute}" for minute in range(10, 60)))) == MOST_TIMES

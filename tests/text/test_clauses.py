"""The main clauses of a sentence."""

from __future__ import annotations

import pytest

from agent_memory.text.clauses import main_clauses


@pytest.mark.parametrize(
    ("sentence", "clauses"),
    [
        ("kasse uses port 80, because 81 is taken", ["kasse uses port 80"]),
        ("Because 81 is taken, kasse uses port 80.", ["kasse uses port 80"]),
        ("Yuki left Acme, Ann is in charge now", ["Yuki left Acme", "Ann is in charge now"]),
        ("Tom is ill, so Ann is in charge", ["Tom is ill", "Ann is in charge"]),
        ("I like tea, coffee and milk", ["I like tea, coffee and milk"]),
        (
            "We use Slack for chat and Notion for docs",
            ["We use Slack for chat and Notion for docs"],
        ),
        ("The demo is at 9, it takes an hour", ["The demo is at 9", ""]),
        ("Die Abgabe ist am Freitag, weil Ute fehlt", ["Die Abgabe ist am Freitag"]),
        ("My wife works at Philips", ["My wife works at Philips"]),
        ("If it rains, the party is in the hall", []),
        ("The bus is late, when it snows", []),
    ],
)
def test_reasons_and_what_points_elsewhere_are_left_out(sentence: str, clauses: list[str]) -> None:
    assert [clause.text for clause in main_clauses(sentence)] == clauses


def test_what_comes_before_or_after_is_told_apart() -> None:
    (clause,) = main_clauses("The release is on Monday, after the audit")
    assert clause == ("The release is on Monday", "after the audit")

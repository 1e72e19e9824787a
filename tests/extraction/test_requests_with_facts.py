"""Requests and questions that state a fact are kept whole, and those that only ask are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.models.conversation import Message

CASES = json.loads((Path(__file__).parent / "cases" / "requests.json").read_text(encoding="utf-8"))


def kept(*turns: str) -> list[str]:
    """Return the facts of turns of a user and an assistant, the user's first."""
    roles = ("user", "assistant")
    messages = [
        Message.model_validate({"role": roles[place % 2], "content": text})
        for place, text in enumerate(turns)
    ]
    return [fact.text for fact in facts_by_rules(messages)]


@pytest.mark.parametrize("text", CASES["kept"])
def test_what_states_something_is_kept_whole(text: str) -> None:
    assert kept(text, "ok") == kept(text) == [text]


@pytest.mark.parametrize("text", CASES["empty"])
def test_what_only_asks_is_not(text: str) -> None:
    assert kept(text, "ok") == kept(text) == []


@pytest.mark.parametrize("text", CASES["kept"][:16])
def test_what_is_kept_of_a_turn_does_not_depend_on_the_others(text: str) -> None:
    turns = ("I need shoes for 120 euros.", "Which ones?", "Trail shoes.", "ok", text, "ok")
    assert kept(*turns)[-1] == text


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("add that I'm 1.82m", "I'm 1.82m"),
        ("Add to my profile that I'm 1.82m tall", "I'm 1.82m tall"),
        ("Add to my profile: I'm 1.82m tall", "I'm 1.82m tall"),
        ("save that I'm 1.82m tall", "I'm 1.82m tall"),
        ("put in my notes that I'm 1.82m tall", "I'm 1.82m tall"),
        ("ok, also add that Ann is my boss", "Ann is my boss"),
        ("Please store that the gate code is 4711.", "The gate code is 4711."),
        ("Could you save that my doctor is Dr. Klein?", "My doctor is Dr. Klein"),
        ("save to memory that I hate olives", "I hate olives"),
        ("Can you remind me that the rent is due on the 3rd?", "The rent is due on the 3rd"),
        ("Could you please remind us that our train leaves at 9?", "Our train leaves at 9"),
        ("Would you mind noting that I'm off on Friday?", "I'm off on Friday"),
    ],
)
def test_what_is_to_be_saved_is_kept_without_the_request(text: str, content: str) -> None:
    assert kept(text, "ok") == kept(text) == [content]


@pytest.mark.parametrize(
    "text",
    [
        "add that function",
        "Add that Postgres index to the table.",
        "put that in the list",
        "Add that to my notes.",
        "write that down again",
        "Add a test that checks it.",
    ],
)
def test_what_is_pointed_to_is_no_request_to_remember(text: str) -> None:
    assert kept(text, "ok") == []

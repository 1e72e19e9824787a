"""What an assistant says of its user: not kept if it guesses, or if the user denies it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.models.conversation import Message, MessageRole

BOOKED = "I booked Hotel Josef for May 3."
SAVED = "I saved your address as 5 Oak Road."


def kept(claim: str, reply: str = "", name: str | None = None) -> list[str]:
    messages = [Message(role=MessageRole.ASSISTANT, content=claim)]
    if reply:
        messages.append(Message(role=MessageRole.USER, content=reply, name=name))
    return [fact.text for fact in facts_by_rules(messages)]


@pytest.mark.parametrize(
    "claim",
    [
        "Your doctor is Dr. Klein, right?",
        "Is your budget 900 euros, or was your budget 800?",
        "Maybe your router is broken.",
        "It sounds like your knee is inflamed.",
        "I assume your budget is 2000 euros.",
        "Your knee is probably inflamed.",
        "Your knee is inflamed, I think.",
        "If your car is a diesel, use AdBlue.",
        "If the light is red, your router is broken.",
        "Make sure your phone is charged.",
        "If you like, I'll book it by Friday.",
        "I could say that your budget is tight.",
        "Your best option is Kafka.",
        "Your question is a good one.",
        "Your query is slow as it reads every row.",
        "For example, your name is Bob and your age is 30.",
        "Here is a phrase. For example, your cat is Tom.",
        "For instance, your interest rate is 5% and your principal is $100.",
        "As an example, your balance is $100.",
        "E.g. your key is 42.",
        "In this example your account is overdrawn.",
        "In the second scenario, your rent is $900.",
        "Let's say your rent is $900.",
        "Say your salary is 50,000 a year.",
    ],
)
def test_what_an_assistant_guesses_asks_or_comments_on_is_no_fact(claim: str) -> None:
    assert kept(claim) == []


def test_an_example_of_what_is_the_users_is_kept() -> None:
    example = "For example, your cat is Tom."
    assert kept(f"You have two pets. {example}") == [example]


@pytest.mark.parametrize(
    "claim",
    [
        "Your appointment is on Friday.",
        "Your flight is on June 4, so you could leave at noon.",
        "If you need to call them, your order number is 4711.",
        "Maybe it was the cable, but your order number is 12.",
        "Your code is 4711.",
        "I've booked it for 8 pm, is that ok?",
        "I've noted that you might be late.",
        "We'll deliver the sofa on May 5, whether it rains or not.",
        "For your trip, your hotel is Adler.",
        "For example, your dentist appointment is on May 5.",
        "For instance, your flight is at 7 am.",
        "E.g. your meeting with Ann is at 3.",
        "In the current scenario, your server is at 10.0.0.1.",
        "For reference, your ticket number is 5521.",
        "For instance type: your server is a t3.large.",
        "In the example account, your balance is $100.",
        "In this case your refund is $49.",
        "As agreed, your rent is $900.",
        "Say hello to Ann: your table is for 7.",
        "Your hotel is Adler, for example.",
        "Your order number is 4711, say it at the desk.",
        "For example, I've booked Hotel Adler for May 3.",
        "An exemplary choice: your room is 204.",
        "As a member, your fee is $20.",
        "I've saved an example, and your flight is at 9:40.",
        "The example says so, and your gate is B12.",
    ],
)
def test_what_an_assistant_is_sure_of_is_kept(claim: str) -> None:
    assert kept(claim) == [claim]


@pytest.mark.parametrize("claim", [BOOKED, f"{SAVED} Is that right?", "Your flight is on Friday."])
@pytest.mark.parametrize(
    "reply",
    [
        "no",
        "No.",
        "that's wrong",
        "no, cancel that",
        "Not quite.",
        "sorry, that isn't true",
        "wrong!",
    ],
)
def test_what_a_user_denies_at_once_is_not_kept(claim: str, reply: str) -> None:
    assert kept(claim, reply) == []


@pytest.mark.parametrize(
    ("claim", "reply", "facts"),
    [
        (SAVED, "no, that's my old one", [f"{SAVED} no, that's my old one"]),
        (SAVED, "No. That's my old one.", [f"{SAVED} No. That's my old one."]),
        (BOOKED, "not quite, it's May 4", [f"{BOOKED} not quite, it's May 4"]),
        (BOOKED, "Wrong. I have two cats.", [f"{BOOKED} Wrong. I have two cats."]),
        (BOOKED, "That's wrong. I live in Bergen.", ["I live in Bergen."]),
        (f"{SAVED} Shall I tell Ben?", "no, that's wrong", [f"{SAVED} no, that's wrong"]),
        (f"{SAVED} {BOOKED}", "that's wrong", [f"{SAVED} {BOOKED} that's wrong"]),
        (BOOKED, "No, I live in Bergen.", [BOOKED, "No, I live in Bergen."]),
        ("Your flight is on May 3.", "No, my flight is on May 4.", ["No, my flight is on May 4."]),
    ],
)
def test_a_denial_that_says_something_is_kept_with_what_it_denies(
    claim: str, reply: str, facts: list[str]
) -> None:
    assert kept(claim, reply) == facts


@pytest.mark.parametrize(
    "reply",
    [
        "no problem",
        "No, thanks!",
        "no, that's fine",
        "no, that's it",
        "No worries.",
        "great",
        "not sure",
        "Wait, let me think.",
    ],
)
def test_an_innocent_no_denies_nothing(reply: str) -> None:
    assert kept(BOOKED, reply) == [BOOKED]


@pytest.mark.parametrize("asked", ["Anything else?", "Shall I book a taxi too?"])
def test_a_no_to_a_question_denies_nothing_that_was_claimed_before_it(asked: str) -> None:
    assert kept(f"{BOOKED} {asked}", "no") == [BOOKED]


@pytest.mark.parametrize("reply", ["Wrong number called me today.", "No dogs are allowed there."])
def test_a_reply_that_only_looks_like_a_denial_is_kept_beside(reply: str) -> None:
    assert kept(BOOKED, reply) == [BOOKED, reply]


def test_a_no_to_an_offer_denies_nothing_that_was_claimed_before_it() -> None:
    assert kept(f"{BOOKED} Let me know if you need a taxi.", "No.") == [BOOKED]


def test_only_the_next_turn_denies_a_claim(tmp_path: Path) -> None:
    turns = [
        {"role": "assistant", "content": BOOKED},
        {"role": "user", "content": "Thanks!"},
        {"role": "assistant", "content": SAVED},
        {"role": "user", "content": "no, that's my old one", "name": "Ann"},
    ]
    with AgentMemory("ann", root=tmp_path, embedder="none") as memory:
        memory.add(turns)
        assert {found.content for found in memory.list_recent()} == {
            BOOKED,
            f"Ann: {SAVED} no, that's my old one",
        }

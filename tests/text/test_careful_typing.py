"""Texts that are typed in haste, read as if they were typed with care."""

from __future__ import annotations

import pytest

from agent_memory.text.careful_typing import carefully_typed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("im living in Madrid", "I'm living in Madrid"),
        ("Ive moved, dont call", "I've moved, don't call"),
        ("i drive a van. i repair clocks", "I drive a van. I repair clocks"),
        ("dogs bark and i cook", "Dogs bark and I cook"),
        ("alice lives in lyon", "Alice lives in lyon"),
        ("the boiler's broken", "The boiler is broken"),
        ("The meeting on Monday's cancelled.", "The meeting on Monday is cancelled."),
        ("server\u2019s back up", "Server is back up"),
        ("ella's 10 now", "Ella is 10 now"),
        ("Alice's a nurse", "Alice is a nurse"),
        ("alice's moved to madrid", "Alice has moved to madrid"),
        ("My boss's Ines.", "My boss is Ines."),
        ("The rent's 900 euros.", "The rent is 900 euros."),
        ("the deadline's may 20", "The deadline is may 20"),
        ("my email's jo@mail.example", "My email is jo@mail.example"),
    ],
)
def test_what_was_left_out_is_put_in(typed: str, meant: str) -> None:
    assert carefully_typed(typed) == meant
    assert carefully_typed(meant) == meant


@pytest.mark.parametrize(
    "text",
    [
        "Were ill, and well were the wed in hell",
        "Its id",
        "Ich liege im Krankenhaus",
        "Le film dont je parle",
        "Le vin dont mon père a besoin",
        "Ich arbeite im krankenhaus",
        "Im juni ziehe ich um",
        "He drank, as is his wont",
        "My friend's Toyota",
        "Ive lives in Oslo",
        "Jag bor nu i Oslo",
        "main.py is slow",
        "We write to im@chat.example",
        "Ella's 9 dogs bark",
        "Alice's brother moved",
        "Alice's left knee hurts",
        "Ann's working day is long",
        "Ann's Friday",
        "The boiler's pump is broken",
        "I stay at my brother's in Madrid",
        "It's down",
    ],
)
def test_what_may_be_meant_otherwise_is_left(text: str) -> None:
    assert carefully_typed(text) == text

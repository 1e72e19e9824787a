"""Corrections that name only a value: noticed, and never where something else may be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.models.conversation import Message, MessageRole

DENTIST = "My dentist appointment is on Monday at 3pm."
SON = "My son's name is Jonas."


def kept(*turns: str) -> list[str]:
    """Return the facts of turns such as "A: Noted.", of an assistant, "U: Hi", or by name."""
    messages = []
    for turn in turns:
        who, content = turn.split(": ", 1)
        role = MessageRole.ASSISTANT if who == "A" else MessageRole.USER
        messages.append(Message(role=role, content=content, name=who if len(who) > 1 else None))
    return [fact.text for fact in facts_by_rules(messages)]


@pytest.mark.parametrize(
    ("text", "correction", "corrected"),
    [
        (DENTIST, "no wait, Tuesday", "No, my dentist appointment is on Tuesday at 3pm."),
        (DENTIST, "Sorry, Tuesday.", "No, my dentist appointment is on Tuesday at 3pm."),
        (DENTIST, "actually, it's on Tuesday", "No, my dentist appointment is on Tuesday at 3pm."),
        (DENTIST, "Tuesday, not Monday", "No, my dentist appointment is on Tuesday at 3pm."),
        (DENTIST, "wait, 4pm", "No, my dentist appointment is on Monday at 4pm"),
        ("My birthday is May 5.", "Scratch that, May 6", "No, my birthday is May 6."),
        ("Remember that my birthday is May 5.", "Oops, May 6", "No, my birthday is May 6."),
        ("I have 3 cats.", "sorry, 4", "No, I have 4 cats."),
        ("My budget is 900 euros.", "no, 1200 euros", "No, my budget is 1200 euros."),
        (SON, "No, I meant Jonah.", "No, my son's name is Jonah."),
        (SON, "Jonah, not Jonas.", "No, my son's name is Jonah."),
        (SON, "sorry, Jonah, with an h", "No, my son's name is Jonah."),
        (SON, "Sorry, Jonah.", "No, my son's name is Jonah."),
        (SON, "No, it's Ben.", "No, my son's name is Ben."),
        ("I live in Graz.", "no wait, Linz", "No, I live in Linz."),
        ("I drink tea.", "Coffee, not tea.", "No, I drink coffee."),
        (
            "I'm allergic to penicillin.",
            "No, I meant amoxicillin.",
            "No, I'm allergic to amoxicillin.",
        ),
        ("Ich wohne in Graz.", "Nein, ich meinte Wien.", "Nein, ich wohne in Wien."),
        ("Mein Termin ist am Montag.", "Nein, am Dienstag.", "Nein, mein Termin ist am Dienstag."),
    ],
)
def test_a_bare_value_corrects_what_was_said_just_before(
    text: str, correction: str, corrected: str
) -> None:
    assert kept(f"U: {text}", f"U: {correction}")[1:] == [corrected]
    assert kept(f"U: {text}", "A: Got it. Anything else?", f"U: {correction}")[1:] == [corrected]
    assert " ".join(kept(f"U: {text} {correction}")).endswith(f"{text[-10:]} {corrected}")


@pytest.mark.parametrize(
    ("stated", "reply"),
    [
        (DENTIST, "Sorry, I'm late."),
        (DENTIST, "No wait, let me think."),
        (DENTIST, "Actually, Tuesday works too"),
        (DENTIST, "Wait, what about Tuesday?"),
        (DENTIST, "Wait, Tuesday?"),
        (DENTIST, "Oh, Tuesday."),
        (DENTIST, "Oh no, it's 4pm!"),
        (DENTIST, "wait, it's 4pm"),
        (DENTIST, "wait, 5 minutes"),
        (DENTIST, "Sorry, one second."),
        (DENTIST, "Sorry, Tuesday was awful."),
        (DENTIST, "No, thanks."),
        (DENTIST, "no, 2 people"),
        (DENTIST, "no, it's ok"),
        (DENTIST, "actually 3pm"),
        (DENTIST, "No, not Monday."),
        (DENTIST, "Sorry, not today."),
        (DENTIST, "Tuesday, not before noon."),
        (DENTIST, "Ben, not Monday please"),
        (DENTIST, "Maybe, not sure."),
        (DENTIST, "no wait, May"),
        (DENTIST, "No, May 5."),
        (SON, "Sorry, Ben."),
        (SON, "No, Claude."),
        (SON, "No wait, Alexa"),
        (SON, "No, Thanks"),
        (SON, "no, Never"),
        (SON, "Actually, Lego"),
        (SON, "No, I meant well."),
        (SON, "no sorry, amoxicillin"),
        (SON, "coffee, not tea"),
    ],
)
def test_an_innocent_reply_corrects_nothing(stated: str, reply: str) -> None:
    assert not any(fact.startswith("No, my") for fact in kept(f"U: {stated}", f"U: {reply}"))


@pytest.mark.parametrize(
    "turns",
    [
        ("U: Ann's boss is Ben.", "U: No, I meant Bob."),
        ("U: My flight is on Monday and my talk is on Friday.", "U: no wait, Tuesday"),
        ("U: My flight is on Monday. My talk is on Friday. No wait, Tuesday.",),
        ("U: Is the shop open on Monday? No, Tuesday.",),
        ("U: My dentist is on Tuesday. When is the shop open? Sorry, Wednesday.",),
        ("U: My flight is at 3pm. Is it late already? No, 2pm.",),
        ("U: I don't live in Graz. No, Linz.",),
        ("U: The launch isn't on Monday. No, Tuesday.",),
        ("U: My boss is Ann.", "U: No, Sir"),
        (f"U: {DENTIST}", "A: When do you want the taxi?", "U: no wait, 4pm"),
        (f"U: {DENTIST}", "A: Tell me when to call a taxi.", "U: Sorry, 4pm"),
        (f"U: {DENTIST}", "A: Monday at 3pm. Shall I remind you on Sunday?", "U: no, Saturday"),
        (f"U: {DENTIST}", "A: Monday is full, and Thursday too.", "U: no, Tuesday"),
        ("U: I'm allergic to penicillin and nuts.", "U: No, I meant amoxicillin."),
        ("U: The launch is on May 5, 2027.", "U: Sorry, May 6."),
        ("Ann: My cat is Bella.", "Ben: I am glad to hear it.", "Ann: No, Ben."),
        ("Ann: I have 3 figs.", "Ben: I have 5.", "Ann: Sorry, 4."),
    ],
)
def test_nothing_is_corrected_if_something_else_may_be_meant(turns: tuple[str, ...]) -> None:
    last = turns[-1].split(": ", 1)[1]
    assert not any("No, my" in fact or "No, I" in fact for fact in kept(*turns) if last not in fact)
    assert any(last[-8:] in fact for fact in kept(*turns))


def test_an_echo_of_the_value_is_no_other_value() -> None:
    corrected = "No, my dentist appointment is on Tuesday at 3pm."
    for echo in ("Got it, Monday at 3pm.", "Your appointment is on Monday at 3pm."):
        for correction in ("no wait, Tuesday", "Sorry, Tuesday"):
            assert kept(f"U: {DENTIST}", f"A: {echo}", f"U: {correction}") == [DENTIST, corrected]


def test_one_message_may_correct_itself_twice() -> None:
    assert kept("U: My talk is on Monday. No, Tuesday. Sorry, Wednesday.") == [
        "My talk is on Monday.",
        "No, my talk is on Tuesday.",
        "No, my talk is on Wednesday.",
    ]


@pytest.mark.parametrize(
    "correction", ["no wait, Tuesday", "Sorry, Tuesday.", "Tuesday, not Monday"]
)
def test_the_wrong_value_is_not_left_as_true(tmp_path: Path, correction: str) -> None:
    stated, corrected = (
        {"role": "user", "content": DENTIST},
        {"role": "user", "content": correction},
    )
    with AgentMemory("once", root=tmp_path, embedder="none") as memory:
        memory.add([stated, corrected])
        assert [review.content for review in memory.reviews()] == [DENTIST]
        memory.add([stated, corrected, {"role": "user", "content": "I like tea."}])
        assert memory.count() == 3
        assert [review.content for review in memory.reviews()] == [DENTIST]
    with AgentMemory("known", root=tmp_path, embedder="none") as memory:
        memory.add([stated])
        memory.add([stated, corrected])
        held = [found.content for found in memory.list_recent()]
        assert held == ["No, my dentist appointment is on Tuesday at 3pm."]


def test_a_value_that_is_named_as_gone_is_reviewed_in_a_later_call(tmp_path: Path) -> None:
    with AgentMemory("later", root=tmp_path, embedder="none") as memory:
        memory.add(SON)
        memory.add("My daughter's name is Anna.")
        memory.add("Jonah, not Jonas.")
        (review,) = memory.reviews()
        # What is Jonah's is in the older text alone: nothing of it goes by itself.
        assert (review.content, review.remaining) == (SON, None)
        assert memory.count() == 3

"""What a sentence does: one table of questions, orders, small talk, suppositions and denials.

Both engines that decide which sentence is worth keeping are held to it.
"""

from __future__ import annotations

import pytest

from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.extraction.rules.graph import graph_updates_by_rules
from agent_memory.extraction.rules.statements import statement
from agent_memory.integrations.capture.observations import scan
from agent_memory.models.conversation import Message
from agent_memory.text.speech_acts import (
    is_denied,
    is_order,
    is_question,
    is_request_to_forget,
    is_request_to_remember,
    is_small_talk,
    is_supposed,
    without_request,
)


def facts_of(text: str) -> list[str]:
    """Return what is kept of a user's message to an assistant."""
    said = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
    return [fact.text for fact in facts_by_rules([Message.model_validate(it) for it in said])]


def captured(text: str) -> list[str]:
    return [it.content for it in scan(text, source="turn:user", session_id="s").observations]


QUESTIONS = [
    "Why is it important to wash the brushes?",
    "Have we decided to paint the shed?",
    "what did the team decide, and why is it important?",
    'Did Ann ask "is it important to wait?"',
    "Is it important to wait? Nobody knows",
    "how do you solve this",
    "你喜欢猫吗",
    "I don't understand, what does it mean?",
    "Can you use a loop here?",
    "Could you answer my question?",
    "Can you call me back?",
    "I have a question, can you help?",
    "I'm not sure, what do you think?",
    "My code doesn't compile, why?",
    "これは重要ですか\uff1f",
]
ORDERS = [
    "Explain why it is important to wash the brushes",
    "Can you please summarise what was decided to be done",
    "Ok, now rewrite it in French",
    "Let me know when it's done",
    "Check why the build is red",
    "Explain that again, I'm lost",
    "Run the tests, I get an error",
    "Explain it again, I don't get it",
    "Show me the file that I am editing",
    "Find a function that is unused",
    "Check spelling: me go store",
    "Translate: good morning",
    "Open the door",
]
SMALL_TALK = [
    "Schönes Wochenende!",
    "have a great weekend",
    "thanks, that fixed it!",
    "This did the trick",
    "Thanks, that was really helpful!",
    "Good morning",
    "That's so cool!",
    "I'm so happy for you",
    "What a day!",
    "That's the best answer so far!",
    "That was hard to read",
    "You are the best",
    "Nice work on the docs",
    "Have a nice evening",
    "谢谢",
]
REMEMBERED = {
    "Remember that Ann keeps the keys": "Ann keeps the keys",
    "Please remember that Ann keeps the keys.": "Ann keeps the keys.",
    "Can you please remember that Ann keeps the keys?": "Ann keeps the keys",
    "Remember this: Ann keeps the keys": "Ann keeps the keys",
    "Ok, also remember: Ann keeps the keys": "Ann keeps the keys",
}
SUPPOSED = [
    "If I live in Oslo, I ski",
    "Maybe I live in Oslo",
    "I would live in Oslo",
    "I wish I lived in Oslo",
    "Suppose I live in Oslo",
]
DENIED = [
    "I don't live in Oslo",
    "I do not live in Oslo",
    "I never live in Oslo",
    "Nobody is Ann",
]


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_kept_by_neither(text: str) -> None:
    assert is_question(text.partition("? ")[0] + "?" if "? " in text else text)
    assert is_small_talk(text)
    assert facts_of(text.split("? ", maxsplit=1)[0]) == []
    assert captured(text) == []


@pytest.mark.parametrize("text", ORDERS)
def test_an_order_for_now_is_no_fact(text: str) -> None:
    assert is_order(text)
    assert is_small_talk(text)
    assert facts_of(text) == []


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_is_kept_by_neither(text: str) -> None:
    assert is_small_talk(text)
    assert facts_of(text) == captured(text) == []


@pytest.mark.parametrize(("text", "content"), REMEMBERED.items())
def test_what_is_to_be_remembered_is_kept_by_both_without_the_request(
    text: str, content: str
) -> None:
    assert is_request_to_remember(text) or text.startswith("Ok")
    assert not is_question(text)
    assert without_request(text) == content
    assert facts_of(text) == captured(text) == [content]


@pytest.mark.parametrize("text", ["Remember that", "Remember:", "Note that.", "remembering that"])
def test_a_request_with_nothing_in_it_stays_as_it_is(text: str) -> None:
    assert without_request(text) in (text, ".")


def test_a_question_may_tell_something() -> None:
    text = "Did I tell you that I got the job?"
    assert not is_question(text)
    assert facts_of(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "The tests are run with pytest.",
        "The script runs every night.",
        "I want you to know that I am deaf.",
        "Sorry, I meant the 14th.",
        "The worker runs in Docker.",
        "Sorry, I meant my email is ann@home.example.",
        "I said my name is Ann.",
        "Update: I moved to Lisbon.",
        "Open: 9 to 5.",
        "Review: Ben approves of it.",
        "Test coverage is 84 percent.",
        "Build server is heron.",
        "Check-in is from 3 pm.",
        "Check constraint on orders.total was dropped.",
        "Move to Postgres 16 is done.",
        "Open source license is MIT.",
        "Open Monday to Friday.",
        "Open 9 to 5 on weekdays.",
        "Open until 6 pm.",
        "List of guests: Ann, Ben.",
        "Change of plan: we meet at 8.",
        "Update on the move: it is done.",
        "Test results: negative.",
        "Start date: 3 March",
        "Review comments go into the ticket.",
        "Explain plans are stored in the wiki.",
        "fix(auth): tokens expire after 15 minutes",
        "refactor: split storage into two modules",
        "build: make",
        "debug = false",
        "Test ist negativ.",
        "Start ist am 3. Mai.",
        "[ ] Send the invoice",
        "You need a VPN to reach staging.",
        "You have to warm up the cache first.",
        "You can't park in front of the gate.",
        "You don't need a token for staging.",
        "You are not allowed to push to main.",
        "You keep the spare key.",
        "You are the best man at our wedding.",
        "You are called Jarvis.",
        "You made the cake for Ann's birthday.",
        "You said the budget was 500.",
        "I asked my boss for a raise.",
        "I asked her to marry me.",
        "I was talking to my sister about the house.",
        "I said that Ann may use the car.",
        "I need help getting into the bath.",
        "I like examples in answers.",
        "I got rid of the error by upgrading to 3.2.",
        "I get an error 403 when the token is older than one hour.",
        "I got a warning from the police for speeding.",
        "This works on Python 3.9 only.",
        "The build is broken.",
        "The build is broken on ARM.",
        "The table is good for six people.",
        "My code works without internet.",
        "It failed in 2019.",
        "Delete branches after merging.",
        "Let's keep the API stable.",
        "Let's name the package heron.",
        "Let's not use mocks.",
        "Let's do standups on Tuesdays.",
        "Let's start the sprint on Monday.",
        "Let's say the budget is 5000 euros.",
        "I want you to call me Sam.",
        "I'd like you to answer in German.",
        "I need you to use metric units.",
        "Can you call me Sam?",
        "Could you stop using emojis?",
        "Can you keep answers short?",
        "Add 200 g of flour and 2 eggs.",
        "Send the rent on the 1st.",
        "Repeat the blood test in 3 months.",
        "Start at the bakery on Monday.",
        "I'm allergic to nuts, can I eat this?",
        "I moved to Lisbon last week, what should I see?",
        "Since I'm vegan, what can I cook?",
        "Give me a recipe, I'm vegan.",
        "Help me plan a trip, we have two weeks in May.",
        "Draft an email to my boss saying I am ill until Friday.",
        "My son is 4 years old - which books are good for him?",
        "We run Postgres 14; is that still supported?",
        "Nothing with nuts.",
        "Broken left leg.",
        "The same dentist.",
        "Not a morning person.",
        "Not really a coffee drinker.",
        "Have a nut allergy.",
        "Have a cat named Tom.",
        "Take care of the cat while Ann is away.",
        "It is important that Ann gets the report.",
        "It is best to deploy from main.",
        "It's ok to call Ben at night.",
        "It was a great year for Ann.",
        "I can imagine living in Norway.",
        "I bet on horses.",
        "I hope it is a girl.",
        "What a relief that Ann got the job.",
        "Thanks to the new cache the page loads in no time.",
        "Good work-life balance matters to Ann.",
        "Great work by Ann on the migration.",
        "Good evening classes are at the school.",
        "Can't wait to see the doctor on Monday.",
    ],
)
def test_what_looks_like_an_order_or_a_verdict_may_tell_something(text: str) -> None:
    assert facts_of(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "The tests run now.",
        "It runs without errors.",
        "It runs on my machine.",
        "I was asking for the 3 examples.",
        "I want you to know.",
        "I want you to remember this.",
        "I'd like you to remember that for later.",
        "I need you to know how this works.",
        "I meant the other.",
        "I asked about the second one.",
        "I was talking about the second function.",
        "I need help with this.",
        "I'm still getting errors.",
        "You have an error in line 5.",
        "You keep making the same mistake.",
        "You need to fix this.",
        "The tests still fail.",
        "Same problem again.",
        "Nothing happens.",
        "Not a list.",
        "Not a bad idea.",
    ],
)
def test_what_is_said_of_an_answer_is_no_fact(text: str) -> None:
    assert facts_of(text) == []


def test_a_request_to_note_is_kept_without_the_request() -> None:
    assert facts_of("Could you note that Ann keeps the keys?") == ["Ann keeps the keys"]
    for nothing in ("that", "that down", "that for me", "that one"):
        assert facts_of(f"Could you note {nothing}?") == []


@pytest.mark.parametrize("text", SUPPOSED)
def test_what_is_supposed_states_nothing(text: str) -> None:
    assert is_supposed(text)
    assert statement(text) is None
    assert graph_updates_by_rules(text) == []
    assert captured(f"{text} if it is important to you") == []


@pytest.mark.parametrize("text", DENIED)
def test_what_is_denied_states_nothing(text: str) -> None:
    assert is_denied(text)
    assert statement(text) is None
    assert graph_updates_by_rules(text) == []


@pytest.mark.parametrize("text", ["We decided to leave", "My favourite band is No Doubt"])
def test_what_is_said_plainly_is_neither(text: str) -> None:
    assert not is_supposed(text)
    assert not is_denied(text)
    assert not is_small_talk(text)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Forget my phone number", True),
        ("Please delete what I said about Ann", True),
        ("Ann: forget that I like pasta", True),
        ("User asks to forget the address", True),
        ("Don't forget to call Ann", False),
        ("Forget it", False),
        ("I forgot my keys", False),
        ("I never forget a face", False),
        ("Delete protection is on for the shop", False),
        ("Delete branches after merging", False),
        ("Ann: remove requests are answered in a week", False),
        ("Ann: remove my phone number", True),
        ("Delete Bob is allergic to nuts", True),
        ("Vergiss, dass ich Polnisch spreche.", True),
        ("Bitte vergessen Sie, dass ich in Graz wohne.", True),
        ("Vergiss nicht, dass ich Polnisch spreche.", False),
        ("Man vergisst, dass ich Polnisch spreche.", False),
        ("Ich vergesse, dass Karl kommt.", False),
        ("Oublie que je parle polonais.", True),
        ("Oubliez qu'on vit à Lyon.", True),
        ("N'oublie pas que je parle polonais.", False),
        ("Oublier que l'on vieillit fait du bien.", False),
        ("Il oublie que je suis végétarien.", False),
        ("Por favor, olvida que vivo en Lugo.", True),
        ("Por favor, olvide que estoy casada.", True),
        ("Olvide que estoy casada.", False),
        ("olvide que mi hijo es alergico a las nueces y le di una", False),
        ("Olvida que soy celíaca.", True),
        ("Olvida que vive en Bilbao.", False),
        ("Olvida que tiene cita los lunes.", False),
        ("Olvida que Pedro viene.", False),
        ("Olvida que vivo en Madrid: vivo en Sevilla.", False),
        ("Vergiss dass ich Bonn gesagt habe, ich wohne in Köln.", False),
        ("Oublie que je suis végétarien, je mange du poisson maintenant.", False),
        ("忘了我会迟到这件事，我住在上海。", False),
        ("No olvides que hablo polaco.", False),
        ("Mi padre olvida que vivo en Lugo.", False),
        ("Olvida que soy celíaca cada vez que cocina.", False),
        ("忘了我会说波兰语。", True),
        ("请忘记我有糖尿病。", True),
        ("别忘了我会说波兰语。", False),
        ("忘了我有约。", False),
        ("我忘了我的钥匙在哪。", False),
    ],
)
def test_requests_to_forget(text: str, asks: bool) -> None:
    assert is_request_to_forget(text) is asks


@pytest.mark.parametrize(
    "text",
    [
        "We'll send somebody tomorrow.",
        "We\u2019ll fix the roof in June.",
        "Let's meet at noon tomorrow.",
        "Let's have dinner on Friday.",
        "Let's go with Postgres.",
    ],
)
def test_a_promise_or_plan_has_content(text: str) -> None:
    assert not is_small_talk(text)
    assert facts_of(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "We'll see.",
        "Let's keep it.",
        "Will do.",
        "Let's go with option b.",
        "Let's try again.",
        "Well, send it.",
    ],
)
def test_a_promise_of_nothing_has_none(text: str) -> None:
    assert is_small_talk(text)

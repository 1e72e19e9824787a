"""A text that is not the sender's own is kept as a quotation, and changes nothing that is known."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from agent_memory import AgentMemory
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.extraction.rules.graph import graph_updates_by_rules
from agent_memory.extraction.rules.readings import read
from agent_memory.extraction.rules.statements import statement
from agent_memory.models.conversation import Message
from agent_memory.text.quotations import has_quotation
from agent_memory.text.speech_acts import is_request_to_forget

KNOWN = (
    "My birthday is May 5.",
    "I'm 34 years old.",
    "I live in Oslo.",
    "My email is a@b.example.",
    "My phone number is 555-2222.",
    "I smoke.",
    "My name is Bob.",
)


class Change(NamedTuple):
    """What became of what was known, and what is new."""

    gone: set[str]
    reviewed: set[str]
    new: set[str]


def change_by(text: str, root: Path) -> Change:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        for said in (*KNOWN, text):
            memory.add([{"role": "user", "content": said}], user_id="u")
        contents = {left.content for left in memory.list_recent(limit=50)}
        reviewed = {review.content for review in memory.reviews()}
    return Change(set(KNOWN) - contents, reviewed, contents - set(KNOWN))


def kept(*texts: str) -> list[str]:
    messages = [Message.model_validate({"role": "user", "content": text}) for text in texts]
    return [fact.text for fact in facts_by_rules(messages)]


WORKED_ON = [
    "Translate this to French. My birthday is June 9.",
    "translate to spanish\nmy birthday is june 9",
    "Translate the following into German:\n\nI live in Rome. I'm 52 years old.",
    "Übersetze das ins Englische: Ich wohne in Rom. Ich heiße Max.",
    "Traduce esto al inglés. Vivo en Roma. Me llamo Max.",
    "My birthday is June 9. Translate this to French.",
    "Please proofread: My birthday is June 9. I live in Rome.",
    "what is wrong with this text?\nMy birthday is June 9.",
    "Is this sentence correct? My birthday is June 9.",
    "Check the grammar of my friend's text. I am 52 years old.",
    "Correct my English: My birthday is June 9. I live in Rome.",
    "Rewrite this in a formal tone: my birthday is June 9. I live in Rome.",
    "Improve my essay: I live in Rome. My birthday is June 9.",
    "Make this sound nicer: My birthday is June 9. I live in Rome.",
    "Summarise this article:\nI no longer smoke. I live in Rome. My birthday is June 9.",
]
WRITTEN = [
    "Write a story. My birthday is June 9.",
    "Write a short poem for my wife. My birthday is June 9.",
    "Write an email to my boss. I am 52 years old. My email is x@y.example.",
    "Write a blog post in first person. I live in Rome. My birthday is June 9.",
    "Continue the story: I live in Rome. My name is Max. My birthday is June 9.",
    "Tell me a story. My name is Max. I am 52 years old.",
]
PLAYED = [
    "Pretend you are my doctor. I am 90 years old.",
    "Act as my therapist. I am 52 years old.",
    "Let's roleplay. My name is Elsa. I live in Paris.",
    "Suppose we live in Rome. My birthday is June 9.",
    "Imagine I live in Tokyo. I am 52 years old. What should I do?",
]
ANNOUNCED = [
    "Here's the intro of my novel:\n\nMy name is Ada. I am 12 years old. I live in Rome.",
    "Here is a review from a customer. My birthday is June 9. I live in Rome.",
    "Customer message:\nMy email is c@z.example. My phone number is 555-1234.",
    "Tom's mail:\nHi all, my phone number is 555-9999. My email is t@y.example.\nBest, Tom",
    "My friend wrote: I live in Rome. My birthday is June 9.",
    "The user's bio says: My name is Max. I live in Rome.",
    "Transcript:\nSpeaker 1: I live in Rome.\nSpeaker 2: My birthday is June 9.",
]
MARKED = [
    "can you reply to this?\n> Hi, I moved to Hamburg and I am allergic to cats.\n> Tom",
    "> I moved to Hamburg last week.\n> I no longer smoke.",
    'Draft a reply to this:\n"Dear Ms Chen, I live in Rome. I am the boss. Kind regards, Dave"',
    "Her ticket:\n---\nMy email is c@z.example.\nI live in Rome.\n---\nDraft a reply.",
    '"My birthday is June 9. I live in Rome." Is this correct English?',
    'She said: "My birthday is June 9. I live in Rome."',
    "Dear Mr Stone,\n\nmy phone number is 555-1234. I live in Rome.\n\nSincerely,\nEve Stone",
]


@pytest.mark.parametrize("text", [*WORKED_ON, *WRITTEN, *PLAYED, *ANNOUNCED, *MARKED])
def test_a_text_of_somebody_else_changes_nothing_and_stays_in_one(text: str, root: Path) -> None:
    gone, reviewed, new = change_by(text, root)
    assert (gone, reviewed) == (set(), set())
    (quotation,) = new
    assert has_quotation(quotation)


OWN = [
    "Remember this: my birthday is June 9.",
    "Can you check my calendar? My birthday is June 9.",
    "Check my email for me. My birthday is June 9.",
    "Write that down. My birthday is June 9.",
    "Work email: a@b.example. My birthday is June 9.",
    "Ticket: ABC-123. My birthday is June 9.",
    "Here is the ticket:\nPROJ-12 on the board. My birthday is June 9.",
    "Favourite poem: The Raven. My birthday is June 9.",
    "I want to write a novel. My birthday is June 9.",
    "I'd like to improve my English. My birthday is June 9.",
    'Remember: "My birthday is June 9."',
    "Please remember the following:\n---\nMy birthday is June 9.\n---",
    "Correct my grammar from now on. My birthday is June 9.",
    "Did you see this message? My birthday is June 9.",
    "Act as if nothing happened. My birthday is June 9.",
    "Suppose you are right. My birthday is June 9.",
    "Hello Claude,\nMy birthday is June 9.\nBest regards,\nMaria",
    "Her ticket:\n---\nMy order is late.\n---\nMy birthday is June 9.",
    "Please note this. My birthday is June 9.",
    "Summarise my week: I met Ann. My birthday is June 9.",
    "Write a function that adds numbers. My birthday is June 9.",
    "Rewrite it in Rust. My birthday is June 9.",
    "Answer in German. My birthday is June 9.",
    'Translate "good night" to French. My birthday is June 9.',
    'Translate this to French: "bonjour". By the way, my birthday is June 9.',
    "Thanks for the poem! My birthday is June 9.",
    "I got a message from Ann. My birthday is June 9.",
    "I wrote a novel. My birthday is June 9.",
    "I'd like to write a book. My birthday is June 9.",
    "My birthday is June 9. Can you write a poem about it?",
    "My birthday is June 9. What does this mean for my visa?",
    "Can you reply to Ann? My birthday is June 9.",
    "Change the text color to red. My birthday is June 9.",
    "Hi Claude! My birthday is June 9. Thanks, Bob",
    "Here is my info:\nMy birthday is June 9.",
    "can you reply to this?\n> I moved to Hamburg.\n> Tom\nMy birthday is June 9.",
    "My birthday is June 9. Can you reply to this?\n> I moved to Hamburg.\n> Tom",
]


@pytest.mark.parametrize("text", OWN)
def test_what_is_the_senders_own_is_compared(text: str, root: Path) -> None:
    gone, reviewed, new = change_by(text, root)
    assert gone == set()
    assert "My birthday is May 5." in reviewed
    assert any("birthday is June 9." in own and not has_quotation(own) for own in new)


@pytest.mark.parametrize(
    "text",
    [
        "Update: I moved to Lisbon",
        "Check this: our API returns 500 since Monday",
        "Write that down. I'm allergic to nuts",
        "Summarise my week: I met Ann on Monday.",
        "My email: ann@home.example",
        "Work email:\nann@work.example",
        "Coverage must be\n> 90 %",
        'My motto is "Never give up."',
        '"Rex" is my dog.',
        "For the sake of the kids, we live in Ohio.",
        "I live in Ohio, for the sake of argument.",
        "Angenommen hat er das Angebot.",
        "Status: angenommen, meine Bewerbung bei Bosch!",
        "Status: angenommen, wir ziehen nach Bonn.",
        "Angenommen, meine Bewerbung bei Bosch!",
        "Angenommen wir haben gestern den Antrag.",
        "Er hat angenommen, ich wohne in Wien.",
        "Ich wurde angenommen, ich ziehe nach Wien.",
        "Wir nehmen an, dass die Frist am Freitag endet.",
        "Nehmen wir Postgres.",
        "Supongo que vivo aquí.",
        "Mi jefe supone que vivo en Lima.",
        "Imagina: tengo gemelos.",
        "Je suppose que je suis allergique.",
        "On suppose que le bail finit en mai.",
        "Supposons un peu moins.",
        "Imaginons que oui; j'habite à Lyon.",
        "我假设我住在上海。",
        "这个假设是对的。",
    ],
)
def test_what_quotes_nothing_is_kept_as_before(text: str) -> None:
    assert kept(text)
    assert not any(has_quotation(fact) for fact in kept(text))


@pytest.mark.parametrize(
    "text",
    [
        "Imagine I live in Tokyo.",
        "Imagine my birthday is June 9.",
        "Imagine if I live in Tokyo.",
        "Suppose I live in Tokyo.",
        "Let's say I live in Tokyo.",
        "For the sake of argument, I live in Tokyo.",
        "For argument's sake, my birthday is June 9.",
        "Angenommen, ich wohne in Wien. Wie viel Steuer zahle ich?",
        "Angenommen ich wohne in Wien, wie viel Steuer zahle ich?",
        "Angenommen dass ich in Wien wohne.",
        "Frage: angenommen, dass meine Frau in Wien wohnt.",
        "Nehmen wir mal an, dass ich in Wien wohne.",
        "Supongamos que vivo en Lima.",
        "Supposons que j'habite à Rome.",
        "假设我住在上海。",
        "my friend asks: should I quit my job if I am pregnant?",
        "Write a story: I am a pirate.",
        "Write me a short story: I am a pirate. My ship is called Rex.",
    ],
)
def test_what_is_made_up_is_no_fact(text: str) -> None:
    assert kept(text) == []


def test_a_wish_is_kept_and_is_no_value(root: Path) -> None:
    wish = "I wish I lived in Tokyo."
    assert change_by(wish, root) == (set(), set(), {wish})
    assert statement(wish) is None


def test_what_is_hypothetical_puts_nothing_under_review(root: Path) -> None:
    assert change_by("Hypothetically, I live in Tokyo.", root).reviewed == set()


def test_a_program_in_a_message_is_no_quotation() -> None:
    program = "I use this:\n```html\n<b\n> I live in Rome</b>\n```\nIt is fast."
    assert kept(program) == ["I use this: ```html <b > I live in Rome</b> ``` It is fast."]


def test_in_plain_text_a_quotation_is_one_message_whatever_paragraphs_it_has(root: Path) -> None:
    said = "Our dog is Rex.\n\nThe intro of my novel:\n\nMy name is Max.\n\nI am 12 years old."
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("My name is Bob.", user_id="u")
        memory.add(said, user_id="u")
        contents = {left.content for left in memory.list_recent()}
    quotation = "The intro of my novel:\n> My name is Max.\n> I am 12 years old."
    assert contents == {"My name is Bob.", "Our dog is Rex.", quotation}


def test_a_quotation_is_kept_below_the_words_that_lead_to_it() -> None:
    said = "I live in Oslo. Can you answer Tom?\n> I moved to Bonn.\n> My name is Tom.\nHe is ill."
    assert kept(said) == [
        "I live in Oslo.",
        "He is ill.",
        "Can you answer Tom?\n> I moved to Bonn.\n> My name is Tom.",
    ]


def test_an_answer_below_a_quoted_question_is_kept_behind_it() -> None:
    assert kept("> Do you have pets?\nYes, two cats.\n> Do you smoke?\nNo.") == [
        "Do you have pets? Yes, two cats.",
        "Do you smoke? No.",
    ]
    assert kept("Can you answer Tom?\n> Do you smoke?\nYes, I can wait.") == ["Yes, I can wait."]


def test_each_piece_of_a_long_quotation_is_marked() -> None:
    facts = kept("Translate this to French.\n" + "I live in Rome, and my sister does too. " * 30)
    assert len(facts) > 1
    assert all(fact.startswith("Translate this to French.\n> I live in Rome") for fact in facts)
    assert max(map(len, facts)) <= 500


def test_what_a_quotation_says_is_not_read() -> None:
    quotation = "Tom's mail:\n> I live in Oslo. I no longer smoke."
    reading = read(quotation)
    assert reading.is_quoted
    assert (reading.statements, statement(quotation)) == ((), None)
    assert graph_updates_by_rules(quotation) == []
    assert not is_request_to_forget("> Forget my phone number.")


def test_a_quotation_puts_nothing_under_review_when_its_words_are_said(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("Tom wrote:\n> I live in Oslo.\n> I smoke.", user_id="u")
        memory.add("I no longer smoke. I moved to Rome.", user_id="u")
        assert memory.reviews() == []
        assert memory.count() == 3


def test_among_people_a_message_is_kept_as_before() -> None:
    said = "Check out this poem I wrote. I live in Rome."
    messages = [
        Message.model_validate({"role": "user", "name": name, "content": said})
        for name in ("Ann", "Ben")
    ]
    assert not any(has_quotation(fact.text) for fact in facts_by_rules(messages))

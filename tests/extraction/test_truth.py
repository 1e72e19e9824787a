"""What is said is kept, and what is true is not overwritten: cases, and pairs made of slots."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.extraction.rules.decisions import decide_by_rules
from agent_memory.extraction.types import Fact, RelatedMemory

CASES = Path(__file__).parent / "cases"
sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.mark.parametrize("name", ["tuned", "held_out", "everyday"])
def test_the_shares(name: str) -> None:
    """The rules were made with ``tuned`` at hand; ``held_out`` was never looked at.

    ``everyday`` has cases that went wrong before they were mended, and some that hold a rule.
    """
    from bench.truth import measure

    truth = measure(json.loads((CASES / f"{name}.json").read_text(encoding="utf-8")))
    assert truth.overwritten.cases == []
    assert truth.dropped.share <= 0.02, truth.dropped.cases
    assert truth.unseen.share <= 0.15, truth.unseen.cases
    assert truth.stored.share <= 0.20, truth.stored.cases
    assert truth.needless.share <= 0.10, truth.needless.cases


def begun_in_lower_case(text: str) -> str:
    return re.sub(r"\bI\b", "i", text[:1].lower() + text[1:])


def without_apostrophes(text: str) -> str:
    return re.sub("['\u2019]", "", text)


def with_short_verbs(text: str) -> str:
    return re.sub(r"\b((?:[Tt]he|[Mm]y|[Oo]ur) \w+|[A-Z]\w+) is\b", r"\1's", text)


@pytest.mark.parametrize("typed", [begun_in_lower_case, without_apostrophes, with_short_verbs])
@pytest.mark.parametrize("name", ["tuned", "held_out", "everyday"])
def test_the_shares_however_it_is_typed(name: str, typed: Callable[[str], str]) -> None:
    from bench.truth import measure

    cases = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    pairs = [
        {**pair, "there": typed(pair["there"]), "said": typed(pair["said"])}
        for pair in cases["pairs"]
    ]
    truth = measure({"keep": [], "noise": [], "pairs": pairs})
    assert truth.overwritten.cases == []
    assert truth.unseen.share <= 0.06, truth.unseen.cases
    assert truth.needless.share <= 0.08, truth.needless.cases


PLACES = ["Oslo", "Lima", "Porto", "New York", "Graz"]
FIRMS = ["Acme", "Philips", "Bosch", "Miele & Co", "Initech"]
NUMBERS = ["18", "31", "44", "57", "90"]
DATES = ["May 4", "June 12", "2026-03-01", "Monday", "the 14th"]
TIMES = ["9:30", "3pm", "11:00", "noon", "7 am"]
NAMES = ["Rex", "Luna", "Ada", "Tom", "Momo"]
ADJECTIVES = ["tight", "angry", "great", "new to me", "in the way"]
SLOTS: dict[str, tuple[list[str], list[str]]] = {
    "home": (["I live in {}.", "I'm based in {} now.", "I moved to {}.", "My home is {}."], PLACES),
    "employer": (["I work at {}.", "I'm working for {} now.", "I joined {}."], FIRMS),
    "age": (["I'm {} years old.", "I turned {}.", "My age is {}."], NUMBERS),
    "birthday": (["My birthday is {}.", "No, my birthday is on {}."], DATES[:3]),
    "weight": (["I weigh {} kg.", "I weigh {} kg now."], NUMBERS),
    "meeting": (["The meeting is at {}.", "The meeting is now at {}."], TIMES),
    "standup": (["Standup is at {}.", "Standup moved to {}."], TIMES),
    "deadline": (["The deadline is {}.", "The new deadline is {}."], DATES),
    "tax deadline": (["The deadline for the taxes is {}."], DATES),
    "budget": (["My budget is {} euros.", "My budget is now {} euros."], NUMBERS),
    "food budget": (["My food budget is {} euros.", "My food budget is now {} euros."], NUMBERS),
    "dog": (["My dog's name is {}.", "My dog is called {}."], NAMES),
    "cat": (["My cat's name is {}.", "My cat is called {}."], NAMES),
    "sister": (["My sister lives in {}.", "My sister moved to {}."], PLACES),
    "Ann": (["Ann lives in {}.", "Ann moved to {}."], PLACES),
    "port": (["The API runs on port 80{}.", "The API runs on port 80{} now."], NUMBERS),
    "mood of the budget": (["My budget is {}.", "My budget is {} now."], ADJECTIVES),
    "trait of the dog": (["My dog is {}.", "My dog's name is {}."], ADJECTIVES),
    "taste": (["I like {}.", "I don't like {}."], ["tea", "jazz", "Oslo", "May", "sushi"]),
}


def test_a_thousand_pairs_never_touch_another_slot() -> None:
    made = random.Random(17)
    for _ in range(1_000):
        slot, other = made.choice(list(SLOTS)), made.choice(list(SLOTS))
        texts, values = SLOTS[slot]
        text = made.choice(texts).format(made.choice(values))
        texts, values = SLOTS[other]
        existing = made.choice(texts).format(made.choice(values))
        plan = decide_by_rules([Fact(text)], [[RelatedMemory("m", existing)]])
        gone = [
            operation
            for place, operation in enumerate(plan.operations)
            if operation.event in ("UPDATE", "DELETE") and place not in plan.in_question
        ]
        assert slot == other or not gone, (existing, text)
        assert plan.covers, (existing, text)


def test_what_is_asked_about_names_both(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        old = memory.add("I live in Oslo.", user_id="u").data[0].id
        answer = memory.add("I moved to Bergen.", user_id="u")
        (review,) = memory.reviews()
        assert (review.memory_id, review.replaced_by) == (old, answer.data[0].id)
        assert answer.metadata.reviews == [review.review_id]
        memory.approve(review.review_id)
        assert [left.content for left in memory.list_recent()] == ["I moved to Bergen."]


def test_among_many_memories_the_one_that_is_corrected_is_seen(root: Path) -> None:
    """No word of "I moved to Bergen." is in "I live in Oslo.", and thirty others are newer."""
    with AgentMemory("bob", root=root, embedder=None) as memory:
        old = memory.add("I live in Oslo.", user_id="u").data[0].id
        memory.store_many(
            [{"content": f"Book {n} moved to shelf {n}.", "user_id": "u"} for n in range(40)]
        )
        memory.add("I moved to Bergen.", user_id="u")
        assert [review.memory_id for review in memory.reviews()] == [old]


def test_a_standing_instruction_is_a_preference_of_its_own(root: Path) -> None:
    said = (
        "Use tabs instead of spaces here. Always sign the tags. Push often. The office is in Graz."
        " Fix it."
    )
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add(said, user_id="u")
        assert {left.content: left.category for left in memory.list_recent()} == {
            "Use tabs instead of spaces here.": "preference",
            "Always sign the tags.": "preference",
            "Push often.": "preference",
            "The office is in Graz.": "note",
        }


def test_the_newer_stands_first_where_it_is_only_asked_about(root: Path) -> None:
    """The newer text has no word of the question."""
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("I live in Oslo.", user_id="u")
        memory.store("I live for my garden.", user_id="u")
        memory.add("I moved to Bergen.", user_id="u")
        (review,) = memory.reviews()
        hits = [hit.memory.content for hit in memory.search("Where do I live? Oslo?")]
        assert hits.index("I moved to Bergen.") == hits.index("I live in Oslo.") - 1
        others = memory.search("live Oslo", until="2001-01-01")
        assert len(others) == 0
        memory.dismiss(review.review_id)
        assert "I moved to Bergen." not in [
            hit.memory.content for hit in memory.search("Where do I live? Oslo?", limit=1)
        ]


def test_of_what_was_switched_from_only_the_nearest_is_asked_about(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        for tool in ("I use Vim.", "I use Docker.", "I drive a Honda."):
            memory.add(tool, user_id="u")
        memory.add("I switched to Emacs.", user_id="u")
        (review,) = memory.reviews()
        assert review.content in ("I use Vim.", "I use Docker.")
        assert memory.count() == 4


def test_a_request_to_remember_what_is_known_adds_nothing(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("I'm allergic to peanuts.", user_id="u")
        memory.add("Remember I'm allergic to peanuts!", user_id="u")
        memory.add("Don't forget we eat at six.", user_id="u")
        contents = {left.content for left in memory.list_recent()}
        assert contents == {"I'm allergic to peanuts.", "We eat at six."}


def test_one_conversation_is_asked_about_as_two_are(root: Path) -> None:
    said = ["I live in Oslo.", "I like tea!", "I like tea.", "I moved to Bergen.", "I hate fish."]
    with AgentMemory("bob", root=root, embedder=None) as memory:
        answer = memory.add([{"role": "user", "content": text} for text in said], user_id="u")
        added = {it.memory: it.id for it in answer.data}
        (review,) = memory.reviews()
        assert review.memory_id == added["I live in Oslo."]
        assert review.replaced_by == added["I moved to Bergen."]
        assert answer.metadata.reviews == [review.review_id]
        assert answer.metadata.problems is None
        memory.undo()
        assert (memory.count(), memory.reviews()) == (0, [])


def test_of_what_was_told_before_in_one_conversation_it_is_asked_whether_it_holds(
    root: Path,
) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("The deadline is Monday.", user_id="u")
        memory.add(
            [
                {"role": "user", "content": "The deadline is now Friday."},
                {"role": "user", "content": "No, the deadline is Sunday."},
            ],
            user_id="u",
        )
        (review,) = memory.reviews()
        assert review.content == "The deadline is now Friday."
        contents = {left.content for left in memory.list_recent()}
        assert contents == {"The deadline is now Friday.", "No, the deadline is Sunday."}


def test_a_day_in_may_is_not_supposed(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("My birthday is May 5. I like cake.", user_id="u")
        memory.add("No, my birthday is May 6.", user_id="u")
        contents = {left.content for left in memory.list_recent()}
        assert contents == {"No, my birthday is May 6.", "I like cake."}
        assert memory.reviews() == []


ONE_EACH = {
    "age": ("34", "36"),
    "postcode": ("1010", "1020"),
    "favourite colour": ("blue", "green"),
}
FIXED = {"birthday": ("May 5", "June 6"), "height": ("180 cm", "175 cm")}


def after(root: Path, slot: str, values: tuple[str, str], turns: str) -> tuple[bool, bool]:
    """Return whether a value is still known after another was added, and whether one is asked."""
    old, new = values
    contents = [turn.format(f"My {slot} is {new}.") for turn in turns.split("|")]
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add(f"My {slot} is {old}.", user_id="u")
        roles = ("user", "assistant")
        memory.add(
            [{"role": roles[n % 2], "content": text} for n, text in enumerate(contents)],
            user_id="u",
        )
        texts = {left.content for left in memory.list_recent()}
        return f"My {slot} is {old}." in texts, bool(memory.reviews())


@pytest.mark.parametrize("slot", [*ONE_EACH, *FIXED])
@pytest.mark.parametrize(
    "turns",
    [
        "Let's role-play. You are my doctor.|Hello, tell me of yourself.|{}",
        "Pretend to be me and answer in my name.|Ok|{}",
        "Let's play two truths and a lie.|Go!|{} I have a twin. I own a boat.",
        "Hi team,\n{}\nRon",
        "What does this mean in German?\n{}",
        "Bob texted me. {} Can you come?",
        "Say these sentences in French. {} I live in Ohio.",
        "I'll tell you a lie now.\n{}",
        "{} Just kidding.",
        "{}|Noted.|That was a test.",
    ],
)
def test_a_value_beside_what_may_make_it_untrue_is_asked_about(
    root: Path, slot: str, turns: str
) -> None:
    assert after(root, slot, {**ONE_EACH, **FIXED}[slot], turns) == (True, True)


@pytest.mark.parametrize("slot", ONE_EACH)
@pytest.mark.parametrize(
    "turns",
    ["{}", "Hi! {} Thanks!", "{}|Noted.", "I live in Rome. {}", "Hello|Hi, how are you?|{}"],
)
def test_a_value_of_which_there_is_one_is_news_beside_other_values(
    root: Path, slot: str, turns: str
) -> None:
    assert after(root, slot, ONE_EACH[slot], turns) == (False, False)


def added(root: Path, known: str, turns: str) -> tuple[list[str], int]:
    """Return the memories and the number of reviews after a fact and after a conversation."""
    messages = [
        {"role": "user" if turn[0] == "u" else "assistant", "content": turn[3:]}
        for turn in turns.split("|")
    ]
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add(known, user_id="u")
        memory.add(messages, user_id="u")
        return sorted(left.content for left in memory.list_recent()), len(memory.reviews())


@pytest.mark.parametrize(
    ("known", "turns"),
    [
        ("I am 34.", "a: How old are you?|u: 35"),
        ("I am 34.", "u: Hi|a: Hello! How old are you?|u: 35."),
        ("I am 34.", "a: Hello, how old are you?|u: 35. Thanks!"),
        ("My salary is 80k.", "a: What is your salary?|u: 85k"),
        ("My favourite colour is blue.", "a: What is your favourite colour?|u: Green"),
        ("My zip code is 1010.", "a: How old are you?|u: 35|a: What is your zip code?|u: 1020"),
    ],
)
def test_a_value_that_was_asked_for_is_news(root: Path, known: str, turns: str) -> None:
    contents, reviews = added(root, known, turns)
    assert (known in contents, reviews) == (False, 0)


@pytest.mark.parametrize(
    ("known", "turns"),
    [
        ("I am 34.", "u: You are my doctor.|a: How old are you?|u: 44"),
        ("I am 34.", "u: Pretend to be me.|a: How old are you?|u: 44"),
        ("I am 34.", "u: Fill in this form for my dad.|a: How old are you?|u: 70"),
        ("I am 34.", "a: How old are you?|u: 44|a: Noted.|u: That was a test."),
        ("I am 34.", "a: How old are you?|u: 44. Just kidding."),
        ("I am 34.", "a: I play your doctor. How old are you?|u: 44"),
        ("I am 34.", "a: In this game, how old are you?|u: 44"),
        ("My birthday is May 5.", "a: When is your birthday?|u: June 6"),
        ("My name is Ann.", "a: What is your name?|u: Tom"),
        ("My favourite colour is blue.", "a: What is your favourite colour?|u: Not blue."),
        ("My zip code is 1010.", "a: Any allergies?|u: Nuts.|a: What is your zip code?|u: 1020"),
    ],
)
def test_what_may_be_no_value_of_oneself_is_asked_about(root: Path, known: str, turns: str) -> None:
    contents, reviews = added(root, known, turns)
    assert (known in contents, reviews) == (True, 1)


@pytest.mark.parametrize(
    ("known", "turns"),
    [
        ("My favourite colour is blue.", "a: What is your favourite colour?|u: Just kidding."),
        ("My favourite colour is blue.", "a: What is your cat's favourite colour?|u: Green"),
        ("I am 34.", "a: How old is your character?|u: 44"),
        ("I am 34.", "a: How old are you?|u: 44, in the story."),
        ("My birthday is May 5.", "u: You are my doctor.|a: Hi|u: My birthday is May 5, 1990."),
    ],
)
def test_what_contradicts_nothing_is_kept_beside(root: Path, known: str, turns: str) -> None:
    contents, reviews = added(root, known, turns)
    assert (known in contents, len(contents), reviews) == (True, 2, 0)

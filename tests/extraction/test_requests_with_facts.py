"""What looks like a request or small talk is kept if it states a fact, and left out if not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.models.conversation import Message

FOLDER = Path(__file__).parent / "cases"
CASES = json.loads((FOLDER / "requests.json").read_text(encoding="utf-8"))
REPORTS = json.loads((FOLDER / "reports.json").read_text(encoding="utf-8"))
ANSWERS = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))


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


@pytest.mark.parametrize(("question", "answer", "fact"), ANSWERS["joined"])
def test_a_short_answer_keeps_its_question(question: str, answer: str, fact: str) -> None:
    assert kept("Hi!", question, answer, "ok") == [fact]


@pytest.mark.parametrize(("question", "answer"), ANSWERS["empty"])
def test_an_answer_that_only_directs_the_assistant_is_not_kept(question: str, answer: str) -> None:
    assert kept("Hi!", question, answer, "ok") == []


def test_an_answer_is_to_the_message_just_before() -> None:
    assert kept("Hi!", "Do you smoke?", "Let me think.", "ok", "No.") == []
    assert kept("Hi!", "Do you smoke?", "Hello again.", "Go on.", "No.") == []


def test_an_answer_is_found_by_the_words_of_its_question(root: Path) -> None:
    said = [
        {"role": "assistant", "content": "What's your budget?"},
        {"role": "user", "content": "Up to 120 euros."},
    ]
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add(said, user_id="u")
        memory.add("I like tea.", user_id="u")
        (hit,) = memory.search("budget")
        assert hit.memory.content == "What's your budget? Up to 120 euros."
        assert memory.add(said, user_id="u").data == []


@pytest.mark.parametrize("answer", ["No.", "Not really."])
def test_what_is_only_asked_relates_nobody_and_overwrites_nothing(root: Path, answer: str) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("I live in Bergen.", user_id="u")
        memory.add(
            [
                {"role": "assistant", "content": "Do you live in Oslo?"},
                {"role": "user", "content": answer},
            ],
            user_id="u",
            graph=True,
        )
        contents = {each.content for each in memory.list_recent()}
        assert contents == {"I live in Bergen.", f"Do you live in Oslo? {answer}"}
        assert memory.graph.relationships() == []


@pytest.mark.parametrize(("text", "fact"), REPORTS["kept"])
def test_what_an_assistant_did_is_kept_with_its_result(text: str, fact: str) -> None:
    assert kept("Please do it.", text) == [fact]


@pytest.mark.parametrize("text", REPORTS["empty"])
def test_what_an_assistant_explains_or_proposes_is_not(text: str) -> None:
    assert kept("Please do it.", text) == []

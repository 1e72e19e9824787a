"""Questions about what people tell of themselves, in words that no memory has."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory import AgentMemory

FACTS = [
    "I moved to Bergen.",
    "I joined Acme as a welder.",
    "My wife is called Ines.",
    "My daughter plays the cello.",
    "We have a puppy named Bean.",
    "I turned 41 in March.",
    "I have been vegetarian since 2015.",
]
ASKED = {
    "Where do I live?": FACTS[0],
    "what is my address?": FACTS[0],
    "Where do I work?": FACTS[1],
    "Am I married?": FACTS[2],
    "Do I have kids?": FACTS[3],
    "What pets do I have?": FACTS[4],
    "How old am I?": FACTS[5],
    "Do I eat meat?": FACTS[6],
    "What can't I eat?": FACTS[6],
    "Am I vegan?": FACTS[6],
}


@pytest.fixture
def facts(tmp_path: Path) -> AgentMemory:
    memory = AgentMemory("bob", root=tmp_path, embedder="none")
    memory.store_many([{"content": text} for text in FACTS])
    return memory


@pytest.mark.parametrize("question", ASKED)
def test_it_is_found(facts: AgentMemory, question: str) -> None:
    with facts:
        assert [hit.memory.content for hit in facts.search(question)][:1] == [ASKED[question]]


def test_the_word_itself_is_enough(facts: AgentMemory) -> None:
    with facts:
        facts.store("My sister and I live in Turku.")
        found = [hit.memory.content for hit in facts.search("Where do I live?")]
        assert found == ["My sister and I live in Turku."]


@pytest.mark.parametrize(
    "question",
    [
        "Where does my passport expire?",
        "Who is my dentist?",
        "Which meat is in the freezer?",
        "What did we eat in Rome?",
    ],
)
def test_another_question_finds_nothing(facts: AgentMemory, question: str) -> None:
    with facts:
        assert not facts.search(question)

"""Words that say how is asked, and not what for: they count less for whether there is an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.models.search import SearchResults

pytestmark = pytest.mark.file_only("its stores are files")

NOTES = [
    "We decided to take the early train and started to pack the day before",
    "Mia feels at home in the new office and likes the quiet kind of work",
    "The invoices of last month were sent after the audit",
    "Someone found the spare key under the mat",
    "The printer on the second floor needs toner",
    "New York has the largest of our warehouses",
]
GERMAN = [
    "Das Kind der Nachbarn ist in der Schule und nicht zu Hause",
    "Der Drucker im zweiten Stock ist defekt und wird am Montag geholt",
    "Die Rechnung für den Server ist bezahlt",
]


def search(folder: Path, texts: list[str], question: str, others: int = 150) -> SearchResults:
    with AgentMemory("bob", root=folder) as memory:
        memory.store_many(
            [
                {"content": f"Ticket {number} is closed and was about module {number % 7}"}
                for number in range(others)
            ]
        )
        memory.store_many([{"content": text} for text in texts])
        return memory.search(question, 5)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("what kind of toner does the printer take?", NOTES[4]),
        ("who found the spare key?", NOTES[3]),
        ("when did we decide to take the train?", NOTES[0]),
        ("what happened after the audit?", NOTES[2]),
        ("what did we decide?", NOTES[0]),
        ("how many warehouses are in New York?", NOTES[5]),
    ],
)
def test_a_question_with_them_finds_its_answer(tmp_path: Path, question: str, text: str) -> None:
    assert search(tmp_path, NOTES, question)[0].memory.content == text


@pytest.mark.parametrize(
    "question",
    ["how often do we deploy?", "which day do we deploy on?", "how much time does a deploy need?"],
)
def test_they_do_not_outweigh_a_word_that_every_memory_has(tmp_path: Path, question: str) -> None:
    """Of five notes on deploys, in which the word is common, none was an answer."""
    deploys = [
        "We deploy on Fridays",
        "A deploy takes nine minutes",
        "Deploys are approved by Priya and by Tom",
        "The script of a deploy is in the folder ops",
        "Ask in the channel before a deploy to production",
    ]
    assert search(tmp_path, deploys, question, others=0)
    assert not search(tmp_path / "b", deploys, "how often do we deploy to Frankfurt?", others=0)


@pytest.mark.parametrize(
    "question",
    [
        "what kind of guitar did I start with?",
        "how many times did I take the ferry after my surgery?",
        "why does my sister like a new recipe for bread?",
    ],
)
def test_they_alone_are_no_answer(tmp_path: Path, question: str) -> None:
    results = search(tmp_path, NOTES, question)
    assert not list(results)
    assert results.search_metadata.reason == "below_floor"


def test_in_another_language_they_are_words_as_others(tmp_path: Path) -> None:
    """A child, in German."""
    found = search(tmp_path, GERMAN, "wo ist das Kind zur Zeit?", others=0)
    assert found[0].memory.content == GERMAN[0]


class Distant:
    """Named as MiniLM, whose doubt was measured: a question is far from all memories."""

    model = "all-MiniLM-L6-v2"
    dimensions = 384

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [_axis(len(text) % 300) for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        return [_axis(383) for _ in texts]


def _axis(place: int) -> list[float]:
    return [float(other == place) for other in range(384)]


def test_a_far_meaning_casts_doubt_on_a_sentence_and_not_on_keywords(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path, embedder=Distant()) as memory:
        memory.store_many([{"content": f"Ticket {number} is closed"} for number in range(150)])
        memory.store_many([{"content": text} for text in NOTES])
        keywords, sentence = "toner volcano", "is there a toner for the volcano?"
        for query in (keywords, sentence):
            assert memory.search(query, 1)
        memory.migrate()
        assert memory.search(keywords, 1)[0].memory.content == NOTES[4]
        assert not memory.search(sentence, 1)

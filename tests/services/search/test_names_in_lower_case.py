"""Names in a query without capitals: the store tells which words they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.services.search import vocabulary

NOTES = [
    "My best friend Olu lives in Accra.",
    "Yesterday Olu started to work as a pilot.",
    "I gave Olu a book about gardens.",
    "On Sundays Olu plays chess with us.",
    "Deploys happen on Tuesdays.",
    "Deploys need two approvals.",
    "Deploys are announced in the channel.",
    "The kitchen tap drips.",
]


@pytest.fixture
def notes(tmp_path: Path) -> AgentMemory:
    memory = AgentMemory("bob", root=tmp_path, embedder="none")
    memory.store_many([{"content": text} for text in NOTES])
    return memory


def contents(memory: AgentMemory, query: str) -> list[str]:
    return [hit.memory.content for hit in memory.search(query)]


def test_a_name_is_found_in_lower_case(notes: AgentMemory) -> None:
    with notes:
        assert contents(notes, "where does olu live?")[0] == NOTES[0]
        assert contents(notes, "where does olu live?") == contents(notes, "where does Olu live?")


def test_a_name_of_the_store_must_be_met(notes: AgentMemory) -> None:
    with notes:
        assert contents(notes, "does olu like jazz or opera or musicals?")
        assert not contents(notes, "does mara like jazz or opera or musicals?")


def test_a_word_that_only_begins_sentences_is_no_name(notes: AgentMemory) -> None:
    question = "do deploys like jazz or opera or musicals?"
    with notes:
        assert not contents(notes, question)
        notes.store("We watch the Deploys closely.")
        assert contents(notes, question)
        notes.store("All deploys are logged.")
        assert not contents(notes, question)


def test_a_name_counts_less_than_where_it_is_capitalized(notes: AgentMemory) -> None:
    of_two = "does {} like jazz or opera or musicals or ballet or circus or films?"
    with notes:
        assert contents(notes, of_two.format("Olu"))
        assert not contents(notes, of_two.format("olu"))


def test_a_word_in_very_many_memories_is_no_name(
    notes: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "does olu like jazz or opera or musicals?"
    with notes:
        assert contents(notes, question)
        monkeypatch.setattr(vocabulary, "MOST_WITH_NAME", 3)  # for 5,000
        assert not contents(notes, question)

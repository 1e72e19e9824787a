"""Relationships by rules: what is said plainly is read, and nothing else is."""

from __future__ import annotations

import time

import pytest

from agent_memory import AgentMemory
from agent_memory.extraction.rules.graph import graph_updates_by_rules
from agent_memory.models.graph import GraphUpdates


def read(text: str) -> list[str]:
    """Return what is read from a text, a line each."""
    updates = graph_updates_by_rules(text)
    return [f"{it.action.value} {it.source} {it.relationship} {it.target}" for it in updates]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("User prefers Italian cuisine", ["ADD USER_ID prefers Italian cuisine"]),
        ("I especially like pasta dishes", ["ADD USER_ID likes pasta dishes"]),
        ("I love pasta and pizza!", ["ADD USER_ID loves pasta", "ADD USER_ID loves pizza"]),
        ("Sam loves hiking, running and cycling",
         ["ADD Sam loves hiking", "ADD Sam loves running", "ADD Sam loves cycling"]),
        ("I love fish and chips", ["ADD USER_ID loves fish and chips"]),
        ("I prefer PostgreSQL for new projects", ["ADD USER_ID prefers PostgreSQL"]),
        ("User is planning a trip to Italy in July 2024", ["ADD USER_ID plans_trip_to Italy"]),
        ("User works as a software engineer", ["ADD USER_ID works_as software engineer"]),
        ("I work for the United Nations", ["ADD USER_ID works_at United Nations"]),
        ("Alice: I moved to New York last month.", ["ADD Alice lives_in New York"]),
        ("I\u2019m now allergic to wheat", ["ADD USER_ID is_allergic_to wheat"]),
        ("Anna Smith is married to Jane Doe", ["ADD Anna Smith is_married_to Jane Doe"]),
        ("I have a dog called Rex. My name is Carol!",
         ["ADD USER_ID has_dog Rex", "ADD USER_ID is_named Carol"]),
        ("Bob has an older sister named Anna", ["ADD Bob has_sister Anna"]),
        ("My brother's name is Tom", ["ADD USER_ID has_brother Tom"]),
        ("I no longer live in Paris", ["DELETE USER_ID lives_in Paris"]),
        ("Bob no longer works at Acme", ["DELETE Bob works_at Acme"]),
        ("I don't like tea anymore", ["DELETE USER_ID likes tea"]),
        ("I am no longer allergic to nuts", ["DELETE USER_ID is_allergic_to nuts"]),
        ("Bob quit his job at Acme", ["DELETE Bob works_at Acme"]),
        ("No, I live in Bergen.", ["ADD USER_ID lives_in Bergen"]),
        ("No wait, I live in Bergen, not Oslo.", ["ADD USER_ID lives_in Bergen"]),
        ("I speak French and German.", ["ADD USER_ID speaks French", "ADD USER_ID speaks German"]),
        ("Ann speaks Swiss German, Thai, and Lao fluently",
         ["ADD Ann speaks Swiss German", "ADD Ann speaks Thai", "ADD Ann speaks Lao"]),
        ("I speak English and Ann speaks Dutch", ["ADD USER_ID speaks English"]),
        ("I no longer speak German", ["DELETE USER_ID speaks German"]),
        ("I don't speak German anymore", ["DELETE USER_ID speaks German"]),
        ("My other son is called Max.", ["ADD USER_ID has_son Max"]),
        ("My wife Clara works at Acme", ["ADD USER_ID has_wife Clara"]),
        ("I took my son Theo to school, and met my brother Tom.",
         ["ADD USER_ID has_son Theo", "ADD USER_ID has_brother Tom"]),
        ("Priya owns the deployment.", ["ADD Priya owns deployment"]),
        ("I own a canoe and a kayak", ["ADD USER_ID owns canoe"]),
        ("Priya no longer owns the deployment", ["DELETE Priya owns deployment"]),
        ("I live in Oslo and I work at Acme", ["ADD USER_ID lives_in Oslo"]),
    ],
)  # fmt: skip
def test_what_is_said_plainly_is_read(text: str, wanted: list[str]) -> None:
    assert read(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "I don't like tea", "I live in Oslo, not any more", "Do you like tea?",
        "If I lived in Rome I would like it",
        "I might like tea", "I think Bob lives in Rome", "I used to live in Oslo",
        "She likes tea", "They live in Rome", "Everyone loves Raymond", "The team likes Python",
        "I like it", "I like to swim", "I love how you did that", "I love your dress",
        "I love the color and texture", "Sounds like fun", "It's like therapy for me",
        "Unconditional love is important", "I enjoy spending time with friends",
        "I love stories that tackle hard issues", "He said he likes tea", "I wish I lived in Rome",
        "I moved to the sofa", "I like I", "Translate: I live in Madrid.", "Quote: I live in Rome",
        "My brother said: I live in Bergen.", "my notes: I live in Oslo", "I own up to it",
        "I taught my son French", "I saw my brother Monday", "My ex wife is called Ann",
        "My friend likes tea", "Assistant: I like tea",
        "", "???", "I like " + "very " * 100 + "long things",
    ],
)  # fmt: skip
def test_nothing_is_read_where_it_is_not_sure(text: str) -> None:
    assert read(text) == []


def test_the_speaker_is_who_says_i() -> None:
    assert read("Bob: I like tea") == ["ADD Bob likes tea"]
    assert read("User: I like tea") == ["ADD USER_ID likes tea"]
    assert read("Bob: The user likes tea") == ["ADD USER_ID likes tea"]
    assert read("bob_7: I like tea") == []
    named = graph_updates_by_rules("bob_7: I like tea", speakers=["bob_7"])
    assert [update.source for update in named] == ["bob_7"]


def test_the_name_of_a_message_is_a_speaker(memory: AgentMemory) -> None:
    memory.add([{"role": "user", "name": "bob_7", "content": "I like tea"}], graph=True)
    assert [edge.source for edge in memory.graph.relationships()] == ["bob_7"]


def test_each_thing_is_told_once() -> None:
    assert read("I like tea. I like Tea.") == ["ADD USER_ID likes tea"]


def test_another_taste_for_the_same_thing_takes_the_place_of_the_first(
    memory: AgentMemory,
) -> None:
    graph = memory.graph
    for text in ("I like pasta", "I love pasta", "I'm allergic to pasta"):
        known = graph.relationships()
        graph.apply(GraphUpdates(updates=graph_updates_by_rules(text, edges=known)))
    assert [it.relationship for it in graph.relationships()] == ["is_allergic_to"]
    assert [it.relationship for it in graph.relationships(include_closed=True)] == [
        "likes", "loves", "is_allergic_to",
    ]  # fmt: skip
    graph.add("I", "loves", "tea")
    gone = graph_updates_by_rules("I don't like tea any more", edges=graph.relationships())
    assert graph.apply(GraphUpdates(updates=gone)).refused == []


@pytest.mark.parametrize("piece", ["I like ", "A" * 30 + " ", "and ", "Aa ", "I no longer like "])
def test_no_text_takes_long(piece: str) -> None:
    began = time.process_time()
    read(piece * 20_000)
    read(piece * (280 // len(piece)))
    assert time.process_time() - began < 5  # a pattern that goes wrong takes minutes

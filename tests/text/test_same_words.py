"""Words that are written in two ways."""

from __future__ import annotations

import pytest

from agent_memory.text.same_words import same_words


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("repo", "repository"),
        ("repositories", "repo"),
        ("apps", "application"),
        ("k8s", "kubernetes"),
        ("postgresql", "postgres"),
        ("postgres", "postgresql"),
        ("colour", "color"),
        ("judgement", "judgment"),
        ("tyres", "tire"),
        ("neighbors", "neighbours"),
        ("organised", "organized"),
        ("realization", "realisation"),
        ("analyze", "analyse"),
        ("centre", "center"),
        ("travelled", "traveled"),
        ("modeling", "modelling"),
        ("catalogue", "catalog"),
        ("license", "licence"),
        ("weight", "weigh"),
        ("weighs", "weight"),
        ("long", "length"),
    ],
)
def test_a_word_is_written_in_two_ways(word: str, other: str) -> None:
    assert other in same_words(word)


@pytest.mark.parametrize("word", ["four", "filled", "hotel", "run", "document2", "größe", "日本"])
def test_most_words_are_written_in_one(word: str) -> None:
    assert same_words(word) == set()


def test_what_is_short_for_either_does_not_make_them_the_same() -> None:
    assert "documentation" not in same_words("document")

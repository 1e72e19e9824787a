"""Prefixes: what a model wants before a question and before a passage, and what its vectors are."""

from __future__ import annotations

import pytest

from agent_memory.embeddings.prefixes import prefixes_of


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("e5-small-v2", "query: ", "passage: "),
        ("nomic-ai/nomic-embed-text-v1.5-Q", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching", ""),
        ("snowflake/snowflake-arctic-embed-s", "Represent this sentence for searching", ""),
        ("Snowflake/snowflake-arctic-embed-m-v2.0", "query: ", ""),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: Given", ""),
        ("all-MiniLM-L6-v2", "", ""),
        ("BAAI/bge-m3", "", ""),
        ("thenlper/gte-large", "", ""),
        ("some5-small", "", ""),
    ],
)
def test_a_model_has_the_prefixes_that_its_card_asks_for(
    model: str, query: str, passage: str
) -> None:
    prefixes = prefixes_of(model)
    assert prefixes.query.startswith(query)
    assert bool(prefixes.query) == bool(query)
    assert prefixes.passage == passage


def test_the_name_of_vectors_tells_whether_passages_had_a_prefix() -> None:
    marked = [prefixes_of(name).mark(name) for name in ("e5-small", "nomic-embed-text-v1", "gte")]
    assert marked == ["e5-small+passage", "nomic-embed-text-v1+search_document", "gte"]
    # A prefix of questions alone leaves what is stored as it was.
    assert prefixes_of("bge-base-en").mark("bge-base-en") == "bge-base-en"

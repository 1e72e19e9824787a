"""The prefixes by which models tell queries from stored texts."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Prefixes(NamedTuple):
    """The prefixes of a query and of a stored text with which a model was trained."""

    query: str = ""
    passage: str = ""

    def mark(self, model: str) -> str:
        """Return the model name for vectors, which says whether passages had a prefix.

        Vectors made without it have another name, and the two are never compared.
        """
        prefix = self.passage.strip(": ")
        return f"{model}+{prefix}" if prefix else model


E5: Final = Prefixes("query: ", "passage: ")
_FOR_SEARCHING: Final = "Represent this sentence for searching relevant passages: "
_KNOWN: Final = (
    (
        re.compile(r"\be5-.*instruct"),
        Prefixes(
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
            "Query: "
        ),
    ),
    (re.compile(r"\be5-(small|base|large)"), E5),
    (re.compile(r"\bbge-(small|base|large)-en"), Prefixes(_FOR_SEARCHING)),
    (
        re.compile(r"\bbge-(small|base|large)-zh"),
        Prefixes("为这个句子生成表示以用于检索相关文章："),  # noqa: RUF001 - as it was trained
    ),
    (re.compile(r"\bnomic-embed-text"), Prefixes("search_query: ", "search_document: ")),
    (re.compile(r"\bsnowflake-arctic-embed-.*v2"), Prefixes("query: ")),
    (re.compile(r"\bsnowflake-arctic-embed"), Prefixes(_FOR_SEARCHING)),
    (re.compile(r"\bmxbai-embed-large"), Prefixes(_FOR_SEARCHING)),
)
"""Prefixes by model name, from the model cards; the first match counts."""


def prefixes_of(model: str) -> Prefixes:
    """Return the prefixes for a model, by its name; empty ones if none are known."""
    name = model.lower()
    return next((prefixes for pattern, prefixes in _KNOWN if pattern.search(name)), Prefixes())

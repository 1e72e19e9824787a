"""What models want before a text, to tell what is asked from what is stored."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Prefixes(NamedTuple):
    """What a model was trained to read before a question, and before a text that is stored."""

    query: str = ""
    passage: str = ""

    def mark(self, model: str) -> str:
        """Return the name of a model's vectors: it tells whether passages had a prefix.

        Vectors that were made without it are of another name, and the two are never compared.
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
"""By the names of the models, as their cards say; the first that fits."""


def prefixes_of(model: str) -> Prefixes:
    """Return what a model wants before texts, by its name; nothing where none is known to."""
    name = model.lower()
    return next((prefixes for pattern, prefixes in _KNOWN if pattern.search(name)), Prefixes())

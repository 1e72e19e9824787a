"""Splits text into words as the keyword index does: with SQLite's tokenizer, in every engine."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final, Protocol, cast

import apsw

from agent_memory.storage.in_memory.connection import InMemoryConnection

_TOKENIZER: Final = (
    "porter",
    ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"],
)


class Tokenizer(Protocol):
    """Splits texts into words."""

    def words(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text: each as the keyword index holds it, and as it is written."""

    def tokenize(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text as the keyword index holds them."""


class StandaloneTokenizer:
    """The tokenizer of an engine that is not SQLite. Threads may share it."""

    def __init__(self) -> None:
        self._connection = InMemoryConnection()

    def words(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text: each as the keyword index holds it, and as it is written."""
        with self._connection.alone() as connection:
            return words(connection, text)

    def tokenize(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text as the keyword index holds them."""
        with self._connection.alone() as connection:
            return tokenize(connection, texts)


def words(connection: apsw.Connection, text: str) -> list[tuple[str, str]]:
    """Return the words of a text: each as the keyword index holds it, and as it is written."""
    encoded = text.encode()
    tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
    flags = apsw.FTS5_TOKENIZE_DOCUMENT
    places = cast(
        "list[tuple[int, int, str]]",
        tokenizer(encoded, flags, None, include_colocated=False),
    )
    return [(word, encoded[start:end].decode()) for start, end, word in places]


def tokenize(connection: apsw.Connection, texts: Iterable[str]) -> list[list[str]]:
    """Return the words of each text as the keyword index holds them."""
    tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
    split = functools.partial(
        tokenizer,
        flags=apsw.FTS5_TOKENIZE_DOCUMENT,
        locale=None,
        include_offsets=False,
        include_colocated=False,
    )
    return [cast("list[str]", split(text.encode())) for text in texts]

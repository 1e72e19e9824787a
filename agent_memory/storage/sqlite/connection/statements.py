"""Statements on a database, named by what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import apsw

from agent_memory.storage.records import Row
from agent_memory.storage.sqlite.connection import tokenizer
from agent_memory.storage.sqlite.connection.introspection import damage


class Statements(ABC):
    """Statements on a database, each in a transaction of its own or in the one that is open."""

    @abstractmethod
    def _statement(self) -> AbstractContextManager[apsw.Connection]:
        """Give the body a connection to execute one statement on."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement and return how many rows it changed itself, without triggers."""
        with self._statement() as connection:
            connection.execute(sql, values)
            return connection.changes()

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of many value lists."""
        with self._statement() as connection:
            connection.executemany(sql, values)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows."""
        with self._statement() as connection:
            return list(connection.execute(sql, values))

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row, or ``None``."""
        with self._statement() as connection:
            for row in connection.execute(sql, values):
                return tuple(row)
        return None

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - any column
        """Return the first column of the first row, or ``None``."""
        row = self.row(sql, values)
        return row[0] if row else None

    def damage(self, *, most: int = 100) -> list[str]:
        """Return what SQLite's own check of the whole file finds wrong with it."""
        with self._statement() as connection:
            return damage(connection, "integrity_check", most=most)

    def words(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text: each as the keyword index holds it, and as it is written."""
        with self._statement() as connection:
            return tokenizer.words(connection, text)

    def tokenize(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text as the keyword index holds them."""
        with self._statement() as connection:
            return tokenizer.tokenize(connection, texts)

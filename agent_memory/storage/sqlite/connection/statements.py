"""Statements on a database, in methods named after what they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import apsw

from agent_memory.models.fields import to_json
from agent_memory.storage.in_memory import tokenizer
from agent_memory.storage.records import Row, Values
from agent_memory.storage.sql.snapshots import Snapshots
from agent_memory.storage.sqlite.connection.introspection import damage
from agent_memory.text.encoding import decode_text


class Statements(Snapshots, ABC):
    """Statements on a database, each in its own transaction or in the one that is open."""

    _generation = 0
    """Incremented whenever this becomes a connection to other content."""
    _counted = 0
    """Changes by this connection that did not invalidate what is cached of memories."""

    def stamp(self) -> Hashable | None:
        """Return a value that differs once any program may have changed a memory.

        Outside a read it is ``None``: what is seen there may yet be rolled back.
        """
        is_reading = self._of_snapshot.computed is not None
        return self.once("stamp", self._read_stamp) if is_reading else None

    def _read_stamp(self) -> Hashable:
        with self._statement() as connection:
            others = connection.pragma("data_version")
            return self._generation, others, connection.total_changes() - self._counted

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Run statements that leave the stamp unchanged, because they only update counters.

        They change no memory's text, time, session or state.
        """
        with self._statement() as connection:
            before = connection.total_changes()
            yield
            self._counted += connection.total_changes() - before

    @abstractmethod
    def _statement(self) -> AbstractContextManager[apsw.Connection]:
        """Give the body a connection to execute one statement on."""

    # Where the engines' SQL differs: ``storage.sql`` explains each.
    AMONG = "IN (SELECT value FROM json_each(?))"
    GREATEST = "max"
    LEAST = "min"
    LIST = "json_group_array"
    LIST_ITEMS = "json_each"
    PADDED = "printf('%020d', {})"
    AS_BYTES = "CAST({} AS BLOB)"
    SOURCE_NUMBER = "rowid"
    ROW_KEY = "seq"

    @staticmethod
    def listed(values: Iterable[Any]) -> str:
        """Return the values that ``AMONG`` stands for, as a single parameter."""
        return to_json(list(values))

    def savepoint(self) -> AbstractContextManager[None]:
        """Let an error in the body undo a statement in it, which SQLite does by itself."""
        return nullcontext()

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute a statement and return the number of rows changed directly, without triggers."""
        with self._statement() as connection:
            connection.execute(sql, values)
            return connection.changes()

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of many lists of values."""
        with self._statement() as connection:
            connection.executemany(sql, values)

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows.

        A text that is not UTF-8 does not prevent reading: ``decode_text`` decodes it.
        """
        with self._statement() as connection:
            try:
                return list(connection.execute(sql, values))
            except UnicodeDecodeError:
                return list(_decoded_rows(connection, sql, values))

    def row(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row, or ``None``."""
        with self._statement() as connection:
            try:
                row = next(connection.execute(sql, values), None)
            except UnicodeDecodeError:
                row = next(_decoded_rows(connection, sql, values))
            return None if row is None else tuple(row)

    def value(self, sql: str, values: Values = ()) -> Any:  # noqa: ANN401 - any column
        """Return the first column of the first row, or ``None``."""
        row = self.row(sql, values)
        return row[0] if row else None

    def damage(self, *, most: int = 100) -> list[str]:
        """Return what SQLite's own check finds wrong with the whole file."""
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


def _decoded_rows(connection: apsw.Connection, sql: str, values: Values) -> Iterator[Row]:
    """Yield the rows of a query in which a text is not UTF-8.

    SQLite accepts any bytes as text, but APSW decodes only UTF-8. So the query is run again for the
    bytes: of each column the value, and whether it is a text. (Materialized, it keeps its order,
    and nothing in it is computed twice.)
    """
    count = len(connection.execute(sql, values).get_description())
    names = [f"column_{number}" for number in range(count)]
    wanted = ", ".join(
        f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END,"
        f" typeof({name}) = 'text'"
        for name in names
    )
    query = (
        f"WITH queried ({', '.join(names)}) AS MATERIALIZED ({sql}) SELECT {wanted} FROM queried"
    )
    for row in connection.execute(query, values):
        yield tuple(
            decode_text(value) if is_text else value
            for value, is_text in zip(row[::2], row[1::2], strict=True)
        )

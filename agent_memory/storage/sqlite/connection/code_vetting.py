"""Decides whether the triggers and views that a file holds may run.

A file may come from anywhere; its triggers run with every write, its views with every use of them.
A ``Vet``, which knows what a file must hold, judges it. If it finds a fault, SQLite itself is told
to run none of them, and nothing is written. Reading goes on.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from agent_memory.errors import StorageUntrusted
from agent_memory.storage.records import Row

# As bytes: damage in a comment, which is then not UTF-8, must not prevent reading.
SELECT_CODE: Final = """
SELECT type, CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema
WHERE type IN ('table', 'view', 'trigger', 'index') AND sql IS NOT NULL"""
"""Everything in a file that may run, and the tables that it runs on: type, name, SQL."""
_TRIGGERS: Final = apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER
_VIEWS: Final = apsw.SQLITE_DBCONFIG_ENABLE_VIEW


class Verdict(NamedTuple):
    """The verdict on a file: whether it may be written, and whose views are read.

    ``refusal`` says why nothing may be written, and what to do. ``temporary_views`` are the
    statements that create the proper views if those of the file must not run.
    """

    refusal: str | None = None
    temporary_views: tuple[str, ...] = ()


Vet = Callable[[Path, int, Sequence[Row]], Verdict]
"""Judges a file by its path, its schema version, and type, name and SQL of its objects."""


class Vetting:
    """Decides whether the triggers and views of the file that a connection has open may run."""

    def __init__(self, path: Path, vet: Vet | None, *, read_only: bool) -> None:
        self._path = path
        self._vet = vet
        self._read_only = read_only
        self._cookie: int | None = None
        self._verdict = Verdict()

    @property
    def refusal(self) -> str | None:
        """Return why nothing may be written, as far as known."""
        return self._verdict.refusal

    def begin(self, connection: apsw.Connection) -> None:
        """Vet a file that was just opened."""
        if self._read_only:
            _allow(connection, _TRIGGERS, yes=False)
        if self._vet is not None:
            self._judge(connection)
            self.put_views_in_place(connection)
        elif self._read_only:
            _allow(connection, _VIEWS, yes=False)

    def before_writing(self, connection: apsw.Connection) -> None:
        """Vet the file again if its schema changed; raise ``StorageUntrusted`` if it may not run.

        Inside a write transaction nobody else can change the schema.
        """
        if self._vet is None:
            return
        if self._cookie is None or connection.pragma("schema_version") != self._cookie:
            self._judge(connection)
        if self._verdict.refusal is not None:
            raise StorageUntrusted(self._verdict.refusal)

    def stop_triggers(self, connection: apsw.Connection) -> None:
        """Disable triggers until the next write transaction vets the file again."""
        _allow(connection, _TRIGGERS, yes=False)
        self._cookie = None

    def put_views_in_place(self, connection: apsw.Connection) -> None:
        """Create our views if the file's must not be read. Must run outside transactions."""
        if not self._verdict.temporary_views:
            return
        connection.pragma("query_only", False)
        try:
            for sql in self._verdict.temporary_views:
                connection.execute(sql)
        finally:
            connection.pragma("query_only", self._read_only)

    def _judge(self, connection: apsw.Connection) -> None:
        assert self._vet is not None  # noqa: S101 - the callers check
        cookie = connection.pragma("schema_version")
        version = int(connection.pragma("user_version"))
        self._verdict = self._vet(self._path, version, list(connection.execute(SELECT_CODE)))
        self._cookie = int(cookie)
        is_trusted = self._verdict.refusal is None
        _allow(connection, _TRIGGERS, yes=is_trusted and not self._read_only)
        _allow(connection, _VIEWS, yes=not self._verdict.temporary_views)


def _allow(connection: apsw.Connection, setting: int, *, yes: bool) -> None:
    """Enable or disable the file's triggers or views; SQLite's own are not affected."""
    if connection.config(setting, -1) != int(yes):  # a change makes it re-prepare all statements
        connection.config(setting, int(yes))

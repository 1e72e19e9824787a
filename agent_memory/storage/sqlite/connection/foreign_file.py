"""Reads a database of another program without leaving a trace: no log, no lock, no write.

It reads a byte-for-byte copy: SQLite would write a log's index beside the file itself.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from agent_memory.errors import StorageLocked
from agent_memory.runtime.files import beside, read_steadily
from agent_memory.storage.sqlite.connection import read_only_media
from agent_memory.storage.sqlite.connection.error_translation import translated

_LOGS: Final = ("-wal", "-journal")
_LONGEST_VALUE: Final = 64_000_000
_ATTEMPTS: Final = 3
_COLUMNS: Final = """
SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
WHERE t.type = 'table' AND t.rootpage > 0 ORDER BY t.name, c.cid
"""
"""The ordinary tables, which have no code behind them, and their columns."""


class ForeignFile:
    """A database that is only read. ``path`` is the one that errors mention."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        # No code in the file may call a function.
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)

    def tables(self) -> dict[str, set[str]]:
        """Return the columns of each table."""
        tables: dict[str, set[str]] = {}
        with translated(self._path):
            for table, column in self._connection.execute(_COLUMNS):
                tables.setdefault(str(table), set()).add(str(column))
        return tables

    def rows(self, sql: str) -> Iterator[dict[str, object]]:
        """Yield the rows of a query, by column."""
        with translated(self._path):
            cursor = self._connection.execute(sql)
            names: list[str] = []
            for row in cursor:
                # Not available for a query without rows.
                names = names or [str(column[0]) for column in cursor.get_description()]
                yield dict(zip(names, row, strict=True))


@contextlib.contextmanager
def schema_of(path: Path) -> Iterator[ForeignFile]:
    """Give the body a file as it is on the disk, without the contents of its log."""
    with translated(path):
        connection = read_only_media.connect_immutable(path.resolve())
    with contextlib.closing(connection):
        yield ForeignFile(connection, path)


@contextlib.contextmanager
def copied(path: Path, folder: Path) -> Iterator[ForeignFile]:
    """Give the body a copy of a file and its log, made in a private folder.

    Raises ``StorageLocked`` if someone keeps writing to the file.
    """
    copy = folder / "copy.db"
    _copy(path, copy)
    with translated(path):
        connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
    with contextlib.closing(connection):
        yield ForeignFile(connection, path)


def _copy(path: Path, copy: Path) -> None:
    for _ in range(_ATTEMPTS):
        before = _state(path)
        for suffix in ("", *_LOGS):
            part = beside(path, suffix)
            if part.exists():
                with read_steadily(part) as file, beside(copy, suffix).open("wb") as target:
                    shutil.copyfileobj(file, target)
        if _state(path) == before:
            return
    raise StorageLocked(f"{path} is being written: end the program that writes it, and try again")


def _state(path: Path) -> list[tuple[int, int] | None]:
    parts = [beside(path, suffix) for suffix in ("", *_LOGS)]
    states = [part.stat() if part.exists() else None for part in parts]
    return [state and (state.st_size, state.st_mtime_ns) for state in states]

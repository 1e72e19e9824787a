"""Finds texts that are not UTF-8, in every column of every table, and re-encodes them.

SQLite accepts any bytes as text, for example those of a Latin-1 file imported with its shell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agent_memory.models.agent import Problem
from agent_memory.storage.records import page_end
from agent_memory.storage.sqlite.connection import Database, Row, quoted
from agent_memory.storage.sqlite.maintenance import check_indexes
from agent_memory.text.encoding import decode_text

_SELECT_COLUMNS: Final = "SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'"
_NAMES: Final = {"entities": "name", "entity_aliases": "alias"}
"""The columns of names with which the library looks things up, by table: each has a key beside
it."""
_NAMED: Final = 8
_PAGE: Final = 1_000


class Unreadable(NamedTuple):
    """A row with texts that are not UTF-8: their bytes by column."""

    table: str
    row_id: int
    columns: dict[str, bytes]


def find_problems(database: Database, schema: Sequence[Row]) -> Iterator[Problem]:
    """Yield the texts that are not UTF-8. Must run inside a transaction.

    ``schema`` has the type, name and SQL of each object that the file must have.
    """
    for row in _unreadable(database, schema):
        for column, data in row.columns.items():
            kind = "unreadable_history" if row.table == "history" else "unreadable_text"
            detail = f"{column} of {_name(database, row)} is not UTF-8: it has {_bad(data)}"
            yield Problem(kind=kind, detail=detail)


def repair(database: Database, schema: Sequence[Row]) -> None:
    """Rewrite the texts in UTF-8, including those of the history. No trigger may run meanwhile.

    So the history gets no new entries: a new encoding does not change what a memory says. Ids must
    already be in order, and the keyword index must be rebuilt afterwards. Must run inside
    ``write(vetted=False)``.
    """
    changed = [_encode(database, row) for row in list(_unreadable(database, schema))]
    check_indexes.forget_derived(database, [row_id for row_id in changed if row_id is not None])


def _encode(database: Database, row: Unreadable) -> str | None:
    """Rewrite the texts of a row in UTF-8, and return the id of the memory if the row is one."""
    texts: dict[str, str | None] = {name: decode_text(data) for name, data in row.columns.items()}
    name = _NAMES.get(row.table)
    if name in texts or f"{name}_key" in texts:  # the library recomputes the key
        texts[f"{name}_key"] = None
    settings = ", ".join(f"{quoted(name)} = ?" for name in texts)
    sql = f"UPDATE {row.table} SET {settings} WHERE rowid = ?"
    database.run(sql, (*texts.values(), row.row_id))
    return _value(database, row, "id") if row.table == "memories" else None


def _unreadable(database: Database, schema: Sequence[Row]) -> Iterator[Unreadable]:
    for kind, table, sql in schema:
        # The table of tags is rebuilt, and tombstones have a check of their own.
        if kind != "table" or not sql.startswith("CREATE TABLE") or "WITHOUT ROWID" in sql:
            continue
        columns = [name for (name,) in database.rows(_SELECT_COLUMNS, (table,))]
        if columns:
            yield from _of_table(database, table, columns)


def _of_table(database: Database, table: str, columns: Sequence[str]) -> Iterator[Unreadable]:
    wanted = ", ".join(f"CAST({quoted(name)} AS BLOB)" for name in columns)
    sql = f"SELECT rowid, {wanted} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
    after = -(2**63)
    while rows := database.rows(sql, (after, _PAGE)):
        for row_id, *texts in rows:
            wrong = {
                name: data
                for name, data in zip(columns, texts, strict=True)
                if data is not None and not data.isascii() and not _is_utf8(data)
            }
            if wrong:
                yield Unreadable(table, row_id, wrong)
        after = page_end(rows[-1][0], after=after)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _name(database: Database, row: Unreadable) -> str:
    if row.table == "memories":
        return f"memory {_value(database, row, 'id')}"
    if row.table == "history":
        return f"change {row.row_id} of memory {_value(database, row, 'memory_id')}"
    return f"row {row.row_id} of {row.table}"


def _value(database: Database, row: Unreadable, column: str) -> str:
    return str(database.value(f"SELECT {column} FROM {row.table} WHERE rowid = ?", (row.row_id,)))


def _bad(data: bytes) -> str:
    """Return the first bytes that are not UTF-8, as numbers: the text may hold a secret."""
    text = data.decode(errors="surrogateescape")
    numbers = [f"{ord(letter) - 0xDC00:02X}" for letter in text if "\udc80" <= letter <= "\udcff"]
    more = f" and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
    return f"{'the byte' if len(numbers) == 1 else 'the bytes'} {' '.join(numbers[:_NAMED])}{more}"

"""Makes crafted memory files, with Python's own SQLite: ``python -m tests.survival.fuzz_planting``.

It is a process of its own, since two SQLite libraries in one process must not share a file. It
takes a template, a folder, a seed and a number, and makes files ``0.db``, ``1.db`` and so on. A
line each on the standard output says what was done.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

_NAMES: Final = (
    "memories", "agent", "history", "scratchpad", "memory_index", "memory_text", "embeddings",
    "x", 'a"b', "a'b", "", " ", "select", "sqlite_stat1", "数", "a" * 1000, "embedding_index_1",
    "pragma_x", "memory_index_data", "memory_index_config", "; DROP TABLE memories", "\x01",
    "json_each", "temp",
)  # fmt: skip
_COLUMNS: Final = (
    "a", "a INTEGER PRIMARY KEY", "seq INTEGER", "id TEXT COLLATE nosuch",
    "a GENERATED ALWAYS AS (1)", "a AS (nosuch(b)), b",
    "content TEXT CHECK (load_extension('x'))", "a REFERENCES memories",
    "a DEFAULT (randomblob(1000000000))", "a TEXT AS (content) STORED, content",
)  # fmt: skip
_STATEMENTS: Final = (
    "CREATE TABLE {name} ({columns})", "CREATE TABLE {name} ({columns}) WITHOUT ROWID",
    "CREATE VIEW {name} AS SELECT * FROM memories", "CREATE VIEW {name} AS SELECT * FROM {name}",
    "CREATE VIEW {name} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i FROM n) SELECT * FROM n",
    "CREATE VIRTUAL TABLE {name} USING fts5(a)",
    "CREATE VIRTUAL TABLE {name} USING fts5vocab(memory_index, row)",
    "CREATE VIRTUAL TABLE {name} USING nosuch(a)",
    "CREATE VIRTUAL TABLE {name} USING vec0(a float[99999999])",
    "CREATE VIRTUAL TABLE {name} USING rtree(a, b, c)",
    "CREATE INDEX {name} ON memories (content)",
    "CREATE INDEX {name} ON memories (nosuch(content))",
    "CREATE INDEX {name} ON memories (id) WHERE load_extension('x')",
    "CREATE UNIQUE INDEX {name} ON memories (kind)",
    "CREATE TRIGGER {name} AFTER INSERT ON memories BEGIN SELECT nosuch(); END",
    "CREATE TRIGGER {name} BEFORE UPDATE ON memories BEGIN SELECT raise(abort, 'no'); END",
    "CREATE TRIGGER {name} AFTER INSERT ON memories BEGIN DELETE FROM memories; END",
    "not SQL at all", "CREATE TABLE", "",
)  # fmt: skip
_TYPES: Final = ("table", "index", "view", "trigger", "odd", "", None)


def main() -> None:
    """Make the files."""
    template, folder, seed, number = sys.argv[1:]
    dice = Random(seed)
    for place in range(int(number)):
        path = Path(folder) / f"{place}.db"
        shutil.copyfile(template, path)
        done = [_change(path, dice) for _ in range(dice.choice((1, 1, 2, 3)))]
        print(json.dumps(done))


def _change(path: Path, dice: Random) -> str:
    change = dice.choice(_CHANGES)
    with contextlib.suppress(sqlite3.Error, UnicodeEncodeError, sqlite3.Warning, OverflowError):
        return f"{change.__name__[1:]}: {change(path, dice)}"
    return f"{change.__name__[1:]} was refused"


def _run(path: Path, sql: str, values: tuple[object, ...] = (), *, cookie: bool = True) -> str:
    """Run a statement where the schema itself can be written."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.create_function("casefold", 1, lambda it: it)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(sql, values)
        if cookie:
            connection.execute("PRAGMA schema_version = 999")
    finally:
        connection.close()
    return f"{sql[:150]} {str(values)[:150]}"


def _statement(dice: Random) -> str:
    name = '"' + dice.choice(_NAMES).replace('"', '""') + '"'
    return dice.choice(_STATEMENTS).format(name=name, columns=dice.choice(_COLUMNS))


def _created(path: Path, dice: Random) -> str:
    return _run(path, _statement(dice))


def _planted(path: Path, dice: Random) -> str:
    """Write a row into the schema, that nobody looked at."""
    name, table, root = dice.choice(_NAMES), dice.choice(_NAMES), dice.choice(_ROOTS)
    row = (dice.choice(_TYPES), name, table, root, _statement(dice))
    return _run(path, "INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)


def _altered(path: Path, dice: Random) -> str:
    """Change a row of the schema."""
    column = dice.choice(("sql", "sql", "sql", "rootpage", "type", "name", "tbl_name"))
    connection = sqlite3.connect(path)
    rows = list(connection.execute("SELECT rowid, name, sql FROM sqlite_schema"))
    connection.close()
    rowid, _, sql = dice.choice(rows)
    values = {
        "sql": _edited(sql or "CREATE", dice),
        "rootpage": dice.choice(_ROOTS),
        "type": dice.choice(_TYPES),
        "name": dice.choice(_NAMES),
        "tbl_name": dice.choice(_NAMES),
    }
    change = f"UPDATE sqlite_schema SET {column} = ? WHERE rowid = {rowid}"
    return _run(path, change, (values[column],), cookie=dice.random() < 0.5)


def _edited(sql: str, dice: Random) -> str:
    words = sql.split(" ")
    place = dice.randrange(len(words))
    sort = dice.randrange(5)
    if sort == 0:
        del words[place]
    elif sort == 1:
        words[place] = dice.choice(_WORDS)
    elif sort == 2:
        words.insert(place, dice.choice(_WORDS))
    elif sort == 3:
        return sql[: dice.randint(0, len(sql))]
    else:
        return _statement(dice)
    return " ".join(words)


def _dropped(path: Path, dice: Random) -> str:
    number = dice.randint(1, 40)
    return _run(path, f"DELETE FROM sqlite_schema WHERE rowid % 40 = {number} - 1")


def _pragma(path: Path, dice: Random) -> str:
    name = dice.choice(
        ("user_version", "application_id", "schema_version", "encoding", "auto_vacuum")
    )
    value = dice.choice((0, 1, 5, 6, 99, -1, 2**31 - 1, -(2**31)))
    return _run(path, f"PRAGMA {name} = {value}", cookie=False)


def _header(path: Path, dice: Random) -> str:
    """Change bytes of the header of the file, or of the page that has the schema."""
    data = bytearray(path.read_bytes())
    told = []
    for _ in range(dice.choice((1, 1, 2, 8))):
        place = dice.choice((dice.randrange(100), dice.randrange(100, 140), dice.randrange(8192)))
        data[place] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        told.append(f"{place}={data[place]}")
    path.write_bytes(data)
    return " ".join(told)


def _blob(path: Path, dice: Random) -> str:
    """Write bytes into a shadow table of an index, or into a table's row."""
    table, column = dice.choice(_BLOBS)
    value = dice.choice(
        (b"", b"\xff" * 64, dice.randbytes(40), dice.randbytes(5000), 2**62, "x", None)
    )
    where = dice.choice(("", " WHERE rowid = (SELECT max(rowid) FROM {0})", " WHERE rowid = 10"))
    return _run(
        path, f"UPDATE {table} SET {column} = ?{where.format(table)}", (value,), cookie=False
    )


_BLOBS: Final = (
    ("memory_index_data", "block"), ("memory_index_config", "v"), ("memory_index_docsize", "sz"),
    ("embedding_index_1_chunks", "validity"), ("embedding_index_1_info", "value"),
    ("embedding_index_1_chunks", "rowids"), ("embedding_index_1_rowids", "chunk_offset"),
    ("embedding_index_1_vector_chunks00", "vectors"), ("embeddings", "vector"),
)  # fmt: skip
_ROOTS: Final = (0, 1, 2, 3, 5, 9, -1, 10**6, 2**31, None, "x")
_WORDS: Final = (
    "TEXT", "INTEGER", "BLOB", "STRICT", "WITHOUT", "ROWID", "CHECK", "(", ")", ",", "NOT",
    "NULL", "fts5(", "vec0(", "content=''", "tokenize='nosuch'", "content='sqlite_schema'",
    "prefix='1 2 999'", "detail=none", "BEGIN", "END;", "SELECT", "load_extension('x')", "--",
    "/*", "'", '"', "99999999999999999999", "columnsize=0",
)  # fmt: skip
_CHANGES: Final[tuple[Callable[[Path, Random], str], ...]] = (
    _created, _planted, _altered, _altered, _altered, _dropped, _pragma, _header, _header, _blob,
    _blob,
)  # fmt: skip

if __name__ == "__main__":
    main()

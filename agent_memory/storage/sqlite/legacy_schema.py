"""Upgrades files whose migrations were edited after they were applied, before these were frozen.

A file made with an earlier text of a migration has the same tables, with different comments,
constraints, indexes and triggers. All of ours are re-created inside the transaction that upgrades
the file: the tables are renamed, created as in the shipped migrations, filled, and dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.sqlite.connection import Database, quoted
from agent_memory.storage.sqlite.schema_check import ShippedSchema

LEGACY_HASHES: Final = frozenset(
    {
        "ff089ce01324e37dcf47ae72a8043bf8c21262a565788749c2170738b7bc81ea",  # 0001_memories
        "4145c225cc005f247df03c9749c08612dd9c555beea2ac937261774cb0da1635",  # 0001_memories
        "6b8b1fdae979eb311785e16e45dd739db7739c6161835743e65168314ebf4179",  # 0002_tags
        "37272d662286fd373726923bcbcb65de2958f9d1a6d66ce9899595f8e43ce791",  # 0003_keyword_index
        "419fe53b09627872dfdac73e736b5571e25a08da47b2b2b81a2668aa6bd46724",  # 0004_history
        "ec638469aea9cfbce63e38505a5ecbb9ede2d156faa6f68badf1fe58b6fcb477",  # 0004_history
        "2923ca14695209f743a55f9b4f7c93fbf6dbd0d4729909602a7ce5e1f89f923c",  # 0005_scratchpad
        "ac7718359a40d67db6e98e82b8d0fa4d4a34a6cff8295f6e41c52d40aad932a4",  # 0006_agent
        "103b967821c8fbf82a786ffa1c6d399d99975d7dcefe5e1127f59e61699cb088",  # 0007_embeddings
        "baa3ba54219883443a048e77b3cfa2a83319a8fd1d7f41685525be5142383d03",  # 0007_embeddings
        "e97ae6615e3fdd66a30d0b45213f99dd4dc9330b0078104c73bffdcc9b949bef",  # 0007_embeddings
        "3654c359dccb0550ccfe356713c6fd9476c09e7735b71fb4a0f5f4fcdec05a4e",  # 0009_centred_cosines
        "2afe06d0125481f4c97194c1a844da32c7f0b2a25f1f77ab3e7cd874bc857f8a",  # 0009_centred_cosines
        "125de15340d8dd633179e5e824e9caf7682398bf2cc41b294bbe96fb8c6596b1",  # 0011_graph
        "319cef9d31b7305c56375140adb47672925379f051634a798664662833ee908d",  # 0012_reviews
    }
)
"""SHA-256 of each earlier text of a migration. There will be no others: migrations are frozen."""

_PREFIX: Final = "legacy_"
_SELECT_ON_TABLES: Final = """
SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL
AND tbl_name IN (SELECT value FROM json_each(?))"""
_SELECT_NAMED: Final = """
SELECT type, name, sql LIKE 'CREATE VIRTUAL %' FROM sqlite_schema
WHERE type IN ('table', 'view') AND name IN (SELECT value FROM json_each(?))
ORDER BY rowid"""
_SELECT_COLUMNS: Final = "SELECT name, type FROM pragma_table_info(?)"
_MISSING_VALUES: Final = {
    ("reviews", "version"): "(SELECT version FROM memories WHERE memories.seq = legacy_reviews.seq)"
}
"""Values of columns without a default that an earlier text lacked."""
_INHERIT_FLOORS: Final = """
UPDATE embedding_models SET similarity_floor = NULL WHERE similarity_floor IN (0.38, 0.4)"""
"""Earlier texts of 0009 wrote the default as a number, as if someone had chosen it."""


def recreate(database: Database, shipped: ShippedSchema) -> None:
    """Re-create all objects of a file's version, keeping the rows of its tables.

    Must run inside ``write(vetted=False)``: no trigger runs. The keyword index is empty afterwards.
    Triggers and indexes that someone else put on our tables are dropped.
    """
    sequences = database.rows("SELECT name, seq FROM sqlite_sequence")
    tables = _put_aside(database, [*shipped.names("table"), *shipped.names("view")])
    for _, _, sql in shipped.objects:
        database.run(sql)
    for name in tables:
        _fill(database, name)
    for name in reversed(tables):  # referring tables before those they refer to
        database.run(f"DROP TABLE {_PREFIX}{name}")
    for name, seq in sequences:  # no number is reused, even if its row is gone
        database.run("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        database.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, seq))
    if "embedding_models" in tables:
        database.run(_INHERIT_FLOORS)


def _put_aside(database: Database, names: Sequence[str]) -> list[str]:
    """Rename the tables of these names, drop what depends on them; return the tables, in order."""
    existing = database.rows(_SELECT_NAMED, (to_json(list(names)),))
    tables = [name for kind, name, is_virtual in existing if kind == "table" and not is_virtual]
    dropped = [(kind, name) for kind, name, is_virtual in existing if kind == "view" or is_virtual]
    dependents = database.rows(_SELECT_ON_TABLES, (to_json(list(names)),))
    for kind, name in [*dependents, *reversed(dropped)]:
        database.run(f"DROP {kind} main.{quoted(name)}")
        if kind == "view":  # the temporary one that replaced it while it was not trusted
            database.run(f"DROP VIEW IF EXISTS temp.{quoted(name)}")
    for name in tables:
        database.run(f"ALTER TABLE {name} RENAME TO {_PREFIX}{name}")
    return tables


def _fill(database: Database, table: str) -> None:
    """Copy the rows of a renamed table, including columns that someone else added."""
    old: dict[str, str] = dict(database.rows(_SELECT_COLUMNS, (f"{_PREFIX}{table}",)))
    new: dict[str, str] = dict(database.rows(_SELECT_COLUMNS, (table,)))
    for name in old.keys() - new.keys():
        database.run(f"ALTER TABLE {table} ADD COLUMN {quoted(name)} {old[name]}")
    columns = {quoted(name): quoted(name) for name in old}
    for (of, name), value in _MISSING_VALUES.items():
        if of == table and name not in old:
            columns[name] = value
    database.run(
        f"INSERT INTO {table} ({', '.join(columns)})"
        f" SELECT {', '.join(columns.values())} FROM {_PREFIX}{table}"
    )

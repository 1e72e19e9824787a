"""Finds and repairs what SQLite's own checks do not notice.

``PRAGMA integrity_check`` passes although the keyword index disagrees with the rows: here the index
is compared with them, as are the tags and the scratchpad. A repair throws nothing away: text that
cannot be parsed as JSON is kept in the memory's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from agent_memory.errors import StorageCorrupt, StorageError
from agent_memory.models.agent import Problem
from agent_memory.models.fields import to_json
from agent_memory.storage.sqlite.connection import (
    IRREPLACEABLE,
    REBUILD_INDEX,
    SELECT_OBJECTS,
    Database,
    Row,
    quoted,
)
from agent_memory.storage.sqlite.schema_check import only_adds_columns
from agent_memory.text.counts import counted

_COMPARE_INDEX: Final = (
    "INSERT INTO memory_index (memory_index, rank) VALUES ('integrity-check', 1)"
)

_TAGS_OF_ROWS: Final = """
SELECT DISTINCT m.seq, lower(trim(j.value)) FROM memories AS m,
  json_each(CASE WHEN json_valid(m.tags) THEN m.tags ELSE '[]' END) AS j
WHERE j.type = 'text' AND trim(j.value) <> ''"""
_SELECT_READABLE: Final = """
SELECT type, tbl_name, name FROM sqlite_schema
WHERE rootpage > 0 AND type IN ('table', 'index') ORDER BY type, name"""
_COUNT_WRONG_TAGS: Final = f"""
SELECT count(*) FROM (
  SELECT * FROM (SELECT seq, tag FROM memory_tags EXCEPT {_TAGS_OF_ROWS})
  UNION ALL
  SELECT * FROM ({_TAGS_OF_ROWS} EXCEPT SELECT seq, tag FROM memory_tags))"""

_QUEUE_ALL: Final = """
INSERT OR IGNORE INTO embedding_queue (seq) SELECT seq FROM memories AS m
WHERE EXISTS (SELECT 1 FROM embedding_models)
AND NOT EXISTS (SELECT 1 FROM embeddings AS e WHERE e.seq = m.seq)"""

_COUNT_LOST_ENTRIES: Final = """
SELECT count(*) FROM scratchpad WHERE seq NOT IN (SELECT seq FROM memories)"""

_MADE_OF_MEMORIES: Final = ("memory_tags", "memory_index", "memory_words", "fingerprints")
_EMPTY: Final = "`check --repair` recreates it, empty"
_ADVICE_ON_MISSING: Final = {
    **dict.fromkeys(IRREPLACEABLE, "`restore` brings a backup back"),
    **dict.fromkeys(_MADE_OF_MEMORIES, "`check --repair` rebuilds it from the memories"),
    "schema_migrations": "`check --repair` rewrites it",
    "embedding_models": f"{_EMPTY}, and drops all vectors, which then belong to no model: search is"
    " by keyword until `migrate` is run",
    "entities": f"{_EMPTY}, and the rest of the graph with it;"
    " what they contained is only in backups",
}

_IS_BROKEN: Final = {
    # metadata first: repairing the others writes into it
    "metadata": "CASE WHEN json_valid(metadata) THEN json_type(metadata) END IS NOT 'object'",
    "tags": "CASE WHEN json_valid(tags) THEN json_type(tags) END IS NOT 'array'",
    "task_metadata": "task_metadata IS NOT NULL AND"
    " CASE WHEN json_valid(task_metadata) THEN json_type(task_metadata) END IS NOT 'object'",
}
_MEND: Final = {
    "metadata": "metadata = json_object('unreadable_metadata', CAST(metadata AS TEXT))",
    "tags": "tags = '[]', metadata = json_set(metadata, '$.unreadable_tags', CAST(tags AS TEXT))",
    "task_metadata": "task_metadata = NULL,"
    " metadata = json_set(metadata, '$.unreadable_task_metadata', CAST(task_metadata AS TEXT))",
}


def find_wrong_objects(database: Database, schema: Sequence[Row]) -> Iterator[Problem]:
    """Yield the objects that are not as they must be. Must run inside a transaction.

    ``schema`` has the type, name and SQL of each object that the file must have.
    """
    for kind, name, _, fault in _wrong_objects(database, schema):
        detail = f"the {kind} {name} is {fault}"
        if (kind, fault) == ("table", "missing"):
            advice = _ADVICE_ON_MISSING.get(name, f"{_EMPTY}; what it contained is only in backups")
            yield Problem(kind="missing_table", detail=f"{detail}: {advice}")
        else:
            yield Problem(kind="wrong_schema", detail=detail)


def compare_index(database: Database) -> list[Problem]:
    """Report whether the keyword index differs from the memories. Must run inside ``write()``.

    (FTS5 compares only on a connection that may write.)
    """
    try:
        database.run(_COMPARE_INDEX)
    except StorageCorrupt:
        detail = "the keyword index does not match the memories"
        return [Problem(kind="stale_keyword_index", detail=detail)]
    except StorageError as error:  # the index does not exist
        return [Problem(kind="stale_keyword_index", detail=str(error))]
    return []


def repair(database: Database, schema: Sequence[Row]) -> None:
    """Repair what can be repaired. Must run inside ``database.write()``.

    Triggers and views must already be in order.
    """
    for kind, name, sql, fault in _wrong_objects(database, schema):
        if kind == "index":
            if fault == "changed":
                database.run(f"DROP INDEX {name}")
            database.run(sql)
    database.run(REBUILD_INDEX)
    for column, is_broken in _IS_BROKEN.items():
        database.run(f"UPDATE memories SET {_MEND[column]} WHERE {is_broken}")
    database.run("DELETE FROM scratchpad WHERE seq NOT IN (SELECT seq FROM memories)")
    _fill(database)


def drop_triggers(database: Database) -> list[str]:
    """Drop the triggers of the table of memories, and return the SQL that re-creates them.

    Until then no index follows the rows: ``rebuild_indexes`` must be called after changes.
    """
    sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'memories'"
    triggers = database.rows(sql)
    for name, _ in triggers:
        database.run(f'DROP TRIGGER "{name}"')
    return [text for _, text in triggers]


def forget_derived(database: Database, memory_ids: Sequence[str]) -> None:
    """Delete what was derived from the former texts of some memories."""
    among = "(SELECT seq FROM memories WHERE id IN (SELECT value FROM json_each(?)))"
    for sql in (
        f"DELETE FROM embeddings WHERE seq IN {among}",
        f"UPDATE fingerprints SET fingerprint = NULL WHERE seq IN {among}",
    ):
        database.run(sql, (to_json(list(memory_ids)),))


def rebuild_indexes(database: Database) -> None:
    """Rebuild everything that is derived from memories. Must run inside ``database.write()``."""
    database.run(REBUILD_INDEX)
    _fill(database)
    database.run(_QUEUE_ALL)


def _fill(database: Database) -> None:
    """Fill the tables beside the index with what they must have of each memory."""
    database.run("DELETE FROM memory_tags")
    database.run(f"INSERT INTO memory_tags (seq, tag) {_TAGS_OF_ROWS}")
    database.run("INSERT OR IGNORE INTO fingerprints (seq) SELECT seq FROM memories")


def _wrong_objects(
    database: Database, schema: Sequence[Row]
) -> list[tuple[str, str, str, Literal["missing", "changed"]]]:
    """Return the objects that are not as they must be: type, name, right SQL, what is wrong."""
    objects = {(kind, name): sql for kind, name, sql in database.rows(SELECT_OBJECTS)}
    return [
        (kind, name, sql, "changed" if (kind, name) in objects else "missing")
        for kind, name, sql in schema
        if not _is_as_it_must_be(kind, sql, objects.get((kind, name)))
    ]


def _is_as_it_must_be(kind: str, ours: str, theirs: str | None) -> bool:
    """Return whether an object is ours; a table may have plain columns that someone added."""
    if theirs is None or theirs.rstrip() == ours:  # `.dump` ends a comment with a newline
        return theirs is not None
    return kind == "table" and only_adds_columns(ours, theirs)


def _damage(database: Database) -> list[Problem]:
    return [Problem(kind="damaged_file", detail=text) for text in database.damage()]


def _unreadable(database: Database) -> list[Problem]:
    """Report the tables and indexes whose first row cannot be read.

    ``integrity_check`` passes an empty index whose page was replaced by that of an empty table.
    """
    problems = []
    for kind, table, name in database.rows(_SELECT_READABLE):
        by = f" INDEXED BY {quoted(name)}" if kind == "index" else ""
        try:
            database.rows(f"SELECT rowid FROM {quoted(table)}{by} LIMIT 1")
        except StorageCorrupt as error:
            detail = f"the {kind} {name} cannot be read: {error}"
            problems.append(Problem(kind="damaged_file", detail=detail))
        except StorageError:
            continue  # a partial index cannot be used to read all rows
    return problems


def _wrong_tags(database: Database) -> list[Problem]:
    wrong = database.value(_COUNT_WRONG_TAGS)
    noun = counted(wrong, "row of memory_tags does", "rows of memory_tags do")
    detail = f"{noun} not match memories.tags"
    return [Problem(kind="wrong_tags", detail=detail)] if wrong else []


def _broken_json(database: Database) -> list[Problem]:
    return [
        Problem(kind="broken_json", detail=f"{column} of memory {memory_id} cannot be read")
        for column, is_broken in _IS_BROKEN.items()
        for (memory_id,) in database.rows(f"SELECT id FROM memories WHERE {is_broken}")
    ]


def _orphans(database: Database) -> list[Problem]:
    lost = database.value(_COUNT_LOST_ENTRIES)
    detail = f"{lost} scratchpad entries have no memory"
    return [Problem(kind="orphan", detail=detail)] if lost else []


LOOKS: Final = (_damage, _unreadable, _wrong_tags, _broken_json, _orphans)
"""The checks, run one by one, each inside a transaction."""

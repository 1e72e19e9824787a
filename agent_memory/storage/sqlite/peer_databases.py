"""Queries on the databases of other programs, in a table; nothing is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from agent_memory.errors import StorageError, ValidationError
from agent_memory.runtime.files import beside
from agent_memory.runtime.private_folders import private_folder
from agent_memory.storage.sqlite.connection.foreign_file import ForeignFile, copied, schema_of


class PeerTable(NamedTuple):
    """A table of another program: the query on it, and the columns that identify it."""

    name: str
    sql: str
    marks: frozenset[str]


def _all(name: str, marks: str, order: str = "rowid") -> PeerTable:
    return PeerTable(name, f"SELECT * FROM {name} ORDER BY {order}", frozenset(marks.split()))


# A file belongs to the first program whose first table it has; further tables are optional.
_PEERS: Final[Mapping[str, tuple[PeerTable, ...]]] = {
    "mcp-memory-service": (_all("memories", "content_hash content memory_type tags"),),
    "mem0": (
        PeerTable(
            "history",
            # The newest row of each memory: with a single max(), SQLite takes that row's columns.
            "SELECT *, max(rowid) AS newest, count(*) AS versions FROM history"
            " GROUP BY memory_id ORDER BY newest",
            frozenset({"memory_id", "old_memory", "new_memory", "event"}),
        ),
    ),
    "mem0-vectors": (_all("points", "id point"),),
    "langgraph": (_all("store", "prefix key value", "prefix, key"),),
    "claude-mem": (
        _all("observations", "project text type created_at_epoch"),
        _all("session_summaries", "request investigated learned"),
        _all("user_prompts", "prompt_text"),
    ),
    "engram": (
        _all("observations", "session_id type title content tool_name"),
        _all("user_prompts", "content session_id"),
    ),
    "mnemosyne": (
        _all("working_memory", "id content metadata_json importance"),
        _all("episodic_memory", "id content metadata_json summary_of"),
    ),
    "basic-memory": (
        PeerTable(
            "observation",
            "SELECT o.content, o.category, o.context, o.tags, e.title, e.permalink, e.file_path,"
            " e.created_at, e.updated_at FROM observation o JOIN entity e ON e.id = o.entity_id"
            " ORDER BY e.id, o.id",
            frozenset({"entity_id", "content", "category"}),
        ),
        _all("relation", "from_id to_id relation_type"),
    ),
}


def peer_of(path: Path) -> str | None:
    """Return which program's database a file is, or ``None`` if it is no known program's."""
    with contextlib.suppress(StorageError):
        with schema_of(path) as file:
            tables = file.tables()
        if tables or not beside(path, "-wal").exists():
            return _peer_with(tables)
        # All of a new file may still be in its log.
        with private_folder() as folder, copied(path, folder) as file:
            return _peer_with(file.tables())
    return None


@contextlib.contextmanager
def peer_rows(path: Path, peer: str) -> Iterator[Iterator[tuple[str, dict[str, object]]]]:
    """Give the body the rows of a program's tables, each with its table's name.

    Raises ``ValidationError`` if the file is not that program's.
    """
    with private_folder() as folder, copied(path, folder) as file:
        tables = file.tables()
        first, *_ = _PEERS[peer]
        if not _has(tables, first):
            missing = ", ".join(sorted(first.marks - tables.get(first.name, set())))
            message = f"{path} is not a database of {peer}: its table {first.name} has no {missing}"
            raise ValidationError(message)
        yield _rows(file, [table for table in _PEERS[peer] if _has(tables, table)])


def _rows(file: ForeignFile, tables: list[PeerTable]) -> Iterator[tuple[str, dict[str, object]]]:
    for table in tables:
        for row in file.rows(table.sql):
            yield table.name, row


def _peer_with(tables: Mapping[str, set[str]]) -> str | None:
    return next((peer for peer, (first, *_) in _PEERS.items() if _has(tables, first)), None)


def _has(tables: Mapping[str, set[str]], table: PeerTable) -> bool:
    return table.marks <= tables.get(table.name, set())

"""The graph's tables in SQLite: finds and repairs what another program wrote there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from agent_memory.models.agent import Problem
from agent_memory.storage.sql import graph_maintenance

_KNOWN_IDS: Final = "(SELECT id FROM memories UNION ALL SELECT memory_id FROM history)"
_ORPHANS: Final = {
    "relationships": "source_id NOT IN (SELECT id FROM entities)"
    " OR target_id NOT IN (SELECT id FROM entities)",
    "entity_aliases": "entity_id NOT IN (SELECT id FROM entities)",
    "entity_sources": "entity_id NOT IN (SELECT id FROM entities)",
    "relationship_sources": "relationship_id NOT IN (SELECT id FROM relationships)",
}
"""Rows left over from entities and relationships that do not exist, by table."""
_IS_TIME: Final = "GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:*.[0-9]*Z'"
_WRONG_TIMES: Final = (
    f"NOT valid_from {_IS_TIME} OR length(valid_from) <> 27"
    f" OR (valid_to IS NOT NULL AND (NOT valid_to {_IS_TIME} OR length(valid_to) <> 27"
    " OR valid_to < valid_from))"
)
_MIXED: Final = """
SELECT r.id FROM relationships AS r JOIN entities AS a ON a.id = r.source_id
JOIN entities AS b ON b.id = r.target_id
WHERE a.user_id IS NOT r.user_id OR b.user_id IS NOT r.user_id"""
_NAMING_MEMORIES: Final = (
    ("relationship_sources", "memory_id"),
    ("entity_sources", "memory_id"),
    ("entity_aliases", "memory_id"),
    ("relationships", "closed_by"),
    ("relationship_sources", "closed_by"),
)
_SAID: Final = (
    (
        "relationship_sources",
        "valid_from",
        "SELECT valid_from FROM relationships WHERE id = relationship_id",
    ),
    ("entity_sources", "name", "SELECT name FROM entities WHERE id = entity_id"),
)
"""What a statement always says; without it, an import takes it to say what all say together."""
_IS_UNSOURCED: Final = {
    "relationships": "id NOT IN (SELECT relationship_id FROM relationship_sources)",
    "entities": "id NOT IN (SELECT entity_id FROM entity_sources)",
}
_SUPPORTS: Final = {
    "relationships": {"relationship_sources"},
    "entities": {"entity_sources", "relationships"},
}
"""The tables, by table, that hold the sources of rows not made by hand."""
_FLAGS: Final = (
    ("entity_sources", "is_undone"),
    ("relationship_sources", "is_undone"),
    ("relationship_sources", "closing_is_undone"),
)
_END_AFTER_BEGINNING: Final = """
UPDATE relationship_sources SET valid_to = valid_from WHERE valid_to < valid_from"""


def _countable_problems() -> Iterator[tuple[str, str, str]]:
    """Yield kinds of problems, their message for a number of rows, and SQL for those rows."""
    for table, is_orphan in _ORPHANS.items():
        owner = "an entity" if table != "relationship_sources" else "a relationship"
        detail = f"{{}} rows of {table} belong to {owner} that does not exist"
        yield "orphan", detail, f"{table} WHERE {is_orphan}"
    for table, column in _NAMING_MEMORIES:
        detail = f"{column} of {{}} rows of {table} names memories that never existed"
        rows = f"{table} WHERE {column} IS NOT NULL AND {column} NOT IN {_KNOWN_IDS}"
        yield "orphan", detail, rows
    for table, column, _ in _SAID:
        detail = f"{column} is missing in {{}} rows of {table}"
        yield "wrong_row", detail, f"{table} WHERE {column} IS NULL"


class GraphMaintenance(graph_maintenance.GraphMaintenance):
    """Queries on the graph for merging, undo, erasure, import and export."""

    def find_problems(self) -> list[Problem]:
        """Return what is wrong with the graph. Must run inside a transaction."""
        problems = [
            Problem(kind=kind, detail=detail.format(count))
            for kind, detail, rows in _countable_problems()
            if (count := self._db.value(f"SELECT count(*) FROM {rows}"))
        ]
        for (edge_id,) in self._db.rows(f"SELECT id FROM relationships WHERE {_WRONG_TIMES}"):
            detail = f"the times of relationship {edge_id} are invalid, or end before they begin"
            problems.append(Problem(kind="wrong_time", detail=detail))
        for (edge_id,) in self._db.rows(_MIXED):
            detail = f"relationship {edge_id} joins entities of different users"
            problems.append(Problem(kind="mixed_users", detail=detail))
        return problems

    def repair(self, remade: Collection[str] = ()) -> None:
        """Repair the graph; ``remade`` are tables re-created empty. Must run inside ``write()``.

        An invalid time becomes the current time, or the start of the relationship. A relationship
        between two users' entities is deleted, for nobody can tell whose it is.
        """
        for table, is_orphan in _ORPHANS.items():
            self._db.run(f"DELETE FROM {table} WHERE {is_orphan}")
        self._db.run(f"DELETE FROM relationships WHERE id IN ({_MIXED})")
        now = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
        is_wrong = f"NOT valid_from {_IS_TIME} OR length(valid_from) <> 27"
        self._db.run(
            f"UPDATE relationships SET valid_from = {now}, valid_to = NULL WHERE {is_wrong}"
        )
        self._db.run(f"UPDATE relationships SET valid_to = valid_from WHERE {_WRONG_TIMES}")
        for table, column, summary in _SAID:
            self._db.run(f"UPDATE {table} SET {column} = ({summary}) WHERE {column} IS NULL")
        for table, column in _FLAGS:
            self._db.run(f"UPDATE {table} SET {column} = 1 WHERE {column} NOT IN (0, 1)")
        self._db.run(_END_AFTER_BEGINNING)
        for table, supports in _SUPPORTS.items():
            if not supports.isdisjoint(remade):  # the sweep would delete all that depended on these
                self._db.run(f"UPDATE {table} SET by_hand = 1 WHERE {_IS_UNSOURCED[table]}")
        self.sweep()

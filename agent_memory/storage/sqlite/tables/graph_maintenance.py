"""The graph's rows in merging, undo, erasure, checks, import and export."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.models.agent import Problem
from agent_memory.models.fields import to_json
from agent_memory.models.graph import name_key
from agent_memory.models.times import format_time
from agent_memory.storage.graph_rows import (
    EDGE_COLUMNS,
    ENTITY_COLUMNS,
    STATEMENT_COLUMNS,
    exported_entity,
    exported_row,
    exported_sources,
    imported_row,
    imported_sources,
)
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sqlite.tables import Table

_PAGE: Final = 1_000
_AMONG: Final = "IN (SELECT value FROM json_each(?))"
_KNOWN_IDS: Final = "(SELECT id FROM memories UNION ALL SELECT memory_id FROM history)"
_ORPHANS: Final = {
    "relationships": "source_id NOT IN (SELECT id FROM entities)"
    " OR target_id NOT IN (SELECT id FROM entities)",
    "entity_aliases": "entity_id NOT IN (SELECT id FROM entities)",
    "entity_sources": "entity_id NOT IN (SELECT id FROM entities)",
    "relationship_sources": "relationship_id NOT IN (SELECT id FROM relationships)",
}
"""What is left of entities and relationships that are gone, by table."""
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
_CLOSED: Final = ("relationships", "relationship_sources")
"""The tables of what can be closed."""
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
_IS_NO_END: Final = """id NOT IN (
  SELECT source_id FROM relationships UNION ALL SELECT target_id FROM relationships)"""
_SUPPORTS: Final = {
    "relationships": {"relationship_sources"},
    "entities": {"entity_sources", "relationships"},
}
"""Where it stands, by table, what its rows need that do not stand by themselves."""
_IS_EDGE_SAID: Final = """({0}.by_hand = 1
  OR EXISTS (SELECT 1 FROM relationship_sources AS x WHERE x.relationship_id = {0}.id))"""
_IS_SAID: Final = {
    "relationships": _IS_EDGE_SAID.format("t"),
    "entities": f"""(t.by_hand = 1
  OR EXISTS (SELECT 1 FROM entity_sources AS x WHERE x.entity_id = t.id)
  OR EXISTS (SELECT 1 FROM relationships AS e WHERE e.source_id = t.id
    AND {_IS_EDGE_SAID.format("e")})
  OR EXISTS (SELECT 1 FROM relationships AS e WHERE e.target_id = t.id
    AND {_IS_EDGE_SAID.format("e")}))""",
}
"""By table what an export tells of rows ``t``: no memory speaks of the others any more."""
_FLAGS: Final = (
    ("entity_sources", "is_undone"),
    ("relationship_sources", "is_undone"),
    ("relationship_sources", "closing_is_undone"),
)
_END_AFTER_BEGINNING: Final = """
UPDATE relationship_sources SET valid_to = valid_from WHERE valid_to < valid_from"""
_SOURCE: Final = ("memory_id", "change_id", "is_undone")
_SELECT_TEXTS: Final = f"""
SELECT e.name, e.type FROM entities AS e JOIN entity_sources AS x ON x.entity_id = e.id
WHERE x.memory_id {_AMONG}
UNION SELECT r.relationship, r.temporal_context FROM relationships AS r
JOIN relationship_sources AS x ON x.relationship_id = r.id WHERE x.memory_id {_AMONG}
UNION SELECT alias, NULL FROM entity_aliases WHERE memory_id {_AMONG}
UNION SELECT name, type FROM entity_sources WHERE memory_id {_AMONG}
UNION SELECT temporal_context, NULL FROM relationship_sources WHERE memory_id {_AMONG}"""
_FORGET_TYPES: Final = """
UPDATE entities SET type = (SELECT x.type FROM entity_sources AS x WHERE x.entity_id = entities.id
  AND x.type IS NOT NULL AND x.memory_id NOT IN (SELECT value FROM json_each(?1))
  ORDER BY x.updated_at DESC, x.rowid DESC LIMIT 1)
WHERE by_hand = 0 AND type IS NOT NULL AND id IN (SELECT x.entity_id FROM entity_sources AS x
  WHERE x.type = entities.type AND x.memory_id IN (SELECT value FROM json_each(?1)))"""
_SELECT_HELD: Final = """
SELECT name FROM entities UNION SELECT type FROM entities UNION SELECT alias FROM entity_aliases
UNION SELECT relationship FROM relationships UNION SELECT temporal_context FROM relationships
UNION SELECT name FROM entity_sources UNION SELECT type FROM entity_sources
UNION SELECT temporal_context FROM relationship_sources"""
_SELECT_SAME_ENTITY: Final = """
SELECT id FROM entities WHERE (id = ?1 AND user_id IS ?2) OR (name_key = ?3 AND user_id IS ?2)
ORDER BY id = ?1 DESC LIMIT 1"""
_SELECT_SAME_EDGE: Final = """
SELECT id FROM relationships
WHERE (id = ?1 OR (relationship = ?3 AND valid_to IS ?5 AND valid_from = ?6))
  AND source_id = ?2 AND target_id = ?4
ORDER BY id = ?1 DESC LIMIT 1"""


def _countable_problems() -> Iterator[tuple[str, str, str]]:
    """Yield kinds of problems, what they say of a number of rows, and SQL for those rows."""
    for table, is_orphan in _ORPHANS.items():
        owner = "an entity" if table != "relationship_sources" else "a relationship"
        detail = f"{{}} rows of {table} are of {owner} that is not there"
        yield "orphan", detail, f"{table} WHERE {is_orphan}"
    for table, column in _NAMING_MEMORIES:
        detail = f"{column} of {{}} rows of {table} names memories that never were"
        rows = f"{table} WHERE {column} IS NOT NULL AND {column} NOT IN {_KNOWN_IDS}"
        yield "orphan", detail, rows
    for table, column, _ in _SAID:
        detail = f"{column} is missing in {{}} rows of {table}"
        yield "wrong_row", detail, f"{table} WHERE {column} IS NULL"


class GraphMaintenance(Table):
    """Queries on the graph for merging, undo, erasure, import and export."""

    # Merging -------------------------------------------------------------------------------------
    def merge(self, keep: str, other: str) -> None:
        for kind in ("source", "target"):
            sql = f"UPDATE relationships SET {kind}_id = ? WHERE {kind}_id = ?"
            self._db.run(sql, (keep, other))
        self._db.run("UPDATE entity_aliases SET entity_id = ? WHERE entity_id = ?", (keep, other))
        self._copy_sources("entity", other, keep)
        self._db.run(
            """UPDATE entities SET
by_hand = max(by_hand, (SELECT by_hand FROM entities WHERE id = ?1)),
type = coalesce(type, (SELECT type FROM entities WHERE id = ?1)),
confidence = max(confidence, (SELECT confidence FROM entities WHERE id = ?1))
WHERE id = ?2""",
            (other, keep),
        )
        self._db.run("DELETE FROM entities WHERE id = ?", (other,))
        self._merge_duplicates(keep)

    def _merge_duplicates(self, entity_id: str) -> None:
        """Merge the open relationships of an entity that say the same."""
        sql = """
SELECT r.id, o.id, min(o.seq) FROM relationships AS r JOIN relationships AS o
  ON o.source_id = r.source_id AND o.relationship = r.relationship AND o.target_id = r.target_id
WHERE (r.source_id = ?1 OR r.target_id = ?1) AND r.valid_to IS NULL AND o.valid_to IS NULL
GROUP BY r.id HAVING min(o.seq) < r.seq"""
        for twin, kept, _ in self._db.rows(sql, (entity_id,)):
            self._copy_sources("relationship", twin, kept)
            self._db.run(
                """UPDATE relationships SET
by_hand = max(by_hand, (SELECT by_hand FROM relationships WHERE id = ?1)),
confidence = max(confidence, (SELECT confidence FROM relationships WHERE id = ?1)),
valid_from = min(valid_from, (SELECT valid_from FROM relationships WHERE id = ?1))
WHERE id = ?2""",
                (twin, kept),
            )
            self._db.run("DELETE FROM relationships WHERE id = ?", (twin,))

    def _copy_sources(self, kind: str, source_id: str, target_id: str) -> None:
        closing = ("closing_change_id",) if kind == "relationship" else ()
        columns = ", ".join((*_SOURCE, *STATEMENT_COLUMNS[kind], *closing))
        sql = f"""INSERT INTO {kind}_sources ({kind}_id, {columns})
SELECT ?, {columns} FROM {kind}_sources WHERE {kind}_id = ? ORDER BY rowid
ON CONFLICT ({kind}_id, memory_id) DO NOTHING"""
        self._db.run(sql, (target_id, source_id))

    # Undoing -------------------------------------------------------------------------------------
    def follow_undo(self, memory_ids: Sequence[str], change_ids: Sequence[int]) -> None:
        values = (to_json(list(memory_ids)), to_json(list(change_ids)))
        undone = """{0} IN (SELECT value FROM json_each(?1)) AND {1} IN (
  SELECT change_id FROM history WHERE event = 'UPDATE'
  AND change_id IN (SELECT value FROM json_each(?2)))"""
        last = "(SELECT max(change_id) FROM history AS h WHERE h.memory_id = {0})"
        for table in ("entity_sources", "relationship_sources"):
            sql = f"""UPDATE {table} SET is_undone = 1 - is_undone,
change_id = {last.format(f"{table}.memory_id")} WHERE {undone.format("memory_id", "change_id")}"""
            self._db.run(sql, values)
        for table in _CLOSED:
            sql = f"""UPDATE {table} SET closing_is_undone = 1 - closing_is_undone,
closing_change_id = {last.format(f"{table}.closed_by")}
WHERE {undone.format("closed_by", "closing_change_id")}"""
            self._db.run(sql, values)

    def restore_to(self, moment: datetime) -> None:
        stamp = format_time(moment)
        self._db.run("DELETE FROM relationships WHERE created_at > ?", (stamp,))
        for table in _CLOSED:
            self._db.run(
                f"UPDATE {table} SET valid_to = NULL, closed_by = NULL WHERE valid_to > ?", (stamp,)
            )
        for kind in STATEMENT_COLUMNS:
            self._db.run(f"DELETE FROM {kind}_sources WHERE created_at > ?", (stamp,))
        # A relationship that stays may join entities that a clock that was ahead made.
        sql = f"DELETE FROM entities WHERE created_at > ? AND {_IS_NO_END}"
        self._db.run(sql, (stamp,))

    # Erasing -------------------------------------------------------------------------------------
    def texts_of(self, memory_ids: Sequence[str]) -> set[str]:
        ids = to_json(list(memory_ids))
        rows = self._db.rows(_SELECT_TEXTS, (ids,) * 5)
        return {text for row in rows for text in row if isinstance(text, str)}

    def texts(self) -> set[str]:
        return {text for (text,) in self._db.rows(_SELECT_HELD) if isinstance(text, str)}

    def erase(self, memory_ids: Sequence[str]) -> None:
        ids = to_json(list(memory_ids))
        self._db.run(
            f"""UPDATE relationships SET temporal_context = NULL WHERE by_hand = 0 AND id IN
(SELECT relationship_id FROM relationship_sources WHERE memory_id {_AMONG})""",
            (ids,),
        )
        self._db.run(_FORGET_TYPES, (ids,))
        self.sweep()

    def sweep(self) -> None:
        lost = f"memory_id NOT IN {_KNOWN_IDS}"
        self._db.run(f"DELETE FROM relationship_sources WHERE {lost}")
        self._db.run(f"DELETE FROM entity_sources WHERE {lost}")
        self._db.run(f"DELETE FROM entity_aliases WHERE memory_id IS NOT NULL AND {lost}")
        for table in _CLOSED:
            self._db.run(
                f"""UPDATE {table} SET valid_to = NULL, closed_by = NULL, closing_change_id = NULL,
closing_is_undone = 0 WHERE closed_by IS NOT NULL AND closed_by NOT IN {_KNOWN_IDS}"""
            )
        self._db.run(
            f"DELETE FROM relationships WHERE by_hand = 0 AND {_IS_UNSOURCED['relationships']}"
        )
        self._db.run(f"""
DELETE FROM entities WHERE by_hand = 0 AND {_IS_UNSOURCED["entities"]} AND {_IS_NO_END}""")

    # Checking ------------------------------------------------------------------------------------
    def find_problems(self) -> list[Problem]:
        """Return what is wrong with the graph. Must run inside a transaction."""
        problems = [
            Problem(kind=kind, detail=detail.format(count))
            for kind, detail, rows in _countable_problems()
            if (count := self._db.value(f"SELECT count(*) FROM {rows}"))
        ]
        for (edge_id,) in self._db.rows(f"SELECT id FROM relationships WHERE {_WRONG_TIMES}"):
            detail = f"the times of relationship {edge_id} are none, or end before they begin"
            problems.append(Problem(kind="wrong_time", detail=detail))
        for (edge_id,) in self._db.rows(_MIXED):
            detail = f"relationship {edge_id} joins entities of different users"
            problems.append(Problem(kind="mixed_users", detail=detail))
        return problems

    def repair(self, remade: Collection[str] = ()) -> None:
        """Repair the graph; ``remade`` are tables made anew, empty. Must run inside ``write()``.

        A time that is none becomes that of now, or when the relationship began; what joins two
        users' entities is closed as if it had never held, for it cannot be told whose it is.
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
            if not supports.isdisjoint(remade):  # the sweep took all that had stood on these
                self._db.run(f"UPDATE {table} SET by_hand = 1 WHERE {_IS_UNSOURCED[table]}")
        self.sweep()

    # Writing out and taking in -------------------------------------------------------------------
    def iterate_entities(self) -> Iterator[dict[str, Any]]:
        for row in self._paged("entities", ENTITY_COLUMNS):
            aliases = self._db.rows(
                "SELECT alias, memory_id FROM entity_aliases WHERE entity_id = ? ORDER BY alias_id",
                (row["id"],),
            )
            yield {**exported_entity(row, aliases), **self._exported_sources("entity", row)}

    def iterate_edges(self) -> Iterator[dict[str, Any]]:
        for row in self._paged("relationships", EDGE_COLUMNS):
            yield {**exported_row(row), **self._exported_sources("relationship", row)}

    def _paged(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        sql = f"""SELECT {", ".join(columns)}, seq FROM {table} AS t
WHERE seq > ? AND {_IS_SAID[table]} ORDER BY seq LIMIT ?"""
        after = BEFORE_ALL
        while rows := self._db.rows(sql, (after, _PAGE)):
            for row in rows:
                yield dict(zip(columns, row, strict=False))
            after = page_end(rows[-1][-1], after=after)

    def _exported_sources(self, kind: str, summary: Mapping[str, Any]) -> dict[str, Any]:
        names = ", ".join(("memory_id", "is_undone", *STATEMENT_COLUMNS[kind]))
        sql = f"SELECT {names} FROM {kind}_sources WHERE {kind}_id = ? ORDER BY rowid"
        return exported_sources(kind, summary, self._db.rows(sql, (summary["id"],)))

    def import_entity(self, values: Mapping[str, Any], moment: str) -> str:
        user_id = values.get("user_id")
        key = name_key(values["name"], user_id)
        entity_id = self._db.value(_SELECT_SAME_ENTITY, (values["id"], user_id, key))
        if entity_id is None:
            columns = imported_row(ENTITY_COLUMNS, values, moment)
            if self._is_taken("entities", values["id"]):  # another user's
                del columns["id"]
            entity_id = self._insert("entities", {**columns, "name_key": key})
        self._import_aliases(str(entity_id), values)
        self._import_sources("entity", str(entity_id), values, moment)
        return str(entity_id)

    def _import_aliases(self, entity_id: str, values: Mapping[str, Any]) -> None:
        learned = values.get("alias_sources", {})
        for alias in values.get("aliases", ()):
            select_alias = "SELECT 1 FROM entity_aliases WHERE entity_id = ? AND alias = ?"
            if self._db.row(select_alias, (entity_id, alias)) is None:
                self._db.run(
                    "INSERT INTO entity_aliases (entity_id, alias, alias_key, memory_id)"
                    " VALUES (?, ?, ?, ?)",
                    (entity_id, alias, name_key(alias, values.get("user_id")), learned.get(alias)),
                )

    def import_edge(self, values: Mapping[str, Any], moment: str) -> bool:
        names = ("id", "source_id", "relationship", "target_id", "valid_to", "valid_from")
        existing_id = self._db.value(_SELECT_SAME_EDGE, tuple(map(values.get, names)))
        edge_id = existing_id
        if existing_id is None:
            columns = imported_row(EDGE_COLUMNS, values, moment)
            if self._is_taken("relationships", values["id"]):
                del columns["id"]
            edge_id = self._insert("relationships", columns)
        self._import_sources("relationship", str(edge_id), values, moment)
        return existing_id is None

    def has_both_entities(self, values: Mapping[str, Any]) -> bool:
        sql = "SELECT count(*) FROM entities WHERE id IN (?, ?) AND user_id IS ?"
        ends = {values["source_id"], values["target_id"]}
        count = self._db.value(
            sql, (values["source_id"], values["target_id"], values.get("user_id"))
        )
        return bool(count == len(ends))

    def _is_taken(self, table: str, graph_id: str) -> bool:
        return self._db.row(f"SELECT 1 FROM {table} WHERE id = ?", (graph_id,)) is not None

    def _insert(self, table: str, values: Mapping[str, Any]) -> str:
        placeholders = ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders}) RETURNING id"
        return str(self._db.rows(sql, tuple(values.values()))[0][0])

    def _import_sources(
        self, kind: str, graph_id: str, values: Mapping[str, Any], moment: str
    ) -> None:
        """Import the memories behind a row, with what each says."""
        names = ("memory_id", "is_undone", *STATEMENT_COLUMNS[kind])
        sql = f"""INSERT INTO {kind}_sources ({kind}_id, {", ".join(names)})
VALUES (?{", ?" * len(names)}) ON CONFLICT ({kind}_id, memory_id) DO NOTHING"""
        for row in imported_sources(kind, values, moment):
            self._db.run(sql, (graph_id, *row))

"""The tables of the graph: entities, relationships, and the memories each was read from.

A row is hidden while no memory that says so exists: ``graph_edges`` and ``graph_entities`` are the
views of what is visible.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from agent_memory.models.graph import EntityView
from agent_memory.storage.graph_rows import ENTITY_VIEW, entities_of_rows, grouped
from agent_memory.storage.records import Row
from agent_memory.storage.sql import Table

_ALL: Final = 2**63 - 1
_IN_SCOPE: Final = "(CAST(? AS TEXT) IS NULL OR g.user_id = ?)"
_SELECT_BY_KEY: Final = """
SELECT id FROM (
  SELECT 0 AS place, seq, id FROM entities
  WHERE name_key = ? AND user_id IS NOT DISTINCT FROM ?
  UNION ALL SELECT 1, e.seq, e.id FROM entity_aliases AS a JOIN entities AS e ON e.id = a.entity_id
  WHERE a.alias_key = ? AND e.user_id IS NOT DISTINCT FROM ?) AS known
ORDER BY place, seq LIMIT 1"""
_SELECT_BY_KEYS: Final = f"""
SELECT g.id, g.name_key FROM entities AS g WHERE g.name_key {{among}} AND {_IN_SCOPE}
UNION ALL SELECT g.id, a.alias_key
FROM entity_aliases AS a JOIN entities AS g ON g.id = a.entity_id
WHERE a.alias_key {{among}} AND {_IN_SCOPE}
UNION ALL SELECT g.id, lower(trim(g.name)) FROM entities AS g WHERE g.name_key IS NULL
AND lower(trim(g.name)) {{among}} AND {_IN_SCOPE}"""

_SELECT_BY_HAND: Final = """
SELECT 1 FROM relationships AS r
JOIN graph_edges AS g ON g.source_id = r.source_id AND g.relationship = r.relationship
  AND g.target_id = r.target_id AND g.valid_to IS NULL
JOIN relationships AS o ON o.id = g.id AND o.by_hand = 1
WHERE r.id = ? LIMIT 1"""


class RunGraph(Protocol):
    """Queries on the graph as the memories of one run state it."""

    def open_edges(
        self, run_id: str, source_id: str, relationship: str, target_id: str | None
    ) -> list[Row]:
        """Return the run's open relationships of an entity: id, target and ``valid_from``."""

    def entities(
        self, run_id: str, *, user_id: str | None, ids: Sequence[str] | None, agent_id: str
    ) -> list[EntityView]:
        """Return the entities that the run mentions, in the order of their first mention."""


class GraphTable(Table):
    """The tables of the graph: entities, relationships, and their sources."""

    _runs: RunGraph

    @property
    @abstractmethod
    def _agent_id(self) -> str:
        """The agent whose memories these are."""

    # Names ---------------------------------------------------------------------------------------
    def rows_without_key(self) -> list[Row]:
        return self._db.rows("""
SELECT 'entity' AS kind, seq AS place, CAST(name AS TEXT), user_id
FROM entities WHERE name_key IS NULL
UNION ALL SELECT 'alias', a.alias_id, CAST(a.alias AS TEXT), e.user_id
FROM entity_aliases AS a JOIN entities AS e ON e.id = a.entity_id WHERE a.alias_key IS NULL
ORDER BY kind DESC, place""")

    def id_of_row(self, row_id: int) -> str:
        return str(self._db.value("SELECT id FROM entities WHERE seq = ?", (row_id,)))

    def set_key(self, kind: str, row: int, key: str) -> None:
        if kind == "entity":
            self._db.run("UPDATE entities SET name_key = ? WHERE seq = ?", (key, row))
        else:
            self._db.run("UPDATE entity_aliases SET alias_key = ? WHERE alias_id = ?", (key, row))

    def find(self, key: str, user_id: str | None) -> str | None:
        entity_id = self._db.value(_SELECT_BY_KEY, (key, user_id) * 2)
        return None if entity_id is None else str(entity_id)

    def find_all(self, keys: Sequence[str], user_id: str | None) -> dict[str, str]:
        key_of_id: dict[str, str] = {}
        values = (self._db.listed(keys), user_id, user_id) * 3
        for entity_id, key in self._db.rows(_SELECT_BY_KEYS.format(among=self._db.AMONG), values):
            key_of_id.setdefault(entity_id, key)
        return key_of_id

    def names(self, ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        sql = f"SELECT id, name, type FROM entities WHERE id {self._db.AMONG}"
        return {row[0]: (row[1], row[2]) for row in self._db.rows(sql, (self._db.listed(ids),))}

    def unarchived_ids(self, memory_ids: Sequence[str]) -> set[str]:
        sql = f"SELECT id FROM memories WHERE archived = 0 AND id {self._db.AMONG}"
        return {memory_id for (memory_id,) in self._db.rows(sql, (self._db.listed(memory_ids),))}

    # Entities ------------------------------------------------------------------------------------
    def insert_entity(self, values: Mapping[str, Any]) -> str:
        return self._insert("entities", values)

    def insert_edge(self, values: Mapping[str, Any]) -> str:
        return self._insert("relationships", values)

    def _insert(self, table: str, values: Mapping[str, Any]) -> str:
        columns = {name: value for name, value in values.items() if value is not None}
        placeholders = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders}) RETURNING id"
        return str(self._db.value(sql, tuple(columns.values())))

    def update_entity(self, entity_id: str, values: Mapping[str, Any], now: str) -> None:
        settings = "".join(f"{name} = ?, " for name in values)
        sql = f"UPDATE entities SET {settings}updated_at = ? WHERE id = ?"
        self._db.run(sql, (*values.values(), now, entity_id))

    def entity_row(self, entity_id: str) -> dict[str, Any]:
        names = ("id", "name", "name_key", "type", "confidence", "user_id", "by_hand")
        row = self._db.row(f"SELECT {', '.join(names)} FROM entities WHERE id = ?", (entity_id,))
        return dict(zip(names, row or (), strict=False))

    def add_alias(self, entity_id: str, alias: str, key: str, memory_id: str | None) -> None:
        sql = """INSERT INTO entity_aliases (entity_id, alias, alias_key, memory_id)
VALUES (?, ?, ?, ?)"""
        self._db.run(sql, (entity_id, alias, key, memory_id))

    def entities(
        self,
        *,
        user_id: str | None,
        run_id: str | None = None,
        ids: Sequence[str] | None = None,
        out_of_sight: bool = False,
        after: str | None = None,
        limit: int = -1,
    ) -> list[EntityView]:
        if run_id is not None:
            of_run = self._runs.entities(run_id, user_id=user_id, ids=ids, agent_id=self._agent_id)
            known = [view.id for view in of_run]
            of_run = of_run[known.index(after) + 1 if after in known else 0 :]
            return of_run if limit < 0 else of_run[:limit]
        conditions: dict[str, tuple[object, ...]] = {_IN_SCOPE: (user_id, user_id)}
        if ids is not None:
            conditions[f"g.id {self._db.AMONG}"] = (self._db.listed(ids),)
        if after is not None:
            conditions["g.seq > (SELECT seq FROM entities WHERE id = ?)"] = (after,)
        sql = f"""SELECT {", ".join(ENTITY_VIEW)}
FROM {"entities" if out_of_sight else "graph_entities"} AS g
WHERE {" AND ".join(conditions)} ORDER BY g.seq LIMIT ?"""
        values = [value for asked in conditions.values() for value in asked]
        rows = self._db.rows(sql, (*values, _ALL if limit < 0 else limit))
        entity_ids = [row[0] for row in rows]
        return entities_of_rows(
            rows,
            agent_id=self._agent_id,
            aliases=self._aliases(entity_ids),
            sources=self._sources("entity", entity_ids),
        )

    def ids_read_from(self, memory_id: str, *, kind: str) -> list[str]:
        sql = f"""SELECT {kind}_id FROM {kind}_sources
WHERE memory_id = ? AND is_undone = 0 ORDER BY {self._db.SOURCE_NUMBER}"""
        return [graph_id for (graph_id,) in self._db.rows(sql, (memory_id,))]

    def _aliases(self, ids: list[str]) -> dict[str, list[str]]:
        sql = f"""SELECT a.entity_id, a.alias FROM entity_aliases AS a
WHERE a.entity_id {self._db.AMONG} ORDER BY a.alias_id"""
        return grouped(self._db.rows(sql, (self._db.listed(ids),)) if ids else ())

    def _sources(self, kind: str, ids: list[str]) -> dict[str, list[str]]:
        sql = f"""SELECT x.{kind}_id, x.memory_id FROM {kind}_sources AS x
JOIN memories AS m ON m.id = x.memory_id WHERE x.is_undone = 0
AND x.{kind}_id {self._db.AMONG} ORDER BY x.{self._db.SOURCE_NUMBER}"""
        return grouped(self._db.rows(sql, (self._db.listed(ids),)) if ids else ())

    # Relationships -------------------------------------------------------------------------------
    def open_edges(
        self,
        source_id: str,
        relationship: str,
        target_id: str | None = None,
        *,
        run_id: str | None = None,
    ) -> list[Row]:
        if run_id is not None:
            return self._runs.open_edges(run_id, source_id, relationship, target_id)
        sql = """SELECT id, target_id, valid_from,
  (SELECT r.run_id FROM relationships AS r WHERE r.id = g.id AND r.by_hand = 1)
FROM graph_edges AS g WHERE source_id = ? AND relationship = ? AND valid_to IS NULL
AND (CAST(? AS TEXT) IS NULL OR target_id = ?) ORDER BY seq"""
        return self._db.rows(sql, (source_id, relationship, target_id, target_id))

    def confirm_edge(
        self,
        edge_id: str,
        *,
        confidence: float,
        context: str | None,
        start: str,
        now: str,
    ) -> None:
        sql = f"""UPDATE relationships SET confidence = {self._db.GREATEST}(confidence, ?),
updated_at = ?, valid_from = {self._db.LEAST}(valid_from, ?),
temporal_context = coalesce(?, temporal_context) WHERE id = ?"""
        self._db.run(sql, (confidence, now, start, context, edge_id))

    def mark_by_hand(self, kind: str, graph_id: str) -> None:
        table = "entities" if kind == "entity" else "relationships"
        self._db.run(f"UPDATE {table} SET by_hand = 1 WHERE id = ? AND by_hand = 0", (graph_id,))

    def is_by_hand(self, edge_id: str) -> bool:
        return self._db.row(_SELECT_BY_HAND, (edge_id,)) is not None

    def memories(self, memory_ids: Sequence[str]) -> dict[str, Row]:
        sql = f"""SELECT id, user_id,
  (SELECT max(change_id) FROM history WHERE memory_id = memories.id), run_id
FROM memories WHERE id {self._db.AMONG}"""
        rows = self._db.rows(sql, (self._db.listed(memory_ids),))
        return {row[0]: row[1:] for row in rows}

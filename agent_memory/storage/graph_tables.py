"""What a transaction offers of the graph: entities, relationships, and what they were read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from agent_memory.models.graph import EdgeView, EntityView
from agent_memory.storage.records import GraphMoment, Row


class GraphTable(Protocol):
    """The tables of the graph: entities, relationships, and their sources."""

    def rows_without_key(self) -> list[Row]:
        """Return what another program wrote without a key: entity or alias, row, name, user."""

    def id_of_row(self, row_id: int) -> str:
        """Return the id of the entity in a row."""

    def set_key(self, kind: str, row: int, key: str) -> None:
        """Give an entity or an alias its key."""

    def find(self, key: str, user_id: str | None) -> str | None:
        """Return the id of the entity that has a name or an alias, in one user's graph."""

    def find_all(self, keys: Sequence[str], user_id: str | None) -> dict[str, str]:
        """Return the ids of the entities with these names or aliases, and the key of each."""

    def names(self, ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        """Return the names and types of entities, whether they can be seen or not."""

    def unarchived_ids(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of some memories that are there and not archived."""

    def insert_entity(self, values: Mapping[str, Any]) -> str:
        """Add an entity of the columns that are given, and return its id."""

    def insert_edge(self, values: Mapping[str, Any]) -> str:
        """Add a relationship of the columns that are given, and return its id."""

    def update_entity(self, entity_id: str, values: Mapping[str, Any], now: str) -> None:
        """Change columns of an entity."""

    def entity_row(self, entity_id: str) -> dict[str, Any]:
        """Return the columns of an entity that tell whose it is and what it is called."""

    def add_alias(self, entity_id: str, alias: str, key: str, memory_id: str | None) -> None:
        """Give an entity another name."""

    def entities(
        self,
        *,
        agent_id: str,
        user_id: str | None,
        ids: Sequence[str] | None = None,
        out_of_sight: bool = False,
        limit: int = -1,
    ) -> list[EntityView]:
        """Return the entities that can be seen, oldest first, or those of them with these ids."""

    def edges(
        self,
        when: GraphMoment,
        *,
        agent_id: str,
        among: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        include_closed: bool = False,
        at_any_time: bool = False,
        limit: int = -1,
    ) -> list[EdgeView]:
        """Return the relationships that hold at a moment and can be seen, oldest first."""

    def reached(
        self, when: GraphMoment, start: Sequence[str], depth: int
    ) -> tuple[dict[str, int], bool]:
        """Return the entities within so many relationships, with the distance of each."""

    def edge_between(
        self, when: GraphMoment, entity_id: str, others: Sequence[str]
    ) -> tuple[str, str] | None:
        """Return a relationship of an entity with any of some others, and which: their ids."""

    def open_edges(
        self, source_id: str, relationship: str, target_id: str | None = None
    ) -> list[Row]:
        """Return what holds of an entity: id, target and ``valid_from`` of each, oldest first."""

    def confirm_edge(
        self, edge_id: str, *, confidence: float, context: str | None, start: str, now: str
    ) -> None:
        """Note that something was said again: it is as sure as the surest who said so."""

    def mark_by_hand(self, kind: str, of: str) -> None:
        """Let an entity, or a relationship, be seen without any memory."""

    def close_edge(
        self, edge_id: str, *, at: str, by: str | None, change_id: int | None, now: str
    ) -> None:
        """Let a relationship hold no more from a moment on, which is not before it began."""

    def add_source(self, kind: str, of: str, memory_id: str, change_id: int | None) -> None:
        """Note that an entity, or a relationship, was read from a memory."""

    def memories(self, memory_ids: Sequence[str]) -> dict[str, Row]:
        """Return, by id, whose each memory is and the number of its last change."""


class GraphMaintenance(Protocol):
    """What undo, erasure, import and export need of the graph."""

    def merge(self, keep: str, other: str) -> None:
        """Move aliases, relationships and sources of one entity to another; the entity goes."""

    def follow_undo(self, memory_ids: Sequence[str], change_ids: Sequence[int]) -> None:
        """Take what was read from changes out of sight that are undone now, or bring it back."""

    def restore_to(self, moment: datetime) -> None:
        """Make the graph of a copy what it was at a moment, as far as it can be told."""

    def texts_of(self, memory_ids: Sequence[str]) -> set[str]:
        """Return what the graph says that was read from some memories."""

    def texts(self) -> set[str]:
        """Return all that the graph says."""

    def erase(self, memory_ids: Sequence[str]) -> None:
        """Remove what was read from memories that are erased, and from no others."""

    def sweep(self) -> None:
        """Remove what was read from memories of which nothing is left, not even a history."""

    def iterate_entities(self) -> Iterator[dict[str, Any]]:
        """Yield what a file is told of each entity, in their order."""

    def iterate_edges(self) -> Iterator[dict[str, Any]]:
        """Yield what a file is told of each relationship, in their order."""

    def import_entity(self, values: Mapping[str, Any], moment: str) -> str:
        """Take an entity in, or join it with the one of that id or name; return its id here."""

    def import_edge(self, values: Mapping[str, Any], moment: str) -> bool:
        """Take a relationship in whose entities are there; return whether it was not there."""

    def has_both_entities(self, values: Mapping[str, Any]) -> bool:
        """Return whether both entities of a relationship are there, in its user's graph."""

"""Protocols of the graph's tables: entities, relationships, and their source memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from agent_memory.models.graph import EdgeView, EntityView
from agent_memory.storage.change_records import Closing, GraphMoment
from agent_memory.storage.records import Row

MOST_REACHED: Final = 20_000
"""Entities, counted once for each distance, that a walk through the graph looks at."""


class GraphTable(Protocol):
    """The tables of the graph: entities, relationships, and their sources."""

    def rows_without_key(self) -> list[Row]:
        """Return another program's rows without a key: entity or alias, row id, name, user.

        Entities come first, the oldest first.
        """

    def id_of_row(self, row_id: int) -> str:
        """Return the id of the entity in a row."""

    def set_key(self, kind: str, row: int, key: str) -> None:
        """Give an entity or an alias its key."""

    def find(self, key: str, user_id: str | None) -> str | None:
        """Return the id of the entity that has a name or an alias, in one user's graph."""

    def find_all(self, keys: Sequence[str], user_id: str | None) -> dict[str, str]:
        """Return the ids of the entities with these names or aliases, and the key of each.

        Of one user's graph, or of everybody's for ``None``.
        """

    def names(self, ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        """Return the names and types of entities, whether they can be seen or not."""

    def unarchived_ids(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of some memories that are there and not archived."""

    def insert_entity(self, values: Mapping[str, Any]) -> str:
        """Insert an entity with these columns, and return its id."""

    def insert_edge(self, values: Mapping[str, Any]) -> str:
        """Insert a relationship with these columns, and return its id."""

    def update_entity(self, entity_id: str, values: Mapping[str, Any], now: str) -> None:
        """Change columns of an entity."""

    def entity_row(self, entity_id: str) -> dict[str, Any]:
        """Return an entity's columns: id, names, type, confidence, user, ``by_hand``."""

    def add_alias(self, entity_id: str, alias: str, key: str, memory_id: str | None) -> None:
        """Insert an alias of an entity."""

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
        """Return the entities that can be seen, oldest first, or those of them with these ids.

        With a ``run_id`` those that a memory of this run speaks of, as it does. With
        ``out_of_sight`` those too that no memory speaks of any more. With ``after`` the list
        begins behind the entity of this id.
        """

    def ids_read_from(self, memory_id: str, *, kind: str) -> list[str]:
        """Return the ids of the entities, or relationships, that were read from a memory."""

    def edges(
        self,
        when: GraphMoment,
        *,
        among: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        include_closed: bool = False,
        at_any_time: bool = False,
        limit: int = -1,
    ) -> list[EdgeView]:
        """Return the relationships that hold at a moment and can be seen, oldest first.

        ``include_closed`` tells those too that held before, ``at_any_time`` all. ``among`` narrows
        them to those at any of some entities, ``ids`` to those with these ids.
        """

    def reached(
        self, when: GraphMoment, start: Sequence[str], depth: int
    ) -> tuple[dict[str, int], bool]:
        """Return the entities within so many relationships, with the distance of each.

        The second tells whether there are more than ``MOST_REACHED`` (an entity counts once for
        each distance that it has): the nearest come first.
        """

    def edge_between(
        self, when: GraphMoment, entity_id: str, others: Sequence[str]
    ) -> tuple[str, str] | None:
        """Return a relationship of an entity with any of some others, and which: their ids."""

    def open_edges(
        self,
        source_id: str,
        relationship: str,
        target_id: str | None = None,
        *,
        run_id: str | None = None,
    ) -> list[Row]:
        """Return an entity's open relationships, oldest first: id, target, ``valid_from``, run.

        The run is that of one that was made by hand in it, else ``None``. With a ``run_id`` those
        that hold as the memories of this run say.
        """

    def confirm_edge(
        self, edge_id: str, *, confidence: float, context: str | None, start: str, now: str
    ) -> None:
        """Record that a relationship was said again: the higher confidence, the earlier start."""

    def mark_by_hand(self, kind: str, graph_id: str) -> None:
        """Mark an entity, or a relationship, as made by hand: seen without any memory."""

    def close_edge(self, edge_id: str, closing: Closing, *, but_in_runs: Sequence[str]) -> None:
        """Close what a relationship says, or where it began if that is later.

        As the memories of some runs say it, it stays as it is.
        """

    def close_in_run(self, edge_id: str, closing: Closing, run_id: str) -> None:
        """Close what a relationship says as the memories of one run say, not as all do together."""

    def add_source(
        self,
        kind: str,
        graph_id: str,
        memory_id: str,
        change_id: int | None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Record the memory that an entity, or a relationship, was read from, and what it says.

        ``values`` has the columns of what it says; without them it says what the row does.
        """

    def memories(self, memory_ids: Sequence[str]) -> dict[str, Row]:
        """Return the user, the last change id and the run of each memory, by memory id."""


class GraphMaintenance(Protocol):
    """Queries on the graph for merging, undo, erasure, import and export."""

    def merge(self, keep: str, other: str) -> None:
        """Merge one entity into another: aliases, relationships and sources move; it is deleted."""

    def follow_undo(self, memory_ids: Sequence[str], change_ids: Sequence[int]) -> None:
        """Hide what was read from changes that are undone now, or show it again.

        A memory that is gone takes what was read from it along by itself: here it is about those
        whose text is another now. To undo an undo turns the same rows again. Must run inside
        ``write()``, after the memories became what they were.
        """

    def restore_to(self, moment: datetime) -> None:
        """Restore the graph of a copy to a moment, as far as it is known."""

    def texts_of(self, memory_ids: Sequence[str]) -> set[str]:
        """Return the graph's texts that were read from some memories."""

    def texts(self) -> set[str]:
        """Return all texts of the graph."""

    def erase(self, memory_ids: Sequence[str]) -> None:
        """Delete what was read from erased memories, and from no others.

        What others say too stays, but without the words about the time, which cannot be told apart,
        and an entity has no type that they do not say.
        Must run inside ``write()``, when the memories and their history are gone.
        """

    def sweep(self) -> None:
        """Delete what was read from memories of which nothing is left, not even a history."""

    def iterate_entities(self) -> Iterator[dict[str, Any]]:
        """Yield each entity as exports write it, in the order of the table."""

    def iterate_edges(self) -> Iterator[dict[str, Any]]:
        """Yield each relationship as exports write it, in the order of the table."""

    def import_entity(self, values: Mapping[str, Any], moment: str) -> str:
        """Import an entity, or join it with the one of that id or name; return its id here.

        What is there stays as it is, and gets the aliases and memories that the file tells. Must
        run inside ``write()``. ``moment`` is the time where the file tells none.
        """

    def import_edge(self, values: Mapping[str, Any], moment: str) -> bool:
        """Import a relationship whose entities exist; return whether it is new.

        One that is there stays as it is, and gets the memories that the file tells.
        """

    def has_both_entities(self, values: Mapping[str, Any]) -> bool:
        """Return whether both entities of a relationship exist in its user's graph."""

"""Protocols of the graph's tables: entities, relationships, and their source memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from agent_memory.models.graph import EdgeView, EntityView
from agent_memory.storage.change_records import Closing, GraphMoment
from agent_memory.storage.records import Row

MOST_REACHED: Final = 20_000
"""The most entities that a traversal visits, each counted once for each of its distances."""


class GraphTable(Protocol):
    """The tables of the graph: entities, relationships, and their sources."""

    def rows_without_key(self) -> list[Row]:
        """Return another program's rows without a key: entity or alias, row id, name, user.

        Entities come first, in order of age.
        """

    def id_of_row(self, row_id: int) -> str:
        """Return the id of the entity in a row."""

    def set_key(self, kind: str, row: int, key: str) -> None:
        """Give an entity or an alias its key."""

    def find(self, key: str, user_id: str | None) -> str | None:
        """Return the id of the entity with a name or alias, in one user's graph."""

    def find_all(self, keys: Sequence[str], user_id: str | None) -> dict[str, str]:
        """Return the ids of the entities with these names or aliases, and the key of each.

        From one user's graph, or from everybody's if ``user_id`` is ``None``.
        """

    def names(self, ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        """Return the names and types of entities, whether they are visible or not."""

    def unarchived_ids(self, memory_ids: Sequence[str]) -> set[str]:
        """Return the subset of these memories that exist and are not archived."""

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
        """Return the visible entities, oldest first, or those of them with these ids.

        With ``run_id``, only those mentioned by a memory of this run, as it describes them. With
        ``out_of_sight``, also those that no memory mentions any more. With ``after``, the list
        starts behind the entity with this id.
        """

    def ids_read_from(self, memory_id: str, *, kind: str) -> list[str]:
        """Return the ids of the entities or relationships that were read from a memory."""

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
        """Return the visible relationships that hold at a moment, oldest first.

        ``include_closed`` adds those that held before, ``at_any_time`` returns all. ``among``
        restricts them to those of any of these entities, ``ids`` to those with these ids.
        """

    def reached(
        self, when: GraphMoment, start: Sequence[str], depth: int
    ) -> tuple[dict[str, int], bool]:
        """Return the entities within ``depth`` relationships, with the distance of each.

        The second value tells whether there are more than ``MOST_REACHED`` (an entity counts once
        for each distance that it has); the nearest come first.
        """

    def edge_between(
        self, when: GraphMoment, entity_id: str, others: Sequence[str]
    ) -> tuple[str, str] | None:
        """Return an entity's relationship with any of the others, and that other: their ids."""

    def open_edges(
        self,
        source_id: str,
        relationship: str,
        target_id: str | None = None,
        *,
        run_id: str | None = None,
    ) -> list[Row]:
        """Return an entity's open relationships, oldest first: id, target, ``valid_from``, run.

        The run is set only for a relationship made by hand in a run. With ``run_id``, only those
        that hold according to the memories of this run.
        """

    def confirm_edge(
        self, edge_id: str, *, confidence: float, context: str | None, start: str, now: str
    ) -> None:
        """Record that a relationship was stated again: the higher confidence, the earlier start."""

    def mark_by_hand(self, kind: str, graph_id: str) -> None:
        """Mark an entity or a relationship as made by hand: visible without any memory."""

    def is_by_hand(self, edge_id: str) -> bool:
        """Return whether a relationship, or an open one that says the same, was stated by hand."""

    def close_edge(self, edge_id: str, closing: Closing, *, but_in_runs: Sequence[str]) -> None:
        """Close a relationship, at its start if that is later.

        What the memories of the runs in ``but_in_runs`` say stays open.
        """

    def close_in_run(self, edge_id: str, closing: Closing, run_id: str) -> None:
        """Close a relationship only according to the memories of one run, not of all together."""

    def add_source(
        self,
        kind: str,
        graph_id: str,
        memory_id: str,
        change_id: int | None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Record the memory that an entity or a relationship was read from, and what it says.

        ``values`` has the columns of what the memory says; without them it says the same as the
        row.
        """

    def memories(self, memory_ids: Sequence[str]) -> dict[str, Row]:
        """Return the user, the last change id and the run of each memory, by memory id."""


class GraphMaintenance(Protocol):
    """Queries on the graph for merging, undo, erasure, import and export."""

    def merge(self, keep: str, other: str) -> None:
        """Merge an entity into another: move aliases, relationships, sources, and delete it."""

    def follow_undo(self, memory_ids: Sequence[str], change_ids: Sequence[int]) -> None:
        """Hide what was read from changes that are now undone, or show it again.

        What was read from a deleted memory is already hidden with it: this is about memories whose
        text is now another. Undoing an undo flips the same rows again. Must run inside ``write()``,
        after the memories have been reverted.
        """

    def hold(self, memory_id: str, closed_by: str, *, is_held: bool) -> None:
        """Let what a memory states hold although another has closed it, or no longer."""

    def restore_to(self, moment: datetime) -> None:
        """Restore the graph of a copy to a moment, as far as its state then is known."""

    def texts(self) -> set[str]:
        """Return all texts of the graph."""

    def count_by_hand(self, user_id: str) -> int:
        """Return how many entities and relationships of a user's graph were stated by hand."""

    def disown(self, user_id: str) -> None:
        """Let what was stated by hand in a user's graph count as stated by nobody.

        ``erase`` and ``sweep`` delete it, unless memories say it too. Must run inside ``write()``.
        """

    def erase(self, memory_ids: Sequence[str]) -> None:
        """Delete what was read from erased memories and from no others.

        What other memories also say stays, but without the words about the time, which cannot be
        told apart, and an entity keeps no type that they do not state. Must run inside ``write()``,
        when the memories and their history are gone.
        """

    def sweep(self) -> None:
        """Delete what was read from memories of which nothing is left, not even a history."""

    def iterate_entities(self) -> Iterator[dict[str, Any]]:
        """Yield each entity in the form of exports, in table order."""

    def iterate_edges(self) -> Iterator[dict[str, Any]]:
        """Yield each relationship in the form of exports, in table order."""

    def import_entity(self, values: Mapping[str, Any], moment: str) -> str:
        """Import an entity, or join it with the one of that id or name; return its id here.

        An existing entity stays as it is, but gets the aliases and memories listed in the file.
        Must run inside ``write()``. ``moment`` is used if the file gives no time.
        """

    def import_edge(self, values: Mapping[str, Any], moment: str) -> bool:
        """Import a relationship whose entities exist; return whether it is new.

        An existing one stays as it is, but gets the memories listed in the file.
        """

    def has_both_entities(self, values: Mapping[str, Any]) -> bool:
        """Return whether both entities of a relationship exist in its user's graph."""

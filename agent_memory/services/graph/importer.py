"""Import of a file's graph, within an import of the file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from agent_memory.models.portable import Section, StagedEntry
from agent_memory.models.times import format_time
from agent_memory.services.erasure.tombstones import Tombstones
from agent_memory.services.policies.admission import Admission
from agent_memory.storage.engine import Engine
from agent_memory.text.counts import counted

_CLOSING: Final = ("valid_to", "closed_by", "closing_is_undone")


class GraphImporter:
    """Imports the entities and relationships of one file into one store.

    Must run inside a transaction; ``dry_run`` needs only ``read()``, and counts.
    """

    def __init__(
        self,
        engine: Engine,
        admission: Admission,
        tombstones: Tombstones,
        *,
        dry_run: bool,
        now: datetime,
    ) -> None:
        self._engine = engine
        self._admission = admission
        self._tombstones = tombstones
        self._unsaid: dict[str, dict[str, Any]] = {}
        self._dry_run = dry_run
        self._now = format_time(now)
        self._entity_ids: dict[str, str] = {}
        self._count = 0
        self._notes: list[str] = []

    def take(self, entry: StagedEntry, memory_ids: Mapping[str, str]) -> None:
        """Import an entity or a relationship.

        ``memory_ids`` has the new ids of memories that got another one here. Raises
        ``RejectedContent``.
        """
        values = _with_ids(entry.values, memory_ids)
        names = ("name", "type", "relationship", "temporal_context")
        for text in (*(values.get(name) for name in names), *values.get("aliases", ())):
            self._admission.refuse_row({"content": text or ""})
        is_unsaid = bool(self._tombstones) and self._take_out_erased(values)
        is_entity = entry.section is Section.ENTITY
        if is_unsaid and is_entity:
            self._unsaid[values["id"]] = values  # unless a relationship refers to it
        if is_unsaid:
            return
        self._count += 1
        if self._dry_run:
            return
        if is_entity:
            self._import_entity(values)
            return
        for end in ("source_id", "target_id"):
            if values[end] in self._unsaid:
                self._import_entity(self._unsaid.pop(values[end]))
            values[end] = self._entity_ids.get(values[end], values[end])
        if self._engine.graph_maintenance.has_both_entities(values):
            self._engine.graph_maintenance.import_edge(values, self._now)
        else:
            note = f"relationship {values['id']} names an entity that does not exist: skipped"
            self._notes.append(note)

    def _import_entity(self, values: dict[str, Any]) -> None:
        entity_id = self._engine.graph_maintenance.import_entity(values, self._now)
        self._entity_ids[values["id"]] = entity_id

    def _take_out_erased(self, values: dict[str, Any]) -> bool:
        """Remove what erased memories say; return whether nobody else says it.

        As in an erasure: what others also say stays, but without the words about the time.
        """
        sources = values.get("sources", [])
        erased = {memory_id for memory_id in sources if self._tombstones.has_id(memory_id)}
        values["sources"] = [memory_id for memory_id in sources if memory_id not in erased]
        statements = values.get("statements", {})
        values["statements"] = {
            memory_id: self._without_erased_closing(statement)
            for memory_id, statement in statements.items()
            if memory_id not in erased
        }
        learned = values.get("alias_sources", {})
        unsaid = {
            alias for alias, memory_id in learned.items() if self._tombstones.has_id(memory_id)
        }
        values["aliases"] = [alias for alias in values.get("aliases", []) if alias not in unsaid]
        if values.get("closed_by") and self._tombstones.has_id(values["closed_by"]):
            for name in _CLOSING:
                values.pop(name, None)
        if not erased or values.get("by_hand", True):
            return False
        values.pop("temporal_context", None)
        return not values["sources"]

    def _without_erased_closing(self, statement: dict[str, Any]) -> dict[str, Any]:
        closed_by = statement.get("closed_by")
        if closed_by is None or not self._tombstones.has_id(closed_by):
            return statement
        return {**statement, **dict.fromkeys(_CLOSING, None), "closing_is_undone": 0}

    def finish(self) -> list[str]:
        """Drop what belongs to memories that were not imported, and return notes for the report."""
        if not self._count:
            return []
        if not self._dry_run:
            self._engine.graph_maintenance.sweep()
        summary = counted(self._count, "entity or relationship", "entities and relationships")
        summary = f"of {summary}, what is new is imported"
        return [summary, *self._notes]


def _with_ids(values: Mapping[str, Any], memory_ids: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of an entry, with the ids of memories as they are here."""
    fields = dict(values)
    for name in ("sources", "undone"):
        if name in fields:
            fields[name] = [memory_ids.get(memory_id, memory_id) for memory_id in fields[name]]
    if fields.get("closed_by") is not None:
        fields["closed_by"] = memory_ids.get(fields["closed_by"], fields["closed_by"])
    if "statements" in fields:
        fields["statements"] = {
            memory_ids.get(memory_id, memory_id): _with_ids(statement, memory_ids)
            for memory_id, statement in fields["statements"].items()
        }
    if "alias_sources" in fields:
        learned = fields["alias_sources"].items()
        fields["alias_sources"] = {
            alias: memory_ids.get(memory_id, memory_id) for alias, memory_id in learned
        }
    return fields

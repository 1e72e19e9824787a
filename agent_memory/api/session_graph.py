"""The graph of one user, as a session may use it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from agent_memory.api.plain_arguments import WithCheckedFlags
from agent_memory.errors import PermissionDenied, ValidationError
from agent_memory.models.graph import clean_relationship
from agent_memory.services.graph.changes import NOTHING_HOLDS

if TYPE_CHECKING:
    from agent_memory.api.arguments import Time
    from agent_memory.api.graph import MemoryGraph
    from agent_memory.api.options import OwnEdgeChanges, OwnEdgeOptions, OwnEntityOptions
    from agent_memory.models.graph import (
        EdgeView,
        EntityView,
        GraphChange,
        GraphPath,
        GraphReport,
        GraphUpdates,
        Neighbourhood,
    )
    from agent_memory.models.owner import Owner


class _Scope(TypedDict):
    user_id: str
    run_id: str | None


class SessionGraph(WithCheckedFlags):
    """The graph of one user, as a session may use it; ``MemoryGraph`` explains the verbs.

    A session of a user sees what all of this user's memories say, whatever their run. A session of
    a run sees, and writes, only what the memories of that run say: there the writing verbs require
    a ``memory_id``.
    """

    def __init__(
        self,
        graph: MemoryGraph,
        owner: Owner,
        refuse_unless: Callable[[str], None],
        require: Callable[[str | Iterable[str]], list[str]],
    ) -> None:
        self._graph = graph if owner.run_id is None else graph.within_run(owner.run_id)
        self._owner = owner
        self._scope: _Scope = {"user_id": owner.user_id, "run_id": owner.run_id}
        self._refuse_unless = refuse_unless
        self._require = require

    # Looking ----------------------------------------------------------------------------------

    def entities(self, *, limit: int | None = None) -> list[EntityView]:
        """Return the entities, oldest first."""
        self._refuse_unless("read")
        return self._graph.entities(**self._scope, limit=limit)

    def entity(self, name: str) -> EntityView | None:
        """Return the entity with this name or alias, or ``None``."""
        self._refuse_unless("read")
        return self._graph.entity(name, **self._scope)

    def relationships(
        self,
        entity: str | None = None,
        *,
        as_of: Time | None = None,
        include_closed: bool = False,
        limit: int | None = None,
    ) -> list[EdgeView]:
        """Return the relationships that hold, of one entity or of all, oldest first."""
        self._refuse_unless("read")
        return self._graph.relationships(
            entity, **self._scope, as_of=as_of, include_closed=include_closed, limit=limit
        )

    def neighbours(self, name: str, depth: int = 1, *, as_of: Time | None = None) -> Neighbourhood:
        """Return everything within ``depth`` relationships of an entity, nearest first."""
        self._refuse_unless("read")
        return self._graph.neighbours(name, depth, **self._scope, as_of=as_of)

    def path(
        self, source: str, target: str, max_depth: int = 4, *, as_of: Time | None = None
    ) -> GraphPath:
        """Return a shortest path between two entities."""
        self._refuse_unless("read")
        return self._graph.path(source, target, max_depth, **self._scope, as_of=as_of)

    def related_memory_ids(self, query: str, *, limit: int = 10) -> list[str]:
        """Return the ids of the memories that the graph relates to a query, best first."""
        self._refuse_unless("read")
        return self._graph.related_memory_ids(query, **self._scope, limit=limit)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "graphml",  # noqa: A002 - the option's name
        as_of: Time | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the graph into a private file and return its path."""
        self._refuse_unless("read")
        return self._graph.export(
            path, format=format, **self._scope, as_of=as_of, overwrite=overwrite
        )

    # Changing ---------------------------------------------------------------------------------

    def add_entity(self, name: str, **more: Unpack[OwnEntityOptions]) -> EntityView:
        """Add an entity, or add to an existing one."""
        return self._graph.add_entity(name, **self._writable(more))

    def add(
        self, source: str, relationship: str, target: str, **more: Unpack[OwnEdgeOptions]
    ) -> EdgeView:
        """State that a relationship holds. A memory of another user cannot be its source."""
        return self._graph.add(source, relationship, target, **self._writable(more))

    def update(
        self, source: str, relationship: str, target: str, **more: Unpack[OwnEdgeChanges]
    ) -> GraphChange:
        """Record a change: close the old relationship and open a new one."""
        scoped = self._writable(more)
        self._refuse_unless("delete")  # what held is closed
        return _without_reason(self._graph.update(source, relationship, target, **scoped))

    def apply(
        self,
        updates: GraphUpdates | Mapping[str, Any],
        *,
        source_memory_ids: Sequence[str] = (),
        at: Time | None = None,
    ) -> GraphReport:
        """Carry out instructions in one transaction, and report the outcome of each."""
        self._writable({"memory_id": source_memory_ids or None})
        self._refuse_unless("delete")  # they may close what held
        report = self._graph.apply(
            updates, source_memory_ids=source_memory_ids, **self._scope, at=at
        )
        changes = [_without_reason(change) for change in report.changes]
        return report.model_copy(update={"changes": changes})

    def remove(self, source: str, relationship: str, target: str) -> GraphChange:
        """State that a relationship no longer holds. It remains part of the past.

        In a session of a run it counts as closed for as long as the last memory that states it
        exists.
        """
        self._refuse_unless("delete")
        stated_by: list[str] = []
        if self._owner.run_id is not None:
            stated_by = self._stating(source, relationship, target)
        return self._graph.remove(
            source,
            relationship,
            target,
            memory_id=next(reversed(stated_by), None),
            user_id=self._owner.user_id,
        )

    def merge(self, keep: str, other: str) -> EntityView:
        """Merge two entities whose names mean the same, in the graph of the whole user."""
        self._refuse_unless("write")
        self._refuse_unless("delete")
        if self._owner.run_id is not None:
            raise PermissionDenied(
                "a session of a run may not merge entities that other runs share"
            )
        return self._graph.merge(keep, other, user_id=self._owner.user_id)

    # Inside -----------------------------------------------------------------------------------

    def _writable(self, more: Mapping[str, Any]) -> dict[str, Any]:
        self._refuse_unless("write")
        for name in ("user_id", "run_id"):
            if name in more:
                raise PermissionDenied(f"{name}: the session sets it: leave {name} out")
        memory_ids = more.get("memory_id")
        if memory_ids is not None:
            self._require(memory_ids)
        elif self._owner.run_id is not None:
            message = "is required: a run's graph consists of what its memories state"
            raise ValidationError.of("memory_id", message, None)
        return {**more, **self._scope}

    def _stating(self, source: str, relationship: str, target: str) -> list[str]:
        """Return the memories of the run that say that something holds.

        Raises ``ValidationError`` where none does, whatever other runs say.
        """
        ends = [self._graph.entity(name, **self._scope) for name in (source, target)]
        ids = [end.id for end in ends if end is not None]
        with contextlib.suppress(ValueError):  # of a relationship that `remove` refuses
            verb = clean_relationship(relationship)
            for edge in self.relationships(source) if len(ids) == 2 else []:
                if [edge.source_id, edge.target_id] == ids and edge.relationship == verb:
                    return edge.source_memory_ids
        shown = f"{source} {relationship} {target}"
        message = f"{NOTHING_HOLDS}: {shown!r:.300}"
        raise ValidationError.of("relationship", message, shown)


def _without_reason(change: GraphChange) -> GraphChange:
    """Return a change; of one that was refused no reason that the owner gave."""
    if not change.refused or change.note in (None, NOTHING_HOLDS):
        return change
    return change.model_copy(update={"note": "it contains a value that may not be stored"})

"""``memory.graph``: the entities that the memories mention, how they are related, and when."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.api.arguments import (
    Time,
    check_id,
    check_ids,
    parse_as_of,
    parse_moment,
)
from agent_memory.api.plain_arguments import (
    WithCheckedFlags,
    check_flags,
    check_query,
    check_whole_number,
)
from agent_memory.errors import ValidationError
from agent_memory.models.fields import clean_label, clean_scope_id, clean_text
from agent_memory.models.graph import (
    EdgeView,
    EntityView,
    GraphAction,
    GraphChange,
    GraphExcerpt,
    GraphPath,
    GraphReport,
    GraphUpdate,
    GraphUpdates,
    Neighbourhood,
    clean_name,
    clean_relationship,
)
from agent_memory.models.record import validate_model
from agent_memory.services.graph.changes import Fact

if TYPE_CHECKING:
    from agent_memory.services.graph.service import GraphService

MAX_DEPTH: Final = 8
"""How far ``neighbours`` and ``path`` look at most."""


class MemoryGraph(WithCheckedFlags):
    """The graph of an agent's memories, kept in the same file; it is ``AgentMemory.graph``.

    Entities are identified by name. Case, white space and Unicode forms do not matter, aliases
    count as names, and ``USER_ID``, ``user``, ``I``, ``me`` and the user's id stand for the user of
    the graph; ``for_display()`` of a result has that id instead of ``USER_ID``. A relationship is a
    verb (``works_at``, the same as "works at"). What was read from memories (``memory_id``) is
    hidden while none of those memories exists, comes back with them, and is gone once they are
    erased. What was added without a memory stays.

    ``user_id`` says whose graph is meant; the graphs of different users never mix. When writing,
    ``None`` means the user of the memories, or else the agent's own graph; when reading, ``None``
    means all graphs. ``run_id`` limits reading to what the memories of one run state, and to what
    was added by hand in that run. Times are given as for ``AgentMemory``. ``as_of`` returns what
    held at a time, as far as is known today, including what memories stated that were deleted
    later.

    Traversal runs in SQL and is bounded: 8 steps and 20,000 entities (counted once per distance),
    of which a neighbourhood returns the nearest 2,000; the result says if a bound was reached. In a
    graph of 100,000 relationships, everything within 2 steps takes about 40 ms, a path of up to 4
    steps 10 ms, and one of up to 6 steps 90 ms (``bench/graph.py``). For everything within 4 steps
    of such a graph, weighted paths, centrality or communities, ``export`` it to a graph library.
    """

    def __init__(
        self, open_store: Callable[[], GraphService], destination: Callable[..., Path]
    ) -> None:
        self._open_store = open_store
        self._destination = destination

    @property
    def _store(self) -> GraphService:
        return self._open_store()

    def within_run(self, run_id: str) -> MemoryGraph:
        """Return this graph as a reader of one run's memories may see it; run sessions use it.

        What its verbs change and return follows from the memories of this run alone.
        """
        return MemoryGraph(lambda: self._store.within_run(run_id), self._destination)

    # Changing ---------------------------------------------------------------------------------

    def add_entity(
        self,
        name: str,
        *,
        type: str | None = None,  # noqa: A002 - C's name
        aliases: Sequence[str] = (),
        confidence: float | None = None,
        memory_id: str | None = None,
        user_id: str | None = None,
        run_id: str | None = None,
    ) -> EntityView:
        """Add an entity, or add aliases, a type and a confidence to an existing one, and return it.

        Raises ``ValidationError`` if another entity has one of the aliases (``merge`` joins two
        entities), and ``MemoryNotFound``.
        """
        if isinstance(aliases, str) or not isinstance(aliases, Iterable):
            raise ValidationError.of("aliases", "must be a list of names", aliases)
        return self._store.add_entity(
            _cleaned("name", name, clean_name),
            kind=_optional("type", type, clean_name),
            aliases=[_cleaned("aliases", alias, clean_name) for alias in aliases],
            confidence=_confidence(confidence),
            memory_ids=_ids(memory_id),
            user_id=_optional("user_id", user_id, clean_scope_id),
            run_id=_optional("run_id", run_id, clean_scope_id),
        )

    def add(
        self,
        source: str,
        relationship: str,
        target: str,
        *,
        confidence: float = 1.0,
        valid_from: Time | None = None,
        memory_id: str | None = None,
        user_id: str | None = None,
        run_id: str | None = None,
        temporal_context: str | None = None,
        exclusive: bool | None = None,
    ) -> EdgeView:
        """State that a relationship holds from ``valid_from`` (default: now) on, and return it.

        Unknown entities are created. A relationship that already holds is not duplicated; the
        memory is added to its sources. ``exclusive`` closes the source's relationships of the same
        kind with other targets; ``None`` does so for ``lives_in``, ``works_at``, ``works_as``,
        ``is_married_to`` and ``is_named``. A relationship that began later than ``valid_from``
        stays open, and the new one ends where that one began. ``temporal_context`` describes in
        words when it holds. Raises ``ValidationError`` and ``MemoryNotFound``.
        """
        if exclusive is not None:
            check_flags(exclusive=exclusive)
        fact = Fact(
            source=_cleaned("source", source, clean_name),
            relationship=_cleaned("relationship", relationship, clean_relationship),
            target=_cleaned("target", target, clean_name),
            confidence=1.0 if confidence is None else _confidence(confidence) or 0.0,
            temporal_context=_optional("temporal_context", temporal_context, clean_text),
            valid_from=None if valid_from is None else parse_moment("valid_from", valid_from),
            exclusive=exclusive,
        )
        return self._store.add(
            fact,
            memory_ids=_ids(memory_id),
            user_id=_optional("user_id", user_id, clean_scope_id),
            run_id=_optional("run_id", run_id, clean_scope_id),
        )

    def update(
        self,
        source: str,
        relationship: str,
        target: str,
        *,
        old_relationship: str | None = None,
        confidence: float | None = None,
        valid_from: Time | None = None,
        memory_id: str | None = None,
        user_id: str | None = None,
        run_id: str | None = None,
    ) -> GraphChange:
        """Record a change: close the old relationship and open a new one.

        With ``old_relationship``, the one between the same two entities is closed ("likes" becomes
        "loves"); without it, the source's relationship of the same kind with another target
        ("lives_in" moves on). If there is none, or more than one, the new relationship is added all
        the same and ``note`` says so. Raises ``ValidationError`` and ``MemoryNotFound``.
        """
        update = {"action": GraphAction.UPDATE, "source": source, "relationship": relationship,
                "target": target, "old_relationship": old_relationship,
                "confidence": confidence}  # fmt: skip
        return self._apply_one(
            update, valid_from, memory_id=memory_id, user_id=user_id, run_id=run_id
        )

    def remove(
        self,
        source: str,
        relationship: str,
        target: str,
        *,
        valid_to: Time | None = None,
        memory_id: str | None = None,
        user_id: str | None = None,
    ) -> GraphChange:
        """State that a relationship no longer holds, from ``valid_to`` (default: now) on.

        It remains part of the past. Raises ``ValidationError`` if no such relationship holds, and
        ``MemoryNotFound``.
        """
        update = {"action": GraphAction.DELETE, "source": source, "relationship": relationship,
                "target": target}  # fmt: skip
        change = self._apply_one(
            update, valid_to, memory_id=memory_id, user_id=user_id, run_id=None
        )
        if change.refused:
            shown = f"{source} {relationship} {target}"
            raise ValidationError.of("relationship", f"{change.note}: {shown!r:.300}", shown)
        return change

    def _apply_one(
        self,
        update: dict[str, Any],
        at: Time | None,
        *,
        memory_id: str | None,
        user_id: str | None,
        run_id: str | None,
    ) -> GraphChange:
        report = self.apply(
            {"updates": [validate_model(GraphUpdate, update)]},
            source_memory_ids=_ids(memory_id),
            user_id=user_id,
            run_id=run_id,
            at=at,
        )
        return report.changes[0]

    def apply(
        self,
        updates: GraphUpdates | Mapping[str, Any],
        *,
        source_memory_ids: Sequence[str] = (),
        user_id: str | None = None,
        run_id: str | None = None,
        at: Time | None = None,
    ) -> GraphReport:
        """Carry out instructions in one transaction, and report the outcome of each.

        They are taken as stated by ``source_memory_ids``, from the moment ``at`` (default: now) on.
        A DELETE of something that does not hold is refused and reported, and so is anything that
        contains a rejected value. An UPDATE whose old relationship does not exist is added, with a
        note. Raises ``ValidationError`` and ``MemoryNotFound``; then nothing was changed.
        """
        if isinstance(source_memory_ids, str):
            source_memory_ids = [source_memory_ids]
        changes = self._store.apply(
            validate_model(GraphUpdates, updates).updates,
            memory_ids=check_ids(source_memory_ids),
            user_id=_optional("user_id", user_id, clean_scope_id),
            run_id=_optional("run_id", run_id, clean_scope_id),
            at=None if at is None else parse_moment("at", at),
        )
        return GraphReport(changes=changes)

    def merge(self, keep: str, other: str, *, user_id: str | None = None) -> EntityView:
        """Merge two entities whose names mean the same, and return the one that is kept.

        The aliases, relationships and memories of ``other`` become those of ``keep``, and its name
        an alias. ``undo`` cannot take this back. Raises ``ValidationError`` if no entity has one of
        the names.
        """
        return self._store.merge(
            _cleaned("keep", keep, clean_name),
            _cleaned("other", other, clean_name),
            user_id=_optional("user_id", user_id, clean_scope_id),
        )

    # Looking ----------------------------------------------------------------------------------

    def entities(
        self,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> list[EntityView]:
        """Return the entities, oldest first, at most ``limit`` of them.

        ``after`` is the id of the last entity of the previous page. Raises ``ValidationError`` if
        there is no such entity.
        """
        last_seen = _optional("after", after, clean_text)
        return self._store.entities(*_scope(user_id, run_id), after=last_seen, limit=_limit(limit))

    def of_memory(self, memory_id: str) -> GraphExcerpt:
        """Return the entities and relationships that were read from a memory, at any time.

        Raises ``MemoryNotFound``.
        """
        return self._store.of_memory(check_id("memory_id", memory_id))

    def entity(
        self, name: str, *, user_id: str | None = None, run_id: str | None = None
    ) -> EntityView | None:
        """Return the entity with this name or alias, or ``None``."""
        return self._store.entity(_cleaned("name", name, clean_name), *_scope(user_id, run_id))

    def relationships(
        self,
        entity: str | None = None,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        as_of: Time | None = None,
        include_closed: bool = False,
        limit: int | None = None,
    ) -> list[EdgeView]:
        """Return the relationships that hold, of one entity or of all, oldest first.

        ``as_of`` returns those that held at a time; ``include_closed`` adds those that held
        earlier. Raises ``ValidationError`` if no entity has the name.
        """
        return self._store.relationships(
            _optional("entity", entity, clean_name),
            *_scope(user_id, run_id),
            as_of=_as_of(as_of),
            include_closed=include_closed,
            limit=_limit(limit),
        )

    def neighbours(
        self,
        name: str,
        depth: int = 1,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        as_of: Time | None = None,
    ) -> Neighbourhood:
        """Return everything within ``depth`` relationships (1 to 8) of an entity, nearest first.

        Raises ``ValidationError`` if no entity has the name.
        """
        return self._store.neighbours(
            _cleaned("name", name, clean_name),
            *_scope(user_id, run_id),
            depth=check_whole_number("depth", depth, lowest=1, highest=MAX_DEPTH),
            as_of=_as_of(as_of),
        )

    def path(
        self,
        source: str,
        target: str,
        max_depth: int = 4,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        as_of: Time | None = None,
    ) -> GraphPath:
        """Return a shortest path between two entities, of up to ``max_depth`` steps (1 to 8).

        The direction of the relationships is ignored. If there is no path, the result is falsy.
        Raises ``ValidationError`` if no entity has one of the names.
        """
        return self._store.path(
            _cleaned("source", source, clean_name),
            _cleaned("target", target, clean_name),
            *_scope(user_id, run_id),
            depth=check_whole_number("max_depth", max_depth, lowest=1, highest=MAX_DEPTH),
            as_of=_as_of(as_of),
        )

    def related_memory_ids(
        self,
        query: str,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        limit: int = 10,
    ) -> list[str]:
        """Return the ids of the memories that the graph relates to a query, best first.

        They are those behind the relationships of the entities that the query names. A relationship
        counts most if the query names both of its ends, then if it names one; the words of the
        relationship and of its other end count too. Relationships of direct neighbours come last.
        "I" and "my" stand for the user. No query text is an error. ``limit`` is at least 1.
        """
        check_whole_number("limit", limit, lowest=1)
        return self._store.related_memory_ids(
            check_query(query), *_scope(user_id, run_id), limit=limit
        )

    # Writing out ------------------------------------------------------------------------------

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "graphml",  # noqa: A002 - the option's name
        user_id: str | None = None,
        run_id: str | None = None,
        as_of: Time | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the graph to a private file, completely or not at all, and return its path.

        ``graphml`` can be read by Gephi, yEd and networkx; ``json`` has entities and relationships.
        Both include closed relationships, each with its start and end; ``as_of`` writes only what
        held at that time. Raises ``ValidationError``, ``StorageFull`` and ``StorageUnavailable``.
        """
        from agent_memory.formats.graphml import WRITERS, refuse_target  # noqa: PLC0415 - seldom used

        if format not in [*WRITERS]:  # a list as the format has no hash to be looked up by
            raise ValidationError.of("format", f"must be one of {', '.join(WRITERS)}", format)
        place = self._destination(path, overwrite=overwrite)
        refuse_target(place)
        entities, edges = self._store.everything(*_scope(user_id, run_id), _as_of(as_of))
        WRITERS[format](place, entities, edges)
        return place


def _cleaned(field: str, value: str, clean: Callable[[str], str]) -> str:
    if not isinstance(value, str):
        raise ValidationError.of(field, "must be a string", value)
    try:
        return clean(value)
    except ValueError as error:
        raise ValidationError.of(field, str(error), value) from error


def _scope(user_id: str | None, run_id: str | None) -> tuple[str | None, str | None]:
    """Return whose graph is looked at, and of which run; a file may have ids of any form."""
    return _optional("user_id", user_id, clean_label), _optional("run_id", run_id, clean_label)


def _optional(field: str, value: str | None, clean: Callable[[str], str]) -> str | None:
    return None if value is None else _cleaned(field, value, clean)


def _ids(memory_id: str | None) -> list[str]:
    return [] if memory_id is None else check_ids(memory_id)


def _as_of(moment: Time | None) -> Any:  # noqa: ANN401 - a time, or None
    return None if moment is None else parse_as_of(moment)


def _limit(limit: int | None) -> int:
    return -1 if limit is None else check_whole_number("limit", limit, lowest=1)


def _confidence(value: float | None) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value <= 1.0:
        raise ValidationError.of("confidence", "must be a number from 0 to 1", value)
    return float(value)

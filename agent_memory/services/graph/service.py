"""The graph in one agent's file: one transaction per method, as in ``Store``."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from agent_memory.errors import MemoryNotFound, ValidationError
from agent_memory.models.fields import UNSTORABLE
from agent_memory.models.graph import (
    USER_NAME,
    EdgeView,
    EntityView,
    GraphChange,
    GraphExcerpt,
    GraphPath,
    GraphUpdate,
    Neighbour,
    Neighbourhood,
    name_key,
)
from agent_memory.models.times import format_time
from agent_memory.services.graph.changes import (
    Fact,
    GraphChanges,
    complete,
    has_name,
    no_entity,
)
from agent_memory.services.unit_of_work import Service, repeated_if_undone
from agent_memory.storage.change_records import GraphMoment

MOST_SHOWN: Final = 2_000
"""Maximum entities, and relationships, that a neighbourhood lists: the nearest."""
_MOST_AROUND: Final = 500
_USER_KEY: Final = name_key(USER_NAME)


class GraphService(Service):
    """The entities and relationships of one file.

    ``only_run`` is set for callers who may read only that run, in whose changes it counts.
    """

    only_run: str | None = None

    def within_run(self, run_id: str) -> GraphService:
        """Return this service for a caller who may read the memories of one run only."""
        narrowed = GraphService(self._engine, self._unit_of_work, self._clock)
        narrowed.only_run = run_id
        return narrowed

    # Changing ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _graph_changes(
        self, user_id: str | None, run_id: str | None = None, memory_ids: Sequence[str] = ()
    ) -> Iterator[GraphChanges]:
        with self._unit_of_work.write() as now:
            yield GraphChanges(
                self._engine,
                user_id=user_id,
                run_id=run_id,
                memory_ids=memory_ids,
                now=now,
                only_run=self.only_run,
            )

    @repeated_if_undone
    def add_entity(
        self,
        name: str,
        *,
        kind: str | None,
        aliases: Sequence[str],
        confidence: float | None,
        memory_ids: Sequence[str],
        user_id: str | None,
        run_id: str | None,
    ) -> EntityView:
        """Add an entity, or add to an existing one, and return it."""
        with self._graph_changes(user_id, run_id, memory_ids) as graph:
            entity_id = graph.entity(name, kind=kind, confidence=confidence, aliases=aliases)
            return self._entities(graph.user_id, [entity_id], run_id=self.only_run)[0]

    @repeated_if_undone
    def add(
        self,
        fact: Fact,
        *,
        memory_ids: Sequence[str],
        user_id: str | None,
        run_id: str | None,
    ) -> EdgeView:
        """Add a relationship and return it."""
        with self._graph_changes(user_id, run_id, memory_ids) as graph:
            outcome = graph.add(fact)
            when = self._moment(graph.user_id, self.only_run, None)
            return self._engine.graph.edges(when, ids=[outcome.edge_id], at_any_time=True)[-1]

    @repeated_if_undone
    def apply(
        self,
        updates: Sequence[GraphUpdate],
        *,
        memory_ids: Sequence[str],
        user_id: str | None,
        run_id: str | None,
        at: datetime | None,
    ) -> list[GraphChange]:
        """Apply instructions in order, and return the outcome of each."""
        with self._graph_changes(user_id, run_id, memory_ids) as graph:
            return [graph.apply(update, at=at) for update in updates]

    @repeated_if_undone
    def merge(self, keep: str, other: str, *, user_id: str | None) -> EntityView:
        """Merge two entities and return the result."""
        with self._graph_changes(user_id) as graph:
            kept = graph.merge(keep, other)
            entities = self._entities(None, [kept])
        if not entities:
            raise no_entity("keep", keep)
        return entities[0]

    # Reading ----------------------------------------------------------------------------------

    # ``None`` as a user means everybody, as a run all runs.

    def entities(
        self, user_id: str | None, run_id: str | None, *, after: str | None = None, limit: int
    ) -> list[EntityView]:
        """Return the entities of one user's graph, oldest first, or those after one of them."""
        with self._read():
            if after is not None and not self._engine.graph.names([after]):
                raise ValidationError.of(
                    "after", "no entity has this id: start again from the first page", after
                )
            return self._engine.graph.entities(
                user_id=user_id, run_id=run_id, after=after, limit=limit
            )

    def of_memory(self, memory_id: str) -> GraphExcerpt:
        """Return what one memory says. Raises ``MemoryNotFound``."""
        with self._read():
            if not self._engine.memories.exists(memory_id):
                raise MemoryNotFound(memory_id)
            when = self._moment(None, self.only_run, None)
            entities, edges = (
                self._engine.graph.ids_read_from(memory_id, kind=kind)
                for kind in ("entity", "relationship")
            )
            return GraphExcerpt(
                entities=self._entities(None, entities, run_id=self.only_run),
                relationships=self._engine.graph.edges(when, ids=edges, at_any_time=True),
            )

    def entity(self, name: str, user_id: str | None, run_id: str | None) -> EntityView | None:
        """Return the entity that has a name or an alias; among several users', the oldest."""
        with self._read():
            entities = self._named(name, user_id, run_id)
        return entities[0] if entities else None

    def relationships(
        self,
        entity: str | None,
        user_id: str | None,
        run_id: str | None,
        *,
        as_of: datetime | None,
        include_closed: bool,
        limit: int,
    ) -> list[EdgeView]:
        """Return the relationships of one entity or of all, oldest first."""
        with self._read():
            when = self._moment(user_id, run_id, as_of)
            among = None if entity is None else self._visible_ids("entity", entity, when)
            return self._engine.graph.edges(
                when, among=among, include_closed=include_closed, limit=limit
            )

    def neighbours(
        self,
        name: str,
        user_id: str | None,
        run_id: str | None,
        *,
        depth: int,
        as_of: datetime | None,
    ) -> Neighbourhood:
        """Return what is within so many relationships of an entity."""
        with self._read():
            when = self._moment(user_id, run_id, as_of)
            start = self._visible_ids("name", name, when)
            distances, truncated = self._engine.graph.reached(when, start, depth)
            edges = self._edges_near(when, distances, depth)
            others = [entity_id for entity_id in distances if entity_id not in start]
            names = self._names(when, [*start, *others[:MOST_SHOWN]])
            if when.run_id is not None:  # at one distance, in the run's own order
                places = {entity_id: place for place, entity_id in enumerate(names)}
                others.sort(
                    key=lambda entity_id: (distances[entity_id], places.get(entity_id, len(places)))
                )
        return Neighbourhood(
            name=names[start[0]][0],
            neighbours=[
                Neighbour(
                    id=entity_id,
                    name=names[entity_id][0],
                    type=names[entity_id][1],
                    distance=distances[entity_id],
                )
                for entity_id in others[:MOST_SHOWN]
                if entity_id in names
            ],
            edges=edges[:MOST_SHOWN],
            truncated=truncated or max(len(edges), len(others)) > MOST_SHOWN,
        )

    def _edges_near(
        self, when: GraphMoment, distances: dict[str, int], depth: int
    ) -> list[EdgeView]:
        """Return the relationships of a walk, those at the nearest entities first."""
        edges: dict[str, EdgeView] = {}
        for distance in range(depth):
            if len(edges) > MOST_SHOWN:
                break
            among = [entity_id for entity_id, steps in distances.items() if steps == distance]
            nearby = self._engine.graph.edges(when, among=among, limit=MOST_SHOWN + 1)
            edges.update((edge.id, edge) for edge in nearby)
        return list(edges.values())

    def path(
        self,
        source: str,
        target: str,
        user_id: str | None,
        run_id: str | None,
        *,
        depth: int,
        as_of: datetime | None,
    ) -> GraphPath:
        """Return a shortest path between two entities, searched from both of them."""
        with self._read():
            when = self._moment(user_id, run_id, as_of)
            start = self._visible_ids("source", source, when)
            end = self._visible_ids("target", target, when)
            near, cut = self._engine.graph.reached(when, start, (depth + 1) // 2)
            far, also_cut = self._engine.graph.reached(when, end, depth // 2)
            met = min(
                near.keys() & far.keys(),
                key=lambda entity_id: (near[entity_id] + far[entity_id], entity_id),
                default=None,
            )
            if met is None:
                return GraphPath(truncated=cut or also_cut)
            to_start, origin = self._way_back(when, met, near)
            to_end, _ = self._way_back(when, met, far)
            ids = [*reversed(to_start), *to_end]
            return self._way(when, origin, ids)

    def _way_back(
        self, when: GraphMoment, entity_id: str, distances: dict[str, int]
    ) -> tuple[list[str], str]:
        """Return the relationships from an entity back to distance 0, and the id of that end."""
        way = []
        while distance := distances[entity_id]:
            nearer = [nearer_id for nearer_id, steps in distances.items() if steps == distance - 1]
            step = self._engine.graph.edge_between(when, entity_id, nearer)
            if step is None:
                break
            edge_id, entity_id = step
            way.append(edge_id)
        return way, entity_id

    def _way(self, when: GraphMoment, start: str, ids: Sequence[str]) -> GraphPath:
        # One by one: if several rows state it, it is shown as the first of them.
        edges = [self._engine.graph.edges(when, ids=[edge_id])[0] for edge_id in ids]
        names = [self._names(when, [start])[start][0]]
        for edge in edges:
            start = edge.target_id if edge.source_id == start else edge.source_id
            names.append(edge.target if edge.target_id == start else edge.source)
        return GraphPath(names=names, edges=edges, found=True)

    def everything(
        self, user_id: str | None, run_id: str | None, as_of: datetime | None
    ) -> tuple[list[EntityView], list[EdgeView]]:
        """Return the whole graph as of one moment; without ``as_of``, at all times."""
        with self._read():
            when = self._moment(user_id, run_id, as_of)
            edges = self._engine.graph.edges(when, at_any_time=as_of is None)
            entities = self._entities(user_id, None, run_id=run_id)
            # For a time in the past, also what only memories that no longer exist mentioned.
            seen = {entity.id for entity in entities}
            ends = {end for edge in edges for end in (edge.source_id, edge.target_id)}
            entities += self._engine.graph.entities(
                user_id=user_id,
                run_id=run_id,
                ids=sorted(ends - seen),
                out_of_sight=True,
            )
            return entities, edges

    def related_memory_ids(
        self, query: str, user_id: str | None, run_id: str | None, *, limit: int
    ) -> list[str]:
        """Return the memories behind relationships of entities that a query names, best first."""
        words = _query_words(query)
        scored: dict[str, float] = {}
        with self._read():
            named = self._named_among(_keys_of(words, user_id), user_id, run_id)
            if not named:
                return []
            asked = set(words)
            for weight, edges in self._around(list(named), user_id, run_id):
                for edge in edges:
                    worth = weight * edge.confidence * _worth_of(edge, named, asked)
                    for memory_id in edge.source_memory_ids:
                        scored[memory_id] = max(scored.get(memory_id, 0.0), worth)
            memory_ids = self._engine.graph.unarchived_ids(list(scored))
        return sorted(memory_ids, key=lambda memory_id: (-scored[memory_id], memory_id))[:limit]

    def _named_among(
        self, keys: Sequence[str], user_id: str | None, run_id: str | None
    ) -> dict[str, str]:
        """Return the entities whose names or aliases are among these keys: id and key of each."""
        named = self._engine.graph.find_all(keys, user_id)
        if run_id is None:
            return named
        views = self._entities(user_id, list(named), run_id=run_id)
        return {view.id: key for view in views for key in sorted(keys) if has_name(view, key)}

    def _around(
        self, ids: Sequence[str], user_id: str | None, run_id: str | None
    ) -> Iterator[tuple[float, list[EdgeView]]]:
        """Yield the relationships of some entities, and of their neighbours, each with a weight."""
        when = self._moment(user_id, run_id, None)
        look = partial(self._engine.graph.edges, when, limit=_MOST_AROUND)
        near = look(among=ids)
        yield 1.0, near
        ends = {end for edge in near for end in (edge.source_id, edge.target_id)}
        near_ids = {edge.id for edge in near}
        far = look(among=sorted(ends - set(ids)))
        yield 0.25, [edge for edge in far if edge.id not in near_ids]

    # Inside -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _read(self) -> Iterator[None]:
        """Run the body in one read transaction, in which every name can be found."""
        if self._engine.can_write and self._engine.graph.rows_without_key():
            with self._unit_of_work.write():
                complete(self._engine)
        with self._engine.read():
            yield

    def _moment(
        self, user_id: str | None, run_id: str | None, as_of: datetime | None
    ) -> GraphMoment:
        now = self._clock() if as_of is None else as_of
        return GraphMoment(format_time(now), user_id, is_past=as_of is not None, run_id=run_id)

    def _entities(
        self, user_id: str | None, ids: Sequence[str] | None, *, run_id: str | None = None
    ) -> list[EntityView]:
        return self._engine.graph.entities(user_id=user_id, run_id=run_id, ids=ids)

    def _ids(self, name: str, user_id: str | None) -> list[str]:
        """Return the entities with a name; if all graphs are meant, also the user with that id."""
        ids = list(self._engine.graph.find_all([name_key(name, user_id)], user_id))
        if user_id is None:  # an id in any case would be looked for in all rows
            owners = dict.fromkeys((name, name.lower(), name.capitalize()))
            users = (self._engine.graph.find(_USER_KEY, owner) for owner in owners)
            ids += [user for user in users if user is not None]
        return ids

    def _named(self, name: str, user_id: str | None, run_id: str | None) -> list[EntityView]:
        """Return the entities with a name; within a run, those that its memories call so."""
        views = self._entities(user_id, self._ids(name, user_id), run_id=run_id)
        if run_id is None:
            return views
        return [view for view in views if has_name(view, name_key(name, view.user_id))]

    def _names(self, when: GraphMoment, ids: Sequence[str]) -> Mapping[str, tuple[str, str | None]]:
        """Return the names and types of entities; within a run, as its memories have them."""
        if when.run_id is None:
            return self._engine.graph.names(ids)
        views = self._entities(when.user_id, ids, run_id=when.run_id)
        return {view.id: (view.name, view.type) for view in views}

    def _visible_ids(self, field: str, name: str, when: GraphMoment) -> list[str]:
        """Return the visible entities with a name; for the past, all of them.

        Within a run, only those that its memories mention now. Raises ``ValidationError`` if there
        is none.
        """
        if when.is_past and when.run_id is None:
            ids = self._ids(name, when.user_id)
        else:
            ids = [entity.id for entity in self._named(name, when.user_id, when.run_id)]
        if not ids:
            raise no_entity(field, name)
        return ids


_MOST_WORDS: Final = 200
"""Maximum words of a query that are checked."""
_LONGEST_RUN: Final = 6
"""Maximum words of a query that are checked as one name."""
_MARKS: Final = re.compile(r"^[\W_]+|(?:['\u2019]s)?[\W_]*$")
_OWN: Final = frozenset({"i", "me", "my", "mine", "myself", "user"})


def _query_words(query: str) -> list[str]:
    """Return the words of a query in lower case, without surrounding punctuation."""
    # Half of a surrogate pair ended a search with SQLite's error.
    words = UNSTORABLE.sub(" ", query).lower().split()[:_MOST_WORDS]
    bare = (_MARKS.sub("", word) for word in words)
    return [word for word in bare if word]


def _keys_of(words: Sequence[str], user_id: str | None) -> list[str]:
    """Return the keys of all names that adjacent words may form."""
    runs = {
        name_key(" ".join(words[start:end]), user_id)
        for start in range(len(words))
        for end in range(start + 1, min(start + _LONGEST_RUN, len(words)) + 1)
    }
    return sorted(runs | ({_USER_KEY} if _OWN.intersection(words) else set()))


def _worth_of(edge: EdgeView, named: Mapping[str, str], query_terms: set[str]) -> float:
    """Return how relevant a relationship is to a query."""
    ends = [named.get(end) for end in (edge.source_id, edge.target_id)]
    worth = sum(0.0 if key is None else 0.5 if key == _USER_KEY else 1.0 for key in ends)
    words = {*edge.relationship.lower().split("_"), *edge.target.lower().split(),
             *edge.source.lower().split()}  # fmt: skip
    stems = {word.rstrip("s") for word in words}
    shared = sum(word.rstrip("s") in stems for word in query_terms)
    return max(worth, 0.5) + 0.5 * shared

"""Changes of the graph, inside one transaction: relationships opened, closed or refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from agent_memory.errors import MemoryNotFound, RejectedContent, ValidationError
from agent_memory.models.decision import Decision, DecisionOutcome
from agent_memory.models.graph import (
    EXCLUSIVE,
    USER_ALIASES,
    USER_NAME,
    EdgeView,
    EntityView,
    GraphAction,
    GraphChange,
    GraphUpdate,
    clean_name,
    clean_relationship,
    name_key,
)
from agent_memory.models.memory import Memory
from agent_memory.models.times import format_time
from agent_memory.services.policies.admission import Admission
from agent_memory.storage.change_records import Closing, GraphMoment
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Row

_USER_TYPE: Final = "person"
NOTHING_HOLDS: Final = "no such relationship holds now"
"""Why a relationship is not closed."""


class Fact(NamedTuple):
    """A relationship to add. ``exclusive`` means: with no other target at the same time.

    If that is ``None``, ``EXCLUSIVE`` decides. ``valid_from`` is when it began; by default, now.
    """

    source: str
    relationship: str
    target: str
    confidence: float = 1.0
    temporal_context: str | None = None
    valid_from: datetime | None = None
    exclusive: bool | None = None


@dataclass(slots=True)
class Outcome:
    """The relationship that holds now, and those that were closed for it."""

    edge_id: str
    closed: list[str] = field(default_factory=list)


class GraphChanges:
    """Changes of one user's graph, read from some memories or made by hand.

    Must run inside ``write()``. ``user_id`` is the owner of the graph; ``None`` is the user of the
    memories, or the agent itself. The changes apply to what all memories say together, and to what
    those of the same run say. ``only_run`` is set for callers who may read only that run: what is
    decided and reported then depends only on the run's memories. ``contradicts`` has the ids of the
    memories whose exclusive relationships an added one may close; ``None`` means whoever states
    them. Raises ``MemoryNotFound`` for a memory that does not exist or is another user's, and
    ``ValidationError`` for memories of several users.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        user_id: str | None,
        run_id: str | None,
        memory_ids: Sequence[str],
        now: datetime,
        only_run: str | None = None,
        contradicts: Collection[str] | None = None,
    ) -> None:
        self._engine = engine
        self._contradicts = contradicts
        self._run_id = run_id
        self._only_run = only_run
        self._now = format_time(now)
        self._admission = Admission(engine)
        self._sources: dict[str, int | None] = {}
        self._run_of: dict[str, str | None] = {}
        self.user_id = self._owner(user_id, memory_ids)
        complete(engine)

    def _owner(self, user_id: str | None, memory_ids: Sequence[str]) -> str | None:
        memories = self._engine.graph.memories(memory_ids)
        for memory_id in memory_ids:
            if memory_id not in memories or (
                user_id is not None and memories[memory_id][0] != user_id
            ):
                raise MemoryNotFound(memory_id)
            _, self._sources[memory_id], self._run_of[memory_id] = memories[memory_id]
        users = {memories[memory_id][0] for memory_id in self._sources}
        if user_id is None and len(users) > 1:
            message = "belong to several users: give those of one user"
            raise ValidationError.of("source_memory_ids", message, list(memory_ids))
        return user_id if user_id is not None or not users else users.pop()

    @property
    def _runs(self) -> list[str]:
        return list(dict.fromkeys(run for run in self._run_of.values() if run is not None))

    # Entities ---------------------------------------------------------------------------------

    def entity(
        self,
        name: str,
        *,
        kind: str | None = None,
        confidence: float | None = None,
        aliases: Sequence[str] = (),
    ) -> str:
        """Return the id of the entity with this name, which is created if needed.

        ``kind`` is its type. Raises ``ValidationError`` for an alias that another one has.
        """
        line = clean_name(name)
        key = self._key(line)
        entity_id = self._find(line)
        self._refuse_rejected(line, kind, *aliases)
        given_values = {"type": kind, "confidence": confidence}
        values = {name: value for name, value in given_values.items() if value is not None}
        statement = {"name": line, **given_values}
        if key == USER_NAME.lower():
            statement |= {"name": USER_NAME, "type": _USER_TYPE if kind is None else kind}
        if entity_id is None:
            entity_id = self._new_entity(key, statement)
        elif values:
            self._engine.graph.update_entity(entity_id, values, self._now)
        self._link("entity", entity_id, dict.fromkeys(self._sources, statement))
        for alias in aliases:
            self._add_alias(entity_id, clean_name(alias))
        return entity_id

    def _new_entity(self, key: str, statement: Mapping[str, object]) -> str:
        known_values = {name: value for name, value in statement.items() if value is not None}
        columns = {
            **known_values,
            "name_key": key,
            "user_id": self.user_id,
            "run_id": self._run_id,
            "by_hand": int(not self._sources),
            "created_at": self._now,
            "updated_at": self._now,
        }
        entity_id = self._engine.graph.insert_entity(columns)
        for alias in USER_ALIASES if key == USER_NAME.lower() else ():
            self._engine.graph.add_alias(entity_id, alias, key, None)
        return entity_id

    def _add_alias(self, entity_id: str, alias: str) -> None:
        taken_by = self._find(alias)
        if taken_by == entity_id:
            return
        if taken_by is not None and self._is_known(taken_by, alias):
            taken = self._engine.graph.entity_row(taken_by)["name"]
            message = f"is already a name of {taken!r}: merge the two if they are the same"
            raise ValidationError.of("aliases", message, alias)
        memory_id = next(iter(self._sources), None)
        self._engine.graph.add_alias(entity_id, alias, self._key(alias), memory_id)

    def _is_known(self, entity_id: str, name: str) -> bool:
        """Return whether the caller may know that an entity has a name."""
        if self._only_run is None:
            return True
        views = self._engine.graph.entities(
            user_id=self.user_id, run_id=self._only_run, ids=[entity_id]
        )
        return any(has_name(view, self._key(name)) for view in views)

    def _key(self, name: str) -> str:
        return name_key(name, self.user_id)

    def _find(self, name: str) -> str | None:
        return self._engine.graph.find(self._key(clean_name(name)), self.user_id)

    def _link(self, kind: str, of: str, statements: Mapping[str, Mapping[str, object]]) -> None:
        """Record the memories this was read from, with what each says, or that it needs none."""
        for memory_id, change_id in self._sources.items():
            times = {"created_at": self._now, "updated_at": self._now}
            statement = {**statements[memory_id], **times}
            self._engine.graph.add_source(kind, of, memory_id, change_id, statement)
        if not self._sources:
            self._engine.graph.mark_by_hand(kind, of)

    def _refuse_rejected(self, *texts: str | None) -> None:
        for text in texts:
            if text is not None:
                self._admission.refuse_row({"content": text})

    # Relationships ----------------------------------------------------------------------------

    def add(self, fact: Fact) -> Outcome:
        """Open a relationship, or record that it was stated again."""
        relationship = clean_relationship(fact.relationship)
        self._refuse_rejected(fact.source, fact.target, fact.relationship, fact.temporal_context)
        source, target = self.entity(fact.source), self.entity(fact.target)
        start = self._start(fact.valid_from)
        others = partial(self._others, fact, source, relationship, target, start)
        ends, closed = others(None)
        in_runs = {run: others(run) for run in self._runs}
        same = self._same(source, relationship, target)
        for edge_id in closed:
            self._engine.graph.close_edge(edge_id, self._closing(start), but_in_runs=self._runs)
        for run, (_, edge_ids) in in_runs.items():
            for edge_id in edge_ids:
                self._engine.graph.close_in_run(edge_id, self._closing(start), run)
        if same is not None:
            edge_id, ends = same, None
            self._engine.graph.confirm_edge(
                edge_id,
                confidence=fact.confidence,
                context=fact.temporal_context,
                start=start,
                now=self._now,
            )
        else:
            edge_id = self._open(fact, source, relationship, target, start, ends)
        statement = {
            "confidence": fact.confidence,
            "temporal_context": fact.temporal_context,
            "valid_from": start,
        }
        statements = {
            memory_id: {**statement, "valid_to": ends if run is None else in_runs[run][0]}
            for memory_id, run in self._run_of.items()
        }
        self._link("relationship", edge_id, statements)
        return Outcome(edge_id, closed if self._only_run is None else in_runs[self._only_run][1])

    def _others(
        self, fact: Fact, source: str, relationship: str, target: str, start: str, run: str | None
    ) -> tuple[str | None, list[str]]:
        """Return when a fact ends, and the ids of what it ends, according to a run or to all.

        Other targets of an exclusive relationship cannot hold beside it. Relationships that began
        later than the fact stay: then the fact ends when the first of them begins.
        """
        if not (relationship in EXCLUSIVE if fact.exclusive is None else fact.exclusive):
            return None, []
        held = self._engine.graph.open_edges(source, relationship, run_id=run)
        others = [(edge_id, other, began) for edge_id, other, began, *_ in held if other != target]
        if others and self._contradicts is not None:
            ended = self._contradicted_targets(source, relationship)
            others = [edge for edge in others if edge[1] in ended]
        earlier = [edge_id for edge_id, _, began in others if began <= start]
        return min((began for *_, began in others if began > start), default=None), earlier

    def _contradicted_targets(self, source: str, relationship: str) -> set[str]:
        """Return with whom the memories that are contradicted state a relationship.

        "I also work at Beta" closed "I work at Acme", though neither memory contradicts the other.
        """
        stated = [
            edge_id
            for memory_id in self._contradicts or ()
            for edge_id in self._engine.graph.ids_read_from(memory_id, kind="relationship")
        ]
        moment = GraphMoment(self._now, self.user_id, is_past=False)
        edges = self._engine.graph.edges(moment, ids=stated, at_any_time=True)
        return {
            edge.target_id
            for edge in edges
            if (edge.source_id, edge.relationship) == (source, relationship)
        }

    def _same(self, source: str, relationship: str, target: str) -> str | None:
        """Return the open relationship that is stated again, unless it is another run's own.

        What was added by hand in a run is known only there, without memories: it stays apart.
        """
        own = {self._run_id} if not self._sources else set(self._run_of.values())
        for edge_id, _, _, run_by_hand in self._engine.graph.open_edges(
            source, relationship, target
        ):
            is_by_hand_here = not self._sources and self._run_id is not None
            if own == {run_by_hand} or (run_by_hand is None and not is_by_hand_here):
                return str(edge_id)
        return None

    def _open(
        self, fact: Fact, source: str, relationship: str, target: str, start: str, ends: str | None
    ) -> str:
        return self._engine.graph.insert_edge(
            {
                "source_id": source,
                "relationship": relationship,
                "target_id": target,
                "confidence": fact.confidence,
                "temporal_context": fact.temporal_context,
                "valid_from": start,
                "valid_to": ends,
                "user_id": self.user_id,
                "run_id": self._run_id,
                "by_hand": int(not self._sources),
                "created_at": self._now,
                "updated_at": self._now,
            },
        )

    def _close(self, edge_id: str, at: str) -> None:
        closing = self._closing(at)
        self._engine.graph.close_edge(edge_id, closing, but_in_runs=self._runs)
        for run in self._runs:
            self._engine.graph.close_in_run(edge_id, closing, run)

    def _closing(self, at: str) -> Closing:
        memory_id, change_id = next(reversed(self._sources.items()), (None, None))
        return Closing(at, memory_id, change_id, self._now)

    def _start(self, valid_from: datetime | None) -> str:
        return self._now if valid_from is None else format_time(valid_from)

    # C's instructions -------------------------------------------------------------------------

    def apply(self, update: GraphUpdate, *, at: datetime | None = None) -> GraphChange:
        """Apply one instruction; the result says whether it was refused, or done differently."""
        change = GraphChange(
            action=update.action,
            source=update.source,
            relationship=update.relationship,
            target=update.target,
        )
        carry_out = {
            GraphAction.ADD: self._apply_add,
            GraphAction.UPDATE: self._apply_update,
            GraphAction.DELETE: self._apply_delete,
        }
        try:
            done = carry_out[update.action](update, at)
        except RejectedContent as error:
            done = {"note": str(error), "refused": True}
        return change.model_copy(update=done)

    def _apply_add(self, update: GraphUpdate, at: datetime | None) -> dict[str, object]:
        outcome = self.add(_fact(update, at))
        return {"opened": outcome.edge_id, "closed": outcome.closed}

    def _apply_update(self, update: GraphUpdate, at: datetime | None) -> dict[str, object]:
        old, note = self._replaced(update)
        self._refuse_rejected(update.source, update.target, update.relationship)
        for edge_id in old:
            self._close(edge_id, self._start(at))
        outcome = self.add(_fact(update, at))
        closed = list(dict.fromkeys([*old, *outcome.closed]))
        return {"opened": outcome.edge_id, "closed": closed, "note": note}

    def _replaced(self, update: GraphUpdate) -> tuple[list[str], str | None]:
        """Return what an UPDATE closes, and a note if that is nothing."""
        relationship = clean_relationship(update.relationship)
        old = clean_relationship(update.old_relationship or relationship)
        source, target = self._find(update.source), self._find(update.target)
        if old != relationship:
            held = self._held(source, old, target)
            note = f"these two had no {old} to replace: it was added"
            return [edge_id for edge_id, *_ in held], None if held else note
        others = [] if source is None else self._open_edges(source, old)
        held = [edge for edge in others if edge[1] != target]
        if len(held) == 1:
            return [held[0][0]], None
        if held:
            note = f"{len(held)} relationships are {old}: none was replaced, it was added"
        elif others:
            note = "it already holds"
        else:
            note = f"there was no {old} to replace: it was added"
        return [], note

    def _apply_delete(self, update: GraphUpdate, at: datetime | None) -> dict[str, object]:
        source, target = self._find(update.source), self._find(update.target)
        held = self._held(source, clean_relationship(update.relationship), target)
        if not held:
            return {"note": NOTHING_HOLDS, "refused": True}
        for edge_id, *_ in held:
            self._close(edge_id, self._start(at))
        return {"closed": [edge_id for edge_id, *_ in held]}

    def _held(self, source: str | None, relationship: str, target: str | None) -> list[Row]:
        if source is None or target is None:
            return []
        return self._open_edges(source, relationship, target)

    def _open_edges(self, source: str, relationship: str, target: str | None = None) -> list[Row]:
        """Return the open relationships that the caller may know about."""
        return self._engine.graph.open_edges(source, relationship, target, run_id=self._only_run)

    def stop_saying(self, edge: EdgeView, at: datetime | None) -> None:
        """Close a relationship for the runs of these memories, but not for all."""
        for run in self._runs:
            closing = self._closing(self._start(at))
            self._engine.graph.close_in_run(edge.id, closing, run)

    def merge(self, keep: str, other: str) -> str:
        """Merge two entities, and return the id; the other's name becomes an alias."""
        ids = []
        for field_name, name in (("keep", keep), ("other", other)):
            entity_id = self._find(name)
            if entity_id is None:
                raise no_entity(field_name, name)
            ids.append(entity_id)
        kept, gone = ids
        if kept == gone:
            return kept
        row = self._engine.graph.entity_row(gone)
        self._engine.graph_maintenance.merge(kept, gone)
        if row["name_key"] is not None:
            self._engine.graph.add_alias(kept, row["name"], row["name_key"], None)
        self._engine.graph.update_entity(kept, {}, self._now)
        return kept


def has_name(entity: EntityView, key: str) -> bool:
    """Return whether an entity is shown with a name or alias that has this key."""
    return any(name_key(name, entity.user_id) == key for name in (entity.name, *entity.aliases))


def _fact(update: GraphUpdate, at: datetime | None) -> Fact:
    confidence = 1.0 if update.confidence is None else update.confidence
    return Fact(update.source, update.relationship, update.target, confidence, valid_from=at)


def no_entity(name: str, value: str) -> ValidationError:
    """Build the error for a name that no entity has."""
    return ValidationError.of(name, f"no entity has the name {value!r:.200}", value)


def complete(engine: Engine) -> None:
    """Add keys to what another program wrote; entities whose names mean the same are merged.

    Must run inside ``write()``.
    """
    for kind, row, name, user_id in engine.graph.rows_without_key():
        key = name_key(name, user_id)
        existing = engine.graph.find(key, user_id) if kind == "entity" else None
        if existing is None:
            engine.graph.set_key(kind, row, key)
        else:
            engine.graph_maintenance.merge(existing, engine.graph.id_of_row(row))


# Following decisions ------------------------------------------------------------------------


def follow(
    engine: Engine,
    decision: Decision,
    outcome: DecisionOutcome,
    *,
    now: datetime,
    is_confidential: bool = False,
) -> list[str]:
    """Apply the graph updates of a decision; return what was refused, in words.

    That something ended which does not hold is no problem: "I no longer live in Paris" ends what
    may have ended already, or was never stated. A relationship that only this memory stated, and no
    longer does, is closed. With ``is_confidential`` the result depends only on the memories of its
    run.
    """
    if decision.graph is None or decision.memory is None or outcome.memory_id is None:
        return []
    memory = decision.memory
    graph = GraphChanges(
        engine,
        user_id=memory.user_id,
        run_id=memory.run_id,
        memory_ids=[outcome.memory_id],
        now=now,
        only_run=memory.run_id if is_confidential else None,
        contradicts=decision.contradicts,
    )
    changes = [graph.apply(update, at=memory.timestamp) for update in decision.graph]
    if outcome.event == "UPDATE":
        moment = GraphMoment(format_time(now), memory.user_id, is_past=False)
        stated = {change.opened for change in changes}
        unsaid = _unsaid(engine.graph.edges(moment), stated, outcome.memory_id)
        changes += [graph.apply(update, at=memory.timestamp) for update in map(_deletion, unsaid)]
        if memory.run_id is not None:
            of_run = engine.graph.edges(moment._replace(run_id=memory.run_id))
            for edge in _unsaid(of_run, stated, outcome.memory_id):
                graph.stop_saying(edge, memory.timestamp)
    refused = (change.note for change in changes if change.refused)
    return [f"graph: {note}" for note in refused if note not in (None, NOTHING_HOLDS)]


def forget_part(engine: Engine, memory: Memory, text: str, *, now: datetime) -> None:
    """Close the relationships that only a memory stated, and that its new, shorter text does not.

    Those are the ones to what the new text no longer names. What was stated by hand stays.
    """
    moment = GraphMoment(format_time(now), memory.user_id, is_past=False)
    old, new = memory.content.casefold(), text.casefold()
    owner = {"user_id": memory.user_id, "run_id": memory.run_id}
    graph = GraphChanges(engine, **owner, memory_ids=[memory.id], now=now)
    for edge in _unsaid(engine.graph.edges(moment), set(), memory.id):
        target = edge.target.casefold()
        if target in old and target not in new and not engine.graph.is_by_hand(edge.id):
            graph.apply(_deletion(edge))


def _unsaid(edges: list[EdgeView], stated: set[str | None], memory_id: str) -> list[EdgeView]:
    """Return what only this memory stated, and does not state now.

    ``stated`` has the ids of what it states: names may differ, "Alice" may be an alias of the user.
    """
    return [
        edge for edge in edges if edge.source_memory_ids == [memory_id] and edge.id not in stated
    ]


def _deletion(edge: EdgeView) -> GraphUpdate:
    return GraphUpdate(
        action=GraphAction.DELETE,
        source=edge.source,
        relationship=edge.relationship,
        target=edge.target,
    )

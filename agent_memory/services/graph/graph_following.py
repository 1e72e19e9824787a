"""The graph follows what is decided about memories, in the same transaction."""

from __future__ import annotations

from datetime import datetime

from agent_memory.models.decision import Decision, DecisionOutcome
from agent_memory.models.graph import EdgeView, GraphAction, GraphUpdate
from agent_memory.models.times import format_time
from agent_memory.services.graph.changes import GraphChanges
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import GraphMoment


def follow(
    engine: Engine, step: Decision, done: DecisionOutcome, *, agent_id: str, now: datetime
) -> list[str]:
    """Let the graph say what a memory says now; return what could not be done, in words.

    What the memory alone said before it was changed, and says no more, is closed.
    """
    if step.graph is None or step.memory is None or done.memory_id is None:
        return []
    memory = step.memory
    graph = GraphChanges(
        engine,
        user_id=memory.user_id,
        run_id=memory.run_id,
        memory_ids=[done.memory_id],
        now=now,
    )
    changes = [graph.apply(update, at=memory.timestamp) for update in step.graph]
    if done.event == "UPDATE":
        when = GraphMoment(format_time(now), memory.user_id, is_past=False)
        edges = engine.graph.edges(when, agent_id=agent_id)
        said = {change.opened for change in changes}
        unsaid = _unsaid(edges, said, done.memory_id)
        changes += [graph.apply(update, at=memory.timestamp) for update in unsaid]
    return [f"graph: {it.note}" for it in changes if it.refused and it.note]


def _unsaid(edges: list[EdgeView], said: set[str | None], memory_id: str) -> list[GraphUpdate]:
    """Return the closing of what only this memory said, and does not say now.

    ``said`` has the ids of what it says: names may differ, "Alice" be an alias of the user.
    """
    return [
        GraphUpdate(
            action=GraphAction.DELETE,
            source=edge.source,
            relationship=edge.relationship,
            target=edge.target,
        )
        for edge in edges
        if edge.source_memory_ids == [memory_id] and edge.id not in said
    ]

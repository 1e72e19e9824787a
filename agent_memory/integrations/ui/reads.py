"""What the page shows: each function answers one GET, from a memory that is opened read-only.

The models in an answer become JSON when it is sent.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any, Final

from agent_memory import (
    AgentMemory,
    EventName,
    HistoryEntry,
    Memory,
    MemoryCategory,
    MemoryContextConfig,
    MemoryEvent,
    MemoryOrder,
    MemorySearchResult,
    MemoryStatistics,
    Neighbourhood,
    estimate_tokens,
)
from agent_memory.integrations.ui.queries import Query

_PAGE: Final = 50
_MOST_ROWS: Final = 200
_BEGINNING: Final = 400
"""Characters of a text in a list; the view of the memory shows all of it."""
_NEIGHBOURS: Final = 5
_MOST_GROUPS: Final = 50


def overview(memory: AgentMemory, _: Query) -> dict[str, Any]:
    """Return whose memory it is, its size, and the values that filters offer."""
    info = memory.info()
    return {
        "agent_id": info.agent_id,
        "path": info.path,
        "memory_count": info.memory_count,
        "archived_count": info.archived_count,
        "scratchpad_size": info.scratchpad_size,
        "storage_backend": info.storage_backend,
        "suggestion": info.suggestion,
        "warning": info.warning,
        "categories": [*MemoryCategory.all_values(), *info.config.categories],
    }


def memories(memory: AgentMemory, query: Query) -> dict[str, Any]:
    """Return a page of memories in an ``order``; ``after`` is the last one of the previous page."""
    limit = min(query.number("limit", _PAGE), _MOST_ROWS)
    rows = memory.list_recent(
        limit + 1,
        after=query.text("after"),
        filters=query.filters(),
        as_of=query.text("as_of"),
        order=query.text("order") or MemoryOrder.NEWEST,
    )
    return {"memories": [row_of(row) for row in rows[:limit]], "has_more": len(rows) > limit}


def search(memory: AgentMemory, query: Query) -> dict[str, Any]:
    """Return the hits of a search, each with the parts of its score. It counts as no access."""
    results = memory.search(
        query.text("q") or "",
        query.number("limit", 20),
        filters=query.filters(),
        as_of=query.text("as_of"),
        graph=query.flag("graph"),
        explain=True,
        count_accesses=False,
    )
    return {
        "hits": [_hit(hit) for hit in results],
        "total_count": results.total_count,
        "search": results.search_metadata,
    }


def one_memory(memory: AgentMemory, query: Query) -> dict[str, Any]:
    """Return a memory with its history, or the history of a deleted one.

    ``before`` are the memories that precede it in its session, ``same`` those that say the same,
    ``graph`` what was read from it.
    """
    memory_id = query.required("id")
    current = memory.get(memory_id, as_of=query.text("as_of"))
    history = memory.history(memory_id)
    if current is None:
        return {"memory": None, "history": history, "before": [], "same": [], "graph": None}
    filters = {"session_id": current.created_by_session}
    is_there = memory.get(memory_id) is not None  # it may have existed only at ``as_of``
    before = memory.list_recent(_NEIGHBOURS, after=memory_id, filters=filters) if is_there else []
    same = memory.duplicates(current.content, user_id=current.user_id, run_id=current.run_id)
    scratchpad = {entry.id for entry in memory.scratchpad().memories}
    return {
        "memory": current.model_dump(mode="json", exclude={"embedding"}),
        "is_in_scratchpad": memory_id in scratchpad,
        "history": history,
        "before": [row_of(row) for row in before],
        "graph": memory.graph.of_memory(memory_id).for_display() if is_there else None,
        "same": [
            {"id": each.memory_id, "content": each.content, "grade": each.grade}
            for each in same
            if each.memory_id != memory_id
        ],
    }


def recalls(memory: AgentMemory, query: Query) -> dict[str, Any]:
    """Return the logged searches that gave a memory to an agent, newest first.

    ``place`` is its rank among the hits. Questions are included if the log keeps texts.
    """
    memory_id = query.required("id")
    searches = (
        event
        for event in memory.events(memory_id=memory_id)
        if event.name == EventName.SEARCHED and memory_id in event.data.get("memory_ids", [])
    )
    latest = deque(searches, maxlen=_PAGE)
    return {
        "event_log": memory.info().config.event_log,
        "searches": [_recall(event, memory_id) for event in reversed(latest)],
    }


def _recall(event: MemoryEvent, memory_id: str) -> dict[str, Any]:
    question = event.data.get("query")
    return {
        **event.model_dump(mode="json", include={"timestamp", "session_id"}),
        "place": event.data["memory_ids"].index(memory_id) + 1,
        "question": question if isinstance(question, str) else None,
    }


def row_of(memory: Memory) -> dict[str, Any]:
    """Return a memory as a row of a list: the beginning of its text, and its other fields."""
    row = memory.model_dump(
        mode="json",
        include={
            "id", "category", "kind", "importance", "tags", "timestamp", "access_count",
            "last_accessed", "archived", "created_by_session", "user_id",
        },
    )  # fmt: skip
    row["content"] = memory.content[:_BEGINNING]
    row["is_cut"] = len(memory.content) > _BEGINNING
    return row


def _hit(hit: MemorySearchResult) -> dict[str, Any]:
    parts = _rounded(hit.model_dump(mode="json", exclude={"memory"}))
    return {**parts, "memory": row_of(hit.memory)}


def _rounded(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a score with four digits: the others would be a third of the answer."""
    return {
        name: _rounded(value)
        if isinstance(value, dict)
        else round(value, 4)
        if isinstance(value, float)
        else value
        for name, value in parts.items()
    }


# What the agent is given --------------------------------------------------------------------------


def context(memory: AgentMemory, query: Query) -> dict[str, Any]:
    """Return the scratchpad, and the text that a model is given of it within a token budget."""
    budget = query.number("budget", MemoryContextConfig().token_budget)
    scratchpad = memory.scratchpad()
    text = memory.context(budget)
    return {
        "scratchpad": scratchpad.memories,
        "max_size": scratchpad.max_size,
        "text": text,
        "tokens": estimate_tokens(text),
        "budget": budget,
    }


# What waits for a decision ------------------------------------------------------------------------


def reviews(memory: AgentMemory, _: Query) -> dict[str, Any]:
    """Return the memories under review, each with the one that contradicts it."""
    rows = []
    for review in memory.reviews():
        other = memory.get(review.replaced_by) if review.replaced_by else None
        rows.append(
            {
                **review.model_dump(mode="json"),
                "replacement": None if other is None else other.content,
            }
        )
    return {"reviews": rows}


def duplicates(memory: AgentMemory, _: Query) -> dict[str, Any]:
    """Return the first groups of memories that say the same."""
    groups = list(islice(memory.duplicate_groups(), _MOST_GROUPS + 1))
    return {
        "groups": [
            {
                "grade": group.grade,
                "count": group.count,
                "memories": [row_of(each) for each in group.memories],
            }
            for group in groups[:_MOST_GROUPS]
        ],
        "has_more": len(groups) > _MOST_GROUPS,
    }


def rejections(memory: AgentMemory, _: Query) -> dict[str, Any]:
    """Return the rejections: when and why, never the rejected text."""
    return {"rejections": memory.rejections()}


# History ------------------------------------------------------------------------------------------


def timeline(memory: AgentMemory, query: Query) -> dict[str, Any]:
    """Return a page of the changes of all memories, newest first.

    ``before`` is the number of the last change of the previous page. Texts are shown by their
    beginning, other changed fields by their names.
    """
    limit = min(query.number("limit", _PAGE), _MOST_ROWS)
    entries = memory.history(limit=limit + 1, before=query.number("before", 0) or None)
    return {
        "changes": [_change(entry) for entry in entries[:limit]],
        "has_more": len(entries) > limit,
    }


def _change(entry: HistoryEntry) -> dict[str, Any]:
    new = entry.new_values or {}
    content = str({**(entry.old_values or {}), **new}.get("content", ""))
    return {
        **entry.model_dump(mode="json", exclude={"old_values", "new_values"}),
        "content": content[:_BEGINNING],
        "is_cut": len(content) > _BEGINNING,
        "fields": [name for name in new if name != "content"],
    }


def events(memory: AgentMemory, _: Query) -> dict[str, Any]:
    """Return the latest events of the log, newest first, and whether the log is on."""
    latest = deque(memory.events(), maxlen=_PAGE)
    return {
        "event_log": memory.info().config.event_log,
        "events": list(reversed(latest)),
    }


def statistics(memory: AgentMemory, query: Query) -> MemoryStatistics:
    """Return figures over time, gaps, and recommendations."""
    return memory.statistics(since=query.text("since"))


# The graph ---------------------------------------------------------------------------------------


def entities(memory: AgentMemory, query: Query) -> dict[str, Any]:
    """Return a page of the graph's entities; ``after`` is the last one of the previous page."""
    limit = min(query.number("limit", _PAGE), _MOST_ROWS)
    rows = memory.graph.entities(limit=limit + 1, after=query.text("after"))
    shown = [row.for_display() for row in rows[:limit]]
    return {"entities": shown, "has_more": len(rows) > limit}


def entity(memory: AgentMemory, query: Query) -> Neighbourhood:
    """Return the relationships around an entity, now or at a time."""
    near = memory.graph.neighbours(
        query.required("name"), query.number("depth", 1), as_of=query.text("as_of")
    )
    return near.for_display()


# The file ----------------------------------------------------------------------------------------


def health(memory: AgentMemory, _: Query) -> dict[str, Any]:
    """Return the state of the store, and the backups of a file."""
    info = memory.info()
    return {"info": info, "backups": memory.backups() if info.server is None else []}

"""A memory service for Google's Agent Development Kit. It needs the extra ``google-adk``."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from agent_memory import (
    AgentMemory,
    LimitReached,
    MemoryNotFound,
    MemorySearchResult,
    StorageClosed,
    ValidationError,
)
from agent_memory.integrations.identity import session_label
from agent_memory.integrations.registry import missing_package
from agent_memory.integrations.texts import searchable
from agent_memory.integrations.turns import recalled
from agent_memory.models.times import format_time
from agent_memory.runtime.logs import logger

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part
except ModuleNotFoundError as error:
    raise missing_package("google_adk", error) from error

if TYPE_CHECKING:
    from google.adk.events import Event
    from google.adk.sessions import Session

    from agent_memory import SessionMemory

__all__ = ["AgentMemoryService"]

_ADK: Final = "google_adk"
"""The metadata key for what the content of an entry's memory does not hold."""


class AgentMemoryService(BaseMemoryService):
    """A memory service for ``Runner(memory_service=AgentMemoryService())``.

    Each app is an agent with a file of its own, and each user a session of it, who sees only their
    own memories. ``options`` are those of ``AgentMemory`` (``root``, ``embedder``, …). A search
    returns at most ``limit`` entries (1 to 100). ``close``, or the end of a ``with``, closes the
    files. All methods run in a thread and raise what the verbs raise, except ``search_memory``,
    which finds nothing in a memory that cannot be read.

    Each event that says something is one memory, however often its session is added; a deleted or
    erased one stays so, and one whose text was corrected keeps the correction. An event that may
    not be stored, such as one with a key if the file refuses keys, is left out and logged; if there
    is no room for more, ``LimitReached`` is raised.
    """

    def __init__(self, *, limit: int = 10, **options: Any) -> None:  # noqa: ANN401 - AgentMemory's
        self._limit = limit
        self._options = options
        self._memories: dict[str, AgentMemory] = {}
        self._opening = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        """Close the files that were opened. Any later use raises ``StorageClosed``."""
        with self._opening:
            self._is_closed = True
            while self._memories:
                self._memories.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what the events of a session say."""
        await asyncio.to_thread(
            self._add_events, session.app_name, session.user_id, session.events, session.id, None
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what some events say, each with ``custom_metadata``, which is JSON data."""
        await asyncio.to_thread(
            self._add_events, app_name, user_id, events, session_id, custom_metadata
        )

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep entries; one whose id is already known is skipped."""

        def add() -> None:
            user = self._user(app_name, user_id)
            rows: list[dict[str, Any]] = []
            for entry in memories:
                text = _text_of(entry.content)
                if not text:
                    continue
                row = _row(text, entry.author, entry.content.role)
                row["metadata"] |= {**entry.custom_metadata, **(custom_metadata or {})}
                row["timestamp"] = entry.timestamp
                if entry.id is not None:
                    row["id"] = _id_of(user, "", entry.id)
                rows.append(row)
            _store(user, rows)

        await asyncio.to_thread(add)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the user's memories that answer a query, best first.

        One that a newer memory may correct has ``under_review`` in its ``custom_metadata``. An
        agent calls this within its run: a memory that cannot be read is logged, and nothing is
        found.
        """
        # ADK passes on whatever a model gives: a null ended the run with our ValidationError.
        asked = query if isinstance(query, str) else ""

        def search() -> SearchMemoryResponse:
            hits = self._user(app_name, user_id).search(asked, self._limit, include_weak=False)
            return SearchMemoryResponse(memories=[_entry_of(hit) for hit in hits])

        return await asyncio.to_thread(recalled, search, SearchMemoryResponse())

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete an entry by its id; ``AgentMemory.undo`` brings it back.

        An unknown id is ignored.
        """
        if memory_id is None:
            return
        with contextlib.suppress(MemoryNotFound):
            await asyncio.to_thread(self._user(app_name, user_id).delete, memory_id)

    def _user(self, app_name: str, user_id: str) -> SessionMemory:
        with self._opening:
            if self._is_closed:
                raise StorageClosed("the memory service is closed: make another")
            memory = self._memories.get(app_name)
            if memory is None:
                memory = self._memories[app_name] = AgentMemory(app_name, **self._options)
        return memory.session({"user_id": user_id})

    def _add_events(
        self,
        app_name: str,
        user_id: str,
        events: Iterable[Event],
        session_id: str | None,
        custom_metadata: Mapping[str, object] | None,
    ) -> None:
        user = self._user(app_name, user_id)
        label = None if session_id is None else session_label(session_id)
        shared = {"session_id": label, "metadata": dict(custom_metadata or {})}
        user.validate({**shared, "content": "what all events are given must be right"})
        rows: list[dict[str, Any]] = []
        for event in events:
            text = _text_of(event.content)
            if not text or event.partial:
                continue
            row = _row(text, event.author, None if event.content is None else event.content.role)
            row["metadata"] |= custom_metadata or {}
            row["id"] = _id_of(user, session_id or "", event.id)
            row["session_id"] = label
            row["timestamp"] = _moment_of(event.timestamp)
            rows.append(row)
        _store_events(user, rows)


def _store_events(user: SessionMemory, rows: list[dict[str, Any]]) -> None:
    """Store the rows of events; a refused one must not keep out the rest of its session for ever.

    A lack of room concerns no single event, and is raised: all would be lost.
    """
    try:
        _store(user, rows)
    except LimitReached:
        raise
    except ValidationError as error:
        if len(rows) == 1:
            logger().warning("an event was not stored: %s", error)
            return
        for row in rows:
            _store_events(user, [row])


def _store(user: SessionMemory, rows: list[dict[str, Any]]) -> None:
    """Store the rows that are new, all or none. Erased ones are skipped."""
    new = [row for row in rows if not ("id" in row and _is_known(user, row["id"]))]
    while new:
        try:
            user.store_many(new, on_duplicate="keep")
        except ValidationError as error:
            erased = {fault["input"] for fault in error.errors() if fault["type"] == "erased"}
            rest = [row for row in new if row.get("id") not in erased]
            if len(rest) == len(new):
                raise
            new = rest
        else:
            return


def _is_known(user: SessionMemory, memory_id: str) -> bool:
    """Return whether a memory exists or was deleted."""
    try:
        user.history(memory_id, limit=1)
    except MemoryNotFound:
        return False
    return True


def _id_of(user: SessionMemory, session_id: str, event_id: str) -> str:
    name = json.dumps([session_id, event_id])
    return f"{user.id_prefix}adk-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _text_of(content: Content | None) -> str:
    """Return what was said, without the model's thoughts, calls and their results."""
    parts = [] if content is None else content.parts or []
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def _moment_of(seconds: float) -> datetime | float:
    """Return the time of an event; an invalid one (milliseconds) is left for the verb to refuse."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return seconds


def _row(text: str, author: str | None, role: str | None) -> dict[str, Any]:
    content = searchable(text, name="text")
    whole = {} if content == text else {"text": text}
    return {
        "content": content,
        "metadata": {_ADK: {"author": author, "role": role, **whole}},
    }


def _entry_of(hit: MemorySearchResult) -> MemoryEntry:
    memory, metadata = hit.memory, dict(hit.memory.metadata)
    kept = metadata.pop(_ADK, None)
    kept = kept if isinstance(kept, dict) else {}
    # If the content was corrected, it counts, not the longer text that it was made from.
    text = str(kept.get("text", ""))
    is_whole = text and searchable(text, name="text") == memory.content
    if hit.under_review:
        metadata["under_review"] = True
    return MemoryEntry(
        id=memory.id,
        content=Content(
            role=kept.get("role") or "user",
            parts=[Part(text=text if is_whole else memory.content)],
        ),
        author=kept.get("author"),
        timestamp=format_time(memory.timestamp),
        custom_metadata=metadata,
    )

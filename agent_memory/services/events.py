"""Events of a memory, published to a function, to ``logging``, and to the event log.

No listener can make a verb fail, or delay it by more than its own work: an exception of a listener
is logged, an event that the log does not accept is counted. Without listeners no event is created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import AgentMemoryError
from agent_memory.models.agent import AgentInfo
from agent_memory.models.enums import EventName, StorageBackend
from agent_memory.models.event import MemoryEvent
from agent_memory.models.memory import Memory
from agent_memory.models.search import SearchResults
from agent_memory.runtime.logs import is_log_read, logger
from agent_memory.services.rendering import estimate_tokens

if TYPE_CHECKING:
    from agent_memory.models.embedding import MigrationPlan, MigrationProgress
    from agent_memory.services.unit_of_work import Promoted
    from agent_memory.services.writing.insert import InsertResult
    from agent_memory.storage.event_log import EventLog

Listener = Callable[[MemoryEvent], object]
LogSetting = Literal["off", "brief", "full"]

_LOGGER: Final = "agent_memory.events"


class Events:
    """The events of one open memory. Threads may share it.

    ``listener`` is called with each, including the text of queries and memories if ``with_text``.
    ``setting`` returns the agent's setting for the ``log``: ``off``, ``brief`` or ``full``, which
    includes the text.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        agent_id: str,
        session_id: str,
        clock: Callable[[], datetime],
        setting: Callable[[], LogSetting],
        listener: Listener | None = None,
        with_text: bool = False,
        writable: bool = True,
    ) -> None:
        self.log = log
        self._agent_id = agent_id
        self._session_id = session_id
        self._clock = clock
        self._read_setting = setting
        self._writable = writable
        self._listener = listener
        self._with_text = with_text

    def _setting(self) -> LogSetting:
        """Return the file's setting. If it cannot be read, no verb fails because of that."""
        try:
            return self._read_setting() if self._writable else "off"
        except AgentMemoryError:
            return "off"

    def has_listeners(self, setting: LogSetting | None = None) -> bool:
        """Return whether there is any listener: only then are events created.

        ``setting`` is the agent's setting, if the verb has read it already.
        """
        if self._listener is not None or is_log_read(_LOGGER):
            return True
        if setting is None or not self._writable:
            setting = self._setting()
        return setting != "off"

    def publish(
        self,
        name: EventName,
        data: Mapping[str, Any],
        *,
        text: Mapping[str, str] | None = None,
    ) -> None:
        """Publish one event. ``text`` goes only to those who asked for texts."""
        self.publish_all([(name, data, text or {}, None)])

    def publish_all(
        self, events: Sequence[tuple[EventName, Mapping[str, Any], Mapping[str, str], str | None]]
    ) -> None:
        """Publish several events at once, each with its data, its text and its session."""
        now = self._clock()
        brief = [self._event(name, data, session, now) for name, data, _, session in events]
        full = [
            self._event(name, {**data, **text}, session, now)
            for name, data, text, session in events
        ]
        if is_log_read(_LOGGER):
            for event in brief:
                logger(_LOGGER).info("%s", event.name, extra={"memory_event": event.payload()})
        setting = self._setting()
        if setting != "off":
            self.log.append(full if setting == "full" else brief)
        if self._listener is not None:
            for event in full if self._with_text else brief:
                self._call(self._listener, event)

    # The data of each event -------------------------------------------------------------------

    def stored(
        self,
        memories: Sequence[Memory],
        added: InsertResult,
        *,
        backend: StorageBackend,
        cost_usd: float,
    ) -> None:
        """Publish the memories that are new; those stored before have no event."""
        price = cost_usd / len(added.new) if added.new else 0.0
        events = []
        for place, in_scratchpad in added.new:
            memory = memories[place]
            data = {
                "memory_id": added.ids[place],
                "category": memory.category,
                "tags": memory.tags,
                "backend": backend.value,
                "in_scratchpad": in_scratchpad,
                "embedding_cost": price,
            }
            text = {"content": memory.content}
            events.append((EventName.STORED, data, text, memory.created_by_session))
        self.publish_all(events)

    def searched(self, query: str, results: SearchResults, *, backend: StorageBackend) -> None:
        """Publish a search: what was found, how similar the best hit is, and how long it took.

        ``tokens`` estimates the size of the hits' contents for a model.
        """
        data = {
            "results_count": len(results),
            "total_found": results.total_count,
            "latency_ms": round(results.search_metadata.processing_time_ms, 3),
            "backend": backend.value,
            "memory_ids": [hit.memory.id for hit in results],
            "best_similarity": round(max((hit.similarity for hit in results), default=0.0), 3),
            "tokens": sum(estimate_tokens(hit.memory.content) for hit in results),
        }
        self.publish(EventName.SEARCHED, data, text={"query": query})

    def rendered(self, memories: Sequence[Memory], *, tokens: int) -> None:
        """Publish that memories were rendered as a model's context, and its tokens."""
        data = {"memory_count": len(memories), "tokens": tokens}
        self.publish(EventName.RENDERED, data)

    def promoted(self, promoted: Promoted) -> None:
        """Publish what use promoted into the scratchpad, and which memories made room, if any."""
        for memory_id, evicted in zip_longest(promoted.memory_ids, promoted.evicted):
            self.entered_scratchpad(
                memory_id, "access_threshold", evicted, size=promoted.scratchpad_size
            )

    def entered_scratchpad(
        self, memory_id: str, reason: str, evicted: str | None, *, size: int
    ) -> None:
        """Publish what was put into the scratchpad, and which memory made room, if any."""
        if self.has_listeners():
            data = {
                "memory_id": memory_id,
                "reason": reason,
                "scratchpad_size": size,
                "evicted": evicted,
            }
            self.publish(EventName.PROMOTED, data)

    def migration_suggested(self, info: AgentInfo, plan: MigrationPlan, *, threshold: int) -> None:
        """Publish that there are enough memories to search by meaning."""
        data = {
            "memory_count": info.memory_count,
            "threshold": threshold,
            "auto_migrate": info.config.auto_migrate,
            "estimated_duration_seconds": plan.estimated_duration_seconds,
            "estimated_cost_usd": plan.estimated_cost_usd,
        }
        self.publish(EventName.MIGRATION_SUGGESTED, data)

    def migration_started(self, plan: MigrationPlan) -> None:
        """Publish that a migration begins."""
        plan_data = plan.model_dump(include={"batch_size", "estimated_duration_seconds"})
        data = {"memory_count": plan.memory_count, "plan": plan_data}
        self.publish(EventName.MIGRATION_STARTED, data)

    def migration_progressed(self, progress: MigrationProgress) -> None:
        """Publish the progress of a running migration; its end is an event of its own."""
        if progress.status != "running":
            return
        data = {
            "memories_processed": progress.memories_processed,
            "total": progress.plan.memory_count,
            "percent_complete": progress.percent_complete(),
            "elapsed_seconds": progress.elapsed_seconds(self._clock()),
        }
        self.publish(EventName.MIGRATION_PROGRESS, data)

    def migration_completed(
        self, progress: MigrationProgress, *, seconds: float, usd: float
    ) -> None:
        """Publish that searches are by meaning now."""
        data = {
            "memory_count": progress.memories_processed,
            "duration_seconds": round(seconds, 3),
            "cost_usd": usd,
            "backend": StorageBackend.VECTOR.value,
        }
        self.publish(EventName.MIGRATION_COMPLETED, data)

    def migration_failed(self, error: Exception, progress: MigrationProgress) -> None:
        """Publish that a migration stopped. Searches work as before: nothing is rolled back."""
        data = {
            "error": str(error),
            "memories_processed": progress.memories_processed,
            "total": progress.plan.memory_count,
            "rolled_back": False,
        }
        self.publish(EventName.MIGRATION_FAILED, data)

    def _event(
        self, name: EventName, data: Mapping[str, Any], session_id: str | None, now: datetime
    ) -> MemoryEvent:
        return MemoryEvent.model_construct(
            name=name.value,
            agent_id=self._agent_id,
            timestamp=now,
            session_id=session_id or self._session_id,
            data=dict(data),
        )

    @staticmethod
    def _call(listener: Listener, event: MemoryEvent) -> None:
        try:
            listener(event)
        except Exception:  # noqa: BLE001 - somebody else's code: the verb is done all the same
            logger().exception("a listener failed at %s", event.name)

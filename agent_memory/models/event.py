"""The events that a memory reports to its listeners."""

from typing import Any

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record


class MemoryEvent(Record, frozen=True):
    """Something that happened in one agent's memory.

    ``name`` is one of ``EventName``, ``data`` has the fields of that event. It contains the text of
    queries and memories only if that was requested.
    """

    name: str
    agent_id: str
    timestamp: UtcDatetime
    session_id: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        """Return the payload: the event's fields with its agent, session and time, as JSON data."""
        return {
            "agent_id": self.agent_id,
            "timestamp": self.model_dump(mode="json", include={"timestamp"})["timestamp"],
            "session_id": self.session_id,
            **self.data,
        }

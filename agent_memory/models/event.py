"""What happens in a memory, as it is told to those who listen."""

from typing import Any

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record


class MemoryEvent(Record, frozen=True):
    """Something that happened in one agent's memory.

    ``name`` is one of ``EventName``, ``data`` has the fields of that event. The text of queries and
    memories is in it only where it was asked for.
    """

    name: str
    agent_id: str
    timestamp: UtcDatetime
    session_id: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        """Return the payload: the fields of the event with whose it is and when, as JSON data."""
        return {
            "agent_id": self.agent_id,
            "timestamp": self.model_dump(mode="json", include={"timestamp"})["timestamp"],
            "session_id": self.session_id,
            **self.data,
        }

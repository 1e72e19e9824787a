"""What a hook saw, before it becomes a memory (A)."""

from pydantic import ConfigDict, Field

from agent_memory.models.enums import ObservationType
from agent_memory.models.fields import Content, Label, Tags
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record
from agent_memory.models.times import UtcDatetime, now_utc


class Observation(Record):
    """A raw observation: its text, what it is about, and how sure the capture is (0 to 1)."""

    model_config = ConfigDict(frozen=True)

    content: Content
    observation_type: ObservationType
    source: str = Field(description="Where it was seen: a tool, a turn")
    keywords: Tags = Field(default_factory=list)
    confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    session_id: Label
    timestamp: UtcDatetime = Field(default_factory=now_utc)

    def to_memory(self, agent_id: str) -> Memory:
        """Return the memory that this makes for an agent, marked as captured."""
        return Memory(
            agent_id=agent_id,
            content=self.content,
            category=self.observation_type.value,
            tags=self.keywords,
            created_by_session=self.session_id,
            timestamp=self.timestamp,
            metadata={
                "source": self.source,
                "confidence": self.confidence,
                "auto_captured": True,
            },
        )

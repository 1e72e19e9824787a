"""The migration to search by meaning: its plan and its progress (A)."""

from datetime import datetime
from typing import Final, Literal, Self

from pydantic import Field

from agent_memory.models.agent import AgentMetadata
from agent_memory.models.embedding_traits import EMBEDDING_MODELS
from agent_memory.models.enums import StorageBackend
from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.limits import BACKUP_SUFFIX, MIGRATION_BATCH_SIZE, SCRATCHPAD_FILENAME
from agent_memory.models.record import Record
from agent_memory.models.times import now_utc

_SECONDS_PER_BATCH: Final = 5.0
_TOKENS_PER_MEMORY: Final = 50


class MigrationPlan(Record):
    """What a migration will take: memories, tokens, seconds, dollars.

    ``to_embed`` is the number of memories without a vector: a migration that was interrupted
    continues.
    """

    agent_id: str
    current_backend: StorageBackend
    target_backend: StorageBackend
    memory_count: int = Field(ge=0)
    estimated_duration_seconds: float = Field(ge=0.0)
    estimated_cost_usd: float = Field(ge=0.0)
    batch_size: int = Field(default=MIGRATION_BATCH_SIZE, ge=1)
    backup_path: str | None = None
    to_embed: int = Field(default=0, ge=0)
    estimated_tokens: int = Field(default=0, ge=0)
    embedder: str | None = None
    model: str | None = None
    dimensions: int | None = None

    @classmethod
    def create(cls, agent_id: str, metadata: AgentMetadata) -> Self:
        """Return an estimate: 5 s per batch of 100, 50 tokens per memory at the model's price."""
        count = metadata.memory_count
        batches = -(-count // MIGRATION_BATCH_SIZE)
        default = EMBEDDING_MODELS["text-embedding-3-small"]
        model = EMBEDDING_MODELS.get(metadata.config.embedding_model, default)
        return cls(
            agent_id=agent_id,
            current_backend=StorageBackend(metadata.storage_backend),
            target_backend=StorageBackend.VECTOR,
            memory_count=count,
            estimated_duration_seconds=batches * _SECONDS_PER_BATCH,
            to_embed=count,
            estimated_tokens=count * _TOKENS_PER_MEMORY,
            model=metadata.config.embedding_model,
            dimensions=model["dimensions"],
            estimated_cost_usd=count * _TOKENS_PER_MEMORY / 1000 * model["cost_per_1k_tokens"],
            backup_path=f"{agent_id}/{SCRATCHPAD_FILENAME}{BACKUP_SUFFIX}",
        )


class MigrationProgress(Record):
    """The progress of a migration."""

    plan: MigrationPlan
    status: Literal["pending", "running", "completed", "failed", "rolled_back"]
    memories_processed: int = Field(default=0, ge=0)
    embeddings_generated: int = Field(default=0, ge=0)
    vectors_stored: int = Field(default=0, ge=0)
    started_at: UtcDatetime | None = None
    completed_at: UtcDatetime | None = None
    errors: list[str] = Field(default_factory=list)
    can_retry: bool = True

    def percent_complete(self) -> float:
        """Return 0 to 100; a migration of no memories is complete."""
        if self.plan.memory_count == 0:
            return 100.0
        return self.memories_processed / self.plan.memory_count * 100.0

    def elapsed_seconds(self, now: datetime | None = None) -> float | None:
        """Return the seconds from the start to the end, or to ``now`` if it has not ended."""
        if self.started_at is None:
            return None
        return ((self.completed_at or now or now_utc()) - self.started_at).total_seconds()

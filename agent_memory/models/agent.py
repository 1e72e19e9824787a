"""What is known of an agent: its settings and figures, as ``metadata.json`` holds them (A)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agent_memory.models.field_types import AgentId, Text, UtcDatetime
from agent_memory.models.limits import (
    DEFAULT_MIGRATION_THRESHOLD,
    DEFAULT_SCRATCHPAD_SIZE,
    DEFAULT_SIMILARITY_THRESHOLD,
    MAX_SCRATCHPAD_SIZE,
    MIN_SCRATCHPAD_SIZE,
)
from agent_memory.models.record import Record
from agent_memory.models.retention import Retention
from agent_memory.models.times import now_utc


class AgentStats(Record):
    """Figures of an agent. Latency is the mean, in milliseconds; size is in MB of 10**6 bytes."""

    total_queries: int = Field(default=0, ge=0)
    avg_query_latency_ms: float = Field(default=0.0, ge=0.0)
    storage_size_mb: float = Field(default=0.0, ge=0.0)
    embeddings_generated: int = Field(default=0, ge=0)
    scratchpad_promotions: int = Field(default=0, ge=0)


def is_category(text: str) -> bool:
    """Return whether a text can be a category that an agent adds to the nine."""
    return bool(text.strip()) and len(text) <= 50 and text.isprintable()


def _clean_category(category: str) -> str:
    if not is_category(category):
        raise ValueError(f"{category!r:.80} cannot be a category: use 1 to 50 characters")
    return category


class AgentConfig(Record, frozen=True):
    """Settings that live in the agent's file, and the categories that it adds to the nine.

    ``on_duplicate`` is what is done with a memory that is stored already, unless ``store`` says
    otherwise; while it is ``None``, duplicates are kept, but echoes of what was just recalled are
    merged. ``on_secret`` is what is done with keys, tokens and passwords in what is stored, changed
    or imported, likewise: ``warn``, ``mask``, ``refuse`` or ``keep`` (see ``OnSecret``).

    ``retention`` is what ``tidy`` applies, and ``store`` as far as its limits are hard: a policy
    (whose rules are off but for those it names), a preset's name (``standard``) or ``None`` for
    none. ``backups_kept`` is how many
    of the backups are kept that are made before something destructive; 0 makes none. ``sharing``
    says what other agents may do with this one's memories: nothing (``private``), ``read`` or
    ``write``; while it is ``None``, those of an agent named ``shared`` may be read. ``event_log``
    says whether what happens is written into ``events.jsonl`` beside the file, or the database's
    table ``events``: ``off``, ``brief``, or ``full`` with the text of queries and memories.
    ``vector_index`` is the kind of table that the index of vectors is in: one of sqlite-vec
    (``vec0``), or an ordinary ``table``, which any program can read. The answers are the same.
    """

    scratchpad_max_size: int = Field(
        default=DEFAULT_SCRATCHPAD_SIZE, ge=MIN_SCRATCHPAD_SIZE, le=MAX_SCRATCHPAD_SIZE
    )
    migration_threshold: int = Field(default=DEFAULT_MIGRATION_THRESHOLD, ge=100, lt=2**63)
    auto_migrate: bool = False
    migration_strategy: Literal["background", "immediate"] = "background"
    embedding_model: Text = "text-embedding-3-small"
    similarity_threshold: float = Field(default=DEFAULT_SIMILARITY_THRESHOLD, ge=0.0, le=1.0)
    categories: list[Annotated[str, AfterValidator(_clean_category)]] = Field(default_factory=list)
    on_duplicate: Literal["keep", "merge", "refuse"] | None = None
    on_secret: Literal["warn", "mask", "refuse", "keep"] = "warn"  # noqa: S105 - no password
    retention: Retention | None = None
    backups_kept: int = Field(default=5, ge=0, le=1000)
    sharing: Literal["private", "read", "write"] | None = None
    event_log: Literal["off", "brief", "full"] = "off"
    vector_index: Literal["vec0", "table"] = "vec0"


class MigrationInfo(Record):
    """How the move to semantic search went."""

    backup_path: Text | None = None
    can_rollback: bool = False
    migration_duration_seconds: float | None = None


class AgentMetadata(Record):
    """Everything known of an agent. ``info`` gives it with live figures."""

    agent_id: AgentId
    created_at: UtcDatetime = Field(default_factory=now_utc)
    memory_count: int = Field(default=0, ge=0)
    storage_backend: Literal["file", "vector"] = "file"
    migration_date: UtcDatetime | None = None
    last_accessed: UtcDatetime = Field(default_factory=now_utc)
    stats: AgentStats = Field(default_factory=AgentStats)
    config: AgentConfig = Field(default_factory=AgentConfig)
    migration: MigrationInfo | None = None

    def should_migrate(self) -> bool:
        """Return whether there are enough memories to move to semantic search."""
        return (
            self.storage_backend == "file" and self.memory_count >= self.config.migration_threshold
        )


class ServerInfo(Record, frozen=True):
    """The server that holds an agent's memories, and this process's connections to it.

    ``host`` is the one of the address that answers, or the folder of its socket. Of at most
    ``pool_size`` ``connections``, which all agents of the database share, ``idle`` ones are free;
    ``waiting`` threads wait for one.
    """

    host: str
    port: int
    pool_size: int = Field(ge=1)
    connections: int = Field(ge=0)
    idle: int = Field(ge=0)
    waiting: int = Field(ge=0)


class AgentInfo(AgentMetadata):
    """An agent's metadata, and the file that it lives in.

    ``vector_model`` is the embedding model whose vectors searches use;
    ``pending_embeddings`` how many memories wait to be embedded; ``suggestion`` is there from
    ``migration_threshold`` memories on, and where an empty store stands beside a documented
    ``scratchpad.yaml``, which could be imported. ``journal`` is how commits are kept whole: by a
    write-ahead log (``wal``), or by a ``rollback`` journal where other machines may reach the
    file's drive; ``warning`` says what follows from that. Of memories in a database of a server,
    ``path`` is its address, without a password, and ``server_version`` and ``server`` are there in
    their place.
    """

    path: str
    schema_version: int
    sqlite_version: str | None = None
    server_version: str | None = None
    server: ServerInfo | None = None
    scratchpad_size: int = Field(ge=0)
    archived_count: int = Field(ge=0)
    vector_model: str | None = None
    vector_dimensions: int | None = None
    pending_embeddings: int = Field(default=0, ge=0)
    suggestion: str | None = None
    journal: Literal["wal", "rollback"] | None = "wal"
    warning: str | None = None


class AgentSummary(Record, frozen=True):
    """One line of the list of agents. ``problem`` says why a file could not be read.

    ``is_writable`` is false where this user may only read it.
    """

    agent_id: str
    path: str
    memory_count: int | None = None
    storage_size_mb: float
    last_accessed: UtcDatetime | None = None
    problem: str | None = None
    is_writable: bool = True


class Problem(Record, frozen=True):
    """One thing that ``check`` found wrong, and whether it was repaired."""

    kind: str
    detail: str
    repaired: bool = False


class CheckReport(Record, frozen=True):
    """What ``check`` found. ``ok`` means that nothing is wrong (any more).

    ``memory_count`` includes archived memories; it is ``None`` where they cannot be counted.
    ``notes`` say what is no damage but should be known, such as of a drive that is shared.
    """

    path: str
    memory_count: int | None
    problems: list[Problem]
    notes: list[str] = Field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether the store is sound now."""
        return all(problem.repaired for problem in self.problems)


class RebuildReport(Record, frozen=True):
    """What a file was made anew from.

    ``skipped`` says which entries of the backup could not be taken, and why; ``erased`` has the ids
    of those that were left out, as they were erased; ``set_aside`` is where the old file is, if
    there was one.
    """

    path: str
    memory_count: int = Field(ge=0)
    from_file: int = Field(ge=0)
    from_backup: int = Field(ge=0)
    skipped: list[str] = Field(default_factory=list)
    erased: list[str] = Field(default_factory=list)
    set_aside: str | None

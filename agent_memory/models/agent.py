"""An agent's settings and statistics, as ``metadata.json`` holds them (A)."""

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
    """Statistics of an agent. Latency is the mean in milliseconds, size is in MB of 10**6 bytes."""

    total_queries: int = Field(default=0, ge=0)
    avg_query_latency_ms: float = Field(default=0.0, ge=0.0)
    storage_size_mb: float = Field(default=0.0, ge=0.0)
    embeddings_generated: int = Field(default=0, ge=0)
    scratchpad_promotions: int = Field(default=0, ge=0)


def is_category(text: str) -> bool:
    """Return whether an agent can add this text as a category to the nine built-in ones."""
    return bool(text.strip()) and len(text) <= 50 and text.isprintable()


def _clean_category(category: str) -> str:
    if not is_category(category):
        raise ValueError(f"{category!r:.80} cannot be a category: use 1 to 50 characters")
    return category


class AgentConfig(Record, frozen=True):
    """Settings stored in the agent's file.

    - ``scratchpad_max_size``: how many memories of each user the scratchpad holds: 10 to 100.
    - ``migration_threshold``: from how many memories on search by meaning is suggested: 100 or
      more.
    - ``auto_migrate``: whether to switch to search by meaning at that number: ``true`` or
      ``false``.
    - ``migration_strategy``: when that is done: in the ``background``, or ``immediate``: before the
      ``store`` that reaches the number returns.
    - ``embedding_model``: the model of ``openai``, or of a package's embedder that is named without
      one.
    - ``similarity_threshold``: the minimum similarity of a hit, 0 to 1; at the default the best hit
      of each query decides.
    - ``categories``: those that the agent adds to the nine: a list of texts of 1 to 50 characters.
    - ``on_duplicate``: what to do with a memory that is stored already, unless ``store`` says
      otherwise: ``keep``, ``merge`` or ``refuse``. If ``None``, duplicates are kept, but echoes of
      what was just recalled are merged.
    - ``on_secret``: what to do with keys, tokens and passwords in what is stored, changed or
      imported, unless the call says otherwise: ``warn``, ``mask``, ``refuse`` or ``keep`` (see
      ``OnSecret``).
    - ``retention``: the policy that ``tidy`` applies, and ``store`` as far as its limits are hard:
      a policy (only the rules that it sets are on), a preset's name (``standard``) or ``None``.
    - ``backups_kept``: how many of the backups made before destructive operations are kept, 0 to
      1000; 0 makes none.
    - ``sharing``: what other agents may do with this one's memories: nothing (``private``),
      ``read`` or ``write``. If ``None``, only those of an agent named ``shared`` may be read.
    - ``event_log``: whether events are written to ``events.jsonl`` beside the file, or to the
      database's table ``events``: ``off``, ``brief``, or ``full`` with the text of queries and
      memories.
    - ``vector_index``: the kind of table that holds the vector index: sqlite-vec's (``vec0``), or
      an ordinary ``table``, which any program can read. The results are the same.
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
    """How the migration to semantic search went."""

    backup_path: Text | None = None
    can_rollback: bool = False
    migration_duration_seconds: float | None = None


class AgentMetadata(Record):
    """An agent's settings, state and statistics. ``info`` returns it with current values."""

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
        """Return whether there are enough memories to migrate to semantic search."""
        return (
            self.storage_backend == "file" and self.memory_count >= self.config.migration_threshold
        )


class ServerInfo(Record, frozen=True):
    """The server that holds an agent's memories, and this process's connections to it.

    ``host`` is the one that answers of those in the address, or the folder of its socket. There are
    at most ``pool_size`` ``connections``, shared by all agents of the database; ``idle`` of them
    are free, and ``waiting`` threads wait for one.
    """

    host: str
    port: int
    pool_size: int = Field(ge=1)
    connections: int = Field(ge=0)
    idle: int = Field(ge=0)
    waiting: int = Field(ge=0)


class AgentInfo(AgentMetadata):
    """An agent's metadata, and the file in which its memories are.

    - ``vector_model``: the embedding model whose vectors searches use.
    - ``pending_embeddings``: how many memories are waiting to be embedded.
    - ``suggestion``: set from ``migration_threshold`` memories on, and if an empty store lies
      beside a documented ``scratchpad.yaml`` that could be imported.
    - ``journal``: how commits are kept atomic: by a write-ahead log (``wal``), or by a ``rollback``
      journal if other machines may access the file's drive; ``warning`` says what follows from
      that.

    For memories on a database server, ``path`` is its address without a password, and
    ``server_version`` and ``server`` are set instead.
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
    """One line of the list of agents. ``problem`` says why a file cannot be used by its name.

    ``is_writable`` is false if this user may only read it.
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
    """What ``check`` found. ``ok`` means that nothing is wrong, or no longer is.

    ``memory_count`` includes archived memories, of which there are ``archived_count``; both are
    ``None`` if they cannot be counted. ``notes`` are worth knowing but no damage, for example that
    the drive is shared.
    """

    path: str
    memory_count: int | None
    problems: list[Problem]
    notes: list[str] = Field(default_factory=list)
    archived_count: int | None = None

    @property
    def ok(self) -> bool:
        """Return whether the store is intact now."""
        return all(problem.repaired for problem in self.problems)


class RebuildReport(Record, frozen=True):
    """What a file was rebuilt from.

    ``skipped`` lists the entries of the backup that could not be restored, and why; ``erased`` has
    the ids of those that were left out because they had been erased; ``set_aside`` is where the old
    file is, if there was one.
    """

    path: str
    memory_count: int = Field(ge=0)
    from_file: int = Field(ge=0)
    from_backup: int = Field(ge=0)
    skipped: list[str] = Field(default_factory=list)
    erased: list[str] = Field(default_factory=list)
    set_aside: str | None

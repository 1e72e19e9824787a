"""The PostgreSQL engine: one agent's rows in a database, its tables and indexes.

A table is imported on first use: a search needs half of them, and starts twice as fast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from agent_memory.errors import AgentNotFound, ConfigurationError, StorageLocked
from agent_memory.models.agent import CheckReport, ServerInfo
from agent_memory.models.times import format_time
from agent_memory.runtime.lazy_parts import parts_made_of
from agent_memory.storage.engine import Capability
from agent_memory.storage.postgres import schema
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.keyword_index import KeywordIndex
from agent_memory.storage.postgres.tables.agent import AgentTable
from agent_memory.storage.postgres.tables.embeddings import EmbeddingTable
from agent_memory.storage.postgres.tables.fingerprints import FingerprintTable
from agent_memory.storage.postgres.tables.history import HistoryTable, OperationTable
from agent_memory.storage.postgres.tables.memories import MemoryTable
from agent_memory.storage.sql.recalls import RecallTable
from agent_memory.storage.sql.scratchpad import ScratchpadTable

if TYPE_CHECKING:
    from agent_memory.storage.engine import FileOperations
    from agent_memory.storage.postgres.event_log import EventLog
    from agent_memory.storage.postgres.similarity import SimilarityQueries
    from agent_memory.storage.postgres.stored_rows import StoredRows
    from agent_memory.storage.postgres.tables.erasure import ErasureQueries
    from agent_memory.storage.postgres.tables.graph import GraphTable
    from agent_memory.storage.postgres.tables.memory_rows import MemoryRowTable
    from agent_memory.storage.postgres.tables.statistics import StatisticsQueries
    from agent_memory.storage.postgres.vector_index import VectorIndex
    from agent_memory.storage.sql.graph_maintenance import GraphMaintenance
    from agent_memory.storage.sql.rejections import RejectionTable
    from agent_memory.storage.sql.reviews import ReviewTable
    from agent_memory.storage.sql.tombstones import TombstoneTable
    from agent_memory.storage.sql.usage import UsageQueries


Value = TypeVar("Value")
_table: Final = parts_made_of("database", package="agent_memory.storage.postgres")

# Every write changes one of these: the agent's row with nearly every verb (a replica has the same
# transaction ids), the history with every memory, even if another program wrote it.
_STATE: Final = """
SELECT (SELECT xmin::text FROM agent), (SELECT max(change_id) FROM history),
  (SELECT max(erased_at) FROM tombstones),
  (SELECT string_agg(model_id || ' ' || xmin::text, ' ' ORDER BY model_id) FROM embedding_models),
  (SELECT count(*) FROM (SELECT FROM embedding_queue LIMIT 1000) AS queued),
  EXISTS (SELECT FROM memory_text WHERE tokens IS NULL)"""


class PostgresEngine:
    """One agent's memories in a database. Threads may share it."""

    capabilities = frozenset({Capability.REPAIR})

    # Tables and indexes that few verbs need.
    memory_rows: MemoryRowTable = _table(".tables.memory_rows:MemoryRowTable")
    rejections: RejectionTable = _table("..sql.rejections:RejectionTable")
    tombstones: TombstoneTable = _table("..sql.tombstones:TombstoneTable")
    reviews: ReviewTable = _table("..sql.reviews:ReviewTable")
    graph: GraphTable = _table(".tables.graph:GraphTable")
    graph_maintenance: GraphMaintenance = _table("..sql.graph_maintenance:GraphMaintenance")
    usage: UsageQueries = _table("..sql.usage:UsageQueries")
    statistics: StatisticsQueries = _table(".tables.statistics:StatisticsQueries")
    erasure: ErasureQueries = _table(".tables.erasure:ErasureQueries")
    event_log: EventLog = _table(".event_log:EventLog")
    stored_rows: StoredRows = _table(".stored_rows:StoredRows")
    similarity: SimilarityQueries = _table(".similarity:SimilarityQueries")
    vectors: VectorIndex = _table(".vector_index:VectorIndex")

    def __init__(self, database: Database, *, create: bool = True) -> None:
        self.database = database
        self._create = create
        self.memories = MemoryTable(database)
        self.history = HistoryTable(database)
        self.operations = OperationTable(database)
        self.agent = AgentTable(database)
        self.scratchpad = ScratchpadTable(database)
        self.recalls = RecallTable(database)
        self.fingerprints = FingerprintTable(database)
        self.embeddings = EmbeddingTable(database)
        self.keywords = KeywordIndex(database)
        database.before_commit.append(self.keywords.catch_up)

    @property
    def files(self) -> FileOperations:
        """Operations that only a file allows: there is none."""
        raise ConfigurationError(f"{self.location} is not a file")

    # Transactions -----------------------------------------------------------------------------

    @property
    def agent_id(self) -> str:
        return self.database.agent_id

    @property
    def location(self) -> str:
        """Where the memories are, for messages: the address without a password, and the agent."""
        return self.database.location

    @property
    def read_only(self) -> bool:
        return self.database.read_only

    @property
    def can_write(self) -> bool:
        return self.database.can_write

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """Run the body in one read transaction, which sees a single unchanging snapshot.

        First, the keyword index catches up with changes by other programs.
        """
        if self.can_write and self.keywords.is_stale():
            with self.database.write():
                pass
        with self.database.read():
            yield

    def lookup(self, look: Callable[[], Value]) -> Value:
        """Return what ``look`` returns in one read transaction, on the replica if there is one."""
        if self.can_write and self.keywords.is_stale():
            with self.database.write():
                pass
        return self.database.lookup(look, state=_STATE)

    def write(self, *, durable: bool = True) -> contextlib.AbstractContextManager[None]:
        return self.database.write(durable=durable)

    def nowait(self) -> contextlib.AbstractContextManager[None]:
        return self.database.nowait()

    @contextlib.contextmanager
    def reader(self) -> Iterator[PostgresEngine]:
        own = Database(self.database.address, read_only=True)
        with contextlib.closing(own), own.read():
            yield PostgresEngine(own)

    def alone(self, *, busy: str) -> contextlib.AbstractContextManager[None]:
        return self.database.alone(busy=busy)

    def close(self) -> None:
        """Release its connections. Closing twice is fine; later use raises ``StorageClosed``."""
        self.database.close()

    # Schema -----------------------------------------------------------------------------------

    def prepare(self, agent_id: str, *, clock: Callable[[], datetime]) -> None:
        """Apply pending migrations, and insert the agent's row if it does not exist."""
        now = clock()
        schema.prepare(self.database, now=format_time(now))
        if self.agent.identity() is not None:
            return
        if not self.memories.is_empty():  # a move writes the agent's row last
            raise StorageLocked(
                f"{self.location} is being moved here: run `agent-memory move` again to finish it"
            )
        if self.read_only or not self._create:
            raise AgentNotFound(
                f"{self.location} does not exist: `agent-memory agents` lists the existing ones"
            )
        with self.database.write():
            self.agent.create(agent_id, now=now)

    def upgrade(self, *, now: datetime) -> None:
        schema.prepare(self.database, now=format_time(now))

    @property
    def schema_version(self) -> int:
        return schema.current_version(self.database)

    @property
    def library_version(self) -> str:
        """The version of the server."""
        return str(self.database.value("SHOW server_version"))

    @property
    def server(self) -> ServerInfo:
        """The server, and this process's connections to it."""
        host, port = self.database.host()
        return ServerInfo(host=host, port=port, **self.database.pool.figures())

    # Maintenance ------------------------------------------------------------------------------

    def check(
        self,
        *,
        repair: bool,
        back_up: Callable[[], object],  # noqa: ARG002 - a repair only rebuilds derived data
    ) -> CheckReport:
        from agent_memory.storage.postgres.check import Check  # noqa: PLC0415 - seldom used

        return Check(self.database).report(repair=repair)

    def words(self, text: str) -> list[tuple[str, str]]:
        return self.database.words(text)

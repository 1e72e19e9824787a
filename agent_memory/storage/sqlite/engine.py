"""The SQLite engine: one open file, its tables and indexes, and what only a file can do.

A table is imported on first use: a search needs half of them, and starts twice as fast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from agent_memory.errors import StorageLocked
from agent_memory.models.times import format_time
from agent_memory.runtime.files import beside, locked
from agent_memory.runtime.lazy_parts import lazy_property, parts_made_of
from agent_memory.runtime.logs import logger
from agent_memory.runtime.paths import backup_advice
from agent_memory.storage.engine import Capability
from agent_memory.storage.sql.recalls import RecallTable
from agent_memory.storage.sql.scratchpad import ScratchpadTable
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database, library_version
from agent_memory.storage.sqlite.keyword_index import KeywordIndex
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.sqlite.tables.fingerprints import FingerprintTable
from agent_memory.storage.sqlite.tables.memories import MemoryTable

if TYPE_CHECKING:
    from agent_memory.models.agent import CheckReport
    from agent_memory.runtime.event_log import EventFile
    from agent_memory.storage.sql.reviews import ReviewTable
    from agent_memory.storage.sql.usage import UsageQueries
    from agent_memory.storage.sqlite.file_operations import FileOperations
    from agent_memory.storage.sqlite.similarity import SimilarityQueries
    from agent_memory.storage.sqlite.stored_rows import StoredRows
    from agent_memory.storage.sqlite.tables.embeddings import EmbeddingTable
    from agent_memory.storage.sqlite.tables.erasure import ErasureQueries
    from agent_memory.storage.sqlite.tables.graph import GraphTable
    from agent_memory.storage.sqlite.tables.graph_maintenance import GraphMaintenance
    from agent_memory.storage.sqlite.tables.history import HistoryTable, OperationTable
    from agent_memory.storage.sqlite.tables.memory_rows import MemoryRowTable
    from agent_memory.storage.sqlite.tables.rejections import RejectionTable
    from agent_memory.storage.sqlite.tables.statistics import StatisticsQueries
    from agent_memory.storage.sqlite.tables.tombstones import TombstoneTable
    from agent_memory.storage.sqlite.vector_index import VectorIndex

Value = TypeVar("Value")
_table: Final = parts_made_of("database", package="agent_memory.storage.sqlite")


class SQLiteEngine:
    """One agent's memories in one SQLite file. Threads may share it."""

    capabilities = frozenset(Capability)

    # Tables and indexes that few verbs need.
    history: HistoryTable = _table(".tables.history:HistoryTable")
    operations: OperationTable = _table(".tables.history:OperationTable")
    embeddings: EmbeddingTable = _table(".tables.embeddings:EmbeddingTable")
    memory_rows: MemoryRowTable = _table(".tables.memory_rows:MemoryRowTable")
    rejections: RejectionTable = _table(".tables.rejections:RejectionTable")
    tombstones: TombstoneTable = _table(".tables.tombstones:TombstoneTable")
    reviews: ReviewTable = _table("..sql.reviews:ReviewTable")
    graph: GraphTable = _table(".tables.graph:GraphTable")
    graph_maintenance: GraphMaintenance = _table(".tables.graph_maintenance:GraphMaintenance")
    usage: UsageQueries = _table("..sql.usage:UsageQueries")
    statistics: StatisticsQueries = _table(".tables.statistics:StatisticsQueries")
    erasure: ErasureQueries = _table(".tables.erasure:ErasureQueries")
    stored_rows: StoredRows = _table(".stored_rows:StoredRows")
    similarity: SimilarityQueries = _table(".similarity:SimilarityQueries")
    vectors: VectorIndex = _table(".vector_index:VectorIndex")
    files: FileOperations = _table(".file_operations:FileOperations")
    """Operations that only a file allows."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.memories = MemoryTable(database)
        self.agent = AgentTable(database)
        self.scratchpad = ScratchpadTable(database)
        self.recalls = RecallTable(database)
        self.fingerprints = FingerprintTable(database)
        self.keywords = KeywordIndex(database)

    @lazy_property
    def event_log(self) -> EventFile:
        from agent_memory.runtime.event_log import EventFile  # noqa: PLC0415 - only for events

        return EventFile(self.database.path)

    # Transactions -----------------------------------------------------------------------------

    @property
    def agent_id(self) -> str:
        return self.agent.agent_id

    @property
    def location(self) -> str:
        """Where the memories are, for messages: the path of the file."""
        return self.database.location

    @property
    def read_only(self) -> bool:
        return self.database.read_only

    @property
    def can_write(self) -> bool:
        """Whether the file may be written, as of the last time it was examined."""
        return self.database.can_write

    def read(self) -> contextlib.AbstractContextManager[None]:
        return self.database.read()

    def lookup(self, look: Callable[[], Value]) -> Value:
        with self.read():
            return look()

    def write(self, *, durable: bool = True) -> contextlib.AbstractContextManager[None]:
        """Run the body in one write transaction, which holds the write lock from its start."""
        return self.database.write(durable=durable)

    def nowait(self) -> contextlib.AbstractContextManager[None]:
        return self.database.nowait()

    @contextlib.contextmanager
    def reader(self) -> Iterator[SQLiteEngine]:
        database = self.database
        own = Database(database.path, create=False, read_only=True, agent_id=database.agent_id)
        with contextlib.closing(own), own.read():
            yield SQLiteEngine(own)

    def alone(self, *, busy: str) -> contextlib.AbstractContextManager[None]:
        """Run the body while no other process runs such a body; a file beside ours is locked."""
        return locked(beside(self.database.path, "-migration"), busy=busy)

    def close(self) -> None:
        """Close the file. Closing twice is fine; using it afterwards raises ``StorageClosed``."""
        self.database.close()

    # Schema -----------------------------------------------------------------------------------

    def prepare(self, agent_id: str, *, clock: Callable[[], datetime]) -> None:
        """Apply pending migrations, after a backup, and record whose file it is."""
        if schema.is_current(self.database) and self.agent.identity() is not None:
            return
        if schema.is_current(self.database):
            self._refuse_unfinished()
        if self.database.read_only:
            schema.refuse_incomplete(self.database)
        now = clock()
        is_new = schema.current_version(self.database) == 0
        # In one transaction: a file of schema 3, whose upgrade a disk cut short before the agent
        # was recorded, was taken for half of a move ever after.
        schema.upgrade(
            self.database,
            now=format_time(now),
            before_upgrade=lambda: self.files.back_up_before("upgrade", now=now, keep=5),
            and_then=lambda: self.agent.create(agent_id, now=now),
        )
        if self.agent.identity() is None:
            with self.database.write():
                self.agent.create(agent_id, now=now)
        advice = backup_advice(self.database.path) if is_new else None
        if advice is not None:
            logger().warning("%s is new and empty. %s", self.location, advice)

    def _refuse_unfinished(self) -> None:
        """Raise ``StorageLocked`` if not all rows of a move have arrived.

        When such a file was taken for a store, it had a third of the memories, and the move could
        not be resumed.
        """
        if self.agent.identity() is None and not self.memories.is_empty():
            raise StorageLocked(
                f"{self.location} is being moved here: run `agent-memory move` again to finish it,"
                " or delete the file"
            )

    def upgrade(self, *, now: datetime) -> None:
        schema.upgrade(self.database, now=format_time(now), before_upgrade=lambda: None)

    @property
    def schema_version(self) -> int:
        return schema.current_version(self.database)

    @property
    def server(self) -> None:
        """The server: a file has none."""

    @property
    def library_version(self) -> str:
        """The version of SQLite in use."""
        return library_version()

    # Maintenance ------------------------------------------------------------------------------

    def check(self, *, repair: bool, back_up: Callable[[], object]) -> CheckReport:
        from agent_memory.storage.sqlite.maintenance.check import check  # noqa: PLC0415

        return check(self.database, self.database.path, repair=repair, back_up=back_up)

    def words(self, text: str) -> list[tuple[str, str]]:
        return self.database.words(text)

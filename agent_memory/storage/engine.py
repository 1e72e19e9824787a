"""Protocols of an engine: the seam between the services and the storage behind them.

``services`` and everything above it know this module, ``filters``, ``records``, ``tables`` and
``indexes``, but no engine. ``storage.sqlite.engine`` is one implementation; ``storage.opening``
decides which engine an address means. Abilities that only some engines have are listed in
``Capability``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from agent_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from agent_memory.models.agent import CheckReport, ServerInfo
    from agent_memory.models.reports import BackupFile
    from agent_memory.storage.change_records import FileSummary, Purged, Replaced
    from agent_memory.storage.event_log import EventLog
    from agent_memory.storage.graph_tables import GraphMaintenance, GraphTable
    from agent_memory.storage.indexes import (
        EmbeddingTable,
        KeywordIndex,
        SimilarityQueries,
        VectorIndex,
    )
    from agent_memory.storage.queries import ErasureQueries, StatisticsQueries, UsageQueries
    from agent_memory.storage.stored_rows import StoredRows
    from agent_memory.storage.tables import (
        AgentTable,
        FingerprintTable,
        HistoryTable,
        MemoryRowTable,
        MemoryTable,
        OperationTable,
        RecallTable,
        RejectionTable,
        ReviewTable,
        ScratchpadTable,
        TombstoneTable,
    )

Value = TypeVar("Value")


class Capability(StrEnum):
    """Abilities that some engines have and others lack."""

    FILE_BACKUP = "file_backup"
    """Copies of the whole store as files: ``backup``, ``restore``, ``rebuild``."""
    SNAPSHOT = "snapshot"
    """A private copy of the store as it was at a moment: ``as_of``."""
    PROVEN_ERASURE = "proven_erasure"
    """Searching the raw bytes for erased text."""
    REPAIR = "repair"
    """Finding and repairing damage in the store: ``check``."""


_INSTEAD: Final = {
    Capability.FILE_BACKUP: "back up the database with its own tools, or export the memories",
    Capability.SNAPSHOT: "read the history of a memory instead",
    Capability.PROVEN_ERASURE: "the receipt of `erase` says where its operator may still have it",
    Capability.REPAIR: "use its own tools to look for damage",
}


def require(engine: Engine, capability: Capability) -> None:
    """Raise ``ConfigurationError``, naming the alternative, if an engine lacks a capability."""
    if capability not in engine.capabilities:
        name = capability.value.replace("_", " ")
        raise ConfigurationError(f"{engine.location} offers no {name}: {_INSTEAD[capability]}")


class Engine(Protocol):
    """The memories of one agent, opened. Threads may share it.

    The reading methods of the tables and indexes may be called outside a transaction; each then
    sees the current state. Methods that write must run inside ``write()``.
    """

    capabilities: frozenset[Capability]

    @property
    def agent_id(self) -> str:
        """The agent whose memories these are; empty if the store does not say."""

    @property
    def memories(self) -> MemoryTable:
        """The memories, as models."""

    @property
    def memory_rows(self) -> MemoryRowTable:
        """The memories as stored rows, by column: for undo, import and export."""

    @property
    def history(self) -> HistoryTable:
        """The history: every change of a memory."""

    @property
    def operations(self) -> OperationTable:
        """The operations: groups of changes made by one verb, and what cannot be undone."""

    @property
    def agent(self) -> AgentTable:
        """The agent's row: its id, its settings, its counters."""

    @property
    def scratchpad(self) -> ScratchpadTable:
        """The memories in the scratchpad."""

    @property
    def recalls(self) -> RecallTable:
        """When each memory was last returned to the agent."""

    @property
    def rejections(self) -> RejectionTable:
        """The rejections: values that must not be stored again."""

    @property
    def tombstones(self) -> TombstoneTable:
        """The tombstones: what was erased, and must not come back."""

    @property
    def reviews(self) -> ReviewTable:
        """The reviews: memories under review."""

    @property
    def fingerprints(self) -> FingerprintTable:
        """The fingerprints, used to find near duplicates."""

    @property
    def embeddings(self) -> EmbeddingTable:
        """Embedding models, their vectors, and the embedding queue."""

    @property
    def graph(self) -> GraphTable:
        """Entities and relationships."""

    @property
    def graph_maintenance(self) -> GraphMaintenance:
        """Queries on the graph for merging, undo, erasure, import and export."""

    @property
    def usage(self) -> UsageQueries:
        """Queries on how each memory is used, and on the number and size of each kind."""

    @property
    def statistics(self) -> StatisticsQueries:
        """Queries for statistics."""

    @property
    def erasure(self) -> ErasureQueries:
        """Queries that erase memories permanently, and find what is left of them."""

    @property
    def event_log(self) -> EventLog:
        """The event log, for observers: not part of the memory, and left behind by a move."""

    @property
    def stored_rows(self) -> StoredRows:
        """The rows of all tables as stored, for a move to another engine."""

    @property
    def keywords(self) -> KeywordIndex:
        """The keyword index."""

    @property
    def similarity(self) -> SimilarityQueries:
        """Queries for memories that share many words with a text."""

    @property
    def vectors(self) -> VectorIndex:
        """The vector index."""

    @property
    def files(self) -> FileOperations:
        """Operations that only a file allows. Raises ``ConfigurationError`` if there is no file."""

    @property
    def location(self) -> str:
        """Where the memories are, for messages."""

    @property
    def read_only(self) -> bool:
        """Whether the engine was opened read-only."""

    @property
    def can_write(self) -> bool:
        """Whether a write may succeed, as far as is known."""

    @property
    def schema_version(self) -> int:
        """The number of the last migration applied."""

    @property
    def library_version(self) -> str:
        """The version of the database in use."""

    @property
    def server(self) -> ServerInfo | None:
        """The server and this process's connections to it; ``None`` if there is no server."""

    def read(self) -> AbstractContextManager[None]:
        """Run the body in one read transaction, which sees a single unchanging snapshot."""

    def lookup(self, look: Callable[[], Value]) -> Value:
        """Return what ``look`` returns in one read transaction. It may be called more than once.

        It sees everything acknowledged before, and must not begin a transaction.
        """

    def write(self, *, durable: bool = True) -> AbstractContextManager[None]:
        """Run the body in one write transaction, isolated from every other writer.

        ``durable=False`` is for data that can be recomputed, such as embeddings: a power cut may
        lose it.
        """

    def nowait(self) -> AbstractContextManager[None]:
        """Make a write in the body fail at once with ``StorageLocked`` instead of waiting."""

    def reader(self) -> AbstractContextManager[Engine]:
        """Give the body an engine of its own with one unchanging snapshot; nobody waits for it."""

    def alone(self, *, busy: str) -> AbstractContextManager[None]:
        """Run the body while no other process runs such a body on this store: for a long task.

        Raises ``StorageLocked`` with the text ``busy`` if one does. Others may still read and
        write.
        """

    def close(self) -> None:
        """Close the engine. Closing twice is fine; using it afterwards raises ``StorageClosed``."""

    def prepare(self, agent_id: str, *, clock: Callable[[], datetime]) -> None:
        """Apply pending migrations, after a backup, and record whose memories they are."""

    def upgrade(self, *, now: datetime) -> None:
        """Apply pending migrations, without a backup."""

    def check(self, *, repair: bool, back_up: Callable[[], object]) -> CheckReport:
        """Check for damage and drift. ``repair`` mends them, after ``back_up`` if needed."""

    def words(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text, each as the keyword index holds it and as it is written."""


class FileOperations(Protocol):
    """Operations on one open file that only a file allows."""

    @property
    def path(self) -> Path:
        """The absolute path of the file."""

    @property
    def journal(self) -> Literal["wal", "rollback"]:
        """The journal mode: a write-ahead log or a rollback journal."""

    @property
    def warning(self) -> str | None:
        """A warning about the file's drive or hard links, or ``None``."""

    def back_up(self, destination: Path | None, *, now: datetime) -> Path:
        """Write a consistent copy of the file, while others may write, and return its path.

        A file at the destination is replaced: the caller has already checked that it may be.
        """

    def back_up_before(self, reason: str, *, now: datetime, keep: int) -> Path | None:
        """Write a copy into ``backups/`` and drop the oldest with that reason beyond ``keep``."""

    def abandoned_backups(self, *, remove: bool) -> list[Path]:
        """Return partial backups left behind by killed processes; ``remove`` deletes them."""

    def list_backups(self) -> list[BackupFile]:
        """Return the backups beside the file, newest first."""

    def raw_parts(self) -> list[Path]:
        """Return the file, and its log unless the log is empty."""

    def raw(self, part: Path, length: int) -> Iterator[bytes]:
        """Yield the raw bytes of one of these, ``length`` at a time but for the last."""

    def refuse_readers(self) -> None:
        """Raise ``StorageLocked`` while anyone is reading an older state of the file."""

    def compact(self) -> None:
        """Vacuum the file: rewrite it with only what its tables hold, and empty the log."""

    def rewriting(
        self, changed: Sequence[str], *, kept: Sequence[str]
    ) -> AbstractContextManager[None]:
        """Let the body rewrite many memories, then rebuild indexes. Must run inside ``write()``."""


class FileStorage(Protocol):
    """Operations on files of memories that no engine has open."""

    def is_open_here(self, path: Path) -> bool:
        """Return whether this process has a file open as a store, or as the log of one."""

    def private_copy(self, source: Path) -> AbstractContextManager[Path]:
        """Copy a store into a private folder, which is deleted after the body."""

    def peer_of(self, path: Path) -> str | None:
        """Return which program's database a file is, or ``None`` if it is no known program's."""

    def peer_rows(
        self, path: Path, peer: str
    ) -> AbstractContextManager[Iterator[tuple[str, dict[str, object]]]]:
        """Give the body the rows of another program's tables, without writing to the file."""

    def private_folder(self) -> AbstractContextManager[Path]:
        """Make a folder that nobody else may enter; deleted after the body, or swept later."""

    def sweep_copies(self) -> None:
        """Delete copies left behind by killed processes."""

    def raw_of_file(self, path: Path, length: int) -> Iterator[bytes]:
        """Yield the bytes of a file, in chunks of ``length`` (the last may be shorter)."""

    def latest_version(self) -> int:
        """Return the number of the newest migration."""

    def summarize(self, place: Path) -> FileSummary | None:
        """Return the summary of a file to be replaced, or ``None`` if nothing can be read."""

    def summarize_backup(self, backup: Path) -> FileSummary:
        """Return the summary of a backup. Raises ``NewerSchema``, ``NotAMemoryFile`` and others."""

    def list_backups(self, source: Path) -> list[BackupFile]:
        """Return the backups in ``backups/`` beside a store, newest first."""

    def find_backup(self, place: Path, backup: str) -> Path | None:
        """Return the backup in ``backups/`` with this name, or the newest for ``latest``."""

    def prepare(
        self, backup: Path, new: Path, *, now: datetime, page_size: int | None
    ) -> CheckReport:
        """Copy a backup into a new private file, apply pending migrations there, and check it."""

    def replace(
        self,
        place: Path,
        new: Path,
        *,
        now: datetime,
        keep: bool,
        purge: Callable[[Engine], Purged],
    ) -> Replaced:
        """Replace a store's content with that of a closed private file, minus what was erased."""

    def put_in_place(self, place: Path, new: Path, word: str, *, now: datetime) -> Path | None:
        """Rename a closed file over a store that cannot be opened or does not exist."""

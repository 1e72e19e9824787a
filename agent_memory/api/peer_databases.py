"""The databases of other programs as import formats; an engine reads their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_memory.errors import ValidationError
from agent_memory.formats.peers.database_rows import entries_of
from agent_memory.formats.peers.qdrant_points import entries_of_point
from agent_memory.formats.protocol import Reader, Sample
from agent_memory.models.portable import Entry, PassedOver
from agent_memory.runtime.addresses import ServerAddress
from agent_memory.storage.opening import file_storage, rows_on_server

_MAGIC: Final = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class PeerDatabase(Reader):
    """The database of another program. Only a copy of it is read; nothing is written beside it."""

    name: str

    def recognises(self, sample: Sample) -> bool:
        """Return whether it has the tables of that program."""
        return sample.head.startswith(_MAGIC) and file_storage().peer_of(sample.path) == self.name

    def read(self, path: Path) -> Iterator[Entry | PassedOver]:
        """Yield a memory for each row that holds one."""
        with file_storage().peer_rows(path, self.name) as rows:
            for number, (table, row) in enumerate(rows, 1):
                yield from entries_of(self.name, table, row, f"{table}, row {number}")


def entries_on_server(server: ServerAddress) -> Iterator[Entry | PassedOver]:
    """Yield a memory for each row of LangGraph's PostgresStore in a database."""
    with rows_on_server(server) as rows:
        for number, (table, row) in enumerate(rows, 1):
            yield from entries_of(LANGGRAPH.name, table, row, f"{table}, row {number}")


class Mem0(Reader):
    """mem0's memories: the points of its local Qdrant, or the newest states of its history."""

    name = "mem0"

    def recognises(self, sample: Sample) -> bool:
        """Return whether it is a database of mem0, or the folder of one."""
        if sample.is_folder:
            return bool(_collections(sample.path)) or _history(sample.path) is not None
        return sample.head.startswith(_MAGIC) and file_storage().peer_of(sample.path) in _OF_MEM0

    def read(self, path: Path) -> Iterator[Entry | PassedOver]:
        """Yield a memory for each point or, if there are none, for each memory in the history."""
        files = _collections(path) if path.is_dir() else [path]
        history = _history(path) if path.is_dir() else None
        if not files and history is None:
            raise ValidationError(f"{path}: has neither collection/*/storage.sqlite nor history.db")
        for file in files or [history or path]:
            yield from self._of_file(file)
        if files and history is not None:
            yield PassedOver("history.db, because the collection has the current memories")

    def _of_file(self, file: Path) -> Iterator[Entry | PassedOver]:
        peer = file_storage().peer_of(file) or self.name
        with file_storage().peer_rows(file, peer if peer in _OF_MEM0 else self.name) as rows:
            for number, (table, row) in enumerate(rows, 1):
                place = f"{file.parent.name}, {table}, row {number}"
                if table == "points":
                    yield from entries_of_point(row["point"], place, self.name)
                else:
                    yield from entries_of(self.name, table, row, place)


_OF_MEM0: Final = ("mem0", "mem0-vectors")


def _collections(path: Path) -> list[Path]:
    """Return the databases of Qdrant's local mode in a folder, but for what mem0 notes itself."""
    files = sorted(path.glob("collection/*/storage.sqlite"))
    return [file for file in files if file.parent.name != "mem0migrations"]


def _history(path: Path) -> Path | None:
    file = path / "history.db"
    return file if file.is_file() and file_storage().peer_of(file) == "mem0" else None


MEM0: Final = Mem0()
MCP_MEMORY_SERVICE: Final = PeerDatabase("mcp-memory-service")
LANGGRAPH: Final = PeerDatabase("langgraph")
CLAUDE_MEM: Final = PeerDatabase("claude-mem")
ENGRAM: Final = PeerDatabase("engram")
MNEMOSYNE: Final = PeerDatabase("mnemosyne")
BASIC_MEMORY: Final = PeerDatabase("basic-memory")

"""What a format is: how it is recognised, read and written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from agent_memory.models.agent import AgentMetadata
from agent_memory.models.memory import Memory
from agent_memory.models.portable import Entry, PassedOver
from agent_memory.models.scratchpad import Scratchpad

MEMORIES_ALONE: Final = (
    "only the memories: the rest is in an export of the whole agent in the format `store`"
)
"""What the formats without a place for anything else note; true of one user's memories too."""


class Sample(NamedTuple):
    """The beginning of a file to recognise. ``head`` has 64 KiB at most, none for a folder."""

    path: Path
    head: bytes
    is_folder: bool

    def text(self) -> str:
        """Return the head as text, without a byte order mark and leading white space."""
        return self.head.decode("utf-8-sig", errors="replace").lstrip()


class Source(Protocol):
    """A store to write out, as it was at one moment."""

    @property
    def agent_id(self) -> str:
        """The agent whose store it is."""

    @property
    def changed_at(self) -> datetime:
        """When a memory was last changed or accessed: always the same for the same store."""

    def metadata(self) -> AgentMetadata:
        """Return A's metadata of the agent."""

    def scratchpad(self) -> Scratchpad:
        """Return the hot set, most recently used first."""

    def memories(self) -> Iterator[Memory]:
        """Yield all memories, archived ones too, in the order in which they were stored.

        They have their ``embedding`` if embeddings were requested.
        """

    def entries(self) -> Iterator[Entry]:
        """Yield everything in the store, by section, in the order of ``Section``."""

    def count(self) -> int:
        """Count all memories, archived ones too."""

    def copy_into(self, path: Path) -> None:
        """Replace the file at ``path`` with a copy of the store's own file; read nothing else."""


@dataclass(slots=True)
class Written:
    """The number of memories written, what has no place in the format, and where it went."""

    memories: int = 0
    notes: list[str] = field(default_factory=list)


class Reader(Protocol):
    """A reader of a format, ours or another program's."""

    name: str
    """Its name for ``--format``."""
    skips_bad: bool = False
    """Whether bad entries are skipped and reported instead of stopping the import."""

    def recognises(self, sample: Sample) -> bool:
        """Return whether this is of the format, by its content. Formats are asked in order."""

    def read(self, path: Path) -> Iterator[Entry | PassedOver]:
        """Yield the contents, in bounded memory.

        The error of one entry is in its ``error``. Raises ``ValidationError`` with the file and the
        line after which nothing can be read, and ``StorageUnavailable`` if the file cannot be read
        at all.
        """


class Codec(Reader, Protocol):
    """A format. Its module has one instance, which the table in ``registry`` names."""

    is_folder: bool = False
    """Whether it is a folder of files."""

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the contents; a format of ours skips nothing."""

    def write(self, path: Path, source: Source) -> Written:
        """Write a store, streaming, and replace what is at ``path``: all or nothing.

        Raises ``StorageFull`` and ``StorageUnavailable``.
        """

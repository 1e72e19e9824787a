"""What a format is: how it is recognised, read, and written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from agent_memory.models.agent import AgentMetadata
from agent_memory.models.memory import Memory
from agent_memory.models.portable import Entry, PassedOver
from agent_memory.models.scratchpad import Scratchpad


class Sample(NamedTuple):
    """The beginning of what is to be recognised. ``head`` has 64 KiB at most, none of a folder."""

    path: Path
    head: bytes
    is_folder: bool

    def text(self) -> str:
        """Return the head as text, without a byte order mark and leading white space."""
        return self.head.decode("utf-8-sig", errors="replace").lstrip()


class Source(Protocol):
    """A store that is written out, as it stands at one moment."""

    @property
    def agent_id(self) -> str:
        """Whose it is."""

    @property
    def changed_at(self) -> datetime:
        """When a memory was last changed or accessed: the same for the same store."""

    def metadata(self) -> AgentMetadata:
        """Return A's metadata of the agent."""

    def scratchpad(self) -> Scratchpad:
        """Return the hot set, most recently used first."""

    def memories(self) -> Iterator[Memory]:
        """Yield all memories, archived ones too, in the order in which they were stored.

        With their ``embedding``, if embeddings are wanted.
        """

    def entries(self) -> Iterator[Entry]:
        """Yield everything that the store holds, by section, in the order of ``Section``."""

    def count(self) -> int:
        """Count all memories, archived ones too."""

    def copy_into(self, path: Path) -> None:
        """Write the store's own file, as a copy, in place of what stands there; read no more."""


@dataclass(slots=True)
class Written:
    """How many memories were written, and what has no place in the format, and where it went."""

    memories: int = 0
    notes: list[str] = field(default_factory=list)


class Reader(Protocol):
    """What reads a format, its own or another program's."""

    name: str
    """What ``--format`` calls it."""
    skips_bad: bool = False
    """Whether what is wrong is left out and told, and keeps nothing else from being taken in."""

    def recognises(self, sample: Sample) -> bool:
        """Return whether this is of the format, by its content. Formats are asked in order."""

    def read(self, path: Path) -> Iterator[Entry | PassedOver]:
        """Yield what it tells, in bounded memory.

        What is wrong with one entry is that entry's ``error``. Raises ``ValidationError`` with
        the file and the line for what cannot be read past, ``StorageUnavailable`` for what cannot
        be read at all.
        """


class Codec(Reader, Protocol):
    """A format. Its module has one object of it, and the table in ``registry`` names that."""

    is_folder: bool = False
    """Whether it is a folder of files."""

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield what it tells; a format of ours passes nothing over."""

    def write(self, path: Path, source: Source) -> Written:
        """Write a store, streaming, in place of what stands there; all or nothing.

        Raises ``StorageFull`` and ``StorageUnavailable``.
        """

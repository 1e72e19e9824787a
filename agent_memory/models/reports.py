"""What verbs report: of imports and exports, backups and restores, and erasures."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record

OnConflict = Literal["skip", "replace", "newer", "keep-both"]
"""What an import does with a memory that is there already, with another content."""


class ImportNote(Record, frozen=True):
    """Something about one entry of a file: where it stands, and what is to be said."""

    place: str
    memory_id: str | None = None
    message: str


class ImportReport(Record):
    """What an import did, or would do.

    ``new`` memories were not there, ``changed`` ones were and became what the file says, ``same``
    ones say the same, ``kept`` ones differ and were left as they are, ``refused`` entries could not
    be taken, ``erased`` memories were erased here, and so they, or their history, were left out.
    ``refusals`` says why, ``repairs`` what was put right, ``erasures`` what was left out; of each
    the first 1,000 are listed, and the counts tell how many there were. ``notes`` are about the
    file as a whole. ``backup`` is the copy of the store that was made before anything in it was
    replaced.
    """

    path: str
    format: str
    agent_id: str | None = None
    dry_run: bool = False
    new: int = Field(default=0, ge=0)
    changed: int = Field(default=0, ge=0)
    same: int = Field(default=0, ge=0)
    kept: int = Field(default=0, ge=0)
    refused: int = Field(default=0, ge=0)
    repaired: int = Field(default=0, ge=0)
    erased: int = Field(default=0, ge=0)
    refusals: list[ImportNote] = Field(default_factory=list)
    repairs: list[ImportNote] = Field(default_factory=list)
    erasures: list[ImportNote] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    settings: dict[str, object] = Field(default_factory=dict)
    backup: str | None = None


@dataclass(slots=True)
class Plan:
    """What became, or would become, of the entries.

    ``refusals`` and ``erasures`` are places, ids and reasons.
    """

    new: int = 0
    changed: int = 0
    same: int = 0
    kept: int = 0
    refusals: list[tuple[str, str, str]] = field(default_factory=list)
    erasures: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)


class MoveReport(Record, frozen=True):
    """What was moved, from where and to where: how many rows of each kind.

    ``written`` counts the rows that were not there yet, or differed: fewer than ``rows`` where a
    move that had stopped went on.
    """

    agent_id: str
    source: str
    target: str
    memories: int = Field(ge=0)
    changes: int = Field(ge=0)
    entities: int = Field(ge=0)
    relationships: int = Field(ge=0)
    embeddings: int = Field(ge=0)
    rows: int = Field(ge=0)
    written: int = Field(ge=0)


class ExportReport(Record, frozen=True):
    """What was written out, where, and what has no place in the format."""

    path: str
    format: str
    memory_count: int = Field(ge=0)
    notes: list[str] = Field(default_factory=list)


class BackupFile(Record, frozen=True):
    """One of the backups beside an agent's file.

    ``made_at`` is the time in its name, else that of its last change. ``reason`` says what it was
    made before; ``None`` is one made by hand. ``memory_count`` includes archived memories; it is
    ``None`` where the file cannot be read, and ``problem`` says why.
    """

    path: str
    made_at: UtcDatetime
    reason: str | None = None
    size_bytes: int = Field(ge=0)
    memory_count: int | None = None
    problem: str | None = None


class RestoreReport(Record, frozen=True):
    """What a memory was restored from.

    ``replaced`` is where the file is kept that was there before, if there was one and it was to be
    kept. ``upgraded_from`` is the backup's schema version where that was an older one.
    ``rejections_kept`` says whether what must not come back, rejected or erased, could be read from
    the file that was there; where it is ``False``, only what the backup knows of stays out.
    ``rejected`` is how many of the restored memories hold a rejected value, ``erased`` how many of
    the backup's were erased since it was made, and so were left out.
    """

    path: str
    backup: str
    memory_count: int = Field(ge=0)
    replaced: str | None
    upgraded_from: int | None = None
    rejections_kept: bool = True
    rejected: int = Field(default=0, ge=0)
    erased: int = Field(default=0, ge=0)


class ErasedCopy(Record, frozen=True):
    """A file beside the store that may hold what was erased: a backup, or a file set aside.

    ``erased``: the memories were taken out of it. ``found``: its bytes still hold a piece of them.
    ``problem`` says why it could not be erased, or looked through.
    """

    path: str
    erased: bool = False
    found: bool = False
    problem: str | None = None


class ErasureReceipt(Record, frozen=True):
    """What was erased, and what the files were found to hold afterwards. It has none of it.

    ``ids`` are the memories that were named; ``memories``, ``changes`` (rows of the history) and
    ``embeddings`` count what was removed of them from the store, without its ``backups``.
    ``files_scanned`` files of ``bytes_scanned`` bytes in all were looked through. ``found`` says in
    words what is left and where. ``also_in`` are the ids of other memories that say a piece of it,
    24 bytes or more, now or in their history, those that say most of it first, 100 at most: they
    were not touched. ``with_backups`` tells whether the backups were to be erased too; without,
    those of ``backups`` that were ``found`` to hold something still do: the one that was made
    before this erasure, for one. ``erase`` with backups and the same ids takes it out there.
    ``beyond`` says where a database that the library does not own may still have it: there no bytes
    are looked through, but all rows are.
    """

    ids: list[str]
    memories: int = Field(ge=0)
    changes: int = Field(ge=0)
    embeddings: int = Field(ge=0)
    with_backups: bool = False
    backups: list[ErasedCopy] = Field(default_factory=list)
    files_scanned: int = Field(ge=0)
    bytes_scanned: int = Field(ge=0)
    found: list[str] = Field(default_factory=list)
    also_in: list[str] = Field(default_factory=list)
    beyond: list[str] = Field(default_factory=list)
    erased_at: UtcDatetime

    @property
    def clean(self) -> bool:
        """Return whether nothing is left in the store but what other memories say.

        Nor in its backups, if those were to be erased too.
        """
        copies = self.backups if self.with_backups else []
        return not self.found and not any(copy.found or copy.problem for copy in copies)

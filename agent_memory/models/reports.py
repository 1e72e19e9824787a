"""The reports of verbs: imports and exports, backups and restores, and erasures."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record

OnConflict = Literal["skip", "replace", "newer", "keep-both"]
"""What an import does with a memory whose id exists here with other content."""


class ImportNote(Record, frozen=True):
    """A message about one entry of a file, and where that entry is."""

    place: str
    memory_id: str | None = None
    message: str


class ImportReport(Record):
    """What an import did, or would do.

    - ``new``: memories that did not exist here.
    - ``changed``: memories that existed and now are what the file says.
    - ``same``: memories that are identical here.
    - ``kept``: memories that differ and were left as they are.
    - ``refused``: entries that could not be imported.
    - ``repaired``: entries that had to be corrected.
    - ``erased``: memories that were erased here, so that they, or their history, were left out.

    ``refusals``, ``repairs`` and ``erasures`` explain these, the first 1,000 of each; the counts
    are complete. ``notes`` are about the file as a whole. ``backup`` is the copy of the store made
    before anything in it was replaced.
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


class ImportOptions(NamedTuple):
    """How an import is done.

    Unless it ``refuses``, a memory that is not admitted is left out and listed in the plan.
    ``is_foreign`` is whether the file belongs to another agent, ``include_erased`` whether memories
    that were erased here are imported again. A ``dry_run`` only returns the plan.
    """

    on_conflict: OnConflict
    dry_run: bool
    refuses: bool
    is_foreign: bool
    include_erased: bool
    session_id: str


@dataclass(slots=True)
class Plan:
    """The outcome, or the expected outcome, for the entries.

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
    """What was moved, from where to where: how many rows of each kind.

    ``written`` counts the rows that did not exist at the target yet, or differed: it is less than
    ``rows`` if the move continued an interrupted one. ``notes`` say what was not moved.
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
    notes: list[str] = Field(default_factory=list)


class ExportReport(Record, frozen=True):
    """What was exported and where, and in ``notes`` what the format cannot hold."""

    path: str
    format: str
    memory_count: int = Field(ge=0)
    notes: list[str] = Field(default_factory=list)


class BackupFile(Record, frozen=True):
    """One of the backups beside an agent's file.

    ``made_at`` is the time in its name, or else its modification time. ``reason`` says what it was
    made before; it is ``None`` for a backup made by hand. ``memory_count`` includes archived
    memories; it is ``None`` if the file cannot be read, and ``problem`` says why.
    """

    path: str
    made_at: UtcDatetime
    reason: str | None = None
    size_bytes: int = Field(ge=0)
    memory_count: int | None = None
    problem: str | None = None


class RestoreReport(Record, frozen=True):
    """What a memory was restored from.

    - ``replaced``: where the previous file is kept, if there was one and it was to be kept.
    - ``upgraded_from``: the backup's schema version, if that was an older one.
    - ``rejections_kept``: whether the previous file's rejections and erasures could be read. If
      ``False``, only those that the backup knows of are respected.

    ``rejected`` of the restored memories contain a rejected text; ``erased`` of the backup's
    memories were left out because they have been erased since.
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
    """A file beside the store that may contain erased content: a backup, or a file set aside.

    ``erased``: the memories were removed from it. ``found``: its bytes still contain a piece of
    them. ``problem`` says why it could not be erased or scanned.
    """

    path: str
    erased: bool = False
    found: bool = False
    problem: str | None = None


class ErasureReceipt(Record, frozen=True):
    """What was erased, and what a scan found afterwards.

    - ``ids``: the memories that were named.
    - ``memories``, ``changes`` (rows of the history) and ``embeddings``: how many were removed from
      the store, not counting its ``backups``.
    - ``by_hand``: how many entities and relationships were removed there that were stated by hand.
    - ``files_scanned``, ``bytes_scanned``: how many files were scanned, and their total size.
    - ``found``: what is left and where, in words.
    - ``also_in``: the ids of other memories that contain a piece of it, 24 bytes or more, now or in
      their history; those with the most of it first, at most 100. They were not changed.
    - ``with_backups``: whether the backups were to be erased too. If not, those ``backups`` marked
      ``found`` still contain something, such as the one made before this erasure; call ``erase``
      with the same ids and ``backups`` to remove it there.
    - ``beyond``: where else a database that the library does not own may still hold it. There all
      rows are scanned, but no bytes.

    The receipt contains none of the erased content.
    """

    ids: list[str]
    memories: int = Field(ge=0)
    changes: int = Field(ge=0)
    embeddings: int = Field(ge=0)
    by_hand: int = Field(default=0, ge=0)
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
        """Return whether nothing is left in the store except what other memories say.

        If the backups were to be erased too, this includes them.
        """
        copies = self.backups if self.with_backups else []
        return not self.found and not any(copy.found or copy.problem for copy in copies)

"""What became of memories that were taken in or written out."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import ConfigDict, Field

from agent_memory.models.record import Record

OnConflict = Literal["skip", "replace", "newer", "keep-both"]
"""What an import does with a memory that is there already, with another content."""


class ImportNote(Record):
    """Something about one entry of a file: where it stands, and what is to be said."""

    model_config = ConfigDict(frozen=True)

    place: str
    memory_id: str | None = None
    message: str


class ImportReport(Record):
    """What an import did, or would do.

    ``new`` memories were not there, ``changed`` ones were and became what the file says, ``same``
    ones say the same, ``kept`` ones differ and were left as they are, ``refused`` entries could not
    be taken. ``refusals`` says why, ``repairs`` what was put right; of each the first 1,000 are
    listed, and the counts tell how many there were. ``notes`` are about the file as a whole.
    ``backup`` is the copy of the store that was made before anything in it was replaced.
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
    refusals: list[ImportNote] = Field(default_factory=list)
    repairs: list[ImportNote] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    settings: dict[str, object] = Field(default_factory=dict)
    backup: str | None = None


@dataclass(slots=True)
class Plan:
    """What became, or would become, of the entries; ``refusals`` are places, ids and reasons."""

    new: int = 0
    changed: int = 0
    same: int = 0
    kept: int = 0
    refusals: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)


class ExportReport(Record):
    """What was written out, where, and what has no place in the format."""

    model_config = ConfigDict(frozen=True)

    path: str
    format: str
    memory_count: int = Field(ge=0)
    notes: list[str] = Field(default_factory=list)

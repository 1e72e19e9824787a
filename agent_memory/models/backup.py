"""Backups of an agent's file, and what became of a restoring."""

from pydantic import ConfigDict, Field

from agent_memory.models.record import Record
from agent_memory.models.times import UtcDatetime


class BackupFile(Record):
    """One of the backups beside an agent's file.

    ``made_at`` is the time in its name, else that of its last change. ``reason`` says what it was
    made before; ``None`` is one made by hand. ``memory_count`` includes archived memories; it is
    ``None`` where the file cannot be read, and ``problem`` says why.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    made_at: UtcDatetime
    reason: str | None = None
    size_bytes: int = Field(ge=0)
    memory_count: int | None = None
    problem: str | None = None


class RestoreReport(Record):
    """What a memory was restored from.

    ``replaced`` is where the file is kept that was there before, if there was one and it was to be
    kept. ``upgraded_from`` is the backup's schema version where that was an older one.
    ``rejections_kept`` says whether what must not come back could be read from the file that was
    there; where it is ``False``, only what the backup knows of is refused from now on.
    ``rejected`` is how many of the restored memories hold a rejected value.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    backup: str
    memory_count: int = Field(ge=0)
    replaced: str | None
    upgraded_from: int | None = None
    rejections_kept: bool = True
    rejected: int = Field(default=0, ge=0)

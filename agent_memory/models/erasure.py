"""What an erasure removed, and whether anything of it is left."""

from pydantic import ConfigDict, Field

from agent_memory.models.record import Record
from agent_memory.models.times import UtcDatetime


class ErasedCopy(Record):
    """A file beside the store that may hold what was erased: a backup, or a file set aside.

    ``erased``: the memories were taken out of it. ``found``: its bytes still hold a piece of them.
    ``problem`` says why it could not be erased, or looked through.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    erased: bool = False
    found: bool = False
    problem: str | None = None


class ErasureReceipt(Record):
    """What was erased, and what the files were found to hold afterwards. It has none of it.

    ``ids`` are the memories that were named; ``memories``, ``changes`` (rows of the history) and
    ``embeddings`` count what was removed of them from the store, without its ``backups``.
    ``files_scanned`` files of ``bytes_scanned`` bytes in all were looked through. ``found`` says in
    words what is left and where. ``also_in`` are the ids of other memories that say a piece of it,
    24 bytes or more, now or in their history, those that say most of it first, 100 at most: they
    were not touched. ``with_backups`` tells whether the backups were to be erased too; without,
    those of ``backups`` that were ``found`` to hold something still do.
    """

    model_config = ConfigDict(frozen=True)

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
    erased_at: UtcDatetime

    @property
    def clean(self) -> bool:
        """Return whether nothing is left in the store but what other memories say.

        Nor in its backups, if those were to be erased too.
        """
        copies = self.backups if self.with_backups else []
        return not self.found and not any(copy.found or copy.problem for copy in copies)

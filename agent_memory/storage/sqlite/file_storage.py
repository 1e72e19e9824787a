"""Operations on files that no engine has open; ``storage.opening.file_storage`` returns them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from agent_memory.errors import StorageUntrusted
from agent_memory.runtime.files import translated_errors
from agent_memory.runtime.private_folders import private_folder, sweep_copies
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import is_open_here, raw_of_file
from agent_memory.storage.sqlite.maintenance.backup import copy_store, list_backups
from agent_memory.storage.sqlite.maintenance.replace import (
    find_backup,
    prepare,
    put_in_place,
    replace,
    summarize,
    summarize_backup,
)
from agent_memory.storage.sqlite.peer_databases import peer_of, peer_rows
from agent_memory.storage.sqlite.schema import latest_version

__all__ = [
    "find_backup",
    "is_open_here",
    "latest_version",
    "list_backups",
    "peer_of",
    "peer_rows",
    "prepare",
    "private_copy",
    "private_folder",
    "put_in_place",
    "raw_of_file",
    "replace",
    "summarize",
    "summarize_backup",
    "sweep_copies",
]


@contextlib.contextmanager
def private_copy(source: Path) -> Iterator[Path]:
    """Copy a store into a private folder, which is deleted after the body."""
    with private_folder() as folder:
        copy = folder / source.name
        with translated_errors(copy):
            copy_store(source, copy)
            _disarm(copy)
        yield copy


def _disarm(copy: Path) -> None:
    """Drop the foreign triggers and views of a copy; none of them runs here.

    If that is not enough, the copy can be read, but not written.
    """
    with contextlib.closing(schema.open_vetted(copy, create=False)) as database:
        if not database.can_write:
            with contextlib.suppress(StorageUntrusted), database.write(vetted=False):
                schema.repair(database)
                database.trust()

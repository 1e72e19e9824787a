"""Operations on files that no engine has open; ``storage.opening.file_storage`` returns them."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_memory.errors import StorageError, StorageUntrusted
from agent_memory.runtime.files import locked, translated_errors
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import is_open_here, raw_of_file
from agent_memory.storage.sqlite.maintenance.backup import copy_store
from agent_memory.storage.sqlite.maintenance.replace import (
    find_backup,
    prepare,
    put_in_place,
    replace,
    summarize,
    summarize_backup,
)
from agent_memory.storage.sqlite.schema import latest_version

__all__ = [
    "find_backup",
    "is_open_here",
    "latest_version",
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


_PREFIX: Final = "agent-memory-copy-"
_IN_USE: Final = "in-use"
_MOMENT: Final = 60.0
"""Seconds in which a new folder gets its lock."""


@contextlib.contextmanager
def private_copy(source: Path) -> Iterator[Path]:
    """Make a copy of a store in a private folder; it goes with the body."""
    with private_folder() as folder:
        copy = folder / source.name
        with translated_errors(copy):
            copy_store(source, copy)
            _disarm(copy)
        yield copy


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that nobody else may enter; it goes with the body, or is swept later."""
    sweep_copies()
    with translated_errors(Path(tempfile.gettempdir())):
        # What cannot be deleted is swept another time.
        folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    with (
        folder,
        # Held for as long as the folder is in use: the lock of a process that was killed is free.
        locked(Path(folder.name) / _IN_USE, busy="this copy is in use"),
    ):
        yield Path(folder.name)


def _disarm(copy: Path) -> None:
    """Drop the foreign triggers and views of a copy; none of them runs here.

    Where that is not enough, the copy can be read, but not written.
    """
    database = schema.open_vetted(copy, create=False)
    try:
        if not database.can_write:
            with contextlib.suppress(StorageUntrusted), database.write(vetted=False):
                schema.repair(database)
    finally:
        database.close()


def sweep_copies() -> None:
    """Delete the copies that processes left which were killed."""
    folders: list[Path] = []
    with contextlib.suppress(OSError):
        folders += Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")
    for folder in folders:
        with contextlib.suppress(OSError, StorageError):
            status = folder.lstat()
            is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            is_new = status.st_mtime > time.time() - _MOMENT and not (folder / _IN_USE).exists()
            if stat.S_ISDIR(status.st_mode) and is_ours and not is_new:
                with locked(folder / _IN_USE, busy="this copy is in use"):
                    shutil.rmtree(folder)

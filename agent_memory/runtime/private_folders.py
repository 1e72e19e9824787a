"""Private folders for copies of stores, removed after use, or swept if the process was killed."""

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

from agent_memory.errors import StorageError, StorageLocked, StorageUnavailable
from agent_memory.runtime.files import locked, translated_errors
from agent_memory.runtime.temporary_files import temporary_folder

_PREFIX: Final = "agent-memory-copy-"
_IN_USE: Final = "in-use"
_BUSY: Final = "this copy is in use"
_MOMENT: Final = 60.0
"""The seconds in which a new folder gets its lock."""


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Create a folder that nobody else may enter; it is removed after the body, or swept later."""
    sweep_copies()
    with contextlib.ExitStack() as held:
        yield _locked_folder(held)


def _locked_folder(held: contextlib.ExitStack) -> Path:
    """Make a folder, and another where a process that swept took it before it was locked."""
    while True:
        with translated_errors(temporary_folder()):
            # What cannot be deleted now is swept another time.
            folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        path = Path(held.enter_context(folder))
        try:
            # Held while the folder is in use: a killed process holds no lock.
            held.enter_context(locked(path / _IN_USE, busy=_BUSY))
        except StorageLocked:
            continue
        except StorageUnavailable:
            if path.exists():
                raise
        else:
            return path


def sweep_copies() -> None:
    """Delete the copies left by processes that were killed."""
    folders: list[Path] = []
    with contextlib.suppress(OSError, StorageUnavailable):
        folders += temporary_folder().glob(f"{_PREFIX}*")
    for folder in folders:
        with contextlib.suppress(OSError, StorageError):
            status = folder.lstat()
            is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            is_new = status.st_mtime > time.time() - _MOMENT and not (folder / _IN_USE).exists()
            if stat.S_ISDIR(status.st_mode) and is_ours and not is_new:
                with locked(folder / _IN_USE, busy=_BUSY):
                    # Its process may be deleting it too: a file that is gone already is no reason
                    # to leave the rest.
                    shutil.rmtree(folder, ignore_errors=True)

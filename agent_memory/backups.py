"""Consistent copies of a file in use."""

from __future__ import annotations

import contextlib
import os
import uuid
from datetime import datetime
from pathlib import Path
from typing import Final

from agent_memory.connection import Database
from agent_memory.errors import StorageUnavailable, ValidationError
from agent_memory.files import sync_to_disk

_FOLDER: Final = "backups"


def back_up(
    source: Path, destination: Path | None, *, now: datetime, overwrite: bool = False
) -> Path:
    """Copy a store as it stands into a new file of mode 0600 and return its path.

    Others may write meanwhile. The copy is made beside its destination and moved there when it is
    whole and on the disk: what stands there before stays until then. Without a destination it is
    ``backups/memories-TIME.db`` beside the source. A destination that exists is refused unless
    ``overwrite``; a symbolic link there is replaced, never followed.
    """
    if destination is None:
        stamp = f"{now:%Y%m%dT%H%M%S}{now.microsecond:06d}Z"
        destination = source.parent / _FOLDER / f"{source.stem}-{stamp}{source.suffix}"
        with contextlib.suppress(FileExistsError):
            destination.parent.mkdir(mode=0o700)
    _refuse_destination(source, destination, overwrite=overwrite)
    unfinished = destination.with_name(f".{destination.name}.{uuid.uuid4().hex[:8]}")
    try:
        _copy(source, unfinished)
        unfinished.replace(destination)
        sync_to_disk(destination.parent)
    except OSError as error:
        raise StorageUnavailable(f"{destination} cannot be written: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    return destination


def _refuse_destination(source: Path, destination: Path, *, overwrite: bool) -> None:
    in_use = {source.with_name(source.name + suffix) for suffix in ("", "-wal", "-shm")}
    if destination in in_use or (destination.exists() and destination.samefile(source)):
        raise ValidationError.of("destination", "is the memory itself", str(destination))
    if destination.is_dir():
        raise ValidationError.of("destination", "is a directory: name a file", str(destination))
    if not destination.parent.is_dir():
        raise ValidationError.of("destination", "its directory does not exist", str(destination))
    if not overwrite and os.path.lexists(destination):
        raise ValidationError.of(
            "destination", "exists: choose another, or overwrite it", str(destination)
        )


def _copy(source: Path, target: Path) -> None:
    # SQLite would make the file with the rights that the umask gives: make it first, empty.
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    reader = Database(source, create=False, read_only=True)
    try:
        reader.copy_into(target)
    finally:
        reader.close()
    sync_to_disk(target)  # VACUUM INTO does not

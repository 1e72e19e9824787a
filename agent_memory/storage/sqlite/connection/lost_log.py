"""Saves a write-ahead log that was taken away under a connection, or whose file was.

Another program may delete a log that is in use, as SQLite itself does with one that lost its locks,
or put another file in the place of one. A connection goes on reading what it has open; others who
open the file see it without that log.
"""

import contextlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from agent_memory.errors import StorageError, StorageUnavailable
from agent_memory.runtime.files import CUT_OFF, beside, create_private_file, sync_to_disk
from agent_memory.storage.sqlite.connection import page_copy
from agent_memory.storage.sqlite.connection.opening import leave_log_on_close

_SUFFIXES: Final = ("", "-wal", "-shm")
_STORED: Final = "what this memory had stored there"


def identity(path: Path) -> list[int | None]:
    """Return the inodes of a file, its log and its shared memory. ``stat`` opens nothing."""
    inodes: list[int | None] = []
    for suffix in _SUFFIXES:
        try:
            inodes.append(os.stat(f"{path}{suffix}").st_ino)  # noqa: PTH116 - 1 µs
        except FileNotFoundError:
            inodes.append(None)
    return inodes


def last_change(path: Path) -> tuple[int, int] | None:
    """Return when a file itself, without its log, was last written, and its length."""
    try:
        status = os.stat(path)  # noqa: PTH116 - 1 µs
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


class Log(NamedTuple):
    """The log that a connection has open, and what is at its place now.

    ``opened`` and ``now`` are what ``identity`` returned then and returns now; ``is_untouched``
    tells that nobody wrote to the file since this connection did.
    """

    path: Path
    opened: Sequence[int | None]
    now: Sequence[int | None]
    is_untouched: bool

    def leave(self, connection: apsw.Connection, *, may_write: bool) -> None:
        """Close the connection, for the next one to open what is at its place.

        Raises ``StorageUnavailable`` where what was in the log is not in the file.
        """
        has_log = may_write and self.opened[1] is not None
        is_saved, lost = self._save(connection) if has_log else (True, None)
        # The log that a replaced file leaves behind would be played into the new one, whose
        # content it would overwrite, and its shared memory tells where in that log its pages are.
        # Any other log is somebody else's: let it be.
        leave_log_on_close(connection, leave=True)
        connection.close()
        if self.opened[0] != self.now[0] and is_saved:
            now = identity(self.path)
            for place in (1, 2):
                if self.opened[place] == now[place]:
                    beside(self.path, _SUFFIXES[place]).unlink(missing_ok=True)
        if lost is not None:
            raise lost

    def _save(self, connection: apsw.Connection) -> tuple[bool, StorageUnavailable | None]:
        """Bring the log into the file that it is of, unless others have been at that without it.

        Returns whether the log is of no more use, and the error to raise, if any.
        """
        if self.opened[0] != self.now[0]:  # wherever that file is now
            is_in = checkpoint(connection)
            if is_in or self.now[0] is None:
                return is_in, None
            return True, _rescued(connection, self.path)
        if self.opened[1] == self.now[1] or _is_checkpointed(connection):
            return True, None
        if self.now[1] is None and self.is_untouched and checkpoint(connection):
            return True, None
        return True, _rescued(connection, self.path)


def _is_checkpointed(connection: apsw.Connection) -> bool:
    with contextlib.suppress(apsw.Error):
        frames, copied = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
        return frames <= copied
    return False


def checkpoint(connection: apsw.Connection) -> bool:
    """Checkpoint a log into its file, and return whether all of it is there."""
    with contextlib.suppress(apsw.Error):
        connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_PASSIVE)
    return _is_checkpointed(connection)


def _rescued(connection: apsw.Connection, path: Path) -> StorageUnavailable:
    """Write what a connection sees into a file beside its own; return the error that tells it."""
    aside = path.with_name(f"{path.name}{CUT_OFF}{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    beginning = f"another program took the log of {path} away while it was in use"
    try:
        create_private_file(aside)
        page_copy.copy_pages(connection, aside)
        sync_to_disk(aside)
    except (apsw.Error, StorageError, OSError) as error:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        return StorageUnavailable(f"{beginning}, and {_STORED} cannot be kept: {error}")
    return StorageUnavailable(
        f"{beginning}. It was not written; {_STORED} is kept in {aside}: import it, or restore it"
    )

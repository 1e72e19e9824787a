"""Saves a write-ahead log when it, or its file, was removed under a connection.

Another program may delete a log in use, as SQLite itself does with one that lost its locks, or
replace the file. A connection goes on reading what it has open; others who open the file see it
without that log.
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
_STORED: Final = "what this memory stored there"


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
    """Return when the file itself, without its log, was last written, and its size."""
    try:
        status = os.stat(path)  # noqa: PTH116 - 1 µs
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


class Log(NamedTuple):
    """The log that a connection has open, and what is in its place now.

    ``opened`` and ``now`` are what ``identity`` returned then and returns now; ``is_untouched``
    means that nobody has written to the file since this connection did.
    """

    path: Path
    opened: Sequence[int | None]
    now: Sequence[int | None]
    is_untouched: bool

    def leave(self, connection: apsw.Connection, *, may_write: bool) -> None:
        """Close the connection, so that the next one opens what is in its place.

        Raises ``StorageUnavailable`` if the contents of the log are not in the file.
        """
        has_log = may_write and self.opened[1] is not None
        is_saved, lost = self._save(connection) if has_log else (True, None)
        # SQLite would replay the log of the replaced file into the new one, overwriting its content
        # (the shared memory is the index of that log). Any other log is someone else's and stays.
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
        """Checkpoint the log into its own file, unless others have used the file without it.

        Returns whether the log is no longer needed, and the error to raise, if any.
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
    """Write what a connection sees to a file beside its own; return the error that reports it."""
    aside = path.with_name(f"{path.name}{CUT_OFF}{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    beginning = f"another program removed the log of {path} while it was in use"
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

"""Chooses the journal mode: a write-ahead log, or a rollback journal where a log is unsafe.

With the log, readers and a writer do not wait for each other, but it needs memory shared by all who
have the file open: on a drive that two machines reach, each would have its own, and the file would
be damaged. A rollback journal needs nothing but the drive's locks. Nor may memory be shared on a
file system that kills a process for writing to it when the disk is full.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import apsw

from agent_memory.errors import ConfigurationError, StorageError, StorageUnavailable
from agent_memory.runtime import fork_safety
from agent_memory.runtime.files import beside
from agent_memory.runtime.logs import logger
from agent_memory.storage.sqlite.connection.file_systems import (
    copies_on_write,
    has_short_blocks,
    remote_kind,
)

JOURNAL_VARIABLE: Final = "AGENT_MEMORY_JOURNAL"
"""Environment variable: ``wal``, ``rollback``, or ``auto``, which depends on the drive's type."""

_MODES: Final = ("auto", "wal", "rollback")
_RESERVE: Final = 8 * 2**20
_VERSION_AT: Final = 18
_VERSION_OF_LOG: Final = b"\2"

Result = TypeVar("Result")

_warned: Final[set[Path]] = set()
_lock: Final = fork_safety.Lock()


class Journal(NamedTuple):
    """The journal mode of a file.

    ``drive`` is the type of its drive if other machines may reach it. ``is_required`` means that
    another mode would be unsafe there, or is not wanted. ``reserve`` is the free space in bytes
    without which no write begins: if each change needs new space, so does rolling it back, and
    until that is done nothing can be read.
    """

    rollback: bool
    drive: str | None = None
    is_required: bool = True
    reserve: int = 0

    def synchronous(self, *, durable: bool) -> str:
        """Return the SQLite setting with which a commit waits for the disk, or need not.

        If the deletion of a rollback journal is lost in a power cut, the commit is undone: EXTRA
        syncs the directory, too. With less than FULL the file could be damaged.
        """
        if self.rollback:
            return "EXTRA" if durable else "FULL"
        return "FULL" if durable else "NORMAL"

    def warning(self, path: Path) -> str | None:
        """Return a warning about a drive that this machine may share with others, or ``None``."""
        if self.drive is None:
            return None
        beginning = f"{path} is on a drive that other machines may reach ({self.drive})"
        if self.rollback:
            return (
                f"{beginning}: it is written with a rollback journal, so readers and writers wait"
                " for each other, and it is as safe as the drive's locks are. Keep memories on a"
                f" local disk, or set {JOURNAL_VARIABLE}=wal where only this machine uses them"
            )
        return (
            f"{beginning}, and {JOURNAL_VARIABLE} is wal: two machines that use it at once damage"
            " it. Keep memories on a local disk"
        )


def choose_journal(path: Path) -> Journal:
    """Choose for a file, by its drive and the environment; warn once about a shared drive."""
    mode = os.environ.get(JOURNAL_VARIABLE, "").strip().lower() or "auto"
    if mode not in _MODES:
        raise ConfigurationError(
            f"{JOURNAL_VARIABLE} must be {' or '.join(_MODES)}, not {mode!r:.80}"
        )
    drive = remote_kind(path)
    if drive is None and mode != "wal":
        copies = copies_on_write(path)
        return Journal(
            mode == "rollback" or copies or has_short_blocks(path),
            is_required=mode == "rollback",
            reserve=_RESERVE if copies else 0,
        )
    chosen = Journal(mode != "wal", drive)
    if (warning := chosen.warning(path)) is not None:
        _warn_once(path, warning)
    return chosen


def warning_of_names(path: Path) -> str | None:
    """Return a warning if a file has several names, each of which would have its own log."""
    with contextlib.suppress(OSError):
        if (names := path.stat().st_nlink) > 1:
            return (
                f"{path} has {names} names (hard links): using two of them at once would"
                " damage it. Copy it with `agent-memory backup`, not with `cp -l`"
            )
    return None


def _warn_once(path: Path, warning: str) -> None:
    with _lock.bare:
        if path in _warned:
            return
        _warned.add(path)
    logger().warning("%s", warning)


def has_log(path: Path) -> bool:
    """Return whether a write-ahead log has changes that may not be in the file yet."""
    return _is_filled(beside(path, "-wal"))


def has_log_or_journal(path: Path) -> bool:
    """Return whether the file alone may be incomplete, because it has a log or a journal."""
    return has_log(path) or _is_filled(beside(path, "-journal"))


def _is_filled(part: Path) -> bool:
    try:
        return part.stat().st_size > 0
    except OSError:
        return False


def uses_log(connection: apsw.Connection, path: Path) -> bool:
    """Return whether SQLite would use a write-ahead log from the next statement on.

    The raw header is read: a statement that asks would begin to use the log.
    """
    _, version = connection.read("main", 0, _VERSION_AT, 1)
    return version == _VERSION_OF_LOG or has_log(path)


def lock_exclusively(connection: apsw.Connection) -> None:
    """Lock the file exclusively: SQLite then needs no shared memory for a log."""
    connection.pragma("locking_mode", "exclusive")


class LogInUse(StorageUnavailable):
    """Others use a file with a write-ahead log where that is not allowed or not possible."""


@contextlib.contextmanager
def log_in_use_translated(path: Path) -> Iterator[None]:
    """Raise an error which says that a file's log cannot be removed because others use it."""
    try:
        yield
    except apsw.BusyError as error:
        raise LogInUse(
            f"{path} is open elsewhere with a write-ahead log, which may not be used here:"
            f" close it there, or set {JOURNAL_VARIABLE} to the same value everywhere"
        ) from error


def switch_journal(
    connection: apsw.Connection, journal: Journal, *, timeout_seconds: float
) -> None:
    """Switch a connection to the journal mode chosen."""
    _switch(connection, "delete" if journal.rollback else "wal", timeout_seconds)


def leave_log(connection: apsw.Connection, path: Path, *, timeout_seconds: float) -> None:
    """Checkpoint a log into its file, and release the lock of ``lock_exclusively``."""
    _switch(connection, "delete", timeout_seconds)
    with contextlib.suppress(OSError):
        beside(path, "-shm").unlink(missing_ok=True)  # useless now, and nobody else has it open
    connection.pragma("locking_mode", "normal")
    connection.pragma("schema_version")  # only a statement releases the lock


def _switch(connection: apsw.Connection, wanted: str, timeout_seconds: float) -> None:
    """Switch the journal mode.

    SQLite ignores the busy timeout there: of 36 openings of one new file by 6 processes at once, 3
    failed. So it is retried until the timeout is over.
    """
    mode = retry_while_busy(
        lambda: connection.pragma("journal_mode", wanted), timeout_seconds=timeout_seconds
    )
    if mode != wanted:
        raise StorageError(f"SQLite chose the journal mode {mode!r}, not {wanted!r}")


def retry_while_busy(action: Callable[[], Result], *, timeout_seconds: float) -> Result:
    """Retry an action on a file that others are using, until the timeout is over."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            return action()
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)

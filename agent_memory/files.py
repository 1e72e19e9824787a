"""Files and directories as SQLite needs them: private from their first byte, plain, on the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from agent_memory import forking
from agent_memory.errors import (
    StorageError,
    StorageFull,
    StorageLocked,
    StorageUnavailable,
    ValidationError,
)

MAX_FILE_BYTES: Final = 2 * 10**9
"""The longest file that is read: what is longer was not meant."""


def create_private_file(path: Path) -> None:
    """Make the file with mode 0600 from its first byte, in a directory of mode 0700."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)
        sync_to_disk(directory.parent)
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    # Only the process that makes the file ever opens it here, and nobody has locks on it yet.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, flags, 0o600))
        sync_to_disk(path.parent)


def refuse_unfit_file(path: Path) -> None:
    """Refuse what is not a plain file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise StorageUnavailable(f"{path} does not exist") from None
    if stat.S_ISLNK(mode):
        raise StorageUnavailable(f"{path} is a symbolic link: give the path of the file itself")
    if not stat.S_ISREG(mode):
        raise StorageUnavailable(f"{path} is not a file: give the path of a memories.db")


def tighten_rights(path: Path) -> None:
    """Take away the rights of others on a file of ours, and on its log. ``chmod`` opens nothing."""
    for part in (path, beside(path, "-wal"), beside(path, "-shm")):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if stat.S_IMODE(part.stat().st_mode) & 0o077:
                part.chmod(0o600)


def beside(path: Path, suffix: str) -> Path:
    """Return the file that SQLite keeps beside a database."""
    return path.with_name(path.name + suffix)


def sync_to_disk(path: Path) -> None:
    """Bring a directory's entries, or a closed file, to the disk: a name can be lost as well."""
    if os.name != "posix":
        return  # Windows opens no directory, and has no need to
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def written_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a new private file that takes the place of ``path`` when the body ends without an error.

    It is made beside ``path``, mode 0600, and moved there when it is whole and on the disk: what
    stands there before stays until then. A symbolic link there is replaced, never followed. Raises
    ``StorageFull`` when the disk is, ``StorageUnavailable`` when the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex[:8]}")
    try:
        with open(unfinished, "xb", 2**20, opener=_open_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        sync_to_disk(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _unwritable(path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"{path} does not fit: free space on its disk. Nothing stored was lost")
    return StorageUnavailable(f"{path} cannot be written: {error}")


@contextlib.contextmanager
def read_steadily(path: Path) -> Iterator[BinaryIO]:
    """Open a plain file to be read from its start; the body must not see two states of it.

    Raises ``StorageUnavailable`` for what cannot be read, and ``ValidationError`` for what is no
    plain file, is longer than 2 GB, or changed while the body read it.
    """
    try:
        with open(path, "rb", 2**20, opener=_open_at_once) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise ValidationError(f"{path}: is not a file")
            if before.st_size > MAX_FILE_BYTES:
                raise ValidationError(f"{path}: is longer than {MAX_FILE_BYTES:,} bytes")
            yield file
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise ValidationError(
                    f"{path}: changed while it was read: try again when nothing writes to it"
                )
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be read: {error}") from error


def _open_at_once(path: str, flags: int) -> int:
    # A pipe would keep the opening waiting for somebody to write into it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@contextlib.contextmanager
def locked(path: Path, *, busy: str) -> Iterator[None]:
    """Hold a lock between processes, and between the threads of one; the body runs with it.

    The lock is the system's, on a file of its own, so that it ends with the process, however that
    ends. Raises ``StorageLocked`` with the text ``busy`` when somebody has it, and
    ``StorageUnavailable`` where there can be no such file.
    """
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    while True:
        try:
            held = _Held(os.open(path, flags, 0o600))
        except OSError as error:
            raise StorageUnavailable(f"{path} cannot be locked: {error}") from error
        try:
            _lock(held.handle, path, busy)
            if not _is_file_of(held.handle, path):
                continue  # whoever had it deleted it meanwhile: this lock would lock nobody out
            try:
                yield
            finally:
                if held.is_open and os.name == "posix":  # Windows deletes no file that is open
                    path.unlink(missing_ok=True)
            return
        finally:
            held.close()


class _Held:
    """An open lock file. A forked child lets go of it: a lock is held until its last copy is."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.is_open = True
        forking.join(self)

    def close(self) -> None:
        """Let go."""
        if self.is_open:
            self.is_open = False
            os.close(self.handle)

    def hold(self) -> None:
        """Nothing needs to wait for a fork."""

    def release(self) -> None:
        """Nothing waited."""

    def leave_parent(self) -> None:
        """In a forked child: the lock is the parent's."""
        self.close()


def _is_file_of(handle: int, path: Path) -> bool:
    """Tell whether a path still stands for the file that was opened."""
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _lock(handle: int, path: Path, busy: str) -> None:
    try:
        if os.name == "posix":
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt  # noqa: PLC0415 - only on Windows

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        raise StorageLocked(f"{busy} ({path})") from error

"""Files and directories as SQLite needs them: private from the start, regular, and on the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from agent_memory.errors import StorageFull, StorageLocked, StorageUnavailable, ValidationError
from agent_memory.runtime import fork_safety
from agent_memory.runtime.addresses import Address
from agent_memory.runtime.logs import logger

SIDE_FILES: Final = ("-wal", "-shm", "-journal")
"""SQLite's files beside a database: the log, its index, or the rollback journal."""
CUT_OFF: Final = ".cut-off-"
"""Part of the name of a copy of the contents of a log that was removed."""
_NO_RIGHTS_THERE: Final = (errno.EROFS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_RIGHTS_OF_OTHERS: Final = {0o044: "read", 0o022: "write"}
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
MAX_FILE_BYTES: Final = 2 * 10**9
"""The longest file that is read: a longer one must be a mistake."""


def create_private_file(path: Path) -> None:
    """Create a file with mode 0600 from the start, in a directory of mode 0700."""
    make_private_folder(path.parent)
    # Only the process that creates the file ever opens it here, and nobody holds locks on it yet.
    with contextlib.suppress(FileExistsError):
        os.close(open_private(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
        sync_to_disk(path.parent)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700, and sync their names to the disk."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(directory.stat().st_mode) != 0o700:
            directory.chmod(0o700)  # the umask may remove our own rights
        sync_to_disk(directory.parent)


def open_private(path: str | Path, flags: int) -> int:
    """Open a file without following links; a new one gets mode 0600, whatever the umask."""
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
    if flags & os.O_CREAT and os.name == "posix":
        status = os.fstat(handle)
        lacks = ~status.st_mode & 0o600
        if lacks and status.st_size == 0 and status.st_uid == os.geteuid():
            os.fchmod(handle, 0o600)
    return handle


def tighten_folder(folder: Path) -> None:
    """Remove the rights of others on a folder of ours, without following links."""
    with contextlib.suppress(OSError):  # it may be somebody else's, or on a drive without rights
        mode = folder.lstat().st_mode
        if stat.S_ISDIR(mode) and stat.S_IMODE(mode) & 0o077:
            folder.chmod(0o700)


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists. Raises ``StorageUnavailable`` if that is unknown.

    ``Path.exists`` raises the system's error, or says no, for a folder that may not be entered.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # half a surrogate cannot be a name
        return False
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return False
        raise StorageUnavailable(f"{path} cannot be inspected: {error}") from error
    return True


def refuse_unfit_file(path: Path) -> None:
    """Refuse anything but a regular file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise StorageUnavailable(f"{path} does not exist") from None
    if stat.S_ISLNK(mode):
        raise StorageUnavailable(f"{path} is a symbolic link: give the path of the file itself")
    if not stat.S_ISREG(mode):
        raise StorageUnavailable(f"{path} is not a file: give the path of a memories.db")
    for part in (beside(path, suffix) for suffix in SIDE_FILES):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):  # SQLite would wait for a pipe forever
                raise StorageUnavailable(f"{part} is not a file: move it away")


def tighten_rights(path: Path) -> None:
    """Remove the rights of others on a file of ours and on its log, without opening them.

    If others had any on the file itself, that is logged: they may have read it until now. A log
    gets the rights that we have on the file: one that was made while the file was read-only kept it
    from being written for ever after.
    """
    before = exposures(path)
    own = 0
    for part in (path, *(beside(path, suffix) for suffix in SIDE_FILES)):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            mode = part.stat().st_mode
            own = own or mode & 0o600
            if mode & 0o077 or own & ~mode:
                _make_private(part)
    if before and not exposures(path):
        logger().warning("%s. This has been done", before[0])


def exposures(*paths: Path) -> list[str]:
    """Return what others may do with a file or folder, and how to end that, one line each.

    A file without rights, as on Windows, and a missing file are left out.
    """
    lines = []
    for path in paths if os.name == "posix" else ():
        with contextlib.suppress(OSError):
            mode = path.stat().st_mode
            if mode & 0o077:
                words = [word for bits, word in _RIGHTS_OF_OTHERS.items() if mode & bits]
                private = "700" if stat.S_ISDIR(mode) else "600"
                lines.append(
                    f"{path}: others may {' and '.join(words) or 'enter'} it (mode"
                    f" {stat.S_IMODE(mode):04o}): chmod {private} makes it private"
                )
    return lines


def _make_private(path: Path) -> None:
    try:
        path.chmod(0o600)
    except OSError as error:
        if error.errno not in _NO_RIGHTS_THERE:
            raise


def lacks_space_for_a_file(folder: Path) -> bool:
    """Return whether no new file can be created in a folder because its disk is full."""
    probe = folder / f".{os.urandom(16).hex()}.tmp"
    try:
        os.close(open_private(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        probe.unlink()
    except OSError as error:
        return error.errno in _NO_SPACE
    return False


def files_of(address: Address) -> frozenset[Path]:
    """Return the files in which the memories of an address are; none for a database."""
    if not isinstance(address, Path):
        return frozenset()
    return frozenset(address.with_name(address.name + suffix) for suffix in ("", *SIDE_FILES))


def beside(path: Path, suffix: str) -> Path:
    """Return the file that SQLite keeps beside a database."""
    return path.with_name(path.name + suffix)


def sync_to_disk(path: Path) -> None:
    """Sync a directory's entries, or a closed file, to the disk: a name can be lost too."""
    if os.name != "posix":
        return  # Windows cannot open directories, and need not
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def written_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a new private file that replaces ``path`` when the body ends without an error.

    It is created beside ``path`` with mode 0600, and moved there once it is complete and on the
    disk; until then the old file stays. A symbolic link at ``path`` is replaced, never followed.
    Leftovers of killed processes for the same file are removed. Raises ``StorageFull`` if the disk
    is full, and ``StorageUnavailable`` if the file cannot be written.
    """
    abandoned(path.parent, UNFINISHED.format(re.escape(path.name[:100])), remove=True)
    with translated_errors(path, "written"), unfinished_file(path) as (unfinished, handle):
        with os.fdopen(handle, "wb", 2**20) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        sync_to_disk(path.parent)


# Unfinished files ---------------------------------------------------------------------------------

UNFINISHED: Final = r"\.{}\.[0-9a-f]{{8}}"
"""The pattern for names of unfinished files, given a pattern for their final names."""
_LONGEST_WORK: Final = 86_400
"""Seconds after which a file counts as abandoned if locks are not supported."""


@contextlib.contextmanager
def unfinished_file(path: Path) -> Iterator[tuple[Path, int]]:
    """Create a new private file beside ``path``, which the body closes and may move there.

    It is locked while the body runs, so that ``abandoned`` can tell it from the file of a process
    that was killed. If it was not moved, it is deleted. Raises ``OSError``.
    """
    while True:
        unfinished = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}")
        handle = open_private(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        lock = None
        try:
            if os.name == "posix":  # Windows neither deletes nor moves an open file
                lock = _duplicate(handle)
                if not _is_locked_for_us(lock, unfinished):
                    os.close(handle)
                    continue
            yield unfinished, handle
            return
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            if lock is not None:
                os.close(lock)


def _duplicate(handle: int) -> int:
    """Return a second handle on a file; where there are too many, the first one is closed."""
    try:
        return os.dup(handle)
    except OSError:
        os.close(handle)
        raise


def _is_locked_for_us(lock: int, path: Path) -> bool:
    """Lock a file that was just made; return whether nobody took it for abandoned before that."""
    import fcntl  # noqa: PLC0415 - not on Windows

    with contextlib.suppress(OSError):  # not every file system supports locks
        fcntl.flock(lock, fcntl.LOCK_EX)
    return os.path.lexists(path)


def abandoned(folder: Path, *patterns: str, remove: bool) -> list[Path]:
    """Return the unfinished files in a folder whose names match and that no process works on.

    They are removed if asked for. Files that SQLite keeps beside such a file are included. A folder
    that cannot be read has none.
    """
    suffixes = "|".join(SIDE_FILES)
    pattern = re.compile(f"(?P<main>{'|'.join(patterns)})(?:{suffixes})?")
    paths = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names, which may hold bytes
            match = pattern.fullmatch(name)
            path = folder / name
            if match and path.is_file() and not path.is_symlink():
                main = folder / match["main"]
                with _claimed(main if main.exists() else path) as is_free:
                    if is_free:
                        paths.append(path)
                        if remove:
                            remove_files([path])
    return paths


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files, as far as possible."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def plain_files(folder: Path) -> list[Path]:
    """Return the files in a folder, except links; none if there is no such folder."""
    with (
        translated_errors(folder, "read"),
        contextlib.suppress(FileNotFoundError),
        os.scandir(folder) as entries,
    ):
        return [folder / each.name for each in entries if each.is_file(follow_symlinks=False)]
    return []


@contextlib.contextmanager
def _claimed(path: Path) -> Iterator[bool]:
    """Yield whether nobody works on an unfinished file; nobody begins to while the body runs."""
    if os.name != "posix":
        yield True
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        yield _is_taken(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def _is_taken(handle: int, operation: int) -> bool:
    """Lock a file and return whether that worked; where no lock tells, whether it is old."""
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        fcntl.flock(handle, operation)
    except BlockingIOError:
        return False
    except OSError:
        return os.fstat(handle).st_mtime < time.time() - _LONGEST_WORK
    return True


@contextlib.contextmanager
def translated_errors(path: Path, done: str = "used") -> Iterator[None]:
    """Turn the system's errors into ours, for a body that does ``done`` with ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = (
                f"{path} cannot be written: its disk is full. Free some space; nothing stored"
                " was lost"
            )
            raise StorageFull(message) from error
        raise StorageUnavailable(f"{path} cannot be {done}: {_reason(error, path)}") from error


def _reason(error: OSError, path: Path) -> str:
    """Return why the system refused a path, and what to do about it.

    Its own words name whatever file we had just made up beside the path.
    """
    if error.errno == errno.EROFS:
        return "its drive is read-only. Choose a place on another"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"permission denied. Check the rights on it and on {path.parent}"
    if error.errno == errno.ENOENT and not os.path.lexists(path.parent):
        return f"there is no folder {path.parent}. Create it first"
    return str(error)


@contextlib.contextmanager
def read_steadily(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading, and make sure that it does not change meanwhile.

    Raises ``StorageUnavailable`` if it cannot be read, and ``ValidationError`` if it is not a
    regular file, is longer than 2 GB, or changed while the body read it.
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
    # Opening a pipe would otherwise wait for a writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@contextlib.contextmanager
def locked(path: Path, *, busy: str) -> Iterator[None]:
    """Hold a lock between processes, and between the threads of one, while the body runs.

    It is a lock of the operating system on a file of its own, so it ends with the process, however
    that ends. Raises ``StorageLocked`` with the text ``busy`` if the lock is held, and
    ``StorageUnavailable`` or ``StorageFull`` if the file cannot be created.
    """
    while True:
        with translated_errors(path, "locked"):
            held = _Held(open_private(path, os.O_CREAT | os.O_RDWR))
        try:
            _lock(held.handle, path, busy)
            if not _is_file_of(held.handle, path):
                continue  # its holder has deleted it: this lock would exclude nobody
            try:
                yield
            finally:
                if held.is_open and os.name == "posix":  # Windows does not delete an open file
                    # A leftover file locks nobody out, so failing to delete it must not undo the
                    # work.
                    with contextlib.suppress(OSError):
                        path.unlink()
            return
        finally:
            held.close()


class _Held:
    """An open lock file. A forked child lets go of it: a lock is held until its last copy is."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.is_open = True
        fork_safety.join(self)

    def close(self) -> None:
        """Let go."""
        if self.is_open:
            self.is_open = False
            os.close(self.handle)

    def door(self) -> contextlib.AbstractContextManager[None]:
        """No thread is kept out: nothing needs to wait for a fork."""
        return contextlib.nullcontext()

    def leave_parent(self) -> None:
        """In a forked child: the lock is the parent's."""
        self.close()


def _is_file_of(handle: int, path: Path) -> bool:
    """Return whether a path still stands for the file that was opened."""
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be locked: {error}") from error


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

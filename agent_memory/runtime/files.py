"""Files and directories as SQLite needs them: private from their first byte, plain, on the disk."""

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

SIDE_FILES: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database: its log, what tells of that, or its rollback journal."""
CUT_OFF: Final = ".cut-off-"
"""In the name of a copy of what was in a log that was taken away."""
_NO_RIGHTS_THERE: Final = (errno.EROFS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_RIGHTS_OF_OTHERS: Final = {0o044: "read", 0o022: "write"}
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
MAX_FILE_BYTES: Final = 2 * 10**9
"""The longest file that is read: what is longer was not meant."""


def create_private_file(path: Path) -> None:
    """Make the file with mode 0600 from its first byte, in a directory of mode 0700."""
    make_private_folder(path.parent)
    # Only the process that makes the file ever opens it here, and nobody has locks on it yet.
    with contextlib.suppress(FileExistsError):
        os.close(open_private(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
        sync_to_disk(path.parent)


def make_private_folder(folder: Path) -> None:
    """Make a folder, and what is missing above it, with mode 0700; their names are on the disk."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(directory.stat().st_mode) != 0o700:
            directory.chmod(0o700)  # of a umask that takes away our own rights
        sync_to_disk(directory.parent)


def open_private(path: str | Path, flags: int) -> int:
    """Open a file that is not followed if it is a link; a new one has mode 0600, whatever umask."""
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
    if flags & os.O_CREAT and os.name == "posix":
        status = os.fstat(handle)
        lacks = ~status.st_mode & 0o600
        if lacks and status.st_size == 0 and status.st_uid == os.geteuid():
            os.fchmod(handle, 0o600)
    return handle


def tighten_folder(folder: Path) -> None:
    """Take away the rights of others on a folder of ours; nobody is followed to another place."""
    with contextlib.suppress(OSError):  # somebody else's, or on a drive without rights
        mode = folder.lstat().st_mode
        if stat.S_ISDIR(mode) and stat.S_IMODE(mode) & 0o077:
            folder.chmod(0o700)


def is_there(path: Path) -> bool:
    """Return whether there is a file or a folder. Raises ``StorageUnavailable`` if nobody can say.

    ``Path.exists`` raises the system's error, or says no, of a folder that may not be entered.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # half a surrogate names nothing
        return False
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return False
        raise StorageUnavailable(f"{path} cannot be looked at: {error}") from error
    return True


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
    for part in (beside(path, suffix) for suffix in SIDE_FILES):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):  # SQLite would wait for a pipe for ever
                raise StorageUnavailable(f"{part} is not a file: move it away")


def tighten_rights(path: Path) -> None:
    """Take away the rights of others on a file of ours, and on its log. ``chmod`` opens nothing.

    Where others had any on the file itself, that is logged: they may have read it until now.
    """
    before = exposures(path)
    for part in (path, *(beside(path, suffix) for suffix in SIDE_FILES)):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if stat.S_IMODE(part.stat().st_mode) & 0o077:
                _make_private(part)
    if before and not exposures(path):
        import logging  # noqa: PLC0415 - 3 ms of a start, for a line seldom written

        logging.getLogger("agent_memory").warning("%s. That was done now", before[0])


def exposures(*paths: Path) -> list[str]:
    """Say what others than its owner may do with a file or folder, and how that ends; a line each.

    What has no rights, such as a file on Windows, and what is missing is left out.
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
    """Return whether the system makes no new file in a folder because its disk is full."""
    probe = folder / f".{os.urandom(16).hex()}.tmp"
    try:
        os.close(open_private(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        probe.unlink()
    except OSError as error:
        return error.errno in _NO_SPACE
    return False


def files_of(address: Address) -> frozenset[Path]:
    """Return the files that the memories of an address are in; of a database there are none."""
    if not isinstance(address, Path):
        return frozenset()
    return frozenset(address.with_name(address.name + suffix) for suffix in ("", *SIDE_FILES))


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
    stands there before stays until then. A symbolic link there is replaced, never followed. What
    processes that were killed left there of the same file is removed. Raises ``StorageFull`` when
    the disk is, ``StorageUnavailable`` when the file cannot be written.
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
"""The pattern of the names of unfinished files, given that of the names that they are to have."""
_LONGEST_WORK: Final = 86_400
"""Seconds after which nobody works on a file any more, where no lock can tell."""


@contextlib.contextmanager
def unfinished_file(path: Path) -> Iterator[tuple[Path, int]]:
    """Make a new private file beside ``path``, which the body closes, and may move there.

    A lock is held on it while the body runs, by which ``abandoned`` tells it from one whose process
    was killed. What is not moved is deleted. Raises ``OSError``.
    """
    while True:
        unfinished = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}")
        handle = open_private(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        lock = None
        try:
            if os.name == "posix":  # Windows deletes no file that is open, and moves none
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

    with contextlib.suppress(OSError):  # not every file system knows locks
        fcntl.flock(lock, fcntl.LOCK_EX)
    return os.path.lexists(path)


def abandoned(folder: Path, *patterns: str, remove: bool) -> list[Path]:
    """Return the unfinished files in a folder whose names match, and on which nobody works.

    They are removed if that is asked for. What SQLite keeps beside such a file is one as well. A
    folder that cannot be read has none.
    """
    suffixes = "|".join(SIDE_FILES)
    pattern = re.compile(f"(?P<main>{'|'.join(patterns)})(?:{suffixes})?")
    paths = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names, as bytes may stand in them
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
    """Remove files as far as that can be done."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def plain_files(folder: Path) -> list[Path]:
    """Return the files in a folder, links left out; none where there is no such folder."""
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
    """Turn the system's errors into ours: the body could not do ``done`` with ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = f"{path} does not fit: free space on its disk. Nothing stored was lost"
            raise StorageFull(message) from error
        raise StorageUnavailable(f"{path} cannot be {done}: {error}") from error


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
    ``StorageUnavailable`` or ``StorageFull`` where there can be no such file.
    """
    while True:
        with translated_errors(path, "locked"):
            held = _Held(open_private(path, os.O_CREAT | os.O_RDWR))
        try:
            _lock(held.handle, path, busy)
            if not _is_file_of(held.handle, path):
                continue  # whoever had it deleted it meanwhile: this lock would lock nobody out
            try:
                yield
            finally:
                if held.is_open and os.name == "posix":  # Windows deletes no file that is open
                    # One that stays locks nobody out, and must not undo what was done with it.
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

"""What hooks keep between two processes: the outcome of each, and what a session was given.

Both are files in the agent's folder ``hooks`` that may be deleted at any time: ids, counts and
reasons, but no texts. Nothing slow is imported here.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Self

from agent_memory.integrations.hosts.occasion import Occasion
from agent_memory.models.limits import (
    DEFAULT_MEMORY_ROOT,
    HEARD_FILENAME,
    HOOKS_FOLDER,
    ROOT_VARIABLE,
    SERVER_ADDRESS,
    VECTOR_DB_FILENAME,
)

MOST_BYTES: Final = 500_000
"""A longer log is replaced by a new one; the previous one is kept."""
_SESSION_SECONDS: Final = 14 * 86_400
"""An inactive session is forgotten after this time."""
_SESSION_FILE: Final = "session-"
_COMPACTED: Final = "#compacted "
NO_BLOCKING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
"""Do not wait for a pipe, and do not follow a link, in place of a file."""
_BEYOND: Final = 2**30
_NO_ROOM: Final = (errno.ENOSPC, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC))


def agent_folder(agent_id: str, root: str | None) -> str:
    """Return the folder of an agent, as ``runtime.paths`` does, which takes 80 ms.

    With a database there is one too, for this log: under the default root. Raises ``OSError`` if
    ``~`` is not a known home.
    """
    chosen = root or os.environ.get(ROOT_VARIABLE) or DEFAULT_MEMORY_ROOT
    if SERVER_ADDRESS.match(chosen):
        chosen = DEFAULT_MEMORY_ROOT
    expanded = os.path.expanduser(chosen)
    if expanded.startswith("~"):  # it would be a folder named "~" in the user's project
        raise FileNotFoundError(f"{chosen}: its home directory is unknown: set HOME")
    return os.path.join(os.path.realpath(expanded), agent_id)


def has_memories(folder: str, root: str | None) -> bool:
    """Return whether an agent's folder has a file of memories; always true for a database."""
    chosen = root or os.environ.get(ROOT_VARIABLE) or ""
    file = os.path.join(folder, VECTOR_DB_FILENAME)
    return SERVER_ADDRESS.match(chosen) is not None or os.path.lexists(file)


def is_anything_heard(folder: str) -> bool:
    """Return whether something that hooks heard is waiting to be stored: see ``Spool``."""
    try:
        return os.stat(os.path.join(folder, HOOKS_FOLDER, HEARD_FILENAME)).st_size > 0
    except OSError:
        return False


def timestamp() -> str:
    """Return the current time in UTC, in the format of these files."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def moment() -> str:
    """Return the current time in the format of memories, which orders events within a second."""
    seconds, microseconds = divmod(time.time_ns() // 1_000, 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{microseconds:06d}Z"


class Journal:
    """The log of an agent's hooks, ``hooks/log.jsonl``: one line for each that ran."""

    def __init__(self, folder: str) -> None:
        self.folder: Final = os.path.join(folder, HOOKS_FOLDER)
        self.path: Final = os.path.join(self.folder, "log.jsonl")

    def append(self, entry: dict[str, Any]) -> None:
        """Write a line. Raises ``OSError`` if that fails."""
        line = json.dumps({"at": timestamp(), **entry}, ensure_ascii=False) + "\n"
        make_folder(self.folder)
        handle = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | NO_BLOCKING, 0o600)
        try:
            os.write(handle, line.encode(errors="replace"))
            status = os.fstat(handle)
        finally:
            os.close(handle)
        if status.st_size > MOST_BYTES and os.stat(self.path).st_ino == status.st_ino:
            os.replace(self.path, f"{self.path}.1")

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries, oldest first, without unreadable ones."""
        for path in (f"{self.path}.1", self.path):
            with contextlib.suppress(OSError), open(path, "rb", opener=_opened) as file:
                yield from (entry for line in file if (entry := entry_of(line)) is not None)


def entry_of(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object on a line, or ``None``."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | NO_BLOCKING)


class ShownMemories:
    """The memories that one session of a host was given, so that none is given twice.

    A file has one id a line. Use it as a context manager: during the body no other process changes
    it. ``compacted_at`` is when the host last dropped the conversation, and with it what it had
    been given; an empty string if it never did. On a full disk nothing is recorded, and ``why``
    says so: memories can still be read, and are given.
    """

    def __init__(self, folder: str, host: str, session: str) -> None:
        key = zlib.crc32(session.encode(errors="replace"))
        self.folder: Final = os.path.join(folder, HOOKS_FOLDER)
        self.path: Final = os.path.join(self.folder, f"{_SESSION_FILE}{host}-{key:08x}.txt")
        self.ids: set[str] = set()
        self.compacted_at = ""
        self.why = ""
        self._handle = -1

    def __enter__(self) -> Self:
        with self._room():
            make_folder(self.folder)
            self._handle = os.open(self.path, os.O_CREAT | os.O_RDWR | NO_BLOCKING, 0o600)
        if self.why:
            return self
        try:
            lock(self._handle)
            self._read()
        except BaseException:  # Ctrl-C too: leave no lock behind
            os.close(self._handle)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)  # this releases the lock

    def add(self, memory_ids: Iterable[str]) -> None:
        """Record that the session was given memories. Raises ``OSError``."""
        new = [memory_id for memory_id in memory_ids if memory_id not in self.ids]
        self._append("".join(f"{memory_id}\n" for memory_id in new))
        self.ids.update(new)

    def forget(self) -> None:
        """Record that the session has lost what it was given. Raises ``OSError``."""
        self.ids.clear()
        self.compacted_at = moment()
        if self._handle >= 0:
            os.ftruncate(self._handle, 0)
        self._append(f"{_COMPACTED}{self.compacted_at}\n")

    def _append(self, lines: str) -> None:
        """Write all of the lines, or none if there is no room."""
        if self._handle < 0:
            return
        size = os.lseek(self._handle, 0, os.SEEK_END)
        data = lines.encode()
        with self._room():
            if os.write(self._handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.why:
            os.ftruncate(self._handle, size)

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        """Set ``why`` if there is no room for what the body writes."""
        try:
            yield
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self.why = f"what the session was given cannot be recorded: {error}"

    def _read(self) -> None:
        with open(self._handle, encoding="utf-8", errors="replace", closefd=False) as file:
            for line in file:
                if line.startswith(_COMPACTED):
                    self.compacted_at = line.removeprefix(_COMPACTED).strip()
                elif line.strip():
                    self.ids.add(line.strip())


def shown_to(occasion: Occasion) -> AbstractContextManager[ShownMemories]:
    """Give the body what a session was given; meanwhile no other process changes it."""
    shown = ShownMemories(occasion.folder, occasion.call.host.name, occasion.session)
    return shown if occasion.is_noted else contextlib.nullcontext(shown)


def lock(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file, waiting for others; without ``wait``, return false if it is locked."""
    try:
        if os.name == "posix":
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        else:
            import msvcrt  # noqa: PLC0415 - only on Windows

            os.lseek(handle, _BEYOND, os.SEEK_SET)  # others cannot read locked bytes
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        if wait:
            raise
        return False
    return True


def unlock(handle: int) -> None:
    """Release the lock on an open file."""
    if os.name == "posix":
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        import msvcrt  # noqa: PLC0415 - only on Windows

        os.lseek(handle, _BEYOND, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]


def make_folder(folder: str) -> None:
    """Create a folder and its missing parents, each with mode 0700. Raises ``OSError``.

    ``os.makedirs`` gives the mode to the last alone: the root, and so the names of all projects,
    was open to other users. ``runtime.files`` has the same for the library, and takes longer to
    import than all of a hook.
    """
    if not os.path.isdir(folder):
        make_folder(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):  # another hook was first
            os.mkdir(folder, 0o700)


def sync_folder(folder: str) -> None:
    """Sync the names of new files in a folder to the disk, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def forget_old_sessions(folder: str) -> None:
    """Delete the records of sessions that were inactive for two weeks."""
    oldest = time.time() - _SESSION_SECONDS
    with contextlib.suppress(OSError), os.scandir(os.path.join(folder, HOOKS_FOLDER)) as entries:
        for entry in entries:
            is_session = entry.name.startswith(_SESSION_FILE)
            if is_session and entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)

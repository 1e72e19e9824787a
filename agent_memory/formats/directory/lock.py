"""E's ``.lock``, held by whoever writes into the folder."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_memory.errors import StorageLocked, StorageUnavailable
from agent_memory.formats.directory.layout import LOCK
from agent_memory.models.times import format_time, now_utc
from agent_memory.runtime.files import locked

_WAIT_SECONDS: Final = 5.0
_STALE_SECONDS: Final = 30.0
"""A lock file that no system's lock goes with, and that is older, is nobody's (E)."""

_NAMED_PID: Final = re.compile(rb"pid\D{0,5}(\d{1,10})", re.IGNORECASE)
# A number that is no part of a time.
_BARE_PID: Final = re.compile(rb"(?<![\d:T.+-])(\d{1,10})(?![\d:T.-])")


@contextlib.contextmanager
def held(folder: Path, *, to_write: bool) -> Iterator[bool]:
    """Hold the folder's lock while the body runs; yield whether it could be taken.

    It cannot be taken if no file can be created; for reading it is enough that nobody else holds
    it. Waits for 5 s. Raises ``StorageLocked`` with the process that holds it, and
    ``StorageUnavailable`` if the folder is ``to_write`` and cannot be written.
    """
    with contextlib.ExitStack() as stack:
        yield _is_taken(folder / LOCK, stack, to_write=to_write)


def _is_taken(path: Path, stack: contextlib.ExitStack, *, to_write: bool) -> bool:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        holder = _holder(path)
        if holder is None:
            try:
                stack.enter_context(locked(path, busy="another process has the folder's lock"))
            except StorageLocked:
                holder = _holder(path) or "another process"
            except StorageUnavailable:
                if to_write:
                    raise
                return False
            else:
                _sign(path)
                return True
        if time.monotonic() > deadline:
            raise StorageLocked(
                f"{path} is held by {holder}: try again when it is done. If it hangs, end it and"
                " delete the file"
            )
        time.sleep(0.05)


def _sign(path: Path) -> None:
    """Write who holds the lock, and since when. It is held without that as well."""
    flags = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with contextlib.suppress(OSError):
        handle = os.open(path, flags)
        try:
            os.write(handle, f"{os.getpid()}\n{format_time(now_utc())}\n".encode())
        finally:
            os.close(handle)


def _holder(path: Path) -> str | None:
    """Say who has the lock: by the system's, or by a file that a living process made lately."""
    if os.name != "posix":
        return None  # what is locked there cannot be read either: trying to take it tells
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        text = os.read(handle, 500)
        age = time.time() - os.fstat(handle).st_mtime
        is_free = _is_free(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    match = _NAMED_PID.search(text) or _BARE_PID.search(text)
    pid = int(match[1]) if match else 0
    if not is_free:
        return f"process {pid}" if pid else "another process"
    is_held = pid != os.getpid() and age <= _STALE_SECONDS and _is_alive(pid)
    return f"process {pid}" if is_held else None


def _is_free(handle: int) -> bool:
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0

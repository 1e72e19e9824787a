"""What Python asks of the disk: the functions of ``os``, and files that are written and read.

They are replaced for the whole process, and do what they did before unless they are given a path
inside the folder of the case, or a file that is open, while the disk is watched.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil  # noqa: F401 - looks at the functions of os when it is imported
import tempfile  # noqa: F401 - before they are replaced
from collections.abc import Callable
from typing import Any, Final

from .fault_vfs import DISK, ERROR_NUMBERS, Kind

_FUNCTIONS: Final = {
    "mkdir": "mkdir",
    "link": "link",
    "rename": "rename",
    "replace": "rename",
    "unlink": "delete",
    "remove": "delete",
    "rmdir": "delete",
    "truncate": "truncate",
    "ftruncate": "truncate",
    "chmod": "chmod",
    "fchmod": "chmod",
    "scandir": "list",
    "listdir": "list",
    "stat": "look",
    "lstat": "look",
    "fsync": "sync",
    "write": "write",
    "read": "read",
}
_lexists: Final = os.path.lexists
_open: Final = io.open


def replace_calls() -> None:
    """Replace them in this process, for good."""
    for name, what in _FUNCTIONS.items():
        setattr(os, name, _failing(what, getattr(os, name)))
    os.open = _failing_open(os.open)
    io.open = builtins.open = _open_file


def _is_ours(place: object) -> bool:
    """Return whether a call is about the folder of the case."""
    if not DISK.is_watched:
        return False
    if isinstance(place, int):
        return place > 2
    path = os.fsdecode(os.fspath(place))  # type: ignore[call-overload]
    return not path.startswith("/") or path.startswith(DISK.folder)


def _strike(what: str, place: object) -> None:
    kind = DISK.ask(what)
    if kind is not None:
        number = ERROR_NUMBERS[kind]
        raise OSError(number, os.strerror(number), None if isinstance(place, int) else place)


def _failing(what: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        place = arguments[0] if arguments else "."
        if _is_ours(place):
            _strike(what, place)
        return original(*arguments, **options)

    return call


def _failing_open(original: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(original)
    def call(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if _is_ours(path):
            _strike("create" if flags & os.O_CREAT and not _lexists(path) else "open", path)
        return original(path, flags, *arguments, **options)

    return call


class _Raw(io.FileIO):
    """A file of which each call to the system may fail."""

    def write(self, data: Any, /) -> int:
        if DISK.is_watched:
            kind = DISK.ask("write")
            if kind is Kind.TORN:
                super().write(memoryview(data)[: len(data) // 2])
            if kind is not None:
                number = ERROR_NUMBERS[kind]
                raise OSError(number, os.strerror(number))
        return super().write(data) or 0

    def readinto(self, buffer: Any, /) -> int | None:
        if DISK.is_watched:
            _strike("read", 0)
        return super().readinto(buffer)

    def readall(self) -> bytes:
        if DISK.is_watched:
            _strike("read", 0)
        return super().readall()


def _open_file(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """Open a file as ``open`` does, of which what it asks the system for may fail."""
    if not _is_ours(file) or buffering == 0:
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    if opener is None and not isinstance(file, int):
        _strike("open" if "r" in mode or _lexists(file) else "create", file)
    raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    if "+" in mode:
        binary: Any = io.BufferedRandom(raw, size)
    else:
        binary = io.BufferedReader(raw, size) if "r" in mode else io.BufferedWriter(raw, size)
    return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

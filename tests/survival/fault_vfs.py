"""A disk that fails on demand: the Nth thing that is asked of it, once or from then on.

SQLite's own Unix VFS does the work. Of what it asks the system for, ``write``, ``read``,
``ftruncate``, ``unlink`` and ``open`` are replaced, and the ``sync`` of its files, so that it meets
the error number, or half a write, as it would from a real disk, with all its own ways of going on.
(A VFS written in Python would raise through SQLite where SQLite itself goes on, as it does when a
commit is safe and only the writing back of the log failed.) What Python itself asks for is in
``fault_calls``.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import apsw


class Kind(StrEnum):
    """How something fails."""

    EIO = "EIO"
    ENOSPC = "ENOSPC"
    TORN = "torn"
    """Half is written, then it is EIO."""


KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    "write": (Kind.EIO, Kind.ENOSPC, Kind.TORN),
    "sync": (Kind.EIO, Kind.ENOSPC),
    "create": (Kind.EIO, Kind.ENOSPC),
    "mkdir": (Kind.EIO, Kind.ENOSPC),
    "link": (Kind.EIO, Kind.ENOSPC),
    "rename": (Kind.EIO, Kind.ENOSPC),
    "truncate": (Kind.EIO,),
    "delete": (Kind.EIO,),
    "open": (Kind.EIO,),
    "read": (Kind.EIO,),
    "chmod": (Kind.EIO,),
    "list": (Kind.EIO,),
    "look": (Kind.EIO,),
}
"""What can be asked of a disk, and how each may fail: only what takes room is refused for that."""


@dataclass(frozen=True)
class Fault:
    """The fault of a case: what is asked for as the ``nth``, from 1, fails; later things too if
    it ``lasts``: of a full disk those that take room, of a broken one all."""

    nth: int
    kind: Kind
    lasts: bool = False


@dataclass
class Disk:
    """What was asked of the disk since it was watched, and what of that failed."""

    asked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    folder: str = ""
    _fault: Fault | None = None
    _is_watched: bool = False

    def watch(self, folder: os.PathLike[str], fault: Fault | None = None) -> None:
        """Count from now on, and fail as a fault says."""
        self.asked, self.failed = [], []
        self.folder, self._fault, self._is_watched = os.fspath(folder), fault, True

    def mend(self) -> None:
        """Fail no more, and count no more."""
        self._is_watched = False

    @property
    def is_watched(self) -> bool:
        """Return whether it counts."""
        return self._is_watched

    def ask(self, what: str) -> Kind | None:
        """Ask for something; return how it fails, if it does."""
        if not self._is_watched:
            return None
        self.asked.append(what)
        fault = self._fault
        if fault is None or not self._strikes(fault, what):
            return None
        self.failed.append(what)
        return fault.kind if len(self.failed) == 1 or fault.kind is not Kind.TORN else Kind.EIO

    def _strikes(self, fault: Fault, what: str) -> bool:
        if len(self.asked) <= fault.nth:
            return len(self.asked) == fault.nth
        return fault.lasts and (fault.kind is not Kind.ENOSPC or Kind.ENOSPC in KINDS[what])


DISK: Final = Disk()
"""That of this process."""

ERROR_NUMBERS: Final = {
    Kind.EIO: errno.EIO,
    Kind.ENOSPC: errno.ENOSPC,
    Kind.TORN: errno.EIO,
}


# What SQLite asks for -------------------------------------------------------------------------

_POINTER: Final = ctypes.c_void_p
_SIZE: Final = ctypes.c_size_t
_OFFSET: Final = ctypes.c_int64
_CALLS: Final[dict[str, tuple[str, Any, tuple[Any, ...]]]] = {
    "open": ("open", ctypes.c_int, (ctypes.c_char_p, ctypes.c_int, ctypes.c_int)),
    "ftruncate": ("truncate", ctypes.c_int, (ctypes.c_int, _OFFSET)),
    "unlink": ("delete", ctypes.c_int, (ctypes.c_char_p,)),
    "read": ("read", ctypes.c_ssize_t, (ctypes.c_int, _POINTER, _SIZE)),
    "pread": ("read", ctypes.c_ssize_t, (ctypes.c_int, _POINTER, _SIZE, _OFFSET)),
    "pread64": ("read", ctypes.c_ssize_t, (ctypes.c_int, _POINTER, _SIZE, _OFFSET)),
    "write": ("write", ctypes.c_ssize_t, (ctypes.c_int, _POINTER, _SIZE)),
    "pwrite": ("write", ctypes.c_ssize_t, (ctypes.c_int, _POINTER, _SIZE, _OFFSET)),
    "pwrite64": ("write", ctypes.c_ssize_t, (ctypes.c_int, _POINTER, _SIZE, _OFFSET)),
}
"""SQLite's names of the system's functions: what they ask for, their results and arguments."""
_OPEN: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER, use_errno=True
)
_SYNC: Final = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int, use_errno=True)


class _Vfs(ctypes.Structure):
    """The beginning of ``sqlite3_vfs``."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("data", _POINTER),
        ("open", _POINTER),
    ]


class _Methods(ctypes.Structure):
    """``sqlite3_io_methods``: the functions of an open file."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("before", _POINTER * 4),
        ("sync", _POINTER),
        ("after", _POINTER * 13),
    ]


_kept: Final[list[object]] = []
"""What SQLite has but the address of."""


def break_disk() -> None:
    """Let SQLite ask ``DISK`` in this process from now on, and for good."""
    vfs = apsw.VFS("to-reach-unix", "unix")
    _kept.append(vfs)
    for name in _CALLS:
        pointer = vfs.xGetSystemCall(name)
        if pointer is not None:
            vfs.xSetSystemCall(name, _replacement(name, pointer))
    _replace_sync()


def _replacement(name: str, pointer: int) -> int:
    what, result, arguments = _CALLS[name]
    signature = ctypes.CFUNCTYPE(result, *arguments, use_errno=True)
    return _address(signature(_failing(what, signature(pointer))))


def _address(function: Any) -> int:
    _kept.append(function)
    return ctypes.cast(function, _POINTER).value or 0


def _failing(what: str, original: Callable[..., int]) -> Callable[..., int]:
    """Make a function of the system that fails when the disk does."""

    def call(*arguments: Any) -> int:
        asked = what
        if what == "open" and arguments[1] & os.O_CREAT and not os.path.lexists(arguments[0]):
            asked = "create"
        kind = DISK.ask(asked)
        if kind is None:
            return original(*arguments)
        if kind is Kind.TORN and what == "write":
            file, data, size, *offset = arguments
            original(file, data, size // 2, *offset)
        ctypes.set_errno(ERROR_NUMBERS[kind])
        return -1

    return call


def _replace_sync() -> None:
    """Give each file that is opened from now on a ``sync`` that fails when the disk does."""
    pointer = _POINTER()
    connection = apsw.Connection(":memory:", vfs="unix")
    connection.file_control("main", apsw.SQLITE_FCNTL_VFS_POINTER, ctypes.addressof(pointer))
    connection.close()
    vfs = _Vfs.from_address(pointer.value or 0)
    assert vfs.name == b"unix"
    original = _OPEN(vfs.open)
    methods_of: dict[int, int] = {}

    def open_file(own: int, name: int, file: int, flags: int, out: int) -> int:
        result = int(original(own, name, file, flags, out))
        methods = _POINTER.from_address(file)
        if methods.value:
            if methods.value not in methods_of:
                methods_of[methods.value] = _with_sync(methods.value)
            methods.value = methods_of[methods.value]
        return result

    vfs.open = _address(_OPEN(open_file))


def _with_sync(methods: int) -> int:
    copy = _Methods.from_buffer_copy(_Methods.from_address(methods))
    original = _SYNC(copy.sync)

    def sync(file: int, flags: int) -> int:
        kind = DISK.ask("sync")
        if kind is None:
            return int(original(file, flags))
        ctypes.set_errno(ERROR_NUMBERS[kind])
        return int(apsw.SQLITE_IOERR_FSYNC)

    copy.sync = _address(_SYNC(sync))
    _kept.append(copy)
    return ctypes.addressof(copy)

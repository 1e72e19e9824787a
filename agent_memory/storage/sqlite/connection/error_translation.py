"""Translates errors of SQLite and the system into the library's own."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import apsw

from agent_memory.errors import (
    AgentMemoryError,
    NotAMemoryFile,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.runtime.files import lacks_space_for_a_file
from agent_memory.storage.sqlite.connection.introspection import SELECT_REFERRING, damage, quoted

_TOO_LARGE: Final = (
    "cannot be written: its disk, or that of temporary files (TMPDIR), is full. Free some"
    " space; nothing stored was lost. If there is space, run `agent-memory check`"
)
_KINDS: Final[tuple[tuple[type[apsw.Error], type[StorageError], str], ...]] = (
    (apsw.BusyError, StorageLocked, "is held by another process: try again in a moment"),
    (apsw.LockedError, StorageLocked, "is in use by another statement: try again in a moment"),
    (apsw.FullError, StorageFull, _TOO_LARGE),
    (apsw.ReadOnlyError, StorageReadOnly, "cannot be written: check its permissions"),
    (apsw.NotADBError, NotAMemoryFile, "is not a database, or is encrypted: it was not touched"),
    (apsw.CantOpenError, StorageUnavailable, "cannot be opened: check the path and permissions"),
    (apsw.PermissionsError, StorageUnavailable, "may not be accessed: check its permissions"),
)


_OF_DAMAGE: Final = ("unsupported file format",)
"""What SQLite says about a header that it cannot make sense of: no version of SQLite wrote such a
one."""
IRREPLACEABLE: Final = ("memories", "agent")
"""Tables that are not re-created empty: without them the file is lost, which must be reported."""
_OF_A_MISSING_TABLE: Final = ("no such table", "no such fts5 table")
_SHARED_MEMORY: Final = (apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMMAP)
_LOCKS: Final = (
    apsw.SQLITE_IOERR_LOCK,
    apsw.SQLITE_IOERR_RDLOCK,
    apsw.SQLITE_IOERR_SHMLOCK,
    apsw.SQLITE_IOERR_CHECKRESERVEDLOCK,
)
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No space left, quota exceeded, file size limit reached: SQLite knows only the first."""

_LAST_NUMBERS: Final = 2**63 - 1_000_000
"""SQLite gives no row a number above the highest possible one."""


class translated:  # noqa: N801 - used as a function, and at every statement
    """Translate SQLite's and the system's errors into the library's, naming the file.

    ``connection`` returns the connection that knows the system's part of an error, which the body
    is given. This is no generator: it takes a third of the time, and a search has a dozen
    statements.
    """

    __slots__ = ("_connection", "_path")

    def __init__(
        self, path: Path, connection: Callable[[], apsw.Connection | None] = lambda: None
    ) -> None:
        self._path = path
        self._connection = connection

    def __enter__(self) -> Any:  # noqa: ANN401 - the connection
        return self._connection()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None:
            return
        path = self._path
        if isinstance(error, apsw.ConstraintError):
            reason = _of_references(error, self._connection()) or f"refused the values: {error}"
            raise ValidationError(f"{path} {reason}") from error
        if isinstance(error, apsw.Error):
            note_errno(error, self._connection())
            if numbers := _of_numbers(error, self._connection()):
                raise StorageFull(f"{path} {numbers}") from error
            raise _translation(error, path) from error
        if isinstance(error, UnicodeDecodeError):
            raise StorageCorrupt(f"{path} contains text that is not UTF-8: {error}") from error
        if isinstance(error, OSError):
            raise _translation_of_system(error, path) from error


def _of_references(error: apsw.Error, connection: apsw.Connection | None) -> str | None:
    """Say whose rows refer to what was to be deleted, if that was the error."""
    code = getattr(error, "extendedresult", 0)
    if connection is None or code != apsw.SQLITE_CONSTRAINT_FOREIGNKEY:
        return None
    tables = ""
    with contextlib.suppress(apsw.Error):
        tables = ", ".join(str(name) for (name,) in connection.execute(SELECT_REFERRING))
    return tables and (
        f"keeps what rows of {tables} refer to ({error}): delete those rows first, or make the"
        " table again with ON DELETE CASCADE or ON DELETE SET NULL"
    )


def _of_numbers(error: apsw.Error, connection: apsw.Connection | None) -> str | None:
    """Say which table has no more row numbers, which to SQLite is a full disk."""
    if connection is None or not isinstance(error, apsw.FullError):
        return None
    with contextlib.suppress(apsw.Error):  # on a disk that is full
        for name, last in list(connection.execute("SELECT name, seq FROM sqlite_sequence")):
            highest = connection.execute(f"SELECT max(rowid) FROM {quoted(str(name))}").get
            if any(isinstance(end, int) and end > _LAST_NUMBERS for end in (last, highest)):
                return (
                    f"has no more row numbers for {name}: another program gave a row one of the"
                    " highest. `agent-memory check --repair` renumbers it"
                )
    return None


def _translation_of_system(error: OSError, path: Path) -> StorageError:
    if isinstance(error, PermissionError):
        return StorageUnavailable(f"{path} may not be accessed: {error}")
    if error.errno in FULL:
        return _full(path, error)
    if error.errno == errno.EROFS:
        return StorageReadOnly(f"{path} cannot be written: {error}")
    return StorageError(f"{path}: {error}")


OF_WRONG_VALUES: Final = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError)
"""What Python raises when a row holds what no sound file can: a number for a text, half a list."""


def refuse_damaged(connection: apsw.Connection, path: Path, error: BaseException) -> None:
    """Raise ``StorageCorrupt`` if the file is damaged: that is then the cause of the ``error``.

    A page in the place of another yields rows that break the code reading them, anywhere. Instead
    of testing every value, SQLite is asked to check the file when something broke.
    """
    if isinstance(error, AgentMemoryError):
        return
    try:
        report = "".join(damage(connection, "quick_check", most=1))
    except apsw.Error as unreadable:
        report = str(unreadable)
    if report:
        raise _damaged(path, report) from error


def _damaged(path: Path, reason: object) -> StorageCorrupt:
    """Return the error for a damaged file. Its advice is a note: `check` shows the text alone."""
    error = StorageCorrupt(f"{path} is damaged: restore a backup ({reason})")
    error.add_note("`agent-memory check` reports what is damaged")
    return error


def note_errno(error: BaseException, connection: apsw.Connection | None) -> None:
    """Attach the system's error number to SQLite's error, while the connection still knows it."""
    is_known = connection is None or hasattr(error, "system_errno")
    if not is_known and isinstance(error, apsw.Error):
        with contextlib.suppress(apsw.Error):  # the connection may be closed
            error.system_errno = connection.system_errno  # type: ignore[attr-defined,union-attr]


def is_full(error: apsw.Error, path: Path) -> bool:
    """Return whether an error of SQLite, with its errno attached, means that a disk is full.

    If no file can be created beside the database, SQLite tries an existing one, and the system's
    error about space is lost: so the system is asked again.
    """
    if isinstance(error, apsw.FullError) or getattr(error, "system_errno", 0) in FULL:
        return True
    return isinstance(error, apsw.CantOpenError) and lacks_space_for_a_file(path.parent)


def _translation(error: apsw.Error, path: Path) -> StorageError:
    """Return the library's error for one of SQLite."""
    # The last one is what sqlite-vec turns any error into.
    if isinstance(error, apsw.IOError | apsw.CantOpenError) or str(error) == "SQL logic error":
        translation = _by_the_system(error, path) or _by_the_drive(error, path)
        if translation is not None:
            return translation
    if isinstance(error, apsw.CorruptError) or str(error) in _OF_DAMAGE:
        return _damaged(path, error)
    for kind, ours, advice in _KINDS:
        if isinstance(error, kind):
            return ours(f"{path} {advice} ({error})")
    other = StorageError(f"{path}: {error}")
    if str(error).startswith(_OF_A_MISSING_TABLE):
        can_be_made = str(error).rpartition(" ")[2].rpartition(".")[2] not in IRREPLACEABLE
        repair = "`agent-memory check --repair` rebuilds it; or " if can_be_made else ""
        other.add_note(f"{repair}restore a backup")
    return other


def _by_the_system(error: apsw.Error, path: Path) -> StorageError | None:
    number = getattr(error, "system_errno", 0)
    if is_full(error, path):
        return _full(path, error)
    if number == errno.EROFS:
        return StorageReadOnly(f"{path} cannot be written: its drive is read-only ({error})")
    if number in (errno.EMFILE, errno.ENFILE):
        return StorageUnavailable(f"{path}: too many files are open: close some ({error})")
    return None


def _by_the_drive(error: apsw.Error, path: Path) -> StorageError | None:
    number = getattr(error, "extendedresult", 0)
    if number in _SHARED_MEMORY:
        return StorageUnavailable(
            f"{path} is on a drive where processes cannot share memory, which a write-ahead"
            " log needs: set AGENT_MEMORY_JOURNAL=rollback, or keep memories on a local disk"
            f" ({error})"
        )
    if number in _LOCKS:
        return StorageUnavailable(
            f"{path} is on a drive without working locks: keep memories on a local disk ({error})"
        )
    return None


def _full(path: Path, error: Exception) -> StorageFull:
    return StorageFull(f"{path} {_TOO_LARGE} ({error})")

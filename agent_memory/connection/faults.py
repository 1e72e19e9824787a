"""Errors of SQLite and the system, turned into the library's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from agent_memory.errors import (
    NotAMemoryFile,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)

_KINDS: Final[tuple[tuple[type[apsw.Error], type[StorageError], str], ...]] = (
    (apsw.BusyError, StorageLocked, "is held by another process: try again in a moment"),
    (apsw.LockedError, StorageLocked, "is in use by another statement: try again in a moment"),
    (apsw.FullError, StorageFull, "does not fit: free space on its disk. Nothing stored was lost"),
    (apsw.ReadOnlyError, StorageReadOnly, "cannot be written: check its permissions"),
    (apsw.NotADBError, NotAMemoryFile, "is not a database, or is encrypted: it was not touched"),
    (
        apsw.CorruptError,
        StorageCorrupt,
        "is damaged: restore a backup; `agent-memory check` says what is wrong",
    ),
    (apsw.CantOpenError, StorageUnavailable, "cannot be opened: check the path and permissions"),
    (apsw.PermissionsError, StorageUnavailable, "may not be accessed: check its permissions"),
)


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's and the system's errors into ours, naming the file."""
    try:
        yield
    except apsw.ConstraintError as error:
        raise ValidationError(f"{path} refused the values: {error}") from error
    except apsw.Error as error:
        for kind, ours, advice in _KINDS:
            if isinstance(error, kind):
                raise ours(f"{path} {advice} ({error})") from error
        raise StorageError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise StorageCorrupt(f"{path} holds a text that is not UTF-8: {error}") from error
    except PermissionError as error:
        raise StorageUnavailable(f"{path} may not be accessed: {error}") from error
    except OSError as error:
        raise StorageError(f"{path}: {error}") from error

"""Loads sqlite-vec: its functions and its table type ``vec0``, for vector search."""

from __future__ import annotations

from pathlib import Path

import apsw


def load_sqlite_vec(connection: apsw.Connection) -> str | None:
    """Load sqlite-vec into a connection. Return ``None``, or a message saying why that failed."""
    folder = _folder_of_sqlite_vec()
    if folder is None:
        return "sqlite-vec is not installed: run `pip install sqlite-vec`"
    try:
        # Enabled only for this C call: the SQL function load_extension() is never allowed.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
        connection.load_extension(str(folder / "vec0"))  # SQLite adds .so, .dylib or .dll
    except apsw.Error as error:
        return (
            f"sqlite-vec in {folder} cannot be loaded; it may be for another platform: run"
            f" `pip install --force-reinstall sqlite-vec` ({error})"
        )
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
    return None


def _folder_of_sqlite_vec() -> Path | None:
    """Return the directory of the library, without importing the package, which takes 95 ms."""
    import importlib.util  # noqa: PLC0415 - 5 ms, wasted if there are no vectors

    try:
        package = importlib.util.find_spec("sqlite_vec")
    except (ImportError, ValueError):  # something else is installed under this name
        return None
    folders = package.submodule_search_locations if package else None
    return next(
        (Path(folder) for folder in folders or () if any(Path(folder).glob("vec0.*"))), None
    )

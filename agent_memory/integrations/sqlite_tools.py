"""A plugin for Datasette and sqlite-utils that loads sqlite-vec, which indexes a file's vectors.

Without it they fail on every table of such a file, with "no such module: vec0". Both find this
module by its entry points, and call ``prepare_connection`` for each connection they open.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

import pluggy  # a dependency of both tools


class _Connection(Protocol):
    """The part of ``sqlite3.Connection`` used here, on a Python that can load extensions."""

    OperationalError: type[Exception]

    def enable_load_extension(self, enable: bool, /) -> None: ...  # noqa: FBT001 - as sqlite3 has it

    def load_extension(self, path: str, /) -> None: ...


@pluggy.HookimplMarker("datasette")
@pluggy.HookimplMarker("sqlite_utils")
def prepare_connection(conn: _Connection) -> None:
    """Load sqlite-vec into a connection, unless this Python cannot load extensions."""
    if not hasattr(conn, "enable_load_extension"):  # often so with pyenv and on macOS
        return
    try:
        # Some platforms have no wheel of it.
        import sqlite_vec  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return
    conn.enable_load_extension(True)
    try:
        # A build for another platform must not keep the tool from starting.
        with contextlib.suppress(conn.OperationalError):
            sqlite_vec.load(conn)
    finally:
        conn.enable_load_extension(False)

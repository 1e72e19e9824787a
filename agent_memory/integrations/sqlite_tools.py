"""Plugin of Datasette and sqlite-utils: loads sqlite-vec, which a file has vectors indexed by.

Without it they fail on every table of such a file, with "no such module: vec0". Both find this
module by its entry points, and call ``prepare_connection`` with each connection they open.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

import pluggy  # which both tools bring


class _Connection(Protocol):
    """What is used of a ``sqlite3.Connection``, on a Python that lets extensions be loaded."""

    OperationalError: type[Exception]

    def enable_load_extension(self, enable: bool, /) -> None: ...  # noqa: FBT001 - as sqlite3 has it

    def load_extension(self, path: str, /) -> None: ...


@pluggy.HookimplMarker("datasette")
@pluggy.HookimplMarker("sqlite_utils")
def prepare_connection(conn: _Connection) -> None:
    """Load sqlite-vec into a connection; where Python cannot load extensions, leave it as it is."""
    if not hasattr(conn, "enable_load_extension"):  # as the Pythons of pyenv and macOS often are
        return
    try:
        # There is no wheel of it for some platforms.
        import sqlite_vec  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return
    conn.enable_load_extension(True)
    try:
        # One that is for another platform must not keep the tool from starting.
        with contextlib.suppress(conn.OperationalError):
            sqlite_vec.load(conn)
    finally:
        conn.enable_load_extension(False)

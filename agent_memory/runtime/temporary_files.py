"""Temporary files outside the store, even if no disk but the store's is writable.

A container's own disk may be read-only; then no folder for temporary files can be used.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import IO

from agent_memory.errors import StorageUnavailable


def temporary_folder() -> Path:
    """Return the folder of temporary files. Raises ``StorageUnavailable`` if there is none."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise StorageUnavailable(
            "no folder for temporary files is writable: name one with TMPDIR"
        ) from error


def temporary_file() -> IO[bytes]:
    """Return an unnamed file that is gone when it is closed; in memory if no disk is writable."""
    try:
        temporary_folder()
    except StorageUnavailable:
        return io.BytesIO()
    return tempfile.TemporaryFile("w+b")

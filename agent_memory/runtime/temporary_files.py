"""What is kept for a while outside the memories, also where no disk but theirs can be written.

A container's own disk may be read only: then no folder for temporary files is any good.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import IO

from agent_memory.errors import StorageUnavailable


def temporary_folder() -> Path:
    """Return the folder of temporary files. Raises ``StorageUnavailable`` where there is none."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise StorageUnavailable(
            "no folder for temporary files can be written: name one with TMPDIR"
        ) from error


def temporary_file() -> IO[bytes]:
    """Return a file without a name, which goes when it is closed; in memory where none can be."""
    try:
        temporary_folder()
    except StorageUnavailable:
        return io.BytesIO()
    return tempfile.TemporaryFile("w+b")

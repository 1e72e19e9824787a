"""Opens the engine that keeps the memories of an address.

Today an address is the path of a file, and the engine SQLite. Another engine comes in here alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory.storage.engine import Engine, FileStorage


def open_engine(
    address: Path,
    *,
    create: bool = True,
    read_only: bool = False,
    synchronous: str = "FULL",
    vetted: bool = True,
) -> Engine:
    """Open the memories at an address.

    ``create`` makes the file where there is none. ``synchronous`` is ``FULL`` (an acknowledged
    write survives a power cut) or ``NORMAL`` (the last ones may be lost then, the file stays
    sound). Unless ``vetted``, the file is one of ours and its own triggers are not looked at.
    Raises ``StorageError`` and its kinds.
    """
    from agent_memory.storage.sqlite import schema  # noqa: PLC0415 - the engine of the address
    from agent_memory.storage.sqlite.connection import Database  # noqa: PLC0415
    from agent_memory.storage.sqlite.engine import SQLiteEngine  # noqa: PLC0415

    opened = schema.open_vetted if vetted else Database
    return SQLiteEngine(
        opened(address, create=create, read_only=read_only, synchronous=synchronous)
    )


def file_storage() -> FileStorage:
    """Return what can be done with files that no engine has open: copies, replacing, recovery."""
    from agent_memory.storage.sqlite import file_storage  # noqa: PLC0415

    return file_storage

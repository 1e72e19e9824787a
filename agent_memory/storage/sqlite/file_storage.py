"""Operations on files that no engine has open; ``storage.opening.file_storage`` returns them."""

from __future__ import annotations

from agent_memory.storage.sqlite.connection import is_open_here, raw_of_file
from agent_memory.storage.sqlite.maintenance.private_copy import private_copy, sweep_copies
from agent_memory.storage.sqlite.maintenance.replace import (
    find_backup,
    prepare,
    put_in_place,
    replace,
    summarize,
    summarize_backup,
)
from agent_memory.storage.sqlite.schema import latest_version

__all__ = [
    "find_backup",
    "is_open_here",
    "latest_version",
    "prepare",
    "private_copy",
    "put_in_place",
    "raw_of_file",
    "replace",
    "summarize",
    "summarize_backup",
    "sweep_copies",
]

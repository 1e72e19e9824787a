"""Where a file may be written: never over memories that are in use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agent_memory.errors import ValidationError
from agent_memory.models.fields import validate_agent_id
from agent_memory.models.limits import VECTOR_DB_FILENAME
from agent_memory.runtime import paths
from agent_memory.runtime.addresses import Address
from agent_memory.runtime.files import SIDE_FILES, files_of, translated_errors
from agent_memory.storage.opening import file_storage


def destination(
    path: str | os.PathLike[str],
    own: Address,
    agent_id: str,
    *,
    overwrite: bool,
    field: str = "path",
) -> Path:
    """Return the absolute path of a destination that may be written to.

    Raises ``ValidationError`` for the file of a memory, the agent's ``own`` or another's, for the
    files that SQLite keeps beside it, and for a device or a pipe; without ``overwrite`` also for
    anything that exists, except for an empty folder. A file elsewhere that holds the agent's own
    memories is a backup, and may be replaced. Raises ``StorageError`` if an existing file cannot be
    inspected.
    """
    place = paths.resolve_file(path)
    with translated_errors(place):
        reason = _use_of(place, own, agent_id)
        if reason is None and place.exists() and not (place.is_file() or place.is_dir()):
            reason = "is a device or a pipe, which a file would replace: choose another path"
        if reason is None and not overwrite and _is_taken(place):
            reason = (
                "already exists: choose another path, or overwrite it (`--force`, in Python"
                " overwrite=True)"
            )
    if reason is not None:
        raise ValidationError.of(field, f"{place} {reason}", str(place))
    return place


def _use_of(place: Path, own: Address, agent_id: str) -> str | None:
    """Return which memory a path is part of, as a text; ``None`` if none."""
    if isinstance(own, Path):
        is_same = place.exists() and own.exists() and place.samefile(own)
        if is_same or place in files_of(own):
            return "is the memory itself"
    suffix = next((suffix for suffix in SIDE_FILES if place.name.endswith(suffix)), "")
    file = place.with_name(place.name.removesuffix(suffix))
    if not os.path.lexists(file):
        return None
    is_plain = file.is_file() and not file.is_symlink()
    summary = file_storage().summarize(file) if is_plain else None
    holder = None if summary is None else summary.agent_id
    if holder in (None, agent_id) and not _is_named_as_store(file, holder, own, agent_id):
        return None
    return f"is the memory of agent {holder or file.parent.name!r}: choose another path"


def _is_named_as_store(file: Path, holder: str | None, own: Address, agent_id: str) -> bool:
    """Return whether a file is where the memories of an agent would be looked for.

    Under another root an agent may have the same name: a file in a folder named after its owner is
    not a backup.
    """
    folder = file.parent
    return (
        file.name == VECTOR_DB_FILENAME
        and validate_agent_id(folder.name)
        and (folder.name == holder or folder.parent in _roots(own, agent_id))
    )


def _roots(own: Address, agent_id: str) -> Iterator[Path]:
    if isinstance(own, Path) and own.parts[-2:] == (agent_id, VECTOR_DB_FILENAME):
        yield own.parent.parent
    if paths.server_root() is None:
        yield paths.memory_root()


def _is_taken(place: Path) -> bool:
    return os.path.lexists(place) and not (place.is_dir() and not any(place.iterdir()))

"""The files beside a store that may contain its data, and removing entries from the YAML one."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import StorageError, StorageUnavailable, ValidationError
from agent_memory.models.limits import (
    BACKUP_SUFFIX,
    BACKUPS_FOLDER,
    HEARD_FILENAME,
    HOOKS_FOLDER,
    SCRATCHPAD_FILENAME,
    VECTOR_DB_FILENAME,
)
from agent_memory.runtime.event_log import EventFile
from agent_memory.runtime.files import (
    CUT_OFF,
    SIDE_FILES,
    UNFINISHED,
    abandoned,
    beside,
    locked,
    plain_files,
    remove_files,
    sync_to_disk,
    translated_errors,
    written_atomically,
)
from agent_memory.storage.engine import Engine

_YAML_BACKUP: Final = SCRATCHPAD_FILENAME + BACKUP_SUFFIX
_LIST: Final = "memories"
_HALF_EXPORTS: Final = "*/.exporting"
"""Where an export into the agent's folder writes."""
REPLACEMENT_PARTS: Final = ("", *SIDE_FILES, "-kept")
"""The suffixes of the files that a restore or a rebuild creates beside a store."""

IsErased = Callable[[object], bool]
"""Returns whether an entry of the YAML file is to be erased."""


def copies_of(place: Path) -> list[Path]:
    """Return the plain files that the library may have made from a store, except for its log.

    They are the files in ``backups/``, and beside the store: files that were set aside or left
    unfinished, the YAML files of document A, and what hooks recorded that is not stored yet. A link
    is somebody else's.
    """
    paths = plain_files(place.parent / BACKUPS_FOLDER)
    heard = place.parent / HOOKS_FOLDER / HEARD_FILENAME
    paths += [path for path in plain_files(heard.parent) if path == heard and path.stat().st_size]
    beginnings = (
        f"{place.name}.",
        f".{place.name}.",
        SCRATCHPAD_FILENAME,
        f".{SCRATCHPAD_FILENAME}",
    )
    paths += [path for path in plain_files(place.parent) if path.name.startswith(beginnings)]
    return sorted(paths)


def is_store(path: Path, place: Path) -> bool:
    """Return whether a copy is a whole store: a backup, or one that a restore replaced."""
    if path.parent == place.parent:
        kept = (f"{place.name}.replaced-", f"{place.name}{CUT_OFF}")
        return path.name.startswith(kept) and not path.name.endswith(SIDE_FILES)
    return path.suffix == place.suffix and not path.name.startswith(".")


def rollback_file(place: Path) -> Path:
    """Return where the memories are written before a migration: beside their file."""
    if place.name == VECTOR_DB_FILENAME:
        return place.with_name(_YAML_BACKUP)
    return place.with_name(f"{place.name}.{_YAML_BACKUP}")  # other stores may be in its directory


def replacement_of(place: Path) -> Path:
    """Return where a restore or a rebuild creates the file that replaces a store.

    Its creator holds the lock beside it, whose name ends in ``-lock``.
    """
    return place.with_name(f".{place.name}.restoring")


def leftovers_of(engine: Engine, *, remove: bool) -> list[Path]:
    """Return what killed processes left beside a store, and remove it if ``remove``.

    It may contain all memories: half a backup, rollback file, event log, restore, or export into
    the agent's folder. Files that somebody is working on are not included.
    """
    place = engine.files.path
    log = EventFile(place).path.name
    rollback = rollback_file(place).name
    names = [re.escape(name) for name in (rollback, f".{rollback}.kept", log, place.name)]
    names.append(rf"{re.escape(log)}\.\d")
    patterns = [UNFINISHED.format(name) for name in names]
    patterns.append(rf"\.{re.escape(rollback)}\.kept")
    paths = engine.files.abandoned_backups(remove=remove)
    paths += abandoned(place.parent, *patterns, remove=remove)
    paths += _half_replacement(place, remove=remove)
    with translated_errors(place.parent):
        folders = place.parent.glob(_HALF_EXPORTS) if place.name == VECTOR_DB_FILENAME else ()
        for folder in sorted(folders):
            from agent_memory.formats.directory.commit import is_half_export  # noqa: PLC0415 - edge

            if is_half_export(folder, remove=remove):
                paths.append(folder)
    return paths


def _half_replacement(place: Path, *, remove: bool) -> list[Path]:
    """Return what a killed restore or rebuild left, and remove it if ``remove``."""
    new = replacement_of(place)
    parts = [beside(new, suffix) for suffix in REPLACEMENT_PARTS]
    if not any(map(os.path.lexists, parts)):
        return []
    try:
        with locked(beside(new, "-lock"), busy="it is being restored"):
            left = [part for part in parts if os.path.lexists(part)]
            if remove:
                remove_files(left)
    except StorageError:  # it is running, or nothing can be written here
        return []
    return left


# The rollback file --------------------------------------------------------------------------------


def id_of(entry: object) -> object:
    """Return the id of an entry of a rollback file; ``None`` if it has none."""
    return entry.get("id") if isinstance(entry, dict) else None


def entries_of(path: Path) -> Iterator[object]:
    """Yield the entries of a rollback file. Raises ``ValidationError``, ``StorageUnavailable``."""
    yield from (value for key, _, value in _items(path) if key == _LIST)


def take_out(path: Path, is_erased: IsErased) -> bool:
    """Rewrite a rollback file without some entries; return whether there were any.

    The rest stays as written, to the byte. Raises ``ValidationError``, leaving the file unchanged,
    if the lines of an entry cannot be told from those of the others.
    """
    lines = _lines_of(path, is_erased)
    if not lines:
        return False
    before = _digest(path, is_erased)
    kept = path.with_name(f".{path.name}.kept")
    try:
        _write_without(path, kept, lines)
        if _digest(kept, lambda _: False) != before:
            raise ValidationError(
                f"{path}: its entries are not on separate lines: remove them by hand"
            )
        kept.replace(path)
        sync_to_disk(path.parent)
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error}") from error
    finally:
        with suppress(OSError):
            kept.unlink()
    return True


def _items(path: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield key, line and value of the items in a YAML file, those of a list one by one."""
    from agent_memory.formats.yaml_reader import read_items  # noqa: PLC0415 - an edge, and 15 ms

    for item in read_items(path):
        if item.error is not None:
            raise ValidationError(f"{path}: line {item.line}: cannot be read")
        yield item.key, item.line, item.value


def _lines_of(path: Path, is_erased: IsErased) -> Collection[range]:
    """Return the lines, from 1, of the entries to remove."""
    begin = [(line, key == _LIST and is_erased(value)) for key, line, value in _items(path)]
    begin.append((2**63, False))
    return [range(line, following) for (line, goes), (following, _) in pairwise(begin) if goes]


def _write_without(path: Path, kept: Path, lines: Collection[range]) -> None:
    spans = iter(lines)
    span = next(spans, None)
    with path.open("rb") as file, written_atomically(kept) as new:
        for number, line in enumerate(file, start=1):
            while span is not None and number >= span.stop:
                span = next(spans, None)
            if span is None or number not in span:
                new.write(line)


def _digest(path: Path, is_erased: IsErased) -> bytes:
    """Return a hash of everything in a YAML file except for some entries."""
    digest = hashlib.sha256()
    for key, _, value in _items(path):
        if key == _LIST and (not value or is_erased(value)):
            continue
        digest.update(json.dumps([key, value], default=str).encode(errors="surrogatepass"))
    return digest.digest()

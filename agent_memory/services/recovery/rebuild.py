"""Rebuild of a damaged file from its YAML backup: whatever can be read is kept."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import (
    ConfigurationError,
    MigrationError,
    NotAMemoryFile,
    StorageCorrupt,
    StorageError,
    ValidationError,
)
from agent_memory.models.agent import RebuildReport
from agent_memory.models.memory import Memory
from agent_memory.models.times import now_utc
from agent_memory.runtime import paths
from agent_memory.services.store import Store
from agent_memory.storage.opening import file_storage

_PAGE = 500


def rebuild(
    path: str | os.PathLike[str],
    backup: str | os.PathLike[str],
    *,
    agent_id: str | None = None,
) -> RebuildReport:
    """Make a damaged or missing file anew from a ``scratchpad.yaml.backup``.

    What can still be read of the damaged file goes before what the backup has of it, and the file
    is set aside under another name, never deleted. History and settings are lost with it. Raises
    ``MigrationError`` for a file that is sound: ``rollback`` loses nothing of that.
    """
    from agent_memory.formats.scratchpad import read_scratchpad  # noqa: PLC0415 - 3 ms

    place = paths.resolve_file(path)
    saved = read_scratchpad(paths.resolve_file(backup))
    if agent_id is not None and saved.agent_id not in (None, agent_id):
        message = f"is of agent {saved.agent_id!r}, not of {agent_id!r}"
        raise ValidationError.of("backup", message, str(backup))
    owner = agent_id or saved.agent_id or "agent"
    _refuse_sound(place)
    new = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
    try:
        readable = dict(_readable(place, owner))
        missing = [entry for entry in saved.memories if entry.get("id") not in readable]
        with_new = Store(new, agent_id=owner, clock=now_utc)
        try:
            _add(with_new, readable.values())
            skipped = _add_entries(with_new, missing, owner)
            total = with_new.count_all()
        finally:
            with_new.close()
        aside = file_storage().put_in_place(place, new, "damaged", now=now_utc())
    finally:
        new.unlink(missing_ok=True)
    return RebuildReport(
        path=str(place),
        memory_count=total,
        from_file=len(readable),
        from_backup=total - len(readable),
        skipped=skipped,
        set_aside=None if aside is None else str(aside),
    )


def _refuse_sound(place: Path) -> None:
    """Refuse a file that is not damaged; one that is in use, or newer, is an error of its own."""
    if not place.exists() or place.stat().st_size == 0:
        return
    try:
        # Read-only first: an empty database would be given a schema.
        Store(place, agent_id=None, clock=now_utc, create=False, read_only=True).close()
        store = Store(place, agent_id=None, clock=now_utc, create=False)
    except (StorageCorrupt, NotAMemoryFile, ConfigurationError):
        return
    except StorageError as error:
        if type(error) is not StorageError:
            raise
        return  # such as a table that cannot be read
    try:
        problems = store.check(repair=False).problems
        if all(problem.kind != "damaged_file" for problem in problems):
            advice = "`check --repair` repairs the rest; " if problems else ""
            raise MigrationError(
                f"{place} is sound: {advice}`rollback` without --from goes back to keyword"
                " search and keeps all of it. Move the file away to go back to the backup's state"
            )
    finally:
        store.close()


def _readable(place: Path, agent_id: str) -> Iterator[tuple[str, Memory]]:
    """Yield what can be read of a damaged file, by id."""
    if not place.exists() or place.stat().st_size == 0:
        return
    try:
        store = Store(place, agent_id=None, clock=now_utc, create=False, read_only=True)
    except (StorageError, ConfigurationError):
        return
    try:
        for memory in store.readable_memories():
            yield memory.id, memory.model_copy(update={"agent_id": agent_id})
    finally:
        store.close()


def _add(store: Store, memories: Iterable[Memory]) -> None:
    page: list[Memory] = []
    for memory in memories:
        page.append(memory)
        if len(page) == _PAGE:
            store.add(page, generated_ids=frozenset())
            page = []
    if page:
        store.add(page, generated_ids=frozenset())


def _add_entries(store: Store, entries: Iterable[dict[str, Any]], agent_id: str) -> list[str]:
    """Store what the backup has; return what could not be, and why: it must not stop the rest."""
    memories: list[Memory] = []
    skipped: list[str] = []
    for entry in entries:
        try:
            memories.append(_memory(entry, agent_id))
        except PydanticValidationError as error:
            skipped.append(f"{entry.get('id')}: {ValidationError.from_pydantic(error)}")
    _add(store, memories)
    return skipped


def _memory(entry: dict[str, Any], agent_id: str) -> Memory:
    """Make a memory of a backup's entry; whatever category it has is the agent's own."""
    fields = {name: value for name, value in entry.items() if value is not None}
    fields.setdefault("created_by_session", "rollback")
    fields.setdefault("updated_at", fields.get("timestamp", now_utc()))
    categories = {"categories": [fields.get("category")]}
    return Memory.model_validate({**fields, "agent_id": agent_id}, context=categories)

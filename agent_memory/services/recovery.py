"""Recovery of a file: restored completely from a backup, or rebuilt from whatever is readable.

A restore brings back the whole state, except for what must stay out: rejected values and erased
memories. A rebuild adds the YAML backup to what can still be read of a damaged file.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import (
    ConfigurationError,
    MigrationError,
    NotAMemoryFile,
    StorageCorrupt,
    StorageError,
    ValidationError,
)
from agent_memory.models.agent import CheckReport, RebuildReport, is_category
from agent_memory.models.enums import MemoryCategory
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import MEMORY_FIELDS
from agent_memory.models.reports import BackupFile, RestoreReport
from agent_memory.models.row_repair import mended_row
from agent_memory.models.times import format_time, now_utc
from agent_memory.runtime import paths
from agent_memory.runtime.files import (
    beside,
    create_private_file,
    locked,
    translated_errors,
)
from agent_memory.services.erasure.side_files import REPLACEMENT_PARTS, replacement_of
from agent_memory.services.erasure.tombstones import purge
from agent_memory.services.policies.admission import storable_row
from agent_memory.services.store import Store
from agent_memory.storage.change_records import FileSummary, Replaced, Tombstone
from agent_memory.storage.memory_models import memory_of_row
from agent_memory.storage.memory_values import column_value
from agent_memory.storage.opening import file_storage

_MOST_NAMED: Final = 5
"""The maximum number of problems that an error lists."""


def backups_of(path: str | os.PathLike[str]) -> list[BackupFile]:
    """List the backups beside a file, newest first, even if the file itself is damaged or gone."""
    return file_storage().list_backups(paths.resolve_file(path))


def restore(
    path: str | os.PathLike[str],
    backup: str | os.PathLike[str],
    *,
    agent_id: str | None = None,
    keep_replaced: bool = True,
    before_replacing: Callable[[], object] = lambda: None,
) -> RestoreReport:
    """Restore a memory to the state of a backup, even while others have it open.

    ``backup`` is a path, ``latest``, or the name of one in ``backups/`` beside the file. It is
    copied, upgraded to this version's schema and checked before anything is replaced. Values that
    must not come back are still rejected afterwards, and what was erased here is removed from the
    copy: the report counts it. The replaced file is kept beside the new one unless
    ``keep_replaced`` is false; a file that cannot be opened is always kept. The file may be damaged
    or missing: then ``agent_id`` is its owner. ``before_replacing`` is called once the backup has
    passed the checks: if it raises an error, nothing is replaced.

    Whoever has the file open continues with the restored state. What was acknowledged before is in
    the file that is kept, what is acknowledged afterwards in the restored one.

    Raises ``ValidationError`` for a backup that does not exist or is another agent's,
    ``NotAMemoryFile`` and ``NewerSchema`` for a file that is not a backup of this version or an
    older one, ``StorageCorrupt`` if a check finds problems in it, ``StorageUntrusted`` if another
    program changed its schema, ``StorageLocked`` if somebody writes for longer than five seconds or
    restores the same file, and ``StorageFull``. In all these cases nothing was changed.
    """
    place = paths.resolve_file(path)
    chosen = _chosen(place, backup)
    files = file_storage()
    summary, current = files.summarize_backup(chosen), files.summarize(place)
    _refuse_other_agent(place, chosen, summary, current, agent_id)
    with translated_errors(place, "restored"):
        report, replaced = _restored(
            place, chosen, current, keep=keep_replaced, before_replacing=before_replacing
        )
    return RestoreReport(
        rejected=_count_rejected(place),
        path=str(place),
        backup=str(chosen),
        memory_count=(report.memory_count or 0) - replaced.purged.memories,
        erased=replaced.purged.erased,
        replaced=None if replaced.aside is None else str(replaced.aside),
        upgraded_from=summary.version if summary.version < files.latest_version() else None,
        rejections_kept=replaced.rejections_kept,
    )


def _opened_to_read(place: Path) -> Store:
    return Store(place, agent_id=None, clock=now_utc, create=False, read_only=True)


def _count_rejected(place: Path) -> int:
    """Count the rejected values that are back; 0 if the file cannot be read any more."""
    with contextlib.suppress(StorageError), contextlib.closing(_opened_to_read(place)) as store:
        return store.lifecycle.count_rejected()
    return 0


def _restored(
    place: Path,
    chosen: Path,
    current: FileSummary | None,
    *,
    keep: bool,
    before_replacing: Callable[[], object],
) -> tuple[CheckReport, Replaced]:
    """Prepare the backup's copy beside the store, and replace the store with it."""
    with _replacement(place) as unfinished:
        report = file_storage().prepare(
            chosen,
            unfinished,
            now=now_utc(),
            page_size=None if current is None else current.page_size,
        )
        _refuse_problems(chosen, report)
        before_replacing()
        replaced = file_storage().replace(
            place,
            unfinished,
            now=now_utc(),
            keep=keep,
            purge=partial(purge, session_id="restore", now=now_utc()),
        )
        return report, replaced


@contextlib.contextmanager
def _replacement(place: Path) -> Iterator[Path]:
    """Give the body the name of a file that will replace a store, and lock it for the body."""
    unfinished = replacement_of(place)
    lock = beside(unfinished, "-lock")
    create_private_file(lock)  # and the directory
    with locked(lock, busy=f"{place} is already being restored: wait until that is done"):
        _delete(unfinished)  # left by a process that was killed
        try:
            yield unfinished
        except StorageError as error:
            # The file that it names no longer exists when somebody reads the message.
            parts = rf"{re.escape(str(unfinished))}(?:-kept)?"
            error.args = (re.sub(parts, lambda _: str(place), str(error)),)
            raise
        finally:
            _delete(unfinished)


def _chosen(place: Path, backup: str | os.PathLike[str]) -> Path:
    """Return the file of a backup; a name in the list takes precedence over a path."""
    listed = file_storage().find_backup(place, backup) if isinstance(backup, str) else None
    chosen = listed or paths.resolve_file(backup)
    with translated_errors(chosen):
        _refuse_missing(place, chosen, backup)
        is_same = chosen.exists() and place.exists() and chosen.samefile(place)
    if chosen == place or is_same:
        raise ValidationError.of("backup", "is the memory itself", str(backup))
    return chosen


def _refuse_missing(place: Path, chosen: Path, backup: str | os.PathLike[str]) -> None:
    try:
        chosen.lstat()
    except (FileNotFoundError, NotADirectoryError) as error:
        name = os.fspath(backup)
        message = (
            f"{name!r:.300} is neither a file nor a backup beside {place}:"
            " `backups` lists the existing ones"
        )
        raise ValidationError.of("backup", message, name) from error


def _refuse_other_agent(
    place: Path,
    chosen: Path,
    summary: FileSummary,
    current: FileSummary | None,
    agent_id: str | None,
) -> None:
    owner = agent_id if current is None or current.agent_id is None else current.agent_id
    if agent_id not in (None, owner):
        message = f"{place} holds the memories of agent {owner!r}, not of {agent_id!r}"
        raise ValidationError.of("agent_id", message, agent_id)
    if summary.agent_id is None:
        raise ValidationError.of("backup", "does not name its agent", str(chosen))
    if owner not in (None, summary.agent_id):
        message = f"belongs to agent {summary.agent_id!r}, not to {owner!r}"
        raise ValidationError.of("backup", message, str(chosen))


def _refuse_problems(chosen: Path, report: CheckReport) -> None:
    if not report.problems:
        return
    details = [problem.detail for problem in report.problems]
    named = "; ".join(details[:_MOST_NAMED])
    more = f"; and {len(details) - _MOST_NAMED} more" if len(details) > _MOST_NAMED else ""
    raise StorageCorrupt(
        f"{chosen} is damaged, so nothing was restored: {named}{more}. Restore another"
        " backup, or repair this one: open it with AgentMemory.open and call"
        " check(repair=True)"
    )


def _delete(unfinished: Path) -> None:
    for suffix in REPLACEMENT_PARTS:
        beside(unfinished, suffix).unlink(missing_ok=True)


_PAGE = 500


def rebuild(
    path: str | os.PathLike[str],
    backup: str | os.PathLike[str],
    *,
    agent_id: str | None = None,
) -> RebuildReport:
    """Rebuild a damaged or missing file from a ``scratchpad.yaml.backup``.

    What can still be read of the damaged file takes precedence over the backup. The file is set
    aside under another name, never deleted. History and settings are lost with it, except for the
    categories that memories have and the backup's ``max_size``; ``undo`` cannot reverse a rebuild.
    What was erased stays out, as far as the damaged file still records it. Raises
    ``MigrationError`` for a file that is intact: ``rollback`` loses nothing of such a file.
    """
    from agent_memory.formats.scratchpad import read_scratchpad  # noqa: PLC0415 - 3 ms

    place = paths.resolve_file(path)
    saved = read_scratchpad(paths.resolve_file(backup))
    if agent_id is not None and saved.agent_id not in (None, agent_id):
        message = f"belongs to agent {saved.agent_id!r}, not to {agent_id!r}"
        raise ValidationError.of("backup", message, str(backup))
    owner = agent_id or saved.agent_id or "agent"
    _refuse_sound(place)
    with _replacement(place) as new:
        readable = dict(_readable(place, owner))
        missing = [entry for entry in saved.memories if entry.get("id") not in readable]
        with contextlib.closing(Store(new, agent_id=owner, clock=now_utc)) as with_new:
            with_new.erasure.remember_erased(_tombstones(place))
            _configure(with_new, saved.config)
            _add(with_new, readable.values())
            skipped, erased = _add_entries(with_new, missing, owner)
            _add_categories(with_new)
            with_new.lifecycle.forbid_undo("rebuild", session_id="rebuild")
            total = with_new.count_all()
        aside = file_storage().put_in_place(place, new, "damaged", now=now_utc())
    return RebuildReport(
        path=str(place),
        memory_count=total,
        from_file=len(readable),
        from_backup=total - len(readable),
        skipped=skipped,
        erased=erased,
        set_aside=None if aside is None else str(aside),
    )


def _refuse_sound(place: Path) -> None:
    """Refuse a file that is not damaged; one that is in use or newer has an error of its own."""
    if not place.exists() or place.stat().st_size == 0:
        return
    try:
        # Read-only first: an empty database would get a schema.
        _opened_to_read(place).close()
        store = Store(place, agent_id=None, clock=now_utc, create=False)
    except (StorageCorrupt, NotAMemoryFile, ConfigurationError):
        return
    except StorageError as error:
        if type(error) is not StorageError:
            raise
        return  # such as a table that cannot be read
    with contextlib.closing(store):
        problems = store.check(repair=False).problems
    if all(problem.kind != "damaged_file" for problem in problems):
        advice = "`check --repair` repairs the rest; " if problems else ""
        raise MigrationError(
            f"{place} is intact: {advice}`rollback` without --from returns to keyword search"
            " and keeps everything. Move the file away to return to the backup's state"
        )


def _readable(place: Path, agent_id: str) -> Iterator[tuple[str, Memory]]:
    """Yield the readable memories of a damaged file, by id."""
    if not place.exists() or place.stat().st_size == 0:
        return
    try:
        store = _opened_to_read(place)
    except (StorageError, ConfigurationError):
        return
    with contextlib.closing(store):
        for memory in store.readable_memories():
            yield memory.id, _storable(memory.model_copy(update={"agent_id": agent_id}))


def _storable(memory: Memory) -> Memory:
    """Return a memory as ``check --repair`` would repair it: one bad row must not stop the rest."""
    row = {name: column_value(getattr(memory, name)) for name in MEMORY_FIELDS}
    mended = storable_row(row, moment=format_time(now_utc()))
    return memory if mended is row else memory_of_row(mended, agent_id=memory.agent_id)


def _tombstones(place: Path) -> Sequence[Tombstone]:
    """Return the erasures that a damaged file records; nothing if they cannot be read."""
    with contextlib.suppress(StorageError, ConfigurationError):
        if place.exists() and place.stat().st_size:
            with contextlib.closing(_opened_to_read(place)) as store:
                return store.erasure.tombstones()
    return ()


def _add(store: Store, memories: Iterable[Memory]) -> None:
    to_come = iter(memories)
    while page := list(islice(to_come, _PAGE)):
        store.add(page, generated_ids=frozenset())


def _add_entries(
    store: Store, entries: Iterable[dict[str, Any]], agent_id: str
) -> tuple[list[str], list[str]]:
    """Store the memories of the backup, except for erased ones.

    Returns what could not be stored, and why, since it must not stop the rest; and the erased ids.
    """
    memories: list[Memory] = []
    skipped: list[str] = []
    for entry in entries:
        try:
            memories.append(_memory(entry, agent_id))
        except PydanticValidationError as error:
            skipped.append(f"{entry.get('id')}: {ValidationError.from_pydantic(error)}")
    erased = store.erasure.erased_among(memories)
    _add(store, (memory for memory in memories if memory.id not in erased))
    return skipped, sorted(erased)


def _add_categories(store: Store) -> None:
    """Add the categories of all memories to the agent's own: its settings were lost."""
    words = {memory.category for memory in store.readable_memories()}
    own = sorted(word for word in words - {*MemoryCategory.all_values()} if is_category(word))
    if own:
        _configure(store, {"categories": own})


def _configure(store: Store, settings: Mapping[str, object]) -> None:
    store.change_config(lambda config: config.model_copy(update=settings))


def _memory(entry: dict[str, Any], agent_id: str) -> Memory:
    """Make a memory from a backup's entry; any category it has becomes the agent's own.

    Values that no import would accept are repaired, as in the readable part of the damaged file.
    """
    fields = {name: value for name, value in entry.items() if value is not None}
    fields.setdefault("created_by_session", "rollback")
    fields.setdefault("updated_at", fields.get("timestamp", now_utc()))
    categories = {"categories": [fields.get("category")]}
    try:
        return Memory.model_validate({**fields, "agent_id": agent_id}, context=categories)
    except PydanticValidationError as error:
        wrong = {str(fault["loc"][0]) for fault in error.errors()}
        if not wrong < MEMORY_FIELDS.keys() - {"id", "content"}:
            raise
        right = {name: value for name, value in fields.items() if name not in wrong}
        sound = Memory.model_validate({**right, "agent_id": agent_id}, context=categories)
        row = {name: column_value(getattr(sound, name)) for name in MEMORY_FIELDS}
        row |= {name: column_value(fields[name]) for name in wrong}
        return memory_of_row(
            mended_row(row, wrong, moment=format_time(now_utc())), agent_id=agent_id
        )

"""Checks a whole file for damage and drift, and repairs it, using the checks of its parts."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from agent_memory.errors import (
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageUntrusted,
    opened_read_only,
)
from agent_memory.models.agent import CheckReport, Problem
from agent_memory.models.times import format_time, now_utc
from agent_memory.runtime.files import SIDE_FILES, beside, exposures
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import SELECT_REFERRING, Database
from agent_memory.storage.sqlite.maintenance import (
    check_history,
    check_ids,
    check_indexes,
    check_numbers,
    check_rows,
    check_texts,
    check_values,
)
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.sqlite.tables.graph_maintenance import GraphMaintenance
from agent_memory.storage.sqlite.tables.history import OperationTable
from agent_memory.storage.sqlite.tables.rejections import RejectionTable
from agent_memory.storage.sqlite.tables.tombstones import TombstoneTable
from agent_memory.storage.sqlite.vector_index import VectorIndex

_Look = Callable[[Database], Iterable[Problem]]
_DAMAGE: Final = (StorageError, StorageCorrupt, StorageUntrusted)
"""What a damaged file raises; the first itself (a missing table), but none of its other
subclasses."""
_COUNT: Final = "SELECT count(*), count(*) FILTER (WHERE archived = 1) FROM memories"
_BACKED_UP: Final = (
    "foreign",
    "missing_table",
    "unreadable",
    "wrong_id",
    "wrong_number",
    "wrong_row",
)
"""Prefixes of the kinds of problems that are repaired only after a backup."""
_OLDER: Final = "{} is of an earlier version: the next search rebuilds it"
_REFERRING: Final = (
    "the table {} refers to ours without ON DELETE CASCADE or SET NULL: what its rows refer to"
    " cannot be deleted or erased"
)
_INDEX_NOT_COMPARED: Final = (
    "the keyword index was not compared with the memories: FTS5 can do that only in a writable file"
)


def check(
    database: Database, path: Path, *, repair: bool, back_up: Callable[[], object] = lambda: None
) -> CheckReport:
    """Find problems, repair them if requested, and report.

    ``back_up`` is called before anything that someone else put into the file is removed from it or
    re-encoded. A read-only file is checked as far as possible, and the notes say what was left out;
    repairing it raises ``StorageReadOnly``.
    """
    if repair and database.read_only:
        raise opened_read_only(path)
    problems = _problems(database)
    if problems and repair:
        with contextlib.suppress(StorageCorrupt):
            if any(problem.kind.startswith(_BACKED_UP) for problem in problems):
                back_up()
        with _tolerated_damage():
            _mend(database)
        left = {problem.detail: problem for problem in _problems(database)}
        problems = [
            problem.model_copy(update={"repaired": left.pop(problem.detail, None) is None})
            for problem in problems
        ]
        problems += left.values()  # repairing has revealed them
    total = archived = None
    notes: list[str] = []
    with _tolerated_damage():
        total, archived = next(iter(database.rows(_COUNT)))
        notes += [_OLDER.format(name) for name in VectorIndex(database).older_tables()]
        notes += [_REFERRING.format(name) for (name,) in database.rows(SELECT_REFERRING)]
    warning = database.warning
    notes += [*([] if warning is None else [warning]), *_exposures(path)]
    if database.read_only:
        notes.append(_INDEX_NOT_COMPARED)
    return CheckReport(
        path=str(path),
        memory_count=total,
        problems=problems,
        notes=notes,
        archived_count=archived,
    )


def _exposures(path: Path) -> list[str]:
    """Report whether others have rights on the file, or may replace it.

    Opening the file revokes such rights; any left are on someone else's file, or were granted
    since. That others may list a folder is its user's choice, since a file may be anywhere.
    """
    parts = [path, *(beside(path, suffix) for suffix in SIDE_FILES)]
    with contextlib.suppress(OSError):
        mode = path.parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            parts.append(path.parent)
    return exposures(*parts)


@contextlib.contextmanager
def _tolerated_damage() -> Iterator[None]:
    """Suppress the errors of a damaged file: what is left of it is checked again."""
    try:
        yield
    except StorageError as error:
        if type(error) not in _DAMAGE:
            raise


def _mend(database: Database) -> None:
    with database.write(vetted=False), _unchecked(database):
        remade = schema.repair(database)  # first: the others need every table
        check_history.number_on(database)
        is_renumbered = check_numbers.repair(database)  # like the next, before any trigger runs
        before = OperationTable(database).last_number()
        schema.repair_records(database, now=format_time(now_utc()))
        check_ids.repair(database)
        check_texts.repair(database, schema.objects())
        check_values.repair(database)
        check_rows.repair_versions(database)
        database.trust()
        check_indexes.repair(database, schema.objects())
        AgentTable(database).repair()  # before the rows, which are checked against its categories
        check_rows.repair(database)
        check_history.repair(database)
        VectorIndex(database).repair()
        GraphMaintenance(database).repair(remade)
        TombstoneTable(database).repair()
        RejectionTable(database).repair()
        if remade or is_renumbered or OperationTable(database).last_number() > before:
            # `undo` would restore what no import accepts, or undo only part of the repair.
            OperationTable(database).record_irreversible(
                "check --repair", session_id="check", now=now_utc()
            )


@contextlib.contextmanager
def _unchecked(database: Database) -> Iterator[None]:
    """Allow rows that the schema refuses: what is repaired in steps is wrong until the last step.

    What is still wrong in the end is found by the check that follows.
    """
    database.run("PRAGMA ignore_check_constraints = 1")
    try:
        yield
    finally:
        database.run("PRAGMA ignore_check_constraints = 0")


def _problems(database: Database) -> list[Problem]:
    """Look for problems, blocking writers as briefly as possible."""
    problems: list[Problem] = []
    try:
        with database.read():
            for look in _LOOKS:
                problems += _found_by(look, database)
        if not database.read_only:
            # On a disk where not even a log can be created, the index is not compared.
            with contextlib.suppress(StorageUntrusted, StorageFull), database.write():
                problems += check_indexes.compare_index(database)
    except StorageCorrupt as error:
        problems.append(Problem(kind="damaged_file", detail=str(error)))
    return list(dict.fromkeys(problems))


def _found_by(look: _Look, database: Database) -> Iterator[Problem]:
    """Yield what a check finds; if damage or a missing table ends it, report that instead."""
    try:
        yield from look(database)
    except StorageError as error:
        if type(error) not in _DAMAGE:
            raise
        yield Problem(kind="damaged_file", detail=str(error))


def _foreign(database: Database) -> list[Problem]:
    """Return the foreign triggers and views of the file, which would run by themselves."""
    return [
        Problem(kind=f"foreign_{fault.kind}", detail=str(fault))
        for fault in schema.faults(database)
        if fault.state == "foreign"
    ]


def _misrecorded(database: Database) -> list[Problem]:
    """Report migrations whose record is wrong although the schema is right."""
    return [
        Problem(
            kind="wrong_row",
            detail=f"the record of migration {number} was changed: `check --repair` restores it",
        )
        for number in schema.misrecorded(database)
    ]


_LOOKS: Final[tuple[_Look, ...]] = (
    _foreign,
    _misrecorded,
    lambda database: check_indexes.find_wrong_objects(database, schema.objects()),
    *check_indexes.LOOKS,
    check_numbers.find_problems,
    check_ids.find_problems,
    lambda database: check_texts.find_problems(database, schema.objects()),
    lambda database: AgentTable(database).find_problems(),
    check_history.find_problems,
    check_rows.find_problems,
    check_values.find_problems,
    lambda database: VectorIndex(database).find_problems(),
    lambda database: GraphMaintenance(database).find_problems(),
    lambda database: TombstoneTable(database).find_problems(),
    lambda database: RejectionTable(database).find_problems(),
)
"""The checks, run one by one: if one fails, the others still run."""

"""The schema: reads the migrations, applies pending ones, refuses files that do not match.

All of it is in ``migrations/NNNN_name.sql``. Pending ones are applied in one transaction, each with
a record of its name and hash, so that a file has a version completely or not at all. A new file is
created from ``migrations/schema.sql``, which is their combined result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import MigrationError, NewerSchema, NotAMemoryFile, StorageError
from agent_memory.runtime.package_files import PACKAGE
from agent_memory.storage.migrations import UPGRADE, Migration, read_migrations, read_snapshot
from agent_memory.storage.sqlite import schema_check
from agent_memory.storage.sqlite.connection import (
    APPLICATION_ID,
    REBUILD_INDEX,
    Database,
    Row,
    Verdict,
    statement_is_complete,
)

_PACKAGE: Final = PACKAGE
_WITH_HISTORY: Final = 4
"""The first version with a history."""
_CREATE_RECORD: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  -- Which versions of this schema were applied, and from what.
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,    -- of the file under migrations/
  sha256 TEXT NOT NULL,  -- of its text: a shipped migration never changes
  applied_at TEXT NOT NULL
) STRICT"""
_HAS_RECORD: Final = """
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'"""
_SELECT_RECORD: Final = "SELECT number, name, sha256 FROM schema_migrations ORDER BY number"
_MOST_NAMED: Final = 3
"""How many faults a message names."""
_UPDATE_RECORD: Final = "UPDATE schema_migrations SET sha256 = ? WHERE number = ?"
_DELETE_RECORD: Final = "DELETE FROM schema_migrations WHERE number = ?"
_INSERT_RECORD: Final = """
INSERT INTO schema_migrations (number, name, sha256, applied_at) VALUES (?, ?, ?, ?)"""


@cache
def migrations() -> tuple[Migration, ...]:
    """Read the migrations, in order, from the installed package or else the checkout."""
    return read_migrations(_PACKAGE)


def latest_version() -> int:
    """Return the number of the newest migration, which is the version of new files."""
    return len(migrations())


def current_version(database: Database) -> int:
    """Return the number of the file's newest migration."""
    return int(database.value("PRAGMA user_version"))


def is_current(database: Database) -> bool:
    """Return whether the file has all migrations, as shipped.

    Raises ``NewerSchema`` for a file of a newer version of the library, and ``MigrationError`` if a
    migration was applied that was never shipped under its name.
    """
    version = current_version(database)
    refuse_newer(database.path, version)
    if version == 0:
        return False
    return not _is_legacy(database) and version == latest_version()


def _recorded(database: Database) -> list[Row] | None:
    """Return the file's record of its migrations; ``None`` if that table is missing."""
    try:
        return list(database.rows(_SELECT_RECORD))
    except StorageError:
        if database.value(_HAS_RECORD):
            raise
        return None


def _is_legacy(database: Database) -> bool:
    """Return whether a migration was applied in a form it had before it was frozen."""
    shipped = {migration.number: migration.sha256 for migration in migrations()}
    edited = {
        sha256: name
        for number, name, sha256 in _recorded(database) or ()
        if shipped.get(number, sha256) != sha256
    }
    if not edited:
        return False
    from agent_memory.storage.sqlite.legacy_schema import LEGACY_HASHES  # noqa: PLC0415 - rare

    if LEGACY_HASHES.issuperset(edited):
        return True
    if all(fault.state == "foreign" for fault in faults(database)):
        return False  # the schema is ours: someone edited a row of the record
    raise MigrationError(
        f"{database.path} was made with a different {min(edited.values())} than this"
        " agent-memory has: with the program that made it, run `agent-memory export --format"
        " store`, and import that file here"
    )


def refuse_newer(path: Path, version: int) -> None:
    """Raise ``NewerSchema`` for a version that only a newer library knows."""
    if version > latest_version():
        raise NewerSchema(
            f"{path} was made by a newer agent-memory (schema {version}, this one knows"
            f" {latest_version()}): {UPGRADE}. The file was not touched"
        )


def upgrade(
    database: Database,
    *,
    now: str,
    before_upgrade: Callable[[], object],
    and_then: Callable[[], object] = lambda: None,
) -> None:
    """Apply the pending migrations, all or none.

    ``now`` is the time for the record; ``before_upgrade`` is called first if the file already holds
    something (to back it up), and ``and_then`` last, in the same transaction.
    """
    if is_current(database):
        return
    if database.read_only:
        raise MigrationError(
            f"{database.path} has an older schema and is open read-only: open it once for writing"
        )
    version = current_version(database)
    is_legacy = version > 0 and _is_legacy(database)
    if not is_legacy:
        database.trust()
    if version:
        before_upgrade()
    with database.write(vetted=not is_legacy):
        version = current_version(database)  # another process may have been faster
        if is_legacy:
            _recreate_legacy(database, version)
        for statement in _pending(version):
            database.run(statement)
        for migration in migrations()[version:]:
            record = (migration.number, migration.name, migration.sha256, now)
            database.run(_INSERT_RECORD, record)
        if 0 < version < _WITH_HISTORY:
            from agent_memory.storage.sqlite.tables.history import HistoryTable  # noqa: PLC0415

            HistoryTable(database).begin_all()
        database.run(f"PRAGMA user_version = {latest_version()}")
        and_then()


def _pending(version: int) -> Iterator[str]:
    """Yield the statements that turn the schema of a version into the newest.

    Applying all migrations takes five times as long as creating their result: SQLite reads the
    whole schema again for each column that they add.
    """
    if version == 0:
        snapshot = read_snapshot(_PACKAGE)
        if f"PRAGMA user_version = {latest_version()};" in snapshot:
            yield from statements(snapshot)
            return
        # A migration under development is not in the snapshot yet.
        yield f"PRAGMA application_id = {APPLICATION_ID}"
        yield _CREATE_RECORD
    for migration in migrations()[version:]:
        yield from statements(migration.sql)


def _recreate_legacy(database: Database, version: int) -> None:
    """Make a file what the shipped migrations of its version would have made it."""
    if not _is_legacy(database):  # another process was faster
        database.trust()
        return
    from agent_memory.storage.sqlite import legacy_schema  # noqa: PLC0415 - rare

    legacy_schema.recreate(database, shipped_schema(version))
    for migration in migrations()[:version]:
        database.run(_UPDATE_RECORD, (migration.sha256, migration.number))
    database.trust()
    database.run(REBUILD_INDEX)  # it reads our views, which may run now


def objects() -> tuple[Row, ...]:
    """Return the tables, indexes, views and triggers of the newest schema: type, name, SQL."""
    return shipped_schema(latest_version()).objects


def shipped_schema(version: int) -> schema_check.ShippedSchema:
    """Return what a file of a version must contain."""
    return _shipped_schema(migrations()[:version])


@cache
def _shipped_schema(applied: tuple[Migration, ...]) -> schema_check.ShippedSchema:
    record = _CREATE_RECORD.replace(" IF NOT EXISTS", "") + ";"
    return schema_check.ShippedSchema(
        [record, *(migration.sql for migration in applied)] if applied else []
    )


# Files that may come from anywhere ------------------------------------------------------------


def open_vetted(path: Path, **options: Any) -> Database:  # noqa: ANN401 - those of Database
    """Open a memory file; nothing is written to it if its own triggers could interfere."""
    return Database(path, refuse_version=refuse_newer, vet=vet, **options)


def vet(path: Path, version: int, rows: Sequence[Row]) -> Verdict:
    """Judge a file by its contents. Raises ``NewerSchema``."""
    refuse_newer(path, version)
    shipped = shipped_schema(version)
    faults = shipped.faults(rows)
    if not faults:
        return Verdict()
    named = "; ".join(map(str, faults[:_MOST_NAMED]))
    more = f"; and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
    fate = (
        "has an older schema, and was not upgraded"
        if version < latest_version()
        else "can be read, but nothing is written into it"
    )
    return Verdict(
        f"{path} {fate}: {named}{more}. {_advice(path, version, faults)}",
        tuple(schema_check.temporary_views(shipped, faults)),
    )


def _advice(path: Path, version: int, faults: Sequence[schema_check.Fault]) -> str:
    if not all(fault.can_be_mended for fault in faults):
        return "Restore a backup, or import this file into a new memory"
    drop = _removal(path, faults)
    if version < latest_version():
        advice = "Import this file into a new memory with `agent-memory import`"
        return f"{advice}, or drop what is not its own: {drop}" if drop else advice
    if drop:
        return f"If you made that, {drop} removes it; so does `check --repair`, after a backup"
    if all(fault.state == "foreign" for fault in faults):
        return "`agent-memory check --repair` removes it, after a backup"
    return "If you did not make that, `agent-memory check --repair` repairs it, after a backup"


def _removal(path: Path, faults: Sequence[schema_check.Fault]) -> str | None:
    """Return the command that drops all that is foreign, if nothing else is wrong."""
    # A view takes its triggers along, so it comes after them.
    ordered = sorted(faults, key=lambda fault: fault.kind)
    removals = [fault.removal for fault in ordered if fault.state == "foreign"]
    shown = [removal for removal in removals if removal]
    if len(faults) > _MOST_NAMED or len(shown) < len(faults):
        return None
    import shlex  # noqa: PLC0415 - seldom used

    return f"`{shlex.join(['sqlite3', str(path), '; '.join(shown)])}`"


def faults(database: Database) -> list[schema_check.Fault]:
    """Return the faults of the file's schema. Must run inside a transaction."""
    return schema_check.find_faults(database, shipped_schema(current_version(database)))


def misrecorded(database: Database) -> list[int]:
    """Return the numbers of the migrations whose record differs from what was applied.

    A missing record table says nothing. Must run inside a transaction.
    """
    if (rows := _recorded(database)) is None:
        return []
    applied = migrations()[: current_version(database)]
    shipped = {migration.number: (migration.name, migration.sha256) for migration in applied}
    recorded = {number: (name, sha256) for number, name, sha256 in rows}
    numbers = sorted(shipped.keys() | recorded.keys())
    return [number for number in numbers if shipped.get(number) != recorded.get(number)]


def repair_records(database: Database, *, now: str) -> None:
    """Rewrite the file's record of its migrations. Must run inside a transaction."""
    for number in misrecorded(database):
        database.run(_DELETE_RECORD, (number,))
        for migration in migrations()[number - 1 : number] if number > 0 else ():
            record = (migration.number, migration.name, migration.sha256, now)
            database.run(_INSERT_RECORD, record)


def repair(database: Database) -> list[str]:
    """Restore our tables, views and triggers; return the tables that were missing, now empty.

    No trigger runs before ``Database.trust`` is called. Must run inside ``write(vetted=False)``.
    """
    shipped = shipped_schema(current_version(database))
    deviations = schema_check.find_faults(database, shipped)
    schema_check.drop_foreign(database, deviations)
    schema_check.restore_own(database, shipped, deviations)
    return [fault.name for fault in deviations if (fault.kind, fault.state) == ("table", "missing")]


def refuse_incomplete(database: Database) -> None:
    """Refuse a file that has no schema at all and may not be given one."""
    if current_version(database) == 0:
        raise NotAMemoryFile(f"{database.path} has no memories: it is an empty database")


def statements(sql: str) -> Iterator[str]:
    """Split SQL at the semicolons that end a statement, but not at those inside triggers.

    (Running a whole script at once would first commit the open transaction.)
    """
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if line.rstrip().endswith(";") and statement_is_complete(pending):
            yield pending.strip()
            pending = ""
    rest = [line.strip() for line in pending.splitlines()]
    if any(line and not line.startswith("--") for line in rest):
        raise MigrationError(f"a migration ends inside a statement: {pending.strip()[:80]!r}")

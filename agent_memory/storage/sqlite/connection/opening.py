"""Opens a file: inspects it before touching it, and configures the connection."""

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from agent_memory.errors import (
    NotAMemoryFile,
    StorageCorrupt,
    StorageReadOnly,
    StorageUnavailable,
    StorageUntrusted,
    other_agent,
)
from agent_memory.runtime.files import create_private_file, refuse_unfit_file, tighten_rights
from agent_memory.runtime.logs import logger
from agent_memory.storage.sqlite.connection import journal_mode, read_only_media
from agent_memory.storage.sqlite.connection.error_translation import is_full, note_errno
from agent_memory.storage.sqlite.connection.file_systems import free_bytes
from agent_memory.storage.sqlite.connection.journal_mode import Journal
from agent_memory.text.encoding import decode_text

APPLICATION_ID: Final = 0x41674D65
"""``AgMe``: marks a file as ours, in its header."""
PAGE_SIZE: Final = 8192
BUSY_TIMEOUT_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 0.25
"""How long to wait for others to close a log that is better not used, but may be."""
_LONGEST_BEAT_SECONDS: Final = 0.005
"""The longest pause between two attempts to get a lock."""
_OF_SPACE: Final = (apsw.FullError, apsw.IOError, apsw.CantOpenError)
"""What SQLite may raise when there is no space."""
_FIRST_MIGRATION: Final = "0001_memories.sql"
REBUILD_INDEX: Final = "INSERT INTO memory_index (memory_index) VALUES ('rebuild')"
_HAS_OTHER_ROWS: Final = """
SELECT EXISTS (SELECT id FROM memory_index_docsize EXCEPT SELECT seq FROM memories)"""
_READ_IT: Final = "check its permissions, or open it read-only (in Python: read_only=True)"
_LONGEST_PATH: Final = 504
"""In bytes. Outside Windows SQLite accepts 512, including the suffix ``-journal``."""
_LOOKS: Final = 3
_FORMATS: Final = 18
"""Offset of the header's format numbers, for reading and for writing: of a newer format SQLite says
only that the file cannot be written."""
_NEWEST_FORMAT: Final = 2
_STATEMENTS: Final = 250
"""Executions after which APSW forgets a statement. A store and a search by meaning are 103; with
APSW's 100 each would prepare again what a store executes, 0.4 ms for the insert alone."""
_BETWEEN_LOOKS_SECONDS: Final = 0.005


def refuse_long_path(path: Path) -> None:
    """Raise ``StorageUnavailable`` for a path too long for SQLite."""
    if os.name == "posix" and len(os.fsencode(path)) > _LONGEST_PATH:
        raise StorageUnavailable(
            f"…{str(path)[-80:]} is a path of more than {_LONGEST_PATH} bytes, the most that"
            " SQLite accepts: shorten it"
        )


def open_connection(
    path: Path,
    *,
    create: bool,
    read_only: bool,
    durable: bool,
    refuse_version: Callable[[Path, int], None],
    before_writing: Callable[[apsw.Connection], None],
) -> tuple[apsw.Connection, Journal]:
    """Open a memory file, created if ``create``; the other parameters are those of ``Database``.

    ``before_writing`` raises ``StorageUntrusted`` if the file's own views and triggers may not run.

    Also returns the file's journal. On a full disk the connection may be good for a single
    transaction: ``is_makeshift`` tells.
    """
    refuse_long_path(path)
    journal = journal_mode.choose_journal(path)
    settings = _Settings(path, read_only, durable, journal, before_writing)
    if create and not read_only:
        create_private_file(path)
    refuse_unfit_file(path)
    _look_before_opening(path, refuse_version)
    if not read_only:  # what is only read may be somebody else's: what `import` names
        tighten_rights(path)
    try:
        return _open(settings)
    except journal_mode.LogInUse:
        if settings.journal.is_required:
            raise
        return _open(settings._replace(journal=Journal(rollback=False)))
    except _OF_SPACE as error:
        if not is_full(error, path):
            raise
        return _open_on_full_disk(settings, error)


def _open_on_full_disk(settings: "_Settings", full: apsw.Error) -> tuple[apsw.Connection, Journal]:
    """Open a file beside which there is no space for what a write-ahead log needs.

    With a rollback journal, reading needs no space. A log that no longer fits into the file is read
    in place, which needs no space either if nobody else uses it. Without a log, and if none can be
    created, nobody can write, and the file is read as immutable.
    """
    with_journal = settings._replace(journal=settings.journal._replace(rollback=True))
    if not settings.journal.rollback:
        try:
            return _open(with_journal)
        except journal_mode.LogInUse:
            raise full from None
        except _OF_SPACE as error:
            if not is_full(error, settings.path):
                raise
    try:
        return _open(with_journal._replace(is_exclusive=True))
    except apsw.CantOpenError:
        if read_only_media.has_side_files(settings.path):
            raise
    as_it_is = with_journal._replace(read_only=True)
    return _set_up(read_only_media.connect_immutable(settings.path), as_it_is), as_it_is.journal


def refuse_other_agent(connection: apsw.Connection, path: Path, agent_id: str | None) -> None:
    """Refuse a file that holds the memories of another agent than ``agent_id``, if that is known.

    A file that does not name its agent, such as an empty one, is not judged here.
    """
    has_agent = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'agent'"
    if agent_id is None or next(connection.execute(has_agent), None) is None:
        return
    for (owner,) in connection.execute("SELECT CAST(agent_id AS BLOB) FROM agent"):
        if decode_text(owner) != agent_id:
            raise other_agent(path, decode_text(owner), agent_id)


def is_makeshift(connection: apsw.Connection, *, read_only: bool) -> bool:
    """Return whether a connection is for one transaction, in the hope of a better one afterwards.

    Such a connection locks everyone else out, or cannot write although it should.
    """
    if read_only_media.is_immutable_connection(connection):
        return not read_only
    return bool(connection.pragma("locking_mode") == "exclusive")


def refuse_without_space(connection: apsw.Connection, path: Path, journal: Journal) -> None:
    """Raise ``FullError`` if a write could not be completed, or not be rolled back."""
    if read_only_media.is_immutable_connection(connection):
        raise apsw.FullError("no log can be created beside it")
    if journal.reserve and free_bytes(path) < journal.reserve:
        raise apsw.FullError(f"less than {journal.reserve >> 20} MB are free")


def _open(settings: "_Settings") -> tuple[apsw.Connection, Journal]:
    path, read_only = settings.path, settings.read_only
    # The path is never a URI: "file:x?mode=memory" would store into nothing. Even a read-only file
    # is opened for writing, or the log that SQLite creates beside it would be left there.
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    try:
        connection = apsw.Connection(str(path), flags=flags, statementcachesize=_STATEMENTS)
        return _set_up(connection, settings), settings.journal
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        if not read_only and not os.access(path.parent, os.W_OK):
            raise StorageReadOnly(f"{path} cannot have a log beside it: {_READ_IT}") from error
        if not (read_only and read_only_media.is_immutable(path)):
            raise
    return _set_up(read_only_media.connect_immutable(path), settings), settings.journal


class _Settings(NamedTuple):
    """How to open a file, as for ``Database``; ``is_exclusive`` locks everyone else out."""

    path: Path
    read_only: bool
    durable: bool
    journal: Journal
    before_writing: Callable[[apsw.Connection], None]
    is_exclusive: bool = False


def _set_up(connection: apsw.Connection, settings: _Settings) -> apsw.Connection:
    """Inspect the opened file and configure the connection; close it again if that fails."""
    journal, path = settings.journal, settings.path
    try:
        wait_for_locks(connection)
        leave_log_on_close(connection, leave=True)
        _refuse_unwritable(connection, settings)
        if settings.is_exclusive:
            journal_mode.lock_exclusively(connection)
        reads_immutable = read_only_media.is_immutable_connection(connection)
        leaves_log = journal.rollback and not (reads_immutable or settings.is_exclusive)
        if leaves_log and journal_mode.uses_log(connection, path):
            _leave_log(connection, path, required=journal.is_required)
        _refuse_foreign_file(connection, path)
        if connection.readonly("main"):  # SQLite has looked into the file only now
            _refuse_unknown_format(connection)
        _configure(connection, settings)
        _mark_copy(connection, settings)
        _refuse_shared_pages(connection)
        leave_log_on_close(connection, leave=False)
    except BaseException as error:  # Ctrl-C too
        note_errno(error, connection)
        connection.close()
        raise
    return connection


def _refuse_unwritable(connection: apsw.Connection, settings: _Settings) -> None:
    """Report at once what SQLite would report at the first write."""
    if not settings.read_only and connection.readonly("main"):
        _refuse_unknown_format(connection)
        raise StorageReadOnly(f"{settings.path} cannot be written: {_READ_IT}")


def _leave_log(connection: apsw.Connection, path: Path, *, required: bool) -> None:
    """Take a file that has a log, as from another drive, out of WAL mode, even if read-only."""
    patience = BUSY_TIMEOUT_SECONDS if required else _PATIENCE_SECONDS
    wait_for_locks(connection, seconds=patience)
    with journal_mode.log_in_use_translated(path):
        journal_mode.lock_exclusively(connection)
        journal_mode.retry_while_busy(
            lambda: _refuse_foreign_file(connection, path), timeout_seconds=patience
        )
        journal_mode.leave_log(connection, path, timeout_seconds=patience)
    wait_for_locks(connection)


def _look_before_opening(path: Path, refuse_version: Callable[[Path, int], None]) -> None:
    """Refuse a newer, damaged or foreign file, leaving no trace of the inspection.

    Opening a file normally creates a log beside it, and may write an old log into it. A file in use
    can look damaged while its log or its changes are being written: that is not judged here. (A
    journal may be gone before it is looked for: then the file is whole again, too.)
    """
    for left in reversed(range(_LOOKS)):
        try:
            _look(path, refuse_version)
        except (apsw.CorruptError, apsw.NotADBError):
            if journal_mode.has_log_or_journal(path):
                return
            if not left:
                raise
            time.sleep(_BETWEEN_LOOKS_SECONDS)
        else:
            return


def _look(path: Path, refuse_version: Callable[[Path, int], None]) -> None:
    had_log = journal_mode.has_log(path)  # a new file gets its log after its first page
    if path.stat().st_size <= 1:  # SQLite treats one byte as empty, too
        if had_log:
            raise StorageCorrupt(
                f"{path} was emptied, and SQLite would delete the log beside it, with what was"
                " stored last: restore a backup, or put the file back"
            )
        return
    with contextlib.closing(read_only_media.connect_immutable(path)) as connection:
        _refuse_foreign_file(connection, path)
        _refuse_wide_texts(connection, path)
        refuse_version(path, _version_of_copy(connection) or int(connection.pragma("user_version")))
        _refuse_unknown_format(connection)


def _refuse_unknown_format(connection: apsw.Connection) -> None:
    if max(connection.read("main", 0, _FORMATS, 2)[1]) > _NEWEST_FORMAT:
        raise apsw.CorruptError("its header names an unknown file format")


def _refuse_foreign_file(connection: apsw.Connection, path: Path) -> None:
    """Refuse another program's database before anything is written to it.

    SQLite opens anything, and looks at it only with the first statement.
    """
    if connection.pragma("application_id") == APPLICATION_ID:
        return
    is_empty = not connection.pragma("schema_version") and not connection.pragma("user_version")
    is_known = is_empty or _version_of_copy(connection) is not None
    # Read last: another process may have marked the empty file in the meantime.
    mark = connection.pragma("application_id")
    if mark != APPLICATION_ID and (mark or not is_known):
        raise NotAMemoryFile(
            f"{path} is a database of another program: it was not touched. Give another path"
        )


def _refuse_wide_texts(connection: apsw.Connection, path: Path) -> None:
    """Refuse a copy in UTF-16: code that reads the bytes of its texts takes each for damaged.

    ``check --repair`` would give every memory another id.
    """
    if (encoding := connection.pragma("encoding")) != "UTF-8":
        raise NotAMemoryFile(
            f"{path} stores its text as {encoding}, which agent-memory does not support: it"
            " was not touched. Copy it into a new file with `sqlite3 OLD.db .dump | sqlite3"
            " NEW.db`"
        )


def _version_of_copy(connection: apsw.Connection) -> int | None:
    """Return the version of a memory file whose header lacks it, else ``None``.

    ``sqlite3 old.db .dump | sqlite3 new.db`` and ``.clone`` copy everything but the header's marks.
    """
    if connection.pragma("application_id") or connection.pragma("user_version"):
        return None
    tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN (?, ?)"
    if next(connection.execute(tables, ("schema_migrations", "memories")))[0] < 2:
        return None
    try:
        record = "SELECT number, name FROM schema_migrations ORDER BY number"
        applied = list(connection.execute(record))
    except apsw.SQLError:  # another program's table of that name
        return None
    if [number for number, _ in applied] != list(range(1, len(applied) + 1)):
        return None
    is_ours = bool(applied) and applied[0][1] == _FIRST_MIGRATION
    return len(applied) if is_ours and not connection.pragma("application_id") else None


def _mark_copy(connection: apsw.Connection, settings: _Settings) -> None:
    """Restore the marks in the header that a copy made through SQL has lost."""
    if _version_of_copy(connection) is None:
        return
    if settings.read_only:
        raise StorageReadOnly(
            f"{settings.path} is a copy without its header, as `.dump` makes them: open it"
            " once for writing, with any command that is not read-only"
        )
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if version := _version_of_copy(connection):  # nobody else was faster
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version)
            _mend_index(connection, settings)
    connection.execute("COMMIT")


def _mend_index(connection: apsw.Connection, settings: _Settings) -> None:
    """Rebuild a keyword index that has other row numbers, as after `.clone`.

    Searches would find other memories than those that contain the words, or none. It is rebuilt
    from a view, so that must be ours.
    """
    with contextlib.suppress(apsw.SQLError):  # a table is missing: opening reports that
        if not next(connection.execute(_HAS_OTHER_ROWS))[0]:
            return
        try:
            settings.before_writing(connection)
            with connection:
                connection.execute(REBUILD_INDEX)
        except (StorageUntrusted, apsw.CorruptError):
            logger().warning(
                "%s is a copy whose keyword index does not match its memories, as `.clone`"
                " makes them: `agent-memory check --repair` rebuilds it",
                settings.path,
            )


def _refuse_shared_pages(connection: apsw.Connection) -> None:
    """Refuse a schema with two tables in one place: each would show the other's rows."""
    select = "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0"
    pages = [1, *(page for (page,) in connection.execute(select))]  # the schema's own is the first
    if len(pages) > len(set(pages)):
        raise apsw.CorruptError("two of its tables begin on the same page")


def _configure(connection: apsw.Connection, settings: _Settings) -> None:
    """Configure a connection. Each setting says why it is needed."""
    _distrust_the_schema(connection)
    connection.create_scalar_function("casefold", _casefold, 1, deterministic=True)
    connection.create_scalar_function("sorted_json", _sorted_json, 1, deterministic=True)
    connection.pragma("foreign_keys", True)
    connection.pragma("cache_size", -32_000)  # KiB: the index of 100,000 memories fits
    connection.pragma("mmap_size", 0)  # an I/O error in a mapped file kills the process
    if not _has_temporary_folder():  # every write would fail, with "disk I/O error"
        connection.pragma("temp_store", "MEMORY")
    if settings.read_only:
        connection.pragma("query_only", True)
    else:
        if not connection.pragma("schema_version"):
            connection.pragma("page_size", PAGE_SIZE)  # vectors of 1,536 bytes fit five to a page
        if not settings.is_exclusive:
            journal_mode.switch_journal(
                connection, settings.journal, timeout_seconds=BUSY_TIMEOUT_SECONDS
            )
        connection.pragma("synchronous", settings.journal.synchronous(durable=settings.durable))
        connection.pragma("journal_size_limit", 64_000_000)  # a long log is truncated again


def _has_temporary_folder() -> bool:
    """Return whether SQLite finds a folder for temporary files: it looks at the same ones."""
    if os.name != "posix":
        return True
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"))
    folders = filter(None, (*named, "/var/tmp", "/usr/tmp", "/tmp"))  # noqa: S108 - none is used
    return any(os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK) for folder in folders)  # noqa: PTH112


def _casefold(*values: "apsw.SQLiteValue") -> "apsw.SQLiteValue":
    """Fold the case of any script; SQLite's own ``lower`` knows only ASCII.

    The text is passed as bytes: one that is not UTF-8 would end the whole query with an error.
    """
    (value,) = values
    return decode_text(value).casefold() if isinstance(value, bytes) else value


def _sorted_json(*values: "apsw.SQLiteValue") -> "apsw.SQLiteValue":
    """Write JSON with sorted keys, so that equal objects are equal texts.

    The value comes as bytes from a row, as text from the query.
    """
    (value,) = values
    text = decode_text(value) if isinstance(value, bytes) else value
    try:
        return json.dumps(json.loads(text), sort_keys=True) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def wait_for_locks(connection: apsw.Connection, *, seconds: float | None = None) -> None:
    """Wait for other processes rather than fail: a write takes well under a second.

    ``seconds`` is the longest wait (by default the busy timeout).

    SQLite's own busy handler checks ever less often, in the end every 100 ms, while others come and
    go: of 8 processes that did nothing but store, one waited for 3.4 s. One that checks every few
    milliseconds, at irregular intervals, gets its turn within 0.6 s. If the machine lets it check
    only rarely (of four writers on a rollback journal beside six busy processes, one failed after 5
    s), it waits until it has checked as often, up to six times as long.
    """
    patience = BUSY_TIMEOUT_SECONDS if seconds is None else seconds
    least_tries = patience / _LONGEST_BEAT_SECONDS
    deadline = 0.0

    def wait(tries: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if tries == 0:
            deadline = now + patience
        has_looked = tries >= least_tries or now >= deadline + 5 * patience
        if now >= deadline and has_looked:
            return False
        time.sleep(_LONGEST_BEAT_SECONDS * (0.2 + 0.8 * os.urandom(1)[0] / 255))
        return True

    connection.set_busy_handler(wait)


def _distrust_the_schema(connection: apsw.Connection) -> None:
    """Keep a crafted file from running functions, and any statement from damaging the index."""
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.pragma("cell_size_check", True)


def leave_log_on_close(connection: apsw.Connection, *, leave: bool) -> None:
    """Choose whether closing checkpoints the log into the file and deletes it."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(leave))

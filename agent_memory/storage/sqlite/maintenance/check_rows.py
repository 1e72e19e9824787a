"""Finds memories and changes that no import would accept, and repairs them.

Other programs write whatever the schema allows: a line break as content, 21 tags, an infinite
number. What passes here can be exported and imported: all use the same types, those of
``models/portable``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import ConfigurationError, ValidationError, without_secrets
from agent_memory.models.agent import Problem
from agent_memory.models.enums import HistoryEvent, MemoryCategory
from agent_memory.models.fields import to_json
from agent_memory.models.memory_fields import MEMORY_FIELDS, TaskMetadata
from agent_memory.models.portable import (
    WHOLE_MEMORY,
    PortableChange,
    PortableMemory,
    PortableValues,
)
from agent_memory.models.row_repair import (
    mended_column,
    mended_row,
    mended_text,
    mended_time,
)
from agent_memory.models.times import format_time, now_utc
from agent_memory.storage.change_records import Change
from agent_memory.storage.memory_values import fields_of, is_as_it_was_added
from agent_memory.storage.records import RowValues
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.sqlite.tables.history import HistoryTable
from agent_memory.storage.sqlite.tables.memory_rows import MemoryRowTable

_TIMES: Final = tuple(n for n, field in MEMORY_FIELDS.items() if field.column.kind == "time")
_IS_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_EVENTS: Final = frozenset(event.value for event in HistoryEvent)
_REPLACE: Final = """
UPDATE history SET event = ?, changed_at = ?, session_id = ?, old_values = ?, new_values = ?
WHERE change_id = ?"""
_SELECT_NO_JSON: Final = """
SELECT change_id FROM history WHERE NOT coalesce(json_valid(old_values), 1)
OR NOT coalesce(json_valid(new_values), 1)"""
_ADVICE: Final = "no import would accept it as it is: `check --repair` repairs it"
_LONGEST: Final = 400
_PAGE: Final = 1_000


class WrongRow(NamedTuple):
    """A row that no import would accept: which columns are wrong, and why."""

    row: RowValues
    columns: set[str]
    reason: str


class WrongChange(NamedTuple):
    """A change in the history that no import would accept, and why."""

    change: Change
    reason: str


def find_problems(database: Database) -> Iterator[Problem]:
    """Yield the wrong memories and changes. Must run inside a transaction."""
    for row, _, reason in _wrong_rows(database):
        yield _problem(f"memory {row['id']}", reason)
    for change, reason in _wrong_changes(database):
        yield _problem(f"change {change.change_id} of memory {change.memory_id}", reason)


def repair(database: Database) -> None:
    """Repair memories, as changes of them, and the values in the history.

    What a memory held stays in its metadata. Must run inside ``write()``, with the triggers.
    """
    now = format_time(now_utc())
    table = MemoryRowTable(database)
    for row, columns, _ in list(_wrong_rows(database)):
        moment = mended_time(row["updated_at"]) or mended_time(row["timestamp"]) or now
        table.set_values(row["id"], mended_row(row, columns, moment=moment))
    for change, _ in list(_wrong_changes(database)):
        mended = _mended_change(change, now=now)
        old, new = (to_json(values) if values else None for values in (mended.old, mended.new))
        values = (mended.event, mended.changed_at, mended.session_id, old, new)
        database.run(_REPLACE, (*values, change.change_id))


def repair_versions(database: Database) -> None:
    """Restart versions that no trigger could increment. No trigger may run meanwhile."""
    database.run(f"UPDATE memories SET version = 1 WHERE version NOT BETWEEN 1 AND {2**53 - 2}")


def _problem(name: str, reason: str) -> Problem:
    message = without_secrets(reason)
    shown = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"
    return Problem(kind="wrong_row", detail=f"{name}: {shown}; {_ADVICE}")


# Memories -----------------------------------------------------------------------------------------


def _wrong_rows(database: Database) -> Iterator[WrongRow]:
    categories = _categories(database)
    for row in MemoryRowTable(database).iterate():
        loose = _loose_columns(row, categories)
        try:
            PortableMemory.model_validate(fields_of(row))
        except PydanticValidationError as error:
            wrong = {str(fault["loc"][0]) for fault in error.errors()} & row.keys()
            yield WrongRow(row, wrong | loose, str(ValidationError.from_pydantic(error)))
        else:
            if loose:
                yield WrongRow(row, loose, _reason_of_loose(row, loose))


def _reason_of_loose(row: RowValues, columns: Collection[str]) -> str:
    reason = f"{', '.join(sorted(columns))}: not in the form that is stored"
    if "category" in columns:
        reason += f" ({row['category']!r:.60} is no category: `configure categories` adds one)"
    return reason


def _categories(database: Database) -> Collection[str] | None:
    """Return the categories that an import accepts as they are; ``None`` if no setting tells."""
    try:
        own = AgentTable(database).config().categories
    except ConfigurationError:
        return None
    return {*MemoryCategory.all_values(), *own}


def _loose_columns(row: RowValues, categories: Collection[str] | None) -> set[str]:
    """Return the columns that an import would accept, but store differently."""
    columns = {
        name for name in _TIMES if row[name] is not None and not _IS_TIME.fullmatch(row[name])
    }
    if row["task_metadata"] is not None:
        task = fields_of(row)["task_metadata"]
        if isinstance(task, dict) and task.keys() - TaskMetadata.model_fields.keys():
            columns.add("task_metadata")
    if row["archived"] not in (0, 1):
        columns.add("archived")
    if categories is not None and row["category"] not in categories:
        columns.add("category")
    return columns


# Changes ------------------------------------------------------------------------------------------


def _wrong_changes(database: Database) -> Iterator[WrongChange]:
    no_json = {change_id for (change_id,) in database.rows(_SELECT_NO_JSON)}
    page: list[Change] = []
    for change in HistoryTable(database).iterate():
        if change.change_id in no_json:
            yield WrongChange(change, "its values are not JSON")
            continue
        page.append(change)
        if len(page) == _PAGE:
            yield from _wrong_of_page(database, page)
            page = []
    yield from _wrong_of_page(database, page)


def _wrong_of_page(database: Database, page: Sequence[Change]) -> Iterator[WrongChange]:
    added = [change.memory_id for change in page if change.event == "ADD"]
    rows = MemoryRowTable(database).get_many(added)
    for change in page:
        as_added = is_as_it_was_added(change, rows.get(change.memory_id))
        if as_added and _IS_TIME.fullmatch(change.changed_at) and _is_plain(change.session_id):
            continue  # nearly all: exports write only the row
        reason = _reason(change, as_added=as_added)
        if reason is not None:
            yield WrongChange(change, reason)


def _is_plain(text: str | None) -> bool:
    return text is None or (text.isascii() and "\x00" not in text)


def _reason(change: Change, *, as_added: bool = False) -> str | None:
    """Return why no import would accept a change; ``None`` if one would."""
    if not _IS_TIME.fullmatch(change.changed_at):
        return "changed_at is not a valid time"
    fields = {
        "id": change.memory_id,
        "event": change.event,
        "at": change.changed_at,
        "session": change.session_id,
        "old": change.old or None,
        "new": None if as_added else change.new or None,
    }
    try:
        PortableChange.model_validate(fields)
    except PydanticValidationError as error:
        return str(ValidationError.from_pydantic(error))
    loose = sorted({*_loose_times(change.old or {}), *_loose_times(change.new or {})})
    return f"{', '.join(loose)}: not in the form that is stored" if loose and not as_added else None


def _loose_times(values: Mapping[str, Any]) -> list[str]:
    """Return the times that an import would accept, but write differently: "2026-01-30"."""
    times = ((name, values.get(name)) for name in _TIMES)
    return [name for name, time in times if time is not None and not _IS_TIME.fullmatch(str(time))]


def _mended_change(change: Change, *, now: str) -> Change:
    moment = mended_time(change.changed_at) or now
    event = change.event
    if event not in _EVENTS:
        event = "ADD" if not change.old else "UPDATE" if change.new else "DELETE"
    return Change(
        change_id=change.change_id,
        memory_id=change.memory_id,
        event=event,
        changed_at=moment,
        session_id=mended_text(change.session_id),
        old=_mended_values(change.old, is_whole=event == "DELETE", moment=moment),
        new=_mended_values(change.new, is_whole=event == "ADD" and bool(change.new), moment=moment),
    )


def _mended_values(values: Mapping[str, Any], *, is_whole: bool, moment: str) -> dict[str, Any]:
    """Return the columns of a change in valid form, including those that it must have."""
    mended = dict(values)
    try:
        PortableValues.model_validate(mended)
    except PydanticValidationError as error:
        for name in {str(fault["loc"][0]) for fault in error.errors()}:
            mended[name] = mended_column(name, mended[name], moment=moment)
    for name in _loose_times(mended):
        mended[name] = mended_column(name, mended[name], moment=moment)
    for name in WHOLE_MEMORY - mended.keys() if is_whole else ():
        mended[name] = mended_column(name, None, moment=moment)
    return {name: value for name, value in mended.items() if value is not None}

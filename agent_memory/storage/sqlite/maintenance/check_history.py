"""Compares memories with their history: a change that bypassed every trigger is damage.

SQLite notices a page that is out of order, but not a changed letter in a text. The history has each
value a second time, elsewhere in the file: its latest value must be what the row holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agent_memory.models.agent import Problem
from agent_memory.models.columns import HISTORIC
from agent_memory.models.fields import to_json
from agent_memory.models.portable import WHOLE_MEMORY
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.history import HistoryTable, added_values
from agent_memory.storage.sqlite.tables.memory_rows import MemoryRowTable

_BLOBS: Final = ", ".join(
    f"m.{name}" if name == "archived" else f"CAST(m.{name} AS BLOB)" for name in HISTORIC
)
_ADDED: Final = added_values()
_BEFORE: Final = """
(SELECT b.new_values FROM history AS b WHERE b.memory_id = m.id AND b.event = 'ADD'
  AND b.change_id = (SELECT max(l.change_id) FROM history AS l
    WHERE l.memory_id = m.id AND l.change_id < h.change_id))"""
# Memories that are neither as they were added nor as they were changed once: only for these few is
# the whole history read.
_SELECT_OTHERS: Final = f"""
SELECT m.seq, m.id, {_BLOBS} FROM memories AS m
JOIN history AS h ON h.change_id =
  (SELECT max(l.change_id) FROM history AS l WHERE l.memory_id = m.id)
WHERE m.seq > ? AND CASE h.event
  WHEN 'ADD' THEN h.new_values IS NOT {_ADDED}
  WHEN 'UPDATE' THEN NOT CASE WHEN json_valid(h.old_values) AND json_valid(h.new_values)
    THEN coalesce(json_patch({_ADDED}, h.new_values) = {_ADDED}
      AND json_patch({_ADDED}, h.old_values) = {_BEFORE}, 0) ELSE 0 END
  ELSE 0 END
ORDER BY m.seq LIMIT ?"""
_SELECT_CHANGES: Final = """
SELECT change_id, memory_id, event, CAST(old_values AS BLOB), CAST(new_values AS BLOB)
FROM history WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY memory_id, change_id"""
_SELECT_IMPORTS: Final = """
SELECT first_change, last_change FROM operations
WHERE verb = 'import' AND last_change >= first_change"""
_INSERT: Final = """
INSERT INTO history (memory_id, event, changed_at, old_values, new_values)
VALUES (?, 'UPDATE', strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'), ?, ?)"""
_SELECT_BEGUN_LATE: Final = """
SELECT m.id FROM memories AS m WHERE (SELECT h.event FROM history AS h WHERE h.memory_id = m.id
  ORDER BY h.change_id LIMIT 1) IS NOT 'ADD' ORDER BY m.seq"""
# Numbered before everything else: what follows in a memory's history came later.
_INSERT_BEGINNING: Final = """
INSERT INTO history (change_id, memory_id, event, changed_at, session_id, new_values)
SELECT min(coalesce(min(change_id), 1), 1) - 1, ?, 'ADD', ?, ?, ? FROM history"""
# If SQLite still knows the last number, it continues from there by itself.
_NUMBER_ON: Final = """
INSERT INTO sqlite_sequence (name, seq)
SELECT 'history', max(number) FROM (
  SELECT max(last_change) AS number FROM operations
  UNION ALL SELECT max(change_id) FROM entity_sources
  UNION ALL SELECT max(change_id) FROM relationship_sources
  UNION ALL SELECT max(closing_change_id) FROM relationship_sources
  UNION ALL SELECT max(closing_change_id) FROM relationships)
WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'history') HAVING max(number) > 0"""
_PAGE: Final = 1_000


class Difference(NamedTuple):
    """The latest values in a memory's history, and what the memory holds instead, by column."""

    memory_id: str
    recorded: dict[str, Any]
    held: dict[str, Any]


def find_problems(database: Database) -> Iterator[Problem]:
    """Yield the memories that differ from their history. Must run inside a transaction."""
    for memory_id in _begun_late(database):
        detail = (
            f"the history of memory {memory_id!r} does not begin with its addition: another"
            " program removed that"
        )
        yield Problem(kind="history_without_beginning", detail=detail)
    for difference in _differences(database):
        detail = (
            f"{', '.join(difference.recorded)} of memory {difference.memory_id!r} does not"
            " match its history: one of the two is damaged"
        )
        yield Problem(kind="differs_from_history", detail=detail)


def number_on(database: Database) -> None:
    """Make a re-created history continue after the last change that other tables refer to.

    When numbers were reused, ``undo`` of an older operation also undid what came after it.
    """
    database.run(_NUMBER_ON)


def repair(database: Database) -> None:
    """Record each difference as a change, keeping both values. Must run inside ``write()``.

    Which of the two is right is unknown; ``undo`` of that change restores the other. A history
    without a beginning is given one, derived from the changes that followed.
    """
    for memory_id in _begun_late(database):
        _insert_beginning(database, memory_id)
    for difference in list(_differences(database)):
        if any(_sound(value) != value for value in difference.held.values()):
            continue  # JSON cannot represent it: it is reported as long as it exists
        old, new = (
            to_json({name: _sound(value) for name, value in values.items() if value is not None})
            for values in (difference.recorded, difference.held)
        )
        database.run(_INSERT, (difference.memory_id, old, new))


def _begun_late(database: Database) -> list[str]:
    return [memory_id for (memory_id,) in database.rows(_SELECT_BEGUN_LATE)]


def _insert_beginning(database: Database, memory_id: str) -> None:
    """Add what a memory was at first: its present state, with each later change reverted."""
    row = MemoryRowTable(database).get_many([memory_id])[memory_id]
    changes = HistoryTable(database).of_memory(memory_id)
    values = {name: row[name] for name in HISTORIC}
    for change in reversed(changes):
        if change.event == "UPDATE":
            values.update({name: change.old.get(name) for name in change.columns})
        else:
            values = {name: (change.old or change.new).get(name) for name in HISTORIC}
    moment = min([row["timestamp"], *(change.changed_at for change in changes[:1])])
    for name in WHOLE_MEMORY:
        if values[name] is None:  # the later changes say too little
            values[name] = row[name]
    added = to_json({name: value for name, value in values.items() if value is not None})
    database.run(_INSERT_BEGINNING, (memory_id, moment, row["created_by_session"], added))


def _differences(database: Database) -> Iterator[Difference]:
    imports = [range(first, last + 1) for first, last in database.rows(_SELECT_IMPORTS)]
    after = BEFORE_ALL
    while rows := database.rows(_SELECT_OTHERS, (after, _PAGE)):
        histories = _recorded_values(database, [row[1] for row in rows], imports)
        for _, memory_id, *values in rows:
            recorded = histories.get(memory_id, {})
            held = dict(zip(HISTORIC, map(_text, values), strict=True))
            wrong = [
                column
                for column in HISTORIC
                if column in recorded and recorded[column] != held[column]
            ]
            if wrong:
                yield Difference(
                    memory_id,
                    {column: recorded[column] for column in wrong},
                    {column: held[column] for column in wrong},
                )
        after = page_end(rows[-1][0], after=after)


def _recorded_values(
    database: Database, memory_ids: Sequence[str], imports: Sequence[range]
) -> dict[str, dict[str, Any]]:
    """Return the latest values in the history of memories, by id and column, as far as it has any.

    A past that came with an import happened elsewhere, by other rules.
    """
    recorded: dict[str, dict[str, Any]] = {}
    for row in database.rows(_SELECT_CHANGES, (to_json(list(memory_ids)),)):
        number, memory_id, event, old, new = row
        of_memory = recorded.setdefault(memory_id, {})
        values = _values(new)
        if event == "DELETE" or any(number in imported for imported in imports):
            of_memory.clear()
        elif event == "ADD":
            recorded[memory_id] = {name: values.get(name) for name in HISTORIC} if values else {}
        else:
            of_memory.update({name: values.get(name) for name in {*_values(old), *values}})
    return recorded


def _values(data: bytes | None) -> Mapping[str, Any]:
    """Parse the values of a change. Another program's may have nothing to compare."""
    try:
        values = json.loads(data.decode(errors="surrogateescape")) if data else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _text(value: bytes | int | None) -> str | int | None:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def _sound(value: object) -> object:
    """Return a value that can be written: bytes of a text that are not UTF-8 become U+FFFD."""
    if not isinstance(value, str):
        return value
    return value.encode(errors="surrogateescape").decode(errors="replace")

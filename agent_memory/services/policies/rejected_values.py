"""Keeping rejected values out of the memories, and finding the memories that hold one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

from agent_memory.errors import RejectedContent
from agent_memory.models.memory import Memory
from agent_memory.models.safety import Rejection
from agent_memory.services.policies.rejection_match import (
    TEXT_FIELDS,
    Known,
    Rejected,
    checked_reason,
    form_of,
    hash_of,
    is_rejected,
    texts_in,
    texts_of,
    words_to_reject,
)
from agent_memory.storage.sqlite.connection import Database, further
from agent_memory.storage.sqlite.tables import rejections

_PAGE: Final = 1_000
_LONGEST_PLACE: Final = 80
# The rows that may hold a word: in one of ASCII alone it stands as it is, but for case, unless it
# was escaped in JSON. The keyword index would find no more: it has no metadata, its words are other
# words ("straße" is not "strasse" there), and it may be damaged. Texts are read as bytes, since
# another program can store one that is not UTF-8.
_SELECT_CANDIDATES: Final = r"""
SELECT m.seq, CAST(m.id AS BLOB), CAST(m.content AS BLOB), CAST(m.tags AS BLOB),
  CAST(m.metadata AS BLOB), CAST(coalesce(m.task_metadata, '{}') AS BLOB)
FROM memories AS m
WHERE m.seq > ?1 AND (
  instr(lower(m.content), ?2)
  OR octet_length(m.content) <> length(m.content)
  OR EXISTS (
    SELECT 1 FROM (SELECT m.tags || m.metadata || coalesce(m.task_metadata, '') AS json)
    WHERE instr(lower(json), ?2) OR instr(json, '\') OR octet_length(json) <> length(json)))
ORDER BY m.seq LIMIT ?3"""

_SELECT_CHANGES: Final = """
SELECT change_id, CAST(memory_id AS BLOB), CAST(coalesce(old_values, '{}') AS BLOB),
  CAST(coalesce(new_values, '{}') AS BLOB)
FROM history WHERE change_id > ? ORDER BY change_id LIMIT ?"""


def reject(database: Database, text: str, reason: str | None = None, *, now: datetime) -> Rejection:
    """Reject a value and return its rejection: that which is there, if it was rejected before.

    Raises ``ValidationError`` for a value without words or of over 1,000, and for a reason that
    holds a rejected value.
    """
    words = words_to_reject(text)
    words_hash = hash_of(words)
    held = dict(rejections.known(database))
    held[len(words)] = held.get(len(words), frozenset()) | {words_hash}
    reason = checked_reason(reason, held)
    rejections.add(database, words_hash, len(words), reason, now)
    rejection = rejections.find(database, words_hash)
    assert rejection is not None  # noqa: S101 - it was added in this transaction
    return rejection


def lift(database: Database, text_or_id: str | int) -> bool:
    """Allow a value again, by its text or the rejection's id; return whether it was rejected.

    A text is a value, whatever it is: ``"7"`` is the word 7, ``7`` the seventh rejection.
    """
    if isinstance(text_or_id, int):
        return rejections.remove_by_id(database, text_or_id)
    return rejections.remove(database, hash_of(words_to_reject(text_or_id)))


def refuse_rejected(
    database: Database,
    memory: Memory,
    known: Known | None = None,
    *,
    at: tuple[str | int, ...] = (),
    fields: AbstractSet[str] = TEXT_FIELDS,
) -> None:
    """Raise ``RejectedContent`` when a memory holds a rejected value.

    ``known`` are the rejections, read before for a list of memories; without it they are read.
    ``at`` is the memory's place in a list and ``fields`` what is looked at: of an update, what
    changes.
    """
    if known is None:
        known = rejections.known(database)
    if not known:
        return
    found = is_rejected(texts_of(memory, fields), known)
    if found is not None:
        raise _refusal(database, found, known, at)


def refuse_rejected_row(
    database: Database, row: Mapping[str, Any], known: Known | None = None
) -> None:
    """Do the same for a memory that is given by column, JSON columns as their text."""
    if known is None:
        known = rejections.known(database)
    columns = (row["content"], row.get("tags"), row.get("metadata"), row.get("task_metadata"))
    found = is_rejected(_texts_of_row(*(str(it or "{}") for it in columns)), known)
    if found is not None:
        raise _refusal(database, found, known, ())


def _refusal(
    database: Database, found: Rejected, known: Known, at: tuple[str | int, ...]
) -> RejectedContent:
    """Make the error, of which no word comes from the value."""
    place = found.field
    if len(place) > _LONGEST_PLACE or is_rejected([("", place)], known) is not None:
        place = place.partition(".")[0].partition("[")[0]  # keys of metadata may be the value
    rejection = rejections.find(database, found.words_hash)
    number = 0 if rejection is None else rejection.rejection_id
    reason = "" if rejection is None else rejection.reason or ""
    if reason and is_rejected([("", reason)], known) is not None:
        reason = ""
    message = (
        f"holds a value that must not come back (rejection {number}{reason and f': {reason}'}):"
        f" leave it out, or lift the rejection: `agent-memory reject --lift {number}`"
    )
    loc = (*at, place)
    fault = {
        "loc": loc,
        "msg": message,
        "type": "rejected",
        "input": place,
        "ctx": {"rejection_id": number},
    }
    return RejectedContent(f"{'.'.join(map(str, loc))}: {message}", [fault])


# Which memories hold a value ----------------------------------------------------------------


def holders(database: Database, words: Sequence[str]) -> list[str]:
    """Return the ids of the memories that hold a value now, archived ones too, oldest first.

    ``words`` are those of the value, as ``words_of`` returns them; none are in no memory.
    """
    if not words:
        return []
    known = {len(words): frozenset({hash_of(words)})}
    longest = max(words, key=len)
    return [
        memory_id
        for memory_id, *texts in _candidates(database, longest)
        if _may_hold(texts, longest) and is_rejected(_texts_of_row(*texts), known) is not None
    ]


def _candidates(database: Database, word: str) -> Iterator[list[str]]:
    """Yield the rows that may hold a word: id, content, tags, metadata, task metadata."""
    last = 0
    while True:
        rows = database.rows(_SELECT_CANDIDATES, (last, word, _PAGE))
        for _, *columns in rows:
            yield [column.decode(errors="replace") for column in columns]
        if len(rows) < _PAGE:
            return
        last = further(rows[-1][0], than=last)


def count_holders(database: Database) -> int:
    """Count the memories that hold any rejected value now, archived ones too."""
    known = rejections.known(database)
    count = last = 0
    while known and (rows := database.rows(_SELECT_CANDIDATES, (last, "", _PAGE))):
        for _, _, *columns in rows:
            texts = [column.decode(errors="replace") for column in columns]
            count += is_rejected(_texts_of_row(*texts), known) is not None
        last = further(rows[-1][0], than=last)
    return count


def every_text(database: Database) -> Iterator[dict[str, str]]:
    """Yield the id and texts of every memory, archived ones too; JSON columns are their text."""
    for row in _candidates(database, ""):
        yield dict(zip(("id", "content", "tags", "metadata", "task_metadata"), row, strict=True))


def every_old_text(database: Database) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the id and the texts of every change of a memory, as the history has them."""
    last = 0
    while rows := database.rows(_SELECT_CHANGES, (last, _PAGE)):
        for _, *columns in rows:
            memory_id, *texts = (column.decode(errors="replace") for column in columns)
            for text in texts:
                values = _read(text)
                yield memory_id, values if isinstance(values, dict) else {"content": text}
        last = further(rows[-1][0], than=last)


def _may_hold(texts: Sequence[str], word: str) -> bool:
    """Return whether a row may hold a word: in a tenth of the time that it takes to be sure."""
    content, *rest = texts
    return word in form_of(content) or any("\\" in it or word in form_of(it) for it in rest)


def _texts_of_row(content: str, tags: str, metadata: str, task: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a row as ``texts_of`` yields those of a memory."""
    yield "content", content
    yield from texts_in("tags", _read(tags))
    yield from texts_in("metadata", _read(metadata))
    details = _read(task)
    if isinstance(details, dict):
        yield from texts_in("task_metadata.outcome", details.get("outcome"))
        yield from texts_in("task_metadata.blockers", details.get("blockers"))
    else:
        yield from texts_in("task_metadata", details)


def _read(text: str) -> object:
    """Read JSON; what another program has broken is a text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

"""Reads rows of the table ``history``, as any program may have written them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.columns import JSON_COLUMNS
from agent_memory.models.enums import HistoryEvent
from agent_memory.models.fields import to_json
from agent_memory.models.times import read_stored_time
from agent_memory.storage.change_records import Change
from agent_memory.storage.records import read_json

if TYPE_CHECKING:
    from agent_memory.models.memory import HistoryEntry


_KEPT_OF_REVIEW: Final = (
    "id", "replaced_by", "confidence", "reasoning", "proposed_at", "session_id"
)  # fmt: skip
"""What the history keeps of a review, in the form of an export."""


def change_of_row(row: Sequence[Any]) -> Change:
    """Build a change from a row: change id, memory id, event, time, session, old and new values."""
    number, memory_id, event, changed_at, session_id, old, new = row
    return Change(number, memory_id, event, changed_at, session_id, _values(old), _values(new))


def row_of_change(change: Change) -> tuple[str | None, ...]:
    """Build the row of a change: memory id, event, time, session, old and new values."""
    old, new = (to_json(values) if values else None for values in (change.old, change.new))
    return change.memory_id, change.event, change.changed_at, change.session_id, old, new


def kept_reviews(rows: Iterable[Sequence[Any]], deleted: AbstractSet[str]) -> list[tuple[str, str]]:
    """Return the reviews of deleted memories as ``keep_reviews`` takes them, given their values.

    The review of a memory that stays is kept with the deleted memory that was to replace it.
    """
    by_memory: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        review = dict(zip(_KEPT_OF_REVIEW, row, strict=True))
        keeper = review["id"] if review["id"] in deleted else review["replaced_by"]
        by_memory.setdefault(keeper, []).append(review)
    return [(to_json(reviews), memory_id) for memory_id, reviews in by_memory.items()]


def _values(text: str | None) -> dict[str, Any]:
    """Parse the values of a change; another program may have written anything there."""
    try:
        values = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str | int | None)}


def entry_of_row(row: Sequence[Any]) -> HistoryEntry:
    """Build the history entry of such a row, as shown to users."""
    from agent_memory.models.memory import HistoryEntry  # noqa: PLC0415 - made for users alone

    change_id, of, word, changed_at, session_id, old, new = row
    event = _event(word, old, new)
    if event is HistoryEvent.UPDATE:  # in an imported change, an empty side is NULL
        old, new = ("{}" if text is None else text for text in (old, new))
    return HistoryEntry(
        change_id=change_id,
        memory_id=of,
        event=event,
        changed_at=read_stored_time(changed_at),
        session_id=session_id,
        old_values=_read(old),
        new_values=_read(new),
    )


def _event(word: str, old: str | None, new: str | None) -> HistoryEvent:
    """Read the kind of change; if another program wrote another word, the values decide."""
    try:
        return HistoryEvent(word)
    except ValueError:
        if old is None:
            return HistoryEvent.ADD
        return HistoryEvent.DELETE if new is None else HistoryEvent.UPDATE


def _read(text: str | None) -> dict[str, Any] | None:
    """Parse the values of a change; JSON columns are texts inside, as the table has them."""
    if text is None:
        return None
    values = read_json(text)
    if not isinstance(values, dict):
        return None
    for field in JSON_COLUMNS:
        if isinstance(values.get(field), str):
            value = read_json(values[field])
            values[field] = values[field] if value is None else value  # invalid JSON stays text
    if "archived" in values:
        values["archived"] = bool(values["archived"])
    return values

"""Tombstones: erased memories are known by keyed hashes, so that they cannot come back.

An id is a memory's name, and a content what somebody said. A file, a backup or another store that
brings either back is history, and is left out. What is said again is new: it is stored, and its
content has no tombstone any more.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.models.columns import HISTORIC
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import (
    Change,
    Purged,
    RemovedRows,
    Statement,
    Tombstone,
    contradictions,
    hash_of_content,
    hash_of_id,
    reverted,
)
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import RowValues

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory

_KEY_LENGTH: Final = 16


class Tombstones:
    """Looks up what was erased, and lifts tombstones, inside one transaction.

    ``ignored`` is for callers that want erased memories: then nothing counts as erased.
    """

    def __init__(self, engine: Engine, *, ignored: bool = False) -> None:
        self._table = engine.tombstones
        self._keys = [] if ignored else self._table.keys()

    def __bool__(self) -> bool:
        """Return whether anything was erased."""
        return bool(self._keys)

    def has_id(self, memory_id: str) -> bool:
        """Return whether a memory with this id was erased."""
        return self._erased_at(memory_id) is not None

    def has_content(self, content: str, user_id: str | None) -> bool:
        """Return whether this content about this user was erased, and was not said again since."""
        digests = ((key, hash_of_content(key, content, user_id)) for key in self._keys)
        return any(self._table.erased_at(key, digest) is not None for key, digest in digests)

    def lift(self, memory_id: str, content: str, user_id: str | None) -> None:
        """Remove the tombstones of a memory that is stored: it exists, so it is not erased."""
        for key in self._keys:
            self._table.remove(key, hash_of_id(key, memory_id))
            self._table.remove(key, hash_of_content(key, content, user_id))

    def refuse(self, memory: Memory, *, said_at: datetime | None, at: tuple[int, ...] = ()) -> None:
        """Raise ``ValidationError`` for a memory with an erased id that repeats erased content.

        Other content is a new memory, and so is one whose ``said_at``, if set, is after the
        erasure. ``at`` is its position in a list.
        """
        erased_at = self._erased_at(memory.id)
        if erased_at is None or (said_at is not None and format_time(said_at) >= erased_at):
            return
        if self.has_content(memory.content, memory.user_id):
            message = (
                "was erased, with this same content. If the fact was stated again, store it"
                " without the id, or with the time of the new statement"
            )
            raise ValidationError.of("id", message, memory.id, at=at, kind="erased")

    def _erased_at(self, memory_id: str) -> str | None:
        times = (self._table.erased_at(key, hash_of_id(key, memory_id)) for key in self._keys)
        return max((moment for moment in times if moment is not None), default=None)


def new_key(engine: Engine) -> bytes:
    """Return the key for a store's next tombstones: its own, or a random one."""
    keys = engine.tombstones.keys()
    return keys[0] if keys else os.urandom(_KEY_LENGTH)


def mark_erased(
    engine: Engine,
    ids: Sequence[str],
    statements: Sequence[Statement],
    *,
    key: bytes,
    now: datetime,
) -> None:
    """Leave tombstones for erased memories: their ids, and the content that no other memory has.

    Must run inside ``write()``, after the rows are removed.
    """
    moment = format_time(now)
    contents = {digest for statement in statements for digest in statement.content_hashes(key)}
    new = {
        *(Tombstone(key, hash_of_id(key, memory_id), "id", moment) for memory_id in ids),
        *(Tombstone(key, digest, "content", moment) for digest in contents),
    }
    put_in_force(engine, new)


def put_in_force(engine: Engine, tombstones: Collection[Tombstone]) -> int:
    """Insert the tombstones that do not match existing memories; return how many are new.

    Must run inside ``write()``. What exists here was not erased here, whatever was elsewhere.
    """
    new = {tombstone for tombstone in tombstones if engine.tombstones.put(tombstone)}
    if not new:
        return 0
    contradicted = contradicted_tombstones(engine) & new
    for tombstone in contradicted:
        engine.tombstones.remove(tombstone.key, tombstone.hash)
    return len(new) - len(contradicted)


def contradicted_tombstones(engine: Engine) -> set[Tombstone]:
    """Return the tombstones of things that exist all the same."""
    statements = engine.erasure.statements()
    return {tombstone for _, tombstone in contradictions(engine.tombstones.all(), statements)}


def tombstones_in_force(engine: Engine) -> Iterator[Tombstone]:
    """Yield the tombstones, oldest first, except for those of memories that exist all the same."""
    contradicted = contradicted_tombstones(engine)
    for tombstone in engine.tombstones.all():
        if tombstone not in contradicted:
            yield tombstone


# Taking out ---------------------------------------------------------------------------------


def remove_rows(engine: Engine, ids: Sequence[str]) -> RemovedRows:
    """Remove all rows of some memories from all tables, and what only they say in the graph.

    Must run inside ``write()``.
    """
    removed = engine.erasure.remove(ids)
    engine.graph_maintenance.erase(ids)
    engine.reviews.forget_reasoning()  # of other memories: it may quote what is erased
    engine.history.forget_reviews()
    engine.vectors.forget_deleted()
    return removed


def purge(engine: Engine, *, session_id: str, now: datetime) -> Purged:
    """Remove from a store what its tombstones say was erased.

    A memory that once contained it, but no longer does, stays as it is, and its history starts
    over. If anything was removed, the file is rewritten.
    """
    with engine.write():
        erased, changed = _erased_in(engine, Tombstones(engine))
        if not erased and not changed:
            return Purged(0, 0)
        removed = remove_rows(engine, sorted(erased))
        start_over(engine, dict.fromkeys(sorted(changed), engine.operations.last_number()))
        engine.operations.record_irreversible("erase", session_id=session_id, now=now)
    engine.files.compact()
    return Purged(len(erased) + len(changed), removed.memories)


def _erased_in(engine: Engine, tombstones: Tombstones) -> tuple[set[str], dict[str, RowValues]]:
    """Return the erased ids, and the rows of memories with erased content only in their history."""
    erased: set[str] = set()
    changed: dict[str, RowValues] = {}
    for statement in engine.erasure.statements() if tombstones else ():
        memory_id = statement.memory_id
        if tombstones.has_id(memory_id):
            erased.add(memory_id)
        elif any(
            tombstones.has_content(content, user_id)
            for content in statement.contents
            for user_id in statement.user_ids
        ):
            row = engine.memory_rows.get(memory_id)
            if row is None or tombstones.has_content(row["content"], row["user_id"]):
                erased.add(memory_id)
            else:
                changed[memory_id] = row
    return erased, changed


def start_over(engine: Engine, last_changes: Mapping[str, int]) -> list[Change]:
    """Remove the changes of memories up to a change of each, and return them.

    The history of a memory that was there then begins with its addition as it was left by that,
    under the number of that change. Later changes stay as they are: the graph and whoever noted
    their numbers know them by these.
    """
    removed: list[Change] = []
    for memory_id, last in last_changes.items():
        changes = engine.history.of_memory(memory_id)
        past = [change for change in changes if change.change_id <= last]
        row = reverted(engine.memory_rows.get(memory_id), changes[len(past) :])
        if row is not None:
            engine.history.replace(_as_added(past[-1], row))
        until = last if row is None else past[-1].change_id - 1
        engine.history.forget([memory_id], after=0, until=until)
        removed += past
    return removed


def _as_added(change: Change, row: RowValues) -> Change:
    values = {name: row[name] for name in HISTORIC if row[name] is not None}
    return change._replace(event="ADD", session_id=row["created_by_session"], old={}, new=values)

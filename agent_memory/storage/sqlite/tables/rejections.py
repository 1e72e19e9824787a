"""The table of rejections: the hashes of the values that must not come back."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

from agent_memory.models.safety import Rejection
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.storage.sqlite.connection import Database, Row

_COLUMNS: Final = "rejection_id, words_hash, word_count, reason, rejected_at"
_INSERT: Final = """
INSERT INTO rejections (words_hash, word_count, reason, rejected_at) VALUES (?, ?, ?, ?)
ON CONFLICT (words_hash) DO NOTHING"""
_ADD_REASON: Final = """
UPDATE rejections SET reason = ? WHERE words_hash = ? AND reason IS NULL"""


def add(
    database: Database, words_hash: bytes, word_count: int, reason: str | None, now: datetime
) -> bool:
    """Reject a value, and return whether it was not rejected yet.

    One that was keeps its time, and its reason, if it has one.
    """
    values = (words_hash, word_count, reason, format_time(now))
    if database.run(_INSERT, values):
        return True
    if reason is not None:
        database.run(_ADD_REASON, (reason, words_hash))
    return False


def put(database: Database, values: Mapping[str, Any]) -> None:
    """Take over a rejection that a file tells of; one of the same value stays as it is."""
    database.run(
        _INSERT,
        (
            bytes.fromhex(values["words_hash"]),
            values["word_count"],
            values.get("reason"),
            values["rejected_at"],
        ),
    )


def fields_of(rejection: Rejection) -> dict[str, Any]:
    """Return what is told of a rejection in a file."""
    fields = {
        "words_hash": rejection.words_hash,
        "word_count": rejection.word_count,
        "reason": rejection.reason,
        "rejected_at": format_time(rejection.rejected_at),
    }
    return {name: value for name, value in fields.items() if value is not None}


def remove(database: Database, words_hash: bytes) -> bool:
    """Lift the rejection of a value, and return whether there was one."""
    return database.run("DELETE FROM rejections WHERE words_hash = ?", (words_hash,)) > 0


def remove_by_id(database: Database, rejection_id: int) -> bool:
    """Lift a rejection, and return whether there was one."""
    return database.run("DELETE FROM rejections WHERE rejection_id = ?", (rejection_id,)) > 0


def find(database: Database, words_hash: bytes) -> Rejection | None:
    """Return the rejection of a value, or ``None``."""
    row = database.row(f"SELECT {_COLUMNS} FROM rejections WHERE words_hash = ?", (words_hash,))
    return None if row is None else _rejection(row)


def all_of(database: Database) -> list[Rejection]:
    """Return all rejections, oldest first."""
    rows = database.rows(f"SELECT {_COLUMNS} FROM rejections ORDER BY rejection_id")
    return [_rejection(row) for row in rows]


def known(database: Database) -> Mapping[int, AbstractSet[bytes]]:
    """Return the hashes of the rejected values by how many words those have."""
    hashes: dict[int, set[bytes]] = {}
    for word_count, words_hash in database.rows("SELECT word_count, words_hash FROM rejections"):
        hashes.setdefault(word_count, set()).add(words_hash)
    return hashes


def _rejection(row: Row) -> Rejection:
    """Make the model of a row, without validation: another program may have written it."""
    rejection_id, words_hash, word_count, reason, rejected_at = row
    return Rejection.model_construct(
        rejection_id=rejection_id,
        words_hash=words_hash.hex(),
        word_count=word_count,
        reason=reason,
        rejected_at=read_stored_time(rejected_at),
    )

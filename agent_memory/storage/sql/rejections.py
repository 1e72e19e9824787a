"""The table ``rejections``: hashes of the values that must not be stored again."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.times import format_time
from agent_memory.storage.records import rejection_of_row
from agent_memory.storage.sql import Table

if TYPE_CHECKING:
    from agent_memory.models.safety import Rejection

_SELECT: Final = """
SELECT rejection_id, words_hash, word_count, reason, rejected_at FROM rejections"""
_INSERT: Final = """
INSERT INTO rejections (words_hash, word_count, reason, rejected_at) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING"""
_ADD_REASON: Final = """
UPDATE rejections SET reason = ? WHERE words_hash = ? AND reason IS NULL"""


class RejectionTable(Table):
    """The table of rejected values, as hashes."""

    def add(self, words_hash: bytes, word_count: int, reason: str | None, now: datetime) -> bool:
        values = (words_hash, word_count, reason, format_time(now))
        if self._db.run(_INSERT, values):
            return True
        if reason is not None:
            self._db.run(_ADD_REASON, (reason, words_hash))
        return False

    def put(self, values: Mapping[str, Any]) -> None:
        self._db.run(
            _INSERT,
            (
                bytes.fromhex(values["words_hash"]),
                values["word_count"],
                values.get("reason"),
                values["rejected_at"],
            ),
        )

    def remove(self, words_hash: bytes) -> bool:
        return self._db.run("DELETE FROM rejections WHERE words_hash = ?", (words_hash,)) > 0

    def remove_by_id(self, rejection_id: int) -> bool:
        return self._db.run("DELETE FROM rejections WHERE rejection_id = ?", (rejection_id,)) > 0

    def find(self, words_hash: bytes) -> Rejection | None:
        row = self._db.row(f"{_SELECT} WHERE words_hash = ?", (words_hash,))
        return None if row is None else rejection_of_row(row)

    def all(self) -> list[Rejection]:
        rows = self._db.rows(f"{_SELECT} ORDER BY rejection_id")
        return [rejection_of_row(row) for row in rows]

    def hashes_by_length(self) -> Mapping[int, AbstractSet[bytes]]:
        hashes: dict[int, set[bytes]] = {}
        for word_count, words_hash in self._db.rows(
            "SELECT word_count, words_hash FROM rejections"
        ):
            hashes.setdefault(word_count, set()).add(words_hash)
        return hashes

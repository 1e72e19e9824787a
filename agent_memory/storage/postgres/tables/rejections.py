"""The table ``rejections``: hashes of the values that must not be stored again."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.times import format_time
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.records import rejection_of_row

if TYPE_CHECKING:
    from agent_memory.models.safety import Rejection

_COLUMNS: Final = "rejection_id, words_hash, word_count, reason, rejected_at"
_INSERT: Final = """
INSERT INTO rejections (words_hash, word_count, reason, rejected_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (agent_id, words_hash) DO NOTHING"""
_ADD_REASON: Final = """
UPDATE rejections SET reason = %s WHERE words_hash = %s AND reason IS NULL"""


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
        return self._db.run("DELETE FROM rejections WHERE words_hash = %s", (words_hash,)) > 0

    def remove_by_id(self, rejection_id: int) -> bool:
        return self._db.run("DELETE FROM rejections WHERE rejection_id = %s", (rejection_id,)) > 0

    def find(self, words_hash: bytes) -> Rejection | None:
        sql = f"SELECT {_COLUMNS} FROM rejections WHERE words_hash = %s"
        row = self._db.row(sql, (words_hash,))
        return None if row is None else rejection_of_row(row)

    def all(self) -> list[Rejection]:
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM rejections ORDER BY rejection_id")
        return [rejection_of_row(row) for row in rows]

    def hashes_by_length(self) -> Mapping[int, AbstractSet[bytes]]:
        hashes: dict[int, set[bytes]] = {}
        for word_count, words_hash in self._db.rows(
            "SELECT word_count, words_hash FROM rejections"
        ):
            hashes.setdefault(word_count, set()).add(words_hash)
        return hashes

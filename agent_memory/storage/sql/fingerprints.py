"""The table ``fingerprints``: hashes of normalized texts, used to find near duplicates.

Texts are read as bytes: in a file another program can store one that is not UTF-8, and no store of
the same fact may fail because of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.storage.records import BEFORE_ALL, Row, page_end
from agent_memory.storage.sql import Table

if TYPE_CHECKING:
    from agent_memory.storage.fingerprints import DuplicateCandidate

_PAGE: Final = 1_000
_TEXTS: Final = (
    "m.id",
    "m.content",
    "m.user_id",
    "m.run_id",
    "m.category",
    "m.tags",
    "m.timestamp",
)
_TEXTS_IF_MISSING: Final = (
    "CASE WHEN f.fingerprint IS NULL THEN m.content END", "m.user_id", "m.run_id",
)  # fmt: skip
_SELECT_SAME: Final = """
SELECT m.seq, {texts}, r.recalled_at FROM fingerprints AS f
JOIN memories AS m ON m.seq = f.seq LEFT JOIN recalls AS r ON r.seq = f.seq
WHERE f.fingerprint = ? AND m.archived = 0
ORDER BY r.recalled_at IS NULL, f.seq LIMIT ?"""
_SELECT_UNARCHIVED: Final = """
SELECT m.seq, {texts}, r.recalled_at FROM memories AS m LEFT JOIN recalls AS r ON r.seq = m.seq
WHERE m.seq {among} AND m.archived = 0 ORDER BY m.seq"""
_SELECT_OF_ROWS: Final = """
SELECT m.seq, f.fingerprint, {texts}
FROM memories AS m LEFT JOIN fingerprints AS f ON f.seq = m.seq WHERE m.seq {among}"""
_SELECT_MISSING: Final = """
SELECT m.seq, {texts} FROM fingerprints AS f JOIN memories AS m ON m.seq = f.seq
WHERE f.fingerprint IS NULL AND f.seq > ? ORDER BY f.seq LIMIT ?"""
# In the order of the index of missing fingerprints, which is mostly empty.
_SELECT_ONE_MISSING: Final = """
SELECT 1 FROM fingerprints WHERE fingerprint IS NULL ORDER BY seq LIMIT 1"""
_SELECT_REPEATED: Final = """
SELECT f.fingerprint, count(*) FROM fingerprints AS f JOIN memories AS m ON m.seq = f.seq
WHERE f.fingerprint IS NOT NULL AND m.archived = 0
GROUP BY f.fingerprint HAVING count(*) > 1 ORDER BY min(f.seq)"""


class FingerprintTable(Table):
    """The table of fingerprints: hashes used to find near duplicates."""

    @abstractmethod
    def put(self, fingerprints: Iterable[tuple[int, int]]) -> None: ...

    def is_complete(self) -> bool:
        return self._db.row(_SELECT_ONE_MISSING) is None

    def complete_page(self) -> list[int]:
        """Compute the fingerprints of a page of memories that lack one; return their row ids.

        Another program wrote or changed those memories.
        """
        rows = self._missing(BEFORE_ALL, _PAGE)
        self.put([(_fingerprint_of(*parts), row_id) for row_id, *parts in rows])
        return [row_id for row_id, *_ in rows]

    def is_left(self, completed: Sequence[int]) -> bool:
        """Return whether a page just completed still lacks some: then the store is damaged.

        Must run in the same transaction as ``complete_page``, whose result is passed in.
        """
        if not completed:
            return not self.is_complete()
        left = self._missing(BEFORE_ALL, 1)
        return bool(left) and bool(left[0][0] <= completed[0])

    def same(self, fingerprint: int, *, limit: int) -> list[DuplicateCandidate]:
        """Return the unarchived memories that have a fingerprint, oldest first.

        If there are more than ``limit``, recalled ones come before older ones.
        """
        rows = self._db.rows(_SELECT_SAME.format(texts=self._bytes(*_TEXTS)), (fingerprint, limit))
        return sorted(map(_candidate, rows), key=lambda candidate: candidate.row_id)

    def of_rows(self, row_ids: Sequence[int]) -> dict[int, int]:
        rows = self._listed(_SELECT_OF_ROWS, _TEXTS_IF_MISSING, row_ids)
        return {
            row_id: _fingerprint_of(*parts) if fingerprint is None else fingerprint
            for row_id, fingerprint, *parts in rows
        }

    def of_unarchived(self, row_ids: Sequence[int]) -> list[DuplicateCandidate]:
        return [_candidate(row) for row in self._listed(_SELECT_UNARCHIVED, _TEXTS, row_ids)]

    def same_without(self, fingerprint: int) -> Iterator[int]:
        last = BEFORE_ALL
        while rows := self._missing(last, _PAGE):
            for row_id, *parts in rows:
                if _fingerprint_of(*parts) == fingerprint:
                    yield row_id
            last = page_end(rows[-1][0], after=last)

    def repeated(self) -> list[tuple[int, int]]:
        return [(fingerprint, count) for fingerprint, count in self._db.rows(_SELECT_REPEATED)]

    def _missing(self, after: int, limit: int) -> list[Row]:
        sql = _SELECT_MISSING.format(texts=self._bytes("m.content", "m.user_id", "m.run_id"))
        return self._db.rows(sql, (after, limit))

    def _listed(self, sql: str, texts: Sequence[str], row_ids: Sequence[int]) -> list[Row]:
        sql = sql.format(texts=self._bytes(*texts), among=self._db.AMONG)
        return self._db.rows(sql, (self._db.listed(row_ids),))


def _fingerprint_of(content: bytes, user_id: bytes | None, run_id: bytes | None) -> int:
    # A search reads fingerprints but makes none: importing what normalizes texts takes 3 ms.
    from agent_memory.storage.fingerprints import fingerprint_of  # noqa: PLC0415

    return fingerprint_of(decoded(content), _decoded(user_id), _decoded(run_id))


def decoded(text: bytes) -> str:
    """Decode a stored text; bytes that are not UTF-8 become escapes."""
    return text.decode(errors="backslashreplace")


def _decoded(text: bytes | None) -> str | None:
    return None if text is None else decoded(text)


def _candidate(row: Row) -> DuplicateCandidate:
    from agent_memory.storage.fingerprints import DuplicateCandidate  # noqa: PLC0415 - likewise

    row_id, memory_id, content, user_id, run_id, category, tags, timestamp, recalled_at = row
    return DuplicateCandidate(
        row_id=row_id,
        memory_id=decoded(memory_id),
        content=decoded(content),
        user_id=_decoded(user_id),
        run_id=_decoded(run_id),
        category=decoded(category),
        tags=decoded(tags),
        timestamp=decoded(timestamp),
        recalled_at=recalled_at,
    )

"""The table ``fingerprints``: hashes of normalized texts, used to find near duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.models.fields import to_json
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sqlite.connection import Database, Row
from agent_memory.storage.sqlite.kept_rows import KeptRows
from agent_memory.storage.sqlite.tables import Table

if TYPE_CHECKING:
    from agent_memory.storage.fingerprints import DuplicateCandidate

MOST_KEPT: Final = 20_000
"""Memories whose fingerprints are cached for the next search."""
_PAGE: Final = 1_000
# Texts are read as bytes: another program can store one that is not UTF-8, and no store of the
# same fact may fail because of it.
_COLUMNS: Final = """m.seq, CAST(m.id AS BLOB), CAST(m.content AS BLOB), CAST(m.user_id AS BLOB),
  CAST(m.run_id AS BLOB), CAST(m.category AS BLOB), CAST(m.tags AS BLOB),
  CAST(m.timestamp AS BLOB), r.recalled_at"""
_SELECT_SAME: Final = f"""
SELECT {_COLUMNS} FROM fingerprints AS f
JOIN memories AS m ON m.seq = f.seq LEFT JOIN recalls AS r ON r.seq = f.seq
WHERE f.fingerprint = ? AND m.archived = 0
ORDER BY r.recalled_at IS NULL, f.seq LIMIT ?"""
_SELECT_UNARCHIVED: Final = f"""
SELECT {_COLUMNS} FROM memories AS m LEFT JOIN recalls AS r ON r.seq = m.seq
WHERE m.seq IN (SELECT value FROM json_each(?)) AND m.archived = 0 ORDER BY m.seq"""
_SELECT_OF_ROWS: Final = """
SELECT m.seq, f.fingerprint, CASE WHEN f.fingerprint IS NULL THEN CAST(m.content AS BLOB) END,
  CAST(m.user_id AS BLOB), CAST(m.run_id AS BLOB)
FROM memories AS m LEFT JOIN fingerprints AS f USING (seq)
WHERE m.seq IN (SELECT value FROM json_each(?))"""
_SELECT_MISSING: Final = """
SELECT m.seq, CAST(m.content AS BLOB), CAST(m.user_id AS BLOB), CAST(m.run_id AS BLOB)
FROM fingerprints AS f JOIN memories AS m USING (seq)
WHERE f.fingerprint IS NULL AND f.seq > ? ORDER BY f.seq LIMIT ?"""
_SELECT_REPEATED: Final = """
SELECT f.fingerprint, count(*) FROM fingerprints AS f JOIN memories AS m USING (seq)
WHERE f.fingerprint IS NOT NULL AND m.archived = 0
GROUP BY f.fingerprint HAVING count(*) > 1 ORDER BY min(f.seq)"""


def _fingerprint_of_stored(content: bytes, user_id: bytes | None, run_id: bytes | None) -> int:
    # A search reads fingerprints but makes none: importing what normalizes texts takes 3 ms.
    from agent_memory.storage.fingerprints import fingerprint_of  # noqa: PLC0415

    return fingerprint_of(decoded(content), _decoded(user_id), _decoded(run_id))


def decoded(text: bytes) -> str:
    """Decode a stored text; bytes that are not UTF-8 become escapes."""
    return text.decode(errors="backslashreplace")


def _decoded(text: bytes | None) -> str | None:
    return None if text is None else decoded(text)


def _same(row: Row) -> DuplicateCandidate:
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


class FingerprintTable(Table):
    """The table of fingerprints: hashes used to find near duplicates."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._kept: KeptRows[int, int] = KeptRows(MOST_KEPT)

    def put(self, fingerprints: Iterable[tuple[int, int]]) -> None:
        self._db.run_many("UPDATE fingerprints SET fingerprint = ? WHERE seq = ?", fingerprints)

    def present(self, fingerprints: Sequence[int]) -> set[int]:
        sql = """SELECT value FROM json_each(?)
    WHERE EXISTS (SELECT 1 FROM fingerprints WHERE fingerprint = value)"""
        return {value for (value,) in self._db.rows(sql, (to_json(list(fingerprints)),))}

    def is_complete(self) -> bool:
        sql = "SELECT 1 FROM fingerprints WHERE fingerprint IS NULL LIMIT 1"
        return self._db.row(sql) is None

    def complete_page(self) -> list[int]:
        """Compute the fingerprints of a page of memories that lack one; return their row ids.

        Another program wrote or changed those memories. A row without its memory, which a program
        can leave behind, is deleted.
        """
        rows = self._db.rows(_SELECT_MISSING, (BEFORE_ALL, _PAGE))
        if not rows:
            self._db.run(
                "DELETE FROM fingerprints"
                " WHERE fingerprint IS NULL AND seq NOT IN (SELECT seq FROM memories)"
            )
        self.put([(_fingerprint_of_stored(*parts), row_id) for row_id, *parts in rows])
        return [row_id for row_id, *_ in rows]

    def is_left(self, completed: Sequence[int]) -> bool:
        """Return whether a page just completed still lacks some: then the file is damaged.

        Must run in the same transaction as ``complete_page``, whose result is passed in.
        """
        if not completed:
            return not self.is_complete()
        left = self._db.rows(_SELECT_MISSING, (BEFORE_ALL, 1))
        return bool(left) and left[0][0] <= completed[0]

    def same(self, fingerprint: int, *, limit: int) -> list[DuplicateCandidate]:
        """Return the unarchived memories that have a fingerprint, oldest first.

        If there are more than ``limit``, recalled ones come before older ones.
        """
        rows = self._db.rows(_SELECT_SAME, (fingerprint, limit))
        return sorted(map(_same, rows), key=lambda candidate: candidate.row_id)

    def of_rows(self, row_ids: Sequence[int]) -> dict[int, int]:
        kept = self._kept.current(self._db.stamp())
        if missing := [row_id for row_id in row_ids if row_id not in kept]:
            rows = self._db.rows(_SELECT_OF_ROWS, (to_json(missing),))
            kept.update(
                (row_id, _fingerprint_of_stored(*parts) if fingerprint is None else fingerprint)
                for row_id, fingerprint, *parts in rows
            )
        return {row_id: kept[row_id] for row_id in row_ids if row_id in kept}

    def of_unarchived(self, row_ids: Sequence[int]) -> list[DuplicateCandidate]:
        return [_same(row) for row in self._db.rows(_SELECT_UNARCHIVED, (to_json(list(row_ids)),))]

    def same_without(self, fingerprint: int) -> Iterator[int]:
        last = BEFORE_ALL
        while rows := self._db.rows(_SELECT_MISSING, (last, _PAGE)):
            for row_id, content, user_id, run_id in rows:
                if _fingerprint_of_stored(content, user_id, run_id) == fingerprint:
                    yield row_id
            last = page_end(rows[-1][0], after=last)

    def repeated(self) -> list[tuple[int, int]]:
        return [(fingerprint, count) for fingerprint, count in self._db.rows(_SELECT_REPEATED)]

"""The table ``fingerprints``: hashes of normalized texts, used to find near duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_memory.storage.fingerprints import DuplicateCandidate, fingerprint_of
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.records import BEFORE_ALL, page_end

_PAGE: Final = 1_000
_COLUMNS: Final = """m.seq, m.id, m.content, m.user_id, m.run_id, m.category, m.tags, m.timestamp,
  r.recalled_at"""
_SELECT_SAME: Final = f"""
SELECT {_COLUMNS} FROM fingerprints AS f
JOIN memories AS m USING (agent_id, seq) LEFT JOIN recalls AS r USING (agent_id, seq)
WHERE f.fingerprint = %s AND m.archived = 0
ORDER BY r.recalled_at IS NULL, f.seq LIMIT %s"""
_SELECT_UNARCHIVED: Final = f"""
SELECT {_COLUMNS} FROM memories AS m LEFT JOIN recalls AS r USING (agent_id, seq)
WHERE m.seq = ANY(%s) AND m.archived = 0 ORDER BY m.seq"""
_SELECT_OF_ROWS: Final = """
SELECT m.seq, f.fingerprint, CASE WHEN f.fingerprint IS NULL THEN m.content END, m.user_id, m.run_id
FROM memories AS m LEFT JOIN fingerprints AS f USING (agent_id, seq) WHERE m.seq = ANY(%s)"""
_SELECT_MISSING: Final = """
SELECT m.seq, m.content, m.user_id, m.run_id
FROM fingerprints AS f JOIN memories AS m USING (agent_id, seq)
WHERE f.fingerprint IS NULL AND f.seq > %s ORDER BY f.seq LIMIT %s"""
_SELECT_REPEATED: Final = """
SELECT f.fingerprint, count(*) FROM fingerprints AS f JOIN memories AS m USING (agent_id, seq)
WHERE f.fingerprint IS NOT NULL AND m.archived = 0
GROUP BY f.fingerprint HAVING count(*) > 1 ORDER BY min(f.seq)"""
_PUT: Final = """
UPDATE fingerprints AS f SET fingerprint = made.fingerprint
FROM unnest(%s::bigint[], %s::bigint[]) AS made (fingerprint, seq) WHERE f.seq = made.seq"""
_SELECT_PRESENT: Final = "SELECT DISTINCT fingerprint FROM fingerprints WHERE fingerprint = ANY(%s)"
# In the order of the index of missing fingerprints, which is mostly empty.
_SELECT_ONE_MISSING: Final = """
SELECT 1 FROM fingerprints WHERE fingerprint IS NULL ORDER BY seq LIMIT 1"""


class FingerprintTable(Table):
    """The table of fingerprints: hashes used to find near duplicates."""

    def put(self, fingerprints: Iterable[tuple[int, int]]) -> None:
        pairs = list(fingerprints)
        if pairs:
            values = [fingerprint for fingerprint, _ in pairs]
            self._db.run(_PUT, (values, [row_id for _, row_id in pairs]))

    def present(self, fingerprints: Sequence[int]) -> set[int]:
        rows = self._db.rows(_SELECT_PRESENT, (list(fingerprints),))
        return {fingerprint for (fingerprint,) in rows}

    def is_complete(self) -> bool:
        return self._db.row(_SELECT_ONE_MISSING) is None

    def complete_page(self) -> list[int]:
        """Compute the fingerprints of a page of memories that lack one; return their row ids.

        Another program wrote or changed those memories.
        """
        rows = self._db.rows(_SELECT_MISSING, (BEFORE_ALL, _PAGE))
        self.put([(fingerprint_of(*parts), row_id) for row_id, *parts in rows])
        return [row_id for row_id, *_ in rows]

    def is_left(self, completed: Sequence[int]) -> bool:
        """Return whether a page just completed still lacks some: then something undoes it.

        Must run in the same transaction as ``complete_page``, whose result is passed in.
        """
        if not completed:
            return not self.is_complete()
        left = self._db.rows(_SELECT_MISSING, (BEFORE_ALL, 1))
        return bool(left) and bool(left[0][0] <= completed[0])

    def same(self, fingerprint: int, *, limit: int) -> list[DuplicateCandidate]:
        """Return the unarchived memories that have a fingerprint, oldest first.

        If there are more than ``limit``, recalled ones come before older ones.
        """
        rows = self._db.rows(_SELECT_SAME, (fingerprint, limit))
        candidates = [DuplicateCandidate(*row) for row in rows]
        return sorted(candidates, key=lambda candidate: candidate.row_id)

    def of_rows(self, row_ids: Sequence[int]) -> dict[int, int]:
        return {
            row_id: fingerprint_of(*parts) if fingerprint is None else fingerprint
            for row_id, fingerprint, *parts in self._db.rows(_SELECT_OF_ROWS, (list(row_ids),))
        }

    def of_unarchived(self, row_ids: Sequence[int]) -> list[DuplicateCandidate]:
        rows = self._db.rows(_SELECT_UNARCHIVED, (list(row_ids),))
        return [DuplicateCandidate(*row) for row in rows]

    def same_without(self, fingerprint: int) -> Iterator[int]:
        last = BEFORE_ALL
        while rows := self._db.rows(_SELECT_MISSING, (last, _PAGE)):
            for row_id, *parts in rows:
                if fingerprint_of(*parts) == fingerprint:
                    yield row_id
            last = page_end(rows[-1][0], after=last)

    def repeated(self) -> list[tuple[int, int]]:
        return [(fingerprint, count) for fingerprint, count in self._db.rows(_SELECT_REPEATED)]

"""The table ``fingerprints`` in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agent_memory.storage.sql import fingerprints

_PUT: Final = """
UPDATE fingerprints AS f SET fingerprint = made.fingerprint
FROM unnest(%s::bigint[], %s::bigint[]) AS made (fingerprint, seq) WHERE f.seq = made.seq"""
_SELECT_PRESENT: Final = "SELECT DISTINCT fingerprint FROM fingerprints WHERE fingerprint = ANY(%s)"


class FingerprintTable(fingerprints.FingerprintTable):
    """The table of fingerprints: hashes used to find near duplicates."""

    def put(self, fingerprints: Iterable[tuple[int, int]]) -> None:
        pairs = list(fingerprints)
        if pairs:
            values = [fingerprint for fingerprint, _ in pairs]
            self._db.run(_PUT, (values, [row_id for _, row_id in pairs]))

    def present(self, fingerprints: Sequence[int]) -> set[int]:
        rows = self._db.rows(_SELECT_PRESENT, (list(fingerprints),))
        return {fingerprint for (fingerprint,) in rows}

"""The table of short codes, searched before the vectors are.

It holds what a search may return: the memories that are not archived. A code is deleted with its
vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.storage.postgres.tables import Table

_PUT: Final = """
INSERT INTO embedding_codes (model_id, cell, seq, code)
SELECT %s, made.cell, made.seq, made.code::bit varying
FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS made (seq, cell, code)
ON CONFLICT (agent_id, model_id, seq) DO UPDATE SET cell = excluded.cell, code = excluded.code"""
_REMOVE: Final = "DELETE FROM embedding_codes WHERE model_id = %s AND seq = ANY(%s)"
_SELECT_NEAREST: Final = """
SELECT seq, bit_count(code # %s::bit varying) AS distance FROM embedding_codes
WHERE model_id = %s AND cell = ANY(%s) AND length(code) = %s
AND bit_count(code # %s::bit varying) <= %s
ORDER BY distance LIMIT %s"""
_SELECT_SOME: Final = """
SELECT seq, code::text FROM embedding_codes WHERE model_id = %s AND cell = %s LIMIT %s"""
_SELECT_ALL: Final = "SELECT seq, cell, code::text FROM embedding_codes WHERE model_id = %s"


class CodeTable(Table):
    """The table of codes."""

    def drop(self, model_id: int) -> None:
        """Remove a model's codes."""
        self._db.run("DELETE FROM embedding_codes WHERE model_id = %s", (model_id,))

    def put(self, model_id: int, codes: Sequence[tuple[int, int, bytes]]) -> None:
        """Insert or replace codes: row id, cell, code."""
        if codes:
            row_ids, cells, bits = zip(*codes, strict=True)
            written = [_written(code) for code in bits]
            self._db.run(_PUT, (model_id, list(row_ids), list(cells), written))

    def remove(self, model_id: int, row_ids: Sequence[int]) -> None:
        """Remove rows."""
        self._db.run(_REMOVE, (model_id, list(row_ids)))

    def nearest(
        self,
        model_id: int,
        code: bytes,
        *,
        cells: Sequence[int],
        limit: int,
        within: int,
    ) -> list[tuple[int, int]]:
        """Return the rows whose codes differ least, nearest first, with the differing bits.

        Only the given cells are searched, and at most ``within`` bits may differ.
        """
        bits = _written(code)
        values = (bits, model_id, list(cells), 8 * len(code), bits, within, limit)
        return [(row_id, distance) for row_id, distance in self._db.rows(_SELECT_NEAREST, values)]

    def some_of(self, model_id: int, cell: int, *, limit: int) -> list[tuple[int, bytes]]:
        """Return rows and codes that are in a cell."""
        rows = self._db.rows(_SELECT_SOME, (model_id, cell, limit))
        return [(row_id, _read(code)) for row_id, code in rows]

    def codes(self, model_id: int) -> dict[int, tuple[int, bytes]]:
        """Return all codes of a model: cells and codes by row."""
        rows = self._db.rows(_SELECT_ALL, (model_id,))
        return {row_id: (cell, _read(code)) for row_id, cell, code in rows}


def _written(code: bytes) -> str:
    """Return a code in PostgreSQL's notation for bits."""
    return f"x{code.hex()}"


def _read(digits: str) -> bytes:
    """Return a code from its binary digits."""
    return int(digits, 2).to_bytes(len(digits) // 8, "big") if digits else b""

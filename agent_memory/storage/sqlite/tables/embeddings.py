"""The tables of embeddings in SQLite, where another program may have stored any bytes as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.models.fields import to_json
from agent_memory.storage.centering import Centred
from agent_memory.storage.quantization import cosine, hash_of
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sql import Condition, embeddings
from agent_memory.storage.sqlite.connection import Database

_PAGE: Final = 1_000
# The plus sign keeps SQLite from sorting all vectors of the model for each page.
_SELECT_EVERYTHING: Final = """
SELECT e.embedding_id, e.seq, m.id, CAST(m.content AS BLOB), e.text_hash,
  CASE WHEN e.scale > 0 AND e.scale < 1e99 THEN e.vector END, q.seq IS NOT NULL
FROM embeddings AS e LEFT JOIN memories AS m ON m.seq = e.seq
LEFT JOIN embedding_queue AS q ON q.seq = e.seq
WHERE +e.model_id = ? AND e.embedding_id > ? ORDER BY e.embedding_id LIMIT ?"""
# A queued memory may have a vector of another text.
_IS_CURRENT: Final = "e.seq NOT IN (SELECT seq FROM embedding_queue)"
_FROM_LISTED: Final = f"""
FROM embeddings AS e
WHERE e.model_id = ? AND e.seq IN (SELECT value FROM json_each(?)) AND {_IS_CURRENT}"""
_FROM_PASSING: Final = f"""
FROM memories AS m CROSS JOIN embeddings AS e ON e.seq = m.seq
WHERE {{condition}} AND e.model_id = ? AND {_IS_CURRENT} AND length(e.vector) = ?"""
# As one value: fetching 25,000 rows takes a third longer than everything done with them.
_SELECT_PASSING: Final = f"""
SELECT json_group_array(e.seq), CAST(group_concat(e.vector, '') AS BLOB) {_FROM_PASSING}"""
_NEAREST_PASSING: Final = f"""
SELECT e.seq {_FROM_PASSING}
ORDER BY vec_distance_cosine(vec_int8(e.vector), vec_int8(?)) NULLS LAST LIMIT ?"""
_COSINE: Final = "1 - vec_distance_cosine(vec_int8(e.vector), vec_int8(?))"
_ORPHANS: Final = "FROM embeddings WHERE model_id NOT IN (SELECT model_id FROM embedding_models)"
_WRONG_MODELS: Final = """
FROM embedding_models WHERE model_id < 1 OR length(model) NOT BETWEEN 1 AND 200
  OR dimensions NOT BETWEEN 1 AND 20000 OR state NOT IN ('building', 'active')"""
_MEND_MODELS: Final = (
    """UPDATE embedding_models SET state = 'active' WHERE state NOT IN ('building', 'active')
AND NOT EXISTS (SELECT 1 FROM embedding_models WHERE state = 'active')""",
    """UPDATE embedding_models SET dimensions = coalesce(
  (SELECT length(e.vector) FROM embeddings AS e WHERE e.model_id = embedding_models.model_id
    GROUP BY 1 ORDER BY count(*) DESC LIMIT 1), dimensions)
WHERE dimensions NOT BETWEEN 1 AND 20000""",
    f"DELETE {_WRONG_MODELS}",
)


class EmbeddingTable(embeddings.EmbeddingTable):
    """The tables of embedding models, vectors, and the embedding queue."""

    _db: Database
    _KEY = "seq, model_id"
    _NUMBER = "embedding_id"

    # Models --------------------------------------------------------------------------------------
    def count_wrong_models(self) -> int:
        """Count the models to which another program gave an invalid number, name, size or state."""
        return int(self._db.value(f"SELECT count(*) {_WRONG_MODELS}"))

    def mend_models(self) -> None:
        """Repair such models as far as their vectors allow, and drop the others."""
        for sql in _MEND_MODELS:
            self._db.run(sql)

    # Vectors -------------------------------------------------------------------------------------
    def count_orphans(self) -> int:
        """Count the vectors whose model does not exist.

        Other programs leave them behind: SQLite's shell does not enforce foreign keys by default.
        """
        return int(self._db.value(f"SELECT count(*) {_ORPHANS}"))

    def drop_orphans(self) -> None:
        """Delete the vectors whose model does not exist."""
        self._db.run(f"DELETE {_ORPHANS}")

    def to_index(self, model: EmbeddingModel, *, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the vectors to index; -1 for no limit."""
        return self._db.rows(
            # In this order, otherwise SQLite sorts all vectors of the model for each page.
            "SELECT e.seq, e.vector FROM memories AS m"
            " CROSS JOIN embeddings AS e ON e.seq = m.seq AND e.model_id = ?"
            f" WHERE m.seq > ? AND m.archived = 0 AND {_IS_CURRENT} AND length(e.vector) = ?"
            " ORDER BY m.seq LIMIT ?",
            (model.model_id, after, model.dimensions, limit),
        )

    # Nearness ------------------------------------------------------------------------------------
    def cosines(
        self, model_id: int, row_ids: Sequence[int], query: bytes | Centred
    ) -> dict[int, float]:
        """Return the cosine of each of these rows with the query, if its vector is current.

        If the query is centred, so are they.
        """
        if isinstance(query, bytes):
            cosines = self._cosines_with(model_id, row_ids, [query])
            return {row_id: cosine for row_id, (cosine,) in cosines.items()}
        both = self._cosines_with(model_id, row_ids, [query.data, query.middle.direction])
        return {row_id: query.cosine(*pair) for row_id, pair in both.items()}

    def _cosines_with(
        self, model_id: int, row_ids: Sequence[int], others: Sequence[bytes]
    ) -> dict[int, tuple[float, ...]]:
        """Return the cosines of each of these rows with the given vectors."""
        values = (model_id, to_json(list(row_ids)))
        dimensions = len(others[0])
        if self._db.load_vectors():
            columns = ", ".join([_COSINE] * len(others))
            sql = f"SELECT e.seq, {columns} {_FROM_LISTED} AND length(e.vector) = ?"
            rows = self._db.rows(sql, (*others, *values, dimensions))
            return {row_id: tuple(cosines) for row_id, *cosines in rows if None not in cosines}
        return {
            row_id: tuple(cosine(vector, other) for other in others)
            for row_id, vector in self.current(model_id, row_ids)
            if len(vector) == dimensions
        }

    def current(self, model_id: int, row_ids: Sequence[int]) -> list[tuple[int, bytes]]:
        """Return these rows with their vectors, if those are current."""
        values = (model_id, to_json(list(row_ids)))
        return self._db.rows(f"SELECT e.seq, e.vector {_FROM_LISTED}", values)

    def nearest_passing(
        self, model_id: int, condition: Condition, direction: bytes, *, limit: int
    ) -> list[int]:
        """Return the rows that meet a condition and whose directions are most similar.

        SQL compares them all, which needs sqlite-vec: reading 25,000 rows and then their cosines
        takes three times as long.
        """
        sql = _NEAREST_PASSING.format(condition=condition.sql)
        values = (*condition.values, model_id, len(direction), direction, limit)
        return [row_id for (row_id,) in self._db.rows(sql, values)]

    def passing(
        self, model_id: int, condition: Condition, dimensions: int
    ) -> tuple[list[int], bytes]:
        """Return the rows that meet a condition, and their vectors, concatenated."""
        sql = _SELECT_PASSING.format(condition=condition.sql)
        row = self._db.row(sql, (*condition.values, model_id, dimensions))
        row_ids, vectors = row or ("[]", None)
        return json.loads(row_ids), vectors or b""

    # Checking ------------------------------------------------------------------------------------
    def faults(self, model: EmbeddingModel) -> list[tuple[int, str]]:
        """Check every vector of a model; return the rows whose vector is wrong, and why."""
        faults: list[tuple[int, str]] = []
        after = BEFORE_ALL
        while rows := self._db.rows(_SELECT_EVERYTHING, (model.model_id, after, _PAGE)):
            for _, row_id, *values in rows:
                fault = _fault(values, model.dimensions)
                if fault is not None:
                    faults.append((row_id, fault))
            after = page_end(rows[-1][0], after=after)
        return faults


def _fault(row: Sequence[object], dimensions: int) -> str | None:
    memory_id, content, stored_hash, vector, is_queued = row
    if memory_id is None:
        return "an embedding has no memory"
    if not isinstance(vector, bytes) or len(vector) != dimensions or not any(vector):
        return f"the vector of memory {memory_id} is damaged"
    if isinstance(content, bytes) and stored_hash != hash_of(content) and not is_queued:
        return f"the embedding of memory {memory_id} does not match its text"
    return None

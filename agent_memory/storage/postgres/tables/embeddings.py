"""The tables of embeddings in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.storage.centering import Centred
from agent_memory.storage.in_memory.cosines import Cosines
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.quantization import text_hash
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sql import embeddings

_PAGE: Final = 1_000
_DEQUEUE_ERASED: Final = """
DELETE FROM embedding_queue AS q
WHERE NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.agent_id = q.agent_id AND m.seq = q.seq)"""
_SELECT_EVERYTHING: Final = """
SELECT e.seq, m.id, m.content, e.text_hash, e.vector, q.seq IS NOT NULL
FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
LEFT JOIN embedding_queue AS q USING (agent_id, seq)
WHERE e.model_id = %s AND e.seq > %s ORDER BY e.seq LIMIT %s"""
# A queued memory may have a vector of another text.
_IS_CURRENT: Final = "NOT EXISTS (SELECT 1 FROM embedding_queue AS q WHERE q.seq = e.seq)"
_SELECT_TO_INDEX: Final = f"""
SELECT e.seq, e.vector FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
WHERE e.model_id = %s AND e.seq > %s AND m.archived = 0 AND {_IS_CURRENT}
  AND length(e.vector) = %s ORDER BY e.seq LIMIT %s"""
_SELECT_CURRENT: Final = f"""
SELECT e.seq, e.vector FROM embeddings AS e
WHERE e.model_id = %s AND e.seq = ANY(%s) AND length(e.vector) = %s AND {_IS_CURRENT}"""


class EmbeddingTable(embeddings.EmbeddingTable):
    """The tables of embedding models, vectors, and the embedding queue."""

    _KEY = "agent_id, model_id, seq"
    _NUMBER = "seq"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._cosines = Cosines()

    # Vectors -------------------------------------------------------------------------------------
    def to_index(
        self, model: EmbeddingModel, *, after: int, limit: int | None
    ) -> list[tuple[int, bytes]]:
        """Return the vectors to index; ``None`` for no limit."""
        values = (model.model_id, after, model.dimensions, limit)
        return [(row_id, vector) for row_id, vector in self._db.rows(_SELECT_TO_INDEX, values)]

    # The queue -----------------------------------------------------------------------------------
    def dequeue_erased(self) -> None:
        """Remove memories that no longer exist from the queue."""
        self._db.run(_DEQUEUE_ERASED)

    # Nearness ------------------------------------------------------------------------------------
    def cosines(
        self, model_id: int, row_ids: Sequence[int], query: bytes | Centred
    ) -> dict[int, float]:
        """Return the cosine of each of these rows with the query, if its vector is current.

        If the query is centred, so are they.
        """
        others = [query] if isinstance(query, bytes) else [query.data, query.middle.direction]
        values = (model_id, list(row_ids), len(others[0]))
        vectors = self._db.rows(_SELECT_CURRENT, values) if row_ids else []
        cosines = self._cosines.between(((row[0], row[1]) for row in vectors), others)
        if isinstance(query, bytes):
            return {row_id: cosine for row_id, (cosine,) in cosines.items()}
        return {row_id: query.cosine(*pair) for row_id, pair in cosines.items()}

    def problem_of_cosines(self) -> str | None:
        """Return why cosines are slow here, and what to do; ``None`` if they are not."""
        return self._cosines.problem()

    # Checking ------------------------------------------------------------------------------------
    def faults(self, model: EmbeddingModel) -> list[tuple[int, str]]:
        """Check every vector of a model; return the rows whose vector is wrong, and why."""
        faults: list[tuple[int, str]] = []
        after = BEFORE_ALL
        while rows := self._db.rows(_SELECT_EVERYTHING, (model.model_id, after, _PAGE)):
            for row_id, memory_id, content, stored_hash, vector, is_queued in rows:
                if len(vector) != model.dimensions or not any(vector):
                    faults.append((row_id, f"the vector of memory {memory_id} is damaged"))
                elif stored_hash != text_hash(content) and not is_queued:
                    fault = f"the embedding of memory {memory_id} does not match its text"
                    faults.append((row_id, fault))
            after = page_end(rows[-1][0], after=after)
        return faults

"""The tables of embedding models, of vectors by memory and model, and the embedding queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from agent_memory.models.embedding_rows import EmbeddingModel, PendingText, QueuedMemory
from agent_memory.models.times import format_time
from agent_memory.storage.centering import Centred
from agent_memory.storage.in_memory.cosines import Cosines
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.quantization import Quantized, text_hash
from agent_memory.storage.records import BEFORE_ALL, page_end

_MODEL_FIELDS: Final = EmbeddingModel._fields
_PAGE: Final = 1_000
_SELECT_MODELS: Final = f"""
SELECT {", ".join(_MODEL_FIELDS)} FROM embedding_models ORDER BY state"""
_INSERT_MODEL: Final = """
INSERT INTO embedding_models (model, dimensions, embedder, base_url, state, similarity_floor,
  vector_weight, created_at)
VALUES (%s, %s, %s, %s, 'building', %s, %s, %s) RETURNING model_id"""
_SET_INDEXED: Final = """
UPDATE embedding_models SET is_indexed = %s WHERE model_id = %s AND is_indexed <> %s"""
# Only if the memory still has the text that was embedded.
_PUT: Final = """
INSERT INTO embeddings (seq, model_id, text_hash, scale, vector)
SELECT seq, %s, %s, %s, %s FROM memories WHERE seq = %s AND content = %s
ON CONFLICT (agent_id, model_id, seq) DO UPDATE SET
  text_hash = excluded.text_hash, scale = excluded.scale, vector = excluded.vector"""
_SELECT_SAME_TEXT: Final = """
SELECT scale, vector FROM embeddings WHERE model_id = %s AND text_hash = %s LIMIT 1"""
_DROP_OTHER_TEXTS: Final = """
DELETE FROM embeddings WHERE seq = %s AND text_hash <> %s RETURNING model_id"""
_SELECT_QUEUED: Final = """
SELECT q.seq, m.content, m.archived, q.refused_hash
FROM embedding_queue AS q LEFT JOIN memories AS m USING (agent_id, seq)
WHERE q.seq > %s ORDER BY q.seq LIMIT %s"""
_HAS_NO_VECTOR: Final = """
NOT EXISTS (SELECT 1 FROM embeddings AS e WHERE e.model_id = %s AND e.seq = m.seq)"""
_SELECT_WITHOUT: Final = f"""
SELECT m.seq, m.content FROM memories AS m
WHERE m.seq > %s AND {_HAS_NO_VECTOR} ORDER BY m.seq LIMIT %s"""
_COUNT_WITHOUT: Final = f"""
SELECT count(*), coalesce(sum(octet_length(m.content)), 0)
FROM memories AS m WHERE {_HAS_NO_VECTOR}"""
_QUEUE_MISSING: Final = f"""
INSERT INTO embedding_queue (seq) SELECT m.seq FROM memories AS m WHERE {_HAS_NO_VECTOR}
ON CONFLICT DO NOTHING"""
_QUEUE: Final = """
INSERT INTO embedding_queue (seq) SELECT * FROM unnest(%s::bigint[]) ON CONFLICT DO NOTHING"""
_REFUSE: Final = """
INSERT INTO embedding_queue (seq, refused_hash) VALUES (%s, %s)
ON CONFLICT (agent_id, seq) DO UPDATE SET refused_hash = excluded.refused_hash"""
_DEQUEUE_ERASED: Final = """
DELETE FROM embedding_queue AS q
WHERE NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.agent_id = q.agent_id AND m.seq = q.seq)"""
_SELECT_EVERYTHING: Final = """
SELECT e.seq, m.id, m.content, e.text_hash, e.vector, q.seq IS NOT NULL
FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
LEFT JOIN embedding_queue AS q USING (agent_id, seq)
WHERE e.model_id = %s AND e.seq > %s ORDER BY e.seq LIMIT %s"""
_COUNT_QUEUED: Final = """
SELECT count(*) FROM embedding_queue AS q JOIN memories AS m USING (agent_id, seq)"""
_COUNT_FORGOTTEN: Final = f"""
SELECT count(*) FROM memories AS m WHERE {_HAS_NO_VECTOR}
  AND NOT EXISTS (SELECT 1 FROM embedding_queue AS q WHERE q.seq = m.seq)"""
# A queued memory may have a vector of another text.
_IS_CURRENT: Final = "NOT EXISTS (SELECT 1 FROM embedding_queue AS q WHERE q.seq = e.seq)"
_SELECT_TO_INDEX: Final = f"""
SELECT e.seq, e.vector FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
WHERE e.model_id = %s AND e.seq > %s AND m.archived = 0 AND {_IS_CURRENT}
  AND length(e.vector) = %s ORDER BY e.seq LIMIT %s"""
_SELECT_CURRENT: Final = f"""
SELECT e.seq, e.vector FROM embeddings AS e
WHERE e.model_id = %s AND e.seq = ANY(%s) AND length(e.vector) = %s AND {_IS_CURRENT}"""
_SELECT_LISTED: Final = """
SELECT vector FROM embeddings
WHERE seq = ANY(%s) AND model_id = %s AND length(vector) = %s ORDER BY seq"""
_SELECT_NEWEST: Final = """
SELECT vector FROM embeddings WHERE model_id = %s AND length(vector) = %s
ORDER BY seq DESC LIMIT %s"""
_ITERATE: Final = """
SELECT m.seq, m.id, e.text_hash, e.scale, e.vector
FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
WHERE e.model_id = %s AND e.seq > %s ORDER BY e.seq LIMIT %s"""
_SAMPLE: Final = f"""
SELECT m.seq, m.id FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
WHERE e.model_id = %s AND m.archived = 0 AND {_IS_CURRENT} ORDER BY random() LIMIT %s"""
_SAMPLE_WITH_TEXTS: Final = f"""
SELECT m.seq, m.content, e.scale, e.vector
FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
WHERE e.model_id = %s AND {_IS_CURRENT} ORDER BY random() LIMIT %s"""


class EmbeddingTable(Table):
    """The tables of embedding models, vectors, and the embedding queue."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._cosines = Cosines()

    # Models --------------------------------------------------------------------------------------
    def models(self) -> list[EmbeddingModel]:
        return [EmbeddingModel._make(row) for row in self._db.rows(_SELECT_MODELS)]

    def add_model(self, model: EmbeddingModel, *, now: datetime) -> int:
        values = (
            model.model, model.dimensions, model.embedder, model.base_url, model.similarity_floor,
            model.vector_weight, format_time(now),
        )  # fmt: skip
        return int(self._db.value(_INSERT_MODEL, values))

    def activate(self, model_id: int) -> None:
        sql = "UPDATE embedding_models SET state = 'active' WHERE model_id = %s"
        self._db.run(sql, (model_id,))

    def drop_model(self, model_id: int) -> None:
        self._db.run("DELETE FROM embedding_models WHERE model_id = %s", (model_id,))

    def set_indexed(self, model_id: int, *, is_indexed: bool) -> None:
        self._db.run(_SET_INDEXED, (int(is_indexed), model_id, int(is_indexed)))

    # Vectors -------------------------------------------------------------------------------------
    def put(self, model_id: int, pending: PendingText, vector: Quantized) -> bool:
        values = (model_id, text_hash(pending.text), vector.scale, vector.data)
        return self._db.run(_PUT, (*values, pending.row_id, pending.text)) > 0

    def of_same_text(self, model_id: int, text: str) -> Quantized | None:
        row = self._db.row(_SELECT_SAME_TEXT, (model_id, text_hash(text)))
        return None if row is None else Quantized(*row)

    def drop_other_texts(self, row_id: int, text: str) -> list[int]:
        rows = self._db.rows(_DROP_OTHER_TEXTS, (row_id, text_hash(text)))
        return [model_id for (model_id,) in rows]

    def get(self, model: EmbeddingModel, row_id: int) -> Quantized | None:
        sql = """SELECT scale, vector FROM embeddings
WHERE model_id = %s AND seq = %s AND length(vector) = %s"""
        row = self._db.row(sql, (model.model_id, row_id, model.dimensions))
        return None if row is None else Quantized(*row)

    def count(self, model_id: int) -> int:
        sql = "SELECT count(*) FROM embeddings WHERE model_id = %s"
        return int(self._db.value(sql, (model_id,)))

    def count_up_to(self, model_id: int, most: int) -> int:
        """Count the vectors of a model, stopping at ``most``."""
        sql = (
            "SELECT count(*) FROM (SELECT 1 FROM embeddings WHERE model_id = %s LIMIT %s) AS listed"
        )
        return int(self._db.value(sql, (model_id, most)))

    def archived_among(self, row_ids: Sequence[int]) -> set[int]:
        sql = "SELECT seq FROM memories WHERE seq = ANY(%s) AND archived <> 0"
        return {row_id for (row_id,) in self._db.rows(sql, (list(row_ids),))}

    def to_index(
        self, model: EmbeddingModel, *, after: int, limit: int | None
    ) -> list[tuple[int, bytes]]:
        """Return the rows and vectors after a row that belong in the index.

        Archived memories do not, nor do queued ones or damaged vectors.
        """
        values = (model.model_id, after, model.dimensions, limit)
        return [(row_id, vector) for row_id, vector in self._db.rows(_SELECT_TO_INDEX, values)]

    def iterate(
        self, model_id: int, *, page: int = 1_000
    ) -> Iterator[tuple[str, bytes, float, bytes]]:
        after = BEFORE_ALL
        while rows := self._db.rows(_ITERATE, (model_id, after, page)):
            yield from (tuple(row[1:]) for row in rows)
            after = page_end(rows[-1][0], after=after)

    # The queue -----------------------------------------------------------------------------------
    def is_queue_empty(self) -> bool:
        return self._db.row("SELECT 1 FROM embedding_queue LIMIT 1") is None

    def queued_memories(self, *, after: int, limit: int) -> list[QueuedMemory]:
        rows = self._db.rows(_SELECT_QUEUED, (after, None if limit < 0 else limit))
        return [
            QueuedMemory(
                row_id=row_id,
                text=content,
                is_gone=content is None,
                is_archived=bool(archived),
                is_refused=content is not None and refused == text_hash(content),
            )
            for row_id, content, archived, refused in rows
        ]

    def all_queued(self) -> set[int]:
        """Return the row ids in the embedding queue."""
        return {row_id for (row_id,) in self._db.rows("SELECT seq FROM embedding_queue")}

    def count_queued(self) -> int:
        return int(self._db.value(_COUNT_QUEUED))

    def dequeue(self, row_ids: Iterable[int]) -> None:
        if rows := list(row_ids):
            self._db.run("DELETE FROM embedding_queue WHERE seq = ANY(%s)", (rows,))

    def dequeue_erased(self) -> None:
        """Remove memories that no longer exist from the queue."""
        self._db.run(_DEQUEUE_ERASED)

    def clear_queue(self) -> None:
        self._db.run("DELETE FROM embedding_queue")

    def queue_missing(self, model_id: int) -> int:
        return self._db.run(_QUEUE_MISSING, (model_id,))

    def refuse(self, pending: Iterable[PendingText]) -> None:
        values = [(refused.row_id, text_hash(refused.text)) for refused in pending]
        if values:
            self._db.run_many(_REFUSE, values)

    def forget_refusals(self) -> None:
        self._db.run(
            "UPDATE embedding_queue SET refused_hash = NULL WHERE refused_hash IS NOT NULL"
        )

    def texts_without_vector(self, model_id: int, *, after: int, limit: int) -> list[PendingText]:
        rows = self._db.rows(_SELECT_WITHOUT, (after, model_id, limit))
        return [PendingText(row_id, text) for row_id, text in rows]

    def count_texts_without_vector(self, model_id: int) -> tuple[int, int]:
        row = self._db.row(_COUNT_WITHOUT, (model_id,))
        return (int(row[0]), int(row[1])) if row else (0, 0)

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

    def listed(self, model: EmbeddingModel, row_ids: Sequence[int]) -> list[bytes]:
        """Return the vectors of these rows."""
        values = (list(row_ids), model.model_id, model.dimensions)
        return [vector for (vector,) in self._db.rows(_SELECT_LISTED, values)]

    def newest(self, model: EmbeddingModel, limit: int) -> list[bytes]:
        """Return the newest vectors."""
        rows = self._db.rows(_SELECT_NEWEST, (model.model_id, model.dimensions, limit))
        return [vector for (vector,) in rows]

    # Checking ------------------------------------------------------------------------------------
    def sample(self, model_id: int, size: int) -> list[tuple[int, str]]:
        rows = self._db.rows(_SAMPLE, (model_id, size))
        return [(row_id, memory_id) for row_id, memory_id in rows]

    def sample_with_texts(self, model_id: int, size: int) -> list[tuple[PendingText, Quantized]]:
        return [
            (PendingText(row_id, text), Quantized(scale, data))
            for row_id, text, scale, data in self._db.rows(_SAMPLE_WITH_TEXTS, (model_id, size))
        ]

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

    def count_forgotten(self, model_id: int) -> int:
        """Count the memories that have no vector of a model and are not queued for one."""
        return int(self._db.value(_COUNT_FORGOTTEN, (model_id,)))

    def drop(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Delete vectors, and queue their memories for new ones."""
        rows = list(row_ids)
        sql = "DELETE FROM embeddings WHERE model_id = %s AND seq = ANY(%s)"
        self._db.run(sql, (model_id, rows))
        self._db.run(_QUEUE, (rows,))

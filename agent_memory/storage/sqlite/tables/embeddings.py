"""The tables of embedding models, of vectors by memory and model, and the embedding queue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from agent_memory.models.embedding_rows import EmbeddingModel, PendingText, QueuedMemory
from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.centering import Centred
from agent_memory.storage.quantization import Quantized, cosine, hash_of, text_hash
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sql import Condition
from agent_memory.storage.sqlite.tables import Table

_MODEL_FIELDS: Final = EmbeddingModel._fields
_PAGE: Final = 1_000
_SELECT_MODELS: Final = f"""
SELECT {", ".join(_MODEL_FIELDS)} FROM embedding_models"""
_INSERT_MODEL: Final = """
INSERT INTO embedding_models (model, dimensions, embedder, base_url, state, similarity_floor,
  vector_weight, created_at)
VALUES (?, ?, ?, ?, 'building', ?, ?, ?)"""
# Only if the memory still has the text that was embedded.
_PUT: Final = """
INSERT INTO embeddings (seq, model_id, text_hash, scale, vector)
SELECT seq, ?, ?, ?, ? FROM memories WHERE seq = ? AND content = ?
ON CONFLICT (seq, model_id) DO UPDATE SET
  text_hash = excluded.text_hash, scale = excluded.scale, vector = excluded.vector"""
_SELECT_SAME_TEXT: Final = """
SELECT scale, vector FROM embeddings WHERE model_id = ? AND text_hash = ? LIMIT 1"""
_SELECT_QUEUED: Final = """
SELECT q.seq, CAST(m.content AS BLOB), m.archived, q.refused_hash
FROM embedding_queue AS q LEFT JOIN memories AS m USING (seq)
WHERE q.seq > ? ORDER BY q.seq LIMIT ?"""
_SELECT_WITHOUT: Final = """
SELECT m.seq, CAST(m.content AS BLOB) FROM memories AS m
WHERE m.seq > ? AND NOT EXISTS
  (SELECT 1 FROM embeddings AS e WHERE e.model_id = ? AND e.seq = m.seq)
ORDER BY m.seq LIMIT ?"""
_COUNT_WITHOUT: Final = """
SELECT count(*), coalesce(sum(octet_length(m.content)), 0) FROM memories AS m
WHERE NOT EXISTS (SELECT 1 FROM embeddings AS e WHERE e.model_id = ? AND e.seq = m.seq)"""
_QUEUE_MISSING: Final = """
INSERT OR IGNORE INTO embedding_queue (seq)
SELECT m.seq FROM memories AS m
WHERE NOT EXISTS (SELECT 1 FROM embeddings AS e WHERE e.model_id = ? AND e.seq = m.seq)"""
# The plus sign keeps SQLite from sorting all vectors of the model for each page.
_SELECT_EVERYTHING: Final = """
SELECT e.embedding_id, e.seq, m.id, CAST(m.content AS BLOB), e.text_hash,
  CASE WHEN e.scale > 0 AND e.scale < 1e99 THEN e.vector END, q.seq IS NOT NULL
FROM embeddings AS e LEFT JOIN memories AS m ON m.seq = e.seq
LEFT JOIN embedding_queue AS q ON q.seq = e.seq
WHERE +e.model_id = ? AND e.embedding_id > ? ORDER BY e.embedding_id LIMIT ?"""
# CROSS JOIN: from the queue to its memories, not through all memories if it is empty.
_COUNT_QUEUED: Final = """
SELECT count(*) FROM embedding_queue AS q CROSS JOIN memories AS m ON m.seq = q.seq"""
_COUNT_FORGOTTEN: Final = """
SELECT count(*) FROM memories AS m
WHERE NOT EXISTS (SELECT 1 FROM embeddings AS e WHERE e.model_id = ? AND e.seq = m.seq)
AND m.seq NOT IN (SELECT seq FROM embedding_queue)"""
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
_SELECT_LISTED: Final = """
SELECT vector FROM embeddings
WHERE seq IN (SELECT value FROM json_each(?)) AND model_id = ? AND length(vector) = ?"""
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
_SELECT_NEWEST: Final = """
SELECT vector FROM embeddings WHERE model_id = ? AND length(vector) = ?
ORDER BY embedding_id DESC LIMIT ?"""


class EmbeddingTable(Table):
    """The tables of embedding models, vectors, and the embedding queue."""

    # Models --------------------------------------------------------------------------------------
    def models(self) -> list[EmbeddingModel]:
        return [
            EmbeddingModel(**dict(zip(_MODEL_FIELDS, row, strict=True)))
            for row in self._db.rows(f"{_SELECT_MODELS} ORDER BY state")
        ]

    def add_model(self, model: EmbeddingModel, *, now: datetime) -> int:
        values = (
            model.model, model.dimensions, model.embedder, model.base_url, model.similarity_floor,
            model.vector_weight, format_time(now),
        )  # fmt: skip
        self._db.run(_INSERT_MODEL, values)
        return int(self._db.value("SELECT last_insert_rowid()"))

    def activate(self, model_id: int) -> None:
        self._db.run("UPDATE embedding_models SET state = 'active' WHERE model_id = ?", (model_id,))

    def drop_model(self, model_id: int) -> None:
        self._db.run("DELETE FROM embedding_models WHERE model_id = ?", (model_id,))

    def count_wrong_models(self) -> int:
        """Count the models to which another program gave an invalid number, name, size or state."""
        return int(self._db.value(f"SELECT count(*) {_WRONG_MODELS}"))

    def mend_models(self) -> None:
        """Repair such models as far as their vectors allow, and drop the others."""
        for sql in _MEND_MODELS:
            self._db.run(sql)

    def set_indexed(self, model_id: int, *, is_indexed: bool) -> None:
        sql = (
            "UPDATE embedding_models SET is_indexed = ? WHERE model_id = ? AND is_indexed IS NOT ?"
        )
        self._db.run(sql, (int(is_indexed), model_id, int(is_indexed)))

    # Vectors -------------------------------------------------------------------------------------
    def put(self, model_id: int, pending: PendingText, vector: Quantized) -> bool:
        values = (model_id, text_hash(pending.text), vector.scale, vector.data)
        return self._db.run(_PUT, (*values, pending.row_id, pending.text)) > 0

    def of_same_text(self, model_id: int, text: str) -> Quantized | None:
        row = self._db.row(_SELECT_SAME_TEXT, (model_id, text_hash(text)))
        return None if row is None else Quantized(*row)

    def drop_other_texts(self, row_id: int, text: str) -> list[int]:
        old = "FROM embeddings WHERE seq = ? AND text_hash IS NOT ?"
        values = (row_id, text_hash(text))
        of_models = [model_id for (model_id,) in self._db.rows(f"SELECT model_id {old}", values)]
        if of_models:
            self._db.run(f"DELETE {old}", values)
        return of_models

    def count_orphans(self) -> int:
        """Count the vectors whose model does not exist.

        Other programs leave them behind: SQLite's shell does not enforce foreign keys by default.
        """
        return int(self._db.value(f"SELECT count(*) {_ORPHANS}"))

    def drop_orphans(self) -> None:
        """Delete the vectors whose model does not exist."""
        self._db.run(f"DELETE {_ORPHANS}")

    def get(self, model: EmbeddingModel, row_id: int) -> Quantized | None:
        sql = """SELECT scale, vector FROM embeddings
WHERE model_id = ? AND seq = ? AND length(vector) = ?"""
        row = self._db.row(sql, (model.model_id, row_id, model.dimensions))
        return None if row is None else Quantized(*row)

    def count(self, model_id: int) -> int:
        sql = "SELECT count(*) FROM embeddings WHERE model_id = ?"
        return int(self._db.value(sql, (model_id,)))

    def count_up_to(self, model_id: int, most: int) -> int:
        """Count the vectors of a model, stopping at ``most``."""
        sql = "SELECT count(*) FROM (SELECT 1 FROM embeddings WHERE model_id = ? LIMIT ?)"
        return int(self._db.value(sql, (model_id, most)))

    def archived_among(self, row_ids: Sequence[int]) -> set[int]:
        sql = """SELECT seq FROM memories
WHERE seq IN (SELECT value FROM json_each(?)) AND archived <> 0"""
        return {row_id for (row_id,) in self._db.rows(sql, (to_json(list(row_ids)),))}

    def to_index(self, model: EmbeddingModel, *, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the rows and vectors after a row that belong in the index; -1 for no limit.

        Archived memories do not, nor do queued ones or damaged vectors.
        """
        return self._db.rows(
            # In this order, otherwise SQLite sorts all vectors of the model for each page.
            "SELECT e.seq, e.vector FROM memories AS m"
            " CROSS JOIN embeddings AS e ON e.seq = m.seq AND e.model_id = ?"
            f" WHERE m.seq > ? AND m.archived = 0 AND {_IS_CURRENT} AND length(e.vector) = ?"
            " ORDER BY m.seq LIMIT ?",
            (model.model_id, after, model.dimensions, limit),
        )

    def iterate(
        self, model_id: int, *, page: int = 1_000
    ) -> Iterator[tuple[str, bytes, float, bytes]]:
        after = BEFORE_ALL
        sql = """SELECT m.seq, m.id, e.text_hash, e.scale, e.vector FROM memories AS m
CROSS JOIN embeddings AS e ON e.seq = m.seq AND e.model_id = ?
WHERE m.seq > ? ORDER BY m.seq LIMIT ?"""
        while rows := self._db.rows(sql, (model_id, after, page)):
            yield from (tuple(row[1:]) for row in rows)
            after = page_end(rows[-1][0], after=after)

    # The queue -----------------------------------------------------------------------------------
    def is_queue_empty(self) -> bool:
        return self._db.row("SELECT 1 FROM embedding_queue LIMIT 1") is None

    def queued_memories(self, *, after: int, limit: int) -> list[QueuedMemory]:
        return [
            QueuedMemory(
                row_id=row_id,
                text=_readable(content),
                is_gone=content is None,
                is_archived=bool(archived),
                is_refused=content is not None and refused == hash_of(content),
            )
            for row_id, content, archived, refused in self._db.rows(_SELECT_QUEUED, (after, limit))
        ]

    def all_queued(self) -> set[int]:
        """Return the row ids in the embedding queue."""
        return {row_id for (row_id,) in self._db.rows("SELECT seq FROM embedding_queue")}

    def count_queued(self) -> int:
        return int(self._db.value(_COUNT_QUEUED))

    def dequeue(self, row_ids: Iterable[int]) -> None:
        self._db.run_many(
            "DELETE FROM embedding_queue WHERE seq = ?", ((row_id,) for row_id in row_ids)
        )

    def clear_queue(self) -> None:
        self._db.run("DELETE FROM embedding_queue")

    def queue_missing(self, model_id: int) -> int:
        return self._db.run(_QUEUE_MISSING, (model_id,))

    def refuse(self, pending: Iterable[PendingText]) -> None:
        self._db.run_many(
            "INSERT INTO embedding_queue (seq, refused_hash) VALUES (?, ?)"
            " ON CONFLICT (seq) DO UPDATE SET refused_hash = excluded.refused_hash",
            ((refused.row_id, text_hash(refused.text)) for refused in pending),
        )

    def forget_refusals(self) -> None:
        self._db.run(
            "UPDATE embedding_queue SET refused_hash = NULL WHERE refused_hash IS NOT NULL"
        )

    def texts_without_vector(self, model_id: int, *, after: int, limit: int) -> list[PendingText]:
        while rows := self._db.rows(_SELECT_WITHOUT, (after, model_id, limit)):
            after = page_end(rows[-1][0], after=after)
            texts = [(row_id, _readable(content)) for row_id, content in rows]
            pending = [PendingText(row_id, text) for row_id, text in texts if text is not None]
            if pending:
                return pending
        return []

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
            for row_id, vector in self._db.rows(f"SELECT e.seq, e.vector {_FROM_LISTED}", values)
            if len(vector) == dimensions
        }

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

    def listed(self, model: EmbeddingModel, row_ids: Sequence[int]) -> list[bytes]:
        """Return the vectors of these rows."""
        values = (to_json(list(row_ids)), model.model_id, model.dimensions)
        return [vector for (vector,) in self._db.rows(_SELECT_LISTED, values)]

    def newest(self, model: EmbeddingModel, limit: int) -> list[bytes]:
        """Return the newest vectors."""
        rows = self._db.rows(_SELECT_NEWEST, (model.model_id, model.dimensions, limit))
        return [vector for (vector,) in rows]

    # Checking ------------------------------------------------------------------------------------
    def sample(self, model_id: int, size: int) -> list[tuple[int, str]]:
        return self._db.rows(
            "SELECT m.seq, m.id FROM embeddings AS e JOIN memories AS m ON m.seq = e.seq"
            f" WHERE e.model_id = ? AND m.archived = 0 AND {_IS_CURRENT} ORDER BY random() LIMIT ?",
            (model_id, size),
        )

    def sample_with_texts(self, model_id: int, size: int) -> list[tuple[PendingText, Quantized]]:
        rows = self._db.rows(
            "SELECT m.seq, m.content, e.scale, e.vector FROM embeddings AS e"
            " JOIN memories AS m ON m.seq = e.seq"
            f" WHERE e.model_id = ? AND {_IS_CURRENT} ORDER BY random() LIMIT ?",
            (model_id, size),
        )
        return [
            (PendingText(row_id, text), Quantized(scale, data))
            for row_id, text, scale, data in rows
        ]

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

    def count_forgotten(self, model_id: int) -> int:
        """Count the memories that have no vector of a model and are not queued for one."""
        return int(self._db.value(_COUNT_FORGOTTEN, (model_id,)))

    def drop(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Delete vectors, and queue their memories for new ones."""
        rows = [(row_id,) for row_id in row_ids]
        self._db.run_many(f"DELETE FROM embeddings WHERE model_id = {model_id:d} AND seq = ?", rows)
        self._db.run_many("INSERT OR IGNORE INTO embedding_queue (seq) VALUES (?)", rows)


def _readable(content: bytes | None) -> str | None:
    """Return a text if it is valid: another program can store bytes that are not UTF-8."""
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _fault(row: Sequence[object], dimensions: int) -> str | None:
    memory_id, content, stored_hash, vector, is_queued = row
    if memory_id is None:
        return "an embedding has no memory"
    if not isinstance(vector, bytes) or len(vector) != dimensions or not any(vector):
        return f"the vector of memory {memory_id} is damaged"
    if isinstance(content, bytes) and stored_hash != hash_of(content) and not is_queued:
        return f"the embedding of memory {memory_id} does not match its text"
    return None

"""The tables of embedding models, of vectors by memory and model, and the embedding queue."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

from agent_memory.models.embedding_rows import EmbeddingModel, PendingText, QueuedMemory
from agent_memory.models.times import format_time
from agent_memory.storage.quantization import Quantized, code_of, hash_of, text_hash
from agent_memory.storage.records import BEFORE_ALL, NO_LIMIT, page_end
from agent_memory.storage.sql import Table
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory.models.agent import Problem
    from agent_memory.storage.code_search import Cell

_PAGE: Final = 1_000
_SELECT_MODELS: Final = f"""
SELECT {", ".join(EmbeddingModel._fields)} FROM embedding_models ORDER BY state"""
_INSERT_MODEL: Final = """
INSERT INTO embedding_models (model, dimensions, embedder, base_url, state, similarity_floor,
  vector_weight, created_at)
VALUES (?, ?, ?, ?, 'building', ?, ?, ?) RETURNING model_id"""
_SET_INDEXED: Final = """
UPDATE embedding_models SET is_indexed = ? WHERE model_id = ? AND is_indexed IS DISTINCT FROM ?"""
# Only if the memory still has the text that was embedded.
_PUT: Final = """
INSERT INTO embeddings (seq, model_id, text_hash, scale, vector)
SELECT seq, ?, ?, ?, ? FROM memories WHERE seq = ? AND content = ?
ON CONFLICT ({key}) DO UPDATE SET
  text_hash = excluded.text_hash, scale = excluded.scale, vector = excluded.vector"""
_SELECT_SAME_TEXT: Final = """
SELECT scale, vector FROM embeddings WHERE model_id = ? AND text_hash = ? LIMIT 1"""
_DROP_OTHER_TEXTS: Final = """
DELETE FROM embeddings WHERE seq = ? AND text_hash IS DISTINCT FROM ? RETURNING model_id"""
_ITERATE: Final = """
SELECT m.seq, m.id, e.text_hash, e.scale, e.vector
FROM memories AS m CROSS JOIN embeddings AS e
WHERE e.seq = m.seq AND e.model_id = ? AND m.seq > ? ORDER BY m.seq LIMIT ?"""
_SELECT_QUEUED: Final = """
SELECT q.seq, {content}, m.archived, q.refused_hash
FROM embedding_queue AS q LEFT JOIN memories AS m ON m.seq = q.seq
WHERE q.seq > ? ORDER BY q.seq LIMIT ?"""
# CROSS JOIN: from the queue to its memories, not through all memories if it is empty.
_COUNT_QUEUED: Final = """
SELECT count(*) FROM embedding_queue AS q CROSS JOIN memories AS m WHERE m.seq = q.seq"""
_WITHOUT_VECTOR: Final = """
FROM memories AS m
WHERE NOT EXISTS (SELECT 1 FROM embeddings AS e WHERE e.model_id = ? AND e.seq = m.seq)"""
_COUNT_WITHOUT: Final = f"""
SELECT count(*), coalesce(sum(octet_length(m.content)), 0) {_WITHOUT_VECTOR}"""
_QUEUE_MISSING: Final = f"""
INSERT INTO embedding_queue (seq) SELECT m.seq {_WITHOUT_VECTOR} ON CONFLICT DO NOTHING"""
_SELECT_WITHOUT: Final = f"""
SELECT m.seq, {{content}} {_WITHOUT_VECTOR} AND m.seq > ? ORDER BY m.seq LIMIT ?"""
_COUNT_FORGOTTEN: Final = f"""
SELECT count(*) {_WITHOUT_VECTOR}
  AND NOT EXISTS (SELECT 1 FROM embedding_queue AS q WHERE q.seq = m.seq)"""
_REFUSE: Final = """
INSERT INTO embedding_queue (seq, refused_hash) VALUES (?, ?)
ON CONFLICT ({key}) DO UPDATE SET refused_hash = excluded.refused_hash"""
_QUEUE: Final = "INSERT INTO embedding_queue (seq) VALUES (?) ON CONFLICT DO NOTHING"
# A queued memory may have a vector of another text.
_SAMPLE: Final = """
SELECT {columns} FROM embeddings AS e JOIN memories AS m ON m.seq = e.seq
WHERE e.model_id = ? AND NOT EXISTS (SELECT 1 FROM embedding_queue AS q WHERE q.seq = e.seq)
{condition} ORDER BY random() LIMIT ?"""


class EmbeddingTable(Table):
    """The tables of embedding models, vectors, and the embedding queue."""

    _KEY: ClassVar[str]
    """The unique columns of the table of vectors: one for each memory and model."""
    _NUMBER: ClassVar[str]
    """The column that numbers the vectors in the order in which they came."""

    # Models --------------------------------------------------------------------------------------
    def models(self) -> list[EmbeddingModel]:
        return [EmbeddingModel._make(row) for row in self._db.rows(_SELECT_MODELS)]

    def add_model(self, model: EmbeddingModel, *, now: datetime) -> int:
        values = (
            model.model, model.dimensions, model.embedder, model.base_url, model.similarity_floor,
            model.vector_weight, format_time(now),
        )  # fmt: skip
        return int(self._db.rows(_INSERT_MODEL, values)[0][0])

    def activate(self, model_id: int) -> None:
        self._db.run("UPDATE embedding_models SET state = 'active' WHERE model_id = ?", (model_id,))

    def drop_model(self, model_id: int) -> None:
        self._db.run("DELETE FROM embedding_models WHERE model_id = ?", (model_id,))

    def set_indexed(self, model_id: int, *, is_indexed: bool) -> None:
        self._db.run(_SET_INDEXED, (int(is_indexed), model_id, int(is_indexed)))

    # Vectors -------------------------------------------------------------------------------------
    def put(self, model_id: int, pending: PendingText, vector: Quantized) -> bool:
        values = (model_id, text_hash(pending.text), vector.scale, vector.data)
        sql = _PUT.format(key=self._KEY)
        return self._db.run(sql, (*values, pending.row_id, pending.text)) > 0

    def of_same_text(self, model_id: int, text: str) -> Quantized | None:
        row = self._db.row(_SELECT_SAME_TEXT, (model_id, text_hash(text)))
        return None if row is None else Quantized(*row)

    def drop_other_texts(self, row_id: int, text: str) -> list[int]:
        rows = self._db.rows(_DROP_OTHER_TEXTS, (row_id, text_hash(text)))
        return [model_id for (model_id,) in rows]

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
        sql = "SELECT count(*) FROM (SELECT 1 FROM embeddings WHERE model_id = ? LIMIT ?) AS listed"
        return int(self._db.value(sql, (model_id, most)))

    def archived_among(self, row_ids: Sequence[int]) -> set[int]:
        sql = f"SELECT seq FROM memories WHERE seq {self._db.AMONG} AND archived <> 0"
        return {row_id for (row_id,) in self._db.rows(sql, (self._db.listed(row_ids),))}

    def iterate(
        self, model_id: int, *, page: int = _PAGE
    ) -> Iterator[tuple[str, bytes, float, bytes]]:
        after = BEFORE_ALL
        while rows := self._db.rows(_ITERATE, (model_id, after, page)):
            yield from (tuple(row[1:]) for row in rows)
            after = page_end(rows[-1][0], after=after)

    def listed(self, model: EmbeddingModel, row_ids: Sequence[int]) -> list[bytes]:
        """Return the vectors of these rows."""
        sql = f"""SELECT vector FROM embeddings
WHERE seq {self._db.AMONG} AND model_id = ? AND length(vector) = ? ORDER BY seq"""
        values = (self._db.listed(row_ids), model.model_id, model.dimensions)
        return [vector for (vector,) in self._db.rows(sql, values)]

    def newest(self, model: EmbeddingModel, limit: int) -> list[bytes]:
        """Return the newest vectors."""
        sql = f"""SELECT vector FROM embeddings WHERE model_id = ? AND length(vector) = ?
ORDER BY {self._NUMBER} DESC LIMIT ?"""
        rows = self._db.rows(sql, (model.model_id, model.dimensions, limit))
        return [vector for (vector,) in rows]

    @abstractmethod
    def to_index(self, model: EmbeddingModel, *, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the rows and vectors after a row that belong in the index.

        Archived memories do not, nor do queued ones or damaged vectors.
        """

    # The queue -----------------------------------------------------------------------------------
    def is_queue_empty(self) -> bool:
        return self._db.row("SELECT 1 FROM embedding_queue LIMIT 1") is None

    def all_queued(self) -> set[int]:
        """Return the row ids in the embedding queue."""
        return {row_id for (row_id,) in self._db.rows("SELECT seq FROM embedding_queue")}

    def count_queued(self) -> int:
        return int(self._db.value(_COUNT_QUEUED))

    def queued_memories(self, *, after: int, limit: int) -> list[QueuedMemory]:
        sql = _SELECT_QUEUED.format(content=self._bytes("m.content"))
        rows = self._db.rows(sql, (after, NO_LIMIT if limit < 0 else limit))
        return [
            QueuedMemory(
                row_id=row_id,
                text=_readable(content),
                is_gone=content is None,
                is_archived=bool(archived),
                is_refused=content is not None and refused == hash_of(content),
            )
            for row_id, content, archived, refused in rows
        ]

    def texts_without_vector(self, model_id: int, *, after: int, limit: int) -> list[PendingText]:
        sql = _SELECT_WITHOUT.format(content=self._bytes("m.content"))
        while rows := self._db.rows(sql, (model_id, after, limit)):
            after = page_end(rows[-1][0], after=after)
            texts = [(row_id, _readable(content)) for row_id, content in rows]
            pending = [PendingText(row_id, text) for row_id, text in texts if text is not None]
            if pending:
                return pending
        return []

    def dequeue(self, row_ids: Iterable[int]) -> None:
        sql = f"DELETE FROM embedding_queue WHERE seq {self._db.AMONG}"
        self._db.run(sql, (self._db.listed(row_ids),))

    def clear_queue(self) -> None:
        self._db.run("DELETE FROM embedding_queue")

    def queue_missing(self, model_id: int) -> int:
        return self._db.run(_QUEUE_MISSING, (model_id,))

    def refuse(self, pending: Iterable[PendingText]) -> None:
        values = [(refused.row_id, text_hash(refused.text)) for refused in pending]
        self._db.run_many(_REFUSE.format(key=self._db.ROW_KEY), values)

    def forget_refusals(self) -> None:
        self._db.run(
            "UPDATE embedding_queue SET refused_hash = NULL WHERE refused_hash IS NOT NULL"
        )

    def count_texts_without_vector(self, model_id: int) -> tuple[int, int]:
        count, size = self._db.rows(_COUNT_WITHOUT, (model_id,))[0]
        return int(count), int(size)

    # Checking ------------------------------------------------------------------------------------
    def sample(self, model_id: int, size: int) -> list[tuple[int, str]]:
        sql = _SAMPLE.format(columns="m.seq, m.id", condition="AND m.archived = 0")
        return [(row_id, memory_id) for row_id, memory_id in self._db.rows(sql, (model_id, size))]

    def sample_with_texts(self, model_id: int, size: int) -> list[tuple[PendingText, Quantized]]:
        sql = _SAMPLE.format(columns="m.seq, m.content, e.scale, e.vector", condition="")
        return [
            (PendingText(row_id, text), Quantized(scale, data))
            for row_id, text, scale, data in self._db.rows(sql, (model_id, size))
        ]

    def find_forgotten(self, models: Iterable[EmbeddingModel]) -> list[Problem]:
        """Report memories that have no vector of the active model and are not queued for one."""
        from agent_memory.models.agent import Problem  # noqa: PLC0415 - a search needs no models

        lack = ("memory has no embedding and is", "memories have no embedding and are")
        return [
            Problem(kind="missing_embedding", detail=f"{counted(count, *lack)} not queued for one")
            for model in models
            if model.state == "active"
            and (count := int(self._db.value(_COUNT_FORGOTTEN, (model.model_id,))))
        ]

    def count_wrong_codes(
        self, model: EmbeddingModel, codes: Mapping[int, tuple[int, bytes]], cells: Iterable[Cell]
    ) -> int:
        """Count the codes of an index, given with their cells, that do not match the vectors."""
        numbers = {cell.number for cell in cells}
        # A code in no cell is never searched.
        left = {row_id: code if cell in numbers else b"" for row_id, (cell, code) in codes.items()}
        wrong, after = 0, BEFORE_ALL
        while rows := self.to_index(model, after=after, limit=_PAGE):
            wrong += sum(left.pop(row_id, None) != code_of(data) for row_id, data in rows)
            after = page_end(rows[-1][0], after=after)
        # Queued memories may still be there.
        return wrong + len(left.keys() - self.all_queued())

    def drop(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Delete vectors, and queue their memories for new ones."""
        rows = list(row_ids)
        sql = f"DELETE FROM embeddings WHERE model_id = ? AND seq {self._db.AMONG}"
        self._db.run(sql, (model_id, self._db.listed(rows)))
        self._db.run_many(_QUEUE, [(row_id,) for row_id in rows])


def _readable(content: bytes | None) -> str | None:
    """Return a text if it is valid: another program can store bytes that are not UTF-8."""
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None

"""The vector index of PostgreSQL finds what that of a file finds, with the same cosines."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from side_by_side import NOW, Pair, memory_of, opened_pair

from agent_memory.models.embedding_rows import EmbeddingModel, PendingText
from agent_memory.storage import code_search
from agent_memory.storage.cells import centres_of
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import EVERYTHING, NOT_ARCHIVED, AmongIds, Equals, Filter
from agent_memory.storage.quantization import Quantized, quantize
from agent_memory.storage.records import QueryVector

SIZE = 96
COUNT = 400
FILTERS: list[Filter] = [
    EVERYTHING,
    NOT_ARCHIVED,
    NOT_ARCHIVED.and_also(Equals("user_id", "ann")),
    AmongIds(("mem-3", "mem-7", "mem-11")),
]


@pytest.fixture
def pair(postgres: PostgresServer, tmp_path: Path) -> Iterator[Pair]:
    with opened_pair(postgres, tmp_path) as opened:
        yield opened


class Vectors:
    """Vectors around some centres, the same each time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        around = random.Random(0)
        self._centres = [[around.gauss(0.3, 1) for _ in range(SIZE)] for _ in range(12)]

    def make(self) -> Quantized:
        centre = self._random.choice(self._centres)
        return quantize([number + self._random.gauss(0, 0.7) for number in centre])


def model_of(engine: Engine) -> EmbeddingModel:
    (model,) = engine.embeddings.models()
    return model


def fill(pair: Pair) -> list[int]:
    """Store memories with vectors of an active model, in both."""
    vectors = Vectors(1)
    memories = [
        memory_of(
            number,
            f"fact number {number}",
            user_id="ann" if number % 3 else None,
            archived=number % 17 == 0,
        )
        for number in range(COUNT)
    ]
    rows = pair.store(memories)
    made = [vectors.make() for _ in rows]
    blank = EmbeddingModel(0, "axes", SIZE, "test", None, "building", 0.2, 0.5, False)
    for engine in pair.both:
        with engine.write():
            model_id = engine.embeddings.add_model(blank, now=NOW)
            for row_id, memory, vector in zip(rows, memories, made, strict=True):
                assert engine.embeddings.put(model_id, PendingText(row_id, memory.content), vector)
            engine.embeddings.dequeue(rows)
            engine.embeddings.activate(model_id)
            assert engine.vectors.is_missing(model_of(engine))
            engine.vectors.begin(model_of(engine))
            if (sample := engine.vectors.cells_due(model_of(engine))) is not None:
                centres = centres_of(sample.codes, sample.cells)
                engine.vectors.make_cells(model_of(engine), centres, vectors=sample.vectors)
            assert not engine.vectors.build(model_of(engine), 1000)
        assert not engine.vectors.is_missing(model_of(engine))
    return rows


def nearest(engine: Engine, query: bytes, filters: Filter) -> list[tuple[int, float]]:
    """Return the nearest memories and their cosines, best first."""
    with engine.read():
        centred = engine.vectors.center(QueryVector(model_of(engine), query))
        outcome = engine.vectors.nearest(centred, filters)
    assert outcome.degraded is None
    return list(outcome.cosines.items())


def assert_both_find_the_same(pair: Pair) -> None:
    queries = Vectors(2)
    for _ in range(10):
        query = queries.make().data
        for filters in FILTERS:
            of_file, of_server = (nearest(engine, query, filters) for engine in pair.both)
            assert of_file
            rows, cosines = zip(*of_file, strict=True)
            assert [row for row, _ in of_server] == list(rows)
            # numpy compares them in a file, and rounds otherwise.
            assert [cosine for _, cosine in of_server] == pytest.approx(cosines, abs=1e-6)


class TestNearest:
    def test_every_vector_is_compared_where_they_are_few(self, pair: Pair) -> None:
        fill(pair)
        assert_both_find_the_same(pair)

    def test_codes_name_the_same_rows_where_they_are_many(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(code_search, "EXACT_UP_TO", 50)
        monkeypatch.setattr(code_search, "NUMBERS_FOR_NAMED", 0)  # a file's alone are compared so
        fill(pair)
        assert_both_find_the_same(pair)

    def test_cells_hold_the_same_rows(self, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(code_search, "EXACT_UP_TO", 50)
        monkeypatch.setattr(code_search, "NUMBERS_FOR_NAMED", 0)  # a file's alone are compared so
        monkeypatch.setattr(code_search, "SORTED_FROM", 300)
        monkeypatch.setattr(code_search, "CELL_SIZE", 20)
        monkeypatch.setattr(code_search, "CELLS_ASKED", 1)
        fill(pair)
        model = model_of(pair.server)
        database = pair.server.database
        assert database.value("SELECT count(DISTINCT cell) FROM embedding_codes") > 10
        assert_both_find_the_same(pair)
        assert pair.server.vectors.problems_of(model) == []

    def test_new_cells_are_filled_by_and_by_and_found_from_meanwhile(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(code_search, "EXACT_UP_TO", 50)
        monkeypatch.setattr(code_search, "NUMBERS_FOR_NAMED", 0)  # a file's alone are compared so
        fill(pair)
        monkeypatch.setattr(code_search, "SORTED_FROM", 300)
        monkeypatch.setattr(code_search, "CELL_SIZE", 20)
        monkeypatch.setattr(code_search, "CELLS_ASKED", 4)
        for engine in pair.both:
            model = model_of(engine)
            with engine.read():
                sample = engine.vectors.cells_due(model)
            assert sample is not None
            centres = centres_of(sample.codes, sample.cells)
            with engine.write():
                engine.vectors.make_cells(model, centres, vectors=sample.vectors)
        model = model_of(pair.server)
        turns = 0
        while pair.server.vectors.is_unsorted(model):
            turns += 1
            assert_both_find_the_same(pair)
            for engine in pair.both:
                with engine.write():
                    engine.vectors.sort(model_of(engine), 100)
        assert turns > 2
        assert pair.server.vectors.cells_due(model) is None
        assert pair.server.vectors.problems_of(model) == []


class TestFollowing:
    def test_codes_go_with_their_vectors_and_memories(self, pair: Pair) -> None:
        rows = fill(pair)
        model = model_of(pair.server)
        count = "SELECT count(*) FROM embedding_codes"
        before = pair.server.database.value(count)
        with pair.server.write():
            pair.server.database.run("DELETE FROM memories WHERE seq = %s", (rows[1],))
            assert pair.server.embeddings.drop_other_texts(rows[2], "another") == [model.model_id]
        assert pair.server.database.value(count) == before - 2
        with pair.server.write():
            pair.server.vectors.forget_deleted()
        assert [queued.row_id for queued in self.queued(pair)] == [rows[2]]
        with pair.server.write():
            pair.server.embeddings.drop_model(model.model_id)
        assert pair.server.database.value(count) == 0
        assert pair.server.database.value("SELECT count(*) FROM embedding_cells") == 0

    def queued(self, pair: Pair) -> list[PendingText]:
        memories = pair.server.embeddings.queued_memories(after=0, limit=-1)
        return [PendingText(memory.row_id, memory.text or "") for memory in memories]

    def test_archived_memories_leave_and_come_back(self, pair: Pair) -> None:
        rows = fill(pair)
        model = model_of(pair.server)
        vector = pair.server.embeddings.get(model, rows[5])
        assert vector is not None
        assert nearest(pair.server, vector.data, NOT_ARCHIVED)[0][0] == rows[5]
        with pair.server.write():
            pair.server.memory_rows.archive(["mem-5"], archived=True, now=NOW)
            pair.server.vectors.leave(model, [rows[5]])
            pair.server.embeddings.dequeue([rows[5]])
        assert rows[5] not in dict(nearest(pair.server, vector.data, NOT_ARCHIVED))
        assert nearest(pair.server, vector.data, EVERYTHING)[0][0] == rows[5]
        with pair.server.write():
            pair.server.memory_rows.archive(["mem-5"], archived=False, now=NOW)
            pair.server.vectors.enter(model, [(rows[5], vector.data)])
            pair.server.embeddings.dequeue([rows[5]])
        assert nearest(pair.server, vector.data, NOT_ARCHIVED)[0][0] == rows[5]
        assert pair.server.vectors.problems_of(model) == []

    @pytest.mark.parametrize(
        ("damage", "problem"),
        [
            ("UPDATE embedding_codes SET code = ~code WHERE seq = 4", "stale_vector_index"),
            ("UPDATE embedding_codes SET cell = 99 WHERE seq = 4", "stale_vector_index"),
            ("DELETE FROM embedding_codes WHERE seq = 4", "stale_vector_index"),
            ("UPDATE embeddings SET vector = '' WHERE seq = 4", "wrong_embedding"),
            (
                "UPDATE embeddings SET text_hash = uuid_send(gen_random_uuid()) WHERE seq = 4",
                "wrong_embedding",
            ),
        ],
    )
    def test_damage_is_found_and_repaired(self, pair: Pair, damage: str, problem: str) -> None:
        fill(pair)
        model = model_of(pair.server)
        assert pair.server.vectors.problems_of(model) == []
        with pair.server.write():
            assert pair.server.database.run(damage) == 1
        assert problem in {one.kind for one in pair.server.vectors.problems_of(model)}
        with pair.server.write():
            pair.server.vectors.repair_model(model)
        assert pair.server.vectors.problems_of(model_of(pair.server)) == []

    def test_without_sqlite_vec_the_cosines_are_the_same_and_it_is_said(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(pair)
        query = QueryVector(model_of(pair.file), Vectors(3).make().data)
        with pair.file.read():
            expected = pair.file.vectors.nearest(query, NOT_ARCHIVED).cosines
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
        with pair.server.read():
            outcome = pair.server.vectors.nearest(query, NOT_ARCHIVED)
        assert outcome.degraded is not None
        assert outcome.degraded.startswith("sqlite-vec is not installed")
        assert outcome.cosines == pytest.approx(expected, abs=1e-6)

"""The requirements for finding texts in every engine: by words, by fingerprint, by vectors."""

from __future__ import annotations

from array import array

import pytest

from agent_memory.conformance.engine_contract.cases import NOW, memory_of, stored
from agent_memory.models.agent import MigrationInfo
from agent_memory.models.embedding_rows import EmbeddingModel, PendingText
from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import EVERYTHING, NOT_ARCHIVED, AmongIds, Equals
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import Alternative, QueryVector

SIZE = 64


def rows_found(engine: Engine, query: str) -> list[int]:
    """Return the rows that match a query by keyword, best first."""
    with engine.read():
        terms = engine.keywords.terms_of(query)
        counts = engine.keywords.frequencies(terms)
        best, _ = engine.keywords.candidates(terms, counts, NOT_ARCHIVED, needed=10, limit=10)
        return best


class KeywordContract:
    """Memories are found by their words."""

    @pytest.mark.parametrize(
        ("content", "query"),
        [
            ("We migrated the databases", "database migration"),
            ("Grüße aus Köln", "GRÜSSE Köln"),
            ("今日は東京に行きます", "東京"),
            ("use c++ and don't", "c++"),
            ("the NEAR operator AND (brackets", 'NEAR("x" AND'),
        ],
    )
    def test_words_are_found_as_people_write_them(
        self, engine: Engine, content: str, query: str
    ) -> None:
        (row_id, _) = stored(engine, memory_of(1, content), memory_of(2, "something else"))
        assert rows_found(engine, query) == [row_id]

    def test_the_index_follows_changes_deletions_and_the_archive(self, engine: Engine) -> None:
        first, second = stored(engine, memory_of(1, "red apple"), memory_of(2, "red pear"))
        with engine.write():
            engine.memories.update(first, {"content": "green apple"}, now=NOW)
        assert rows_found(engine, "red") == [second]
        with engine.write():
            engine.memory_rows.archive(["mem-2"], archived=True, now=NOW)
        assert rows_found(engine, "red") == []
        with engine.write():
            engine.memory_rows.delete("mem-1")
        assert rows_found(engine, "apple") == []

    def test_how_rare_a_word_is_is_asked_anew_after_each_read(self, engine: Engine) -> None:
        """A count is kept for one read, and not past it."""
        stored(engine, memory_of(1, "red apple"))
        terms = engine.keywords.terms_of("apple")
        with engine.read():
            assert engine.keywords.frequencies(terms) == [1]
            assert engine.keywords.frequencies(terms) == [1]
        with engine.write():
            engine.memories.insert(memory_of(2, "green apple"))
            assert engine.keywords.frequencies(terms) == [2]

    def test_rare_words_come_first(self, engine: Engine) -> None:
        many = [memory_of(n, f"plan for week {n}") for n in range(1, 30)]
        rows = stored(engine, *many, memory_of(30, "plan for the kestrel"))
        assert rows_found(engine, "plan kestrel")[0] == rows[-1]

    def test_words_and_their_counts_are_told(self, engine: Engine) -> None:
        (row_id,) = stored(engine, memory_of(1, "tea, tea and coffee?"))
        terms = engine.keywords.terms_of("tea coffee milk")
        counted = engine.keywords.words([row_id], terms)[row_id]
        assert counted.counts == {0: 2, 1: 1}
        assert counted.asks

    def test_words_of_long_texts_follow_what_is_changed(self, engine: Engine) -> None:
        filler = " ".join(f"word{n}" for n in range(299))
        texts = [f"tea {filler}", f"coffee {filler}", "お茶を飲みます", "short tea"]
        rows = stored(engine, *(memory_of(n, text) for n, text in enumerate(texts)))
        terms = engine.keywords.terms_of("tea coffee お茶")

        def places() -> list[list[int]]:
            counted = engine.keywords.words(rows, terms)
            return [list(counted[row_id].counts) for row_id in rows]

        for _ in range(3):
            assert places() == [[0], [1], [2], [0]]
        with engine.write():
            engine.memories.update(rows[0], {"content": f"milk {filler}"}, now=NOW)
            engine.memories.update(rows[1], {"tags": ["tea"]}, now=NOW)
        assert places() == places() == [[], [0, 1], [2], [0]]

    @pytest.mark.parametrize("query", ["", "  ", "?!", "\x00", '"', "-", "x" * 20_000])
    def test_no_text_is_an_error(self, engine: Engine, query: str) -> None:
        stored(engine, memory_of(1))
        assert rows_found(engine, query) == []


class SimilarityContract:
    """Texts that say the same are found."""

    def test_what_says_much_of_it_is_found(self, engine: Engine) -> None:
        stored(
            engine,
            memory_of(1, "the deploy script lives in tools/deploy.sh on main"),
            memory_of(2, "lunch is at noon"),
        )
        text = "the deploy script lives in tools/deploy.sh on the main branch"
        duplicates = engine.similarity.similar(DuplicateQuery(text, None, None))
        assert [duplicate.memory_id for duplicate in duplicates] == ["mem-1"]
        other_user = engine.similarity.similar(DuplicateQuery(text, "ann", None))
        assert other_user == []


def axis(number: int) -> array[float]:
    """Return a vector that points along one axis, and a little along the next."""
    values = array("f", [0.0] * SIZE)
    values[number % SIZE], values[(number + 1) % SIZE] = 1.0, 0.1
    return values


class VectorContract:
    """The nearest vectors are found."""

    @pytest.fixture
    def model(self, engine: Engine) -> EmbeddingModel:
        """Give the engine 20 memories with vectors of an active model."""
        memories = [memory_of(n, user_id="ann" if n % 2 else "ben") for n in range(20)]
        rows = stored(engine, *memories)
        blank = EmbeddingModel(
            model_id=0,
            model="axes",
            dimensions=SIZE,
            embedder="test",
            base_url=None,
            state="building",
            is_indexed=False,
            similarity_floor=0.2,
            vector_weight=0.5,
        )
        with engine.write():
            model_id = engine.embeddings.add_model(blank, now=NOW)
            (model,) = engine.embeddings.models()
            if engine.vectors.is_missing(model):
                engine.vectors.begin(model)
                assert not engine.vectors.build(model, 1000)
            (model,) = engine.embeddings.models()
            pairs = [
                (PendingText(row_id, memory.content), quantize(axis(number)))
                for number, (row_id, memory) in enumerate(zip(rows, memories, strict=True))
            ]
            for pending, vector in pairs:
                assert engine.embeddings.put(model_id, pending, vector)
            engine.vectors.enter(model, [(pending.row_id, v.data) for pending, v in pairs])
            engine.embeddings.dequeue(rows)
            engine.embeddings.activate(model_id)
            engine.agent.set_backend("vector", migration=MigrationInfo(), now=NOW)
            (model,) = engine.embeddings.models()
        assert model.state == "active"
        return model

    def nearest(self, engine: Engine, model: EmbeddingModel, number: int) -> list[str]:
        query = QueryVector(model, quantize(axis(number)).data)
        with engine.read():
            cosines = engine.vectors.nearest(query, NOT_ARCHIVED).cosines
            best = sorted(cosines, key=lambda row_id: -cosines[row_id])
            return [engine.memories.ids_of([row_id])[0] for row_id in best[:2]]

    def test_the_nearest_come_first(self, engine: Engine, model: EmbeddingModel) -> None:
        assert self.nearest(engine, model, 5)[0] == "mem-5"
        assert engine.vectors.problems_of(model) == []
        assert engine.embeddings.count(model.model_id) == 20
        assert engine.embeddings.is_queue_empty()

    def test_filters_hold_before_the_nearest_are_chosen(
        self, engine: Engine, model: EmbeddingModel
    ) -> None:
        query = QueryVector(model, quantize(axis(4)).data)
        filters = NOT_ARCHIVED.and_also(Equals("user_id", "ann"))
        with engine.read():
            rows = engine.vectors.nearest(query, filters).cosines
            ids = {engine.memories.ids_of([row_id])[0] for row_id in rows}
        assert ids == {f"mem-{n}" for n in range(1, 20, 2)}
        with engine.read():
            only = engine.vectors.nearest(query, AmongIds(("mem-7",))).cosines
        assert len(only) == 1

    def test_a_change_queues_the_memory_and_hides_its_vector(
        self, engine: Engine, model: EmbeddingModel
    ) -> None:
        row_id = engine.memories.row_id_of("mem-5")
        assert row_id is not None
        with engine.write():
            engine.memories.update(row_id, {"content": "new"}, now=NOW)
        (queued,) = engine.embeddings.queued_memories(after=0, limit=-1)
        assert (queued.row_id, queued.text, queued.is_gone) == (row_id, "new", False)
        assert self.nearest(engine, model, 5)[0] != "mem-5"
        with engine.write():
            assert engine.embeddings.drop_other_texts(row_id, "new") == [model.model_id]
        assert engine.embeddings.get(model, row_id) is None
        waiting = engine.embeddings.texts_without_vector(model.model_id, after=0, limit=5)
        assert waiting == [PendingText(row_id, "new")]

    def test_a_model_goes_with_its_vectors(self, engine: Engine, model: EmbeddingModel) -> None:
        with engine.write():
            engine.embeddings.drop_model(model.model_id)
            engine.vectors.drop(model)
        assert engine.embeddings.models() == []
        assert engine.embeddings.count(model.model_id) == 0


class VocabularyContract:
    """The words of the store are known, and the texts that contain them."""

    def test_words_are_found_by_themselves_and_by_their_beginning(self, engine: Engine) -> None:
        texts = ("tea and teapots", "tea with milk", "coffee")
        stored(engine, *(memory_of(number, text) for number, text in enumerate(texts, 1)))
        with engine.read():
            keywords = engine.keywords
            assert keywords.tokens(["Teapots", "two words", ""]) == ["teapot", "", ""]
            assert keywords.vocabulary(["milk", "sugar"], ["tea"], EVERYTHING) == {
                "milk": 1,
                "tea": 2,
                "teapot": 1,
            }

    def test_examples_have_all_words_in_their_order_where_asked(self, engine: Engine) -> None:
        stored(engine, memory_of(1, "a road trip"), memory_of(2, "a trip by road"))
        both, phrase = (
            Alternative(("road", "trip"), "road trip", is_phrase=is_phrase)
            for is_phrase in (False, True)
        )
        three = Alternative(("a", "road", "trip"), "a road trip", is_phrase=True)
        with engine.read():
            assert len(engine.keywords.examples(both, NOT_ARCHIVED, limit=5)) == 2
            assert len(engine.keywords.examples(three, NOT_ARCHIVED, limit=5)) == 1
            (text,) = engine.keywords.examples(phrase, NOT_ARCHIVED, limit=5)
            assert "a road trip" in text

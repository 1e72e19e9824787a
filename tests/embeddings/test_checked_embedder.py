"""CheckedEmbedder: embeds each text once, and lets no unfit answer through."""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from embedding_server import text_vector

from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.usage import EmbeddingUsage
from agent_memory.errors import ConfigurationError, EmbeddingError
from agent_memory.models.embedding_traits import DEFAULT_VECTOR_WEIGHT, MODEL_TRAITS


class Local:
    """A plugin's embedder: answers as `answer` says, and notes what it was asked."""

    def __init__(self, answer: Callable[[list[str]], Any] | None = None) -> None:
        self.model = "local-model"
        self.dimensions = 8
        self.asked: list[list[str]] = []
        self.answer = answer or (lambda texts: [text_vector(text, 8) for text in texts])

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        return self.answer(list(texts))


def test_a_text_twice_in_a_call_is_embedded_once() -> None:
    inner = Local()
    vectors = CheckedEmbedder(inner).embed(["red", "blue", "red"])
    assert inner.asked == [["red", "blue"]]
    assert vectors[0] == vectors[2] != vectors[1]


def test_an_embedder_may_change_the_list_that_it_gets() -> None:
    class Emptying(Local):
        def embed(self, texts: Sequence[str]) -> Any:
            vectors = super().embed(texts)
            cast("list[str]", texts).clear()
            return vectors

    red, blue = CheckedEmbedder(Emptying()).embed(["red", "blue"])
    assert [red, blue] == CheckedEmbedder(Local()).embed(["red", "blue"])
    with pytest.raises(EmbeddingError, match="0 vectors for 1 texts"):
        CheckedEmbedder(Local(lambda _: [])).embed(["red"])


def test_a_text_of_an_earlier_call_is_not_embedded_again() -> None:
    inner = Local()
    embedder = CheckedEmbedder(inner)
    first = embedder.embed(["red"])
    assert embedder.embed(["blue", "red"])[1] == first[0]
    assert inner.asked == [["red"], ["blue"]]


class Telling(Local):
    """A plugin's embedder that tells questions from passages."""

    def embed_queries(self, texts: Sequence[str]) -> Any:
        return self.embed([f"query: {text}" for text in texts])


def test_a_query_is_embedded_as_one_where_the_embedder_can() -> None:
    inner = Telling()
    embedder = CheckedEmbedder(inner)
    (passage,) = embedder.embed(["red"])
    (query,) = embedder.embed_queries(["red"])  # not the cached passage
    assert inner.asked == [["red"], ["query: red"]]
    assert (passage, query) == tuple(
        array("f", text_vector(text, 8)) for text in ("red", "query: red")
    )
    assert embedder.embed_queries(["red"]) == [query]
    assert len(inner.asked) == 2


def test_a_query_is_a_text_like_others_where_the_embedder_tells_none_apart() -> None:
    inner = Local()
    embedder = CheckedEmbedder(inner)
    assert embedder.embed_queries(["red"]) == embedder.embed(["red"])
    assert inner.asked == [["red"]]


@pytest.mark.parametrize("off", [{"cache_size": 0}, {"cache_ttl_seconds": 0.0}])
def test_the_cache_can_be_switched_off(off: dict[str, Any]) -> None:
    inner = Local()
    embedder = CheckedEmbedder(inner, **off)
    embedder.embed(["red"])
    embedder.embed(["red"])
    assert inner.asked == [["red"], ["red"]]


def test_a_vector_is_forgotten_after_its_time() -> None:
    inner = Local()
    embedder = CheckedEmbedder(inner, cache_ttl_seconds=0.01)
    embedder.embed(["red"])
    time.sleep(0.02)
    embedder.embed(["red"])
    assert inner.asked == [["red"], ["red"]]


def test_the_vector_used_longest_ago_makes_room() -> None:
    inner = Local()
    embedder = CheckedEmbedder(inner, cache_size=2)
    for text in ["red", "blue", "red", "green", "red", "blue"]:
        embedder.embed([text])
    assert inner.asked == [["red"], ["blue"], ["green"], ["blue"]]


def test_a_call_may_be_larger_than_the_cache() -> None:
    texts = [f"text {n}" for n in range(10)]
    vectors = CheckedEmbedder(Local(), cache_size=2).embed(texts)
    assert vectors == [array("f", text_vector(text, 8)) for text in texts]


def test_changing_a_vector_does_not_change_the_cached_one() -> None:
    embedder = CheckedEmbedder(Local())
    right = embedder.embed(["red"])[0][0]
    embedder.embed(["red"])[0][0] = 99.0
    assert embedder.embed(["red"])[0][0] == right


def test_texts_go_out_in_batches_of_the_embedders_size() -> None:
    inner = Local()
    inner.batch_size = 2  # type: ignore[attr-defined]
    CheckedEmbedder(inner).embed(["a", "b", "c"])
    assert inner.asked == [["a", "b"], ["c"]]


def test_a_failing_batch_leaves_those_before_it_cached() -> None:
    def fail_on_c(texts: list[str]) -> Any:
        if "c" in texts:
            raise OSError("the disk is gone")
        return [text_vector(text, 8) for text in texts]

    inner = Local(fail_on_c)
    inner.batch_size = 2  # type: ignore[attr-defined]
    embedder = CheckedEmbedder(inner)
    with pytest.raises(EmbeddingError, match="local-model failed: OSError: the disk is gone"):
        embedder.embed(["a", "b", "c"])
    assert len(embedder.embed(["a", "b"])) == 2
    assert inner.asked == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        iter,
        lambda rows: [tuple(row) for row in rows],
        lambda rows: [array("d", row) for row in rows],
        lambda rows: [array("f", row) for row in rows],
        lambda rows: np.array(rows, dtype=np.float32),
        lambda rows: np.array(rows, dtype=np.float64),
        lambda rows: np.array(rows, dtype=">f4"),
        lambda rows: np.asfortranarray(np.array(rows, dtype=np.float32)),
        lambda rows: [(value for value in row) for row in rows],
    ],
)
def test_vectors_of_any_kind_are_taken(kind: Callable[[list[list[float]]], Any]) -> None:
    texts = ["red", "blue"]
    rows = [text_vector(text, 8) for text in texts]
    vectors = CheckedEmbedder(Local(lambda _: kind(rows))).embed(texts)
    assert vectors == [array("f", row) for row in rows]


def test_half_precision_is_taken() -> None:
    rows = np.array([text_vector("red", 8)], dtype=np.float16)
    vectors = CheckedEmbedder(Local(lambda _: rows)).embed(["red"])
    assert vectors[0] == array("f", rows[0].tolist())


GOOD = [1.0] * 8


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([GOOD] * 3, "3 vectors for 4 texts"),
        ([GOOD] * 5, "5 vectors for 4 texts"),
        ([GOOD] * 3 + [GOOD[1:]], "7 numbers instead of 8"),
        ([GOOD] * 3 + [[*GOOD, 1.0]], "9 numbers instead of 8"),
        ([GOOD] * 3 + [[math.nan, *GOOD[1:]]], "infinite or not a number"),
        ([GOOD] * 3 + [[math.inf, -math.inf, *GOOD[2:]]], "infinite or not a number"),
        ([GOOD] * 3 + [[1e300, *GOOD[1:]]], "infinite or not a number"),
        ([GOOD] * 3 + [[10**400, *GOOD[1:]]], "infinite or not a number"),
        ([GOOD] * 3 + [[0.0] * 8], "a vector of zeros"),
        ([GOOD] * 3 + [[1e-30] * 8], "a vector of zeros"),
        ([GOOD] * 3 + [["1"] * 8], "must be real number"),
        ([GOOD] * 3 + [None], "NoneType"),
        ([GOOD] * 3 + ["12345678"], "a str where a vector should be"),
        ([GOOD] * 3 + [b"12345678"], "a bytes where a vector should be"),
        (np.full((4, 8), np.nan, dtype=np.float32), "infinite or not a number"),
        (np.zeros((4, 8), dtype=np.float32), "a vector of zeros"),
        (np.ones((4, 8, 1), dtype=np.float32), "must be real number"),
        (np.ones(4), "not a vector"),
        (None, "NoneType"),
        (7, "int"),
    ],
)
def test_an_unfit_answer_is_refused(answer: Any, told: str) -> None:
    inner = Local(lambda _: answer)
    embedder = CheckedEmbedder(inner)
    with pytest.raises(EmbeddingError, match="local-model") as caught:
        embedder.embed(["a", "b", "c", "d"])
    assert told in str(caught.value)
    with pytest.raises(EmbeddingError):
        embedder.embed(["a"])  # nothing of it was cached
    assert len(inner.asked) == 2


@pytest.mark.parametrize("ours", [EmbeddingError("no"), ConfigurationError("no")])
def test_errors_of_ours_pass_as_they_are(ours: Exception) -> None:
    def fail(_: list[str]) -> Any:
        raise ours

    with pytest.raises(type(ours)) as caught:
        CheckedEmbedder(Local(fail)).embed(["red"])
    assert caught.value is ours


def test_an_interruption_is_no_failure_of_the_embedder() -> None:
    def interrupt(_: list[str]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CheckedEmbedder(Local(interrupt)).embed(["red"])


def with_attributes(**attributes: object) -> Any:
    embedder = Local()
    vars(embedder).update(attributes)
    return embedder


@pytest.mark.parametrize(
    "other",
    [
        object(),
        None,
        "openai",
        Local,
        with_attributes(embed=None),
        with_attributes(model=""),
        with_attributes(model="  "),
        with_attributes(model=7),
        with_attributes(model="m" * 201),
        with_attributes(dimensions=0),
        with_attributes(dimensions=20_001),
        with_attributes(dimensions=True),
        with_attributes(dimensions="8"),
        with_attributes(dimensions=8.0),
    ],
)
def test_an_object_of_another_shape_is_refused(other: Any) -> None:
    with pytest.raises(ConfigurationError):
        CheckedEmbedder(other)


def test_a_wrong_property_is_refused_when_it_is_needed() -> None:
    class Computed(Local):
        def __init__(self) -> None:
            self.answer = lambda texts: texts
            self.asked = []

        @property
        def model(self) -> str:  # type: ignore[override]
            raise OSError("no disk")

        @property
        def dimensions(self) -> int:  # type: ignore[override]
            return 0

    embedder = CheckedEmbedder(Computed())
    with pytest.raises(ConfigurationError, match="dimensions 0"):
        _ = embedder.dimensions
    with pytest.raises(EmbeddingError, match="no disk"):
        _ = embedder.model


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("similarity_floor", 2), ("vector_weight", "much"), ("batch_size", 0)],
)
def test_a_wrong_optional_attribute_is_refused(attribute: str, value: object) -> None:
    embedder = CheckedEmbedder(with_attributes(**{attribute: value}))
    with pytest.raises(ConfigurationError, match=attribute):
        getattr(embedder, attribute)


def test_what_an_embedder_says_of_itself_counts() -> None:
    inner = with_attributes(
        similarity_floor=0.3, vector_weight=0.7, cost_per_1k_tokens=2.0, batch_size=5, name="mine"
    )
    outer = CheckedEmbedder(inner)
    assert (outer.similarity_floor, outer.vector_weight) == (0.3, 0.7)
    assert (outer.cost_per_1k_tokens, outer.batch_size, outer.name) == (2.0, 5, "mine")


def test_what_is_known_of_the_model_counts_next() -> None:
    known = CheckedEmbedder(with_attributes(model="wordllama-l2-supercat-256", dimensions=256))
    facts = MODEL_TRAITS["wordllama-l2-supercat-256"]
    assert known.vector_weight == facts["vector_weight"]
    assert known.similarity_floor == facts["similarity_floor"]
    unknown = CheckedEmbedder(Local())
    assert (unknown.vector_weight, unknown.similarity_floor) == (DEFAULT_VECTOR_WEIGHT, None)
    assert (unknown.name, unknown.batch_size, unknown.cost_per_1k_tokens) == ("local-model", 100, 0)


def test_usage_is_counted_for_an_embedder_that_does_not() -> None:
    embedder = CheckedEmbedder(with_attributes(batch_size=2, cost_per_1k_tokens=1.0))
    embedder.embed(["12345678", "1234", "1", "1"])
    assert embedder.usage == EmbeddingUsage(requests=2, texts=3, tokens=4, cost_usd=0.004)


def test_usage_of_an_embedder_that_counts_is_its_own(server: Any) -> None:
    inner = OpenAIEmbedder("m", base_url=server.url)
    embedder = CheckedEmbedder(inner)
    embedder.embed(["one two three"])
    assert embedder.usage == inner.usage == EmbeddingUsage(1, 1, 3, 0.0)


def test_usages_add_up() -> None:
    total = EmbeddingUsage(1, 2, 3, 0.5) + EmbeddingUsage(10, 20, 30, 0.25)
    assert total == EmbeddingUsage(11, 22, 33, 0.75)


def test_no_texts_are_no_request() -> None:
    inner = Local()
    assert CheckedEmbedder(inner).embed([]) == []
    assert inner.asked == []


def test_half_a_surrogate_pair_reaches_no_embedder() -> None:
    inner = Local()
    CheckedEmbedder(inner).embed(["red \ud800"])
    assert inner.asked == [["red ?"]]


def test_threads_share_one_embedder() -> None:
    embedder = CheckedEmbedder(Local(), cache_size=5)
    results: dict[int, list[array[float]]] = {}

    def work(number: int) -> None:
        texts = [f"text {(number + n) % 20}" for n in range(100)]
        results[number] = embedder.embed(texts)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        assert results[number][3] == array("f", text_vector(f"text {(number + 3) % 20}", 8))

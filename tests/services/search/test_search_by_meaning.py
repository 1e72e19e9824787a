"""Search by meaning: what it finds that words do not, and what it never shows.

wordllama's real weights answer questions that share no word with their answer; vectors that were
made up tell, against an exact computation, that the index finds the nearest.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from reads import contents

from agent_memory import AgentMemory, MatchType, Memory, WordLlamaEmbedder
from agent_memory.models.search import SearchFilters
from agent_memory.storage import code_search
from agent_memory.storage.code_search import EXACT_UP_TO
from agent_memory.storage.filters import Filter, filter_of
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import QueryVector
from agent_memory.storage.sqlite import compared_vectors, vector_index
from agent_memory.storage.sqlite.compared_vectors import ComparedVectors
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.embeddings import EmbeddingTable
from agent_memory.storage.sqlite.tables.vec0_codes import Vec0Codes
from agent_memory.storage.sqlite.vector_index import VectorIndex

# wordllama ----------------------------------------------------------------------------------------

ANSWERS = {
    "which database did we choose?": "PostgreSQL was picked for persistent storage",
    "is our car repaired?": "The vehicle needs a new engine and fresh tires",
    "what does my doctor recommend?": "The physician prescribed antibiotics and more sleep",
    "what music instrument does she practise?": "Ingrid plays the violin in an orchestra",
    "which furry animals came home?": "Samir adopted a kitten and two puppies",
    "where do we spend our vacation?": "Every summer holiday trip goes to a beach in Portugal",
}
PEOPLE = "Alice Bob Carla Dmitri Elena Farid Grace Hiro Jamal Keiko Liam Maria Nadia Omar".split()
ACTIONS = "fixed moved renamed restored measured reviewed merged reverted tested planned".split()
THINGS = """
    deployment schema pipeline backup cache queue dashboard invoice report endpoint certificate
    release session token budget contract meeting recipe garden bicycle kitchen lecture exam
""".split()
REASONS = [
    "because the build took too long",
    "after the outage in March",
    "to save money",
    "since nobody used it any more",
    "before the release",
    "as the tests kept failing",
]


def sentences(count: int) -> list[str]:
    """Return different sentences as an agent stores them, the same every time."""
    numbers = random.Random(11)
    return [
        f"{numbers.choice(PEOPLE)} {numbers.choice(ACTIONS)} the {numbers.choice(THINGS)} of"
        f" ticket {number} {numbers.choice(REASONS)}"
        for number in range(count)
    ]


class Telling(WordLlamaEmbedder):
    """wordllama, which notes what it embeds as a memory and what as a question."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[str] = []
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.stored += texts
        return super().embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return super().embed(texts)


def test_a_search_embeds_its_query_as_a_question(tmp_path: Path) -> None:
    embedder = Telling()
    question, answer = next(iter(ANSWERS.items()))
    with AgentMemory("bob", root=tmp_path, embedder=embedder) as memory:
        memory.store_many([{"content": text} for text in ANSWERS.values()])
        memory.migrate()
        assert memory.search(question, limit=1)[0].memory.content == answer
    assert embedder.asked == [question]
    assert set(ANSWERS.values()) <= set(embedder.stored)
    assert question not in embedder.stored


@pytest.mark.parametrize(
    ("user", "query", "embedded"),
    [
        (None, "Which databse has the invoices?", "Which database has the invoices?"),
        ("ann", "Which DATABSE has the invoices?", "Which database has the invoices?"),
        ("bob", "Which databse has the invoices?", "Which databse has the invoices?"),
        (None, "zebra, and the databses?", "zebra, and the databases?"),
        (None, "Which database has them?", "Which database has them?"),
    ],
    ids=["misspelt", "in capitals", "by another user's words", "beside an unknown word", "known"],
)
def test_a_misspelt_word_is_embedded_as_what_it_meant(
    tmp_path: Path, user: str | None, query: str, embedded: str
) -> None:
    embedder = Telling()
    with AgentMemory("bob", root=tmp_path, embedder=embedder) as memory:
        memory.store("The database of invoices is on the second server", user_id="ann")
        memory.store("All databases are copied at night", user_id="ann")
        memory.store("The red bicycle has a flat tyre", user_id="bob")
        memory.migrate()
        hits = memory.search(query, user_id=user)
        assert embedder.asked[-1] == embedded
        if user is None:
            assert "database" in hits[0].memory.content


ENGLISH: Final = (
    "Two houses on our street burned down",
    "We drove through the desert",
    "The puppies chewed my shoe",
    "The contract with Marina ends in May",
    "Both angles of the roof are steep",
)
GERMAN: Final = (
    "Der Wagen steht in der Garage, und ich fahre mit dem Rad",
    "Die Karten für das Konzert liegen auf dem Tisch",
    "Meine Mutter wohnt in Hamburg, und der Hund bellt nachts",
)


SPANISH: Final = (
    "Me gusta el pescado con arroz",
    "Vivo con mi hermano en una casa de Madrid",
    "La reunión es el lunes por la tarde",
)


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (ENGLISH + GERMAN, "Do I ride horses?"),
        (ENGLISH + GERMAN, "a dessert for tonight"),
        (ENGLISH, "poppies"),
        (ENGLISH, "Where does Mariana work?"),
        (ENGLISH, "angel"),
        (GERMAN, "Was ist mit meinem Magen?"),
        (SPANISH, "pecado"),
    ],
)
def test_another_word_is_embedded_as_it_is(
    tmp_path: Path, texts: tuple[str, ...], query: str
) -> None:
    """Each was taken for a slip of another word, which no memory had to have as it was spelt."""
    embedder = Telling()
    with AgentMemory("bob", root=tmp_path, embedder=embedder) as memory:
        memory.store_many([{"content": text} for text in texts])
        memory.migrate()
        memory.search(query)
        assert embedder.asked[-1] == query


@pytest.fixture(scope="module")
def wordllama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMemory]:
    """Open a store of 330 sentences, six of them the answers, moved with the real wordllama."""
    texts = [*ANSWERS.values(), *sentences(324)]
    items = [{"content": text, "session_id": text} for text in texts]
    with AgentMemory("bob", root=tmp_path_factory.mktemp("llama"), embedder="wordllama") as memory:
        memory.store_many(items)
        assert memory.migrate(embedder="wordllama").status == "completed"
        yield memory
        assert memory.check().problems == []


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize(("question", "answer"), ANSWERS.items())
def test_a_question_that_shares_no_word_with_its_answer_finds_it(
    wordllama: AgentMemory, question: str, answer: str
) -> None:
    assert not words_of(question) & words_of(answer)
    results = wordllama.search(question, count_accesses=False)
    assert contents(results)[0] == answer
    assert results[0].match_type == MatchType.VECTOR
    assert results[0].passed_gate


def test_the_same_question_finds_no_answer_by_keyword(wordllama: AgentMemory) -> None:
    with AgentMemory("bob", root=wordllama.path.parent.parent, embedder=None) as by_words:
        for question, answer in ANSWERS.items():
            results = by_words.search(question, 20, count_accesses=False)
            assert answer not in contents(results)
            assert results.search_metadata.backend == "file"
            assert "searched by keyword only" in results.search_metadata.degraded[0]


def test_a_memory_with_the_words_is_found_by_them(wordllama: AgentMemory) -> None:
    results = wordllama.search("PostgreSQL storage", count_accesses=False)
    assert contents(results)[0] == "PostgreSQL was picked for persistent storage"
    assert results[0].match_type == MatchType.KEYWORD


def test_a_search_says_how_it_went(wordllama: AgentMemory) -> None:
    how = wordllama.search("which database did we choose?", count_accesses=False).search_metadata
    assert how.backend == "vector"
    assert how.degraded == []
    assert 0 < how.embedding_time_ms <= how.processing_time_ms
    assert 0 < how.vector_search_time_ms <= how.processing_time_ms


def test_hits_are_told_apart_by_how_they_were_found(wordllama: AgentMemory) -> None:
    results = wordllama.search("which database holds ticket 7?", 50, count_accesses=False)
    for hit in results:
        has_word = bool({"ticket", "7"} & words_of(hit.memory.content))
        assert (hit.match_type == MatchType.VECTOR) == (not has_word) or hit.match_type in {
            MatchType.SCRATCHPAD,
            MatchType.PROMOTED,
        }


@pytest.mark.parametrize(
    "query",
    [
        "zxqv wvut",
        "🐘🎷",
        "",
        " \t\n",
        "\0",
        "which\0database",
        "lorem ipsum " * 833 + "here",
        "x" * 10_000,
        "🐘" * 10_000,
        "我们选择了哪个数据库",
        "ما هي قاعدة البيانات؟",
        "\u200b\ufeff",
        "\ud800",
        '"AND OR NOT (*',
        "embedding_index_1' --",
        "[UNK] [PAD] <s> </s>",
    ],
)
def test_no_query_is_an_error(wordllama: AgentMemory, query: str) -> None:
    results = wordllama.search(query, count_accesses=False)
    assert results.search_metadata.degraded == []
    for hit in results:
        assert 0 <= hit.similarity <= 1
    if not results.results:
        assert results.search_metadata.reason is not None


@pytest.mark.parametrize("query", ["", " \t\n"])
def test_a_search_for_nothing_finds_nothing(wordllama: AgentMemory, query: str) -> None:
    results = wordllama.search(query, count_accesses=False)
    assert list(results) == []
    assert results.search_metadata.reason == "empty_query"


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 1.0])
def test_a_threshold_holds_for_what_is_near_too(wordllama: AgentMemory, threshold: float) -> None:
    results = wordllama.search(
        "which furry animals came home?", 50, similarity_threshold=threshold, count_accesses=False
    )
    assert all(hit.similarity >= threshold for hit in results)


class Unlike:
    """An embedder of some model, to which no text means what a question does."""

    dimensions = 4

    def __init__(self, model: str) -> None:
        self.model = model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0, 0.0, 0.0] for _ in texts]

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        return [[0.0, 1.0, 0.0, 0.0] for _ in texts]


@pytest.mark.parametrize("model", ["unknown", "wordllama-l2-supercat-256", "all-MiniLM-L6-v2-int8"])
def test_no_model_asks_more_of_an_answer_than_words_do(tmp_path: Path, model: str) -> None:
    for number, embedder in enumerate([None, Unlike(model)]):
        with AgentMemory("bob", root=tmp_path / f"{number}", embedder=embedder) as memory:
            memory.store("The harbour was quiet")
            if embedder is not None:
                memory.migrate()
            found = memory.search(
                "which harbour master signed the customs papers of that freighter"
            )
        assert found.search_metadata.reason == "below_floor"
        assert "no memory matches 21% of" in str(found.search_metadata.explanation)


# Vectors that were made up ------------------------------------------------------------------------

DIMENSIONS = 96
TOPICS = 40
COUNT = 5_000
QUERIES = 50


class Topics:
    """Embeds a text by its number: near the center of its topic, which is its number modulo 40."""

    model = "topics"
    dimensions = DIMENSIONS
    similarity_floor = 0.0

    def __init__(self) -> None:
        numbers = np.random.default_rng(5)
        self._centers = numbers.normal(size=(TOPICS, DIMENSIONS))

    def embed(self, texts: Sequence[str]) -> list[NDArray[np.float64]]:
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> NDArray[np.float64]:
        (number,) = map(int, re.findall(r"\d+", text))
        of_kind = 0 if text.startswith("entry") else 1
        noise = np.random.default_rng([of_kind, number]).normal(size=DIMENSIONS)
        return np.asarray(self._centers[number % TOPICS] + noise)


class Field:
    """The store of 5,000 made-up vectors, and the exact answer to any question about it."""

    def __init__(self, root: Path) -> None:
        self.embedder = Topics()
        self.memory = AgentMemory("bob", root=root, embedder=self.embedder)
        self.memory.store_many(item(number) for number in range(COUNT))
        change(self.memory.path, "UPDATE memories SET archived = 1 WHERE seq % 10 = 4")
        assert self.memory.migrate(embedder=self.embedder).status == "completed"
        self.database = Database(self.memory.path, read_only=True)
        filters = SearchFilters(archived=None)
        self.all = self.memory.list_recent(COUNT, filters=filters)
        rows = np.array([self.embedder.vector(memory.content) for memory in self.all])
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._orders: dict[str, list[int]] = {}

    def exact(self, query: str, passes: Callable[[Memory], bool], count: int = 5) -> list[str]:
        """Return the texts of the nearest memories that pass, computed from the whole vectors."""
        if query not in self._orders:
            cosines = self._rows @ self.embedder.vector(query)
            self._orders[query] = np.argsort(-cosines, kind="stable").tolist()
        ordered = (self.all[place] for place in self._orders[query])
        passing = (memory for memory in ordered if passes(memory))
        return [memory.content for memory, _ in zip(passing, range(count), strict=False)]

    def nearest(self, query: str, filters: Filter, count: int = 5) -> list[str]:
        """Return the texts of the memories that the library says are nearest."""
        with self.database.read():
            (model,) = EmbeddingTable(self.database).models()
            vector = QueryVector(model, quantize(self.embedder.vector(query).tolist()).data)
            found = VectorIndex(self.database).nearest(vector, filters).cosines
            best = sorted(found, key=found.__getitem__, reverse=True)[:count]
            return [
                self.database.value("SELECT content FROM memories WHERE seq = ?", (row_id,))
                for row_id in best
            ]

    def close(self) -> None:
        self.database.close()
        self.memory.close()


def item(number: int) -> dict[str, Any]:
    return {
        "content": f"entry{number:05}",
        "session_id": f"session {number}",
        "category": "note" if number % 5 < 3 else "task",
        "tags": ["even"] if number % 2 == 0 else ["odd"],
        "timestamp": f"2025-{number % 12 + 1:02}-03T10:00:00Z",
        "user_id": f"user {number % 50}",
        "metadata": {"topic": number % TOPICS, "number": number},
    }


def change(path: Path, sql: str) -> None:
    database = Database(path)
    with database.write():
        database.run(sql)
    database.close()


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    made = Field(tmp_path_factory.mktemp("field"))
    yield made
    assert made.memory.check().problems == []
    made.close()


FILTERS: dict[str, tuple[dict[str, Any], Callable[[Memory], bool]]] = {
    "none": ({}, lambda memory: not memory.archived),
    "category": (
        {"category": "note"},
        lambda memory: not memory.archived and memory.category == "note",
    ),
    "tag": ({"tags": ["even"]}, lambda memory: not memory.archived and memory.tags == ["even"]),
    "since": (
        {"date_range": {"start": "2025-06-01"}},
        lambda memory: not memory.archived and memory.timestamp.month >= 6,
    ),
    "until": (
        {"date_range": {"end": "2025-08-01"}},
        lambda memory: not memory.archived and memory.timestamp.month < 8,
    ),
    "metadata": (
        {"custom_filters": {"number": {"gte": 2000}}},
        lambda memory: not memory.archived and memory.metadata["number"] >= 2000,
    ),
    "topics that are mostly elsewhere": (
        {"custom_filters": {"topic": {"lt": 24}}},
        lambda memory: not memory.archived and memory.metadata["topic"] < 24,
    ),
    "two at once": (
        {"category": "note", "custom_filters": {"number": {"lt": 4500}}},
        lambda memory: (
            not memory.archived and memory.category == "note" and memory.metadata["number"] < 4500
        ),
    ),
    "few": ({"user_id": "user 7"}, lambda m: not m.archived and m.user_id == "user 7"),
    "archived": ({"archived": True}, lambda memory: memory.archived),
    "archived or not": ({"archived": None}, lambda _: True),
}
FEW = {"few", "archived"}


@pytest.mark.file_only("its stores are files")
@pytest.mark.parametrize("name", FILTERS)
def test_the_nearest_are_the_exact_nearest_in_nearly_all_queries(field: Field, name: str) -> None:
    filters, passes = FILTERS[name]
    passing = sum(map(passes, field.all))
    assert (passing > EXACT_UP_TO) == (name not in FEW)
    passing_filter = filter_of(SearchFilters.model_validate(filters), agent_id="bob")
    topics = {memory.metadata["topic"] for memory in field.all if passes(memory)}
    held: dict[bool, list[float]] = {True: [], False: []}
    for number in range(QUERIES):
        exact = field.exact(f"probe{number}", passes)
        found = field.nearest(f"probe{number}", passing_filter)
        held[number % TOPICS in topics].append(len(set(exact) & set(found)) / 5)
    assert sum(held[True]) >= 0.98 * len(held[True])
    # Of a topic that the filter leaves out there is no answer: all that passes is as far away.
    assert sum(held[False]) >= 0.8 * len(held[False])


@pytest.mark.file_only("its stores are files")
@pytest.mark.parametrize("name", FILTERS)
def test_a_search_returns_the_nearest_of_those_that_pass_and_no_other(
    field: Field, name: str
) -> None:
    filters, passes = FILTERS[name]
    found = 0
    for number in range(10):
        query = f"probe{number}"
        results = field.memory.search(query, 20, filters=filters, count_accesses=False)
        assert all(passes(hit.memory) for hit in results)
        assert results.search_metadata.degraded == []
        assert not any(hit.match_type == MatchType.KEYWORD for hit in results)
        found += field.exact(query, passes, 1)[0] in contents(results)
    assert found >= 9


def test_the_index_was_used(field: Field) -> None:
    """Else the tests above compare one exact computation with another."""
    with field.database.read():
        (model,) = EmbeddingTable(field.database).models()
    assert model.is_indexed
    with pytest.MonkeyPatch.context() as patch:
        asked: list[int] = []
        nearest = Vec0Codes.nearest

        def watched(self: Vec0Codes, *values: Any, **options: Any) -> list[tuple[int, int]]:
            asked.append(options["limit"])
            return nearest(self, *values, **options)

        patch.setattr(Vec0Codes, "nearest", watched)
        for filters, _ in FILTERS.values():
            field.nearest(
                "probe30", filter_of(SearchFilters.model_validate(filters), agent_id="bob")
            )
    assert len(asked) >= len(FILTERS) - len(FEW) - 1


@pytest.mark.file_only("its stores are files")
@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        ({"user_id": "user 7"}, lambda memory: memory.user_id == "user 7"),
        (
            {"user_id": "user 7", "tags": ["even"]},
            lambda memory: memory.user_id == "user 7" and memory.tags == ["even"],
        ),
        ({"user_id": "user 3"}, lambda _: False),  # all of them are archived
        ({"user_id": "user 3", "archived": None}, lambda memory: memory.user_id == "user 3"),
    ],
    ids=["all", "tagged", "archived", "archived or not"],
)
@pytest.mark.parametrize(
    ("numbers", "by"),
    [(2, "numpy"), (2, "SQL"), (1, "codes")],
    ids=["compared by numpy", "compared by SQL", "named by codes"],
)
def test_of_what_a_user_has_all_is_compared_where_codes_would_take_longer(
    field: Field,
    monkeypatch: pytest.MonkeyPatch,
    filters: dict[str, Any],
    passes: Callable[[Memory], bool],
    numbers: int,
    by: str,
) -> None:
    monkeypatch.setattr(code_search, "EXACT_UP_TO", 50)
    # A user has 100 of 5,000 vectors of 96 numbers: for 150 that pass 7,500 codes would be named.
    monkeypatch.setattr(code_search, "NUMBERS_FOR_NAMED", numbers)
    if by != "codes":
        monkeypatch.setattr(vector_index, "NAMED", 20)  # of the 100: which ones is what is tried
    monkeypatch.setattr(compared_vectors, "can_compare", lambda: by == "numpy")
    compared: list[str] = []

    def watch(owner: type, name: str, says: str) -> None:
        watched = getattr(owner, name)

        def watching(self: object, *values: Any, **options: Any) -> list[int]:
            compared.append(says)
            row_ids: list[int] = watched(self, *values, **options)
            return row_ids

        monkeypatch.setattr(owner, name, watching)

    watch(ComparedVectors, "nearest", "numpy")
    watch(EmbeddingTable, "nearest_passing", "SQL")
    passing_filter = filter_of(SearchFilters.model_validate(filters), agent_id="bob")
    missed = 0
    for number in range(20):
        exact = field.exact(f"probe{number}", passes)
        found = field.nearest(f"probe{number}", passing_filter)
        assert len(found) == len(exact)
        missed += len(set(exact) - set(found))
    assert missed <= 2  # of 100: two may be as near but for the bytes that numbers are kept in
    assert compared == [by] * 20 * (by != "codes")


def test_numpy_that_must_not_be_loaded_compares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compared_vectors.can_compare()
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert not compared_vectors.can_compare()


def test_a_users_vectors_are_read_anew_once_a_memory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_search, "EXACT_UP_TO", 5)
    monkeypatch.setattr(code_search, "NUMBERS_FOR_NAMED", 10_000)
    monkeypatch.setattr(vector_index, "NAMED", 20)

    def found(memory: AgentMemory) -> list[str]:
        hits = memory.search("which furry animals came home?", user_id="ann", count_accesses=False)
        return contents(hits)

    answer = ANSWERS["which furry animals came home?"]
    with AgentMemory("bob", root=tmp_path, embedder="wordllama") as memory:
        memory.store_many([{"content": text, "user_id": "ann"} for text in sentences(40)])
        memory.migrate()
        assert found(memory) == []
        with AgentMemory("bob", root=tmp_path, embedder="wordllama") as other:
            stored = other.store(answer, user_id="ann")
            assert found(memory)[:1] == [answer]
            other.archive(stored)
            assert answer not in found(memory)


def test_a_vector_is_read_anew_once_its_memory_changes(tmp_path: Path) -> None:
    assert compared_vectors.can_compare()
    asked = "which furry animals came home?"
    with AgentMemory("bob", root=tmp_path, embedder="wordllama") as memory:
        (changed, *_) = memory.store_many([{"content": text} for text in sentences(40)])
        memory.migrate()
        before = contents(memory.search(asked))
        assert contents(memory.search(asked)) == before  # by the kept vectors
        with AgentMemory("bob", root=tmp_path, embedder="wordllama") as other:
            other.update(changed, content=ANSWERS[asked])
        assert contents(memory.search(asked))[:1] == [ANSWERS[asked]]
        memory.undo()
        assert contents(memory.search(asked)) == before


@pytest.mark.parametrize("query", [f"probe{number}" for number in range(5)])
def test_another_users_memories_do_not_leak_through_near_misses(field: Field, query: str) -> None:
    nearest_of_all = field.exact(query, lambda memory: not memory.archived, 1)[0]
    owner = int(nearest_of_all.removeprefix("entry")) % 50
    stranger = f"user {(owner + 25) % 50}"
    for options in ({}, {"category": "decision"}, {"similarity_threshold": 1.0}):
        results = field.memory.search(query, 50, user_id=stranger, count_accesses=False, **options)
        shown = [hit.memory.id for hit in results]
        shown += [miss.memory_id for miss in results.search_metadata.near_misses]
        users = {memory.id: memory.user_id for memory in field.all}
        assert {users[memory_id] for memory_id in shown} <= {stranger}
        assert shown


def test_a_user_without_memories_sees_nothing(field: Field) -> None:
    results = field.memory.search("probe1", user_id="nobody", count_accesses=False)
    assert list(results) == []
    assert results.search_metadata.near_misses == []


# Memories without a vector ------------------------------------------------------------------------


def test_a_memory_without_a_vector_is_still_found_by_its_words(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=Topics()) as memory:
        memory.store_many(item(number) for number in range(30))
        memory.migrate(embedder=Topics())
        change(memory.path, "DELETE FROM embeddings WHERE seq = 8")
        results = memory.search("entry00007")
        assert contents(results)[0] == "entry00007"
        assert results.search_metadata.backend == "vector"


def test_an_empty_store_can_be_moved_and_searched(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=Topics()) as memory:
        memory.migrate(embedder=Topics())
        assert memory.search("probe1").search_metadata.reason == "nothing_stored"
        memory.store("entry1")
        assert contents(memory.search("probe1")) == ["entry1"]
        assert memory.check().problems == []

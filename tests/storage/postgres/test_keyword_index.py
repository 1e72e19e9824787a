"""The keyword index of PostgreSQL says what FTS5 says of the same memories."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from postgres_server import PostgresServer
from side_by_side import NOW, Pair, memory_of, opened_on, opened_pair

from agent_memory.models.memory import Memory
from agent_memory.models.times import format_time
from agent_memory.storage import query_terms
from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.filters import (
    EVERYTHING,
    NOT_ARCHIVED,
    Equals,
    Filter,
    HasTag,
    Since,
    Until,
    all_of,
    any_of,
)
from agent_memory.storage.indexed_text import indexed_text
from agent_memory.storage.postgres.postings import key_of
from agent_memory.storage.records import Alternative, Term

WORDS = """
    deploy script database staging coffee tea morning lunch meeting alice berlin flight ticket
    review merge branch login token cache queue worker timeout retry backup month budget invoice
    support road trip roadtrip street phone address walking walked walks
""".split()
DENSE = "今日は東京に行きます。明日は雨です 데이터베이스를 数据库 迁移完成 ตารางเวลา"
FILTERS: dict[str, Filter] = {
    "all": EVERYTHING,
    "current": NOT_ARCHIVED,
    "of a user": NOT_ARCHIVED.and_also(Equals("user_id", "ann")),
    "with a tag": NOT_ARCHIVED.and_also(HasTag("blue")),
    "with a tag of two": NOT_ARCHIVED.and_also(any_of(HasTag("blue"), HasTag("東京"))),
    "with two tags, or one": any_of(all_of(HasTag("blue"), HasTag("東京")), HasTag("red tape")),
    "of a time": all_of(
        all_of(Since(format_time(NOW + timedelta(hours=500))), HasTag("blue")),
        Until(format_time(NOW + timedelta(hours=2_200))),
    ),
}


@pytest.fixture
def pair(postgres: PostgresServer, tmp_path: Path) -> Iterator[Pair]:
    with opened_pair(postgres, tmp_path) as opened:
        yield opened


class Corpus:
    """Texts and queries of a few common words and many rare ones, the same each time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words = [*WORDS, *(f"term{number}" for number in range(400))]
        self._weights = [1 / (place + 1) for place in range(len(self.words))]

    def text(self, most: int) -> str:
        words = self.random.choices(self.words, self._weights, k=self.random.randint(1, most))
        if self.random.random() < 0.2:
            words.append("".join(self.random.choices(DENSE, k=self.random.randint(1, 20))))
        if self.random.random() < 0.1:
            words.append(self.random.choice(["road trip", "trip by road"]))
        if self.random.random() < 0.1:
            words.append("Größe ÄRGER naïve café?")
        return " ".join(words)

    def memory(self, number: int) -> Memory:
        return memory_of(
            number,
            self.text(40),
            tags=self.random.sample(["blue", "red tape", "東京"], self.random.randint(0, 2)),
            user_id=self.random.choice([None, "ann", "ben"]),
            archived=self.random.random() < 0.1,
        )


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Give both 2,500 memories: more than are read without an index."""
    corpus = Corpus(1)
    with opened_pair(postgres, tmp_path_factory.mktemp("filled")) as opened:
        opened.store([corpus.memory(number) for number in range(2_500)])
        yield opened


def scores(pair: Pair, terms: Sequence[Term]) -> dict[int, float]:
    """Return FTS5's own measure of each memory that has any of some terms."""
    sql = "SELECT rowid, bm25(memory_index) FROM memory_index WHERE memory_index MATCH ?"
    return dict(pair.file.database.rows(sql, (" OR ".join(term.match for term in terms),)))


def vocabulary(pair: Pair) -> tuple[dict[str, int], dict[str, int]]:
    """Return all words of both indexes, and how many memories have each."""
    of_file = pair.file.database.rows("SELECT term, doc FROM memory_words")
    of_file = [(key_of(word), doc) for word, doc in of_file]
    return dict(of_file), dict(pair.server.database.rows("SELECT word, doc FROM memory_words"))


def assert_index_is_whole(pair: Pair) -> None:
    """Check the words, and that counts, sizes and totals are those of the texts."""
    of_file, of_server = vocabulary(pair)
    assert of_server == of_file
    database = pair.server.database
    counted = database.rows("SELECT word, count(*) FROM memory_index GROUP BY word")
    assert dict(counted) == of_file
    differing = """
SELECT count(*) FROM memory_index AS i FULL JOIN (
  SELECT t.seq, w.word, count(*) AS count, sum(count(*)) OVER (PARTITION BY t.seq) AS size
  FROM memory_text AS t, words_in(t.tokens) AS w (word) GROUP BY t.seq, w.word) AS made
ON made.seq = i.seq AND made.word = i.word
WHERE (made.count, made.size) IS DISTINCT FROM (i.count, i.size)"""
    assert database.value(differing) == 0
    in_all = "SELECT count(DISTINCT seq), coalesce(sum(count), 0) FROM memory_index"
    totals = database.row("SELECT memories, words FROM memory_index_size")
    assert database.row(in_all) == (totals or (0, 0))


QUERIES = [
    "東京",
    "東",
    "今日は東京",
    "데이터",
    "数据库 tea",
    "Größe GRÖSSE naive cafe",
    "30 january 2026",
    "deploy",
    "term1 term2 term399",
    "?!",
    'NEAR("x" AND',
    "the of and",
    "no such zebra",
]


def queries(seed: int) -> list[str]:
    corpus = Corpus(seed)
    return [*QUERIES, *(corpus.text(8) for _ in range(30))]


@pytest.fixture(params=[300, 20_000], ids=["many rows", "few rows"])
def listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """What passes is, of most filters, more than what an index lists first; or it is less."""
    most: int = request.param
    monkeypatch.setattr("agent_memory.storage.postgres.filters._FEW", most)
    return most


class TestSearches:
    @pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
    def test_the_same_candidates_come_in_the_same_order(
        self, filled: Pair, filters: Filter, listed: int
    ) -> None:
        for query in queries(listed):
            told = []
            for engine in filled.both:
                with engine.read():
                    terms = engine.keywords.terms_of(query)
                    counts = engine.keywords.frequencies(terms)
                    rows, common = engine.keywords.candidates(
                        terms, counts, filters, needed=10, limit=256
                    )
                    told.append((terms, counts, common, rows))
            of_file, of_server = told
            assert of_server[:3] == of_file[:3]
            with filled.file.read():
                budget = query_terms.scan_budget(filled.file.memories, filters, of_file[1], 256)
            chosen, _ = query_terms.rarest_of(*of_file[:2], budget)
            measure = scores(filled, chosen) if chosen else {}
            # Which of two comes first that are measured the same, to the last digits, may differ.
            ranks = [[round(measure.get(row, 0.0), 9) for row in rows] for *_, rows in told]
            assert ranks[0] == ranks[1]
            last = ranks[0][-1] if len(ranks[0]) == 256 else None
            kept = [
                {row for row, rank in zip(rows, ranks[0], strict=True) if rank != last}
                for *_, rows in told
            ]
            assert kept[0] == kept[1]

    @pytest.mark.usefixtures("listed")
    def test_the_newest_come_where_every_word_is_common(
        self, filled: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(query_terms, "SCAN_BUDGET", 20)
        monkeypatch.setattr(query_terms, "FILTERED_SCAN_BUDGET", 20)
        terms = filled.file.keywords.terms_of("deploy script zebra 東")
        told = []
        for engine in filled.both:
            with engine.read():
                counts = engine.keywords.frequencies(terms)
                told += [
                    engine.keywords.candidates(terms, counts, filters, needed=10, limit=50)
                    for filters in FILTERS.values()
                ]
        assert told[: len(FILTERS)] == told[len(FILTERS) :]
        assert all(len(rows) == 50 for rows, _ in told)

    @pytest.mark.usefixtures("listed")
    @pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
    def test_postings_vocabulary_and_examples_are_the_same(
        self, filled: Pair, filters: Filter
    ) -> None:
        both = Alternative(("road", "trip"), "road trip")
        phrase = both._replace(is_phrase=True)
        terms = [
            *filled.file.keywords.terms_of("deploy 東京 東 term7 zebra"),
            Term("zebra", "zebra", alternatives=(both, Alternative(("tea",), "tea"))),
            Term("yak", "yak", alternatives=(phrase,)),
        ]
        told = []
        for engine in filled.both:
            with engine.read():
                keywords = engine.keywords
                counts = keywords.frequencies(terms)
                told.append(
                    (
                        counts,
                        [sorted(rows) for rows in keywords.postings(terms, filters)],
                        keywords.vocabulary(["tea", "zebra", "road"], ["ro", "term3"], filters),
                        keywords.examples(both, filters, limit=20),
                        keywords.examples(phrase, filters, limit=20),
                        keywords.examples(Alternative(("tea",), ""), filters, limit=3),
                    )
                )
        assert told[0] == told[1]
        assert told[0][1][-1]
        assert set(told[0][1][-1]) < set(told[0][1][-2])

    def test_alternatives_are_scored_as_words_are(self, filled: Pair) -> None:
        terms = [
            Term("zebra", "zebra", alternatives=(Alternative(("term11",), "term11"),)),
            Term("yak", "yak", alternatives=(Alternative(("lunch", "term4"), "both"),)),
            Term("emu", "emu", alternatives=(Alternative(("road", "trip"), "", is_phrase=True),)),
        ]
        told = []
        for engine in filled.both:
            with engine.read():
                counts = engine.keywords.frequencies(terms)
                told.append(
                    engine.keywords.candidates(terms, counts, NOT_ARCHIVED, needed=1, limit=500)
                )
        (of_file, _), (of_server, _) = told
        match = '"term11" OR ("lunch" AND "term4") OR ("road" + "trip")'
        sql = "SELECT rowid, bm25(memory_index) FROM memory_index WHERE memory_index MATCH ?"
        measure: dict[int, float] = dict(filled.file.database.rows(sql, (match,)))
        assert sorted(of_server) == sorted(of_file)
        assert len(of_file) > 20
        assert [measure[row] for row in of_server] == pytest.approx(
            [measure[row] for row in of_file]
        )

    def test_words_are_counted_the_same(self, filled: Pair) -> None:
        terms = filled.file.keywords.terms_of("deploy 東京 東 café term7")
        rows = list(range(1, 2_501, 3))
        counted = [engine.keywords.words(rows, terms) for engine in filled.both]
        assert counted[0] == counted[1]
        assert any(words.asks for words in counted[0].values())

    def test_similar_texts_are_the_same(self, filled: Pair) -> None:
        corpus = Corpus(3)
        several = 0
        for number in range(40):
            memory = filled.file.memories.get(f"mem-{number * 7}")
            assert memory is not None
            words = memory.content.split()
            corpus.random.shuffle(words)
            text = " ".join([*words[: max(4, len(words) - 1)], "besides"])
            asked = DuplicateQuery(text, memory.user_id, None)
            told = [engine.similarity.similar(asked) for engine in filled.both]
            assert told[0] == told[1]
            several += bool(told[0])
            corrected = [engine.similarity.is_corrected(asked, told[0]) for engine in filled.both]
            assert corrected[0] == corrected[1]
        assert several > 10

    def test_a_word_too_long_for_an_index_is_found(self, pair: Pair) -> None:
        corpus = Corpus(5)
        long, other = ("".join(corpus.random.choices(WORDS, k=1_300))[:9_900] for _ in range(2))
        dense = "".join(chr(corpus.random.randint(0x4E00, 0x9FFF)) for _ in range(9_000))
        rows = pair.store([memory_of(n, text) for n, text in enumerate((long, other, dense))])
        assert_index_is_whole(pair)
        for query, row in ((long, rows[0]), (other.upper(), rows[1]), (dense[:1], rows[2])):
            for engine in pair.both:
                with engine.read():
                    terms = engine.keywords.terms_of(query)
                    counts = engine.keywords.frequencies(terms)
                    best = engine.keywords.candidates(terms, counts, EVERYTHING, needed=1, limit=3)
                    assert row in best[0]
                    assert engine.keywords.vocabulary([terms[0].word], ["zz"], EVERYTHING) or (
                        terms[0].is_prefix
                    )

    def test_another_agent_has_words_of_its_own(self, postgres: PostgresServer) -> None:
        bob, eve = (opened_on(postgres, "two_agents", agent) for agent in ("bob", "eve"))
        with bob.write():
            bob.memories.insert(memory_of(1, "the kestrel flies"))
        with eve.write():
            eve.memories.insert(memory_of(1, "a walk", agent_id="eve"))
        terms = bob.keywords.terms_of("kestrel")
        assert bob.keywords.frequencies(terms) == [1]
        assert eve.keywords.frequencies(terms) == [0]
        assert eve.keywords.vocabulary(["kestrel"], ["kes"], EVERYTHING) == {}
        assert eve.keywords.candidates(terms, [1], EVERYTHING, needed=1, limit=5)[0] == []


class TestFollowing:
    def test_the_index_follows_a_life(self, pair: Pair) -> None:
        corpus = Corpus(4)
        pair.store([corpus.memory(number) for number in range(60)])
        assert_index_is_whole(pair)
        for number in range(60, 160):
            row_id = corpus.random.randint(1, 60)
            text = corpus.text(20)
            tags = corpus.random.choice([[], ["blue"]])
            for engine in pair.both:
                with engine.write():
                    if number % 3:
                        engine.memories.update(row_id, {"content": text, "tags": tags}, now=NOW)
                    else:
                        engine.memory_rows.delete_many(engine.memories.ids_of([row_id]))
        assert_index_is_whole(pair)
        for engine in pair.both:
            with engine.write():
                engine.memory_rows.delete_many(engine.memories.ids(EVERYTHING))
        assert_index_is_whole(pair)
        assert vocabulary(pair) == ({}, {})

    def test_a_transaction_finds_what_it_wrote(self, pair: Pair) -> None:
        terms = pair.server.keywords.terms_of("kestrel")
        with pair.server.write():
            (row_id,) = [pair.server.memories.insert(memory_of(1, "a kestrel"))]
            assert pair.server.keywords.frequencies(terms) == [1]
            found, _ = pair.server.keywords.candidates(terms, [1], EVERYTHING, needed=1, limit=1)
            assert found == [row_id]

    def test_what_a_visitor_changed_is_found_at_the_next_use(self, pair: Pair) -> None:
        pair.store([memory_of(1, "a kestrel"), memory_of(2, "a walk")])
        with pair.server.database.write():
            pair.server.database.before_commit.clear()  # as one that has no library
            pair.server.database.run("UPDATE memories SET content = 'a heron' WHERE seq = 1")
            pair.server.database.run("INSERT INTO memories (content) VALUES ('a bittern')")
        pair.server.database.before_commit.append(pair.server.keywords.catch_up)
        assert pair.server.keywords.is_stale()
        terms = pair.server.keywords.terms_of("heron bittern kestrel")
        counted = pair.server.keywords.words([1, 3], terms)  # made in passing, and not kept
        assert [list(counted[row].counts) for row in (1, 3)] == [[0], [1]]
        assert pair.server.keywords.is_stale()
        with pair.server.read():
            assert pair.server.keywords.frequencies(terms) == [1, 1, 0]
        assert not pair.server.keywords.is_stale()

    def test_nothing_is_left_of_a_write_that_failed(self, pair: Pair) -> None:
        with pytest.raises(RuntimeError), pair.server.write():  # noqa: PT012 - a transaction
            pair.server.memories.insert(memory_of(1, "a kestrel"))
            pair.server.keywords.catch_up()
            raise RuntimeError
        assert vocabulary(pair) == ({}, {})


TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
        st.sampled_from(DENSE + " .,?'\"-_ÄßıİǅﬀÅé\u0301\u200d"),
    ),
    min_size=1,
    max_size=150,
).filter(str.strip)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=2)), min_size=1, max_size=8))
@example([("東京 a 京" * 40, ["東", "café"]), ("x" * 10_000, []), ("東" * 10_000, [])])
def test_any_text_has_the_words_of_a_file(
    pair: Pair, texts: Sequence[tuple[str, Sequence[str]]]
) -> None:
    memories = []
    for number, (content, tags) in enumerate(texts):
        try:
            memories.append(memory_of(number, content, tags=list(tags)))
        except ValueError:  # what no memory may say
            continue
    for engine in pair.both:
        with engine.write():
            engine.memory_rows.delete_many(engine.memories.ids(EVERYTHING))
    pair.store(memories)
    sql = "SELECT content, tags, timestamp FROM memories ORDER BY seq"
    view = "SELECT content, tags, dates, pairs FROM memory_text ORDER BY seq"
    made = [tuple(indexed_text(*row)) for row in pair.file.database.rows(sql)]
    assert made == [tuple(row) for row in pair.file.database.rows(view)]
    assert_index_is_whole(pair)

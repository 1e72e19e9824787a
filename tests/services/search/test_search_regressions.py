"""What searches once got wrong: dates in a text, filters, neighbours of one moment, reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reads import contents

from agent_memory import AgentMemory, SearchResults
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables import memories as records
from agent_memory.storage.sqlite.tables.embeddings import EmbeddingTable
from agent_memory.storage.sqlite.tables.memories import MemoryTable

UNTIMED = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
SHIPPED = schema.migrations()
BEFORE_CENTRED_COSINES = 8
NO_WORDS = ["?", "🎉"]


def ask(memory: AgentMemory, question: str, limit: int = 5, **options: Any) -> SearchResults:
    return memory.search(question, limit, count_accesses=False, **options)


def store_apart(memory: AgentMemory, *texts: str, **fields: Any) -> None:
    """Store memories in a session each, so that none is near another."""
    for text in texts:
        memory.store(text, session_id=f"alone with {text}", **fields)


# Dates that stand in a text ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("June", "June likes tulips"),
        ("Who is April", "April is the new accountant"),
        ("7 May", "Dana starts on 7 May"),
        ("2025-05-03", "Invoice 2025-05-03"),
    ],
)
def test_a_memory_that_says_the_date_is_found_though_it_is_of_another_month(
    plain: AgentMemory, question: str, answer: str
) -> None:
    store_apart(plain, "June likes tulips", "April is the new accountant", "Dana starts on 7 May")
    store_apart(plain, "Invoice 2025-05-03", "The printer is out of paper")
    results = ask(plain, question)
    assert contents(results)[:1] == [answer]
    assert results[0].similarity > 0.5


def test_one_word_of_a_date_does_not_say_the_date(plain: AgentMemory) -> None:
    store_apart(plain, "There are 7 chairs in the hall", "The printer is out of paper")
    assert contents(ask(plain, "7 May")) == []


# Filters that leave out the answer --------------------------------------------------------------


ANSWER = "Dana chose the yellow kayak for the river trip"
QUESTION = "Which kayak did Dana choose for the river?"


@pytest.fixture
def trips(plain: AgentMemory) -> AgentMemory:
    store_apart(plain, ANSWER, tags=["sport"], user_id="ann")
    store_apart(plain, "The river is seen from the office", tags=["office"], user_id="ann")
    store_apart(plain, "The printer stands by the river", tags=["office"], user_id="carl")
    return plain


def test_an_answer_that_the_filters_leave_out_is_a_near_miss(trips: AgentMemory) -> None:
    """The memory within the filter has a word of the query, but too little of it."""
    results = ask(trips, QUESTION, tags=["office"])
    assert contents(results) == []
    assert results.search_metadata.reason == "filtered_out"
    near = results.search_metadata.near_misses[0]
    assert near.content == ANSWER
    assert "filters" in near.reason


def test_where_no_memory_has_enough_of_the_query_no_filter_is_blamed(trips: AgentMemory) -> None:
    results = ask(trips, "Which zeppelin did Zelda Zimmermann ride to the river?", tags=["office"])
    assert contents(results) == []
    assert results.search_metadata.reason == "below_floor"
    assert results.search_metadata.near_misses != []
    for near in results.search_metadata.near_misses:
        assert "filters" not in near.reason


def test_an_answer_of_another_user_is_no_near_miss(trips: AgentMemory) -> None:
    results = ask(trips, QUESTION, user_id="carl", tags=["office"])
    assert results.search_metadata.reason == "below_floor"
    assert ANSWER not in [near.content for near in results.search_metadata.near_misses]


# Neighbours in a session ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = Database(tmp_path_factory.mktemp("neighbours") / "memory.db")
    schema.upgrade(opened, now="2026-01-28T12:00:00.000000Z", before_upgrade=pytest.fail)
    yield opened
    opened.close()


def fill(database: Database, rows: Sequence[tuple[str, int]]) -> list[tuple[str, str, int]]:
    """Make these the only memories, each of a session and a second: (session, time, seq)."""
    with database.write():
        database.run("DELETE FROM memories")
        database.run_many(
            "INSERT INTO memories (id, content, created_by_session, timestamp)"
            " VALUES (?, 'said', ?, ?)",
            [
                (f"mem-{place}", session, f"2026-01-28T12:00:{second:02}.000000Z")
                for place, (session, second) in enumerate(rows)
            ],
        )
        sql = "SELECT created_by_session, timestamp, seq FROM memories"
        return [(session, moment, row_id) for session, moment, row_id in database.rows(sql)]


def plainly(stored: Sequence[tuple[str, str, int]]) -> dict[int, dict[int, int]]:
    """Return the neighbours of each row as they are in the sessions, put in order."""
    found: dict[int, dict[int, int]] = {}
    for session in {session for session, _, _ in stored}:
        order = [row_id for whose, _, row_id in sorted(stored) if whose == session]
        for place, row_id in enumerate(order):
            found[row_id] = {
                distance: order[place + distance]
                for distance in (-2, -1, 1, 2)
                if 0 <= place + distance < len(order)
            }
    return found


@UNTIMED
@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.integers(0, 3)), max_size=14))
def test_neighbours_are_the_two_before_and_the_two_after(
    database: Database, rows: list[tuple[str, int]]
) -> None:
    """At the same time or not, in one session and no other."""
    stored = fill(database, rows)
    found = MemoryTable(database).neighbours([row_id for _, _, row_id in stored])
    assert found == plainly(stored)


def test_in_a_session_of_one_moment_the_order_is_that_of_storing(database: Database) -> None:
    stored = fill(database, [("import", 0)] * 3_000)
    row_ids = [row_id for _, _, row_id in sorted(stored)]
    found = MemoryTable(database).neighbours([row_ids[0], row_ids[1_500], row_ids[-1]])
    middle = row_ids[1_500]
    assert found[middle] == {-2: middle - 2, -1: middle - 1, 1: middle + 1, 2: middle + 2}
    assert found[row_ids[0]] == {1: row_ids[1], 2: row_ids[2]}
    assert found[row_ids[-1]] == {-2: row_ids[-3], -1: row_ids[-2]}


@pytest.mark.parametrize("own", ["", "AND user_id = m.user_id"], ids=["all", "of a user"])
def test_neighbours_are_looked_up_and_not_searched_for(database: Database, own: str) -> None:
    """Those of the same moment by their row ids too, so that not all of them are read."""
    sql = records._SELECT_AROUND.format(own=own)
    plan = [row[3] for row in database.rows(f"EXPLAIN QUERY PLAN {sql}", ("[]",))]
    assert [step for step in plan if step.startswith("SCAN memories")] == []
    looks = [step for step in plan if step.startswith("SEARCH memories")]
    start = "user_id=? AND " if own else ""
    pattern = rf"\({re.escape(start)}(created_by.*)\)"
    bounds = [match[1] for step in looks if (match := re.search(pattern, step))]
    moments = {bound.removeprefix("created_by_session=? AND ") for bound in bounds}
    same = {"timestamp=? AND seq<?", "timestamp=? AND seq>?"}
    assert len(bounds) == len(looks) == 4
    assert moments == same | {"timestamp<?", "timestamp>?"}


# Reasons ----------------------------------------------------------------------------------------


def test_below_a_threshold_only_what_matches_is_counted(plain: AgentMemory) -> None:
    """Neighbours in a session are candidates that match nothing."""
    talk = ["Ann learns the violin", "Yes", "Since when?", "The violin orchestra plays on Mondays"]
    for text in talk:
        plain.store(text, session_id="talk")
    results = ask(plain, "learns violin", similarity_threshold=0.99)
    assert contents(results) == [talk[0]]
    metadata = results.search_metadata
    assert str(metadata.explanation).startswith("1 more matched")
    assert [near.content for near in metadata.near_misses] == [talk[3]]


def test_neighbours_below_a_threshold_are_no_reason(plain: AgentMemory) -> None:
    """Nothing that matches was cut off, so the explanation speaks of no such thing."""
    for text in ("Ann learns the violin", "Yes", "Since when?"):
        plain.store(text, session_id="talk")
    metadata = ask(plain, "learns violin", similarity_threshold=0.99).search_metadata
    assert metadata.reason == "few_matches"
    assert metadata.near_misses == []
    assert "0 more" not in str(metadata.explanation)


@pytest.mark.parametrize("question", NO_WORDS)
def test_without_vectors_a_query_without_words_is_empty(plain: AgentMemory, question: str) -> None:
    store_apart(plain, "Ann learns the violin")
    results = ask(plain, question)
    assert contents(results) == []
    assert results.search_metadata.reason == "empty_query"
    assert "no letters or digits" in str(results.search_metadata.explanation)


@pytest.mark.parametrize("options", [{}, {"tags": ["none"]}], ids=["all", "filtered"])
@pytest.mark.parametrize("question", NO_WORDS)
def test_with_vectors_a_query_without_words_gets_no_empty_list_of_words(
    root: Path, clock: Clock, question: str, options: dict[str, Any]
) -> None:
    with AgentMemory("bob", root=root, clock=clock, embedder="wordllama") as memory:
        store_apart(memory, "The certificate is renewed every ninety days", "Ann has a dog")
        memory.migrate()
        metadata = ask(memory, question, **options).search_metadata
    assert metadata.reason in ("below_floor", "no_match", "few_matches", "filtered_out")
    assert metadata.explanation
    assert not metadata.explanation.rstrip().endswith(":")
    assert "words or their forms" not in metadata.explanation


# The migration of the weights -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "weight", "expected"),
    [
        ("wordllama-l2-supercat-256", 0.5, 1.1),
        ("wordllama-l2-supercat-256", 0.9, 1.1),
        ("unknown", 0.5, 0.8),
        ("unknown", 0.7, 0.7),
        ("unknown", 1.0, 1.0),
    ],
)
@pytest.mark.parametrize("floor", [None, 0.3])
def test_a_file_of_plain_cosines_has_the_weights_of_centred_ones(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    weight: float,
    expected: float,
    floor: float | None,
) -> None:
    path = tmp_path / "old.db"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: SHIPPED[:BEFORE_CENTRED_COSINES])
        older = Database(path)
        schema.upgrade(older, now="2026-01-28T12:00:00.000000Z", before_upgrade=pytest.fail)
        older.run(
            "INSERT INTO embedding_models (model, dimensions, embedder, state, similarity_floor,"
            " vector_weight, created_at) VALUES (?, 256, 'any', 'active', ?, ?, '2026')",
            (model, floor, weight),
        )
        older.close()
    AgentMemory.open(path, agent_id="bob", embedder=None).close()
    upgraded = Database(path)
    (found,) = EmbeddingTable(upgraded).models()
    upgraded.close()
    assert (found.vector_weight, found.similarity_floor) == (expected, None)


# The past ---------------------------------------------------------------------------------------


def test_what_is_of_the_date_is_still_found_beside_what_says_it(plain: AgentMemory) -> None:
    june = NOW - timedelta(days=225)
    plain.store("The roof was mended", session_id="roof", timestamp=june)
    store_apart(plain, "June likes tulips")
    assert set(contents(ask(plain, "June"))) == {"The roof was mended", "June likes tulips"}

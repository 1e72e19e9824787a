"""A memory that is read by a process which lives for one question answers as the whole does."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    MemoryContextConfig,
    MemoryExcerpt,
    MemoryReader,
    ValidationError,
    render_memories,
)
from agent_memory.services.rendering import PLAIN
from bench.workload import NOW, Workload

pytestmark = pytest.mark.file_only("a reader is of a file")

HEAVY = {"pydantic", "pydantic_core", "dataclasses", "inspect", "yaml", "click", "numpy", "openai"}
"""What takes as long to import as a whole search, or longer."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A root with an agent of 400 memories, and questions about them."""
    root = tmp_path_factory.mktemp("filled")
    workload = Workload()
    items = list(workload.memories(400))
    with AgentMemory("bob", root=root, clock=lambda: NOW) as memory:
        ids = memory.store_many(items)
        memory.delete(ids[7])
        memory.archive(ids[9])
        for memory_id in ids[20:26]:
            memory.promote(memory_id)
    return root, [workload.question(str(item["content"])) for item in items[::8]]


def opened(root: Path) -> MemoryReader:
    reader = MemoryReader.open("bob", root=root)
    assert reader is not None
    return reader


def test_its_answers_are_those_of_the_whole(filled: tuple[Path, list[str]]) -> None:
    root, questions = filled
    odd = ["", "?!", "wörter und 漢字", "last week in March 2024", "x" * 3_000, "\ud800"]
    answered = 0
    with opened(root) as reader, AgentMemory("bob", root=root) as memory:
        for question in [*questions, *odd]:
            hits = memory.search(question, 12, include_weak=False, count_accesses=False)
            excerpts = reader.search(question, 12)
            assert excerpts == [MemoryExcerpt.of(hit.memory) for hit in hits], question
            answered += bool(excerpts)
        recent = [MemoryExcerpt.of(entry) for entry in memory.list_recent(30)]
        assert reader.list_recent(30) == recent
        for tokens in (100, 300, 1_200):
            assert reader.context(tokens) == memory.context(tokens)
        whole = memory.list_recent(30)
        assert render_memories(recent, 700, agent_id="bob") == render_memories(
            whole, 700, agent_id="bob"
        )
    assert answered > 40


FILTERS: list[dict[str, Any]] = [
    {"tags": ["ops"]},
    {"tags": [" OPS ", "db"], "tags_match": "any"},
    {"tags": ["ops", "db"]},
    {"tags": ["nothing-has-it"]},
    {"category": "decision"},
    {"category": ["decision", "note"], "user_id": None},
    {"user_id": "ann"},
    {"user_id": "ann", "run_id": "r-1"},
    {"user_id": "nobody"},
    {"session_id": "s-2", "tags": ["ops"]},
]


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with memories about two users, with tags, categories, sessions and runs."""
    root = tmp_path_factory.mktemp("owned")
    items = list(Workload().memories(120))
    for number, item in enumerate(items):
        item["user_id"] = (None, "ann", "bea")[number % 3]
        item["run_id"] = (None, "r-1")[number % 2] if item["user_id"] else None
        item["tags"] = [["ops"], ["db"], ["ops", "db"], []][number % 4]
        item["category"] = ("decision", "note", "bugfix")[number % 5 % 3]
    with AgentMemory("bob", root=root, clock=lambda: NOW, session_id="s-1") as memory:
        memory.store_many(items)
    with AgentMemory("bob", root=root, session_id="s-2") as memory:
        memory.store("kafka of another session", tags=["ops"])
    return root


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_let_the_same_pass(owned: Path, filters: dict[str, Any]) -> None:
    queries = ("kafka", "the deployment of the service", "nosuchword")
    with opened(owned) as reader, AgentMemory("bob", root=owned) as memory:
        for query in queries:
            expected = memory.search(query, 12, filters=filters, count_accesses=False)
            answer = reader.answer(query, 12, filters=filters, count_accesses=False)
            assert [hit.memory for hit in answer.results] == [
                MemoryExcerpt.of(hit.memory) for hit in expected
            ]
            metadata, told = answer.search_metadata, expected.search_metadata
            assert metadata.filters_applied == told.filters_applied
            assert (metadata.reason, metadata.explanation) == (told.reason, told.explanation)
            assert [it.memory_id for it in metadata.near_misses] == [
                it.memory_id for it in told.near_misses
            ]
        recent = memory.list_recent(50, filters=filters)
        assert reader.list_recent(50, filters=filters) == [MemoryExcerpt.of(it) for it in recent]
        assert [it.id for it in reader.list_whole(50, filters=filters)] == [it.id for it in recent]
        assert bool(recent) == ({"nobody", "nothing-has-it"}.isdisjoint(str(filters).split("'")))


@pytest.mark.parametrize(
    "filters",
    [{"kind": "core"}, {"colour": "red"}, {"colour": None}, {"tags": "ops"}, {"tags": [7]},
     {"tags": ["x" * 51]}, {"tags_match": "some"}, {"user_id": 7},
     {"category": ["a", None]}, {"session_id": "\ud800"}, {1: 2}, "ops", ["ops"], "", [], 0, False],
    ids=ascii,
)  # fmt: skip
def test_filters_that_are_none_are_refused(owned: Path, filters: Any) -> None:
    name = str(next(iter(filters))) if isinstance(filters, dict) else "filters"
    with opened(owned) as reader:
        for ask in (partial(reader.search, "kafka"), reader.list_recent, reader.list_whole):
            with pytest.raises(ValidationError, match=name):
                ask(filters=filters)


CALLS: dict[str, tuple[str, list[Any]]] = {
    "search": ("query", [None, b"x", 5]),
    "search kafka": ("limit", ["5", 2**70, -1, 0, 1_000, True, 1.0]),
    "list_recent": ("limit", ["5", 2**70, -1, 0, True]),
    "context": ("token_budget", ["5", 2**70, -1, True]),
}


@pytest.mark.parametrize(("call", "value"), [(c, v) for c, (_, vs) in CALLS.items() for v in vs])
def test_what_is_no_argument_is_refused_as_the_whole_refuses_it(
    owned: Path, call: str, value: Any
) -> None:
    verb, *first = call.split(" ")
    with opened(owned) as reader, AgentMemory("bob", root=owned) as memory:
        refusals = []
        for asked in (reader, memory):
            with pytest.raises(ValidationError) as caught:
                getattr(asked, verb)(*first, value)
            refusals.append((str(caught.value), caught.value.errors()))
    assert refusals[0] == refusals[1]
    assert refusals[0][1][0]["loc"] == (CALLS[call][0],)


def test_it_has_no_limits_that_are_not_said(owned: Path) -> None:
    with opened(owned) as reader:
        for ask in (partial(reader.search, "kafka"), reader.list_recent, reader.list_whole):
            with pytest.raises(ValidationError, match="limit: must be a whole number"):
                ask(None)  # type: ignore[arg-type]
        with pytest.raises(ValidationError, match="token_budget: must be a whole number"):
            reader.context(None)  # type: ignore[arg-type]


def test_rows_of_another_program_are_read_as_the_whole_reads_them(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        for number in range(4):
            memory.store(f"The kettle of kitchen {number} is blue", tags=["kitchen"])
        path = memory.path
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE memories SET tags = '[\"DB\", 3]', category = 'Odd' WHERE seq = 1")
    tags = '["", " X ", null]'
    connection.execute("UPDATE memories SET tags = ?, user_id = 'alice' WHERE seq = 2", (tags,))
    connection.close()
    with opened(tmp_path) as reader, AgentMemory("bob", root=tmp_path) as memory:
        hits = memory.search("kettle", 12, include_weak=False, count_accesses=False)
        assert len(hits) == 4
        assert reader.search("kettle", 12) == [MemoryExcerpt.of(hit.memory) for hit in hits]


def test_its_searches_are_counted_and_what_it_gave_out_is_known(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory_id = memory.store("The kettle is blue")
    with opened(tmp_path) as reader:
        assert [hit.id for hit in reader.search("kettle")] == [memory_id]
    with AgentMemory("bob", root=tmp_path) as memory:
        assert memory.info().stats.total_queries == 1
        stored = memory.get(memory_id)
        assert stored is not None
        assert stored.access_count == 0
        # What was given out and comes back is an echo, not a second memory.
        assert memory.store("The kettle is blue") == memory_id


def test_read_only_leaves_no_trace(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("The kettle is blue")
    reader = MemoryReader.open("bob", root=tmp_path, read_only=True)
    assert reader is not None
    with reader:
        assert len(reader.search("kettle")) == 1
    with AgentMemory("bob", root=tmp_path) as memory:
        assert memory.info().stats.total_queries == 0


def test_there_is_none_where_only_the_whole_can_answer(tmp_path: Path) -> None:
    assert MemoryReader.open("nobody", root=tmp_path) is None
    assert MemoryReader.open("bob", root="postgresql://localhost/none") is None
    assert not any(tmp_path.iterdir())
    with AgentMemory("bob", root=tmp_path, embedder="wordllama") as memory:
        memory.store("The kettle is blue")
        opened(tmp_path).close()
        memory.migrate()
    assert MemoryReader.open("bob", root=tmp_path) is None
    reader = MemoryReader.open("bob", root=tmp_path, by_keyword=True)
    assert reader is not None
    with reader:
        assert [hit.content for hit in reader.search("kettle")] == ["The kettle is blue"]
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.rollback()
        opened(tmp_path).close()
        memory.configure(event_log="brief")
    assert MemoryReader.open("bob", root=tmp_path) is None


@pytest.mark.parametrize(("threshold", "count"), [(0.0, 3), (0.84, 2), (1.0, 1)])
def test_settings_of_the_agent_count_for_it_too(
    tmp_path: Path, threshold: float, count: int
) -> None:
    kettles = [
        "The blue kettle of the kitchen is old",
        "The blue kettle of the kitchen is old, and so is the stove of it, says the cook every day",
        "A blue kettle stands in the kitchen, by the window, as the old cook wants to have it",
    ]
    query = "old blue kettle kitchen"
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store_many({"content": kettle} for kettle in kettles)
        memory.store_many({"content": f"The bell of house {number} is red"} for number in range(9))
        memory.configure(
            similarity_threshold=threshold, categories=["kitchen"], scratchpad_max_size=10
        )
        hits = memory.search(query, 12, include_weak=False, count_accesses=False)
        context = memory.context(500)
    with opened(tmp_path) as reader:
        assert len(hits) == count
        assert reader.search(query, 12) == [MemoryExcerpt.of(hit.memory) for hit in hits]
        assert reader.context(500) == context


@pytest.mark.parametrize("threshold", ['"high"', "7", "true"])
def test_settings_that_no_program_of_ours_wrote_are_left_to_the_whole(
    tmp_path: Path, threshold: str
) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("The kettle is blue")
        path = memory.path
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE agent SET config = ?", (f'{{"similarity_threshold": {threshold}}}',))
    connection.close()
    assert MemoryReader.open("bob", root=tmp_path) is None


def test_another_agents_file_and_an_impossible_name_are_refused(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("The kettle is blue")
    (tmp_path / "bob").rename(tmp_path / "eve")
    with pytest.raises(ConfigurationError, match="'bob'"):
        MemoryReader.open("eve", root=tmp_path)
    with pytest.raises(ValidationError):
        MemoryReader.open("../bob", root=tmp_path)


def test_a_reader_that_was_closed_says_so(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("The kettle is blue")
    reader = opened(tmp_path)
    reader.close()
    reader.close()
    with pytest.raises(Exception, match="closed"):
        reader.search("kettle")


def test_rendering_without_settings_is_that_of_their_defaults() -> None:
    defaults = MemoryContextConfig()
    values = {name: getattr(defaults, name) for name in PLAIN._fields}
    assert PLAIN._asdict() == {**values, "exclude_categories": ()}
    assert defaults.exclude_categories == []


def test_its_process_waits_for_no_heavy_import(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("The kettle is blue")
    code = f"""
import sys
from agent_memory import MemoryReader
with MemoryReader.open("bob", root={str(tmp_path)!r}) as reader:
    assert len(reader.search("kettle of last week")) == 1
    assert reader.list_recent() and reader.context()
print(*sorted({HEAVY!r} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""

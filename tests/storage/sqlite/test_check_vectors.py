"""Damage to embeddings and their index: found, named, mended, and searches are right again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from embedding_server import DIMENSIONS, WordEmbedder

from agent_memory import AgentMemory
from agent_memory.storage import code_search
from agent_memory.storage.quantization import code_bits
from agent_memory.storage.sqlite.connection import Database

Cli = Callable[..., Ran]

IN_ENGLISH = {"hund": "dog", "katze": "cat", "pferd": "horse", "baum": "tree", "fluss": "river"}
STORED = list(IN_ENGLISH.values())
OTHER_CODE = f"vec_bit(zeroblob({code_bits(DIMENSIONS) // 8}))"


def two_languages() -> WordEmbedder:
    return WordEmbedder("two-languages", english=IN_ENGLISH)


@pytest.fixture
def path(root: Path) -> Path:
    """Make a store that was moved, close it, and return its file."""
    return make(root, STORED)


def make(root: Path, texts: Sequence[str]) -> Path:
    with opened(root, two_languages()) as memory:
        memory.store_many(
            {"content": text, "id": text, "session_id": f"of {text}"} for text in texts
        )
        memory.migrate(embedder=two_languages())
        assert memory.check().problems == []
        return memory.path


def opened(root: Path, embedder: WordEmbedder | None = None) -> AgentMemory:
    return AgentMemory("bob", root=root, embedder=embedder or two_languages())


@pytest.fixture
def embedder() -> WordEmbedder:
    return two_languages()


@pytest.fixture
def memory(root: Path, path: Path, embedder: WordEmbedder) -> Iterator[AgentMemory]:
    assert path.exists()
    with opened(root, embedder) as made:
        yield made


def damage(path: Path, *statements: str, values: Sequence[Any] = ()) -> None:
    """Change a file as no program should: with sqlite-vec at hand, and no foreign keys."""
    database = Database(path)
    database.load_vectors()
    database.run("PRAGMA foreign_keys = OFF")
    with database.write():
        for statement in statements:
            database.run(statement, values)
    database.close()


def found(memory: AgentMemory, question: str) -> list[str]:
    results = memory.search(question, similarity_threshold=0.9, count_accesses=False)
    assert results.search_metadata.degraded == []
    return [hit.memory.content for hit in results]


def assert_right(memory: AgentMemory) -> None:
    """Assert that every memory is found by its meaning, and nothing is wrong."""
    for question, answer in IN_ENGLISH.items():
        assert found(memory, question) == [answer]
    assert memory.check().problems == []
    assert memory.info().pending_embeddings == 0


@dataclass(frozen=True)
class Damage:
    """A way to damage a file, what ``check`` says of it, and what must be embedded again."""

    sql: list[str]
    kind: str
    words: str
    again: list[str] = field(default_factory=list)


WRONG, STALE, MISSING = "wrong_embedding", "stale_vector_index", "missing_embedding"
DAMAGES = {
    "a vector is cut off": Damage(
        ["UPDATE embeddings SET vector = substr(vector, 1, 10) WHERE seq = 1"],
        WRONG,
        "the vector of memory dog is damaged",
        ["dog"],
    ),
    "a vector is too long": Damage(
        ["UPDATE embeddings SET vector = CAST(vector || x'01' AS BLOB) WHERE seq = 2"],
        WRONG,
        "the vector of memory cat is damaged",
        ["cat"],
    ),
    "a vector is empty": Damage(
        ["UPDATE embeddings SET vector = x'' WHERE seq = 1"],
        WRONG,
        "the vector of memory dog is damaged",
        ["dog"],
    ),
    "a vector is all zeros": Damage(
        [f"UPDATE embeddings SET vector = zeroblob({DIMENSIONS}) WHERE seq = 1"],
        WRONG,
        "the vector of memory dog is damaged",
        ["dog"],
    ),
    "all vectors are zeros": Damage(
        [f"UPDATE embeddings SET vector = zeroblob({DIMENSIONS})"],
        WRONG,
        "the vector of memory river is damaged",
        STORED,
    ),
    "a hash is another text's": Damage(
        ["UPDATE embeddings SET text_hash = zeroblob(16) WHERE seq = 3"],
        WRONG,
        "the embedding of memory horse does not match its text",
        ["horse"],
    ),
    "two vectors are exchanged": Damage(
        [
            "UPDATE embeddings SET seq = 900000 WHERE seq = 1",
            "UPDATE embeddings SET seq = 1 WHERE seq = 2",
            "UPDATE embeddings SET seq = 2 WHERE seq = 900000",
        ],
        WRONG,
        "the embedding of memory dog does not match its text",
        ["dog", "cat"],
    ),
    "a vector is gone": Damage(
        ["DELETE FROM embeddings WHERE seq = 1", "DELETE FROM embedding_queue"],
        MISSING,
        "1 memory has no embedding and is not queued for one",
        ["dog"],
    ),
    "all vectors are gone": Damage(
        ["DELETE FROM embeddings", "DELETE FROM embedding_queue"],
        MISSING,
        f"{len(STORED)} memories have no embedding",
        STORED,
    ),
    "a vector has no memory": Damage(
        [
            """INSERT INTO embeddings (seq, model_id, text_hash, scale, vector)
            SELECT 900000, model_id, text_hash, scale, vector FROM embeddings WHERE seq = 1"""
        ],
        WRONG,
        "an embedding has no memory",
    ),
    "a row of the index is gone": Damage(
        ["DELETE FROM embedding_index_1 WHERE rowid = 2"],
        STALE,
        "1 row of embedding_index_1 does not match",
    ),
    "a row of the index is another's": Damage(
        [
            "DELETE FROM embedding_index_1 WHERE rowid = 2",
            f"INSERT INTO embedding_index_1 (rowid, cell, code) VALUES (2, 0, {OTHER_CODE})",
        ],
        STALE,
        "1 row of embedding_index_1 does not match",
    ),
    "the index has a row of nothing": Damage(
        [f"INSERT INTO embedding_index_1 (rowid, cell, code) VALUES (900000, 0, {OTHER_CODE})"],
        STALE,
        "1 row of embedding_index_1 does not match",
    ),
    "the index is empty": Damage(
        ["DELETE FROM embedding_index_1"],
        STALE,
        f"{len(STORED)} rows of embedding_index_1 do not match",
    ),
    "the index is gone": Damage(
        ["DROP TABLE embedding_index_1"],
        STALE,
        "the table embedding_index_1 is missing",
    ),
    "an index of no model is left over": Damage(
        ["CREATE VIRTUAL TABLE embedding_index_99 USING vec0(code bit[8])"],
        STALE,
        "the table embedding_index_99 belongs to no model",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_named_and_mended(
    memory: AgentMemory, embedder: WordEmbedder, name: str
) -> None:
    done = DAMAGES[name]
    damage(memory.path, *done.sql)
    report = memory.check()
    assert not report.ok
    assert any(
        problem.kind == done.kind and done.words in problem.detail for problem in report.problems
    ), report.problems
    assert not any(problem.repaired for problem in report.problems)
    mended = memory.check(repair=True)
    assert mended.ok, mended.problems
    assert memory.embed() == len(done.again)
    assert embedder.asked == done.again
    assert_right(memory)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_search_of_a_damaged_file_neither_fails_nor_shows_what_is_not_there(
    memory: AgentMemory, name: str
) -> None:
    damage(memory.path, *DAMAGES[name].sql)
    for question in [*IN_ENGLISH, *STORED, "something else"]:
        contents = [hit.memory.content for hit in memory.search(question, 10)]
        assert set(contents) <= set(STORED)
    assert [hit.memory.content for hit in memory.search("horse", 1)] == ["horse"]


@pytest.mark.parametrize("name", DAMAGES)
def test_memories_change_in_a_damaged_file_as_in_a_sound_one(
    memory: AgentMemory, name: str
) -> None:
    damage(memory.path, *DAMAGES[name].sql)
    memory.update("dog", content="bridge")
    memory.delete("cat")
    memory.store("lantern", id="lantern", session_id="alone")
    memory.update("horse", archived=True)
    memory.update("horse", archived=False)
    memory.update("dog", content="dog")
    memory.store("cat", id="another-cat", session_id="of another cat")
    memory.check(repair=True)
    memory.embed()
    assert_right(memory)


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_in_a_store_that_is_searched_by_its_index_is_mended(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_search, "EXACT_UP_TO", 100)
    path = make(root, [*STORED, *(f"filler{number}" for number in range(100))])
    damage(path, *DAMAGES[name].sql)
    with opened(root) as memory:
        assert not memory.check().ok
        assert memory.check(repair=True).ok
        memory.embed()
        assert_right(memory)


def test_several_kinds_of_damage_are_mended_at_once(
    memory: AgentMemory, embedder: WordEmbedder
) -> None:
    names = [
        "a vector is cut off",
        "a hash is another text's",
        "a vector has no memory",
        "a row of the index is gone",
        "an index of no model is left over",
    ]
    damage(memory.path, *(sql for name in names for sql in DAMAGES[name].sql))
    details = [problem.detail for problem in memory.check().problems]
    for name in ["a vector is cut off", "a hash is another text's", "a vector has no memory"]:
        assert DAMAGES[name].words in details
    assert memory.check(repair=True).ok
    assert memory.embed() == 2
    assert sorted(embedder.asked) == ["dog", "horse"]
    assert_right(memory)


def test_a_damaged_vector_does_not_keep_new_ones_from_being_made(memory: AgentMemory) -> None:
    names = ["a vector is cut off", "the index is gone"]
    damage(memory.path, *(sql for name in names for sql in DAMAGES[name].sql))
    memory.store("lantern", session_id="alone")
    assert memory.info().pending_embeddings == 0
    assert memory.check(repair=True).ok
    memory.embed()
    assert_right(memory)


def test_a_mended_memory_is_found_after_the_next_search_without_embed(memory: AgentMemory) -> None:
    damage(memory.path, *DAMAGES["all vectors are zeros"].sql)
    assert memory.check(repair=True).ok
    assert memory.info().pending_embeddings == len(STORED)
    memory.search("hund", count_accesses=False)
    assert_right(memory)


def test_mending_what_is_sound_changes_nothing(memory: AgentMemory, embedder: WordEmbedder) -> None:
    assert memory.check(repair=True).problems == []
    assert embedder.asked == []
    assert_right(memory)


def test_a_check_without_an_embedder_mends_the_file_and_leaves_the_vectors_waiting(
    root: Path, path: Path
) -> None:
    damage(path, *DAMAGES["a vector is cut off"].sql)
    with AgentMemory("bob", root=root, embedder=None) as memory:
        assert memory.check(repair=True).ok
        assert memory.info().pending_embeddings == 1
        assert [hit.memory.content for hit in memory.search("dog", 1)] == ["dog"]
    with opened(root) as memory:
        memory.embed()
        assert_right(memory)


def test_archived_memories_are_no_fault_of_the_index(memory: AgentMemory) -> None:
    memory.update("dog", archived=True)
    assert memory.embed() == 0
    assert memory.check().problems == []
    damage(memory.path, "DROP TABLE embedding_index_1")
    assert memory.check(repair=True).ok
    assert found(memory, "hund") == []
    memory.update("dog", archived=False)
    assert_right(memory)


def test_what_waits_is_no_damage(root: Path, path: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store("lantern", session_id="alone")
        memory.update("dog", content="bridge")
        memory.delete("cat")
        assert memory.check().problems == []
    assert path.exists()


def test_a_half_finished_move_is_no_damage(root: Path) -> None:
    embedder = two_languages()

    def stop(_progress: object) -> None:
        raise KeyboardInterrupt

    with opened(root, embedder) as memory:
        memory.store_many({"content": text, "id": text, "session_id": text} for text in STORED)
        with pytest.raises(KeyboardInterrupt):
            memory.migrate(embedder=embedder, progress=stop)
        assert memory.check().problems == []
        memory.delete("dog")
        memory.update("cat", content="lantern")
        assert memory.check().problems == []
        memory.migrate(embedder=embedder)
        assert found(memory, "pferd") == ["horse"]
        assert memory.check().problems == []


def test_the_command_names_the_damage_and_mends_it(cli: Cli, path: Path, root: Path) -> None:
    damage(path, *DAMAGES["a vector is cut off"].sql, *DAMAGES["the index is gone"].sql)
    env = {"AGENT_MEMORY_EMBEDDER": "none"}
    looked = cli("--agent", "bob", "check", env=env)
    assert looked.code != 0
    assert "the vector of memory dog is damaged" in looked.out + looked.err
    assert "embedding_index_1 is missing" in looked.out + looked.err
    assert cli("--agent", "bob", "check", "--repair", env=env).code == 0
    assert cli("--agent", "bob", "check", env=env).code == 0
    with opened(root) as memory:
        assert memory.embed() == 1
        assert_right(memory)

"""Where sqlite-vec is not installed: the same answers, a reason why they take longer, no damage."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import TESTS, Visitor
from embedding_server import WordEmbedder

from agent_memory import AgentMemory, SearchResults
from agent_memory.storage.code_search import EXACT_UP_TO
from agent_memory.storage.sqlite.connection import Database

IN_ENGLISH = {"hund": "dog", "katze": "cat", "baum": "tree", "fluss": "river"}
STORED = ["dog", "cat", "horse"]
MANY = EXACT_UP_TO + 500
SENTENCE_WORDS = "red green blue old new fast slow house river tree cat dog train garden".split()


def two_languages() -> WordEmbedder:
    return WordEmbedder("two-languages", english=IN_ENGLISH, similarity_floor=0.25)


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide sqlite-vec from files that are opened from now on."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)


def opened(root: Path, embedder: WordEmbedder | None = None) -> AgentMemory:
    return AgentMemory("bob", root=root, embedder=embedder or two_languages())


def store_apart(memory: AgentMemory, *texts: str) -> None:
    memory.store_many({"content": text, "session_id": f"of {text}"} for text in texts)


def make(root: Path, *texts: str) -> Path:
    with opened(root) as memory:
        store_apart(memory, *texts)
        memory.migrate(embedder=two_languages())
        return memory.path


def found(memory: AgentMemory, question: str) -> list[str]:
    results = memory.search(question, similarity_threshold=0.9, count_accesses=False)
    assert results.search_metadata.backend == "vector"
    return [hit.memory.content for hit in results]


def answers(results: SearchResults) -> list[tuple[str, str]]:
    return [(hit.memory.id, hit.match_type) for hit in results]


# The same answers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[300, MANY])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with few vectors, which are all compared, or with many, which are not."""
    root = tmp_path_factory.mktemp("large")
    numbers = np.random.default_rng(4)
    texts = [
        f"item{number} {' '.join(numbers.choice(SENTENCE_WORDS, 5))}"
        for number in range(request.param)
    ]
    with opened(root) as memory:
        memory.store_many(
            {"content": text, "session_id": text, "category": "task" if place % 8 else "note"}
            for place, text in enumerate(texts)
        )
        memory.migrate(embedder=two_languages())
    return root


QUESTIONS = ["hund", "katze und baum", "fluss", "fast train", "item7", "a blue hund", "fahrrad"]


@pytest.mark.parametrize("category", [None, "task"])
def test_the_same_questions_get_the_same_answers(
    large: Path, monkeypatch: pytest.MonkeyPatch, category: str | None
) -> None:
    def ask() -> list[SearchResults]:
        with opened(large) as memory:
            return [
                memory.search(question, 10, category=category, count_accesses=False)
                for question in QUESTIONS
            ]

    with_it = ask()
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    without = ask()
    for one, other in zip(with_it, without, strict=True):
        assert answers(one) == answers(other)
        assert len(one) == 10
        assert one.search_metadata.degraded == []
        (reason,) = other.search_metadata.degraded
        assert "pip install sqlite-vec" in reason
        assert "scanned" in reason
        assert other.search_metadata.backend == "vector"


# Writing there ------------------------------------------------------------------------------------


def test_what_is_stored_there_is_found_there_and_the_index_follows_later(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, *STORED)
    embedder = two_languages()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        with opened(root, embedder) as memory:
            store_apart(memory, "tree")
            assert found(memory, "baum") == ["tree"]
            memory.delete(memory.search("dog", 1)[0].memory.id)
            assert found(memory, "hund") == []
            assert memory.check().problems == []
    with opened(root, embedder) as memory:
        assert found(memory, "baum") == ["tree"]
        assert found(memory, "hund") == []
        assert indexed(memory.path) == memory.count() == 3
        assert memory.check().problems == []
    assert embedder.asked.count("tree") == 1


def indexed(path: Path) -> int:
    """Count the rows of the only index."""
    database = Database(path, read_only=True)
    database.load_vectors()
    (model_id,) = database.row("SELECT model_id FROM embedding_models WHERE is_indexed") or (0,)
    count = database.value(f"SELECT count(*) FROM embedding_index_{model_id}") if model_id else 0
    database.close()
    return int(count)


def test_an_index_is_rebuilt_before_a_search_relies_on_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fillers = [f"filler{number}" for number in range(EXACT_UP_TO)]
    make(root, *STORED, *fillers)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        with opened(root) as memory:
            store_apart(memory, "tree")
    with opened(root) as memory:
        assert found(memory, "baum") == ["tree"]
        assert indexed(memory.path) == len(STORED) + len(fillers) + 1


@pytest.mark.usefixtures("hidden")
def test_a_move_works_there(root: Path) -> None:
    make(root, *STORED)
    with opened(root) as memory:
        assert found(memory, "hund") == ["dog"]
        assert memory.info().storage_backend == "vector"
        assert memory.check().problems == []


def test_a_move_that_was_made_there_gets_its_index_later(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        path = make(root, *STORED)
    with opened(root) as memory:
        assert found(memory, "hund") == ["dog"]
        assert indexed(path) == len(STORED)
        assert memory.check().problems == []


def test_a_rollback_works_there_and_what_it_left_is_swept_up_later(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, *STORED)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        with opened(root) as memory:
            assert memory.rollback() is True
            assert memory.search("hund").search_metadata.reason == "no_match"
            assert memory.search("dog")[0].memory.content == "dog"
            assert memory.info().storage_backend == "file"
    with opened(root) as memory:
        assert memory.rollback() is False
        memory.check(repair=True)
        assert memory.check().problems == []
        memory.migrate(embedder=two_languages())
        assert found(memory, "hund") == ["dog"]
        assert memory.check().problems == []


def test_there_and_back_and_there_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, *STORED)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        with opened(root) as memory:
            memory.rollback()
            store_apart(memory, "tree")
            memory.migrate(embedder=two_languages())
            assert found(memory, "baum") == ["tree"]
    with opened(root) as memory:
        assert found(memory, "baum") == ["tree"]
        memory.check(repair=True)
        assert memory.check().problems == []
        assert found(memory, "hund") == ["dog"]


@pytest.mark.usefixtures("hidden")
def test_damage_is_found_and_mended_there(root: Path) -> None:
    path = make(root, *STORED)
    database = Database(path)
    with database.write():
        database.run("UPDATE embeddings SET vector = zeroblob(64) WHERE seq = 1")
    database.close()
    with opened(root) as memory:
        kinds = [problem.kind for problem in memory.check().problems]
        assert kinds == ["wrong_embedding", "stale_vector_index"]
        assert memory.check(repair=True).ok
        assert memory.embed() == 1
        assert found(memory, "hund") == ["dog"]
        assert memory.check().problems == []


def test_a_process_that_has_it_and_one_that_has_not_share_a_file(root: Path) -> None:
    make(root, *STORED)
    code = (
        "import sys; sys.modules['sqlite_vec'] = None; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from test_without_sqlite_vec import found, opened, store_apart\n"
        "memory = opened(Path(sys.argv[1]))\n"
        "store_apart(memory, 'river')\n"
        "print(found(memory, 'baum'), found(memory, 'fluss'))\n"
        "memory.close()\n"
    )
    here = Path(__file__).parent
    with opened(root) as memory:
        store_apart(memory, "tree")
        done = subprocess.run(
            [sys.executable, "-c", code, str(root), str(here), str(TESTS)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout == "['tree'] ['river']\n", done.stderr
        assert found(memory, "fluss") == ["river"]
        store_apart(memory, "bridge")
        assert indexed(memory.path) == 6
        assert memory.check().problems == []


# Plain sqlite3 ------------------------------------------------------------------------------------


def test_plain_sqlite3_reads_inserts_edits_and_deletes(root: Path, visitor: Visitor) -> None:
    path = make(root, *STORED)
    assert visitor(path, "SELECT content FROM memories ORDER BY seq").split() == STORED
    assert visitor(path, "SELECT model, dimensions FROM embedding_models") == "two-languages|64"
    assert visitor(path, "SELECT count(*), sum(length(vector)) FROM embeddings") == "3|192"
    visitor(
        path,
        "INSERT INTO memories (content) VALUES ('tree');;"
        "UPDATE memories SET content = 'river' WHERE content = 'cat';;"
        "DELETE FROM memories WHERE content = 'dog'",
    )
    with opened(root) as memory:
        assert found(memory, "baum") == ["tree"]
        assert found(memory, "fluss") == ["river"]
        assert not {"dog", "cat"} & {*found(memory, "hund"), *found(memory, "katze")}
        assert memory.check().problems == []


@pytest.mark.parametrize("sql", ["VACUUM", "REINDEX", "ANALYZE", "PRAGMA integrity_check"])
def test_plain_sqlite3_tidies_a_moved_file(root: Path, visitor: Visitor, sql: str) -> None:
    path = make(root, *STORED)
    visitor(path, sql)
    with opened(root) as memory:
        assert found(memory, "hund") == ["dog"]
        assert indexed(path) == len(STORED)
        assert memory.check().problems == []


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
def test_a_dump_of_a_moved_file_makes_the_same_file(root: Path, tmp_path: Path) -> None:
    path = make(root, *STORED)
    dumped = subprocess.run(
        ["sqlite3", str(path), ".dump"], capture_output=True, text=True, timeout=60, check=True
    )
    assert not dumped.stderr
    again = tmp_path / "again" / "bob" / "memories.db"
    again.parent.mkdir(parents=True)
    head = "".join(
        f"PRAGMA {name} = {pragma(path, name)};\n" for name in ("application_id", "user_version")
    )
    loaded = subprocess.run(
        ["sqlite3", str(again)],
        input=head + dumped.stdout,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not loaded.stderr
    with opened(tmp_path / "again") as memory:
        assert found(memory, "hund") == ["dog"]
        # A dump drops the comments of an index, whether the store was moved or not.
        problems = memory.check(repair=True).problems
        assert {problem.kind for problem in problems} <= {"wrong_schema"}
        assert memory.check().problems == []


def pragma(path: Path, name: str) -> str:
    done = subprocess.run(
        ["sqlite3", str(path), f"PRAGMA {name}"], capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()

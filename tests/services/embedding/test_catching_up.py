"""The embeddings follow the memories, whoever changes them, and no text is embedded twice.

The memories are English words, the questions German ones of the same meaning, so that nothing but
a vector can find an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import embedding_server
import pytest
from conftest import Visitor
from embedding_server import DIMENSIONS, EmbeddingServer

from agent_memory import AgentMemory, EmbeddingError, OpenAIEmbedder

IN_ENGLISH = {
    "hund": "dog",
    "katze": "cat",
    "pferd": "horse",
    "haus": "house",
    "baum": "tree",
    "fluss": "river",
}
STORED = ["dog", "cat", "horse"]
OTHERS = [f"filler{number}" for number in range(12)]


@pytest.fixture(autouse=True)
def two_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server give German words the vectors of the English ones."""
    of_text: Callable[[str, int], list[float]] = embedding_server.text_vector

    def of_either(text: str, dimensions: int = DIMENSIONS) -> list[float]:
        return of_text(IN_ENGLISH.get(text, text), dimensions)

    monkeypatch.setattr(embedding_server, "text_vector", of_either)


def embedder(server: EmbeddingServer) -> OpenAIEmbedder:
    return OpenAIEmbedder(base_url=server.url, api_key="k", dimensions=DIMENSIONS, max_retries=0)


@pytest.fixture
def memory(root: Path, server: EmbeddingServer) -> Iterator[AgentMemory]:
    """Open a small store that was moved; when the test is over, it must still be sound."""
    with AgentMemory("bob", root=root, embedder=embedder(server)) as opened:
        store_apart(opened, *STORED, *OTHERS)
        opened.migrate(embedder=embedder(server))
        yield opened
        opened.embed()
        assert opened.info().pending_embeddings == 0
        assert opened.check().problems == []


def store_apart(memory: AgentMemory, *texts: str) -> None:
    memory.store_many({"content": text, "id": text, "session_id": f"of {text}"} for text in texts)


def found(memory: AgentMemory, question: str) -> list[str]:
    """Return the contents of what means the same as the question, repeats too."""
    results = memory.search(question, similarity_threshold=0.9, count_accesses=False)
    assert results.search_metadata.backend == "vector"
    assert results.search_metadata.degraded == []
    return [hit.memory.content for hit in results for _ in (hit.memory.id, *hit.repeats)]


# What the library itself changes ------------------------------------------------------------------


def test_what_is_stored_is_found_by_its_meaning(memory: AgentMemory) -> None:
    assert found(memory, "baum") == []
    memory.store("tree", session_id="alone")
    assert found(memory, "baum") == ["tree"]


def test_many_are_embedded_in_batches(memory: AgentMemory, server: EmbeddingServer) -> None:
    before = len(server.requests)
    store_apart(memory, "tree", *(f"more{number}" for number in range(249)))
    sizes = [len(request.body["input"]) for request in server.requests[before:]]
    assert sorted(sizes) == [50, 100, 100]
    assert memory.info().pending_embeddings == 0
    assert found(memory, "baum") == ["tree"]


def test_what_is_updated_is_found_by_its_new_meaning(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    memory.update("dog", content="tree")
    assert found(memory, "baum") == ["tree"]
    assert found(memory, "hund") == []
    assert server.texts.count("tree") == 1


def test_an_update_of_anything_but_the_content_asks_for_nothing(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    before = len(server.requests)
    memory.update("dog", tags=["pet"], importance="high", metadata={"legs": 4})
    memory.update("cat", archived=True)
    memory.update("cat", archived=False)
    assert len(server.requests) == before
    assert found(memory, "katze") == ["cat"]


def test_what_is_deleted_is_not_found(memory: AgentMemory) -> None:
    memory.delete("dog")
    assert found(memory, "hund") == []
    assert found(memory, "katze") == ["cat"]


def test_what_is_archived_is_found_only_where_it_is_asked_for(memory: AgentMemory) -> None:
    memory.update("dog", archived=True)
    assert found(memory, "hund") == []
    for archived in (True, None):
        results = memory.search("hund", 1, filters={"archived": archived})
        assert [hit.memory.content for hit in results] == ["dog"]
    memory.update("dog", archived=False)
    assert found(memory, "hund") == ["dog"]


def test_a_text_that_is_stored_twice_is_embedded_once(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    for number in range(3):
        memory.store("tree", session_id=f"forest {number}")
    memory.store_many({"content": "river", "session_id": f"bed {n}"} for n in range(3))
    assert server.texts.count("tree") == 1
    assert server.texts.count("river") == 1
    assert found(memory, "baum") == ["tree"] * 3
    assert found(memory, "fluss") == ["river"] * 3


def test_a_text_that_another_process_embedded_is_not_embedded_again(
    memory: AgentMemory, server: EmbeddingServer, root: Path
) -> None:
    memory.store("tree", session_id="alone")
    with AgentMemory("bob", root=root, embedder=embedder(server)) as other:
        other.store("tree", session_id="another")
        assert found(other, "baum") == ["tree", "tree"]
    assert server.texts.count("tree") == 1


# What another program changes ---------------------------------------------------------------------


def test_a_row_that_another_program_inserts_is_found(
    memory: AgentMemory, visitor: Visitor, server: EmbeddingServer
) -> None:
    visitor(memory.path, "INSERT INTO memories (content) VALUES ('tree')")
    assert memory.info().pending_embeddings == 1
    memory.search("baum", count_accesses=False)
    assert found(memory, "baum") == ["tree"]
    assert server.texts.count("tree") == 1


def test_the_first_search_after_an_insert_finds_it(memory: AgentMemory, visitor: Visitor) -> None:
    visitor(memory.path, "INSERT INTO memories (content) VALUES ('tree')")
    assert found(memory, "baum") == ["tree"]


def test_a_text_that_another_program_edits_has_its_new_meaning(
    memory: AgentMemory, visitor: Visitor, server: EmbeddingServer
) -> None:
    visitor(memory.path, "UPDATE memories SET content = 'house' WHERE content = 'dog'")
    assert found(memory, "haus") == ["house"]
    assert found(memory, "hund") == []
    assert server.texts.count("house") == 1


@pytest.mark.parametrize(
    "sql",
    [
        """UPDATE memories SET tags = '["pet"]' WHERE content = 'dog'""",
        "UPDATE memories SET content = content",
        (
            "UPDATE memories SET content = 'house' WHERE content = 'dog';;"
            "UPDATE memories SET content = 'dog' WHERE content = 'house'"
        ),
    ],
    ids=["only tags", "the same text", "there and back"],
)
def test_what_means_the_same_as_before_is_not_embedded_again(
    memory: AgentMemory, visitor: Visitor, server: EmbeddingServer, sql: str
) -> None:
    visitor(memory.path, sql)
    assert found(memory, "hund") == ["dog"]
    assert (server.texts.count("dog"), server.texts.count("house")) == (1, 0)
    assert memory.info().pending_embeddings == 0


def test_a_text_is_put_back_after_a_search_saw_another(
    memory: AgentMemory, visitor: Visitor, server: EmbeddingServer
) -> None:
    visitor(memory.path, "UPDATE memories SET content = 'house' WHERE content = 'dog'")
    assert found(memory, "haus") == ["house"]
    visitor(memory.path, "UPDATE memories SET content = 'dog' WHERE content = 'house'")
    assert found(memory, "hund") == ["dog"]
    assert found(memory, "haus") == []
    assert server.texts.count("dog") == 1


def test_two_rows_that_exchange_their_texts_exchange_their_meanings(
    memory: AgentMemory, visitor: Visitor, server: EmbeddingServer
) -> None:
    visitor(
        memory.path,
        "UPDATE memories SET content = CASE content WHEN 'dog' THEN 'cat' ELSE 'dog' END"
        " WHERE content IN ('dog', 'cat')",
    )
    assert found(memory, "hund") == ["dog"]
    assert memory.search("hund", 1)[0].memory.id == "cat"
    assert memory.search("katze", 1)[0].memory.id == "dog"
    assert server.texts.count("dog") + server.texts.count("cat") == 2


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memories SET archived = 1 WHERE content = 'dog'",
        "DELETE FROM memories WHERE content = 'dog'",
    ],
    ids=["archived", "deleted"],
)
def test_what_another_program_takes_away_is_not_found(
    memory: AgentMemory, visitor: Visitor, server: EmbeddingServer, sql: str
) -> None:
    visitor(memory.path, sql)
    before = list(server.texts)
    assert found(memory, "hund") == []
    assert found(memory, "katze") == ["cat"]
    assert server.texts == [*before, "hund", "katze"]


def test_a_row_number_that_is_used_again_has_no_old_meaning(
    memory: AgentMemory, visitor: Visitor
) -> None:
    visitor(
        memory.path,
        "DELETE FROM memories WHERE content = 'dog';;"
        "INSERT INTO memories (seq, content) VALUES (1, 'tree')",
    )
    assert found(memory, "hund") == []
    assert found(memory, "baum") == ["tree"]


def test_embeddings_that_another_program_deletes_are_made_again(
    memory: AgentMemory, visitor: Visitor, server: EmbeddingServer
) -> None:
    visitor(memory.path, "DELETE FROM embeddings WHERE seq <= 2")
    assert memory.info().pending_embeddings == 2
    assert memory.embed() == 2
    assert found(memory, "hund") == ["dog"]
    assert found(memory, "katze") == ["cat"]
    assert server.texts.count("horse") == 1


def test_embeddings_that_another_program_deletes_are_back_at_the_next_search(
    memory: AgentMemory, visitor: Visitor
) -> None:
    visitor(memory.path, "DELETE FROM embeddings")
    memory.search("hund", count_accesses=False)
    assert found(memory, "hund") == ["dog"]


# Several handles ----------------------------------------------------------------------------------


def test_what_was_written_without_an_embedder_is_embedded_by_who_has_one(
    memory: AgentMemory, server: EmbeddingServer, root: Path
) -> None:
    before = list(server.texts)
    with AgentMemory("bob", root=root, embedder=None) as without:
        without.store("tree", session_id="alone")
        without.update("dog", content="river")
        without.delete("cat")
        assert without.info().pending_embeddings == 2  # what is gone waits for nothing
        assert [hit.memory.content for hit in without.search("tree", 1)] == ["tree"]
    assert server.texts == before
    assert found(memory, "baum") == ["tree"]
    assert found(memory, "fluss") == ["river"]
    assert found(memory, "hund") == found(memory, "katze") == []


def test_two_handles_see_what_the_other_does(
    memory: AgentMemory, server: EmbeddingServer, root: Path
) -> None:
    with AgentMemory("bob", root=root, embedder=embedder(server)) as other:
        other.store("tree", session_id="alone")
        assert found(memory, "baum") == ["tree"]
        memory.update("dog", content="river")
        assert found(other, "fluss") == ["river"]
        other.delete("cat")
        assert found(memory, "katze") == []
    assert server.texts.count("tree") == server.texts.count("river") == 1


def test_a_handle_that_may_only_read_searches_by_meaning_and_writes_nothing(
    memory: AgentMemory, server: EmbeddingServer, root: Path, visitor: Visitor
) -> None:
    visitor(memory.path, "INSERT INTO memories (content) VALUES ('tree')")
    with AgentMemory("bob", root=root, embedder=embedder(server), read_only=True) as reader:
        results = reader.search("hund", 1)
        assert [hit.memory.content for hit in results] == ["dog"]
        assert results.search_metadata.backend == "vector"
        assert "1 memory is not embedded yet" in results.search_metadata.degraded[0]
        assert [hit.memory.content for hit in reader.search("tree", 1)] == ["tree"]
        assert reader.info().pending_embeddings == 1
    assert server.texts == [*STORED, *OTHERS, "hund", "tree"]  # the last two are questions


def test_a_handle_that_may_only_read_does_not_return_old_meanings(
    memory: AgentMemory, server: EmbeddingServer, root: Path, visitor: Visitor
) -> None:
    visitor(
        memory.path,
        "UPDATE memories SET content = 'house' WHERE content = 'dog';;"
        "DELETE FROM memories WHERE content = 'cat';;"
        "UPDATE memories SET archived = 1 WHERE content = 'horse'",
    )
    with AgentMemory("bob", root=root, embedder=embedder(server), read_only=True) as reader:
        for question in ("hund", "katze", "pferd"):
            hits = reader.search(question, similarity_threshold=0.9)
            assert [hit.memory.content for hit in hits] == []


# Catching up --------------------------------------------------------------------------------------


@pytest.fixture
def down(server: EmbeddingServer) -> Callable[[], None]:
    """Take the provider down; calling what this returns brings it back."""
    server.behaviour.status = 500

    def back() -> None:
        server.behaviour.status = 200

    return back


def test_a_store_succeeds_while_the_provider_is_down_and_waits(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    server.behaviour.status = 500
    store_apart(memory, "tree", "river")
    assert memory.info().pending_embeddings == 2
    results = memory.search("tree", 1)
    assert [hit.memory.content for hit in results] == ["tree"]
    assert "searched by keyword only" in results.search_metadata.degraded[0]
    assert results.search_metadata.backend == "file"
    server.behaviour.status = 200
    assert memory.embed() == 2
    assert found(memory, "baum") == ["tree"]
    assert memory.embed() == 0
    assert server.texts.count("tree") == 1


class Closing(logging.Handler):
    """Closes a memory once it has stored something that looks like a secret."""

    def __init__(self, memory: AgentMemory) -> None:
        super().__init__()
        self.memory = memory

    def emit(self, record: logging.LogRecord) -> None:
        if "contain a secret" in record.getMessage():
            self.memory.close()


@pytest.mark.parametrize("has_vectors", [True, False])
def test_only_a_memory_with_vectors_says_that_embedding_is_postponed(
    root: Path, server: EmbeddingServer, caplog: pytest.LogCaptureFixture, *, has_vectors: bool
) -> None:
    memory = AgentMemory("closed", root=root, embedder=embedder(server))
    if has_vectors:
        memory.migrate()
    log, handler = logging.getLogger("agent_memory"), Closing(memory)
    log.addHandler(handler)
    try:
        memory.store("the password: hunter2-Sesame-77", on_secret="warn")
    finally:
        log.removeHandler(handler)
    assert ("embedding postponed" in caplog.text) is has_vectors
    with AgentMemory("closed", root=root, embedder=None) as again:
        assert again.count() == 1


def test_catching_up_tells_its_progress(memory: AgentMemory, server: EmbeddingServer) -> None:
    server.behaviour.status = 500
    store_apart(memory, *(f"late{number}" for number in range(230)))
    server.behaviour.status = 200
    told: list[tuple[int, int]] = []
    assert memory.embed(progress=lambda done, total: told.append((done, total))) == 230
    assert told == [(100, 230), (200, 230), (230, 230)]


def test_what_was_embedded_before_the_provider_failed_is_kept(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    server.behaviour.status = 500
    store_apart(memory, *(f"late{number}" for number in range(230)))
    server.behaviour.status = 200

    def fail_from_now_on(_done: int, _total: int) -> None:
        server.behaviour.status = 500

    with pytest.raises(EmbeddingError, match="HTTP status 500"):
        memory.embed(progress=fail_from_now_on)
    assert memory.info().pending_embeddings == 130
    server.behaviour.status = 200
    assert memory.embed() == 130
    assert all(server.texts.count(f"late{number}") == 1 for number in range(230))


def test_a_search_catches_up_a_batch_and_says_what_still_waits(
    memory: AgentMemory, server: EmbeddingServer, visitor: Visitor
) -> None:
    visitor(
        memory.path,
        "INSERT INTO memories (content) WITH RECURSIVE n (i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 130) SELECT 'later' || i FROM n",
    )
    first = memory.search("hund", count_accesses=False).search_metadata.degraded
    assert first == ["30 memories are not embedded yet, and found by keyword only"]
    assert found(memory, "hund") == ["dog"]
    assert memory.info().pending_embeddings == 0
    assert all(server.texts.count(f"later{number}") == 1 for number in range(1, 131))

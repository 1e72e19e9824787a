"""Any sequence of verbs over a memory with vectors: what is found, and what is in its tables."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from embedding_server import text_vector
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from agent_memory import AgentMemory
from agent_memory.errors import EmbeddingError, MigrationError
from agent_memory.storage.quantization import quantize, text_hash
from agent_memory.storage.sqlite.connection import Database

WORDS = ("harbour", "lantern", "violet", "granite", "数据库", "กาแฟ", "naïve")
CONTENTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
MODELS = ("words-16", "words-32")


class WordEmbedder:
    """Texts that share words are near. It fails while ``is_down`` says so."""

    def __init__(self, model: str, down: list[bool]) -> None:
        self.model = model
        self.dimensions = int(model.partition("-")[2])
        self._down = down

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self._down[0]:
            raise OSError("the service is down")
        return [text_vector(text, self.dimensions) for text in texts]


class Machine(RuleBasedStateMachine):
    """A memory with vectors, beside a dictionary of what it must hold, and another program."""

    ids: Bundle[str] = Bundle("ids")

    @initialize(model=st.sampled_from(MODELS))
    def open(self, model: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.down = [False]
        self.model = model
        self.has_vectors = False
        self.held: dict[str, str] = {}
        self.archived: set[str] = set()
        self.deleted: set[str] = set()
        self._open()
        self.visitor = Database(self.memory.path)
        self.migrate(model)

    def _open(self) -> None:
        embedder = WordEmbedder(self.model, self.down)
        self.memory = AgentMemory("bob", root=self.folder, embedder=embedder, synchronous="NORMAL")

    # The memory's own verbs -------------------------------------------------------------------

    @rule(target=ids, content=CONTENTS)
    def store(self, content: str) -> str:
        memory_id = self.memory.store(content, on_duplicate="keep")
        self.held[memory_id] = content
        return memory_id

    @rule(memory_id=ids, content=CONTENTS)
    def update(self, memory_id: str, content: str) -> None:
        self.memory.update(memory_id, content=content)
        self.held[memory_id] = content

    @rule(memory_id=consumes(ids))
    def delete(self, memory_id: str) -> None:
        self.memory.delete(memory_id)
        self._forget(memory_id)

    @rule(query=CONTENTS)
    def search(self, query: str) -> None:
        found = self.memory.search(query, limit=100)
        assert len({hit.memory.id for hit in found}) == len(found)
        if self.has_vectors and not self.down[0]:
            self.memory.embed()  # after a failure it rests for a while: this wakes it up
            found = self.memory.search(query, limit=100)
            assert found.search_metadata.backend == "vector"
            assert found.search_metadata.degraded == []

    @rule()
    def fail(self) -> None:
        self.down[0] = True

    @rule()
    def recover(self) -> None:
        self.down[0] = False

    @rule()
    def embed(self) -> None:
        waiting = self._waiting() if self.has_vectors else set()
        try:
            self.memory.embed()
        except EmbeddingError:
            assert self.down[0]
            assert waiting
            return
        if self.has_vectors:
            self._every_memory_has_its_vector()
            assert self.memory.check().problems == []

    @rule()
    def rollback(self) -> None:
        there_were = self._count("embedding_models") > 0  # complete, or of a move that failed
        assert self.memory.rollback() is there_were
        assert there_were or not self.has_vectors
        self.has_vectors = False
        assert self._count("embeddings") == self._count("embedding_models") == 0

    @rule(model=st.sampled_from(MODELS))
    def migrate(self, model: str) -> None:
        try:
            done = self.memory.migrate(embedder=WordEmbedder(model, self.down))
        except MigrationError:
            assert self.down[0]
            return
        assert done.status == "completed"
        self.has_vectors = True
        self.model = model
        # It was opened with the embedder of the old model.
        self.memory.close()
        self._open()

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self._open()

    # Another program --------------------------------------------------------------------------

    @rule(target=ids, content=CONTENTS)
    def insert_by_hand(self, content: str) -> str:
        memory_id = f"mem-{len(self.held) + len(self.deleted):012x}"
        self._run("INSERT INTO memories (id, content) VALUES (?, ?)", memory_id, content)
        self.held[memory_id] = content
        return memory_id

    @precondition(lambda self: self.held)
    @rule(data=st.data(), content=CONTENTS)
    def edit_by_hand(self, data: st.DataObject, content: str) -> None:
        memory_id = data.draw(st.sampled_from(list(self.held)))
        self._run("UPDATE memories SET content = ? WHERE id = ?", content, memory_id)
        self.held[memory_id] = content

    @precondition(lambda self: self.held)
    @rule(data=st.data(), archived=st.booleans())
    def archive_by_hand(self, data: st.DataObject, archived: bool) -> None:
        memory_id = data.draw(st.sampled_from(list(self.held)))
        self._run("UPDATE memories SET archived = ? WHERE id = ?", int(archived), memory_id)
        (self.archived.add if archived else self.archived.discard)(memory_id)

    @rule(memory_id=consumes(ids))
    def delete_by_hand(self, memory_id: str) -> None:
        self._run("DELETE FROM memories WHERE id = ?", memory_id)
        self._forget(memory_id)

    @precondition(lambda self: self.has_vectors)
    @rule()
    def drop_the_index_by_hand(self) -> None:
        """Programs may: it is built again."""
        self.visitor.load_vectors()
        (model_id,) = self.visitor.rows("SELECT model_id FROM embedding_models LIMIT 1")[0]
        self._run(f"DROP TABLE IF EXISTS embedding_index_{model_id}")

    # What holds after each of them ------------------------------------------------------------

    @invariant()
    def nothing_is_wrong_that_does_not_simply_wait(self) -> None:
        if hasattr(self, "memory"):
            self.memory.search("harbour")  # the next use, which builds a dropped index again
            problems = self.memory.check().problems
            # A dropped index waits to be built again until the embedder is asked again.
            assert [one for one in problems if not one.detail.endswith("is missing")] == []

    @invariant()
    def every_memory_is_found_by_its_own_text_and_no_deleted_one_ever(self) -> None:
        if not hasattr(self, "memory"):
            return
        assert {one.id: one.content for one in self.memory.list_recent(1000)} == {
            memory_id: content
            for memory_id, content in self.held.items()
            if memory_id not in self.archived
        }
        for content in set(self.held.values()):
            hits = self.memory.search(content, limit=100)
            found = {found_id for hit in hits for found_id in (hit.memory.id, *hit.repeats)}
            having = {one for one, held in self.held.items() if held == content}
            assert having - self.archived <= found
            assert not found & (self.deleted | self.archived)

    # Looking into the file --------------------------------------------------------------------

    def _every_memory_has_its_vector(self) -> None:
        rows = self.visitor.rows(
            "SELECT m.id, m.content, e.text_hash, e.vector FROM memories AS m"
            " LEFT JOIN embeddings AS e USING (seq)"
            " LEFT JOIN embedding_models AS o USING (model_id)"
            " WHERE o.state = 'active' OR o.state IS NULL"
        )
        assert {row[0]: row[1] for row in rows} == self.held
        assert len(rows) == len(self.held)
        dimensions = int(self.model.partition("-")[2])
        for _, content, stored_hash, vector in rows:
            assert stored_hash == text_hash(content)
            assert vector == quantize(text_vector(content, dimensions)).data
        assert self._waiting() == set()
        assert self.memory.info().pending_embeddings == 0

    def _waiting(self) -> set[int]:
        return {row_id for (row_id,) in self.visitor.rows("SELECT seq FROM embedding_queue")}

    def _count(self, table: str) -> int:
        return int(self.visitor.value(f"SELECT count(*) FROM {table}"))

    def _run(self, sql: str, *values: object) -> None:
        with self.visitor.write():
            self.visitor.run(sql, values)

    def _forget(self, memory_id: str) -> None:
        del self.held[memory_id]
        self.archived.discard(memory_id)
        self.deleted.add(memory_id)

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.down[0] = False
            self.memory.embed()
            if self.has_vectors:
                self._every_memory_has_its_vector()
            assert self.memory.check().problems == []
            self.memory.close()
            self.visitor.close()
            shutil.rmtree(self.folder)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

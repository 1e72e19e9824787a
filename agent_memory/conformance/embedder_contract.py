"""The requirements of an embedder, as pytest tests."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path

from agent_memory import AgentMemory, Embedder


class EmbedderContract:
    """The requirements of an embedder, as pytest tests to inherit.

    Write a ``class TestMine(EmbedderContract)`` in a test module, with a method ``embedder`` that
    returns a new embedder.
    """

    texts: Sequence[str] = (
        "which database to use",
        "PostgreSQL",
        "",
        " ",
        "🦜",
        "日本語",
        "\u200b",
        "a longer text about something else, " * 300,
    )

    def embedder(self) -> Embedder:
        """Return the embedder under test."""
        raise NotImplementedError("return your embedder")

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts as lists."""
        return [[float(x) for x in row] for row in self.embedder().embed(texts)]

    def test_it_says_whose_its_vectors_are(self) -> None:
        """The model has a name of 1 to 200 characters, and a number of dimensions."""
        embedder = self.embedder()
        _expect(1 <= len(embedder.model) <= 200, f"model is {embedder.model!r}")
        _expect(embedder.dimensions > 0, f"dimensions are {embedder.dimensions}")

    def test_each_text_has_a_vector(self) -> None:
        """One vector of finite numbers, not all zero, for each text, whatever it contains."""
        rows = self.vectors(self.texts)
        _expect(len(rows) == len(self.texts), f"{len(rows)} vectors of {len(self.texts)} texts")
        for text, row in zip(self.texts, rows, strict=True):
            _expect(len(row) == self.embedder().dimensions, f"{len(row)} numbers for {text!r:.40}")
            _expect(all(map(math.isfinite, row)), f"not finite for {text!r:.40}")
            _expect(any(row), f"all zero for {text!r:.40}")

    def test_no_texts_have_no_vectors(self) -> None:
        """An empty batch is not an error."""
        _expect(self.vectors([]) == [], "vectors of nothing")

    def test_a_vector_does_not_depend_on_its_neighbours(self) -> None:
        """A text embedded alone or beside others has the same vector, to four digits."""
        rows = self.vectors(self.texts)
        alone = self.vectors(self.texts[:1])[0]
        _expect(_cosine(alone, rows[0]) > 0.9999, f"cosine {_cosine(alone, rows[0])} to itself")

    def test_near_meanings_have_near_vectors(self) -> None:
        """A question is closer to its answer than to an unrelated text."""
        question, answer, other = self.vectors(
            ["which database do we use?", "The database is PostgreSQL.", "Bread needs yeast."]
        )
        _expect(_cosine(question, answer) > _cosine(question, other), "the other text is nearer")

    def test_another_thread_may_embed(self) -> None:
        """A store may call the embedder from another thread."""
        rows: list[list[float]] = []
        thread = threading.Thread(target=lambda: rows.extend(self.vectors(["tea"])))
        thread.start()
        thread.join()
        _expect(len(rows) == 1, "no vector came from another thread")

    def test_a_store_searches_by_it(self, tmp_path: Path) -> None:
        """A memory is found by a question that it answers, through this embedder's vectors."""
        with AgentMemory.open(tmp_path / "memories.db", embedder=self.embedder()) as memory:
            memory.store("The database of new services is PostgreSQL.")
            memory.store("Bread needs yeast and time.")
            memory.migrate()
            results = memory.search("which database do we use?", 1)
            _expect(not results.search_metadata.degraded, str(results.search_metadata.degraded))
            contents = [hit.memory.content for hit in results]
            _expect(contents[:1] == ["The database of new services is PostgreSQL."], "not found")


def _expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise AssertionError(otherwise)


def _cosine(vector: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(vector, other, strict=True))
    return product / (math.hypot(*vector) * math.hypot(*other))

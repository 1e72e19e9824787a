"""The SQLite engine keeps the contract of engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_memory.conformance.engine_contract import EngineContract
from agent_memory.conformance.engine_contract.cases import NOW, memory_of, stored
from agent_memory.storage.engine import Engine
from agent_memory.storage.opening import open_engine
from agent_memory.storage.sqlite import keyword_index


class TestSQLite(EngineContract):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Callable[[], Engine]:
        return lambda: open_engine(tmp_path / "memories.db")

    def test_kept_words_are_bounded_and_follow_what_is_changed(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        filler = " ".join(f"word{n}" for n in range(299))
        words = ("tea", "tea", "coffee")
        rows = stored(engine, *(memory_of(n, f"{w} {filler}") for n, w in enumerate(words)))
        terms = engine.keywords.terms_of("tea coffee")

        def places() -> list[list[int]]:
            counted = engine.keywords.words(rows, terms)
            return [list(counted[row_id].counts) for row_id in rows]

        assert places() == places() == [[0], [0], [1]]
        with engine.write():
            engine.memories.update(rows[0], {"content": f"milk {filler}"}, now=NOW)
            engine.memories.update(rows[1], {"tags": ["coffee"]}, now=NOW)
        for most in (keyword_index.MOST_KEPT, 400):  # of 300 words each
            monkeypatch.setattr(keyword_index, "MOST_KEPT", most)
            assert places() == places() == [[], [0, 1], [1]]

"""The complete contract of an engine, as one class to inherit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agent_memory.conformance.engine_contract.cases import AGENT, NOW
from agent_memory.conformance.engine_contract.filters import FilterContract
from agent_memory.conformance.engine_contract.graph_tables import GraphContract
from agent_memory.conformance.engine_contract.indexes import (
    KeywordContract,
    SimilarityContract,
    VectorContract,
    VocabularyContract,
)
from agent_memory.conformance.engine_contract.reviews import ReviewContract
from agent_memory.conformance.engine_contract.tables import (
    AgentTableContract,
    ErasureContract,
    FingerprintContract,
    HistoryContract,
    MemoryRowContract,
    MemoryTableContract,
    RejectionContract,
    ScratchpadContract,
    TombstoneContract,
)
from agent_memory.conformance.engine_contract.transactions import TransactionContract
from agent_memory.storage.engine import Engine


class EngineContract(
    FilterContract,
    GraphContract,
    KeywordContract,
    SimilarityContract,
    VectorContract,
    VocabularyContract,
    AgentTableContract,
    ErasureContract,
    FingerprintContract,
    HistoryContract,
    MemoryRowContract,
    MemoryTableContract,
    RejectionContract,
    ReviewContract,
    ScratchpadContract,
    TombstoneContract,
    TransactionContract,
):
    """The requirements of an engine, as pytest tests to inherit.

    Write a ``class TestMine(EngineContract)`` in a test module, with a fixture ``opener`` that
    returns a function that opens the memories of agent bob: within a test always the same ones, at
    first empty.
    """

    @pytest.fixture
    def opener(self) -> Callable[[], Engine]:
        """Return the function that opens the store under test."""
        raise NotImplementedError("give a fixture `opener` that returns what opens your engine")

    @pytest.fixture
    def engine(self, opener: Callable[[], Engine]) -> Iterator[Engine]:
        """Yield the empty store of agent bob."""
        opened = opener()
        opened.prepare(AGENT, clock=lambda: NOW)
        yield opened
        opened.close()

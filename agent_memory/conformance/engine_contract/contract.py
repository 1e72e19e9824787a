"""The whole contract of an engine, as one class to inherit."""

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
from agent_memory.conformance.engine_contract.tables import (
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
    """What an engine must keep to, as tests: subclass it in a test module, and say which.

    ``class TestMine(EngineContract)`` has a fixture ``opener``, which returns a function that opens
    the memories of agent bob: in one test always the same, at first empty.
    """

    @pytest.fixture
    def opener(self) -> Callable[[], Engine]:
        """Return what opens the store that is to be tried."""
        raise NotImplementedError("give a fixture `opener` that returns what opens your engine")

    @pytest.fixture
    def engine(self, opener: Callable[[], Engine]) -> Iterator[Engine]:
        """Give the empty store of agent bob."""
        opened = opener()
        opened.prepare(AGENT, clock=lambda: NOW)
        yield opened
        opened.close()

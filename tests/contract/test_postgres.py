"""The PostgreSQL engine keeps the contract of engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from postgres_server import Schemas

from agent_memory.conformance.engine_contract import EngineContract
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.engine import Engine
from agent_memory.storage.opening import open_engine


class TestPostgres(EngineContract):
    @pytest.fixture
    def opener(self, schemas: Schemas, tmp_path: Path) -> Callable[[], Engine]:
        address = AgentAddress(server_address(schemas.url(tmp_path)), "bob")
        return lambda: open_engine(address)

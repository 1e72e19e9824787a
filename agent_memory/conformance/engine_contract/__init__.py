"""The requirements of an engine, as pytest tests: ``EngineContract``."""

import pytest

for module in ("filters", "graph_tables", "indexes", "reviews", "tables", "transactions"):
    pytest.register_assert_rewrite(f"{__name__}.{module}")

from agent_memory.conformance.engine_contract.contract import EngineContract  # noqa: E402

__all__ = ["EngineContract"]

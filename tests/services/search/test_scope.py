"""A search for one user says nothing of another's memories, not even what was nearly found."""

from __future__ import annotations

import pytest

from agent_memory import AgentMemory


@pytest.mark.parametrize("filters", [{"user_id": "ann"}, {"run_id": "r1"}, {"agent_id": "other"}])
def test_near_misses_stay_within_the_scope(memory: AgentMemory, filters: dict[str, str]) -> None:
    memory.store("the walnut is a secret", user_id="bob", run_id="r2")
    results = memory.search("walnut", filters=filters)
    assert list(results) == []
    assert results.search_metadata.near_misses == []
    assert "walnut is" not in results.model_dump_json()
    assert results.search_metadata.reason == "no_match"
    assert "of this user, run or agent" in (results.search_metadata.explanation or "")


def test_other_filters_do_say_what_they_left_out(memory: AgentMemory) -> None:
    memory.store("the walnut of ann", user_id="ann", category="note")
    memory.store("the walnut of bob", user_id="bob", category="note")
    results = memory.search("walnut", user_id="ann", category="task")
    assert results.search_metadata.reason == "filtered_out"
    assert [miss.content for miss in results.search_metadata.near_misses] == ["the walnut of ann"]

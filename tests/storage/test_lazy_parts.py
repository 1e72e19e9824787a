"""What is imported on first use is of the class that the annotation beside it says."""

from __future__ import annotations

from agent_memory import AgentMemory


def test_each_part_of_the_store_and_of_its_engine_is_what_it_is_annotated_as(
    memory: AgentMemory,
) -> None:
    for whole in (memory._store, memory._store._engine):
        kinds = type(whole).__annotations__
        assert {name: type(getattr(whole, name)).__name__ for name in kinds} == kinds
        assert len(kinds) > 5

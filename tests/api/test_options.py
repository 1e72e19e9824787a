"""The options that type checkers know are those of the verbs."""

import inspect
from collections.abc import Callable
from typing import Any, ForwardRef

import pytest

from agent_memory import AgentMemory, MemoryGraph
from agent_memory.api import options
from agent_memory.models.memory import MemoryChanges

OWNER = {"user_id", "run_id"}

VERBS: list[tuple[type, Callable[..., Any], set[str]]] = [
    (options.OwnStoreOptions, AgentMemory.store, {"content", *OWNER}),
    (options.StoreManyOptions, AgentMemory.store_many, {"items"}),
    (
        options.OwnAddOptions,
        AgentMemory.add,
        {"messages", "agent_id", "may_delete", "is_confidential", *OWNER},
    ),
    (options.OwnSearchOptions, AgentMemory.search, {"query", "limit", "filters", "shared"}),
    (options.OwnEntityOptions, MemoryGraph.add_entity, {"name", *OWNER}),
    (options.OwnEdgeOptions, MemoryGraph.add, {"source", "relationship", "target", *OWNER}),
    (options.OwnEdgeChanges, MemoryGraph.update, {"source", "relationship", "target", *OWNER}),
]


def annotations_of(options: type) -> dict[str, str]:
    """Return how each option is annotated, as it is written."""
    return {
        name: each.__forward_arg__ if isinstance(each, ForwardRef) else str(each)
        for name, each in options.__annotations__.items()
    }


@pytest.mark.parametrize(("options", "verb", "left_out"), VERBS)
def test_options_are_those_of_the_verb(
    options: type, verb: Callable[..., Any], left_out: set[str]
) -> None:
    parameters = inspect.signature(verb).parameters
    assert left_out < parameters.keys()
    assert annotations_of(options) == {
        name: str(parameter.annotation)
        for name, parameter in parameters.items()
        if name not in {"self", *left_out}
    }


def test_what_may_be_changed_are_the_fields_of_changes() -> None:
    own = {"if_version", "on_secret"}
    assert annotations_of(options.Changes).keys() == MemoryChanges.model_fields.keys()
    assert annotations_of(options.OwnUpdateOptions).keys() == (
        (MemoryChanges.model_fields.keys() | own) - OWNER
    )

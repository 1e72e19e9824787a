"""C's documents of the graph: its own examples come back as they are, and nonsense does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError as PydanticValidationError

from agent_memory.models.graph import (
    Entity,
    GraphUpdates,
    Relationship,
    clean_name,
    clean_relationship,
    name_key,
)
from agent_memory.models.record import Record

ENTITY: dict[str, Any] = {
    "id": "entity_001",
    "name": "USER_ID",
    "type": "person",
    "aliases": ["user", "I", "me"],
    "metadata": {
        "user_id": "user_123",
        "agent_id": "assistant_001",
        "created_at": "2024-01-15T10:30:00Z",
        "updated_at": "2024-01-15T10:30:00Z",
        "confidence": 1.0,
        "source_memory_ids": ["550e8400-e29b-41d4-a716-446655440000"],
    },
}
RELATIONSHIP: dict[str, Any] = {
    "id": "rel_001",
    "source": "USER_ID",
    "relationship": "prefers",
    "target": "Italian cuisine",
    "metadata": {
        "user_id": "user_123",
        "agent_id": "assistant_001",
        "created_at": "2024-01-15T10:30:00Z",
        "updated_at": "2024-01-15T10:30:00Z",
        "confidence": 0.95,
        "source_memory_id": "550e8400-e29b-41d4-a716-446655440000",
        "temporal_context": "current",
    },
}
UPDATES: dict[str, Any] = {
    "updates": [
        {
            "action": "UPDATE",
            "source": "USER_ID",
            "target": "Italian cuisine",
            "relationship": "loves",
            "old_relationship": "likes",
            "confidence": 0.90,
            "reasoning": "Stronger preference indicated by new information",
        },
        {
            "action": "ADD",
            "source": "USER_ID",
            "target": "pasta dishes",
            "relationship": "especially_enjoys",
            "confidence": 0.85,
            "reasoning": "Specific preference mentioned in conversation",
        },
    ],
    "metadata": {
        "processing_time": "2024-01-15T10:30:00Z",
        "model_used": "gpt-4",
        "total_updates": 2,
    },
}
EXAMPLES: list[tuple[type[Record], dict[str, Any]]] = [
    (Entity, ENTITY),
    (Relationship, RELATIONSHIP),
    (GraphUpdates, UPDATES),
]


@pytest.mark.parametrize(("model", "example"), EXAMPLES, ids=["7", "8", "9"])
def test_an_example_of_the_document_comes_back_as_it_is(
    model: type[Record], example: dict[str, Any]
) -> None:
    written = model.model_validate_json(json.dumps(example)).model_dump_json()
    assert written == json.dumps(example, separators=(",", ":"))


@pytest.mark.parametrize("place", ["type", "aliases", "metadata.agent_id"])
def test_what_is_optional_is_left_out_where_it_is_not_given(place: str) -> None:
    told = json.loads(json.dumps(ENTITY))
    of = told
    *above, name = place.split(".")
    for key in above:
        of = of[key]
    del of[name]
    assert json.loads(Entity.model_validate(told).model_dump_json()) == told


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (Entity, {"name": " "}),
        (Entity, {"name": "x" * 201}),
        (Entity, {"name": "a\x00b"}),
        (Entity, {"id": "two words"}),
        (Entity, {"metadata": {**ENTITY["metadata"], "confidence": 1.5}}),
        (Entity, {"metadata": {}}),
        (Relationship, {"relationship": ""}),
        (Relationship, {"target": None}),
        (GraphUpdates, {"updates": [{**UPDATES["updates"][0], "action": "NONE"}]}),
        (GraphUpdates, {"updates": {}}),
    ],
)
def test_what_cannot_be_is_refused(model: type[Record], change: dict[str, Any]) -> None:
    example = next(it for of, it in EXAMPLES if of is model)
    with pytest.raises(PydanticValidationError):
        model.model_validate({**example, **change})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Alice  Smith", "alice smith", True),
        ("ＡＬＩＣＥ", "Alice", True),
        ("Cafe\u0301", "Café", True),
        ("I", "USER_ID", True),
        ("me", "User", True),
        ("Alice", "Alicia", False),
        ("Imelda", "me", False),
        ("Maße", "Masse", False),
    ],
)
def test_names_mean_the_same_or_not(one: str, other: str, same: bool) -> None:
    assert (name_key(one) == name_key(other)) is same


def test_the_id_of_a_user_names_the_user_in_that_users_graph_alone() -> None:
    assert name_key("Bob_7", "bob_7") == name_key("I")
    assert name_key("bob_7") == "bob_7"


@pytest.mark.parametrize(
    ("given", "kept"), [("Lives in", "lives_in"), ("works-at", "works_at"), (" is  a ", "is_a")]
)
def test_a_relationship_is_one_word_in_lower_case(given: str, kept: str) -> None:
    assert clean_relationship(given) == kept


def test_a_name_has_single_spaces_and_can_be_seen() -> None:
    assert clean_name("  New \n York ") == "New York"
    with pytest.raises(ValueError, match="control"):
        clean_name("New\x07York")

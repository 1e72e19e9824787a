"""Messages, facts and operations as document C writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agent_memory.models.conversation import (
    ContentBlock,
    ExtractedFacts,
    MemoryOperation,
    MemoryOperations,
    Message,
    MessageRole,
    OperationEvent,
)

TEXT_MESSAGE = {
    "role": "user",
    "content": "I love Italian food, especially pasta",
    "timestamp": "2024-01-15T10:30:00Z",
}
IMAGE_MESSAGE = {
    "role": "user",
    "content": [
        {"type": "text", "text": "What do you think of this restaurant?"},
        {
            "type": "image",
            "image_url": {"url": "https://example.com/restaurant.jpg", "detail": "high"},
        },
    ],
    "timestamp": "2024-01-15T10:30:00Z",
}
FACTS = {
    "facts": [
        "User prefers Italian cuisine",
        "User especially likes pasta dishes",
        "User is planning a trip to Italy in July 2024",
        "User works as a software engineer",
    ],
    "extraction_metadata": {
        "model_used": "gpt-4",
        "extraction_time": "2024-01-15T10:30:00Z",
        "confidence_score": 0.92,
        "language_detected": "en",
        "custom_prompt_used": False,
    },
}
OPERATIONS = {
    "memory": [
        {
            "id": "0",
            "event": "UPDATE",
            "text": "User loves Italian cuisine, especially pasta dishes and pizza",
            "old_memory": "User likes Italian food",
            "confidence": 0.95,
            "reasoning": "Expanding existing preference with more specific details",
        },
        {
            "id": "1",
            "event": "ADD",
            "text": "User is planning a trip to Italy in July 2024",
            "confidence": 0.9,
            "reasoning": "New travel information not previously stored",
        },
        {
            "id": "2",
            "event": "NONE",
            "text": "User works as a software engineer",
            "confidence": 1.0,
            "reasoning": "Information already exists and is current",
        },
    ],
    "processing_metadata": {
        "total_operations": 3,
        "decision_time": "2024-01-15T10:30:00Z",
        "model_used": "gpt-4",
        "uuid_mapping_used": True,
    },
}


@pytest.mark.parametrize(
    ("model", "example"),
    [
        pytest.param(Message, TEXT_MESSAGE, id="a text"),
        pytest.param(Message, IMAGE_MESSAGE, id="an image"),
        pytest.param(ExtractedFacts, FACTS, id="facts"),
        pytest.param(MemoryOperations, OPERATIONS, id="operations"),
    ],
)
def test_an_example_of_c_comes_back_as_it_was(
    model: type[BaseModel], example: dict[str, Any]
) -> None:
    written = model.model_validate_json(json.dumps(example)).model_dump_json()
    assert json.dumps(json.loads(written)) == json.dumps(example)  # with the order of the keys


def test_every_optional_field_of_a_message_comes_back() -> None:
    whole = {**TEXT_MESSAGE, "name": "Alice", "metadata": {"topic": {"depth": 2}, "empty": None}}
    assert json.loads(Message.model_validate(whole).model_dump_json()) == whole


def test_the_text_of_a_message() -> None:
    assert Message.model_validate(TEXT_MESSAGE).text == "I love Italian food, especially pasta"
    assert Message.model_validate(IMAGE_MESSAGE).text == (
        "What do you think of this restaurant?\n[image: https://example.com/restaurant.jpg]"
    )


def test_an_image_that_is_in_the_message_is_not_in_its_text() -> None:
    block = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    message = Message.model_validate({"role": "user", "content": [block]})
    assert message.text == "[image: data:image/png;base64]"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"role": "tool"}, "'system', 'user' or 'assistant'"),
        ({"content": None}, "give a string, or a list of blocks"),
        ({"content": "a\x00b"}, "NUL"),
        ({"content": "\ud800"}, "UTF-8"),
        ({"content": [{"type": "text"}]}, "needs 'text'"),
        ({"content": [{"type": "image"}]}, "needs 'image_url'"),
        ({"content": [{"type": "image", "image_url": {"url": ""}}]}, "at least 1 character"),
        ({"content": [{"type": "video", "text": "x"}]}, "'text' or 'image'"),
        (
            {"content": [{"type": "text", "text": "x", "image_url": {"url": "u"}}]},
            "use two blocks",
        ),
        (
            {"content": [{"type": "image", "image_url": {"url": "u", "detail": "best"}}]},
            "'low', 'high' or 'auto'",
        ),
        ({"timestamp": "yesterday"}, "is not a time"),
        ({"name": " "}, "1 to 200 characters"),
        ({"metadata": {"n": float("nan")}}, "JSON cannot represent"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_message(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Message.model_validate({**TEXT_MESSAGE, **change})


def test_a_message_is_made_in_code_too() -> None:
    block = ContentBlock(type="text", text="hello")
    assert Message(role=MessageRole.ASSISTANT, content=[block]).text == "hello"


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        ({"event": "UPDATE", "text": "x"}, "needs the id"),
        ({"event": "DELETE", "text": "x"}, "needs the id"),
        ({"event": "ADD", "text": " "}, "cannot be empty"),
        ({"event": "UPDATE", "id": "a", "text": "x" * 10_001}, "exceeds 10000"),
        ({"event": "FORGET", "text": "x"}, "'ADD', 'UPDATE', 'DELETE' or 'NONE'"),
        ({"event": "ADD", "text": "x", "confidence": 1.5}, "less than or equal to 1"),
        ({"event": "NONE", "text": "x", "id": "an id"}, "is not a memory id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_operation(operation: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        MemoryOperation.model_validate(operation)


def test_the_events_are_those_of_c() -> None:
    assert list(OperationEvent) == ["ADD", "UPDATE", "DELETE", "NONE"]

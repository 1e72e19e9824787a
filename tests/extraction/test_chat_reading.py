"""Conversations from lists, JSON, JSONL and plain text; what is wrong with one is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.extraction.messages import conversation
from agent_memory.models.conversation import Message

LIST = [
    {"role": "user", "content": "I moved to Lisbon", "name": "Alice"},
    {"role": "assistant", "content": "How nice"},
]
SHORT = [("user", "Alice", "I moved to Lisbon"), ("assistant", None, "How nice")]


def shortly(messages: list[Message]) -> list[tuple[str, str | None, str]]:
    return [(message.role.value, message.name, message.text) for message in messages]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(LIST, id="a list"),
        pytest.param(tuple(Message.model_validate(one) for one in LIST), id="messages"),
        pytest.param(iter(LIST), id="an iterator"),
        pytest.param({"messages": LIST}, id="an object"),
        pytest.param(json.dumps(LIST), id="JSON"),
        pytest.param("\ufeff" + json.dumps({"messages": LIST}, indent=2), id="JSON of an object"),
        pytest.param("\n\n".join(map(json.dumps, LIST)) + "\n", id="JSONL"),
        pytest.param("Alice: I moved to Lisbon\nAssistant: How nice", id="lines"),
        pytest.param("**Alice:** I moved to Lisbon\n\n**AI**: How nice\n", id="Markdown"),
    ],
)
def test_a_conversation_is_read(source: Any) -> None:
    assert shortly(conversation(source)) == SHORT


def test_one_message_is_a_conversation() -> None:
    assert shortly(conversation(LIST[0])) == SHORT[:1]
    assert shortly(conversation(json.dumps(LIST[0]))) == SHORT[:1]


@pytest.mark.parametrize(
    ("role", "read_as"),
    [("Human", "user"), ("ai", "assistant"), ("bot", "assistant"), ("developer", "system")],
)
def test_a_role_has_other_names_too(role: str, read_as: str) -> None:
    (message,) = conversation([{"role": role, "content": "I moved to Lisbon"}])
    assert (message.role.value, message.name) == (read_as, None)


def test_lines_go_on_and_have_times() -> None:
    text = "[2024-01-15 10:30] Human: one\n  two\n\nthree\n2024-01-15T10:31:00Z Bob Ray: four"
    first, second = conversation(text)
    assert (first.role.value, first.text) == ("user", "one\n  two\n\nthree")
    assert (second.name, second.text) == ("Bob Ray", "four")
    assert [str(one.timestamp) for one in (first, second)] == [
        "2024-01-15 10:30:00+00:00",
        "2024-01-15 10:31:00+00:00",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Lisbon.\nIt is warm.\n\nMy cat came along.",
        "Note: buy milk\n\nTODO: sell it",
        "see https://example.com/a: it is good\n\nyes",
        "[draft] one\n\n[1] two",
        "at home we say: never\n\nmore",
        "KeyError: 'id'\n\nWARN: the disk is full",
    ],
)
def test_paragraphs_are_messages_of_a_user(text: str) -> None:
    messages = conversation(text)
    assert [message.text for message in messages] == text.split("\n\n")
    assert {(message.role.value, message.name) for message in messages} == {("user", None)}


@pytest.mark.parametrize(
    ("source", "told"),
    [
        pytest.param([], "give at least one", id="nothing"),
        pytest.param("  \n", "give at least one", id="blank"),
        pytest.param([{"role": "robot", "content": "x"}], "messages.0.role.*'robot'", id="a role"),
        pytest.param([LIST[0], {"role": "user"}], r"content: Field required$", id="no content"),
        pytest.param([LIST[0], "hello"], "messages 1: a str is not a message", id="a text"),
        pytest.param({"messages": "hello"}, "give a list of messages", id="no list"),
        pytest.param(5, "give a list of messages", id="a number"),
        pytest.param(b"x", "give a list of messages", id="bytes"),
        pytest.param('[{"role": "user",\n "content": }]', "line 2 is not JSON", id="bad JSON"),
        pytest.param(
            json.dumps(LIST[0]) + '\n{"role": "user", "content": "x"', "line 2 is not", id="cut off"
        ),
        pytest.param(
            json.dumps(LIST[0]) + '\n\n{"role": "robot", "content": "x"}', "line 3", id="a bad line"
        ),
        pytest.param(json.dumps(LIST[0]) + "\n[1]", "line 2: a list is not a message", id="a list"),
        pytest.param("[" * 100_000, "nested too deep|is not JSON", id="deep"),
        pytest.param("User: a\x00b", "line 1.content.*NUL", id="a NUL"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(source: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        conversation(source)


@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize(
    "message",
    [
        lambda deep: {"role": deep, "content": "I like tea"},
        lambda deep: {"role": "user", "name": deep, "content": "I like tea"},
        lambda deep: {"role": "user", "content": deep},
        lambda deep: {"role": "user", "content": [{"type": deep, "text": "I like tea"}]},
        lambda deep: {"role": "user", "content": [{"type": "text", "text": deep}]},
        lambda deep: {"role": "user", "content": "I like tea", "timestamp": deep},
        lambda deep: {"role": "user", "content": "I like tea", "metadata": deep},
    ],
    ids="role name content type text timestamp metadata".split(),
)
def test_what_is_nested_thousands_deep_is_refused(message: Any, kind: type) -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep] if kind is list else {"a": deep}
    with pytest.raises(ValidationError, match="messages"):
        conversation([LIST[0], message(deep)])


def test_a_call_of_a_tool_is_passed_over_however_deep_its_name() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    call = {"id": "1", "type": "function", "function": {"name": deep, "arguments": deep}}
    use = {"type": "tool_use", "id": "1", "name": deep, "input": deep}
    calls: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": [use]},
        {"role": "tool", "name": deep, "tool_call_id": "1", "content": "done"},
    ]
    assert len(conversation([LIST[0], *calls])) == 1


def test_what_was_said_is_not_in_the_error() -> None:
    with pytest.raises(ValidationError) as raised:
        conversation([{"role": "user", "content": "my secret\x00"}])
    assert "my secret" not in f"{raised.value} {raised.value.errors()}"


@pytest.mark.parametrize(
    "text", ['{"content": %s}', '[{"content": %s}]', '{"role": "user", "content": "a"}\n{"a": %s}']
)
def test_a_number_that_python_does_not_read_is_a_fault_of_the_text(text: str) -> None:
    with pytest.raises(ValidationError, match="is not JSON"):
        conversation(text % ("9" * 6_000))


def test_digits_alone_are_what_somebody_said() -> None:
    assert shortly(conversation("9" * 6_000)) == [("user", None, "9" * 6_000)]

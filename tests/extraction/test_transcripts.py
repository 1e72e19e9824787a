"""Transcripts as programs write them: each shape is a file in ``transcripts/``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AddMemoryRequest, AgentMemory, InvalidSession, Message, ValidationError
from agent_memory.extraction.messages import conversation, read_transcript

FILES = Path(__file__).parent / "transcripts"
SPOKEN = [
    ("user", "I live in Oslo."),
    ("assistant", "It is clear today."),
    ("user", "My sister is called Ingrid."),
]
PASSED_OVER = {
    "openai_chat.json": 2,
    "openai_responses.json": 6,
    "anthropic.json": 2,
    "langchain.json": 1,
    "amplifier.jsonl": 2,
    "mcp.json": 2,
}


@pytest.fixture
def memory(root: Path) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        yield memory


def spoken(messages: list[Message]) -> list[tuple[str, str]]:
    """Return who said what, without images and the system's words."""
    lines = [
        (message.role.value, line)
        for message in messages
        if message.role.value != "system"
        for line in message.text.splitlines()
    ]
    return [(role, line) for role, line in lines if line and not line.startswith("[image")]


@pytest.mark.parametrize("name", PASSED_OVER)
def test_every_shape_is_taken_as_it_is(name: str) -> None:
    text = (FILES / name).read_text(encoding="utf-8")
    transcript = read_transcript(text, strict=True)
    assert spoken(transcript.messages) == SPOKEN
    assert (transcript.passed_over, transcript.problems) == (PASSED_OVER[name], [])
    assert spoken(conversation(text)) == SPOKEN


def test_every_file_is_tried() -> None:
    assert {path.name for path in FILES.iterdir()} == PASSED_OVER.keys()


@pytest.mark.parametrize("name", ["openai_chat.json", "anthropic.json", "mcp.json"])
def test_images_stay_images(name: str) -> None:
    messages = read_transcript((FILES / name).read_text(encoding="utf-8")).messages
    assert any("[image: " in message.text for message in messages)
    assert "aGVsbG8" not in " ".join(message.text for message in messages)


@pytest.mark.parametrize("name", PASSED_OVER)
def test_what_is_said_in_them_is_kept(memory: AgentMemory, name: str) -> None:
    data = (FILES / name).read_text(encoding="utf-8")
    source: Any = read_transcript(data) if name.endswith("l") else json.loads(data)
    answer = memory.add(source, user_id="ann")
    assert answer.metadata.passed_over == PASSED_OVER[name]
    contents = " ".join(found.content for found in memory.list_recent())
    assert "Oslo" in contents
    assert "Ingrid" in contents
    assert "weather" not in contents


def test_the_command_takes_them_and_tells_what_it_passed_over(cli: Any) -> None:
    for name, count in PASSED_OVER.items():
        done = cli("--agent", name.replace(".", "-"), "add", str(FILES / name), "--user", "ann")
        assert done.code == 0
        noun = "message or part was" if count == 1 else "messages or parts were"
        assert f"note: {count} {noun} skipped" in done.err


BAD: list[Any] = [
    {"role": "robot", "content": "x"},
    {"role": "on_call", "content": "x"},
    {"role": "user"},
    {"role": "user", "content": 5},
    {"role": "user", "content": [{"type": "text", "text": 5}]},
    {"role": "user", "content": "a\x00b"},
    {"role": ["user"], "content": "x"},
    "hello",
    None,
    7,
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_one_bad_message_refuses_no_other_unless_it_is_to(memory: AgentMemory, bad: Any) -> None:
    chat = [{"role": "user", "content": "I live in Oslo."}, bad]
    with pytest.raises(ValidationError, match=r"messages.1"):
        memory.add(chat, strict=True)
    assert memory.count() == 0
    answer = memory.add(chat)
    assert memory.count() == 1
    problems = answer.metadata.problems or []
    assert len(problems) == 1
    assert problems[0].startswith("messages 1 was skipped")
    with pytest.raises(ValidationError):
        memory.add([bad])  # nothing else was said


def test_a_bad_line_refuses_no_other() -> None:
    lines = '{"role": "user", "content": "a"}\n{"role": "user", "content": \n'
    transcript = read_transcript(lines + '{"role": "user", "content": "b"}')
    assert [message.text for message in transcript.messages] == ["a", "b"]
    assert transcript.problems[0].startswith("line 2 was skipped")


def test_a_transcript_without_speech_adds_nothing(memory: AgentMemory) -> None:
    answer = memory.add([{"role": "tool", "tool_call_id": "c", "content": "x"}])
    assert (answer.data, answer.metadata.passed_over) == ([], 1)


def test_models_of_clients_are_taken_too() -> None:
    anthropic = pytest.importorskip("anthropic")
    block = anthropic.types.TextBlock(type="text", text="I live in Oslo.")
    message = {"role": "user", "content": [block]}
    assert spoken(conversation([message])) == [("user", "I live in Oslo.")]


# C's request ------------------------------------------------------------------------------------

REQUEST: dict[str, Any] = {
    "messages": [{"role": "user", "content": "I love Italian food, especially pasta dishes"}],
    "user_id": "user_123",
    "agent_id": "bob",
    "run_id": "conversation-456",
    "metadata": {"category": "preference", "tags": ["food", "cuisine"], "source": "chat"},
}


def kept(memory: AgentMemory) -> tuple[Any, ...]:
    (found,) = memory.list_recent()
    metadata = found.metadata
    return found.user_id, found.run_id, found.category, found.tags, metadata["source"]


EXPECTED = ("user_123", "conversation-456", "preference", ["food", "cuisine"], "chat")


def test_a_request_keeps_its_scope(memory: AgentMemory) -> None:
    memory.add(REQUEST)
    assert kept(memory) == EXPECTED
    assert memory.session({"user_id": "user_123"}).count() == 1


def test_so_does_its_model_and_what_stands_beside_the_messages(memory: AgentMemory) -> None:
    request = AddMemoryRequest.model_validate(REQUEST)
    memory.add(request, user_id="user_123")  # type: ignore[arg-type]
    assert kept(memory) == EXPECTED
    memory.reset(confirm="bob")
    metadata = {"source": "chat"}
    told = {name: REQUEST["metadata"][name] for name in ("category", "tags")}
    beside = {**REQUEST, **told, "metadata": metadata}
    memory.add(beside, metadata=metadata)
    assert kept(memory) == EXPECTED


def test_the_command_keeps_a_requests_scope(cli: Any, root: Path, tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps(REQUEST), encoding="utf-8")
    assert cli("--agent", "bob", "add", str(chat)).code == 0
    with AgentMemory("bob", root=root, embedder=None) as memory:
        assert kept(memory) == EXPECTED
    other = cli("--agent", "bob", "add", str(chat), "--user", "eve")
    assert (other.code, "user_id" in other.err) == (4, True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"user_id": "eve"},
        {"run_id": "another"},
        {"agent_id": "carol"},
        {"metadata": {"category": "task"}},
        {"metadata": {"source": "mail"}},
    ],
    ids=repr,
)
def test_what_disagrees_is_an_error(memory: AgentMemory, arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(ValidationError, match=name):
        memory.add(REQUEST, **arguments)
    assert memory.count() == 0


def test_a_request_of_another_is_refused(memory: AgentMemory) -> None:
    with pytest.raises(InvalidSession, match="carol"):
        memory.add({**REQUEST, "agent_id": "carol"})
    with pytest.raises(ValidationError, match="user_id"):
        memory.session({"user_id": "eve"}).add(REQUEST)
    assert memory.count() == 0


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("userId", "user_id"),
        ("user", "user_id"),
        ("USER-ID", "user_id"),
        ("usrid", "user_id"),
        ("runid", "run_id"),
        ("agentID", "agent_id"),
        ("tag", "tags"),
        ("meta_data", "metadata"),
        ("categroy", "category"),
    ],
)
def test_a_key_that_is_nearly_a_requests_is_an_error(
    memory: AgentMemory, key: str, meant: str
) -> None:
    for request in ({"messages": REQUEST["messages"], key: "x"}, {**REQUEST, key: "x"}):
        with pytest.raises(ValidationError, match=f"{key}: .* did you mean '{meant}'"):
            memory.add(request)
    assert memory.count() == 0


def test_a_request_has_no_other_keys_and_a_transcript_may(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError, match="infer: is not a key of an Add Memory Request"):
        memory.add({**REQUEST, "infer": False})
    assert memory.count() == 0
    body = {"model": "gpt-4.1", "temperature": 0, "tools": [], "title": "Food", "id": "chat-1"}
    answer = memory.add({**body, "messages": REQUEST["messages"]})
    assert [kept.event for kept in answer.data] == ["ADD"]


def test_the_command_and_the_tools_name_the_key_too(
    cli: Any, memory: AgentMemory, tmp_path: Path
) -> None:
    request = {"messages": REQUEST["messages"], "userId": "ann"}
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps(request), encoding="utf-8")
    refused = cli("--agent", "bob", "add", str(chat))
    assert (refused.code, "did you mean 'user_id'" in refused.err) == (4, True)
    with pytest.raises(ValidationError, match="did you mean 'user_id'"):
        memory.session({"user_id": "ann"}).add(request)
    assert memory.count() == 0


def test_facts_and_operations_can_be_had(memory: AgentMemory) -> None:
    def model(_: object, schema: dict[str, Any]) -> dict[str, Any]:
        if schema["title"] == "extracted_facts" or "facts" in schema["properties"]:
            return {"facts": ["User lives in Rome"]}
        return {
            "memory": [
                {
                    "id": "0", "event": "UPDATE", "text": "User lives in Rome",
                    "facts": [0], "confidence": 0.9, "reasoning": "They moved.",
                }
            ]
        }  # fmt: skip

    memory.store("User lives in Oslo", user_id="ann")
    answer = memory.add("I moved to Rome.", user_id="ann", llm=model)
    assert answer.facts is not None
    assert answer.facts.facts == ["User lives in Rome"]
    assert answer.operations is not None
    (operation,) = answer.operations.memory
    assert operation.event in ("UPDATE", "ADD")
    assert "facts" not in answer.model_dump_json().replace("facts_extracted", "")
    as_it_is = memory.add("I moved to Rome.", user_id="ann", infer=False)
    assert (as_it_is.facts, as_it_is.operations) == (None, None)

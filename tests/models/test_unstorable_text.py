"""Text that SQLite would cut (NUL) or cannot hold (half of a surrogate pair), everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory, AgentMemoryError, MemoryNotFound, ValidationError

NUL = "a\x00b"
HALF_PAIR = "a\ud800b"
UNSTORABLE = pytest.mark.parametrize("text", [NUL, HALF_PAIR], ids=["NUL", "surrogate"])

WHERE: dict[str, Callable[[str], dict[str, Any]]] = {
    "content": lambda text: {"content": text},
    "category": lambda text: {"category": text},
    "tag": lambda text: {"tags": ["fine", text]},
    "session": lambda text: {"session_id": text},
    "user": lambda text: {"user_id": text},
    "run": lambda text: {"run_id": text},
    "metadata key": lambda text: {"metadata": {text: 1}},
    "metadata value": lambda text: {"metadata": {"k": text}},
    "nested metadata key": lambda text: {"metadata": {"k": [{text: 1}]}},
    "nested metadata value": lambda text: {"metadata": {"k": {"l": ["x", text]}}},
    "outcome of a task": lambda text: {"task_metadata": {"status": "completed", "outcome": text}},
    "blocker of a task": lambda text: {"task_metadata": {"status": "blocked", "blockers": [text]}},
    "name of a field": lambda text: {text: "x"},
}


@UNSTORABLE
@pytest.mark.parametrize("where", WHERE)
def test_a_text_that_sqlite_would_cut_or_refuse_is_never_stored(
    memory: AgentMemory, where: str, text: str
) -> None:
    with pytest.raises(ValidationError) as error:
        memory.store_many([{"content": "x", **WHERE[where](text)}])
    str(error.value).encode()  # the message itself can be printed
    assert memory.count() == 0


@UNSTORABLE
@pytest.mark.parametrize(
    "change", ["content", "category", "tag", "user", "metadata value", "outcome of a task"]
)
def test_no_update_brings_such_a_text_in(memory: AgentMemory, change: str, text: str) -> None:
    memory_id = memory.store("before")
    with pytest.raises(ValidationError):
        memory.update(memory_id, **WHERE[change](text))
    found = memory.get(memory_id)
    assert found is not None
    assert (found.content, found.version) == ("before", 1)


@UNSTORABLE
def test_an_id_that_cannot_be_is_not_found(memory: AgentMemory, text: str) -> None:
    assert memory.get(text) is None
    for verb in (memory.delete, memory.promote, memory.demote, memory.history):
        with pytest.raises(MemoryNotFound):
            verb(text)
    with pytest.raises(MemoryNotFound):
        memory.update(text, content="x")


@UNSTORABLE
def test_a_question_with_such_a_text_is_answered(memory: AgentMemory, text: str) -> None:
    memory.store("the lighthouse is red")
    hits = memory.search(f"lighthouse {text}")
    assert [hit.memory.content for hit in hits] == ["the lighthouse is red"]


def found_or_refused(memory: AgentMemory, filters: dict[str, Any]) -> list[str]:
    """Return what a search found; a typed refusal finds nothing, any other error fails."""
    try:
        return [hit.memory.content for hit in memory.search("lighthouse", filters=filters)]
    except ValidationError:
        return []


@UNSTORABLE
@pytest.mark.parametrize("name", ["category", "session_id", "user_id", "run_id", "agent_id"])
def test_a_filter_with_such_a_text_finds_nothing_or_is_refused(
    memory: AgentMemory, name: str, text: str
) -> None:
    memory.store("the lighthouse is red")
    assert found_or_refused(memory, {name: text}) == []


@UNSTORABLE
def test_a_custom_filter_on_such_a_key_finds_nothing_or_is_refused(
    memory: AgentMemory, text: str
) -> None:
    memory.store("the lighthouse is red", metadata={"ab": 1})
    assert found_or_refused(memory, {"custom_filters": {text: 1}}) == []


@UNSTORABLE
def test_a_path_with_such_a_text_is_refused(root: Path, text: str) -> None:
    with pytest.raises(AgentMemoryError):
        AgentMemory("bob", root=f"{root}/{text}")
    with pytest.raises(AgentMemoryError):
        AgentMemory.open(f"{root}/{text}")
    assert not root.exists()


@UNSTORABLE
@pytest.mark.parametrize("setting", ["embedding_model", "categories"])
def test_a_setting_with_such_a_text_is_refused(
    memory: AgentMemory, setting: str, text: str
) -> None:
    value = [text] if setting == "categories" else text
    with pytest.raises(ValidationError):
        memory.configure(**{setting: value})


@UNSTORABLE
def test_a_wrong_name_of_the_session_itself_is_refused(root: Path, text: str) -> None:
    with pytest.raises(ValidationError):
        AgentMemory("bob", root=root, session_id=text)
    assert not root.exists()


def test_an_error_does_not_repeat_a_name_of_megabytes(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError, match=r"zzz.*not permitted") as caught:
        memory.search("tea", filters={"z" * 10_000_000: 1})
    assert len(str(caught.value)) < 500

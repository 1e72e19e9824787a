"""``MemoryStorage`` takes what ``AgentMemory`` takes, and refuses what it refuses."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory, MemoryStorage, ValidationError


def stored_tags(root: Path, tags: Any) -> list[str]:
    async def store() -> list[str]:
        async with MemoryStorage("bob", root=root) as storage:
            memory = await storage.get(await storage.store("the lighthouse is red", tags))
            assert memory is not None
            return memory.tags

    return asyncio.run(store())


@pytest.mark.parametrize("tags", [None, (), [], ["db"], ("Two", "words"), ["a", "a"]])
def test_tags_are_stored_as_the_synchronous_verb_stores_them(root: Path, tags: Any) -> None:
    with AgentMemory("ann", root=root) as memory:
        same = memory.get(memory.store("the lighthouse is red", tags=tags))
    assert same is not None
    assert stored_tags(root, tags) == same.tags


def test_what_was_cancelled_can_be_stored_again_under_its_id(root: Path) -> None:
    async def store() -> list[str]:
        storage = await asyncio.to_thread(MemoryStorage, "bob", root=root)
        async with storage:
            storing = asyncio.create_task(storage.store("the kettle is blue", id="kettle"))
            await asyncio.sleep(0)  # its thread has begun
            storing.cancel()
            return [await storage.store("the kettle is blue", id="kettle") for _ in range(2)]

    assert asyncio.run(store()) == ["kettle", "kettle"]
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 1


@pytest.mark.parametrize("tags", ["db", b"db", 5, ["a", 1], {"a": 1}, [[]]])
def test_what_is_no_list_of_tags_is_refused(root: Path, tags: Any) -> None:
    with pytest.raises(ValidationError, match="tags"):
        stored_tags(root, tags)


def test_an_option_that_there_is_not_is_refused_by_its_name(root: Path) -> None:
    options: dict[str, Any] = {"clok": None}
    for opened in (MemoryStorage, AgentMemory):
        with pytest.raises(TypeError, match="clok"):
            opened("bob", root=root, **options)
    with pytest.raises(TypeError, match="clok"):
        AgentMemory.open(root / "x.db", **options)
    assert not root.exists() or not any(root.iterdir())


@pytest.mark.parametrize("opened", [MemoryStorage, AgentMemory, AgentMemory.open])
def test_the_options_are_shown_by_name(opened: Any) -> None:
    shown = inspect.signature(opened).parameters
    assert {"session_id", "embedder", "clock", "read_only", "event_text"} <= shown.keys()
    assert shown["synchronous"].default == "FULL"
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in shown.values())

"""A memory that moves by itself at the threshold, and the suggestion to do so."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from embedding_server import EmbeddingServer

from agent_memory import AgentMemory
from agent_memory.embeddings.registry import EMBEDDERS

THRESHOLD = 100
IMMEDIATE = {
    "auto_migrate": True,
    "migration_threshold": THRESHOLD,
    "migration_strategy": "immediate",
}
BACKGROUND = {**IMMEDIATE, "migration_strategy": "background", "migration_batch_size": 10}


def fill(memory: AgentMemory, count: int) -> None:
    memory.store_many([{"content": f"fact number{n}"} for n in range(count)])


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(3_000):
        if is_so():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come to that")


def is_moved(memory: AgentMemory) -> bool:
    return memory.info().storage_backend == "vector"


@pytest.mark.parametrize("settings_of", ["config", "configure"])
def test_the_store_that_reaches_the_threshold_moves_at_once(root: Path, settings_of: str) -> None:
    config = IMMEDIATE if settings_of == "config" else {}
    with AgentMemory("bob", root=root, embedder="wordllama", config=config) as memory:
        if settings_of == "configure":
            memory.configure(**IMMEDIATE)
        fill(memory, THRESHOLD - 1)
        assert not is_moved(memory)
        memory.store("the one that reaches it")
        assert is_moved(memory)
        memory.store("one after the move")
        assert memory.info().pending_embeddings == 0
        assert memory.check().problems == []


@pytest.mark.parametrize("settings_of", ["config", "configure"])
def test_a_move_in_the_background_lets_stores_and_searches_go_on(
    root: Path, service: EmbeddingServer, settings_of: str
) -> None:
    gate = threading.Event()

    def wait(_answer: dict[str, Any]) -> None:
        gate.wait(30)

    service.behaviour.change = wait
    config = BACKGROUND if settings_of == "config" else {"migration_batch_size": 10}
    with AgentMemory("bob", root=root, embedder="openai", config=config) as memory:
        if settings_of == "configure":
            in_file = {name: BACKGROUND[name] for name in IMMEDIATE}
            memory.configure(**in_file)
        fill(memory, THRESHOLD)
        memory.store("stored while it moves")
        assert not is_moved(memory)
        assert memory.search("number50")[0].memory.content == "fact number50"
        gate.set()
        wait_until(lambda: is_moved(memory))
        wait_until(lambda: memory.info().pending_embeddings == 0)
        assert sorted(set(service.texts)) == sorted(
            {"stored while it moves", *(f"fact number{n}" for n in range(THRESHOLD))}
        )
        assert len(service.texts) == THRESHOLD + 1
        assert memory.check().problems == []


def test_a_move_that_close_stopped_goes_on_at_the_next_store(
    root: Path, service: EmbeddingServer
) -> None:
    service.behaviour.delay_seconds = 0.1
    with AgentMemory("bob", root=root, embedder="openai", config=BACKGROUND) as memory:
        fill(memory, THRESHOLD)
        wait_until(lambda: len(service.texts) >= 20)
    sent = len(service.texts)
    assert sent < THRESHOLD
    service.behaviour.delay_seconds = 0
    with AgentMemory("bob", root=root, embedder="openai", config=BACKGROUND) as memory:
        assert not is_moved(memory)
        assert memory.migration_plan().to_embed == THRESHOLD - sent
        memory.store("goes on")
        wait_until(lambda: is_moved(memory))
        assert memory.check().problems == []
    assert len(service.texts) == len(set(service.texts)) == THRESHOLD + 1


def test_the_file_says_when_no_settings_were_given(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(**IMMEDIATE)
    with AgentMemory("bob", root=root, embedder="wordllama") as memory:
        fill(memory, THRESHOLD)
        assert is_moved(memory)


def test_what_was_given_goes_before_what_the_file_says(root: Path) -> None:
    with AgentMemory("bob", root=root, config={"auto_migrate": False}) as memory:
        memory.configure(**IMMEDIATE)
        fill(memory, THRESHOLD)
        assert not is_moved(memory)


def test_without_auto_migrate_nothing_moves(root: Path) -> None:
    config = {"migration_threshold": THRESHOLD}
    with AgentMemory("bob", root=root, embedder="wordllama", config=config) as memory:
        fill(memory, THRESHOLD + 1)
        assert not is_moved(memory)


@pytest.mark.parametrize("strategy", [IMMEDIATE, BACKGROUND], ids=["immediate", "background"])
@pytest.mark.parametrize("missing", ["nothing is installed", "the user wants none"])
def test_without_an_embedder_stores_work_and_one_warning_is_logged(
    root: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    strategy: dict[str, Any],
    missing: str,
) -> None:
    spec: str | None = None
    if missing == "nothing is installed":
        spec = "auto"
        for package in (kind.package for kind in EMBEDDERS.values() if kind.package):
            monkeypatch.setitem(sys.modules, package, None)  # so Python takes it for not installed
    caplog.set_level(logging.WARNING, logger="agent_memory")
    with AgentMemory("bob", root=root, embedder=spec, config=strategy) as memory:
        fill(memory, THRESHOLD)
        wait_until(lambda: bool(caplog.records))
        for number in range(5):
            memory.store(f"another fact {number}")
        assert memory.count() == THRESHOLD + 5
        assert not is_moved(memory)
        assert memory.search("number50")[0].memory.content == "fact number50"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "no embedder" in record.getMessage()


def test_a_service_that_is_down_is_not_asked_again_by_each_store(
    root: Path, service: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    service.behaviour.status = 500
    caplog.set_level(logging.WARNING, logger="agent_memory")
    with AgentMemory("bob", root=root, embedder="openai", config=IMMEDIATE) as memory:
        fill(memory, THRESHOLD)
        asked = len(service.requests)
        assert asked >= 1
        for number in range(20):
            memory.store(f"another fact {number}")
        assert len(service.requests) == asked
        assert memory.count() == THRESHOLD + 20
        assert not is_moved(memory)
    assert "run migrate again" in caplog.records[0].getMessage()


def test_a_local_choice_is_not_sent_to_a_service_by_the_move(
    root: Path, service: EmbeddingServer
) -> None:
    """The key in the environment is for something else: the user chose an embedder."""
    with AgentMemory("bob", root=root, embedder="wordllama", config=IMMEDIATE) as memory:
        fill(memory, THRESHOLD)
        assert memory.info().vector_model == "wordllama-l2-supercat-256"
    assert service.requests == []


def test_after_a_rollback_nothing_moves_back_at_once(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder="wordllama", config=IMMEDIATE) as memory:
        fill(memory, THRESHOLD)
        assert memory.rollback() is True
        memory.store("a fact after going back")
        assert not is_moved(memory)


def test_a_rollback_where_nothing_was_moved_leaves_the_setting_on(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder="wordllama", config=IMMEDIATE) as memory:
        assert memory.rollback() is False
        fill(memory, THRESHOLD)
        assert is_moved(memory)


# The suggestion -----------------------------------------------------------------------------------


def test_a_move_is_suggested_from_the_threshold_on_until_it_was_made(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder="wordllama") as memory:
        memory.configure(migration_threshold=THRESHOLD)
        fill(memory, THRESHOLD - 1)
        assert memory.suggestion() is None
        assert memory.info().suggestion is None
        deleted = memory.store("the one that reaches it")
        text = memory.suggestion()
        assert text is not None
        assert "100 memories" in text
        assert "agent-memory migrate" in text
        assert memory.info().suggestion == text
        memory.delete(deleted)
        assert memory.suggestion() is None
        memory.store("again")
        memory.migrate()
        assert memory.suggestion() is None
        assert memory.info().suggestion is None
        memory.rollback()
        assert memory.suggestion() is not None


def test_five_thousand_is_the_threshold_unless_it_is_set(root: Path) -> None:
    with AgentMemory("bob", root=root, synchronous="NORMAL") as memory:
        fill(memory, 4_999)
        assert memory.suggestion() is None
        memory.store("one more")
        assert "5,000" in str(memory.suggestion())

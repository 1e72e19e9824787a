"""Which settings and which embedder count: those given, the environment's, the file's, ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from embedding_server import EmbeddingServer, text_vector

from agent_memory import AgentMemory, MemoryToolConfig
from agent_memory.errors import AgentMemoryError, ConfigurationError


class WordEmbedder:
    """Embeds here; texts that share words are near. ``threads`` has where it was called from."""

    dimensions = 64

    def __init__(self, model: str = "words") -> None:
        self.model = model
        self.threads: list[threading.Thread] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.threads.append(threading.current_thread())
        return [text_vector(text) for text in texts]


def fill(root: Path, count: int = 99, **settings: Any) -> None:
    """Make bob's file with so many memories and settings of its own."""
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store_many([{"content": f"memory number {number}"} for number in range(count)])
        memory.configure(**settings)


def wait_until_moved(memory: AgentMemory) -> bool:
    """Return whether it moves by itself, in a while at most."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if memory.info().storage_backend == "vector":
            return True
        time.sleep(0.01)
    return False


def moves_at_once(root: Path, config: Mapping[str, Any] | None) -> bool:
    """Return whether the 100th memory, stored, moves the file before the store returns."""
    embedder = WordEmbedder()
    with AgentMemory("bob", root=root, embedder=embedder, config=config) as memory:
        memory.store("the hundredth")
        return memory.info().storage_backend == "vector" and set(embedder.threads) == {
            threading.current_thread()
        }


ON: dict[str, Any] = {
    "auto_migrate": True,
    "migration_threshold": 100,
    "migration_strategy": "immediate",
}


@pytest.mark.parametrize(
    ("in_file", "given", "moves"),
    [
        ({}, None, False),
        (ON, None, True),
        ({}, ON, True),
        (ON, {"auto_migrate": False}, False),
        (ON, {"migration_threshold": 5_000}, False),
        ({**ON, "auto_migrate": False}, {"auto_migrate": True}, True),
        ({**ON, "migration_threshold": 5_000}, {"migration_threshold": 100}, True),
        ({**ON, "migration_strategy": "background"}, {"migration_strategy": "immediate"}, True),
        # What is not set there does not undo what the file says, though it has a default.
        (ON, {"default_search_limit": 7}, True),
        (ON, {"migration_batch_size": 10}, True),
    ],
)
def test_what_is_given_counts_before_the_files_settings_and_these_before_the_defaults(
    root: Path, in_file: dict[str, Any], given: dict[str, Any] | None, moves: bool
) -> None:
    fill(root, **in_file)
    assert moves_at_once(root, given) is moves


def test_the_model_of_the_settings_will_do_as_well_as_a_mapping(root: Path) -> None:
    fill(root)
    config = MemoryToolConfig(
        auto_migrate=True, migration_threshold=100, migration_strategy="immediate"
    )
    with AgentMemory("bob", root=root, embedder=WordEmbedder(), config=config) as memory:
        memory.store("the hundredth")
        assert memory.info().storage_backend == "vector"


@pytest.mark.parametrize(
    ("in_file", "given"),
    [
        ({**ON, "migration_strategy": "background"}, None),
        (ON, {"migration_strategy": "background"}),
        ({}, {"auto_migrate": True, "migration_threshold": 100}),  # the default
    ],
)
def test_in_the_background_another_thread_moves(
    root: Path, in_file: dict[str, Any], given: dict[str, Any] | None
) -> None:
    fill(root, **in_file)
    embedder = WordEmbedder()
    with AgentMemory("bob", root=root, embedder=embedder, config=given) as memory:
        memory.store("the hundredth")
        assert wait_until_moved(memory)
    assert threading.current_thread() not in embedder.threads


def test_one_below_the_threshold_nothing_moves_and_nothing_is_suggested(root: Path) -> None:
    fill(root, 98, **ON)
    with AgentMemory("bob", root=root, embedder=WordEmbedder()) as memory:
        memory.store("the ninety-ninth")
        assert memory.info().storage_backend == "file"
        assert memory.suggestion() is None
        memory.store("the hundredth")
        assert memory.info().storage_backend == "vector"


@pytest.mark.parametrize(
    ("in_file", "given", "suggested"),
    [(5_000, None, False), (100, None, True), (100, 5_000, False), (5_000, 100, True)],
)
def test_the_suggestion_has_the_same_threshold(
    root: Path, in_file: int, given: int | None, suggested: bool
) -> None:
    fill(root, 100, migration_threshold=in_file)
    config = {} if given is None else {"migration_threshold": given}
    with AgentMemory("bob", root=root, config=config) as memory:
        assert (memory.suggestion() is not None) is suggested
        assert memory.info().suggestion == memory.suggestion()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("migration_threshold", 99),
        ("migration_threshold", "many"),
        ("migration_strategy", "tomorrow"),
        ("auto_migrate", "perhaps"),
        ("migration_batch_size", 9),
        ("embedding_timeout_seconds", 0),
        ("auto_migration", True),
    ],
)
def test_a_bad_setting_is_refused_by_its_name(root: Path, name: str, value: object) -> None:
    with pytest.raises(AgentMemoryError, match=name) as caught:
        AgentMemory("bob", root=root, config={name: value})
    assert isinstance(caught.value, ConfigurationError | ValueError)
    assert not (root / "bob").exists()


# Which embedder ---------------------------------------------------------------------------------


def planned(root: Path, **arguments: Any) -> tuple[str | None, str | None]:
    """Return the embedder and the model that a memory would move to."""
    with AgentMemory("bob", root=root, **arguments) as memory:
        memory.store("one memory")
        plan = memory.migration_plan()
    return plan.embedder, plan.model


WORDLLAMA = ("wordllama:64", "wordllama-l2-supercat-64")


@pytest.mark.usefixtures("service")
def test_nothing_said_means_openai_where_there_is_a_key(root: Path) -> None:
    assert planned(root) == ("openai", "text-embedding-3-small")


@pytest.mark.usefixtures("service")
def test_the_embedder_that_is_given_is_the_one_that_it_moves_to(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts must not go to a service because its key happens to be in the environment."""
    assert planned(root, embedder="wordllama:64") == WORDLLAMA
    assert planned(root, embedder=WordEmbedder()) == ("words", "words")
    config = {"embedding_model": "text-embedding-3-large"}
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDER", "openai")
    assert planned(root, embedder="wordllama:64", config=config) == WORDLLAMA
    with AgentMemory("bob", root=root, embedder="wordllama:64") as memory:
        assert memory.migration_plan(embedder="openai").embedder == "openai"  # asked for here


@pytest.mark.usefixtures("service")
def test_the_environment_names_the_embedder_where_none_is_given(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDER", "wordllama:64")
    assert planned(root) == WORDLLAMA
    assert planned(root, config={"embedding_model": "text-embedding-3-large"}) == WORDLLAMA


@pytest.mark.usefixtures("service")
def test_the_embedding_model_of_the_settings_is_one_of_openai(root: Path) -> None:
    config = {"embedding_model": "text-embedding-3-large"}
    expected = ("openai:text-embedding-3-large", "text-embedding-3-large")
    assert planned(root, config=config) == expected


def test_a_move_by_itself_goes_to_the_embedder_that_was_given(
    root: Path, service: EmbeddingServer
) -> None:
    fill(root, **ON)
    assert moves_at_once(root, None)
    assert service.requests == []


@pytest.mark.parametrize("source", ["argument", "environment"])
def test_an_unknown_embedder_is_refused_by_its_name(
    root: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    arguments: dict[str, Any] = {"embedder": "wordlama"} if source == "argument" else {}
    if source == "environment":
        monkeypatch.setenv("AGENT_MEMORY_EMBEDDER", "wordlama")
    with (
        pytest.raises(ConfigurationError, match="'wordlama'"),
        AgentMemory("bob", root=root, **arguments) as memory,
    ):
        memory.migrate()


def test_without_an_embedder_there_is_no_move_and_keywords_go_on(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(root, **ON)
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store("the hundredth")
        assert memory.info().storage_backend == "file"
        assert memory.search("hundredth")[0].memory.content == "the hundredth"
        with pytest.raises(ConfigurationError, match="agent-memory\\[local\\]"):
            memory.migrate()
    assert "not migrated to search by meaning" in caplog.text

"""Where files are written: never over the memories of an agent, whatever the verb."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_memory import AgentMemory, ValidationError
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.services.destinations import destination

WRITERS: dict[str, Callable[[AgentMemory, Path], object]] = {
    "json": lambda memory, place: memory.export(place, format="json", overwrite=True),
    "sqlite": lambda memory, place: memory.export(place, format="sqlite", overwrite=True),
    "graph": lambda memory, place: memory.graph.export(place, overwrite=True),
    "backup": lambda memory, place: memory.backup(place, overwrite=True),
}
writers = pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)


@pytest.fixture
def ann(root: Path) -> Path:
    """Make a memory of another agent."""
    with AgentMemory("ann", root=root) as memory:
        memory.store("precious")
        return memory.path


def contents(path: Path) -> list[str]:
    with AgentMemory.open(path, create=False, read_only=True) as memory:
        return [each.content for each in memory.list_recent()]


@pytest.mark.file_only("the agents have files")
@writers
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_the_file_of_another_agent_is_kept(
    memory: AgentMemory,
    ann: Path,
    writer: Callable[[AgentMemory, Path], object],
    suffix: str,
) -> None:
    place = ann.with_name(ann.name + suffix)
    before = place.exists()
    with pytest.raises(ValidationError, match=f"{place} is the memory of agent 'ann'"):
        writer(memory, place)
    assert place.exists() == before
    assert contents(ann) == ["precious"]


@pytest.mark.file_only("the agents have files")
@writers
def test_another_agents_memories_are_kept_wherever_they_are(
    memory: AgentMemory,
    ann: Path,
    tmp_path: Path,
    writer: Callable[[AgentMemory, Path], object],
) -> None:
    elsewhere = tmp_path / "ann.db"
    ann.rename(elsewhere)
    with pytest.raises(ValidationError, match="is the memory of agent 'ann'"):
        writer(memory, elsewhere)
    assert contents(elsewhere) == ["precious"]


@pytest.mark.file_only("the agents have files")
@writers
def test_a_file_that_cannot_be_read_is_kept_where_an_agent_looks_for_it(
    memory: AgentMemory, ann: Path, writer: Callable[[AgentMemory, Path], object]
) -> None:
    ann.write_bytes(b"damaged")
    with pytest.raises(ValidationError, match="is the memory of agent 'ann'"):
        writer(memory, ann)
    assert ann.read_bytes() == b"damaged"


@writers
def test_the_same_agent_under_another_root_is_another_memory(
    memory: AgentMemory, tmp_path: Path, writer: Callable[[AgentMemory, Path], object]
) -> None:
    with AgentMemory("bob", root=tmp_path / "other") as other:
        other.store("precious")
        place = other.path
    with pytest.raises(ValidationError, match="is the memory of agent 'bob'"):
        writer(memory, place)
    assert contents(place) == ["precious"]


@pytest.mark.file_only("a backup is of a file")
@writers
@pytest.mark.parametrize("name", ["copy.db", "memories.db"])
def test_an_older_backup_of_ones_own_is_replaced(
    memory: AgentMemory,
    tmp_path: Path,
    writer: Callable[[AgentMemory, Path], object],
    name: str,
) -> None:
    (tmp_path / "safe").mkdir()
    place = memory.backup(tmp_path / "safe" / name)
    before = place.read_bytes()
    memory.store("later")
    writer(memory, place)
    assert place.read_bytes() != before


@pytest.mark.skipif(os.name == "nt", reason="pipes with names")
@pytest.mark.file_only("the agents have files")
@writers
def test_a_pipe_is_not_replaced(
    memory: AgentMemory, tmp_path: Path, writer: Callable[[AgentMemory, Path], object]
) -> None:
    """`export --output /dev/null --force` made a file of root's /dev/null."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place in (pipe, link):
        with pytest.raises(ValidationError, match="is a device or a pipe"):
            writer(memory, place)
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_who_writes_a_file_of_their_own_is_told_whether_they_may(
    memory: AgentMemory, ann: Path, tmp_path: Path
) -> None:
    place = tmp_path / "plot.svg"
    assert memory.check_destination(place) == place
    place.write_text("drawn before")
    with pytest.raises(ValidationError, match=r"plot: .*plot\.svg already exists"):
        memory.check_destination(place, field="plot")
    assert memory.check_destination(place, overwrite=True) == place
    with pytest.raises(ValidationError, match="is the memory of agent 'ann'"):
        memory.check_destination(ann, overwrite=True)


def test_a_memory_on_a_server_writes_over_no_file_of_another(ann: Path) -> None:
    own = AgentAddress(server_address("postgresql://host/db"), "bob")
    with pytest.raises(ValidationError, match="is the memory of agent 'ann'"):
        destination(ann, own, "bob", overwrite=True)
    assert destination(ann.with_name("out"), own, "bob", overwrite=False) == ann.with_name("out")

"""The tests of that package: the contract of engines, and a few verbs at its address."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shelf_engine import ShelfEngine, ShelfOpener

from agent_memory import AgentMemory, AgentNotFound, ConfigurationError
from agent_memory.conformance.engine_contract import EngineContract
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.engine import Engine


class TestShelf(EngineContract):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Callable[[], Engine]:
        address = AgentAddress(server_address(f"shelf://{tmp_path}/shelf"), "bob")
        return lambda: ShelfOpener.open_engine(
            address, create=True, read_only=False, synchronous="FULL"
        )


def test_an_agent_lives_at_its_address(tmp_path: Path) -> None:
    root = f"shelf://{tmp_path}/shelf"
    with AgentMemory("bob", root=root) as memory:
        assert isinstance(memory._store._engine, ShelfEngine)
        memory_id = memory.store("Standup is at nine")
        memory.update(memory_id, content="Standup is at ten")
        memory.undo()
        assert [hit.memory.content for hit in memory.search("standup")] == ["Standup is at nine"]
        assert memory.info().path == f"{root} (agent bob)"
        with pytest.raises(ConfigurationError, match="offers no file backup"):
            memory.backup()
        with pytest.raises(ConfigurationError, match="not a file"):
            _ = memory.path
    with pytest.raises(AgentNotFound, match=r"agent eve\) does not exist"):
        AgentMemory("eve", root=root, create=False)


def test_a_memory_moves_there_and_back_and_stays_the_same(tmp_path: Path) -> None:
    root, exports = f"shelf://{tmp_path}/shelf", []
    with AgentMemory("bob", root=tmp_path / "files") as memory:
        memory.update(memory.store("Standup is at nine"), content="Standup is at ten")
        memory.move_to(root)
        exports.append(memory.export(tmp_path / "1.yaml", format="store").path)
    with AgentMemory("bob", root=root, create=False) as memory:
        exports.append(memory.export(tmp_path / "2.yaml", format="store").path)
        memory.move_to(tmp_path / "back")
    with AgentMemory("bob", root=tmp_path / "back", create=False) as memory:
        exports.append(memory.export(tmp_path / "3.yaml", format="store").path)
    first, *others = (Path(path).read_bytes() for path in exports)
    assert others == [first, first]


def test_the_shell_takes_the_address(tmp_path: Path) -> None:
    root = f"shelf://{tmp_path}/shelf"
    with AgentMemory("bob", root=root) as memory:
        memory.store("Standup is at nine")
    for words, shown in ((["agents"], "bob"), (["--agent", "bob", "search", "standup"], "at nine")):
        command = [sys.executable, "-m", "agent_memory", "--root", root, *words]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (run.returncode, shown in run.stdout) == (0, True), run


def test_a_password_in_the_address_is_not_shown(tmp_path: Path) -> None:
    root = f"shelf://me:s3cret@host{tmp_path}?token=t0ken"
    with pytest.raises(AgentNotFound) as error:
        AgentMemory("bob", root=root, create=False)
    assert str(error.value).startswith(f"shelf://me@host{tmp_path} (agent bob) does not exist")

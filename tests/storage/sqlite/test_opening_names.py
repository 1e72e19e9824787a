"""Opening a memory: which name and path may be given, whose file it is, how long it is open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    MissingAgentIdentity,
    NotAMemoryFile,
    StorageClosed,
    StorageError,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)

VERBS: dict[str, Callable[[AgentMemory, str], object]] = {
    "store": lambda memory, _: memory.store("more"),
    "store_many": lambda memory, _: memory.store_many([{"content": "more"}]),
    "update": lambda memory, one: memory.update(one, content="other"),
    "delete": lambda memory, one: memory.delete(one),
    "promote": lambda memory, one: memory.promote(one),
    "demote": lambda memory, one: memory.demote(one),
    "configure": lambda memory, _: memory.configure(scratchpad_max_size=20),
}
READS: dict[str, Callable[[AgentMemory, str], object]] = {
    "search": lambda memory, _: memory.search("walnut"),
    "get": lambda memory, one: memory.get(one),
    "list_recent": lambda memory, _: memory.list_recent(),
    "count": lambda memory, _: memory.count(),
    "history": lambda memory, one: memory.history(one),
    "scratchpad": lambda memory, _: memory.scratchpad().memories,
    "context": lambda memory, _: memory.context(),
    "info": lambda memory, _: memory.info(),
}


def files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*"))


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent_id",
    ["../x", "..", ".", "/abs", "a/b", "a\\b", "\0", "bob\0", "\ud800", ":memory:", " ", "bob ",
     "file:x?mode=memory", "a" * 65, "\xe9" * 64, "café", "cafe\u0301", "CON", "nul", "Com1",
     "nul.db", "a.", "bob\n", "\nbob", "\u202ebob", "b\u200bob", "~", "~root"],
)  # fmt: skip
def test_a_name_that_could_be_a_path_or_a_device_is_refused(
    root: Path, tmp_path: Path, agent_id: str
) -> None:
    with pytest.raises(ValidationError, match="not an agent id") as raised:
        AgentMemory(agent_id, root=root)
    assert raised.value.errors()[0]["loc"] == ("agent_id",)
    assert files(tmp_path) == []


@pytest.mark.parametrize("agent_id", ["a", "a" * 64, "-rf", "_", "Bob-2_x", "0"])
def test_a_plain_name_is_a_directory_of_that_name(root: Path, agent_id: str) -> None:
    with AgentMemory(agent_id, root=root) as memory:
        assert memory.path == root / agent_id / "memories.db"
        assert memory.path.is_file()


def test_no_name_is_a_missing_identity(root: Path) -> None:
    with pytest.raises(MissingAgentIdentity, match="AGENT_MEMORY_AGENT"):
        AgentMemory("", root=root)


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b.db", "~nosuchuser/s.db", "half\ud800.db"])
def test_a_path_that_cannot_be_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValidationError, match="path"):
        AgentMemory.open(path)
    assert files(tmp_path) == []


@pytest.mark.parametrize("root", ["a\0b", "half\ud800", "~nosuchuser/memory"])
def test_a_root_that_cannot_be_a_directory_is_refused(root: str) -> None:
    with pytest.raises(ValidationError, match="path"):
        AgentMemory("bob", root=root)


@pytest.mark.parametrize("length", [252, 300])
def test_a_name_too_long_for_the_file_system_is_a_storage_error(
    tmp_path: Path, length: int
) -> None:
    folder = tmp_path / ("b" * 80)  # the message named the path's beginning, without the name
    folder.mkdir()
    # 252 characters fit, but not with "-wal" behind them.
    with pytest.raises(StorageError, match="aaaa"):
        AgentMemory.open(folder / ("a" * length))


@pytest.mark.skipif(os.name != "posix", reason="SQLite's limit is another on Windows")
def test_a_path_that_only_sqlite_finds_too_long_leaves_no_empty_file(tmp_path: Path) -> None:
    folder = tmp_path
    while len(os.fsencode(folder)) < 400:
        folder /= "d" * 90
    longest = folder / ("m" * (504 - len(os.fsencode(folder)) - len("/.db")) + ".db")
    with AgentMemory.open(longest) as memory:
        memory.store("kept")
    folder /= "d" * 90
    with pytest.raises(StorageUnavailable, match="504 bytes"):
        AgentMemory.open(folder / "memories.db")
    assert not folder.exists()


def test_a_backup_that_sqlite_could_not_open_is_not_made(tmp_path: Path) -> None:
    """That of before an erasure was made, and no backup then: it could not be restored."""
    folder = tmp_path.joinpath(*["f" * 100] * 10)
    length = 470 - len("/m.db")
    folder = Path(os.fsdecode(os.fsencode(folder)[:length]).rstrip("/"))
    folder.mkdir(parents=True)
    with AgentMemory.open(folder / "m.db") as memory:
        erased = memory.store("the door code is 4711")
        for verb in (memory.backup, lambda: memory.erase(erased)):
            with pytest.raises(StorageUnavailable, match=r"backups/.* 504 bytes, .*shorten it"):
                verb()
        assert memory.get(erased) is not None
        assert not list((folder / "backups").iterdir())
        with AgentMemory.open(memory.backup(tmp_path / "elsewhere.db")) as copy:
            assert copy.get(erased) is not None


def test_a_path_is_never_taken_for_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with AgentMemory.open("file:s.db?mode=memory") as memory:
        kept = memory.store("on the disk")
    with AgentMemory.open(tmp_path / "file:s.db?mode=memory", create=False) as memory:
        assert memory.get(kept) is not None


# Roots ------------------------------------------------------------------------------------------


def test_the_root_is_the_argument_else_the_setting_else_the_environment_else_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(**options: object) -> Path:
        with AgentMemory("bob", **options) as memory:  # type: ignore[arg-type]
            return memory.path.parent.parent

    setting = {"storage_root": str(tmp_path / "setting")}
    assert opened() == Path.home() / ".amplifier" / "memory"
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(tmp_path / "environment"))
    assert opened() == tmp_path / "environment"
    assert opened(config=setting) == tmp_path / "setting"
    assert opened(config=setting, root=tmp_path / "argument") == tmp_path / "argument"


def test_a_tilde_in_the_root_is_the_home_directory() -> None:
    with AgentMemory("bob", root="~/mine") as memory:
        assert memory.path == Path.home() / "mine" / "bob" / "memories.db"


def test_a_relative_root_stays_where_it_was_when_the_program_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with AgentMemory("bob", root="mine") as memory:
        monkeypatch.chdir("/")
        memory.store("still here")
        assert memory.path == tmp_path / "mine" / "bob" / "memories.db"


def test_a_root_that_is_a_link_to_a_directory_is_followed(root: Path, tmp_path: Path) -> None:
    AgentMemory("bob", root=root).close()
    (tmp_path / "link").symlink_to(root)
    with AgentMemory("bob", root=tmp_path / "link", create=False) as memory:
        assert memory.agent_id == "bob"


# Whose file it is -------------------------------------------------------------------------------


def test_a_file_keeps_the_name_of_its_agent(tmp_path: Path) -> None:
    AgentMemory.open(tmp_path / "s.db", agent_id="bob").close()
    AgentMemory.open(tmp_path / "unnamed.db").close()
    with AgentMemory.open(tmp_path / "s.db") as memory:
        assert memory.agent_id == "bob"
    with AgentMemory.open(tmp_path / "unnamed.db") as memory:
        assert memory.agent_id == "agent"
    with pytest.raises(ConfigurationError, match=r"'bob'.*'eve'"):
        AgentMemory.open(tmp_path / "s.db", agent_id="eve")


def test_an_agent_id_that_differs_in_case_is_refused_naming_both(root: Path) -> None:
    # What a file system that ignores case does with "Bob".
    AgentMemory("bob", root=root).close()
    (root / "bob").rename(root / "Bob")
    with pytest.raises(ConfigurationError, match=r"'bob'.*'Bob'"):
        AgentMemory("Bob", root=root)


@pytest.mark.parametrize("agent_id", ["a/b", "bob\n", "a" * 65])
def test_a_new_file_is_not_given_a_wrong_name(tmp_path: Path, agent_id: str) -> None:
    with pytest.raises(ValidationError):
        AgentMemory.open(tmp_path / "s.db", agent_id=agent_id)
    AgentMemory.open(tmp_path / "s.db", agent_id="bob").close()  # nothing stands in the way


def test_agents_are_listed_by_name_with_what_is_wrong_with_each(root: Path) -> None:
    assert AgentMemory.agents(root) == []
    assert not root.exists()
    for name, memories in (("eve", 2), ("bob", 1)):
        with AgentMemory(name, root=root) as memory:
            memory.store_many([{"content": f"memory {n}"} for n in range(memories)])
    for name in ("broken", "not an agent"):
        (root / name).mkdir()
        (root / name / "memories.db").write_text("not a database, but long enough to be looked at")
    (root / "empty").mkdir()
    listed = AgentMemory.agents(root)
    assert [(agent.agent_id, agent.memory_count) for agent in listed] == [
        ("bob", 1), ("broken", None), ("eve", 2),
    ]  # fmt: skip
    assert [agent.problem is None for agent in listed] == [True, False, True]
    assert "not a database" in str(listed[1].problem)


# How it is opened -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_an_agent_without_a_file_is_not_made_when_it_may_not_be(
    root: Path, tmp_path: Path, options: dict[str, bool]
) -> None:
    with pytest.raises(StorageUnavailable, match="does not exist"):
        AgentMemory("bob", root=root, **options)  # type: ignore[arg-type]
    with pytest.raises(StorageUnavailable, match="does not exist"):
        AgentMemory.open(root / "bob" / "s.db", **options)  # type: ignore[arg-type]
    assert files(tmp_path) == []


def test_an_empty_file_opened_read_only_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch(0o600)
    with pytest.raises(NotAMemoryFile, match="no memories"):
        AgentMemory.open(path, read_only=True)
    assert path.read_bytes() == b""


def test_read_only_answers_every_question_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with AgentMemory.open(path) as memory:
        one = memory.store("the walnut")
    before = path.read_bytes(), path.stat().st_mtime_ns
    with AgentMemory.open(path, read_only=True) as memory:
        assert [hit.memory.id for hit in memory.search("walnut")] == [one]
        answers = {name: bool(read(memory, one)) for name, read in READS.items()}
    assert answers == dict.fromkeys(READS, True)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    with AgentMemory.open(path) as memory:
        found = memory.get(one)
        assert found is not None
        assert found.access_count == 0


@pytest.mark.parametrize("verb", VERBS)
def test_read_only_refuses_to_write(tmp_path: Path, verb: str) -> None:
    path = tmp_path / "s.db"
    with AgentMemory.open(path) as memory:
        one = memory.store("the walnut")
    with (
        AgentMemory.open(path, read_only=True) as memory,
        pytest.raises(StorageReadOnly, match="read_only"),
    ):
        VERBS[verb](memory, one)


@pytest.mark.parametrize("verb", [*VERBS, *READS])
def test_a_closed_memory_says_that_it_is_closed(root: Path, verb: str) -> None:
    memory = AgentMemory("bob", root=root)
    one = memory.store("the walnut")
    memory.close()
    memory.close()  # twice is fine
    with pytest.raises(StorageClosed, match="closed"):
        {**VERBS, **READS}[verb](memory, one)


def test_a_memory_is_closed_when_its_block_ends_in_an_error(root: Path) -> None:
    memory = AgentMemory("bob", root=root)

    def fail() -> None:
        with memory:
            raise KeyError("the caller's own")

    with pytest.raises(KeyError, match="caller"):
        fail()
    with pytest.raises(StorageClosed):
        memory.count()


@pytest.mark.parametrize("place", ["/", "//", "/.."])
def test_the_topmost_folder_is_no_place_of_a_file(place: str, root: Path) -> None:
    with pytest.raises(ValidationError, match="the root directory: give the path of a file"):
        AgentMemory.open(place)
    with AgentMemory("bob", root=root) as memory:
        for verb in (memory.export, memory.backup):
            with pytest.raises(ValidationError, match="root directory"):
                verb(place)

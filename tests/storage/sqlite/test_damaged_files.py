"""Files that were damaged by the disk or by a careless copy: told, never emptied, restored over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import database_of

from agent_memory import AgentMemory, NotAMemoryFile, StorageCorrupt, StorageError
from agent_memory.services.store import Store
from agent_memory.storage.sqlite.tables.fingerprints import FingerprintTable

LOG = b"\x37\x7f\x06\x82" + bytes(5_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed file of two memories, with a backup beside it: ``kept.db``."""
    place = tmp_path / "memories.db"
    with AgentMemory.open(place, agent_id="bob", embedder=None) as memory:
        memory.store("Prefer walnut wood", id="first")
        memory.store("An elephant", id="second")
        memory.backup(tmp_path / "kept.db")
    return place


def patched(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def assert_restored(path: Path, aside: int) -> None:
    AgentMemory.restore(path, path.with_name("kept.db"))
    with AgentMemory.open(path, embedder=None) as memory:
        assert {it.id for it in memory.list_recent()} == {"first", "second"}
        assert memory.check().problems == []
    kept = [it for it in path.parent.iterdir() if it.name.startswith("memories.db.replaced-")]
    assert len(kept) >= aside


# Fields of the header that no program writes so, and of which SQLite says something else.
HEADERS = [(18, b"\x69"), (18, b"\xff"), (19, b"\x69"), (47, b"\x97"), (0, b"X"), (16, b"\x03")]


@pytest.mark.parametrize(("offset", "data"), HEADERS)
@pytest.mark.parametrize("log", [False, True])
def test_a_damaged_header_is_told_as_damage_and_restored_over(
    path: Path, offset: int, data: bytes, log: bool
) -> None:
    patched(path, offset, data)
    if log:
        path.with_name("memories.db-wal").write_bytes(LOG)
    damaged = path.read_bytes()
    with pytest.raises((StorageCorrupt, NotAMemoryFile)):
        AgentMemory.open(path, embedder=None)
    assert path.read_bytes() == damaged
    assert_restored(path, 1)


@pytest.mark.parametrize("length", [0, 1])
def test_a_file_that_was_emptied_does_not_take_its_log_with_it(path: Path, length: int) -> None:
    os.truncate(path, length)
    log = path.with_name("memories.db-wal")
    log.write_bytes(LOG)
    for read_only in (False, True):
        with pytest.raises(StorageCorrupt, match="emptied"):
            AgentMemory.open(path, embedder=None, read_only=read_only)
    assert log.read_bytes() == LOG
    assert path.stat().st_size == length
    assert_restored(path, 1)
    assert any(it.read_bytes() == LOG for it in path.parent.glob("memories.db.replaced-*-wal"))


def test_an_empty_file_without_a_log_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "memories.db").touch(0o600)
    with AgentMemory.open(tmp_path / "memories.db", embedder=None) as memory:
        memory.store("Oak")
        assert memory.check().problems == []


def test_what_mending_brings_to_light_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_memory.models.agent import Problem
    from agent_memory.storage.sqlite.maintenance import check

    found = iter([
        [Problem(kind="damaged_file", detail="page 9")],
        [Problem(kind="damaged_file", detail="page 10")],
    ])  # fmt: skip
    monkeypatch.setattr(check, "_problems", lambda _: next(found))
    with AgentMemory.open(path, embedder=None) as memory:
        report = memory.check(repair=True)
    assert [(it.detail, it.repaired) for it in report.problems] == [
        ("page 9", True), ("page 10", False),
    ]  # fmt: skip
    assert not report.ok


def test_a_table_that_forgets_what_is_written_hangs_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FingerprintTable, "put", lambda *_: None)
    with AgentMemory.open(path, embedder=None) as memory:
        store: Store = memory._store
        with database_of(store).write():
            database_of(store).run("UPDATE fingerprints SET fingerprint = NULL")
        with pytest.raises(StorageError, match="fingerprints"):
            memory.store("Oak")


def test_bytes_for_a_text_are_not_written_out(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    # In a record, the type of a text of n bytes is 2n + 13, that of bytes 2n + 12.
    place = data.index(b"firstPrefer walnut wood")
    header = data.rindex(bytes([2 * 5 + 13, 2 * 18 + 13]), 0, place)
    patched(path, header + 1, bytes([2 * 18 + 12]))
    with AgentMemory.open(path, embedder=None) as memory:
        assert not memory.check().ok
        with pytest.raises(StorageCorrupt, match="has bytes where text belongs"):
            memory.export(tmp_path / "out.yaml")


def test_what_sqlite_ended_by_itself_is_read_past_and_not_committed(path: Path) -> None:
    """As it ends some of a torn file, the error of which a check goes on from."""
    with AgentMemory.open(path) as memory:
        database = database_of(memory)
        with database.read():
            database.run("ROLLBACK")
        with pytest.raises(StorageError, match="no transaction is active"), database.write():
            database.run("ROLLBACK")
        assert memory.count() == 2

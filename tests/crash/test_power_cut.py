"""A power cut at any moment: what was acknowledged is there, and nothing is there by half.

The writes and syncs of a run are recorded by a VFS. Then, for a moment in that record, the disk is
made as a power cut may leave it: what was synced is there; of what was not, each write may be
there, be missing, or be torn at a sector. The library opens that disk.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_memory import AgentMemory, AgentMemoryError

SECTOR = 512


@dataclass
class Record:
    """What happened to the files, in order."""

    events: list[tuple[Any, ...]] = field(default_factory=list)

    def acknowledge(self, memory_id: str) -> None:
        self.events.append(("acknowledged", memory_id))


class RecordingFile(apsw.VFSFile):
    def __init__(self, record: Record, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self.record = record
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.name = Path(path).name if path else "temporary"

    def xWrite(self, data: bytes, offset: int) -> None:
        self.record.events.append(("write", self.name, bytes(data), offset))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self.record.events.append(("truncate", self.name, size))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self.record.events.append(("sync", self.name))
        super().xSync(flags)


class RecordingVFS(apsw.VFS):
    def __init__(self, record: Record) -> None:
        self.record = record
        self.base = apsw.vfs_names()[0]
        super().__init__("recording", self.base)

    def xOpen(self, name: Any, flags: list[int]) -> RecordingFile:
        return RecordingFile(self.record, self.base, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        self.record.events.append(("delete", Path(name).name))
        super().xDelete(name, sync)


@pytest.fixture
def record() -> Iterator[Record]:
    found = Record()
    vfs = RecordingVFS(found)
    default = apsw.vfs_names()[0]
    apsw.set_default_vfs("recording")
    try:
        yield found
    finally:
        apsw.set_default_vfs(default)
        vfs.unregister()


def _work(record: Record, path: Path, *, careless: bool) -> None:
    """Store, change and delete, telling the record of each memory that is acknowledged."""
    with AgentMemory.open(path) as memory:
        memory._store._database.run("PRAGMA wal_autocheckpoint = 20")
        if careless:
            memory._store._database.run("PRAGMA synchronous = OFF")
        for number in range(30):
            memory_id = memory.store(f"fact {number} about the harbour", id=f"fact-{number}")
            record.acknowledge(memory_id)
            if number % 5 == 4:
                memory.update(memory_id, tags=["harbour"])
                memory.promote(memory_id)


def _disk_after(record: Record, moment: int, chance: random.Random) -> dict[str, bytearray]:
    """Return the files as a power cut after so many events may leave them."""
    events = record.events[:moment]
    synced = {
        event[1]: place for place, event in enumerate(events) if event[0] == "sync"
    }  # the last sync of each file
    files: dict[str, bytearray] = {}
    for place, event in enumerate(events):
        if event[0] == "delete":
            files.pop(event[1], None)
        if event[0] not in ("write", "truncate"):
            continue
        content = files.setdefault(event[1], bytearray())
        is_safe = place < synced.get(event[1], -1)
        fate = "kept" if is_safe else chance.choices(["kept", "lost", "torn"], [45, 35, 20])[0]
        if fate == "lost":
            continue
        if event[0] == "truncate":
            del content[event[2] :]
            continue
        _, _, data, offset = event
        if fate == "torn":
            data = data[: chance.randrange(0, len(data) // SECTOR + 1) * SECTOR]
        content.extend(bytes(max(0, offset + len(data) - len(content))))
        content[offset : offset + len(data)] = data
    return files


def _survives(record: Record, moment: int, folder: Path, chance: random.Random) -> bool:
    """Tell whether the library finds everything acknowledged, whole, on that disk."""
    folder.mkdir()
    for name, content in _disk_after(record, moment, chance).items():
        if not name.endswith("-shm"):
            (folder / name).write_bytes(content)
    acknowledged = {event[1] for event in record.events[:moment] if event[0] == "acknowledged"}
    try:
        with AgentMemory.open(folder / "m.db") as memory:
            there = {found.id for found in memory.list_recent(1000)}
            in_order = {f"fact-{number}" for number in range(len(there))}
            return acknowledged <= there == in_order and memory.check().problems == []
    except AgentMemoryError:
        return False


@pytest.mark.parametrize("careless", [False, True], ids=["as it is", "without syncs"])
def test_power_cuts(record: Record, tmp_path: Path, *, careless: bool) -> None:
    _work(record, tmp_path / "m.db", careless=careless)
    record = Record(list(record.events))  # opening the cut disks is recorded too
    chance = random.Random(3)
    moments = [chance.randrange(1, len(record.events) + 1) for _ in range(150)]
    survived = [
        _survives(record, moment, tmp_path / f"cut-{number}", chance)
        for number, moment in enumerate(moments)
    ]
    if careless:
        # The control: without syncs the same cuts must do harm, or this test proves nothing.
        assert sum(survived) < 100
    else:
        assert all(survived)

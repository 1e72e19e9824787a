"""Databases of other programs: read as they were written, and never written to."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import os
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
import pytest
from peer_files import everything, taken_in, unpacked

from agent_memory import AgentMemory, Memory, StorageError, ValidationError
from agent_memory.formats.peers.qdrant_points import point_of
from agent_memory.formats.registry import recognise
from agent_memory.storage.sqlite import peer_databases

CLAUDE_MEM = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, memory_session_id TEXT UNIQUE);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
  project TEXT NOT NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT,
  narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER,
  discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL,
  FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id));
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT,
  project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT,
  next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER,
  discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
  prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL);
INSERT INTO observations (memory_session_id, project, type, title, subtitle, facts, narrative,
  concepts, files_read, created_at, created_at_epoch) VALUES ('s-1', 'shop', 'decision',
  'PostgreSQL for the ledger', 'After a trial', '["Version 17", "On two hosts"]', 'It was faster.',
  '["database", "Trade-Off"]', '["a.py"]', '2026-01-30T16:00:00.123Z', 1769788800123);
INSERT INTO session_summaries (memory_session_id, project, request, learned, created_at,
  created_at_epoch) VALUES ('s-1', 'shop', 'Choose a database', 'Indexes matter',
  '2026-01-30T16:05:00Z', 1769789100000);
INSERT INTO user_prompts VALUES (1, 'c-1', 1, 'choose one', '2026-01-30T16:00:00Z');
"""
"""The tables as version 13.25.3 makes them."""
ENGRAM = """
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  type TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, tool_name TEXT, project TEXT,
  scope TEXT, topic_key TEXT, created_at TEXT NOT NULL DEFAULT (datetime('now')), deleted_at TEXT);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, session_id TEXT, content TEXT, created_at TEXT);
INSERT INTO observations (session_id, type, title, content, project, created_at) VALUES
  ('s-1', 'bugfix', 'Rounding', 'Cents were lost in refunds', 'shop', '2026-01-30 16:00:00');
INSERT INTO observations (session_id, type, title, content, deleted_at, created_at) VALUES
  ('s-1', 'note', 'x', 'gone', '2026-02-01 10:00:00', '2026-01-30 16:00:00');
INSERT INTO user_prompts VALUES (1, 's-1', 'why?', '2026-01-30 16:00:00');
"""
BASIC_MEMORY = """
CREATE TABLE entity (id INTEGER PRIMARY KEY, title TEXT, permalink TEXT, file_path TEXT,
  created_at DATETIME, updated_at DATETIME);
CREATE TABLE observation (id INTEGER PRIMARY KEY, project_id INTEGER, entity_id INTEGER,
  content TEXT, category TEXT, context TEXT, tags TEXT);
CREATE TABLE relation (id INTEGER PRIMARY KEY, from_id INTEGER, to_id INTEGER, to_name TEXT,
  relation_type TEXT);
INSERT INTO entity VALUES (1, 'Coffee', 'coffee', 'coffee.md', '2026-01-30 16:00:00.000000',
  '2026-01-31 16:00:00.000000');
INSERT INTO observation VALUES (1, 1, 1, 'Light roast is sourer', 'discovery', 'a trial',
  '["taste"]');
INSERT INTO relation VALUES (1, 1, NULL, 'Tea', 'beside');
"""


def database(path: Path, sql: str) -> Path:
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()
    return path


def state_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Return the names, bytes and times of what is in a folder."""
    return {
        file.relative_to(folder).as_posix(): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def only_read(path: Path, folder: Path, **options: Any) -> tuple[Any, list[Memory]]:
    """Import a database, which must stay as it is, and so must its folder."""
    before = state_of(path.parent)
    (folder / "store").mkdir()
    came = taken_in(path, folder / "store", **options)
    assert state_of(path.parent) == before
    return came


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder for the other program's files."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    return folder


# Written by the other program -------------------------------------------------------------------


def test_mcp_memory_service(place: Path, tmp_path: Path) -> None:
    """Of version 12.4.0: three were stored, one deleted."""
    path = unpacked("mcp-memory-service.db.gz", place)
    report, memories = only_read(path, tmp_path)
    assert (report.format, report.new) == ("mcp-memory-service", 2)
    assert report.notes == ["skipped: memories that were deleted or replaced there: 1"]
    assert [(each.content, each.tags, each.category) for each in memories] == [
        ("Likes black tea", ["drinks", "tea"], "note"),
        ("Decided on PostgreSQL 17 for the ledger", ["db"], "decision"),
    ]
    assert [each.timestamp.timestamp() for each in memories] == [1769900000.5, 1769990000.0]
    assert memories[0].metadata["metadata"] == {"source": "chat"}


def test_langgraph(place: Path, tmp_path: Path) -> None:
    """Of langgraph-checkpoint-sqlite 3.1.2: five were put, one deleted."""
    report, memories = only_read(unpacked("langgraph.db.gz", place), tmp_path)
    assert (report.format, report.new, report.notes) == ("langgraph", 4, [])
    assert [(each.content, each.metadata["prefix"]) for each in memories] == [
        ('{"name": "Ann", "city": "Lisbon", "age": 41}', "users.ann"),
        ("Likes black tea", "users.ann.memories"),
        ("Prefers trains to planes", "users.ann.memories"),
        ("Deploys on Fridays", "users.bob"),
    ]
    assert memories[2].metadata["value"]["content"]["confidence"] == 0.9
    assert memories[1].timestamp.isoformat() == "2026-11-23T19:08:35+00:00"


def test_mnemosyne(place: Path, tmp_path: Path) -> None:
    """Of Mnemosyne 3.15.1: four were remembered, one replaced, one forgotten."""
    report, memories = only_read(unpacked("mnemosyne.db.gz", place), tmp_path)
    assert (report.format, report.new) == ("mnemosyne", 2)
    assert report.notes == ["skipped: memories that were deleted or replaced there: 1"]
    assert [each.content for each in memories] == ["Likes black tea", "Lives in Porto"]
    assert memories[0].metadata["metadata_json"] == {"topic": "drinks"}
    assert memories[0].created_by_session == "s1"
    assert memories[0].timestamp.isoformat() == "2026-11-23T19:10:46.923211+00:00"


def test_the_history_of_mem0(place: Path, tmp_path: Path) -> None:
    """Of mem0ai 2.2.1: three were added, one updated, one deleted."""
    report, memories = only_read(unpacked("mem0-history.db.gz", place), tmp_path)
    assert (report.format, report.new) == ("mem0", 2)
    assert report.notes == ["skipped: memories that were deleted or replaced there: 1"]
    assert {each.id: each.content for each in memories} == {
        "0b0e0c1a-1111-4222-8333-000000000001": "Likes black tea",
        "0b0e0c1a-1111-4222-8333-000000000003": "Has a dog, レックス",
    }
    times = {each.content: each.timestamp.isoformat() for each in memories}
    assert times["Likes black tea"] == "2026-02-03T09:10:11.123456+00:00"


def test_the_local_qdrant_of_mem0(place: Path, tmp_path: Path) -> None:
    """Of mem0ai 2.2.1 with qdrant-client 1.20.0: three points."""
    path = unpacked("mem0-qdrant.tar.gz", place)
    report, memories = only_read(path, tmp_path)
    assert (report.format, report.new) == ("mem0", 3)
    assert [(each.content, each.user_id, each.run_id) for each in memories] == [
        ("Likes black tea", "ann", None),
        ("Has a dog, レックス", "ann", "run-1"),
        ("Deploys on Fridays", None, None),
    ]
    assert memories[0].id == "0b0e0c1a-1111-4222-8333-000000000001"
    assert memories[1].timestamp.isoformat() == "2026-02-06T18:00:00+00:00"
    assert memories[2].metadata == {"agent_id": "ops", "actor_id": "bob", "source": "mem0"}
    (file,) = path.rglob("storage.sqlite")
    assert recognise(file).name == "mem0"


# As they are documented ---------------------------------------------------------------------------


def test_claude_mem(place: Path, tmp_path: Path) -> None:
    path = database(place / "claude-mem.db", CLAUDE_MEM)
    report, (observation, summary) = only_read(path, tmp_path)
    assert (report.format, report.notes) == ("claude-mem", ["skipped: prompts: 1"])
    assert observation.content == (
        "PostgreSQL for the ledger\nAfter a trial\nIt was faster.\n- Version 17\n- On two hosts"
    )
    assert (observation.category, observation.tags) == ("decision", ["database", "trade-off"])
    assert observation.timestamp.isoformat() == "2026-01-30T16:00:00.123000+00:00"
    assert (observation.created_by_session, observation.metadata["project"]) == ("s-1", "shop")
    assert observation.metadata["files_read"] == ["a.py"]
    assert summary.content == "request: Choose a database\nlearned: Indexes matter"


def test_an_older_claude_mem_is_read_as_far_as_it_goes(place: Path, tmp_path: Path) -> None:
    path = database(
        place / "claude-mem.db",
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT, project TEXT,"
        " text TEXT, type TEXT, created_at TEXT, created_at_epoch INTEGER);"
        "INSERT INTO observations VALUES (1, 's-0', 'shop', 'Tests need Node', 'feature',"
        " '2025-09-01T10:00:00Z', 1756720800000)",
    )
    _, (memory,) = only_read(path, tmp_path)
    assert (memory.content, memory.created_by_session) == ("Tests need Node", "s-0")
    assert memory.metadata["type"] == "feature"


def test_engram(place: Path, tmp_path: Path) -> None:
    report, (memory,) = only_read(database(place / "engram.db", ENGRAM), tmp_path)
    assert report.format == "engram"
    assert "memories that were deleted or replaced there: 1" in report.notes[0]
    assert "prompts: 1" in report.notes[0]
    assert (memory.content, memory.category) == ("Rounding\nCents were lost in refunds", "bugfix")
    assert memory.timestamp.isoformat() == "2026-01-30T16:00:00+00:00"


def test_basic_memory(place: Path, tmp_path: Path) -> None:
    report, (memory,) = only_read(database(place / "memory.db", BASIC_MEMORY), tmp_path)
    assert (report.format, memory.content) == ("basic-memory", "Light roast is sourer")
    assert (memory.category, memory.tags) == ("discovery", ["taste"])
    assert memory.metadata["title"] == "Coffee"
    assert report.notes == ["skipped: relations (the folder of notes has them): 1"]


# A file that is not ours --------------------------------------------------------------------------


def test_what_is_in_a_log_comes_too_and_the_log_stays(place: Path, tmp_path: Path) -> None:
    code = (
        "import sys, os, apsw\nc = apsw.Connection(sys.argv[1])\n"
        "c.pragma('journal_mode', 'wal'); c.pragma('wal_autocheckpoint', 0)\n"
        "c.execute(sys.argv[2]); os._exit(0)"
    )
    path = place / "engram.db"
    subprocess.run([sys.executable, "-c", code, str(path), ENGRAM], check=True)
    assert (place / "engram.db-wal").stat().st_size > 0
    report, memories = only_read(path, tmp_path)
    assert (report.format, len(memories)) == ("engram", 1)


def test_a_store_of_ours_that_is_in_use_is_not_copied_to_be_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memories.db"
    code = (
        "import sys, os; from agent_memory import AgentMemory\n"
        "AgentMemory.open(sys.argv[1]).close()\n"
        "AgentMemory.open(sys.argv[1]).store('kept'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert path.with_name("memories.db-wal").exists()
    monkeypatch.setattr(peer_databases, "copied", None)
    assert recognise(path).name == "sqlite"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_read(place: Path, tmp_path: Path) -> None:
    path = database(place / "engram.db", ENGRAM)
    path.chmod(0o400)
    place.chmod(0o500)
    try:
        assert only_read(path, tmp_path)[0].new == 1
    finally:
        place.chmod(0o700)


@pytest.mark.parametrize("cut", [50, 1_000, 5_000, 9_000])
def test_a_damaged_file_is_a_typed_error(place: Path, tmp_path: Path, cut: int) -> None:
    path = database(place / "engram.db", ENGRAM)
    path.write_bytes(path.read_bytes()[:cut])
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        with pytest.raises((StorageError, ValidationError)) as caught:
            memory.import_(path, format="engram")
        assert str(path) in str(caught.value)
        assert everything(memory) == []


def test_a_database_of_another_kind_is_told_what_is_missing(place: Path, tmp_path: Path) -> None:
    path = database(place / "x.db", "CREATE TABLE observations (content TEXT)")
    with (
        AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory,
        pytest.raises(ValidationError, match="engram: its table observations has no"),
    ):
        memory.import_(path, format="engram")
    assert recognise(path).name == "sqlite"


def test_a_view_in_the_place_of_a_table_is_not_run(place: Path, tmp_path: Path) -> None:
    path = database(
        place / "x.db",
        "CREATE VIEW observations AS WITH RECURSIVE n(content) AS (SELECT 1 UNION ALL SELECT"
        " content + 1 FROM n) SELECT content, 1 AS session_id, 2 AS type, 3 AS title,"
        " 4 AS tool_name FROM n",
    )
    with (
        AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory,
        pytest.raises(ValidationError, match="not a database of engram"),
    ):
        memory.import_(path, format="engram")


@pytest.mark.parametrize("value", ["NULL", "7", "1.5", "x'00ff'", "''", "'[1,'", "9e999"])
@pytest.mark.parametrize(
    "column", ["type", "title", "subtitle", "facts", "narrative", "concepts", "project",
               "created_at_epoch", "memory_session_id", "files_read"],
)  # fmt: skip
def test_wrong_types_in_a_column(place: Path, tmp_path: Path, column: str, value: str) -> None:
    names = CLAUDE_MEM.replace(" NOT NULL", "").replace("_epoch INTEGER", "_epoch")
    path = database(place / "x.db", f"{names}; UPDATE observations SET {column} = {value};")
    _, memories = only_read(path, tmp_path)
    assert len(memories) == 2


# Pickles ------------------------------------------------------------------------------------------


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def point(payload: Any, *, module: str = "qdrant_client.http.models.models") -> bytes:
    """Return a pickle as Qdrant writes it, with a payload."""
    code = (
        "import pickle, sys, types\n"
        f"module = types.ModuleType({module!r}); sys.modules[{module!r}] = module\n"
        f"PointStruct = type('PointStruct', (), {{'__module__': {module!r}}})\n"
        "module.PointStruct = PointStruct\n"
        "point = PointStruct()\n"
        "payload = pickle.loads(sys.stdin.buffer.read())\n"
        "point.__dict__['__dict__'] = {'id': 'p-1', 'vector': {}, 'payload': payload}\n"
        "sys.stdout.buffer.write(pickle.dumps(point, 4))"
    )
    for name in ("qdrant_client", "qdrant_client.http", "qdrant_client.http.models"):
        code = f"import sys, types; sys.modules[{name!r}] = types.ModuleType({name!r})\n{code}"
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, input=pickle.dumps(payload), capture_output=True, check=True
    ).stdout


def test_a_point_is_read_and_its_class_never_made() -> None:
    values = point_of(point({"data": "Likes tea", "n": [1, 2.5, None, True, {"a": ("b",)}]}))
    assert values["payload"]["data"] == "Likes tea"
    assert values["payload"]["n"] == [1, 2.5, None, True, {"a": ("b",)}]


def malicious(tmp_path: Path) -> Mapping[str, bytes]:
    """Return pickles that would do something, or take all memory."""
    ring: list[Any] = []
    ring.append(ring)
    laughs: list[Any] = ["ha"]
    for _ in range(30):
        laughs = [laughs, laughs]
    return {
        "runs": pickle.dumps(_Evil(tmp_path / "pwned")),
        "runs, of protocol 0": pickle.dumps(_Evil(tmp_path / "pwned"), 0),
        "names a function": b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93.",
        "names another class": b"\x80\x04\x8c\x08builtins\x94\x8c\x04eval\x94\x93)\x81.",
        "a class of a time": pickle.dumps(dt.datetime(2026, 1, 1)),  # noqa: DTZ001
        "makes room": b"\x80\x04Nr\xff\xff\xff\x7f.",
        "an extension": b"\x80\x02\x82\x01.",
        "persistent": b"\x80\x04\x8c\x01xQ.",
        "out of band": b"\x80\x05\x97.",
        "is cut off": point({"data": "x"})[:-40],
        "is empty": b"",
        "is text": b"not a pickle",
        "is data alone": pickle.dumps({"payload": {"data": "x"}}),
        "claims a length": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx.",
        "a ring": point({"data": "x", "ring": ring}),
        "a billion laughs": point({"data": "x", "laughs": laughs}),
        "another module": point({"data": "x"}, module="evil"),
    }


NAMES = list(malicious(Path("/nowhere")))


@pytest.mark.parametrize("name", NAMES)
def test_a_malicious_pickle_is_refused_and_nothing_of_it_is_run(
    place: Path, tmp_path: Path, name: str
) -> None:
    data = malicious(tmp_path)[name]
    with pytest.raises(ValidationError, match=r"^point: "):
        point_of(data)
    path = unpacked("mem0-qdrant.tar.gz", place)
    (file,) = path.rglob("storage.sqlite")
    connection = apsw.Connection(str(file))
    key = base64.b64encode(pickle.dumps("p-1")).decode()
    connection.execute("INSERT INTO points VALUES (?, ?)", (key, data))
    connection.close()
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        with pytest.raises(ValidationError, match=r"points, row 4: point: .*Nothing was imported"):
            memory.import_(path)
        assert everything(memory) == []
        assert memory.import_(path, skip_bad=True).new == 3
    assert not (tmp_path / "pwned").exists()


def test_the_malice_of_the_tests_is_real(tmp_path: Path) -> None:
    pickle.loads(malicious(tmp_path)["runs"])
    assert (tmp_path / "pwned").is_dir()
    assert any(op.name == "REDUCE" for op, _, _ in pickletools.genops(malicious(tmp_path)["runs"]))

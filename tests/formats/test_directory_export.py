"""Document E's folder, written: its files, its limits, its index; all of it or nothing."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sources import ListSource

from agent_memory import Memory, StorageFull, StorageUnavailable, TaskMetadata, ValidationError
from agent_memory.formats.directory import CODEC
from agent_memory.formats.protocol import Written

T0 = datetime(2026, 1, 1, 10, tzinfo=UTC)
UUID = "550e8400-e29b-41d4-a716-44665544{:04d}"

# Document E's example, as it stands.
EXAMPLE = (
    '{"id":"550e8400-e29b-41d4-a716-446655440000","type":"core",'
    '"content":"User prefers pytest over unittest","category":"preference",'
    '"created_at":"2026-01-01T10:00:00Z","updated_at":"2026-01-01T10:00:00Z",'
    '"accessed_at":"2026-01-01T10:00:00Z","access_count":5,"tags":["python","testing"],'
    '"importance":"high","archived":false}\n'
    '{"id":"550e8400-e29b-41d4-a716-446655440001","type":"core",'
    '"content":"Project uses black for formatting with line length 88","category":"fact",'
    '"created_at":"2026-01-01T10:05:00Z","updated_at":"2026-01-01T10:05:00Z",'
    '"accessed_at":"2026-01-01T10:05:00Z","access_count":3,'
    '"tags":["python","formatting","black"],"importance":"medium","archived":false}'
)


def made(number: int = 0, **values: Any) -> Memory:
    """Return a memory whose id and times are E's, unless others are given."""
    usual: dict[str, Any] = {
        "id": UUID.format(number),
        "agent_id": "bob",
        "content": f"memory {number}",
        "category": "note",
        "timestamp": T0,
        "updated_at": values.get("timestamp", T0),
        "created_by_session": "session-1",
    }
    return Memory(**{**usual, **values})


def write(path: Path, *memories: Memory) -> Written:
    return CODEC.write(path, ListSource(memories))


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of E's, which has no end of line at its end."""
    raw = path.read_bytes()
    assert not raw.endswith(b"\n")
    return [json.loads(line) for line in raw.split(b"\n")] if raw else []


def files(path: Path, *, backups: bool = False) -> dict[str, bytes]:
    """Return every file below a folder, with its bytes."""
    found = {one.relative_to(path).as_posix(): one for one in path.rglob("*") if one.is_file()}
    return {
        name: one.read_bytes()
        for name, one in sorted(found.items())
        if backups or not name.startswith(".backup/")
    }


# The files ----------------------------------------------------------------------------------


def test_the_example_is_written_as_it_stands_in_the_document(tmp_path: Path) -> None:
    first = made(
        0,
        content="User prefers pytest over unittest",
        category="preference",
        last_accessed=T0,
        access_count=5,
        tags=["python", "testing"],
        kind="core",
        importance="high",
    )
    later = T0 + timedelta(minutes=5)
    second = made(
        1,
        content="Project uses black for formatting with line length 88",
        timestamp=later,
        last_accessed=later,
        access_count=3,
        tags=["python", "formatting", "black"],
        kind="core",
        metadata={"original_category": "fact"},
    )
    assert write(tmp_path / "new", first, second).memories == 2
    assert (tmp_path / "new" / "core_memories.jsonl").read_text() == EXAMPLE
    index = json.loads((tmp_path / "new" / "index.json").read_text())
    assert index.pop("statistics")["by_type"] == {"core": 2, "learning": 0, "task": 0}
    ids = [UUID.format(0), UUID.format(1)]
    assert index == {
        "version": "1.0.0",
        "last_updated": "2026-01-01T10:05:00Z",
        "tags_index": {
            "python": ids, "testing": ids[:1], "formatting": ids[1:], "black": ids[1:],
        },
        "category_index": {"preference": ids[:1], "fact": ids[1:]},
        "importance_index": {"high": ids[:1], "medium": ids[1:], "low": []},
    }  # fmt: skip


def test_each_kind_has_its_file_and_the_archive_has_quarters(tmp_path: Path) -> None:
    march, april = T0.replace(month=3, day=31), T0.replace(month=4, day=1)
    write(
        tmp_path,
        made(1, kind="task"),
        made(2),
        made(3, kind="core"),
        made(4, archived=True, updated_at=march),
        made(5, archived=True, updated_at=april, kind="task"),
        made(6, archived=True, updated_at=T0.replace(year=2025, month=12), kind="core"),
    )
    contents = {
        name: [one["content"] for one in lines(tmp_path / name)]
        for name in files(tmp_path)
        if name.endswith(".jsonl") and name != "agent_memory.jsonl"
    }
    assert contents == {
        "core_memories.jsonl": ["memory 3"],
        "learnings.jsonl": ["memory 2"],
        "tasks.jsonl": ["memory 1"],
        "archive/2026/learnings_2026_Q1.jsonl": ["memory 4"],
        "archive/2026/tasks_2026_Q2.jsonl": ["memory 5"],
        "archive/2025/core_memories_2025_Q4.jsonl": ["memory 6"],
    }


def test_an_empty_store_has_three_empty_files_and_an_index(tmp_path: Path) -> None:
    assert write(tmp_path).memories == 0
    names = ["core_memories.jsonl", "index.json", "learnings.jsonl", "tasks.jsonl"]
    assert list(files(tmp_path)) == names
    assert list(CODEC.read(tmp_path)) == []


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"status": "completed", "completed_at": T0, "outcome": "done", "blockers": ["x"]},
         {"status": "completed", "completed_at": "2026-01-01T10:00:00Z", "outcome": "done"}),
        ({"status": "blocked", "completed_at": T0, "outcome": "done", "blockers": ["x"]},
         {"status": "blocked", "blockers": ["x"]}),
        ({"status": "blocked"}, {"status": "blocked", "blockers": []}),
        ({"status": "in-progress", "completed_at": T0, "outcome": "done", "blockers": ["x"]},
         {"status": "in-progress"}),
    ],
)  # fmt: skip
def test_a_task_has_what_goes_with_its_status(
    tmp_path: Path, values: dict[str, Any], told: dict[str, Any]
) -> None:
    task = TaskMetadata(**values)
    memory = made(kind="task", task_metadata=task)
    write(tmp_path, memory, made(1, task_metadata=task))
    (line,) = lines(tmp_path / "tasks.jsonl")
    assert line["task_metadata"] == told
    assert "task_metadata" not in lines(tmp_path / "learnings.jsonl")[0]
    back = [entry.fields["task_metadata"] for entry in CODEC.read(tmp_path)]
    assert [TaskMetadata(**one) for one in back] == [task, task]


def test_an_id_that_is_no_uuid_becomes_always_the_same_one(tmp_path: Path) -> None:
    write(tmp_path / "1", made(id="mem-a3f2c1b4e5d6"), made(id="mem-000000000001"))
    write(tmp_path / "2", made(id="mem-a3f2c1b4e5d6"))
    first, other = (one["id"] for one in lines(tmp_path / "1" / "learnings.jsonl"))
    assert [one["id"] for one in lines(tmp_path / "2" / "learnings.jsonl")] == [first]
    assert first != other
    v4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(v4, first)
    assert re.fullmatch(v4, other)


def test_times_have_microseconds_only_where_there_are_any(tmp_path: Path) -> None:
    write(tmp_path, made(timestamp=T0.replace(microsecond=5), updated_at=T0))
    (line,) = lines(tmp_path / "learnings.jsonl")
    assert (line["created_at"], line["updated_at"]) == (
        "2026-01-01T10:00:00.000005Z", "2026-01-01T10:00:00Z",
    )  # fmt: skip


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x85", "\n", "\r", "\x1e"])
def test_no_reader_takes_one_line_for_two(tmp_path: Path, letter: str) -> None:
    write(tmp_path, made(content=f"one{letter}two", tags=[f"a{letter}b"]))
    for name in ("learnings.jsonl", "index.json"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert letter == "\n" or letter not in text
    assert len((tmp_path / "learnings.jsonl").read_text().splitlines()) == 1
    assert lines(tmp_path / "learnings.jsonl")[0]["content"] == f"one{letter}two"


def test_of_what_e_tells_wholly_only_the_session_stands_beside(tmp_path: Path) -> None:
    write(tmp_path, made(0, created_by_session="session-1"))
    assert lines(tmp_path / "agent_memory.jsonl") == [
        {"id": UUID.format(0), "created_by_session": "session-1"}
    ]


def test_everything_is_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write(tmp_path / "a", made(), made(1, archived=True), made(2, content="x" * 6000))
        write(tmp_path / "a", made(content="changed"))
    finally:
        os.umask(old)
    (tmp_path / "a").chmod(0o755)
    write(tmp_path / "a", made(content="changed again"))
    for path in [tmp_path / "a", *(tmp_path / "a").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


# Limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("within", "beyond", "reason"),
    [
        (
            {"content": "xéé" * 1666 + "xx"},
            {"content": "xéé" * 1667},
            "content of over 5,000 characters",
        ),
        (
            {"metadata": {"original_category": "c" * 50}},
            {"metadata": {"original_category": "c" * 51}},
            "category of over 50 characters",
        ),
        (
            {"tags": [str(n) for n in range(10)]},
            {"tags": [str(n) for n in range(11)]},
            "more than 10 tags",
        ),
        ({"tags": ["t" * 30]}, {"tags": ["t" * 31]}, "tag of over 30 characters"),
    ],
)
@pytest.mark.parametrize("archived", [False, True])
def test_what_is_beyond_a_limit_stands_whole_beside(
    tmp_path: Path, within: dict[str, Any], beyond: dict[str, Any], reason: str, archived: bool
) -> None:
    store = [made(0, archived=archived, **within), made(1, archived=archived, **beyond)]
    written = write(tmp_path, *store)
    assert written.memories == 2
    assert written.notes[0] == f"1 were written whole into beyond_limits.jsonl: {reason}"
    assert [one["id"] for one in lines(tmp_path / "beyond_limits.jsonl")] == [store[1].id]
    assert [one.fields["content"] for one in CODEC.read(tmp_path)] == [one.content for one in store]
    statistics = json.loads((tmp_path / "index.json").read_text())["statistics"]
    assert (statistics["total_memories"], statistics["archived_count"]) == (
        int(not archived), int(archived),
    )  # fmt: skip


def test_a_line_of_10_kib_is_the_longest(tmp_path: Path) -> None:
    write(tmp_path / "probe", made(content="\U0001f600"))
    room = 10_240 - (tmp_path / "probe" / "learnings.jsonl").stat().st_size
    fits = made(0, content="\U0001f600" * (room // 4 + 1) + "x" * (room % 4))
    written = write(tmp_path / "limit", fits, made(1, content=fits.content + "x"))
    assert (tmp_path / "limit" / "learnings.jsonl").stat().st_size == 10_240
    assert written.notes[0] == (
        "1 were written whole into beyond_limits.jsonl: line of over 10,240 bytes"
    )


@pytest.mark.parametrize(
    ("kind", "name", "limit"),
    [("core", "core_memories", 1000), ("learning", "learnings", 500), ("task", "tasks", 200)],
)
def test_of_too_many_the_most_recently_used_stay(
    tmp_path: Path, kind: str, name: str, limit: int
) -> None:
    store = [made(n, kind=kind, timestamp=T0 + timedelta(seconds=n)) for n in range(limit + 3)]
    # The oldest was accessed last, the second changed last; the third is archived: it stays so.
    late = T0 + timedelta(days=1)
    store[0] = store[0].model_copy(update={"last_accessed": late, "access_count": 1})
    store[1] = store[1].model_copy(update={"updated_at": late})
    store[2] = store[2].model_copy(update={"archived": True})
    written = write(tmp_path, *store)
    assert (
        f"2 were written whole into beyond_limits.jsonl: beyond the {limit:,} " in written.notes[0]
    )
    kept = [one["content"] for one in lines(tmp_path / f"{name}.jsonl")]
    assert kept == [one.content for one in [*store[:2], *store[5:]]]
    beyond = [one["content"] for one in lines(tmp_path / "beyond_limits.jsonl")]
    assert beyond == ["memory 3", "memory 4"]


def test_of_those_used_at_the_same_moment_the_first_stay(tmp_path: Path) -> None:
    write(tmp_path, *(made(n, kind="task") for n in range(201)))
    assert [one["content"] for one in lines(tmp_path / "beyond_limits.jsonl")] == ["memory 200"]


def test_a_file_stays_below_its_size(tmp_path: Path) -> None:
    write(tmp_path, *(made(n, kind="task", content="é" * 4900) for n in range(200)))
    size = (tmp_path / "tasks.jsonl").stat().st_size
    line = len((tmp_path / "tasks.jsonl").read_bytes().split(b"\n")[0])
    assert size <= 2_000_000 < size + line + 1
    assert len(list(CODEC.read(tmp_path))) == 200


def test_the_archive_has_no_limit(tmp_path: Path) -> None:
    write(tmp_path, *(made(n, kind="task", archived=True) for n in range(201)))
    assert len(lines(tmp_path / "archive" / "2026" / "tasks_2026_Q1.jsonl")) == 201


def test_archives_of_more_quarters_than_files_may_be_open(tmp_path: Path) -> None:
    months = [T0.replace(year=1900 + n // 4, month=1 + n % 4 * 3) for n in range(100)]
    rounds = [made(n, archived=True, updated_at=months[n % 100]) for n in range(200)]
    write(tmp_path, *rounds)
    found = [name for name in files(tmp_path) if name.startswith("archive/")]
    assert len(found) == 100
    assert all(len(lines(tmp_path / name)) == 2 for name in found)


# Again --------------------------------------------------------------------------------------


def test_the_same_store_gives_the_same_bytes(tmp_path: Path) -> None:
    store = [made(n, kind="core", content="x" * (4990 + n), archived=n < 5) for n in range(20)]
    write(tmp_path / "a", *store)
    write(tmp_path / "b", *store)
    before = files(tmp_path / "a")
    assert files(tmp_path / "b") == before
    total = sum(len(raw) for name, raw in before.items() if name != "index.json")
    index = json.loads(before["index.json"])
    assert index["statistics"]["total_storage_bytes"] == total
    write(tmp_path / "a", *store)
    assert files(tmp_path / "a", backups=True) == before  # and what is the same needs no backup


def test_what_is_replaced_goes_into_backup_five_times_at_most(tmp_path: Path) -> None:
    for turn in range(8):
        write(tmp_path, made(content=f"turn {turn}"), made(1, kind="core"))
    backups = sorted((tmp_path / ".backup").iterdir())
    assert all(re.fullmatch(r"learnings\.jsonl\.backup\.\d{8}_\d{6}", one.name) for one in backups)
    told = [lines(one)[0]["content"] for one in backups]
    assert told == [f"turn {turn}" for turn in range(2, 7)]
    assert lines(tmp_path / "learnings.jsonl")[0]["content"] == "turn 7"


def test_what_is_no_more_goes_into_backup(tmp_path: Path) -> None:
    write(tmp_path, made(archived=True), made(1, content="x" * 6000))
    write(tmp_path, made(2))
    assert set(files(tmp_path)) == {
        "agent_memory.jsonl", "core_memories.jsonl", "index.json", "learnings.jsonl", "tasks.jsonl",
    }  # fmt: skip
    names = {path.name.partition(".jsonl")[0] for path in (tmp_path / ".backup").iterdir()}
    assert names == {"learnings", "learnings_2026_Q1", "beyond_limits", "agent_memory"}
    assert not (tmp_path / "archive").exists()
    assert [one.fields["content"] for one in CODEC.read(tmp_path)] == ["memory 2"]


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "learnings.jsonl").write_text("")
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / ".backup").mkdir()
    (tmp_path / ".backup" / "learnings.jsonl.backup.old").write_text("mine too")
    for turn in range(8):
        write(tmp_path, made(content=f"turn {turn}"))
    assert (tmp_path / "README.md").read_text() == "mine"
    assert (tmp_path / ".backup" / "learnings.jsonl.backup.old").read_text() == "mine too"


# What is refused ----------------------------------------------------------------------------


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(ValidationError, match=r"thesis\.txt"):
        write(tmp_path, made())
    assert files(tmp_path) == {"thesis.txt": b"precious"}


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ValidationError, match="is a file"):
        write(tmp_path / "file", made())
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("name", ["", "archive", "archive/2026", ".backup"])
def test_a_folder_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "folder"
    if name:
        write(folder, made())
        (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(ValidationError, match="symbolic link"):
        write(folder, made(archived=True), made(1, content="changed"))
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["learnings.jsonl", "index.json", "agent_memory.jsonl"])
def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path: Path, name: str) -> None:
    folder, victim = tmp_path / "folder", tmp_path / "victim"
    victim.write_text("precious")
    write(folder, made())
    (folder / name).unlink()
    (folder / name).symlink_to(victim)
    write(folder, made())
    assert not (folder / name).is_symlink()
    assert victim.read_text() == "precious"
    assert not (folder / ".backup").exists()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder, victim = tmp_path / "folder", tmp_path / "victim"
    write(folder, made())
    victim.write_text("precious")
    (folder / ".lock").symlink_to(victim)
    with pytest.raises(StorageUnavailable, match=r"\.lock"):
        write(folder, made(content="changed"))
    assert victim.read_text() == "precious"


# A full disk --------------------------------------------------------------------------------


def test_what_does_not_fit_on_the_disk_changes_nothing(tiny_disk: Path) -> None:
    folder = tiny_disk / "folder"
    write(folder, made())
    before = files(folder, backups=True)
    with pytest.raises(StorageFull, match="folder cannot be written: its disk is full"):
        write(folder, *(made(n, content="x" * 4000) for n in range(30)))
    assert files(folder, backups=True) == before
    with pytest.raises(StorageFull):
        write(tiny_disk / "new", *(made(n, content="x" * 4000) for n in range(30)))
    assert list(tiny_disk.iterdir()) == [folder]


WRITE_LITTLE = """
import resource, signal, sys
from pathlib import Path
sys.path[:0] = [sys.argv[2], str(Path(sys.argv[2]).parent)]
from test_directory_export import made, write
from agent_memory import StorageFull
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    write(Path(sys.argv[1]), *(made(n, content="x" * 4000) for n in range(30)))
except StorageFull as error:
    print("refused:", error)
"""


def test_a_file_that_may_not_grow_is_told_and_changes_nothing(tmp_path: Path) -> None:

    write(tmp_path / "folder", made())
    before = files(tmp_path / "folder", backups=True)
    code = [
        sys.executable,
        "-c",
        WRITE_LITTLE,
        str(tmp_path / "folder"),
        str(Path(__file__).parent),
    ]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("refused: "), done.stderr
    assert "its disk is full" in done.stdout
    assert files(tmp_path / "folder", backups=True) == before


# Size ---------------------------------------------------------------------------------------

WRITE_AND_READ_MANY = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[2], str(Path(sys.argv[2]).parent)]
from peak_memory import peak_bytes
from test_directory_export import made, T0
from agent_memory.formats.directory import CODEC

class Many:
    agent_id, changed_at = "bob", T0
    def memories(self):
        for n in range(40_000):
            yield made(id=f"mem-{n:012x}", content=f"{n} " + "x" * 500, archived=n % 2 == 0)

CODEC.write(Path(sys.argv[1]), Many())
read = sum(entry.error is None for entry in CODEC.read(Path(sys.argv[1])))
print(read, peak_bytes())
"""


def test_many_memories_take_little_room(tmp_path: Path) -> None:
    # 20 MB of content.
    words = [str(tmp_path / "folder"), str(Path(__file__).parent)]
    code = [sys.executable, "-c", WRITE_AND_READ_MANY, *words]
    done = subprocess.run(code, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    read, peak = map(int, done.stdout.split())
    assert read == 40_000
    assert peak < 150 * 2**20

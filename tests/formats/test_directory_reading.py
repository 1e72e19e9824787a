"""Document E's folder, read: its example, its repairs, its backups, and whatever else comes in."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_directory_export import EXAMPLE, UUID, files, made, write

from agent_memory import StorageUnavailable, ValidationError
from agent_memory.formats.directory import CODEC
from agent_memory.formats.protocol import Sample
from agent_memory.models.portable import Entry, Section

WHOLE: dict[str, Any] = {
    "id": UUID.format(7),
    "type": "learning",
    "content": "good",
    "category": "note",
    "created_at": "2026-01-01T10:00:00Z",
    "updated_at": "2026-01-02T10:00:00Z",
    "accessed_at": "2026-01-03T10:00:00Z",
    "access_count": 2,
    "tags": ["a"],
    "importance": "low",
    "archived": False,
}
FIELDS: dict[str, Any] = {
    "id": UUID.format(7),
    "content": "good",
    "category": "note",
    "tags": ["a"],
    "timestamp": "2026-01-01T10:00:00Z",
    "updated_at": "2026-01-02T10:00:00Z",
    "last_accessed": "2026-01-03T10:00:00Z",
    "access_count": 2,
    "kind": "learning",
    "importance": "low",
    "archived": False,
}
GOOD = json.dumps(WHOLE).encode()


def read(path: Path) -> list[Entry]:
    return list(CODEC.read(path))


def folder_of(path: Path, **contents: bytes | str) -> Path:
    """Make a folder of E's, with a ``core_memories.jsonl`` at least."""
    path.mkdir(exist_ok=True)
    (path / "core_memories.jsonl").touch()
    for name, content in contents.items():
        raw = content.encode() if isinstance(content, str) else content
        (path / f"{name}.jsonl").write_bytes(raw)
    return path


def only(path: Path, *lines: bytes | str) -> Entry:
    """Read a folder whose ``learnings.jsonl`` tells one memory, or one fault."""
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    (entry,) = read(folder_of(path / "folder", learnings=b"\n".join(raw)))
    return entry


def changed(**values: Any) -> str:
    """Return the whole line with other values; ``None`` takes the field out."""
    told = {**WHOLE, **values}
    return json.dumps({key: value for key, value in told.items() if value is not None})


# What is told -------------------------------------------------------------------------------


def test_the_example_is_read_as_it_stands_in_the_document(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", core_memories=EXAMPLE)
    file = tmp_path / "example.jsonl"
    file.write_text(EXAMPLE)
    for path, name in ((folder, "core_memories.jsonl"), (file, "example.jsonl")):
        first, second = read(path)
        assert first == Entry(
            Section.MEMORY,
            {
                "id": "550e8400-e29b-41d4-a716-446655440000",
                "content": "User prefers pytest over unittest",
                "category": "preference",
                "tags": ["python", "testing"],
                "timestamp": "2026-01-01T10:00:00Z",
                "updated_at": "2026-01-01T10:00:00Z",
                "last_accessed": "2026-01-01T10:00:00Z",
                "access_count": 5,
                "kind": "core",
                "importance": "high",
                "archived": False,
            },
            f"{name}: line 1",
        )
        assert (second.fields["category"], second.place) == ("fact", f"{name}: line 2")


def test_a_whole_line_needs_no_repair(tmp_path: Path) -> None:
    assert only(tmp_path, GOOD) == Entry(Section.MEMORY, FIELDS, "learnings.jsonl: line 1")


def test_one_that_was_not_used_since_it_was_made_was_never_accessed(tmp_path: Path) -> None:
    line = changed(accessed_at="2026-01-01T11:00:00+01:00", access_count=0)
    entry = only(tmp_path, line)
    assert entry.fields["last_accessed"] is None
    assert entry.repairs == ()


def test_what_e_does_not_know_is_metadata(tmp_path: Path) -> None:
    entry = only(tmp_path, changed(source={"page": 3}, metadata={"sure": 0.5}, nothing=None))
    assert entry.fields == {**FIELDS, "metadata": {"sure": 0.5, "source": {"page": 3}}}


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"source": 1, "metadata": {"source": 2}}, "'source'"),
        ({"metadata": "text"}, "metadata: is not an object"),
        ({"metadata": []}, "metadata: is not an object"),
        ({"content": None}, "content: is missing"),
        ({"content": 7}, "content: is not a string (got 7)"),
        ({"content": ["x"]}, "content: is not a string"),
        ({"id": ["x"]}, "id: is not a string"),
        ({"tags": {"a": 1}}, "tags: is not a list of strings"),
        ({"tags": ["a", ["b"]]}, "tags: has an element that is not a string"),
    ],
)
def test_what_cannot_be_put_right_is_told(
    tmp_path: Path, values: dict[str, Any], fault: str
) -> None:
    entry = only(tmp_path, changed(**values))
    assert (entry.fields, entry.place) == ({}, "learnings.jsonl: line 1")
    assert fault in (entry.error or "")


def test_the_archive_is_read_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", learnings=GOOD)
    year = folder / "archive" / "2025"
    year.mkdir(parents=True)
    (year / "tasks_2025_Q4.jsonl").write_text(
        changed(id=UUID.format(8), type="task", archived=True)
    )
    (year / "core_memories_2025_Q4.jsonl").write_text(changed(id=UUID.format(9), type=None))
    (year / "other.jsonl").write_text(changed(id=UUID.format(1)))
    first, core, task = read(folder)
    assert first.fields["archived"] is False
    assert (core.fields["kind"], core.fields["archived"]) == ("core", True)
    assert core.place == "archive/2025/core_memories_2025_Q4.jsonl: line 1"
    assert "it is in the archive" in " ".join(core.repairs)
    assert (task.fields["kind"], task.fields["archived"], task.repairs) == ("task", True, ())


# Repairs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "fields", "repair"),
    [
        ({"type": None}, {}, "type is missing: using learning"),
        ({"type": "Core_Memory"}, {"kind": "core"}, "type 'Core_Memory' is not valid: using core"),
        ({"type": 7}, {}, "type 7 is not valid: using learning"),
        ({"importance": None}, {"importance": "medium"}, "importance is missing: using medium"),
        (
            {"importance": " HIGH"},
            {"importance": "high"},
            "importance ' HIGH' is not valid: using high",
        ),
        ({"importance": "urgent"}, {"importance": "medium"}, "'urgent'"),
        ({"access_count": "3"}, {"access_count": 3}, "access_count '3' is not valid: using 3"),
        ({"access_count": 3.0}, {"access_count": 3}, "access_count 3.0"),
        ({"access_count": -1}, {"access_count": 0}, "access_count -1"),
        ({"access_count": True}, {"access_count": 0}, "access_count True"),
        ({"access_count": "9" * 5000}, {"access_count": 0}, "access_count '999"),
        ({"access_count": None}, {"access_count": 0}, "access_count is missing: using 0"),
        ({"tags": None}, {"tags": []}, "tags is missing: using none"),
        (
            {"tags": "db, api"},
            {"tags": ["db", "api"]},
            "tags 'db, api' is not valid: using db, api",
        ),
        ({"tags": ["a", 7, None]}, {"tags": ["a", "7"]}, "tags ['a', 7, None]"),
        ({"archived": None}, {}, "archived is missing: using false"),
        ({"archived": "true"}, {"archived": True}, "archived 'true' is not valid: using true"),
        ({"archived": 0}, {}, "archived 0 is not valid: using false"),
        ({"id": 7}, {"id": "7"}, "id 7 is a number"),
        ({"updated_at": None}, {"updated_at": WHOLE["created_at"]}, "using created_at"),
        ({"updated_at": "soon"}, {"updated_at": WHOLE["created_at"]}, "'soon' is not a time"),
        (
            {"updated_at": 1767261600},
            {"updated_at": WHOLE["created_at"]},
            "1767261600 is not a time",
        ),
        (
            {"created_at": "2024-02-30"},
            {"timestamp": WHOLE["updated_at"]},
            "created_at '2024-02-30' is not a time: using updated_at",
        ),
        (
            {"created_at": None, "updated_at": "0000-01-01T00:00:00Z"},
            {"timestamp": WHOLE["accessed_at"], "updated_at": WHOLE["accessed_at"]},
            "created_at is missing: using accessed_at",
        ),
        (
            {"accessed_at": None},
            {"last_accessed": WHOLE["updated_at"]},
            "accessed_at is missing: using updated_at",
        ),
        (
            {"accessed_at": "x", "access_count": 0},
            {"last_accessed": None, "access_count": 0},
            "accessed_at 'x' is not a time: using never",
        ),
    ],
)
def test_what_can_be_put_right_is_and_is_told(
    tmp_path: Path, values: dict[str, Any], fields: dict[str, Any], repair: str
) -> None:
    entry = only(tmp_path, changed(**values))
    assert entry.error is None
    assert entry.fields == {**FIELDS, **fields}
    assert repair in "\n".join(entry.repairs)


def test_a_line_with_nothing_but_a_content_gets_the_rest(tmp_path: Path) -> None:
    entry = only(tmp_path, '{"content":"alone"}')
    assert entry.fields == {
        "content": "alone",
        "tags": [],
        "access_count": 0,
        "kind": "learning",
        "importance": "medium",
        "archived": False,
    }
    told = [repair.split()[0] for repair in entry.repairs]
    assert sorted(told) == sorted(WHOLE.keys() - {"content"})


@pytest.mark.parametrize(
    ("task", "fields", "left"),
    [
        ({"status": "In Progress"}, {"status": "in-progress"}, None),
        ({"status": "Done"}, {"status": "completed"}, None),
        ({"blockers": "the api"}, {"status": "blocked", "blockers": ["the api"]}, None),
        (
            {"completed_at": "2026-01-01"},
            {"status": "completed", "completed_at": "2026-01-01"},
            None,
        ),
        ({"status": "lost", "outcome": "x"}, {"status": "in-progress", "outcome": "x"},
         {"status": "lost"}),
        ({"status": "completed", "completed_at": "soon", "owner": "Bo"}, {"status": "completed"},
         {"owner": "Bo", "completed_at": "soon"}),
        ("later", None, "later"),
    ],
)  # fmt: skip
def test_a_task_is_put_right_and_loses_nothing(
    tmp_path: Path, task: Any, fields: Any, left: Any
) -> None:
    entry = only(tmp_path, changed(type="task", task_metadata=task))
    assert entry.fields.get("task_metadata") == fields
    assert entry.fields.get("metadata") == (None if left is None else {"task_metadata": left})
    assert entry.repairs


def test_of_equal_ids_the_first_is_kept_across_all_files(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "a", core_memories=changed(content="first"), learnings=GOOD + b"\n" + GOOD
    )
    first, second, third = read(folder)
    assert first.fields["content"] == "first"
    assert [second.place, third.place] == ["learnings.jsonl: line 1", "learnings.jsonl: line 2"]
    assert f"earlier line has the id '{UUID.format(7)}' too" in (second.error or "")
    assert third.error == second.error


def test_an_id_whose_first_line_is_of_no_use_is_taken_from_the_next(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", learnings=changed(content=None).encode() + b"\n" + GOOD)
    bad, good = read(folder)
    assert bad.error is not None
    assert good.fields == FIELDS


@pytest.mark.parametrize(
    ("index", "note"),
    [
        ("{", "index.json is not JSON"),
        ("[]", "index.json has no statistics.by_type"),
        ('{"statistics": {"by_type": {"learning": 2}}}', "index.json is of version None"),
        (
            '{"version": "1.0.0", "statistics": {"by_type": {"learning": 2}}}',
            "index.json counts 2 of type learning, but the files have 1: using the files",
        ),
        ("[" * 100_000, "index.json is nested too deeply"),
        ("\ud800", "index.json is not JSON: it is not UTF-8"),
        (" " * 5_000_000, "index.json is longer than 4,000,000 bytes"),
    ],
    ids=range(7),
)
def test_a_wrong_index_is_told_and_changes_nothing(tmp_path: Path, index: str, note: str) -> None:
    folder = folder_of(tmp_path / "folder")
    (folder / "index.json").write_bytes(index.encode(errors="surrogatepass"))
    entry = only(tmp_path, GOOD)
    assert entry.fields == FIELDS
    assert note in entry.repairs[0]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_an_index_that_is_no_file_changes_nothing(tmp_path: Path, kind: str) -> None:
    folder = folder_of(tmp_path / "folder")
    if kind == "folder":
        (folder / "index.json").mkdir()
    else:
        (folder / "index.json").symlink_to(tmp_path / "victim")
    assert only(tmp_path, GOOD).fields == FIELDS


# Backups ------------------------------------------------------------------------------------


def back_up(folder: Path, name: str, *lines: str, stamp: str = ".20260101_100000") -> str:
    (folder / ".backup").mkdir(exist_ok=True)
    path = folder / ".backup" / f"{name}.jsonl.backup{stamp}"
    path.write_text("\n".join(lines))
    return path.relative_to(folder).as_posix()


@pytest.mark.parametrize("raw", [b"\x00" * 900, b"\xff\xfe{\x00", b"<html>\n</html>"])
def test_a_file_that_cannot_be_read_comes_from_its_newest_backup(
    tmp_path: Path, raw: bytes
) -> None:
    folder = folder_of(tmp_path / "a", learnings=raw)
    back_up(folder, "learnings", changed(content="oldest"), stamp="")
    os.utime(folder / ".backup" / "learnings.jsonl.backup", (0, 0))
    back_up(folder, "learnings", changed(content="old"), stamp=".20250101_100000")
    newest = back_up(folder, "learnings", changed(content="newest"), changed(id="other"))
    (folder / ".backup" / "learnings.jsonl.backup.20270101_000000").write_bytes(b"\xff broken")
    first, second = read(folder)
    assert (first.fields["content"], first.place) == ("newest", f"{newest}: line 1")
    assert first.repairs == (f"learnings.jsonl cannot be read: imported {newest} instead",)
    assert second.repairs == ()


@pytest.mark.parametrize(
    ("count", "is_taken"), [(None, True), (2, True), (0, False)], ids=["no index", "2", "0"]
)
def test_an_empty_file_comes_from_its_backup_unless_the_index_says_that_it_is_empty(
    tmp_path: Path, count: int | None, is_taken: bool
) -> None:
    folder = folder_of(tmp_path / "a", learnings=b"\n")
    backup = back_up(folder, "learnings", changed(content="kept"))
    if count is not None:
        index = {"version": "1.0.0", "statistics": {"by_type": {"learning": count}}}
        (folder / "index.json").write_text(json.dumps(index))
    for source in (folder, folder / "learnings.jsonl"):
        (entry,) = read(source)
        if is_taken:
            assert entry.fields["content"] == "kept"
            assert entry.repairs[0] == f"learnings.jsonl is empty: imported {backup} instead"
        else:
            advice = f"{backup} was not read: import it separately if you want it"
            told = f"is empty, and index.json counts none in it: {advice}"
            assert entry == Entry(Section.AGENT, {}, "learnings.jsonl", repairs=(told,))


def test_a_backup_beside_an_empty_file_is_one_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", core_memories=b"")
    (folder / "core_memories.jsonl.backup").write_text(changed(content="kept", type="core"))
    for source in (folder, folder / "core_memories.jsonl"):
        (entry,) = read(source)
        assert entry.fields["content"] == "kept"
        message = "core_memories.jsonl is empty: imported core_memories.jsonl.backup instead"
        assert entry.repairs == (message,)


def test_an_empty_file_is_known_by_its_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", tasks=b"\n")
    path = folder / "tasks.jsonl"
    assert CODEC.recognises(Sample(path, b"\n", is_folder=False))
    assert not CODEC.recognises(Sample(folder / "any.jsonl", b"", is_folder=False))
    assert read(path) == []


def test_an_empty_file_whose_memories_are_nowhere_is_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", learnings=b"")
    index = {"version": "1.0.0", "statistics": {"by_type": {"learning": 3}}}
    (folder / "index.json").write_text(json.dumps(index))
    (entry,) = read(folder)
    assert entry.error == "is empty: index.json counts 3 memories in it"


def test_a_file_that_is_missing_comes_from_its_newest_backup(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a")
    newest = back_up(folder, "learning_memories", GOOD.decode())
    (entry,) = read(folder)
    assert entry.fields == FIELDS
    assert entry.repairs == (f"learnings.jsonl is missing: imported {newest} instead",)


def test_a_folder_with_nothing_but_backups_is_read(tmp_path: Path) -> None:
    back_up(tmp_path, "learnings", GOOD.decode())
    assert CODEC.recognises(Sample(tmp_path, b"", is_folder=True))
    (entry,) = read(tmp_path)
    assert entry.fields == FIELDS


def test_a_file_that_the_index_counts_and_nobody_has_is_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a")
    (folder / "index.json").write_text('{"version":"1.0.0","statistics":{"by_type":{"task":3}}}')
    (entry,) = read(folder)
    assert entry.place == "tasks.jsonl"
    assert "index.json counts 3 memories in it, and .backup has no copy" in (entry.error or "")


def test_a_file_without_a_line_and_without_backup_is_told_once(tmp_path: Path) -> None:
    (entry,) = read(folder_of(tmp_path / "a", learnings=b"\xff\n" * 1000))
    assert entry.place == "learnings.jsonl"
    assert "no readable line" in (entry.error or "")


def test_a_broken_line_comes_from_the_newest_backup_that_has_its_id(tmp_path: Path) -> None:
    cut = changed(content="now")[:80]
    folder = folder_of(tmp_path / "a", learnings=f"{cut}\n{changed(id='x')}\n" + '{"id": "lost"')
    back_up(folder, "learnings", changed(content="old"), stamp=".20250101_100000")
    newest = back_up(folder, "learnings", changed(content="newest"))
    back_up(folder, "learnings", changed(id="other"), stamp=".20260202_100000")
    good, lost, restored = read(folder)
    assert good.fields["id"] == "x"
    assert "is not JSON" in (lost.error or "")
    assert lost.place == "learnings.jsonl: line 3"
    assert restored.fields == {**FIELDS, "content": "newest"}
    assert restored.place == "learnings.jsonl: line 1"
    (repair,) = restored.repairs
    assert repair.startswith("the line is not JSON")
    assert repair.endswith(f": using {newest}")


def test_a_broken_line_whose_memory_is_there_as_well_is_not_restored(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "a", learnings=changed(content="cut")[:80].encode() + b"\n" + GOOD
    )
    back_up(folder, "learnings", changed(content="old"))
    (entry,) = read(folder)
    assert entry.fields == FIELDS


def test_backups_that_are_links_are_none(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a")
    (tmp_path / "secret").write_bytes(GOOD)
    (folder / ".backup").mkdir()
    (folder / ".backup" / "learnings.jsonl.backup.20260101_100000").symlink_to(tmp_path / "secret")
    assert read(folder) == []


# Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"content": "cut o', "is not JSON"),
        (GOOD + GOOD, "is not JSON"),
        (b"null", "not an object"),
        (b"[]", "not an object"),
        (b'{"content":"x","access_count":NaN}', "is not JSON"),
        (b'{"content":"x","access_count":Infinity}', "is not JSON"),
        (b'{"content":"x","metadata":{"n":1e999}}', "1e999"),
        (b'{"content":"x","n":' + b"7" * 5000 + b"}", ""),
        (b'{"content":"a","content":"b"}', "twice"),
        (b'{"content":"x","metadata":' + b"[" * 100_000, "nested too deep"),
        (b'{"content":"\xff"}', "UTF-8"),
        (b'{"content":"\x00"}', "is not JSON"),
        (b"{}", "content: is missing"),
        (b'{"content":"' + b"x" * 2_000_000 + b'"}', "is longer than 1,000,000 bytes"),
    ],
    ids=range(14),
)
def test_a_bad_line_is_told_and_the_others_are_read(
    tmp_path: Path, line: bytes, fault: str
) -> None:
    good = changed(id="last").encode()
    folder = folder_of(tmp_path / "a", learnings=GOOD + b"\r\n" + line + b"\n" + good)
    entries = read(folder)
    assert [entry.place for entry in entries] == [
        f"learnings.jsonl: line {number}" for number in (1, 2, 3)
    ]
    assert [entry.error is None for entry in entries] == [True, False, True]
    assert fault in (entries[1].error or "")
    assert len(entries[1].error or "") < 300


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x85"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, letter: str) -> None:
    line = json.dumps({**WHOLE, "content": f"one{letter}two"}, ensure_ascii=False)
    assert only(tmp_path, line).fields["content"] == f"one{letter}two"


def test_a_mark_blank_lines_and_other_line_ends_do_not_matter(tmp_path: Path) -> None:
    assert only(tmp_path, b"\xef\xbb\xbf" + GOOD + b"\r", b"", b" \r", b"") == Entry(
        Section.MEMORY, FIELDS, "learnings.jsonl: line 1"
    )


def test_half_a_surrogate_pair_is_passed_on_to_be_refused(tmp_path: Path) -> None:
    entry = only(tmp_path, changed(content="\ud800", id="\udfff"))
    assert (entry.fields["content"], entry.fields["id"]) == ("\ud800", "\udfff")


def test_a_line_without_end_takes_no_room(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a")
    for name in ("learnings.jsonl", "agent_memory.jsonl", "beyond_limits.jsonl"):
        with (folder / name).open("wb") as file:
            file.write(b'{"id":"x","content":"')
            file.truncate(60_000_000)
    tracemalloc.start()
    try:
        entries = read(folder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [entry.error is None for entry in entries] == [False, False, False]
    assert peak < 45_000_000


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", learnings=GOOD + b"\n")
    reading = CODEC.read(folder)
    (folder / "core_memories.jsonl").write_text("\n".join(changed(id=str(n)) for n in range(9)))
    next(reading)
    with (folder / "core_memories.jsonl").open("a") as file:
        file.write("\n" + changed(id="new"))
    with pytest.raises(ValidationError, match=r"core_memories\.jsonl: changed while it was read"):
        list(reading)


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a")
    (folder / "learnings.jsonl").mkdir()
    with pytest.raises(StorageUnavailable, match=r"learnings\.jsonl"):
        read(folder)


def test_a_pipe_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a")
    os.mkfifo(folder / "learnings.jsonl")
    with pytest.raises(ValidationError, match=r"learnings\.jsonl: is not a file"):
        read(folder)


def test_what_is_not_there_or_is_no_folder_of_e_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="missing"):
        read(tmp_path / "missing")
    with pytest.raises(ValidationError, match=r"has none of core_memories\.jsonl"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["learnings.jsonl", "agent_memory.jsonl", "beyond_limits.jsonl"])
def test_links_in_the_folder_are_not_followed(tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path / "a")
    (tmp_path / "secret").write_bytes(GOOD)
    (folder / name).symlink_to(tmp_path / "secret")
    (entry,) = read(folder)
    assert entry.place == name
    assert "symbolic link" in (entry.error or "")


def test_an_archive_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = folder_of(tmp_path / "a"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tasks_2025_Q4.jsonl").write_bytes(GOOD)
    (folder / "archive").symlink_to(elsewhere)
    assert read(folder) == []
    (folder / "archive").unlink()
    (folder / "archive").mkdir()
    (folder / "archive" / "2025").symlink_to(elsewhere)
    assert read(folder) == []


def test_a_folder_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a")
    folder.chmod(0)
    try:
        if os.access(folder, os.R_OK):
            pytest.skip("root may read everything")
        with pytest.raises(StorageUnavailable, match="cannot be read"):
            read(folder)
    finally:
        folder.chmod(0o700)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(
        st.sampled_from([*WHOLE, "task_metadata", "metadata", "agent_memory", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
            | st.sampled_from(["task", "blocked", "2026-01-01", "0001-01-01T00:00:00+05:00"]),
            lambda inner: st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["status", "completed_at", "blockers", "metadata", "accessed"]),
                inner,
            ),
            max_leaves=5,
        ),
    )
)  # fmt: skip
def test_whatever_a_line_tells_it_is_a_memory_or_a_fault(
    tmp_path_factory: pytest.TempPathFactory, told: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    line = json.dumps(told)
    (folder / "learnings.jsonl").write_text(line)
    (entry,) = read(folder)
    json.dumps(entry.fields, allow_nan=False)
    assert (entry.error is None) == bool(entry.fields)
    if entry.error is None:
        assert entry.fields["content"] == told["content"]
        metadata = entry.fields.get("metadata", {})
        if told.get("x") is not None:
            assert metadata["x"] == told["x"]
    shutil.rmtree(folder)


# Recognising --------------------------------------------------------------------------------


def recognises(head: str) -> bool:
    return CODEC.recognises(Sample(Path("x.jsonl"), head.encode(), is_folder=False))


def test_a_file_is_recognised_by_its_first_object() -> None:
    assert recognises(EXAMPLE)
    assert recognises("\ufeff\r\n" + EXAMPLE)
    assert recognises('{"id": "broken\n' + EXAMPLE)
    assert recognises(EXAMPLE[: len(EXAMPLE) - 50])
    assert not recognises('{"content": "x", "type": "note", "created_at": "2026-01-01"}')
    assert not recognises('{"content": "x", "type": ["core"], "created_at": "2026-01-01"}')
    assert not recognises('{"type": "core", "content": "x"}')
    assert not recognises('{"content": "x"}\n' + EXAMPLE)
    assert not recognises("[\n" + EXAMPLE.splitlines()[0] + "\n]")
    assert not recognises("format: agent-memory store\n")
    assert not recognises("")


def test_a_folder_is_recognised_by_its_files(tmp_path: Path) -> None:
    sample = Sample(tmp_path, b"", is_folder=True)
    (tmp_path / "index.json").touch()
    assert not CODEC.recognises(sample)
    (tmp_path / "tasks.jsonl").touch()
    assert CODEC.recognises(sample)


def test_reading_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, made(), made(1, archived=True))
    before = files(tmp_path, backups=True)
    assert len(read(tmp_path)) == 2
    assert files(tmp_path, backups=True) == before
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700

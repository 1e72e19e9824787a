"""The commands that take memories out and in: export, import."""

from __future__ import annotations

import json
import random
import re
import resource
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAM, Cli, Clock, Visitor

from agent_memory import AgentMemory
from agent_memory.cli import run
from agent_memory.cli.render import progress_bar
from agent_memory.formats import registry as codecs

pytestmark = pytest.mark.usefixtures("temporary", "as_bob")
FOLDERS = [name for name in codecs.names() if codecs.codec(name).is_folder]


@pytest.fixture
def stored(root: Path) -> Path:
    """Give bob some memories; return his file."""
    with AgentMemory("bob", root=root, session_id="session-1") as memory:
        memory.store("Prefer PostgreSQL", id="a", category="preference", tags=["database"])
        memory.store("two\nlines \u2028 “signs” \U0001f600", id="b", metadata={"sure": 0.5})
        memory.archive(memory.store("an old habit", id="c"))
        return memory.path


def contents(root: Path, agent: str = "bob") -> dict[str, str]:
    """Return what an agent's file holds, archived memories too."""
    with AgentMemory(agent, root=root, create=False) as memory:
        assert memory.check().problems == []
        found = memory.list_recent(10_000) + memory.list_recent(10, filters={"archived": True})
    return {one.id: one.content for one in found}


def lines(*items: dict[str, Any]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def saved(folder: Path, text: str, name: str = "in") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# export -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", codecs.names())
@pytest.mark.usefixtures("stored")
def test_every_format_is_written_and_read_again(
    cli: Cli, root: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "out"
    done = cli("export", "--format", name, "--output", str(path))
    assert done.code == 0, done.err
    assert done.out.endswith(f" to {path}\n")
    assert " memories" in done.out
    wanted = 0o700 if name in FOLDERS else 0o600
    assert stat.S_IMODE(path.stat().st_mode) == wanted
    took = cli("--agent", "alice", "import", str(path), "--json")
    assert took.code == 0, took.err
    assert (took.data["refused"], took.data["dry_run"]) == (0, False)
    if name in ("metadata", "settings"):
        assert took.data["new"] == 0
    elif name == "scratchpad":
        assert contents(root, "alice").keys() == {"a", "b"}
    else:
        assert took.data["new"] == 3
        assert contents(root, "alice") == contents(root)


@pytest.mark.parametrize("name", [name for name in codecs.names() if name not in FOLDERS])
def test_stdout_gets_the_bytes_and_nothing_else(stored: Path, tmp_path: Path, name: str) -> None:
    words = [PROGRAM, "--db", str(stored), "export", "-f", name]
    if name == "sqlite":
        subprocess.run([*words, "--output", str(tmp_path / "out")], check=True)
        done = subprocess.run(words, capture_output=True, check=True)
        assert done.stdout == (tmp_path / "out").read_bytes()
        return
    done = subprocess.run(words, capture_output=True, check=True)
    again = subprocess.run([*words, "-o", "-"], capture_output=True, check=True)
    subprocess.run([*words, "--output", str(tmp_path / "out")], check=True)
    assert done.stdout == again.stdout == (tmp_path / "out").read_bytes()
    assert len(done.stdout) > 50
    notes = done.stderr.decode().splitlines()
    assert [line for line in notes if not line.startswith("note: ")] == []


@pytest.mark.usefixtures("stored")
def test_the_whole_store_is_the_default(
    cli: Cli,
) -> None:
    assert cli("export").out.startswith("format: agent-memory store\nversion: 1\nagent:\n")


def test_a_memory_is_moved_to_another_root(cli: Cli, tmp_path: Path) -> None:
    cli("store", "the oven is broken")
    place = str(tmp_path / "there")
    assert cli("move", "--to", place).out.startswith("moved 1 memory of bob to ")
    assert contents(tmp_path / "there") == contents(tmp_path / "root")
    again = cli("move", "--to", place)
    assert again.code == 4
    assert "already" in again.err


def test_a_move_names_what_stays_behind_before_it_says_to_stop(
    cli: Cli, root: Path, tmp_path: Path, visitor: Visitor
) -> None:
    cli("store", "the oven is broken")
    visitor(root / "bob" / "memories.db", "CREATE TABLE mine (x)")
    _, note, stop = cli("move", "--to", str(tmp_path / "there")).out.splitlines()
    assert note.startswith("note: ")
    assert "(mine) were not moved (`backup` here" in note
    assert stop.endswith("is unchanged: stop using it")


@pytest.mark.usefixtures("stored")
def test_the_report_of_an_export_is_json(cli: Cli, tmp_path: Path) -> None:
    done = cli("export", "--output", str(tmp_path / "out"), "--json")
    assert done.data == {
        "path": str(tmp_path / "out"), "format": "store", "memory_count": 3, "notes": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    "words", [["--format", "directory"], ["--json"], ["--format", "csv"], ["--as-of", "soon"]]
)
@pytest.mark.usefixtures("stored")
def test_wrong_usage_of_export_is_exit_code_2(cli: Cli, words: list[str]) -> None:
    done = cli("export", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err != ""


def test_a_reader_that_goes_away_is_no_error(root: Path, stored: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store_many([{"content": "x" * 5_000} for _ in range(100)])
    program = f"'{PROGRAM}' --db '{stored}' export --format jsonl"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{program} | head -n 1"], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert json.loads(done.stdout)["id"] == "a"


@pytest.mark.usefixtures("stored")
def test_what_is_there_is_replaced_with_force_alone(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path, "precious", "out")
    done = cli("export", "--output", str(path))
    assert (done.code, done.out) == (4, "")
    assert "exists" in done.err
    assert path.read_text() == "precious"
    assert cli("export", "--output", str(path), "--force").code == 0
    assert path.read_text().startswith("format: agent-memory store")


@pytest.mark.parametrize("place", ["missing/out", "folder", "root/bob/memories.db"])
@pytest.mark.usefixtures("stored")
def test_a_place_that_cannot_hold_it_is_exit_code_4(
    cli: Cli, root: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "folder").mkdir()
    done = cli("export", "--output", str(tmp_path / place), "--force")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("Error: path: ")
    assert len(contents(root)) == 3


@pytest.mark.usefixtures("stored")
def test_as_of_writes_what_was_there(
    cli: Cli,
) -> None:
    assert cli("export", "--format", "jsonl", "--as-of", "2020-01-01").out == ""
    assert cli("export", "--format", "jsonl", "--as-of", "2020-01-01").code == 0
    assert cli("export", "--format", "jsonl").out.count("\n") == 3


def test_an_agent_without_memories_has_nothing_to_export(cli: Cli, root: Path) -> None:
    done = cli("export")
    assert (done.code, done.out) == (5, "")
    assert "no memories yet" in done.err
    assert not root.exists()


def test_a_full_disk_leaves_no_half_file(root: Path, stored: Path, tmp_path: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store_many([{"content": "x" * 900} for _ in range(200)])
    (tmp_path / "out").mkdir()

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))

    for name in codecs.names():
        # Small however much is stored, or of many small files.
        if name in ("scratchpad", "metadata", "settings", "markdown"):
            continue
        words = [PROGRAM, "--db", str(stored), "export", "-f", name, "-o", str(tmp_path / "out/it")]
        done = subprocess.run(words, capture_output=True, text=True, preexec_fn=little_room)
        assert (done.returncode, done.stdout) == (5, ""), done.stderr
        assert done.stderr.startswith("Error: ")
        assert list((tmp_path / "out").iterdir()) == []


# import -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["store", "json", "jsonl", "record-json", "backup", "sqlite"])
@pytest.mark.usefixtures("stored")
def test_what_one_agent_writes_to_a_pipe_another_takes_in(root: Path, name: str) -> None:
    start = f"'{PROGRAM}' --root '{root}'"
    pipe = f"{start} --agent bob export -f {name} 2>/dev/null | {start} --agent alice import -"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", pipe], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "3 new" in done.stdout
    assert contents(root, "alice") == contents(root)


def test_an_agent_without_memories_gets_its_first_ones(
    cli: Cli, root: Path, tmp_path: Path
) -> None:
    path = saved(tmp_path, lines({"content": "one", "id": "a"}))

    dry = cli("import", str(path), "--dry-run")
    assert dry.code == 0, dry.err
    assert dry.out == "jsonl: 1 new (nothing was changed)\n"
    assert not (root / "bob").exists()
    done = cli("import", str(path))
    assert (done.code, done.out, done.err) == (0, "jsonl: 1 new\n", "")
    assert contents(root) == {"a": "one"}


@pytest.mark.parametrize("through", ["file", "stdin"])
@pytest.mark.parametrize(
    "text", ["of no format", lines({"content": "one", "id": "a"}, {"content": ""})]
)
def test_an_import_that_is_refused_makes_no_agent(
    cli: Cli, root: Path, tmp_path: Path, text: str, through: str
) -> None:
    path = "-" if through == "stdin" else str(saved(tmp_path, text))
    elsewhere = tmp_path / "ann.db"
    for words in (["--agent", "ann"], ["--db", str(elsewhere)]):
        assert cli("import", path, *words, input=text).code == 4
        assert cli("import", str(tmp_path / "missing"), *words).code == 4
    assert not (root / "ann").exists()
    assert not elsewhere.exists()


def test_a_first_import_is_of_one_session(cli: Cli, root: Path, tmp_path: Path) -> None:
    cli("import", str(saved(tmp_path, lines({"content": "one", "id": "a"}))))
    with AgentMemory("bob", root=root, create=False) as memory:
        (session_id,) = {entry.session_id for entry in memory.history()}
        assert [each.id for each in memory.list_recent(filters={"session_id": session_id})] == ["a"]


@pytest.mark.parametrize(
    ("on_conflict", "says", "content"),
    [
        ("skip", "1 new, 1 kept as they were", "Prefer PostgreSQL"),
        ("replace", "1 new, 1 changed", "Prefer SQLite"),
        ("newer", "1 new, 1 changed", "Prefer SQLite"),
        ("keep-both", "2 new", "Prefer PostgreSQL"),
    ],
)
@pytest.mark.usefixtures("stored")
def test_conflicts_end_as_the_option_says(
    cli: Cli, root: Path, tmp_path: Path, on_conflict: str, says: str, content: str
) -> None:
    later = {"content": "Prefer SQLite", "id": "a", "updated_at": "2099-01-01T00:00:00Z"}
    path = saved(tmp_path, lines(later, {"content": "new", "id": "d"}))
    before = contents(root)
    dry = cli("import", str(path), "--on-conflict", on_conflict, "--dry-run")
    assert dry.out.startswith(f"jsonl: {says} (nothing was changed)\n")
    assert contents(root) == before
    done = cli("import", str(path), "--on-conflict", on_conflict)
    assert done.out.startswith(f"jsonl: {says}\n")
    assert contents(root)["a"] == content
    again = cli("import", str(path), "--on-conflict", on_conflict, "--json")
    assert (again.data["new"], again.data["changed"]) == (0, 0)
    listed = cli("backups", "--json").data["backups"]
    assert {it["reason"] for it in listed} == ({"import"} if "changed" in says else set())
    if "changed" in says:
        assert f"backup: {listed[-1]['path']}" in done.out


@pytest.mark.usefixtures("stored")
def test_what_is_wrong_is_named_and_nothing_is_taken(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = saved(tmp_path, lines({"content": "one"}, {"content": "x", "kind": "odd"}, {"id": "d"}))
    before = contents(root)
    done = cli("import", str(path))
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(f"Error: {path}: line 2: kind: ")
    assert "--skip-bad" in done.err
    assert contents(root) == before
    error = json.loads(cli("import", str(path), "--json").err)["error"]
    assert error["code"] == "VALIDATION_ERROR"
    assert [it["loc"] for it in error["details"]["errors"]] == [["line 2"], ["line 3"]]
    some = cli("import", str(path), "--skip-bad")
    assert some.code == 0
    first, *rest = some.out.splitlines()
    assert first == "jsonl: 1 new, 2 refused"
    assert [line.split(": ")[:2] for line in rest] == [["refused", "line 2"], ["refused", "line 3"]]


def test_many_faults_are_not_all_shown(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path, lines({"content": "fine"}, *({"content": ""} for _ in range(50))))
    done = cli("import", str(path), "--skip-bad")
    assert done.out.splitlines()[-1] == "and 30 more refused: --json lists them"
    assert len(done.out.splitlines()) == 22
    assert len(cli("import", str(path), "--skip-bad", "--json").data["refusals"]) == 50


# Found once: the error and the report name a temporary file, which nobody has heard of.
def test_an_error_of_stdin_is_named_so(cli: Cli) -> None:
    done = cli("import", "-", input=lines({"content": "one"}, {"content": ""}))
    assert (done.code, done.out) == (4, "")
    assert "line 2: content: " in done.err
    assert "temporary" not in done.err
    report = cli("import", "-", "--json", input=lines({"content": "one"}))
    assert "temporary" not in report.data["path"]


def test_what_comes_from_a_file_cannot_move_the_cursor(cli: Cli, tmp_path: Path) -> None:
    item = {"content": "x", "category": "\x1b[2J\x1b]0;gone\x07"}
    done = cli("import", str(saved(tmp_path, lines(item))), "--skip-bad")
    assert done.code == 0
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["missing"], 4, "no such file or folder"),
        (["folder"], 4, "is a folder without the files of any known format"),
        (["picture"], 4, "looks like a picture"),
        (["picture", "--format", "jsonl"], 4, "line 1"),
        (["picture", "--format", "sqlite"], 5, "is not a database"),
        (["picture", "--format", "csv"], 2, "csv"),
        (["picture", "--on-conflict", "overwrite"], 2, "overwrite"),
        ([], 2, "PATH"),
    ],
)
@pytest.mark.usefixtures("stored")
def test_what_cannot_be_imported_is_refused_with_the_reason(
    cli: Cli, root: Path, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    place = [str(tmp_path / words[0])] if words else []
    done = cli("import", *place, *words[1:])
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert len(contents(root)) == 3


def test_the_format_may_be_named(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path, lines({"content": "one", "id": "a"}, {"content": "two", "id": "b"}))
    assert cli("import", str(path)).out == "jsonl: 2 new\n"
    assert cli("import", str(path), "--format", "json").out == "json: 2 same\n"


@pytest.mark.usefixtures("stored")
def test_undo_takes_an_import_back(cli: Cli, root: Path, tmp_path: Path) -> None:
    before = contents(root)
    path = saved(tmp_path, lines({"content": "one"}, {"content": "changed", "id": "a"}))
    assert cli("import", str(path), "--on-conflict", "replace").code == 0
    assert len(contents(root)) == 4
    done = cli("undo")
    assert done.code == 0, done.err
    assert "import" in done.out
    assert contents(root) == before


@pytest.mark.usefixtures("stored")
def test_rejected_values_and_limits_are_exit_code_4(cli: Cli, root: Path, tmp_path: Path) -> None:
    before = contents(root)
    with AgentMemory("bob", root=root) as memory:
        memory.reject("my secret word")
        memory.configure(retention={"limits": {"core": {"max_memories": 1, "enforcement": "hard"}}})
    for items in (
        [{"content": "fine"}, {"content": "My SECRET word"}],
        [{"content": f"{n}", "kind": "core"} for n in range(2)],
    ):
        done = cli("import", str(saved(tmp_path, lines(*items))))
        assert (done.code, done.out) == (4, "")
        assert "secret" not in done.err.lower()
        assert contents(root) == before


def test_progress_is_shown_to_a_terminal_alone(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, lines(*({"content": f"memory {n}"} for n in range(1_200))))
    assert run(["--root", str(root), "import", str(path)]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert run(["--root", str(root), "--agent", "alice", "import", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out == "jsonl: 1,200 new\n"
    assert "importing" in err
    assert "1,000" in err or "100%" in err


def test_the_time_that_is_left_is_told_from_what_was_done_since_the_bar_began(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(datetime(2026, 1, 30, tzinfo=UTC))
    monkeypatch.setattr(time, "time", lambda: clock().timestamp())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar("importing") as move:
        clock.forward(seconds=60)  # reading
        for second in range(6):  # 100 a second: 400 more take four
            move(100 * second, 800)
            clock.forward(seconds=1)
        move(600, 800)
    assert re.search(r" 00:00:0[23]\b", capsys.readouterr().err.split("\r")[-1])


# Found once: an empty temporary folder is made where nothing needs one, and a kill leaves it.
def test_a_command_that_is_killed_took_all_in_or_nothing(
    root: Path, stored: Path, tmp_path: Path, temporary: Path
) -> None:
    items = [{"content": f"new {n} " + "y" * 200, "id": f"n{n}"} for n in range(2_500)]
    path = saved(tmp_path, lines(*items))
    before = contents(root)
    words = [PROGRAM, "--db", str(stored), "import", str(path)]
    begun = time.monotonic()
    assert subprocess.run(words, capture_output=True).returncode == 0
    took = time.monotonic() - begun
    assert len(contents(root)) == 2_503
    with AgentMemory("bob", root=root) as memory:
        memory.undo()
    chance = random.Random(9)
    for _ in range(5):
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as it:
            time.sleep(took * chance.random())
            it.kill()
        found = contents(root)
        assert found in (before, {**before, **{it["id"]: it["content"] for it in items}})
        if found != before:
            with AgentMemory("bob", root=root) as memory:
                memory.undo()
        assert list(temporary.iterdir()) == []
    assert subprocess.run(words, capture_output=True).returncode == 0
    assert len(contents(root)) == 2_503


def test_documented_memories_in_place_are_noticed_and_imported_as_it_is_said(
    cli: Cli, root: Path
) -> None:
    folder = root / "carl"
    folder.mkdir(parents=True)
    (folder / "scratchpad.yaml").write_text("memories:\n- {id: mem-001, content: Use tabs}\n")
    refused = cli("--agent", "carl", "info")
    assert refused.code == 5
    command = refused.err.partition("`")[2].partition("`")[0].split()
    assert command[-2:] == ["import", str(folder)]
    assert " ".join(command) in cli("agents").out
    done = cli(*command[1:])
    assert (done.code, done.out.splitlines()[0]) == (0, "scratchpad: 1 new")
    assert "Use tabs" in cli("--agent", "carl", "recent").out


def test_what_a_copy_of_the_file_has_of_what_was_erased_is_named(
    cli: Cli, root: Path, tmp_path: Path
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("walnut", id="q1")
        memory.backup(tmp_path / "copy.db")
        memory.erase("q1")
    assert "\nskipped: q1 was erased\n" in cli("import", str(tmp_path / "copy.db")).out


def test_one_user_leaves_with_all_that_is_theirs(cli: Cli, root: Path, tmp_path: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store_many(
            [{"content": "oak", "user_id": "alice"}, {"content": "elm", "user_id": "ben"}]
        )
    place = tmp_path / "alice.yaml"
    done = cli("export", "--user", "alice", "-o", str(place))
    assert (done.code, done.out) == (0, f"wrote 1 memory to {place}\n")
    assert "elm" not in place.read_text(encoding="utf-8")
    assert cli("--agent", "new", "import", str(place)).code == 0
    assert cli("export", "--run", "r1").code == 4

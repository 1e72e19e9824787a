"""The commands about copies of a whole file: backup, backups, restore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

from agent_memory import AgentMemory, AgentNotFound

pytestmark = pytest.mark.usefixtures("as_bob")


@pytest.fixture
def backup(root: Path) -> Path:
    """Make a backup of one memory, which is changed afterwards."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("the walnut plan", id="plan")
        made = memory.backup()
        memory.update("plan", content="the quartz plan")
        memory.store("the basalt plan", id="other")
    return made


def contents(root: Path) -> set[str]:
    with AgentMemory("bob", root=root, create=False) as memory:
        assert memory.check().problems == []
        return {it.content for it in memory.list_recent()}


BEFORE, AFTER = {"the walnut plan"}, {"the quartz plan", "the basalt plan"}


# Making and listing -----------------------------------------------------------------------------


def test_backups_are_listed_with_what_they_were_made_before(
    cli: Cli, backup: Path, tmp_path: Path
) -> None:
    entry = {"id": "plan", "content": "the marble plan"}
    (tmp_path / "one.jsonl").write_text(json.dumps(entry), encoding="utf-8")
    assert cli("import", str(tmp_path / "one.jsonl"), "--on-conflict", "replace").code == 0
    assert cli("erase", "other", "--yes").code in (0, 6)
    listed = cli("backups", "--json").data["backups"]
    assert [(it["reason"], it["memory_count"]) for it in listed] == [
        ("erase", 2), ("import", 2), (None, 1),
    ]  # fmt: skip
    assert [it["problem"] for it in listed] == [None] * 3
    assert listed[-1]["path"] == str(backup)
    lines = cli("backups").out.splitlines()
    assert lines[0].split() == ["made", "before", "with", "archived", "MB", "path"]
    assert [line.split()[2] for line in lines[1:]] == ["erase", "import", "-"]


def advice(root: Path) -> str:
    return (
        f"1 backup of it is in {root / 'bob' / 'backups'}:"
        f" `agent-memory --root {root} --agent bob restore latest` brings the newest back"
    )


@pytest.mark.usefixtures("backup")
def test_the_backups_of_a_file_that_is_gone_are_named(cli: Cli, root: Path) -> None:
    """Reading said that `store` creates the memories, and nothing of their backups."""
    file = root / "bob" / "memories.db"
    file.unlink()
    for command in (["search", "walnut"], ["recent"], ["info"]):
        done = cli(*command)
        assert (done.code, done.out) == (5, "")
        assert done.err.endswith(f"there is no {file}. {advice(root)}\n")
    assert cli("agents", "--json").data["agents"][0]["problem"] == advice(root)
    with pytest.raises(AgentNotFound, match="restore latest"):
        AgentMemory("bob", root=root, create=False)
    beside = cli("--db", str(file), "recent")
    assert (beside.code, advice(root) in beside.err) == (5, True)
    assert not file.exists()
    assert cli("restore", "latest", "--yes").code == 0
    assert contents(root) == BEFORE


@pytest.mark.parametrize("chosen", ["the agent", "the file"])
def test_the_backups_of_a_file_that_is_gone_are_listed(
    cli: Cli, root: Path, backup: Path, chosen: str
) -> None:
    """That is when one needs them, and it was refused for want of the file."""
    file = root / "bob" / "memories.db"
    file.unlink()
    words = ["backups"] if chosen == "the agent" else ["--db", str(file), "backups"]
    listed = cli(*words, "--json")
    assert (listed.code, listed.err) == (0, "")
    (entry,) = listed.data["backups"]
    assert (entry["path"], entry["memory_count"]) == (str(backup), 1)
    shown = cli(*words)
    assert (shown.code, str(backup) in shown.out) == (0, True)
    assert shown.err == f"note: {file} is gone. {advice(root)}\n"
    assert AgentMemory.backups_of(file)[0].path == str(backup)
    assert not file.exists()
    backup.unlink()
    assert cli(*words).code == 5


@pytest.mark.usefixtures("backup")
def test_a_file_that_begins_anew_beside_its_backups_says_so_once(
    cli: Cli, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It began without a word, and the memories were missed a day later."""
    file = root / "bob" / "memories.db"
    warning = f"{file} is new and empty. {advice(root)}"
    file.unlink()
    texts = ("the marble plan", "the granite plan")
    assert [cli("store", text).err for text in texts] == [f"{warning}\n", ""]
    assert contents(root) == {*texts}
    file.unlink()
    with AgentMemory("bob", root=root) as memory:
        memory.session({"user_id": "ann"}).store("the gneiss plan")
    assert contents(root) == {"the gneiss plan"}
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert said == [("WARNING", warning)]


def test_a_folder_that_does_not_exist_is_named(cli: Cli, backup: Path, tmp_path: Path) -> None:
    made = cli("backup", str(tmp_path / "safe" / "bob.db"))
    words = f"Error: destination: the directory '{tmp_path}/safe' does not exist\n"
    assert (made.code, made.err) == (4, words)
    assert contents(backup.parents[2]) == AFTER


def test_without_backups_it_says_so(cli: Cli, root: Path) -> None:
    AgentMemory("bob", root=root).close()
    assert cli("backups").out == "no backups\n"
    assert cli("backups", "--json").data == {"backups": []}


def test_a_damaged_backup_is_listed_as_such(cli: Cli, root: Path, backup: Path) -> None:
    backup.write_bytes(b"no database" * 100)
    (listed,) = cli("backups", "--json").data["backups"]
    assert listed["memory_count"] is None
    assert "not" in listed["problem"]
    assert listed["problem"] in cli("backups").out
    refused = cli("restore", str(backup), "--yes")
    assert (refused.code, refused.out) == (5, "")
    assert contents(root) == AFTER


def test_as_many_are_kept_as_the_setting_says(cli: Cli, root: Path, tmp_path: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the walnut plan", id="plan")

    def replace(number: int) -> Any:
        entry = {"id": "plan", "content": f"plan number {number}"}
        (tmp_path / "one.jsonl").write_text(json.dumps(entry), encoding="utf-8")
        words = ["import", str(tmp_path / "one.jsonl"), "--on-conflict", "replace", "--json"]
        return cli(*words).data["backup"]

    assert cli("configure", "backups_kept", "2").code == 0
    made = [replace(number) for number in range(3)]
    listed = [it["path"] for it in cli("backups", "--json").data["backups"]]
    assert listed == made[:0:-1]
    assert cli("configure", "backups_kept", "0").code == 0
    assert replace(3) is None
    assert [it["path"] for it in cli("backups", "--json").data["backups"]] == listed
    for wrong in ("-1", "many", "1001"):
        refused = cli("configure", "backups_kept", "--", wrong)
        assert refused.code == 4
        assert "backups_kept" in refused.err


# Restoring --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["name", "latest", "path", "a path of here"])
def test_a_backup_is_restored_and_what_was_there_is_kept(
    cli: Cli, root: Path, backup: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(backup.parent.parent)
    named = {
        "name": backup.name,
        "latest": "latest",
        "path": str(backup),
        "a path of here": f"backups/{backup.name}",
    }[how]
    done = cli("restore", named, "--yes", "--json")
    assert done.code == 0, done.err
    assert (done.data["memory_count"], done.data["backup"]) == (1, str(backup))
    assert contents(root) == BEFORE
    assert "the walnut plan" in cli("search", "plan").out
    assert [it["event"] for it in cli("history", "--json").data["history"]] == ["ADD"]
    # There is a way back from the restoring too.
    assert cli("restore", done.data["replaced"], "--yes").code == 0
    assert contents(root) == AFTER
    last = cli("undo")
    assert (last.code, last.out) == (4, "")
    # And not what was the last before the backup; it says how to go back.
    assert "`restore` the file it replaced" in last.err
    newest = cli("history", "--json").data["history"][0]
    assert cli("undo", "--change", str(newest["change_id"])).out.startswith("undid")


def test_restoring_says_what_it_did(cli: Cli, root: Path, backup: Path) -> None:
    assert cli("reject", "walnut").code == 0
    done = cli("restore", "latest", "--yes")
    assert done.out.startswith(f"restored 1 memory from {backup}; the previous file is {root}")
    assert "1 contain a rejected value" in done.out
    assert cli("store", "another walnut").code == 4


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["latest"], 2),  # nobody is there to say yes
        ([], 2),
        (["memories-20200101T000000000000Z.db"], 4),  # refused before it is asked
        (["/nowhere/at/all.db"], 4),
    ],
)
def test_a_restoring_that_cannot_be_done_changes_nothing(
    cli: Cli, root: Path, backup: Path, words: list[str], code: int
) -> None:
    done = cli("restore", *words)
    assert (done.code, done.out) == (code, "")
    assert done.err
    assert contents(root) == AFTER
    assert backup.exists()


@pytest.mark.usefixtures("backup")
def test_a_backup_that_does_not_exist_is_named_with_how_to_list_them(cli: Cli, root: Path) -> None:
    """It was an internal error about a file in the current folder."""
    done = cli("restore", "nope", "--json")
    error = json.loads(done.err)["error"]
    words = f"'nope' is neither a file nor a backup beside {root / 'bob' / 'memories.db'}"
    assert (done.code, error["code"]) == (4, "VALIDATION_ERROR")
    assert error["message"] == f"backup: {words}: `backups` lists the existing ones"


def test_a_damaged_backup_is_refused_before_it_is_asked(
    cli: Cli, root: Path, backup: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(backup.read_bytes().replace(b"the walnut plan", b"the basalt plan", 1))
    before = set(root.rglob("*"))
    refused = cli("restore", str(damaged))
    assert (refused.code, "is damaged" in refused.err) == (5, True), refused
    for words in (str(backup), "latest"):  # a yes is to a file, not to a word
        asked = cli("restore", words)
        assert (asked.code, "stdin is not a terminal" in asked.err) == (2, True), asked
        assert f"Replace {root / 'bob' / 'memories.db'} with {backup}?" in asked.err
    assert set(root.rglob("*")) == before
    assert contents(root) == AFTER


def test_without_a_backup_there_is_no_latest(cli: Cli, root: Path) -> None:
    AgentMemory("bob", root=root).close()
    done = cli("restore", "latest", "--yes")
    assert done.code == 4
    assert "no backup" in done.err


def test_the_backup_of_another_agent_is_refused(cli: Cli, root: Path, backup: Path) -> None:
    with AgentMemory("alice", root=root) as memory:
        memory.store("alice's plan")
        hers = memory.backup()
    done = cli("restore", str(hers), "--yes")
    assert done.code == 4
    assert "'alice'" in done.err
    assert contents(root) == AFTER
    assert backup.exists()


def test_a_missing_file_is_restored(cli: Cli, root: Path, backup: Path) -> None:
    for path in (root / "bob").glob("memories.db*"):
        path.unlink()
    done = cli("restore", "latest", "--yes", "--json")
    assert done.code == 0, done.err
    assert (done.data["backup"], done.data["replaced"]) == (str(backup), None)
    assert contents(root) == BEFORE


@pytest.mark.usefixtures("backup")
def test_a_backup_is_no_stream(cli: Cli) -> None:
    done = cli("backup", "-")
    assert (done.code, "give its path" in done.err) == (2, True)
    assert not Path("-").exists()


def test_a_database_is_restored_by_its_own_tools(cli: Cli) -> None:
    done = cli("--root", "postgresql://127.0.0.1:1/memories", "restore", "latest", "--yes")
    assert (done.code, "the database's own tools" in done.err) == (4, True)

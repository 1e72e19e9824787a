"""The program as a whole: help, JSON, exit codes, whose memory; and the commands about files."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin

import click
import pytest
from conftest import PROGRAM, Cli

from agent_memory import AgentConfig, AgentMemory, AgentNotFound
from agent_memory.cli import cli as group
from agent_memory.cli import run

CONTEXT = click.Context(group)
BY_NAME = {
    name: command
    for name in group.list_commands(CONTEXT)
    if (command := group.get_command(CONTEXT, name)) is not None
}
COMMANDS = sorted(BY_NAME)


def store(root: Path, *contents: str, agent: str = "bob") -> list[str]:
    with AgentMemory(agent, root=root) as memory:
        return memory.store_many([{"content": content} for content in contents])


def ruin_the_index(root: Path) -> None:
    """Delete part of the keyword index, as no program should, in a process of its own."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    )
    sql = "DELETE FROM memory_index_data WHERE id > 10"
    path = root / "bob" / "memories.db"
    subprocess.run([sys.executable, "-c", code, str(path), sql], check=True)


# Help, output, errors ---------------------------------------------------------------------------


def test_all_the_commands_of_the_design_are_there() -> None:
    wanted = "store search show update forget recent promote demote scratchpad context agents info"
    assert {*wanted.split(), "history", "backup", "check", "completion"} <= BY_NAME.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run([name, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Example" in out
    assert f" {name}" in out.partition("Example")[2]
    assert "agent-memory" in out.partition("Example")[2]
    assert max(map(len, out.splitlines())) <= 100
    options = [one for one in BY_NAME[name].params if isinstance(one, click.Option)]
    for option in options:
        assert option.hidden or option.opts[0] in out


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("store", "--category", "--outcome"), ("search", "--since", "--archived")],
)
def test_help_lists_common_options_first(cli: Cli, name: str, first: str, last: str) -> None:
    options = cli(name, "--help").out.partition("Options:")[2]
    assert 0 < options.index(first) < options.index(last) < options.index("--json")


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_the_programs_own_help_lists_commands_and_exit_codes(cli: Cli, word: str) -> None:
    done = cli(word)
    assert (done.code, done.err) == (0, "")
    assert [name for name in COMMANDS if f"  {name}" not in done.out] == []
    assert "Exit codes: 0 done" in done.out


def test_version_names_the_program_and_its_version(cli: Cli) -> None:
    assert cli("--version").out == "agent-memory, version 0.2.0\n"
    module = subprocess.run(
        [sys.executable, "-m", "agent_memory", "--version"], capture_output=True, text=True
    )
    assert module.stdout == "agent-memory, version 0.2.0\n"


KEYS = {
    "store": {"memory_id"},
    "search": {"results", "total_count", "search_metadata"},
    "show": {"id", "agent_id", "content", "category", "tags", "timestamp", "metadata", "version"},
    "recent": {"memories"},
    "update": {"id", "content", "version", "updated_at"},
    "promote": {"memory_id", "promoted", "evicted", "scratchpad_size"},
    "demote": {"memory_id", "demoted"},
    "scratchpad": {"agent_id", "last_updated", "max_size", "memories", "promoted"},
    "context": {"context"},
    "history": {"history"},
    "agents": {"agents"},
    "info": {"agent_id", "memory_count", "path", "schema_version", "stats", "config"},
    "check": {"ok", "path", "memory_count", "problems"},
    "events": {"events"},
    "stats": {"periods", "memory_count", "recalls", "gaps", "recommendations"},
    "backup": {"path"},
    "configure": {"scratchpad_max_size", "categories", "similarity_threshold"},
    "forget": {"deleted"},
    "migrate": {"plan", "status", "memories_processed", "embeddings_generated", "errors"},
    "rollback": {"rolled_back", "memory_count"},
    "embed": {"embedded"},
    "duplicates": {"groups"},
    "archive": {"memories"},
    "merge": {"memory", "forgotten"},
    "unarchive": {"memories"},
    "undo": {"verb", "change_ids", "memory_ids"},
    "tidy": {"dry_run", "archived", "kept", "backup"},
    "erase": {"ids", "memories", "changes", "found", "backups", "clean"},
    "reject": {"rejection", "holders"},
    "secrets": {"secrets"},
    "graph": {"entity", "relationships"},
    "add": set(),
    "review": {"reviews"},
    "delete-all": {"deleted"},
    "reset": {"deleted"},
    "export": {"path", "format", "memory_count", "notes"},
    "import": {"path", "format", "new", "changed", "same", "kept", "refused", "notes"},
    "move": {"agent_id", "source", "target", "memories", "changes", "rows", "written"},
    "backups": {"backups"},
    "restore": {"path", "backup", "memory_count", "replaced"},
    "guide": {"topics"},
    "doctor": {"agent_id", "path", "project", "hosts", "last", "memory", "problems"},
    "install": {"dry_run", "files", "next"},
    "uninstall": {"dry_run", "files", "next"},
}


NO_DATA = ("completion", "hook", "mcp", "ui")
"""Commands that print what is not ours to shape, or serve."""


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NO_DATA])
def test_json_is_the_same_envelope_wherever_the_option_stands(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    seen = []
    (chat := tmp_path / "chat.txt").write_text("Alice: I live in Oslo.", encoding="utf-8")
    ids = store(root, "a walnut", "another walnut")
    spare = store(root, "a pecan", "a cashew")
    with AgentMemory("bob", root=root) as memory:
        backup = memory.backup()
    for turn, one in enumerate(ids):
        words = {
            "store": ["a chestnut"], "search": ["walnut"], "show": [one], "promote": [one],
            "update": [one, "--content", "an almond"], "demote": [one], "forget": [one, "--yes"],
            "backup": [str(tmp_path / f"{turn}.db")],
            "migrate": ["--embedder", "wordllama", "--yes"], "rollback": ["--yes"],
            "merge": [one, spare[turn]],
            "archive": [one], "unarchive": [one], "erase": [one, "--yes"], "reject": ["hunter2"],
            "export": ["--output", str(tmp_path / f"{turn}.yaml")],
            "import": ["bench/notes.jsonl"], "move": ["--to", str(tmp_path / f"there-{turn}")],
            "restore": [str(backup), "--yes"], "graph": ["show"],
            "install": ["codex", "--dry-run"], "uninstall": ["cursor"],
            "add": [str(chat)], "reset": ["--yes"],
            "delete-all": ["--user", "alice", "--yes"],
        }.get(name, [])  # fmt: skip
        before, after = (["--json"], []) if turn else ([], ["--json"])
        code = 6 if name == "doctor" else 0  # it is installed nowhere
        assert run(["--root", str(root), "--agent", "bob", *before, name, *words, *after]) == code
        out, err = capsys.readouterr()
        assert err == ""
        seen.append(json.loads(out))
    for envelope in seen:
        assert envelope.keys() == {"success", "data", "metadata"}
        assert envelope["success"] is True
        times = {"timestamp", "processing_time_ms"}
        if name == "add":  # its envelope is C's own, whose data is a list
            assert times < envelope["metadata"].keys()
            assert isinstance(envelope["data"], list)
            continue
        assert envelope["metadata"].keys() == times
        assert KEYS[name] <= envelope["data"].keys()
        assert envelope["data"].keys() == seen[0]["data"].keys()


def test_every_command_that_prints_data_is_in_the_table_above() -> None:
    assert {*KEYS, *NO_DATA} == set(COMMANDS)


ERRORS = [
    pytest.param(["nonsense"], 2, "No such command", id="unknown command"),
    pytest.param(["recent", "--nonsense"], 2, "No such option", id="unknown option"),
    pytest.param(["show"], 2, "Missing argument", id="missing argument"),
    pytest.param(["show", "mem-unknown"], 3, "mem-unknown", id="show"),
    pytest.param(["update", "mem-unknown", "--content", "x"], 3, "mem-unknown", id="update"),
    pytest.param(["forget", "mem-unknown", "--yes"], 3, "mem-unknown", id="forget"),
    pytest.param(["promote", "mem-unknown"], 3, "mem-unknown", id="promote"),
    pytest.param(["demote", "mem-unknown"], 3, "mem-unknown", id="demote"),
    pytest.param(["history", "mem-unknown"], 3, "mem-unknown", id="history"),
    pytest.param(["store", " "], 4, "empty", id="blank content"),
    pytest.param(["--agent", "a/b", "recent"], 4, "a/b", id="bad agent id"),
    pytest.param(["--db", ":memory:", "recent"], 4, "give the path", id="no file"),
    pytest.param(["backup", "/missing/place/x.db"], 4, "does not exist", id="backup"),
    pytest.param(["--agent", "eve", "recent"], 5, "agents", id="unknown agent"),
    pytest.param(["--agent", "broken", "recent"], 5, "not a database", id="broken file"),
]


@pytest.fixture
def bob_and_a_broken_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    store(root, "a walnut")
    (root / "broken").mkdir()
    (root / "broken" / "memories.db").write_text("not a database, long enough to be looked at")


@pytest.mark.usefixtures("bob_and_a_broken_file")
@pytest.mark.parametrize(("words", "code", "says"), ERRORS)
def test_an_error_has_its_exit_code_a_reason_and_no_traceback(
    root: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    assert run(["--root", str(root), *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "Traceback" not in err
    assert err.count("Error: ") == 1


@pytest.mark.usefixtures("bob_and_a_broken_file")
@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["show", "mem-unknown"], 3, "MEMORY_NOT_FOUND"),
        (["store", " "], 4, "VALIDATION_ERROR"),
        (["--agent", "broken", "info"], 5, "INTERNAL_ERROR"),
        (["--agent", "", "info"], 2, "INVALID_SESSION"),
    ],
)
def test_the_real_program_reports_errors_as_json_on_stderr(
    cli: Cli, words: list[str], code: int, kind: str
) -> None:
    done = cli("--json", *words)
    assert (done.code, done.out) == (code, "")
    error = json.loads(done.err)["error"]
    assert error.keys() == {"code", "message", "details", "timestamp"}
    assert error["code"] == kind
    if kind == "VALIDATION_ERROR":
        assert error["details"]["errors"][0]["loc"] == ["content"]


@pytest.mark.usefixtures("bob_and_a_broken_file")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["recent", "--nope"], "--nope"),
        (["show"], "MEMORY_ID"),
        (["search", "x", "--limit", "0"], "--limit"),
        (["serch", "x"], "Did you mean `search`?"),
        (["reset"], "give --yes"),
    ],
)
def test_wrong_usage_is_told_as_json_too(cli: Cli, words: list[str], says: str) -> None:
    done = cli(*words, "--json") if words != ["serch", "x"] else cli("--json", *words)
    assert (done.code, done.out) == (2, "")
    error = json.loads(done.err)["error"]
    assert error.keys() == {"code", "message", "details", "timestamp"}
    assert error["code"] == "VALIDATION_ERROR"
    assert says in error["message"]


@pytest.mark.usefixtures("bob_and_a_broken_file")
def test_debug_shows_the_traceback(cli: Cli) -> None:
    done = cli("--debug", "show", "mem-unknown")
    assert done.code != 0
    assert "Traceback (most recent call last)" in done.err
    assert "MemoryNotFound" in done.err


def test_a_file_of_another_version_is_a_failure_of_its_own_kind(cli: Cli, root: Path) -> None:
    store(root, "a walnut")
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    )
    path = str(root / "bob" / "memories.db")
    for edit in ("UPDATE schema_migrations SET sha256 = 'x'", "DROP TRIGGER history_of_new"):
        subprocess.run([sys.executable, "-c", code, path, edit], check=True)
    done = cli("--agent", "bob", "recent")
    assert (done.code, done.out) == (1, "")
    assert "Traceback" not in done.err
    subprocess.run([sys.executable, "-c", code, path, "PRAGMA user_version = 99"], check=True)
    done = cli("--agent", "bob", "recent")
    assert done.code == 5
    assert "install a newer version of it" in done.err


# Whose memory -----------------------------------------------------------------------------------


WORDS = {
    "update": ["x", "--content", "y"],
    "forget": ["x", "--yes"],
    "erase": ["x", "--yes"],
    "merge": ["x", "y"],
    "restore": ["x", "--yes"],
    "graph": ["show"],
    "add": ["README.md"],
    "delete-all": ["--user", "x", "--yes"],
    "reset": ["--yes"],
    **{
        name: ["x"]
        for name in ("store", "show", "promote", "demote", "archive", "unarchive", "reject")
    },
    "import": ["bench/notes.jsonl"],
    "move": ["--to", "there"],
}
NEEDS_NO_AGENT = ("agents", "completion", "doctor", "guide", "hook", "install", "uninstall")
NEEDS_AN_AGENT = [name for name in COMMANDS if name not in NEEDS_NO_AGENT]


@pytest.mark.parametrize("name", NEEDS_AN_AGENT)
def test_without_an_agent_the_program_says_what_to_do(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["--root", str(root), name, *WORDS.get(name, [])]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--agent ID" in err
    assert "AGENT_MEMORY_AGENT" in err
    assert not root.exists()


MAKES_AN_AGENT = ("store", "add", "import", "restore", "mcp", "reject")


@pytest.mark.parametrize("name", [name for name in NEEDS_AN_AGENT if name not in MAKES_AN_AGENT])
def test_only_storing_makes_a_new_agent(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words = WORDS.get(name, [])
    for place in (["--agent", "eve"], ["--db", str(root / "eve.db")]):
        assert run(["--root", str(root), *place, name, *words]) == 5
        out, err = capsys.readouterr()
        assert out == ""
        assert "eve" in err
    assert not root.exists()


def test_the_environment_names_the_agent_and_the_root_and_options_come_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {**os.environ, "AGENT_MEMORY_ROOT": str(tmp_path / "env"), "AGENT_MEMORY_AGENT": "ann"}
    subprocess.run([PROGRAM, "store", "ann's"], env=env, check=True, capture_output=True)
    words = [PROGRAM, "--root", "~/mine", "--agent", "bob", "store", "bob's"]
    subprocess.run(words, env=env, check=True, capture_output=True)
    assert (tmp_path / "env" / "ann" / "memories.db").is_file()
    assert (Path.home() / "mine" / "bob" / "memories.db").is_file()
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(tmp_path / "env"))
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "ann")
    assert run(["recent"]) == 0
    assert "ann's" in capsys.readouterr().out


def test_a_new_file_is_of_the_environments_agent_and_an_old_one_of_its_own(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "mine.db")
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    assert cli("--db", path, "store", "a walnut").code == 0
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "eve")
    assert "a walnut" in cli("--db", path, "recent").out
    assert cli("--db", path, "info", "--json").data["agent_id"] == "bob"


def test_a_setting_that_does_not_exist_leaves_no_empty_agent(cli: Cli, root: Path) -> None:
    refused = cli("--agent", "new", "configure", "nope", "3")
    assert (refused.code, "no setting" in refused.err) == (4, True)
    assert not (root / "new").exists()


def test_db_names_a_file_anywhere(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "mine.db")
    assert cli("--db", path, "--agent", "bob", "store", "a walnut").code == 0
    assert "a walnut" in cli("--db", path, "search", "walnut").out
    assert cli("--db", path, "info", "--json").data["agent_id"] == "bob"
    other = cli("--db", path, "--agent", "eve", "recent")
    assert other.code == 4
    assert "'bob'" in other.err
    assert "'eve'" in other.err
    assert not root.exists()


# agents, info, check, backup, completion ----------------------------------------------------------


@pytest.mark.usefixtures("bob_and_a_broken_file")
def test_agents_lists_all_and_what_is_wrong(cli: Cli, root: Path) -> None:
    store(root, "one", "two", agent="ann")
    done = cli("agents")
    assert (done.code, done.err) == (0, "")
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["agent", "memories"], ["ann", "2"], ["bob", "1"], ["broken", "-"],
    ]  # fmt: skip
    listed = cli("agents", "--json").data["agents"]
    assert [agent["memory_count"] for agent in listed] == [2, 1, None]
    assert "not a database" in listed[2]["problem"]


@pytest.mark.parametrize(
    ("mistyped", "near"),
    [
        ("serch", "search"),
        ("list", "recent"),
        ("DELETE", "forget"),
        ("versoin", "--version"),
        ("approve", "review --approve"),
    ],
)
def test_a_command_that_there_is_not_is_told_with_the_nearest(
    cli: Cli, mistyped: str, near: str
) -> None:
    ran = cli(mistyped, "x")
    assert ran.code == 2
    assert f"No such command '{mistyped}'. Did you mean `{near}`?" in ran.err
    assert "Did you mean" not in cli("xyzzy").err


def test_options_of_all_commands_stand_after_the_command_too(cli: Cli, root: Path) -> None:
    """Everybody writes it so once."""
    memory_id = cli("store", "--agent", "ann", "the kestrel nests", "--json").data["memory_id"]
    assert (root / "ann" / "memories.db").exists()
    assert memory_id in cli("search", "kestrel", "--agent", "ann").out
    assert memory_id in cli("--agent", "bob", "recent", "--agent", "ann").out
    assert memory_id in cli("recent", "--db", str(root / "ann" / "memories.db")).out
    elsewhere = cli("recent", "--agent", "ann", "--root", str(root / "none"))
    assert (elsewhere.code, str(root / "none") in elsewhere.err) == (5, True)
    for words in ([], ["--json"], ["--envelope"]):
        ran = cli(*words, "--agent", "nobody", "recent", "--debug")
        assert (ran.code, "Traceback" in ran.err) == (5, True)
        told = ran.out if words == ["--envelope"] else ran.err
        assert ("AGENT_NOT_FOUND" in told) == bool(words)
    assert cli("graph", "show", "--agent", "ann").code == 0


def test_an_agent_that_there_is_not_has_a_code_of_its_own(cli: Cli, root: Path) -> None:
    ran = cli("--agent", "nobody", "--json", "search", "x")
    assert ran.code == 5
    assert json.loads(ran.err)["error"]["code"] == "AGENT_NOT_FOUND"
    with pytest.raises(AgentNotFound, match=r"nobody.* does not exist.*`agent-memory agents`"):
        AgentMemory("nobody", root=root, create=False)


@pytest.mark.parametrize(
    "words", [["", "-c", "note"], ["text", "--tag", "x" * 101], ["text", "--id", " "]]
)
def test_a_first_memory_that_is_refused_makes_no_agent(
    cli: Cli, root: Path, words: list[str]
) -> None:
    ran = cli("--agent", "new", "store", *words)
    assert ran.code == 4
    assert not (root / "new").exists()


def test_agents_of_an_empty_root_are_none(cli: Cli, root: Path) -> None:
    assert cli("agents").out == "no agents\n"
    assert cli("agents", "--json").data == {"agents": []}
    assert not root.exists()


def test_every_setting_is_shown_with_its_value_and_what_it_means(cli: Cli, root: Path) -> None:
    store(root, "walnut")
    cli("--agent", "bob", "configure", "categories", '["incident"]')
    shown = cli("--agent", "bob", "configure").out
    help_text = "".join(cli("configure", "--help").out.split())
    for name, field in AgentConfig.model_fields.items():
        (row,) = [line.split(maxsplit=2) for line in shown.splitlines() if line.startswith(name)]
        assert len(row) == 3, row
        assert "".join(row[2].split()) in help_text
        kinds = (field.annotation, *get_args(field.annotation))
        for literal in (kind for kind in kinds if get_origin(kind) is Literal):
            assert set(get_args(literal)) <= set(re.findall(r"\w+", row[2])), name
    assert '["incident"]' in shown
    assert "null" in shown
    assert "None" not in shown


def test_info_tells_the_figures(cli: Cli, root: Path) -> None:
    store(root, "one", "two")
    done = cli("--agent", "bob", "info")
    shown = {
        name: value.strip()
        for name, value in re.findall(r"^(  \w+|\w+)\b(.*)$", done.out, flags=re.MULTILINE)
    }
    assert (shown["agent_id"], shown["memory_count"]) == ("bob", "2")
    assert shown["path"] == str(root / "bob" / "memories.db")
    assert (shown["stats"], shown["  total_queries"]) == ("", "0")
    assert (shown["config"], shown["  scratchpad_max_size"]) == ("", "50")
    assert not set("{}[]") & set(done.out)


def test_check_finds_a_broken_index_and_repair_mends_it(cli: Cli, root: Path) -> None:
    store(root, *(f"walnut {n}" for n in range(50)))
    sound = cli("--agent", "bob", "check")
    assert (sound.code, sound.out) == (0, "50 memories, sound\n")
    ruin_the_index(root)
    found = cli("--agent", "bob", "check")
    assert found.code == 6
    assert "stale_keyword_index" in found.out
    assert found.out.endswith("50 memories, NOT sound\n")
    as_json = cli("--agent", "bob", "check", "--json")
    assert as_json.code == 6
    assert as_json.data["ok"] is False
    mended = cli("--agent", "bob", "check", "--repair")
    assert mended.code == 0
    assert "(repaired)" in mended.out
    assert cli("--agent", "bob", "check").out == "50 memories, sound\n"
    assert len(cli("--agent", "bob", "search", "walnut", "-n", "50").out.splitlines()) == 51


def test_backup_writes_a_private_copy_and_says_where(cli: Cli, root: Path, tmp_path: Path) -> None:
    store(root, "a walnut")
    place = tmp_path / "copy.db"
    assert cli("--agent", "bob", "backup", str(place)).out == f"{place}\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert "a walnut" in cli("--db", str(place), "recent").out
    again = cli("--agent", "bob", "backup", str(place))
    assert (again.code, again.out) == (4, "")
    assert "exists" in again.err
    assert cli("--agent", "bob", "backup", str(place), "--force").code == 0
    default = Path(cli("--agent", "bob", "backup", "--json").data["path"])
    assert default.parent == root / "bob" / "backups"
    assert default.is_file()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_the_shell_understands(cli: Cli, shell: str) -> None:
    done = cli("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "agent-memory" in done.out
    assert f"_AGENT_MEMORY_COMPLETE={shell}_complete" in done.out
    if shutil.which(shell):
        words = [shell, "-n"]
        parsed = subprocess.run(words, input=done.out, capture_output=True, text=True)
        assert (parsed.returncode, parsed.stderr) == (0, "")


def completed(words: str) -> set[str]:
    """Return what bash is told to complete the last of some words with."""
    env = {**os.environ, "_AGENT_MEMORY_COMPLETE": "bash_complete", "COMP_WORDS": words,
           "COMP_CWORD": str(len(words.split()) - (not words.endswith(" ")))}  # fmt: skip
    done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True)
    assert done.stderr == ""
    return set(done.stdout.splitlines())


def test_completion_completes_commands_and_options() -> None:
    assert completed("agent-memory sea") == {"plain,search"}
    assert "plain,--since" in completed("agent-memory search --s")


def test_completion_knows_agents_categories_formats_and_leaves_files_to_the_shell(
    root: Path,
) -> None:
    with AgentMemory("kestrel", root=root) as memory:
        memory.configure(categories=["recipe"])
    (no_agent := root / "k.e").mkdir()
    (no_agent / "memories.db").touch()
    program = f"agent-memory --root {root}"
    assert completed(f"{program} --agent k") == {"plain,kestrel"}
    assert completed(f"{program} search --agent k") == {"plain,kestrel"}
    assert completed(f"{program} --agent kestrel search -c re") == {"plain,recipe"}
    assert completed(f"{program} migrate --embedder word") == {"plain,wordllama"}
    assert completed(f"{program} --agent nobody store -c dec") == {"plain,decision"}
    assert "plain,store" in completed(f"{program} import --format s")
    for words in ("import ", "export -o x", "restore x", "backup x", "add x"):
        assert {line.partition(",")[0] for line in completed(f"{program} {words}")} == {"file"}
    assert not (root / "nobody").exists()


def test_completion_for_another_shell_is_refused(cli: Cli) -> None:
    done = cli("completion", "tcsh")
    assert (done.code, done.out) == (2, "")
    assert "bash" in done.err


def test_check_of_a_damaged_file_does_not_send_to_check(cli: Cli, root: Path) -> None:
    store(root, "a walnut")
    path = root / "bob" / "memories.db"
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 8192)
    done = cli("--agent", "bob", "check")
    assert (done.code, "is damaged: restore a backup" in done.out) == (6, True)
    assert "agent-memory check" not in done.out
    for words in (["recent"], ["recent", "--json"]):
        assert "`agent-memory check` reports what is damaged" in cli("--agent", "bob", *words).err
    wrapped = json.loads(cli("--envelope", "--agent", "bob", "recent").out)
    assert "`agent-memory check` reports what is damaged" in wrapped["error"]["message"]


def test_check_of_a_damaged_page_does_not_send_to_check(cli: Cli, root: Path) -> None:
    store(root, "a walnut")
    path = root / "bob" / "memories.db"
    with path.open("r+b") as file:
        file.seek(3 * 8192)
        file.write(b"\xff" * 8192)
    done = cli("--agent", "bob", "check")
    assert (done.code, "damaged_file" in done.out) == (6, True), done
    assert "agent-memory check" not in done.out

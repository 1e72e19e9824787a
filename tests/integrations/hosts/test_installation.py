"""Hosts' own files: what is registered in them, what stays, and how it is taken out again."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host_inputs import EVENTS, PROGRAM

from agent_memory import StorageUnavailable
from agent_memory.cli import run
from agent_memory.integrations.hosts.installation import Change, Installation, program, write
from agent_memory.integrations.hosts.json_text import JsonText
from agent_memory.integrations.hosts.project import project_of
from agent_memory.integrations.hosts.table import HOOK_TOOL, HOSTS, SERVER
from agent_memory.integrations.hosts.toml_text import TomlText

CLAUDE = """\
{
    "model": "opus",
    "hooks": {
        "PostToolUse": [
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "prettier --write"}]}
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "say done", "timeout": 5}]}]
    },
    "permissions": {"allow": ["Bash(git diff:*)"], "deny": []}
}
"""
CLAUDE_STATE = '{"numStartups":41,"mcpServers":{"github":{"type":"http","url":"https://x"}},"z":1}'
CODEX = """\
# my Codex
model = "gpt-5"   # the big one

[mcp_servers.docs]  # read often
command = "docs-mcp"
args = ["--stdio"]

# trust
[projects."/home/me/shop"]
trust_level = "trusted"
"""
GEMINI = """\
{
  // colours
  "ui": {"theme": "GitHub"},
  "mcpServers": {
    "git": {"command": "git-mcp"}, /* ours */
  },
  "hooks": {
    "BeforeTool": [{"matcher": "write_file", "hooks": [{"type": "command", "command": "lint"}]}],
  },
}
"""
CURSOR_HOOKS = '{\n\t"version": 1,\n\t"hooks": {\n\t\t"stop": [{"command": "./audit.sh"}]\n\t}\n}\n'
VSCODE = '{\r\n\t// servers\r\n\t"inputs": [],\r\n\t"servers": {}\r\n}\r\n'
REAL = {
    "claude-code": {".claude/settings.json": CLAUDE, ".claude.json": CLAUDE_STATE},
    "codex": {".codex/config.toml": CODEX},
    "gemini": {".gemini/settings.json": GEMINI},
    "cursor": {".cursor/hooks.json": CURSOR_HOOKS, ".cursor/mcp.json": "{}"},
    "claude-desktop": {".config/Claude/claude_desktop_config.json": '{"mcpServers": {}}'},
    "vscode": {".config/Code/User/mcp.json": VSCODE},
}
hosts = pytest.mark.parametrize("host", HOSTS)
Install = Callable[..., dict[str, Any]]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (folder := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    return folder


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Install:
    def invoke(*words: str, code: int = 0) -> dict[str, Any]:
        assert run([*words, "--json"]) == code
        out, err = capsys.readouterr()
        data: dict[str, Any] = json.loads(err)["error"] if code else json.loads(out)["data"]
        return data

    return invoke


def fill(home: Path, host: str) -> dict[Path, str]:
    """Put real settings into a home, and return the files with their texts."""
    texts = {home / name: text for name, text in REAL[host].items()}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o640)
    return texts


def words_of(host: str) -> list[str]:
    return [host, "--agent", "bob"] if host == "claude-desktop" else [host]


def parsed(text: str, path: Path) -> dict[str, Any]:
    return tomllib.loads(text) if path.suffix == ".toml" else JsonText(text, path.name).data()


def is_kept(before: str, now: str) -> bool:
    """Return whether all that stood in a text stands in another, in the same order."""
    letters = iter(now)
    return all(letter in letters for letter in re.sub(r"[\s,]", "", before))


def without_ours(data: Any, host: str) -> Any:
    """Return settings without this program, and without what is empty then."""
    if isinstance(data, dict):
        pairs = ((key, without_ours(value, host)) for key, value in data.items() if key != SERVER)
        return {key: value for key, value in pairs if value not in ({}, [], None)}
    if isinstance(data, list):
        ours = (f"hook {host} ", f'"tool": "{HOOK_TOOL}"')
        others = [each for each in data if not any(word in json.dumps(each) for word in ours)]
        return [without_ours(each, host) for each in others]
    return data


# What is written --------------------------------------------------------------------------------


@hosts
def test_what_is_there_stays_and_twice_changes_nothing(home: Path, cli: Install, host: str) -> None:
    texts = fill(home, host)
    first = cli("install", *words_of(host))
    assert first["next"] == list(HOSTS[host].advice)
    for path, before in texts.items():
        now = path.read_bytes().decode()
        assert now != before
        assert is_kept(before, now)
        assert without_ours(parsed(now, path), host) == without_ours(parsed(before, path), host)
        (change,) = (each for each in first["files"] if each["path"] == str(path))
        assert Path(change["backup"]).read_bytes().decode() == before
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    second = cli("install", *words_of(host))
    assert {each["action"] for each in second["files"]} == {"unchanged"}
    assert second["next"] == []
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == after


@hosts
def test_what_was_installed_is_taken_out_again(home: Path, cli: Install, host: str) -> None:
    texts = fill(home, host)
    cli("install", *words_of(host))
    cli("uninstall", host)
    for path, before in texts.items():
        after = path.read_bytes().decode() if path.exists() else "{}"
        assert SERVER not in after
        assert without_ours(parsed(after, path), host) == without_ours(parsed(before, path), host)
        if host in ("codex", "gemini") or path.name == "hooks.json":
            assert after.replace(",", "") == before.replace(",", "")


@hosts
def test_files_that_were_not_there_are_made_and_go_again(
    home: Path, cli: Install, host: str
) -> None:
    made = cli("install", *words_of(host))
    assert {each["action"] for each in made["files"]} == {"created"}
    for each in made["files"]:
        assert stat.S_IMODE(Path(each["path"]).stat().st_mode) == 0o600
    gone = cli("uninstall", host)
    assert {each["action"] for each in gone["files"]} <= {"deleted", "changed"}
    left = [
        path.read_text() for path in home.rglob("*") if path.is_file() and path.suffix != ".bak"
    ]
    assert [text for text in left if text.strip()] == []


@hosts
def test_a_dry_run_shows_the_diff_and_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    texts = fill(home, host)
    assert run(["install", *words_of(host), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "+++ " in out
    assert SERVER in out
    assert re.search(r"^would be (created|changed): ", out, re.MULTILINE)
    assert not re.search(r"^(created|changed): ", out, re.MULTILINE)
    assert out.endswith("nothing was changed\n")
    assert {path: path.read_bytes().decode() for path in texts} == texts
    assert sorted(path for path in home.rglob("*") if path.is_file()) == sorted(texts)


@pytest.mark.parametrize("host", EVENTS)
def test_each_hook_runs_the_program_by_its_absolute_path(
    home: Path, cli: Install, host: str
) -> None:
    cli("--root", str(home / "my memories"), "install", host, "--agent", "bob")
    hooks = {hook.event: hook.command for hook in Installation(HOSTS[host]).installed_hooks()}
    assert hooks.keys() == {event.name for event in HOSTS[host].events}
    commands = {name: command for name, command in hooks.items() if command}
    assert commands.keys() == {event.name for event in HOSTS[host].events if not event.by_server}
    assert program() == [PROGRAM]
    for name, command in commands.items():
        assert shlex.split(command)[:4] == [PROGRAM, "hook", host, name]
        done = subprocess.run(command, shell=True, input=b"{}", capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
    assert (home / "my memories" / "bob" / "hooks" / "log.jsonl").exists()
    server = Installation(HOSTS[host]).installed_server()
    assert server is not None
    assert server["args"] == ["--root", str(home / "my memories"), "mcp", "--agent", "bob"]


def test_the_forms_are_those_of_the_hosts(home: Path, cli: Install) -> None:
    for host in EVENTS:
        cli("install", host)
    claude = json.loads((home / ".claude/settings.json").read_text())["hooks"]["PostToolUse"][0]
    assert claude["hooks"][0].keys() == {"type", "command", "timeout", "async"}
    assert claude["hooks"][0]["timeout"] == 10
    gemini = json.loads((home / ".gemini/settings.json").read_text())["hooks"]["BeforeAgent"][0]
    assert gemini["hooks"][0]["timeout"] == 10_000
    cursor = json.loads((home / ".cursor/hooks.json").read_text())
    assert cursor["version"] == 1
    assert cursor["hooks"]["beforeSubmitPrompt"][0].keys() == {"command"}
    codex = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"][SERVER]
    assert codex == {"command": PROGRAM, "args": ["mcp", "--project", "."]}


# Where ------------------------------------------------------------------------------------------


def test_a_projects_settings_are_those_of_its_root(home: Path, cli: Install) -> None:
    shop = home.parent / "shop"
    (shop / "src").mkdir()
    os.chdir(shop / "src")
    made = cli("install", "claude-code", "--project")
    assert {each["path"] for each in made["files"]} == {
        str(shop / ".mcp.json"), str(shop / ".claude" / "settings.local.json")
    }  # fmt: skip
    assert list(home.iterdir()) == []
    assert cli("install", "claude-desktop", "--project", "--agent", "x", code=4)[
        "message"
    ].endswith("has no project settings")


def test_folders_that_were_moved_are_found(
    home: Path, cli: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    cli("install", "claude-code")
    cli("install", "codex")
    assert sorted(path.relative_to(home).as_posix() for path in home.rglob("*.*")) == [
        "claude/.claude.json", "claude/settings.json", "codex/config.toml", "codex/hooks.json"
    ]  # fmt: skip


def test_a_link_to_settings_elsewhere_stays_a_link(home: Path, cli: Install) -> None:
    (dotfiles := home / "dotfiles.json").write_text(CLAUDE)
    (home / ".claude").mkdir()
    (link := home / ".claude" / "settings.json").symlink_to(dotfiles)
    cli("install", "claude-code")
    assert link.is_symlink()
    assert SERVER in dotfiles.read_text()


def test_claude_desktop_needs_an_agent(home: Path, cli: Install) -> None:
    assert "--agent ID" in cli("install", "claude-desktop", code=2)["message"]
    assert list(home.rglob("*.json")) == []


# What is wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ['{"hooks": ', "[]", '{"hooks": []}', '{"hooks": {"Stop": 7}}'])
def test_settings_that_are_wrong_are_refused_untouched(
    home: Path, cli: Install, wrong: str
) -> None:
    (home / ".claude").mkdir()
    (path := home / ".claude" / "settings.json").write_text(wrong)
    message = cli("install", "claude-code", code=4)["message"]
    assert str(path) in message
    assert "nothing was changed" in message
    assert path.read_text() == wrong
    assert [each for each in home.rglob("*") if each.is_file()] == [path]


@pytest.mark.parametrize(
    "wrong", ["model = ", 'mcp_servers = {agent-memory = {command = "x", args = ["mcp"]}}', "\xff"]
)
def test_toml_that_is_wrong_is_refused_untouched(home: Path, wrong: str) -> None:
    (home / ".codex").mkdir()
    (path := home / ".codex" / "config.toml").write_bytes(wrong.encode("latin-1"))
    assert run(["install", "codex"]) in (4, 5)
    assert path.read_bytes() == wrong.encode("latin-1")
    assert not (home / ".codex" / "hooks.json").exists()


@pytest.mark.parametrize("form", ["mcp_servers = 3", "mcp_servers = {}", "[[mcp_servers]]"])
def test_toml_that_no_table_can_be_added_to_is_not_said_to_be_none(
    home: Path, cli: Install, form: str
) -> None:
    (home / ".codex").mkdir()
    (path := home / ".codex" / "config.toml").write_text(form)
    message = cli("install", "codex", code=4)["message"]
    assert "'mcp_servers' is written in another form: nothing was changed" in message
    assert path.read_text() == form


def test_another_server_of_the_name_is_not_replaced(home: Path, cli: Install) -> None:
    other = json.dumps({"mcpServers": {SERVER: {"command": "npx", "args": ["other"]}}})
    (home / ".claude.json").write_text(other)
    assert "rename it" in cli("install", "claude-code", code=4)["message"]
    cli("uninstall", "claude-code")
    assert (home / ".claude.json").read_text() == other


def test_what_a_user_added_to_our_entries_stays_and_old_hooks_go(home: Path, cli: Install) -> None:
    old = {
        "mcpServers": {
            SERVER: {"command": "/old/agent-memory", "args": ["mcp"], "env": {"A": "1"}}
        },
        "hooks": {
            "SessionEnd": [{"hooks": [{"command": "/old/agent-memory hook gemini SessionEnd"}]}],
            "BeforeAgent": [
                {"hooks": [{"command": "mine"}, {"command": "/old/agent-memory hook gemini x"}]}
            ],
        },
    }
    (home / ".gemini").mkdir()
    (path := home / ".gemini" / "settings.json").write_text(json.dumps(old))
    cli("install", "gemini")
    now = json.loads(path.read_text())
    assert now["mcpServers"][SERVER]["env"] == {"A": "1"}
    assert now["mcpServers"][SERVER]["command"] == PROGRAM
    assert "SessionEnd" not in now["hooks"]
    mine, ours = now["hooks"]["BeforeAgent"][0]["hooks"]
    assert mine == {"command": "mine"}
    assert ours["command"] == f"{PROGRAM} hook gemini BeforeAgent"
    cli("uninstall", "gemini")
    assert json.loads(path.read_text())["hooks"] == {
        "BeforeAgent": [{"hooks": [{"command": "mine"}]}]
    }


def test_a_change_meanwhile_is_not_overwritten_and_nothing_stays_half(home: Path) -> None:
    (first := home / "first.json").write_text("1")
    (second := home / "second.json").write_text("2")
    with pytest.raises(StorageUnavailable, match="meanwhile"):
        write([Change(first, "1", "one"), Change(second, "not this", "two")])
    assert first.read_text() == "1"
    (folder := home / "locked").mkdir()
    blocked = folder / "file" / "x.json"
    (folder / "file").write_text("no folder")
    with pytest.raises(StorageUnavailable):
        write([Change(first, "1", "one"), Change(blocked, None, "two")])
    assert first.read_text() == "1"


def test_a_table_of_toml_is_changed_in_its_place() -> None:
    text = TomlText('[a.b]\nx = "1" # keep\nargs = ["2"]\n[a.b.env]\nK = "v"\n# end\n', "x.toml")
    text.put(["a", "b"], {"args": ["3"]})
    assert text.text == '[a.b]\nx = "1" # keep\nargs = ["3"]\n[a.b.env]\nK = "v"\n# end\n'
    text.remove(["a", "b"])
    assert text.text == "# end\n"


def test_a_key_of_a_toml_table_may_be_missing_or_quoted() -> None:
    text = TomlText('[a.b]\n"command" = "old"\n# end\n', "x.toml")
    text.put(["a", "b"], {"command": "new", "args": ["1"]})
    assert text.text == '[a.b]\nargs = ["1"]\ncommand = "new"\n# end\n'
    text = TomlText('[a.b]\nargs = ["1"]', "x.toml")
    text.put(["a", "b"], {"command": "new", "args": ["2"]})
    assert text.text == '[a.b]\ncommand = "new"\nargs = ["2"]\n'


# The plugin -------------------------------------------------------------------------------------


def test_a_plugin_is_a_marketplace_with_the_same_hooks(home: Path, cli: Install) -> None:
    folder = home / "market"
    cli("install", "claude-code", "--plugin", str(folder))
    market = json.loads((folder / ".claude-plugin/marketplace.json").read_text())
    (offered,) = market["plugins"]
    plugin = folder / offered["source"]
    manifest = json.loads((plugin / ".claude-plugin/plugin.json").read_text())
    assert manifest["name"] == offered["name"] == SERVER
    assert manifest["version"] == offered["version"]
    hooks = json.loads((plugin / "hooks/hooks.json").read_text())["hooks"]
    assert hooks.keys() == {event.name for event in HOSTS["claude-code"].events}
    begin, stop = (hooks[name][0]["hooks"][0] for name in ("SessionStart", "Stop"))
    assert begin["command"] == "agent-memory hook claude-code SessionStart"
    assert (stop["type"], stop["tool"]) == ("mcp_tool", HOOK_TOOL)
    assert stop["server"] == f"plugin:{SERVER}:{SERVER}"
    assert stop["input"]["last_assistant_message"] == "${last_assistant_message}"
    servers = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]
    assert servers[SERVER]["args"] == ["mcp", "--project", "."]
    again = cli("install", "claude-code", "--plugin", str(folder))
    assert {each["action"] for each in again["files"]} == {"unchanged"}
    assert project_of(str(home)).agent_id

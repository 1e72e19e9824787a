"""Registers this program in a host's own files, as MCP server and hooks, and removes it again.

Existing content stays: other servers and hooks, comments, order. Nothing is written before all
files are known to be valid; the previous version is kept beside each file, and if one file fails
the others are restored.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from agent_memory import (
    AgentMemoryError,
    ConfigurationError,
    MissingAgentIdentity,
    StorageUnavailable,
)
from agent_memory.integrations.hosts.json_text import JsonText, Key
from agent_memory.integrations.hosts.table import HOOK_TOOL, SERVER, ConfigFile, Event, Host
from agent_memory.integrations.hosts.toml_text import TomlText
from agent_memory.runtime.files import translated_errors, written_atomically
from agent_memory.runtime.paths import with_home

PROGRAM: Final = "agent-memory"
_OURS: Final = "agent[-_]memory"
_TIME_LIMIT_SECONDS: Final = 10
"""The limit that a host gives a hook, which ends by itself after two."""


class Change(NamedTuple):
    """The change of a file; ``None`` means no file."""

    path: Path
    before: str | None
    after: str | None

    @property
    def action(self) -> str:
        """The kind of change: ``created``, ``changed``, ``deleted`` or ``unchanged``."""
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "created"
        return "deleted" if self.after is None else "changed"

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        name = str(self.path)
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            "/dev/null" if self.before is None else name,
            "/dev/null" if self.after is None else name,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


class InstalledHook(NamedTuple):
    """A hook as registered in a host's file."""

    event: str
    command: str
    """The command that is run; an empty string if the server is asked."""
    trust_key: str
    """The key under which Codex records whether its user trusts it."""


class Installation(NamedTuple):
    """A host and a scope: its user, or with ``project`` that folder only."""

    host: Host
    project: str | None = None
    agent: str | None = None
    root: str | None = None
    server_name: str = SERVER

    # What is registered ---------------------------------------------------------------------------

    def server(self, command: Sequence[str]) -> dict[str, Any]:
        """Return the entry of the MCP server. Raises ``MissingAgentIdentity`` without an agent."""
        if self.agent:
            whose = ["--agent", self.agent]
        elif self.host.project_argument:
            whose = ["--project", self.host.project_argument]
        else:
            raise MissingAgentIdentity(
                f"{self.host.title} has no projects: name the agent whose memory it serves,"
                " --agent ID"
            )
        root = ["--root", self.root] if self.root else []
        kind = {"type": self.host.server_type} if self.host.server_type else {}
        return {**kind, "command": command[0], "args": [*command[1:], *root, "mcp", *whose]}

    def handler(self, event: Event, command: Sequence[str]) -> dict[str, Any]:
        """Return what the host is to run at an event, in the host's format."""
        if event.by_server:
            return {"hooks": [self._call_of_server(event)]}
        words = [*command, "hook", self.host.name, event.name]
        words += ["--agent", self.agent] if self.agent else []
        words += ["--root", self.root] if self.root else []
        line = subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
        if self.host.hook_form == "flat":
            return {"command": line}
        limit = _TIME_LIMIT_SECONDS * (1_000 if self.host.milliseconds else 1)
        in_background = {"async": True} if event.in_background else {}
        handler = {"type": "command", "command": line, "timeout": limit, **in_background}
        matcher = {"matcher": event.matcher} if event.matcher else {}
        return {**matcher, "hooks": [handler]}

    def _call_of_server(self, event: Event) -> dict[str, Any]:
        """Return the handler that asks the server; the host replaces the names in it."""
        names = ("session_id", "cwd", *event.by_server)
        return {
            "type": "mcp_tool",
            "server": self.server_name,
            "tool": HOOK_TOOL,
            "input": {
                "host": self.host.name,
                "event": event.name,
                **{name: f"${{{name}}}" for name in names},
            },
            "timeout": _TIME_LIMIT_SECONDS,
        }

    # Where ----------------------------------------------------------------------------------------

    def path(self, file: ConfigFile) -> Path:
        """Return the path of one of the host's files."""
        if self.project is not None:
            return Path(self.project) / file.path
        moved = os.environ.get(self.host.folder_variable) if self.host.folder_variable else None
        if moved:
            return with_home(moved) / file.path.removeprefix("../")
        folder = self.host.folder.replace("{applications}", _applications())
        return Path(os.path.normpath(with_home(folder) / file.path))

    def files(self) -> tuple[ConfigFile | None, ConfigFile | None]:
        """Return the files for servers and for hooks, as far as the host has them."""
        if self.project is None:
            return self.host.server, self.host.hooks
        return self.host.project_server, self.host.project_hooks

    # Changes --------------------------------------------------------------------------------------

    def install(self, command: Sequence[str]) -> list[Change]:
        """Return the changes after which the host runs the server and the hooks.

        Raises ``ValidationError`` for a malformed file, and ``ConfigurationError`` if another
        server has the name.
        """
        servers, hooks = self.files()
        if servers is None and hooks is None:
            raise ConfigurationError(f"{self.host.title} has no project settings")
        entry = self.server(command)
        drafts = _Drafts()
        if servers is not None:
            drafts.put_server(self.path(servers), servers.key, entry)
        if hooks is not None:
            drafts.put_hooks(self, self.path(hooks), hooks.key, command)
        return drafts.changes()

    def uninstall(self) -> list[Change]:
        """Return the changes that remove this program from the host."""
        servers, hooks = self.files()
        drafts = _Drafts()
        if servers is not None:
            drafts.remove_server(self.path(servers), servers.key)
        if hooks is not None:
            drafts.remove_hooks(self.host, self.path(hooks), hooks.key)
        return drafts.changes()

    # What is installed ----------------------------------------------------------------------------

    def installed_server(self) -> dict[str, Any] | None:
        """Return the entry of our server in the host's file, or ``None``."""
        servers, _ = self.files()
        if servers is None:
            return None
        entry = _Drafts().server(self.path(servers), servers.key)
        return entry if entry is not None and _is_our_server(entry) else None

    def installed_hooks(self) -> list[InstalledHook]:
        """Return the hooks in the host's file that run this program."""
        _, hooks = self.files()
        if hooks is None:
            return []
        file = self.path(hooks)
        return [
            InstalledHook(str(place[1]), str(handler.get("command") or ""), _trust_key(file, place))
            for place, handler in _our_handlers(_Drafts().json(file), hooks.key, self.host)
        ]


class _Drafts:
    """The texts of files while they are edited; one file may be edited twice."""

    def __init__(self) -> None:
        self._before: dict[Path, str | None] = {}
        self._texts: dict[Path, JsonText | TomlText] = {}

    def changes(self) -> list[Change]:
        changes = []
        for path, text in self._texts.items():
            before = self._before[path]
            after: str | None = text.text
            if text.text.strip() in ("", "{}") and before != after:
                after = None  # it held only our own entries
            changes.append(Change(path, before, after))
        return changes

    def json(self, path: Path) -> JsonText:
        return cast("JsonText", self._draft(path))

    def _draft(self, path: Path) -> JsonText | TomlText:
        if path not in self._texts:
            before = self._before[path] = read_text(path)
            kind = TomlText if path.suffix == ".toml" else JsonText
            self._texts[path] = kind(before or "", str(path))
        return self._texts[path]

    def server(self, path: Path, key: str) -> dict[str, Any] | None:
        value = self._draft(path).value([key, SERVER])
        return value if isinstance(value, dict) else None

    def put_server(self, path: Path, key: str, entry: dict[str, Any]) -> None:
        text, existing = self._draft(path), self.server(path, key)
        if existing is not None and not _is_our_server(existing):
            raise ConfigurationError(
                f"{path}: {SERVER} is another server there ({existing.get('command')!r:.100}):"
                " rename it, and install again"
            )
        wanted = {**(existing or {}), **entry}
        if wanted == existing:
            return
        if isinstance(text, TomlText):
            text.put([key, SERVER], entry)
        else:
            text.put([key, SERVER], wanted)

    def remove_server(self, path: Path, key: str) -> None:
        existing = self.server(path, key)
        if existing is not None and _is_our_server(existing):
            self._draft(path).remove([key, SERVER])

    def put_hooks(
        self, installation: Installation, path: Path, key: str, command: Sequence[str]
    ) -> None:
        host, text = installation.host, self.json(path)
        if host.hook_form == "flat" and text.value(["version"]) is None:
            text.put(["version"], 1)
        wanted = {event.name: installation.handler(event, command) for event in host.events}
        for place, _ in reversed(_our_handlers(text, key, host)):
            if place[1] not in wanted:
                text.remove(place)
        for name, entry in wanted.items():
            existing = [place for place, _ in _our_handlers(text, key, host) if place[1] == name]
            for place in reversed(existing[1:]):
                text.remove(place)
            self._put_hook(text, [key, name], existing[0] if existing else None, entry)

    @staticmethod
    def _put_hook(
        text: JsonText, path: list[str], place: Sequence[Key] | None, entry: dict[str, Any]
    ) -> None:
        if place is None:
            groups = text.value(path)
            text.put([*path, len(groups) if isinstance(groups, list) else 0], entry)
            return
        group = text.value(place[:3])
        is_alone = len(place) == 3 or len(group["hooks"]) == 1
        target, wanted = (place[:3], entry) if is_alone else (place, entry["hooks"][0])
        if text.value(target) != wanted:
            text.put(target, wanted)

    def remove_hooks(self, host: Host, path: Path, key: str) -> None:
        text = self.json(path)
        for place, _ in reversed(_our_handlers(text, key, host)):
            group = text.value(place[:3])
            is_alone = len(place) == 3 or len(group["hooks"]) == 1
            text.remove(place[:3] if is_alone else place)
        if host.hook_form == "flat" and text.data() == {"version": 1}:
            text.remove(["version"])


def _our_handlers(
    text: JsonText, key: str, host: Host
) -> list[tuple[tuple[Key, ...], dict[str, Any]]]:
    """Return the handlers that run this program, and their paths in the file."""
    ours = re.compile(rf"{_OURS}\S* hook {host.name}\b")
    hooks = text.value([key])
    handlers: list[tuple[tuple[Key, ...], dict[str, Any]]] = []
    for name, groups in (hooks if isinstance(hooks, dict) else {}).items():
        for number, group in enumerate(groups if isinstance(groups, list) else []):
            if not isinstance(group, dict):
                continue
            inner: list[tuple[tuple[Key, ...], Any]] = [((key, name, number), group)]
            if isinstance(group.get("hooks"), list):
                inner = [((key, name, number, "hooks", n), each)
                         for n, each in enumerate(group["hooks"])]  # fmt: skip
            handlers += [
                (place, each)
                for place, each in inner
                if isinstance(each, dict)
                and (ours.search(str(each.get("command"))) or each.get("tool") == HOOK_TOOL)
            ]
    return handlers


def _trust_key(file: Path, place: Sequence[Key]) -> str:
    event = re.sub(r"(?<!^)(?=[A-Z])", "_", str(place[1])).lower()
    return f"{file}:{event}:{place[2]}:{place[4] if len(place) > 4 else 0}"


def _is_our_server(entry: dict[str, Any]) -> bool:
    words = [str(entry.get("command")), *map(str, entry.get("args") or [])]
    return "mcp" in words and any(re.search(_OURS, word) for word in words)


# The program and the files ------------------------------------------------------------------------


def program() -> list[str]:
    """Return the command that runs this program from anywhere: its absolute path.

    Raises ``ConfigurationError`` for a program whose name would not identify its hooks later.
    """
    if (bundle := _bundle()) is not None:
        if re.search(_OURS, Path(bundle[-1]).name) is None:
            raise ConfigurationError(
                f"what {bundle[-1]} registers is recognised only by its name:"
                f" rename it to {PROGRAM}{Path(bundle[-1]).suffix}, and install again"
            )
        return bundle
    beside = Path(sys.executable).with_name(PROGRAM + (".exe" if os.name == "nt" else ""))
    if beside.is_file():
        return [str(beside)]
    path = shutil.which(PROGRAM)
    return [os.path.abspath(path)] if path else [sys.executable, "-m", "agent_memory"]  # noqa: PTH100


def _bundle() -> list[str] | None:
    """Return the command that runs this program if it is a single file with its packages."""
    if hasattr(sys, "frozen"):
        return [os.path.abspath(sys.executable)]  # noqa: PTH100
    started = os.path.abspath(sys.argv[0])  # noqa: PTH100
    return [sys.executable, started] if zipfile.is_zipfile(started) else None


def _applications() -> str:
    """Return the folder in which desktop programs keep a user's settings."""
    if sys.platform == "darwin":
        return "~/Library/Application Support"
    if os.name == "nt":
        return os.environ.get("APPDATA", "~/AppData/Roaming")
    return os.environ.get("XDG_CONFIG_HOME") or "~/.config"


def read_text(path: Path) -> str | None:
    """Return the text of a file, or ``None`` if there is none. Raises ``StorageUnavailable``."""
    with translated_errors(path, "read"):
        try:
            return path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise StorageUnavailable(
                f"{path} cannot be read: it is not UTF-8 ({error.reason}): nothing was changed"
            ) from error


def write(changes: Iterable[Change]) -> dict[Path, Path]:
    """Write changes, all or none; return the backup of each file that existed.

    Raises ``StorageUnavailable`` for a file that changed since it was read, and ``StorageError`` if
    one cannot be written.
    """
    changes = [change for change in changes if change.action != "unchanged"]
    for change in changes:
        if read_text(change.path) != change.before:
            raise StorageUnavailable(f"{change.path} was changed meanwhile: run this again")
    backups: dict[Path, Path] = {}
    with contextlib.ExitStack() as undoing:
        for change in changes:
            if change.before is not None:
                backups[change.path] = _backup(change.path, change.before)
            undoing.callback(_restore, change)
            _write(change.path, change.after)
        undoing.pop_all()
    return backups


def _restore(change: Change) -> None:
    with contextlib.suppress(AgentMemoryError, OSError):
        _write(change.path, change.before)


def _backup(path: Path, text: str) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    backup = next(each for each in _backup_names(path, stamp) if not each.exists())
    with written_atomically(backup) as file:
        file.write(text.encode("utf-8"))
    return backup


def _backup_names(path: Path, stamp: str) -> Iterator[Path]:
    yield path.with_name(f"{path.name}.{stamp}.bak")
    for number in range(2, 1_000):
        yield path.with_name(f"{path.name}.{stamp}-{number}.bak")


def _write(path: Path, text: str | None) -> None:
    """Replace the text of a file atomically, keeping its permissions; a link stays a link."""
    target = path.resolve()
    with translated_errors(target, "written"):
        if text is None:
            target.unlink(missing_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        with written_atomically(target) as file:
            file.write(text.encode("utf-8"))
            if os.name == "posix":
                os.fchmod(file.fileno(), mode)

"""Checks whether this program works in the hosts: what is registered, and whether it answers.

Each registered hook is run once, as its host would run it, and stores nothing. Each problem is
reported with what to do about it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    CheckReport,
    ConfigurationError,
    NotAMemoryFile,
    StorageCorrupt,
    StorageReadOnly,
)
from agent_memory.integrations.hosts.hook import (
    ENDED,
    SECONDS_VARIABLE,
    TRIAL_VARIABLE,
    parse,
    seconds_allowed,
)
from agent_memory.integrations.hosts.installation import Installation, InstalledHook
from agent_memory.integrations.hosts.journal import Journal, agent_folder
from agent_memory.integrations.hosts.occasion import Call
from agent_memory.integrations.hosts.project import Project
from agent_memory.integrations.hosts.spool import Spool
from agent_memory.integrations.hosts.table import HOOK_TOOL, HOSTS, SERVER, Host
from agent_memory.runtime.paths import agent_address
from agent_memory.runtime.temporary_files import temporary_folder
from agent_memory.text.counts import counted

_PATIENCE_SECONDS: Final = 10.0
_START_SECONDS: Final = 0.5
"""The time that a process takes to start."""
_BLOCK: Final = 4_096
_QUESTION: Final = "What do we know of this project?"
_WHEN_SLOW: Final = (
    f"the machine is busy or its disk is slow: try again later; {SECONDS_VARIABLE} gives"
    " hooks more time"
)
_OURS: Final = "agent-memory: "
"""The prefix of this program's own messages on stderr."""
_NOTED: Final = ("captured", "recalled", "left_out", "refused", "dropped")
"""The counts in a hook's log whose latest time is reported."""


def agent_in_use(project: Project, agent: str | None, root: str | None) -> tuple[str, str | None]:
    """Return the agent whose memory hosts use in a project, and its root.

    It is ``agent``, else the one that a host's hooks name, else the project's.
    """
    for host in HOSTS.values() if agent is None else ():
        for scope in (project.folder, None):
            try:
                hooks = Installation(host, scope).installed_hooks()
            except AgentMemoryError:
                continue  # the report says what is wrong with the file
            for hook in hooks:
                with contextlib.suppress(ValueError):  # somebody changed its quoting
                    words = shlex.split(hook.command)
                    call = parse(words[words.index("hook") + 1 :])
                    if isinstance(call, Call) and call.agent is not None:
                        return call.agent, root or call.root
    return agent or project.agent_id, root


class Examination:
    """Examines one project: its hosts, its hooks and its memory.

    ``agent_id`` is whose memory it is, under ``root``.
    """

    def __init__(self, agent_id: str, root: str | None, project: str) -> None:
        self._agent_id = agent_id
        self._root = root
        self._project = project
        self._findings: list[dict[str, str]] = []
        self._command = f"agent-memory --agent {agent_id}"

    def report(self) -> dict[str, Any]:
        """Check everything, and return the results as JSON data."""
        hosts = [entry for host in HOSTS.values() for entry in self._installed(host)]
        if not hosts and not self._findings:
            self._find("agent-memory is not installed in any host", "agent-memory install HOST")
        last = self._last(has_hooks=any(entry["hooks"] for entry in hosts))
        self._check_room()
        return {
            "agent_id": self._agent_id,
            "path": str(agent_address(self._agent_id, self._root)),
            "project": self._project,
            "hosts": hosts,
            "last": last,
            "waiting": self._waiting(),
            "memory": self._memory(),
            "problems": self._findings,
        }

    def _find(self, problem: str, advice: str) -> None:
        """Record a problem, and what to do about it."""
        self._findings.append({"problem": problem, "advice": advice})

    # Hosts ----------------------------------------------------------------------------------------

    def _installed(self, host: Host) -> Iterator[dict[str, Any]]:
        """Yield where a host has this program: for its user, for the project, as a plugin."""
        scopes = []
        for scope, project in (("user", None), ("project", self._project)):
            installation = Installation(host, project)
            again = f"agent-memory install {host.name}" + (" --project" if project else "")
            try:
                server, hooks = installation.installed_server(), installation.installed_hooks()
            except AgentMemoryError as error:
                self._find(f"{host.title}: {error}", f"correct the file, then {again}")
                continue
            if server is None and not hooks:
                continue
            scopes.append(scope)
            self._check_completeness(installation, server, hooks, again)
            yield {
                "host": host.name,
                "scope": scope,
                "server": server is not None,
                "hooks": [self._tried(host, hook, server) for hook in hooks],
            }
        if host.name == "claude-code" and _has_plugin(host):
            scopes.append("plugin")
            yield {"host": host.name, "scope": "plugin", "server": True, "hooks": []}
        if len(scopes) > 1:
            self._find(
                f"{host.title} runs agent-memory more than once: {' and '.join(scopes)}",
                f"agent-memory uninstall {host.name}, with --project or without",
            )

    def _check_completeness(
        self,
        installation: Installation,
        server: Mapping[str, Any] | None,
        hooks: list[InstalledHook],
        again: str,
    ) -> None:
        """Report missing parts of an installation, and hooks that Codex does not trust."""
        host = installation.host
        missing = {event.name for event in host.events} - {hook.event for hook in hooks}
        parts = [*(["the MCP server"] if server is None else []), *sorted(missing)]
        if parts:
            self._find(f"{host.title} lacks {', '.join(parts)}", again)
        if server is not None and not _is_program(str(server.get("command"))):
            self._find(f"{host.title}: command not found: {server.get('command')}", again)
        if host.name == "codex" and hooks:
            trusted = _trusted_by_codex(host)
            waiting = [hook.event for hook in hooks if hook.trust_key not in trusted]
            if waiting:
                self._find(
                    f"Codex does not run {', '.join(waiting)}: they are not trusted",
                    "start codex, type /hooks, and trust those of agent-memory",
                )

    def _tried(
        self, host: Host, hook: InstalledHook, server: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Run a hook as its host would, and return the outcome."""
        sample = _sample(hook.event, self._project)
        command, lines = hook.command, [json.dumps(sample)]
        if not command and server is None:
            return {"event": hook.event, "command": "", "ok": False, "milliseconds": 0}
        if not command and server is not None:
            command = shlex.join([str(server.get("command")), *map(str, server.get("args") or [])])
            lines = _calls_of_server(host, hook.event, sample)
        environment = {**os.environ, TRIAL_VARIABLE: "1"}
        if host.project_variable:
            environment[host.project_variable] = self._project
        done, seconds = _run(command, lines, self._project, environment)
        advice = (
            f"agent-memory install {host.name} registers it again; to run it by hand: {command}"
        )
        if done is None:
            problem = f"it did not end within {_PATIENCE_SECONDS:.0f} seconds"
        else:
            problem = _fault_of(done) if hook.command else _fault_of_server(done)
        if not problem and seconds > seconds_allowed() + _START_SECONDS:
            problem = f"it took {seconds:.1f} seconds"
            advice = _WHEN_SLOW
        elif problem.startswith(f"{_OURS}{ENDED}"):
            advice = _WHEN_SLOW
        elif problem.startswith(_OURS):
            advice = f"the hook itself works; run {self._command} check for more"
        problem = problem.removeprefix(_OURS)
        if problem:
            self._find(f"{host.title}, {hook.event}: {problem}", advice)
        return {
            "event": hook.event,
            "command": command,
            "ok": not problem,
            "milliseconds": round(seconds * 1_000),
        }

    # The memory -----------------------------------------------------------------------------------

    def _last(self, *, has_hooks: bool) -> dict[str, Any]:
        """Return when a hook last ran, recalled, captured, refused, dropped, and failed."""
        last: dict[str, Any] = dict.fromkeys(("ran", *_NOTED, "failed"))
        has_failed = False  # the last of all, as several hooks run within a second
        for entry in Journal(agent_folder(self._agent_id, self._root)).entries():
            last["ran"] = entry.get("at")
            for name in _NOTED:
                if entry.get(name):
                    last[name] = entry.get("at")
            if has_failed := entry.get("outcome") in ("failed", "late"):
                last["failed"] = {name: entry.get(name) for name in ("at", "host", "event", "why")}
        if has_hooks and last["ran"] is None:
            self._find(
                "no hook has ever run in this project",
                "start a session of the host here; if that does not help, see agent-memory"
                " guide coding-agents",
            )
        if has_failed:
            self._find(
                f"the last hook that ran failed: {last['failed']['why']}",
                "see hooks/log.jsonl in the agent's folder",
            )
        return last

    def _check_room(self) -> None:
        """Report if nothing can be written beside the memory: hooks answer, but keep nothing."""
        folder = Path(agent_folder(self._agent_id, self._root))
        # It is created on first use. Path.exists raises if a folder may not be entered.
        while not os.path.exists(folder) and folder != folder.parent:  # noqa: PTH110
            folder = folder.parent
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(_BLOCK))
        except OSError as error:
            self._find(
                f"hooks cannot store anything: {folder} cannot be written ({error})",
                "free space on its disk, and check that you may write there",
            )

    def _waiting(self) -> int:
        """Return how many texts heard by hooks are waiting to be stored."""
        spool = Spool(agent_folder(self._agent_id, self._root))
        try:
            entries = spool.entries()
            claim = spool.claim() if entries else None
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            is_denied = isinstance(error, PermissionError)
            self._find(
                f"nothing can be captured: {error}",
                f"the texts in {spool.path} are stored once you own it and may read and write"
                " it: use chown and chmod 600"
                if is_denied
                else f"move {spool.path} away",
            )
            return 0
        texts = [entry.get("texts") for entry in entries]  # of another version: anything
        count = sum(len(each) for each in texts if isinstance(each, list))
        if claim is not None:  # else a process is storing them
            os.close(claim)
            since = entries[0].get("at")
            self._find(
                counted(count, "text captured by hooks is", "texts captured by hooks are")
                + f" waiting to be stored, since {since}",
                f"{self._command} recent stores them; if it does not, see hooks/log.jsonl in"
                " the agent's folder",
            )
        return count

    def _opened(self) -> AgentMemory:
        """Open the memory, read-only if it cannot be written."""
        try:
            return AgentMemory(self._agent_id, root=self._root, create=False)
        except StorageReadOnly as error:
            memory = AgentMemory(self._agent_id, root=self._root, read_only=True)
            self._find(
                f"the memory can be read but not written: {error}",
                "check that you may write the file and its folder",
            )
            return memory

    def _memory(self) -> dict[str, Any]:
        """Return the state of the memory itself, after a check for damage."""
        try:
            if not AgentMemory.exists(self._agent_id, self._root):
                return {"memory_count": 0, "sound": None, "embedder": None, "pending_embeddings": 0}
            with self._opened() as memory:
                info, report = memory.info(), _checked(memory)
                results = memory.search(_QUESTION, 1, count_accesses=False)
        except AgentMemoryError as error:
            needs_choice = isinstance(error, ConfigurationError)  # `check` opens it no more
            advice = "do what that says" if needs_choice else f"run {self._command} check for more"
            self._find(f"the memory cannot be opened: {error}", advice)
            is_damaged = isinstance(error, StorageCorrupt | NotAMemoryFile)
            sound = False if is_damaged else None
            return {"memory_count": None, "sound": sound, "embedder": None}
        for reason in results.search_metadata.degraded:
            self._find(
                f"searches are degraded: {reason}",
                f"fix that; {self._command} info shows how memories are searched",
            )
        for problem in report.problems if report else ():
            self._find(f"{problem.kind}: {problem.detail}", f"{self._command} check --repair")
        if info.pending_embeddings:
            self._find(
                f"{counted(info.pending_embeddings, 'memory is', 'memories are')} waiting to be"
                " embedded, and found by keyword only",
                f"{self._command} embed",
            )
        return {
            "memory_count": info.memory_count,
            "sound": report.ok if report else None,
            "embedder": info.vector_model,
            "pending_embeddings": info.pending_embeddings,
            "schema_version": info.schema_version,
            "server_version": info.server_version,
            "server": None if info.server is None else info.server.model_dump(),
        }


def _checked(memory: AgentMemory) -> CheckReport | None:
    """Check for damage; ``None`` for a database, which has its own tools for that."""
    try:
        return memory.check()
    except ConfigurationError:
        return None


def _run(
    command: str, lines: Sequence[str], project: str, environment: Mapping[str, str]
) -> tuple[subprocess.CompletedProcess[bytes] | None, float]:
    """Run a command as hosts do; return its outcome and its duration in seconds.

    ``None`` means that it did not end in time. A host asks a server that is already running: for a
    server that is asked twice, the duration is that from the first answer to the second.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile(dir=temporary_folder()) as complaints:
        process = subprocess.Popen(  # noqa: S602 - hosts run it in a shell too
            command,
            shell=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            cwd=project,
            env=environment,
            start_new_session=True,
        )
        watch = threading.Timer(_PATIENCE_SECONDS, _end_all, [process])
        watch.start()
        with process:
            assert process.stdin is not None  # noqa: S101 - both are pipes
            assert process.stdout is not None  # noqa: S101
            with contextlib.suppress(OSError):  # it does not read
                process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            with contextlib.suppress(OSError):
                process.stdin.close()
            answers = [(time.monotonic(), answer) for answer in process.stdout]
        watch.cancel()
        ended = time.monotonic()
        complaints.seek(0)
        done = subprocess.CompletedProcess(
            command, process.returncode, b"".join(text for _, text in answers), complaints.read()
        )
    if ended - started >= _PATIENCE_SECONDS:
        return None, ended - started
    is_served = len(lines) > 1 and answers
    return done, (answers[-1][0] - answers[0][0]) if is_served else (ended - started)


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a shell and its children."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _fault_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what is wrong with a hook's outcome; an empty string if nothing is.

    The hook's own messages begin with ``_OURS``.
    """
    complaint = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        return f"it ended with {done.returncode}" + (
            f": {complaint[-1][:200]}" if complaint else ""
        )
    ours = [line for line in complaint if line.startswith(_OURS)]
    if ours:
        return ours[-1][:200]
    try:
        answer = json.loads(done.stdout or b"{}")
    except ValueError:
        return "its output is not JSON"
    return "" if isinstance(answer, dict) else "its output is not a JSON object"


def _calls_of_server(host: Host, event: str, sample: Mapping[str, Any]) -> list[str]:
    """Return two requests to a server: one that it answers once it has started, and the hook's."""
    arguments = {**sample, "host": host.name, "event": event}
    params = {"name": HOOK_TOOL, "arguments": arguments}
    requests = [
        {"jsonrpc": "2.0", "id": 0, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
    ]
    return list(map(json.dumps, requests))


def _fault_of_server(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what is wrong with a server's answer; an empty string if nothing is."""
    try:
        *_, answer = done.stdout.splitlines()
        result = json.loads(answer).get("result") or {}
        text = result["content"][0]["text"]
    except (ValueError, AttributeError, LookupError, TypeError):
        return _fault_of(done) or "the server did not answer"
    answered = subprocess.CompletedProcess(done.args, done.returncode, text.encode(), done.stderr)
    return text[:200] if result.get("isError") else _fault_of(answered)


def _sample(event: str, project: str) -> dict[str, Any]:
    """Return an input that any host might send."""
    message = "NOTE: agent-memory doctor tries this hook."
    return {
        "hook_event_name": event,
        "session_id": "doctor",
        "conversation_id": "doctor",
        "cwd": project,
        "workspace_roots": [project],
        "source": "startup" if "start" in event.lower() else "user",
        "prompt": _QUESTION,
        "tool_name": "Bash",
        "tool_response": {"stdout": message},
        "last_assistant_message": message,
        "compact_summary": message,
    }


def _is_program(command: str) -> bool:
    return not Path(command).is_absolute() or os.access(command, os.X_OK)


def _has_plugin(host: Host) -> bool:
    if host.hooks is None:
        return False
    try:
        path = Installation(host).path(host.hooks)
        enabled = json.loads(path.read_text(encoding="utf-8")).get("enabledPlugins")
    except (OSError, ValueError, AttributeError):
        return False  # a faulty file is reported when its hooks are read
    names = enabled if isinstance(enabled, dict) else {}
    return any(name.startswith(f"{SERVER}@") and names[name] for name in names)


def _trusted_by_codex(host: Host) -> set[str]:
    """Return the keys of the hooks that the user of Codex trusts, in whatever form they are."""
    try:
        text = Installation(host).path(host.server).read_text(encoding="utf-8")
        states = tomllib.loads(text).get("hooks", {}).get("state", {})
    except (OSError, ValueError, AttributeError):
        return set()
    return {
        key
        for key, state in (states.items() if isinstance(states, dict) else ())
        if isinstance(state, dict) and state.get("trusted_hash")
    }

"""Whether this program is at work in the hosts: what is registered, and whether it answers.

Each hook that is registered is run once, as its host would, and stores nothing. What is wrong is
said with what to do about it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_memory import AgentMemory, AgentMemoryError, CheckReport, ConfigurationError
from agent_memory.integrations.hosts.hook import TRIAL_VARIABLE, parse, seconds_allowed
from agent_memory.integrations.hosts.installation import Installation, InstalledHook
from agent_memory.integrations.hosts.journal import Journal, agent_folder
from agent_memory.integrations.hosts.occasion import Call
from agent_memory.integrations.hosts.project import Project
from agent_memory.integrations.hosts.spool import Spool
from agent_memory.integrations.hosts.table import HOOK_TOOL, HOSTS, SERVER, Host
from agent_memory.runtime.paths import agent_address

_PATIENCE_SECONDS: Final = 10.0
_START_SECONDS: Final = 0.5
"""In which a process starts."""
_QUESTION: Final = "What do we know of this project?"
_NOTED: Final = ("captured", "recalled", "left_out", "refused", "dropped")
"""The counts of a hook's log whose last time is told."""


class Finding(NamedTuple):
    """Something that is wrong, and what to do about it."""

    problem: str
    advice: str


def agent_in_use(project: Project, agent: str | None, root: str | None) -> tuple[str, str | None]:
    """Return the agent whose memory hosts use in a project, and its root.

    It is ``agent``, else the one that the hooks of a host name, else the project's.
    """
    for host in HOSTS.values() if agent is None else ():
        for scope in (project.folder, None):
            try:
                hooks = Installation(host, scope).installed_hooks()
            except AgentMemoryError:
                continue  # the report says what is wrong with the file
            for hook in hooks:
                with contextlib.suppress(ValueError):  # somebody changed its quotes
                    words = shlex.split(hook.command)
                    call = parse(words[words.index("hook") + 1 :])
                    if isinstance(call, Call) and call.agent is not None:
                        return call.agent, root or call.root
    return agent or project.agent_id, root


class Examination:
    """What there is to be said of one project: of its hosts, its hooks and its memory.

    ``agent_id`` is whose memory it is, under ``root``.
    """

    def __init__(self, agent_id: str, root: str | None, project: str) -> None:
        self._agent_id = agent_id
        self._root = root
        self._project = project
        self.findings: list[Finding] = []

    def report(self) -> dict[str, Any]:
        """Look at everything, and return what was seen as JSON data."""
        hosts = [entry for host in HOSTS.values() for entry in self._installed(host)]
        if not hosts:
            self._find("it is installed in no host", "agent-memory install HOST")
        last = self._last(has_hooks=any(entry["hooks"] for entry in hosts))
        return {
            "agent_id": self._agent_id,
            "path": str(agent_address(self._agent_id, self._root)),
            "project": self._project,
            "hosts": hosts,
            "last": last,
            "waiting": self._waiting(),
            "memory": self._memory(),
            "problems": [finding._asdict() for finding in self.findings],
        }

    def _find(self, problem: str, advice: str) -> None:
        self.findings.append(Finding(problem, advice))

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
                f"{host.title} runs it more than once: {' and '.join(scopes)}",
                f"agent-memory uninstall {host.name}, with --project or without",
            )

    def _check_completeness(
        self,
        installation: Installation,
        server: Mapping[str, Any] | None,
        hooks: list[InstalledHook],
        again: str,
    ) -> None:
        """Find what is missing of an installation, and whom Codex does not trust."""
        host = installation.host
        missing = {event.name for event in host.events} - {hook.event for hook in hooks}
        parts = [*(["the MCP server"] if server is None else []), *sorted(missing)]
        if parts:
            self._find(f"{host.title} lacks {', '.join(parts)}", again)
        if server is not None and not _is_program(str(server.get("command"))):
            self._find(f"{host.title}: there is no {server.get('command')}", again)
        if host.name == "codex" and hooks:
            trusted = _trusted_by_codex(host)
            waiting = [hook.event for hook in hooks if hook.trust_key not in trusted]
            if waiting:
                self._find(
                    f"Codex does not run {', '.join(waiting)}: nobody has trusted them",
                    "start codex, type /hooks, and trust those of agent-memory",
                )

    def _tried(
        self, host: Host, hook: InstalledHook, server: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Run a hook as its host would, and return how that went."""
        sample = _sample(hook.event, self._project)
        command, data = hook.command, json.dumps(sample)
        if not command and server is None:
            return {"event": hook.event, "command": "", "ok": False, "milliseconds": 0}
        if not command and server is not None:
            command = shlex.join([str(server.get("command")), *map(str, server.get("args") or [])])
            data = _call_of_server(host, hook.event, sample)
        environment = {**os.environ, TRIAL_VARIABLE: "1"}
        if host.project_variable:
            environment[host.project_variable] = self._project
        started = time.monotonic()
        problem = ""
        try:
            done = subprocess.run(  # noqa: S602 - hosts run it by the shell as well
                command,
                shell=True,
                input=data.encode(),
                capture_output=True,
                cwd=self._project,
                env=environment,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"it did not end within {_PATIENCE_SECONDS:.0f} seconds"
        else:
            problem = _fault_of(done) if hook.command else _fault_of_server(done)
        seconds = time.monotonic() - started
        if not problem and seconds > seconds_allowed() + _START_SECONDS:
            problem = f"it took {seconds:.1f} seconds: the machine is busy, or its disk is slow"
        if problem:
            self._find(
                f"{host.title}, {hook.event}: {problem}",
                f"agent-memory install {host.name} registers it anew; by hand: {command}",
            )
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
        failure = None
        for entry in Journal(agent_folder(self._agent_id, self._root)).entries():
            last["ran"] = entry.get("at")
            for name in _NOTED:
                if entry.get(name):
                    last[name] = entry.get("at")
            failed = entry.get("outcome") in ("failed", "late")
            failure = {name: entry.get(name) for name in ("at", "host", "event", "why")}
            last["failed"] = failure if failed else last["failed"]
        if has_hooks and last["ran"] is None:
            self._find(
                "no hook has ever run in this project",
                "start a session of the host here; where that changes nothing, see its advice:"
                " agent-memory guide coding-agents",
            )
        if last["failed"] and last["failed"]["at"] == last["ran"]:
            self._find(
                f"the last hook that ran had to give up: {last['failed']['why']}",
                "see hooks/log.jsonl of the agent's folder",
            )
        return last

    def _waiting(self) -> int:
        """Return how many texts that hooks heard wait to be stored."""
        spool = Spool(agent_folder(self._agent_id, self._root))
        try:
            entries = spool.entries()
            claim = spool.claim() if entries else None
        except FileNotFoundError:
            return 0
        except OSError as error:
            self._find(f"nothing can be captured: {error}", f"move {spool.path} away")
            return 0
        count = sum(len(entry.get("texts") or ()) for entry in entries)
        if claim is not None:  # else a process is storing them
            os.close(claim)
            since = entries[0].get("at")
            self._find(
                f"{count:,} texts that hooks heard wait to be stored, since {since}",
                f"agent-memory --agent {self._agent_id} recent stores them; where it does not,"
                " hooks/log.jsonl of the agent's folder says why",
            )
        return count

    def _memory(self) -> dict[str, Any]:
        """Return what can be said of the memory itself, which is looked through for damage."""
        if not AgentMemory.exists(self._agent_id, self._root):
            return {"memory_count": 0, "sound": None, "embedder": None, "pending_embeddings": 0}
        try:
            with AgentMemory(self._agent_id, root=self._root, create=False) as memory:
                info, report = memory.info(), _checked(memory)
                results = memory.search(_QUESTION, 1, count_accesses=False)
        except AgentMemoryError as error:
            self._find(f"the memory cannot be opened: {error}", "agent-memory check says more")
            return {"memory_count": None, "sound": False, "embedder": None}
        name = f"agent-memory --agent {self._agent_id}"
        for reason in results.search_metadata.degraded:
            self._find(f"searches are not what they could be: {reason}", f"{name} check")
        for problem in report.problems if report else ():
            self._find(f"{problem.kind}: {problem.detail}", f"{name} check --repair")
        if info.pending_embeddings:
            self._find(
                f"{info.pending_embeddings:,} memories wait to be embedded: they are found by"
                " keyword alone",
                f"{name} embed",
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
    """Look for damage; ``None`` for a database, which has tools of its own for that."""
    try:
        return memory.check()
    except ConfigurationError:
        return None


def _fault_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what is wrong with how a hook ended; an empty text where nothing is."""
    complaint = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        return f"it ended with {done.returncode}" + (
            f": {complaint[-1][:200]}" if complaint else ""
        )
    ours = [line for line in complaint if line.startswith("agent-memory: ")]
    if ours:
        return ours[-1].removeprefix("agent-memory: ")[:200]
    try:
        answer = json.loads(done.stdout or b"{}")
    except ValueError:
        return "what it prints is no JSON"
    return "" if isinstance(answer, dict) else "what it prints is no JSON object"


def _call_of_server(host: Host, event: str, sample: Mapping[str, Any]) -> str:
    """Return the line by which a host asks the server what it asks a hook."""
    arguments = {**sample, "host": host.name, "event": event}
    params = {"name": HOOK_TOOL, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return f"{json.dumps(request)}\n"


def _fault_of_server(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what is wrong with how the server answered; an empty text where nothing is."""
    try:
        result = json.loads(done.stdout).get("result") or {}
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
        return False  # what is wrong with the file is found where hooks are looked for
    names = enabled if isinstance(enabled, dict) else {}
    return any(name.startswith(f"{SERVER}@") and names[name] for name in names)


def _trusted_by_codex(host: Host) -> set[str]:
    """Return the keys of the hooks that the user of Codex has trusted, in whatever form."""
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

"""What hosts send to their hooks, as each of them writes it, and the program that answers."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = str(Path(sys.executable).with_name("agent-memory"))
CLAUDE_SESSION = "5c1f6a0e-7d1b-4c55-9a53-0d6f1c2b9e47"
EVENTS: dict[str, dict[str, dict[str, Any]]] = {
    "claude-code": {
        "start": {"hook_event_name": "SessionStart", "source": "startup", "model": "claude-x"},
        "prompt": {"hook_event_name": "UserPromptSubmit", "permission_mode": "default"},
        "tool": {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make", "description": "Build"},
            "tool_response": {"stdout": "", "stderr": "", "interrupted": False, "isImage": False},
            "tool_use_id": "toolu_01",
        },
        "turn": {"hook_event_name": "Stop", "stop_hook_active": False},
        "summary": {"hook_event_name": "PostCompact", "trigger": "auto"},
    },
    "codex": {
        "start": {"hook_event_name": "SessionStart", "source": "startup", "model": "gpt-x"},
        "prompt": {"hook_event_name": "UserPromptSubmit", "turn_id": "1", "model": "gpt-x"},
        "tool": {
            "hook_event_name": "PostToolUse",
            "turn_id": "1",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_response": "",
            "tool_use_id": "call_1",
        },
        "turn": {"hook_event_name": "Stop", "turn_id": "1", "stop_hook_active": False},
    },
    "gemini": {
        "start": {"hook_event_name": "SessionStart", "source": "startup"},
        "prompt": {"hook_event_name": "BeforeAgent"},
        "tool": {
            "hook_event_name": "AfterTool",
            "tool_name": "run_shell_command",
            "tool_input": {"command": "make"},
            "tool_response": {"llmContent": "", "returnDisplay": ""},
        },
        "turn": {"hook_event_name": "AfterAgent", "prompt": "go on", "stop_hook_active": False},
    },
    "cursor": {
        "start": {"hook_event_name": "sessionStart", "generation_id": "g", "model": "m"},
        "prompt": {"hook_event_name": "beforeSubmitPrompt", "generation_id": "g"},
        "tool": {"hook_event_name": "afterShellExecution", "command": "make", "output": ""},
        "turn": {"hook_event_name": "afterAgentResponse", "generation_id": "g"},
    },
}
"""Of each host, an event of each kind."""
TEXTS = {
    "prompt": "prompt",
    "summary": "compact_summary",
    ("claude-code", "turn"): "last_assistant_message",
    ("codex", "turn"): "last_assistant_message",
    ("gemini", "turn"): "prompt_response",
    ("cursor", "turn"): "text",
    ("cursor", "tool"): "output",
    ("codex", "tool"): "tool_response",
}
WITHIN_SECONDS = 15.0
"""It is two on an idle machine, and half a minute where what hangs is waited for."""


@dataclass(frozen=True)
class Answer:
    """What a hook said, and how long that took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def context(self) -> str:
        """What it adds to the context of the host."""
        fields = json.loads(self.out or "{}")
        specific = fields.get("hookSpecificOutput", {})
        return str(specific.get("additionalContext") or fields.get("additional_context") or "")


def event(host: str, kind: str, project: Path, text: str = "", **fields: Any) -> dict[str, Any]:
    """Return the input of a host's event; ``text`` stands where its host says it."""
    data: dict[str, Any] = copy.deepcopy(EVENTS[host][kind])
    if host == "cursor":
        data |= {"conversation_id": CLAUDE_SESSION, "workspace_roots": [str(project)]}
    else:
        data |= {"session_id": CLAUDE_SESSION, "cwd": str(project), "transcript_path": "/t.jsonl"}
    if host == "gemini":
        data["timestamp"] = "2026-11-23T01:00:00Z"
    if text and kind == "tool" and host in ("claude-code", "gemini"):
        name = "stdout" if host == "claude-code" else "llmContent"
        data["tool_response"][name] = text
    elif text and kind != "start":
        data[TEXTS.get((host, kind)) or TEXTS[kind]] = text
    return data | fields


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep everybody else out of a memory's file."""
    code = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        " c.execute('PRAGMA locking_mode=EXCLUSIVE'); c.execute('BEGIN EXCLUSIVE');"
        " print('locked', flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        yield
        holder.kill()


def wait_until_stored(root: Path) -> None:
    """Wait for the processes that store what hooks heard."""
    for path in root.rglob("heard.jsonl.taking") if root.is_dir() else ():
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def answer(
    root: Path,
    host: str,
    data: dict[str, Any] | bytes,
    *options: str,
    name: str = "",
    seconds: float | None = 60,
    **run: Any,
) -> Answer:
    """Run the hook for an event; ``data`` may be what no host would send.

    It has more time than hosts are promised, as other tests run beside it, unless ``seconds`` is
    ``None``.
    """
    if seconds is not None:
        environment = run.get("env") or os.environ
        run["env"] = {**environment, "AGENT_MEMORY_HOOK_SECONDS": str(seconds)}
    named = name or (data["hook_event_name"] if isinstance(data, dict) else "")
    content = json.dumps(data).encode() if isinstance(data, dict) else data
    words = [PROGRAM, "hook", host, named, "--root", str(root), *options]
    started = time.monotonic()
    done = subprocess.run(words, input=content, capture_output=True, check=False, **run)
    taken = time.monotonic() - started
    wait_until_stored(root)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode(), taken)

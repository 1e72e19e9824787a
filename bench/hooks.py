"""What a coding agent's hook costs, and what a week of sessions receives.

    python -m bench.hooks                 1,000 memories, 140 sessions
    python -m bench.hooks --sessions 20   a short one

A hook is a whole process; its CPU time, including the system's, is shown beside that of Python
alone, measured in turns. The week is 20 sessions a day, seven prompts each, with a compaction in
every tenth, through the same code in this process: it counts what was delivered, what was delivered
twice to one session (nothing may be), and the tokens of the longest answers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, Final

from agent_memory import AgentMemory
from agent_memory.integrations.hosts.hook import occasion_of, parse
from agent_memory.integrations.hosts.occasion import Outcome
from agent_memory.integrations.hosts.session import recall
from agent_memory.integrations.hosts.spool import Spool
from agent_memory.services.rendering import estimate_tokens
from bench.machine import describe_machine
from bench.workload import NOW, Workload

PROGRAM: Final = str(Path(sys.executable).with_name("agent-memory"))
IMPORT: Final = "from agent_memory import AgentMemory"
TAKE_IN: Final = (
    "import sys; from agent_memory.integrations.hosts.intake import take_in; take_in(*sys.argv[1:])"
)
STORING: Final = "storing it, behind the host"
ROUNDS: Final = 15
PROMPTS: Final = 7


def cpu_of(words: list[str], data: dict[str, Any], environment: dict[str, str]) -> float:
    """Return the CPU milliseconds of a process that reads ``data`` on stdin."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        words, input=json.dumps(data).encode(), capture_output=True, check=True, env=environment
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000


def measure_processes(root: str, queries: list[str]) -> None:
    """Print what each kind of hook costs beside Python alone."""
    environment = {**os.environ, "AGENT_MEMORY_ROOT": root, "AGENT_MEMORY_AGENT": "bench"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its bytecode
    base = {"session_id": "s", "cwd": root}
    tool = {"tool_name": "Bash", "tool_response": {"stdout": "12 passed in 3.1s"}}
    note = {"tool_name": "Bash", "tool_response": {"stdout": "NOTE: the port is 8443 from now on."}}
    hook = [PROGRAM, "hook", "claude-code"]
    kinds: dict[str, tuple[list[str], dict[str, Any]]] = {
        "Python alone": ([sys.executable, "-c", "pass"], {}),
        "a tool that said nothing": ([*hook, "PostToolUse"], {**base, **tool}),
        "a start": ([*hook, "SessionStart"], {**base, "source": "startup"}),
        "a prompt": ([*hook, "UserPromptSubmit"], {**base, "prompt": queries[0]}),
        "a tool that said something": ([*hook, "PostToolUse"], {**base, **note}),
        STORING: ([sys.executable, "-c", TAKE_IN, str(Path(root, "bench")), "bench", root], {}),
        "importing AgentMemory": ([sys.executable, "-c", IMPORT], {}),
    }
    times: dict[str, list[float]] = {name: [] for name in kinds}
    spool = Spool(str(Path(root, "bench")))
    for turn in range(ROUNDS):
        for name, (words, data) in kinds.items():
            if name == STORING:
                wait_for_something(spool, turn)
            times[name].append(cpu_of(words, {**data, "session_id": f"s-{turn}"}, environment))
    alone = median(times["Python alone"])
    for name, taken in times.items():
        print(f"{name:30}{median(taken):8.1f} ms CPU{median(taken) - alone:8.1f} beside Python")


def wait_for_something(spool: Spool, turn: int) -> None:
    """Leave something waiting to be stored, once the process that a hook started has ended."""
    while (claim := spool.claim()) is None:
        time.sleep(0.01)
    text = f"NOTE: port {turn} is open from now on."
    names = {"host": "claude-code", "event": "PostToolUse", "session": "s", "tool": "Bash"}
    spool.append({"kind": "tool", **names, "texts": [text]})
    os.close(claim)


def measure_server(root: str, queries: list[str]) -> None:
    """Print what a prompt costs a server that is already running, as `mcp_tool` hooks call it."""
    words = [PROGRAM, "--root", root, "mcp", "--agent", "bench"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        begun = used = 0.0
        for number, query in enumerate(queries):
            names = {"host": "claude-code", "event": "UserPromptSubmit"}
            arguments = {**names, "session_id": f"served-{number}", "cwd": root, "prompt": query}
            params = {"name": "memory_hook", "arguments": arguments}
            request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            server.stdout.readline()
            used = cpu_of_running(server.pid)
            begun = begun or used
        server.stdin.close()
    each = (used - begun) / (len(queries) - 1)
    print(f"{'a prompt, by the server':30}{each:8.1f} ms CPU, after start and first: {begun:.0f}")


def cpu_of_running(process_id: int) -> float:
    """Return the CPU milliseconds that a process has used, in all its threads."""
    ticks = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) * 1_000 / os.sysconf("SC_CLK_TCK")


def simulate(root: str, queries: list[str], sessions: int) -> None:
    """Print what sessions received, and what they received twice."""
    twice = longest = hooks = memories = 0
    for number in range(sessions):
        given: Counter[str] = Counter()
        events = [("SessionStart", {"source": "startup"})]
        for turn in range(PROMPTS):
            query = queries[(number * 3 + turn) % len(queries)]
            events.append(("UserPromptSubmit", {"prompt": query}))
            if number % 10 == 0 and turn == PROMPTS // 2:
                events.append(("SessionStart", {"source": "compact"}))
        for name, fields in events:
            if fields.get("source") == "compact":
                given.clear()
            context = answered(root, name, {"session_id": f"week-{number}", **fields})
            shown = [line for line in context.splitlines() if line.startswith("- ")]
            given.update(line.rpartition("{")[2] for line in shown)
            longest = max(longest, estimate_tokens(context))
            hooks, memories = hooks + 1, memories + len(shown)
        twice += sum(count - 1 for count in given.values())
    print(
        f"{sessions} sessions, {hooks} hooks: {memories} memories given, {twice} of them twice to a"
        f" session, {longest} tokens at most in one answer"
    )


def answered(root: str, event: str, fields: dict[str, Any]) -> str:
    """Return the context that a hook adds, through the code that its process runs."""
    call = parse(["claude-code", event, "--agent", "bench", "--root", root])
    if isinstance(call, str):
        raise SystemExit(call)
    outcome = Outcome()
    data = json.dumps({"cwd": root, **fields}).encode()
    recall(occasion_of(call, data), outcome)
    return outcome.context


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--sessions", type=int, default=140)
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as root:
        workload = Workload()
        items = list(workload.memories(options.memories))
        with AgentMemory("bench", root=root, clock=lambda: NOW) as memory:
            memory.store_many(items)
        queries = [workload.question(str(item["content"])) for item in items[:: len(items) // 60]]
        measure_processes(root, queries)
        measure_server(root, queries)
        simulate(root, queries, options.sessions)


if __name__ == "__main__":
    main()

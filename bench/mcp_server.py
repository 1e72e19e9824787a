"""How fast the MCP server starts, and how much more a call costs than the same verb in process.

    python -m bench.mcp_server                     1,000 and 10,000 memories
    python -m bench.mcp_server --sizes 1000        a short one

It needs the extra ``mcp``, whose client makes the calls. A cold start is a whole process, from its
start to its first answer, on the memories of the first size. Times are milliseconds. The baseline
is a process that only imports the server of the package ``mcp``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, Final

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from agent_memory import AgentMemory
from agent_memory.integrations.tools.memory_tools import MemoryTools
from bench.machine import describe_machine
from bench.workload import NOW, Workload

PROGRAM: Final = str(Path(sys.executable).with_name("agent-memory"))
Call = tuple[str, dict[str, Any]]


def serving(folder: str, *options: str) -> list[str]:
    """Return the command that serves the memories of a folder."""
    return [PROGRAM, "--root", folder, "--agent", "bench", "mcp", *options]


def row(size: int, name: str, times: list[float], beside: list[float] | None = None) -> None:
    """Print one row, with its ratio to the times ``beside``."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    ratio = f"{median(times) / median(beside):8.1f}x" if beside else " " * 9
    print(
        f"{size:>8,}  {name:38}{median(times):9.2f}{p95:9.2f}{ratio}   n={len(times)}", flush=True
    )


def cold_start(folder: str) -> tuple[float, float, float]:
    """Return the times from the start to the answers to initialize, tools/list and a search."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    asked: list[Call] = [
        ("initialize", hello),
        ("tools/list", {}),
        ("tools/call", {"name": "memory_search", "arguments": {"query": "which database?"}}),
    ]
    times = []
    started = time.perf_counter()
    with subprocess.Popen(
        serving(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for method, params in asked:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            assert b'"result"' in process.stdout.readline()
            times.append((time.perf_counter() - started) * 1000)
        process.stdin.close()
    return times[0], times[1], times[2]


def import_alone(_: object) -> None:
    """Start a process that imports the package's server and ends."""
    subprocess.run([sys.executable, "-c", "import mcp.server"], check=True)


def timed(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[float]:
    """Return the milliseconds that each call took."""
    times = []
    for argument in arguments:
        started = time.perf_counter()
        call(argument)
        times.append((time.perf_counter() - started) * 1000)
    return times


def calls(workload: Workload, memory: AgentMemory, rounds: int) -> dict[str, list[Call]]:
    """Return calls of each tool; those that store say something new each time."""
    known = memory.list_recent(limit=rounds)
    ids = [{"memory_id": one.id} for one in known]
    return {
        "memory_store": [("memory_store", {"content": workload.sentence()}) for _ in known],
        "memory_search": [
            ("memory_search", {"query": workload.question(one.content)}) for one in known
        ],
        "memory_list_recent": [("memory_list_recent", {}) for _ in known],
        "memory_get": [("memory_get", one) for one in ids],
        "memory_update": [
            ("memory_update", {**one, "content": workload.sentence()}) for one in ids
        ],
        "memory_promote": [("memory_promote", one) for one in ids],
    }


async def called(target: Any, asked: dict[str, list[Call]]) -> dict[str, list[float]]:  # noqa: ANN401
    """Make the calls with the real client and return the milliseconds of each."""
    times: dict[str, list[float]] = {}
    async with Client(target) as client:
        for name, each in asked.items():
            await client.call_tool(*each[0])
            times[name] = []
            for tool, arguments in each:
                started = time.perf_counter()
                result = await client.call_tool(tool, arguments)
                times[name].append((time.perf_counter() - started) * 1000)
                assert not result.is_error, result
    return times


def measure(size: int, rounds: int, starts: int) -> None:
    """Fill a memory, and time starts and calls."""
    workload = Workload()
    with tempfile.TemporaryDirectory() as folder:
        with AgentMemory("bench", root=folder, clock=lambda: NOW) as memory:
            for start in range(0, size, 1000):
                memory.store_many(list(workload.memories(min(1000, size - start), start=start)))
        if starts:
            measure_starts(folder, size, starts)
        measure_calls(folder, size, rounds, workload)


def measure_starts(folder: str, size: int, starts: int) -> None:
    """Time cold starts over stdio."""
    times = [cold_start(folder) for _ in range(starts)]
    for name, each in zip(
        ("initialize", "tools/list", "a search"), zip(*times, strict=True), strict=True
    ):
        row(size, f"cold start to the answer: {name}", list(each))
    row(size, "yardstick: import mcp.server", timed(import_alone, range(starts)))


def measure_calls(folder: str, size: int, rounds: int, workload: Workload) -> None:
    """Time the calls in process, over stdio and over HTTP."""
    with AgentMemory("bench", root=folder) as memory:
        in_process: dict[str, list[float]] = {}
        tools = MemoryTools(memory)
        for name, each in calls(workload, memory, rounds).items():
            tools.call(*each[0])
            in_process[name] = timed(lambda call: tools.call(*call), each)
        asked = [calls(workload, memory, rounds) for _ in range(2)]
    command, *arguments = serving(folder)
    server = stdio_client(StdioServerParameters(command=command, args=arguments))
    over_stdio = anyio.run(called, server, asked[0])
    command_http = serving(folder, "--http", "0")
    with subprocess.Popen(command_http, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        over_http = anyio.run(called, process.stderr.readline().split()[2], asked[1])
        process.terminate()
    for name, direct in in_process.items():
        row(size, f"{name}, in process", direct)
        row(size, f"{name}, stdio", over_stdio[name], direct)
        row(size, f"{name}, HTTP", over_http[name], direct)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=200, help="calls of each tool")
    parser.add_argument("--starts", type=int, default=10, help="cold starts")
    arguments = parser.parse_args()
    print(f"{describe_machine()}, mcp {version('mcp')}")
    print(f"{'memories':>8}  {'':38}{'p50 ms':>9}{'p95 ms':>9}{'ratio':>9}")
    for number, size in enumerate(arguments.sizes):
        measure(size, arguments.rounds, 0 if number else arguments.starts)
        print()


if __name__ == "__main__":
    main()

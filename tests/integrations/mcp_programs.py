"""Real servers and clients of MCP for the tests: processes of their own, which are ended again."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio
from mcp import Client, StdioServerParameters, stdio_client

import agent_memory

PROGRAM = str(Path(sys.executable).with_name("agent-memory"))
# Otherwise the server is of the package that is installed, and not of the one that is tested: a
# client over stdio passes on nothing of its own environment that is not named.
ENVIRONMENT = {"PYTHONPATH": str(Path(agent_memory.__file__).parents[1])}
Result = TypeVar("Result")


def words(root: Path, *options: str, agent: str = "bob") -> list[str]:
    """Return the words after the program's name that serve an agent."""
    return ["--root", str(root), "mcp", "--agent", agent, *options]


def stdio(root: Path, *options: str, pid_file: Path | None = None) -> Any:
    """Return what a client connects to, to start a server of its own."""
    command, arguments = PROGRAM, words(root, *options)
    if pid_file is not None:
        code = f"import os; open({str(pid_file)!r}, 'w').write(str(os.getpid()));"
        code += f"os.execv({PROGRAM!r}, {[PROGRAM, *arguments]!r})"
        command, arguments = sys.executable, ["-c", code]
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=ENVIRONMENT))


@contextlib.contextmanager
def http(
    root: Path, *options: str, warns: Sequence[str] = (), descriptors: int | None = None
) -> Iterator[str]:
    """Run a server over HTTP, and see to it that it ends cleanly, with these warnings alone."""
    command = [PROGRAM, *words(root, "--http", "0", *options)]
    if descriptors is not None:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    environment = {**os.environ, **ENVIRONMENT}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = server.stderr.readline()
            assert said.startswith("serving at http://"), said + server.stderr.read()
            yield said.split()[2]
        finally:
            server.terminate()
            try:
                rest = server.communicate(timeout=20)[1]
            except subprocess.TimeoutExpired:
                server.kill()
                raise
        assert (server.returncode, rest.splitlines()) == (0, list(warns))


def with_client(
    target: Any, use: Callable[[Client], Awaitable[Result]], mode: str = "auto"
) -> Result:
    """Connect the real client to a server, and return what came of its use."""

    async def connected() -> Result:
        with anyio.fail_after(60):
            async with Client(target, mode=mode) as client:
                return await use(client)

    return anyio.run(connected)


class RawServer:
    """A server over stdio whose every line is looked at."""

    def __init__(self, root: Path, *options: str, command: list[str] | None = None) -> None:
        self.process = subprocess.Popen(
            command or [PROGRAM, *words(root, *options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
        )
        self.last = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the answer to it."""
        self.send(method, **params)
        return self.read()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its data."""
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert not result["isError"], result
        data: dict[str, Any] = result["structuredContent"]
        return data

    def send(self, method: str, **params: Any) -> None:
        """Send a request."""
        self.last += 1
        self._write({"id": self.last, "method": method, "params": params})

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params})

    def answer(self, request_id: str, result: dict[str, Any]) -> None:
        """Answer a request of the server."""
        self._write({"id": request_id, "result": result})

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Read an answer."""
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["jsonrpc"] == "2.0"
        return answer

    def end(self) -> tuple[int, str, str]:
        """Close stdin, and return the exit code and what else was printed."""
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out.decode(), err.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=30)

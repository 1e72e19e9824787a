"""Commands as processes of their own, without the half second in which each imports the library.

A server imports what `agent-memory` does, and forks for each command: that has its own arguments,
environment, directory, standard streams and exit code, and ends as a process does. What depends on
how Python itself starts (``PYTHON…``, the locale) is left to a real start. A shell asks another
such server by a small program, which gives it its own streams.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

_STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")


class CommandServer:
    """Runs commands one after another."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(
        self, words: Sequence[str], *, stdin: bytes, env: Mapping[str, str], timeout: float
    ) -> tuple[int, bytes, bytes] | None:
        """Return exit code, output and errors of a command; ``None`` where it needs a real start.

        That is also so while another command runs.
        """
        changed = {name for name, value in env.items() if os.environ.get(name) != value}
        if any(name.startswith(_OF_PYTHON) for name in changed):
            return None
        if not self._lock.acquire(blocking=False):
            return None
        try:
            with tempfile.TemporaryDirectory() as folder:
                return self._run(Path(folder), words, stdin, dict(env), timeout)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.communicate()

    def _run(
        self, folder: Path, words: Sequence[str], stdin: bytes, env: dict[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        files = {name: folder / name for name, _ in _STREAMS}
        for path in files.values():
            path.write_bytes(stdin if path.name == "stdin" else b"")
        if self._server is None:
            command = [sys.executable, __file__]
            self._server = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        streams = {name: str(path) for name, path in files.items()}
        fields = {"words": list(words), "env": env, "folder": str(Path.cwd()), **streams}
        request = json.dumps(fields)
        watch = threading.Timer(timeout, self._server.kill)
        watch.start()
        print(request, file=self._server.stdin, flush=True)
        answer = self._server.stdout.readline()
        watch.cancel()
        assert answer, f"{words} took more than {timeout} seconds"
        return int(answer), files["stdout"].read_bytes(), files["stderr"].read_bytes()


_ASKS: Final = """\
#!{python} -IS
import socket, sys, os
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    of_environment = [name + b"=" + value for name, value in os.environb.items()]
    parts = [os.getcwdb(), b"%d" % len(sys.argv), *map(os.fsencode, sys.argv), *of_environment]
    socket.send_fds(server, [b"\\0".join(parts)], [0, 1, 2])
    server.shutdown(socket.SHUT_WR)
    os._exit(int(server.recv(16) or 1))
"""


@contextmanager
def program_for_shells() -> Iterator[Path]:
    """Give a folder with an ``agent-memory`` that starts quickly, for the PATH of a shell."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, address = folder / "bin" / "agent-memory", str(folder / "asked")
        program.parent.mkdir()
        program.write_text(_ASKS.format(python=sys.executable, address=address))
        program.chmod(0o755)
        command = [sys.executable, __file__, address]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            try:
                yield program.parent
            finally:
                server.terminate()


def _serve_shells(address: str) -> None:
    """Fork for each program that asks, and run the command with the streams that it gives."""
    _import_all()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            asking, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(asking)
            asking.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _answer(asking: socket.socket) -> None:
    """Run a command in a child, and tell the program that asked how it ended."""
    message, streams, _, _ = socket.recv_fds(asking, 1 << 20, 3)
    while more := asking.recv(1 << 20):
        message += more
    folder, count, *parts = map(os.fsdecode, message.split(b"\0"))
    child = os.fork()
    if child == 0:
        asking.close()
        words, variables = parts[: int(count)], parts[int(count) :]
        env = dict(variable.split("=", 1) for variable in variables)
        _run_command(streams, {"words": words, "env": env, "folder": folder})
    _, status = os.waitpid(child, 0)
    asking.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())
    os._exit(0)


def _serve() -> None:
    """Fork for each command that comes in, wait for it, and say how it ended."""
    _import_all()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run_command([os.open(request[name], flags) for name, flags in _STREAMS], request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _import_all() -> None:
    """Import what the commands import, once for all."""
    from agent_memory import AgentMemory
    from agent_memory.cli import GROUPS

    for module in {module for group in GROUPS.values() for module in group.values()}:
        importlib.import_module(f"agent_memory.cli.{module}")
    with tempfile.TemporaryDirectory() as root, AgentMemory("warm", root=root) as memory:
        memory.store("what a store and a search need is imported now")
        memory.search("what does a search need?")


def _run_command(streams: Sequence[int], request: dict[str, Any]) -> None:
    """Become the command: its streams, environment and directory, its end."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["folder"])
    tempfile.tempdir = None  # the environment names the command's own
    sys.argv = list(request["words"])
    code: object = 0
    try:
        from agent_memory.cli import main

        main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - a process that fails shows why, whatever it is
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as Python does at its end
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _serve_shells(sys.argv[1]) if sys.argv[1:] else _serve()

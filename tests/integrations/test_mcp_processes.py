"""The server as a process: how it starts and ends, what kills it, what it prints and imports."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import uvicorn
from mcp import Client
from mcp.client.stdio import get_default_environment
from mcp_programs import ENVIRONMENT, PROGRAM, RawServer, http, stdio, with_client, words

import agent_memory
from agent_memory import AgentMemory
from agent_memory.integrations.mcp import http as http_server

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def wait_for(what: Callable[[], Any], seconds: float = 20) -> Any:
    """Return what becomes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError("it took too long")


def is_running(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody waited for has a state of Z."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    if not state.parent.parent.joinpath("self").exists():
        return True
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_server_over_stdio_is_of_the_code_that_is_tested(tmp_path: Path) -> None:
    code = "import agent_memory; print(agent_memory.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**get_default_environment(), **ENVIRONMENT},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == agent_memory.__file__


# Ends ---------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        ("close", 0, ""),
        ("SIGTERM", 0, ""),
        ("SIGINT", 130, "interrupted: nothing was left half done"),
    ],
)
def test_a_server_ends_cleanly_and_writes_what_it_counted(
    root: Path, end: str, code: int, says: str
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory_id = memory.store("a walnut")
    with RawServer(root) as server:
        assert server.call("memory_search", query="walnut")["memories"][0]["id"] == memory_id
        if end != "close":
            server.process.send_signal(getattr(signal, end))
            server.process.wait(20)
        done, out, err = server.end()
    assert (done, out, err.strip()) == (code, "", says)
    assert not (root / "bob" / "memories.db-wal").exists()
    with AgentMemory("bob", root=root) as memory:
        found = memory.get(memory_id)
        assert found is not None
        assert found.access_count == 1


@posix
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 0), ("SIGINT", 130)])
def test_a_server_over_http_ends_cleanly_under_its_clients(
    root: Path, name: str, code: int
) -> None:
    command = [PROGRAM, *words(root, "--http", "0")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2]

        async def use(client: Client) -> None:
            await client.call_tool("memory_store", {"content": "a walnut"})
            await client.call_tool("memory_search", {"query": "walnut"})
            process.send_signal(getattr(signal, name))
            # The connection stays open: the server must not wait for it for long.

        with_client(url, use, "legacy")
        rest = process.communicate(timeout=20)[1]
        assert process.returncode == code
        assert "Traceback" not in rest
    with AgentMemory("bob", root=root, create=False) as memory:
        assert memory.list_recent()[0].access_count == 1
        assert memory.check().problems == []


@posix
def test_a_server_whose_client_is_killed_ends_by_itself(root: Path, tmp_path: Path) -> None:
    pid_file, told = tmp_path / "pid", tmp_path / "told"
    code = f"""
import anyio, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from mcp_programs import stdio, with_client

async def use(client):
    with open({str(told)!r}, "a", buffering=1) as told:
        for number in range(100_000):
            done = await client.call_tool("memory_store", {{"content": f"owl {{number}}"}})
            told.write(done.structured_content["memory_id"] + "\\n")

with_client(stdio(Path({str(root)!r}), pid_file=Path({str(pid_file)!r})), use)
"""
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as client:
        wait_for(lambda: told.exists() and told.read_text().count("\n") >= 5)
        client.kill()
    server = int(pid_file.read_text())
    wait_for(lambda: not is_running(server))
    acknowledged = told.read_text().split("\n")[:-1]
    with AgentMemory("bob", root=root, create=False) as memory:
        assert memory.check().problems == []
        stored = {it.id for it in memory.list_recent(100_000)}
        assert set(acknowledged) <= stored
        assert len(stored) <= len(acknowledged) + 1


@posix
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_server_that_is_killed_has_kept_what_it_acknowledged(
    root: Path, tmp_path: Path, transport: str
) -> None:
    acknowledged: list[str] = []
    pid_file = tmp_path / "pid"
    command = [PROGRAM, *words(root, "--http", "0")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = process.stderr.readline().split()[2]

    async def use(client: Client) -> None:
        while True:
            number = len(acknowledged)
            done = await client.call_tool("memory_store", {"content": f"owl {number}"})
            assert done.structured_content is not None
            acknowledged.append(done.structured_content["memory_id"])
            if number == 10:
                pid = process.pid if transport == "http" else int(pid_file.read_text())
                os.kill(pid, signal.SIGKILL)

    try:
        target = url if transport == "http" else stdio(root, pid_file=pid_file)
        with pytest.raises(BaseException):  # noqa: B017, PT011 - each transport has its own
            with_client(target, use)
    finally:
        process.kill()
        process.communicate()
    assert len(acknowledged) >= 11
    with AgentMemory("bob", root=root, create=False) as memory:
        assert memory.check().problems == []
        assert set(acknowledged) <= {it.id for it in memory.list_recent(1000)}


# What is printed and imported -----------------------------------------------------------------


def test_servers_of_two_projects_keep_them_apart_and_name_them(root: Path, tmp_path: Path) -> None:
    stored = {}
    for name in ("shop", "bank"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "src").mkdir()
        serve = ["--root", str(root), "mcp", "--project", str(tmp_path / name / "src")]
        with RawServer(root, command=[PROGRAM, *serve]) as server:
            server.call("memory_store", content=f"The {name} closes at six")
            stored[name] = server.call("memory_search", query="when does it close? six")
    for name, data in stored.items():
        assert [each["content"] for each in data["memories"]] == [f"The {name} closes at six"]
        assert data["agent"].startswith(f"{name}-")
        assert data["path"] == str(root / data["agent"] / "memories.db")
    with AgentMemory(stored["shop"]["agent"], root=root) as memory:
        assert memory.count() == 1


def test_a_file_is_its_own_agents_whatever_the_project(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.db"
    with AgentMemory.open(path, agent_id="bob", create=True) as memory:
        memory.store("a walnut")
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "eve")
    serve = ["--db", str(path), "mcp", "--project", str(tmp_path)]
    with RawServer(root, command=[PROGRAM, *serve]) as server:
        assert server.call("memory_search", query="walnut")["agent"] == "bob"


def test_a_project_that_is_no_folder_is_refused(root: Path) -> None:
    serve = ["--root", str(root), "mcp", "--project", "${workspaceFolder}"]
    with RawServer(root, command=[PROGRAM, *serve]) as server:
        code, _, err = server.end()
    assert code == 2
    assert "${workspaceFolder}" in err


def test_stdout_is_the_protocols_alone_whatever_is_printed() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from agent_memory.integrations.mcp.stdio import _claimed_streams\n"
        "print('before', flush=True)\n"
        "with _claimed_streams() as (incoming, outgoing):\n"
        "    print('stray')\n"
        "    os.write(1, b'native\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'import sys; print(sys.stdin.read())'])\n"
        "    outgoing.write(incoming.readline())\n"
        "print('after')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"wire\nrest\n", capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [b"before", b"wire", b"after"]
    assert sorted(done.stderr.split()) == [b"native", b"stray"]


TALE = """
import os, sys
from agent_memory.cli import run
code = run(sys.argv[1:])
names = ("mcp", "uvicorn", "starlette", "httpx2", "wordllama", "numpy", "tokenizers", "openai")
print(code, *(name for name in names if name in sys.modules), file=sys.stderr)
"""


def imported(root: Path, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """Return the exit code and the heavy packages that a server had imported after these calls."""
    with RawServer(root, command=[sys.executable, "-W", "error", "-c", TALE, *words(root)]) as it:
        it.ask("initialize", protocolVersion="2025-11-25")
        it.ask("tools/list")
        for tool, arguments in calls:
            it.call(tool, **arguments)
        code, out, err = it.end()
        assert (code, out) == (0, "")
        return err.split()


def test_no_model_is_loaded_before_the_first_search_by_meaning(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wordllama")
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDER", "wordllama")
    search = ("memory_search", {"query": "walnut"})
    store = ("memory_store", {"content": "a walnut"})
    assert imported(root, store, search, ("memory_list_recent", {})) == ["0"]
    with AgentMemory("bob", root=root) as memory:
        memory.migrate()
    assert imported(root, ("memory_list_recent", {})) == ["0"]
    assert "wordllama" in imported(root, search)


def test_the_session_that_stores_may_be_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MEMORY_SESSION", "monday")
    with RawServer(root) as server:
        stored = server.call("memory_store", content="a walnut")
        whole = server.call("memory_get", memory_id=stored["memory_id"])
        assert whole["memory"]["created_by_session"] == "monday"


# Options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
def test_the_agent_is_named_before_the_command_or_after_it(root: Path, before: bool) -> None:
    named = ["--agent", "ann"]
    command = [PROGRAM, "--root", str(root), *(named if before else []), "mcp"]
    with RawServer(root, command=[*command, *([] if before else named)]) as server:
        server.call("memory_store", content="a walnut")
    assert (root / "ann" / "memories.db").is_file()


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ([], 2, "AGENT_MEMORY_AGENT"),
        (["--agent", "a/b"], 4, "is not an agent id"),
        (["--agent", "bob", "--host", "127.0.0.1"], 2, "go with --http"),
        (["--agent", "bob", "--allow-remote", "x"], 2, "go with --http"),
        (["--agent", "bob", "--http", "70000"], 2, "--http"),
        (["--agent", "bob", "--run", "r-1"], 2, "--run goes with --user"),
        (["--agent", "bob", "--http", "0", "--host", "0.0.0.0"], 4, "there is no password"),
        (["--agent", "bob", "--http", "0", "--host", "nowhere.invalid"], 4, "there is no password"),
    ],
    ids=["no agent", "bad agent", "host", "remote", "port", "run", "all addresses", "another host"],
)
def test_what_cannot_be_served_is_refused_at_once(
    cli: Callable[..., Any], root: Path, options: list[str], code: int, says: str
) -> None:
    done = cli("mcp", *options)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert not root.exists()


def test_a_port_that_is_taken_is_named(cli: Callable[..., Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = cli("mcp", "--agent", "bob", "--http", port)
    assert (done.code, done.out) == (4, "")
    assert f"cannot listen on 127.0.0.1:{port}" in done.err


def test_a_missing_package_is_answered_with_what_installs_it(root: Path) -> None:
    for package in ("mcp", "uvicorn"):
        code = f"import sys; sys.modules[{package!r}] = None\n" + TALE
        command = [sys.executable, "-c", code, *words(root, "--http", "0")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert f"the package {package} is not installed" in done.stderr
        assert "pip install 'agent-memory[mcp]'" in done.stderr


def test_stdio_needs_no_package_that_may_be_missing(root: Path) -> None:
    code = "import sys; sys.modules.update(mcp=None, mcp_types=None, anyio=None, uvicorn=None)\n"
    command = [sys.executable, "-c", code + TALE, *words(root)]
    with RawServer(root, command=command) as server:
        server.call("memory_store", content="a walnut")
        assert server.end()[0] == 0


# HTTP -----------------------------------------------------------------------------------------


def posted(url: str, **headers: str) -> tuple[int, bytes]:
    """Post a request of a tool by hand, and return the status and the body."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, json.dumps(message).encode(), {**usual, **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_http_answers_only_to_its_own_names(root: Path) -> None:
    warns = ["Invalid Host header: evil.example", "Invalid Origin header: https://evil.example"]
    with http(root, warns=warns) as url:
        port = url.split(":")[2].partition("/")[0]
        assert posted(url)[0] == 200
        assert posted(url, Host=f"localhost:{port}", Origin=f"http://localhost:{port}")[0] == 200
        host, body = posted(url, Host="evil.example")
        origin, other_body = posted(url, Origin="https://evil.example")
        assert (host, origin) == (421, 403)
        assert b"memory_search" not in body + other_body


def test_http_listens_on_one_address_of_this_machine_alone(root: Path) -> None:
    with http(root) as url:
        assert url.startswith("http://127.0.0.1:")
        port = int(url.split(":")[2].partition("/")[0])
        with pytest.raises(OSError):  # noqa: PT011 - each system has its own
            socket.create_connection(("127.0.0.2", port), timeout=5)


def test_other_machines_are_answered_under_the_names_that_were_allowed(root: Path) -> None:
    options = ["--host", "0.0.0.0", "--allow-remote", "box.example"]
    with http(root, *options, warns=["Invalid Host header: evil.example"]) as url:
        local = url.replace("0.0.0.0", "127.0.0.1")
        port = url.split(":")[2].partition("/")[0]
        assert posted(local, Host=f"box.example:{port}")[0] == 200
        assert posted(local, Host="box.example", Origin="https://box.example")[0] == 200
        assert posted(local, Host="evil.example")[0] == 421


def test_answers_over_http_are_not_held_back_until_there_are_more() -> None:
    from agent_memory.integrations.loopback import listening_socket

    with listening_socket("127.0.0.1", 0, advice="another") as listening:
        # Nagle's algorithm costs 40 ms an answer; asyncio turns it off for sockets that name TCP.
        assert listening.proto == socket.IPPROTO_TCP
        assert listening.getsockname()[1] > 0


def half_open(url: str, start: bytes = b"POST /mcp HTTP/1.1\r\nHost: localhost") -> socket.socket:
    """Begin a request by hand."""
    host, _, port = url.split("/")[2].partition(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(start)
    return connection


@posix
def test_half_open_connections_keep_nobody_from_being_answered(root: Path) -> None:
    with http(root, descriptors=256) as url, contextlib.ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(half_open(url))
        for _ in range(3):
            assert posted(url)[0] == 200
        assert with_client(url, lambda client: client.list_tools()).tools


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"POST /mcp HTTP/1.1\r\nHost: localhost",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["nothing", "headers", "body"],
)
def test_a_request_that_does_not_come_in_time_ends_its_connection(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.4)
    config = uvicorn.Config(lambda: None, http=http_server.BoundedConnection, log_level="error")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        wait_for(lambda: server.started)
        with half_open(url, start) as connection, contextlib.suppress(ConnectionError):
            for _ in range(100):  # that a little more comes now and then is no help
                time.sleep(0.05)
                connection.settimeout(0.01)
                connection.sendall(b"x" if start else b"")
                with contextlib.suppress(TimeoutError):
                    if connection.recv(1) == b"":
                        break
            else:
                pytest.fail("it was still open after five seconds")
        server.should_exit = True
        thread.join(20)

"""Whom the page answers, and whom it does not: other sites, other users, endless clients."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from page_client import PageClient, served

from agent_memory import AgentMemory
from agent_memory.integrations.ui import run as ui_run
from agent_memory.integrations.ui.agents import MOST_OPEN
from agent_memory.integrations.ui.handler import AGENT_HEADER, MOST_BODY_BYTES
from agent_memory.integrations.ui.server import MOST_CONNECTIONS

SECRET = "the safe is behind the mirror"


@pytest.fixture
def stranger(memory: AgentMemory) -> Iterator[PageClient]:
    """Somebody who was not let in yet."""
    memory.store(SECRET, id="mem-1")
    with served(memory.path) as client:
        yield client


@pytest.fixture
def browser(stranger: PageClient) -> PageClient:
    return stranger.begin()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": "localhost.evil.example:{port}"},
        {"Host": "127.0.0.1:{port}@evil.example"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_what_another_site_sends_is_refused_before_anything_is_looked_at(
    browser: PageClient, headers: dict[str, str]
) -> None:
    sent = {name: value.format(port=browser.port) for name, value in headers.items()}
    for answer in (
        browser.get("/", sent),
        browser.get("/api/memories", sent),
        browser.post("forget", {"id": "mem-1"}, sent),
    ):
        assert answer.status == 403
        assert SECRET.encode() not in answer.body
    assert browser.read("memory?id=mem-1")["memory"]["content"] == SECRET


def test_every_name_of_this_machine_is_answered(browser: PageClient) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:{browser.port}"
        assert browser.get("/api/overview", {"Host": host}).status == 200
        answer = browser.post(
            "promote", {"id": "mem-1"}, {"Host": host, "Origin": f"http://{host}"}
        )
        assert answer.status == 200


def test_a_write_without_an_origin_is_refused(browser: PageClient) -> None:
    assert browser.post("forget", {"id": "mem-1"}, {"Origin": ""}).status == 403


def test_the_token_lets_one_browser_in_once(stranger: PageClient) -> None:
    assert stranger.post("session", {"token": "x" * 43}).status == 403
    assert stranger.post("session", {"token": None}).status == 403
    again = PageClient(stranger.port, stranger.token)
    stranger.begin()
    refused = again.post("session", {"token": again.token})
    assert refused.status == 403
    assert "Set-Cookie" not in refused.headers
    assert "run `agent-memory ui` again" in refused.error["message"]


def test_neither_the_cookie_nor_the_key_alone_opens_anything(browser: PageClient) -> None:
    for left_out in ("Cookie", "X-Agent-Memory-Key"):
        for sent in ({left_out: ""}, {left_out: f"agent-memory-{browser.port}=wrong"}):
            assert browser.get("/api/memories", sent).status == 401
            assert browser.post("forget", {"id": "mem-1"}, sent).status == 401


def test_a_second_cookie_of_the_same_name_neither_opens_nor_closes(browser: PageClient) -> None:
    name = f"agent-memory-{browser.port}"
    planted = f"{name}=planted; {browser.headers['Cookie']}; other=1"
    assert browser.get("/api/memories", {"Cookie": planted}).status == 200
    assert browser.get("/api/memories", {"Cookie": f"{name}=planted; {name}="}).status == 401


def test_the_cookie_is_for_http_alone_and_this_site(stranger: PageClient) -> None:
    cookie = stranger.post("session", {"token": stranger.token}).headers["Set-Cookie"]
    assert cookie.startswith(f"agent-memory-{stranger.port}=")
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/api/")


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/api/overview", "/nothing"])
def test_every_answer_has_the_headers_that_keep_scripts_out(browser: PageClient, path: str) -> None:
    headers = browser.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        "/../run.py", "/..%2frun.py", "/%2e%2e/run.py", "//etc/passwd", "/page/../../run.py",
        "/app.js/..", "/app.js%00.html", "/C:/windows", "/..\\run.py", "/api/../app.js",
        "http://127.0.0.1/../../etc/passwd", "/.", "/index.html.bak",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_page(browser: PageClient, path: str) -> None:
    assert browser.get(path).status in (400, 403, 404)


@pytest.mark.parametrize("path", ["http://[x", "http://[x]y/api/health"])
def test_what_is_no_address_is_answered_too(browser: PageClient, path: str) -> None:
    answer = browser.get(path, {"Host": f"127.0.0.1:{browser.port}"})
    assert (answer.status, answer.error["message"]) == (400, "invalid address")


def test_no_get_changes_anything(browser: PageClient, memory: AgentMemory) -> None:
    memory.info()  # writes what is pending
    before = memory.path.read_bytes(), wal_of(memory.path), memory.history()
    for path in (
        "overview", "memories", "search?q=where+is+the+safe", "memory?id=mem-1", "forget?id=mem-1",
        "erase?id=mem-1&confirm=mem-1", "undo", "memory?id=mem-9", "memories?after=mem-9",
        "memories?kind=none", "search", "session", "context", "reviews", "duplicates", "rejections",
        "timeline", "events", "entities", "entity?name=x", "statistics", "agents", "health",
        "recalls?id=mem-1", "entities?after=x", "timeline?before=1", "memories?order=oldest",
    ):  # fmt: skip
        assert browser.get(f"/api/{path}").status in (200, 400, 404)
    assert (memory.path.read_bytes(), wal_of(memory.path), memory.history()) == before


def wal_of(path: Path) -> bytes:
    return path.with_name(f"{path.name}-wal").read_bytes()


@pytest.mark.parametrize("path", ["/", "/api/overview", "/nothing"])
def test_a_head_is_answered_as_a_get_without_its_body(browser: PageClient, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=20)
    with contextlib.closing(connection):
        answers = []
        for method in ("HEAD", "GET"):  # a body of the first would be the head of the second
            connection.request(method, path, headers=browser.headers)
            answer = connection.getresponse()
            answers.append((answer.status, answer.getheader("Content-Type"), answer.read()))
    (status, kind, body), got = answers
    assert (status, kind, body) == (*got[:2], b"")
    assert got[2]


@pytest.mark.parametrize(
    "method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"]
)
def test_other_methods_are_refused(browser: PageClient, method: str) -> None:
    answer = browser.ask(method, "/api/memories")
    assert answer.status == 501
    assert answer.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize("agent_id", [" ", "../x", "a/b"])
def test_an_id_that_no_agent_can_have_is_the_callers_error(
    browser: PageClient, agent_id: str
) -> None:
    assert browser.get("/api/memories", {AGENT_HEADER: agent_id}).status == 400


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Length": str(MOST_BODY_BYTES + 1)}, b"{}", 413),
        ({"Content-Length": "9" * 400}, b"{}", 413),
        ({"Content-Length": "-1"}, b"{}", 411),
        ({"Content-Length": "²"}, b"{}", 411),
        ({"Transfer-Encoding": "chunked"}, b"{}", 400),
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"id=mem-1", 415),
        ({}, b"{", 400),
        ({}, b"[]", 400),
        ({}, b"[" * 100_000, 400),
        ({}, b"\xff", 400),
    ],
)
def test_a_body_that_is_no_json_object_of_a_bounded_length_is_refused(
    browser: PageClient, headers: dict[str, str], body: bytes, status: int
) -> None:
    sent = {"Content-Type": "application/json", "Origin": browser.origin, **headers}
    encoded = {name: value.encode("latin-1").decode("latin-1") for name, value in sent.items()}
    assert browser.ask("POST", "/api/forget", headers=encoded, body=body).status == status


def test_a_head_without_an_end_is_cut_off(browser: PageClient) -> None:
    with socket.create_connection(("127.0.0.1", browser.port), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        filler = (b"X-Filler: " + b"a" * 1_000 + b"\r\n") * 10_000
        with pytest.raises(ConnectionError):
            connection.sendall(filler)


def test_slow_clients_end_and_keep_nobody_out(memory: AgentMemory) -> None:
    memory.store(SECRET)
    with served(memory.path, request_seconds=0.5) as client:
        slow = []
        for number in range(MOST_CONNECTIONS * 2):
            connection = socket.create_connection(("127.0.0.1", client.port), timeout=20)
            if number % 2:
                connection.sendall(
                    b"POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
                )
            slow.append(connection)
        assert client.begin().read("memories")["memories"][0]["content"] == SECRET
        ended = time.monotonic() + 10
        while slow and time.monotonic() < ended:
            slow[0].sendall(b"X") if is_open(slow[0]) else slow.pop(0).close()
        assert slow == []


def is_open(connection: socket.socket) -> bool:
    """Return whether the server has not ended a connection; a byte is sent to keep it busy."""
    connection.settimeout(0.05)
    try:
        return bool(connection.recv(1))
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def test_read_only_refuses_every_write_and_opens_the_file_to_read(memory: AgentMemory) -> None:
    memory.store(SECRET, id="mem-1")
    with served(memory.path, read_only=True) as client:
        client.begin()
        assert client.read("overview")["read_only"] is True
        for name in ui_run._WRITES:
            answer = client.post(name, {"id": "mem-1", "confirm": "mem-1"})
            assert (answer.status, answer.error["code"]) == (403, "INTERNAL_ERROR"), name
            assert "--read-only" in answer.error["message"]
        assert client.read("memory?id=mem-1")["memory"]["content"] == SECRET


# Other agents ----------------------------------------------------------------------------------


@pytest.fixture
def beside(memory: AgentMemory) -> Iterator[AgentMemory]:
    """Ann, whose file is beside Bob's."""
    with AgentMemory("ann", root=memory.path.parent.parent) as other:
        other.store("Ann's safe is under the stairs", id="mem-ann")
        yield other


def of(agent_id: str) -> dict[str, str]:
    return {"X-Agent-Memory-Agent": agent_id}


def test_a_request_is_about_the_agent_that_it_names(
    browser: PageClient, memory: AgentMemory, beside: AgentMemory
) -> None:
    assert browser.get("/api/memory?id=mem-ann").status == 404
    answer = browser.get("/api/memory?id=mem-ann", of("ann"))
    assert answer.data["memory"]["content"] == "Ann's safe is under the stairs"
    assert browser.get("/api/overview", of("ann")).data["agent_id"] == "ann"
    changed = browser.post("archive", {"id": "mem-ann"}, of("ann")).data
    assert (beside.info().archived_count, memory.info().archived_count) == (1, 0)
    browser.post("undo", changed, of("ann"))
    assert beside.info().archived_count == 0
    assert browser.get("/api/memory?id=mem-1", of("bob")).data["memory"]["content"] == SECRET


@pytest.mark.parametrize(
    "agent_id",
    ["nobody", "../bob", "..", ".", "/etc", "ann/../bob", "ann/memories.db", "ann%2f", "", "CON",
     "link", "a" * 65, "ann\x00", "ann, bob", "file:ann"],
)  # fmt: skip
def test_an_agent_is_named_by_its_id_and_by_no_path(
    browser: PageClient, beside: AgentMemory, tmp_path: Path, agent_id: str
) -> None:
    root = beside.path.parent.parent
    with AgentMemory("eve", root=tmp_path / "elsewhere") as eve:
        eve.store("elsewhere")
    (root / "link").symlink_to(tmp_path / "elsewhere" / "eve", target_is_directory=True)
    before = sorted(root.rglob("*"))
    sent = {"X-Agent-Memory-Agent": agent_id or " "}
    answers = [browser.get("/api/memories", sent), browser.post("promote", {"id": "mem-1"}, sent)]
    for answer in answers:
        assert answer.status in (400, 404, 503)
        assert SECRET.encode() not in answer.body
        assert b"elsewhere" not in answer.body.replace(str(tmp_path).encode(), b"")
    assert sorted(root.rglob("*")) == before, "a file was made"


def test_nobody_reads_another_agent_without_being_let_in(
    stranger: PageClient, beside: AgentMemory
) -> None:
    assert stranger.get("/api/memories", of("ann")).status == 401
    stranger.begin()
    evil = {**of("ann"), "Origin": "http://evil.example"}
    assert stranger.post("forget", {"id": "mem-ann"}, evil).status == 403
    assert beside.get("mem-ann") is not None


def test_a_look_at_another_agent_changes_nothing_of_it(
    browser: PageClient, memory: AgentMemory, beside: AgentMemory
) -> None:
    beside.info()
    before = beside.path.read_bytes(), wal_of(beside.path)
    for name in ("overview", "memories", "timeline", "health", "statistics"):
        assert browser.get(f"/api/{name}", of("ann")).status == 200
    assert (beside.path.read_bytes(), wal_of(beside.path)) == before
    with served(memory.path, read_only=True) as client:
        client.begin()
        assert client.get("/api/overview", of("ann")).data["read_only"] is True
        assert client.post("forget", {"id": "mem-ann"}, of("ann")).status == 403
    assert beside.get("mem-ann") is not None


_LOOKS_AS_NOBODY = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from agent_memory import AgentMemory
from page_client import served

def look(root):
    with AgentMemory("bob", root=root) as bob, AgentMemory("ann", root=root) as ann:
        bob.store("one")
        ann.store("two", id="mem-ann")
    ann.path.chmod(0o400)
    of_ann = {"X-Agent-Memory-Agent": "ann"}
    with served(bob.path) as client:
        client.begin()
        answers = [client.get("/api/overview", of) for of in ({}, of_ann)]
        refused = client.post("forget", {"id": "mem-ann"}, of_ann)
        listed = {each["agent_id"]: each["is_writable"] for each in client.read("agents")["agents"]}
    return listed, [answer.data["read_only"] for answer in answers], refused.status

look(sys.argv[3])  # loads what is loaded late: it may lie where only root can read
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
print(look(sys.argv[1]))
"""


@pytest.mark.skipif(os.name != "posix", reason="rights are POSIX's")
def test_an_agent_that_may_only_be_read_is_marked_and_not_changed(
    public_folder: Path, tmp_path: Path
) -> None:
    public_folder.chmod(0o777)
    places = (public_folder / "root", Path(__file__).parent, tmp_path)
    words = [sys.executable, "-c", _LOOKS_AS_NOBODY, *map(str, places)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "({'ann': False, 'bob': True}, [False, True], 403)"


def test_many_agents_are_looked_at_by_many_at_once(browser: PageClient, root: Path) -> None:
    names = [f"agent-{number}" for number in range(MOST_OPEN * 2)]
    for name in names:
        with AgentMemory(name, root=root) as memory:
            memory.store(f"I am {name}")
    with ThreadPoolExecutor(6) as pool:
        answers = pool.map(lambda name: (name, browser.get("/api/memories", of(name))), names * 3)
        for name, answer in answers:
            assert [row["content"] for row in answer.data["memories"]] == [f"I am {name}"]
    open_files = {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()}
    kept = [name for name in names if f"{root}/{name}/memories.db" in open_files]
    assert len(kept) <= MOST_OPEN


def test_a_file_that_stands_by_itself_has_no_others(tmp_path: Path) -> None:
    path = tmp_path / "alone.db"
    with AgentMemory.open(path, agent_id="bob"), served(path) as client:
        client.begin()
        assert client.read("agents") == {"agents": []}
        assert client.get("/api/memories", of("ann")).status == 404
        assert client.get("/api/memories", of("bob")).status == 200


def test_the_command_prints_its_address_and_ends_at_sigterm(memory: AgentMemory) -> None:
    memory.store(SECRET)
    program = str(Path(sys.executable).with_name("agent-memory"))
    words = [program, "--db", str(memory.path), "ui", "--no-open"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[4]
        port = int(address.split(":")[2].partition("/")[0])
        client = PageClient(port, address.partition("#token=")[2]).begin()
        assert client.read("overview")["agent_id"] == "bob"
        assert listening_addresses(process.pid) in ({"0100007F"}, set())
        process.terminate()
        assert process.communicate(timeout=20)[1] == ""
        assert process.returncode == 0


def listening_addresses(pid: int) -> set[str]:
    """Return the addresses that a process listens on, as Linux tells them."""
    table = Path(f"/proc/{pid}/net/tcp")
    if not table.exists():
        return set()
    inodes = {
        str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()
    }
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return {
        row[1].partition(":")[0]
        for row in rows
        if f"socket:[{row[9]}]" in inodes and row[3] == "0A"
    }


def test_a_browser_is_shown_a_private_file_and_no_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ui_run.opened_browser("http://127.0.0.1:1/#token=abc"):
        (address,) = shown
        assert address.startswith("file://")
        assert "abc" not in address
        page = next(tmp_path.glob("*/open.html"))
        assert page.parent.stat().st_mode & 0o777 == 0o700
        assert "url=http://127.0.0.1:1/#token=abc" in page.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def test_errors_name_the_value_and_what_to_do(browser: PageClient) -> None:
    cases: list[tuple[Any, int, str]] = [
        (browser.get("/api/memories?kind=none"), 400, "kind"),
        (browser.get("/api/memories?limit=x"), 400, "limit"),
        (browser.get("/api/memory"), 400, "id"),
        (browser.get("/api/memory?id=mem-9"), 404, "mem-9"),
        (browser.get("/api/memories?" + "a=1&" * 99), 400, "query"),
        (browser.post("update", {"id": "mem-1"}), 400, "changes"),
        (browser.post("update", {"id": "mem-1", "content": 7}), 400, "content"),
        (browser.post("update", {"id": "mem-1", "content": "x", "version": 9}), 400, "version"),
        (browser.post("erase", {"id": "mem-1", "confirm": "yes"}), 400, "confirm"),
        (browser.post("undo", {"change_id": "all"}), 400, "change_id"),
        (browser.post("archive", {"id": 7}), 400, "id"),
    ]
    for answer, status, named in cases:
        assert answer.status == status, answer
        assert named in answer.error["message"]
    assert json.loads(browser.get("/nothing").body)["error"]["code"] == "REFUSED"

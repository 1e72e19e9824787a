"""What the server asks of the real client: the folders that it works in, a question to its user."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_programs import ENVIRONMENT, PROGRAM, RawServer, http, stdio
from mcp_types import ElicitRequestFormParams, ElicitResult, ErrorData, ListRootsResult, Root

from agent_memory import AgentMemory
from agent_memory.integrations.hosts.project import project_of

MODES = ["legacy", "2026-07-28"]
FACT = "Deploys need two approvals"


def connected(
    target: Any, use: Callable[[Client], Awaitable[None]], mode: str, **asked: Any
) -> None:
    """Connect the real client, which answers what it is asked, and use it."""

    async def run() -> None:
        with anyio.fail_after(60):
            async with Client(target, mode=mode, **asked) as client:
                await use(client)

    anyio.run(run)


def by_roots(root: Path, *options: str) -> Any:
    words = ["--root", str(root), "mcp", "--roots", *options]
    return stdio_client(StdioServerParameters(command=PROGRAM, args=words, env=ENVIRONMENT))


async def said(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool and return what the model reads."""
    (content,) = (await client.call_tool(tool, arguments)).content
    assert content.type == "text"
    return content.text


class Folders:
    """A client's folders, and how often it was asked for them."""

    def __init__(self, *uris: str) -> None:
        self.uris = uris
        self.count = 0

    async def __call__(self, _: Any) -> ListRootsResult | ErrorData:
        self.count += 1
        if self.uris == ("refused",):
            return ErrorData(code=-32601, message="no roots today")
        return ListRootsResult(roots=[Root(uri=uri) for uri in self.uris])


# Roots --------------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "my shop" / "src"
    folder.mkdir(parents=True)
    (folder.parent / ".git").mkdir()
    return folder


@pytest.mark.parametrize("mode", MODES)
def test_the_agent_is_that_of_the_folder_that_the_client_names(
    root: Path, shop: Path, mode: str
) -> None:
    folders = Folders("file:///nowhere/at/all", shop.as_uri())

    async def use(client: Client) -> None:
        assert len((await client.list_tools()).tools) > 5
        assert folders.count == 0  # what is offered depends on no folder
        stored = json.loads(await said(client, "memory_store", content=FACT))
        assert stored["agent"] == project_of(str(shop)).agent_id
        assert stored["agent"].startswith("my-shop-")
        folders.uris = ("file:///tmp",)  # it stays where it began
        found = json.loads(await said(client, "memory_search", query="approvals"))
        assert (found["agent"], found["total_found"]) == (stored["agent"], 1)
        (scratchpad, *_) = (await client.list_resources()).resources
        assert FACT in str((await client.read_resource(scratchpad.uri)).contents)

    connected(by_roots(root), use, mode, list_roots_callback=folders)
    assert folders.count == 1
    assert [agent.agent_id for agent in AgentMemory.agents(root)] == [
        project_of(str(shop)).agent_id
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("uris", [None, (), ("file://far/away",), ("file:///nowhere",)])
def test_a_client_that_names_no_folder_is_refused_and_nothing_is_made(
    root: Path, mode: str, uris: tuple[str, ...] | None
) -> None:
    async def use(client: Client) -> None:
        assert "does not name the folder" in await said(client, "memory_store", content=FACT)
        with pytest.raises(MCPError, match="does not name the folder"):
            await client.read_resource("memory://bob/scratchpad")

    asked = {} if uris is None else {"list_roots_callback": Folders(*uris)}
    connected(by_roots(root), use, mode, **asked)
    assert not root.exists()


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_that_is_named_serves_clients_that_name_no_folder(root: Path, mode: str) -> None:
    async def use(client: Client) -> None:
        assert json.loads(await said(client, "memory_store", content=FACT))["agent"] == "bob"

    connected(by_roots(root, "--agent", "bob"), use, mode)


def test_a_client_that_refuses_to_say_is_refused_too(root: Path) -> None:
    async def use(client: Client) -> None:
        assert "does not name the folder" in await said(client, "memory_store", content=FACT)

    connected(by_roots(root), use, "legacy", list_roots_callback=Folders("refused"))


@pytest.mark.parametrize("options", [["--http", "0"], ["--db", "x.db"]])
def test_roots_are_of_one_client_over_stdio(cli: Callable[..., Any], options: list[str]) -> None:
    of_group, of_command = (options, []) if options[0] == "--db" else ([], options)
    done = cli(*of_group, "mcp", "--roots", *of_command)
    assert (done.code, done.out) == (2, "")
    assert "--roots goes with" in done.err


# A question to the user ---------------------------------------------------------------------------


class User:
    """A user who is asked through the client, and says one thing."""

    def __init__(self, action: str, **content: Any) -> None:
        self.answer = ElicitResult(action=action, content=content or None)
        self.questions: list[str] = []

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        assert params.requested_schema["required"] == ["still_true"]
        self.questions.append(params.message)
        return self.answer


@pytest.fixture
def questioned(root: Path) -> str:
    """Let agent bob have a memory that a conversation put in question; return its id."""
    with AgentMemory("bob", root=root) as memory:
        memory.add("I live in Oslo.")
        memory.add("I moved to Bergen.")
        (review,) = memory.reviews()
    return review.memory_id


def target_of(transport: str, root: Path, stack: Any) -> Any:
    return stdio(root) if transport == "stdio" else stack.enter_context(http(root))


@pytest.mark.parametrize(
    ("transport", "mode"), [("stdio", "legacy"), ("stdio", MODES[1]), ("http", MODES[1])]
)
@pytest.mark.parametrize(
    ("user", "is_kept", "is_open"),
    [
        (User("accept", still_true=True), True, False),
        (User("accept", still_true=False), False, False),
        (User("decline"), True, True),
        (User("cancel"), True, True),
    ],
    ids=["true", "false", "decline", "cancel"],
)
def test_what_is_in_question_is_asked_of_the_user(
    root: Path, questioned: str, user: User, is_kept: bool, is_open: bool, transport: str, mode: str
) -> None:
    user.questions.clear()

    async def use(client: Client) -> None:
        (tool,) = [
            tool for tool in (await client.list_tools()).tools if tool.name == "memory_resolve"
        ]
        assert list(tool.input_schema["properties"]) == tool.input_schema["required"]
        assert tool.input_schema["required"] == ["review_id"]
        (review,) = json.loads(await said(client, "memory_reviews"))["reviews"]
        text = await said(client, "memory_resolve", review_id=review["review_id"])
        assert ("NOT_ANSWERED" in text) == is_open
        assert "review_id" in await said(client, "memory_resolve", review_id=999)

    with contextlib.ExitStack() as stack:
        target = target_of(transport, root, stack)
        connected(target, use, mode, elicitation_callback=user)
    assert user.questions == ["Is this still true? I live in Oslo."]
    with AgentMemory("bob", root=root) as memory:
        assert (memory.get(questioned) is not None) == is_kept
        assert (memory.reviews() != []) == is_open


@pytest.mark.parametrize(
    ("transport", "mode"), [("stdio", "legacy"), ("stdio", MODES[1]), ("http", MODES[1])]
)
@pytest.mark.parametrize("said_by_model", [True, False])
def test_a_models_word_does_not_stand_for_the_users(
    root: Path, questioned: str, said_by_model: bool, transport: str, mode: str
) -> None:
    user = User("accept", still_true=not said_by_model)

    async def use(client: Client) -> None:
        arguments = {"review_id": 1, "still_true": said_by_model}
        done = json.loads(await said(client, "memory_resolve", **arguments))
        assert done["forgotten"] is said_by_model

    with contextlib.ExitStack() as stack:
        target = target_of(transport, root, stack)
        connected(target, use, mode, elicitation_callback=user)
    assert len(user.questions) == 1
    with AgentMemory("bob", root=root) as memory:
        assert (memory.get(questioned) is None) is said_by_model


@pytest.mark.parametrize(
    ("texts", "end"),
    [
        (
            ("I grow figs and plums.", "I no longer grow plums."),
            "If not, this is left: I grow figs.",
        ),
        (
            ("I keep bees and geese with Ivo.", "I no longer keep geese."),
            "it stays until somebody changes it.",
        ),
    ],
)
def test_the_user_is_told_what_will_be_left(root: Path, texts: tuple[str, str], end: str) -> None:
    user = User("cancel")
    user.questions.clear()
    with AgentMemory("bob", root=root) as memory:
        for text in texts:
            memory.add(text)

    async def use(client: Client) -> None:
        await said(client, "memory_resolve", review_id=1)

    with contextlib.ExitStack() as stack:
        connected(target_of("stdio", root, stack), use, MODES[1], elicitation_callback=user)
    (question,) = user.questions
    assert question.startswith(f"Is this still true? {texts[0]} If not, ")
    assert question.endswith(end)


@pytest.mark.usefixtures("questioned")
@pytest.mark.parametrize(
    ("transport", "mode"), [("stdio", "legacy"), ("stdio", MODES[1]), ("http", "auto")]
)
def test_without_elicitation_the_model_gives_the_answer(
    root: Path, transport: str, mode: str
) -> None:
    async def use(client: Client) -> None:
        (tool,) = [
            tool for tool in (await client.list_tools()).tools if tool.name == "memory_resolve"
        ]
        assert tool.input_schema["required"] == ["review_id", "still_true"]
        assert "still_true" in await said(client, "memory_resolve", review_id=1)
        done = json.loads(await said(client, "memory_resolve", review_id=1, still_true=True))
        assert done["forgotten"] is False

    with contextlib.ExitStack() as stack:
        connected(target_of(transport, root, stack), use, mode)


class AskingClient:
    """A client that can ask its user, who answers nothing, and called for answers all the same."""

    def __init__(self, server: RawServer, calls: int) -> None:
        self.server = server
        hello = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}}
        server.ask("initialize", **hello, clientInfo={"name": "x", "version": "1"})
        self.calls = [self.call() for _ in range(calls)]
        self.messages = [server.read() for _ in range(calls)]

    def call(self) -> int:
        """Call for an answer, and return the number of the call."""
        arguments = {"review_id": 1, "still_true": False}  # the model's word, which counts nothing
        self.server.send("tools/call", name="memory_resolve", arguments=arguments)
        return self.server.last

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [each for each in self.messages if each.get("method") == "elicitation/create"]


def test_open_questions_keep_nobody_else_waiting(root: Path, questioned: str) -> None:
    with RawServer(root) as server:
        client = AskingClient(server, 20)
        assert len(client.questions) == 4
        others = [each["result"] for each in client.messages if "result" in each]
        assert len(others) == 16
        assert all(each["isError"] and "NOT_ANSWERED" in str(each["content"]) for each in others)
        assert server.ask("ping")["result"] == {}
        assert server.call("memory_search", query="Oslo")["total_found"] > 0
        # An answer makes room for the next question.
        answer = {"action": "accept", "content": {"still_true": True}}
        server.answer(client.questions[0]["id"], answer)
        assert "result" in server.read()
        code, _, err = server.end()
    assert (code, err) == (0, "")
    with AgentMemory("bob", root=root) as memory:
        assert memory.get(questioned) is not None


@pytest.mark.usefixtures("questioned")
def test_a_call_that_is_cancelled_waits_for_no_answer(root: Path) -> None:
    with RawServer(root) as server:
        client = AskingClient(server, 4)
        assert len(client.questions) == 4
        for number in client.calls:
            server.notify("notifications/cancelled", requestId=number)
        for question in client.questions:  # too late, and nobody waits for it
            server.answer(question["id"], {"action": "cancel"})
        assert server.ask("ping")["result"] == {}
        while "method" not in (message := _called_again(client)):
            assert "NOT_ANSWERED" in str(message)  # a thread that was woken has not ended yet
        code, out, err = server.end()
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 1


def _called_again(client: AskingClient) -> dict[str, Any]:
    client.call()
    return client.server.read()


@pytest.mark.usefixtures("questioned")
def test_nothing_is_asked_of_a_client_that_is_gone(root: Path) -> None:
    with RawServer(root) as server:
        AskingClient(server, 4)
        for _ in range(40):
            server.send("tools/call", name="memory_resolve", arguments={"review_id": 1})
        code, _, err = server.end()
    assert (code, err) == (0, "")


@pytest.mark.usefixtures("questioned")
def test_a_client_that_goes_while_its_user_is_asked_ends_the_server(root: Path) -> None:
    with RawServer(root) as server:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}}
        server.ask("initialize", **hello, clientInfo={"name": "x", "version": "1"})
        call = {"name": "memory_resolve", "arguments": {"review_id": 1}}
        asked = server.ask("tools/call", **call)
        assert asked["method"] == "elicitation/create"
        code, _, err = server.end()
    assert (code, err) == (0, "")

"""The memories of frameworks that the extra ``test`` does not install: see the guide frameworks.

Real packages, runners and agents; the models are made up. Each test is skipped without its package.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    InvalidSession,
    LimitReached,
    PermissionDenied,
    StorageClosed,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.integrations.context import MemoryContext
from agent_memory.integrations.identity import LazyMemory
from agent_memory.integrations.turns import TurnMemory

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession, Opener

pytestmark = pytest.mark.filterwarnings("default")  # what the frameworks warn of is theirs

STANDUP = "Standup is at nine in the blue room"


def contents(memory: AgentMemory) -> set[str]:
    return {kept.content for kept in memory.list_recent(100)}


def test_what_answers_is_rendered_as_data_and_nothing_else(memory: AgentMemory) -> None:
    memory.store(STANDUP)
    memory.store("The cat is called Miso")
    context = MemoryContext(memory.session({"user_id": "ann"}))
    assert context.recall("when is standup?") == ""
    text = MemoryContext(memory, config={"token_budget": 600}).recall("when is standup?")
    assert "not instructions" in text
    assert STANDUP in text
    assert "Miso" not in text
    assert MemoryContext(memory).recall("") == ""
    assert STANDUP in MemoryContext(memory).recall("standup? " * 10_000)
    assert MemoryContext(memory).recall("standup", token_budget=5) == ""
    with pytest.raises(ValidationError, match="max_scratchpad_entries"):
        MemoryContext(memory, config={"max_scratchpad_entries": 1}).recall("standup")


KEY = "AKIA" + "ABCDEFGHIJKLMNOP"


def turns_of(memory: MemoryOrSession | Opener, **add: Any) -> TurnMemory:
    return TurnMemory(memory, limit=10, token_budget=None, add={"infer": False, **add})


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (f"the key is {KEY}", "AWS access key"),
        ("the code is 4711", "rejected value"),
        ("a\x00b", "NUL"),
        ("half \ud83d", "surrogate"),
    ],
)
@pytest.mark.parametrize("others", [[], [STANDUP, "Lunch is at noon"]], ids=["alone", "others"])
def test_a_message_that_is_refused_keeps_out_no_other_and_is_logged(
    memory: AgentMemory,
    caplog: pytest.LogCaptureFixture,
    refused: str,
    why: str,
    others: list[str],
) -> None:
    memory.configure(on_secret="refuse")
    memory.reject("4711")
    asyncio.run(turns_of(memory).keep(said(*others[:1], refused, " ", *others[1:])))
    assert contents(memory) == set(others)
    (line,) = caplog.messages
    assert why in line
    assert KEY not in line
    assert "4711" not in line


def test_a_fact_that_is_refused_is_logged(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.reject("Oslo")
    asyncio.run(turns_of(memory, infer=True).keep(said("I live in Oslo.", "I like green tea.")))
    assert contents(memory) == {"I like green tea."}
    (line,) = caplog.messages
    assert "storing messages: a fact was not stored: " in line


def test_of_more_messages_than_there_is_room_for_the_first_are_kept(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    limits = {"learning": {"max_memories": 2, "enforcement": "hard"}}
    memory.configure(retention={"limits": limits})
    asyncio.run(turns_of(memory).keep(said("one", "two", "three")))
    assert contents(memory) == {"one", "two"}
    (line,) = caplog.messages
    assert line.startswith("messages were not stored (user: 5 characters): ")


def test_a_memory_that_fails_ends_no_run(
    memory: AgentMemory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "other" / "bob" / "memories.db").mkdir(parents=True)
    directory = turns_of(LazyMemory("bob", root=tmp_path / "other"))
    assert asyncio.run(directory.recall("standup")) == ""
    asyncio.run(directory.keep(said(STANDUP)))
    held = (
        "import apsw, sys\n"
        f"connection = apsw.Connection({str(memory.path)!r})\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    program = [sys.executable, "-c", held]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        asyncio.run(turns_of(memory).keep(said(STANDUP, "yes")))
        other.communicate()
    assert [line.partition(": /")[0] for line in caplog.messages] == [
        "no memories are recalled",
        f"messages were not stored (user: {len(STANDUP)} characters)",
        f"messages were not stored (user: {len(STANDUP)} characters; user: 3 characters)",
    ]
    assert STANDUP not in caplog.text
    asyncio.run(turns_of(memory).keep(said(STANDUP)))
    assert contents(memory) == {STANDUP}


def test_what_only_the_program_can_mend_is_raised(memory: AgentMemory, root: Path) -> None:
    wrong: list[tuple[MemoryOrSession | Opener, dict[str, Any], type[Exception]]] = [
        (memory, {"user_id": ""}, InvalidSession),
        (memory, {"metadata": {"tags": 7}}, ValidationError),
        (memory, {"infer": True, "llm": "nobody:model"}, ConfigurationError),
        (memory.session({"user_id": "ann", "permissions": {"write": False}}), {}, PermissionDenied),
    ]
    for opened, add, error in wrong:
        with pytest.raises(error):
            asyncio.run(turns_of(opened, **add).keep(said(STANDUP, "yes")))
    with pytest.raises(ValidationError, match="limit"):
        asyncio.run(TurnMemory(memory, limit=0, token_budget=None, add=None).recall("standup"))
    with AgentMemory("bob", root=root, read_only=True) as reader, pytest.raises(StorageReadOnly):
        asyncio.run(turns_of(reader).keep(said(STANDUP)))
    with AgentMemory("bob", root=root) as closed:
        turns = turns_of(closed)
    for use in (turns.recall("standup"), turns.keep(said(STANDUP))):
        with pytest.raises(StorageClosed):
            asyncio.run(use)
    assert memory.count() == 0


# LlamaIndex ---------------------------------------------------------------------------------------


def test_llama_index(memory: AgentMemory) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import InsertMethod, Memory

    from agent_memory.integrations.llama_index import AgentMemoryBlock

    memory.store(STANDUP)
    memory.configure(on_secret="refuse")
    ann = memory.session({"user_id": "ann"})

    async def close(chat: Any) -> None:
        await chat.sql_store._async_engine.dispose()  # which LlamaIndex leaves open

    async def chat() -> None:
        for opened, answers in ((memory, True), (ann, False)):
            block = AgentMemoryBlock(opened)
            chat = Memory.from_defaults(memory_blocks=[block], insert_method=InsertMethod.SYSTEM)
            messages = await chat.aget(input="When is standup?")
            await close(chat)
            assert (STANDUP in str(messages)) is answers

        short = Memory.from_defaults(
            memory_blocks=[AgentMemoryBlock(lambda: ann, add={"infer": False}, priority=1)],
            token_limit=60,
            token_flush_size=20,
            chat_history_token_ratio=0.5,
        )
        await short.aput(ChatMessage(role="user", content=f"The key is {KEY}"))
        await short.aput(ChatMessage(role="user", content="I live in Oslo near the harbour"))
        await short.aput(ChatMessage(role="assistant", content="A fine place to live " * 5))
        await short.aput(ChatMessage(role="user", content="And what is the weather there? " * 5))
        await close(short)

    asyncio.run(chat())
    kept = {each.content for each in ann.get_all()}
    assert "I live in Oslo near the harbour" in kept, "it left the short-term memory"


# Google's ADK -------------------------------------------------------------------------------------


def event(text: str, id: str, **fields: Any) -> Any:
    from google.adk.events import Event
    from google.genai.types import Content, Part

    content = Content(role="user", parts=[Part(text=text)])
    return Event(**{"id": id, "author": "user", "content": content, "timestamp": 1.7e9, **fields})


def adk_session(*events: Any, id: str = "s-1") -> Any:
    from google.adk.sessions import Session

    return Session(id=id, app_name="bob", user_id="ann", events=list(events))


def test_google_adk_in_a_run(root: Path) -> None:
    pytest.importorskip("google.adk.memory")
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.adk.tools.load_memory_tool import load_memory_tool
    from google.genai.types import Content, FunctionCall, Part

    from agent_memory.integrations.google_adk import AgentMemoryService

    seen: list[str] = []

    class Script(BaseLlm):
        """Looks into the memory once, then says that it is done."""

        async def generate_content_async(
            self,
            llm_request: LlmRequest,
            stream: bool = False,  # noqa: ARG002
        ) -> AsyncGenerator[LlmResponse, None]:
            parts = llm_request.contents[-1].parts or []
            answer = parts[0].function_response
            if answer is None:
                call = FunctionCall(name="load_memory", args={"query": "when is standup?"})
                part = Part(function_call=call)
            else:
                seen.append(str(answer.response))
                part = Part(text="done")
            yield LlmResponse(content=Content(role="model", parts=[part]))

    async def run(service: AgentMemoryService) -> None:
        sessions = InMemorySessionService()
        agent = LlmAgent(name="bob", model=Script(model="script"), tools=[load_memory_tool])
        runner = Runner(
            app_name="bob", agent=agent, session_service=sessions, memory_service=service
        )
        for text in (STANDUP, "When is standup?"):
            session = await sessions.create_session(app_name="bob", user_id="ann")
            message = Content(role="user", parts=[Part(text=text)])
            async for _ in runner.run_async(
                user_id="ann", session_id=session.id, new_message=message
            ):
                pass
            kept = await sessions.get_session(app_name="bob", user_id="ann", session_id=session.id)
            assert kept is not None
            await service.add_session_to_memory(kept)

    with AgentMemoryService(root=root) as service:
        asyncio.run(run(service))
    assert STANDUP not in seen[0]
    assert STANDUP in seen[1]
    with AgentMemory("bob", root=root) as memory:
        assert contents(memory) == {STANDUP, "done", "When is standup?"}


def test_google_adk_keeps_events_once_and_users_and_apps_apart(root: Path) -> None:
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    long = "A tale of the harbour. " + "wave " * 4_000 + "lighthouse"
    service = AgentMemoryService(root=root)

    async def ids(query: str, user_id: str = "ann", app_name: str = "bob") -> list[Any]:
        answer = await service.search_memory(app_name=app_name, user_id=user_id, query=query)
        return list(answer.memories)

    async def use() -> None:
        empty = event("  ", "e-4")
        whole = adk_session(
            event(STANDUP, "e-1", author="host"), event("yes", "e-2"), event("yes", "e-3"), empty
        )
        for _ in range(2):
            await service.add_session_to_memory(whole)
        assert len(await ids("yes")) >= 1
        (entry,) = await ids("standup")
        assert (entry.author, entry.content.role) == ("host", "user")
        assert entry.timestamp == "2023-11-14T22:13:20.000000Z"
        assert await ids("standup", user_id="ben") == []
        assert await ids("standup", app_name="carol") == []
        assert await ids(cast("str", None)) == [], "a model may give null"

        await service.delete_memory(app_name="bob", user_id="ben", memory_id=entry.id)
        assert await ids("standup"), "it is not Ben's to delete"
        await service.delete_memory(app_name="bob", user_id="ann", memory_id=entry.id)
        await service.add_session_to_memory(whole)
        assert await ids("standup") == [], "what was deleted stays so"

        await service.add_events_to_memory(
            app_name="bob", user_id="ann", events=[event(long, "e-5")], session_id="s-2"
        )
        (tale,) = await ids("lighthouse")
        assert tale.content.parts[0].text == long, "all of it comes back"
        with pytest.raises(InvalidSession):
            await ids("standup", user_id="")

    with service:
        asyncio.run(use())
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 3


def test_google_adk_heeds_corrections_and_erasures(root: Path) -> None:
    pytest.importorskip("google.adk.memory")
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part

    from agent_memory.integrations.google_adk import AgentMemoryService

    session = adk_session(event(STANDUP, "e-1"), event("The cat is called Miso", "e-2"))
    entry = MemoryEntry(
        id="m-1",
        content=Content(role="model", parts=[Part(text="Lunch is at noon")]),
        custom_metadata={"source": "wiki"},
    )
    with AgentMemoryService(root=root) as service:
        asyncio.run(service.add_session_to_memory(session))
        with AgentMemory("bob", root=root) as memory:
            standup, cat = (memory.search(word)[0].memory.id for word in ("standup", "cat"))
            memory.update(standup, content="Standup is at ten")
            memory.erase(cat)
        for _ in range(2):
            asyncio.run(service.add_session_to_memory(session))
            asyncio.run(service.add_memory(app_name="bob", user_id="ann", memories=[entry]))
        answer = asyncio.run(
            service.search_memory(app_name="bob", user_id="ann", query="when is lunch?")
        )
        assert [each.custom_metadata for each in answer.memories] == [{"source": "wiki"}]
        assert answer.memories[0].content.role == "model"
        with AgentMemory("bob", root=root) as memory:
            assert contents(memory) == {"Standup is at ten", "Lunch is at noon"}


def test_google_adk_marks_what_may_be_out_of_date(root: Path) -> None:
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    with AgentMemory("bob", root=root) as memory:
        ann = memory.session({"user_id": "ann"})
        for text in ("I live in Oslo.", "I moved to Bergen."):
            ann.add([{"role": "user", "content": text}])
    with AgentMemoryService(root=root) as service:
        answer = asyncio.run(
            service.search_memory(app_name="bob", user_id="ann", query="Oslo or Bergen?")
        )
    assert {
        each.content.parts[0].text: each.custom_metadata.get("under_review")
        for each in answer.memories
    } == {"I live in Oslo.": True, "I moved to Bergen.": None}


def test_google_adk_leaves_out_the_events_that_are_refused_and_no_others(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    with AgentMemory("bob", root=root) as memory:
        memory.configure(on_secret="refuse")
        memory.reject("4711")
    texts = (STANDUP, "a\x00b", f"the key is {KEY}", "the code is 4711", "Lunch is at noon")
    session = adk_session(*(event(text, f"e-{place}") for place, text in enumerate(texts)))
    with AgentMemoryService(root=root) as service:
        for _ in range(2):
            asyncio.run(service.add_session_to_memory(session))
        with pytest.raises(ValidationError, match="JSON cannot represent"):
            asyncio.run(
                service.add_events_to_memory(
                    app_name="bob",
                    user_id="ann",
                    events=[event("Tea is at four", "e-9")],
                    custom_metadata={"source": object()},
                )
            )
    with AgentMemory("bob", root=root) as memory:
        assert contents(memory) == {STANDUP, "Lunch is at noon"}
    assert sum("an event was not stored" in said for said in caplog.messages) == 2 * 3
    assert KEY not in caplog.text
    assert "4711" not in caplog.text


@pytest.mark.parametrize("moment", [1_764_212_345_678.0, float("nan"), 1e300])
def test_google_adk_leaves_out_an_event_whose_time_is_none(
    root: Path, caplog: pytest.LogCaptureFixture, moment: float
) -> None:
    """Milliseconds were an error of Python's own, and kept out the whole session."""
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    wrong = event("Tea is at four", "e-1")
    wrong.timestamp = moment
    with AgentMemoryService(root=root) as service:
        asyncio.run(service.add_session_to_memory(adk_session(event(STANDUP, "e-0"), wrong)))
    with AgentMemory("bob", root=root) as memory:
        assert contents(memory) == {STANDUP}
    assert f"timestamp: write a time like 2026-01-28T12:00:00Z (got {moment})" in caplog.text


def test_google_adk_keeps_apart_sessions_whose_long_ids_begin_alike(root: Path) -> None:
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    ids = ["s" * 250 + end for end in "ab"]
    with AgentMemoryService(root=root) as service:
        for name in (*ids, *ids):
            asyncio.run(service.add_session_to_memory(adk_session(event(STANDUP, "e-1"), id=name)))
    with AgentMemory("bob", root=root) as memory:
        assert [kept.created_by_session for kept in memory.list_recent()] == ["s" * 200] * 2


def test_google_adk_finds_nothing_in_a_memory_that_fails_and_says_what_it_cannot_store(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    (root / "bob" / "memories.db").mkdir(parents=True)
    with AgentMemoryService(root=root) as service:
        search = service.search_memory(app_name="bob", user_id="ann", query="standup")
        assert asyncio.run(search).memories == []
        with pytest.raises(StorageUnavailable):
            asyncio.run(service.add_session_to_memory(adk_session(event(STANDUP, "e-1"))))
    (line,) = caplog.messages
    assert line.startswith("no memories are recalled: ")


def test_google_adk_opens_nothing_after_it_was_closed(root: Path) -> None:
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    with AgentMemoryService(root=root) as service:
        asyncio.run(service.add_session_to_memory(adk_session(event(STANDUP, "e-1"))))
    for app_name in ("bob", "carol"):
        with pytest.raises(StorageClosed):
            asyncio.run(service.search_memory(app_name=app_name, user_id="ann", query="standup"))
    assert [folder.name for folder in root.iterdir()] == ["bob"]
    service.close()


@pytest.mark.parametrize("refused", ["", "a\x00b"], ids=["all right", "one refused"])
def test_google_adk_tells_of_an_agent_that_is_full(root: Path, refused: str) -> None:
    pytest.importorskip("google.adk.memory")
    from agent_memory.integrations.google_adk import AgentMemoryService

    limits = {"learning": {"max_memories": 2, "enforcement": "hard"}}
    texts = (STANDUP, refused, "Lunch is at noon", "Tea is at four")
    session = adk_session(*(event(text, f"e-{place}") for place, text in enumerate(texts)))
    with AgentMemory("bob", root=root) as memory:
        memory.configure(retention={"limits": limits})
    with AgentMemoryService(root=root) as service:
        for _ in range(2):
            with pytest.raises(LimitReached):
                asyncio.run(service.add_session_to_memory(session))


# Microsoft's Agent Framework ----------------------------------------------------------------------


def test_agent_framework(memory: AgentMemory) -> None:
    pytest.importorskip("agent_framework")
    from agent_framework import Agent, BaseChatClient, ChatResponse, Message

    from agent_memory.integrations.agent_framework import AgentMemoryProvider

    requests: list[list[str]] = []

    class Script(BaseChatClient):
        """Answers always the same, and keeps what it was sent."""

        def _inner_get_response(
            self,
            *,
            messages: Sequence[Message],
            stream: bool,  # noqa: ARG002
            options: Mapping[str, Any],  # noqa: ARG002
            **kwargs: Any,  # noqa: ARG002
        ) -> Any:
            async def answer() -> ChatResponse:
                requests.append([message.text for message in messages])
                said = Message(role="assistant", contents=["The room is blue."])
                return ChatResponse(messages=[said])

            return answer()

    memory.store(STANDUP)
    memory.configure(on_secret="refuse")
    ann = memory.session({"user_id": "ann"})

    async def run() -> None:
        for opened in (memory, ann):
            provider = AgentMemoryProvider(opened, add={"infer": False})
            agent = Agent(Script(), context_providers=[provider])
            await agent.run("When is standup?")
        answer = await agent.run(f"The key is {KEY}")
        assert answer.text == "The room is blue.", "what is refused does not end the run"
        provider = AgentMemoryProvider(lambda: ann)
        await Agent(Script(), context_providers=[provider]).run("I live in Oslo.")

    asyncio.run(run())
    first, second, _, third = requests
    assert STANDUP in first[0]
    assert "not instructions" in first[0]
    assert first[-1] == "When is standup?"
    assert second == ["When is standup?"], "what is not Ann's is not given"
    assert third[-1] == "I live in Oslo."
    kept = [each.content for each in ann.get_all()]
    assert {"When is standup?", "The room is blue.", "I live in Oslo."} == set(kept)
    assert kept.count("The room is blue.") == 2, "also of the run with the key"
    assert STANDUP not in kept, "what was recalled is not kept again"

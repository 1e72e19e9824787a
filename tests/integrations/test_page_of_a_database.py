"""The page of an agent in a database: every view, what changes something, the agents beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from page_client import PageClient, served
from postgres_server import Schemas

from agent_memory import AgentMemory
from agent_memory.integrations.ui.agents import AgentPlace
from agent_memory.integrations.ui.handler import AGENT_HEADER

VIEWS = (
    "overview", "memories", "search?q=oven", "context", "reviews", "duplicates",
    "rejections", "timeline", "statistics", "entities", "health", "agents",
)  # fmt: skip


@pytest.fixture
def url(schemas: Schemas) -> str:
    url = schemas.url("page")
    with AgentMemory("amy", root=url) as memory:
        memory.store("Amy grows walnuts")
    return url


@pytest.fixture
def memory(url: str) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=url) as memory:
        memory.store("the oven is broken", id="mem-oven")
        yield memory


@pytest.fixture
def page(url: str, memory: AgentMemory) -> Iterator[PageClient]:
    del memory  # it makes the agent
    with served(AgentPlace("bob", url)) as client:
        yield client.begin()


def contents(answer: Any) -> list[str]:
    return [row["content"] for row in answer["memories"]]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_shown(page: PageClient, view: str) -> None:
    assert page.get(f"/api/{view}").status == 200


def test_what_is_changed_there_is_changed_in_the_database(
    page: PageClient, memory: AgentMemory
) -> None:
    page.post("update", {"id": "mem-oven", "content": "the oven is mended", "version": 1})
    kept = memory.get("mem-oven")
    assert kept is not None
    assert kept.content == "the oven is mended"
    assert page.read("overview")["read_only"] is False


def test_a_page_that_only_reads_changes_nothing(url: str, memory: AgentMemory) -> None:
    with served(AgentPlace("bob", url), read_only=True) as client:
        assert client.begin().read("overview")["read_only"] is True
        assert client.post("forget", {"id": "mem-oven"}).status != 200
    assert memory.get("mem-oven") is not None


def test_other_agents_of_the_database_are_there(page: PageClient) -> None:
    listed = page.read("agents")["agents"]
    assert [agent["agent_id"] for agent in listed] == ["amy", "bob"]
    assert "Amy grows walnuts" in contents(page.get("/api/memories", {AGENT_HEADER: "amy"}).data)


def test_a_database_has_no_backups_and_says_what_to_use(page: PageClient) -> None:
    assert page.read("health")["backups"] == []
    assert page.read("health")["info"]["server"]["host"]
    refused = page.post("backup", {})
    assert refused.status != 200
    assert "its own tools" in refused.error["message"]

"""LangGraph's PostgresStore, made by its own package on a real server, comes in whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

pytest.importorskip("psycopg")
pytest.importorskip("langgraph.store.postgres")

import psycopg
from langgraph.store.postgres import PostgresStore
from postgres_server import PostgresServer, running_server

from agent_memory import AgentMemory, ImportReport, Memory, StorageError, ValidationError


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """Return the address of a database with a store of LangGraph's: five put, one deleted."""
    with PostgresStore.from_conn_string(postgres.url()) as store:
        store.setup()
        store.put(("users", "ann"), "profile", {"name": "Ann", "city": "Lisbon", "age": 41})
        store.put(("users", "ann", "memories"), "m1", {"text": "Likes black tea"})
        nested = {"content": "Prefers trains to planes", "confidence": 0.9}
        store.put(("users", "ann", "memories"), "m2", {"kind": "Memory", "content": nested})
        store.put(("users", "bob"), "m1", {"data": "Deploys on Fridays 日本"})
        store.put(("users", "bob"), "m2", {"data": "gone"})
        store.delete(("users", "bob"), "m2")
    yield postgres.url()
    postgres.administer("DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION app")


def taken(root: Path, url: str, **options: Any) -> tuple[ImportReport, list[Memory]]:
    with AgentMemory("bob", root=root) as memory:
        report = memory.import_(url, **options)
        return report, sorted(memory.list_recent(100), key=lambda each: each.metadata["key"])


def test_a_store_comes_in_whole_and_once(root: Path, url: str, postgres: PostgresServer) -> None:
    with PostgresStore.from_conn_string(url) as store:
        item = store.get(("users", "ann", "memories"), "m1")
    report, memories = taken(root, url)
    assert (report.format, report.new, report.notes) == ("langgraph", 4, [])
    assert report.path.startswith("postgresql://app@/memories?")
    assert {(each.content, each.metadata["prefix"]) for each in memories} == {
        ('{"age": 41, "city": "Lisbon", "name": "Ann"}', "users.ann"),
        ("Likes black tea", "users.ann.memories"),
        ("Prefers trains to planes", "users.ann.memories"),
        ("Deploys on Fridays 日本", "users.bob"),
    }
    (tea,) = [each for each in memories if "tea" in each.content]
    assert item is not None
    assert tea.timestamp == item.created_at
    assert tea.metadata["source"] == "langgraph"
    again, same = taken(root, url)
    assert (again.new, again.same, len(same)) == (0, 4, 4)
    with PostgresStore.from_conn_string(url) as store:
        store.put(("users", "bob"), "m3", {"data": "Speaks Finnish"})
    assert taken(root, url)[0].new == 1
    postgres.administer("ALTER ROLE app SET default_transaction_read_only = on")
    try:
        assert taken(root, url)[0].same == 5  # nothing was to be written there
    finally:
        postgres.administer("ALTER ROLE app RESET default_transaction_read_only")


def test_many_rows_are_fetched_in_turn(root: Path, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO store (prefix, key, value)"
            " SELECT 'many', n, jsonb_build_object('data', 'fact number ' || n)"
            " FROM generate_series(1, 2500) n"
        )
    assert taken(root, url)[0].new == 2504


def test_a_dry_run_and_the_command_line_show_no_password(root: Path, url: str, cli: Cli) -> None:
    secret = url.replace("app@", "app:hunter2@")
    done = cli("--agent", "bob", "import", secret, "--dry-run")
    assert (done.code, "hunter2" in done.out + done.err) == (0, False)
    assert "4" in done.out
    assert not (root / "bob").exists()
    done = cli("--agent", "bob", "import", secret, "--json")
    assert (done.data["new"], "hunter2" in done.out + done.err) == (4, False)


def test_what_holds_no_store_is_told(root: Path, postgres: PostgresServer) -> None:
    with pytest.raises(ValidationError, match=r"is not a LangGraph store.*search_path"):
        taken(root, postgres.url())
    with pytest.raises(StorageError, match="nowhere"):
        taken(root, postgres.url(database="nowhere"))
    with pytest.raises(ValidationError, match="PostgresStore"):
        taken(root, postgres.url(), format="mem0")
    with pytest.raises(ValidationError, match="raw"):
        taken(root, postgres.url(), raw=True)


def test_a_store_of_another_schema_is_on_the_search_path(
    root: Path, postgres: PostgresServer
) -> None:
    postgres.administer("CREATE SCHEMA graphs AUTHORIZATION app")
    url = postgres.url(options="-csearch_path=graphs")
    with PostgresStore.from_conn_string(url) as store:
        store.setup()
        store.put(("users",), "m1", {"data": "Likes black tea"})
    try:
        assert [each.content for each in taken(root, url)[1]] == ["Likes black tea"]
    finally:
        postgres.administer("DROP SCHEMA graphs CASCADE")

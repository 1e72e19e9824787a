"""The planner is told of a new table before it is large: else a first import is ever slower."""

from __future__ import annotations

import psycopg
from postgres_server import PostgresServer, Schemas
from psycopg import sql

from agent_memory import AgentMemory

TABLES = ("memories", "history", "fingerprints", "scratchpad", "memory_tags")


def known_rows(connection: psycopg.Connection[tuple[float]], url: str, table: str) -> float:
    """Return how many rows the planner takes a table to have; -1 where it knows nothing."""
    schema = url.rpartition("schema=")[2]
    row = connection.execute(
        "SELECT reltuples FROM pg_class WHERE oid = %s::regclass", (f"{schema}.{table}",)
    ).fetchone()
    assert row is not None
    return row[0]


def store(memory: AgentMemory, count: int) -> None:
    memory.store_many([{"content": f"Fact {n} of {count}", "tags": ["a"]} for n in range(count)])


def test_tables_are_known_once_they_have_some_rows(
    postgres: PostgresServer, schemas: Schemas
) -> None:
    """The server of the tests analyzes nothing by itself."""
    url = schemas.url("planning")
    with (
        AgentMemory("bob", root=url) as memory,
        AgentMemory("amy", root=url) as amy,
        psycopg.connect(postgres.url("postgres"), autocommit=True) as connection,
    ):
        postgres.administer(f"ANALYZE {url.rpartition('schema=')[2]}.memories")  # others' tests
        store(memory, 100)
        assert known_rows(connection, url, "memories") <= 0
        store(memory, 500)
        known = [known_rows(connection, url, table) for table in TABLES]
        assert known[0] == 600
        assert min(known) > 0
        store(amy, 600)  # known is known: nothing is analyzed with each agent
        assert known_rows(connection, url, "memories") == 600


def test_a_row_is_found_by_its_key(postgres: PostgresServer, schemas: Schemas) -> None:
    """And not along the index by time, which has all rows of the agent to be read."""
    url = schemas.url("planning")
    with AgentMemory("bob", root=url) as memory:
        store(memory, 600)
    with psycopg.connect(postgres.url("postgres")) as connection:
        connection.execute(
            sql.SQL("SET search_path = {}").format(sql.Identifier(url.rpartition("schema=")[2]))
        )
        connection.execute("SET plan_cache_mode = force_generic_plan")  # as a foreign key's is
        connection.execute(
            "PREPARE key (text, bigint) AS SELECT 1 FROM memories WHERE agent_id = $1 AND seq = $2"
        )
        plan = connection.execute("EXPLAIN EXECUTE key ('bob', 5)").fetchall()
        assert "memories_pkey" in str(plan)

"""The guide `postgresql`: what it shows works on a real server."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer, Schemas

import agent_memory
from agent_memory import AgentMemory
from agent_memory.runtime.addresses import server_address

(PACKAGE,) = agent_memory.__path__
GUIDE = (Path(PACKAGE) / "guides" / "postgresql.md").read_text(encoding="utf-8")
BLOCKS = [
    re.sub(r"^    ", "", block, flags=re.MULTILINE)
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", GUIDE, re.MULTILINE)
]


def block_with(word: str) -> str:
    (block,) = (block for block in BLOCKS if word in block)
    return block


def test_its_example_runs(schemas: Schemas, capsys: pytest.CaptureFixture[str]) -> None:
    url = schemas.url("guide")
    example = block_with("from agent_memory import").replace("pip install", "# pip install")
    assert "postgresql://app@localhost/memories" in example
    exec(compile(example.replace("postgresql://app@localhost/memories", url), "guide", "exec"), {})
    assert capsys.readouterr().out == "Prefer tea\n"


def test_its_sql_reads_the_rows_of_one_agent(postgres: PostgresServer, schemas: Schemas) -> None:
    url = schemas.url("guide")
    for name in ("bob", "amy"):
        with AgentMemory(name, root=url) as memory:
            memory.store(f"{name} prefers tea", id=f"mem-{name}")
    statements = block_with("set_config").replace(
        "agent_memory;", f"{url.partition('schema=')[2]};"
    )
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        for statement in filter(None, map(str.strip, statements.split(";"))):
            cursor = connection.execute(statement)
            if statement.startswith("SELECT id"):
                assert cursor.fetchall() == [("mem-bob", "bob prefers tea")]


@pytest.mark.parametrize("part", re.findall(r"^\| `(\?[^`]+)` \|", GUIDE, re.MULTILINE))
def test_its_parts_of_an_address_are_known(part: str) -> None:
    address = server_address(f"postgresql://app@localhost/memories{part}")
    name = part[1:].partition("=")[0]
    is_ours = name in ("schema", "pool_size", "replica")
    assert is_ours is (name not in address.conninfo)
    if name == "schema":
        assert address.schema == "team"
    if name == "pool_size":
        assert address.pool_size == 20
    if name == "replica":
        assert address.replica is not None
        assert "@db2:5432/" in address.replica.conninfo

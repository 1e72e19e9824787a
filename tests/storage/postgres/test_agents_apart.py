"""One agent's rows cannot be seen or changed by another's verbs, filters, ids, or SQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from postgres_server import PostgresServer
from psycopg import sql

from agent_memory import AgentMemory, AgentMemoryError
from agent_memory.errors import ConfigurationError
from agent_memory.storage.postgres.engine import PostgresEngine

MARK = "zebrafish"
"""A word that stands in everything of Amy's, and in nothing of Bob's."""
SECRET = "quokka"
"""Another one, for which nobody asks: an answer that has it tells what it should not."""

HOSTILE = [
    "amy",
    "amy' OR '1'='1",
    "') OR agent_id = 'amy' --",
    "'; SET agent_memory.agent = 'amy'; --",
    "x') UNION SELECT * FROM memories --",
    "%s", "%(agent)s", "%", "_", "*", "$1", "\\", "''", '"', ";", "{}", "[]", "null", "NULL", "0",
    "-1", "1", "2", "3", "pg_sleep(1)", "agent_memory.agent", "this_agent()", "ámy", "AMY", "amy ",
    "Fact", "tea", MARK, MARK.upper(), f"{MARK}*", f'"{MARK}"', f"-{MARK}", "the " * 50 + MARK,
]  # fmt: skip


_NUMBERS = count()


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """Give the address of a schema that nobody used."""
    schema = f"own_{next(_NUMBERS)}"
    yield postgres.url(schema=schema)
    postgres.administer(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def lived(memory: AgentMemory, word: str, secret: str) -> dict[str, list[Any]]:
    """Fill a store with something of everything, and return what names it."""
    ids = [
        memory.store(
            f"{word} {number} likes tea, but no {secret}{number}",
            tags=[word, secret, "tea"],
            metadata={"of": word, "secret": secret, "number": number},
            user_id=f"{word}-user" if number % 2 else None,
            id=f"mem-{word}-{number}",
        )
        for number in range(6)
    ]
    memory.update(ids[0], content=f"{word} prefers coffee of {secret}")
    memory.archive(ids[1])
    memory.promote(ids[2])
    memory.reject(f"{word} must never be said so", reason=secret)
    edge = memory.graph.add(f"{word} Smith", "works_at", f"{word} {secret} Works")
    memory.graph.add_entity(f"{word} Jones", aliases=[f"{secret} J"])
    engine, now = engine_of(memory), memory.info().created_at
    with engine.write():
        engine.reviews.add(
            1,
            replaced_by=ids[3],
            confidence=0.5,
            reasoning=secret,
            session_id=secret,
            now=now,
        )
    with engine.write():
        for kind, of in (("entity", edge.source_id), ("relationship", edge.id)):
            engine.graph.add_source(kind, of, ids[0], None)
    memory.migrate(embedder="wordllama")
    memory.erase(memory.store(f"{word} {secret} is to be erased"))
    return {
        "ids": [*ids, "mem-none"],
        "graph_ids": [edge.id, edge.source_id, edge.target_id],
        "numbers": [1, 2, 3, 7, 12],
    }


def engine_of(memory: AgentMemory) -> PostgresEngine:
    engine = memory._store._engine
    assert isinstance(engine, PostgresEngine)
    return engine


@pytest.fixture
def amys(url: str) -> Iterator[dict[str, list[Any]]]:
    """Give what names things in the store of Amy, which is in the same schema as Bob's."""
    with AgentMemory("amy", root=url, session_id=SECRET, embedder="wordllama") as memory:
        yield lived(memory, MARK, SECRET)


@pytest.fixture
def bob(url: str, amys: dict[str, list[Any]]) -> Iterator[AgentMemory]:
    del amys
    with AgentMemory("bob", root=url, session_id="bob", embedder="wordllama") as memory:
        lived(memory, "walrus", "numbat")
        yield memory


def schema_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["schema"][0]


def rows_of_amy(postgres: PostgresServer, url: str) -> dict[str, list[Any]]:
    """Return all that is Amy's, as who owns the server sees it."""
    with psycopg.connect(postgres.url("postgres")) as connection:
        schema = sql.Identifier(schema_of(url))
        return {
            table: connection.execute(
                sql.SQL("SELECT t::text FROM {}.{} AS t WHERE agent_id = 'amy' ORDER BY 1").format(
                    schema, sql.Identifier(table)
                )
            ).fetchall()
            for table in tables_of_agents(connection, schema_of(url))
        }


def tables_of_agents(connection: psycopg.Connection[Any], schema: str) -> list[str]:
    rows = connection.execute(
        "SELECT table_name FROM information_schema.columns JOIN information_schema.tables"
        " USING (table_schema, table_name) WHERE column_name = 'agent_id'"
        " AND table_type = 'BASE TABLE' AND table_schema = %s ORDER BY 1",
        (schema,),
    )
    return [table for (table,) in rows]


# Verbs --------------------------------------------------------------------------------------


def told_of_amy(memory_ids: list[str]) -> list[str]:
    return [f"{SECRET} is in {memory_id}" for memory_id in memory_ids if MARK in memory_id]


READING: dict[str, Callable[[AgentMemory, Any], object]] = {
    "get": lambda m, x: m.get(x),
    "history": lambda m, x: m.history(x),
    "search": lambda m, x: m.search(x),
    "search of an agent": lambda m, x: m.search("tea", filters={"agent_id": x}),
    "search of a user": lambda m, x: m.search("tea", filters={"user_id": x}),
    "search of a session": lambda m, x: m.search("tea", filters={"session_id": x}),
    "search of a tag": lambda m, x: m.search("tea", filters={"tags": [x]}),
    "search of a category": lambda m, x: m.search("tea", filters={"category": x}),
    "search of metadata": lambda m, x: m.search("tea", filters={"custom_filters": {"of": x}}),
    "search of a key": lambda m, x: m.search("tea", filters={"custom_filters": {x: {"ne": 1}}}),
    "search not of": lambda m, x: m.search("tea", filters={"custom_filters": {"NOT": {"of": x}}}),
    "search of parts": lambda m, x: m.search(
        "tea", filters={"custom_filters": {"of": {"icontains": x}}}
    ),
    "list": lambda m, x: m.list_recent(limit=50, filters={"user_id": x}),
    "count": lambda m, x: f"{SECRET} is there" * m.count(filters={"user_id": x}),
    "duplicates": lambda m, x: m.duplicates(f"{x} likes tea, but no"),
    "holders": lambda m, x: told_of_amy(m.holders(x)),
    "entity": lambda m, x: m.graph.entity(x),
    "neighbours": lambda m, x: m.graph.neighbours(x, 3),
    "of a memory": lambda m, x: m.graph.of_memory(x),
    "relationships": lambda m, x: m.graph.relationships(x),
    "related": lambda m, x: told_of_amy(m.graph.related_memory_ids(x)),
    "session": lambda m, x: m.session({"user_id": x}).search("tea"),
    "session's list": lambda m, x: m.session({"user_id": x}).list_recent(limit=50),
}
"""What reads something that is named; whatever else it does with the name is no matter here."""


def answers(verb: Callable[[AgentMemory, Any], object], memory: AgentMemory, name: object) -> str:
    """Return all that a verb tells."""
    try:
        return repr(verb(memory, name))
    except AgentMemoryError as error:
        return str(error)


def test_no_verb_tells_anything_of_another_agent(
    url: str, bob: AgentMemory, amys: dict[str, list[Any]]
) -> None:
    names = [
        *HOSTILE,
        *amys["ids"],
        *amys["graph_ids"],
        f"{MARK} Smith",
        f"{MARK} Jones",
        f"{MARK}-user",
        f"{MARK} 2",
    ]
    assert not any(SECRET in str(name) for name in names)
    with AgentMemory("amy", root=url, embedder="wordllama") as amy:
        for label, verb in READING.items():
            told = (answers(verb, amy, name) for name in names)
            assert any(SECRET in answer for answer in told), f"{label} asks for nothing of Amy's"
    tried = 0
    for label, verb in READING.items():
        for name in names:
            assert SECRET not in answers(verb, bob, name), (label, name)
            tried += 1
    assert tried > 1_000


def test_what_takes_no_name_tells_nothing_of_another_agent(
    bob: AgentMemory, tmp_path: Path
) -> None:
    told = [
        bob.info(), bob.statistics(), bob.scratchpad(), bob.list_recent(limit=100), bob.history(),
        bob.reviews(), bob.rejections(), bob.secrets(), list(bob.duplicate_groups()),
        bob.graph.entities(), bob.graph.relationships(), bob.context(),
        bob.limits_passed(), bob.tidy(dry_run=True), bob.search("tea coffee likes answers"),
    ]  # fmt: skip
    for answer in told:
        assert SECRET not in repr(answer)
    bob.graph.export(tmp_path / "graph.graphml")
    assert SECRET not in (tmp_path / "graph.graphml").read_text()
    for name in ("jsonl", "json", "markdown", "csv", "store"):
        place = tmp_path / name
        with suppress(AgentMemoryError):  # not every format is there
            bob.export(place, format=name)
        files = [place, *place.rglob("*")] if place.is_dir() else [place]
        for file in files:
            if file.is_file():
                assert SECRET not in file.read_text(errors="replace"), file


WRITING: dict[str, Callable[[AgentMemory, Any], object]] = {
    "update": lambda m, x: m.update(x, content="changed by Bob"),
    "delete": lambda m, x: m.delete(x),
    "delete_many": lambda m, x: m.delete_many([x]),
    "archive": lambda m, x: m.archive(x),
    "unarchive": lambda m, x: m.unarchive(x),
    "erase": lambda m, x: m.erase(x),
    "promote": lambda m, x: m.promote(x),
    "demote": lambda m, x: m.demote(x),
    "merge": lambda m, x: m.merge(x, ["mem-walrus-5"]),
    "merge into": lambda m, x: m.merge("mem-walrus-4", [x]),
    "undo": lambda m, x: m.undo(x),
    "approve": lambda m, x: m.approve(x),
    "decide": lambda m, x: m.decide(dismiss=[x]),
    "dismiss": lambda m, x: m.dismiss(x),
    "lift": lambda m, x: m.lift(x),
    "remove from the graph": lambda m, x: m.graph.remove(x, "works_at", f"{MARK} {SECRET} Works"),
    "update the graph": lambda m, x: m.graph.update(x, "works_at", "Bob's"),
    "merge entities": lambda m, x: m.graph.merge("walrus Smith", x),
    "add to the graph": lambda m, x: m.graph.add(x, "knows", "walrus Smith"),
    "store by id": lambda m, x: m.store("by Bob", id=x),
    "store of a user": lambda m, x: m.store("by Bob", user_id=x),
    "delete_all": lambda m, x: m.delete_all(user_id=x),
    "configure": lambda m, x: m.configure(categories=[x]),
}


def test_no_verb_changes_anything_of_another_agent(
    postgres: PostgresServer, url: str, bob: AgentMemory, amys: dict[str, list[Any]]
) -> None:
    before = rows_of_amy(postgres, url)
    names = [*HOSTILE[:12], *amys["ids"], *amys["graph_ids"], *amys["numbers"], f"{MARK} Smith"]
    for verb in WRITING.values():
        for name in names:
            answers(verb, bob, name)
    bob.reset(confirm="bob")
    assert rows_of_amy(postgres, url) == before


def test_an_id_may_be_taken_by_both(bob: AgentMemory, amys: dict[str, list[Any]]) -> None:
    """Else it would tell that the other has it."""
    stored = bob.store("Mine", id=amys["ids"][0])
    memory = bob.get(stored)
    assert memory is not None
    assert memory.content == "Mine"


def test_another_agents_store_is_opened_only_by_its_name(url: str, bob: AgentMemory) -> None:
    del bob
    with pytest.raises((AgentMemoryError, ValueError)):
        AgentMemory("amy'--", root=url)
    with AgentMemory("am", root=url) as other:
        assert other.count() == 0


# SQL with the application's role -------------------------------------------------------------


@pytest.fixture
def connection(url: str, bob: AgentMemory) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection of the application's own role, in a transaction of Bob's."""
    del bob
    address = url.replace(f"&schema={schema_of(url)}", "")
    with psycopg.connect(address) as opened:
        opened.execute(f"SET search_path = {schema_of(url)}")
        opened.commit()
        opened.execute("SELECT set_config('agent_memory.agent', 'bob', true)")
        yield opened


def test_every_table_of_agents_keeps_them_apart(url: str, postgres: PostgresServer) -> None:
    AgentMemory("bob", root=url).close()
    with psycopg.connect(postgres.url("postgres")) as connection:
        schema = schema_of(url)
        rows = connection.execute(
            """SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
  EXISTS (SELECT 1 FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'agent_id'),
  (SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a
    ON a.attrelid = c.oid AND a.attnum = i.indkey[0] WHERE i.indrelid = c.oid AND i.indisprimary)
FROM pg_class AS c WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p')""",
            (schema,),
        ).fetchall()
        others = {name for name, _, has_agent, _ in rows if not has_agent}
        assert others == {"schema_migrations", "agent_names"}
        for name, is_kept_apart, has_agent, first_of_key in rows:
            if has_agent:
                assert (name, is_kept_apart, first_of_key) == (name, True, "agent_id")
        views = connection.execute(
            "SELECT relname, reloptions FROM pg_class WHERE relnamespace = %s::regnamespace"
            " AND relkind = 'v'",
            (schema,),
        ).fetchall()
        assert all("security_invoker=true" in (options or []) for _, options in views)


def test_sql_sees_no_row_of_another_agent(connection: psycopg.Connection[Any], url: str) -> None:
    for table in [*tables_of_agents(connection, schema_of(url)), "graph_edges", "graph_entities"]:
        name = sql.Identifier(table)
        for query in (
            "SELECT count(*) FROM {} WHERE agent_id = 'amy'",
            "SELECT count(*) FROM {} WHERE agent_id <> 'bob'",
            "SELECT count(*) FROM {} WHERE agent_id < 'b' OR agent_id > 'c'",
            "DELETE FROM {} WHERE agent_id = 'amy' RETURNING 1",
            "UPDATE {} SET agent_id = agent_id WHERE agent_id = 'amy' RETURNING 1",
        ):
            if table.startswith("graph_") and not query.startswith("SELECT"):
                continue
            rows = connection.execute(sql.SQL(query).format(name)).fetchall()
            assert rows in ([], [(0,)]), (table, query)


_INSERT = """
INSERT INTO {0} SELECT (jsonb_populate_record(NULL::{0}, to_jsonb(t) || {1})).* FROM {0} AS t
LIMIT 1"""


def test_sql_writes_no_row_of_another_agent(
    connection: psycopg.Connection[Any], postgres: PostgresServer, url: str
) -> None:
    before = rows_of_amy(postgres, url)
    refused = set()
    foreign = sql.Literal('{"agent_id": "amy"}')
    for table in tables_of_agents(connection, schema_of(url)):
        name = sql.Identifier(table)
        for query in (
            sql.SQL(_INSERT).format(name, foreign),
            sql.SQL("UPDATE {} SET agent_id = 'amy'").format(name),
        ):
            try:
                with connection.transaction():
                    connection.execute(query)
            except psycopg.errors.InsufficientPrivilege as error:
                refused.add(table if "row-level security" in str(error) else f"{table}: {error}")
            except psycopg.errors.IntegrityError:
                pass  # a trigger, or a key, was faster
    connection.commit()
    assert rows_of_amy(postgres, url) == before
    with psycopg.connect(postgres.url("postgres")) as owner:
        filled = {
            table
            for table in tables_of_agents(owner, schema_of(url))
            if owner.execute(
                sql.SQL("SELECT 1 FROM {} WHERE agent_id = 'bob' LIMIT 1").format(
                    sql.Identifier(schema_of(url), table)
                )
            ).fetchone()
        }
    assert filled <= refused, "each table with rows refuses by the policy itself"


def test_an_error_tells_nothing_of_rows_that_are_not_seen(
    connection: psycopg.Connection[Any],
) -> None:
    """A condition that fails on a row tells that it is there, if it is asked before the policy."""
    rows = connection.execute(
        "SELECT count(*) FROM memories WHERE 1 / CASE WHEN strpos(content, %s) > 0 THEN 0 ELSE 1"
        " END = 1",
        (SECRET,),
    ).fetchone()
    assert rows == (6,)


def test_without_an_agent_there_is_no_row(connection: psycopg.Connection[Any], url: str) -> None:
    connection.commit()  # and with it goes the setting: as behind a pooler of transactions
    for table in tables_of_agents(connection, schema_of(url)):
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
        assert connection.execute(query).fetchone() == (0,), table
    with pytest.raises(psycopg.Error):
        connection.execute("INSERT INTO memories (content) VALUES ('of nobody')")


def test_a_superuser_sees_one_agent_alone(url: str, bob: AgentMemory) -> None:
    """Row-level security is not for him: the library is another role in its transactions."""
    address = url.replace("//app@", "//postgres@")
    with AgentMemory("bob", root=address) as memory:
        assert memory.count() == bob.count()
        engine = engine_of(memory)
        with engine.read():
            assert engine.database.value("SELECT count(DISTINCT agent_id) FROM memories") == 1
            assert (
                engine.database.value(
                    "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
                )
                is False
            )


# In one process ------------------------------------------------------------------------------


def test_agents_of_one_pool_stay_apart(url: str) -> None:
    """Eight threads of four agents use the same few connections by turns."""
    names = [f"agent-{number}" for number in range(4)]
    address = f"{url}&pool_size=3"
    wrong: list[str] = []

    def work(name: str, half: int) -> None:
        with AgentMemory(name, root=address) as memory:
            for number in range(12):
                memory.store(f"{name} says {half}{number} about tea {half * 97 + number}")
                hits = memory.search("tea says")
                wrong.extend(
                    hit.memory.content for hit in hits if not hit.memory.content.startswith(name)
                )
                wrong.extend(
                    each.content
                    for each in memory.list_recent(limit=50)
                    if not each.content.startswith(name)
                )

    AgentMemory("agent-0", root=address).close()
    threads = [
        threading.Thread(target=work, args=(name, half)) for name in names for half in (1, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    for name in names:
        with AgentMemory(name, root=address) as memory:
            assert memory.count() == 24


def test_one_agents_write_keeps_no_other_waiting(url: str) -> None:
    with AgentMemory("amy", root=url) as amy, AgentMemory("bob", root=url) as bob:
        amys = engine_of(amy)
        stored: list[str] = []
        with amys.write():
            thread = threading.Thread(target=lambda: stored.append(bob.store("meanwhile")))
            thread.start()
            thread.join(20)
            assert stored, "bob waits for amy"


def test_a_file_of_another_agent_is_not_taken_for_this_ones(url: str) -> None:
    with AgentMemory("bob", root=url) as memory, pytest.raises(ConfigurationError):
        _ = memory.path

"""What is shown of a server: its version, the schema's, the pool; and nowhere the password."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import pytest
from conftest import engine_of
from postgres_server import Schemas

from agent_memory import AgentMemory, ConfigurationError, load_system_config, memory_arguments
from agent_memory.cli import run
from agent_memory.storage.postgres.schema import latest_version

SECRET = "sw0rdfish"


@pytest.fixture
def url(schemas: Schemas) -> str:
    """Give an address with a password, for which the server does not ask."""
    return schemas.url("own").replace("//app@", f"//app:{SECRET}@") + "&pool_size=3"


def test_info_tells_the_server_and_the_pool(schemas: Schemas, url: str) -> None:
    with AgentMemory("bob", root=url) as memory, AgentMemory("ann", root=url) as other:
        other.store("shares the pool")
        info = memory.info()
        assert info.server is not None
        assert info.schema_version == latest_version()
        assert re.fullmatch(r"\d+(\.\d+)+.*", str(info.server_version))
        assert Path(info.server.host).is_dir(), "the folder of its socket"
        assert info.server.port == 5432
        assert (info.server.pool_size, info.server.waiting) == (3, 0)
        assert 1 <= info.server.connections <= 3
        assert info.server.idle == info.server.connections - 1  # one is asked this
        assert SECRET not in repr(info)
        assert SECRET not in info.model_dump_json()
    with AgentMemory("bob", root=schemas.url("own") + "&pool_size=1") as memory:
        assert memory.info().server is not None  # it needs no second connection


def test_who_waits_for_a_connection_is_counted(schemas: Schemas) -> None:
    with AgentMemory("bob", root=schemas.url("own") + "&pool_size=1") as memory:
        memory.store("one")
        engine = engine_of(memory)
        with engine.read():
            waiting = threading.Thread(target=memory.count)
            waiting.start()
            while not (server := engine.server) or not server.waiting:
                waiting.join(0.01)
                assert waiting.is_alive()
            assert (server.connections, server.idle, server.waiting) == (1, 0, 1)
        waiting.join(20)


def test_info_of_a_file_has_no_server(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        info = memory.info()
        assert (info.server, info.server_version) == (None, None)


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("command", ["info", "doctor", "stats", "agents", "check"])
def test_commands_show_the_server_and_no_password(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: str,
    is_json: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    with AgentMemory("bob", root=url) as memory:
        memory.store("Prefer tea")
    code = run(["--root", url, "--agent", "bob", command, *(["--json"] if is_json else [])])
    assert code == (6 if command == "doctor" else 0)  # it is installed in no host
    shown = capfd.readouterr()
    assert SECRET not in shown.out + shown.err
    data = json.loads(shown.out)["data"] if is_json else {}
    if command == "info" and is_json:
        assert data["server"]["pool_size"] == 3
        assert data["schema_version"] == latest_version()
    if command == "info" and not is_json:
        assert re.search(r"^server_version +\d", shown.out, re.MULTILINE)
        assert re.search(r"^  pool_size +3$", shown.out, re.MULTILINE)
        assert re.search(r"^  idle +\d$", shown.out, re.MULTILINE)
    if command == "doctor" and is_json:
        memory_data = data["memory"]
        assert memory_data["server"]["waiting"] == 0
        assert memory_data["schema_version"] == latest_version()
        assert memory_data["server_version"]
    if command == "doctor" and not is_json:
        pattern = r"^PostgreSQL \S+ at .*, schema version \d+; of 3 connections \d open, \d idle"
        assert re.search(pattern, shown.out, re.MULTILINE)
    if command == "stats" and not is_json:
        assert re.search(r"of text in rows of a database of 0\.0\d MB$", shown.out, re.MULTILINE)


# The section vector_store ------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["pgvector", "postgresql"])
def test_vector_store_names_the_database(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    url, _, schema = schemas.url("named").partition("&schema=")
    AgentMemory("bob", root=f"{url}&schema={schema}").close()
    monkeypatch.setenv("OUR_DATABASE", url)
    section = {
        "provider": provider,
        "connection_string": "${OUR_DATABASE}",
        "collection_name": schema,
        "vector_size": 256,
        "distance_metric": "cosine",
        "timeout": 25,
    }
    config = load_system_config(
        {"vector_store": section, "graph_store": {"enabled": True, "provider": "postgresql"}}
    )
    with AgentMemory("bob", **memory_arguments(config)) as memory:
        memory.store("Prefer tea")
        database = engine_of(memory).database  # type: ignore[attr-defined]
        assert database.value("SHOW statement_timeout") == "25s"
    with AgentMemory("bob", root=f"{url}&schema={schema}") as memory:
        assert memory.count() == 1


def test_add_follows_vector_store_unless_the_command_names_a_root(
    schemas: Schemas, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    url = schemas.url("named")
    settings.write_text(f"vector_store:\n  provider: pgvector\n  connection_string: '{url}'\n")
    message = tmp_path / "chat.json"
    message.write_text('[{"role": "user", "content": "I live in Oslo."}]')
    words = ["add", str(message), "--user", "ann", "--config", str(settings)]
    assert "AGENT_MEMORY_ROOT" not in os.environ
    assert run(["--agent", "bob", *words]) == 0
    with AgentMemory("bob", root=url) as memory:
        assert memory.count() == 1
    assert run(["--agent", "bob", "--root", str(tmp_path / "files"), *words]) == 0
    assert (tmp_path / "files" / "bob" / "memories.db").exists()
    with AgentMemory("bob", root=url) as memory:
        assert memory.count() == 1


REFUSED = [
    ({"connection_string": None}, "must name a database, such as postgresql://user@host/database"),
    ({"connection_string": f"mysql://ann:{SECRET}@x/y"}, "must name a database"),
    ({"connection_string": "${NO_SUCH}"}, "the environment variable NO_SUCH is not set"),
    ({"host": "db.local"}, "vector_store.host is 'db.local'"),
    ({"host": f"ann:{SECRET}@db.local"}, "vector_store.host is set"),
    ({"port": 5433}, "vector_store.port is 5433"),
    ({"api_key": SECRET}, "vector_store.api_key is set"),
    ({"distance_metric": "euclidean"}, "vector_store.distance_metric is 'euclidean'"),
    ({"vector_size": 1536}, "vector_store.vector_size is 1536, and embedder.dimensions 256"),
    ({"collection_name": "My Memories"}, "schema='My Memories' is invalid"),
    ({"collection_name": "team"}, "vector_store.collection_name is 'team', and the"),
    ({"provider": "chroma"}, "vector_store.provider: Input should be 'qdrant', 'pgvector'"),
]


@pytest.mark.parametrize(("section", "message"), REFUSED)
def test_what_a_database_has_not_is_refused(section: dict[str, object], message: str) -> None:
    has_schema = section.get("collection_name") == "team"
    usual = f"postgresql://app:{SECRET}@db/memories" + ("?schema=own" if has_schema else "")
    values = {"provider": "pgvector", "connection_string": usual, **section}
    with pytest.raises(ConfigurationError) as caught:
        memory_arguments(
            load_system_config(
                {"vector_store": values, "embedder": {"model": "x", "dimensions": 256}}, {}
            ),
            {},
        )
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


def test_tls_is_asked_for_where_it_is_set() -> None:
    for verify, mode in ((True, "verify-full"), (False, "require")):
        section = {
            "provider": "pgvector",
            "connection_string": "postgresql://app@db/memories",
            "use_https": True,
            "verify_ssl": verify,
        }
        arguments = memory_arguments(load_system_config({"vector_store": section}, {}), {})
        assert arguments == {"root": f"postgresql://app@db/memories?sslmode={mode}"}

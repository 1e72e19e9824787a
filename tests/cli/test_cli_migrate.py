"""Search by meaning in the shell: migrate, search, embed, rollback, and what else speaks of it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from conftest import PROGRAM, Cli
from embedding_server import EmbeddingServer

from agent_memory import AgentMemory, MigrationPlan, MigrationProgress
from agent_memory.cli import run
from agent_memory.embeddings.registry import EMBEDDERS

CONTENTS = (
    "The cat sleeps on the sofa all afternoon",
    "PostgreSQL was chosen for the billing service",
    "Deploys happen on Tuesday mornings",
)
MODEL = "wordllama-l2-supercat-256"


def store(root: Path, *contents: str) -> list[str]:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        return memory.store_many([{"content": content} for content in contents])


@pytest.fixture
def stored(root: Path) -> list[str]:
    return store(root, *CONTENTS)


@pytest.fixture
def migrated(root: Path, stored: list[str]) -> list[str]:
    with AgentMemory("bob", root=root) as memory:
        memory.migrate(embedder="wordllama")
    return stored


@pytest.fixture
def service(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddingServer:
    """Be where the environment says that OpenAI is."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_DIMENSIONS", "64")
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_RETRIES", "0")
    return server


@pytest.fixture
def served(root: Path, service: EmbeddingServer) -> EmbeddingServer:
    """Have a memory migrated to the service."""
    store(root, *CONTENTS)
    with AgentMemory("bob", root=root) as memory:
        memory.migrate(embedder="openai")
    return service


@pytest.fixture
def bob(cli: Cli) -> Cli:
    """Run a command on the memory of agent bob, as a process of its own."""
    return partial(cli, "--agent", "bob")


def database(root: Path) -> Path:
    return root / "bob" / "memories.db"


def backup(root: Path) -> Path:
    return root / "bob" / "scratchpad.yaml.backup"


def in_terminal(root: Path, *words: str, answer: str) -> tuple[int, str, str]:
    """Run a command in a terminal, answer its question; return its code, stdout, and the screen."""
    ours, theirs = pty.openpty()
    command = [PROGRAM, "--root", str(root), "--agent", "bob", *words]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        screen = b""
        while b"[y/N]" not in screen:
            screen += os.read(ours, 1024)
        os.write(ours, answer.encode() + b"\n")
        try:
            while read := os.read(ours, 1024):
                screen += read
        except OSError:  # Linux says in this way that the other end was closed
            pass
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(ours)
    return process.returncode, out.decode(), screen.decode()


def backend(root: Path) -> str:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        return memory.info().storage_backend


# migrate ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("stored")
def test_a_dry_run_says_what_it_would_take_and_changes_nothing(bob: Cli, root: Path) -> None:
    before = database(root).read_bytes()
    done = bob("migrate", "--embedder", "wordllama", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "3 memories, of which 3 are to be embedded by wordllama" in done.out
    assert "it costs nothing" in done.out
    assert str(backup(root)) in done.out
    plan = MigrationPlan.model_validate(
        bob("migrate", "-e", "wordllama", "--dry-run", "--json").data
    )
    assert (plan.agent_id, plan.memory_count, plan.to_embed) == ("bob", 3, 3)
    assert (plan.current_backend, plan.target_backend) == ("file", "vector")
    assert (plan.embedder, plan.model, plan.dimensions) == ("wordllama", MODEL, 256)
    assert plan.estimated_tokens > 0
    assert database(root).read_bytes() == before
    assert not backup(root).exists()


def test_one_number_of_memories_is_shown_with_how_many_are_archived(
    bob: Cli, stored: list[str], tmp_path: Path
) -> None:
    """`rollback` left the archived ones out that `migrate` had counted: it looked like a loss."""
    assert bob("archive", stored[0]).code == 0
    memories = "3 memories (1 of them archived)"
    assert f"{memories}, of which 3 are" in bob("migrate", "-e", "wordllama", "--dry-run").out
    assert f"{memories} are found by meaning" in bob("migrate", "-e", "wordllama", "--yes").out
    assert f"{memories}, sound" in bob("check").out
    assert f"wrote {memories} to" in bob("export", "-o", str(tmp_path / "all.json")).out
    assert f"{memories} are found by keyword" in bob("rollback", "--yes").out
    assert f"moved {memories} of bob" in bob("move", "--to", str(tmp_path / "there")).out


@pytest.mark.parametrize("command", ["migrate", "rollback", "rollback --from"])
@pytest.mark.usefixtures("migrated")
def test_without_yes_and_without_a_terminal_it_is_wrong_usage_that_names_yes(
    bob: Cli, root: Path, command: str
) -> None:
    before = database(root).read_bytes()
    words = command.split() + ([str(backup(root))] if "--from" in command else [])
    done = bob(*words, input="y\n")
    assert (done.code, done.out) == (2, "")
    assert "--yes" in done.err
    assert database(root).read_bytes() == before


def test_with_yes_memories_are_found_by_meaning_afterwards(
    bob: Cli, root: Path, stored: list[str]
) -> None:
    done = bob("migrate", "--embedder", "wordllama", "--yes")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"done: 3 memories are found by meaning too ({MODEL})\n"
    assert backup(root).exists()
    found = bob("search", "kitten naps", "--json").data
    assert found["results"][0]["memory"]["id"] == stored[0]


@pytest.mark.usefixtures("stored")
def test_a_move_in_json_is_a_migration_progress_and_a_second_one_embeds_nothing(bob: Cli) -> None:
    for embedded in (3, 0):
        done = bob("migrate", "--embedder", "wordllama", "--yes", "--json")
        progress = MigrationProgress.model_validate(done.data)
        assert (progress.status, progress.errors, done.err) == ("completed", [], "")
        assert progress.embeddings_generated == embedded
        assert progress.memories_processed == progress.vectors_stored == 3
        assert progress.completed_at is not None


def test_an_agent_whose_memories_are_all_gone_can_move(bob: Cli, root: Path) -> None:
    (only,) = store(root, "soon gone")
    bob("forget", only, "--yes")
    done = bob("migrate", "--embedder", "wordllama", "--yes")
    assert (done.code, done.err, backend(root)) == (0, "", "vector")
    bob("store", CONTENTS[0])
    assert len(bob("search", "kitten naps", "--json").data["results"]) == 1


@pytest.mark.parametrize("command", ["migrate", "rollback", "embed"])
def test_an_agent_that_is_not_known_is_not_made(cli: Cli, root: Path, command: str) -> None:
    words = [] if command == "embed" else ["--yes"]
    done = cli("--agent", "zed", command, *words)
    assert (done.code, done.out) == (5, "")
    assert "'zed' has no memories yet" in done.err
    assert not (root / "zed").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [("wordlama", "unknown embedder 'wordlama': use one of"), ("openai", "OPENAI_API_KEY"),
     ("wordllama:100", "64, 128 or 256"), ("none", "name another with --embedder")],
)  # fmt: skip
@pytest.mark.usefixtures("stored")
def test_an_embedder_that_cannot_be_had_is_refused_by_name(
    bob: Cli, root: Path, name: str, said: str
) -> None:
    done = bob("migrate", "--embedder", name, "--yes")
    assert (done.code, done.out) == (4, "")
    assert said in done.err
    assert "Traceback" not in done.err
    assert backend(root) == "file"


@pytest.mark.usefixtures("stored")
def test_where_there_is_no_embedder_it_says_what_to_install(bob: Cli, tmp_path: Path) -> None:
    packages = [kind.package for kind in EMBEDDERS.values() if kind.package]
    hiding = f"import sys\nfor name in {packages}:\n"
    (tmp_path / "sitecustomize.py").write_text(f"{hiding}    sys.modules[name] = None\n")
    env = {"PYTHONPATH": str(tmp_path)}
    for name in ("auto", "wordllama"):
        done = bob("migrate", "-e", name, "--yes", env=env)
        assert (done.code, done.out) == (4, "")
        assert "pip install 'agent-memory[local]'" in done.err
    found = bob("search", "PostgreSQL", env=env)
    assert (found.code, found.err) == (0, "")
    assert CONTENTS[1] in found.out


@pytest.mark.usefixtures("stored")
def test_in_a_terminal_it_shows_the_plan_and_asks(root: Path) -> None:
    before = database(root).read_bytes()
    code, out, screen = in_terminal(root, "migrate", "-e", "wordllama", answer="n")
    assert "3 memories, of which 3 are to be embedded by wordllama" in screen
    assert "nothing was changed" in screen
    assert (code, out, database(root).read_bytes()) == (1, "", before)
    assert not backup(root).exists()
    code, out, screen = in_terminal(root, "migrate", "-e", "wordllama", answer="y")
    assert "100%" in screen  # the bar
    assert (code, out) == (0, f"done: 3 memories are found by meaning too ({MODEL})\n")
    assert backend(root) == "vector"


def test_ctrl_c_leaves_nothing_half_done_and_the_next_move_goes_on_from_there(
    bob: Cli, root: Path, service: EmbeddingServer
) -> None:
    contents = [f"memory number {number}" for number in range(250)]
    store(root, *contents)
    service.behaviour.delay_seconds = 1.0
    command = [PROGRAM, "--root", str(root), "--agent", "bob", "migrate", "--yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while len(service.requests) < 2 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert "nothing was left half done" in err.decode()
    assert backend(root) == "file"
    service.behaviour.delay_seconds = 0.0
    assert bob("migrate", "--dry-run", "--json").data["to_embed"] == 150
    done = bob("migrate", "--yes")
    assert (done.code, done.err) == (0, "")
    kept = contents[:100]  # those whose batch was answered before Ctrl-C
    assert sorted(text for text in service.texts if text in kept) == sorted(kept)
    assert backend(root) == "vector"


# search -----------------------------------------------------------------------------------------


def test_a_search_in_json_says_how_it_went(bob: Cli, migrated: list[str]) -> None:
    data = bob("search", "kitten naps", "--json").data
    best = data["results"][0]
    assert (best["memory"]["id"], best["match_type"]) == (migrated[0], "scratchpad")
    assert 0 < best["similarity"] <= 1
    metadata = data["search_metadata"]
    assert (metadata["backend"], metadata["degraded"]) == ("vector", [])
    assert metadata["embedding_time_ms"] > 0
    assert metadata["vector_search_time_ms"] > 0
    assert metadata["processing_time_ms"] >= metadata["embedding_time_ms"]


def test_a_search_without_the_service_goes_on_by_keyword_and_says_so_beside_its_output(
    bob: Cli, served: EmbeddingServer
) -> None:
    served.behaviour.hang_up = True
    done = bob("search", "PostgreSQL", "--json")
    assert done.code == 0
    assert done.data["results"][0]["memory"]["content"] == CONTENTS[1]
    assert done.data["search_metadata"]["backend"] == "file"
    (degraded,) = done.data["search_metadata"]["degraded"]
    assert "by keyword only" in degraded
    assert done.err == f"note: {degraded}\n"


# embed ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("migrated")
def test_embed_with_nothing_that_waits_says_0(bob: Cli) -> None:
    done = bob("embed")
    assert (done.code, done.out, done.err) == (0, "embedded 0 memories\n", "")
    assert bob("embed", "--json").data == {"embedded": 0}


def test_what_was_stored_while_the_service_failed_is_embedded_later(
    bob: Cli, served: EmbeddingServer
) -> None:
    served.behaviour.status = 503
    assert bob("store", "stored in the dark").code == 0
    assert bob("info", "--json").data["pending_embeddings"] == 1
    failed = bob("embed")
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("Error: ")
    served.behaviour.status = 200
    assert bob("embed").out == "embedded 1 memory\n"
    assert served.texts.count("stored in the dark") == 1
    assert bob("info", "--json").data["pending_embeddings"] == 0


@pytest.mark.usefixtures("stored")
def test_embed_says_what_to_do_where_a_move_was_not_finished(
    bob: Cli, service: EmbeddingServer
) -> None:
    service.behaviour.status = 503
    failed = bob("migrate", "--yes")
    assert failed.code == 1
    assert "run migrate again" in failed.err
    service.behaviour.status = 200
    done = bob("embed")
    assert "embedded 3 memories" in done.out or "migrate" in done.out + done.err


# rollback ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("migrated")
def test_rollback_goes_back_to_keywords_and_keeps_every_memory(bob: Cli) -> None:
    bob("store", "stored since the move")
    done = bob("rollback", "--yes")
    assert (done.code, done.out, done.err) == (0, "4 memories are found by keyword\n", "")
    (best, *_) = bob("search", "since the move", "--json").data["results"]
    assert best["memory"]["content"] == "stored since the move"
    assert bob("check").code == 0


@pytest.mark.usefixtures("stored")
def test_rollback_where_there_is_nothing_to_go_back_from_says_so(bob: Cli) -> None:
    done = bob("rollback")
    assert (done.code, done.err) == (0, "")
    assert "there were no vectors" in done.out
    assert bob("rollback", "--yes", "--json").data == {"rolled_back": False, "memory_count": 3}


def test_rollback_from_a_backup_makes_a_damaged_file_anew(
    bob: Cli, root: Path, migrated: list[str]
) -> None:
    database(root).write_bytes(b"this is no database any more" * 1_000)
    assert bob("search", "PostgreSQL").code == 5
    data = bob("rollback", "--from", str(backup(root)), "--yes", "--json").data
    assert (data["memory_count"], data["from_file"], data["from_backup"]) == (3, 0, 3)
    assert Path(data["set_aside"]).read_bytes().startswith(b"this is no database any more")
    hits = bob("search", "PostgreSQL", "--json").data["results"]
    assert hits[0]["memory"]["id"] == migrated[1]
    assert bob("check").code == 0


@pytest.mark.usefixtures("migrated")
def test_rollback_from_a_backup_makes_a_missing_file_anew(bob: Cli, root: Path) -> None:
    database(root).unlink()
    done = bob("rollback", "--from", str(backup(root)), "--yes")
    assert (done.code, done.err) == (0, "")
    assert "rebuilt with 3 memories" in done.out
    assert "None" not in done.out  # there is no old file to name


@pytest.mark.usefixtures("migrated")
def test_rollback_from_a_backup_leaves_a_sound_file_alone(bob: Cli, root: Path) -> None:
    done = bob("rollback", "--from", str(backup(root)), "--yes")
    assert (done.code, done.out) == (1, "")
    assert "is intact" in done.err
    assert backend(root) == "vector"


@pytest.mark.usefixtures("stored")
def test_rollback_from_what_is_no_scratchpad_leaves_the_damaged_file_as_it_is(
    bob: Cli, root: Path, tmp_path: Path
) -> None:
    database(root).write_bytes(b"damaged")
    other = tmp_path / "other.yaml"
    other.write_text("colour: violet\n")
    done = bob("rollback", "--from", str(other), "--yes")
    assert (done.code, done.out) == (4, "")
    assert "not a scratchpad" in done.err
    assert database(root).read_bytes() == b"damaged"
    assert sorted(path.name for path in (root / "bob").iterdir()) == ["memories.db"]


# What else speaks of it -------------------------------------------------------------------------


@pytest.mark.usefixtures("migrated")
def test_info_names_the_model_of_the_vectors(bob: Cli) -> None:
    data = bob("info", "--json").data
    assert (data["storage_backend"], data["vector_model"]) == ("vector", MODEL)
    assert (data["vector_dimensions"], data["pending_embeddings"]) == (256, 0)
    assert (data["migration"]["can_rollback"], data["suggestion"]) == (True, None)
    assert MODEL in bob("info").out


def test_from_the_threshold_on_store_and_info_suggest_to_migrate(bob: Cli, root: Path) -> None:
    store(root, *(f"memory number {number}" for number in range(98)))
    assert bob("configure", "migration_threshold", "100").code == 0
    assert bob("store", "one below it").err == ""
    assert bob("info", "--json").data["suggestion"] is None
    done = bob("store", "the hundredth", "--json")
    assert done.data["memory_id"].startswith("mem-")
    assert done.err.startswith("note: 100 memories: run `agent-memory migrate`")
    assert bob("info", "--json").data["suggestion"] in done.err
    assert bob("migrate", "-e", "wordllama", "--yes").code == 0
    assert bob("store", "after the move").err == ""


BROKEN_INDEX = "UPDATE embedding_index_1_vector_chunks00 SET vectors = zeroblob(length(vectors))"


@pytest.mark.parametrize(
    ("kind", "sql"),
    [("stale_vector_index", BROKEN_INDEX),
     ("wrong_embedding", "UPDATE embeddings SET vector = zeroblob(256)")],
)  # fmt: skip
def test_check_finds_and_mends_what_is_wrong_with_vectors(
    bob: Cli, root: Path, migrated: list[str], kind: str, sql: str
) -> None:
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2])"
    command = [sys.executable, "-c", f"{code}; c.commit()", str(database(root)), sql]
    subprocess.run(command, check=True)
    found = bob("check")
    assert found.code == 6
    assert kind in found.out
    mended = bob("check", "--repair", "--json")
    assert mended.code == 0
    assert all(problem["repaired"] for problem in mended.data["problems"])
    assert bob("embed").code == 0
    assert bob("check").out == "3 memories, sound\n"
    assert bob("search", "kitten naps", "--json").data["results"][0]["memory"]["id"] == migrated[0]


def test_a_key_that_the_service_repeats_is_printed_and_kept_nowhere(
    bob: Cli, root: Path, served: EmbeddingServer, capfd: pytest.CaptureFixture[str]
) -> None:
    served.behaviour.status = 401
    served.behaviour.error_message = "Incorrect API key provided: sk-verysecret"
    move = "migrate -e openai:another-model --yes"
    commands = f"store it,search it,search it --json,embed,embed --json,{move},{move} --json,info"
    for command in commands.split(","):
        run(["--root", str(root), "--agent", "bob", *command.split()])
    traceback = bob("--debug", "embed").err
    assert "Traceback" in traceback
    printed = "".join(capfd.readouterr()) + traceback
    assert "refused the key" in printed or "401" in printed
    assert "verysecret" not in printed
    for path in filter(Path.is_file, (root / "bob").rglob("*")):
        assert b"verysecret" not in path.read_bytes()

"""The hook as hosts run it: a process, their JSON on stdin, their form of an answer on stdout."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from embedding_server import Behaviour, EmbeddingServer
from host_inputs import EVENTS, PROGRAM, WITHIN_SECONDS, Answer, answer, event

from agent_memory import AgentMemory
from agent_memory.integrations.hosts.hook import (
    DEADLINE_SECONDS,
    occasion_of,
    parse,
    seconds_allowed,
)
from agent_memory.integrations.hosts.journal import MOST_BYTES, Journal, ShownMemories
from agent_memory.integrations.hosts.occasion import Outcome
from agent_memory.integrations.hosts.project import project_of
from agent_memory.integrations.hosts.session import (
    PAD_TOKENS,
    PROMPT_TOKENS,
    RECENT_TOKENS,
    recall,
)
from agent_memory.integrations.hosts.table import HOSTS
from agent_memory.services.rendering import estimate_tokens

SCHEMAS = Path(__file__).parent / "schemas"
TOPICS = ("invoices", "refunds", "shipments", "returns", "coupons")
HEADING_TOKENS = 70
"""Of the line that says whose memories they are, and of what was left out."""
FACT = "The billing service is deployed with Nomad"
SAID = "Remember that staging is in Oslo."
hosts = pytest.mark.parametrize("host", EVENTS)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    return folder


def memory_of(root: Path, project: Path, **options: Any) -> AgentMemory:
    return AgentMemory(project_of(str(project)).agent_id, root=root, **options)


def contents(root: Path, project: Path) -> list[str]:
    with memory_of(root, project) as memory:
        return [entry.content for entry in memory.list_recent(100)]


def log_of(root: Path, project: Path) -> list[dict[str, Any]]:
    return list(Journal(str(root / project_of(str(project)).agent_id)).entries())


def ask(root: Path, project: Path, text: str, host: str = "claude-code", **fields: Any) -> Answer:
    return answer(root, host, event(host, "prompt", project, text, **fields))


def ask_in_time(root: Path, project: Path, text: str) -> Answer:
    """Ask with the time that hosts are promised."""
    return answer(root, "claude-code", event("claude-code", "prompt", project, text), seconds=None)


# What each host is answered -------------------------------------------------------------------


@hosts
def test_a_prompt_is_answered_in_the_hosts_form(root: Path, project: Path, host: str) -> None:
    with memory_of(root, project) as memory:
        memory_id = memory.store(FACT)
    done = ask(root, project, "how is billing deployed?", host)
    assert (done.code, done.err) == (0, "")
    assert FACT in done.context
    assert memory_id in done.context
    place = root / project_of(str(project)).agent_id / "memories.db"
    assert done.context.startswith(f"Memory of agent {place.parent.name} ({place}):\n")
    assert len(done.context) <= HOSTS[host].most_characters
    fields = json.loads(done.out)
    if host == "cursor":
        assert fields.keys() == {"continue", "additional_context"}
        assert fields["continue"] is True
    else:
        name = EVENTS[host]["prompt"]["hook_event_name"]
        assert fields.keys() == {"hookSpecificOutput"}
        assert fields["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
        assert fields["hookSpecificOutput"]["hookEventName"] == name


@pytest.mark.parametrize(
    ("kind", "schema"),
    [("start", "codex-session-start"), ("prompt", "codex-user-prompt-submit")],
)
def test_codex_is_answered_as_its_own_schema_says(
    root: Path, project: Path, kind: str, schema: str
) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    done = answer(root, "codex", event("codex", kind, project, "billing deployed?"))
    assert FACT in done.context
    described = json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(done.out), described)
    with pytest.raises(jsonschema.ValidationError):  # the schema refuses what Codex refuses
        jsonschema.validate({**json.loads(done.out), "memories": 1}, described)


@hosts
def test_where_nothing_was_ever_stored_nothing_is_said_and_no_memory_made(
    root: Path, project: Path, host: str
) -> None:
    for kind in EVENTS[host]:
        text = "" if kind == "summary" else "what do we know? NOTE: "
        done = answer(root, host, event(host, kind, project, text))
        assert (done.code, done.err) == (0, "")
        assert done.out == ("{}" if host == "gemini" else "")
    assert list(root.rglob("memories.db")) == []
    outcomes = [entry["outcome"] for entry in log_of(root, project)]
    assert outcomes.count("noted") == 3
    assert outcomes.count("nothing") == len(EVENTS[host])  # three of them of what was noted


@hosts
def test_a_session_begins_with_the_scratchpad_and_what_was_stored_last(
    root: Path, project: Path, host: str
) -> None:
    with memory_of(root, project) as memory:
        memory.configure(scratchpad_max_size=10)
        ids = [memory.store(f"Step {number} of the move to Nomad is done") for number in range(14)]
    done = answer(root, host, event(host, "start", project))
    assert "## Recent Memories (10 entries" in done.context
    assert "Stored last in this project, newest first:" in done.context
    assert all(done.context.count(f"{{{memory_id} by") <= 1 for memory_id in ids)
    assert len([1 for memory_id in ids if memory_id in done.context]) == 14


def test_prompts_of_the_host_itself_are_not_answered(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    assert ask(root, project, "billing deployed?", source="schedule_wakeup").out == ""
    assert FACT in ask(root, project, "billing deployed?", source="user").context


# What a session was given already -------------------------------------------------------------


def test_a_session_is_given_no_memory_twice_until_it_loses_them(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    assert FACT in answer(root, "claude-code", event("claude-code", "start", project)).context
    assert ask(root, project, "how is billing deployed?").out == ""
    assert FACT in ask(root, project, "how is billing deployed?", session_id="another").context
    assert ask(root, project, "how is billing deployed?", session_id="another").out == ""
    resumed = event("claude-code", "start", project, source="resume")
    assert answer(root, "claude-code", resumed).out == ""
    compacted = event("claude-code", "start", project, source="compact")
    assert FACT in answer(root, "claude-code", compacted).context


def test_fifty_hooks_at_once_give_a_session_each_memory_once(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        ids = [memory.store(f"Billing rule {n}: invoices of plan {n} are due") for n in range(12)]
    with ThreadPoolExecutor(50) as pool:
        done = list(pool.map(lambda _: ask(root, project, "billing rule of invoices"), range(50)))
    assert {one.code for one in done} == {0}
    assert all(one.out == "" or json.loads(one.out) for one in done)
    shown = "".join(one.context for one in done)
    assert max(shown.count(f"{{{memory_id} by") for memory_id in ids) <= 1
    with memory_of(root, project) as memory:
        assert memory.check().ok


def test_what_does_not_fit_is_said_and_comes_next(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        for number in range(10):
            memory.store(f"Billing rule {number}: " + f"invoices of plan {number} are due. " * 12)
    first = ask(root, project, "billing rule of invoices")
    assert " more match and did not fit: memory_search finds them." in first.context
    second = ask(root, project, "billing rule of invoices")
    assert "Billing rule" in second.context
    shown = [line for line in first.context.splitlines() if line.startswith("- ")]
    assert not set(shown) & set(second.context.splitlines())


def test_a_day_of_sessions_gives_nothing_twice_and_stays_within_the_budget(
    root: Path, project: Path
) -> None:
    with memory_of(root, project) as memory:
        for number in range(60):
            memory.store(f"Rule {number}: {TOPICS[number % 5]} are checked by team {number} " * 4)
    for session in range(20):
        shown: list[str] = []
        for name, fields in [("SessionStart", {}), *[("UserPromptSubmit", {"prompt": topic})
                                                     for topic in TOPICS]]:  # fmt: skip
            call = parse(["claude-code", name, "--root", str(root)])
            assert not isinstance(call, str)
            data = json.dumps({"session_id": f"day-{session}", "cwd": str(project), **fields})
            recall(occasion_of(call, data.encode()), outcome := Outcome())
            most = PAD_TOKENS + RECENT_TOKENS if name == "SessionStart" else PROMPT_TOKENS
            assert estimate_tokens(outcome.context) <= most + HEADING_TOKENS
            entries = [line for line in outcome.context.splitlines() if line.startswith("- ")]
            shown += [line.rpartition("{")[2] for line in entries]
        assert len(shown) > 10
        assert len(shown) == len(set(shown))


@pytest.mark.parametrize("asked", ["how is billing deployed?\n{}", "{}\nhow is billing deployed?"])
def test_what_is_asked_before_or_after_a_pasted_log_is_answered(
    root: Path, project: Path, asked: str
) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    log = "\n".join(f"10:{line % 60:02} worker {line} restarted" for line in range(400))
    assert FACT in ask(root, project, asked.format(log)).context


def test_an_unrelated_prompt_is_answered_with_nothing(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    assert ask(root, project, "write a haiku about autumn leaves").out == ""


# What is kept ---------------------------------------------------------------------------------


@hosts
def test_what_the_user_the_agent_and_a_tool_say_is_captured(
    root: Path, project: Path, host: str
) -> None:
    said = {
        "prompt": "Remember that staging lives in Oslo.",
        "turn": "We decided to queue the invoices in SQLite.",
        "tool": "IMPORTANT: the port of the gateway is 8443 from now on.",
    }
    for kind, text in said.items():
        done = answer(root, host, event(host, kind, project, text))
        assert (done.code, done.out) == (0, "{}" if host == "gemini" else "")
    kept = " ".join(contents(root, project))
    assert "staging lives in Oslo" in kept
    assert "queue the invoices in SQLite" in kept
    assert "the port of the gateway is 8443" in kept
    assert sum(entry.get("captured", 0) for entry in log_of(root, project)) == 3
    with memory_of(root, project) as memory:
        sources = {entry.created_by_session for entry in memory.list_recent(10)}
    assert sources == {f"{host}-1c2b9e47"}


def test_the_first_prompt_of_all_is_found_by_the_next_command(root: Path, project: Path) -> None:
    data = json.dumps(event("claude-code", "prompt", project, SAID)).encode()
    chosen = ["--root", str(root), "--agent", "new"]
    words = [PROGRAM, "hook", "claude-code", "UserPromptSubmit", *chosen]
    subprocess.run(words, input=data, capture_output=True, check=True)
    search = [PROGRAM, *chosen, "search", "staging"]  # at once, while the memory is being created
    found = subprocess.run(search, capture_output=True, text=True, check=True).stdout
    assert "staging is in Oslo" in found


def test_what_was_recalled_is_not_captured_again(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store("We decided to queue the invoices in SQLite.")
    context = ask(root, project, "where do we queue invoices?").context
    assert "queue the invoices" in context
    for text in (context, "Remember: we decided to queue the invoices in SQLite."):
        answer(root, "claude-code", event("claude-code", "turn", project, text))
        answer(root, "claude-code", event("claude-code", "tool", project, text))
    assert contents(root, project) == ["We decided to queue the invoices in SQLite."]


def test_our_own_tools_are_not_captured(root: Path, project: Path) -> None:
    tool = event("claude-code", "tool", project, "IMPORTANT: the port of the gateway is 8443.")
    answer(root, "claude-code", tool | {"tool_name": "mcp__agent-memory__memory_search"})
    assert list(root.rglob("memories.db")) == []


def test_a_summary_is_kept_whole_without_what_was_recalled_and_without_secrets(
    root: Path, project: Path
) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    ask(root, project, "how is billing deployed?")
    text = f"1. Moved the queue. {FACT}. The token is ghp_{'a1B2' * 9}.\n" + "More. " * 3_000
    done = answer(root, "claude-code", event("claude-code", "summary", project, text))
    assert (done.code, done.out) == (0, "")
    with memory_of(root, project) as memory:
        (summary,) = memory.list_recent(5, filters={"tags": ["session-summary"]})
        assert summary.content.startswith("1. Moved the queue.")
        assert FACT not in summary.content
        assert "ghp_" not in summary.content
        assert "[masked: " in summary.content
        assert summary.metadata["auto_captured"] is True
        assert summary.id not in [entry.id for entry in memory.scratchpad().memories]
    other = event("claude-code", "start", project, session_id="the next one")
    assert "1. Moved the queue." in answer(root, "claude-code", other).context


def test_a_standing_order_in_a_prompt_is_stored_and_a_task_is_not(
    root: Path, project: Path
) -> None:
    for prompt in ("Use pytest instead of unittest.", "Use the other file for now."):
        answer(root, "gemini", event("gemini", "prompt", project, prompt), "--agent", "bob")
    with AgentMemory("bob", root=root) as memory:
        assert [kept.content for kept in memory.get_all()] == ["Use pytest instead of unittest."]


# Which agent ----------------------------------------------------------------------------------


def test_an_agent_that_is_named_goes_before_the_projects(root: Path, project: Path) -> None:
    data = event("codex", "prompt", project, "Remember that staging lives in Oslo.")
    answer(root, "codex", data, "--agent", "bob")
    assert [folder.name for folder in root.iterdir()] == ["bob"]
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 1


@pytest.mark.parametrize("agent_id", ["../elsewhere", "con"])
def test_an_agent_that_is_a_path_or_a_device_is_refused(
    root: Path, project: Path, agent_id: str
) -> None:
    data = event("codex", "prompt", project, "Remember that staging lives in Oslo.")
    done = answer(root, "codex", data, "--agent", agent_id)
    assert (done.code, done.out) == (0, "")
    assert f"{agent_id!r} is not an agent id" in done.err
    assert not root.exists()
    assert not (root.parent / "elsewhere").exists()


def test_without_a_sessions_name_nothing_is_taken_for_given(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    for _ in range(2):
        assert FACT in ask(root, project, "how is billing deployed?", session_id="").context
    assert list(root.rglob("session-*")) == []


def test_the_project_is_that_of_the_launch_and_not_where_a_command_went(
    root: Path, project: Path, tmp_path: Path
) -> None:
    (elsewhere := tmp_path / "elsewhere" / ".git").mkdir(parents=True)
    data = event("claude-code", "prompt", elsewhere.parent, "Remember that staging is in Oslo.")
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(project)}
    answer(root, "claude-code", data, env=environment)
    assert [folder.name for folder in root.iterdir()] == [project_of(str(project)).agent_id]


# Whatever happens -----------------------------------------------------------------------------


DEEP = b"[" * 100_000
ODD_INPUTS = {
    "nothing": b"",
    "blank": b"\n",
    "garbage": b"\xff\xfe not JSON",
    "deep": DEEP,
    "list": b"[1, 2]",
    "text": b'"SessionStart"',
    "wrong types": b'{"session_id": 7, "cwd": ["x"], "prompt": {"a": 1}, "workspace_roots": 3}',
    "surrogate": b'{"prompt": "Remember \\ud800 that half.", "session_id": "\\ud800", "cwd": "/"}',
    "too long": b'{"prompt": "' + b"x" * (17 * 2**20) + b'"}',
}


@hosts
@pytest.mark.parametrize("name", ODD_INPUTS)
def test_no_input_fails_the_host(root: Path, project: Path, host: str, name: str) -> None:
    shown = EVENTS[host]["prompt"]["hook_event_name"]
    done = answer(root, host, ODD_INPUTS[name], "--agent", "bob", name=shown, cwd=project)
    assert done.code == 0
    assert done.out in ("", "{}")
    entry, *_ = Journal(str(root / "bob")).entries()
    assert (entry["host"], entry["event"]) == (host, shown)
    is_fault = name in ("garbage", "deep", "list", "text", "too long")
    usual = "noted" if name == "surrogate" else "nothing"
    assert entry["outcome"] == ("failed" if is_fault else usual)
    assert "x" * 50 not in json.dumps(entry)


@pytest.mark.parametrize("field", ["cwd", "workspace_roots"])
@pytest.mark.parametrize("folder", ["\0", "/a\0b", "/\ud800"])
def test_a_folder_that_is_no_path_is_named_in_the_log(
    root: Path, project: Path, field: str, folder: str
) -> None:
    data = event("codex", "prompt", project, "Remember that staging lives in Oslo.")
    data[field] = [folder] if field == "workspace_roots" else folder
    done = answer(root, "codex", data, cwd=project)
    assert (done.code, done.out) == (0, "")
    (entry,) = log_of(root, project)
    assert entry["why"] == f"UnreadableInput: {field} is not a path: {folder!r}"
    assert entry["why"] in done.err
    answer(root, "codex", data, "--agent", "bob")
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 1, "whose memory it is was said"


@pytest.mark.parametrize(
    "words", [[], ["emacs", "start"], ["claude-code"], ["vscode", "x"], ["codex", "Stop", "more"]]
)
def test_wrong_usage_blocks_no_prompt_either(words: list[str]) -> None:
    done = subprocess.run([PROGRAM, "hook", *words], input=b"{}", capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"agent-memory: " in done.stderr


@pytest.mark.parametrize("words", [["codex", "Nothing"], ["codex", "Stop", "--agent", "../bob"]])
def test_a_host_is_heard_out_whatever_is_wrong(words: list[str]) -> None:
    """One that writes to a closed pipe may fail."""
    with subprocess.Popen([PROGRAM, "hook", *words], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b" " * 1_000_000)
        process.stdin.close()
        assert process.wait() == 0


def test_a_host_in_a_deleted_folder_is_answered(root: Path, project: Path) -> None:
    """Its input says which project it is."""
    with memory_of(root, project) as memory:
        memory.store(FACT)
    gone = root.parent / "gone"
    gone.mkdir()
    data = json.dumps(event("codex", "prompt", project, "billing deployed?")).encode()
    words = [PROGRAM, "hook", "codex", "UserPromptSubmit", "--root", str(root)]
    script = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *words]
    environment = {**os.environ, "AGENT_MEMORY_HOOK_SECONDS": "60"}
    done = subprocess.run(script, cwd=gone, input=data, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert FACT in done.stdout.decode()


@pytest.mark.parametrize("seconds", ["inf", "nan", "-1", "0", "soon", "1e300"])
def test_a_time_limit_that_cannot_be_is_none(
    root: Path, project: Path, seconds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_HOOK_SECONDS", seconds)
    assert seconds_allowed() == DEADLINE_SECONDS
    if seconds == "inf":
        done = ask_in_time(root, project, "billing deployed?")
        assert (done.code, done.err) == (0, "")


def test_ten_megabytes_are_looked_through(root: Path, project: Path) -> None:
    text = "line of a log\n" * 700_000 + "NOTE: the port of the gateway is 8443 from now on.\n"
    data = event("claude-code", "tool", project, text)
    assert len(json.dumps(data)) > 10_000_000
    done = answer(root, "claude-code", data)
    assert (done.code, done.out) == (0, "")
    assert log_of(root, project)[0]["outcome"] == "noted"
    assert "the port of the gateway is 8443 from now on." in contents(root, project)


def test_a_host_that_closes_everything_is_no_error(root: Path, project: Path) -> None:
    command = f"'{PROGRAM}' hook codex Stop --root '{root}' <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=project).returncode == 0


def test_stdin_that_never_ends_is_not_waited_for(root: Path, project: Path) -> None:
    started = time.monotonic()
    with subprocess.Popen(
        [PROGRAM, "hook", "gemini", "BeforeAgent", "--root", str(root), "--agent", "bob"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.read() == b"{}"
        assert process.wait() == 0
    assert time.monotonic() - started < WITHIN_SECONDS
    (entry,) = Journal(str(root / "bob")).entries()
    assert entry["outcome"] == "late"


@pytest.mark.parametrize("kind", ["start", "prompt"])
def test_a_locked_database_keeps_nobody_waiting(root: Path, project: Path, kind: str) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
        path = memory.info().path
    code = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        " c.execute('PRAGMA locking_mode=EXCLUSIVE'); c.execute('BEGIN EXCLUSIVE');"
        " print('locked', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        data = event("claude-code", kind, project, SAID)
        done = answer(root, "claude-code", data, seconds=None)
        holder.kill()
    assert (done.code, done.out) == (0, "")
    assert done.seconds < WITHIN_SECONDS
    entry = log_of(root, project)[-1]
    assert entry["outcome"] in ("late", "failed")
    assert entry.get("noted") == (1 if kind == "prompt" else None)
    assert FACT in ask(root, project, "billing deployed?").context
    if kind == "prompt":
        assert "staging is in Oslo." in contents(root, project)


def test_what_is_said_is_kept_where_the_memory_cannot_be_read(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
        path = Path(memory.info().path)
    path.rename(f"{path}.away")
    path.write_text("no database")
    done = answer(root, "claude-code", event("claude-code", "prompt", project, SAID))
    assert (done.code, done.out) == (0, "")
    assert "is not a database" in done.err
    assert log_of(root, project)[-1]["noted"] == 1
    Path(f"{path}.away").rename(path)
    ask(root, project, "billing deployed?")
    assert "staging is in Oslo." in contents(root, project)


def test_a_held_session_file_keeps_nobody_waiting(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    ask(root, project, "something else entirely")
    (state,) = root.rglob("session-*.txt")
    with state.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = ask_in_time(root, project, "billing deployed?")
    assert (done.code, done.out) == (0, "")
    assert done.seconds < WITHIN_SECONDS
    assert log_of(root, project)[-1]["outcome"] == "late"


@pytest.mark.parametrize("name", ["log.jsonl", "session", "memories.db"])
def test_pipes_in_the_place_of_files_keep_nobody_waiting(
    root: Path, project: Path, name: str
) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    ask(root, project, "something else entirely")
    (path,) = root.rglob("session-*.txt" if name == "session" else name)
    path.unlink()
    os.mkfifo(path)
    done = ask_in_time(root, project, "billing deployed?")
    assert done.code == 0
    assert done.seconds < WITHIN_SECONDS
    assert (FACT in done.context) == (name == "log.jsonl")


def test_a_provider_that_hangs_leaves_keywords(
    root: Path, project: Path, server: EmbeddingServer
) -> None:
    server.behaviour.dimensions = 1_536
    environment = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url}
    agent = project_of(str(project)).agent_id
    code = (
        "import sys; from agent_memory import AgentMemory\n"
        "with AgentMemory(sys.argv[1], root=sys.argv[2], embedder='openai') as memory:\n"
        "    memory.store(sys.argv[3]); memory.migrate()"
    )
    words = [sys.executable, "-c", code, agent, str(root), FACT]
    subprocess.run(words, env={**os.environ, **environment}, check=True)
    server.behaviour = Behaviour(delay_seconds=30, dimensions=1_536)
    data = event("claude-code", "prompt", project, "how is billing deployed?")
    done = answer(root, "claude-code", data, seconds=None, env={**os.environ, **environment})
    assert done.code == 0
    assert done.seconds < WITHIN_SECONDS
    assert log_of(root, project)[-1]["outcome"] in ("answered", "late")


def test_a_root_that_cannot_be_written_is_no_error(tmp_path: Path, project: Path) -> None:
    (file := tmp_path / "file").write_text("not a folder", encoding="utf-8")
    data = event("claude-code", "prompt", project, "Remember that staging is in Oslo.")
    done = answer(file / "root", "claude-code", data)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("agent-memory: NotADirectoryError: ")


def test_killed_hooks_leave_a_sound_memory(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    for number in range(12):
        data = event("codex", "prompt", project, f"Remember that server {number} is in Oslo.")
        words = [PROGRAM, "hook", "codex", "UserPromptSubmit", "--root", str(root)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(data).encode())
            process.stdin.close()
            time.sleep(0.08 * number)
            process.send_signal(signal.SIGKILL)
    with memory_of(root, project) as memory:
        assert memory.check().ok
        assert FACT in [entry.content for entry in memory.list_recent(50)]
    done = ask(root, project, "billing deployed?", session_id="another")
    assert FACT in done.context


# Files ----------------------------------------------------------------------------------------


def test_the_log_is_bounded_and_says_nothing_that_was_said(root: Path, project: Path) -> None:
    ask(root, project, "Remember that the safe opens with 4711-0815.")
    folder = root / project_of(str(project)).agent_id
    journal = Journal(str(folder))
    assert "4711" not in Path(journal.path).read_text(encoding="utf-8")
    assert Path(journal.path).stat().st_mode & 0o777 == 0o600
    assert Path(journal.folder).stat().st_mode & 0o777 == 0o700
    while not Path(f"{journal.path}.1").exists():
        journal.append({"why": "x" * 20_000})
    for _ in range(60):
        journal.append({"why": "x" * 20_000})
    assert sum(path.stat().st_size for path in folder.rglob("log*")) < 2 * MOST_BYTES + 50_000
    assert len(list(journal.entries())) > 10


@pytest.mark.parametrize("text", ["what do we know?", SAID])
def test_a_hook_that_comes_first_makes_private_folders(
    tmp_path: Path, project: Path, text: str
) -> None:
    root = tmp_path / "home" / ".amplifier" / "memory"
    usual = os.umask(0)
    try:
        done = ask(root, project, text)
    finally:
        os.umask(usual)
    assert (done.code, done.err) == (0, "")
    hooks = Path(Journal(str(root / project_of(str(project)).agent_id)).folder)
    assert hooks.is_dir()
    folders = [hooks, *hooks.parents][: len(hooks.relative_to(tmp_path).parts)]
    assert {folder: folder.stat().st_mode & 0o777 for folder in folders} == dict.fromkeys(
        folders, 0o700
    )


def test_sessions_of_long_ago_are_forgotten(root: Path, project: Path) -> None:
    with memory_of(root, project) as memory:
        memory.store(FACT)
    folder = str(root / project_of(str(project)).agent_id)
    for session in ("old", "young"):
        with ShownMemories(folder, "codex", session) as shown:
            shown.add(["mem-1"])
    old, young = (Path(ShownMemories(folder, "codex", name).path) for name in ("old", "young"))
    os.utime(old, (0, 0))
    answer(root, "codex", event("codex", "start", project))
    assert not old.exists()
    assert young.exists()


def test_the_memory_stays_readable_by_sqlite3_while_hooks_run(root: Path, project: Path) -> None:
    ask(root, project, "Remember that staging lives in Oslo.")
    (path,) = root.rglob("memories.db")
    code = (
        "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())"
    )
    sql = "SELECT content, created_by_session FROM memories"
    done = subprocess.run([sys.executable, "-c", code, str(path), sql], capture_output=True)
    assert done.stdout == b"staging lives in Oslo. claude-code-1c2b9e47\n"

"""``agent-memory events``: what happened, what happens, and how to let it be written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Cli

from agent_memory import AgentMemory

pytestmark = pytest.mark.usefixtures("as_bob")


def test_it_says_how_to_switch_it_on(cli: Cli) -> None:
    cli("store", "Prefer tea")
    done = cli("events")
    assert (done.code, done.out) == (0, "")
    assert "configure event_log brief" in done.err


def test_events_of_all_processes_are_shown(cli: Cli) -> None:
    cli("store", "Prefer tea")
    assert cli("configure", "event_log", "brief").code == 0
    memory_id = cli("store", "Prefer milk", "--tag", "drinks").out.strip()
    cli("search", "milk")
    done = cli("events")
    first, second = done.out.splitlines()
    assert done.err == ""
    assert "memory:stored" in first
    assert f"memory_id {memory_id}, category note" in first
    assert '["drinks"]' in first
    assert "memory:searched" in second
    assert "milk" not in done.out


def test_they_are_chosen_by_name_number_and_time(cli: Cli) -> None:
    cli("store", "Prefer tea")
    cli("configure", "event_log", "brief")
    ids = [cli("store", f"fact {number}").out.strip() for number in range(3)]
    cli("search", "fact")

    def told(*options: str) -> list[str]:
        events = json.loads(cli("events", "--json", *options).out)["data"]["events"]
        return [it["data"].get("memory_id", "search") for it in events]

    assert told() == [*ids, "search"]
    assert told("--name", "memory:stored", "--limit", "2") == ids[1:]
    assert told("--limit", "0") == []
    assert told("--since", "1h") == [*ids, "search"]
    assert told("--since", "2999-01-01") == []


@pytest.mark.parametrize("number", [2**31, 2**63 - 1, 10**20])
def test_a_number_that_is_too_large_is_refused_with_the_most(cli: Cli, number: int) -> None:
    cli("store", "tea")
    done = cli("events", "-n", str(number))
    assert (done.code, "2147483647" in done.err) == (2, True)
    for words in (["recent", "-n"], ["history", "-n"], ["context", "-b"], ["undo", "--change"]):
        done = cli(*words, str(10**20))
        assert (done.code, "9223372036854775807" in done.err) == (4, True)


def test_an_unknown_name_is_refused_with_those_that_there_are(cli: Cli) -> None:
    cli("store", "Prefer tea")
    done = cli("events", "--name", "memory:forgotten")
    assert done.code == 2
    assert "memory:promoted" in done.err


def test_following_tells_what_another_process_does(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(event_log="brief")
        before = memory.store("Prefer tea")
        command = [sys.executable, "-m", "agent_memory", "--root", str(root), "events", "-f"]
        with subprocess.Popen(
            [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            try:
                assert json.loads(child.stdout.readline())["memory_id"] == before
                after = memory.store("Prefer milk")
                assert json.loads(child.stdout.readline())["memory_id"] == after
                child.send_signal(signal.SIGINT)
                _, err = child.communicate(timeout=30)
            finally:
                child.kill()  # it would follow for ever, where SIGINT is ignored
    assert child.returncode == 130
    assert err == ""  # an error in JSON with INTERNAL_ERROR, where Ctrl-C is the way to end it

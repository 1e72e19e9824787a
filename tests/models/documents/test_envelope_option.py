"""`agent-memory --envelope`: success and failure in C's envelopes, both on stdout."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from agent_memory import AgentMemory
from agent_memory.cli import cli as group
from agent_memory.cli import run
from agent_memory.models.documents.responses import (
    AddedMemory,
    AddMemoryMetadata,
    AddMemoryResponse,
    ErrorResponse,
    SuccessResponse,
)
from agent_memory.models.times import now_utc

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bob(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command for bob, who remembers one thing; return its code and what it printed."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("a walnut", id="mem-walnut")

    def told(*words: str) -> tuple[int, str, str]:
        code = run(["--root", str(root), "--agent", "bob", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return told


def test_a_result_comes_in_the_envelope_with_a_request_id(bob: Run) -> None:
    seen = set()
    for words in (["search", "walnut"], ["show", "mem-walnut"], ["recent", "--json"]):
        code, out, err = bob("--envelope", *words)
        assert (code, err) == (0, "")
        answer = SuccessResponse.model_validate_json(out)
        assert re.fullmatch(r"req_[0-9a-f]{12}", answer.metadata.request_id or "")
        seen.add(answer.metadata.request_id)
        assert json.loads(out).keys() == {"success", "data", "metadata"}
        assert "a walnut" in out
    assert len(seen) == 3


def test_without_the_option_there_is_no_request_id(bob: Run) -> None:
    _, out, _ = bob("--json", "search", "--", "--envelope")
    assert "request_id" not in json.loads(out)["metadata"]


@pytest.mark.parametrize(
    ("words", "code", "kind", "says"),
    [
        (["show", "mem-none"], 3, "MEMORY_NOT_FOUND", "mem-none"),
        (["store", " "], 4, "VALIDATION_ERROR", "content"),
        (["--agent", "", "info"], 2, "INVALID_SESSION", "which agent"),
        (["--agent", "nobody", "info"], 5, "AGENT_NOT_FOUND", "no memories yet"),
        (["plums"], 2, "VALIDATION_ERROR", "No such command 'plums'"),
        (["search", "--limit", "x", "y"], 2, "VALIDATION_ERROR", "'x' is not a valid integer"),
        (["erase", "mem-walnut"], 2, "VALIDATION_ERROR", "give --yes"),
    ],
)
def test_a_failure_comes_in_the_envelope_on_stdout_with_the_same_exit_code(
    bob: Run, words: list[str], code: int, kind: str, says: str
) -> None:
    found, out, err = bob("--envelope", *words)
    assert (found, err) == (code, "")
    error = ErrorResponse.model_validate_json(out).error
    assert (error.code, bool(error.request_id)) == (kind, True)
    assert says in error.message
    assert bob(*words)[:2] == (code, "")


def test_an_unexpected_error_is_explained_on_stderr_alone(
    bob: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the attic is on fire")

    monkeypatch.setattr(AgentMemory, "search", broken)
    code, out, err = bob("--envelope", "search", "walnut", "--hops", "2")
    assert (code, json.loads(out)["error"]["code"]) == (1, "INTERNAL_ERROR")
    assert "attic" not in out
    assert "RuntimeError: the attic is on fire" in err


def test_what_was_interrupted_says_so(bob: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(AgentMemory, "search", interrupted)
    code, out, _ = bob("--envelope", "search", "walnut", "--hops", "2")
    assert (code, json.loads(out)["error"]["code"]) == (130, "INTERNAL_ERROR")
    assert "nothing was left half done" in json.loads(out)["error"]["message"]


def test_an_answer_that_is_an_envelope_already_is_not_wrapped_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from agent_memory.cli.options import Session
    from agent_memory.cli.render import emit

    answer = AddMemoryResponse(
        data=[AddedMemory(id="mem-1", event="ADD", memory="a plum")],
        metadata=AddMemoryMetadata(
            timestamp=now_utc(), processing_time_ms=3, facts_extracted=1, operations_performed=1
        ),
    )
    for request_id in (None, "req_1"):
        session = Session(None, "bob", None, printed_as="json", request_id=request_id)
        with click.Context(group, obj=session):
            emit(answer, text="")
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert shown["metadata"].pop("request_id", None) == request_id
        assert shown == answer.model_dump(mode="json")


def test_the_installed_program_has_the_option(cli: Callable[..., Any], root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("a walnut")
    done = cli("--agent", "bob", "--envelope", "show", "mem-none")
    assert (done.code, done.err) == (3, "")
    assert json.loads(done.out)["error"]["details"] == {"memory_id": "mem-none"}

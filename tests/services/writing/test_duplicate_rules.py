"""Who decides about a duplicate: the call, its function, the setting in the file, the default."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Visitor

from agent_memory import AgentMemory, Duplicate, DuplicateMemory, ValidationError

FACT = "Use PostgreSQL for new projects"


def test_the_setting_can_be_unset(memory: AgentMemory, cli: Callable[..., Any]) -> None:
    assert memory.configure().on_duplicate is None
    memory.store(FACT)
    memory.configure(on_duplicate="refuse")
    with pytest.raises(DuplicateMemory):
        memory.store(FACT)
    assert memory.configure(on_duplicate=None).on_duplicate is None
    assert memory.info().config.on_duplicate is None
    memory.store(FACT)
    memory.configure(on_duplicate="keep")
    assert cli("--agent", "bob", "configure", "on_duplicate", "null").code == 0
    memory.search("PostgreSQL")
    memory.store(FACT)  # an echo again
    assert memory.count() == 2


@pytest.mark.parametrize("own", [{"id": "fact:1"}, {"timestamp": "2026-01-01"}])
def test_the_setting_never_merges_what_has_an_id_or_a_time(
    memory: AgentMemory, own: dict[str, Any]
) -> None:
    there = memory.store(FACT)
    memory.configure(on_duplicate="merge")
    assert memory.store(FACT, **own) != there
    assert memory.store_many([{"content": FACT, **own, "id": "fact:2"}]) == ["fact:2"]
    assert memory.store(FACT) == there
    assert memory.store(FACT, timestamp="2026-01-02", on_duplicate="merge") == there


def test_what_a_merge_leaves_out_is_told_and_logged(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    there = memory.store(FACT, metadata={"by": "ann"}, importance="high")
    told: list[Duplicate] = []

    def merge(duplicate: Duplicate) -> str:
        told.append(duplicate)
        return "merge"

    given: dict[str, Any] = {
        "id": "fact:1",
        "category": "decision",
        "timestamp": "2026-01-01",
        "metadata": {"by": "bea", "why": "joins"},
        "importance": "low",
        "tags": ["db"],
    }
    with caplog.at_level(logging.INFO, logger="agent_memory.duplicates"):
        assert memory.store(FACT, **given, on_duplicate=merge) == there
    lost = ["category", "id", "importance", "metadata", "timestamp"]
    assert [one.left_out for one in told] == [lost]
    assert caplog.messages == [f"exact duplicate of {there}: merge, without its {', '.join(lost)}"]


@pytest.mark.parametrize(
    "failure",
    [
        OSError("the disk of the caller"),
        PermissionError("of the caller"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "of the caller"),
        KeyError("x"),
    ],
)
@pytest.mark.parametrize("text", [FACT, "Use PostgreSQL for all new projects"])
def test_what_a_function_raises_comes_out_as_it_is(
    memory: AgentMemory, failure: Exception, text: str
) -> None:
    memory.store(FACT)

    def fail(_: Duplicate) -> str:
        raise failure

    with pytest.raises(type(failure)) as caught:
        memory.store(text, on_duplicate=fail)
    assert caught.value is failure
    with pytest.raises(type(failure)) as caught:
        memory.store_many([{"content": "other"}, {"content": FACT}], on_duplicate=fail)
    assert caught.value is failure
    assert memory.count() == 1


@pytest.mark.parametrize("answer", [False, 0, "", [], "merged", True])
@pytest.mark.parametrize("text", [FACT, "Use PostgreSQL for all new projects"])
def test_an_answer_that_is_none_of_the_words_is_refused(
    memory: AgentMemory, answer: Any, text: str
) -> None:
    memory.store(FACT)
    with pytest.raises(ValidationError, match="keep, merge, refuse or None"):
        memory.store(text, on_duplicate=lambda _: answer)
    assert memory.count() == 1


@pytest.mark.parametrize("column", ["user_id", "run_id", "category", "content"])
def test_a_text_that_is_not_utf8_does_not_keep_others_from_being_stored(
    root: Path, visitor: Visitor, column: str
) -> None:
    with AgentMemory("bob", root=root) as memory:
        first = memory.store(FACT)
        broken = memory.store(FACT)
        visitor(
            memory.path,
            f"UPDATE memories SET {column} = CAST(x'ff41' AS TEXT) WHERE id = '{broken}'",
        )
        assert memory.store(FACT) not in (first, broken)
        assert memory.store(FACT, on_duplicate="merge") == first
        assert memory.duplicates(FACT)[0].memory_id == first


def test_a_list_of_lines_names_both(memory: AgentMemory, cli: Callable[..., Any]) -> None:
    lines = '{"content": "Tea"}\n\n{"content": "Milk"}\n{"content": "tea"}\n'
    done = cli("--agent", "bob", "store", "--on-duplicate", "refuse", "--jsonl", "-", input=lines)
    assert done.code != 0
    assert "line 4: says the same as line 1" in done.err
    assert memory.count() == 0

"""Retention policies: E's values by name, what is refused, and how reports are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Ran
from pydantic import ValidationError

from agent_memory import AgentConfig, AgentMemory
from agent_memory import ValidationError as RefusedValue
from agent_memory.models.enums import MemoryKind
from agent_memory.models.retention import KindLimit, RetentionPolicy, TidyItem, TidyReport


def test_the_standard_is_what_the_document_says() -> None:
    policy = AgentConfig.model_validate({"retention": "standard"}).retention
    assert policy == RetentionPolicy(
        archive_learnings_after_days=90,
        archive_tasks_after_days=30,
        recent_days=7,
        limits={
            MemoryKind.CORE: KindLimit(max_memories=1000, max_bytes=10_000_000, enforcement="hard"),
            MemoryKind.LEARNING: KindLimit(
                max_memories=500, max_bytes=5_000_000, enforcement="soft"
            ),
            MemoryKind.TASK: KindLimit(max_memories=200, max_bytes=2_000_000, enforcement="soft"),
        },
    )


def test_there_is_no_policy_unless_one_is_set() -> None:
    assert AgentConfig().retention is None
    policy = RetentionPolicy()
    assert policy.archive_learnings_after_days is None
    assert policy.archive_tasks_after_days is None
    assert policy.recent_days == 7
    assert policy.limits == {}
    assert KindLimit() == KindLimit(max_memories=None, max_bytes=None, enforcement="soft")


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        ("strict", "'strict' is not a policy: use standard, or an object"),
        ({"archive_learnings_after_days": 0}, "archive_learnings_after_days"),
        ({"archive_tasks_after_days": -1}, "archive_tasks_after_days"),
        ({"archive_tasks_after_days": 1.5}, "archive_tasks_after_days"),
        ({"recent_days": -1}, "recent_days"),
        ({"archive_core_after_days": 9}, "archive_core_after_days"),
        ({"limits": {"idea": {"max_memories": 1}}}, "idea"),
        ({"limits": {"core": {"max_memories": 0}}}, "max_memories"),
        ({"limits": {"core": {"max_bytes": 0}}}, "max_bytes"),
        ({"limits": {"core": {"max_kilobytes": 1}}}, "max_kilobytes"),
        ({"limits": {"core": {"enforcement": "firm"}}}, "enforcement"),
        ({"limits": {"core": 5}}, "core"),
        ([], "retention"),
        (5, "retention"),
    ],
)
def test_what_is_no_policy_is_refused(policy: Any, fault: str) -> None:
    with pytest.raises(ValidationError) as refused:
        AgentConfig.model_validate({"retention": policy})
    assert fault in str(refused.value)


def test_a_policy_cannot_be_changed_in_place() -> None:
    policy = RetentionPolicy(recent_days=3)
    with pytest.raises(ValidationError, match="frozen"):
        policy.recent_days = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    "policy",
    [
        "standard",
        {"archive_learnings_after_days": 10, "recent_days": 0},
        {"limits": {"task": {"max_memories": 3}}},
        None,
    ],
)
def test_a_policy_comes_back_from_the_file_as_it_was_set(root: Path, policy: Any) -> None:
    wanted = AgentConfig.model_validate({"retention": policy}).retention
    with AgentMemory("bob", root=root) as memory:
        assert memory.configure(retention=policy).retention == wanted
    with AgentMemory("bob", root=root) as memory:
        assert memory.configure().retention == wanted


def test_a_wrong_policy_leaves_the_one_that_is_set(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        before = memory.configure(retention="standard").retention
        with pytest.raises(RefusedValue, match="'strict' is not a policy"):
            memory.configure(retention="strict")
        with pytest.raises(RefusedValue, match=r"limits\.core\.max_memories"):
            memory.configure(retention={"limits": {"core": {"max_memories": "many"}}})
        assert memory.configure().retention == before


def test_the_command_line_sets_a_policy_by_its_name(root: Path, cli: Callable[..., Ran]) -> None:
    AgentMemory("bob", root=root).close()
    done = cli("--agent", "bob", "--json", "configure", "retention", "standard")
    assert done.code == 0, done.err
    assert done.data["retention"]["limits"]["learning"]["max_memories"] == 500


def test_a_report_is_plain_json_and_comes_back() -> None:
    report = TidyReport(
        dry_run=True,
        archived=[
            TidyItem(
                memory_id="mem-1",
                kind=MemoryKind.TASK,
                content="ship it",
                reason="completed 31 days ago",
                last_used=NOW,
            )
        ],
        kept=["1 learning is over the limit of 3"],
    )
    assert json.loads(report.model_dump_json()) == {
        "dry_run": True,
        "archived": [
            {
                "memory_id": "mem-1",
                "kind": "task",
                "content": "ship it",
                "reason": "completed 31 days ago",
                "last_used": "2026-01-30T16:00:00Z",
            }
        ],
        "kept": ["1 learning is over the limit of 3"],
        "backup": None,
    }
    assert TidyReport.model_validate_json(report.model_dump_json()) == report
    assert TidyReport(dry_run=False) == TidyReport(dry_run=False, archived=[], kept=[], backup=None)

"""What fuzzing found once, each as small as it can be."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_memory import (
    AgentMemory,
    StorageCorrupt,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.cli import run

from .verbs import NAME, opened, sentences


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    (tmp_path / "bob").mkdir()
    with opened(tmp_path / "bob" / NAME) as memory:
        memory.store_many(sentences(4))
        yield memory


def nested(depth: int) -> Any:
    """Return lists in lists."""
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    TWO = 2


# Values that are nested so deep that Python cannot show them ------------------------------------


@pytest.mark.parametrize("depth", [300, 3000])
def test_filter_that_is_nested_deep(memory: AgentMemory, depth: int) -> None:
    for filters in (
        {"custom_filters": {"a": nested(depth)}},
        {"custom_filters": {"a": {"eq": nested(depth)}}},
        {"category": nested(depth)},
        {"kind": nested(depth)},
    ):
        with pytest.raises(ValidationError):
            memory.search("lantern", filters=filters)


def test_field_that_is_nested_deep(memory: AgentMemory) -> None:
    for field in ("kind", "importance", "category", "metadata", "timestamp", "task_metadata"):
        with pytest.raises(ValidationError):
            memory.store("A lantern", **{field: nested(3000)})
        with pytest.raises(ValidationError):
            memory.update("fact-1", **{field: nested(3000)})
    assert memory.count() == 4


def test_agent_id_that_is_nested_deep(tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        AgentMemory(nested(3000), root=tmp_path)


# Filters ----------------------------------------------------------------------------------------


def test_filter_by_members_of_enums(memory: AgentMemory) -> None:
    memory.store("A red lantern", metadata={"colour": "red", "level": 2, "all": ["red", 2]})
    for condition in (
        {"colour": Colour.RED},
        {"level": Level.TWO},
        {"level": {"gte": Level.TWO}},
        {"colour": {"in": [Colour.RED]}},
        {"colour": {"contains": Colour.RED}},
        {"all": {"contains": Level.TWO}},
    ):
        assert memory.count(filters={"custom_filters": condition}) == 1


def test_min_access_count_beyond_64_bits(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError):
        memory.count(filters={"min_access_count": 2**63})


def test_shared_that_is_no_list_with_as_of(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError):
        memory.search("lantern", shared=True, as_of="2026-01-30")  # type: ignore[arg-type]


def test_lists_are_compared_with_a_number_of_5000_digits(memory: AgentMemory) -> None:
    write(memory, "memories", "metadata", '{"list": [' + "9" * 5000 + "]}")
    assert memory.count(filters={"custom_filters": {"list": [1]}}) == 0


# Settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {"freshness_decay_rate": float("inf")},
        {"access_boost_rate": 1e308},
        {"cache_ttl_seconds": 10**400},
    ],
)
def test_settings_that_no_score_can_hold(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        opened(tmp_path / NAME, config=config)


def test_promotion_threshold_beyond_64_bits(tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        opened(tmp_path / NAME, context_config={"promotion_access_threshold": 2**63})


# Paths ------------------------------------------------------------------------------------------


def test_paths_that_are_too_long(memory: AgentMemory) -> None:
    for act in (memory.export, memory.backup, lambda path: AgentMemory.restore(memory.path, path)):
        with pytest.raises((ValidationError, StorageUnavailable)):
            act("x" * 5000)


def test_root_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable):
        AgentMemory("bob", root=tmp_path / ("x" * 5000))


# What other programs write ----------------------------------------------------------------------


def write(memory: AgentMemory, table: str, column: str, value: object) -> None:
    """Write into a column, as another program does."""
    connection = apsw.Connection(str(memory.path))
    connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
    connection.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("total_query_ms", -1.0),
        ("total_queries", -1),
        ("embeddings_generated", -1),
        ("scratchpad_promotions", -1),
        ("migration", "[]"),
        ("migration", '{"backup_path": 1}'),
        ("migration", '{"a": ' + "9" * 5000 + "}"),
    ],
)
def test_figures_of_another_program(memory: AgentMemory, column: str, value: object) -> None:
    memory.search("lantern")
    memory.info()  # writes what was counted
    write(memory, "agent", column, value)
    assert memory.info().memory_count == 4
    memory.export(memory.path.with_name("out.yaml"))
    memory.export(memory.path.with_name("metadata.json"), format="metadata")


def craft(memory: AgentMemory, sql: str) -> Path:
    """Change the schema itself, as only a program does that means harm."""
    memory.close()
    connection = apsw.Connection(str(memory.path))
    connection.pragma("writable_schema", True)
    connection.execute(sql)
    connection.close()
    return memory.path


@pytest.mark.parametrize(
    "page", ["1", "(SELECT min(rootpage) FROM sqlite_schema WHERE rootpage > 0)"]
)
def test_two_tables_on_one_page(memory: AgentMemory, page: str) -> None:
    path = craft(memory, f"UPDATE sqlite_schema SET rootpage = {page} WHERE name = 'agent'")
    with pytest.raises(StorageCorrupt):
        opened(path)
    assert AgentMemory.agents(path.parents[1])[0].problem is not None


def test_history_with_an_event_that_there_is_not(memory: AgentMemory) -> None:
    connection = apsw.Connection(str(memory.path))
    connection.pragma("ignore_check_constraints", True)
    connection.execute("UPDATE history SET event = 'ODD' WHERE change_id = 1")
    connection.close()
    # What an event of another program says, the values of the change say too.
    assert [change.event for change in memory.history()] == ["ADD"] * 4
    problems = memory.check().problems
    assert any("change 1 of memory" in problem.detail for problem in problems)
    memory.check(repair=True)
    assert memory.check().problems == []


def test_export_with_settings_that_python_cannot_read(memory: AgentMemory) -> None:
    write(memory, "agent", "config", '{"a": ' + "9" * 5000 + "}")
    memory.export(memory.path.with_name("out.yaml"))


def test_history_of_another_program(memory: AgentMemory) -> None:
    write(memory, "history", "new_values", '{"a": ' + "9" * 5000 + "}")
    assert len(memory.history()) == 4


# Commands ---------------------------------------------------------------------------------------


def command(memory: AgentMemory, *words: str) -> int:
    return run(["--db", str(memory.path), *words])


def test_limit_of_duplicates_beyond_64_bits(memory: AgentMemory) -> None:
    assert command(memory, "duplicates", "--limit", str(2**63)) == 2


def test_error_about_a_value_that_is_nested_deep(
    memory: AgentMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = '{"a":' * 500 + "1" + "}" * 500
    assert command(memory, "recent", "--where", deep, "--json") == 4
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "VALIDATION_ERROR"


def test_error_about_no_number_is_json(
    memory: AgentMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(memory, "recent", "--where", '{"a": NaN}', "--json") == 4
    assert "NaN" not in capsys.readouterr().err.replace('"NaN"', "").replace('"nan"', "")


def test_setting_that_is_nested_deep(memory: AgentMemory) -> None:
    assert command(memory, "configure", "sharing", "[" * 100_000) == 4

"""Settings that live in the file, and what happens when they are wrong."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, Visitor

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    ConfigurationError,
    NewerSchema,
    ValidationError,
)
from agent_memory.storage.agent_rows import right_settings


def test_settings_are_kept_in_the_file(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(categories=["incident"])
        memory.configure(scratchpad_max_size=20)
    with AgentMemory("bob", root=root) as memory:
        assert memory.configure().categories == ["incident"]
        assert memory.info().config.scratchpad_max_size == 20
        assert memory.store("The cache was full", category="incident")


def test_a_category_goes_whose_name_in_another_case_memories_have(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(categories=["Project", "project"])
        memory.store("The roof needs slate", category="project")
        for name in ("Project", "PROJECT"):
            assert memory.list_recent(filters={"category": name})
            assert memory.search("slate", category=name)
        with pytest.raises(ValidationError, match="1 memory has 'project'"):
            memory.configure(categories=["Project"])
        assert memory.configure(categories=["project"]).categories == ["project"]


def test_a_threshold_equal_to_the_default_is_a_setting_too(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("walnut trees and other things", session_id="a")
        assert len(memory.search("walnut zebra")) == 1
        memory.configure(similarity_threshold=0.75)
        assert len(memory.search("walnut zebra")) == 0


def test_settings_changed_at_once_are_all_kept(root: Path) -> None:
    with AgentMemory("bob", root=root) as one, AgentMemory("bob", root=root) as two:
        both = threading.Barrier(2)

        def change(memory: AgentMemory, name: str, value: object) -> None:
            both.wait(10)
            memory.configure(**{name: value})

        threads = [
            threading.Thread(target=change, args=(one, "categories", ["mine"])),
            threading.Thread(target=change, args=(two, "scratchpad_max_size", 20)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert (one.configure().categories, one.configure().scratchpad_max_size) == (["mine"], 20)


@pytest.mark.parametrize(
    ("value", "words"), [(1_000, "at most 100 (got 1000)"), (9, "at least 10 (got 9)")]
)
def test_a_setting_beyond_its_limit_is_refused_in_plain_words(
    memory: AgentMemory, value: int, words: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(f"scratchpad_max_size: must be {words}")):
        memory.configure(scratchpad_max_size=value)


@pytest.mark.parametrize("settings", [{"scratchpad_max_size": 5}, {"colour": "red"}])
def test_wrong_settings_are_refused(memory: AgentMemory, settings: dict[str, object]) -> None:
    with pytest.raises((ValidationError, ConfigurationError), match=next(iter(settings))):
        memory.configure(**settings)
    assert memory.configure().scratchpad_max_size == 50


def test_wrong_settings_in_a_file_are_told_and_set_aside(
    root: Path, visitor: Visitor, cli: Callable[..., Ran]
) -> None:
    for agent in ("ann", "bob"):
        with AgentMemory(agent, root=root) as memory:
            memory.store("Prefer PostgreSQL")
    visitor(memory.path, """UPDATE agent SET config = '{"scratchpad_max_size": 1}'""")
    listed = {agent.agent_id: agent.memory_count for agent in AgentMemory.agents(root)}
    assert listed == {"ann": 1, "bob": 1}  # it can be read
    assert "scratchpad_max_size" in cli("--agent", "bob", "info").out
    refused = cli("--agent", "bob", "store", "more")
    assert refused.code == 4
    assert "check --repair" in refused.err
    assert "wrong_settings" in cli("--agent", "bob", "check").out
    assert cli("--agent", "bob", "check", "--repair").code == 0
    assert cli("--agent", "bob", "store", "more").code == 0


def test_wrong_settings_stop_no_reader_and_cost_none_of_the_right_ones(
    root: Path, visitor: Visitor, cli: Callable[..., Ran], tmp_path: Path
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(categories=["drinks"], on_secret="refuse")
        memory.store("green tea", category="drinks")
    wrong = """UPDATE agent SET config =
        json_set(config, '$.backups_kept', 'many', '$.categories[1]', 7, '$.colour', 'red')"""
    visitor(memory.path, wrong)
    with AgentMemory("bob", root=root) as memory:
        assert [hit.memory.content for hit in memory.search("tea")] == ["green tea"]
        assert memory.info().config.on_secret == "refuse"
        assert "backups_kept" in (memory.info().warning or "")
        assert memory.scratchpad().max_size == 50
        assert memory.statistics().memory_count == 1
        assert memory.export(tmp_path / "out.yaml", format="scratchpad").memory_count == 1
        with pytest.raises(ConfigurationError, match="check --repair"):
            memory.store("more")
    assert cli("--agent", "bob", "info").code == 0
    assert cli("--agent", "bob", "check", "--repair").code == 0
    with AgentMemory("bob", root=root) as memory:
        kept = memory.configure()
        assert (kept.categories, kept.on_secret, kept.backups_kept) == (["drinks"], "refuse", 5)
        assert memory.list_recent()[0].category == "drinks"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (r'{"embedding_model": "\ud800", "backups_kept": 3}', {"backups_kept": 3}),
        ('{"scratchpad_max_size": NaN, "backups_kept": 2}', {"backups_kept": 2}),
        ('{"categories": ["a", 5, "b", ""], "x": 1e999}', {"categories": ["a", "b"]}),
        ('{"retention": {"a": 1}, "on_secret": "mask"}', {"on_secret": "mask"}),
        ('{"backups_kept": ' + "9" * 30 + "}", {}),
        ("[" * 100_000, {}),
        ("nonsense", {}),
        ("5", {}),
    ],
)
def test_of_any_settings_the_right_ones_are_read(text: str, kept: dict[str, object]) -> None:
    assert right_settings(text).model_dump(exclude_unset=True) == kept


def test_a_newer_file_is_not_touched_at_all(root: Path, visitor: Visitor) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("from the future")
    visitor(memory.path, "PRAGMA journal_mode = delete;;PRAGMA user_version = 99")
    memory.path.chmod(0o644)
    before = (memory.path.read_bytes(), memory.path.stat().st_mode)
    with pytest.raises(NewerSchema, match="not touched"):
        AgentMemory("bob", root=root)
    assert (memory.path.read_bytes(), memory.path.stat().st_mode) == before
    assert [path.name for path in memory.path.parent.iterdir()] == ["memories.db"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda make, _: make("bob", root=5),
        lambda make, root: make("bob", root=root, session_id=5),
        lambda make, root: make("bob", root=root, clock=lambda: "noon").store("x"),
        lambda make, root: make("bob", root=root).backup(123),
        lambda make, root: make("bob", root=root).store_many(None),
        lambda make, root: make("bob", root=root).store_many("text"),
        lambda make, root: make("bob", root=root).search("x", since=5),
        lambda make, root: make("bob", root=root).search("x", now=5),
        lambda make, root: make("bob", root=root).search(None),
        lambda make, root: make("bob", root=root).search("x", tags_match="bogus"),
        lambda make, root: make("bob", root=root).search(
            "x", filters={"custom_filters": {"a" + ".b" * 69: 1}}
        ),
    ],
)
def test_an_argument_of_the_wrong_sort_is_our_error(
    root: Path, wrong: Callable[[Any, Path], object]
) -> None:
    with pytest.raises((ValidationError, ConfigurationError)):
        wrong(AgentMemory, root)


def test_a_root_that_leads_to_itself_is_our_error(tmp_path: Path) -> None:
    from agent_memory import StorageError

    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StorageError, match="loop"):
        AgentMemory("bob", root=tmp_path / "loop")


def test_output_that_knows_no_utf_8_shows_escapes(root: Path, cli: Callable[..., Ran]) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("done ✓")
    shown = cli("--agent", "bob", "recent", env={"PYTHONIOENCODING": "latin-1"})
    assert (shown.code, shown.err) == (0, "")
    assert "done \\u2713" in shown.out


def test_a_reader_that_goes_away_early_is_no_error(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store_many({"content": f"fact {n} " + "x" * 500} for n in range(2000))
    program = Path(sys.executable).with_name("agent-memory")
    recent = f"{program} --root {shlex.quote(str(root))} --agent bob recent -n 2000"
    line = f"{recent} | head -1; echo ${{PIPESTATUS[0]}}"
    for unbuffered in ("", "1"):
        done = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": unbuffered, "HOME": str(root)},
            timeout=60,
        )
        assert done.stderr == ""
        assert done.stdout.splitlines()[-1] == "0"


def test_options_hold_for_the_lines_of_a_load(cli: Callable[..., Ran], root: Path) -> None:
    lines = [{"content": "one"}, {"content": "two", "category": "note"}]
    text = "\n".join(json.dumps(line) for line in lines)
    words = ("store", "--jsonl", "-", "--tag", "load", "--category", "decision")
    assert cli("--agent", "bob", *words, input=text).code == 0
    with AgentMemory("bob", root=root) as memory:
        found = {one.content: (one.category, one.tags) for one in memory.list_recent()}
    assert found == {"one": ("decision", ["load"]), "two": ("note", ["load"])}
    assert cli("--agent", "bob", "store", "x", "--skip-bad").code == 2
    assert cli("--agent", "bob", "store", "--jsonl", "-", "--id", "x", input=text).code == 2


def test_rows_written_by_hand_are_no_neighbours(root: Path, visitor: Visitor) -> None:
    with AgentMemory("bob", root=root) as memory:
        visitor(memory.path, "INSERT INTO memories (content) VALUES ('walnut'), ('nothing of it')")
        assert [hit.memory.content for hit in memory.search("walnut")] == ["walnut"]


def test_what_is_archived_is_said_to_be(memory: AgentMemory) -> None:
    memory_id = memory.store("walnut")
    assert memory.update(memory_id, archived=True).archived is True
    results = memory.search("walnut")
    assert list(results) == []
    assert results.search_metadata.reason == "filtered_out"
    assert results.search_metadata.near_misses[0].reason == "is archived"


def test_a_tag_in_capitals_that_was_written_by_hand_is_found(root: Path, visitor: Visitor) -> None:
    with AgentMemory("bob", root=root) as memory:
        visitor(
            memory.path, """INSERT INTO memories (content, tags) VALUES ('walnut', '["ÉCOLE"]')"""
        )
        for tag in ("ÉCOLE", "école"):
            assert len(memory.search("walnut", tags=[tag])) == 1


def test_a_callback_that_uses_the_memory_is_told_not_to(memory: AgentMemory) -> None:
    def search(_done: int, _all: int) -> None:
        memory.search("x")

    with pytest.raises(AgentMemoryError, match="progress"):
        memory.store_many([{"content": "x"}], progress=search)
    assert memory.count() == 0


def test_check_tells_of_a_file_that_cannot_be_opened(root: Path, cli: Callable[..., Ran]) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("walnut")
    half = memory.path.read_bytes()
    memory.path.write_bytes(half[: len(half) // 2])
    done = cli("--agent", "bob", "check", "--json")
    assert done.code == 6
    assert done.data["ok"] is False
    assert done.data["problems"][0]["kind"] == "damaged_file"

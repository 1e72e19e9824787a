"""What an import takes of each entry, of settings and figures, and what it refuses."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock, Open
from exchange import (
    OF_MEMORIES,
    ONE_CORE_MEMORY,
    contents,
    data,
    everything,
    exported,
    filled,
    lines,
    saved,
    state,
    told,
)

from agent_memory import (
    AgentMemory,
    LimitReached,
    RejectedContent,
    StorageUnavailable,
    ValidationError,
)

pytestmark = pytest.mark.usefixtures("temporary")


@pytest.fixture
def full(memory: AgentMemory, clock: Clock) -> AgentMemory:
    return filled(memory, clock)


# What cannot be taken -------------------------------------------------------------------------


def test_nothing_is_taken_in_if_one_entry_is_wrong(memory: AgentMemory, tmp_path: Path) -> None:
    memory.store("here", id="a")
    before = state(memory, tmp_path / "out")
    items: list[dict[str, Any]] = [{"content": f"memory {n}"} for n in range(1_000)]
    items[700] = {"content": "x", "access_count": -1}
    items[800] = {"id": "b"}
    path = saved(tmp_path, lines({"id": "a", "content": "there"}, *items))
    with pytest.raises(ValidationError) as caught:
        memory.import_(path, on_conflict="replace")
    message = str(caught.value)
    assert re.search(rf"^{re.escape(str(path))}: line 702: access_count: ", message)
    assert "(and 1 more)" in message
    assert "--skip-bad" in message
    assert [error["loc"] for error in caught.value.errors()] == [("line 702",), ("line 802",)]
    assert state(memory, tmp_path / "out") == before
    assert memory.backups() == []


def test_skip_bad_leaves_out_what_is_wrong_and_names_it(
    memory: AgentMemory, tmp_path: Path
) -> None:
    text = lines({"content": "one"}, {"content": ""}, {"content": "two", "id": "no id"})
    path = saved(tmp_path, text + "no json\n" + lines({"content": "three"}))
    report = memory.import_(path, skip_bad=True)
    assert (report.new, report.refused) == (2, 3)
    assert [it.place for it in report.refusals] == ["line 2", "line 3", "line 4"]
    assert [it.memory_id for it in report.refusals] == [None, "no id", None]
    assert sorted(contents(memory).values()) == ["one", "three"]


@pytest.mark.parametrize("format", ["store", "scratchpad", "json", "directory"])
def test_the_error_names_the_file_the_line_and_the_field(
    memory: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    with other() as source:
        source.store_many([{"content": "fine"}, {"content": "wrong"}, {"content": "fine too"}])
        path = exported(source, tmp_path / "out", format)
    file = path / "learnings.jsonl" if path.is_dir() else path
    text = file.read_text().replace("wrong", " ")
    file.write_text(text)
    number = 1 + next(n for n, line in enumerate(text.split("\n")) if '" "' in line)
    if format == "store":  # an entry of several lines is named by its first
        number -= 1
    elif format == "scratchpad":
        number -= 3
    if format == "directory":  # E: what is invalid does not block the rest
        report = memory.import_(path)
        assert (report.new, report.refused) == (2, 1)
        assert report.refusals[0].place == f"learnings.jsonl: line {number}"
        assert "content" in report.refusals[0].message
        return
    with pytest.raises(ValidationError, match="content: Content cannot be empty") as caught:
        memory.import_(path)
    assert f"{path}: line {number}" in str(caught.value)
    assert memory.count() == 0


def test_faults_of_every_kind_are_listed_in_the_order_of_the_file(
    memory: AgentMemory, tmp_path: Path
) -> None:
    memory.configure(on_secret="refuse")
    wrong = {
        3: "no json\n",
        7: lines({"content": "the db password = hunter2-hunter3"}),
        11: lines({"content": "another text", "id": "m1"}),
        20: lines({"content": " "}),
    }
    text = "".join(
        wrong.get(number % 40, lines({"content": f"fact {number}", "id": f"m{number}"}))
        for number in range(1, 401)
    )
    report = memory.import_(saved(tmp_path, text), skip_bad=True)
    places = [f"line {number}" for number in range(1, 401) if number % 40 in wrong]
    assert [it.place for it in report.refusals] == places
    assert (report.new, report.refused, memory.count()) == (360, 40, 360)
    assert len({it.message for it in report.refusals}) == 4


def test_of_many_faults_the_first_thousand_are_listed(memory: AgentMemory, tmp_path: Path) -> None:
    path = saved(tmp_path, lines(*({"content": ""} for _ in range(1_200)), {"content": "fine"}))
    report = memory.import_(path, skip_bad=True)
    assert (report.new, report.refused, len(report.refusals)) == (1, 1_200, 1_000)


def test_rejected_values_stay_out(memory: AgentMemory, tmp_path: Path) -> None:
    memory.reject("my secret word")
    task = {"status": "completed", "outcome": "my secret word"}
    hidden: list[dict[str, Any]] = [
        {"content": "this is MY *secret* word"},
        {"content": "x", "tags": ["my secret word"]},
        {"content": "x", "metadata": {"deep": [{"of": "my secret word"}]}},
        {"content": "x", "category": "my secret word"},
        {"content": "x", "my secret word": 1},
        {"content": "x", "kind": "task", "task_metadata": task},
    ]
    for number, item in enumerate(hidden):
        path = saved(tmp_path, lines({"content": "fine", "id": "fine"}, {**item, "id": "hidden"}))
        with pytest.raises(RejectedContent, match="line 2") as caught:
            memory.import_(path)
        assert "secret" not in str(caught.value).lower(), number
        assert memory.count() == 0
    path = saved(tmp_path, lines({"content": "fine", "id": "fine"}, *hidden))
    report = memory.import_(path, skip_bad=True)
    assert (report.new, report.refused) == (1, len(hidden))
    assert contents(memory) == {"fine": "fine"}


def test_a_rejected_value_does_not_replace_another(memory: AgentMemory, tmp_path: Path) -> None:
    memory.store("here", id="a")
    memory.reject("my secret word")
    path = saved(tmp_path, lines({"content": "my secret word", "id": "a"}))
    with pytest.raises(RejectedContent):
        memory.import_(path, on_conflict="replace")
    assert contents(memory) == {"a": "here"}


# Found once: the history is not looked at.
def test_a_rejected_value_does_not_come_in_with_the_history(
    memory: AgentMemory, other: Open, tmp_path: Path
) -> None:
    with other() as source:
        source.update(source.store("this is my secret word", id="a"), content="fine")
        path = exported(source, tmp_path / "out")
    memory.reject("my secret word")
    memory.import_(path, skip_bad=True)
    assert "secret" not in state(memory, tmp_path / "out").decode()


def test_no_more_comes_in_than_a_hard_limit_lets_in(memory: AgentMemory, tmp_path: Path) -> None:
    memory.configure(retention=ONE_CORE_MEMORY)
    items = [{"content": f"{n}", "kind": "core", "id": f"m{n}"} for n in range(3)]
    with pytest.raises(LimitReached, match="hard limit of 1"):
        memory.import_(saved(tmp_path, lines(*items)))
    assert memory.count() == 0
    free: list[dict[str, Any]] = [
        {"content": "old", "kind": "core", "archived": True},
        {"content": "learned"},
    ]
    assert memory.import_(saved(tmp_path, lines(items[0], *free))).new == 3


# Found once: only new memories are asked for, not what becomes of those that are there.
def test_a_hard_limit_holds_for_what_is_replaced(memory: AgentMemory, tmp_path: Path) -> None:
    memory.configure(retention=ONE_CORE_MEMORY)
    memory.store_many([{"content": "one", "kind": "core"}, {"content": "two", "id": "b"}])
    path = saved(tmp_path, lines({"id": "b", "content": "two", "kind": "core"}))
    with pytest.raises(LimitReached):
        memory.import_(path, on_conflict="replace")
    assert memory.count(filters={"kind": "core"}) == 1


# Ids, categories, unknown keys ----------------------------------------------------------------


@pytest.mark.parametrize("format", ["json", "jsonl", "scratchpad"])
def test_entries_without_an_id_get_the_same_one_each_time(
    memory: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    items: list[dict[str, Any]] = [
        {"content": "one"},
        {"content": "two", "timestamp": "2026-01-01T00:00:00Z"},
        {"content": "two", "timestamp": "2026-01-02T00:00:00Z"},
        {"content": "two", "user_id": "alice"},
    ]
    text = {
        "json": json.dumps(items, indent=1),
        "jsonl": lines(*items),
        "scratchpad": "memories:\n" + "".join(f"  - {json.dumps(item)}\n" for item in items),
    }[format]
    path = saved(tmp_path, text)
    assert memory.import_(path).new == 4
    assert all(re.fullmatch("mem-[0-9a-f]{12}", memory_id) for memory_id in everything(memory))
    again = memory.import_(path)
    assert (again.new, again.same, again.kept) == (0, 4, 0)
    with other() as copy:
        copy.import_(path)
        assert set(everything(copy)) == set(everything(memory))


def test_the_same_entry_twice_is_one_and_another_under_its_id_is_refused(
    memory: AgentMemory, tmp_path: Path
) -> None:
    one = {"id": "a", "content": "one"}
    report = memory.import_(saved(tmp_path, lines(one, {"content": "x"}, one, {"content": "x"})))
    assert (report.new, report.same) == (2, 2)
    with pytest.raises(ValidationError, match="line 2: id: an earlier entry has the same id"):
        memory.import_(saved(tmp_path, lines(one, {**one, "content": "two"})))


def test_what_a_file_tells_as_nothing_is_as_if_it_were_not_told(
    memory: AgentMemory, tmp_path: Path
) -> None:
    item = {"id": "a", "content": "x", "last_accessed": "2026-01-02T00:00:00Z"}
    memory.import_(saved(tmp_path, lines(item)))
    nothing = {**item, "last_accessed": None, "user_id": None, "embedding": [0.5, 1.0]}
    report = memory.import_(saved(tmp_path, lines(nothing)), on_conflict="replace")
    assert (report.new, report.same, report.changed) == (0, 1, 0)


@pytest.mark.parametrize("format", [*OF_MEMORIES, "scratchpad"])
def test_an_unknown_category_becomes_a_note_and_is_given_back(
    memory: AgentMemory, tmp_path: Path, format: str
) -> None:
    item = {"id": "a", "content": "x", "category": "user_facts", "metadata": {"sure": 1}}
    report = memory.import_(saved(tmp_path, lines(item)))
    assert (report.new, report.repaired) == (1, 1)
    assert "'user_facts' is unknown here" in report.repairs[0].message
    kept = memory.get("a")
    assert kept is not None
    assert kept.category == "note"
    assert kept.metadata == {"sure": 1, "original_category": "user_facts"}
    memory.promote("a")
    path = exported(memory, tmp_path / "out", format)
    written = "".join(line.decode() for file in data(path).values() for line in file)
    if format == "store":  # the store as it is
        assert "original_category" in written
    else:
        assert "user_facts" in written
        assert "original_category" not in written

    # is taken for another content, and under `replace` loses the rest.
    again = memory.import_(path, on_conflict="replace")
    assert (again.same, again.changed) == (1, 0)
    assert memory.get("a") == kept


def test_a_category_that_the_agent_knows_stays(memory: AgentMemory, tmp_path: Path) -> None:
    memory.configure(categories=["user_facts"])
    path = saved(tmp_path, lines({"id": "a", "content": "x", "category": "user_facts"}))
    assert memory.import_(path).repaired == 0
    assert everything(memory)["a"].category == "user_facts"


def test_keys_that_a_memory_has_not_are_kept_in_its_metadata(
    memory: AgentMemory, tmp_path: Path
) -> None:
    item = {"id": "a", "content": "x", "mood": "good", "source": {"url": "https://example.org"}}
    memory.import_(saved(tmp_path, lines({**item, "metadata": {"sure": 1}, "nothing": None})))
    wanted = {"sure": 1, "mood": "good", "source": {"url": "https://example.org"}}
    assert everything(memory)["a"].metadata == wanted
    with pytest.raises(ValidationError, match="'mood' is both beside the metadata and in it"):
        memory.import_(saved(tmp_path, lines({**item, "metadata": {"mood": "bad"}})))


# Agents and settings --------------------------------------------------------------------------


@pytest.mark.parametrize("format", [*OF_MEMORIES, "scratchpad", "sqlite"])
def test_memories_of_another_agent_become_this_ones(
    memory: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    with other(agent="alice") as alice:
        alice.store("hers", id="a")
        path = exported(alice, tmp_path / "out", format)
    report = memory.import_(path)
    assert report.new == 1
    assert report.agent_id == (None if format == "directory" else "alice")
    assert everything(memory)["a"].agent_id == "bob"
    assert memory.info().agent_id == "bob"


SETTINGS = {
    "metadata": json.dumps(
        {
            "agent_id": "bob",
            "storage_backend": "vector",
            "memory_count": 42,
            "stats": {"total_queries": 7},
            "config": {"scratchpad_max_size": 30, "migration_threshold": 700},
        }
    ),
    "settings": "memory:\n  migration:\n    threshold: 700\n    auto_migrate: true\n",
}


@pytest.mark.parametrize("format", ["metadata", "settings"])
def test_a_file_of_settings_is_taken_as_far_as_nothing_is_set(
    memory: AgentMemory, tmp_path: Path, format: str
) -> None:
    memory.store("kept")
    memory.configure(migration_threshold=900)
    path = saved(tmp_path, SETTINGS[format])
    dry = memory.import_(path, dry_run=True)
    assert memory.configure().migration_threshold == 900
    report = memory.import_(path)
    assert told(report) == told(dry)
    assert report.format == format
    name = {"metadata": "scratchpad_max_size", "settings": "auto_migrate"}[format]
    assert report.settings == {name: {"metadata": 30, "settings": True}[format]}
    assert [note for note in report.notes if "migration_threshold" in note] != []
    assert memory.configure().migration_threshold == 900
    info = memory.info()
    assert (info.memory_count, info.storage_backend, info.stats.total_queries) == (1, "file", 0)
    assert memory.import_(path, on_conflict="replace").settings == {"migration_threshold": 700}
    assert memory.configure().migration_threshold == 700
    assert memory.import_(path, on_conflict="replace").settings == {}


FIGURES = {
    "agent_id": "bob",
    "created_at": "2025-01-15T10:00:00Z",
    "last_accessed": "2026-01-20T16:00:00Z",
    "storage_backend": "vector",
    "memory_count": 327,
    "stats": {"total_queries": 145, "avg_query_latency_ms": 2.5, "scratchpad_promotions": 12},
    "migration": {"backup_path": "scratchpad.yaml.backup", "can_rollback": True},
}


# Found once: created_at, stats and migration were dropped, and the report said "nothing in it".
def test_the_figures_of_a_file_are_taken_where_the_store_has_none(
    memory: AgentMemory, tmp_path: Path
) -> None:
    path = saved(tmp_path, json.dumps(FIGURES))
    dry = memory.import_(path, dry_run=True)
    assert memory.info().stats.total_queries == 0
    report = memory.import_(path)
    assert told(report) == told(dry)
    (note,) = report.notes
    assert note.startswith("figures imported: created_at, ")
    left_out = [repair.message.partition(" ")[0] for repair in report.repairs]
    assert left_out == ["memory_count", "storage_backend", "migration"]
    info = memory.info()
    assert info.created_at == datetime(2025, 1, 15, 10, tzinfo=UTC)
    assert (info.stats.total_queries, info.stats.avg_query_latency_ms) == (145, 2.5)
    assert info.stats.scratchpad_promotions == 12
    assert (info.memory_count, info.storage_backend, info.migration) == (0, "file", None)


def test_the_figures_of_a_store_with_memories_stay_and_the_file_s_are_named(
    memory: AgentMemory, tmp_path: Path
) -> None:
    memory.store("kept")
    before = memory.info()
    (note,) = memory.import_(saved(tmp_path, json.dumps(FIGURES))).notes
    assert note.startswith("figures skipped, because this store has its own: created_at, ")
    assert memory.info() == before


@pytest.fixture
def documented(root: Path) -> Path:
    """Return an agent's folder as the documents have it: no database, but what it began as."""
    folder = root / "carl"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(
        json.dumps({**FIGURES, "agent_id": "carl", "config": {"migration_threshold": 600}})
    )
    (folder / "scratchpad.yaml").write_text(
        "agent_id: carl\nmax_size: 40\nmemories:\n- {id: mem-001, content: Prefer PostgreSQL}\n"
    )
    return folder


# Found once: neither was such a folder noticed, nor could it be imported.
def test_a_documented_folder_is_noticed_and_imported_where_it_is(
    root: Path, documented: Path
) -> None:
    advice = f"--agent carl import {documented}`"
    with pytest.raises(StorageUnavailable, match=re.escape(advice)):
        AgentMemory("carl", root=root, create=False)
    (summary,) = AgentMemory.agents(root)
    assert (summary.agent_id, summary.memory_count) == ("carl", None)
    assert advice in (summary.problem or "")
    assert not (documented / "memories.db").exists()
    with AgentMemory("carl", root=root, embedder=None) as memory:
        assert advice in (memory.info().suggestion or "")
        report = memory.import_(documented)
        assert (report.format, report.new) == ("scratchpad", 1)
        assert report.settings == {"migration_threshold": 600, "scratchpad_max_size": 40}
        info = memory.info()
        assert (info.suggestion, info.stats.total_queries) == (None, 145)
        assert info.created_at == datetime(2025, 1, 15, 10, tzinfo=UTC)
        assert [entry.id for entry in memory.scratchpad().memories] == ["mem-001"]
        assert memory.import_(documented).same == 1
    (summary,) = AgentMemory.agents(root)
    assert (summary.memory_count, summary.problem) == (1, None)


def test_the_backup_in_a_documented_folder_is_named_and_not_read(
    root: Path, documented: Path
) -> None:
    backup = documented / "scratchpad.yaml.backup"
    backup.write_text("agent_id: carl\nmemories:\n- {id: mem-002, content: Long gone}\n")
    with AgentMemory("carl", root=root, embedder=None) as memory:
        report = memory.import_(documented)
        assert report.new == 1
        assert f"import {backup} separately" in report.repairs[0].message
        assert memory.import_(backup).new == 1


# Found once: metadata.json always has the threshold, and one that is set drops hits.
def test_a_threshold_that_nobody_set_does_not_become_one_that_is(
    memory: AgentMemory, other: Open, tmp_path: Path
) -> None:
    memory.store("kept")
    path = exported(memory, tmp_path / "out", "metadata")
    with other() as copy:
        copy.import_(path)
        assert "similarity_threshold" not in copy.configure().model_fields_set


def test_the_settings_of_a_store_are_left_alone_where_there_are_memories(
    full: AgentMemory, other: Open, tmp_path: Path
) -> None:
    path = exported(full, tmp_path / "out")
    with other() as copy:
        copy.store("was here")
        report = copy.import_(path)
        assert report.settings == {"categories": ["recipe"]}  # of a memory that came in
        assert [note for note in report.notes if "its settings are not imported" in note] != []
        assert copy.configure().scratchpad_max_size == 50
        assert copy.info().created_at != full.info().created_at or copy.count() == 13


def test_categories_come_with_the_memories_that_have_them(
    memory: AgentMemory, tmp_path: Path, root: Path
) -> None:
    memory.configure(categories=["incident", "recipe"])
    memory.store("the pump failed", category="incident")
    memory.export(tmp_path / "all.yaml")
    with AgentMemory("zoe", root=root) as other:
        other.configure(categories=["place"])
        other.store("here")
        plan = other.import_(tmp_path / "all.yaml", dry_run=True)
        report = other.import_(tmp_path / "all.yaml")
        assert plan.settings == report.settings == {"categories": ["place", "incident"]}
        assert "categories of its memories added: incident" in report.notes
        assert other.configure().categories == ["place", "incident"]
        assert other.check().problems == []


def test_wrong_settings_are_refused_by_name(memory: AgentMemory, tmp_path: Path) -> None:
    text = '{"agent_id": "bob", "storage_backend": "file", "config": {"scratchpad_max_size": 3}}'
    path = saved(tmp_path, text)
    with pytest.raises(ValidationError, match=r"line 1: config\.scratchpad_max_size: "):
        memory.import_(path)
    assert memory.configure().scratchpad_max_size == 50

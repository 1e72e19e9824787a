"""An import of what is there already: conflicts, and dry runs that tell of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from conftest import Clock, Open
from exchange import (
    OF_MEMORIES,
    ONE_CORE_MEMORY,
    contents,
    everything,
    exported,
    filled,
    lines,
    saved,
    state,
    told,
)
from reads import stored

from agent_memory import AgentMemory, LimitReached, StorageReadOnly, ValidationError
from agent_memory.models.reports import OnConflict

pytestmark = pytest.mark.usefixtures("temporary")
CONFLICTS: tuple[OnConflict, ...] = get_args(OnConflict)


@pytest.fixture
def full(memory: AgentMemory, clock: Clock) -> AgentMemory:
    return filled(memory, clock)


# Conflicts ------------------------------------------------------------------------------------

AFTER: dict[OnConflict, dict[str, str]] = {
    "skip": {"same": "same", "old": "here", "new": "here", "only": "here"},
    "replace": {"same": "same", "old": "there", "new": "there", "only": "here"},
    "newer": {"same": "same", "old": "here", "new": "there", "only": "here"},
    "keep-both": {"same": "same", "old": "here", "new": "here", "only": "here"},
}
COUNTS: dict[OnConflict, tuple[int, int, int, int]] = {  # new, changed, same, kept
    "skip": (1, 0, 1, 2),
    "replace": (1, 2, 1, 0),
    "newer": (1, 1, 1, 1),
    "keep-both": (3, 0, 1, 0),
}


@pytest.fixture
def theirs(memory: AgentMemory, other: Open, tmp_path: Path, clock: Clock) -> dict[str, Path]:
    """Fill two stores, which agree in one memory and not in two, and export the other one."""
    with other() as source:
        source.store_many([{"content": "same", "id": "same"}, {"content": "there", "id": "old"}])
        clock.forward(minutes=1)
        memory.store_many(
            [
                {"content": "same", "id": "same", "timestamp": "2026-01-30T16:00:00Z"},
                *({"content": "here", "id": it, "tags": ["mine"]} for it in ("old", "new", "only")),
            ]
        )
        clock.forward(minutes=1)
        items = [{"content": "there", "id": "new"}, {"content": "there", "id": "fresh"}]
        source.store_many(items)
        return {name: exported(source, tmp_path / "out", name) for name in (*OF_MEMORIES, "sqlite")}


# Found once: what does not tell `updated_at` (as `store` does not when it is the timestamp) ends
# with KeyError under `newer`.
@pytest.mark.parametrize("format", [*OF_MEMORIES, "sqlite"])
@pytest.mark.parametrize("on_conflict", CONFLICTS)
def test_conflicts_end_as_they_are_to_and_again_changes_nothing(
    memory: AgentMemory,
    theirs: dict[str, Path],
    tmp_path: Path,
    on_conflict: OnConflict,
    format: str,
) -> None:
    report = memory.import_(theirs[format], on_conflict=on_conflict)
    assert (report.new, report.changed, report.same, report.kept) == COUNTS[on_conflict]
    found = contents(memory)
    assert AFTER[on_conflict].items() <= found.items()
    assert found["fresh"] == "there"
    beside = sorted(text for name, text in found.items() if name.startswith("mem-"))
    assert beside == (["there"] * 2 if on_conflict == "keep-both" else [])
    before, history = state(memory, tmp_path / "out"), memory.history()
    again = memory.import_(theirs[format], on_conflict=on_conflict)
    assert (again.new, again.changed) == (0, 0)
    assert again.same + again.kept == 4
    assert state(memory, tmp_path / "out") == before
    assert memory.history() == history


# Found once: it was looked for under the id that it has in the file.
def test_what_is_kept_beside_another_may_be_in_the_same_file(
    memory: AgentMemory, other: Open, tmp_path: Path
) -> None:
    memory.store("here", id="a")
    with other() as source:
        source.store("there", id="a", timestamp="2026-01-01T00:00:00Z")
        path = exported(source, tmp_path / "out", "jsonl")
    with other("third") as third:
        third.store("here", id="a")
        third.import_(path, on_conflict="keep-both")
        (copy,) = [found for found in third.list_recent(9) if found.id != "a"]
    beside = copy.model_dump(mode="json", exclude={"agent_id"})
    path.write_text(path.read_text() + json.dumps(beside) + "\n")
    report = memory.import_(path, on_conflict="keep-both")
    assert (report.new, report.same) == (1, 1)
    assert sorted(found.content for found in memory.list_recent(9)) == ["here", "there"]


@pytest.mark.parametrize("format", ["scratchpad", "store", "sqlite"])
def test_what_is_kept_beside_another_comes_into_the_scratchpad_too(
    memory: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    memory.store("here", id="a")
    memory.demote("a")
    with other() as source:
        source.store("there", id="a", timestamp="2026-01-01T00:00:00Z")
        path = exported(source, tmp_path / "out", format)
    memory.import_(path, on_conflict="keep-both")
    assert [entry.content for entry in memory.scratchpad().memories] == ["there"]
    memory.import_(path, on_conflict="keep-both")
    assert [entry.content for entry in memory.scratchpad().memories] == ["there"]


def test_what_is_kept_beside_another_is_in_question_as_it_was(
    memory: AgentMemory, other: Open, tmp_path: Path
) -> None:
    memory.store("here", id="a")
    with other() as source:
        source.store("there", id="a")
        path = exported(source, tmp_path / "out")
    question = "reviews:\n  - {id: a, proposed_at: '2026-01-30T16:00:00Z', reasoning: old}\n"
    before, key, after = path.read_text().partition("changes:\n")
    path.write_text(before + question + key + after)
    memory.import_(path, on_conflict="keep-both")
    assert [review.content for review in memory.reviews()] == ["there"]


def test_what_a_file_does_not_tell_stays(memory: AgentMemory, tmp_path: Path) -> None:
    memory.store(
        "one", id="a", tags=["x"], importance="high", user_id="alice", metadata={"sure": 1}
    )
    before = memory.get("a")
    assert before is not None
    path = saved(tmp_path, lines({"id": "a", "content": "two"}))
    assert memory.import_(path, on_conflict="replace").changed == 1
    after = memory.get("a")
    assert after == before.model_copy(update={"content": "two", "version": 2})
    assert [hit.memory.id for hit in memory.search("two")] == ["a"]
    assert memory.history("a")[0].new_values == {"content": "two"}


@pytest.mark.parametrize(
    ("told", "is_newer"),
    [
        ({"updated_at": "2026-01-30T16:00:01Z"}, True),
        ({"updated_at": "2026-01-30T16:00:00Z"}, False),
        ({"updated_at": "2026-01-30T17:00:00+01:00"}, False),
        ({"timestamp": "2027-01-01T00:00:00Z"}, True),  # what a memory is that never changed
        ({"timestamp": "2025-01-01T00:00:00Z"}, False),
        ({}, False),  # nobody can tell
    ],
)
def test_newer_is_what_was_changed_later(
    memory: AgentMemory, tmp_path: Path, told: dict[str, str], is_newer: bool
) -> None:
    memory.store("here", id="a")
    path = saved(tmp_path, lines({"id": "a", "content": "there", **told}))
    report = memory.import_(path, on_conflict="newer")
    assert (report.changed, report.kept) == (int(is_newer), int(not is_newer))
    assert contents(memory) == {"a": "there" if is_newer else "here"}


@pytest.mark.file_only("who runs a database backs it up")
@pytest.mark.parametrize("on_conflict", ["replace", "newer"])
def test_what_is_replaced_is_backed_up_before(
    memory: AgentMemory, tmp_path: Path, on_conflict: OnConflict
) -> None:
    memory.store("here", id="a")
    later = {"id": "a", "content": "there", "updated_at": "2027-01-01T00:00:00Z"}
    report = memory.import_(saved(tmp_path, lines(later)), on_conflict=on_conflict)
    assert report.backup is not None
    assert [(it.path, it.reason) for it in memory.backups()] == [(report.backup, "import")]
    with AgentMemory.open(report.backup, read_only=True) as before:
        assert contents(before) == {"a": "here"}
    assert contents(memory) == {"a": "there"}


@pytest.mark.parametrize("on_conflict", ["skip", "keep-both"])
def test_nothing_is_backed_up_where_nothing_can_be_replaced(
    memory: AgentMemory, tmp_path: Path, on_conflict: OnConflict
) -> None:
    memory.store("here", id="a")
    path = saved(tmp_path, lines({"id": "a", "content": "there"}))
    assert memory.import_(path, on_conflict=on_conflict).backup is None
    assert memory.backups() == []


def test_an_import_is_undone_and_done_again_as_one(
    memory: AgentMemory, theirs: dict[str, Path]
) -> None:
    before = everything(memory)
    memory.import_(theirs["jsonl"], on_conflict="replace")
    after = contents(memory)
    undone = memory.undo()
    assert (undone.verb, len(undone.memory_ids)) == ("import", 3)
    assert contents(memory) == {memory_id: it.content for memory_id, it in before.items()}
    assert {it.id: it.tags for it in memory.list_recent()} == {
        memory_id: it.tags for memory_id, it in before.items()
    }
    memory.undo()
    assert contents(memory) == after


def test_the_import_of_a_whole_store_is_undone(
    full: AgentMemory, other: Open, tmp_path: Path
) -> None:
    path = exported(full, tmp_path / "out")
    with other() as copy:
        copy.store("was here", id="mine")
        copy.import_(path)
        assert copy.undo().verb == "import"
        assert contents(copy) == {"mine": "was here"}
        assert copy.check().problems == []


def test_on_conflict_must_be_one_of_its_words(memory: AgentMemory, tmp_path: Path) -> None:
    path = saved(tmp_path, lines({"content": "x"}))
    with pytest.raises(ValidationError, match="on_conflict: must be one of skip, replace, newer"):
        memory.import_(path, on_conflict="overwrite")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["store", "json", "jsonl", "directory", "sqlite"])
def test_what_a_file_leaves_out_as_the_default_is_set_back(
    memory: AgentMemory, tmp_path: Path, form: str
) -> None:
    memory_id = memory.store("Prefer tea")
    memory.export(tmp_path / "out", format=form)
    before = stored(memory, memory_id)
    memory.update(memory_id, tags=["t"], importance="high", metadata={"x": 1}, category="task")
    memory.archive(memory_id)
    assert memory.import_(tmp_path / "out").kept == 1
    assert memory.import_(tmp_path / "out", on_conflict="replace").changed == 1
    after = stored(memory, memory_id)
    same = ("tags", "importance", "metadata", "category", "archived", "content")
    assert [getattr(after, it) for it in same] == [getattr(before, it) for it in same]


@pytest.mark.parametrize(
    "form", ["store", "backup", "json", "jsonl", "record-json", "record-jsonl", "directory"]
)
def test_what_a_whole_export_left_out_as_usual_is_put_back_by_a_replacement(
    form: str, root: Path, tmp_path: Path
) -> None:
    with AgentMemory("bob", root=root) as memory:
        before = memory.store("harbour violet", tags=["sea"])
        plain = memory.get(before)
        memory.export(tmp_path / "export", format=form)
        memory.update(before, importance="high", kind="core", metadata={"x": 1}, tags=[])
        memory.archive(before)
        report = memory.import_(tmp_path / "export", format=form, on_conflict="replace")
        assert (report.changed, report.same) == (1, 0)
        names = {"importance", "kind", "metadata", "tags", "archived"}
        after = memory.get(before)
        assert plain is not None
        assert after is not None
        assert after.model_dump(include=names) == plain.model_dump(include=names)


# Dry runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_conflict", CONFLICTS)
@pytest.mark.parametrize("format", [*OF_MEMORIES, "sqlite"])
def test_a_dry_run_tells_what_the_run_then_does(
    memory: AgentMemory,
    theirs: dict[str, Path],
    tmp_path: Path,
    format: str,
    on_conflict: OnConflict,
) -> None:
    before, history = state(memory, tmp_path / "out"), memory.history()
    dry = memory.import_(theirs[format], on_conflict=on_conflict, dry_run=True)
    assert dry.dry_run
    assert state(memory, tmp_path / "out") == before
    assert (memory.history(), memory.backups()) == (history, [])
    assert told(dry) == told(memory.import_(theirs[format], on_conflict=on_conflict))


def test_a_dry_run_of_a_whole_store_tells_its_settings(
    full: AgentMemory, other: Open, tmp_path: Path
) -> None:
    path = exported(full, tmp_path / "out")
    with other() as copy:
        before = state(copy, tmp_path / "out")
        dry = copy.import_(path, dry_run=True)
        assert dry.settings["scratchpad_max_size"] == 20
        assert state(copy, tmp_path / "out") == before
        assert told(dry) == told(copy.import_(path))


def test_a_dry_run_needs_no_right_to_write(
    memory: AgentMemory, root: Path, theirs: dict[str, Path], tmp_path: Path
) -> None:
    del memory
    with AgentMemory("bob", root=root, read_only=True) as reader:
        for name, path in theirs.items():
            dry = reader.import_(path, on_conflict="replace", dry_run=True)
            assert (dry.new, dry.changed, dry.same, dry.kept) == COUNTS["replace"], name
        with pytest.raises(StorageReadOnly):
            reader.import_(theirs["jsonl"])
        assert exported(reader, tmp_path / "out").stat().st_size > 100


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_dry_run_tells_all_that_is_refused(
    memory: AgentMemory, tmp_path: Path, skip_bad: bool
) -> None:
    memory.reject("my secret word")
    path = saved(
        tmp_path,
        lines({"content": "fine"}, {"content": "MY secret, word"}, {"content": "x", "kind": "odd"}),
    )
    dry = memory.import_(path, dry_run=True, skip_bad=skip_bad)
    assert (dry.new, dry.refused) == (1, 2)
    assert [it.place for it in dry.refusals] == ["line 3", "line 2"]
    assert memory.count() == 0


# Found once: a dry run does not ask for the limits.
def test_a_dry_run_tells_of_a_limit(memory: AgentMemory, tmp_path: Path) -> None:
    memory.configure(retention=ONE_CORE_MEMORY)
    path = saved(tmp_path, lines(*({"content": f"{n}", "kind": "core"} for n in range(2))))
    plan = memory.import_(path, dry_run=True)
    assert (plan.new, plan.refused) == (1, 1)
    assert "hard limit of 1" in plan.refusals[0].message
    with pytest.raises(LimitReached, match="line 2"):
        memory.import_(path)
    assert memory.count() == 0
    done = memory.import_(path, skip_bad=True)
    assert (done.new, done.refused) == (1, 1)

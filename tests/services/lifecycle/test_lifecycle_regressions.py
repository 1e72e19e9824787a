"""What was wrong once in a memory's life: each of these lost something, or told a lie."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import NOW, Clock

from agent_memory import AgentMemory, StorageReadOnly, ValidationError


def contents(memory: AgentMemory, **how: object) -> list[str]:
    return sorted(one.content for one in memory.list_recent(1000, **how))  # type: ignore[arg-type]


def test_the_past_is_that_of_this_store_after_a_deletion_and_an_import(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    first, second = memory.store("the first"), memory.store("the second")
    memory.export(tmp_path / "store.yaml")
    clock.forward(hours=1)
    memory.delete(first)
    clock.forward(hours=1)
    while_it_was_gone = clock.now
    assert contents(memory) == ["the second"]
    clock.forward(hours=1)
    memory.import_(tmp_path / "store.yaml")
    assert contents(memory) == ["the first", "the second"]
    assert contents(memory, as_of=while_it_was_gone) == ["the second"]
    assert memory.get(first, as_of=while_it_was_gone) is None
    assert memory.get(second, as_of=NOW) is not None


@pytest.mark.file_only("it searches the past")
def test_the_past_of_many_changed_texts_has_no_vectors_of_the_present(
    memory: AgentMemory, clock: Clock
) -> None:
    texts = [f"the harbour of town number {n} has a lantern" for n in range(600)]
    ids = memory.store_many([{"content": text} for text in texts])
    memory.migrate(embedder="wordllama")
    clock.forward(days=1)
    for number, memory_id in enumerate(ids):
        memory.update(memory_id, content=f"bread and butter, recipe {number}")
    memory.embed()
    found = memory.search("bread and butter", limit=5, as_of=NOW, explain=True)
    cosines = [hit.score.cosine for hit in found if hit.score and hit.score.cosine is not None]
    assert max(cosines, default=0.0) < 0.5
    assert memory.search(texts[7], limit=1, as_of=NOW)[0].memory.content == texts[7]


def test_undo_takes_back_what_was_merged_as_well(memory: AgentMemory) -> None:
    one = memory.store("Use PostgreSQL", tags=["a"])
    other = memory.store("Deploy on Monday", tags=["b"])
    memory.store_many(
        [
            {"content": "use PostgreSQL.", "tags": ["c"]},
            {"content": "deploy on Monday.", "tags": ["d"]},
            {"content": "something new"},
        ],
        on_duplicate="merge",
    )
    assert memory.undo().verb == "store_many"
    assert contents(memory) == ["Deploy on Monday", "Use PostgreSQL"]
    for memory_id, tags in ((one, ["a"]), (other, ["b"])):
        found = memory.get(memory_id)
        assert found is not None
        assert found.tags == tags


def test_deleting_nothing_is_not_the_last_that_was_done(memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    assert memory.delete_many([]) == []
    assert memory.undo().memory_ids == [memory_id]


def test_what_holds_a_rejected_value_can_still_be_archived_and_brought_back(
    memory: AgentMemory,
) -> None:
    ids = memory.store_many([{"content": "the password is hunter2"}, {"content": "a plan"}])
    memory.reject("hunter2")
    memory.archive(ids)
    assert sorted(memory.undo().memory_ids) == sorted(ids)
    assert memory.count() == 2


def test_undo_keeps_to_the_hard_limits(memory: AgentMemory) -> None:
    limit = {"max_memories": 1, "enforcement": "hard"}
    memory.configure(retention={"limits": {"core": limit}})
    memory.archive(memory.store("the first", kind="core"))
    memory.store("the second", kind="core")
    first_archived = next(it for it in memory.history() if it.event == "UPDATE")
    with pytest.raises(ValidationError, match="hard limit of 1"):
        memory.undo(first_archived.change_id)
    assert memory.count() == 1


def test_storing_much_at_once_leaves_what_was_promoted_by_hand(
    memory: AgentMemory, clock: Clock
) -> None:
    memory.configure(retention="standard")
    pinned = memory.store("a learning that is dear")
    memory.promote(pinned)
    clock.forward(days=100)
    memory.store_many([{"content": f"text {n}"} for n in range(200)])
    assert pinned not in {it.memory_id for it in memory.tidy(dry_run=True).archived}


def test_an_import_of_a_part_of_a_history_is_undone_whole(
    memory: AgentMemory, tmp_path: Path
) -> None:
    path = tmp_path / "part.yaml"
    path.write_text(
        "format: agent-memory store\nversion: 1\nmemories:\n"
        '  - {id: "a", content: "second text", created_by_session: "s"}\n'
        "changes:\n"
        '  - {id: "a", event: "UPDATE", at: "2026-01-01T00:00:00Z",'
        ' old: {content: "first text"}, new: {content: "second text"}}\n'
    )
    assert memory.import_(path).new == 1
    memory.undo()
    assert memory.count() == 0


def test_a_section_before_the_memories_that_it_speaks_of_is_refused(
    memory: AgentMemory, tmp_path: Path
) -> None:
    path = tmp_path / "order.yaml"
    path.write_text(
        "format: agent-memory store\nversion: 1\n"
        'scratchpad:\n  - {id: "a", entered_at: "2026-01-01T00:00:00Z", reason: "promoted"}\n'
        'memories:\n  - {id: "a", content: "text"}\n'
    )
    with pytest.raises(ValidationError, match="memories must come before"):
        memory.import_(path)
    assert memory.count() == 0


def test_another_agents_file_does_not_open_this_store_to_others(
    memory: AgentMemory, root: Path, tmp_path: Path
) -> None:
    memory.store("a fact")
    memory.configure(sharing="write", auto_migrate=True, scratchpad_max_size=20)
    memory.export(tmp_path / "store.yaml")
    with AgentMemory("eve", root=root) as other:
        report = other.import_(tmp_path / "store.yaml")
        assert "auto_migrate, sharing" in " ".join(report.notes)
        settings = other.configure()
        assert (settings.sharing, settings.auto_migrate) == (None, False)
        assert settings.scratchpad_max_size == 20


def test_a_memory_that_may_only_be_read_leaves_no_backup_beside_it(memory: AgentMemory) -> None:
    memory.store("a fact")
    with (
        AgentMemory.open(memory.path, read_only=True) as reader,
        pytest.raises(StorageReadOnly, match="give a destination"),
    ):
        reader.backup()
    assert not (memory.path.parent / "backups").exists()


LOOK_BACK = """
import sys, time
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False) as memory, memory._as_of("2026-01-30T16:30:00Z"):
    print("looking", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_erasing_reaches_the_copy_that_a_killed_process_left(
    memory: AgentMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    secret = memory.store("the code word is Xylophonist tonight")
    code = [sys.executable, "-c", LOOK_BACK, str(memory.path)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "looking\n"
        (copy,) = tmp_path.glob("agent-memory-copy-*/memories.db")
        assert memory.search("code word", as_of=NOW).total_count == 1  # in use: it stays
        assert copy.exists()
        child.send_signal(signal.SIGKILL)
    time.sleep(0.1)
    assert memory.erase(secret, backups=True).clean
    assert not copy.exists()

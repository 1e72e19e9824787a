"""An erased memory stays erased: by every way in, in every byte of the file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock, engine_of

from agent_memory import (
    AgentMemory,
    ImportReport,
    MemoryNotFound,
    StorageError,
    ValidationError,
)
from agent_memory.models.reports import RestoreReport
from agent_memory.services.erasure.tombstones import purge
from agent_memory.storage.engine import Engine

SECRET = "The Zanzibarian parrot knows the number 8841"
TOKEN = "zanzibarian"
WHOLE = (
    "store", "scratchpad", "backup", "json", "jsonl", "record-json", "record-jsonl", "directory",
    "sqlite",
)  # fmt: skip


def traces(*memories: AgentMemory, token: str = TOKEN) -> list[str]:
    """Return where a word of what was erased is left: in the files of the stores, by any verb.

    The files are read by another program: an `open` here would drop the locks of this process.
    """
    left: list[str] = []
    for memory in memories:
        memory.info()
        parts = [memory.path.with_name(memory.path.name + suffix) for suffix in ("", "-wal")]
        paths = [str(part) for part in parts if part.exists()]
        words = ["grep", "-a", "-i", "-l", "-F", "-e", token, *paths]
        done = subprocess.run(
            words, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
        )
        left += done.stdout.split()
        left += [str(entry) for entry in memory.history(limit=1000) if token in str(entry).lower()]
        left += [hit.memory.id for hit in memory.search(token) if TOKEN in hit.memory.content]
    return left


@pytest.fixture
def erased(memory: AgentMemory, tmp_path: Path) -> Callable[..., str]:
    """Return a function that stores the secret, makes a copy in a format, and erases it."""

    def call(form: str | None = "store", **fields: Any) -> str:
        memory.store("kept number 1", id="kept")
        secret = memory.store(SECRET, **fields)
        memory.promote(secret)
        if form is not None:
            memory.export(tmp_path / "copy", format=form)
        receipt = memory.erase(secret)
        assert receipt.memories == 1
        assert traces(memory) == []
        return secret

    return call


def taken_in(memory: AgentMemory, path: Path, **options: Any) -> ImportReport:
    """Import a file, and compare it with what a dry run tells of it."""
    foreseen = memory.import_(path, dry_run=True, **options)
    report = memory.import_(path, **options)
    names = ("new", "changed", "same", "kept", "refused", "erased", "erasures")
    assert [getattr(foreseen, each) for each in names] == [getattr(report, each) for each in names]
    return report


# Import -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_conflict", ["skip", "replace", "newer", "keep-both"])
@pytest.mark.parametrize("form", WHOLE)
def test_no_import_brings_it_back(
    memory: AgentMemory, tmp_path: Path, erased: Callable[..., str], form: str, on_conflict: str
) -> None:
    secret = erased(form)
    report = taken_in(memory, tmp_path / "copy", format=form, on_conflict=on_conflict)
    assert (report.new, report.erased, report.refused) == (0, 1, 0)
    assert [(note.memory_id, note.message) for note in report.erasures] == [
        (secret, f"{secret} was erased")
    ]
    assert memory.get(secret) is None
    assert memory.count() == 1
    assert traces(memory) == []


@pytest.mark.parametrize("form", WHOLE)
def test_it_comes_back_when_that_is_asked_for(
    memory: AgentMemory, tmp_path: Path, erased: Callable[..., str], form: str
) -> None:
    secret = erased(form)
    report = taken_in(memory, tmp_path / "copy", format=form, include_erased=True)
    assert (report.new, report.erased) == (1, 0)
    again = memory.get(secret)
    assert again is not None
    assert again.content == SECRET
    assert engine_of(memory).tombstones.all() == []
    report = taken_in(memory, tmp_path / "copy", format=form)
    assert (report.same, report.erased) == (2, 0)


def test_it_does_not_come_back_in_a_history_alone(memory: AgentMemory, tmp_path: Path) -> None:
    secret, other = memory.store_many([{"content": SECRET}, {"content": "another"}])
    memory.undo()
    memory.export(tmp_path / "copy")
    memory.undo()
    memory.erase(secret)
    report = taken_in(memory, tmp_path / "copy")
    assert (report.new, report.erased) == (0, 1)
    with pytest.raises(MemoryNotFound):
        memory.history(secret)
    assert memory.get(other) is not None
    assert traces(memory) == []


def test_it_does_not_come_back_as_what_another_memory_said_before(
    memory: AgentMemory, root: Path, tmp_path: Path
) -> None:
    with AgentMemory("zoe", root=root, session_id="session-1") as zoe:
        changed = zoe.store("first", user_id="ann")
        zoe.update(changed, content=SECRET)
        zoe.update(changed, content="third")
        gone = zoe.store(SECRET, user_id="ann")
        zoe.delete(gone)
        zoe.export(tmp_path / "copy")
    memory.erase(memory.store(SECRET, user_id="ann"))
    report = taken_in(memory, tmp_path / "copy")
    assert (report.new, report.erased) == (1, 2)
    assert [note.message for note in report.erasures] == [
        f"{changed} is imported without its history, which contained erased content",
        f"{gone} contained erased content",
    ]
    assert [entry.event for entry in memory.history(changed)] == ["ADD"]
    with pytest.raises(MemoryNotFound):
        memory.history(gone)
    assert traces(memory) == []
    memory.undo()
    assert memory.get(changed) is None


def test_it_does_not_come_back_without_its_id(memory: AgentMemory, tmp_path: Path) -> None:
    memory.erase(memory.store(SECRET))
    path = tmp_path / "by-hand.json"
    path.write_text(f'[{{"content": "{SECRET}2", "id": "x"}}, {{"content": "  {SECRET}."}}]')
    report = taken_in(memory, path, format="json")
    assert report.erased == 1
    assert [memory.id for memory in memory.list_recent()] == ["x"]
    memory.delete("x")


def test_what_another_user_says_is_another_thing(memory: AgentMemory, tmp_path: Path) -> None:
    bens = memory.store("likes tea", user_id="ben")
    memory.export(tmp_path / "copy")
    memory.delete(bens)
    engine = engine_of(memory)
    memory.erase([bens, memory.store("likes tea", user_id="ann")])
    assert len(engine.tombstones.all()) == 4
    path = tmp_path / "others.json"
    path.write_text('[{"content": "likes tea", "user_id": "cem"}]')
    assert taken_in(memory, path, format="json").new == 1
    assert taken_in(memory, tmp_path / "copy").erased == 1


def test_the_graph_and_the_reviews_of_it_stay_away(
    memory: AgentMemory, tmp_path: Path, clock: Clock
) -> None:
    kept = memory.store("Ann sings")
    secret = memory.store(SECRET)
    other = memory.store("Ben dances")
    graph = memory.graph
    graph.add("Ann", "owns", "the Zanzibarian parrot", memory_id=secret)
    both = graph.add("Ann", "knows", "Ben", temporal_context="Zanzibarian spring", memory_id=secret)
    graph.add("Ann", "knows", "Ben", memory_id=kept)
    engine = engine_of(memory)
    with engine.write():
        for memory_id, by, why in ((kept, None, f"as {SECRET}"), (other, secret, "why not")):
            row_id = engine.memories.row_id_of(memory_id)
            assert row_id is not None
            engine.reviews.add(
                row_id, replaced_by=by, confidence=None, reasoning=why, session_id="s", now=clock()
            )
    memory.export(tmp_path / "copy")
    memory.erase([secret, kept, other])
    clock.forward(days=1)
    assert traces(memory) == []
    assert memory.graph.entities() == []
    path = tmp_path / "without"
    path.write_text((tmp_path / "copy").read_text().replace(f'"{kept}"', '"kept"'))
    report = taken_in(memory, path)
    assert (report.new, report.erased) == (0, 3)  # it says what `kept` said
    assert memory.graph.entities() == []
    assert both is not None
    assert traces(memory) == []


def test_what_others_say_of_the_graph_comes_without_what_it_added(
    memory: AgentMemory, root: Path, tmp_path: Path, clock: Clock
) -> None:
    kept, secret = memory.store_many([{"content": "Ann knows Ben"}, {"content": SECRET}])
    graph = memory.graph
    graph.add("Ann", "owns", "the Zanzibarian parrot", memory_id=secret)
    graph.add("Ann", "knows", "Ben", temporal_context="Zanzibarian spring", memory_id=secret)
    graph.add("Ann", "knows", "Ben", memory_id=kept)
    engine = engine_of(memory)
    row_id = engine.memories.row_id_of(kept)
    assert row_id is not None
    with engine.write():
        engine.reviews.add(
            row_id, replaced_by=None, confidence=None, reasoning=SECRET, session_id="s", now=clock()
        )
    memory.export(tmp_path / "copy")
    with AgentMemory("bob", root=root / "new", clock=clock) as new:
        new.erase(new.store("something else", id=secret))
        report = taken_in(new, tmp_path / "copy")
        assert (report.new, report.erased) == (1, 1)
        assert [entity.name for entity in new.graph.entities()] == ["Ann", "Ben"]
        assert [review.reasoning for review in new.reviews()] == [None]
        assert traces(new) == []
        assert new.check().problems == []


# Backups ----------------------------------------------------------------------------------------


def restored(memory: AgentMemory, backup: Path) -> RestoreReport:
    return AgentMemory.restore(memory.path, backup, agent_id=memory.agent_id, keep_replaced=False)


def test_no_backup_brings_it_back(memory: AgentMemory) -> None:
    secret = memory.store(SECRET)
    deleted = memory.store(f"{SECRET} and swims")
    changed = memory.store("was here")
    memory.update(changed, content=f"{SECRET}, too")
    memory.update(changed, content="is here")
    memory.delete(deleted)
    backup = memory.backup()
    again = memory.store(f"{SECRET}, too")
    memory.erase([secret, deleted])
    memory.update(changed, content="is still here")
    before = memory.get(changed)
    # What is said elsewhere is not erased, unless nobody says it any more.
    memory.erase([changed, again])
    report = restored(memory, backup)
    assert (report.memory_count, report.erased, report.rejections_kept) == (0, 3, True)
    assert before is not None
    assert memory.list_recent() == []
    assert traces(memory) == []
    with pytest.raises(ValidationError):
        memory.undo()


def test_a_restored_memory_keeps_what_it_is_and_loses_a_past_that_was_erased(root: Path) -> None:
    with AgentMemory("bob", root=root, session_id="session-1") as memory:
        changed = memory.store("was here")
        memory.update(changed, content=SECRET)
        memory.update(changed, content="is here")
        backup = memory.backup()
    memory.path.unlink()
    with AgentMemory("bob", root=root, session_id="session-1") as anew:
        anew.erase(anew.store(SECRET))
        report = restored(anew, backup)
        assert (report.memory_count, report.erased) == (1, 1)
        assert [kept.content for kept in anew.list_recent()] == ["is here"]
        assert [entry.event for entry in anew.history(changed)] == ["ADD"]
        assert traces(anew) == []
        assert anew.check().problems == []
        with pytest.raises(ValidationError):
            anew.undo()


def test_what_is_erased_while_a_backup_is_restored_stays_out(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = memory.store_many([{"content": "one"}, {"content": SECRET}])
    backup = memory.backup()
    memory.erase(first)
    calls: list[int] = []

    def purge_and_erase(engine: Engine, **options: Any) -> Any:
        if not calls:
            memory.erase(second)
        calls.append(1)
        return purge(engine, **options)

    monkeypatch.setattr("agent_memory.services.recovery.purge", purge_and_erase)
    report = restored(memory, backup)
    assert (report.memory_count, report.erased, len(calls)) == (0, 2, 2)
    assert traces(memory) == []


def test_tombstones_of_a_backup_hold_too_and_those_of_a_lost_file_are_missed(
    memory: AgentMemory,
) -> None:
    secret = memory.store(SECRET)
    early = memory.backup()
    memory.erase(secret, backups=True)
    with AgentMemory.open(early) as copy:
        assert len(engine_of(copy).tombstones.all()) == 2
        assert traces(copy) == []
    with pytest.raises(ValidationError, match="was erased"):
        memory.store(SECRET, id=secret)


def test_no_rebuild_brings_it_back(root: Path, tmp_path: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        secret = memory.store(SECRET)
        memory.store_many({"content": f"kept number{n} " * 50} for n in range(200))
        memory.export(tmp_path / "scratchpad.yaml.backup", format="backup")
        memory.erase(secret)
    connection = sqlite3.connect(memory.path)
    (page,) = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'history'"
    ).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    data = bytearray(memory.path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    memory.path.write_bytes(data)
    report = AgentMemory.rebuild(memory.path, tmp_path / "scratchpad.yaml.backup", agent_id="bob")
    assert (report.memory_count, report.erased) == (200, [secret])
    with AgentMemory.open(memory.path) as rebuilt:
        assert traces(rebuilt) == []
        assert rebuilt.check().problems == []
        with pytest.raises(ValidationError, match="was erased"):
            rebuilt.store(SECRET, id=secret)


def test_no_undo_and_no_look_back_finds_it(memory: AgentMemory, clock: Clock) -> None:
    secret = memory.store(SECRET)
    memory.update(secret, tags=["bird"])
    before = clock()
    clock.forward(days=1)
    kept = memory.store("kept")
    memory.erase(secret)
    with pytest.raises(ValidationError):
        memory.undo()
    assert memory.get(secret, as_of=before) is None
    assert memory.list_recent(as_of=before) == []
    assert not memory.search(TOKEN, as_of=before)
    with pytest.raises(MemoryNotFound):
        memory.history(secret)
    assert memory.get(kept) is not None


# Storing ----------------------------------------------------------------------------------------


def test_what_has_its_id_and_its_text_is_refused(
    memory: AgentMemory, erased: Callable[..., str]
) -> None:
    secret = erased()
    with pytest.raises(ValidationError, match="was erased") as refused:
        memory.store_many([{"content": "new"}, {"content": f" {SECRET}.", "id": secret}])
    assert [(fault["loc"], fault["type"]) for fault in refused.value.errors()] == [
        ((1, "id"), "erased")
    ]
    assert SECRET not in str(refused.value)
    assert memory.count() == 1
    assert traces(memory) == []


def test_what_is_said_anew_is_new(
    memory: AgentMemory, clock: Clock, tmp_path: Path, erased: Callable[..., str]
) -> None:
    secret = erased()
    clock.forward(days=1)
    anew = memory.store(SECRET)
    assert anew != secret
    assert [tombstone.kind for tombstone in engine_of(memory).tombstones.all()] == ["id"]
    report = taken_in(memory, tmp_path / "copy")  # the old one is still the old one
    assert (report.new, report.erased) == (0, 1)
    memory.export(tmp_path / "again")
    memory.erase(anew)
    assert len(engine_of(memory).tombstones.all()) == 3
    assert taken_in(memory, tmp_path / "again").erased == 1
    assert traces(memory) == []


def test_an_id_with_other_words_and_what_is_dated_later_are_new(
    memory: AgentMemory, clock: Clock, tmp_path: Path, erased: Callable[..., str]
) -> None:
    secret = erased()
    clock.forward(days=1)
    memory.store("the crow knows nothing", id=secret)
    assert taken_in(memory, tmp_path / "copy").erased == 1  # it says what was erased
    assert traces(memory) == []
    memory.erase(secret)
    with pytest.raises(ValidationError, match="was erased"):
        memory.store(SECRET, id=secret, timestamp=clock() - timedelta(days=2))
    memory.store(SECRET, id=secret, timestamp=clock())
    assert memory.get(secret) is not None


def test_an_update_says_it_anew(memory: AgentMemory, tmp_path: Path) -> None:
    memory.erase(memory.store(SECRET))
    changed = memory.store("first")
    memory.update(changed, content=SECRET)
    memory.export(tmp_path / "copy")
    with AgentMemory("bob", root=tmp_path / "another") as other:
        assert other.import_(tmp_path / "copy").erased == 0
        other.export(tmp_path / "again")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "again").read_bytes()


def test_who_shares_the_store_cannot_bring_it_back(root: Path) -> None:
    with (
        AgentMemory("team", root=root) as team,
        AgentMemory("bob", root=root) as bob,
    ):
        team.configure(sharing="write")
        secret = bob.shared("team").store(SECRET)
        team.erase(secret)
        with pytest.raises(ValidationError, match="was erased"):
            bob.shared("team").store(SECRET, id=secret)
        assert traces(team, bob) == []


# What travels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["store", "sqlite"])
def test_another_store_knows_it_too(
    memory: AgentMemory, tmp_path: Path, erased: Callable[..., str], form: str
) -> None:
    erased("store")
    memory.export(tmp_path / "later", format=form)
    with AgentMemory("bob", root=tmp_path / "another") as other:
        report = other.import_(tmp_path / "later", format=form)
        assert report.new == 1
        assert "2 tombstones of erased memories imported" in report.notes
        other.export(tmp_path / "again")
        assert other.import_(tmp_path / "copy").erased == 1
        assert engine_of(other).tombstones.all() == engine_of(memory).tombstones.all()
        assert traces(other) == []
    if form == "store":
        assert (tmp_path / "again").read_bytes() == (tmp_path / "later").read_bytes()


def test_what_was_erased_elsewhere_stays_where_it_is_said(
    memory: AgentMemory, tmp_path: Path, erased: Callable[..., str]
) -> None:
    secret = erased("store")
    memory.export(tmp_path / "later")
    with AgentMemory("bob", root=tmp_path / "another") as other:
        other.import_(tmp_path / "copy")
        other.import_(tmp_path / "later", on_conflict="replace")
        assert other.get(secret) is not None
        assert engine_of(other).tombstones.all() == []
        assert other.check().problems == []


def test_a_tombstone_tells_nothing_of_the_text(root: Path) -> None:
    hashes = []
    for name in ("bob", "zoe"):
        with AgentMemory(name, root=root) as memory:
            memory.erase(memory.store(SECRET, id="the-same"))
            hashes.append({tombstone.hash for tombstone in engine_of(memory).tombstones.all()})
            assert traces(memory, token="the-same") == []
    assert [len(each) for each in hashes] == [2, 2]
    assert not hashes[0] & hashes[1]


def test_what_another_program_writes_anew_is_named_and_kept(
    memory: AgentMemory, tmp_path: Path, erased: Callable[..., str]
) -> None:
    secret = erased()
    connection = sqlite3.connect(memory.path)
    connection.execute(
        "INSERT INTO memories (id, content, timestamp, updated_at, created_by_session)"
        " SELECT ?, ?, timestamp, updated_at, 'by hand' FROM memories WHERE id = 'kept'",
        (secret, SECRET),
    )
    connection.commit()
    connection.close()
    (problem,) = memory.check().problems
    assert (problem.kind, secret in problem.detail, TOKEN in problem.detail) == (
        "erased_is_back", True, False,
    )  # fmt: skip
    memory.export(tmp_path / "with-it")
    with AgentMemory("bob", root=tmp_path / "another") as other:
        assert other.import_(tmp_path / "with-it").new == 2
    assert [problem.repaired for problem in memory.check(repair=True).problems] == [True]
    assert memory.get(secret) is not None
    assert engine_of(memory).tombstones.all() == []


# Killed -----------------------------------------------------------------------------------------


ERASES = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1]) as memory:
    print("ready", flush=True)
    memory.erase("secret")
"""
IMPORTS = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1]) as memory:
    print("ready", flush=True)
    memory.import_(sys.argv[2])
"""


def killed(script: str, *arguments: str, after: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("after", [0.0, 0.01, 0.03, 0.1])
def test_killed_at_any_moment_it_is_there_or_known_as_erased(tmp_path: Path, after: float) -> None:
    path, copy = tmp_path / "memories.db", tmp_path / "copy"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store_many({"content": f"kept {n} " * 100} for n in range(100))
        memory.store(SECRET, id="secret")
        memory.export(copy)
    killed(ERASES, str(path), after=after)
    with AgentMemory.open(path) as memory:
        is_there = memory.get("secret") is not None
        assert len(engine_of(memory).tombstones.all()) == (0 if is_there else 2)
        if is_there:
            memory.erase("secret")
        memory.finish_erasing()
        assert traces(memory) == []
    killed(IMPORTS, str(path), str(copy), after=after)
    with AgentMemory.open(path) as memory:
        assert traces(memory) == []
        assert memory.import_(copy).erased == 1
        assert memory.check().problems == []


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.15])
def test_a_restore_that_is_killed_brings_nothing_back(tmp_path: Path, after: float) -> None:
    path = tmp_path / "memories.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store_many({"content": f"kept {n} " * 100} for n in range(100))
        memory.store(SECRET, id="secret")
        backup = memory.backup()
        memory.erase("secret")
    script = """
import sys
from agent_memory import AgentMemory
print("ready", flush=True)
AgentMemory.restore(sys.argv[1], sys.argv[2], keep_replaced=False)
"""
    killed(script, str(path), str(backup), after=after)
    with AgentMemory.open(path) as memory:
        assert memory.get("secret") is None
        assert traces(memory) == []
        assert {problem.kind for problem in memory.check().problems} <= {"leftover"}


def test_a_full_import_that_fails_leaves_the_tombstones(
    memory: AgentMemory, tmp_path: Path, erased: Callable[..., str]
) -> None:
    erased()
    path = tmp_path / "copy"
    path.write_text(path.read_text().replace("kept number 1", "x" * 10_001))
    with pytest.raises((ValidationError, StorageError)):
        memory.import_(path, include_erased=True)
    assert len(engine_of(memory).tombstones.all()) == 2
    assert traces(memory) == []

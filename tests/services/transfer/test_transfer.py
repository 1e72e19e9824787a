"""Export and import through the verbs: what goes out comes back."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock, Open
from embedding_server import WordEmbedder
from exchange import (
    OF_MEMORIES,
    ONE_CORE_MEMORY,
    READ_BY,
    contents,
    data,
    everything,
    exported,
    filled,
    lines,
    saved,
    state,
)

from agent_memory import AgentMemory, RejectedContent, ValidationError
from agent_memory.formats.registry import FORMATS
from agent_memory.models.agent import AgentConfig

pytestmark = pytest.mark.usefixtures("temporary")

OF_ALL = ("sqlite", "metadata", "settings")


@pytest.fixture
def full(memory: AgentMemory, clock: Clock) -> AgentMemory:
    return filled(memory, clock)


@pytest.mark.parametrize("format", [*OF_MEMORIES, "sqlite"])
def test_every_field_of_every_memory_comes_back(
    full: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    path = exported(full, tmp_path / "out", format)
    with other() as copy:
        copy.configure(categories=["recipe"])
        report = copy.import_(path)
        assert (report.format, report.new) == (READ_BY.get(format, format), 13)
        assert (report.refused, report.repaired, report.dry_run) == (0, 0, False)
        assert everything(copy) == everything(full)
        assert len(everything(full)) == 13
        assert copy.check().problems == []


@pytest.mark.parametrize("format", [name for name in FORMATS if name not in OF_ALL])
def test_one_users_memories_are_exported_alone(
    memory: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    memory.configure(on_secret="mask")
    bens = memory.store("Ben keeps bees", user_id="ben")
    cold = memory.store("Alice sold her boat", user_id="alice")
    memory.update(memory.store("Ben likes quartz", user_id="ben"), content="Ben likes basalt")
    kept = memory.store("Alice likes oak", user_id="alice", run_id="r1", tags=["wood"])
    memory.graph.add("Ben", "keeps", "bees", memory_id=bens)
    memory.promote(bens)
    memory.promote(kept)
    memory.archive(cold)
    place = tmp_path / "alice"
    report = memory.export(place, format=format, user_id="alice")
    files = sorted(path for path in (place, *place.rglob("*")) if path.is_file())
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert "oak" in text
    assert [
        word for word in ("Ben", "bees", "quartz", "basalt", bens, "mask") if word in text
    ] == []
    ids = {kept} if format == "scratchpad" else {kept, cold}
    assert report.memory_count == len(ids)
    with other() as copy:
        assert copy.import_(place).new == len(ids)
        assert copy.count(filters={"archived": None}) == len(ids)
        assert copy.info().config.on_secret == "warn"
        if format == "store":
            assert copy.get(kept) == memory.get(kept)
            assert [each.id for each in copy.scratchpad().memories] == [kept]
    of_run = memory.export(tmp_path / "run", format=format, user_id="alice", run_id="r1")
    assert of_run.memory_count == 1


def test_an_export_of_one_user_has_their_reviews_categories_and_vectors(
    root: Path, tmp_path: Path
) -> None:
    embedder = WordEmbedder()
    with AgentMemory("bob", root=root, embedder=embedder) as memory:
        memory.configure(categories=["recipe", "secret"])
        memory.store("Alice makes a cake of almonds", user_id="alice", category="recipe")
        memory.store("Ben has a cipher", user_id="ben", category="secret")
        memory.add([{"role": "user", "content": "I live in Oslo."}], user_id="alice")
        memory.add([{"role": "user", "content": "I moved to Rome."}], user_id="alice")
        memory.add([{"role": "user", "content": "I live in Paris."}], user_id="ben")
        memory.add([{"role": "user", "content": "I moved to Madrid."}], user_id="ben")
        assert len(memory.reviews()) == 2
        memory.migrate()
        place = tmp_path / "alice.yaml"
        report = memory.export(place, user_id="alice", embeddings=True)
        assert any("are not in the export of one user" in note for note in report.notes)
        others = [each.id for each in memory.get_all(user_id="ben")]
        assert len(others) == 3
        text = place.read_text(encoding="utf-8")
        assert [word for word in ("Ben", "Paris", "secret", *others) if word in text] == []
    with AgentMemory("carl", root=root, embedder=embedder) as copy:
        assert copy.import_(place).repaired == 0
        assert [each.category for each in copy.list_recent(9) if "cake" in each.content] == [
            "recipe"
        ]
        assert copy.info().config.categories == ["recipe"]
        assert [review.content for review in copy.reviews()] == ["I live in Oslo."]
        info = copy.info()
        assert (info.vector_model, info.pending_embeddings) == ("words", 0)


def test_what_is_about_all_memories_is_no_export_of_one_user(
    memory: AgentMemory, tmp_path: Path
) -> None:
    for name in OF_ALL:
        with pytest.raises(ValidationError, match="is about all memories: leave the user out"):
            memory.export(tmp_path / "out", format=name, user_id="alice")
    with pytest.raises(ValidationError, match="give the user_id too"):
        memory.export(tmp_path / "out", run_id="r1")
    with pytest.raises(ValidationError, match="user_id"):
        memory.export(tmp_path / "out", user_id="")
    assert list(tmp_path.glob("out*")) == []


ODD_LETTERS = (
    "\x01\t\n\x7f\x80\x85\x9f\xa0\xad\u200b\u2028\u2029\ufeff\ufffe\uffff\U0001f600\U0001fffe"
)


@pytest.mark.parametrize("format", [*OF_MEMORIES, "markdown", "sqlite"])
def test_odd_letters_come_back_wherever_they_stand(
    memory: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    odd = [f"a{letter}{number}" for number, letter in enumerate([ODD_LETTERS, *ODD_LETTERS])]
    odd += ["1e-07", "NaN", "k" * 2_000]
    for text in odd:
        memory.store(
            text,
            kind="task",
            metadata={text: {text: [text, 1e-07, 1e22, None]}},
            tags=[text[:50], "b"],
            session_id=text[:128],
            task_metadata={"status": "blocked", "blockers": [text], "outcome": text},
        )
    path = exported(memory, tmp_path / "out", format)
    with other() as copy:
        assert copy.import_(path).repaired == 0
        assert everything(copy) == everything(memory)
        assert len(everything(copy)) == len(odd)
        if format != "sqlite":
            assert data(exported(copy, tmp_path / "out", format)) == data(path)


@pytest.mark.parametrize("format", OF_MEMORIES)
def test_what_was_taken_in_is_written_out_as_the_same_bytes(
    full: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    path = exported(full, tmp_path / "out", format)
    assert data(path) == data(exported(full, tmp_path / "out", format))
    with other() as copy:
        # What `backup` says of the scratchpad's size is of the store, not of the memories.
        copy.configure(categories=["recipe"], scratchpad_max_size=20)
        copy.import_(path)
        assert data(exported(copy, tmp_path / "out", format)) == data(path)


@pytest.mark.parametrize("format", ["store", "sqlite"])
def test_a_whole_store_comes_back_with_all_that_is_known_about_it(
    full: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    path = exported(full, tmp_path / "out", format)
    with other() as copy:
        report = copy.import_(path)
        assert report.settings == {
            "scratchpad_max_size": 20, "categories": ["recipe"], "backups_kept": 3,
        }  # fmt: skip
        assert state(copy, tmp_path / "out") == state(full, tmp_path / "out")
        assert copy.scratchpad() == full.scratchpad()
        assert copy.configure() == full.configure()
        assert [it.model_dump(exclude={"rejection_id"}) for it in copy.rejections()] == [
            it.model_dump(exclude={"rejection_id"}) for it in full.rejections()
        ]
        fields = {"created_at", "last_accessed", "stats"}
        mine, theirs = (it.info().model_dump(include=fields) for it in (copy, full))
        mine["stats"].pop("storage_size_mb"), theirs["stats"].pop("storage_size_mb")
        assert mine == theirs
        without = {"change_id"}
        assert [it.model_dump(exclude=without) for it in copy.history()] == [
            it.model_dump(exclude=without) for it in full.history()
        ]
        with pytest.raises(RejectedContent):
            copy.store("that is my secret word")


def test_a_field_that_was_empty_is_so_in_the_history_that_comes_back(
    memory: AgentMemory, other: Open, tmp_path: Path
) -> None:
    memory_id = memory.store("Write the report", kind="task")
    memory.update(memory_id, task_metadata={"status": "blocked"})
    memory.update(memory_id, task_metadata=None)
    without = {"change_id"}
    kept = [entry.model_dump(exclude=without) for entry in memory.history(memory_id)]
    assert [(entry["old_values"], entry["new_values"]) for entry in kept[:2]] == [
        ({"task_metadata": {"status": "blocked"}}, {}),
        ({}, {"task_metadata": {"status": "blocked"}}),
    ]
    path = exported(memory, tmp_path / "out")
    with other() as copy:
        copy.import_(path)
        assert [entry.model_dump(exclude=without) for entry in copy.history(memory_id)] == kept
        assert state(copy, tmp_path / "out") == path.read_bytes()


SETTINGS_OF_A_FILE: list[dict[str, Any]] = [
    {"scratchpad_max_size": 20, "migration_threshold": 500, "auto_migrate": True},
    {"migration_strategy": "immediate", "embedding_model": "text-embedding-3-large"},
    {"similarity_threshold": 1, "categories": ["recipe", "a b"], "on_duplicate": "merge"},
    {"on_secret": "mask", "backups_kept": 0, "sharing": "private", "event_log": "off"},
    {"on_duplicate": None, "vector_index": "table", "retention": "standard"},
    {"retention": ONE_CORE_MEMORY},
    {"retention": {"recent_days": 7, "limits": {}}},
    {"retention": None},
]


@pytest.mark.parametrize("settings", SETTINGS_OF_A_FILE, ids=str)
def test_settings_go_out_again_as_they_came(
    memory: AgentMemory, other: Open, tmp_path: Path, settings: dict[str, Any]
) -> None:
    memory.configure(**settings)
    path = exported(memory, tmp_path / "out")
    with other() as copy:
        copy.import_(path)
        assert copy.configure() == memory.configure()
        assert state(copy, tmp_path / "out") == path.read_bytes()


def test_every_setting_is_among_those_that_go_out_and_come_back() -> None:
    names = {name for settings in SETTINGS_OF_A_FILE for name in settings}
    assert names == set(AgentConfig.model_fields)


def test_history_that_was_taken_in_tells_what_was_when(
    full: AgentMemory, other: Open, tmp_path: Path, clock: Clock
) -> None:
    before = clock().replace(minute=2, second=30)
    path = exported(full, tmp_path / "out")
    clock.forward(days=1)
    with other() as copy:
        copy.import_(path)
        for moment in (before, before.replace(minute=3), clock()):
            wanted = full.list_recent(100, as_of=moment)
            assert copy.list_recent(100, as_of=moment) == wanted
        assert copy.get("Team:a_1.b-2", as_of=before) == full.get("Team:a_1.b-2", as_of=before)
        assert len(copy.list_recent(100, as_of=before)) == 12


@pytest.mark.file_only("it writes out the past")
@pytest.mark.parametrize("format", OF_MEMORIES)
def test_a_store_is_written_out_as_it_stood(
    full: AgentMemory, other: Open, tmp_path: Path, clock: Clock, format: str
) -> None:
    moment = clock().replace(minute=2, second=30)
    with other() as copy:
        copy.configure(categories=["recipe"])
        copy.import_(exported(full, tmp_path / "out", format, as_of=moment))
        mine, theirs = copy.list_recent(100), full.list_recent(100, as_of=moment)
        assert {it.id: it.content for it in mine} == {it.id: it.content for it in theirs}
        assert len(mine) == 12


def test_the_hot_set_comes_back_in_its_order(
    full: AgentMemory, other: Open, tmp_path: Path
) -> None:
    path = exported(full, tmp_path / "out", "scratchpad")
    hot = full.scratchpad().memories
    assert hot[0].last_accessed is not None
    with other() as copy:
        report = copy.import_(path)
        assert (report.format, report.new) == ("scratchpad", len(hot))
        found = copy.scratchpad().memories
        assert {it.id: it for it in found} == {it.id: it for it in hot}

        # comes before those that were.
        assert [it.id for it in found] == [it.id for it in hot]


def test_a_backup_that_is_longer_than_a_scratchpad_loses_nothing(
    memory: AgentMemory, other: Open, tmp_path: Path
) -> None:
    ids = memory.store_many([{"content": f"memory {n}"} for n in range(300)])
    path = exported(memory, tmp_path / "out", "backup")
    with other() as copy:
        assert copy.import_(path).new == 300
        assert set(everything(copy)) == set(ids)
        assert len(copy.scratchpad().memories) <= 50


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("count", [50, 51, 300])
def test_the_newest_of_a_long_scratchpad_are_the_hot_set(
    memory: AgentMemory, tmp_path: Path, count: int, has_ids: bool
) -> None:
    day = datetime(2025, 1, 1, tzinfo=UTC)
    entries = "".join(
        f"- {{content: memory {n}, {f'id: m{n}, ' * has_ids}"
        f"timestamp: {(day + timedelta(n)).isoformat()}}}\n"
        for n in reversed(range(count))
    )
    path = saved(tmp_path, f"agent_id: bob\nmax_size: 50\nmemories:\n{entries}")
    report = memory.import_(path)
    assert (report.new, report.refused) == (count, 0)
    hot = [entry.content for entry in memory.scratchpad().memories]
    assert hot == [f"memory {n}" for n in range(count - 1, count - 51, -1)]


@pytest.mark.parametrize("future", ["2099-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
@pytest.mark.parametrize("field", ["timestamp", "last_accessed", "timestamp: *1, last_accessed"])
def test_entries_of_the_future_do_not_drive_out_what_is_stored_now(
    memory: AgentMemory, tmp_path: Path, future: str, field: str
) -> None:
    field = field.replace("*1", future)
    entries = "".join(f"- {{content: memory {n}, id: m{n}}}\n" for n in range(49))
    text = f"memories:\n{entries}- {{content: of the future, {field}: {future}}}\n"
    assert memory.import_(saved(tmp_path, text)).new == 50
    stored = memory.store_many([{"content": f"stored {n}"} for n in range(3)])
    for n in range(3):
        stored.append(memory.store(f"stored later {n}"))
    assert set(stored) <= {entry.id for entry in memory.scratchpad().memories}


def test_a_whole_store_of_the_future_does_not_drive_out_what_is_stored_now(
    full: AgentMemory, other: Open, tmp_path: Path
) -> None:
    path = exported(full, tmp_path / "out")
    text = re.sub(r'entered_at: "?[^",}]+', 'entered_at: "2099-01-01T00:00:00Z', path.read_text())
    assert "2099" in text
    with other() as copy:
        copy.configure(scratchpad_max_size=10)
        report = copy.import_(saved(tmp_path, text))
        assert [note for note in report.notes if "its clock is ahead" in note]
        stored = [copy.store(f"stored later {n}") for n in range(5)]
        assert set(stored) <= {entry.id for entry in copy.scratchpad().memories}


def test_a_number_that_json_cannot_write_is_refused_by_its_place(
    memory: AgentMemory, other: Open
) -> None:
    memory.store("fine", id="fine")
    memory.store("huge", id="huge", metadata={"n": 1})
    code = (
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\n"
        "c.execute(\"UPDATE memories SET metadata = '{\\\"n\\\":9e999}' WHERE id = 'huge'\")\n"
        "c.commit()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(memory.path)], check=True, timeout=30)
    with other() as copy:
        with pytest.raises(ValidationError, match="metadata"):
            copy.import_(memory.path)
        report = copy.import_(memory.path, skip_bad=True)
        assert (report.new, contents(copy)) == (1, {"fine": "fine"})
    assert memory.check(repair=True).ok


def test_a_memory_without_an_id_that_is_refused_is_refused_once(
    memory: AgentMemory, tmp_path: Path
) -> None:
    text = "memories:\n- {content: fine}\n- {content: bad, access_count: -1}\n"
    report = memory.import_(saved(tmp_path, text), skip_bad=True)
    assert (report.new, report.refused, len(report.refusals)) == (1, 1, 1)
    assert len(memory.scratchpad().memories) == 1


def test_a_scratchpads_size_does_not_hide_whose_it_is(memory: AgentMemory, tmp_path: Path) -> None:
    text = "agent_id: carl\nmax_size: 40\nmemories:\n- {content: fine}\n"
    assert memory.import_(saved(tmp_path, text)).agent_id == "carl"


def test_vectors_come_with_the_store_and_nothing_is_embedded_again(
    memory: AgentMemory, root: Path, other: Open, tmp_path: Path
) -> None:
    answer = memory.store("The physician prescribed antibiotics and more sleep")
    memory.store_many([{"content": f"invoice number {n} was paid in full"} for n in range(30)])
    with AgentMemory("bob", root=root, embedder="wordllama") as mover:
        assert mover.migrate(embedder="wordllama").status == "completed"
        path = exported(mover, tmp_path / "out", embeddings=True)
        plain = exported(mover, tmp_path / "out")
    assert len(plain.read_bytes()) < len(path.read_bytes())
    with other(embedder="wordllama") as copy:
        assert copy.import_(path).notes == []
        info = copy.info()
        assert (info.storage_backend, info.pending_embeddings) == ("vector", 0)
        found = copy.search("what does my doctor recommend?", limit=1)
        assert (found[0].memory.id, found.search_metadata.backend) == (answer, "vector")
        assert copy.embedding_usage.texts == 1  # the question
        assert copy.check().problems == []
    with other("third", embedder="wordllama") as third:
        third.import_(path)
        assert exported(third, tmp_path / "out", embeddings=True).read_bytes() == path.read_bytes()
    with other("without", embedder="wordllama") as without:
        without.import_(plain)
        assert without.info().storage_backend == "file"


def test_vectors_of_another_text_are_left_out(
    memory: AgentMemory, root: Path, other: Open, tmp_path: Path
) -> None:
    memory.store_many([{"content": f"The physician said {n}", "id": f"m{n}"} for n in range(5)])
    with AgentMemory("bob", root=root, embedder="wordllama") as mover:
        mover.migrate(embedder="wordllama")
        path = exported(mover, tmp_path / "out", embeddings=True)
    path.write_text(path.read_text().replace('content: "The physician said 3"', 'content: "other"'))
    with other(embedder="wordllama") as copy:
        report = copy.import_(path)
        assert [note for note in report.notes if "1 vector does not match its text" in note] != []
        copy.embed()
        assert (copy.info().pending_embeddings, copy.check().problems) == (0, [])
        assert copy.embedding_usage.texts == 1


def test_memories_that_were_replaced_are_embedded_again(
    memory: AgentMemory, root: Path, tmp_path: Path
) -> None:
    memory.store_many([{"content": f"invoice {n} was paid", "id": f"m{n}"} for n in range(20)])
    path = saved(tmp_path, lines({"id": "m3", "content": "Samir adopted a kitten"}))
    with AgentMemory("bob", root=root, embedder="wordllama") as moved:
        moved.migrate(embedder="wordllama")
        assert moved.import_(path, on_conflict="replace").changed == 1
        assert moved.search("which pet animals live here?", limit=1)[0].memory.id == "m3"
        assert moved.info().pending_embeddings == 0


def test_rejections_of_a_file_are_one_note_however_many(tmp_path: Path) -> None:
    with AgentMemory("full", root=tmp_path, embedder="none") as full:
        for number in range(400):
            full.reject(f"walnut {number}")
        full.export(tmp_path / "full.jsonl", format="store")
    with AgentMemory("copy", root=tmp_path, embedder="none") as copy:
        report = copy.import_(tmp_path / "full.jsonl")
        assert [note for note in report.notes if "rejection" in note] == [
            "400 rejections imported: see `reject --list`"
        ]
        assert len(copy.rejections()) == 400
        again = copy.import_(tmp_path / "full.jsonl")
        assert [note for note in again.notes if "rejection" in note] == []

"""Erasure: nothing of a memory is left in any byte of the files, and everything else is."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import Clock, database_of, engine_of
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory import (
    AgentMemory,
    MemoryNotFound,
    StorageLocked,
    StorageReadOnly,
    ValidationError,
)
from agent_memory.models.reports import ErasureReceipt
from agent_memory.models.times import now_utc
from agent_memory.services.erasure.byte_search import CERTAIN, READ_LENGTH, Pieces, finder
from agent_memory.services.erasure.service import ErasureService
from agent_memory.storage.quantization import code_of
from agent_memory.storage.sqlite.connection import Database

Erase = Callable[..., ErasureReceipt]

WORDS = "amber bridge copper desert engine forest garden harbour island jungle kettle".split()


def eraser_of(memory: AgentMemory) -> ErasureService:
    return ErasureService(engine_of(memory), memory._store._unit_of_work, memory._clock)


@pytest.fixture
def erase(memory: AgentMemory) -> Erase:
    def call(*ids: str, backups: bool = False) -> ErasureReceipt:
        return eraser_of(memory).erase(ids, backups=backups, session_id="session-1")

    return call


def files_of(memory: AgentMemory) -> list[Path]:
    """Return all files in the agent's directory, its own and those beside it."""
    return [path for path in memory.path.parent.rglob("*") if path.is_file()]


def counted(text: str, *paths: Path) -> int:
    """Count the lines that have a text in files, with the real grep: it opens what it reads."""
    done = subprocess.run(
        ["grep", "-a", "-i", "-c", "-h", "-F", "-e", text, *map(str, paths)],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert done.returncode in (0, 1), done.stderr
    return sum(map(int, done.stdout.split()))


def prose(words: int, seed: int) -> str:
    """Make a text of words that no other text has, so that no piece of it is found by chance."""
    chosen = random.Random(seed)
    return " ".join(f"{chosen.choice(WORDS)}{chosen.randrange(10**6)}" for _ in range(words))


def others(memory: AgentMemory, count: int = 60) -> list[str]:
    """Store memories that are to stay, of every length."""
    return memory.store_many(
        {"content": f"kept number{n} {prose(1 + n * 11 % 500, n)}"[:9000], "tags": [f"tag{n}"]}
        for n in range(count)
    )


def assert_kept(memory: AgentMemory, ids: list[str]) -> None:
    assert memory.check().problems == []
    assert memory.count() == len(ids)
    for n in (0, len(ids) // 2, len(ids) - 1):
        assert memory.search(f"number{n}", limit=1)[0].memory.id == ids[n]
        assert memory.history(ids[n])


# What is gone ---------------------------------------------------------------------------------


LONG = prose(700, 9999)[:10_000]
CONTENTS = {
    "a unique word": "the code word is Xylophonist",
    "over several pages": LONG,
    "not ASCII": "Прячем пароль под ковром у входа — ключ от сейфа 密码是蓝色大象在跳舞",
    "escaped in JSON": 'she said "open\n\tsesame" \\ and\r\nleft the "cavern of wonders" at once',
    "of one long word": "q" + "".join(random.Random(5).choices("bcdfghjklm", k=3000)),
    "short": "pin 8841",
}


@pytest.mark.file_only("the file is looked through")
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_no_byte_of_a_content_is_left(memory: AgentMemory, erase: Erase, content: str) -> None:
    kept = others(memory)
    secret = memory.store(content)
    memory.promote(secret)
    memory.search(content[:200])
    memory.info()
    lines = [line for line in content.splitlines() if line.strip()]
    pieces = [piece for line in lines for piece in (line[:40], line[-40:])]
    assert all(counted(piece, memory.path, *files_of(memory)) for piece in pieces)
    receipt = erase(secret)
    assert (receipt.clean, receipt.found, receipt.also_in) == (True, [], [])
    assert (receipt.memories, receipt.changes, receipt.ids) == (1, 1, [secret])
    assert receipt.bytes_scanned >= memory.path.stat().st_size
    assert [counted(piece, *files_of(memory)) for piece in pieces] == [0] * len(pieces)
    assert memory.get(secret) is None
    assert_kept(memory, kept)


def test_old_versions_tags_and_metadata_go_as_well(memory: AgentMemory, erase: Erase) -> None:
    kept = others(memory)
    words = [f"wordnumber{n}x" for n in range(12)]
    secret = memory.store(
        f"first {words[0]} {LONG[:3000]}",
        tags=[f"tagof{words[1]}"],
        metadata={"source": f"said by {words[2]}", f"key{words[3]}": {"deep": [f'a "{words[4]}"']}},
        kind="task",
    )
    memory.update(secret, content=f'second "{words[5]}"\n', tags=[words[6]])
    memory.update(secret, metadata={"other": words[7]})
    memory.update(secret, content=f"third {words[8]} {LONG[3000:9000]}")
    assert all(counted(word, *files_of(memory)) for word in words[:9])
    receipt = erase(secret)
    assert receipt.clean
    assert (receipt.memories, receipt.changes) == (1, 4)
    assert [counted(word, *files_of(memory)) for word in words] == [0] * len(words)
    assert counted(LONG[100:130], *files_of(memory)) == 0
    assert_kept(memory, kept)


def test_deleted_and_archived_memories_can_be_erased(memory: AgentMemory, erase: Erase) -> None:
    kept = others(memory)
    deleted = memory.store("the deleted Zanzibarian parrot")
    memory.delete(deleted)
    archived = memory.store("the archived Quokkaland treaty")
    visitor = database_of(memory)
    with visitor.write():
        visitor.run("UPDATE memories SET archived = 1 WHERE id = ?", (archived,))
    assert counted("Zanzibarian", *files_of(memory))
    receipt = erase(deleted, archived)
    assert receipt.clean
    assert (receipt.memories, receipt.changes) == (1, 4)
    assert counted("Zanzibarian", *files_of(memory)) == 0
    assert counted("Quokkaland", *files_of(memory)) == 0
    assert_kept(memory, kept)


@pytest.mark.file_only("the file is looked through")
def test_who_leaves_leaves_nothing_deleted_or_stated_by_hand(memory: AgentMemory) -> None:
    """A user who was "forgotten" before, by ``delete_all``, stayed in the history for ever."""
    kept = others(memory)
    ann, ben = (memory.session({"user_id": name}) for name in ("ann@example.org", "ben"))
    ben.graph.add("Quokkaland", "borders", "Ruritania")
    gone = ann.store("the deleted Zanzibarian parrot")
    memory.session({"user_id": "ann@example.org", "run_id": "first"}).store("a Zanzibarian owl")
    ann.graph.add("Zanzibarian parrot", "lives_in", "Quokkaland")
    back = ann.store("the Zanzibarian parrot that Ben took over")
    memory.delete(back)
    memory.undo()
    memory.update(back, content="the parrot", user_id="ben")
    memory.delete_all(user_id="ann@example.org")
    backup = memory.backup()
    receipt = memory.erase(filters={"user_id": "ann@example.org"}, backups=True)
    assert receipt.clean
    assert gone in receipt.ids
    assert back not in receipt.ids
    memory.erase(back, backups=True)
    for word in ("Zanzibarian", "ann@example.org", "lives_in"):
        assert counted(word, *files_of(memory)) == 0
    assert [edge.source for edge in ben.graph.relationships()] == ["Quokkaland"]
    assert backup.exists()
    assert_kept(memory, kept)


@pytest.mark.file_only("the backups beside the file are looked through")
def test_who_is_only_in_backups_any_more_is_erased_there(memory: AgentMemory) -> None:
    """Its ids were gone with the first erasure, so that nobody could name them."""
    gone = memory.store("the Zanzibarian parrot", user_id="ann")
    moved = memory.store("the other parrot", user_id="ann")
    memory.backup()
    memory.update(moved, user_id="ben")
    assert memory.erase(filters={"user_id": "ann"}).ids == [gone]
    assert counted("Zanzibarian", *files_of(memory))
    receipt = memory.erase(filters={"user_id": "ann"}, backups=True)
    assert (receipt.ids, receipt.clean) == ([gone], True)
    assert counted("Zanzibarian", *files_of(memory)) == 0
    assert memory.count() == 1
    with pytest.raises(ValidationError, match="no memory matches"):
        memory.erase(filters={"user_id": "ann"}, backups=True)


@pytest.mark.parametrize("backups", [False, True])
@pytest.mark.file_only("the file is looked through")
def test_what_a_user_wrote_in_what_others_have_by_now_is_erased(
    memory: AgentMemory, clock: Clock, backups: bool
) -> None:
    """The history of a memory that Ben took over kept Ann's words, as did that of a used id."""
    moved = memory.store("the Zanzibarian parrot", user_id="ann@example.org")
    clock.forward(days=1)
    memory.update(moved, user_id="ben", content="a parrot of Ben's")
    clock.forward(days=1)
    middle = clock.now
    clock.forward(days=1)
    memory.update(moved, content="a green parrot")
    gone = memory.store("an owl of the Zanzibarian", user_id="ann@example.org")
    memory.update(gone, user_id="ben", content="an owl of Ben's")
    memory.delete(gone)
    memory.store("the code word is Xylophonist", id="again", user_id="ann@example.org")
    memory.delete("again")
    memory.store("a newer note", id="again", user_id="ben")
    memory.store("what nobody moved", user_id="ben")
    kept = {each.id: each for each in memory.list_recent(10)}
    backup = memory.backup()
    receipt = memory.erase(filters={"user_id": "ann@example.org"}, backups=backups)
    assert (receipt.ids, receipt.memories, receipt.changes, receipt.clean) == ([], 0, 6, True)
    assert [copy.found for copy in receipt.backups if copy.path == str(backup)] == [not backups]
    places = files_of(memory) if backups else [memory.path]
    for word in ("Zanzibarian", "Xylophonist", "ann@example.org"):
        assert counted(word, *places) == 0
    assert {each.id: each for each in memory.list_recent(10)} == kept
    assert memory.check().problems == []
    then = memory.get(moved, as_of=middle)
    assert then is not None
    assert (then.content, then.user_id) == ("a parrot of Ben's", "ben")
    assert memory.get(moved, as_of=middle - timedelta(days=1, hours=12)) is None
    memory.undo(memory.history(gone)[0].change_id)
    back = memory.get(gone)
    assert back is not None
    assert (back.content, back.user_id) == ("an owl of Ben's", "ben")
    memory.undo(memory.history(moved)[0].change_id)
    with pytest.raises(ValidationError, match="no memory matches"):
        memory.erase(filters={"user_id": "ann@example.org"})


def test_what_others_did_since_keeps_its_numbers(memory: AgentMemory, clock: Clock) -> None:
    """It got new ones: the graph did not follow its undo, and a number somebody noted was gone."""
    moved = memory.store("ann's note", user_id="ann")
    memory.update(moved, user_id="ben", content="ben's note")
    clock.forward(days=1)
    memory.update(moved, content="I like figs.")
    memory.graph.add("USER_ID", "likes", "figs", user_id="ben", memory_id=moved)
    memory.store("a later note", user_id="ben")
    later, noted, taken_over, _ = memory.history()
    memory.erase(filters={"user_id": "ann"})
    assert memory.history()[:2] == [later, noted]
    (first,) = memory.history()[2:]
    assert (first.change_id, first.event) == (taken_over.change_id, "ADD")
    assert (first.new_values or {})["content"] == "ben's note"
    for content, edges in (("ben's note", 0), ("I like figs.", 1)):
        memory.undo(noted.change_id if content == "ben's note" else None)
        kept = memory.get(moved)
        assert kept is not None
        assert kept.content == content
        assert len(memory.graph.relationships(user_id="ben")) == edges


@pytest.mark.file_only("the backups beside the file are looked through")
def test_what_is_anothers_by_now_stays_in_the_backups(memory: AgentMemory) -> None:
    """It was deleted after it had become Ben's, and his delete could not be undone any more."""
    moved = memory.store("the Zanzibarian parrot", user_id="ann")
    memory.backup()
    memory.update(moved, user_id="ben", content="a parrot of Ben's")
    memory.backup()
    memory.delete(moved)
    gone = memory.store("the code word is Xylophonist", user_id="ann")
    assert memory.erase(filters={"user_id": "ann"}, backups=True).ids == [gone]
    memory.undo(max(change.change_id for change in memory.history(moved)))
    restored = memory.get(moved)
    assert restored is not None
    assert restored.content == "a parrot of Ben's"


@pytest.mark.file_only("the backups beside the file are looked through")
def test_a_damaged_row_in_a_backup_does_not_hinder_an_erasure(memory: AgentMemory) -> None:
    memory.store("a note of nobody")
    memory.store("the Zanzibarian parrot", user_id="ann")
    backup = memory.backup()
    data = backup.read_bytes()
    place = data.index(b"the Zanzibarian parrot")
    backup.write_bytes(data[: place - 8] + b"\xff" * 8 + data[place:])  # the end of its id
    receipt = memory.erase(filters={"user_id": "ann"}, backups=True)
    assert (receipt.memories, memory.count()) == (1, 1)
    assert not receipt.clean
    assert [copy.path for copy in receipt.backups if copy.found] == [str(backup)]


@pytest.mark.file_only("the backups beside the file are looked through")
def test_backups_that_cannot_be_read_are_named_if_nothing_else_matches(memory: AgentMemory) -> None:
    memory.store("a note of nobody")
    memory.store("the Zanzibarian parrot", user_id="ann")
    backup = memory.backup()
    memory.erase(filters={"user_id": "ann"})
    for path in memory.path.parent.glob("**/*.db"):
        if path != memory.path:
            path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    with pytest.raises(ValidationError, match=r"could not be read.*" + re.escape(backup.name)):
        memory.erase(filters={"user_id": "ann"}, backups=True)


@pytest.mark.file_only("the backups beside the file are looked through")
def test_who_has_nothing_but_a_graph_is_erased(memory: AgentMemory) -> None:
    """No memory matched such a user, so that what was stated by hand stayed for ever."""
    kept = others(memory)
    ann = memory.session({"user_id": "ann@example.org"})
    ann.graph.add("Zanzibarian parrot", "lives_in", "Quokkaland")
    backup = memory.backup()
    for filters in ({"category": "note"}, {"run_id": "1"}):
        with pytest.raises(ValidationError, match="no memory matches"):
            memory.erase(filters={"user_id": "ann@example.org", **filters})
    receipt = memory.erase(filters={"user_id": "ann@example.org"})
    assert (receipt.ids, receipt.by_hand, receipt.clean) == ([], 3, True)
    assert ann.graph.relationships() == []
    copies = {Path(copy.path) for copy in receipt.backups if copy.found}
    assert copies == set(backup.parent.iterdir())
    receipt = memory.erase(filters={"user_id": "ann@example.org"}, backups=True)
    assert (receipt.ids, receipt.by_hand, receipt.clean) == ([], 0, True)
    for word in ("Zanzibarian", "ann@example.org", "lives_in"):
        assert counted(word, *files_of(memory)) == 0
    with pytest.raises(ValidationError, match="no memory matches"):
        memory.erase(filters={"user_id": "ann@example.org"}, backups=True)
    assert_kept(memory, kept)


def test_deleted_memories_are_matched_by_whose_they_were_alone(memory: AgentMemory) -> None:
    deleted = {
        name: memory.store(f"about {name}", user_id=name, run_id="1", session_id=f"s-{name}")
        for name in ("ann", "ben", "eve")
    }
    memory.delete_many(list(deleted.values()))
    back = memory.store("about ben, again", user_id="ben")
    filters = {"user_id": "ben", "category": "note"}
    assert memory.erase(filters=filters).ids == [back]
    assert memory.erase(filters={"user_id": "ben"}).ids == [deleted["ben"]]
    assert memory.erase(filters={"session_id": "s-eve", "run_id": "1"}).ids == [deleted["eve"]]
    with pytest.raises(ValidationError, match="no memory matches"):
        memory.erase(filters={"user_id": "ann", "run_id": "2"})
    assert len(memory.history(deleted["ann"])) == 2


def test_what_deleting_left_in_free_pages_goes(memory: AgentMemory, erase: Erase) -> None:
    """Pages that were freed before are not filled with zeros: only a new file is without them."""
    kept = others(memory, 20)
    texts = [prose(800, 1000 + n)[:9500] for n in range(30)]
    secrets = memory.store_many([{"content": text} for text in texts])
    for secret in secrets:
        memory.delete(secret)
    receipt = erase(*secrets)
    assert receipt.clean
    assert (receipt.memories, receipt.changes) == (0, 60)
    pieces = [text[at : at + 40] for text in texts for at in (0, 4000, 8000)]
    left = raw_bytes(database_of(memory)).lower()
    assert [piece for piece in pieces if piece.encode() in left] == []
    assert counted(texts[3][4000:4040], *files_of(memory)) == 0
    assert_kept(memory, kept)


def test_the_operation_is_noted_and_nothing_of_the_memory_with_it(
    memory: AgentMemory, erase: Erase
) -> None:
    secret = memory.store("gone for good")
    erase(secret)
    database = database_of(memory)
    rows = database.rows("SELECT verb, session_id, first_change > last_change FROM operations")
    assert rows[-1] == ("erase", "session-1", 1)
    assert database.rows("SELECT * FROM history") == []
    later = memory.store("stored afterwards")
    assert memory.history(later)[0].change_id > 1  # numbers are not used twice
    assert [hit.memory.id for hit in memory.search("stored afterwards")] == [later]


def test_the_file_stays_what_it_is(memory: AgentMemory, erase: Erase) -> None:
    others(memory)
    secret = memory.store("gone")
    database = database_of(memory)
    wanted = ("page_size", "application_id", "user_version", "journal_mode", "auto_vacuum")
    rows = "SELECT seq, id FROM memories WHERE id <> ? ORDER BY seq"

    def state() -> list[object]:
        pragmas: list[object] = [database.value(f"PRAGMA {name}") for name in wanted]
        return [*pragmas, database.rows(rows, (secret,))]

    before = state()
    erase(secret)
    assert state() == before
    assert database.value("PRAGMA secure_delete") == 0
    assert memory.path.with_name("memories.db-wal").stat().st_size == 0


def test_samples_that_the_query_planner_keeps_go(memory: AgentMemory, erase: Erase) -> None:
    secret = memory.store("content", tags=["samplednarwhal"])
    database = database_of(memory)
    database.run("ANALYZE")
    erase(secret)
    assert counted("samplednarwhal", *files_of(memory)) == 0
    assert memory.store("the planner goes on") in {one.id for one in memory.list_recent()}


# With vectors ---------------------------------------------------------------------------------


def make_with_vectors(root: Path) -> AgentMemory:
    pytest.importorskip("wordllama")
    memory = AgentMemory("bob", root=root, embedder="wordllama", session_id="session-1")
    memory.store_many({"content": f"kept number{n} {prose(20, n)}"} for n in range(40))
    memory.store("the treasure lies under the Baobab tree", id="secret")
    memory.store("the ship sailed without its captain", id="deleted")
    memory.migrate(embedder="wordllama")
    return memory


@pytest.fixture
def by_meaning(root: Path) -> Iterator[AgentMemory]:
    with make_with_vectors(root) as memory:
        yield memory
        assert memory.check().problems == []


def vector_of(memory: AgentMemory, memory_id: str) -> bytes:
    sql = "SELECT vector FROM embeddings JOIN memories USING (seq) WHERE id = ?"
    vector = database_of(memory).value(sql, (memory_id,))
    assert isinstance(vector, bytes)
    return vector


def raw_bytes(database: Database) -> bytes:
    """Read the file as SQLite does: an `open` here would drop this process's locks."""
    parts = database.raw_parts()
    return b"".join(b"".join(database.raw(part, READ_LENGTH)) for part in parts)


def test_vectors_go_and_so_do_their_rows_in_the_index(by_meaning: AgentMemory) -> None:
    database = database_of(by_meaning)
    vectors = [vector_of(by_meaning, name) for name in ("secret", "deleted")]
    by_meaning.delete("deleted")  # its row in the index waits to be taken out
    receipt = eraser_of(by_meaning).erase(["secret", "deleted"], backups=True, session_id="s")
    assert receipt.clean  # and so is the rollback file, which moving wrote
    assert (receipt.memories, receipt.embeddings) == (1, 1)
    left = raw_bytes(database)
    for vector in vectors:
        assert vector not in left
        assert code_of(vector) not in left
    assert counted("baobab", *files_of(by_meaning)) == 0
    assert database.value("SELECT count(*) FROM embedding_queue") == 0
    assert by_meaning.search("number7", limit=1)[0].memory.content.startswith("kept number7 ")


def test_a_vector_that_is_left_would_be_found(by_meaning: AgentMemory) -> None:
    database = database_of(by_meaning)
    vector = vector_of(by_meaning, "secret")
    with database.write():
        database.run("CREATE TABLE of_another_program (data BLOB)")
        database.run("INSERT INTO of_another_program VALUES (?)", (vector,))
    receipt = eraser_of(by_meaning).erase(["secret"], backups=True, session_id="s")
    assert receipt.found
    assert receipt.also_in == []
    with database.write():
        database.run("DROP TABLE of_another_program")


def test_without_sqlite_vec_the_index_is_emptied_and_built_again_later(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_with_vectors(root) as memory:
        path, code = memory.path, code_of(vector_of(memory, "secret"))
        assert code in raw_bytes(database_of(memory))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        with AgentMemory.open(path, embedder="wordllama") as without:
            assert eraser_of(without).erase(["secret"], backups=True, session_id="s").clean
            assert code not in raw_bytes(database_of(without))
            assert without.search("number7", limit=1)[0].memory.content.startswith("kept number7 ")
    with AgentMemory.open(path, embedder="wordllama") as again:
        again.search("the captain of the ship")
        assert again.check().problems == []
        assert database_of(again).value("SELECT count(*) FROM embedding_index_1") == 41


def test_the_index_of_a_model_that_is_gone_goes_as_well(
    by_meaning: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sqlite-vec was missing, going back to keywords could not drop it."""
    database, code = database_of(by_meaning), code_of(vector_of(by_meaning, "secret"))
    with monkeypatch.context() as patch:
        patch.setattr(Database, "load_vectors", lambda _self: False)
        by_meaning.rollback()
    assert code in raw_bytes(database)
    assert eraser_of(by_meaning).erase(["secret"], backups=True, session_id="s").clean
    assert code not in raw_bytes(database)


# What is found --------------------------------------------------------------------------------


def test_what_other_memories_say_is_no_leftover_and_is_named(
    memory: AgentMemory, erase: Erase
) -> None:
    text = "the safe opens with the combination nineteen eighty-four and a half turn"
    secret = memory.store(text, tags=["combinations"])
    same = memory.store(f"Note: {text.upper()}!", tags=["combinations"])
    once = memory.store(f"once it said that {text}")
    memory.update(once, content="now it says nothing of the kind")
    deleted = memory.store(f"deleted: {text}")
    memory.delete(deleted)
    memory.store("a memory that has the tag alone", tags=["combinations"])
    receipt = erase(secret)
    assert receipt.clean
    assert set(receipt.also_in) == {same, once, deleted}
    assert erase(*receipt.also_in).also_in == []
    assert counted("nineteen eighty-four", *files_of(memory)) == 0


def test_a_short_content_in_a_longer_word_of_another_is_no_leftover(
    memory: AgentMemory, erase: Erase
) -> None:
    secret = memory.store("marigold")
    longer = memory.store("the marigolds2 of Écolemarigold")
    receipt = erase(secret)
    assert (receipt.clean, receipt.also_in) == (True, [longer])


def test_digits_that_an_id_or_a_time_has_as_well_are_no_leftover(
    memory: AgentMemory, erase: Erase
) -> None:
    memory.store("kept", id="mem-abc881554abc", timestamp="2026-01-05T10:20:30.445566Z")
    receipt = erase(memory.store("the pin codes are 881554 and 445566 and 20260130"))
    assert (receipt.clean, receipt.also_in) == (True, [])


def test_words_of_the_schema_are_no_leftover(memory: AgentMemory, erase: Erase) -> None:
    """The tables' own descriptions are in the file as well."""
    receipt = erase(memory.store("Prefer PostgreSQL for new projects"))
    assert (receipt.clean, receipt.found) == (True, [])


def test_what_another_program_copied_is_found_and_not_told(
    memory: AgentMemory, erase: Erase
) -> None:
    text = prose(100, 7)
    secret = memory.store(text)
    database = database_of(memory)
    with database.write():
        database.run("CREATE TABLE notes_of_another_program AS SELECT content FROM memories")
    receipt = erase(secret)
    assert not receipt.clean
    assert receipt.found[0].startswith(f"{memory.path}, byte ")
    assert all(word not in receipt.model_dump_json() for word in text.split())
    with database.write():
        database.run("DROP TABLE notes_of_another_program")


def test_a_reason_or_setting_that_says_it_is_named(memory: AgentMemory, erase: Erase) -> None:
    secret = memory.store("the mole is Karla of the thirteenth directorate")
    database = database_of(memory)
    with database.write():
        database.run(
            "INSERT INTO rejections (words_hash, word_count, reason, rejected_at)"
            " VALUES (randomblob(32), 8, 'the mole is Karla of the thirteenth directorate',"
            " '2026-01-30T16:00:00.000000Z')"
        )
    receipt = erase(secret)
    assert receipt.found == ["the reason of rejection 1 contains part of the erased text"]


@pytest.mark.file_only("the bytes of a file are looked through")
def test_without_writing_the_file_anew_it_is_found(
    memory: AgentMemory, erase: Erase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof must fail when the log was not emptied."""
    others(memory)
    secret = memory.store(f"Xylophonist {LONG[:5000]}")
    monkeypatch.setattr(Database, "compact", lambda _self: None)
    receipt = erase(secret)
    assert not receipt.clean
    assert all(str(memory.path) in line for line in receipt.found)
    assert counted("xylophonist", *files_of(memory))
    monkeypatch.undo()
    eraser_of(memory).finish()
    assert counted("xylophonist", *files_of(memory)) == 0


# Backups --------------------------------------------------------------------------------------


def test_backups_that_hold_it_are_named_and_left(memory: AgentMemory, erase: Erase) -> None:
    before = memory.backup()
    secret = memory.store("the code word is Xylophonist tonight")
    with_it = memory.backup(before.with_name("by-hand.db"))
    memory._store.write_scratchpad(memory.path.with_name("scratchpad.yaml.backup"))
    state = with_it.read_bytes()
    receipt = erase(secret)
    assert receipt.clean  # of the store itself
    assert receipt.found == []
    told = {Path(copy.path).name: (copy.erased, copy.found) for copy in receipt.backups}
    assert told == {
        before.name: (False, False),
        "by-hand.db": (False, True),
        "scratchpad.yaml.backup": (False, True),
    }
    assert with_it.read_bytes() == state
    assert counted("xylophonist", memory.path, memory.path.with_name("memories.db-wal")) == 0


def test_backups_are_erased_as_well(memory: AgentMemory, erase: Erase) -> None:
    kept = others(memory)
    secret = memory.store("the old code word is Xylophonist tonight")
    first = memory.backup(memory.path.parent / "first.db")
    (memory.path.parent / "backups").mkdir()
    first = first.rename(memory.path.parent / "backups" / "first.db")
    memory.update(secret, content="the new code word is Marzipanesque today")
    second = memory.backup()
    yaml_backup = memory.path.with_name("scratchpad.yaml.backup")
    memory._store.write_scratchpad(yaml_backup)
    receipt = erase(secret, backups=True)
    assert receipt.clean
    assert {(copy.path, copy.erased) for copy in receipt.backups} == {
        (str(path), True) for path in (first, second, yaml_backup)
    }
    for word in ("xylophonist", "marzipanesque"):
        assert counted(word, *files_of(memory)) == 0
    for path in (first, second):
        with AgentMemory.open(path) as copy:
            assert_kept(copy, kept)
    assert len(list(memory.path.parent.joinpath("backups").iterdir())) == 2
    assert_kept(memory, kept)


def test_backups_can_be_erased_after_the_store(memory: AgentMemory, erase: Erase) -> None:
    secret = memory.store("the code word is Xylophonist tonight")
    memory.backup()
    assert any(copy.found for copy in erase(secret).backups)
    receipt = erase(secret, backups=True)
    assert receipt.clean
    assert receipt.memories == 0
    assert [copy.erased for copy in receipt.backups] == [True]
    assert counted("xylophonist", *files_of(memory)) == 0
    with pytest.raises(MemoryNotFound):
        erase(secret, backups=True)


REMOVES_AND_DIES = """
import os, sys
from datetime import timedelta
from pathlib import Path
from agent_memory.models.times import now_utc
from agent_memory.services.erasure.service import _Erasure, _remove
from agent_memory.storage.opening import open_engine
copy = open_engine(Path(sys.argv[1]), create=False)
_remove(copy, _Erasure([sys.argv[2]], "s", now_utc(), b"k" * 16))
os._exit(9)
"""


def test_a_backup_that_an_erasure_was_interrupted_in_is_completed(
    memory: AgentMemory, erase: Erase
) -> None:
    secret = memory.store(f"the code word is Xylophonist {LONG[:3000]}")
    backup = memory.backup()
    words = [sys.executable, "-c", REMOVES_AND_DIES, str(backup), secret]
    assert subprocess.run(words).returncode == 9
    log = backup.with_name(f"{backup.name}-wal")
    assert log.stat().st_size
    assert counted("xylophonist", backup)
    receipt = erase(secret, backups=True)
    assert receipt.clean
    assert [(copy.path, copy.erased) for copy in receipt.backups] == [(str(backup), True)]
    assert counted("xylophonist", *files_of(memory)) == 0


def test_a_damaged_backup_stays_and_is_named(memory: AgentMemory, erase: Erase) -> None:
    secret = memory.store("the code word is Xylophonist tonight")
    backup = memory.backup()
    data = backup.read_bytes()
    backup.write_bytes(b"\xff" * 100 + data[100:])
    aside = memory.path.with_name("memories.db.damaged-20260101T000000000000")
    aside.write_bytes(data[3000:])
    damaged = backup.read_bytes()
    receipt = erase(secret, backups=True)
    assert not receipt.clean
    told = {Path(copy.path): copy for copy in receipt.backups}
    assert (told[backup].erased, told[backup].found) == (False, True)
    assert "not a database" in (told[backup].problem or "")
    assert (told[aside].erased, told[aside].found) == (False, True)
    assert backup.read_bytes() == damaged


def test_a_backup_of_an_older_schema_is_brought_up_to_date_and_erased(
    memory: AgentMemory, erase: Erase
) -> None:
    secret = memory.store("the code word is Xylophonist tonight")
    kept = memory.store("kept")
    backup = memory.backup()
    code = """
import sys, apsw
from agent_memory.storage.sqlite import schema
c = apsw.Connection(sys.argv[1])
older = {(kind, name) for kind, name, _ in schema.shipped_schema(9).objects}
for wanted in ("trigger", "view", "index", "table"):
    for kind, name, _ in schema.objects():
        if kind == wanted and (kind, name) not in older:
            c.execute(f"DROP {kind} IF EXISTS {name}")
c.execute("ALTER TABLE scratchpad DROP COLUMN user_id")
c.execute("PRAGMA user_version = 9; DELETE FROM schema_migrations WHERE number > 9;"
          "DROP TRIGGER history_of_deleted")
c.execute(schema.shipped_schema(9).sql("trigger", "history_of_deleted"))
"""
    subprocess.run([sys.executable, "-c", code, str(backup)], check=True)
    receipt = erase(secret, backups=True)
    assert receipt.clean
    assert sorted(backup.parent.iterdir()) == [backup]
    with AgentMemory.open(backup) as copy:
        assert [one.id for one in copy.list_recent()] == [kept]
        assert copy.check().problems == []


def test_the_backup_of_another_agent_is_left_alone(
    memory: AgentMemory, erase: Erase, tmp_path: Path
) -> None:
    secret = memory.store("a fact that both know of the Xylophonist", id="shared-id")
    (memory.path.parent / "backups").mkdir()
    place = memory.path.parent / "backups" / "of-alice.db"
    with AgentMemory.open(tmp_path / "alice.db", agent_id="alice") as alice:
        alice.store("a fact that both know of the Xylophonist", id="shared-id")
        alice.backup(place)
    state = place.read_bytes()
    receipt = erase(secret, backups=True)
    assert [(copy.erased, copy.found) for copy in receipt.backups] == [(False, True)]
    assert place.read_bytes() == state


def test_the_rollback_file_keeps_the_rest_to_the_byte(memory: AgentMemory, erase: Erase) -> None:
    path = memory.path.with_name("scratchpad.yaml.backup")
    entry = '  - id: {0}\n    content: "said by {0}: {1}"\n    # a remark\n\n'
    head, tail = "# by hand\nagent_id: bob\nmemories:\n", "max_size: 20\n"
    for name in ("one", "two", "three"):
        memory.store(f"said by {name}: {name * 20}", id=name)
    entries = [entry.format(name, name * 20) for name in ("one", "two", "three")]
    path.write_text(head + "".join(entries) + tail)
    assert erase("two", backups=True).clean
    assert path.read_text() == head + entries[0] + entries[2] + tail
    assert erase("one", "three", backups=True).clean
    assert path.read_text() == head + tail


def test_a_rollback_file_whose_lines_are_shared_is_named_and_left(
    memory: AgentMemory, erase: Erase
) -> None:
    path = memory.path.with_name("scratchpad.yaml.backup")
    text = 'memories: [{id: one, content: "the code of the Xylophonist"}, {id: two, content: b}]\n'
    path.write_text(text)
    memory.store("the code of the Xylophonist", id="one")
    receipt = erase("one", backups=True)
    (copy,) = receipt.backups
    assert (copy.erased, copy.found) == (False, True)
    assert "remove them by hand" in (copy.problem or "")
    assert path.read_text() == text
    assert [it.name for it in path.parent.iterdir() if "kept" in it.name] == []


# What does not happen -------------------------------------------------------------------------


def test_an_unknown_id_erases_nothing(memory: AgentMemory, erase: Erase) -> None:
    known = memory.store("kept")
    with pytest.raises(MemoryNotFound, match="mem-000000000000"):
        erase(known, "mem-000000000000")
    with pytest.raises(ValidationError, match="no memory matches"):
        erase()
    assert memory.get(known) is not None
    assert len(memory.history(known)) == 1


READS_AN_OLDER_STATE = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN")
print(c.execute("SELECT count(*) FROM memories").fetchone()[0], flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("is_log_empty", [True, False])
def test_a_reader_of_an_older_state_is_refused_before_anything_is_erased(
    memory: AgentMemory, erase: Erase, is_log_empty: bool
) -> None:
    secret = memory.store("the code word is Xylophonist")
    database = database_of(memory)
    if is_log_empty:
        database.compact()
    words = [sys.executable, "-c", READS_AN_OLDER_STATE, str(memory.path)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1\n"
        if not is_log_empty:
            memory.store("and another one")
        before = database.rows("SELECT * FROM history")
        with pytest.raises(StorageLocked, match="Nothing was erased"):
            erase(secret)
        assert database.rows("SELECT * FROM history") == before
        assert memory.get(secret) is not None
        reader.communicate("\n")
    assert erase(secret).clean


def test_a_reader_that_comes_too_late_is_told_and_finished_later(
    memory: AgentMemory, erase: Erase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins to read between the look for readers and the erasing."""
    secret = memory.store(f"the code word is Xylophonist {LONG[:2000]}")
    words = [sys.executable, "-c", READS_AN_OLDER_STATE, str(memory.path)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1\n"
        monkeypatch.setattr(Database, "refuse_readers", lambda _self: None)
        receipt = erase(secret)
        assert receipt.memories == 1
        assert not receipt.clean
        assert "finish the erasure" in receipt.found[0]
        with pytest.raises(StorageLocked):
            eraser_of(memory).finish()
        reader.communicate("\n")
    assert memory.get(secret) is None
    eraser_of(memory).finish()
    assert counted("xylophonist", *files_of(memory)) == 0


HISTORY_OF_SECRET = "SELECT count(*) FROM history WHERE memory_id = 'secret'"
ERASES = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False) as memory:
    eraser = memory._store.erasure
    print("begins", flush=True)
    eraser.erase(["secret"], backups=True, session_id="s")
    print("ends", flush=True)
"""


def test_killed_at_any_moment_it_is_there_or_the_rows_are_gone(tmp_path: Path) -> None:
    chosen = random.Random(11)
    seconds, outcomes = _erase_in_child(tmp_path / "whole" / "memories.db", None), set[bool]()
    for turn in range(60):
        place = tmp_path / f"{turn}" / "memories.db"
        # Later and later: on a busy machine the others take longer than the one that was timed.
        _erase_in_child(place, chosen.random() * seconds * (1 + turn / 10))
        with AgentMemory.open(place, create=False) as memory:
            assert memory.check().problems == []
            is_there = memory.get("secret") is not None
            assert bool(database_of(memory).value(HISTORY_OF_SECRET)) is is_there
            outcomes.add(is_there)
            if is_there:
                assert eraser_of(memory).erase(["secret"], backups=True, session_id="s").clean
            else:
                eraser_of(memory).finish()
            assert counted("xylophonist", *files_of(memory)) == 0
            assert memory.count() == 100
        if turn >= 5 and len(outcomes) == 2:
            break
    assert outcomes == {True, False}


def _erase_in_child(place: Path, kill_after: float | None) -> float:
    """Let another process erase; return how long that took it until it was killed, or ended."""
    with AgentMemory.open(place) as memory:
        others(memory, 100)
        memory.store(f"the code word is Xylophonist {LONG[:3000]}", id="secret")
        memory.backup()
    words = [sys.executable, "-c", ERASES, str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        started = time.monotonic()
        if kill_after is None:
            assert child.stdout.readline() == "ends\n"
        else:
            time.sleep(kill_after)
            child.send_signal(signal.SIGKILL)
        return time.monotonic() - started


def test_a_read_only_memory_erases_nothing(memory: AgentMemory) -> None:
    secret = memory.store("kept")
    with (
        AgentMemory.open(memory.path, read_only=True) as reader,
        pytest.raises(StorageReadOnly, match="read-only"),
    ):
        eraser_of(reader).erase([secret], session_id="s")
    assert memory.get(secret) is not None


# Finding pieces -------------------------------------------------------------------------------


@pytest.mark.file_only("no engine is asked")
@settings(max_examples=200, deadline=None)
@given(
    st.binary(min_size=CERTAIN, max_size=300),
    st.integers(0, 200),
    st.integers(0, 200),
    st.binary(max_size=100),
)
def test_any_part_that_is_long_enough_is_found(
    text: bytes, start: int, more: int, before: bytes
) -> None:
    start = min(start, len(text) - CERTAIN)
    part = text[start : start + CERTAIN + more]
    found = Pieces([text]).find(lambda: [before + part.upper()])
    assert found
    data = (before + part).lower()
    assert all(data[at : at + len(piece)] == piece for piece, at in found.items())


@settings(max_examples=200, deadline=None)
@given(st.sets(st.text("ab", min_size=1, max_size=6).map(str.encode), min_size=1), st.text("abc"))
def test_short_pieces_are_found_wherever_they_stand(pieces: set[bytes], text: str) -> None:
    data = text.encode()
    expected = {piece: data.index(piece) for piece in pieces if piece in data}
    assert finder(pieces)(data) == expected


def test_pieces_across_the_borders_of_what_is_read_at_a_time_are_found() -> None:
    long = prose(20, 3).encode()
    short = b"xylophonist"
    for cut in (0, 1, 5, len(short) - 1, len(short)):
        data = bytes(READ_LENGTH - cut) + short + bytes(50) + long
        chunks = [data[at : at + READ_LENGTH] for at in range(0, len(data), READ_LENGTH)]
        found = Pieces([short, long]).find(lambda chunks=chunks: chunks)  # type: ignore[misc]
        assert found.pop(short) == READ_LENGTH - cut
        assert found
        assert all(data[at : at + len(piece)] == piece for piece, at in found.items())


def test_many_long_texts_are_looked_for_in_turns() -> None:
    texts = [prose(700, n).encode() for n in range(60)]  # more blocks than are held at a time
    data = b"".join(text[500:600] for text in texts)
    found = Pieces(texts).find(lambda: [data])
    assert all(any(piece in text for piece in found) for text in texts)


def test_the_clock_of_a_receipt_is_the_stores(
    memory: AgentMemory, erase: Erase, clock: Clock
) -> None:
    receipt = erase(memory.store("gone"))
    assert receipt.erased_at == clock()
    assert receipt.erased_at < now_utc()
    assert json.loads(receipt.model_dump_json())["ids"] == receipt.ids


@pytest.mark.parametrize("text", ["zebra", "the door code is 4711"])
def test_the_backup_before_an_erasure_is_named_and_can_be_erased_in(root: Path, text: str) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory_id = memory.store(text)
        receipt = memory.erase(memory_id)
        (backup,) = memory.backups()
        assert [(copy.path, copy.found) for copy in receipt.backups] == [(backup.path, True)]
        again = memory.erase(memory_id, backups=True)
        assert again.clean
        assert [(copy.path, copy.erased) for copy in again.backups] == [(backup.path, True)]
        assert text.encode() not in Path(backup.path).read_bytes()

"""A file of any version opens for ever: migrations are frozen, and a file of each is kept here.

``tests/golden/files/`` has a file that each version of the schema made, packed by ``xz``; a letter
stands for an earlier text of a migration, from before these were frozen. After a migration was
added, ``python tests/storage/sqlite/test_older_files.py`` writes what is missing.
"""

from __future__ import annotations

import hashlib
import lzma
import tempfile
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from agent_memory import AgentMemory, MigrationError, StorageUntrusted
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import SELECT_OBJECTS
from agent_memory.storage.sqlite.legacy_schema import LEGACY_HASHES

TESTS = Path(__file__).parents[2]
MIGRATIONS = TESTS.parent / "migrations"
FILES = TESTS / "golden" / "files"
HASHES = TESTS / "golden" / "migrations.sha256"
LATEST = FILES / f"schema-{schema.latest_version():02}.db.xz"
SEQUENCES = "SELECT name, seq FROM sqlite_sequence"
HOW = "run `python tests/storage/sqlite/test_older_files.py`, and commit what it writes"


class Letters:
    """An embedder that counts letters: small vectors that differ."""

    model = "letters-8"
    dimensions = 8

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0 + text.lower().count(letter) for letter in "aeinorst"] for text in texts]


def unpack(packed: Path, place: Path) -> Path:
    path = place / "s.db"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [tuple(row) for row in connection.execute(sql)]
    finally:
        connection.close()


def is_of_vec0(row: tuple[object, ...]) -> bool:
    return str(row[1]).startswith(("embedding_index_", "embedding_cells_"))


def test_a_migration_that_was_committed_is_never_edited() -> None:
    lines = (line.split() for line in HASHES.read_text().splitlines())
    frozen = {name: sha256 for sha256, name in lines}
    for path in sorted(MIGRATIONS.glob("[0-9]*.sql")):
        sha256 = hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        assert path.name in frozen, f"{path.name} is new: {HOW}"
        assert sha256 == frozen[path.name], (
            f"{path.name} was edited: files in use have its hash, and would be refused."
            " Undo that, and put the change into a new migration"
        )
    assert sorted(frozen) == [migration.name for migration in schema.migrations()]
    assert not LEGACY_HASHES & set(frozen.values())


def test_a_file_of_this_version_is_kept() -> None:
    assert LATEST.exists(), f"{LATEST.name} is missing: {HOW}"


@pytest.mark.parametrize("packed", sorted(FILES.iterdir()), ids=lambda packed: packed.name[:-6])
def test_a_file_of_any_version_opens_as_a_new_one_would(packed: Path, tmp_path: Path) -> None:
    path = unpack(packed, tmp_path)
    sequences = rows(path, SEQUENCES)
    with AgentMemory.open(path, embedder=Letters()) as memory:
        assert [one.id for one in memory.list_recent()] == ["mem-4", "mem-2", "mem-1"]
        chestnut = memory.get("mem-2")
        assert chestnut is not None
        assert chestnut.content == "a chestnut in the orchard"
        assert (chestnut.user_id, chestnut.version) == ("ada", 2)
        assert chestnut.metadata == {"colour": None, "n": 1}
        assert [change.event.value for change in memory.history("mem-2")] == ["UPDATE", "ADD"]
        assert [change.event.value for change in memory.history("mem-3")] == ["DELETE", "ADD"]
        assert memory.search("PostgreSQL")[0].memory.tags == ["database"]
        assert memory.search("東京", count_accesses=False)[0].memory.id == "mem-4"
        assert memory.check().problems == []
        assert set(sequences) <= set(rows(path, SEQUENCES))
        assert len(memory.reviews()) == (1 if "12a" in packed.name else 0)
        memory.store("and goes on")
        memory.undo()
        memory.export(tmp_path / "first.yaml", format="store")
    assert {row for row in rows(path, SELECT_OBJECTS) if not is_of_vec0(row)} == set(
        schema.objects()
    )
    with AgentMemory.open(tmp_path / "new.db", agent_id="bob", embedder=Letters()) as memory:
        memory.import_(tmp_path / "first.yaml", format="store")
        memory.export(tmp_path / "second.yaml", format="store")
    assert (tmp_path / "second.yaml").read_bytes() == (tmp_path / "first.yaml").read_bytes()
    if packed != LATEST:
        (backup,) = (tmp_path / "backups").iterdir()
        old = unpack(packed, tmp_path / "backups")
        assert set(rows(backup, SELECT_OBJECTS)) == set(rows(old, SELECT_OBJECTS))


@pytest.mark.parametrize("name", ["schema-07a", "schema-09b", "schema-12a"])
def test_vectors_of_an_earlier_text_are_kept(name: str, tmp_path: Path) -> None:
    path = unpack(FILES / f"{name}.db.xz", tmp_path)
    vectors = rows(path, "SELECT seq, text_hash, scale, vector FROM embeddings ORDER BY seq")
    AgentMemory.open(path).close()
    assert (
        rows(path, "SELECT seq, text_hash, scale, vector FROM embeddings ORDER BY seq") == vectors
    )
    assert rows(path, "SELECT similarity_floor FROM embedding_models") == [(None,)]


@pytest.mark.parametrize("name", ["schema-07", "schema-12", "schema-16"])
def test_an_index_of_an_earlier_version_is_no_fault(name: str, tmp_path: Path) -> None:
    """`check` called each file with vectors NOT sound after an upgrade, until the first search."""
    path = unpack(FILES / f"{name}.db.xz", tmp_path)
    with AgentMemory.open(path, embedder=Letters()) as memory:
        report = memory.check()
        assert report.problems == []
        assert report.notes == [
            "embedding_index_1 is of an earlier version: the next search rebuilds it"
        ]
        memory.search("chestnut")
        assert memory.check().notes == []
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE embedding_cells_1")
    connection.close()
    with AgentMemory.open(path, embedder=Letters()) as memory:
        kinds = {problem.kind for problem in memory.check().problems}
        assert kinds == {"stale_vector_index"}


def test_columns_and_tables_of_others_stay_in_a_file_of_an_earlier_text(tmp_path: Path) -> None:
    path = unpack(FILES / "schema-07a.db.xz", tmp_path)
    connection = apsw.Connection(str(path))
    connection.execute("ALTER TABLE memories ADD COLUMN colour TEXT")
    connection.execute("UPDATE memories SET colour = 'red' WHERE id = 'mem-1'")
    connection.execute("CREATE TABLE plans (x); INSERT INTO plans VALUES (1)")
    connection.close()
    with AgentMemory.open(path) as memory:
        memory.store("may be written")
    assert rows(path, "SELECT colour FROM memories WHERE colour > ''") == [("red",)]
    assert rows(path, "SELECT x FROM plans") == [(1,)]


def test_a_column_of_others_stays_where_a_later_version_adds_its_own(tmp_path: Path) -> None:
    path = unpack(FILES / "schema-14.db.xz", tmp_path)
    connection = apsw.Connection(str(path))
    connection.execute("ALTER TABLE entity_sources ADD COLUMN colour TEXT")
    connection.close()
    with AgentMemory.open(path) as memory:
        memory.store("may be written")
        assert memory.check().problems == []
    assert "colour" in [row[1] for row in rows(path, "PRAGMA table_info(entity_sources)")]


def test_a_migration_that_nobody_knows_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = unpack(FILES / "schema-10.db.xz", tmp_path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE schema_migrations SET sha256 = 'other' WHERE number = 4")
    [(trigger,)] = rows(path, "SELECT name FROM sqlite_schema WHERE type = 'trigger' LIMIT 1")
    connection.execute(f"DROP TRIGGER {trigger}")
    connection.close()
    with pytest.raises(MigrationError, match=r"0004_history.*export --format store"):
        AgentMemory.open(path)


def test_an_older_file_without_its_record_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = unpack(FILES / "schema-10.db.xz", tmp_path)
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE schema_migrations")
    connection.close()
    told = (
        r"older schema, and was not upgraded: the table schema_migrations is missing\. Import this"
    )
    with pytest.raises(StorageUntrusted, match=told) as refused:
        AgentMemory.open(path)
    assert "drop" not in str(refused.value)
    with AgentMemory("bob", root=tmp_path / "root") as memory:
        assert memory.import_(path).new > 0


def write_golden() -> None:
    """Write the hash of each new migration, and a file of this version where there is none."""
    frozen = HASHES.read_text().splitlines()
    for migration in schema.migrations()[len(frozen) :]:
        frozen.append(f"{migration.sha256}  {migration.name}")
    HASHES.write_text("\n".join(frozen) + "\n")
    if LATEST.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.db")
        with AgentMemory.open(path, agent_id="bob", embedder=Letters()) as memory:
            memory.store(
                "Prefer PostgreSQL for new projects",
                category="preference", tags=["database"], id="mem-1",
            )  # fmt: skip
            metadata = {"colour": None, "n": 1}
            memory.store("a walnut in the orchard", id="mem-2", metadata=metadata, user_id="ada")
            memory.store("a mistake", id="mem-3")
            memory.store("私は東京に住んでいます", id="mem-4")
            memory.update("mem-2", content="a chestnut in the orchard")
            memory.delete("mem-3")
            memory.migrate()
        LATEST.write_bytes(lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    write_golden()

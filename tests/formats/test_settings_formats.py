"""An agent's settings in files: ``metadata.json``, and the YAML of a configuration."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from sources import ListSource

from agent_memory import (
    AgentConfig,
    AgentInfo,
    AgentMemory,
    AgentMetadata,
    AgentStats,
    MigrationInfo,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.formats.protocol import Codec
from agent_memory.formats.registry import codec, recognise
from agent_memory.models.portable import Entry, Section

FULL = AgentMetadata(
    agent_id="bob",
    created_at=datetime(2026, 1, 15, 10, tzinfo=UTC),
    memory_count=327,
    storage_backend="vector",
    migration_date=datetime(2026, 1, 20, 14, 30, tzinfo=UTC),
    last_accessed=datetime(2026, 1, 30, 16, tzinfo=UTC),
    stats=AgentStats(
        total_queries=145,
        avg_query_latency_ms=87.3,
        storage_size_mb=3.2,
        embeddings_generated=327,
        scratchpad_promotions=12,
    ),
    migration=MigrationInfo(
        backup_path="scratchpad.yaml.backup", can_rollback=True, migration_duration_seconds=45.2
    ),
)
FULL_TEXT = """{
  "agent_id": "bob",
  "created_at": "2026-01-15T10:00:00Z",
  "memory_count": 327,
  "storage_backend": "vector",
  "migration_date": "2026-01-20T14:30:00Z",
  "last_accessed": "2026-01-30T16:00:00Z",
  "stats": {
    "total_queries": 145,
    "avg_query_latency_ms": 87.3,
    "storage_size_mb": 3.2,
    "embeddings_generated": 327,
    "scratchpad_promotions": 12
  },
  "config": {
    "scratchpad_max_size": 50,
    "migration_threshold": 5000,
    "auto_migrate": false,
    "embedding_model": "text-embedding-3-small",
    "similarity_threshold": 0.75
  },
  "migration": {
    "backup_path": "scratchpad.yaml.backup",
    "can_rollback": true,
    "migration_duration_seconds": 45.2
  }
}
"""
FIGURES = {
    "agent_id": "bob",
    "created_at": "2026-01-15T10:00:00Z",
    "last_accessed": "2026-01-30T16:00:00Z",
    "total_queries": 145,
    "total_query_ms": 145 * 87.3,
    "scratchpad_promotions": 12,
}
SHORT_TEXT = """{
  "agent_id": "bob",
  "created_at": "2026-01-15T10:00:00Z",
  "memory_count": 327,
  "storage_backend": "vector",
  "migration_date": "2026-01-20T14:30:00Z",
  "last_accessed": "2026-01-30T16:00:00Z",
  "stats": {"total_queries": 145, "avg_query_latency_ms": 87, "storage_size_mb": 3.2}
}
"""
MIGRATION = """memory:
  migration:
    threshold: 5000
    auto_migrate: false  # Manual by default (safe)
    strategy: "background"  # or "immediate"
"""
SESSION = """# User's settings.yaml or session config
session:
  capabilities:
    agent_identity: "bob"  # Required for memory operations
    memory:
      enabled: true        # Opt-in stateful behavior
      mode: "autonomous"   # Agent decides when to query
"""


def saved(text: str | bytes, folder: Path) -> Path:
    path = folder / "in"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(text: str | bytes, folder: Path, name: str = "metadata") -> Entry:
    (entry,) = codec(name).read(saved(text, folder))
    assert entry.section is Section.AGENT
    return entry


def written(name: str, metadata: AgentMetadata, folder: Path) -> str:
    path = folder / "out"
    codec(name).write(path, ListSource([], metadata))
    return path.read_text()


# metadata.json ------------------------------------------------------------------------------


def test_metadata_is_written_with_the_keys_of_the_document_in_its_order(tmp_path: Path) -> None:
    assert written("metadata", FULL, tmp_path) == FULL_TEXT


def test_what_is_known_beyond_the_document_is_not_written(tmp_path: Path) -> None:
    info = AgentInfo(
        **FULL.model_dump(),
        path="/somewhere/memories.db",
        schema_version=9,
        sqlite_version="3.54.1",
        scratchpad_size=3,
        archived_count=1,
    )
    assert written("metadata", info, tmp_path) == FULL_TEXT


def test_a_store_that_was_never_moved_has_null_for_what_it_does_not_know(tmp_path: Path) -> None:
    told = json.loads(written("metadata", AgentMetadata(agent_id="bob"), tmp_path))
    assert (told["migration_date"], told["migration"]) == (None, None)
    assert AgentMetadata(**told).config == AgentConfig()


def test_further_settings_that_are_set_stand_after_those_of_the_document(tmp_path: Path) -> None:
    config = AgentConfig(
        auto_migrate=True, categories=["Vorfälle"], on_duplicate="merge", backups_kept=0
    )
    text = written("metadata", FULL.model_copy(update={"config": config}), tmp_path)
    told = json.loads(text)["config"]
    assert list(told) == [
        "scratchpad_max_size", "migration_threshold", "auto_migrate", "embedding_model",
        "similarity_threshold", "categories", "on_duplicate", "backups_kept",
    ]  # fmt: skip
    assert "Vorfälle" in text
    entry = read(text, tmp_path)
    assert entry.error is None
    assert AgentConfig(**entry.fields["config"]) == config


def test_the_metadata_of_a_real_store_comes_back(memory: AgentMemory, tmp_path: Path) -> None:
    memory.configure(categories=["incident"], retention="standard", migration_threshold=200)
    info = memory.info()
    text = written("metadata", info, tmp_path)
    assert list(json.loads(text)) == list(AgentMetadata.model_fields)
    entry = read(text, tmp_path)
    assert (entry.fields["agent_id"], entry.error) == ("bob", None)
    assert [repair.partition(" ")[0] for repair in entry.repairs] == ["stats.storage_size_mb"]
    assert AgentConfig(**entry.fields["config"]) == info.config


def test_the_metadata_of_the_data_models_is_read_as_it_stands(tmp_path: Path) -> None:
    # All of its settings have their defaults: nobody set them.
    entry = read(FULL_TEXT, tmp_path)
    assert (entry.fields, entry.error) == (FIGURES | {"config": {}}, None)
    assert [repair.partition(" ")[0] for repair in entry.repairs] == [
        "memory_count", "stats.storage_size_mb", "storage_backend", "migration_date",
        "stats.embeddings_generated", "migration",
    ]  # fmt: skip
    assert all(repair.endswith(": skipped") for repair in entry.repairs)
    other = FULL_TEXT.replace('"similarity_threshold": 0.75', '"similarity_threshold": 0.5')
    assert read(other, tmp_path).fields["config"] == {"similarity_threshold": 0.5}


def test_the_metadata_of_the_architecture_is_read_as_it_stands(tmp_path: Path) -> None:
    wanted = FIGURES | {"total_query_ms": 145 * 87.0}
    del wanted["scratchpad_promotions"]
    entry = read(SHORT_TEXT, tmp_path)
    assert (entry.fields, entry.error) == (wanted, None)
    assert [repair.partition(":")[0] for repair in entry.repairs] == [
        "memory_count (327) is counted again here",
        "stats.storage_size_mb (3.2) is counted again here",
        "storage_backend describes vectors, which the file does not contain",
        "migration_date describes vectors, which the file does not contain",
    ]


def test_only_settings_that_are_told_are_taken_and_the_others_are_named(tmp_path: Path) -> None:
    config = {"auto_migrate": None, "migration_threshold": 200, "ttl": 3, "path": "/etc"}
    entry = read(json.dumps({"agent_id": "bob", "config": config, "owner": "x"}), tmp_path)
    assert entry.fields == {"agent_id": "bob", "config": {"migration_threshold": 200}}
    assert [repair.partition(" ")[0] for repair in entry.repairs] == [
        "owner", "config.ttl", "config.path",
    ]  # fmt: skip
    assert all(repair.endswith(": skipped") for repair in entry.repairs)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"agent_id": "bob", "config": [1]}', "config: is a list"),
        ('{"agent_id": "bob", "config": "x"}', "config: is a str"),
        ('{"agent_id": "bob", "agent_id": "alice"}', "'agent_id' occurs twice"),
        ('{"agent_id": "bob", "config": {"similarity_threshold": NaN}}', "NaN"),
        ('{"agent_id": "bob", "config": {"similarity_threshold": 1e999}}', "1e999"),
        ("7", "is a int"),
        ('{"agent_id": "bob", "stats": {"total_queries": -1}}', "stats.total_queries: "),
        ('{"agent_id": "bob", "stats": 7}', "stats: is a int"),
    ],
)
def test_metadata_that_cannot_be_taken_is_told(text: str, error: str, tmp_path: Path) -> None:
    entry = read(text, tmp_path)
    assert (entry.fields, entry.place) == ({}, "line 1")
    assert error in (entry.error or "")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (FULL_TEXT[:-20], "line 2[0-9]: is not JSON"),
        ('{\n"agent_id": bob}', "line 2: is not JSON: .* before 'bob}'"),
        ('{"agent_id": "bob"}\n{"agent_id": "alice"}', "holds 2 JSON values"),
        ("", "holds 0 JSON values"),
        ("[" * 100_000, "line 1: is nested too deeply"),
        (b'{"agent_id": "\xff"}', "line 1: is not UTF-8"),
        ('{"agent_id": "' + "x" * 1_000_000 + '"}', "is longer than 1,000,000 bytes"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_metadata_that_cannot_be_read_is_refused(
    text: str | bytes, error: str, tmp_path: Path
) -> None:
    with pytest.raises(ValidationError, match=rf"/in: {error}"):
        read(text, tmp_path)


def test_metadata_may_begin_with_a_mark_and_have_windows_lines(tmp_path: Path) -> None:
    data = ("\ufeff" + FULL_TEXT.replace("\n", "\r\n")).encode()
    assert read(data, tmp_path).fields["agent_id"] == "bob"


# The YAML of a configuration ----------------------------------------------------------------


def test_the_settings_of_the_migration_are_written_as_the_document_has_them(
    tmp_path: Path,
) -> None:
    text = written("settings", FULL, tmp_path)
    assert text == "\n".join(line.partition("  #")[0] for line in MIGRATION.split("\n"))
    config = AgentConfig(migration_threshold=300, auto_migrate=True, migration_strategy="immediate")
    text = written("settings", AgentMetadata(agent_id="bob", config=config), tmp_path)
    assert yaml.safe_load(text) == {
        "memory": {"migration": {"threshold": 300, "auto_migrate": True, "strategy": "immediate"}}
    }
    assert AgentConfig(**read(text, tmp_path, "settings").fields["config"]) == config


def test_settings_that_have_no_place_there_are_noted(tmp_path: Path) -> None:
    config = AgentConfig(migration_threshold=300, categories=["incident"], sharing="read")
    source = ListSource([], AgentMetadata(agent_id="bob", config=config))
    notes = codec("settings").write(tmp_path / "out", source).notes
    assert [note.split()[2] for note in notes[1:]] == ["categories", "sharing"]
    (note,) = codec("metadata").write(tmp_path / "out", source).notes
    assert "`store` has the memories" in note
    assert "`store` has the memories" in notes[0]


def test_the_settings_of_the_migration_are_read_as_they_stand(tmp_path: Path) -> None:
    config = {
        "migration_threshold": 5000,
        "auto_migrate": False,
        "migration_strategy": "background",
    }
    assert read(MIGRATION, tmp_path, "settings") == Entry(
        Section.AGENT, {"config": config}, "line 1"
    )


def test_the_block_of_a_session_is_read_as_it_stands(tmp_path: Path) -> None:
    entry = read(SESSION, tmp_path, "settings")
    assert (entry.fields, entry.error) == ({"agent_id": "bob"}, None)
    assert [repair.partition(" ")[0] for repair in entry.repairs] == [
        "session.capabilities.memory.enabled",
        "session.capabilities.memory.mode",
    ]
    assert all("host" in repair for repair in entry.repairs)


def test_both_blocks_may_stand_in_one_file_beside_others(tmp_path: Path) -> None:
    text = SESSION + MIGRATION.replace("strategy", "speed") + "tools: [a, b]\nprofile: x\n"
    entry = read(text, tmp_path, "settings")
    assert entry.fields == {
        "agent_id": "bob",
        "config": {"migration_threshold": 5000, "auto_migrate": False},
    }
    assert [repair.partition(" ")[0] for repair in entry.repairs] == [
        "tools", "profile", "memory.migration.speed",
        "session.capabilities.memory.enabled", "session.capabilities.memory.mode",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("memory: [1, 2]\n", "memory: is a list"),
        ("memory:\n  migration: soon\n", "memory.migration: is a str"),
        ("session:\n  capabilities: 3\n", "session.capabilities: is a int"),
        ("memory:\n  migration:\n", "contains no settings"),
        ("memory:\n  migration: &m\n    threshold: *m\n", r"alias"),
        ("memory:\n  migration:\n    threshold: 1\n    threshold: 2\n", "'threshold' occurs twice"),
        ("memory:\n  migration: !!python/name:os.system x\n", "tag"),
        ("memory:\n  migration:\n    threshold: 2026-02-30\n", "2026-02-30"),
    ],
)
def test_settings_that_cannot_be_taken_are_told(text: str, error: str, tmp_path: Path) -> None:
    entry = read(text, tmp_path, "settings")
    assert entry.fields == {}
    assert entry.place.startswith("line ")
    assert error in (entry.error or "")


@pytest.mark.parametrize(
    "text",
    [
        "- memory\n",
        "memory:\n\tmigration: 1\n",
        "memory: {migration: [\n",
        "memory:\n  migration: " + "[" * 100_000,
        "memory: 1\n---\nmemory: 2\n",
        "memory: 1\nmemory: 2\n",
        "",
        b"memory: \xff\n",
        "memory: \x00\n",
    ],
    ids=lambda value: repr(value)[:30],
)
def test_settings_that_cannot_be_read_are_refused_with_the_file(
    text: str | bytes, tmp_path: Path
) -> None:
    with pytest.raises(ValidationError, match=f"{tmp_path}/in: "):
        read(text, tmp_path, "settings")


# Both ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (FULL_TEXT, "metadata"),
        (SHORT_TEXT, "metadata"),
        ('{"agent_id": "bob", "config": {}}', "metadata"),
        (MIGRATION, "settings"),
        (SESSION, "settings"),
        ("memory: {migration: {threshold: 200}}\n", "settings"),
    ],
)
def test_the_files_are_known_by_their_content(text: str, name: str, tmp_path: Path) -> None:
    assert recognise(saved(text, tmp_path)).name == name


@pytest.mark.parametrize("name", ["metadata", "settings"])
def test_where_it_stands_it_is_private_and_the_same_each_time(name: str, tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "out"
    victim.write_text("precious")
    link.symlink_to(victim)
    one: Codec = codec(name)
    before = os.umask(0)
    try:
        assert one.write(link, ListSource([], FULL)).memories == 0
    finally:
        os.umask(before)
    assert victim.read_text() == "precious"
    assert stat.S_IMODE(link.lstat().st_mode) == 0o600
    assert written(name, FULL, tmp_path) == link.read_text()
    with pytest.raises(StorageUnavailable, match="no/folder"):
        one.write(tmp_path / "no" / "folder", ListSource([], FULL))


@pytest.mark.parametrize("name", ["metadata", "settings"])
def test_a_folder_and_nothing_are_no_files(name: str, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(StorageUnavailable, match=str(place)):
            list(codec(name).read(place))


def test_what_is_written_says_what_the_store_says(tmp_path: Path) -> None:
    told: dict[str, Any] = json.loads(written("metadata", FULL, tmp_path))
    assert AgentMetadata(**told) == FULL

"""Whatever rows another program writes: none blocks a verb, and what `check` passes comes back.

The rule between `check`, `export` and `import`: what `check` passes, every lossless format writes
and an import of it takes, the same; what it does not pass, it names, and `check --repair` mends.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from reads import LOSSLESS, read_everything

from agent_memory import AgentMemory
from agent_memory.models.memory_fields import MEMORY_FIELDS

TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "\n", "\t\r\n", "\x00", "a\x00b", "a\x01\x1b[31mb", "\x7f\x85\u2028", "\u200b",
         "x" * 51, "y" * 201, "z" * 10_001, "= + -", "null", "2026-01-01", "é" * 10_000, "\ufffe",
         "'", '"', "---", "# no comment", "\ufeff", "a\r\nb", " lead", "trail ", "{}", "sqlite3"]
    ),
    st.text(max_size=30),
)  # fmt: skip
BYTES = st.one_of(
    TEXTS.map(lambda text: text.encode(errors="ignore")),
    st.binary(max_size=20),
    st.sampled_from([b"caf\xe9", b"\xed\xa0\x80", b"\xe6\x95"]),
)
NUMBERS = st.sampled_from([-1, 0, 1, 2, 2**31, 2**53, 2**63 - 1, -(2**63)])
TIMES = st.sampled_from(
    ["0000-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z",
     "2026-01-30T16:00:00.000000Z", "2099-01-30T16:00:00.000000Z", "2026-01-30", "no time", ""]
)  # fmt: skip
JSON_TEXTS = st.one_of(
    st.sampled_from(
        ["[]", "{}", "null", "1", '["DB", " db ", ""]', "[1, null, true]", '{"a": 1, "a": 2}',
         '{"a": 9e999}', '{"a": 123456789012345678901234567890}', '{"a": "\\ud800"}',
         '{"a\\u0000": "\\u0000"}', '["' + "t" * 51 + '"]', "[" * 30 + "]" * 30,
         '{"a":' * 30 + "1" + "}" * 30, '{"a": 1.0, "b": -0.0, "c": 1e300}', '{"": ""}',
         '{"status": "done", "more": 1}', '{"status": "blocked", "blockers": ["x", 5]}',
         '{"status": "completed", "completed_at": "soon"}', '{"original_category": "x"}', "{", "",
         json.dumps([f"tag{n}" for n in range(21)]), '{"a": ' + "9" * 5000 + "}"]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ).map(json.dumps),
)  # fmt: skip
OF_KIND: Mapping[str, st.SearchStrategy[Any]] = {
    "text": BYTES,
    "word": BYTES,
    "list": JSON_TEXTS,
    "object": JSON_TEXTS,
    "task": st.none() | JSON_TEXTS,
    "time": TIMES,
    "flag": NUMBERS,
    "count": NUMBERS,
}
"""By what a column holds, what another program may put there."""
ROWS = st.fixed_dictionaries(
    {},
    optional={name: OF_KIND[field.column.kind] for name, field in MEMORY_FIELDS.items()}
    | {"seq": st.integers(-2, 3)},
)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one memory in it, to be copied."""
    path = tmp_path_factory.mktemp("fresh") / "memories.db"
    with AgentMemory.open(path, agent_id="bob", clock=Clock(), session_id="s") as memory:
        memory.store("good tea with Alice", id="good", tags=["drinks"])
        memory.graph.add("Alice", "drinks", "tea", memory_id="good")
    return path


def insert(path: Path, rows: list[dict[str, Any]], *, checked: bool) -> int:
    """Write rows as another program would, and return how many the file took."""
    count = 0
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA ignore_check_constraints = {int(not checked)}")
        for row in rows:
            values = {"content": b"plain", **row}
            places = ["CAST(? AS TEXT)" if isinstance(v, bytes) else "?" for v in values.values()]
            sql = f"INSERT INTO memories ({', '.join(values)}) VALUES ({', '.join(places)})"
            try:
                connection.execute(sql, list(values.values()))
                count += 1
            except sqlite3.Error:
                continue  # the schema refuses it
    return count


def content_of(memory: AgentMemory, folder: Path) -> str:
    """Return all that a store is, as text."""
    memory.export(folder / "whole.yaml", format="store", overwrite=True)
    return (folder / "whole.yaml").read_text()


def assert_comes_back(memory: AgentMemory, folder: Path, formats: Sequence[str] = LOSSLESS) -> None:
    """What `check` passes goes out by each lossless format, and comes back the same."""
    kept = {found.id: found for found in memory.list_recent(100)}
    for name in formats:
        memory.export(folder / name, format=name, overwrite=True)
        (folder / "own").mkdir(exist_ok=True)
        own = folder / "own" / "memories.db"
        own.unlink(missing_ok=True)
        with AgentMemory.open(own, agent_id="bob", clock=Clock()) as other:
            other.import_(folder / name, format=name)
            assert other.check().problems == [], name
            came = {found.id: found for found in other.list_recent(100)}
            assert came.keys() == kept.keys(), name
            for memory_id, found in kept.items():
                assert came[memory_id].content == found.content, name
                assert came[memory_id].category == found.category, name
                assert came[memory_id].tags == found.tags, name
                assert came[memory_id].user_id == found.user_id, name
                assert came[memory_id].task_metadata == found.task_metadata, name
            if name == "store":
                assert content_of(other, folder) == (folder / name).read_text()


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=st.lists(ROWS, min_size=1, max_size=4), checked=st.booleans())
@example(rows=[{"tags": "24701178059287990272", "metadata": '"sk-"'}], checked=False)
@example(rows=[{"task_metadata": "[[]]"}, {"task_metadata": "7"}], checked=False)
def test_rows_of_another_program(
    fresh: Path, tmp_path_factory: pytest.TempPathFactory, rows: list[Any], checked: bool
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    path = folder / "memories.db"
    shutil.copy(fresh, path)
    count = insert(path, rows, checked=checked)
    with AgentMemory.open(path, clock=Clock()) as memory:
        read_everything(memory, folder)
        assert memory.check().memory_count == count + 1
        problems = memory.check().problems
        if problems:
            report = memory.check(repair=True)
            assert report.ok, [problem for problem in report.problems if not problem.repaired]
            assert memory.check().problems == []
            read_everything(memory, folder)
        assert_comes_back(memory, folder)


BESIDE = [
    ("relationship_sources", "valid_from", "'9'"),
    ("relationship_sources", "valid_from", "NULL"),
    ("relationships", "closed_by", "'no-memory'"),
    ("entity_sources", "name", "NULL"),
    ("embeddings", "scale", "-1.0"),
    ("embeddings", "scale", "9e999"),
    ("agent", "agent_id", "CAST(x'ff' AS TEXT)"),
    ("agent", "agent_id", "'a' || char(0) || 'b'"),
    ("agent", "only_row", "7"),
    ("agent", "migration", "char(10)"),
    ("agent", "config", "''"),
    ("agent", "config", "CAST(x'ff' AS TEXT)"),
    ("embedding_models", "state", "'x'"),
    ("embedding_models", "dimensions", "-1"),
    ("embedding_models", "model", "''"),
    ("embedding_models", "model_id", "-1"),
    ("embedding_models", "model_id", "9223372036854775807"),
    ("entity_sources", "is_undone", "-1"),
    ("relationship_sources", "closing_is_undone", "7"),
    ("relationship_sources", "valid_to", "'2026-01-01T00:00:00.000000Z'"),
    ("rejections", "words_hash", "x'00'"),
    ("entities", "seq", "seq - 9223372036854775807 - 2"),
    ("history", "memory_id", "CAST(x'ff' AS TEXT)"),
    ("history", "old_values", "iif(event = 'DELETE', '{}', old_values)"),
]


@pytest.mark.parametrize(("table", "column", "value"), BESIDE)
def test_values_beside_the_memories_are_named_and_mended(
    tmp_path: Path, table: str, column: str, value: str
) -> None:
    with AgentMemory("bob", root=tmp_path, clock=Clock(), embedder="wordllama") as memory:
        memory.store("good tea with Alice", id="good", tags=["drinks"])
        memory.graph.add("Alice", "drinks", "tea", memory_id="good")
        memory.store("coffee with Bob", id="gone")
        memory.delete("gone")
        memory.reject("4711")
        memory.erase(memory.store("the code of the door"), backups=True)
        memory.migrate()
    path = tmp_path / "bob" / "memories.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute(f"UPDATE {table} SET {column} = {value}")
    with AgentMemory.open(path, clock=Clock(), embedder="wordllama") as memory:
        if column not in ("agent_id", "config"):  # whose they are, and what is kept back, it says
            memory.export(tmp_path / "before.yaml", format="store")
        assert memory.check().problems
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        read_everything(memory, tmp_path)
        assert [hit.memory.id for hit in memory.search("tea")] == ["good"]
        assert_comes_back(memory, tmp_path, ["store"])


@pytest.mark.parametrize("seq", ["0", "'many'", None])
def test_an_undo_takes_one_step_back_whatever_the_sequences_say(
    tmp_path: Path, seq: str | None
) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("first")
        memory.store("second")
        path = memory.path
    with closing(sqlite3.connect(path)) as connection, connection:
        if seq is None:
            connection.execute("DELETE FROM sqlite_sequence")
        else:
            connection.execute(f"UPDATE sqlite_sequence SET seq = {seq}")
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("third")
        memory.undo()
        assert {each.content for each in memory.list_recent()} == {"first", "second"}


def test_a_change_in_another_order_of_columns_is_exported_as_it_is_imported(
    tmp_path: Path,
) -> None:
    with AgentMemory("bob", root=tmp_path, clock=Clock()) as memory:
        memory.store("coffee with Bob", id="gone", tags=["drinks"])
        memory.delete("gone")
        with closing(sqlite3.connect(memory.path)) as connection, connection:
            sql = "SELECT old_values FROM history WHERE event = 'DELETE'"
            values = json.loads(connection.execute(sql).fetchone()[0])
            other = json.dumps(dict(reversed(values.items())))
            connection.execute("UPDATE history SET old_values = ? WHERE event = 'DELETE'", [other])
        assert memory.check().problems == []
        assert_comes_back(memory, tmp_path, ["store"])


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with memories that were added, changed, deleted and brought back: twelve changes."""
    path = tmp_path_factory.mktemp("changed") / "memories.db"
    with AgentMemory.open(path, agent_id="bob", clock=Clock(), session_id="s") as memory:
        for name in ("kept", "back", "gone"):
            memory.store(f"{name} since the beginning", id=name)
            memory.update(name, content=f"{name} in other words", metadata={"a": 1})
            memory.update(name, tags=["late"], category="task")
        memory.delete("gone")
        memory.delete("back")
        memory.undo()
    return path


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lost=st.sets(st.integers(1, 12)), below=st.sets(st.integers(1, 12)))
@example(lost={1}, below=set())
@example(lost=set(range(1, 13)), below=set())
@example(lost=set(), below={1, 4})
def test_a_history_that_another_program_made_gaps_in(
    changed: Path, tmp_path_factory: pytest.TempPathFactory, lost: set[int], below: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("gaps")
    path = Path(shutil.copy(changed, folder / "memories.db"))
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in lost:
            connection.execute("DELETE FROM history WHERE change_id = ?", (number,))
        for number in below:
            sql = "UPDATE history SET change_id = change_id - 20 WHERE change_id = ?"
            connection.execute(sql, (number,))
    with AgentMemory.open(path, clock=Clock()) as memory:
        before = {each.id: each for each in memory.list_recent()}
        report = memory.check(repair=True)
        assert report.ok, [problem for problem in report.problems if not problem.repaired]
        assert memory.check().problems == []
        assert {each.id: each for each in memory.list_recent()} == before
        for name in before:
            assert memory.history(name)[-1].event == "ADD"
        assert_comes_back(memory, folder, ["store"])


def test_a_rollback_file_holds_no_nul_and_can_be_read(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("first")
    with closing(sqlite3.connect(memory.path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute("INSERT INTO memories (id, content) VALUES ('odd', 'a' || char(0))")
    file = tmp_path / "scratchpad.yaml.backup"
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.export(file, format="backup")
    with AgentMemory("ann", root=tmp_path) as other:
        assert other.import_(file).new == 2
        assert {each.content for each in other.list_recent()} == {"first", "a<00>"}


def test_an_id_with_a_nul_is_given_another_and_keeps_its_history(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("first")
    assert insert(memory.path, [{"id": b"a\x00b"}], checked=True) == 1, "the schema sees no NUL"
    with AgentMemory("bob", root=tmp_path) as memory:
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        (mended,) = (each for each in memory.list_recent() if each.content == "plain")
        assert mended.metadata == {"original_id": "a<00>b"}
        assert [change.memory_id for change in memory.history(mended.id)][-1] == mended.id


def test_tags_of_another_program_are_read_as_they_are_searched(fresh: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(fresh, tmp_path / "memories.db"))
    insert(path, [{"tags": '["DB", " db ", ""]', "archived": 1}], checked=True)
    with AgentMemory.open(path, clock=Clock()) as memory:
        (found,) = memory.list_recent(filters={"tags": ["db"], "archived": True})
        assert found.tags == ["db"]
        assert memory.check().problems == []
        assert_comes_back(memory, tmp_path)

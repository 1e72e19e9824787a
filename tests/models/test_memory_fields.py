"""The table of a memory's fields: models, columns, triggers and formats have the same.

``python tests/models/test_memory_fields.py`` writes the triggers of the history, for the migration
that a new field needs.
"""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_memory import AgentMemory, Importance, Memory, MemoryInput
from agent_memory import ValidationError as InvalidInput
from agent_memory.models.columns import HISTORIC, USAGE, MemoryValues
from agent_memory.models.memory import MemoryChanges
from agent_memory.models.memory_fields import MEMORY_FIELDS, SharedFields, fields_beyond, row_of
from agent_memory.models.portable import PortableMemory, PortableValues, portable_row
from agent_memory.storage.memory_values import column_value

SCHEMA = Path(__file__).parents[2] / "migrations" / "schema.sql"
JSON = ("list", "object", "task")


# The models ---------------------------------------------------------------------------------


def test_a_memory_has_the_fields_of_document_a_in_its_order_then_the_others() -> None:
    a = "id agent_id content category tags embedding timestamp last_accessed access_count"
    assert list(Memory.model_fields)[:11] == [*a.split(), "created_by_session", "metadata"]
    assert Memory.model_fields.keys() - MEMORY_FIELDS.keys() == {"agent_id", "embedding"}
    assert tuple(Memory.model_fields) == MemoryValues._fields


def test_what_can_be_stored_or_changed_is_a_field_of_the_table() -> None:
    shared = SharedFields.model_fields.keys()
    assert MemoryInput.model_fields.keys() == {*shared, "id", "session_id", "timestamp"}
    assert MemoryChanges.model_fields.keys() == {*shared, "archived", "timestamp"}
    assert MEMORY_FIELDS.keys() > {*shared, "archived", "timestamp"}


def test_store_takes_every_field() -> None:
    own = {"self", "on_duplicate", "on_secret"}
    assert inspect.signature(AgentMemory.store).parameters.keys() - own == {
        *MemoryInput.model_fields
    }


class WithMood(SharedFields):
    """A model with a field of which nobody has said how it is stored."""

    mood: str = ""


def test_a_field_that_does_not_say_how_it_is_stored_is_refused() -> None:
    with pytest.raises(TypeError, match="mood has no Column"):
        row_of(WithMood, "mood")


class WithLowImportance(SharedFields):
    """A model with another default than its column has."""

    importance: Importance = Importance.LOW


def test_a_field_with_another_default_than_its_column_is_refused() -> None:
    with pytest.raises(TypeError, match="importance has another default"):
        row_of(WithLowImportance, "importance")


# One value of each field that is not its default.
VALUES: dict[str, Any] = {
    "content": "changed",
    "category": "decision",
    "tags": ["red"],
    "kind": "task",
    "importance": "high",
    "user_id": "ann",
    "run_id": "run-1",
    "memory_type": "PROCEDURAL",
    "task_metadata": {"status": "blocked", "blockers": ["rain"]},
    "metadata": {"colour": "red"},
    "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "archived": True,
}


def plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_defaults=True) if dump else value


@pytest.mark.parametrize("name", SharedFields.model_fields)
def test_what_is_stored_is_there_when_the_file_is_opened_again(name: str, root: Path) -> None:
    """A field that only the models knew was accepted, and dropped without a word."""
    with AgentMemory("bob", root=root) as memory:
        item = {"content": "one", name: VALUES[name]}
        stored, updated = memory.store_many([item, {"content": "another"}])
        memory.update(updated, **{name: VALUES[name]} if name != "content" else {name: "else"})
    with AgentMemory("bob", root=root) as memory:
        assert plain(getattr(memory.get(stored), name)) == VALUES[name]
        expected = "else" if name == "content" else VALUES[name]
        assert plain(getattr(memory.get(updated), name)) == expected
        (change, *_) = memory.history(updated)
        assert name in (change.new_values or {})


@pytest.mark.parametrize("name", ["mood", "agent_id", "version", "access_count", "embedding"])
def test_what_is_no_field_of_the_caller_is_refused(name: str, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory_id = memory.store("kept")
        changes: dict[str, Any] = {name: 1}
        with pytest.raises(InvalidInput, match=name):
            memory.store_many([{"content": "x", name: 1}])
        with pytest.raises(InvalidInput, match=name):
            memory.update(memory_id, **changes)


# Columns and triggers -----------------------------------------------------------------------


def columns() -> dict[str, str]:
    """Return the type of each column of the table of memories, those added later too."""
    table = SCHEMA.read_text().partition("CREATE TABLE memories (")[2].partition(") STRICT")[0]
    return dict(re.findall(r"^[ ,]*([a-z_]+) (TEXT|INTEGER)\b", table, re.MULTILINE))


def test_the_columns_are_those_of_the_table() -> None:
    assert columns().keys() == {"seq", *MEMORY_FIELDS}
    for name, row in MEMORY_FIELDS.items():
        kind = "INTEGER" if row.column.kind in {"flag", "count"} else "TEXT"
        assert columns()[name] == kind, name
    whole = SCHEMA.read_text()
    for name, row in MEMORY_FIELDS.items():
        if row.column.kind in JSON:
            assert f"json_valid({name})" in whole


def history_triggers() -> str:
    """Return the triggers that record additions, changes and deletions, as SQL."""

    def value(row: str, name: str) -> str:
        # || '' keeps SQLite from taking the text for JSON, of which it would drop the nulls.
        return f"{row}.{name}" + (" || ''" if MEMORY_FIELDS[name].is_json else "")

    def all_of(row: str, names: tuple[str, ...]) -> str:
        return ",\n    ".join(f"'{name}', {value(row, name)}" for name in names)

    def changed(row: str) -> str:
        return ",\n      ".join(
            f"'{name}', CASE WHEN OLD.{name} IS NOT NEW.{name} THEN {value(row, name)} END"
            for name in HISTORIC
        )

    def listed(row: str) -> str:
        return ", ".join(f"{row}{name}" for name in HISTORIC)

    now = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
    return f"""
CREATE TRIGGER history_of_changed AFTER UPDATE OF {listed("")} ON memories
WHEN ({listed("OLD.")})
  IS NOT ({listed("NEW.")})
BEGIN
  INSERT INTO history (memory_id, event, changed_at, old_values, new_values)
  VALUES (NEW.id, 'UPDATE',
    CASE WHEN NEW.version IS NOT OLD.version THEN NEW.updated_at ELSE {now} END,
    json_patch('{{}}', json_object(
      {changed("OLD")})),
    json_patch('{{}}', json_object(
      {changed("NEW")})));
  -- The library counts versions itself; a change by hand is counted here.
  UPDATE memories SET version = OLD.version + 1, updated_at = {now}
  WHERE seq = NEW.seq AND NEW.version IS OLD.version;
END;
CREATE TRIGGER history_of_deleted BEFORE DELETE ON memories BEGIN
  -- Before, because the entry in the scratchpad goes with the memory, and comes back with it: seq
  -- and scratchpad are there for `undo`.
  INSERT INTO history (memory_id, event, changed_at, old_values)
  VALUES (OLD.id, 'DELETE', {now}, json_patch('{{}}', json_object(
    {all_of("OLD", HISTORIC)},
    {all_of("OLD", USAGE)}, 'seq', OLD.seq,
    'scratchpad', (SELECT reason || ' ' || entered_at FROM scratchpad WHERE seq = OLD.seq))));
END;
CREATE TRIGGER history_of_new AFTER INSERT ON memories BEGIN
  INSERT INTO history (memory_id, event, changed_at, session_id, new_values)
  VALUES (NEW.id, 'ADD', NEW.updated_at, NEW.created_by_session, json_patch('{{}}', json_object(
    {all_of("NEW", HISTORIC)})));
END;
"""


def test_the_triggers_of_the_history_have_the_fields_of_the_table() -> None:
    schema = SCHEMA.read_text()
    shipped = re.findall(r"^CREATE TRIGGER history_of_.*?^END;", schema, re.MULTILINE | re.DOTALL)
    written = re.findall(r"^CREATE TRIGGER .*?^END;", history_triggers(), re.MULTILINE | re.DOTALL)
    assert sorted(map(str.split, shipped)) == sorted(map(str.split, written))


# Files --------------------------------------------------------------------------------------


def test_a_file_may_tell_every_field() -> None:
    assert list(PortableMemory.model_fields) == [*MEMORY_FIELDS, "embedding"]
    assert PortableMemory.model_validate({"content": "x"}).model_dump() == {
        **{name: row.default for name, row in MEMORY_FIELDS.items()},
        "content": "x",
        "embedding": None,
    }
    assert list(PortableValues.model_fields) == [*HISTORIC, *USAGE, "seq", "scratchpad", "reviews"]


ALL_TOLD = {
    "id": "mem-1",
    "content": "x",
    "category": "of its own",
    "tags": ["Red ", '\u00fc"\\\u2028\x7f'],
    "kind": "core",
    "importance": "high",
    "memory_type": "GRAPH",
    "timestamp": "2024-05-01T08:00:00+02:00",
    "updated_at": datetime(2024, 5, 2, tzinfo=UTC),
    "last_accessed": "2024-05-03",
    "access_count": 2,
    "created_by_session": "s",
    "user_id": "u",
    "run_id": "r",
    "archived": True,
    "task_metadata": {"status": "blocked", "blockers": ["y"], "outcome": None},
    "metadata": {"a": [1e-7, None, True], "b": "\u00fc"},
    "version": 3,
}


def test_a_row_is_read_as_the_columns_hold_a_memory() -> None:
    assert ALL_TOLD.keys() == MEMORY_FIELDS.keys()
    memory = PortableMemory.model_validate(ALL_TOLD)
    row = portable_row({**ALL_TOLD, "embedding": [1.0]})
    assert row == {name: column_value(getattr(memory, name)) for name in MEMORY_FIELDS}
    assert list(row) == list(MEMORY_FIELDS)
    assert portable_row({"content": "x", "user_id": None}) == {"content": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01T08:00:00Z",
        "2024-01-01T08:00:00.123456Z",
        "2024-01-01T08:00:00.5Z",
        "2024-01-01T08:00:00.000000Z",
        "2024-01-01T08:00:00",
        "2024-01-01T08:00:00+02:00",
        "2024-01-01T08:00Z",
        "2024-01-01 08:00:00Z",
        "2024-W01-1T08:00:00Z",
        " 2024-01-01T08:00:00Z",
        "0001-01-01T00:00:00Z",
    ],
)
def test_a_time_is_held_alike_however_a_file_has_it(text: str) -> None:
    memory = PortableMemory.model_validate({"content": "x", "timestamp": text})
    row = portable_row({"content": "x", "timestamp": text})
    assert row["timestamp"] == column_value(vars(memory)["timestamp"])


@pytest.mark.parametrize(
    ("name", "value"),
    [("tags", "red"), ("tags", None), ("version", 0), ("mood", 1), ("content", None)],
)
def test_what_a_file_tells_wrongly_is_refused(name: str, value: object) -> None:
    fields = {"content": "x", name: value}
    with pytest.raises(ValidationError, match=name):
        PortableMemory.model_validate(fields)
    with pytest.raises(InvalidInput, match=name):
        portable_row(fields)


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)


@settings(deadline=None)
@given(st.dictionaries(TEXTS, NUMBERS | TEXTS | st.booleans() | st.lists(NUMBERS | TEXTS)))
@example({"a": 1e-05})
@example({"a": [1e-07, 1e16, 1e22, 12345678901234567.0]})
def test_metadata_is_written_as_by_any_other_verb(metadata: dict[str, Any]) -> None:
    row = portable_row({"content": "x", "metadata": metadata})
    assert row["metadata"] == column_value(metadata)


def test_a_format_has_new_fields_behind_those_that_it_had() -> None:
    names = fields_beyond({"id", "content"}, "version kind")
    assert names[:2] == ("version", "kind")
    assert names[2:] == tuple(
        name for name in MEMORY_FIELDS if name not in {"id", "content", "version", "kind"}
    )


if __name__ == "__main__":
    print(history_triggers())

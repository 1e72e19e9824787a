"""Tables of others that refer to ours: what their rows keep from being deleted is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Visitor

from agent_memory import AgentMemory, ValidationError

REFERRING = "CREATE TABLE mine (id TEXT REFERENCES memories (id){}, note TEXT)"
FILL = "INSERT INTO mine SELECT id, 'x' FROM memories"


@pytest.mark.parametrize("deferred", ["", " DEFERRABLE INITIALLY DEFERRED"])
@pytest.mark.parametrize(
    "verb",
    [
        lambda memory: memory.delete("tea"),
        lambda memory: memory.delete_all(user_id="ann"),
        lambda memory: memory.reset(confirm="bob"),
        lambda memory: memory.erase("tea"),
    ],
)
def test_a_table_that_keeps_a_memory_is_named(
    memory: AgentMemory, visitor: Visitor, verb: Callable[[AgentMemory], object], deferred: str
) -> None:
    memory.store("plain tea", id="tea", user_id="ann")
    visitor(memory.path, f"{REFERRING.format(deferred)};;{FILL}")
    with pytest.raises(ValidationError, match=r"what rows of mine refer to .*: delete those rows"):
        verb(memory)
    report = memory.check()
    assert (report.problems, len(report.notes)) == ([], 1)
    assert report.notes[0].startswith("the table mine refers to ours without ON DELETE")
    visitor(memory.path, "DELETE FROM mine")
    verb(memory)
    assert memory.count() == 0


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_a_table_that_keeps_none_is_not_named(
    memory: AgentMemory, visitor: Visitor, action: str
) -> None:
    memory.store("plain tea", id="tea")
    visitor(memory.path, f"{REFERRING.format(f' ON DELETE {action}')};;{FILL}")
    memory.delete("tea")
    assert memory.check().notes == []
    assert memory.undo().restored == ["tea"]
    assert visitor(memory.path, "SELECT id, note FROM mine") == (
        "" if action == "CASCADE" else "|x"
    )

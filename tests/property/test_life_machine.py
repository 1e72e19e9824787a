"""Every verb, and every way by which a memory comes in, in any order.

``LIFE_EXAMPLES=400 pytest tests/property/test_life_machine.py --hypothesis-seed=1`` takes 10,000
steps. After each the memory is what the dictionary of ``life`` is, and nothing erased is anywhere.
"""

from __future__ import annotations

import copy
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from life import CONTENTS, TAGS, WORDS, Held, Life, held_by

from agent_memory import AgentMemory
from agent_memory.integrations.anthropic_memory import AgentMemoryTool
from agent_memory.integrations.langgraph import AgentMemoryStore
from agent_memory.integrations.tools import MemoryTools
from agent_memory.models.columns import ORIGINAL_CATEGORY
from agent_memory.text.normalize import exact_form

NAMES = st.sampled_from(["a", "b", "c"])


class OddRow(NamedTuple):
    """A row that no import would take: its columns, ``{}`` a number that no other has."""

    column: str = "kind"
    value: str = "learning"
    content: bytes = b"by hand {}"


ODD_ROWS = {
    "latin-1": OddRow(content=b"caf\xe9 {}"),
    "NUL": OddRow(content=b"by hand\x00 {}"),
    "21 tags": OddRow("tags", json.dumps([f"tag{n}" for n in range(21)])),
    "long name": OddRow("user_id", "u" * 201),
    "integer": OddRow("metadata", f'{{"n": {10**30}}}'),
    "infinite": OddRow("metadata", '{"n": 9e999}'),
    "no JSON": OddRow("metadata", "{red"),
    "no category": OddRow("category", "recipe {}"),
    "no kind": OddRow("kind", "rumour"),
    "no time": OddRow("updated_at", "yesterday"),
}


class EveryWayIn(Life):
    """A life to which tools, adapters, other agents, other programs and recoveries belong.

    ``asker`` is another agent, by whose eyes the memory is used, if any. ``saved`` is a rollback
    file, and what it holds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asker: AgentMemory | None = None
        self.saved: tuple[Path, Held, set[str]] | None = None

    # Other faces ------------------------------------------------------------------------------

    @rule(is_shared=st.booleans())
    def hand_over(self, is_shared: bool) -> None:
        """Go on as the agent, or as another agent that may write."""
        self.memory.configure(sharing="write" if is_shared else "private")
        self.close_all()
        if is_shared:
            self.asker = AgentMemory("amy", root=self.folder / "root")
            self.memory = self.asker.shared("bob")
        else:
            self.memory = self.opened()

    @precondition(lambda self: self.backed_up is not None)
    @rule()
    def restore(self) -> None:
        """Go on as the agent: what is restored may be shared no more, and refuses the other."""
        if self.asker is not None:
            self.close_all()
            self.memory = self.opened()
        super().restore()

    def close_all(self) -> None:
        self.memory.close()
        if self.asker is not None:
            self.asker.close()
            self.asker = None

    @rule(word=st.sampled_from(WORDS))
    def ask(self, word: str) -> None:
        """What is asked of any face is answered by what is there, and by nothing else."""
        hits = self.memory.search(word, 100, count_accesses=False)
        ids = {hit.memory.id for hit in hits}
        # A restore brings the settings of its backup back.
        if self.asker is not None and self.memory.configure().sharing == "write":
            shared = self.asker.search(word, 100, shared=["bob"], count_accesses=False)
            assert {hit.memory.id for hit in shared} == ids
        assert ids <= {key for key, fields in self.held.items() if not fields["archived"]}
        contents = {exact_form(hit.memory.content) for hit in hits}
        assert not contents & self.unsaid

    # Tools and adapters -----------------------------------------------------------------------

    @rule(content=CONTENTS, tags=TAGS)
    def call_store(self, content: str, tags: list[str]) -> None:
        result = MemoryTools(self.memory).call("memory_store", {"content": content, "tags": tags})
        assert result.data is not None, result.error
        memory_id = result.data["memory_id"]
        held = self.with_written(memory_id)
        assert exact_form(held[memory_id]["content"]) == exact_form(content)
        assert set(tags) <= set(held[memory_id]["tags"])
        self.become(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), content=CONTENTS, is_gone=st.booleans())
    def call_change(self, data: st.DataObject, content: str, is_gone: bool) -> None:
        memory_id = self.pick(data)
        tools = MemoryTools(self.memory)
        held = self.changed()
        if is_gone:
            result = tools.call("memory_forget", {"memory_id": memory_id})
            del held[memory_id]
        else:
            arguments = {"memory_id": memory_id, "content": content}
            result = tools.call("memory_update", arguments)
            held[memory_id]["content"] = content
        assert result.success, result.error
        self.become(held)

    @rule(key=NAMES, content=CONTENTS)
    def put_item(self, key: str, content: str) -> None:
        store = AgentMemoryStore(self.memory)
        store.put(("notes",), key, {"text": content})
        item = store.get(("notes",), key)
        assert item is not None
        assert item.value == {"text": content}
        (memory_id,) = self.new_ids() or {self.item_id(key)}
        self.erased.discard(memory_id)
        self.become(self.with_written(memory_id, content=content, archived=False))

    @rule(key=NAMES)
    def delete_item(self, key: str) -> None:
        store = AgentMemoryStore(self.memory)
        held = self.changed()
        if store.get(("notes",), key) is not None:
            del held[self.item_id(key)]
        store.delete(("notes",), key)
        self.become(held)

    def item_id(self, key: str) -> str:
        (memory_id,) = (
            memory_id
            for memory_id, fields in self.held.items()
            if fields["metadata"].get("langgraph_item", {}).get("key") == key
        )
        return memory_id

    def new_ids(self) -> set[str]:
        return held_by(self.memory).keys() - self.held.keys()

    @rule(name=NAMES, content=CONTENTS)
    def write_file(self, name: str, content: str) -> None:
        """Make a file of Anthropic's tool, or change what is there."""
        tool = AgentMemoryTool(self.memory)
        path = f"/memories/{name}"
        if len(ids := self.file_ids(path)) > 1:
            return  # an undo or an import brought an earlier one back
        if not ids:
            command = {"command": "create", "path": path, "file_text": content}
            tool.create(BetaMemoryTool20250818CreateCommand.model_validate(command))
            ids = list(self.new_ids())
        else:
            text = self.file_text(ids[0])
            command = {"command": "str_replace", "path": path, "old_str": text, "new_str": content}
            tool.str_replace(BetaMemoryTool20250818StrReplaceCommand.model_validate(command))
        self.erased -= {*ids}
        self.become(self.with_written(*ids, content=content, archived=False))

    @rule(name=NAMES, other=NAMES, is_moved=st.booleans())
    def move_file(self, name: str, other: str, is_moved: bool) -> None:
        """Rename or delete a file of Anthropic's tool."""
        tool = AgentMemoryTool(self.memory)
        old, new = f"/memories/{name}", f"/memories/{other}"
        ids = self.file_ids(old)
        if not ids or (is_moved and (len(ids) > 1 or self.file_ids(new))):
            return
        if is_moved:
            command = {"command": "rename", "old_path": old, "new_path": new}
            tool.rename(BetaMemoryTool20250818RenameCommand.model_validate(command))
            self.become(self.with_written(*ids, archived=False))
            return
        command = {"command": "delete", "path": old}
        tool.delete(BetaMemoryTool20250818DeleteCommand.model_validate(command))
        gone = set(ids)
        self.become({key: fields for key, fields in self.changed().items() if key not in gone})

    def file_ids(self, path: str) -> list[str]:
        return [
            memory_id
            for memory_id, fields in self.held.items()
            if fields["metadata"].get("anthropic_path") == path
        ]

    def file_text(self, memory_id: str) -> str:
        fields = self.held[memory_id]
        return str(fields["metadata"].get("anthropic_text", fields["content"]))

    # Other programs ---------------------------------------------------------------------------

    @rule(kind=st.sampled_from(sorted(ODD_ROWS)))
    def insert_by_hand(self, kind: str) -> None:
        """Write a row that no import would take: `check` names it, and it blocks no verb."""
        self.number += 1
        row = ODD_ROWS[kind]
        memory_id = f"odd-{self.number}"
        path = self.memory.path
        self.close_all()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA ignore_check_constraints = 1")
            connection.execute(
                f"INSERT INTO memories (id, content, {row.column}) VALUES (?, CAST(? AS TEXT), ?)",
                (
                    memory_id,
                    row.content.replace(b"{}", b"%d" % self.number),
                    row.value.replace("{}", str(self.number)),
                ),
            )
        self.memory = self.opened()
        self.odd.add(memory_id)
        self.become(self.with_written(memory_id, archived=False))
        assert any(memory_id in problem.detail for problem in self.memory.check().problems)

    @rule()
    def repair(self) -> None:
        newest = [change.change_id for change in self.memory.history(limit=1)]
        report = self.memory.check(repair=True)
        assert report.ok, report.problems
        assert self.memory.check().problems == []
        if [change.change_id for change in self.memory.history(limit=1)] != newest:
            self.before = None
        held = held_by(self.memory)
        assert held.keys() == self.held.keys()
        for memory_id in held.keys() - self.odd:
            assert held[memory_id] == self.held[memory_id]
        self.held = held
        self.odd -= held.keys()

    # Recoveries -------------------------------------------------------------------------------

    @rule()
    def save(self) -> None:
        """Write the rollback file."""
        self.number += 1
        path = self.folder / f"scratchpad.yaml.backup-{self.number}"
        self.memory.export(path, format="backup")
        self.saved = path, self.changed(), {*self.odd}

    @precondition(lambda self: self.saved is not None)
    @rule(table=st.sampled_from(["history", "memory_tags"]))
    def rebuild(self, table: str) -> None:
        """Damage a table, and make the file anew: what can be read goes before the rollback file.

        What was deleted comes back, what was erased does not.
        """
        assert self.saved is not None
        backup, saved, odd = self.saved
        self.odd |= odd & saved.keys()
        path = self.memory.path
        self.close_all()
        overwrite(path, table)
        report = AgentMemory.rebuild(path, backup, agent_id="bob")
        missing = {key: fields for key, fields in saved.items() if key not in self.held}
        erased = {
            memory_id
            for memory_id, fields in missing.items()
            if memory_id in self.erased or exact_form(fields["content"]) in self.unsaid
        }
        assert (report.from_file, set(report.erased)) == (len(self.held), erased)
        skipped = {reason.partition(":")[0] for reason in report.skipped}
        assert skipped <= self.odd
        left_out = erased | skipped
        restored = copy.deepcopy({k: v for k, v in missing.items() if k not in left_out})
        for fields in restored.values():  # the rollback file has the category that a repair moved
            fields["category"] = fields["metadata"].pop(ORIGINAL_CATEGORY, fields["category"])
        self.held |= restored
        if self.odd:  # they are mended, as by a repair
            with self.opened() as memory:
                self.held |= {key: held_by(memory)[key] for key in self.odd & self.held.keys()}
        self.told = {key: {exact_form(fields["content"])} for key, fields in self.held.items()}
        self.pinned = set()
        self.before = None
        self.memory = self.opened()

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.close_all()
        super().teardown()


def overwrite(path: Path, table: str) -> None:
    """Overwrite the first page of a table, as a failing disk may."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(sql, (table,)).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


TestLife = EveryWayIn.TestCase
EXAMPLES = int(os.environ.get("LIFE_EXAMPLES", "12"))
TestLife.settings = settings(max_examples=EXAMPLES, stateful_step_count=25, deadline=None)

"""A memory's whole life, in any order, beside a plain dictionary: and the file sound throughout.

Here are the verbs, and the ways out and in by files. ``test_life_machine`` adds all other ways in.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_memory import AgentMemory, StorageCorrupt, ValidationError
from agent_memory.text.normalize import exact_form

WORDS = (
    "harbour",
    "lantern",
    "violet",
    "granite",
    "数据库",
    "กาแฟ",
    "naïve\nsecond line",
    "- x: y",
)
CONTENTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
TAGS = st.lists(st.sampled_from(["red", "green", "blue"]), unique=True, max_size=3)
WHOLE = ("store", "backup", "json", "jsonl", "record-json", "record-jsonl", "directory", "sqlite")

FIELDS = {"content", "category", "tags", "archived", "timestamp", "metadata"}
"""What every whole format keeps, and undo restores."""

Held = dict[str, dict[str, Any]]
Told = dict[str, set[str]]


class Backup(NamedTuple):
    """A copy of the file, what it holds, and whether it is sound."""

    path: Path
    held: Held
    told: Told
    pinned: set[str]
    unsaid: set[str]
    is_sound: bool


class Life(RuleBasedStateMachine):
    """An agent's memory beside a dictionary of what it must hold, and what ``undo`` must restore.

    ``before`` is the state that ``undo`` goes back to; ``None`` when there is nothing to undo, as
    after an erasure. ``told`` has all that each memory says and said, ``erased`` the ids and
    ``unsaid`` the contents that no file brings back. ``odd`` are the ids of rows that another
    program wrote, and no import would take, since the last repair.
    """

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.memory = self.opened()
        self.held: Held = {}
        self.before: Held | None = None
        self.pinned: set[str] = set()
        self.told: Told = {}
        self.erased: set[str] = set()
        self.unsaid: set[str] = set()
        self.odd: set[str] = set()
        self.exported: tuple[Path, str, Held, Told] | None = None
        self.backed_up: Backup | None = None
        self.number = 0

    def opened(self) -> AgentMemory:
        return AgentMemory("bob", root=self.folder / "root", synchronous="NORMAL")

    def become(self, held: Held) -> None:
        """Take a new state over; one that is the same is no change, and not undone."""
        if held != self.held:
            self.before, self.held = self.held, held
        for memory_id, fields in held.items():
            self.told.setdefault(memory_id, set()).add(exact_form(fields["content"]))
        self.unsaid -= set().union(*self.told.values())

    def changed(self) -> Held:
        return copy.deepcopy(self.held)

    def with_written(self, *memory_ids: str, **expected: Any) -> Held:
        """Return the state with memories as they were just written, which must say this."""
        held = self.changed()
        for memory_id in memory_ids:
            held[memory_id] = fields = self.fields_of(memory_id)
            assert {name: fields[name] for name in expected} == expected
        return held

    def fields_of(self, memory_id: str) -> dict[str, Any]:
        memory = self.memory.get(memory_id)
        assert memory is not None, memory_id
        return memory.model_dump(include=FIELDS)

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(list(self.held)))  # not by their ids, which are random

    @rule(content=CONTENTS, tags=TAGS)
    def store(self, content: str, tags: list[str]) -> None:
        memory_id = self.memory.store(content, tags=tags, on_duplicate="keep")
        self.become(self.with_written(memory_id, content=content, tags=tags, archived=False))

    @rule(contents=st.lists(CONTENTS, min_size=2, max_size=4))
    def store_many(self, contents: list[str]) -> None:
        ids = self.memory.store_many([{"content": text} for text in contents], on_duplicate="keep")
        held = self.with_written(*ids, tags=[], archived=False)
        assert [held[memory_id]["content"] for memory_id in ids] == contents
        self.become(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), content=CONTENTS, tags=TAGS)
    def update(self, data: st.DataObject, content: str, tags: list[str]) -> None:
        memory_id = self.pick(data)
        self.memory.update(memory_id, content=content, tags=tags)
        held = self.changed()
        held[memory_id] |= {"content": content, "tags": tags}
        self.become(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        memory_id = self.pick(data)
        self.memory.delete(memory_id)
        held = self.changed()
        del held[memory_id]
        self.become(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), archived=st.booleans())
    def archive(self, data: st.DataObject, archived: bool) -> None:
        ids = data.draw(st.lists(st.sampled_from(list(self.held)), min_size=1, unique=True))
        (self.memory.archive if archived else self.memory.unarchive)(ids)
        held = self.changed()
        for memory_id in ids:
            held[memory_id]["archived"] = archived
        self.become(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), into=st.booleans())
    def promote(self, data: st.DataObject, into: bool) -> None:
        memory_id = self.pick(data)
        if into:
            self.memory.promote(memory_id)
            self.pinned.add(memory_id)
        else:
            self.memory.demote(memory_id)
            self.pinned.discard(memory_id)

    @rule()
    def undo(self) -> None:
        if self.before is None:
            with pytest.raises(ValidationError):
                self.memory.undo()
            return
        self.memory.undo()
        self.before, self.held = self.held, self.before
        # What the constraints refuse comes back mended, and what a repair mended in the history so.
        held = held_by(self.memory)
        self.held |= {key: fields for key, fields in held.items() if key in self.odd}

    @rule(form=st.sampled_from(WHOLE), into_another=st.booleans())
    def export(self, form: str, into_another: bool) -> None:
        self.number += 1
        path = self.folder / f"export-{self.number}"
        report = self.memory.export(path, format=form)
        assert report.memory_count == len(self.held), form
        if self.odd and self.memory.check().problems:
            return  # what no import takes goes out all the same, and `check` names it
        if not into_another:
            # The history is in two of the forms.
            told = copy.deepcopy(self.told) if form in ("store", "sqlite") else {}
            self.exported = path, form, self.changed(), told
            return
        again = path.with_name(f"{path.name}-again")
        with AgentMemory("zoe", root=self.folder / f"other-{self.number}") as other:
            if (sharing := self.memory.configure().sharing) is not None:
                other.configure(sharing=sharing)  # which no import does
            if own := self.memory.configure().categories:  # a rebuild adds those that it finds
                other.configure(categories=own)
            # Nothing at all does not tell its form.
            read = other.import_(path, format=None if self.held else form)
            assert (read.refused, read.new) == (0, len(self.held)), (form, read)
            assert held_by(other) == self.held, form
            assert other.check().problems == []
            other.export(again, format=form)
        if form != "sqlite" and (self.held or form == "store"):
            assert files(path, "bob") == files(again, "zoe"), form

    @precondition(lambda self: self.exported is not None)
    @rule(replace=st.booleans())
    def take_in(self, replace: bool) -> None:
        assert self.exported is not None
        path, form, file, file_told = self.exported
        how: Any = {"on_conflict": "replace" if replace else "skip", "format": form}
        before = self.memory.import_(path, dry_run=True, **how)
        report = self.memory.import_(path, **how)
        names = ("new", "changed", "same", "kept", "refused", "erased")
        assert [getattr(before, name) for name in names] == [
            getattr(report, name) for name in names
        ]
        held = self.changed()
        for memory_id, fields in copy.deepcopy(file).items():
            if (replace or memory_id not in held) and not self.is_erased(memory_id, fields):
                held[memory_id] = fields
        assert report.new == len(held) - len(self.held)
        assert {note.memory_id for note in report.erasures} >= self.erased & file.keys()
        for memory_id, contents in file_told.items():
            has_history = memory_id in self.told or memory_id in self.erased
            if not has_history and not contents & self.unsaid:
                self.told[memory_id] = contents
        self.pinned -= held.keys() - self.held.keys()  # few formats tell of that
        self.become(held)

    def is_erased(self, memory_id: str, fields: dict[str, Any]) -> bool:
        """Return whether a memory of a file was erased, or says what was."""
        if memory_id not in self.held:
            return memory_id in self.erased or exact_form(fields["content"]) in self.unsaid
        is_same = self.held[memory_id]["content"] == fields["content"]
        return not is_same and exact_form(fields["content"]) in self.unsaid

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        memory_id = self.pick(data)
        receipt = self.memory.erase(memory_id)
        assert receipt.memories == 1
        assert not receipt.found
        assert self.memory.get(memory_id) is None
        del self.held[memory_id]
        self.erased.add(memory_id)
        self.unsaid |= self.told.pop(memory_id)
        self.unsaid -= set().union(*self.told.values())
        self.odd.discard(memory_id)
        self.before = None

    @rule()
    def back_up(self) -> None:
        self.number += 1
        path = self.memory.backup(self.folder / f"backup-{self.number}.db")
        told = copy.deepcopy(self.told)
        is_sound = not self.odd or not self.memory.check().problems
        self.backed_up = Backup(
            path, self.changed(), told, set(self.pinned), set(self.unsaid), is_sound
        )

    @precondition(lambda self: self.backed_up is not None)
    @rule()
    def restore(self) -> None:
        assert self.backed_up is not None
        path, held, told, pinned, unsaid, is_sound = self.backed_up
        if not is_sound:
            with pytest.raises(StorageCorrupt, match="repair this one"):
                AgentMemory.restore(self.memory.path, path, agent_id="bob")
            return
        report = AgentMemory.restore(self.memory.path, path, agent_id="bob", keep_replaced=False)
        gone, changed = set(), set()
        for memory_id, contents in told.items():
            fields = held.get(memory_id)
            is_said = fields is not None and exact_form(fields["content"]) not in self.unsaid
            if memory_id in self.erased or (contents & self.unsaid and not is_said):
                gone.add(memory_id)
            elif contents & self.unsaid:
                changed.add(memory_id)
        assert report.erased == len(gone) + len(changed)
        self.told = {
            memory_id: {exact_form(held[memory_id]["content"])} if memory_id in changed else said
            for memory_id, said in copy.deepcopy(told).items()
            if memory_id not in gone
        }
        self.held = {
            memory_id: fields
            for memory_id, fields in copy.deepcopy(held).items()
            if memory_id not in gone
        }
        assert report.memory_count == len(self.held)
        self.pinned = pinned - gone
        self.unsaid |= unsaid
        self.odd = set()
        self.before = None

    @precondition(lambda self: self.held)
    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = self.opened()

    @invariant()
    def holds_what_the_dictionary_holds(self) -> None:
        if not hasattr(self, "memory"):
            return
        assert held_by(self.memory) == self.held
        unarchived = {key for key, fields in self.held.items() if not fields["archived"]}
        assert self.memory.count() == len(unarchived)
        hot = {entry.id for entry in self.memory.scratchpad().memories}
        assert self.pinned & unarchived <= hot
        history = self.memory.history(limit=10_000)
        assert not {entry.memory_id for entry in history} & self.erased
        values = [
            told for entry in history for told in (entry.old_values, entry.new_values) if told
        ]
        contents = {exact_form(told["content"]) for told in values if "content" in told}
        assert not contents & self.unsaid
        problems = self.memory.check().problems
        of_odd = ("CHECK constraint", *self.odd) if self.odd else ()
        assert [each for each in problems if not any(name in each.detail for name in of_odd)] == []

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
            shutil.rmtree(self.folder)


def held_by(memory: AgentMemory) -> Held:
    listed = memory.list_recent(1000, filters={"archived": None})
    return {each.id: each.model_dump(include=FIELDS) for each in listed}


def files(path: Path, agent_id: str) -> dict[str, bytes]:
    """Return the bytes of an export, but for whose it is."""
    paths = [it for it in path.rglob("*") if it.is_file()] if path.is_dir() else [path]
    return {
        str(it.relative_to(path)): it.read_bytes().replace(agent_id.encode(), b"NAME")
        for it in paths
    }

"""Any sequence of verbs leaves what a plain dictionary would hold, and a sound file."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from agent_memory import AgentMemory

WORDS = ("harbour", "lantern", "violet", "granite", "数据库", "กาแฟ", "naïve")
CONTENTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
TAGS = st.lists(st.sampled_from(["red", "green", "blue"]), unique=True, max_size=3)


class Machine(RuleBasedStateMachine):
    """An agent's memory beside a dictionary of what it must hold."""

    ids: Bundle[str] = Bundle("ids")

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.memory = AgentMemory("bob", root=self.folder, synchronous="NORMAL")
        self.held: dict[str, dict[str, Any]] = {}
        self.changes = 0

    @rule(target=ids, content=CONTENTS, tags=TAGS)
    def store(self, content: str, tags: list[str]) -> str:
        memory_id = self.memory.store(content, tags=tags, on_duplicate="keep")
        self.held[memory_id] = {"content": content, "tags": tags}
        self.changes += 1
        return memory_id

    @rule(memory_id=ids, content=CONTENTS, tags=TAGS)
    def update(self, memory_id: str, content: str, tags: list[str]) -> None:
        wanted: dict[str, Any] = {"content": content, "tags": tags}
        self.changes += self.held[memory_id] != wanted
        self.held[memory_id] = wanted
        self.memory.update(memory_id, **wanted)

    @rule(memory_id=consumes(ids))
    def delete(self, memory_id: str) -> None:
        self.memory.delete(memory_id)
        del self.held[memory_id]
        self.changes += 1

    @rule(memory_id=ids)
    def promote_and_demote(self, memory_id: str) -> None:
        self.memory.promote(memory_id)
        assert self.memory.demote(memory_id) is True
        assert self.memory.demote(memory_id) is False

    @rule(word=st.sampled_from(WORDS))
    def search(self, word: str) -> None:
        having = {key for key, held in self.held.items() if word in held["content"].split()}
        hits = self.memory.search(word, limit=100)
        found = {found_id for hit in hits for found_id in (hit.memory.id, *hit.repeats)}
        assert having <= found or len(found) == 100
        assert found <= self.held.keys()

    @rule(tag=st.sampled_from(["red", "green", "blue"]))
    def filter_by_tag(self, tag: str) -> None:
        having = {key for key, held in self.held.items() if tag in held["tags"]}
        found = self.memory.list_recent(1000, filters={"tags": [tag]})
        assert {memory.id for memory in found} == having

    @precondition(lambda self: self.held)
    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = AgentMemory("bob", root=self.folder, synchronous="NORMAL")

    @invariant()
    def holds_what_the_dictionary_holds(self) -> None:
        if not hasattr(self, "memory"):
            return
        there = {
            memory.id: {"content": memory.content, "tags": memory.tags}
            for memory in self.memory.list_recent(1000)
        }
        assert there == self.held
        assert len(self.memory.history(limit=10_000)) == self.changes
        assert self.memory.check().problems == []

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
            shutil.rmtree(self.folder)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)

"""What was done and undone is as if it was not, questions too; and the past is as it was."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_memory import AgentMemory, ValidationError

CITIES = st.sampled_from(["Oslo", "Lisbon", "Bergen"])
SAID = st.sampled_from(["I live in {}.", "I moved to {}.", "My sister works in {}."])
COUNTED = {"access_count", "last_accessed", "embedding"}


class Machine(RuleBasedStateMachine):
    """A memory whose every step is undone and done again, beside what it was after each step."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.now = datetime(2026, 1, 30, 16, 0, tzinfo=UTC)
        self.memory = AgentMemory(
            "bob", root=self.folder, synchronous="NORMAL", clock=lambda: self.now
        )
        self.past: list[tuple[datetime, dict[str, dict[str, Any]]]] = []

    @rule(said=SAID, city=CITIES)
    def add(self, said: str, city: str) -> None:
        self.done_undone_and_done(
            lambda: self.memory.add(said.format(city), user_id="ann", graph=True)
        )

    @precondition(lambda self: self.not_in_question())
    @rule(data=st.data(), city=CITIES)
    def update(self, data: st.DataObject, city: str) -> None:
        memory_id = data.draw(st.sampled_from(self.not_in_question()))
        self.done_undone_and_done(
            lambda: self.memory.update(memory_id, content=f"Ann is in {city}", tags=[city])
        )

    @precondition(lambda self: self.not_in_question())
    @rule(data=st.data(), archived=st.booleans())
    def archive(self, data: st.DataObject, archived: bool) -> None:
        free = self.not_in_question()
        ids = data.draw(st.lists(st.sampled_from(free), min_size=1, unique=True))
        verb = self.memory.archive if archived else self.memory.unarchive
        self.done_undone_and_done(lambda: verb(ids))

    @precondition(lambda self: self.ids())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(self.ids()), min_size=1, unique=True))
        self.done_undone_and_done(lambda: self.memory.delete_many(ids))

    @precondition(lambda self: self.memory.reviews())
    @rule()
    def approve(self) -> None:
        review = self.memory.reviews()[0]
        with suppress(ValidationError):  # the memory was changed since it was asked about
            self.done_undone_and_done(lambda: self.memory.approve(review.review_id))

    def ids(self) -> list[str]:
        return sorted(self.memories(), key=lambda memory_id: self.memories()[memory_id]["content"])

    def not_in_question(self) -> list[str]:
        """Return the ids of memories whose change makes no question out of date: for good."""
        asked = {review.memory_id for review in self.memory.reviews()}
        return [memory_id for memory_id in self.ids() if memory_id not in asked]

    def memories(self) -> dict[str, dict[str, Any]]:
        listed = self.memory.list_recent(1000, filters={"archived": None})
        return {each.id: each.model_dump(exclude=COUNTED) for each in listed}

    def done_undone_and_done(self, verb: Callable[[], object]) -> None:
        before = self.state()
        changes = len(self.memory.history(limit=10_000))
        verb()
        self.now += timedelta(seconds=1)
        if len(self.memory.history(limit=10_000)) == changes:
            return  # nothing was changed, and an undo would be of what was before
        after = self.state()
        self.memory.undo()
        assert self.state() == before
        self.now += timedelta(seconds=1)
        self.memory.undo()
        assert self.state() == after

    def state(self) -> dict[str, Any]:
        """Return all that an undo brings back: not how often, and when, a memory was changed."""
        edges = self.memory.graph.relationships(include_closed=True)
        return {
            "memories": {
                memory_id: {**fields, "version": None, "updated_at": None}
                for memory_id, fields in self.memories().items()
            },
            "scratchpad": [entry.id for entry in self.memory.scratchpad().memories],
            "questions": {(it.memory_id, it.replaced_by) for it in self.memory.reviews()},
            "graph": {(it.source, it.relationship, it.target, it.valid_to) for it in edges},
        }

    @invariant()
    def the_past_is_as_it_was(self) -> None:
        if not hasattr(self, "memory"):
            return
        for moment, there in self.past:
            then = self.memory.list_recent(1000, filters={"archived": None}, as_of=moment)
            assert {each.id: each.model_dump(exclude=COUNTED) for each in then} == there
        self.past = [*self.past[-2:], (self.now, self.memories())]
        self.now += timedelta(seconds=1)

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            assert self.memory.check().problems == []
            self.memory.close()
            shutil.rmtree(self.folder)


TestMachine = Machine.TestCase
EXAMPLES = int(os.environ.get("LIFE_EXAMPLES", "8"))
TestMachine.settings = settings(max_examples=EXAMPLES, stateful_step_count=15, deadline=None)

"""What is decided about the memories of one file: all of a conversation in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agent_memory.errors import LimitReached, MemoryNotFound, RejectedContent, ValidationError
from agent_memory.models.decision import Decision, DecisionOutcome, Event, Review
from agent_memory.models.enums import OnDuplicate
from agent_memory.models.memory import Memory
from agent_memory.services.unit_of_work import UnitOfWork, enter_scratchpad
from agent_memory.services.writing.changing import change
from agent_memory.services.writing.insert import InsertResult, MemoryInsert
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import fingerprint_of

_GIVEN: Final = frozenset({"content"})
"""What counts as given of a fact: one that is there already is the same, whatever its time."""


@dataclass(slots=True)
class Carried:
    """What became of all steps, in their order; ``added`` is what became of ``memories``.

    ``problems`` are what the graph could not follow.
    """

    done: list[DecisionOutcome] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    added: InsertResult = field(default_factory=lambda: InsertResult([], []))
    problems: list[str] = field(default_factory=list)


class DecisionService:
    """Carries out decisions in one agent's file. Threads may share it.

    ``complete`` makes the fingerprints that are missing, in transactions of its own.
    """

    def __init__(
        self,
        engine: Engine,
        unit_of_work: UnitOfWork,
        complete: Callable[[], None],
        *,
        agent_id: str,
    ) -> None:
        self._engine = engine
        self._unit_of_work = unit_of_work
        self._complete = complete
        self._agent_id = agent_id

    def carry_out(
        self, steps: Sequence[Decision], *, session_id: str, keep_copies: bool = False
    ) -> Carried:
        """Carry out all decisions in one transaction, which one ``undo`` takes back.

        A memory that was changed or deleted by others since it was looked at is left alone: what
        was to be its new text is stored as a memory of its own. What is there already in the same
        words is not stored again, unless ``keep_copies``.
        """
        self._complete()
        with self._unit_of_work.writing() as now:
            before = self._engine.operations.last_number()
            run = _Run(self._engine, self._agent_id, steps, session_id=session_id, now=now)
            carried = run.all(OnDuplicate.KEEP if keep_copies else OnDuplicate.MERGE)
            self._engine.history.sign_all(since=before, session_id=session_id, now=now)
            self._engine.operations.record("add", since=before, session_id=session_id, now=now)
            has_reviews = any(it.review_id is not None for it in carried.done)
            if has_reviews and self._engine.operations.last_number() == before:
                # `undo` must not take for this what was done before it.
                self._engine.operations.record_irreversible("add", session_id=session_id, now=now)
        return carried

    def reviews(self) -> list[Review]:
        """Return the memories in question, oldest first."""
        return self._engine.reviews.all()

    def approve(self, review_id: int, *, session_id: str) -> Memory:
        """Delete the memory in question, and return it as it was."""
        with self._unit_of_work.writing() as now:
            review = self._review(review_id)
            there = self._engine.memories.get(review.memory_id, agent_id=self._agent_id)
            if there is None:
                raise MemoryNotFound(review.memory_id)
            if self._engine.reviews.is_stale(review_id):
                message = f"memory {there.id} was changed since: dismiss it, or delete the memory"
                raise ValidationError.of("review_id", message, review_id)
            before = self._engine.operations.last_number()
            self._engine.memory_rows.delete(review.memory_id)
            self._engine.history.sign_all(since=before, session_id=session_id, now=now)
            return there

    def dismiss(self, review_id: int) -> Review:
        """Keep the memory in question, and return what the question was."""
        with self._unit_of_work.writing():
            review = self._review(review_id)
            self._engine.reviews.drop(review_id)
            return review

    def _review(self, review_id: int) -> Review:
        review = self._engine.reviews.get(review_id)
        if review is None:
            message = "there is no such review: `reviews` lists them"
            raise ValidationError.of("review_id", message, review_id)
        return review


class _Run:
    """The carrying out of some steps, inside one transaction."""

    def __init__(
        self,
        engine: Engine,
        agent_id: str,
        steps: Sequence[Decision],
        *,
        session_id: str,
        now: datetime,
    ) -> None:
        self._engine = engine
        self._agent_id = agent_id
        self._steps = steps
        self._session_id = session_id
        self._now = now
        self._carried = Carried()

    def all(self, on_duplicate: OnDuplicate) -> Carried:
        """Carry out the steps: changes first, so that what is new is compared with the result."""
        done: dict[int, DecisionOutcome] = {}
        stored: list[int] = []
        for place, step in enumerate(self._steps):
            found = None if step.event == "ADD" else self._changed(step)
            if found is not None:
                done[place] = found
            elif step.memory is not None:
                stored.append(place)
            else:
                done[place] = DecisionOutcome(
                    "NONE", step.memory_id, step.seen, problem=_gone(step)
                )
        for place, came in zip(stored, self._add(stored, on_duplicate), strict=True):
            memory_id, is_new, refusal = came
            step = self._steps[place]
            done[place] = (
                self._stored(step, memory_id, is_new=is_new)
                if refusal is None
                else DecisionOutcome(
                    "NONE", None, None, problem=f"a fact was not stored: {refusal}"
                )
            )
        for place, step in enumerate(self._steps):
            if step.graph is not None:
                self._carried.problems += self._followed(step, done[place])
        self._carried.done = [done[place] for place in range(len(self._steps))]
        return self._carried

    def _followed(self, step: Decision, done: DecisionOutcome) -> list[str]:
        """Let the graph follow a step; return what of it was refused."""
        from agent_memory.services.graph.graph_following import follow  # noqa: PLC0415 - seldom asked for

        return follow(self._engine, step, done, agent_id=self._agent_id, now=self._now)

    def _changed(self, step: Decision) -> DecisionOutcome | None:
        """Change or delete a memory; ``None`` where it is not what was looked at, or in review."""
        there = self._there(step)
        if there is None or (step.in_review and step.event == "UPDATE"):
            return None
        row_id = self._engine.memories.row_id_of(there.id)
        if step.in_review:
            return self._questioned(step, there, replaced_by=None)
        if step.event == "DELETE":
            self._engine.memory_rows.delete(there.id)
            return DecisionOutcome("DELETE", there.id, there.content, was=there.content)
        new = step.memory
        if new is None or row_id is None:
            return None
        changes: dict[str, Any] = {
            "content": new.content,
            "timestamp": new.timestamp,
            "metadata": {**there.metadata, **new.metadata},
        }
        try:
            change(self._engine, row_id, there, changes, now=self._now)
        except (RejectedContent, LimitReached) as error:
            problem = f"memory {there.id} was not changed: {error}"
            return DecisionOutcome("NONE", there.id, there.content, problem=problem)
        return DecisionOutcome("UPDATE", there.id, new.content, was=there.content)

    def _there(self, step: Decision) -> Memory | None:
        """Return the memory of a step, if it is still what was looked at."""
        if step.memory_id is None:
            return None
        there = self._engine.memories.get(step.memory_id, agent_id=self._agent_id)
        return there if there is not None and there.content == step.seen else None

    def _questioned(
        self, step: Decision, there: Memory, *, replaced_by: str | None
    ) -> DecisionOutcome:
        row_id = self._engine.memories.row_id_of(there.id)
        if row_id is None:
            return DecisionOutcome("NONE", there.id, there.content, problem=_gone(step))
        review_id = self._engine.reviews.add(
            row_id,
            replaced_by=replaced_by,
            confidence=step.confidence,
            reasoning=step.reasoning,
            session_id=self._session_id,
            now=self._now,
        )
        return DecisionOutcome("NONE", there.id, there.content, review_id=review_id)

    def _add(
        self, places: Sequence[int], on_duplicate: OnDuplicate
    ) -> list[tuple[str, bool, str | None]]:
        """Store what is new; return the id of each, whether it is new, or why it was refused.

        What is refused keeps no other out.
        """
        memories = [memory for it in places if (memory := self._steps[it].memory) is not None]
        settings = self._engine.agent.config()
        adding = MemoryInsert(
            self._engine,
            agent_id=self._agent_id,
            now=self._now,
            marks=[fingerprint_of(it.content, it.user_id, it.run_id) for it in memories],
            generated_ids=frozenset(it.id for it in memories),
            given=[_GIVEN] * len(memories),
            is_list=True,
            on_duplicate=on_duplicate,
            settings=settings,
        )
        refused: dict[int, str] = {}
        for place, memory in enumerate(memories):
            try:
                adding.take(memory)
            except (RejectedContent, LimitReached) as error:
                if on_duplicate is OnDuplicate.KEEP:  # messages as they are: all, or none
                    raise
                refused[place] = str(error)
                adding.pass_over()
        adding.finish()
        entered = enter_scratchpad(
            self._engine, adding.row_ids, "stored", self._now, settings=settings
        )
        added = adding.added(in_scratchpad=len(entered.row_ids))
        self._carried.memories, self._carried.added = memories, added
        new = {place for place, _ in added.new}
        return [
            (memory_id, place in new, refused.get(place))
            for place, memory_id in enumerate(added.ids)
        ]

    def _stored(self, step: Decision, memory_id: str, *, is_new: bool) -> DecisionOutcome:
        content = step.memory.content if step.memory is not None else None
        if step.event == "ADD":
            return DecisionOutcome("ADD" if is_new else "NONE", memory_id, content)
        there = self._there(step)
        if step.in_review and there is not None and there.id != memory_id:
            asked = self._questioned(step, there, replaced_by=memory_id)
            event: Event = "ADD" if is_new else "NONE"
            return DecisionOutcome(event, memory_id, content, review_id=asked.review_id)
        problem = None if step.in_review else f"{_gone(step)}: its new text is a memory of its own"
        return DecisionOutcome("ADD" if is_new else "NONE", memory_id, content, problem=problem)


def _gone(step: Decision) -> str:
    return f"{step.event} of {step.memory_id} was left: it was changed or deleted meanwhile"

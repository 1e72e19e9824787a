"""Decisions about memories, carried out in one transaction: all those of a conversation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import LimitReached, RejectedContent, ValidationError
from agent_memory.models.decision import Decision, DecisionOutcome, Event, Review
from agent_memory.models.duplicate import Duplicate
from agent_memory.models.enums import OnDuplicate
from agent_memory.models.memory import Memory
from agent_memory.models.owner import Owner
from agent_memory.models.retention import Undone
from agent_memory.services.lifecycle.undo import undo
from agent_memory.services.policies.retention import learnings_beyond
from agent_memory.services.replacements import newer_of_all, newer_rows, under_review
from agent_memory.services.review_answers import (
    delete_and_hand_on,
    hold_what_is_kept,
    rest_of,
    shorten,
    shortened_by,
    with_remainder,
)
from agent_memory.services.scratchpad import enter_scratchpad
from agent_memory.services.unit_of_work import Service, repeated_if_undone
from agent_memory.services.writing.duplicates import complete_fingerprints
from agent_memory.services.writing.insert import InsertResult, MemoryInsert, fingerprints_of
from agent_memory.services.writing.update import memory_of, recorded, row_id_of, signed, update
from agent_memory.storage.engine import Engine

if TYPE_CHECKING:
    from agent_memory.services.newcomers import Newcomers

_CONTRADICTED: Final = 0.5
"""The confidence that what others have stored meanwhile is contradicted."""
_FIELDS_SET: Final = frozenset({"content"})
"""Only a fact's content counts: with the same content it is a duplicate at any time."""


@dataclass(slots=True)
class AppliedDecisions:
    """The outcome of each decision, in order; ``added`` is the result for ``memories``.

    ``problems`` lists what the graph could not follow.
    """

    outcomes: list[DecisionOutcome] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    added: InsertResult = field(default_factory=lambda: InsertResult([], []))
    problems: list[str] = field(default_factory=list)


class DecisionService(Service):
    """Applies decisions to one agent's file."""

    @repeated_if_undone
    def apply(
        self,
        decisions: Sequence[Decision],
        *,
        session_id: str,
        keep_copies: bool = False,
        since: int | None = None,
        is_confidential: bool = False,
    ) -> AppliedDecisions:
        """Apply all decisions in one transaction, which a single ``undo`` reverses.

        A memory that was changed or deleted by others since it was read is left alone: its new text
        is stored as a memory of its own. What others have stored after the change ``since``, which
        the decisions did not consider, is put under review if it and a new text contradict each
        other. A duplicate is not stored again, unless ``keep_copies``. With ``is_confidential``, a
        refusal is reported without its reasons.
        """
        complete_fingerprints(self._engine)
        with self._unit_of_work.write() as now:
            before = self._engine.operations.last_number()
            application = _Application(
                self._engine,
                decisions,
                session_id=session_id,
                now=now,
                since=None if since is None or since >= before else since,
                is_confidential=is_confidential,
            )
            with recorded(self._engine, "add", session_id, now):
                applied = application.apply(OnDuplicate.KEEP if keep_copies else OnDuplicate.MERGE)
            has_reviews = any(outcome.review_ids for outcome in applied.outcomes)
            if has_reviews and self._engine.operations.last_number() == before:
                # Otherwise `undo` would undo the operation before this one.
                self._engine.operations.record_irreversible("add", session_id=session_id, now=now)
        return applied

    def last_change(self) -> int:
        """Return the number of the last change of any memory."""
        return self._engine.operations.last_number()

    def reviews(self) -> list[Review]:
        """Return the memories under review, oldest first."""
        return [with_remainder(review) for review in self._engine.reviews.all()]

    def review(self, review_id: int, owner: Owner | None = None) -> Review:
        """Return an open review, of this owner if one is given, or raise ``ValidationError``."""
        review = self._engine.reviews.get(review_id)
        if review is None or (owner and not owner.owns(review.user_id, review.run_id)):
            message = "no such review: list the open ones, each with its number"
            raise ValidationError.of("review_id", message, review_id)
        return with_remainder(review)

    def under_review(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of some memories that a newer one may correct."""
        with self._engine.read():
            return under_review(self._engine, memory_ids)

    def corrections(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Return the newest memory that may replace each of these, for those that have one.

        It may replace one that may replace another that may replace the memory.
        """
        row_ids = self._engine.recalls.row_ids_of(memory_ids)
        newer_of = newer_of_all(self._engine, list(row_ids.values()))
        newest_of = {
            memory_id: newest
            for memory_id, row_id in row_ids.items()
            for newest in deque(newer_rows(newer_of, row_id), maxlen=1)
        }
        newest = self._engine.memories.get_many(set(newest_of.values()))
        return {
            memory_id: newest[row_id] for memory_id, row_id in newest_of.items() if row_id in newest
        }

    def replaced_by(self, memory_id: str) -> dict[str, str]:
        """Return the texts that were deleted or shortened for a memory's sake, each with its id."""
        return {
            str(change.old["content"]): older_id
            for older_id, last in self._engine.reviews.replaced_by(memory_id)
            for change in self._engine.history.of_memory(older_id)
            if change.change_id <= last and "content" in change.old
        }

    @repeated_if_undone
    def decide(
        self, approved: Sequence[int], dismissed: Sequence[int], *, session_id: str
    ) -> tuple[list[Memory], list[Review]]:
        """Approve and dismiss reviews, all or none.

        Returns each memory that was deleted or shortened, as it was, and the dismissed reviews.
        """
        for review_id in set(approved).intersection(dismissed):
            message = "cannot be both approved and dismissed: choose one"
            raise ValidationError.of("review_id", message, review_id)
        with self._unit_of_work.write() as now:
            by_memory: dict[str, list[Review]] = {}
            for review in map(self.review, approved):
                by_memory.setdefault(review.memory_id, []).append(review)
            kept = [self.review(review_id) for review_id in dismissed]
            changed, kept_ids = [], {review.review_id for review in kept}
            for memory_id, reviews in by_memory.items():
                memory = memory_of(self._engine, memory_id)
                rest = rest_of(memory, reviews)
                for other in kept if not rest else ():
                    if other.memory_id == memory_id:
                        message = (
                            f"review {other.review_id} keeps memory {memory_id}, and review"
                            f" {reviews[0].review_id} deletes it: approve or dismiss both"
                        )
                        raise ValidationError.of("review_id", message, other.review_id)
                with signed(self._engine, memory_id, session_id, now):
                    if rest:
                        shorten(self._engine, memory, rest, reviews, now=now)
                    else:
                        delete_and_hand_on(
                            self._engine,
                            memory_id,
                            session_id=session_id,
                            now=now,
                            kept=kept_ids,
                        )
                changed.append(memory)
            # An approval is told by its time: undoing it would reopen what was dismissed with it.
            later = now + timedelta(microseconds=1) if approved else now
            # One is gone with a memory that was deleted, or closed by what a text was shortened to.
            left = [each for each in kept_ids if self._engine.reviews.get(each) is not None]
            for review_id in left:
                self._engine.reviews.dismiss(review_id, now=later)
            if left:
                operations = self._engine.operations
                operations.record_irreversible("dismiss", session_id=session_id, now=later)
            for memory_id in {*by_memory, *(review.memory_id for review in kept)}:
                hold_what_is_kept(self._engine, memory_id)
            return changed, kept

    @repeated_if_undone
    def ask_again(self, review_id: int, *, session_id: str) -> Undone:
        """Reopen the review of a memory that was kept, or undo what approving it left out.

        Raises ``ValidationError`` if the memory that it shortened has changed again since.
        """
        with self._unit_of_work.write() as now:
            if (change_id := shortened_by(self._engine, review_id)) is not None:
                return undo(self._engine, change_id, session_id=session_id, now=now)
            if not self._engine.reviews.ask_again(review_id):
                message = f"no such dismissed review, {review_id}"
                raise ValidationError.of("review_id", message, review_id)
            hold_what_is_kept(self._engine, self.review(review_id).memory_id)
            self._engine.operations.record_irreversible("undo", session_id=session_id, now=now)
            return Undone(verb="dismiss", change_ids=[], memory_ids=[])


class _Application:
    """Applies decisions, inside one transaction."""

    def __init__(
        self,
        engine: Engine,
        decisions: Sequence[Decision],
        *,
        session_id: str,
        now: datetime,
        since: int | None,
        is_confidential: bool,
    ) -> None:
        self._engine = engine
        self._decisions = list(decisions)
        self._cut: dict[int, str] = {}
        """What was left out of a decision, by its position."""
        self._session_id = session_id
        self._now = now
        self._since = since
        self._is_confidential = is_confidential
        self._newcomers: Newcomers | None = None
        self._applied = AppliedDecisions()

    def apply(self, on_duplicate: OnDuplicate) -> AppliedDecisions:
        """Apply all: changes first, so that what is new is compared with the result."""
        self._newcomers = self._stored_meanwhile()
        if on_duplicate is OnDuplicate.MERGE:  # messages are kept as they are
            self._leave_out_rejected()
        outcomes: dict[int, DecisionOutcome] = {}
        to_add: list[int] = []
        to_change: list[int] = []
        for place, decision in enumerate(self._decisions):
            outcome = None if decision.event == "ADD" else self._change(place, decision)
            if outcome is not None:
                outcomes[place] = outcome
            elif decision.memory is not None:
                to_add.append(place)
            else:
                to_change.append(place)
        additions = self._add_once(to_add, on_duplicate)
        for place, (memory_id, is_new, refusal) in additions.items():
            outcomes[place] = (
                self._added(place, memory_id, is_new=is_new)
                if refusal is None
                else DecisionOutcome(
                    "NONE", None, None, problem=f"a fact was not stored: {refusal}"
                )
            )
        refused = {
            memory.id
            for place, (*_, refusal) in additions.items()
            if refusal is not None and (memory := self._decisions[place].memory) is not None
        }
        for place in to_change:  # of new memories
            decision = self._decisions[place]
            # The refusal of the new memory is reported above.
            problem = None if decision.memory_id in refused else _left_alone(decision)
            outcomes[place] = self._change(place, decision) or DecisionOutcome(
                "NONE", decision.memory_id, decision.seen, problem=problem
            )
        if self._newcomers is not None:
            self._ask_about(self._newcomers, outcomes)
        for place, decision in enumerate(self._decisions):
            if decision.graph is not None:
                self._applied.problems += self._change_graph(decision, outcomes[place])
        self._applied.outcomes = [outcomes[place] for place in range(len(self._decisions))]
        return self._applied

    def _stored_meanwhile(self) -> Newcomers | None:
        """Return what others have stored of the same owner since the decisions were made."""
        new = next((each.memory for each in self._decisions if each.memory is not None), None)
        if self._since is None or new is None:
            return None
        from agent_memory.services.newcomers import Newcomers  # noqa: PLC0415 - seldom asked for

        return Newcomers(self._engine, new, since=self._since)

    def _ask_about(self, newcomers: Newcomers, outcomes: dict[int, DecisionOutcome]) -> None:
        """Put under review what a new text and what others have stored meanwhile contradict."""
        for place, outcome in outcomes.items():
            memory_id, text = outcome.memory_id, outcome.content
            if outcome.event not in ("ADD", "UPDATE") or memory_id is None or text is None:
                continue
            asked = [
                self._engine.reviews.add(
                    row_id_of(self._engine, contradiction.memory_id),
                    replaced_by=contradiction.replaced_by,
                    confidence=_CONTRADICTED,
                    reasoning=contradiction.why,
                    session_id=self._session_id,
                    now=self._now,
                )
                for contradiction in newcomers.contradictions(text, memory_id)
            ]
            outcomes[place] = outcome._replace(review_ids=(*outcome.review_ids, *asked))

    def _is_asked(self, existing: Memory, text: str) -> bool:
        """Return whether a memory is in question because of a newcomer that a text contradicts."""
        if self._newcomers is None:
            return False
        newer = {review.replaced_by for review in self._engine.reviews.of_memory(existing.id)}
        contradictions = self._newcomers.contradictions(text, existing.id)
        return any(not newer.isdisjoint(each[:2]) for each in contradictions)

    def _leave_out_rejected(self) -> None:
        """Leave rejected values out of new texts, so that the rest of them is kept.

        An UPDATE is then reviewed: what is left of its text need not replace the memory.
        """
        if not (rejected_hashes := self._engine.rejections.hashes_by_length()):
            return
        from agent_memory.services.policies import rejected_values  # noqa: PLC0415 - most agents reject nothing

        for place, decision in enumerate(self._decisions):
            if decision.memory is None:
                continue
            try:
                rejected_values.refuse_rejected(self._engine, decision.memory, rejected_hashes)
            except RejectedContent as refusal:
                rest = rejected_values.allowed_part(decision.memory.content, rejected_hashes)
                if not rest or rest == decision.memory.content:
                    continue
                self._cut[place] = f"part of a fact was not stored: {self._explained(refusal)}"
                self._decisions[place] = decision._replace(
                    memory=decision.memory.model_copy(update={"content": rest}),
                    in_review=decision.event == "UPDATE",
                )

    def _change_graph(self, decision: Decision, outcome: DecisionOutcome) -> list[str]:
        """Change the graph as a decision says; return what of that was refused."""
        from agent_memory.services.graph.changes import follow  # noqa: PLC0415 - seldom asked for

        problems = follow(
            self._engine,
            decision,
            outcome,
            now=self._now,
            is_confidential=self._is_confidential,
        )
        hidden = "graph: a change to a relationship was refused"
        return [hidden] * len(problems) if self._is_confidential else problems

    def _explained(self, refusal: RejectedContent | LimitReached) -> str:
        return str(refusal.without_details() if self._is_confidential else refusal)

    def _change(self, place: int, decision: Decision) -> DecisionOutcome | None:
        """Update or delete a memory, or put it under review.

        Returns ``None`` if it changed since the decision, or if a new memory is to be stored first.
        """
        existing = self._existing(decision)
        if existing is None or (decision.in_review and decision.event == "UPDATE"):
            return None
        if decision.in_review:
            return self._review(decision, existing, replaced_by=None)
        if decision.event == "DELETE":
            delete_and_hand_on(
                self._engine, existing.id, session_id=self._session_id, now=self._now
            )
            return DecisionOutcome("DELETE", existing.id, existing.content, was=existing.content)
        new = decision.memory
        if new is None:
            return None
        changes: dict[str, Any] = {
            "content": new.content,
            "metadata": {**existing.metadata, **new.metadata},
            "timestamp": max(existing.timestamp, new.timestamp),  # when what it says was learned
        }
        try:
            update(self._engine, existing, changes, now=self._now)
        except (RejectedContent, LimitReached) as error:
            return self._unchanged(place, existing, error)
        return DecisionOutcome("UPDATE", existing.id, new.content, was=existing.content)

    def _unchanged(
        self, place: int, existing: Memory, refusal: RejectedContent | LimitReached
    ) -> DecisionOutcome | None:
        """Return the outcome of a refused change, ``None`` if its text is to be stored alone."""
        problem = f"memory {existing.id} was not changed: {self._explained(refusal)}"
        if isinstance(refusal, RejectedContent):  # the old metadata may hold it, not the new text
            self._cut[place] = problem
            self._decisions[place] = self._decisions[place]._replace(in_review=True)
            return None
        return DecisionOutcome("NONE", existing.id, existing.content, problem=problem)

    def _existing(self, decision: Decision) -> Memory | None:
        """Return the memory of a decision, if it has not changed since."""
        if decision.memory_id is None:
            return None
        memory = self._engine.memories.get(decision.memory_id)
        return memory if memory is not None and memory.content == decision.seen else None

    def _review(
        self, decision: Decision, existing: Memory, *, replaced_by: str | None
    ) -> DecisionOutcome:
        review_id = self._engine.reviews.add(
            row_id_of(self._engine, existing.id),
            replaced_by=replaced_by,
            confidence=decision.confidence,
            reasoning=decision.reasoning,
            session_id=self._session_id,
            now=self._now,
        )
        return DecisionOutcome("NONE", existing.id, existing.content, review_ids=(review_id,))

    def _add_once(
        self, places: Sequence[int], on_duplicate: OnDuplicate
    ) -> dict[int, tuple[str, bool, str | None]]:
        """Store new memories, as ``_add`` does; return its results by the decisions' positions.

        What is said again may raise the review of several memories: it is stored by the first.
        """
        first: dict[str, int] = {}
        stored_by: dict[int, int] = {}
        for place in places:
            memory, is_again = self._decisions[place].memory, self._decisions[place].said_again
            text = memory.content if memory is not None and is_again else None
            stored_by[place] = place if text is None else first.setdefault(text, place)
        to_add = [place for place in places if stored_by[place] == place]
        added = dict(zip(to_add, self._add(to_add, on_duplicate), strict=True))
        results = {}
        for place, storing in stored_by.items():
            memory_id, is_new, refusal = added[storing]
            results[place] = memory_id, is_new and storing == place, refusal
        return results

    def _add(
        self, places: Sequence[int], on_duplicate: OnDuplicate
    ) -> list[tuple[str, bool, str | None]]:
        """Store new memories; return the id of each and whether it is new, or why it was refused.

        A refusal does not affect the others.
        """
        decided = [self._decisions[place] for place in places]
        memories = [decision.memory for decision in decided if decision.memory is not None]
        settings = self._engine.agent.config()
        if settings.retention is not None:
            memories = learnings_beyond(self._engine, settings.retention, memories)
        insert = MemoryInsert(
            self._engine,
            now=self._now,
            fingerprints=fingerprints_of(memories),
            generated_ids=frozenset(memory.id for memory in memories),
            fields_set=[_FIELDS_SET] * len(memories),
            is_list=True,
            on_duplicate=lambda duplicate: _policy(decided, duplicate, on_duplicate),
            settings=settings,
        )
        refused: dict[int, str] = {}
        for place, memory in enumerate(memories):
            try:
                insert.take(memory)
            except (RejectedContent, LimitReached) as error:
                if on_duplicate is OnDuplicate.KEEP:  # messages as they are: all, or none
                    raise
                refused[place] = self._explained(error)
                insert.pass_over()
        insert.finish()
        entry = enter_scratchpad(
            self._engine, insert.row_ids, "stored", self._now, settings=settings
        )
        added = insert.result(entry.row_ids)
        self._applied.memories, self._applied.added = memories, added
        new = {place for place, _ in added.new}
        return [
            (memory_id, place in new, refused.get(place))
            for place, memory_id in enumerate(added.ids)
        ]

    def _added(self, place: int, memory_id: str, *, is_new: bool) -> DecisionOutcome:
        decision, cut = self._decisions[place], self._cut.get(place)
        event: Event = "ADD" if is_new else "NONE"
        content = decision.memory.content if decision.memory is not None else None
        if decision.event == "ADD":
            return DecisionOutcome(event, memory_id, content, problem=cut)
        existing = self._existing(decision)
        if content is not None and existing is not None and self._is_asked(existing, content):
            return DecisionOutcome(event, memory_id, content, problem=cut)  # see ``_ask_about``
        if decision.in_review and existing is not None and existing.id != memory_id:
            reviewed = self._review(decision, existing, replaced_by=memory_id)
            return DecisionOutcome(
                event, memory_id, content, problem=cut, review_ids=reviewed.review_ids
            )
        problem = f"{_left_alone(decision)}: its new text was stored as a separate memory"
        return DecisionOutcome(
            event, memory_id, content, problem=cut if decision.in_review else problem
        )


def _policy(
    decisions: Sequence[Decision], duplicate: Duplicate, on_duplicate: OnDuplicate
) -> OnDuplicate:
    """Return what to do with a duplicate: what is said again is kept beside what was corrected."""
    is_again = duplicate.index is not None and decisions[duplicate.index].said_again
    return OnDuplicate.KEEP if is_again else on_duplicate


def _left_alone(decision: Decision) -> str:
    return (
        f"{decision.event} of {decision.memory_id} was skipped: the memory was changed or"
        " deleted meanwhile"
    )

"""Checks of a model's decisions: no fact is lost, and only the given memories are touched.

An invalid decision is refused and reported, and its facts are added as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, Field

from agent_memory.extraction.rules.readings import people_of
from agent_memory.extraction.types import By, Fact, OperationPlan, RelatedMemory, ReplacedBy
from agent_memory.models.conversation import (
    MemoryOperation,
    OperationEvent,
    ProcessingMetadata,
)
from agent_memory.models.field_types import Text
from agent_memory.models.fields import validate_memory_content
from agent_memory.models.times import now_utc
from agent_memory.text.normalize import exact_form, grade_of
from agent_memory.text.sentences import clauses, sentences
from agent_memory.text.speech_acts import is_request_to_forget
from agent_memory.text.stems import stems

_USUAL: Final = 0.8
"""The default confidence of a decision, if the model states none."""
_DOUBTFUL: Final = 0.5
"""The maximum confidence of a decision that replaces a memory by a text with no word in common."""

_MOST: Final = 0.5
"""The share of a fact's words that makes an operation about it, unless the operation says so."""
_GENERIC: Final = stems(
    "like love enjoy adore prefer hate want need use live work go went move plan own keep is name"
)

ADD, UPDATE, DELETE, NONE = OperationEvent


def _as_event(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


def _as_id(value: object) -> object:
    """Accept a number as an id: some models write 0 for "0"."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class OperationAnswer(BaseModel):
    """An operation as a model writes it; ``facts`` is ``None`` if it has none, as in C."""

    facts: list[int] | None = None
    event: Annotated[OperationEvent, BeforeValidator(_as_event)]
    id: Annotated[str | None, BeforeValidator(_as_id)] = None
    text: Text
    confidence: float = Field(default=_USUAL, ge=0.0, le=1.0)
    reasoning: Text | None = None


class DecisionAnswer(BaseModel):
    """A model's answer to the question what to do (C, 5)."""

    memory: list[OperationAnswer]


def says(text: str, fact: str, *, share: float = 0.0) -> bool:
    """Return whether a text may say a fact: whether it has any of its words, or that share of them.

    What somebody likes counts, not that they like it; a fact without such words is in any text.
    """
    words = stems(fact) - _GENERIC or stems(fact)
    common = len(words & stems(text))
    return not words or (common > 0 and common >= share * len(words))


@dataclass
class DecisionChecks:
    """Facts, the memories related to each, and the operations on them so far.

    ``take_answer`` takes a model's answer about some of the facts; ``add_the_rest`` adds the facts
    that no operation is about.
    """

    facts: Sequence[Fact]
    related: Sequence[Sequence[RelatedMemory]]
    replaced_by: ReplacedBy | None = None
    operations: list[MemoryOperation] = field(default_factory=list)
    covers: list[tuple[int, ...]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    in_question: set[int] = field(default_factory=set)
    """The positions of the operations to be reviewed, whatever their confidence."""
    new_ids: dict[int, str] = field(default_factory=dict)
    """By the positions of facts, the ids that their memories will get, if known."""
    said_again: set[int] = field(default_factory=set)
    """The positions of the facts that say what was known, but may have been corrected since."""
    _texts: dict[str, str | None] = field(default_factory=dict)
    """What each memory that was touched says afterwards, ``None`` if it is deleted."""

    def take_answer(
        self, answer: DecisionAnswer, places: Sequence[int], related: dict[str, RelatedMemory]
    ) -> None:
        """Take an answer about the facts at some positions, which it numbers from 0.

        ``related`` has the memories by the ids that the model was given.
        """
        operations = [
            (operation, self._places_of(operation, places, related)) for operation in answer.memory
        ]
        incoming = {
            place
            for operation, about in operations
            if operation.event in (ADD, UPDATE)
            for place in about
        }
        # Operations that change nothing are judged last: the memory they rely on may be changed.
        for operation, about in sorted(operations, key=lambda place: place[0].event is NONE):
            if operation.event is ADD:
                self._add(operation, about)
            elif operation.event is NONE:
                self._leave(operation, about, related)
            elif (memory := self._memory(operation, related)) is not None:
                if operation.event is UPDATE:
                    self._update(operation, about, memory)
                else:
                    self._delete(operation, about, memory, incoming)

    def add_the_rest(self, places: Sequence[int], why: str) -> int:
        """Add the facts that no operation is about, and return how many there were."""
        covered = {place for cover in self.covers for place in cover}
        left = [place for place in places if place not in covered]
        for place in left:
            fact = self.facts[place]
            self.note(ADD, [place], fact.text, confidence=fact.confidence, reasoning=why)
        return len(left)

    def _places_of(
        self, operation: OperationAnswer, places: Sequence[int], related: dict[str, RelatedMemory]
    ) -> list[int]:
        if operation.facts is not None:
            wrong = [number for number in operation.facts if not 0 <= number < len(places)]
            if wrong:
                self._report(operation, f"names fact {wrong[0]}, which was not given")
            return sorted(
                {places[number] for number in operation.facts if 0 <= number < len(places)}
            )
        memory = related.get(operation.id or "")
        if operation.event is DELETE and memory is not None:
            return [place for place in places if memory in self.related[place]]
        return [
            place for place in places if says(operation.text, self.facts[place].text, share=_MOST)
        ]

    def _memory(
        self, operation: OperationAnswer, related: dict[str, RelatedMemory]
    ) -> RelatedMemory | None:
        memory = related.get(operation.id or "")
        if memory is None:
            self._refuse(operation, "of a memory that was not given")
        elif self.is_touched(memory):
            self._refuse(operation, "of a memory that an earlier operation is about")
            return None
        return memory

    def is_touched(self, memory: RelatedMemory) -> bool:
        """Return whether an operation changes or deletes a memory."""
        return memory.id in self._texts

    # The four events --------------------------------------------------------------------------

    def _add(self, operation: OperationAnswer, about: Sequence[int]) -> None:
        text, saying = self._saying(operation, about, otherwise="of a text that no fact supports")
        if saying and self._is_there(text):
            self._refuse(operation, "of a text that another operation adds")
        elif saying:
            self._take(operation, ADD, saying, text)

    def _update(
        self, operation: OperationAnswer, about: Sequence[int], memory: RelatedMemory
    ) -> None:
        text, saying = self._saying(operation, about, otherwise="with a text that no fact supports")
        if not saying:
            return
        if not any(self._is_about(place, memory) for place in saying):
            self._refuse(operation, "of a memory that has nothing to do with its facts")
        elif exact_form(text) == exact_form(memory.text):
            self.note(NONE, saying, memory.text, memory=memory, confidence=operation.confidence)
        else:
            has_common = not stems(text).isdisjoint(stems(memory.text))  # "I live in" too
            sure = operation.confidence if has_common else min(operation.confidence, _DOUBTFUL)
            facts = " ".join(self.facts[place].text for place in saying)
            fault = _fault_of(memory.text, text, facts)
            if fault:
                self._report(operation, f"{fault}: both are kept, and a review is opened")
            self._take(operation, UPDATE, saying, text, memory, sure=sure, in_question=bool(fault))

    def _delete(
        self,
        operation: OperationAnswer,
        about: Sequence[int],
        memory: RelatedMemory,
        incoming: set[int],
    ) -> None:
        """Delete a memory if that was requested, or if new facts are added by other operations."""
        near = [place for place in about if self._is_about(place, memory)]
        near = [place for place in near if says(memory.text, self.facts[place].text)]
        asked = [place for place in near if is_request_to_forget(self.facts[place].text)]
        new = [place for place in near if place not in asked and place not in incoming]
        if not near:
            self._refuse(operation, "that no fact asks for")
        elif asked or not new:
            most = _DOUBTFUL if operation.facts is None else 1.0
            sure = min(operation.confidence, most)
            self._take(operation, DELETE, asked or near, memory.text, memory, sure=sure)
        else:
            self._report(
                operation, "brings nothing new: it became an UPDATE with the text of the fact"
            )
            self._take(operation, UPDATE, new[:1], self.facts[new[0]].text, memory)

    def _leave(
        self, operation: OperationAnswer, about: Sequence[int], related: dict[str, RelatedMemory]
    ) -> None:
        """Change nothing, if a memory says a fact and still says it afterwards."""
        for place in about:
            fact = self.facts[place].text
            named = related.get(operation.id or "")
            candidates = [named] if named is not None else self._saying_the_same(place)
            memory = next((memory for memory in candidates if self._still_says(memory, fact)), None)
            if memory is None:
                self._refuse(operation, "of a fact that none of the memories states")
            else:
                self._take(operation, NONE, [place], memory.text, memory)

    # Parts ------------------------------------------------------------------------------------

    def _is_about(self, place: int, memory: RelatedMemory) -> bool:
        is_related = any(other.id == memory.id for other in self.related[place])
        return is_related or says(memory.text, self.facts[place].text)

    def _saying_the_same(self, place: int) -> list[RelatedMemory]:
        fact = self.facts[place].text
        return [memory for memory in self.related[place] if grade_of(memory.text, fact) is not None]

    def _still_says(self, memory: RelatedMemory, fact: str) -> bool:
        text = self._texts.get(memory.id, memory.text)
        return text is not None and says(text, fact)

    def _is_there(self, text: str) -> bool:
        form = exact_form(text)
        return any(
            noted.event is ADD and exact_form(noted.text) == form for noted in self.operations
        )

    def _saying(
        self, operation: OperationAnswer, about: Sequence[int], *, otherwise: str
    ) -> tuple[str, list[int]]:
        """Return an operation's text on one line, and the positions of the facts that it says.

        Without such facts it is refused: no memory can have the text, or as ``otherwise`` says.
        """
        text = " ".join(operation.text.split())
        is_sound, fault = validate_memory_content(text)
        saying = [place for place in about if is_sound and says(text, self.facts[place].text)]
        if not is_sound:
            self._refuse(operation, f"with an invalid text: {fault}")
        elif not saying:
            self._refuse(operation, otherwise)
        return text, saying

    def _take(
        self,
        operation: OperationAnswer,
        event: OperationEvent,
        about: Sequence[int],
        text: str,
        memory: RelatedMemory | None = None,
        *,
        sure: float | None = None,
        in_question: bool = False,
    ) -> None:
        self.note(
            event,
            about,
            text,
            memory=memory,
            confidence=operation.confidence if sure is None else sure,
            reasoning=operation.reasoning,
            in_question=in_question,
        )

    def note(
        self,
        event: OperationEvent,
        about: Sequence[int],
        text: str,
        *,
        memory: RelatedMemory | None = None,
        confidence: float | None = None,
        reasoning: str | None = None,
        in_question: bool = False,
    ) -> None:
        """Record an operation; ``text`` is what the memory says afterwards.

        With ``in_question`` the memory is left and a review is opened, whatever the confidence.
        """
        if memory is not None and event is not NONE:
            self._texts[memory.id] = None if event is DELETE else text
        if in_question:
            self.in_question.add(len(self.operations))
        self.operations.append(
            MemoryOperation(
                id=memory.id if memory else None,
                event=event,
                text=text,
                old_memory=memory.text if memory and event is UPDATE else None,
                confidence=None if confidence is None else round(confidence, 3),
                reasoning=reasoning[:1000] if reasoning else None,
            )
        )
        self.covers.append(tuple(about))

    def plan(
        self,
        *,
        by: By = "rules",
        model_used: str = "rules",
        was_model_asked: bool = False,
        has_failed: bool = False,
    ) -> OperationPlan:
        """Return the operations as a plan."""
        metadata = ProcessingMetadata(
            total_operations=len(self.operations),
            decision_time=now_utc(),
            model_used=model_used,
            uuid_mapping_used=was_model_asked,
        )
        in_question = frozenset(self.in_question)
        return OperationPlan(
            self.operations,
            self.covers,
            metadata,
            self.problems,
            by,
            has_failed,
            in_question,
            self.new_ids,
            frozenset(self.said_again),
        )

    def _refuse(self, operation: OperationAnswer, why: str) -> None:
        self.problems.append(f"decision: {_article(operation)} {why} was refused")

    def _report(self, operation: OperationAnswer, what: str) -> None:
        self.problems.append(f"decision: {_article(operation)} {what}")


def _fault_of(old: str, new: str, facts: str) -> str:
    """Return what is wrong with a new text for a memory; an empty text if nothing is.

    It must not drop a part that the facts do not mention, nor be about somebody else.
    """
    if people_of(old) != people_of(new):
        return "is about somebody else than the memory"
    kept = stems(f"{new} {facts}")
    parts = [stems(clause) for sentence in sentences(old) for _, clause in clauses(sentence)]
    if len(parts) > 1 and any(part and part.isdisjoint(kept) for part in parts):
        return "drops a part of the memory"
    return ""


def _article(operation: OperationAnswer) -> str:
    return f"an {operation.event}" if operation.event in (ADD, UPDATE) else f"a {operation.event}"

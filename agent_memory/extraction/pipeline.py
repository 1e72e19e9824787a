"""From a conversation to what is done about it: its facts, what is known of them, decisions.

Without a language model all of it is by rule. Whatever fails on the way, no fact is lost: what a
model cannot say properly is stored as it is, and ``problems`` tell so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Protocol

from agent_memory.errors import ValidationError
from agent_memory.extraction import decisions, facts
from agent_memory.extraction.graph_by_model import graph_updates_by_model
from agent_memory.extraction.rules.graph import graph_updates_by_rules
from agent_memory.extraction.types import By, Extraction, Fact, Known
from agent_memory.models.conversation import MemoryOperation, Message, OperationEvent
from agent_memory.models.decision import Done, Step
from agent_memory.models.graph import EdgeView, GraphUpdate
from agent_memory.models.memory import Memory
from agent_memory.models.protocols import LanguageModel
from agent_memory.models.search import SearchFilters
from agent_memory.text.sentences import sentences

RELATED: Final = 5
"""Memories that each fact is compared with."""
_LOOKED_AT: Final = 25
"""Hits among which they are found: those of other users, or runs, are passed over."""


class LookUp(Protocol):
    """Finds the memories that have most to do with a text, and takes no notes of it."""

    def __call__(self, text: str, filters: SearchFilters, *, limit: int) -> list[Memory]:
        """Return them, best first."""


class Recent(Protocol):
    """Lists memories."""

    def __call__(self, filters: SearchFilters, *, limit: int) -> list[Memory]:
        """Return the newest, newest first."""


class CarryOut(Protocol):
    """Carries out decisions in one transaction; see ``DecisionStore.carry_out``."""

    def __call__(self, steps: Sequence[Step], *, keep_copies: bool) -> tuple[list[Done], list[str]]:
        """Return what became of each, and what the graph could not follow."""


@dataclass(frozen=True, slots=True)
class Hands:
    """What a memory lends to those who learn for it.

    ``prepare`` returns the memory of an item as it may be stored, and raises what ``store`` would.
    """

    agent_id: str
    categories: Callable[[], Sequence[str]]
    look_up: LookUp
    recent: Recent
    prepare: Callable[[Mapping[str, Any]], Memory]
    carry_out: CarryOut
    edges: Callable[[str | None], list[EdgeView]]
    """Return what holds in a user's graph."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a conversation is to be learned from. What ``AgentMemory.add`` was given."""

    user_id: str | None
    run_id: str | None
    fields: Mapping[str, Any]
    """Of each new memory: category, tags, metadata."""
    model: LanguageModel | None
    extraction_prompt: str | None
    update_prompt: str | None
    min_confidence: float
    may_delete: bool
    graph: bool


@dataclass(slots=True)
class Learned:
    """What is to be done, who decided it, and what went wrong on the way."""

    extraction: Extraction
    by: By
    steps: list[Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Learning:
    """Learns from one conversation. Nothing is written: ``steps`` say what would be."""

    def __init__(self, hands: Hands, messages: Sequence[Message], wanted: Wanted) -> None:
        self._hands = hands
        self._messages = messages
        self._wanted = wanted
        self._problems: list[str] = []

    def learn(self) -> Learned:
        """Extract the facts, compare each with what is known, and decide."""
        wanted = self._wanted
        extraction = facts.extract(self._messages, wanted.model, prompt=wanted.extraction_prompt)
        found = [self._related(fact) for fact in extraction.facts]
        # With nothing to compare them with, all facts are new: no model need be asked.
        decided = decisions.decide(
            extraction.facts,
            [[_known(it) for it in one] for one in found],
            wanted.model if any(found) else None,
            prompt=wanted.update_prompt,
        )
        learned = Learned(extraction, by=decided.by if any(found) else extraction.by)
        there = {memory.id: memory for one in found for memory in one}
        for operation, covers in zip(decided.operations, decided.covers, strict=True):
            about = [extraction.facts[place] for place in covers]
            learned.steps += self._steps(operation, about, there)
        if wanted.graph:
            learned.steps = self._with_graph(learned.steps)
        learned.problems = [*extraction.problems, *decided.problems, *self._problems]
        return learned

    def _note(self, problem: str) -> None:
        logging.getLogger("agent_memory").warning("%s", problem)
        self._problems.append(problem)

    def _related(self, fact: Fact) -> list[Memory]:
        """Return the memories that have most to do with a fact, of its user and run alone.

        Where words and meaning find few, the newest follow: "I am allergic to wheat" has no word
        of "I like pasta".
        """
        hits = self._hands.look_up(fact.text, self._scope, limit=_LOOKED_AT)
        newest = [] if len(hits) >= RELATED else self._newest
        found = {it.id: it for it in [*hits, *newest] if self._is_own(it)}
        return list(found.values())[:RELATED]

    @cached_property
    def _scope(self) -> SearchFilters:
        return SearchFilters(user_id=self._wanted.user_id, run_id=self._wanted.run_id)

    @cached_property
    def _newest(self) -> list[Memory]:
        return self._hands.recent(self._scope, limit=_LOOKED_AT)

    def _is_own(self, memory: Memory) -> bool:
        """Return whether a memory is of the user, or of nobody as what is told is."""
        is_users = memory.user_id == self._wanted.user_id
        return is_users and (
            self._wanted.user_id is not None or memory.run_id == self._wanted.run_id
        )

    # Steps ------------------------------------------------------------------------------------

    def _steps(
        self, operation: MemoryOperation, about: Sequence[Fact], there: Mapping[str, Memory]
    ) -> list[Step]:
        """Return the steps of an operation; of a text that is refused, its sentences are tried.

        A key in one of them would keep out what stands beside it.
        """
        step = self._step(operation, about, there)
        parts = sentences(operation.text) if operation.event is OperationEvent.ADD else []
        if step is not None or len(parts) < 2:
            return [] if step is None else [step]
        made = [self._made(operation.model_copy(update={"text": it}), about) for it in parts]
        return [Step("ADD", it, confidence=operation.confidence) for it in made if it is not None]

    def _step(
        self, operation: MemoryOperation, about: Sequence[Fact], there: Mapping[str, Memory]
    ) -> Step | None:
        if operation.event is OperationEvent.NONE:
            return None
        known = there.get(operation.id or "")
        memory = None
        if operation.event is not OperationEvent.DELETE:
            memory = self._made(operation, about)
            if memory is None:
                return None
        moment = self._moment(about)
        if known is not None and moment is not None and moment < known.timestamp:
            # What was said before the memory does not correct it: it is told beside it.
            return Step("ADD", memory, confidence=operation.confidence) if memory else None
        if operation.event is OperationEvent.ADD or known is None:
            return Step("ADD", memory, confidence=operation.confidence) if memory else None
        return Step(
            "UPDATE" if operation.event is OperationEvent.UPDATE else "DELETE",
            memory,
            memory_id=known.id,
            seen=known.content,
            confidence=operation.confidence,
            reasoning=operation.reasoning,
            in_review=self._is_in_question(operation),
        )

    def _is_in_question(self, operation: MemoryOperation) -> bool:
        sure = 1.0 if operation.confidence is None else operation.confidence
        is_delete = operation.event is OperationEvent.DELETE
        return sure < self._wanted.min_confidence or (is_delete and not self._wanted.may_delete)

    def _made(self, operation: MemoryOperation, about: Sequence[Fact]) -> Memory | None:
        """Make the memory of an operation; what may not be stored is told, and keeps no other."""
        fields = dict(self._wanted.fields)
        metadata = {**fields.pop("metadata", {}), **(operation.metadata or {})}
        if operation.confidence is not None:
            metadata.setdefault("confidence", round(operation.confidence, 3))
        moment = self._moment(about)
        item = {
            **fields,
            "content": operation.text,
            "metadata": metadata,
            "user_id": self._wanted.user_id,
            "run_id": self._wanted.run_id,
            "session_id": self._wanted.run_id,
            "timestamp": moment,
        }
        given = {name: value for name, value in item.items() if value is not None}
        try:
            return self._hands.prepare(given)
        except ValidationError as error:
            self._note(f"a fact was not stored: {error}")
            return None

    # The graph --------------------------------------------------------------------------------

    def _with_graph(self, steps: Sequence[Step]) -> list[Step]:
        """Return steps that say what their texts say of the graph."""
        known = self._hands.edges(self._wanted.user_id)
        said: dict[int, list[GraphUpdate]] = {
            place: [] for place, step in enumerate(steps) if step.memory is not None
        }
        texts = {
            place: memory.content for place in said if (memory := steps[place].memory) is not None
        }
        if self._wanted.model is None:
            for place, text in texts.items():
                found = graph_updates_by_rules([("", text)], known=known)
                said[place] = [it.model_copy(update={"reasoning": None}) for it in found.updates]
        elif texts:
            found, problems = graph_updates_by_model(
                list(texts.values()), known, self._wanted.model
            )
            self._problems += problems
            for update in found.updates:
                for place in _who_says(update, texts):
                    said[place].append(update)
        return [
            replace(step, graph=tuple(said[place])) if place in said else step
            for place, step in enumerate(steps)
        ]

    def _moment(self, about: Sequence[Fact]) -> datetime | None:
        """Return when facts were said: the last of the messages that say so."""
        places = [place for fact in about for place in fact.sources]
        times = [self._messages[it].timestamp for it in places if it < len(self._messages)]
        return max((it for it in times if it is not None), default=None)


def _who_says(update: GraphUpdate, texts: Mapping[int, str]) -> list[int]:
    """Return the places of the texts that name what a relationship is with, or of all."""
    named = [it for it, text in texts.items() if update.target.casefold() in text.casefold()]
    return named or list(texts)


def _known(memory: Memory) -> Known:
    """Return what a memory is to a decision."""
    return Known(memory.id, memory.content, memory.timestamp)

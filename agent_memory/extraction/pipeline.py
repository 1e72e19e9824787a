"""The pipeline of ``add``: the facts of a conversation, the memories related to them, decisions.

Without a language model everything is done by rules. Whatever fails, no fact is lost: facts that a
model does not handle properly are stored as they are, and ``problems`` reports it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from agent_memory.errors import ValidationError
from agent_memory.extraction.decisions import decide
from agent_memory.extraction.facts import extract
from agent_memory.extraction.graph_by_model import graph_updates_by_model
from agent_memory.extraction.rules.decisions import contradicted_since
from agent_memory.extraction.rules.graph import graph_updates_by_rules
from agent_memory.extraction.rules.lasting import lasts
from agent_memory.extraction.rules.statements import other_words_of
from agent_memory.extraction.types import (
    By,
    Extraction,
    Fact,
    OperationPlan,
    RelatedMemory,
    ReplacedBy,
)
from agent_memory.models.conversation import (
    MemoryOperation,
    Message,
    MessageRole,
    OperationEvent,
)
from agent_memory.models.decision import Decision, DecisionOutcome
from agent_memory.models.enums import MemoryKind
from agent_memory.models.graph import EdgeView, GraphAction, GraphUpdate, GraphUpdates, name_key
from agent_memory.models.memory import Memory
from agent_memory.models.protocols import LanguageModel
from agent_memory.models.safety import FoundSecrets
from agent_memory.models.search import SearchFilters
from agent_memory.models.times import parse_time
from agent_memory.runtime.lazy_parts import lazy_property
from agent_memory.text.sentences import sentences
from agent_memory.text.speech_acts import is_request_to_forget

RELATED: Final = 5
"""Memories that a model compares each fact with."""
_LOOKED_AT: Final = 25
"""Hits to choose them from: those of other users or runs are skipped."""
_SAID_AT: Final = "said_at"
"""The metadata key of older files for when a conversation last changed what a memory says."""


class ApplyDecisions(Protocol):
    """Applies decisions in one transaction; see ``DecisionService.apply``."""

    def __call__(
        self, decisions: Sequence[Decision], *, keep_copies: bool, since: int | None
    ) -> tuple[list[DecisionOutcome], list[str]]:
        """Return the outcome of each, and what the graph could not follow."""


class MemoryPort(NamedTuple):
    """What the pipeline may do with the store: the port between extraction and the library.

    ``prepare`` returns the memory of an item as it may be stored, and raises what ``store`` would.
    """

    agent_id: str
    categories: Sequence[str]
    find_related: Callable[[str, SearchFilters, int], list[Memory]]
    """Return this many memories most related to a text, best first, without recording it."""
    list_recent: Callable[[SearchFilters, int], list[Memory]]
    """Return this many of the newest memories, newest first."""
    corrections: Callable[[Sequence[str]], Mapping[str, Memory]]
    """Return, for those of some memories that a newer one may replace, the newest such memory."""
    replaced_by: ReplacedBy
    prepare: Callable[[Mapping[str, Any]], Memory]
    apply: ApplyDecisions
    secrets: Mapping[str, FoundSecrets]
    """The apparent secrets in the memories that were prepared, by their ids."""
    screen: Callable[[Memory], FoundSecrets | None]
    """Return the apparent secrets in a memory."""
    edges: Callable[[str | None, str | None], list[EdgeView]]
    """Return the open relationships in a user's graph; for a run, as its memories say."""
    last_change: Callable[[], int]
    """Return the number of the last change of any memory."""


class ExtractionRequest(NamedTuple):
    """How to extract facts and decide about them: a validated ``AddRequest``."""

    user_id: str | None
    run_id: str | None
    fields: Mapping[str, Any]
    """For each new memory: category, tags, metadata."""
    model: LanguageModel | None
    extraction_prompt: str | None
    update_prompt: str | None
    min_confidence: float
    may_delete: bool
    graph: bool

    def item(self, **own: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a memory
        """Return the fields of a new memory: its own, the common ones, and its scope."""
        scope = {"user_id": self.user_id, "run_id": self.run_id, "session_id": self.run_id}
        item = {**self.fields, **own, **scope}
        return {name: value for name, value in item.items() if value is not None}


@dataclass(slots=True)
class ExtractionResult:
    """The decisions about a conversation, who made them, and the problems.

    ``last_change`` is the last change of any memory before the decisions' memories were read.
    """

    extraction: Extraction
    plan: OperationPlan
    by: By
    last_change: int
    decisions: list[Decision] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    has_refused: bool = False
    """Whether a fact may not be stored; ``problems`` says why."""


class ExtractionPipeline:
    """Extracts from one conversation and decides. Writes nothing."""

    def __init__(
        self, port: MemoryPort, messages: Sequence[Message], request: ExtractionRequest
    ) -> None:
        self._port = port
        self._messages = messages
        self._request = request
        self._problems: list[str] = []
        self._has_refused = False
        self._graph_model: LanguageModel | None = None

    def run(self) -> ExtractionResult:
        """Extract the facts, compare each with what is known, and decide."""
        request = self._request
        extraction = extract(self._messages, request.model, prompt=request.extraction_prompt)
        extraction = replace(extraction, facts=self._in_order(extraction.facts))
        # A provider that failed is not waited for again.
        model = None if extraction.has_failed else request.model
        last_change = self._port.last_change()
        related = [self._related(fact) for fact in extraction.facts]
        known_memories = {memory.id: memory for memories in related for memory in memories}
        corrections = self._port.corrections(list(known_memories)) if known_memories else {}
        known_memories |= {memory.id: memory for memory in corrections.values()}
        # With nothing to compare them with, all facts are new: no model need be asked.
        plan = decide(
            extraction.facts,
            [
                self._compared(fact, memories, corrections)
                for fact, memories in zip(extraction.facts, related, strict=True)
            ],
            model if any(related) else None,
            prompt=request.update_prompt,
            replaced_by=self._port.replaced_by,
        )
        if extraction.has_failed and any(related):
            self._problems.append("decision: the model failed before: rules decided")
        self._graph_model = None if plan.has_failed else model
        by = plan.by if any(related) else extraction.by
        result = ExtractionResult(extraction, plan, by=by, last_change=last_change)
        contradicted = _contradicted(plan)
        for place, (operation, covers) in enumerate(zip(plan.operations, plan.covers, strict=True)):
            about = [extraction.facts[fact] for fact in covers]
            new_id = plan.new_ids.get(covers[0]) if covers else None
            # If a fact raises a review of several memories, the first operation stores it.
            new_id = None if new_id in known_memories else new_id
            decisions = self._decisions(operation, about, known_memories, new_id=new_id)
            if new_id is not None and len(decisions) == 1 and decisions[0].memory is not None:
                known_memories[new_id] = decisions[0].memory  # later operations may be about it
            if place in plan.in_question:
                decisions = [
                    decision._replace(in_review=decision.event != "ADD") for decision in decisions
                ]
            if not plan.said_again.isdisjoint(covers):
                decisions = [decision._replace(said_again=True) for decision in decisions]
            against = frozenset().union(*(contradicted[fact] for fact in covers))
            was_core = any(
                known_memories[each].kind is MemoryKind.CORE
                for each in against & known_memories.keys()
            )
            result.decisions += [
                (_as_core(decision) if was_core else decision)._replace(contradicts=against)
                for decision in decisions
            ]
        if request.graph:
            result.decisions = self._with_graph(result.decisions)
        result.problems = [*extraction.problems, *plan.problems, *self._problems]
        result.has_refused = self._has_refused
        return result

    def _in_order(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return facts in the order in which they were said: messages may come newest first.

        Facts of undated messages stay behind the one before them.
        """
        order: list[tuple[datetime, int]] = []
        last = datetime.min.replace(tzinfo=UTC)
        for place, fact in enumerate(facts):
            last = self._moment([fact]) or last
            order.append((last, place))
        return [facts[place] for _, place in sorted(order)]

    def _related(self, fact: Fact) -> list[Memory]:
        """Return the memories most related to a fact, only of its user and run.

        If words and meaning find few, the newest follow: "I am allergic to wheat" has no word of "I
        like pasta". Rules compare more, also by synonyms: "I moved to Rome" has no word of "I live
        in Oslo".
        """
        by_rules = self._request.model is None
        hits: list[Memory] = []
        for words in (fact.text, *(other_words_of(fact.text) if by_rules else ())):
            hits += self._port.find_related(words, self._scope, _LOOKED_AT)
        if by_rules or len(hits) < RELATED:
            hits += self._newest
        related = {memory.id: memory for memory in hits if self._is_own(memory)}
        return list(related.values())[: None if by_rules else RELATED]

    def _compared(
        self, fact: Fact, memories: Sequence[Memory], corrections: Mapping[str, Memory]
    ) -> list[RelatedMemory]:
        """Return memories as a fact is compared with them."""
        moment = self._moment([fact])
        compared = []
        for memory in memories:
            newer = corrections.get(memory.id)
            correction = None
            if newer is not None and (moment is None or moment > _last_said(newer)):
                correction = RelatedMemory(newer.id, newer.content, _last_said(newer))
            compared.append(
                RelatedMemory(memory.id, memory.content, _last_said(memory), correction)
            )
        return [
            memory if memory.correction else _opened(fact, memory, compared, moment)
            for memory in compared
        ]

    @lazy_property
    def _scope(self) -> SearchFilters:
        return SearchFilters(user_id=self._request.user_id, run_id=self._request.run_id)

    @lazy_property
    def _newest(self) -> list[Memory]:
        return self._port.list_recent(self._scope, _LOOKED_AT)

    def _is_own(self, memory: Memory) -> bool:
        """Return whether a memory is the user's, or nobody's if the conversation is."""
        is_users = memory.user_id == self._request.user_id
        return is_users and (
            self._request.user_id is not None or memory.run_id == self._request.run_id
        )

    # Decisions --------------------------------------------------------------------------------

    def _decisions(
        self,
        operation: MemoryOperation,
        about: Sequence[Fact],
        known_memories: Mapping[str, Memory],
        *,
        new_id: str | None,
    ) -> list[Decision]:
        """Return the decisions of an operation; for a refused text, its sentences are tried.

        A key in one of them would keep out the others. What is left of an UPDATE is reviewed: it
        need not replace the memory. ``new_id`` is the id of the new memory.
        """
        decision = self._decision(operation, about, known_memories, new_id=new_id)
        is_new = operation.event in (OperationEvent.ADD, OperationEvent.UPDATE)
        parts = sentences(operation.text) if is_new else []
        if decision is not None or len(parts) < 2:
            return [] if decision is None else [decision]
        made = [
            self._decision(operation.model_copy(update={"text": part}), about, known_memories)
            for part in parts
        ]
        return [
            decision._replace(in_review=decision.event == "UPDATE")
            for decision in made
            if decision is not None
        ]

    def _decision(
        self,
        operation: MemoryOperation,
        about: Sequence[Fact],
        known_memories: Mapping[str, Memory],
        *,
        new_id: str | None = None,
    ) -> Decision | None:
        if operation.event is OperationEvent.NONE:
            return None
        target = known_memories.get(operation.id or "")
        memory = None
        if operation.event is not OperationEvent.DELETE:
            memory = self._made(operation, about, new_id=new_id)
            if memory is None:
                return None
        moment = self._moment(about)
        # What was said before the memory does not correct it: it is added beside it.
        is_earlier = target is not None and moment is not None and moment < _last_said(target)
        if is_earlier and all(is_request_to_forget(fact.text) for fact in about):
            return None
        if operation.event is OperationEvent.ADD or target is None or is_earlier:
            return Decision("ADD", memory, confidence=operation.confidence) if memory else None
        return Decision(
            "UPDATE" if operation.event is OperationEvent.UPDATE else "DELETE",
            memory,
            memory_id=target.id,
            seen=target.content,
            confidence=operation.confidence,
            reasoning=operation.reasoning,
            in_review=self._is_in_question(operation),
        )

    def _is_in_question(self, operation: MemoryOperation) -> bool:
        sure = 1.0 if operation.confidence is None else operation.confidence
        is_delete = operation.event is OperationEvent.DELETE
        return sure < self._request.min_confidence or (is_delete and not self._request.may_delete)

    def _made(
        self, operation: MemoryOperation, about: Sequence[Fact], *, new_id: str | None
    ) -> Memory | None:
        """Make the memory of an operation; a refusal is reported and does not affect others."""
        fields = self._request.fields
        metadata = {**fields.get("metadata", {}), **(operation.metadata or {})}
        if operation.confidence is not None:
            metadata.setdefault("confidence", round(operation.confidence, 3))
        categories = (fact.category for fact in about if fact.category is not None)
        item = self._request.item(
            id=new_id,
            category=fields.get("category", next(categories, None)),
            content=operation.text,
            metadata=metadata,
            timestamp=self._moment(about),
            kind=MemoryKind.CORE if self._lasts(operation.text, about) else None,
        )
        try:
            return self._port.prepare(item)
        except ValidationError as error:
            self._problems.append(f"a fact was not stored: {error}")
            self._has_refused = True
            return None

    def _lasts(self, text: str, about: Sequence[Fact]) -> bool:
        """Return whether a text tells something lasting of a user, and not of an assistant."""
        places = [place for fact in about for place in fact.sources]
        roles = {self._messages[place].role for place in places if place < len(self._messages)}
        return (not roles or MessageRole.USER in roles) and lasts(text)

    # The graph --------------------------------------------------------------------------------

    def _with_graph(self, decisions: Sequence[Decision]) -> list[Decision]:
        edges = self._port.edges(self._request.user_id, self._request.run_id)
        texts = {
            place: decision.memory.content
            for place, decision in enumerate(decisions)
            if decision.memory is not None
        }
        updates_of: dict[int, list[GraphUpdate]] = {place: [] for place in texts}
        graph: GraphUpdates | None = None
        if self._graph_model is not None and texts:
            graph, problems = graph_updates_by_model(list(texts.values()), edges, self._graph_model)
            self._problems += [f"graph: {problem}" for problem in problems]
        if graph is None:
            if self._request.model is not None and texts:
                self._problems.append("graph: the model failed: rules read it")
            speakers = {message.name for message in self._messages if message.name}
            for place, text in texts.items():
                updates_of[place] = graph_updates_by_rules(text, edges=edges, speakers=speakers)
        else:
            for update in graph.updates:
                for place in _who_says(update, texts):
                    updates_of[place].append(update)
        waiting = self._under_review(decisions, updates_of, edges)
        return [
            decision._replace(
                graph=tuple(
                    update
                    for update in updates_of[place]
                    if update.action is not GraphAction.DELETE or self._ends(update) not in waiting
                )
            )
            if place in updates_of
            else decision
            for place, decision in enumerate(decisions)
        ]

    def _under_review(
        self,
        decisions: Sequence[Decision],
        updates_of: Mapping[int, Sequence[GraphUpdate]],
        edges: Sequence[EdgeView],
    ) -> set[tuple[str, str, str]]:
        """Return the relationships that a memory under review states: they hold until it is gone.

        "I no longer like dogs" closed what a review then left true.
        """
        reviewed = {decision.memory_id for decision in decisions if decision.in_review}
        waiting = {self._ends(edge) for edge in edges if reviewed & {*edge.source_memory_ids}}
        for place, updates in updates_of.items():
            memory = decisions[place].memory
            if memory is not None and memory.id in reviewed:
                waiting.update(map(self._ends, updates))
        return waiting

    def _ends(self, edge: EdgeView | GraphUpdate) -> tuple[str, str, str]:
        user_id = self._request.user_id
        return name_key(edge.source, user_id), edge.relationship, name_key(edge.target, user_id)

    def _moment(self, about: Sequence[Fact]) -> datetime | None:
        """Return when facts were said: the time of the last message that says them."""
        places = [place for fact in about for place in fact.sources]
        times = [self._messages[place].timestamp for place in places if place < len(self._messages)]
        return max((moment for moment in times if moment is not None), default=None)


def _as_core(decision: Decision) -> Decision:
    """Return a decision whose new memory lasts as long as the core memory that it may replace."""
    if decision.memory is None:
        return decision
    memory = decision.memory.model_copy(update={"kind": MemoryKind.CORE})
    return decision._replace(memory=memory)


def _opened(
    fact: Fact, memory: RelatedMemory, others: Sequence[RelatedMemory], moment: datetime | None
) -> RelatedMemory:
    """Return a memory with what was said after it, and before a fact, that only the fact denies."""
    at = memory.at
    later = [
        other
        for other in others
        if at and other.at and at < other.at and (moment is None or other.at < moment)
    ]
    return memory._replace(correction=contradicted_since(fact.text, memory.text, later))


def _contradicted(plan: OperationPlan) -> Mapping[int, set[str]]:
    """Return, for each fact, the memories that it replaces, ends, or may do so."""
    ids = defaultdict[int, set[str]](set)
    for operation, covers in zip(plan.operations, plan.covers, strict=True):
        if operation.id is not None and operation.event is not OperationEvent.NONE:
            for fact in covers:
                ids[fact].add(operation.id)
    return ids


def _who_says(update: GraphUpdate, texts: Mapping[int, str]) -> list[int]:
    """Return the positions of the texts that name the other end of a relationship, or of all."""
    named = [place for place, text in texts.items() if update.target.casefold() in text.casefold()]
    return named or list(texts)


def _last_said(memory: Memory) -> datetime:
    """Return when a memory was learned, or when a conversation last changed what it says."""
    stated = memory.metadata.get(_SAID_AT)
    try:
        return max(memory.timestamp, parse_time(stated)) if stated else memory.timestamp
    except (ValueError, TypeError, AttributeError):  # another program's value
        return memory.timestamp

"""Adding a conversation: what is given made into messages, learned from, carried out, answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from agent_memory.errors import InvalidSession, ValidationError
from agent_memory.extraction.llm.registry import PROMPT_SETTINGS, as_language_model
from agent_memory.extraction.messages import conversation
from agent_memory.extraction.pipeline import Hands, Learned, Learning, Wanted
from agent_memory.models.conversation import Message, MessageRole
from agent_memory.models.decision import Done, Event, Step
from agent_memory.models.documents.record_rules import validate_record_metadata
from agent_memory.models.documents.responses import (
    AddedMemory,
    AddMemoryMetadata,
    AddMemoryResponse,
)
from agent_memory.models.enums import ORIGINAL_CATEGORY, MemoryCategory
from agent_memory.models.session import SessionContext

_MOST_MESSAGES: Final = 10_000
_ANYBODY: Final = "anybody"
_OF_MEMORIES: Final = ("category", "tags", "importance")
"""What metadata may say that is a field of its own here."""


@dataclass(frozen=True, slots=True)
class Call:
    """What ``AgentMemory.add`` was given."""

    messages: Any
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    metadata: Mapping[str, Any]
    llm: Any
    extraction_prompt: str | None
    update_prompt: str | None
    min_confidence: float
    may_delete: bool
    graph: bool


def add(
    hands: Hands, call: Call, *, infer: bool, dry_run: bool, now: Callable[[], datetime]
) -> AddMemoryResponse:
    """Add a conversation. Everything that was given is checked before anything is asked."""
    started = time.perf_counter()
    _refuse_session(call, hands.agent_id)
    messages = messages_of(call.messages)
    wanted = Wanted(
        user_id=call.user_id,
        run_id=call.run_id,
        fields=_fields(call.metadata, hands.categories()),
        model=as_language_model(call.llm) if infer else None,
        extraction_prompt=call.extraction_prompt or _prompt(call.llm, 0),
        update_prompt=call.update_prompt or _prompt(call.llm, 1),
        min_confidence=call.min_confidence,
        may_delete=call.may_delete,
        graph=call.graph and infer,
    )
    hands.prepare({**wanted.fields, "content": "what all memories are given must be right"})
    learned = Learning(hands, messages, wanted).learn() if infer else None
    steps = _verbatim(hands, messages, wanted) if learned is None else learned.steps
    problems: list[str] = []
    if dry_run:
        done = [_foreseen(step) for step in steps]
    else:
        done, problems = hands.carry_out(steps, keep_copies=not infer) if steps else ([], [])
    problems = [*(learned.problems if learned else ()), *problems]
    return _answer(done, learned, problems, started=started, now=now())


def messages_of(given: object) -> list[Message]:
    """Return what a caller gives as messages: one or several, or a text that the user said."""
    if isinstance(given, str):
        given = {"role": MessageRole.USER, "content": given}
    messages = conversation(given)  # type: ignore[arg-type]  # it refuses what it cannot read
    if len(messages) > _MOST_MESSAGES:
        message = f"are {len(messages):,}: give {_MOST_MESSAGES:,} at most at a time"
        raise ValidationError.of("messages", message, len(messages))
    return messages


def _refuse_session(call: Call, agent_id: str) -> None:
    """Refuse ids that C does not allow, and another agent's."""
    if call.agent_id not in (None, agent_id):
        message = f"{call.agent_id!r:.120} is not {agent_id!r}, whose memories these are"
        raise InvalidSession.of("agent_id", message, call.agent_id)
    ids = {"user_id": _ANYBODY if call.user_id is None else call.user_id, "run_id": call.run_id}
    SessionContext.of({name: value for name, value in ids.items() if value is not None})


def _fields(metadata: Mapping[str, Any], categories: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the memories that metadata tells of, and the rest of it.

    A category that is unknown here is kept in the metadata, as an import does.
    """
    if not isinstance(metadata, Mapping):
        raise ValidationError.of("metadata", "must be a mapping", metadata)
    rest = dict(metadata)
    told: dict[str, Any] = {name: rest.pop(name) for name in _OF_MEMORIES if name in rest}
    is_fit, problem = validate_record_metadata(rest)
    if not is_fit:
        raise ValidationError.of("metadata", problem or "cannot be taken", metadata)
    category = told.get("category")
    if isinstance(category, str) and category not in {*MemoryCategory, *categories}:
        rest[ORIGINAL_CATEGORY] = category
        del told["category"]
    return {**told, "metadata": rest}


def _prompt(llm: object, place: int) -> str | None:
    """Return a prompt of the user's that C's ``llm`` section has."""
    told = llm.get(PROMPT_SETTINGS[place]) if isinstance(llm, Mapping) else None
    return told if isinstance(told, str) and told.strip() else None


def _verbatim(hands: Hands, messages: Sequence[Message], wanted: Wanted) -> list[Step]:
    """Return the steps that store messages as they are."""
    steps = []
    for place, message in enumerate(messages):
        text = message.text.strip()
        if message.role is MessageRole.SYSTEM or not text:
            continue
        told = {"role": message.role.value, "name": message.name, **(message.metadata or {})}
        said = {name: value for name, value in told.items() if value is not None}
        item = {
            **wanted.fields,
            "content": text,
            "metadata": {**said, **wanted.fields["metadata"]},
            "user_id": wanted.user_id,
            "run_id": wanted.run_id,
            "session_id": wanted.run_id,
            "timestamp": message.timestamp,
        }
        given = {name: value for name, value in item.items() if value is not None}
        try:
            steps.append(Step("ADD", hands.prepare(given)))
        except ValidationError as error:
            raise type(error)(f"messages.{place}: {error}", error.errors()) from error
    return steps


def _foreseen(step: Step) -> Done:
    """Return what a step would become."""
    content = step.memory.content if step.memory is not None else step.seen
    if step.in_review:
        event: Event = "NONE" if step.memory is None else "ADD"
        return Done(event, step.memory_id, content, problem=_in_question(step))
    return Done(step.event, step.memory_id, content, was=step.seen)


def _in_question(step: Step) -> str:
    return f"{step.event} of {step.memory_id} would be put in question: it is not sure enough"


def _answer(
    done: Sequence[Done],
    learned: Learned | None,
    problems: Sequence[str],
    *,
    started: float,
    now: datetime,
) -> AddMemoryResponse:
    changed = [one for one in done if one.event != "NONE"]
    problems = [*problems, *(it.problem for it in done if it.problem)]
    reviews = [it.review_id for it in done if it.review_id is not None]
    return AddMemoryResponse(
        data=[
            AddedMemory(id=it.memory_id, event=it.event, memory=it.content, previous_memory=it.was)
            for it in changed
        ],
        metadata=AddMemoryMetadata(
            timestamp=now,
            processing_time_ms=round((time.perf_counter() - started) * 1000),
            facts_extracted=len(done) if learned is None else len(learned.extraction.facts),
            operations_performed=len(changed),
            decided_by=None if learned is None else learned.by,
            problems=problems or None,
            reviews=reviews or None,
        ),
    )

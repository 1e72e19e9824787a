"""Adds a conversation: messages are read, facts extracted, decisions made and applied."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from agent_memory.errors import InvalidSession, ValidationError
from agent_memory.extraction.llm.registry import PROMPT_SETTINGS, as_language_model
from agent_memory.extraction.messages import read_transcript
from agent_memory.extraction.pipeline import (
    ExtractionPipeline,
    ExtractionRequest,
    ExtractionResult,
    MemoryPort,
)
from agent_memory.extraction.transcript import Transcript
from agent_memory.models.columns import ORIGINAL_CATEGORY
from agent_memory.models.conversation import Message, MessageRole
from agent_memory.models.decision import Decision, DecisionOutcome
from agent_memory.models.documents.record_rules import validate_record_metadata
from agent_memory.models.documents.responses import (
    AddedMemory,
    AddMemoryMetadata,
    AddMemoryResponse,
)
from agent_memory.models.enums import MemoryCategory
from agent_memory.models.limits import MAX_MEMORY_CONTENT_LENGTH
from agent_memory.models.safety import FoundSecrets
from agent_memory.models.session import SessionScope
from agent_memory.text.sentences import fitting
from agent_memory.text.speech_acts import is_request_to_forget

_MOST_MESSAGES: Final = 10_000
_ANYBODY: Final = "anybody"
_OF_MEMORIES: Final = ("category", "tags", "importance")
"""Metadata keys that are fields of their own here."""
_NEARLY: Final = 0.85
"""The similarity, 0 to 1, above which one key must be a misspelling of another."""
_SCOPE: Final = ("user_id", "agent_id", "run_id")
"""The fields of C's Add Memory Request that say to whom the memories belong."""


class AddRequest(NamedTuple):
    """The arguments of ``AgentMemory.add``."""

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
    strict: bool = False


def add(
    port: MemoryPort,
    request: AddRequest,
    *,
    infer: bool,
    dry_run: bool,
    now: Callable[[], datetime],
) -> AddMemoryResponse:
    """Add a conversation. All arguments are checked before a model is called."""
    started = time.perf_counter()
    transcript = transcript_of(request.messages, strict=request.strict)
    messages = transcript.messages
    request = _joined(request, transcript.request)
    _refuse_session(request, port.agent_id)
    extraction = ExtractionRequest(
        user_id=request.user_id,
        run_id=request.run_id,
        fields=_fields(request.metadata, port.categories),
        model=as_language_model(request.llm) if infer else None,
        extraction_prompt=request.extraction_prompt or _prompt(request.llm, 0),
        update_prompt=request.update_prompt or _prompt(request.llm, 1),
        min_confidence=request.min_confidence,
        may_delete=request.may_delete,
        graph=request.graph and infer,
    )
    port.prepare({**extraction.fields, "content": "what all memories are given must be right"})
    result = ExtractionPipeline(port, messages, extraction).run() if infer else None
    decisions = _verbatim(port, messages, extraction) if result is None else result.decisions
    problems: list[str] = []
    if dry_run:
        new = {decision.memory.id for decision in decisions if decision.memory is not None}
        outcomes = [_foreseen(decision, new) for decision in decisions]
    else:
        since = None if result is None else result.last_change
        outcomes, problems = (
            port.apply(decisions, keep_copies=not infer, since=since) if decisions else ([], [])
        )
    has_refused = (result is not None and result.has_refused) or (
        not dry_run and any(outcome.is_refused for outcome in outcomes)
    )
    problems = [*transcript.problems, *(result.problems if result else ()), *problems]
    return _answer(
        outcomes,
        result,
        problems,
        has_refused=has_refused,
        passed_over=transcript.passed_over,
        secrets=_secrets(port, decisions, outcomes),
        started=started,
        now=now(),
    )


def transcript_of(source: object, *, strict: bool) -> Transcript:
    """Return what a caller passes as messages: one or several, or a text that the user said."""
    if isinstance(source, str):
        source = {"role": MessageRole.USER, "content": source}
    transcript = read_transcript(source, strict=strict)  # type: ignore[arg-type]  # it refuses what it cannot read
    count = len(transcript.messages)
    if count > _MOST_MESSAGES:
        message = f"are {count:,}: give {_MOST_MESSAGES:,} at most at a time"
        raise ValidationError.of("messages", message, count)
    return transcript


def _joined(request: AddRequest, stated: Mapping[str, Any]) -> AddRequest:
    """Return a request completed with C's Add Memory Request: scope, category and metadata.

    A value that disagrees with an argument is refused: it would go to somebody else, or be lost.
    """
    _refuse_unknown_keys(stated)
    scope = {name: _agreed(name, getattr(request, name), stated.get(name)) for name in _SCOPE}
    if not isinstance(request.metadata, Mapping):
        raise ValidationError.of("metadata", "must be a mapping", request.metadata)
    metadata = dict(request.metadata)
    inner = stated.get("metadata") or {}
    if not isinstance(inner, Mapping):
        raise ValidationError.of("metadata", "must be a mapping", inner)
    beside = {name: stated[name] for name in _OF_MEMORIES if stated.get(name) is not None}
    for source in (inner, beside):
        for name, value in source.items():
            metadata[name] = _agreed(f"metadata.{name}", metadata.get(name), value)
    return request._replace(**scope, metadata=metadata)


def _refuse_unknown_keys(stated: Mapping[str, Any]) -> None:
    """Refuse a key that C's Add Memory Request does not have: its value would be lost.

    A mapping without any scope is a transcript of another program, with keys of its own
    (``model``): of those, only one that is nearly a request's key is refused.
    """
    keys = (*_SCOPE, "metadata", *_OF_MEMORIES)
    is_request = any(stated.get(name) is not None for name in _SCOPE)
    for key in stated:
        meant = None if key in keys else _meant(str(key), keys)
        if meant is not None:
            message = f"is not a key of an Add Memory Request: did you mean {meant!r}?"
            raise ValidationError.of(f"{key:.100}", message, stated[key])
        if is_request and key not in keys:
            message = (
                f"is not a key of an Add Memory Request: its keys are messages, {', '.join(keys)}"
            )
            raise ValidationError.of(f"{key:.100}", f"{message}: leave it out", stated[key])


def _meant(key: str, keys: Sequence[str]) -> str | None:
    """Return the key that another one nearly is: ``user_id`` for ``userId``, ``user``."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an unknown key

    plain = {_letters(name).removesuffix(end): name for name in keys for end in ("", "id")}
    nearest = get_close_matches(_letters(key), plain, n=1, cutoff=_NEARLY)
    return plain[nearest[0]] if nearest else None


def _letters(key: str) -> str:
    return "".join(filter(str.isalnum, key.lower()))


def _agreed(name: str, argument: Any, stated: Any) -> Any:  # noqa: ANN401 - of any field
    """Return the value of an argument and the messages' own request, unless they disagree."""
    if argument is None or stated is None or argument == stated:
        return stated if argument is None else argument
    message = (
        f"is {stated!r:.100} in the messages' own request, but {argument!r:.100} as an argument"
    )
    raise ValidationError.of(name, f"{message}: give one of them", stated)


def _refuse_session(request: AddRequest, agent_id: str) -> None:
    if request.agent_id not in (None, agent_id):
        message = f"{request.agent_id!r:.120} is not {agent_id!r}, the agent of these memories"
        raise InvalidSession.of("agent_id", message, request.agent_id)
    ids = {
        "user_id": _ANYBODY if request.user_id is None else request.user_id,
        "run_id": request.run_id,
    }
    SessionScope.of({name: value for name, value in ids.items() if value is not None})


def _fields(metadata: Mapping[str, Any], categories: Sequence[str]) -> dict[str, Any]:
    """Return the memory fields in the metadata, and the rest of it.

    A category that is unknown here is kept in the metadata, as on import.
    """
    rest = dict(metadata)
    stated: dict[str, Any] = {name: rest.pop(name) for name in _OF_MEMORIES if name in rest}
    is_fit, problem = validate_record_metadata(rest)
    if not is_fit:
        raise ValidationError.of("metadata", problem or "is invalid", metadata)
    category = stated.get("category")
    if isinstance(category, str) and category not in {*MemoryCategory, *categories}:
        rest[ORIGINAL_CATEGORY] = category
        del stated["category"]
    return {**stated, "metadata": rest}


def _prompt(llm: object, place: int) -> str | None:
    """Return a custom prompt from C's ``llm`` section."""
    stated = llm.get(PROMPT_SETTINGS[place]) if isinstance(llm, Mapping) else None
    return stated if isinstance(stated, str) and stated.strip() else None


def _verbatim(
    port: MemoryPort, messages: Sequence[Message], extraction: ExtractionRequest
) -> list[Decision]:
    """Return the decisions that store messages unchanged, split if they are too long."""
    decisions = []
    for place, message in enumerate(messages):
        if message.role is MessageRole.SYSTEM:
            continue
        stated = {"role": message.role.value, "name": message.name, **(message.metadata or {})}
        speaker = {name: value for name, value in stated.items() if value is not None}
        metadata = {**speaker, **extraction.fields["metadata"]}
        fields = extraction.item(metadata=metadata, timestamp=message.timestamp)
        try:
            decisions += [
                Decision("ADD", port.prepare({**fields, "content": part}))
                for part in fitting(message.text, MAX_MEMORY_CONTENT_LENGTH)
            ]
        except ValidationError as error:
            raise type(error)(f"messages.{place}: {error}", error.errors()) from error
    return decisions


def _foreseen(decision: Decision, new: Container[str]) -> DecisionOutcome:
    """Return the expected outcome of a decision; ``new`` has the ids that are not stored yet."""
    content = decision.memory.content if decision.memory is not None else decision.seen
    if decision.in_review:
        about = repr(decision.seen) if decision.memory_id in new else decision.memory_id
        problem = f"{decision.event} of {about} would be put under review: it is not certain enough"
        if decision.memory is not None:  # it has no id yet, and the memory under review stays
            return DecisionOutcome("ADD", None, content, problem=problem)
        return DecisionOutcome("NONE", decision.memory_id, content, problem=problem)
    memory_id = None if decision.memory_id in new else decision.memory_id
    return DecisionOutcome(decision.event, memory_id, content, was=decision.seen)


def _secrets(
    port: MemoryPort, decisions: Sequence[Decision], outcomes: Sequence[DecisionOutcome]
) -> list[FoundSecrets]:
    """Return the apparent secrets in what was stored or changed, by the memory's current id."""
    stored_secrets = []
    for decision, outcome in zip(decisions, outcomes, strict=True):
        memory = decision.memory
        if outcome.event == "NONE" or memory is None:
            continue
        secrets = port.secrets.get(memory.id)
        if secrets and outcome.content and outcome.content != memory.content:
            # A rejected value was cut out of it, and perhaps the secret with it.
            secrets = port.screen(memory.model_copy(update={"content": outcome.content}))
        if secrets:
            stored_secrets.append(secrets.model_copy(update={"memory_id": outcome.memory_id or ""}))
    return stored_secrets


def _answer(
    outcomes: Sequence[DecisionOutcome],
    result: ExtractionResult | None,
    problems: Sequence[str],
    *,
    has_refused: bool,
    passed_over: int,
    secrets: list[FoundSecrets],
    started: float,
    now: datetime,
) -> AddMemoryResponse:
    changed = [outcome for outcome in outcomes if outcome.event != "NONE"]
    problems = [*problems, *(outcome.problem for outcome in outcomes if outcome.problem)]
    # A memory that was stored while the others were read is compared twice: see ``Newcomers``.
    reviews = list(dict.fromkeys(each for outcome in outcomes for each in outcome.review_ids))
    return AddMemoryResponse(
        success=bool(changed or reviews) or not has_refused,
        data=[
            AddedMemory(
                id=outcome.memory_id,
                event=outcome.event,
                memory=outcome.content,
                previous_memory=outcome.was,
            )
            for outcome in changed
        ],
        facts=None if result is None else result.extraction.to_model(),
        operations=None if result is None else result.plan.to_model(),
        metadata=AddMemoryMetadata(
            timestamp=now,
            processing_time_ms=round((time.perf_counter() - started) * 1000),
            facts_extracted=len(outcomes) if result is None else len(result.extraction.facts),
            operations_performed=len(changed),
            decided_by=None if result is None else result.by,
            problems=problems or None,
            reviews=reviews or None,
            passed_over=passed_over or None,
            secrets=secrets or None,
            reason=None if changed or reviews or problems else _why_nothing(result),
        ),
    )


def _why_nothing(result: ExtractionResult | None) -> str | None:
    if result is None:
        return None
    if facts := result.extraction.facts:
        to_forget = all(is_request_to_forget(fact.text) for fact in facts)
        return "nothing like what is to be forgotten is stored" if to_forget else "already known"
    if result.extraction.by == "model":
        return "the model named no fact"
    return "no fact to keep: requests, questions and small talk are left out"

"""From a conversation to facts: by a language model, else by rules.

Nothing that was said is lost because of a model: parts without a usable answer become facts as they
were said, one per sentence, and the result reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field

from agent_memory.extraction.llm.ask import ask, name_of
from agent_memory.extraction.llm.prompts import EXTRACTION_SCHEMA, extraction_messages, line_of
from agent_memory.extraction.rules.facts import facts_by_rules, spoken
from agent_memory.extraction.rules.unwanted import without_unwanted
from agent_memory.extraction.types import By, Extraction, Fact
from agent_memory.models.conversation import ExtractionMetadata, Message, MessageRole
from agent_memory.models.field_types import Text
from agent_memory.models.limits import MAX_MEMORY_CONTENT_LENGTH
from agent_memory.models.protocols import LanguageModel
from agent_memory.models.times import now_utc
from agent_memory.text.counts import counted
from agent_memory.text.normalize import exact_form
from agent_memory.text.sentences import fitting, sentences
from agent_memory.text.stems import stems

ATTEMPTS: Final = 3
PIECE: Final = 8_000
"""Characters of a conversation per question: about 2,000 tokens."""
_USUAL: Final = 0.8
"""The default confidence of a fact, if the model states none."""
_UNSUPPORTED: Final = 0.4
"""The maximum confidence of a fact that shares no word with what was said."""
_RAW: Final = 0.5
_NAME_AT_MOST: Final = 250
"""Maximum characters of a speaker's name and what follows it."""


def _as_fact(value: object) -> object:
    """Accept a text as a fact, as C writes facts."""
    return {"text": value} if isinstance(value, str) else value


class _FactAnswer(BaseModel):
    text: Text
    sources: list[int] = Field(default_factory=list)
    confidence: float = Field(default=_USUAL, ge=0.0, le=1.0)
    about: Text | None = None


class _Answer(BaseModel):
    facts: list[Annotated[_FactAnswer, BeforeValidator(_as_fact)]]


class _Fragment(NamedTuple):
    """A message, or a part of a long one, with its position in the conversation."""

    place: int
    message: Message
    text: str


def extract(
    messages: Sequence[Message],
    model: LanguageModel | None,
    *,
    prompt: str | None = None,
) -> Extraction:
    """Return the facts of a conversation; system messages have none.

    Without a model, rules find them. ``prompt`` replaces the model's instructions, but not the data
    or the answer's format (C: ``custom_fact_extraction_prompt``). A long conversation is asked
    about in pieces, each at most three times; a piece without a usable answer becomes facts as it
    was said, and ``problems`` reports it. A provider that fails is not asked again.

    Raises ``ConfigurationError`` if the model's settings are wrong, and nothing else.
    """
    messages, problems = without_unwanted(messages)
    if model is None:
        facts = facts_by_rules(messages)
        return _extraction(facts, problems, by="rules", model_used="rules", prompt=None)
    asker = _Asker(model, prompt, messages, problems)
    pieces = _pieces(_fragments(messages))
    facts = _merged(fact for piece in pieces for fact in asker.facts_of(piece, ATTEMPTS))
    by: By = "model" if asker.answered or not pieces else "raw"
    used = name_of(model) if by == "model" else by
    extraction = _extraction(facts, asker.problems, by=by, model_used=used, prompt=prompt)
    return replace(extraction, has_failed=asker.is_down)


def _extraction(
    facts: list[Fact], problems: list[str], *, by: By, model_used: str, prompt: str | None
) -> Extraction:
    mean = sum(fact.confidence for fact in facts) / len(facts) if facts else 1.0
    metadata = ExtractionMetadata(
        model_used=model_used,
        extraction_time=now_utc(),
        confidence_score=round(mean, 3),
        custom_prompt_used=prompt is not None,
    )
    return Extraction(facts, metadata, problems, by)


def _fragments(messages: Sequence[Message]) -> list[_Fragment]:
    return [
        _Fragment(place, message, part)
        for place, message in enumerate(messages)
        if message.role is not MessageRole.SYSTEM
        for part in fitting(message.text, PIECE // 2)
    ]


def _pieces(parts: Iterable[_Fragment]) -> list[list[_Fragment]]:
    """Return what was said, in pieces that fit into one question."""
    pieces: list[list[_Fragment]] = []
    room = 0
    for part in parts:
        length = len(line_of(part.place, part.message, part.text))
        if not pieces or length > room:
            pieces.append([])
            room = PIECE
        pieces[-1].append(part)
        room -= length
    return pieces


@dataclass
class _Asker:
    model: LanguageModel
    prompt: str | None
    messages: Sequence[Message]
    problems: list[str] = field(default_factory=list)
    answered: int = 0
    is_down: bool = False

    def facts_of(self, piece: list[_Fragment], attempts: int) -> list[Fact]:
        """Return the facts of a piece, as it was said if the model's are not usable."""
        if self.is_down:
            return self._raw(piece, "was not asked again")
        asked = extraction_messages(
            [(part.place, part.message, part.text) for part in piece], self.prompt
        )
        can_be_halved = len(piece) > 1 and attempts > 1
        came = ask(
            self.model,
            asked,
            EXTRACTION_SCHEMA,
            _Answer,
            attempts=attempts,
            may_shorten=can_be_halved,
        )
        self.problems += [f"extraction: {problem}" for problem in came.problems]
        if came.answer is not None:
            self.answered += 1
            return self._checked(came.answer, piece, asked)
        if came.attempts_left and can_be_halved:
            middle = len(piece) // 2
            halves = piece[:middle], piece[middle:]
            return [fact for half in halves for fact in self.facts_of(half, came.attempts_left)]
        self.is_down = came.has_failed
        return self._raw(piece, "failed" if self.is_down else "gave no usable facts")

    def _raw(self, piece: list[_Fragment], why: str) -> list[Fact]:
        """Return what was said, unchanged: a model that failed has filtered nothing."""
        users = [part for part in piece if part.message.role is MessageRole.USER]
        is_about_users = any(message.role is MessageRole.USER for message in self.messages)
        facts = _raw(users if is_about_users else piece)
        self.problems.append(
            f"extraction: the model {why} for {counted(len(piece), 'message', 'messages')}: "
            + counted(len(facts), "sentence was kept as it was", "sentences were kept as they were")
            + " said"
        )
        return facts

    def _checked(
        self, answer: _Answer, piece: list[_Fragment], asked: Sequence[Mapping[str, str]]
    ) -> list[Fact]:
        """Return the facts of an answer, without those that no conversation can have."""
        facts: list[Fact] = []
        echoes = {exact_form(sentence) for sentence in sentences(asked[0]["content"])}
        echoes |= {"the fact"}
        source_text = exact_form("\n".join(part.text for part in piece))
        words = stems(source_text)
        for fact in answer.facts:
            text = " ".join(fact.text.split())
            if not sentences(text):
                self.problems.append("extraction: an empty fact was skipped")
                continue
            form = exact_form(text)
            if form in echoes and form not in source_text:
                self.problems.append("extraction: a fact that repeats the prompt was skipped")
                continue
            if len(text) > MAX_MEMORY_CONTENT_LENGTH:
                self.problems.append(
                    f"extraction: a fact of {len(text):,} characters was cut into several"
                )
            is_supported = not stems(text).isdisjoint(words) or not stems(text)
            sure = fact.confidence if is_supported else min(fact.confidence, _UNSUPPORTED)
            sources = _sources(fact, piece)
            about = " ".join((fact.about or "").split())[:200] or None
            parts = fitting(text, MAX_MEMORY_CONTENT_LENGTH)
            facts += [Fact(part, sources, sure, about) for part in parts]
        return facts


def _sources(fact: _FactAnswer, piece: list[_Fragment]) -> tuple[int, ...]:
    """Return the messages that a fact is from: those it names, else those it has words of."""
    places = {part.place for part in piece}
    named = tuple(sorted(places & set(fact.sources)))
    if named:
        return named
    words = stems(fact.text)
    shares = [(len(words & stems(part.text)), part.place) for part in piece]
    best = max(share for share, _ in shares)
    if best == 0:
        users = {part.place for part in piece if part.message.role is MessageRole.USER}
        return tuple(sorted(users or places))
    return tuple(sorted({place for share, place in shares if share == best}))[:1]


def _raw(parts: Iterable[_Fragment]) -> list[Fact]:
    """Return what was said as facts, one per sentence."""
    return [
        Fact(spoken(part.message, fragment), (part.place,), _RAW, part.message.name)
        for part in parts
        for sentence in sentences(part.text)
        for fragment in fitting(sentence, MAX_MEMORY_CONTENT_LENGTH - _NAME_AT_MOST)
    ]


def _merged(facts: Iterable[Fact]) -> list[Fact]:
    """Return each fact once, with all messages that say it."""
    merged: dict[str, Fact] = {}
    for fact in facts:
        form = exact_form(fact.text)
        if form in merged:
            sources = {*merged[form].sources, *fact.sources}
            merged[form] = merged[form]._replace(sources=tuple(sorted(sources)))
        else:
            merged[form] = fact
    return list(merged.values())

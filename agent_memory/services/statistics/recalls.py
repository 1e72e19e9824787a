"""What the event log says about searches: how many, how much they returned, what they missed.

Each line of the log may have been written by an older version, or by anybody: values that are not
as they should be count as nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agent_memory.models.enums import EventName
from agent_memory.models.event import MemoryEvent
from agent_memory.models.statistics import Gap
from agent_memory.text.small_talk import is_made_of_small_talk
from agent_memory.text.stems import stems

LEAST_SIMILARITY: Final = 0.5
"""If the best hit has less than half of the query, that is no answer."""
_QUESTIONS_KEPT: Final = 3
_MOST: Final = 2**53


@dataclass
class Question:
    """All searches with the same words."""

    text: str = ""
    asked: int = 0
    unanswered: int = 0
    last_asked: datetime | None = None
    similarity: float = 0.0
    is_open: bool = False
    """Whether the last of them was not answered."""


@dataclass
class Answer:
    """A memory that came first in answered searches, and the last questions, newest last."""

    asked: int = 0
    last_asked: datetime | None = None
    questions: list[str] = field(default_factory=list)


class RecallLog:
    """The events of searches and contexts since a time, counted."""

    def __init__(self, events: Iterable[MemoryEvent], *, since: datetime | None) -> None:
        self.first_event: datetime | None = None
        self.counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("searches", "unanswered", "memories", "tokens")
        }
        """Figures by name and by day."""
        self._words: dict[str, frozenset[str] | str] = {}
        self.questions: dict[frozenset[str] | str, Question] = {}
        self.answers: dict[str, Answer] = {}
        for event in events:
            if since is not None and event.timestamp < since:
                continue
            self.first_event = min(self.first_event or event.timestamp, event.timestamp)
            if event.name == EventName.SEARCHED:
                self._take_search(event)
            elif event.name == EventName.RENDERED:
                names = ("memory_count", "tokens")
                memories, tokens = (_number(event.data.get(name)) for name in names)
                self._count(event, memories=memories, tokens=tokens)

    def _take_search(self, event: MemoryEvent) -> None:
        data = event.data
        results = _number(data.get("results_count"))
        similarity = _share(data.get("best_similarity"), default=float(results > 0))
        is_answered = results > 0 and similarity >= LEAST_SIMILARITY
        tokens = _number(data.get("tokens"))
        self._count(
            event, searches=1, unanswered=int(not is_answered), memories=results, tokens=tokens
        )
        query = data.get("query")
        text = query.strip() if isinstance(query, str) else ""
        if text:
            self._take_question(event, text, similarity, is_answered=is_answered)
        if is_answered:
            self._take_answer(event, text)

    def _count(self, event: MemoryEvent, **numbers: int) -> None:
        day = event.timestamp.date().isoformat()
        for name, number in numbers.items():
            self.counts[name][day] += number

    def _take_question(
        self, event: MemoryEvent, text: str, similarity: float, *, is_answered: bool
    ) -> None:
        if text not in self._words:
            self._words[text] = stems(text) or text.casefold()
        question = self.questions.setdefault(self._words[text], Question())
        question.asked += 1
        question.unanswered += not is_answered
        question.text, question.last_asked = text, event.timestamp
        question.similarity, question.is_open = similarity, not is_answered

    def _take_answer(self, event: MemoryEvent, text: str) -> None:
        memory_ids = event.data.get("memory_ids")
        first = memory_ids[0] if isinstance(memory_ids, list) and memory_ids else None
        if not isinstance(first, str):
            return
        answer = self.answers.setdefault(first, Answer())
        answer.asked += 1
        answer.last_asked = event.timestamp
        if text:
            others = [question for question in answer.questions if question != text]
            answer.questions = [*others, text][-_QUESTIONS_KEPT:]

    def gaps(self) -> list[Gap]:
        """Return the questions that were not answered when last asked, most asked first.

        Small talk is not a question. At equal counts, the one asked last comes first.
        """
        gaps = [
            Gap(
                question=question.text,
                asked=question.asked,
                unanswered=question.unanswered,
                last_asked=question.last_asked,
                best_similarity=question.similarity,
            )
            for question in self.questions.values()
            if question.is_open
            and question.last_asked is not None
            and not is_made_of_small_talk(question.text)
        ]
        gaps.sort(key=lambda gap: (gap.unanswered, gap.last_asked), reverse=True)
        return gaps


def _number(value: Any) -> int:  # noqa: ANN401 - anything may be in the log
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= _MOST else 0


def _share(value: Any, *, default: float) -> float:  # noqa: ANN401 - anything may be in the log
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0.0 <= value <= 1.0 else default

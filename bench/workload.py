"""Memories and questions like an agent's, generated from a seed: the same every time.

Sentences are composed of everyday words, which are common, and of names made of syllables, a few of
which are common and most rare, as names are in real text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

START: Final = datetime(2024, 1, 1, 8, tzinfo=UTC)
NOW: Final = datetime(2026, 1, 1, 8, tzinfo=UTC)
SESSION_LENGTH: Final = 20

_SYLLABLES: Final = """
    ba be bo ca ce da del fa fen ga gor ha hel is ja jor ka kel la lin ma mer mo na nor or pa per
    qui ra ren sa sol ta tev ti un va ven wi xan ya zel zo
    """.split()
_PEOPLE: Final = """
    Alice Bob Carla Dmitri Elena Farid Grace Hiro Ingrid Jamal Keiko Liam Maria Nadia Omar Priya
    Quinn Rosa Samir Tara Uma Victor Wei Yusuf Zoe
    """.split()
_TOOLS: Final = """
    PostgreSQL SQLite Redis Kafka Docker Terraform pytest FastAPI React Grafana Airflow Spark
    nginx Celery GraphQL Ansible Kubernetes MongoDB Rust TypeScript Jenkins Prometheus Django
    Flask Webpack
    """.split()
_THINGS: Final = """
    deployment schema pipeline backup cache queue migration dashboard invoice report endpoint
    certificate branch release test index session token budget contract meeting interview recipe
    garden bicycle kitchen train flight hotel concert painting novel marathon guitar puppy doctor
    lesson holiday camera window library ticket server network cluster password latency parser
    compiler editor keyboard monitor battery survey survey lecture exam project roadmap milestone
    sprint review incident outage alert metric log query table column row vector model prompt
    agent memory context summary note answer question mistake pattern decision preference
    """.split()
_QUALITIES: Final = """
    slow fast broken stable quiet noisy cheap expensive early late weekly daily hidden public
    private shared old new green blue heavy light simple complex safe risky final temporary local
    remote empty full correct wrong flaky reliable
    """.split()
_VERBS: Final = """
    fixed moved renamed deleted restored measured reviewed bought sold planned cancelled postponed
    wrote read tested deployed configured replaced merged reverted discussed painted cooked
    visited booked finished started learned forgot remembered asked answered promised noticed
    """.split()
_REASONS: Final = [
    "because the build took too long",
    "after the outage in March",
    "to save money",
    "since nobody used it any more",
    "before the release",
    "because the customer asked for it",
    "as the tests kept failing",
    "to keep the data in Europe",
    "while the office was closed",
    "because it was easier to explain",
    "so that the team can sleep",
    "after a long discussion",
    "in spite of the cost",
    "as agreed at the retrospective",
]
_TEMPLATES: Final = (
    "{person} {verb} the {quality} {thing} for {name} {reason}",
    "{person} prefers {tool} over {tool} for the {thing} of {name}",
    "Decided to use {tool} for {name}'s {thing} {reason}",
    "The {thing} of {name} is {quality}: port {number}, owner {person}",
    "TODO: {person} and {person} review the {quality} {thing} in {name} on {day} {month}",
    "Learned that {tool} drops the {thing} when the {thing} is {quality} (ticket {name}-{number})",
    "{person} went to {name} with {person}, {verb} a {thing} and paid {number} euros",
    "{name} meeting: {person} said the {thing} was {quality}, {person} {verb} it {reason}",
    "Bugfix: {tool} {thing} failed with error {number} on {name}; {verb} the {thing} {reason}",
    "{person}'s birthday is on {day} {month}; likes {quality} {thing}s and the town of {name}",
)
_MONTHS: Final = """
    January February March April May June July August September October November December
    """.split()
_CATEGORIES: Final = ("note", "preference", "decision", "discovery", "task", "bugfix")
_QUESTIONS: Final = (
    "what did we say about {}?",
    "when was {} done?",
    "who knows about {}?",
    "why {}?",
    "do you remember {} and what came of it?",
)
_SLOT: Final = re.compile(r"\{(\w+)\}")
_WORDS: Final = {
    "person": _PEOPLE,
    "tool": _TOOLS,
    "thing": _THINGS,
    "quality": _QUALITIES,
    "verb": _VERBS,
    "reason": _REASONS,
    "month": _MONTHS,
}


class Workload:
    """A stream of memories and of questions about them."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._names = [self._name() for _ in range(20_000)]
        # Zipf's law: the n-th most common name is used 1/n as often as the first.
        self._name_weights = [0.0]
        for rank in range(1, len(self._names)):
            self._name_weights.append(self._name_weights[-1] + 1 / (rank + 20))

    def memories(self, count: int, *, start: int = 0) -> Iterator[dict[str, Any]]:
        """Yield ``count`` memories as ``store_many`` takes them, numbered from ``start``."""
        for number in range(start, start + count):
            session = number // SESSION_LENGTH
            moment = START + timedelta(
                minutes=137 * session % (2 * 365 * 24 * 60), seconds=number % SESSION_LENGTH * 40
            )
            yield {
                "content": self.sentence() + self._random.choice(["", "", ". " + self.sentence()]),
                "category": self._random.choice(_CATEGORIES),
                "tags": self._random.sample(_TOOLS, self._random.randint(0, 3)),
                "session_id": f"session-{session}",
                "timestamp": moment,
                "metadata": {"confidence": round(self._random.random(), 2), "source": "bench"},
            }

    def sentence(self) -> str:
        """Return one sentence."""
        words: str = self._random.choice(_TEMPLATES)
        while slot := _SLOT.search(words):
            words = words[: slot.start()] + self._fill(slot[1]) + words[slot.end() :]
        return words

    def _fill(self, slot: str) -> str:
        if slot == "name":
            return self._random.choices(self._names, cum_weights=self._name_weights)[0]
        if slot == "number":
            return str(self._random.randint(2, 9999))
        if slot == "day":
            return str(self._random.randint(1, 28))
        return self._random.choice(_WORDS[slot])

    def question(self, about: str) -> str:
        """Return a question that uses some words of a memory."""
        words = [word.strip(".,:;()'") for word in about.split()]
        size = min(len(words), self._random.randint(2, 6))
        start = self._random.randint(0, len(words) - size)
        return self._random.choice(_QUESTIONS).format(" ".join(words[start : start + size]))

    def _name(self) -> str:
        count = self._random.randint(2, 4)
        return "".join(self._random.choices(_SYLLABLES, k=count)).capitalize()

"""Recall of the evidence on LoCoMo conversations, which stay where they are: give their path.

    python -m bench.locomo PATH/dev.json                          search by keyword
    python -m bench.locomo PATH/dev.json --embedder wordllama     and by meaning
    python -m bench.locomo PATH/dev.json --root postgresql://…    in a database for it alone

Every turn (or every observation) of a conversation is stored as a memory of one agent. Then the
questions are searched for in order; recall@k is the share of a question's evidence among the first
k hits, averaged over all questions. ``bench.locomo_parts`` measures what each part of the ranking
is worth.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import re
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent_memory import AgentMemory
from bench.machine import describe_machine

CUTOFFS = (5, 10, 25)
SESSION_CUTOFFS = (5, 10)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
DIALOGUE_ID = re.compile(r"D\d+:\d+")


@dataclass
class Document:
    """A text to store, and the turns that it is evidence of."""

    item: dict[str, Any]
    evidence: set[str]


@dataclass
class Question:
    """A question, the turns that answer it, and which of ``CATEGORIES`` it belongs to."""

    text: str
    evidence: set[str]
    category: int


@dataclass
class Conversation:
    """One conversation: its turns, its observations, its questions with their evidence."""

    turns: list[Document] = field(default_factory=list)
    observations: list[Document] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    now: datetime = datetime(1, 1, 1, tzinfo=UTC)


@dataclass
class Recall:
    """Recall of the evidence, summed over questions."""

    found: dict[int, float] = field(default_factory=lambda: dict.fromkeys(CUTOFFS, 0.0))
    questions: int = 0

    def add(self, evidence: set[str], hits: Sequence[set[str]]) -> None:
        """Count a question: its evidence, and what each hit in order is evidence of."""
        self.questions += 1
        for cutoff in CUTOFFS:
            found = set().union(*hits[:cutoff]) & evidence
            self.found[cutoff] += len(found) / len(evidence)

    def percent(self) -> list[float]:
        """Return recall at each of ``CUTOFFS``."""
        return [100 * self.found[cutoff] / max(1, self.questions) for cutoff in CUTOFFS]

    def __str__(self) -> str:
        return " / ".join(f"{share:5.1f}" for share in self.percent())


@dataclass
class Tally:
    """The results of a run over the questions."""

    recall: Recall = field(default_factory=Recall)
    by_category: dict[int, Recall] = field(default_factory=dict)
    sessions: dict[int, float] = field(default_factory=lambda: dict.fromkeys(SESSION_CUTOFFS, 0.0))
    empty: int = 0
    milliseconds: list[float] = field(default_factory=list)

    def add(self, question: Question, hits: Sequence[set[str]]) -> None:
        """Count a question, and what each of its hits in order is evidence of."""
        self.recall.add(question.evidence, hits)
        self.by_category.setdefault(question.category, Recall()).add(question.evidence, hits)
        self.empty += not hits
        asked = {_session_of(turn) for turn in question.evidence}
        found = list(dict.fromkeys(_session_of(turn) for hit in hits for turn in sorted(hit)))
        for cutoff in SESSION_CUTOFFS:
            self.sessions[cutoff] += len(asked & set(found[:cutoff])) / len(asked)

    def __str__(self) -> str:
        middle = sorted(self.milliseconds)[len(self.milliseconds) // 2]
        return f"{self.recall}   {self.recall.questions} questions, p50 {middle:.1f} ms"


def _session_of(turn: str) -> str:
    """Return the session of a turn (``D<session>:<turn>``)."""
    return turn.partition(":")[0]


def read(path: Path) -> list[Conversation]:
    """Read the conversations of a LoCoMo file."""
    return [_conversation(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(entry: dict[str, Any]) -> Conversation:
    found = Conversation()
    talk = entry["conversation"]
    numbers = sorted(
        int(match[1]) for key in talk if (match := re.fullmatch(r"session_(\d+)", key))
    )
    for number in numbers:
        start = _read_time(talk[f"session_{number}_date_time"])
        session = f"session_{number}"
        for place, turn in enumerate(talk[session]):
            said = f'{turn["speaker"]} said, "{turn["text"]}"'
            if caption := turn.get("blip_caption"):
                said += f" [shares {caption}]"
            moment = start + timedelta(seconds=place)
            item = {"content": said, "timestamp": moment, "session_id": session}
            found.turns.append(Document(item, {turn["dia_id"]}))
            found.now = max(found.now, moment)
        facts = _facts(entry["observation"].get(f"{session}_observation", {}))
        for place, (fact, evidence) in enumerate(facts):
            moment = start + timedelta(seconds=place)
            item = {"content": fact, "timestamp": moment, "session_id": session}
            found.observations.append(Document(item, evidence))
    known = {identity for turn in found.turns for identity in turn.evidence}
    for question in entry["qa"]:
        evidence = set(DIALOGUE_ID.findall(" ".join(question["evidence"]))) & known
        if evidence:
            found.questions.append(
                Question(question["question"], evidence, int(question["category"]))
            )
    return found


def _facts(by_speaker: dict[str, list[list[Any]]]) -> Iterator[tuple[str, set[str]]]:
    for facts in by_speaker.values():
        for fact, cited in facts:
            yield (
                fact,
                set(DIALOGUE_ID.findall(" ".join([cited] if isinstance(cited, str) else cited))),
            )


def _read_time(text: str) -> datetime:
    """Read ``1:56 pm on 8 May, 2023``."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


@contextlib.contextmanager
def stored(
    documents: list[Document], embedder: str, config: dict[str, float], root: str | None = None
) -> Iterator[tuple[AgentMemory, list[str]]]:
    """Store documents in an agent of their own, with embeddings if there is an embedder."""
    with (
        tempfile.TemporaryDirectory() as folder,
        AgentMemory(
            f"bench-{uuid.uuid4().hex[:12]}", root=root or folder, config=config, embedder=embedder
        ) as memory,
    ):
        ids = memory.store_many([document.item for document in documents])
        if embedder != "none":
            memory.migrate()
        yield memory, ids


def measure(
    conversations: list[Conversation],
    corpus: str,
    config: dict[str, float],
    *,
    count: bool,
    embedder: str,
    root: str | None = None,
) -> Tally:
    """Store each conversation in its own agent and ask its questions."""
    tally = Tally()
    for conversation in conversations:
        documents: list[Document] = getattr(conversation, corpus)
        with stored(documents, embedder, config, root) as (memory, ids):
            finds = dict(zip(ids, (document.evidence for document in documents), strict=True))
            for question in conversation.questions:
                started = time.perf_counter()
                hits = memory.search(
                    question.text, limit=max(CUTOFFS), now=conversation.now, count_accesses=count
                )
                tally.milliseconds.append((time.perf_counter() - started) * 1000)
                tally.add(question, [finds[hit.memory.id] for hit in hits])
    return tally


def measure_unrelated(
    conversations: list[Conversation], corpus: str, *, embedder: str, root: str | None
) -> tuple[int, int]:
    """Ask each store the next conversation's questions; return how many find nothing, and all."""
    nothing = asked = 0
    for number, conversation in enumerate(conversations):
        foreign = conversations[(number + 1) % len(conversations)].questions
        documents: list[Document] = getattr(conversation, corpus)
        with stored(documents, embedder, {}, root) as (memory, _):
            for question in foreign:
                hits = memory.search(question.text, now=conversation.now, count_accesses=False)
                nothing += not hits
                asked += 1
    return nothing, asked


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="a LoCoMo file, such as locomo10.json")
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    parser.add_argument("--root", help="where to create the agents, instead of a temporary folder")
    parser.add_argument("--corpus", choices=["turns", "observations"], action="append")
    arguments = parser.parse_args()
    conversations = read(arguments.path)
    print(describe_machine())
    print(
        f"{len(conversations)} conversations; embedder: {arguments.embedder};"
        " recall@5 / @10 / @25, percent"
    )
    no_decay = {"freshness_decay_rate": 0.0, "access_boost_rate": 0.0}
    for corpus in arguments.corpus or ["turns", "observations"]:
        ask = functools.partial(
            measure, conversations, corpus, embedder=arguments.embedder, root=arguments.root
        )
        default = ask({}, count=True)
        print(f"{corpus:13} defaults             {default}")
        print(f"{corpus:13} no decay, no boost   {ask(no_decay, count=False)}")
        for category, recall in sorted(default.by_category.items()):
            name = CATEGORIES.get(category, str(category))
            print(f"{corpus:13}   {name:18} {recall}   {recall.questions} questions")
        asked = default.recall.questions
        shares = [f"{100 * default.sessions[k] / asked:5.1f}" for k in SESSION_CUTOFFS]
        print(f"{corpus:13} sessions @5 / @10    {' / '.join(shares)}")
        nothing, foreign = measure_unrelated(
            conversations, corpus, embedder=arguments.embedder, root=arguments.root
        )
        print(
            f"{corpus:13} found nothing: {default.empty} of {asked} of its own questions,"
            f" {nothing} of {foreign} of another conversation's"
        )


if __name__ == "__main__":
    main()

"""Finding the memories that say what a text says: the same, in the same words, or much of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent_memory import fingerprints, keyword, recalls, records
from agent_memory.connection import Database
from agent_memory.fingerprints import Same, fingerprint_of
from agent_memory.models.duplicate import Duplicate, DuplicateGroup
from agent_memory.models.memory import Memory
from agent_memory.times import read_stored_time
from agent_memory.vocabulary import DuplicateGrade
from agent_memory.wording import (
    SIMILAR_SHARE,
    SIMILAR_WORDS,
    grade_of,
    one_line,
    share_of_words,
    words_of,
)

_COMPARED: Final = 100
"""Memories with the same fingerprint that are looked at, the oldest."""
_SIMILAR: Final = 5
"""Similar memories that are named."""
_SCAN_BUDGET: Final = 1_000
"""Memories that FTS5 scores to find similar ones: 1 ms."""
_SELECT_SIMILAR: Final = """
SELECT m.id, m.content FROM memory_index AS i JOIN memories AS m ON m.seq = i.rowid
WHERE memory_index MATCH ? AND m.archived = 0 AND m.user_id IS ? AND m.run_id IS ?
ORDER BY bm25(memory_index) LIMIT 20"""

# What `context` puts around a memory, and what it says above them all.
_ENTRY: Final = re.compile(
    r"(?:[-*•]\s+)?(?:\[\d{4}-\d\d-\d\d\]\s+)?(?:(?P<label>[^:]{1,50}):\s+)?(?P<text>.*?)"
    r"(?:\s+\((?P<tags>[^()]+)\))?"
)
_FRAME: Final = re.compile(r"## Recent Memories \(|These notes were recalled from storage\.")


@dataclass(frozen=True, slots=True)
class Question:
    """A text about a user, of a run, of which it is asked whether it is there already.

    ``recalled_since`` is the moment (as text) from which on a memory that was given out makes the
    text an echo; ``None`` when it cannot be one. ``index`` is the text's place in a list.
    """

    content: str
    user_id: str | None
    run_id: str | None
    recalled_since: str | None = None
    index: int | None = None


def find(database: Database, question: Question, fingerprint: int) -> list[Duplicate]:
    """Return the exact and near duplicates of a text, exact ones first, then oldest first.

    ``fingerprint`` is that of the text. They are found among any number of memories, whatever
    their words; of over 100 that say the same, the oldest 100 are looked at.
    """
    found = _graded(question, fingerprints.same(database, fingerprint, limit=_COMPARED))
    return sorted(found, key=lambda it: it.grade is not DuplicateGrade.EXACT)


def _graded(question: Question, candidates: Iterable[Same]) -> Iterator[Duplicate]:
    grades: dict[str, DuplicateGrade | None] = {}
    for there in candidates:
        if not _is_about(there, question):
            continue
        if there.content not in grades:
            grades[there.content] = grade_of(there.content, question.content)
        grade = grades[there.content]
        if grade is not None:
            yield _duplicate(question, there, grade)


def _duplicate(question: Question, there: Same, grade: DuplicateGrade) -> Duplicate:
    since = question.recalled_since
    is_echo = since is not None and there.recalled_at is not None and there.recalled_at >= since
    return Duplicate.model_construct(
        grade=grade,
        memory_id=there.memory_id,
        content=there.content,
        new_content=question.content,
        shared_words=1.0,
        recalled_at=read_stored_time(there.recalled_at or "") if is_echo else None,
        index=question.index,
    )


def find_unfingerprinted(database: Database, question: Question) -> list[Duplicate]:
    """Return duplicates among memories that have no fingerprint yet, in a file only to be read."""
    fingerprint = fingerprint_of(question.content, question.user_id, question.run_id)
    seqs = list(fingerprints.same_without(database, fingerprint))[:_COMPARED]
    return list(_graded(question, fingerprints.those(database, seqs)))


# Echoes of what `context` rendered ------------------------------------------------------------


def echoes_of_entries(database: Database, question: Question) -> list[Duplicate]:
    """Return what a text repeats when every line of it is an entry that ``context`` gave out.

    Nothing, when any line says something else, or the text is not written like such entries. (A
    text of one line with nothing around it was looked for as it is.)
    """
    lines = [one_line(line) for line in question.content.splitlines()]
    lines = [line for line in lines if line and not _FRAME.match(line)]
    echoes: list[Duplicate] = []
    for line in lines:
        readings = [it for it in _readings(line) if len(lines) > 1 or it.text != question.content]
        echo = next(filter(None, (_echo(database, question, it) for it in readings)), None)
        if echo is None:
            return []
        echoes.append(echo)
    return echoes


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a line may show: a memory's text, and its category and tags where they stand there."""

    text: str
    label: str | None = None
    tags: str | None = None


def _readings(line: str) -> Iterator[_Reading]:
    """Yield what a line may show: a text may itself begin like a label, or end like tags."""
    match = _ENTRY.fullmatch(line)
    if match is None:
        return
    text, label, tags = match["text"], match["label"], match["tags"]
    heads = [(text, None)] if label is None else [(text, label), (f"{label}: {text}", None)]
    for head, its_label in heads:
        if tags is not None:
            yield _Reading(head, its_label, tags)
        yield _Reading(head if tags is None else f"{head} ({tags})", its_label)


def _echo(database: Database, question: Question, reading: _Reading) -> Duplicate | None:
    """Return the memory that was given out and that a line shows, read so."""
    fingerprint = fingerprint_of(reading.text, question.user_id, question.run_id)
    for there in fingerprints.same(database, fingerprint, limit=_COMPARED):
        found = _duplicate(question, there, DuplicateGrade.NEAR)
        if found.recalled_at is None or not _is_of(there, reading):
            continue
        if _is_about(there, question) and grade_of(there.content, reading.text) is not None:
            return found
    return None


def _is_about(there: Same, question: Question) -> bool:
    return (there.user_id, there.run_id) == (question.user_id, question.run_id)


def _is_of(there: Same, reading: _Reading) -> bool:
    """Tell whether what was taken for a label and tags is the memory's own."""
    if reading.label is not None and reading.label.lower() != there.category.lower():
        return False
    return reading.tags is None or reading.tags == ", ".join(map(str, json.loads(there.tags)))


# Asked beforehand -----------------------------------------------------------------------------


def all_of(
    database: Database, content: str, *, user_id: str | None, run_id: str | None, now: datetime
) -> list[Duplicate]:
    """Return exact, near and similar duplicates of a text, best first."""
    question = Question(content, user_id, run_id, recalled_since=recalls.since(now))
    found = find(database, question, fingerprint_of(content, user_id, run_id))
    found += find_unfingerprinted(database, question)
    if not found:
        found = echoes_of_entries(database, question)
    return found + similar(database, question, without=[it.memory_id for it in found])


# Similar ones ---------------------------------------------------------------------------------


def similar(
    database: Database, question: Question, *, without: Sequence[str] = ()
) -> list[Duplicate]:
    """Return the memories with most words in common, five at most; ``without`` has ids to pass.

    They are looked for by the text's rarest words: where each is in over a thousand memories, some
    are missed.
    """
    words = words_of(question.content)
    if len(words) < SIMILAR_WORDS:
        return []
    match = _rarest(database, question.content)
    if not match:
        return []
    found: list[Duplicate] = []
    rows = database.rows(_SELECT_SIMILAR, (match, question.user_id, question.run_id))
    for memory_id, content in rows:
        others = words_of(content)
        share = share_of_words(words, others)
        if memory_id in without or share < SIMILAR_SHARE or len(others) < SIMILAR_WORDS:
            continue
        found.append(
            Duplicate.model_construct(
                grade=DuplicateGrade.SIMILAR,
                memory_id=memory_id,
                content=content,
                new_content=question.content,
                shared_words=round(share, 3),
                recalled_at=None,
                index=question.index,
            )
        )
    return sorted(found, key=lambda it: -it.shared_words)[:_SIMILAR]


def _rarest(database: Database, content: str) -> str:
    """Return an FTS5 query for the rarest words of a text, as many as the budget allows."""
    terms = keyword.terms_of(database, content)
    counts = keyword.frequencies(database, terms)
    chosen: list[str] = []
    scanned = 0
    for count, term in sorted(zip(counts, terms, strict=True), key=lambda it: it[0]):
        scanned += count
        if count and (scanned <= _SCAN_BUDGET or not chosen):
            chosen.append(term.match)
    return " OR ".join(chosen)


# All of them ----------------------------------------------------------------------------------


def groups(database: Database, *, agent_id: str) -> Iterator[DuplicateGroup]:
    """Yield the groups of memories that say the same, by their oldest memory."""
    for fingerprint, count in fingerprints.repeated(database):
        seqs = [there.seq for there in fingerprints.same(database, fingerprint, limit=_COMPARED)]
        found = records.get_many(database, seqs, agent_id=agent_id)
        members = _alike([found[seq] for seq in seqs if seq in found])
        if len(members) > 1:
            grades = {grade_of(members[0].content, other.content) for other in members[1:]}
            is_exact = grades == {DuplicateGrade.EXACT}
            yield DuplicateGroup.model_construct(
                grade=DuplicateGrade.EXACT if is_exact else DuplicateGrade.NEAR,
                count=count,
                memories=members,
            )


def _alike(memories: Sequence[Memory]) -> list[Memory]:
    """Leave out what only happens to have the same fingerprint as the first."""
    first = memories[0] if memories else None
    return [
        memory
        for memory in memories
        if first is not None
        and (memory.user_id, memory.run_id) == (first.user_id, first.run_id)
        and grade_of(first.content, memory.content) is not None
    ]

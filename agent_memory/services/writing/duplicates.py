"""Finding the memories that say what a text says: the same, in the same words, or much of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from agent_memory.models.duplicate import Duplicate, DuplicateGroup
from agent_memory.models.memory import Memory
from agent_memory.models.times import read_stored_time
from agent_memory.services.rendering import is_frame
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import (
    DuplicateCandidate,
    DuplicateQuery,
    fingerprint_of,
    recall_window,
)
from agent_memory.text.normalize import DuplicateGrade, grade_of, one_line
from agent_memory.text.sanitize import as_data

_COMPARED: Final = 100
"""Memories with the same fingerprint that are looked at, the oldest and those recalled."""
# What `context` puts around a memory.
_ENTRY: Final = re.compile(
    r"(?:(?P<bullet>[-*•])\s+)?(?:\[(?P<date>\d{4}-\d\d-\d\d)\]\s+)?(?:(?P<label>[^:]{1,50}):\s+)?(?P<text>.*?)"
    r"(?:\s+\((?P<tags>[^()]+)\))?(?:\s+\{(?P<id>[A-Za-z0-9_.:-]{1,128}) by [^{}]+\})?"
)
_WORD_OR_DATE: Final = re.compile(r"[^\W\d_]{2}|\[\d{4}-\d\d-\d\d\]")


def find(engine: Engine, question: DuplicateQuery, fingerprint: int) -> list[Duplicate]:
    """Return the exact and near duplicates of a text, exact ones first, then oldest first.

    ``fingerprint`` is that of the text. They are found among any number of memories, whatever
    their words; of over 100 that say the same, the oldest 100 are looked at.
    """
    found = _graded(question, engine.fingerprints.same(fingerprint, limit=_COMPARED))
    return sorted(found, key=lambda it: it.grade is not DuplicateGrade.EXACT)


def _graded(
    question: DuplicateQuery, candidates: Iterable[DuplicateCandidate]
) -> Iterator[Duplicate]:
    grades: dict[str, DuplicateGrade | None] = {}
    for there in candidates:
        if not _is_about(there, question):
            continue
        if there.content not in grades:
            grades[there.content] = grade_of(there.content, question.content)
        grade = grades[there.content]
        if grade is not None:
            yield _duplicate(question, there, grade)


def _duplicate(
    question: DuplicateQuery, there: DuplicateCandidate, grade: DuplicateGrade
) -> Duplicate:
    is_echo = False
    if question.recalled is not None and there.recalled_at is not None:
        first, last = question.recalled
        is_echo = first <= there.recalled_at <= last
    return Duplicate.model_construct(
        grade=grade,
        memory_id=there.memory_id,
        content=there.content,
        new_content=question.content,
        shared_words=1.0,
        recalled_at=read_stored_time(there.recalled_at or "") if is_echo else None,
        index=question.index,
        left_out=[],  # given: its default_factory costs 0.2 ms
    )


def find_unfingerprinted(engine: Engine, question: DuplicateQuery) -> list[Duplicate]:
    """Return duplicates among memories that have no fingerprint yet, in a file only to be read."""
    fingerprint = fingerprint_of(question.content, question.user_id, question.run_id)
    row_ids = list(engine.fingerprints.same_without(fingerprint))[:_COMPARED]
    return list(_graded(question, engine.fingerprints.of_unarchived(row_ids)))


# Echoes of what `context` rendered ------------------------------------------------------------


def echoes_of_entries(engine: Engine, question: DuplicateQuery) -> list[Duplicate]:
    """Return what a text repeats when every line of it is an entry that ``context`` gave out.

    Nothing, when any line says something else, or the text is not written like such entries. (A
    text of one line with nothing around it was looked for as it is.)
    """
    lines = [one_line(line) for line in question.content.splitlines()]
    lines = [line for line in lines if line and not is_frame(line)]
    echoes: list[Duplicate] = []
    for line in lines:
        readings = [it for it in _readings(line) if len(lines) > 1 or _is_entry(it, question)]
        echo = next(filter(None, (_echo(engine, question, it) for it in readings)), None)
        if echo is None:
            return []
        echoes.append(echo)
    return echoes


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a line may show: a memory's text; its date, category, tags and id if they are there."""

    text: str
    bullet: str | None = None
    date: str | None = None
    label: str | None = None
    tags: str | None = None
    memory_id: str | None = None


def _readings(line: str) -> Iterator[_Reading]:
    """Yield what a line may show: a text may itself begin like a label, or end like tags."""
    match = _ENTRY.fullmatch(line)
    if match is None:
        return
    date, label, tags = match["date"], match["label"], match["tags"]
    heads = [_Reading(match["text"], match["bullet"], date, label, memory_id=match["id"])]
    if label is not None:
        heads.append(replace(heads[-1], text=f"{label}: {heads[-1].text}", label=None))
    if date is not None:
        heads.append(replace(heads[-1], text=f"[{date}] {heads[-1].text}", date=None))
    for head in heads:
        if tags is not None:
            yield replace(head, tags=tags)
        yield head if tags is None else replace(head, text=f"{head.text} ({tags})")


def _is_entry(reading: _Reading, question: DuplicateQuery) -> bool:
    """Return whether a single line, read so, is an entry, and not the text as it is.

    A dash with nothing else of an entry may be a minus sign: "- 5 degrees is the setpoint".
    """
    if any((reading.date, reading.label, reading.tags, reading.memory_id)):
        return True
    if reading.bullet == "-" and _WORD_OR_DATE.match(reading.text) is None:
        return False
    return reading.text != question.content


def _echo(engine: Engine, question: DuplicateQuery, reading: _Reading) -> Duplicate | None:
    """Return the memory that was given out and that a line shows, read so."""
    fingerprint = fingerprint_of(reading.text, question.user_id, question.run_id)
    for there in engine.fingerprints.same(fingerprint, limit=_COMPARED):
        found = _duplicate(question, there, DuplicateGrade.NEAR)
        if found.recalled_at is None or not _is_of(there, reading):
            continue
        if not _is_about(there, question) or grade_of(there.content, reading.text) is None:
            continue
        shown = replace(question, content=there.content)
        return None if engine.similarity.is_corrected(shown, [found]) else found
    return None


def _is_about(there: DuplicateCandidate, question: DuplicateQuery) -> bool:
    return (there.user_id, there.run_id) == (question.user_id, question.run_id)


def _is_of(there: DuplicateCandidate, reading: _Reading) -> bool:
    """Return whether what was taken for a date, a label, tags and an id is the memory's own."""
    if reading.memory_id not in (None, there.memory_id):
        return False
    if reading.date is not None and reading.date != there.timestamp[:10]:
        return False
    if reading.label is not None and reading.label.lower() != as_data(there.category).lower():
        return False
    return reading.tags is None or reading.tags == _listed(there.tags)


def _listed(tags: str) -> str | None:
    """Return tags as they are shown; ``None`` for what another program wrote and is no list."""
    try:
        found = json.loads(tags)
    except (ValueError, RecursionError):
        return None
    return as_data(", ".join(map(str, found))) if isinstance(found, list) else None


# Asked beforehand -----------------------------------------------------------------------------


def all_of(
    engine: Engine, content: str, *, user_id: str | None, run_id: str | None, now: datetime
) -> list[Duplicate]:
    """Return exact, near and similar duplicates of a text, best first."""
    question = DuplicateQuery(content, user_id, run_id, recalled=recall_window(now))
    found = find(engine, question, fingerprint_of(content, user_id, run_id))
    found += find_unfingerprinted(engine, question)
    if any(it.recalled_at for it in found) and engine.similarity.is_corrected(question, found):
        found = [it.model_copy(update={"recalled_at": None}) for it in found]
    if not found:
        found = echoes_of_entries(engine, question)
    return found + engine.similarity.similar(question, without=[it.memory_id for it in found])


# All of them ----------------------------------------------------------------------------------


def groups(engine: Engine, *, agent_id: str) -> Iterator[DuplicateGroup]:
    """Yield the groups of memories that say the same, by their oldest memory."""
    for fingerprint, count in engine.fingerprints.repeated():
        row_ids = [there.row_id for there in engine.fingerprints.same(fingerprint, limit=_COMPARED)]
        found = engine.memories.get_many(row_ids, agent_id=agent_id)
        members = _alike([found[row_id] for row_id in row_ids if row_id in found])
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

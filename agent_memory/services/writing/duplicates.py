"""Duplicates of a text: which memories say the same, what a merge adds, and the refusal.

A duplicate says the same (exact), the same except for case, punctuation or whitespace (near), or
much of it (similar). An echo repeats what a search or a context recently returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.errors import DuplicateMemory, StorageCorrupt, described
from agent_memory.models.columns import COLUMNS
from agent_memory.models.duplicate import Duplicate, DuplicateGroup
from agent_memory.models.enums import Importance
from agent_memory.models.limits import MAX_TAGS_PER_MEMORY
from agent_memory.models.times import read_stored_time
from agent_memory.services.rendering import is_frame
from agent_memory.services.writing.update import changed_values, row_id_of, signed
from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.engine import Engine
from agent_memory.storage.fingerprints import DuplicateCandidate, fingerprint_of
from agent_memory.storage.memory_values import is_same_value
from agent_memory.storage.records import recall_window
from agent_memory.text.counts import counted
from agent_memory.text.normalize import DuplicateGrade, grade_of, one_line
from agent_memory.text.sanitize import as_data

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory

_WEIGHT: Final = {Importance.LOW: 0, Importance.MEDIUM: 1, Importance.HIGH: 2}
_KEPT: Final = tuple(name for name, column in COLUMNS.items() if column.merge == "kept")
_COMPARED: Final = 100
"""Maximum memories with the same fingerprint that are compared: the oldest and those recalled."""
# What `context` puts around a memory.
_ENTRY: Final = re.compile(
    r"(?:(?P<bullet>[-*•])\s+)?(?:\[(?P<date>\d{4}-\d\d-\d\d)\]\s+)?(?:(?P<label>[^:]{1,50}):\s+)?(?P<text>.*?)"
    r"(?:\s+\((?P<tags>[^()]+)\))?(?:\s+\{(?P<id>[A-Za-z0-9_.:-]{1,128}) by [^{}]+\})?"
)
_WORD_OR_DATE: Final = re.compile(r"[^\W\d_]{2}|\[\d{4}-\d\d-\d\d\]")


def complete_fingerprints(engine: Engine) -> None:
    """Compute the fingerprints of rows that another program wrote, one page per transaction."""
    while engine.can_write and not engine.fingerprints.is_complete():
        with engine.write(durable=False):
            done = engine.fingerprints.complete_page()
            # Checked here, where nobody else can have changed the same memories again.
            if engine.fingerprints.is_left(done):
                raise StorageCorrupt(
                    f"{engine.location} is damaged: rows written into the table fingerprints"
                    " do not stay there. Restore a backup; `agent-memory check` reports what"
                    " is damaged"
                )


def find(engine: Engine, query: DuplicateQuery, fingerprint: int) -> list[Duplicate]:
    """Return the exact and near duplicates of a text, exact ones first, then oldest first.

    ``fingerprint`` is that of the text. They are found among any number of memories, whatever their
    words; if over 100 say the same, the oldest 100 are compared.
    """
    matches = _graded(query, engine.fingerprints.same(fingerprint, limit=_COMPARED))
    return sorted(matches, key=lambda duplicate: duplicate.grade is not DuplicateGrade.EXACT)


def _graded(query: DuplicateQuery, candidates: Iterable[DuplicateCandidate]) -> Iterator[Duplicate]:
    grades: dict[str, DuplicateGrade | None] = {}
    for candidate in candidates:
        if not _is_about(candidate, query):
            continue
        if candidate.content not in grades:
            grades[candidate.content] = grade_of(candidate.content, query.content)
        grade = grades[candidate.content]
        if grade is not None:
            yield _duplicate(query, candidate, grade)


def _duplicate(
    query: DuplicateQuery, candidate: DuplicateCandidate, grade: DuplicateGrade
) -> Duplicate:
    is_echo = False
    if query.recalled is not None and candidate.recalled_at is not None:
        first, last = query.recalled
        is_echo = first <= candidate.recalled_at <= last
    return Duplicate.model_construct(
        grade=grade,
        memory_id=candidate.memory_id,
        content=candidate.content,
        new_content=query.content,
        shared_words=1.0,
        recalled_at=read_stored_time(candidate.recalled_at or "") if is_echo else None,
        index=query.index,
        left_out=[],  # set explicitly: its default_factory costs 0.2 ms
    )


def find_unfingerprinted(engine: Engine, query: DuplicateQuery) -> list[Duplicate]:
    """Return duplicates among memories without a fingerprint, in a file that is only read."""
    fingerprint = fingerprint_of(query.content, query.user_id, query.run_id)
    row_ids = list(engine.fingerprints.same_without(fingerprint))[:_COMPARED]
    return list(_graded(query, engine.fingerprints.of_unarchived(row_ids)))


# Merging a duplicate into the memory that exists ---------------------------------------------


def merge(engine: Engine, existing: Memory, new: Memory, *, now: datetime) -> None:
    """Add to the existing memory what the new one has in addition, if anything."""
    changes = changed_values(existing, _merged(existing, new))
    if len(existing.tags) > MAX_TAGS_PER_MEMORY:  # another program wrote them
        changes.pop("tags", None)
    if changes:
        with signed(engine, existing.id, new.created_by_session, now):
            engine.memories.update(row_id_of(engine, existing.id), changes, now=now)


def left_out(existing: Memory, new: Memory, fields_set: AbstractSet[str]) -> list[str]:
    """Return the fields of the new memory that a merge would not take over unchanged.

    ``fields_set`` are those that the caller set: no other can be lost.
    """
    merged = _merged(existing, new)
    lost = {
        "tags": not set(new.tags) <= set(merged["tags"]),
        "metadata": any(
            not is_same_value(merged["metadata"][key], value) for key, value in new.metadata.items()
        ),
        "importance": merged["importance"] != new.importance,
    }
    for name in _KEPT:
        lost[name] = not is_same_value(getattr(existing, name), getattr(new, name))
    return sorted(name for name, is_lost in lost.items() if is_lost and name in fields_set)


def says_more(existing: Memory, new: Memory, fields_set: AbstractSet[str]) -> bool:
    """Return whether the caller set a value that the existing memory does not have.

    Tags and metadata that a merge adds do not count.
    """
    has_importance = "importance" in fields_set and existing.importance != new.importance
    return has_importance or bool(left_out(existing, new, fields_set))


def _merged(existing: Memory, new: Memory) -> dict[str, Any]:
    return {
        "tags": list(dict.fromkeys([*existing.tags, *new.tags]))[:MAX_TAGS_PER_MEMORY],
        "metadata": {**new.metadata, **existing.metadata},
        "importance": max(existing.importance, new.importance, key=_WEIGHT.__getitem__),
    }


# Refusing duplicates --------------------------------------------------------------------------


def refusal(refused: Sequence[Duplicate], total: int, places: Mapping[str, int]) -> DuplicateMemory:
    """Build the error for refused duplicates; ``places`` has the ids that this list stored."""
    faults = [
        {
            "loc": ("content",) if duplicate.index is None else (duplicate.index, "content"),
            "msg": _reason(duplicate, places),
            "type": "duplicate",
            "input": described(duplicate.new_content),
            "ctx": {"memory_id": duplicate.memory_id, "item": places.get(duplicate.memory_id)},
        }
        for duplicate in refused
    ]
    first = refused[0]
    message = f"content: {_reason(first, places)}"
    if first.index is not None:
        message = (
            f"nothing was stored: {len(refused):,} of {counted(total)}"
            f" {'is a duplicate' if len(refused) == 1 else 'are duplicates'};"
            f" the first, item {first.index}: {message}"
        )
    return DuplicateMemory(message, faults, memory_id=first.memory_id)


def _reason(duplicate: Duplicate, places: Mapping[str, int]) -> str:
    advice = 'or keep both (`--on-duplicate keep`, in Python on_duplicate="keep")'
    if duplicate.memory_id in places:
        place = places[duplicate.memory_id]
        return f"says the same as item {place}: leave one of them out, {advice}"
    return (
        f"is already stored, as {duplicate.memory_id} ({duplicate.grade} duplicate): update"
        f" that one, {advice}"
    )


# Echoes of what `context` rendered ------------------------------------------------------------


def echoes_of_entries(engine: Engine, query: DuplicateQuery) -> list[Duplicate]:
    """Return what a text repeats if every line of it is an entry that ``context`` rendered.

    Returns nothing if any line says something else, or the text is not formatted like such entries.
    (A single line with nothing around it was already compared as it is.)
    """
    lines = [one_line(line) for line in query.content.splitlines()]
    lines = [line for line in lines if line and not is_frame(line)]
    echoes: list[Duplicate] = []
    for line in lines:
        readings = [
            reading for reading in _readings(line) if len(lines) > 1 or _is_entry(reading, query)
        ]
        echoed = (_echo(engine, query, reading) for reading in readings)
        echo = next(filter(None, echoed), None)
        if echo is None:
            return []
        echoes.append(echo)
    return echoes


class _Reading(NamedTuple):
    """What a line may show: a memory's text; its date, category, tags and id if present."""

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
        heads.append(heads[-1]._replace(text=f"{label}: {heads[-1].text}", label=None))
    if date is not None:
        heads.append(heads[-1]._replace(text=f"[{date}] {heads[-1].text}", date=None))
    for head in heads:
        if tags is not None:
            yield head._replace(tags=tags)
        yield head if tags is None else head._replace(text=f"{head.text} ({tags})")


def _is_entry(reading: _Reading, query: DuplicateQuery) -> bool:
    """Return whether a single line, read this way, is an entry, and not just a text.

    A dash with nothing else of an entry may be a minus sign: "- 5 degrees is the setpoint".
    """
    if any((reading.date, reading.label, reading.tags, reading.memory_id)):
        return True
    if reading.bullet == "-" and _WORD_OR_DATE.match(reading.text) is None:
        return False
    return reading.text != query.content


def _echo(engine: Engine, query: DuplicateQuery, reading: _Reading) -> Duplicate | None:
    """Return the memory that was recalled and that a line, read this way, shows."""
    fingerprint = fingerprint_of(reading.text, query.user_id, query.run_id)
    for candidate in engine.fingerprints.same(fingerprint, limit=_COMPARED):
        echo = _duplicate(query, candidate, DuplicateGrade.NEAR)
        if echo.recalled_at is None or not _is_shown_by(reading, candidate):
            continue
        if not _is_about(candidate, query) or grade_of(candidate.content, reading.text) is None:
            continue
        shown = replace(query, content=candidate.content)
        return None if engine.similarity.is_corrected(shown, [echo]) else echo
    return None


def _is_about(candidate: DuplicateCandidate, query: DuplicateQuery) -> bool:
    return (candidate.user_id, candidate.run_id) == (query.user_id, query.run_id)


def _is_shown_by(reading: _Reading, candidate: DuplicateCandidate) -> bool:
    """Return whether the date, label, tags and id that a line shows are the memory's own."""
    if reading.memory_id not in (None, candidate.memory_id):
        return False
    if reading.date is not None and reading.date != candidate.timestamp[:10]:
        return False
    if reading.label is not None and reading.label.lower() != as_data(candidate.category).lower():
        return False
    return reading.tags is None or reading.tags == _listed(candidate.tags)


def _listed(tags: str) -> str | None:
    """Return tags as they are shown; ``None`` if another program wrote no list."""
    try:
        names = json.loads(tags)
    except (ValueError, RecursionError):
        return None
    return as_data(", ".join(map(str, names))) if isinstance(names, list) else None


# Asked beforehand -----------------------------------------------------------------------------


def all_of(
    engine: Engine, content: str, *, user_id: str | None, run_id: str | None, now: datetime
) -> list[Duplicate]:
    """Return exact, near and similar duplicates of a text, best first."""
    query = DuplicateQuery(content, user_id, run_id, recalled=recall_window(now))
    matches = find(engine, query, fingerprint_of(content, user_id, run_id))
    matches += find_unfingerprinted(engine, query)
    was_recalled = any(match.recalled_at for match in matches)
    if was_recalled and engine.similarity.is_corrected(query, matches):
        matches = [match.model_copy(update={"recalled_at": None}) for match in matches]
    if not matches:
        matches = echoes_of_entries(engine, query)
    ids = [match.memory_id for match in matches]
    return matches + engine.similarity.similar(query, without=ids)


# All of them ----------------------------------------------------------------------------------


def groups(engine: Engine) -> Iterator[DuplicateGroup]:
    """Yield the groups of memories that say the same, ordered by their oldest memory."""
    for fingerprint, count in engine.fingerprints.repeated():
        same = engine.fingerprints.same(fingerprint, limit=_COMPARED)
        row_ids = [candidate.row_id for candidate in same]
        memories = engine.memories.get_many(row_ids)
        members = _alike([memories[row_id] for row_id in row_ids if row_id in memories])
        if len(members) > 1:
            grades = {grade_of(members[0].content, other.content) for other in members[1:]}
            is_exact = grades == {DuplicateGrade.EXACT}
            yield DuplicateGroup.model_construct(
                grade=DuplicateGrade.EXACT if is_exact else DuplicateGrade.NEAR,
                count=count,
                memories=members,
            )


def _alike(memories: Sequence[Memory]) -> list[Memory]:
    """Leave out memories whose fingerprint is equal to the first one's only by chance."""
    return [
        memory
        for memory in memories
        if (memory.user_id, memory.run_id) == (memories[0].user_id, memories[0].run_id)
        and grade_of(memories[0].content, memory.content) is not None
    ]

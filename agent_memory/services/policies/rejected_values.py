"""Rejected values: kept out of the memories, and found in those that contain one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

from agent_memory.errors import RejectedContent
from agent_memory.models.memory import Memory
from agent_memory.models.safety import Rejection
from agent_memory.services.policies.rejection_match import (
    TEXT_FIELDS,
    RejectedHashes,
    check_reason,
    earlier_words_of,
    find_rejected,
    form_of,
    hash_of,
    texts_in,
    texts_of,
    words_to_reject,
)
from agent_memory.storage.engine import Engine
from agent_memory.text.sentences import clauses, sentences

_LONGEST_PLACE: Final = 80


def reject(engine: Engine, text: str, reason: str | None = None, *, now: datetime) -> Rejection:
    """Reject a value and return its rejection: the existing one if it was rejected before.

    Raises ``ValidationError`` for a value without words or with over 1,000, and for a reason that
    contains a rejected value.
    """
    words = words_to_reject(text)
    words_hash = hash_of(words)
    rejected_hashes = dict(engine.rejections.hashes_by_length())
    rejected_hashes[len(words)] = rejected_hashes.get(len(words), frozenset()) | {words_hash}
    reason = check_reason(reason, rejected_hashes)
    engine.rejections.add(words_hash, len(words), reason, now)
    rejection = engine.rejections.find(words_hash)
    assert rejection is not None  # noqa: S101 - it was added in this transaction
    return rejection


def lift(engine: Engine, text_or_id: str | int) -> bool:
    """Allow a value again, by its text or the rejection's id; return whether it was rejected.

    A text is always a value: ``"7"`` is the word 7, ``7`` is the seventh rejection.
    """
    if isinstance(text_or_id, int):
        return engine.rejections.remove_by_id(text_or_id)
    hashes = {hash_of(words_to_reject(text_or_id)), hash_of(earlier_words_of(text_or_id))}
    return sum(engine.rejections.remove(words_hash) for words_hash in hashes) > 0


def refuse_rejected(
    engine: Engine,
    memory: Memory,
    rejected_hashes: RejectedHashes,
    *,
    at: tuple[str | int, ...] = (),
    fields: AbstractSet[str] | None = None,
) -> None:
    """Raise ``RejectedContent`` if a memory contains a rejected value.

    ``at`` is the memory's position in a list, ``fields`` those of an update (``None``: all).
    """
    texts = texts_of(memory, TEXT_FIELDS if fields is None else fields)
    _refuse(engine, texts, rejected_hashes, at)


def refuse_rejected_row(
    engine: Engine, row: Mapping[str, Any], rejected_hashes: RejectedHashes
) -> None:
    """Do the same for a memory that is given by column, JSON columns as their text."""
    columns = (row["content"], row.get("tags"), row.get("metadata"), row.get("task_metadata"))
    texts = _texts_of_row(*(str(column or "{}") for column in columns))
    _refuse(engine, texts, rejected_hashes, ())


def _refuse(
    engine: Engine,
    texts: Iterable[tuple[str, str]],
    rejected_hashes: RejectedHashes,
    at: tuple[str | int, ...],
) -> None:
    """Raise the error if texts contain a rejected value, of which the error has no word."""
    match = find_rejected(texts, rejected_hashes)
    if match is None:
        return
    place = match.field
    if len(place) > _LONGEST_PLACE or _is_rejected(place, rejected_hashes):
        place = place.partition(".")[0].partition("[")[0]  # keys of metadata may be the value
    rejection = engine.rejections.find(match.words_hash)
    number = 0 if rejection is None else rejection.rejection_id
    reason = "" if rejection is None else rejection.reason or ""
    if reason and _is_rejected(reason, rejected_hashes):
        reason = ""
    message = (
        f"contains a rejected value (rejection {number}{reason and f': {reason}'}):"
        f" leave it out, or lift the rejection: `agent-memory reject --lift {number}`"
    )
    loc = (*at, place)
    fault = {
        "loc": loc,
        "msg": message,
        "type": "rejected",
        "input": place,
        "ctx": {"rejection_id": number},
    }
    raise RejectedContent(f"{'.'.join(map(str, loc))}: {message}", [fault])


def allowed_part(text: str, rejected_hashes: RejectedHashes) -> str:
    """Return a text without the sentences and clauses that contain a rejected value.

    A hypothetical sentence is removed entirely: its clauses are not true alone. The result is empty
    if nothing is left, or if the value spans clauses. A speaker's name stays in front.
    """
    # Imported only if needed: compiling their patterns takes a sixth of a cold command.
    from agent_memory.extraction.rules.statements import speaker_and_text  # noqa: PLC0415
    from agent_memory.text.speech_acts import is_supposed  # noqa: PLC0415

    _, spoken = speaker_and_text(text)
    parts: list[str] = []
    for sentence in sentences(spoken):
        if not _is_rejected(sentence, rejected_hashes):
            parts.append(sentence)
        elif not is_supposed(sentence):
            parts.append(_allowed_clauses(sentence, rejected_hashes))
    rest = " ".join(part for part in parts if part)
    whole = f"{text[: len(text) - len(spoken)]}{rest}"
    return whole if rest and not _is_rejected(whole, rejected_hashes) else ""


def _allowed_clauses(sentence: str, rejected_hashes: RejectedHashes) -> str:
    kept = ""
    for joint, clause in clauses(sentence):
        if clause and not _is_rejected(clause, rejected_hashes):
            kept += f"{joint}{clause}" if kept else clause
    return kept


def _is_rejected(text: str, rejected_hashes: RejectedHashes) -> bool:
    return find_rejected([("", text)], rejected_hashes) is not None


# Which memories hold a value ----------------------------------------------------------------


def holders(engine: Engine, words: Sequence[str]) -> list[str]:
    """Return the ids of the memories that contain a value now, archived ones too, oldest first.

    ``words`` are those of the value, as ``words_of`` returns them; no words are in no memory.
    """
    if not words:
        return []
    rejected_hashes = {len(words): frozenset({hash_of(words)})}
    longest = max(words, key=len)
    return [
        memory_id
        for memory_id, *texts in engine.memory_rows.texts_with(longest)
        if _may_hold(texts, longest)
        and find_rejected(_texts_of_row(*texts), rejected_hashes) is not None
    ]


def count_holders(engine: Engine) -> int:
    """Count the memories that contain any rejected value now, including archived ones."""
    rejected_hashes = engine.rejections.hashes_by_length()
    if not rejected_hashes:
        return 0
    return sum(
        find_rejected(_texts_of_row(*texts), rejected_hashes) is not None
        for _, *texts in engine.memory_rows.texts_with("")
    )


def iterate_texts(engine: Engine) -> Iterator[dict[str, str]]:
    """Yield the id and texts of every memory, archived ones too; JSON columns are their text."""
    for row in engine.memory_rows.texts_with(""):
        yield dict(zip(("id", "content", "tags", "metadata", "task_metadata"), row, strict=True))


def iterate_old_texts(engine: Engine) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the id and the texts of every change of a memory, as the history has them."""
    for memory_id, *texts in engine.history.texts():
        for text in texts:
            values = _read(text)
            yield memory_id, values if isinstance(values, dict) else {"content": text}


def _may_hold(texts: Sequence[str], word: str) -> bool:
    """Return whether a row may contain a word: in a tenth of the time of the exact check."""
    content, *rest = texts
    return word in form_of(content) or any("\\" in text or word in form_of(text) for text in rest)


def _texts_of_row(content: str, tags: str, metadata: str, task: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a row as ``texts_of`` yields those of a memory."""
    yield "content", content
    yield from texts_in("tags", _read(tags))
    yield from texts_in("metadata", _read(metadata))
    details = _read(task)
    if isinstance(details, dict):
        yield from texts_in("task_metadata.outcome", details.get("outcome"))
        yield from texts_in("task_metadata.blockers", details.get("blockers"))
    else:
        yield from texts_in("task_metadata", details)


def _read(text: str) -> object:
    """Parse JSON; invalid JSON of another program is treated as a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

"""Undo, and a memory as of a moment: both go back along its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from agent_memory.errors import ValidationError
from agent_memory.models.columns import HISTORIC
from agent_memory.models.retention import Undone
from agent_memory.models.times import format_time
from agent_memory.services.policies.admission import Admission, storable_row
from agent_memory.services.review_answers import (
    answered_by,
    delete_and_hand_on,
    hold_what_is_kept,
    is_shorter,
    take_back_handed_on,
)
from agent_memory.services.writing.update import recorded
from agent_memory.storage.change_records import CREATED, Change, reverted
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Reason, RowValues, read_json

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner

_Outcome = Literal["removed", "restored", "changed"]

_OWNERS: Final = ("user_id", "run_id")


def undo(
    engine: Engine,
    change_id: int | None,
    *,
    session_id: str,
    now: datetime,
    owner: Owner | None = None,
    whole: bool = False,
) -> Undone:
    """Undo one change, or everything that was done last. Must run inside ``write()``.

    With ``whole``, a change is undone together with the operation that it belongs to. With an
    ``owner``, only the changes of this owner's memories are considered and undone. An undo makes
    changes of its own, which can be undone in turn. Raises ``ValidationError`` if there is nothing
    to undo, or if a later change has to be undone first; then nothing is changed.
    """
    if change_id is None and (verb := _undo_questions(engine, owner)):
        engine.operations.record_irreversible("undo", session_id=session_id, now=now)
        return Undone(verb=verb, change_ids=[], memory_ids=[])
    verb, changes = (
        _changes_to_undo(engine, change_id, whole=whole)
        if owner is None
        else _own_changes_to_undo(engine, change_id, owner)
    )
    by_memory: dict[str, list[Change]] = {}
    for change in changes:
        by_memory.setdefault(change.memory_id, []).append(change)
    changed: list[str] = []
    outcomes: dict[_Outcome, list[str]] = {}
    questions: list[tuple[Change, object]] = []
    admission = Admission(engine)
    with recorded(engine, "undo", session_id, now):
        for memory_id, memory_changes in by_memory.items():
            _refuse_if_changed_since(engine, memory_id, memory_changes)
            row = engine.memory_rows.get(memory_id)
            target = reverted(row, memory_changes)
            answered = _answered(engine, memory_id, row, target)
            if outcome := _set_row(
                engine, admission, memory_id, target, session_id=session_id, now=now
            ):
                changed.append(memory_id)
                outcomes.setdefault(outcome, []).append(memory_id)
            if row is not None and target is not None:
                _follow_reviews(engine, memory_id, memory_changes, answered, now=now)
            if row is None and target is not None and target.get("reviews"):
                deletion = next(each for each in reversed(memory_changes) if each.event == "DELETE")
                questions.append((deletion, read_json(str(target["reviews"]))))
        _ask_all_anew(engine, questions)  # now that all of their memories are there
    if change_id is not None and not changed:
        message = "everything it changed is already as it was before: there is nothing left to undo"
        raise ValidationError.of("change_id", message, change_id)
    change_ids = [change.change_id for change in changes]
    engine.graph_maintenance.follow_undo(changed, change_ids)
    for memory_id in {change.memory_id for change in changes if "content" in change.columns}:
        hold_what_is_kept(engine, memory_id)  # reviews were reopened or closed
    return Undone(verb=verb, change_ids=change_ids, memory_ids=changed, **outcomes)


def _answered(
    engine: Engine, memory_id: str, row: RowValues | None, target: RowValues | None
) -> list[int]:
    """Return the open reviews that are approved again when a memory gets an old text back."""
    if row is None or target is None or row["content"] == target["content"]:
        return []
    return answered_by(engine, memory_id, str(target["content"]))


def _follow_reviews(
    engine: Engine,
    memory_id: str,
    undone_changes: Sequence[Change],
    answered: Sequence[int],
    *,
    now: datetime,
) -> None:
    """Reopen the reviews whose approval is undone, and close those that it approves again."""
    closed_at = {change.changed_at for change in undone_changes if is_shorter(change)}
    reopened = sum(engine.reviews.reopen(memory_id, moment) for moment in closed_at)
    for review_id in answered:
        engine.reviews.dismiss(review_id, now=now)
    if reopened or answered:
        engine.reviews.renew(memory_id)


def row_at(engine: Engine, memory_id: str, moment: datetime) -> RowValues | None:
    """Return the row that a memory had at a moment, or ``None`` if it did not exist.

    Accesses are not in the history: they are the current ones, and none if another user or run has
    it since. Must run inside a transaction.
    """
    stamp = format_time(moment)
    changes = engine.history.of_memory(memory_id)
    later = []
    for change in reversed(changes):
        if change.changed_at <= stamp:
            break
        later.append(change)
    later.reverse()
    row = reverted(engine.memory_rows.get(memory_id), later)
    # A deletion is recorded with the version and time: only changes before that count.
    since = list(takewhile(lambda change: change.event != "DELETE", later))
    if row is not None and later:
        if since or not row["updated_at"]:
            last = changes[-len(later) - 1] if len(changes) > len(later) else None
            row["updated_at"] = last.changed_at if last is not None else row["timestamp"]
        updates = sum(change.event == "UPDATE" for change in since)
        version = row.get("version")
        row["version"] = max(1, version - updates) if isinstance(version, int) else 1
        if any(_moves(change) for change in later):
            # They told whose it was how often, and when, its new owner found it.
            row["access_count"], row["last_accessed"] = 0, None
    return row


def _moves(change: Change) -> bool:
    """Return whether a change gave a memory to another user or run."""
    return change.event == "UPDATE" and not change.columns.isdisjoint(_OWNERS)


def _undo_questions(engine: Engine, owner: Owner | None) -> str | None:
    """Take back an ``add`` that only opened reviews, or a ``dismiss``; return the verb.

    Returns ``None`` if that was not the last operation, or the last on the owner's memories, or if
    the reviews are all decided.
    """
    if owner is not None:
        last_change = engine.history.last_change_of(owner.user_id, owner.run_id)
        operation = engine.reviews.last_decided(owner, since=last_change)
    else:
        operation = engine.operations.last()
        if operation is not None and operation.last_change < engine.history.last_change():
            return None
    if operation is None or operation.first_change <= operation.last_change:
        return None
    memory_ids = engine.reviews.take_back(operation, owner)
    for memory_id in memory_ids:
        hold_what_is_kept(engine, memory_id)
    return operation.verb if memory_ids else None


def _changes_to_undo(
    engine: Engine, change_id: int | None, *, whole: bool
) -> tuple[str, list[Change]]:
    """Return the verb to undo and its changes, oldest first."""
    if change_id is not None:
        around = engine.operations.around(change_id) if whole else None
        first, last = (
            (change_id, change_id) if around is None else (around.first_change, around.last_change)
        )
        changes = engine.history.between(first, last)
        if not changes:
            message = f"no such change, {change_id}: `history` lists them"
            raise ValidationError.of("change_id", message, change_id)
        return changes[0].event if around is None else around.verb, changes
    operation = engine.operations.last()
    newest = engine.history.last_change()
    if operation is None or operation.last_change < newest:
        if not newest:
            raise ValidationError.of("undo", "nothing has been changed yet", None)
        changes = engine.history.between(newest, newest)
        return changes[0].event, changes
    changes = engine.history.between(operation.first_change, operation.last_change)
    if not changes:
        message = (
            f"the last operation, `{operation.verb}`, has nothing left to undo: give the"
            " number of an older change, which `history` lists"
        )
        if operation.verb == "restore":
            message += "; to go back, `restore` the file it replaced, which it named"
        raise ValidationError.of("undo", message, None)
    return operation.verb, changes


def own_change_ids(engine: Engine, memory_id: str, owner: Owner) -> frozenset[int]:
    """Return the changes of a memory while it was this owner's. Must run inside a transaction.

    Ownership is traced backwards, from what the memory is now or was when it was deleted: what was
    done to it before it came to this owner is another's.
    """
    row = engine.memory_rows.get(memory_id)
    owners = {} if row is None else {name: row[name] for name in _OWNERS}
    own: set[int] = set()
    for change in reversed(engine.history.of_memory(memory_id)):
        if change.event == "DELETE":
            owners = {name: change.old.get(name) for name in _OWNERS}
        if not owner.owns(**owners):
            break
        moved = change.columns.intersection(_OWNERS) if change.event == "UPDATE" else ()
        owners = {**owners, **{name: change.old.get(name) for name in moved}}
        if not owner.owns(**owners):
            break
        own.add(change.change_id)
    return frozenset(own)


def _own_changes_to_undo(
    engine: Engine, change_id: int | None, owner: Owner
) -> tuple[str, list[Change]]:
    """Return what to undo of one owner's memories, as ``_changes_to_undo`` does."""
    newest = change_id or engine.history.last_change_of(owner.user_id, owner.run_id)
    if not newest:
        raise ValidationError.of("undo", "nothing has been changed yet", None)
    operation = None if change_id is not None else engine.operations.around(newest)
    first, last = (
        (newest, newest) if operation is None else (operation.first_change, operation.last_change)
    )
    changes = engine.history.between(first, last)
    own: dict[str, frozenset[int]] = {
        memory_id: own_change_ids(engine, memory_id, owner)
        for memory_id in {change.memory_id for change in changes}
    }
    changes = [change for change in changes if change.change_id in own[change.memory_id]]
    if not changes:
        message = f"no such change, {newest}: `history` lists them"
        raise ValidationError.of("change_id", message, change_id)
    return (changes[0].event if operation is None else operation.verb), changes


def _refuse_if_changed_since(
    engine: Engine, memory_id: str, undone_changes: Sequence[Change]
) -> None:
    """Refuse to undo what a later change builds upon.

    A later change that was taken back since, by ``undo`` or by hand, does not count: what matters
    is that the memory is as these changes left it, or already as it was before them.
    """
    is_whole = any(change.event != "UPDATE" for change in undone_changes)
    touched = frozenset().union(*(change.columns for change in undone_changes))
    columns = [name for name in HISTORIC if is_whole or name in touched]

    def values(row: RowValues | None) -> list[Any] | None:
        return None if row is None else [row[name] for name in columns]

    changes = engine.history.of_memory(memory_id)
    later = [change for change in changes if change.change_id > undone_changes[-1].change_id]
    row = engine.memory_rows.get(memory_id)
    left = reverted(row, later)
    if values(row) == values(reverted(left, undone_changes)):
        return
    others = {name for name in columns if row is None or left is None or row[name] != left[name]}
    builds_upon: Change | None = None
    while values(row) != values(left):
        change = later.pop()
        row = reverted(row, [change])
        # A change whose values are as they were left may already be undone, and cannot be again.
        if change.event != "UPDATE" or change.columns & others:
            builds_upon = change
    if builds_upon is not None:
        raise ValidationError.of(
            "change_id",
            f"memory {memory_id} has since been changed again, by change"
            f" {builds_upon.change_id} ({builds_upon.event}): undo that one first",
            undone_changes[0].change_id,
        )


def _set_row(
    engine: Engine,
    admission: Admission,
    memory_id: str,
    target: Mapping[str, Any] | None,
    *,
    session_id: str,
    now: datetime,
) -> _Outcome | None:
    """Delete, restore or change a memory as ``target`` says; return what became of it."""
    row = engine.memory_rows.get(memory_id)
    if target is None:
        if row is None:
            return None
        delete_and_hand_on(engine, memory_id, session_id=session_id, now=now)
        return "removed"
    if row is None:
        admission.refuse_row(target)
        admission.refuse_beyond(target)
        _bring_back(engine, target, now=now)
        return "restored"
    changes = {name: target[name] for name in HISTORIC if target[name] != row[name]}
    if changes:
        # Values that it already has are allowed: archiving it, or bringing it back, adds nothing.
        admission.refuse_row({"content": "", **changes})
        admission.refuse_move(row, {**row, **changes})
        moment = format_time(now)
        try:
            engine.memory_rows.update(memory_id, changes, updated_at=moment)
        except ValidationError:
            if _has_lost_its_text(changes):
                raise
            mended = storable_row({**row, **changes}, moment=moment)
            engine.memory_rows.update(memory_id, mended, updated_at=moment)
    return "changed" if changes else None


def _has_lost_its_text(values: Mapping[str, Any]) -> bool:
    """Return whether a damaged history would replace a text by nothing."""
    return "content" in values and not str(values["content"] or "").strip()


def _bring_back(engine: Engine, target: Mapping[str, Any], *, now: datetime) -> None:
    """Insert a deleted memory again, with its row id, and into the scratchpad if it was there."""
    values = {name: target[name] for name in CREATED if target.get(name) is not None}
    version = values.get("version")
    values["version"] = version + 1 if isinstance(version, int) else 1
    values["updated_at"] = format_time(now)
    # A row that was deleted before the history recorded its number gets another one.
    row_id = target.get("seq")
    if isinstance(row_id, int) and engine.memory_rows.is_free(row_id):
        values["seq"] = row_id
    try:
        row_id = engine.memory_rows.insert(values)
    except ValidationError:
        # Another program wrote it past the constraints. Left as it was, the last that was done
        # could not be undone, nor anything before it.
        if _has_lost_its_text(values):
            raise
        mended = storable_row({**dict.fromkeys(CREATED), **values}, moment=format_time(now))
        row_id = engine.memory_rows.insert(
            {name: value for name, value in mended.items() if value is not None}
        )
    reason, _, entered_at = str(target.get("scratchpad")).partition(" ")
    if reason in get_args(Reason):  # the history is text that another program may have changed
        engine.scratchpad.put(row_id, reason=reason, entered_at=entered_at)


def _ask_all_anew(engine: Engine, questions: Sequence[tuple[Change, object]]) -> None:
    """Reopen reviews as they were when memories were deleted, each given with its reviews."""
    for deletion, asked in questions:
        _ask_anew(engine, deletion, asked)
    for deletion, _ in questions:
        take_back_handed_on(engine, deletion)


def _ask_anew(engine: Engine, deletion: Change, questions: object) -> None:
    """Reopen reviews as they were when a memory was deleted: of it, or of others because of it.

    Skips a review whose replacing memory no longer exists or whose own text was changed since,
    and whatever another program wrote into the history.
    """
    import pydantic  # noqa: PLC0415 - slow, and seldom asked for

    from agent_memory.models.portable import PortableReview  # noqa: PLC0415

    for question in questions if isinstance(questions, list) else ():
        try:
            review = PortableReview.model_validate(question)
        except pydantic.ValidationError:
            continue
        is_by_it = review.replaced_by == deletion.memory_id
        asked_id = review.id if is_by_it else deletion.memory_id
        row_id = engine.memories.row_id_of(asked_id)
        has_other = review.replaced_by is None or engine.memories.exists(review.replaced_by)
        if row_id is None or not has_other:
            continue
        if is_by_it and _is_changed(engine, asked_id, deletion):
            continue
        values = {**review.model_dump(), "proposed_at": format_time(review.proposed_at)}
        engine.reviews.put(row_id, values)


def _is_changed(engine: Engine, memory_id: str, since: Change) -> bool:
    """Return whether a memory's text was changed after another's change."""
    later = engine.history.of_memory(memory_id)
    return any(
        each.event == "UPDATE" and "content" in each.columns and each.change_id > since.change_id
        for each in later
    )

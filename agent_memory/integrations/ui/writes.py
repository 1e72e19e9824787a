"""What the page changes: each function answers one POST, by the verbs that programs use.

Its answer has the number of the change, if there is one: the page offers to undo it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final

from agent_memory import (
    AgentMemory,
    CheckReport,
    Duplicate,
    HistoryEntry,
    Memory,
    MemoryNotFound,
    Promotion,
    Review,
    Undone,
    ValidationError,
)
from agent_memory.integrations.ui.queries import text_of

_EDITABLE: Final = ("content", "category", "tags", "kind", "importance", "metadata")

Body = Mapping[str, Any]


def update(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Change fields of a memory, if it has not changed since the page showed it."""
    memory_id = text_of(body, "id")
    changes = {name: body[name] for name in _EDITABLE if name in body}
    if not changes:
        raise ValidationError.of("changes", f"give one of {', '.join(_EDITABLE)}", "")
    since = _last_change(memory)
    changed = memory.update(memory_id, if_version=body.get("version"), **changes)
    return {"version": changed.version, **_own_change(memory, [memory_id], since=since)}


def note_duplicates(memory: AgentMemory) -> None:
    """Let the library record duplicates among memories that came back or that others wrote.

    The page reads from a file opened read-only, where they cannot be recorded.
    """
    next(iter(memory.duplicate_groups()), None)


def open_agent(memory: AgentMemory, _: Body) -> dict[str, Any]:
    """Open an agent's memory for writing, which upgrades an older file."""
    note_duplicates(memory)
    return {"agent_id": memory.agent_id}


def archive(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Archive a memory, or the ``ids`` of several."""
    ids = _ids_of(body, "ids") if "ids" in body else [text_of(body, "id")]
    since = _last_change(memory)
    memory.archive(ids)
    return _own_change(memory, ids, since=since, whole=True)


def unarchive(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Bring a memory back from the archive."""
    memory_id = text_of(body, "id")
    since = _last_change(memory)
    memory.unarchive(memory_id)
    return _own_change(memory, [memory_id], since=since)


def forget(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Delete a memory; it stays in the history."""
    memory_id = text_of(body, "id")
    since = _last_change(memory)
    memory.delete(memory_id)
    return _own_change(memory, [memory_id], since=since)


def promote(memory: AgentMemory, body: Body) -> Promotion:
    """Put a memory into the scratchpad."""
    return memory.promote(text_of(body, "id"))


def demote(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Take a memory out of the scratchpad."""
    return {"demoted": memory.demote(text_of(body, "id"))}


def undo(memory: AgentMemory, body: Body) -> Undone:
    """Undo a change by its number; if ``whole``, with everything that was done together with it.

    A ``review_id`` reopens a dismissed review instead.
    """
    if "review_id" in body:
        return memory.undo(review_id=_number_of(body, "review_id"))
    # Without a number, `undo` would take back what was done last, by whomever.
    undone = memory.undo(_number_of(body, "change_id"), whole=body.get("whole") is True)
    note_duplicates(memory)
    return undone


def erase(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Erase a memory for good and return the receipt. ``confirm`` repeats its id."""
    memory_id = text_of(body, "id")
    if body.get("confirm") != memory_id:
        raise ValidationError.of("confirm", "must repeat the id of the memory", body.get("confirm"))
    receipt = memory.erase(memory_id, backups=body.get("backups") is True)
    return {**receipt.model_dump(mode="json"), "clean": receipt.clean}


def approve(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Forget a memory under review."""
    since = _last_change(memory)
    approved = memory.approve(_number_of(body, "review_id"))
    return _own_change(memory, [approved.id], since=since)


def dismiss(memory: AgentMemory, body: Body) -> Review:
    """Keep a memory under review."""
    return memory.dismiss(_number_of(body, "review_id"))


def merge(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Keep one memory, with the tags of all, and forget others that say the same."""
    keep, others = text_of(body, "keep"), _ids_of(body, "others")
    kept = memory.get(keep)
    if kept is None:
        raise MemoryNotFound(keep)
    same = {each.memory_id for each in _same_as(memory, kept)}
    if not same.issuperset(others):
        message = f"must be duplicates of {keep}: reload the page"
        raise ValidationError.of("others", message, others)
    since = _last_change(memory)
    memory.merge(keep, others)
    return {"forgotten": others, **_own_change(memory, others, since=since, whole=True)}


def _same_as(memory: AgentMemory, kept: Memory) -> list[Duplicate]:
    same = memory.duplicates(kept.content, user_id=kept.user_id, run_id=kept.run_id)
    return [each for each in same if each.grade != "similar" and each.memory_id != kept.id]


def reject(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Reject a text, so that no memory may hold it, and return those that hold it already."""
    text = text_of(body, "text")
    rejection = memory.reject(text, reason=body.get("reason") or None)
    return {**rejection.model_dump(mode="json"), "holders": memory.holders(text)}


def lift(memory: AgentMemory, body: Body) -> dict[str, Any]:
    """Let a rejected text be stored again."""
    return {"lifted": memory.lift(_number_of(body, "rejection_id"))}


def backup(memory: AgentMemory, _: Body) -> dict[str, Any]:
    """Copy the file into its folder of backups."""
    return {"path": str(memory.backup())}


def check(memory: AgentMemory, _: Body) -> dict[str, Any]:
    """Look for damage, and repair nothing. The index of a file opened read-only is not checked."""
    return _report(memory.check())


def repair(memory: AgentMemory, _: Body) -> dict[str, Any]:
    """Repair what can be repaired, losing nothing."""
    return _report(memory.check(repair=True))


def _report(report: CheckReport) -> dict[str, Any]:
    return {**report.model_dump(mode="json"), "ok": report.ok}


def _number_of(body: Body, name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValidationError.of(name, "must be a whole number", value)
    return value


def _ids_of(body: Body, name: str) -> list[str]:
    value = body.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise ValidationError.of(name, "must be a list of ids", value)
    return list(value)


def _last_change(memory: AgentMemory) -> int:
    return next((entry.change_id for entry in memory.history(limit=1)), 0)


def _own_change(
    memory: AgentMemory, memory_ids: Collection[str], *, since: int, whole: bool = False
) -> dict[str, Any]:
    """Return the number of the change just made, and whether to undo what was done with it.

    The number is ``None`` if nothing changed. The memory's last change may be older, or somebody
    else's: bringing back a memory that was not archived offered to undo its ADD.
    """
    for entry in _changes_since(memory, since):
        if entry.memory_id in memory_ids and entry.session_id == memory.session_id:
            return {"change_id": entry.change_id, "whole": whole}
    return {"change_id": None, "whole": whole}


def _changes_since(memory: AgentMemory, since: int) -> Iterator[HistoryEntry]:
    before: int | None = None
    while entries := memory.history(limit=100, before=before):
        yield from takewhile(lambda entry: entry.change_id > since, entries)
        before = entries[-1].change_id
        if before <= since:
            return

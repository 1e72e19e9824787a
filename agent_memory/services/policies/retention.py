"""Retention: what a policy archives, and which hard limits refuse more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from agent_memory.errors import LimitReached
from agent_memory.models.enums import MemoryKind, TaskStatus
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import TaskMetadata
from agent_memory.models.retention import KindLimit, RetentionPolicy, TidyItem
from agent_memory.models.times import age_in_days, format_time, read_stored_time, shifted
from agent_memory.storage.change_records import Amount, Usage
from agent_memory.storage.engine import Engine
from agent_memory.text.counts import counted

_SUGGESTED: Final = 3
"""The number of memories suggested for the archive when a hard limit is reached."""
_NOUNS: Final = {
    MemoryKind.CORE: ("core memory", "core memories"),
    MemoryKind.LEARNING: ("learning", "learnings"),
    MemoryKind.TASK: ("task", "tasks"),
}

_Chosen = dict[int, tuple[Usage, str]]
"""Use and reason of the memories to archive, by row id, in the order they were chosen."""


# What is archived ---------------------------------------------------------------------------


def plan(
    engine: Engine, policy: RetentionPolicy, *, now: datetime
) -> tuple[list[TidyItem], list[str]]:
    """Return what ``policy`` archives now, and the limits that stay exceeded, with the reason.

    First the learnings that were not used for long, then the tasks completed long ago, then what
    exceeds the soft limits, kind by kind; each least recently used first. Of tasks over their
    limit, completed ones go before the others (E). Must run inside a transaction.
    """
    chosen, notes = _choose(engine, policy, now=now)
    return _items(engine, chosen), notes


def preview(
    engine: Engine, policy: RetentionPolicy, *, now: datetime, limit: int
) -> tuple[int, list[TidyItem]]:
    """Return how many memories ``plan`` would archive, and the first ``limit`` of them."""
    chosen, _ = _choose(engine, policy, now=now)
    return len(chosen), _items(engine, dict(islice(chosen.items(), limit)))


def _choose(engine: Engine, policy: RetentionPolicy, *, now: datetime) -> tuple[_Chosen, list[str]]:
    kinds = _kinds_of(policy)
    if not kinds:
        return {}, []
    recent_since = _days_before(now, policy.recent_days)
    uses = engine.usage.uses(kinds, recent_since=recent_since)
    completed = dict(_completions(uses))
    chosen: _Chosen = {}
    for use, reason in _outlived(uses, completed, policy, now):
        chosen[use.row_id] = (use, reason)
    notes: list[str] = []
    for kind, limit in _limits(policy):
        candidates = [use for use in uses if use.kind is kind and use.row_id not in chosen]
        surplus = (
            _surplus(candidates, completed, kind, limit) if limit.enforcement == "soft" else {}
        )
        chosen.update(
            (use.row_id, surplus[use.row_id]) for use in candidates if use.row_id in surplus
        )
        amount = _amount(use for use in candidates if use.row_id not in surplus)
        notes += [
            f"{excess}, {_why_kept(policy, limit)}" for excess in _excesses(kind, limit, amount)
        ]
    return chosen, notes


def _kinds_of(policy: RetentionPolicy) -> set[MemoryKind]:
    kinds = {kind for kind, _ in _limits(policy)}
    if policy.archive_learnings_after_days is not None:
        kinds.add(MemoryKind.LEARNING)
    if policy.archive_tasks_after_days is not None:
        kinds.add(MemoryKind.TASK)
    return kinds


def _limits(policy: RetentionPolicy) -> list[tuple[MemoryKind, KindLimit]]:
    """Return the limits that are set, always in the same order."""
    return [
        (kind, limit)
        for kind in MemoryKind
        if (limit := policy.limits.get(kind)) is not None
        and (limit.max_memories is not None or limit.max_bytes is not None)
    ]


def _days_before(now: datetime, days: int) -> datetime:
    return shifted(now, -timedelta(days=min(days, timedelta.max.days)))


def _completions(uses: Iterable[Usage]) -> Iterator[tuple[int, datetime]]:
    """Yield the rows of the completed tasks that may be archived, and when each was completed."""
    for use in uses:
        if use.task is None or use.is_kept:
            continue
        try:
            task = TaskMetadata.model_validate_json(use.task)
        except ValueError:  # written by another program: unclear whether the task is done
            continue
        if task.status is TaskStatus.COMPLETED:
            yield use.row_id, task.completed_at or read_stored_time(use.updated_at)


def _outlived(
    uses: Sequence[Usage], completed: Mapping[int, datetime], policy: RetentionPolicy, now: datetime
) -> Iterator[tuple[Usage, str]]:
    """Yield what the rules about age archive, and why: learnings, then tasks."""
    if policy.archive_learnings_after_days is not None:
        last = format_time(_days_before(now, policy.archive_learnings_after_days))
        for use in uses:
            if use.kind is MemoryKind.LEARNING and use.last_used <= last and not use.is_kept:
                age = age_in_days(read_stored_time(use.last_used), now)
                yield use, f"not used for {_in_days(age)}"
    if policy.archive_tasks_after_days is not None:
        until = _days_before(now, policy.archive_tasks_after_days)
        for use in uses:
            if use.row_id in completed and completed[use.row_id] <= until:
                yield use, f"completed {_in_days(age_in_days(completed[use.row_id], now))} ago"


def _surplus(
    uses: Sequence[Usage], completed: Mapping[int, datetime], kind: MemoryKind, limit: KindLimit
) -> _Chosen:
    """Choose the least used memories beyond a limit, among those that may be archived."""
    left = _amount(uses)
    going: _Chosen = {}
    for use in sorted(uses, key=lambda use: use.row_id not in completed):
        beyond = _passed(kind, limit, left)
        if beyond is None:
            break
        if not use.is_kept:
            going[use.row_id] = (use, f"over the limit of {beyond}")
            left = Amount(left.count - 1, left.size - use.size)
    return going


def _amount(uses: Iterable[Usage]) -> Amount:
    sizes = [use.size for use in uses]
    return Amount(len(sizes), sum(sizes))


def _items(engine: Engine, chosen: _Chosen) -> list[TidyItem]:
    texts = engine.usage.texts(list(chosen)) if chosen else {}
    return [
        TidyItem(
            memory_id=texts[row_id][0],
            kind=use.kind,
            content=texts[row_id][1],
            reason=reason,
            last_used=read_stored_time(use.last_used),
        )
        for row_id, (use, reason) in chosen.items()
    ]


def _why_kept(policy: RetentionPolicy, limit: KindLimit) -> str:
    if limit.enforcement == "hard":
        return "which is a hard limit: archive or delete some by hand"
    if not policy.recent_days:
        return "but each is of high importance, promoted by hand or a possible correction"
    recently = f"used within {_in_days(policy.recent_days)}"
    return f"but each is of high importance, promoted by hand, a possible correction or {recently}"


# Limits -------------------------------------------------------------------------------------


def refuse_beyond(
    engine: Engine, policy: RetentionPolicy, adding: Mapping[MemoryKind, tuple[int, int]]
) -> None:
    """Raise ``LimitReached`` if incoming memories would exceed a hard limit.

    ``adding`` has, by kind, how many memories and how many bytes of content come in; a kind that
    does not grow is not refused, however large it is. Must run inside ``write()``, before they are
    stored; reads nothing from the file if no hard limit is concerned.
    """
    concerned = [
        (kind, limit)
        for kind, limit in _limits(policy)
        if limit.enforcement == "hard" and any(more > 0 for more in adding.get(kind, ()))
    ]
    if not concerned:
        return
    amounts = engine.usage.amounts([kind for kind, _ in concerned])
    for kind, limit in concerned:
        more, stored = Amount(*adding[kind]), amounts[kind]
        if more.count > 0 and _is_over(stored.count + more.count, limit.max_memories):
            fault = (
                f"{_counted(kind, stored.count)} stored, and {more.count:,} more would exceed"
                f" the hard limit of {limit.max_memories:,}"
            )
        elif more.size > 0 and _is_over(stored.size + more.size, limit.max_bytes):
            fault = (
                f"the {_NOUNS[kind][1]} take up {stored.size:,} bytes, and {more.size:,} more would"
                f" exceed the hard limit of {limit.max_bytes:,}"
            )
        else:
            continue
        raise LimitReached.of("kind", f"{fault}: {_advice(engine, kind)}", kind.value)


def refuse_return(
    engine: Engine, policy: RetentionPolicy | None, memory_ids: Sequence[str]
) -> None:
    """Raise ``LimitReached`` if bringing memories back would exceed a hard limit.

    Those that are not archived are counted already. Must run inside ``write()``, before they come
    back; reads nothing from the file if there is no hard limit.
    """
    if policy is None or all(limit.enforcement == "soft" for _, limit in _limits(policy)):
        return
    refuse_beyond(engine, policy, engine.usage.archived_amounts(memory_ids))


def room(engine: Engine, policy: RetentionPolicy) -> dict[MemoryKind, tuple[float, float]]:
    """Return how many memories and bytes of content still fit below each hard limit, by kind.

    The numbers may be negative. Kinds without a hard limit are left out.
    """
    hard = [(kind, limit) for kind, limit in _limits(policy) if limit.enforcement == "hard"]
    if not hard:
        return {}
    stored = engine.usage.amounts([kind for kind, _ in hard])
    return {
        kind: (
            math.inf if limit.max_memories is None else limit.max_memories - stored[kind].count,
            math.inf if limit.max_bytes is None else limit.max_bytes - stored[kind].size,
        )
        for kind, limit in hard
    }


def learnings_beyond(
    engine: Engine, policy: RetentionPolicy, memories: Sequence[Memory]
) -> list[Memory]:
    """Return memories as ``add`` stores them: core ones beyond a hard limit become learnings.

    Nobody asked for core memories, so none is refused.
    """
    if all(memory.kind is not MemoryKind.CORE for memory in memories):
        return list(memories)
    count, size = room(engine, policy).get(MemoryKind.CORE, (math.inf, math.inf))
    fitting = []
    for memory in memories:
        if memory.kind is MemoryKind.CORE:
            count, size = count - 1, size - len(memory.content.encode())
        is_beyond = memory.kind is MemoryKind.CORE and min(count, size) < 0
        update = {"kind": MemoryKind.LEARNING} if is_beyond else {}
        fitting.append(memory.model_copy(update=update))
    return fitting


def over_soft(engine: Engine, policy: RetentionPolicy) -> list[str]:
    """Return a line for each soft limit that is exceeded, by kind."""
    limits = [(kind, limit) for kind, limit in _limits(policy) if limit.enforcement == "soft"]
    if not limits:
        return []
    amounts = engine.usage.amounts([kind for kind, _ in limits])
    return [
        f"{excess}: `agent-memory tidy` archives the least used"
        for kind, limit in limits
        for excess in _excesses(kind, limit, amounts[kind])
    ]


def _is_over(number: int, limit: int | None) -> bool:
    return limit is not None and number > limit


def _passed(kind: MemoryKind, limit: KindLimit, amount: Amount) -> str | None:
    words = _NOUNS[kind][1]
    if _is_over(amount.count, limit.max_memories):
        return f"{limit.max_memories:,} {words}"
    if _is_over(amount.size, limit.max_bytes):
        return f"{limit.max_bytes:,} bytes of {words}"
    return None


def _excesses(kind: MemoryKind, limit: KindLimit, amount: Amount) -> Iterator[str]:
    """Yield by how much each limit of a kind is exceeded."""
    if limit.max_memories is not None and amount.count > limit.max_memories:
        excess = amount.count - limit.max_memories
        yield f"{_counted(kind, excess)} over the limit of {limit.max_memories:,}"
    if limit.max_bytes is not None and amount.size > limit.max_bytes:
        excess = amount.size - limit.max_bytes
        size = counted(excess, "byte", "bytes")
        yield f"the {_NOUNS[kind][1]} are {size} over the limit of {limit.max_bytes:,}"


def _advice(engine: Engine, kind: MemoryKind) -> str:
    suggested = engine.usage.least_used(kind, limit=_SUGGESTED)
    making_room = "archive or delete some"
    if suggested:
        making_room += f", the least used first: `agent-memory archive {' '.join(suggested)}`"
    return f"{making_room}, or raise the limit with `agent-memory configure retention`"


def _counted(kind: MemoryKind, count: int) -> str:
    singular, plural = _NOUNS[kind]
    return counted(count, f"{singular} is", f"{plural} are")


def _in_days(days: int) -> str:
    return counted(days, "day", "days")

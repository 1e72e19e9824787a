"""The statistics of one file, read in one transaction that delays no writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, Final

from agent_memory.errors import StorageFull, StorageLocked
from agent_memory.models.agent import AgentConfig
from agent_memory.models.decision import Review
from agent_memory.models.event import MemoryEvent
from agent_memory.models.retention import RETENTION_PRESETS, RetentionPolicy, TidyItem
from agent_memory.models.statistics import (
    Contradiction,
    Growth,
    MemoryStatistics,
    OldAnswer,
    RecalledMemory,
    RecallStatistics,
    Recommendation,
)
from agent_memory.models.times import age_in_days, format_time, read_stored_time, shifted
from agent_memory.services.policies import retention
from agent_memory.services.statistics.periods import Periods, is_day
from agent_memory.services.statistics.recalls import RecallLog
from agent_memory.services.unit_of_work import Service
from agent_memory.services.writing.duplicates import complete_fingerprints
from agent_memory.storage.engine import Engine
from agent_memory.storage.queries import DayOfChanges, StatisticsField, Totals

_FIELDS: Final[dict[str, StatisticsField]] = {
    "categories": "category",
    "sources": "source",
    "sessions": "session",
}
_UNUSED_DAYS: Final = 30
"""Days without any access after which a memory counts as never recalled (B)."""
_OLD_DAYS: Final = 90
"""Days after which a memory is old: E archives memories that were not used for so long."""
_OFTEN: Final = 3
"""The number of times that makes a question frequent, as three accesses make a memory so (A, B)."""
_TOO_LARGE_SHARE: Final = 0.5
_LEAST_SEARCHES: Final = 10


class StatisticsService(Service):
    """Counts what is in a file and in its event log."""

    def statistics(
        self, events: Iterable[MemoryEvent], *, since: datetime | None, limit: int
    ) -> MemoryStatistics:
        """Return all figures, with the first ``limit`` items of each list."""
        log = RecallLog(events, since=since)
        # Rows of another program have no fingerprints. While somebody writes, or the disk is full,
        # these rows are not checked for duplicates: statistics are no reason to wait, or to fail.
        with suppress(StorageLocked, StorageFull), self._engine.nowait():
            complete_fingerprints(self._engine)
        self._unit_of_work.flush()
        # On a separate connection: no other thread waits for the second that this may take.
        with self._engine.reader() as engine:
            return _Snapshot(engine, log, now=self._clock(), limit=limit).statistics(since)


class _Snapshot:
    """One state of a file, and what its event log says."""

    def __init__(self, engine: Engine, log: RecallLog, *, now: datetime, limit: int) -> None:
        self._engine = engine
        self._log = log
        self._now = now
        self._limit = limit
        self._settings = engine.agent.readable_config()

    def statistics(self, since: datetime | None) -> MemoryStatistics:
        """Return all figures."""
        begin = "" if since is None else format_time(since)
        queries = self._engine.statistics
        rows = {name: queries.stored_by_day(field, since=begin) for name, field in _FIELDS.items()}
        changes = queries.changes_by_day(since=begin)
        days = [day for _, day, _ in rows["categories"]] + [change.day for change in changes]
        periods = _periods(days, since=since, now=self._now)
        totals = queries.totals()
        figures = {
            "agent_id": self._engine.agent_id,
            "since": since,
            "until": self._now,
            "period_unit": periods.unit,
            "periods": periods.starts,
            "memory_count": totals.memories,
            "archived_count": totals.archived,
            "content_bytes": totals.content_bytes,
            "file_bytes": totals.file_bytes,
            "growth": _growth(periods, changes, totals),
            "recalls": _recalls(periods, self._log, self._settings, now=self._now),
            **{name: periods.breakdown(rows[name], limit=self._limit) for name in _FIELDS},
            **self._of_use(),
        }
        return MemoryStatistics(**figures)

    def _of_use(self) -> dict[str, Any]:
        """Return what is recalled and what is not, what is missing, and what to do about it."""
        unused_since = format_time(shifted(self._now, -timedelta(days=_UNUSED_DAYS)))
        never_count, never = self._engine.statistics.never_recalled(
            written_until=unused_since, limit=self._limit
        )
        most_recalled = self._most_recalled()
        gaps, old_answers = self._log.gaps(), self._old_answers()
        reviews = self._engine.reviews.all()
        repeated = self._engine.fingerprints.repeated()
        duplicates = [self._ids_of(fingerprint) for fingerprint, _ in repeated[: self._limit]]
        archivable_count, archivable = self._archivable()
        return {
            "never_recalled_count": never_count,
            "never_recalled": never,
            "most_recalled": most_recalled,
            "gap_count": len(gaps),
            "gaps": gaps[: self._limit],
            "old_answer_count": len(old_answers),
            "old_answers": old_answers[: self._limit],
            "contradiction_count": len(reviews),
            "contradictions": [
                Contradiction.model_validate(review, from_attributes=True)
                for review in reviews[: self._limit]
            ],
            "duplicate_count": sum(count - 1 for _, count in repeated),
            "duplicate_group_count": len(repeated),
            "duplicates": duplicates,
            "archivable_count": archivable_count,
            "recommendations": [
                *map(_contradicted, reviews[: self._limit]),
                *(
                    _to_look_at(
                        memory.memory_id,
                        f"returned by {memory.share:.0%} of all searches, whatever the question",
                    )
                    for memory in most_recalled
                    if memory.is_too_often
                ),
                *(
                    _to_look_at(
                        answer.memory_id,
                        f"came first in {answer.asked:,} searches, and was last written"
                        f" {answer.age_days:,} days ago: is it still true?",
                    )
                    for answer in old_answers[: self._limit]
                ),
                *(
                    _to_archive(others, f"the same as {first}", first)
                    for first, *others in duplicates
                ),
                *(_to_archive([item.memory_id], item.reason) for item in archivable),
            ],
        }

    def _ids_of(self, fingerprint: int) -> list[str]:
        """Return the ids of memories that say the same: the first, then others up to the limit."""
        same = self._engine.fingerprints.same(fingerprint, limit=self._limit + 1)
        return [candidate.memory_id for candidate in same]

    def _most_recalled(self) -> list[RecalledMemory]:
        searches = self._engine.agent.queries()
        memories = []
        for memory_id, count in self._engine.statistics.most_recalled(limit=self._limit):
            # A memory from another file brought its count along.
            share = count / searches if count <= searches else None
            is_too_often = searches >= _LEAST_SEARCHES and (share or 0.0) > _TOO_LARGE_SHARE
            memories.append(
                RecalledMemory(
                    memory_id=memory_id, access_count=count, share=share, is_too_often=is_too_often
                )
            )
        return memories

    def _old_answers(self) -> list[OldAnswer]:
        """Return the old memories that often came first, most often first."""
        often = {
            memory_id: answer
            for memory_id, answer in self._log.answers.items()
            if answer.asked >= _OFTEN
        }
        answers = []
        for memory_id, written in self._engine.statistics.written(often).items():
            answer, age = often[memory_id], age_in_days(read_stored_time(written), self._now)
            if age >= _OLD_DAYS and answer.last_asked is not None:
                answers.append(
                    OldAnswer(
                        memory_id=memory_id,
                        asked=answer.asked,
                        last_asked=answer.last_asked,
                        age_days=age,
                        questions=answer.questions,
                    )
                )
        return sorted(answers, key=lambda answer: (-answer.asked, answer.memory_id))

    def _archivable(self) -> tuple[int, list[TidyItem]]:
        """Return how many memories ``tidy`` would archive, and the first of them."""
        policy = self._settings.retention
        if policy is None:
            ages = {**RETENTION_PRESETS["standard"], "limits": {}}
            policy = RetentionPolicy.model_validate(ages)
        return retention.preview(self._engine, policy, now=self._now, limit=self._limit)


def _periods(days: Sequence[str], *, since: datetime | None, now: datetime) -> Periods:
    """Return the periods from ``since``, else from the first of the days, until now."""
    today = now.date()
    if since is not None:
        return Periods(min(since.date(), today), today)
    first = min((day for day in set(days) if is_day(day)), default=today.isoformat())
    return Periods(min(date.fromisoformat(first), today), today)


def _growth(periods: Periods, changes: Sequence[DayOfChanges], totals: Totals) -> Growth:
    """Return what happened in each period, and the totals at its end.

    Totals are counted back from the present: the history may lack its beginning.
    """
    by_event = {
        event: periods.counts((each.day, each.changes) for each in changes if each.event == event)
        for event in ("ADD", "UPDATE", "DELETE")
    }
    grown = periods.counts((change.day, change.grown_bytes) for change in changes)
    memories, sizes = [totals.memories + totals.archived], [totals.content_bytes]
    for place in range(len(grown) - 1, 0, -1):
        net = by_event["ADD"][place] - by_event["DELETE"][place]
        memories.append(max(0, memories[-1] - net))
        sizes.append(max(0, sizes[-1] - grown[place]))
    return Growth(
        added=by_event["ADD"],
        changed=by_event["UPDATE"],
        deleted=by_event["DELETE"],
        memories=memories[::-1],
        content_bytes=sizes[::-1],
    )


def _recalls(
    periods: Periods, log: RecallLog, settings: AgentConfig, *, now: datetime
) -> RecallStatistics:
    days = 1.0 if log.first_event is None else (now - log.first_event) / timedelta(days=1)
    return RecallStatistics(
        event_log=settings.event_log,
        first_event=log.first_event,
        **{name: periods.counts(counts.items()) for name, counts in log.counts.items()},
        memories_per_day=round(log.counts["memories"].total() / max(1.0, days), 3),
    )


# Recommendations ------------------------------------------------------------------------------


def _contradicted(review: Review) -> Recommendation:
    other = f"{review.replaced_by} contradicts it" if review.replaced_by else "under review"
    sure = "" if review.confidence is None else f" ({review.confidence:.0%} sure)"
    return Recommendation(
        action="review",
        memory_ids=[review.memory_id],
        reason=f"{other}{sure}: approving deletes it, `--dismiss` keeps it",
        command=f"agent-memory review --approve {review.review_id}",
        review_id=review.review_id,
    )


def _to_look_at(memory_id: str, reason: str) -> Recommendation:
    command = _command("show", memory_id)
    return Recommendation(action="review", memory_ids=[memory_id], reason=reason, command=command)


def _to_archive(ids: list[str], reason: str, same_as: str | None = None) -> Recommendation:
    command = _command("archive", *ids)
    return Recommendation(
        action="archive", memory_ids=ids, reason=reason, command=command, same_as=same_as
    )


def _command(verb: str, *memory_ids: str) -> str:
    """Return a command about memories; an id may look like an option."""
    options = ["--"] if any(memory_id.startswith("-") for memory_id in memory_ids) else []
    return " ".join(["agent-memory", verb, *options, *memory_ids])

"""The table of memories in SQLite: what a search asks of it is cached while nothing changes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.models.columns import COLUMNS
from agent_memory.models.excerpt import MemoryExcerpt
from agent_memory.models.fields import is_named_session, to_json
from agent_memory.models.times import read_stored_time
from agent_memory.storage.filters import (
    NOT_ARCHIVED,
    All,
    AnyOf,
    Equals,
    Filter,
    HasTag,
    spread_rows,
)
from agent_memory.storage.records import Row, Signals, read_list, signals_of_row
from agent_memory.storage.sql import Condition, memories
from agent_memory.storage.sql.memories import KEYS, NEWEST, sorting
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.filters import (
    compiled,
    tags_of,
    users_of,
    with_tags_looked_up,
    with_users_listed,
)
from agent_memory.storage.sqlite.kept_rows import KeptRows
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.text.dates import Span

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory
    from agent_memory.models.owner import Owner

_INSERT: Final = f"""
INSERT INTO memories ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})"""
_OF_EXCERPT: Final = [
    f"m.{name}" for name in MemoryExcerpt._fields if name not in ("agent_id", "under_review")
]
_EXCERPTS: Final = f"SELECT m.seq, {', '.join(_OF_EXCERPT)} FROM memories AS m"
_SELECT_EXCERPTS: Final = f"{_EXCERPTS} WHERE m.seq IN (SELECT value FROM json_each(?))"
_SELECT_RECENT: Final = f"""SELECT {memories.COLUMNS} FROM memories AS m
WHERE {{condition}} ORDER BY {{order}} LIMIT ? OFFSET ?"""
# If no index has the order (that of users does not), rows are chosen before their texts are read.
_SELECT_CHOSEN: Final = f"""
WITH chosen AS (SELECT m.seq FROM memories AS m
  WHERE {{condition}} ORDER BY {{order}} LIMIT ? OFFSET ?)
SELECT {memories.COLUMNS} FROM chosen CROSS JOIN memories AS m USING (seq)
ORDER BY {{order}}"""
_SEEN: Final = "(SELECT {0} FROM memories AS m WHERE m.id = ?1)"
_COMES_AFTER: Final = "(m.timestamp, m.seq) {than} " + _SEEN.format("m.timestamp, m.seq")
_SELECT_BEGINNINGS: Final = """
WITH chosen AS (SELECT m.seq FROM memories AS m
  WHERE {condition} ORDER BY m.timestamp DESC, m.seq DESC LIMIT ?)
SELECT substr(m.content, 1, ?) FROM chosen CROSS JOIN memories AS m USING (seq)
ORDER BY m.timestamp DESC, m.seq DESC"""
_SELECT_SIGNALS: Final = """
SELECT m.seq, m.created_by_session, m.timestamp, m.access_count
FROM memories AS m NOT INDEXED
WHERE m.seq IN (SELECT value FROM json_each(?)) AND {condition}"""
# Conditions that an index can answer are tested before the row is read, in row order.
_SELECT_AMONG: Final = """
SELECT m.seq FROM json_each(?) AS r CROSS JOIN memories AS m NOT INDEXED ON m.seq = r.value
WHERE {condition} LIMIT ?"""
_SELECT_BETWEEN: Final = """
SELECT m.seq FROM memories AS m WHERE m.timestamp BETWEEN ? AND ? AND {condition}
ORDER BY m.timestamp DESC, m.seq DESC LIMIT ?"""
MOST_KEPT: Final = 20_000
"""Memories whose session, time and neighbours are cached for the next search, some 500 bytes
each."""
MOST_SESSIONS: Final = 5_000
"""Sessions whose memories are cached, some 40 bytes per memory."""
MOST_FILTERS: Final = 16
"""Filters for which the beginnings of the newest memories, and how many pass, are cached."""
SHORT_SESSION: Final = 64
"""Sessions of up to this many memories are listed completely to find a memory's neighbours: that
takes one index lookup per session, instead of four per memory."""
_SELECT_NAMES: Final = """
SELECT m.seq, m.created_by_session FROM memories AS m NOT INDEXED
WHERE m.seq IN (SELECT value FROM json_each(?))"""
_SELECT_SESSIONS: Final = f"""
SELECT s.value, (SELECT group_concat(seq) FROM (
    SELECT seq FROM memories WHERE created_by_session = s.value
    ORDER BY timestamp, seq LIMIT {SHORT_SESSION + 1}))
FROM json_each(?) AS s"""
# The two nearest on a side, nearest first: those of the same time, then those of another. A
# comparison of (timestamp, seq) looks up only the timestamp: with an import that has one date for
# 25,000 memories, a search then took 0.4 s. For one owner's rows the index of users has the same
# order, so other users' memories in that session are not even visited.
_SELECT_SIDE: Final = """
  (SELECT group_concat(seq) FROM (SELECT seq FROM memories
     WHERE created_by_session = m.created_by_session
       AND timestamp = m.timestamp AND seq {than} m.seq {{own}}
     ORDER BY seq {order} LIMIT 2)),
  (SELECT group_concat(seq) FROM (SELECT seq FROM memories
     WHERE created_by_session = m.created_by_session AND timestamp {than} m.timestamp {{own}}
     ORDER BY timestamp {order}, seq {order} LIMIT 2))"""
_SIDES: Final = ", ".join(
    _SELECT_SIDE.format(than=than, order=order) for than, order in (("<", "DESC"), (">", "ASC"))
)
_SELECT_AROUND: Final = f"""
SELECT m.seq, {_SIDES} FROM memories AS m NOT INDEXED
WHERE m.seq IN (SELECT value FROM json_each(?)) AND m.created_by_session <> 'sqlite3'"""
LISTED_FOR_A_ROW: Final = 8
"""An index lists this many rows of a user in the time it takes to read one row."""
_COUNT_TAGGED: Final = """
SELECT count(*) FROM (SELECT 1 FROM memory_tags
  WHERE tag IN (SELECT value FROM json_each(?)) LIMIT ?)"""
_COUNT_ACCESSES: Final = """
UPDATE OR IGNORE memories SET access_count = min(access_count + ?, 9007199254740991),
  last_accessed = max(coalesce(last_accessed, ''), ?)
WHERE seq = ?"""


class MemoryTable(memories.MemoryTable):
    """The table of memories: rows in, models out."""

    _db: Database
    _compiled = staticmethod(compiled)
    # The newest are tested first: counting a million takes 8 ms.
    _HAS_OTHERS = """
SELECT EXISTS (
    SELECT 1 FROM (SELECT user_id FROM memories ORDER BY seq DESC LIMIT 100)
    WHERE user_id IS NOT :user_id)
  OR EXISTS (SELECT 1 FROM memories WHERE user_id > :user_id)
  OR EXISTS (SELECT 1 FROM memories WHERE user_id < :user_id)
  OR (SELECT count(*) FROM memories) > (SELECT count(*) FROM memories WHERE user_id = :user_id)"""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._agent = AgentTable(database)
        self._signals: KeptRows[int, Signals] = KeptRows(MOST_KEPT)
        self._neighbours: KeptRows[int, dict[int, int]] = KeptRows(MOST_KEPT)
        self._sessions: KeptRows[str, tuple[int, ...]] = KeptRows(MOST_SESSIONS)
        self._beginnings: KeptRows[Hashable, list[str]] = KeptRows(MOST_FILTERS)
        self._numbers: KeptRows[Hashable, float] = KeptRows(MOST_FILTERS)

    @property
    def _agent_id(self) -> str:
        return self._agent.agent_id

    def insert(self, memory: Memory) -> int:
        from agent_memory.storage.memory_values import column_value  # noqa: PLC0415 - see _models

        self._db.run(_INSERT, [column_value(getattr(memory, name)) for name in COLUMNS])
        return int(self._db.value("SELECT last_insert_rowid()"))

    def excerpts(self, row_ids: Iterable[int]) -> dict[int, MemoryExcerpt]:
        rows = self._db.rows(_SELECT_EXCERPTS, (to_json(list(row_ids)),))
        agent_id = self._agent_id
        return {row[0]: _excerpt_of(row, agent_id) for row in rows}

    def recent_excerpts(self, filters: Filter, *, limit: int) -> list[MemoryExcerpt]:
        condition = compiled(filters)
        sql = f"{_EXCERPTS} WHERE {condition.sql} ORDER BY {NEWEST} LIMIT ?"
        rows = self._db.rows(sql, (*condition.values, limit))
        return [_excerpt_of(row, self._agent_id) for row in rows]

    def readable(self, *, after: int, until: int) -> list[Memory]:
        is_single = until - after <= 1
        try:
            # Even for a span of one, SQLite would look at the next row, which may be damaged.
            rows = (
                self._db.rows(f"{memories.SELECT} WHERE m.seq = ?", (until,))
                if is_single
                else self._db.rows(
                    f"{memories.SELECT} WHERE m.seq > ? AND m.seq <= ?", (after, until)
                )
            )
        except StorageError:
            if is_single:
                return []
            middle = (after + until) // 2
            return self.readable(after=after, until=middle) + self.readable(
                after=middle, until=until
            )
        return self._models(rows)

    def recent(
        self,
        filters: Filter,
        *,
        limit: int,
        offset: int,
        after: str | None = None,
        order: str = "newest",
    ) -> list[Memory]:
        condition = compiled(filters)
        has_no_index = "m.user_id" in condition.sql or order in KEYS
        sql = (_SELECT_CHOSEN if has_no_index else _SELECT_RECENT).format(
            condition=condition.sql if after is None else f"{_behind(order)} AND {condition.sql}",
            order=sorting(order),
        )
        last_seen = () if after is None else (after,)
        rows = self._db.rows(sql, (*last_seen, *condition.values, limit, offset))
        return self._models(rows)

    def beginnings(self, filters: Filter, *, characters: int, limit: int) -> list[str]:
        kept = self._beginnings.current(self._db.stamp())
        key = (repr(filters), characters, limit)
        if key not in kept:
            condition = compiled(filters)
            sql = _SELECT_BEGINNINGS.format(condition=condition.sql)
            rows = self._db.rows(sql, (*condition.values, limit, characters))
            kept[key] = [text for (text,) in rows]
        return kept[key]

    def are_fewer(self, filters: Filter, *, than: int) -> bool:
        """Return whether fewer memories than so many pass a filter."""
        kept, key = self._numbers.current(self._db.stamp()), (repr(filters), than)
        if key not in kept:
            kept[key] = len(self.row_ids(filters, limit=than))
        return kept[key] < than

    def row_ids(
        self, filters: Filter, *, among: Sequence[int] | None = None, limit: int = -1
    ) -> list[int]:
        condition = compiled(filters)
        if among is None:
            sql = f"SELECT m.seq FROM memories AS m WHERE {condition.sql} LIMIT ?"
            values: tuple[object, ...] = (*condition.values, limit)
        else:
            condition = with_tags_looked_up(condition, "r.value")
            if self._are_soon_listed(users_of(filters), len(among)):
                condition = with_users_listed(condition, "r.value")
            sql = _SELECT_AMONG.format(condition=condition.sql)
            values = (to_json(sorted(set(among))), *condition.values, limit)
        return [row_id for (row_id,) in self._db.rows(sql, values)]

    def _are_soon_listed(self, users: Sequence[str], rows: int) -> bool:
        """Return whether listing the memories of some users is faster than reading some rows.

        An index has the list: of 1,000,000 memories, listing 25,000 takes 4 ms, reading 7,500 takes
        16.
        """
        return bool(users) and all(
            self.count(Equals("user_id", user)) < LISTED_FOR_A_ROW * rows for user in users
        )

    def share_passing(self, filters: Filter) -> float:
        kept, key = self._numbers.current(self._db.stamp()), repr(filters)
        if key not in kept:
            sample = spread_rows(self.last_row_id())
            kept[key] = len(self.row_ids(filters, among=sample)) / max(1, len(sample))
        return kept[key]

    def last_row_id_of_damaged(self) -> int:
        for sql in (
            "SELECT seq FROM sqlite_sequence WHERE name = 'memories'",
            "SELECT max(seq) FROM memories",
        ):
            try:
                return int(self._db.value(sql) or 0)
            except StorageError:
                continue
        return 0

    def count_accesses(self, accesses: Mapping[int, tuple[int, str]]) -> None:
        """Add to the access counts: by row id, the number of accesses and the time of the last.

        A damaged row that cannot be updated is skipped: it must not prevent others from being
        stored.
        """
        for row_id in accesses:
            self._signals.forget(row_id)
        with self._db.counting():
            self._db.run_many(
                _COUNT_ACCESSES,
                ((times, moment, row_id) for row_id, (times, moment) in accesses.items()),
            )

    def passes_nothing(self, filters: Filter) -> bool:
        """Return whether a filter asks for a tag that no memory has, as far as is quickly known."""
        if isinstance(filters, HasTag):  # the table may have non-ASCII capitals
            return filters.tag.isascii() and not self.tagged([filters.tag], limit=1)
        if isinstance(filters, All):
            return any(map(self.passes_nothing, filters.parts))
        return isinstance(filters, AnyOf) and all(map(self.passes_nothing, filters.parts))

    def tagged(self, tags: Sequence[str], *, limit: int) -> int:
        """Count the memories with any of the tags, up to a limit."""
        return int(self._db.value(_COUNT_TAGGED, (to_json(list(tags)), limit)))

    def condition_of_first(self, filters: Filter, limit: int, row_id: str = "m.seq") -> Condition:
        """Return the form of the condition that finds the first rows of an order sooner.

        A common tag is looked up at each row until enough have it. Of a rare one, the memories are
        listed.
        """
        condition = compiled(filters)
        tags = tags_of(filters)
        if not tags:
            return condition
        size = self.last_row_id()
        tagged = self.tagged(tags, limit=size)
        is_common = tagged * tagged > limit * size
        return with_tags_looked_up(condition, row_id) if is_common else condition

    def ranking_signals(self, row_ids: Sequence[int], filters: Filter) -> list[Signals]:
        if filters != NOT_ARCHIVED:
            return self._read_signals(row_ids, filters)
        kept = self._signals.current(self._db.stamp())
        wanted = set(row_ids)
        if missing := wanted.difference(kept):
            kept.update((row.row_id, row) for row in self._read_signals(missing, filters))
        return [kept[row_id] for row_id in sorted(wanted) if row_id in kept]

    def _read_signals(self, row_ids: Iterable[int], filters: Filter) -> list[Signals]:
        condition = with_tags_looked_up(compiled(filters))
        sql = _SELECT_SIGNALS.format(condition=condition.sql)
        rows = self._db.rows(sql, (to_json(list(row_ids)), *condition.values))
        return list(map(signals_of_row, rows))

    def between(self, filters: Filter, spans: Iterable[Span], *, limit: int) -> list[int]:
        if not (spans := list(spans)):
            return []
        condition = self.condition_of_first(filters, limit)
        return self._within(spans, _SELECT_BETWEEN, condition, limit)

    def neighbours(
        self, row_ids: Sequence[int], owner: Owner | None = None
    ) -> dict[int, dict[int, int]]:
        if owner is not None:
            return self._read_neighbours(row_ids, owner)
        kept = self._neighbours.current(self._db.stamp())
        if missing := set(row_ids).difference(kept):
            kept.update(self._read_neighbours(list(missing), owner))
        return {row_id: kept[row_id] for row_id in sorted(row_ids) if row_id in kept}

    def _read_neighbours(
        self, row_ids: Sequence[int], owner: Owner | None
    ) -> dict[int, dict[int, int]]:
        around = self._around_in_short_sessions(row_ids) if owner is None else {}
        others = [row_id for row_id in row_ids if row_id not in around]
        if others:
            own = "" if owner is None else "AND user_id = m.user_id"
            if owner is not None and owner.run_id is not None:
                own += " AND run_id = m.run_id"
            rows = self._db.rows(_SELECT_AROUND.format(own=own), (to_json(others),))
            for row_id, *sides in rows:
                same_before, before, same_after, after = map(_listed, sides)
                around[row_id] = _by_distance(same_before + before, same_after + after)
        return {row_id: around[row_id] for row_id in sorted(around)}

    def _around_in_short_sessions(self, row_ids: Sequence[int]) -> dict[int, dict[int, int]]:
        """Return the neighbours of those rows that are within the listed part of their session."""
        names = self._session_names(row_ids)
        sessions = self._short_sessions(names.values())
        around: dict[int, dict[int, int]] = {}
        for row_id, name in names.items():
            session = sessions.get(name, ())
            known = len(session) if len(session) <= SHORT_SESSION else SHORT_SESSION - 1
            try:
                place = session.index(row_id, 0, known)
            except ValueError:
                continue  # it is too far back
            if 2 <= place < len(session) - 2:
                two_before, before, _, after, two_after = session[place - 2 : place + 3]
                around[row_id] = {-1: before, -2: two_before, 1: after, 2: two_after}
            else:
                before_it = session[max(0, place - 2) : place][::-1]
                around[row_id] = _by_distance(before_it, session[place + 1 : place + 3])
        return around

    def _session_names(self, row_ids: Sequence[int]) -> dict[int, str]:
        """Return the session of each row that is in a named session."""
        kept = self._signals.current(self._db.stamp())
        names = {row_id: kept[row_id].session for row_id in row_ids if row_id in kept}
        missing = [row_id for row_id in row_ids if row_id not in names]
        names.update(self._db.rows(_SELECT_NAMES, (to_json(missing),)) if missing else ())
        return {row_id: name for row_id, name in names.items() if is_named_session(name)}

    def _short_sessions(self, names: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Return rows of these and other sessions, in order, up to ``SHORT_SESSION`` + 1 each."""
        kept = self._sessions.current(self._db.stamp())
        missing = set(names) - kept.keys()
        if missing:
            rows = self._db.rows(_SELECT_SESSIONS, (to_json(list(missing)),))
            kept.update((name, tuple(_listed(listed))) for name, listed in rows)
        return kept


def _excerpt_of(row: Row, agent_id: str) -> MemoryExcerpt:
    """Build the excerpt of a row: its number, then the columns of an excerpt."""
    _, memory_id, content, category, tags, timestamp, session, user_id = row
    return MemoryExcerpt(
        memory_id,
        agent_id,
        content,
        category,
        read_list(tags),
        read_stored_time(timestamp),
        session,
        user_id,
    )


def _behind(order: str) -> str:
    """Return the condition of what comes after the memory whose id is the first value."""
    behind = _COMES_AFTER.format(than=">" if order == "oldest" else "<")
    if order not in KEYS:
        return behind
    key, than = KEYS[order]
    seen = _SEEN.format(key)
    return f"({key} {than} {seen} OR ({key} = {seen} AND {behind}))"


def _listed(text: str | None) -> list[int]:
    """Parse a list of rows from SQLite, in the order in which an index yielded them."""
    return [int(row_id) for row_id in text.split(",")] if text else []


def _by_distance(before: Sequence[int], after: Sequence[int]) -> dict[int, int]:
    """Return the two nearest rows on each side, by distance."""
    around = dict(zip((-1, -2), before, strict=False))
    around.update(zip((1, 2), after, strict=False))
    return around

"""Moving a store from one engine to another: every row unchanged, including ids and history.

Existing rows are compared, and only differences are written: so an interrupted move continues where
it stopped, and a finished one was compared row by row. The source is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final

from agent_memory.errors import ConfigurationError, MigrationError, StorageLocked
from agent_memory.models.reports import MoveReport
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Row
from agent_memory.storage.stored_rows import TABLES, Key, TableLayout

_PAGE: Final = 1_000
_MOST_ROUNDS: Final = 3
"""A trigger of the target may change a row once; if it keeps changing, that is a fault."""

Progress = Callable[[int, int], None]


class Move:
    """One move of a whole store. ``progress`` is called with the rows done and their total.

    The target has its tables, but no agent yet: once it has one, others take it for a store.
    """

    def __init__(self, source: Engine, target: Engine, *, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._written = 0

    def run(self, *, now: datetime) -> MoveReport:
        """Copy all rows, then compare them while nobody can write to the source.

        Raises ``MigrationError`` if a row does not stay as it was written.
        """
        with self._source.reader() as unchanging:
            self._carry_over(unchanging)
        with self._unchanged():
            for _ in range(_MOST_ROUNDS):
                if not self._carry_over(self._source):
                    break
            else:
                raise MigrationError(
                    f"rows in {self._target.location} do not stay as they were written:"
                    f" nothing was changed in {self._source.location}. Look for triggers that"
                    " are not agent-memory's"
                )
            return self._finish(now)

    def _unchanged(self) -> AbstractContextManager[None]:
        """Prevent writes to the source while the body runs, or hide them from it."""
        return self._source.write() if self._source.can_write else self._source.read()

    def _finish(self, now: datetime) -> MoveReport:
        """Add the agent: from then on the target is a store."""
        source, target = self._source, self._target
        counts = {table.name: source.stored_rows.count(table) for table in TABLES}
        agent_id, values = source.agent_id, source.agent.row()
        numbers = source.stored_rows.highest_numbers()
        with target.write():
            _refuse_agent(target)
            target.stored_rows.set_highest_numbers(numbers)
            target.stored_rows.add_agent(agent_id, values, now=now)
        return MoveReport(
            agent_id=agent_id,
            source=source.location,
            target=target.location,
            memories=counts["memories"],
            changes=counts["history"],
            entities=counts["entities"],
            relationships=counts["relationships"],
            embeddings=counts["embeddings"],
            rows=sum(counts.values()),
            written=self._written,
        )

    def _carry_over(self, source: Engine) -> int:
        """Make the target's rows equal to the source's; return how many were not."""
        counts = {table.name: source.stored_rows.count(table) for table in TABLES}
        total, done, changed = sum(counts.values()), 0, 0
        for table in TABLES:
            for after, until, rows in _pages(source, table):
                changed += self._make_same(table, after, until, rows)
                done += len(rows)
                self._progress(min(done, total), total)
        self._written += changed
        return changed

    def _make_same(
        self, table: TableLayout, after: Key | None, until: Key | None, rows: list[Row]
    ) -> int:
        """Make a range of a table's rows in the target equal; return how many were not."""
        target = self._target
        with target.write():
            _refuse_agent(target)
            present = target.stored_rows.between(table, after, until)
            if present == rows:
                return 0
            old = {table.key_of(row): row for row in present}
            wanted = {table.key_of(row): row for row in rows}
            gone = [key for key in old if key not in wanted]
            different = [row for key, row in wanted.items() if old.get(key) != row]
            target.stored_rows.remove(table, gone)
            target.stored_rows.put(table, different)
        return len(gone) + len(different)


def _pages(
    source: Engine, table: TableLayout
) -> Iterator[tuple[Key | None, Key | None, list[Row]]]:
    """Yield a table's rows page by page, each with the keys that bound it."""
    after: Key | None = None
    while True:
        rows = source.stored_rows.between(table, after, None, limit=_PAGE)
        until = table.key_of(rows[-1]) if len(rows) == _PAGE else None
        yield after, until, rows
        if until is None:
            return
        after = until


def _refuse_agent(target: Engine) -> None:
    if target.agent.identity() is not None:
        raise StorageLocked(
            f"{target.location} was opened while memories were being moved there: it is now a"
            " separate store. Move to another place, or delete that store first"
        )


def refuse_store(target: Engine) -> None:
    """Raise ``ConfigurationError`` if the target of a move is already a store."""
    if target.agent.identity() is not None:
        raise ConfigurationError(
            f"{target.location} already has memories: move to another place, or use `export`"
            " and `import` to merge the two stores"
        )

"""Import and export of one agent's file: one transaction per method, as in ``Store``.

Also a store as of a past moment: a private copy, taken back along its history.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.models.portable import StagedEntry, added_by_hand
from agent_memory.models.reports import ImportOptions, MoveReport, Plan
from agent_memory.runtime.side_thread import SideThread
from agent_memory.services.lifecycle.undo import row_at
from agent_memory.services.transfer.exporter import Dump
from agent_memory.services.transfer.importer import Importer
from agent_memory.services.unit_of_work import Service
from agent_memory.storage.engine import Capability, Engine, require
from agent_memory.storage.opening import file_storage, open_engine
from agent_memory.storage.records import RowValues

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner
    from agent_memory.runtime.addresses import Address


class TransferService(Service):
    """Imports into a file, and exports from it."""

    @contextlib.contextmanager
    def dump(self, *, embeddings: bool = False, owner: Owner | None = None) -> Iterator[Dump]:
        """Give the body the store as it is now, on a separate connection: nobody waits.

        With an ``owner``, the memories and the scratchpad are limited to this owner's.
        """
        self._unit_of_work.flush()
        self._refuse_closed()
        with contextlib.ExitStack() as reading:
            reader = reading.enter_context(self._engine.reader())
            yield Dump(reader, embeddings=embeddings, owner=owner, leave=reading.close)

    def move(self, address: Address, *, progress: Callable[[int, int], None]) -> MoveReport:
        """Copy every row to an address that has no store yet: see ``Move``."""
        from agent_memory.services.transfer.move import Move, refuse_store  # noqa: PLC0415

        self._unit_of_work.flush()
        with contextlib.closing(open_engine(address)) as target:
            if target.schema_version:
                refuse_store(target)
            target.upgrade(now=self._clock())
            report = Move(self._engine, target, progress=progress).run(now=self._clock())
            are_files = Capability.FILE_BACKUP in self._engine.capabilities & target.capabilities
        if not (names := self.foreign_parts()):
            return report
        instead = " (`backup` here and `restore` there take them along)" if are_files else ""
        note = f"{added_by_hand(names)} were not moved{instead}"
        return report.model_copy(update={"notes": [note]})

    def foreign_parts(self) -> list[str]:
        """Return the columns, tables and views that somebody added, which only a backup has."""
        return self._engine.stored_rows.foreign_parts()

    def copy_as_of(self, moment: datetime) -> contextlib.AbstractContextManager[Path]:
        """Give the body a private copy of the file as of a moment."""
        self._refuse_closed()
        require(self._engine, Capability.SNAPSHOT)
        return copy_as_of(self._engine.files.path, moment)

    def _refuse_closed(self) -> None:
        """Raise ``StorageClosed`` if the store is closed: a separate connection would not."""
        self._engine.agent.identity()

    def import_entries(
        self,
        entries: Iterable[StagedEntry],
        options: ImportOptions,
        *,
        progress: Callable[[int], None],
    ) -> Plan:
        """Import entries, all or none."""
        transaction = self._read() if options.dry_run else self._unit_of_work.write()
        with SideThread() as side_thread, transaction as now:
            importer = Importer(self._engine, side_thread, options, now=now)
            for done in importer.import_entries(entries):
                progress(done)
            if options.refuses and not options.dry_run:
                importer.raise_refusal()
        return importer.plan

    @contextlib.contextmanager
    def _read(self) -> Iterator[datetime]:
        with self._engine.read():
            yield self._clock()


@contextlib.contextmanager
def copy_as_of(source: Path, moment: datetime) -> Iterator[Path]:
    """Make a private copy of a store as of a moment, for the duration of the body.

    Memories changed since then have their old values, those stored since are gone, those deleted
    since are back. Accesses, the scratchpad and the settings are the current ones, since they have
    no history.
    """
    with file_storage().private_copy(source) as copy:
        with contextlib.closing(open_engine(copy, create=False, synchronous="NORMAL")) as engine:
            _go_back(engine, moment)
        yield copy


def _go_back(engine: Engine, moment: datetime) -> None:
    with engine.write(durable=False):
        newest = engine.history.last_change()
        changed = engine.history.changed_after(moment)
        born = engine.history.born_after(moment)
        unborn = set(born)
        others = [memory_id for memory_id in changed if memory_id not in unborn]
        rows = [(memory_id, row_at(engine, memory_id, moment)) for memory_id in others]
        with engine.files.rewriting(changed, kept=others):
            engine.memory_rows.delete_many(born)
            _replace(engine, rows)
        engine.history.forget_after(moment, newest)
        engine.graph_maintenance.restore_to(moment)


def _replace(engine: Engine, rows: Iterable[tuple[str, RowValues | None]]) -> None:
    for memory_id, row in rows:
        present = engine.memory_rows.get(memory_id)
        if row is None:
            engine.memory_rows.delete(memory_id)
        elif present is None:
            kept = {name: value for name, value in row.items() if value is not None}
            kept.pop("scratchpad", None)
            if "seq" in kept and not engine.memory_rows.is_free(kept["seq"]):
                del kept["seq"]  # from another store, whose history was imported
            engine.memory_rows.insert(kept)
        else:
            engine.memory_rows.set_values(memory_id, row)
            if any(row[name] != present[name] for name in ("user_id", "run_id")):
                engine.scratchpad.leave(int(present["seq"]))  # its owner's of now put it there

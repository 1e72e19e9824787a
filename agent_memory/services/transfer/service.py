"""Import and export of one agent's file: each method is one transaction, as in ``Store``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.models.portable import StagedEntry
from agent_memory.models.transfer import OnConflict, Plan
from agent_memory.services.lifecycle.snapshot import copy_as_of
from agent_memory.services.transfer.exporter import Dump
from agent_memory.services.transfer.importer import Importer
from agent_memory.services.unit_of_work import UnitOfWork
from agent_memory.storage.engine import Capability, Engine, require

if TYPE_CHECKING:
    from agent_memory.models.session import Owner


class TransferService:
    """Imports into a file, and exports of it. Threads may share it."""

    def __init__(
        self,
        engine: Engine,
        unit_of_work: UnitOfWork,
        clock: Callable[[], datetime],
        *,
        agent_id: str,
    ) -> None:
        self._engine = engine
        self._unit_of_work = unit_of_work
        self._clock = clock
        self._agent_id = agent_id

    @contextlib.contextmanager
    def dump(self, *, embeddings: bool = False, owner: Owner | None = None) -> Iterator[Dump]:
        """Give the body the store as it stands now, on a connection of its own: nobody waits.

        With an ``owner`` its memories, and what is in the scratchpad, are this owner's alone.
        """
        self._unit_of_work.flush()
        self._refuse_closed()
        with self._engine.reader() as reader:
            yield Dump(reader, agent_id=self._agent_id, embeddings=embeddings, owner=owner)

    def copy_as_of(self, moment: datetime) -> contextlib.AbstractContextManager[Path]:
        """Give the body a private copy of the file as it stood at a moment."""
        self._refuse_closed()
        require(self._engine, Capability.SNAPSHOT)
        return copy_as_of(self._engine.files.path, moment)

    def _refuse_closed(self) -> None:
        """Raise ``StorageClosed`` for a store that is: a connection of its own would not."""
        self._engine.agent.identity()

    def import_entries(
        self,
        entries: Iterable[StagedEntry],
        *,
        on_conflict: OnConflict,
        dry_run: bool,
        refuses: bool,
        is_foreign: bool,
        session_id: str,
        progress: Callable[[int], None],
    ) -> Plan:
        """Import entries, all or none; with ``dry_run`` only return what that would do.

        Unless ``refuses``, a memory that is not admitted is left out, and listed in the plan.
        """
        transaction = self._read() if dry_run else self._unit_of_work.write()
        with transaction as now:
            importer = Importer(
                self._engine,
                on_conflict=on_conflict,
                dry_run=dry_run,
                is_foreign=is_foreign,
                session_id=session_id,
                now=now,
            )
            for done in importer.import_entries(entries):
                progress(done)
            if refuses and not dry_run:
                importer.raise_refusal()
        return importer.plan

    @contextlib.contextmanager
    def _read(self) -> Iterator[datetime]:
        with self._engine.read():
            yield self._clock()

"""The store of one agent: each method is one transaction on its file.

Services of one feature each (search, transfer, lifecycle, decisions, graph, erasure, vectors) are
attributes of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import (
    ConfigurationError,
    MemoryNotFound,
    StorageReadOnly,
    ValidationError,
    opened_read_only,
    other_agent,
)
from agent_memory.models.agent import AgentConfig, AgentInfo, CheckReport, Problem
from agent_memory.models.duplicate import Duplicate, DuplicateGroup, DuplicatePolicy
from agent_memory.models.enums import MemoryOrder, StorageBackend
from agent_memory.models.fields import is_memory_id
from agent_memory.models.memory import HistoryEntry, Memory
from agent_memory.models.scratchpad import Promotion
from agent_memory.models.search import SearchFilters
from agent_memory.runtime.lazy_parts import parts_made_of
from agent_memory.services.review_answers import delete_and_hand_on
from agent_memory.services.scratchpad import enter_scratchpad, promoted_first
from agent_memory.services.search.service import SearchService
from agent_memory.services.unit_of_work import Promoted, UnitOfWork, repeated_if_undone
from agent_memory.services.vectors import VectorService
from agent_memory.services.writing import duplicates
from agent_memory.services.writing.insert import (
    InsertResult,
    MemoryInsert,
    fingerprints_of,
    has_listener,
    is_stored,
    unwrapped_failure,
)
from agent_memory.services.writing.update import (
    check_version,
    memory_of,
    row_id_of,
    signed,
    update,
)
from agent_memory.storage.engine import Capability, require
from agent_memory.storage.filters import EVERYTHING, Equals, filter_of
from agent_memory.storage.opening import open_engine
from agent_memory.storage.records import Reason
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner
    from agent_memory.runtime.addresses import Address
    from agent_memory.services.decisions import DecisionService
    from agent_memory.services.erasure.service import ErasureService
    from agent_memory.services.graph.service import GraphService
    from agent_memory.services.lifecycle.service import LifecycleService
    from agent_memory.services.statistics.service import StatisticsService
    from agent_memory.services.transfer.service import TransferService

_service: Final = parts_made_of(
    "_engine", "_unit_of_work", "_clock", package="agent_memory.services"
)
_PAGE: Final = 1_000
"""The page size for reading all memories."""


class Store:
    """The memories of one agent: in one file, or in a database. Threads may share it.

    ``agent_id`` is the expected owner of the file; with ``None`` any owner is accepted, and a new
    file belongs to "agent". ``clock`` returns the time, aware, in UTC.
    """

    # Their modules take 40 ms of a start of 200.
    transfer: TransferService = _service(".transfer.service:TransferService")
    """Import and export."""
    lifecycle: LifecycleService = _service(".lifecycle.service:LifecycleService")
    """Archiving, retention, undo, rejected values and backups."""
    decisions: DecisionService = _service(".decisions:DecisionService")
    """The decisions about a conversation, applied in one transaction."""
    statistics: StatisticsService = _service(".statistics.service:StatisticsService")
    """How the memory grew, and how it is used."""
    graph: GraphService = _service(".graph.service:GraphService")
    """Entities and relationships."""
    erasure: ErasureService = _service(".erasure.service:ErasureService")
    """Erasure for good, with proof."""

    def __init__(
        self,
        address: Address,
        *,
        agent_id: str | None,
        clock: Callable[[], datetime],
        create: bool = True,
        read_only: bool = False,
        synchronous: str = "FULL",
        promotion_threshold: int = 3,
    ) -> None:
        self.address = address
        self._clock = clock
        self._engine = open_engine(
            address, create=create, read_only=read_only, synchronous=synchronous
        )
        try:
            self._engine.prepare(agent_id or "agent", clock=clock)
            self.agent_id = self._identified(agent_id)
            self.vectors = VectorService(self._engine, clock)
            self._unit_of_work = UnitOfWork(
                self._engine, clock, promotion_threshold=promotion_threshold
            )
            self.searches = SearchService(self._engine, self._unit_of_work)
            self.event_log = self._engine.event_log
        except BaseException:  # Ctrl-C too
            self._engine.close()
            raise

    @property
    def path(self) -> Path:
        """The file. Raises ``ConfigurationError`` if the engine has none."""
        return self._engine.files.path

    @property
    def location(self) -> str:
        """Where the memories are, for messages."""
        return self._engine.location

    def _identified(self, expected: str | None) -> str:
        agent_id = self._engine.agent_id
        if not agent_id:
            raise ConfigurationError(
                f"{self.location} does not name its agent: open it for writing"
            )
        if expected is not None and agent_id != expected:
            raise other_agent(self.location, agent_id, expected)
        return agent_id

    # Writing ----------------------------------------------------------------------------------

    @repeated_if_undone
    def add(
        self,
        memories: Sequence[Memory],
        *,
        settings: AgentConfig | None = None,
        generated_ids: AbstractSet[str],
        fields_set: Sequence[AbstractSet[str]] | None = None,
        is_list: bool = True,
        on_duplicate: DuplicatePolicy | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> InsertResult:
        """Store memories, all or none, and return the ids under which they can be found.

        A memory that is already stored, with the same id and content, is kept. An id in
        ``generated_ids`` is replaced if it is taken. ``fields_set`` has, for each memory, the names
        of the fields that the caller set (``None``: all): a memory without its own id and time may
        be an echo. ``settings`` are the agent's, if the verb has read them already.

        Raises ``ValidationError`` if an id is taken by a memory with other content, and
        ``DuplicateMemory``; the error has the memory's position, from 0, if ``is_list``. An
        exception of an ``on_duplicate`` function is raised unchanged.
        """
        fingerprints = fingerprints_of(memories)  # before the transaction: nobody waits for it
        reports_similar = not is_list and has_listener(on_duplicate)
        duplicates.complete_fingerprints(self._engine)
        with (
            unwrapped_failure(),
            contextlib.ExitStack() as afterwards,
            self._unit_of_work.write() as now,
        ):
            settings = settings or self._engine.agent.config()
            before = self._engine.operations.last_number()
            insert = MemoryInsert(
                self._engine,
                now=now,
                fingerprints=fingerprints,
                generated_ids=generated_ids,
                fields_set=fields_set,
                is_list=is_list,
                on_duplicate=on_duplicate,
                settings=settings,
                reports_similar=reports_similar,
            )
            afterwards.callback(insert.log)
            for done, memory in enumerate(memories, 1):
                insert.take(memory)
                if progress is not None and (done % 1000 == 0 or done == len(memories)):
                    progress(done, len(memories))
            insert.finish()
            entry = enter_scratchpad(self._engine, insert.row_ids, "stored", now, settings=settings)
            if self._engine.operations.last_number() > before + 1:
                session_id = memories[0].created_by_session
                self._engine.operations.record(
                    "store_many", since=before, session_id=session_id, now=now
                )
        return insert.result(entry.row_ids)

    def raise_if_conflicting(self, memory: Memory) -> None:
        """Raise ``ValidationError`` if a memory with this id has other content."""
        is_stored(self._engine, memory)

    @repeated_if_undone
    def update(
        self,
        memory_id: str,
        changes: Mapping[str, Any],
        *,
        session_id: str,
        version: int | None,
        settings: AgentConfig | None = None,
    ) -> Memory:
        """Change some fields of a memory and return the updated memory."""
        with self._unit_of_work.write() as now:
            memory = memory_of(self._engine, memory_id)
            check_version(memory, version)
            with signed(self._engine, memory_id, session_id, now):
                update(self._engine, memory, changes, now=now, settings=settings)
            return memory_of(self._engine, memory_id)

    @repeated_if_undone
    def delete(self, memory_id: str, *, session_id: str) -> Memory:
        """Remove a memory and return it as it was. Its history stays."""
        with self._unit_of_work.write() as now:
            memory = memory_of(self._engine, memory_id)
            with signed(self._engine, memory_id, session_id, now):
                delete_and_hand_on(self._engine, memory_id, session_id=session_id, now=now)
            return memory

    @repeated_if_undone
    def promote(self, memory_id: str) -> Promotion:
        """Put a memory into the scratchpad by hand, making room if needed."""
        with self._unit_of_work.write() as now:
            row_id = row_id_of(self._engine, memory_id)
            is_archived = memory_of(self._engine, memory_id).archived
            # None where it is not in: a new memory is in at once, but not by hand.
            reason = self._engine.scratchpad.reasons([row_id]).get(row_id)
            entering = [] if is_archived else [row_id]  # evict nothing for a hidden memory
            evicted = enter_scratchpad(self._engine, entering, "promoted", now).evicted
            self._engine.agent.count_promotions(int(not is_archived and reason is None))
            return Promotion(
                memory_id=memory_id,
                promoted=not is_archived and reason != "promoted",
                evicted=evicted[0] if evicted else None,
                scratchpad_size=self._engine.scratchpad.size(),
            )

    @repeated_if_undone
    def demote(self, memory_id: str) -> bool:
        """Remove a memory from the scratchpad, and return whether it was there."""
        with self._unit_of_work.write():
            return self._engine.scratchpad.leave(row_id_of(self._engine, memory_id))

    def refuse_read_only(self) -> None:
        """Raise ``StorageReadOnly`` if nothing can be written."""
        if self._engine.read_only:
            raise opened_read_only(self.location)

    def backend(self) -> StorageBackend:
        """Return how memories are searched: by keyword, or by meaning too."""
        return StorageBackend.FILE if self.vectors.active() is None else StorageBackend.VECTOR

    def on_promoted(self, callback: Callable[[Promoted], object]) -> None:
        """Register a function to be called, from any thread, with memories promoted by use."""
        self._unit_of_work.on_promoted = callback

    @repeated_if_undone
    def change_config(self, change: Callable[[AgentConfig], AgentConfig]) -> AgentConfig:
        """Apply a change to the agent's settings in the file and return them.

        Raises ``ValidationError`` if it would remove a category that memories have.
        """
        with self._unit_of_work.write():
            before = self._engine.agent.config()
            config = change(before)
            for category in set(before.categories) - set(config.categories):
                self._refuse_orphans(category, config)
            self._engine.agent.set_config(config)
            self._engine.scratchpad.evict(max_size=config.scratchpad_max_size)
            return config

    def _refuse_orphans(self, category: str, config: AgentConfig) -> None:
        """Refuse to remove a category that memories have: no import would accept them with it."""
        count = self._engine.memories.count(Equals("category", category))  # case-sensitive
        if count:
            message = (
                f"{counted(count, 'memory has', 'memories have')} {category!r},"
                " which would no longer be a category: give them another one first"
                " (`update`), or keep it"
            )
            raise ValidationError.of("categories", message, config.categories)

    # Reading ----------------------------------------------------------------------------------

    def get(self, memory_id: str) -> Memory | None:
        """Return a memory, or ``None``."""
        return self._engine.memories.get(memory_id)

    def recent(
        self,
        filters: SearchFilters,
        *,
        limit: int,
        offset: int,
        after: str | None = None,
        order: MemoryOrder = MemoryOrder.NEWEST,
    ) -> list[Memory]:
        """Return memories in an order, or those that follow the memory ``after``.

        Raises ``MemoryNotFound`` if that memory no longer exists.
        """
        passing = filter_of(filters, agent_id=self.agent_id)
        with self._engine.read():
            if after is not None and not self._engine.memories.exists(after):
                raise MemoryNotFound(after)
            return self._engine.memories.recent(
                passing, limit=limit, offset=offset, after=after, order=order
            )

    def ids(self, filters: SearchFilters) -> list[str]:
        """Return the ids of the memories that match the filters, oldest first."""
        return self._engine.memories.ids(filter_of(filters, agent_id=self.agent_id))

    def count(self, filters: SearchFilters) -> int:
        """Count memories."""
        return self._engine.memories.count(filter_of(filters, agent_id=self.agent_id))

    def duplicates(
        self, content: str, *, user_id: str | None, run_id: str | None
    ) -> list[Duplicate]:
        """Return the memories that repeat a text, or much of it, best first."""
        duplicates.complete_fingerprints(self._engine)
        self._unit_of_work.flush()
        with self._engine.read():
            return duplicates.all_of(
                self._engine, content, user_id=user_id, run_id=run_id, now=self._clock()
            )

    def duplicate_groups(self) -> Iterator[DuplicateGroup]:
        """Yield the groups of memories that say the same, oldest first."""
        duplicates.complete_fingerprints(self._engine)
        yield from duplicates.groups(self._engine)

    def scratchpad(self, owner: Owner | None = None) -> list[tuple[Memory, Reason]]:
        """Return the memories in the scratchpad, most recently used first: one owner's, or all.

        Each is returned with the reason for which it is there.
        """
        self._unit_of_work.flush()
        with self._engine.read():
            members = self._scratchpad_members(owner)
            reasons = self._engine.scratchpad.reasons(list(members))
        return [(memory, reasons[row_id]) for row_id, memory in members.items()]

    def context_memories(self, owner: Owner | None) -> tuple[list[Memory], set[str]]:
        """Return the memories in the scratchpad, those promoted by hand first: one owner's, or all.

        Also returns the ids of those that a newer memory may correct.
        """
        self._unit_of_work.flush()
        with self._engine.read():
            members = self._scratchpad_members(owner)
            row_ids = promoted_first(self._engine, list(members))
            newer_of = self._engine.reviews.newer_of(row_ids)
        return [members[row_id] for row_id in row_ids], {members[row_id].id for row_id in newer_of}

    def _scratchpad_members(self, owner: Owner | None) -> dict[int, Memory]:
        user_id = None if owner is None else owner.user_id
        row_ids = self._engine.scratchpad.members(user_id=user_id)
        memories = self._engine.memories.get_many(row_ids)
        return {
            row_id: memories[row_id]
            for row_id in row_ids
            if owner is None or owner.owns(memories[row_id].user_id, memories[row_id].run_id)
        }

    def history(
        self, memory_id: str | None, *, limit: int, before: int | None = None
    ) -> list[HistoryEntry]:
        """Return the changes of one memory, or of all, newest first, or those ``before`` one."""
        if memory_id is not None and not is_memory_id(memory_id):
            raise MemoryNotFound(memory_id)
        entries = self._engine.history.entries(memory_id, limit=limit, before=before)
        if memory_id is None or entries or self.get(memory_id) is not None:
            return entries
        # A page after the last one of a deleted memory is empty, as that of any other.
        if before is None or not self._engine.history.entries(memory_id, limit=1):
            raise MemoryNotFound(memory_id)
        return entries

    def count_all(self) -> int:
        """Count all memories, including archived ones."""
        return self._engine.memories.count(EVERYTHING)

    def should_migrate(self, threshold: int, *, count: int | None = None) -> bool:
        """Return whether search is by keyword and there are at least ``threshold`` memories.

        ``count`` is their number, if it is known.
        """
        if self.vectors.active() is not None:
            return False
        if count is not None:
            return count >= threshold
        if self._engine.memories.last_row_id() < threshold:  # counting 1,000,000 takes milliseconds
            return False
        return self.count(SearchFilters()) >= threshold

    def write_scratchpad(self, path: Path) -> int:
        """Write all memories to a file in A's scratchpad format; return how many.

        They are read page by page, so that other threads need not wait; memories stored meanwhile
        are included.
        """
        from agent_memory.formats.scratchpad import write_scratchpad  # noqa: PLC0415 - 3 ms

        return write_scratchpad(
            path,
            self.readable_memories(),
            agent_id=self.agent_id,
            last_updated=self._clock(),
            max_size=self.readable_config().scratchpad_max_size,
        )

    def readable_memories(self) -> Iterator[Memory]:
        """Yield every memory that can be read, skipping damaged rows."""
        for start in range(0, self._engine.memories.last_row_id_of_damaged(), _PAGE):
            yield from self._engine.memories.readable(after=start, until=start + _PAGE)

    def config(self) -> AgentConfig:
        """Return the agent's settings, for writing. Raises ``ConfigurationError``."""
        return self._engine.agent.config()

    def readable_config(self) -> AgentConfig:
        """Return the agent's settings, for reading; invalid ones are replaced by the defaults."""
        return self._engine.agent.readable_config()

    def info(self) -> AgentInfo:
        """Return the agent's metadata with live figures."""
        self._unit_of_work.flush()
        has_file = isinstance(self.address, Path)
        with self._engine.read():
            count = self.count(SearchFilters())
            models = {model.state: model for model in self._engine.embeddings.models()}
            active = models.get("active")
            return AgentInfo(
                **self._engine.agent.metadata(memory_count=count).model_dump(),
                path=self.location,
                schema_version=self._engine.schema_version,
                sqlite_version=self._engine.library_version if has_file else None,
                server_version=None if has_file else self._engine.library_version,
                server=self._engine.server,
                scratchpad_size=self._engine.scratchpad.size(),
                archived_count=self.count(SearchFilters(archived=True)),
                vector_model=None if active is None else active.model,
                vector_dimensions=None if active is None else active.dimensions,
                pending_embeddings=self._engine.embeddings.count_queued(),
                journal=self._engine.files.journal if has_file else None,
                warning=self._engine.files.warning if has_file else None,
            )

    def alone(self, *, busy: str) -> contextlib.AbstractContextManager[None]:
        """Run the body while no other process runs such a body on this memory.

        Raises ``StorageLocked`` with the text ``busy`` if one does.
        """
        return self._engine.alone(busy=busy)

    def rollback_file(self) -> Path | None:
        """Return where the memories are written before a migration, if the engine keeps files."""
        if Capability.FILE_BACKUP not in self._engine.capabilities:
            return None
        from agent_memory.services.erasure.side_files import rollback_file  # noqa: PLC0415 - seldom

        return rollback_file(self.path)

    # Upkeep -----------------------------------------------------------------------------------

    def check(self, *, repair: bool) -> CheckReport:
        """Look for damage and drift, and repair it if asked to."""
        from agent_memory.services.erasure.side_files import leftovers_of  # noqa: PLC0415 - seldom

        require(self._engine, Capability.REPAIR)
        report = self._engine.check(
            repair=repair, back_up=lambda: self.lifecycle.back_up_before("repair")
        )
        if Capability.FILE_BACKUP not in self._engine.capabilities:
            return report
        leftovers = [
            Problem(
                kind="leftover",
                detail=f"{path} may hold memories: a process that was killed left it there",
                repaired=not path.exists(),
            )
            for path in leftovers_of(self._engine, remove=repair)
        ]
        return report.model_copy(update={"problems": [*report.problems, *leftovers]})

    def backup(self, destination: Path | None) -> Path:
        """Write a consistent copy of the file, while others may write."""
        self._engine.agent.identity()  # raises if the store was closed
        if destination is None and self._engine.read_only:
            raise StorageReadOnly(
                f"{self.location} was opened read-only: give a destination elsewhere"
            )
        require(self._engine, Capability.FILE_BACKUP)
        return self._engine.files.back_up(destination, now=self._clock())

    def close(self) -> None:
        """Write the pending counts of searches, and close the file."""
        self._unit_of_work.close()
        self._engine.close()

"""Erasing memories for good: from the tables, the file and its log, and from its backups.

Deleting keeps a memory's history; erasing does away with that too. What the library did not write
itself, such as an export that somebody copied, it cannot reach, nor what a disk keeps of files that
were rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from agent_memory.errors import AgentMemoryError, MemoryNotFound, StorageError, ValidationError
from agent_memory.models.erasure import ErasedCopy, ErasureReceipt
from agent_memory.models.times import format_time
from agent_memory.runtime.event_log import EventLog
from agent_memory.runtime.files import beside
from agent_memory.services.erasure import side_files as leftovers
from agent_memory.services.erasure.proof import Proof
from agent_memory.services.lifecycle.snapshot import sweep_copies
from agent_memory.storage.sqlite import schema, vector_index
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables import agent, operations, reviews
from agent_memory.storage.sqlite.tables import embeddings as vectors
from agent_memory.storage.sqlite.tables import erased as erasure
from agent_memory.storage.sqlite.tables import graph_maintenance as graph_upkeep
from agent_memory.storage.sqlite.tables.erased import Removed, Said

_MOST_NAMED: Final = 100


@dataclass(slots=True)
class _Copies:
    """The files beside a store.

    ``own`` are those that can be erased in, with the ids that they know; ``unreadable`` are those
    that cannot be opened, and why; ``done`` is what became of each.
    """

    own: dict[Path, set[str]] = field(default_factory=dict)
    unreadable: dict[Path, str] = field(default_factory=dict)
    done: dict[Path, ErasedCopy] = field(default_factory=dict)

    def holding(self) -> list[Path]:
        """Return those that know any of the ids."""
        return [path for path, known in self.own.items() if known]

    def interrupted(self, left: Collection[Path]) -> list[Path]:
        """Return those that know none of the ids, of the files in which something is left."""
        return [
            path
            for path, known in self.own.items()
            if not known and (path in left or beside(path, "-wal") in left)
        ]

    def told(self, left: Collection[Path]) -> list[ErasedCopy]:
        """Return what is to be told of each, given the files in which something is left."""
        # Not the log of a closed file. What cannot be looked at must be told of.
        there = [path for path in sorted(self.done) if not _is_gone(path)]
        return [self._told(path, is_left=path in left) for path in there]

    def _told(self, path: Path, *, is_left: bool) -> ErasedCopy:
        copy = self.done[path]
        if not is_left or (copy.erased and path not in self.holding()):
            return copy
        problem = copy.problem or self.unreadable.get(path)
        return copy.model_copy(update={"found": True, "problem": problem})


class Eraser:
    """Erases memories of one agent's file. Threads may share it.

    ``clock`` returns the time, in UTC; ``agent_id`` is whose the file is.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime], *, agent_id: str) -> None:
        self._database = database
        self._clock = clock
        self._agent_id = agent_id

    def erase(
        self, memory_ids: Sequence[str], *, backups: bool = False, session_id: str
    ) -> ErasureReceipt:
        """Remove every trace of some memories, and look for what is left of them.

        They may be archived, or deleted before. With ``backups`` they are erased in the backups
        beside the file as well, and may be in those alone; without, the receipt tells which of
        these files still hold something. It can be undone by nothing. It takes as long as writing
        the whole file anew and reading it twice.

        Raises ``MemoryNotFound``, and ``StorageLocked`` while somebody reads an older state of the
        file for longer than the busy timeout: then nothing was erased. If it ends in the middle,
        either nothing was erased from the file or the rows are gone: ``finish`` does the rest. If
        only that cannot be done, the receipt says so.
        """
        ids = list(dict.fromkeys(memory_ids))
        if not ids:
            advice = "name one memory at least; `finish` completes an erasure that was interrupted"
            raise ValidationError.of("memory_ids", advice, ids)
        copies = self._refuse(ids, backups=backups)
        sweep_copies()  # what a process left that was killed while it looked back
        now = self._clock()
        said = Said()
        # The backups first: until they are done, the file still knows the ids.
        for path in copies.holding():
            copies.done[path] = self._erase_in_copy(path, ids, said, session_id, now)
        removed = _remove(self._database, ids, said, session_id, now)
        problems = self._problems_of_finishing(ids)
        proof = Proof(said)
        proof.look_through_store(self._database)
        self._look_through_copies(proof, copies)
        verdict = proof.judge(self._database)
        # An erasure that was interrupted left a backup without the rows, but not written anew.
        for path in copies.interrupted(verdict.left.keys()):
            copies.done[path] = self._erase_in_copy(path, ids, said, session_id, now)
        return ErasureReceipt(
            ids=ids,
            memories=removed.memories,
            changes=removed.changes,
            embeddings=removed.embeddings,
            with_backups=backups,
            backups=copies.told(verdict.left.keys()),
            files_scanned=proof.files,
            bytes_scanned=proof.bytes,
            found=problems + verdict.found(besides=copies.done),
            also_in=[memory_id for memory_id, _ in verdict.also_in.most_common(_MOST_NAMED)],
            erased_at=now,
        )

    def refuse(self, memory_ids: Sequence[str], *, backups: bool) -> None:
        """Raise what ``erase`` would raise before it changes anything."""
        self._refuse(memory_ids, backups=backups)

    def _refuse(self, ids: Sequence[str], *, backups: bool) -> _Copies:
        copies = self._copies(ids) if backups else _Copies()
        self._refuse_unknown(ids, copies.own.values())
        self._database.refuse_readers()
        return copies

    def finish(self) -> None:
        """Complete an erasure that was interrupted: write the file anew, and empty its log.

        Raises ``StorageLocked`` while somebody reads an older state of the file.
        """
        self._database.compact()

    def _problems_of_finishing(self, ids: Sequence[str]) -> list[str]:
        problems = []
        for step in (self.finish, lambda: EventLog(self._database.path).forget(ids)):
            try:
                step()
            except StorageError as error:
                problems.append(str(error))
        return problems

    def _refuse_unknown(self, ids: Sequence[str], in_copies: Collection[Collection[str]]) -> None:
        known = erasure.known(self._database, ids).union(*in_copies)
        for memory_id in ids:
            if memory_id not in known:
                raise MemoryNotFound(memory_id)

    # Copies -----------------------------------------------------------------------------------

    def _copies(self, ids: Sequence[str]) -> _Copies:
        """Look which copies can be opened and hold some of these ids. That changes nothing."""
        copies = _Copies()
        for path in leftovers.copies_of(self._database.path):
            try:
                known = self._known_in(path, ids)
            except (StorageError, ValidationError) as error:
                copies.unreadable[path] = str(error)
                continue
            if known is not None:
                copies.own[path] = known
        return copies

    def _known_in(self, path: Path, ids: Sequence[str]) -> set[str] | None:
        """Return which of the ids a copy knows; ``None`` for one that cannot be erased in."""
        if leftovers.is_yaml_backup(path):
            entries = leftovers.entries_of(path)
            return {str(leftovers.names_of(entry)[0]) for entry in entries}.intersection(ids)
        if not leftovers.is_store(path, self._database.path):
            return None
        with closing(Database(path, create=False, read_only=True)) as copy:
            is_of_agent = agent.identity(copy) == self._agent_id
            return erasure.known(copy, ids) if is_of_agent else None

    def _erase_in_copy(
        self, path: Path, ids: Sequence[str], said: Said, session_id: str, now: datetime
    ) -> ErasedCopy:
        """Erase in a backup, and take over what it tells of the memories."""
        wanted = frozenset(ids)
        try:
            if leftovers.is_yaml_backup(path):
                is_out = leftovers.take_out(path, lambda it: leftovers.names_of(it)[0] in wanted)
                return ErasedCopy(path=str(path), erased=is_out)
            found = _erase_in_store(path, ids, said, session_id, now)
        except AgentMemoryError as error:
            return ErasedCopy(path=str(path), problem=str(error))
        return ErasedCopy(path=str(path), erased=True, found=found)

    def _look_through_copies(self, proof: Proof, copies: _Copies) -> None:
        """Look through the copies but for the stores that were looked through from within."""
        place = self._database.path
        for path in leftovers.copies_of(place):
            done = copies.done.setdefault(path, ErasedCopy(path=str(path)))
            if done.erased and leftovers.is_store(path, place):
                continue
            try:
                proof.look_through_copy(path)
            except StorageError as error:
                copies.done[path] = done.model_copy(update={"problem": str(error)})


def _is_gone(path: Path) -> bool:
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def _erase_in_store(
    path: Path, ids: Sequence[str], said: Said, session_id: str, now: datetime
) -> bool:
    """Erase in a backup that is a whole store, and return whether something is left there.

    Its schema is brought up to date, without a backup of the backup.
    """
    with closing(schema.opened(path, create=False)) as copy:
        schema.upgrade(copy, now=format_time(now), before_upgrade=lambda: None)
        _remove(copy, ids, said, session_id, now)
        copy.compact()
        proof = Proof(said)
        proof.look_through_store(copy)
        return bool(proof.judge(copy).left)


def _remove(
    database: Database, ids: Sequence[str], said: Said, session_id: str, now: datetime
) -> Removed:
    """Remove the rows in one transaction, and note in ``said`` what they said."""
    with database.write():
        said.add(erasure.said(database, ids))
        of_graph = graph_upkeep.texts_of(database, ids)
        removed = erasure.remove(database, ids)
        graph_upkeep.erase(database, ids)
        reviews.forget_reasoning(database)  # of other memories: it may quote what is erased
        if of_graph:
            said.strings.update(of_graph - graph_upkeep.texts(database))
        _leave_indexes(database)
        operations.mark(database, "erase", session_id=session_id, now=now)
    return removed


def _leave_indexes(database: Database) -> None:
    """Take deleted memories out of the vector indexes.

    Without sqlite-vec no single row can be: the index is emptied, and built again where there is
    sqlite-vec. Until then searches do without.
    """
    seqs = erasure.gone(database)
    models = {vector_index.table(it.model_id): it.model_id for it in vectors.models(database)}
    for name in vector_index.tables(database):
        model_id = models.get(name)
        if not database.load_vectors():
            erasure.empty_index(database, name)
            if model_id is not None:
                vectors.mark_indexed(database, model_id, is_indexed=False)
        elif model_id is None:
            vector_index.drop(database, name)
        else:
            vector_index.remove(database, model_id, seqs)
    vectors.dequeue(database, seqs)

"""The erasure of memories for good: from the tables, the file and its log, and its backups.

Deleting keeps a memory's history; erasing removes that too. In a server's database the rows are
removed, and the receipt says where its operator may still have them. Erasure cannot reach what the
library did not write itself, such as a copied export, nor what a disk keeps of rewritten files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from agent_memory.errors import AgentMemoryError, MemoryNotFound, StorageError, ValidationError
from agent_memory.models.memory import Memory
from agent_memory.models.reports import ErasedCopy, ErasureReceipt
from agent_memory.models.search import SearchFilters
from agent_memory.runtime.files import beside
from agent_memory.services.erasure import side_files
from agent_memory.services.erasure.proof import Proof, Verdict
from agent_memory.services.erasure.tombstones import (
    Tombstones,
    mark_erased,
    new_key,
    put_in_force,
    remove_rows,
    start_over,
)
from agent_memory.services.unit_of_work import Service
from agent_memory.storage.change_records import ErasedText, RemovedRows, Tombstone
from agent_memory.storage.engine import Capability, Engine, require
from agent_memory.storage.erased_texts import texts_of_changes
from agent_memory.storage.filters import All, Equals, Filter, filter_of
from agent_memory.storage.opening import file_storage, open_engine

_Read = TypeVar("_Read")
_MOST_NAMED: Final = 100
_OWNER_COLUMNS: Final = frozenset({"user_id", "run_id", "created_by_session"})


@dataclass(slots=True)
class _Copies:
    """The files beside a store.

    ``own`` are those that support erasing, with the ids that they contain; ``more`` those with
    something that the user stated by hand, or wrote in what others have by now; ``unreadable``
    those that cannot be opened, and why; ``done`` is the result for each.
    """

    own: dict[Path, set[str]] = field(default_factory=dict)
    more: set[Path] = field(default_factory=set)
    unreadable: dict[Path, str] = field(default_factory=dict)
    done: dict[Path, ErasedCopy] = field(default_factory=dict)

    def holding(self) -> list[Path]:
        """Return those that contain any of the ids, or more of the user."""
        return [path for path, known_ids in self.own.items() if known_ids or path in self.more]

    def interrupted(self, left: Collection[Path]) -> list[Path]:
        """Return those that contain nothing of it, among the files with something left."""
        return [
            path
            for path in self.own.keys() - self.holding()
            if path in left or beside(path, "-wal") in left
        ]

    def reports(self, left: Collection[Path]) -> list[ErasedCopy]:
        """Return the report on each, given the files in which something is left."""
        # A closed file has no log. A file that cannot be read must be reported.
        paths = [path for path in sorted(self.done) if not _is_gone(path)]
        return [self._report_on(path, is_left=path in left) for path in paths]

    def _report_on(self, path: Path, *, is_left: bool) -> ErasedCopy:
        copy = self.done[path]
        is_holding = path in self.holding()
        if not (is_left or (is_holding and not copy.erased)) or (copy.erased and not is_holding):
            return copy
        problem = copy.problem or self.unreadable.get(path)
        return copy.model_copy(update={"found": True, "problem": problem})


@dataclass(frozen=True, slots=True)
class _Erasure:
    """One erasure: of which memories, in which session, when.

    With ``user_id``, they are all that a user has, and what was stated by hand in that user's graph
    goes with them. ``key`` is the key of its tombstones; ``text`` collects what the memories said.
    """

    ids: Sequence[str]
    session_id: str
    now: datetime
    key: bytes
    user_id: str | None = None
    text: ErasedText = field(default_factory=ErasedText)


class ErasureService(Service):
    """Erases memories of one agent's file."""

    def erase(
        self,
        memory_ids: Sequence[str],
        *,
        user_id: str | None = None,
        backups: bool = False,
        session_id: str,
    ) -> ErasureReceipt:
        """Remove every trace of some memories, and search for what is left of them.

        With ``user_id``, they are all that this user has, and the user's graph goes with them.
        With ``backups``, they are also erased in the backups beside the file, and may exist only
        there; without, the receipt lists which of these files still contain something. It takes as
        long as rewriting the whole file and reading it twice; in a database, as reading all rows
        twice. If it is interrupted, either nothing was erased from the file or the rows are gone:
        ``finish`` does the rest. If only that step fails, the receipt says so. Raises as
        ``LifecycleVerbs.erase`` does.
        """
        ids = list(dict.fromkeys(memory_ids))
        copies = self.refuse(ids, user_id=user_id, backups=backups)
        erasure = _Erasure(ids, session_id, self._clock(), new_key(self._engine), user_id)
        if not self._has_files:
            return self._erase_rows(erasure)
        if not backups:  # they are only reported, including the backup before this erasure
            copies = self._copies(ids, user_id)
        file_storage().sweep_copies()  # left by a process killed while it looked back
        if backups:
            side_files.leftovers_of(self._engine, remove=True)
        return self._erase(erasure, copies, backups=backups)

    @property
    def _has_files(self) -> bool:
        return Capability.PROVEN_ERASURE in self._engine.capabilities

    def _erase_rows(self, erasure: _Erasure) -> ErasureReceipt:
        """Erase in a store that is not a file, search the rows that are left, and report."""
        removed = _remove(self._engine, erasure)
        problems = _problems_of(lambda: self._engine.event_log.forget(erasure.ids))
        proof = Proof(erasure.text)
        with self._engine.read():
            proof.look_through_rows(self._engine)
            verdict = proof.judge(self._engine)
        traces = problems + verdict.lines(besides=())
        receipt = _receipt(erasure, removed, proof, verdict, traces)
        return receipt.model_copy(update={"beyond": self._engine.erasure.places_beyond()})

    def _erase(self, erasure: _Erasure, copies: _Copies, *, backups: bool) -> ErasureReceipt:
        """Erase in the copies, if ``backups``, and in the file; look for leftovers, and report."""
        # The backups first: until they are done, the file still has the ids.
        for path in copies.holding() if backups else ():
            copies.done[path] = self._erase_in_copy(path, erasure)
        removed = _remove(self._engine, erasure)
        problems = _problems_of(self.finish, lambda: self._engine.event_log.forget(erasure.ids))
        proof = Proof(erasure.text)
        proof.look_through_store(self._engine)
        self._look_through_copies(proof, copies)
        verdict = proof.judge(self._engine)
        # An interrupted erasure left a backup whose rows are removed but which is not rewritten.
        for path in copies.interrupted(verdict.left.keys()) if backups else ():
            copies.done[path] = self._erase_in_copy(path, erasure)
        traces = problems + verdict.lines(besides=copies.done)
        receipt = _receipt(erasure, removed, proof, verdict, traces)
        reports = copies.reports(verdict.left.keys())
        return receipt.model_copy(update={"with_backups": backups, "backups": reports})

    def ids(self, filters: SearchFilters, *, backups: bool = False) -> list[str]:
        """Return the ids of the memories that match, oldest first, then those of past ones.

        Past ones, which were deleted or, with ``backups``, are only in backups, match filters by
        user, run and session alone: who asks to be forgotten is there too.
        """
        tree = filter_of(filters, agent_id=self._engine.agent_id)
        ids = self._engine.memories.ids(tree)
        owners = _owners_in(tree)
        if owners is None:
            return ids
        deleted = _deleted_ids(self._engine, owners)
        beside: list[str] = []
        for path in self._stores_beside() if backups else ():
            with suppress(StorageError, ValidationError):  # the receipt names it
                beside += self._in_copy(path, lambda copy: _ids_in(copy, tree, owners)) or ()
        with self._engine.read():
            row = self._engine.memory_rows.get
            past = [memory_id for memory_id in deleted if row(memory_id) is None]
            # What the store knows may be somebody else's since then, deleted or not.
            known = self._engine.erasure.known_ids(beside)
        return ids + past + [each for each in dict.fromkeys(beside) if each not in known]

    def tombstones(self) -> list[Tombstone]:
        """Return the tombstones, oldest first."""
        return self._engine.tombstones.all()

    def remember_erased(self, tombstones: Sequence[Tombstone]) -> None:
        """Add the tombstones of another file, except for memories that exist here."""
        if tombstones:
            with self._engine.write():
                put_in_force(self._engine, tombstones)

    def erased_among(self, memories: Iterable[Memory]) -> set[str]:
        """Return the ids of those memories that were erased, or that repeat erased content."""
        with self._engine.read():
            tombstones = Tombstones(self._engine)
            return {
                memory.id
                for memory in memories
                if tombstones.has_id(memory.id)
                or tombstones.has_content(memory.content, memory.user_id)
            }

    def refuse(self, ids: Sequence[str], *, user_id: str | None = None, backups: bool) -> _Copies:
        """Raise what ``erase`` would raise before it changes anything; return the copies."""
        if backups:
            require(self._engine, Capability.FILE_BACKUP)
        copies = self._copies(ids, user_id) if backups else _Copies()
        if not (ids or copies.more or _has_more(self._engine, user_id, ids)):
            message = "no memory matches: nothing was erased"
            if copies.unreadable:
                paths = ", ".join(sorted(map(str, copies.unreadable)))
                message += f"; these backups could not be read, and may have some: {paths}"
            raise ValidationError.of("filters", message, user_id)
        known_ids = self._engine.erasure.known_ids(ids).union(*copies.own.values())
        for memory_id in ids:
            if memory_id not in known_ids:
                raise MemoryNotFound(memory_id)
        if self._has_files:
            self._engine.files.refuse_readers()
        return copies

    def finish(self) -> None:
        """Complete an erasure that was interrupted: rewrite the file, and empty its log.

        Raises ``StorageLocked`` while somebody reads an older state of the file.
        """
        require(self._engine, Capability.PROVEN_ERASURE)
        self._engine.files.compact()

    # Copies -----------------------------------------------------------------------------------

    def _copies(self, ids: Sequence[str], user_id: str | None) -> _Copies:
        """Determine which copies can be opened and contain some of it. Changes nothing."""
        copies = _Copies()
        for path in side_files.copies_of(self._engine.files.path):
            try:
                known_ids = self._known_in(path, ids)
                if self._has_more_in(path, user_id, ids):
                    copies.more.add(path)
            except (StorageError, ValidationError) as error:
                copies.unreadable[path] = str(error)
                continue
            if known_ids is not None:
                copies.own[path] = known_ids
        return copies

    def _known_in(self, path: Path, ids: Sequence[str]) -> set[str] | None:
        """Return which of the ids a copy contains; ``None`` if it does not support erasing."""
        if path == side_files.rollback_file(self._engine.files.path):
            entry_ids = {str(side_files.id_of(entry)) for entry in side_files.entries_of(path)}
            return entry_ids.intersection(ids)
        if not side_files.is_store(path, self._engine.files.path):
            return None
        known_ids = self._in_copy(path, lambda copy: copy.erasure.known_ids(ids))
        return None if known_ids is None else set(known_ids)

    def _has_more_in(self, path: Path, user_id: str | None, ids: Sequence[str]) -> bool:
        """Return whether a copy of this agent has more of a user than the memories."""
        if user_id is None or not side_files.is_store(path, self._engine.files.path):
            return False
        with suppress(StorageError):  # a backup from before there was a graph
            return bool(self._in_copy(path, lambda copy: _has_more(copy, user_id, ids)))
        return False

    def _stores_beside(self) -> list[Path]:
        """Return the copies that are whole stores."""
        require(self._engine, Capability.FILE_BACKUP)
        place = self._engine.files.path
        return [path for path in side_files.copies_of(place) if side_files.is_store(path, place)]

    def _in_copy(self, path: Path, read: Callable[[Engine], _Read]) -> _Read | None:
        """Return what ``read`` returns for a copy, or ``None`` if it is another agent's."""
        with closing(open_engine(path, create=False, read_only=True, vetted=False)) as copy:
            is_of_agent = copy.agent.identity() == self._engine.agent_id
            return read(copy) if is_of_agent else None

    def _erase_in_copy(self, path: Path, erasure: _Erasure) -> ErasedCopy:
        """Erase in a backup, and add what it says of the memories to the text of the erasure."""
        wanted = frozenset(erasure.ids)
        try:
            if path == side_files.rollback_file(self._engine.files.path):
                is_out = side_files.take_out(path, lambda entry: side_files.id_of(entry) in wanted)
                return ErasedCopy(path=str(path), erased=is_out)
            is_left = _erase_in_store(path, erasure)
        except AgentMemoryError as error:
            return ErasedCopy(path=str(path), problem=str(error))
        return ErasedCopy(path=str(path), erased=True, found=is_left)

    def _look_through_copies(self, proof: Proof, copies: _Copies) -> None:
        """Search the copies, except for the stores that were searched from within."""
        place = self._engine.files.path
        for path in side_files.copies_of(place):
            done = copies.done.setdefault(path, ErasedCopy(path=str(path)))
            if done.erased and side_files.is_store(path, place):
                continue
            try:
                proof.look_through_copy(path)
            except StorageError as error:
                copies.done[path] = done.model_copy(update={"problem": str(error)})


def _owners_in(tree: Filter) -> dict[str, str] | None:
    """Return the columns that filters by user, run or session ask for; ``None`` for others."""
    parts = tree.parts if isinstance(tree, All) else (tree,)
    owners = {part.column: part.value for part in parts if isinstance(part, Equals)}
    is_owner = owners.keys() <= _OWNER_COLUMNS and len(owners) == len(parts)
    return owners if owners and is_owner else None


def _ids_in(copy: Engine, tree: Filter, owners: Mapping[str, str]) -> list[str]:
    """Return the ids of the memories of a copy that match, and of those deleted last."""
    ids = copy.memories.ids(tree) + _deleted_ids(copy, owners)
    # A damaged row may have anything in the place of its id.
    known = copy.erasure.known_ids(ids)
    return [memory_id for memory_id in ids if memory_id in known]


def _deleted_ids(engine: Engine, owners: Mapping[str, str]) -> list[str]:
    """Return the ids of memories that were deleted last, and whose they were then."""
    deleted: dict[str, None] = {}
    with engine.read():
        for change in engine.history.iterate():
            deleted.pop(change.memory_id, None)
            if change.event == "DELETE" and owners.items() <= change.old.items():
                deleted[change.memory_id] = None
    return list(deleted)


def _taken_over(engine: Engine, user_id: str | None, ids: Collection[str]) -> dict[str, int]:
    """Return the last change of a user's in the history of what others have by now.

    The memory is theirs, or another one under its id; what it was before is the user's.
    """
    last: dict[str, int] = {}
    for change in engine.history.iterate() if user_id is not None else ():
        if user_id in (change.old.get("user_id"), change.new.get("user_id")):
            last[change.memory_id] = change.change_id
    rows = {memory_id: engine.memory_rows.get(memory_id) for memory_id in last.keys() - {*ids}}
    return {
        memory_id: last[memory_id]
        for memory_id, row in rows.items()
        if row is None or row["user_id"] != user_id
    }


def _has_more(engine: Engine, user_id: str | None, ids: Collection[str]) -> bool:
    """Return whether a user has something besides memories: by hand, or in what others have."""
    with engine.read():
        return bool(_count_by_hand(engine, user_id) or _taken_over(engine, user_id, ids))


def _count_by_hand(engine: Engine, user_id: str | None) -> int:
    return 0 if user_id is None else engine.graph_maintenance.count_by_hand(user_id)


def _receipt(
    erasure: _Erasure, removed: RemovedRows, proof: Proof, verdict: Verdict, traces: list[str]
) -> ErasureReceipt:
    return ErasureReceipt(
        ids=list(erasure.ids),
        memories=removed.memories,
        changes=removed.changes,
        embeddings=removed.embeddings,
        by_hand=removed.by_hand,
        files_scanned=proof.files,
        bytes_scanned=proof.bytes,
        found=traces,
        also_in=[memory_id for memory_id, _ in verdict.also_in.most_common(_MOST_NAMED)],
        erased_at=erasure.now,
    )


def _problems_of(*steps: Callable[[], None]) -> list[str]:
    problems = []
    for step in steps:
        try:
            step()
        except StorageError as error:
            problems.append(str(error))
    return problems


def _is_gone(path: Path) -> bool:
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def _erase_in_store(path: Path, erasure: _Erasure) -> bool:
    """Erase in a backup that is a whole store, and return whether something is left there.

    Its schema is upgraded, without a backup of the backup.
    """
    with closing(open_engine(path, create=False)) as copy:
        copy.upgrade(now=erasure.now)
        _remove(copy, erasure)
        copy.files.compact()
        proof = Proof(erasure.text)
        proof.look_through_store(copy)
        return bool(proof.judge(copy).left)


def _remove(engine: Engine, erasure: _Erasure) -> RemovedRows:
    """Remove the rows in one transaction, collect what they said, and leave tombstones."""
    ids, text = erasure.ids, erasure.text
    with engine.write():
        text.add(engine.erasure.texts_of(ids))
        of_graph = engine.graph_maintenance.texts()
        by_hand = _count_by_hand(engine, erasure.user_id)
        if erasure.user_id is not None:
            engine.graph_maintenance.disown(erasure.user_id)
        removed = remove_rows(engine, ids)._replace(by_hand=by_hand)
        past = start_over(engine, _taken_over(engine, erasure.user_id, ids))
        removed = removed._replace(changes=removed.changes + len(past))
        text.add(texts_of_changes(past, erasure.user_id))
        text.strings.update(of_graph - engine.graph_maintenance.texts())
        mark_erased(engine, ids, text.statements, key=erasure.key, now=erasure.now)
        engine.operations.record_irreversible(
            "erase", session_id=erasure.session_id, now=erasure.now
        )
    return removed

"""Import of a file's history, within an import of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any

from agent_memory.errors import RejectedContent, ValidationError
from agent_memory.models.columns import HISTORIC
from agent_memory.models.portable import StagedEntry
from agent_memory.services.erasure.tombstones import Tombstones
from agent_memory.services.policies.admission import Admission
from agent_memory.storage.change_records import Change
from agent_memory.storage.engine import Engine

Columns = Mapping[str, Any]


class HistoryImporter:
    """Imports the changes of one file into one store: those of new and of deleted memories.

    Must run inside a transaction, in which the memories of the file are imported already;
    ``dry_run`` needs only ``read()``. ``refuse`` and ``leave_out`` are called with a change that is
    not admitted, or that contains something erased.
    """

    def __init__(
        self,
        engine: Engine,
        admission: Admission,
        tombstones: Tombstones,
        *,
        dry_run: bool,
        refuse: Callable[[StagedEntry, ValidationError], None],
        leave_out: Callable[[StagedEntry, str], None],
    ) -> None:
        self._engine = engine
        self._admission = admission
        self._tombstones = tombstones
        self._dry_run = dry_run
        self._refuse = refuse
        self._leave_out = leave_out
        self._boundary: int | None = None
        self._new: AbstractSet[str] = frozenset()
        self._first_events: dict[str, str] = {}
        self._user_ids: dict[str, set[str | None]] = {}
        self._forgotten: set[str] = set()

    def expect(self, memory_id: str, user_id: str | None) -> None:
        """Record the user of a memory that is new here."""
        if self._tombstones:
            self._user_ids[memory_id] = {user_id}

    def take(
        self, page: Sequence[StagedEntry], *, new: AbstractSet[str], had_history: AbstractSet[str]
    ) -> None:
        """Import a page of changes.

        ``new`` are the memories that are new here, ``had_history`` those that have a history here.
        """
        self._new = new
        if self._boundary is None:
            self._boundary = self._engine.operations.last_number()
        ids = {entry.values["id"] for entry in page}
        others = ids - new - self._first_events.keys()
        with_history = self._engine.history.ids_with_history(sorted(others)) | had_history
        rows = self._engine.memory_rows.get_many(sorted(ids))
        changes: list[Change] = []
        for entry in page:
            memory_id = entry.values["id"]
            is_new = memory_id in new or memory_id in self._first_events
            # The history of this store is not mixed with that of another.
            if memory_id in with_history or (not is_new and memory_id in rows):
                continue
            row = rows.get(memory_id)
            if memory_id in self._forgotten or self._is_erased(entry, row):
                continue
            try:
                for values in (entry.values.get("old"), entry.values.get("new")):
                    self._admission.refuse_row({"content": "", **(values or {})})
            except RejectedContent as error:
                self._refuse(entry, error)
                continue
            self._first_events.setdefault(memory_id, entry.values["event"])
            change = _change_of(entry.values, row)
            if self._tombstones:
                change.old.pop("reviews", None)  # they may quote what was erased
            changes.append(change)
        if not self._dry_run:
            kept = [change for change in changes if change.memory_id not in self._forgotten]
            self._engine.history.insert(kept)

    def _is_erased(self, entry: StagedEntry, row: Columns | None) -> bool:
        """Return whether a change belongs to an erased memory, or contains something erased.

        If a memory contains it only in its past, its whole past is left out: changes with a gap
        between them could not be undone, nor used to look back.
        """
        if not self._tombstones:
            return False
        memory_id = entry.values["id"]
        if row is None and self._tombstones.has_id(memory_id):
            self._leave_out(entry, "was erased")
            return True
        if not self._says_what_was_erased(entry.values):
            return False
        is_there = row is not None or memory_id in self._new
        self._leave_out(
            entry, f"{'is imported without its history, which ' * is_there}contained erased content"
        )
        self._forgotten.add(memory_id)
        self._first_events.pop(memory_id, None)
        if not self._dry_run and self._boundary is not None:
            last = self._engine.operations.last_number()
            self._engine.history.forget([memory_id], after=self._boundary, until=last)
        return True

    def _says_what_was_erased(self, values: Columns) -> bool:
        """Return whether a change contains something erased, for any user the memory ever had."""
        user_ids = self._user_ids.setdefault(values["id"], set())
        texts = [columns for columns in (values.get("old"), values.get("new")) if columns]
        for columns in texts:
            if "user_id" in columns or values["event"] != "UPDATE":
                user_ids.add(columns.get("user_id"))
        return any(
            self._tombstones.has_content(columns["content"], user_id)
            for columns in texts
            if "content" in columns
            for user_id in user_ids or {None}
        )

    def finish(self, *, since: int, session_id: str, now: datetime) -> None:
        """Sign what the import itself did since a change id, or forget it if the file records it.

        Must run inside ``write()``.
        """
        boundary = self._boundary
        if boundary is None:
            boundary = self._engine.operations.last_number()
        self._engine.history.sign_between(since, boundary, session_id=session_id, now=now)
        # For these the file has the history from the beginning; for others it begins with this
        # import.
        whole = sorted(
            memory_id for memory_id, first in self._first_events.items() if first == "ADD"
        )
        self._engine.history.forget(whole, after=since, until=boundary)


def _change_of(values: Columns, row: Columns | None) -> Change:
    """Return a change as the table holds it; an ``ADD`` without values added the row as it is."""
    new = values.get("new") or {}
    if values["event"] == "ADD" and not new and row is not None:
        new = {name: row[name] for name in HISTORIC if row[name] is not None}
    return Change(
        change_id=0,
        memory_id=values["id"],
        event=values["event"],
        changed_at=values["at"],
        session_id=values.get("session"),
        old=values.get("old") or {},
        new=new,
    )

"""The lifecycle of memories: archive, delete, tidy, undo, reject; one transaction per method."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.errors import MemoryNotFound, ValidationError, opened_read_only
from agent_memory.models.fields import is_memory_id
from agent_memory.models.memory import HistoryEntry, Memory
from agent_memory.models.protocols import SecretScanner
from agent_memory.models.reports import BackupFile
from agent_memory.models.retention import RetentionPolicy, TidyReport, Undone
from agent_memory.models.safety import FoundSecrets, Rejection
from agent_memory.services.lifecycle.undo import own_change_ids, row_at, undo
from agent_memory.services.policies import rejected_values, retention
from agent_memory.services.policies.rejection_match import words_to_reject
from agent_memory.services.policies.secrets import screen_for_secrets
from agent_memory.services.review_answers import delete_and_hand_on
from agent_memory.services.unit_of_work import Service, repeated_if_undone
from agent_memory.services.writing import duplicates
from agent_memory.services.writing.update import memory_of, recorded
from agent_memory.storage.engine import Capability, require
from agent_memory.storage.memory_models import memory_of_row

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner

_HISTORY_PAGE: Final = 1_000


class LifecycleService(Service):
    """Archives, deletes, tidies, undoes, rejects and backs up."""

    # Archiving --------------------------------------------------------------------------------

    @repeated_if_undone
    def archive(
        self, memory_ids: Sequence[str], *, archived: bool, session_id: str
    ) -> list[Memory]:
        """Archive memories or bring them back, all or none, and return the updated memories."""
        ids = list(dict.fromkeys(memory_ids))
        with self._unit_of_work.write() as now:
            for memory_id in ids:
                if not self._engine.memories.exists(memory_id):
                    raise MemoryNotFound(memory_id)
            if not archived:
                retention.refuse_return(self._engine, self._policy(), ids)
            with recorded(self._engine, "archive" if archived else "unarchive", session_id, now):
                self._engine.memory_rows.archive(ids, archived=archived, now=now)
            memories = [self._engine.memories.get(each) for each in ids]
        return [memory for memory in memories if memory is not None]

    @repeated_if_undone
    def delete(self, memory_ids: Sequence[str], *, session_id: str) -> list[Memory]:
        """Delete memories, all or none, and return them as they were. Their history stays."""
        with (
            self._unit_of_work.write() as now,
            recorded(self._engine, "delete", session_id, now),
        ):
            gone = []
            for memory_id in memory_ids:
                gone.append(memory_of(self._engine, memory_id))
                delete_and_hand_on(self._engine, memory_id, session_id=session_id, now=now)
            return gone

    @repeated_if_undone
    def merge(self, keep: str, others: Sequence[str], *, session_id: str) -> Memory:
        """Merge what other memories add into one, delete them, and return the updated memory."""
        with self._unit_of_work.write() as now:
            with recorded(self._engine, "merge", session_id, now):
                for memory_id in others:
                    kept, other = memory_of(self._engine, keep), memory_of(self._engine, memory_id)
                    _refuse_of_another(kept, other)
                    duplicates.merge(self._engine, kept, other, now=now)
                    delete_and_hand_on(
                        self._engine, memory_id, session_id=session_id, now=now, merged_into=kept
                    )
            return memory_of(self._engine, keep)

    def limits_passed(self) -> list[str]:
        """Return the soft limits that are exceeded."""
        policy = self._policy()
        if policy is None:
            return []
        with self._engine.read():
            return retention.over_soft(self._engine, policy)

    @repeated_if_undone
    def tidy(self, *, dry_run: bool, session_id: str) -> TidyReport:
        """Archive what the agent's policy asks for, or only report it."""
        self._unit_of_work.flush()  # so that a search a moment ago counts as use
        with self._engine.read():
            report = self._planned(self._clock(), dry_run=dry_run)
        if dry_run or not report.archived:
            return report
        backup = self.back_up_before("tidy")
        with self._unit_of_work.write() as now:
            report = self._planned(now, dry_run=False)
            ids = [item.memory_id for item in report.archived]
            with recorded(self._engine, "tidy", session_id, now):
                self._engine.memory_rows.archive(ids, archived=True, now=now)
        return report.model_copy(update={"backup": None if backup is None else str(backup)})

    def _planned(self, now: datetime, *, dry_run: bool) -> TidyReport:
        policy = self._policy()
        if policy is None:
            note = "no retention policy is set: `configure retention standard` sets one"
            return TidyReport(dry_run=dry_run, kept=[note])
        archived, kept = retention.plan(self._engine, policy, now=now)
        return TidyReport(dry_run=dry_run, archived=archived, kept=kept)

    def _policy(self) -> RetentionPolicy | None:
        return self._engine.agent.config().retention

    # Undoing ----------------------------------------------------------------------------------

    @repeated_if_undone
    def undo(
        self,
        change_id: int | None,
        *,
        session_id: str,
        owner: Owner | None = None,
        whole: bool = False,
    ) -> Undone:
        """Undo a change, or everything that was done last; limited to one owner's memories if set.

        With ``whole``, the change is undone together with everything done in the same operation.
        """
        with self._unit_of_work.write() as now:
            return undo(
                self._engine, change_id, session_id=session_id, now=now, owner=owner, whole=whole
            )

    def forbid_undo(self, verb: str, *, session_id: str) -> None:
        """Prevent ``undo`` of anything that was done until now, as after a restore."""
        with self._unit_of_work.write() as now:
            self._engine.operations.record_irreversible(verb, session_id=session_id, now=now)

    def own_change_ids(self, memory_id: str, owner: Owner) -> frozenset[int]:
        """Return the changes of a memory while it was this owner's."""
        if not is_memory_id(memory_id):
            return frozenset()
        with self._engine.read():
            return own_change_ids(self._engine, memory_id, owner)

    def own_history(
        self, owner: Owner, *, limit: int, before: int | None = None
    ) -> list[HistoryEntry]:
        """Return the changes of one owner's memories, while they were this owner's, newest first.

        A memory that is another's now, or was when it was deleted, has none: to read the history of
        12,000 memories for three took 1.6 s.
        """
        own: dict[str, frozenset[int]] = {}
        entries: list[HistoryEntry] = []
        size = max(100, min(limit, _HISTORY_PAGE))
        with self._engine.read():
            while len(entries) < limit and (
                page := self._engine.history.entries_of(*owner, limit=size, before=before)
            ):
                for memory_id in {each.memory_id for each in page} - own.keys():
                    own[memory_id] = own_change_ids(self._engine, memory_id, owner)
                entries += [each for each in page if each.change_id in own[each.memory_id]]
                before = page[-1].change_id
        return entries[:limit]

    def get_as_of(self, memory_id: str, moment: datetime) -> Memory | None:
        """Return a memory as it was at a moment, or ``None`` if it did not exist."""
        if not is_memory_id(memory_id):
            return None
        with self._engine.read():
            row = row_at(self._engine, memory_id, moment)
        return None if row is None else memory_of_row(row, agent_id=self._engine.agent_id)

    # Rejecting --------------------------------------------------------------------------------

    @repeated_if_undone
    def reject(self, text: str, reason: str | None) -> Rejection:
        """Refuse to store any memory that contains a text from now on."""
        with self._unit_of_work.write() as now:
            return rejected_values.reject(self._engine, text, reason, now=now)

    def holders(self, text: str) -> list[str]:
        """Return the ids of the memories that contain a text."""
        words = words_to_reject(text)
        with self._engine.read():
            return rejected_values.holders(self._engine, words)

    def rejections(self) -> list[Rejection]:
        """Return the rejections, oldest first."""
        return self._engine.rejections.all()

    def count_rejected(self) -> int:
        """Count the memories that contain a rejected value."""
        with self._engine.read():
            return rejected_values.count_holders(self._engine)

    def secrets(self, scanner: SecretScanner | None) -> list[FoundSecrets]:
        """Return the memories that seem to contain secrets, now or in their history."""
        secrets: dict[str, FoundSecrets] = {}
        with self._engine.read():
            for texts in rejected_values.iterate_texts(self._engine):
                screening = screen_for_secrets(texts, scanner)
                if screening.kinds:
                    secrets[texts["id"]] = screening.report(texts["id"])
            for memory_id, values in rejected_values.iterate_old_texts(self._engine):
                if memory_id not in secrets:
                    screening = screen_for_secrets(values, scanner)
                    screening.places = ["history"]
                    if screening.kinds:
                        secrets[memory_id] = screening.report(memory_id)
        return list(secrets.values())

    @repeated_if_undone
    def lift(self, rejection: int | str) -> bool:
        """Allow a rejected value again; return whether it was rejected."""
        with self._unit_of_work.write():
            return rejected_values.lift(self._engine, rejection)

    # Backups ----------------------------------------------------------------------------------

    def back_up_before(self, reason: str) -> Path | None:
        """Back up the file before a destructive operation, as the agent's settings say.

        Returns the path, or ``None`` if the engine keeps no files.
        """
        if self._engine.read_only:
            raise opened_read_only(self._engine.location)
        if Capability.FILE_BACKUP not in self._engine.capabilities:
            return None  # backups are up to whoever runs the database
        # Resetting invalid settings makes a backup first, so invalid ones must be readable here.
        keep = self._engine.agent.readable_config().backups_kept
        return self._engine.files.back_up_before(reason, now=self._clock(), keep=keep)

    def backups(self) -> list[BackupFile]:
        """List the backups of the file, newest first."""
        require(self._engine, Capability.FILE_BACKUP)
        with self._engine.read():  # refuses if another agent's file took the place of this one
            return self._engine.files.list_backups()


def _refuse_of_another(kept: Memory, other: Memory) -> None:
    """Raise ``ValidationError`` if two memories are about different users or of different runs.

    Merged, one user's fact would become the other's.
    """
    for name in ("user_id", "run_id"):
        of_kept, of_other = getattr(kept, name), getattr(other, name)
        if of_kept != of_other:
            message = (
                f"{other.id} has the {name} {of_other!r}, {kept.id} has {of_kept!r}: merging"
                " would assign one's fact to the other; use `update` to give both the same"
            )
            raise ValidationError.of("others", message, other.id)

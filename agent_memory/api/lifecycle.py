"""The verbs of a memory's life: archived, tidied away, undone, erased, rejected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_memory.api.arguments import check_id, check_ids, join_filters
from agent_memory.api.opening import OpenMemory
from agent_memory.api.plain_arguments import check_whole_number
from agent_memory.errors import ValidationError
from agent_memory.models.memory import Memory
from agent_memory.models.reports import ErasureReceipt
from agent_memory.models.retention import TidyReport, Undone
from agent_memory.models.safety import FoundSecrets, Rejection
from agent_memory.models.search import SearchFilters

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner


class LifecycleVerbs(OpenMemory):
    """What becomes of memories. ``AgentMemory`` has these verbs."""

    def archive(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Archive memories and return them: they leave searches and the scratchpad, not the file.

        All or none. Raises ``MemoryNotFound``.
        """
        return self._archive(memory_ids, archived=True)

    def unarchive(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Bring archived memories back and return them.

        All or none. Raises ``MemoryNotFound``, and ``LimitReached`` where there is no room.
        """
        return self._archive(memory_ids, archived=False)

    def _archive(self, memory_ids: str | Iterable[str], *, archived: bool) -> list[Memory]:
        ids = check_ids(memory_ids)
        changed = self._store.lifecycle.archive(ids, archived=archived, session_id=self.session_id)
        self._auto_migration.follow()
        return changed

    def delete_many(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Delete several memories, all or none, and return them as they were.

        They stay in the history, and one ``undo`` brings all of them back. Raises
        ``MemoryNotFound``.
        """
        return self._store.lifecycle.delete(check_ids(memory_ids), session_id=self.session_id)

    def merge(self, keep: str, others: str | Iterable[str]) -> Memory:
        """Keep one memory and delete others that say the same; return the one that is kept.

        It gets their tags, the highest importance, and what their metadata have beyond its own, as
        ``store`` with ``on_duplicate="merge"`` does. All or none, and one ``undo`` takes all of it
        back. Raises ``MemoryNotFound``, and ``ValidationError`` where ``keep`` is among the others,
        or one of them is about another user or of another run.
        """
        kept, ids = check_id("keep", keep), check_ids(others)
        if not ids or kept in ids:
            raise ValidationError.of("others", "must be the ids of other memories", others)
        merged = self._store.lifecycle.merge(kept, ids, session_id=self.session_id)
        self._auto_migration.follow()
        return merged

    def limits_passed(self) -> list[str]:
        """Return which soft limits of the retention policy are passed, and by how much."""
        return self._store.lifecycle.limits_passed()

    def tidy(self, *, dry_run: bool = False) -> TidyReport:
        """Archive what the retention policy says (``configure(retention=…)``), and tell what.

        What is of high importance, was promoted by hand or used of late is never touched. The file
        is backed up before. ``dry_run`` only tells. ``undo`` brings all of it back.
        """
        return self._store.lifecycle.tidy(dry_run=dry_run, session_id=self.session_id)

    def undo(
        self,
        change_id: int | None = None,
        *,
        whole: bool = False,
        review_id: int | None = None,
    ) -> Undone:
        """Undo one change, whose number ``history`` tells, or all of what was done last.

        Stored memories go, changed ones are what they were, deleted ones are there again. What one
        verb did to several memories (``store_many``, ``import_``, ``tidy``, …) is one. An undo is a
        change too: undoing it does again what it undid. Promotions, settings and erasures are none.
        ``whole`` undoes with a change all that the same verb did; ``review_id`` asks again what was
        dismissed.

        Raises ``ValidationError`` when there is nothing to undo, or a later change of the same
        memory must be undone first; then nothing is changed.
        """
        if review_id is not None:
            check_whole_number("review_id", review_id, lowest=1)
            if change_id is not None:
                message = "name a change or a review: `history` and `reviews` number them"
                raise ValidationError.of("change_id", message, change_id)
            return self._store.decisions.ask_again(review_id, session_id=self.session_id)
        return self._undo_of(None, change_id, whole=whole)

    def _undo_of(
        self, owner: Owner | None, change_id: int | None, *, whole: bool = False
    ) -> Undone:
        if change_id is not None:
            check_whole_number("change_id", change_id, lowest=1)
        return self._store.lifecycle.undo(
            change_id, session_id=self.session_id, owner=owner, whole=whole
        )

    def erase(
        self,
        memory_ids: str | Iterable[str] = (),
        *,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        backups: bool = False,
    ) -> ErasureReceipt:
        """Erase memories for good, given their ids or ``filters``, and prove it.

        Their content leaves the rows, the history, the indexes, the log and the free pages of the
        file; with ``backups`` the library's own backups too. The receipt says what was removed, and
        whether a scan of the raw bytes found anything left. Of what was deleted before, the id
        still erases the history. ``filters`` are those of a search; archived memories are erased
        too, unless they say otherwise. Nothing brings an erased memory back: ``delete`` is the
        ordinary, undoable verb.

        Raises ``MemoryNotFound``, and ``StorageLocked`` while another process reads an older state
        of the file; then nothing is erased.
        """
        ids = check_ids(memory_ids)
        if filters is not None:
            if ids:
                raise ValidationError.of("filters", "give ids or filters, not both", ids)
            scope = join_filters(filters)
            if not scope.are_narrowing():
                message = "describe nothing: every memory would be erased"
                raise ValidationError.of("filters", message, filters)
            if "archived" not in scope.model_fields_set:
                scope = scope.model_copy(update={"archived": None})
            ids = self._store.ids(scope)
        elif not ids:
            raise ValidationError.of("memory_ids", "give the ids of memories, or filters", ids)
        if not ids:
            raise ValidationError.of(
                "filters", "no memory is like that: nothing was erased", filters
            )
        if not backups:
            self._store.erasure.refuse(ids, backups=False)
            self._store.lifecycle.back_up_before("erase")
        return self._store.erasure.erase(ids, backups=backups, session_id=self.session_id)

    def finish_erasing(self) -> None:
        """Complete an erasure that was interrupted: write the file anew, and empty its log.

        Raises ``StorageLocked`` while another process reads an older state of the file.
        """
        self._store.erasure.finish()

    def reject(self, text: str, *, reason: str | None = None) -> Rejection:
        """Let no memory that holds this text be stored, changed or imported, until it is lifted.

        Only the hash of its words is kept. It is found in contents, tags and metadata, in any case
        and with any signs between the words. What holds it already stays: ``holders`` finds it.
        Raises ``ValidationError`` for a text without words or of over 1,000.
        """
        return self._store.lifecycle.reject(text, reason)

    def rejections(self) -> list[Rejection]:
        """Return what is rejected, oldest first."""
        return self._store.lifecycle.rejections()

    def lift(self, rejection: str | int) -> bool:
        """Let a rejected text, or a rejection by number, be stored again; tell if it was one."""
        if isinstance(rejection, int):
            check_whole_number("rejection", rejection, lowest=1)
        return self._store.lifecycle.lift(rejection)

    def secrets(self) -> list[FoundSecrets]:
        """Return the memories that look like they hold keys, tokens or passwords, oldest first.

        Archived ones too, and those whose history still has what was changed or deleted. None of
        the secrets is returned. ``erase`` removes such memories for good.
        """
        return self._store.lifecycle.secrets(self._secret_scanner)

    def holders(self, text: str) -> list[str]:
        """Return the ids of the memories that hold a text as ``reject`` means it."""
        return self._store.lifecycle.holders(text)

"""The verbs of a memory's life cycle: archive, merge, tidy, undo, erase, reject."""

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
    """The life cycle of memories. ``AgentMemory`` has these verbs."""

    def archive(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Archive memories and return them: they leave searches and the scratchpad, not the file.

        All or none. Raises ``MemoryNotFound``.
        """
        return self._archive(memory_ids, archived=True)

    def unarchive(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Bring archived memories back and return them.

        All or none. Raises ``MemoryNotFound``, and ``LimitReached`` if there is no room for them.
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

        It gets their tags, the highest importance, and the metadata that it lacks, as ``store``
        with ``on_duplicate="merge"`` does. All or none, and one ``undo`` takes all of it back.
        Raises ``MemoryNotFound``, and ``ValidationError`` if ``keep`` is among the others, or if
        one of them is about another user or of another run.
        """
        kept, ids = check_id("keep", keep), check_ids(others)
        if not ids or kept in ids:
            raise ValidationError.of("others", "must be the ids of other memories", others)
        merged = self._store.lifecycle.merge(kept, ids, session_id=self.session_id)
        self._auto_migration.follow()
        return merged

    def limits_passed(self) -> list[str]:
        """Return the soft limits of the retention policy that are exceeded, and by how much."""
        return self._store.lifecycle.limits_passed()

    def tidy(self, *, dry_run: bool = False) -> TidyReport:
        """Archive what the retention policy asks for (``configure(retention=…)``), and report it.

        Memories of high importance, promoted by hand or used recently are never touched. The file
        is backed up first. ``dry_run`` only reports. ``undo`` brings everything back.
        """
        return self._store.lifecycle.tidy(dry_run=dry_run, session_id=self.session_id)

    def undo(
        self,
        change_id: int | None = None,
        *,
        whole: bool = False,
        review_id: int | None = None,
    ) -> Undone:
        """Undo one change, by its number in ``history``, or everything that was done last.

        Memories that were stored are removed again, changed ones get their old values back, and
        deleted ones return. What one verb did to several memories (``store_many``, ``import_``,
        ``tidy``, …) counts as one step. An undo is itself a change: undoing it repeats what it
        undid. Promotions, settings and erasures are not changes. With ``whole``, a change is undone
        together with everything the same call did. ``review_id`` reopens a review that was
        dismissed.

        Raises ``ValidationError`` if there is nothing to undo, or if a later change of the same
        memory has to be undone first; then nothing is changed.
        """
        if review_id is not None:
            check_whole_number("review_id", review_id, lowest=1)
            if change_id is not None:
                message = (
                    "give a change or a review, not both: `history` and `reviews` list their"
                    " numbers"
                )
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
        """Erase memories for good, by their ids or by ``filters``, and prove it.

        Their content is removed from the rows, the history, the indexes, the log and the free pages
        of the file; with ``backups`` from the library's own backups too. The receipt lists what was
        removed and whether a scan of the raw bytes still found anything. The id of a memory that
        was deleted earlier erases its history. ``filters`` are those of a search, but include
        archived memories unless they say otherwise. Those that ask for nothing but user, run and
        session include deleted ones, and with ``backups`` those that only backups have. A
        ``user_id`` alone also erases what was stated by hand in that user's graph, and the history
        of memories until others took them over, which stay. An erased memory cannot be brought
        back; ``delete`` is the ordinary verb that can be undone.

        Raises ``MemoryNotFound``, and ``StorageLocked`` while another process reads an older state
        of the file; then nothing is erased.
        """
        ids = check_ids(memory_ids)
        user_id = None
        if filters is not None:
            if ids:
                raise ValidationError.of("filters", "give ids or filters, not both", ids)
            scope = join_filters(filters)
            if not scope.are_narrowing():
                message = "match every memory: all of them would be erased"
                raise ValidationError.of("filters", message, filters)
            if "archived" not in scope.model_fields_set:
                scope = scope.model_copy(update={"archived": None})
            if scope == SearchFilters(user_id=scope.user_id, archived=None):
                user_id = scope.user_id
            ids = self._store.erasure.ids(scope, backups=backups)
        elif not ids:
            raise ValidationError.of("memory_ids", "give the ids of memories, or filters", ids)
        if not backups:
            self._store.erasure.refuse(ids, user_id=user_id, backups=False)
            self._store.lifecycle.back_up_before("erase")
        return self._store.erasure.erase(
            ids, user_id=user_id, backups=backups, session_id=self.session_id
        )

    def finish_erasing(self) -> None:
        """Complete an erasure that was interrupted: rewrite the file and empty its log.

        Raises ``StorageLocked`` while another process reads an older state of the file.
        """
        self._store.erasure.finish()

    def reject(self, text: str, *, reason: str | None = None) -> Rejection:
        """Refuse to store, change or import any memory that contains this text, until ``lift``.

        Only a hash of its words is kept. Contents, tags and metadata are checked, regardless of
        case and of punctuation between the words. Memories that already contain it stay;
        ``holders`` finds them. Raises ``ValidationError`` for a text without words or with more
        than 1,000.
        """
        return self._store.lifecycle.reject(text, reason)

    def rejections(self) -> list[Rejection]:
        """Return what is rejected, oldest first."""
        return self._store.lifecycle.rejections()

    def lift(self, rejection: str | int) -> bool:
        """Allow a rejected text again, given as text or number; return whether it was rejected."""
        if isinstance(rejection, int):
            check_whole_number("rejection", rejection, lowest=1)
        return self._store.lifecycle.lift(rejection)

    def secrets(self) -> list[FoundSecrets]:
        """Return the memories that seem to contain keys, tokens or passwords, oldest first.

        Archived memories are included, and those whose history still has a secret that was changed
        or deleted. The secrets themselves are not returned. ``erase`` removes such memories for
        good.
        """
        return self._store.lifecycle.secrets(self._secret_scanner)

    def holders(self, text: str) -> list[str]:
        """Return the ids of the memories that contain a text, matched as ``reject`` does."""
        return self._store.lifecycle.holders(text)

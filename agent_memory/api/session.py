"""A view of the memory for one session: nothing of other users can be read, changed or inferred.

Document C scopes memories to users, agents and runs. A file holds the memories of one agent, so a
session of a user sees the memories about that user, and a session of a run those of that user and
run. A memory about nobody in particular belongs to no session.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from agent_memory.api.arguments import (
    Time,
    check_id,
    check_ids,
    check_items,
    check_review_ids,
)
from agent_memory.api.plain_arguments import WithCheckedFlags, check_whole_number
from agent_memory.api.session_graph import SessionGraph
from agent_memory.errors import (
    InvalidSession,
    LimitReached,
    MemoryNotFound,
    PermissionDenied,
    RejectedContent,
)
from agent_memory.models.config import MemoryContextConfig
from agent_memory.models.memory import HistoryEntry, Memory
from agent_memory.models.record import validate_model
from agent_memory.models.retention import Undone
from agent_memory.models.scratchpad import Promotion, Scratchpad
from agent_memory.models.search import SearchFilters, SearchResults
from agent_memory.models.session import SessionContext, SessionScope
from agent_memory.runtime.lazy_parts import lazy_property

if TYPE_CHECKING:
    from agent_memory.api.options import (
        OwnAddOptions,
        OwnSearchOptions,
        OwnStoreOptions,
        OwnUpdateOptions,
        StoreManyOptions,
    )
    from agent_memory.api.verbs import MemoryVerbs
    from agent_memory.embeddings.usage import EmbeddingUsage
    from agent_memory.models.conversation import Message
    from agent_memory.models.decision import Review
    from agent_memory.models.documents.responses import AddMemoryResponse
    from agent_memory.models.duplicate import Duplicate
    from agent_memory.models.enums import StorageBackend
    from agent_memory.models.reports import ExportReport

Result = TypeVar("Result")

_OWNERS: Final = ("agent_id", "run_id", "user_id")
_FIXED: Final = ("agent_id", "id", "run_id", "session_id", "user_id")
"""What a session may not say of a memory: an id could be another's, and saying so would tell."""
_MOST: Final = 2**62
_EXPORTS: Final = ("json", "jsonl", "record-json", "record-jsonl", "scratchpad", "backup")
"""The formats that hold memories alone; the others hold what is the agent's."""


class SessionMemory(WithCheckedFlags):
    """The verbs of a memory within one session, as far as its permissions allow.

    ``AgentMemory.session`` creates it. What belongs to other sessions seems not to exist: ``get``
    returns ``None``, and changing it raises ``MemoryNotFound``. Every verb raises
    ``PermissionDenied`` if the session may not read, write or delete, before it looks at its
    arguments. The verbs are those of ``AgentMemory``, and whatever accepts a memory also accepts a
    session: ``MemoryTools``, ``MemoryContext`` and the integrations.

    The rarity of words, the neighbours of a memory and the set of candidates are all computed from
    this session's memories alone. Each user has separate places in the scratchpad, shared by the
    user's runs.

    ``scope`` has the ids and the permissions. Closing a session does not close the memory, which
    others may be using.
    """

    def __init__(self, memory: MemoryVerbs, context: SessionContext | Mapping[str, Any]) -> None:
        self.scope = SessionScope.of(context)
        if self.scope.agent_id not in (None, memory.agent_id):
            raise InvalidSession(
                f"the session is with agent {self.scope.agent_id!r}, and these are the memories of"
                f" agent {memory.agent_id!r}: open the memory of that agent"
            )
        self._memory = memory
        self._owner = self.scope.owner
        self._run_id = self._owner.run_id

    @property
    def agent_id(self) -> str:
        """The agent whose memory this is."""
        return self._memory.agent_id

    @property
    def session_id(self) -> str:
        """The session that new memories are labelled with: the run, else the memory's own."""
        return self.scope.run_id or self._memory.session_id

    @lazy_property
    def id_prefix(self) -> str:
        """How ids given to ``store`` must begin, so that no other session can have stored them."""
        name = f"{self.scope.user_id}\n{self._run_id or ''}"
        return f"s-{hashlib.sha256(name.encode()).hexdigest()[:24]}-"

    @property
    def backend(self) -> StorageBackend:
        """How memories are searched: by keyword, or also by meaning."""
        return self._memory.backend

    @property
    def embedding_usage(self) -> EmbeddingUsage:
        """What was embedded through the memory that this session belongs to."""
        return self._memory.embedding_usage

    @property
    def on_duplicate(self) -> str | None:
        """What the file's settings do with duplicates when a call does not say."""
        return self._memory.on_duplicate

    def close(self) -> None:
        """Leave the memory open: others may be using it."""

    # Reading ----------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int | None = None,
        *,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        **arguments: Unpack[OwnSearchOptions],
    ) -> SearchResults:
        """Find memories of this session, as ``AgentMemory.search`` does.

        ``filters`` and the other arguments can only narrow the result. Other agents' memories are
        never searched, so there is no ``shared``.
        """
        self._refuse_unless("read")
        options: dict[str, Any] = {**arguments}
        if options.pop("shared", None):
            raise PermissionDenied(
                "a session cannot search other agents' memories: leave shared out"
            )
        asked = self._narrowed(filters, options)
        results = self._memory.search(query, limit, filters=asked, **options)
        # What waits for its embedding, say, may be another user's.
        metadata = results.search_metadata.model_copy(update={"degraded": []})
        return results.model_copy(update={"search_metadata": metadata})

    def get(self, memory_id: str, *, as_of: Time | None = None) -> Memory | None:
        """Return a memory of this session, or ``None``.

        ``as_of`` returns it as it was at a time, if it was this session's then.
        """
        self._refuse_unless("read")
        return self._own(memory_id, as_of=as_of)

    def get_all(
        self,
        *,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Memory]:
        """Return the memories of this session, newest first: all, or at most ``limit``."""
        self._refuse_unless("read")
        narrowed = self._narrowed(filters, {})
        return self._memory.get_all(filters=narrowed, limit=limit, offset=offset)

    def list_recent(
        self,
        limit: int = 10,
        *,
        offset: int = 0,
        after: str | None = None,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        as_of: Time | None = None,
        order: str = "newest",
    ) -> list[Memory]:
        """Return the newest memories of this session, as ``AgentMemory.list_recent`` does.

        ``after`` must be a memory of this session. ``as_of`` returns the memories that were this
        session's at a time, as they were then.
        """
        self._refuse_unless("read")
        asked = self._narrowed(filters, {})
        if after is not None:  # another's would tell by the page that it exists, and how old it is
            self._require(check_id("after", after), as_of=as_of)
        return self._memory.list_recent(
            limit, offset=offset, after=after, filters=asked, as_of=as_of, order=order
        )

    def count(self, *, filters: SearchFilters | Mapping[str, Any] | None = None) -> int:
        """Count the memories of this session."""
        self._refuse_unless("read")
        return self._memory.count(filters=self._narrowed(filters, {}))

    def history(
        self, memory_id: str | None = None, *, limit: int = 100, before: int | None = None
    ) -> list[HistoryEntry]:
        """Return the changes of one memory of this session, or of all, newest first.

        Deleted memories are included. Changes from before a memory belonged to this session are
        left out. ``before`` is the number of the last change of the previous page.
        """
        self._refuse_unless("read")
        limit = check_whole_number("limit", limit, lowest=1)
        if before is not None:
            check_whole_number("before", before, lowest=1)
        lifecycle = self._memory._store.lifecycle
        if memory_id is None:
            return lifecycle.own_history(self._owner, limit=limit, before=before)
        own = lifecycle.own_change_ids(memory_id, self._owner)
        if not own:
            self._require(memory_id)
        entries = self._memory.history(memory_id, limit=_MOST, before=before)
        return [entry for entry in entries if entry.change_id in own][:limit]

    def duplicates(self, content: str) -> list[Duplicate]:
        """Return the memories of this session that say the same as a text, best grade first."""
        self._refuse_unless("read")
        return self._memory.duplicates(content, user_id=self.scope.user_id, run_id=self._run_id)

    def scratchpad(self) -> Scratchpad:
        """Return this session's memories in the scratchpad, most recently used first."""
        self._refuse_unless("read")
        return self._memory._scratchpad_of(self._owner)

    def context(
        self,
        token_budget: int | None = None,
        *,
        config: MemoryContextConfig | Mapping[str, Any] | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> str:
        """Return this session's scratchpad as Markdown, as ``AgentMemory.context`` does."""
        self._refuse_unless("read")
        return self._memory._context_of(
            self._owner, token_budget, config=config, count_tokens=count_tokens
        )

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "json",  # noqa: A002 - the option's name
        as_of: Time | None = None,
        overwrite: bool = False,
    ) -> ExportReport:
        """Export the memories of this session, archived ones included, as ``AgentMemory.export``.

        ``format`` is ``json``, ``jsonl``, ``record-json``, ``record-jsonl``, ``scratchpad`` or
        ``backup``; the other formats contain the whole agent. ``as_of`` writes the memories that
        were this session's at a time, as they were then.
        """
        self._refuse_unless("read")
        if format not in _EXPORTS:
            raise PermissionDenied(
                f"format: {format!r:.80} contains more than a session's memories: use one of"
                f" {', '.join(_EXPORTS)}"
            )
        return self._memory._export_of(
            self._owner, path, format=format, as_of=as_of, overwrite=overwrite
        )

    @property
    def graph(self) -> SessionGraph:
        """The graph of this session's user, or what this run's memories say of it."""
        return SessionGraph(self._memory.graph, self._owner, self._refuse_unless, self._required)

    # Writing ----------------------------------------------------------------------------------

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any] | Message],
        **arguments: Unpack[OwnAddOptions],
    ) -> AddMemoryResponse:
        """Learn from a conversation of this session, as ``AgentMemory.add`` does.

        If the session may not delete, deletions are put up for review instead (``reviews``).
        """
        self._refuse_unless("write")
        options: dict[str, Any] = {**arguments}
        self._refuse_fixed(options)
        if "is_confidential" in options:
            raise PermissionDenied("is_confidential: every session is confidential: leave it out")
        if options.pop("may_delete", True) is not True:
            raise PermissionDenied(
                "may_delete: the session's permissions decide that: leave it out"
            )
        if options.get("dry_run") or options.get("llm") is not None:
            self._refuse_unless("read")  # both show what is known
        may_delete = self.scope.permissions.delete
        answer = _without_details(
            lambda: self._memory.add(
                messages,
                user_id=self.scope.user_id,
                run_id=self._run_id,
                may_delete=may_delete,
                is_confidential=True,
                **options,
            )
        )
        if self.scope.permissions.read:
            return answer
        changes = [memory.model_copy(update={"previous_memory": None}) for memory in answer.data]
        return answer.model_copy(update={"data": changes, "operations": None})

    def store(self, content: str, **arguments: Unpack[OwnStoreOptions]) -> str:
        """Store a memory of this session and return its id; see ``AgentMemory.store``.

        An ``id`` must begin with this session's ``id_prefix``.
        """
        self._refuse_unless("write")
        self._refuse_duplicate_function(arguments)
        own = self._owned(arguments)
        return _without_details(lambda: self._memory.store(content, **own))

    def store_many(
        self,
        items: Iterable[Mapping[str, Any]],
        **arguments: Unpack[StoreManyOptions],
    ) -> list[str]:
        """Store memories of this session, all or none, and return their ids in order."""
        self._refuse_unless("write")
        self._refuse_duplicate_function(arguments)
        own = [self._owned_item(item) for item in check_items(items)]
        return _without_details(lambda: self._memory.store_many(own, **arguments))

    def validate(self, item: Mapping[str, Any], *, on_secret: str | None = None) -> None:
        """Raise what ``store`` would raise for an item by itself, as ``AgentMemory.validate``."""
        self._refuse_unless("write")
        self._memory.validate(self._owned_item(item), on_secret=on_secret)

    def update(self, memory_id: str, **changes: Unpack[OwnUpdateOptions]) -> Memory:
        """Change a memory of this session, and return it as it is now."""
        self._refuse_unless("write")
        self._refuse_fixed(changes)
        if changes.get("archived"):
            self._refuse_unless("delete")  # it leaves all searches
        self._require(memory_id)
        return self._shown(_without_details(lambda: self._memory.update(memory_id, **changes)))

    def promote(self, memory_id: str) -> Promotion:
        """Put a memory of this session into the scratchpad by hand, as ``AgentMemory.promote``."""
        self._refuse_unless("write")
        self._require(memory_id)
        promotion = self._memory.promote(memory_id)
        is_own = promotion.evicted is not None and self._own(promotion.evicted) is not None
        size = len(self._memory._scratchpad_of(self._owner).memories)
        shown = {"evicted": promotion.evicted if is_own else None, "scratchpad_size": size}
        return promotion.model_copy(update=shown)

    def demote(self, memory_id: str) -> bool:
        """Take a memory of this session out of the scratchpad; return whether it was in."""
        self._refuse_unless("write")
        self._require(memory_id)
        return self._memory.demote(memory_id)

    def unarchive(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Bring archived memories of this session back and return them, all or none."""
        self._refuse_unless("write")
        own = self._required(memory_ids)
        return self._all_shown(_without_details(lambda: self._memory.unarchive(own)))

    def undo(self, change_id: int | None = None) -> Undone:
        """Undo one change of this session's memories, or what was last done to them.

        If one verb changed memories of several users, only this session's are restored. Requires
        the permissions to read, write and delete. Raises ``ValidationError`` as
        ``AgentMemory.undo`` does; the changes of others seem not to exist.
        """
        for permission in ("read", "write", "delete"):
            self._refuse_unless(permission)
        return _without_details(lambda: self._memory._undo_of(self._owner, change_id))

    # Deleting ---------------------------------------------------------------------------------

    def delete(self, memory_id: str) -> Memory:
        """Delete a memory of this session and return it as it was; it stays in the history."""
        self._refuse_unless("delete")
        self._require(memory_id)
        return self._shown(self._memory.delete(memory_id))

    def delete_many(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Delete several memories of this session, all or none; return them as they were."""
        self._refuse_unless("delete")
        return self._all_shown(self._memory.delete_many(self._required(memory_ids)))

    def archive(self, memory_ids: str | Iterable[str]) -> list[Memory]:
        """Archive memories of this session and return them: they leave all searches."""
        self._refuse_unless("delete")
        return self._all_shown(self._memory.archive(self._required(memory_ids)))

    def delete_all(
        self, *, filters: SearchFilters | Mapping[str, Any] | None = None
    ) -> list[Memory]:
        """Delete all memories of this session, archived ones too, or only those of ``filters``."""
        self._refuse_unless("delete")
        return self._all_shown(self._memory.delete_all(filters=self._narrowed(filters, {})))

    # Questions --------------------------------------------------------------------------------

    def reviews(self) -> list[Review]:
        """Return the memories of this session that wait for a decision, oldest first."""
        self._refuse_unless("read")
        reviews = self._memory.reviews()
        return [review for review in reviews if self._owner.owns(review.user_id, review.run_id)]

    def under_review(self, memory_ids: str | Iterable[str]) -> set[str]:
        """Return those of some memories of this session that a newer one may correct."""
        self._refuse_unless("read")
        own = [each for each in check_ids(memory_ids) if self._own(each)]
        return self._memory.under_review(own)

    def approve(self, review_id: int) -> Memory:
        """Delete the memory under review, or shorten it, and return it as it was."""
        return self.decide(approve=[review_id])[0][0]

    def dismiss(self, review_id: int) -> Review:
        """Keep the memory under review, close the review and return it."""
        return self.decide(dismiss=[review_id])[1][0]

    def decide(
        self, *, approve: Sequence[int] = (), dismiss: Sequence[int] = ()
    ) -> tuple[list[Memory], list[Review]]:
        """Approve some reviews of this session and dismiss others, as ``AgentMemory.decide``.

        To approve requires the permission to delete, to dismiss that to write.
        """
        if approve:
            self._refuse_unless("delete")
        if dismiss:
            self._refuse_unless("write")
        approved = check_review_ids("approve", approve)
        dismissed = check_review_ids("dismiss", dismiss)
        for review_id in (*approved, *dismissed):
            self._memory._store.decisions.review(review_id, self._owner)
        changed, kept = self._memory.decide(approve=approved, dismiss=dismissed)
        return self._all_shown(changed), [self._shown_review(review) for review in kept]

    # Inside -----------------------------------------------------------------------------------

    def _shown(self, memory: Memory) -> Memory:
        """Return a memory, without what it says where the session may not read."""
        if self.scope.permissions.read:
            return memory
        return memory.model_copy(update={"content": "", "tags": [], "metadata": {}})

    def _all_shown(self, memories: Iterable[Memory]) -> list[Memory]:
        return [self._shown(memory) for memory in memories]

    def _shown_review(self, review: Review) -> Review:
        """Return a review, without its texts and what they are of if the session may not read."""
        if self.scope.permissions.read:
            return review
        shown = {"review_id", "memory_id", "proposed_at", "user_id", "run_id"}
        # Of a copy, `remaining` would still be computed from both texts.
        return type(review)(content="", **review.model_dump(include=shown))

    def _owned(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        stated = {name: value for name, value in fields.items() if value is not None}
        memory_id = stated.get("id", self.id_prefix)
        if not (isinstance(memory_id, str) and memory_id.startswith(self.id_prefix)):
            raise PermissionDenied(
                f"id: in this session it must begin with {self.id_prefix!r} (id_prefix): change it,"
                " or leave id out"
            )
        self._refuse_fixed(stated, but=("id", "session_id"))
        return {
            **fields,
            "user_id": self.scope.user_id,
            "run_id": self._run_id,
            "session_id": stated.get("session_id") or self.scope.run_id,
        }

    def _owned_item(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a new memory's fields as this session's. The verb refuses a non-mapping."""
        return self._owned(item) if isinstance(item, Mapping) else item

    def _refuse_duplicate_function(self, arguments: Mapping[str, Any]) -> None:
        """Refuse a function that is called with known memories, if the session may not read."""
        if callable(arguments.get("on_duplicate")):
            self._refuse_unless("read")

    def _refuse_unless(self, permission: str) -> None:
        if not getattr(self.scope.permissions, permission):
            raise PermissionDenied(
                f"this session of user {self.scope.user_id!r} may not {permission}: it does"
                " not have that permission"
            )

    def _refuse_fixed(self, arguments: Mapping[str, Any], *, but: Sequence[str] = ()) -> None:
        for name in _FIXED:
            if name in arguments and name not in but:
                raise PermissionDenied(f"{name}: the session sets it: leave {name} out")

    def _narrowed(
        self,
        filters: SearchFilters | Mapping[str, Any] | None,
        arguments: dict[str, Any],
    ) -> SearchFilters:
        """Return filters that find nothing but what is of this session."""
        checked = validate_model(SearchFilters, filters)
        scope: dict[str, Any] = {"user_id": self.scope.user_id}
        if self._run_id is not None:
            scope["run_id"] = self._run_id
        for name in _OWNERS:
            value = arguments.pop(name, None) or getattr(checked, name)
            wanted = scope.get(name, self._memory.agent_id if name == "agent_id" else value)
            if value is not None and value != wanted:
                raise PermissionDenied(
                    f"{name}: this session belongs to {wanted!r} and may not use another"
                )
            if value is not None:
                scope[name] = value
        return checked.model_copy(update=scope)

    def _own(self, memory_id: str, *, as_of: Time | None = None) -> Memory | None:
        memory = self._memory.get(memory_id, as_of=as_of)
        is_own = memory is not None and self._owner.owns(memory.user_id, memory.run_id)
        return memory if is_own else None

    def _require(self, memory_id: str, *, as_of: Time | None = None) -> None:
        if self._own(memory_id, as_of=as_of) is None:
            raise MemoryNotFound(memory_id)

    def _required(self, memory_ids: str | Iterable[str]) -> list[str]:
        ids = check_ids(memory_ids)
        for memory_id in ids:
            self._require(memory_id)
        return ids


def _without_details(call: Callable[[], Result]) -> Result:
    """Return what a call returns, or say that it was refused, and nothing of what others have."""
    try:
        return call()
    except (LimitReached, RejectedContent) as error:
        refusal = error.without_details()
    raise refusal  # here, it carries nothing of the first

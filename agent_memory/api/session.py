"""One session's view of a memory: nothing of another user can be read, changed or hinted at.

Document C scopes memories to users, agents and runs. A file holds the memories of one agent, so a
session of a user sees those about this user, and a session of a run those of this user and run. A
memory about nobody in particular belongs to no session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.api.arguments import check_whole_number, validate_model
from agent_memory.errors import (
    InvalidSession,
    LimitReached,
    MemoryNotFound,
    PermissionDenied,
    RejectedContent,
    ValidationError,
)
from agent_memory.models.memory import HistoryEntry, Memory
from agent_memory.models.search import SearchFilters, SearchResults
from agent_memory.models.session import SessionContext, SessionType

if TYPE_CHECKING:
    from agent_memory.api.arguments import Time
    from agent_memory.api.conversations import ConversationVerbs
    from agent_memory.api.graph import MemoryGraph
    from agent_memory.models.conversation import Message
    from agent_memory.models.decision import Review
    from agent_memory.models.documents.responses import AddMemoryResponse
    from agent_memory.models.graph import (
        EdgeView,
        EntityView,
        GraphChange,
        GraphPath,
        Neighbourhood,
    )

Result = TypeVar("Result")

_OWNERS: Final = ("agent_id", "run_id", "user_id")
_FIXED: Final = ("agent_id", "id", "run_id", "session_id", "user_id")
"""What a session may not say of a memory: an id could be another's, and saying so would tell."""
_MOST_CHANGES: Final = 100_000


class SessionMemory:
    """The verbs of a memory within one session, as its permissions allow.

    It is made by ``AgentMemory.session``. What belongs to other sessions is as if it were not
    there: ``get`` returns ``None``, and changing it raises ``MemoryNotFound``. Each verb raises
    ``PermissionDenied`` where the session may not read, write or delete, before it looks at what
    it was given.

    How common a word is counts in the order of results, and is told of the whole file.
    """

    def __init__(self, memory: ConversationVerbs, context: SessionContext) -> None:
        if context.agent_id not in (None, memory.agent_id):
            raise InvalidSession(
                f"the session is with agent {context.agent_id!r}, and these are the memories of"
                f" agent {memory.agent_id!r}: open the memory of that agent"
            )
        self._memory = memory
        self.context = context
        self._run_id = context.run_id if context.session_type is SessionType.RUN else None

    # Reading ----------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int | None = None,
        *,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        **arguments: Any,  # noqa: ANN401 - those of AgentMemory.search
    ) -> SearchResults:
        """Find memories of this session, as ``AgentMemory.search`` does.

        ``filters`` and the other arguments can only narrow what is found. Other agents' memories
        are not searched, so there is no ``shared``.
        """
        self._refuse_unless("read")
        if arguments.pop("shared", None):
            raise PermissionDenied("a session searches no other agents' memories: leave shared out")
        asked = self._narrowed(filters, arguments)
        results = self._memory.search(query, limit, filters=asked, **arguments)
        # That a word is in too many memories of the file says something about other users'.
        metadata = results.search_metadata.model_copy(update={"degraded": []})
        return results.model_copy(update={"search_metadata": metadata})

    def get(self, memory_id: str) -> Memory | None:
        """Return a memory of this session, or ``None``."""
        self._refuse_unless("read")
        return self._own(memory_id)

    def get_all(
        self,
        *,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Memory]:
        """Return the memories of this session, newest first."""
        self._refuse_unless("read")
        asked = self._narrowed(filters, {})
        return self._memory.list_recent(limit, offset=offset, filters=asked)

    def count(self, *, filters: SearchFilters | Mapping[str, Any] | None = None) -> int:
        """Count the memories of this session."""
        self._refuse_unless("read")
        return self._memory.count(filters=self._narrowed(filters, {}))

    def history(self, memory_id: str, *, limit: int = 100) -> list[HistoryEntry]:
        """Return the changes of a memory of this session, newest first, deleted ones too.

        Only those are told since which it belongs to this session.
        """
        self._refuse_unless("read")
        entries = list(self._own_changes(memory_id))
        if not entries:
            raise MemoryNotFound(memory_id)
        return entries[: check_whole_number("limit", limit, lowest=1)]

    @property
    def graph(self) -> SessionGraph:
        """The graph of this session's user."""
        return SessionGraph(
            self._memory.graph, self.context.user_id, self._refuse_unless, self._require
        )

    # Writing ----------------------------------------------------------------------------------

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any] | Message],
        **arguments: Any,  # noqa: ANN401 - those of AgentMemory.add
    ) -> AddMemoryResponse:
        """Keep what a conversation of this session says, as ``AgentMemory.add`` does.

        Where the session may not delete, what would be deleted is put in question (``reviews``).
        """
        self._refuse_unless("write")
        self._refuse_fixed(arguments)
        if arguments.pop("may_delete", True) is not True:
            raise PermissionDenied("may_delete: the session's permissions say that: leave it out")
        if arguments.get("dry_run") or arguments.get("llm") is not None:
            self._refuse_unless("read")  # both show what is known
        may_delete = self.context.permissions.delete
        answer = _without_details(
            lambda: self._memory.add(
                messages,
                user_id=self.context.user_id,
                run_id=self._run_id,
                may_delete=may_delete,
                **arguments,
            )
        )
        if self.context.permissions.read:
            return answer
        changes = [memory.model_copy(update={"previous_memory": None}) for memory in answer.data]
        return answer.model_copy(update={"data": changes})

    def store(self, content: str, **arguments: Any) -> str:  # noqa: ANN401 - AgentMemory.store's
        """Store a memory of this session, and return its id; ``AgentMemory.store`` says how.

        It takes no ``id``.
        """
        self._refuse_unless("write")
        self._refuse_fixed(arguments)
        if callable(arguments.get("on_duplicate")):
            self._refuse_unless("read")  # it is told what is known
        return _without_details(
            lambda: self._memory.store(
                content,
                user_id=self.context.user_id,
                run_id=self._run_id,
                session_id=self.context.run_id,
                **arguments,
            )
        )

    def update(self, memory_id: str, **changes: Any) -> Memory:  # noqa: ANN401 - AgentMemory's
        """Change a memory of this session, and return it as it is now."""
        self._refuse_unless("write")
        self._refuse_fixed(changes)
        if changes.get("archived"):
            self._refuse_unless("delete")  # it leaves all searches
        self._require(memory_id)
        return self._shown(_without_details(lambda: self._memory.update(memory_id, **changes)))

    # Deleting ---------------------------------------------------------------------------------

    def delete(self, memory_id: str) -> Memory:
        """Delete a memory of this session, and return it as it was; it stays in the history."""
        self._refuse_unless("delete")
        self._require(memory_id)
        return self._shown(self._memory.delete(memory_id))

    def delete_all(
        self, *, filters: SearchFilters | Mapping[str, Any] | None = None
    ) -> list[Memory]:
        """Delete all memories of this session, archived ones too, or those like ``filters``."""
        self._refuse_unless("delete")
        gone = self._memory.delete_all(filters=self._narrowed(filters, {}))
        return [self._shown(memory) for memory in gone]

    # Questions --------------------------------------------------------------------------------

    def reviews(self) -> list[Review]:
        """Return the memories of this session that are in question, oldest first."""
        self._refuse_unless("read")
        return self._own_reviews()

    def approve(self, review_id: int) -> Memory:
        """Delete the memory in question, and return it as it was."""
        self._refuse_unless("delete")
        self._require_review(review_id)
        return self._shown(self._memory.approve(review_id))

    def dismiss(self, review_id: int) -> None:
        """Keep the memory in question."""
        self._refuse_unless("write")
        self._require_review(review_id)
        self._memory.dismiss(review_id)

    # Inside -----------------------------------------------------------------------------------

    def _own_reviews(self) -> list[Review]:
        reviews = self._memory.reviews()
        return [
            review
            for review in reviews
            if self._is_own({"user_id": review.user_id, "run_id": review.run_id})
        ]

    def _require_review(self, review_id: int) -> None:
        check_whole_number("review_id", review_id, lowest=1)
        if review_id not in {review.review_id for review in self._own_reviews()}:
            message = "there is no such review: `reviews` lists them"
            raise ValidationError.of("review_id", message, review_id)

    def _shown(self, memory: Memory) -> Memory:
        """Return a memory, without what it says where the session may not read."""
        if self.context.permissions.read:
            return memory
        return memory.model_copy(update={"content": "", "tags": [], "metadata": {}})

    def _refuse_unless(self, permission: str) -> None:
        if not getattr(self.context.permissions, permission):
            raise PermissionDenied(
                f"this session of user {self.context.user_id!r} may not {permission}: its"
                f" permissions say so"
            )

    def _refuse_fixed(self, arguments: Mapping[str, Any]) -> None:
        for name in _FIXED:
            if name in arguments:
                raise PermissionDenied(
                    f"{name}: the session says whose its memories are, and a new one gets its id:"
                    f" leave {name} out"
                )

    def _narrowed(
        self,
        filters: SearchFilters | Mapping[str, Any] | None,
        arguments: dict[str, Any],
    ) -> SearchFilters:
        """Return filters that find nothing but what is of this session."""
        checked = validate_model(SearchFilters, filters)
        scope: dict[str, Any] = {"user_id": self.context.user_id}
        if self._run_id is not None:
            scope["run_id"] = self._run_id
        for name in _OWNERS:
            value = arguments.pop(name, None) or getattr(checked, name)
            wanted = scope.get(name, self._memory.agent_id if name == "agent_id" else value)
            if value is not None and value != wanted:
                raise PermissionDenied(
                    f"{name}: this session is of {wanted!r} and may not ask for another"
                )
            if value is not None:
                scope[name] = value
        return checked.model_copy(update=scope)

    def _is_own(self, values: Mapping[str, Any]) -> bool:
        is_users = values.get("user_id") == self.context.user_id
        return is_users and self._run_id in (None, values.get("run_id"))

    def _own(self, memory_id: str) -> Memory | None:
        memory = self._memory.get(memory_id)
        is_own = memory is not None and self._is_own(
            {"user_id": memory.user_id, "run_id": memory.run_id}
        )
        return memory if is_own else None

    def _require(self, memory_id: str) -> None:
        if self._own(memory_id) is None:
            raise MemoryNotFound(memory_id)

    def _own_changes(self, memory_id: str) -> Iterator[HistoryEntry]:
        """Yield the changes of a memory while it was this session's, newest first."""
        try:
            entries = self._memory.history(memory_id, limit=_MOST_CHANGES)
        except MemoryNotFound:
            return
        memory = self._memory.get(memory_id)
        values = {} if memory is None else _owners(memory)
        for entry in entries:
            after = entry.new_values or {}
            before = entry.old_values or {}
            if entry.event == "DELETE":
                values = {name: before.get(name) for name in ("user_id", "run_id")}
            if not self._is_own(values):
                return
            moved = {n for n in ("user_id", "run_id") if before.get(n) != after.get(n)}
            if entry.event == "UPDATE" and moved & (before.keys() | after.keys()):
                values = {**values, **{name: before.get(name) for name in moved}}
                if not self._is_own(values):
                    return
            yield entry


class SessionGraph:
    """The graph of one user, as a session may use it; ``MemoryGraph`` says what the verbs do.

    All that is read from this user's memories is in it, whichever run they are of.
    """

    def __init__(
        self,
        graph: MemoryGraph,
        user_id: str,
        refuse_unless: Callable[[str], None],
        require: Callable[[str], None],
    ) -> None:
        self._graph = graph
        self._user_id = user_id
        self._refuse_unless = refuse_unless
        self._require = require

    def entities(self, *, limit: int | None = None) -> list[EntityView]:
        """Return the entities, oldest first."""
        self._refuse_unless("read")
        return self._graph.entities(user_id=self._user_id, limit=limit)

    def entity(self, name: str) -> EntityView | None:
        """Return the entity that has this name or alias, or ``None``."""
        self._refuse_unless("read")
        return self._graph.entity(name, user_id=self._user_id)

    def relationships(
        self,
        entity: str | None = None,
        *,
        as_of: Time | None = None,
        include_closed: bool = False,
        limit: int | None = None,
    ) -> list[EdgeView]:
        """Return the relationships that hold, of one entity or of all, oldest first."""
        self._refuse_unless("read")
        return self._graph.relationships(
            entity,
            user_id=self._user_id,
            as_of=as_of,
            include_closed=include_closed,
            limit=limit,
        )

    def neighbours(self, name: str, depth: int = 1, *, as_of: Time | None = None) -> Neighbourhood:
        """Return what is within ``depth`` relationships of an entity, nearest first."""
        self._refuse_unless("read")
        return self._graph.neighbours(name, depth, user_id=self._user_id, as_of=as_of)

    def path(
        self, source: str, target: str, max_depth: int = 4, *, as_of: Time | None = None
    ) -> GraphPath:
        """Return a shortest way between two entities."""
        self._refuse_unless("read")
        return self._graph.path(source, target, max_depth, user_id=self._user_id, as_of=as_of)

    def add(self, source: str, relationship: str, target: str, **more: Any) -> EdgeView:  # noqa: ANN401 - MemoryGraph.add's
        """Say that something holds. A memory of another user cannot say so."""
        self._refuse_unless("write")
        for name in ("user_id", "run_id"):
            if name in more:
                raise PermissionDenied(f"the session says whose the graph is: leave {name} out")
        if more.get("memory_id") is not None:
            self._require(more["memory_id"])
        return self._graph.add(source, relationship, target, **more, user_id=self._user_id)

    def remove(self, source: str, relationship: str, target: str) -> GraphChange:
        """Say that something holds no more. It stays in the past."""
        self._refuse_unless("delete")
        return self._graph.remove(source, relationship, target, user_id=self._user_id)


def _owners(memory: Memory) -> dict[str, Any]:
    return {"user_id": memory.user_id, "run_id": memory.run_id}


def _without_details(call: Callable[[], Result]) -> Result:
    """Return what a call returns, or say that it was refused, and nothing of what others have."""
    try:
        return call()
    except LimitReached:
        message = "the agent's retention policy has no room for more memories: nothing was stored"
        refusal: ValidationError = LimitReached(message)
    except RejectedContent:
        refusal = RejectedContent("it holds a value that may not be stored: nothing was stored")
    raise refusal  # here, it carries nothing of the first

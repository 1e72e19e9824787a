"""``AgentMemoryStore``: LangGraph's operations as verbs of a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from agent_memory import (
    MAX_SEARCH_LIMIT,
    AgentMemory,
    Memory,
    MemoryNotFound,
    MemorySearchResult,
    ValidationError,
)
from agent_memory.integrations.langgraph.conditions import custom_filters_of, refuse_unknown
from agent_memory.integrations.langgraph.items import (
    ITEM,
    Fields,
    Name,
    fields_of,
    item_id,
    item_of,
    matching_item,
    row_of,
    within,
)
from agent_memory.models.times import now_utc

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession

_VALUE: Final = f"{ITEM}.value"
_ALL: Final = 2**62
_TRIES: Final = 100
"""The most times that a batch is planned while others store and delete the same items."""


class AgentMemoryStore(BaseStore):
    """A LangGraph store in the file of one agent: ``graph.compile(store=AgentMemoryStore("bob"))``.

    ``memory`` is an open ``AgentMemory``, which stays open, or the id of an agent; then ``options``
    are those of ``AgentMemory``, and ``close`` (or the end of a ``with``) closes it. With a session
    of a memory (``memory.session(…)``) each user has items of their own, under any namespaces.
    Other memories of the agent are not items, and are left alone.

    ``fields`` are the paths in a value whose text searches with a ``query`` find, unless ``put``
    says otherwise with ``index`` (``False``: none of it); by default all of the value. ``fill``
    makes a search with a query also return items that do not answer it, newest first and without a
    score, until the limit is reached, as LangGraph's own stores do. ``clock`` dates the
    items, and is the clock of a memory that is opened here.

    - Values are what JSON can hold: numbers are finite, integers have 64 bits, tuples come back as
      lists, at most 18 levels deep and 1,000,000 characters of JSON. An invalid value is refused
      with ``ValidationError``, and nothing of its batch is stored.
    - A ``query`` is answered by ``AgentMemory.search``, with at most 100 items; others are left
      out. ``score`` is the ``similarity``, from 0 to 1, and items come most similar first: neither
      their age nor how often they were read counts. Without a query items come newest first.
    - A filter compares like with like: ``True`` is not 1, and a text is never greater than a
      number. A key with dots reaches into nested values.
    - ``delete`` keeps the item in the history, and ``AgentMemory.undo`` brings it back. An archived
      item is only found by its key, until it is put again.
    - An erased item comes back only when it is put again.
    - Items do not expire (``supports_ttl`` is false).

    The reads of a batch see the state before its puts; the last put of an item counts. All new
    items of a batch are stored in one transaction, all its deletions in another, each changed item
    in its own: a batch that only adds, only deletes or changes one item is all or nothing. For
    other batches, all values are validated before anything is written.
    """

    supports_ttl = False

    def __init__(
        self,
        memory: MemoryOrSession | str,
        *,
        fields: Sequence[str] | None = None,
        fill: bool = False,
        clock: Callable[[], datetime] = now_utc,
        **options: Any,  # noqa: ANN401 - AgentMemory's
    ) -> None:
        self._is_owner = isinstance(memory, str)
        self.memory: MemoryOrSession = (
            AgentMemory(memory, clock=clock, **options) if isinstance(memory, str) else memory
        )
        self._prefix = self.memory.id_prefix
        self._fields = None if fields is None else list(fields)
        self._fill = fill
        self._clock = clock

    def close(self) -> None:
        """Close the memory, if this store opened it."""
        if self._is_owner:
            self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # LangGraph's verbs ------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations and return their results in order: reads first, then puts.

        Raises ``InvalidNamespaceError`` and ``ValidationError`` before anything is done.
        """
        listed = list(ops)
        puts: dict[Name, PutOp] = {}
        for op in listed:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                puts[tuple(op.namespace), op.key] = op
        fields = {name: fields_of(op, self._fields) for name, op in puts.items()}
        results = [self._read(op) for op in listed]
        self._write(fields)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations in a thread, without blocking the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(tuple(op.namespace), op.key)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise ValidationError.of("op", "must be a GetOp, PutOp, SearchOp or ListNamespacesOp", op)

    # Reading ----------------------------------------------------------------------------------

    def _get(self, namespace: tuple[str, ...], key: str) -> Item | None:
        memory = self.memory.get(item_id(namespace, key, self._prefix))
        item = None if memory is None else item_of(memory, self._prefix)
        if item is None:
            return None
        return Item(
            value=item.value,
            key=item.key,
            namespace=item.namespace,
            created_at=item.created_at,
            updated_at=item.updated_at,
        )

    def _search(self, op: SearchOp) -> list[SearchItem]:
        _refuse_negative(op)
        refuse_unknown(op.filter or {})
        under = within(tuple(op.namespace_prefix))
        filters = {"custom_filters": {**under, **custom_filters_of(op.filter or {}, under=_VALUE)}}
        is_asked = bool(op.query and op.query.strip())
        find = self._most_similar if is_asked else self._newest
        return find(op, filters)[op.offset : op.offset + op.limit]

    def _newest(self, op: SearchOp, filters: Mapping[str, Any]) -> list[SearchItem]:
        """Return the items that a search without a query finds: as many as wanted, or more."""
        wanted = max(op.offset + op.limit, 1)
        rows = self.memory.list_recent(wanted, filters=filters)
        items = [item for memory in rows if (item := matching_item(memory, op, self._prefix))]
        if len(items) < len(rows) == wanted:  # the file's filter passed too many
            rows = self.memory.get_all(filters=filters)
            items = [item for memory in rows if (item := matching_item(memory, op, self._prefix))]
        return items

    def _most_similar(self, op: SearchOp, filters: Mapping[str, Any]) -> list[SearchItem]:
        """Return the items that answer a query, most similar first.

        A search ranks fresh and often read memories before more similar ones: if it may have left
        out hits, the most similar are chosen from the most hits that a search returns. If the
        filter rejects some of those, they may have displaced others: then the search is limited to
        the items that meet the filter. Only the first search counts as an access.
        """
        wanted = min(max(op.offset + op.limit, 1), MAX_SEARCH_LIMIT)
        query = op.query or ""
        hits = self.memory.search(query, wanted, filters=filters, explain=True)
        widest: dict[str, Any] = {
            "limit": MAX_SEARCH_LIMIT,
            "explain": True,
            "count_accesses": False,
        }
        if len(hits) == wanted < MAX_SEARCH_LIMIT:
            hits = self.memory.search(query, filters=filters, **widest)
        is_full = len(hits) == MAX_SEARCH_LIMIT
        if is_full and not all(matching_item(hit.memory, op, self._prefix) for hit in hits):
            fitting = self._newest(op._replace(limit=_ALL, offset=0), filters)
            ids = [item_id(item.namespace, item.key, self._prefix) for item in fitting]
            hits = self.memory.search(query, filters={"ids": ids}, **widest)
        by_similarity = sorted(hits, key=lambda hit: -hit.similarity)
        items = list(self._items_of(by_similarity, op))
        return self._filled_up(items, op, filters) if self._fill else items

    def _filled_up(
        self, items: list[SearchItem], op: SearchOp, filters: Mapping[str, Any]
    ) -> list[SearchItem]:
        """Return the items, followed by the newest of the rest, as many as are missing."""
        names = {(item.namespace, item.key) for item in items}
        wanted = op.offset + op.limit
        newest = self._newest(op._replace(limit=wanted + len(names), offset=0), filters)
        others = (item for item in newest if (item.namespace, item.key) not in names)
        return [*items, *islice(others, max(0, wanted - len(items)))]

    def _items_of(self, hits: Iterable[MemorySearchResult], op: SearchOp) -> Iterator[SearchItem]:
        """Yield the items of hits; those with the same words are a hit's repeats.

        A hit that was found only for its neighbours in the session does not answer the query.
        """
        for hit in hits:
            if hit.score is not None and not hit.score.keyword and not hit.score.vector:
                continue
            repeats = (self.memory.get(memory_id) for memory_id in hit.repeats)
            for memory in (hit.memory, *repeats):
                if memory is not None and (
                    item := matching_item(memory, op, self._prefix, hit.similarity)
                ):
                    yield item

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        _refuse_negative(op)
        conditions = op.match_conditions or ()
        prefixes = (condition.path for condition in conditions if condition.match_type == "prefix")
        prefix = tuple(next(prefixes, ()))
        fixed = prefix[: prefix.index("*")] if "*" in prefix else prefix
        rows = self.memory.get_all(filters={"custom_filters": within(fixed)})
        namespaces = {item.namespace for memory in rows if (item := item_of(memory, self._prefix))}
        cut = sorted(
            {
                namespace[: op.max_depth]
                for namespace in namespaces
                if all(_fits(namespace, condition) for condition in conditions)
            }
        )
        return cut[op.offset : op.offset + op.limit]

    # Writing ----------------------------------------------------------------------------------

    def _write(self, puts: Mapping[Name, Fields | None]) -> None:
        """Carry out the puts, planning again if others store the same items meanwhile."""
        for tries_left in reversed(range(_TRIES)):
            existing = {name: self._existing(name) for name in puts}
            try:
                self._apply(puts, existing)
            except (ValidationError, MemoryNotFound) as error:
                if not tries_left or not _is_of_a_race(error):
                    raise
            else:
                return

    def _existing(self, name: Name) -> Memory | None:
        """Return the memory of an item. Raises ``ValidationError`` for one that is not an item."""
        memory = self.memory.get(item_id(*name, self._prefix))
        if memory is not None and item_of(memory, self._prefix) is None:
            message = f"{memory.id} is a memory that is not an item of this store: delete it first"
            raise ValidationError.of("id", message, memory.id)
        return memory

    def _apply(
        self,
        puts: Mapping[Name, Fields | None],
        existing: Mapping[Name, Memory | None],
    ) -> None:
        now = self._clock()
        new: list[dict[str, Any]] = []
        changed: list[dict[str, Any]] = []
        gone: list[str] = []
        for name, fields in puts.items():
            memory = existing[name]
            if fields is not None:
                row = row_of(name, fields, memory, now, self._prefix)
                (new if memory is None else changed).append(row)
            elif memory is not None:
                gone.append(memory.id)
        if len(changed) + bool(new) + bool(gone) > 1:
            for row in (*changed, *new):
                self.memory.validate({name: row[name] for name in ("content", "metadata")})
        for row in changed:
            self.memory.update(row.pop("id"), **row, archived=False)
        if new:
            self.memory.store_many(new, on_duplicate="keep")
        if gone:
            self.memory.delete_many(gone)


def _refuse_negative(op: SearchOp | ListNamespacesOp) -> None:
    for name, number in (("limit", op.limit), ("offset", op.offset)):
        if number < 0:
            raise ValidationError.of(name, "must be 0 or more", number)


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Return whether a namespace meets a prefix or suffix condition; ``*`` is any one label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        message = "must be prefix or suffix"
        raise ValidationError.of("match_type", message, condition.match_type)
    is_prefix = condition.match_type == "prefix"
    part = namespace[: len(path)] if is_prefix else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _is_of_a_race(error: ValidationError | MemoryNotFound) -> bool:
    """Return whether an item was deleted or stored between being read and being written."""
    if isinstance(error, MemoryNotFound):
        return True
    return any("id" in fault["loc"] and fault["type"] != "erased" for fault in error.errors())

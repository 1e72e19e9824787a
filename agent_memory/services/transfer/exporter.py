"""Export: everything in a store, as of one moment, in a fixed order."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.agent import AgentMetadata
from agent_memory.models.decision import Review
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.models.fields import without_none
from agent_memory.models.memory import Memory
from agent_memory.models.portable import Entry, PortableValues, Section
from agent_memory.models.safety import Rejection
from agent_memory.models.scratchpad import Scratchpad, ScratchpadMemoryEntry
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.services.erasure.tombstones import tombstones_in_force
from agent_memory.storage.change_records import VECTOR_COLUMNS, Change, Tombstone
from agent_memory.storage.engine import Capability, Engine, require
from agent_memory.storage.filters import EVERYTHING, NOT_ARCHIVED
from agent_memory.storage.memory_models import memory_of_row
from agent_memory.storage.memory_values import fields_of, is_as_it_was_added

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner

_COLUMNS: Final = tuple(PortableValues.model_fields)


class Dump:
    """The content of one store for an export. Use it inside ``engine.read()``: one moment's state.

    ``embeddings`` is whether the vectors are exported too. With an ``owner``, everything is limited
    to this owner's memories and what is said of these alone. ``leave`` ends the read transaction.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        embeddings: bool,
        owner: Owner | None,
        leave: Callable[[], object],
    ) -> None:
        self.agent_id = engine.agent_id
        self._engine = engine
        self._leave = leave
        self._embeddings = embeddings
        self._owner = owner

    def _is_own(self, row: Mapping[str, Any]) -> bool:
        return self._owner is None or self._owner.owns(row["user_id"], row["run_id"])

    @property
    def changed_at(self) -> datetime:
        """When a memory was last changed or accessed, or the file was created."""
        if self._owner is not None:  # the last of all would reveal others' use
            times = [memory.last_accessed or memory.updated_at for memory in self.memories()]
            return max(times, default=self.metadata().created_at)
        last = self._engine.memory_rows.last_use()
        return read_stored_time(last) if last else self.metadata().created_at

    def metadata(self) -> AgentMetadata:
        """Return A's metadata of the agent."""
        count = self._engine.memories.count(NOT_ARCHIVED)
        return self._engine.agent.metadata(memory_count=count)

    def scratchpad(self) -> Scratchpad:
        """Return the hot set, most recently used first."""
        max_size = self._engine.agent.readable_config().scratchpad_max_size
        user_id = None if self._owner is None else self._owner.user_id
        row_ids = self._engine.scratchpad.members(user_id=user_id)
        memories = self._engine.memories.get_many(row_ids)
        names = set(ScratchpadMemoryEntry.model_fields)
        listed = (memories[row_id] for row_id in row_ids)
        entries = [
            ScratchpadMemoryEntry.model_construct(**memory.model_dump(include=names))
            for memory in listed
            if self._is_own(vars(memory))
        ]
        return Scratchpad.model_construct(
            agent_id=self.agent_id,
            last_updated=self.changed_at,
            max_size=max_size,
            memories=entries[:max_size],  # several users may have more in total than A allows
        )

    def memories(self) -> Iterator[Memory]:
        """Yield all memories in the order in which they were stored."""
        model = self._model()
        for row in self._engine.memory_rows.iterate():
            if not self._is_own(row):
                continue
            memory = memory_of_row(row, agent_id=self.agent_id)
            vector = None if model is None else self._engine.embeddings.get(model, row["seq"])
            if vector is not None:
                memory = memory.model_copy(update={"embedding": vector.numbers()})
            yield memory

    def count(self) -> int:
        """Count all memories, including archived ones."""
        return self._engine.memories.count(EVERYTHING)

    def copy_into(self, path: Path) -> None:
        """Copy the store's own file over ``path``; nothing can be read afterwards."""
        # On a separate connection: SQLite copies no file inside a transaction. And of a file on a
        # full disk it allows only one reader.
        require(self._engine, Capability.FILE_BACKUP)
        changed_at = self.changed_at
        self._leave()
        self._engine.files.back_up(path, now=changed_at)

    def entries(self) -> Iterator[Entry]:
        """Yield everything: the agent, its memories, and the data about them.

        Of one owner these are the memories, which of them are in the scratchpad and under review,
        and their vectors and categories: the rest is the agent's, and tells of others.

        Raises ``StorageCorrupt`` if the file has bytes in place of a text.
        """
        for entry in self._entries() if self._owner is None else self._own_entries():
            if any(map(_has_bytes, entry.fields.values())):
                raise StorageCorrupt(
                    f"{self._engine.location} is damaged: a {entry.section.value} to be"
                    " exported has bytes where text belongs. Restore a backup"
                )
            yield entry

    def _entries(self) -> Iterator[Entry]:
        model = self._model()
        yield Entry(Section.AGENT, self._agent(model))
        for row in self._engine.memory_rows.iterate():
            yield Entry(Section.MEMORY, fields_of(row))
        for fields in self._scratchpad_fields():
            yield Entry(Section.SCRATCHPAD, fields)
        for rejection in self._engine.rejections.all():
            yield Entry(Section.REJECTION, _rejection_fields(rejection))
        for fields in self._engine.graph_maintenance.iterate_entities():
            yield Entry(Section.ENTITY, fields)
        for fields in self._engine.graph_maintenance.iterate_edges():
            yield Entry(Section.RELATIONSHIP, fields)
        for review in self._engine.reviews.all():
            yield Entry(Section.REVIEW, _review_fields(review))
        if model is not None:
            yield Entry(Section.MODEL, _model_fields(model))
            yield from self._vectors(model)
        yield from self._changes()
        for tombstone in tombstones_in_force(self._engine):
            yield Entry(Section.TOMBSTONE, _tombstone_fields(tombstone))

    def _own_entries(self) -> Iterator[Entry]:
        rows = self._engine.memory_rows
        own = {row["id"]: row["category"] for row in rows.iterate() if self._is_own(row)}
        # Only their own categories: that somebody else has recipes is not told.
        used, settings = set(own.values()), self._engine.agent.readable_config()
        known = [name for name in settings.categories if name in used]
        config = {"config": {"categories": known}} if known else {}
        yield Entry(Section.AGENT, {"agent_id": self.agent_id, **config})
        for row in rows.iterate():
            if row["id"] in own:
                yield Entry(Section.MEMORY, fields_of(row))
        for fields in self._scratchpad_fields():
            if fields["id"] in own:
                yield Entry(Section.SCRATCHPAD, fields)
        for review in self._engine.reviews.all():
            if {review.memory_id, review.replaced_by or review.memory_id} <= own.keys():
                yield Entry(Section.REVIEW, _review_fields(review))
        if model := self._model():
            yield Entry(Section.MODEL, _model_fields(model))
            yield from (entry for entry in self._vectors(model) if entry.fields["id"] in own)

    def _scratchpad_fields(self) -> Iterator[dict[str, Any]]:
        for memory_id, entered_at, reason in self._engine.scratchpad.entries():
            yield {"id": memory_id, "entered_at": entered_at, "reason": reason}

    def _model(self) -> EmbeddingModel | None:
        if not self._embeddings:
            return None
        models = self._engine.embeddings.models()
        return next((model for model in models if model.state == "active"), None)

    def _agent(self, model: EmbeddingModel | None) -> dict[str, Any]:
        """Return the agent's columns; those about vectors only if they are exported."""
        fields = {"agent_id": self.agent_id, **self._engine.agent.row()}
        if model is None:
            for name in VECTOR_COLUMNS:
                fields.pop(name, None)
        return fields

    def _vectors(self, model: EmbeddingModel) -> Iterator[Entry]:
        for memory_id, digest, scale, data in self._engine.embeddings.iterate(model.model_id):
            vector = base64.b64encode(data).decode()
            fields = {"id": memory_id, "hash": digest.hex(), "scale": scale, "vector": vector}
            yield Entry(Section.VECTOR, fields)

    def _changes(self) -> Iterator[Entry]:
        """Yield the history, oldest change first.

        If a memory is still as it was when it was added, its values are not written twice.
        """
        page: list[Change] = []
        for change in self._engine.history.iterate():
            page.append(change)
            if len(page) == 1_000:
                yield from self._page_of_changes(page)
                page = []
        yield from self._page_of_changes(page)

    def _page_of_changes(self, page: list[Change]) -> Iterator[Entry]:
        added = [change.memory_id for change in page if change.event == "ADD"]
        rows = self._engine.memory_rows.get_many(added)
        for change in page:
            is_as_added = is_as_it_was_added(change, rows.get(change.memory_id))
            fields = without_none(
                id=change.memory_id,
                event=change.event,
                at=change.changed_at,
                session=change.session_id,
                old=_in_order(change.old) or None,
                new=None if is_as_added else _in_order(change.new) or None,
            )
            yield Entry(Section.CHANGE, fields)


def _in_order(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a change in the order of an import: other programs use their own."""
    return {**{name: values[name] for name in _COLUMNS if name in values}, **values}


def _has_bytes(value: object) -> bool:
    return isinstance(value, bytes) or (isinstance(value, list) and any(map(_has_bytes, value)))


def _model_fields(model: EmbeddingModel) -> dict[str, Any]:
    return without_none(
        model=model.model,
        dimensions=model.dimensions,
        embedder=model.embedder,
        base_url=model.base_url,
        similarity_floor=model.similarity_floor,
        vector_weight=model.vector_weight,
    )


def _rejection_fields(rejection: Rejection) -> dict[str, Any]:
    """Return a rejection as an export has it."""
    return without_none(
        words_hash=rejection.words_hash,
        word_count=rejection.word_count,
        reason=rejection.reason,
        rejected_at=format_time(rejection.rejected_at),
    )


def _tombstone_fields(tombstone: Tombstone) -> dict[str, Any]:
    """Return a tombstone as an export has it."""
    key, digest, kind, erased_at = tombstone
    return {"kind": kind, "key": key.hex(), "hash": digest.hex(), "erased_at": erased_at}


def _review_fields(review: Review) -> dict[str, Any]:
    """Return a review as an export has it."""
    return without_none(
        id=review.memory_id,
        replaced_by=review.replaced_by,
        confidence=review.confidence,
        reasoning=review.reasoning,
        proposed_at=format_time(review.proposed_at),
        session_id=review.session_id,
    )

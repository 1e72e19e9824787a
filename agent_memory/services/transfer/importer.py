"""Import from another store or a file: one transaction, compared memory by memory."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from agent_memory.errors import LimitReached, RejectedContent, ValidationError
from agent_memory.models.columns import ORIGINAL_CATEGORY
from agent_memory.models.embedding_rows import EmbeddingModel, PendingText
from agent_memory.models.embedding_traits import DEFAULT_VECTOR_WEIGHT
from agent_memory.models.fields import to_json
from agent_memory.models.limits import MAX_SCRATCHPAD_SIZE
from agent_memory.models.portable import Section, StagedEntry
from agent_memory.models.reports import ImportOptions, Plan
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.runtime.side_thread import SideThread
from agent_memory.services.erasure.tombstones import (
    Tombstones,
    contradicted_tombstones,
    put_in_force,
)
from agent_memory.services.graph.importer import GraphImporter
from agent_memory.services.policies.admission import Admission
from agent_memory.services.transfer.agent import AgentImporter
from agent_memory.services.transfer.history import HistoryImporter
from agent_memory.storage.change_records import Tombstone
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import EVERYTHING
from agent_memory.storage.fingerprints import fingerprint_of
from agent_memory.storage.quantization import Quantized, text_hash
from agent_memory.storage.records import RowValues
from agent_memory.text.counts import counted

_PAGE: Final = 350
"""Entries compared, and written by one statement. One for 420 new memories, of over 16 kB, is
compiled each time. That releases Python's lock, and the side thread takes it and keeps it for 5 ms,
while SQLite waits."""
_FEW: Final = 50
"""So few fingerprints are computed sooner than a thread is started."""
_NOT_COMPARED: Final = frozenset(
    {"id", "updated_at", "last_accessed", "access_count", "version", "created_by_session"}
)
"""Columns in which two memories may differ and still be the same."""
_LATER: Final = "its clock is ahead: entries added to its scratchpad in the future are added now"


class Importer:
    """One import into one store. Must run inside a transaction; a dry run needs only ``read()``.

    ``side_thread`` computes the fingerprints of memories, and reads the next entries, while the
    database inserts those memories.
    """

    def __init__(
        self,
        engine: Engine,
        side_thread: SideThread,
        options: ImportOptions,
        *,
        now: datetime,
    ) -> None:
        dry_run = options.dry_run
        self.plan = Plan()
        self._engine = engine
        self._side_thread = side_thread
        self._options = options
        self._now = now
        self._moment = format_time(now)
        self._admission = Admission(engine, counts=dry_run)
        self._error: ValidationError | None = None
        self._was_empty = engine.memories.count(EVERYTHING) == 0
        self._before = engine.operations.last_number()
        self._new: dict[str, int] = {}
        self._left_out: set[str] = set()
        self._had_history: set[str] = set()
        self._ids: dict[str, str] = {}
        self._rejected: set[str] | None = None
        self._new_rejections = 0
        self._next_page: Callable[[], Sequence[StagedEntry] | None] = lambda: None
        self._unwritten: dict[str, dict[str, Any]] = {}
        self._fingerprints: list[tuple[int, int]] = []
        self._last_entry = ""
        # A full scratchpad's entries may follow it, a microsecond apart, none later than now.
        self._latest_entry = format_time(now - timedelta(microseconds=MAX_SCRATCHPAD_SIZE))
        self._erased_elsewhere: list[Tombstone] = []
        self._model: EmbeddingModel | None = None
        self._stray_vectors = 0
        self._tombstones = Tombstones(engine, ignored=options.include_erased)
        self._of_agent = AgentImporter(engine, self.plan, options, was_empty=self._was_empty)
        self._of_graph = GraphImporter(
            engine, self._admission, self._tombstones, dry_run=dry_run, now=now
        )
        self._history = HistoryImporter(
            engine,
            self._admission,
            self._tombstones,
            dry_run=dry_run,
            refuse=self._refuse,
            leave_out=self._leave_out,
        )

    def import_entries(self, entries: Iterable[StagedEntry]) -> Iterator[int]:
        """Import entries, in order; yield after each page how many are done."""
        pages = _pages(entries)
        done = 0
        self._next_page = partial(next, pages, None)
        while page := self._next_page():
            self._next_page = partial(next, pages, None)
            self._take_page(page)
            done += len(page)
            yield done
        self._finish()
        if not done:
            yield 0

    def raise_refusal(self) -> None:
        """Raise the error for the first memory that was refused: then nothing is imported."""
        if self._error is not None:
            raise self._error

    def _take_page(self, page: Sequence[StagedEntry]) -> None:
        takers = {
            Section.AGENT: self._of_agent.take,
            Section.MEMORY: self._memories,
            Section.REJECTION: self._rejections,
            Section.ENTITY: self._graph,
            Section.RELATIONSHIP: self._graph,
            Section.CHANGE: self._changes,
            Section.TOMBSTONE: self._tombstones_of_file,
        }
        if not self._options.dry_run:
            takers |= {
                Section.SCRATCHPAD: self._scratchpad,
                Section.REVIEW: self._reviews,
                Section.MODEL: self._models,
                Section.VECTOR: self._vectors,
            }
        taker = takers.get(page[0].section)
        if taker is not None:
            taker(page)

    def _next_entry(self, row: Mapping[str, Any]) -> str:
        """Return when a memory entered the scratchpad, for files that record only the order.

        The memory used last comes last, by its last access or, without one, by this time. It is
        never later than now: otherwise each new memory would be the next to be evicted.
        """
        entered_at = min(str(row["timestamp"]), self._latest_entry)
        if row["last_accessed"] is None and self._last_entry >= entered_at:
            just_after = read_stored_time(self._last_entry) + timedelta(microseconds=1)
            entered_at = format_time(just_after)
        used = min(row["last_accessed"] or entered_at, max(entered_at, self._latest_entry))
        self._last_entry = max(self._last_entry, used)
        return entered_at

    def _rejections(self, page: Sequence[StagedEntry]) -> None:
        if self._rejected is None:
            self._rejected = {each.words_hash for each in self._engine.rejections.all()}
        for entry in page:
            if entry.values["words_hash"] not in self._rejected:
                self._rejected.add(entry.values["words_hash"])
                self._new_rejections += 1
                if not self._options.dry_run:
                    self._engine.rejections.put(entry.values)

    # The graph --------------------------------------------------------------------------------

    def _graph(self, page: Sequence[StagedEntry]) -> None:
        for entry in page:
            try:
                self._of_graph.take(entry, self._ids)
            except RejectedContent as error:
                self._refuse(entry, error)

    # Memories ---------------------------------------------------------------------------------

    def _memories(self, page: Sequence[StagedEntry]) -> None:
        ids = [entry.values["id"] for entry in page]
        rows = self._engine.memory_rows.get_many(ids)
        self._had_history |= self._engine.history.ids_with_history(ids)
        for entry in page:
            row = self._row(entry.values["id"], rows)
            _keep_category(entry.values, row)
            if self._is_erased(entry, row):
                continue
            try:
                self._admission.refuse_row(entry.values)
                if row is None:
                    self._insert(entry)
                else:
                    self._compare(entry, row)
            except (RejectedContent, LimitReached) as error:
                self._refuse(entry, error)
        self._write_new()

    def _row(self, memory_id: str, rows: Mapping[str, RowValues] | None = None) -> RowValues | None:
        """Return the row of a memory. ``rows`` are those from before, without new memories."""
        if memory_id in self._unwritten:
            self._write_new()
        if rows is None or memory_id in self._new:
            return self._engine.memory_rows.get(memory_id)
        return rows.get(memory_id)

    def _write_new(self) -> None:
        """Write the new memories together: one by one takes four times as long."""
        if not self._unwritten:
            return
        rows = list(self._unwritten.values())
        begin = partial if len(rows) < _FEW else self._side_thread.begin
        fingerprints = begin(_fingerprints_of, rows)
        self._next_page = begin(self._next_page)
        row_ids = self._engine.memory_rows.insert_many(rows)
        self._new |= row_ids
        numbers = map(row_ids.__getitem__, self._unwritten)
        self._fingerprints += zip(fingerprints(), numbers, strict=True)
        self._unwritten.clear()

    def _is_erased(self, entry: StagedEntry, row: Mapping[str, Any] | None) -> bool:
        """Return whether a memory was erased here or repeats erased content: it is left out."""
        if not self._tombstones:
            return False
        memory_id, content = entry.values["id"], entry.values["content"]
        user_id = entry.values.get("user_id", None if row is None else row["user_id"])
        if row is None and self._tombstones.has_id(memory_id):
            self._leave_out(entry, "was erased")
        elif (row is None or content != row["content"]) and self._tombstones.has_content(
            content, user_id
        ):
            self._leave_out(entry, "contains erased content")
        else:
            return False
        return True

    def _leave_out(self, entry: StagedEntry, reason: str) -> None:
        """Report erased content that does not come back, once for each memory."""
        memory_id = entry.values["id"]
        if memory_id not in self._left_out:
            self._left_out.add(memory_id)
            self.plan.erasures.append((entry.place, memory_id, f"{memory_id} {reason}"))

    def _refuse(self, entry: StagedEntry, error: ValidationError) -> None:
        self._error = self._error or type(error)(f"{entry.place}: {error}", error.errors())
        self.plan.refusals.append((entry.place, entry.values["id"], str(error)))

    def _compare(self, entry: StagedEntry, row: Mapping[str, Any]) -> None:
        values = {k: v for k, v in entry.values.items() if k not in _NOT_COMPARED}
        changes = {k: v for k, v in values.items() if not _is_same(k, v, row[k])}
        if not changes:
            self.plan.same += 1
        elif self._options.on_conflict == "keep-both":
            self._keep_both(entry)
        elif self._options.on_conflict == "replace" or (
            self._options.on_conflict == "newer" and _changed_at(entry.values) > row["updated_at"]
        ):
            self._admission.refuse_move(row, {**row, **changes})
            self.plan.changed += 1
            self._of_agent.expect(changes.get("category"))
            if not self._options.dry_run:
                self._write_new()  # before it in the history too
                moment = entry.values.get("updated_at", self._moment)
                self._engine.memory_rows.update(row["id"], changes, updated_at=moment)
        else:
            self.plan.kept += 1

    def _keep_both(self, entry: StagedEntry) -> None:
        """Store it under another id, which is the same on each import."""
        fields = sorted(entry.values.items())
        identity = {k: v for k, v in fields if k == "id" or k not in _NOT_COMPARED}
        digest = hashlib.sha256(to_json(identity).encode()).hexdigest()
        values = {**entry.values, "id": f"mem-{digest[:12]}"}
        self._ids[entry.values["id"]] = values["id"]
        copy = entry._replace(values=values)
        other = self._row(values["id"])
        if other is not None:
            self.plan.same += 1
        elif not self._is_erased(copy, None):
            self._insert(copy)

    def _insert(self, entry: StagedEntry) -> None:
        if self._admission.has_limits:
            self._write_new()  # limits count what is in the table
        self._admission.refuse_beyond(entry.values)
        self.plan.new += 1
        self._of_agent.expect(entry.values.get("category"))
        self._history.expect(entry.values["id"], entry.values.get("user_id"))
        if self._options.dry_run:
            self._new[entry.values["id"]] = 0
            return
        timestamp = entry.values.get("timestamp", self._moment)
        values = {
            "created_by_session": self._options.session_id,
            "timestamp": timestamp,
            "updated_at": timestamp,
            **entry.values,
        }
        self._unwritten[values["id"]] = values

    # Data about memories -----------------------------------------------------------------------

    def _stored_id(self, entry: StagedEntry) -> str:
        """Return the id of an entry's memory here: a new one if both were kept."""
        memory_id: str = entry.values["id"]
        return self._ids.get(memory_id, memory_id)

    def _scratchpad(self, page: Sequence[StagedEntry]) -> None:
        """Put memories that are new here into the scratchpad."""
        ids = [self._stored_id(entry) for entry in page]
        rows = self._engine.memory_rows.get_many(ids)
        for memory_id, entry in zip(ids, page, strict=True):
            row_id = self._new.get(memory_id)
            if row_id is None:
                continue
            entered_at = entry.values.get("entered_at") or self._next_entry(rows[memory_id])
            if entered_at > self._moment:  # new memories would be evicted before it
                entered_at = self._moment
                self.plan.notes += {_LATER} - set(self.plan.notes)
            reason = entry.values.get("reason", "stored")
            self._engine.scratchpad.put(row_id, reason=reason, entered_at=entered_at)

    def _reviews(self, page: Sequence[StagedEntry]) -> None:
        """Put memories that are new here under review, except because of erased ones.

        Reviews from before the last erasure may quote what was erased.
        """
        last_erased = self._engine.tombstones.latest() if self._tombstones else None
        for entry in page:
            values = dict(entry.values)
            row_id = self._new.get(self._stored_id(entry))
            other = values.get("replaced_by")
            if row_id is None or (other is not None and self._tombstones.has_id(other)):
                continue
            if other is not None:
                values["replaced_by"] = self._ids.get(other, other)
            if last_erased is not None and values["proposed_at"] <= last_erased:
                values.pop("reasoning", None)
            self._engine.reviews.put(row_id, values)

    def _models(self, page: Sequence[StagedEntry]) -> None:
        """Find the model among those of the store, or add it if the store has none."""
        values = page[0].values
        wanted = EmbeddingModel(
            model_id=0,
            model=values["model"],
            dimensions=values["dimensions"],
            embedder=values["embedder"],
            base_url=values.get("base_url"),
            state="building",
            similarity_floor=values.get("similarity_floor"),
            vector_weight=values.get("vector_weight", DEFAULT_VECTOR_WEIGHT),
            is_indexed=False,
        )
        models = self._engine.embeddings.models()
        self._model = next((model for model in models if model.is_same(wanted)), None)
        if self._model is None and not models and self._was_empty:
            model_id = self._engine.embeddings.add_model(wanted, now=self._now)
            self._engine.embeddings.activate(model_id)
            self._model = next(iter(self._engine.embeddings.models()))
            self._engine.embeddings.queue_missing(model_id)
        if self._model is None:
            self.plan.notes.append(
                f"its vectors were made by {wanted.model}, which is not this store's model: skipped"
            )

    def _vectors(self, page: Sequence[StagedEntry]) -> None:
        if self._model is None:
            return
        kept = []
        ids = [self._stored_id(entry) for entry in page]
        rows = self._engine.memory_rows.get_many(ids)
        for memory_id, entry in zip(ids, page, strict=True):
            row_id, row = self._new.get(memory_id), rows.get(memory_id)
            data = _bytes_of(entry.values["vector"])
            if row_id is None or row is None:
                continue
            is_current = text_hash(row["content"]).hex() == entry.values["hash"]
            if not is_current or len(data) != self._model.dimensions or not any(data):
                self._stray_vectors += 1
                continue
            vector = Quantized(entry.values["scale"], data)
            pending = PendingText(row_id, row["content"])
            if self._engine.embeddings.put(self._model.model_id, pending, vector):
                kept.append(row_id)
        if kept:
            self._engine.embeddings.dequeue(kept)
            self._engine.embeddings.set_indexed(self._model.model_id, is_indexed=False)
            self._engine.vectors.drop(self._model)  # also one that is being built: it lacks these

    def _changes(self, page: Sequence[StagedEntry]) -> None:
        """Import the history of memories that are new here, and of memories that were deleted."""
        self._history.take(page, new=self._new.keys(), had_history=self._had_history)

    def _tombstones_of_file(self, page: Sequence[StagedEntry]) -> None:
        """Collect what was erased elsewhere, to compare it with the store after the import."""
        for entry in page:
            values = entry.values
            key, digest = (bytes.fromhex(values[name]) for name in ("key", "hash"))
            if self._engine.tombstones.erased_at(key, digest) is None:
                tombstone = Tombstone(key, digest, values["kind"], values["erased_at"])
                self._erased_elsewhere.append(tombstone)

    # The end ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._of_agent.finish(has_model=self._model is not None)
        self.plan.notes += self._of_graph.finish()
        if count := self._new_rejections:
            noun = counted(count, "rejection", "rejections")
            self.plan.notes.append(f"{noun} imported: see `reject --list`")
        if self._options.dry_run:
            return
        if self._stray_vectors:
            unfit = ("vector does not match its text", "vectors do not match their texts")
            self.plan.notes.append(f"{counted(self._stray_vectors, *unfit)}: embedded again")
        self._engine.fingerprints.put(self._fingerprints)
        size = self._engine.agent.config().scratchpad_max_size
        self._engine.scratchpad.evict(max_size=size)
        self._history.finish(since=self._before, session_id=self._options.session_id, now=self._now)
        self._finish_tombstones()
        self._engine.operations.record(
            "import", since=self._before, session_id=self._options.session_id, now=self._now
        )

    def _finish_tombstones(self) -> None:
        """Adopt erasures from elsewhere, and lift those that ``include_erased`` undid."""
        if self._options.include_erased:
            for tombstone in contradicted_tombstones(self._engine):
                self._engine.tombstones.remove(tombstone.key, tombstone.hash)
        if count := put_in_force(self._engine, self._erased_elsewhere):
            self.plan.notes.append(f"{count:,} tombstones of erased memories imported")


def _pages(entries: Iterable[StagedEntry]) -> Iterator[list[StagedEntry]]:
    """Yield entries together that are of one section."""
    page: list[StagedEntry] = []
    for entry in entries:
        if page and (entry.section is not page[0].section or len(page) == _PAGE):
            yield page
            page = []
        page.append(entry)
    if page:
        yield page


def _fingerprints_of(rows: Iterable[Mapping[str, Any]]) -> list[int]:
    return [fingerprint_of(row["content"], row.get("user_id"), row.get("run_id")) for row in rows]


def _keep_category(values: dict[str, Any], row: Mapping[str, Any] | None) -> None:
    """Keep a category that is unknown here in the metadata, in addition to what is there.

    A known category removes the one that was kept.
    """
    original = values.pop(ORIGINAL_CATEGORY, None)
    has_metadata = "metadata" in values or row is None
    if original is None and has_metadata:
        return
    metadata = _object(values.get("metadata") if has_metadata or row is None else row["metadata"])
    if original is not None:
        values["metadata"] = to_json({**metadata, ORIGINAL_CATEGORY: original})
    elif "category" in values and ORIGINAL_CATEGORY in metadata:
        values["metadata"] = to_json({k: v for k, v in metadata.items() if k != ORIGINAL_CATEGORY})


def _is_same(name: str, value: object, other: object) -> bool:
    """Return whether two values of a column mean the same: JSON is compared as data."""
    if value == other or name not in ("tags", "metadata", "task_metadata"):
        return value == other
    try:
        return bool(json.loads(str(value)) == json.loads(str(other)))
    except (ValueError, RecursionError):
        return False


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _changed_at(values: Mapping[str, Any]) -> str:
    """Return when a memory was changed, as far as a file says; else an empty text, the earliest."""
    return str(values.get("updated_at") or values.get("timestamp") or "")


def _bytes_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""

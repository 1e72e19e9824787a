"""Rows as they are stored, table by table: what a move carries from one engine to another.

All engines have these tables with these columns, and the same values in them. Whatever an engine
derives from them (tags, the keyword index, codes of vectors) is rebuilt at the destination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from agent_memory.models.columns import HISTORIC, USAGE
from agent_memory.storage.records import Row

Key = tuple[Any, ...]


class TableLayout(NamedTuple):
    """A table whose rows are carried; the columns of its key come first."""

    name: str
    key: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row, in their order."""
        return (*self.key, *self.others)

    def key_of(self, row: Row) -> Key:
        """Return the key of a row."""
        return row[: len(self.key)]


_CLOSING: Final = ("valid_to", "closed_by", "closing_change_id", "closing_is_undone")

TABLES: Final = (
    TableLayout("memories", ("seq",), ("id", *HISTORIC, *USAGE)),
    TableLayout(
        "history",
        ("change_id",),
        ("memory_id", "event", "changed_at", "session_id", "old_values", "new_values"),
    ),
    TableLayout(
        "operations",
        ("operation_id",),
        ("verb", "done_at", "session_id", "first_change", "last_change"),
    ),
    TableLayout("scratchpad", ("seq",), ("entered_at", "reason")),
    TableLayout("fingerprints", ("seq",), ("fingerprint",)),
    TableLayout("recalls", ("seq",), ("recalled_at",)),
    TableLayout(
        "rejections", ("rejection_id",), ("words_hash", "word_count", "reason", "rejected_at")
    ),
    TableLayout(
        "reviews",
        ("review_id",),
        (
            "seq", "version", "replaced_by", "confidence", "reasoning", "proposed_at",
            "session_id", "dismissed_at",
        ),
    ),
    TableLayout("tombstones", ("key", "hash"), ("kind", "erased_at")),
    TableLayout(
        "entities",
        ("seq",),
        (
            "id", "name", "name_key", "type", "confidence", "user_id", "run_id", "by_hand",
            "created_at", "updated_at",
        ),
    ),
    TableLayout(
        "entity_aliases", ("alias_id",), ("entity_id", "alias", "alias_key", "memory_id")
    ),
    TableLayout(
        "relationships",
        ("seq",),
        (
            "id", "source_id", "relationship", "target_id", "confidence", "temporal_context",
            "valid_from", *_CLOSING, "user_id", "run_id", "by_hand", "created_at", "updated_at",
        ),
    ),
    TableLayout(
        "entity_sources",
        ("place",),
        (
            "entity_id", "memory_id", "change_id", "is_undone", "name", "type", "confidence",
            "created_at", "updated_at",
        ),
    ),
    TableLayout(
        "relationship_sources",
        ("place",),
        (
            "relationship_id", "memory_id", "change_id", "is_undone", "confidence",
            "temporal_context", "valid_from", *_CLOSING, "created_at", "updated_at",
        ),
    ),
    TableLayout(
        "embedding_models",
        ("model_id",),
        (
            "model", "dimensions", "embedder", "base_url", "state", "similarity_floor",
            "vector_weight", "created_at",
        ),
    ),
    TableLayout("embeddings", ("model_id", "seq"), ("text_hash", "scale", "vector")),
    TableLayout("embedding_queue", ("seq",), ("refused_hash",)),
)  # fmt: skip
"""What is carried, ordered so that each table refers only to those before it.

``place`` is what a table of sources is sorted by; engines name it differently."""

NUMBERED: Final = (
    "memories", "history", "operations", "rejections", "reviews", "embedding_models",
)  # fmt: skip
"""The tables that never reuse a number, not even that of a deleted row."""


class StoredRows(Protocol):
    """The stored rows of one agent. Methods that write must run inside ``write()``."""

    def count(self, table: TableLayout) -> int:
        """Count the rows of a table."""

    def between(
        self, table: TableLayout, after: Key | None, until: Key | None, *, limit: int | None = None
    ) -> list[Row]:
        """Return the rows with keys above ``after``, up to ``until``, in order; ``None``: no bound.

        With ``limit``, at most that many.
        """

    def put(self, table: TableLayout, rows: Sequence[Row]) -> None:
        """Insert or replace rows by key, without writing history."""

    def remove(self, table: TableLayout, keys: Sequence[Key]) -> None:
        """Delete rows by key, without writing history."""

    def foreign_parts(self) -> list[str]:
        """Return what someone else added and is not carried.

        Columns of the tables of ``TABLES``, as ``memories.rating``; of a file also whole tables and
        views.
        """

    def highest_numbers(self) -> dict[str, int]:
        """Return the highest number that each table of ``NUMBERED`` ever assigned."""

    def set_highest_numbers(self, numbers: dict[str, int]) -> None:
        """Set the highest number that each table ever assigned."""

    def add_agent(self, agent_id: str, values: Mapping[str, Any], *, now: datetime) -> None:
        """Add the agent's row, with the given columns."""

"""The columns of a memory, and its values. Code that reads only these does not need the models."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from agent_memory.models.enums import Importance, MemoryKind, MemoryType
else:  # a hook of a coding agent reads columns, and needs no enums
    Importance = MemoryKind = MemoryType = object


class Column(NamedTuple):
    """How a field is stored, recorded in the history and merged."""

    kind: Literal["text", "word", "list", "object", "task", "time", "flag", "count"]
    """What the column holds: a text, an enum value, JSON of a list, of an object or of a task's
    metadata, a time as text, 0 or 1, a number."""
    default: Any = None
    """The default as plain data; ``None`` also for a field that is required or generated."""
    historic: bool = True
    """Whether the history records its changes. Fields about changes and accesses are excluded."""
    merge: Literal["kept", "joined", "higher", "ignored"] = "kept"
    """How values are merged when the same text is stored again: ``kept`` keeps the existing one and
    reports that the new one was left out; ``joined`` joins both; ``higher`` takes the higher one;
    ``ignored`` keeps the existing one without a report."""

    @property
    def is_json(self) -> bool:
        """Whether the column holds JSON as text."""
        return self.kind in ("list", "object", "task")


def _usage(kind: Literal["time", "count"], default: int | None = None) -> Column:
    """Return a column about changes and accesses, whose own changes are not recorded."""
    return Column(kind, default, historic=False, merge="ignored")


COLUMNS: Final = {
    "id": Column("text", historic=False),
    "content": Column("text", merge="ignored"),
    "category": Column("text", "note"),
    "tags": Column("list", [], merge="joined"),
    "kind": Column("word", "learning"),
    "importance": Column("word", "medium", merge="higher"),
    "memory_type": Column("word", "STANDARD"),
    "timestamp": Column("time"),
    "updated_at": _usage("time"),
    "last_accessed": _usage("time"),
    "access_count": _usage("count", 0),
    "created_by_session": Column("text", merge="ignored"),
    "user_id": Column("text", merge="ignored"),
    "run_id": Column("text", merge="ignored"),
    "archived": Column("flag", default=False, merge="ignored"),
    "task_metadata": Column("task"),
    "metadata": Column("object", {}, merge="joined"),
    "version": _usage("count", 1),
}
"""The columns by name, in the order of the table and of exports, whose lines are compared. A new
field comes last."""
HISTORIC: Final = tuple(name for name, column in COLUMNS.items() if column.historic)
"""The columns whose changes the history records."""
USAGE: Final = tuple(name for name in COLUMNS if name not in (*HISTORIC, "id"))
"""The columns about changes and accesses."""
JSON_COLUMNS: Final = frozenset(name for name, column in COLUMNS.items() if column.is_json)
"""The columns that hold JSON as text."""
ORIGINAL_CATEGORY: Final = "original_category"
"""The metadata key for the category of an imported note, if that category is unknown here."""


class MemoryValues(NamedTuple):
    """The values of a ``Memory``, with the same names in the same order: a plain tuple."""

    id: str
    agent_id: str
    content: str
    category: str
    tags: list[str]
    embedding: list[float] | None
    timestamp: datetime
    last_accessed: datetime | None
    access_count: int
    created_by_session: str
    metadata: dict[str, Any]
    kind: MemoryKind
    importance: Importance
    task_metadata: Any
    archived: bool
    updated_at: datetime
    user_id: str | None
    run_id: str | None
    memory_type: MemoryType
    version: int

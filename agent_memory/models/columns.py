"""The columns of a memory, and its values: what reads them alone does without the models."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from agent_memory.models.enums import Importance, MemoryKind, MemoryType
else:  # a hook of a coding agent reads columns, and no words
    Importance = MemoryKind = MemoryType = object


class Column(NamedTuple):
    """How a field is stored, and what becomes of it."""

    kind: Literal["text", "word", "list", "object", "task", "time", "flag", "count"]
    """What the column holds: a text, a word of an enum, JSON of a list, of an object or of a
    task's metadata, a time as text, 0 or 1, a number."""
    document: Literal["A", "C", "E", ""] = ""
    """The document that it comes from; ours otherwise."""
    default: Any = None
    """What it is where nothing is told, as plain data; ``None`` also of what must be told, or is
    made."""
    historic: bool = True
    """Whether the history records its changes. What tells of changes and accesses is not."""
    merge: Literal["kept", "joined", "higher", "ignored"] = "kept"
    """What becomes of its value when the same is stored again: the existing one is kept, and it is
    told that the new one was left out; both are joined; the higher one counts; or the existing one
    is kept and nothing is told."""

    @property
    def is_json(self) -> bool:
        """Whether the column holds JSON as text."""
        return self.kind in ("list", "object", "task")


def _usage(
    kind: Literal["time", "count"], document: Literal["A", "C"], default: int | None = None
) -> Column:
    """Return the column of what tells of changes and accesses, and is none itself."""
    return Column(kind, document, default, historic=False, merge="ignored")


COLUMNS: Final = {
    "id": Column("text", "A", historic=False),
    "content": Column("text", "A", merge="ignored"),
    "category": Column("text", "A", "note"),
    "tags": Column("list", "A", [], merge="joined"),
    "kind": Column("word", "E", "learning"),
    "importance": Column("word", "E", "medium", merge="higher"),
    "memory_type": Column("word", "C", "STANDARD"),
    "timestamp": Column("time", "A"),
    "updated_at": _usage("time", "C"),
    "last_accessed": _usage("time", "A"),
    "access_count": _usage("count", "A", 0),
    "created_by_session": Column("text", "A", merge="ignored"),
    "user_id": Column("text", "C", merge="ignored"),
    "run_id": Column("text", "C", merge="ignored"),
    "archived": Column("flag", "E", default=False, merge="ignored"),
    "task_metadata": Column("task", "E"),
    "metadata": Column("object", "A", {}, merge="joined"),
    "version": _usage("count", "C", 1),
}
"""By name, in the order of the table and of exports, which compare by line. A new field comes
last."""
HISTORIC: Final = tuple(name for name, column in COLUMNS.items() if column.historic)
"""The columns whose changes the history records."""
USAGE: Final = tuple(name for name in COLUMNS if name not in (*HISTORIC, "id"))
"""Those that tell of changes and accesses themselves."""
JSON_COLUMNS: Final = frozenset(name for name, column in COLUMNS.items() if column.is_json)
"""Those that hold JSON, as text."""
ORIGINAL_CATEGORY: Final = "original_category"
"""The key of the metadata that keeps the category that a note came with, unknown here."""


class MemoryValues(NamedTuple):
    """The values of a ``Memory``, named and in the order as there: a plain tuple."""

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

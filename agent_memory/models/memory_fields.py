"""The fields of a memory: one row each, from which columns, formats and checks are derived.

A row is a field of one of the two classes below: its type, its default, and a ``Column`` that says
how it is stored and what becomes of it. A new field takes one row, one migration that adds the
column and rewrites the triggers of the history (a test has their text), and its tests.
"""

import os
from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from enum import Enum
from inspect import get_annotations
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, FiniteFloat, ValidationInfo

from agent_memory.models.columns import COLUMNS
from agent_memory.models.enums import (
    Importance,
    MemoryCategory,
    MemoryKind,
    MemoryType,
    TaskStatus,
)
from agent_memory.models.field_types import (
    AgentId,
    Content,
    Label,
    MemoryId,
    Metadata,
    Tags,
    Text,
    UtcDatetime,
)
from agent_memory.models.record import Record
from agent_memory.models.times import now_utc

_CATEGORIES: Final = frozenset(MemoryCategory.all_values())
_IN_MODEL: Final = (
    "id", "agent_id", "content", "category", "tags", "embedding", "timestamp", "last_accessed",
    "access_count", "created_by_session", "metadata",
    "kind", "importance", "task_metadata", "archived", "updated_at", "user_id", "run_id",
    "memory_type", "version",
)  # fmt: skip
"""The order of ``Memory`` and its JSON: document A's eleven, then the rest. Likewise."""


# The types ----------------------------------------------------------------------------------


def _known_category(category: str, info: ValidationInfo) -> str:
    """Accept the nine words, and those that the agent's configuration adds (as context)."""
    added = (info.context or {}).get("categories", ())
    if category not in _CATEGORIES and category not in added:
        raise ValueError(
            f"{category!r:.80} is not a category: use one of"
            f" {', '.join(sorted(_CATEGORIES | set(added)))},"
            " or add your own: `configure categories '[\"incident\"]'`"
        )
    return str(category)


Category = Annotated[str, AfterValidator(_known_category)]


class TaskMetadata(Record):
    """What a task has beyond other memories.

    ``completed_at`` goes with the status ``completed``, ``blockers`` with ``blocked``.
    """

    model_config = ConfigDict(frozen=True)

    status: TaskStatus
    completed_at: UtcDatetime | None = None
    blockers: list[Text] = Field(default_factory=list)
    outcome: Text | None = None

    def timed(self, now: datetime) -> "TaskMetadata":
        """Return it with the time of its completion, which is ``now`` where nothing says so."""
        if self.status is not TaskStatus.COMPLETED or self.completed_at is not None:
            return self
        return self.model_copy(update={"completed_at": now})


def new_memory_id() -> str:
    """Make an id: ``mem-`` and 12 hexadecimal digits."""
    return f"mem-{os.urandom(6).hex()}"


# The rows -----------------------------------------------------------------------------------


class Column(NamedTuple):
    """How a field is stored, and what becomes of it."""

    kind: Literal["text", "word", "list", "object", "task", "time", "flag", "count"]
    """What the column holds: a text, a word of an enum, JSON of a list, of an object or of a
    task's metadata, a time as text, 0 or 1, a number."""
    document: Literal["A", "C", "E", ""] = ""
    """The document that it comes from; ours otherwise."""
    historic: bool = True
    """Whether the history records its changes. What tells of changes and accesses is not."""
    merge: Literal["kept", "joined", "higher", "ignored"] = "kept"
    """What becomes of its value when the same is stored again: the existing one is kept, and it is
    told that the new one was left out; both are joined; the higher one counts; or the existing one
    is kept and nothing is told."""


def _usage(kind: Literal["time", "count"], document: Literal["A", "C"]) -> Column:
    """Return the column of what tells of changes and accesses, and is none itself."""
    return Column(kind, document, historic=False, merge="ignored")


class SharedFields(Record):
    """The fields that storing and updating a memory have in common."""

    content: Annotated[Content, Column("text", "A", merge="ignored")] = Field(
        description="The memory's text: 1 to 10,000 characters"
    )
    category: Annotated[Category, Column("text", "A")] = Field(
        default=MemoryCategory.NOTE.value, description="What it is about"
    )
    tags: Annotated[Tags, Column("list", "A", merge="joined")] = Field(
        default_factory=list, description="Up to 20 words of up to 50 characters"
    )
    kind: Annotated[MemoryKind, Column("word", "E")] = Field(
        default=MemoryKind.LEARNING, description="How long it should live"
    )
    importance: Annotated[Importance, Column("word", "E", merge="higher")] = Importance.MEDIUM
    user_id: Annotated[Label | None, Column("text", "C", merge="ignored")] = None
    run_id: Annotated[Label | None, Column("text", "C", merge="ignored")] = None
    memory_type: Annotated[MemoryType, Column("word", "C")] = MemoryType.STANDARD
    task_metadata: Annotated[TaskMetadata | None, Column("task", "E")] = None
    metadata: Annotated[Metadata, Column("object", "A", merge="joined")] = Field(
        default_factory=dict
    )


def _in_order(names: Iterable[str], order: Sequence[str]) -> tuple[str, ...]:
    """Return names in an order; those that it does not have, new ones, stand at the end."""
    names = tuple(names)
    new = (name for name in names if name not in order)
    return (*(name for name in order if name in names), *new)


class StoredFields(SharedFields):
    """All fields of a memory. ``agent_id`` and ``embedding`` are no columns of its row."""

    id: Annotated[MemoryId, Column("text", "A", historic=False)] = Field(
        default_factory=new_memory_id
    )
    agent_id: AgentId
    category: Category
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)] | None = None
    timestamp: Annotated[UtcDatetime, Column("time", "A")] = Field(default_factory=now_utc)
    last_accessed: Annotated[UtcDatetime | None, _usage("time", "A")] = None
    access_count: Annotated[int, _usage("count", "A")] = Field(default=0, ge=0)
    created_by_session: Annotated[Label, Column("text", "A", merge="ignored")]
    archived: Annotated[bool, Column("flag", "E", merge="ignored")] = False
    updated_at: Annotated[UtcDatetime, _usage("time", "C")] = Field(default_factory=now_utc)
    version: Annotated[int, _usage("count", "C")] = Field(default=1, ge=1)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Put the fields of ``Memory`` into the order of its JSON; inheritance has another."""
        super().__pydantic_init_subclass__(**kwargs)
        fields = dict(cls.model_fields)
        cls.model_fields.clear()
        cls.model_fields.update({name: fields[name] for name in _in_order(fields, _IN_MODEL)})


# The table ----------------------------------------------------------------------------------


class MemoryField(NamedTuple):
    """A field of a memory that is a column of its row."""

    name: str
    annotation: Any
    """Its type with its checks."""
    default: Any
    """What it is where nothing is told; ``None`` also of what must be told, or is made."""
    is_optional: bool
    """Whether it may be ``None``, and its column NULL."""
    column: Column

    @property
    def is_json(self) -> bool:
        """Whether the column holds JSON as text."""
        return self.column.kind in ("list", "object", "task")

    @property
    def plain_default(self) -> Any:  # noqa: ANN401 - of any field
        """The default as JSON and YAML have it."""
        return self.default.value if isinstance(self.default, Enum) else self.default


def row_of(model: type[Record], name: str) -> MemoryField:
    """Return the row of a model's field. Raises ``TypeError`` where it says of no column."""
    info = model.model_fields[name]
    columns = [entry for entry in info.metadata if isinstance(entry, Column)]
    if not columns:
        raise TypeError(f"the field {name} has no Column: its row must say how it is stored")
    is_made = info.is_required() or info.default_factory not in (None, list, dict)
    default = None if is_made else info.get_default(call_default_factory=True)
    return MemoryField(
        name=name,
        annotation=get_annotations(model)[name],
        default=default,
        is_optional=default is None and not is_made,
        column=columns[0],
    )


MEMORY_FIELDS: Final = {
    # One that is in both classes is only required in the second.
    name: row_of(SharedFields if name in SharedFields.model_fields else StoredFields, name)
    for name in _in_order(StoredFields.model_fields, COLUMNS)
    if name not in ("agent_id", "embedding")
}
"""The fields by name, in the order of the columns."""
if tuple(MEMORY_FIELDS) != COLUMNS:
    raise TypeError("a field of a memory is missing in COLUMNS, where a new one comes last")
HISTORIC: Final = tuple(name for name, row in MEMORY_FIELDS.items() if row.column.historic)
"""The columns whose changes the history records."""
USAGE: Final = tuple(name for name in MEMORY_FIELDS if name not in (*HISTORIC, "id"))
"""Those that tell of changes and accesses themselves."""
JSON_COLUMNS: Final = frozenset(name for name, row in MEMORY_FIELDS.items() if row.is_json)
"""Those that hold JSON, as text."""


def fields_beyond(placed: Container[str], order: str) -> tuple[str, ...]:
    """Return the fields for which a format has no place of its own, in the order of the format.

    A new field stands at the end, so that what was written before stays the same.
    """
    names = (name for name in MEMORY_FIELDS if name not in placed)
    return _in_order(names, order.split())

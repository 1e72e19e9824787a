"""The fields of a memory, one row each, from which formats and checks are derived.

A row is a field of one of the two classes below, with its type and default, and the column of the
same name in ``COLUMNS``, which says how it is stored and merged. A new field takes these two lines,
one in ``MemoryValues``, one migration that adds the column and rewrites the triggers of the history
(a test generates their text), and tests.
"""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from inspect import get_annotations
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, Field, FiniteFloat, ValidationInfo

from agent_memory.models.columns import COLUMNS, Column, MemoryValues
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
from agent_memory.models.fields import new_memory_id
from agent_memory.models.record import Record
from agent_memory.models.times import now_utc

_CATEGORIES: Final = frozenset(MemoryCategory.all_values())


# The types ----------------------------------------------------------------------------------


def _known_category(category: str, info: ValidationInfo) -> str:
    """Accept the nine built-in categories, and those of the agent's configuration (the context)."""
    added = (info.context or {}).get("categories", ())
    if category not in _CATEGORIES and category not in added:
        raise ValueError(
            f"{category!r:.80} is not a category: use one of"
            f" {', '.join(sorted(_CATEGORIES | set(added)))}"
            " (the setting `categories` adds others)"
        )
    return str(category)


Category = Annotated[str, AfterValidator(_known_category)]


def _without_blank(texts: list[str]) -> list[str]:
    """Drop blank blockers: nothing blocks a task then, and a list would show an empty line."""
    return [text for text in texts if text.strip()]


def _none_if_blank(text: str | None) -> str | None:
    return text if text and text.strip() else None


class TaskMetadata(Record, frozen=True):
    """The additional fields of a task.

    ``completed_at`` belongs to the status ``completed``, ``blockers`` to ``blocked``; blank ones
    are dropped, and a blank ``outcome`` is none.
    """

    status: TaskStatus
    completed_at: UtcDatetime | None = None
    blockers: Annotated[list[Text], AfterValidator(_without_blank)] = Field(default_factory=list)
    outcome: Annotated[Text | None, AfterValidator(_none_if_blank)] = None

    def timed(self, now: datetime) -> "TaskMetadata":
        """Return it with a completion time: ``now``, if the task is completed and has none."""
        if self.status is not TaskStatus.COMPLETED or self.completed_at is not None:
            return self
        return self.model_copy(update={"completed_at": now})


# The rows -----------------------------------------------------------------------------------


class SharedFields(Record):
    """The fields that storing and updating a memory have in common."""

    content: Content = Field(description="The memory's text: 1 to 10,000 characters")
    category: Category = Field(default=MemoryCategory.NOTE.value, description="What it is about")
    tags: Tags = Field(default_factory=list, description="Up to 20 words of up to 50 characters")
    kind: MemoryKind = Field(default=MemoryKind.LEARNING, description="How long it should live")
    importance: Importance = Importance.MEDIUM
    user_id: Label | None = None
    run_id: Label | None = None
    memory_type: MemoryType = MemoryType.STANDARD
    task_metadata: TaskMetadata | None = None
    metadata: Metadata = Field(default_factory=dict)


def _in_order(names: Iterable[str], order: Sequence[str]) -> tuple[str, ...]:
    """Return names in the given order; names that are not in it, new ones, come last."""
    names = tuple(names)
    new = (name for name in names if name not in order)
    return (*(name for name in order if name in names), *new)


class StoredFields(SharedFields):
    """All fields of a memory. ``agent_id`` and ``embedding`` are not columns of its row."""

    id: MemoryId = Field(default_factory=new_memory_id)
    agent_id: AgentId
    category: Category
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)] | None = None
    timestamp: UtcDatetime = Field(default_factory=now_utc)
    last_accessed: UtcDatetime | None = None
    access_count: int = Field(default=0, ge=0)
    created_by_session: Label
    archived: bool = False
    updated_at: UtcDatetime = Field(default_factory=now_utc)
    version: int = Field(default=1, ge=1)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Put the fields of ``Memory`` into the order of its JSON: inheritance has another."""
        super().__pydantic_init_subclass__(**kwargs)
        fields = dict(cls.model_fields)
        cls.model_fields.clear()
        cls.model_fields.update(
            {name: fields[name] for name in _in_order(fields, MemoryValues._fields)}
        )


# The table ----------------------------------------------------------------------------------


class MemoryField(NamedTuple):
    """A field of a memory that is a column of its row."""

    name: str
    annotation: Any
    """Its type, with its validators."""
    default: Any
    """Its value if none is given; ``None`` also for a field that is required or generated."""
    is_optional: bool
    """Whether it may be ``None``, and its column NULL."""
    column: Column

    @property
    def is_json(self) -> bool:
        """Whether the column holds JSON as text."""
        return self.column.is_json

    @property
    def plain_default(self) -> Any:  # noqa: ANN401 - of any field
        """The default as JSON and YAML have it."""
        return self.column.default


def row_of(model: type[Record], name: str) -> MemoryField:
    """Return the row of a model's field.

    Raises ``TypeError`` if it has no column, or if its column has another default.
    """
    info = model.model_fields[name]
    if name not in COLUMNS:
        raise TypeError(f"the field {name} has no Column: COLUMNS must say how it is stored")
    is_made = info.is_required() or info.default_factory not in (None, list, dict)
    default = None if is_made else info.get_default(call_default_factory=True)
    if default != COLUMNS[name].default:
        raise TypeError(f"the field {name} has another default in COLUMNS")
    return MemoryField(
        name=name,
        annotation=get_annotations(model)[name],
        default=default,
        is_optional=default is None and not is_made,
        column=COLUMNS[name],
    )


MEMORY_FIELDS: Final = {
    # A field that is in both classes is merely made required by the second.
    name: row_of(SharedFields if name in SharedFields.model_fields else StoredFields, name)
    for name in _in_order(StoredFields.model_fields, tuple(COLUMNS))
    if name not in ("agent_id", "embedding")
}
"""The fields by name, in the order of the columns."""
if MEMORY_FIELDS.keys() != COLUMNS.keys():
    raise TypeError("a column of COLUMNS is not a field of a memory")


def fields_beyond(placed: Container[str], order: str) -> tuple[str, ...]:
    """Return the fields for which a format has no place of its own, in the format's ``order``.

    A new field comes last, so that the existing part of the output does not change.
    """
    names = (name for name in MEMORY_FIELDS if name not in placed)
    return _in_order(names, order.split())

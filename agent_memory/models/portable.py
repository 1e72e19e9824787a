"""What a file may contain about a memory and a store, in any format: the types of the fields."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache, lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Required, Self

from pydantic import (
    AfterValidator,
    Field,
    FiniteFloat,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic import ValidationError as PydanticValidationError
from pydantic_core import to_json as to_json_bytes
from typing_extensions import TypedDict  # Pydantic requires it before Python 3.12

from agent_memory.errors import ValidationError
from agent_memory.models.agent import MigrationInfo
from agent_memory.models.columns import HISTORIC, USAGE
from agent_memory.models.field_types import Content, Label, MemoryId, Text, UtcDatetime
from agent_memory.models.fields import clean_text, is_bottomless, to_json
from agent_memory.models.graph import Confidence, Name, Verb
from agent_memory.models.memory_fields import MEMORY_FIELDS, TaskMetadata
from agent_memory.models.record import Record
from agent_memory.models.times import format_time, parse_time

Natural = Annotated[int, Field(ge=0, lt=2**53)]
_ENTRY: Final = r"^(stored|accessed|promoted) [0-9TZ:.-]{27}$"
Positive = Annotated[int, Field(ge=1, lt=2**53)]
Hex = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{2})+$")]


_Word = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(clean_text)]


def fields_as_told(types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a memory for ``create_model``: only the content is required.

    ``types`` replace those of ``Memory``, by the name of a field or the kind of its column.
    """
    fields: dict[str, Any] = {}
    for name, row in MEMORY_FIELDS.items():
        kind = types.get(name, types.get(row.column.kind, row.annotation))
        if name == "content":
            fields[name] = (kind, ...)
        elif row.default is None:
            fields[name] = (kind | None, None)
        else:
            fields[name] = (kind, row.default)  # Pydantic copies a list
    return fields


class _Strict(Record, extra="forbid", use_enum_values=True):
    """A model that accepts no other fields, and holds enum values as texts."""


_AS_TOLD: Final = {"category": _Word, "count": Natural, "version": Positive}

PortableMemory = create_model(
    "PortableMemory",
    __base__=_Strict,
    __doc__="""A memory as it is in a file: fields that are missing there are not set.

    The limits are those of ``Memory``, but any category is accepted: one that the agent does not
    know is kept in the metadata. ``embedding`` is accepted and ignored, because the file does not
    say which model made it.
    """,
    **fields_as_told(_AS_TOLD),
    embedding=(list[FiniteFloat] | None, None),
)


def _task_as_held(task: TaskMetadata) -> str:
    return to_json(json.loads(task.model_dump_json(exclude_none=True, exclude_defaults=True)))


_AS_WRITTEN: Final = re.compile(
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{6})?Z", re.ASCII
)
_EXPONENT: Final = re.compile(rb"\de[-+]?\d|0\.0000")


def _texts_as_held(texts: list[str]) -> str:
    return to_json_bytes(texts).decode()


def _json_as_held(data: dict[str, Any]) -> str:
    written = to_json_bytes(data)  # the same as ``to_json`` in a sixth of the time, but for 1e-07
    return to_json(data) if _EXPONENT.search(written) else written.decode()


@lru_cache(maxsize=1_000)  # most memories have the same time twice
def _time_as_held(text: str) -> str:
    is_as_written = _AS_WRITTEN.fullmatch(text) is not None
    try:
        datetime.fromisoformat(text)  # there may be no such day
    except ValueError:
        is_as_written = False
    if not is_as_written:
        return format_time(parse_time(text))
    return text if "." in text else f"{text[:-1]}.000000Z"


def _read_time_as_held(value: object, read: ValidatorFunctionWrapHandler) -> str:
    return _time_as_held(value) if isinstance(value, str) else format_time(read(value))


_HOLDERS: Final[dict[str, AfterValidator | WrapValidator]] = {
    "list": AfterValidator(_texts_as_held),
    "object": AfterValidator(_json_as_held),
    "task": AfterValidator(_task_as_held),
    "time": WrapValidator(_read_time_as_held),
    "flag": AfterValidator(int),
}
"""The validators that convert a field's value to what its column holds, where that differs."""


@cache
def _row_validator() -> TypeAdapter[Any]:
    """Return the validator of rows. It returns dictionaries: models took a seventh longer."""
    types: dict[str, Any] = {}
    for name, row in MEMORY_FIELDS.items():
        kind = _AS_TOLD.get(name, _AS_TOLD.get(row.column.kind, row.annotation))
        holder = _HOLDERS.get(row.column.kind)
        types[name] = kind if holder is None else Annotated[kind, holder]
    fields = {
        name: Required[kind] if default is ... else kind
        for name, (kind, default) in fields_as_told(types).items()
    }
    fields["embedding"] = Annotated[list[FiniteFloat] | None, AfterValidator(lambda _: None)]
    columns = TypedDict("columns", fields, total=False)  # type: ignore[misc]
    columns.__pydantic_config__ = _Strict.model_config  # type: ignore[attr-defined]
    return TypeAdapter(columns)


def portable_row(fields: Mapping[str, object]) -> dict[str, Any]:
    """Return a memory of a file with each field as its column holds it: JSON and times as text.

    What is missing in the file is left out. Raises ``ValidationError``.
    """
    try:
        row = _row_validator().validate_python(fields)
    except PydanticValidationError as error:
        raise ValidationError.from_pydantic(error, fields=PortableMemory.model_fields) from error
    return {name: value for name, value in row.items() if value is not None}


class PortableEntry(Record, extra="forbid"):
    """An entry of the scratchpad."""

    id: MemoryId
    entered_at: UtcDatetime | None = None
    reason: Literal["stored", "accessed", "promoted"] = "stored"


class PortableRejection(Record, extra="forbid"):
    """A text that must not be stored, by the hash of its words."""

    words_hash: Hex = Field(min_length=64, max_length=64)
    word_count: Annotated[int, Field(ge=1, le=1000)]
    reason: Text | None = Field(default=None, max_length=500)
    rejected_at: UtcDatetime


class PortableReview(Record, extra="forbid"):
    """A memory under review, by its ``id``: see ``Review``."""

    id: MemoryId
    replaced_by: MemoryId | None = None
    confidence: Confidence | None = None
    reasoning: Text | None = None
    proposed_at: UtcDatetime
    session_id: Label | None = None


class PortableEntityStatement(Record, extra="forbid"):
    """What one memory says about an entity, where it differs from the entity itself."""

    name: Name | None = None
    type: Text | None = None
    confidence: Confidence | None = None
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None


class PortableEdgeStatement(Record, extra="forbid"):
    """What one memory says about a relationship, where it differs from the relationship itself."""

    confidence: Confidence | None = None
    temporal_context: Text | None = None
    valid_from: UtcDatetime | None = None
    valid_to: UtcDatetime | None = None
    closed_by: MemoryId | None = None
    closing_is_undone: bool = False
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None


class PortableEntity(Record, extra="forbid"):
    """An entity of the graph; ``sources`` are the memories that mention it.

    ``undone`` are those of them whose mention is currently undone; ``statements`` has what one of
    them says differently from the whole. ``alias_sources`` has the memory from which an alias was
    learned. ``by_hand`` means that the entity needs no memory.
    """

    id: MemoryId
    name: Name
    type: Text | None = None
    confidence: Confidence = 1.0
    user_id: Label | None = None
    run_id: Label | None = None
    by_hand: bool = True
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None
    aliases: list[Name] = Field(default_factory=list)
    alias_sources: dict[str, MemoryId] = Field(default_factory=dict)
    sources: list[MemoryId] = Field(default_factory=list)
    undone: list[MemoryId] = Field(default_factory=list)
    statements: dict[MemoryId, PortableEntityStatement] = Field(default_factory=dict)


class PortableRelationship(Record, extra="forbid"):
    """A relationship of two entities, given by their ids, and the memories that state it."""

    id: MemoryId
    source_id: MemoryId
    relationship: Verb
    target_id: MemoryId
    confidence: Confidence = 1.0
    temporal_context: Text | None = None
    valid_from: UtcDatetime
    valid_to: UtcDatetime | None = None
    closed_by: MemoryId | None = None
    closing_is_undone: bool = False
    user_id: Label | None = None
    run_id: Label | None = None
    by_hand: bool = True
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None
    sources: list[MemoryId] = Field(default_factory=list)
    undone: list[MemoryId] = Field(default_factory=list)
    statements: dict[MemoryId, PortableEdgeStatement] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _ends_after_it_began(self) -> Self:
        if self.valid_to is not None and self.valid_to < self.valid_from:
            raise ValueError("valid_to is before valid_from")
        for memory_id, statement in self.statements.items():
            fields = statement.model_fields_set
            start = statement.valid_from if "valid_from" in fields else self.valid_from
            end = statement.valid_to if "valid_to" in fields else self.valid_to
            if start is not None and end is not None and end < start:
                raise ValueError(f"statements: {memory_id}: valid_to is before valid_from")
        return self


class PortableModel(Record, extra="forbid"):
    """The model with which the vectors were made."""

    model: Text = Field(min_length=1, max_length=200)
    dimensions: int = Field(ge=1, le=20_000)
    embedder: Text
    base_url: Text | None = None
    similarity_floor: FiniteFloat | None = None
    vector_weight: FiniteFloat = 1.0


class PortableVector(Record, extra="forbid"):
    """The vector of a memory; ``hash`` is that of the text from which it was made."""

    id: MemoryId
    hash: Hex = Field(min_length=32, max_length=32)
    scale: FiniteFloat = Field(gt=0)
    vector: Text


def _json_text(kind: type) -> AfterValidator:
    """Accept a text that is JSON of a given type, as the file stores tags and metadata."""

    def check(text: str) -> str:
        try:
            value = json.loads(text)
            to_json(value)  # another program's 9e999 is parsed as infinity, which JSON cannot hold
        except (ValueError, RecursionError) as error:
            raise ValueError("is not JSON") from error
        if is_bottomless(value):
            raise ValueError("is nested too deeply")
        if not isinstance(value, kind):
            raise ValueError(f"is not a JSON {kind.__name__}")  # noqa: TRY004 - pydantic
        return text

    return AfterValidator(check)


_HELD: Final[dict[str, Any]] = {
    "content": Content,
    "version": Positive,
    "text": Text,
    "list": Annotated[Text, _json_text(list)],
    "object": Annotated[Text, _json_text(dict)],
    "task": Annotated[Text, _json_text(dict)],
    "flag": Annotated[int, Field(ge=0, le=1)],
    "count": Natural,
}
"""The types of columns as the file holds them, where they differ from those of the fields."""


def _values_as_held() -> dict[str, Any]:
    """Return the columns for ``create_model``; each of them is optional."""
    rows = [MEMORY_FIELDS[name] for name in (*HISTORIC, *USAGE)]
    kinds = {
        row.name: _HELD.get(row.name, _HELD.get(row.column.kind, row.annotation)) for row in rows
    }
    return {name: (kind | None, None) for name, kind in kinds.items()}


PortableValues = create_model(
    "PortableValues",
    __base__=_Strict,
    __doc__="The columns of a memory in one of its changes, as the file holds them, and no others.",
    **_values_as_held(),
    seq=(Positive | None, None),
    scratchpad=(Annotated[str, Field(pattern=_ENTRY)] | None, None),
    reviews=(Annotated[Text, _json_text(list)] | None, None),
)


# Not derived: a field that is added later is missing from the changes in older files.
WHOLE_MEMORY: Final = frozenset(
    "content category tags kind importance memory_type timestamp created_by_session archived"
    " metadata".split()
)
"""The columns that a change must have if it adds or deletes a memory."""


class PortableChange(Record, extra="forbid"):
    """A change of a memory. An ``ADD`` without ``new`` added it as it is in the file."""

    id: MemoryId
    event: Literal["ADD", "UPDATE", "DELETE"]
    at: UtcDatetime
    session: Text | None = None
    old: PortableValues | None = None
    new: PortableValues | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """Refuse an addition or a deletion that lacks part of the memory."""
        whole = self.old if self.event == "DELETE" else self.new if self.event == "ADD" else None
        if self.event == "DELETE" and whole is None:
            raise ValueError("a DELETE must have the deleted memory in `old`")
        if whole is None:
            return self
        # A history keeps no nulls: after the import `check` would report the column as missing.
        missing = sorted(name for name in WHOLE_MEMORY if getattr(whole, name) is None)
        if missing:
            raise ValueError(f"a {self.event} must have the whole memory: add {', '.join(missing)}")
        return self


class PortableTombstone(Record, extra="forbid"):
    """The tombstone of an erased memory: a keyed hash of its id or of its content."""

    kind: Literal["id", "content"]
    key: Hex = Field(min_length=32, max_length=32)
    hash: Hex = Field(min_length=32, max_length=32)
    erased_at: UtcDatetime


class PortableAgent(Record, extra="forbid"):
    """What a file contains about the agent: its settings, and in a whole store its statistics."""

    agent_id: Text | None = None
    created_at: UtcDatetime | None = None
    last_accessed: UtcDatetime | None = None
    total_queries: Natural | None = None
    total_query_ms: FiniteFloat | None = Field(default=None, ge=0)
    scratchpad_promotions: Natural | None = None
    embeddings_generated: Natural | None = None
    storage_backend: Literal["file", "vector"] | None = None
    migration_date: UtcDatetime | None = None
    migration: MigrationInfo | None = None
    config: dict[str, Any] | None = None


class Section(StrEnum):
    """The kind of an entry."""

    AGENT = "agent"
    MEMORY = "memory"
    SCRATCHPAD = "scratchpad"
    REJECTION = "rejection"
    ENTITY = "entity"
    RELATIONSHIP = "relationship"
    REVIEW = "review"
    MODEL = "model"
    VECTOR = "vector"
    CHANGE = "change"
    TOMBSTONE = "tombstone"


class Entry(NamedTuple):
    """One entry of a file or a store: plain JSON data, not validated yet.

    The ``fields`` of a ``MEMORY`` are named like those of ``Memory``, with times as ISO 8601 text;
    missing fields are left out. ``place`` is where it is in a file (``"line 12"``). ``error`` says
    what is wrong with it, and that it cannot be imported. ``repairs`` lists what was corrected.
    """

    section: Section
    fields: dict[str, Any]
    place: str = ""
    error: str | None = None
    repairs: tuple[str, ...] = ()


class PassedOver(NamedTuple):
    """Something in another program's file that becomes no memory; it is reported."""

    what: str
    """A plural: ``"calls of tools"``."""
    number: int = 1


def added_by_hand(names: Sequence[str]) -> str:
    """Name the columns, tables and views that no export but a copy of the file has."""
    return f"columns, tables and views that were added by hand ({', '.join(names)})"


class StagedEntry(NamedTuple):
    """An entry that was validated: the values it contains, by column, and no others."""

    section: Section
    place: str
    values: dict[str, Any]


def content_id(content: object, timestamp: object, user_id: object, run_id: object) -> str:
    """Return a stable id for a memory that has none in its file: a hash of its content."""
    identity = to_json([content, timestamp, user_id, run_id])
    return f"mem-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"

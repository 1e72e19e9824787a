"""The arguments of the tools as models, which generate the JSON schemas and validate calls.

The schemas are plain, so that every model's API accepts them. The descriptions are read by language
models: they say when to use a field, not how it works.
"""

from datetime import datetime
from functools import cache, partial
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from agent_memory.models.times import parse_point

MOST_RESULTS: Final = 20
"""The default for the most memories that a tool returns (D)."""
_HOW_LONG_AGO: Final = "say how long ago: 12h, 7d, 2w, yesterday"


def _read_moment(value: object, *, ends: bool = False) -> object:
    """Parse a time as everywhere (``parse_point``).

    A number is refused: Pydantic would take 7, meant as days, for seconds of 1970.
    """
    if isinstance(value, int | float):
        raise ValueError(f"must be a string: a time, or {_HOW_LONG_AGO}")  # noqa: TRY004 - for Pydantic
    return parse_point(value, ends=ends) if isinstance(value, str) else value


def _as_list(value: object) -> object:
    """Accept one word for a list of one: models send either."""
    return [value] if isinstance(value, str) else value


Moment = Annotated[
    datetime,
    BeforeValidator(_read_moment, json_schema_input_type=str),
]
End = Annotated[
    datetime,
    BeforeValidator(partial(_read_moment, ends=True), json_schema_input_type=str),
]
"""A date alone means the end of that day, as everywhere in the library."""
Words = Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=list[str])]
Limit = Annotated[
    int,
    Field(
        ge=1,
        description="How many at most; a larger number is lowered.",
        json_schema_extra={"maximum": MOST_RESULTS},
    ),
]
"""Above ``MemoryTools.most_results`` it is lowered to that."""
MemoryId = Annotated[
    str, Field(description="The id of a memory, as a search gives it (mem-…).", min_length=1)
]


class Arguments(BaseModel, extra="forbid", hide_input_in_errors=True):
    """The base of all arguments: unknown names are refused, and texts are never quoted."""

    @model_validator(mode="before")
    @classmethod
    def leave_out_nothing(cls, arguments: object) -> object:
        """Treat ``null`` and an empty string as an omitted field: many models send them.

        An empty category as a filter would find nothing, without saying why.
        """
        if not isinstance(arguments, dict):
            return arguments
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {
            name: value
            for name, value in arguments.items()
            if value is not None and not (value == "" and name in optional)
        }


class DateRange(Arguments):
    """A start and an end, both included."""

    start: Moment | None = Field(
        None, description="ISO 8601, or how long ago: 12h, 7d, 2w, yesterday."
    )
    end: End | None = Field(
        None, description="ISO 8601, or how long ago. A date alone includes that day."
    )


class Filters(Arguments):
    """Conditions on memories; all that are given must hold."""

    category: str | None = Field(None, description="This category only.")
    tags: Words | None = Field(None, description="Any of these tags.")
    date_range: DateRange | None = None
    min_access_count: int | None = Field(None, ge=0, description="Found so often at least.")


class StoreArguments(Arguments):
    """``memory_store``."""

    content: str = Field(
        description="One fact, decision or preference, in a sentence that can be understood"
        " without this conversation. 1 to 10,000 characters. No passwords or keys."
    )
    category: str = Field(
        "note",
        description="preference, decision, discovery, pattern, task, bugfix, note, question or"
        " insight.",
    )
    tags: Words = Field(default_factory=list, description="Up to 20 words to find it by.")
    metadata: dict[str, Any] | None = Field(None, description="Anything else, as JSON.")


class SearchArguments(Arguments):
    """``memory_search``."""

    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        description="A question or some words, as you would ask a person."
    )
    limit: Limit = 5
    since: Moment | None = Field(
        None,
        description="Only what was learned since: ISO 8601, or 12h, 7d, 2w ago, yesterday.",
    )
    filters: Filters | None = None
    include_weak: bool = Field(False, description="Also what may have nothing to do with it.")


class ListRecentArguments(Arguments):
    """``memory_list_recent``."""

    limit: Limit = 10
    offset: int = Field(
        0, ge=0, le=10**9, description="How many to pass over: those that you have seen."
    )


class MemoryArguments(Arguments):
    """``memory_get``, ``memory_promote`` and ``memory_forget``."""

    memory_id: MemoryId


class UpdateArguments(Arguments):
    """``memory_update``."""

    memory_id: MemoryId
    content: str | None = Field(None, description="The new text, whole. Empty: it stays.")
    category: str | None = Field(None, description="The new category. Empty: it stays.")
    tags: Words | None = Field(
        None, description="All tags, for the old ones. [] removes them, as the only change."
    )
    metadata: dict[str, Any] | None = Field(
        None, description="In place of the old. {} removes it, as the only change."
    )


class ToldMessage(Arguments):
    """One message of a conversation."""

    role: Literal["user", "assistant"] = Field(description="Who said it.")
    content: str = Field(description="What was said.")


class AddArguments(Arguments):
    """``memory_add``."""

    messages: list[ToldMessage] = Field(
        min_length=1, description="What was said, in its order. No passwords or keys."
    )


class ReviewsArguments(Arguments):
    """``memory_reviews``."""

    limit: Limit = 10


class ResolveArguments(Arguments):
    """``memory_resolve``."""

    review_id: int = Field(ge=1, description="The question, as memory_reviews numbers it.")
    still_true: bool = Field(description="true keeps the memory, false deletes it.")


class GraphArguments(Arguments):
    """``memory_graph``."""

    name: str | None = Field(None, description="Whom or what it is about. All names without it.")
    to: str | None = Field(None, description="The other end: how are the two related?")
    depth: int = Field(1, ge=1, le=3, description="How many relationships away at most.")


_LEFT_OUT = ("title", "$defs")


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's schema without references, titles and ``null`` alternatives.

    Some APIs do not support ``$ref``, and a field that may be omitted says more than one that may
    be null. The result is cached: do not change it.
    """
    whole = model.model_json_schema()
    schema = _plain(whole, whole.get("$defs", {}))
    schema.pop("description", None)  # the class's docstring, meant for readers of this code
    return schema


def _plain(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if (name := schema.get("$ref", "").rpartition("/")[2]) and name in definitions:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _plain({**definitions[name], **rest}, definitions)
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _plain({**options[0], **rest}, definitions)
    plain = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "properties" in plain:
        plain["properties"] = {
            name: _plain(inner, definitions) for name, inner in plain["properties"].items()
        }
    if "items" in plain:
        plain["items"] = _plain(plain["items"], definitions)
    return plain

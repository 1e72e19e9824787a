"""Search filters and results without the models: plain tuples with the same field names."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from agent_memory.errors import ValidationError
from agent_memory.models.columns import MemoryValues
from agent_memory.models.fields import clean_tags, clean_text

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory


UNDER_REVIEW: Final = "under review: it may be out of date"
"""What is shown beside a memory that a newer one may correct."""


class MemoryExcerpt(NamedTuple):
    """The fields of a ``Memory`` that are shown, with the same values: a plain tuple.

    A program that only shows memories need not wait for the models to be imported. ``under_review``
    is that of a search's hit: a newer memory may correct it.
    """

    id: str
    agent_id: str
    content: str
    category: str
    tags: list[str]
    timestamp: datetime
    created_by_session: str
    user_id: str | None
    under_review: bool = False

    @classmethod
    def of(cls, memory: "Memory | MemoryExcerpt | MemoryValues") -> Self:
        """Return the excerpt of a memory."""
        of_memory = [getattr(memory, name) for name in cls._fields[:-1]]
        return cls._make([*of_memory, getattr(memory, "under_review", False)])


class SearchFilterValues(NamedTuple):
    """Search filters with the names of ``SearchFilters``; ``of`` creates one.

    It supports the fields of ``SearchFilters`` that need no model to be checked. The others always
    have their defaults.
    """

    user_id: str | None = None
    run_id: str | None = None
    session_id: str | None = None
    category: str | list[str] | None = None
    tags: Sequence[str] = ()
    tags_match: str = "all"

    ids: None = None
    agent_id: None = None
    memory_type: None = None
    date_range: None = None
    custom_filters: None = None
    kind: None = None
    importance: None = None
    task_status: None = None
    min_access_count: None = None
    archived: bool = False

    @classmethod
    def takes(cls, names: Iterable[str]) -> bool:
        """Return whether all of these fields of ``SearchFilters`` are supported here."""
        return {*names} <= _CHECKED_HERE

    @classmethod
    def of(cls, filters: Mapping[str, Any]) -> Self:
        """Return the filters that a mapping describes, checked as ``SearchFilters`` checks them.

        Raises a ``ValidationError`` that names the field.
        """
        if not isinstance(filters, Mapping):
            raise ValidationError.of("filters", "must be a mapping", filters)
        checked: dict[str, Any] = {}
        for name, value in filters.items():
            try:
                checked[name] = _checked(name, value)
            except ValueError as error:
                raise ValidationError.of(str(name), str(error), value) from error
        return cls(**checked)

    def applied(self) -> dict[str, Any]:
        """Return the filters that differ from their defaults, as JSON data."""
        defaults = self._field_defaults
        fields = self._asdict().items()
        return {name: value for name, value in fields if value != defaults[name]}


_CHECKED_HERE: Final = frozenset(SearchFilterValues._fields[:6])


def _checked(name: str, value: Any) -> Any:  # noqa: ANN401 - of any field
    """Return the value of a filter, or raise ``ValueError``."""
    if not SearchFilterValues.takes([name]):
        raise ValueError(f"is not supported for excerpts: use {', '.join(sorted(_CHECKED_HERE))}")
    if value is None:
        return SearchFilterValues._field_defaults[name]
    is_list = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    if name == "tags":
        if not is_list:
            raise ValueError("must be a list of strings")
        return clean_tags(list(value))
    if name == "tags_match" and value not in ("all", "any"):
        raise ValueError("must be all or any")
    if name == "category" and is_list:
        return [clean_text(text) for text in value]
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - as what the others raise
    return clean_text(value)


class HitValues(NamedTuple):
    """A hit of a search, named as in ``MemorySearchResult``."""

    memory: MemoryExcerpt | MemoryValues
    relevance_score: float
    match_type: str
    similarity: float
    confidence: float
    passed_gate: bool
    repeats: list[str]
    under_review: bool
    score: None = None


class NearMissValues(NamedTuple):
    """A memory that was nearly a hit, named as in ``NearMiss``."""

    memory_id: str
    content: str
    similarity: float
    reason: str
    score: None = None


class SearchMetadataValues(NamedTuple):
    """How a search went, named as in ``SearchMetadata``."""

    query_time: datetime
    processing_time_ms: float
    keyword_search_time_ms: float
    embedding_time_ms: float
    vector_search_time_ms: float
    filters_applied: dict[str, Any]
    backend: str
    degraded: list[str]
    reason: str | None
    explanation: str | None
    near_misses: list[NearMissValues]


class SearchResultValues(NamedTuple):
    """The hits of a search, best first, and how it went, named as in ``SearchResults``."""

    results: list[HitValues]
    total_count: int
    search_metadata: SearchMetadataValues

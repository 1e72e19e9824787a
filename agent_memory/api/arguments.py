"""Checks the arguments of the verbs and turns them into models, or raises our own errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError as PydanticValidationError

from agent_memory.api.plain_arguments import check_whole_number
from agent_memory.embeddings.registry import EmbedderSpec, refuse_unknown
from agent_memory.errors import MemoryNotFound, ValidationError
from agent_memory.models.duplicate import DuplicatePolicy
from agent_memory.models.enums import MemoryOrder, is_decision, is_secret_decision
from agent_memory.models.fields import is_memory_id
from agent_memory.models.limits import EMBEDDER_VARIABLE
from agent_memory.models.memory import Memory
from agent_memory.models.record import Model, validate_model
from agent_memory.models.safety import SecretPolicy
from agent_memory.models.search import SearchFilters
from agent_memory.models.times import format_briefly, parse_point, to_utc
from agent_memory.runtime.files import is_there
from agent_memory.text.counts import counted

Clock = Callable[[], datetime]
Time = date | str
"""An aware time, a naive one (which means UTC), a date, or ISO 8601 text of either."""


def validate_fields(
    model: type[Model],
    fields: Mapping[str, Any],
    *,
    categories: Sequence[str],
    at: Sequence[int] = (),
) -> Model:
    """Return the model for one memory's fields; ``at`` is its position in a list.

    ``categories`` are the agent's own, beside the nine built-in ones.
    """
    if not isinstance(fields, Mapping):
        message = "must be a mapping with a content key"
        raise ValidationError.of("item", message, fields, at=at)
    context = {"categories": categories} if "category" in fields else None
    try:
        return model.model_validate(dict(fields), context=context)
    except PydanticValidationError as error:
        raise ValidationError.from_pydantic(error, at=at, fields=model.model_fields) from error
    except RecursionError as error:  # a value was to be shown
        raise ValidationError.of("item", "is nested too deeply", fields, at=at) from error


def check_items(items: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """Return the items to store as a list, or raise ``ValidationError`` if they are not a list."""
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise ValidationError.of("items", "must be a list of mappings", items)
    return items


def build_memories(
    items: Iterable[Mapping[str, Any]], make: Callable[[Mapping[str, Any], int], Memory]
) -> tuple[list[Memory], frozenset[str], list[frozenset[str]]]:
    """Return a memory for each item, the ids that were generated, and the fields each item sets.

    Raises a single ``ValidationError`` that lists every invalid item by its position.
    """
    memories: list[Memory] = []
    generated_ids: set[str] = set()
    fields_set: list[frozenset[str]] = []
    one_of: dict[frozenset[str], frozenset[str]] = {}  # most set the same ones
    errors: list[ValidationError] = []
    for place, item in enumerate(check_items(items)):
        try:
            memory = make(item, place)
        except ValidationError as error:
            errors.append(error)
            continue
        memories.append(memory)
        if item.get("id") is None:
            generated_ids.add(memory.id)
        names = frozenset([name for name, value in item.items() if value is not None])
        fields_set.append(one_of.setdefault(names, names))
    if errors:
        kinds = {type(error) for error in errors}
        kind = kinds.pop() if len(kinds) == 1 else ValidationError
        raise kind(
            f"nothing was stored: {len(errors):,} of {counted(len(errors) + len(memories))}"
            f" {'is' if len(errors) == 1 else 'are'} invalid; the first: {errors[0]}",
            [fault for error in errors for fault in error.errors()],
        )
    return memories, frozenset(generated_ids), fields_set


def check_duplicate_policy(value: DuplicatePolicy | None) -> DuplicatePolicy | None:
    """Return what to do with duplicates, or raise ``ValidationError``."""
    if value is None or callable(value) or is_decision(value):
        return value
    raise ValidationError.of("on_duplicate", "must be keep, merge, refuse or a function", value)


def check_secret_policy(value: SecretPolicy | None) -> SecretPolicy | None:
    """Return what to do with secrets, or raise ``ValidationError``."""
    if value is None or callable(value) or is_secret_decision(value):
        return value
    message = "must be warn, mask, refuse, keep or a function"
    raise ValidationError.of("on_secret", message, value)


def join_filters(
    filters: SearchFilters | Mapping[str, Any] | None, **arguments: object
) -> SearchFilters:
    """Combine filters with the arguments of a verb, so that neither can widen or undo the other."""
    base = validate_model(SearchFilters, filters)
    named = {name: value for name, value in arguments.items() if value is not None}
    twice = sorted(named.keys() & base.model_fields_set)
    if twice:
        message = "is given as an argument and in filters: give it once"
        raise ValidationError.of(twice[0], message, named[twice[0]])
    if not named:
        return base
    return validate_model(SearchFilters, {**base.model_dump(exclude_unset=True), **named})


def parse_date_range(
    since: Time | None, until: Time | None, now: datetime
) -> dict[str, datetime | None] | None:
    """Return the two ends of a range, or ``None`` if neither is given."""
    if since is None and until is None:
        return None
    start = None if since is None else parse_moment("since", since, now=now)
    end = None if until is None else parse_moment("until", until, now=now, ends=True)
    if start and end and start > end:
        message = f"{format_briefly(start)} is after until, {format_briefly(end)}: swap the two"
        raise ValidationError.of("since", message, since)
    return {"start": start, "end": end}


def parse_moment(
    name: str, value: Time, *, now: datetime | None = None, ends: bool = False
) -> datetime:
    """Return a time in UTC, or raise ``ValidationError``; a text is read by ``parse_point``."""
    if not isinstance(value, date | str):
        raise ValidationError.of(name, "must be a datetime, or a string like 2026-01-28", value)
    try:
        if isinstance(value, datetime):
            return to_utc(value)
        text = value if isinstance(value, str) else value.isoformat()
        return parse_point(text, ends=ends, now=now)
    except ValueError as error:
        raise ValidationError.of(name, str(error), value) from error


def parse_as_of(value: Time) -> datetime:
    """Return the moment that ``as_of`` means; a date without a time is the end of that day."""
    return parse_moment("as_of", value, ends=True)


def check_order(order: str) -> MemoryOrder:
    """Return the sort order of a list, or raise ``ValidationError``."""
    try:
        return MemoryOrder(order)
    except ValueError as error:
        known = ", ".join(MemoryOrder)
        raise ValidationError.of("order", f"must be one of {known}", order) from error


def check_existing_path(path: str | os.PathLike[str]) -> str:
    """Return the path of an existing file or folder, or raise ``ValidationError``.

    Raises ``StorageUnavailable`` when it cannot be determined whether the path exists.
    """
    if not isinstance(path, str | os.PathLike):
        raise ValidationError.of("path", f"must be a path, not a {type(path).__name__}", path)
    text = os.path.expanduser(os.fspath(path))  # noqa: PTH111 - a path may be bytes or a NUL
    if not isinstance(text, str) or "\x00" in text or not is_there(Path(text)):
        raise ValidationError.of("path", f"no such file or folder: {text!r:.300}", path)
    return text


def check_ids(memory_ids: str | Iterable[str]) -> list[str]:
    """Return memory ids, given as one or several, without repeats and in their order."""
    if not isinstance(memory_ids, str | Iterable):
        raise ValidationError.of("memory_ids", "must be an id, or a list of ids", memory_ids)
    several = [memory_ids] if isinstance(memory_ids, str) else list(memory_ids)
    if not all(isinstance(memory_id, str) for memory_id in several):
        raise ValidationError.of("memory_ids", "must be strings", several)
    for memory_id in several:
        if not is_memory_id(memory_id):
            raise MemoryNotFound(memory_id)
    return list(dict.fromkeys(several))


def check_id(name: str, memory_id: str) -> str:
    """Return the id of one memory.

    Raises ``ValidationError`` if it is not a string, and ``MemoryNotFound`` if no memory can have
    such an id.
    """
    check_is_id(memory_id, name)
    (checked,) = check_ids(memory_id)
    return checked


def check_is_id(memory_id: str, name: str = "memory_id") -> None:
    """Raise ``ValidationError`` for what is no id at all, such as a hit of a search."""
    if not isinstance(memory_id, str):
        message = "must be the id of a memory: memory.id, or hit.memory.id"
        raise ValidationError.of(name, message, memory_id)


def check_review_ids(name: str, review_ids: Sequence[int]) -> list[int]:
    """Return ids of reviews, without repeats and in their order, or raise ``ValidationError``."""
    if isinstance(review_ids, str | Mapping) or not isinstance(review_ids, Iterable):
        raise ValidationError.of(name, "must be a list of ids of reviews", review_ids)
    return list(dict.fromkeys(check_whole_number("review_id", i, lowest=1) for i in review_ids))


def check_fraction(threshold: float, *, name: str = "similarity_threshold") -> float:
    """Return a similarity or another share from 0 to 1, or raise ``ValidationError``."""
    if not isinstance(threshold, int | float) or not 0.0 <= threshold <= 1.0:
        raise ValidationError.of(name, "must be between 0 and 1", threshold)
    return threshold


def choose_embedder(spec: EmbedderSpec) -> EmbedderSpec:
    """Return the embedder to use: the argument, else the environment variable, else the file's own.

    Raises ``ConfigurationError`` for an unknown name or for an object that is not an embedder.
    """
    if isinstance(spec, str) and spec == "auto":
        spec = os.environ.get(EMBEDDER_VARIABLE, "").strip() or spec
    refuse_unknown(spec)
    return spec

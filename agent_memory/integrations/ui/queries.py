"""Parses and validates the page's requests: the query string, and the JSON of a body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from agent_memory import ValidationError

_MOST_FIELDS: Final = 40


class Query:
    """The fields of a query string, each given at most once."""

    def __init__(self, text: str) -> None:
        try:
            pairs = parse_qsl(text, max_num_fields=_MOST_FIELDS, errors="replace")
        except ValueError as error:
            raise ValidationError.of("query", str(error), text[:100]) from error
        self._fields = dict(pairs)

    def text(self, name: str) -> str | None:
        """Return a field, or ``None`` if it is missing or empty."""
        return self._fields.get(name) or None

    def required(self, name: str) -> str:
        """Return a field that must be present."""
        value = self.text(name)
        if value is None:
            raise ValidationError.of(name, "is required", "")
        return value

    def number(self, name: str, default: int) -> int:
        """Return a whole number."""
        value = self.text(name)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) <= 9):
            raise ValidationError.of(name, "must be a whole number", value)
        return int(value)

    def flag(self, name: str) -> bool:
        """Return whether a field is ``1``."""
        return self.text(name) == "1"

    def filters(self) -> dict[str, Any]:
        """Return the filters of a list or a search, as ``SearchFilters`` takes them."""
        filters: dict[str, Any] = {
            name: value
            for name in ("category", "kind", "importance", "session_id", "user_id", "run_id")
            if (value := self.text(name)) is not None
        }
        if tag := self.text("tag"):
            filters["tags"] = [tag]
        if archived := self.text("archived"):
            filters["archived"] = None if archived == "both" else archived == "1"
        since, until = self.text("since"), self.text("until")
        if since or until:
            filters["date_range"] = {"start": since, "end": until}
        return filters


def parse_body(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a request."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValidationError.of("body", "must be JSON", "") from error
    if not isinstance(value, dict):
        raise ValidationError.of("body", "must be a JSON object", "")
    return value


def text_of(body: Mapping[str, Any], name: str) -> str:
    """Return a field of a body that must be a string."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise ValidationError.of(name, "must be a string", value)
    return value

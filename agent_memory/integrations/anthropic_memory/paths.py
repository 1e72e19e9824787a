"""Paths that a model may name: those under ``/memories``, and nothing that leads out of it."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from anthropic.lib.tools import ToolError

ROOT: Final = "/memories"
_LONGEST: Final = 1_000


def place_of(path: object) -> str:
    """Return a path in its plain form: ``/memories`` or under it, without ``.`` and ``..``.

    Raises ``ToolError`` for a path elsewhere, or that would be one for whoever decodes its ``%2e``
    or takes a backslash for a slash; for one that has characters that cannot be shown, and for one
    of over 1,000 characters.
    """
    if not isinstance(path, str):
        raise ToolError(f"Path must start with {ROOT}, got: {path!r:.200}")
    if len(path) > _LONGEST:
        raise ToolError(f"Path has {len(path):,} characters: use {_LONGEST:,} at most")
    if not path.isprintable():
        raise ToolError(f"Path {path!r} has a character that cannot be shown: leave it out")
    decoded = path
    while (once_more := unquote(decoded)) != decoded:
        decoded = once_more
    _plain(decoded.replace("\\", "/"), path)
    return _plain(path, path)


def parents_of(place: str) -> list[str]:
    """Return the directories that a place stands in, but for the root."""
    parts = place.split("/")
    return ["/".join(parts[:count]) for count in range(3, len(parts))]


def _plain(path: str, original: str) -> str:
    """Return a path without what says nothing, or refuse it; ``original`` is as it was written."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {original}")
    parts: list[str] = []
    for part in path.removeprefix(ROOT).split("/"):
        if part == ".." and not parts:
            raise ToolError(f"Path {original} would escape {ROOT} directory")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join((ROOT, *parts))

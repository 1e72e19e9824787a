"""Extracts the texts from a tool's result, whatever its type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

MOST_PARTS: Final = 1_000
"""The most parts of one result that are looked at; the rest is ignored."""
_DEEPEST: Final = 8
# Keys of the request: these are not part of the answer.
_ASKED: Final = frozenset(
    """
    args arguments cmd command cwd encoding file filename id input kwargs language mime_type
    mimetype model name path pattern query role tool tool_call_id tool_input tool_name type uri url
    """.split()
)
_NAMES: Final = (
    "output", "stdout", "stderr", "content", "structured_content", "text", "result", "results",
    "message", "messages", "error", "body", "data", "summary", "value",
)  # fmt: skip
"""The attributes in which objects have texts."""


def texts_of(result: object) -> Iterator[str]:
    """Yield the texts in a result, in order.

    From mappings, all values except those of the request (``command``, ``path``, ``query``, …);
    from objects, the attributes ``output``, ``stdout``, ``content``, ``text``, ``error`` and the
    like. Bytes are decoded as UTF-8. Each part is visited once.
    """
    waiting: list[tuple[object, int]] = [(result, 0)]
    seen: set[int] = set()
    for _ in range(MOST_PARTS):
        if not waiting:
            return
        part, depth = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, bytes | bytearray):
            yield part.decode(errors="replace")
        elif isinstance(part, BaseException):
            yield str(part)
        elif depth < _DEEPEST and id(part) not in seen:
            seen.add(id(part))
            inner = list(_inside(part))
            waiting.extend((value, depth + 1) for value in reversed(inner))


def _inside(part: object) -> Iterable[object]:
    """Return what a part contains, as much of it as may be looked at."""
    if isinstance(part, Mapping):
        values = (value for key, value in part.items() if str(key).lower() not in _ASKED)
        return islice(values, MOST_PARTS)
    if isinstance(part, list | tuple | set | frozenset):
        return islice(part, MOST_PARTS)
    if part is None or isinstance(part, bool | int | float):
        return ()
    return _attributes(part)


def _attributes(part: object) -> Iterator[object]:
    for name in _NAMES:
        try:
            value = getattr(part, name, None)
        except Exception:  # noqa: BLE001, S112 - a property of an unknown class
            continue
        if value is not None and not callable(value):
            yield value

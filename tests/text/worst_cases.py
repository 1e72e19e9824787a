"""Texts that are bad for a pattern: its own prefixes, choices and near misses, again and again."""

from __future__ import annotations

import importlib
import inspect
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

# The parser of ``re`` knows what a pattern is made of; nothing public does.
PARSER: Final = importlib.import_module("re._parser")
LETTERS: Final = "a-(:.'\" =/7"
BY_CATEGORY: Final = {
    "CATEGORY_DIGIT": "7",
    "CATEGORY_NOT_DIGIT": "x",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": "x",
    "CATEGORY_WORD": "a",
    "CATEGORY_NOT_WORD": "-",
}


def pieces(pattern: str, flags: int, *, count: int = 2) -> list[str]:
    """Return texts that a pattern matches, or nearly: heads and tails of them too."""
    made = random.Random(repr(pattern))
    parsed = PARSER.parse(pattern, flags & (re.IGNORECASE | re.VERBOSE | re.DOTALL | re.MULTILINE))
    found = set()
    for _ in range(count):
        text = "".join(_text(str(op), value, made) for op, value in parsed)
        if text:
            cut = made.randrange(len(text))
            found |= {text, text[: cut + 1], text[cut], f"{text[cut:]}x"}
    return sorted(found)


def _text(op: str, value: Any, made: random.Random) -> str:
    if op == "LITERAL":
        return chr(value)
    if op == "CATEGORY":
        return BY_CATEGORY[str(value)]
    if op in ("NOT_LITERAL", "ANY"):
        return made.choice(LETTERS)
    if op == "IN":
        return _of_class(value, made)
    inner: Sequence[Any] = ()
    times = 1
    if op == "BRANCH":
        inner = made.choice(value[1])
    elif op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = value
        times = made.choice([least, min(int(most), least + made.choice([1, 3, 30]))])
    elif op == "SUBPATTERN":
        inner = value[3]
    elif op == "ATOMIC_GROUP":
        inner = value
    elif op == "ASSERT" and value[0] == 1:
        inner = value[1]
        times = made.choice([0, 1])
    return "".join(_text(str(one), more, made) for _ in range(times) for one, more in inner)


def _of_class(value: Sequence[Any], made: random.Random) -> str:
    if str(value[0][0]) == "NEGATE":
        excluded = {chr(more) for op, more in value[1:] if str(op) == "LITERAL"}
        return made.choice([it for it in LETTERS if it not in excluded] or ["x"])
    op, more = made.choice(value)
    return chr(made.choice(more)) if str(op) == "RANGE" else _text(str(op), more, made)


def patterns_of(module: str) -> Iterator[tuple[str, int]]:
    """Yield the patterns of a module with their flags: compiled ones, texts, those in tables."""
    for name, value in vars(importlib.import_module(module)).items():
        if not name.startswith("__"):
            yield from _patterns(value)
        if hasattr(value, "cache_info") and not inspect.signature(value).parameters:
            yield from _patterns(value())


def _patterns(value: object, depth: int = 0) -> Iterator[tuple[str, int]]:
    if isinstance(value, re.Pattern):
        yield value.pattern, value.flags
    elif isinstance(value, str) and len(value) > 4 and set(value) & set("[(\\"):
        try:
            re.compile(value)
        except re.error:
            return
        yield value, 0
    elif isinstance(value, tuple | list) and depth < 5:
        for part in value:
            yield from _patterns(part, depth + 1)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for field in value.__dataclass_fields__:
            yield from _patterns(getattr(value, field), depth + 1)

"""Reading a language model's answer: exactly one JSON object of the requested shape.

Only what cannot change a meaning is corrected: a code fence or prose around the object, a model's
thinking before it, a comma before a closing bracket. Anything else is a ``BadAnswer``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import pydantic

from agent_memory.errors import ProviderError

_LONGEST: Final = 1_000_000
"""Maximum characters of an answer."""
_THINKING: Final = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
# Strings are skipped, so that nothing inside them counts.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]]', re.DOTALL)
_LOOSE_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*+[}\]])', re.DOTALL)
_LIKE_AN_OBJECT: Final = re.compile(r'\{\s*(?:"|\})')

Shape = TypeVar("Shape", bound=pydantic.BaseModel)


class BadAnswer(ProviderError):
    """A language model's answer cannot be used. The message says why, without quoting it.

    ``is_truncated`` is whether it was cut off: a shorter question may be answered completely.
    """

    def __init__(self, message: str, *, is_truncated: bool = False) -> None:
        super().__init__(message)
        self.is_truncated = is_truncated


def parse(answer: object, shape: type[Shape]) -> Shape:
    """Return a model's answer, validated against a shape. A mapping is accepted as it is.

    Raises ``BadAnswer``.
    """
    data = answer if isinstance(answer, Mapping) else json_object(answer)
    try:
        return shape.model_validate(data)
    except pydantic.ValidationError as error:
        raise BadAnswer(f"the answer has the wrong shape: {_faults(error)}") from None
    except RecursionError:
        raise BadAnswer("the answer is nested too deep") from None


def json_object(answer: object) -> dict[str, Any]:
    """Return the one JSON object of an answer.

    Raises ``BadAnswer`` if the answer has none, several, one inside a list, one with a duplicate
    key, or if it was cut off.
    """
    if not isinstance(answer, str):
        raise BadAnswer(f"the answer is a {type(answer).__name__}, not a text")
    if len(answer) > _LONGEST:
        raise BadAnswer(f"the answer has {len(answer):,} characters")
    text = _THINKING.sub("", answer)
    if not text.strip():
        raise BadAnswer("the answer is empty")
    spans = [span for span in _spans(text) if _LIKE_AN_OBJECT.match(text, span[0])]
    if not spans:
        raise BadAnswer("the answer has no JSON object")
    start, end = spans[0]
    if len(spans) > 1:
        raise BadAnswer(f"the answer has {len(spans)} JSON objects, not one")
    if text[:start].rstrip().endswith("[") or text[end:].lstrip()[:1] in ("]", ","):
        raise BadAnswer("the answer is a JSON list, not an object")
    return _read(text[start:end])


def _spans(text: str) -> Iterable[tuple[int, int]]:
    """Yield where each outermost pair of braces begins and ends, whatever is between them."""
    place = text.find("{")
    while place >= 0:
        end = _closing(text, place)
        if end is None:
            if not _LIKE_AN_OBJECT.match(text, place) and text[place + 1 :].strip():
                return  # a brace in prose
            raise BadAnswer("the answer ends in the middle", is_truncated=True)
        yield place, end
        place = text.find("{", end)


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return token.end()
        elif not token[1]:
            return None
    return None


def _read(text: str) -> dict[str, Any]:
    try:
        data = json.loads(
            _LOOSE_COMMA.sub(lambda match: match[1] or "", text),
            object_pairs_hook=_no_key_twice,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise BadAnswer("the answer is nested too deep") from None
    except json.JSONDecodeError as error:
        raise BadAnswer(f"the answer is not JSON: {error.msg} at character {error.pos}") from None
    except ValueError as error:  # a number of thousands of digits
        raise BadAnswer(f"the answer is not JSON: {error!s:.100}") from None
    return data  # type: ignore[no-any-return]  # it begins with a brace


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise BadAnswer("the answer has an object with the same key twice")
    return data


def _no_constant(name: str) -> float:
    raise BadAnswer(f"the answer has {name} for a number")


def _faults(error: pydantic.ValidationError) -> str:
    """Return where the first errors are, without the values, and how many more there are."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    reports = []
    for fault in faults[:3]:
        place = ".".join(str(part)[:40] for part in fault["loc"]) or "the object"
        reports.append(f"{place}: {fault['msg'].removeprefix('Value error, ')[:160]}")
    more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
    return "; ".join(reports) + more

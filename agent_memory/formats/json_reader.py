"""JSON in: parsed strictly, and streamed one item at a time, however long the file is.

Strictly: numbers that JSON does not have and duplicate keys are refused. An item that is valid JSON
but breaks such a rule is reported, and the next one is read. After text that is not JSON there is
no way to tell where the next item begins, so reading stops there and reports the line.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Container, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

from agent_memory.errors import ValidationError

MAX_ITEM: Final = 1_000_000
"""The longest item of a file, in characters: a memory has 10,000, its metadata the rest."""

_CHUNK: Final = 64 * 1024
_MAX_DIGITS: Final = 4300  # Python's limit for parsing an integer; a memory's have 19 digits
_LONGEST_WORD: Final = 16  # characters; -Infinity is the longest word that can be cut
_WHITE: Final = re.compile(r"[ \t\r\n]*")
_DIGITS: Final = re.compile(r"[-+.0-9eE]*")
_BOTH: Final = "has a 'content' and a list of items: leave one of them out"
_LISTS: Final = ("results", "memories")
"""The keys under which an enclosing object holds the list of items (A, C)."""
_AROUND: Final = frozenset({*_LISTS, "data"})


class JsonItem(NamedTuple):
    """A value, the line where it begins (from 1), and its error, if any."""

    line: int
    value: Any
    error: str | None = None


def parse(text: str) -> Any:  # noqa: ANN401 - JSON data
    """Return the data of one JSON text.

    Raises ``ValidationError`` with a message to put after a place: "is not JSON: …", "is nested too
    deep".
    """
    try:
        return _STRICT.decode(text)
    except JSONDecodeError as error:
        where = f"line {error.lineno}, " if error.lineno > 1 else ""
        message = f"is not JSON: {error.msg} ({where}column {error.colno})"
        raise ValidationError(message) from error
    except RecursionError as error:
        raise ValidationError("is nested too deeply") from error


def read_items(file: BinaryIO, *, longest: int = MAX_ITEM) -> Iterator[JsonItem]:
    """Yield the elements of an array, or values in sequence, one at a time.

    For an object around a list, as a search returns it (``{"results": […]}``), yield the elements
    of the list. At most one item is held, of ``longest`` characters. Raises ``ValidationError``
    with the line after which the file cannot be read.
    """
    text = _Text(file, longest)
    while first := text.peek():
        if first == "[":
            for element in _elements(text):
                yield from unwrapped(element)
        elif (item := text.held_item()) is not None:
            yield from unwrapped(item)
        elif first == "{":
            yield from _object(text)
        else:
            yield text.item()


def may_stand_around(value: object) -> bool:
    """Return whether a value has a key under which an enclosing object holds items."""
    return isinstance(value, dict) and not _AROUND.isdisjoint(value)


def unwrapped(item: JsonItem, *, is_inside: bool = False) -> Iterator[JsonItem]:
    """Yield the items of an object around a list; otherwise the item itself."""
    is_around_items, keys = False, set[str]()
    if may_stand_around(item.value):
        for key, value in item.value.items():
            first = "[" if isinstance(value, list) else "{" if isinstance(value, dict) else ""
            if _holds_items(key, first, keys):
                is_around_items = True
                yield from (JsonItem(item.line, element) for element in value)
            elif not is_inside and _holds_answer(key, first, keys):
                is_around_items = True
                yield from unwrapped(JsonItem(item.line, value), is_inside=True)
            keys.add(key)
    if is_around_items and "content" in keys:
        yield JsonItem(item.line, None, _BOTH)
    elif not is_around_items:
        yield item


def _holds_items(key: str, first: str, keys: Container[str]) -> bool:
    """Return whether a key holds the list of items; a memory has its content first.

    ``first`` is the first character of the value, ``keys`` the keys before it.
    """
    return key in _LISTS and first == "[" and "content" not in keys


def _holds_answer(key: str, first: str, keys: Container[str]) -> bool:
    """Return whether a key holds the data of a response (C)."""
    return key == "data" and first == "{" and "success" in keys and "content" not in keys


def _elements(text: _Text) -> Iterator[JsonItem]:
    has_more = text.opens("[", "]")
    while has_more:
        yield text.item()
        has_more = text.take(",]") == ","


def _object(text: _Text, *, is_inside: bool = False) -> Iterator[JsonItem]:
    """Do what ``unwrapped`` does for an object that is longer than the buffer."""
    line, size, is_around_items = text.line, 0, False
    members: dict[str, Any] = {}
    faults: list[str] = []
    has_more = text.opens("{", "}")
    while has_more:
        start, key = text.offset, text.key()
        if key in members:
            faults.append(_twice(key))
        first = text.peek()
        if _holds_items(key, first, members):
            is_around_items, members[key] = True, None
            yield from _elements(text)
        elif not is_inside and _holds_answer(key, first, members):
            is_around_items, members[key] = True, None
            yield from _object(text, is_inside=True)
        else:
            item = text.item()
            members[key] = item.value
            faults += [item.error] if item.error else []
            size += text.offset - start
        if size > text.longest:
            text.refuse(text.too_long)
        has_more = text.take(",}") == ","
    if is_around_items and "content" in members:
        faults.append(_BOTH)
    if faults:
        yield JsonItem(line, None, faults[0])
    elif not is_around_items:
        yield JsonItem(line, members)


class _Text:
    """A JSON file of which a piece is held: from the current position to the end of the item."""

    def __init__(self, file: BinaryIO, longest: int) -> None:
        self.longest = longest
        self.too_long = f"is longer than {longest:,} characters"
        self.line = 1
        self.offset = 0
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._buffer = ""
        self._at = 0

    def peek(self) -> str:
        """Skip white space, and return the next character, or nothing at the end."""
        while True:
            gap = _WHITE.match(self._buffer, self._at)
            self._advance(gap.end() if gap else self._at)
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._grow():
                return ""

    def take(self, letters: str) -> str:
        """Consume one of these characters, which must be next."""
        if not (char := self.peek()) or char not in letters:
            self._refuse_at(self._at, f"{' or '.join(map(repr, letters))} is missing")
        self._advance(self._at + 1)
        return char

    def opens(self, opening: str, closing: str) -> bool:
        """Consume the opening of a list or an object, and return whether it is not empty."""
        self.take(opening)
        if self.peek() != closing:
            return True
        self.take(closing)
        return False

    def key(self) -> str:
        """Consume a key and its colon."""
        if self.peek() != '"':
            self._refuse_at(self._at, "a key between double quotes is missing")
        key = str(self.item().value)
        self.take(":")
        return key

    def item(self) -> JsonItem:
        """Consume one value of any type."""
        self.peek()
        while True:
            try:
                value, end, error = self._decoded()
            except JSONDecodeError as problem:
                if not self._is_cut(problem) or not self._grow():
                    self._refuse_at(problem.pos, problem.msg)
            except RecursionError:
                self.refuse("is nested too deeply")
            else:
                rest = _DIGITS.match(self._buffer, end)  # a number might continue in the next chunk
                is_whole = rest is not None and rest.end() < len(self._buffer)
                if is_whole or not self._grow():
                    return self._taken(value, end, error)

    def held_item(self) -> JsonItem | None:
        """Consume an object if it is held to its end."""
        if self.peek() != "{":
            return None
        try:
            return self._taken(*self._decoded())
        except (JSONDecodeError, RecursionError):
            return None

    def refuse(self, message: str) -> NoReturn:
        """Stop reading."""
        raise ValidationError(f"line {self.line}: {message}")

    def _decoded(self) -> tuple[Any, int, str | None]:
        try:
            value, end = _STRICT.raw_decode(self._buffer, self._at)
        except ValidationError as error:  # it is JSON that breaks a rule: find where it ends
            return None, _LENIENT.raw_decode(self._buffer, self._at)[1], str(error)
        return value, end, None

    def _taken(self, value: object, end: int, error: str | None) -> JsonItem:
        line, is_long = self.line, end - self._at > self.longest
        self._advance(end)
        return JsonItem(line, None, self.too_long) if is_long else JsonItem(line, value, error)

    def _is_cut(self, problem: JSONDecodeError) -> bool:
        """Return whether the error may only mean that the item continues past the buffer."""
        is_near_the_end = problem.pos > len(self._buffer) - _LONGEST_WORD
        return is_near_the_end or problem.msg.startswith("Unterminated string")

    def _advance(self, position: int) -> None:
        self.line += self._buffer.count("\n", self._at, position)
        self.offset += position - self._at
        self._at = position

    def _grow(self) -> bool:
        """Read more, and return whether there was any."""
        held = len(self._buffer) - self._at
        if held > self.longest:
            self.refuse(self.too_long)
        data = self._file.read(max(_CHUNK, held))
        try:
            more = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            lines = self._buffer.count("\n", self._at) + error.object.count(b"\n", 0, error.start)
            raise ValidationError(f"line {self.line + lines}: is not UTF-8") from error
        if not data:
            return False
        self._buffer = self._buffer[self._at :] + more
        self._at = 0
        return True

    def _refuse_at(self, position: int, problem: str) -> NoReturn:
        rest = self._buffer[position : position + 8].split("\n")[0]  # more might show a secret
        where = f"before {rest!r}" if rest else "at the end of the line"
        if position >= len(self._buffer):
            where = "at the end of the file, which seems to be cut off"
        line = self.line + self._buffer.count("\n", self._at, position)
        raise ValidationError(f"line {line}: is not JSON: {problem} {where}")


def _twice(key: str) -> str:
    return f"is not JSON: the key {key!r:.80} occurs twice"


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs. Raises ``ValidationError`` for a duplicate key."""
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    raise ValidationError(_twice(key))


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValidationError(f"is not JSON that can be stored: {text:.40} is too large a number")
    return number


def _integer(text: str) -> int:
    if (digits := len(text.removeprefix("-"))) > _MAX_DIGITS:
        raise ValidationError(f"is not JSON that can be stored: a number has {digits:,} digits")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise ValidationError(f"is not JSON: {name} is not a JSON number")


_STRICT: Final = JSONDecoder(
    object_pairs_hook=object_of,
    parse_float=_finite,
    parse_int=_integer,
    parse_constant=_no_constant,
)
_LENIENT: Final = JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
"""Finds the end of what the strict decoder refuses."""

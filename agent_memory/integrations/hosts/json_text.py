"""Edits JSON as text, preserving comments, order, indentation and everything else.

Comments and trailing commas are read as editors write them (JSONC). No Python library preserves
them on writing, so a value is inserted into the text and nothing else is touched; the result is
parsed again before it is returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from agent_memory import ValidationError

Key = str | int
_TEXT: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(rf"{_TEXT}|(?P<blanked>//[^\n]*|/\*.*?\*/|\ufeff)", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(rf"{_TEXT}|(?P<blanked>,)(?=\s*[}}\]])", re.DOTALL)
_SPACE: Final = re.compile(r"\s*")
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_READER: Final = json.JSONDecoder()


class _Member(NamedTuple):
    """A value in an object or a list, and its position; ``start`` is that of its key."""

    key: Key
    start: int
    value: int
    end: int


class JsonText:
    """A JSON document, and its text. ``name`` is used in errors.

    An empty text is an empty object. Raises ``ValidationError`` for anything but a JSON object.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text if text.strip("\ufeff \t\r\n") else "{}\n"
        self._name = name
        self._plain_text = ""
        """The text as strict JSON; empty while nobody has asked for it since a change."""
        self.data()

    def data(self) -> dict[str, Any]:
        """Return the parsed text."""
        try:
            data = json.loads(self._plain())
        except (ValueError, RecursionError) as error:
            raise self._refused(f"is not JSON ({error})") from error
        if not isinstance(data, dict):
            raise self._refused("does not contain an object")
        return data

    def value(self, path: Sequence[Key]) -> Any:  # noqa: ANN401 - JSON
        """Return the value at a path, or ``None``."""
        value: Any = self.data()
        for key in path:
            if isinstance(key, str):
                value = value.get(key) if isinstance(value, dict) else None
            else:
                value = value[key] if isinstance(value, list) and key < len(value) else None
        return value

    def put(self, path: Sequence[Key], value: object) -> None:
        """Set the value at a path; missing objects and lists on the way are created.

        An index equal to a list's length appends to it. Raises ``ValidationError`` if something
        else is on the way.
        """
        start = self._skip(0)
        for depth, key in enumerate(path):
            if self._plain()[start] != ("{" if isinstance(key, str) else "["):
                shown = ".".join(map(str, path[:depth]))
                raise self._refused(
                    f"{shown!r} is not {'an object' if isinstance(key, str) else 'a list'}"
                )
            member = next((each for each in self._members(start) if each.key == key), None)
            if member is None:
                new = value
                for inner in reversed(path[depth + 1 :]):
                    new = {inner: new} if isinstance(inner, str) else [new]
                self._insert(start, key, new, depth + 1)
                break
            start = member.value
        else:
            self._replace(start, self._end(start), self._written(value, len(path)))
        if self.value(path) != value:
            raise self._refused("cannot be changed without changing more of it")

    def remove(self, path: Sequence[Key]) -> None:
        """Remove the value at a path, and the containers that this leaves empty."""
        while path and self.value(path) is not None:
            start = self._skip(0)
            for key in path[:-1]:
                start = next(each.value for each in self._members(start) if each.key == key)
            self._cut(next(each for each in self._members(start) if each.key == path[-1]))
            end = self._end(start)
            if self._uncommented()[start + 1 : end - 1].strip():
                break
            if self.text[start + 1 : end - 1].strip():
                return  # only comments are left: keep them
            self._replace(start + 1, end - 1, "")
            path = path[:-1]
        self.data()

    # Positions ------------------------------------------------------------------------------------

    def _uncommented(self) -> str:
        """Return the text with comments blanked out, so that all positions stay the same."""
        return _COMMENT.sub(_blank, self.text)

    def _plain(self) -> str:
        """Return the text as strict JSON, with all positions unchanged."""
        if not self._plain_text:
            self._plain_text = _TRAILING_COMMA.sub(_blank, self._uncommented())
        return self._plain_text

    def _skip(self, place: int) -> int:
        match = _SPACE.match(self._plain(), place)
        return match.end() if match else place

    def _end(self, start: int) -> int:
        return _READER.raw_decode(self._plain(), start)[1]

    def _members(self, start: int) -> list[_Member]:
        """Return the members of the object or list that begins at a position."""
        plain = self._plain()
        members: list[_Member] = []
        place = self._skip(start + 1)
        while plain[place] not in "}]":
            begin = place
            key: Key = len(members)
            if plain[start] == "{":
                key, place = _READER.raw_decode(plain, place)
                place = self._skip(self._skip(place) + 1)
            end = self._end(place)
            members.append(_Member(key, begin, place, end))
            place = self._skip(end)
            if plain[place] == ",":
                place = self._skip(place + 1)
        return members

    # Writing --------------------------------------------------------------------------------------

    def _insert(self, start: int, key: Key, value: object, depth: int) -> None:
        """Add a member at the end of the object or list that begins at a position."""
        written = self._written(value, depth)
        if isinstance(key, str):
            written = f"{json.dumps(key, ensure_ascii=False)}: {written}"
        line = f"{self._line_end()}{self._indent() * depth}{written}"
        members = self._members(start)
        if not members:
            end = self._end(start)
            inner = self.text[start + 1 : end - 1].rstrip()
            closing = f"{self._line_end()}{self._indent() * (depth - 1)}"
            self._replace(start + 1, end - 1, f"{inner}{line}{closing}")
            return
        last = members[-1].end
        place = self._end_of_line(last)
        rest = self._uncommented()[last:place].strip()
        if rest not in ("", ","):  # the closing bracket is on the same line
            place, rest = last, ""
        self._replace(place, place, line)
        if not rest:
            self._replace(last, last, ",")

    def _end_of_line(self, place: int) -> int:
        """Return where a line ends, or a comment that continues beyond it."""
        end = self.text.find("\n", place)
        end = len(self.text) if end < 0 else end
        for match in _COMMENT.finditer(self.text):
            if match["blanked"] and match.start() < end < match.end():
                return match.end()
        return end - 1 if self.text[end - 1 : end] == "\r" else end

    def _cut(self, member: _Member) -> None:
        """Remove a member, with an adjacent comma and its line break."""
        plain = self._uncommented()
        end = member.end
        match = re.compile(r"\s*,").match(plain, end)
        before = len(plain[: member.start].rstrip())
        if match:
            end = match.end()
        begin = len(self.text[: member.start].rstrip(" \t"))
        if self.text[begin - 1 : begin] == "\n":
            begin -= 2 if self.text[begin - 2 : begin] == "\r\n" else 1
        else:
            begin = member.start
        self._replace(begin, end, "")
        if not match and plain[before - 1] == ",":
            self._replace(before - 1, before, "")

    def _written(self, value: object, depth: int) -> str:
        indent = self._indent()
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        return text.replace("\n", f"{self._line_end()}{indent * depth}")

    def _indent(self) -> str:
        match = _INDENT.search(self._uncommented())
        return match[1] if match else "  "

    def _line_end(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]
        self._plain_text = ""

    def _refused(self, reason: str) -> ValidationError:
        return ValidationError(f"{self._name}: {reason}: nothing was changed; correct it first")


def _blank(match: re.Match[str]) -> str:
    return match[0] if match["blanked"] is None else re.sub(r"[^\n]", " ", match[0])

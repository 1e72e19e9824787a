"""Edits one table of a TOML file as text, preserving comments, order and everything else.

The result is parsed again, and refused unless only the table has changed. This needs no library: a
whole table is added or removed, or a line of it replaced.
"""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_memory import ValidationError

_HEADER: Final = re.compile(r"\s*\[")
_KEEPS: Final = re.compile(r"\s*(#.*)?$")


class TomlText:
    """A TOML document, and its text. ``name`` is used in errors.

    Raises ``ValidationError`` for a text that is not TOML.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self._name = name
        self.data()

    def data(self) -> dict[str, Any]:
        """Return the parsed text."""
        try:
            return tomllib.loads(self.text.replace("\r\n", "\n"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ValidationError(
                f"{self._name}: is not TOML ({error}): nothing was changed; correct it first"
            ) from error

    def value(self, path: Sequence[str]) -> Any:  # noqa: ANN401 - TOML
        """Return the value at a path, or ``None``."""
        value: Any = self.data()
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def put(self, path: Sequence[str], values: Mapping[str, str | list[str]]) -> None:
        """Set keys of the table at a path, which is created at the end if there is none."""
        existing = self.value(path)
        expected = {**existing, **values} if isinstance(existing, dict) else values
        lines = self.text.splitlines()
        place = self._header(lines, path)
        written = {key: f"{key} = {json.dumps(value)}" for key, value in values.items()}
        if place is None:
            header = f"[{'.'.join(path)}]"
            blank = [""] if lines and lines[-1].strip() else []
            lines += [*blank, header, *written.values()]
        else:
            for key, line in written.items():
                of_key = re.compile(rf"\s*([\"']?){re.escape(key)}\1\s*=")
                within = range(place + 1, self._end(lines, place))
                number = next((n for n in within if of_key.match(lines[n])), None)
                if number is None:
                    lines.insert(place + 1, line)
                else:
                    lines[number] = line
        self._set(lines, path, expected)

    def remove(self, path: Sequence[str]) -> None:
        """Remove the table at a path; comments after it stay."""
        lines = self.text.splitlines()
        while (place := self._header(lines, path, inner=True)) is not None:
            end = self._end(lines, place)
            while end > place + 1 and _KEEPS.fullmatch(lines[end - 1]):
                end -= 1
            begin = place - 1 if place and not lines[place - 1].strip() else place
            del lines[begin:end]
        self._set(lines, path, None)

    @staticmethod
    def _header(lines: Sequence[str], path: Sequence[str], *, inner: bool = False) -> int | None:
        names = r"\s*\.\s*".join(rf"(?:{re.escape(key)}|\"{re.escape(key)}\")" for key in path)
        more = r"(?:\s*\..*)?" if inner else ""
        header = re.compile(rf"\s*\[\s*{names}{more}\s*\]\s*(?:#.*)?")
        return next((n for n, line in enumerate(lines) if header.fullmatch(line)), None)

    @staticmethod
    def _end(lines: Sequence[str], place: int) -> int:
        after = range(place + 1, len(lines))
        return next((n for n in after if _HEADER.match(lines[n])), len(lines))

    def _set(self, lines: Sequence[str], path: Sequence[str], expected: object) -> None:
        """Take lines as the new text, if they change what was meant and nothing else."""
        before, rest = self.text, _without(self.data(), path)
        line_end = "\r\n" if "\r\n" in before else "\n"
        self.text = "".join(f"{line}{line_end}" for line in lines)
        with contextlib.suppress(ValidationError):  # a table inside a non-table is not TOML
            if self.value(path) == expected and _without(self.data(), path) == rest:
                return
        self.text = before
        raise ValidationError(
            f"{self._name}: [{'.'.join(path)}] cannot be changed line by line, because"
            f" {path[0]!r} is written in another form: nothing was changed; make it a table,"
            " or change it by hand"
        )


def _without(data: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return data without the value at a path, and without tables that this leaves empty."""
    inner = data.get(path[0])
    rest = {key: value for key, value in data.items() if key != path[0]}
    if len(path) > 1 and isinstance(inner, dict) and (left := _without(inner, path[1:])):
        return {**rest, path[0]: left}
    return rest

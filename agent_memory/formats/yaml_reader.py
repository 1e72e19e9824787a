"""YAML as plain data: read from PyYAML's events, refusing what data never needs.

PyYAML's own loading lets libyaml recurse until the process crashes (``[`` 200,000 times), follows
aliases that expand to gigabytes, and keeps the last of two equal keys.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

from agent_memory.errors import ValidationError
from agent_memory.models.times import format_time
from agent_memory.runtime.files import read_steadily

MAX_ITEM_BYTES: Final = 4 * 2**20
"""The longest text of one item, which is held in memory; a content has 60 kB at most."""

_MAX_DEPTH: Final = 40  # metadata is 20 deep at most
_TAG: Final = "tag:yaml.org,2002:"
_WORDS: Final = {_TAG + name for name in ("null", "bool", "int", "float", "timestamp")}
_COLLECTIONS: Final = {None, "!", _TAG + "map", _TAG + "seq"}
_MOST_KNOWN: Final = 2000
_CHUNK: Final = 2**20


class Item(NamedTuple):
    """The value of a key of the file's mapping, or one item of the list under it.

    ``number`` is the item's position in the list, from 1, and ``None`` for a value that is not a
    list, or an empty one. ``line`` is where the value begins, from 1. If the value is refused,
    ``error`` says why, and ``line`` is where the error is.
    """

    key: str
    number: int | None
    line: int
    value: object
    error: str | None = None


def read_items(path: Path) -> Iterator[Item]:
    """Yield the values of a YAML file's one mapping, and the items of its lists one by one.

    No more than one item is held. Values are plain JSON data. Quoted scalars and block scalars are
    text. Plain scalars follow YAML 1.1: ``yes``, ``no``, ``on``, ``off`` are booleans, ``~`` and
    nothing are null, ``012`` is 10, ``1:30`` is 90, ``1_000`` is 1000, ``.nan`` and ``.inf`` are
    numbers. A plain time stays as the text it is, or is rewritten if it is not ISO 8601.

    An item's ``error`` is set for an alias (a short file can expand to gigabytes), a key that is a
    duplicate or not a string, a tag of another program, and a word without a valid value
    (2026-02-30). Raises ``ValidationError`` with the file and the line for a file that is not YAML,
    is not a mapping, or has two documents, for a duplicate key of the mapping, nesting over 40 deep
    and an item of over 4 MB, and ``StorageUnavailable`` if the file cannot be read.
    """
    with read_steadily(path) as file, _named_faults(file, f"{path}: "):
        yield from _Document(file).items()


def read_yaml(file: BinaryIO) -> object:
    """Return the data of a YAML file's one document, as ``read_items`` reads it.

    The error of an item raises ``ValidationError`` here, with the line.
    """
    with _named_faults(file, ""):
        return _Document(file).whole()


@contextlib.contextmanager
def _named_faults(file: BinaryIO, prefix: str) -> Iterator[None]:
    """Turn errors in a file that the body reads into ``ValidationError``."""
    from yaml import YAMLError  # noqa: PLC0415 - takes 15 ms, and most commands read no YAML

    try:
        yield
    except _Fault as fault:
        raise ValidationError(f"{prefix}line {fault.line}: {fault}") from None
    except YAMLError as error:
        raise ValidationError(prefix + _fault_text(error, file)) from error


def _fault_text(error: Any, file: BinaryIO) -> str:  # noqa: ANN401 - yaml's types are loose
    """Say where a file is not YAML, and why."""
    if mark := getattr(error, "problem_mark", None):
        # libyaml 0.2.6 and later stop at a depth of their own, before any event shows the depth.
        is_deep = "nesting depth" in str(error.problem)
        fault = f"nested over {_MAX_DEPTH} levels deep" if is_deep else f"not YAML: {error.problem}"
        return f"line {mark.line + 1}: is {fault}"
    what = f"is not YAML: {getattr(error, 'reason', error)}"
    if getattr(error, "encoding", "unicode") == "unicode":
        return what  # PyYAML without libyaml counts characters, and not from the start of the file
    file.seek(0)
    left, line = error.position, 1
    while left > 0 and (chunk := file.read(min(left, _CHUNK))):
        left -= len(chunk)
        line += chunk.count(b"\n")
    return f"line {line}: {what}"


class _Fault(Exception):
    """Something that data never needs, and its line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class _Unfit(_Fault):
    """One item is refused; the rest can be read."""


class _Unreadable(_Fault):
    """The file cannot be read past this."""


class _Stream:
    """The stream that PyYAML reads; it ends if one item is too long."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._line, self._left = 1, MAX_ITEM_BYTES

    def begin(self, line: int) -> None:
        """Start counting again for an item that begins at this line."""
        self._line, self._left = line, MAX_ITEM_BYTES

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the file."""
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            message = f"the value that begins here is longer than {MAX_ITEM_BYTES:,} bytes"
            raise _Unreadable(self._line, message)
        return data


class _Document:
    """Builds data from YAML's events, and refuses what data never needs."""

    def __init__(self, file: BinaryIO) -> None:
        import yaml  # noqa: PLC0415 - takes 15 ms, and most commands read no YAML

        self._yaml = yaml
        self._stream = _Stream(file)
        # libyaml is many times faster, but PyYAML can be built without it.
        self._loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(self._stream)
        self._next: Callable[[], Any] = self._loader.get_event
        self._patterns: dict[str, list[tuple[str, Any]]] = self._loader.yaml_implicit_resolvers
        self._scalars: dict[str, Any] = {}
        self._open = 0
        """The number of open collections in the current item."""

    def items(self) -> Iterator[Item]:
        """Yield the entries of the mapping that the document is."""
        end = self._yaml.MappingEndEvent
        try:
            if type(event := self._first()) is not self._yaml.MappingStartEvent:
                self._stop(event, "is not a mapping of keys to values")
            seen: set[str] = set()
            while type(event := self._next()) is not end:
                yield from self._items_of(self._key(event, seen))
            self._end()
        finally:
            self._loader.dispose()

    def whole(self) -> object:
        """Return the document's data."""
        try:
            data = self._value(self._first(), 0)
            self._end()
            return data
        finally:
            self._loader.dispose()

    def _first(self) -> Any:  # noqa: ANN401 - yaml's types are loose
        self._next()  # the stream's start
        if type(event := self._next()) is self._yaml.StreamEndEvent:
            self._stop(event, "the file is empty")
        return self._next()

    def _end(self) -> None:
        self._next()  # the document's end
        if type(event := self._next()) is not self._yaml.StreamEndEvent:
            self._stop(event, "a second document begins here")

    def _key(self, event: Any, seen: set[str]) -> str:  # noqa: ANN401 - yaml's types are loose
        item = self._item("", None, event)
        if item.error is not None:
            raise _Unreadable(item.line, item.error)
        if not isinstance(item.value, str):
            self._stop(event, "this key is not a string: put it between double quotes")
        if item.value in seen:
            self._stop(event, f"the key {item.value!r:.80} occurs twice")
        seen.add(item.value)
        return item.value

    def _items_of(self, key: str) -> Iterator[Item]:
        """Yield the value of a key, or the items if it is a list."""
        event = self._next()
        if type(event) is not self._yaml.SequenceStartEvent or event.tag not in _COLLECTIONS:
            yield self._item(key, None, event)
            return
        number, line = 0, _line(event)
        while type(event := self._next()) is not self._yaml.SequenceEndEvent:
            number += 1
            yield self._item(key, number, event)
        if not number:
            yield Item(key, None, line, [])

    def _item(self, key: str, number: int | None, event: Any) -> Item:  # noqa: ANN401 - loose
        line = _line(event)
        self._stream.begin(line)
        self._open = 0
        try:
            return Item(key, number, line, self._value(event, 1))
        except _Unfit as fault:
            self._pass_over_rest()
            return Item(key, number, fault.line, None, str(fault))

    def _pass_over_rest(self) -> None:
        yaml = self._yaml
        begin = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
        end = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
        while self._open:
            event = self._next()
            self._open += isinstance(event, begin) - isinstance(event, end)
            if self._open > _MAX_DEPTH:
                self._stop(event, f"is nested over {_MAX_DEPTH} levels deep")

    def _value(self, event: Any, depth: int) -> object:  # noqa: ANN401 - yaml's types are loose
        yaml, kind = self._yaml, type(event)
        if kind is yaml.ScalarEvent:
            scalar = None if event.style or event.tag else self._scalars.get(event.value)
            return self._scalar(event) if scalar is None else scalar
        if kind is yaml.AliasEvent:
            self._refuse(event, f"the alias *{event.anchor} is not supported: write the value out")
        self._open += 1
        if event.tag not in _COLLECTIONS:
            self._refuse(event, f"the tag {event.tag} is not supported")
        if depth > _MAX_DEPTH:
            self._stop(event, f"is nested over {_MAX_DEPTH} levels deep")
        value = self._mapping(depth) if kind is yaml.MappingStartEvent else self._list(depth)
        self._open -= 1
        return value

    def _list(self, depth: int) -> list[object]:
        end, value = self._yaml.SequenceEndEvent, []
        while type(event := self._next()) is not end:
            value.append(self._value(event, depth + 1))
        return value

    def _mapping(self, depth: int) -> dict[str, object]:
        following, end, scalar = self._next, self._yaml.MappingEndEvent, self._yaml.ScalarEvent
        value: dict[str, object] = {}
        while type(event := following()) is not end:
            # Large files spend their time here, so the usual case, quoted text, avoids a call.
            is_text = type(event) is scalar and event.style and event.tag is None
            key = event.value if is_text else self._value(event, depth + 1)
            if type(key) is not str:
                self._refuse(event, "this key is not a string: put it between double quotes")
            if key in value:
                self._refuse(event, f"the key {key!r:.80} occurs twice")
            event = following()
            is_text = type(event) is scalar and event.style and event.tag is None
            value[key] = event.value if is_text else self._value(event, depth + 1)
        return value

    def _scalar(self, event: Any) -> object:  # noqa: ANN401 - yaml's types are loose
        text: str = event.value
        if event.tag is not None:
            if event.tag in ("!", _TAG + "str"):
                return text
            self._refuse(
                event, f"{text!r:.80} ({event.tag}) is not supported: put it between double quotes"
            )
        if event.style:
            return text
        for tag, pattern in self._patterns.get(text[:1], ()):
            if pattern.match(text):
                value = self._word(event, tag)
                break
        else:
            value = text
        if len(text) < 20 and len(self._scalars) < _MOST_KNOWN:
            self._scalars[text] = value
        return value

    def _word(self, event: Any, tag: str) -> object:  # noqa: ANN401 - yaml's types are loose
        """Return the value of a plain scalar that is not text."""
        text: str = event.value
        if tag not in _WORDS:
            self._refuse(
                event, f"{text!r:.80} ({tag}) is not supported: put it between double quotes"
            )
        try:
            node = self._yaml.ScalarNode(tag, text, event.start_mark)
            value = self._loader.yaml_constructors[tag](self._loader, node)
        except (ValueError, OverflowError) as error:
            self._refuse(event, f"{text!r:.80} cannot be read: {error}")
        return _as_text(text, value) if isinstance(value, date) else value

    @staticmethod
    def _refuse(event: Any, message: str) -> NoReturn:  # noqa: ANN401 - yaml's types are loose
        raise _Unfit(_line(event), message)

    @staticmethod
    def _stop(event: Any, message: str) -> NoReturn:  # noqa: ANN401 - yaml's types are loose
        raise _Unreadable(_line(event), message)


def _line(event: Any) -> int:  # noqa: ANN401 - yaml's types are loose
    line: int = event.start_mark.line
    return line + 1


def _as_text(text: str, moment: date) -> str:
    """Return the text of a plain time; YAML has some forms that ISO 8601 does not."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return format_time(moment) if isinstance(moment, datetime) else moment.isoformat()
    return text

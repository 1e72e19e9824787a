"""YAML as data alone: read by PyYAML's events, refusing what data never needs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any, BinaryIO, Final, NoReturn

from agent_memory.errors import ValidationError
from agent_memory.times import format_time

_MAX_DEPTH: Final = 40  # metadata is 20 deep at most
_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = _TAG + "str"
_WORDS: Final = {_TAG + name for name in ("null", "bool", "int", "float", "timestamp")}
_COLLECTIONS: Final = {None, "!", _TAG + "map", _TAG + "seq"}


def read_yaml(file: BinaryIO) -> object:
    """Return the data of the one document of a YAML file, times as text.

    Aliases (a short file could stand for gigabytes), keys that stand twice, tags of other programs
    and what is nested over 40 deep are ``ValidationError`` with the line, as is what is not YAML.
    """
    from yaml import YAMLError  # noqa: PLC0415 - takes 15 ms, and most commands read no YAML

    try:
        return _Document(file).read()
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ValidationError(f"{line}is not YAML: {problem}") from error


class _Document:
    """Makes data of YAML's events, and refuses what the data of a scratchpad never needs."""

    def __init__(self, file: BinaryIO) -> None:
        import yaml  # noqa: PLC0415 - takes 15 ms, and most commands read no YAML

        self._yaml = yaml
        # libyaml is many times faster, but PyYAML can be built without it.
        self._loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(file)
        self._next: Callable[[], Any] = self._loader.get_event

    def read(self) -> object:
        try:
            self._next()  # the stream's start
            if type(event := self._next()) is self._yaml.StreamEndEvent:
                self._refuse(event, "the file is empty")
            data = self._value(self._next(), depth=0)
            self._next()  # the document's end
            if type(event := self._next()) is not self._yaml.StreamEndEvent:
                self._refuse(event, "a second document begins here")
            return data
        finally:
            self._loader.dispose()

    def _value(self, event: Any, depth: int) -> object:  # noqa: ANN401 - yaml's types are loose
        yaml, kind = self._yaml, type(event)
        if kind is yaml.ScalarEvent:
            return self._scalar(event)
        if kind is yaml.AliasEvent:
            self._refuse(event, f"the alias *{event.anchor} is not read here: write the value out")
        if event.tag not in _COLLECTIONS:
            self._refuse(event, f"the tag {event.tag} is not read here")
        if depth > _MAX_DEPTH:
            self._refuse(event, f"is nested over {_MAX_DEPTH} deep")
        if kind is yaml.MappingStartEvent:
            return self._mapping(depth + 1)
        items = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            items.append(self._value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while type(event := self._next()) is not self._yaml.MappingEndEvent:
            key = self._value(event, depth)
            if not isinstance(key, str):
                self._refuse(event, "this key is not a text: put it between double quotes")
            if key in found:
                self._refuse(event, f"the key {key!r:.80} stands twice")
            found[key] = self._value(self._next(), depth)
        return found

    def _scalar(self, event: Any) -> object:  # noqa: ANN401 - yaml's types are loose
        text: str = event.value
        if event.tag is None and event.implicit[0]:
            tag = self._loader.resolve(self._yaml.ScalarNode, text, (True, False))
        else:
            tag = _TEXT if event.tag in (None, "!") else event.tag
        if tag == _TEXT:
            return text
        if tag not in _WORDS or event.tag is not None:
            self._refuse(event, f"{text!r:.80} ({tag}) is not read here: double-quote it")
        try:
            node = self._yaml.ScalarNode(tag, text, event.start_mark)
            value = self._loader.yaml_constructors[tag](self._loader, node)
            return format_time(value) if isinstance(value, datetime) else _plain(value)
        except (ValueError, OverflowError) as error:
            self._refuse(event, f"{text!r:.80} cannot be read: {error}")

    @staticmethod
    def _refuse(event: Any, message: str) -> NoReturn:  # noqa: ANN401 - yaml's types are loose
        raise ValidationError(f"line {event.start_mark.line + 1}: {message}")


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value

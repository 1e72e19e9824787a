"""Reads what memories say and said, from their rows and from the history, for erasing it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from agent_memory.storage.change_records import Change, ErasedText, Statement


class ChangedText(NamedTuple):
    """One change of a memory: the values are JSON; the user is that of the current memory."""

    memory_id: str
    event: str
    old: str | None
    new: str | None
    user_id: str | None


def statements_before(changes: Iterable[ChangedText]) -> Iterator[Statement]:
    """Yield what each memory says in its changes, and about whom; they are grouped by memory."""
    for memory_id, of_memory in groupby(changes, key=itemgetter(0)):
        yield _statement_of(memory_id, of_memory)


def _statement_of(memory_id: str, changes: Iterable[ChangedText]) -> Statement:
    contents: set[str] = set()
    user_ids: set[str | None] = set()
    for change in changes:
        for values in (_read(change.old), _read(change.new)):
            if isinstance(values, dict):
                if isinstance(values.get("content"), str):
                    contents.add(values["content"])
                if "user_id" in values or (values and change.event != "UPDATE"):
                    user_ids.add(values.get("user_id"))
        if change.user_id is not None:
            user_ids.add(change.user_id)
    return Statement(memory_id, frozenset(contents), frozenset(user_ids or {None}))


def add_row(erased: ErasedText, content: str, objects: Iterable[str | None]) -> None:
    """Add the texts of a row: its content, and the strings in its JSON columns."""
    erased.contents.add(content)
    for text in objects:
        erased.strings.update(_strings(_read(text)))


def add_change(erased: ErasedText, values: str | None) -> None:
    """Add the texts of one side of a change; if it cannot be parsed, the raw text."""
    columns = _read(values)
    if not isinstance(columns, dict):
        erased.contents.update(_strings(columns))
        return
    if isinstance(columns.get("content"), str):
        erased.contents.add(columns["content"])
    for name in ("tags", "metadata", "task_metadata"):
        if isinstance(columns.get(name), str):
            erased.strings.update(_strings(_read(columns[name])))


def texts_of_changes(changes: Iterable[Change], user_id: str | None) -> ErasedText:
    """Return all texts in some changes of a user's memories."""
    erased = ErasedText()
    for memory_id, of_memory in groupby(changes, key=attrgetter("memory_id")):
        texts = ErasedText()
        for change in of_memory:
            for values in (change.old, change.new):
                add_change(texts, json.dumps(values))
        texts.statements.append(
            Statement(memory_id, frozenset(texts.contents), frozenset({user_id}))
        )
        erased.add(texts)
    return erased


def _read(text: str | None) -> object:
    """Parse JSON; return invalid JSON as the text itself."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


def _strings(value: object) -> Iterator[str]:
    """Yield the strings in JSON data, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)

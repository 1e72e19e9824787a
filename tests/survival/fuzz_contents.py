"""Fuzz of what is stored: it is refused whole, or comes back as it was given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final

from agent_memory import AgentMemory, Memory, MemoryNotFound, ValidationError

from . import fuzz_texts as made
from .fuzz_core import Trials, broken_unless, workplace
from .tally import Tally
from .truth import audit, state_of
from .verbs import NAME, opened

_REFUSALS: Final = (ValidationError, MemoryNotFound)
_MOST_MEMORIES: Final = 400
"""A store starts anew then: the time of a case must not grow with their number."""


def stored(cases: int, seed: str) -> Tally:
    """Store and change memories with fields of any sort."""
    trials = Trials("stored contents", seed)
    dice = trials.random
    while trials.tally.cases < cases:
        with workplace() as folder:
            with opened(folder / NAME, synchronous="NORMAL") as memory:
                memory.store("The first one", id="first")
                _store_until(trials, memory, dice, cases)
            state = state_of(folder / NAME)
            audit(folder / NAME, [state]).into(trials.tally, "fuzz, stored contents: at the end")
    return trials.tally


def _store_until(trials: Trials, memory: AgentMemory, dice: Random, cases: int) -> None:
    """Store until there are enough memories, or cases."""
    ids = ["first"]
    while trials.tally.cases < cases and len(ids) < _MOST_MEMORIES:
        before = _count(memory)
        sort = dice.random()
        if sort < 0.6:
            given = _fields(dice)
            found = trials.run(partial(_store, memory, given), given, allowed=_REFUSALS)
        elif sort < 0.75:
            items = _items(dice)
            found = trials.run(partial(_store_many, memory, items), [items], allowed=_REFUSALS)
        else:
            name, given = dice.choice(ids), _fields(dice, is_change=True)
            trials.run(partial(_update, memory, name, given), given, allowed=_REFUSALS)
            found = []
        ids += found or []
        wanted = before + len(set(found or []))
        _refuse_count(trials, _count(memory), wanted if found else before, bool(found))


def _refuse_count(trials: Trials, there: int, wanted: int, is_stored: bool) -> None:
    """Count it when a refusal stored something; a memory may have been there already."""
    if there > wanted or (not is_stored and there != wanted):
        trials.tally.half_written += 1
        trials.tally.note(f"fuzz, stored contents: {there} memories, not {wanted}")


def _count(memory: AgentMemory) -> int:
    return memory.count(filters={"archived": None})


def _store(memory: AgentMemory, given: dict[str, Any]) -> list[str]:
    name = memory.store(**given)
    _refuse_difference(memory, name, given)
    return [name]


def _store_many(memory: AgentMemory, items: Any) -> list[str]:
    names = memory.store_many(items, on_duplicate="keep")
    for name, given in zip(names, items, strict=True):
        _refuse_difference(memory, name, given)
    return names


def _update(memory: AgentMemory, name: str, given: dict[str, Any]) -> None:
    before = memory.get(name)
    try:
        after = memory.update(name, **given)
    except _REFUSALS:
        broken_unless(memory.get(name) == before, "was refused and changed", count="half_written")
        raise
    broken_unless(memory.get(name) == after, "is not what was returned", count="lost")
    _refuse_difference(memory, name, {k: v for k, v in given.items() if k != "if_version"})


# What must come back ----------------------------------------------------------------------------


def _refuse_difference(memory: AgentMemory, name: str, given: Mapping[str, Any]) -> None:
    """Compare what was given with what is there, field by field, as the documents say."""
    there = memory.get(name)
    broken_unless(there is not None, "is not there", count="lost")
    assert there is not None
    texts = there.model_dump_json()
    broken_unless("\\u0000" not in texts, "has a NUL, at which other programs cut it off")
    for field, value in given.items():
        if field in ("id", "on_duplicate") or value is None:
            continue
        told = _as_kept(field, value)
        kept = _as_told(there, field)
        broken_unless(kept == told, f"{field}: {kept!r:.200}, not {told!r:.200}", count="lost")


def _as_told(there: Memory, field: str) -> Any:
    if field == "session_id":
        return there.created_by_session
    if field == "metadata":
        return json.dumps(there.metadata, sort_keys=True)
    if field == "task_metadata":
        return None if there.task_metadata is None else there.task_metadata.status
    return getattr(there, field)


def _as_kept(field: str, value: Any) -> Any:
    """Return what becomes of a value that was not refused."""
    if isinstance(value, bytes | bytearray):
        value = value.decode()
    if field == "tags":
        return list(dict.fromkeys(tag.strip().lower() for tag in value if tag.strip()))
    if field == "timestamp":
        return _moment(value)
    if field == "metadata":
        return json.dumps(value, sort_keys=True)
    if field == "task_metadata":
        return value["status"]
    if field == "archived":
        return value in (1, "1", "true", "True", "on", "yes", "y", "t")
    return value


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    elif not isinstance(value, datetime):  # a day
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - naive is UTC
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# What is given --------------------------------------------------------------------------------


def _fields(dice: Random, *, is_change: bool = False) -> dict[str, Any]:
    """Return fields of a memory, each mostly good, now and then of any sort."""
    rest = [name for name in _FIELDS if name not in ("content", *_NOT_OF_ALL)]
    names = dice.sample(rest, k=dice.randint(0, 3))
    names += ["content"] if not is_change or dice.random() < 0.5 else []
    if dice.random() < 0.2:
        names.append(dice.choice(_ONLY_OF_CHANGES) if is_change else "id")
    bad = dice.choice(names) if names and dice.random() < 0.5 else None
    given = {name: made.value(dice) if name == bad else _FIELDS[name](dice) for name in names}
    if is_change:
        given.pop("session_id", None)
    elif isinstance(given, dict) and dice.random() < 0.9:
        given["on_duplicate"] = "keep"
    if dice.random() < 0.02:
        given[dice.choice(("seq", "agent_id", "unknown", "embedding"))] = made.value(dice)
    return {k: v for k, v in given.items() if k in _NAMES or is_change}


def _items(dice: Random) -> Any:
    if dice.random() < 0.1:
        return made.value(dice)
    items: list[Any] = []
    for _ in range(dice.randint(0, 4)):
        item: Any = _fields(dice)
        item.pop("on_duplicate", None)
        items.append(item if dice.random() < 0.95 else made.value(dice))
    return items


def _content(dice: Random) -> Any:
    sort = dice.random()
    if sort < 0.5:
        return made.clean_text(dice)
    if sort < 0.9:
        return made.text(dice)
    return dice.choice("xé漢😀") * dice.choice((9_999, 10_000, 10_001))


def _plain(dice: Random, depth: int = 0) -> Any:
    """Return data that JSON has."""
    sort = dice.random()
    if depth > 5 or sort < 0.6:
        choices: tuple[Callable[[], Any], ...] = (
            lambda: made.clean_text(dice),
            lambda: dice.randint(-(2**63), 2**63 - 1),
            lambda: dice.uniform(-1e300, 1e300),
            dice.random,
            lambda: dice.choice((True, False, None, "", 0.1, 1e-7, 2**63 - 1, -(2**63))),
        )
        return dice.choice(choices)()
    if sort < 0.8:
        return [_plain(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return {made.clean_text(dice)[:20]: _plain(dice, depth + 1) for _ in range(dice.randint(0, 3))}


def _nested(dice: Random) -> Any:
    found: Any = 1
    for _ in range(dice.choice((18, 19, 20, 21))):
        found = {"a": found}
    return found


_FIELDS: Final[dict[str, Callable[[Random], Any]]] = {
    "content": _content,
    "category": lambda dice: dice.choice(("note", "decision", "preference", "unknown")),
    "tags": lambda dice: [
        dice.choice((*made.WORDS, " A ", "a")) for _ in range(dice.choice((0, 2, 21)))
    ],
    "kind": lambda dice: dice.choice(("learning", "task", "core")),
    "importance": lambda dice: dice.choice(("low", "medium", "high")),
    "session_id": lambda dice: made.clean_text(dice)[:210],
    "user_id": lambda dice: made.clean_text(dice)[:210],
    "run_id": lambda dice: dice.choice(("run-1", "", " ", "x" * 200, "x" * 201)),
    "memory_type": lambda dice: dice.choice(("standard", "other")),
    "timestamp": made.moment,
    "task_metadata": lambda dice: {"status": dice.choice(("completed", "blocked", "odd"))},
    "metadata": lambda dice: {"k": _plain(dice)} if dice.random() < 0.9 else _nested(dice),
    "id": lambda dice: dice.choice(
        ("first", f"id-{dice.randrange(50)}", "x" * 128, "x" * 129, "../x", "a b", "a:b.c", "")
    ),
    "archived": lambda dice: dice.choice((True, False)),
    "if_version": lambda dice: dice.choice((1, 2, 3)),
}
_ONLY_OF_CHANGES: Final = ("archived", "if_version")
_NOT_OF_ALL: Final = ("id", *_ONLY_OF_CHANGES)
_NAMES: Final = {*_FIELDS, "on_duplicate"} - {*_ONLY_OF_CHANGES}

"""Fuzz of filters: they answer as a plain reading of them does, or raise ``ValidationError``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from agent_memory import AgentMemory, Memory, ValidationError

from . import fuzz_texts as made
from .fuzz_core import Trials, broken_unless, workplace
from .tally import Tally
from .truth import state_of
from .verbs import NAME, opened

_KEYS: Final = (
    "number", "word", "flag", "list", "inner", "inner.word", "inner.number", "dotted.key", "none",
    "a b", '"quoted"', "it's", "$", "$.number", "[0]", "数", "'; DROP TABLE memories; --", "AND ",
    "missing",
)  # fmt: skip
_VALUES: Final[tuple[Any, ...]] = (
    0, 1, -1, 2, 7, 0.5, 1.0, -0.0, 2**53, 2**63 - 1, "", "a", "A", "harbour", "naïve", "İ", "ß",
    "SS", "it's", "' OR ''='", "数据", "1", "true", "null", True, False, None,
)  # fmt: skip
_OPERATORS: Final = (
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains",
)  # fmt: skip
_ALLOWED: Final = (ValidationError,)


def wild(cases: int, seed: str) -> Tally:
    """Give filters of any shape: they are answered or refused, and the file stays as it is."""
    trials = Trials("filters of any shape", seed)
    dice = trials.random
    with workplace() as folder, opened(folder / NAME, synchronous="NORMAL") as memory:
        memory.store_many(_memories(dice))
        before = state_of(memory.path)
        for _ in range(cases):
            filters = _wild(dice)
            trials.run(partial(_asked, memory, dice, filters), [filters], allowed=_ALLOWED)
        _refuse_changes(trials, before == state_of(memory.path))
    return trials.tally


def compared(cases: int, seed: str) -> Tally:
    """Give filters that are valid, and compare what they find with a plain reading of them."""
    trials = Trials("filters compared", seed)
    dice = trials.random
    with workplace() as folder, opened(folder / NAME, synchronous="NORMAL") as memory:
        memory.store_many(_memories(dice))
        every = memory.list_recent(1000, filters={"archived": None})
        for _ in range(cases):
            filters = _valid(dice)
            searches = dice.random() < 0.2
            act = partial(_compare, memory, every, filters, searches)
            trials.run(act, filters, allowed=())
    return trials.tally


def _refuse_changes(trials: Trials, is_same: bool) -> None:
    if not is_same:
        trials.tally.mismatches += 1
        trials.tally.note("filters changed the file")


def _asked(memory: AgentMemory, dice: Random, filters: Any) -> None:
    sort = dice.random()
    if sort < 0.5:
        memory.list_recent(50, filters=filters)
    elif sort < 0.7:
        memory.count(filters=filters)
    else:
        memory.search("harbour naïve", filters=filters, count_accesses=False)


def _compare(
    memory: AgentMemory, every: list[Memory], filters: dict[str, Any], searches: bool
) -> None:
    wanted = {it.id for it in every if _holds(it, filters)}
    found = {it.id for it in memory.list_recent(1000, filters=filters)}
    broken_unless(found == wanted, f"found {sorted(found)}, not {sorted(wanted)}")
    broken_unless(memory.count(filters=filters) == len(wanted), "the count is another")
    if searches:
        hits = memory.search("harbour naïve fact", 100, filters=filters, count_accesses=False)
        told = {name for hit in hits for name in (hit.memory.id, *hit.repeats)}
        broken_unless(told <= wanted, f"a search found {sorted(told - wanted)} too")


# Memories, and filters for them -----------------------------------------------------------------


def _memories(dice: Random) -> list[dict[str, Any]]:
    return [
        {
            "id": f"fact-{number}",
            "content": f"fact {number} harbour naïve {dice.choice(_VALUES)}",
            "tags": [tag for tag in ("red", "grün", "a b", "it's") if dice.random() < 0.4],
            "category": dice.choice(("note", "decision", "preference")),
            "importance": dice.choice(("low", "medium", "high")),
            "user_id": dice.choice((None, "ann", "o'neil", "数")),
            "run_id": dice.choice((None, "run-1")),
            "timestamp": f"2026-01-{dice.randint(1, 28):02d}T00:00:00Z",
            "metadata": _metadata(dice),
        }
        for number in range(60)
    ]


def _metadata(dice: Random) -> dict[str, Any]:
    found: dict[str, Any] = {key: dice.choice(_VALUES) for key in _KEYS if dice.random() < 0.4}
    if dice.random() < 0.4:
        found["list"] = dice.sample(_VALUES, k=dice.randint(0, 4))
    if dice.random() < 0.5:
        found["inner"] = {"word": dice.choice(_VALUES), "number": [dice.choice(_VALUES)]}
    if dice.random() < 0.3:
        found["dotted"] = {"key": dice.choice(_VALUES)}
    return found


def _wild(dice: Random) -> Any:
    sort = dice.random()
    if sort < 0.1:
        return made.value(dice)
    if sort < 0.35:
        names = dice.choices(made.FILTER_NAMES, k=dice.randint(1, 3))
        return {name: made.value(dice) for name in names}
    return {"custom_filters": _wild_conditions(dice, 0)}


def _wild_conditions(dice: Random, depth: int) -> Any:
    if depth > dice.choice((2, 4, 15)) or dice.random() < 0.05:
        return made.value(dice)
    found: dict[Any, Any] = {}
    for _ in range(dice.choice((1, 1, 2, 3, 3, 120 if depth == 0 else 3))):
        sort = dice.random()
        if sort < 0.3:
            many = [_wild_conditions(dice, depth + 1) for _ in range(dice.randint(0, 3))]
            found[dice.choice(("AND", "OR", "and", "$or"))] = many
        elif sort < 0.4:
            found["NOT"] = _wild_conditions(dice, depth + 1)
        else:
            key = dice.choice(_KEYS) if dice.random() < 0.5 else made.key(dice)
            operator = dice.choice(_OPERATORS) if dice.random() < 0.8 else made.key(dice)
            operand = dice.choice(_VALUES) if dice.random() < 0.3 else made.value(dice)
            found[key] = {operator: operand} if dice.random() < 0.8 else operand
    return found


def _valid(dice: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, make in _FIELDS.items():
        if dice.random() < 0.15:
            found[name] = make(dice)
    if dice.random() < 0.8:
        found["custom_filters"] = _conditions(dice, 0)
    return found


def _conditions(dice: Random, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(dice.choice((0, 1, 1, 2))):
        sort = dice.random()
        if sort < 0.25 and depth < 4:
            found[dice.choice(("AND", "OR"))] = [
                _conditions(dice, depth + 1) for _ in range(dice.randint(0, 3))
            ]
        elif sort < 0.35 and depth < 4:
            found["NOT"] = _conditions(dice, depth + 1)
        else:
            found[dice.choice(_KEYS)] = _condition(dice)
    return found


def _condition(dice: Random) -> Any:
    operator = dice.choice(_OPERATORS)
    operand = dice.choice(_VALUES)
    if operator in ("gt", "gte", "lt", "lte"):
        operand = dice.choice([it for it in _VALUES if type(it) in (int, float, str)])
    if operator in ("in", "nin"):
        operand = dice.sample(_VALUES, k=dice.randint(0, 4))
    if operator in ("eq", "ne") and dice.random() < 0.2:
        operand = dice.choice(
            ([1, "a"], [], {"word": "a", "number": [1]}, {"number": [1], "word": "a"})
        )
    is_bare = operator == "eq" and not isinstance(operand, dict) and dice.random() < 0.5
    return operand if is_bare else {operator: operand}


_FIELDS: Final[dict[str, Callable[[Random], Any]]] = {
    "tags": lambda dice: dice.sample(["red", "GRÜN", "a b", "it's", "none"], k=dice.randint(1, 2)),
    "tags_match": lambda dice: dice.choice(("all", "any")),
    "category": lambda dice: dice.choice(("note", "decision", ["note", "preference"], [])),
    "importance": lambda dice: dice.choice(("low", "high")),
    "user_id": lambda dice: dice.choice(("ann", "o'neil", "数", "nobody")),
    "run_id": lambda dice: dice.choice(("run-1", "run-2")),
    "date_range": lambda dice: {"start": f"2026-01-{dice.randint(1, 20):02d}", "end": "2026-01-20"},
    "archived": lambda dice: dice.choice((None, False)),
    "min_access_count": lambda dice: dice.choice((0, 0, 1)),
    "ids": lambda dice: [f"fact-{n}" for n in dice.sample(range(99), k=dice.choice((0, 9, 90)))],
}


# A plain reading of filters -----------------------------------------------------------------


def _holds(memory: Memory, filters: Mapping[str, Any]) -> bool:
    """Return whether a memory is as the filters say, read as they are documented."""
    tags = [tag.casefold() for tag in filters.get("tags", ())]
    if tags:
        have = {tag.casefold() for tag in memory.tags}
        together = any if filters.get("tags_match") == "any" else all
        if not together(tag in have for tag in tags):
            return False
    for name in ("importance", "user_id", "run_id"):
        if name in filters and getattr(memory, name) != filters[name]:
            return False
    category = filters.get("category", memory.category)
    names = [category] if isinstance(category, str) else category
    if memory.category.casefold() not in {name.casefold() for name in names}:
        return False
    span = filters.get("date_range")
    day = memory.timestamp.date().isoformat()
    if span and not span["start"] <= day <= span["end"]:
        return False
    if memory.id not in filters.get("ids", [memory.id]):
        return False
    if memory.access_count < filters.get("min_access_count", 0):
        return False
    return _meets(memory.metadata, filters.get("custom_filters", {}))


def _meets(metadata: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    return all(_meets_one(metadata, key, value) for key, value in conditions.items())


def _meets_one(metadata: Mapping[str, Any], key: str, value: Any) -> bool:
    if key == "AND":
        return all(_meets(metadata, one) for one in value)
    if key == "OR":
        return any(_meets(metadata, one) for one in value)
    if key == "NOT":
        return not _meets(metadata, value)
    wanted = value if isinstance(value, dict) else {"eq": value}
    return all(_compares(metadata, key, name, operand) for name, operand in wanted.items())


def _compares(metadata: Mapping[str, Any], key: str, operator: str, operand: Any) -> bool:
    if operator in ("ne", "nin"):
        return not _compares(metadata, key, {"ne": "eq", "nin": "in"}[operator], operand)
    return any(_TESTS[operator](there, operand) for there in _values_at(metadata, key))


def _values_at(metadata: Mapping[str, Any], key: str) -> list[Any]:
    found = [metadata[key]] if key in metadata else []
    if "." in key:
        here: Any = metadata
        for part in key.split("."):
            if not isinstance(here, dict) or part not in here:
                return found
            here = here[part]
        found.append(here)
    return found


def _sort(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return repr(value)
    return "number" if isinstance(value, int | float) else type(value).__name__


def _equal(there: Any, operand: Any) -> bool:
    if isinstance(there, list | dict) or isinstance(operand, list | dict):
        return json.dumps(there, sort_keys=True) == json.dumps(operand, sort_keys=True)
    return _sort(there) == _sort(operand) and there == operand


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda there, operand: _sort(there) == _sort(operand) and test(there, operand)


def _contains(there: Any, operand: Any) -> bool:
    if isinstance(there, str):
        is_text = operand is not None and not isinstance(operand, bool)
        return is_text and str(operand) in there
    return isinstance(there, list) and any(_equal(one, operand) for one in there)


def _contains_any_case(there: Any, operand: Any) -> bool:
    if not isinstance(operand, str):
        return _contains(there, operand)
    if isinstance(there, str):
        return operand.casefold() in there.casefold()
    folded = (
        [one.casefold() for one in there if isinstance(one, str)] if isinstance(there, list) else []
    )
    return operand.casefold() in folded


_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": _equal,
    "in": lambda there, operand: any(_equal(there, one) for one in operand),
    "gt": _ordered(lambda there, operand: there > operand),
    "gte": _ordered(lambda there, operand: there >= operand),
    "lt": _ordered(lambda there, operand: there < operand),
    "lte": _ordered(lambda there, operand: there <= operand),
    "contains": _contains,
    "icontains": _contains_any_case,
}

"""Fuzz of what reads: any text may be asked for, and any argument is answered or refused."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from agent_memory import (
    AgentMemory,
    MemoryNotFound,
    SearchResults,
    StorageUnavailable,
    ValidationError,
)

from . import fuzz_texts as made
from .fuzz_core import Trials, broken_unless, workplace
from .tally import Tally
from .truth import audit, state_of
from .verbs import AGENT, Words, sentences

_OPENED: Final[dict[str, Any]] = {"embedder": Words(), "synchronous": "NORMAL"}
_REFUSALS: Final = (ValidationError, MemoryNotFound, StorageUnavailable)
"""What an argument may be refused with; an agent that there is not is no available storage."""


def search_texts(cases: int, seed: str, *, by_meaning: bool) -> Tally:
    """Ask for texts: none may raise, and nothing but counts may change."""
    trials = Trials("search by meaning" if by_meaning else "search", seed)
    dice = trials.random
    with _store(dice, by_meaning=by_meaning) as (memory, known):
        for _ in range(cases):
            query = made.text(dice)
            limit = dice.choice((None, None, None, 1, 5, 20, 100))

            def ask(query: str = query, limit: int | None = limit) -> None:
                found = memory.search(
                    query, limit, explain=dice.random() < 0.3, count_accesses=dice.random() < 0.5
                )
                _refuse_wrong(found, limit or 5, known)

            trials.run(ask, query, allowed=())
        _refuse_changes(trials, memory)
    return trials.tally


def arguments(cases: int, seed: str) -> Tally:
    """Give wrong values to the verbs that read: they answer, or raise ``ValidationError``."""
    trials = Trials("arguments of searches", seed)
    dice = trials.random
    with _store(dice, by_meaning=dice.random() < 0.5) as (memory, known):
        for _ in range(cases):
            name = dice.choices(tuple(_VERBS), weights=[it[0] for it in _VERBS.values()])[0]
            given = _VERBS[name][1](dice)

            def call(name: str = name, given: dict[str, Any] = given) -> None:
                found = getattr(memory, name)(**given)
                if isinstance(found, SearchResults):
                    _refuse_wrong(found, 100, known)

            trials.run(call, lambda n=name, g=given: f"{n}(**{g!r})", allowed=_REFUSALS)
        _refuse_changes(trials, memory)
    return trials.tally


@contextlib.contextmanager
def _store(dice: Random, *, by_meaning: bool) -> Iterator[tuple[AgentMemory, frozenset[str]]]:
    """Give the body a store of memories in many scripts, and the ids of them all."""
    with workplace() as root, AgentMemory(AGENT, root=root, **_OPENED) as memory:
        memory.store_many(sentences(40))
        odd = ({"content": made.clean_text(dice), "tags": [dice.choice("abcd")]} for _ in range(30))
        memory.store_many(odd, on_duplicate="keep")
        memory.store("x" * 10_000)
        memory.archive("fact-7")
        if by_meaning:
            memory.migrate()
        known = {it.id for it in memory.list_recent(1000, filters={"archived": None})}
        yield memory, frozenset(known)


def _refuse_wrong(found: SearchResults, limit: int, known: frozenset[str]) -> None:
    broken_unless(isinstance(found, SearchResults), f"is {type(found)}")
    broken_unless(len(found) <= limit, f"{len(found)} hits, of {limit} at most")
    ids = [hit.memory.id for hit in found]
    broken_unless(len(ids) == len(set(ids)) and known.issuperset(ids), f"hits are {ids}")
    broken_unless(all(math.isfinite(hit.relevance_score) for hit in found), "scores are no numbers")


def _refuse_changes(trials: Trials, memory: AgentMemory) -> None:
    """Count it when searches changed a memory, or left a file that is not sound."""
    path, tally = memory.path, trials.tally
    there = {it.id: it.content for it in memory.list_recent(1000, filters={"archived": None})}
    memory.close()
    state = state_of(path)
    contents = {row[0]: row[1] for row in state["memories"]}
    if contents != there or any(row[1] != "ADD" for row in state["history"][:-1]):
        changed = [row for row in state["history"] if row[1] != "ADD"]
        if len(changed) > 1:  # one memory was archived
            tally.mismatches += 1
            tally.note(f"searches changed {changed[:3]}")
    audit(path, [state]).into(tally, f"fuzz, {next(iter(tally.details))}: at the end")


def _search(dice: Random) -> dict[str, Any]:
    given: dict[str, Any] = {"query": made.text(dice)[:300]}
    for _ in range(dice.choice((1, 1, 2, 3))):
        name = dice.choice(tuple(_SEARCH))
        given[name] = _SEARCH[name](dice) if dice.random() < 0.7 else made.value(dice)
    if dice.random() < 0.03:
        given["as_of"] = made.moment(dice)
    if dice.random() < 0.05:
        given["query"] = made.value(dice)
    return given


def _words(dice: Random) -> Any:
    return [dice.choice(made.WORDS) for _ in range(dice.randint(0, 3))]


_SEARCH: Final[dict[str, Callable[[Random], Any]]] = {
    "limit": made.number,
    "since": made.moment,
    "until": made.moment,
    "now": made.moment,
    "category": lambda dice: dice.choice(
        ("note", ["note", "decision"], made.text(dice), _words(dice))
    ),
    "tags": _words,
    "tags_match": lambda dice: dice.choice(("all", "any", "none", made.text(dice))),
    "kind": lambda dice: dice.choice(("learning", "task", "core", made.text(dice))),
    "importance": lambda dice: dice.choice(("high", "low", made.text(dice))),
    "session_id": made.text,
    "user_id": made.text,
    "run_id": made.text,
    "similarity_threshold": made.number,
    "filters": lambda dice: {dice.choice(made.FILTER_NAMES): made.value(dice)},
    "explain": made.value,
    "count_accesses": lambda dice: dice.choice((True, False)),
    "shared": _words,
}

_VERBS: Final[dict[str, tuple[int, Callable[[Random], dict[str, Any]]]]] = {
    "search": (60, _search),
    "get": (8, lambda dice: {"memory_id": made.value(dice)} | _maybe(dice, "as_of", made.moment)),
    "history": (8, lambda dice: {"memory_id": made.value(dice), "limit": made.number(dice)}),
    "list_recent": (
        8,
        lambda dice: (
            {"limit": made.number(dice), "offset": made.number(dice)}
            | _maybe(dice, "filters", made.value)
        ),
    ),
    "count": (4, lambda dice: {"filters": made.value(dice)}),
    "context": (
        4,
        lambda dice: {"token_budget": made.number(dice)} | _maybe(dice, "config", made.value),
    ),
    "duplicates": (
        8,
        lambda dice: {"content": made.value(dice)} | _maybe(dice, "user_id", made.value),
    ),
}


def _maybe(dice: Random, name: str, make: Callable[[Random], Any]) -> dict[str, Any]:
    return {name: make(dice)} if dice.random() < 0.3 else {}

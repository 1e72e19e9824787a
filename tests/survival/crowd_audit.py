"""After a round: the file against all journals, read without the library."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import apsw

from agent_memory import AgentMemory

from .crowd_journal import Account, Told
from .crowd_texts import COUNTER, DUSTY, FIELDS
from .truth import Verdict, disagreements

_ROWS: Final = """SELECT m.id, m.content, m.tags, m.importance, m.archived, m.version,
(SELECT group_concat(substr(h.event, 1, 1), '' ORDER BY h.change_id) FROM history AS h
 WHERE h.memory_id = m.id), m.access_count FROM memories AS m"""
_GONE: Final = """SELECT memory_id, group_concat(substr(event, 1, 1), '' ORDER BY change_id)
FROM history WHERE memory_id NOT IN (SELECT id FROM memories) GROUP BY memory_id"""


@dataclass
class Found:
    """What is in the file: memories by id, and how often each was accessed; the shared rows."""

    memories: dict[str, Told]
    accesses: dict[str, int]
    shared: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    rejected: set[str]


def found_in(path: Path) -> Found:
    """Read a file that nobody has open."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        memories, accesses = {}, {}
        rows: list[Any] = connection.execute(_ROWS).fetchall()
        for name, content, tags, importance, archived, version, events, count in rows:
            told = (content, tuple(json.loads(tags)), importance, bool(archived), version)
            memories[name] = Told(*told, events or "")
            accesses[name] = count
        gone: list[Any] = connection.execute(_GONE).fetchall()
        memories |= {name: Told(None, events=events) for name, events in gone}
        columns = "content, category, tags, kind, importance, memory_type, metadata, user_id"
        shared = {}
        for name in (COUNTER, FIELDS):
            row = connection.execute(f"SELECT {columns} FROM memories WHERE id = ?", (name,)).get
            shared[name] = dict(zip(columns.split(", "), row or (), strict=False))
        settings = json.loads(str(connection.execute("SELECT config FROM agent").get))
        hashes: list[Any] = connection.execute("SELECT words_hash FROM rejections").fetchall()
        return Found(memories, accesses, shared, settings, {it.hex() for (it,) in hashes})
    finally:
        connection.close()


def audited(path: Path, accounts: Mapping[str, Account], *, embedder: Any = None) -> Verdict:
    """Open the file with the library, check it, and compare it with what all were told."""
    with AgentMemory.open(path, create=False, embedder=embedder) as memory:
        memory.embed()
        wrong = [f"check: {problem.detail}" for problem in memory.check().problems]
        waiting = memory.info().pending_embeddings
    if waiting:
        wrong.append(f"{waiting} memories wait for vectors after all were embedded")
    wrong += disagreements(path)
    found = found_in(path)
    lost, half = _compared(found, accounts)
    expected = {name for account in accounts.values() for name in _memories(account.done)}
    known = expected | {name for it in accounts.values() for name in _memories(it.under_way)}
    more = [
        f"{name}: nobody stored it"
        for name in found.memories.keys() - known
        if not name.startswith(("shared", DUSTY))
    ]
    lost += _lost_of_shared(found, accounts) + _lost_accesses(found, accounts)
    wrong += _wrong_dusty(found, accounts)
    return Verdict(len(expected), tuple(lost), tuple(half + more), tuple(wrong))


def _memories(told: Mapping[str, Any]) -> dict[str, Told]:
    return {
        name: Told(it[0], tuple(it[1]), *it[2:]) for name, it in told.items() if ":" not in name
    }


def _compared(found: Found, accounts: Mapping[str, Account]) -> tuple[list[str], list[str]]:
    """Return the memories that are not as they were left; and verbs that were half done."""
    lost, half = [], []
    for account in accounts.values():
        before, under_way = _memories(account.done), _memories(account.under_way)
        for name, told in before.items():
            there = found.memories.get(name, Told(None, events=""))
            if there != told and there != under_way.get(name, told):
                lost.append(f"{name} is {there!r:.200}, not {told!r:.200}")
        missing = Told(None, events="")
        after = [found.memories.get(name, missing) == told for name, told in under_way.items()]
        if any(after) and not all(after):
            half.append(f"half of {sorted(under_way)}")
    return lost, half


def _lost_of_shared(found: Found, accounts: Mapping[str, Account]) -> list[str]:
    """Return what somebody wrote into what all share, and is not there."""
    lost = []
    counted, most = _sums(accounts.values(), "counter:")
    number = json.loads(found.shared[COUNTER]["metadata"])["number"]
    if not counted <= number <= most:
        lost.append(f"the counter is {number}, after {counted} increments")
    changes, most = _sums(accounts.values(), "fields:")
    version = found.memories[FIELDS].version
    if not 1 + changes <= version <= 1 + most:
        lost.append(f"the shared memory is at version {version} after {changes} changes")
    for account in accounts.values():
        for key, value in account.done.items():
            allowed = [value, account.under_way.get(key, value)]
            kind, _, name = key.partition(":")
            there = _shared_value(found, kind, name)
            if kind in ("field", "setting", "rejected") and there not in allowed:
                lost.append(f"{key} is {there!r}, not {value!r}")
    return lost


def _shared_value(found: Found, kind: str, name: str) -> Any:
    if kind == "field":
        value = found.shared[FIELDS][name]
        return json.loads(value) if name in ("tags", "metadata") else value
    if kind == "rejected":
        return sha256(name.encode()).hexdigest() in found.rejected
    return found.settings.get(name)


def _sums(accounts: Iterable[Account], prefix: str) -> tuple[int, int]:
    """Return the sum of the numbers that were acknowledged, and with those under way."""
    done = most = 0
    for account in accounts:
        for key in {*account.done, *account.under_way}:
            if key.startswith(prefix):
                done += account.done.get(key, 0)
                most += account.under_way.get(key, account.done.get(key, 0))
    return done, most


def _lost_accesses(found: Found, accounts: Mapping[str, Account]) -> list[str]:
    """Return the memories that were found more often than is counted, or less.

    What a killed process counted and had not written yet is gone: that is not promised.
    """
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()
    changed: set[str] = set()
    for account in accounts.values():
        most.update(account.counted)
        changed |= account.changed
        if account.report is not None:
            least.update(account.counted)
    return [
        f"{name} has {there} accesses, of {least[name]} to {most[name]}"
        for name, there in found.accesses.items()
        if name not in changed and not least[name] <= there <= most[name]
    ]


def _wrong_dusty(found: Found, accounts: Mapping[str, Account]) -> list[str]:
    """Return what a tidying should have archived, or archived twice."""
    was_tidied = any(
        key.startswith("tidied:") for account in accounts.values() for key in account.done
    )
    may_be = any(
        key.startswith("tidied:") for account in accounts.values() for key in account.under_way
    )
    found_by_meaning = {name for account in accounts.values() for name in account.counted}
    allowed = [(True, 2, "AU")] if was_tidied else [(False, 1, "A")]
    allowed += [(True, 2, "AU")] if may_be else []
    return [
        f"{name} is {told}"
        for name, told in found.memories.items()
        if name.startswith(DUSTY)
        and name not in found_by_meaning  # and so in use
        and (told.archived, told.version, told.events) not in allowed
    ]

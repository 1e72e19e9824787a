"""What a file holds, read without the library, and whether that is what it must hold.

A state is all that the library promises to keep. What it may make anew (indexes, tags, vectors) is
compared with that instead: by the library's own ``check``, and by statements of our own, since a
``check`` that sees nothing would pass everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw
import sqlite_vec  # type: ignore[import-untyped]

from agent_memory import AgentMemory, AgentMemoryError

from .tally import Tally

State = Mapping[str, tuple[tuple[Any, ...], ...]]
"""The rows of each part of a file."""

_PARTS: Final = {
    "memories": "SELECT id, content, category, tags, kind, importance, memory_type, timestamp,"
    " created_by_session, user_id, run_id, archived, task_metadata, metadata, version"
    " FROM memories ORDER BY id",
    "history": "SELECT memory_id, event, CASE WHEN changed_at < '2026-01-31' THEN changed_at"
    " ELSE 'by the clock on the wall' END, old_values, new_values FROM history ORDER BY change_id",
    "scratchpad": "SELECT m.id FROM scratchpad JOIN memories AS m USING (seq) ORDER BY m.id",
    "rejections": "SELECT words_hash, reason FROM rejections ORDER BY words_hash",
    "accesses": "SELECT id, access_count FROM memories ORDER BY id",
    "settings": "SELECT agent_id, storage_backend, config FROM agent",
    "operations": "SELECT verb, first_change, last_change FROM operations ORDER BY 2, 3, 1",
}

_DISAGREEMENTS: Final = {
    "tags": "SELECT count(*) FROM (SELECT DISTINCT m.seq, lower(trim(j.value)) FROM memories AS m,"
    " json_each(m.tags) AS j WHERE trim(j.value) <> '' EXCEPT SELECT seq, tag FROM memory_tags)",
    "foreign tags": "SELECT count(*) FROM memory_tags AS t WHERE NOT EXISTS (SELECT 1 FROM"
    " memories AS m, json_each(m.tags) AS j WHERE m.seq = t.seq AND lower(trim(j.value)) = t.tag)",
    "orphaned scratchpad": "SELECT count(*) FROM scratchpad WHERE seq NOT IN"
    " (SELECT seq FROM memories)",
    "orphaned vectors": "SELECT count(*) FROM embeddings WHERE seq NOT IN"
    " (SELECT seq FROM memories)"
    " AND seq NOT IN (SELECT seq FROM embedding_queue)",
}


def state_of(path: Path) -> State:
    """Read the state of a file that nobody has open."""
    connection = _opened(path)
    try:
        return {name: tuple(connection.execute(sql)) for name, sql in _PARTS.items()}
    finally:
        connection.close()


def disagreements(path: Path) -> list[str]:
    """Return where an index of a file disagrees with its memories. Nobody must have it open."""
    connection = _opened(path)
    try:
        wrong = [
            f"{number} {name}"
            for name, sql in _DISAGREEMENTS.items()
            if (number := connection.execute(sql).get)
        ]
        try:
            connection.execute(
                "INSERT INTO memory_index (memory_index, rank) VALUES ('integrity-check', 1)"
            )
        except apsw.Error as error:
            wrong.append(f"keyword index: {error}")
        wrong += [
            f"integrity_check: {text}"
            for (text,) in connection.execute("PRAGMA integrity_check")
            if text != "ok"
        ]
        return [*wrong, *_wrong_vectors(connection)]
    finally:
        connection.close()


def _wrong_vectors(connection: apsw.Connection) -> list[str]:
    """Compare vectors with the texts they are of, and the vector index with them.

    What is in the queue is known to be behind: the library looks at it at its next use.
    """
    wrong = []
    queued = {row_id for (row_id,) in connection.execute("SELECT seq FROM embedding_queue")}
    stale = [
        row_id
        for row_id, content, text_hash in connection.execute(
            "SELECT seq, content, text_hash FROM embeddings JOIN memories USING (seq)"
        )
        if hashlib.sha256(content.encode()).digest()[:16] != text_hash and row_id not in queued
    ]
    if stale:
        wrong.append(f"vectors of other texts: {stale}")
    models = "SELECT model_id FROM embedding_models WHERE is_indexed = 1"
    for (model_id,) in connection.execute(models).fetchall():
        rows = (
            "SELECT seq FROM embeddings JOIN memories USING (seq)"
            " WHERE model_id = ? AND NOT archived"
        )
        there = {row_id for (row_id,) in connection.execute(rows, (model_id,))}
        index = connection.execute(f"SELECT rowid FROM embedding_index_{model_id}")
        differing = (there ^ {row_id for (row_id,) in index}) - queued
        if differing:
            wrong.append(f"vector index {model_id}: {sorted(differing)}")
    return wrong


def _opened(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
    connection.load_extension(sqlite_vec.loadable_path())
    return connection


@dataclass(frozen=True)
class Verdict:
    """What an audit found."""

    acknowledged: int
    lost: tuple[str, ...] = ()
    half_written: tuple[str, ...] = ()
    mismatches: tuple[str, ...] = ()
    state: State = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        """Return whether nothing is wrong."""
        return not (self.lost or self.half_written or self.mismatches)

    def into(self, tally: Tally, case: str) -> None:
        """Count what was found; ``case`` says how to see it again."""
        tally.acknowledged += self.acknowledged
        tally.lost += len(self.lost)
        tally.half_written += len(self.half_written)
        tally.mismatches += len(self.mismatches)
        if not self.is_sound:
            found = {"lost": self.lost, "half": self.half_written, "wrong": self.mismatches}
            tally.note(f"{case}: " + "; ".join(f"{k} {v[:3]}" for k, v in found.items() if v))


def problems_of(memory: AgentMemory) -> list[str]:
    """Return what ``check`` finds wrong in a file.

    What a migration that was cut off left beside it is named too, as it must be, and is no damage.
    """
    problems = memory.check().problems
    return [problem.detail for problem in problems if problem.kind != "leftover"]


def audit(path: Path, allowed: Sequence[State], **options: Any) -> Verdict:
    """Open a file with the library, check it, and compare it with the states that it may be in.

    ``allowed`` are whole states: that before a verb, that after it. A memory that is the same in
    all of them was acknowledged, and so is one that is in all of them in one form or another: it is
    lost if it is gone or in a form of none of them. ``options`` go to ``AgentMemory.open``.
    """
    promised = _promised(allowed)
    try:
        with AgentMemory.open(path, create=False, **options) as memory:
            problems = [f"check: {detail}" for detail in problems_of(memory)]
        state = state_of(path)
        wrong = [*problems, *disagreements(path)]
    except (AgentMemoryError, apsw.Error) as error:
        problem = f"cannot be opened: {type(error).__name__}: {error}"
        return Verdict(len(promised), lost=tuple(promised), mismatches=(problem,))
    there = {row[0]: row for row in state["memories"]}
    lost = [name for name, forms in promised.items() if there.get(name) not in forms]
    half = [] if lost or state in allowed else [_difference(state, allowed)]
    return Verdict(len(promised), tuple(lost), tuple(half), tuple(wrong), state)


def _promised(allowed: Sequence[State]) -> dict[str, set[tuple[Any, ...]]]:
    """Return the memories that are in all of the states, each with the forms that it has there."""
    forms: dict[str, set[tuple[Any, ...]]] = {}
    for state in allowed:
        for row in state["memories"]:
            forms.setdefault(row[0], set()).add(row)
    everywhere = [{row[0] for row in state["memories"]} for state in allowed]
    common = set.intersection(*everywhere) if everywhere else set()
    return {name: forms[name] for name in sorted(common)}


def _difference(state: State, allowed: Sequence[State]) -> str:
    """Say in which parts a state differs from the nearest that it may be."""
    differing = [[part for part, rows in state.items() if rows != other[part]] for other in allowed]
    nearest = min(differing, key=len, default=[])
    return f"neither before nor after: {', '.join(nearest)}"

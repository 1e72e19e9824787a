"""What a file holds, read without the library, and whether that is what it must hold.

A state is all that the library promises to keep. What it may make anew (indexes, tags, vectors) is
compared with that instead: by the library's own ``check``, and by statements of our own, since a
``check`` that sees nothing would pass everything.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import apsw
import sqlite_vec  # type: ignore[import-untyped]

from agent_memory import AgentMemory, AgentMemoryError
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.records import QueryVector

from .tally import Tally
from .verbs import opened

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

CODES: Final = {
    "vec0": ("embedding_index", "rowid"),
    "table": ("embedding_codes", "seq"),
}
"""The tables of codes, of either kind, without the number of the model, and their rows' ids."""

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
    models = "SELECT model_id, is_indexed FROM embedding_models"
    models_there: list[Any] = connection.execute(models).fetchall()
    for model_id, is_indexed in models_there:
        rows = (
            "SELECT seq FROM embeddings JOIN memories USING (seq)"
            " WHERE model_id = ? AND NOT archived"
        )
        there = {row_id for (row_id,) in connection.execute(rows, (model_id,))}
        index = _Index(connection, model_id)
        if is_indexed or index.build:
            wrong += index.differing(there, queued, is_indexed=bool(is_indexed))
    return wrong


class _Index:
    """The vector index of a model: its cells, and how far which table is that is being built."""

    def __init__(self, connection: apsw.Connection, model_id: int) -> None:
        self.name = f"vector index {model_id}"
        cells = f"FROM embedding_cells_{model_id} WHERE cell"
        exists = "SELECT 1 FROM sqlite_schema WHERE name = ?"
        self.cells: set[int] = set()
        self.build: dict[str, Any] = {}
        if connection.execute(exists, (f"embedding_cells_{model_id}",)).get:
            self.cells = {cell for (cell,) in connection.execute(f"SELECT cell {cells} >= 0")}
            started = f"SELECT CAST(centre AS TEXT), made_of {cells} = -1"
            self.build = {str(kind): last for kind, last in connection.execute(started)}
        self.codes: dict[str, dict[int, int]] = {
            kind: dict(connection.execute(f"SELECT {row_id}, cell FROM {table}_{model_id}"))
            for kind, (table, row_id) in CODES.items()
            if connection.execute(exists, (f"{table}_{model_id}",)).get
        }

    def differing(self, there: set[int], queued: set[int], *, is_indexed: bool) -> list[str]:
        """Compare each table with the memories ``there``, one being built up to where it is."""
        wrong = []
        if is_indexed and not self.codes.keys() - self.build.keys():
            wrong.append(f"{self.name}: no table")
        for kind, cell_of in self.codes.items():
            if not is_indexed and kind not in self.build:
                continue  # it is made anew
            due = {row_id for row_id in there if row_id <= self.build.get(kind, row_id)}
            rows = ((due - cell_of.keys()) | (cell_of.keys() - there)) - queued
            if rows:
                wrong.append(f"{self.name}, {kind}: {sorted(rows)}")
            if astray := [row_id for row_id, cell in cell_of.items() if cell not in self.cells]:
                wrong.append(f"{self.name}, {kind}: in no cell {sorted(astray)}")
        return wrong


def is_sorted(path: Path) -> bool:
    """Return whether the vectors of a file are in several cells. Nobody must have it open."""
    connection = _opened(path)
    try:
        models: list[Any] = connection.execute("SELECT model_id FROM embedding_models").fetchall()
        return any(len(_Index(connection, model_id).cells) > 1 for (model_id,) in models)
    finally:
        connection.close()


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


def unfound(path: Path) -> list[str]:
    """Finish what the vectors of a file have under way, in a copy, and return what is wrong then.

    Each memory must have a vector, one code in a cell that stays, and be found by that vector.
    Nobody must have the file open.
    """
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for suffix in ("", "-wal"):
            if (part := path.with_name(path.name + suffix)).exists():
                shutil.copy(part, copy.with_name(part.name))
        with opened(copy) as memory:
            model = memory._store.vectors.state().active
        if model is None:
            return []
        with opened(copy, dimensions=model.dimensions) as memory:
            wrong = _unfound(memory, model)
        return [*wrong, *disagreements(copy)]


def _unfound(memory: AgentMemory, model: EmbeddingModel) -> list[str]:
    memory.embed()
    vectors = memory._store.vectors
    wrong = [f"check, when all is done: {detail}" for detail in problems_of(memory)]
    if vectors.state().is_behind:
        wrong.append("the vectors are behind when all is done")
    engine = vectors._engine
    with engine.read():
        rows = engine.embeddings.sample(model.model_id, -1)
        if len(rows) != memory.count():
            wrong.append(f"{len(rows)} vectors of {memory.count()} memories")
        for row_id, memory_id in rows:
            vector = engine.embeddings.get(model, row_id)
            assert vector is not None
            query = QueryVector(model, vector.data)
            if row_id not in engine.vectors.nearest(query, NOT_ARCHIVED).cosines:
                wrong.append(f"a search with the vector of memory {memory_id} does not find it")
    return wrong


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

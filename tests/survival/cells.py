"""Stores whose vectors are in cells, in either kind of table, and the verbs that are tried on them.

Cells are made of 50,000 vectors and more. Here all sizes are small, so that a store of some tens
goes through what one of a million does, a few codes at a time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar
from unittest.mock import patch

from agent_memory.services import vectors
from agent_memory.storage import code_search
from agent_memory.storage.sqlite.connection import Database

from .truth import CODES
from .verbs import NAME, Verb, keyword_only, opened, sentences, simple_verbs, standard

Kind = Literal["vec0", "table"]
Act = Callable[[Any, Path], object]
Prepare = Callable[[Path, Kind], None]
KINDS: Final[tuple[Kind, ...]] = ("vec0", "table")
_SIZES: Final = (
    (code_search, "SORTED_FROM", 16),
    (code_search, "CELL_SIZE", 4),
    (code_search, "CELLS_ASKED", 1),
    (code_search, "EXACT_UP_TO", 0),
    (vectors, "_SORTED_AT_ONCE", 8),
    (vectors, "_BUILT_AT_ONCE", 10),
)
_FEW: Final = 6
"""Verbs in cells that are tried where there are few cases."""
_CASES_EACH: Final = 10


@contextmanager
def small_cells(*, are_small: bool = True) -> Iterator[None]:
    """Make cells small in this process, and in those that are forked from it."""
    with ExitStack() as stack:
        for module, name, size in _SIZES if are_small else ():
            stack.enter_context(patch.object(module, name, size))
        yield


def are_small() -> bool:
    """Return whether cells are small in this process."""
    return all(getattr(module, name) == size for module, name, size in _SIZES)


class InCells(Protocol):
    """A verb or a scenario."""

    @property
    def in_cells(self) -> bool:
        """Return whether it is tried with small cells."""


Tried = TypeVar("Tried", bound=InCells)


def some_of(things: Sequence[Tried], cases: int, seed: object) -> list[Tried]:
    """Leave out most of those in cells where there are few cases: to prepare each takes a while."""
    sorted_ones = [thing for thing in things if thing.in_cells]
    if cases < _CASES_EACH * len(sorted_ones):
        sorted_ones = random.Random(f"{seed}").sample(sorted_ones, _FEW)
    return [thing for thing in things if not thing.in_cells] + sorted_ones


# The files ------------------------------------------------------------------------------------


def in_cells(folder: Path, kind: Kind) -> None:
    """Make the standard store with some memories more, whose vectors are sorted."""
    standard(folder)
    with opened(folder / NAME) as memory:
        memory.configure(vector_index=kind)
        memory.store_many(sentences(12, start=300))
        memory.embed()


def _unembedded(folder: Path, kind: Kind) -> None:
    """Make a store without vectors, of which cells will be made."""
    keyword_only(folder)
    with opened(folder / NAME) as memory:
        memory.configure(vector_index=kind)
        memory.store_many(sentences(20, start=300))


def _nearly_doubled(folder: Path, kind: Kind) -> None:
    """Make a store in which one vector more makes new cells, into which codes move by and by."""
    in_cells(folder, kind)
    missing = _number(folder, "SELECT 2 * max(made_of) - 1 FROM embedding_cells_1 WHERE cell > 0")
    missing -= _number(folder, "SELECT count(*) FROM embeddings")
    with opened(folder / NAME) as memory:
        memory.store_many(sentences(missing, start=400))
        assert not memory._store.vectors.state().is_unsorted


def half_sorted(folder: Path, kind: Kind) -> None:
    """Make a store of which some codes are still in the cells of before."""
    _nearly_doubled(folder, kind)
    with opened(folder / NAME) as memory:
        memory.store("The last fact of many is about the walnut", id="last")
        assert memory._store.vectors.state().is_unsorted


def half_moved(folder: Path, kind: Kind) -> None:
    """Make a store whose index is being built in a table of the other kind."""
    in_cells(folder, other(kind))
    with opened(folder / NAME) as memory:
        memory._store.change_config(lambda it: it.model_copy(update={"vector_index": kind}))
        engine = memory._store.vectors._engine
        with engine.write():
            (model,) = engine.embeddings.models()
            assert engine.vectors.build(model, 10)


def _damaged(folder: Path, kind: Kind) -> None:
    """Make a store of whose codes one is gone, and one is in no cell."""
    in_cells(folder, kind)
    name, row = CODES[kind]
    table = f"{name}_1"
    database = Database(folder / NAME)
    assert database.load_vectors()
    with database.write():
        database.run(f"DELETE FROM {table} WHERE {row} = 5")
        code = database.value(f"SELECT code FROM {table} WHERE {row} = 6")
        database.run(f"DELETE FROM {table} WHERE {row} = 6")
        value = "vec_bit(?)" if kind == "vec0" else "?"
        database.run(f"INSERT INTO {table} ({row}, cell, code) VALUES (6, 999, {value})", (code,))
    database.close()


def _number(folder: Path, sql: str) -> int:
    database = Database(folder / NAME)
    try:
        return int(database.value(sql))
    finally:
        database.close()


def other(kind: Kind) -> Kind:
    """Return the other kind of table."""
    return "vec0" if kind == "table" else "table"


# The verbs ------------------------------------------------------------------------------------

_SIMPLE: Final = (
    "store", "store_many", "update", "delete", "delete_many", "archive", "import",
    "import replacing", "merge", "undo", "erase", "rollback",
)  # fmt: skip


def verbs_in_cells() -> list[Verb]:
    """Return verbs that change an index in cells, and those that make, fill or move them."""
    return [verb for kind in KINDS for verb in _verbs_of(kind)]


def _verbs_of(kind: Kind) -> list[Verb]:
    def verb(name: str, act: Act, prepare: Prepare = in_cells, **more: Any) -> Verb:
        return Verb(
            f"{name}, {kind} in cells",
            act,
            lambda folder: prepare(folder, kind),
            in_cells=True,
            **more,
        )

    acts = simple_verbs()
    return [
        *(verb(name, acts[name]) for name in _SIMPLE),
        verb("unarchive", lambda m, _: m.unarchive("fact-3")),
        verb("migrate", lambda m, _: m.migrate(), _unembedded),
        verb("switch of model", lambda m, _: m.migrate(), dimensions=48),
        verb("new cells", acts["store"], _nearly_doubled),
        verb("embed", lambda m, _: m.embed(), half_sorted),
        verb("delete while codes move", acts["delete"], half_sorted),
        verb("move", lambda m, _: m.configure(vector_index=other(kind))),
        verb("embed, half moved", lambda m, _: m.embed(), half_moved),
        verb("update, half moved", acts["update"], half_moved),
        verb("repair", lambda m, _: m.check(repair=True), _damaged),
    ]

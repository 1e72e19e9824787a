"""That the judge of stores in cells sees what is wrong in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.storage.quantization import code_bits
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.vector_index import VectorIndex

from . import fault_scene
from .cells import KINDS, Kind, half_moved, half_sorted, in_cells, small_cells
from .fault_case import Lasting
from .test_io_faults import harm_of
from .truth import CODES, disagreements, unfound
from .verbs import NAME, Verb


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_cells():
        yield


def _changed(folder: Path, *statements: str) -> Path:
    """Change a file behind the library's back."""
    path = folder / NAME
    database = Database(path)
    assert database.load_vectors()
    with database.write():
        for sql in statements:
            database.run(sql)
    database.close()
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prepare", [half_sorted, half_moved])
def test_sound_stores_are_sound_and_are_finished(
    prepare: Callable[[Path, Kind], None], kind: Kind, tmp_path: Path
) -> None:
    prepare(tmp_path, kind)
    assert disagreements(tmp_path / NAME) == []
    assert unfound(tmp_path / NAME) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prepare", [in_cells, half_moved])
def test_a_code_that_is_gone_or_of_nobody_is_seen(
    prepare: Callable[[Path, Kind], None], kind: Kind, tmp_path: Path
) -> None:
    prepare(tmp_path, kind)
    table, row_id = CODES[kind]
    path = _changed(
        tmp_path,
        f"DELETE FROM {table}_1 WHERE {row_id} = 5",
        "DELETE FROM embedding_queue",
    )
    assert disagreements(path) == [f"vector index 1, {kind}: [5]"]
    assert any(unfound(path))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prepare", [in_cells, half_sorted])
def test_codes_in_a_cell_that_is_gone_are_seen(
    prepare: Callable[[Path, Kind], None], kind: Kind, tmp_path: Path
) -> None:
    prepare(tmp_path, kind)
    table, _ = CODES[kind]
    first = f"SELECT min(cell) FROM {table}_1"
    path = _changed(tmp_path, f"DELETE FROM embedding_cells_1 WHERE cell = ({first})")
    (told,) = disagreements(path)
    assert told.startswith(f"vector index 1, {kind}: in no cell")
    assert any("does not find it" in wrong for wrong in unfound(path))


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_is_no_longer_there_is_seen(kind: Kind, tmp_path: Path) -> None:
    in_cells(tmp_path, kind)
    path = _changed(tmp_path, f"DROP TABLE {CODES[kind][0]}_1")
    assert disagreements(path) == ["vector index 1: no table"]


# The harness bites ----------------------------------------------------------------------------


def _sort_in_two_steps(memory: AgentMemory | None, _folder: Path) -> None:
    """Take codes out of the old cells in one transaction, and put them into the new in another."""
    assert memory is not None
    engine = memory._store.vectors._engine
    index = engine.vectors
    assert isinstance(index, VectorIndex)
    with engine.write():
        (model,) = engine.embeddings.models()
        table, cells = index._table_to_sort(model), index._tables.cells
        assert table is not None
        old = [cell.number for cell in cells.all(model.model_id) if cell.is_retired]
        size = code_bits(model.dimensions) // 8
        rows = [
            row for cell in old for row in table.some_of(model.model_id, cell, limit=99, size=size)
        ]
        table.remove(model.model_id, [row_id for row_id, _ in rows])
    with engine.write():
        index._put([table], model, rows)
        for cell in old:
            cells.remove(model.model_id, cell)


@pytest.mark.parametrize("kind", KINDS)
def test_codes_that_are_in_no_cell_for_a_moment_are_seen(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = Verb(
        "careless", _sort_in_two_steps, lambda folder: half_sorted(folder, kind), in_cells=True
    )
    monkeypatch.setattr(fault_scene, "all_verbs", lambda: [careless])
    tally = harm_of("careless", {"sync"}, {Lasting.ONCE}, last=2)
    assert tally.mismatches, tally

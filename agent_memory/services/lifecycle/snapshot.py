"""A store as it stood at a moment: a private copy, taken back along its history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from agent_memory.services.lifecycle.undo import row_at
from agent_memory.storage.engine import Engine
from agent_memory.storage.opening import file_storage, open_engine
from agent_memory.storage.records import RowValues


@contextlib.contextmanager
def copy_as_of(source: Path, moment: datetime) -> Iterator[Path]:
    """Make a private copy of a store that is as the store was at a moment; it goes with the body.

    Memories that were changed since are what they were, those that were stored since are gone,
    those that were deleted since are there. Accesses, the scratchpad and the settings are those of
    now, for they have no history.
    """
    with file_storage().private_copy(source) as copy:
        with contextlib.closing(open_engine(copy, create=False, synchronous="NORMAL")) as engine:
            _go_back(engine, moment)
        yield copy


def _go_back(engine: Engine, moment: datetime) -> None:
    with engine.write(durable=False):
        newest = engine.history.last_change()
        changed = engine.history.changed_after(moment)
        born = engine.history.born_after(moment)
        unborn = set(born)
        others = [memory_id for memory_id in changed if memory_id not in unborn]
        rows = [(memory_id, row_at(engine, memory_id, moment)) for memory_id in others]
        with engine.files.rewriting(changed, kept=others):
            engine.memory_rows.delete_many(born)
            _replace(engine, rows)
        engine.history.forget_after(moment, newest)
        engine.graph_maintenance.restore_to(moment)


def _replace(engine: Engine, rows: Iterable[tuple[str, RowValues | None]]) -> None:
    for memory_id, row in rows:
        present = engine.memory_rows.get(memory_id)
        if row is None:
            engine.memory_rows.delete(memory_id)
        elif present is None:
            kept = {name: value for name, value in row.items() if value is not None}
            kept.pop("scratchpad", None)
            if "seq" in kept and not engine.memory_rows.is_free(kept["seq"]):
                del kept["seq"]  # of another store, from which the history was imported
            engine.memory_rows.insert(kept)
        else:
            engine.memory_rows.set_values(memory_id, row)

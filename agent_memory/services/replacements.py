"""Which memories may replace those under review, from one to the next.

Searches in a hook's process import this module: nothing heavy may be imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agent_memory.storage.engine import Engine


def under_review(engine: Engine, memory_ids: Sequence[str]) -> set[str]:
    """Return those of some memories that a newer one may correct, as a search marks its hits."""
    row_ids = engine.recalls.row_ids_of(memory_ids)
    newer_of = engine.reviews.newer_of(list(row_ids.values()))
    return {memory_id for memory_id, row_id in row_ids.items() if row_id in newer_of}


def newer_of_all(engine: Engine, row_ids: Sequence[int]) -> dict[int, int]:
    """Return the newest row that may replace each row under review: these, and those in turn."""
    newer_of: dict[int, int] = {}
    while newer := engine.reviews.newer_of(row_ids):
        newer_of |= newer
        row_ids = [row_id for row_id in newer.values() if row_id not in newer_of]
    return newer_of


def newer_rows(newer_of: Mapping[int, int], row_id: int) -> Iterator[int]:
    """Yield the newer memories of a memory: the one that may correct it, that one's, and so on."""
    newer = newer_of.get(row_id)
    while newer is not None:
        yield newer
        newer = newer_of.get(newer)

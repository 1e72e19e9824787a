"""A memory's own file as a format: read from another agent or machine, or written as a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent_memory.api.memory import AgentMemory
from agent_memory.formats.protocol import Codec, Sample, Source, Written
from agent_memory.models.portable import Entry, PassedOver, added_by_hand


class _Sqlite(Codec):
    """The format ``sqlite``. What is read is a copy: the file itself is left as it is."""

    name = "sqlite"

    def recognises(self, sample: Sample) -> bool:
        """Return whether this is an SQLite database."""
        return sample.head.startswith(b"SQLite format 3\x00")

    def read(self, path: Path) -> Iterator[Entry | PassedOver]:  # type: ignore[override]
        """Yield everything that another store holds, vectors too, and name what is not ours."""
        with AgentMemory.opened_copy(path) as memory, memory.dump(embeddings=True) as source:
            yield from source.entries()
            if names := memory._store.transfer.foreign_parts():
                yield PassedOver(added_by_hand(names), len(names))

    def write(self, path: Path, source: Source) -> Written:
        """Write the store's own file."""
        written = Written(source.count())
        source.copy_into(path)
        return written


CODEC = _Sqlite()

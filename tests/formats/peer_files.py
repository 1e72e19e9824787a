"""What the tests of other programs' formats share: files that those made, and how they come in."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_memory import AgentMemory, ImportReport, Memory

SAMPLES = Path(__file__).parent / "samples"
"""Files that the other programs' own code wrote."""


def everything(memory: AgentMemory) -> list[Memory]:
    """Return all memories, in the order in which they were stored."""
    with memory.dump() as source:
        return list(source.memories())


def taken_in(path: Path, folder: Path, **options: Any) -> tuple[ImportReport, list[Memory]]:
    """Import a file into an empty memory, and again, which must change nothing."""
    with AgentMemory.open(folder / "in.db", agent_id="bob") as memory:
        plan = memory.import_(path, dry_run=True, **options)
        assert everything(memory) == []
        report = memory.import_(path, **options)
        assert plan.model_dump(exclude={"dry_run"}) == report.model_dump(exclude={"dry_run"})
        before = everything(memory)
        again = memory.import_(path, **options)
        assert (again.new, again.changed, again.kept) == (0, 0, 0)
        assert everything(memory) == before
        assert memory.check().problems == []
        return report, before


def lines(*items: Mapping[str, Any] | str) -> str:
    """Write JSONL; a text is a line as it is."""
    return "".join(
        (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)) + "\n"
        for item in items
    )


def unpacked(name: str, folder: Path) -> Path:
    """Unpack a sample, and return the path of what is in it."""
    packed = SAMPLES / name
    if name.endswith(".tar.gz"):
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
        return folder / name.removesuffix(".tar.gz")
    path = folder / name.removesuffix(".gz")
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path

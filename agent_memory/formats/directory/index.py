"""``index.json``: E's figures and lists of ids, derived from the files; nothing here needs it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import StorageUnavailable, ValidationError
from agent_memory.formats.directory.layout import INDEX
from agent_memory.formats.directory.lines import encoded
from agent_memory.formats.json_reader import parse
from agent_memory.models.enums import Importance, MemoryKind
from agent_memory.models.times import format_briefly
from agent_memory.runtime.files import read_steadily

VERSION: Final = "1.0.0"
_MAX_BYTES: Final = 4_000_000
"""E's three files have 1,700 memories, the index of which takes a tenth of that."""


class Index:
    """The index of the memories in E's three files."""

    def __init__(self) -> None:
        self._memories: dict[MemoryKind, list[dict[str, Any]]] = {kind: [] for kind in MemoryKind}

    def add(self, kind: MemoryKind, fields: Mapping[str, Any]) -> None:
        """Add a memory of E's three files, in the order of its file."""
        names = ("id", "tags", "category", "importance")
        self._memories[kind].append({name: fields[name] for name in names})

    def written(self, *, changed_at: datetime, archived: int, total_bytes: int) -> bytes:
        """Return the file's content; ``total_bytes`` is the size of the other files."""
        memories = [entry for of_kind in self._memories.values() for entry in of_kind]
        by_type = {kind.value: len(of_kind) for kind, of_kind in self._memories.items()}
        tags = ((tag, entry["id"]) for entry in memories for tag in entry["tags"])
        importances = _lists((entry["importance"], entry["id"]) for entry in memories)
        index = {
            "version": VERSION,
            "last_updated": format_briefly(changed_at),
            "statistics": {
                "total_memories": len(memories),
                "by_type": by_type,
                "archived_count": archived,
                "total_storage_bytes": total_bytes,
            },
            "tags_index": _lists(tags),
            "category_index": _lists((entry["category"], entry["id"]) for entry in memories),
            "importance_index": {
                word.value: importances.get(word.value, []) for word in Importance
            },
        }
        return encoded(_laid_out(index) + "\n")


def _lists(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for key, memory_id in pairs:
        lists.setdefault(key, []).append(memory_id)
    return lists


def _laid_out(value: object, indent: str = "") -> str:
    """Write JSON as E shows it: a key a line, a list on its line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = f"{indent}  "
    keys = (f"{inner}{_laid_out(key)}: {_laid_out(item, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(keys) + f"\n{indent}}}"


class StoredIndex:
    """The index found in a folder, as far as it is readable. ``fault`` says why it is not."""

    def __init__(self, folder: Path) -> None:
        self.fault: str | None = None
        self.counts: dict[str, object] = {}
        path = folder / INDEX
        if path.is_symlink():
            self.fault = "is a symbolic link, and is not followed"
        elif path.exists():
            try:
                self._read(path)
            except (StorageUnavailable, ValidationError) as error:
                self.fault = str(error).removeprefix(f"{path}").removeprefix(":").strip()

    def _read(self, path: Path) -> None:
        with read_steadily(path) as file:
            raw = file.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise ValidationError(f"is longer than {_MAX_BYTES:,} bytes")
        try:
            index = parse(raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValidationError("is not JSON: it is not UTF-8") from error
        statistics = index.get("statistics") if isinstance(index, dict) else None
        counts = statistics.get("by_type") if isinstance(statistics, dict) else None
        if not isinstance(counts, dict):
            raise ValidationError("has no statistics.by_type")
        self.counts = counts
        if index.get("version") != VERSION:
            self.fault = f"is of version {index.get('version')!r:.40}, not {VERSION}"

    def wrong(self, counted: Mapping[str, int]) -> str | None:
        """Return what is wrong with it, given how many memories of each type the files have."""
        if self.fault is not None:
            return f"{INDEX} {self.fault}: it was ignored"
        for name, count in counted.items():
            if self.counts and self.counts.get(name, 0) != count:
                indexed = f"{self.counts.get(name, 0)!r:.20}"
                return (
                    f"{INDEX} counts {indexed} of type {name}, but the files have {count}:"
                    " using the files"
                )
        return None

"""What one of a crowd was about to change, and what was acknowledged: a file of its own.

Each line is written with one call, so that a process that is killed leaves whole lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Told(NamedTuple):
    """A memory as one of the crowd knows it.

    ``content`` is ``None`` when it is deleted. ``events`` are the first letters of its history.
    """

    content: str | None
    tags: tuple[str, ...] = ()
    importance: str = "medium"
    archived: bool = False
    version: int = 1
    events: str = "A"


class Journal:
    """Written by one thread of one process."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def intend(self, changes: Mapping[str, Any]) -> None:
        """Write what is about to be changed, by key, and what it will be."""
        self._write("intent", changes)

    def acknowledge(self) -> None:
        """Write that it was done."""
        self._write("done", None)

    def give_up(self) -> None:
        """Write that it was refused, and so was not done."""
        self._write("refused", None)

    def searched(self, memory_ids: list[str]) -> None:
        """Write which memories a search counted."""
        self._write("counted", memory_ids)

    def finish(self, report: Mapping[str, Any]) -> None:
        """Write that all was done, and what is to be told of it."""
        self._write("finished", report)

    def _write(self, what: str, value: object) -> None:
        os.write(self._descriptor, (json.dumps([what, value]) + "\n").encode())


@dataclass
class Account:
    """What a journal says: what was acknowledged by key, and what was under way at its end."""

    done: dict[str, Any] = field(default_factory=dict)
    under_way: dict[str, Any] = field(default_factory=dict)
    counted: list[str] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    """Keys that were ever deleted or erased."""
    acknowledged: int = 0
    report: dict[str, Any] | None = None


def read(path: Path) -> Account:
    """Read a journal. One without a report is of a process that was killed."""
    account = Account()
    for line in path.read_text().splitlines():
        what, value = json.loads(line)
        if what == "intent":
            account.under_way = value
        elif what == "done":
            account.done.update(account.under_way)
            account.changed |= {it for it, told in account.under_way.items() if is_gone(told)}
            account.under_way = {}
            account.acknowledged += 1
        elif what == "refused":
            account.under_way = {}
        elif what == "counted":
            account.counted += value
        else:
            account.report = value
    account.changed |= account.under_way.keys()
    return account


def is_gone(told: Any) -> bool:
    """Return whether a value is that of a memory that is deleted."""
    return isinstance(told, list) and told[0] is None

"""A process that uses a store until it is killed, and writes down what was acknowledged.

``python postgres_worker.py URL JOURNAL NAME SEED COUNT``: each line of the journal is on the disk
before the next verb begins, and names a verb, its state (``begun``, ``done``) and its memory.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from agent_memory import AgentMemory, AgentMemoryError, StorageUnavailable

PATIENCE = 60.0
"""Seconds for which a server that is gone may come back."""


class Worker:
    """Does verbs by chance, on memories of its own and on those of others."""

    def __init__(self, memory: AgentMemory, journal: TextIO, name: str, seed: int) -> None:
        self._memory = memory
        self._journal = journal
        self._name = name
        self._chance = random.Random(seed)
        self._own: list[str] = []

    def note(self, verb: str, state: str, memory_id: str) -> None:
        self._journal.write(f"{verb} {state} {memory_id}\n")
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def work(self, number: int) -> None:
        """Do one verb."""
        verbs: list[Callable[[int], None]] = [
            self.store, self.store, self.store, self.update, self.delete, self.archive,
            self.search, self.store_many, self.promote, self.relate, self.look,
        ]  # fmt: skip
        self._chance.choice(verbs)(number)

    def noted(self, verb: str, memory_id: str, act: Callable[[], object]) -> None:
        """Do a verb between two notes; one whose answer was lost stays begun."""
        self.note(verb, "begun", memory_id)
        act()
        self.note(verb, "done", memory_id)

    def store(self, number: int) -> None:
        memory_id = f"mem-{self._name}-{number}"
        text = f"{self._name} says {number}, {self._chance.random()}, of tea"
        self.noted("store", memory_id, lambda: self._memory.store(text, id=memory_id, tags=["a"]))
        self._own.append(memory_id)

    def store_many(self, number: int) -> None:
        items = [
            {"content": f"{self._name} {number}.{n} {self._chance.random()}",
             "id": f"mem-{self._name}-{number}.{n}"}
            for n in range(5)
        ]  # fmt: skip
        self.noted("store_many", items[0]["id"][:-2], lambda: self._memory.store_many(items))

    def update(self, number: int) -> None:
        if self._own:
            memory_id = self._chance.choice(self._own)
            text = f"{self._name} changed {number} to {self._chance.random()}"
            self.noted(
                f"update:{number}",
                memory_id,
                lambda: self._memory.update(memory_id, content=text, metadata={"last": number}),
            )

    def delete(self, _number: int) -> None:
        if len(self._own) > 3:
            memory_id = self._own.pop(0)
            self.noted("delete", memory_id, lambda: self._memory.delete(memory_id))

    def archive(self, _number: int) -> None:
        if self._own:
            self._memory.archive(self._own[-1])
            self._memory.unarchive(self._own[-1])

    def promote(self, _number: int) -> None:
        if self._own:
            self._memory.promote(self._own[-1])

    def relate(self, number: int) -> None:
        self._memory.graph.add(self._name, "counts_to", f"number {number}")

    def search(self, number: int) -> None:
        self._memory.search(f"says {number} tea")

    def look(self, _number: int) -> None:
        self._memory.list_recent(limit=5)
        self._memory.info()


def main(url: str, journal: str, name: str, seed: int, count: int) -> None:
    """Do so many verbs; what fails because the server is gone is left, and the next one done."""
    with AgentMemory("bob", root=url) as memory, Path(journal).open("a", encoding="utf-8") as notes:
        worker = Worker(memory, notes, name, seed)
        worker.note("start", "done", name)
        number, given_up = 0, time.monotonic() + PATIENCE
        while number < count and time.monotonic() < given_up:
            number += 1
            try:
                worker.work(number)
                given_up = time.monotonic() + PATIENCE
            except StorageUnavailable:
                time.sleep(0.2)
            except AgentMemoryError as error:
                if type(error).__name__ not in ("MemoryNotFound", "StorageLocked"):
                    raise
        worker.note("end", "done", name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))

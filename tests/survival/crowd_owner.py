"""One of a crowd on a file, as far as its own memories go: it changes them, and knows their state.

What it is about to do, and what was acknowledged, is in its journal.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_memory import AgentMemory, StorageLocked

from .crowd_journal import Journal, Told
from .crowd_texts import Broken, text_of


class Owner:
    """Has memories whose ids begin with its ``name``; ``place`` is its number among the crowd."""

    def __init__(
        self,
        memory: AgentMemory,
        name: str,
        place: int,
        *,
        folder: Path,
        seed: str,
        by_meaning: bool = False,
        may_be_refused: bool = False,
    ) -> None:
        self.memory = memory
        self.name = name
        self._place = place
        self._folder = folder
        self._rng = random.Random(f"{seed}-{name}")
        self._by_meaning = by_meaning
        self._may_be_refused = may_be_refused
        self._journal = Journal(folder / f"{name}.journal")
        self._mine: dict[str, Told] = {}
        self._before: dict[str, Told] = {}
        self._made = 0
        self._shared = 0
        self.counts: Counter[str] = Counter()

    def _changed(self, call: Callable[[], object], changes: dict[str, Any]) -> None:
        """Change something, and tell before and after."""
        self._journal.intend(changes)
        call()
        self._journal.acknowledge()
        for name, told in changes.items():
            if isinstance(told, Told):
                self._before[name] = self._mine.pop(name, Told(None, events=""))
                self._mine[name] = told

    # Its own memories ----------------------------------------------------------------------------

    def _new(self) -> dict[str, Any]:
        self._made += 1
        name = f"{self.name}-{self._made}"
        return {
            "id": name,
            "content": text_of(name, 1, self._rng),
            "tags": ["r1"],
            "run_id": self.name,
        }

    def _there(self) -> list[str]:
        return [name for name, told in self._mine.items() if told.content is not None]

    def _one(self) -> str:
        """Return one of its memories, of which there is always one."""
        there = self._there()
        if not there:
            self.store()
            there = self._there()
        return self._rng.choice(there)

    def store(self) -> None:
        """Store a memory."""
        item = self._new()
        self._changed(lambda: self.memory.store(**item), _told([item]))

    def store_many(self) -> None:
        """Store several."""
        items = [self._new() for _ in range(self._rng.randint(2, 25))]
        self._changed(lambda: self.memory.store_many(items), _told(items))

    def import_(self) -> None:
        """Import several."""
        items = [self._new() for _ in range(self._rng.randint(2, 15))]
        place = self._folder / f"{self.name}.jsonl"
        now = datetime.now(UTC).isoformat()
        lines = [json.dumps({**it, "timestamp": now}) + "\n" for it in items]
        place.write_text("".join(lines))
        self._changed(lambda: self.memory.import_(place), _told(items))

    def update(self) -> None:
        """Change a text and its tags together, or the importance alone."""
        name = self._one()
        told = self._mine[name]
        new = told._replace(version=told.version + 1, events=told.events + "U")
        if self._rng.random() < 0.3:
            importance = "low" if told.importance != "low" else "medium"
            new = new._replace(importance=importance)
            self._changed(lambda: self.memory.update(name, importance=importance), {name: new})
            return
        content = text_of(name, new.version, self._rng)
        tags = [f"r{new.version}"]
        new = new._replace(content=content, tags=tuple(tags))
        self._changed(lambda: self.memory.update(name, content=content, tags=tags), {name: new})

    def delete(self) -> None:
        """Delete one."""
        name = self._one()
        self._changed(lambda: self.memory.delete(name), {name: self._deleted(name)})

    def delete_many(self) -> None:
        """Delete a few."""
        names = {self._one() for _ in range(3)}
        gone = {name: self._deleted(name) for name in names}
        self._changed(lambda: self.memory.delete_many(names), gone)

    def _deleted(self, name: str) -> Told:
        return Told(None, events=self._mine[name].events + "D")

    def archive(self) -> None:
        """Archive a memory, or bring it back."""
        name = self._one()
        told = self._mine[name]
        new = told._replace(
            archived=not told.archived, version=told.version + 1, events=told.events + "U"
        )
        call = self.memory.unarchive if told.archived else self.memory.archive
        self._changed(lambda: call(name), {name: new})

    def undo(self) -> None:
        """Undo the last change of a memory, by its number."""
        candidates = [it for it in self._before if self._mine[it].events]
        if not candidates:
            return
        name = self._rng.choice(candidates)
        change = self.memory.history(name, limit=1)[0]
        now, then = self._mine[name], self._before[name]
        if change.event[0] != now.events[-1]:
            raise Broken(f"the last change of {name} is {change.event}, not {now.events}")
        if then.content is None:
            new = self._deleted(name)
        elif now.content is None:
            new = then._replace(version=then.version + 1, events=now.events + "A")
        else:
            new = then._replace(version=now.version + 1, events=now.events + "U")
        self._changed(lambda: self.memory.undo(change.change_id), {name: new})

    def erase(self) -> None:
        """Erase a memory for good; it may be refused while another process reads an old state."""
        name = self._one()
        try:
            self._changed(lambda: self.memory.erase(name), {name: Told(None, events="")})
        except StorageLocked:
            if not self._may_be_refused:
                raise
            self._journal.give_up()
            self.counts["erase refused"] += 1

    def promote(self) -> None:
        """Put a memory into the scratchpad."""
        self.memory.promote(self._one())

    def demote(self) -> None:
        """Take one out."""
        self.memory.demote(self._one())


def _told(items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {item["id"]: Told(item["content"], tuple(item["tags"])) for item in items}

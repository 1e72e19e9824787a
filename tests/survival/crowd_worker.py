"""One of a crowd on a file: seeded operations, each looked at as far as one alone can tell.

It changes memories of its own, whose state it knows, and what all share: a counter that is read,
changed and written, a memory of which it changes one field, a setting.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from agent_memory import AgentMemory, Memory, RejectedContent, ValidationError

from .crowd_owner import Owner
from .crowd_texts import (
    COUNTER,
    FIELDS,
    SETTINGS,
    SUBJECTS,
    VALUES,
    Broken,
    refuse_half,
    word_of,
)


class Worker(Owner):
    """Does so many operations."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.longest: dict[str, float] = {}
        self.slow = 0

    def work(self, operations: int, *, midway: Callable[[], None] = lambda: None) -> None:
        """Do the operations, and call ``midway`` between them; then write the report."""
        verbs, weights = list(_OPERATIONS), [weight for weight, _ in _OPERATIONS.values()]
        for number in range(operations):
            if number == operations // 2:
                midway()
            verb = self._rng.choices(verbs, weights)[0]
            self._timed(verb, _OPERATIONS[verb][1])

    def each_once(self) -> None:
        """Do each operation once."""
        for _, call in _OPERATIONS.values():
            call(self)

    def finish(self) -> None:
        """Report what was done. The memory must be closed: only then is everything written."""
        longest = max(self.longest.items(), key=lambda it: it[1], default=("", 0.0))
        report = {"counts": self.counts, "longest": longest, "slow": self.slow}
        self._journal.finish(report)

    def _timed(self, verb: str, call: Callable[[Worker], None]) -> None:
        started = time.monotonic()
        call(self)
        if verb not in LONG:
            seconds = time.monotonic() - started
            self.longest[verb] = max(self.longest.get(verb, 0.0), seconds)
            self.slow += seconds > 1
        self.counts[verb] += 1

    # Reading -------------------------------------------------------------------------------------

    def get(self) -> None:
        """Read one of its own: it is as it was left."""
        name = self._one()
        self._compare(name, self.memory.get(name))

    def _compare(self, name: str, memory: Memory | None) -> None:
        told = self._mine[name]
        if memory is None:
            raise Broken(f"{name} is gone")
        found = (memory.content, tuple(memory.tags), memory.importance, memory.archived)
        if (*found, memory.version) != told[:5]:
            raise Broken(f"{name} is {found} {memory.version}, not {told}")

    def get_deleted(self) -> None:
        """Look for one that was deleted."""
        gone = [name for name, told in self._mine.items() if told.content is None]
        if gone and self.memory.get(name := self._rng.choice(gone)) is not None:
            raise Broken(f"{name} was deleted, and is there")

    def get_others(self) -> None:
        """Read what others wrote."""
        for memory in self.memory.list_recent(5, offset=self._rng.randint(0, 50)):
            refuse_half(memory)

    def recent(self) -> None:
        """List its own."""
        for memory in self.memory.list_recent(10, filters={"run_id": self.name}):
            self._compare(memory.id, memory)

    def count(self) -> None:
        """Count its own."""
        found = self.memory.count(filters={"run_id": self.name, "archived": None})
        if found != len(self._there()):
            raise Broken(f"{self.name} has {len(self._there())} memories, and counted {found}")

    def history(self) -> None:
        """Read the history of a memory."""
        name = self._one()
        events = "".join(entry.event[0] for entry in self.memory.history(name))[::-1]
        if events != self._mine[name].events:
            raise Broken(f"the history of {name} is {events}, not {self._mine[name].events}")

    def search(self) -> None:
        """Search for what anybody may have stored."""
        self._search(f"{self._rng.choice(SUBJECTS)} by the {self._rng.choice(SUBJECTS)}")

    def find(self) -> None:
        """Search for a memory of its own, by a word that no other has."""
        name = self._one()
        if self._mine[name].archived:
            return
        found = self._search(word_of(name))
        if name not in found and not self._by_meaning:
            raise Broken(f"{name} is not found")

    def _search(self, query: str) -> list[str]:
        results = self.memory.search(query, limit=5)
        for hit in results:
            refuse_half(hit.memory)
        self._journal.searched([hit.memory.id for hit in results if hit.passed_gate])
        return [hit.memory.id for hit in results]

    def context(self) -> None:
        """Ask for the context."""
        self.memory.context()

    def info(self) -> None:
        """Ask for figures."""
        if self.memory.info().memory_count < 0:
            raise Broken("fewer than no memories")

    # What all share ------------------------------------------------------------------------------

    def increment(self) -> None:
        """Read the counter, and write one more, unless another did so meanwhile: then again."""
        while True:
            there = self.memory.get(COUNTER)
            if there is None:
                raise Broken("the counter is gone")
            number = there.metadata["number"] + 1
            self._journal.intend({f"counter:{self.name}": self.counts["increments"] + 1})
            try:
                self.memory.update(COUNTER, metadata={"number": number}, if_version=there.version)
            except ValidationError:
                self._journal.give_up()
                self.counts["increments tried again"] += 1
                continue
            self._journal.acknowledge()
            self.counts["increments"] += 1
            return

    def change_field(self) -> None:
        """Change the field of the shared memory that is its own."""
        name = list(VALUES)[self._place % len(VALUES)]
        if self._place >= len(VALUES):
            return
        self._shared += 1
        value = VALUES[name](self._shared)
        self._changed(
            lambda: self.memory.update(FIELDS, **{name: value}),
            {f"field:{name}": value, f"fields:{self.name}": self._shared},
        )

    def configure(self) -> None:
        """Change the setting that is its own."""
        if self._place < len(SETTINGS):
            name = list(SETTINGS)[self._place]
            self._made += 1
            value = SETTINGS[name](self._made)
            self._changed(
                lambda: self.memory.configure(**{name: value}), {f"setting:{name}": value}
            )

    def reject(self) -> None:
        """Reject a text: nobody can store it; or lift that."""
        text = f"secret {self.name} {self._rng.randint(1, 3)}"
        if self._rng.random() < 0.3:
            self._changed(lambda: self.memory.lift(text), {f"rejected:{text}": False})
            return
        self._changed(lambda: self.memory.reject(text), {f"rejected:{text}": True})
        try:
            self.memory.store(f"It is {text}, they say")
        except RejectedContent:
            return
        raise Broken("what is rejected was stored")

    # The whole file ------------------------------------------------------------------------------

    def backup(self) -> None:
        """Back the file up: the copy has all of its own, as they are."""
        place = self._folder / f"{self.name}-backup.db"
        self.memory.backup(place, overwrite=True)
        with AgentMemory.open(place, embedder=None, read_only=True) as copy:
            for name in self._there()[:20]:
                self._compare(name, copy.get(name))
            found = copy.count(filters={"run_id": self.name, "archived": None})
        if found != len(self._there()):
            raise Broken(f"the backup has {found} memories of {self.name}")

    def export(self) -> None:
        """Export the file: all of its own are in it."""
        place = self._folder / f"{self.name}-export.jsonl"
        self.memory.export(place, format="jsonl", overwrite=True)
        found = {json.loads(line)["id"] for line in place.read_text().splitlines()}
        if {name for name in found if name.startswith(f"{self.name}-")} != set(self._there()):
            raise Broken(f"the export has not the memories of {self.name}")

    def tidy(self) -> None:
        """Archive what is old: each memory is archived once, by whomever."""
        self._journal.intend({f"tidied:{self.name}": True})
        report = self.memory.tidy()
        self._journal.acknowledge()
        self.counts["archived by tidying"] += len(report.archived)

    def check(self) -> None:
        """Check the file, in which others write."""
        problems = self.memory.check().problems
        if problems:
            raise Broken(f"check: {problems[0].detail}")


_OPERATIONS: Final[dict[str, tuple[float, Callable[[Worker], None]]]] = {
    "store": (25, Worker.store),
    "get": (14, Worker.get),
    "get deleted": (2, Worker.get_deleted),
    "get others": (6, Worker.get_others),
    "update": (14, Worker.update),
    "recent": (4, Worker.recent),
    "count": (3, Worker.count),
    "history": (2, Worker.history),
    "context": (3, Worker.context),
    "info": (0.3, Worker.info),
    "delete": (8, Worker.delete),
    "search": (4, Worker.search),
    "find": (4, Worker.find),
    "archive": (3, Worker.archive),
    "promote": (2, Worker.promote),
    "demote": (1, Worker.demote),
    "increment": (1.5, Worker.increment),
    "change field": (1.5, Worker.change_field),
    "undo": (0.7, Worker.undo),
    "store_many": (0.4, Worker.store_many),
    "delete_many": (0.4, Worker.delete_many),
    "import": (0.1, Worker.import_),
    "configure": (0.1, Worker.configure),
    "reject": (0.1, Worker.reject),
    "backup": (0.03, Worker.backup),
    "export": (0.02, Worker.export),
    "erase": (0.02, Worker.erase),
    "tidy": (0.03, Worker.tidy),
    "check": (0.01, Worker.check),
}
"""By name: how often, in a hundred, and what."""
LONG: Final = frozenset({"backup", "export", "erase", "tidy", "check", "import", "store_many"})
"""Those that take their time by themselves: the others only wait for their turn."""

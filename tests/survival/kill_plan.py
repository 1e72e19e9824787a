"""What the children that are killed are to do: steps that fit the state that the file is in."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .kill_child import IMPORTED
from .kill_model import UNDOABLE, Model, Step, advanced
from .verbs import NOW

_SUBJECTS: Final = "harbour lantern violet granite orchard compass thimble walnut".split()
_MOST_FACTS: Final = 60
_DIMENSIONS: Final = (32, 48)
_RETENTION: Final = {"archive_learnings_after_days": 90}


@dataclass
class Planner:
    """Makes plans for one file. ``model`` is what the file will hold after the steps so far."""

    rng: random.Random
    folder: Path
    model: Model
    made: int = 0
    """Texts and files that were made, so that each is another."""

    def plan(self, target: str, *, before: int, after: int) -> tuple[list[Step], int]:
        """Return steps, of which one does the ``target`` verb, and that one's place."""
        self.steps: list[Step] = []
        self._step("open", dimensions=self.model.dimensions)
        for _ in range(before):
            self._add(self.rng.choice(VERBS))
        place = 0
        if target != "open":
            self._add(target)
            place = len(self.steps) - 1
        for _ in range(after):
            self._add(self.rng.choice(VERBS))
        return self.steps, place

    def _add(self, verb: str) -> None:
        """Add the steps that do a verb: those without which it would have nothing to do, first."""
        if len(self.model.facts) > _MOST_FACTS and verb in ("store_many", "import", "store"):
            self._step("delete_many", ids=self._some(25))
        needs, fields = _MAKERS[verb]
        needs(self)
        self._step(verb, **fields(self))

    def _step(self, verb: str, **fields: Any) -> None:
        step = {"verb": verb, **fields}
        self.steps.append(step)
        self.model = advanced(self.model, step)

    # What steps need -----------------------------------------------------------------------------

    def facts(self) -> None:
        """Have some memories that are neither archived nor old."""
        if len(self._there()) < 8:
            self._step("store_many", items=self._items(12))

    def archived_ones(self) -> None:
        """Have a memory that is archived."""
        if not any(fact.archived for fact in self.model.facts.values()):
            self._add("archive")

    def change(self) -> None:
        """Have something that can be undone."""
        if self.model.undone is None:
            self._add(self.rng.choice(sorted(UNDOABLE - {"tidy"})))

    def vectors(self) -> None:
        """Have memories that are searched by meaning."""
        if not self.model.dimensions:
            self._add("migrate")

    def waiting(self) -> None:
        """Have a memory that waits for its vector."""
        self.vectors()
        self._add("by hand")

    def rejection(self) -> None:
        """Have a rejected text, and know it."""
        self._add("reject")

    def backup(self) -> None:
        """Have a backup."""
        if self.model.kept is None or self.rng.random() < 0.5:
            self._add("backup")
            self._add(self.rng.choice(("store", "delete", "update", "reject")))

    def outdated(self) -> None:
        """Have a policy, and a memory that it archives."""
        if "retention" not in self.model.config:
            self._step("configure", settings={"retention": _RETENTION})
        self._step("store old", **self._items(1)[0])

    def damaged(self) -> None:
        """Have indexes that are wrong."""
        self.facts()
        self._step("damage")

    # What steps are called with ------------------------------------------------------------------

    def item(self) -> Step:
        """A new memory."""
        return self._items(1)[0]

    def items(self) -> Step:
        """Several new memories."""
        return {"items": self._items(self.rng.randint(2, 25))}

    def new_text(self) -> Step:
        """A new memory without tags, which are written by the library alone."""
        return {name: self.item()[name] for name in ("id", "content")}

    def changes(self) -> Step:
        """Another text for a memory."""
        return {**self.item(), "id": self._some(1)[0]}

    def imported(self) -> Step:
        """Write new memories into a file to import."""
        items = self._items(self.rng.randint(1, 15))
        return {"items": items, "number": self._written(items)}

    def replacing(self) -> Step:
        """Write other texts of some memories into a file to import."""
        items = self._items(self.rng.randint(1, 5))
        for item, memory_id in zip(items, self._some(len(items)), strict=False):
            item["id"] = memory_id
        items = [item for item in items if item["id"] in self.model.facts]
        return {"items": items, "number": self._written(items)}

    def _written(self, items: Iterable[Step]) -> int:
        self.made += 1
        lines = [json.dumps({**item, "timestamp": NOW.isoformat()}) + "\n" for item in items]
        place = self.folder / f"{IMPORTED}-{self.made}"
        place.parent.mkdir(exist_ok=True)
        place.write_text("".join(lines))
        return self.made

    def one(self) -> Step:
        """One memory."""
        return {"id": self._some(1)[0]}

    def some(self, count: int) -> Step:
        """Some memories."""
        return {"ids": self._some(count)}

    def _some(self, count: int) -> list[str]:
        there = self._there()
        return self.rng.sample(there, min(count, len(there)))

    def _there(self) -> list[str]:
        archived = {it for it, fact in self.model.facts.items() if fact.archived}
        return sorted(self.model.facts.keys() - archived - self.model.old)

    def archived(self) -> Step:
        """One memory that is archived."""
        archived = [it for it, fact in self.model.facts.items() if fact.archived]
        return {"ids": [self.rng.choice(sorted(archived))]}

    def erased(self) -> Step:
        """A few memories, in the backups too or not."""
        return {"ids": self._some(self.rng.randint(1, 3)), "backups": self.rng.random() < 0.3}

    def settings(self) -> Step:
        """Some setting."""
        return {"settings": {"backups_kept": self.rng.randint(0, 3)}}

    def index(self) -> Step:
        """The kind of table that the index of vectors is not in."""
        is_table = self.model.config.get("vector_index") == "table"
        return {"settings": {"vector_index": "vec0" if is_table else "table"}}

    def rejected(self) -> Step:
        """A text that no memory has."""
        self.made += 1
        return {"text": f"secret{self.made} token{self.made}"}

    def lifted(self) -> Step:
        """The text that was rejected last."""
        return {"text": f"secret{self.made} token{self.made}"}

    def dimensions(self) -> Step:
        """Another model than the one that searches use, mostly."""
        return {"dimensions": self.rng.choice(_DIMENSIONS)}

    def restored(self) -> Step:
        """The model whose vectors are in the backup."""
        assert self.model.kept is not None
        return {"dimensions": self.model.kept.dimensions}

    def _items(self, count: int) -> list[Step]:
        """Return new memories, now and then one that fills pages."""
        items = []
        for _ in range(count):
            self.made += 1
            one, other = self.rng.sample(_SUBJECTS, 2)
            text = f"The {one} number {self.made} stands by the {other}"
            if self.rng.random() < 0.1:
                text += f" and says item{self.made}" * self.rng.randint(10, 400)
            items.append({"id": f"m-{self.made}", "content": text[:9000], "tags": [one, other]})
        return items


_Maker = tuple[Callable[[Planner], None], Callable[[Planner], Step]]


def _no_need(_planner: Planner) -> None:
    """Need nothing."""


_MAKERS: Final[dict[str, _Maker]] = {
    "store": (_no_need, Planner.item),
    "store_many": (_no_need, Planner.items),
    "update": (Planner.facts, Planner.changes),
    "delete": (Planner.facts, lambda p: p.some(1)),
    "delete_many": (Planner.facts, lambda p: p.some(4)),
    "archive": (Planner.facts, lambda p: p.some(p.rng.randint(1, 3))),
    "unarchive": (Planner.archived_ones, Planner.archived),
    "promote": (Planner.facts, Planner.one),
    "demote": (Planner.facts, Planner.one),
    "search": (Planner.facts, lambda p: {"query": p.rng.choice(_SUBJECTS)}),
    "by hand": (_no_need, Planner.new_text),
    "embed": (Planner.waiting, lambda _: {}),
    "migrate": (Planner.facts, Planner.dimensions),
    "rollback": (Planner.vectors, lambda _: {}),
    "import": (_no_need, Planner.imported),
    "import replacing": (Planner.facts, Planner.replacing),
    "export": (Planner.facts, lambda _: {}),
    "tidy": (Planner.outdated, lambda _: {}),
    "erase": (Planner.facts, Planner.erased),
    "undo": (Planner.change, lambda _: {}),
    "backup": (Planner.facts, lambda _: {}),
    "restore": (Planner.backup, Planner.restored),
    "configure": (_no_need, Planner.settings),
    "move": (Planner.vectors, Planner.index),
    "reject": (_no_need, Planner.rejected),
    "lift": (Planner.rejection, Planner.lifted),
    "repair": (Planner.damaged, lambda _: {}),
}
VERBS: Final = tuple(_MAKERS)
TARGETS: Final = (*VERBS, "open")
"""Where children are killed."""

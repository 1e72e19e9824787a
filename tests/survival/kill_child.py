"""The child that is killed: it does one step after another, and tells before and after each.

It is forked from the campaign, or, to be another process in every way, started with
``python -m tests.survival.kill_child FOLDER``, with the plan on its standard input, and
``small-cells`` behind the folder where cells are small.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import apsw

from agent_memory import AgentMemory

from .cells import small_cells
from .kill_model import Step
from .verbs import NAME, NOW, opened

LONG_AGO: Final = NOW - timedelta(days=400)
ELSEWHERE: Final = "elsewhere"
"""A folder for what a store's own backups are not."""
KEPT: Final = f"{ELSEWHERE}/kept.db"
EXPORTED: Final = f"{ELSEWHERE}/out.jsonl"
IMPORTED: Final = f"{ELSEWHERE}/in.jsonl"
SMALL_CELLS: Final = "small-cells"


class Child:
    """Does the steps of a plan on the file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._now = NOW
        self._memory: AgentMemory | None = None

    def do(self, step: Step) -> Sequence[str]:
        """Do one step, and return the ids that it gave back, if that is to be known."""
        if step["verb"] == "open":
            self._open(step["dimensions"])
            return ()
        given = _STEPS[step["verb"]](self, step)
        return given if step["verb"] == "search" else ()

    @property
    def memory(self) -> AgentMemory:
        """The memory, which an ``open`` opened."""
        assert self._memory is not None
        return self._memory

    @property
    def folder(self) -> Path:
        """Where the file is."""
        return self._folder

    def close(self) -> None:
        """Close the file."""
        self.memory.close()

    def _clock(self) -> datetime:
        return self._now

    def _open(self, dimensions: int) -> None:
        if self._memory is not None:
            self._memory.close()
        path = self._folder / NAME
        self._memory = opened(path, dimensions=dimensions or 32, clock=self._clock)

    # Steps that are more than one call -----------------------------------------------------------

    def store_old(self, step: Step) -> None:
        """Store a memory as if it were long ago."""
        self._now = LONG_AGO
        try:
            self.memory.store(**_fields(step), timestamp=LONG_AGO)
        finally:
            self._now = NOW

    def search(self, step: Step) -> list[str]:
        """Search, have it written what was counted, and tell what that was."""
        hits = self.memory.search(step["query"], limit=10)
        self.memory.info()
        return [hit.memory.id for hit in hits if hit.passed_gate]

    def migrate(self, step: Step) -> None:
        """Move to the vectors of a model."""
        self._open(step["dimensions"])
        self.memory.migrate()

    def restore(self, step: Step) -> None:
        """Go back to the backup, while the file is open."""
        AgentMemory.restore(self.memory.path, self._folder / KEPT, keep_replaced=False)
        self._open(step["dimensions"])

    def import_(self, step: Step) -> None:
        """Take in the memories that the campaign wrote into a file."""
        place = self._folder / f"{IMPORTED}-{step['number']}"
        chosen: Any = "replace" if step["verb"] == "import replacing" else "skip"
        self.memory.import_(place, on_conflict=chosen)

    def by_hand(self, step: Step) -> None:
        """Write as another program does, which knows nothing of the library."""
        self._run("INSERT INTO memories (id, content) VALUES (?, ?)", (step["id"], step["content"]))

    def damage(self, _step: Step) -> None:
        """Empty the indexes behind the library's back."""
        self._run("DELETE FROM memory_tags")
        self._run("INSERT INTO memory_index (memory_index) VALUES ('delete-all')")

    def _run(self, sql: str, values: Sequence[Any] = ()) -> None:
        connection = apsw.Connection(str(self.memory.path))
        connection.set_busy_timeout(5000)
        connection.execute(sql, values)
        connection.close()


def _fields(step: Step) -> dict[str, Any]:
    return {name: step[name] for name in ("id", "content", "tags") if name in step}


def _changes(step: Step) -> dict[str, Any]:
    return {name: step[name] for name in ("content", "tags")}


_STEPS: Final[dict[str, Callable[[Child, Step], Any]]] = {
    "store": lambda c, s: c.memory.store(**_fields(s)),
    "store old": Child.store_old,
    "store_many": lambda c, s: c.memory.store_many(_fields(it) for it in s["items"]),
    "update": lambda c, s: c.memory.update(s["id"], **_changes(s)),
    "delete": lambda c, s: c.memory.delete(s["ids"][0]),
    "delete_many": lambda c, s: c.memory.delete_many(s["ids"]),
    "archive": lambda c, s: c.memory.archive(s["ids"]),
    "unarchive": lambda c, s: c.memory.unarchive(s["ids"]),
    "promote": lambda c, s: c.memory.promote(s["id"]),
    "demote": lambda c, s: c.memory.demote(s["id"]),
    "search": Child.search,
    "by hand": Child.by_hand,
    "embed": lambda c, _: c.memory.embed(),
    "migrate": Child.migrate,
    "rollback": lambda c, _: c.memory.rollback(),
    "import": Child.import_,
    "import replacing": Child.import_,
    "export": lambda c, _: c.memory.export(c.folder / EXPORTED, format="jsonl", overwrite=True),
    "tidy": lambda c, _: c.memory.tidy(),
    "erase": lambda c, s: c.memory.erase(s["ids"], backups=s["backups"]),
    "undo": lambda c, _: c.memory.undo(),
    "backup": lambda c, _: c.memory.backup(c.folder / KEPT, overwrite=True),
    "restore": Child.restore,
    "configure": lambda c, s: c.memory.configure(**s["settings"]),
    "move": lambda c, s: c.memory.configure(**s["settings"]),
    "reject": lambda c, s: c.memory.reject(s["text"]),
    "lift": lambda c, s: c.memory.lift(s["text"]),
    "damage": Child.damage,
    "repair": lambda c, _: c.memory.check(repair=True),
}


def work(folder: Path, plan: Sequence[Step], *, tell: int, lifeline: int) -> None:
    """Do the steps, tell ``tell`` of each, and wait to be killed, or for the campaign's end."""
    try:
        child = Child(folder)
        for number, step in enumerate(plan):
            _tell(tell, "begin", number)
            _tell(tell, "end", number, list(child.do(step)))
        while os.read(lifeline, 1):
            pass
    except BaseException:  # noqa: BLE001 - the campaign must hear of whatever it was
        _tell(tell, "error", -1, [traceback.format_exc()[-3000:]])
    os._exit(0)  # as a kill does: nothing is closed


def _tell(descriptor: int, what: str, number: int, ids: Sequence[str] = ()) -> None:
    os.write(descriptor, (json.dumps([what, number, list(ids)]) + "\n").encode())


if __name__ == "__main__":
    with small_cells(are_small=SMALL_CELLS in sys.argv):
        work(Path(sys.argv[1]), json.loads(sys.stdin.readline()), tell=1, lifeline=0)

"""Fuzz of memory files that somebody crafted: each verb reads them, or refuses them with its error.

Whole pages and bytes anywhere are the business of ``damage``; here it is what a file says of
itself: its header, its schema, and the tables that indexes keep.

One thing is counted by itself (``overlaps``): a schema that lets a table begin in the middle of
another, whose rows then have values of wrong types. SQLite sees that only by looking at every page.
A file that is opened in its own place is not looked at so: then the error may be Python's. What is
imported or restored is, and has no excuse.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw

from agent_memory import AgentMemory, AgentMemoryError

from .fuzz_core import Trials, broken_unless, workplace
from .tally import Tally
from .truth import state_of
from .verbs import NAME, opened, standard

_BATCH: Final = 40
_ACTS_EACH: Final = 5


def crafted(cases: int, seed: str) -> Tally:
    """Use crafted files as a memory, as a backup, and as what is imported."""
    trials = Trials("crafted databases", seed)
    logging.getLogger("agent_memory").setLevel(logging.CRITICAL)
    with workplace() as folder:
        for name in ("template", "good"):
            (folder / name).mkdir()
            standard(folder / name)
        number = 0
        while trials.tally.cases < cases:
            number += 1
            for path, told in _made(folder, f"{seed}/{number}"):
                if trials.tally.cases < cases:
                    _use(trials, path, told, folder)
            shutil.rmtree(folder / "made")
    return trials.tally


def _made(folder: Path, seed: str) -> list[tuple[Path, str]]:
    """Let another process craft files, and return them with what was done to each."""
    made = folder / "made"
    made.mkdir()
    words = (str(folder / "template" / NAME), str(made), seed, str(_BATCH))
    place = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.survival.fuzz_planting", *words],
        cwd=place, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    return [(made / f"{n}.db", ", ".join(json.loads(line))) for n, line in enumerate(lines)]


def _use(trials: Trials, path: Path, told: str, folder: Path) -> None:
    """Do a few things with one file, each with a copy of its own."""
    for name in trials.random.sample(tuple(_ACTS), k=_ACTS_EACH):
        place = folder / "root" / "bob"
        place.mkdir(parents=True)
        shutil.copyfile(path, place / NAME)
        act = partial(_ACTS[name], place / NAME, folder)
        if name not in ("import", "restore"):
            act = partial(_excused, trials.tally, act, path)
        trials.run(act, f"{name}: {told}", allowed=(AgentMemoryError, _Overlap))
        shutil.rmtree(folder / "root")


class _Overlap(Exception):
    """The file has two tables in one tree of pages."""


def _excused(tally: Tally, act: Callable[[], object], path: Path) -> object:
    """Act; take it apart when Python fails over the rows of a file that overlaps itself."""
    try:
        return act()
    except AgentMemoryError:
        raise
    except (TypeError, ValueError, AttributeError, UserWarning) as error:
        if not _overlaps(path):
            raise
        tally.count("overlaps")
        raise _Overlap from error


def _overlaps(path: Path) -> bool:
    """Return whether a page of a file belongs to two of its tables."""
    connection = apsw.Connection(str(path))
    try:
        found = connection.execute("PRAGMA quick_check").fetchall()
        return any("2nd reference to page" in str(text) for (text,) in found)
    except apsw.Error:
        return False
    finally:
        connection.close()


def _opened(act: Callable[[AgentMemory], object]) -> Callable[[Path, Path], None]:
    def run(path: Path, _folder: Path) -> None:
        with opened(path, synchronous="NORMAL") as memory:
            act(memory)

    return run


def _imported(path: Path, folder: Path) -> None:
    """Import the file: a refusal changes nothing, and what was taken in is whole."""
    good = path.with_name("good.db")
    shutil.copyfile(folder / "good" / NAME, good)
    before = state_of(good)
    try:
        with opened(good, synchronous="NORMAL") as memory:
            memory.import_(path, on_conflict="replace")
            problems = [it.detail for it in memory.check().problems]
    except Exception:
        broken_unless(state_of(good) == before, "was refused, and changed", count="half_written")
        raise
    broken_unless(not problems, f"after the import: {problems[:3]}")


def _restored(path: Path, folder: Path) -> None:
    """Restore the file: a refusal changes nothing, and what was restored is sound."""
    good = path.with_name("good.db")
    shutil.copyfile(folder / "good" / NAME, good)
    before = state_of(good)
    try:
        AgentMemory.restore(good, path)
    except Exception:
        broken_unless(state_of(good) == before, "was refused, and changed", count="half_written")
        raise
    with opened(good, synchronous="NORMAL") as memory:
        problems = [it.detail for it in memory.check().problems]
        memory.search("harbour")
    broken_unless(not problems, f"after the restoring: {problems[:3]}")


def _backups(path: Path, folder: Path) -> None:
    place = path.parent / "backups"
    place.mkdir()
    shutil.copyfile(path, place / "memories-20260101T000000000000Z.db")
    shutil.copyfile(folder / "good" / NAME, path)
    with opened(path, synchronous="NORMAL") as memory:
        memory.backups()


def _mended(memory: AgentMemory) -> None:
    memory.check(repair=True)
    memory.store("The lantern by the walnut")
    memory.search("lantern walnut")


def _rebuilt(path: Path, folder: Path) -> None:
    AgentMemory.rebuild(path, folder / "good" / "scratchpad.yaml.backup")


def _written(memory: AgentMemory) -> None:
    memory.store("The lantern by the walnut")
    memory.update("fact-5", content="The compass")
    memory.delete("fact-6")
    memory.promote("fact-7")


def _read(memory: AgentMemory) -> list[Any]:
    memory.get("fact-5")
    memory.history()
    memory.scratchpad()
    return memory.list_recent(100, filters={"archived": None})


_ACTS: Final[dict[str, Callable[[Path, Path], object]]] = {
    "read": _opened(_read),
    "search": _opened(lambda memory: memory.search("harbour lantern 1905", shared=())),
    "write": _opened(_written),
    "check": _opened(lambda memory: memory.check()),
    "repair": _opened(_mended),
    "info": _opened(lambda memory: (memory.info(), memory.count())),
    "export": lambda path, _: _opened(lambda m: m.export(path.with_name("out.yaml")))(path, path),
    "as of": _opened(lambda memory: memory.search("harbour", as_of="2026-01-30")),
    "migrate": _opened(lambda memory: (memory.rollback(), memory.migrate())),
    "erase": _opened(lambda memory: memory.erase(["fact-1"], backups=True)),
    "undo": _opened(lambda memory: memory.undo()),
    "agents": lambda path, _: AgentMemory.agents(path.parents[1]),
    "import": _imported,
    "restore": _restored,
    "backups": _backups,
    "rebuild": _rebuilt,
}

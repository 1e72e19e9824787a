"""Fuzz of agent ids and paths: no input opens, or shows, the memory of another agent.

On a file system that folds case, two ids that differ only in case are one agent's: here they are
told apart by what the file system does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from agent_memory import AgentMemory, AgentMemoryError

from . import fuzz_texts as made
from .fuzz_core import Trials, broken_unless, workplace
from .tally import Tally
from .verbs import Words

_SECRET: Final = "the walnut is hidden in the granite harbour"
_OTHER: Final = "other"
_DEPTH: Final = 6
"""How deep below its own folder a part works: ``..`` in an input stays within that folder."""


def identified(cases: int, seed: str) -> Tally:
    """Open agents of any id, and ask for others by any name."""
    trials = Trials("agent ids and paths", seed)
    dice = trials.random
    with workplace() as folder:
        root = folder.joinpath(*("deep",) * _DEPTH, "root")
        root.mkdir(parents=True)
        os.environ["HOME"] = str(folder)
        with contextlib.chdir(root), _agent("bob", root) as bob, _agent(_OTHER, root) as other:
            bob.store("the lantern is mine", id="mine")
            other.configure(sharing="private")
            other.store(_SECRET, id="secret")
            other.backup()
            places: dict[tuple[int, int], str] = {}
            for number in range(cases):
                name = _name(dice, root)
                if number % 3 == 0:
                    trials.run(partial(_open, name, root, places), [name])
                else:
                    what = dice.choice(tuple(_ASKED))
                    trials.run(partial(_ASKED[what], bob, name), (what, [name]))
                    _refuse_secret(trials, bob, what)
    return trials.tally


def _agent(name: Any, root: Path) -> AgentMemory:
    return AgentMemory(name, root=root, embedder=Words(), synchronous="NORMAL")


def _open(name: Any, root: Path, places: dict[tuple[int, int], str]) -> None:
    """Open an agent's memory: its file must be its own, and in its own folder."""
    with _agent(name, root) as memory:
        wanted = root / name / "memories.db"
        broken_unless(memory.path == wanted, f"{memory.path} is not {wanted}")
        broken_unless(memory.path.resolve() == wanted, f"{memory.path} leads elsewhere")
        about = memory.path.stat()
        owner = places.setdefault((about.st_dev, about.st_ino), name)
        broken_unless(owner == name, f"{name!r} and {owner!r} share {memory.path}")
        found = [it.content for it in memory.list_recent(10)]
        broken_unless(name == _OTHER or _SECRET not in found, "shows another agent's memory")


def _refuse_secret(trials: Trials, bob: AgentMemory, shown: str) -> None:
    """Count it when another agent's memory came into this one."""
    if bob.count(filters={"archived": None}) != 1 or bob.get("secret") is not None:
        trials.tally.mismatches += 1
        trials.tally.note(f"fuzz, agent ids and paths: {shown} brought another agent's memory")


def _shared_search(bob: AgentMemory, name: Any) -> None:
    found = bob.search("walnut granite harbour", shared=[name] if isinstance(name, str) else name)
    told = [hit.memory.content for hit in found]
    told += [near.content for near in found.search_metadata.near_misses]
    broken_unless(_SECRET not in told, "showed another agent's memory")


def _restore(bob: AgentMemory, name: Any) -> None:
    with contextlib.suppress(AgentMemoryError):
        AgentMemory.restore(bob.path, name)
    broken_unless(bob.get("mine") is not None, "is gone", count="lost")


def _export(bob: AgentMemory, name: Any) -> None:
    theirs = bob.path.parent.parent / _OTHER / "memories.db"
    before = theirs.stat()
    with contextlib.suppress(AgentMemoryError):
        bob.export(name)
    after = theirs.stat()
    is_same = (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    broken_unless(is_same, "replaced another agent's file", count="lost")


def _read_id(bob: AgentMemory, name: Any) -> None:
    found = bob.get(name)
    broken_unless(found is None or found.content != _SECRET, "showed another agent's memory")


_ASKED: Final[dict[str, Callable[[AgentMemory, Any], object]]] = {
    "shared search": _shared_search,
    "shared": lambda bob, name: bob.shared(name),
    "restore": _restore,
    "export": _export,
    "get": _read_id,
    "filter": lambda bob, name: broken_unless(
        all(it.id == "mine" for it in bob.list_recent(10, filters={"agent_id": name})),
        "shows others",
    ),
    "backup": lambda bob, name: bob.backup(name),
}


# Names ------------------------------------------------------------------------------------------


def _name(dice: Random, root: Path) -> Any:
    """Return what somebody may take for an agent's name: none leads out of the part's folder."""
    sort = dice.random()
    if sort < 0.1:
        return _OTHER
    if sort < 0.3:
        return dice.choice(_NAMES)
    if sort < 0.4:
        return _within("".join(dice.choices("abBO-_09./\\~ \n\x00é", k=dice.randint(1, 8))))
    if sort < 0.6:
        return _within("".join(dice.choices(_PIECES, k=dice.randint(1, 4))))
    if sort < 0.7:
        return str(root / dice.choice(("other/memories.db", "../root/other", "bob", "new.db", "~")))
    if sort < 0.85:
        return dice.choice(("x", "Ab", "o", "é", "-")) * dice.choice(
            (1, 2, 63, 64, 65, 120, 200, *range(235, 257), 5000)
        )
    if sort < 0.95:
        return _within(made.text(dice)[:100])
    found = made.value(dice)
    return _within(found) if isinstance(found, str) else found


def _within(text: str) -> str:
    """Keep a text from leading out of the folder: no root, and no more steps up than it is deep."""
    while text.count("..") >= _DEPTH - 1:
        text = text.replace("..", "", 1)
    return text.lstrip("/~")


_NAMES: Final = (
    "other", "OTHER", "Other", "other ", " other", "other\n", "other\x00", "other/", "./other",
    "../root/other", "bob/../other", "other.", "other.db", "other/memories.db", "othe", "ot*",
    "o%", "other'", "other' --", "\u043ether", "\uff4f\uff54\uff48\uff45\uff52", "o\u200bther",
    "other\u0301", "", ".", "..", "...", "latest", "con", "CON", "nul", "aux", "com1", "lpt9",
    "-", "--", "_", "-rf", "0", "memories", "backups", "file:other?mode=ro", ":memory:", "shared",
    "$HOME", "%00", "%2e%2e%2fother", "a" * 64, "a" * 65, "memories.db", "memories.db-wal",
    "\ud800", "\u202erehto",
)  # fmt: skip
_PIECES: Final = (
    "../", "./", "/", "other", "bob", "root", "memories.db", "backups", "\\", "..\\", "\x00",
    "-wal", " ", "~", ".",
)  # fmt: skip

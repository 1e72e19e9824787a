"""What the power is cut under: every verb by itself, further ways to them, and verbs in a row."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from agent_memory import AgentMemory, AgentMemoryError

from .cells import KINDS, verbs_in_cells
from .verbs import AGENT, NAME, NOW, Verb, Words, keyword_only, opened, sentences, standard, verbs

Act = Callable[[AgentMemory | None, Path], object]
Again = Literal["never", "unless done", "always", "finish"]

_ERASED: Final = (b"moved to the pier", b"since 1901")
"""What was said by a memory that is erased, before and after it was changed."""
_ROW_LENGTH: Final = 12
"""Verbs in a row between an opening and a closing."""


@dataclass(frozen=True)
class Step:
    """One verb. What it did may be lost with the power unless it ``is_durable``."""

    name: str
    act: Act
    is_durable: bool = True


@dataclass(frozen=True)
class Scenario:
    """A file, and the verbs that are called on it, by the session.

    ``again`` says whether the verb can be called once more after a cut: whatever the state
    (``always``), if it had not come about (``unless done``), or whether the rest of an erasure is
    to be done. ``checkpoint`` is after how many pages the log is brought into the file.
    """

    name: str
    prepare: Callable[[Path], None]
    sessions: tuple[tuple[Step, ...], ...]
    opens: bool = False
    """The verb opens the file itself, as in ``Verb``."""
    dimensions: int = 32
    options: tuple[tuple[str, Any], ...] = ()
    place: Path = Path(NAME)
    again: Again = "never"
    checkpoint: int | None = None
    journal: Literal["auto", "rollback"] = "auto"
    """``rollback`` is how files on a network drive are written."""
    erased: tuple[bytes, ...] = ()
    """What must be in no file of the store after the acknowledgement."""
    erased_everywhere: bool = False
    """Not in the library's own backups either."""
    folder: str | None = None
    """A folder that the verb exports into."""
    in_cells: bool = False
    """As in ``Verb``."""
    was_damaged: bool = False
    """What is there before is no store, or one in which a check finds problems."""


# The verbs by themselves --------------------------------------------------------------------------

_AGAIN: Final[dict[str, Again]] = {
    **dict.fromkeys(
        ("migrate", "switch of model", "embed", "move", "tidy", "repair", "import",
         "import replacing", "restore", "new file", "schema upgrade from 6",
         "schema upgrade from 7", "schema upgrade from 9"),
        "always",
    ),
    **dict.fromkeys(("erase", "erase with backups"), "finish"),
    **dict.fromkeys(("store_many", "backup", "export", "delete_many", "undo"), "unless done"),
}  # fmt: skip


def _alone(verb: Verb) -> Scenario:
    """Make a scenario of a verb."""
    is_erasure = verb.name.startswith("erase")
    return Scenario(
        verb.name,
        verb.prepare,
        ((Step(verb.name, verb.act, is_durable=verb.name != "search"),),),
        opens=verb.opens,
        dimensions=verb.dimensions,
        options=verb.options,
        again=_AGAIN.get(verb.sort, "never"),
        erased=_ERASED if is_erasure else (),
        erased_everywhere=verb.name == "erase with backups",
        in_cells=verb.in_cells,
        was_damaged=verb.sort == "repair",
    )


# Further ways to them -----------------------------------------------------------------------------


def _damaged(folder: Path) -> None:
    """Make a store that cannot be opened, with a log beside it that would be played back."""
    standard(folder)
    file, log = folder / NAME, folder / f"{NAME}-wal"
    with opened(file) as memory:
        for number in range(4, 12):
            memory.update(f"fact-{number}", content="Something else stands there")
        written = log.read_bytes()
    file.write_bytes(b"not a database " * 600 + file.read_bytes()[9_000:])
    log.write_bytes(written)


def _without_store(folder: Path) -> None:
    standard(folder)
    (folder / NAME).unlink()


def _exported_before(folder: Path) -> None:
    """Make a store, and a folder that it was exported into when it held less."""
    standard(folder)
    with opened(folder / NAME) as memory:
        memory.export(folder / "out", format="directory")
        memory.store_many(sentences(10, start=200))
        memory.archive("fact-5")


def _new_agent(_memory: AgentMemory | None, folder: Path) -> None:
    root = folder / "deep" / "root"
    with AgentMemory(AGENT, root=root, embedder=Words(), clock=lambda: NOW) as memory:
        memory.store("the first thing that is known", id="first", session_id="session-1")


def _restored(_memory: AgentMemory | None, folder: Path) -> None:
    AgentMemory.restore(folder / NAME, folder / "kept.db", agent_id=AGENT)


def _rebuilt(_memory: AgentMemory | None, folder: Path) -> None:
    AgentMemory.rebuild(folder / NAME, folder / "scratchpad.yaml.backup", agent_id=AGENT)


def _given(memory: AgentMemory | None) -> AgentMemory:
    assert memory is not None
    return memory


def _further() -> list[Scenario]:
    def one(
        name: str, act: Act, prepare: Callable[[Path], None] = standard, **more: Any
    ) -> Scenario:
        return Scenario(name, prepare, ((Step(name, act),),), **more)

    return [
        one("first backup", lambda m, _: _given(m).backup(), keyword_only),
        one("export over another", lambda m, f: _given(m).export(f / "other.yaml", overwrite=True)),
        one("export of the file", lambda m, f: _given(m).export(f / "out.db", format="sqlite")),
        one(
            "export of a folder",
            lambda m, f: _given(m).export(f / "out", format="directory"),
            folder="out",
        ),
        one(
            "export over a folder",
            lambda m, f: _given(m).export(f / "out", format="directory", overwrite=True),
            _exported_before,
            folder="out",
            again="always",
        ),
        one(
            "new agent",
            _new_agent,
            lambda _folder: None,
            opens=True,
            place=Path("deep", "root", AGENT, NAME),
            again="always",
        ),
        one("restore over damage", _restored, _damaged, opens=True, was_damaged=True,
            again="always"),
        one("restore of nothing", _restored, _without_store, opens=True, again="always"),
        one("rebuild", _rebuilt, _damaged, opens=True, was_damaged=True, again="unless done"),
    ]  # fmt: skip


# Verbs in a row -----------------------------------------------------------------------------------


def _some(memory: AgentMemory, dice: random.Random, count: int = 1) -> list[str]:
    ids = sorted(found.id for found in memory.list_recent(500))
    return dice.sample(ids, min(count, len(ids)))


def _one(memory: AgentMemory, dice: random.Random) -> str:
    return dice.choice(_some(memory, dice, 500))


def _new(dice: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {**fields, "id": f"row-{dice.randrange(10**9)}"}
        for fields in sentences(count, start=dice.randrange(1_000, 100_000))
    ]


_Tried = Callable[[AgentMemory, Path, random.Random], object]
_ROW: Final[dict[str, tuple[int, _Tried]]] = {
    "store": (8, lambda m, _, d: m.store(**_new(d, 1)[0])),
    "store_many": (4, lambda m, _, d: m.store_many(_new(d, d.randint(2, 15)))),
    "update": (6, lambda m, _, d: m.update(_one(m, d), content=f"Changed {d.random()}")),
    "delete": (3, lambda m, _, d: m.delete(_one(m, d))),
    "delete_many": (1, lambda m, _, d: m.delete_many(_some(m, d, 3))),
    "archive": (2, lambda m, _, d: m.archive(_some(m, d, 2))),
    "promote": (2, lambda m, _, d: m.promote(_one(m, d))),
    "demote": (1, lambda m, _, d: m.demote(_one(m, d))),
    "search": (3, lambda m, _, d: m.search(d.choice(["harbour", "compass orchard", "walnut"]))),
    "undo": (3, lambda m, _, _d: m.undo()),
    "reject": (1, lambda m, _, d: m.reject(f"secret {d.randrange(1000)} word")),
    "configure": (1, lambda m, _, d: m.configure(backups_kept=d.randint(1, 5))),
    "move": (1, lambda m, _, d: m.configure(vector_index=d.choice(KINDS))),
    "import": (1, lambda m, f, _d: m.import_(f / "other.yaml", on_conflict="replace")),
    "embed": (1, lambda m, _, _d: m.embed()),
    "migrate": (1, lambda m, _, _d: m.migrate()),
    "rollback": (1, lambda m, _, _d: m.rollback()),
    "erase": (1, lambda m, _, d: m.erase(_some(m, d))),
    "backup": (1, lambda m, f, d: m.backup(f / f"second-{d.randrange(10**9)}.db")),
    "export": (1, lambda m, f, d: m.export(f / f"out-{d.randrange(10**9)}.yaml")),
}


def _in_a_row(number: int, seed: int) -> Scenario:
    """Make a scenario of verbs in a row, in two sessions, with a log that is soon brought in."""
    dice = random.Random(f"{seed}/{number}")
    weights = [weight for weight, _ in _ROW.values()]

    def step() -> Step:
        name = dice.choices(list(_ROW), weights)[0]
        tried, own = _ROW[name][1], random.Random(dice.random())

        def act(memory: AgentMemory | None, folder: Path) -> None:
            with contextlib.suppress(AgentMemoryError):  # such as nothing to undo
                tried(_given(memory), folder, own)

        return Step(name, act, is_durable=name != "search")

    sessions = tuple(tuple(step() for _ in range(_ROW_LENGTH)) for _ in range(2))
    prepare = standard if number % 2 else keyword_only
    return Scenario(
        f"row {number}",
        _with_import(prepare),
        sessions,
        checkpoint=20,
        in_cells=number % 8 > 3,
        journal="rollback" if number % 4 == 3 else "auto",
    )


def _with_import(prepare: Callable[[Path], None]) -> Callable[[Path], None]:
    def prepared(folder: Path) -> None:
        prepare(folder)
        if not (folder / "other.yaml").exists():
            with opened(folder / NAME) as memory:
                memory.export(folder / "other.yaml")

    return prepared


_WITH_ROLLBACK: Final = ("store_many", "update", "erase", "restore", "migrate", "new file")


def alone() -> list[Scenario]:
    """Return every verb by itself, some of them with a rollback journal as well."""
    scenarios = [*map(_alone, [*verbs(), *verbs_in_cells()]), *_further()]
    with_rollback = [
        replace(it, name=f"{it.name}, rollback journal", journal="rollback")
        for it in scenarios
        if it.name in _WITH_ROLLBACK
    ]
    return [*scenarios, *with_rollback]


def in_rows(count: int, seed: int) -> Sequence[Scenario]:
    """Return so many rows of verbs, settled by a seed."""
    return [_in_a_row(number, seed) for number in range(count)]

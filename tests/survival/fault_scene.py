"""What a verb is tried on with a failing disk, and what it does when the disk is sound.

That says how often the disk is asked for something, hence how many faults there are to inject, and
which states and files are right afterwards.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import apsw

from agent_memory import AgentMemory
from agent_memory.models.limits import EVENTS_FILENAME
from agent_memory.storage.sqlite.engine import SQLiteEngine

from .cells import small_cells, verbs_in_cells
from .fault_vfs import DISK
from .truth import State, disagreements, state_of
from .verbs import NAME, NOW, Verb, copied, opened, sentences, standard, verbs

PROBE: Final = "The probe was lowered into the well"
TEMPORARY: Final = "tmp"
"""The folder of temporary files of a case: the disk fails there as well."""
IS_STORE: Final = re.compile(r"(.*/)?[^./][^/]*\.db(\.replaced-TIME)?")
_ARCHIVED: Final = 11
"""The place of that column in a row of a state."""
_VECTORS: Final = (
    (
        "SELECT model, dimensions, state, is_indexed,"
        " (SELECT count(*) FROM embeddings AS e WHERE e.model_id = m.model_id)"
        " FROM embedding_models AS m ORDER BY 1, 2, 3"
    ),
    "SELECT count(*), 0, '', 0, 0 FROM embedding_queue",
)


@dataclass
class Known:
    """A memory that a verb leaves alone, and how many there are before it and after it."""

    memory_id: str = ""
    content: str = ""
    counts: tuple[int, ...] = ()


@dataclass
class Scene:
    """The prepared folder of a verb, and all that is right.

    ``asked`` is what the verb asks of the disk, by whether the log is written back after each
    commit; of that it asks the first ``acting`` before the memory is closed. ``before`` is ``None``
    where only the library can read the file. The states ``probed`` are those in which the probe
    was stored as well. ``files`` are those that the verb leaves, by a name without times and
    random parts, with a hash; ``old_files`` those that it finds.
    """

    name: str
    template: Path
    asked: dict[bool, list[str]] = field(default_factory=dict)
    acting: dict[bool, int] = field(default_factory=dict)
    before: State | None = None
    after: State = field(default_factory=dict)
    before_probed: State = field(default_factory=dict)
    after_probed: State = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    is_damaged: bool = False
    vectors: list[Any] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    old_files: dict[str, str] = field(default_factory=dict)
    stores: dict[str, list[State]] = field(default_factory=dict)
    """What the stores beside the memory may hold, by name."""

    @property
    def verb(self) -> Verb:
        """Return the verb."""
        return next(verb for verb in all_verbs() if verb.name == self.name)

    def open(self, folder: Path, *, checkpoints: bool = False) -> AgentMemory | None:
        """Open the memory that the verb is tried on, unless opening it is the verb."""
        memory = self.verb.memory(folder).__enter__()
        if memory is not None and checkpoints:
            engine = memory._store._engine
            assert isinstance(engine, SQLiteEngine)
            engine.database.run("PRAGMA wal_autocheckpoint = 1")
        return memory

    def is_done(self, folder: Path) -> bool | None:
        """Return whether the verb did its work; ``None`` where that cannot be seen."""
        new = self.files.keys() - self.old_files.keys()
        if state_of(folder / NAME) != self.after:
            return False
        if self.before != self.after:
            return True
        return new <= files_of(folder).keys() if new else None


def all_verbs() -> list[Verb]:
    """Return the verbs to try: all that write, and the opening of a file that is there."""
    return [
        *verbs(),
        Verb("export of the past", _export_past),
        Verb("open", _open, standard, opens=True),
        Verb("open after a kill", _open, killed, opens=True),
        *verbs_in_cells(),
    ]


def _export_past(memory: AgentMemory | None, folder: Path) -> None:
    assert memory is not None
    memory.export(folder / "out.yaml", as_of=NOW - timedelta(hours=1))


def _open(_memory: AgentMemory | None, folder: Path) -> None:
    opened(folder / NAME).close()


def killed(folder: Path) -> None:
    """Make a store of which the last commits are in its log alone."""
    standard(folder)
    child = os.fork()
    if not child:
        memory = opened(folder / NAME)
        memory.store_many(sentences(3, start=70))
        memory.update("fact-5", content="Changed in the last moment")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (folder / f"{NAME}-wal").stat().st_size


# Seeing what is right -------------------------------------------------------------------------


def surveyed(verb: Verb, folder: Path, *, more: int = 0, start: int = 1_000) -> Scene:
    """Prepare a verb in an empty folder and see what it does, on a store of ``more`` memories."""
    with small_cells(are_small=verb.in_cells):
        return _surveyed(verb, folder, more=more, start=start)


def _surveyed(verb: Verb, folder: Path, *, more: int, start: int) -> Scene:
    scene = Scene(verb.name, folder / "template")
    scene.template.mkdir()
    verb.prepare(scene.template)
    if more and not verb.opens:
        with opened(scene.template / NAME) as memory:
            memory.store_many(sentences(more, start=start))
    scene.old_files = {name: digest(path) for name, path in files_of(scene.template).items()}
    _see_before(scene, folder)
    _see_after(scene, folder, checkpoints=False)
    if not verb.opens:
        _see_after(scene, folder, checkpoints=True)
        _see_probed(scene, folder)
    return scene


def fresh_copy(scene: Scene, place: Path) -> Path:
    """Make a folder for a case, with a place for temporary files."""
    copied(scene.template, place)
    (place / TEMPORARY).mkdir()
    tempfile.tempdir = str(place / TEMPORARY)
    return place


def _see_before(scene: Scene, folder: Path) -> None:
    place = fresh_copy(scene, folder / "before")
    with suppress(apsw.Error):
        scene.before = state_of(place / NAME)
        scene.is_damaged = bool(disagreements(place / NAME))
    for name, path in files_of(place).items():
        if IS_STORE.fullmatch(name):
            scene.stores.setdefault(name, []).extend(_states(path))


def _see_after(scene: Scene, folder: Path, *, checkpoints: bool) -> None:
    place = fresh_copy(scene, folder / f"after-{checkpoints}")
    memory = scene.open(place, checkpoints=checkpoints)
    DISK.watch(place)
    scene.verb.act(memory, place)
    scene.acting[checkpoints] = len(DISK.asked)
    if memory is not None:
        memory.close()
    DISK.mend()
    scene.asked[checkpoints] = DISK.asked
    scene.after = state_of(place / NAME)
    scene.vectors = vectors_of(place / NAME)
    found = files_of(place)
    scene.files = {name: digest(path) for name, path in found.items()}
    for name in [name for name in found if IS_STORE.fullmatch(name)]:
        old = [] if scene.before is None else [scene.before]
        old += [scene.after] if scene.verb.opens else []
        scene.stores.setdefault(name, []).extend([*_states(found[name]), *old])


def _states(path: Path) -> list[State]:
    with suppress(apsw.Error):
        state = state_of(path)
        # An erasure that failed in the store and is done again marks its backups again.
        return [state, {**state, "operations": (*state["operations"], *state["operations"][-1:])}]
    return []  # of an older schema: opened by the library, it is as the memory is afterwards


def _see_probed(scene: Scene, folder: Path) -> None:
    assert scene.before is not None
    same = set(scene.before["memories"]) & set(scene.after["memories"])
    row = max(row for row in same if not row[_ARCHIVED])
    counts = []
    for acts in (False, True):
        place = fresh_copy(scene, folder / f"probed-{acts}")
        memory = scene.open(place)
        assert memory is not None
        if acts:
            scene.verb.act(memory, place)
        counts.append(memory.count())
        scene.known = Known(row[0], row[1], tuple(counts))
        problem = probe(memory, scene.known)
        assert problem is None, f"{scene.name}: {problem}"
        memory.close()
        state = state_of(place / NAME)
        if acts:
            scene.after_probed = state
        else:
            scene.before_probed = state


def probe(memory: AgentMemory, known: Known) -> str | None:
    """Use a memory as anyone would; say what is wrong."""
    there = memory.get(known.memory_id)
    if there is None or there.content != known.content:
        return f"get gave {there}"
    if memory.count() not in known.counts:
        return f"count gave {memory.count()}, not one of {known.counts}"
    hits = memory.search(known.content, limit=1)
    if [hit.memory.id for hit in hits] != [known.memory_id]:
        return f"search for {known.memory_id} gave {[hit.memory.id for hit in hits]}"
    memory.store(PROBE, id="probe")
    there = memory.get("probe")
    return None if there is not None and there.content == PROBE else f"probe gave {there}"


# Files ----------------------------------------------------------------------------------------


def files_of(folder: Path) -> dict[str, Path]:
    """Return the files beside the memory, by their names without times and random parts."""
    # The event log is a diary: of what cannot be written there no verb fails.
    own = {NAME, f"{NAME}-wal", f"{NAME}-shm", EVENTS_FILENAME}
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in own:
            found[_plain(name)] = path
    return found


def _plain(name: str) -> str:
    if name.startswith(f"{TEMPORARY}/"):
        return f"{TEMPORARY}/*"
    return re.sub(r"\.[0-9a-f]{8}(?=$|-)", ".RANDOM", re.sub(r"\d{8}T\d{12}Z?", "TIME", name))


def digest(path: Path) -> str:
    """Return a hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def vectors_of(path: Path) -> list[Any]:
    """Return the models of a file that nobody has open, how many vectors each has, what waits."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return [row for sql in _VECTORS for row in connection.execute(sql)]
    finally:
        connection.close()

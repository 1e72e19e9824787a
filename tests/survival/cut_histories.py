"""A scenario as it ran: all that the disk was asked, and what was promised at each moment."""

from __future__ import annotations

import contextlib
import hashlib
import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal
from unittest.mock import patch

import apsw

from agent_memory import AgentMemory, AgentMemoryError
from agent_memory.models.limits import EVENTS_FILENAME
from agent_memory.runtime.files import SIDE_FILES
from agent_memory.services import pending_accesses
from agent_memory.storage.sqlite.connection import Database, database, opening
from agent_memory.storage.sqlite.connection.journal_mode import Journal
from agent_memory.storage.sqlite.engine import SQLiteEngine

from .cut_disks import Disk, Event, Mark, Names, Sync, SyncFolder, Tree, Truncate, Write
from .cut_scenarios import Scenario
from .recording_vfs import Record, recording
from .truth import State, state_of
from .verbs import AGENT, NOW, opened

Synchronous = Literal["FULL", "NORMAL", "OFF"]
SHARED_MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files are made: it is not the real disk that is tried here."""
_SIDE_FILES: Final = (*SIDE_FILES, "-lock", "-migration")
Digests = dict[Path, bytes]


@dataclass(frozen=True)
class Border:
    """The moment at which a step begins or is acknowledged."""

    position: int
    mark: Mark
    state: int
    """The number of the state that it is in."""
    files: Digests
    """The files that have their final names, but for the store itself."""


@dataclass
class History:
    """What happened, what the states were, and where the steps begin and end.

    A position is the number of events before it. ``states`` are those that the store passes
    through if nothing is lost, each with the position from which on it is so.
    """

    scenario: Scenario
    base: Tree
    events: list[Event]
    states: list[tuple[int, State]] = field(default_factory=list)
    borders: list[Border] = field(default_factory=list)
    stores: dict[bytes, State] = field(default_factory=dict)
    """The states of other stores, such as backups, by the hash of the file."""
    folders: list[State | None] = field(default_factory=list)
    """What the exported folder holds at each border."""

    @cached_property
    def turns(self) -> list[int]:
        """The positions at which something other than a write is asked."""
        return [
            position
            for position, event in enumerate(self.events, 1)
            if not isinstance(event, (Write, Mark))
        ]

    @cached_property
    def contests(self) -> list[int]:
        """The positions at which one new name may be on the disk and another not."""
        disk, positions = Disk(self.base), []
        for position, event in enumerate(self.events, 1):
            disk.take(event)
            if len(disk.names) > 1:
                positions.append(position)
        return positions

    def acknowledged(self, position: int) -> Border:
        """Return the last border at which nothing was under way; at first the beginning."""
        done = [it for it in self.borders if it.position <= position and it.mark.is_done]
        return done[-1]

    def under_way(self, position: int) -> Border | None:
        """Return the border at which what is under way will be acknowledged."""
        index = bisect_right(self.borders, position, key=lambda it: it.position)
        if not self.borders[index - 1].mark.is_done and index < len(self.borders):
            return self.borders[index]
        return None

    def allowed(self, position: int) -> list[State]:
        """Return the states in which the store may be: none that is older than what is promised."""
        steps = [step for session in self.scenario.sessions for step in session]
        promised = [
            it.state
            for it in self.borders
            if it.position <= position
            and it.mark.is_done
            and (it.mark.step < 0 or steps[it.mark.step].is_durable)
        ]
        latest = bisect_right(self.states, position, key=lambda it: it[0])
        return [state for _, state in self.states[max(promised[-1], 0) : latest + 1]]

    def passed_through(self, step: int) -> int:
        """Return how many states a step passes through, that before it and that after it too."""
        begin, end = (it.position for it in self.borders if it.mark.step == step)
        first = bisect_right(self.states, begin, key=lambda it: it[0])
        return 1 + bisect_right(self.states, end, key=lambda it: it[0]) - first

    def position_after(self, number: int) -> int:
        """Return the position at which a step is acknowledged, of as many as there are."""
        done = [it.position for it in self.borders[1:] if it.mark.is_done]
        return done[number % len(done)]


def is_kept(place: Path) -> bool:
    """Return whether a file has a final name, so that it must be whole. ``-wal`` is none.

    Nor is the event log, which a power cut may shorten: nothing is read back from it.
    """
    hidden = any(part.startswith(".") for part in place.parts)
    return not (hidden or place.name.endswith(_SIDE_FILES) or place.name == EVENTS_FILENAME)


def kept_files(tree: Tree, store: Path) -> Digests:
    """Return the files that have final names, but for the store itself, with a hash of each.

    The log of another store, such as a backup that is being changed, belongs to its content.
    """
    files: Digests = {}
    for place, content in tree.files().items():
        if place != store and is_kept(place):
            log = tree.find(place.with_name(f"{place.name}-wal"))
            hashed = hashlib.blake2b(content, digest_size=16)
            hashed.update(b"" if log is None else tree.contents[log])
            files[place] = hashed.digest()
    return files


# Running ------------------------------------------------------------------------------------------


def run(scenario: Scenario, synchronous: Synchronous = "FULL") -> History:
    """Run a scenario and return what happened."""
    with TemporaryDirectory(dir=SHARED_MEMORY) as base:
        folder = Path(base) / "case"
        folder.mkdir(mode=0o700)
        scenario.prepare(folder)
        with _synchronous(synchronous), recording(folder, syncs=synchronous != "OFF") as record:
            _perform(scenario, folder, record, synchronous)
        return _told(History(scenario, record.base, record.events), Path(base) / "look")


def _perform(scenario: Scenario, folder: Path, record: Record, synchronous: Synchronous) -> None:
    number = 0
    options = dict(scenario.options)
    if synchronous == "NORMAL":
        options["synchronous"] = synchronous
    for session in scenario.sessions:
        with (
            nullcontext()
            if scenario.opens
            else opened(folder / scenario.place, dimensions=scenario.dimensions, **options)
        ) as memory:
            if memory is not None and scenario.checkpoint is not None:
                engine = memory._store._engine
                assert isinstance(engine, SQLiteEngine)
                engine.database.run(f"PRAGMA wal_autocheckpoint = {scenario.checkpoint}")
            for step in session:
                record.begin(number)
                step.act(memory, folder)
                record.done(number)
                number += 1


@contextlib.contextmanager
def _synchronous(synchronous: Synchronous) -> Iterator[None]:
    """Let no connection wait for the disk, if it is ``OFF``; and count nothing in the background.

    What a thread of the library's writes half a second later would come at another place in each
    run.
    """
    original = opening.open_connection

    def open_careless(*values: Any, **named: Any) -> tuple[apsw.Connection, Journal]:
        connection, journal = original(*values, **named)
        connection.pragma("synchronous", "OFF")
        return connection, journal

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(pending_accesses, "_FLUSH_AFTER_SECONDS", 3_600))
        if synchronous == "OFF":
            stack.enter_context(patch.object(database, "open_connection", open_careless))
            as_it_is = patch.object(
                Database, "_waiting_for_the_disk", lambda *_values, **_named: nullcontext()
            )
            stack.enter_context(as_it_is)
        yield


# Telling ------------------------------------------------------------------------------------------


def _told(history: History, look: Path) -> History:
    """Play the record back, losing nothing, and note the states and the borders."""
    place, tree = history.scenario.place, history.base.copied()
    _note_state(history, tree, 0, look)
    _note_border(history, tree, 0, Mark(-1, is_done=True), look)
    for position, event in enumerate(history.events, 1):
        if isinstance(event, (Write, Truncate, Names)):
            tree.change(event)
            continue
        if isinstance(event, Mark) or _is_of(event, tree, place):
            _note_state(history, tree, position, look)
        if isinstance(event, Mark):
            _note_border(history, tree, position, event, look)
    _note_state(history, tree, len(history.events), look)
    return history


def _is_of(event: Sync | SyncFolder, tree: Tree, place: Path) -> bool:
    """Return whether a sync is of a store or its log, or of the folder in which they are."""
    if isinstance(event, SyncFolder):
        return True
    log = place.with_name(f"{place.name}-wal")
    return event.file in (tree.find(place), tree.find(log))


def _note_state(history: History, tree: Tree, position: int, look: Path) -> None:
    scenario = history.scenario
    state = state_in(tree, scenario.place, look, opens=scenario.opens)
    if state is not None and (not history.states or history.states[-1][1] != state):
        history.states.append((position, state))


def _note_border(history: History, tree: Tree, position: int, mark: Mark, look: Path) -> None:
    files = kept_files(tree, history.scenario.place)
    for place, found in files.items():
        number = tree.find(place)
        assert number is not None
        is_database = tree.contents[number].startswith(b"SQLite format 3\0")
        if is_database and found not in history.stores:
            state = state_in(tree, place, look)
            if state is not None:
                history.stores[found] = state
    history.borders.append(Border(position, mark, len(history.states) - 1, files))
    if history.scenario.folder is not None:
        history.folders.append(folder_in(tree, Path(history.scenario.folder), look))


def state_in(tree: Tree, place: Path, look: Path, *, opens: bool = False) -> State | None:
    """Return the state of a store in a tree; ``None`` where there is none, or none to be read.

    Where it is the opening that is tried, and for an older store, that is the state in which the
    library finds it: whatever an opening does is done.
    """
    if tree.find(place) is None:
        return None
    path = look / place.name
    with _private(look):
        for suffix in ("", "-wal", "-journal"):
            number = tree.find(place.with_name(place.name + suffix))
            if number is not None:
                path.with_name(path.name + suffix).write_bytes(tree.contents[number])
        with contextlib.suppress(apsw.Error):
            if not opens:
                return state_of(path)
        with contextlib.suppress(AgentMemoryError, apsw.Error):
            AgentMemory.open(path, create=False, agent_id=AGENT, embedder=None).close()
            return state_of(path)
    return None


def folder_in(tree: Tree, place: Path, look: Path) -> State | None:
    """Return what the library reads of an exported folder; ``None`` where there is nothing."""
    number = tree.find(place)
    if number is None:
        return None
    with _private(look):
        part = Tree(tree.folders | {-1: {place.name: number}}, tree.contents)
        part.write_to(look / "part")
        return read_folder(look / "part" / place.name)


def read_folder(folder: Path) -> State | None:
    """Take an exported folder into a new store, and return its state without what is made anew."""
    with TemporaryDirectory(dir=SHARED_MEMORY) as base:
        new = Path(base) / "read.db"
        with AgentMemory.open(new, agent_id=AGENT, embedder=None, clock=lambda: NOW) as memory:
            try:
                memory.import_(folder, format="directory")
            except AgentMemoryError:
                return None
        return {"memories": state_of(new)["memories"]}


@contextlib.contextmanager
def _private(folder: Path) -> Iterator[None]:
    folder.mkdir(mode=0o700)
    try:
        yield
    finally:
        for root, folders, names in os.walk(folder, topdown=False):
            for name in names:
                Path(root, name).unlink()
            for name in folders:
                Path(root, name).rmdir()
        folder.rmdir()

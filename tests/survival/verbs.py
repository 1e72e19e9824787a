"""Every public verb that writes: the file that it is tried on, and what is called.

All is settled by the file and the call (ids, times, vectors), so that a verb that ran clean says
what the state after it must be.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch
from zlib import crc32

from agent_memory import AgentMemory
from agent_memory.runtime.files import open_private
from agent_memory.storage import code_search
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.connection.journal_mode import JOURNAL_VARIABLE

NOW: Final = datetime(2026, 1, 30, 16, 0, tzinfo=UTC)
AGENT: Final = "bob"
NAME: Final = "memories.db"
_SUBJECTS: Final = "harbour lantern violet granite orchard compass thimble walnut".split()


class Words:
    """An embedder: texts that share words are near. It needs nothing, and says the same always."""

    def __init__(self, dimensions: int = 32) -> None:
        self.dimensions = dimensions
        self.model = f"words-{dimensions}"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.01] * self.dimensions
        for word in re.findall(r"\w+", text.lower()):
            hashed = crc32(word.encode())
            vector[hashed % self.dimensions] += 1.0
            vector[hashed // 7 % self.dimensions] -= 0.5
        return vector


def opened(path: Path, *, dimensions: int = 32, **options: Any) -> AgentMemory:
    """Open the file of a case as all cases do: the clock stands still."""
    chosen = {"agent_id": AGENT, "session_id": "session-1", "clock": lambda: NOW}
    return AgentMemory.open(path, embedder=Words(dimensions), **{**chosen, **options})


def sentences(count: int, *, start: int = 0) -> list[dict[str, Any]]:
    """Return memories to store, each unlike the others."""
    return [
        {
            "id": f"fact-{number}",
            "content": f"The {_SUBJECTS[number % 8]} number {number} stands by the"
            f" {_SUBJECTS[number // 8 % 8]} since {1900 + number}",
            "tags": [_SUBJECTS[number % 8], f"t{number % 3}"],
            "metadata": {"number": number},
            "timestamp": NOW - timedelta(days=number % 50),
        }
        for number in range(start, start + count)
    ]


@dataclass(frozen=True)
class Verb:
    """One verb, and how to try it.

    ``prepare`` makes the file, and whatever else the verb needs, in an empty folder. ``act`` is
    called with the opened memory, unless ``opens``: then it is given ``None``, and opening the file
    is what is tried. ``dimensions`` of the embedder while it acts.
    """

    name: str
    act: Callable[[AgentMemory | None, Path], object]
    prepare: Callable[[Path], None] = lambda folder: standard(folder)  # noqa: PLW0108 - it is below
    opens: bool = False
    dimensions: int = 32
    options: tuple[tuple[str, Any], ...] = ()
    """What the file is opened with while the verb acts."""
    in_cells: bool = False
    """It is tried, from the preparing to the judging, with ``small_cells``."""

    @property
    def sort(self) -> str:
        """Return the name without what the verb is tried on."""
        return self.name.partition(",")[0]

    def run(self, folder: Path) -> None:
        """Open the file, act, and close it."""
        with self.memory(folder) as memory:
            self.act(memory, folder)

    def memory(self, folder: Path) -> AbstractContextManager[AgentMemory | None]:
        """Open the file that the verb is tried on, unless opening it is the verb."""
        if self.opens:
            return nullcontext()
        return opened(folder / NAME, dimensions=self.dimensions, **dict(self.options))


# The files that verbs are tried on ------------------------------------------------------------


def _made_once(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """Make files once in a process, and write the same again: a sixth of a campaign made them."""
    made: dict[object, dict[Path, bytes]] = {}

    @wraps(make)
    def written(folder: Path) -> None:
        sort = os.environ.get(JOURNAL_VARIABLE), code_search.EXACT_UP_TO
        if sort not in made:
            with TemporaryDirectory() as name:
                make(own := Path(name))
                files = [path for path in own.rglob("*") if path.is_file()]
                made[sort] = {path.relative_to(own): path.read_bytes() for path in files}
        for place, content in made[sort].items():
            (folder / place).parent.mkdir(mode=0o700, exist_ok=True)
            with open(folder / place, "wb", opener=open_private) as file:
                file.write(content)

    return written


@_made_once
def keyword_only(folder: Path) -> None:
    """Make a store as it grows in use: changed, deleted, archived, promoted, rejected, found."""
    with opened(folder / NAME) as memory:
        memory.configure(event_log="full")  # that it cannot be written must fail nothing
        memory.store_many(sentences(12))
        memory.update("fact-1", content="The lantern was moved to the pier", tags=["pier"])
        memory.delete("fact-2")
        memory.archive("fact-3")
        memory.promote("fact-4")
        memory.demote("fact-11")
        memory.reject("hunter2 was the password", reason="old")
        memory.search("compass")


@_made_once
def standard(folder: Path) -> None:
    """Make the same with vectors, a backup, and an export of eight memories more."""
    keyword_only(folder)
    with opened(folder / NAME) as memory:
        memory.migrate()
        memory.backup(folder / "kept.db")
    with opened(folder / "other.db") as other:
        other.store_many([*sentences(3, start=20), *sentences(5, start=40)])
        other.export(folder / "other.yaml")
    _discard(folder / "other.db")


def unembedded(folder: Path) -> None:
    """Make the standard store, and let another program write two rows into it."""
    standard(folder)
    database = Database(folder / NAME)
    with database.write():
        for number in (1, 2):
            database.run(
                "INSERT INTO memories (id, content, timestamp, updated_at) VALUES (?, ?, ?, ?)",
                (
                    f"by-hand-{number}",
                    f"written by hand {number}",
                    *["2026-01-29T00:00:00.000000Z"] * 2,
                ),
            )
    database.close()


def aged(folder: Path) -> None:
    """Make a store in which a tidying finds something to do."""
    long_ago = NOW - timedelta(days=400)
    with opened(folder / NAME, clock=lambda: long_ago) as memory:
        memory.store_many([{**fields, "timestamp": long_ago} for fields in sentences(6, start=60)])
        for number in range(60, 66):
            memory.demote(f"fact-{number}")
        memory.configure(retention="standard")
    with opened(folder / NAME) as memory:
        memory.store_many(sentences(6))


def questioned(folder: Path) -> None:
    """Make the standard store, with a memory that a conversation put in question."""
    standard(folder)
    with opened(folder / NAME) as memory:
        memory.add("Forget the thimble number 6.", llm=_decides, may_delete=False)


def damaged_index(folder: Path) -> None:
    """Make a store whose keyword index and tags lag behind its memories."""
    standard(folder)
    database = Database(folder / NAME)
    with database.write():
        triggers = database.rows(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'memories'"
        )
        for name, _ in triggers:
            database.run(f"DROP TRIGGER {name}")
        database.run("UPDATE memories SET content = 'The walnut is ripe' WHERE id = 'fact-5'")
        database.run("UPDATE memories SET tags = '[\"ripe\"]' WHERE id = 'fact-6'")
        for _, sql in triggers:
            database.run(sql)
    database.close()


def older(version: int) -> Callable[[Path], None]:
    """Make files as the library did when it had so many migrations."""

    def prepare(folder: Path) -> None:
        shipped = schema.migrations()
        with patch.object(schema, "migrations", lambda: shipped[:version]):
            database = Database(folder / NAME)
            schema.upgrade(database, now="2026-01-28T12:00:00.000000Z", before_upgrade=lambda: None)
            with database.write():
                for fields in sentences(12):
                    database.run(
                        "INSERT INTO memories (id, content, timestamp, updated_at)"
                        " VALUES (?, ?, ?, ?)",
                        (fields["id"], fields["content"], *["2026-01-28T12:00:00.000000Z"] * 2),
                    )
            database.close()

    return prepare


def nothing(folder: Path) -> None:
    """Make no file."""


def _discard(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def copied(template: Path, folder: Path) -> None:
    """Make a folder like one that was prepared."""
    shutil.copytree(template, folder)


# The verbs ------------------------------------------------------------------------------------


def _search(memory: AgentMemory, _folder: Path) -> None:
    assert memory.search("compass orchard")
    memory.info()  # writes what was counted


def _open(_memory: AgentMemory | None, folder: Path) -> None:
    opened(folder / NAME).close()


def _restore(memory: AgentMemory, folder: Path) -> None:
    AgentMemory.restore(memory.path, folder / "kept.db")


def _decides(_messages: object, schema: dict[str, Any]) -> dict[str, Any]:
    """Answer as a language model: one memory says something new, and another is to be forgotten."""
    if schema["title"] == "extracted_facts":
        return {"facts": ["The granite number 11 is the harbour's", "Forget the thimble number 6"]}
    told = {"confidence": 1.0, "reasoning": ""}
    return {
        "memory": [
            {**told, "event": "UPDATE", "id": "0", "facts": [0], "text": "The granite went away"},
            {**told, "event": "DELETE", "id": "5", "facts": [1], "text": ""},
        ]
    }


def _add(memory: AgentMemory, _folder: Path) -> None:
    memory.add("The granite number 11 is the harbour's. Forget the thimble number 6.", llm=_decides)


def _approve(memory: AgentMemory, _folder: Path) -> None:
    memory.approve(memory.reviews()[0].review_id)


_DELETED_ID: Final = "fact-0"
_VERBS: Final[dict[str, Callable[[AgentMemory, Path], object]]] = {
    "store": lambda m, _: m.store("A new fact about the walnut", id="new-1", tags=["fresh"]),
    "store_many": lambda m, _: m.store_many(sentences(25, start=100)),
    "update": lambda m, _: m.update("fact-5", content="Changed wholly", tags=["changed"]),
    "delete": lambda m, _: m.delete(_DELETED_ID),
    "delete_many": lambda m, _: m.delete_many(["fact-6", "fact-7", "fact-8"]),
    "archive": lambda m, _: m.archive(["fact-9", "fact-10"]),
    "promote": lambda m, _: m.promote("fact-11"),
    "demote": lambda m, _: m.demote("fact-4"),
    "search": _search,
    "context": lambda m, _: m.context(),
    "configure": lambda m, _: m.configure(on_duplicate="keep", backups_kept=2),
    "reject": lambda m, _: m.reject("the staging password"),
    "lift": lambda m, _: m.lift("hunter2 was the password"),
    "import": lambda m, f: m.import_(f / "other.yaml"),
    "import replacing": lambda m, f: m.import_(f / "other.yaml", on_conflict="replace"),
    "export": lambda m, f: m.export(f / "out.yaml"),
    "merge": lambda m, _: m.merge("fact-9", ["fact-10", "fact-5"]),
    "undo": lambda m, _: m.undo(),
    "erase": lambda m, _: m.erase(["fact-1", "fact-5"]),
    "erase with backups": lambda m, _: m.erase(["fact-1"], backups=True),
    "backup": lambda m, f: m.backup(f / "second.db"),
    "restore": _restore,
    "rollback": lambda m, _: m.rollback(),
    "add": _add,
    "delete_all": lambda m, _: m.delete_all(filters={"tags": ["t1"]}),
}


def simple_verbs() -> dict[str, Callable[[AgentMemory, Path], object]]:
    """Return those that are one call on the standard store."""
    return _VERBS


def verbs() -> list[Verb]:
    """Return all verbs that write."""
    simple = [Verb(name, act) for name, act in _VERBS.items()]  # type: ignore[arg-type]
    return [
        *simple,
        Verb("embed", lambda m, _: _given(m).embed(), unembedded),
        Verb("migrate", lambda m, _: _given(m).migrate(), keyword_only),
        Verb("switch of model", lambda m, _: _given(m).migrate(), dimensions=48),
        Verb("tidy", lambda m, _: _given(m).tidy(), aged),
        Verb("approve", _approve, questioned),  # type: ignore[arg-type]
        Verb("repair", lambda m, _: _given(m).check(repair=True), damaged_index),
        Verb("new file", _open, nothing, opens=True),
        Verb("schema upgrade from 6", _open, older(6), opens=True),
        Verb("schema upgrade from 7", _open, older(7), opens=True),
        Verb("schema upgrade from 9", _open, older(9), opens=True),
        Verb("schema upgrade from 10", _open, older(10), opens=True),
    ]


def _given(memory: AgentMemory | None) -> AgentMemory:
    assert memory is not None
    return memory

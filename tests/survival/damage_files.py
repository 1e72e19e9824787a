"""The files that are damaged, and the ways in which they are."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Final

from .runner import run_parts
from .tally import Tally
from .truth import State, state_of
from .verbs import NAME, aged, keyword_only, opened, sentences, standard

PAGE: Final = 8192
_FRAME: Final = 24 + PAGE
_LOG_HEADER: Final = 32
_HEADER_FIELDS: Final = (
    0, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 27, 28, 31, 32, 35, 36, 39, 40, 43, 44, 47, 52, 55,
    56, 59, 60, 63, 64, 67, 68, 71, 72, 92, 95, 96, 99,
)  # fmt: skip
_LEAF_OF_TABLE: Final = 13


@dataclass(frozen=True)
class Base:
    """A sound file in a folder of its own, with a backup beside it: ``kept.db``.

    ``states`` are those that its log leads to, one for each commit in it, the newest last: a log
    that is cut off or spoilt ends where it is spoilt, and nobody can tell that there was more.
    """

    name: str
    folder: Path
    states: tuple[State, ...]
    backup: State

    @property
    def whole(self) -> State:
        """The state of the file that was not damaged."""
        return self.states[-1]


@dataclass(frozen=True)
class Damage:
    """One way of damaging a base: ``do`` is given a copy of its folder."""

    base: Base
    kind: str
    detail: str
    do: Callable[[Path], None]

    def __str__(self) -> str:
        return f"{self.base.name}, {self.kind}, {self.detail}"

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is left of the file: to SQLite, one byte is none either."""
        return self.detail in ("to 0 bytes", "to 1 bytes")


# Bases ------------------------------------------------------------------------------------------


def long_texts(folder: Path) -> None:
    """Make a store of 200 memories, many longer than a page, with vectors."""
    rng = random.Random(7)
    words = [f"word{number}" for number in range(2_000)]
    with opened(folder / NAME) as memory:
        for start in (0, 100):
            memory.store_many(
                {
                    **fields,
                    "content": f"{fields['content']} {' '.join(rng.choices(words, k=length))}",
                }
                for fields in sentences(100, start=start)
                for length in [rng.choice((3, 10, 10, 40, 40, 1_000))]
            )
        memory.update("fact-7", content="The compass was mended", metadata={"long": "x" * 9_000})
        memory.delete("fact-8")
        memory.migrate()
        memory.backup(folder / "kept.db")


def _with_backup(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        make(folder)
        if not (folder / "kept.db").exists():
            with opened(folder / NAME) as memory:
                memory.backup(folder / "kept.db")

    return prepare


def _with_log(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """Leave what was committed last in the log, as a process does that is killed."""

    def prepare(folder: Path) -> None:
        _with_backup(make)(folder)
        run_parts([lambda: _commit_and_die(folder)], timeout_seconds=60)

    return prepare


def _commit_and_die(folder: Path) -> Tally:
    memory = opened(folder / NAME)
    memory.store_many(sentences(4, start=300))
    memory.update("fact-1", content="The lantern is in the log")
    memory.delete("fact-5")
    memory.promote("fact-9")
    memory.store("The last that was committed", id="last", tags=["log"])
    os._exit(0)


_MAKERS: Final[dict[str, Callable[[Path], None]]] = {
    "standard": _with_backup(standard),
    "standard with a log": _with_log(standard),
    "keywords": _with_backup(keyword_only),
    "aged": _with_backup(aged),
    "long texts": _with_backup(long_texts),
    "long texts with a log": _with_log(long_texts),
}


def make_bases(folder: Path) -> list[Base]:
    """Make all bases."""
    bases = []
    for number, (name, make) in enumerate(_MAKERS.items()):
        place = folder / f"base-{number}"
        place.mkdir()
        make(place)
        bases.append(Base(name, place, _states(place), _state_of_copy(place, "kept.db", None)))
    return bases


def _states(folder: Path) -> tuple[State, ...]:
    log = folder / f"{NAME}-wal"
    data = log.read_bytes() if log.exists() else b""
    commits = [_LOG_HEADER, *_commits(data)] if data else [0]
    return tuple(_state_of_copy(folder, NAME, data[:end]) for end in commits)


def _commits(log: bytes) -> Iterator[int]:
    """Yield where each commit in a log ends."""
    for start in range(_LOG_HEADER, len(log) - _FRAME + 1, _FRAME):
        is_of_this_log = log[start + 8 : start + 16] == log[16:24]
        if is_of_this_log and struct.unpack_from(">I", log, start + 4)[0]:
            yield start + _FRAME


def _state_of_copy(folder: Path, name: str, log: bytes | None) -> State:
    copy = folder / f"look-{NAME}"
    try:
        copy.write_bytes((folder / name).read_bytes())
        if log:
            copy.with_name(f"{copy.name}-wal").write_bytes(log)
        return state_of(copy)
    finally:
        for suffix in ("", "-wal", "-shm"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)


# Damages ----------------------------------------------------------------------------------------


def plan(bases: list[Base], cases: int, seed: int) -> list[Damage]:
    """Return at least so many damages: all kinds in turn, of each every page, as far as it goes.

    What is over goes to single bits, anywhere.
    """
    rng = random.Random(seed)
    every = [list(made) for base in bases for made in _ways(base, bases, rng)]
    for made in every:
        rng.shuffle(made)
    chosen = list(islice(_in_turn(every), cases))
    bits = (_bit(bases[number % len(bases)], rng) for number in count())
    return chosen + list(islice(bits, max(0, cases - len(chosen))))


def _in_turn(every: list[list[Damage]]) -> Iterator[Damage]:
    for place in range(max(map(len, every))):
        yield from (made[place] for made in every if place < len(made))


def _ways(base: Base, bases: list[Base], rng: random.Random) -> Iterator[Iterator[Damage]]:
    yield _pages(base, bases, rng)
    yield (_bit(base, rng) for _ in range(60))
    yield _headers(base, rng)
    yield _lengths(base, rng)
    yield _pointers(base, rng)
    yield _logs(base, bases, rng)


def patched(name: str, offset: int, data: bytes) -> Callable[[Path], None]:
    """Return what writes bytes over those of a file in a folder."""

    def do(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.seek(offset)
            file.write(data)

    return do


def _pages(base: Base, bases: list[Base], rng: random.Random) -> Iterator[Damage]:
    whole = (base.folder / NAME).read_bytes()
    other = (next(it for it in bases if it is not base).folder / NAME).read_bytes()
    for start in range(0, len(whole), PAGE):
        page, another = whole[start : start + PAGE], rng.randrange(len(whole) // PAGE) * PAGE
        for fill, data in {
            "zeros": bytes(PAGE),
            "ones": b"\xff" * PAGE,
            "chance": rng.randbytes(PAGE),
            f"page {another // PAGE + 1}": whole[another : another + PAGE],
            "itself, shifted": page[16:] + page[:16],
            "a page of another file": (other[start : start + PAGE] or other[-PAGE:]),
            "itself, torn": page[: PAGE // 2] + bytes(PAGE // 2),
        }.items():
            detail = f"page {start // PAGE + 1} is {fill}"
            yield Damage(base, "page", detail, patched(NAME, start, data))


def _bit(base: Base, rng: random.Random) -> Damage:
    whole = (base.folder / NAME).read_bytes()
    offset, bit = rng.randrange(len(whole)), rng.randrange(8)
    data = bytes([whole[offset] ^ 1 << bit])
    return Damage(base, "bit", f"bit {bit} of byte {offset}", patched(NAME, offset, data))


def _headers(base: Base, rng: random.Random) -> Iterator[Damage]:
    for offset in _HEADER_FIELDS:
        for value in (0, 1, 0x7F, 0xFF, rng.randrange(256)):
            detail = f"byte {offset} is {value}"
            yield Damage(base, "header", detail, patched(NAME, offset, bytes([value])))


def _lengths(base: Base, rng: random.Random) -> Iterator[Damage]:
    size = (base.folder / NAME).stat().st_size
    pages = rng.sample(range(1, size // PAGE), min(12, size // PAGE - 1))
    odd = [
        1,
        15,
        16,
        99,
        100,
        511,
        512,
        size - 1,
        size - 100,
        *(rng.randrange(size) for _ in "odd"),
    ]
    for length in [0, *(page * PAGE for page in pages), *odd]:
        yield Damage(base, "cut", f"to {length} bytes", _cut(NAME, length))
    for more in (1, 511, PAGE, PAGE * 3 + 5):
        data = rng.choice((bytes(more), rng.randbytes(more)))
        yield Damage(base, "longer", f"by {more} bytes", patched(NAME, size, data))


def _cut(name: str, length: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, length)


def _pointers(base: Base, rng: random.Random) -> Iterator[Damage]:
    """Let lists of free pages, trees and long texts lead into themselves, or nowhere."""
    whole = (base.folder / NAME).read_bytes()
    pages = len(whole) // PAGE
    for page in (1, 2, pages, pages + 9, rng.randrange(1, pages + 1)):
        data = struct.pack(">II", page, rng.choice((1, 9, pages, 2**31)))
        detail = f"the free pages begin at {page}"
        yield Damage(base, "pointer", detail, patched(NAME, 32, data))
    for page in range(1, pages + 1):
        start = (page - 1) * PAGE + (100 if page == 1 else 0)
        kind, target = whole[start], rng.choice((page, 1, 2, rng.randrange(pages) + 1, pages + 7))
        to = struct.pack(">I", target)
        if kind in (2, 5):
            detail = f"page {page} leads to {target} at its end"
            yield Damage(base, "pointer", detail, patched(NAME, start + 8, to))
            cell = struct.unpack_from(">H", whole, start + 12)[0]
            detail = f"page {page} leads to {target} at its begin"
            yield Damage(base, "pointer", detail, patched(NAME, (page - 1) * PAGE + cell, to))
        elif kind not in (10, _LEAF_OF_TABLE):
            detail = f"page {page}, of a long text, leads to {target}"
            yield Damage(base, "pointer", detail, patched(NAME, start, to))
        else:
            for field in (1, 3, 5, 8):
                data = struct.pack(">H", rng.choice((0, 1, PAGE - 1, 65_535)))
                detail = f"page {page}, field {field}"
                yield Damage(base, "pointer", detail, patched(NAME, start + field, data))


def _logs(base: Base, bases: list[Base], rng: random.Random) -> Iterator[Damage]:
    """Spoil the log, or put one there that is of another file or another time."""
    log, memory = f"{NAME}-wal", f"{NAME}-shm"
    for size in (1, 32, 4_096, 32_768, 65_536):
        data = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size)))
        yield Damage(base, "shared memory", f"{size} bytes", _written(memory, data))
        yield Damage(base, "log", f"{size} bytes that are none", _written(log, data))
    for other in bases:
        theirs = other.folder / log
        if other is not base and theirs.exists():
            data = theirs.read_bytes()
            ends = [len(data), *_commits(data)]
            for end in ends:
                detail = f"of {other.name}, {end} bytes"
                yield Damage(base, "foreign log", detail, _written(log, data[:end]))
    if not (base.folder / log).exists():
        return
    own = (base.folder / log).read_bytes()
    for number in range(60):
        offset = rng.randrange(len(own)) if number % 3 else rng.randrange(_LOG_HEADER)
        data = bytes([own[offset] ^ 1 << rng.randrange(8)])
        yield Damage(base, "log", f"a bit of byte {offset}", patched(log, offset, data))
    for _ in range(30):
        length = rng.choice((rng.randrange(len(own)), rng.randrange(len(own)) // _FRAME * _FRAME))
        yield Damage(base, "log", f"cut to {length} bytes", _cut(log, length))
        frame = _LOG_HEADER + rng.randrange(len(own) // _FRAME) * _FRAME
        data = rng.choice((bytes(_FRAME), rng.randbytes(_FRAME), own[_LOG_HEADER:][:_FRAME]))
        yield Damage(base, "log", f"the frame at {frame}", patched(log, frame, data))
    yield Damage(base, "log", "gone", lambda folder: (folder / log).unlink())
    yield Damage(base, "log", "without its file", _cut(NAME, 0))


def _written(name: str, data: bytes) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return do

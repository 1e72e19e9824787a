"""``events.jsonl``: what happened in a memory, one JSON line per event, in rotating files.

It is a diary for people and programs that watch, and not part of the store: nothing is read back
from it, and a line that cannot be written is counted and dropped. Every process that uses the
memory appends to it, each line in one write, so that lines of several processes do not mix.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from agent_memory.errors import StorageError
from agent_memory.models.limits import EVENTS_FILENAME, VECTOR_DB_FILENAME
from agent_memory.runtime.files import (
    beside,
    locked,
    open_private,
    translated_errors,
    written_atomically,
)

if TYPE_CHECKING:
    from agent_memory.models.event import MemoryEvent

MOST_BYTES: Final = 5_000_000
"""A file longer than this is rotated out."""
_KEPT: Final = 3
"""Older files that are kept; ``events.jsonl.1`` is the newest of them."""
_LOOK_SECONDS: Final = 0.25
_TEXTS: Final = ("query", "content")


class EventFile:
    """The event log of the file at ``path``. Threads and processes may share it.

    ``failures`` counts the events that could not be written since it was created.
    """

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        if path.name == VECTOR_DB_FILENAME:
            self.path = path.with_name(EVENTS_FILENAME)
        else:
            self.path = beside(path, f".{EVENTS_FILENAME}")  # the directory may hold others
        self.failures = 0
        self._most_bytes = most_bytes

    def append(self, events: list[MemoryEvent]) -> None:
        """Append events. What cannot be written is counted; nothing is raised."""
        lines = "".join(line_of(event) for event in events).encode(errors="replace")
        try:
            with translated_errors(self.path, "written"):
                length = self._write(lines)
            if length > self._most_bytes:
                self._turn()
        except StorageError:
            self.failures += len(events)

    def _write(self, lines: bytes) -> int:
        handle = open_private(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, lines) < len(lines):
                os.write(handle, b"\n")  # otherwise the next line would be lost with this one
                raise OSError(errno.ENOSPC, "only part of it was written")
            return os.fstat(handle).st_size
        finally:
            os.close(handle)

    def _turn(self) -> None:
        """Let the files move up by one; whoever is just writing writes into one that was moved."""
        with (
            suppress(StorageError),
            locked(beside(self.path, ".turning"), busy="another process is rotating it"),
            translated_errors(self.path, "moved"),
        ):
            if self.path.stat().st_size <= self._most_bytes:
                return  # another process was faster
            for number in range(_KEPT, 1, -1):
                with suppress(FileNotFoundError):
                    self._older(number - 1).replace(self._older(number))
            self.path.replace(self._older(1))

    def _older(self, number: int) -> Path:
        return beside(self.path, f".{number}")

    def files(self) -> list[Path]:
        """Return the existing files, oldest first."""
        paths = [*(self._older(number) for number in range(_KEPT, 0, -1)), self.path]
        return [path for path in paths if path.is_file() and not path.is_symlink()]

    # Reading ----------------------------------------------------------------------------------

    def read(self, *, memory_id: str | None = None) -> Iterator[MemoryEvent]:
        """Yield the recorded events, oldest first. Invalid lines are skipped.

        With ``memory_id``, only the events that name it; other lines are not parsed. Raises
        ``StorageUnavailable`` for a file that cannot be read.
        """
        with translated_errors(self.path, "read"):
            files = self.files()
        for path in files:
            with (
                translated_errors(path, "read"),
                suppress(FileNotFoundError),  # it may have been rotated meanwhile
                path.open("rb") as file,
            ):
                if memory_id is None:
                    yield from _events_in(file)
                else:
                    yield from _events_about(memory_id, file)

    def follow(self, *, until: Callable[[], bool] = lambda: False) -> Iterator[MemoryEvent | None]:
        """Yield new events from now on, and ``None`` whenever there is no news.

        It ends when ``until`` returns true. A file that is being rotated out is read to its end
        first.
        """
        return self._following(self._opened(at_end=True), until)  # from this call on

    def _following(
        self, file: BinaryIO | None, until: Callable[[], bool]
    ) -> Iterator[MemoryEvent | None]:
        try:
            while True:
                if file is not None:
                    yield from _events_in(file)
                new = self._successor(file)
                if new is not None:
                    if file is not None:
                        yield from _events_in(file)  # written just before the rotation
                        file.close()
                    file = new
                    continue
                if until():
                    return
                yield None
                time.sleep(_LOOK_SECONDS)
        finally:
            if file is not None:
                file.close()

    def _opened(self, *, at_end: bool = False) -> BinaryIO | None:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return None
        if at_end:
            file.seek(0, os.SEEK_END)
        return file

    def _successor(self, file: BinaryIO | None) -> BinaryIO | None:
        """Return the file that took the place of the one that is followed, if one did.

        One that made room is followed by a new one; one in which was erased by its own remainder,
        of which nothing is told again.
        """
        if file is None:
            return self._opened()
        with suppress(FileNotFoundError):  # the next one may not exist yet
            here = os.fstat(file.fileno()).st_ino
            if self.path.stat().st_ino != here:
                return self._opened(at_end=not self._made_room(here))
        return None

    def _made_room(self, inode: int) -> bool:
        return any(
            path.stat().st_ino == inode
            for path in map(self._older, range(1, _KEPT + 1))
            if path.exists()
        )

    # Erasing ----------------------------------------------------------------------------------

    def forget(self, memory_ids: Collection[str]) -> None:
        """Remove the lines that are about one of the memories, and the texts of all others.

        Any quoted text may be what was erased, whichever event it belongs to. From a search that
        returned one of the memories its id is removed. Raises ``StorageError``.
        """
        with translated_errors(self.path, "read"):
            for path in self.files():
                lines = path.read_bytes().splitlines(keepends=True)
                kept = [without(line, memory_ids) for line in lines]
                if kept != lines:
                    with written_atomically(path) as new:
                        new.writelines(filter(None, kept))


def line_of(event: MemoryEvent) -> str:
    """Return an event as a line, including the line break."""
    line: dict[str, Any] = {"event": event.name, **event.payload()}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def _events_in(file: BinaryIO) -> Iterator[MemoryEvent]:
    """Yield the events from where a file stands; a line that is not whole yet is left for later."""
    while line := file.readline():
        if not line.endswith(b"\n"):
            file.seek(-len(line), os.SEEK_CUR)
            return
        event = event_of(line)
        if event is not None:
            yield event


def _events_about(memory_id: str, file: BinaryIO) -> Iterator[MemoryEvent]:
    """Yield the events of a file that name a memory: a line without its id is not read."""
    quoted = json.dumps(memory_id).encode()
    for line in file:
        if quoted in line and (event := event_of(line)) is not None and is_about(event, memory_id):
            yield event


def is_about(event: MemoryEvent, memory_id: str) -> bool:
    """Return whether an event names a memory."""
    data = event.data
    listed = data.get("memory_ids")
    return memory_id in (data.get("memory_id"), data.get("evicted")) or (
        isinstance(listed, list) and memory_id in listed
    )


def event_of(line: bytes) -> MemoryEvent | None:
    """Return the event in a line; ``None`` if it has none."""
    from agent_memory.models.event import MemoryEvent  # noqa: PLC0415 - only to read events

    try:
        data = json.loads(line)
        name = data.pop("event")
        head = {key: data.pop(key, None) for key in ("agent_id", "timestamp", "session_id")}
        return MemoryEvent.model_validate({"name": name, **head, "data": data})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # Pydantic's errors are ValueErrors


def without(line: bytes, memory_ids: Collection[str]) -> bytes | None:
    """Return a line without these ids and any text; ``None`` if the whole line must go.

    Whose a text is, nobody knows: any query may quote what is erased. But that it was asked is no
    secret, and without the other lines the statistics of all users were gone with one of them.
    """
    event = event_of(line)
    if event is None:
        return None
    if any(event.data.get(name) in memory_ids for name in ("memory_id", "evicted")):
        return None
    kept = {name: value for name, value in event.data.items() if name not in _TEXTS}
    results = kept.get("memory_ids")
    if isinstance(results, list):
        kept["memory_ids"] = [
            name for name in results if isinstance(name, str) and name not in memory_ids
        ]
    if kept == event.data:
        return line
    return line_of(event.model_copy(update={"data": kept})).encode(errors="replace")

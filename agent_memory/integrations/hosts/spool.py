"""Holds what hooks heard until it is stored: importing the library takes longer than hosts wait.

A hook writes it down (``note``), with secrets masked and synced to the disk, and another process
stores it: see ``intake``. It is in ``hooks/heard.jsonl`` of the agent's folder, one entry a line,
until it is stored; while nobody can store it, it waits.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import Any, Final

from agent_memory.integrations.hosts.journal import (
    NO_BLOCKING,
    entry_of,
    lock,
    make_folder,
    moment,
    shown_to,
    sync_folder,
    unlock,
)
from agent_memory.integrations.hosts.occasion import Occasion
from agent_memory.integrations.result_texts import texts_of
from agent_memory.models.limits import HEARD_FILENAME, HOOKS_FOLDER
from agent_memory.text.capture_words import has_capture_word, has_ordering_word
from agent_memory.text.secrets import mask_secrets

MOST_BYTES: Final = 64 * 2**20
"""The most bytes that may wait: more is reported as dropped."""
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Lone surrogates, as a host may cut them: replaced by "?", they would make a question."""
_CLAIM: Final = ".taking"
"""The suffix of the file that is locked by the process that stores the entries."""
_TAKEN: Final = b" "
"""Replaces the first character of an entry that was taken."""


class Spool:
    """The file in which entries wait, in order. Processes share it."""

    def __init__(self, folder: str) -> None:
        self._folder: Final = os.path.join(folder, HOOKS_FOLDER)
        self.path: Final = os.path.join(self._folder, HEARD_FILENAME)

    def append(self, entry: dict[str, Any]) -> None:
        """Write an entry; when this returns, it is on the disk. Raises ``OSError``."""
        line = _HALVES.sub("\ufffd", json.dumps(entry, ensure_ascii=False)).encode() + b"\n"
        make_folder(self._folder)
        handle = self._opened(os.O_CREAT | os.O_RDWR | os.O_APPEND)
        try:
            lock(handle)
            size = os.fstat(handle).st_size
            if size + len(line) > MOST_BYTES:
                raise OSError(f"{self.path} is full: its texts are not being stored")
            is_torn = size and _read(handle, size - 1, 1) != b"\n"  # by a power cut
            try:
                _write(handle, b"\n" + line if is_torn else line)
            except OSError:
                os.ftruncate(handle, size)
                raise
            unlock(handle)  # others need not wait for the disk
            os.fsync(handle)
        finally:
            os.close(handle)
        if not size:
            sync_folder(self._folder)

    def entries(self) -> list[dict[str, Any]]:
        """Return the waiting entries, oldest first. Raises ``OSError``."""
        handle = self._opened(os.O_RDONLY)
        try:
            lines = [line for _, line in _lines(_read(handle, 0))]
        finally:
            os.close(handle)
        return [entry for line in lines if (entry := entry_of(line)) is not None]

    def hand_out(self, take: Callable[[dict[str, Any] | None], bool]) -> bool:
        """Pass each entry to ``take``, oldest first, and delete those for which it returns true.

        It stops at the first that is not taken, and returns whether all were. An unreadable entry
        is passed as ``None``. The caller must hold the claim. Raises ``OSError``.
        """
        handle = self._opened(os.O_RDWR)
        try:
            end = 0
            while True:
                data = _read(handle, end)
                data = data[: data.rfind(b"\n") + 1]  # another process is writing the rest
                for place, line in _lines(data):
                    if not take(entry_of(line)):
                        return False
                    os.lseek(handle, end + place, os.SEEK_SET)
                    os.write(handle, _TAKEN)
                end += len(data)
                lock(handle)
                left = _read(handle, end)
                if b"\n" not in left:
                    if left:  # torn by a power cut: nobody is writing now
                        take(None)
                    os.ftruncate(handle, 0)
                    return True
                unlock(handle)
        finally:
            os.close(handle)

    def claim(self) -> int | None:
        """Return an open file that is locked while entries are stored; ``None`` if it is locked.

        Closing it releases the claim. Its holder checks again for new entries, so nobody need wait
        for it. Raises ``OSError``.
        """
        handle = os.open(self.path + _CLAIM, os.O_CREAT | os.O_RDWR | NO_BLOCKING, 0o600)
        if lock(handle, wait=False):
            return handle
        os.close(handle)
        return None

    def _opened(self, flags: int) -> int:
        handle = os.open(self.path, flags | NO_BLOCKING, 0o600)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(f"{self.path} is not a file")
        return handle


def note(occasion: Occasion) -> int:
    """Write down the texts of an event that are worth scanning, and return their number.

    Raises ``OSError`` if they cannot be written.
    """
    event = occasion.call.event
    texts = (
        [occasion.text]
        if event.kind == "summary"
        else _promising(occasion.content, is_users=event.kind == "prompt")
    )
    if not texts:
        return 0
    entry = {
        "at": moment(),
        "host": occasion.call.host.name,
        "event": event.name,
        "kind": event.kind,
        "session": occasion.label,
        "tool": occasion.tool,
        "texts": [mask_secrets(text) for text in texts],
    }
    if event.kind == "summary":
        with shown_to(occasion) as shown:
            entry["shown"] = sorted(shown.ids)
    Spool(occasion.folder).append(entry)
    return len(texts)


def _promising(content: object, *, is_users: bool) -> list[str]:
    return [
        text
        for text in texts_of(content)
        if has_capture_word(text) or (is_users and has_ordering_word(text))
    ]


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _read(handle: int, start: int, most: int | None = None) -> bytes:
    """Return the bytes of a file from a position on."""
    os.lseek(handle, start, os.SEEK_SET)
    parts = []
    while part := os.read(handle, most or 2**20):
        parts.append(part)
        if most:
            break
    return b"".join(parts)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that were not taken, each with its position."""
    place = 0
    for line in data.splitlines(keepends=True):
        if line.strip() and not line.startswith(_TAKEN):
            yield place, line
        place += len(line)

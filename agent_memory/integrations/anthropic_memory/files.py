"""Files as memories: one memory for each file, with the path in its metadata.

The memory's content is the text of the file. If it cannot be (an empty file, one of over 10,000
characters), the exact text is in the metadata, and the content is what searches find. A directory
exists as long as there is a file in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from anthropic.lib.tools import ToolError

from agent_memory import Memory, MemoryNotFound, ValidationError
from agent_memory.integrations.texts import searchable
from agent_memory.models.fields import clean_text
from agent_memory.models.times import now_utc

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession

MAX_FILE_LENGTH: Final = 1_000_000
"""The most characters of a file. Storing that many takes 0.1 s."""

_PATH: Final = "anthropic_path"
_TEXT: Final = "anthropic_text"
_TRIES: Final = 100
"""The most attempts while others change the same file."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was read: its path, its text, and the version of its memory."""

    place: str
    text: str
    memory: Memory


class Files:
    """The files in an agent's memory, or in a session of it.

    A failure is ``ToolError``, and changes nothing.
    """

    def __init__(self, memory: MemoryOrSession) -> None:
        self._memory = memory
        self._prefix = f"{memory.id_prefix}anthropic-"

    # Reading ----------------------------------------------------------------------------------

    def file(self, place: str) -> File | None:
        """Return the file at a path, or ``None``."""
        memory = self._memory.get(self._file_id(place))
        if memory is not None and (file := _file_of(memory)) and file.place == place:
            return file
        return next(iter(self._at([place])), None)

    def _file_id(self, place: str) -> str:
        """Return the memory id of a new file: two writers who create the same file meet there.

        Files of the same name in different sessions have different ids.
        """
        digest = hashlib.sha256(place.encode()).hexdigest()[:32]
        return f"{self._prefix}{digest}"

    def under(self, place: str) -> list[File]:
        """Return the files in a directory and its subdirectories."""
        return self._where({"gte": f"{place}/", "lt": f"{place}0"})  # 0 comes after the slash

    def is_taken(self, place: str) -> bool:
        """Return whether a file or a directory exists."""
        return place == ROOT or self.file(place) is not None or bool(self.under(place))

    def _at(self, places: Iterable[str]) -> list[File]:
        return self._where({"in": list(places)})

    def _where(self, condition: dict[str, Any]) -> list[File]:
        """Return the files whose path meets a condition; archived ones too: they still exist.

        Without those of sessions, if these are of a whole memory: several may have the same path.
        """
        filters = {"custom_filters": {_PATH: condition}, "archived": None}
        rows = self._memory.get_all(filters=filters)
        own = (memory for memory in rows if memory.id.startswith(self._prefix))
        return [file for memory in own if (file := _file_of(memory))]

    # Writing ----------------------------------------------------------------------------------

    def create(self, place: str, text: str, *, called: str) -> None:
        """Create a file; ``called`` is its path as the model wrote it, here and below."""
        _refuse_text(text, called)
        self._refuse_parents(place)
        if self.is_taken(place):
            raise ToolError(f"File {called} already exists")
        now = now_utc()
        made = self._stored(place, text, now)
        twins = self._at([place])
        if len(twins) > 1:  # another writer created it at the same moment
            self._memory.delete(made)
        if len(twins) != 1 or twins[0].memory.timestamp != now:
            raise ToolError(f"File {called} already exists")

    def edit(self, place: str, change: Callable[[str], str], *, called: str) -> tuple[str, str]:
        """Replace the text of a file by ``change`` of it; return both.

        If another process changes the file meanwhile, ``change`` is applied again to the new text.
        """
        for _ in range(_TRIES):
            file = self.file(place)
            if file is None:
                state = "is not a file." if self.is_taken(place) else _NOT_THERE
                raise ToolError(f"The path {called} {state}")
            text = change(file.text)
            _refuse_text(text, called)
            if self._replaced(file, place, text):
                return file.text, text
        raise ToolError(f"{called} is being changed by others all the time: try again")

    def delete(self, place: str, *, called: str) -> None:
        """Delete a file, or a directory with everything in it."""
        for _ in range(_TRIES):
            files = self._at([place]) or self.under(place)
            if not files:
                break
            if self._deleted(files):
                return
        raise ToolError(f"The path {called} does not exist")

    def clear(self) -> None:
        """Delete all files."""
        for _ in range(_TRIES):
            files = self.under(ROOT)
            if not files or self._deleted(files):
                return
        raise ToolError("The files are being changed by others all the time: try again")

    def rename(self, old: str, new: str, *, called: tuple[str, str]) -> None:
        """Move a file, or the files of a directory one after the other."""
        if self.is_taken(new):
            raise ToolError(f"The destination {called[1]} already exists")
        file = self.file(old)
        files = [file] if file else self.under(old)
        if not files:
            raise ToolError(f"The path {called[0]} does not exist")
        if f"{new}/".startswith(f"{old}/"):
            raise ToolError(f"Cannot move {called[0]} into itself")
        self._refuse_parents(new)
        for moved in files:
            self._moved(moved, new + moved.place.removeprefix(old), called=called)

    def _stored(self, place: str, text: str, now: datetime) -> str:
        """Store a new file and return its id: that of its path, or the next free one.

        Storing the same text under the same id again raises nothing: ``now`` tells who stored it.
        """
        for count in range(_TRIES):
            memory_id = self._file_id(place) + (f"-{count}" if count else "")
            if self._memory.get(memory_id) is not None:
                continue
            fields = _fields(place, text, {})
            try:
                return self._memory.store(
                    **fields, id=memory_id, timestamp=now, on_duplicate="keep"
                )
            except ValidationError:
                if self._memory.get(memory_id) is None:
                    raise
        raise ToolError(f"{place} is being changed by others all the time: try again")

    def _moved(self, file: File, place: str, *, called: tuple[str, str]) -> None:
        """Give a file another path, unless another file was created there at the same moment."""
        origin = file.place
        for _ in range(_TRIES):
            if self._replaced(file, place, file.text):
                break
            memory = self._memory.get(file.memory.id)
            again = None if memory is None else _file_of(memory)
            if again is None or again.place != origin:
                raise ToolError(f"The path {called[0]} does not exist")
            file = again
        if len(self._at([place])) > 1:
            moved = self._memory.get(file.memory.id)
            if moved is not None and (moved_file := _file_of(moved)):
                self._replaced(moved_file, origin, moved_file.text)
            raise ToolError(f"The destination {called[1]} already exists")

    def _replaced(self, file: File, place: str, text: str) -> bool:
        """Write a file if it has not changed since it was read; return whether it was written."""
        try:
            self._memory.update(
                file.memory.id,
                if_version=file.memory.version,
                **_fields(place, text, file.memory.metadata),
                timestamp=now_utc(),
                archived=False,
            )
        except MemoryNotFound:
            return False
        except ValidationError as error:
            if [fault["loc"] for fault in error.errors()] == [("if_version",)]:
                return False
            raise
        return True

    def _deleted(self, files: Iterable[File]) -> bool:
        """Delete files, all or none; return whether all still existed."""
        try:
            self._memory.delete_many([file.memory.id for file in files])
        except MemoryNotFound:
            return False
        return True

    def _refuse_parents(self, place: str) -> None:
        """Raise ``ToolError`` if a directory on the way to a path is a file."""
        parents = parents_of(place)
        if parents and (files := self._at(parents)):
            raise ToolError(f"The path {files[0].place} is a file, not a directory")


_NOT_THERE: Final = "does not exist. Please provide a valid path."


def _file_of(memory: Memory) -> File | None:
    """Return a memory as a file, or ``None`` if it is not one."""
    place, text = memory.metadata.get(_PATH), memory.metadata.get(_TEXT)
    if not isinstance(place, str):
        return None
    return File(place, text if isinstance(text, str) else memory.content, memory)


def _fields(place: str, text: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a file as the fields of a memory; its other metadata is kept."""
    content = searchable(text, name=place)
    others = {key: value for key, value in metadata.items() if key not in (_PATH, _TEXT)}
    exact = {} if content == text else {_TEXT: text}
    return {"content": content, "metadata": {**others, _PATH: place, **exact}}


def _refuse_text(text: str, called: str) -> None:
    """Raise ``ToolError`` for a text that a file cannot have."""
    if len(text) > MAX_FILE_LENGTH:
        raise ToolError(
            f"The file {called} would have {len(text):,} characters: at most"
            f" {MAX_FILE_LENGTH:,} are allowed. Use several files."
        )
    try:
        clean_text(text)
    except ValueError as error:
        raise ToolError(f"The file {called} cannot be written: {error}") from error


ROOT: Final = "/memories"
_LONGEST: Final = 1_000


def place_of(path: object) -> str:
    """Return a path in its normal form: ``/memories`` or under it, without ``.`` and ``..``.

    Raises ``ToolError`` for a path elsewhere, or one that would lead elsewhere if ``%2e`` were
    decoded or a backslash taken for a slash; for one with unprintable characters, and for one of
    over 1,000 characters.
    """
    if not isinstance(path, str):
        raise ToolError(f"Path must start with {ROOT}, got: {path!r:.200}")
    if len(path) > _LONGEST:
        raise ToolError(f"Path has {len(path):,} characters: use at most {_LONGEST:,}")
    if not path.isprintable():
        raise ToolError(f"Path {path!r} has a non-printable character: leave it out")
    decoded = path
    while (once_more := unquote(decoded)) != decoded:
        decoded = once_more
    _plain(decoded.replace("\\", "/"), path)
    return _plain(path, path)


def parents_of(place: str) -> list[str]:
    """Return the directories above a path, except the root."""
    parts = place.split("/")
    return ["/".join(parts[:count]) for count in range(3, len(parts))]


def _plain(path: str, original: str) -> str:
    """Return a path without redundant parts, or refuse it; ``original`` is as it was written."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {original}")
    parts: list[str] = []
    for part in path.removeprefix(ROOT).split("/"):
        if part == ".." and not parts:
            raise ToolError(f"Path {original} would escape {ROOT} directory")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join((ROOT, *parts))

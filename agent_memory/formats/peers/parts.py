"""The files of an export, whether it is a file, a folder or a zip archive of them.

Nothing is ever unpacked: names in an archive are only compared, and never used as paths.
"""

from __future__ import annotations

import contextlib
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from agent_memory.errors import StorageError, ValidationError
from agent_memory.formats.json_reader import JsonItem, read_items
from agent_memory.formats.protocol import Sample
from agent_memory.runtime.files import MAX_FILE_BYTES, read_steadily

ZIP: Final = b"PK\x03\x04"
LONGEST: Final = 64_000_000
"""Characters of one conversation as JSON, which is held in memory whole."""
_SAMPLE_BYTES: Final = 64 * 1024
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError)
_BROKEN: Final = (*_DAMAGED, NotImplementedError, RuntimeError, ValueError)
"""What an archive with a password, of an unknown kind or with wrong offsets raises, too."""


class Part(NamedTuple):
    """A file of an export: its name with ``/`` between folders, and how to open it.

    ``path`` is the file on the disk that it is, or is in.
    """

    path: Path
    name: str
    open: Callable[[], contextlib.AbstractContextManager[BinaryIO]]

    @property
    def stem(self) -> str:
        """Its name without folders."""
        return self.name.rpartition("/")[2]


@contextlib.contextmanager
def opened_parts(path: Path) -> Iterator[list[Part]]:
    """Give the body the JSON files of an export, by name; for a folder also those in its archives.

    Raises ``ValidationError`` for an archive that is damaged, encrypted, or too long to be read.
    """
    with contextlib.ExitStack() as stack:
        files = [path]
        if path.is_dir():
            names = sorted((*path.glob("*.json"), *path.glob("*.zip"), *path.glob("*/*.json")))
            files = [file for file in names if file.is_file()]
        parts: list[Part] = []
        for file in files:
            if is_zip(file):
                parts += stack.enter_context(_members(file))
            else:
                name = file.relative_to(path).as_posix() if path.is_dir() else file.name
                parts.append(Part(file, name, lambda file=file: read_steadily(file)))  # type: ignore[misc]
        yield parts


def items(part: Part) -> Iterator[JsonItem]:
    """Yield a JSON file's items, one at a time. Raises ``ValidationError`` naming the file."""
    try:
        with part.open() as file:
            yield from read_items(file, longest=LONGEST)
    except ValidationError as error:
        where = "" if str(error).startswith(str(part.path)) else f"{part.path}: {part.name}: "
        raise ValidationError(f"{where}{error}") from error


def heads(sample: Sample, names: re.Pattern[str]) -> Iterator[str]:
    """Yield the beginnings of an export's files with such a name; a lone file may have any."""
    if not sample.is_folder and not sample.head.startswith(ZIP):
        yield sample.text() if sample.text()[:1] in ("[", "{") else ""
        return
    # A broken archive in a folder of notes does not keep the notes from being known.
    quiet = (ValidationError, StorageError) if sample.is_folder else ()
    with contextlib.suppress(*quiet), opened_parts(sample.path) as parts:
        for part in parts:
            if names.fullmatch(part.stem):
                with part.open() as file:
                    yield file.read(_SAMPLE_BYTES).decode("utf-8-sig", "replace")


def is_zip(path: Path) -> bool:
    """Return whether a file begins like a zip archive."""
    with read_steadily(path) as file:
        return file.read(len(ZIP)) == ZIP


@contextlib.contextmanager
def _members(path: Path) -> Iterator[list[Part]]:
    with read_steadily(path) as file:
        with _translated(path):
            archive = zipfile.ZipFile(file)
        members = [item for item in archive.infolist() if item.filename.endswith(".json")]
        if sum(item.file_size for item in members) > MAX_FILE_BYTES:
            raise ValidationError(f"{path}: unpacks to more than {MAX_FILE_BYTES:,} bytes")
        members.sort(key=lambda item: item.filename)
        yield [
            Part(path, item.filename, lambda item=item: _opened(archive, item, path))  # type: ignore[misc]
            for item in members
        ]


@contextlib.contextmanager
def _opened(archive: zipfile.ZipFile, item: zipfile.ZipInfo, path: Path) -> Iterator[BinaryIO]:
    with _translated(path):
        file = archive.open(item)
    with file, _translated(path, _DAMAGED):
        yield cast("BinaryIO", file)


@contextlib.contextmanager
def _translated(path: Path, errors: tuple[type[Exception], ...] = _BROKEN) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise ValidationError(f"{path}: cannot be unpacked: {error}") from error

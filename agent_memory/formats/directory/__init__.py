"""The format "directory": document E's folder of JSONL files, or a single one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_memory.errors import ValidationError
from agent_memory.formats.directory.commit import complete
from agent_memory.formats.directory.layout import KINDS, MAIN_FILES, is_e_folder
from agent_memory.formats.directory.lock import held
from agent_memory.formats.directory.reader import read_file, read_folder
from agent_memory.formats.directory.writer import write_folder
from agent_memory.formats.jsonl import parse_object
from agent_memory.formats.protocol import Codec, Sample, Source, Written
from agent_memory.models.portable import Entry
from agent_memory.runtime.files import translated_errors


class Directory(Codec):
    """Document E's storage format: see the Codec protocol."""

    name = "directory"
    is_folder = True
    skips_bad = True  # E: what is invalid does not block the rest

    def recognises(self, sample: Sample) -> bool:
        """Return whether this is a folder of E's, or a file whose first object is one of E's.

        An empty one is recognised by its name alone.
        """
        if sample.is_folder:
            return is_e_folder(sample.path)
        if not sample.text():
            return sample.path.name in MAIN_FILES
        for raw in sample.head.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            if raw.strip() and not raw.lstrip().startswith(b"{"):
                return False
            try:
                item = parse_object(raw)
            except ValidationError:
                continue  # a broken line does not make it another format's
            kind = item.get("type")
            return isinstance(kind, str) and kind in KINDS and "created_at" in item
        return False

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the memories, with what was repaired; places are ``learnings.jsonl: line 7``.

        The folder's lock is held meanwhile, unless the folder cannot be written. An export that was
        interrupted after its files were ready is completed first.
        """
        with translated_errors(path, "read"):
            if not path.is_dir():
                yield from read_file(path)
                return
            with os.scandir(path):
                pass  # a folder that may not be listed must not look like an empty one
            if not is_e_folder(path):
                raise ValidationError(f"{path}: has none of {', '.join(MAIN_FILES)}")
            with held(path, to_write=False) as is_held:
                if is_held:
                    complete(path)
                yield from read_folder(path)

    def write(self, path: Path, source: Source) -> Written:
        """Write the folder anew; its old files go into its ``.backup``."""
        return write_folder(path, source)


CODEC: Final[Codec] = Directory()

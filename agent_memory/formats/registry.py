"""The table of formats: which there are, which module has each, and which one a file is of."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from agent_memory.errors import StorageUnavailable, ValidationError
from agent_memory.formats.protocol import Codec, Sample
from agent_memory.runtime.files import read_steadily, system_told

SAMPLE_BYTES: Final = 64 * 1024
"""How much of a file is looked at to tell its format."""

CODECS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "store": "formats.store_yaml:CODEC",
        "scratchpad": "formats.scratchpad:CODEC",
        "backup": "formats.scratchpad:BACKUP",
        "json": "formats.json_memories:JSON",
        "jsonl": "formats.json_memories:JSONL",
        "record-json": "formats.json_memories:RECORD_JSON",
        "record-jsonl": "formats.json_memories:RECORD_JSONL",
        "directory": "formats.directory:CODEC",
        "metadata": "formats.settings:CODEC",
        "settings": "formats.settings:CODEC_YAML",
        "sqlite": "api.sqlite_codec:CODEC",
    }
)
"""The formats by name, in the order in which they are listed: the module of each, and its object.

A module is imported when its format is asked for: a command must not wait for all of them.
"""

_ASKED: Final = (
    "store", "scratchpad", "directory", "metadata", "settings", "sqlite", "jsonl", "json",
)  # fmt: skip
"""Who is asked whether a file is theirs, in order. The others' files are read by one of these."""

# What a file that no format knows may be, by its first bytes.
_SIGNATURES: Final = (
    (b"\x1f\x8b", "looks like a gzip archive: unpack it first"),
    (b"PK\x03\x04", "looks like a zip archive: unpack it first"),
    (b"BZh", "looks like a bzip2 archive: unpack it first"),
    (b"\xfd7zXZ\x00", "looks like an xz archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "looks like a Zstandard archive: unpack it first"),
    (b"\x89PNG\r\n", "looks like a picture (PNG)"),
    (b"\xff\xd8\xff", "looks like a picture (JPEG)"),
    (b"GIF8", "looks like a picture (GIF)"),
    (b"%PDF-", "looks like a PDF document"),
    (b"\x7fELF", "looks like a program"),
    (b"\xff\xfe", "looks like text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "looks like text in UTF-16: save it as UTF-8"),
)
_WEB_PAGE: Final = re.compile(r"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)


def names() -> tuple[str, ...]:
    """Return the names of all formats: what ``--format`` may be."""
    return tuple(CODECS)


def summaries() -> dict[str, str]:
    """Return what each format is, in one line, by name. This imports all of them."""
    return {name: codec(name).summary for name in CODECS}


def codec(name: str) -> Codec:
    """Return the format of this name. Raises ``ValidationError`` that lists the names."""
    place = CODECS.get(name) if isinstance(name, str) else None
    if place is None:
        message = f"{name!r:.80} is not a format: use one of {', '.join(CODECS)}"
        raise ValidationError.of("format", message, name)
    module, _, attribute = place.partition(":")
    found = getattr(importlib.import_module(f"agent_memory.{module}"), attribute)
    return cast("Codec", found)


def _is_index(sample: Sample) -> bool:
    """Return whether this is the index of document E's folder, which has no memory in it."""
    text = sample.text()
    return text.startswith("{") and '"tags_index"' in text and '"statistics"' in text


def recognise(path: Path) -> Codec:
    """Return the format that a file or a folder is of, by its content alone.

    Raises ``ValidationError`` that says what it looks like when no format knows it, and
    ``StorageUnavailable`` for what is not there or cannot be read.
    """
    sample = _sample(path)
    if _is_index(sample):
        raise ValidationError(f"{path}: is the index of a folder of memories: import the folder")
    asked = ("sqlite",) if b"\x00" in sample.head else _ASKED  # no text has a NUL
    for name in asked:
        one = codec(name)
        if one.recognises(sample):
            return one
    raise ValidationError(
        f"{path}: {_looks(sample)}. If it holds memories, name its format with --format:"
        f" {', '.join(CODECS)}"
    )


def _sample(path: Path) -> Sample:
    with system_told(path):
        if path.is_dir():
            return Sample(path, b"", is_folder=True)
        if not path.exists():
            raise StorageUnavailable(f"{path} does not exist")
    with read_steadily(path) as file:
        return Sample(path, file.read(SAMPLE_BYTES), is_folder=False)


def _looks(sample: Sample) -> str:
    """Say what something looks like that no format knows."""
    if sample.is_folder:
        return "is a folder without the files of a format that is known"
    if not sample.text():
        return "is empty"
    for signature, verdict in _SIGNATURES:
        if sample.head.startswith(signature):
            return verdict
    return _looks_of_text(sample)


def _looks_of_text(sample: Sample) -> str:
    text, head = sample.text(), sample.head
    if b"\x00" in head:
        # Text in UTF-16 without its mark has a NUL in nearly every other place.
        is_wide = max(head[::2].count(0), head[1::2].count(0)) * 4 > len(head)
        return "looks like text in UTF-16: save it as UTF-8" if is_wide else "is not a text"
    if _WEB_PAGE.match(text):
        return "looks like a web page (HTML)"
    if text.startswith("<"):
        return "looks like XML"
    if "\ufffd" in text[:-4]:
        return "is not a text in UTF-8"
    # A few characters tell what was taken for a file of memories; more might show a key in it.
    return f"begins with {text[:16].splitlines()[0]!r}, which is not how a known format begins"

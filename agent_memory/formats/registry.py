"""The table of formats, which help and the guide are made from, and the recognition of files."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from agent_memory.errors import StorageUnavailable, ValidationError
from agent_memory.formats.protocol import Codec, Reader, Sample
from agent_memory.runtime.files import read_steadily, translated_errors

SAMPLE_BYTES: Final = 64 * 1024
"""How much of a file is read to recognise its format."""


class Format(NamedTuple):
    """A format that can be named in exports and imports."""

    name: str
    """Its name for ``--format``."""
    place: str
    """The module of its codec, imported on demand, and the name of the codec there."""
    summary: str
    """A description of one line, for help and the guide."""
    order: int | None = None
    """When its codec is asked whether a file is its own; ``None`` if another one reads its files.
    """
    is_read_only: bool = False
    """Whether it is another program's format: imported, never written."""
    is_binary: bool = False
    """Whether its files may contain a NUL, which no text does."""

    @property
    def row(self) -> str:
        """Its row of the guide's table."""
        return f"| `{self.name}` | {self.summary} |"


# fmt: off
_ROWS: Final = (
    Format("store", "formats.store_yaml:CODEC",
           "everything in the file, as YAML: the portable backup", 10),
    Format("scratchpad", "formats.scratchpad:CODEC", "the hot set: scratchpad.yaml", 20),
    Format("backup", "formats.scratchpad:BACKUP",
           "all memories in the same format: scratchpad.yaml.backup"),
    Format("json", "formats.json_memories:JSON", "memories as JSON: an array, one a line", 90),
    Format("jsonl", "formats.json_memories:JSONL", "memories as JSON, one a line", 80),
    Format("record-json", "formats.json_memories:RECORD_JSON",
           "memory records with nested metadata: an array"),
    Format("record-jsonl", "formats.json_memories:RECORD_JSONL", "memory records, one a line"),
    Format("directory", "formats.directory:CODEC",
           "core_memories.jsonl, learnings.jsonl, tasks.jsonl, archive/", 30),
    Format("metadata", "formats.settings:CODEC", "metadata.json: figures and settings", 40),
    Format("settings", "formats.settings:CODEC_YAML", "the settings of migration, as YAML", 50),
    Format("markdown", "formats.markdown:CODEC",
           "a folder of notes, for Obsidian and the like", 70),
    Format("sqlite", "api.sqlite_codec:CODEC", "the file itself: a memories.db", 60,
           is_binary=True),
)
_PEERS: Final = (
    Format("claude-code", "formats.peers.claude_code:READER",
           "Claude Code's transcripts and notes: ~/.claude/projects", 65),
    Format("chatgpt", "formats.peers.chatgpt:READER",
           "ChatGPT's export: the zip, its folder or conversations.json", 66, is_binary=True),
    Format("claude", "formats.peers.claude:READER",
           "Claude's export: the zip, its folder or conversations.json", 67, is_binary=True),
    Format("letta", "formats.peers.letta:READER", "Letta's agent file (.af)", 68),
    Format("mcp-memory-service", "api.peer_databases:MCP_MEMORY_SERVICE",
           "mcp-memory-service's sqlite_vec.db", 51, is_binary=True),
    Format("mem0", "api.peer_databases:MEM0",
           "mem0's local Qdrant folder, or its history.db", 57, is_binary=True),
    Format("langgraph", "api.peer_databases:LANGGRAPH",
           "LangGraph's SqliteStore; its PostgresStore: an address", 52, is_binary=True),
    Format("claude-mem", "api.peer_databases:CLAUDE_MEM",
           "claude-mem's claude-mem.db", 53, is_binary=True),
    Format("engram", "api.peer_databases:ENGRAM", "engram's engram.db", 54, is_binary=True),
    Format("mnemosyne", "api.peer_databases:MNEMOSYNE",
           "Mnemosyne's mnemosyne.db", 55, is_binary=True),
    Format("basic-memory", "api.peer_databases:BASIC_MEMORY",
           "basic-memory's memory.db; its notes: `markdown`", 56, is_binary=True),
    Format("mcp-memory", "formats.peers.mcp_memory:READER",
           "MCP's server-memory: memory.jsonl", 75),
)
# fmt: on
FORMATS: Final[Mapping[str, Format]] = MappingProxyType({row.name: row for row in _ROWS})
"""The formats that are written and read, by name, in the order in which they are listed."""
PEERS: Final[Mapping[str, Format]] = MappingProxyType(
    {row.name: row._replace(is_read_only=True) for row in _PEERS}
)
"""The formats of other programs, which are read only."""
READABLE: Final[Mapping[str, Format]] = MappingProxyType({**FORMATS, **PEERS})
"""All formats by name: those that an import accepts."""

# What a file of an unknown format may be, by its first bytes.
_SIGNATURES: Final = (
    (b"\x1f\x8b", "looks like a gzip archive: unpack it first"),
    (b"PK\x03\x04", "looks like a zip archive: unpack it first"),
    (b"PK\x05\x06", "is a zip archive with nothing in it"),
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
    """Return the names of the formats that can be written: an export's ``--format`` values."""
    return tuple(FORMATS)


def readable_names() -> tuple[str, ...]:
    """Return the names of all formats: an import's ``--format`` values."""
    return tuple(READABLE)


def codec(name: str) -> Codec:
    """Return the codec with this name. Raises ``ValidationError`` that lists the names."""
    if isinstance(name, str) and name in PEERS:
        message = f"{name!r} can only be imported: export in one of {', '.join(FORMATS)}"
        raise ValidationError.of("format", message, name)
    return cast("Codec", _loaded(name, FORMATS))


def reader(name: str) -> Reader:
    """Return the reader with this name. Raises ``ValidationError`` that lists the names."""
    return cast("Reader", _loaded(name, READABLE))


def _loaded(name: str, known: Mapping[str, Format]) -> object:
    chosen = known.get(name) if isinstance(name, str) else None
    if chosen is None:
        message = f"{name!r:.80} is not a format: use one of {', '.join(known)}"
        raise ValidationError.of("format", message, name)
    module, _, attribute = chosen.place.partition(":")
    return getattr(importlib.import_module(f"agent_memory.{module}"), attribute)


def _is_index(sample: Sample) -> bool:
    """Return whether this is the index of document E's folder, which contains no memories."""
    text = sample.text()
    return text.startswith("{") and '"tags_index"' in text and '"statistics"' in text


def recognise(path: Path) -> Reader:
    """Return the format of a file or folder, judging by its content alone.

    Raises ``ValidationError`` that says what it looks like if no format recognises it, and
    ``StorageUnavailable`` if it does not exist or cannot be read.
    """
    sample = _sample(path)
    if _is_index(sample):
        raise ValidationError(f"{path}: is the index of a folder of memories: import the folder")
    for candidate in _candidates(sample):
        loaded = reader(candidate.name)
        with translated_errors(path, "read"):  # the folder may be inaccessible
            is_known = loaded.recognises(sample)
        if is_known:
            return loaded
    raise ValidationError(
        f"{path}: {_looks(sample)}. If it holds memories, name its format with --format:"
        f" {', '.join(READABLE)}. Use `add` to learn from a conversation or a text"
    )


def _candidates(sample: Sample) -> Iterable[Format]:
    has_nul = b"\x00" in sample.head
    ordered = [row for row in READABLE.values() if row.order is not None]
    asked = [row for row in ordered if row.is_binary or not has_nul]
    return sorted(asked, key=lambda row: row.order or 0)


def _sample(path: Path) -> Sample:
    with translated_errors(path):
        if path.is_dir():
            return Sample(path, b"", is_folder=True)
        if not path.exists():
            raise StorageUnavailable(f"{path} does not exist")
    with read_steadily(path) as file:
        return Sample(path, file.read(SAMPLE_BYTES), is_folder=False)


def _looks(sample: Sample) -> str:
    """Say what something of an unknown format looks like."""
    if sample.is_folder:
        return "is a folder without the files of any known format"
    if not sample.text():
        return "is empty"
    for signature, verdict in _SIGNATURES:
        if sample.head.startswith(signature):
            return verdict
    return _looks_of_text(sample)


def _looks_of_text(sample: Sample) -> str:
    text, head = sample.text(), sample.head
    if b"\x00" in head:
        # UTF-16 text without a byte order mark has a NUL in nearly every second byte.
        is_wide = max(head[::2].count(0), head[1::2].count(0)) * 4 > len(head)
        return "looks like text in UTF-16: save it as UTF-8" if is_wide else "is not a text"
    if _WEB_PAGE.match(text):
        return "looks like a web page (HTML)"
    if text.startswith("<"):
        return "looks like XML"
    if "\ufffd" in text[:-4]:
        return "is not UTF-8 text"
    # A few characters show what was mistaken for a file of memories; more might show a secret.
    return f"begins with {text[:16].splitlines()[0]!r}, unlike any known format"

"""Folders of Markdown: our memories as notes and back, and the notes of other programs.

Obsidian, basic-memory, Claude Code's memory folder, OpenClaw and CLAUDE.md all hold text, with or
without YAML between two lines of ``---`` before it. A note is a memory; in a list of rules or
facts, such as CLAUDE.md, each item is one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_memory.errors import ValidationError
from agent_memory.formats.peers.entries import pieces
from agent_memory.formats.protocol import MEMORIES_ALONE, Codec, Sample, Source, Written
from agent_memory.formats.record_shapes import ParsedItem, entries, line_of, memory_json
from agent_memory.formats.yaml_reader import read_yaml
from agent_memory.formats.yaml_writer import flow
from agent_memory.models.fields import normalize_tags, to_json
from agent_memory.models.graph import USER_NAME
from agent_memory.models.limits import MAX_TAG_LENGTH, MAX_TAGS_PER_MEMORY
from agent_memory.models.memory_fields import MEMORY_FIELDS
from agent_memory.models.portable import Entry, Section
from agent_memory.models.times import format_time, from_epoch, parse_time
from agent_memory.runtime.files import open_private, read_steadily, translated_errors

_ENDINGS: Final = (".md", ".markdown", ".mdc")
_MARK: Final = "agent_memory"
"""The key that holds the version of our notes."""
_VERSION: Final = 1
_LINKS: Final = "links"
_LISTS: Final = re.compile(
    r"(CLAUDE(\.local)?|AGENTS|GEMINI|MEMORY)\.md|memory/\d{4}-\d\d-\d\d[^/]*\.md|.*\.mdc",
)
"""Files in which each item is a fact of its own, by path or by its end."""
_FRONT: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_PLAIN_LINE: Final = re.compile(r"^(\w[\w -]*): +(\S.*)$", re.MULTILINE)
_TIMES: Final = ("created_at", "created", "date", "timestamp", "updated_at", "updated", "modified")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_HASHTAG: Final = re.compile(r"(?<!\S)#([^\W\d_][\w/-]*)")
_OBSERVATION: Final = re.compile(r"^- \[(?![ xX]\])([\w -]{1,40})\] +(.+)$")
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,3}[.)]) +(?=\S)")
_HEADING: Final = re.compile(r"#{1,6} +(.+?)[ #]*$")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_TO_A_FILE: Final = re.compile(r"\]\(([^)\s]+\.md)\)|\[\[([^\]|#]+)")
_LONGEST_NAME: Final = 60


class Note(NamedTuple):
    """A parsed file: the mapping before its text, and the text."""

    front: dict[str, Any]
    text: str


class Markdown(Codec):
    """A folder with one note per memory; a single file can be read too."""

    name = "markdown"
    is_folder = True

    def recognises(self, sample: Sample) -> bool:
        """Return whether it is a folder with Markdown in it, or a file with a Markdown name."""
        if sample.is_folder:
            return any(True for _ in _files(sample.path))
        return sample.path.suffix.lower() in _ENDINGS

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the memories of each file, in order of file name."""
        yield from entries(item for file in _files(path) for item in _items(file, path))

    def write(self, path: Path, source: Source) -> Written:
        """Write one file per memory into a new or empty folder, or replace an earlier export."""
        written = Written(notes=[MEMORIES_ALONE])
        with translated_errors(path, "written"):
            _refuse_others(path)
            names = _names_by_memory(source)
            unfinished = _new_folder(path, "unfinished")
            try:
                taken: set[str] = set()
                for memory in source.memories():
                    fields = json.loads(line_of(memory, memory_json))
                    name = _file_name(fields["content"], memory.id, taken)
                    _write_note(unfinished / name, fields, sorted(names[memory.id]))
                    written.memories += 1
                if hasattr(os, "sync"):
                    os.sync()  # once, since a sync for each of thousands of files takes minutes
                _put_in_place(unfinished, path)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return written


# Writing ------------------------------------------------------------------------------------


def _names_by_memory(source: Source) -> Mapping[str, set[str]]:
    """Return for each memory the names of the entities it mentions: what its note links to."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for entry in source.entries():
        if entry.section is Section.ENTITY:
            for memory_id in entry.fields.get("sources", ()):
                if entry.fields["name"] != USER_NAME:
                    names[memory_id].add(entry.fields["name"])
    return names


def _write_note(path: Path, fields: dict[str, Any], names: list[str]) -> None:
    """Write a memory: each field that differs from a new memory's, then the text as it is."""
    content = fields.pop("content")
    fields.pop("embedding", None)
    lines = [f"{_MARK}: {_VERSION}"]
    for name, value in fields.items():
        field = MEMORY_FIELDS.get(name)
        if value is not None and (field is None or value != field.plain_default):
            lines.append(f"{name}: {flow(value, compact=True)}")
    if names:
        links = [f"[[{name}]]" for name in names]
        lines.append(f"{_LINKS}: {flow(links, compact=True)}")
    data = "\n".join(["---", *lines, "---", content, ""]).encode()
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(data)


def _file_name(content: str, memory_id: str, taken: set[str]) -> str:
    """Return a name that is made from the memory's words and is unique in the folder."""
    words = re.sub(r"[^\w]+|_", "-", content[: 4 * _LONGEST_NAME].lower()).strip("-")
    if len(words) > _LONGEST_NAME:
        words = words[:_LONGEST_NAME].rpartition("-")[0] or words[:_LONGEST_NAME]
    digest = hashlib.sha256(memory_id.encode()).hexdigest()
    length = 6
    while (name := f"{words or 'memory'}-{digest[:length]}.md") in taken:
        length += 1
    taken.add(name)
    return name


def _refuse_others(path: Path) -> None:
    """Raise ``ValidationError`` for a folder with anything but our notes, and leave it as it is."""
    if path.is_symlink():
        raise ValidationError(f"{path} is a symbolic link: give the path of the folder itself")
    if not path.exists():
        return
    if not path.is_dir():
        raise ValidationError(f"{path} is a file: give the path of a folder")
    for file in sorted(path.iterdir()):
        if not (file.suffix == ".md" and file.is_file() and _is_ours(file)):
            raise ValidationError(
                f"{path} has other files, such as {file.name!r:.80}: give a new or empty folder"
            )


def _is_ours(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(64).startswith(f"---\n{_MARK}: ".encode())


def _put_in_place(unfinished: Path, path: Path) -> None:
    if not path.exists():
        unfinished.rename(path)
        return
    before = _new_folder(path, "before") / path.name
    path.rename(before)
    try:
        unfinished.rename(path)
    except OSError:
        before.rename(path)
        raise
    finally:
        shutil.rmtree(before.parent, ignore_errors=True)


def _new_folder(path: Path, what_for: str) -> Path:
    """Create a private folder beside a path, replacing what a killed process left there."""
    folder = path.with_name(f".{path.name[:200]}.{what_for}")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    return folder


# Reading ------------------------------------------------------------------------------------


def _files(path: Path) -> Iterator[Path]:
    """Yield the Markdown files in a folder, by name; hidden ones belong to other programs."""
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "node_modules")
        for name in sorted(names):
            if name.lower().endswith(_ENDINGS) and name[0] != ".":
                yield Path(folder, name)


def _items(file: Path, root: Path) -> Iterator[ParsedItem]:
    """Yield the memories of a file, or its error."""
    place = file.name if file == root else file.relative_to(root).as_posix()
    try:
        with read_steadily(file) as opened:
            note = _taken_apart(opened.read().decode())
    except UnicodeDecodeError:
        yield ParsedItem(place, None, "is not UTF-8 text")
        return
    except ValidationError as error:
        yield ParsedItem(place, None, str(error))
        return
    if note.front.pop(_MARK, None) is not None:
        note.front.pop(_LINKS, None)
        yield ParsedItem(place, {**note.front, "content": note.text.removesuffix("\n")})
        return
    common = _common_fields(note, file, place)
    observations, text = _observations(note)
    for category, line in observations:
        metadata = {**common["metadata"], "observation": category}
        yield ParsedItem(place, {**common, "content": line, "metadata": metadata})
    is_list = _LISTS.search(place) is not None or _LISTS.search(file.as_posix()) is not None
    for heading, part in list_items(text, file) if is_list else [("", text.strip())]:
        metadata = {**common["metadata"], **({"heading": heading} if heading else {})}
        for piece in pieces(part):
            yield ParsedItem(place, {**common, "content": piece, "metadata": metadata})


def _taken_apart(text: str) -> Note:
    """Split a text into its mapping and the rest. Raises ``ValidationError`` with the line."""
    front = _FRONT.match(text)
    if front is None:
        return Note({}, text.removeprefix("\ufeff"))
    try:
        data = read_yaml(io.BytesIO(front[1].encode())) or {}
    except ValidationError:
        if front[1].startswith(_MARK):
            raise
        # Claude Code writes descriptions unquoted, whatever they contain.
        data = dict(_PLAIN_LINE.findall(front[1]))
    if not isinstance(data, dict):
        raise ValidationError("the text between the --- lines is not a mapping")
    return Note({str(key): value for key, value in data.items()}, text[front.end() :])


def _common_fields(note: Note, file: Path, place: str) -> dict[str, Any]:
    """Return what all memories from another program's note share: tags, time and path."""
    front = dict(note.front)
    inner = front.pop("metadata", None)
    metadata = {"source": "markdown", "path": place}
    tags = _tags(front.pop("tags", None), note.text)
    if len(tags) > MAX_TAGS_PER_MEMORY or any(len(tag) > MAX_TAG_LENGTH for tag in tags):
        metadata["tags"] = to_json(tags)
        tags = [tag for tag in tags if len(tag) <= MAX_TAG_LENGTH][:MAX_TAGS_PER_MEMORY]
    timestamp = _time(front, file)
    known = {name: value for name, value in front.items() if value not in (None, "", [])}
    extra = inner if isinstance(inner, dict) else {} if inner is None else {"metadata": inner}
    return {"tags": tags, "timestamp": timestamp, "metadata": {**known, **extra, **metadata}}


def _tags(value: object, text: str) -> list[str]:
    listed = value if isinstance(value, list) else re.split(r"[,\s]+", str(value or ""))
    return normalize_tags([*(str(tag).lstrip("#") for tag in listed), *_HASHTAG.findall(text)])


def _time(front: Mapping[str, Any], file: Path) -> str:
    """Return when a note was written: by its fields, its name, or the file's modification time."""
    dated = _DATE.search(file.name)
    for value in (*(front.get(name) for name in _TIMES), dated and dated[0]):
        try:
            return format_time(parse_time(str(value)))
        except ValueError:
            continue
    return format_time(from_epoch(file.stat().st_mtime))


def _observations(note: Note) -> tuple[list[tuple[str, str]], str]:
    """Return basic-memory's observations (category and text), and the rest of the note."""
    if "permalink" not in note.front:
        return [], note.text
    observations, rest = [], []
    for line in note.text.splitlines():
        match = _OBSERVATION.match(line)
        if match:
            observations.append((match[1].strip(), match[2].strip()))
        else:
            rest.append(line)
    return observations, "\n".join(rest)


def list_items(text: str, file: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield the items and paragraphs of a text, each with the headings above it.

    With ``file``, a one-line item that links to an existing note of the same folder is skipped: it
    is an entry of an index.
    """
    headings: list[str] = []
    lines: list[str] = []
    is_code = False

    def finished() -> Iterator[tuple[str, str]]:
        item = "\n".join(lines).strip()
        lines.clear()
        if item and (file is None or not _is_entry_of_index(item, file)):
            yield " / ".join(headings), item

    for line in text.splitlines():
        fence = _FENCE.match(line) is not None
        is_code ^= fence
        heading = None if is_code or fence else _HEADING.match(line)
        bullet = None if is_code or fence else _ITEM.match(line)
        if heading or bullet or not (line.strip() or is_code):
            yield from finished()
        if heading:
            del headings[line.index(" ") - 1 :]
            headings.append(heading[1])
        else:
            lines.append(line[bullet.end() :] if bullet else line)
    yield from finished()


def _is_entry_of_index(item: str, file: Path) -> bool:
    link = _TO_A_FILE.search(item)
    if link is None or "\n" in item:
        return False
    target = link[1] or f"{link[2]}.md"
    try:
        return (file.parent / target).is_file()
    except (OSError, ValueError):  # not a valid file name
        return False


CODEC: Final = Markdown()

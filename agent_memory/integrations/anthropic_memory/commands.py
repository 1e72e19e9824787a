"""The memory tool's commands and their answers to the model, word by word as in its contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from anthropic.lib.tools import ToolError

from agent_memory import AgentMemoryError
from agent_memory.integrations.anthropic_memory.files import ROOT, File, Files, place_of

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession

_MOST_LINES: Final = 999_999
_AROUND: Final = 2
"""Lines shown before and after a change."""


class Commands:
    """The commands of a model. Each returns its answer or raises ``ToolError``.

    ``command`` has the model's arguments as attributes; they are not validated.
    """

    def __init__(self, memory: MemoryOrSession) -> None:
        self._files = Files(memory)

    def run(self, name: str, command: object = None) -> str:
        """Run one of the commands below. An error of the memory becomes a ``ToolError``."""
        try:
            answer: str = getattr(self, f"_{name}")(command)
        except AgentMemoryError as error:
            raise ToolError(str(error)) from error
        return answer

    def _view(self, command: object) -> str:
        path = _text(command, "path")
        place = place_of(path)
        file = None if place == ROOT else self._files.file(place)
        if file is not None:
            return _numbered(file.text, getattr(command, "view_range", None), path)
        files = self._files.under(place)
        if not files and place != ROOT:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return _listing(files, place, path)

    def _create(self, command: object) -> str:
        path, text = _text(command, "path"), _text(command, "file_text")
        self._files.create(place_of(path), text, called=path)
        return f"File created successfully at: {path}"

    def _str_replace(self, command: object) -> str:
        path = _text(command, "path")
        old, new = _text(command, "old_str"), _text(command, "new_str")
        before, after = self._files.edit(
            place_of(path), lambda text: _replaced(text, old, new, path), called=path
        )
        line = before[: before.index(old)].count("\n")
        start = max(0, line - _AROUND)
        shown = after.split("\n")[start : line + _AROUND + 1]
        return (
            "The memory file has been edited. Here is the snippet showing the change"
            f" (with line numbers):\n{_with_numbers(shown, start + 1)}"
        )

    def _insert(self, command: object) -> str:
        path, added = _text(command, "path"), _text(command, "insert_text")
        line = getattr(command, "insert_line", None)
        if not isinstance(line, int) or isinstance(line, bool):
            raise ToolError(f"Invalid `insert_line` parameter: {line!r:.100}. Give a whole number.")
        self._files.edit(place_of(path), lambda text: _inserted(text, line, added), called=path)
        return f"The file {path} has been edited."

    def _delete(self, command: object) -> str:
        path = _text(command, "path")
        place = place_of(path)
        if place == ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        self._files.delete(place, called=path)
        return f"Successfully deleted {path}"

    def _rename(self, command: object) -> str:
        paths = _text(command, "old_path"), _text(command, "new_path")
        old, new = map(place_of, paths)
        if old == ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        self._files.rename(old, new, called=paths)
        return f"Successfully renamed {paths[0]} to {paths[1]}"

    def _clear_all_memory(self, _: object) -> str:
        self._files.clear()
        return "All memory cleared"


def _text(command: object, name: str) -> str:
    """Return an argument that must be a string: the model's arguments are not validated."""
    value = getattr(command, name, None)
    if not isinstance(value, str):
        raise ToolError(f"Invalid `{name}` parameter: give a string.")
    return value


def _replaced(text: str, old: str, new: str, path: str) -> str:
    count = text.count(old)
    if not old or not count:
        raise ToolError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        )
    if count > 1:
        lines = ", ".join(str(line) for line in _lines_with(text, old))
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines:"
            f" {lines}. Please ensure it is unique"
        )
    return text.replace(old, new)


def _lines_with(text: str, part: str) -> Iterable[int]:
    """Yield the line number of each occurrence of a part."""
    line, counted, at = 1, 0, text.find(part)
    while at >= 0:
        line += text.count("\n", counted, at)
        counted = at
        yield line
        at = text.find(part, at + 1)


def _inserted(text: str, line: int, added: str) -> str:
    lines = text.removesuffix("\n").split("\n") if text else []
    if not 0 <= line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {line}. It should be within the range"
            f" [0, {len(lines)}]."
        )
    lines.insert(line, added.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else f"{changed}\n"


def _numbered(text: str, view_range: object, path: str) -> str:
    """Return a file's lines with their numbers: all, or those of a range."""
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
    first, last = _ends(view_range, len(lines))
    return (
        f"Here's the content of {path} with line numbers:\n"
        f"{_with_numbers(lines[first - 1 : last], first)}"
    )


def _ends(view_range: Any, count: int) -> tuple[int, int]:  # noqa: ANN401 - from the model
    if not view_range:
        return 1, count
    if not isinstance(view_range, list) or not all(isinstance(end, int) for end in view_range):
        raise ToolError(f"Invalid `view_range` parameter: {view_range!r:.100}. Give two lines.")
    if len(view_range) != 2:
        return 1, count
    first, last = view_range
    return max(1, first), count if last == -1 else max(0, last)


def _with_numbers(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _listing(files: Iterable[File], place: str, path: str) -> str:
    """Return the contents of a directory, two levels deep, with sizes, without hidden files."""
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    total = 0
    for file in files:
        parts = tuple(file.place.removeprefix(f"{place}/").split("/"))
        size = len(file.text.encode())
        total += size
        if any(part.startswith(".") for part in parts[:2]):
            continue
        for depth in range(1, min(len(parts), 2) + 1):
            sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + size
            if depth < len(parts):
                folders.add(parts[:depth])
    listed = [
        f"{_size(sizes[parts])}\t{path}/{'/'.join(parts)}{'/' if parts in folders else ''}"
        for parts in sorted(sizes)
    ]
    heading = (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    )
    return "\n".join([heading, f"{_size(total)}\t{path}", *listed])


def _size(count: int) -> str:
    """Return a human-readable number of bytes: ``512B``, ``1.5K``, ``4K``."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{int(size)}{unit}" if size == int(size) else f"{size:.1f}{unit}"

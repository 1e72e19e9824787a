"""Which agent a project's memories belong to: one that is named after its folder.

The name is that of the folder of the git repository that a path is in (or of the path itself), and
eight digits of a checksum of that folder's path: two projects of the same name never share
memories, and all paths in a project give the same name. All worktrees of a repository are one
project. Only ``.git`` is read, and nothing slow is imported.
"""

import os
import zlib
from typing import Final, NamedTuple

_LONGEST_NAME: Final = 48
_LONGEST_FILE: Final = 4096


class Project(NamedTuple):
    """A project, and the agent that has its memories."""

    agent_id: str
    folder: str


def project_of(path: str) -> Project:
    """Return the project that a path is in."""
    folder = _root_of(os.path.realpath(os.path.expanduser(path)))
    name = "".join(letter if _is_fit(letter) else "-" for letter in os.path.basename(folder))
    short = "-".join(filter(None, name.split("-")))[:_LONGEST_NAME] or "project"
    return Project(f"{short}-{zlib.crc32(os.fsencode(folder)):08x}", folder)


def _is_fit(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")


def _root_of(path: str) -> str:
    """Return the folder of the repository that a path is in, else the path."""
    folder = path
    while True:
        marker = os.path.join(folder, ".git")
        if os.path.isdir(marker):
            return folder
        if os.path.isfile(marker):
            return _main_worktree(folder, marker)
        parent = os.path.dirname(folder)
        if parent == folder:
            return path
        folder = parent


def _main_worktree(folder: str, marker: str) -> str:
    """Return the folder of the repository that a worktree belongs to; a submodule's is its own."""
    entry = _line_of(marker)
    if not entry.startswith("gitdir:"):
        return folder
    git_folder = os.path.join(folder, entry.removeprefix("gitdir:").strip())
    common = _line_of(os.path.join(git_folder, "commondir"))
    # The repository must know the worktree, or a folder could claim another project's memories.
    known = _line_of(os.path.join(git_folder, "gitdir"))
    if not common or os.path.realpath(known) != os.path.realpath(marker):
        return folder
    shared = os.path.realpath(os.path.join(git_folder, common))
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else shared


def _line_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_FILE).strip()
    except OSError:
        return ""

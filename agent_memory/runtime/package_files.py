"""Where the package's data files are: SQL, guides, the page, a vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def _package_folder() -> Traversable:
    folder = Path(__file__).parents[1]
    if folder.is_dir():
        return folder
    from importlib.resources import files  # noqa: PLC0415 - 20 ms, seldom

    return files("agent_memory")


PACKAGE: Final = _package_folder()
"""The folder of the package; not a path on disk if Python imports from a zip archive."""

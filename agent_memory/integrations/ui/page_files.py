"""The files of the page, by the path that they are served at. No other path is served."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, NamedTuple

from agent_memory.runtime.package_files import PACKAGE

_FOLDER: Final = PACKAGE.joinpath("integrations", "ui", "page")
_MEDIA_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """The content of a file, and its media type."""

    content: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """Read all files of the page; ``/`` is its HTML."""
    files = {
        f"/{file.name}": PageFile(file.read_bytes(), _MEDIA_TYPES[ending])
        for file in _FOLDER.iterdir()
        if (ending := PurePath(file.name).suffix) in _MEDIA_TYPES
    }
    return {**files, "/": files["/index.html"]}

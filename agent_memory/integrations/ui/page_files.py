"""The files of the page, by the address that they are served at. No other path is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

_FOLDER: Final = Path(__file__).with_name("page")
_MEDIA_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """What is sent, and as what."""

    content: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """Read all files of the page; ``/`` is its HTML."""
    files = {
        f"/{path.name}": PageFile(path.read_bytes(), _MEDIA_TYPES[path.suffix])
        for path in _FOLDER.iterdir()
        if path.suffix in _MEDIA_TYPES
    }
    return {**files, "/": files["/index.html"]}

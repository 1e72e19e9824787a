"""The guides as a small static site: HTML files and a style sheet, with no external resources."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from agent_memory import ValidationError, __version__
from agent_memory.runtime.files import translated_errors
from agent_memory.runtime.package_files import PACKAGE
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    from markdown_it.token import Token

_STYLE: Final = PACKAGE.joinpath("cli", "style.css")
_OWN: Final = '<meta name="generator" content="agent-memory guide'
"""It is in every page, and marks a folder as a site that may be overwritten."""
_FRONT: Final = "index"
_CURRENT: Final = ' aria-current="page"'
_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{own} {version}">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav><ul>
{links}
</ul></nav>
<main>
{body}</main>
</body>
</html>
"""


class Page(Protocol):
    """The source of a page: a guide."""

    @property
    def topic(self) -> str: ...  # noqa: D102 - described in `Guide`
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def text(self) -> str: ...  # noqa: D102


def write_site(pages: Sequence[Page], folder: Path) -> list[Path]:
    """Write guides as a site into a folder, and return its files.

    The folder is created, or is empty, or holds an older site of ours, which is replaced: pages of
    guides that no longer exist are removed. Raises ``ValidationError`` for any other folder, and
    ``StorageError`` if it cannot be written.
    """
    require_package("markdown_it", extra="docs")
    with translated_errors(folder, "written"):
        old = _own_pages(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # The front page comes first: it marks an interrupted site as ours.
        files = {folder / f"{_FRONT}.html": _page(_FRONT, _front(pages), pages)}
        files |= {folder / f"{p.topic}.html": _page(p.topic, p.text, pages) for p in pages}
        files[folder / "style.css"] = _STYLE.read_text("utf-8")
        for path, text in files.items():
            path.write_text(text, "utf-8")
        for path in old - files.keys():
            path.unlink()
    return list(files)


def _own_pages(folder: Path) -> set[Path]:
    """Return the pages of an earlier site; refuse a folder with anything else."""
    if not folder.exists() or not any(folder.iterdir()):
        return set()
    pages = {path for path in folder.glob("*.html") if _OWN in path.read_text("utf-8", "replace")}
    if folder / f"{_FRONT}.html" in pages:
        return pages
    message = f"{folder} has other files: give an empty or new folder"
    raise ValidationError.of("html", message, str(folder))


def _front(pages: Sequence[Page]) -> str:
    rows = "\n".join(f"| [{page.topic}]({page.topic}.md) | {page.summary} |" for page in pages)
    return f"# agent-memory {__version__}\n\n| topic | what it is about |\n|---|---|\n{rows}\n"


def _page(topic: str, text: str, pages: Sequence[Page]) -> str:
    """Return a whole page, with links to all others."""
    entries = [(_FRONT, "all guides"), *((page.topic, page.topic) for page in pages)]
    links = "\n".join(
        f'<li><a href="{name}.html"{_CURRENT if name == topic else ""}>{label}</a></li>'
        for name, label in entries
    )
    title = html.escape(text.partition("\n")[0].removeprefix("# "))
    return _PAGE.format(own=_OWN, version=__version__, title=title, links=links, body=_body(text))


def _body(markdown: str) -> str:
    """Return Markdown as HTML; links between guides lead to their pages."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - an extra

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    anchors: set[str] = set()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(tokens[place + 1].content, anchors))
        for inner in token.children or ():
            _lead_to_page(inner)
    return str(parser.renderer.render(tokens, parser.options, {}))


def _anchor(heading: str, taken: set[str]) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    name = anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    number = 0
    while anchor in taken:
        number += 1
        anchor = f"{name}-{number}"
    taken.add(anchor)
    return anchor


def _lead_to_page(token: Token) -> None:
    if token.type == "link_open":
        path, mark, anchor = str(token.attrGet("href")).partition("#")
        if path.endswith(".md") and "/" not in path:
            token.attrSet("href", f"{path.removesuffix('.md')}.html{mark}{anchor}")

"""The project's documents, and what stands in them: README and guides, code blocks, links."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
README = CHECKOUT / "README.md"
PACKAGE = CHECKOUT / "agent_memory"
GUIDES = sorted((PACKAGE / "guides").glob("*.md"))
DOCUMENTS = [README, *GUIDES]

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def blocks(document: Path, language: str) -> list[str]:
    """Return a document's code blocks of a language, in order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def prose(document: Path) -> str:
    """Return a document without its code blocks and code spans."""
    text = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "", re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE))


def links(document: Path) -> list[tuple[str, str]]:
    """Return the text and the target of each link in a document."""
    return _LINK.findall(prose(document))


def anchors(document: Path) -> set[str]:
    """Return the names under which a document's headings can be linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

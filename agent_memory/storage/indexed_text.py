"""What the keyword index holds of a memory, where the engine cannot make it by itself.

The view ``memory_text`` of a file (migrations/0003_keyword_index.sql) makes the same of it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from agent_memory.storage.query_terms import DENSE_SCRIPTS

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip


class IndexedText(NamedTuple):
    """The texts that are indexed: content, tags as JSON, words of the date, pairs of characters."""

    content: str
    tags: str
    dates: str
    pairs: str

    def __str__(self) -> str:
        return " ".join(self)


def indexed_text(content: str, tags: str, timestamp: str) -> IndexedText:
    """Return the texts that are indexed of a memory, whose columns are given."""
    return IndexedText(content, tags, _words_of_date(timestamp), _pairs(content, tags))


def _words_of_date(timestamp: str) -> str:
    month = int(timestamp[5:7])
    return f"{timestamp[8:10].lstrip('0')} {_MONTHS[month - 1]} {timestamp[:4]}"


def _pairs(content: str, tags: str) -> str:
    """Return every two characters of dense scripts that stand together, and what is between."""
    text = f"{content} {tags}"
    if text.isascii() or not _letters().search(text):
        return ""
    return _letters().sub(lambda letters: f" {letters[1]}{letters[2] or ''} ", text)


@cache
def _letters() -> re.Pattern[str]:
    """Compile the pattern when it is needed: that takes 5 ms, which most texts do without."""
    return re.compile(f"([{DENSE_SCRIPTS}])(?=([{DENSE_SCRIPTS}])?)")

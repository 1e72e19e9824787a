"""The text of a memory in the keyword index, for engines that cannot compute it in SQL.

The view ``memory_text`` of a file (migrations/0003_keyword_index.sql) computes the same.
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
    """The indexed texts: content, tags as JSON, words of the date, pairs of characters."""

    content: str
    tags: str
    dates: str
    pairs: str

    def __str__(self) -> str:
        return " ".join(self)


def indexed_text(content: str, tags: str, timestamp: str) -> IndexedText:
    """Return the indexed texts of a memory, given its columns."""
    return IndexedText(content, tags, _words_of_date(timestamp), _pairs(content, tags))


def _words_of_date(timestamp: str) -> str:
    month = int(timestamp[5:7])
    return f"{timestamp[8:10].lstrip('0')} {_MONTHS[month - 1]} {timestamp[:4]}"


def _pairs(content: str, tags: str) -> str:
    """Return every pair of adjacent characters of dense scripts, and the text in between."""
    text = f"{content} {tags}"
    if text.isascii() or not _letters().search(text):
        return ""
    return _letters().sub(lambda letters: f" {letters[1]}{letters[2] or ''} ", text)


@cache
def _letters() -> re.Pattern[str]:
    """Compile the pattern on first use: that takes 5 ms, and most texts do not need it."""
    return re.compile(f"([{DENSE_SCRIPTS}])(?=([{DENSE_SCRIPTS}])?)")

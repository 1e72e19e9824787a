"""The names in a query, and how relevant a relationship is to it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from agent_memory.models.graph import USER_NAME, EdgeView, name_key

_MOST_WORDS: Final = 200
"""Words of a query that are looked at."""
_LONGEST_RUN: Final = 6
"""Words of a query that are looked at as one name."""
_MARKS: Final = re.compile(r"^[\W_]+|(?:['\u2019]s)?[\W_]*$")
_OWN: Final = frozenset({"i", "me", "my", "mine", "myself", "user"})


def query_words(query: str) -> list[str]:
    """Return the words of a query in lower case, without the marks around them."""
    bare = (_MARKS.sub("", word) for word in query.lower().split()[:_MOST_WORDS])
    return [word for word in bare if word]


def keys_of(words: Sequence[str]) -> list[str]:
    """Return the keys of all names that words in a row may be."""
    runs = {
        name_key(" ".join(words[start:end]))
        for start in range(len(words))
        for end in range(start + 1, min(start + _LONGEST_RUN, len(words)) + 1)
    }
    return sorted(runs | ({USER_NAME.lower()} if _OWN.intersection(words) else set()))


def worth_of(edge: EdgeView, named: Mapping[str, str], query_terms: set[str]) -> float:
    """Return how relevant a relationship is to a query."""
    user = USER_NAME.lower()
    ends = [named.get(end) for end in (edge.source_id, edge.target_id)]
    worth = sum(0.0 if key is None else 0.5 if key == user else 1.0 for key in ends)
    words = {*edge.relationship.lower().split("_"), *edge.target.lower().split(),
             *edge.source.lower().split()}  # fmt: skip
    stems = {word.rstrip("s") for word in words}
    shared = sum(word.rstrip("s") in stems for word in query_terms)
    return max(worth, 0.5) + 0.5 * shared

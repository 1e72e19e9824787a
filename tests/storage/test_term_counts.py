"""How often the terms of a query stand in a text, however long it is."""

from __future__ import annotations

from collections import Counter

import pytest

from agent_memory.storage.records import Term
from agent_memory.storage.term_counts import TermCounter


@pytest.mark.parametrize("times", [1, 100])
def test_every_term_is_counted_in_short_texts_and_in_long_ones(times: int) -> None:
    tokens = ("tea", "is", "not", "tea", "but", "coffee", "with", "milk") * times
    terms = [Term(word, word) for word in ("milk", "tea", "cocoa", "coffee")]
    found = TermCounter(terms).count(tokens, asks=False)
    expected = Counter(tokens)
    assert found.counts == {0: expected["milk"], 1: expected["tea"], 3: expected["coffee"]}
    assert found.length == len(tokens)
    assert found.opens

"""What a conversation said before a fact: which of it the fact is compared with."""

from __future__ import annotations

from agent_memory.extraction.rules.decisions import EarlierFacts


def test_of_what_has_as_many_words_in_common_the_last_is_compared() -> None:
    """Else the order of words in a set, another one in each process, would say what is asked."""
    earlier = EarlierFacts()
    of_tea = [earlier.take(f"Tea is drunk by guest{number}x") for number in range(60)]
    of_other = [earlier.take(f"Room{number}y has a window") for number in range(30)]
    found = [memory.id for memory in earlier.related("I like tea")]
    assert found == [*of_other[:-26:-1], *of_tea[:-26:-1]]

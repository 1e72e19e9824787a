"""What a conversation said before a fact, so that one call is judged as several would be.

What is new in a conversation is no memory yet while its facts are decided about. The next fact may
correct it all the same: "I live in Berlin." and, ten turns later, "I moved to Lisbon."
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from heapq import nlargest
from typing import Final

from agent_memory.extraction.rules.conflicts import Reading, read
from agent_memory.extraction.types import RelatedMemory
from agent_memory.models.fields import new_memory_id
from agent_memory.text.normalize import exact_form, near_form

_COMPARED: Final = 25
"""What is new that a fact is compared with: the last so many, and so many with the same words."""
_OF_A_WORD: Final = 200
"""Of what has the same word, the last so many are looked at."""


class EarlierFacts:
    """The facts of a conversation that will be memories, each with the id that it will have."""

    def __init__(self) -> None:
        self._memories: list[RelatedMemory] = []
        self._readings: dict[str, Reading] = {}
        self._forms: set[str] = set()
        self._having: defaultdict[object, list[int]] = defaultdict(list)

    def take(self, text: str) -> str:
        """Take a fact that will be a memory, and return that memory's id."""
        memory = RelatedMemory(new_memory_id(), text)
        form = near_form(exact_form(text))
        if form not in self._forms:  # else it will be the memory that says so already
            self._forms.add(form)
            self._readings[text] = read(text)
            for key in _keys(text):
                self._having[key].append(len(self._memories))
            self._memories.append(memory)
        return memory.id

    def read(self, text: str) -> Reading:
        """Read a text, or give what was read of it: for each fact anew it takes thrice as long."""
        return self._readings.get(text) or read(text)

    def related(self, text: str) -> list[RelatedMemory]:
        """Return what a fact is to be compared with, the last first."""
        if not self._memories:
            return []
        count = len(self._memories)
        alike = Counter(
            place for key in _keys(text) for place in self._having.get(key, ())[-_OF_A_WORD:]
        )
        places = [
            *range(count - 1, max(-1, count - 1 - _COMPARED), -1),
            # Of those with as many words in common the last: any order of theirs is of chance.
            *(
                place
                for _, place in nlargest(_COMPARED, ((n, place) for place, n in alike.items()))
            ),
        ]
        return [self._memories[place] for place in dict.fromkeys(places)]


def _keys(text: str) -> Iterator[object]:
    """Yield by what a text is found: its words, and the slots of which it states a value."""
    yield from read(text).stems
    yield from {stated.slot for stated in read(text).statements}

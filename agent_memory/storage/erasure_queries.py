"""What a transaction offers for erasing memories for good, and for reading what is left of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from agent_memory.storage.change_records import ErasedText, RemainingText, RemovedRows, Statement


class ErasureQueries(Protocol):
    """Queries that erase memories for good, and read what is left of them."""

    def known_ids(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that are of memories, archived ones too, or have a history."""

    def texts_of(self, memory_ids: Sequence[str]) -> ErasedText:
        """Return all texts and vectors of these memories, their history's too."""

    def statements(self, memory_ids: Sequence[str] | None = None) -> Iterator[Statement]:
        """Yield what each memory says, and what each says and said in its history.

        Only those of some ids, if they are given.
        """

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        """Delete every row of these memories but those of the vector indexes."""

    def unused_words(self, words: Iterable[str]) -> list[str]:
        """Return those of the words that stand in no memory, as the keyword index holds them."""

    def remaining_texts(self) -> Iterator[RemainingText]:
        """Yield all texts that the tables hold, read by the page."""

    def places_beyond(self) -> list[str]:
        """Return where the store's operator may still have what was removed, for a receipt."""

    def remaining_vectors(self) -> Iterator[bytes]:
        """Yield all vectors that the tables hold, with the hashes of their texts."""

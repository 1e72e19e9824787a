"""A search for pieces of many texts in gigabytes of raw bytes.

A longer text is identified by all its blocks of 24 bytes: the file is cut into blocks as well, and
two sets are compared, so a piece is found wherever the text was split. Short texts are searched for
as they are, all at once. ASCII letters match regardless of case.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

_BLOCK: Final = 24
CERTAIN: Final = 2 * _BLOCK - 1
"""The number of adjacent bytes of a longer text that are always found."""
READ_LENGTH: Final = _BLOCK * 2**17
"""Bytes that are searched at a time: blocks must not be cut in two."""
_BLOCKS_AT_A_TIME: Final = 200_000
"""Blocks of texts that are held at a time: 30 MB of them."""

Chunks = Callable[[], Iterable[bytes]]
"""Reads the bytes from their start, ``READ_LENGTH`` at a time except for the last."""


class Pieces:
    """Texts, cut up for ``find``. A piece is a block of one, or a short text as it is."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        folded = {text.lower() for text in texts if text}
        self._long = sorted(text for text in folded if len(text) >= CERTAIN)
        self._short = frozenset(text for text in folded if len(text) < CERTAIN)

    def find(self, chunks: Chunks) -> dict[bytes, int]:
        """Return the pieces that the bytes contain, and the offset at which each first occurs."""
        offsets = _find_short(self._short, chunks()) if self._short else {}
        for blocks in self._blocks():
            for number, chunk in enumerate(chunks()):
                folded = chunk.lower()
                whole = folded[: len(folded) // _BLOCK * _BLOCK]
                start = number * READ_LENGTH
                here = blocks.intersection(struct.iter_unpack(f"{_BLOCK}s", whole))
                if here:
                    # Once over the chunk, not once for each: it may contain thousands.
                    for place, block in enumerate(struct.iter_unpack(f"{_BLOCK}s", whole)):
                        if block in here:
                            offsets.setdefault(block[0], start + place * _BLOCK)
                last = folded[-_BLOCK:]  # if the file ends inside a block
                if (last,) in blocks:
                    offsets.setdefault(last, start + len(folded) - len(last))
        return offsets

    def _blocks(self) -> Iterator[set[tuple[Any, ...]]]:
        """Yield the blocks of the longer texts, in sets that fit into memory."""
        blocks: set[tuple[Any, ...]] = set()
        for text in self._long:
            blocks.update((text[at : at + _BLOCK],) for at in range(len(text) - _BLOCK + 1))
            if len(blocks) >= _BLOCKS_AT_A_TIME:
                yield blocks
                blocks = set()
        if blocks:
            yield blocks


def _find_short(pieces: frozenset[bytes], chunks: Iterable[bytes]) -> dict[bytes, int]:
    offsets: dict[bytes, int] = {}
    look = finder(pieces)
    longest = max(map(len, pieces))
    tail, start = b"", 0
    for chunk in chunks:
        here = tail + chunk.lower()
        for piece, at in look(here).items():
            offsets.setdefault(piece, start - len(tail) + at)
        start += len(chunk)
        tail = here[-longest:]
    return offsets


def finder(pieces: Iterable[bytes]) -> Callable[[bytes], dict[bytes, int]]:
    """Return a function that finds which pieces occur in a text, and where each does first.

    Pieces and texts must be in lower case.
    """
    piece_set = frozenset(pieces)
    # One pattern for all: it takes no longer for thousands of them than for a few.
    pattern = re.compile(_branches(sorted(piece_set), 0), re.DOTALL)

    def find(text: bytes) -> dict[bytes, int]:
        offsets: dict[bytes, int] = {}
        match = pattern.search(text)
        while match is not None:
            longest, at = match[0], match.start()
            if longest not in offsets:
                # A shorter one may begin the same way.
                for length in range(1, len(longest) + 1):
                    if longest[:length] in piece_set:
                        offsets.setdefault(longest[:length], at)
            match = pattern.search(text, at + 1)
        return offsets

    return find


def _branches(pieces: list[bytes], at: int) -> bytes:
    """Return the pattern of what follows the first ``at`` bytes, which all pieces share."""
    ends = len(pieces[0]) == at
    rest = pieces[1:] if ends else pieces
    if not rest:
        return b""
    branches = []
    while rest:
        first = rest[0][at]
        same = [piece for piece in rest if piece[at] == first]
        alike = _alike(same, at)
        branches.append(re.escape(same[0][at:alike]) + _branches(same, alike))
        rest = rest[len(same) :]
    if len(branches) == 1 and not ends:
        return branches[0]
    return b"(?:" + b"|".join(branches) + (b")?" if ends else b")")


def _alike(pieces: list[bytes], at: int) -> int:
    """Return the length of the prefix that sorted pieces share: that of the first and the last."""
    first, last = pieces[0], pieces[-1]
    most = min(len(first), len(last))
    while at < most and first[at] == last[at]:
        at += 1
    return at

"""A tokenizer for SentencePiece's unigram models, in some 60 lines. Pure.

The package ``tokenizers`` could do this too, but takes half a second to load a vocabulary of
250,000 pieces. Here it is a dictionary.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache


class UnigramTokenizer:
    """Splits texts into the pieces of a vocabulary, as SentencePiece's unigram model does.

    Of all ways to split a word, it takes the one whose pieces have the highest total score.
    ``pieces`` maps each piece, in UTF-8, to its number; ``unknown`` is the number for text that no
    piece matches.
    """

    def __init__(self, pieces: dict[bytes, int], scores: Sequence[float], unknown: int) -> None:
        self._pieces = pieces
        self._scores = scores
        self._unknown = unknown
        self._unknown_score = min(scores) - 10  # as in SentencePiece
        self._longest = max(map(len, pieces))
        self._cut = lru_cache(maxsize=20_000)(self._cut_word)

    def tokens(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces, in order."""
        words = unicodedata.normalize("NFKC", text).split()
        return [piece for word in words for piece in self._cut(word)]

    def _cut_word(self, word: str) -> list[int]:
        data = f"\u2581{word}".encode(errors="replace")  # the mark of a word's beginning
        size = len(data)
        # The best split up to each byte: its score, where its last piece begins, and that piece.
        best: list[tuple[float, int, int]] = [(0.0, 0, 0), *([(-1e30, 0, 0)] * size)]
        for start in range(size):
            if data[start] & 0xC0 == 0x80:
                continue  # within a character
            score = best[start][0]
            for end in range(start + 1, min(size, start + self._longest) + 1):
                piece = self._pieces.get(data[start:end])
                if piece is not None and score + self._scores[piece] > best[end][0]:
                    best[end] = score + self._scores[piece], start, piece
            end = next((n for n in range(start + 1, size) if data[n] & 0xC0 != 0x80), size)
            if score + self._unknown_score > best[end][0]:
                best[end] = score + self._unknown_score, start, self._unknown
        pieces, end = [], size
        while end:
            _, end, piece = best[end]
            pieces.append(piece)
        return pieces[::-1]

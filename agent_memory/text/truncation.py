"""Truncates a text that is too long to be read in full."""

from __future__ import annotations


def both_ends(text: str, most: int) -> str:
    """Return a text, or, if it is longer than ``most`` characters, half of that from each end.

    A question stands either before or after the text that was pasted with it.
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n{text[-half:]}"

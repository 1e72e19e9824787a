"""Parts of a text that is too long to be read whole."""

from __future__ import annotations


def both_ends(text: str, most: int) -> str:
    """Return a text, or half of ``most`` characters from each end of a longer one.

    What is asked stands before what was pasted, or after it.
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n{text[-half:]}"

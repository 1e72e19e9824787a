"""How many there are, in words: the one place that knows the singular from the plural."""

from __future__ import annotations


def counted(count: int, singular: str = "memory", plural: str = "memories") -> str:
    """Return a number with its noun: "1 memory", "2,000 memories".

    A verb that follows goes with the noun: ``counted(count, "row has", "rows have")``.
    """
    return f"{count:,} {singular if count == 1 else plural}"

"""The score of a memory for a query, from its similarity, its age and its use (A)."""

from __future__ import annotations

from typing import Final

FRESHNESS_DECAY_RATE: Final = 0.1
"""A's rate: a memory of ``n`` days counts ``1 / (1 + 0.1 n)``."""
ACCESS_BOOST_RATE: Final = 0.05
"""A's rate: a memory accessed ``n`` times counts ``1 + 0.05 n``."""


def relevance_score(
    similarity: float,
    *,
    age_days: int,
    access_count: int,
    decay_rate: float = FRESHNESS_DECAY_RATE,
    boost_rate: float = ACCESS_BOOST_RATE,
) -> float:
    """Return A's formula: similarity × freshness × access boost."""
    freshness = 1.0 / (1.0 + decay_rate * age_days)
    return similarity * freshness * (1.0 + boost_rate * access_count)

"""Candidates and queries that tests of scoring and of ranking make up, and how they are ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from agent_memory.services.search.ranking import RankedHit, Ranking, RankingRates, rank
from agent_memory.services.search.scoring import Evidence, Weights, weigh
from agent_memory.services.search.signals import Candidate, CosineScale, QueryProfile

# How long an example takes is no matter of these tests.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TODAY = date(2026, 1, 30)
CORPUS = 2_000
SPACE = CosineScale(weight=1.0, floor=0.2)
SCALES = st.builds(CosineScale, st.floats(0, 9), st.floats(-1, 0.9), doubt=st.floats(0, 1))
PLAIN = Weights(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5)
"""Every part counts as much as a memory's own words; a question loses half."""
PARTS = Evidence._fields[:-1]


def candidate(row_id: int, *counts: int, **fields: Any) -> Candidate:
    """Make a candidate alone in its session, of ten words, stored today and never accessed."""
    given_fields = {"session": f"session-{row_id}", "length": 10, "day": TODAY, **fields}
    present = {place: count for place, count in enumerate(counts) if count}
    return Candidate(row_id=row_id, counts=present, **given_fields)


def query(*frequencies: int, **fields: Any) -> QueryProfile:
    return QueryProfile(frequencies=frequencies, **{"corpus_size": CORPUS, **fields})


def parts(
    candidates: Sequence[Candidate], asked: QueryProfile, weights: Weights = PLAIN
) -> Mapping[int, Evidence]:
    scores = weigh(candidates, asked, weights)
    return {row_id: scores.evidence_for(row_id) for row_id in scores.parts}


def talk(*members: Candidate) -> list[Candidate]:
    """Put candidates in one session, one after the other."""
    row_ids = [member.row_id for member in members]
    return [
        member._replace(
            session="talk",
            neighbours={
                other - place: row_ids[other]
                for other in range(len(row_ids))
                if 0 < abs(other - place) <= 2
            },
        )
        for place, member in enumerate(members)
    ]


RARE = query(20)
"""A query of one word."""


def ranking(candidates: Sequence[Candidate], asked: QueryProfile = RARE, **rates: float) -> Ranking:
    return rank(candidates, asked, RankingRates(**rates))


def by_row_id(found: Ranking) -> Mapping[int, RankedHit]:
    return {ranked.row_id: ranked for ranked in found.order}


def order(found: Ranking) -> list[int]:
    return [ranked.row_id for ranked in found.order]

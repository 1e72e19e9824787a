"""Each campaign, short. ``python -m tests.survival --full`` runs them at length."""

from __future__ import annotations

import pytest

from .campaigns import CAMPAIGNS, Campaign


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.name)
def test_survives(campaign: Campaign) -> None:
    tally = campaign.run(campaign.short, seed=1)
    assert tally.cases >= campaign.short
    assert campaign.passed(tally), tally

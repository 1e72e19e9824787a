"""What holds for all campaigns in the suite."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Undo what a campaign does to logging: tests after it look for messages."""
    logger = logging.getLogger("agent_memory")
    before = logger.level
    yield
    logger.setLevel(before)
    logging.disable(logging.NOTSET)

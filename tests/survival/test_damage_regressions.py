"""Damaged files that did harm once: rows of other tables where no value is what code expects."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .damage import _case
from .damage_files import Damage, make_bases, plan

FOUND = [
    "standard with a log, page, page 32 is page 2",  # TypeErrors and AttributeErrors of any verb
    "keywords, page, page 32 is page 28",  # and no backup could be restored over it
    "keywords, page, page 32 is itself, torn",
    "aged, page, page 25 is page 32",  # an empty index of which SQLite's own check says nothing
    "aged, page, page 3 is page 14",
    "standard with a log, page, page 21 is page 20",
]


@pytest.fixture(scope="module")
def damages() -> Iterator[dict[str, Damage]]:
    with tempfile.TemporaryDirectory() as folder:
        yield {str(damage): damage for damage in plan(make_bases(Path(folder)), 5_000, 1)}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", FOUND)
def test_damage_is_told_as_damage(damages: dict[str, Damage], name: str, tmp_path: Path) -> None:
    known = [state for damage in damages.values() for state in damage.base.states]
    tally = _case(damages[name], tmp_path / "case", known)
    assert tally.notes == []
    assert tally.harm == 0

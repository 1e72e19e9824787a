"""Damaged files that did harm once: rows of other tables where no value is what code expects."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_memory.storage.sqlite.connection import Database

from .damage import _case
from .damage_files import PAGE, Base, Damage, make_bases, patched
from .verbs import NAME

# The root page of one table or index is that of another, or only its first half.
FOUND = [
    ("standard with a log", "rejections", "schema_migrations"),  # TypeErrors of any verb
    ("keywords", "rejections", "fingerprints"),  # and no backup could be restored over it
    ("keywords", "rejections", "itself, torn"),
    ("aged", "embeddings_by_memory", "rejections"),  # SQLite's own check says nothing
    ("aged", "memories", "memory_index_docsize"),
    ("standard with a log", "embedding_models", "agent"),
]


@pytest.fixture(scope="module")
def bases() -> Iterator[dict[str, Base]]:
    with tempfile.TemporaryDirectory() as folder:
        yield {base.name: base for base in make_bases(Path(folder))}


def root_pages(base: Base, folder: Path) -> dict[str, int]:
    """Return where the root page of each table and index begins, in bytes."""
    copy = folder / NAME
    copy.write_bytes((base.folder / NAME).read_bytes())
    with contextlib.closing(Database(copy, create=False, read_only=True)) as database:
        rows = database.rows("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
    return {name: (number - 1) * PAGE for name, number in rows}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("name", "table", "other"), FOUND)
def test_damage_is_told_as_damage(
    bases: dict[str, Base], name: str, table: str, other: str, tmp_path: Path
) -> None:
    base = bases[name]
    (looked := tmp_path / "look").mkdir()
    at = root_pages(base, looked)
    whole = (base.folder / NAME).read_bytes()
    begin = at[table]
    taken = at.get(other, begin)
    page = whole[taken : taken + PAGE]
    if other not in at:
        page = page[: PAGE // 2] + bytes(PAGE // 2)
    damage = Damage(base, "page", f"{table} is {other}", patched(NAME, begin, page))
    known = [state for one in bases.values() for state in one.states]
    tally = _case(damage, tmp_path / "case", known)
    assert tally.notes == []
    assert tally.harm == 0

"""The migrations of a schema: numbered files of SQL, read from the package or the checkout."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final, NamedTuple

from agent_memory.errors import MigrationError

UPGRADE: Final = "take a newer version of it (`pip install .` in a newer checkout)"
"""What to do about memories that a newer library made: the package is on no index."""


class Migration(NamedTuple):
    """One file of ``migrations/``."""

    number: int
    name: str
    sql: str
    sha256: str


def read_migrations(package: Path, engine: str = "") -> tuple[Migration, ...]:
    """Read the migrations, in order: from the installed package, else from the checkout.

    ``engine`` names the folder in ``migrations/`` of an engine other than SQLite.
    """
    places = (package / "migrations" / engine, package.parent / "migrations" / engine)
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise MigrationError("the migrations are missing: install agent-memory again")
    shipped = tuple(_read(path) for path in sorted(folder.glob("[0-9]*.sql")))
    if [migration.number for migration in shipped] != list(range(1, len(shipped) + 1)):
        raise MigrationError(f"the migrations in {folder} are not numbered 1, 2, 3, …")
    return shipped


def _read(path: Path) -> Migration:
    if re.fullmatch(r"\d{4}_[a-z][a-z0-9_]*\.sql", path.name) is None:
        raise MigrationError(f"{path} is not named like 0001_memories.sql")
    sql = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    return Migration(int(path.name[:4]), path.name, sql, hashlib.sha256(sql.encode()).hexdigest())

"""The migrations of a schema: numbered SQL files, read from the package or the checkout."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.errors import MigrationError
from agent_memory.text.digest import sha256_hex

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

UPGRADE: Final = "install a newer version of it (`pip install .` in a newer checkout)"
"""What to do about memories made by a newer library: the package is on no index."""


class Migration(NamedTuple):
    """One file of ``migrations/``."""

    number: int
    name: str
    sql: str
    sha256: str


def read_migrations(package: "Traversable", engine: str = "") -> tuple[Migration, ...]:
    """Read the migrations, in order, from the installed package or else the checkout.

    ``engine`` is the folder in ``migrations/`` for an engine other than SQLite.
    """
    folder = _folder(package, engine)
    names = sorted(file.name for file in folder.iterdir() if file.name[0].isdigit())
    shipped = tuple(_read(folder, name) for name in names if name.endswith(".sql"))
    if not shipped:
        raise _missing()
    if [migration.number for migration in shipped] != list(range(1, len(shipped) + 1)):
        raise MigrationError(f"the migrations in {folder} are not numbered 1, 2, 3, …")
    return shipped


def read_snapshot(package: "Traversable") -> str:
    """Read ``migrations/schema.sql``: the combined result of the migrations of SQLite."""
    try:
        return _text(_folder(package, ""), "schema.sql")
    except FileNotFoundError as error:
        raise _missing() from error


def _folder(package: "Traversable", engine: str) -> "Traversable":
    packages = (package, package.parent) if isinstance(package, Path) else (package,)
    places = (place.joinpath("migrations", engine) for place in packages)
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise _missing()
    return folder


def _missing() -> MigrationError:
    return MigrationError(
        "the migrations are missing: install agent-memory again; whoever bundles a program must"
        " include the package's data files"
    )


def _read(folder: "Traversable", name: str) -> Migration:
    if re.fullmatch(r"\d{4}_[a-z][a-z0-9_]*\.sql", name) is None:
        raise MigrationError(f"{folder.joinpath(name)} is not named like 0001_memories.sql")
    sql = _text(folder, name)
    return Migration(int(name[:4]), name, sql, sha256_hex(sql.encode()))


def _text(folder: "Traversable", name: str) -> str:
    return folder.joinpath(name).read_text("utf-8")  # with universal newlines

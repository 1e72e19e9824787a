"""Where agents live: ``{root}/{agent_id}/memories.db``, or in a database of a server."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Final

from agent_memory.errors import (
    ConfigurationError,
    MissingAgentIdentity,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.models.fields import clean_agent_id, clean_text, validate_agent_id
from agent_memory.models.limits import (
    AGENT_VARIABLE,
    BACKUPS_FOLDER,
    DEFAULT_MEMORY_ROOT,
    ROOT_VARIABLE,
    SCRATCHPAD_FILENAME,
    VECTOR_DB_FILENAME,
)
from agent_memory.runtime.addresses import (
    Address,
    AgentAddress,
    ServerAddress,
    is_server,
    server_address,
)
from agent_memory.text.counts import counted

Root = str | os.PathLike[str] | ServerAddress
"""The place of all agents: a directory, or a database of a server."""

_NEARLY_A_SERVER: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]+:/")
_OF_LIBPQ: Final = r"(?:host|hostaddr|port|dbname|user|password|service|sslmode)"
_KEYS_AND_VALUES: Final = re.compile(
    rf"\s*(?:dbname|{_OF_LIBPQ}\s*=.*\s{_OF_LIBPQ})\s*=", re.DOTALL
)
"""libpq's other way to write an address. A single key, except the database's, may name a folder."""


def memory_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the directory of all agents, absolute, with links on the way resolved.

    It is the argument, else ``AGENT_MEMORY_ROOT``, else ``~/.amplifier/memory``. Raises
    ``ConfigurationError`` if that is the database of a server.
    """
    server = server_root(root)
    if server is not None:
        raise ConfigurationError(f"{server} is a database, not a directory: give a directory")
    chosen = _text(root) if root is not None else os.environ.get(ROOT_VARIABLE, "")
    _refuse_near_address(chosen)
    return _resolved(_absolute(chosen or DEFAULT_MEMORY_ROOT))


def server_root(root: Root | None = None) -> ServerAddress | None:
    """Return the database of all agents, or ``None`` if they are in a directory.

    It is the argument, else ``AGENT_MEMORY_ROOT``.
    """
    if isinstance(root, ServerAddress):
        return root
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE, "")
    return server_address(chosen) if isinstance(chosen, str) and is_server(chosen) else None


def agent_address(agent_id: str, root: Root | None = None) -> Address:
    """Return where the memories of an agent are: see ``database_path``."""
    server = server_root(root)
    if server is not None:
        _check_agent_id(agent_id)
        return AgentAddress(server, agent_id)
    assert not isinstance(root, ServerAddress)  # noqa: S101 - server_root would return it
    return database_path(agent_id, root)


def database_path(agent_id: str, root: str | os.PathLike[str] | None = None) -> Path:
    """Return the file of an agent. It need not exist.

    Raises ``ValidationError`` for an agent id that could be a path or a device, and
    ``StorageUnavailable`` if the agent's directory is a link to somewhere else.
    """
    _check_agent_id(agent_id)
    directory = memory_root(root) / agent_id
    # Path.is_symlink raises if the root is inaccessible; opening the file gives a better error.
    if os.path.islink(directory):  # noqa: PTH114
        raise StorageUnavailable(
            f"{directory} is a symbolic link: an agent needs its own directory"
        )
    return directory / VECTOR_DB_FILENAME


def _check_agent_id(agent_id: str) -> None:
    if not agent_id:
        raise MissingAgentIdentity(
            f"which agent? Give an agent id, or set {AGENT_VARIABLE} for the command line"
        )
    if not isinstance(agent_id, str):
        raise ValidationError.of("agent_id", "must be a string", agent_id)
    try:
        clean_agent_id(agent_id)
    except ValueError as error:
        raise ValidationError.of("agent_id", str(error), agent_id) from error


def _refuse_near_address(text: str) -> None:
    """Refuse what was meant as an address: a folder of that name would have the password in it."""
    if _NEARLY_A_SERVER.match(text):
        scheme = text.partition(":")[0].strip()
        raise ConfigurationError(
            f"{scheme}:/… is neither a directory nor the address of a database: an address"
            " begins with postgresql://, in lower case"
        )
    if _KEYS_AND_VALUES.match(text):
        key = text.partition("=")[0].strip()
        raise ConfigurationError(
            f"{key}=… is not a directory, and the address of a database cannot be given as"
            " keys and values: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )


def resolve_file(path: str | os.PathLike[str]) -> Path:
    """Return a file's absolute path. Directories on the way may be links; the file may not."""
    text = _text(path)
    if is_server(text):
        raise ConfigurationError(
            f"{server_address(text)} is a database, not a file: give it as `root`, with an agent"
        )
    _refuse_near_address(text)
    if not text or text == ":memory:":
        raise ValidationError.of("path", "give the path of a file", text)
    place = _absolute(text)
    if not place.name:  # nothing can be beside it
        raise ValidationError.of("path", "is the root directory: give the path of a file", text)
    return _resolved(place.parent) / place.name


def with_home(path: str | os.PathLike[str]) -> Path:
    """Return a path with ``~`` expanded.

    Raises ``ValidationError`` if there is no home: in a container a user may have none.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        message = (
            f"no home directory is known for {os.fspath(path)!r:.300}: set HOME, or give a"
            f" path without ~ (to the memories with --root or {ROOT_VARIABLE})"
        )
        raise ValidationError.of("path", message, os.fspath(path)) from error


def agent_files(root: str | os.PathLike[str] | None = None) -> list[tuple[str, Path]]:
    """Return the agents under a root and their files, by name. A missing root has none.

    For an agent that has only documented memories, or backups, the file does not exist: see
    ``advice_on_missing``.
    Agents of other users, whose folders may not be entered, are left out; one of this user is not.
    Raises ``StorageUnavailable`` if the root itself may not be read.
    """
    directory = memory_root(root)
    try:
        entries = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageUnavailable(f"{directory} may not be read: {error}") from error
    return [
        (entry.name, entry / VECTOR_DB_FILENAME)
        for entry in entries
        if validate_agent_id(entry.name) and not entry.is_symlink() and _has_memories(entry)
    ]


def _has_memories(folder: Path) -> bool:
    # Path.is_file raises if the folder is inaccessible.
    if any(os.path.isfile(folder / name) for name in (VECTOR_DB_FILENAME, SCRATCHPAD_FILENAME)):  # noqa: PTH113
        return True
    if _count_backups(folder / VECTOR_DB_FILENAME):
        return True
    return os.name == "posix" and _is_closed_to_its_owner(folder)


def _is_closed_to_its_owner(folder: Path) -> bool:
    """Return whether a folder is this user's and may not be entered, so that nobody can tell."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not os.access(folder, os.X_OK)


def advice_on_missing(path: Address) -> str | None:
    """Return how to get the memories of an agent whose file does not exist, if there are any."""
    return backup_advice(path) or import_advice(path)


def backup_advice(path: Address) -> str | None:
    """Return how to restore the newest of the backups beside an agent's file, if there are any."""
    count = _count_backups(path) if isinstance(path, Path) else 0
    if not isinstance(path, Path) or not count:
        return None
    import shlex  # noqa: PLC0415 - seldom used

    folder = path.parent
    chosen = f"--db {shlex.quote(str(path))}"
    if path.name == VECTOR_DB_FILENAME and validate_agent_id(folder.name):
        chosen = f"--root {shlex.quote(str(folder.parent))} --agent {folder.name}"
    return (
        f"{counted(count, 'backup')} of it {'is' if count == 1 else 'are'} in"
        f" {folder / BACKUPS_FOLDER}: `agent-memory {chosen} restore latest` brings the newest back"
    )


def _count_backups(path: Path) -> int:
    """Count the files that are named as backups of a file, or 0 if nobody can tell."""
    try:
        names = os.listdir(path.parent / BACKUPS_FOLDER)  # noqa: PTH208 - names are enough
    except OSError:
        return 0
    return sum(name.startswith(f"{path.stem}-") and name.endswith(path.suffix) for name in names)


def import_advice(path: Address) -> str | None:
    """Return how to import the ``scratchpad.yaml`` (A) beside an agent's file, if there is one."""
    if not isinstance(path, Path):
        return None
    folder = path.parent
    document = folder / SCRATCHPAD_FILENAME
    # Path.is_file raises EIO on a failing disk, and advice must not fail.
    if not validate_agent_id(folder.name) or not os.path.isfile(document):  # noqa: PTH113
        return None
    import shlex  # noqa: PLC0415 - seldom used

    root, source = shlex.quote(str(folder.parent)), shlex.quote(str(folder))
    return (
        f"{document} is not imported yet:"
        f" `agent-memory --root {root} --agent {folder.name} import {source}`"
    )


def _text(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, str | os.PathLike):
        raise ValidationError.of("path", "must be a path", path)
    return os.fspath(path)


def _resolved(path: Path) -> Path:
    """Follow the links on the way to a place."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a link to itself
        raise StorageUnavailable(f"{path} cannot be resolved: {error}") from error


def _absolute(text: str) -> Path:
    """Return an absolute path: SQLite never sees a relative one, ``:memory:``, or a URI."""
    try:
        clean_text(text)
    except ValueError as error:
        raise ValidationError.of("path", f"is not a valid path: {error}", text) from error
    place = Path(os.path.abspath(with_home(text)))  # noqa: PTH100 - keeps links
    try:
        place.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # some systems call it a missing file
            raise StorageUnavailable(f"…{text[-80:]} is too long for a path: shorten it") from error
    return place

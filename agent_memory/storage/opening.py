"""Open the engine that keeps the memories of an address.

A file path means SQLite, ``postgresql://`` an agent in a database on a server; another package adds
a scheme with an entry point in the group ``agent_memory.engines``. An engine is imported only when
an address of its kind is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Protocol

from agent_memory.errors import ConfigurationError
from agent_memory.runtime.addresses import POSTGRES_SCHEMES, Address, AgentAddress, ServerAddress

if TYPE_CHECKING:
    from agent_memory.storage.engine import Engine, FileStorage


_ENTRY_POINTS: Final = "agent_memory.engines"


class EngineOpener(Protocol):
    """Opens the memories of one kind of address: a module, a class or an object.

    An entry point in the group ``agent_memory.engines`` registers one for the scheme of its
    addresses. ``conninfo`` of a ``ServerAddress`` is the address as the user gave it; ``location``
    is how messages show it, without the password.
    """

    def open_engine(
        self, address: AgentAddress, *, create: bool, read_only: bool, synchronous: str
    ) -> Engine:
        """Open the memories of an agent.

        If the agent does not exist and may not be created (``create`` is false, or ``read_only``
        true), ``AgentNotFound`` is raised, here or when the engine is prepared. ``synchronous`` is
        ``FULL`` if an acknowledged write must survive a power cut, else ``NORMAL``.
        """

    def agents_of(self, server: ServerAddress) -> list[str]:
        """Return the names of the agents at an address, in order."""


def open_engine(
    address: Address,
    *,
    create: bool = True,
    read_only: bool = False,
    synchronous: str = "FULL",
    vetted: bool = True,
) -> Engine:
    """Open the memories at an address.

    ``create`` creates the file if it does not exist. ``synchronous`` is ``FULL`` (an acknowledged
    write survives a power cut) or ``NORMAL`` (the last ones may then be lost, but the file stays
    sound). ``vetted=False`` is for a file of our own making: its triggers are not examined. Raises
    ``StorageError`` and its subclasses.
    """
    if isinstance(address, AgentAddress):
        return _opener_of(address.server).open_engine(
            address, create=create, read_only=read_only, synchronous=synchronous
        )
    from agent_memory.storage.sqlite import schema  # noqa: PLC0415 - the engine of the address
    from agent_memory.storage.sqlite.connection import Database  # noqa: PLC0415
    from agent_memory.storage.sqlite.engine import SQLiteEngine  # noqa: PLC0415

    opened = schema.open_vetted if vetted else Database
    return SQLiteEngine(
        opened(address, create=create, read_only=read_only, synchronous=synchronous)
    )


def agents_of(server: ServerAddress) -> list[str]:
    """Return the names of the agents at an address, in order."""
    return _opener_of(server).agents_of(server)


def _opener_of(server: ServerAddress) -> EngineOpener:
    if server.scheme in POSTGRES_SCHEMES:
        try:
            from agent_memory.storage.postgres import opening  # noqa: PLC0415
        except ImportError as error:
            raise _without_driver(error) from error
        return opening
    from importlib.metadata import entry_points  # noqa: PLC0415 - 10 ms

    entries = {entry.name: entry for entry in entry_points(group=_ENTRY_POINTS)}
    entry = entries.get(server.scheme)
    if entry is None:
        names = ", ".join(f"{name}://" for name in sorted({"postgresql", *entries}))
        raise ConfigurationError(
            f"{server}: no engine supports {server.scheme}://. Give a directory, or an"
            f" address that begins with {names}"
        )
    try:
        opener: EngineOpener = entry.load()
    except Exception as error:  # third-party code may raise anything
        raise ConfigurationError(
            f"the engine {entry.name} ({entry.value}) cannot be loaded:"
            f" {type(error).__name__}: {error!s:.300}"
        ) from error
    for name in ("open_engine", "agents_of"):
        if not callable(getattr(opener, name, None)):
            raise ConfigurationError(f"the engine {entry.name} ({entry.value}) has no {name}")
    return opener


def rows_on_server(
    server: ServerAddress,
) -> AbstractContextManager[Iterator[tuple[str, dict[str, object]]]]:
    """Give the body the rows that another program keeps in a database: see ``peer_rows``."""
    if server.scheme not in POSTGRES_SCHEMES:
        raise ConfigurationError(
            f"{server} cannot be imported: the only databases that can be are LangGraph's, at"
            " postgresql://…; import data from other sites as a file"
        )
    try:
        from agent_memory.storage.postgres.peer_databases import peer_rows  # noqa: PLC0415
    except ImportError as error:
        raise _without_driver(error) from error
    return peer_rows(server)


def _without_driver(error: ImportError) -> ConfigurationError:
    return ConfigurationError(
        "a postgresql:// address needs psycopg: run `pip install 'agent-memory[postgres]'`"
        f" ({error})"
    )


def file_storage() -> FileStorage:
    """Return the operations on files that no engine has open: copies, replacement, recovery."""
    from agent_memory.storage.sqlite import file_storage  # noqa: PLC0415

    return file_storage

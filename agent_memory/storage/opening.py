"""Opens the engine that keeps the memories of an address.

The path of a file means SQLite, an agent in a database of a server PostgreSQL. An engine is
imported when an address of its kind is opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from agent_memory.errors import ConfigurationError
from agent_memory.runtime.addresses import Address, AgentAddress, ServerAddress

if TYPE_CHECKING:
    from agent_memory.storage.engine import Engine, FileStorage


def open_engine(
    address: Address,
    *,
    create: bool = True,
    read_only: bool = False,
    synchronous: str = "FULL",
    vetted: bool = True,
) -> Engine:
    """Open the memories at an address.

    ``create`` makes the file where there is none. ``synchronous`` is ``FULL`` (an acknowledged
    write survives a power cut) or ``NORMAL`` (the last ones may be lost then, the file stays
    sound). Unless ``vetted``, the file is one of ours and its own triggers are not looked at.
    Raises ``StorageError`` and its kinds.
    """
    if isinstance(address, AgentAddress):
        return _open_postgres(address, create=create, read_only=read_only, synchronous=synchronous)
    from agent_memory.storage.sqlite import schema  # noqa: PLC0415 - the engine of the address
    from agent_memory.storage.sqlite.connection import Database  # noqa: PLC0415
    from agent_memory.storage.sqlite.engine import SQLiteEngine  # noqa: PLC0415

    opened = schema.open_vetted if vetted else Database
    return SQLiteEngine(
        opened(address, create=create, read_only=read_only, synchronous=synchronous)
    )


def _open_postgres(
    address: AgentAddress, *, create: bool, read_only: bool, synchronous: str
) -> Engine:
    try:
        from agent_memory.storage.postgres.connection import Database  # noqa: PLC0415
        from agent_memory.storage.postgres.engine import PostgresEngine  # noqa: PLC0415
    except ImportError as error:
        raise _without_driver(error) from error
    database = Database(address, read_only=read_only, synchronous=synchronous)
    return PostgresEngine(database, create=create)


def agents_of(server: ServerAddress) -> list[str]:
    """Return the names of the agents in a database, in order."""
    try:
        from agent_memory.storage.postgres import schema  # noqa: PLC0415
        from agent_memory.storage.postgres.connection import Database  # noqa: PLC0415
    except ImportError as error:
        raise _without_driver(error) from error
    with contextlib.closing(Database(AgentAddress(server, ""), read_only=True)) as database:
        return schema.agents(database)


def rows_on_server(
    server: ServerAddress,
) -> AbstractContextManager[Iterator[tuple[str, dict[str, object]]]]:
    """Give the body the rows that another program keeps in a database: see ``peer_rows``."""
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
    """Return what can be done with files that no engine has open: copies, replacing, recovery."""
    from agent_memory.storage.sqlite import file_storage  # noqa: PLC0415

    return file_storage

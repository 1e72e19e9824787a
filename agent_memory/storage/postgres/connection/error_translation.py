"""Translates the errors of PostgreSQL and of psycopg into the library's, naming the database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import psycopg
import psycopg_pool

from agent_memory.errors import (
    AgentMemoryError,
    StorageClosed,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)

_NO_SCHEMA: Final = (
    "lacks the tables of this schema: opening it again for writing creates them, empty. If somebody"
    " dropped them, restore them first"
)
_KINDS: Final[dict[str, tuple[type[AgentMemoryError], str]]] = {
    "55P03": (StorageLocked, "is in use by another process: try again in a moment"),
    "40P01": (StorageLocked, "is in use by another process: try again in a moment"),
    "40001": (StorageLocked, "is in use by another process: try again in a moment"),
    "57014": (
        StorageUnavailable,
        "took longer than its statement_timeout allows: ask for less, or raise it",
    ),
    "25P03": (
        StorageUnavailable,
        "ended a transaction idle for longer than idle_in_transaction_session_timeout: raise that",
    ),
    "53100": (StorageFull, "has a full disk: free some space; nothing stored was lost"),
    "53200": (StorageUnavailable, "is out of memory: try again in a moment"),
    "53300": (
        StorageUnavailable,
        "has no free connection: close some, or set ?pool_size= lower",
    ),
    "25006": (StorageReadOnly, "cannot be written: it is a standby, or this session is read-only"),
    "42501": (StorageReadOnly, "does not let this role do that: grant it the privilege"),
    "3D000": (StorageUnavailable, "does not exist: create the database first"),
    "42P01": (StorageUnavailable, _NO_SCHEMA),
    "3F000": (StorageUnavailable, _NO_SCHEMA),
    "28000": (StorageUnavailable, "does not let this user in: check the user and its privileges"),
    "28P01": (StorageUnavailable, "does not let this user in: check the password"),
    "XX001": (StorageCorrupt, "is damaged: restore it with the tools of the server"),
    "XX002": (StorageCorrupt, "has a damaged index: REINDEX it with the tools of the server"),
}
"""The library's error and what to do, by SQLSTATE."""

_OF_POOL: Final = (psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed)
_UNREACHABLE: Final = (
    "cannot be reached: check the address, and that the server runs and lets this user in"
)
_UNDONE: Final = ("40001", "40P01")
"""States in which the server rolled a transaction back so that others could continue."""
_OF_VALUES: Final = ("22", "23")
"""Classes of SQLSTATE: wrong values, and values that a constraint refuses."""


@contextlib.contextmanager
def translated(location: str) -> Iterator[None]:
    """Translate the errors of the body."""
    try:
        yield
    except (psycopg.Error, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed) as error:
        raise _translation(error, location) from error


def _translation(error: Exception, location: str) -> AgentMemoryError:
    translation = _of_kind(error, location)
    if isinstance(translation, StorageError) and not isinstance(error, _OF_POOL):
        translation.is_undone = is_connection_loss(error) or _state(error) in _UNDONE
    return translation


def _of_kind(error: Exception, location: str) -> AgentMemoryError:
    if isinstance(error, psycopg_pool.PoolTimeout):
        return StorageUnavailable(f"{location} {_want_of_connections(error)}")
    if isinstance(error, psycopg_pool.PoolClosed):
        return StorageClosed(f"{location} was closed: open it again")
    state = _state(error)
    if state in _KINDS:
        kind, advice = _KINDS[state]
        return kind(f"{location} {advice} ({_first_line(error)})")
    if state[:2] in _OF_VALUES or (not state and isinstance(error, psycopg.DataError)):
        return ValidationError(f"{location} refused the values: {_first_line(error)}")
    if is_connection_loss(error):
        return StorageUnavailable(f"{location} {_UNREACHABLE} ({_first_line(error)})")
    return StorageError(f"{location}: {_first_line(error)}")


def _want_of_connections(error: psycopg_pool.PoolTimeout) -> str:
    """Say why the pool had no connection; the cause of the error is why none could be made."""
    if error.__cause__ is not None:
        return f"{_UNREACHABLE} ({_first_line(error.__cause__)})"
    return (
        "can be reached, but all connections of this process were in use: let it do less at once,"
        f" or raise ?pool_size= ({_first_line(error)})"
    )


def is_connection_loss(error: BaseException) -> bool:
    """Return whether the connection to the server is lost, or could not be made.

    That includes a server that is shutting down, starting up, or has become a standby.
    """
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = _state(error)
    return not state or state.startswith("08") or state in ("57P01", "57P02", "57P03", "57P05")


def _state(error: BaseException) -> str:
    """Return the SQLSTATE, or "" if the server did not answer."""
    return getattr(error, "sqlstate", None) or ""


def _first_line(error: BaseException) -> str:
    """Return the first line of the error; further lines may quote the row."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

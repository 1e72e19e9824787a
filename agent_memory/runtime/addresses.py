"""Addresses of memories: the path of a file, or an agent in the database of a server.

What stands before ``://`` names the engine; only that engine reads the rest of an address from
another package. ``postgresql://user:password@host:5432/database?schema=agent_memory&pool_size=10``
names a PostgreSQL database; other parameters after the ``?`` are for the server's client library.
Two hosts, ``host1,host2``, are tried in turn; ``replica=host3:5432`` is a copy that follows them,
and is used for searches.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from agent_memory.errors import ConfigurationError
from agent_memory.models.limits import SERVER_ADDRESS

POSTGRES_SCHEMES: Final = ("postgresql", "postgres")
_DEFAULT_SCHEMA: Final = "agent_memory"
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_DEFAULT_POOL_SIZE: Final = 10
_MOST_CONNECTIONS: Final = 1_000
_OF_HOSTS: Final = ("host", "hostaddr", "port", "target_session_attrs")
"""Options that name the hosts of the address, or choose among them."""
_UNREADABLE_USER: Final = re.compile(r"[@\s]|%00|%(?![0-9A-Fa-f]{2})")
"""What the client library refuses in a user with a password, with an error that quotes it."""
_HOST: Final = r"(?:\[[^\]]*\]|[^:,\[\]]*)(?::\d*)?"
_HOSTS: Final = re.compile(rf"{_HOST}(?:,{_HOST})*")
_SECRET: Final = ("password", "sslpassword", "passfile", "sslkey", "oauth_client_secret")


if not TYPE_CHECKING:
    ServerAddress = object  # a name in quotes would be compiled: the first takes a millisecond


class ServerAddress(NamedTuple):
    """A database of a server, and the schema in it that holds the memories.

    ``location`` names it in messages, without a password.
    """

    conninfo: str
    """The connection string for the server's client library; it may contain the password. For an
    engine of another package it is the address as written, and ``schema`` is empty.
    """
    schema: str
    pool_size: int
    location: str
    replica: ServerAddress | None = None
    """Another server that follows this one, which searches may use."""

    @property
    def scheme(self) -> str:
        """The name of the engine that handles it, such as ``postgresql``."""
        return self.conninfo.partition("://")[0]

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same schema of the same database."""
        return isinstance(other, ServerAddress) and self[:2] == other[:2]

    def __hash__(self) -> int:
        return hash(self[:2])

    def __repr__(self) -> str:
        """Return it without what may hold a password."""
        return f"ServerAddress({self.location!r}, schema={self.schema!r})"

    def __str__(self) -> str:
        """Return the location."""
        return self.location


class AgentAddress(NamedTuple):
    """The memories of one agent in a database of a server."""

    server: ServerAddress
    agent_id: str

    def __str__(self) -> str:
        """Return the location with the agent; without one, that of all agents."""
        of_agent = f" (agent {self.agent_id})" if self.agent_id else ""
        return f"{self.server.location}{of_agent}"


Address = Path | AgentAddress
"""Where the memories of one agent are."""


def is_server(root: object) -> bool:
    """Return whether a root is the address of a database rather than a directory."""
    return isinstance(root, str) and SERVER_ADDRESS.match(root) is not None


def server_address(url: str) -> ServerAddress:
    """Parse the address of a database. Raises ``ConfigurationError``, which shows no password."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    server, slash, database = place.partition("/")
    written = [part for part in query.split("&") if not part.startswith("replica=")]
    user, at, hosts = server.rpartition("@")
    if _UNREADABLE_USER.search(user) or any(
        mark in part for part in (database, *written) for mark in ("@", "%00")
    ):
        # "app:pa/ss@host": half of the password became the port, and half was shown as the
        # database.
        raise _unreadable(scheme)
    shown = f"{user.partition(':')[0]}{at}{hosts}{slash}{database}"
    if scheme in POSTGRES_SCHEMES and not _HOSTS.fullmatch(hosts):
        raise _unreadable(scheme)  # "app:password/db" has no host, and the password for a port
    if scheme not in POSTGRES_SCHEMES:
        return ServerAddress(url, "", _DEFAULT_POOL_SIZE, f"{scheme}://{shown}")
    schema, pool_size, replica = _DEFAULT_SCHEMA, _DEFAULT_POOL_SIZE, None
    passed = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "schema":
            schema = _schema(value)
        elif name == "pool_size":
            pool_size = _pool_size(value)
        elif name == "replica":
            replica = _hosts(value)
        else:
            passed.append((name, value))
    conninfo = _with_options(f"{scheme}://{place}", passed)
    public = [(name, value) for name, value in passed if name not in _SECRET]
    if schema != _DEFAULT_SCHEMA:
        public.append(("schema", schema))
    location = _with_options(f"postgresql://{shown}", public)
    if replica is None:
        return ServerAddress(conninfo, schema, pool_size, location)
    follower = ServerAddress(
        _with_options(
            f"{scheme}://{user}{at}{replica}{slash}{database}",
            [(name, value) for name, value in passed if name not in _OF_HOSTS],
        ),
        schema,
        pool_size,
        f"the replica {unquote(replica)} of {location}",
    )
    return ServerAddress(conninfo, schema, pool_size, location, follower)


def _unreadable(scheme: str) -> ConfigurationError:
    return ConfigurationError(
        f"{scheme}://… is not a valid address: write"
        f" {scheme}://USER:PASSWORD@HOST:PORT/DATABASE. In a password write / as %2F, ? as"
        " %3F, % as %25 and a space as %20, there and elsewhere @ as %40; better, put the"
        " password into PGPASSWORD or ~/.pgpass"
    )


def _with_options(place: str, options: Sequence[tuple[str, str]]) -> str:
    return place + ("?" + urlencode(options, quote_via=quote) if options else "")


def _hosts(text: str) -> str:
    """Return hosts, with a port or without, as an address has them before its database."""
    if re.fullmatch(r"[^@?#\s,]+(,[^@?#\s,]+)*", text) is None or "//" in text:
        shown = re.sub("(?s).*@", "…@", text)  # it may contain a password
        raise ConfigurationError(
            f"replica={shown!r:.80} is invalid: give the host of the replica, with its port"
            " or without, such as replica=db2:5432; user, password and options are those of"
            " the address itself"
        )
    return quote(text, safe=":,[]")


def _schema(name: str) -> str:
    if _SCHEMA.fullmatch(name) is None or name.startswith("pg_"):
        raise ConfigurationError(
            f"schema={name!r} is invalid: use 1 to 48 lower-case letters, digits and"
            " underscores, not beginning with a digit or pg_"
        )
    return name


def _pool_size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST_CONNECTIONS:
        raise ConfigurationError(f"pool_size={text!r} is invalid: give a number from 1 to 1000")
    return int(text)

"""The schema: reads the migrations, applies pending ones, keeps the agents apart.

All of it is in ``migrations/postgres/NNNN_name.sql``. Pending ones are applied in one transaction,
each with a record of its name and hash. Then every table with a column ``agent_id`` gets row-level
security: no migration can forget one.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from agent_memory.errors import ConfigurationError, MigrationError, NewerSchema, NotAMemoryFile
from agent_memory.runtime.package_files import PACKAGE
from agent_memory.storage.migrations import UPGRADE, Migration, read_migrations
from agent_memory.storage.postgres.connection import Database

_OLDEST_SERVER: Final = 150_000

_CREATE_RECORD: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number bigint PRIMARY KEY,
  name text NOT NULL,
  sha256 text NOT NULL,
  applied_at text NOT NULL
)"""
_SELECT_RECORD: Final = "SELECT number, sha256, name FROM schema_migrations ORDER BY number"
_INSERT_RECORD: Final = """
INSERT INTO schema_migrations (number, name, sha256, applied_at) VALUES (%s, %s, %s, %s)"""
_ISOLATE: Final = """
DO $$
DECLARE
  own regclass;
BEGIN
  FOR own IN
    SELECT c.oid FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = current_schema::regnamespace AND c.relkind = 'r'
      AND a.attname = 'agent_id' AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', own);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', own);
    EXECUTE format('CREATE POLICY of_one_agent ON %s USING (agent_id = this_agent())'
      ' WITH CHECK (agent_id = this_agent())', own);
  END LOOP;
END $$"""
_CREATE_ROLE: Final = """
DO $$
BEGIN
  CREATE ROLE {role} NOLOGIN NOSUPERUSER NOBYPASSRLS;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL;  -- of another database of the same server, or made at this very moment
END $$;
GRANT {role} TO CURRENT_USER;"""
_GRANT: Final = """
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
REVOKE INSERT, UPDATE, DELETE ON schema_migrations FROM {role};"""
_HAS_ROLE: Final = """
SELECT has_schema_privilege(oid, current_schema, 'USAGE') FROM pg_roles WHERE rolname = %(role)s"""
_SEES_ALL: Final = """
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"""


@cache
def migrations() -> tuple[Migration, ...]:
    """Read the migrations, in order."""
    return read_migrations(PACKAGE, "postgres")


def latest_version() -> int:
    """Return the number of the newest migration."""
    return len(migrations())


def current_version(database: Database) -> int:
    """Return the number of the database's newest migration, or 0 if it has none."""
    applied = _applied(database)
    return max(applied, default=0)


def agents(database: Database) -> list[str]:
    """Return the names of all agents in the database, in order."""
    with database.administering(is_writing=False):
        if not _applied(database):
            return []
        return [name for (name,) in database.rows("SELECT agent_name FROM agent_names ORDER BY 1")]


def prepare(database: Database, *, now: str) -> None:
    """Apply the pending migrations, all or none, and determine the role that reads the rows.

    Raises ``NewerSchema`` for a database of a newer version of the library, and ``MigrationError``
    if a migration was applied that was never shipped under its name.
    """
    if database.pool.is_current:
        return
    _refuse_server(database)
    with database.administering(is_writing=False):
        applied = _applied(database)
        sees_all = bool(database.value(_SEES_ALL))
    _refuse_unknown(database, applied)
    if len(applied) < latest_version():
        if database.read_only:
            _refuse_incomplete(database, is_empty=not applied)
        _upgrade(database, now=now, sees_all=sees_all)
    elif sees_all and not database.value(_HAS_ROLE, {"role": _role(database)}):
        # The role that created the schema did not need it.
        with database.administering(is_writing=True):
            _grant(database)
    database.pool.role = _role(database) if sees_all else None
    database.pool.is_current = True


def _upgrade(database: Database, *, now: str, sees_all: bool) -> None:
    with database.administering(is_writing=True):
        applied = _applied(database)  # another process may have been faster
        _refuse_unknown(database, applied)
        if database.value("SELECT to_regnamespace(%s)", (database.schema,)) is None:
            database.run(f"CREATE SCHEMA {database.schema}")
        database.run(_CREATE_RECORD)
        for migration in migrations()[len(applied) :]:
            database.run(migration.sql)
            record = (migration.number, migration.name, migration.sha256, now)
            database.run(_INSERT_RECORD, record)
        database.run(_ISOLATE)
        if sees_all:
            _grant(database)


def _grant(database: Database) -> None:
    """Create the role that sees the rows of one agent, and grant it the tables."""
    names = {"role": f'"{_role(database)}"', "schema": database.schema}
    database.run(_CREATE_ROLE.format(**names))
    database.run(_GRANT.format(**names))


def _applied(database: Database) -> dict[int, tuple[str, str]]:
    """Return hash and name of the applied migrations, by number."""
    if database.value("SELECT to_regclass(%s)", (f"{database.schema}.schema_migrations",)) is None:
        return {}
    return {number: (sha256, name) for number, sha256, name in database.rows(_SELECT_RECORD)}


def _role(database: Database) -> str:
    """Return the role that accesses rows if the login role would see all."""
    return f"{database.address.server.schema}_agents"


def _refuse_server(database: Database) -> None:
    version = database.pool.server_version
    if version < _OLDEST_SERVER:
        raise ConfigurationError(
            f"{database.location} is PostgreSQL {version // 10_000}: 15 or later is needed"
        )
    with database.administering(is_writing=False):
        encoding = database.value("SHOW server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"{database.location} has the encoding {encoding}: make a database with"
            " `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`"
        )


def _refuse_unknown(database: Database, applied: dict[int, tuple[str, str]]) -> None:
    version = max(applied, default=0)
    if version > latest_version():
        raise NewerSchema(
            f"{database.location} was made by a newer agent-memory (schema {version}, this one"
            f" knows {latest_version()}): {UPGRADE}. Nothing was changed"
        )
    shipped = {migration.number: migration.sha256 for migration in migrations()}
    for number, (sha256, name) in applied.items():
        if shipped[number] != sha256:
            raise MigrationError(
                f"{database.location} was made with a different {name} than this agent-memory"
                " has: use the version that made it"
            )


def _refuse_incomplete(database: Database, *, is_empty: bool) -> None:
    if is_empty:
        raise NotAMemoryFile(f"{database.location} has no memories yet: open it once for writing")
    raise MigrationError(
        f"{database.location} has an older schema and is open read-only: open it once for writing"
    )

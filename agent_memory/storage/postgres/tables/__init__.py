"""The tables of the PostgreSQL engine, one module per table, and their base class."""

from __future__ import annotations

from agent_memory.storage import sql
from agent_memory.storage.postgres.connection import Database


class Table(sql.Table):
    """A table or an index of one agent, which may use what only this engine has."""

    _db: Database

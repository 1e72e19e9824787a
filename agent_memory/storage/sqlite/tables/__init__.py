"""The tables of the SQLite engine, one module a table, and the base class of tables and indexes."""

from __future__ import annotations

from agent_memory.storage import sql
from agent_memory.storage.sqlite.connection import Database


class Table(sql.Table):
    """A table or an index of one open file, which may use what only this engine has."""

    _db: Database

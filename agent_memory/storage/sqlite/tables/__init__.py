"""The tables of the SQLite engine, one module a table, and the base class of tables and indexes."""

from __future__ import annotations

from agent_memory.storage.sqlite.connection import Database


class Table:
    """A table or an index of one open file. It begins no transaction: its caller has one open."""

    def __init__(self, database: Database) -> None:
        self._db = database

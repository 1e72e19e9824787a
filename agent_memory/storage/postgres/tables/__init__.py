"""The tables of the PostgreSQL engine, one module per table, and their base class."""

from __future__ import annotations

from agent_memory.storage.postgres.connection import Database


class Table:
    """A table or an index of one agent. It begins no transaction: its caller has one open."""

    def __init__(self, database: Database) -> None:
        self._db = database

"""The only package that knows psycopg: the pool of connections, transactions, errors.

Four rules:

* Each transaction states whose rows it sees, and that ends with it: a connection that others use
  next, in this process or behind a pooler such as PgBouncer, never carries it along.
* One writer per agent: each write transaction begins with an advisory lock, so that none must be
  retried because another wrote in between.
* A thread has a connection while it is inside a transaction, and none otherwise.
* A connection is never used after ``fork``: a child opens connections of its own.
"""

from agent_memory.storage.postgres.connection.database import Database
from agent_memory.storage.records import Row

__all__ = ["Database", "Row"]

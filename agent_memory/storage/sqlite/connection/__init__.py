"""The only place where APSW opens a store: opening a file safely, transactions, errors.

Three rules come from faults that lost data elsewhere:

* The library never uses Python's own ``sqlite3``, and never opens the database, its ``-wal`` or
  its ``-shm`` with ``open()``: closing such a file drops every lock that this process holds on it,
  and the next process to open the database then deletes the log of a live writer.
* A connection is never used after ``fork``: parent and child would share it unknowingly.
* A file that was deleted or replaced under a connection is noticed before the next write.

Threads share one connection under one lock: a transaction belongs to the thread that began it, and
the others wait. (Connections per thread would wait for the same lock inside SQLite, and would have
to be closed by threads that no longer exist.)
"""

from agent_memory.storage.records import Row
from agent_memory.storage.sqlite.connection.code_vetting import SELECT_CODE, Verdict
from agent_memory.storage.sqlite.connection.compaction import raw_of_file
from agent_memory.storage.sqlite.connection.database import Database
from agent_memory.storage.sqlite.connection.error_translation import IRREPLACEABLE
from agent_memory.storage.sqlite.connection.introspection import (
    SELECT_OBJECTS,
    SELECT_REFERRING,
    library_version,
    objects_made_by,
    quoted,
    statement_is_complete,
)
from agent_memory.storage.sqlite.connection.open_files import is_open_here
from agent_memory.storage.sqlite.connection.opening import (
    APPLICATION_ID,
    PAGE_SIZE,
    REBUILD_INDEX,
    refuse_long_path,
)
from agent_memory.storage.sqlite.connection.page_copy import ChangedMeanwhile

__all__ = [
    "APPLICATION_ID",
    "IRREPLACEABLE",
    "PAGE_SIZE",
    "REBUILD_INDEX",
    "SELECT_CODE",
    "SELECT_OBJECTS",
    "SELECT_REFERRING",
    "ChangedMeanwhile",
    "Database",
    "Row",
    "Verdict",
    "is_open_here",
    "library_version",
    "objects_made_by",
    "quoted",
    "raw_of_file",
    "refuse_long_path",
    "statement_is_complete",
]

"""``AgentMemory``: the front door of the library. It validates its input and returns models."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.api.plain_arguments import check_flags
from agent_memory.api.verbs import MemoryVerbs
from agent_memory.errors import AgentMemoryError
from agent_memory.models.agent import AgentSummary
from agent_memory.models.times import now_utc
from agent_memory.runtime.addresses import Address, AgentAddress
from agent_memory.runtime.files import is_there
from agent_memory.runtime.paths import advice_on_missing, agent_address, agent_files, server_root
from agent_memory.services.store import Store
from agent_memory.storage.opening import agents_of

if TYPE_CHECKING:
    from agent_memory.api.session import SessionMemory
    from agent_memory.models.agent import RebuildReport
    from agent_memory.models.reports import BackupFile, RestoreReport
    from agent_memory.models.session import SessionContext


def list_agents(root: str | os.PathLike[str] | None = None) -> list[AgentSummary]:
    """List the agents under a root, by name, with a summary of each.

    The root is a directory, or the address of a database. An agent whose file cannot be read, or
    holds the memories of another, is listed with its ``problem``, and so is a folder of documented
    memories that were not imported yet. Nothing is written.
    """
    server = server_root(root)
    if server is not None:
        return [_summary(name, AgentAddress(server, name)) for name in agents_of(server)]
    return [_summary(name, path) for name, path in agent_files(root)]


def has_memories(agent_id: str, root: str | os.PathLike[str] | None = None) -> bool:
    """Return whether an agent has memories under a root. Nothing is created."""
    address = agent_address(agent_id, root)
    if isinstance(address, Path):
        return is_there(address)
    return agent_id in agents_of(address.server)


def _summary(agent_id: str, address: Address) -> AgentSummary:
    file = address if isinstance(address, Path) else None
    summary = AgentSummary(agent_id=agent_id, path=str(address), storage_size_mb=0.0)
    try:
        if file is not None and not is_there(file):
            return summary.model_copy(update={"problem": advice_on_missing(file)})
        store = Store(address, agent_id=agent_id, clock=now_utc, create=False, read_only=True)
        with contextlib.closing(store):
            info = store.info()
    except AgentMemoryError as error:
        size = 0.0
        with contextlib.suppress(OSError):  # its folder may not be entered
            size = 0.0 if file is None else round(file.stat().st_size / 1e6, 3)
        return summary.model_copy(update={"storage_size_mb": size, "problem": str(error)})
    places = () if file is None else (file, file.parent)
    return AgentSummary(
        agent_id=agent_id,
        path=str(address),
        memory_count=info.memory_count,
        storage_size_mb=info.stats.storage_size_mb,
        last_accessed=info.last_accessed,
        is_writable=all(os.access(place, os.W_OK) for place in places),
    )


def _backups_of(path: str | os.PathLike[str]) -> list[BackupFile]:
    """List the backups beside a file, newest first, even if the file itself is damaged or gone."""
    from agent_memory.services.recovery import backups_of  # noqa: PLC0415 - seldom used

    return backups_of(path)


def _rebuild(
    path: str | os.PathLike[str], backup: str | os.PathLike[str], *, agent_id: str | None = None
) -> RebuildReport:
    """Rebuild a damaged or missing file from its YAML backup: see ``services.recovery``."""
    from agent_memory.services.recovery import rebuild  # noqa: PLC0415 - seldom used

    return rebuild(path, backup, agent_id=agent_id)


def _restore(
    path: str | os.PathLike[str],
    backup: str | os.PathLike[str],
    *,
    agent_id: str | None = None,
    keep_replaced: bool = True,
    before_replacing: Callable[[], object] = lambda: None,
) -> RestoreReport:
    """Restore a memory to the state of a backup: see ``services.recovery``."""
    check_flags(keep_replaced=keep_replaced)
    from agent_memory.services.recovery import restore  # noqa: PLC0415 - seldom used

    return restore(
        path,
        backup,
        agent_id=agent_id,
        keep_replaced=keep_replaced,
        before_replacing=before_replacing,
    )


class AgentMemory(MemoryVerbs):
    """The memory of one agent: one SQLite file, ``{root}/{agent_id}/memories.db``.

    - ``root``: the directory of all agents (default: ``AGENT_MEMORY_ROOT``, else
      ``~/.amplifier/memory``), or the address of a PostgreSQL database, ``postgresql://host/db``,
      or one that another package's engine handles.
    - ``session_id``: the conversation or run that stores (default: ``AGENT_MEMORY_SESSION``, else a
      new name). Memories of the same session support each other in searches.
    - ``embedder``: makes the vectors for search by meaning, once ``migrate`` was run. A name
      (``"openai"``, ``"wordllama"``, ``"openai:text-embedding-3-large"``), an object of the
      protocol ``Embedder``, a list of these to try in turn, or ``None`` for keyword search alone.
      Default: ``AGENT_MEMORY_EMBEDDER``, else the one that made the file's vectors.
    - ``create=False`` refuses an agent that has no file yet; ``read_only=True`` never writes.
    - ``synchronous="NORMAL"`` stores faster, and may lose the last memories in a power cut.
    - ``config`` and ``context_config``: settings, as models. ``clock`` returns the current time,
      aware and in UTC.
    - ``secret_scanner``: looks for secrets in place of the built-in scanner (the protocol
      ``SecretScanner``).
    - ``on_event``: called with each ``MemoryEvent`` after it happened, in the thread where it
      happened; ``event_text`` includes the text of queries and memories. The same events are logged
      by ``agent_memory.events`` at level INFO, and written to ``events.jsonl`` beside the file if
      the setting ``event_log`` says so.

    Threads may share it, and it can be used after ``fork``. Use it as a context manager, or call
    ``close``.

    >>> with AgentMemory("bob", root=tmp) as memory:
    ...     _ = memory.store("Prefer PostgreSQL for new projects", category="preference")
    ...     memory.search("which database? PostgreSQL?")[0].memory.content
    'Prefer PostgreSQL for new projects'
    """

    agents = staticmethod(list_agents)
    backups_of = staticmethod(_backups_of)
    exists = staticmethod(has_memories)
    rebuild = staticmethod(_rebuild)
    restore = staticmethod(_restore)

    def session(self, context: SessionContext | Mapping[str, Any]) -> SessionMemory:
        """Return the verbs limited to one session: to its own memories and its permissions.

        ``context`` is a ``SessionContext`` or a mapping of its fields. User and run ids have 1 to
        128 printable characters.

        Raises ``InvalidSession`` for an invalid session, or one of another agent.
        """
        from agent_memory.api.session import SessionMemory  # noqa: PLC0415 - seldom used

        return SessionMemory(self, context)

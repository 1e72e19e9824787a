"""The memory that is served: opened on first use, created when something is first stored.

``AgentMemory`` is imported only then: hosts run their first hooks whether or not the server has
answered, and without that import it answers in half the time.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from uuid import uuid4

import agent_memory
from agent_memory import AgentMemoryError, StorageClosed
from agent_memory.models.limits import SESSION_VARIABLE
from agent_memory.runtime.paths import agent_address, backup_advice, with_home

if TYPE_CHECKING:
    from agent_memory import AgentMemory
    from agent_memory.integrations.identity import MemoryOrSession
    from agent_memory.models.session import SessionScope

_STORING: Final = "memory_store makes the first one"


class NoMemoriesYet(AgentMemoryError):
    """The agent has no file, so there is nothing to read."""

    code: ClassVar[str] = "NO_MEMORIES_YET"


class ServedMemory:
    """One agent's memory, for all threads of a server.

    The file is ``{root}/{agent_id}/memories.db``, or ``db``, wherever that is (the file then says
    whose it is). ``read_only`` writes nothing at all. What is stored belongs to the session that
    ``AGENT_MEMORY_SESSION`` names, else to this server's own, ``mcp-…``.

    With ``user_id`` only what is about this user is served, and with ``run_id`` only what is of
    this run: see ``AgentMemory.session``.

    Raises ``MissingAgentIdentity``, ``ValidationError`` and ``InvalidSession`` for an invalid
    agent, user or run; the file is not looked at before it is needed. Like any memory it must be
    closed.
    """

    def __init__(
        self,
        agent_id: str | None,
        *,
        root: str | os.PathLike[str] | None = None,
        db: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        user_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        self.is_read_only = read_only
        self._scope = None if user_id is None is run_id else _scope(user_id, run_id)
        self._agent_id = agent_id
        self._root = root
        self._db = None if db is None else with_home(db)
        self._address = self._db or agent_address(agent_id or "", root)
        named = os.environ.get(SESSION_VARIABLE)
        self._session_id = None if named else f"mcp-{uuid4().hex[:12]}"
        self._memory: AgentMemory | None = None
        self._is_closed = False
        self._opening = threading.Lock()

    def name(self) -> str:
        """Return the agent's name, as far as it is known if the file does not exist yet."""
        if self._db is None:
            return self._agent_id or ""
        try:
            return self.to_read().agent_id
        except AgentMemoryError:
            return self._agent_id or "agent"

    def place(self) -> str:
        """Return the file, with ``~`` for the user's home; it need not exist yet."""
        home = os.path.expanduser("~") + os.sep  # noqa: PTH111 - as it is, where there is none
        path = str(self._address)
        return f"~{os.sep}{path.removeprefix(home)}" if path.startswith(home) else path

    @property
    def is_whole(self) -> bool:
        """Whether an agent's whole memory is served, to read and write, from its usual place."""
        return self._scope is None and self._db is None and not self.is_read_only

    def options(self) -> list[str]:
        """Return the command-line options that select this agent and root."""
        root = [] if self._root is None else [f"--root={os.fspath(self._root)}"]
        return [f"--agent={self.name()}", *root]

    def to_read(self) -> MemoryOrSession:
        """Return the open memory, or the session of it.

        Raises ``NoMemoriesYet`` if there is no file: none is created.
        """
        if self._memory is None and self._is_missing():
            how = "only its user can store some" if self.is_read_only else _STORING
            lost = self._scope is None and backup_advice(self._address)
            raise NoMemoriesYet(f"this agent has no memories yet: {lost or how}")
        return self._opened(create=False)

    def to_store(self) -> MemoryOrSession:
        """Return the open memory, or the session of it; creates the file if there is none."""
        return self._opened(create=not self.is_read_only)

    def close(self) -> None:
        """Close the memory for good, if it was opened."""
        with self._opening:
            self._is_closed = True
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def _opened(self, *, create: bool) -> MemoryOrSession:
        with self._opening:
            if self._is_closed:
                raise StorageClosed("the server is stopping")
            if self._memory is None:
                self._memory = self._open(create=create)
            memory = self._memory
        return memory if self._scope is None else memory.session(self._scope)

    def _open(self, *, create: bool) -> AgentMemory:
        if self._db is None:
            opened = partial(agent_memory.AgentMemory, self._agent_id or "", root=self._root)
        else:
            opened = partial(agent_memory.AgentMemory.open, self._db, agent_id=self._agent_id)
        return opened(session_id=self._session_id, create=create, read_only=self.is_read_only)

    def _is_missing(self) -> bool:
        if not isinstance(self._address, Path):
            return not agent_memory.AgentMemory.exists(self._agent_id or "", self._root)
        try:
            self._address.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # opening says what is wrong
            return False
        return False


def _scope(user_id: str | None, run_id: str | None) -> SessionScope:
    from agent_memory.models.session import SessionScope  # noqa: PLC0415 - seldom asked for

    named = {"user_id": user_id, "run_id": run_id}
    return SessionScope.of({name: value for name, value in named.items() if value is not None})

"""A server whose agent is that of the project that its client works in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from agent_memory.integrations.hosts.project import project_of
from agent_memory.integrations.mcp.asking import NOBODY, Client
from agent_memory.integrations.mcp.errors import INVALID_REQUEST, RequestFailed
from agent_memory.integrations.mcp.memory_handle import ServedMemory
from agent_memory.integrations.mcp.server import MemoryServer, Params, refused_call

_OF_NO_AGENT: Final = ("tools/list", "prompts/list")
"""Methods whose answers are the same for every agent."""
_NO_FOLDER: Final = (
    "this client does not name the folder it works in, so the agent is unknown: start the"
    " server with --agent ID or --project DIR"
)


class ProjectServer:
    """A ``MemoryServer`` whose memory is chosen when a client first needs it, and then stays.

    The agent is that of the first existing folder that the client names, by ``project_of``, else
    ``otherwise``. Without either, calls are refused: one project's memories must not silently end
    up in another's.
    """

    def __init__(
        self, serve: Callable[[str], ServedMemory], *, otherwise: str | None = None
    ) -> None:
        self._serve = serve
        self._otherwise = otherwise
        self._unchosen = MemoryServer(serve("unchosen"))  # its file is never looked at
        self._chosen: MemoryServer | None = None
        self._choosing = threading.Lock()
        self.methods = self._unchosen.methods
        self.instructions = self._unchosen.instructions
        self.capabilities = self._unchosen.capabilities
        self.info = self._unchosen.info

    def answer(self, method: str, params: Params, client: Client = NOBODY) -> dict[str, Any]:
        """Return the result of a request: see ``MemoryServer.answer``."""
        if method in _OF_NO_AGENT or method not in self.methods:
            return self._unchosen.answer(method, params, client)
        server = self._chosen or self._choose(client)
        if server is not None:
            return server.answer(method, params, client)
        if method == "tools/call":
            return refused_call("VALIDATION_ERROR", _NO_FOLDER)
        raise RequestFailed(INVALID_REQUEST, _NO_FOLDER)

    def close(self) -> None:
        """Close the memory."""
        for server in (self._unchosen, self._chosen):
            if server is not None:
                server.close()

    def _choose(self, client: Client) -> MemoryServer | None:
        folder = next((path for path in client.folders() if Path(path).is_dir()), None)
        agent_id = self._otherwise if folder is None else project_of(folder).agent_id
        if agent_id is None:
            return None
        with self._choosing:
            if self._chosen is None:
                self._chosen = MemoryServer(self._serve(agent_id))
            return self._chosen


AnyServer = MemoryServer | ProjectServer

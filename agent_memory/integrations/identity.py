"""Whose memory a host means, and one open memory that all its parts share.

Memory is opt-in: an agent without a name has none, and nothing is opened or created before it is
needed. The name is the first of these that is set:

1. the host's configuration of the module or tool (``agent_id``), 2. the session's capability
``agent_identity``, 3. the agent's name in the session's metadata (``agent_name``), 4. the
environment variable ``AGENT_MEMORY_AGENT``.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import agent_memory
from agent_memory import MissingAgentIdentity, validate_agent_id
from agent_memory.models.limits import AGENT_VARIABLE

if TYPE_CHECKING:
    from agent_memory import AgentMemory, SessionContext, SessionMemory

    MemoryOrSession = AgentMemory | SessionMemory
    """An agent's memory, or one session of it: what belongs to one user, or to one run."""
    Opener = Callable[[], MemoryOrSession]
    """What opens a memory when it is first needed, such as a ``LazyMemory``."""

CAPABILITY: Final = "agent_identity"
_LONGEST_LABEL: Final = 200
"""The most characters of a memory's session id."""
_ACTIVATION: Final = re.compile(
    r"""\s{0,9}(?:please\ )?start\ as\ ["']?(?P<name>[\w-]{1,64})["']?
    (?:,?\ with\ memory(?:\ enabled)?)?(?:[.!,;:](?=\s)|[.!,;:]?\s*\Z|\s*\n)""",
    re.IGNORECASE | re.VERBOSE,
)
# "Start as usual." names nobody.
_NO_NAMES: Final = frozenset(
    """
    a above admin administrator agreed always an appropriate before below default described directed
    discussed ever expected fast follows her him instructed intended is it me needed normal noted
    one planned possible previously proposed requested required root said scheduled shown soon
    specified such suggested the them told us usual well yesterday you
    """.split()
)


def resolve_agent_id(
    configured: str | None = None, capability: object = None, agent_name: str | None = None
) -> str:
    """Return the agent that is meant, by the order above.

    Raises ``MissingAgentIdentity`` if none is named. The name itself is checked when its memory is
    opened.
    """
    for name in (configured, capability, agent_name, os.environ.get(AGENT_VARIABLE)):
        if name:
            return str(name)
    raise MissingAgentIdentity(
        "no agent is named: set agent_id in the configuration, give the session the"
        f" capability {CAPABILITY}, or set {AGENT_VARIABLE}"
    )


def spoken_agent_id(text: str) -> str | None:
    """Return the agent that a user's message names at its beginning, or ``None``.

    Such messages are "Start as bob with memory enabled" (B) and "Start as sam" (D). More may
    follow, as another sentence. Pass only a user's own words, never a tool's output.
    """
    match = _ACTIVATION.match(text)
    if match is None or match["name"].lower() in _NO_NAMES:
        return None
    return match["name"] if validate_agent_id(match["name"]) else None


def session_label(session_id: str) -> str:
    """Return the id of a host's session as memories can be labelled with it: its beginning."""
    return session_id[:_LONGEST_LABEL]


def opener_of(memory: MemoryOrSession | Opener) -> Opener:
    """Return a function that returns the memory; a function that opens it is returned as it is."""
    return memory if callable(memory) else lambda: memory


class LazyMemory:
    """An agent's memory that is opened on first use, once for all threads.

    If ``agent_id`` is ``None``, ``resolve_agent_id`` is called when the memory is opened.
    ``session`` limits it to a session: C's context, or a mapping such as ``{"user_id": "alice"}``.
    ``options`` are those of ``AgentMemory`` (``root``, ``session_id``, ``on_event``, …). If opening
    fails, the next call tries again.
    """

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        session: SessionContext | Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - AgentMemory's
    ) -> None:
        self.agent_id = agent_id
        self._session = session
        self._options = options
        self._memory: AgentMemory | None = None
        self._opening = threading.Lock()

    def __call__(self) -> MemoryOrSession:
        """Return the open memory, or the session of it.

        Raises what ``AgentMemory``, ``AgentMemory.session`` and ``resolve_agent_id`` raise.
        """
        with self._opening:
            if self._memory is None:
                agent_id = resolve_agent_id(self.agent_id)
                self._memory = agent_memory.AgentMemory(agent_id, **self._options)
            memory = self._memory
        return memory if self._session is None else memory.session(self._session)

    @property
    def is_open(self) -> bool:
        """Return whether the memory was opened."""
        return self._memory is not None

    def close(self) -> None:
        """Close the memory, if it was opened. A later call opens it again."""
        with self._opening:
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

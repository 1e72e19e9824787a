"""Whose memory a host means, and one open memory that all its parts share.

Memory is opt-in: an agent without a name has none, and nothing is opened or made before it is
needed. The name is taken from the first of these that has one:

1. what the host's configuration of the module or tool says (``agent_id``),
2. the capability ``agent_identity`` of the session,
3. the agent's name in the session's metadata (``agent_name``),
4. the environment, ``AGENT_MEMORY_AGENT``.
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
    """Return the agent that is meant, as the module says.

    Raises ``MissingAgentIdentity`` where nobody names one. Whether the name will do is seen when
    its memory is opened.
    """
    for name in (configured, capability, agent_name, os.environ.get(AGENT_VARIABLE)):
        if name:
            return str(name)
    raise MissingAgentIdentity(
        "whose memory? No agent is named. Set agent_id in the configuration, give the session the"
        f" capability {CAPABILITY}, or set {AGENT_VARIABLE}"
    )


def spoken_agent_id(text: str) -> str | None:
    """Return the agent that a user's message begins by naming; ``None`` where it names none.

    Such messages are "Start as bob with memory enabled" (B) and "Start as sam" (D). More may
    follow, as another sentence. Ask this of a user's own words alone, never of a tool's output.
    """
    match = _ACTIVATION.match(text)
    if match is None or match["name"].lower() in _NO_NAMES:
        return None
    return match["name"] if validate_agent_id(match["name"]) else None


def opener_of(memory: MemoryOrSession | Opener) -> Opener:
    """Return a function that gives the memory; one that opens it is that already."""
    return memory if callable(memory) else lambda: memory


class LazyMemory:
    """An agent's memory that is opened when it is first asked for, once for all threads.

    ``agent_id`` may be ``None``: then ``resolve_agent_id`` is asked when the memory is opened.
    ``session`` is the session that is meant, where it is not the whole memory: C's context, or a
    mapping such as ``{"user_id": "alice"}``. ``options`` are those of ``AgentMemory`` (``root``,
    ``session_id``, ``on_event``, …). A memory that could not be opened is tried again at the next
    call.
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
        """Return whether it was opened."""
        return self._memory is not None

    def close(self) -> None:
        """Close it, if it was opened. It may be asked for again."""
        with self._opening:
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

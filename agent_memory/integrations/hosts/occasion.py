"""An event of a host in our terms, and the outcome of handling it."""

import _thread
import json
from typing import Final, NamedTuple

from agent_memory.integrations.hosts.table import Event, Host

SUMMARY_TAG: Final = "session-summary"
"""The tag of a summary that a host wrote when it compacted a conversation."""


class Call(NamedTuple):
    """The parsed command line."""

    host: Host
    event: Event
    agent: str | None = None
    root: str | None = None


class Occasion(NamedTuple):
    """An event of a host, in our terms."""

    call: Call
    agent_id: str
    folder: str
    """The agent's folder."""
    session: str
    """The host's name of its session."""
    source: str = ""
    """What started a session, or who wrote a prompt."""
    tool: str = ""
    content: object = ""
    """The prompt, what the agent said or a tool returned, or the summary."""
    is_trial: bool = False

    @property
    def text(self) -> str:
        """The content as one text."""
        is_text = isinstance(self.content, str)
        return str(self.content) if is_text else json.dumps(self.content, ensure_ascii=False)

    @property
    def is_noted(self) -> bool:
        """Whether to record what is given: not if sessions cannot be told apart."""
        return bool(self.session) and not self.is_trial

    @property
    def label(self) -> str:
        """The session name in memories: the host, and the end of the host's session name."""
        tail = "".join(letter for letter in self.session if letter.isalnum())[-8:]
        return f"{self.call.host.name}-{tail or 'unnamed'}"


class Outcome:
    """The answer of a hook, and its outcome; ``counts`` go into the log."""

    def __init__(self) -> None:
        self.context = ""
        self.counts: dict[str, int] = {}
        self.why = ""
        self._ready = _thread.allocate_lock()
        self._done = _thread.allocate_lock()
        self._ready.acquire()
        self._done.acquire()

    def answer(self, context: str = "") -> None:
        """Release the answer to the host; the rest is still being done."""
        self.context = context
        if self._ready.locked():
            self._ready.release()

    def finish(self) -> None:
        """Signal that everything is done."""
        self.answer(self.context)
        self._done.release()

    def wait_until_ready(self, seconds: float) -> bool:
        """Wait for an answer, at most so many seconds, and return whether there is one."""
        return self._ready.acquire(timeout=max(0.0, seconds))

    def wait_until_done(self, seconds: float) -> bool:
        """Wait until everything is done, at most so many seconds, and return whether it is."""
        return self._done.acquire(timeout=max(0.0, seconds))

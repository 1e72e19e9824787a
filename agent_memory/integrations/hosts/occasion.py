"""What happened in a host, in our words, and what comes of it."""

import _thread
import json
from typing import Final, NamedTuple

from agent_memory.integrations.hosts.table import Event, Host

SUMMARY_TAG: Final = "session-summary"
"""Of what a host wrote when it let go of a conversation."""


class Call(NamedTuple):
    """What the command line said."""

    host: Host
    event: Event
    agent: str | None = None
    root: str | None = None


class Occasion(NamedTuple):
    """What happened in the host, in our words."""

    call: Call
    agent_id: str
    folder: str
    """Of the agent."""
    session: str
    """The host's name of its session."""
    source: str = ""
    """What began a session, or who wrote a prompt."""
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
        """Whether what is given is noted: not where sessions cannot be told from each other."""
        return bool(self.session) and not self.is_trial

    @property
    def label(self) -> str:
        """What memories of the session are signed with: the host, and the end of the name."""
        tail = "".join(letter for letter in self.session if letter.isalnum())[-8:]
        return f"{self.call.host.name}-{tail or 'unnamed'}"


class Outcome:
    """What a hook says, and what became of it; ``counts`` go into the log."""

    def __init__(self) -> None:
        self.context = ""
        self.counts: dict[str, int] = {}
        self.why = ""
        self._ready = _thread.allocate_lock()
        self._done = _thread.allocate_lock()
        self._ready.acquire()
        self._done.acquire()

    def answer(self, context: str = "") -> None:
        """Let the host have its answer, while the rest is done."""
        self.context = context
        if self._ready.locked():
            self._ready.release()

    def finish(self) -> None:
        """Say that nothing more is to be done."""
        self.answer(self.context)
        self._done.release()

    def wait_until_ready(self, seconds: float) -> bool:
        """Return whether there is an answer, after waiting for it at most so long."""
        return self._ready.acquire(timeout=max(0.0, seconds))

    def wait_until_done(self, seconds: float) -> bool:
        """Return whether all is done, after waiting for it at most so long."""
        return self._done.acquire(timeout=max(0.0, seconds))

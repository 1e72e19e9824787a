"""``MemoryCapture``: scans tool output and conversation, and stores what matters.

Framework-independent: a host passes what it has to ``tool_output``, ``turn`` and ``session_end``,
and calls ``close`` at the end. No call raises, and with ``async_capture`` none waits for the disk
or an embedder.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from agent_memory import MemoryCaptureConfig, Observation
from agent_memory.integrations.capture.observations import count_cues, scan
from agent_memory.integrations.capture.queue import WorkQueue
from agent_memory.integrations.capture.writer import (
    CaptureReport,
    Counts,
    ObservationWriter,
    logger,
)
from agent_memory.integrations.identity import opener_of
from agent_memory.integrations.result_texts import texts_of
from agent_memory.models.fields import choose_session_name
from agent_memory.models.record import validate_model

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession, Opener

__all__ = ["CaptureReport", "MemoryCapture"]

_OUR_TOOLS: Final = re.compile(r"(?:^|[^A-Za-z0-9]|__)memory_\w+$")
_SHORT: Final = 4_000
"""Texts of up to this many characters are scanned at once, if few places in them look promising."""
_SHORT_FOR_ANY_PATTERN: Final = 500
_FEW: Final = 2
_MOST_WAITING: Final = 50_000_000
"""The most characters of text that may wait to be scanned."""
_CLOSING_SECONDS: Final = 30.0
_NAME: Final = re.compile(r"[^\w.:/@-]+")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to be scanned in the background."""

    text: str
    source: str


class MemoryCapture:
    """Captures observations from a session's tool output and conversation.

    ``memory`` is where they are stored, or a function that opens it: it is called in the
    background, for the first observation, and ``close`` closes what it opened. ``session_id`` is
    recorded in the memories, and limits apply to it; the default is that of the memory, else
    ``AGENT_MEMORY_SESSION``, else a new one. ``config`` says what to look for, where, and how much
    to keep.

    A captured memory has the observation's type as its category, keywords as tags, and ``source``
    (``tool:bash``, ``turn:user``), ``confidence`` and ``auto_captured`` in its metadata. Not stored
    are: text that is already stored in the same words, text that was recalled within the hour and
    printed, anything from tools named ``memory_…``, and anything between the marks of
    ``render_memories``. Only the user's words can supersede something said since.

    Secrets are masked, whatever the file's setting; if that is ``refuse``, the sentence is not
    stored. Nobody reviews these texts before they are stored, so ``warn`` and ``keep`` are not
    enough.

    With ``async_capture`` a background thread does the work; at most ``queue_size`` observations
    and long texts wait for it. The rest is counted as dropped, and logged once. If the file is
    locked or full, storing is retried for some seconds. Without ``async_capture`` an observation is
    stored before the call returns, or counted as failed at the first error.

    Threads may share it. A forked child starts with an empty queue and no counts, and closes its
    own. Use it as a context manager, or call ``close``; at the interpreter's exit it closes itself.

    Raises ``ValidationError`` for an invalid config or session; nothing else ever raises.
    """

    def __init__(
        self,
        memory: MemoryOrSession | Opener,
        *,
        session_id: str | None = None,
        config: MemoryCaptureConfig | Mapping[str, Any] | None = None,
    ) -> None:
        self.config: Final = validate_model(MemoryCaptureConfig, config)
        self.session_id: Final = (
            memory.session_id
            if session_id is None and not callable(memory)
            else choose_session_name(session_id)
        )
        self._engine = _Engine(memory, self.config, self.session_id)
        self._end = weakref.finalize(self, self._engine.close, _CLOSING_SECONDS)

    def tool_output(self, tool: str, result: object) -> int:
        """Scan a tool's output, and return how many observations were queued.

        ``result`` may be a string, a mapping, a list or an object: all strings in it are scanned.
        Texts of over 4,000 characters, and those that promise several observations, are scanned in
        the background: their observations are not in the returned number, but in ``report``.
        """
        if not self.config.observe_tool_outputs or is_our_tool(tool):
            return 0
        return self._engine.offer(result, source_of_tool(tool))

    def turn(self, text: str, role: str = "assistant") -> int:
        """Scan what the ``role`` said, as ``tool_output`` does."""
        if not self.config.observe_turn_completions:
            return 0
        return self._engine.offer(text, f"turn:{_named(role)}")

    def session_end(self, text: str) -> int:
        """Scan the text that concludes a session, as ``tool_output`` does."""
        if not self.config.observe_session_end:
            return 0
        return self._engine.offer(text, "session_end")

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything offered is stored or counted, and return whether it is.

        ``timeout`` is in seconds; without one there is no limit.
        """
        return self._engine.queue.flush(timeout)

    def close(self, timeout: float = _CLOSING_SECONDS) -> None:
        """Flush, for at most ``timeout`` seconds, and capture nothing more. May be called again.

        Anything not stored by then is counted as dropped, and logged.
        """
        if self._end.detach() is not None:
            self._engine.close(timeout)

    @property
    def report(self) -> CaptureReport:
        """The outcome of everything offered so far."""
        return self._engine.counts.report()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Engine:
    """What the thread works with. It does not keep ``MemoryCapture`` alive."""

    def __init__(
        self,
        memory: MemoryOrSession | Opener,
        config: MemoryCaptureConfig,
        session_id: str,
    ) -> None:
        self._config = config
        self._session_id = session_id
        self._is_owner = callable(memory)
        self._is_closed = False
        self._is_full_logged = False
        self._waiting_characters = 0
        opener = opener_of(memory)
        self.counts = Counts()
        self.writer = ObservationWriter(
            opener,
            self.counts,
            most=config.max_captures_per_session,
            is_patient=config.async_capture,
        )
        self.queue: WorkQueue[_Text | Observation] = WorkQueue(self._work, size=config.queue_size)
        _engines.add(self)

    def offer(self, content: object, source: str) -> int:
        """Scan the texts in ``content``, now or later; return how many observations were queued."""
        if self._is_closed:
            return 0
        queued = 0
        try:
            for text in texts_of(content):
                self.counts.add("offered")
                queued += self._take(text, source)
        except Exception as error:  # noqa: BLE001 - nothing may crash the host
            self.counts.add("unreadable")
            logger.warning("a text from %s could not be read: %s", source, type(error).__name__)
        return queued

    def close(self, timeout: float) -> None:
        """Process what is queued, and release the memory."""
        if self._is_closed:
            return
        self._is_closed = True
        started = time.monotonic()
        left = self.queue.close(timeout)
        if left:
            for item in left:
                self.counts.add("unread" if isinstance(item, _Text) else "dropped")
            logger.warning("%d captures were dropped: there was no time to store them", len(left))
        self.writer.give_up.set()
        self.queue.flush(max(1.0, timeout - (time.monotonic() - started)))
        self.writer.close(is_owner=self._is_owner)

    def start_anew(self) -> None:
        """Reset in a forked child: the queue and the counts are the parent's."""
        self.counts = Counts()
        self.writer.start_anew(self.counts)
        self.queue.start_anew()
        self._waiting_characters = 0

    def _take(self, text: str, source: str) -> int:
        if not self._config.async_capture:
            observations = self._scanned(text, source)
            for observation in observations:
                self.writer.keep(observation)
            return len(observations)
        promised = self._promised(text, source)
        if promised == 0:
            return 0
        is_long = len(text) > (_SHORT if promised is not None else _SHORT_FOR_ANY_PATTERN)
        if is_long or (promised or 0) > _FEW:
            self._defer(_Text(text, source))
            return 0
        return sum(self._queued(observation) for observation in self._scanned(text, source))

    def _promised(self, text: str, source: str) -> int | None:
        if len(text) > _SHORT:
            return None
        return count_cues(text, self._config, is_users=source == "turn:user")

    def _scanned(
        self, text: str, source: str, pause: Callable[[], object] = bool
    ) -> list[Observation]:
        scanned = scan(
            text, source=source, session_id=self._session_id, config=self._config, pause=pause
        )
        self.counts.add("observed", len(scanned.observations))
        self.counts.add("below_confidence", scanned.below_confidence)
        return scanned.observations

    def _queued(self, observation: Observation) -> bool:
        is_queued = self.queue.put(observation)
        if not is_queued:
            self.counts.add("dropped")
            self._log_full()
        return is_queued

    def _defer(self, item: _Text) -> None:
        """Queue a text to be scanned in the background, if there is room for it."""
        waiting = self._waiting_characters
        fits = not waiting or waiting + len(item.text) <= _MOST_WAITING
        self._waiting_characters = waiting + len(item.text)
        if not fits or not self.queue.put(item):
            self._waiting_characters -= len(item.text)
            self.counts.add("unread")
            self._log_full()

    def _log_full(self) -> None:
        if not self._is_full_logged:
            self._is_full_logged = True
            logger.warning("captures are dropped: %d are waiting to be stored", len(self.queue))

    def _work(self, item: _Text | Observation) -> None:
        """Process a queued item, in the background."""
        if isinstance(item, Observation):
            self.writer.keep(item)
            return
        self._waiting_characters -= len(item.text)
        let_others_run = partial(time.sleep, 0)
        try:
            observations = self._scanned(item.text, item.source, pause=let_others_run)
        except Exception as error:  # noqa: BLE001 - the next text must be scanned
            self.counts.add("unreadable")
            logger.warning("a text from %s is unreadable: %s", item.source, type(error).__name__)
            return
        for observation in observations:
            self.writer.keep(observation)


def is_our_tool(tool: object) -> bool:
    """Return whether a tool is one of this library's: its output is already stored."""
    return _OUR_TOOLS.search(_text_of(tool)) is not None


def source_of_tool(tool: object) -> str:
    """Return the ``source`` in the metadata of a memory that was captured from a tool."""
    return f"tool:{_named(tool)}"


def _named(name: object) -> str:
    """Return the name of a tool or a role in a form allowed in metadata."""
    return _NAME.sub(" ", _text_of(name)).strip()[:100] or "unknown"


def _text_of(name: object) -> str:
    try:
        return str(name)
    except RecursionError:  # lists nested thousands deep
        return ""


_engines: Final[weakref.WeakSet[_Engine]] = weakref.WeakSet()


def _in_child() -> None:
    for engine in list(_engines):
        engine.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)

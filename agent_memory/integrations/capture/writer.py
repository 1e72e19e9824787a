"""Stores observations: each once, within the limits, with retries, and without ever raising."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory import (
    AgentMemoryError,
    DuplicateGrade,
    DuplicateMemory,
    FoundSecrets,
    LimitReached,
    Observation,
    OnSecret,
    RejectedContent,
    SecretFound,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageUnavailable,
)
from agent_memory.models.duplicate import Duplicate
from agent_memory.models.safety import SecretPolicy

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession, Opener

logger: Final = logging.getLogger("agent_memory.capture")

_PATIENCE: Final = (0.2, 1.0, 5.0)
"""Seconds before each retry when a file is locked, full or out of reach."""
_PASSING: Final = (StorageLocked, StorageFull, StorageUnavailable)


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """The outcome of everything offered to a capture so far.

    ``offered`` counts texts. ``observed`` counts the sentences that were confident enough. Each of
    them is ``stored``, already there (``duplicates``; ``echoes`` if it had been recalled within the
    hour), ``over_limit``, ``refused`` by the file (a secret, a rejected value, a hard limit),
    ``dropped`` because the queue was full or closed too soon, ``failed`` after some attempts, or
    still ``waiting``. ``below_confidence`` counts sentences that were not confident enough,
    ``unread`` texts that were dropped before they were scanned, and ``unreadable`` results that
    could not be examined.
    """

    offered: int = 0
    observed: int = 0
    stored: int = 0
    duplicates: int = 0
    echoes: int = 0
    over_limit: int = 0
    refused: int = 0
    dropped: int = 0
    failed: int = 0
    below_confidence: int = 0
    unread: int = 0
    unreadable: int = 0
    waiting: int = 0


class Counts:
    """Counters that several threads add to, by the names of ``CaptureReport``."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1) -> int:
        """Add to a counter, and return its new value."""
        with self._lock:
            self._counts[name] += count
            return self._counts[name]

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def report(self) -> CaptureReport:
        """Return all counts. Whatever is neither done nor given up is waiting."""
        with self._lock:
            counts = dict(self._counts)
        done = "stored duplicates echoes over_limit refused dropped failed".split()
        waiting = counts.get("observed", 0) - sum(counts.get(name, 0) for name in done)
        return CaptureReport(**counts, waiting=waiting)


class ObservationWriter:
    """Stores observations in a memory, which is opened for the first of them.

    ``most`` limits how many are stored in all. ``is_patient`` says whether to retry, some seconds
    later, if a file is locked or full, until ``give_up`` is set.
    """

    def __init__(self, opener: Opener, counts: Counts, *, most: int, is_patient: bool) -> None:
        self.give_up = threading.Event()
        self._opener = opener
        self._counts = counts
        self._most = most
        self._waits = _PATIENCE if is_patient else ()
        self._memory: MemoryOrSession | None = None
        self._kept: set[str] = set()
        self._one_at_a_time = threading.RLock()
        self.reasons: list[str] = []
        """Why something could not be stored, each once, as it was logged."""
        self.is_stuck = False
        """Whether the store failed: what was not stored may be, later."""

    def start_anew(self, counts: Counts) -> None:
        """Reset in a forked child: the counts start over, and the locks may have been held."""
        self.give_up = threading.Event()
        self._one_at_a_time = threading.RLock()
        self._counts = counts

    def keep(self, observation: Observation) -> None:
        """Store an observation, or count why not. Never raises."""
        with self._one_at_a_time:
            self._keep(observation)

    def _keep(self, observation: Observation) -> None:
        mark = " ".join(observation.content.casefold().split()).rstrip(".!")
        is_users = observation.source == "turn:user"
        if mark in self._kept and not is_users:
            self._counts.add("duplicates")
        elif self._counts["stored"] >= self._most:
            self._log("the session's limit of captures is reached: no more are stored")
            self._counts.add("over_limit")
        else:
            outcome = self._outcome(observation)
            self._counts.add(outcome)
            if outcome in {"stored", "duplicates", "echoes"}:
                self._kept.add(mark)

    def close(self, *, is_owner: bool) -> None:
        """Close the memory, if it was opened here."""
        memory, self._memory = self._memory, None
        if is_owner and memory is not None:
            try:
                memory.close()
            except AgentMemoryError as error:
                self._log(f"the memory could not be closed: {error}")

    def _outcome(self, observation: Observation) -> str:
        for wait in (*self._waits, None):
            try:
                return self._stored(observation)
            except (SecretFound, RejectedContent, LimitReached) as error:
                level = logging.DEBUG if self._counts["refused"] else logging.WARNING
                logger.log(level, "an observation was refused: %s", error)
                return "refused"
            except StorageError as error:
                if isinstance(error, _PASSING) and wait and not self.give_up.wait(wait):
                    continue
                self.is_stuck = True
                if isinstance(error, StorageCorrupt):
                    self._log("the memory is damaged: run `agent-memory check`")
                else:
                    self._log(f"an observation could not be stored: {error}")
                return "failed"
            except Exception as error:  # noqa: BLE001 - nothing may crash the host
                self._log(f"an observation could not be stored: {type(error).__name__}")
                return "failed"
        return "failed"

    def _stored(self, observation: Observation) -> str:
        if self._memory is None:
            self._memory = self._opener()
        noticed: list[FoundSecrets] = []

        def notice(secrets: FoundSecrets) -> str:
            noticed.append(secrets)
            return "refuse"

        try:
            self._store(self._memory, observation, on_duplicate=_refused, on_secret=notice)
        except DuplicateMemory:
            return self._repeated(self._memory, observation)
        except SecretFound:
            if noticed[-1].decision is OnSecret.REFUSE:
                raise
            # Without keywords: one of them might be a piece of the secret.
            bare = observation.model_copy(update={"keywords": []})
            try:
                self._store(self._memory, bare, on_duplicate=_refused, on_secret=OnSecret.MASK)
            except DuplicateMemory:
                return self._repeated(self._memory, bare)
        return "stored"

    def _repeated(self, memory: MemoryOrSession, observation: Observation) -> str:
        """Classify a sentence that is already stored, or store it if it supersedes a newer one.

        If somebody says "tabs", then "spaces", then "tabs" again, they mean tabs. Only the user is
        believed in this: tools print the same lists again and again.
        """
        duplicates = memory.duplicates(observation.content)
        same = [
            duplicate for duplicate in duplicates if duplicate.grade is not DuplicateGrade.SIMILAR
        ]
        if observation.source == "turn:user" and same:
            last = max(_when(memory, duplicate) for duplicate in same)
            others = [
                duplicate for duplicate in duplicates if duplicate.grade is DuplicateGrade.SIMILAR
            ]
            if any(_when(memory, duplicate) > last for duplicate in others):
                self._store(memory, observation, on_duplicate="keep", on_secret=OnSecret.MASK)
                return "stored"
        return (
            "echoes"
            if any(duplicate.recalled_at is not None for duplicate in same)
            else "duplicates"
        )

    @staticmethod
    def _store(
        memory: MemoryOrSession,
        observation: Observation,
        *,
        on_duplicate: str | Callable[[Duplicate], str | None],
        on_secret: SecretPolicy,
    ) -> None:
        made = observation.to_memory(memory.agent_id)
        memory.store(
            made.content,
            category=made.category,
            tags=made.tags,
            session_id=made.created_by_session,
            metadata=made.metadata,
            on_duplicate=on_duplicate,  # no timestamp: with one, it could not be an echo
            on_secret=on_secret,
        )

    def _log(self, message: str) -> None:
        """Log a message, the first time as a warning. No message quotes an observation."""
        if message not in self.reasons:
            logger.warning("%s", message)
            self.reasons.append(message)
        else:
            logger.debug("%s", message)


def _refused(duplicate: Duplicate) -> str | None:
    return None if duplicate.grade is DuplicateGrade.SIMILAR else "refuse"


def _when(memory: MemoryOrSession, duplicate: Duplicate) -> float:
    stored = memory.get(duplicate.memory_id)
    return stored.timestamp.timestamp() if stored is not None else 0.0

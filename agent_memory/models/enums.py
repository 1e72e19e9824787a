"""The enumerations that describe memories, from documents A to E."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeGuard


class MemoryCategory(StrEnum):
    """What a memory is about. An agent's configuration may add its own categories."""

    PREFERENCE = "preference"
    DECISION = "decision"
    DISCOVERY = "discovery"
    PATTERN = "pattern"
    TASK = "task"
    BUGFIX = "bugfix"
    NOTE = "note"
    QUESTION = "question"
    INSIGHT = "insight"

    @classmethod
    def all_values(cls) -> set[str]:
        """Return the nine categories."""
        return {category.value for category in cls}


class ObservationType(StrEnum):
    """What an observation captured by a hook is about: the values of ``MemoryCategory``."""

    PREFERENCE = "preference"
    DECISION = "decision"
    DISCOVERY = "discovery"
    PATTERN = "pattern"
    TASK = "task"
    BUGFIX = "bugfix"
    NOTE = "note"
    QUESTION = "question"
    INSIGHT = "insight"


class MemoryOrder(StrEnum):
    """How ``list_recent`` sorts memories; ties are sorted newest first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    IMPORTANCE = "importance"
    RECALLED = "recalled"
    LAST_RECALLED = "last_recalled"
    CATEGORY = "category"


class MemoryKind(StrEnum):
    """How long a memory is meant to live."""

    CORE = "core"
    LEARNING = "learning"
    TASK = "task"


class Importance(StrEnum):
    """How much a memory matters."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class TaskStatus(StrEnum):
    """The status of a task."""

    COMPLETED = "completed"
    IN_PROGRESS = "in-progress"
    BLOCKED = "blocked"


class MemoryType(StrEnum):
    """What sort of record a memory is."""

    STANDARD = "STANDARD"
    PROCEDURAL = "PROCEDURAL"
    GRAPH = "GRAPH"


class StorageBackend(StrEnum):
    """How an agent's memories are searched: by keyword, or by meaning too."""

    FILE = "file"
    VECTOR = "vector"


class MatchType(StrEnum):
    """How a search found a memory; ``graph`` only if the search was asked to use the graph."""

    SCRATCHPAD = "scratchpad"
    VECTOR = "vector"
    KEYWORD = "keyword"
    PROMOTED = "promoted"
    GRAPH = "graph"


class HistoryEvent(StrEnum):
    """What happened to a memory."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class EventName(StrEnum):
    """The names of the events that a memory reports while it is used."""

    STORED = "memory:stored"
    SEARCHED = "memory:searched"
    PROMOTED = "memory:promoted"
    RENDERED = "memory:rendered"
    MIGRATION_SUGGESTED = "memory:migration_suggested"
    MIGRATION_STARTED = "memory:migration_started"
    MIGRATION_PROGRESS = "memory:migration_progress"
    MIGRATION_COMPLETED = "memory:migration_completed"
    MIGRATION_FAILED = "memory:migration_failed"


class OnDuplicate(StrEnum):
    """What to do with a text that is stored already: keep both, merge it, or refuse it."""

    KEEP = "keep"
    MERGE = "merge"
    REFUSE = "refuse"


def is_decision(value: object) -> TypeGuard[str]:
    """Return whether a value says what to do with a duplicate."""
    return isinstance(value, str) and value in list(OnDuplicate)


class OnSecret(StrEnum):
    """What to do with a secret in a memory that is to be stored.

    ``warn`` stores it and reports it. ``mask`` replaces it before anything is written. ``refuse``
    stores nothing. ``keep`` does not look for secrets.
    """

    WARN = "warn"
    MASK = "mask"
    REFUSE = "refuse"
    KEEP = "keep"


def is_secret_decision(value: object) -> TypeGuard[str]:
    """Return whether a value says what to do with a secret."""
    return isinstance(value, str) and value in list(OnSecret)

"""The words that memories are described with, of documents A to E."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeGuard


class MemoryCategory(StrEnum):
    """What a memory is about. An agent's configuration may add its own words."""

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
        """Return the nine words."""
        return {category.value for category in cls}


class ObservationType(StrEnum):
    """What an observation captured by a hook is about: the words of ``MemoryCategory``."""

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
    """How ``list_recent`` sorts memories; what is alike comes newest first."""

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
    """How far a task is."""

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
    """How a search found a memory. By the graph alone, only where that was asked for."""

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
    """What is told of a memory while it is used."""

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
    """What is done with a text that is stored already: keep both, merge it, or refuse it."""

    KEEP = "keep"
    MERGE = "merge"
    REFUSE = "refuse"


def is_decision(value: object) -> TypeGuard[str]:
    """Return whether a value says what is done with a duplicate."""
    return isinstance(value, str) and value in list(OnDuplicate)


class OnSecret(StrEnum):
    """What is done with a secret in what is to be stored.

    ``warn``: it is stored, and told. ``mask``: it is replaced before anything is written.
    ``refuse``: nothing is stored. ``keep``: it is not looked for.
    """

    WARN = "warn"
    MASK = "mask"
    REFUSE = "refuse"
    KEEP = "keep"


def is_secret_decision(value: object) -> TypeGuard[str]:
    """Return whether a value says what is done with a secret."""
    return isinstance(value, str) and value in list(OnSecret)

"""The keyword arguments that verbs take as fields, or a session passes on: for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel

    from agent_memory.api.arguments import Time
    from agent_memory.extraction.llm.registry import ModelSpec
    from agent_memory.models.duplicate import DuplicatePolicy
    from agent_memory.models.protocols import Reranker
    from agent_memory.models.safety import SecretPolicy


class _Fields(TypedDict, total=False):
    category: str | None
    tags: Sequence[str] | None
    kind: str | None
    importance: str | None
    memory_type: str | None
    timestamp: Time | None
    task_metadata: Mapping[str, Any] | BaseModel | None
    metadata: Mapping[str, Any] | None


class OwnStoreOptions(_Fields, total=False):
    """Those of ``AgentMemory.store``, without the user and the run: a session sets them."""

    session_id: str | None
    id: str | None
    on_duplicate: DuplicatePolicy | None
    on_secret: SecretPolicy | None


class StoreManyOptions(TypedDict, total=False):
    """Those of ``AgentMemory.store_many``."""

    on_duplicate: DuplicatePolicy | None
    on_secret: SecretPolicy | None
    progress: Callable[[int, int], None] | None


class _OwnChanges(_Fields, total=False):
    content: str
    archived: bool


class Changes(_OwnChanges, total=False):
    """What ``AgentMemory.update`` may change: the fields of ``MemoryChanges``."""

    user_id: str | None
    run_id: str | None


class OwnUpdateOptions(_OwnChanges, total=False):
    """Those of ``AgentMemory.update``, without the user and the run."""

    if_version: int | None
    on_secret: SecretPolicy | None


class OwnAddOptions(TypedDict, total=False):
    """Those of ``AgentMemory.add``, without what a session sets."""

    metadata: Mapping[str, Any] | None
    infer: bool
    llm: ModelSpec
    extraction_prompt: str | None
    update_prompt: str | None
    min_confidence: float
    graph: bool
    dry_run: bool
    strict: bool


class OwnSearchOptions(TypedDict, total=False):
    """Those of ``AgentMemory.search`` but ``filters``, and ``shared``, which no session has."""

    since: Time | None
    until: Time | None
    category: str | Sequence[str] | None
    tags: Sequence[str] | None
    tags_match: str | None
    kind: str | None
    importance: str | None
    session_id: str | None
    user_id: str | None
    run_id: str | None
    similarity_threshold: float | None
    min_confidence: float | None
    include_weak: bool
    count_accesses: bool
    now: Time | None
    explain: bool
    as_of: Time | None
    graph: bool
    hops: int
    expand: ModelSpec
    reranker: Reranker | None


class OwnEntityOptions(TypedDict, total=False):
    """Those of ``MemoryGraph.add_entity``, without the user and the run."""

    type: str | None
    aliases: Sequence[str]
    confidence: float | None
    memory_id: str | None


class _OwnEdgeOptions(TypedDict, total=False):
    valid_from: Time | None
    memory_id: str | None


class OwnEdgeOptions(_OwnEdgeOptions, total=False):
    """Those of ``MemoryGraph.add``, without the user and the run."""

    confidence: float
    temporal_context: str | None
    exclusive: bool | None


class OwnEdgeChanges(_OwnEdgeOptions, total=False):
    """Those of ``MemoryGraph.update``, without the user and the run."""

    old_relationship: str | None
    confidence: float | None

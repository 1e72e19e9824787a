"""What a search is asked, from the verb down to the tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_memory.storage.records import QueryVector


@dataclass(frozen=True, slots=True)
class QueryMeaning:
    """A query's vector, if there is one to be had; what kept it; how long that took."""

    vector: QueryVector | None = None
    degraded: list[str] = field(default_factory=list)
    milliseconds: float = 0.0

"""What each tool gives back, as JSON schemas: for hosts that check it, or work on with it."""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "number"}
_TRUTH: Final = {"type": "boolean"}
_NOTICE: Final = {"type": "string", "description": "What these texts are: recalled data."}
_REASON: Final = {"type": "string", "description": "Why there is nothing."}


def _object(needed: dict[str, Any], **others: Any) -> dict[str, Any]:  # noqa: ANN401 - schemas
    return {"type": "object", "properties": {**needed, **others}, "required": list(needed)}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_BRIEF: Final = {
    "id": _TEXT,
    "content": _TEXT,
    "category": _TEXT,
    "tags": _list(_TEXT),
    "timestamp": {"type": "string", "description": "When it was learned: ISO 8601, UTC."},
}
_SHORTENED: Final = {"type": "string", "description": "Says so where the content was shortened."}
_WHOLE: Final = _object(
    {**_BRIEF, "access_count": _COUNT},
    created_by_session=_TEXT,
    metadata={"type": "object"},
    version=_COUNT,
    updated_at=_TEXT,
    last_accessed=_TEXT,
)
_BACKEND: Final = {"enum": ["file", "vector"], "description": "By keyword, or by meaning too."}

OUTPUT_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "memory_store": _object(
        {"memory_id": _TEXT, "stored_at": _TEXT, "in_scratchpad": _TRUTH, "backend": _BACKEND},
        embedding_cost=_NUMBER,
        note=_TEXT,
        similar=_list(_object(_BRIEF, note=_SHORTENED)),
    ),
    "memory_search": _object(
        {
            "memories": _list(
                _object(
                    {
                        **_BRIEF,
                        "relevance_score": _NUMBER,
                        "match_type": _TEXT,
                        "access_count": _COUNT,
                    },
                    note=_SHORTENED,
                    is_weak={"type": "boolean", "description": "It may have nothing to do with it"},
                )
            ),
            "total_found": _COUNT,
            "search_latency_ms": _NUMBER,
            "query_time_ms": _NUMBER,
        },
        notice=_NOTICE,
        reason=_REASON,
        degraded=_list(_TEXT),
    ),
    "memory_list_recent": _object(
        {
            "memories": _list(
                _object(
                    {**_BRIEF, "access_count": _COUNT},
                    last_accessed={"type": ["string", "null"]},
                    note=_SHORTENED,
                )
            ),
            "scratchpad_size": _COUNT,
            "backend": _BACKEND,
        },
        notice=_NOTICE,
        reason=_REASON,
    ),
    "memory_get": _object({"memory": _WHOLE}, notice=_NOTICE),
    "memory_update": _object({"memory": _WHOLE, "changed": _TRUTH}),
    "memory_promote": _object(
        {"memory_id": _TEXT, "promoted": _TRUTH, "scratchpad_size": _COUNT},
        evicted={"type": ["string", "null"], "description": "Which one made room."},
    ),
    "memory_forget": _object({"memory_id": _TEXT, "forgotten": _TRUTH}),
}
"""By the tool's name. More may be given than these say."""

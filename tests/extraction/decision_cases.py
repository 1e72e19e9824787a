"""Facts, memories related to them, and decisions as a model writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from agent_memory.extraction.decisions import decide_by_rules
from agent_memory.extraction.types import Fact, OperationPlan, RelatedMemory

NOW = datetime(2026, 1, 30, 16, 0, tzinfo=UTC)
PASTA = RelatedMemory("mem-0a1b2c3d4e5f", "User likes pasta", NOW)
HOME = RelatedMemory("550e8400-e29b-41d4-a716-446655440000", "User lives in Paris")
BANK = RelatedMemory("mem-bank00000000", "User's bank is Acme")
FACTS = [
    Fact("User loves pasta and pizza", (0,), 0.9),
    Fact("User moved to Lisbon from Paris", (1,), 0.8),
    Fact("User has two cats", (2,), 0.7),
]
RELATED = [[PASTA, BANK], [HOME], []]


def answer(*operations: dict[str, Any]) -> str:
    return json.dumps({"memory": list(operations)})


def op(event: str, text: str, facts: list[int] | None, number: Any = None) -> dict[str, Any]:
    written = {"event": event, "text": text, "facts": facts, "id": number, "confidence": 0.9}
    return {name: value for name, value in written.items() if name != "facts" or facts is not None}


def shortly(found: OperationPlan) -> list[tuple[str, str | None, str]]:
    return [(it.event.value, it.id, it.text) for it in found.operations]


ALL_ADDED = [("ADD", None, fact.text) for fact in FACTS]


def decided(*facts: str, known: tuple[str, ...] = ()) -> OperationPlan:
    memories = [RelatedMemory(f"m{n}", text) for n, text in enumerate(known)]
    told = [Fact(text, (n,), 0.7) for n, text in enumerate(facts)]
    return decide_by_rules(told, [memories for _ in told])


def outcomes(plan: OperationPlan) -> list[tuple[str, str | None]]:
    """Return what is done about which memory; ASK where it is left, and somebody asked."""
    return [
        ("ASK" if place in plan.in_question else operation.event.value, operation.id)
        for place, operation in enumerate(plan.operations)
    ]

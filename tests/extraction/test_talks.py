"""Small conversations: which memories are put under review, and what is left once all is approved.

True is what the last messages and the older ones say together. Wrong would be a true memory that is
gone, a contradicted one that is left, or a review of what both can be true.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory, ValidationError

TALKS = json.loads((Path(__file__).parent / "cases" / "talks.json").read_text(encoding="utf-8"))


def messages_of(texts: list[str]) -> list[dict[str, str]]:
    return [
        message
        for text in texts
        for message in (
            {"role": "user", "content": text},
            {"role": "assistant", "content": "ok"},
        )
    ]


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: " | ".join(talk["said"])[:70])
def test_what_is_asked_and_what_is_left(root: Path, talk: dict[str, Any]) -> None:
    said = talk["said"]
    with AgentMemory("bob", root=root, embedder=None, synchronous="NORMAL") as memory:
        for texts in [said] if talk.get("in_one") else [[text] for text in said]:
            memory.add(messages_of(texts), user_id="u")
        before = {each.content for each in memory.list_recent()}
        reviews = memory.reviews()
        assert [review.content for review in reviews] == talk["asked"]
        for review in reviews:
            if "refused" in talk:
                with pytest.raises(ValidationError, match="only a part"):
                    memory.approve(review.review_id)
            else:
                memory.approve(review.review_id)
        assert sorted(each.content for each in memory.list_recent()) == sorted(talk["left"])
        if len(reviews) == 1 and "refused" not in talk:
            memory.undo()
            assert {each.content for each in memory.list_recent()} == before
            assert [review.content for review in memory.reviews()] == talk["asked"]
        assert memory.check().problems == []

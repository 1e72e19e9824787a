"""The requirements for recalls and reviews in every engine."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from agent_memory.conformance.engine_contract.cases import NOW, memory_of, stored
from agent_memory.models.times import format_time
from agent_memory.storage.engine import Engine


def _asked(engine: Engine, row_id: int, newer: str = "mem-2") -> int:
    """Put a memory under review, and return the number of the review."""
    return engine.reviews.add(
        row_id, replaced_by=newer, confidence=0.5, reasoning="newer", session_id="s", now=NOW
    )


def _is_edited(engine: Engine, review_id: int) -> bool:
    """Return whether the memory of an open review was changed since."""
    review = engine.reviews.get(review_id)
    assert review is not None
    return review._is_edited


class ReviewContract:
    """Recalls, and memories under review."""

    def test_recalls_are_forgotten_after_an_hour(self, engine: Engine) -> None:
        rows = stored(engine, memory_of(1))
        assert engine.recalls.row_ids_of(["mem-1", "mem-9"]) == {"mem-1": rows[0]}
        with engine.write():
            engine.recalls.record({rows[0]: format_time(NOW), 99: format_time(NOW)}, NOW)
        assert engine.recalls.is_any_recent(NOW)
        assert not engine.recalls.is_any_recent(NOW + timedelta(hours=2))

    def test_a_memory_is_put_in_question_once(self, engine: Engine) -> None:
        (row_id,) = stored(engine, memory_of(1))
        with engine.write():
            number = _asked(engine, row_id)
            assert _asked(engine, row_id) == number
        (review,) = engine.reviews.all()
        assert (review.memory_id, review.reasoning) == ("mem-1", "newer")
        assert not _is_edited(engine, number)
        with engine.write():
            engine.memories.update(row_id, {"content": "new"}, now=NOW)
            engine.reviews.forget_reasoning()
        assert _is_edited(engine, number)
        assert engine.reviews.get(number) is not None
        with engine.write():
            engine.reviews.dismiss(number, now=NOW)
            engine.operations.record_irreversible("dismiss", session_id="s", now=NOW)
        assert (engine.reviews.all(), engine.reviews.get(number)) == ([], None)
        answered = engine.operations.last()
        assert answered is not None
        with engine.write():
            assert engine.reviews.take_back(answered, None) == ["mem-1"]
        assert [review.review_id for review in engine.reviews.all()] == [number]

    def test_reviews_follow_a_memory_that_is_shortened_and_back(self, engine: Engine) -> None:
        (row_id,) = stored(engine, memory_of(1))
        with engine.write():
            closed, other = (_asked(engine, row_id, newer) for newer in ("mem-2", "mem-3"))
            engine.memories.update(row_id, {"content": "short"}, now=NOW)
            engine.reviews.dismiss(closed, now=NOW)
            engine.reviews.renew("mem-1")
        assert [review.review_id for review in engine.reviews.all()] == [other]
        assert not _is_edited(engine, other)
        asked = [("mem-2", format_time(NOW)), ("mem-3", None)]
        assert engine.reviews.newer_and_closed("mem-1") == asked
        with engine.write():
            engine.memories.update(row_id, {"content": "long again"}, now=NOW)
            assert engine.reviews.closed(closed) == ("mem-1", format_time(NOW))
            assert engine.reviews.closed(other) is None
            assert engine.reviews.of_memory("mem-1") == []  # it is another text now
            assert engine.reviews.reopen("mem-1", format_time(NOW + timedelta(hours=1))) == 0
            assert engine.reviews.reopen("mem-9", format_time(NOW)) == 0
            assert engine.reviews.reopen("mem-1", format_time(NOW)) == 1
            engine.reviews.renew("mem-1")
        assert engine.reviews.of_memory("mem-1") == engine.reviews.all()
        assert [review.review_id for review in engine.reviews.all()] == [closed, other]
        assert not any(_is_edited(engine, number) for number in (closed, other))

    def test_a_review_of_what_somebody_changed_stays_behind(self, engine: Engine) -> None:
        (row_id,) = stored(engine, memory_of(1))
        with engine.write():
            number = _asked(engine, row_id)
            for text in ("new", "newer"):
                engine.memories.update(row_id, {"content": text}, now=NOW)
            engine.reviews.renew("mem-1")
        assert _is_edited(engine, number)

    def test_what_a_memory_puts_in_question_is_found_by_it(self, engine: Engine) -> None:
        first, second, third = stored(engine, *map(memory_of, (1, 2, 3)))
        with engine.write():
            numbers = [_asked(engine, row, "mem-4") for row in (first, second, third)]
            _asked(engine, first, "mem-5")
            engine.reviews.dismiss(numbers[1], now=NOW)
            engine.memories.update(third, {"content": "new"}, now=NOW)
        asked = engine.reviews.because_of("mem-4")
        assert [(each.review_id, each.memory_id, closed_at) for each, closed_at in asked] == [
            (numbers[0], "mem-1", None),
            (numbers[1], "mem-2", format_time(NOW)),
        ]
        assert engine.reviews.because_of("mem-1") == []

    def test_a_review_follows_what_leaves_the_text(self, engine: Engine) -> None:
        (row_id, other_id) = stored(engine, memory_of(1), memory_of(2))
        with engine.write():
            number, edited = (_asked(engine, row, "mem-3") for row in (row_id, other_id))
            engine.memories.update(other_id, {"content": "new"}, now=NOW)
            for archived in (True, True, False):
                ids = ["mem-1"] if archived else ["mem-1", "mem-2"]
                engine.memory_rows.archive(ids, archived=archived, now=NOW)
                assert not _is_edited(engine, number)
            engine.memories.update(row_id, {"tags": ["home"]}, now=NOW)
            engine.memory_rows.update("mem-1", {"archived": 1}, updated_at=format_time(NOW))
            engine.memory_rows.update("mem-2", {"archived": 1}, updated_at=format_time(NOW))
        assert not _is_edited(engine, number)
        assert _is_edited(engine, edited)

    @pytest.mark.parametrize("deleted", [["mem-1", "mem-2"], ["mem-1"], ["mem-2"]])
    def test_the_history_keeps_the_questions_of_what_is_deleted(
        self, engine: Engine, deleted: list[str]
    ) -> None:
        (row_id, _) = stored(engine, memory_of(1), memory_of(2))
        with engine.write():
            _asked(engine, row_id)
            engine.memory_rows.delete_many(deleted)
        (of_first, *_) = reversed(engine.history.of_memory("mem-1"))
        was_replaced = [("mem-1", of_first.change_id)] if "mem-1" in deleted else []
        assert engine.reviews.replaced_by("mem-2") == was_replaced
        assert engine.reviews.replaced_by("mem-1") == []
        changes = [*engine.history.of_memory("mem-1"), *engine.history.of_memory("mem-2")]
        kept = [change.old["reviews"] for change in changes if "reviews" in change.old]
        assert [json.loads(questions) for questions in kept] == [
            [
                {
                    "id": "mem-1",
                    "replaced_by": "mem-2",
                    "confidence": 0.5,
                    "reasoning": "newer",
                    "proposed_at": format_time(NOW),
                    "session_id": "s",
                }
            ]
        ]
        with engine.write():
            engine.history.forget_reviews()
        assert all("reviews" not in change.old for change in engine.history.iterate())
        assert engine.reviews.replaced_by("mem-2") == []

    def test_what_was_shortened_under_review_was_replaced(self, engine: Engine) -> None:
        (row_id, _) = stored(engine, memory_of(1), memory_of(2))
        later = NOW + timedelta(days=1)
        with engine.write():
            number = _asked(engine, row_id)
            engine.memories.update(row_id, {"content": "a fact"}, now=later)
            last = engine.history.last_change()
            engine.history.sign("mem-1", since=last - 1, session_id="s", now=later)
            assert engine.reviews.replaced_by("mem-2") == []
            engine.reviews.dismiss(number, now=later)
        assert engine.reviews.replaced_by("mem-2") == [("mem-1", last)]
        with engine.write():
            engine.reviews.ask_again(number)
        assert engine.reviews.replaced_by("mem-2") == []

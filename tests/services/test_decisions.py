"""Decisions are carried out together, or none is; nothing that was decided on old news is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock

from agent_memory import AgentMemory, Memory, RejectedContent, ValidationError
from agent_memory.models.decision import Decision, DecisionOutcome

PASTA = "Alice likes pasta"
BOTH = "Alice loves pasta and pizza"


@pytest.fixture
def memory(root: Path) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, embedder=None, session_id="talk") as memory:
        memory.store(PASTA, id="pasta", metadata={"by": "hand"})
        memory.store("Alice lives in Oslo", id="home")
        yield memory


def add(memory: AgentMemory, content: str) -> Decision:
    return Decision("ADD", prepare(memory, {"content": content}))


def prepare(memory: AgentMemory, item: dict[str, Any]) -> Memory:
    return memory._prepare(item, settings=memory.configure(), secrets={})


def update(memory: AgentMemory, memory_id: str, seen: str, content: str, **more: Any) -> Decision:
    item = {"content": content, "metadata": {"confidence": 0.9}}
    return Decision(
        "UPDATE",
        prepare(memory, item),
        memory_id=memory_id,
        seen=seen,
        **more,
    )


def delete(memory_id: str, seen: str, **more: Any) -> Decision:
    return Decision("DELETE", memory_id=memory_id, seen=seen, **more)


def carry_out(memory: AgentMemory, *steps: Decision) -> list[DecisionOutcome]:
    return memory._apply_decisions(steps, keep_copies=False)[0]


def contents(memory: AgentMemory) -> dict[str, str]:
    return {it.id: it.content for it in memory.list_recent(100)}


def test_all_is_done_at_once_and_undone_at_once(memory: AgentMemory) -> None:
    before = contents(memory)
    done = carry_out(
        memory,
        add(memory, "Alice has a dog"),
        update(memory, "pasta", PASTA, BOTH),
        delete("home", "Alice lives in Oslo"),
    )
    assert [it.event for it in done] == ["ADD", "UPDATE", "DELETE"]
    assert [it.was for it in done] == [None, PASTA, "Alice lives in Oslo"]
    after = contents(memory)
    assert after == {"pasta": BOTH, done[0].memory_id: "Alice has a dog"}
    changed = memory.get("pasta")
    assert changed is not None
    assert changed.metadata == {"by": "hand", "confidence": 0.9}
    assert {it.session_id for it in memory.history(limit=3)} == {"talk"}
    assert memory.check().problems == []
    assert memory.undo().verb == "add"
    assert contents(memory) == before


def test_what_was_changed_meanwhile_is_left_and_the_new_text_is_kept(memory: AgentMemory) -> None:
    old = update(memory, "pasta", PASTA, BOTH)
    gone = update(memory, "home", "Alice lives in Oslo", "Alice lives in Rome")
    memory.update("pasta", content="Alice hates pasta")
    memory.delete("home")
    done = carry_out(memory, old, gone, delete("pasta", PASTA))
    assert [it.event for it in done] == ["ADD", "ADD", "NONE"]
    assert all("meanwhile" in (it.problem or "") for it in done)
    assert set(contents(memory).values()) == {"Alice hates pasta", BOTH, "Alice lives in Rome"}


def test_what_is_there_already_is_not_stored_again(memory: AgentMemory) -> None:
    first = add(memory, "ALICE LIKES PASTA")
    done = carry_out(memory, first, add(memory, "New"), add(memory, "New"))
    assert [it.event for it in done] == ["NONE", "ADD", "NONE"]
    assert done[0].memory_id == "pasta"
    assert done[1].memory_id == done[2].memory_id
    assert memory.count() == 3


def test_one_that_is_refused_keeps_no_other_out(memory: AgentMemory) -> None:
    memory.reject("pizza")
    steps = [
        add(memory, "Alice has a cat"),
        add(memory, "Alice bakes pizza"),
        delete("home", "Alice lives in Oslo"),
        update(memory, "pasta", PASTA, BOTH),
        add(memory, "Alice has a dog"),
    ]
    done = carry_out(memory, *steps)
    assert [it.event for it in done] == ["ADD", "NONE", "DELETE", "ADD", "ADD"]
    assert [bool(it.problem) for it in done] == [False, True, False, True, False]
    kept = {PASTA, "Alice has a cat", "Alice loves pasta", "Alice has a dog"}
    assert set(contents(memory).values()) == kept
    assert "pizza" not in repr(done)
    assert memory.check().problems == []


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Alice loves pizza. Alice has a cat.", "Alice has a cat."),
        ("Alice has a cat and loves Pizza!", "Alice has a cat"),
        ("Alice has a cat, Alice bakes pizza; Alice sings", "Alice has a cat; Alice sings"),
        ("Alice: I bake pizza, but I live in Rome.", "Alice: I live in Rome."),
        ("If there is pizza, Alice quits her job.", None),  # she does not quit it anyway
        ("Pizza: Alice has a cat. Alice sings.", None),  # the speaker's name is the value
    ],
)
def test_what_stands_beside_a_rejected_value_is_kept_and_asked_about(
    memory: AgentMemory, text: str, rest: str | None
) -> None:
    memory.reject("pizza")
    (outcome,) = carry_out(memory, update(memory, "pasta", PASTA, text))
    assert outcome.problem
    assert contents(memory)["pasta"] == PASTA
    assert set(contents(memory).values()) == {PASTA, "Alice lives in Oslo", *filter(None, [rest])}
    reviewed = [(it.memory_id, it.replaced_by) for it in memory.reviews()]
    assert reviewed == ([("pasta", outcome.memory_id)] if rest else [])
    (added,) = carry_out(memory, add(memory, text)) if rest else (outcome,)
    assert added.event == "NONE"
    assert memory.check().problems == []
    if rest:
        memory.undo()
    assert len(contents(memory)) == 2


def test_a_value_across_clauses_leaves_nothing(memory: AgentMemory) -> None:
    memory.reject("12 Elm St, Oslo")
    (outcome,) = carry_out(memory, update(memory, "pasta", PASTA, "Alice is at 12 Elm St, Oslo"))
    assert (outcome.event, outcome.review_ids) == ("NONE", ())
    assert len(contents(memory)) == 2


def test_a_memory_with_a_rejected_value_of_its_own_loses_no_new_text(memory: AgentMemory) -> None:
    memory.reject("hand")
    (outcome,) = carry_out(memory, update(memory, "pasta", PASTA, "Alice loves pasta"))
    assert (outcome.event, outcome.content) == ("ADD", "Alice loves pasta")
    assert "was not changed" in (outcome.problem or "")
    assert [it.memory_id for it in memory.reviews()] == ["pasta"]


def test_what_was_to_become_of_a_refused_fact_is_no_second_problem(memory: AgentMemory) -> None:
    memory.reject("pizza")
    refused = add(memory, "Alice bakes pizza")
    assert refused.memory is not None
    steps = [refused, delete(refused.memory.id, "Alice bakes pizza"), delete("home", "as it was")]
    first, second, third = carry_out(memory, *steps)
    assert "was not stored" in (first.problem or "")
    assert (second.event, second.problem) == ("NONE", None)
    assert "DELETE of home was skipped" in (third.problem or "")


def test_messages_as_they_are_are_stored_all_or_none(memory: AgentMemory) -> None:
    memory.reject("pizza")
    before = contents(memory)
    with pytest.raises(RejectedContent):
        memory._apply_decisions([add(memory, "one"), add(memory, "a pizza")], keep_copies=True)
    assert contents(memory) == before


def test_what_is_over_a_limit_is_told_and_the_rest_is_kept(memory: AgentMemory) -> None:
    memory.configure(retention={"limits": {"learning": {"max_memories": 3, "enforcement": "hard"}}})
    done = carry_out(memory, add(memory, "one more"), add(memory, "one too many"))
    assert [it.event for it in done] == ["ADD", "NONE"]
    assert memory.count() == 3


def test_two_that_decide_on_the_same_memory_lose_neither_text(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as one:
        one.store(PASTA, id="pasta")
        with AgentMemory("bob", root=root, embedder=None) as two:
            start = threading.Barrier(2)

            def decide(memory: AgentMemory, text: str) -> None:
                step = update(memory, "pasta", PASTA, text)
                start.wait()
                carry_out(memory, step)

            texts = ["Alice loves pasta", "Alice hates pasta"]
            threads = [
                threading.Thread(target=decide, args=pair)
                for pair in zip((one, two), texts, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(contents(one).values()) == sorted(texts)


# Reviews --------------------------------------------------------------------------------------


def test_what_is_in_question_stays_until_somebody_decides(memory: AgentMemory) -> None:
    unsure: dict[str, Any] = {"confidence": 0.4, "reasoning": "a guess", "in_review": True}
    done = carry_out(
        memory,
        update(memory, "pasta", PASTA, "Alice is allergic to wheat", **unsure),
        delete("home", "Alice lives in Oslo", **unsure),
    )
    assert [it.event for it in done] == ["ADD", "NONE"]
    assert {PASTA, "Alice lives in Oslo"} < set(contents(memory).values())
    second, first = memory.reviews()
    assert first.replaced_by == done[0].memory_id
    assert (first.memory_id, first.content) == ("pasta", PASTA)
    assert (second.memory_id, second.replaced_by) == ("home", None)
    assert {(it.confidence, it.reasoning, it.session_id) for it in memory.reviews()} == {
        (0.4, "a guess", "talk")
    }
    assert memory.approve(first.review_id).content == PASTA
    assert memory.dismiss(second.review_id).memory_id == "home"
    assert memory.reviews() == []
    assert set(contents(memory).values()) == {"Alice is allergic to wheat", "Alice lives in Oslo"}
    memory.undo(next(entry.change_id for entry in memory.history("pasta")))
    assert memory.get("pasta") is not None
    assert memory.check().problems == []


def test_questions_go_out_and_come_back_as_the_same_bytes(
    memory: AgentMemory, tmp_path: Path
) -> None:
    unsure: dict[str, Any] = {"confidence": 0.4, "reasoning": "a guess", "in_review": True}
    carry_out(
        memory,
        update(memory, "pasta", PASTA, BOTH, **unsure),
        delete("home", "Alice lives in Oslo", in_review=True),
    )
    memory.export(tmp_path / "one.yaml")
    with AgentMemory("bob", root=tmp_path / "copy", embedder=None) as copy:
        copy.import_(tmp_path / "one.yaml")
        said = {"review_id"}
        assert [it.model_dump(exclude=said) for it in copy.reviews()] == [
            it.model_dump(exclude=said) for it in memory.reviews()
        ]
        copy.export(tmp_path / "two.yaml")
    assert (tmp_path / "one.yaml").read_bytes() == (tmp_path / "two.yaml").read_bytes()


def test_a_question_about_another_version_is_not_approved(memory: AgentMemory) -> None:
    carry_out(memory, delete("pasta", PASTA, in_review=True))
    carry_out(memory, delete("pasta", PASTA, in_review=True))
    (review,) = memory.reviews()  # asked twice, it is one question
    memory.update("pasta", content="Alice is allergic to nuts")
    with pytest.raises(ValidationError, match="changed since"):
        memory.approve(review.review_id)
    assert memory.get("pasta") is not None
    memory.dismiss(review.review_id)
    assert memory.reviews() == []


def test_a_dismissed_question_is_asked_again_by_undo(memory: AgentMemory, clock: Clock) -> None:
    carry_out(memory, delete("pasta", PASTA, in_review=True))
    clock.forward(seconds=1)
    carry_out(memory, delete("home", "Alice lives in Oslo", in_review=True))
    asked = memory.reviews()
    for review in asked:
        clock.forward(seconds=1)
        memory.dismiss(review.review_id)
    assert memory.reviews() == []
    undone = memory.undo()
    assert (undone.verb, undone.change_ids, undone.memory_ids) == ("dismiss", [], [])
    assert memory.reviews() == asked[1:]  # the last answer alone
    assert memory.approve(asked[1].review_id).id == "home"
    assert memory.undo().memory_ids == ["home"]
    (again,) = memory.reviews()  # what was approved is asked anew
    memory.approve(again.review_id)
    with pytest.raises(ValidationError, match="no such review"):
        memory.dismiss(asked[0].review_id)
    memory.store("something else, since")
    assert memory.undo(review_id=asked[0].review_id).verb == "dismiss"
    assert memory.reviews() == asked[:1]
    with pytest.raises(ValidationError, match="no such dismissed review"):
        memory.undo(review_id=asked[0].review_id)
    with pytest.raises(ValidationError, match="a change or a review"):
        memory.undo(1, review_id=asked[0].review_id)
    memory.dismiss(asked[0].review_id)
    carry_out(memory, delete("pasta", PASTA, in_review=True))  # dismissed is not forbidden
    assert [review.memory_id for review in memory.reviews()] == ["pasta"]
    assert memory.check().problems == []


@pytest.mark.parametrize("verb", ["approve", "forget"])
def test_undo_of_a_deletion_asks_anew_what_was_in_question(memory: AgentMemory, verb: str) -> None:
    unsure: dict[str, Any] = {"confidence": 0.4, "reasoning": "a guess", "in_review": True}
    carry_out(memory, update(memory, "pasta", PASTA, "Alice is allergic to wheat", **unsure))
    carry_out(memory, delete("pasta", PASTA, **unsure))
    carry_out(memory, delete("home", "Alice lives in Oslo", in_review=True))
    asked = memory.reviews()
    if verb == "approve":
        memory.approve(asked[0].review_id)
    else:
        memory.delete("pasta")
    assert [review.memory_id for review in memory.reviews()] == ["home"]
    assert memory.undo().memory_ids == ["pasta"]
    anew = memory.reviews()[1:]
    number = {"review_id"}
    assert [it.model_dump(exclude=number) for it in anew] == [
        it.model_dump(exclude=number) for it in asked[:2]
    ]
    assert memory.approve(anew[0].review_id).id == "pasta"
    assert memory.check().problems == []


@pytest.mark.parametrize("gone", ["pasta", "wheat", "home"])
def test_what_was_in_question_is_not_asked_anew_by_what_is_gone(
    memory: AgentMemory, gone: str
) -> None:
    memory.store("something else", id="else")
    why = "unlike Alice lives in Oslo"
    wheat = update(memory, "pasta", PASTA, "Alice is allergic to wheat", reasoning=why)
    (done,) = carry_out(memory, wheat._replace(in_review=True))
    memory.approve(memory.reviews()[0].review_id)
    deletion = memory.history("pasta")[0]
    if gone == "wheat":
        memory.delete(str(done.memory_id))
    elif gone == "home":
        assert memory.erase("home").clean
    else:
        memory.erase("pasta")
        with pytest.raises(ValidationError, match="no such change"):
            memory.undo(deletion.change_id)
        return
    memory.undo(deletion.change_id)
    assert memory.get("pasta") is not None
    assert memory.reviews() == []


@pytest.mark.parametrize("has_erased", [False, True])
def test_what_was_in_question_when_it_was_deleted_goes_out_and_comes_back(
    memory: AgentMemory, tmp_path: Path, has_erased: bool
) -> None:
    carry_out(memory, delete("pasta", PASTA, in_review=True, reasoning="a guess"))
    (asked,) = memory.reviews()
    memory.approve(asked.review_id)
    memory.export(tmp_path / "one.yaml")
    with AgentMemory("bob", root=tmp_path / "copy", embedder=None) as copy:
        if has_erased:
            copy.erase(copy.store("what is erased"))
        copy.import_(tmp_path / "one.yaml")
        if not has_erased:
            copy.export(tmp_path / "two.yaml")
            assert (tmp_path / "one.yaml").read_bytes() == (tmp_path / "two.yaml").read_bytes()
        copy.undo(copy.history("pasta")[0].change_id)
        assert [it.reasoning for it in copy.reviews()] == ["a guess"] * (not has_erased)
        assert copy.check().problems == []


def test_a_secret_in_what_was_asked_is_found_in_the_history(memory: AgentMemory) -> None:
    carry_out(memory, delete("pasta", PASTA, in_review=True, reasoning=f"she gave AKIA{'Q' * 16}"))
    memory.delete("pasta")
    (found,) = memory.secrets()
    assert (found.memory_id, found.fields) == ("pasta", ["history"])


def test_what_another_program_wrote_as_a_question_is_not_asked(
    memory: AgentMemory, visitor: Any
) -> None:
    memory.delete("pasta")
    visitor(
        memory.path,
        "UPDATE history SET old_values = json_set(old_values, '$.reviews', '[1, {\"id\": 2}]')"
        " WHERE event = 'DELETE'",
    )
    assert memory.undo().memory_ids == ["pasta"]
    assert memory.reviews() == []


def test_a_user_takes_back_the_own_answer_alone(memory: AgentMemory, clock: Clock) -> None:
    sessions = {}
    for user in ("alice", "ben"):
        memory.store(f"{user} lives in Oslo", user_id=user, id=user)
        carry_out(memory, delete(user, f"{user} lives in Oslo", in_review=True))
        sessions[user] = memory.session({"user_id": user})
    for user in ("alice", "ben"):
        clock.forward(seconds=1)
        (review,) = sessions[user].reviews()
        sessions[user].dismiss(review.review_id)
    assert sessions["alice"].undo().verb == "dismiss"
    assert [review.memory_id for review in memory.reviews()] == ["alice"]
    memory.update("ben", content="ben lives in Bergen")
    assert sessions["ben"].undo().memory_ids == ["ben"]  # what came after the answer comes first
    assert [review.memory_id for review in memory.reviews()] == ["alice"]


def test_what_only_asks_is_not_undone_in_place_of_what_was_before(memory: AgentMemory) -> None:
    carry_out(memory, delete("pasta", PASTA, in_review=True))
    memory.undo()
    assert memory.reviews() == []
    with pytest.raises(ValidationError, match="nothing left to undo"):
        memory.undo()
    assert memory.count() == 2


def test_what_is_erased_is_not_quoted_in_a_question(memory: AgentMemory) -> None:
    carry_out(
        memory, delete("pasta", PASTA, in_review=True, reasoning="unlike Alice lives in Oslo")
    )
    assert memory.erase("home").clean
    assert [it.reasoning for it in memory.reviews()] == [None]


@pytest.mark.parametrize("number", [1, 99, 0, -1, "1", True])
def test_a_review_that_there_is_not_is_refused(memory: AgentMemory, number: Any) -> None:
    for verb in (memory.approve, memory.dismiss):
        with pytest.raises(ValidationError, match="review"):
            verb(number)


@pytest.mark.parametrize("gone", ["pasta", "wheat"])
def test_a_question_goes_with_either_memory(memory: AgentMemory, gone: str) -> None:
    wheat = update(memory, "pasta", PASTA, "Alice is allergic to wheat", in_review=True)
    (done,) = carry_out(memory, wheat)
    memory.erase("pasta" if gone == "pasta" else str(done.memory_id))
    assert memory.reviews() == []


def test_a_question_survives_another_program(memory: AgentMemory, visitor: Any) -> None:
    carry_out(memory, delete("pasta", PASTA, in_review=True))
    assert visitor(memory.path, "SELECT count(*) FROM reviews") == "1"
    visitor(memory.path, "DELETE FROM memories WHERE id = 'pasta'")
    assert memory.reviews() == []
    assert memory.check().problems == []


def test_reviews_to_decide_may_come_one_by_one(memory: AgentMemory) -> None:
    for text in ("I live in Oslo.", "I moved to Rome."):
        memory.add([{"role": "user", "content": text}])
    with pytest.raises(ValidationError, match="no such review"):
        memory.decide(approve=iter([99]))  # type: ignore[arg-type]
    assert len(memory.decide(approve=iter([1]))[0]) == 1  # type: ignore[arg-type]
    assert memory.reviews() == []

"""Storing what is stored already: noticed, told, and kept, merged or refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from conftest import Visitor

from agent_memory import (
    AgentMemory,
    Duplicate,
    DuplicateGrade,
    DuplicateMemory,
    Importance,
    ValidationError,
)

FACT = "Use PostgreSQL for new projects"


def grade(memory: AgentMemory, one: str, other: str) -> str | None:
    """Store a text, and return the grade of the other as its duplicate."""
    memory.store(one)
    found = memory.duplicates(other)
    return found[0].grade.value if found else None


# What is a duplicate ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FACT, "use PostgreSQL  for\nnew projects."),
        (FACT, FACT),
        ("\uff35\uff53\uff45 SQL", "use SQL"),  # full-width letters
        ("我喜欢茶", "我喜欢茶。"),
        ("🎉🎉", " 🎉🎉"),
        ("the and of", "The and of"),
        ("DO NOT DEPLOY TO THE US", "do not deploy to the us"),
        ("Use C#.", "Use C#"),
        ("don’t deploy", "don't deploy"),
        ("x" * 10_000, "X" * 10_000),
    ],
)
def test_the_same_text_is_an_exact_duplicate(memory: AgentMemory, one: str, other: str) -> None:
    assert grade(memory, one, other) == "exact"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FACT, "For new projects, use PostgreSQL!"),
        (FACT, "Please use PostgreSQL for the new projects"),
        ("User prefers dark mode", "The user prefers dark mode."),
        ("Bob left. Alice stayed.", "bob left! Alice stayed"),
        ("Note: buy oat milk", "note, buy the oat milk"),
    ],
)
def test_the_same_words_are_a_near_duplicate(memory: AgentMemory, one: str, other: str) -> None:
    assert grade(memory, one, other) == "near"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Bob manages Alice", "Alice manages Bob"),
        ("Standup is at 9:30", "Standup is at 10:00"),
        ("User prefers dark theme", "User prefers light theme"),
        ("Prefers tabs over spaces", "Prefers spaces over tabs"),
        ("The team uses Redis", "The team no longer uses Redis"),
        ("Deploy on Friday or Monday", "Deploy on Friday"),
        ("Deploy on Friday", "Deploy just on Friday"),
        ("Deploy on Friday.", "Deploy on Friday?"),
        ("Server runs v1.2", "Server runs v1.3"),
        ("offset is -5", "offset is 5"),
        ("rate is 1.5", "rate is 15"),
        ("area is 10²", "area is 102"),
        ("written in C++", "written in C"),
        ("written in C", "written in C#"),
        ("count is 5!", "count is 5"),
        ("password is Hunter2", "password is hunter2"),
        ("take vitamin A daily", "take vitamin daily"),
        ("He moved to The Hague", "He moved to Hague"),
        ("No, more tests", "No more tests"),
        ("The service uses Openai models", "The service uses OpenAI models"),
        ("her account is bobsmith", "her account is BobSmith"),
        ("OpenAI is down", "Openai is down"),
        ("ship to us only", "ship to US only"),
        ("call getname first", "call getName first"),
        ("is not very important", "is not important"),
        ("y = (a + b) * c", "y = a + (b * c)"),
        ("in Maßen trinken", "in Massen trinken"),
        ("不，可以", "不可以"),
        ("...", "!!!"),
    ],
)
def test_a_corrected_value_is_stored_whatever_the_policy(
    memory: AgentMemory, one: str, other: str
) -> None:
    first = memory.store(one)
    assert memory.store(other, on_duplicate="refuse") != first
    assert memory.store(one, on_duplicate="merge") == first
    assert memory.count() == 2


def test_a_correction_is_told_as_similar(memory: AgentMemory) -> None:
    there = memory.store("Standup of the platform team is at 9:30")
    memory.store("Something quite different about gardening and bees")
    (found,) = memory.duplicates("Standup of the platform team is at 10:00")
    assert (found.grade, found.memory_id) == (DuplicateGrade.SIMILAR, there)
    assert 0.6 <= found.shared_words < 1
    told: list[Duplicate] = []

    def refuse(duplicate: Duplicate) -> str:
        told.append(duplicate)
        return "refuse"

    new = memory.store("Standup of the platform team is at 10:00", on_duplicate=refuse)
    assert [(one.grade, one.memory_id) for one in told] == [("similar", there)]
    assert memory.get(new) is not None


def test_an_exact_duplicate_comes_before_a_near_one_and_a_similar_one(memory: AgentMemory) -> None:
    ids = memory.store_many(
        [
            {"content": "The big garden party is on Monday afternoon"},
            {"content": "The big garden party is on Friday afternoon"},
            {"content": "big garden party is on Friday afternoon"},
        ]
    )
    found = memory.duplicates("Big garden party is on Friday afternoon")
    assert [(one.grade, one.memory_id) for one in found] == [
        ("exact", ids[2]), ("near", ids[1]), ("similar", ids[0]),
    ]  # fmt: skip


@pytest.mark.parametrize("scope", ["user_id", "run_id"])
def test_only_memories_of_the_same_scope_are_compared(memory: AgentMemory, scope: str) -> None:
    there = memory.store(FACT, **{scope: "ann"})  # type: ignore[arg-type]
    for other in ({}, {scope: "bea"}):
        assert memory.duplicates(FACT, **other) == []
        assert memory.store(FACT, **other, on_duplicate="refuse") != there  # type: ignore[arg-type]
    assert [it.memory_id for it in memory.duplicates(FACT, **{scope: "ann"})] == [there]


def test_an_archived_or_deleted_or_changed_memory_is_no_duplicate(memory: AgentMemory) -> None:
    ids = [memory.store(FACT) for _ in range(3)]
    memory.update(ids[0], archived=True)
    memory.delete(ids[1])
    memory.update(ids[2], content="Use SQLite for tests")
    assert memory.duplicates(FACT) == []
    assert [it.memory_id for it in memory.duplicates("use SQLite for the tests")] == [ids[2]]
    memory.update(ids[2], user_id="ann")
    assert memory.duplicates("Use SQLite for tests") == []


def test_asking_changes_nothing_and_refuses_what_store_refuses(memory: AgentMemory) -> None:
    memory.store(FACT)
    before = memory.history(limit=100)
    memory.duplicates(FACT)
    assert memory.history(limit=100) == before
    with pytest.raises(ValidationError):
        memory.duplicates(" ")


def test_a_duplicate_is_found_among_many_whatever_its_words(memory: AgentMemory) -> None:
    words = ("alpha", "beta", "gamma", "delta")
    rows = [f"{one} {two} {n}" for n in range(200) for one in words for two in words]
    ids = memory.store_many([{"content": row} for row in [*rows, "alpha beta", "is it the"]])
    assert [it.memory_id for it in memory.duplicates("Alpha beta.")] == [ids[-2]]
    assert [it.memory_id for it in memory.duplicates("is it the")] == [ids[-1]]


# Rows of other programs ---------------------------------------------------------------------------


def test_rows_that_another_program_wrote_or_changed_are_compared(
    memory: AgentMemory, visitor: Visitor
) -> None:
    changed = memory.store("Use MySQL")
    visitor(
        memory.path,
        f"INSERT INTO memories (id, content) VALUES ('by-hand', '{FACT}')"
        f";;UPDATE memories SET content = 'Use SQLite' WHERE id = '{changed}'"
        ";;INSERT INTO memories (id, content) VALUES ('twice', 'Use oak')"
        ";;INSERT INTO memories (id, content) VALUES ('twice', 'Use elm')"
        " ON CONFLICT (id) DO UPDATE SET content = excluded.content",
    )
    assert memory.store(FACT, on_duplicate="merge") == "by-hand"
    assert memory.store("use SQLite", on_duplicate="merge") == changed
    assert memory.store("use elm", on_duplicate="merge") == "twice"
    assert memory.duplicates("Use MySQL") == memory.duplicates("Use oak") == []


def test_a_file_that_is_only_read_has_them_compared_too(
    root: Path, visitor: Visitor, memory: AgentMemory
) -> None:
    visitor(memory.path, f"INSERT INTO memories (id, content) VALUES ('by-hand', '{FACT}')")
    with AgentMemory("bob", root=root, read_only=True) as reader:
        assert [it.memory_id for it in reader.duplicates(FACT)] == ["by-hand"]


# Policies -----------------------------------------------------------------------------------------


def test_duplicates_are_kept_unless_something_else_is_said(memory: AgentMemory) -> None:
    assert memory.store(FACT) != memory.store(FACT)
    assert memory.store(FACT, on_duplicate="keep")
    assert memory.count() == 3


def test_refusing_names_the_one_that_is_there_and_stores_nothing(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    with pytest.raises(DuplicateMemory, match=f"{there}.*near.*update.*on_duplicate") as caught:
        memory.store("For new projects, use PostgreSQL", on_duplicate="refuse")
    assert caught.value.memory_id == there
    assert caught.value.code == "VALIDATION_ERROR"
    assert caught.value.errors()[0]["loc"] == ("content",)
    assert memory.count() == 1


def test_merging_adds_what_is_new_and_returns_the_id_that_is_there(memory: AgentMemory) -> None:
    there = memory.store(FACT, tags=["db"], metadata={"by": "ann"}, importance="medium")
    merged = memory.store(
        "use PostgreSQL for new projects!",
        tags=["sql", "db"],
        metadata={"by": "bea", "why": "joins"},
        importance="high",
        session_id="session-2",
        on_duplicate="merge",
    )
    assert merged == there
    found = memory.get(there)
    assert found is not None
    assert found.content == FACT
    assert (found.tags, found.metadata) == (["db", "sql"], {"by": "ann", "why": "joins"})
    assert (found.importance, found.version) == (Importance.HIGH, 2)
    change = memory.history(there)[0]
    assert (change.event, change.session_id) == ("UPDATE", "session-2")


def test_merging_nothing_new_changes_nothing(memory: AgentMemory) -> None:
    there = memory.store(FACT, tags=["db"], metadata={"by": "ann"}, importance="high")
    memory.store(FACT, tags=["db"], metadata={"by": "x"}, importance="low", on_duplicate="merge")
    assert [entry.event for entry in memory.history(there)] == ["ADD"]


def test_merging_keeps_to_twenty_tags(memory: AgentMemory) -> None:
    there = memory.store(FACT, tags=[f"a{n}" for n in range(19)])
    memory.store(FACT, tags=["b", "c"], on_duplicate="merge")
    found = memory.get(there)
    assert found is not None
    assert found.tags[18:] == ["a18", "b"]


def test_the_setting_in_the_file_decides_unless_the_call_does(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    memory.configure(on_duplicate="merge")
    assert memory.store(FACT) == there
    assert memory.store(FACT, on_duplicate="keep") != there
    memory.configure(on_duplicate="refuse")
    with pytest.raises(DuplicateMemory):
        memory.store(FACT)
    with pytest.raises(DuplicateMemory):
        memory.store(FACT, on_duplicate=lambda _: None)
    with pytest.raises(ValidationError):
        memory.configure(on_duplicate="drop")


@pytest.mark.parametrize("wrong", ["drop", "", 1, ["keep"]])
def test_a_policy_that_there_is_not_is_refused(memory: AgentMemory, wrong: Any) -> None:
    with pytest.raises(ValidationError, match="on_duplicate"):
        memory.store(FACT, on_duplicate=wrong)
    memory.store(FACT)
    with pytest.raises(ValidationError, match="on_duplicate"):
        memory.store_many([{"content": FACT}], on_duplicate=lambda _: wrong or "no")
    assert memory.count() == 1


@pytest.mark.parametrize(("answer", "count"), [("keep", 2), ("merge", 1), ("refuse", 1)])
def test_a_function_is_told_and_decides(memory: AgentMemory, answer: str, count: int) -> None:
    there = memory.store(FACT)
    told: list[Duplicate] = []

    def decide(duplicate: Duplicate) -> str:
        told.append(duplicate)
        return answer

    try:
        memory.store(f"{FACT}.", on_duplicate=decide)
    except DuplicateMemory:
        assert answer == "refuse"
    assert memory.count() == count
    (one,) = told
    assert (one.grade, one.memory_id, one.content) == (DuplicateGrade.EXACT, there, FACT)
    assert (one.new_content, one.recalled_at, one.index) == (f"{FACT}.", None, None)


def test_a_function_that_fails_stores_nothing(memory: AgentMemory) -> None:
    memory.store(FACT)

    def fail(_: Duplicate) -> str:
        raise RuntimeError("no answer")

    with pytest.raises(RuntimeError, match="no answer"):
        memory.store_many([{"content": "other"}, {"content": FACT}], on_duplicate=fail)
    assert memory.count() == 1


def test_an_id_that_is_there_is_kept_or_wrong_as_ever(memory: AgentMemory) -> None:
    memory.store(FACT, id="fact:1")
    assert memory.store(FACT, id="fact:1", on_duplicate="refuse") == "fact:1"
    with pytest.raises(ValidationError, match="other content"):
        memory.store("Use SQLite", id="fact:1", on_duplicate="merge")
    with pytest.raises(DuplicateMemory):
        memory.store(FACT, id="fact:2", on_duplicate="refuse")


# Lists --------------------------------------------------------------------------------------------


def test_a_list_is_merged_within_itself_the_first_one_wins(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    items: list[dict[str, Any]] = [
        {"content": "Tea is at four", "tags": ["a"]},
        {"content": FACT},
        {"content": "tea is at four!", "tags": ["b"]},
        {"content": "Tea is at five"},
    ]
    ids = memory.store_many(items, on_duplicate="merge")
    assert ids == [ids[0], there, ids[0], ids[3]]
    assert len(set(ids)) == 3
    tea = memory.get(ids[0])
    assert tea is not None
    assert tea.tags == ["a", "b"]


def test_a_list_with_duplicates_is_refused_whole_with_their_places(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    items = [{"content": "Tea"}, {"content": FACT}, {"content": "tea"}, {"content": "Coffee"}]
    with pytest.raises(DuplicateMemory, match=rf"2 of 4.*item 1.*{there}") as caught:
        memory.store_many(items, on_duplicate="refuse")
    assert [fault["loc"] for fault in caught.value.errors()] == [(1, "content"), (2, "content")]
    assert "item 0" in caught.value.errors()[1]["msg"]
    assert memory.count() == 1


def test_a_list_tells_the_places_of_its_duplicates(memory: AgentMemory) -> None:
    told: list[tuple[int | None, str]] = []
    items = [{"content": "Tea"}, {"content": "Milk"}, {"content": "tea"}]

    def tell(duplicate: Duplicate) -> None:
        told.append((duplicate.index, duplicate.memory_id))

    ids = memory.store_many(items, on_duplicate=tell)
    assert told == [(2, ids[0])]
    assert len(set(ids)) == 3


# Telling ------------------------------------------------------------------------------------------


def test_what_is_noticed_is_logged(memory: AgentMemory, caplog: pytest.LogCaptureFixture) -> None:
    there = memory.store("The standup of the team is at nine")
    with caplog.at_level(logging.INFO, logger="agent_memory.duplicates"):
        memory.store("the standup of the team is at nine")
        memory.store("The standup of the team is at nine", on_duplicate="merge")
        with pytest.raises(DuplicateMemory):
            memory.store("The standup of the team is at nine", on_duplicate="refuse")
        memory.store("The standup of the team is at ten")
    lines = [record.getMessage() for record in caplog.records]
    assert lines[:3] == [
        f"exact duplicate of {there}: {done}" for done in ("keep", "merge", "refuse")
    ]
    assert any(line == f"similar duplicate of {there}: keep" for line in lines[3:])
    assert not any("standup" in line for line in lines)


# Groups -------------------------------------------------------------------------------------------


def test_groups_hold_what_says_the_same(memory: AgentMemory) -> None:
    texts = [FACT, "Tea", "For new projects, use PostgreSQL", "tea.", "Milk", "TEA", "Tea"]
    ids = memory.store_many([{"content": text} for text in texts])
    memory.update(ids[6], archived=True)
    memory.store("Milk", user_id="ann")
    groups = list(memory.duplicate_groups())
    assert [(group.grade, [one.id for one in group.memories]) for group in groups] == [
        ("near", [ids[0], ids[2]]),
        ("exact", [ids[1], ids[3], ids[5]]),
    ]
    assert [group.count for group in groups] == [2, 3]


def test_a_group_of_many_shows_a_hundred_and_counts_all(memory: AgentMemory) -> None:
    memory.store_many({"content": "Tea"} for _ in range(130))
    (group,) = memory.duplicate_groups()
    assert (group.count, len(group.memories)) == (130, 100)

"""Storing, reading and deleting memories. How they are changed is in test_updating.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    Importance,
    MemoryKind,
    MemoryNotFound,
    MemoryType,
    TaskMetadata,
    TaskStatus,
    ValidationError,
)

NEW_ID = re.compile(r"mem-[0-9a-f]{12}")
DEEP: Any = {}
for _ in range(30):
    DEEP = {"deeper": DEEP}

# What is refused, and the field that the error must name.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"content": None}, "content"),
    ({"content": 5}, "content"),
    ({"content": ""}, "content"),
    ({"content": " \t\n"}, "content"),
    ({"content": "\u200b\u200d\ufeff"}, "content"),
    ({"content": "x" * 10_001}, "content"),
    ({"content": "a\x00b"}, "content"),
    ({"content": "a\ud800b"}, "content"),
    ({"category": "unheard-of"}, "category"),
    ({"category": ""}, "category"),
    ({"category": ["note"]}, "category"),
    ({"tags": "database"}, "tags"),
    ({"tags": [f"tag{n}" for n in range(21)]}, "tags"),
    ({"tags": ["x" * 51]}, "tags"),
    ({"tags": [5]}, "tags"),
    ({"tags": ["a\x00b"]}, "tags"),
    ({"tags": ["\udfff"]}, "tags"),
    ({"kind": "eternal"}, "kind"),
    ({"importance": "extreme"}, "importance"),
    ({"memory_type": "standard"}, "memory_type"),
    ({"user_id": " "}, "user_id"),
    ({"user_id": "u" * 201}, "user_id"),
    ({"run_id": "a\x00b"}, "run_id"),
    ({"timestamp": "last Tuesday"}, "timestamp"),
    ({"timestamp": "1700000000"}, "timestamp"),  # seconds or milliseconds since when?
    ({"timestamp": 1_700_000_000}, "timestamp"),
    ({"timestamp": "2026-02-30T00:00:00Z"}, "timestamp"),
    ({"timestamp": "0001-01-01T00:00:00+05:30"}, "timestamp"),
    ({"timestamp": "9999-12-31T23:00:00-05:00"}, "timestamp"),
    ({"timestamp": "2026-01-28T12:00:00+25:00"}, "timestamp"),
    ({"task_metadata": {}}, "task_metadata"),
    ({"task_metadata": {"status": "nearly"}}, "task_metadata"),
    ({"task_metadata": "completed"}, "task_metadata"),
    ({"metadata": ["a"]}, "metadata"),
    ({"metadata": {1: "a"}}, "metadata"),
    ({"metadata": {"x": float("nan")}}, "metadata"),
    ({"metadata": {"x": [1, float("inf")]}}, "metadata"),
    ({"metadata": {"x": 2**63}}, "metadata"),
    ({"metadata": {"x": object()}}, "metadata"),
    ({"metadata": {"x": NOW}}, "metadata"),
    ({"metadata": {"x\x00": 1}}, "metadata"),
    ({"metadata": {"x": {"y": "\ud800"}}}, "metadata"),
    ({"metadata": DEEP}, "metadata"),
]
REFUSED_ONLY_IN_STORE: list[tuple[dict[str, Any], str]] = [
    ({"id": ""}, "id"),
    ({"id": "x" * 129}, "id"),
    ({"id": "mem 1"}, "id"),
    ({"id": "mem-1\n"}, "id"),
    ({"id": "mémoire"}, "id"),
    ({"id": "a'b"}, "id"),
    ({"session_id": ""}, "session_id"),
    ({"session_id": "s" * 201}, "session_id"),
]


def names(table: list[tuple[dict[str, Any], str]]) -> list[str]:
    return [f"{field}={str(values[field])[:20]!a}" for values, field in table]


def contents_of(memory: AgentMemory) -> dict[str, Any]:
    """Everything in the store that a refused call could have spoilt."""
    return {
        "memories": memory.list_recent(1000),
        "history": memory.history(limit=1000),
        "scratchpad": memory.scratchpad().memories,
    }


# Storing one --------------------------------------------------------------------------------------


def test_what_is_not_given_has_a_default(memory: AgentMemory) -> None:
    memory_id = memory.store("Prefer PostgreSQL")
    assert NEW_ID.fullmatch(memory_id)
    stored = memory.get(memory_id)
    assert stored is not None
    assert stored.model_dump() == {
        "id": memory_id,
        "agent_id": "bob",
        "content": "Prefer PostgreSQL",
        "category": "note",
        "tags": [],
        "embedding": None,
        "timestamp": NOW,
        "last_accessed": None,
        "access_count": 0,
        "created_by_session": "session-1",
        "metadata": {},
        "kind": MemoryKind.LEARNING,
        "importance": Importance.MEDIUM,
        "task_metadata": None,
        "archived": False,
        "updated_at": NOW,
        "user_id": None,
        "run_id": None,
        "memory_type": MemoryType.STANDARD,
        "version": 1,
    }


def test_every_field_comes_back_as_it_was_given_even_after_reopening(
    memory: AgentMemory, root: Path
) -> None:
    learned = datetime(2024, 2, 29, 23, 30, 0, 123456, tzinfo=timezone(timedelta(hours=-2)))
    memory_id = memory.store(
        "  Ship on Fridays \n ",
        category="task",
        tags=["Ops", " release ", "ops"],
        kind="task",
        importance="high",
        session_id="session-9",
        user_id="ürsula",
        run_id="run-7",
        memory_type="PROCEDURAL",
        timestamp=learned,
        task_metadata={"status": "blocked", "blockers": ["CI"], "outcome": "waiting"},
        metadata={"n": 1, "x": 0.5, "ok": True, "none": None, "list": [1, {"ü": "'"}]},
        id="Task:2026.01-x_1",
    )
    assert memory_id == "Task:2026.01-x_1"
    with AgentMemory("bob", root=root, read_only=True) as other:
        stored = other.get(memory_id)
    assert stored is not None
    assert stored.content == "  Ship on Fridays \n "
    assert stored.tags == ["ops", "release"]
    assert (stored.category, stored.kind, stored.importance) == ("task", "task", "high")
    assert (stored.user_id, stored.run_id, stored.memory_type) == ("ürsula", "run-7", "PROCEDURAL")
    assert stored.created_by_session == "session-9"
    assert stored.timestamp == learned
    assert stored.timestamp.utcoffset() == timedelta(0)
    assert stored.updated_at == NOW
    assert stored.task_metadata == TaskMetadata(
        status=TaskStatus.BLOCKED, blockers=["CI"], outcome="waiting"
    )
    assert stored.metadata == {
        "n": 1, "x": 0.5, "ok": True, "none": None, "list": [1, {"ü": "'"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-01-28", datetime(2026, 1, 28, tzinfo=UTC)),
        ("2026-01-28T12:00:00", datetime(2026, 1, 28, 12, tzinfo=UTC)),
        ("2026-01-28T12:00:00+02:00", datetime(2026, 1, 28, 10, tzinfo=UTC)),
        ("2026-01-28T12:00:00.123456789Z", datetime(2026, 1, 28, 12, 0, 0, 123456, tzinfo=UTC)),
        (datetime(2026, 1, 28, 12), datetime(2026, 1, 28, 12, tzinfo=UTC)),  # noqa: DTZ001
    ],
)
def test_a_time_may_be_text_and_without_a_zone_it_is_utc(
    memory: AgentMemory, given: datetime | str, expected: datetime
) -> None:
    stored = memory.get(memory.store("x", timestamp=given))
    assert stored is not None
    assert stored.timestamp == expected


@pytest.mark.parametrize(
    "content",
    [
        "x",
        "x" * 10_000,
        "😀" * 10_000,  # code points count, not bytes
        "👩\u200d👩\u200d👧",
        "Line one\r\nLine two\u2028three",
        "'; DROP TABLE memories; --",
        "\u202eright to left",
        '{"json": "inside"}',
        "数据库" * 3_333,
    ],
    ids=lambda content: f"{len(content)} characters",
)
def test_any_text_of_1_to_10000_characters_comes_back_letter_by_letter(
    memory: AgentMemory, content: str
) -> None:
    stored = memory.get(memory.store(content))
    assert stored is not None
    assert stored.content == content


def test_task_metadata_may_be_a_model(memory: AgentMemory) -> None:
    given = TaskMetadata(status=TaskStatus.COMPLETED, completed_at=NOW, outcome="done")
    stored = memory.get(memory.store("x", task_metadata=given))
    assert stored is not None
    assert stored.task_metadata == given


def test_ids_that_are_made_differ(memory: AgentMemory) -> None:
    ids = memory.store_many({"content": "the same"} for _ in range(300))
    assert len(set(ids)) == 300
    assert all(NEW_ID.fullmatch(memory_id) for memory_id in ids)


@pytest.mark.parametrize(
    ("values", "field"), REFUSED + REFUSED_ONLY_IN_STORE, ids=names(REFUSED + REFUSED_ONLY_IN_STORE)
)
def test_a_refused_value_is_named_and_changes_nothing(
    memory: AgentMemory, values: dict[str, Any], field: str
) -> None:
    memory.store("already here", id="old")
    before = contents_of(memory)
    with pytest.raises(ValidationError) as caught:
        memory.store_many([{"content": "fine", **values}])
    assert {fault["loc"][:2] for fault in caught.value.errors()} == {(0, field)}
    # None means "not given" to store, except as the content.
    with pytest.raises(ValidationError) as caught:
        memory.store(**{"content": "fine", **values})
    assert {fault["loc"][0] for fault in caught.value.errors()} == {field}
    assert all(fault["msg"] and fault["type"] for fault in caught.value.errors())
    assert field in str(caught.value)
    assert len(str(caught.value)) < 2_000
    assert contents_of(memory) == before


def test_several_faults_are_all_told(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError) as caught:
        memory.store("", category="nope", tags="x")
    assert [fault["loc"] for fault in caught.value.errors()] == [
        ("content",), ("category",), ("tags",),
    ]  # fmt: skip


# Storing again under the same id ------------------------------------------------------------------


def test_storing_twice_under_one_id_keeps_one_memory(memory: AgentMemory, clock: Clock) -> None:
    assert memory.store("said once", id="m1", tags=["a"]) == "m1"
    before = contents_of(memory)
    clock.forward(hours=1)
    assert memory.store("said once", id="m1", tags=["b"]) == "m1"
    assert contents_of(memory) == before


def test_an_id_that_was_made_twice_is_made_anew(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.api.writing.new_memory_id", lambda: "mem-0123456789ab")
    texts = {f"one of three, {number}" for number in range(3)}
    ids = memory.store_many({"content": text} for text in texts)
    ids.append(memory.store("the last"))
    assert len(set(ids)) == 4
    assert {stored.content for stored in memory.list_recent()} == {*texts, "the last"}


def test_another_content_under_a_taken_id_is_refused(memory: AgentMemory) -> None:
    memory.store("first", id="m1")
    before = contents_of(memory)
    with pytest.raises(ValidationError) as caught:
        memory.store("second", id="m1")
    assert caught.value.errors()[0]["loc"] == ("id",)
    assert caught.value.errors()[0]["input"] == "m1"
    assert contents_of(memory) == before


# Storing many -------------------------------------------------------------------------------------


def test_ids_come_back_in_the_order_of_the_items(memory: AgentMemory) -> None:
    texts = [f"text {n}" for n in range(50)]
    ids = memory.store_many([{"content": text} for text in texts])
    assert [stored.content for stored in map(memory.get, ids) if stored] == texts


def test_items_may_come_from_a_generator(memory: AgentMemory) -> None:
    def items() -> Iterator[dict[str, Any]]:
        for n in range(3):
            yield {"content": f"text {n}", "id": f"m{n}"}

    assert memory.store_many(items()) == ["m0", "m1", "m2"]
    assert memory.count() == 3


def test_storing_an_empty_list_stores_nothing(memory: AgentMemory) -> None:
    before = contents_of(memory)
    assert memory.store_many([]) == []
    assert contents_of(memory) == before


def test_one_bad_item_of_1000_keeps_all_out_and_is_named(memory: AgentMemory) -> None:
    items: list[dict[str, Any]] = [{"content": f"text {n}"} for n in range(1_000)]
    items[617]["importance"] = "extreme"
    with pytest.raises(ValidationError, match="617") as caught:
        memory.store_many(items)
    assert [fault["loc"] for fault in caught.value.errors()] == [(617, "importance")]
    assert memory.count() == 0
    assert memory.history() == []


def test_each_bad_item_is_named(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError) as caught:
        memory.store_many([{"content": "fine"}, {"content": ""}, {"text": "x", "content": "y"}])
    places = [fault["loc"] for fault in caught.value.errors()]
    assert places == [(1, "content"), (2, "text")]


def test_an_item_that_is_no_mapping_is_named_by_its_place(memory: AgentMemory) -> None:
    not_mappings: list[Any] = [{"content": "fine"}, "only a text"]
    with pytest.raises(ValidationError) as caught:
        memory.store_many(not_mappings)
    assert caught.value.errors()[0]["loc"][0] == 1
    assert memory.count() == 0


def test_an_item_twice_in_one_list_is_stored_once(memory: AgentMemory) -> None:
    items = [{"content": "a", "id": "m1"}, {"content": "b"}, {"content": "a", "id": "m1"}]
    ids = memory.store_many(items)
    assert ids[0] == ids[2] == "m1"
    assert memory.count() == 2
    assert len(memory.history("m1")) == 1


def test_one_id_with_two_contents_in_one_list_keeps_all_out_and_is_named(
    memory: AgentMemory,
) -> None:
    items = [{"content": "a", "id": "m1"}, {"content": "b"}, {"content": "c", "id": "m1"}]
    with pytest.raises(ValidationError) as caught:
        memory.store_many(items)
    assert memory.count() == 0
    assert memory.history() == []
    assert caught.value.errors()[0]["loc"] == (2, "id")


def test_progress_is_told_up_to_the_end(memory: AgentMemory) -> None:
    told: list[tuple[int, int]] = []
    memory.store_many(
        ({"content": f"text {n}"} for n in range(1_200)),
        progress=lambda done, of: told.append((done, of)),
    )
    assert told[-1] == (1_200, 1_200)
    assert told == sorted(told)
    assert len(told) > 1


def test_a_failing_progress_function_leaves_nothing_stored(memory: AgentMemory) -> None:
    def fail(_done: int, _of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.store_many([{"content": "x"}], progress=fail)
    assert memory.count() == 0
    assert memory.store("still usable")


@pytest.mark.parametrize(("values", "field"), REFUSED[:12] + REFUSED_ONLY_IN_STORE[:2])
def test_validating_an_item_says_what_storing_would(
    memory: AgentMemory, values: dict[str, Any], field: str
) -> None:
    memory.validate({"content": "fine"})
    with pytest.raises(ValidationError) as caught:
        memory.validate({"content": "fine", **values})
    assert caught.value.errors()[0]["loc"][0] == field
    assert memory.count() == 0


# Categories of the agent's own --------------------------------------------------------------------


def test_an_agent_may_have_categories_of_its_own(memory: AgentMemory, root: Path) -> None:
    with pytest.raises(ValidationError, match="recipe"):
        memory.store("Soup", category="recipe")
    assert memory.configure(categories=["recipe", "Señal"]).categories == ["recipe", "Señal"]
    memory_id = memory.store("Soup", category="recipe")
    assert memory.update(memory_id, category="Señal").category == "Señal"
    assert memory.store("A note all the same", category="note")
    with AgentMemory("bob", root=root) as later:
        assert later.store("Salad", category="recipe")
        assert later.count(filters={"category": ["recipe", "Señal"]}) == 2


def test_a_category_that_memories_have_is_not_taken_away(memory: AgentMemory) -> None:
    memory.configure(categories=["recipe", "sketch"])
    ids = [memory.store(text, category="recipe") for text in ("Soup", "Salad")]
    memory.archive(ids[0])
    with pytest.raises(ValidationError, match=r"categories: 2 memories have 'recipe'"):
        memory.configure(categories=["sketch"], scratchpad_max_size=30)
    assert memory.info().config.categories == ["recipe", "sketch"]
    assert memory.info().config.scratchpad_max_size == 50
    memory.configure(categories=["recipe"])  # no memory has the other one
    for memory_id in ids:
        memory.update(memory_id, category="note")
    assert memory.configure(categories=[]).categories == []
    with pytest.raises(ValidationError):
        memory.store("Salad", category="recipe")


@pytest.mark.file_only("the check of a database compares no rows with the settings")
def test_a_category_that_is_gone_stays_readable_and_is_named(memory: AgentMemory) -> None:
    memory.configure(categories=["recipe"])
    memory_id = memory.store("Soup", category="recipe")
    memory.delete(memory_id)
    memory.configure(categories=[])
    memory.undo()
    stored = memory.get(memory_id)
    assert stored is not None
    assert stored.category == "recipe"
    assert memory.update(memory_id, content="Soup again").category == "recipe"
    (problem,) = memory.check().problems  # elsewhere it would come in as a note
    assert "'recipe' is no category" in problem.detail
    memory.configure(categories=["recipe"])
    assert memory.check().problems == []


@pytest.mark.parametrize("category", ["", "  ", "x" * 51, "a\nb"])
def test_a_category_that_cannot_be_used_is_refused(memory: AgentMemory, category: str) -> None:
    with pytest.raises(ValidationError):
        memory.configure(categories=[category])
    assert memory.info().config.categories == []


def test_an_unknown_setting_is_refused(memory: AgentMemory) -> None:
    with pytest.raises(ConfigurationError, match="categorys"):
        memory.configure(categorys=["x"])


# Reading and deleting -----------------------------------------------------------------------------


@pytest.mark.parametrize("memory_id", ["mem-000000000000", "", "x" * 10_000, "a\x00b", "\ud800"])
def test_getting_what_is_not_there_gives_none(memory: AgentMemory, memory_id: str) -> None:
    memory.store("something")
    assert memory.get(memory_id) is None


def test_deleting_returns_the_memory_as_it_was(memory: AgentMemory) -> None:
    memory_id = memory.store("goes away", tags=["a"])
    stays = memory.store("stays away")
    before = memory.get(memory_id)
    assert memory.delete(memory_id) == before
    assert memory.get(memory_id) is None
    assert memory.count() == 1
    assert [hit.memory.id for hit in memory.search("away")] == [stays]
    with pytest.raises(MemoryNotFound):
        memory.delete(memory_id)


def test_the_id_of_a_deleted_memory_may_be_used_again(memory: AgentMemory) -> None:
    memory.store("first", id="m1")
    memory.delete("m1")
    memory.store("second", id="m1")
    stored = memory.get("m1")
    assert stored is not None
    assert (stored.content, stored.version) == ("second", 1)
    assert [hit.memory.content for hit in memory.search("first second")] == ["second"]


def test_an_id_that_was_made_up_twice_is_made_anew(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.api.writing.new_memory_id", lambda: "mem-000000000000")
    first = memory.store("one")
    second = memory.store("two")
    third = memory.store("one")
    assert first == "mem-000000000000"
    assert len({first, second, third}) == 3
    assert memory.count() == 3

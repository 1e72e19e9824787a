"""What the page shows and changes, asked as its scripts ask: all by the library's own verbs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from conftest import Clock, database_of
from page_client import PageClient, in_question, served

from agent_memory import AgentMemory, Memory


@pytest.fixture
def page(memory: AgentMemory) -> Iterator[PageClient]:
    with served(memory.path) as client:
        yield client.begin()


def test_a_list_goes_on_by_key_though_others_are_stored_meanwhile(
    page: PageClient, memory: AgentMemory
) -> None:
    stored = memory.store_many([{"content": f"fact {number}"} for number in range(7)])
    seen: list[str] = []
    for number in range(4):
        after = f"&after={seen[-1]}" if seen else ""
        answer = page.read(f"memories?limit=2{after}")
        seen += [row["id"] for row in answer["memories"]]
        assert answer["has_more"] is (number < 3)
        memory.store(f"stored meanwhile, number {number}")
    assert seen == stored[::-1]


def test_a_list_has_the_beginning_of_a_text_and_the_view_all_of_it(
    page: PageClient, memory: AgentMemory
) -> None:
    memory_id = memory.store("long " * 1_000, metadata={"source": "a talk"})
    (row,) = page.read("memories")["memories"]
    assert (len(row["content"]), row["is_cut"]) == (400, True)
    whole = page.read(f"memory?id={memory_id}")
    assert len(whole["memory"]["content"]) == 5_000
    assert whole["memory"]["metadata"] == {"source": "a talk"}


@pytest.mark.parametrize(
    ("filters", "contents"),
    [
        ("category=decision", ["b"]),
        ("tag=x", ["c", "a"]),
        ("importance=high", ["a"]),
        ("archived=1", ["d"]),
        ("archived=both", ["d", "c", "b", "a"]),
        ("session_id=other", ["c"]),
        ("until=2026-01-01", []),
        ("since=2026-01-30&until=2026-01-30", ["c", "b", "a"]),
    ],
)
def test_filters(page: PageClient, memory: AgentMemory, filters: str, contents: list[str]) -> None:
    memory.store("a", tags=["x"], importance="high")
    memory.store("b", category="decision")
    memory.store("c", tags=["x"], session_id="other")
    memory.archive(memory.store("d"))
    rows = page.read(f"memories?{filters}")["memories"]
    assert [row["content"] for row in rows] == contents


def test_a_search_tells_the_parts_of_each_score_and_counts_as_no_access(
    page: PageClient, memory: AgentMemory
) -> None:
    memory_id = memory.store("The safe is behind the mirror")
    memory.store("Lunch is at noon")
    answer = page.read("search?q=where+is+the+safe")
    hit = answer["hits"][0]
    assert hit["memory"]["id"] == memory_id
    assert hit["score"]["evidence"] > 0
    assert answer["search"]["near_misses"] == [] or answer["search"]["explanation"]
    memory.info()
    assert memory.get(memory_id).access_count == 0  # type: ignore[union-attr]


def test_each_change_is_in_the_history_and_can_be_undone(
    page: PageClient, memory: AgentMemory
) -> None:
    memory_id = memory.store("The deploy runs on Fridays")

    def state() -> tuple[str, bool] | None:
        current = memory.get(memory_id)
        return None if current is None else (current.content, current.archived)

    before = state()
    for name, more, expected in (
        (
            "update",
            {"content": "The deploy runs on Tuesdays"},
            ("The deploy runs on Tuesdays", False),
        ),
        ("archive", {}, ("The deploy runs on Fridays", True)),
        ("forget", {}, None),
    ):
        change_id = page.post(name, {"id": memory_id, **more}).data["change_id"]
        assert state() == expected
        assert page.read(f"memory?id={memory_id}")["history"][0]["change_id"] == change_id
        assert page.post("undo", {"change_id": change_id}).data["change_ids"] == [change_id]
        assert state() == before


def test_a_request_that_changed_nothing_offers_no_undo(
    page: PageClient, memory: AgentMemory
) -> None:
    first, second, third = memory.store_many([{"content": f"fact {n}"} for n in range(3)])
    memory.archive([first, second])
    page_change = page.post("archive", {"ids": [first, third]}).data
    for name, body in (
        ("archive", {"ids": [first, second]}),
        ("unarchive", {"id": memory.store("never archived")}),
        ("update", {"id": first, "content": "fact 0"}),
    ):
        assert page.post(name, body).data["change_id"] is None, name
    assert page.post("undo", page_change).data["memory_ids"] == [third]


def test_an_undo_without_a_number_is_refused(page: PageClient, memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    for body in ({}, {"chage_id": 1}, {"change_id": None}, {"whole": True}):
        assert page.post("undo", body).status == 400
    assert memory.get(memory_id) is not None


def test_what_another_process_did_meanwhile_is_not_offered_to_be_undone(
    page: PageClient, memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = memory.store("one")
    archive = AgentMemory.archive

    def archive_and_be_overtaken(of: AgentMemory, ids: list[str]) -> list[Memory]:
        archived = archive(of, ids)
        memory.update(memory_id, content="two")
        return archived

    monkeypatch.setattr(AgentMemory, "archive", archive_and_be_overtaken)
    change = page.post("archive", {"id": memory_id}).data
    assert page.post("undo", change).data["verb"] == "archive"
    after = memory.get(memory_id)
    assert (after.content, after.archived) == ("two", False)  # type: ignore[union-attr]


def test_an_edit_of_what_somebody_else_changed_is_refused(
    page: PageClient, memory: AgentMemory
) -> None:
    memory_id = memory.store("one")
    version = page.read(f"memory?id={memory_id}")["memory"]["version"]
    memory.update(memory_id, content="two")
    answer = page.post("update", {"id": memory_id, "version": version, "content": "three"})
    assert answer.status == 400
    assert memory.get(memory_id).content == "two"  # type: ignore[union-attr]


def test_the_scratchpad_is_filled_and_emptied(page: PageClient, memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    for name, is_in in (("promote", True), ("demote", False)):
        assert page.post(name, {"id": memory_id}).status == 200
        assert page.read(f"memory?id={memory_id}")["is_in_scratchpad"] is is_in


def test_erasing_shows_its_receipt(page: PageClient, memory: AgentMemory) -> None:
    memory_id = memory.store("The safe is behind the mirror")
    receipt = page.post("erase", {"id": memory_id, "confirm": memory_id}).data
    assert (receipt["memories"], receipt["clean"], receipt["found"]) == (1, True, [])
    assert page.get(f"/api/memory?id={memory_id}").status == 404


def test_a_forgotten_memory_shows_its_history(page: PageClient, memory: AgentMemory) -> None:
    memory_id = memory.store("one")
    memory.delete(memory_id)
    answer = page.read(f"memory?id={memory_id}")
    assert answer["memory"] is None
    assert [entry["event"] for entry in answer["history"]] == ["DELETE", "ADD"]


def test_the_context_is_what_a_model_is_given(page: PageClient, memory: AgentMemory) -> None:
    memory.promote(memory.store("The safe is behind the mirror"))
    answer = page.read("context?budget=200")
    assert "The safe is behind the mirror" in answer["text"]
    assert 0 < answer["tokens"] <= 200
    assert page.read("context?budget=1")["text"] == ""
    assert [entry["content"] for entry in answer["scratchpad"]] == ["The safe is behind the mirror"]


def test_a_review_is_settled_either_way(page: PageClient, memory: AgentMemory) -> None:
    in_question(memory, "The safe is behind the mirror")
    in_question(memory, "Lunch is at noon")
    first, second = page.read("reviews")["reviews"]
    assert first["replacement"].startswith("Not so:")
    assert page.post("approve", {"review_id": first["review_id"]}).status == 200
    assert page.post("dismiss", {"review_id": second["review_id"]}).status == 200
    assert page.read("reviews")["reviews"] == []
    assert (memory.get(first["memory_id"]), memory.get(second["memory_id"]) is None) == (
        None,
        False,
    )
    memory.store("stored since, by an agent")
    assert page.post("undo", {"review_id": second["review_id"]}).status == 200
    assert page.read("reviews")["reviews"] == [second]


def test_duplicates_are_merged_only_where_they_still_say_the_same(
    page: PageClient, memory: AgentMemory
) -> None:
    first = memory.store("The safe is behind the mirror", tags=["a"])
    second = memory.store("the safe is behind the mirror.", tags=["b"], on_duplicate="keep")
    (group,) = page.read("duplicates")["groups"]
    assert [row["id"] for row in group["memories"]] == [first, second]
    memory.update(second, content="The safe is under the stairs")
    merge = {"keep": first, "others": [second]}
    assert page.post("merge", merge).status == 400
    memory.update(second, content="The safe is behind the mirror")
    merged = page.post("merge", merge).data
    assert (merged["forgotten"], merged["whole"]) == ([second], True)
    assert memory.get(first).tags == ["a", "b"]  # type: ignore[union-attr]
    memory.store("stored since, and stays")
    page.post("undo", {"change_id": merged["change_id"], "whole": True})
    assert [row.tags for row in map(memory.get, (first, second)) if row] == [["a"], ["b"]]
    assert memory.count() == 3
    assert len(page.read("duplicates")["groups"]) == 1


def test_a_rejection_tells_who_holds_the_text_and_is_lifted(
    page: PageClient, memory: AgentMemory
) -> None:
    memory_id = memory.store("Purple elephants live here")
    made = page.post("reject", {"text": "purple elephants", "reason": ""}).data
    assert made["holders"] == [memory_id]
    (listed,) = page.read("rejections")["rejections"]
    assert "elephants" not in str(listed)
    assert page.post("lift", {"rejection_id": listed["rejection_id"]}).data == {"lifted": True}
    assert page.read("rejections")["rejections"] == []


def test_the_past_is_shown_as_it_was(page: PageClient, memory: AgentMemory, clock: Clock) -> None:
    memory_id = memory.store("The deploy runs on Fridays")
    memory.graph.add("Ann", "lives in", "Oslo")
    clock.forward(days=2)
    memory.update(memory_id, content="The deploy runs on Tuesdays")
    memory.store("Lunch is at noon")
    memory.graph.remove("Ann", "lives in", "Oslo")
    then = "as_of=2026-01-31T16:00:00Z"
    (row,) = page.read(f"memories?{then}")["memories"]
    assert row["content"] == "The deploy runs on Fridays"
    assert page.read(f"search?q=deploy&{then}")["hits"][0]["memory"]["id"] == memory_id
    assert page.read(f"memory?id={memory_id}&{then}")["memory"]["content"] == row["content"]
    assert len(page.read(f"entity?name=Ann&{then}")["edges"]) == 1
    assert page.read("entity?name=Ann")["edges"] == []
    events = [change["event"] for change in page.read("timeline?limit=2")["changes"]]
    assert (events, page.read("timeline?limit=2")["has_more"]) == (["ADD", "UPDATE"], True)


def test_the_timeline_has_the_beginnings_of_texts(page: PageClient, memory: AgentMemory) -> None:
    memory_id = memory.store("long " * 200, metadata={"note": "x" * 5_000})
    memory.update(memory_id, importance="high")
    changed, added = page.read("timeline")["changes"]
    assert (added["content"], added["is_cut"]) == (("long " * 200)[:400], True)
    assert (changed["content"], changed["fields"]) == ("", ["importance"])
    assert len(json.dumps([changed, added])) < 2_000


def test_the_graph_calls_a_user_by_their_id(page: PageClient, memory: AgentMemory) -> None:
    memory_id = memory.store("I live in Oslo", user_id="alice")
    memory.graph.add("I", "lives_in", "Oslo", memory_id=memory_id)
    entities = page.read("entities")["entities"]
    assert [entity["name"] for entity in entities] == ["alice", "Oslo"]
    near = page.read("entity?name=alice")
    assert (near["name"], near["edges"][0]["source"]) == ("alice", "alice")
    assert page.read("entity?name=Oslo")["neighbours"][0]["name"] == "alice"
    graph = page.read(f"memory?id={memory_id}")["graph"]
    assert graph["entities"][0]["name"] == graph["relationships"][0]["source"] == "alice"


def test_the_timeline_and_the_graph_go_on_by_key(page: PageClient, memory: AgentMemory) -> None:
    for number in range(5):
        memory.graph.add_entity(f"Person {number}")
        memory.store(f"fact {number}")
    seen: list[int] = []
    names: list[str] = []
    after = before = ""
    for number in range(3):
        timeline = page.read(f"timeline?limit=2{before}")
        entities = page.read(f"entities?limit=2{after}")
        assert timeline["has_more"] is entities["has_more"] is (number < 2)
        seen += [change["change_id"] for change in timeline["changes"]]
        names += [entity["name"] for entity in entities["entities"]]
        before, after = f"&before={seen[-1]}", f"&after={entities['entities'][-1]['id']}"
        memory.store(f"stored meanwhile, number {number}")
    assert seen == [5, 4, 3, 2, 1]
    assert names == [f"Person {number}" for number in range(5)]


@pytest.mark.parametrize(
    ("order", "contents"),
    [
        ("newest", "cba"), ("oldest", "abc"), ("importance", "bca"), ("recalled", "acb"),
        ("last_recalled", "cab"), ("category", "bca"),
    ],
)  # fmt: skip
def test_a_list_is_sorted_and_goes_on_so(
    page: PageClient, memory: AgentMemory, order: str, contents: str
) -> None:
    memory.store("a", importance="low")
    memory.store("b", importance="high", category="decision")
    memory.store("c")
    use = "UPDATE memories SET access_count = ?, last_accessed = ? WHERE content = ?"
    for name, times, day in (("a", 3, 1), ("c", 1, 2)):
        database_of(memory).run(use, (times, f"2026-01-0{day}T00:00:00.000000Z", name))
    rows = page.read(f"memories?order={order}&limit=2")["memories"]
    rest = page.read(f"memories?order={order}&limit=2&after={rows[-1]['id']}")
    assert "".join(row["content"] for row in (*rows, *rest["memories"])) == contents
    assert page.get("/api/memories?order=best").error["message"].startswith("order: must be one of")


def test_one_memory_tells_who_recalled_it_and_what_it_says(
    page: PageClient, memory: AgentMemory, clock: Clock
) -> None:
    memory_id = memory.store("The safe is behind the mirror")
    assert page.read(f"recalls?id={memory_id}") == {"event_log": "off", "searches": []}
    memory.graph.add("The safe", "is behind", "the mirror", memory_id=memory_id)
    memory.configure(event_log="brief")
    memory.search("where is the safe?")
    memory.configure(event_log="full")
    clock.forward(days=1)
    memory.search("what is behind the mirror?")
    told = page.read(f"recalls?id={memory_id}")["searches"]
    assert [(each["place"], each["question"]) for each in told] == [
        (1, "what is behind the mirror?"),
        (1, None),
    ]
    assert [each["timestamp"][:10] for each in told] == ["2026-01-31", "2026-01-30"]
    assert told[0]["session_id"] == memory.session_id
    graph = page.read(f"memory?id={memory_id}")["graph"]
    assert [entity["name"] for entity in graph["entities"]] == ["The safe", "the mirror"]
    assert [edge["relationship"] for edge in graph["relationships"]] == ["is_behind"]


def test_what_is_recommended_is_done_and_undone(page: PageClient, memory: AgentMemory) -> None:
    first = memory.store("The safe is behind the mirror", tags=["a"])
    same = [
        memory.store(f"The safe is behind the mirror{mark}", tags=["b"], on_duplicate="keep")
        for mark in (".", "!")
    ]
    in_question(memory, "Lunch is at noon")
    review, repeated, *_ = page.read("statistics")["recommendations"]
    assert (repeated["same_as"], repeated["memory_ids"]) == (first, same)
    archived = page.post("archive", {"ids": same}).data
    assert memory.info().archived_count == 2
    memory.store("stored since")
    page.post("undo", archived)
    assert memory.info().archived_count == 0
    gone = page.post("approve", {"review_id": review["review_id"]}).data
    assert memory.get(review["memory_ids"][0]) is None
    page.post("undo", gone)
    assert memory.get(review["memory_ids"][0]) is not None


def test_the_file_its_agents_and_its_figures(page: PageClient, memory: AgentMemory) -> None:
    memory.configure(event_log="brief")
    memory.store("one")
    assert [each["agent_id"] for each in page.read("agents")["agents"]] == ["bob"]
    assert page.read("statistics")["memory_count"] == 1
    assert page.read("events")["event_log"] == "brief"
    assert page.read("events")["events"][0]["name"] == "memory:stored"
    assert [each["name"] for each in page.read("entities")["entities"]] == []
    place = page.post("backup", {}).data["path"]
    assert [each["path"] for each in page.read("health")["backups"]] == [place]
    for name in ("check", "repair"):
        assert page.post(name, {}).data["ok"] is True

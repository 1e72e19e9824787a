"""The tools that a model calls: schemas that every API takes, results, and never an exception."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory, Review, ValidationError
from agent_memory.integrations.identity import LazyMemory
from agent_memory.integrations.tools import DATA_NOTICE, TOOLS, MemoryTools
from agent_memory.storage.records import Row, review_of_row
from agent_memory.storage.sql import reviews

NAMES = [tool.name for tool in TOOLS]


@pytest.fixture
def tools(memory: AgentMemory) -> MemoryTools:
    return MemoryTools(memory)


def assert_metadata(metadata: dict[str, Any]) -> None:
    assert metadata.keys() == {"timestamp", "processing_time_ms", "request_id"}
    assert re.fullmatch(r"req_[0-9a-f]{12}", metadata["request_id"])
    assert metadata["processing_time_ms"] >= 0


def data(tools: MemoryTools, name: str, **arguments: Any) -> dict[str, Any]:
    result = tools.call(name, arguments).to_dict()
    json.dumps(result, allow_nan=False)  # whatever it is, it can be sent
    assert result["success"] is True, result
    assert_metadata(result["metadata"])
    found = result["data"]
    assert isinstance(found, dict)
    return found


def error(tools: MemoryTools, name: str, **arguments: Any) -> dict[str, Any]:
    result = tools.call(name, arguments).to_dict()
    assert result.keys() == {"success", "error", "metadata"}, result
    assert_metadata(result["metadata"])
    assert result["success"] is False
    found = result["error"]
    assert found.keys() == {"code", "message"}
    return dict(found)


# What they are ------------------------------------------------------------------------------------


def test_the_documented_tools_are_there_and_three_more() -> None:
    assert set(NAMES) == {
        *("memory_store", "memory_search", "memory_promote", "memory_list_recent"),
        *("memory_get", "memory_update", "memory_forget"),
        *("memory_add", "memory_reviews", "memory_resolve", "memory_graph"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_plain_and_say_what_each_field_is_for(name: str) -> None:
    (tool,) = [it for it in MemoryTools.definitions() if it["name"] == name]
    text = json.dumps(tool["input_schema"])
    assert all(word not in text for word in ("$ref", "$defs", "anyOf", '"null"', '"title"'))
    assert tool["input_schema"]["type"] == "object"
    assert tool["input_schema"]["additionalProperties"] is False
    for field in tool["input_schema"]["properties"].values():
        assert field["type"] in ("string", "integer", "boolean", "array", "object")
        assert field["description"]


def test_each_api_gets_its_own_shape() -> None:
    plain, openai = MemoryTools.definitions(), MemoryTools.definitions("openai")
    flat = MemoryTools.definitions("openai-responses")
    assert flat == [{"type": "function", "strict": False} | tool["function"] for tool in openai]
    assert MemoryTools.definitions("anthropic") == plain
    assert [it["function"]["name"] for it in openai] == NAMES
    assert {it["type"] for it in openai} == {"function"}
    assert [it["function"]["parameters"] for it in openai] == [it["input_schema"] for it in plain]


@pytest.mark.parametrize("style", ["gemini", "OpenAI", None, []])
def test_an_unknown_style_is_refused_by_name(style: Any) -> None:
    with pytest.raises(ValidationError, match="openai, openai-responses, anthropic, plain"):
        MemoryTools.definitions(style)


def test_the_documented_arguments_are_there() -> None:
    fields = {it["name"]: set(it["input_schema"]["properties"]) for it in MemoryTools.definitions()}
    assert fields["memory_store"] == {"content", "category", "tags", "metadata"}
    assert fields["memory_search"] == {"query", "limit", "since", "filters", "include_weak"}
    assert fields["memory_promote"] == {"memory_id"}
    assert fields["memory_list_recent"] == {"limit", "offset"}


# What they give back ------------------------------------------------------------------------------


def test_store_answers_with_the_documented_fields(memory: AgentMemory, tools: MemoryTools) -> None:
    done = data(tools, "memory_store", content="Prefer tea", category="preference", tags=["drinks"])
    stored = memory.get(done["memory_id"])
    assert stored is not None
    assert (stored.content, stored.category, stored.tags) == (
        "Prefer tea",
        "preference",
        ["drinks"],
    )
    assert done == {
        "memory_id": stored.id,
        "stored_at": "2026-01-30T16:00:00.000000Z",
        "in_scratchpad": True,
        "backend": "file",
        "embedding_cost": 0.0,
    }


def test_only_a_content_is_needed(memory: AgentMemory, tools: MemoryTools) -> None:
    done = data(tools, "memory_store", content="Prefer tea")
    stored = memory.get(done["memory_id"])
    assert stored is not None
    assert (stored.category, stored.tags, stored.metadata) == ("note", [], {})


def test_what_is_known_is_not_stored_twice(memory: AgentMemory, tools: MemoryTools) -> None:
    first = data(tools, "memory_store", content="Prefer tea in the morning")
    again = data(tools, "memory_store", content="prefer tea, in the morning.")
    assert again["memory_id"] == first["memory_id"]
    assert "known already" in again["note"]
    assert memory.count() == 1


def test_a_known_text_is_answered_with_what_became_of_its_other_fields(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    content = "Prefer tea in the morning"
    old = {"category": "preference", "tags": ["drinks"], "metadata": {"by": "bob"}}
    known = data(tools, "memory_store", content=content, **old)["memory_id"]
    same = data(tools, "memory_store", content=content)["note"]
    more = {"tags": ["tea"], "metadata": {"to": "ann"}}
    assert data(tools, "memory_store", content=content, **more)["note"] == same
    assert "memory_update" not in same
    other = {"category": "decision", "tags": ["cups"], "metadata": {"by": "eve"}}
    note = data(tools, "memory_store", content=content, **other)["note"]
    assert "its old category and metadata stayed: memory_update changes that" in note
    stored = memory.get(known)
    assert stored is not None
    assert (stored.category, stored.tags) == ("preference", ["drinks", "tea", "cups"])
    assert stored.metadata == {"by": "bob", "to": "ann"}


def test_similar_memories_are_shown_so_that_one_can_be_updated(tools: MemoryTools) -> None:
    first = data(tools, "memory_store", content="Use PostgreSQL 15 for all new projects")
    second = data(tools, "memory_store", content="Use PostgreSQL 17 for all new projects")
    assert second["memory_id"] != first["memory_id"]
    assert [it["id"] for it in second["similar"]] == [first["memory_id"]]
    assert "update" in second["note"]


def test_the_setting_of_the_file_decides_about_duplicates(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    memory.configure(on_duplicate="refuse")
    first = data(tools, "memory_store", content="Prefer tea")["memory_id"]
    assert first in error(tools, "memory_store", content="prefer tea.")["message"]
    memory.configure(on_duplicate="keep")
    assert data(tools, "memory_store", content="prefer tea.")["memory_id"] != first


def test_search_answers_with_the_documented_fields(memory: AgentMemory, tools: MemoryTools) -> None:
    memory_id = memory.store("Prefer PostgreSQL for new projects", tags=["db"])
    found = data(tools, "memory_search", query="which PostgreSQL?")
    (hit,) = found["memories"]
    assert hit == {
        "id": memory_id,
        "content": "Prefer PostgreSQL for new projects",
        "category": "note",
        "tags": ["db"],
        "timestamp": "2026-01-30T16:00:00.000000Z",
        "relevance_score": hit["relevance_score"],
        "confidence": hit["confidence"],
        "match_type": hit["match_type"],
        "access_count": 0,
    }
    assert found["total_found"] == 1
    assert found["query_time_ms"] == found["search_latency_ms"] > 0
    assert found["notice"] == DATA_NOTICE


def test_finding_nothing_is_an_answer_with_a_reason(tools: MemoryTools) -> None:
    found = data(tools, "memory_search", query="zebra")
    assert (found["memories"], found["total_found"]) == ([], 0)
    assert found["reason"]


def test_search_is_narrowed_by_time_category_tags_and_accesses(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    old = memory.store("violet one", timestamp="2026-01-01", category="decision", tags=["a"])
    new = memory.store("violet two", timestamp="2026-01-29", tags=["b", "c"])

    def ids(**asked: Any) -> set[str]:
        found = data(tools, "memory_search", query="violet", **asked)["memories"]
        return {it["id"] for it in found}

    assert ids() == {old, new}
    assert ids(since="2026-01-15") == {new}
    assert ids(since="2026-01-15T00:00:00+01:00") == {new}
    assert ids(filters={"category": "decision"}) == {old}
    assert ids(filters={"tags": "c"}) == {new}
    assert ids(filters={"date_range": {"end": "2026-01-02"}}) == {old}
    assert ids(since="2026-01-15", filters={"date_range": {"start": "2025-01-01"}}) == {new}
    assert ids(since="2025-01-15", filters={"date_range": {"start": "2026-01-20"}}) == {new}
    assert ids(filters={"min_access_count": 100}) == set()
    assert ids(limit=1) < {old, new}


def test_a_range_of_dates_has_both_of_its_days(memory: AgentMemory, tools: MemoryTools) -> None:
    noon = memory.store("violet noon", timestamp="2026-01-20T12:00:00Z")
    memory.store("violet later", timestamp="2026-01-21T00:00:00Z")
    day = {"start": "2026-01-20", "end": "2026-01-20"}
    found = data(tools, "memory_search", query="violet", filters={"date_range": day})
    assert [it["id"] for it in found["memories"]] == [noon]


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_field_that_says_nothing_is_left_out(tools: MemoryTools, nothing: str | None) -> None:
    asked = {"category": nothing, "tags": nothing, "metadata": nothing}
    kept = data(tools, "memory_store", content="The violet noon", **asked)["memory_id"]
    dates = {"start": nothing, "end": nothing}
    for filters in (nothing, {"category": nothing, "tags": nothing, "date_range": dates}):
        listed = data(tools, "memory_search", query="violet", since=nothing, filters=filters)
        assert [it["id"] for it in listed["memories"]] == [kept]
    changed = data(tools, "memory_update", memory_id=kept, content=nothing, tags=["a"])["memory"]
    assert (changed["content"], changed["category"]) == ("The violet noon", "note")
    assert (
        "name a field" in error(tools, "memory_update", memory_id=kept, content=nothing)["message"]
    )
    assert graph(tools, name=nothing, to=nothing) == {"names": []}


@pytest.mark.parametrize("since", [7, 7.5, True, "soon", "7 months", "30m"])
def test_what_is_no_time_is_told_with_what_is(tools: MemoryTools, since: object) -> None:
    found = error(tools, "memory_search", query="x", since=since)
    assert "12h, 7d, 2w" in found["message"]
    ends = {"date_range": {"end": since}}
    assert "12h, 7d, 2w" in error(tools, "memory_search", query="x", filters=ends)["message"]


def test_a_list_has_twenty_memories_at_most_unless_more_are_wanted(memory: AgentMemory) -> None:
    memory.store_many([{"content": f"The shelf {number} is blue"} for number in range(30)])
    for most, tools in ((20, MemoryTools(memory)), (25, MemoryTools(memory, most_results=25))):
        for name, query in (("memory_search", {"query": "shelf"}), ("memory_list_recent", {})):
            assert len(data(tools, name, **query, limit=1000)["memories"]) == most
            assert len(data(tools, name, **query, limit=2)["memories"]) == 2
    for style in ("openai", "anthropic"):
        texts = json.dumps(MemoryTools.definitions(style))
        assert texts.count('"maximum": 20') == 3
    for wrong in (0, 101):
        with pytest.raises(ValidationError, match="most_results: must be a whole number from 1 to"):
            MemoryTools(memory, most_results=wrong)


def test_as_many_are_found_as_are_listed(memory: AgentMemory, tools: MemoryTools) -> None:
    for content in ("The violet lantern", "It was lit at nine", "Then the boat came home"):
        memory.store(content, session_id="night")
    answer = data(tools, "memory_search", query="violet lantern", include_weak=True)
    assert len(answer["memories"]) > 1, "what is near in its session is listed too"
    assert answer["total_found"] >= len(answer["memories"])


def test_how_long_ago_is_a_time_too(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("violet old", timestamp="2020-01-01")
        new = memory.store("violet new")
        tools = MemoryTools(memory)
        for text in ("7d", "2 weeks ago"):
            found = data(tools, "memory_search", query="violet", since=text)
            assert [it["id"] for it in found["memories"]] == [new]
        dates = {"date_range": {"start": "2026-01-30", "end": "2026-01-29"}}
        message = error(tools, "memory_search", query="violet", filters=dates)["message"]
        assert "from 2026-01-30T00:00:00Z on and until 2026-01-29T23:59:59" in message
        assert message.endswith("swap the two")


def test_weak_hits_are_given_when_asked_for_and_marked(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    memory.store("The violet lantern stands by the harbour and shines at night")
    memory.store("A violet is a flower")
    query = "violet lantern harbour night"
    (good,) = data(tools, "memory_search", query=query)["memories"]
    first, weak = data(tools, "memory_search", query=query, include_weak=True)["memories"]
    assert first["id"] == good["id"]
    assert "is_weak" not in first
    assert weak["is_weak"] is True


def test_a_memory_that_may_be_out_of_date_is_marked_until_somebody_decides(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    for content in ("I live in Oslo.", "I moved to Bergen."):
        memory.add([{"role": "user", "content": content}])
    newer, older = data(tools, "memory_search", query="where do I live", include_weak=True)[
        "memories"
    ]
    assert (newer["content"], "under_review" in newer) == ("I moved to Bergen.", False)
    assert (older["content"], older["under_review"]) == ("I live in Oslo.", True)

    def marked() -> list[str]:
        listed = data(tools, "memory_list_recent")["memories"]
        wholes = [data(tools, "memory_get", memory_id=each["id"])["memory"] for each in listed]
        marks = [each["id"] for each in listed if each.get("under_review")]
        assert marks == [each["id"] for each in wholes if each.get("under_review")]
        return marks

    assert marked() == [older["id"]]
    memory.update(newer["id"], content="I like tea.")  # nobody has decided yet
    hits = memory.search("where do I live", limit=10)
    assert marked() == [older["id"]] == [hit.memory.id for hit in hits if hit.under_review]
    assert memory.under_review([newer["id"], older["id"], "mem-none"]) == {older["id"]}
    memory.dismiss(memory.reviews()[0].review_id)
    assert not any(hit.under_review for hit in memory.search("where do I live"))
    assert marked() == []


def test_a_memory_is_read_without_all_reviews(
    memory: AgentMemory, tools: MemoryTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call read all of them: 16 ms for 600."""
    for content in ("I live in Oslo.", "I moved to Bergen."):
        memory.add([{"role": "user", "content": content}])
    read: list[Row] = []

    def counted(row: Row) -> Review:
        read.append(row)
        return review_of_row(row)

    monkeypatch.setattr(reviews, "review_of_row", counted)
    (older,) = [each for each in memory.get_all() if each.content == "I live in Oslo."]
    assert data(tools, "memory_get", memory_id=older.id)["memory"]["under_review"] is True
    assert len(data(tools, "memory_list_recent")["memories"]) == 2
    assert read == []


def test_long_contents_are_shortened_in_lists_and_whole_in_get(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    content = "violet " + "word " * 1900
    memory_id = memory.store(content)
    for listed in (
        data(tools, "memory_search", query="violet")["memories"],
        data(tools, "memory_list_recent")["memories"],
    ):
        assert len(listed[0]["content"]) == 2001
        assert "memory_get" in listed[0]["note"]
    whole = data(tools, "memory_get", memory_id=memory_id)["memory"]
    assert whole["content"] == content


def test_metadata_too_long_for_a_model_is_left_out_and_told(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    kept = memory.store("A file", metadata={"deep": {"text": "x" * 20_000}})
    for name, more in (("memory_get", {}), ("memory_update", {"tags": ["a"]})):
        shown = data(tools, name, memory_id=kept, **more)["memory"]
        assert "metadata" not in shown
        assert "too many to be shown" in shown["note"]
    assert memory.get(kept).metadata["deep"] == {"text": "x" * 20_000}  # type: ignore[union-attr]


def test_what_is_older_is_listed_behind_the_newest(memory: AgentMemory, tools: MemoryTools) -> None:
    ids = memory.store_many([{"content": f"The shelf {number} is blue"} for number in range(45)])
    pages = [data(tools, "memory_list_recent", limit=20, offset=at) for at in (0, 20, 40, 10**9)]
    assert [len(page["memories"]) for page in pages] == [20, 20, 5, 0]
    assert {it["id"] for page in pages for it in page["memories"]} == set(ids)


def test_list_recent_answers_with_the_documented_fields(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    assert data(tools, "memory_list_recent") == {
        "memories": [],
        "scratchpad_size": 0,
        "backend": "file",
    }
    ids = [memory.store(f"fact {n}", timestamp=f"2026-01-{n:02}") for n in range(1, 13)]
    listed = data(tools, "memory_list_recent")
    assert [it["id"] for it in listed["memories"]] == ids[:1:-1]
    assert listed["scratchpad_size"] == 12
    assert listed["memories"][0].keys() == {
        *("id", "content", "category", "tags", "timestamp", "access_count", "last_accessed")
    }
    assert len(data(tools, "memory_list_recent", limit=3)["memories"]) == 3


def test_update_changes_only_what_is_given(memory: AgentMemory, tools: MemoryTools) -> None:
    memory_id = memory.store("Prefer tea", tags=["drinks"], metadata={"by": "bob"})
    done = data(tools, "memory_update", memory_id=memory_id, content="Prefer milk", tags=None)
    assert done["changed"] is True
    assert done["memory"]["content"] == "Prefer milk"
    assert (done["memory"]["tags"], done["memory"]["metadata"]) == (["drinks"], {"by": "bob"})
    same = data(tools, "memory_update", memory_id=memory_id, content="Prefer milk")
    assert same["changed"] is False
    assert "name a field" in error(tools, "memory_update", memory_id=memory_id)["message"]


def test_an_update_with_every_field_filled_in_empties_none(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    memory_id = memory.store("Prefer tea", tags=["drinks"], metadata={"by": "bob"})
    of_all = {"content": "", "category": "", "tags": [], "metadata": {}}
    message = error(tools, "memory_update", memory_id=memory_id, **of_all)["message"]
    assert "name a field" in message
    for change in ({"content": "Prefer milk"}, {"category": "preference"}):
        done = data(tools, "memory_update", memory_id=memory_id, **{**of_all, **change})["memory"]
        assert (done["tags"], done["metadata"]) == (["drinks"], {"by": "bob"})
    assert (done["content"], done["category"]) == ("Prefer milk", "preference")


def test_tags_and_metadata_can_be_removed_each_by_itself(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    memory_id = memory.store("Prefer tea", tags=["drinks"], metadata={"by": "bob"})
    done = data(tools, "memory_update", memory_id=memory_id, tags=[])["memory"]
    assert (done["tags"], done["metadata"]) == ([], {"by": "bob"})
    done = data(tools, "memory_update", memory_id=memory_id, metadata={})["memory"]
    assert done["metadata"] == {}


def test_promote_and_forget(memory: AgentMemory, tools: MemoryTools) -> None:
    memory_id = memory.store("Prefer tea")
    memory.demote(memory_id)
    done = data(tools, "memory_promote", memory_id=memory_id)
    assert done == {
        "memory_id": memory_id,
        "promoted": True,
        "evicted": None,
        "scratchpad_size": 1,
    }
    assert data(tools, "memory_forget", memory_id=memory_id) == {
        "memory_id": memory_id,
        "forgotten": True,
    }
    assert memory.get(memory_id) is None
    memory.undo()
    assert memory.get(memory_id) is not None


# What goes wrong ----------------------------------------------------------------------------------


# Conversations, questions, the graph ------------------------------------------------------------


def told(tools: MemoryTools, text: str) -> dict[str, Any]:
    return data(tools, "memory_add", messages=[{"role": "user", "content": text}])


def test_a_conversation_becomes_memories(memory: AgentMemory, tools: MemoryTools) -> None:
    done = data(
        tools,
        "memory_add",
        messages=[
            {"role": "user", "content": "Hi! I am allergic to peanuts."},
            {"role": "assistant", "content": "I will remember that."},
        ],
    )
    (change,) = done["changes"]
    assert (change["event"], "peanuts" in change["memory"]) == ("ADD", True)
    stored = memory.get(change["id"])
    assert stored is not None
    assert stored.content == change["memory"]
    again = told(tools, "Hi! I am allergic to peanuts.")
    assert (again["changes"], again["reason"]) == ([], "already known")
    nothing_kept = "no fact to keep: requests, questions and small talk are left out"
    assert told(tools, "Thanks!") == {"changes": [], "facts": 0, "reason": nothing_kept}


def graph(tools: MemoryTools, **arguments: Any) -> dict[str, Any]:
    result = tools.call("memory_graph", arguments)
    assert result.data is not None, result.error
    return result.data


@pytest.mark.parametrize("still_true", [True, False])
def test_what_became_unsure_is_asked_and_answered(
    memory: AgentMemory, tools: MemoryTools, still_true: bool
) -> None:
    (first,) = told(tools, "I live in Oslo.")["changes"]
    later = told(tools, "I don't live in Oslo any more, I think.")
    listed = data(tools, "memory_reviews")
    (review,) = listed["reviews"]
    assert listed["total"] == 1
    assert (review["memory_id"], review["content"]) == (first["id"], "I live in Oslo.")
    assert [review["review_id"]] == later["questions"]
    done = data(tools, "memory_resolve", review_id=review["review_id"], still_true=still_true)
    assert done["forgotten"] is not still_true
    assert (memory.get(first["id"]) is not None) is still_true
    assert data(tools, "memory_reviews") == {"reviews": [], "total": 0}
    assert error(tools, "memory_resolve", review_id=review["review_id"], still_true=True)


def test_of_what_is_partly_contradicted_the_rest_is_told_and_kept(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    (first,) = told(tools, "I grow figs and plums.")["changes"]
    told(tools, "I no longer grow plums.")
    (review,) = data(tools, "memory_reviews")["reviews"]
    assert (review["remaining"], review["if_not_true"]) == ("I grow figs.", "shortened")
    done = data(tools, "memory_resolve", review_id=review["review_id"], still_true=False)
    assert (done["forgotten"], done["remaining"]) == (False, "I grow figs.")
    shortened = memory.get(first["id"])
    assert shortened is not None
    assert shortened.content == "I grow figs."


def test_a_model_is_told_whether_all_goes_or_nothing_can(tools: MemoryTools) -> None:
    for text in ("I keep bees and geese with Ivo.", "I no longer keep geese.", "I live in Oslo."):
        told(tools, text)
    told(tools, "I moved to Bergen.")
    part, whole = data(tools, "memory_reviews")["reviews"]
    assert (part["if_not_true"], whole["if_not_true"]) == ("refused", "forgotten")
    assert "remaining" not in {*part, *whole}
    assert error(tools, "memory_resolve", review_id=part["review_id"], still_true=False)


def test_who_may_not_read_answers_a_question(memory: AgentMemory) -> None:
    tools = MemoryTools(memory.session({"user_id": "ann"}))
    told(tools, "I live in Oslo.")
    (review_id,) = told(tools, "I don't live in Oslo any more, I think.")["questions"]
    permissions = {"read": False, "write": True, "delete": True}
    blind = memory.session({"user_id": "ann", "permissions": permissions})
    done = data(MemoryTools(blind), "memory_resolve", review_id=review_id, still_true=True)
    assert done == {"review_id": review_id, "forgotten": False}


def test_a_model_is_not_told_how_its_owner_lifts_a_refusal(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    memory.reject("quince")
    (problem,) = told(tools, "I like quince jam.")["problems"]
    assert "not stored" in problem
    assert "lift" not in problem


def test_the_graph_is_seen_whole_near_and_between(memory: AgentMemory, tools: MemoryTools) -> None:
    assert data(tools, "memory_graph") == {"names": []}
    memory.graph.add("Nadia", "works at", "Acme")
    memory.graph.add("Acme", "is in", "Ghent")
    whole = data(tools, "memory_graph")
    assert [each["name"] for each in whole["names"]] == ["Nadia", "Acme", "Ghent"]
    near = graph(tools, name="Nadia")
    assert [(each["name"], each["distance"]) for each in near["names"]] == [("Acme", 1)]
    far = graph(tools, name="nadia", depth=2)
    assert [each["name"] for each in far["names"]] == ["Acme", "Ghent"]
    way = graph(tools, name="Nadia", to="Ghent")
    assert [each["name"] for each in way["names"]] == ["Nadia", "Acme", "Ghent"]
    assert [each["relationship"] for each in way["relationships"]] == ["works_at", "is_in"]
    memory.graph.add_entity("Island")
    apart = graph(tools, name="Nadia", to="Island")
    assert (apart["names"], apart["relationships"]) == ([], [])
    assert "note" not in whole
    for number in range(60):
        memory.graph.add("Nadia", "knows", f"Friend{number}")
    for part in (graph(tools), graph(tools, name="Nadia")):
        assert len(part["names"]) == 50
        assert "there are more" in part["note"]
    nobody = tools.call("memory_graph", {"name": "Nobody"}).error
    assert nobody is not None
    assert "Nobody" in nobody["message"]


def test_the_graphs_of_several_users_are_told_apart(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    for user, city in (("ann", "Oslo"), ("ben", "Rome")):
        memory.session({"user_id": user}).graph.add("I", "live in", city)
    names = [each["name"] for each in data(tools, "memory_graph")["names"]]
    assert names == ["ann", "Oslo", "ben", "Rome"]
    edges = graph(tools, name="USER_ID")["relationships"]
    assert [(each["source"], each["target"]) for each in edges] == [
        ("ann", "Oslo"),
        ("ben", "Rome"),
    ]
    assert [each["name"] for each in graph(tools, name="ben")["names"]] == ["Rome"]
    assert [each["name"] for each in graph(tools, name="Oslo")["names"]] == ["ann"]
    assert [each["name"] for each in graph(tools, name="Oslo", to="ann")["names"]] == [
        "Oslo",
        "ann",
    ]


def test_what_can_be_done_about_a_part_is_told_by_the_tools_names(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    told(tools, "I keep bees and geese with Ivo.")
    told(tools, "I no longer keep geese.")
    (review,) = memory.reviews()
    for cause in ("only a part", "has changed since"):
        message = error(tools, "memory_resolve", review_id=1, still_true=False)["message"]
        assert cause in message
        assert message.endswith(
            ": memory_update or memory_forget it, or call this with still_true: true"
        )
        memory.update(review.memory_id, content="I keep bees, and had geese with Ivo.")
    data(tools, "memory_resolve", review_id=1, still_true=True)
    assert memory.reviews() == []


def test_that_something_ended_which_was_not_known_is_no_problem(
    memory: AgentMemory,
) -> None:
    for tools in (MemoryTools(memory), MemoryTools(memory.session({"user_id": "ann"}))):
        told(tools, "I moved to Paris last week.")
        assert "problems" not in told(tools, "I no longer live in Paris, I moved to Rome.")


def test_unknown_memories_are_told_with_where_the_ids_are(tools: MemoryTools) -> None:
    for name in ("memory_get", "memory_promote", "memory_forget"):
        found = error(tools, name, memory_id="mem-unknown")
        assert found["code"] == "MEMORY_NOT_FOUND"
        assert "mem-unknown" in found["message"]
        assert "memory_search" in found["message"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("memory_store", {}, "content: is required"),
        ("memory_store", {"content": ""}, "content"),
        ("memory_store", {"content": "x" * 10_001}, "exceeds 10000"),
        ("memory_store", {"content": "x", "category": "mood"}, "'mood' is not a category"),
        ("memory_store", {"content": "x", "tags": ["t"] * 3, "colour": 1}, "colour"),
        ("memory_store", {"content": 5}, "content"),
        ("memory_search", {"query": ""}, "query"),
        ("memory_search", {"query": " \n"}, "query"),
        ("memory_search", {"query": "x", "limit": 0}, "limit"),
        ("memory_search", {"query": "x", "limit": "many"}, "limit"),
        ("memory_search", {"query": "x", "since": "soon"}, "since"),
        ("memory_search", {"query": "x", "filters": {"color": "red"}}, "color"),
        ("memory_list_recent", {"limit": 1.5}, "limit"),
        ("memory_update", {"memory_id": ""}, "memory_id"),
        ("memory_sing", {}, "the tools are memory_store"),
    ],
    ids=range(15),
)
def test_wrong_arguments_are_told(
    memory: AgentMemory, tools: MemoryTools, name: str, arguments: dict[str, Any], said: str
) -> None:
    found = error(tools, name, **arguments)
    assert found["code"] in ("VALIDATION_ERROR", "UNKNOWN_TOOL")
    assert said in found["message"]
    assert memory.count() == 0


def test_a_refusal_says_what_the_tools_can_do_and_not_how_an_owner_lifts_it(
    memory: AgentMemory, tools: MemoryTools
) -> None:
    known = memory.store("Standup is at nine")
    memory.reject("quince", reason="wrong fruit")
    limits = {"learning": {"max_memories": 1, "enforcement": "hard"}}
    memory.configure(on_duplicate="refuse", on_secret="refuse", retention={"limits": limits})
    told = {
        "Standup is at nine": f"as {known}: memory_update changes that one",
        "The key is AKIA" + "ABCDEFGHIJKLMNOP": "a secret (AWS access key): leave that out",
        "Quince is good": "does not want it back",
        "Lunch is at noon": "memory_forget makes room",
        "": "cannot be empty",
    }
    for content, advice in told.items():
        message = error(tools, "memory_store", content=content)["message"]
        assert advice in message
        assert re.search("agent-memory|on_|--lift|configure|quince", message) is None
    assert memory.count() == 1


@pytest.mark.parametrize("in_session", [False, True])
def test_a_conversations_secret_is_refused_without_the_owners_setting(
    memory: AgentMemory, tools: MemoryTools, in_session: bool
) -> None:
    memory.configure(on_secret="refuse")
    if in_session:
        tools = MemoryTools(memory.session({"user_id": "u"}))
    talk = [{"role": "user", "content": "I live in Oslo. My key is AKIA" + "ABCDEFGHIJKLMNOP."}]
    told = data(tools, "memory_add", messages=talk)
    assert [change["memory"] for change in told["changes"]] == ["I live in Oslo."]
    (problem,) = told["problems"]
    assert "a secret (AWS access key): leave that out" in problem
    assert "on_secret" not in problem
    assert "warning" not in told


@pytest.mark.parametrize(
    ("setting", "says"),
    [("warn", "stored as it is: tell the user"), ("mask", "masked"), ("keep", "")],
)
def test_a_model_is_told_what_became_of_a_secret(
    memory: AgentMemory,
    tools: MemoryTools,
    caplog: pytest.LogCaptureFixture,
    setting: str,
    says: str,
) -> None:
    memory.configure(on_secret=setting)
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    stored = data(tools, "memory_store", content=f"The bucket's key is {key}")
    known = memory.store("Standup is at nine")
    changed = data(tools, "memory_update", memory_id=known, content=f"The other key is {key}")
    talk = [{"role": "user", "content": f"I live in Oslo. My key is {key}."}]
    learned = data(tools, "memory_add", messages=talk)
    for told in (stored, changed, learned):
        assert (
            (says in told["warning"] and key not in told["warning"])
            if says
            else ("warning" not in told)
        )
    logged = caplog.text.count("AWS access key")
    assert logged == (3 if says else 0)
    assert "warning" not in data(tools, "memory_store", content="Lunch is at noon")
    assert "warning" not in data(tools, "memory_add", messages=talk), "it is known"
    assert (memory.secrets() == []) is (setting == "mask")


@pytest.mark.parametrize("wrong", [5, b"{", ["content"], "[]", "null"])
def test_arguments_that_are_no_object_are_told_so(tools: MemoryTools, wrong: Any) -> None:
    failed = tools.call("memory_store", wrong).error
    assert failed is not None
    assert failed["code"] == "VALIDATION_ERROR"
    assert failed["message"] == "arguments: must be a JSON object"


def test_a_name_that_is_nested_thousands_deep_is_no_tool(tools: MemoryTools) -> None:
    deep: Any = "memory_store"
    for _ in range(100_000):
        deep = [deep]
    result = tools.call(deep, {"content": "x"})
    assert result.error is not None
    assert result.error["code"] == "UNKNOWN_TOOL"
    assert "unknown tool a list" in result.error["message"]
    refused = tools.call("memory_store", {"content": deep}).error
    assert refused is not None
    assert refused["code"] == "VALIDATION_ERROR"


def test_a_secret_in_a_refused_call_is_not_quoted(tools: MemoryTools) -> None:
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    found = error(tools, "memory_store", content=[key], tags={key: key})
    assert key not in found["message"]


def test_arguments_may_be_the_text_of_json(tools: MemoryTools) -> None:
    result = tools.call("memory_store", '{"content": "Prefer tea"}')
    assert result.success
    assert tools.call("memory_list_recent", "").success
    for wrong in ("nonsense", "[1]", '"text"', "[" * 100_000):
        failed = tools.call("memory_store", wrong)
        assert failed.error is not None
        assert failed.error["code"] == "VALIDATION_ERROR"


def test_a_memory_that_cannot_be_opened_is_a_result(root: Path) -> None:
    unnamed = MemoryTools(LazyMemory(root=root))
    found = error(unnamed, "memory_search", query="x")
    assert found["code"] == "INVALID_SESSION"
    assert "agent_identity" in found["message"]
    (root / "bob").mkdir(parents=True)
    (root / "bob" / "memories.db").write_bytes(b"not a database, and long enough to be seen" * 9)
    lazy = LazyMemory("bob", root=root)
    assert "memories.db" in error(MemoryTools(lazy), "memory_search", query="x")["message"]
    (root / "bob" / "memories.db").unlink()
    assert data(MemoryTools(lazy), "memory_store", content="Prefer tea")["memory_id"]
    lazy.close()


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("memory_store", {"content": "Lunch is at noon"}),
    ("memory_update", {"memory_id": "tea", "content": "Prefer coffee"}),
    ("memory_promote", {"memory_id": "tea"}),
    ("memory_forget", {"memory_id": "tea"}),
    ("memory_add", {"messages": [{"role": "user", "content": "I live in Oslo."}]}),
]


@pytest.mark.parametrize(("name", "arguments"), CHANGES)
def test_a_memory_that_can_only_be_read_says_whose_that_is_to_change(
    root: Path, name: str, arguments: dict[str, Any]
) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store("Prefer tea", id="tea")
    with AgentMemory("bob", root=root, embedder=None, read_only=True) as memory:
        message = error(MemoryTools(memory), name, **arguments)["message"]
    assert "can only be read here" in message
    assert "only the user can" in message
    assert "read_only" not in message


@pytest.mark.parametrize("option", [{"read_only": True}, {"create": False}])
def test_a_memory_that_is_missing_says_who_can_make_one(root: Path, option: dict[str, Any]) -> None:
    tools = MemoryTools(LazyMemory("bob", root=root, **option))
    for name, arguments in [*CHANGES, ("memory_search", {"query": "tea"})]:
        told = error(tools, name, **arguments)
        assert told["code"] == "AGENT_NOT_FOUND"
        assert told["message"].startswith("there is no memory here")
        assert "only the user can" in told["message"]


def test_a_session_that_may_only_write_can_store(memory: AgentMemory) -> None:
    permissions = {"read": False, "write": True, "delete": False}
    tools = MemoryTools(memory.session({"user_id": "ann", "permissions": permissions}))
    stored = data(tools, "memory_store", content="I live in Oslo")
    assert stored.keys() == {"memory_id", "backend", "embedding_cost"}
    assert data(tools, "memory_store", content="I live in Oslo") == stored, "it is known"
    assert memory.count() == 1
    assert error(tools, "memory_get", memory_id=stored["memory_id"])["code"] == "PERMISSION_DENIED"


def test_a_fault_of_ours_is_a_result_too(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> AgentMemory:
        raise RuntimeError("secret details")

    found = error(MemoryTools(broken), "memory_list_recent")
    assert found == {"code": "INTERNAL_ERROR", "message": "memory_list_recent failed: RuntimeError"}
    assert "memory_list_recent failed" in caplog.text


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip
FIELDS = st.sampled_from(
    "content category tags metadata query limit since filters memory_id start end".split()
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(NAMES), arguments=st.dictionaries(FIELDS, ANYTHING, max_size=4))
def test_whatever_a_model_sends_is_answered(
    tools: MemoryTools, name: str, arguments: dict[str, Any]
) -> None:
    result = tools.call(name, arguments)
    json.dumps(result.to_dict()).encode()
    assert result.success is (result.error is None)
    if result.error is not None:
        assert result.error["code"] != "INTERNAL_ERROR"


def test_threads_may_call_at_once(root: Path) -> None:
    lazy = LazyMemory("bob", root=root)
    tools = MemoryTools(lazy)
    failures: list[object] = []

    def work(number: int) -> None:
        for turn in range(10):
            result = tools.call("memory_store", {"content": f"thread {number} says {turn}"})
            found = tools.call("memory_search", {"query": f"thread {number}"})
            failures.extend(it.error for it in (result, found) if not it.success)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert lazy().count() == 40
    lazy.close()


async def _called(tools: MemoryTools) -> tuple[bool, str]:
    result = await tools.acall("memory_store", {"content": "Prefer tea"})
    return result.success, str((result.data or {}).get("memory_id"))


def test_it_can_be_awaited(memory: AgentMemory, tools: MemoryTools) -> None:
    import asyncio

    success, memory_id = asyncio.run(_called(tools))
    assert success
    assert memory.get(memory_id) is not None


def test_embedding_cost_is_what_was_paid(root: Path, clock: Clock) -> None:
    class Priced:
        model = "priced"
        dimensions = 4
        cost_per_1k_tokens = 1.0

        def embed(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, float(len(text)), 0.5, math.pi] for text in texts]

    embedder: Any = Priced()
    with AgentMemory("bob", root=root, clock=clock, embedder=embedder) as memory:
        memory.store("first")
        memory.migrate(embedder=embedder)
        done = data(MemoryTools(memory), "memory_store", content="word " * 40)
        assert done["backend"] == "vector"
        assert done["embedding_cost"] == pytest.approx(0.05)


def test_nothing_is_opened_before_it_is_needed(root: Path) -> None:
    lazy = LazyMemory("bob", root=root)
    MemoryTools(lazy).definitions()
    assert not lazy.is_open
    assert not os.path.lexists(root)
    lazy.close()


@pytest.mark.parametrize("close", [True, False], ids=["closed", "open"])
def test_a_lazy_memory_is_opened_once(root: Path, close: bool) -> None:
    lazy = LazyMemory("bob", root=root, session_id="s-1")
    first = lazy()
    assert lazy() is first
    if close:
        lazy.close()
        lazy.close()
        assert lazy() is not first
    assert lazy().session_id == "s-1"
    lazy.close()


def test_what_a_wrong_review_is_answered_names_no_verb_that_is_no_tool(tools: MemoryTools) -> None:
    message = error(tools, "memory_resolve", review_id=99, still_true=True)["message"]
    assert "list the open ones" in message
    assert "`reviews`" not in message

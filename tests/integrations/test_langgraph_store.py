"""LangGraph's store over a memory: what BaseStore promises, and what our file adds to it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base")

from conftest import Clock
from interruptions import Interrupted
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from agent_memory import AgentMemory, RejectedContent, SecretFound, ValidationError
from agent_memory.integrations.langgraph import AgentMemoryStore
from agent_memory.integrations.langgraph.items import MAX_VALUE_LENGTH

USERS = ("users", "bob")
AWKWARD: dict[str, Any] = {
    "text": " two lines\r\n and blanks \t\n",
    "none": None,
    "truths": [True, False],
    "numbers": [0, -1, 1.0, 0.1, -0.0, 1e300, 2**63 - 1, -(2**63)],
    "empty": {"list": [], "mapping": {}, "text": ""},
    "nested": [[{"a": [{"b": {"c": [None, [1]]}}]}]],
    "": "an empty key",
    "a.b": "a key with a stop",
    "日本": "猫 🐈 e\u0301",
    "AND": {"$gt": "no operator here"},
}


@pytest.fixture
def store(memory: AgentMemory, clock: Clock) -> AgentMemoryStore:
    return AgentMemoryStore(memory, clock=clock)


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


# Values -------------------------------------------------------------------------------------


def test_a_value_comes_back_exactly_also_in_another_process_and_after_an_update(
    store: AgentMemoryStore, root: Path
) -> None:
    store.put(USERS, "first", {"old": 1})
    store.put(USERS, "first", AWKWARD)
    code = (
        "import json, sys\n"
        "from agent_memory.integrations.langgraph import AgentMemoryStore\n"
        "with AgentMemoryStore('bob', root=sys.argv[1]) as store:\n"
        "    print(json.dumps(store.get(('users', 'bob'), 'first').value))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True
    )
    for value in (store.get(USERS, "first").value, json.loads(done.stdout)):  # type: ignore[union-attr]
        assert json.dumps(value) == json.dumps(AWKWARD)


def test_a_tuple_comes_back_as_a_list(store: AgentMemoryStore) -> None:
    store.put(USERS, "k", {"pair": (1, 2)})
    assert store.get(USERS, "k").value == {"pair": [1, 2]}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "value",
    [{}, {"a": None}, {"a": "  "}, {"a": []}, {"a": "\u200b"}],
    ids=["empty", "none", "blank", "empty list", "invisible"],
)
def test_a_value_without_words_is_kept_and_found_by_its_name(
    store: AgentMemoryStore, value: dict[str, Any]
) -> None:
    store.put(("users", "zebra"), "k", value)
    assert store.get(("users", "zebra"), "k").value == value  # type: ignore[union-attr]
    assert keys(store.search(("users",))) == ["k"]


def test_what_is_longer_than_a_content_is_kept_whole_and_found_by_a_word_at_its_end(
    store: AgentMemoryStore,
) -> None:
    value = {"text": "many words " * 5_000 + "and a xylophone"}
    store.put(USERS, "long", value)
    store.put(USERS, "other", {"text": "many other words"})
    assert store.get(USERS, "long").value == value  # type: ignore[union-attr]
    assert keys(store.search(USERS, query="xylophone")) == ["long"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"n": float("nan")}, "nan"),
        ({"n": 2**63}, "64 bits"),
        ({"t": "a\x00b"}, "NUL"),
        ({"t": "\ud800"}, "surrogate"),
        ({1: "a"}, "int"),
        ({"o": object()}, "object"),
        ({"t": "x" * MAX_VALUE_LENGTH}, "1,000,008 characters"),
    ],
    ids=["nan", "big integer", "NUL", "surrogate", "key", "object", "too long"],
)
def test_a_value_that_cannot_be_kept_is_refused_by_name_and_loses_nothing(
    store: AgentMemoryStore, value: dict[Any, Any], said: str
) -> None:
    store.put(USERS, "the-key", {"a": 1})
    with pytest.raises(ValidationError, match="'the-key'") as raised:
        store.batch([PutOp(USERS, "new", {"b": 2}), PutOp(USERS, "the-key", value)])
    assert said in str(raised.value)
    assert store.get(USERS, "the-key").value == {"a": 1}  # type: ignore[union-attr]
    assert store.get(USERS, "new") is None


def test_the_longest_value_and_the_deepest_are_kept(store: AgentMemoryStore) -> None:
    long = {"t": "x" * (MAX_VALUE_LENGTH - len('{"t":""}'))}
    deep: Any = 1
    for _ in range(18):
        deep = {"d": deep}
    store.put(USERS, "long", long)
    store.put(USERS, "deep", deep)
    assert store.get(USERS, "long").value == long  # type: ignore[union-attr]
    assert store.get(USERS, "deep").value == deep  # type: ignore[union-attr]
    with pytest.raises(ValidationError, match="deep"):
        store.put(USERS, "deeper", {"d": deep})


# Items are memories -------------------------------------------------------------------------


def test_an_item_is_a_memory_with_a_history_that_can_be_undone(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    store.put(USERS, "likes", {"memory": "Bob prefers green tea"})
    (hit,) = memory.search("which tea?")
    assert hit.memory.content == "Bob prefers green tea"

    store.put(USERS, "likes", {"memory": "Bob prefers coffee"})
    store.delete(USERS, "likes")
    assert store.get(USERS, "likes") is None
    memory.undo()
    assert store.get(USERS, "likes").value == {"memory": "Bob prefers coffee"}  # type: ignore[union-attr]
    events = [change.event.value for change in memory.history(hit.memory.id)]
    assert events == ["ADD", "DELETE", "UPDATE", "ADD"]


def test_an_item_comes_back_from_an_export(
    store: AgentMemoryStore, memory: AgentMemory, tmp_path: Path
) -> None:
    store.put(USERS, "k", AWKWARD)
    memory.export(tmp_path / "all.yaml")
    with AgentMemoryStore("other", root=tmp_path) as other:
        assert isinstance(other.memory, AgentMemory)
        other.memory.import_(tmp_path / "all.yaml")
        assert other.get(USERS, "k").value == AWKWARD  # type: ignore[union-attr]


def test_other_memories_are_no_items_and_are_left_alone(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    stored = [
        memory.store("Bob likes tea"),
        memory.store("tea of Bob", metadata={"langgraph_namespace": "users.bob."}),
        memory.store("Bob: tea", metadata={"langgraph_namespace": "users.", "langgraph_item": {}}),
        memory.store(
            "tea",
            metadata={
                "langgraph_namespace": "users.bob.",
                "langgraph_item": {"key": "k", "value": {}, "created_at": "2026-01-01"},
            },
        ),
    ]
    before = [memory.get(memory_id) for memory_id in stored]
    store.put(USERS, "k", {"text": "Bob drinks tea"})
    assert keys(store.search((), query="Bob tea")) == ["k"]
    assert keys(store.search(())) == ["k"]
    assert store.list_namespaces() == [USERS]
    store.delete(USERS, "k")
    assert store.search(()) == []
    contents = [None if it is None else (it.content, it.metadata) for it in before]
    after = [memory.get(memory_id) for memory_id in stored]
    assert [None if it is None else (it.content, it.metadata) for it in after] == contents


def test_what_somebody_else_put_under_an_items_id_is_not_overwritten(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    store.put(USERS, "k", {"a": 1})
    (there,) = memory.list_recent()
    memory.update(there.id, content="my own words", metadata={})
    assert store.get(USERS, "k") is None
    with pytest.raises(ValidationError, match=there.id):
        store.put(USERS, "k", {"a": 2})
    assert memory.get(there.id).content == "my own words"  # type: ignore[union-attr]


def test_what_else_the_metadata_of_an_item_has_stays(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    store.put(USERS, "k", {"a": 1})
    (there,) = memory.list_recent()
    memory.update(there.id, metadata={**there.metadata, "source": "wiki"})
    store.put(USERS, "k", {"a": 2})
    assert memory.get(there.id).metadata["source"] == "wiki"  # type: ignore[union-attr]


def test_an_archived_item_is_found_by_its_key_alone_until_it_is_put_again(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    store.put(USERS, "k", {"a": "tea"})
    memory.archive([it.id for it in memory.list_recent()])
    assert store.get(USERS, "k") is not None
    assert store.search(()) == store.search((), query="tea") == store.list_namespaces() == []
    store.put(USERS, "k", {"a": "tea"})
    assert keys(store.search((), query="tea")) == ["k"]


def test_the_files_rules_hold_for_items_too(store: AgentMemoryStore, memory: AgentMemory) -> None:
    memory.configure(on_secret="refuse", on_duplicate="refuse")
    memory.reject("4711")
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    with pytest.raises(SecretFound):
        store.put(USERS, "k", {"config": {"key": key}})
    with pytest.raises(RejectedContent):
        store.put(USERS, "k", {"code": "4711"})
    store.put(USERS, "one", {"text": "the same"})
    store.put(USERS, "two", {"text": "the same"})  # another item, whatever it says
    assert sorted(keys(store.search(USERS))) == ["one", "two"]


def test_the_times_are_those_of_the_first_put_and_the_last(
    store: AgentMemoryStore, clock: Clock
) -> None:
    store.put(USERS, "k", {"a": 1})
    first = clock.now
    clock.forward(days=2)
    store.put(USERS, "k", {"a": 2})
    item = store.get(USERS, "k")
    assert item is not None
    assert (item.created_at, item.updated_at) == (first, first + timedelta(days=2))


def test_the_memory_that_a_store_opens_has_its_clock(root: Path, clock: Clock) -> None:
    with AgentMemoryStore("bob", root=root, clock=clock) as store:
        store.put(USERS, "k", {"a": 1})
        item = store.get(USERS, "k")
    assert item is not None
    assert item.updated_at == clock.now


# Batches ------------------------------------------------------------------------------------


def test_reads_see_the_state_before_the_batch_and_the_last_put_counts(
    store: AgentMemoryStore,
) -> None:
    store.put(USERS, "old", {"n": 0})
    results = store.batch(
        [
            PutOp(USERS, "k", {"n": 1}),
            GetOp(USERS, "k"),
            PutOp(USERS, "old", None),
            SearchOp(USERS),
            PutOp(USERS, "k", {"n": 2}),
            ListNamespacesOp(),
        ]
    )
    assert results[1] is None
    assert keys(results[3]) == ["old"]  # type: ignore[arg-type]
    assert results[5] == [USERS]
    assert [(it.key, it.value) for it in store.search(USERS)] == [("k", {"n": 2})]


def test_new_items_of_a_batch_are_stored_all_or_none_and_undone_as_one(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    memory.reject("forbidden word")
    good = [PutOp(USERS, f"k{n}", {"n": n}) for n in range(20)]
    with pytest.raises(RejectedContent):
        store.batch([*good, PutOp(USERS, "bad", {"text": "a forbidden word"})])
    assert memory.count() == 0
    store.batch(good)
    assert memory.count() == 20
    memory.undo()
    assert memory.count() == 0


def test_the_deletions_of_a_batch_are_undone_as_one(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    store.batch([PutOp(USERS, f"k{n}", {"n": n}) for n in range(5)])
    store.batch([PutOp(USERS, f"k{n}", None) for n in range(9)])
    assert memory.count() == 0
    memory.undo()
    assert len(store.search(USERS)) == 5


def test_a_mixed_batch_writes_nothing_when_one_of_its_values_holds_a_secret_that_is_refused(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    store.batch([PutOp(USERS, f"k{n}", {"n": n}) for n in range(3)])
    memory.configure(on_secret="refuse")
    secret = {"text": "AKIA" + "ABCDEFGHIJKLMNOP"}
    puts = [PutOp(USERS, f"k{n}", {"n": -n}) for n in range(3)]
    with pytest.raises(SecretFound):
        store.batch([*puts, PutOp(USERS, "k2", None), PutOp(USERS, "new", secret)])
    assert {it.key: it.value["n"] for it in store.search(USERS)} == {"k0": 0, "k1": 1, "k2": 2}


def test_an_operation_that_is_wrong_keeps_its_whole_batch_from_being_done(
    store: AgentMemoryStore,
) -> None:
    put = PutOp(USERS, "k", {"n": 1})
    wrong: list[tuple[Any, type[Exception]]] = [
        (GetOp(("users.bob",), "k"), InvalidNamespaceError),
        (PutOp(USERS, "t", {"n": 1}, ttl=5.0), NotImplementedError),
        (SearchOp(USERS, limit=-1), ValidationError),
        (ListNamespacesOp(limit=-1), ValidationError),
        (SearchOp(USERS, filter={"n": {"$in": [1]}}), ValidationError),
        (("get", "k"), ValidationError),
    ]
    for op, error in wrong:
        with pytest.raises(error):
            store.batch([put, op])
    assert store.search(()) == []


# Searching ----------------------------------------------------------------------------------


@pytest.fixture
def shelf(store: AgentMemoryStore, clock: Clock) -> AgentMemoryStore:
    items: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
        (("docs",), "apple", {"text": "red apple", "colour": "red", "score": 4.5}),
        (("docs",), "car", {"text": "red car", "colour": "red", "score": 3}),
        (("docs", "new"), "pear", {"text": "green apple", "colour": "green", "score": 4.0}),
        (("docs2",), "bike", {"text": "blue bike", "colour": None, "score": "high"}),
        (("Docs",), "boat", {"text": "an apple in a boat", "on": True, "a": {"b.c": 1}}),
    ]
    for item in items:
        clock.forward(minutes=1)
        store.put(*item)
    return store


def test_without_a_query_items_come_newest_first_and_page_by_page(
    shelf: AgentMemoryStore, clock: Clock
) -> None:
    for none in (None, "", " \n"):
        assert keys(shelf.search((), query=none)) == ["boat", "bike", "pear", "car", "apple"]
    assert keys(shelf.search((), limit=2, offset=1)) == ["bike", "pear"]
    assert keys(shelf.search((), limit=0)) == []
    assert keys(shelf.search((), offset=9)) == []
    clock.forward(seconds=1)
    shelf.put(("docs",), "apple", {"text": "changed"})
    assert keys(shelf.search((), limit=1)) == ["apple"]


def test_a_prefix_is_one_of_whole_labels_in_their_case(shelf: AgentMemoryStore) -> None:
    assert keys(shelf.search(("docs",))) == ["pear", "car", "apple"]
    assert keys(shelf.search(("docs",), query="apple boat bike")) == ["apple", "pear"]
    assert keys(shelf.search(("doc",))) == []


def test_a_query_is_narrowed_down_before_its_limit(store: AgentMemoryStore) -> None:
    for number in range(150):
        store.put(("much",), f"k{number}", {"text": "tea tea tea", "n": number})
    store.put(("much",), "wanted", {"text": "a tea that is talked of much longer", "n": -1})
    store.put(("little",), "other", {"text": "one cup of tea, and milk and so on"})
    assert keys(store.search(("little",), query="tea")) == ["other"]
    assert keys(store.search((), query="tea", filter={"n": {"$lt": 0}})) == ["wanted"]


@pytest.mark.parametrize(
    "wanted",
    [{"user.id": -1}, {"user": {"id": {"$lt": 0}}}, {"tags": ["x"]}, {"gone": None}],
    ids=["path", "nested", "list", "none"],
)
def test_a_filter_that_the_file_cannot_narrow_down_by_hides_no_answer_to_a_query(
    store: AgentMemoryStore, wanted: dict[str, Any]
) -> None:
    store.batch(
        [
            PutOp(("much",), f"k{n}", {"text": "tea tea", "user": {"id": n}, "tags": [], "gone": 1})
            for n in range(130)
        ]
    )
    value = {"text": "a tea that is talked of much longer", "user": {"id": -1}, "tags": ["x"]}
    store.put(("much",), "wanted", value)
    assert keys(store.search(("much",), query="tea", filter=wanted)) == ["wanted"]
    assert keys(store.search(("much",), query="coffee", filter=wanted)) == []


def test_nor_where_many_namespaces_have_the_same_keys(store: AgentMemoryStore) -> None:
    def put(user: str, key: str, text: str, number: int) -> PutOp:
        return PutOp(("users", user), key, {"text": text, "user": {"id": number}})

    users = [f"u{n}" for n in range(130)]
    store.batch([put(user, "profile", f"tea tea {user}", 0) for user in users])
    store.batch([put(user, "other", f"the cat of {user}", 1) for user in users])
    store.put(("users", "zz"), "profile", {"text": "a chair", "user": {"id": 1}})
    store.put(("users", "u5"), "wanted", {"text": "a tea talked of at length", "user": {"id": 1}})
    found = store.search(("users",), query="tea", filter={"user.id": 1})
    assert [(item.namespace, item.key) for item in found] == [(("users", "u5"), "wanted")]


def test_a_query_finds_each_of_several_items_that_say_the_same(store: AgentMemoryStore) -> None:
    for number in range(7):
        store.put(("n", str(number)), "k", {"text": "the kettle is on"})
    found = store.search(("n",), query="kettle")
    assert sorted(item.namespace[1] for item in found) == list("0123456")
    assert all(item.score is not None and item.score > 0 for item in found)


def test_what_answers_a_query_comes_best_first_and_the_rest_where_it_is_asked_for(
    shelf: AgentMemoryStore, memory: AgentMemory, clock: Clock
) -> None:
    assert keys(shelf.search((), query="blue bike")) == ["bike"]
    filling = AgentMemoryStore(memory, fill=True, clock=clock)
    found = filling.search((), query="blue bike")
    assert keys(found) == ["bike", "boat", "pear", "car", "apple"]
    assert [item.score is None for item in found] == [False, True, True, True, True]
    assert keys(filling.search((), query="blue bike", limit=2, offset=1)) == ["boat", "pear"]
    assert keys(filling.search(("docs",), query="bike", filter={"colour": "red"}, limit=9)) == [
        "car",
        "apple",
    ]


def test_index_says_by_what_an_item_is_found(store: AgentMemoryStore, memory: AgentMemory) -> None:
    value = {"title": "zebra", "body": {"text": "giraffe"}, "tags": ["okapi", "lion"]}
    store.put(USERS, "all", value)
    store.put(USERS, "none", value, index=False)
    store.put(USERS, "some", value, index=["body.text", "tags[*]"])
    assert set(keys(store.search(USERS, query="zebra"))) == {"all"}
    assert set(keys(store.search(USERS, query="giraffe lion"))) == {"all", "some"}
    titles = AgentMemoryStore(memory, fields=["title"])
    titles.put(USERS, "title", value)
    assert set(keys(titles.search(USERS, query="zebra"))) == {"all", "title"}
    assert set(keys(titles.search(USERS, query="okapi"))) == {"all", "some"}
    assert len(store.search(USERS)) == 4


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"colour": "red"}, ["car", "apple"]),
        ({"colour": {"$ne": "red"}}, ["boat", "bike", "pear"]),
        ({"colour": None}, ["boat", "bike"]),
        ({"score": {"$gte": 4}}, ["pear", "apple"]),
        ({"score": {"$gt": 3, "$lt": 4.5}}, ["pear"]),
        ({"score": {"$lte": float("inf")}}, ["pear", "car", "apple"]),
        ({"score": {"$lt": 10**100}}, ["pear", "car", "apple"]),
        ({"score": float("nan")}, []),
        ({"score": {"$gt": "hi"}}, ["bike"]),
        ({"score": 3.0, "colour": "red"}, ["car"]),
        ({"on": True}, ["boat"]),
        ({"on": 1}, []),
        ({"a": {"b.c": 1}}, ["boat"]),
        ({"a": {"b.c": 2}}, []),
        ({"text": "x' OR '1'='1"}, []),
        ({"') OR 1=1 --": "x"}, []),
        ({"\x00": "x"}, []),
        ({"text": "\ud800"}, []),
    ],
    ids=lambda it: ascii(it) if isinstance(it, dict) else "",
)
def test_a_filter_compares_like_with_like(
    shelf: AgentMemoryStore, wanted: dict[str, Any], found: list[str]
) -> None:
    assert keys(shelf.search((), filter=wanted)) == found
    query = "red green blue apple car bike boat"
    assert sorted(keys(shelf.search((), query=query, filter=wanted))) == sorted(found)


def test_a_filter_reaches_into_nested_values_and_lists(store: AgentMemoryStore) -> None:
    store.put(
        USERS, "k", {"user": {"access-level": "high", "ids": [1, 2], "on": True}, "user.id": 7}
    )
    fitting: list[dict[str, Any]] = [
        {"user.access-level": "high"},
        {"user": {"access-level": "high"}},
        {"user": {"ids": [1, 2]}},
        {"user.ids": {"$eq": (1, 2)}},
        {"user.id": 7},
    ]
    for wanted in fitting:
        assert keys(store.search(USERS, filter=wanted)) == ["k"], wanted
    others: list[dict[str, Any]] = [
        {"user.access-level": "low"},
        {"user": {"ids": [2, 1]}},
        {"user.ids": [1]},
        {"user": {"on": 1}},
        {"user.on": {"$eq": 1}},
        {"user.ids": {"$eq": [True, 2]}},
    ]
    for wanted in others:
        assert keys(store.search(USERS, filter=wanted)) == [], wanted


def test_a_filter_sees_all_items_and_not_the_newest_alone(store: AgentMemoryStore) -> None:
    store.batch([PutOp(USERS, f"k{n}", {"n": n, "d.e": n % 2}) for n in range(300)])
    assert [it.value["n"] for it in store.search(USERS, filter={"n": {"$lt": 3}})] == [2, 1, 0]
    assert len(store.search(USERS, filter={"d.e": 1}, limit=1_000)) == 150
    pages = [
        keys(store.search(USERS, filter={"d.e": 1}, limit=40, offset=offset))
        for offset in range(0, 160, 40)
    ]
    assert [key for page in pages for key in page] == keys(
        store.search(USERS, filter={"d.e": 1}, limit=1_000)
    )


def test_a_search_is_counted_as_an_access_and_a_get_is_not(
    store: AgentMemoryStore, memory: AgentMemory
) -> None:
    store.put(USERS, "k", {"text": "green tea"})
    store.get(USERS, "k")
    assert len(store.search(USERS, query="tea")) == 1
    memory.info()
    assert [it.access_count for it in memory.list_recent()] == [1]


# Namespaces ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "f"), ("b", "*"), ("b", "x")]),
        ({"prefix": ("a", "b")}, [("a", "b", "c"), ("a", "b", "d", "e")]),
        ({"prefix": ("a", "*", "c")}, [("a", "b", "c")]),
        ({"prefix": ("*", "f")}, [("a", "f")]),
        ({"suffix": ("f",)}, [("a", "f")]),
        ({"suffix": ("*", "e")}, [("a", "b", "d", "e")]),
        ({"prefix": ("a",), "max_depth": 2}, [("a", "b"), ("a", "f")]),
        ({"max_depth": 1}, [("a",), ("b",)]),
        ({"limit": 2, "offset": 1}, [("a", "b", "d", "e"), ("a", "f")]),
        ({"prefix": ("c",)}, []),
    ],
    ids=lambda it: ascii(it) if isinstance(it, dict) else "",
)
def test_namespaces_are_listed(
    store: AgentMemoryStore, asked: dict[str, Any], found: list[tuple[str, ...]]
) -> None:
    for namespace in [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "f"), ("b", "x"), ("b", "*")]:
        store.put(namespace, "k", {"a": 1})
        store.put(namespace, "l", {"a": 1})
    store.put(("gone",), "k", {"a": 1})
    store.delete(("gone",), "k")
    assert store.list_namespaces(**asked) == found


def test_a_match_that_there_is_not_is_refused(store: AgentMemoryStore) -> None:
    store.put(("a",), "k", {})
    with pytest.raises(ValidationError, match="prefix or suffix"):
        store.batch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])  # type: ignore[arg-type]


@pytest.mark.parametrize("label", ["a_%", "user*", "a/b", "a b", "x\n", "é", "'; --", "*"])
def test_any_label_and_key_is_one_of_its_own(store: AgentMemoryStore, label: str) -> None:
    store.put((label,), label, {"text": "tea"})
    store.put((f"{label}x",), label, {"text": "tea"})
    store.put((label, label), label, {"text": "tea"})
    assert len(store.search((label,))) == len(store.search((label,), query="tea")) == 2
    assert store.get((label,), label) is not None
    store.delete((label,), label)
    assert [it.namespace for it in store.search((label,))] == [(label, label)]


# Async, threads, opening --------------------------------------------------------------------


def test_async_calls_leave_the_event_loop_free(store: AgentMemoryStore) -> None:
    loop_thread = threading.get_ident()
    seen: list[int] = []

    class Watched(AgentMemoryStore):
        def batch(self, ops: Any) -> Any:
            seen.append(threading.get_ident())
            return super().batch(ops)

    async def work() -> None:
        watched = Watched(store.memory)
        await asyncio.gather(*(watched.aput(USERS, f"k{n}", {"n": n}) for n in range(20)))
        assert len(await watched.asearch(USERS, limit=50)) == 20
        await watched.adelete(USERS, "k0")
        assert await watched.aget(USERS, "k0") is None
        assert await watched.alist_namespaces() == [USERS]

    asyncio.run(work())
    assert loop_thread not in seen


def test_threads_that_put_and_delete_one_item_do_not_fail_each_other(
    store: AgentMemoryStore,
) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(26):
                store.put(USERS, "shared", {"text": f"thread {number} turn {turn}"})
                if turn % 3 == 0:
                    store.delete(USERS, "shared")
        except Exception as error:  # noqa: BLE001 - whatever a thread fails with
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store.search(USERS)) == 1


def test_a_put_is_done_whatever_happens_to_its_item_meanwhile(store: AgentMemoryStore) -> None:
    assert isinstance(store.memory, AgentMemory)
    with Interrupted.open(store.memory.path) as interrupted:
        other = AgentMemoryStore(interrupted)
        interrupted.before(lambda: store.put(USERS, "k", {"text": "theirs"}))
        other.put(USERS, "k", {"text": "ours"})
        assert store.get(USERS, "k").value == {"text": "ours"}  # type: ignore[union-attr]
        interrupted.before(lambda: store.delete(USERS, "k"))
        other.put(USERS, "k", {"text": "again"})
        assert store.get(USERS, "k").value == {"text": "again"}  # type: ignore[union-attr]
        interrupted.before(lambda: store.delete(USERS, "k"))
        other.delete(USERS, "k")
        assert store.search(()) == []


def test_a_store_closes_the_memory_that_it_opened_and_no_other(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        with AgentMemoryStore(memory) as store:
            store.put(USERS, "k", {"a": 1})
        assert memory.count() == 1
    with AgentMemoryStore("bob", root=root) as store:
        assert store.get(USERS, "k") is not None
    with pytest.raises(Exception, match="closed"):
        store.get(USERS, "k")


def test_a_missing_package_is_answered_with_what_to_install() -> None:
    code = "import sys; sys.modules['langgraph'] = None; import agent_memory.integrations.langgraph"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ConfigurationError" in done.stderr
    assert "pip install 'agent-memory[langgraph]'" in done.stderr


def test_the_score_is_the_similarity_whatever_age_and_use_say(
    store: AgentMemoryStore, memory: AgentMemory, clock: Clock
) -> None:
    store.put(("n",), "old", {"text": "the red kettle whistles in the kitchen"})
    clock.forward(days=180)
    for number in range(30):
        store.put(("n",), f"new{number}", {"text": f"a red bicycle, number {number}, is outside"})
    for _ in range(20):  # use counts in the search, and must not count in the score
        assert memory.search("bicycle number 7")
    query = "red kettle whistles kitchen"
    items = store.search(("n",), query=query, limit=40)
    scores = [item.score for item in items if item.score is not None]
    assert items[0].key == "old"
    assert len(scores) == len(items) > 5
    assert scores == sorted(scores, reverse=True)
    assert 0.9 < scores[0] <= 1
    assert all(0 < score <= 1 for score in scores)
    hits = {hit.memory.metadata["langgraph_item"]["key"]: hit for hit in memory.search(query, 40)}
    assert all(item.score == hits[item.key].similarity for item in items if item.key in hits)
    pages = [store.search(("n",), query=query, limit=3, offset=start) for start in range(0, 12, 3)]
    assert keys([item for page in pages for item in page]) == keys(items[:12])


def test_an_erased_item_comes_back_by_a_put_alone(
    store: AgentMemoryStore, memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    value = {"text": "the Zanzibarian parrot"}
    store.put(USERS, "bird", value)
    memory.export(tmp_path / "copy")
    memory.erase(item.id for item in memory.list_recent())
    assert memory.import_(tmp_path / "copy").erased == 1
    assert store.get(USERS, "bird") is None
    assert store.search(USERS, query="parrot") == store.search(USERS) == []
    clock.now -= timedelta(hours=1)
    with pytest.raises(ValidationError, match="was erased"):
        store.put(USERS, "bird", value)  # of before the erasure
    clock.forward(hours=2)
    store.put(USERS, "bird", value)
    item = store.get(USERS, "bird")
    assert item is not None
    assert item.value == value

"""Values that must not come back: what is one, which memories hold it, and that none gets in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock, Visitor, engine_of
from reads import stored

from agent_memory import AgentMemory, ValidationError
from agent_memory.errors import RejectedContent
from agent_memory.models.fields import to_json
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import TaskMetadata
from agent_memory.models.safety import Rejection
from agent_memory.services.policies.rejected_values import (
    holders,
    lift,
    refuse_rejected,
    refuse_rejected_row,
    reject,
)
from agent_memory.services.policies.rejection_match import (
    MAX_WORDS,
    find_rejected,
    hash_of,
    texts_of,
    words_of,
)
from agent_memory.storage.engine import Engine


@pytest.fixture
def engine(memory: AgentMemory) -> Engine:
    """Return the open file of the agent's memories."""
    opened: Engine = engine_of(memory)
    return opened


@pytest.fixture
def writing(engine: Engine) -> Iterator[Engine]:
    """Hold the transaction in which a verb would run."""
    with engine.write():
        yield engine


def refuse(engine: Engine, memory: Memory, **more: Any) -> None:
    refuse_rejected(engine, memory, engine.rejections.hashes_by_length(), **more)


def a_memory(content: str = "nothing of interest", **fields: Any) -> Memory:
    return Memory(
        agent_id="bob", content=content, category="note", created_by_session="session-1", **fields
    )


def plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, TaskMetadata) else value


def held_in(text: str, value: str) -> bool:
    words = words_of(value)
    return find_rejected([("content", text)], {len(words): {hash_of(words)}}) is not None


def found(engine: Engine, value: str) -> list[str]:
    with engine.read():
        return holders(engine, words_of(value))


# What is a value ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("555-1234", ["555", "1234"]),
        ("  The PIN:\tis\n4711!  ", ["the", "pin", "is", "4711"]),
        ("api_key=sk_live_9", ["api", "key", "sk", "live", "9"]),
        ("ＰＡＳＳ①", ["pass1"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("Cafe\u0301 CAFÉ", ["café", "café"]),
        ("Cafe\u034f\u0301", ["café"]),
        ("\u1f56", ["\u1f56"]),
        ("hun\u00adter\u200b2", ["hunter2"]),
        ("数据库 v2。好", ["数", "据", "库", "v2", "好"]),
        ("用SQLite库", ["用", "sqlite", "库"]),
        ("서울 가", ["서", "울", "가"]),
        ("กิน", ["ก", "ิ", "น"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("💥 *** 💥", ["💥", "***", "💥"]),
        ("❤\ufe0f", ["❤"]),
        ("❤", ["❤"]),
        ("", []),
        (" \t\u200b\n", []),
    ],
)
def test_the_words_of_a_text(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("555-1234", "call 555 1234 now"),
        ("555-1234", "call (555)1234"),
        ("555-1234", "555\n1234"),
        ("Hunter2", "the password is HUNTER2."),
        ("hunter2", "\uff48unter\uff12"),
        ("Ann Lee", "told ann-lee: no"),
        ("数据", "我们用数据库"),
        ("数据", "数 据"),
        ("ห้อง", "ในห้องนี้"),
        ("groß", "GROSS"),
        ("***", "the word *** stands here"),
        (":-) 💥", "well :-)\n💥 then"),
        ("a_b", "set a_b = 1"),
        ("a_b", "set A-B"),
        ("4711", "DOOR_CODE_4711"),
        ("blue fish", "a blue__fish_"),
        ("blue fish", "ein_bläu_blue_fish"),
        ("blue fish", "blue\uff3ffish"),
        ("blue fish", "blue\u200bfish"),
        ("bluefish", "blue\u200bfish"),
        ("___", "the line ___ here"),
    ],
)
def test_a_text_that_holds_a_value(value: str, text: str) -> None:
    assert held_in(text, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("hunter2", "hunter22"),
        ("hunter2", "xhunter2"),
        ("hunter2", "hunter 2"),
        ("555-1234", "555 0 1234"),
        ("555-1234", "1234 555"),
        ("555-1234", "555"),
        ("Ann Lee", "Ann and Lee"),
        ("数据", "数字据"),
        ("दिन", "दान"),
        ("กิน", "กัน"),
        ("café", "cafe"),
        ("***", "the word **** stands here"),
        (":-) 💥", ":-) then 💥"),
        ("***", "a*** b"),
    ],
)
def test_a_text_that_does_not_hold_a_value(value: str, text: str) -> None:
    assert not held_in(text, value)


@pytest.mark.parametrize("value", ["", "  ", "\u200b\u00ad", "x\ud800y", " ".join(["w"] * 1001)])
def test_what_is_no_value_is_refused_without_being_told(writing: Engine, value: str) -> None:
    with pytest.raises(ValidationError) as caught:
        reject(writing, value, now=NOW)
    assert caught.value.errors()[0]["loc"] == ("text",)
    assert value.strip() not in str(caught.value).split(": ", 1)[1] or not value.strip()
    assert writing.rejections.all() == []


@pytest.mark.parametrize("count", [1, 2, 50, MAX_WORDS])
def test_a_value_may_have_a_thousand_words(writing: Engine, count: int) -> None:
    value = " ".join(f"w{n}" for n in range(count))
    assert reject(writing, value, now=NOW).word_count == count
    with pytest.raises(RejectedContent):
        refuse(writing, a_memory(f"before {value} after"))
    refuse(writing, a_memory(f"before {value}x after"))


@pytest.mark.parametrize("value", ["api_key", "der_schlüssel"])
def test_what_was_rejected_before_underscores_parted_words_still_is(
    writing: Engine, value: str
) -> None:
    writing.rejections.add(hash_of([value]), 1, None, NOW)  # as files have it
    for text in (f"the {value.upper()} is here", f"{value}\u200bis", value.replace("_", "\uff3f")):
        with pytest.raises(RejectedContent):
            refuse(writing, a_memory(text))
    reject(writing, value, now=NOW)
    assert lift(writing, value)
    assert writing.rejections.all() == []
    refuse(writing, a_memory(f"the {value} is here"))


# The table ----------------------------------------------------------------------------------


def test_a_rejection_has_the_hash_and_never_the_value(root: Path, clock: Clock) -> None:
    words_hash = hash_of(["kestrel", "seven"])
    with AgentMemory("eve", root=root, clock=clock) as memory:
        engine = engine_of(memory)
        with engine.write():
            rejection = reject(engine, "Kestrel-Seven", "it leaked", now=NOW)
        assert engine.rejections.all() == [rejection]
        assert engine.rejections.find(words_hash) == rejection
        assert engine.rejections.find(hash_of(["kestrel"])) is None
        assert engine.rejections.hashes_by_length() == {2: {words_hash}}
    assert rejection == Rejection(
        rejection_id=1,
        words_hash=words_hash.hex(),
        word_count=2,
        reason="it leaked",
        rejected_at=NOW,
    )
    assert b"estrel" not in memory.path.read_bytes()
    assert words_hash in memory.path.read_bytes()


def test_the_hash_is_that_which_the_schema_documents(writing: Engine) -> None:
    # What `printf 'call 555 1234' | sha256sum` prints.
    documented = "c6ef05f9357944a77479261d38e4328cf23c7c9fcebc2e9db9ae393adc38a5bd"
    rejection = reject(writing, "CALL 555-1234", now=NOW)
    assert rejection.words_hash == documented


def test_a_value_is_rejected_once_however_it_is_written(writing: Engine) -> None:
    first = reject(writing, "555-1234", now=NOW)
    again = reject(writing, "555 1234!", "a phone number", now=NOW + timedelta(days=1))
    assert again == first.model_copy(update={"reason": "a phone number"})
    assert reject(writing, "(555) 1234", "another reason", now=NOW) == again
    assert writing.rejections.all() == [again]
    assert not writing.rejections.add(hash_of(["555", "1234"]), 2, None, NOW)


def test_a_value_is_lifted_by_its_text_or_its_number(writing: Engine) -> None:
    reject(writing, "555-1234", now=NOW)
    second = reject(writing, "2", now=NOW)
    third = reject(writing, "2 b", now=NOW)
    assert lift(writing, "555 / 1234")
    assert not lift(writing, "555 / 1234")
    assert lift(writing, 3)
    assert not lift(writing, third.rejection_id)
    assert writing.rejections.all() == [second]
    assert lift(writing, "2")  # a text is a value, and not a number of the list
    assert writing.rejections.hashes_by_length() == {}
    refuse(writing, a_memory("555-1234, 2 b"))


def test_the_number_of_a_rejection_is_never_used_again(writing: Engine) -> None:
    assert reject(writing, "one", now=NOW).rejection_id == 1
    assert lift(writing, 1)
    assert reject(writing, "two", now=NOW).rejection_id == 2


@pytest.mark.parametrize(
    "reason",
    ["", "   ", "x" * 501, "Kestrel-7 leaked", "the OTHER value", "a\x00b", "\ud800"],
    ids=ascii,
)
def test_a_reason_that_cannot_be_kept_is_refused(writing: Engine, reason: str) -> None:
    reject(writing, "other value", now=NOW)
    with pytest.raises(ValidationError) as caught:
        reject(writing, "kestrel 7", reason, now=NOW)
    assert caught.value.errors()[0]["loc"] == ("reason",)
    assert "estrel" not in f"{caught.value} {caught.value.errors()}"
    assert len(writing.rejections.all()) == 1


# Refusing a memory --------------------------------------------------------------------------

HOLDING: list[tuple[str, dict[str, Any]]] = [
    ("content", {"content": "call Kestrel-Seven now"}),
    ("tags[1]", {"tags": ["x", "kestrel-seven"]}),
    ("metadata.who", {"metadata": {"a": 1, "who": "KESTREL seven"}}),
    ("metadata.a.b[1].c", {"metadata": {"a": {"b": [0, {"c": "kestrel seven"}]}}}),
    ("metadata", {"metadata": {"kestrel seven": 1}}),
    ("metadata.a", {"metadata": {"a": {"Kestrel Seven!": None}}}),
    ("metadata", {"metadata": {"kestrel seven": {"x": "kestrel seven"}}}),
    ("metadata", {"metadata": {"kestrel": {"seven": "it is kestrel seven"}}}),
    ("metadata", {"metadata": {"x" * 90: "kestrel seven"}}),
    (
        "task_metadata.outcome",
        {"task_metadata": TaskMetadata(status="completed", outcome="Kestrel Seven did it")},
    ),
    (
        "task_metadata.blockers[1]",
        {"task_metadata": TaskMetadata(status="blocked", blockers=["x", "kestrel_ kestrel seven"])},
    ),
]


@pytest.mark.parametrize(("field", "fields"), HOLDING)
def test_a_memory_that_holds_the_value_is_refused_wherever_it_stands(
    writing: Engine, field: str, fields: dict[str, Any]
) -> None:
    reject(writing, "something else", now=NOW)
    reject(writing, "kestrel seven", "it leaked", now=NOW)
    with pytest.raises(RejectedContent) as caught:
        refuse(writing, a_memory(**fields), at=(3,))
    (fault,) = caught.value.errors()
    assert fault["loc"] == (3, field)
    assert (fault["type"], fault["input"]) == ("rejected", field)
    assert fault["ctx"] == {"rejection_id": 2}
    message = str(caught.value)
    assert message.startswith(f"3.{field}: ")
    assert "rejection 2: it leaked" in message
    assert "`agent-memory reject --lift 2`" in message
    told = f"{message} {caught.value!r} {caught.value.errors()}".casefold()
    assert "seven" not in told
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("field", "fields"), HOLDING)
def test_a_row_that_holds_the_value_is_refused_as_the_memory_is(
    writing: Engine, field: str, fields: dict[str, Any]
) -> None:
    row = {
        name: value if isinstance(value, str) else to_json(plain(value))
        for name, value in {"content": "x", **fields}.items()
    }
    refuse_rejected_row(writing, row, writing.rejections.hashes_by_length())
    reject(writing, "kestrel seven", now=NOW)
    with pytest.raises(RejectedContent) as caught:
        refuse_rejected_row(writing, row, writing.rejections.hashes_by_length())
    assert caught.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "kestrel, then six, then seven"},
        {"tags": ["kestrel", "seven"]},  # the words of two texts do not stand together
        {"metadata": {"kestrel": "seven"}},
        {"metadata": {"a": ["kestrel", "seven"], "b": True, "c": None, "d": 0.7}},
        {"user_id": "kestrel seven", "run_id": "kestrel seven"},
        {"task_metadata": TaskMetadata(status="blocked", blockers=["kestrel", "seven"])},
    ],
)
def test_a_memory_that_does_not_hold_the_value_is_let_in(
    writing: Engine, fields: dict[str, Any]
) -> None:
    reject(writing, "kestrel seven", now=NOW)
    refuse(writing, a_memory(**fields))


def test_a_whole_number_in_metadata_is_a_word_and_a_truth_is_not(writing: Engine) -> None:
    reject(writing, "4711", now=NOW)
    reject(writing, "true", now=NOW)
    refuse(writing, a_memory(metadata={"known": True, "n": [471, 47110, 47.11]}))
    with pytest.raises(RejectedContent):
        refuse(writing, a_memory(metadata={"pins": [1, 4711]}))


def test_only_the_fields_that_are_named_are_looked_at(writing: Engine) -> None:
    reject(writing, "kestrel", now=NOW)
    there = a_memory("the kestrel", tags=["x"], metadata={"a": "kestrel"})
    refuse(writing, there, fields={"tags", "task_metadata"})
    for field in ("content", "metadata"):
        with pytest.raises(RejectedContent):
            refuse(writing, there, fields={field})


def test_a_reason_that_tells_a_value_rejected_later_is_left_out(writing: Engine) -> None:
    reject(writing, "kestrel", "belongs to Ann Lee", now=NOW)
    reject(writing, "Ann Lee", now=NOW)
    with pytest.raises(RejectedContent) as caught:
        refuse(writing, a_memory("a kestrel"))
    assert "Lee" not in str(caught.value)
    assert "rejection 1)" in str(caught.value)


def test_the_texts_of_a_memory_come_with_their_places() -> None:
    there = a_memory(
        "text",
        tags=["a", "b"],
        metadata={"k": [{"deep": "x"}, 7], "m": "y"},
        task_metadata=TaskMetadata(status="blocked", blockers=["p"], outcome="q"),
    )
    assert list(texts_of(there)) == [
        ("content", "text"),
        ("tags[0]", "a"),
        ("tags[1]", "b"),
        ("metadata", "k"),
        ("metadata", "m"),
        ("metadata.k[0]", "deep"),
        ("metadata.k[0].deep", "x"),
        ("metadata.k[1]", "7"),
        ("metadata.m", "y"),
        ("task_metadata.outcome", "q"),
        ("task_metadata.blockers[0]", "p"),
    ]


# Which memories hold a value ----------------------------------------------------------------


def test_the_memories_that_hold_a_value_are_found_wherever_it_stands(
    memory: AgentMemory, engine: Engine
) -> None:
    ids = []
    for _, fields in HOLDING:
        named = {"content": "nothing of interest", **fields}
        task = named.pop("task_metadata", None)
        if task is not None:
            named["task_metadata"] = task.model_dump()
        ids.append(memory.store(**named))
    memory.store("kestrel, then six, then seven", tags=["kestrel", "seven"], user_id="kestrel 7")
    memory.update(ids[0], archived=True)
    assert found(engine, "Kestrel Seven") == ids
    memory.delete(ids[1])
    assert found(engine, "Kestrel Seven") == [ids[0], *ids[2:]]
    assert found(engine, "kestrel eight") == []
    assert found(engine, "") == []


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("groß", "GROSS und klein"),
        ("gross", "Groß und klein"),
        ("hunter2", "\uff48unter\uff12 is it"),
        ("hunter2", "hun\u200bter2 is it"),
        ("café", "at the Cafe\u0301"),
        ("数据", "我们用数据库"),
        ("***", "the word *** stands here"),
        ("💥", "then 💥 it was"),
        ("__", "a __ b"),
        ("the", "of the and"),
        ('"', 'say " now'),
        ("\\", "a \\ b"),
    ],
)
def test_a_value_is_found_however_it_is_written(
    memory: AgentMemory, engine: Engine, value: str, content: str
) -> None:
    there = memory.store(content)
    inside = memory.store("something other", metadata={"x": [content]})
    memory.store("something other still")
    assert found(engine, value) == [there, inside]


def test_a_value_that_another_program_wrote_is_found_in_its_escapes_and_its_damage(
    memory: AgentMemory, engine: Engine, visitor: Visitor
) -> None:
    plain = memory.store("nothing of interest")
    visitor(
        memory.path,
        r"""INSERT INTO memories (id, content, metadata)
          VALUES ('escaped', 'x', '{"k": "\u006bestrel s\u0065ven"}');;"""
        r"""INSERT INTO memories (id, content, tags)
          VALUES ('tag', 'x', '["\u004bestrel seven"]');;"""
        r"""INSERT INTO memories (id, content, metadata)
          VALUES ('half', 'x', '{"k": ["\ud800", "kestrel seven \udfff"]}');;"""
        """INSERT INTO memories (id, content)
          VALUES ('not-utf8', CAST(x'6b65737472656c20736576656e20ff' AS TEXT));;"""
        """PRAGMA ignore_check_constraints = 1;;"""
        """INSERT INTO memories (id, content, metadata)
          VALUES ('broken', 'x', '{kestrel seven');;"""
        """INSERT INTO memories (id, content, task_metadata)
          VALUES ('task', 'x', '{"outcome": "kestrel seven", "other": 1}')""",
    )
    expected = ["escaped", "tag", "half", "not-utf8", "broken", "task"]
    assert found(engine, "Kestrel Seven") == expected
    half = memory.get("half")
    assert half is not None
    with engine.write():
        reject(engine, "💥", now=NOW)
        refuse(engine, half)
    visitor(memory.path, "DELETE FROM memories WHERE id IN ('not-utf8', 'broken')")
    assert found(engine, "nothing of") == [plain]
    assert {it.kind for it in memory.check(repair=True).problems} >= {"unreadable_history"}


def test_many_memories_are_searched_to_the_last(memory: AgentMemory, engine: Engine) -> None:
    texts = [f"{'é ' if n % 2 else ''}memory {n} of {n % 7}" for n in range(5_000)]
    ids = memory.store_many({"content": text} for text in texts)
    assert found(engine, "of 3") == [it for n, it in enumerate(ids) if n % 7 == 3]
    assert found(engine, "memory 4999") == [ids[4999]]
    assert found(engine, "memory") == ids


def test_what_is_rejected_after_it_was_stored_is_held_and_stays(
    memory: AgentMemory, engine: Engine
) -> None:
    there = memory.store("the kestrel")
    with engine.write():
        reject(engine, "kestrel", now=NOW)
        assert holders(engine, ["kestrel"]) == [there]
    assert memory.get(there) is not None


# Through the verbs of AgentMemory -----------------------------------------------------------


def test_a_rejected_value_is_not_stored_until_it_is_lifted(
    memory: AgentMemory, clock: Clock
) -> None:
    rejection = memory.reject("Kestrel-Seven", reason="it leaked")
    assert rejection.rejected_at == clock.now
    assert memory.rejections() == [rejection]
    with pytest.raises(RejectedContent, match="it leaked") as caught:
        memory.store("call kestrel seven", metadata={"x": 1})
    assert "seven" not in f"{caught.value} {caught.value.errors()}"
    assert memory.count() == 0
    assert memory.history() == []
    assert memory.lift(rejection.rejection_id)
    assert not memory.lift(rejection.rejection_id)
    assert memory.rejections() == []
    memory.store("call kestrel seven")


def test_of_a_list_with_a_rejected_value_nothing_is_stored_and_its_place_is_told(
    memory: AgentMemory,
) -> None:
    memory.reject("kestrel")
    with pytest.raises(RejectedContent) as caught:
        memory.store_many([{"content": "a falcon"}, {"content": "x", "tags": ["a", "kestrel"]}])
    assert caught.value.errors()[0]["loc"] == (1, "tags[1]")
    assert memory.count() == 0


def test_a_duplicate_does_not_bring_a_rejected_value_along(memory: AgentMemory) -> None:
    there = memory.store("a falcon")
    memory.reject("kestrel")
    with pytest.raises(RejectedContent):
        memory.store("a falcon", tags=["kestrel"], on_duplicate="merge")
    kept = stored(memory, there)
    assert kept.tags == []


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "the kestrel"},
        {"tags": ["kestrel"]},
        {"metadata": {"kestrel": 1}},
        {"task_metadata": {"status": "blocked", "blockers": ["a kestrel"]}},
    ],
)
def test_an_update_does_not_bring_a_rejected_value_in(
    memory: AgentMemory, changes: dict[str, Any]
) -> None:
    there = memory.store("a falcon")
    memory.reject("kestrel")
    with pytest.raises(RejectedContent):
        memory.update(there, **changes)
    kept = stored(memory, there)
    assert (kept.content, kept.version) == ("a falcon", 1)


def test_a_memory_that_held_the_value_before_can_be_changed_elsewhere_and_freed_of_it(
    memory: AgentMemory,
) -> None:
    there = memory.store("the kestrel", tags=["bird"])
    memory.reject("kestrel")
    assert memory.update(there, importance="high", tags=["falcon"]).version == 2
    assert memory.update(there, archived=True).version == 3
    assert memory.update(there, content="a falcon").content == "a falcon"
    with pytest.raises(RejectedContent):
        memory.update(there, content="the kestrel")


def test_another_process_of_the_agent_keeps_the_value_out_as_well(
    memory: AgentMemory, cli: Callable[..., Any]
) -> None:
    memory.reject("kestrel seven", reason="it leaked")
    ran = cli("--agent", "bob", "store", "call Kestrel-Seven")
    assert ran.code != 0
    assert "it leaked" in ran.err
    assert "Seven" not in ran.out + ran.err
    assert cli("--agent", "bob", "store", "call a falcon").code == 0
    assert [one.content for one in memory.list_recent()] == ["call a falcon"]


def test_what_another_program_rejects_is_refused(memory: AgentMemory, visitor: Visitor) -> None:
    words_hash = hash_of(["kestrel", "seven"]).hex()
    visitor(
        memory.path,
        "INSERT INTO rejections (words_hash, word_count, rejected_at)"
        f" VALUES (x'{words_hash}', 2, '2026-01-30T16:00:00.000000Z')",
    )
    with pytest.raises(RejectedContent):
        memory.store("kestrel seven")
    assert memory.lift("kestrel seven")
    memory.store("kestrel seven")


def test_the_rejections_can_be_read_where_nothing_can_be_written(memory: AgentMemory) -> None:
    rejection = memory.reject("kestrel")
    with AgentMemory.open(memory.path, read_only=True) as reader:
        assert reader.rejections() == [rejection]
        assert json.loads(rejection.model_dump_json())["words_hash"] == rejection.words_hash

"""What may be stored, and what is refused: ids, content, tags, metadata, names."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    MissingAgentIdentity,
    ValidationError,
    database_path,
    is_valid_agent_id,
    normalize_tags,
    sanitize_agent_id,
    validate_agent_id,
    validate_memory_content,
    validate_tags,
)
from agent_memory.models.fields import clean_label, clean_memory_id, clean_metadata

# How long an example takes is no matter of these tests.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NUL = "a\x00b"
HALF_PAIR = "a\ud800b"

# Agent ids ----------------------------------------------------------------------------------

WRONG_AGENT_IDS = [
    "../x",
    "..",
    ".",
    "/abs",
    "a/b",
    "a\\b",
    "C:x",
    "~root",
    NUL,
    HALF_PAIR,
    ":memory:",
    "file:x?mode=memory",
    "a" * 65,
    "CON",
    "con",
    "Nul",
    "aUx",
    "prn",
    "com1",
    "LPT9",
    "nul.db",
    "a.",
    "a ",
    " a",
    "caf\u00e9",
    "cafe\u0301",
    "\uff42\uff4f\uff42",
    "1\u0662",
    "bob\n",
    "bob\r",
    "\nbob",
    "bob\t",
    "bob\u202etxt",
    "bob\u200b",
    "%2e%2e",
    "$HOME",
]


@pytest.mark.parametrize("agent_id", [*WRONG_AGENT_IDS, ""])
def test_what_could_be_a_path_or_a_device_is_no_agent_id(agent_id: str) -> None:
    assert validate_agent_id(agent_id) is False
    assert is_valid_agent_id(agent_id) is False


@pytest.mark.parametrize(
    "agent_id",
    ["b", "bob", "Bob_2-x", "-rf", "_", "0", "a" * 64, "console", "com10", "com0", "nul_"],
)
def test_letters_digits_hyphens_and_underscores_make_an_agent_id(agent_id: str) -> None:
    assert validate_agent_id(agent_id) is True
    assert is_valid_agent_id(agent_id) is True


@pytest.mark.parametrize("agent_id", [None, 7, b"bob", ["bob"]])
def test_what_is_no_text_is_no_agent_id(agent_id: Any) -> None:
    assert validate_agent_id(agent_id) is False


@pytest.mark.parametrize("agent_id", WRONG_AGENT_IDS)
def test_a_wrong_agent_id_is_refused_and_nothing_is_made(root: Path, agent_id: str) -> None:
    for attempt in (lambda: AgentMemory(agent_id, root=root), lambda: database_path(agent_id)):
        with pytest.raises(ValidationError) as error:
            attempt()
        assert error.value.errors()[0]["loc"] == ("agent_id",)
        # The message can be printed on any terminal.
        assert str(error.value).encode().decode().isprintable()
    assert not root.exists()


def test_no_agent_id_at_all_is_its_own_error(root: Path) -> None:
    with pytest.raises(MissingAgentIdentity):
        AgentMemory("", root=root)
    assert not root.exists()


@UNTIMED
@given(st.text(max_size=80))
def test_an_agent_id_that_is_accepted_is_one_step_below_the_root(text: str) -> None:
    if validate_agent_id(text):
        place = database_path(text, "/srv/agents")
        assert place == Path("/srv/agents") / text / "memories.db"
        assert place.resolve().parent.parent == Path("/srv/agents").resolve()
    else:
        with pytest.raises(AgentMemoryError):
            database_path(text, "/srv/agents")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("bob", "bob"),
        ("bob\n", "bob"),
        ("../../etc/passwd", "etcpasswd"),
        ("My Agent!", "MyAgent"),
        ("caf\u00e9", "caf"),
        (NUL, "ab"),
        ("\u202e", ""),
        ("", ""),
        ("x" * 70, "x" * 64),
        ("!" * 70 + "ok", "ok"),
    ],
)
def test_sanitizing_keeps_only_what_an_agent_id_may_have(text: str, left: str) -> None:
    assert sanitize_agent_id(text) == left


# Memory ids ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "memory_id",
    [
        "mem-a3f2c1b4e5d6",
        "a3f2c1b4",
        "5f0c1b1e-9f5e-4a53-9a8e-0d7a1f0d4f1e",
        "urn:x:1.2_3",
        "x",
        "x" * 128,
    ],
)
def test_an_id_from_any_of_the_documents_is_kept(memory: AgentMemory, memory_id: str) -> None:
    assert memory.store("content", id=memory_id) == memory_id
    found = memory.get(memory_id)
    assert found is not None
    assert found.id == memory_id


@pytest.mark.parametrize(
    "memory_id", ["", "x" * 129, "a b", "a/b", "a\n", "\u00e9", NUL, HALF_PAIR, "a\u202eb", "*"]
)
def test_a_wrong_memory_id_is_refused(memory: AgentMemory, memory_id: str) -> None:
    with pytest.raises(ValueError, match="not a memory id"):
        clean_memory_id(memory_id)
    with pytest.raises(ValidationError) as error:
        memory.store("content", id=memory_id)
    assert error.value.errors()[0]["loc"] == ("id",)
    assert memory.count() == 0


# Content ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "",
        " ",
        "\n\t\r",
        "\u00a0\u3000",
        "\u200b",
        "\u200b\u200c\u200d\u2060\ufeff",
        " \u200b \u00ad ",
        "\u202e\u2066",
        "\x01\x1b",
    ],
)
def test_content_of_which_nothing_can_be_seen_is_refused(memory: AgentMemory, content: str) -> None:
    assert validate_memory_content(content) == (False, "Content cannot be empty")
    with pytest.raises(ValidationError, match="empty"):
        memory.store(content)
    assert memory.count() == 0


@pytest.mark.parametrize(
    "content",
    [
        "x",
        "\u200bx",
        "  kept as it is  ",
        "line\r\nline\n",
        "\u05e9\u05dc\u05d5\u05dd \u202eabc",
        "cafe\u0301 and caf\u00e9",
        "\U0001f469\u200d\U0001f680",
        "\x1b[31mred",
        "'; DROP TABLE memories; --",
        "\U0010ffff",
    ],
)
def test_content_comes_back_as_it_was_given(memory: AgentMemory, content: str) -> None:
    found = memory.get(memory.store(content))
    assert found is not None
    assert found.content == content


@pytest.mark.parametrize(
    "letter",
    ["a", "\U0001f600", "\U0001f469\u200d\U0001f680", "e\u0301"],
    ids=["ascii", "emoji", "zwj", "combining"],
)
def test_the_limit_of_content_is_10_000_code_points(letter: str) -> None:
    for length in (9_999, 10_000):
        assert validate_memory_content((letter * length)[:length]) == (True, None)
    is_valid, reason = validate_memory_content((letter * 10_001)[:10_001])
    assert not is_valid
    assert reason is not None
    assert "10000" in reason
    assert "10001" in reason


@pytest.mark.parametrize("content", [None, 7, ["text"], {"text": 1}])
def test_content_that_is_no_text_is_refused(memory: AgentMemory, content: Any) -> None:
    with pytest.raises(ValidationError) as error:
        memory.store(content)
    assert error.value.errors()[0]["loc"] == ("content",)


# Tags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        ([], []),
        (["a", "b", "a"], ["a", "b"]),
        (["  Data Base ", "DATA BASE"], ["data base"]),
        (["", "  ", "x"], ["x"]),
        (["\u00c9T\u00c9", "\u00e9t\u00e9"], ["\u00e9t\u00e9"]),
        (("z", "a"), ["z", "a"]),
        ([f"t{n}" for n in range(20)], [f"t{n}" for n in range(20)]),
        (["same"] * 30, ["same"]),
        (["x" * 50], ["x" * 50]),
        ([" " + "x" * 50 + " "], ["x" * 50]),
    ],
)
def test_tags_are_kept_in_order_small_and_once(
    memory: AgentMemory, tags: list[str], kept: list[str]
) -> None:
    assert normalize_tags(tags) == kept
    found = memory.get(memory.store("content", tags=tags))
    assert found is not None
    assert found.tags == kept


@pytest.mark.parametrize(
    "tags",
    [
        [f"t{n}" for n in range(21)],
        ["x" * 51],
        "database",
        b"database",
        [7],
        [None],
        [["nested"]],
        {"a": 1},
    ],
)
def test_wrong_tags_are_refused(memory: AgentMemory, tags: Any) -> None:
    with pytest.raises(ValidationError) as error:
        memory.store("content", tags=tags)
    assert error.value.errors()[0]["loc"][0] == "tags"
    assert memory.count() == 0


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (["x"] * 21, "Too many tags"),
        (["x" * 51], "exceeds 50 characters"),
        (["ok", " "], "Empty tags"),
        ([NUL], "NUL"),
        ([HALF_PAIR], "UTF-8"),
    ],
)
def test_the_helper_says_what_is_wrong_with_tags(tags: list[str], reason: str) -> None:
    is_valid, message = validate_tags(tags)
    assert not is_valid
    assert reason in (message or "")


def test_the_helper_accepts_tags_at_the_limits() -> None:
    assert validate_tags(["x" * 50] * 20) == (True, None)
    assert validate_tags([]) == (True, None)


@UNTIMED
@given(st.lists(st.text(max_size=60), max_size=25))
def test_normalizing_tags_twice_changes_nothing_more(tags: list[str]) -> None:
    once = normalize_tags(tags)
    assert normalize_tags(once) == once
    assert len(set(once)) == len(once)


# Metadata -----------------------------------------------------------------------------------


def nested(depth: int, *, lists: bool = False) -> dict[str, Any]:
    """Return a mapping whose innermost value stands that many levels deep."""
    value: Any = 1
    for _ in range(depth - 1):
        value = [value] if lists else {"k": value}
    return {"k": value}


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"text": "x", "": "", "\u00e9": "\u754c"},
        {"n": 0, "yes": True, "none": None, "f": -1.5e300},
        {"least": -(2**63), "most": 2**63 - 1},
        {"list": [1, "a", [True, None]], "map": {"a": {"b": []}}},
        nested(20),
        nested(20, lists=True),
    ],
)
def test_metadata_comes_back_as_it_was_given(memory: AgentMemory, metadata: dict[str, Any]) -> None:
    found = memory.get(memory.store("content", metadata=metadata))
    assert found is not None
    assert found.metadata == metadata
    # True is not 1 and 1.0 is not 1 to whoever reads the JSON.
    assert [type(v) for v in found.metadata.values()] == [type(v) for v in metadata.values()]


@pytest.mark.parametrize(
    "metadata",
    [
        {"k": float("nan")},
        {"k": [float("inf")]},
        {"k": {"l": -float("inf")}},
        {"k": 2**63},
        {"k": [-(2**63) - 1]},
        nested(21),
        nested(21, lists=True),
        nested(900),
        {1: "x"},
        {None: "x"},
        {("a",): "x"},
        {"k": {1: "x"}},
        {"k": b"x"},
        {"k": {"x"}},
        {"k": frozenset()},
        {"k": datetime(2026, 1, 30)},  # noqa: DTZ001 - refused whatever its zone
        {"k": Decimal(1)},
        {"k": object()},
        {"k": 1j},
        ["k"],
        "k",
    ],
)
def test_metadata_that_json_cannot_hold_is_refused(memory: AgentMemory, metadata: Any) -> None:
    with pytest.raises(ValidationError) as error:
        memory.store("content", metadata=metadata)
    assert error.value.errors()[0]["loc"][0] == "metadata"
    assert memory.count() == 0


def test_a_fault_of_metadata_says_where_it_stands() -> None:
    with pytest.raises(ValueError, match=r"a\.b\[1\]"):
        clean_metadata({"a": {"b": [1, b"x"]}})


def test_metadata_that_holds_itself_is_refused(memory: AgentMemory) -> None:
    metadata: dict[str, Any] = {}
    metadata["self"] = metadata
    with pytest.raises(ValidationError):
        memory.store("content", metadata=metadata)


# Names of sessions, users and runs ----------------------------------------------------------


@pytest.mark.parametrize("label", ["s", "Session 7 / caf\u00e9", "x" * 200])
def test_a_label_is_kept_as_it_is(memory: AgentMemory, label: str) -> None:
    assert clean_label(label) == label
    scope_id = label[:128]
    memory_id = memory.store("content", session_id=label, user_id=scope_id, run_id=scope_id)
    found = memory.get(memory_id)
    assert found is not None
    assert (found.created_by_session, found.user_id, found.run_id) == (label, scope_id, scope_id)


@pytest.mark.parametrize("label", ["", " ", "\n", "x" * 201, NUL, HALF_PAIR])
@pytest.mark.parametrize("field", ["session_id", "user_id", "run_id"])
def test_a_wrong_label_is_refused(memory: AgentMemory, field: str, label: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        clean_label(label)
    with pytest.raises(ValidationError) as error:
        memory.store_many([{"content": "x", field: label}])
    assert error.value.errors()[0]["loc"] == (0, field)

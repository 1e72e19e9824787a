"""A rejected value is found wherever its words stand in a row, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from conftest import NOW, engine_of
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.errors import RejectedContent
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import TaskMetadata
from agent_memory.services.policies.rejected_values import holders, lift, refuse_rejected, reject
from agent_memory.services.policies.rejection_match import (
    MAX_WORDS,
    find_rejected,
    form_of,
    hash_of,
    words_of,
    words_to_reject,
)
from agent_memory.services.store import Store
from agent_memory.storage.sqlite.engine import SQLiteEngine

UNTIMED = settings(deadline=None, max_examples=300)
SLOW = settings(deadline=None, max_examples=60)

# The ways in which a word may be written, and the words that it is.
WRITTEN = {
    "kestrel": ["kestrel"], "KESTREL": ["kestrel"], "\uff4bestrel": ["kestrel"],
    "kes\u00adtrel": ["kestrel"], "seven": ["seven"], "Seven": ["seven"], "7": ["7"],
    "\u2460": ["1"], "1": ["1"], "a_b": ["a", "b"], "a": ["a"], "b": ["b"], "groß": ["gross"],
    "GROSS": ["gross"], "café": ["café"], "cafe\u0301": ["café"], "cafe": ["cafe"],
    "数据": ["数", "据"], "数": ["数"], "据": ["据"], "กิน": ["ก", "ิ", "น"], "हिन्दी": ["हिन्दी"],
    "서울": ["서", "울"],
}  # fmt: skip
BETWEEN = [" ", "\n", "-", ", ", ". ", " / ", '" "', "...", "\\", "\u3000"]
PIECES = st.lists(
    st.tuples(st.sampled_from(sorted(WRITTEN)), st.sampled_from(BETWEEN)), min_size=1, max_size=7
)
VALUE = st.lists(st.sampled_from(sorted(WRITTEN)), min_size=1, max_size=3)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
Pieces = list[tuple[str, str]]


def say(pieces: Pieces) -> str:
    return "".join(word + between for word, between in pieces)


def words_in(written: Sequence[str]) -> list[str]:
    return [word for one in written for word in WRITTEN[one]]


def stands_in(words: Sequence[str], text: Sequence[str]) -> bool:
    """Look for words in a row, without any hash."""
    starts = range(len(text) - len(words) + 1)
    return any(text[start : start + len(words)] == words for start in starts)


def is_held(words: Sequence[str], text: str) -> bool:
    return find_rejected([("content", text)], {len(words): {hash_of(words)}}) is not None


# Words --------------------------------------------------------------------------------------


@UNTIMED
@given(pieces=PIECES)
def test_what_stands_between_words_and_how_they_are_written_makes_no_difference(
    pieces: Pieces,
) -> None:
    assert words_of(say(pieces)) == words_in([word for word, _ in pieces])


@UNTIMED
@given(text=ANY_TEXT)
def test_the_words_of_words_are_the_same_words(text: str) -> None:
    words = words_of(text)
    assert words_of(" ".join(words)) == words
    assert form_of(form_of(text)) == form_of(text)
    assert all(word in form_of(text) and not any(map(str.isspace, word)) for word in words)


@UNTIMED
@given(text=ANY_TEXT)
def test_every_row_of_the_words_of_a_text_stands_in_it(text: str) -> None:
    words = words_of(text)
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            assert is_held(words[start:end], text)


@UNTIMED
@given(before=ANY_TEXT, value=ANY_TEXT, after=ANY_TEXT)
def test_any_value_is_found_in_any_text_around_it(before: str, value: str, after: str) -> None:
    if words := words_of(value):
        assert is_held(words, f"{before} {value} {after}")
        assert is_held(words, value)


@UNTIMED
@given(pieces=PIECES, value=VALUE)
def test_a_value_is_held_exactly_where_its_words_stand_in_a_row(
    pieces: Pieces, value: list[str]
) -> None:
    text = words_in([word for word, _ in pieces])
    words = words_in(value)
    assert is_held(words, say(pieces)) is stands_in(words, text)


@UNTIMED
@given(pieces=PIECES, values=st.lists(VALUE, max_size=5))
def test_of_many_values_one_that_is_held_is_told(pieces: Pieces, values: list[list[str]]) -> None:
    rejected = [words_in(value) for value in values]
    known: dict[int, set[bytes]] = {}
    for words in rejected:
        known.setdefault(len(words), set()).add(hash_of(words))
    text = words_in([word for word, _ in pieces])
    held = {hash_of(words) for words in rejected if stands_in(words, text)}
    found = find_rejected([("x", "?!"), ("content", say(pieces))], known)
    assert (found is None) is (not held)
    assert found is None or (found.field, found.words_hash in held) == ("content", True)


@UNTIMED
@given(text=st.text(max_size=60))
def test_every_text_is_a_value_or_refused(text: str) -> None:
    try:
        words = words_to_reject(text)
    except ValueError:
        assert not words_of(text) or any("\ud800" <= letter <= "\udfff" for letter in text)
    else:
        assert 1 <= len(words) <= MAX_WORDS
        assert len(hash_of(words)) == 32


# In a file ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SQLiteEngine]:
    path = tmp_path_factory.mktemp("rejections") / "memories.db"
    store = Store(path, agent_id="bob", clock=lambda: NOW)
    opened = engine_of(store)
    assert isinstance(opened, SQLiteEngine)
    yield opened
    store.close()


def a_memory(parts: Sequence[Pieces], field: str) -> Memory:
    """Return a memory with the texts in a field, each of them apart from the others."""
    texts = [say(part) for part in parts]
    choices: dict[str, dict[str, object]] = {
        "content": {"content": texts[0]},
        "metadata": {"metadata": {"x": texts[:1], "y": {"z": texts[1:]}}},
        "keys": {"metadata": dict.fromkeys(texts)},
        "blockers": {"task_metadata": TaskMetadata(status="blocked", blockers=texts)},
    }
    usual = {"agent_id": "bob", "content": "?", "category": "note", "created_by_session": "s"}
    return Memory.model_validate({**usual, **choices[field]})


FIELDS = st.sampled_from(["content", "metadata", "keys", "blockers"])
MEMORIES = st.lists(
    st.tuples(st.lists(PIECES, min_size=1, max_size=3), FIELDS), min_size=1, max_size=6
)


@SLOW
@given(memories=MEMORIES, value=VALUE)
def test_those_that_hold_a_value_are_those_that_would_be_refused(
    engine: SQLiteEngine, memories: list[tuple[list[Pieces], str]], value: list[str]
) -> None:
    words = words_in(value)
    expected = []
    with engine.write():
        engine.database.run("DELETE FROM memories")
        rejection = reject(engine, " ".join(value), now=NOW)
        for parts, field in memories:
            stored = a_memory(parts, field)
            engine.memories.insert(stored)
            looked_at = parts[:1] if field == "content" else parts
            holds = any(stands_in(words, words_in([it for it, _ in part])) for part in looked_at)
            if holds:
                expected.append(stored.id)
            assert is_refused(engine, stored) is holds
        assert holders(engine, words) == expected
        assert lift(engine, rejection.rejection_id)
        assert engine.rejections.hashes_by_length() == {}


def is_refused(engine: SQLiteEngine, memory: Memory) -> bool:
    try:
        refuse_rejected(engine, memory, engine.rejections.hashes_by_length())
    except RejectedContent:
        return True
    return False

"""Any text is a query, in any script, and finds what it names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Clock, engine_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory

FILLER = [
    "The weather stayed dull all week",
    "Grandmother's garden needs watering",
    "Nobody remembers that train journey",
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMemory]:
    """One store for all that only reads."""
    root: Path = tmp_path_factory.mktemp("shared")
    with AgentMemory("bob", root=root, clock=Clock(), session_id="s") as memory:
        for text in FILLER:
            memory.store(text, session_id=text)
        memory.store("c++ is a language", id="cpp", session_id="a")
        memory.store("don't panic", id="panic", session_id="b")
        memory.store("write to user@x.com", id="mail", session_id="c")
        memory.store("a cat sat near a kind dog, fact", id="cat", session_id="d")
        yield memory


def found(memory: AgentMemory, query: str) -> list[str]:
    return [hit.memory.id for hit in memory.search(query, 100, count_accesses=False)]


def first(memory: AgentMemory, query: str) -> str | None:
    ids = found(memory, query)
    return ids[0] if ids else None


# Texts that SQL or FTS5 would trip over -----------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("c++", "cpp"),
        ("C++?!", "cpp"),
        ("don't", "panic"),
        ("don\u2019t", "panic"),
        ("user@x.com", "mail"),
        ('"cat', "cat"),
        ('cat"', "cat"),
        ('"cat" "dog"', "cat"),
        ("(cat", "cat"),
        ("((((((((((cat", "cat"),
        ("-cat", "cat"),
        ("cat*", "cat"),
        ("^cat", "cat"),
        ("cat-dog", "cat"),
        ("kind:fact", "cat"),
        ("nokind:cat", "cat"),
        ("{kind content}:cat", "cat"),
        ("content : cat", "cat"),
        ("NEAR(cat dog)", "cat"),
        ("NEAR(cat, 5", "cat"),
        ("cat AND", "cat"),
        ("NOT cat", "cat"),
        ("cat OR (", "cat"),
        ("cat; DROP --", "cat"),
        ("cat' OR '1'='1", "cat"),
        ("cat\x00dog", "cat"),
        ("\ud800cat", "cat"),
        ("cat\udfff", "cat"),
        ("\u202ecat\u200b", "cat"),
        ("cat_dog", "cat"),
        ("CAT\r\n\tDOG", "cat"),
        ("%cat_", "cat"),
        ("?1 :cat @dog $fact", "cat"),
        ("cat " + "(" * 5_000, "cat"),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_a_text_full_of_signs_still_finds_the_memory(
    shared: AgentMemory, query: str, expected: str
) -> None:
    assert first(shared, query) == expected


@pytest.mark.parametrize(
    "query",
    ["", " ", "\t\r\n", "\x00", "\ud800", "\udfff\ud800",
     '"', "'", "*", ".", "?", "()", "😀", "\u200b"],
    ids=ascii,
)  # fmt: skip
def test_a_text_without_a_letter_finds_nothing_and_says_so(shared: AgentMemory, query: str) -> None:
    results = shared.search(query, count_accesses=False)
    assert list(results) == []
    assert results.total_count == 0
    assert results.search_metadata.reason == "empty_query"
    assert results.search_metadata.explanation


@pytest.mark.parametrize("query", ["AND", "OR NOT", "NEAR", "zebra", "rowid", "null", "9" * 30])
def test_a_word_that_no_memory_has_is_no_error(shared: AgentMemory, query: str) -> None:
    reason = shared.search(query, count_accesses=False).search_metadata.reason
    assert reason in ("no_match", None, "few_matches")
    assert "cpp" not in found(shared, query)


def test_more_terms_than_a_search_takes_still_find_a_memory(memory: AgentMemory) -> None:
    words = " ".join(f"word{n}" for n in range(100))
    memory_id = memory.store(words)
    assert found(memory, words) == [memory_id]
    assert found(memory, words + " nothing" * 5_000) == [memory_id]


def test_thousands_of_words_that_no_memory_has_find_nothing(shared: AgentMemory) -> None:
    assert found(shared, " ".join(f"word{n}" for n in range(5_000))) == []


def test_a_query_of_100_kb_is_no_error(shared: AgentMemory) -> None:
    assert found(shared, "z" * 100_000) == []
    assert found(shared, "(" * 100_000) == []
    assert first(shared, "cat " + "z" * 100_000) == "cat"
    assert first(shared, "cat dog " * 12_500) == "cat"
    assert found(shared, "数" * 100_000) == []


def test_a_long_word_is_not_searched_for_its_misspellings(shared: AgentMemory) -> None:
    """Of a word of 20,000 letters a million were looked up, in a second; of 100,000 in 24."""
    started = time.process_time()
    assert found(shared, "z" * 20_000) == []
    short = time.process_time() - started
    assert found(shared, "z" * 80_000) == []
    assert time.process_time() - started < 10 * max(short, 0.01)


def test_repeating_all_that_is_asked_changes_nothing(shared: AgentMemory) -> None:
    assert found(shared, "cat weather cats Weather") == found(shared, "cat weather")


@pytest.mark.parametrize(
    ("one", "other"), [("cat", "weather"), ("猫猫。", "天气。"), ("cats Cat", "WEATHER weather")]
)
def test_what_a_query_says_more_often_counts_more(tmp_path: Path, one: str, other: str) -> None:
    with AgentMemory("bob", root=tmp_path, clock=Clock(), embedder=None) as memory:
        memory.store(f"{one} and nothing else", id="one", session_id="a")
        memory.store(f"{other} and nothing else", id="other", session_id="b")
        assert first(memory, f"{one} {other} {one}") == "one"
        assert first(memory, f"{one} {other} {other}") == "other"
        assert first(memory, f"{other} {one} {one}") == "one"
        assert first(memory, f"{other} {one} {other}") == "other"


@pytest.mark.parametrize("words", [200, 5_000])
@pytest.mark.parametrize("where", ["before", "after"])
def test_what_is_asked_before_or_after_a_long_text_is_found(
    shared: AgentMemory, where: str, words: int
) -> None:
    pasted = " ".join(f"{chr(97 + n % 26)}{n}zq" for n in range(words))
    asked = "did a cat sit near the kind dog?"
    query = f"{asked}\n{pasted}" if where == "before" else f"{pasted}\n{asked}"
    assert first(shared, query) == "cat"


def test_of_many_words_the_first_and_the_last_are_looked_for(shared: AgentMemory) -> None:
    words = [f"w{n}" for n in range(200)]
    keywords = engine_of(shared).keywords
    asked = [term.written for term in keywords.terms_of(" ".join([*words, "w0", "w100"]))]
    # What stands among the last is one of them, wherever else it stands.
    assert sorted(asked) == sorted({*words[:33], "w100", *words[-30:]})
    assert asked == [word for word in words if word in asked]
    assert [term.times for term in keywords.terms_of("w0 w1 w0 w0")] == [3, 1]
    # Small words, which are not looked for, take nobody's place.
    asked = [term.written for term in keywords.terms_of(" ".join([*words, "the", "of", "and"]))]
    assert asked == [*words[:32], *words[-32:]]
    # Of a text of 40,000 characters 10,000 are read.
    assert [term.times for term in keywords.terms_of("dog " * 10_000)] == [2_500]
    dense = "".join(chr(0x4E00 + n) for n in range(200))
    pairs = [term.written for term in keywords.terms_of(dense)]
    assert pairs == [dense[n : n + 2] for n in (*range(32), *range(167, 199))]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(exclude_categories=())))
@example('a" OR "b')
@example("数\ud800据")
@example("ก\x00ำ")
@example("\U0010ffff")
def test_any_text_is_a_query(shared: AgentMemory, query: str) -> None:
    results = shared.search(query, 100, count_accesses=False)
    assert len(results) <= 8
    assert all(0 < hit.similarity <= 1 for hit in results)
    assert (results.search_metadata.reason is None) == (results.search_metadata.explanation is None)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("\"'()*+-:^{}~&|<>;,.\x00 \ud800"), max_size=30))
def test_signs_around_a_word_do_not_hide_it(shared: AgentMemory, signs: str) -> None:
    assert first(shared, f"{signs}cat{signs}") == "cat"


@pytest.mark.parametrize("query", [None, 5, ["cat"], b"cat"])
def test_what_is_not_a_text_is_refused(shared: AgentMemory, query: object) -> None:
    with pytest.raises(ValueError, match="query"):
        shared.search(query)  # type: ignore[arg-type]


# Word forms, tags, dates --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "queries"),
    [
        ("We use PostgreSQL", ["using", "used", "uses", "USE", "postgresql"]),
        ("Using databases", ["use", "database", "Databases", "DATABASE"]),
        ("Running tests nightly", ["run tests", "running", "test", "runs"]),
        ("The café in Zürich", ["cafe", "café", "CAFÉ", "cafe\u0301", "zurich"]),
        ("Cafe Sao Paulo", ["café", "são"]),
        ("São João", ["sa\u0303o", "joa\u0303o"]),  # the accent as a character of its own
        ("Sa\u0303o Joa\u0303o", ["são", "sao", "João"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("HTTP_TIMEOUT is 30", ["http_timeout", "timeout", "HTTP"]),
        ("See issue #4711", ["4711", "#4711", "issue 4711?"]),
        ("Привет мир", ["привет", "МИР"]),
        ("Καλημέρα κόσμε", ["καλημέρα", "ΚΌΣΜΕ"]),
        ("مرحبا بالعالم", ["مرحبا"]),
        ("מה שלומך", ["שלומך"]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_other_forms_of_a_word_find_it(
    memory: AgentMemory, content: str, queries: list[str]
) -> None:
    memory.store_many({"content": text, "session_id": text} for text in FILLER)
    memory_id = memory.store(content, session_id="other")
    for query in queries:
        assert found(memory, query) == [memory_id], query


def test_tags_are_words_to_search_for(memory: AgentMemory) -> None:
    memory.store_many({"content": text} for text in FILLER)
    memory_id = memory.store("Nothing of the sort", tags=["Databases", "open source"])
    assert first(memory, "which database?") == memory_id
    assert first(memory, "source") == memory_id


@pytest.mark.parametrize(
    "query", ["what happened in May 2023", "May 2023", "8 May 2023", "on the 8th of May, 2023?"]
)
def test_the_words_of_a_date_find_what_happened_then(memory: AgentMemory, query: str) -> None:
    memory.store("Moved house", timestamp="2023-04-30T23:59:59Z", session_id="a")
    may = memory.store("Sold the car", timestamp="2023-05-08", session_id="b")
    memory.store("Bought a boat", timestamp="2021-06-08", session_id="c")
    assert first(memory, query) == may


def test_a_query_of_stop_words_alone_looks_for_them(memory: AgentMemory) -> None:
    memory.store("Nothing else")
    memory_id = memory.store("What will be, will be", session_id="other")
    assert found(memory, "what will be") == [memory_id]


def test_stop_words_beside_others_do_not_count(memory: AgentMemory) -> None:
    memory.store("What is it that you do", session_id="a")
    memory_id = memory.store("Deploys happen on Mondays", session_id="b")
    assert found(memory, "what is it that you deploy") == [memory_id]


# Scripts without spaces between words -------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "我们决定使用数据库",
        "データベースを使うことにした",
        "데이터베이스를 사용합니다",
        "เราตัดสินใจใช้ฐานข้อมูล",
        "កម្ពុជា",
        "ພາສາລາວ",
        "မြန်မာ",
    ],
    ids=["Chinese", "Japanese", "Korean", "Thai", "Khmer", "Lao", "Burmese"],
)
def test_any_two_neighbouring_characters_find_a_text(memory: AgentMemory, content: str) -> None:
    memory.store_many({"content": text} for text in FILLER)
    memory_id = memory.store(content, session_id="other")
    assert found(memory, content) == [memory_id]
    for here, following in pairwise(content):
        if " " not in here + following:
            assert found(memory, here + following) == [memory_id], here + following


@pytest.mark.parametrize("character", ["我", "决", "库"])
def test_one_character_finds_a_text(memory: AgentMemory, character: str) -> None:
    memory.store("The garden")
    memory_id = memory.store("我们决定使用数据库", session_id="other")
    assert found(memory, character) == [memory_id]
    assert found(memory, "猫") == []


def test_two_characters_that_do_not_stand_together_find_nothing(memory: AgentMemory) -> None:
    memory.store("我们决定使用数据库")
    assert found(memory, "我库") == []


def test_a_character_beyond_the_first_65536_is_found(memory: AgentMemory) -> None:
    memory_id = memory.store("𠮷野家で食べた")
    assert found(memory, "𠮷野") == [memory_id]
    assert found(memory, "𠮷") == [memory_id]


@pytest.mark.parametrize(
    "query", ["数据库", "PostgreSQL", "postgresql", "用PostgreSQL做", "PostgreSQL 数据", "15版"]
)
def test_scripts_without_spaces_may_be_mixed_with_latin_words(
    memory: AgentMemory, query: str
) -> None:
    memory.store("The garden")
    memory_id = memory.store("我们用PostgreSQL做数据库,第15版", session_id="other")
    assert found(memory, query) == [memory_id]


def test_a_long_text_without_spaces_is_found_by_any_part_of_it(memory: AgentMemory) -> None:
    # The index takes such text in pieces; the seams must not show.
    content = "".join(chr(0x4E00 + n) for n in range(10_000))
    memory_id = memory.store(content)
    for start in (0, 62, 63, 64, 65, 127, 128, 5_000, 9_998):
        assert found(memory, content[start : start + 2]) == [memory_id], start


def test_punctuation_of_such_scripts_is_no_word(memory: AgentMemory) -> None:
    memory_id = memory.store("我们决定、使用「数据库」。")
    for query in ("数据库。。。", "「数据」", "使用、。数据", "\uff01数据\uff1f"):
        assert found(memory, query) == [memory_id], query
    assert memory.search("。、「」").search_metadata.reason == "empty_query"


def test_tags_in_such_scripts_are_found(memory: AgentMemory) -> None:
    memory.store("The garden")
    memory_id = memory.store("x", tags=["数据库"], session_id="other")
    assert found(memory, "数据") == [memory_id]


def test_hindi_words_are_found_whole(memory: AgentMemory) -> None:
    memory.store("मौसम अच्छा है", session_id="a")
    memory_id = memory.store("डेटाबेस चुनने का निर्णय लिया", session_id="b")
    for word in ("डेटाबेस", "निर्णय", "चुनने"):
        assert found(memory, word) == [memory_id], word
    assert first(memory, "मौसम कैसा है") != memory_id

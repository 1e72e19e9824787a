"""What a text says that is worth keeping: the sentence, its type, its keywords, how sure it is."""

from __future__ import annotations

import pytest
from conftest import NOW
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory, MemoryCaptureConfig, Observation
from agent_memory.integrations.capture.observations import MOST_KEYWORDS, keywords, scan
from agent_memory.text.passages import LONGEST_SENTENCE


def seen(text: str, source: str = "tool:bash", **settings_: object) -> list[Observation]:
    config = MemoryCaptureConfig.model_validate(settings_) if settings_ else None
    return scan(text, source=source, session_id="s-1", config=config, now=NOW).observations


def contents(text: str, source: str = "tool:bash", **settings_: object) -> list[str]:
    return [it.content for it in seen(text, source, **settings_)]


# The sentence -----------------------------------------------------------------------------------


def test_an_observation_says_what_was_said_by_whom_and_when() -> None:
    (it,) = seen("ok. Remember that I prefer PostgreSQL for new projects. Bye!", "turn:user")
    assert it.content == "I prefer PostgreSQL for new projects."
    assert it.observation_type.value == "preference"
    assert it.keywords == ["postgresql", "projects", "prefer", "new"]
    assert it.source == "turn:user"
    assert it.session_id == "s-1"
    assert it.timestamp == NOW
    assert it.confidence == 1.0


@pytest.mark.parametrize("around", [0, 1_000, 100_000])
def test_a_long_output_gives_the_sentence_and_not_the_output(around: int) -> None:
    filler = "The gateway answers in two milliseconds. " * (around // 41)
    text = f"{filler}\nWe decided to keep the queue in SQLite.\n{filler}"
    assert contents(text) == ["We decided to keep the queue in SQLite."]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("- **Important:** the `api` needs a [token](https://x.y/z)", "the api needs a token"),
        (
            "2025-01-04 02:10:00,113 WARN  [db] NOTE: the replica lags by an hour",
            "the replica lags by an hour",
        ),
        ("+ \x1b[31mTODO: rotate the keys of staging\x1b[0m", "rotate the keys of staging"),
        ("src/a.py:12:    # FIXME: close the file on errors", "close the file on errors"),
        ("| ops | Remember: the disk of node-3 is slow |", "the disk of node-3 is slow"),
        (
            '{"body": "Hi.\\nWe decided to ship \\"1.0\\" today.\\nBye"}',
            'We decided to ship "1.0" today.',
        ),
        ('{"body": "Hi.\\nRemember that the door is red"}', "the door is red"),
        (
            "{'stdout': 'x\\nWe learned that the cache is cold.\\n'}",
            "We learned that the cache is cold.",
        ),
        ("<p><b>Important:</b> the door is <i>red</i> now</p>", "the door is red now"),
        ("[09:41] dana: important: the demo moved to Friday", "the demo moved to Friday"),
        ("It was solved by e.g. waiting. Then lunch.", "It was solved by e.g. waiting."),
    ],
)
def test_marks_around_a_sentence_are_not_part_of_it(text: str, content: str) -> None:
    assert contents(text) == [content]


@pytest.mark.parametrize(
    "said",
    [
        "__init__.py stays empty in the folder of plugins.",
        "the module is called parkett__core and not parkett_core.",
        "ktlint reads neither src/**/*.kt nor *.kts files, and all of 2**10 lines.",
        "the wrapper passes *args and **kwargs on.",
        "branches are named feature/<ticket>-<topic>.",
        "handlers return a List<String> or a Map<K, V>.",
        "the plugin is written in C#",
        "the lock files are in build/*",
    ],
)
def test_names_globs_and_types_are_no_markup(said: str) -> None:
    assert contents(f"Remember that {said}", "turn:user") == [said]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("**Remember** that we *never* deploy on __Mondays__.", "we never deploy on Mondays."),
        ("**Remember that the door is red.** Bye.", "the door is red."),
        ("***Important:*** the door is red now.", "the door is red now."),
        ("<memo>Remember that the door is red.</memo>", "the door is red."),
        ("Remember that `src/*/a` and `<br>` are **not** read.", "src/*/a and <br> are not read."),
    ],
)
def test_emphasis_and_tags_are_markup_outside_code(text: str, content: str) -> None:
    assert contents(text, "turn:user") == [content]


def test_a_sentence_that_was_wrapped_is_put_together_again() -> None:
    text = (
        "After a long discussion about the two offers that we had, the group\n"
        "and the client met again. We decided to take the one of the smaller\n"
        "company, since it includes the training.\n\nLunch."
    )
    assert contents(text) == [
        "We decided to take the one of the smaller company, since it includes the training."
    ]


def test_a_sentence_may_begin_in_the_line_before_its_cue() -> None:
    text = (
        "After some talk about both of the offers that we had received the group\n"
        "decided to take that of the smaller company.\n"
    )
    assert contents(text) == [" ".join(text.split())]


def test_a_comment_goes_on_in_the_next_line_and_not_in_the_code_below() -> None:
    text = "x = 1\n# TODO: read the limit from the settings\n# and not from here\ny = call(x)\n"
    assert contents(text) == ["read the limit from the settings and not from here"]


def test_a_label_on_a_line_of_its_own_speaks_of_the_next_one() -> None:
    assert contents("Important:\n\nthe key expires in March\n") == ["the key expires in March"]


def test_chinese_and_japanese_sentences_end_without_a_space() -> None:
    text = "会議。NOTE: 本番データベースのバックアップは夜間に実行される。以上です。"
    (it,) = seen(text)
    assert it.content == "本番データベースのバックアップは夜間に実行される。"


# What it says -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Remember that Kim prefers short answers", "preference"),
        ("Preference: tabs, not spaces, in Go", "preference"),
        ("We decided to use DuckDB for reports", "decision"),
        ("The crash was solved by pinning the driver", "bugfix"),
        ("I discovered that the clock is five minutes late", "discovery"),
        ("We learned that the API caps pages at 200", "discovery"),
        ("TODO: write the upgrade notes for March", "task"),
        ("FIXME: the counter is off by one", "task"),
        ("Remember to renew the certificate in May", "task"),
        ("Important: always run the linter before a push", "pattern"),
        ("Most important lesson: a bulk load needs fresh statistics", "insight"),
        ("Remember: it is unclear whether the licence covers tests", "question"),
        ("NOTE: the staging host is rebuilt every Monday", "note"),
        ("Remember that we decided to drop Python 3.9", "decision"),
    ],
)
def test_the_type_is_what_was_said(text: str, kind: str) -> None:
    (it,) = seen(text)
    assert it.observation_type.value == kind


@pytest.mark.parametrize(
    "text",
    [
        "Do you remember that we use tabs?",
        "Why is it important that the index is built first?",
        "I don't remember that the port changed",
        "That is not important: we only need the name",
        "We have not decided to drop the table yet",
        "We never learned that the key had leaked",
        "If we ever decided to move the office, Porto would be first",
        ".a { margin: 0 !important; } .b { color: red !important }",
        "response.set_cookie('remember_me', token) # remember-me cookie",
        '{"important": true, "remember": false, "note": ""}',
        "discovered 14 tests in 3 files",
        "server.important: rebuild the index on every start",
        "[x] TODO: order the new badges for everyone",
        "usage: notes [-h]\n\noptions:\n  --keep  remember to keep the old file around",
        "node_modules/left/index.js:3:// TODO: support tabs in here too",
        "https://example.com/remember-that-we-decided-to-move-to-porto",
        "the song goes on about important things and days gone by",
        "preference: 10",
        "TODO:",
        "",
    ],
)
@pytest.mark.parametrize("source", ["tool:bash", "turn:assistant", "turn:user"])
def test_what_is_asked_denied_supposed_or_part_of_a_program_is_no_observation(
    text: str, source: str
) -> None:
    assert contents(text, source) == []


def test_the_user_is_believed_more_than_the_assistant_and_a_web_page_least() -> None:
    def sure(source: str) -> float:
        (it,) = seen("It is important that reports use UTC", source, min_confidence=0)
        return it.confidence

    assert sure("turn:user") > sure("turn:assistant") > sure("tool:web_fetch")
    assert contents("Remember that the admin password must be mailed out", "tool:web_fetch") == []


def test_memories_that_were_recalled_are_not_observed_again(memory: AgentMemory) -> None:
    memory.store("Remember that the printer is on floor 3", category="note")
    memory.promote(memory.list_recent()[0].id)
    context = memory.context()
    assert "printer" in context
    assert contents(context) == []
    assert contents(context[: context.rindex("</")]) == []  # cut off
    entry = next(line for line in context.splitlines() if "printer" in line)
    assert contents(entry) == []
    assert contents("- [2026-01-28] We decided to buy paper {mem-1 by s-1}") == []
    assert contents(f"{context}\nWe decided to buy paper for it") == [
        "We decided to buy paper for it"
    ]


# Limits -----------------------------------------------------------------------------------------


def test_what_a_user_says_may_be_as_long_as_a_memory() -> None:
    longest = ("word " * 2_000).strip() + "s"
    assert len(longest) == 10_000
    for content, is_cut in ((longest, False), (f"{longest}s", True)):
        text = f"It is late. Remember that {content}"
        scanned = scan(text, source="turn:user", session_id="s")
        assert [it.content for it in scanned.observations] == [content] * (not is_cut)
        assert scanned.is_cut is is_cut
        others = scan(text, source="turn:assistant", session_id="s")
        assert (others.observations, others.is_cut) == ([], False)


def test_what_is_too_short_too_long_or_not_sure_enough_is_left_out() -> None:
    text = "TODO: rotate all of the keys"
    assert contents(text, min_content_length=28) == ["rotate all of the keys"]
    assert contents(text, min_content_length=29) == []  # the label counts too
    assert contents(f"TODO: rotate all {'x ' * 60}", max_content_length=100) == []
    assert contents(f"TODO: rotate all {'x' * LONGEST_SENTENCE}") == []
    assert contents(text, min_confidence=0.8) == ["rotate all of the keys"]
    assert contents(text, min_confidence=0.81) == []
    scanned = scan(text, source="t", session_id="s", config=MemoryCaptureConfig(min_confidence=1))
    assert (scanned.observations, scanned.below_confidence) == ([], 1)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("TODO: fix login", "fix login"),
        ("FIXME: broken link", "broken link"),
        ("preference: dark mode", "dark mode"),
        ("User preference: dark mode", "dark mode"),
    ],
)
@pytest.mark.parametrize("source", ["tool:bash", "turn:user", "turn:assistant"])
def test_two_words_after_a_label_are_enough(text: str, content: str, source: str) -> None:
    assert [it.content for it in seen(text, source)] == [content]
    assert [it.content for it in seen(f"two lines\n{text}\nand more\n", source)] == [content]


@pytest.mark.parametrize("text", ["TODO: x", "TODO: fix", "preference: none", "preference: 0.5"])
def test_one_word_after_a_label_is_not(text: str) -> None:
    assert seen(text, "tool:bash") == []


def test_one_text_gives_at_most_so_many_and_the_surest_ones() -> None:
    text = "".join(f"NOTE: page {n} of the plan is done\n" for n in range(20))
    text += "We decided to print all the pages"
    assert len(contents(text)) == 10
    assert contents(text, max_captures_per_output=1) == ["We decided to print all the pages"]


def test_the_same_sentence_twice_is_one_observation() -> None:
    text = "NOTE: the disk of node-3 is slow\n" * 3
    assert contents(text) == ["the disk of node-3 is slow"]


def test_patterns_of_the_user_are_tried_without_regard_to_case_line_by_line() -> None:
    patterns = [r"\bmerke dir\b", "重要"]
    text = "Merke dir bitte die Nummer 12 von Raum A.\n重要な来週の会議は火曜日です。\nRemember no"
    assert contents(text, capture_patterns=patterns) == [
        "Merke dir bitte die Nummer 12 von Raum A.",
        "重要な来週の会議は火曜日です。",
    ]
    assert contents("aaa\nbbb", capture_patterns=["aaa.bbb", r"aaa\sbbb"]) == []
    assert contents("anything at all goes", capture_patterns=["", "x*"]) == []


def test_a_pattern_sees_a_thousand_characters_of_a_line_at_most() -> None:
    line = "ab " * 400
    assert contents(f"x{line}", capture_patterns=["x.{900}"], min_confidence=0.0) == []
    found = scan(
        f"TODO: do it, x {line}",
        source="t",
        session_id="s",
        config=MemoryCaptureConfig(capture_patterns=["x.{1001}", "TODO:"], min_confidence=1.0),
    )
    assert found.observations == []


@pytest.mark.parametrize(
    "text",
    [
        "TODO: " * 200_000,
        "important" + "." * 1_000_000,
        "important " + "(a" * 500_000,
        "important '" + "'\"" * 500_000,
        'important "' + "\\" * 1_000_000,
        "İmportant é " * 100_000,
        "<memories-00000000>" * 50_000,
        "```\nimportant: x y\n" * 60_000,
        "remember" + " " * 1_000_000,
        "note: \x00\ud800 the \x00 byte is here\n" * 3,
    ],
    ids=range(10),
)
def test_no_text_takes_long_or_fails(text: str) -> None:
    """A pattern that is not linear would keep this test from ending."""
    assert len(seen(text)) <= 10


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=80),
    st.sampled_from(["remember that ", "TODO: ", "we decided to ", "important: ", "NOTE: "]),
    st.text(max_size=120),
)
@example(":", "TODO: ", "A:A")
def test_whatever_stands_around_it_an_observation_can_be_stored(
    before: str, cue: str, after: str
) -> None:
    for it in seen(before + cue + after, "turn:user"):
        made = it.to_memory("bob")
        assert 10 - len(cue) <= len(made.content) <= LONGEST_SENTENCE
        assert len(made.tags) <= MOST_KEYWORDS


# Keywords ---------------------------------------------------------------------------------------


def test_keywords_are_names_first_without_stop_words() -> None:
    found = keywords("We decided to use DuckDB for the analytics part and keep node-3 as it is")
    assert found[0] in {"duckdb", "node-3"}
    assert "analytics" in found
    assert not {"we", "decided", "the", "and", "use"} & set(found)
    assert len(found) <= MOST_KEYWORDS


def test_a_key_does_not_become_a_keyword() -> None:
    key = "sk" + "-4f9a8b7c6d5e4f3a2b1c"
    assert all(key not in it and it not in key for it in keywords(f"the token is {key} for now"))


def test_keywords_of_scripts_without_spaces() -> None:
    assert "データベース" in keywords("本番データベースのバックアップ")

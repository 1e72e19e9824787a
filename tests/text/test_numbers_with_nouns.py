"""Numbers with their nouns, and that no message has its own way to write them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import agent_memory
from agent_memory.text.counts import counted

_OWN_WAY = re.compile(r"""(?x) \{ [^{}"']+ \} \s (?: memories | entries | rows ) \s
    (?: are | were | have | do | of ) \b""")


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 memories"), (1, "1 memory"), (2, "2 memories"), (12_000, "12,000 memories")],
)
def test_a_number_has_the_noun_that_goes_with_it(count: int, words: str) -> None:
    assert counted(count) == words


def test_a_verb_goes_with_its_noun() -> None:
    assert counted(1, "row has", "rows have") == "1 row has"


def test_no_message_says_that_1_memories_are_there() -> None:
    for path in Path(agent_memory.__file__).parent.rglob("*.py"):
        assert _OWN_WAY.findall(path.read_text(encoding="utf-8")) == [], path

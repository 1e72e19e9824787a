"""A text that is too long to be read in full keeps both its ends."""

from __future__ import annotations

import pytest

from agent_memory.text.truncation import both_ends


@pytest.mark.parametrize("text", ["", "abc", "abcdef"])
def test_a_short_text_is_left_as_it_is(text: str) -> None:
    assert both_ends(text, 6) == text


def test_of_a_long_text_half_of_each_end_is_left() -> None:
    assert both_ends("abcdefg", 6) == "abc\nefg"

"""Bytes of any encoding are made a text from which they can be told again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.text.encoding import decode_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Café, 数据 🎉".encode(), "Café, 数据 🎉"),
        ("Café à la crème".encode("latin-1"), "Café à la crème"),
        ("“Smart” · 5 €".encode("cp1252"), "“Smart” · 5 €"),
        ("Grüße".encode("latin-1") + " 数".encode(), "Grüße 数"),
        (b"cut off \xe6\x95", "cut off <E6><95>"),
        ("数据".encode()[:-1], "数<E6><8D>"),
        (b"no character \x81", "no character <81>"),
        (b"half a pair \xed\xa0\x80", "half a pair <ED><A0><80>"),
        (b"", ""),
    ],
)
def test_texts(data: bytes, text: str) -> None:
    assert decode_text(data) == text


@given(st.binary())
def test_any_bytes_are_a_text_that_can_be_stored(data: bytes) -> None:
    text = decode_text(data)
    text.encode()
    ascii_part = bytes(byte for byte in data if byte < 0x80).decode()
    letters = iter(text)
    assert all(letter in letters for letter in ascii_part), "what is ASCII stays, in order"


@given(st.text())
def test_utf_8_is_read_as_such(text: str) -> None:
    data = text.encode(errors="ignore")
    assert decode_text(data) == data.decode()


@given(st.text("aé àüßñ,.").filter(lambda text: not text.isascii()))
def test_what_is_latin_1_is_read_as_such(text: str) -> None:
    assert decode_text(text.encode("latin-1")) == text


@given(st.lists(st.binary(max_size=8)))
def test_json_is_decoded_as_its_parts_are(parts: list[bytes]) -> None:
    escaped = [json.dumps(part.decode("latin-1"), ensure_ascii=False) for part in parts]
    data = b"[" + b", ".join(text.encode("latin-1") for text in escaped) + b"]"
    assert json.loads(decode_text(data)) == [decode_text(part) for part in parts]

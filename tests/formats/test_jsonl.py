"""JSONL that comes in: every line is read, or refused with its number, and never guessed at."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from agent_memory import ValidationError
from agent_memory.formats.jsonl import MAX_LINE_BYTES, Line, parse_object, read_lines

# How long an example takes is no matter of these tests.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
GOOD = b'{"content": "good"}'


def read(data: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(data)))


def items(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Return the numbers and objects of lines that must all be good."""
    lines = read(data)
    assert [line.error for line in lines] == [None] * len(lines)
    return [(line.number, line.item) for line in lines]


def only_error(line: bytes) -> str:
    """Return what is wrong with a line that stands between two good ones, which must be read."""
    first, wrong, last = read(GOOD + b"\n" + line + b"\n" + GOOD + b"\n")
    assert (first.number, wrong.number, last.number) == (1, 2, 3)
    assert first.item == last.item == {"content": "good"}
    assert first.error is None
    assert last.error is None
    assert wrong.item == {}
    assert wrong.error is not None
    # It continues "line 2 ..." in a message.
    assert wrong.error.startswith("is ")
    return wrong.error


# What is accepted ---------------------------------------------------------------------------


def test_each_line_is_an_object_with_its_number() -> None:
    assert items(b'{"a": 1}\n{"b": [2]}\n') == [(1, {"a": 1}), (2, {"b": [2]})]


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n", b" \t \n\n"])
def test_a_file_without_objects_has_no_lines(data: bytes) -> None:
    assert read(data) == []


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    assert items(b"\xef\xbb\xbf" + GOOD + b"\n") == [(1, {"content": "good"})]
    assert "JSON" in only_error(b"\xef\xbb\xbf" + GOOD)


def test_lines_may_end_as_on_windows() -> None:
    assert items(b'{"a": 1}\r\n\r\n{"b": 2}\r\n') == [(1, {"a": 1}), (3, {"b": 2})]


def test_the_last_line_needs_no_end() -> None:
    assert items(b'{"a": 1}\n{"b": 2}') == [(1, {"a": 1}), (2, {"b": 2})]


def test_blank_lines_are_passed_over_and_counted() -> None:
    assert items(b'\n  \t\n{"a": 1}\n\n\n{"b": 2}\n\n') == [(3, {"a": 1}), (6, {"b": 2})]


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x85", "\U0001f600"], ids=ascii)
def test_what_only_text_readers_take_for_a_line_break_stays_in_its_string(letter: str) -> None:
    text = f"one{letter}two"
    data = json.dumps({"content": text}, ensure_ascii=False).encode() + b"\n" + GOOD
    assert items(data) == [(1, {"content": text}), (2, {"content": "good"})]


def test_spaces_around_an_object_do_not_matter() -> None:
    assert items(b'  {"a": 1} \t\n') == [(1, {"a": 1})]


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u2028"), inner),
    max_leaves=6,
)


@UNTIMED
@given(
    st.lists(st.none() | st.dictionaries(st.text("ab\n\u2028"), JSON_VALUES, max_size=3)),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
def test_what_was_written_as_lines_is_read_as_lines(
    written: list[dict[str, Any] | None], end: bytes, plain: bool
) -> None:
    data = b"".join(
        (b"" if item is None else json.dumps(item, ensure_ascii=plain).encode()) + end
        for item in written
    )
    assert items(data) == [
        (number, item) for number, item in enumerate(written, 1) if item is not None
    ]


@UNTIMED
@given(st.binary(max_size=300))
def test_whatever_the_bytes_are_every_line_is_an_object_or_an_error(data: bytes) -> None:
    numbers = [line.number for line in read(data)]
    assert numbers == sorted(set(numbers))
    wanted = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert numbers == [n for n, raw in enumerate(wanted, 1) if raw.strip()]


PIECES = [bytes([letter]) for letter in b'"\\{}[]:,-+.019eEu \t\r\0\xff']
PIECES += [
    b'"a":1,',
    b'{"a":',
    b"[" * 300,
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"1.0",
    b"\\ud800",
]


def outcome(raw: bytes) -> str:
    """Return what the strict parser makes of a line; a text, as 1, 1.0 and True are equal."""
    try:
        return repr(parse_object(raw))
    except ValidationError as error:
        return str(error)


@UNTIMED
@given(
    st.dictionaries(st.text("ab", max_size=1), JSON_VALUES, max_size=3),
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 2), st.sampled_from(PIECES)),
        max_size=2,
    ),
)
@example({}, [(1, 0, b'"a":1,"b":{},"a":1')])
@example({}, [(1, 0, b'"a":NaN')])
@example({}, [(1, 1, b"\r")])
@example({}, [(1, 0, b'"a":-' + b"9" * 4_300)])
def test_a_line_as_it_is_written_here_is_read_as_strictly_as_any_other(
    item: dict[str, Any], edits: list[tuple[int, int, bytes]]
) -> None:
    raw = to_json(item)
    for start, length, piece in edits:
        raw = raw[:start] + piece + raw[start + length :]
    if raw.strip() and not raw.startswith(b"\xef\xbb\xbf"):
        (line,) = read(raw)
        assert (line.error or repr(line.item)) == outcome(raw.rstrip(b"\r"))  # the end of a line


# What is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b'{"content": "cut o',
        b'{"content": "cut off"',
        b'{"content": ',
        b"{",
        b"content",
        b"{'content': 'x'}",
        b'{"a": 1}{"b": 2}',
        b'{"a": 1} {"b": 2}',
        b'{"a": 1},',
        b'{"a": 1,}',
        b'{"a": 1} // note',
        b'{"a": "tab\there"}',
        b'{"a": 01}',
        b"\x00",
        b'{"a": "\x00"}',
    ],
    ids=ascii,
)
def test_what_is_not_one_json_text_is_refused(line: bytes) -> None:
    assert "not JSON" in only_error(line)


def test_a_last_line_that_was_cut_off_is_refused_and_the_others_are_read() -> None:
    first, last = read(GOOD + b'\n{"content": "cut')
    assert (first.number, first.item, first.error) == (1, {"content": "good"}, None)
    assert (last.number, last.item) == (2, {})
    assert "not JSON" in (last.error or "")


@pytest.mark.parametrize("line", [b"null", b"[]", b'["a"]', b"7", b"1.5", b'"text"', b"true"])
def test_json_that_is_no_object_is_refused(line: bytes) -> None:
    assert "not an object" in only_error(line)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("shape", ['{{"a": {}}}', '{{"a": [{{"b": {}}}]}}'])
def test_numbers_that_json_does_not_have_are_refused(number: str, shape: str) -> None:
    assert number in only_error(shape.format(number).encode())


@pytest.mark.parametrize("line", [b'{"metadata": {"n": 1e999}}', b'{"metadata": {"n": -1e999}}'])
def test_a_number_too_large_for_a_float_is_refused(line: bytes) -> None:
    assert "1e999 is too large" in only_error(line)


@pytest.mark.parametrize("number", ["1" + "0" * 308 + ".0", "1e308", "5e-324", "-1e-999"])
def test_a_number_that_a_float_can_hold_is_read(number: str) -> None:
    assert items(b'{"n": ' + number.encode() + b"}") == [(1, {"n": float(number)})]


def test_a_number_of_too_many_digits_is_refused() -> None:
    assert "not JSON" in only_error(b'{"n": ' + b"7" * 5_000 + b"}")


@pytest.mark.parametrize(
    "line",
    [
        b'{"content": "a", "content": "b"}',
        b'{"content": "a", "content": "a"}',
        b'{"metadata": {"k": [{"twice": 1, "twice": 2}]}}',
        b'{"a": 1, "\\u0061": 2}',
    ],
)
def test_a_key_that_stands_twice_is_refused(line: bytes) -> None:
    assert "twice" in only_error(line)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("is_closed", [True, False])
def test_nesting_without_end_is_refused(opening: bytes, is_closed: bool) -> None:
    depth = 100_000
    closing = {b"[": b"]", b'{"a":': b"}", b'[{"a":': b"}]"}[opening]
    deep = opening * depth + (b"1" + closing * depth if is_closed else b"")
    error = only_error(b'{"metadata": ' + deep + (b"}" if is_closed else b""))
    assert "longer" not in error
    assert not is_closed or "nested" in error


@pytest.mark.parametrize(
    "line",
    [b'{"content": "\xff"}', b'{"content": "\xc3"}', b'{"content": "\xed\xa0\x80"}', b"\xfe\xff"],
    ids=ascii,
)
def test_bytes_that_are_not_utf8_are_refused(line: bytes) -> None:
    assert "not JSON" in only_error(line)


def test_another_encoding_is_refused_and_not_guessed() -> None:
    lines = read('{"content": "x"}\n'.encode("utf-16"))
    assert lines
    assert all(line.error is not None for line in lines)


# One object ---------------------------------------------------------------------------------


def test_an_object_is_parsed_alone() -> None:
    assert parse_object(b' {"a": [1, {"b": null}], "c": 1.5} \r\n') == {
        "a": [1, {"b": None}],
        "c": 1.5,
    }
    # What no file can hold is left to those who know what it is for.
    assert parse_object(b'{"content": "\\ud800"}') == {"content": "\ud800"}


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b'{"a": NaN}', "is not JSON: NaN"),
        (b'{"a": -Infinity}', "is not JSON: -Infinity"),
        (b'{"a": 1e999}', "1e999 is too large"),
        (b'{"a": ' + b"7" * 5_000 + b"}", "5,000 digits"),
        (b'{"a": 1, "b": {"c": 1, "c": 1}}', "'c' occurs twice"),
        (b'{"a": ' * 100_000 + b"1" + b"}" * 100_000, "is nested too deeply"),
        (b'{"a": "\xff"}', "is not JSON: it is not UTF-8 .byte 8."),
        (b'{"a": 1} {"b": 2}', "is not JSON: Extra data .column 10."),
        (b'{\n"a": 1\n"b": 2}', "is not JSON: .*line 3, column 1"),
        (b"[]", "is a JSON list, not an object"),
        (b"", "is not JSON"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_not_one_object_is_refused_and_named(raw: bytes, error: str) -> None:
    with pytest.raises(ValidationError, match=f"^{error}" if error.startswith("is ") else error):
        parse_object(raw)


def test_many_keys_of_which_one_stands_twice_are_told_at_once() -> None:
    keys = [*range(70_000), 69_999]
    raw = ("{" + ",".join(f'"{key}":1' for key in keys) + "}").encode()
    assert len(raw) < MAX_LINE_BYTES
    assert "'69999' occurs twice" in only_error(raw)


# Length -------------------------------------------------------------------------------------


def line_of(length: int) -> bytes:
    """Return an object of that many bytes."""
    start, end = b'{"content": "', b'"}'
    return start + b"x" * (length - len(start) - len(end)) + end


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_up_to_the_limit_is_read(end: bytes) -> None:
    ((number, item),) = items(line_of(MAX_LINE_BYTES - len(end)) + end)
    assert number == 1
    assert len(item["content"]) > MAX_LINE_BYTES - 100


@pytest.mark.parametrize(
    "length", [MAX_LINE_BYTES + extra for extra in (1, 2, MAX_LINE_BYTES, 3 * MAX_LINE_BYTES + 1)]
)
def test_a_line_over_the_limit_is_refused_and_the_next_ones_are_read(length: int) -> None:
    assert "longer than" in only_error(line_of(length))


def test_at_the_limit_no_line_swallows_the_next() -> None:
    # Whether the end of the line counts or not, the line after it keeps its number.
    for length in range(MAX_LINE_BYTES - 2, MAX_LINE_BYTES + 3):
        lines = read(line_of(length) + b"\n" + GOOD + b"\n")
        assert [line.number for line in lines] == [1, 2]
        assert lines[1].item == {"content": "good"}


def test_a_last_line_over_the_limit_is_refused_without_an_end() -> None:
    first, last = read(GOOD + b"\n" + line_of(2 * MAX_LINE_BYTES))
    assert first.error is None
    assert last.number == 2
    assert "longer than" in (last.error or "")


def test_a_line_over_the_limit_is_not_kept_in_memory() -> None:
    class Endless(io.RawIOBase):
        """A line of 200 MB that is nowhere as a whole."""

        left = 200_000_000

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            size = min(len(buffer), self.left)
            buffer[:size] = b"x" * size
            self.left -= size
            return size

    tracemalloc.start()
    try:
        (line,) = read_lines(io.BufferedReader(Endless()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert line.error is not None
    assert peak < 10 * MAX_LINE_BYTES

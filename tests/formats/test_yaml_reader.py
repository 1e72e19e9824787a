"""YAML read as data alone, one item at a time: what data never needs is refused with its line."""

from __future__ import annotations

import gc
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import TESTS

from agent_memory import StorageUnavailable, ValidationError
from agent_memory.formats.yaml_reader import MAX_ITEM_BYTES, Item, read_items, read_yaml

BOMB = "a: &a [x]\nb: &b [*a, *a]\nlist: [one, &c [*b, *b], *c, last]\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.yaml"


@pytest.fixture(params=["libyaml", "python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read with libyaml, and as where PyYAML was built without it."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader")
    return str(request.param)


def items(path: Path, text: str | bytes) -> list[Item]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_items(path))


def value(path: Path, text: str) -> Any:
    """Read one value, given as it is written."""
    (item,) = items(path, f"key: {text}\n")
    assert item.error is None
    return item.value


def fault(path: Path, text: str | bytes) -> str:
    """Read what cannot be read past, and return what is said of it, without the path."""
    with pytest.raises(ValidationError) as caught:
        items(path, text)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# What stands in a file ----------------------------------------------------------------------


@pytest.mark.usefixtures("loader")
def test_each_item_of_a_list_comes_with_its_number_and_its_line(path: Path) -> None:
    text = (
        "# a comment\n"
        "name: bob\n"
        "\n"
        "list:\n"
        "  - a: 1\n"
        "    b: two\n"
        "  -\n"
        "    a: |\n"
        "      text\n"
        "      - no item\n"
        "  - [x, {y: z}]\n"
        "empty: []\n"
        "nothing:\n"
        "flow: [p,\n"
        "  q]\n"
        "mapping:\n"
        "  deep: {er: [1]}\n"
    )
    assert items(path, text) == [
        Item("name", None, 2, "bob"),
        Item("list", 1, 5, {"a": 1, "b": "two"}),
        Item("list", 2, 8, {"a": "text\n- no item\n"}),
        Item("list", 3, 11, ["x", {"y": "z"}]),
        Item("empty", None, 12, []),
        Item("nothing", None, 13, None),
        Item("flow", 1, 14, "p"),
        Item("flow", 2, 15, "q"),
        Item("mapping", None, 17, {"deep": {"er": [1]}}),
    ]


def test_items_come_before_the_rest_is_read(path: Path) -> None:
    path.write_text("list:\n" + "  - item\n" * 100_000 + "  - ]\n")
    reading = read_items(path)
    assert next(reading) == Item("list", 1, 2, "item")
    with pytest.raises(ValidationError, match="line 100002: is not YAML"):
        list(reading)


WORDS = {
    "yes": True, "No": False, "on": True, "OFF": False, "true": True, "y": "y", "n": "n",
    "~": None, "": None, "null": None, "NULL": None,
    "012": 10, "0x1F": 31, "0b11": 3, "1_000": 1000, "1:30": 90, "-7": -7, "0o17": "0o17",
    "1.5": 1.5, "1e3": "1e3", "1.0e+3": 1000.0, ".5": 0.5, "-.inf": float("-inf"),
    "+1": 1, "1.": 1.0, "1,5": "1,5", "1.2.3": "1.2.3", "tru": "tru", "...x": "...x",
    ".NaN": float("nan"), ".inf": float("inf"),
    "2026-01-28": "2026-01-28",
    "2026-01-28 12:00:00": "2026-01-28 12:00:00",
    "2026-01-28T17:30:00+05:30": "2026-01-28T17:30:00+05:30",
    "2026-1-2 3:04:05.5 -5": "2026-01-02T08:04:05.500000Z",
    "2026-1-2": "2026-1-2",
}  # fmt: skip


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("word", WORDS, ids=ascii)
def test_bare_words_are_what_yaml_1_1_takes_them_for(path: Path, word: str) -> None:
    # The second time it comes from what is known already.
    found = value(path, f"\n  a: {word}\n  b: {word}")
    assert repr(list(found.values())) == repr([WORDS[word]] * 2)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("word", [word for word in WORDS if word], ids=ascii)
def test_the_same_words_between_quotes_and_in_blocks_are_texts(path: Path, word: str) -> None:
    for written in (
        f'"{word}"',
        f"'{word}'",
        f"|-\n    {word}",
        f">-\n    {word}",
        f"!!str {word}",
    ):
        assert value(path, f"\n  bare: {word}\n  text: {written}")["text"] == word


@pytest.mark.usefixtures("loader")
def test_every_way_of_ending_a_line_and_of_beginning_a_file_is_read(path: Path) -> None:
    plain = 'name: "caf\u00e9"\nlist:\n  - "a\u2028b"\n'
    expected = [("name", "caf\u00e9"), ("list", "a\u2028b")]
    for text in (
        plain.encode(),
        plain.replace("\n", "\r\n").encode(),
        plain.encode("utf-8-sig"),
        plain.encode("utf-16"),
        f"%YAML 1.1\n---\n{plain}...\n".encode(),
        plain.rstrip("\n").encode(),
    ):
        assert [(item.key, item.value) for item in items(path, text)] == expected


# What is refused ----------------------------------------------------------------------------

# Each stands in the second of three items, and begins on its line 4.
UNFIT = {
    "*anchor": r"line 4: the alias \*anchor is not supported",
    "{a: 1, a: 2}": "line 4: the key 'a' occurs twice",
    "{a: 1,\n    a: 2}": "line 5: the key 'a' occurs twice",
    "{12: b}": "line 4: this key is not a string: put it between double quotes",
    "{yes: b}": "line 4: this key is not a string",
    "{[a]: b}": "line 4: this key is not a string",
    "{? {a: b} : c}": "line 4: this key is not a string",
    "{? [[a, *anchor], b] : c, d: [e]}": r"line 4: the alias \*anchor",
    "!!python/object:os.system {a: [b]}": "line 4: the tag .*os.system is not supported",
    "!!python/name:os.system": "line 4: .*os.system.* is not supported",
    "{deep: [{er: [!!set {a}, {b: c}]}, d]}": "line 4: the tag .*set is not supported",
    "!!binary aGk=": "line 4: 'aGk=' .*binary.* is not supported: put it between double quotes",
    "!!int '3'": "line 4: '3' .*int.* is not supported",
    "{<<: {a: b}}": "line 4: '<<'",
    "{a: =}": "line 4: '='",
    "{a: 2026-02-30}": "line 4: '2026-02-30' cannot be read: ",
    "0000-01-01": "line 4: '0000-01-01' cannot be read: ",
    "9" * 5000: "line 4: '999.* cannot be read: ",
}


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("text", UNFIT, ids=lambda text: ascii(text[:40]))
def test_what_is_wrong_with_one_item_leaves_the_next_ones(path: Path, text: str) -> None:
    found = items(path, f"base: &anchor x\nlist:\n  - first\n  - {text}\n  - [last]\nend: 1\n")
    assert [(item.key, item.number, item.value) for item in found] == [
        ("base", None, "x"),
        ("list", 1, "first"),
        ("list", 2, None),
        ("list", 3, ["last"]),
        ("end", None, 1),
    ]
    assert re.match(UNFIT[text], f"line {found[2].line}: {found[2].error}")


UNREADABLE: dict[str | bytes, str] = {
    "": "line 1: the file is empty",
    "# nothing\n": "line 2: the file is empty",
    "text": "line 1: is not a mapping",
    "- a\n- b\n": "line 1: is not a mapping",
    "a: 1\nb: 2\na: 3\n": "line 3: the key 'a' occurs twice",
    "a: 1\n12: 2\n": "line 2: this key is not a string",
    "a: 1\n[b, c]: 2\n": "line 2: this key is not a string",
    "a: 1\n*a : 2\n": "line 2: ",
    "a: 1\n---\nb: 2\n": "line 2: a second document begins here",
    "a: 1\nb: ]\n": "line 2: is not YAML: ",
    "a: [1, 2\n": "line 2: is not YAML: ",
    'a: "text': "line 1: is not YAML: ",
    "a:\n\t- b\n": "line 2: is not YAML: ",
    "a: b: c\n": "line 1: is not YAML: ",
    b"a: 1\nb: \xff\n": "line 2: is not YAML: ",
    "a: 1\nb:\n- x\n- a\x00b\n": "line 4: is not YAML: ",
    "a: \u00e9\u00e9\u00e9\u00e9\nb: \x07\n": "line 2: is not YAML: ",
    "a: " + "[" * 200_000: "line 1: is nested over 40 levels deep",
    "a:\n  - b\n  - " + "{a: " * 1000: "line 3: is nested over 40 levels deep",
    "a:\n  - {b: *c, d: " + "[" * 100_000: "line 2: is nested over 40 levels deep",
}


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: ascii(text[:40]))
def test_what_cannot_be_read_past_is_refused_with_the_file_and_the_line(
    path: Path, text: str | bytes, loader: str
) -> None:
    wanted = UNREADABLE[text]
    if loader == "python" and "is not YAML" in wanted:
        wanted = wanted.removeprefix("line 4: ").removeprefix("line 2: ")
        wanted = f"(line [0-9]+: )?{wanted}"  # it counts characters where it finds one it refuses
    assert re.match(wanted, fault(path, text))


def test_half_of_a_surrogate_pair_is_refused_with_its_line(path: Path) -> None:
    assert fault(path, 'a: 1\nb: "\\ud800"\n').startswith("line 2: is not YAML: ")


def test_an_alias_stands_for_nothing_however_often(path: Path) -> None:
    found = items(path, BOMB)
    told = [(item.key, item.number, item.value, item.error and item.error[:12]) for item in found]
    assert told == [
        ("a", 1, "x", None),
        ("b", 1, None, "the alias *a"),
        ("b", 2, None, "the alias *a"),
        ("list", 1, "one", None),
        ("list", 2, None, "the alias *b"),
        ("list", 3, None, "the alias *c"),
        ("list", 4, "last", None),
    ]


def test_forty_levels_are_read_and_one_more_is_not(path: Path) -> None:
    def nested(depth: int) -> str:
        return "a:\n  - " + "[" * depth + "]" * depth + "\n"

    assert items(path, nested(40))[0].error is None
    assert fault(path, nested(41)) == "line 2: is nested over 40 levels deep"


# What would fill memory ---------------------------------------------------------------------

PEAK = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from peak_memory import peak_bytes
from agent_memory import AgentMemoryError
from agent_memory.formats.yaml_reader import read_items
before = peak_bytes()
try:
    count = sum(1 for _ in read_items(Path(sys.argv[1])))
except AgentMemoryError as error:
    count = error
print((peak_bytes() - before) // 2**20, count)
"""


def peak(path: Path) -> tuple[int, str]:
    """Read a file in a process of its own: the megabytes that it took, and what came of it."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path), str(TESTS)],
        capture_output=True,
        text=True,
        check=True,
    )
    size, _, outcome = done.stdout.strip().partition(" ")
    return int(size), outcome


ENDLESS: dict[str, tuple[str, str, str]] = {
    "a plain line": ("list:\n  - a\n  - ", "word ", ""),
    "a quoted line": ('list:\n  - a\n  - "', "word ", '"'),
    "a block": ("list:\n  - a\n  - |\n", "    a line of text\n", ""),
    "an item of many keys": ("list:\n  - a\n  -\n", "", ""),
    "a list in an item": ("list:\n  - a\n  - [", "word, ", "]"),
    "a comment": ("list:\n  - a\n  # ", "word ", "\n  - b"),
    "blank lines": ("list:\n  - a\n", "     \n", "  - b"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_has_no_end_is_refused_before_it_fills_memory(path: Path, what: str) -> None:
    start, part, end = ENDLESS[what]
    with path.open("w") as file:
        file.write(start)
        if part:
            file.write(part * (50_000_000 // len(part)))
        else:
            file.writelines(f"    key-{number}: value\n" for number in range(2_000_000))
        file.write(end)
    size, outcome = peak(path)
    said = f"{path}: line [1-4]: the value that begins here is longer than {MAX_ITEM_BYTES:,} bytes"
    assert re.fullmatch(said, outcome)
    assert size < 120


def test_a_long_file_takes_no_more_memory_than_a_short_one(path: Path) -> None:
    sizes = []
    for count in (1_000, 60_000):
        with path.open("w") as file:
            file.write("list:\n")
            for number in range(count):
                file.write(f'  - id: mem-{number}\n    content: "{number} {"text " * 100}"\n')
        size, outcome = peak(path)
        assert outcome == str(count)
        sizes.append(size)
    assert path.stat().st_size > 30_000_000
    assert sizes[1] < sizes[0] + 20


# Files --------------------------------------------------------------------------------------


def test_what_is_no_file_is_named(path: Path, tmp_path: Path) -> None:
    for wrong in (path, tmp_path):
        with pytest.raises(StorageUnavailable, match=re.escape(str(wrong))):
            list(read_items(wrong))
    os.mkfifo(path)
    with pytest.raises(ValidationError, match="is not a file"):
        list(read_items(path))


def test_a_file_that_changes_while_it_is_read_is_refused(path: Path) -> None:
    path.write_text("list:\n" + "  - item\n" * 10_000)

    def reading() -> Iterator[Item]:
        for number, item in enumerate(read_items(path)):
            if number == 5_000:
                with path.open("a") as file:
                    file.write("  - came later\n")
            yield item

    with pytest.raises(ValidationError, match=f"{path}: changed while it was read"):
        list(reading())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks Linux what is open")
def test_whoever_stops_reading_leaves_no_file_open(path: Path) -> None:
    def is_open() -> bool:
        opened = Path("/proc/self/fd").iterdir()
        return str(path) in [str(one.readlink()) for one in opened if one.is_symlink()]

    path.write_text("list:\n" + "  - item\n" * 10_000)
    reading = read_items(path)
    next(reading)
    assert is_open()
    del reading
    gc.collect()
    assert not is_open()


# As a whole ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("loader")
def test_a_document_is_read_as_a_whole_whatever_it_is() -> None:
    for text, data in (
        ("a: [1, {b: ~}]\nc: 2026-01-28\n", {"a": [1, {"b": None}], "c": "2026-01-28"}),
        ("- a\n- 2\n", ["a", 2]),
        ("text", "text"),
    ):
        assert read_yaml(io.BytesIO(text.encode())) == data


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: the file is empty"),
        ("a: 1\na: 2", "line 2: the key 'a' occurs twice"),
        ("a: &x 1\nb: *x", r"line 2: the alias \*x"),
        ("a: 1\n--- b", "line 2: a second document"),
        ("a:\n  - ]", "line 2: is not YAML"),
        ("a: !!set {b}", "line 1: the tag"),
        ("[" * 100_000, "line 1: is nested over 40 levels deep"),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_what_is_wrong_anywhere_is_wrong_with_the_whole(text: str, told: str) -> None:
    with pytest.raises(ValidationError, match=f"^{told}"):
        read_yaml(io.BytesIO(text.encode()))

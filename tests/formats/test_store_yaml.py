"""A whole store as YAML: everything comes back, to any YAML reader, and changes show by line."""

from __future__ import annotations

import difflib
import re
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sources import ListSource

from agent_memory import AgentMemory, StorageUnavailable, ValidationError
from agent_memory.formats.protocol import Sample
from agent_memory.formats.store_yaml import CODEC
from agent_memory.formats.yaml_reader import MAX_ITEM_BYTES
from agent_memory.models.portable import Entry, Section

HEAD = "format: agent-memory store\nversion: 1\n"
UNTIMED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


class Held(ListSource):
    """A source of entries that are given."""

    def __init__(self, given_entries: Iterable[Entry]) -> None:
        super().__init__([])
        self.given = given_entries

    def entries(self) -> Iterator[Entry]:
        return iter(self.given)


class CoreLoader(yaml.SafeLoader):
    """PyYAML with the words of YAML 1.2's core schema: ``yes`` and ``1:30`` are texts there."""


CoreLoader.yaml_implicit_resolvers = {}

for tag, pattern, first in (
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    CoreLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first
    )

LOADERS: list[Any] = [yaml.SafeLoader, yaml.CSafeLoader, CoreLoader]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.yaml"


def memory(content: str = "x", **fields: Any) -> Entry:
    return Entry(Section.MEMORY, {"id": "mem-1", "content": content, **fields})


def write(path: Path, *entries: Entry) -> str:
    CODEC.write(path, Held(entries))
    return path.read_bytes().decode()


def read(path: Path, text: str | bytes | None = None) -> list[Entry]:
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(CODEC.read(path))


DEFAULTS = {
    "category": "note",
    "tags": [],
    "kind": "learning",
    "importance": "medium",
    "memory_type": "STANDARD",
    "archived": False,
    "metadata": {},
}


def told(entries: Iterable[Entry]) -> list[tuple[Section, str]]:
    """Return what entries tell, such that 1, 1.0 and True, or the order of keys, differ.

    Without a memory's defaults: the reader has them for whatever a file leaves out.
    """
    return [
        (
            entry.section,
            repr({k: v for k, v in entry.fields.items() if k not in DEFAULTS or v != DEFAULTS[k]})
            if entry.section is Section.MEMORY
            else repr(entry.fields),
        )
        for entry in entries
    ]


# Written ------------------------------------------------------------------------------------

EVERYTHING = (
    Entry(
        Section.AGENT,
        {"agent_id": "bob", "created_at": "2026-01-01T00:00:00.000000Z", "config": {"a": [1]}},
    ),
    memory(
        "Prefer PostgreSQL:\n- it has types\n\n- yes\n",
        category="preference",
        tags=["database", "no"],
        timestamp="2026-01-28T12:00:00.000000Z",
        last_accessed=None,
        access_count=3,
        metadata={"confidence": 0.95, "y": {"deep": [None, True]}},
        archived=True,
    ),
    memory("one line", id="mem-2"),
    Entry(Section.SCRATCHPAD, {"id": "mem-1", "entered_at": "2026-01-28", "reason": "stored"}),
    Entry(Section.REJECTION, {"words_hash": "00ff", "word_count": 2}),
    Entry(Section.MODEL, {"model": "m", "dimensions": 2, "similarity_floor": 1e-07}),
    Entry(Section.VECTOR, {"id": "mem-1", "scale": 0.5, "vector": "f4E="}),
    Entry(Section.CHANGE, {"id": "mem-1", "event": "UPDATE", "old": {"content": "a\nb"}}),
    Entry(Section.CHANGE, {"id": "mem-2", "event": "ADD"}),
)
LAYOUT = f"""\
{HEAD}agent:
  agent_id: "bob"
  created_at: "2026-01-01T00:00:00.000000Z"
  config: {{"a": [1]}}
memories:
  - id: "mem-1"
    content: |
      Prefer PostgreSQL:
      - it has types

      - yes
    category: "preference"
    tags: ["database", "no"]
    timestamp: "2026-01-28T12:00:00.000000Z"
    last_accessed: null
    access_count: 3
    metadata: {{"confidence": 0.95, "y": {{"deep": [null, true]}}}}
    archived: true
  - id: "mem-2"
    content: "one line"
scratchpad:
  - {{id: "mem-1", entered_at: "2026-01-28", reason: "stored"}}
rejections:
  - {{words_hash: "00ff", word_count: 2}}
models:
  - {{model: "m", dimensions: 2, similarity_floor: 1.0e-07}}
vectors:
  - {{id: "mem-1", scale: 0.5, vector: "f4E="}}
changes:
  - {{id: "mem-1", event: "UPDATE", old: {{"content": "a\\nb"}}}}
  - {{id: "mem-2", event: "ADD"}}
end: true
"""


def test_a_store_is_laid_out_by_line(path: Path) -> None:
    written = CODEC.write(path, Held(EVERYTHING))
    assert path.read_text() == LAYOUT
    assert (written.memories, written.notes) == (2, [])


def test_the_same_entries_come_back_with_their_lines(path: Path) -> None:
    found = read(path, LAYOUT)
    assert told(found) == told(EVERYTHING)
    assert [entry.error for entry in found] == [None] * len(found)
    places = [entry.place for entry in found]
    assert places == [f"line {n}" for n in (4, 8, 21, 24, 26, 28, 30, 32, 33)]


def test_a_store_without_anything_is_its_head(path: Path) -> None:
    assert write(path) == HEAD + "end: true\n"
    assert read(path) == []


def test_a_file_that_was_cut_off_between_two_entries_is_told(path: Path) -> None:
    for cut in (LAYOUT.index("  - id"), LAYOUT.index("scratchpad:"), LAYOUT.index("end: true")):
        last = read(path, LAYOUT[:cut])[-1]
        assert last.error == "the file is cut off: its last line, `end`, is missing"


def test_what_has_nothing_to_tell_is_an_empty_mapping(path: Path) -> None:
    entries = [Entry(section, {}) for section in Section]
    write(path, *entries)
    assert told(read(path)) == told(entries)


BLOCKS = {
    "a\nb": "|-\n      a\n      b",
    "a\n": "|\n      a",
    "a\nb\n": "|\n      a\n      b",
    "a\n\n\n": "|+\n      a\n\n",
    " a\n  b": "|2-\n       a\n        b",
    "\ta\nb": "|2-\n      \ta\n      b",
    "\n\na\n": "|2\n\n\n      a",
    "a\n\tb\n   \nc": "|-\n      a\n      \tb\n         \n      c",
    "# a\n--- b\n...\n- c": "|-\n      # a\n      --- b\n      ...\n      - c",
    "? a\nb: c\n}": "|-\n      ? a\n      b: c\n      }",
    "a\n  ": "|-\n      a\n        ",
    "a\n \n": "|\n      a\n       ",
    "\u00e9 \U0001f600\n\u4e2d": "|-\n      \u00e9 \U0001f600\n      \u4e2d",
    "one line": '"one line"',
    "": '""',
    "\n": '"\\n"',
    " \n\t\n": '" \\n\\t\\n"',
    "a\r\nb": '"a\\r\\nb"',
    "a\nb\x85c": '"a\\nb\\u0085c"',
    "a\nb\u2028c": '"a\\nb\\u2028c"',
    "a\n\ufeffb": '"a\\n\\ufeffb"',
    "a\nb\x07": '"a\\nb\\u0007"',
    "a\n\x7f": '"a\\n\\u007f"',
    "a\n\ufffe": '"a\\n\\ufffe"',
}


@pytest.mark.parametrize("text", BLOCKS, ids=ascii)
def test_a_text_of_several_lines_is_a_block_where_yaml_can_hold_it(path: Path, text: str) -> None:
    after = memory("after", id="mem-2")
    written = write(path, memory(text, category=text), after)
    assert f"    content: {BLOCKS[text]}\n    category: {BLOCKS[text]}\n  - id:" in written
    assert told(read(path)) == told([memory(text, category=text), after])
    for loader in LOADERS:
        theirs = yaml.load(written, loader)["memories"][0]
        assert (theirs["content"], theirs["category"]) == (text, text)


WORDS = r"""yes no 1:30 # --- ... : { } [ ] , &a *a !t | > ' " \ % @ ` ~ = << 012 .nan ? null 1e5"""
LETTERS = (
    "\t \n\r\x00\x01\x1b\x7f\x85\xa0\u2028\u2029\ufeff\ufffe\uffff\U0001f600\U0001fffe\U0010ffff"
)
PARTS = st.sampled_from(
    [*WORDS.split(), *LETTERS, "- x", " # c", ": ", "? ", "  ", "\n", "\n", "\n\n", "  \n", "\n "]
)
TEXTS = st.lists(
    PARTS | st.characters(blacklist_categories=["Cs"]) | st.just("word " * 60), max_size=12
).map("".join)
VALUES = st.recursive(
    TEXTS
    | st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
MEMORIES = st.builds(
    memory,
    TEXTS,
    category=TEXTS,
    tags=st.lists(TEXTS, max_size=3),
    access_count=st.integers(0, 2**63 - 1),
    last_accessed=st.none(),
    metadata=st.dictionaries(TEXTS, VALUES, max_size=3),
)
OTHERS = st.builds(
    Entry,
    st.sampled_from([Section.SCRATCHPAD, Section.MODEL, Section.VECTOR, Section.CHANGE]),
    st.dictionaries(st.sampled_from(["id", "old", "new", "y", "at"]), VALUES),
)
LISTS = {
    "memories": Section.MEMORY,
    "scratchpad": Section.SCRATCHPAD,
    "rejections": Section.REJECTION,
    "models": Section.MODEL,
    "vectors": Section.VECTOR,
    "changes": Section.CHANGE,
}


@UNTIMED
@example(
    [memory("a\n \n", category="a\n\n"), memory("-\n", metadata={"k" * 1020: {"\x01" * 300: 1}})]
)
@given(st.lists(MEMORIES | OTHERS, max_size=6))
def test_whatever_a_store_holds_comes_back_to_any_reader(path: Path, entries: list[Entry]) -> None:
    order = list(Section)
    entries = sorted(entries, key=lambda entry: order.index(entry.section))
    written = write(path, *entries)
    found = read(path)
    assert told(found) == told(entries)
    assert write(path, *found) == written
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", written)
    for loader in LOADERS:
        data = yaml.load(written, loader)
        assert (data["format"], data["version"]) == ("agent-memory store", 1)
        theirs = [Entry(LISTS[key], one) for key in LISTS for one in data.get(key, [])]
        assert [text for _, text in told(theirs)] == [text for _, text in told(entries)]


def test_one_changed_word_is_one_changed_line(path: Path) -> None:
    content = "We met on Monday.\n\n  - Alice fixed the queue\n  - Bob wrote the report\n\n"
    before = write(path, *EVERYTHING[:3], memory(content, id="mem-3"), *EVERYTHING[3:])
    content = content.replace("wrote", "read")
    after = write(path, *EVERYTHING[:3], memory(content, id="mem-3"), *EVERYTHING[3:])
    changes = [
        line
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert changes == ["-        - Bob wrote the report", "+        - Bob read the report"]


def test_half_of_a_surrogate_pair_which_no_yaml_can_hold_is_replaced(path: Path) -> None:
    write(path, memory("a\n\ud800", metadata={"\udfff": "\ud83d"}))
    (found,) = read(path)
    assert found.fields["content"] == "a\n\ufffd"
    assert found.fields["metadata"] == {"\ufffd": "\ufffd"}


def test_what_is_nested_without_end_is_refused_by_name(path: Path) -> None:
    endless: dict[str, Any] = {}
    for _ in range(100_000):
        endless = {"a": endless}
    path.write_text("precious")
    with pytest.raises(ValidationError, match="memories: mem-1 is nested too deeply"):
        CODEC.write(path, Held([memory(metadata=endless)]))
    assert path.read_text() == "precious"
    assert list(path.parent.iterdir()) == [path]


def test_what_is_too_long_to_be_read_is_told(path: Path) -> None:
    long = memory(metadata={"a": "x" * MAX_ITEM_BYTES})
    written = CODEC.write(path, Held([memory(), long]))
    assert written.memories == 2
    assert written.notes == [
        f"1 entry is longer than {MAX_ITEM_BYTES:,} bytes, and cannot be imported"
    ]


def test_a_store_comes_back_whole_from_its_file(root: Path, path: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store_many(
            [{"id": f"mem-{n}", "content": f"line {n}\n\n  - and {n} more\n"} for n in range(30)]
        )
        memory.update("mem-3", content="changed\nlater", tags=["zebra", "apple"])
        memory.promote("mem-5")
        memory.delete("mem-7")
        memory.export(path, format="store")
        before = memory.get("mem-3")
    again = path.with_name("again.yaml")
    with AgentMemory("bob", root=root / "other") as memory:
        assert memory.import_(path).new == 29
        assert memory.get("mem-3") == before
        memory.export(again, format="store")
    assert again.read_text() == path.read_text()


# Read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (HEAD, True),
        (f"\ufeff# a comment\n\n---\n{HEAD}", True),
        (HEAD.replace("\n", "\r\n"), True),
        ('format: "agent-memory store"\nversion: 2\n', True),
        ("format: agent-memory stores\n", False),
        ("format: other\n", False),
        (f"agent_id: bob\n{HEAD}", False),
        ("memories:\n", False),
        ("# " * 30_000, False),
        (" " * 60_000, False),
        ("", False),
    ],
    ids=lambda value: ascii(value[:30]) if isinstance(value, str) else None,
)
def test_a_store_is_recognised_by_how_it_begins(path: Path, text: str, is_one: bool) -> None:
    assert CODEC.recognises(Sample(path, text.encode(), is_folder=False)) is is_one
    assert not CODEC.recognises(Sample(path, b"", is_folder=True))


UNREADABLE: dict[str | bytes, str] = {
    "": "line 1: the file is empty",
    "version: 1\n": "is not a store export: `format` and `version` are missing",
    "memories: []\n": "line 1: `format` and `version` must come first",
    "format: other\nversion: 1\n": "line 1: is not a store export",
    "format: &a agent-memory store\nversion: *a\n": "line 2: version: must be a number",
    "format: agent-memory store\nversion: '1'\n": "line 2: version: must be a number",
    "format: agent-memory store\nversion: true\n": "line 2: version: must be a number",
    "format: agent-memory store\nversion: 2\n": "line 2: has version 2 .*: upgrade agent-memory",
    "format: agent-memory store\nmemories: []\n": "line 2: `format` and `version` must",
    f"{HEAD}memorys: []\n": "line 3: 'memorys' is not a section",
    f"{HEAD}memories: text\n": "line 3: memories: must be a list",
    f"{HEAD}memories: {{a: b}}\n": "line 3: memories: must be a list",
    f"{HEAD}changes: !!set {{a}}\n": "line 3: changes: the tag .*set",
    f"{HEAD}memories: []\nmemories: []\n": "line 4: the key 'memories' occurs twice",
    f"{HEAD}memories:\n  - content: |\n      a\n     b\n": "line 6: is not YAML",
    f'{HEAD}memories:\n  - content: "a\n': "line 5: is not YAML",
    HEAD.encode() + b"memories: [\xff]": "line 3: is not YAML",
    f"{HEAD}memories: " + "[" * 100_000: "line 3: is nested over 40 levels deep",
}


@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: ascii(text[-40:]))
def test_what_is_no_store_is_refused_with_the_file_and_the_line(
    path: Path, text: str | bytes
) -> None:
    with pytest.raises(ValidationError, match=f"^{re.escape(str(path))}: {UNREADABLE[text]}"):
        read(path, text)


def test_what_is_wrong_with_one_entry_leaves_the_others(path: Path) -> None:
    text = (
        f"{HEAD}agent: [bob]\nmemories:\n"
        "  - content: a\n    content: b\n"
        "  - {content: c, metadata: [d]}\n"
        "  - {content: e, mood: good, metadata: {mood: bad}}\n"
        "  - text\n"
        "  - content: f\n"
        "changes:\n  - [a]\n  - {id: *x}\n  - {id: g}\n"
    )
    found = [(entry.section.value, entry.place, entry.error) for entry in read(path, text)]
    assert found == [
        ("agent", "line 3", "must be a mapping"),
        ("memory", "line 6", "the key 'content' occurs twice"),
        ("memory", "line 7", "metadata: must be a mapping"),
        ("memory", "line 8", "mood: is both in the entry and in its metadata: remove one"),
        ("memory", "line 9", "must be a mapping with a content key"),
        ("memory", "line 10", None),
        ("change", "line 12", "must be a mapping"),
        ("change", "line 13", "the alias *x is not supported: write the value out"),
        ("change", "line 14", None),
    ]


def test_what_people_write_by_hand_is_taken(path: Path) -> None:
    text = (
        f"# mine\n{HEAD}agent:\nmemories:\n"
        "- content: >-\n    folded\n    text\n  mood: good\n  user_id:\n  last_accessed: ~\n"
        "  metadata: {a: 012}\n"
        "changes:\n"
    )
    (found,) = read(path, text)
    assert found.fields == {
        "content": "folded text",
        "last_accessed": None,
        **DEFAULTS,
        "metadata": {"a": 10, "mood": "good"},
    }


def test_a_store_that_windows_wrote_is_the_same(path: Path) -> None:
    text = LAYOUT.replace("\n", "\r\n")
    assert told(read(path, text.encode("utf-8-sig"))) == told(EVERYTHING)


# Files --------------------------------------------------------------------------------------


def test_a_file_is_private_and_replaces_a_link_never_what_it_points_to(
    path: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    write(path, memory())
    assert victim.read_text() == "precious"
    assert not path.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_place_that_cannot_hold_a_file_is_named(path: Path) -> None:
    path.mkdir()
    for wrong in (path, path.parent / "missing" / "store.yaml"):
        with pytest.raises(StorageUnavailable, match=re.escape(str(wrong))):
            write(wrong, memory())
    with pytest.raises(StorageUnavailable, match=re.escape(str(path))):
        read(path)
    assert list(path.parent.iterdir()) == [path]


LARGE = """
import resource, signal, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from agent_memory import AgentMemoryError
from agent_memory.models.portable import Entry, Section
from agent_memory.formats.store_yaml import CODEC
from test_store_yaml import Held
from peak_memory import peak_bytes

def entries(count):
    for n in range(count):
        fields = {"id": f"mem-{n}", "content": f"{n}\\n" + "word " * 60, "metadata": {"n": n}}
        yield Entry(Section.MEMORY, fields)
    for n in range(count):
        yield Entry(Section.CHANGE, {"id": f"mem-{n}", "new": {"content": "word " * 60}})

path, count, limit = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
before = peak_bytes()
try:
    CODEC.write(path, Held(entries(count)))
    found = sum(1 for _ in CODEC.read(path))
except AgentMemoryError as error:
    found = f"{type(error).__name__}: {error}"
print((peak_bytes() - before) // 2**20, found)
"""


def write_and_read_many(path: Path, count: int, *, limit: int = 0) -> tuple[int, str]:
    """Do so in a process of its own; return the megabytes that it took, and what came of it."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", LARGE, here, str(path), str(count), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    size, _, found = done.stdout.strip().partition(" ")
    return int(size), found


def test_a_large_store_takes_no_more_memory_than_a_small_one(path: Path) -> None:
    small, _ = write_and_read_many(path, 500)
    large, found = write_and_read_many(path, 25_000)
    assert found == "50000"
    assert path.stat().st_size > 15_000_000
    assert large < small + 20


def test_a_file_that_may_not_grow_is_a_typed_error_and_leaves_what_was_there(path: Path) -> None:
    path.write_text("precious")
    _, found = write_and_read_many(path, 10_000, limit=2_000_000)
    assert re.match(f"StorageFull: {re.escape(str(path))} cannot be written: its disk", found)
    assert path.read_text() == "precious"
    assert list(path.parent.iterdir()) == [path]

"""Scratchpad files: what is written is read back, by any YAML reader, and the rest is refused."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_memory.errors import StorageFull, StorageUnavailable, ValidationError
from agent_memory.formats.scratchpad import ScratchpadFile, read_scratchpad, write_scratchpad
from agent_memory.models.enums import TaskStatus
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import MEMORY_FIELDS, TaskMetadata
from agent_memory.models.scratchpad import Scratchpad

NOON = datetime(2026, 1, 28, 12, tzinfo=UTC)
# How long an example takes is no matter of these tests; a file that is replaced is no fixture.
UNTIMED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

# Document A's example, shortened to two entries.
AS_A_SHOWS = """\
agent_id: "bob"
last_updated: "2026-01-30T16:00:00Z"
max_size: 50

memories:
  - id: "mem-a3f2c1b4e5d6"
    timestamp: "2026-01-28T12:00:00Z"
    category: "preference"
    content: "Prefer PostgreSQL for new projects"
    tags: ["database", "postgresql"]
    access_count: 3
    last_accessed: "2026-01-30T14:00:00Z"

  - id: "mem-c3d4e5f6a7b8"
    timestamp: "2026-01-26T10:15:00Z"
    category: "task"
    content: "TODO: Complete the design"
    tags: []
    access_count: 0
    last_accessed: null
"""


def memory(content: str = "x", **fields: Any) -> Memory:
    given_fields = {"category": "note", "created_by_session": "s", "timestamp": NOON, **fields}
    given_fields.setdefault("updated_at", given_fields["timestamp"])
    return Memory(agent_id="bob", content=content, **given_fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scratchpad.yaml.backup"


def write(path: Path, memories: Iterable[Memory]) -> int:
    return write_scratchpad(path, memories, agent_id="bob", last_updated=NOON, max_size=50)


def read(path: Path, text: str | bytes) -> ScratchpadFile:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_scratchpad(path)


def entry(path: Path, text: str) -> dict[str, Any]:
    """Read the one entry of a file, given as its lines."""
    (found,) = read(path, "memories:\n  -\n" + textwrap.indent(text, "    ")).memories
    return found


# Written ------------------------------------------------------------------------------------


def test_a_file_looks_as_document_a_shows(path: Path) -> None:
    memories = [
        memory(
            "Prefer PostgreSQL for new projects", id="mem-a3f2c1b4e5d6", category="preference",
            tags=["database", "postgresql"], access_count=3,
            last_accessed=datetime(2026, 1, 30, 14, tzinfo=UTC),
        ),
        memory(
            "TODO: Complete the design", id="mem-c3d4e5f6a7b8", category="task",
            timestamp=datetime(2026, 1, 26, 10, 15, tzinfo=UTC),
        ),
    ]  # fmt: skip
    updated = datetime(2026, 1, 30, 16, tzinfo=UTC)
    count = write_scratchpad(path, memories, agent_id="bob", last_updated=updated, max_size=50)
    assert count == 2
    session = '    created_by_session: "s"\n'
    assert path.read_text().replace(session, "") == AS_A_SHOWS


def test_what_is_not_the_default_follows_on_document_a_s_keys(path: Path) -> None:
    full = memory(
        kind="core", importance="high", created_by_session="session-1", user_id="ann", run_id="r",
        memory_type="GRAPH", archived=True, version=3, metadata={"a": [1, {"b": None}]},
        task_metadata=TaskMetadata(status=TaskStatus.COMPLETED, completed_at=NOON),
        timestamp=NOON + timedelta(microseconds=7), updated_at=NOON,
    )  # fmt: skip
    write(path, [full])
    lines = path.read_text().splitlines()
    assert lines[6] == '    timestamp: "2026-01-28T12:00:00.000007Z"'
    assert lines[12:] == [
        '    kind: "core"',
        '    importance: "high"',
        '    created_by_session: "session-1"',
        '    user_id: "ann"',
        '    run_id: "r"',
        '    memory_type: "GRAPH"',
        "    archived: true",
        '    task_metadata: {"status": "completed", "completed_at": "2026-01-28T12:00:00Z"}',
        '    metadata: {"a": [1, {"b": null}]}',
        '    updated_at: "2026-01-28T12:00:00Z"',
        "    version: 3",
    ]
    (found,) = read_scratchpad(path).memories
    assert Memory(agent_id="bob", **found) == full


def test_without_memories_the_list_is_empty(path: Path) -> None:
    assert write(path, []) == 0
    assert read_scratchpad(path) == ScratchpadFile("bob", [])


def test_document_a_s_own_model_reads_what_is_written(path: Path) -> None:
    write(path, (memory(f"m{n}") for n in range(60)))
    scratchpad = Scratchpad.model_validate(yaml.safe_load(path.read_text()))
    assert len(scratchpad.memories) == 50  # it keeps as many as it may; the file has them all
    assert len(read_scratchpad(path).memories) == 60


# What YAML takes for something else, or for nothing, beside the ordinary.
LETTERS = st.one_of(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"),
    st.sampled_from("\x01\t\n\r\x1b\"\\/'#:-?{}[],&*!|>%@`~=<\x7f\x80\x85\x9f\xa0\u2028\u2029"),
    st.sampled_from("\ufeff\ufffe\uffff\U0001fffe\U0001f600\U0010ffff"),
)
TEXTS = st.text(LETTERS)
VALUES = st.recursive(
    st.one_of(
        TEXTS,
        st.sampled_from(["no", "~", "null", "1e3", "012", "1:30", "<<", "=", "2026-01-28", ".nan"]),
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
MEMORIES = st.builds(
    memory,
    TEXTS.map(lambda text: f"x{text}"),
    tags=st.lists(TEXTS.map(lambda text: f"x{text}"[:50]), max_size=4),
    metadata=st.dictionaries(TEXTS, VALUES, max_size=4),
    timestamp=st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001 - made UTC
    last_accessed=st.none() | st.datetimes(timezones=st.just(UTC)),
)
ODD_LETTERS = "x\x01\x7f\x80\x85\x9f\u2028\u2029\ufeff\ufffe\uffff\U0001f600"
LOADERS: list[Any] = [yaml.SafeLoader, yaml.CSafeLoader]


@UNTIMED
@example(memories=[memory(ODD_LETTERS, metadata={ODD_LETTERS: [1e-07, 1e22, 1.5e300, -0.0]})])
@given(memories=st.lists(MEMORIES, max_size=3, unique_by=lambda one: one.id))
def test_any_memory_is_read_back_by_us_and_by_both_of_pyyaml_s_loaders(
    memories: list[Memory], path: Path
) -> None:
    write(path, memories)
    ours = [Memory(agent_id="bob", **found) for found in read_scratchpad(path).memories]
    assert ours == memories
    assert not re.search("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", path.read_text())
    # Their texts tell apart what compares equal: 1, 1.0 and True; 0.0 and -0.0.
    assert repr([m.metadata for m in ours]) == repr([m.metadata for m in memories])
    for loader in LOADERS:
        theirs = yaml.load(path.read_bytes(), loader)["memories"]
        data = [(found["content"], found["tags"], found.get("metadata", {})) for found in theirs]
        assert repr(data) == repr([(m.content, m.tags, m.metadata) for m in memories])


@pytest.mark.parametrize("length", [990, 1000, 1020, 1024, 5000])
@pytest.mark.parametrize("letter", ["k", "\u2028", "\U0001f600"], ids=ascii)
def test_a_key_may_be_longer_than_yaml_s_simple_keys(path: Path, length: int, letter: str) -> None:
    metadata = {letter * length: {"inner" + letter * length: [1]}, "after": 2}
    write(path, [memory(metadata=metadata)])
    assert read_scratchpad(path).memories[0]["metadata"] == metadata
    for loader in LOADERS:
        assert yaml.load(path.read_bytes(), loader)["memories"][0]["metadata"] == metadata


def test_what_another_program_put_in_does_not_keep_a_file_from_being_written(path: Path) -> None:
    odd = memory().model_copy(
        update={"metadata": {"half \ud800": "\udfff"}, "tags": ["UPPER"], "category": "incident"}
    )
    write(path, [odd])
    (found,) = read_scratchpad(path).memories
    assert found["metadata"] == {"half \ufffd": "\ufffd"}
    assert (found["tags"], found["category"]) == (["UPPER"], "incident")


def test_metadata_nested_without_end_is_a_typed_error(path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValidationError, match="mem-deep"):
        write(path, [memory().model_copy(update={"id": "mem-deep", "metadata": {"a": deep}})])
    while deep:  # or freeing it would overflow the stack
        deep = deep.pop()
    assert list(path.parent.iterdir()) == []


def test_many_memories_do_not_fill_the_memory(path: Path) -> None:
    one = memory("word " * 200)
    tracemalloc.start()
    write(path, (one for _ in range(20_000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 5_000_000


# The file itself ----------------------------------------------------------------------------


def test_the_file_is_private_from_its_first_byte(path: Path) -> None:
    seen: list[int] = []

    def watched() -> Iterator[Memory]:
        for number in range(3):
            seen.extend(stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir())
            yield memory(f"m{number}")

    before = os.umask(0)
    try:
        write(path, watched())
    finally:
        os.umask(before)
    assert seen == [0o600] * 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_replaced_and_what_it_points_to_stays(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    write(path, [memory()])
    assert victim.read_text() == "precious"
    assert not path.is_symlink()


class Stop(BaseException):
    """What ends a process that is in the middle of something."""


FULL = [OSError(number, "x") for number in (errno.ENOSPC, errno.EDQUOT)]
FAILURES = [(Stop(), Stop), (OSError(errno.EIO, "x"), StorageUnavailable)]


@pytest.mark.parametrize(
    ("failure", "raised"), [*FAILURES, *((error, StorageFull) for error in FULL)]
)
def test_a_failure_in_the_middle_leaves_what_was_there(
    path: Path, failure: BaseException, raised: type[BaseException]
) -> None:
    def failing() -> Iterator[Memory]:
        yield memory("new")
        raise failure

    write(path, [memory("old")])
    with pytest.raises(raised) as error:
        write(path, failing())
    assert (str(path) in str(error.value)) == isinstance(failure, OSError)
    assert [found["content"] for found in read_scratchpad(path).memories] == ["old"]
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_may_not_grow_is_a_typed_error_and_leaves_nothing(path: Path) -> None:
    program = f"""
import resource, signal
from pathlib import Path
from agent_memory.errors import StorageFull
from agent_memory.models.memory import Memory
from agent_memory.formats.scratchpad import write_scratchpad
one = Memory(agent_id="bob", content="word " * 200, category="note", created_by_session="s")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
try:
    write_scratchpad(Path({str(path)!r}), (one for _ in range(10_000)), agent_id="bob",
        last_updated=one.timestamp, max_size=50)
except StorageFull as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert str(path) in done.stdout, done.stderr
    assert list(path.parent.iterdir()) == []


def test_a_place_that_cannot_hold_a_file_is_named(path: Path) -> None:
    path.mkdir()
    for wrong in (path, path.parent / "missing" / "scratchpad.yaml"):
        with pytest.raises(StorageUnavailable, match=re.escape(str(wrong))):
            write(wrong, [memory()])
    assert list(path.parent.iterdir()) == [path]


# Read ---------------------------------------------------------------------------------------


def test_document_a_s_example_is_read(path: Path) -> None:
    found = read(path, AS_A_SHOWS)
    assert found.agent_id == "bob"
    assert found.memories[0]["last_accessed"] == datetime(2026, 1, 30, 14, tzinfo=UTC)
    assert found.memories[1] == {
        **{name: field.default for name, field in MEMORY_FIELDS.items()},
        "id": "mem-c3d4e5f6a7b8", "content": "TODO: Complete the design", "category": "task",
        "tags": [], "timestamp": datetime(2026, 1, 26, 10, 15, tzinfo=UTC), "access_count": 0,
        "last_accessed": None, "kind": "learning", "importance": "medium",
        "created_by_session": None, "user_id": None, "run_id": None, "memory_type": "STANDARD",
        "archived": False, "task_metadata": None, "metadata": {},
        "updated_at": datetime(2026, 1, 26, 10, 15, tzinfo=UTC), "version": 1,
    }  # fmt: skip


def test_a_content_alone_is_an_entry(path: Path) -> None:
    found = read(path, "memories: [{content: hello, tags: , timestamp: ~}]")
    assert found.agent_id is None
    (only,) = found.memories
    assert (only["content"], only["tags"], only["category"]) == ("hello", [], "note")
    assert (only["id"], only["timestamp"], only["updated_at"]) == (None, None, None)


@pytest.mark.parametrize("written", ["{}", '"{}"', "'{}'"], ids=["bare", "double", "single"])
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-28T12:00:00Z", NOON),
        ("2026-01-28 12:00:00", NOON),
        ("2026-01-28T17:30:00+05:30", NOON),
        ("2026-01-28T12:00:00.000007Z", NOON + timedelta(microseconds=7)),
        ("2026-01-28", datetime(2026, 1, 28, tzinfo=UTC)),
    ],
)
def test_times_are_read_bare_and_quoted(
    path: Path, written: str, text: str, moment: datetime
) -> None:
    found = entry(path, f"content: x\ntimestamp: {written.format(text)}")
    assert found["timestamp"] == moment
    assert found["timestamp"].tzinfo is UTC


def test_a_bare_date_where_a_text_is_meant_is_that_text(path: Path) -> None:
    found = entry(path, "content: 2026-01-28\ntags: [2026-01-28, db]\nlearned: 2026-01-28")
    assert (found["content"], found["tags"]) == ("2026-01-28", ["2026-01-28", "db"])
    assert found["metadata"] == {"learned": "2026-01-28"}


def test_keys_that_are_not_of_the_format_are_kept_in_the_metadata(path: Path) -> None:
    found = entry(path, "content: |-\n  two\n  lines\nmood: good\nmetadata: {a: 1}")
    assert found["content"] == "two\nlines"
    assert found["metadata"] == {"a": 1, "mood": "good"}


def test_utf_16_and_a_byte_order_mark_are_read(path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        (found,) = read(path, 'memories: [{content: "caf\u00e9"}]'.encode(encoding)).memories
        assert found["content"] == "caf\u00e9"


BOMB = "a: &a [x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nmemories: [{content: x, bomb: *c}]"
REFUSED: dict[str | bytes, str] = {
    "": "line 1: the file is empty",
    "agent_id: bob": "is not a scratchpad: .*memories",
    "memories: text": "line 1: memories: must be a list",
    "memories: [text]": "line 1: must be a mapping",
    "memories: [{content: a}, {id: b}]": "line 1: content: Field required",
    "memories: [{content: ''}]": "line 1: content",
    "memories: [{content: 12}]": "line 1: content: .*string.*got 12",
    "memories:\n- content: a\n- tags: [b, 1]\n  content: b": "line 3: tags.1: .*string",
    "memories: [{content: a, access_count: 99999999999999999999}]": "line 1: access_count",
    "memories: [{content: a, timestamp: soon}]": "line 1: timestamp: 'soon' is not a time",
    "memories: [{content: a, kind: odd}]": "line 1: kind",
    "memories: [{content: a, metadata: {b: .nan}}]": "line 1: metadata: .*b is nan",
    "memories: [{content: a, metadata: [b]}]": "line 1: metadata: must be a mapping",
    "memories: [{content: a, b: 1, metadata: {b: 2}}]": "line 1: b: is both",
    "memories:\n- {content: a, id: i}\n- {content: b, id: i}": "line 3: id: an earlier",
    'memories: [{content: "a\\0b"}]': "line 1: content",
    "agent_id: ../bob\nmemories: []": "line 1: agent_id",
    "agent_id: 12\nmemories: []": "line 1: agent_id: must be a string",
    "agent_id: bob\nmax_size: all\nmemories: []": "line 2: max_size: must be a whole number",
    "memories:\n- content: a\n  content: b": "line 3: the key 'content' occurs twice",
    "memories:\n- content: ]": "line 2: is not YAML",
    "memories: []\n---\nmemories: []": "line 2: a second document",
    b"memories: [\xff]": "line 1: is not YAML",
    BOMB: r"line 4: the alias \*c",
    "memories: [{content: a, <<: {b: c}}]": "line 1: '<<'",
    "memories: [{content: a, 12: b}]": "line 1: this key is not a string",
    "memories: [{content: !!python/name:os.system }]": "line 1: .*python/name",
    "memories: !!set {a}": "line 1: memories: the tag .*set",
    "memories: [{content: a, timestamp: 2026-02-30}]": "line 1: '2026-02-30' cannot be read",
    "memories: [{content: a, b: " + "9" * 5000 + "}]": "line 1: '999.* cannot be read",
    "memories: " + "[" * 200_000: "line 1: is nested over 40 levels deep",
    "memories: " + "{a: " * 1000: "line 1: is nested over 40 levels deep",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text[:60]))
@pytest.mark.parametrize("loader", ["libyaml", "python"])
def test_what_is_no_scratchpad_is_refused_with_its_place(
    path: Path, text: str | bytes, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loader == "python":
        monkeypatch.delattr(yaml, "CSafeLoader")  # as where PyYAML was built without libyaml
    with pytest.raises(ValidationError, match=f"{re.escape(str(path))}: .*{REFUSED[text]}"):
        read(path, text)


def test_the_fault_tells_the_entry_and_the_key(path: Path) -> None:
    with pytest.raises(ValidationError) as error:
        read(path, "memories:\n- {content: a}\n- {content: b, tags: [c, 1]}")
    assert [fault["loc"] for fault in error.value.errors()] == [("line 3", "tags", 1)]


def test_a_file_of_over_2_gb_is_refused_unread(path: Path) -> None:
    path.touch()
    os.truncate(path, 2 * 10**9 + 1)
    with pytest.raises(ValidationError, match="longer than"):
        read_scratchpad(path)


def test_what_cannot_be_read_is_named(path: Path) -> None:
    for wrong in (path, path.parent):
        with pytest.raises(StorageUnavailable, match=re.escape(str(wrong))):
            read_scratchpad(wrong)
    os.mkfifo(path)
    with pytest.raises(ValidationError, match="is not a file"):
        read_scratchpad(path)

"""``scratchpad.yaml`` as a format: the hot set to the letter of A, its backup, and what is read."""

from __future__ import annotations

import re
import stat
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from sources import ListSource

from agent_memory import Memory, StorageUnavailable, ValidationError
from agent_memory.formats.protocol import Sample
from agent_memory.formats.scratchpad import BACKUP, CODEC
from agent_memory.models.portable import Entry, Section

NOON = datetime(2026, 1, 28, 12, tzinfo=UTC)

# Document A's example, and what its program writes.
AS_A_SHOWS = """\
agent_id: "bob"
last_updated: "2026-01-30T16:00:00Z"
max_size: 50

memories:
  - id: "mem-a3f2c1b4e5d6"
    timestamp: "2026-01-28T12:00:00Z"
    category: "preference"
    content: "Prefer PostgreSQL for new projects due to better tooling support"
    tags: ["database", "postgresql", "tools"]
    access_count: 3
    last_accessed: "2026-01-30T14:00:00Z"

  - id: "mem-c3d4e5f6a7b8"
    timestamp: "2026-01-26T10:15:00Z"
    category: "task"
    content: "TODO: Complete database migration design by end of week"
    tags: ["task", "database", "migration"]
    access_count: 0
    last_accessed: null
"""
AS_A_DUMPS = """\
agent_id: bob
last_updated: '2026-01-30T16:00:00Z'
max_size: 50
memories:
- id: mem-001
  timestamp: '2026-01-30T16:00:00Z'
  category: preference
  content: Prefer PostgreSQL
  tags:
  - database
  access_count: 3
  last_accessed: '2026-01-30T16:00:00Z'
"""
AS_B_SHOWS = """\
memories:
  - id: "mem-001"
    timestamp: "2026-01-30T12:00:00Z"
    category: "preference"
    content: "Prefer PostgreSQL for new projects"
    tags: ["database", "tools"]
    access_count: 3
    last_accessed: "2026-01-30T14:00:00Z"
"""
AS_B_HAS_IT_ELSEWHERE = (
    """\
# ~/.amplifier/memory/bob/scratchpad.yaml
agent_id: "bob"
last_updated: "2026-01-30T16:00:00Z"

"""
    + AS_B_SHOWS
)
EXAMPLES = {
    "A": AS_A_SHOWS,
    "A, dumped": AS_A_DUMPS,
    "B": AS_B_SHOWS,
    "B, elsewhere": AS_B_HAS_IT_ELSEWHERE,
}


def memory(content: str = "x", **fields: Any) -> Memory:
    told = {"category": "note", "created_by_session": "s", "timestamp": NOON, **fields}
    told.setdefault("updated_at", told["timestamp"])
    return Memory(agent_id="bob", content=content, **told)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scratchpad.yaml"


def read(path: Path, text: str | bytes) -> list[Entry]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(CODEC.read(path))


def of(entries: list[Entry], section: Section) -> list[dict[str, Any]]:
    return [entry.fields for entry in entries if entry.section is section]


# Recognised ---------------------------------------------------------------------------------


def recognises(text: str | bytes, path: Path) -> bool:
    head = text if isinstance(text, bytes) else text.encode()
    return CODEC.recognises(Sample(path, head, is_folder=False))


@pytest.mark.parametrize(
    "text",
    [
        *EXAMPLES.values(),
        AS_A_SHOWS.replace("\n", "\r\n"),
        "\ufeff" + AS_A_SHOWS,
        "%YAML 1.1\n--- # mine\n" + AS_A_SHOWS,
        "memories: [{content: a}]",
        "memories:",
        "'memories':\n- content: a\n",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_scratchpad_is_recognised_by_its_keys(path: Path, text: str) -> None:
    assert recognises(text, path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agent_id: bob\nstorage_backend: file\n",
        "format: agent-memory store\nversion: 1\nmemories:\n",
        "memory:\n  memories: 3\n",
        '{"memories": [{"content": "a"}]}',
        "# memories:\n",
        "text that ends in memories: none",
        "- memories: a\n",
        "memories:a",
        "# " * 30_000,
        " #" * 30_000,
        " \n" * 30_000 + "x",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_what_is_none_is_not_recognised(path: Path, text: str) -> None:
    assert not recognises(text, path)
    assert not CODEC.recognises(Sample(path, b"", is_folder=True))


# Written ------------------------------------------------------------------------------------

HELD = [
    memory(
        "cold",
        id="mem-cold",
        archived=True,
        updated_at=datetime(2026, 1, 30, 16, tzinfo=UTC),
    ),
    memory(
        "TODO: Complete database migration design by end of week",
        id="mem-c3d4e5f6a7b8",
        category="task",
        tags=["task", "database", "migration"],
        timestamp=datetime(2026, 1, 26, 10, 15, tzinfo=UTC),
        metadata={"confidence": 0.5},
        kind="core",
    ),
    memory(
        "Prefer PostgreSQL for new projects due to better tooling support",
        id="mem-a3f2c1b4e5d6",
        category="preference",
        tags=["database", "postgresql", "tools"],
        access_count=3,
        last_accessed=datetime(2026, 1, 30, 14, tzinfo=UTC),
        user_id="alice",
        version=2,
    ),
]
HOT = ["mem-a3f2c1b4e5d6", "mem-c3d4e5f6a7b8"]


def test_the_hot_set_is_written_exactly_as_document_a_shows(path: Path) -> None:
    written = CODEC.write(path, ListSource(HELD, hot=HOT))
    assert path.read_text() == AS_A_SHOWS
    assert written.memories == 2
    assert [note.partition(",")[0] for note in written.notes] == ["only the scratchpad's memories"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_empty_hot_set_is_an_empty_list(path: Path) -> None:
    assert CODEC.write(path, ListSource(HELD)).memories == 0
    assert yaml.safe_load(path.read_text())["memories"] == []
    assert of(list(CODEC.read(path)), Section.SCRATCHPAD) == []


def test_the_backup_has_all_memories_with_all_of_their_fields(path: Path) -> None:
    written = BACKUP.write(path, ListSource(HELD, hot=HOT))
    assert written.memories == 3
    data = yaml.safe_load(path.read_text())
    assert list(data) == ["agent_id", "last_updated", "max_size", "memories"]
    assert data["last_updated"] == "2026-01-30T16:00:00Z"
    seven = ["id", "timestamp", "category", "content", "tags", "access_count", "last_accessed"]
    assert [list(one)[:7] for one in data["memories"]] == [seven] * 3
    assert [list(one)[7:] for one in data["memories"]] == [
        ["created_by_session", "archived", "updated_at"],
        ["kind", "created_by_session", "metadata"],
        ["created_by_session", "user_id", "version"],
    ]
    back = of(list(BACKUP.read(path)), Section.MEMORY)
    made = [Memory(agent_id="bob", **{"updated_at": one["timestamp"], **one}) for one in back]
    assert made == HELD


@pytest.mark.parametrize("codec", [CODEC, BACKUP], ids=["scratchpad", "backup"])
def test_the_same_store_gives_the_same_bytes(path: Path, codec: Any) -> None:
    codec.write(path, ListSource(HELD, hot=HOT))
    first = path.read_bytes()
    codec.write(path, ListSource(list(HELD), hot=list(HOT)))
    assert path.read_bytes() == first


def test_a_category_that_an_import_changed_is_given_back(path: Path) -> None:
    held = [
        memory(id="mem-1", metadata={"original_category": "incident", "a": 1}),
        memory(id="mem-2", metadata={"original_category": 3}),
        memory(id="mem-3", category="task", metadata={"original_category": "incident"}),
        memory(id="mem-4"),
    ]
    categories = ["incident", "note", "task", "note"]
    for codec in (CODEC, BACKUP):
        codec.write(path, ListSource(held, hot=[one.id for one in held]))
        found = yaml.safe_load(path.read_text())["memories"]
        assert [one["category"] for one in found] == categories
    assert [one.get("metadata") for one in found] == [
        {"a": 1}, {"original_category": 3}, {"original_category": "incident"}, None,
    ]  # fmt: skip


@pytest.mark.parametrize("codec", [CODEC, BACKUP], ids=["scratchpad", "backup"])
def test_a_link_is_replaced_and_a_place_without_room_for_a_file_is_named(
    path: Path, tmp_path: Path, codec: Any
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    codec.write(path, ListSource(HELD, hot=HOT))
    assert (victim.read_text(), path.is_symlink()) == ("precious", False)
    wrong = tmp_path / "missing" / "file.yaml"
    with pytest.raises(StorageUnavailable, match=re.escape(str(wrong))):
        codec.write(wrong, ListSource(HELD, hot=HOT))
    assert sorted(tmp_path.iterdir()) == [path, victim]


# Read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_the_documents_examples_are_read_as_they_stand(path: Path, text: str) -> None:
    found = read(path, text)
    assert [entry.error for entry in found] == [None] * len(found)
    data = yaml.safe_load(text)
    agents = [{"agent_id": "bob"}] if "agent_id" in data else []
    assert of(found, Section.AGENT) == agents
    assert of(found, Section.MEMORY) == data["memories"]
    ids = [one["id"] for one in data["memories"]]
    assert of(found, Section.SCRATCHPAD) == [{"id": i, "reason": "stored"} for i in reversed(ids)]


def test_the_hot_set_comes_back_in_its_order(path: Path) -> None:
    held = [memory(id=f"mem-{number}") for number in range(5)]
    hot = ["mem-3", "mem-0", "mem-4"]
    CODEC.write(path, ListSource(held, hot=hot))
    entered = [one["id"] for one in of(list(CODEC.read(path)), Section.SCRATCHPAD)]
    assert entered == ["mem-4", "mem-0", "mem-3"]  # the last to enter is the first of the file


@pytest.mark.parametrize(
    ("head", "count", "size"),
    [
        ("", 100, 100),
        ("", 101, 100),
        ("max_size: 10\n", 10, 10),
        ("max_size: 10\n", 11, 10),
        ("max_size: 10\n", 500, 10),
        ("max_size: 0\n", 5, 0),
        ("max_size: 5000\n", 100, 100),
        ("max_size: 5000\n", 101, 100),
    ],
)
def test_of_more_entries_than_a_scratchpad_has_the_newest_are_in_it(
    path: Path, head: str, count: int, size: int
) -> None:
    days = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(n * 7919 % count) for n in range(count)]
    memories = "memories:\n" + "".join(
        f"- {{id: m{n}, content: c, timestamp: {day.isoformat()}}}\n" for n, day in enumerate(days)
    )
    in_a = sorted(range(count), key=lambda n: days[n], reverse=True)[:size]  # A's own line
    expected = in_a if size < count else list(range(count))
    for text in (head + memories, memories + head):
        found = read(path, text)
        assert len(of(found, Section.MEMORY)) == count
        entered = [entry["id"] for entry in of(found, Section.SCRATCHPAD)]
        assert entered == [f"m{n}" for n in reversed(expected)]


def test_what_the_file_does_not_tell_is_left_out(path: Path) -> None:
    found = read(path, "agent_id:\nmemories:\n- content: a\n  tags:\n  mood:\n  last_accessed:\n")
    assert [(entry.section, entry.fields) for entry in found] == [
        (Section.MEMORY, {"content": "a", "last_accessed": None}),
        (Section.SCRATCHPAD, {"reason": "stored"}),
    ]


@pytest.mark.parametrize("written", ["{}", '"{}"', "'{}'"], ids=["bare", "double", "single"])
@pytest.mark.parametrize(
    "moment", ["2026-01-28T12:00:00Z", "2026-01-28T12:00:00+00:00", "2026-01-28 12:00:00"]
)
def test_every_style_of_time_is_the_same_moment(path: Path, written: str, moment: str) -> None:
    found, _ = read(path, f"memories:\n- content: x\n  timestamp: {written.format(moment)}\n")
    assert memory(**found.fields).timestamp == NOON


def test_each_entry_has_its_line_and_what_is_wrong_with_it(path: Path) -> None:
    text = (
        "agent_id: [bob]\n"
        "max_size: fifty\n"
        "unknown: *nothing\n"
        "memories:\n"
        "  - {id: a, content: fine, mood: good, metadata: {page: 3}}\n"
        "  - content: b\n"
        "    tags: [x,\n"
        "      *alias]\n"
        "  - just text\n"
        "  - {content: c, metadata: 5}\n"
        "  - {content: d, mood: good, metadata: {mood: bad}}\n"
        "  - {id: e, content: 2026-02-30}\n"
        '  - {id: "f", content: "no"}\n'
    )
    found = read(path, text)
    with pytest.raises(ValueError, match="day") as no_such_day:  # each Python has its own words
        date(2026, 2, 30)
    assert [(entry.section.value, entry.place, entry.error) for entry in found] == [
        ("agent", "line 1", "agent_id: must be a string: put it between double quotes"),
        ("agent", "line 2", "max_size: must be a whole number"),
        ("memory", "line 5", None),
        ("memory", "line 8", "the alias *alias is not supported: write the value out"),
        ("memory", "line 9", "must be a mapping with a content key"),
        ("memory", "line 10", "metadata: must be a mapping"),
        ("memory", "line 11", "mood: is both in the entry and in its metadata: remove one"),
        ("memory", "line 12", f"'2026-02-30' cannot be read: {no_such_day.value}"),
        ("memory", "line 13", None),
        ("scratchpad", "line 13", None),
        ("scratchpad", "line 5", None),
    ]
    assert found[2].fields == {
        "id": "a", "content": "fine", "metadata": {"page": 3, "mood": "good"},
    }  # fmt: skip
    assert found[8].fields == {"id": "f", "content": "no"}


UNREADABLE: dict[str | bytes, str] = {
    "": "line 1: the file is empty",
    "agent_id: bob\n": "is not a scratchpad: it must be a mapping with a list `memories`",
    "memories: text\n": "line 1: memories: must be a list of memories",
    "memories: {content: a}\n": "line 1: memories: must be a list of memories",
    "a: &a [x]\nmemories: *a\n": r"line 2: memories: the alias \*a",
    "memories:\n- content: a\n- content: ]\n": "line 3: is not YAML",
    "memories:\n- content: a\n- content: 'b\n": "line 4: is not YAML",
    "memories: []\nmemories: []\n": "line 2: the key 'memories' occurs twice",
    "memories: []\n--- a\n": "line 2: a second document",
    "memories:\n- " + "[" * 100_000: "line 2: is nested over 40 levels deep",
    b"memories:\n- content: a\xff\n": "line 2: is not YAML",
    "memories:\n- content: a\x00\n": "line 2: is not YAML",
    'memories:\n- content: "\\ud800"\n': "line 2: is not YAML",
}


@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: ascii(text[:40]))
def test_what_cannot_be_read_past_is_refused_with_the_file_and_the_line(
    path: Path, text: str | bytes
) -> None:
    with pytest.raises(ValidationError, match=f"^{re.escape(str(path))}: {UNREADABLE[text]}"):
        read(path, text)


def test_what_is_no_file_is_named(path: Path, tmp_path: Path) -> None:
    for wrong in (path, tmp_path):
        with pytest.raises(StorageUnavailable, match=re.escape(str(wrong))):
            list(CODEC.read(wrong))

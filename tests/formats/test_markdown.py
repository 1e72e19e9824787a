"""Folders of Markdown: ours, which come back as they were, and those of other programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_memory import AgentMemory, Memory, ValidationError

ODD = [
    "plain",
    "---\nlooks: like front matter\n---\nand goes on",
    "ends with lines\n\n",
    "日本語のメモ",
    "/..\\con: <x>|?*",
    "x" * 9_999,
    "a\r\nb\tc",
    "same words, other memory",
    "same words, other memory!",
]


def filled(path: Path) -> AgentMemory:
    """Return a memory with every kind of field in it."""
    memory = AgentMemory.open(path, agent_id="bob", session_id="s")
    memory.store_many([{"content": text} for text in ODD])
    first = memory.store(
        "Prefer PostgreSQL for new projects",
        category="preference",
        tags=["database", "ünï code"],
        metadata={"a": {"b": [1, None, "x: y"]}, "links": 1},
        user_id="ann",
        importance="high",
    )
    memory.store(
        "Write the report", kind="task", task_metadata={"status": "blocked", "blockers": ["review"]}
    )
    memory.graph.add("Mara", "prefers", "PostgreSQL", memory_id=first, user_id="ann")
    memory.archive(memory.store("an old thing"))
    return memory


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def all_of(memory: AgentMemory) -> dict[str, Memory]:
    """Return all memories by id."""
    with memory.dump() as source:
        return {each.id: each for each in source.memories()}


def notes_of(folder: Path, files: dict[str, str], tmp_path: Path) -> list[Memory]:
    """Write notes, import them, and return the memories in the order of the files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        assert memory.import_(folder).format == "markdown"
        again = memory.import_(folder)
        assert (again.new, again.changed) == (0, 0)
        return list(all_of(memory).values())


def test_our_notes_come_back_as_they_were_and_go_out_as_the_same_bytes(tmp_path: Path) -> None:
    with filled(tmp_path / "a.db") as memory:
        report = memory.export(tmp_path / "notes", format="markdown")
        kept = all_of(memory)
    assert report.memory_count == len(kept) == len(list((tmp_path / "notes").iterdir()))
    with AgentMemory.open(tmp_path / "b.db", agent_id="bob") as other:
        assert other.import_(tmp_path / "notes").new == len(kept)
        came = all_of(other)
        leave = {"agent_id", "version"}
        for memory_id, each in kept.items():
            assert came[memory_id].model_dump(exclude=leave) == each.model_dump(exclude=leave)
        assert other.import_(tmp_path / "notes").same == len(kept)
        other.export(tmp_path / "again", format="markdown")
    linked = {n: data for n, data in contents(tmp_path / "notes").items() if b"\nlinks: " in data}
    assert list(linked) == ["prefer-postgresql-for-new-projects-" + next(iter(linked))[-9:]]
    assert b'links: ["[[Mara]]","[[PostgreSQL]]"]' in next(iter(linked.values()))
    assert {
        name: data.replace(b'links: ["[[Mara]]","[[PostgreSQL]]"]\n', b"")
        for name, data in contents(tmp_path / "notes").items()
    } == contents(tmp_path / "again")


def test_names_say_what_is_in_a_note_and_front_matter_is_plain_yaml(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "a.db", agent_id="bob") as memory:
        memory.store("Deploy on Fridays? Never: see ../../etc", tags=["ops"], id="note-1")
        memory.export(tmp_path / "notes", format="markdown")
    (note,) = (tmp_path / "notes").iterdir()
    assert note.name.startswith("deploy-on-fridays-never-see-etc-")
    front = yaml.safe_load(note.read_text().split("---\n")[1])
    assert (front["id"], front["tags"]) == ("note-1", ["ops"])


def test_values_are_json_without_spaces_but_for_what_yaml_takes_for_something_else(
    tmp_path: Path,
) -> None:
    with AgentMemory.open(tmp_path / "a.db", agent_id="bob") as memory:
        for data in ({"a": ["1e5", "NaN", 1]}, {"a": ["\x85", 1e-07], "k" * 1_020: 2}):
            memory.store("plain", metadata=data, on_duplicate="keep")
        memory.export(tmp_path / "notes", format="markdown")
    lines = {
        line
        for note in (tmp_path / "notes").iterdir()
        for line in note.read_text("utf-8").splitlines()
        if line.startswith("metadata: ")
    }
    assert lines == {
        'metadata: {"a":["1e5","NaN",1]}',
        f'metadata: {{"a":["\\u0085",1.0e-07],? "{"k" * 1_020}" : 2}}',
    }


def test_only_an_export_of_ours_is_written_over(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "a.db", agent_id="bob") as memory:
        memory.store("first")
        memory.export(tmp_path / "notes", format="markdown")
        memory.store("second")
        with pytest.raises(ValidationError, match="exists"):
            memory.export(tmp_path / "notes", format="markdown")
        memory.export(tmp_path / "notes", format="markdown", overwrite=True)
        assert len(contents(tmp_path / "notes")) == 2
        (tmp_path / "notes" / "mine.md").write_text("a note of my own")
        before = contents(tmp_path / "notes")
        with pytest.raises(ValidationError, match=r"other files, such as 'mine\.md'"):
            memory.export(tmp_path / "notes", format="markdown", overwrite=True)
    assert contents(tmp_path / "notes") == before
    assert sorted(file.name for file in tmp_path.iterdir() if file.name[0] == ".") == []


def test_an_obsidian_vault(tmp_path: Path) -> None:
    (first, second) = notes_of(
        tmp_path / "vault",
        {
            ".obsidian/app.md": "not a note",
            "People/Ann.md": (
                "---\ntitle: Ann\ntags: [person, team/core]\ncreated: 2024-05-06\nrating: 5\n---\n"
                "# Ann\n\nLikes [[Tea]]. #friend and C# code\n"
            ),
            "Zettel.md": "No front matter here.\n",
        },
        tmp_path,
    )
    assert first.content == "No front matter here." or second.content == "No front matter here."
    ann = first if "Ann" in first.content else second
    assert ann.content == "# Ann\n\nLikes [[Tea]]. #friend and C# code"
    assert ann.tags == ["person", "team/core", "friend"]
    assert ann.timestamp.isoformat() == "2024-05-06T00:00:00+00:00"
    expected = {"title": "Ann", "rating": 5, "source": "markdown", "path": "People/Ann.md"}
    assert expected.items() <= ann.metadata.items()


def test_claude_codes_memory_folder(tmp_path: Path) -> None:
    memories = notes_of(
        tmp_path / "memory",
        {
            "MEMORY.md": "- [Testing](testing.md) how tests are run\n- The user is called Mara\n",
            "testing.md": (
                "---\nname: testing\ndescription: how tests run: with pytest\n"
                "metadata:\n  type: project\n---\nRun pytest -q before each commit.\n"
            ),
        },
        tmp_path,
    )
    assert [each.content for each in memories] == [
        "The user is called Mara",
        "Run pytest -q before each commit.",
    ]
    assert memories[1].metadata["description"] == "how tests run: with pytest"


def test_a_file_of_rules_is_a_memory_an_item(tmp_path: Path) -> None:
    text = (
        "# Project\n\nUses Python 3.12.\n\n## Style\n"
        "- Use ruff\n  with its defaults\n* No globals\n"
        "\n```sh\n# not a heading\n\n- not an item\n```\n## Else\n1. One last rule\n"
    )
    memories = notes_of(tmp_path / "p", {"CLAUDE.md": text}, tmp_path)
    assert [(each.content, each.metadata["heading"]) for each in memories] == [
        ("Uses Python 3.12.", "Project"),
        ("Use ruff\n  with its defaults", "Project / Style"),
        ("No globals", "Project / Style"),
        ("```sh\n# not a heading\n\n- not an item\n```", "Project / Style"),
        ("One last rule", "Project / Else"),
    ]


@pytest.mark.parametrize(("seconds", "year"), [(2**38, 9999), (-(2**37), 1)])
def test_a_file_of_a_year_that_is_none_has_the_next_that_is_one(
    seconds: int, year: int, tmp_path: Path
) -> None:
    place = tmp_path / "note.md"
    place.write_text("# A note\n\nIt came out of a broken archive.\n")
    os.utime(place, (seconds, seconds))
    if place.stat().st_mtime != seconds:
        pytest.skip("this file system keeps no such time")
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.import_(place)
        (note,) = memory.list_recent()
    assert note.timestamp.year == year


def test_basic_memory_and_openclaw(tmp_path: Path) -> None:
    memories = notes_of(
        tmp_path / "n",
        {
            "coffee.md": (
                "---\ntitle: Coffee\npermalink: coffee\n---\n# Coffee\n"
                "- [method] Pour over is cleaner #brewing (tested)\n- [ ] buy beans\n"
                "- relates_to [[Tea]]\n"
            ),
            "memory/2026-02-03-standup.md": "- Mara joins the team\n",
        },
        tmp_path,
    )
    assert [each.content for each in memories] == [
        "Pour over is cleaner #brewing (tested)",
        "# Coffee\n- [ ] buy beans\n- relates_to [[Tea]]",
        "Mara joins the team",
    ]
    assert memories[0].metadata["observation"] == "method"
    assert memories[2].timestamp.isoformat() == "2026-02-03T00:00:00+00:00"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe\x00", r"bad\.md: is not UTF-8 text"),
        (b"---\n- a\n- b\n---\ntext\n", r"bad\.md: the text between the --- lines"),
        (b"---\nagent_memory: 1\ntags: [\n---\ntext\n", r"bad\.md: .*line 3"),
        (b"---\nagent_memory: 1\nimportance: huge\n---\ntext\n", r"bad\.md: importance"),
    ],
)
def test_what_is_wrong_with_a_note_is_named_and_nothing_is_taken_in(
    data: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "bad.md").write_bytes(data)
    (tmp_path / "n" / "good.md").write_text("good")
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        with pytest.raises(ValidationError, match=message):
            memory.import_(tmp_path / "n")
        assert memory.import_(tmp_path / "n", skip_bad=True).new == 1


def test_long_notes_are_cut_between_paragraphs_and_odd_tags_are_kept(tmp_path: Path) -> None:
    words: dict[str, Any] = {
        "long.md": "\n\n".join([f"{number} " + "word " * 600 for number in range(9)]),
        "tags.md": f"---\ntags: {[f't{number}' for number in range(30)]}\n---\nmany\n",
    }
    memories = notes_of(tmp_path / "n", words, tmp_path)
    assert [len(each.content) <= 10_000 for each in memories] == [True] * 4
    assert [each.content[:2] for each in memories] == ["0 ", "3 ", "6 ", "ma"]
    assert (len(memories[3].tags), "t29" in memories[3].metadata["tags"]) == (20, True)


def test_a_killed_export_leaves_nothing_at_its_place(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "a.db", agent_id="bob") as memory:
        memory.store_many([{"content": f"note {number}"} for number in range(50)])
    code = (
        "import os, sys\n"
        "from agent_memory import AgentMemory\n"
        "from agent_memory.formats import markdown\n"
        "markdown._put_in_place = lambda *_: os._exit(9)\n"
        "AgentMemory.open(sys.argv[1]).export(sys.argv[2], format='markdown')\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "a.db"), str(tmp_path / "notes")]
    assert subprocess.run(words, check=False).returncode == 9
    assert not (tmp_path / "notes").exists()
    with AgentMemory.open(tmp_path / "a.db") as memory:
        memory.export(tmp_path / "notes", format="markdown")
    assert [file.name for file in tmp_path.iterdir() if file.name[0] == "."] == []

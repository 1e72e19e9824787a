"""The commands that store duplicates, and find them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli

from agent_memory import AgentMemory

FACT = "Use PostgreSQL for new projects"
pytestmark = pytest.mark.usefixtures("as_bob")


@pytest.fixture
def there(root: Path) -> str:
    with AgentMemory("bob", root=root) as memory:
        return memory.store(FACT)


def count(root: Path) -> int:
    with AgentMemory("bob", root=root, create=False) as memory:
        return memory.count()


def lines(*contents: str) -> str:
    return "\n\n".join(json.dumps({"content": content}) for content in contents)


def test_a_duplicate_is_kept_and_told_in_one_line(cli: Cli, root: Path, there: str) -> None:
    done = cli("store", "use PostgreSQL for the new projects")
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert f"near duplicate of {there}" in done.err
    assert "both are kept" in done.err
    assert count(root) == 2


def test_a_similar_one_is_told_as_perhaps_corrected(cli: Cli, root: Path, there: str) -> None:
    done = cli("store", "Use MySQL for new projects", "--json")
    (told,) = done.data["duplicates"]
    assert (told["grade"], told["memory_id"]) == ("similar", there)
    assert done.err == ""
    again = cli("store", "Use MariaDB for new projects")
    assert there in again.err
    assert "if this corrects it, `update` that one" in again.err
    assert count(root) == 3


def test_merging_prints_the_id_that_is_there(cli: Cli, root: Path, there: str) -> None:
    done = cli("store", FACT, "--tag", "db", "--on-duplicate", "merge", "--json")
    assert done.data["memory_id"] == there
    (told,) = done.data["duplicates"]
    assert {name: told[name] for name in ("grade", "memory_id", "content", "recalled_at")} == {
        "grade": "exact", "memory_id": there, "content": FACT, "recalled_at": None,
    }  # fmt: skip
    assert "not stored again" in cli("store", FACT, "--on-duplicate", "merge").err
    with AgentMemory("bob", root=root) as memory:
        found = memory.get(there)
        assert found is not None
        assert (found.tags, memory.count()) == (["db"], 1)


def test_refusing_has_an_exit_code_of_its_own(cli: Cli, root: Path, there: str) -> None:
    done = cli("store", FACT, "--on-duplicate", "refuse")
    assert (done.code, done.out) == (7, "")
    assert f"{there} (exact duplicate): update that one, or keep both (`--on-dup" in done.err
    assert count(root) == 1
    as_json = cli("store", FACT, "--on-duplicate", "refuse", "--json")
    assert as_json.code == 7
    assert json.loads(as_json.err)["error"]["code"] == "VALIDATION_ERROR"
    assert cli("store", FACT, "--on-duplicate", "drop").code == 2


def test_the_setting_in_the_file_holds_for_the_command(cli: Cli, root: Path, there: str) -> None:
    assert cli("configure", "on_duplicate", "refuse").code == 0
    assert cli("store", FACT).code == 7
    assert cli("store", FACT, "--on-duplicate", "keep").code == 0
    assert count(root) == 2
    assert there


def test_a_file_of_lines_is_merged_or_refused_whole(cli: Cli, root: Path, there: str) -> None:
    text = lines("Tea", FACT, "tea.")
    refused = cli("store", "--jsonl", "-", "--on-duplicate", "refuse", input=text)
    assert refused.code == 7
    assert "line 3" in refused.err
    assert there in refused.err
    assert count(root) == 1
    told = cli("store", "--jsonl", "-", "--on-duplicate", "merge", input=text).err
    assert "line 3: exact" in told
    assert "line 5: exact" in told
    merged = cli("store", "--jsonl", "-", "--on-duplicate", "merge", "--json", input=text)
    ids = merged.data["memory_ids"]
    assert ids == [ids[0], there, ids[0]]
    assert [one["index"] for one in merged.data["duplicates"]] == [0, 1, 2]
    assert merged.err == ""
    assert count(root) == 2


def test_of_many_duplicates_in_a_file_twenty_are_told(cli: Cli, there: str) -> None:
    done = cli("store", "--jsonl", "-", "--on-duplicate", "merge", input=lines(*[FACT] * 30))
    assert done.err.count(there) == 20
    assert "10 more" in done.err


def test_duplicates_of_a_text_are_shown(cli: Cli, root: Path, there: str) -> None:
    assert f"exact  100%   {there}" in cli("duplicates", FACT).out
    assert f"exact  100%   {there}" in cli("duplicates", "-", input=FACT + "\n").out
    assert cli("duplicates", FACT, "--user", "ann").out == "no duplicates\n"
    (found,) = cli("duplicates", f"the {FACT}", "--json").data["duplicates"]
    assert (found["grade"], found["memory_id"]) == ("near", there)
    assert count(root) == 1


def test_groups_of_duplicates_are_listed(cli: Cli, root: Path, there: str) -> None:
    assert cli("duplicates").out == "no duplicates\n"
    with AgentMemory("bob", root=root) as memory:
        ids = memory.store_many([{"content": text} for text in ("Tea", f"the {FACT}", "tea")])
    groups = cli("duplicates", "--json").data["groups"]
    assert [(group["grade"], [it["id"] for it in group["memories"]]) for group in groups] == [
        ("near", [there, ids[1]]),
        ("exact", [ids[0], ids[2]]),
    ]
    text = cli("duplicates", "--limit", "1").out
    assert there in text
    assert ids[0] not in text
    assert cli("duplicates", "--user", "ann").code == 2

"""Secrets on the command line: told on stderr and in JSON, masked, refused, listed; never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli
from labelled_secrets import ALNUM, chars, tokens

from agent_memory import AgentMemory

SECRET = tokens("cli")["github classic"]
OTHER = tokens("cli")["google"]
WORD = chars("pass", ALNUM, 10) + "!9k"
pytestmark = pytest.mark.usefixtures("as_bob")


def contents(root: Path) -> list[str]:
    with AgentMemory("bob", root=root, create=False) as memory:
        assert memory.check().problems == []
        return [it.content for it in memory.list_recent(100)]


def test_a_secret_that_is_stored_is_told_once_and_not_shown(cli: Cli, root: Path) -> None:
    done = cli("store", f"use {SECRET}")
    memory_id = done.out.strip()
    assert (done.code, contents(root)) == (0, [f"use {SECRET}"])
    assert done.err == (
        f"note: {memory_id} seems to contain a secret (GitHub token in content): stored as it"
        f" is; `erase {memory_id}` removes it, `configure on_secret mask` masks new ones\n"
    )
    told = json.loads(cli("store", f"{SECRET} again", "--json").out)
    (one,) = told["metadata"]["secrets"]
    assert one["memory_id"] == told["data"]["memory_id"]
    assert (one["kinds"], one["fields"], one["decision"]) == (["GitHub token"], ["content"], "warn")
    assert SECRET not in json.dumps(told)


def test_what_has_no_secret_has_no_word_about_it(cli: Cli) -> None:
    done = cli("store", "token budget: 800", "--json")
    assert "secrets" not in json.loads(done.out)["metadata"]
    assert done.err == ""


def test_the_option_masks_refuses_or_keeps(cli: Cli, root: Path) -> None:
    done = cli("store", f"use {SECRET}", "--on-secret", "mask")
    assert "masked GitHub token in content" in done.err
    kept = cli("store", f"keep {SECRET}", "--on-secret", "keep", "--json")
    assert (kept.code, kept.err) == (0, "")
    refused = cli("store", f"no {SECRET}", "--on-secret", "refuse")
    assert (refused.code, refused.out) == (4, "")
    assert SECRET not in refused.err
    assert sorted(contents(root)) == [f"keep {SECRET}", "use [masked: GitHub token]"]


def test_the_setting_of_the_file_holds_for_every_command(
    cli: Cli, root: Path, tmp_path: Path
) -> None:
    memory_id = cli("store", "plain").out.strip()
    assert cli("configure", "on_secret", "mask").code == 0
    changed = cli("update", memory_id, "--content", f"use {SECRET}")
    assert f"{memory_id}: masked GitHub token in content" in changed.err
    assert SECRET not in changed.out
    lines = tmp_path / "in.jsonl"
    lines.write_text(json.dumps({"content": f"{OTHER} of maps"}) + "\n" + '{"content": "b"}\n')
    stored = cli("store", "--jsonl", str(lines), "--json")
    (one,) = json.loads(stored.out)["metadata"]["secrets"]
    assert one["memory_id"] == stored.data["memory_ids"][0]
    assert "masked Google key" in stored.err
    lines.write_text(json.dumps({"content": f"{OTHER} again"}) + "\n")
    taken = cli("import", str(lines))
    assert (taken.code, OTHER in taken.out + taken.err) == (0, False)
    assert not any(SECRET in it or OTHER in it for it in contents(root))


def test_a_refused_first_memory_leaves_no_empty_agent(cli: Cli, root: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text(
        "".join(json.dumps({"content": text}) + "\n" for text in ("one", f"no {SECRET}")),
        encoding="utf-8",
    )
    for words in ([f"no {SECRET}"], ["--jsonl", str(lines)]):
        refused = cli("store", *words, "--on-secret", "refuse")
        assert (refused.code, "seems to contain a secret" in refused.err) == (4, True)
        assert SECRET not in refused.err
        assert not (root / "bob" / "memories.db").exists()
    assert cli("store", "--jsonl", str(lines), "--on-secret", "refuse", "--skip-bad").code == 0
    assert [each["content"] for each in cli("recent", "--json").data["memories"]] == ["one"]


def test_a_refused_fact_is_told_once(cli: Cli, tmp_path: Path) -> None:
    cli("configure", "on_secret", "refuse")
    said = tmp_path / "chat.txt"
    said.write_text(f"Remember: the key is {SECRET}\n", encoding="utf-8")
    done = cli("add", str(said))
    assert (done.code, done.err.count("seems to contain a secret")) == (4, 1)
    assert done.err.startswith("note: a fact was not stored: ")


def test_a_refused_line_of_a_file_is_named(cli: Cli, tmp_path: Path) -> None:
    cli("store", "plain")
    cli("configure", "on_secret", "refuse")
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"content": "a"}\n' + json.dumps({"content": f"my {SECRET}"}) + "\n")
    for words in (("store", "--jsonl"), ("import",)):
        done = cli(*words, str(lines))
        assert done.code == 4
        assert "line 2: content: seems to contain a secret (GitHub token)" in done.err
        assert SECRET not in done.err
    told = cli("store", f"my {SECRET}", "--json")
    error = json.loads(told.err)["error"]
    assert error["details"]["errors"][0]["ctx"] == {"kinds": ["GitHub token"]}
    assert SECRET not in told.err


def test_an_import_warns_on_stderr_and_in_the_report(cli: Cli, tmp_path: Path) -> None:
    lines = tmp_path / "in.jsonl"
    lines.write_text(json.dumps({"id": "m1", "content": f"my {SECRET}"}) + "\n")
    done = cli("import", str(lines), "--json")
    assert "m1 (GitHub token in content)" in done.data["notes"][0]
    assert "m1 (GitHub token in content)" in done.err
    assert SECRET not in done.out + done.err


def test_what_holds_secrets_is_listed_by_id_with_advice(cli: Cli) -> None:
    cli("store", f"use {SECRET}", "--id", "m1", "--metadata", json.dumps({"password": WORD}))
    cli("store", "plain")
    done = cli("secrets")
    assert done.code == 0
    assert "m1" in done.out
    assert "GitHub token, password" in done.out
    assert "`erase ID`" in done.out
    assert SECRET not in done.out
    assert WORD not in done.out
    (one,) = cli("secrets", "--json").data["secrets"]
    assert (one["memory_id"], one["fields"]) == ("m1", ["content", "metadata.password"])
    cli("erase", "m1", "--yes")
    assert cli("secrets").out == "no memory seems to contain a secret\n"


def test_a_wrong_option_does_not_repeat_what_was_given(cli: Cli) -> None:
    for metadata in (f"password: {WORD}", json.dumps([WORD])):
        done = cli("store", "x", "--metadata", metadata)
        assert done.code == 2
        assert WORD not in done.err


def test_a_file_that_is_no_memories_is_not_quoted(cli: Cli, tmp_path: Path) -> None:
    cli("store", "plain")
    wrong = tmp_path / "env"
    for text in (f"OPENAI_API_KEY={SECRET}\n", f'{{"content": "x", "k": {WORD}}}\n'):
        wrong.write_text(text)
        done = cli("import", str(wrong))
        assert done.code == 4
        assert SECRET[:12] not in done.err
        assert WORD[:9] not in done.err

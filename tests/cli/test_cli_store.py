"""The commands that store and change: store, update, forget."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from conftest import Cli

from agent_memory import AgentMemory, Memory
from agent_memory.cli import run

pytestmark = pytest.mark.usefixtures("as_bob")


def stored(root: Path) -> list[str]:
    """Return what bob's file holds."""
    with AgentMemory("bob", root=root, create=False) as memory:
        assert memory.check().problems == []
        return sorted(one.content for one in memory.list_recent(100))


def get(root: Path, memory_id: str) -> Memory:
    with AgentMemory("bob", root=root, create=False) as memory:
        found = memory.get(memory_id)
    assert found is not None
    return found


def store(root: Path, *contents: str) -> list[str]:
    with AgentMemory("bob", root=root) as memory:
        return memory.store_many([{"content": content} for content in contents])


def lines(*items: object) -> bytes:
    return b"".join(
        item if isinstance(item, bytes) else json.dumps(item).encode() + b"\n" for item in items
    )


# store ------------------------------------------------------------------------------------------


def test_storing_prints_the_id_and_nothing_else(cli: Cli, root: Path) -> None:
    done = cli("store", "Prefer PostgreSQL")
    assert (done.code, done.err) == (0, "")
    assert get(root, done.out.removesuffix("\n")).content == "Prefer PostgreSQL"
    again = cli("store", "Prefer SQLite", "--json")
    assert get(root, again.data["memory_id"]).content == "Prefer SQLite"


def test_every_option_of_store_is_kept(cli: Cli, root: Path) -> None:
    done = cli(
        "store", "Move to PostgreSQL", "--category", "decision", "--tag", "Database", "-t", "ops",
        "--kind", "task", "--importance", "high", "--user", "ann", "--run", "run-7",
        "--session", "session-9", "--timestamp", "2026-01-28T12:00:00+02:00",
        "--metadata", '{"confidence": 0.9}', "--id", "note:1",
    )  # fmt: skip
    assert done.out == "note:1\n"
    found = get(root, "note:1").model_dump(mode="json")
    expected = {
        "content": "Move to PostgreSQL", "category": "decision", "tags": ["database", "ops"],
        "kind": "task", "importance": "high", "user_id": "ann", "run_id": "run-7",
        "created_by_session": "session-9", "timestamp": "2026-01-28T10:00:00Z",
        "metadata": {"confidence": 0.9},
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_storing_an_id_again_changes_nothing_and_another_content_is_refused(
    cli: Cli, root: Path
) -> None:
    for _ in range(2):
        assert cli("store", "one", "--id", "note:1").out == "note:1\n"
    other = cli("store", "two", "--id", "note:1")
    assert (other.code, other.out) == (4, "")
    assert "other content" in other.err
    assert stored(root) == ["one"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (b"from a pipe\n", "from a pipe"),
        ("中文 und Äpfel\r\n".encode(), "中文 und Äpfel"),
        (b"two\nlines\n\n", "two\nlines"),
        (b"  indented", "  indented"),
        (b"\xef\xbb\xbffrom Windows\r\n", "from Windows"),  # whose mark is not the text
    ],
)
def test_a_dash_stores_what_comes_on_stdin(cli: Cli, root: Path, given: bytes, kept: str) -> None:
    assert cli("store", "-", input=given).code == 0
    assert stored(root) == [kept]


def test_an_update_takes_its_text_from_stdin_too(cli: Cli, root: Path) -> None:
    memory_id = cli("store", "tea").out.strip()
    assert cli("update", memory_id, "--content", "-", input=b"coffee\n").code == 0
    assert stored(root) == ["coffee"]
    assert cli("update", memory_id, "--content", "-", input=b"").code == 4
    assert stored(root) == ["coffee"]


@pytest.mark.parametrize(
    ("words", "given", "code", "says"),
    [
        (["-"], b"caf\xe9", 4, "not UTF-8"),
        (["-"], b"", 4, "empty"),
        (["-"], b"a\0b", 4, "NUL"),
        (["  "], b"", 4, "empty"),
        (["caf\udce9"], b"", 4, "UTF-8"),
        (["x" * 10_001], b"", 4, "10001"),
        (["x", "--category", "nonsense"], b"", 4, "preference"),
        (["x", "--tag", "t" * 51], b"", 4, "50"),
        (["x", "--kind", "nonsense"], b"", 2, "learning"),
        (["x", "--timestamp", "some day"], b"", 2, "2026-01-28"),
        (["x", "--metadata", "[1]"], b"", 2, "JSON object"),
        (["x", "--metadata", "{bad"], b"", 2, "the value is not JSON"),
        (["x", "--metadata", '{"a": NaN}'], b"", 4, "nan"),
        (["x", "--metadata", '{"a": 1, "a": 2}'], b"", 2, "the key 'a' occurs twice"),
        (["x", "--metadata", '{"b": {"a": 1, "a": 2}}'], b"", 2, "the key 'a' occurs twice"),
        (["x", "--id", "a b"], b"", 4, "memory id"),
        ([], b"", 2, "CONTENT"),
        (["x", "--jsonl", "-"], b"", 2, "CONTENT"),
        (["--jsonl", "missing.jsonl"], b"", 2, "missing.jsonl"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_the_reason(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    given: bytes,
    code: int,
    says: str,
) -> None:
    store(root, "kept")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert run(["--root", str(root), "store", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "Traceback" not in err
    assert stored(root) == ["kept"]


def test_the_real_program_refuses_bytes_that_are_not_utf_8(cli: Cli, root: Path) -> None:
    store(root, "kept")
    for done in (cli("store", "-", input=b"caf\xe9"), cli("store", "caf\udce9")):
        assert (done.code, done.out) == (4, "")
        assert "UTF-8" in done.err
        assert "Traceback" not in done.err
    assert stored(root) == ["kept"]


# store --jsonl ----------------------------------------------------------------------------------


@pytest.mark.parametrize("through", ["file", "stdin"])
def test_jsonl_stores_a_memory_a_line(cli: Cli, root: Path, tmp_path: Path, through: str) -> None:
    # A byte order mark, CRLF, a blank line, a line separator inside a text, no newline at the end.
    given = (
        b'\xef\xbb\xbf{"content": "one", "tags": ["a"], "id": "note:1"}\r\n\r\n'
        + '{"content": "two\u2028halves", "metadata": {"n": 1}}\n{"content": "three"}'.encode()
    )
    (tmp_path / "notes.jsonl").write_bytes(given)
    if through == "file":
        done = cli("store", "--jsonl", str(tmp_path / "notes.jsonl"))
    else:
        done = cli("store", "--jsonl", "-", input=given)
    assert (done.code, done.out) == (0, "stored 3 memories\n")
    assert stored(root) == ["one", "three", "two\u2028halves"]
    assert get(root, "note:1").tags == ["a"]


BAD_LINES = {
    "not JSON": b"{oops}\n",
    "not an object": b"[1]\n",
    "no content": b'{"tags": ["a"]}\n',
    "blank content": b'{"content": " "}\n',
    "unknown field": b'{"content": "x", "colour": "red"}\n',
    "wrong type": b'{"content": 7}\n',
    "a key twice": b'{"content": "x", "content": "y"}\n',
    "not a number": b'{"content": "x", "metadata": {"a": NaN}}\n',
    "not UTF-8": b'{"content": "caf\xe9"}\n',
    "nested too deep": b'{"content": "x", "metadata": ' + b'{"a":' * 5000 + b"1\n",
    "half a surrogate": b'{"content": "\\ud800"}\n',
    "cut off": b'{"content": "x"\n',
}


def test_one_bad_line_stops_the_whole_load_and_is_named(cli: Cli, root: Path) -> None:
    store(root, "kept")
    given = lines({"content": "good"}, b"\n", BAD_LINES["no content"], {"content": "good too"})
    done = cli("store", "--jsonl", "-", input=given)
    assert (done.code, done.out) == (4, "")
    assert "line 3" in done.err
    assert "--skip-bad" in done.err
    assert stored(root) == ["kept"]


def test_skip_bad_stores_the_rest_and_reports_each_line(cli: Cli, root: Path) -> None:
    given = lines({"content": "first"}, *BAD_LINES.values(), {"content": "last"})
    done = cli("store", "--jsonl", "-", "--skip-bad", "--json", input=given)
    assert done.code == 0
    assert stored(root) == ["first", "last"]
    assert len(done.data["memory_ids"]) == 2
    numbers = list(range(2, 2 + len(BAD_LINES)))
    assert [skipped["line"] for skipped in done.data["skipped"]] == numbers
    assert all(skipped["reason"] for skipped in done.data["skipped"])
    assert [f"line {number} was skipped" in done.err for number in numbers] == [True] * len(numbers)


def test_the_same_memory_twice_in_a_file_is_stored_once(cli: Cli, root: Path) -> None:
    one = {"id": "note:1", "content": "one"}
    done = cli("store", "--jsonl", "-", "--json", input=lines(one, one))
    assert done.data["memory_ids"] == ["note:1", "note:1"]
    assert stored(root) == ["one"]


def test_an_id_with_two_contents_stops_the_load_and_the_line_is_named(cli: Cli, root: Path) -> None:
    given = lines({"content": "a"}, {"id": "n:1", "content": "b"}, {"id": "n:1", "content": "c"})
    done = cli("store", "--jsonl", "-", input=given)
    assert (done.code, done.out) == (4, "")
    assert not root.exists()
    assert "line 3" in done.err


def test_skip_bad_leaves_out_a_line_whose_id_is_taken(cli: Cli, root: Path) -> None:
    given = lines({"content": "a"}, {"id": "n:1", "content": "b"}, {"id": "n:1", "content": "c"})
    done = cli("store", "--jsonl", "-", "--skip-bad", "--json", input=given)
    assert done.code == 0
    assert [skipped["line"] for skipped in done.data["skipped"]] == [3]
    assert stored(root) == ["a", "b"]


def test_a_line_that_is_refused_only_when_it_is_stored_is_named_too(cli: Cli, root: Path) -> None:
    store(root, "kept")
    cli("store", "gone", "--id", "n:1")
    assert cli("erase", "n:1", "--yes").code == 0
    assert cli("reject", "kestrel").code == 0
    for refused in ({"content": "x", "tags": ["kestrel"]}, {"content": "gone", "id": "n:1"}):
        done = cli("store", "--jsonl", "-", input=lines({"content": "a"}, b"\n", refused))
        assert (done.code, done.out) == (4, "")
        field = "id: was erased" if "id" in refused else "tags[0]: contains a rejected value"
        assert done.err.startswith(f"Error: line 3: {field}")
        assert done.err.endswith(". Nothing was stored\n")
    assert stored(root) == ["kept"]


def test_a_load_of_nothing_stores_nothing(cli: Cli) -> None:
    done = cli("store", "--jsonl", "-", input=b"\n")
    assert (done.code, done.out) == (0, "stored 0 memories\n")


def test_a_long_load_into_a_pipe_prints_no_progress_bar(cli: Cli) -> None:
    given = lines(*({"content": f"memory {n}"} for n in range(2500)))
    done = cli("store", "--jsonl", "-", input=given)
    assert (done.code, done.out, done.err) == (0, "stored 2,500 memories\n", "")


# update -----------------------------------------------------------------------------------------


def test_update_changes_what_is_given_and_keeps_the_rest(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        one = memory.store("Prefer MySQL", tags=["database"], importance="low")
    done = cli("update", one, "--content", "Prefer PostgreSQL", "--importance", "high", "--json")
    assert done.code == 0
    assert (done.data["version"], done.data["content"]) == (2, "Prefer PostgreSQL")
    found = get(root, one)
    assert (found.content, found.importance, found.tags) == (
        "Prefer PostgreSQL",
        "high",
        ["database"],
    )
    text = cli("update", one, "--tag", "sql", "--metadata", '{"a": 1}', "--if-version", "2")
    assert "Prefer PostgreSQL" in text.out
    assert (get(root, one).tags, get(root, one).metadata) == (["sql"], {"a": 1})


def test_an_empty_user_or_run_takes_it_away(cli: Cli, root: Path) -> None:
    """Python's `update(id, user_id=None)` could, and the command refused an empty user."""
    memory_id = cli("store", "tea", "--user", "ann", "--run", "run-7").out.strip()
    assert cli("update", memory_id, "--run", "").code == 0
    assert (get(root, memory_id).user_id, get(root, memory_id).run_id) == ("ann", None)
    assert cli("update", memory_id, "--user", "", "--content", "coffee").code == 0
    assert (get(root, memory_id).user_id, get(root, memory_id).content) == (None, "coffee")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "--content"),
        (["--content", " "], 4, "empty"),
        (["--content", "x", "--if-version", "7"], 4, "version 1"),
        (["--category", "nonsense"], 4, "preference"),
    ],
)
def test_an_update_that_cannot_be_made_changes_nothing(
    cli: Cli, root: Path, words: list[str], code: int, says: str
) -> None:
    (one,) = store(root, "kept")
    before = get(root, one)
    done = cli("update", one, *words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert get(root, one) == before


# forget -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "given"), [(["--yes"], b""), (["-y"], b""), ([], b"y\n")])
def test_forget_deletes_what_is_named(cli: Cli, root: Path, words: list[str], given: bytes) -> None:
    one, _, three = store(root, "one", "two", "three")
    done = cli("forget", one, three, one, *words, input=given)
    assert (done.code, done.out) == (0, f"forgot {one}\nforgot {three}\n")
    assert ("Delete 2 memories?" in done.err) == (not words)
    assert stored(root) == ["two"]


def test_forget_as_json_gives_what_was_deleted(cli: Cli, root: Path) -> None:
    (one,) = store(root, "one")
    done = cli("forget", one, "--json", input=b"y\n")  # the question does not spoil the JSON
    assert [(gone["id"], gone["content"]) for gone in done.data["deleted"]] == [(one, "one")]


@pytest.mark.parametrize("given", [b"n\n", b"\n", b""])
def test_forget_deletes_nothing_without_a_yes(cli: Cli, root: Path, given: bytes) -> None:
    (one,) = store(root, "one")
    done = cli("forget", one, input=given)
    assert done.code == (1 if given else 2)  # a no, or nobody who could say it
    assert ("give --yes: stdin has ended" in done.err) == (not given)
    assert done.out == ""
    assert stored(root) == ["one"]


def test_forget_deletes_nothing_when_one_of_the_ids_is_unknown(cli: Cli, root: Path) -> None:
    (one,) = store(root, "one")
    done = cli("forget", one, "mem-unknown", "--yes")
    assert (done.code, done.out) == (3, "")
    assert "mem-unknown" in done.err
    assert stored(root) == ["one"]


def test_words_without_quotes_are_one_memory(cli: Cli) -> None:
    """As `search` takes them: "unexpected extra arguments" named no quotes."""
    assert cli("store", "Prefer", "tea", "over", "coffee", "--tag", "drinks").code == 0
    (kept,) = cli("recent", "--json").data["memories"]
    assert (kept["content"], kept["tags"]) == ("Prefer tea over coffee", ["drinks"])
    mixed = cli("store", "-", "Prefer", input="tea")
    assert (mixed.code, "standard input" in mixed.err) == (2, True)
    assert "Delete 1 memory? [y/N]" in cli("forget", kept["id"], input="n\n").err

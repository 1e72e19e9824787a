"""The commands that find and show, and how what they print looks."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import termios
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAM, Cli

from agent_memory import AgentMemory
from agent_memory.cli import run, tables
from agent_memory.cli.tables import display_width


@pytest.fixture(autouse=True)
def bob(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
    monkeypatch.delenv("COLUMNS", raising=False)


def store(root: Path, *items: dict[str, Any]) -> list[str]:
    with AgentMemory("bob", root=root) as memory:
        return memory.store_many(items)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Run the command line in this process, for tables of options; return its data."""
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["data"]


# search -----------------------------------------------------------------------------------------


@pytest.fixture
def walnuts(root: Path) -> dict[str, str]:
    """Store memories of one word that differ in all else; return their contents by id."""
    now = datetime.now(UTC)
    ids = store(
        root,
        {"content": "walnut a", "category": "decision", "tags": ["ops", "db"], "kind": "task",
         "importance": "high", "user_id": "ann", "run_id": "run-7", "session_id": "s-9",
         "metadata": {"confidence": 0.95}, "timestamp": now - timedelta(days=1)},
        {"content": "walnut b", "tags": ["db"], "metadata": {"confidence": 0.5},
         "timestamp": now - timedelta(days=30)},
        {"content": "walnut c", "timestamp": datetime(2020, 5, 8, 23, 30, tzinfo=UTC)},
    )  # fmt: skip
    return dict(zip(ids, "abc", strict=True))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], "abc"),
        (["--category", "decision"], "a"),
        (["-c", "decision", "-c", "note"], "abc"),
        (["--tag", "DB"], "ab"),
        (["-t", "db", "-t", "ops"], "a"),
        (["-t", "nowhere", "-t", "ops", "--any-tag"], "a"),
        (["--kind", "task"], "a"),
        (["--importance", "high"], "a"),
        (["--session", "s-9"], "a"),
        (["--user", "ann"], "a"),
        (["--run", "run-7"], "a"),
        (["--where", '{"confidence": {"gte": 0.9}}'], "a"),
        (["--where", '{"OR": [{"confidence": 0.5}, {"confidence": 0.95}]}'], "ab"),
        (["--since", "7d"], "a"),
        (["--since", "36h"], "a"),
        (["--since", "6w"], "ab"),
        (["--until", "7d"], "bc"),
        (["--until", "2020-05-08"], "c"),  # the whole of that day
        (["--until", "2020-05-08T23:00:00Z"], ""),
        (["--since", "2020-05-08T23:30:00Z", "--until", "2020-05-09T01:30:00+02:00"], "c"),
        (["--since", "2020-05-09", "--user", "ann"], "a"),
    ],
)
@pytest.mark.parametrize("command", [["search", "walnut"], ["recent"]])
def test_every_filter_narrows_search_and_recent(
    walnuts: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    words: list[str],
    found: str,
) -> None:
    data = printed(capsys, *command, *words)
    memories = data["memories"] if command == ["recent"] else [r["memory"] for r in data["results"]]
    assert "".join(sorted(walnuts[one["id"]] for one in memories)) == found


def test_search_options_are_obeyed_by_the_real_program(cli: Cli, walnuts: dict[str, str]) -> None:
    done = cli(
        "search", "what", "about", "the", "walnut?", "--since", "7d", "-n", "1", "--no-count"
    )
    assert (done.code, done.err) == (0, "")
    headings, row = done.out.splitlines()
    assert headings.split() == ["score", "id", "date", "category", "content"]
    (one,) = [memory_id for memory_id, name in walnuts.items() if name == "a"]
    assert row.split()[1:] == [one, row.split()[2], "decision", "walnut", "a", "#ops", "#db"]
    assert cli("show", one, "--json").data["access_count"] == 0
    cli("search", "walnut", "--tag", "ops")
    assert cli("show", one, "--json").data["access_count"] == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--since", "last week"], 2, "7d"),
        (["--since", "2026-02-30"], 2, "2026-02-30"),
        (["--until", "7 months"], 2, "7 months"),
        (
            ["--since", "2026-01-30", "--until", "2026-01-29"],
            4,
            "30T00:00:00Z is after --until 2026",
        ),
        (["--limit", "0"], 2, "1<=x<=100"),
        (["--limit", "101"], 2, "1<=x<=100"),
        (["--min-similarity", "1.5"], 2, "0<=x<=1"),
        (["--where", "{"], 2, "not JSON"),
        (["--where", '"x"'], 2, "JSON object"),
        (["--where", '{"confidence": {"nearly": 1}}'], 4, "nearly"),
        (["--kind", "nonsense"], 2, "learning"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(
    walnuts: dict[str, str], capsys: pytest.CaptureFixture[str],
    words: list[str], code: int, says: str,
) -> None:  # fmt: skip
    assert walnuts
    assert run(["search", "walnut", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "Traceback" not in err


ODD = ['"', "'", '"cat', "AND", "OR NOT", "a-b", "-cat", "kind:fact", "content:x", "cat*", "^cat",
       "NEAR(a b)", "(", ")", "c++", "don't", "a@b.example", ".", "?", "%", ";", "--", "\\",
       "'; DROP --", "{a b}:c", "日本", "🥜", "\u202e", "e\u0301", "x" * 5000,
       "\udce9", "\n", "1e999"]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_no_text_is_an_error_or_hides_what_is_there(
    walnuts: dict[str, str], capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    for query in (f"walnut {odd}", f"{odd} walnut"):
        assert run(["--json", "search", "--", query]) == 0
        found = json.loads(capsys.readouterr().out)["data"]["results"]
        assert {one["memory"]["id"] for one in found} == set(walnuts)


@pytest.mark.parametrize("query", ['"unclosed', "NEAR(", "caf\udce9", ""])
def test_the_real_program_takes_odd_queries_too(
    cli: Cli, walnuts: dict[str, str], query: str
) -> None:
    assert walnuts
    done = cli("search", "--", query)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("nothing found: ")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["zeppelin"], "no_match"),
        (["walnut", "--session", "nobody"], "filtered_out"),
        (["walnut", "--user", "nobody"], "no_match"),  # of this user: others are not spoken of
        ([], "empty_query"),
    ],
)
def test_a_search_that_finds_nothing_says_why(
    walnuts: dict[str, str], capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    assert walnuts
    data = printed(capsys, "search", *words)
    assert data["results"] == []
    assert data["search_metadata"]["reason"] == reason
    assert run(["search", *words]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"nothing found: {data['search_metadata']['explanation']}")


# show, recent, scratchpad, context, history -------------------------------------------------------


def test_show_prints_every_field_that_holds_something(cli: Cli, walnuts: dict[str, str]) -> None:
    one = next(iter(walnuts))
    lines = [re.split(r"  +", line, maxsplit=1) for line in cli("show", one).out.splitlines()]
    data = cli("show", one, "--json").data
    assert ["content", "walnut a"] in lines
    assert lines[lines.index(["metadata"]) + 1] == ["", "confidence        0.95"]
    names = {name for name, *_ in lines if name}
    assert names == {name for name, value in data.items() if value not in (None, [], {})}


def test_recent_lists_the_newest_first_up_to_its_limit(cli: Cli, walnuts: dict[str, str]) -> None:
    done = cli("recent", "--limit", "2")
    assert [line.split()[0] for line in done.out.splitlines()] == ["id", *list(walnuts)[:2]]
    beyond = cli("recent", "--offset", str(len(walnuts)))  # it was "no memories"
    assert beyond.out == f"no more than {len(walnuts)} memories\n"


def test_a_query_comes_on_stdin_too(cli: Cli, root: Path) -> None:
    store(root, {"content": "Ann likes tea"}, {"content": "Bea has a dog"})
    done = cli("search", "-", "--json", input="likes\n").data
    assert [hit["memory"]["content"] for hit in done["results"]] == ["Ann likes tea"]


def test_what_says_the_same_is_not_counted_as_cut(cli: Cli, root: Path) -> None:
    texts = ("The server runs Debian", "The server runs Debian.", "the server runs debian")
    store(root, *({"content": text} for text in texts), {"content": "A server monitors Oslo"})
    done = cli("search", "server", "-n", "2")
    assert "and 2 more that say the same" in done.out
    assert done.err == ""
    assert cli("search", "server", "-n", "1").err.startswith("note: ")


def test_a_list_that_is_cut_says_so(cli: Cli, root: Path) -> None:
    """It looked complete. A program gets the number, or whether there are more."""
    items = [{"content": f"walnut {number}", "user_id": "ann"} for number in range(3)]
    store(root, *items, *({"content": item["content"]} for item in items))
    assert cli("recent", "-n", "2").err == "note: 4 more: a larger -n shows them\n"
    assert cli("recent", "-n", "2", "--csv").err == "note: 4 more: a larger -n shows them\n"
    assert cli("recent", "-n", "2", "--user", "ann").err.startswith("note: 1 more")
    done = cli("recent", "-n", "4", "--offset", "1", "--json")
    assert (len(done.data["memories"]), done.data["total_count"], done.err) == (4, 6, "")
    assert cli("recent", "-n", "5", "--offset", "1").err == ""
    assert cli("recent").err == ""
    assert cli("search", "walnut", "-n", "2").err == "note: 4 more: a larger -n shows them\n"
    assert cli("search", "walnut", "-n", "2", "--no-weak").err == ""  # the others may be weak
    assert cli("search", "walnut 1").err == ""  # fewer than may be shown: nothing was cut
    assert cli("search", "walnut", "-n", "6").err == ""
    store(root, *({"content": item["content"]} for item in items))
    for words, count in ((["history"], 9), (["duplicates"], 3)):
        cut = cli(*words, "-n", str(count - 1))
        assert cut.err == "note: there are more: a larger -n shows them\n"
        assert cli(*words, "-n", str(count)).err == ""
        assert cli(*words, "-n", str(count - 1), "--json").data["has_more"] is True
        assert cli(*words, "-n", str(count), "--json").data["has_more"] is False


@pytest.mark.usefixtures("walnuts")
def test_recent_says_that_it_was_the_filters_that_left_nothing(cli: Cli) -> None:
    assert cli("recent", "--category", "insight").out == "no memories match the filters\n"


def test_promote_and_demote_move_a_memory_in_and_out_of_the_scratchpad(
    cli: Cli, walnuts: dict[str, str]
) -> None:
    one = next(iter(walnuts))
    assert cli("demote", one).out == f"demoted {one}\n"
    assert cli("demote", one, "--json").data == {"memory_id": one, "demoted": False}
    assert one not in cli("scratchpad").out
    assert cli("promote", one).out == f"promoted {one}\n"
    assert cli("promote", one, "--json").data["promoted"] is False
    pad = cli("scratchpad", "--json").data
    assert one in [entry["id"] for entry in pad["memories"]]
    assert pad["promoted"] == [one]
    (row,) = [line for line in cli("scratchpad").out.splitlines() if one in line]
    assert row.split()[4] == "yes"
    assert "walnut a (ops, db)" in cli("context").out
    assert cli("context", "--budget", "0").out == ""
    little = cli("context", "--budget", "5")
    assert (little.code, little.out) == (0, "")
    assert "nothing in it fits in 5 tokens" in little.err


def test_what_is_shown_can_be_limited_to_a_user(cli: Cli, root: Path) -> None:
    """Only a Python session could: in a shell, a context had every user's memories."""
    ann, bea, run_of_ann = store(
        root,
        {"content": "Ann likes tea", "user_id": "ann"},
        {"content": "Bea likes coffee", "user_id": "bea"},
        {"content": "Ann is in a hurry", "user_id": "ann", "run_id": "run-7"},
    )
    for memory_id in (ann, bea, run_of_ann):
        assert cli("promote", memory_id).code == 0
    assert cli("forget", ann, "--yes").code == 0
    assert cli("undo").code == 0

    context = cli("context", "--user", "ann").out
    assert "tea" in context
    assert "coffee" not in context
    pad = cli("scratchpad", "--user", "ann", "--run", "run-7", "--json").data
    assert [each["id"] for each in pad["memories"]] == [run_of_ann]
    entries = cli("history", "--user", "ann", "--json").data["history"]
    assert [(each["event"], each["memory_id"]) for each in entries] == [
        ("ADD", ann), ("DELETE", ann), ("ADD", run_of_ann), ("ADD", ann),
    ]  # fmt: skip
    assert len(cli("history", "--user", "ann", "-n", "2", "--json").data["history"]) == 2
    assert cli("history", bea, "--user", "ann").code == 3
    assert cli("context", "--run", "run-7").code == 2


def test_history_tells_what_a_memory_was(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root, session_id="s-1") as memory:
        one, other = memory.store("Prefer MySQL"), memory.store("another")
        memory.update(one, content="Prefer PostgreSQL")
        memory.delete(one)
    events = [entry["event"] for entry in cli("history", one, "--json").data["history"]]
    assert events == ["DELETE", "UPDATE", "ADD"]
    done = cli("history", one)
    assert [line.split()[3] for line in done.out.splitlines()[1:]] == events
    assert "Prefer MySQL" in done.out
    assert other not in done.out
    assert len(cli("history", "--limit", "1").out.splitlines()) == 2


# What is printed on a terminal --------------------------------------------------------------------

EVIL = "red alert \x1b[31m \x1b]0;title\x07 \x9b2J back\b\rspace \u202etxt.exe\u2066 \x7f end"
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]")


@pytest.mark.parametrize(
    "words",
    [["search", "alert"], ["recent"], ["show"], ["history"], ["scratchpad"], ["context"],
     ["search", "alert", "--json"], ["recent", "--json"], ["context", "--json"],
     ["forget", "--json"]],
    ids=" ".join,
)  # fmt: skip
def test_a_memory_cannot_steer_the_terminal(
    root: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (one,) = store(root, {"content": EVIL, "metadata": {"note": EVIL}})
    command, *rest = words
    if command in ("show", "forget"):
        rest = [one, *(["--yes"] if command == "forget" else []), *rest]
    assert run([command, *rest]) == 0
    out = capsys.readouterr().out
    assert "alert" in out
    assert HARMFUL.findall(out) == []


def test_json_gives_a_content_exactly_as_it_is(cli: Cli, root: Path) -> None:
    (one,) = store(root, {"content": EVIL + "\n中文 🥜"})
    assert cli("show", one, "--json").data["content"] == EVIL + "\n中文 🥜"


def test_columns_line_up_whatever_the_script(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root, session_id="s") as memory:
        for content in (
            "plain",
            "使用数据库",
            "\uff46\uff55\uff4c\uff4c",
            "cafe\u0301",
            "ぁ" * 60,
            "한국어 text",
        ):
            memory.update(memory.store(content), content="becomes NEW")
    rows = [line for line in cli("history").out.splitlines() if "UPDATE" in line]
    starts = {display_width(row[: row.index("becomes NEW")]) for row in rows}
    assert len(rows) == 6
    assert len(starts) == 1
    assert display_width("使用数据库") == 10
    assert display_width("cafe\u0301") == 4


def on_a_terminal(columns: int, *words: str) -> list[str]:
    """Run the program on a terminal of a width and return the lines that it showed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    # readline, which pytest imports, sets COLUMNS where Python does not see it
    environment = dict(os.environ)
    command = [PROGRAM, *words]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment):
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the program has ended
                break
            if not piece:
                break
            shown += piece
    os.close(master)
    return shown.decode().replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words", [["recent"], ["search", "walnut"], ["scratchpad"], ["history"]], ids=" ".join
)
def test_a_table_fits_the_terminal(root: Path, columns: int, words: list[str]) -> None:
    ids = store(root, {"content": "walnut " + "long " * 50}, {"content": "walnut 使用数据库" * 20})
    with AgentMemory("bob", root=root) as memory:
        memory.update(ids[0], content="a walnut " + "longer " * 50)
    shown = on_a_terminal(columns, *words)
    rows = [line for line in shown if any(one in line for one in ids)]
    assert len(rows) >= 2
    assert [display_width(line) for line in shown if display_width(line) > columns] == []


@pytest.mark.parametrize(
    ("name", "value", "is_colored"),
    [("NO_COLOR", "", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)],
)
def test_a_terminal_shows_an_error_in_red_unless_it_shall_not(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, is_colored: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv(name, value)
    store(root, {"content": "a walnut"})
    (error,) = on_a_terminal(200, "show", "mem-none")
    assert error.startswith("\x1b[31mError:\x1b[0m " if is_colored else "Error: ")


@pytest.fixture
def colored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR")


@pytest.mark.usefixtures("colored")
def test_the_words_of_a_question_stand_out_and_weak_hits_are_faint(root: Path) -> None:
    store(
        root,
        {"content": "Walnuts and \x1b[31mred \ufdd1 tables: walnuts"},
        {"content": "an old shelf of walnut, which stands in another room than the others"},
        *({"content": f"the {n}th lamp"} for n in range(5)),
    )
    heading, hit, *_ = on_a_terminal(100, "search", "walnut tables")
    assert heading.startswith("\x1b[1mscore ")
    assert heading.endswith("\x1b[0m")
    strong = re.findall("\x1b\\[1m(.*?)\x1b\\[0m", hit)
    assert strong == ["Walnuts", "tables", "walnuts"]
    assert "\\u001b[31mred \\ufdd1" in hit  # what a memory says has no color of its own
    weak = [line for line in on_a_terminal(100, "search", "walnut tables") if "shelf" in line]
    assert [line.startswith("\x1b[2m(") and line.endswith("\x1b[0m") for line in weak] == [True]
    assert max(len(re.sub("\x1b\\[\\d+m", "", line)) for line in [heading, hit]) <= 100


@pytest.mark.usefixtures("colored")
def test_nothing_else_than_a_terminal_gets_colors(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(root, {"content": "a walnut"})
    words = ["search", "walnut", "--no-count"]
    assert "\x1b" not in cli(*words).out
    assert "\x1b" not in cli("check").out
    for form in (["--json"], ["--csv"], ["--nl"], ["--table"], ["--fmt", "grid"]):
        assert "\x1b" not in "".join(on_a_terminal(100, *words, *form))
    assert on_a_terminal(100, "check")[-1] == "1 memory, \x1b[32msound\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(on_a_terminal(100, *words))
    assert on_a_terminal(100, "check")[-1] == "1 memory, sound"


def test_a_table_wraps_long_texts_between_words(root: Path) -> None:
    (memory_id,) = store(root, {"content": "The billing service moved to " + "Postgres " * 12})
    shown = on_a_terminal(80, "recent")
    column = shown[1].index("The billing")
    texts = [line[column:] for line in shown[1:]]
    assert " ".join(texts) == "The billing service moved to " + "Postgres " * 11 + "Postgres"
    assert [line[:column].strip() for line in shown[2:]] == [""] * (len(shown) - 2)
    assert memory_id in shown[1]


def test_a_table_of_many_rows_shows_some_lines_of_each_and_all_with_full(root: Path) -> None:
    content = " ".join(f"word{n}" for n in range(60))
    store(root, *({"content": f"{n} {content}"} for n in range(12)))
    shown = on_a_terminal(80, "recent", "-n", "12")
    assert len(shown) == 1 + 12 * 3
    assert sum(line.endswith("…") for line in shown) == 12
    whole = on_a_terminal(80, "recent", "-n", "12", "--full")
    assert sum("word59" in line for line in whole) == 12
    few = on_a_terminal(80, "recent", "-n", "2")
    assert sum("word59" in line for line in few) == 2


LISTS = [["recent"], ["search", "walnut", "--no-count"], ["scratchpad"], ["history"], ["agents"]]


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_comes_as_csv_and_as_json_lines(cli: Cli, root: Path, words: list[str]) -> None:
    store(
        root, {"content": 'a "walnut",\nand more', "tags": ["a", "b"]}, {"content": "walnut = 使"}
    )
    in_csv = list(csv.DictReader(io.StringIO(cli(*words, "--csv").out)))
    in_lines = [json.loads(line) for line in cli(*words, "--nl").out.splitlines()]
    assert len(in_csv) == len(in_lines) == (1 if words == ["agents"] else 2)
    for of_csv, of_lines in zip(in_csv, in_lines, strict=True):
        assert list(of_csv) == list(of_lines)
        for name, value in of_lines.items():
            if isinstance(value, str):
                assert of_csv[name] == value
            elif isinstance(value, list | dict):
                assert json.loads(of_csv[name]) == value


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_comes_as_a_table_of_markdown(cli: Cli, root: Path, words: list[str]) -> None:
    long = "walnut " * 60 + "end"
    store(root, {"content": f"a | b \\| {long}"})
    for lines in (cli(*words, "--table").out.splitlines(), on_a_terminal(80, *words, "--table")):
        heading, rule, *rows = lines
        assert set(rule) == {"|", "-"}
        assert len(rows) == 1
        columns = re.split(r"(?<!\\)\|", heading)
        assert len(re.findall(r"(?:\\.|[^|\\])*\|", rows[0])) == len(columns) - 1
        if words != ["agents"]:
            assert f"a \\| b \\\\\\| {long}" in rows[0]


FORMS = {
    "plain": ["name  text", "a     b | c", "使    d"],
    "simple": ["name  text", "----  -----", "a     b | c", "使    d"],
    "grid": [
        "+------+-------+", "| name | text  |", "+======+=======+", "| a    | b | c |",
        "+------+-------+", "| 使   | d     |", "+------+-------+",
    ],
    "markdown": ["| name | text |", "|---|---|", "| a | b \\| c |", "| 使 | d |"],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_table_has_the_form_that_was_asked_for(form: str) -> None:
    rows = [("name", "text"), ("a", "b | c"), ("使", "d")]
    assert tables.FORMS[form](rows).splitlines() == FORMS[form]
    assert tables.FORMS["github"] is tables.FORMS["markdown"]


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_every_list_takes_a_form(cli: Cli, root: Path, words: list[str]) -> None:
    store(root, {"content": "walnut\nand\x1b[31m more " + "word " * 50})
    printed = {form: cli(*words, "--fmt", form).out for form in tables.FORMS}
    assert printed["github"] == printed["markdown"] == cli(*words, "--table").out
    assert cli(*words, "--table", "--fmt", "grid").out == printed["grid"]
    assert len(printed["grid"].splitlines()) == 5
    assert len({len(line) for line in printed["grid"].splitlines()}) == 1
    assert len(printed["simple"].splitlines()) == 3
    assert "\x1b" not in "".join(printed.values())
    ran = cli(*words, "--fmt", "latex")
    assert (ran.code, "'plain', 'simple', 'grid', 'markdown', 'github'" in ran.err) == (2, True)


def test_what_is_listed_elsewhere_comes_as_rows_too(cli: Cli, root: Path) -> None:
    ids = store(root, {"content": "password=hunter2horse"}, {"content": "the red lighthouse"})
    store(root, {"content": "The red lighthouse!"})
    cli("backup")
    cli("reject", "quillibrand")
    for words, count, name in (
        (["backups"], 1, "path"),
        (["secrets"], 1, "memory_id"),
        (["duplicates"], 2, "grade"),
        (["duplicates", "the red lighthouse"], 2, "grade"),
        (["reject", "--list"], 1, "rejection_id"),
    ):
        rows = list(csv.DictReader(io.StringIO(cli(*words, "--csv").out)))
        assert [name in row for row in rows] == [True] * count
        assert len(cli(*words, "--nl").out.splitlines()) == count
        assert len(cli(*words, "--fmt", "grid").out.splitlines()) >= 3 + 2 * count
    assert cli("reject", "kestrel", "--csv").out == "rejected: number 2\n"  # no list
    assert cli("secrets", "--nl").out.count(ids[0]) == 1


@pytest.mark.parametrize(
    "words",
    [
        *LISTS,
        ["backups"],
        ["secrets"],
        ["duplicates"],
        ["duplicates", "a walnut"],
        ["reject", "--list"],
    ],
    ids=" ".join,
)
def test_a_list_without_rows_has_its_headings_in_csv(
    cli: Cli, root: Path, words: list[str]
) -> None:
    store(root, {"content": "a walnut"}, {"content": "password=hunter2horse"})
    store(root, {"content": "A walnut!"})
    cli("backup")
    cli("reject", "quillibrand")
    AgentMemory("eve", root=root / "elsewhere").close()
    elsewhere = ("--root", str(root / "elsewhere" / ("no" * (words == ["agents"]))))
    headings, *rows = csv.reader(io.StringIO(cli(*words, "--csv").out))
    assert [len(row) for row in rows] == [len(headings)] * len(rows) != []
    empty = cli(*words, "--agent", "eve", *elsewhere, "--csv")
    assert (empty.code, list(csv.reader(io.StringIO(empty.out)))) == (0, [headings]), empty.err
    empty = cli(*words, "--agent", "eve", *elsewhere, "--nl")
    assert (empty.code, empty.out) == (0, "")


@pytest.mark.parametrize(
    "options",
    [
        ["--csv", "--nl"],
        ["--csv", "--table"],
        ["--nl", "--fmt", "grid"],
        ["--json", "--csv"],
        ["--table", "--json"],
        ["--fmt", "grid", "--nl"],
    ],
    ids=" ".join,
)
def test_a_list_is_printed_in_one_way(cli: Cli, root: Path, options: list[str]) -> None:
    store(root, {"content": "walnut"})
    one, other = (word for word in options if word.startswith("--"))
    ran = cli("recent", *options)
    assert (ran.code, ran.out) == (2, "")
    assert f"{one} and {other}: choose one" in ran.err
    before = cli("--json", "recent", *options)
    assert (before.code, before.out) == (2, "")
    wrapped = cli("--envelope", "recent", *options[: options.index(other)])
    message = "" if one == "--json" else f"--envelope and {one}: choose one"
    assert (wrapped.code == 2, message in wrapped.out) == (bool(message), True)


def test_nothing_is_cut_where_the_output_is_not_a_terminal(cli: Cli, root: Path) -> None:
    content = "word " * 400 + "end"
    store(root, {"content": content})
    assert content in cli("recent").out
    assert content in cli("search", "word").out
    contents = [f"{n} " + "字" * 9_990 for n in range(12)]
    store(root, *({"content": wide} for wide in contents))
    for command in ("recent", "history"):
        lines = cli(command, "-n", "12").out.splitlines()
        assert [line.split("  ")[-1] for line in lines[1:]] == contents[::-1]


@pytest.mark.parametrize("words", ["recent -n 1000", "recent -n 1000 --json", "history -n 1000"])
def test_a_reader_that_goes_away_is_no_error(root: Path, words: str) -> None:
    store(root, *({"content": f"memory {n} " + "x" * 500} for n in range(500)))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"'{PROGRAM}' {words} | head -1"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == 1
    assert (done.returncode, done.stderr) == (0, "")

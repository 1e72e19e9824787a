"""The commands of a memory's life: archive, undo, tidy, erase, reject; tasks, times, filters."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, Clock

from agent_memory import AgentMemory, Memory

pytestmark = pytest.mark.usefixtures("as_bob")


@pytest.fixture
def past(clock: Clock) -> Clock:
    """A clock that is a hundred days slow: the program has the real one."""
    clock.now = datetime.now(UTC) - timedelta(days=100)
    return clock


def state(root: Path) -> dict[str, Memory]:
    """Return all memories of bob, archived ones too."""
    with AgentMemory("bob", root=root, create=False) as memory:
        assert memory.check().problems == []
        return {it.id: it for it in memory.list_recent(1000, filters={"archived": None})}


def store(root: Path, *ids: str, **fields: Any) -> None:
    """Store memories that say their ids."""
    with AgentMemory("bob", root=root) as memory:
        for memory_id in ids:
            memory.store(f"the {memory_id} plan", id=memory_id, **fields)


def listed(done: Any) -> set[str]:
    return {it["id"] for it in done.data["memories"]}


# The archive ------------------------------------------------------------------------------------


def test_archived_memories_are_found_where_they_are_asked_for(cli: Cli, root: Path) -> None:
    store(root, "walnut", "quartz", "basalt")
    done = cli("archive", "walnut", "quartz")
    assert (done.code, done.out) == (0, "archived walnut\narchived quartz\n")
    assert listed(cli("recent", "--json")) == {"basalt"}
    assert listed(cli("recent", "--archived", "--json")) == {"walnut", "quartz"}
    assert "walnut" not in cli("search", "walnut").out.splitlines()[0]
    assert "the walnut plan" in cli("search", "walnut", "--archived").out
    info = cli("info", "--json").data
    assert (info["memory_count"], info["archived_count"]) == (1, 2)
    (change, _) = cli("history", "walnut", "--json").data["history"]
    assert (change["old_values"], change["new_values"]) == ({"archived": False}, {"archived": True})
    back = cli("unarchive", "walnut", "--json")
    assert [it["archived"] for it in back.data["memories"]] == [False]
    assert cli("unarchive", "quartz").out == "unarchived quartz\n"
    assert listed(cli("recent", "--json")) == {"walnut", "quartz", "basalt"}


def test_an_archived_memory_is_not_said_to_be_in_the_scratchpad(cli: Cli, root: Path) -> None:
    store(root, "walnut")
    cli("archive", "walnut")
    done = cli("promote", "walnut")
    assert (done.code, done.out) == (4, "")  # a script took its success for one
    assert "walnut is archived: `unarchive` it first" in done.err
    cli("unarchive", "walnut")
    assert "walnut" in cli("scratchpad").out


def test_one_is_kept_of_those_that_say_the_same(cli: Cli, root: Path) -> None:
    store(root, "walnut", tags=["a"])
    store(root, "quartz", "basalt", tags=["b"], importance="high")
    done = cli("merge", "walnut", "quartz", "basalt")
    assert (done.code, done.out) == (0, "kept walnut, and forgot quartz, basalt\n")
    (kept,) = state(root).values()
    assert (kept.id, kept.tags, kept.importance) == ("walnut", ["a", "b"], "high")
    assert "undid merge of 3 memories" in cli("undo").out
    assert state(root).keys() == {"walnut", "quartz", "basalt"}
    assert state(root)["walnut"].tags == ["a"]
    assert cli("merge", "walnut", "walnut").code == 4
    assert cli("merge", "walnut", "mem-000000000000").code == 3
    assert state(root).keys() == {"walnut", "quartz", "basalt"}


@pytest.mark.parametrize("command", ["archive", "unarchive"])
def test_of_unknown_memories_none_is_archived(cli: Cli, root: Path, command: str) -> None:
    store(root, "walnut")
    done = cli(command, "walnut", "mem-000000000000")
    assert (done.code, done.out) == (3, "")
    assert "mem-000000000000" in done.err
    assert not state(root)["walnut"].archived
    assert cli(command).code == 2


# Tasks ------------------------------------------------------------------------------------------


def test_a_task_is_followed_from_its_start_to_its_outcome(cli: Cli, root: Path) -> None:
    blocked = ["--status", "blocked", "--blocker", "no key", "--blocker", "no time"]
    assert cli("store", "mend the build", "--id", "build", *blocked).code == 0
    task = state(root)["build"]
    assert task.kind == "task"
    assert task.task_metadata is not None
    assert (task.task_metadata.status, task.task_metadata.blockers) == (
        "blocked", ["no key", "no time"],
    )  # fmt: skip
    assert listed(cli("recent", "--status", "blocked", "--json")) == {"build"}

    before = datetime.now(UTC)
    done = cli("update", "build", "--status", "completed", "--outcome", "it is green", "--json")
    told = done.data["task_metadata"]
    assert (told["status"], told["blockers"], told["outcome"]) == ("completed", [], "it is green")
    assert before <= datetime.fromisoformat(told["completed_at"]) <= datetime.now(UTC)
    assert listed(cli("recent", "--status", "blocked", "--json")) == set()
    assert re.search(r"status +completed", cli("show", "build").out)
    assert "mend the build" in cli("search", "build", "--status", "completed").out

    again = cli("update", "build", "--outcome", "it stays green", "--json").data["task_metadata"]
    assert again == {**told, "outcome": "it stays green"}
    opened = cli("update", "build", "--status", "in-progress", "--json").data["task_metadata"]
    assert (opened["status"], opened["completed_at"]) == ("in-progress", None)
    assert cli("undo").code == 0
    assert cli("show", "build", "--json").data["task_metadata"] == again


@pytest.mark.parametrize("command", ["update", "store"])
def test_a_blocker_is_kept_or_refused_and_never_dropped(cli: Cli, root: Path, command: str) -> None:
    store(root, "build", kind="task", task_metadata={"status": "in-progress"})
    words = ["build"] if command == "update" else ["mend the tests", "--id", "tests"]
    done = cli(command, *words, "--blocker", "no key")
    kept = [it.task_metadata.blockers for it in state(root).values() if it.task_metadata]
    if done.code:
        assert "blocked" in done.err
    else:
        assert ["no key"] in kept


def test_an_empty_blocker_takes_blockers_away_and_blocks_nothing(cli: Cli, root: Path) -> None:
    """It was stored as a blocker, and a completed task was blocked again."""
    blocked = {"status": "blocked", "blockers": ["no key", " "]}
    store(root, "build", kind="task", task_metadata=blocked)
    store(root, "tests", kind="task", task_metadata={"status": "completed"})
    store(root, "note")
    memories = state(root)
    assert memories["build"].task_metadata is not None
    assert memories["build"].task_metadata.blockers == ["no key"]
    for memory_id, status in (("build", "blocked"), ("tests", "completed")):
        task = cli("update", memory_id, "--blocker", "", "--json").data["task_metadata"]
        assert (task["status"], task["blockers"]) == (status, [])
    assert cli("update", "note", "--blocker", "").code == 2
    assert cli("store", "a second note", "--id", "second", "--blocker", "").code == 0
    memories = state(root)
    assert memories["note"].task_metadata is memories["second"].task_metadata is None


def test_an_empty_outcome_takes_the_outcome_away(cli: Cli, root: Path) -> None:
    """It was stored as an outcome, and made a task of a note."""
    done = {"status": "completed", "outcome": "shipped"}
    store(root, "build", kind="task", task_metadata=done)
    store(root, "note")
    task = cli("update", "build", "--outcome", " ", "--json").data["task_metadata"]
    assert (task["status"], task["outcome"]) == ("completed", None)
    assert cli("update", "note", "--outcome", "").code == 2
    assert cli("store", "a second note", "--id", "second", "--outcome", "").code == 0
    memories = state(root)
    assert memories["note"].task_metadata is memories["second"].task_metadata is None


@pytest.mark.parametrize(
    "words", [["--status", "done"], ["--kind", "dream"], ["--importance", "1"]]
)
def test_a_word_that_is_none_of_them_is_wrong_usage(cli: Cli, root: Path, words: list[str]) -> None:
    store(root, "walnut")
    done = cli("update", "walnut", *words)
    assert done.code == 2
    assert words[0] in done.err
    assert state(root)["walnut"].version == 1


def test_kind_and_importance_narrow_down(cli: Cli, root: Path) -> None:
    store(root, "core-high", kind="core", importance="high")
    store(root, "core-low", kind="core", importance="low")
    store(root, "task-high", kind="task", importance="high")
    assert listed(cli("recent", "--kind", "core", "--json")) == {"core-high", "core-low"}
    assert listed(cli("recent", "--importance", "high", "--json")) == {"core-high", "task-high"}
    found = cli("search", "plan", "--kind", "core", "--importance", "low", "--json").data
    assert [it["memory"]["id"] for it in found["results"]] == ["core-low"]


# Undo -------------------------------------------------------------------------------------------


def test_undo_says_what_it_undid_and_can_be_undone(cli: Cli, root: Path) -> None:
    store(root, "walnut")
    cli("update", "walnut", "--content", "the quartz plan")
    assert cli("undo").out == (
        "undid UPDATE of 1 memory: walnut\nchanged: the walnut plan (was: the quartz plan)\n"
    )
    assert state(root)["walnut"].content == "the walnut plan"
    done = cli("undo", "--json").data
    assert (done["verb"], done["memory_ids"]) == ("undo", ["walnut"])
    assert (done["removed"], done["restored"], done["changed"]) == ([], [], ["walnut"])
    assert state(root)["walnut"].content == "the quartz plan"


def test_undo_says_what_became_of_which_memory(cli: Cli, root: Path) -> None:
    """After a verb that it does not cover it removed another memory, and only showed the id."""
    store(root, "walnut")
    store(root, "quartz")
    cli("promote", "walnut")
    assert cli("undo").out.splitlines()[1] == "removed: the quartz plan"
    assert cli("undo").out.splitlines()[1] == "back: the quartz plan"
    done = cli("undo", "--json").data
    assert (done["removed"], done["restored"], done["changed"]) == (["quartz"], [], [])
    done = cli("undo", "--json").data
    assert (done["removed"], done["restored"], done["changed"]) == ([], ["quartz"], [])
    cli("store", "the basalt plan, " * 20, "--id", "basalt")
    (_, line) = cli("undo").out.splitlines()
    assert line.startswith("removed: the basalt plan, the basalt")
    assert line.endswith("…")
    assert len(line) < 100


def test_a_large_undo_lists_some_of_its_memories(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store_many({"content": f"plan {number}"} for number in range(25))
    lines = cli("undo").out.splitlines()
    assert lines[1:3] == ["removed: plan 0", "removed: plan 1"]
    assert (len(lines), lines[-1]) == (22, "and 5 more: --json lists them")
    assert state(root) == {}


def test_undo_takes_a_change_by_the_number_that_history_shows(cli: Cli, root: Path) -> None:
    store(root, "walnut", "quartz")
    cli("update", "walnut", "--content", "the marble plan")
    cli("update", "quartz", "--content", "the basalt plan")
    heading, row, _ = cli("history", "walnut").out.splitlines()
    place = re.search(r"\b(change|number)\b", heading)
    assert place is not None, heading
    number = row[place.start() :].split()[0]
    undid, _ = cli("undo", "--change", number).out.splitlines()
    assert undid == "undid UPDATE of 1 memory: walnut"
    after = {it.content for it in state(root).values()}
    assert after == {"the walnut plan", "the basalt plan"}


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["--change", "1"], 4, "has since been changed again, by change 2"),
        (["--change", "99"], 4, "no such change, 99: `history` lists them"),
        (["--review", "7"], 4, "no such dismissed review, 7"),
        (["--change", "0"], 2, "--change"),
        (["--change", "first"], 2, "--change"),
        (["--change", "99999999999999999999"], 4, "change_id"),
    ],
)
def test_what_cannot_be_undone_is_said(
    cli: Cli, root: Path, words: list[str], code: int, named: str
) -> None:
    store(root, "walnut")
    cli("update", "walnut", "--content", "the quartz plan")
    done = cli("undo", *words)
    assert (done.code, done.out) == (code, "")
    assert named in done.err
    assert state(root)["walnut"].content == "the quartz plan"


def test_what_one_command_did_is_undone_as_one(cli: Cli, root: Path) -> None:
    store(root, "walnut", "quartz", "basalt")
    cli("archive", "walnut", "quartz")
    assert "undid archive of 2 memories: walnut, quartz" in cli("undo").out
    assert cli("forget", "walnut", "quartz", "--yes").code == 0
    assert "of 2 memories" in cli("undo").out
    assert state(root).keys() == {"walnut", "quartz", "basalt"}


def test_a_forgotten_memory_is_not_one_that_never_was(cli: Cli, root: Path) -> None:
    store(root, "walnut")
    cli("forget", "walnut", "--yes")
    done = cli("show", "walnut")
    assert (done.code, done.err.startswith("Error: walnut was forgotten: ")) == (3, True)
    assert done.err.endswith("shows what it was, and `undo --change 2` brings it back\n")
    assert cli("undo", "--change", "2").code == cli("show", "walnut").code == 0
    done = cli("show", "quartz")
    assert (done.code, "forgotten" in done.err) == (3, False)


def test_an_agent_is_prepared_before_its_first_memory(cli: Cli, root: Path) -> None:
    """Both failed for an agent without a file; `store` and `import` create it."""
    for words in (["configure"], ["configure", "on_secret"], ["reject", "--list"], ["reject", "?"]):
        assert cli("--agent", "new", *words).code == 5
    assert cli("--agent", "new", "configure", "on_secret", "sometimes").code == 4
    assert not (root / "new").exists()
    done = cli("--agent", "new", "configure", "on_secret", "refuse")
    assert (done.code, len(done.out.splitlines())) == (0, 2)  # a heading, and the one setting
    done = cli("--agent", "new", "configure", "on_secret", "--json")
    assert done.data == {"on_secret": "refuse"}
    assert "is no setting" in cli("--agent", "new", "configure", "on_secrets").err
    assert cli("--agent", "newer", "reject", "hunter2").code == 0
    assert cli("--agent", "newer", "store", "it is hunter2").code == 4


def test_a_file_chosen_by_its_path_may_be_of_any_agent(cli: Cli, root: Path) -> None:
    """The agent of the environment was compared with the file's, and it was refused."""
    store(root, "walnut")
    path = str(root / "bob" / "memories.db")
    ann = {"AGENT_MEMORY_AGENT": "ann"}
    for words in (["--db", path, "recent"], ["recent", "--db", path]):
        assert "walnut" in cli(*words, env=ann).out
        assert cli(*words, "--agent", "ann", env=ann).code != 0


# Tidying ----------------------------------------------------------------------------------------


def test_tidy_archives_what_it_said_it_would(cli: Cli, root: Path, past: Clock) -> None:
    with AgentMemory("bob", root=root, clock=past) as memory:
        memory.store("an old learning", id="old")
        memory.store("an old core fact", id="core", kind="core")
        past.forward(days=95)
        memory.store("a new learning", id="new")
    done = cli("tidy")
    assert (done.code, done.out.splitlines()[0]) == (0, "0 archived")
    assert "configure retention standard" in done.out
    assert cli("configure", "retention", "standard").code == 0

    planned = cli("tidy", "--dry-run")
    assert planned.out.splitlines()[-1] == "1 would be archived"
    assert "not used for 100 days" in planned.out
    assert [it for it in state(root).values() if it.archived] == []
    told = cli("tidy", "--json").data
    assert [(it["memory_id"], it["reason"]) for it in told["archived"]] == [
        ("old", "not used for 100 days")
    ]
    assert Path(told["backup"]).name.endswith(".before-tidy.db")
    assert {it.id for it in state(root).values() if it.archived} == {"old"}
    assert cli("undo").out == "undid tidy of 1 memory: old\nchanged: an old learning\n"
    assert [it for it in state(root).values() if it.archived] == []


@pytest.mark.parametrize(
    ("value", "code", "kept"),
    [
        ("standard", 0, 90),
        ('{"archive_learnings_after_days": 5}', 0, 5),
        ("null", 0, None),
        ("weekly", 4, 1),
        ('{"archive_learnings_after_days": 0}', 4, 1),
        ('{"limits": {"dream": {}}}', 4, 1),
    ],
)
def test_a_policy_is_configured_or_refused(
    cli: Cli, root: Path, value: str, code: int, kept: int | None
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(retention={"archive_learnings_after_days": 1})
    done = cli("configure", "retention", value)
    assert done.code == code
    assert (code == 0) or "retention" in done.err
    with AgentMemory("bob", root=root) as memory:
        policy = memory.configure().retention
    assert (policy and policy.archive_learnings_after_days) == kept


def test_a_hard_limit_says_which_command_makes_room(cli: Cli, root: Path) -> None:
    limit = {"limits": {"core": {"max_memories": 2, "enforcement": "hard"}}}
    store(root, "walnut", "quartz", kind="core")
    assert cli("configure", "retention", json.dumps(limit)).code == 0
    refused = cli("store", "a third", "--kind", "core")
    assert (refused.code, refused.out) == (4, "")
    advice = re.search(r"`agent-memory (archive [^`]+)`", refused.err)
    assert advice is not None
    assert cli(*shlex.split(advice[1])).code == 0
    assert cli("store", "a third", "--kind", "core").code == 0
    assert cli("unarchive", "walnut", "quartz").code == 4
    assert len([it for it in state(root).values() if it.archived]) == 2


# The past ---------------------------------------------------------------------------------------


def test_the_past_is_shown_by_spans_and_dates(cli: Cli, root: Path, past: Clock) -> None:
    with AgentMemory("bob", root=root, clock=past) as memory:
        memory.store("the walnut plan", id="plan")
        past.forward(days=50)
        memory.update("plan", content="the quartz plan")
        past.forward(days=40)
        memory.delete("plan")
    then = (datetime.now(UTC) - timedelta(days=60)).date().isoformat()
    assert cli("show", "plan").code == 3
    assert "the walnut plan" in cli("show", "plan", "--as-of", "60d").out
    assert "the walnut plan" in cli("show", "plan", "--as-of", then).out
    assert "the quartz plan" in cli("recent", "--as-of", "3w").out
    assert cli("recent", "--as-of", "7d").out == "no memories\n"
    found = cli("search", "which plan, walnut?", "--as-of", then, "--json").data["results"]
    assert [it["memory"]["content"] for it in found] == ["the walnut plan"]
    assert cli("search", "plan", "--as-of", "2020-01-01").code == 0
    of_the_change = (datetime.now(UTC) - timedelta(days=40)).date().isoformat()
    assert "the quartz plan" in cli("show", "plan", "--as-of", of_the_change).out
    for command in (["show", "plan"], ["recent"], ["search", "plan"]):
        wrong = cli(*command, "--as-of", "last week")
        assert wrong.code == 2
        assert "12h, 7d, 2w ago, today, yesterday" in wrong.err


# Erasing ----------------------------------------------------------------------------------------


def test_erasing_with_the_backups_leaves_nothing(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the vault code is 8317-4420-9956", id="secret")
        memory.store("the walnut plan", id="plan")
        memory.backup()
    done = cli("erase", "secret", "--backups", "--yes", "--json")
    assert done.code == 0
    receipt = done.data
    assert (receipt["ids"], receipt["memories"], receipt["clean"]) == (["secret"], 1, True)
    assert [it["erased"] for it in receipt["backups"]] == [True]
    for path in (root / "bob").rglob("*"):
        assert not path.is_file() or b"8317-4420" not in path.read_bytes()
    assert state(root).keys() == {"plan"}
    assert "erase" in cli("undo").err


def test_what_a_backup_still_holds_is_told(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the vault code is 8317-4420-9956", id="secret")
        by_hand = memory.backup()
        memory.configure(backups_kept=0)
    done = cli("erase", "secret", "--yes")
    assert done.code == 0
    assert f"{by_hand}: still contains it" in done.out
    assert "--backups" in done.out
    assert cli("erase", "secret", "--backups", "--yes").code == 0
    assert b"8317-4420" not in by_hand.read_bytes()


def test_what_is_left_in_the_file_has_an_exit_code(cli: Cli, root: Path) -> None:
    store(root, "a-password-of-the-vault")
    assert cli("reject", "hunter2", "--reason", "the a-password-of-the-vault plan").code == 0
    done = cli("erase", "a-password-of-the-vault", "--backups", "--yes", "--json")
    assert (done.code, done.data["clean"]) == (6, False)
    assert "the reason of rejection 1" in done.data["found"][0]
    assert state(root) == {}


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (["--where", '{"source": "crm"}'], {"crm", "archived"}),
        (["--category", "decision"], {"decision"}),
        (["--tag", "old"], {"crm"}),
        (["--archived"], {"archived"}),
        (["--kind", "core", "--importance", "high"], {"decision"}),
        (["--user", "ann"], {"crm"}),
    ],
)
def test_what_the_options_describe_is_erased(
    cli: Cli, root: Path, words: list[str], gone: set[str]
) -> None:
    crm = {"metadata": {"source": "crm"}}
    store(root, "crm", **crm, tags=["old"], user_id="ann")
    store(root, "archived", **crm)
    store(root, "decision", category="decision", kind="core", importance="high")
    store(root, "plain")
    assert cli("archive", "archived").code == 0
    done = cli("erase", *words, "--backups", "--yes", "--json")
    assert done.code == 0, done.err
    assert set(done.data["ids"]) == gone
    assert state(root).keys() == {"crm", "archived", "decision", "plain"} - gone


def test_what_a_user_had_deleted_is_erased_with_the_rest(cli: Cli, root: Path) -> None:
    store(root, "crm", user_id="ann")
    assert cli("forget", "crm", "--yes").code == 0
    done = cli("erase", "--user", "ann", "--backups", "--yes", "--json")
    assert (done.code, done.data["ids"]) == (0, ["crm"])


def test_a_graph_stated_by_hand_is_erased_without_any_memory(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.graph.add("Rex", "lives_in", "Oslo", user_id="ann")
    done = cli("erase", "--user", "ann", "--backups", "--yes")
    assert done.code == 0, done.err
    assert "3 entities and relationships stated by hand" in done.out
    with AgentMemory("bob", root=root) as memory:
        assert memory.session({"user_id": "ann"}).graph.relationships() == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["walnut"], 2),  # nobody is there to say yes
        (["walnut", "--category", "note", "--yes"], 2),
        (["walnut", "--finish", "--yes"], 2),
        (["--any-tag", "--yes"], 2),
        (["--where", "{}", "--yes"], 2),
        (["--where", "[]", "--yes"], 2),
        (["--category", "decision", "--yes"], 4),
        (["walnut", "mem-000000000000", "--yes"], 3),
        (["walnut", "mem-000000000000"], 3),  # said before it is asked
        (["mem-000000000000", "--backups", "--yes"], 3),
    ],
)
def test_an_erasure_that_is_not_clear_erases_nothing(
    cli: Cli, root: Path, words: list[str], code: int
) -> None:
    store(root, "walnut", "quartz")
    done = cli("erase", *words)
    assert (done.code, done.out) == (code, "")
    assert done.err
    assert state(root).keys() == {"walnut", "quartz"}
    assert not (root / "bob" / "backups").exists()


def test_an_erasure_is_finished(cli: Cli, root: Path) -> None:
    store(root, "walnut")
    assert cli("erase", "--finish").out == "the file was rewritten\n"
    assert cli("erase", "--finish", "--json").data == {"finished": True}
    assert state(root).keys() == {"walnut"}


# Rejecting --------------------------------------------------------------------------------------


def test_a_rejected_value_is_kept_out_until_it_is_lifted(cli: Cli, root: Path) -> None:
    store(root, "walnut")
    done = cli("reject", "the walnut", "--reason", "a word that is not ours")
    assert done.code == 0
    assert done.out.splitlines() == ["rejected: number 1", "1 memory contains it: walnut"]
    refused = cli("store", "All about The-Walnut!")
    assert (refused.code, refused.out) == (4, "")
    assert "walnut" not in refused.err.lower()
    shown = cli("reject", "--list")
    assert "a word that is not ours" in shown.out
    assert "walnut" not in shown.out
    assert cli("reject", "--list", "--json").data["rejections"][0]["word_count"] == 2
    assert cli("reject", "--lift", "1", "--json").data == {"lifted": True}
    assert cli("reject", "--list").out == "nothing is rejected\n"
    assert cli("store", "All about The-Walnut!").code == 0


def test_a_secret_is_erased_and_rejected_without_being_in_the_command(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the vault code is 8317-4420-9956", id="secret")
    done = cli("reject", "-", "--json", input="8317-4420-9956\n")
    assert done.data["holders"] == ["secret"]
    assert "8317" not in done.out
    assert cli("erase", *done.data["holders"], "--backups", "--yes").code == 0
    refused = cli("store", "code 8317 4420 9956")
    assert refused.code == 4
    assert "8317" not in refused.err
    for path in (root / "bob").rglob("*"):
        assert not path.is_file() or b"8317" not in path.read_bytes()


@pytest.mark.parametrize(
    ("words", "given", "code"),
    [
        ([], b"", 2),
        (["--lift", "1", "--list"], b"", 2),
        (["value", "--list"], b"", 2),
        (["--lift", "first"], b"", 2),
        (["--lift", "99999999999999999999"], b"", 4),
        (["-"], b"", 4),
        (["-"], b"\xff\xfe", 4),
        (["w " * 1001], b"", 4),
        (["value", "--reason", "the value itself"], b"", 4),
    ],
)
def test_what_cannot_be_rejected_is_refused(
    cli: Cli, root: Path, words: list[str], given: bytes, code: int
) -> None:
    store(root, "walnut")
    done = cli("reject", *words, input=given)
    assert (done.code, done.out) == (code, "")
    assert "bug in agent-memory" not in done.err
    assert cli("reject", "--list").out == "nothing is rejected\n"


def test_lifting_what_is_not_rejected_says_so(cli: Cli, root: Path) -> None:
    store(root, "walnut")
    done = cli("reject", "--lift", "7")
    assert (done.code, done.out, "there is no rejection 7" in done.err) == (4, "", True)

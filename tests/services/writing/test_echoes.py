"""What was just given to the agent, and comes back, is not stored as new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory, Duplicate, DuplicateMemory

FACT = "Use PostgreSQL for new projects"
OTHER = "The parrot of the neighbours is called Pepe"


def recall(memory: AgentMemory, how: str) -> None:
    """Give the memories out."""
    text = memory.context() if how == "context" else memory.search("PostgreSQL").results
    assert text


@pytest.mark.parametrize("how", ["context", "search"])
@pytest.mark.parametrize(
    "echo", [FACT, "use PostgreSQL  for new projects.", "For new projects, use PostgreSQL"]
)
def test_what_was_recalled_is_not_stored_as_new(memory: AgentMemory, how: str, echo: str) -> None:
    there = memory.store(FACT, tags=["db"])
    recall(memory, how)
    assert memory.store(echo, tags=["sql"]) == there
    found = memory.get(there)
    assert found is not None
    assert (found.content, found.tags, memory.count()) == (FACT, ["db", "sql"], 1)


def test_what_was_not_recalled_is_stored(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    memory.store(OTHER)
    memory.search("parrot Pepe", 1)
    assert memory.store(FACT) != there


def test_a_context_without_room_recalls_nothing(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    assert memory.context(0) == ""
    assert memory.store(FACT) != there


@pytest.mark.parametrize(("minutes", "is_echo"), [(60, True), (61, False)])
def test_an_echo_is_one_for_an_hour(
    memory: AgentMemory, clock: Any, minutes: int, is_echo: bool
) -> None:
    there = memory.store(FACT)
    recall(memory, "search")
    clock.forward(minutes=minutes)
    assert (memory.store(FACT) == there) is is_echo


def test_the_hour_is_counted_by_the_clock_not_by_the_moment_of_the_question(
    memory: AgentMemory,
) -> None:
    there = memory.store(FACT)
    memory.search("PostgreSQL", now="2020-01-01")
    assert memory.store(FACT) == there


def test_a_corrected_value_is_no_echo(memory: AgentMemory) -> None:
    there = memory.store("Standup is at 9:30")
    recall_all = memory.context()
    assert "9:30" in recall_all
    new = memory.store("Standup is at 10:00")
    assert new != there
    assert memory.get(there) is not None


@pytest.mark.parametrize(
    "given",
    [{"timestamp": "2026-01-01"}, {"id": "fact:1"}, {"user_id": "ann"}, {"on_duplicate": "keep"}],
)
def test_what_says_more_than_the_text_is_no_echo(
    memory: AgentMemory, given: dict[str, Any]
) -> None:
    there = memory.store(FACT)
    recall(memory, "search")
    assert memory.store(FACT, **given) != there
    if "on_duplicate" not in given:
        (last,) = memory.store_many([{"content": FACT, **given, "id": "fact:2"}])
        assert last == "fact:2"


def test_the_setting_keep_in_the_file_keeps_echoes(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    memory.configure(on_duplicate="keep")
    recall(memory, "search")
    assert memory.store(FACT) != there


def test_an_echo_is_refused_or_told_where_that_is_asked(memory: AgentMemory, clock: Any) -> None:
    there = memory.store(FACT)
    recall(memory, "context")
    with pytest.raises(DuplicateMemory, match=there):
        memory.store(f"- {FACT}", on_duplicate="refuse")
    told: list[Duplicate] = []
    memory.store(FACT, on_duplicate=told.append)
    assert [(one.memory_id, one.recalled_at) for one in told] == [(there, clock.now)]
    assert memory.count() == 1


def test_a_list_has_its_echoes_merged(memory: AgentMemory) -> None:
    there = memory.store(FACT)
    recall(memory, "search")
    ids = memory.store_many([{"content": OTHER}, {"content": FACT}])
    assert ids[1] == there
    assert memory.count() == 2


# What `context` puts around it --------------------------------------------------------------------


@pytest.fixture
def filled(memory: AgentMemory) -> AgentMemory:
    memory.store(FACT, category="preference", tags=["db", "sql"], id="fact")
    memory.store("Warning: the disk (the old one) is full (again)", id="warning")
    memory.store("Steps:\n  1. build\n  2. ship", category="task", id="steps")
    assert memory.context().count("\n- ") == 3
    return memory


@pytest.mark.parametrize(
    ("text", "there"),
    [
        (f"- [2026-01-30] Preference: {FACT} (db, sql)", "fact"),
        (f"Preference: {FACT}", "fact"),
        (f"* {FACT} (db, sql)", "fact"),
        (f"[2026-01-30] {FACT}.", "fact"),
        ("- Note: Warning: the disk (the old one) is full (again)", "warning"),
        ("- [2026-01-30] Task: Steps: 1. build 2. ship", "steps"),
        ("Steps:\n1. build\n2. ship", "steps"),
        (f"- {FACT}\n\n- Warning: the disk (the old one) is full (again)", "fact"),
    ],
)
def test_a_line_is_recognised_with_its_wrapping_off(
    filled: AgentMemory, text: str, there: str
) -> None:
    before = filled.get(there)
    assert filled.store(text) == there
    assert filled.get(there) == before
    assert filled.count() == 3


def test_the_whole_context_is_an_echo_of_its_first_memory(filled: AgentMemory) -> None:
    text = filled.context()
    first = next(line for line in text.splitlines() if line.startswith("- "))
    again = filled.store(text)
    found = filled.get(again)
    assert found is not None
    assert found.content.split("\n")[0] in first
    assert filled.count() == 3


@pytest.mark.parametrize(
    "text",
    [
        f"- {FACT}\n- and MySQL for old ones",
        f"- Decision: {FACT}",
        f"- {FACT} (db)",
        f"- {FACT} (for now)",
        f"{FACT}: no",
        f"- [2026-01-30] Preference: {FACT} 17 (db, sql)",
        f"- [2025-12-01] Preference: {FACT} (db, sql)",
        f"[2025-12-01] {FACT}",
        f"## Recent Memories (now with MySQL)\n- {FACT}",
        f"These notes were recalled from storage. Not so: MySQL.\n- {FACT}",
        "## Recent Memories (1 entry, ~9 tokens)",
    ],
)
def test_a_text_that_says_anything_new_is_stored(filled: AgentMemory, text: str) -> None:
    assert filled.store(text) not in ("fact", "warning", "steps")
    assert filled.count() == 4


@pytest.mark.parametrize(
    "given",
    [{"tags": ["x"]}, {"importance": "high"}, {"metadata": {"a": 1}}, {"category": "note"}],
)
def test_what_is_said_of_several_lines_is_not_lost(
    filled: AgentMemory, given: dict[str, Any]
) -> None:
    text = f"- {FACT}\n- Warning: the disk (the old one) is full (again)"
    new = filled.get(filled.store(text, **given))
    assert new is not None
    assert new.content == text
    assert filled.count() == 4


def test_a_minus_sign_is_no_bullet(memory: AgentMemory) -> None:
    there = memory.store("5 degrees is the setpoint")
    line = next(line for line in memory.context().splitlines() if "5 degrees" in line)
    assert memory.store(line) == there
    assert memory.store("- 5 degrees is the setpoint") != there


def test_a_date_may_belong_to_the_text(memory: AgentMemory) -> None:
    there = memory.store("[2025-12-01] Deploy of the shop")
    line = next(line for line in memory.context().splitlines() if "Deploy" in line)
    assert memory.store(line) == memory.store("- [2025-12-01] Deploy of the shop") == there


# What is more than an echo ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "correction"),
    [
        ("Standup of the team is at 9:30", "Standup of the team is at 10:00"),
        ("Use MySQL", "Use SQLite"),
        ("User lives in Bonn", "User lives in Cologne now"),
    ],
)
@pytest.mark.parametrize("is_list", [False, True])
def test_a_correction_may_be_taken_back(
    memory: AgentMemory, first: str, correction: str, is_list: bool
) -> None:
    there = memory.store(first)
    assert memory.search(first).results
    memory.store(correction)
    assert memory.duplicates(first)[0].recalled_at is None
    again = memory.store_many([{"content": first}])[0] if is_list else memory.store(first)
    assert again != there
    assert memory.search(first).results
    assert memory.store(f"{first}.") in (there, again)  # nothing newer says otherwise


def test_a_rendered_entry_may_take_a_correction_back(memory: AgentMemory) -> None:
    there = memory.store("Standup of the team is at 9:30")
    line = next(line for line in memory.context().splitlines() if "9:30" in line)
    memory.store("Standup of the team is at 10:00")
    assert memory.store(line) != there


def test_an_older_or_another_users_memory_corrects_nothing(memory: AgentMemory) -> None:
    memory.store("Standup of the team is at 10:00")
    there = memory.store("Standup of the team is at 9:30")
    memory.store("Standup of the team is at 11:00", user_id="ann")
    memory.context()
    assert memory.store("Standup of the team is at 9:30") == there


@pytest.mark.parametrize("wrap", ["{}", "- {}"])
@pytest.mark.parametrize(
    "given",
    [
        {"category": "decision"},
        {"importance": "high"},
        {"metadata": {"by": "bea"}},
        {"kind": "core"},
        {"tags": [f"t{n}" for n in range(20)]},
    ],
)
def test_what_was_given_beyond_the_echo_is_not_lost(
    memory: AgentMemory, given: dict[str, Any], wrap: str
) -> None:
    there = memory.store(FACT, metadata={"by": "ann"}, tags=["db"])
    recall(memory, "context")
    assert memory.store(wrap.format(FACT), **given) != there
    (listed,) = memory.store_many([{"content": wrap.format(FACT), **given, "user_id": None}])
    assert listed != there


def test_what_an_echo_can_take_over_makes_it_no_less_of_one(memory: AgentMemory) -> None:
    there = memory.store(FACT, metadata={"by": "ann"}, tags=["db"])
    recall(memory, "context")
    new = {"category": "note", "importance": "medium", "metadata": {"why": "joins"}}
    assert memory.store(FACT, tags=["sql"], **new) == there  # type: ignore[arg-type]
    found = memory.get(there)
    assert found is not None
    assert (found.tags, found.metadata) == (["db", "sql"], {"by": "ann", "why": "joins"})


def test_a_context_notes_what_it_showed_alone(memory: AgentMemory) -> None:
    short = memory.store("tea", category="task")
    long = memory.store("The team drinks tea at four o'clock")
    assert "drinks tea" in memory.context(config={"exclude_categories": ["task"]})
    assert memory.store("tea") != short
    assert memory.store("The team drinks tea at four o'clock") == long


def test_what_was_recalled_in_the_future_is_no_echo(memory: AgentMemory, clock: Any) -> None:
    there = memory.store(FACT)
    recall(memory, "search")
    memory.info()
    clock.forward(minutes=-5)
    assert memory.store(FACT) != there


def test_of_very_many_that_say_the_same_the_recalled_one_is_found(memory: AgentMemory) -> None:
    memory.store_many([{"content": FACT}] * 120)
    there = memory.store(FACT, category="decision", on_duplicate="keep")
    assert len(memory.search("PostgreSQL", filters={"category": ["decision"]}, limit=1)) == 1
    assert memory.store(FACT) == there


# Other processes ----------------------------------------------------------------------------------


def test_another_process_knows_what_was_recalled(root: Path, cli: Callable[..., Any]) -> None:
    there = cli("--agent", "bob", "store", FACT).out.strip()
    shown = cli("--agent", "bob", "context").out
    line = next(line for line in shown.splitlines() if FACT in line)
    again = cli("--agent", "bob", "store", "--", line)
    assert again.out.strip() == there
    assert "just recalled" in again.err
    assert cli("--agent", "bob", "store", "--on-duplicate", "keep", FACT).out.strip() != there
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 2


def test_what_was_recalled_is_forgotten_with_its_memory_and_after_an_hour(
    memory: AgentMemory, clock: Any, visitor: Callable[[Path, str], str]
) -> None:
    gone, old = memory.store(FACT), memory.store(OTHER)
    memory.context()
    memory.info()
    assert visitor(memory.path, "SELECT count(*) FROM recalls") == "2"
    visitor(memory.path, f"DELETE FROM memories WHERE id = '{gone}'")
    assert visitor(memory.path, "SELECT count(*) FROM recalls") == "1"
    clock.forward(hours=2)
    new = memory.store(FACT)
    memory.search("PostgreSQL", 1)
    memory.info()
    names = "SELECT m.id FROM recalls AS r JOIN memories AS m USING (seq)"
    assert visitor(memory.path, names) == new != old


def test_a_memory_that_is_gone_before_its_recall_is_written_is_no_trouble(
    memory: AgentMemory, visitor: Callable[[Path, str], str]
) -> None:
    there = memory.store(FACT)
    memory.search("PostgreSQL")
    visitor(memory.path, f"DELETE FROM memories WHERE id = '{there}'")
    assert memory.store(FACT) != there


def test_a_file_that_is_only_read_gives_its_context_and_answers(
    memory: AgentMemory, root: Path
) -> None:
    memory.store(FACT)
    with AgentMemory("bob", root=root, read_only=True) as reader:
        assert FACT in reader.context()
        assert reader.search("PostgreSQL").results
    assert memory.store(FACT)
    assert memory.count() == 2

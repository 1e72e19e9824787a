"""Statistics are what is counted by hand: in the tables, with another program, and in the log."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock, engine_of

from agent_memory import AgentMemory, MemoryStatistics, MemoryStorage, ValidationError

_QUERY = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.text_factory = lambda text: text.decode(errors="backslashreplace")
print(json.dumps([connection.execute(sql).fetchall() for sql in json.loads(sys.argv[2])]))
"""


def query(path: Path, *statements: str) -> list[list[list[Any]]]:
    """Run SQL with Python's own sqlite3, in a process of its own, and return all rows."""
    command = [sys.executable, "-c", _QUERY, str(path), json.dumps(statements)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rows: list[list[list[Any]]] = json.loads(done.stdout)
    return rows


def log_lines(path: Path) -> list[dict[str, Any]]:
    text = path.with_name("events.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a memory that was used for 120 days: stored, changed, deleted, archived, asked."""
    root = tmp_path_factory.mktemp("used")
    clock = Clock(NOW - timedelta(days=120))
    with AgentMemory("bob", root=root, clock=clock, embedder=None) as memory:
        memory.configure(event_log="full", scratchpad_max_size=10)
        names = [f"{first}{second}" for first in "abcdefghijkl" for second in "mnopqrstuv"]
        ids = []
        for day in range(120):
            ids += [
                memory.store(
                    f"fact {day}-{number}: the heron nests at pond {names[day]}{number}",
                    category=("note", "decision", "preference")[(day + number) % 3],
                    metadata={"source": ("wiki", "chat")[day % 8 // 4]} if number else {},
                    session_id=f"s-{day // 10}",
                )
                for number in range(1 + day % 3 if day % 4 == 0 else 0)
            ]
            if day % 10 == 5:
                memory.search("does the heron nest at pond am0?")
                memory.search("Where does the zebra sleep?")
                memory.search("thanks!")
                memory.context(300)
            clock.forward(days=1)
        memory.search("where do zebras sleep?")
        memory.search("the capital of Peru?")
        memory.store("The capital of Peru is Lima", session_id="late")
        memory.search("capital of peru")
        memory.store("the capital of Peru is Lima.", on_duplicate="keep", session_id="late")
        memory.update(ids[3], content="changed to something that has äöü in it and is longer")
        memory.delete(ids[5])
        memory.archive(ids[6:8])
    return root


@pytest.fixture(scope="module")
def figures(used: Path) -> MemoryStatistics:
    with AgentMemory("bob", root=used, clock=Clock(), embedder=None) as memory:
        return memory.statistics(limit=5)


def place_of(statistics: MemoryStatistics, day: str) -> int:
    return max(at for at, start in enumerate(statistics.periods) if start <= day)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("categories", "category"),
        ("sources", "metadata ->> '$.source'"),
        ("sessions", "created_by_session"),
    ],
)
def test_memories_by_value_and_date_are_those_of_the_table(
    used: Path, figures: MemoryStatistics, name: str, column: str
) -> None:
    (rows,) = query(used / "bob/memories.db", f"SELECT {column}, timestamp FROM memories")
    counts = Counter(value for value, _ in rows)
    breakdown = getattr(figures, name)
    assert breakdown.value_count == len(counts)
    assert len(breakdown.series) == min(5, len(counts))
    for series in breakdown.series:
        own = Counter(
            place_of(figures, moment[:10]) for value, moment in rows if value == series.name
        )
        assert series.count == counts[series.name] == sum(own.values())
        assert series.counts == [own[place] for place in range(len(figures.periods))]
    listed = {series.name for series in breakdown.series}
    days = [moment[:10] for value, moment in rows if value not in listed]
    others = Counter(place_of(figures, day) for day in days)
    assert breakdown.others == [others[place] for place in range(len(figures.periods))]
    assert min(counts[name] for name in listed) >= max(
        (count for value, count in counts.items() if value not in listed), default=0
    )


def test_growth_is_that_of_the_history(used: Path, figures: MemoryStatistics) -> None:
    changes, totals = query(
        used / "bob/memories.db",
        "SELECT changed_at, event, old_values, new_values FROM history ORDER BY change_id",
        "SELECT count(*), sum(archived), sum(length(CAST(content AS BLOB))) FROM memories",
    )
    columns = {name: [0] * len(figures.periods) for name in ("ADD", "UPDATE", "DELETE")}
    memories, sizes = [0] * len(figures.periods), [0] * len(figures.periods)
    for moment, event, *values in changes:
        old, new = (len(json.loads(text or "{}").get("content", "").encode()) for text in values)
        first = place_of(figures, moment[:10])
        columns[event][first] += 1
        for place in range(first, len(memories)):  # each level holds from that period on
            memories[place] += {"ADD": 1, "UPDATE": 0, "DELETE": -1}[event]
            sizes[place] += new - old
    growth = figures.growth
    assert [growth.added, growth.changed, growth.deleted] == list(columns.values())
    assert (growth.memories, growth.content_bytes) == (memories, sizes)
    assert growth.changed[-1] == 3
    assert growth.deleted[-1] == 1
    assert totals[0] == [
        figures.memory_count + figures.archived_count, figures.archived_count, figures.content_bytes
    ]  # fmt: skip
    assert figures.archived_count == 2
    assert figures.file_bytes == (used / "bob/memories.db").stat().st_size


def test_recalls_are_those_of_the_event_log(used: Path, figures: MemoryStatistics) -> None:
    lines = log_lines(used / "bob/memories.db")
    searches = [line for line in lines if line["event"] == "memory:searched"]
    contexts = [line for line in lines if line["event"] == "memory:rendered"]
    recalls = figures.recalls
    assert len(searches) == sum(recalls.searches) == 3 * 12 + 3
    in_vain = [line for line in searches if line["best_similarity"] < 0.5]
    assert sum(recalls.unanswered) == len(in_vain)
    given = sum(line["results_count"] for line in searches)
    given += sum(line["memory_count"] for line in contexts)
    assert sum(recalls.memories) == given
    assert recalls.memories_per_day == pytest.approx(given / 120, abs=0.001)
    assert sum(recalls.tokens) == sum(line["tokens"] for line in searches + contexts) > 1000
    first = Counter(place_of(figures, line["timestamp"][:10]) for line in searches)
    assert recalls.searches == [first[place] for place in range(len(figures.periods))]
    assert (recalls.event_log, recalls.first_event) == ("full", NOW - timedelta(days=120))


def test_use_and_duplicates_are_those_of_the_tables(used: Path, figures: MemoryStatistics) -> None:
    month_ago = (NOW - timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    never, most, searches, twice = query(
        used / "bob/memories.db",
        "SELECT id FROM memories WHERE access_count = 0 AND archived = 0"
        f" AND updated_at <= '{month_ago}' ORDER BY updated_at, seq",
        "SELECT id, access_count FROM memories WHERE access_count > 0 AND archived = 0"
        " ORDER BY access_count DESC, seq LIMIT 5",
        "SELECT total_queries FROM agent",
        "SELECT id FROM memories WHERE lower(rtrim(content, '.')) = 'the capital of peru is lima'"
        " ORDER BY seq",
    )
    assert figures.never_recalled_count == len(never) > 5
    assert figures.never_recalled == [memory_id for (memory_id,) in never[:5]]
    assert [[each.memory_id, each.access_count] for each in figures.most_recalled] == most
    assert figures.most_recalled[0].share == pytest.approx(min(1, most[0][1] / searches[0][0]))
    assert figures.duplicates == [[memory_id for (memory_id,) in twice]]
    assert (figures.duplicate_group_count, figures.duplicate_count) == (1, 1)


def test_gaps_are_what_was_asked_in_vain_the_last_time_too(figures: MemoryStatistics) -> None:
    (gap,) = figures.gaps  # that of Peru was filled, and thanks are no question
    assert (gap.question, gap.asked, gap.unanswered) == ("where do zebras sleep?", 13, 13)
    assert (gap.last_asked, gap.best_similarity) == (NOW, 0.0)
    assert figures.gap_count == 1


def test_an_old_memory_that_answers_often_is_told(used: Path, figures: MemoryStatistics) -> None:
    (first,) = query(used / "bob/memories.db", "SELECT id FROM memories ORDER BY seq LIMIT 1")[0]
    (answer,) = figures.old_answers
    assert (answer.memory_id, answer.asked, answer.age_days) == (first[0], 12, 120)
    assert answer.questions == ["does the heron nest at pond am0?"]


@pytest.fixture
def copied(used: Path, root: Path) -> Path:
    """Copy the used memory, to be changed."""
    shutil.copytree(used / "bob", root / "bob")
    return root / "bob/memories.db"


def test_recommendations_have_reasons_and_the_command(
    copied: Path, root: Path, figures: MemoryStatistics
) -> None:
    first, second = figures.never_recalled[:2]
    query(
        copied,
        "INSERT INTO reviews (seq, version, replaced_by, confidence, proposed_at) SELECT seq,"
        f" version, '{second}', 0.4, updated_at FROM memories WHERE id = '{first}'",
        f"UPDATE memories SET access_count = 30 WHERE id = '{second}'",
    )
    with AgentMemory("bob", root=root, clock=Clock(), embedder=None) as memory:
        statistics = memory.statistics(limit=3)
        would_go = memory.configure(retention={"archive_learnings_after_days": 90})
        assert would_go.retention is not None
        tidied = memory.tidy(dry_run=True).archived
    assert statistics.contradiction_count == 1
    assert statistics.contradictions[0].model_dump() == {
        "review_id": 1, "memory_id": first, "replaced_by": second
    }  # fmt: skip
    reasons = {each.reason: (each.command, each.memory_ids) for each in statistics.recommendations}
    review = f"{second} contradicts it (40% sure): approving deletes it, `--dismiss` keeps it"
    assert reasons[review] == ("agent-memory review --approve 1", [first])
    often = "returned by 77% of all searches, whatever the question"  # 30 of 39
    assert reasons[often] == (f"agent-memory show {second}", [second])
    old = statistics.old_answers[0].memory_id
    still = "came first in 12 searches, and was last written 120 days ago: is it still true?"
    assert reasons[still] == (f"agent-memory show {old}", [old])
    one, other = figures.duplicates[0]
    assert reasons[f"the same as {one}"] == (f"agent-memory archive {other}", [other])
    assert statistics.archivable_count == len(tidied) > 3
    unused = [each for each in statistics.recommendations if "not used for" in each.reason]
    assert [each.memory_ids for each in unused] == [[item.memory_id] for item in tidied[:3]]


def test_since_leaves_out_what_was_before(copied: Path, root: Path) -> None:
    since = NOW - timedelta(days=20)
    stamp = since.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    ((stored,),), ((added,),) = query(
        copied,
        f"SELECT count(*) FROM memories WHERE timestamp >= '{stamp}'",
        f"SELECT count(*) FROM history WHERE event = 'ADD' AND changed_at >= '{stamp}'",
    )
    with AgentMemory("bob", root=root, clock=Clock(), embedder=None) as memory:
        statistics = memory.statistics(since=since)
        for wrong in ("gestern", NOW + timedelta(days=1), 7):
            with pytest.raises(ValidationError, match="since"):
                memory.statistics(since=wrong)  # type: ignore[arg-type]
        with pytest.raises(ValidationError, match="limit"):
            memory.statistics(limit=0)
    assert (statistics.period_unit, len(statistics.periods)) == ("day", 21)
    assert sum(series.count for series in statistics.categories.series) == stored
    assert sum(statistics.growth.added) == added
    assert sum(statistics.recalls.searches) == 3 * 2 + 3
    assert statistics.growth.memories[-1] == statistics.memory_count + statistics.archived_count


def test_rows_and_lines_of_others_break_nothing(copied: Path, root: Path) -> None:
    query(
        copied,
        "INSERT INTO memories (id, content, category, metadata, timestamp, created_by_session)"
        " VALUES ('odd-1', 'x', CAST(x'ff41' AS TEXT), '{\"source\": [1]}',"
        " '9998-12-31T00:00:00.000000Z', '')",
        "INSERT INTO memories (id, content, timestamp)"
        " VALUES ('odd-2', 'y', '0001-01-03T00:00:00.000000Z')",
        "UPDATE history SET changed_at = 'nonsense' WHERE change_id = 1",
        "PRAGMA ignore_check_constraints = ON",
        "UPDATE history SET new_values = 'no JSON' WHERE change_id = 2",
        "UPDATE memories SET metadata = 'no JSON' WHERE id = 'odd-2'",
    )
    with copied.with_name("events.jsonl").open("a", encoding="utf-8") as log:
        for data in (
            {"results_count": "many", "tokens": -5, "memory_ids": {"a": 1}, "query": 7},
            {"results_count": 2**200, "best_similarity": "high", "memory_ids": [None]},
            {"results_count": True, "tokens": 1.5, "best_similarity": 9, "query": "\ud800?"},
            {},
        ):
            head = {"event": "memory:searched", "agent_id": "bob", "timestamp": NOW.isoformat()}
            log.write(json.dumps({**head, **data}) + "\n")
        log.write("half a line")
    with AgentMemory("bob", root=root, clock=Clock(), embedder=None) as memory:
        statistics = memory.statistics(limit=50)
    assert statistics.period_unit == "century"
    assert statistics.periods[0] == "0001-01-01"
    names = {series.name: series for series in statistics.categories.series}
    assert names["ÿA"].count == 1
    assert sum(names["ÿA"].counts) == 0  # it is dated after the last period
    assert statistics.growth.memories[-1] == statistics.memory_count + statistics.archived_count
    assert sum(statistics.recalls.searches) == 39 + 4
    assert MemoryStatistics.model_validate_json(statistics.model_dump_json()) == statistics


def test_it_reads_beside_a_writer_and_where_nothing_may_be_written(
    copied: Path, root: Path, figures: MemoryStatistics
) -> None:
    before = copied.read_bytes()
    options: dict[str, Any] = {"root": root, "clock": Clock(), "embedder": None}
    with AgentMemory("bob", read_only=True, **options) as memory:
        assert memory.statistics(limit=5) == figures
    assert copied.read_bytes() == before
    with (
        AgentMemory("bob", **options) as writer,
        AgentMemory("bob", **options) as memory,
        engine_of(writer).write(),
    ):
        assert memory.statistics(limit=5) == figures


def test_duplicates_that_another_program_wrote_are_counted_once_nobody_writes(
    copied: Path, root: Path
) -> None:
    query(copied, "INSERT INTO memories (content) VALUES ('the capital of Peru is Lima')")
    options: dict[str, Any] = {"root": root, "clock": Clock(), "embedder": None}
    with AgentMemory("bob", **options) as writer, AgentMemory("bob", **options) as memory:
        with engine_of(writer).write():
            assert memory.statistics().duplicate_count == 1
        assert memory.statistics().duplicate_count == 2


def test_it_can_be_awaited(used: Path, figures: MemoryStatistics) -> None:
    async def ask() -> MemoryStatistics:
        async with MemoryStorage("bob", root=used, clock=Clock(), embedder=None) as storage:
            return await storage.statistics(limit=5)

    assert asyncio.run(ask()) == figures


def test_an_empty_memory_has_figures_and_no_advice(memory: AgentMemory) -> None:
    statistics = memory.statistics()
    assert (statistics.memory_count, statistics.periods) == (0, ["2026-01-30"])
    assert statistics.categories.series == []
    assert statistics.growth.memories == [0]
    assert statistics.recalls.event_log == "off"
    assert statistics.recommendations == []


def test_counts_that_an_import_brought_along_are_no_share(root: Path, memory: AgentMemory) -> None:
    memory_id = memory.store("Prefer tea")
    for _ in range(12):
        memory.search("tea")
    (recalled,) = memory.statistics().most_recalled
    assert recalled.model_dump() == {
        "memory_id": memory_id, "access_count": 12, "share": 1.0, "is_too_often": True
    }  # fmt: skip
    memory.export(root / "bob.yaml", format="backup")
    with AgentMemory("eve", root=root, clock=Clock(), embedder=None) as other:
        other.import_(root / "bob.yaml")
        for _ in range(11):
            other.search("zebra")
        (recalled,) = other.statistics().most_recalled
    assert (recalled.access_count, recalled.share, recalled.is_too_often) == (12, None, False)


def test_an_id_that_looks_like_an_option_is_none(memory: AgentMemory) -> None:
    memory.store("Prefer tea", id="mem-1")
    memory.store("prefer tea.", id="--json", on_duplicate="keep")
    (advice,) = memory.statistics().recommendations
    assert advice.command == "agent-memory archive -- --json"


def test_without_texts_in_the_log_no_question_is_told(memory: AgentMemory) -> None:
    memory.configure(event_log="brief")
    memory.store("Prefer tea")
    memory.search("zebra")
    statistics = memory.statistics()
    assert (statistics.recalls.searches, statistics.recalls.unanswered) == ([1], [1])
    assert statistics.gaps == []
    assert "zebra" not in statistics.model_dump_json()


def test_an_erased_memory_leaves_the_log_of_searches(memory: AgentMemory) -> None:
    memory.configure(event_log="brief")
    gone, stays = memory.store("Prefer tea"), memory.store("Likes kayaks", session_id="other")
    memory.store("The office is in Berlin", session_id="third")
    memory.search("tea")
    memory.search("kayaks")
    memory.erase(gone)
    assert memory.statistics().recalls.searches == [2]
    returned = [event.data["memory_ids"] for event in memory.events() if "tokens" in event.data]
    assert returned == [[], [stays]]
    lines = memory.path.with_name("events.jsonl").read_text(encoding="utf-8")
    assert gone not in lines

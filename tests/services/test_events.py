"""What happens is told: to a function, to logging, and in events.jsonl; never at a verb's cost."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Clock

from agent_memory import (
    AgentMemory,
    EventName,
    MemoryEvent,
    MigrationError,
    StorageClosed,
    estimate_tokens,
)
from agent_memory.runtime.event_log import EventFile


class Lengths:
    """An embedder that costs money, and fails when it is told to."""

    model = "lengths"
    dimensions = 8
    cost_per_1k_tokens = 2.0
    broken = False

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self.broken:
            raise RuntimeError("no")
        return [[1.0 + text.count(letter) for letter in "abcdefgh"] for text in texts]


def opened(root: Path, clock: Clock, heard: list[MemoryEvent], **more: object) -> AgentMemory:
    return AgentMemory(
        "bob", root=root, clock=clock, session_id="s-1", on_event=heard.append, **more  # type: ignore[arg-type]
    )  # fmt: skip


def lines(root: Path) -> list[dict[str, object]]:
    path = root / "bob" / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_store_is_told_with_its_fields(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    with opened(root, clock, heard) as memory:
        memory_id = memory.store("Prefer tea", category="preference", tags=["drinks"])
    (event,) = heard
    assert event.name == EventName.STORED
    assert event.payload() == {
        "agent_id": "bob",
        "timestamp": "2026-01-30T16:00:00Z",
        "session_id": "s-1",
        "memory_id": memory_id,
        "category": "preference",
        "tags": ["drinks"],
        "backend": "file",
        "in_scratchpad": True,
        "embedding_cost": 0.0,
    }


def test_many_are_told_one_by_one_and_only_what_is_new(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    with opened(root, clock, heard) as memory:
        first = memory.store("Prefer tea", session_id="s-0")
        ids = memory.store_many(
            [{"content": "prefer tea."}, {"content": "Prefer milk"}], on_duplicate="merge"
        )
        memory.store("Prefer milk", id=ids[1])
        memory.store("prefer  tea", on_duplicate="merge")
    assert [(e.data["memory_id"], e.session_id) for e in heard] == [(first, "s-0"), (ids[1], "s-1")]


def test_what_finds_no_place_in_the_scratchpad_is_told_so(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    with opened(root, clock, heard) as memory:
        memory.configure(scratchpad_max_size=10)
        memory.store_many([{"content": f"note {number}"} for number in range(12)])
        inside = {it.id for it in memory.scratchpad().memories}
    told = {e.data["memory_id"]: e.data["in_scratchpad"] for e in heard}
    assert [name for name, is_in in told.items() if is_in] == [i for i in told if i in inside]
    assert len(inside) == 10
    assert len(told) == 12


def test_a_search_is_told_without_its_words_unless_they_are_asked_for(
    root: Path, clock: Clock
) -> None:
    heard: list[MemoryEvent] = []
    with opened(root, clock, heard) as memory:
        memory_id = memory.store("Prefer tea")
        assert len(memory.search("tea", limit=3)) == 1
    event = heard[-1]
    assert event.name == EventName.SEARCHED
    assert set(event.data) == {
        "results_count", "total_found", "latency_ms", "backend", "memory_ids", "best_similarity",
        "tokens",
    }  # fmt: skip
    assert (event.data["results_count"], event.data["backend"]) == (1, "file")
    assert event.data["memory_ids"] == [memory_id]
    assert (event.data["best_similarity"], event.data["tokens"]) == (1.0, 3)  # 10 bytes
    with opened(root, clock, heard, event_text=True) as memory:
        memory.search("tea")
        memory.store("Prefer milk")
    assert heard[-2].data["query"] == "tea"
    assert heard[-1].data["content"] == "Prefer milk"


def test_a_context_is_told_with_its_tokens(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    with opened(root, clock, heard, event_text=True) as memory:
        memory.store("Prefer tea")
        text = memory.context()
        memory.context(count_tokens=len)
    assert [event.name for event in heard[1:]] == [EventName.RENDERED] * 2
    assert heard[1].data == {"memory_count": 1, "tokens": estimate_tokens(text)}
    assert heard[2].data == {"memory_count": 1, "tokens": len(text) + 1}  # "~100 tokens" has more


def test_promotions_are_told_by_hand_and_by_use(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    with opened(root, clock, heard) as memory:
        memory.configure(scratchpad_max_size=10)
        ids = [memory.store(f"fact number{number}") for number in range(11)]
        heard.clear()
        memory.promote(ids[0])
        memory.promote(ids[0])  # it is in
        assert [e.data["reason"] for e in heard] == ["manual"]
        assert heard[0].data == {
            "memory_id": ids[0],
            "reason": "manual",
            "scratchpad_size": 10,
            "evicted": ids[1],
        }
        for _ in range(3):
            memory.search("number1")
        memory.info()  # writes what was counted
    (used,) = [e for e in heard[1:] if e.name == EventName.PROMOTED]
    assert used.data["memory_id"] == ids[1]
    assert used.data["reason"] == "access_threshold"
    assert used.data["evicted"] == ids[2]


def test_a_move_is_told_from_its_start_to_its_end(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    embedder = Lengths()
    config = {"migration_batch_size": 10, "migration_threshold": 100}
    with opened(root, clock, heard, embedder=embedder, config=config) as memory:
        memory.store_many([{"content": f"fact {number} abc"} for number in range(99)])
        assert not [e for e in heard if e.name == EventName.MIGRATION_SUGGESTED]
        memory.store("one more")
        memory.store("and one more")
        (suggested,) = [e for e in heard if e.name == EventName.MIGRATION_SUGGESTED]
        assert suggested.data["memory_count"] == 100
        assert suggested.data["threshold"] == 100
        assert suggested.data["auto_migrate"] is False
        heard.clear()
        embedder.broken = True
        with pytest.raises(MigrationError):
            memory.migrate(embedder=embedder)
        assert [e.name for e in (heard[0], heard[-1])] == [
            "memory:migration_started",
            "memory:migration_failed",
        ]
        assert heard[0].data["plan"]["batch_size"] == 10
        assert heard[-1].data["memories_processed"] == 0
        assert heard[-1].data["total"] == 101
        heard.clear()
        embedder.broken = False
        memory.migrate(embedder=embedder)
        names = [e.name for e in heard]
        assert names[0] == "memory:migration_started"
        assert names[-1] == "memory:migration_completed"
        assert set(names[1:-1]) == {"memory:migration_progress"}
        done = [e.data["memories_processed"] for e in heard[1:-1]]
        assert done == sorted(done)
        assert done[-1] == 101
        assert heard[-1].data["memory_count"] == 101
        assert heard[-1].data["cost_usd"] > 0
        heard.clear()
        memory.store("aaa bbb ccc ddd")
        assert heard[-1].data["embedding_cost"] == pytest.approx(4 / 1000 * 2.0)
        assert heard[-1].data["backend"] == "vector"


def test_a_listener_that_fails_fails_no_verb(
    root: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: MemoryEvent) -> None:
        raise RuntimeError("listener is broken")

    with AgentMemory("bob", root=root, clock=clock, on_event=fail) as memory:
        memory_id = memory.store("Prefer tea")
        assert memory.get(memory_id) is not None
    assert "a listener failed at memory:stored" in caplog.text


def test_a_listener_may_use_the_memory(root: Path, clock: Clock) -> None:
    seen: list[str] = []

    def look(event: MemoryEvent) -> None:
        if event.name == EventName.STORED and len(seen) < 3:
            seen.append(str(event.data["memory_id"]))
            memory.store(f"heard of {len(seen)}")

    with AgentMemory("bob", root=root, clock=clock, on_event=look) as memory:
        memory.store("Prefer tea")
        assert memory.count() == 4


def test_logging_hears_of_it_at_the_level_info(
    root: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent_memory.events")
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory_id = memory.store("Prefer tea")
    (record,) = [it for it in caplog.records if it.name == "agent_memory.events"]
    assert record.getMessage() == "memory:stored"
    assert record.__dict__["memory_event"]["memory_id"] == memory_id
    assert "tea" not in str(record.__dict__)


# events.jsonl -------------------------------------------------------------------------------------


def test_nothing_is_written_unless_the_file_says_so(root: Path, clock: Clock) -> None:
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory.store("Prefer tea")
        assert list(memory.events()) == []
    assert not (root / "bob" / "events.jsonl").exists()


def test_brief_has_no_texts_and_full_has_them(root: Path, clock: Clock) -> None:
    with AgentMemory("bob", root=root, clock=clock, session_id="s-1") as memory:
        memory.configure(event_log="brief")
        memory_id = memory.store("Prefer tea")
        memory.search("which tea")
        assert "tea" not in json.dumps(lines(root))
        memory.configure(event_log="full")
        memory.search("which tea")
        memory.configure(event_log="off")
        memory.store("Prefer milk")
        told = list(memory.events())
    assert [it["event"] for it in lines(root)] == [it.name for it in told]
    assert lines(root)[0]["memory_id"] == memory_id
    assert told[0].timestamp == clock.now
    assert lines(root)[-1]["query"] == "which tea"
    assert len(told) == 3


@pytest.mark.skipif(os.name != "posix", reason="rights are POSIX's")
def test_the_events_of_one_memory_are_told_alone(root: Path, clock: Clock) -> None:
    with opened(root, clock, []) as memory:
        memory.configure(event_log="full")
        first = memory.store("The safe is behind the mirror", id="mem-1")
        memory.store(f"Lunch is at noon, says {first}", id="mem-11")
        memory.search("where is the safe?")
        memory.search("when is lunch?", include_weak=False)
        told = [(event.name, event.data.get("query")) for event in memory.events(memory_id=first)]
        assert told[0] == ("memory:stored", None)
        assert ("memory:searched", "where is the safe?") in told
        assert ("memory:searched", "when is lunch?") not in told
        assert len(told) == 2
        assert list(memory.events(memory_id="mem-9")) == []


def test_the_file_is_private_whatever_the_umask(root: Path, clock: Clock) -> None:
    before = os.umask(0)
    try:
        with AgentMemory("bob", root=root, clock=clock) as memory:
            memory.configure(event_log="brief")
            memory.store("Prefer tea")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "bob" / "events.jsonl").stat().st_mode) == 0o600


def test_a_link_in_its_place_is_not_followed(root: Path, clock: Clock, tmp_path: Path) -> None:
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory.configure(event_log="brief")
        (root / "bob" / "events.jsonl").symlink_to(tmp_path / "elsewhere")
        memory_id = memory.store("Prefer tea")
        assert memory.get(memory_id) is not None
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_of_another_name_has_its_own_log(tmp_path: Path, clock: Clock) -> None:
    with AgentMemory.open(tmp_path / "notes.db", clock=clock) as memory:
        memory.configure(event_log="brief")
        memory.store("Prefer tea")
    assert len((tmp_path / "notes.db.events.jsonl").read_text().splitlines()) == 1


_STORES = """
import sys
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1], session_id=sys.argv[2]) as memory:
    for number in range(40):
        memory.store(f"{sys.argv[2]} tells {number}")
"""


@pytest.mark.file_only("the log is a file")
def test_processes_write_whole_lines_and_none_is_lost(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(event_log="full")
    children = [
        subprocess.Popen([sys.executable, "-c", _STORES, str(root), f"p{number}"])
        for number in range(3)
    ]
    assert [child.wait(120) for child in children] == [0, 0, 0]
    told = [it for it in lines(root) if it["event"] == "memory:stored"]
    with AgentMemory("bob", root=root) as memory:
        assert {str(it["memory_id"]) for it in told} == {it.id for it in memory.list_recent(200)}
    assert len(told) == 120


def event(number: int) -> MemoryEvent:
    clock = Clock()
    return MemoryEvent(name="n", agent_id="bob", timestamp=clock.now, data={"number": number})


def numbers(told: object) -> list[object]:
    return [it.data["number"] for it in told if it is not None]  # type: ignore[attr-defined]


def test_files_take_turns_and_the_oldest_go(tmp_path: Path) -> None:
    log = EventFile(tmp_path / "memories.db", most_bytes=300)
    for number in range(60):
        log.append([event(number)])
    sizes = [path.stat().st_size for path in log.files()]
    assert len(sizes) == 4 or len(sizes) == 3
    assert max(sizes) < 600
    kept = numbers(log.read())
    assert kept == list(range(60 - len(kept), 60))
    assert 6 <= len(kept) < 30
    assert log.failures == 0


def test_a_follower_misses_nothing_when_files_take_turns(tmp_path: Path) -> None:
    log = EventFile(tmp_path / "memories.db", most_bytes=3000)
    log.append([event(-1)])
    done = threading.Event()
    told = log.follow(until=done.is_set)  # from here on
    log.append([event(0)])

    def write() -> None:
        writer = EventFile(tmp_path / "memories.db", most_bytes=3000)
        for number in range(1, 100):
            writer.append([event(number)])
            done.wait(0.01)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    heard = numbers(told)
    writer.join()
    assert heard == list(range(100))
    assert len(log.files()) > 1


def test_a_half_written_line_is_told_when_it_is_whole(tmp_path: Path) -> None:
    log = EventFile(tmp_path / "memories.db")
    log.append([event(1)])
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + whole[:20])
    assert numbers(log.read()) == [1]
    looks = iter([False, False, True])
    log.path.write_bytes(whole)
    told = log.follow(until=lambda: next(looks))
    with log.path.open("ab") as file:
        file.write(whole[:20])
        file.flush()
        assert next(told) is None
        file.write(whole[20:])
    assert numbers(told) == [1]


def test_lines_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    log = EventFile(tmp_path / "memories.db")
    log.append([event(1)])
    with log.path.open("ab") as file:
        file.write(b'nonsense\n{"event": 5}\n[]\n\xff\n' + b"[" * 100_000 + b"\n")
    log.append([event(2)])
    assert numbers(log.read()) == [1, 2]


def test_what_cannot_be_written_is_counted(tmp_path: Path) -> None:
    log = EventFile(tmp_path / "memories.db")
    log.path.mkdir()
    log.append([event(1), event(2)])
    assert log.failures == 2


def test_erasing_takes_the_memory_and_all_quotations_out(root: Path, clock: Clock) -> None:
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory.configure(event_log="brief")
        secret = memory.store("the door code is 4711")
        kept = memory.store("Prefer tea")
        memory.configure(event_log="full")
        memory.search("4711")
        memory.store("the code 4711 is old")
        memory.configure(event_log="brief")
        memory.search("4711")
        before = memory.statistics().recalls
        receipt = memory.erase(secret)
        assert receipt.found == []
        after = memory.statistics().recalls
        assert (after.searches, after.unanswered) == (before.searches, before.unanswered)
        assert after.searches == [2]
    raw = (root / "bob" / "events.jsonl").read_bytes()
    assert secret.encode() not in raw
    assert b"4711" not in raw
    assert kept.encode() in raw
    events = [it["event"] for it in lines(root)]
    assert events == [f"memory:{name}" for name in ("stored", "searched", "stored", "searched")]


def test_an_import_does_not_switch_the_log_on(root: Path, clock: Clock, tmp_path: Path) -> None:
    with AgentMemory("eve", root=root, clock=clock) as eve:
        eve.configure(event_log="full", scratchpad_max_size=30)
        eve.store("Prefer tea")
        eve.export(tmp_path / "eve.yaml")
    with AgentMemory("bob", root=root, clock=clock) as bob:
        bob.import_(tmp_path / "eve.yaml")
        assert bob.configure().event_log == "off"
        assert bob.configure().scratchpad_max_size == 30


def test_one_who_may_only_read_writes_no_events(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    with AgentMemory("bob", root=root, clock=clock) as memory:
        memory.configure(event_log="brief")
        memory.store("Prefer tea")
    with opened(root, clock, heard, read_only=True) as reader:
        assert len(reader.search("tea")) == 1
    assert [it.name for it in heard] == [EventName.SEARCHED]
    assert len(lines(root)) == 1


@pytest.mark.parametrize("setting", ["off", "brief"])
def test_who_follows_a_memory_is_told_that_it_is_closed(root: Path, setting: str) -> None:
    """It went on for ever, and kept the thread that followed, and so the process, from ending."""
    with AgentMemory("bob", root=root) as memory:
        memory.configure(event_log=setting)
        deadline = time.monotonic() + 10
        told = memory.follow_events(until=lambda: time.monotonic() > deadline)
        closing = threading.Timer(0.3, memory.close)
        closing.start()
        with pytest.raises(StorageClosed):
            next(told)
        closing.join()


def test_who_follows_a_memory_goes_on_when_its_folder_was_away_for_a_moment(
    root: Path, tmp_path: Path
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(event_log="brief")
        looks = iter(range(9))

        def until() -> bool:
            look = next(looks)
            if look == 0:
                memory.path.parent.rename(tmp_path / "away")
            elif look == 2:
                (tmp_path / "away").rename(root / "bob")
                memory.store("Prefer tea")
            return look == 8

        assert next(memory.follow_events(until=until)).name == EventName.STORED


def test_a_follower_is_told_nothing_twice_when_something_is_erased(tmp_path: Path) -> None:
    log = EventFile(tmp_path / "memories.db")
    log.append([event(1), event(2)])
    looks = iter([False, False, True])
    told = log.follow(until=lambda: next(looks))
    log.append([event(3)])
    first = next(told)
    assert first is not None
    assert first.data["number"] == 3
    quoting = event(4).model_copy(update={"data": {"number": 4, "query": "4711"}})
    log.append([quoting])
    log.forget([])
    assert next(told) is not None  # it was told before it went
    log.append([event(5)])
    assert numbers(log.read()) == [1, 2, 3, 4, 5]
    assert "4711" not in log.path.read_text()
    assert [it for it in numbers(told) if it in (1, 2, 3)] == []


@pytest.mark.skipif(os.name != "posix", reason="the limit is POSIX's")
def test_a_line_that_does_not_fit_spoils_no_other(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
from agent_memory import MemoryEvent
from agent_memory.runtime.event_log import EventFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = EventFile(Path(sys.argv[1], "memories.db"))
head = {"name": "n", "agent_id": "bob", "timestamp": "2026-01-30"}
made = [MemoryEvent(**head, data={"number": n}) for n in (1, 2)]
log.append(made[:1])
size = log.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))
log.append(made[1:])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append(made[1:])
print(log.failures, [it.data["number"] for it in log.read()])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split(" ", 1)[0] == "1"
    assert "[1" in done.stdout


def test_nothing_fails_when_the_settings_are_spoilt_meanwhile(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    code = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("UPDATE agent SET config = ?", [sys.argv[2]])
connection.commit()
connection.close()
"""
    with AgentMemory("bob", root=root, clock=clock, on_event=heard.append) as memory:
        memory.store("Prefer tea")
        wrong = json.dumps({"event_log": 5})
        subprocess.run([sys.executable, "-c", code, str(memory.path), wrong], check=True)
        assert len(memory.search("tea", similarity_threshold=0.0)) == 1
        assert [it.name for it in heard] == [EventName.STORED, EventName.SEARCHED]
        assert memory.check(repair=True).ok


def test_the_cost_of_many_is_shared_out(root: Path, clock: Clock) -> None:
    heard: list[MemoryEvent] = []
    embedder = Lengths()
    with opened(root, clock, heard, embedder=embedder) as memory:
        memory.store("first")
        memory.migrate(embedder=embedder)
        heard.clear()
        memory.store_many([{"content": "a" * 40}, {"content": "b" * 40}])
    costs = [it.data["embedding_cost"] for it in heard]
    assert costs == [pytest.approx(10 / 1000 * 2.0)] * 2


@pytest.mark.file_only("psycopg imports logging itself")
def test_a_search_while_another_thread_imports_logging_does_not_fail(root: Path) -> None:
    """It finds the module without its functions: ``AttributeError`` came out of ``search``."""
    code = """
import sys, types
from agent_memory import AgentMemory
sys.modules["logging"] = types.ModuleType("logging")
with AgentMemory("bob", root=sys.argv[1], embedder=None) as memory:
    memory.store("I like tea")
    print(len(memory.search("tea")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "1\n", done.stderr


def test_a_verb_does_not_wait_for_the_lock_of_logging(root: Path) -> None:
    """A Ctrl-C may leave it held by the thread that it ended: all others waited for ever."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("I like tea")
        with ThreadPoolExecutor(1) as other, vars(logging)["_lock"]:
            stored = other.submit(memory.store, "I like coffee").result(timeout=30)
            assert other.submit(memory.search, "tea").result(timeout=30)
        assert memory.get(stored) is not None

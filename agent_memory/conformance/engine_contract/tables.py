"""The requirements for the tables of every engine, one class per table."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from agent_memory import AgentConfig, Memory, MemoryKind, ValidationError
from agent_memory.conformance.engine_contract.cases import NOW, memory_of, stored
from agent_memory.models.agent import MigrationInfo
from agent_memory.models.columns import HISTORIC
from agent_memory.models.enums import MemoryOrder
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import Tombstone
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import EVERYTHING, NOT_ARCHIVED, Equals
from agent_memory.storage.fingerprints import fingerprint_of
from agent_memory.text.dates import date_spans


def get(engine: Engine, number: int) -> Memory:
    """Return a memory, which must exist."""
    memory = engine.memories.get(f"mem-{number}")
    assert memory is not None
    return memory


class MemoryTableContract:
    """The memories, as models."""

    def test_a_memory_comes_back_as_it_was_stored(self, engine: Engine) -> None:
        memory = memory_of(
            1,
            "Grüße, 世界 \U0001f600",
            category="preference",
            tags=["b", "a"],
            kind="core",
            importance="high",
            metadata={"n": 1, "deep": {"list": [1, None, True, "x"]}},
            user_id="ann@example.org",
            run_id="run-1",
        )
        (row_id,) = stored(engine, memory)
        assert engine.memories.get("mem-1") == memory
        assert engine.memories.get_many([row_id, row_id + 1]) == {row_id: memory}
        assert engine.memories.row_id_of("mem-1") == row_id == engine.memories.last_row_id()
        assert engine.memories.ids_of([row_id]) == ["mem-1"]
        assert engine.memories.exists("mem-1")
        assert not engine.memories.exists("mem-2")
        assert engine.memories.get("mem-2") is None

    def test_an_id_is_taken_once(self, engine: Engine) -> None:
        stored(engine, memory_of(1))
        with pytest.raises(ValidationError):
            stored(engine, memory_of(1, "another"))
        assert get(engine, 1).content == "fact number 1"

    def test_recent_ids_and_count_follow_filters_and_order(self, engine: Engine) -> None:
        stored(engine, *(memory_of(n, user_id="ann" if n % 2 else "ben") for n in (3, 1, 2, 4)))
        anns = Equals("user_id", "ann")
        recent = engine.memories.recent(EVERYTHING, limit=2, offset=1)
        assert [memory.id for memory in recent] == ["mem-3", "mem-2"]
        for filters, ids in ((EVERYTHING, ["mem-2", "mem-1"]), (anns, ["mem-1"])):
            following = engine.memories.recent(filters, limit=9, offset=0, after="mem-3")
            assert [memory.id for memory in following] == ids
        assert engine.memories.ids(anns) == ["mem-3", "mem-1"]
        assert engine.memories.count(anns) == 2
        assert engine.memories.count(NOT_ARCHIVED) == 4

    @pytest.mark.parametrize("order", list(MemoryOrder))
    def test_each_order_goes_on_behind_a_memory(self, engine: Engine, order: MemoryOrder) -> None:
        """Two of each kind are equal and of the same time: none is skipped, none returned twice."""
        fields: list[dict[str, Any]] = [
            {"importance": "high", "category": "task"},
            {"importance": "low", "category": "decision"},
            {"importance": "medium", "category": "note"},
        ]
        rows = stored(engine, *(memory_of(n, **fields[n % 3], timestamp=NOW) for n in range(6)))
        later = format_time(NOW + timedelta(days=1))
        with engine.write():
            engine.memories.count_accesses({rows[1]: (2, format_time(NOW)), rows[4]: (1, later)})
        expected = {
            MemoryOrder.NEWEST: "543210",
            MemoryOrder.OLDEST: "012345",
            MemoryOrder.IMPORTANCE: "305241",
            MemoryOrder.RECALLED: "145320",
            MemoryOrder.LAST_RECALLED: "415320",
            MemoryOrder.CATEGORY: "415230",
        }[order]
        whole = engine.memories.recent(EVERYTHING, limit=9, offset=0, order=order)
        assert "".join(memory.id[-1] for memory in whole) == expected
        for place in range(6):
            after = f"mem-{expected[place]}"
            rest = engine.memories.recent(EVERYTHING, limit=2, offset=0, after=after, order=order)
            assert "".join(memory.id[-1] for memory in rest) == expected[place + 1 :][:2]

    def test_an_update_raises_the_version_and_a_deletion_leaves_the_history(
        self, engine: Engine
    ) -> None:
        (row_id,) = stored(engine, memory_of(1))
        with engine.write():
            engine.memories.update(row_id, {"content": "new", "tags": ["x"]}, now=NOW)
        assert (get(engine, 1).content, get(engine, 1).tags, get(engine, 1).version) == (
            "new",
            ["x"],
            2,
        )
        with engine.write():
            engine.memory_rows.delete("mem-1")
        assert engine.memories.is_empty()
        events = [entry.event for entry in engine.history.entries("mem-1", limit=9)]
        assert events == ["DELETE", "UPDATE", "ADD"]

    def test_the_history_of_a_user_is_of_what_is_theirs_or_was_when_deleted(
        self, engine: Engine
    ) -> None:
        stored(
            engine,
            memory_of(1, user_id="ann"),
            memory_of(2, user_id="ann", run_id="r"),
            memory_of(3, user_id="ben", run_id="r"),
            memory_of(4, user_id="ann"),
            memory_of(5),
        )
        with engine.write():
            for number in (1, 3):
                engine.memory_rows.delete(f"mem-{number}")
        ann = engine.history.entries_of("ann", None, limit=9)
        assert [(entry.event, entry.memory_id[-1]) for entry in ann] == [
            ("DELETE", "1"), ("ADD", "4"), ("ADD", "2"), ("ADD", "1")
        ]  # fmt: skip
        assert engine.history.entries_of("ann", None, limit=1) == ann[:1]
        assert engine.history.entries_of("ann", None, limit=2, before=ann[0].change_id) == ann[1:3]
        assert engine.history.entries_of("ann", "r", limit=9) == [ann[2]]
        assert engine.history.entries_of("nobody", None, limit=9) == []
        assert engine.history.last_change_of("ann", None) == ann[0].change_id
        assert engine.history.last_change_of("ann", "r") == ann[2].change_id

    def test_row_ids_are_not_given_twice(self, engine: Engine) -> None:
        (first,) = stored(engine, memory_of(1))
        with engine.write():
            engine.memory_rows.delete("mem-1")
        (second,) = stored(engine, memory_of(2))
        assert second > first

    def test_accesses_are_added_up(self, engine: Engine) -> None:
        (row_id,) = stored(engine, memory_of(1))
        later = format_time(NOW + timedelta(hours=1))
        with engine.write():
            engine.memories.count_accesses({row_id: (2, later), 99: (1, later)})
            engine.memories.count_accesses({row_id: (1, format_time(NOW))})
        assert get(engine, 1).access_count == 3
        assert get(engine, 1).last_accessed == NOW + timedelta(hours=1)
        (signals,) = engine.memories.ranking_signals([row_id], EVERYTHING)
        assert (signals.access_count, signals.session) == (3, "session-1")

    def test_neighbours_are_those_of_the_session(self, engine: Engine) -> None:
        own = [memory_of(n) for n in range(1, 6)]
        rows = stored(engine, *own, memory_of(6, created_by_session="other"))
        around = engine.memories.neighbours([rows[2]])[rows[2]]
        assert around == {-2: rows[0], -1: rows[1], 1: rows[3], 2: rows[4]}
        assert engine.memories.neighbours([rows[5]])[rows[5]] == {}

    def test_days_are_found(self, engine: Engine) -> None:
        old = memory_of(1, timestamp=NOW - timedelta(days=23))
        rows = stored(engine, old, memory_of(2))
        days = date_spans("on 7 January 2026", NOW.date())
        assert engine.memories.between(EVERYTHING, days, limit=5) == [rows[0]]


class MemoryRowContract:
    """The memories by column."""

    def test_rows_are_what_the_columns_hold(self, engine: Engine) -> None:
        stored(engine, memory_of(1, tags=["a"]), memory_of(2))
        row = engine.memory_rows.get("mem-1")
        assert row is not None
        assert (row["content"], row["tags"], row["version"]) == ("fact number 1", '["a"]', 1)
        assert [row["id"] for row in engine.memory_rows.iterate(page=1)] == ["mem-1", "mem-2"]
        assert set(engine.memory_rows.get_many(["mem-2", "mem-9"])) == {"mem-2"}

    def test_a_row_can_be_brought_back_under_its_row_id(self, engine: Engine) -> None:
        (row_id,) = stored(engine, memory_of(1))
        row = engine.memory_rows.get("mem-1")
        assert row is not None
        with engine.write():
            engine.memory_rows.delete("mem-1")
            assert engine.memory_rows.is_free(row_id)
            assert engine.memory_rows.insert(row) == row_id
            engine.memory_rows.update("mem-1", {"content": "new"}, updated_at=format_time(NOW))
        assert get(engine, 1).content == "new"
        assert get(engine, 1).version == 2
        assert set(HISTORIC) <= row.keys()

    def test_many_rows_are_written_together_in_order(self, engine: Engine) -> None:
        rows = [
            {
                "id": f"mem-{number}",
                "content": f"fact number {number}",
                "timestamp": format_time(memory_of(number).timestamp),
                "updated_at": format_time(memory_of(number).updated_at),
                "created_by_session": "s",
                **({"tags": '["a"]', "archived": 1} if number == 2 else {}),
            }
            for number in (3, 2, 1)
        ]
        with engine.write():
            row_ids = engine.memory_rows.insert_many(rows)
        in_order = ["mem-3", "mem-2", "mem-1"]
        assert sorted(row_ids, key=row_ids.__getitem__) == in_order
        assert [change.memory_id for change in engine.history.iterate()] == in_order
        for number in (1, 3):
            assert get(engine, number) == memory_of(number, created_by_session="s")
        assert get(engine, 2) == memory_of(2, created_by_session="s", tags=["a"], archived=True)

    def test_archiving_counts_what_changed(self, engine: Engine) -> None:
        stored(engine, memory_of(1), memory_of(2))
        with engine.write():
            assert engine.memory_rows.archive(["mem-1", "mem-9"], archived=True, now=NOW) == 1
            assert engine.memory_rows.archive(["mem-1"], archived=True, now=NOW) == 0
        assert engine.memories.ids(NOT_ARCHIVED) == ["mem-2"]

    def test_texts_with_a_word_come_from_every_text_column(self, engine: Engine) -> None:
        stored(
            engine,
            memory_of(1, "a Kestrel here"),
            memory_of(2, metadata={"bird": "kestrel"}),
            memory_of(3, tags=["kestrel"]),
            memory_of(4, "nothing"),
        )
        assert [texts[0] for texts in engine.memory_rows.texts_with("kestrel")] == [
            "mem-1",
            "mem-2",
            "mem-3",
        ]
        assert len(list(engine.memory_rows.texts_with(""))) == 4


class HistoryContract:
    """Every change, and which changes belong together."""

    def test_each_change_is_recorded_with_what_it_changed(self, engine: Engine) -> None:
        (row_id,) = stored(engine, memory_of(1))
        before = engine.history.last_change()
        with engine.write():
            engine.memories.update(row_id, {"content": "new"}, now=NOW)
            engine.history.sign("mem-1", since=before, session_id="s-2", now=NOW)
            engine.operations.record("update", since=before, session_id="s-2", now=NOW)
        (change,) = engine.history.between(before + 1, before + 1)
        assert change.old["content"] == "fact number 1"
        assert change.new["content"] == "new"
        assert change.session_id == "s-2"
        assert "content" in change.columns
        last = engine.operations.last()
        assert last is not None
        assert (last.verb, last.first_change, last.last_change) == (
            "update",
            before + 1,
            before + 1,
        )

    def test_numbers_are_never_given_twice(self, engine: Engine) -> None:
        stored(engine, memory_of(1), memory_of(2))
        last = engine.operations.last_number()
        with engine.write():
            engine.history.forget(["mem-2"], after=0, until=last)
        assert engine.operations.last_number() == last
        assert engine.history.ids_with_history(["mem-1", "mem-2"]) == {"mem-1"}

    def test_changes_of_elsewhere_keep_who_and_when(self, engine: Engine) -> None:
        stored(engine, memory_of(1))
        (change,) = engine.history.of_memory("mem-1")
        with engine.write():
            engine.history.insert([change])
        assert len(engine.history.of_memory("mem-1")) == 2
        assert [texts[0] for texts in engine.history.texts()] == ["mem-1", "mem-1"]

    def test_a_change_is_replaced_under_its_number(self, engine: Engine) -> None:
        stored(engine, memory_of(1), memory_of(2))
        last = engine.operations.last_number()
        (change,) = engine.history.of_memory("mem-1")
        (other,) = engine.history.of_memory("mem-2")
        another = change._replace(event="UPDATE", session_id="s", old={"content": "b"}, new={})
        with engine.write():
            engine.history.replace(another)
        assert list(engine.history.iterate()) == [another, other]
        assert engine.operations.last_number() == last

    def test_what_came_after_a_moment_is_told(self, engine: Engine) -> None:
        stored(engine, memory_of(1))
        with engine.write():
            engine.history.sign_all(since=0, session_id="s", now=NOW)
        assert engine.history.changed_after(NOW - timedelta(seconds=1)) == ["mem-1"]
        assert engine.history.born_after(NOW - timedelta(seconds=1)) == ["mem-1"]
        assert engine.history.changed_after(NOW) == []

    def test_what_came_after_a_moment_is_forgotten_unless_something_builds_upon_it(
        self, engine: Engine
    ) -> None:
        stored(engine, memory_of(1), memory_of(2))
        (ahead,) = engine.history.of_memory("mem-1")  # by a clock that was set back then
        (after,) = engine.history.of_memory("mem-2")
        with engine.write():
            engine.history.forget(["mem-1", "mem-2"], after=0, until=after.change_id)
            late, now = (format_time(NOW + timedelta(days=days)) for days in (1, 0))
            engine.history.insert(
                [
                    ahead._replace(changed_at=late),
                    after._replace(changed_at=late),
                    ahead._replace(event="UPDATE", changed_at=now),
                    ahead._replace(event="UPDATE", changed_at=late),
                ]
            )
            engine.history.forget_after(NOW, engine.history.last_change())
        left = [(each.memory_id, each.event, each.changed_at) for each in engine.history.iterate()]
        assert left == [("mem-1", "ADD", late), ("mem-1", "UPDATE", now)]

    def test_an_empty_operation_is_not_recorded(self, engine: Engine) -> None:
        with engine.write():
            engine.operations.record("tidy", since=0, session_id="s", now=NOW)
        assert engine.operations.last() is None


class AgentTableContract:
    """Settings and counters."""

    def test_settings_and_counters(self, engine: Engine) -> None:
        with engine.write():
            engine.agent.set_config(AgentConfig(scratchpad_max_size=17))
            engine.agent.merge_config({"backups_kept": 2})
            engine.agent.count_queries(queries=3, total_ms=6.0, now=NOW)
            engine.agent.count_promotions(2)
            engine.agent.count_embeddings(4)
        config = engine.agent.config()
        assert (config.scratchpad_max_size, config.backups_kept) == (17, 2)
        assert engine.agent.readable_config() == config
        stats = engine.agent.metadata(memory_count=5).stats
        assert (stats.total_queries, stats.avg_query_latency_ms) == (3, 2.0)
        assert (stats.scratchpad_promotions, stats.embeddings_generated) == (2, 4)
        assert engine.agent.queries() == 3

    def test_the_move_to_vectors_and_back(self, engine: Engine) -> None:
        assert not engine.agent.was_rolled_back()
        with engine.write():
            engine.agent.set_backend("vector", migration=MigrationInfo(), now=NOW)
        assert engine.agent.row()["storage_backend"] == "vector"
        with engine.write():
            engine.agent.set_backend("file", migration=MigrationInfo(), now=NOW)
        assert engine.agent.was_rolled_back()


class ScratchpadContract:
    """Which memories enter the scratchpad, and which leave it."""

    def test_the_least_recently_used_leaves_first_and_the_promoted_last(
        self, engine: Engine
    ) -> None:
        rows = stored(engine, *(memory_of(n) for n in range(1, 5)))
        with engine.write():
            for number, row_id in enumerate(rows):
                reason = "promoted" if number == 0 else "stored"
                moment = NOW + timedelta(seconds=number)
                engine.scratchpad.enter([row_id], reason, now=moment)  # type: ignore[arg-type]
            assert engine.scratchpad.evict(max_size=2, keep=[rows[1]]) == ["mem-3", "mem-4"]
        assert set(engine.scratchpad.members()) == {rows[0], rows[1]}
        assert engine.scratchpad.reasons(rows) == {rows[0]: "promoted", rows[1]: "stored"}
        assert (engine.scratchpad.size(), engine.scratchpad.count_promoted(None)) == (2, 1)
        with engine.write():
            assert engine.scratchpad.leave(rows[0])
            assert not engine.scratchpad.leave(rows[0])

        assert [entry[0] for entry in engine.scratchpad.entries()] == ["mem-2"]

    def test_what_is_used_often_may_enter(self, engine: Engine) -> None:
        rows = stored(engine, memory_of(1, access_count=3), memory_of(2, access_count=2))
        assert engine.scratchpad.promotable(rows, threshold=3) == [rows[0]]


class RejectionContract:
    """Texts that must not be stored."""

    def test_a_value_is_rejected_once_and_lifted(self, engine: Engine) -> None:
        digest = b"\x01" * 32
        with engine.write():
            assert engine.rejections.add(digest, 2, None, NOW)
            assert not engine.rejections.add(digest, 2, "it leaked", NOW + timedelta(days=1))
        (rejection,) = engine.rejections.all()
        assert (rejection.reason, rejection.rejected_at) == ("it leaked", NOW)
        assert engine.rejections.find(digest) == rejection
        assert engine.rejections.hashes_by_length() == {2: {digest}}
        with engine.write():
            assert engine.rejections.remove_by_id(rejection.rejection_id)
            assert not engine.rejections.remove(digest)


class TombstoneContract:
    """Erased memories must not come back."""

    def test_a_tombstone_is_put_once_and_removed(self, engine: Engine) -> None:
        first = Tombstone(b"k" * 16, b"\x02" * 16, "id", format_time(NOW))
        later = Tombstone(b"j" * 16, b"\x01" * 16, "content", format_time(NOW + timedelta(days=1)))
        assert (engine.tombstones.keys(), engine.tombstones.latest()) == ([], None)
        with engine.write():
            assert engine.tombstones.put(later)
            assert engine.tombstones.put(first)
            assert not engine.tombstones.put(first._replace(erased_at=later.erased_at))
        assert engine.tombstones.all() == [first, later]
        assert engine.tombstones.keys() == [b"j" * 16, b"k" * 16]
        assert engine.tombstones.latest() == later.erased_at
        assert engine.tombstones.erased_at(first.key, first.hash) == first.erased_at
        assert engine.tombstones.erased_at(later.key, first.hash) is None
        with engine.write():
            assert engine.tombstones.remove(first.key, first.hash)
            assert not engine.tombstones.remove(first.key, first.hash)
        assert engine.tombstones.all() == [later]

    def test_statements_are_what_memories_say_and_said(self, engine: Engine) -> None:
        (row_id, _) = stored(engine, memory_of(1, "tea", user_id="ann"), memory_of(2, "salt"))
        with engine.write():
            engine.memories.update(row_id, {"content": "coffee"}, now=NOW)
            engine.memory_rows.delete("mem-2")
        stated: dict[str, set[tuple[str, str | None]]] = {}
        for statement in engine.erasure.statements():
            pairs = product(statement.contents, statement.user_ids)
            stated.setdefault(statement.memory_id, set()).update(pairs)
        assert stated == {
            "mem-1": {("tea", "ann"), ("coffee", "ann")},
            "mem-2": {("salt", None)},
        }


class FingerprintContract:
    """Near duplicates have the same fingerprint."""

    def test_near_duplicates_have_one_fingerprint(self, engine: Engine) -> None:
        same = [memory_of(1, "I like tea"), memory_of(2, "I like  tea."), memory_of(3, "Oslo")]
        rows = stored(engine, *same)
        prints = [fingerprint_of(memory.content, None, None) for memory in same]
        assert prints[0] == prints[1] != prints[2]
        assert not engine.fingerprints.is_complete()
        assert list(engine.fingerprints.same_without(prints[0])) == rows[:2]
        with engine.write():
            done = engine.fingerprints.complete_page()
            assert not engine.fingerprints.is_left(done)
        assert engine.fingerprints.is_complete()
        assert engine.fingerprints.of_rows(rows) == dict(zip(rows, prints, strict=True))
        assert engine.fingerprints.present([prints[0], 5]) == {prints[0]}
        same_ids = [
            duplicate.memory_id for duplicate in engine.fingerprints.same(prints[0], limit=9)
        ]
        assert same_ids == ["mem-1", "mem-2"]
        assert engine.fingerprints.repeated() == [(prints[0], 2)]


class ErasureContract:
    """Usage, statistics, and what is left after erasing."""

    def test_use_is_told_by_kind(self, engine: Engine) -> None:
        stored(engine, memory_of(1, kind="core"), memory_of(2, importance="high"), memory_of(3))
        every_kind = list(MemoryKind)
        uses = engine.usage.uses(every_kind, recent_since=NOW + timedelta(days=1))
        assert [(use.kind, use.is_kept) for use in uses] == [
            (MemoryKind.CORE, False),
            (MemoryKind.LEARNING, True),
            (MemoryKind.LEARNING, False),
        ]
        assert engine.usage.amounts(every_kind)["learning"].count == 2
        assert engine.usage.least_used(MemoryKind.LEARNING, limit=5) == ["mem-3"]

    def test_statistics_count_by_day_and_by_use(self, engine: Engine) -> None:
        first, *_ = stored(
            engine,
            memory_of(1, "Grüße", metadata={"source": "wiki"}),
            memory_of(2, metadata={"source": 7}),
            memory_of(3),
        )
        later = NOW + timedelta(days=2)
        with engine.write():
            engine.memories.update(first, {"content": "Tee"}, now=later)
            engine.memories.count_accesses({first: (2, format_time(later))})
            engine.memory_rows.delete("mem-3")
        queries = engine.statistics
        sources = {value for value, _, _ in queries.stored_by_day("source", since="")}
        assert sources == {"wiki", None}
        assert sum(count for _, _, count in queries.stored_by_day("category", since="")) == 2
        changes = {change.event: change for change in queries.changes_by_day(since="")}
        assert changes["ADD"].changes == 3
        assert changes["UPDATE"][2:] == (1, len(b"Tee") - len("Grüße".encode()))
        assert changes["DELETE"].grown_bytes == -len(b"fact number 3")
        totals = queries.totals()
        assert totals[:3] == (2, 0, len(b"Teefact number 2"))
        assert totals.file_bytes > 0
        assert queries.never_recalled(written_until=format_time(later), limit=5) == (1, ["mem-2"])
        assert queries.most_recalled(limit=5) == [("mem-1", 2)]
        assert queries.written(["mem-1", "mem-3"]) == {"mem-1": format_time(later)}
        assert queries.stored_by_day("session", since="9999") == []

    def test_erasing_leaves_no_row(self, engine: Engine) -> None:
        (row_id, _) = stored(engine, memory_of(1, "the secret word"), memory_of(2))
        with engine.write():
            engine.memories.update(row_id, {"content": "changed"}, now=NOW)
            text = engine.erasure.texts_of(["mem-1"])
            removed = engine.erasure.remove(["mem-1"])
            engine.vectors.forget_deleted()
        assert {"the secret word", "changed"} <= text.contents
        assert removed.memories == 1
        assert engine.erasure.known_ids(["mem-1", "mem-2"]) == {"mem-2"}
        assert engine.history.of_memory("mem-1") == []
        assert all(b"secret" not in left.text for left in engine.erasure.remaining_texts())

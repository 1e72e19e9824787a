"""The requirements for transactions in every engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from agent_memory import StorageClosed, StorageLocked
from agent_memory.conformance.engine_contract.cases import AGENT, NOW, memory_of, stored
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import ARCHIVED, EVERYTHING

Opener = Callable[[], Engine]


class TransactionContract:
    """Atomicity, waiting for locks, and what readers see meanwhile."""

    def test_what_is_committed_is_there_when_it_is_opened_again(
        self, engine: Engine, opener: Opener
    ) -> None:
        stored(engine, memory_of(1))
        engine.close()
        with closing(opener()) as again:
            assert again.agent.identity() == AGENT
            assert again.memories.count(EVERYTHING) == 1

    def test_an_error_undoes_all_of_the_transaction(self, engine: Engine) -> None:
        def fail() -> None:
            with engine.write():
                row_id = engine.memories.insert(memory_of(1))
                engine.scratchpad.enter([row_id], "stored", now=NOW)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert engine.memories.is_empty()
        assert engine.history.last_change() == 0
        assert engine.scratchpad.size() == 0

    def test_a_reader_sees_one_state_while_others_write(
        self, engine: Engine, opener: Opener
    ) -> None:
        stored(engine, memory_of(1))
        with engine.reader() as reader:
            assert reader.memories.count(EVERYTHING) == 1
            with closing(opener()) as other:
                stored(other, memory_of(2))
            assert reader.memories.count(EVERYTHING) == 1
        assert engine.memories.count(EVERYTHING) == 2

    def test_a_second_writer_waits_its_turn_and_loses_nothing(
        self, engine: Engine, opener: Opener
    ) -> None:
        (row_id,) = stored(engine, memory_of(1))

        def count_up() -> None:
            with closing(opener()) as other:
                for _ in range(20):
                    with other.write():
                        memory = other.memories.get("mem-1")
                        assert memory is not None
                        changes = {"metadata": {"count": memory.metadata.get("count", 0) + 1}}
                        other.memories.update(row_id, changes, now=NOW)

        threads = [threading.Thread(target=count_up) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory = engine.memories.get("mem-1")
        assert memory is not None
        assert memory.metadata == {"count": 60}
        assert memory.version == 61

    def test_an_impatient_writer_is_told_at_once(self, engine: Engine, opener: Opener) -> None:
        with (
            closing(opener()) as other,
            engine.write(),
            pytest.raises(StorageLocked),
            other.nowait(),
            other.write(),
        ):
            pass
        stored(engine, memory_of(1))

    def test_one_thread_counts_while_another_reads(self, engine: Engine) -> None:
        stored(engine, memory_of(1))
        counts: list[int] = []
        counting = threading.Thread(target=lambda: counts.append(engine.memories.count(ARCHIVED)))
        with engine.read():
            counting.start()
            counting.join(0.2)  # it may have to wait until this read is over
        counting.join()
        assert counts == [0]

    def test_after_closing_it_is_closed(self, engine: Engine) -> None:
        engine.close()
        engine.close()
        with pytest.raises(StorageClosed):
            engine.memories.is_empty()

    def test_to_prepare_it_again_changes_nothing(self, engine: Engine) -> None:
        version = engine.schema_version
        engine.prepare("alice", clock=lambda: NOW)
        assert engine.agent.identity() == AGENT
        assert engine.schema_version == version > 0
        assert engine.location
        assert engine.can_write
        assert not engine.read_only

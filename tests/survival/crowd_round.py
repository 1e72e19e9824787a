"""One round of the crowd: a fresh file, the processes on it, what disturbs them, and the audit."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from agent_memory import AgentMemory

from .crowd_audit import audited
from .crowd_journal import Account, read
from .crowd_texts import COUNTER, DUSTY, FIELDS
from .crowd_worker import Worker
from .tally import Tally
from .verbs import NAME, Words

PROCESSES: Final = 8
KINDS: Final = (
    "plain", "threads", "forks", "kills", "snapshots", "migration", "switch of model", "visitor",
)  # fmt: skip
"""What goes on besides the operations of the eight."""
_MANY: Final = 4_000
"""Operations in a round that is long enough for a snapshot that nobody waits for."""
_BETWEEN_CLOSINGS: Final = 10
"""Operations after which a process of a round with forks closes the file and opens it again."""
_KILLED: Final = 3
"""Processes of a round that are killed and replaced."""
_SLOW_SECONDS: Final = 0.002
_FORKED: Final = multiprocessing.get_context("fork")
_VISITOR: Final = Path(__file__).with_name("crowd_visitor.py")


class SlowWords(Words):
    """The same embedder, as slow as one that has something to do."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text, after a while."""
        time.sleep(_SLOW_SECONDS)
        return super().embed(texts)


@dataclass
class Round:
    """One round. ``operations`` are those of all processes together."""

    kind: str
    folder: Path
    operations: int
    seed: str
    tally: Tally = field(default_factory=Tally)
    disturbers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    killed: set[str] = field(default_factory=set)

    def run(self) -> Tally:
        """Run it."""
        logging.getLogger("agent_memory").setLevel(logging.CRITICAL)  # a model that goes is logged
        self._make_file()
        deadline = time.monotonic() + 60 + self.operations * 0.02
        share = -(-self.operations // PROCESSES)
        with self._disturbed():
            workers = [self._start(f"w{place}", place, share) for place in range(PROCESSES)]
            if self.kind == "kills":
                workers += self._kill_some(workers, share)
            if self._moves:
                workers.append(self._forked("mover", self._move))
            for process in workers:
                process.join(max(0.0, deadline - time.monotonic()))
        self._judge_ends(workers)
        if not self.tally.hangs:
            self._audit()
        return self.tally

    def warm_up(self) -> None:
        """Do each operation once in this process, and move."""
        self._make_file()
        with self._opened() as memory:
            self._worker(memory, "w", 0).each_once()
            memory.migrate()
            memory.search("walnut")

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / NAME

    @property
    def _moves(self) -> bool:
        return self.kind in ("migration", "switch of model")

    def _make_file(self) -> None:
        long_ago = datetime.now(UTC) - timedelta(days=400)
        with AgentMemory.open(self.path, embedder=None, clock=lambda: long_ago) as memory:
            memory.configure(retention={"archive_learnings_after_days": 90})
            memory.store_many(
                {"id": f"{DUSTY}-{it}", "content": f"Forgotten {it}", "timestamp": long_ago}
                for it in range(20)
            )
        with AgentMemory.open(self.path, embedder=Words()) as memory:
            memory.store("The counter of all", id=COUNTER, metadata={"number": 0})
            memory.store("The memory of all", id=FIELDS)
            if self.kind == "switch of model":
                memory.migrate()

    # Processes -----------------------------------------------------------------------------------

    def _start(self, name: str, place: int, operations: int) -> BaseProcess:
        work = self._work
        if self.kind == "threads" and place % 2:
            work = self._work_in_threads
        elif self.kind == "forks":
            work = self._work_and_fork if place % 2 else self._work_and_reopen
        return self._forked(name, lambda: work(name, place, operations))

    def _forked(self, name: str, work: Callable[[], None]) -> BaseProcess:
        process: BaseProcess = _FORKED.Process(target=self._guarded, args=(name, work), name=name)
        process.start()
        return process

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        """Run what a process does, and leave its failure where the round finds it."""
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        try:
            work()
        except BaseException:  # noqa: BLE001 - it is told by the round
            (self.folder / f"{name}.failure").write_text(traceback.format_exc())

    def _opened(self, **options: Any) -> AgentMemory:
        embedder = Words() if self._moves else None
        return AgentMemory.open(self.path, **{"embedder": embedder, "create": False, **options})

    def _worker(self, memory: AgentMemory, name: str, place: int) -> Worker:
        return Worker(
            memory,
            name,
            place,
            folder=self.folder,
            seed=self.seed,
            by_meaning=self._moves,
            may_be_refused=self.kind == "snapshots",
        )

    def _work(self, name: str, place: int, operations: int) -> None:
        memory = self._opened()
        worker = self._worker(memory, name, place)
        worker.work(operations)
        memory.close()
        worker.finish()

    def _work_and_reopen(self, name: str, place: int, operations: int) -> None:
        """Close the file now and then: whoever is the last to do so deletes its log."""
        worker = self._worker(self._opened(), name, place)
        for done in range(0, operations, _BETWEEN_CLOSINGS):
            worker.work(min(_BETWEEN_CLOSINGS, operations - done))
            worker.memory.close()
            worker.memory = self._opened()
        worker.memory.close()
        worker.finish()

    def _work_in_threads(self, name: str, place: int, operations: int) -> None:
        """Share one memory between two threads."""
        memory = self._opened()
        workers = [self._worker(memory, name, place), self._worker(memory, f"{name}b", 100)]
        threads = [
            threading.Thread(
                target=self._guarded,
                args=(worker.name, lambda it=worker: it.work(-(-operations // 2))),
            )
            for worker in workers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.close()
        for worker in workers:
            worker.finish()

    def _work_and_fork(self, name: str, place: int, operations: int) -> None:
        """Fork in the middle: the child goes on with the memory that its parent has open."""
        memory = self._opened()
        worker = self._worker(memory, name, place)
        child: list[int] = []

        def fork() -> None:
            pid = os.fork()
            if pid:
                child.append(pid)
                return
            self._guarded(f"{name}c", lambda: self._go_on(memory, f"{name}c", operations))
            os._exit(0)

        worker.work(operations // 2, midway=fork)
        memory.close()
        worker.finish()
        status = os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1])
        if status:
            raise ChildProcessError(f"the forked child ended with {status}")

    def _go_on(self, memory: AgentMemory, name: str, operations: int) -> None:
        worker = self._worker(memory, name, 100)
        worker.work(operations)
        memory.close()
        worker.finish()

    # What disturbs them --------------------------------------------------------------------------

    def _kill_some(self, workers: Sequence[BaseProcess], share: int) -> list[BaseProcess]:
        """Kill some of the processes in the middle, and let others take their place."""
        rng = random.Random(self.seed)
        later = []
        victims = {process: rng.randint(500, 60 * share) for process in workers[:_KILLED]}
        while victims:
            for process, size in list(victims.items()):
                if process.is_alive() and _size(self.folder / f"{process.name}.journal") < size:
                    continue
                del victims[process]
                process.kill()
                process.join()
                if process.exitcode:
                    self.killed.add(process.name)
                    self.tally.count("processes killed and replaced")
                later.append(self._start(f"{process.name}k", 100, share))
            time.sleep(0.002)
        return later

    def _move(self) -> None:
        """Move to other vectors while the others work."""
        embedder = SlowWords(48 if self.kind == "switch of model" else 32)
        memory = self._opened(embedder=embedder, config={"migration_batch_size": 10})
        time.sleep(0.5)  # so that there is something to move
        progress = memory.migrate()
        memory.close()
        if progress.status != "completed":
            raise AssertionError(f"the move ended as {progress}")

    @contextmanager
    def _disturbed(self) -> Iterator[None]:
        """Let other programs use the file meanwhile."""
        long = "read long" if self.operations > _MANY else "read"
        roles = {"snapshots": ["read", long], "visitor": ["write"] * 2}.get(self.kind, [])
        programs = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    str(_VISITOR),
                    role,
                    str(self.path),
                    f"v{number}",
                    self.seed,
                ],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for number, role in enumerate(roles)
        ]
        yield
        for number, program in enumerate(programs):
            _, told = program.communicate(timeout=60)
            if program.returncode:
                self.tally.errors += 1
                self.tally.note(f"{self._case}: visitor {number}: {told.decode()[-2000:]}")

    # Judging -------------------------------------------------------------------------------------

    @property
    def _case(self) -> str:
        return f"round {self.kind}, seed {self.seed}"

    def _judge_ends(self, workers: Sequence[BaseProcess]) -> None:
        for process in workers:
            if process.is_alive():
                process.kill()
                process.join()
                self.tally.hangs += 1
                self.tally.note(f"{self._case}: {process.name} hung")
            elif process.exitcode and process.name not in self.killed:
                self.tally.crashes += 1
                self.tally.note(f"{self._case}: {process.name} ended with {process.exitcode}")
        for failure in sorted(self.folder.glob("*.failure")):
            self.tally.errors += 1
            told = failure.read_text().strip()
            last = told.splitlines()[-1]
            self.tally.note(f"{self._case}: {failure.stem}: {last}\n{told[-2000:]}")

    def _audit(self) -> None:
        accounts = {it.stem: read(it) for it in sorted(self.folder.glob("*.journal"))}
        embedder = Words(48) if self.kind == "switch of model" else Words()
        verdict = audited(self.path, accounts, embedder=embedder)
        verdict.into(self.tally, self._case)
        for account in accounts.values():
            self._count(account)
        self.tally.count("rounds")

    def _count(self, account: Account) -> None:
        report = account.report
        if report is None:
            self.tally.cases += account.acknowledged
            return
        counts = report["counts"]
        extra = ("archived by tidying", "increments", "increments tried again", "erase refused")
        self.tally.cases += sum(number for name, number in counts.items() if name not in extra)
        for name in ("increments tried again", "erase refused"):
            self.tally.count(name, counts.get(name, 0))
        self.tally.count("acknowledged changes", account.acknowledged)
        self.tally.count("operations that took over 1 s", report["slow"])
        _, seconds = report["longest"]
        longest = self.tally.details.get(LONGEST, 0)
        self.tally.details[LONGEST] = max(longest, round(seconds * 1000))


LONGEST: Final = "ms that one operation took at most"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _end_with(parent: int) -> None:
    """End when the campaign does: nobody would hear of this process any more."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)

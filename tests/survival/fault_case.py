"""One fault: a verb meets it, and what is left is looked at."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from agent_memory import AgentMemory, AgentMemoryError
from agent_memory.errors import StorageFull
from agent_memory.models.agent import CheckReport
from agent_memory.models.reports import ErasureReceipt

from .cells import small_cells
from .fault_scene import IS_STORE, TEMPORARY, Scene, digest, files_of, fresh_copy, probe, vectors_of
from .fault_vfs import DISK, Fault, Kind
from .tally import Tally
from .truth import State, audit, state_of, unfound
from .verbs import AGENT, NAME, NOW, Words

HANGS_AFTER_SECONDS: Final = 60
_BEST_EFFORT: Final = ("search", "context")
"""What these write are counts, which may be lost with the disk."""
_OF_VECTORS: Final = ("embed", "migrate", "switch of model", "rollback", "move")
_WAYS_OF_DELETING: Final = ("delete", "open", "list", "look")
"""What is asked for to delete a folder."""
_LOGS: Final = ("-wal", "-shm", "-journal")
_LOCKS: Final = (f"{NAME}-migration", f".{NAME}.restoring-lock", ".lock")
_ERASED: Final = (b"The lantern was moved to the pier", b"lantern number 1 stands by")


class Lasting(StrEnum):
    """How long the disk fails."""

    ONCE = "once"
    UNTIL_MENDED = "lasting, then mended"
    TO_THE_END = "lasting, closed with it"


@dataclass(frozen=True)
class Case:
    """A fault of one verb."""

    fault: Fault
    lasting: Lasting
    checkpoints: bool = False


class HangError(BaseException):
    """It took too long."""


@dataclass
class Outcome:
    """What came of it. ``acknowledged``: the verb returned; ``is_sure``: its work must be there."""

    acknowledged: bool = False
    is_sure: bool = False
    probed: bool = False
    receipt: object = None
    errors: list[AgentMemoryError] = field(default_factory=list)


class Trial:
    """One case in a folder of its own; what is found goes into the tally."""

    def __init__(self, scene: Scene, case: Case, folder: Path, tally: Tally) -> None:
        self.scene = scene
        self.verb = scene.verb
        self.case = case
        self.folder = folder
        self.path = folder / NAME
        self.tally = tally
        self.outcome = Outcome()

    def __str__(self) -> str:
        fault, asked = self.case.fault, DISK.failed[:1]
        log = ", log written back at once" if self.case.checkpoints else ""
        what = f"{asked[0] if asked else '?'} ({fault.nth})"
        return f"{self.verb.name}: {what} {fault.kind}, {self.case.lasting}{log}"

    def run(self) -> None:
        """Do it."""
        fresh_copy(self.scene, self.folder)
        with small_cells(are_small=self.verb.in_cells), _bounded():
            try:
                self._meet_fault()
                if DISK.failed:
                    self._count()
                    self._look()
                else:
                    self.tally.count("not reached")
            except HangError:
                self.tally.hangs += 1
                self.tally.note(f"{self}: hung")
            except Exception:  # noqa: BLE001 - whatever comes out is a finding
                self._wrong(traceback.format_exc()[-1500:])
            finally:
                DISK.mend()

    # The fault --------------------------------------------------------------------------------

    def _meet_fault(self) -> None:
        memory = self.scene.open(self.folder, checkpoints=self.case.checkpoints)
        DISK.watch(self.folder, self.case.fault)
        error = self._attempt(lambda: self._act(memory))
        done = error is None and self._says_done()
        self.outcome.acknowledged = self.outcome.is_sure = done
        if memory is None:
            DISK.mend()
            self._again(None)
            return
        while_acting = bool(DISK.failed)
        if while_acting and self.case.lasting is not Lasting.TO_THE_END:
            DISK.mend()
            self._use(memory)
            self._attempt(memory.close, must=True)
            return
        if self._attempt(memory.close) is not None:
            DISK.mend()
            self._attempt(memory.close, must=True)
        DISK.mend()
        if self.verb.name in _BEST_EFFORT:
            self.outcome.is_sure = False
        if not self.outcome.acknowledged:
            memory = self.scene.open(self.folder)
            assert memory is not None
            self._again(memory)
            memory.close()

    def _act(self, memory: AgentMemory | None) -> None:
        self.outcome.receipt = self.verb.act(memory, self.folder)

    def _says_done(self) -> bool:
        """Return whether what the verb returned says that it did its work."""
        report = self.outcome.receipt
        return not isinstance(report, CheckReport) or all(it.repaired for it in report.problems)

    def _use(self, memory: AgentMemory) -> None:
        """Go on with the memory that met the fault, now that the disk is mended."""
        fault = self.case.fault
        is_other = (fault.nth + len(fault.kind) + fault.lasts) % 2
        if is_other and (self.outcome.acknowledged or self.verb.name in _BEST_EFFORT):
            return  # counts that are still to be written must not be made twice
        if is_other or self.scene.is_damaged:
            self._again(memory)
            return
        self.outcome.probed = True
        problem = None

        def use() -> None:
            nonlocal problem
            problem = probe(memory, self.scene.known)

        self._attempt(use, must=True)
        if problem is not None:
            self._wrong(f"afterwards: {problem}")

    def _again(self, memory: AgentMemory | None) -> None:
        """Do again what failed, unless it was done all the same."""
        if self.outcome.acknowledged and memory is not None:
            return
        if memory is None or not self.scene.is_done(self.folder):
            if memory is not None and state_of(self.path) not in (
                self.scene.before,
                self.scene.after,
            ):
                return  # which is told when the file is looked at
            self._attempt(lambda: self._act(memory), must=True)
            self.tally.count("done again")
        else:
            self.tally.count("done although it raised")
        self.outcome.is_sure = True

    def _attempt(self, call: Callable[[], object], *, must: bool = False) -> Exception | None:
        """Call; return what it raised, which must be of the library, and nothing if it ``must``."""
        try:
            call()
        except AgentMemoryError as error:
            if must:
                self._wrong(f"with the disk mended: {type(error).__name__}: {error}")
            else:
                self.outcome.errors.append(error)
            return error
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self._wrong(traceback.format_exc()[-1500:])
            return error
        return None

    def _wrong(self, text: str) -> None:
        self.tally.errors += 1
        self.tally.note(f"{self}: {text}")

    def _count(self) -> None:
        fault, outcome = self.case.fault, self.outcome
        self.tally.cases += 1
        for name in (fault.kind, self.case.lasting, DISK.failed[0]):
            self.tally.count(str(name))
        if self.verb.in_cells:
            self.tally.count("in cells")
        if not outcome.errors:
            self.tally.count("raised nothing")
        for error in outcome.errors:
            if fault.kind is Kind.ENOSPC and not isinstance(error, StorageFull):
                self.tally.count(f"ENOSPC of {DISK.failed[0]} told as {type(error).__name__}")

    # What is left -----------------------------------------------------------------------------

    def _look(self) -> None:
        self._look_at_files()
        options: dict[str, Any] = {
            "agent_id": AGENT,
            "session_id": "session-1",
            "embedder": Words(self.verb.dimensions),
            "clock": lambda: NOW,
        }
        audit(self.path, self._allowed(), **options).into(self.tally, str(self))
        is_plain = self.outcome.is_sure and not self.outcome.probed
        if is_plain and self.verb.sort in _OF_VECTORS:
            found = vectors_of(self.path)
            if found != self.scene.vectors:
                self.tally.mismatches += 1
                self.tally.note(f"{self}: vectors {found}, not {self.scene.vectors}")
        self._look_for_erased()
        if self.verb.in_cells and (wrong := unfound(self.path)):
            self.tally.mismatches += len(wrong)
            self.tally.note(f"{self}: {wrong[:3]}")

    def _allowed(self) -> list[State]:
        scene = self.scene
        if self.outcome.probed:
            allowed = [scene.after_probed, scene.before_probed]
        else:
            allowed = [scene.after, *([] if scene.before is None else [scene.before])]
        return allowed[:1] if self.outcome.is_sure else allowed

    def _look_at_files(self) -> None:
        """Look at what is beside the memory: outputs, backups, what was left by mistake."""
        scene = self.scene
        found = files_of(self.folder)
        if self.outcome.is_sure and (missing := scene.files.keys() - found.keys()):
            self.tally.lost += len(missing)
            self.tally.note(f"{self}: there is no {', '.join(missing)}")
        for name, path in found.items():
            right = {scene.files.get(name), scene.old_files.get(name)} - {None}
            if IS_STORE.fullmatch(name):
                if digest(path) not in right:
                    self._look_at_store(name, path)
            elif not right:
                self._look_at_leftover(name)
            elif digest(path) not in right:
                self.tally.half_written += 1
                self.tally.note(f"{self}: {name} is neither old nor new")

    def _look_at_leftover(self, name: str) -> None:
        """Allow what is left where it could not be deleted: it is swept, or used, another time."""
        kind = (
            "logs" if name.endswith(_LOGS) else "locks" if name in _LOCKS else "unfinished copies"
        )
        self.tally.count(f"{kind} left")
        ways = _WAYS_OF_DELETING if name.startswith(TEMPORARY) else ("delete",)
        excused = self.case.lasting is not Lasting.ONCE or DISK.failed[0] in ways
        if kind == "unfinished copies" and not excused:
            self.tally.half_written += 1
            self.tally.note(f"{self}: {name} is left")

    def _look_at_store(self, name: str, path: Path) -> None:
        allowed = self.scene.stores.get(name)
        if not allowed:
            self.tally.half_written += 1
            self.tally.note(f"{self}: {name} should not be there")
            return
        verdict = audit(path, allowed, agent_id=AGENT, embedder=Words(self.verb.dimensions))
        if not verdict.is_sound and not self.scene.is_damaged:
            verdict.into(self.tally, f"{self}: {name}")

    def _look_for_erased(self) -> None:
        """Look for what an erasure says is gone."""
        receipt = self.outcome.receipt
        if not isinstance(receipt, ErasureReceipt) or not self.outcome.is_sure:
            return
        if not receipt.clean:
            self.tally.count("receipts that tell of leftovers")
            return
        places = [self.path, *self.folder.glob(f"{NAME}-wal")]
        if receipt.with_backups:
            places += [*self.folder.glob("backups/*"), *self.folder.glob("*.backup")]
        for path in places:
            data = path.read_bytes()
            if any(text in data for text in _ERASED):
                self.tally.lost += 1
                self.tally.note(f"{self}: the receipt is clean, and {path.name} holds the text")


@contextmanager
def _bounded() -> Iterator[None]:
    def hang(*_: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(HANGS_AFTER_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

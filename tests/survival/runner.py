"""Running the parts of a campaign in processes of their own, so that a crash or hang is told."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess

from .tally import Tally

Part = Callable[[], Tally]


def run_parts(
    parts: Sequence[Part], *, timeout_seconds: float, workers: int | None = None
) -> list[Tally]:
    """Run each part in a forked process, ``workers`` at a time, and return what they found.

    A part that ends by a signal counts as a crash, one that takes longer than
    ``timeout_seconds`` as a hang, one that raises as an error; each is noted.
    """
    context = multiprocessing.get_context("fork")
    waiting = list(enumerate(parts))
    results: list[Tally] = []
    running: dict[Connection, tuple[int, BaseProcess, float]] = {}
    while waiting or running:
        while waiting and len(running) < (workers or os.cpu_count() or 1):
            number, part = waiting.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(target=_run, args=(part, sender))
            process.start()
            sender.close()
            running[receiver] = (number, process, time.monotonic() + timeout_seconds)
        wait_for(list(running), timeout=1)
        for receiver, (number, process, deadline) in list(running.items()):
            if receiver.poll():
                results.append(_result(receiver, process, number))
            elif time.monotonic() > deadline:
                process.kill()
                process.join()
                results.append(Tally(hangs=1, notes=[f"part {number} hung"]))
            else:
                continue
            receiver.close()
            del running[receiver]
    return results


def _run(part: Part, sender: Connection) -> None:
    started = time.monotonic()
    try:
        tally = part()
    except Exception:  # noqa: BLE001 - the part's failure is its result
        tally = Tally(errors=1, notes=[traceback.format_exc()])
    tally.seconds = time.monotonic() - started
    sender.send(tally)
    sender.close()


def _result(receiver: Connection, process: BaseProcess, number: int) -> Tally:
    try:
        tally: Tally = receiver.recv()
    except EOFError:
        process.join()
        return Tally(crashes=1, notes=[f"part {number} ended with {process.exitcode}"])
    process.join()
    return tally

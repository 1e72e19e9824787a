"""What the capture takes from a thousand labelled outputs, and what that costs the caller.

    python -m bench.capture

The outputs are those of ``tests/integrations/labelled_outputs.py``, which says how they were made.
They go through ``MemoryCapture.tool_output`` and ``turn`` into a store, as a host's would, each
with its own session. Precision is the share of captures that match a label, by sentence and type;
recall is the share of labels that were captured. The texts that the rules were tuned on and the
held-out ones are reported separately.

The latency is that of the call alone, in the caller's thread, while the background thread stores
(p50, p95 and p99, milliseconds): for outputs of several lengths, every fifth of which has something
to capture, and for one that consists only of places to examine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from agent_memory import AgentMemory, Memory
from agent_memory.integrations.capture.capture import MemoryCapture
from bench.machine import describe_machine

LABELLED: Final = Path(__file__).resolve().parent.parent / "tests" / "integrations"
SHARES: Final = {"tuned": 667, "held out": 333}
LENGTHS: Final = (100, 1_000, 10_000, 100_000)
ROUNDS: Final = 400


def captured(memory: AgentMemory, output: Any, number: int) -> list[Memory]:  # noqa: ANN401
    """Put one output through its own capture, and return what was stored."""
    session = f"session-{number}"
    with MemoryCapture(memory, session_id=session) as capture:
        if output.source.startswith("turn:"):
            capture.turn(output.text, output.source.removeprefix("turn:"))
        else:
            capture.tool_output(output.source, output.text)
    stored = memory.list_recent(100, filters={"session_id": session})
    for it in stored:  # otherwise the next output with the same sentence would be a duplicate
        memory.delete(it.id)
    return stored


def measure_labelled() -> None:
    """Print precision and recall, by part and by type."""
    sys.path.insert(0, str(LABELLED))
    from labelled_outputs import outputs  # noqa: PLC0415 - it is among the tests

    print(
        f"{'':10}{'type':12}{'labelled':>9}{'captured':>9}{'right':>7}{'precision':>11}{'recall':>8}"
    )
    for part, count in SHARES.items():
        labelled: Counter[str] = Counter()
        found: Counter[str] = Counter()
        right: Counter[str] = Counter()
        unsaid = unsaid_found = 0
        with tempfile.TemporaryDirectory() as folder, AgentMemory("bench", root=folder) as memory:
            for number, output in enumerate(outputs(part, count)):
                left = captured(memory, output, number)
                for label in output.labels:
                    hit = next(
                        (
                            it
                            for it in left
                            if it.category in label.types and label.is_met_by(it.content)
                        ),
                        None,
                    )
                    kind = hit.category if hit is not None else label.types[0]
                    labelled[kind] += 1
                    if hit is not None:
                        left.remove(hit)
                        right[kind] += 1
                        found[kind] += 1
                found.update(it.category for it in left)
                unsaid += len(output.unsaid)
                unsaid_found += sum(
                    it.is_met_by(one.content) for it in output.unsaid for one in left
                )
        for kind in sorted(labelled | found):
            row(part, kind, labelled[kind], found[kind], right[kind])
        row(part, "all", labelled.total(), found.total(), right.total())
        print(f"{part:10}{count} outputs; facts said without a cue: {unsaid_found} of {unsaid}")


def row(part: str, kind: str, labelled: int, found: int, right: int) -> None:
    """Print one row."""
    precision = f"{right / found:11.3f}" if found else f"{'-':>11}"
    recall = f"{right / labelled:8.3f}" if labelled else f"{'-':>8}"
    print(f"{part:10}{kind:12}{labelled:9}{found:9}{right:7}{precision}{recall}", flush=True)


def measure_latency() -> None:
    """Print how long a call takes, by the length of the output."""
    print(f"\n{'characters':>11}  {'':34}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}")
    for length in LENGTHS:
        texts = [text_of(length, number) for number in range(ROUNDS)]
        report(f"{length:>11,}  {'one in five holds something':34}", texts)
    dense = [(f"NOTE: line {n} of the plan\n" * 10_000)[:100_000] for n in range(100)]
    report(f"{100_000:>11,}  {'nothing but places to look at':34}", dense)


def text_of(length: int, number: int) -> str:
    """Return the output of a tool, of about this length, unlike the others."""
    said = f"We decided to give shelf {number} to the {number} oldest books.\n"
    line = f"2025-05-01 08:00:{number % 60:02} INFO worker {number} served a page in 12 ms\n"
    text = line * (length // len(line) + 1)
    return (text[: length // 2] + "\n" + said + text)[:length] if number % 5 == 0 else text[:length]


def report(name: str, texts: list[str]) -> None:
    """Time ``tool_output`` with each text, at the pace of a busy agent, and print a row."""
    times = []
    config = {"max_captures_per_session": 1_000_000}
    with tempfile.TemporaryDirectory() as folder, AgentMemory("bench", root=folder) as memory:
        memory.store("the file is there")
        with MemoryCapture(memory, config=config) as capture:
            for text in texts:
                started = time.perf_counter()
                capture.tool_output("bash", text)
                times.append((time.perf_counter() - started) * 1000)
                time.sleep(0.002)
            capture.flush()
            done = capture.report
    assert done.waiting == done.dropped == done.failed == done.unread == 0, done
    ordered = sorted(times)
    picked = [
        ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95, 0.99)
    ]
    print(
        f"{name}{''.join(f'{it:9.3f}' for it in picked)}   n={len(times)}, stored {done.stored}",
        flush=True,
    )


if __name__ == "__main__":
    print(describe_machine())
    measure_labelled()
    measure_latency()

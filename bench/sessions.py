"""What the time of a session's search reveals about the words that other users have.

    python -m bench.sessions                  10,000 memories of others
    python -m bench.sessions --others 100000

One user of a file searches for words that nobody has, and for words that others use often. The last
column is the ratio of the second time to the first: 1.0 reveals nothing. With at most ``FEW_TEXTS``
memories, a session's own texts are read, and nothing else; with more, the index of all is used, in
which each memory of another user with the word takes 0.7 µs. Times are milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from typing import Final

from agent_memory import AgentMemory
from agent_memory.api.session import SessionMemory
from agent_memory.storage.term_counts import FEW_TEXTS
from bench.machine import describe_machine
from bench.speed import timed
from bench.workload import NOW, Workload

ROUNDS: Final = 200
ABSENT: Final = "zyxwvut qponmlk jihgfed"
OWN: Final = (100, FEW_TEXTS, 2 * FEW_TEXTS)


def measure(session: SessionMemory, common: str) -> tuple[float, float]:
    """Return the median times for words that nobody has, and for words of others.

    The two are searched for in turn: a machine's speed varies.
    """
    asked = timed(
        lambda query: session.search(query, count_accesses=False), [ABSENT, common] * ROUNDS
    )
    times = [each.wall for each in asked]
    return statistics.median(times[::2]), statistics.median(times[1::2])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--others", type=int, default=10_000, help="memories of other users")
    others = parser.parse_args().others
    print(describe_machine())
    print(f"{'own':>8}{'others have it':>16}{'nobody has':>12}{'others have':>13}{'ratio':>8}")
    workload = Workload()
    with tempfile.TemporaryDirectory() as folder:
        memory = AgentMemory("bench", root=folder, clock=lambda: NOW)
        for start in range(0, others, 1_000):
            items = workload.memories(min(1_000, others - start), start=start)
            memory.store_many(
                {**item, "content": f"{item['content']} merger", "user_id": f"user-{number % 50}"}
                for number, item in enumerate(items)
            )
        for own in OWN:
            session = memory.session({"user_id": f"of {own}"})
            session.store_many({"content": workload.sentence()} for _ in range(own))
            nobody, often = measure(session, "merger")
            print(f"{own:>8,}{others:>16,}{nobody:>12.2f}{often:>13.2f}{often / nobody:>8.2f}")
        memory.close()


if __name__ == "__main__":
    main()

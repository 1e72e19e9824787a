"""What the memory-assistant saves: tokens in the main session, with and without it.

    python -m bench.assistant

A store of the twenty notes and of generated memories is asked a question that takes several
searches. Without the assistant, the main session makes the calls and reads their results; with it,
it makes one call and reads a summary. Both are counted as JSON, with the library's own estimate: a
quarter of the UTF-8 bytes. No model is used: the searches are written down here, and a rule makes
the summary from their hits, in the form and of the length that the agent's file demands (the
answer, up to five memories with their ids, at most 150 words). A model would select and phrase it
better; the length limit would be the same.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from agent_memory import AgentMemory, estimate_tokens
from agent_memory.integrations.amplifier import BUNDLE
from agent_memory.integrations.tools.memory_tools import MemoryTools
from bench.machine import describe_machine
from bench.workload import NOW, Workload

NOTES: Final = Path(__file__).with_name("notes.jsonl")
QUESTION: Final = "What did we decide about the database, and why?"
CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("memory_search", {"query": QUESTION, "limit": 20}),
    ("memory_search", {"query": "SQLite file driver reason instead of a server", "limit": 20}),
    (
        "memory_search",
        {"query": "database", "limit": 20, "filters": {"category": "decision"}},
    ),
    ("memory_list_recent", {"limit": 20}),
]
MOST_WORDS: Final = 150
MOST_MEMORIES: Final = 5


def filled(memory: AgentMemory, count: int) -> None:
    """Store the notes, and generated memories beside them."""
    lines = NOTES.read_text(encoding="utf-8").splitlines()
    memory.store_many([{**json.loads(line), "timestamp": NOW} for line in lines])
    memory.store_many(list(Workload().memories(count)))


def tokens(data: object) -> int:
    """Estimate the tokens of data as JSON."""
    return estimate_tokens(json.dumps(data, ensure_ascii=False))


def asked(tools: MemoryTools) -> tuple[list[tuple[int, int]], list[dict[str, Any]]]:
    """Make the calls; return the cost of each call and result, and all hits in order."""
    costs = []
    found = []
    for name, arguments in CALLS:
        result = tools.call(name, arguments)
        assert result.data is not None, result.error
        costs.append((tokens({"name": name, "arguments": arguments}), tokens(result.data)))
        found += result.data.get("results", [])
    return costs, found


def summary_of(found: Iterable[dict[str, Any]]) -> str:
    """Return the best of the hits, as the agent's file wants it: by a rule, not a model.

    A memory scores the sum of its scores in all searches.
    """
    memories: dict[str, dict[str, Any]] = {}
    scores: dict[str, float] = {}
    for hit in found:
        memories[hit["id"]] = hit
        scores[hit["id"]] = scores.get(hit["id"], 0.0) + hit["relevance_score"]
    best = sorted(scores, key=lambda it: scores[it], reverse=True)[:MOST_MEMORIES]
    lines = [memories[best[0]]["content"]] if best else ["The memory has no answer."]
    for memory_id in best:
        hit = memories[memory_id]
        line = f"- {hit['timestamp'][:10]} {hit['content']} {{{memory_id}}}"
        if len(" ".join([*lines, line]).split()) <= MOST_WORDS:
            lines.append(line)
    return "\n".join(lines)


def measure(count: int) -> None:
    """Print the example."""
    with tempfile.TemporaryDirectory() as folder:
        memory = AgentMemory("bench", root=folder, embedder=None, clock=lambda: NOW)
        with memory:
            filled(memory, count)
            print(f"{memory.count()} memories; the question: {QUESTION}\n")
            costs, found = asked(MemoryTools(memory))
            light = MemoryTools(memory).call("memory_search", {"query": QUESTION}).data
    summary = summary_of(found)
    call = {"agent": "agent-memory:memory-assistant", "instruction": QUESTION}
    delegated = tokens({"name": "delegate", "arguments": call}), estimate_tokens(summary)
    report(costs, delegated)
    one = costs[0][0] + tokens(light)
    print(f"  {'for comparison: one search, limit 5':40}{one:>15}")
    print(f"\nThe summary, {len(summary.split())} words:\n{summary}")


def report(costs: list[tuple[int, int]], delegated: tuple[int, int]) -> None:
    """Print what each session has to read."""
    print(f"{'in the main session, without it':42}{'call':>7}{'result':>8}")
    for (name, arguments), (call, result) in zip(CALLS, costs, strict=True):
        asked_for = f"{name} {str(arguments.get('query', ''))[:20]}"
        print(f"  {asked_for:40}{call:>7}{result:>8}")
    without = sum(map(sum, costs))
    print(f"  {'together':40}{without:>15}")
    print("in the main session, with it")
    print(f"  {'delegate':40}{delegated[0]:>7}{delegated[1]:>8}")
    print(f"  {'together':40}{sum(delegated):>15}")
    print(f"  {'saved':40}{1 - sum(delegated) / without:>15.1%}")
    _, front, prompt = (BUNDLE / "agents" / "memory-assistant.md").read_text().split("---\n", 2)
    description = yaml.safe_load(front)["meta"]["description"]
    print("what it costs elsewhere")
    print(f"  {'its description, in every main session':40}{estimate_tokens(description):>15}")
    print(
        f"  {'its own session: prompt, calls, results':40}{estimate_tokens(prompt) + without:>15}"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="What the memory-assistant saves.")
    parser.add_argument("--count", type=int, default=300, help="generated memories (300)")
    count = parser.parse_args().count
    print(describe_machine())
    measure(count)


if __name__ == "__main__":
    main()

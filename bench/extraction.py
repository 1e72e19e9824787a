"""The rules that extract facts from conversations, on files that stay in place: give the path.

    python -m bench.extraction PATH/locomo.json             what is kept of LoCoMo's turns
    python -m bench.extraction PATH/locomo.json --recall    and how well searches find it
    python -m bench.extraction PATH/cases.json --missed 99  whether what is true is kept

For a file with statements, pairs and noise, the shares of ``bench.truth`` are printed.

In LoCoMo, a turn is evidence if a question names it. What counts is the share of those turns, and
of the turns that the dataset's own observations cite, with a kept fact; the share of facts from
turns that are no evidence is an upper bound for junk. Recall is that of ``bench.locomo``, with a
memory for each fact instead of one for each turn, and with the memories that ``add`` leaves, which
compares and decides.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_memory import AgentMemory
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.models.conversation import Message
from bench.locomo import DIALOGUE_ID, Conversation, Document, measure, read
from bench.machine import describe_machine
from bench.truth import KEYS
from bench.truth import measure as measure_truth


@dataclass
class Counts:
    """The counts of what was kept, summed over conversations."""

    turns: int = 0
    facts: int = 0
    characters: int = 0
    kept_turns: int = 0
    evidence: int = 0
    kept_evidence: int = 0
    idle_facts: int = 0
    idle_and_uncited: int = 0
    observations: int = 0
    kept_observations: int = 0
    missed: list[str] = field(default_factory=list)


def percent(part: int, whole: int) -> str:
    """Format a share."""
    return f"{100 * part / max(1, whole):5.1f} %"


def turns_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the turns of a conversation in order."""
    talk = entry["conversation"]
    keys = [key for key in talk if re.fullmatch(r"session_\d+", key)]
    return [turn for key in sorted(keys, key=lambda it: int(it[8:])) for turn in talk[key]]


def messages_of(turns: Sequence[dict[str, Any]]) -> list[Message]:
    """Return turns as messages of two users with names."""
    return [
        Message.model_validate(
            {
                "role": "user",
                "name": turn["speaker"],
                "content": turn["text"]
                + (f"\n[shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""),
            }
        )
        for turn in turns
    ]


def cited(entry: dict[str, Any]) -> list[set[str]]:
    """Return the turns that each observation cites."""
    return [
        set(DIALOGUE_ID.findall(json.dumps(evidence)))
        for session in entry["observation"].values()
        for facts in session.values()
        for _, evidence in facts
    ]


def count(entry: dict[str, Any], counts: Counts) -> None:
    """Run the rules over a conversation, and count."""
    turns = turns_of(entry)
    facts = facts_by_rules(messages_of(turns))
    named = set(DIALOGUE_ID.findall(json.dumps([it["evidence"] for it in entry["qa"]])))
    evidence = named & {turn["dia_id"] for turn in turns}
    kept = {turns[place]["dia_id"] for fact in facts for place in fact.sources}
    observations = cited(entry)
    known = set().union(*observations)
    counts.turns += len(turns)
    counts.facts += len(facts)
    counts.characters += sum(len(fact.text) for fact in facts)
    counts.kept_turns += len(kept)
    counts.evidence += len(evidence)
    counts.kept_evidence += len(evidence & kept)
    for fact in facts:
        sources = {turns[place]["dia_id"] for place in fact.sources}
        counts.idle_facts += not sources & evidence
        counts.idle_and_uncited += not sources & (evidence | known)
    counts.observations += len(observations)
    counts.kept_observations += sum(bool(turns & kept) for turns in observations)
    counts.missed += [turn["text"] for turn in turns if turn["dia_id"] in evidence - kept]


def print_counts(counts: Counts) -> None:
    """Print what was kept."""
    print(f"turns                              {counts.turns:6,}")
    print(f"facts                              {counts.facts:6,}")
    print(f"characters a fact                  {counts.characters / max(1, counts.facts):6.0f}")
    print(f"turns with a fact                  {percent(counts.kept_turns, counts.turns)}")
    print(f"evidence-bearing turns with a fact {percent(counts.kept_evidence, counts.evidence)}")
    cited_share = percent(counts.kept_observations, counts.observations)
    print(f"observations whose turn has a fact {cited_share}")
    idle_turns = percent(counts.turns - counts.evidence, counts.turns)
    print(f"turns that are no evidence         {idle_turns}")
    print(f"facts whose turn is no evidence    {percent(counts.idle_facts, counts.facts)}")
    print(f"  nor cited by an observation      {percent(counts.idle_and_uncited, counts.facts)}")


def fact_memories(entry: dict[str, Any], conversation: Conversation) -> Conversation:
    """Return a conversation with a memory for each fact instead of one for each turn."""
    turns = conversation.turns
    documents = []
    for fact in facts_by_rules(messages_of(turns_of(entry))):
        evidence = set().union(*(turns[place].evidence for place in fact.sources))
        item = {**turns[fact.sources[0]].item, "content": fact.text}
        documents.append(Document(item, evidence))
    return replace(conversation, turns=documents)


def added_memories(entry: dict[str, Any], conversation: Conversation) -> Conversation:
    """Return a conversation with the memories that ``add`` leaves, called for each session in turn.

    A memory has the evidence of every fact whose text it ever had.
    """
    turns = conversation.turns
    of_text: dict[str, set[str]] = {}
    item_of: dict[str, dict[str, Any]] = {}
    evidence: dict[str, set[str]] = {}
    with (
        tempfile.TemporaryDirectory() as root,
        AgentMemory("bench", root=root, embedder=None, synchronous="NORMAL") as memory,
    ):
        messages = messages_of(turns_of(entry))
        by_session: dict[str, list[int]] = {}
        for place, turn in enumerate(turns):
            by_session.setdefault(str(turn.item["session_id"]), []).append(place)
        for places in by_session.values():
            said = [messages[place] for place in places]
            for fact in facts_by_rules(said):
                sources = [places[it] for it in fact.sources]
                of_text[fact.text] = set().union(*(turns[it].evidence for it in sources))
                item_of[fact.text] = turns[sources[0]].item
            for done in memory.add(said).data:
                if done.id is not None:
                    evidence.setdefault(done.id, set()).update(of_text.get(done.memory, ()))
        documents = [
            Document({**item_of[it.content], "content": it.content}, evidence.get(it.id, set()))
            for it in reversed(memory.list_recent(100_000))
            if it.content in item_of
        ]
    return replace(conversation, turns=documents)


def print_recall(entries: list[dict[str, Any]], path: Path, embedder: str) -> None:
    """Print how well searches find the evidence, in turns and in facts."""
    conversations = read(path)
    by_facts = [fact_memories(*pair) for pair in zip(entries, conversations, strict=True)]
    added = [added_memories(*pair) for pair in zip(entries, conversations, strict=True)]
    left = sum(len(one.turns) for one in added)
    print(f"memories that add leaves           {left:6,}")
    print(f"recall of the evidence at 5 / 10 / 25, embedder {embedder}")
    for name, corpus in (("turns", conversations), ("facts", by_facts), ("added", added)):
        print(f"  {name} {measure(corpus, 'turns', {}, count=False, embedder=embedder)}")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="a LoCoMo file, or a file of cases")
    parser.add_argument("--recall", action="store_true", help="search for the facts that were kept")
    parser.add_argument("--missed", type=int, default=0, help="show this many failures")
    parser.add_argument("--embedder", default="none", help="search by meaning too")
    words = parser.parse_args()
    entries = json.loads(words.path.read_text(encoding="utf-8"))
    print(describe_machine())
    if isinstance(entries, dict) and entries.keys() >= KEYS:
        measure_truth(entries).print(shown=words.missed)
        return
    counts = Counts()
    for entry in entries:
        count(entry, counts)
    print_counts(counts)
    for text in counts.missed[: words.missed]:
        print("  -", text)
    if words.recall:
        print_recall(entries, words.path, words.embedder)


if __name__ == "__main__":
    main()

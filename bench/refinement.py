"""What a second look and a reranker are worth, compared with a plain search.

    python -m bench.refinement --embedder minilm                        chains made from a seed
    python -m bench.refinement --embedder minilm --locomo PATH/dev.json and LoCoMo's questions

A chain is a question whose words do not lead to the answer: it asks where somebody's sister lives,
and her name is in another memory. 26 of them are asked among 1,500 other memories of the same
people. The reranker is the cosine of ``multilingual-e5``, which is not a cross-encoder: it shows
what an external order does, and what requesting it costs.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent_memory import AgentMemory
from agent_memory.embeddings.registry import create_embedder
from bench.locomo import CATEGORIES, Document, Question, Recall, read, stored
from bench.machine import describe_machine

SEED = 5
OTHERS = 1_500
PEOPLE = (
    "Anna Bela Carlo Dora Emil Fiona Gustav Hanna Igor Jana Karl Lena Milan Nora Otto Paula Quentin"
    " Rosa Stefan Tina Ugo Vera Walter Xenia Yara Zeno"
).split()
CITIES = "Bergen Porto Ghent Graz Lyon Turin Basel Delft Bremen Malmo Aarhus Tampere Vienna".split()
FIRMS = "Siemens Bosch Nestle Spotify Ikea Volvo Nokia Lego Philips Heineken Puma Zara Aldi".split()
RELATIONS = "sister boss neighbour dentist cousin".split()
HOBBIES = "chess climbing pottery rowing sailing cooking knitting fencing judo painting".split()


def chains() -> tuple[list[Document], list[Question]]:
    """Return the memories, each in its own session, and the questions."""
    dice = random.Random(SEED)
    people = dice.sample(PEOPLE, len(PEOPLE))
    texts: list[str] = []
    questions: list[Question] = []
    for number, (one, other) in enumerate(list(pairwise(people))[::2]):
        relation = RELATIONS[number % len(RELATIONS)]
        texts += [
            f"{one}'s {relation} is called {other}.",
            f"{other} moved to {CITIES[number]} in spring and likes it there.",
            f"{other} works for {FIRMS[number]} as an engineer.",
        ]
        place = len(texts)
        asked = [
            (f"Which city does {one}'s {relation} live in?", place - 2),
            (f"What company does {one}'s {relation} work for?", place - 1),
        ]
        questions += [Question(text, {f"D1:{answer}"}, 1) for text, answer in asked]
    for number in range(OTHERS):
        one, other = dice.sample(PEOPLE, 2)
        hobby, relation = dice.choice(HOBBIES), dice.choice(RELATIONS)
        texts.append(
            dice.choice(
                [
                    f"{one} went {hobby} with {other} on day {number}.",
                    f"Talked with {one} about {hobby} and the city marathon, number {number}.",
                    f"{one} said the company picnic was fun, year {number}.",
                    f"{one} wants to live closer to work, note {number}.",
                    f"{one}'s {relation} sent a card, {number}.",
                ]
            )
        )
    documents = [
        Document({"content": text, "session_id": f"s{place}"}, {f"D1:{place}"})
        for place, text in enumerate(texts)
    ]
    return documents, questions


class CosineReranker:
    """The cosine of another model's vectors."""

    def __init__(self, name: str) -> None:
        self._embedder: Any = create_embedder(name)

    def __call__(self, query: str, texts: Sequence[str], /) -> Iterable[float]:
        """Return the cosine of each text and the query."""
        (asked,) = (list(vector) for vector in self._embedder.embed_queries([query]))
        for vector in self._embedder.embed(texts):
            yield sum(a * b for a, b in zip(asked, vector, strict=True))


def measure(
    documents: list[Document], questions: Sequence[Question], embedder: str, label: str
) -> None:
    """Print recall without and with each, and the CPU time of a search."""
    ways: dict[str, dict[str, Any]] = {
        "plain": {},
        "hops=2": {"hops": 2},
        "reranker": {"reranker": CosineReranker("multilingual-e5")},
    }
    with stored(documents, embedder, {}) as (memory, ids):
        finds = dict(zip(ids, (document.evidence for document in documents), strict=True))
        for name, options in ways.items():
            print(f"{label:10} {name:10} {_asked(memory, questions, finds, options)}", flush=True)


def _asked(
    memory: AgentMemory,
    questions: Sequence[Question],
    finds: dict[str, set[str]],
    options: dict[str, Any],
) -> str:
    by_category: dict[int, Recall] = {}
    everything = Recall()
    started = time.process_time()
    for question in questions:
        hits = memory.search(question.text, limit=25, count_accesses=False, **options)
        evidence = [finds[hit.memory.id] for hit in hits]
        everything.add(question.evidence, evidence)
        by_category.setdefault(question.category, Recall()).add(question.evidence, evidence)
    milliseconds = (time.process_time() - started) * 1000 / len(questions)
    multi = by_category.get(1, everything)
    return f"all {everything}   {CATEGORIES[1]} {multi}   CPU {milliseconds:.1f} ms a search"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embedder", default="none", help="a name, such as minilm")
    parser.add_argument("--locomo", type=Path, help="a LoCoMo file (one conversation)")
    arguments = parser.parse_args()
    print(describe_machine())
    print(f"embedder: {arguments.embedder}; recall@5 / @10 / @25, percent")
    measure(*chains(), arguments.embedder, "chains")
    if arguments.locomo:
        for number, conversation in enumerate(read(arguments.locomo)):
            label = f"LoCoMo {number}"
            measure(conversation.turns, conversation.questions, arguments.embedder, label)


if __name__ == "__main__":
    main()

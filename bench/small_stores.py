"""Small stores on one subject: whether a question finds anything there, and a foreign one nothing.

    python -m bench.small_stores PATH/TO/corpus.json

Around each question of a corpus a store is made: the memory that answers it, and others that have a
word with both in common. Asked are the question itself, two of that word and another ("library
preferences", "which library should I choose?"), and questions of the corpus without that word. The
large corpora tell nothing of this: in them, hardly any word is in a quarter of the memories.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_memory import AgentMemory
from bench.machine import describe_machine
from bench.retrieval import Store, read_corpus

SIZES: Final = (5, 12, 50)
FOREIGN: Final = 4
"""How many questions without the word each store is asked."""
_WORD: Final = re.compile(r"[a-z]{4,}")
_FREQUENCIES: Final = range(12, 400)
"""In how many memories of the corpus a subject may be."""


def subjects(store: Store) -> Iterator[tuple[str, str, int, list[int]]]:
    """Yield each question, a word of it and its answer, the answer, and who else has that word."""
    texts = [set(_WORD.findall(document.item["content"].lower())) for document in store.documents]
    having: defaultdict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(texts):
        for word in words:
            having[word].append(place)
    places = {next(iter(document.evidence)): n for n, document in enumerate(store.documents)}
    for query in store.queries:
        answer = next((places[each] for each in query.relevant if each in places), None)
        if answer is None:
            continue
        asked = set(_WORD.findall(query.text.lower())) & texts[answer]
        known = sorted(word for word in asked if len(having[word]) in _FREQUENCIES)
        if known:
            word = max(known, key=lambda each: len(having[each]))
            yield query.text, word, answer, [n for n in having[word] if n != answer]


def measure(store: Store, embedder: str, every: int) -> None:
    """Print the share of each kind of question that finds something, by the size of the store."""
    chance = random.Random(1)
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    asked: defaultdict[int, Counter[str]] = defaultdict(Counter)
    texts = [query.text for query in store.queries]
    for question, word, answer, others in list(subjects(store))[::every]:
        foreign = chance.sample([text for text in texts if word not in text.lower()], FOREIGN)
        kinds = {
            "own": [question],
            "subject": [f"{word} preferences", f"which {word} should I choose?"],
            "foreign": foreign,
        }
        for size in SIZES:
            if len(others) < size - 1:
                continue
            chosen = [answer, *chance.sample(others, size - 1)]
            with (
                tempfile.TemporaryDirectory() as root,
                AgentMemory("bench", root=root, embedder=embedder) as memory,
            ):
                memory.store_many(store.documents[place].item for place in chosen)
                if embedder != "none":
                    memory.migrate()
                for kind, questions in kinds.items():
                    asked[size][kind] += len(questions)
                    found[size][kind] += sum(
                        len(memory.search(text, count_accesses=False)) > 0 for text in questions
                    )
    for size in SIZES:
        shares = "   ".join(
            f"{kind} {100 * found[size][kind] / count:.1f} % of {count}"
            for kind, count in asked[size].items()
        )
        print(f"{store.source:12} {size:4} memories   {shares}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="corpora, as JSON files")
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    parser.add_argument("--every", type=int, default=1, help="only every Nth question")
    arguments = parser.parse_args()
    print(describe_machine())
    print("share of the questions that find something")
    for path in arguments.paths:
        for store in read_corpus(path):
            measure(store, arguments.embedder, arguments.every)


if __name__ == "__main__":
    main()

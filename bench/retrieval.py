"""Recall on corpora of any kind, compared with the simplest thing that could replace this library.

    python -m bench.retrieval PATH/beam.json PATH/code.json                 search by keyword
    python -m bench.retrieval PATH/beam.json --embedder wordllama           and by meaning
    python -m bench.retrieval PATH/code.json PATH/debian.json --unrelated   what has no answer
    python -m bench.retrieval PATH/beam.json --typos one                    with a misspelt word
    python -m bench.retrieval PATH/xquad.es.json --language spanish         of another language

A corpus is a list of stores: ``{"name", "documents": [{"id", "content", "session"?, "ts"?}],
"queries": [{"text", "relevant": [document ids]}]}``, ``ts`` in seconds. Every document is stored as
a memory of one agent, in its session; a document without one gets its own (``--sessions own``), or
a session without a name (``--sessions none``). Recall@k is the share of a query's relevant
documents among the first k hits, averaged over the queries that have some; nDCG@10 weighs each
place by its rank. A file in SQuAD's form (XQuAD, JSQuAD, CMRC 2018, PIAF) is a store too: its
paragraphs, and ``MOST_QUESTIONS`` of the questions about them.

With ``--unrelated`` each store is asked its own questions and those of the other corpora. Printed
is for how many nothing is found, and how many hits of each confidence are relevant if half of the
questions are its own. A LoCoMo file among the paths is two corpora, its turns and its observations.
Each conversation is also asked the next one's questions, and LoCoMo's, which name somebody, are
asked once more with "I" and "my" instead.

Baselines over the same documents: FTS5's own ``bm25()`` (English stems, no stop words, words joined
by OR), the cosine of the embedder's vectors, and both combined by rank (RRF, k = 60).
``--language`` gives ``bm25()`` the stems and stop words of that language, or ``pairs`` of
characters instead of words, as Chinese, Japanese and Thai need. Our side is not told the language.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sqlite3
import string
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import Stemmer  # type: ignore[import-not-found]

from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.registry import create_embedder
from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.storage.query_terms import STOP_WORDS, names_of
from agent_memory.text.languages import FUNCTION_WORDS
from bench.locomo import CUTOFFS, Document, Recall, read, stored
from bench.machine import describe_machine

MAX_CHARACTERS: Final = 9_900
"""The most that is stored of a document: a memory has at most 10,000 characters."""
RRF_CONSTANT: Final = 60
LOCOMO: Final = "LoCoMo"
NEXT: Final = "the next conversation"
MOST_FOREIGN: Final = 150
"""The number of each other corpus's questions that a corpus is asked, divided among its stores."""
MOST_QUESTIONS: Final = 400
"""The number of a SQuAD file's questions that are asked, spread over all."""
PAIRS: Final = "pairs"
_WORDS: Final = re.compile(r"\w+")
_LONE_BACKSLASH: Final = re.compile(r'(\\["\\/bfnrtu])|\\')


@dataclass(frozen=True)
class Query:
    """A question and the ids of the documents that answer it."""

    text: str
    relevant: set[str]


@dataclass(frozen=True)
class Store:
    """The documents of one agent, the questions about them, and when."""

    documents: list[Document]
    queries: list[Query]
    now: datetime
    source: str = ""
    """The file that it comes from: several corpora may be asked the same questions."""


@dataclass
class Row:
    """A row of the table: one way to search, over one corpus."""

    recall: Recall = field(default_factory=Recall)
    gain: float = 0.0
    empty: int = 0
    cpu_seconds: float = 0.0

    def add(self, relevant: set[str], hits: Sequence[set[str]]) -> None:
        """Count a query, and which document each of its hits in order is."""
        self.recall.add(relevant, hits)
        self.empty += not hits
        gains = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(hits[:10]) if hit & relevant)
        self.gain += gains / sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))

    def __str__(self) -> str:
        queries = max(1, self.recall.questions)
        milliseconds = 1000 * self.cpu_seconds / queries
        return (
            f"{self.recall}   nDCG@10 {100 * self.gain / queries:5.1f}"
            f"   nothing {100 * self.empty / queries:4.1f} %   CPU {milliseconds:5.1f} ms"
        )


def stores_of(
    path: Path, sessions: str = "own", typos: str = "none", most: int | None = None
) -> dict[str, list[Store]]:
    """Read the stores of a file; a LoCoMo file gives a corpus of turns and one of observations."""
    with path.open(encoding="utf-8") as file:
        beginning = file.read(1_000)
    if '"documents"' in beginning or '"paragraphs"' in beginning:
        return {path.stem: read_corpus(path, sessions, typos)[:most]}
    conversations = read(path)[:most]
    return {
        corpus: [
            Store(
                getattr(conversation, corpus),
                [Query(question.text, question.evidence) for question in conversation.questions],
                conversation.now,
                LOCOMO,
            )
            for conversation in conversations
        ]
        for corpus in ("turns", "observations")
    }


def read_corpus(path: Path, sessions: str = "own", typos: str = "none") -> list[Store]:
    """Read the stores of a corpus."""
    text = path.read_text(encoding="utf-8")
    try:
        entries = json.loads(text)
    except ValueError:  # a corpus in which not all backslashes were doubled
        entries = json.loads(_LONE_BACKSLASH.sub(lambda match: match[1] or r"\\", text))
    if isinstance(entries, dict):
        entries = [_questions_on_paragraphs(entries)]
    return [replace(_store(entry, sessions, typos), source=path.stem) for entry in entries]


def _questions_on_paragraphs(squad: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file in SQuAD's form as an entry of a corpus; a paragraph's id is its position."""
    paragraphs = [part for article in squad["data"] for part in article["paragraphs"]]
    queries = [
        {"text": question["question"], "relevant": [place]}
        for place, paragraph in enumerate(paragraphs)
        for question in paragraph["qas"]
    ]
    every = math.ceil(len(queries) / MOST_QUESTIONS)
    documents = [{"id": place, "content": part["context"]} for place, part in enumerate(paragraphs)]
    return {"documents": documents, "queries": queries[::every]}


def _store(entry: Mapping[str, Any], sessions: str, typos: str) -> Store:
    documents = []
    for place, document in enumerate(entry["documents"]):
        item: dict[str, Any] = {"content": document["content"][:MAX_CHARACTERS]}
        if document.get("session"):
            item["session_id"] = str(document["session"])
        elif sessions == "own":
            item["session_id"] = f"document {place}"
        if document.get("ts"):
            item["timestamp"] = datetime.fromtimestamp(document["ts"], UTC)
        documents.append(Document(item, {document["id"]}))
    times = [document.item["timestamp"] for document in documents if "timestamp" in document.item]
    queries = [
        Query(
            query["text"] if typos == "none" else misspelt(query["text"], typos),
            set(query["relevant"]),
        )
        for query in entry["queries"]
    ]
    return Store(documents, queries, max(times, default=datetime.now(UTC)))


Searcher = Callable[[Query], list[int]]
"""Returns the positions of the hits, best first."""


def keyword_searcher(store: Store, language: str) -> Searcher:
    """Return a search by FTS5's own measure, with the words of a language."""
    terms = _terms_in(language)
    ignored = STOP_WORDS if language == "english" else FUNCTION_WORDS.get(language, frozenset())
    stop_words = {term for word in ignored for term in terms(word)}
    database = sqlite3.connect(":memory:")
    tokenizer = "porter unicode61" if language == "english" else "unicode61"
    database.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = '{tokenizer}')")
    database.executemany(
        "INSERT INTO texts(rowid, text) VALUES (?, ?)",
        [
            (place, " ".join(terms(document.item["content"])))
            for place, document in enumerate(store.documents)
        ],
    )

    def search(query: Query) -> list[int]:
        words = list(dict.fromkeys(terms(query.text)))
        asked = [word for word in words if word not in stop_words] or words
        match = " OR ".join(f'"{word}"' for word in asked)
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 200"
        return [place for (place,) in database.execute(sql, (match,))] if asked else []

    return search


def _terms_in(language: str) -> Callable[[str], list[str]]:
    """Return a function that splits a text into terms of a language; FTS5 itself stems English."""
    if language == PAIRS:
        return lambda text: [
            pair
            for word in _WORDS.findall(text.lower())
            for pair in ([word] if word.isascii() else map("".join, pairwise(word)))
        ]
    if language == "english":
        return lambda text: _WORDS.findall(text.lower())
    stemmer = Stemmer.Stemmer(language)
    return lambda text: stemmer.stemWords(_WORDS.findall(text.lower()))


def cosine_searcher(store: Store, name: str) -> Searcher:
    """Return a search by the cosine of an embedder's vectors."""
    made = create_embedder(name, EmbedderSettings())
    assert made is not None
    embedder = CheckedEmbedder(made)
    vectors = _normalized(embedder.embed([doc.item["content"] for doc in store.documents]))

    def search(query: Query) -> list[int]:
        cosines = vectors @ _normalized(embedder.embed_queries([query.text]))[0]
        return [int(place) for place in np.argsort(-cosines)[:200]]

    return search


def _normalized(vectors: Any) -> Any:  # noqa: ANN401 - NumPy's arrays, of whatever width
    array = np.asarray(vectors, dtype=np.float64)
    return array / np.maximum(np.linalg.norm(array, axis=1, keepdims=True), 1e-12)


def joined_searcher(searchers: Sequence[Searcher]) -> Searcher:
    """Return a search that combines others by rank (RRF)."""

    def search(query: Query) -> list[int]:
        scores: Counter[int] = Counter()
        for other in searchers:
            for rank, place in enumerate(other(query), 1):
                scores[place] += 1 / (RRF_CONSTANT + rank)  # type: ignore[assignment]
        return [place for place, _ in scores.most_common()]

    return search


def misspelt(text: str, words: str) -> str:
    """Return a query with one slip in its longest word, or in all words of four letters and more.

    A slip is a letter left out, added, replaced, or swapped with the next, at any place; the word
    itself decides which, the same in every run.
    """
    sought = [word for word in _WORDS.findall(text) if word.isalpha() and len(word) >= 4]
    sought = [word for word in sought if word.lower() not in STOP_WORDS]
    if words == "one":
        sought = sorted(sought, key=len)[-1:]
    return _WORDS.sub(lambda match: _slip(match[0]) if match[0] in sought else match[0], text)


def _slip(word: str) -> str:
    chance = random.Random(word)
    place, letter = chance.randrange(len(word)), chance.choice(string.ascii_lowercase)
    before, here, after = word[:place], word[place], word[place + 1 :]
    forms = [
        before + after,
        before + letter + here + after,
        before + letter + after,
        before + after[:1] + here + after[1:],
    ]
    return chance.choice([form for form in forms if form != word])


def measure(stores: Sequence[Store], embedder: str, language: str = "english") -> dict[str, Row]:
    """Ask every query of every store, with each kind of search."""
    rows: dict[str, Row] = {}
    for store in stores:
        for name, search in _searchers(store, embedder, language):
            row = rows.setdefault(name, Row())
            for query in store.queries:
                if not query.relevant:
                    continue
                started = time.process_time()
                hits = search(query)
                row.cpu_seconds += time.process_time() - started
                best = hits[: max(CUTOFFS)]
                row.add(query.relevant, [store.documents[place].evidence for place in best])
    return rows


@dataclass
class Abstention:
    """A corpus's answers to its own questions and to those of others, whose names are the keys."""

    asked: Counter[str] = field(default_factory=Counter)
    empty: Counter[str] = field(default_factory=Counter)
    hits: list[tuple[str, float, bool]] = field(default_factory=list)

    def add(self, source: str, query: Query, hits: Sequence[tuple[float, set[str]]]) -> None:
        """Count a question of a corpus: the confidence of each hit, and which documents it is."""
        self.asked[source] += 1
        self.empty[source] += not hits
        self.hits += [(source, confidence, bool(ids & query.relevant)) for confidence, ids in hits]

    def shares(self) -> str:
        """Return the share of each corpus's questions for which nothing was found."""
        return "   ".join(
            f"{source} {100 * self.empty[source] / asked:.1f} % of {asked}"
            for source, asked in self.asked.items()
        )

    def curve(self, own: str) -> str:
        """Return the share of relevant hits by confidence, if half of the questions are its own."""
        own_asked = self.asked[own] + self.asked[f"{own}, I"]
        others = sum(self.asked.values()) - own_asked
        weights = {True: 1 / max(1, own_asked), False: 1 / max(1, others)}
        bins = []
        for low in range(0, 10, 2):
            part = [
                (weights[source in (own, f"{own}, I")], right)
                for source, confidence, right in self.hits
                if low <= 10 * confidence < low + 2
            ]
            if part:
                share = sum(weight for weight, right in part if right) / sum(w for w, _ in part)
                bins.append(f"{low / 10:.1f}+: {share:.2f} of {len(part)}")
        return "   ".join(bins)


def in_first_person(text: str) -> str:
    """Return a question with "I" and "my" in place of the names in it."""
    names = "|".join(map(re.escape, sorted(names_of(text), key=len, reverse=True)))
    named = rf"\b(?:{names})(?:\s+(?:{names}))*(['\u2019]s)?(?!\w)"
    return re.sub(named, lambda match: "my" if match[1] else "I", text) if names else text


def measure_abstention(
    own: str, corpora: Mapping[str, Sequence[Store]], embedder: str
) -> Abstention:
    """Ask every store of a corpus its own questions, and some of each other corpus."""
    counted = Abstention()
    stores = corpora[own]
    for number, store in enumerate(stores):
        answerable = [query for query in store.queries if query.relevant]
        asked = {own: answerable, **_foreign(store, number, stores, corpora)}
        named = [own, LOCOMO, NEXT] if store.source == LOCOMO else [LOCOMO]
        for source in [source for source in named if source in asked]:
            asked[f"{source}, I"] = [
                Query(text, query.relevant)
                for query in asked[source]
                if (text := in_first_person(query.text)) != query.text
            ]
        with stored(store.documents, embedder, {}) as (memory, ids):
            places = {memory_id: place for place, memory_id in enumerate(ids)}
            for source, queries in asked.items():
                for query in queries:
                    found = memory.search(query.text, 10, now=store.now, count_accesses=False)
                    evidence = [
                        (hit.confidence, store.documents[places[hit.memory.id]].evidence)
                        for hit in found
                    ]
                    counted.add(source, query, evidence)
    return counted


def _foreign(
    store: Store, number: int, stores: Sequence[Store], corpora: Mapping[str, Sequence[Store]]
) -> dict[str, list[Query]]:
    """Return the questions of the other files, by file, and of LoCoMo's next conversation.

    The store gets its part of each, spread over all. They have no answer here.
    """
    questions = {
        others[0].source: [query for other in others for query in other.queries if query.relevant]
        for others in corpora.values()
        if others[0].source != store.source
    }
    most = MOST_FOREIGN // len(stores)
    parts = {
        source: queries[number :: len(stores)][:: max(1, len(queries) // MOST_FOREIGN)][:most]
        for source, queries in questions.items()
    }
    if store.source == LOCOMO and len(stores) > 1:
        queries = [query for query in stores[(number + 1) % len(stores)].queries if query.relevant]
        parts[NEXT] = queries[:: max(1, len(queries) // most)][:most]
    return {
        source: [Query(query.text, set()) for query in queries] for source, queries in parts.items()
    }


def _searchers(store: Store, embedder: str, language: str) -> Iterator[tuple[str, Searcher]]:
    by_keyword = keyword_searcher(store, language)
    yield "FTS5 bm25()", by_keyword
    if embedder != "none":
        by_cosine = cosine_searcher(store, embedder)
        yield "cosine", by_cosine
        yield "bm25 and cosine, RRF", joined_searcher([by_keyword, by_cosine])
    with stored(store.documents, embedder, {}) as (memory, ids):
        places = {memory_id: place for place, memory_id in enumerate(ids)}

        def search(query: Query, threshold: float | None = None) -> list[int]:
            hits = memory.search(
                query.text,
                limit=max(CUTOFFS),
                now=store.now,
                count_accesses=False,
                similarity_threshold=threshold,
            )
            return [places[hit.memory.id] for hit in hits]

        yield "agent-memory", search
        yield "the same without floor", partial(search, threshold=0.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="corpora, as JSON files")
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    parser.add_argument("--sessions", choices=["own", "none"], default="own")
    parser.add_argument(
        "--typos", choices=["none", "one", "all"], default="none", help="misspelt words of a query"
    )
    parser.add_argument(
        "--language",
        default="english",
        choices=[PAIRS, *Stemmer.algorithms()],
        help="language of bm25()'s words",
    )
    parser.add_argument("--stores", type=int, help="only the first N of each corpus")
    parser.add_argument("--unrelated", action="store_true", help="ask what has no answer there")
    arguments = parser.parse_args()
    print(describe_machine())
    paths: list[Path] = arguments.paths
    corpora = {
        corpus: stores
        for path in paths
        for corpus, stores in stores_of(
            path, arguments.sessions, arguments.typos, arguments.stores
        ).items()
    }
    if arguments.unrelated:
        print(f"embedder: {arguments.embedder}; questions of each corpus in which nothing is found")
        for name in corpora:
            counted = measure_abstention(name, corpora, arguments.embedder)
            print(f"{name:12} {counted.shares()}\n{'':12} relevant, by confidence:")
            print(f"{'':12} {counted.curve(name)}", flush=True)
        return
    print(f"embedder: {arguments.embedder}; recall@5 / @10 / @25, percent")
    print(f"misspelt words of a query: {arguments.typos}")
    for corpus, stores in corpora.items():
        for name, row in measure(stores, arguments.embedder, arguments.language).items():
            print(f"{corpus:12} {name:22} {row}   {row.recall.questions} queries", flush=True)


if __name__ == "__main__":
    main()

"""What each part of the ranking is worth, corpus by corpus: stages, ablation, validation.

    python -m bench.locomo_parts PATH/dev.json                        LoCoMo, by keyword
    python -m bench.locomo_parts PATH/dev.json PATH/beam.json         and another corpus
    python -m bench.locomo_parts PATH/dev.json --embedder wordllama   and by meaning
    python -m bench.locomo_parts PATH/dev.json --cross-validate       are the weights any good?

The candidates of each question are gathered once, as in a search, and then ranked many times: by
words alone and with one more part of the evidence at a time, with one part removed from all of
them, and with each weight halved and doubled. Recall is that of ``bench.locomo``, without counting
accesses, and before the floor below which a search returns nothing.

To cross-validate, each file is left out in turn, or each conversation if there is only one file.
For each of ``Weights`` the best multiple (0, a half, 1, 2) for the others is chosen, and the
left-out part is ranked with it. If that is no better than the shipped weights, they are not
overfitted to the data they came from.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_memory.api.memory import AgentMemory
from agent_memory.models.search import SearchFilters
from agent_memory.services.search.candidates import Candidates, gather
from agent_memory.services.search.ranking import RankingRates, rank
from agent_memory.services.search.request import SearchRequest
from agent_memory.services.search.scoring import WEIGHTS, Weights
from agent_memory.services.search.signals import QueryProfile
from agent_memory.services.search.terms import with_terms
from agent_memory.storage.filters import NOT_ARCHIVED
from bench.engine import engine_of
from bench.locomo import CUTOFFS, Recall, stored
from bench.machine import describe_machine
from bench.retrieval import Query, Store, stores_of

STILL: Final = RankingRates(decay=0.0, boost=0.0)
PARTS: Final = Weights._fields
NOTHING: Final = Weights(**dict.fromkeys(PARTS, 0.0))
MULTIPLES: Final = (0.0, 0.5, 2.0)


@dataclass(frozen=True)
class Asked:
    """A question with its candidates, and the document of each.

    ``source`` is the file that it comes from, ``number`` that of its store in the file.
    """

    source: str
    number: int
    question: Query
    gathered: Candidates
    finds: dict[int, set[str]]


@dataclass(frozen=True)
class Variant:
    """A way to rank: the weights, and whether by meaning too."""

    name: str
    weights: Weights
    by_meaning: bool = True

    def query(self, asked: Asked) -> QueryProfile:
        """Return what this way of ranking knows about a question."""
        query = asked.gathered.query
        return query if self.by_meaning else query._replace(cosine_scale=None)


def ask(source: str, stores: Sequence[Store], embedder: str) -> Iterator[Asked]:
    """Gather the candidates of every question that has an answer."""
    for number, store in enumerate(stores):
        with stored(store.documents, embedder, {}) as (memory, ids):
            places = {memory_id: place for place, memory_id in enumerate(ids)}
            for question in store.queries:
                if question.relevant:
                    gathered, by_row_id = _gather(memory, question, store)
                    finds = {
                        row_id: store.documents[places[memory_id]].evidence
                        for row_id, memory_id in by_row_id.items()
                    }
                    yield Asked(source, number, question, gathered, finds)


def _gather(
    memory: AgentMemory, question: Query, store: Store
) -> tuple[Candidates, dict[int, str]]:
    """Gather as a search does, and also return the candidates' ids by row."""
    engine = engine_of(memory)
    vector = memory._embedding.of_query(question.text, memory._store.vectors.state()).vector
    with engine.read():
        request = SearchRequest(
            query=question.text,
            filters=SearchFilters(),
            limit=max(CUTOFFS),
            now=store.now,
            passing=NOT_ARCHIVED,
            vector=None if vector is None else engine.vectors.center(vector),
        )
        gathered = gather(engine, with_terms(engine, request))
        row_ids = {candidate.row_id for candidate in gathered.candidates}
        rows = engine.database.rows("SELECT seq, id FROM memories")
    return gathered, {row_id: memory_id for row_id, memory_id in rows if row_id in row_ids}


def recall_of(questions: Sequence[Asked], variant: Variant) -> Recall:
    """Rank the candidates of all questions in one way."""
    recall = Recall()
    for asked in questions:
        ranking = rank(asked.gathered.candidates, variant.query(asked), STILL, variant.weights)
        hits = [asked.finds[hit.row_id] for hit in ranking.order[: max(CUTOFFS)]]
        recall.add(asked.question.relevant, hits)
    return recall


def stages(*, by_meaning: bool) -> list[Variant]:
    """Return ways of ranking, each with one more part."""
    found = [Variant("own words (BM25)", NOTHING, by_meaning=False)]
    if by_meaning:
        found.append(Variant("and own meaning", NOTHING))
    weights = NOTHING
    for part in PARTS:
        if by_meaning or "meaning" not in part:
            weights = weights._replace(**{part: getattr(WEIGHTS, part)})
            found.append(Variant(f"and {part.replace('_', ' ')}", weights, by_meaning=by_meaning))
    return found


def ablations(*, by_meaning: bool) -> list[Variant]:
    """Return ways of ranking, each without one part."""
    found = [Variant("everything", WEIGHTS)]
    if by_meaning:
        found.append(Variant("without meaning at all", WEIGHTS, by_meaning=False))
    for part in PARTS:
        if by_meaning or "meaning" not in part:
            name = f"without {part.replace('_', ' ')}"
            found.append(Variant(name, WEIGHTS._replace(**{part: 0.0})))
    return found


def mean(recall: Recall) -> float:
    """Return the mean of recall at all cutoffs."""
    return sum(recall.percent()) / len(CUTOFFS)


def show_parts(corpus: str, questions: Sequence[Asked], *, by_meaning: bool) -> None:
    """Print what each part adds, what leaving it out costs, and in how many stores."""
    for variant in stages(by_meaning=by_meaning):
        print(f"{corpus:13} {variant.name:30} {recall_of(questions, variant)}", flush=True)
    numbers = sorted({asked.number for asked in questions})
    split = [[asked for asked in questions if asked.number == number] for number in numbers]
    whole: list[float] = []
    for variant in ablations(by_meaning=by_meaning):
        each = [mean(recall_of(part, variant)) for part in split]
        whole = whole or each
        worse = sum(now < before for now, before in zip(each, whole, strict=True))
        all_of_them = recall_of(questions, variant)
        note = f"   worse in {worse} of {len(split)}" if each is not whole else ""
        print(f"{corpus:13} {variant.name:30} {all_of_them}{note}", flush=True)


def cross_validate(by_corpus: dict[str, list[Asked]]) -> None:
    """Fit the weights without each file or conversation in turn, and rank that one with them."""
    tried = {(part, multiple): _times(part, multiple) for part in PARTS for multiple in MULTIPLES}
    units = _units(by_corpus)
    scores = {
        key: {name: _score(unit, Variant("", weights)) for name, unit in units.items()}
        for key, weights in {**tried, ("", 1.0): WEIGHTS}.items()
    }
    for left_out, unit in units.items():
        fitted = WEIGHTS
        for part in PARTS:
            best = max(
                [("", 1.0), *((part, multiple) for multiple in MULTIPLES)],
                key=lambda key: sum(scores[key][name] for name in units if name != left_out),
            )
            if best[0]:
                fitted = fitted._replace(**{part: getattr(tried[best], part)})
        shipped, refitted = scores["", 1.0][left_out], _score(unit, Variant("", fitted))
        print(
            f"{left_out}: mean recall {shipped:.1f} as shipped,"
            f" {refitted:.1f} with weights fitted to the others",
            flush=True,
        )


def _units(by_corpus: dict[str, list[Asked]]) -> dict[str, list[list[Asked]]]:
    """Return the units to leave out in turn: questions of each file, or of each conversation."""
    every = [asked for questions in by_corpus.values() for asked in questions]
    has_files = len({asked.source for asked in every}) > 1

    def unit_of(asked: Asked) -> str:
        return asked.source if has_files else f"conversation {asked.number + 1}"

    return {
        name: [[asked for asked in part if unit_of(asked) == name] for part in by_corpus.values()]
        for name in dict.fromkeys(unit_of(asked) for asked in every)
    }


def _times(part: str, multiple: float) -> Weights:
    return WEIGHTS._replace(**{part: multiple * getattr(WEIGHTS, part)})


def _score(unit: Sequence[Sequence[Asked]], variant: Variant) -> float:
    """Return the mean recall over the corpora of a unit."""
    recalls = [mean(recall_of(questions, variant)) for questions in unit if questions]
    return sum(recalls) / len(recalls)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="locomo10.json, beam.json or others")
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    parser.add_argument("--stores", type=int, help="only the first N of each file")
    parser.add_argument("--cross-validate", action="store_true", help="refit the weights")
    arguments = parser.parse_args()
    print(describe_machine())
    print(f"embedder: {arguments.embedder}; recall@5 / @10 / @25, percent")
    by_corpus = {
        corpus: list(ask(path.stem, stores, arguments.embedder))
        for path in arguments.paths
        for corpus, stores in stores_of(path, most=arguments.stores).items()
    }
    if arguments.cross_validate:
        cross_validate(by_corpus)
        return
    for corpus, questions in by_corpus.items():
        show_parts(corpus, questions, by_meaning=arguments.embedder != "none")


if __name__ == "__main__":
    main()

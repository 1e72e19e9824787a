"""Finding and mending what is wrong with embeddings and their indexes; building an index."""

from __future__ import annotations

from typing import Final

from agent_memory.errors import StorageError
from agent_memory.models.agent import Problem
from agent_memory.models.embedding import EmbeddingModel
from agent_memory.storage.quantization import code_of
from agent_memory.storage.sqlite import vector_index
from agent_memory.storage.sqlite.connection import Database, further
from agent_memory.storage.sqlite.tables import embeddings as vectors

_CHUNK: Final = 1_000
"""Vectors that are read at a time."""


def build_index(database: Database, model: EmbeddingModel) -> None:
    """Build the index of a model from its vectors. Must run inside ``write()``."""
    vector_index.create(database, model.model_id, model.dimensions)
    after = 0
    while rows := vectors.to_index(database, model, after=after, limit=_CHUNK):
        vector_index.put(database, model.model_id, rows)
        after = further(rows[-1][0], than=after)
    vectors.mark_indexed(database, model.model_id, is_indexed=True)


def find_problems(database: Database) -> list[Problem]:
    """Read every vector, and compare the indexes with them. Must run inside a transaction."""
    models = vectors.models(database)
    problems = [problem for model in models for problem in problems_of(database, model)]
    for model in models:
        forgotten = vectors.count_forgotten(database, model.model_id)
        if model.state == "active" and forgotten:
            detail = f"{forgotten} memories have no embedding and do not wait for one"
            problems.append(Problem(kind="missing_embedding", detail=detail))
    return problems + [
        Problem(kind="stale_vector_index", detail=f"the table {name} belongs to no model")
        for name in _leftovers(database, models)
    ]


def problems_of(database: Database, model: EmbeddingModel) -> list[Problem]:
    """Read every vector of a model, and compare its index with them."""
    problems = [
        Problem(kind="wrong_embedding", detail=fault)
        for _, fault in vectors.faults(database, model)
    ]
    if model.is_indexed and database.load_vectors():
        try:
            problems += _compare_index(database, model)
        except StorageError as error:  # sqlite-vec has errors of its own for a damaged table
            detail = f"{vector_index.table(model.model_id)} cannot be read: {error}"
            problems.append(Problem(kind="stale_vector_index", detail=detail))
    return problems


def mend(database: Database, model: EmbeddingModel) -> None:
    """Drop the wrong vectors of a model and build its index anew. Must run in ``write()``."""
    vectors.drop(database, model.model_id, [seq for seq, _ in vectors.faults(database, model)])
    if database.load_vectors():
        build_index(database, model)


def _compare_index(database: Database, model: EmbeddingModel) -> list[Problem]:
    name = vector_index.table(model.model_id)
    if not vector_index.exists(database, model.model_id):
        return [Problem(kind="stale_vector_index", detail=f"the table {name} is missing")]
    codes = vector_index.codes(database, model.model_id)
    wrong = after = 0
    while rows := vectors.to_index(database, model, after=after, limit=_CHUNK):
        wrong += sum(codes.pop(seq, None) != code_of(data) for seq, data in rows)
        after = further(rows[-1][0], than=after)
    # What waits to be looked at may still be there.
    wrong += len(codes.keys() - vectors.all_queued(database))
    detail = f"{wrong} rows of {name} do not match the embeddings"
    return [Problem(kind="stale_vector_index", detail=detail)] if wrong else []


def _leftovers(database: Database, models: list[EmbeddingModel]) -> list[str]:
    known = {vector_index.table(model.model_id) for model in models}
    return [name for name in vector_index.tables(database) if name not in known]


def repair(database: Database) -> None:
    """Drop wrong vectors, queue what has none, build the indexes anew. Must run in ``write()``."""
    models = vectors.models(database)
    for model in models:
        mend(database, model)
    if models:
        vectors.queue_missing(database, models[0].model_id)
    if database.load_vectors():
        for name in _leftovers(database, models):
            vector_index.drop(database, name)

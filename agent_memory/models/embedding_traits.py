"""The properties of embedding models: those that A lists, and those that were measured."""

from typing import Final, TypedDict


class EmbeddingModelSpec(TypedDict):
    """What A lists of an embedding model: components of a vector, dollars, tokens per text."""

    dimensions: int
    cost_per_1k_tokens: float
    max_tokens: int


EMBEDDING_MODELS: Final[dict[str, EmbeddingModelSpec]] = {
    "text-embedding-3-small": {
        "dimensions": 1536,
        "cost_per_1k_tokens": 0.00002,
        "max_tokens": 8191,
    },
    "text-embedding-3-large": {
        "dimensions": 3072,
        "cost_per_1k_tokens": 0.00013,
        "max_tokens": 8191,
    },
}


class ModelTraits(TypedDict):
    """What was measured of an embedding model.

    ``similarity_floor`` is the cosine, measured from the mean of a store, below which two texts are
    unrelated: for nine of ten questions unrelated to a store, no memory is above it.
    ``vector_weight`` is how much a cosine of 0.5 counts in a search, where the words count 1;
    ``doubt`` is the share of a short memory's words that a far meaning takes away when it is judged
    whether there is an answer at all; ``texts_per_second`` is roughly how many short texts it
    embeds.

    A weight belongs to the model, not to the store. The spread of the cosines of a store's own
    memories was tried as the unit: it is what distinguishes E5 from MiniLM on one corpus (0.148 and
    0.178 on LoCoMo, 0.080 and 0.097 on packages in German, with the weight following its cube), but
    from corpus to corpus it would raise the weight of both sixfold where they are best left alone.
    """

    similarity_floor: float
    vector_weight: float
    doubt: float
    texts_per_second: int


# Its vectors are a mean of words, so it is far wherever words are missing: with a doubt of 0.3
# 4.7 percent of the questions to code found nothing, for 2.0.
_WORDLLAMA: Final[ModelTraits] = {
    "similarity_floor": 0.4,
    "vector_weight": 1.1,
    "doubt": 0.0,
    "texts_per_second": 3_000,
}
# With each of seven corpora left out in turn, the others choose 1.4 (without LoCoMo 2.0); but more
# than 1.1 costs LoCoMo's observations over half a point. With its doubt 87 percent of questions to
# another store find nothing for 83, with "I" and "my" 80 for 69; a corpus loses 1.3 percent of its
# own questions at most, for 0.7. With 0.6 it is 1 and 2 more, but LoCoMo loses more.
_MINILM: Final[ModelTraits] = {
    "similarity_floor": 0.4,
    "vector_weight": 1.1,
    "doubt": 0.5,
    "texts_per_second": 100,
}
# Cautious guesses, not measured: that needs a key. The rate is A's, 5 s per batch of 100.
_OPENAI: Final[ModelTraits] = {
    "similarity_floor": 0.4,
    "vector_weight": 0.8,
    "doubt": 0.0,
    "texts_per_second": 20,
}
MODEL_TRAITS: Final[dict[str, ModelTraits]] = {
    "wordllama-l2-supercat-256": _WORDLLAMA,
    "wordllama-l2-supercat-128": _WORDLLAMA,
    "wordllama-l2-supercat-64": _WORDLLAMA,
    "all-MiniLM-L6-v2": _MINILM,
    "all-MiniLM-L6-v2-int8": _MINILM,
    # With each of seven corpora left out in turn, the others choose 3.0; 1.6 to 3.0 are within 1.2.
    "multilingual-e5-small-q4": {
        "similarity_floor": 0.325,
        "vector_weight": 2.4,
        "doubt": 0.0,
        "texts_per_second": 30,
    },
    "text-embedding-3-small": _OPENAI,
    "text-embedding-3-large": _OPENAI,
}

DEFAULT_VECTOR_WEIGHT: Final = 0.8
"""The weight of an unknown model: less than that of any that was measured."""
DEFAULT_SIMILARITY_FLOOR: Final = 0.4
"""The floor of an unknown model: that of MiniLM and wordllama."""

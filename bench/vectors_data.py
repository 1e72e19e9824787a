"""Vectors like those of embedding models, and questions near them, generated from a seed.

An index of vectors is easy to flatter: uniformly random ones have no neighbours to find, and well
separated clusters find themselves. Vectors of real texts are neither, and these imitate them in
what decides how hard a search is:

* *A common direction.* Embeddings lie in a cone: two unrelated texts have a cosine well above 0
  (here about 0.15), so most sign bits say little.
* *A power-law spectrum.* A few directions hold most of the variance: the standard deviations fall
  like ``rank ** -0.5``. The directions are not the axes (thanks to a random rotation), as no
  model has its variance sorted by component.
* *Clusters* of unequal sizes, whose members share half of their variance: texts about one topic
  are near one another (cosine about 0.6), without a gap around the topic.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_MEAN_SHARE: Final = 0.15  # of a vector's squared length: common to all
_TOPIC_SHARE: Final = 0.5  # of the rest: common to the vectors of one cluster
_QUESTION_NOISE: Final = 0.6  # length of what a question adds to a vector of length 1
_NOISE_PARTS: Final = 8
_CHUNK: Final = 4096


def embedding_like(
    count: int, dimensions: int, *, seed: int = 1, clusters: int = 300
) -> NDArray[np.float32]:
    """Return ``count`` rows of length 1 with the properties that the module describes.

    The same arguments give the same rows on the same machine. Besides the result, this needs memory
    for two squares of ``dimensions`` and some chunks of 4,096 rows.
    """
    random = np.random.default_rng(seed)
    spread = np.arange(1, dimensions + 1, dtype=np.float32) ** -0.5
    spread *= np.sqrt((1 - _MEAN_SHARE) / np.sum(spread**2))
    rotation = _rotation(dimensions, random)
    mean = _unit(random.standard_normal((1, dimensions), dtype=np.float32))
    mean *= np.float32(np.sqrt(_MEAN_SHARE))
    topics = random.standard_normal((clusters, dimensions), dtype=np.float32)
    topics *= np.float32(np.sqrt(_TOPIC_SHARE))
    sizes = 1 / np.arange(10, clusters + 10)  # the largest is several times the mean, as topics are
    members = random.choice(clusters, size=count, p=sizes / sizes.sum())

    rows = np.empty((count, dimensions), dtype=np.float32)
    for start in range(0, count, _CHUNK):
        chunk = rows[start : start + _CHUNK]
        noise = random.standard_normal(chunk.shape, dtype=np.float32)
        noise *= np.float32(np.sqrt(1 - _TOPIC_SHARE))
        noise += topics[members[start : start + _CHUNK]]
        noise *= spread
        np.matmul(noise, rotation, out=chunk)
        chunk += mean
        _unit(chunk)
    return rows


def queries_near(vectors: Vectors, count: int, *, seed: int = 2) -> Vectors:
    """Return ``count`` rows of length 1, each near a random row (cosine about 0.85), none equal.

    A question is about what a text is about, in other words: it differs from the text in the
    directions in which texts differ. So the added part is made of differences between rows; noise
    that is the same in all directions would not move a vector along the few that matter.
    """
    random = np.random.default_rng(seed)
    noise = np.zeros((count, vectors.shape[1]), dtype=np.float32)
    for _ in range(_NOISE_PARTS):
        one, other = random.integers(len(vectors), size=(2, count))
        noise += vectors[one] - vectors[other]
    return _unit(
        vectors[random.integers(len(vectors), size=count)] + _QUESTION_NOISE * _unit(noise)
    )


def _rotation(dimensions: int, random: np.random.Generator) -> Vectors:
    square = random.standard_normal((dimensions, dimensions), dtype=np.float32)
    return np.linalg.qr(square)[0]


def _unit(rows: Vectors) -> Vectors:
    """Scale each row to length 1, in place, and return them."""
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows

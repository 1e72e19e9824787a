"""The request of a search: one object, passed from the verb down to the tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from agent_memory.services.search.ranking import RankingRates
from agent_memory.storage.filters import EVERYTHING, Filter
from agent_memory.storage.records import QueryVector, Term
from agent_memory.text.dates import Span

if TYPE_CHECKING:
    from agent_memory.models.excerpt import SearchFilterValues
    from agent_memory.models.owner import Owner
    from agent_memory.models.protocols import LanguageModel, Reranker
    from agent_memory.models.search import SearchFilters
else:  # names in quotes would be compiled: the first takes a millisecond
    LanguageModel = Owner = Reranker = SearchFilters = SearchFilterValues = object


class OwnWords(NamedTuple):
    """The rows of each query term among one owner's memories, and the number of those memories.

    They are looked up once per search, however often its filters change.
    """

    postings: Sequence[Sequence[int]]
    corpus_size: int


class SearchRequest(NamedTuple):
    """What to search for, and how.

    Set by the caller:

    - ``filters``: without them, all memories are searched except archived ones.
    - ``threshold``, ``min_confidence``: the minimum similarity and confidence (0 to 1), if any.
    - ``has_no_floor``: results below the floor are accepted too.
    - ``include_weak``: if false, only results that pass the gate are accepted.
    - ``now``: the moment from which ages are counted, if it is not the present.
    - ``explain``: add the parts of the scores to the results.
    - ``hops``, ``language_model``, ``reranker``: 2 hops follow what the first hits lead to, the
      model is asked for other wordings, and the reranker decides the final order; see
      ``refinement``.

    Added by the service and the pipeline:

    - ``passing``: the filters in the form that an engine takes.
    - ``scope``: the part of them that says whose memories may be seen at all, in near misses too.
    - ``owner``: the user or run of the scope, unless nobody else has memories. The rarity of words,
      the neighbours of a memory and the centre of the vectors then come from this owner's memories.
    - ``own_words``: the rows of the query's words among the owner's memories.
    - ``uncounted``: accesses that are not written yet, by row id.
    - ``vector``: the query's vector, if the search is by meaning too.
    - ``terms``, ``is_english``: the query's words, and whether they are English.
    - ``dates``: the days that the query mentions.
    """

    query: str
    filters: SearchFilters | SearchFilterValues | None
    limit: int
    threshold: float | None = None
    has_no_floor: bool = False
    min_confidence: float | None = None
    include_weak: bool = True
    rates: RankingRates = RankingRates()
    now: datetime | None = None
    explain: bool = False
    hops: int = 1
    language_model: LanguageModel | None = None
    reranker: Reranker | None = None
    passing: Filter = EVERYTHING
    scope: Filter = EVERYTHING
    owner: Owner | None = None
    own_words: OwnWords | None = None
    uncounted: Mapping[int, int] = MappingProxyType({})
    vector: QueryVector | None = None
    terms: Sequence[Term] = ()
    is_english: bool = True
    dates: Sequence[Span] = ()

    @property
    def is_plain(self) -> bool:
        """Return whether the request needs only a single search."""
        return self.hops == 1 and self.language_model is None and self.reranker is None

    @property
    def user_id(self) -> str | None:
        """Return the user to whose memories the search is limited, if any."""
        return None if self.filters is None else self.filters.user_id

    @property
    def run_id(self) -> str | None:
        """Return the run to whose memories the search is limited, if any."""
        return None if self.filters is None else self.filters.run_id

    @property
    def moment(self) -> datetime:
        """Return the moment from which ages are counted, as the service has set it."""
        assert self.now is not None  # noqa: S101
        return self.now


class QueryMeaning(NamedTuple):
    """The vector of a query or why it could not be made, and how long that took."""

    vector: QueryVector | None = None
    degraded: Sequence[str] = ()
    milliseconds: float = 0.0

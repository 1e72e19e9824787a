"""The request of a search: one object, from the verb down to the tables."""

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
    """The words of a query in one owner's memories: for each term the rows, and how many all are.

    They are looked up once a search, however often its filters change.
    """

    postings: Sequence[Sequence[int]]
    corpus_size: int


class SearchRequest(NamedTuple):
    """What is searched for, and how.

    Without ``filters`` every memory is searched that is not archived.
    ``threshold`` is the least similarity and ``min_confidence`` the least confidence (0 to 1) that
    is accepted, if any; with ``has_no_floor`` nothing else is too little. Without ``include_weak``
    only what passes the gate is accepted. ``now`` is the moment that ages are counted from, if it
    is not the present; ``explain`` asks for the parts of the scores. ``hops`` of 2 follow what the
    first hits lead to, ``language_model`` is asked for other wordings, and ``reranker`` has the
    last word on the order: see ``refinement``.

    The service and the pipeline add the rest: ``passing`` are the filters as an engine takes them,
    ``scope`` those of them that say whose memories may be seen at all, in near misses too;
    ``owner`` is the user or run of it, unless nobody else has memories: how rare a word is, what
    stands beside a memory and where the middle of the vectors is, is then told of this owner's;
    ``own_words`` are those of the owner; ``uncounted`` has accesses that are not written yet, by
    row id; ``vector`` is the query's, if the search is by meaning too; ``terms`` are the query's
    words, ``is_english`` tells whether they are English, and ``dates`` are the days that it speaks
    of.
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
        """Return whether one look is all that is asked for."""
        return self.hops == 1 and self.language_model is None and self.reranker is None

    @property
    def user_id(self) -> str | None:
        """Return the user whose memories alone are searched, if any."""
        return None if self.filters is None else self.filters.user_id

    @property
    def run_id(self) -> str | None:
        """Return the run whose memories alone are searched, if any."""
        return None if self.filters is None else self.filters.run_id

    @property
    def moment(self) -> datetime:
        """Return the moment that ages are counted from; the service has set it."""
        assert self.now is not None  # noqa: S101
        return self.now


class QueryMeaning(NamedTuple):
    """The vector of a query, if it could be made; why not; and how long that took."""

    vector: QueryVector | None = None
    degraded: Sequence[str] = ()
    milliseconds: float = 0.0

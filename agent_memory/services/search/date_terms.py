"""The dates and times of a query, and the other forms in which a memory may have them."""

from collections import defaultdict
from typing import Final

from agent_memory.services.search.request import SearchRequest
from agent_memory.services.search.vocabulary import Vocabulary
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Alternative
from agent_memory.text.dates import date_spans, other_forms
from agent_memory.text.times import times_in

OTHER_TIME: Final = 0.75
"""The weight of a time in another form: "3:30" may be at night, or in the afternoon."""


def with_dates(engine: Engine, request: SearchRequest) -> SearchRequest:
    """Add its query's dates to a request, and their other forms in the store to its terms.

    A query with "12 March" also means "March 12th" and "2026-03-12"; one with "2:30 pm" also means
    "14:30".
    """
    dates = date_spans(request.query, request.moment.date())
    times = times_in(request.query)
    if not (dates or times):
        return request._replace(dates=())
    forms_of: dict[str, list[str]] = defaultdict(list)
    for span in dates:
        for word, forms in other_forms(span).items():
            forms_of[word] += forms
    for time in times:
        own = [" ".join(time.words)] if len(time.words) > 1 else []
        for word in time.words:
            forms_of[word] += [*own, *time.others]
    known = _known(engine, request, {form for forms in forms_of.values() for form in forms})
    for form in {form for time in times for form in time.others} & known.keys():
        known[form] = known[form]._replace(weight=OTHER_TIME)
    terms = [
        term._replace(
            alternatives=(
                *term.alternatives,
                *(known[form] for form in forms_of.get(term.written.lower(), ()) if form in known),
            )
        )
        for term in request.terms
    ]
    return request._replace(terms=terms, dates=dates)


def _known(engine: Engine, request: SearchRequest, forms: set[str]) -> dict[str, Alternative]:
    """Return those of some forms that occur in a memory."""
    vocabulary = Vocabulary(engine, request)
    words = sorted({word for form in forms for word in form.split()})
    tokens = dict(zip(words, vocabulary.tokens(words), strict=True))
    counts = vocabulary.counts(set(tokens.values()), ())
    known: dict[str, Alternative] = {}
    for form in forms:
        parts = tuple(tokens[word] for word in form.split())
        alternative = Alternative(parts, form, is_phrase=len(parts) > 1)
        if counts.keys() >= set(parts) and vocabulary.has(alternative):
            known[form] = alternative
    return known

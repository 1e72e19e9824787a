"""Adjacent words of a query, joined as the store may have them: "log in", "e-mail"."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from agent_memory.storage.query_terms import MAX_QUERY_CHARACTERS
from agent_memory.storage.records import Term
from agent_memory.text.truncation import both_ends
from agent_memory.text.word_forms import APOSTROPHES, BEFORE_APOSTROPHES, HYPHENS, folded

LONGEST: Final = 64
"""Maximum letters of a word for which alternatives are considered: German's longest has 63. A word
of 100,000 letters has 5 million neighbours, and a search for it took 24 s."""
_MOST_JOINED: Final = 4
"""Maximum number of adjacent words of a query that may be a single one in the store."""
_MOST_LINKED: Final = 8
"""The same without spaces between them, or for groups of digits: identifiers, telephone numbers."""
_SHORTEST_NUMBER: Final = 7
"""Minimum digits of a number that people group as they like: of telephones, customers, policies."""

_WORDS: Final = re.compile(r"[^\W_]+")
_LINKS: Final = frozenset(f"{HYPHENS}{APOSTROPHES}_./&+")
"""The characters between two words that are written as one: "e-mail", "to_string", "O'Brien"."""
_BETWEEN_THOUSANDS: Final = frozenset(",.'_ \u2019\u00a0\u202f")
_BETWEEN_DIGITS: Final = _BETWEEN_THOUSANDS | frozenset("-/") | {") ", " (", ") ("}


class _Place(NamedTuple):
    """A word of a query, and the text between it and the one before."""

    word: str
    gap: str


def runs_of(
    query: str, terms: Iterable[Term], variable: Iterable[Term], *, is_english: bool
) -> Mapping[str, Sequence[str]]:
    """Return the joined words of a query, each with the terms that it is made of.

    They are adjacent words, "log in" and "max_retry_count", terms with stop words between them, and
    numbers in groups: "25 MiB", "3,000".
    """
    places = _places(both_ends(query, MAX_QUERY_CHARACTERS))
    words = [place.word for place in places]
    term_of = {folded(term.written): term.word for term in terms}
    forms = [folded(term.written) for term in variable]
    runs: dict[str, Sequence[str]] = {}
    for first, second in pairwise(forms):
        runs[first + second] = [term_of[first], term_of[second]]
    joinable = [
        *_of_words(words, forms, term_of),
        *_linked(places, is_english=is_english),
        *_grouped(places, term_of),
    ]
    for run in joinable:
        made_of = [term_of[word] for word in run if word in term_of]
        if made_of:
            runs["".join(run)] = made_of
    return {run: made_of for run, made_of in runs.items() if len(run) <= LONGEST}


def _places(query: str) -> list[_Place]:
    places = []
    end = 0
    for match in _WORDS.finditer(query):
        places.append(_Place(folded(match[0]), query[end : match.start()]))
        end = match.end()
    return places


def _of_words(
    words: Sequence[str], forms: Iterable[str], term_of: Collection[str]
) -> Iterator[Sequence[str]]:
    """Yield the runs from each of some words up to another one that is searched for."""
    first_of = {word: place for place, word in reversed(list(enumerate(words)))}
    for form in forms:
        start = first_of.get(form, len(words))
        for end in range(start + 2, min(len(words), start + _MOST_JOINED) + 1):
            if end == start + 2 or words[end - 1] in term_of:
                yield words[start:end]


def _linked(places: Sequence[_Place], *, is_english: bool) -> Iterator[Sequence[str]]:
    """Yield the runs of words with a link between them, including stop words and single letters."""
    for start in range(len(places)):
        for end in range(start + 1, min(len(places), start + _MOST_LINKED)):
            if not _is_link(places[end - 1].word, places[end], is_english=is_english):
                break
            run = [place.word for place in places[start : end + 1]]
            # "U.S." is not "us", and "a.m." not "am".
            if any(len(word) > 1 for word in run):
                yield run


def _is_link(before: str, place: _Place, *, is_english: bool) -> bool:
    if place.gap in APOSTROPHES:  # "I'm" is not "im", and "d'une" not "dune"
        return is_english and before in BEFORE_APOSTROPHES
    # A version is not one word: "v1.2" is not "v12".
    are_digits = before[-1:].isdecimal() and place.word[:1].isdecimal()
    return place.gap in _LINKS and not are_digits


def _grouped(places: Sequence[_Place], term_of: Collection[str]) -> Iterator[Sequence[str]]:
    """Yield the runs where every second word is a number, or where digits are grouped."""
    for start, place in enumerate(places):
        if place.word not in term_of:
            continue
        for end in range(start + 1, min(len(places), start + _MOST_LINKED)):
            former, latter = places[end - 1].word, places[end].word
            # "v1.2" is not "v12".
            is_number = former.isdecimal() or (latter.isdecimal() and not former[-1].isdecimal())
            if latter not in term_of or not is_number:
                break
            if _are_groups(places, start, end + 1):
                yield [each.word for each in places[start : end + 1]]


def _are_groups(places: Sequence[_Place], start: int, end: int) -> bool:
    """Return whether others write some words as one: "25 MiB", "3,000", "555-0143"."""
    words = [place.word for place in places[start:end]]
    gaps = _gaps_in_number(places[start:end])
    if not gaps:
        return len(words) <= _MOST_JOINED
    if not gaps <= _BETWEEN_DIGITS:
        return False
    if sum(len(word) for word in words if word.isdecimal()) >= _SHORTEST_NUMBER:
        return True
    # Versions and addresses go on: "1.250.3".
    beside = (places[max(0, start - 1) : start + 1], places[end - 1 : end + 1])
    are_thousands = len(words[0]) <= 3 and all(len(word) == 3 for word in words[1:])
    return (
        are_thousands
        and len(gaps) == 1
        and gaps <= _BETWEEN_THOUSANDS
        and not any(gaps & _gaps_in_number(pair) for pair in beside)
    )


def _gaps_in_number(places: Sequence[_Place]) -> set[str]:
    """Return the gaps between adjacent numbers."""
    return {
        place.gap
        for before, place in pairwise(places)
        if before.word.isdecimal() and place.word.isdecimal()
    }

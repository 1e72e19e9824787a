"""Terms of a query: the words that a search looks for, and the rarest of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.storage.filters import Filter
from agent_memory.storage.in_memory.tokenizer import Tokenizer
from agent_memory.storage.records import Term
from agent_memory.text.truncation import both_ends

if TYPE_CHECKING:
    from agent_memory.storage.tables import MemoryTable

MAX_TERMS: Final = 64
"""Terms of a query, half from its beginning and half from its end: the question stands before or
after any pasted text. 100,000 joined by OR took FTS5 20 s, 1,000 took 2 ms. With an unrelated
message of 150 to 600 words before each question, the first 64 terms had 2.4 % of the answers among
ten hits, and both ends have 8.5 % (with the message after it, 8.2 and 7.2); with 128 terms, 5.0 and
5.8."""
MAX_QUERY_CHARACTERS: Final = 10_000
"""Characters of a query that are read, half at each end."""

SCAN_BUDGET: Final = 5_000
"""Memories that are scored for one search, if the rarest words leave a choice.

FTS5 scores 27,000 of 100,000 in 22 ms. Words that would exceed the budget still count in the
ranking of what the rarer ones found."""
FILTERED_SCAN_BUDGET: Final = 15_000
"""The same under a filter that few memories pass: those that do not are left out before scoring."""
SCANNED_PASSING: Final = 6
"""Up to that budget, the passing memories among those scanned should be this many times those
taken. With more, one query in ten on 1,000,000 memories took half as long again, and found much the
same."""

# Words that say nothing about what is asked. Question words are included because every question has
# them; names, numbers, and negations that change a meaning are not.
STOP_WORDS: Final = frozenset(
    """
    a about am an and any are as at be been being but by can could did do does doing done for from
    had has have having he her hers him his how i if in into is it its itself just me might my
    of on or our ours out s shall she should so some such t than that the their theirs them then
    there these they this those to too up us was we were what when where which while who whom
    whose why will with would you your yours
    """.split()
)

PEOPLES: Final = frozenset(
    """
    african american arab arabic argentinian asian australian austrian belgian brazilian british
    bulgarian canadian caribbean catalan chilean chinese colombian croatian cuban czech danish dutch
    egyptian english estonian ethiopian european filipino finnish french german greek hawaiian
    hebrew hindi hungarian icelandic indian indonesian iranian iraqi irish israeli italian jamaican
    japanese jewish kenyan korean latin lebanese malaysian mexican moroccan nepalese nigerian
    norwegian pakistani persian peruvian polish portuguese romanian russian scandinavian scottish
    serbian slovak spanish swedish swiss syrian taiwanese thai tibetan turkish ukrainian vietnamese
    welsh
    """.split()
)
"""Words that English capitalizes although they name nobody: nationalities and languages. A list,
since by its ending "Adrian" would be one too."""

# Scripts that are indexed by pairs of characters; memory_text in migrations/ has the same ranges.
DENSE_SCRIPTS: Final = (
    "\u0e00-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
)

_WORDS: Final = re.compile(r"\w+")
_GOING_ON: Final = r"(?<=[\w,;:'\u2019\-] )[\"'(\u2018\u201c]?(\w\w+)"


def terms_of(query: str, tokenizer: Tokenizer) -> list[Term]:
    """Return the distinct terms of a query without stop words, 64 at most.

    A query that consists only of stop words keeps them. Any text is a valid query.
    """
    text = both_ends(query, MAX_QUERY_CHARACTERS)
    text = text.replace("\x00", " ").encode(errors="replace").decode()
    terms: dict[str, Term] = {}
    stop_words: dict[str, Term] = {}
    occurrences: list[str] = []
    names = names_of(text)
    for piece, is_dense in _pieces(text):
        if is_dense:
            for term in _dense_terms(piece, tokenizer):
                terms.setdefault(term.match, term)
                occurrences.append(term.match)
            continue
        for word, written in tokenizer.words(piece):
            known = stop_words if written.lower() in STOP_WORDS else terms
            known.setdefault(word, Term(word, written, is_name=written in names))
            occurrences.append(word)
    asked = terms or stop_words
    if len(asked) > MAX_TERMS:
        kept = _at_both_ends([key for key in occurrences if key in asked])
        asked = {key: term for key, term in asked.items() if key in kept}
    times = Counter(occurrences)
    return [
        term if times[key] == 1 else term._replace(times=times[key]) for key, term in asked.items()
    ]


def _at_both_ends(keys: Sequence[str]) -> frozenset[str]:
    """Return the last and the first of the keys, as many as a query may have."""
    last = list(dict.fromkeys(reversed(keys)))[: MAX_TERMS // 2]
    return frozenset(list(dict.fromkeys([*last, *keys]))[:MAX_TERMS])


def _dense_terms(run: str, tokenizer: Tokenizer) -> Iterable[Term]:
    """Return the pairs of characters in a run without spaces; for a single character, a prefix."""
    if len(run) == 1:
        return [Term(token, run, is_prefix=True) for token in tokenizer.tokenize([run])[0]]
    pairs = [here + following for here, following in pairwise(run)]
    # A pair that contains punctuation is no word, or two.
    tokenized = zip(pairs, tokenizer.tokenize(pairs), strict=True)
    return [Term(tokens[0], pair, is_pair=True) for pair, tokens in tokenized if len(tokens) == 1]


def single_tokens(words: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Return words as the index holds them; anything but a single word becomes ""."""
    together = "".join(words)
    if together.isascii() and together.isalnum() and all(words):
        # As one text they take a quarter of the time: a misspelt word has hundreds of neighbours.
        return tokenizer.tokenize([" ".join(words)])[0]
    return [tokens[0] if len(tokens) == 1 else "" for tokens in tokenizer.tokenize(words)]


def names_of(text: str) -> frozenset[str]:
    """Return the words written as names: capitalized in the middle of a sentence.

    Words entirely in capitals are not names ("NOT", "API"), nor are adjectives of nationality, nor
    the words of a text that capitalizes most of them, as a title does.
    """
    if not any(map(str.isupper, text[1:])):  # the pattern takes longer to compile than this
        return frozenset()
    words = _WORDS.findall(text)
    names = [
        word
        for word in re.findall(_GOING_ON, text)
        if word[0].isupper() and not word.isupper() and word.lower() not in STOP_WORDS
    ]
    if 2 * len(names) > len(words) + 1:
        return frozenset()
    return frozenset(name for name in names if name.lower().removesuffix("s") not in PEOPLES)


def _pieces(text: str) -> Iterable[tuple[str, bool]]:
    """Split a text into runs of scripts that are indexed by pairs, and the text in between."""
    if text.isascii():
        return [(text, False)]
    pieces = _dense_runs().split(text)  # the runs are at odd indexes
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


def has_dense(text: str) -> bool:
    """Return whether a text contains a script that is indexed by pairs."""
    return not text.isascii() and _dense_runs().search(text) is not None


@cache
def _dense_runs() -> re.Pattern[str]:
    """Compile the pattern on first use: that takes 5 ms, and most queries do not need it."""
    return re.compile(f"([{DENSE_SCRIPTS}]+)")


def scan_budget(
    memories: MemoryTable, filters: Filter, frequencies: Sequence[int], limit: int
) -> int:
    """Return how many memories to scan for a search that takes ``limit`` of those that pass."""
    if not filters.is_narrowing or sum(frequencies) <= SCAN_BUDGET:
        return SCAN_BUDGET
    share = memories.share_passing(filters)
    enough = SCANNED_PASSING * limit / share if share else FILTERED_SCAN_BUDGET
    return max(SCAN_BUDGET, min(FILTERED_SCAN_BUDGET, round(enough)))


def rarest_of(
    terms: Sequence[Term], frequencies: Sequence[int], budget: int
) -> tuple[list[Term], list[Term]]:
    """Split the terms that occur anywhere: the rarest, as far as the budget reaches, and the rest.

    The rarest is used even if its matches exceed the budget up to four times.
    """
    counted = sorted(
        ((count, place) for place, count in enumerate(frequencies) if count),
        key=lambda entry: entry[0],
    )
    chosen: list[Term] = []
    common: list[Term] = []
    scanned = 0
    for count, place in counted:
        scanned += count
        fits = scanned <= (budget if chosen or common else 4 * budget)
        (chosen if fits else common).append(terms[place])
    return chosen, common

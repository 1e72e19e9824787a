"""The terms of a query: its words, which of them are names, and what may stand in their place.

Words are matched by Porter's English stems, as FTS5 does. What that does not reach is looked for
in the store's own vocabulary, and only what stands there is taken:

==============  ====================================================================================
inflection      words with the same stem in the languages of the store and of the query (Snowball);
                irregular English plurals and verbs, which count ``IRREGULAR`` of the word itself
spelling        umlauts and other letters written out, accents of Greek; of Arabic, the article and
                other words that are written in one with the next
compounds       words of the query as a single word there; a word of the query in two parts; a
                name of code in its parts, "getUserById" for "get_user_by_id", and they for it
misspellings    words one slip away, and of long words two, where nothing else of a word is known.
                They count ``MISSPELT`` of the word itself
shortenings     longer words that begin with one of which nothing is known, "PostgreSQL" for
                "postgres". They count ``SHORTENED``
hashes          of Git, the whole for one that is cut short, and the other way round
==============  ====================================================================================
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.services.search.date_terms import with_dates
from agent_memory.services.search.request import SearchRequest
from agent_memory.services.search.vocabulary import Vocabulary
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Alternative, Term
from agent_memory.text.languages import (
    FUNCTION_WORDS,
    JOINING,
    are_capitals_ordinary,
    is_function_pair,
    language_of_query,
    languages_of,
)
from agent_memory.text.light_words import LIGHT_WORDS
from agent_memory.text.word_forms import (
    LINKS,
    attached,
    folded,
    irregular_forms,
    is_within_two,
    misspellings,
    parts,
    spellings,
    splits,
    without_accents,
)

if TYPE_CHECKING:
    from Stemmer import Stemmer  # type: ignore[import-not-found]

SAMPLE: Final = 24
"""Memories that tell the languages of a store, the newest."""
SAMPLE_CHARACTERS: Final = 250
"""What is read of each."""
MOST_VARIED: Final = 16
"""Words of a query for which other forms are looked for: the first and the last."""
MOST_MISSPELT: Final = 8
"""Words of a query that are corrected: where more are unknown, most are simply not in the store."""
MOST_ALTERNATIVES: Final = 8
"""Forms of a word that are taken, those in most memories."""
MOST_CORRECTIONS: Final = 3

MISSPELT: Final = 0.5
"""What a word that was corrected counts beside one that is there."""
IRREGULAR: Final = 0.9
"""What an irregular form counts beside the word itself: it may be another word, as "left" may."""
SHORTENED: Final = 0.75
"""What a longer word counts beside the one that it begins with."""
SHORTEST_SHORTENED: Final = 6
"""Letters of a word that may be short for another: "plan" is none for "plants"."""
SHORTEST_MISSPELT: Final = 5
"""Letters of a word that is corrected: of shorter ones, most are one slip from many others."""
SHORTEST_TWICE_MISSPELT: Final = 8
"""The same for two slips."""
_KEPT_LETTERS: Final = 3
"""Letters at its beginning by which the words near a misspelt one are read from the vocabulary.
Where the slip is among them, each word that may have been meant is looked up: 20 µs apiece."""
_SHORTEST: Final = 3
"""Letters of a word that has other forms, of its stem, and of the parts of a compound."""
_LONGEST: Final = 64
"""Letters of a word that may have been meant otherwise: German's longest has 63. A word of 100,000
letters has 5 million neighbours, and a search for it took 24 s."""
_SHORTEST_COMPOUND: Final = 8
"""Letters of a word that is taken apart. In languages that write compounds apart, it must be
unknown, and its parts stand side by side: then they may be as short as in "log in"."""
_SHORTEST_PART: Final = 2
_MOST_JOINED: Final = 4
"""Words that stand side by side in a query and may be a single one in the store."""

MOST_HASHES: Final = 4
"""Hashes of a query of which longer and shorter ones are looked for."""

_WORDS: Final = re.compile(r"[^\W_]+")
_HASH: Final = re.compile(r"(?=.*[a-f])(?=.*[0-9])[0-9a-f]{7,40}")
"""What Git names a commit by, whole or cut short. A number alone may be anything."""
_SHORTEST_HASH: Final = 7


def with_terms(engine: Engine, request: SearchRequest) -> SearchRequest:
    """Add the terms of its query to a request, with what may stand in their place in the store."""
    return with_dates(engine, _with_words(engine, request))


def _with_words(engine: Engine, request: SearchRequest) -> SearchRequest:
    terms = _with_light_pairs(engine.keywords.terms_of(request.query))
    has_pairs = any(term.is_pair for term in terms)
    if not any(_is_variable(term) or len(parts(term.written)) > 1 for term in terms):
        return request._replace(terms=terms, is_english=not has_pairs)
    sample = tuple(
        engine.memories.beginnings(request.scope, characters=SAMPLE_CHARACTERS, limit=SAMPLE)
    )
    language = language_of_query(sample, request.query)
    function_words = FUNCTION_WORDS[language] if language else ()
    asked = [term for term in terms if term.written.lower() not in function_words] or terms
    is_english = language == "english" or (language is None and request.query.isascii())
    return request._replace(
        terms=_varied(engine, request, asked, sample), is_english=is_english and not has_pairs
    )


def _varied(
    engine: Engine, request: SearchRequest, terms: list[Term], sample: tuple[str, ...]
) -> list[Term]:
    """Add to terms what may stand in their place, and which of them are names or say little."""
    variable = [term for term in terms if _is_variable(term)]
    if len(variable) > MOST_VARIED:  # what is asked stands before or after what is pasted
        half = MOST_VARIED // 2
        variable = variable[:half] + variable[-half:]
    if any(term.is_name for term in terms) and are_capitals_ordinary(sample, request.query):
        terms = [term._replace(is_name=False) for term in terms]
    vocabulary = Vocabulary(engine, request)
    unknown = {term.word for term in variable} - vocabulary.known(variable)
    languages = languages_of(sample, request.query)
    forms = _Forms(vocabulary, request.query, terms, variable, unknown, languages)
    alternatives = forms.alternatives()
    misspelt = [
        term
        for term in variable
        if term.word in unknown - alternatives.keys() and len(term.written) >= SHORTEST_MISSPELT
    ]
    alternatives |= _corrections(vocabulary, misspelt[:MOST_MISSPELT])
    alternatives |= _other_lengths(vocabulary, terms)
    # "Kind" and "see" are a child and a lake in German.
    light_words = LIGHT_WORDS if languages == {"english"} else ()
    return [
        term._replace(
            alternatives=alternatives.get(term.word, ()),
            is_light=term.is_light or (not term.is_name and term.written.lower() in light_words),
        )
        for term in terms
    ]


def _with_light_pairs(terms: list[Term]) -> list[Term]:
    """Mark the pairs of characters that are no words, unless the query has nothing else."""
    light = {term.word for term in terms if term.is_pair and is_function_pair(term.written)}
    if len(light) == len(terms):
        return terms
    return [term._replace(is_light=term.word in light) for term in terms] if light else terms


def _is_variable(term: Term) -> bool:
    return (
        term.written.isalpha() and not term.is_prefix and _SHORTEST <= len(term.written) <= _LONGEST
    )


Alternatives = dict[str, tuple[Alternative, ...]]
"""What may stand for a term, by the term's word."""


# Forms --------------------------------------------------------------------------------------------


class _Word(NamedTuple):
    """A word of the query: as the index has it but for the stem, its spellings, its stems.

    ``joined`` has it with words that its language writes in one with it.
    """

    term: Term
    form: str
    spellings: frozenset[str]
    stems: frozenset[tuple[str, str]]
    joined: frozenset[str]


class _Forms:
    """The forms of a query's words that stand in the store: inflected, spelt otherwise, joined."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        query: str,
        terms: Sequence[Term],
        variable: Sequence[Term],
        unknown: Collection[str],
        languages: Collection[str],
    ) -> None:
        self._vocabulary = vocabulary
        self._runs = _runs(query, terms, variable)
        self._parts_of = {
            term.word: named
            for term in terms
            if len(term.written) <= _LONGEST and len(named := parts(term.written)) > 1
        }
        self._unknown = unknown
        self._stemmers = _stemmers(languages)
        self._is_english = not languages or "english" in languages
        self._joins = not JOINING.isdisjoint(languages)
        self._words = [self._word(term) for term in variable]
        self._tokens: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def _word(self, term: Term) -> _Word:
        form = folded(term.written)
        is_plain = form.isascii() and term.word not in self._unknown and not self._joins
        others = frozenset() if is_plain else frozenset(spellings(term.written))
        written = {term.written.lower(), *others}
        stems = frozenset(
            (language, folded(stemmer.stemWord(word)))
            for language, stemmer in self._stemmers.items()
            for word in written
        )
        joined = {
            other
            for language, stem in stems
            if language == "arabic"
            for other in attached(form, stem)
        }
        return _Word(term, form, others, stems, frozenset(joined))

    def alternatives(self) -> Alternatives:
        """Return the forms that stand in the store, by the word of the term."""
        splits_of = {word.form: list(self._splits(word)) for word in self._words}
        forms = {part for ways in splits_of.values() for way in ways for part in way}
        forms.update(form for part in list(forms) for form in self._stemmed(part))
        forms.update(self._runs)
        forms.update(part for named in self._parts_of.values() for part in named)
        for word in self._words:
            forms |= self._whole_forms(word)
        self._look_up(forms)
        forms_of: dict[str, list[Alternative]] = defaultdict(list)
        for word in self._words:
            own = forms_of[word.term.word]
            irregular = self._irregular(word)
            own += self._known(self._whole_forms(word) - irregular)
            own += [form._replace(weight=IRREGULAR) for form in self._known(irregular)]
            own += self._in_two(splits_of[word.form])
        for term_word, named in self._parts_of.items():
            forms_of[term_word] += self._side_by_side(named)
        for joined in self._known(self._runs):
            (stem,) = joined.words
            # The stem of "give Nate" is "given".
            if joined.written in (stem, self._vocabulary.written(stem, [joined.written])):
                for term_word in self._runs[joined.written]:
                    forms_of[term_word].append(joined)
        self._add_inflected(forms_of)
        return {
            word: commonest
            for word, alternatives in forms_of.items()
            if (commonest := self._chosen(word, alternatives))
        }

    def _chosen(self, word: str, alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
        others = [alternative for alternative in alternatives if alternative.words != (word,)]
        return self._vocabulary.commonest(others, self._counts, MOST_ALTERNATIVES)

    def _whole_forms(self, word: _Word) -> set[str]:
        """Return the forms that stand for a word as they are."""
        return self._irregular(word) | word.spellings | word.joined | self._bare_stems(word)

    def _irregular(self, word: _Word) -> set[str]:
        return irregular_forms(word.form) if self._is_english else set()

    def _bare_stems(self, word: _Word) -> set[str]:
        """Return the stems that are words of their own: "haus", of which English makes "hau"."""
        return {
            stem
            for language, stem in word.stems
            if folded(self._stemmers[language].stemWord(stem)) == stem
        }

    def _look_up(self, forms: Iterable[str]) -> None:
        """Read which of some forms stand in the store, and what begins as the words do."""
        listed = sorted(forms)
        self._tokens = dict(zip(listed, self._vocabulary.tokens(listed), strict=True))
        prefixes = {
            form[: max(_SHORTEST, min(len(form), len(stem)) - 1)]
            for word in self._words
            for _, stem in word.stems
            for form in (word.form, *word.spellings)
        }
        self._counts = self._vocabulary.counts(set(self._tokens.values()), prefixes)

    def _known(self, forms: Iterable[str]) -> list[Alternative]:
        return [
            Alternative((token,), form)
            for form in forms
            if (token := self._tokens[form]) in self._counts
        ]

    def _splits(self, word: _Word) -> Iterable[tuple[str, str]]:
        if self._joins:
            is_long = len(word.form) >= _SHORTEST_COMPOUND
            return splits(word.form, LINKS, shortest=_SHORTEST) if is_long else ()
        is_unknown = word.term.word in self._unknown
        return splits(word.form, ("",), shortest=_SHORTEST_PART) if is_unknown else ()

    def _stemmed(self, form: str) -> set[str]:
        return {folded(stemmer.stemWord(form)) for stemmer in self._stemmers.values()}

    def _in_two(self, ways: Iterable[tuple[str, str]]) -> list[Alternative]:
        """Return the way to take a word apart whose shorter part is longest, if there is one."""
        known = [
            (head, tail)
            for head, whole in ways
            for tail in (whole, *self._stemmed(whole))
            if self._tokens[head] in self._counts and self._tokens[tail] in self._counts
        ]
        known.sort(key=lambda way: -min(map(len, way)))
        if not self._joins:
            return next(filter(None, map(self._side_by_side, known)), [])
        words = [tuple(self._tokens[part] for part in way) for way in known[:1]]
        return [Alternative(words[0], " ".join(known[0]))] if words else []

    def _side_by_side(self, forms: Sequence[str]) -> list[Alternative]:
        """Return the phrase of some words, if they stand so."""
        words = tuple(self._tokens[form] for form in forms)
        phrase = Alternative(words, " ".join(forms), is_phrase=True)
        is_known = self._counts.keys() >= set(words)
        return [phrase] if is_known and self._vocabulary.has(phrase) else []

    def _add_inflected(self, forms_of: dict[str, list[Alternative]]) -> None:
        """Add the words of the vocabulary that have the stem of a query's word, or join two."""
        if not self._stemmers:
            return
        by_stem: dict[tuple[str, str], set[str]] = {}
        heads: dict[str, str] = {}
        for word in self._words:
            for language, stem in word.stems:
                by_stem.setdefault((language, stem), set()).add(word.term.word)
                heads.setdefault(stem, word.term.word)
            heads[word.form] = word.term.word
        for token in self._counts:
            alternative = Alternative((token,), token)
            forms = self._same_stem(token, by_stem)
            if self._joins:
                forms = forms | self._joined_words(token, heads, by_stem)
            for term_word in forms:
                forms_of[term_word].append(alternative)

    def _same_stem(
        self, token: str, by_stem: Mapping[tuple[str, str], Collection[str]]
    ) -> set[str]:
        return {
            word
            for language, stemmer in self._stemmers.items()
            for word in by_stem.get((language, folded(stemmer.stemWord(token))), ())
        }

    def _joined_words(
        self,
        token: str,
        heads: Mapping[str, str],
        by_stem: Mapping[tuple[str, str], Collection[str]],
    ) -> set[str]:
        """Return the two words of the query that a compound is made of, if it is."""
        for head, first in heads.items():
            rest = token.removeprefix(head)
            if rest == token or len(head) < _SHORTEST:
                continue
            tails = {rest.removeprefix(link) for link in LINKS}
            for tail in tails:
                if len(tail) >= _SHORTEST:
                    others = self._same_stem(tail, by_stem) - {first}
                    if others:
                        return {first, *others}
        return set()


def _runs(
    query: str, terms: Iterable[Term], variable: Iterable[Term]
) -> Mapping[str, Sequence[str]]:
    """Return what a query's words give, joined, and the terms that each is made of.

    They are words that stand side by side, "log in" and "max_retry_count", and terms with stop
    words between them.
    """
    words = [folded(word) for word in _WORDS.findall(query)]
    term_of = {folded(term.written): term.word for term in terms}
    places = {word: place for place, word in reversed(list(enumerate(words)))}
    forms = [folded(term.written) for term in variable]
    runs: dict[str, Sequence[str]] = {}
    for first, second in pairwise(forms):
        runs[first + second] = [term_of[first], term_of[second]]
    for form in forms:
        start = places.get(form, len(words))
        for end in range(start + 2, min(len(words), start + _MOST_JOINED) + 1):
            run = words[start:end]
            if end == start + 2 or run[-1] in term_of:
                runs["".join(run)] = [term_of[word] for word in run if word in term_of]
    return {run: made_of for run, made_of in runs.items() if len(run) <= _LONGEST}


def _stemmers(languages: Iterable[str]) -> "dict[str, Stemmer]":
    """Return Snowball's stemmers; no thread may use another's. English is the index's own."""
    others = sorted(set(languages) - {"english"})
    if not others:
        return {}
    from Stemmer import Stemmer  # noqa: PLC0415 - 5 ms, for stores in other languages alone

    return {language: Stemmer(language, 0) for language in others}


# Hashes -------------------------------------------------------------------------------------------


def _other_lengths(vocabulary: Vocabulary, terms: Iterable[Term]) -> Alternatives:
    """Return the hashes of the store that begin as one of the query does, or are its beginning."""
    written = [(term.word, term.written.lower()) for term in terms]
    hashes = dict([each for each in written if _HASH.fullmatch(each[1])][:MOST_HASHES])
    if not hashes:
        return {}
    shorter = sorted(
        {
            whole[:length]
            for whole in hashes.values()
            for length in range(_SHORTEST_HASH, len(whole))
        }
    )
    form_of = dict(zip(vocabulary.tokens(shorter), shorter, strict=True))
    counts = vocabulary.counts(form_of.keys(), hashes.values())
    others: Alternatives = {}
    for word, whole in hashes.items():
        near = [
            Alternative((token,), form)
            for token in counts.keys() - {word}
            if whole.startswith(form := form_of.get(token, token))
            or (form.startswith(whole) and _HASH.fullmatch(form))
        ]
        if near:
            others[word] = vocabulary.commonest(near, counts, MOST_ALTERNATIVES)
    return others


# Misspellings -------------------------------------------------------------------------------------


def _corrections(vocabulary: Vocabulary, misspelt: Sequence[Term]) -> Alternatives:
    """Return the words of the vocabulary that may have been meant by words that are nowhere."""
    if not misspelt:
        return {}
    meant_by = {term.word: _meant(vocabulary, folded(term.written)) for term in misspelt}
    counts = vocabulary.counts(
        {
            token
            for term in misspelt
            for token, forms in meant_by[term.word].items()
            if not any(form.startswith(_beginning(term)) for form in forms)
        },
        map(_beginning, misspelt),
    )
    corrections: Alternatives = {}
    for term in misspelt:
        meant = meant_by[term.word]
        form = folded(term.written)
        near = {token: meant[token] for token in meant.keys() & counts.keys()}
        chosen = _written(vocabulary, near, counts, MISSPELT)
        if not chosen and len(form) >= SHORTEST_SHORTENED:
            longer = {token: _unstemmed(token) for token in counts if token.startswith(form)}
            chosen = _written(vocabulary, longer, counts, SHORTENED)
        if not chosen and len(form) >= SHORTEST_TWICE_MISSPELT:
            near = _within_two(vocabulary, term, counts)
            chosen = _written(vocabulary, near, counts, MISSPELT)
        if chosen:
            corrections[term.word] = chosen
    return corrections


def _within_two(vocabulary: Vocabulary, term: Term, counts: Iterable[str]) -> dict[str, list[str]]:
    """Return the words two slips from a term, by what the index holds for them.

    Its stem alone tells little: of "deviation" it is as near to that of "device".
    """
    form = without_accents(term.written)
    near = {
        token: [word for word in vocabulary.words_of(token) if is_within_two(form, word)]
        for token in counts
        if token.startswith(_beginning(term)) and is_within_two(term.word, token)
    }
    return {token: words for token, words in near.items() if words}


def _written(
    vocabulary: Vocabulary,
    near: Mapping[str, Iterable[str]],
    counts: Mapping[str, int],
    weight: float,
) -> tuple[Alternative, ...]:
    """Return the words near an unknown one that stand in a memory so, the commonest."""
    tokens = (Alternative((token,), token, weight) for token in near)
    corrections = []
    for alternative in vocabulary.commonest(tokens, counts, 2 * MOST_CORRECTIONS):
        (token,) = alternative.words
        form = vocabulary.written(token, near[token])
        if form is not None:
            corrections.append(alternative._replace(written=form))
    return tuple(corrections[:MOST_CORRECTIONS])


def _unstemmed(token: str) -> list[str]:
    """Return how a word of the index may be written: the stem of "therapy" is "therapi"."""
    return [token, token.removesuffix("i") + "y"] if token.endswith("i") else [token]


def _beginning(term: Term) -> str:
    return folded(term.written)[:_KEPT_LETTERS]


def _meant(vocabulary: Vocabulary, form: str) -> dict[str, list[str]]:
    """Return the words one slip from a form, by what the index holds for them."""
    forms = sorted(misspellings(form))
    meant_by: dict[str, list[str]] = {}
    for token, meant in zip(vocabulary.tokens(forms), forms, strict=True):
        meant_by.setdefault(token, []).append(meant)
    return meant_by

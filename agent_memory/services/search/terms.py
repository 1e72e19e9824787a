"""The terms of a query: its words, which of them are names, and what may stand in their place.

Words are matched by Porter's English stems, as FTS5 does. What that does not reach is looked for
in the store's own vocabulary, and only what stands there is taken:

==============  ====================================================================================
inflection      words with the same stem in the languages of the store and of the query (Snowball);
                irregular English plurals
spelling        umlauts and other letters written out, accents of Greek; of Arabic, the article and
                other words that are written in one with the next
compounds       two words of the query as a single word there; a word of the query in two parts
misspellings    words one slip away, and of long words two, where nothing else of a word is known.
                They count ``MISSPELT`` of the word itself
shortenings     longer words that begin with one of which nothing is known, "PostgreSQL" for
                "postgres". They count ``SHORTENED``
==============  ====================================================================================
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.services.search.request import SearchRequest
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import EVERYTHING, Filter
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
    is_within_two,
    misspellings,
    plurals,
    spellings,
    splits,
    without_accents,
    without_ending,
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
EXAMPLES: Final = 20
"""Memories that are looked at for how a word is written, the newest that have it."""

MISSPELT: Final = 0.5
"""What a word that was corrected counts beside one that is there."""
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
unknown, and each part have ``_SHORTEST_PART``."""
_SHORTEST_PART: Final = 4


def with_terms(engine: Engine, request: SearchRequest) -> SearchRequest:
    """Add the terms of its query to a request, with what may stand in their place in the store."""
    terms = _with_light_pairs(engine.keywords.terms_of(request.query))
    has_pairs = any(term.is_pair for term in terms)
    if not any(map(_is_variable, terms)):
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
    scope = EVERYTHING if request.owner is None else request.scope
    vocabulary = _Vocabulary(engine, scope)
    unknown = {term.word for term in variable} - vocabulary.known(variable)
    languages = languages_of(sample, request.query)
    forms = _Forms(vocabulary, variable, unknown, languages)
    alternatives = forms.alternatives()
    misspelt = [
        term
        for term in variable
        if term.word in unknown - alternatives.keys() and len(term.written) >= SHORTEST_MISSPELT
    ]
    alternatives |= _corrections(vocabulary, misspelt[:MOST_MISSPELT])
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


class _Vocabulary:
    """The words of the store, as far as a search may see the memories that have them."""

    def __init__(self, engine: Engine, scope: Filter) -> None:
        self._keywords = engine.keywords
        self._scope = scope

    def known(self, terms: Sequence[Term]) -> set[str]:
        """Return those of the terms' words that stand in a memory."""
        if not self._scope.is_narrowing:
            counts = self._keywords.frequencies(terms)
            return {term.word for term, count in zip(terms, counts, strict=True) if count}
        words = {term.word for term in terms}
        stored = self.counts(words, ())
        return {word for word in words & stored.keys() if self._is_readable(word)}

    def _is_readable(self, *words: str) -> bool:
        if not self._scope.is_narrowing:
            return True
        return bool(self._keywords.examples(Alternative(words, ""), self._scope, limit=1))

    def tokens(self, forms: Sequence[str]) -> list[str]:
        """Return forms as the index holds them."""
        return self._keywords.tokens(forms)

    def counts(self, words: Collection[str], prefixes: Iterable[str]) -> dict[str, int]:
        """Return the words that are among some or begin so, and how many memories have each."""
        return self._keywords.vocabulary(words, prefixes, self._scope)

    def commonest(
        self, alternatives: Iterable[Alternative], counts: Mapping[str, int], most: int
    ) -> tuple[Alternative, ...]:
        """Return the alternatives that stand in most memories, each once."""
        distinct = {alternative.words: alternative for alternative in alternatives}
        readable = [words for words in distinct if self._is_readable(*words)]
        readable.sort(key=lambda words: (-min(counts[word] for word in words), words))
        return tuple(distinct[words] for words in readable[:most])

    def written(self, word: str, forms: Iterable[str]) -> str | None:
        """Return the form in which a word stands in a memory, perhaps with another ending.

        Stems are short: what is one slip from "Oliver" and has the stem of "alive" is "aliver".
        """
        examples = self._keywords.examples(Alternative((word,), ""), self._scope, limit=EXAMPLES)
        texts = [without_accents(text) for text in examples]
        for form in forms:
            bare = without_ending(form)
            if any(bare in text for text in texts):
                return form
        return None


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
        vocabulary: _Vocabulary,
        terms: Sequence[Term],
        unknown: Collection[str],
        languages: Collection[str],
    ) -> None:
        self._vocabulary = vocabulary
        self._unknown = unknown
        self._stemmers = _stemmers(languages)
        self._joins = not JOINING.isdisjoint(languages)
        self._words = [self._word(term) for term in terms]
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
        pairs = list(pairwise(self._words))
        forms = {part for ways in splits_of.values() for way in ways for part in way}
        forms.update(form for part in list(forms) for form in self._stemmed(part))
        forms.update(first.form + second.form for first, second in pairs)
        for word in self._words:
            forms |= self._whole_forms(word)
        self._look_up(forms)
        forms_of: dict[str, list[Alternative]] = {word.term.word: [] for word in self._words}
        for word in self._words:
            own = forms_of[word.term.word]
            own += self._known(self._whole_forms(word))
            own += self._parts(splits_of[word.form])
        for first, second in pairs:
            for joined in self._known({first.form + second.form}):
                # The stem of "give Nate" is "given".
                if len(joined.words[0]) >= len(first.form) + _SHORTEST:
                    forms_of[first.term.word].append(joined)
                    forms_of[second.term.word].append(joined)
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
        return plurals(word.form) | word.spellings | word.joined | self._bare_stems(word)

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
        if len(word.form) < _SHORTEST_COMPOUND:
            return ()
        if self._joins:
            return splits(word.form, LINKS, shortest=_SHORTEST)
        is_unknown = word.term.word in self._unknown
        return splits(word.form, ("",), shortest=_SHORTEST_PART) if is_unknown else ()

    def _stemmed(self, form: str) -> set[str]:
        return {folded(stemmer.stemWord(form)) for stemmer in self._stemmers.values()}

    def _parts(self, ways: Iterable[tuple[str, str]]) -> list[Alternative]:
        """Return the way to take a word apart whose shorter part is longest, if there is one."""
        known = [
            (head, tail)
            for head, whole in ways
            for tail in (whole, *self._stemmed(whole))
            if self._tokens[head] in self._counts and self._tokens[tail] in self._counts
        ]
        if not known:
            return []
        best = max(known, key=lambda way: min(map(len, way)))
        words = tuple(self._tokens[part] for part in best)
        return [Alternative(words, " ".join(best), is_phrase=not self._joins)]

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


def _stemmers(languages: Iterable[str]) -> "dict[str, Stemmer]":
    """Return Snowball's stemmers; no thread may use another's. English is the index's own."""
    others = sorted(set(languages) - {"english"})
    if not others:
        return {}
    from Stemmer import Stemmer  # noqa: PLC0415 - 5 ms, for stores in other languages alone

    return {language: Stemmer(language, 0) for language in others}


# Misspellings -------------------------------------------------------------------------------------


def _corrections(vocabulary: _Vocabulary, misspelt: Sequence[Term]) -> Alternatives:
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
            longer = {token: [token] for token in counts if token.startswith(form)}
            chosen = _written(vocabulary, longer, counts, SHORTENED)
        if not chosen and len(form) >= SHORTEST_TWICE_MISSPELT:
            near = {
                token: [token]
                for token in counts
                if token.startswith(_beginning(term)) and is_within_two(term.word, token)
            }
            chosen = _written(vocabulary, near, counts, MISSPELT)
        if chosen:
            corrections[term.word] = chosen
    return corrections


def _written(
    vocabulary: _Vocabulary,
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


def _beginning(term: Term) -> str:
    return folded(term.written)[:_KEPT_LETTERS]


def _meant(vocabulary: _Vocabulary, form: str) -> dict[str, list[str]]:
    """Return the words one slip from a form, by what the index holds for them."""
    forms = sorted(misspellings(form))
    meant_by: dict[str, list[str]] = {}
    for token, meant in zip(vocabulary.tokens(forms), forms, strict=True):
        meant_by.setdefault(token, []).append(meant)
    return meant_by

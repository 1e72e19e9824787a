"""The terms of a query: its words, which of them are names, and their alternatives in the store.

Words are matched by Porter's English stems, as FTS5 does. Forms that stemming does not reach are
looked for in the store's own vocabulary, and only those that occur there are used:

==============  ====================================================================================
inflection      words with the same stem in the languages of the store and of the query (Snowball);
                irregular English plurals and verbs, and German verbs, which count ``IRREGULAR`` of
                the word itself
spelling        umlauts and other letters written out; Greek accents; Arabic articles and other
                words that are attached to the next one; full-width letters
compounds       words of the query as a single word in the store; a word of the query in two parts,
                or, in languages with closed compounds, one of its parts, which counts ``PART``; an
                identifier in its parts, "getUserById" for "get_user_by_id", and the reverse; a
                number in groups, "1,250" for "1250"; a hyphen, "e-mail" for "email"
same words      short and full forms, "repo" and "repository", and British and American spelling.
                They count ``SAME``
answers         of a few words that no memory has, what may say it: "moved" for "live". They count
                ``ANSWERING``
misspellings    words one edit away, and for long words two, if nothing else is known of a word.
                They count ``MISSPELT`` of the word itself
shortenings     longer words that begin with an unknown one, "PostgreSQL" for "postgres", and names
                of which it is the first word. They count ``SHORTENED``
hashes          of Git, the full hash for an abbreviated one and the reverse
==============  ====================================================================================
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.services.search.corrections import (
    answers,
    correction_of,
    corrections,
    other_lengths,
)
from agent_memory.services.search.date_terms import with_dates
from agent_memory.services.search.request import SearchRequest
from agent_memory.services.search.runs import LONGEST, runs_of
from agent_memory.services.search.vocabulary import MOST_ALTERNATIVES, Alternatives, Vocabulary
from agent_memory.storage.engine import Engine
from agent_memory.storage.query_terms import has_dense
from agent_memory.storage.records import Alternative, Term
from agent_memory.text.languages import (
    FUNCTION_WORDS,
    JOINING,
    are_capitals_ordinary,
    is_function_pair,
    language_of_query,
    languages_in,
    languages_of,
)
from agent_memory.text.light_words import LIGHT_WORDS
from agent_memory.text.same_words import same_words
from agent_memory.text.word_forms import (
    LINKS,
    attached,
    cuts,
    folded,
    german_forms,
    in_pieces,
    irregular_forms,
    is_plain,
    other_width,
    pieces,
    spellings,
    splits,
    written_apart,
)

if TYPE_CHECKING:
    from Stemmer import Stemmer  # type: ignore[import-not-found]

SAMPLE: Final = 24
"""The newest memories, from which the languages of a store are detected."""
SAMPLE_CHARACTERS: Final = 250
"""Characters that are read of each."""
MOST_VARIED: Final = 16
"""Words of a query for which other forms are looked for: the first and the last."""

IRREGULAR: Final = 0.9
"""The weight of an irregular form relative to the word: it may be another word, as "left" may."""
SAME: Final = 0.75
"""The weight of a short or full form, or of the spelling of another country."""
PART: Final = 0.5
"""The weight of a part of a compound relative to the whole."""
_SHORTEST_HEAD: Final = 5
_SHORTEST_TAIL: Final = 4
"""Minimum letters of such parts. A compound's end says what it is: "Hochzeit" is nothing high."""
_SHORTEST: Final = 3
"""Minimum letters of a word that has other forms, of its stem, and of the parts of a compound."""
_SHORTEST_COMPOUND: Final = 8
"""Minimum letters of a word that is split. In languages with open compounds the word must be
unknown, and its parts must be adjacent; then they may be as short as in "log in"."""
_SHORTEST_PART: Final = 2
_MANY_CUTS: Final = 7
_MOST_LONG: Final = 4
"""Only so many of a query's names and numbers (the first) are split if they have more places to
split than ``_MANY_CUTS``. With 64 numbers of 24 digits each, a search took 690 ms."""
_MOST_WAYS: Final = 200
"""How many ways to split a name or a number are considered, how many are looked up (the rarest
pieces first), and how many are used. A telephone number of ten digits has 34."""
_MOST_LOOKED_UP: Final = 16
_MOST_TAKEN: Final = 3


def with_terms(engine: Engine, request: SearchRequest) -> SearchRequest:
    """Add the terms of its query to a request, with their alternatives in the store."""
    return with_dates(engine, _with_words(engine, request))


def _with_words(engine: Engine, request: SearchRequest) -> SearchRequest:
    terms = _with_light_pairs(engine.keywords.terms_of(request.query))
    has_pairs = any(term.is_pair for term in terms)
    if all(term.is_pair or term.is_prefix for term in terms):
        return request._replace(terms=terms, is_english=not has_pairs)
    sample = tuple(
        engine.memories.beginnings(request.scope, characters=SAMPLE_CHARACTERS, limit=SAMPLE)
    )
    language = language_of_query(sample, request.query)
    function_words = FUNCTION_WORDS[language] if language else ()
    asked = [term for term in terms if term.written.lower() not in function_words] or terms
    is_english = language == "english" or (language is None and request.query.isascii())
    return request._replace(
        terms=_varied(engine, request, asked, sample, language),
        is_english=is_english and not has_pairs,
    )


def _varied(
    engine: Engine,
    request: SearchRequest,
    terms: list[Term],
    sample: tuple[str, ...],
    language: str | None,
) -> list[Term]:
    """Add to terms their alternatives, and which of them are names or say little.

    ``language`` is that of the query, if it is known.
    """
    variable = [term for term in terms if _is_variable(term)]
    if len(variable) > MOST_VARIED:  # the question stands before or after pasted text
        half = MOST_VARIED // 2
        variable = variable[:half] + variable[-half:]
    vocabulary = Vocabulary(engine, request)
    known = vocabulary.known(variable)
    unknown = {term.word for term in variable} - known.keys()
    languages = languages_of(sample, request.query)
    # "Kind" and "see" mean a child and a lake in German.
    light_words = LIGHT_WORDS if languages == {"english"} else ()
    if are_capitals_ordinary(sample, request.query):
        terms = [term._replace(is_name=False) for term in terms]
    elif request.query.islower():
        terms = _with_names(terms, vocabulary, known, light_words)
    forms = _Forms(vocabulary, request.query, terms, variable, unknown, languages)
    alternatives = forms.alternatives()
    unmatched = unknown - alternatives.keys()
    asked_in = JOINING if language is None else JOINING & {language}
    has_compounds = not asked_in.isdisjoint(languages_in(sample))
    is_english = language == "english" or languages == {"english"}
    meant = corrections(
        vocabulary,
        [term for term in variable if term.word in unmatched],
        {term.word for term in terms},
        is_english=is_english,
        has_compounds=has_compounds,
    )
    alternatives |= meant
    if is_english:
        unanswered = unmatched - alternatives.keys()
        alternatives |= answers(vocabulary, [term for term in variable if term.word in unanswered])
    if has_compounds:
        alternatives |= forms.parts_of(unmatched - alternatives.keys())
    alternatives |= other_lengths(vocabulary, terms)
    has_wide = has_dense(request.query) or any(map(has_dense, sample))
    alternatives = _with_widths(vocabulary, terms, alternatives, has_wide=has_wide)
    corrected = meant if is_english else {}
    return [
        term._replace(
            alternatives=alternatives.get(term.word, ()),
            correction=correction_of(vocabulary, term, corrected.get(term.word, ())),
            is_light=term.is_light or (not term.is_name and term.written.lower() in light_words),
        )
        for term in terms
    ]


def _with_names(
    terms: Sequence[Term],
    vocabulary: Vocabulary,
    known: Mapping[str, int],
    light_words: Collection[str],
) -> list[Term]:
    """Mark the terms of a query without capitals that memories write as names."""
    return [
        term._replace(
            is_name=term.written not in light_words
            and vocabulary.is_name(term.word, term.written, known.get(term.word, 0))
        )
        for term in terms
    ]


def _with_widths(
    vocabulary: Vocabulary, terms: Iterable[Term], alternatives: Alternatives, *, has_wide: bool
) -> Alternatives:
    """Add to the alternatives of words their spelling in letters of another width.

    ``has_wide`` is whether the store or the query uses a script that has such letters.
    """
    widths = {
        term.word: width
        for term in terms
        if (has_wide or not term.written.isascii()) and (width := other_width(term.written))
    }
    if not widths:
        return alternatives
    token_of = dict(zip(widths, vocabulary.tokens(list(widths.values())), strict=True))
    counts = vocabulary.counts(set(token_of.values()), ())
    known = {word: token for word, token in token_of.items() if token in counts}
    added = {
        word: (*alternatives.get(word, ()), Alternative((token,), widths[word]))
        for word, token in known.items()
    }
    return alternatives | added


def _with_light_pairs(terms: list[Term]) -> list[Term]:
    """Mark the pairs of characters that are function words, unless the query has nothing else."""
    light = {term.word for term in terms if term.is_pair and is_function_pair(term.written)}
    if len(light) == len(terms):
        return terms
    return [term._replace(is_light=term.word in light) for term in terms] if light else terms


def _is_variable(term: Term) -> bool:
    return (
        term.written.isalpha() and not term.is_prefix and _SHORTEST <= len(term.written) <= LONGEST
    )


# Forms --------------------------------------------------------------------------------------------


class _Word(NamedTuple):
    """A word of the query: its form as in the index but not stemmed, its spellings and its stems.

    ``irregular`` has its irregular forms, ``whole`` these and all other single words that can
    replace it.
    """

    term: Term
    form: str
    spellings: frozenset[str]
    stems: frozenset[tuple[str, str]]
    irregular: frozenset[str]
    whole: frozenset[str]


class _Forms:
    """The forms of a query's words in the store: inflected, spelt differently, joined."""

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
        self._is_english = not languages or "english" in languages
        self._runs = runs_of(query, terms, variable, is_english=self._is_english)
        self._cuts_of = _cuts_of(terms)
        self._same_as = {
            term.word: same_words(term.written.lower())
            for term in terms
            if not term.is_prefix and len(term.written) <= LONGEST
        }
        self._unknown = unknown
        self._function_words = {word for each in languages for word in FUNCTION_WORDS[each]}
        self._stemmers = _stemmers(languages)
        self._joins = not JOINING.isdisjoint(languages)
        self._words = [self._word(term) for term in variable]
        self._splits_of = {word.form: list(self._splits(word)) for word in self._words}
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
        irregular = frozenset(self._irregular(term, form))
        whole = irregular.union(others, joined, self._bare_stems(stems))
        return _Word(term, form, others, stems, irregular, whole)

    def alternatives(self) -> Alternatives:
        """Return the forms that occur in the store, by the word of the term."""
        self._look_up(self._sought())
        forms_of: dict[str, list[Alternative]] = defaultdict(list)
        for word in self._words:
            own = forms_of[word.term.word]
            own += self._known(word.whole - word.irregular)
            own += [form._replace(weight=IRREGULAR) for form in self._known(word.irregular)]
            own += self._in_two(self._splits_of[word.form])
            own += self._apart(word)
        for term_word, same in self._same_as.items():
            forms_of[term_word] += [form._replace(weight=SAME) for form in self._known(same)]
        for term_word, (name, places) in self._cuts_of.items():
            forms_of[term_word] += self._in_pieces(name, places)
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

    def _sought(self) -> set[str]:
        """Return all forms to look up."""
        parts = {part for ways in self._splits_of.values() for way in ways for part in way}
        forms = parts.union(self._runs, *map(self._stemmed, parts), *self._same_as.values())
        for name, places in self._cuts_of.values():
            forms |= pieces(name, places)
        for word in self._words:
            forms |= word.whole
            for head, tail, _ in written_apart(word.form, is_english=self._is_english):
                forms |= {head, tail}
            if self._joins and word.term.word in self._unknown:
                heads = (head for head, _ in self._splits_of[word.form])
                forms.update(form for head in heads for form in _with_link(head))
        return forms

    def _chosen(self, word: str, alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
        others = [alternative for alternative in alternatives if alternative.words != (word,)]
        return self._vocabulary.commonest(others, self._counts, MOST_ALTERNATIVES)

    def _irregular(self, term: Term, form: str) -> set[str]:
        forms = irregular_forms(form) if self._is_english else set()
        # A noun has no verb forms: "Besen" (a broom) is not "besten" (the best).
        may_be_verb = "german" in self._stemmers and term.written.islower()
        return forms | german_forms(form) if may_be_verb else forms

    def _bare_stems(self, stems: Iterable[tuple[str, str]]) -> set[str]:
        """Return the stems that are words of their own: "haus", which English stems to "hau"."""
        return {
            stem
            for language, stem in stems
            if folded(self._stemmers[language].stemWord(stem)) == stem
        }

    def _look_up(self, forms: Iterable[str]) -> None:
        """Look up which of some forms occur in the store, and what begins as the words do."""
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
            for form in sorted(forms)  # the order of a set differs from process to process
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

    def parts_of(self, words: Collection[str]) -> Alternatives:
        """Return parts of compounds that the store does not have: the longest part at each end.

        A question about the "Zahnarzttermin" is answered by what is said about the "Zahnarzt".
        """
        compounds = [
            word for word in self._words if word.term.word in words and is_plain(word.term.written)
        ]
        parts_of = {word.term.word: self._parts(word) for word in compounds}
        return {word: tuple(parts) for word, parts in parts_of.items() if parts}

    def _parts(self, word: _Word) -> list[Alternative]:
        ways = self._splits_of[word.form]
        heads = {head for head, _ in ways if len(head) >= _SHORTEST_HEAD}
        tails = {tail for _, tail in ways if len(tail) >= _SHORTEST_TAIL}
        parts = []
        for ends in (heads, tails):
            known = sorted(
                (len(end), form)
                for end in ends
                for form in (*_with_link(end), *self._stemmed(end))
                if len(form) >= _SHORTEST_TAIL and form not in self._function_words
                if self._tokens.get(form) in self._counts
            )
            longest = (Alternative((self._tokens[form],), form, PART) for _, form in known[::-1])
            # A longer one may occur only in another user's memories.
            parts += list(islice(filter(self._vocabulary.stands, longest), 1))
        return parts

    def _in_two(self, ways: Iterable[tuple[str, str]]) -> list[Alternative]:
        """Return the split of a word whose shorter part is longest, if there is one."""
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
        both = [Alternative(words[0], " ".join(known[0]))] if words else []
        return list(filter(self._vocabulary.stands, both))

    def _apart(self, word: _Word) -> list[Alternative]:
        """Return a word as two with a sign or a space between them, if it is written so.

        The index alone cannot tell: "atop" would match "a top score", and "season" "the sea on".
        """
        return [
            phrase._replace(written=written)
            for *forms, signs in written_apart(word.form, is_english=self._is_english)
            for phrase in self._side_by_side(forms)
            for written in (sign.join(forms) for sign in signs)
            if self._vocabulary.is_written(phrase, written)
        ][:1]

    def _in_pieces(self, name: str, places: Sequence[int]) -> list[Alternative]:
        """Return the ways in which an identifier or a number occurs in the store in pieces."""
        known = {piece for piece in pieces(name, places) if self._tokens[piece] in self._counts}
        ways = sorted(
            islice(in_pieces(name, places, known), _MOST_WAYS),
            key=lambda way: min(self._counts[self._tokens[piece]] for piece in way),
        )
        phrases = (phrase for way in ways[:_MOST_LOOKED_UP] for phrase in self._side_by_side(way))
        return list(islice(phrases, _MOST_TAKEN))

    def _side_by_side(self, forms: Sequence[str]) -> list[Alternative]:
        """Return the phrase of some words, if they occur as one."""
        words = tuple(self._tokens[form] for form in forms)
        phrase = Alternative(words, " ".join(forms), is_phrase=True)
        is_known = self._counts.keys() >= set(words)
        return [phrase] if is_known and self._vocabulary.has(phrase) else []

    def _add_inflected(self, forms_of: dict[str, list[Alternative]]) -> None:
        """Add words of the vocabulary that have the stem of a query's word or join two of them."""
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
        """Return the two words of the query that form a compound, or nothing."""
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


def _cuts_of(terms: Iterable[Term]) -> dict[str, tuple[str, list[int]]]:
    """Return the identifiers and numbers among some terms, and where they may be split."""
    cuts_of: dict[str, tuple[str, list[int]]] = {}
    long = 0
    for term in terms:
        places = cuts(term.written) if len(term.written) <= LONGEST else []
        long += len(places) > _MANY_CUTS
        if len(places) > 2 and (len(places) <= _MANY_CUTS or long <= _MOST_LONG):
            cuts_of[term.word] = term.written.lower(), places
    return cuts_of


def _with_link(head: str) -> tuple[str, ...]:
    """Return the first part of a compound and its possible full forms: "Schule" for "Schulbus"."""
    return head, f"{head}e", f"{head}en"


def _stemmers(languages: Iterable[str]) -> "dict[str, Stemmer]":
    """Return Snowball's stemmers, which threads must not share. English is done by the index."""
    others = sorted(set(languages) - {"english"})
    if not others:
        return {}
    from Stemmer import Stemmer  # noqa: PLC0415 - 5 ms, for stores in other languages alone

    return {language: Stemmer(language, 0) for language in others}

"""What unknown words of a query may have meant: misspelt, shortened, hashes."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from agent_memory.runtime.package_files import PACKAGE
from agent_memory.services.search.vocabulary import MOST_ALTERNATIVES, Alternatives, Vocabulary
from agent_memory.storage.records import Alternative, Term
from agent_memory.text.same_words import answering_words
from agent_memory.text.word_forms import (
    cuts,
    folded,
    is_plain,
    is_within_two,
    misspellings,
    without_accents,
)

MOST_CORRECTED: Final = 8
"""Maximum words corrected per query: if more are unknown, most are simply not in the store."""
MOST_CORRECTIONS: Final = 3

ANSWERING: Final = 0.5
"""The weight of a word that may say what is asked for, relative to the word itself."""
MISSPELT: Final = 0.5
"""The weight of a correction relative to a word that occurs as asked."""
SHORTENED: Final = 0.75
"""The weight of a longer word relative to the word that it begins with."""
SHORTEST_SHORTENED: Final = 6
"""Minimum letters of a word that may be short for another: "plan" is not short for "plants"."""
SHORTEST_OF_COMPOUND: Final = 4
"""The same if it may be the first part of a compound: "Knie" for "Knieschmerzen"."""
SHORTEST_MISSPELT: Final = 5
"""Minimum letters of a word that is corrected: most shorter ones are one edit from many others."""
SHORTEST_TWICE_MISSPELT: Final = 8
"""The same for two edits."""
_KEPT_LETTERS: Final = 3
"""Letters of a misspelt word's beginning by which its neighbours are read from the vocabulary. For
an error among these letters, each possible correction is looked up: 20 µs apiece."""

MOST_HASHES: Final = 4
"""The maximum number of hashes of a query for which longer and shorter ones are looked up."""

_HASH: Final = re.compile(r"(?=.*[a-f])(?=.*[0-9])[0-9a-f]{7,40}")
"""A commit hash of Git, full or abbreviated. A number alone may be anything."""
_SHORTEST_HASH: Final = 7
_WORD: Final = re.compile(r"\w+")
_INFLECTIONS: Final = (
    ("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("ed", "e"), ("ied", "y"),
    ("ing", ""), ("ing", "e"), ("er", ""), ("er", "e"), ("ly", ""),
)  # fmt: skip
"""The ending of a form of an English word, and what its base has in place of it."""


# Hashes -------------------------------------------------------------------------------------------


def other_lengths(vocabulary: Vocabulary, terms: Iterable[Term]) -> Alternatives:
    """Return the hashes of the store that begin with one of the query's, or are its beginning."""
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


# Answers ------------------------------------------------------------------------------------------


def answers(vocabulary: Vocabulary, unknown: Sequence[Term]) -> Alternatives:
    """Return the words of the vocabulary that may say what unknown words ask for."""
    forms_of = {term.word: answering_words(term.written.lower()) for term in unknown}
    forms = sorted({form for forms in forms_of.values() for form in forms})
    if not forms:
        return {}
    token_of = dict(zip(forms, vocabulary.tokens(forms), strict=True))
    counts = vocabulary.counts(set(token_of.values()), ())
    alternatives = {
        word: vocabulary.commonest(
            [Alternative((token_of[f],), f, ANSWERING) for f in forms if token_of[f] in counts],
            counts,
            MOST_ALTERNATIVES,
        )
        for word, forms in forms_of.items()
    }
    return {word: several for word, several in alternatives.items() if several}


# Misspellings -------------------------------------------------------------------------------------


def corrections(
    vocabulary: Vocabulary,
    unknown: Sequence[Term],
    asked_words: Collection[str],
    *,
    is_english: bool,
    has_compounds: bool,
) -> Alternatives:
    """Return the words of the vocabulary that unknown words may have meant.

    A word in ``asked_words`` is no correction of another: "Java and JavaScript" means both.
    ``is_english`` is whether the query is in English, as far as that is known, ``has_compounds``
    whether the store is in a language that writes compounds as one word.
    """
    misspelt = [term for term in unknown if len(term.written) >= SHORTEST_MISSPELT]
    short = [term for term in unknown if len(term.written) < SHORTEST_MISSPELT]
    corrected = [*misspelt[:MOST_CORRECTED], *short[:MOST_CORRECTED]]
    if not corrected:
        return {}
    meant_by = {term.word: _meant(vocabulary, term) for term in corrected}
    counts = vocabulary.counts(
        {
            token
            for term in corrected
            for beginning in [_beginning(term)]
            for token, forms in meant_by[term.word].items()
            if not any(form.startswith(beginning) for form in forms)
        },
        map(_beginning, corrected),
    )
    counts = {token: count for token, count in counts.items() if token not in asked_words}
    chosen = {
        term.word: _meant_instead(
            vocabulary,
            term,
            meant_by[term.word],
            counts,
            is_english=is_english,
            may_be_part=has_compounds and is_plain(term.written),
        )
        for term in corrected
    }
    return {word: alternatives for word, alternatives in chosen.items() if alternatives}


def correction_of(vocabulary: Vocabulary, term: Term, meant: Iterable[Alternative]) -> str:
    """Return the word that a term of an English query most likely meant, or nothing.

    Stricter than for keywords, where the word itself still counts: "horses" are no "houses", though
    no memory has any, nor is "angel" the "angl" that "angles" has in the index.
    """
    if term.is_name or _is_english(term.written.lower()):
        return ""
    spellings = (
        each.written
        for each in meant
        if each.weight == MISSPELT
        if each.written in _english_words() or each.written in vocabulary.words_of(each.words[0])
    )
    return next(spellings, "")


def _is_english(word: str) -> bool:
    """Return whether a word, or what it may be a form of, is a common word of English."""
    return any(
        word.endswith(ending) and word.removesuffix(ending) + base in _english_words()
        for ending, base in _INFLECTIONS
    )


def corrected(query: str, terms: Iterable[Term]) -> str:
    """Return a query with its misspelt words corrected.

    Of these an embedding model knows only some pieces: with a slip in the longest word wordllama
    found the answers to 91.3 percent of Debian's questions for 95.3, and now finds 93.3.
    """
    meant = {term.written: term.correction for term in terms if term.correction}
    return _WORD.sub(lambda word: meant.get(word[0], word[0]), query) if meant else query


def _meant_instead(
    vocabulary: Vocabulary,
    term: Term,
    meant: Mapping[str, list[str]],
    counts: Mapping[str, int],
    *,
    is_english: bool,
    may_be_part: bool,
) -> tuple[Alternative, ...]:
    """Return what an unknown word most likely meant, among the words of the store."""
    form = folded(term.written)
    near = {token: meant[token] for token in meant.keys() & counts.keys()}
    # "Miete" begins "Mietvertrag" without its e.
    shortest = SHORTEST_OF_COMPOUND if may_be_part else SHORTEST_SHORTENED
    beginning = form.removesuffix("e") if may_be_part and len(form) > shortest else form
    longer = [token for token in counts if token.startswith(beginning)]
    chosen = _meant_for(vocabulary, term, near, counts, is_english=is_english)
    if not chosen:
        chosen = _names_from(vocabulary, form, longer, counts)
    if not chosen and len(beginning) >= shortest:
        unstemmed = {token: _unstemmed(token) for token in longer}
        chosen = _written(vocabulary, unstemmed, counts, SHORTENED)
    if not chosen and len(form) >= SHORTEST_TWICE_MISSPELT:
        near = _within_two(vocabulary, term, counts)
        chosen = _meant_for(vocabulary, term, near, counts, is_english=is_english)
    return chosen


def _meant_for(
    vocabulary: Vocabulary,
    term: Term,
    near: Mapping[str, Iterable[str]],
    counts: Mapping[str, int],
    *,
    is_english: bool,
) -> tuple[Alternative, ...]:
    """Return the words near an unknown one that may have been meant by it.

    For a word of English these are names alone: "snakes" does not mean "snacks", but "brian" may
    mean "Bryan".
    """
    chosen = _written(vocabulary, near, counts, MISSPELT)
    may_be_correct = is_english and bool(chosen) and not term.is_name
    if may_be_correct and term.written.lower() in _english_words():
        return tuple(each for each in chosen if _is_name(vocabulary, each))
    return chosen


@cache
def _english_words() -> frozenset[str]:
    """Return the commonest words of Wikipedia and of books: MiniLM's vocabulary, without accents.

    It has pieces of words too, which begin with "##".
    """
    path = PACKAGE.joinpath("embeddings", "bert_vocabulary.txt")
    return frozenset(path.read_text("utf-8").split())


def _is_name(vocabulary: Vocabulary, alternative: Alternative) -> bool:
    """Return whether a word is always capitalized in the newest memories that have it."""
    words = vocabulary.names(alternative.words[0], alternative.written)
    return bool(words) and all(word[0].isupper() for word in words)


def _names_from(
    vocabulary: Vocabulary, form: str, longer: Iterable[str], counts: Mapping[str, int]
) -> tuple[Alternative, ...]:
    """Return identifiers with this first word: "MongoDB" for "mongo", "ntp1" for "ntp".

    Such a word may be short, since the identifier's spelling shows where it ends.
    """
    tokens = (Alternative((token,), token, SHORTENED) for token in longer)
    commonest = vocabulary.commonest(tokens, counts, 2 * MOST_CORRECTIONS)
    names = [
        alternative
        for alternative in commonest
        if any(cuts(name)[1] == len(form) for name in vocabulary.names(alternative.words[0], form))
    ]
    return tuple(names[:MOST_CORRECTIONS])


def _within_two(vocabulary: Vocabulary, term: Term, counts: Iterable[str]) -> dict[str, list[str]]:
    """Return the words two edits from a term, by their token in the index.

    Comparing stems alone is not enough: the stem of "deviation" is as near to that of "device".
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
    """Return the words near an unknown one that a memory spells like this, the commonest."""
    tokens = (Alternative((token,), token, weight) for token in near)
    corrections = []
    for alternative in vocabulary.commonest(tokens, counts, 2 * MOST_CORRECTIONS):
        (token,) = alternative.words
        form = vocabulary.written(token, near[token])
        if form is not None:
            corrections.append(alternative._replace(written=form))
    return tuple(corrections[:MOST_CORRECTIONS])


def _unstemmed(token: str) -> list[str]:
    """Return the possible spellings of a token: the stem of "therapy" is "therapi"."""
    return [token, token.removesuffix("i") + "y"] if token.endswith("i") else [token]


def _beginning(term: Term) -> str:
    return folded(term.written)[:_KEPT_LETTERS]


def _meant(vocabulary: Vocabulary, term: Term) -> dict[str, list[str]]:
    """Return the words one edit from a word, by their token in the index."""
    if len(term.written) < SHORTEST_MISSPELT:
        return {}
    forms = sorted(misspellings(folded(term.written)))
    meant_by: dict[str, list[str]] = {}
    for token, meant in zip(vocabulary.tokens(forms), forms, strict=True):
        meant_by.setdefault(token, []).append(meant)
    return meant_by

"""Decides when two texts say the same, by forms in which equal statements are written alike.

A corrected value must never pass for a duplicate, so only what cannot carry meaning is dropped:
case, white space, punctuation between clauses and at the end, articles and a few fillers. The order
of the words counts ("tabs over spaces"), numbers and names keep every sign in them ("-5", "v1.2",
"C++"), and no word is stemmed. A missed duplicate costs less than a lost correction.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from itertools import compress, count
from operator import ne
from typing import Final


class DuplicateGrade(StrEnum):
    """How closely two memories say the same.

    ``exact``: the same text except for case, white space and a full stop or "!" at the end.
    ``near``: the same words in the same order, except for commas and fillers. ``similar``: most
    words are the same, but something differs, perhaps because it was corrected.
    """

    EXACT = "exact"
    NEAR = "near"
    SIMILAR = "similar"


SIMILAR_SHARE: Final = 0.6
"""The share of all words of two texts that both must have to be similar."""
SIMILAR_WORDS: Final = 4
"""Distinct words that a text needs to be similar to another."""

_SPACES: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")
# NFKC turns 10² into 102, and 1½ into something that begins with 11: these are left alone.
_SMALL_DIGITS: Final = re.compile("([ª²³¹º¼½¾\u2070-\u209f\u2150-\u218b]+)")
_SPELLING: Final = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"',
        "\u2212": "-",  # the minus sign
        "\u00ad": None, "\u200b": None, "\u200e": None, "\u200f": None, "\ufeff": None,
    }
)  # fmt: skip
_MARKS: Final = ".,;:…。!"
# Marks at the end of a word, but not those that are part of it: "..", "*.", and "5!", a factorial.
_END_MARKS: Final = re.compile(
    r"""(?<=[^\s!$&(*,\-./:;<=>?@\[\\^_`{|~])[.,;:…。]+$"""
    r"""|(?:(?<=[^\W\d_])|(?<=["')\]]))!+[.!…]*$"""
)
_LEADING_MARKS: Final = re.compile(r"^[\W_]+")
_SENTENCE_ENDS: Final = frozenset(".!?…。")
# In a word with one of these, case may matter, as in passwords, paths and names in code.
_CODE: Final = re.compile(r"[\d_/\\=<>()\[\]{}|]")

# "just" is left out: it can mean "only".
_LEADING_FILLERS: Final = frozenset({"a", "an", "the", "that", "very", "really"})
_FILLERS: Final = _LEADING_FILLERS | {"also", "please"}
_NEGATIONS: Final = frozenset(
    "no not never nor neither none nothing nobody without cannot hardly barely yes".split()
)
# First words of a phrase that may come in front, up to a comma, or at the end.
_FRONTED: Final = frozenset(
    """
    after at because before by during for from if in inside on since unless until when whenever
    while with within without
    """.split()
)
_SENTENCE_BREAK: Final = "\n"
DENSE: Final = "\u0e00-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts without spaces between words; each character counts as a word."""
_DENSE: Final = re.compile(f"[{DENSE}]")


def one_line(text: str) -> str:
    """Return a text with every run of white space or control characters as one space."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return _SPACES.sub(" ", text).strip()


def exact_form(text: str) -> str:
    """Return a text without case, white space and the marks at its end, "?" apart.

    Case is kept where it may matter: in words with a digit or a sign of code, with a capital after
    the first letter ("OpenAI", "BobSmith", and "US" unless everything is in capitals), and for a
    single letter or an article inside a sentence ("vitamin A", "The Hague").
    """
    words = _lowered(one_line(text if text.isascii() else _compatible(text)))
    words[-1] = _without_end_marks(words[-1])
    return " ".join(words)


def _compatible(text: str) -> str:
    """Return Unicode's compatible form (NFKC): full-width letters are letters."""
    pieces = _SMALL_DIGITS.split(text)  # the small digits are at the odd places
    pieces[::2] = [unicodedata.normalize("NFKC", piece) for piece in pieces[::2]]
    return "".join(pieces).translate(_SPELLING)


def _without_end_marks(word: str) -> str:
    """Return a word without the marks at its end that are no part of it.

    It is looked for among the last marks alone: from each mark of a row inside a word, the pattern
    would go through the rest of the row.
    """
    bare = word.rstrip(_MARKS)
    if len(bare) == len(word):
        return word
    match = _END_MARKS.search(word, len(bare))
    return word[: match.start()] if match else word


def _lowered(line: str) -> list[str]:
    """Return the words of a line in lower case, but for those whose case may matter."""
    words = line.split(" ")
    # Not casefold(): it makes "Maße" (measures) the same as "Masse" (mass).
    lowered = line.lower().split(" ")
    is_shouted = line.isupper()
    for place in compress(count(), map(ne, words, lowered)):
        word = words[place]
        # Most words with a capital have no other capital and no sign: this check takes a sixth of
        # the time.
        if word[1:].islower() and word.isalpha() and lowered[place] not in _FILLERS:
            continue
        is_first = place == 0 or words[place - 1][-1:] in _SENTENCE_ENDS
        if (
            _CODE.search(word)
            or (not is_shouted and _has_inner_capital(word))
            or (not is_first and _is_name(word))
        ):
            lowered[place] = word
    return lowered


def _has_inner_capital(word: str) -> bool:
    """Return whether a letter after the first is a capital, in a word that is no filler."""
    if word[1:].islower() and word[0].isalnum():
        return False
    bare = _LEADING_MARKS.sub("", word)
    return bare[1:] != bare[1:].lower() and _without_end_marks(bare).lower() not in _FILLERS


def _is_name(word: str) -> bool:
    """Return whether a short word is a name because it has a capital inside a sentence."""
    bare = word if word.isalnum() else _without_end_marks(word)
    if len(bare) == 1:
        return bare != "I"
    return bare.lower() in _FILLERS and not bare.isupper()


def near_form(exact: str) -> str:
    """Return the words of an exact form that count; near duplicates have the same.

    Commas, colons, full stops, articles and fillers are removed, unless they may decide what is
    negated ("no, more tests"). An introductory phrase ("For new projects, use …") is moved to the
    end.
    """
    sentences: list[list[str]] = []
    commas: list[int] = []
    words = exact.split(" ")
    start = 0
    for place in compress(count(), [not word.isalnum() for word in words]):
        written = words[place]
        if written[-1:].isalnum():
            continue
        bare = _without_end_marks(written)
        if bare != written and _is_negation(bare):
            bare = written
        words[place] = bare
        mark = written[-1:]
        if mark in _SENTENCE_ENDS and (bare != written or mark == "?"):
            sentences.append(_sentence(words[start : place + 1], commas))
            start, commas = place + 1, []
        elif bare != written:
            commas.append(place + 1 - start)
    if start < len(words):
        sentences.append(_sentence(words[start:], commas))
    return f" {_SENTENCE_BREAK} ".join(" ".join(sentence) for sentence in sentences)


def _is_negation(word: str) -> bool:
    word = word.lower()  # "NOT" keeps its capitals
    return word in _NEGATIONS or word.endswith("n't")


def _sentence(words: list[str], commas: list[int]) -> list[str]:
    """Return a sentence in the order that counts, without fillers; ``commas`` follow words."""
    if len(commas) == 1 and words[0] in _FRONTED and 1 < commas[0] < len(words):
        words = words[commas[0] :] + words[: commas[0]]
    if _FILLERS.isdisjoint(words):
        return words
    return [
        word
        for place, word in enumerate(words)
        if word not in _FILLERS or not _is_filler(words, place)
    ] or words


def _is_filler(words: list[str], place: int) -> bool:
    """Return whether one of the fillers is none of what counts where it stands."""
    word = words[place]
    if place and _is_negation(words[place - 1]):
        return False  # "not very important" is not "not important"
    if word not in _LEADING_FILLERS:
        return True
    # An article comes before a word; "option a" and "a = 5" have none.
    return place + 1 < len(words) and words[place + 1][:1].isalnum()


def words_of(text: str) -> frozenset[str]:
    """Return the different words of a text that count, with each Chinese character as one."""
    near = near_form(exact_form(text))
    words: set[str] = set()
    for word in near.split():
        letters = [] if word.isascii() else _DENSE.findall(word)
        words.update(letters or [word])
    return frozenset(words)


def share_of_words(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the share of all words of two texts that both have, from 0 to 1."""
    return len(first & second) / (len(first | second) or 1)


def grade_of(first: str, second: str) -> DuplicateGrade | None:
    """Return whether two texts say the same: exactly, in the same words, or not (``None``)."""
    exact, other_exact = exact_form(first), exact_form(second)
    if exact == other_exact:
        return DuplicateGrade.EXACT
    return DuplicateGrade.NEAR if near_form(exact) == near_form(other_exact) else None

"""The forms in which a word may be written: misspelt, without accents, irregular, in parts.

Nothing here knows which words exist. Each function generates forms, and the caller keeps those that
the store has, so a form that is not a word does no harm.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, product
from typing import Final

LINKS: Final = ("", "s", "es", "n", "en", "e", "er")
"""Letters between the parts of a compound: "Arbeitsplatz", "Datenbank", "Sonnenschein"."""

_ATTACHED: Final = ("ال", "وال", "بال", "لل", "كال", "فال", "و", "ب", "ل", "ف", "ك")
"""Prefixes that Arabic attaches to a word: the article, "and", "with", "for", "so", "as". A prefix
that another one begins with comes after that one.
"""
_SHORTEST_BARE: Final = 3
"""The fewest letters of an Arabic word after a prefix: "ورق" is paper, not "and" with "رق"."""

_SEPARABLE: Final = (
    "ab", "an", "auf", "aus", "bei", "durch", "ein", "fest", "her", "hin", "los", "mit", "nach",
    "statt", "teil", "um", "vor", "weg", "zu", "zuruck", "zusammen",
)  # fmt: skip
"""Prefixes of German verbs, also before the "ge" of the participle: "abholen", "abgeholt"."""
_ENDINGS_OF_VERBS: Final = ("en", "et", "te", "ten", "t")
_ENDINGS_AFTER_GE: Final = ("en", "et", "t")
_SHORTEST_STEM: Final = 3

_TO_FULL_WIDTH: Final = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_FROM_FULL_WIDTH: Final = {full: code for code, full in _TO_FULL_WIDTH.items()}

_ALPHABETS: Final = (
    ("a", "z", ""), ("α", "ω", "άέήίόύώ"), ("а", "я", "ё"), ("ա", "ֆ", ""), ("א", "ת", ""),
    ("ء", "ي", ""),
)  # fmt: skip
"""The first and last letter of each, and letters that Unicode has elsewhere."""
_WRITTEN_OUT: Final = {
    "ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "å": "aa", "œ": "oe",
    "þ": "th", "ð": "d", "đ": "d", "ł": "l", "ı": "i",
}  # fmt: skip
"""Letters that many keyboards lack, and what is typed instead."""
_AS_INDEXED: Final = {"ae": "aæ", "oe": "oøœ", "ue": "u", "ss": "ß", "aa": "a"}
"""What the index may have for what was typed: it stores "ä" as "a"."""
_MOST_DIGRAPHS: Final = 3
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_DIGITS: Final = re.compile("[0-9]+")
_MOST_PARTS: Final = 8
"""The most words of a name in which numbers are split too: a name with more is a hash."""
_SHORTEST_GROUPED: Final = 7
_LONGEST_GROUPED: Final = 24
"""The most digits of a number that people write in groups of any size: telephone, bank account."""
APOSTROPHES: Final = "'\u2019"
HYPHENS: Final = "-\u2010\u2011"
_PARTICLES: Final = ("in", "on", "out", "up", "off", "down", "over", "back", "away", "through")
"""Particles that English writes joined to a verb, with a hyphen, or apart: "setup", "set-up", "set
up".

No prefixes: for code, in which "nonlocal" and "non-local" both occur, nDCG@10 was 0.4 lower.
"""
BEFORE_APOSTROPHES: Final = ("o", "d")
"""As in "O'Brien" and "D'Angelo". In code, "f'its" is a string."""
_SHORTEST_APART: Final = 3
_MARKS: Final = re.compile("[\u0300-\u036f]+")
_NOT_BEFORE_UMLAUTS: Final = "aeiouq"
_GREEK_ACCENTS: Final = dict(zip("αεηιουω", "άέήίόύώ", strict=True))
_WITHOUT_GREEK_ACCENT: Final = {accented: bare for bare, accented in _GREEK_ACCENTS.items()}

_IRREGULAR: Final = tuple(
    pair.split("/")
    for pair in """
    child/children man/men woman/women person/people mouse/mice louse/lice goose/geese tooth/teeth
    foot/feet ox/oxen die/dice penny/pence half/halves calf/calves loaf/loaves leaf/leaves
    sheaf/sheaves thief/thieves shelf/shelves elf/elves self/selves wolf/wolves knife/knives
    life/lives wife/wives scarf/scarves hoof/hooves dwarf/dwarves wharf/wharves
    analysis/analyses basis/bases crisis/crises thesis/theses hypothesis/hypotheses
    diagnosis/diagnoses synopsis/synopses parenthesis/parentheses oasis/oases axis/axes
    emphasis/emphases synthesis/syntheses prognosis/prognoses neurosis/neuroses
    criterion/criteria phenomenon/phenomena automaton/automata datum/data medium/media
    curriculum/curricula bacterium/bacteria memorandum/memoranda stratum/strata
    spectrum/spectra millennium/millennia symposium/symposia erratum/errata addendum/addenda
    schema/schemata stigma/stigmata index/indices matrix/matrices vertex/vertices
    vortex/vortices appendix/appendices codex/codices helix/helices radix/radices
    alumnus/alumni cactus/cacti focus/foci fungus/fungi nucleus/nuclei radius/radii
    stimulus/stimuli syllabus/syllabi locus/loci terminus/termini bacillus/bacilli
    formula/formulae antenna/antennae larva/larvae alga/algae vertebra/vertebrae
    corpus/corpora genus/genera opus/opera quiz/quizzes
    arise/arose/arisen awake/awoke/awoken bend/bent bleed/bled blow/blew/blown
    break/broke/broken breed/bred bring/brought build/built burn/burnt buy/bought catch/caught
    choose/chose/chosen cling/clung creep/crept deal/dealt dig/dug draw/drew/drawn dream/dreamt
    drink/drank/drunk drive/drove/driven eat/eaten fall/fell/fallen feed/fed fight/fought flee/fled
    fly/flew/flown forbid/forbade/forbidden forget/forgot/forgotten forgive/forgave/forgiven
    freeze/froze/frozen grow/grew/grown hang/hung hear/heard hide/hid/hidden hold/held kneel/knelt
    learn/learnt leave/left lend/lent lose/lost meet/met mistake/mistook/mistaken
    oversee/oversaw/overseen overcome/overcame pay/paid rebuild/rebuilt repay/repaid
    rewrite/rewrote/rewritten ride/rode/ridden rise/risen run/ran seek/sought
    sell/sold send/sent sew/sewn shake/shook/shaken shine/shone shoot/shot shrink/shrank/shrunk
    sing/sang/sung sink/sank/sunk sit/sat sleep/slept slide/slid smell/smelt speak/spoke/spoken
    spell/spelt spend/spent spill/spilt spin/spun stand/stood steal/stole/stolen stick/stuck
    strike/struck swear/swore/sworn sweep/swept swell/swollen swim/swam/swum swing/swung
    teach/taught tear/tore/torn throw/threw/thrown undergo/underwent/undergone
    understand/understood undo/undid/undone wake/woke/woken wear/wore/worn weep/wept win/won
    withdraw/withdrew/withdrawn write/wrote/written
    """.split()
)
"""Irregular English nouns and past tenses, whose forms no stemmer brings together.

Left out are those that are other words too ("saw", "rose", and "ate" and "rang", which are stemmed
to "at" and "range"), and verbs of little meaning ("go", "make"): with those, BEAM's nDCG@10 was 0.4
lower.
"""
_NOUNS: Final = frozenset(("building", "drawing", "meeting"))
"""Words that look like a form of a verb, but are mostly nouns."""
_ENDING_OTHERS: Final = ("woman", "man", "person", "child", "life", "wife", "shelf", "leaf")
"""Those that end other words: "salesmen", "grandchildren", "bookshelves"."""


def folded(word: str) -> str:
    """Return a word in lower case without accents on Latin letters, as the index has it."""
    if word.isascii():
        return word.lower()
    return "".join(map(_without_accent, unicodedata.normalize("NFC", word.lower())))


def _without_accent(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base.isascii() else letter


def other_width(word: str) -> str:
    """Return an ASCII word in full-width letters, a full-width word in ASCII, or an empty text.

    Japanese and Chinese texts write "Wi-Fi" and "10" in either.
    """
    if word.isascii():
        return word.translate(_TO_FULL_WIDTH)
    plain = word.translate(_FROM_FULL_WIDTH)
    return plain if plain.isascii() else ""


def without_accents(text: str) -> str:
    """Return a text in lower case without any accents; fast for long texts."""
    lowered = text.lower()
    return lowered if lowered.isascii() else _MARKS.sub("", unicodedata.normalize("NFD", lowered))


# Irregular words ----------------------------------------------------------------------------------


def irregular_forms(word: str) -> set[str]:
    """Return the other forms of an irregular English word: its plural, its past tense."""
    table = _irregular_table()
    for base in _bases(word):
        if base in table:
            return {base, *table[base]} - {word}
    for singular in _ENDING_OTHERS:
        (plural,) = table[singular]
        for old, new in ((singular, plural), (plural, singular)):
            if word.endswith(old) and len(word) >= len(old) + 3:
                return {word.removesuffix(old) + new}
    return set()


def _bases(word: str) -> tuple[str, ...]:
    """Return a word, and of what verbs it may be a regular form: "choosing", "running", "buys"."""
    if word.endswith("ing") and word not in _NOUNS:
        stem = word.removesuffix("ing")
        return word, stem, f"{stem}e", stem[:-1]
    return word, word.removesuffix("s")


@cache
def _irregular_table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for forms in _IRREGULAR:
        for form in forms:
            others = (other for other in forms if other != form)
            table[form] = (*table.get(form, ()), *others)
    return table


def german_forms(word: str) -> set[str]:
    """Return forms of a German verb that no stemmer finds: "gekocht" and "kocht" for "kochen".

    Any word is treated as a verb; a form that does not exist is in no memory.
    """
    forms: set[str] = set()
    for before in ("", *_SEPARABLE):
        rest = word.removeprefix(before)
        if len(rest) + len(before) != len(word):
            continue
        for stem in _german_stems(rest):
            infinitive = "n" if stem.endswith(("er", "el")) else "en"  # "mauern"
            endings = (infinitive, *_ENDINGS_OF_VERBS)
            forms.update(f"{before}{stem}{ending}" for ending in endings)
            forms.update(f"{before}ge{stem}{ending}" for ending in _ENDINGS_AFTER_GE)
    return forms - {word}


def _german_stems(verb: str) -> Iterator[str]:
    """Yield what a verb may have before its ending: "koch" of "kochen", "kocht" and "gekocht"."""
    bare = verb.removeprefix("ge")
    if verb.endswith(("ern", "eln")):
        yield verb.removesuffix("n")
    for ending in _ENDINGS_OF_VERBS:
        if verb.endswith(ending) and len(verb) >= len(ending) + _SHORTEST_STEM:
            yield verb.removesuffix(ending)
        if ending in _ENDINGS_AFTER_GE and bare != verb and bare.endswith(ending):
            stem = bare.removesuffix(ending)
            if len(stem) >= _SHORTEST_STEM:
                yield stem


def attached(word: str, stem: str) -> set[str]:
    """Return an Arabic word and its stem, with and without the prefixes that may be attached.

    Whoever asks for "كتاب" means "والكتاب" too: of 396 questions 2.3 % found nothing, now 0.8 %.
    """
    bare = next(map(word.removeprefix, filter(word.startswith, _ATTACHED)), word)
    forms = {form for form in (word, stem, bare) if len(form) >= _SHORTEST_BARE}
    return forms | {beginning + form for beginning in _ATTACHED for form in forms}


def without_ending(word: str) -> str:
    """Return an English word without the ending of a plural, a tense or an adverb."""
    for ending in ("ally", "ies", "ing", "es", "ed", "ly", "s"):
        if word.endswith(ending) and len(word) >= len(ending) + 4:
            return word.removesuffix(ending)
    return word


# Spelling -----------------------------------------------------------------------------------------


def spellings(written: str) -> set[str]:
    """Return other spellings of a word: umlauts written out or restored, other accents.

    "Grüße" gives "gruesse" and "grusse", and "gruesse" gives "gruße", as the index has no umlauts.
    A Greek word is given with an accent on each vowel in turn, and with none.
    """
    word = unicodedata.normalize("NFC", written.lower())
    forms = {_written_out(word), _written_out(folded(word)), *_put_back(folded(word))}
    forms.update(_greek_forms(word))
    return {form for form in forms if form != folded(word)}


def _written_out(word: str) -> str:
    return "".join(_WRITTEN_OUT.get(letter, letter) for letter in word)


def _put_back(word: str) -> Iterator[str]:
    """Yield a word with its digraphs as the index may have them: "gruesse" as "gruße"."""
    pieces: list[tuple[str, ...]] = []
    place = digraphs = 0
    while place < len(word):
        digraph = word[place : place + 2]
        # No umlaut follows a vowel or a q: "neue", "Quelle".
        is_one = digraph in _AS_INDEXED and (
            digraph == "ss" or not place or word[place - 1] not in _NOT_BEFORE_UMLAUTS
        )
        if is_one and digraphs < _MOST_DIGRAPHS:
            pieces.append((digraph, *_AS_INDEXED[digraph]))
            digraphs += 1
        else:
            digraph = digraph[:1]
            pieces.append((digraph,))
        place += len(digraph)
    if digraphs:
        yield from map("".join, product(*pieces))


def _greek_forms(word: str) -> Iterator[str]:
    bare = "".join(_WITHOUT_GREEK_ACCENT.get(letter, letter) for letter in word)
    if not any(letter in _GREEK_ACCENTS for letter in bare):
        return
    endings = {bare, bare[:-1] + "ς"} if bare.endswith("σ") else {bare}
    for form in endings:
        yield form
        for place, letter in enumerate(form):
            if letter in _GREEK_ACCENTS:
                yield form[:place] + _GREEK_ACCENTS[letter] + form[place + 1 :]


# Misspellings -------------------------------------------------------------------------------------


def misspellings(word: str) -> set[str]:
    """Return every word one slip away: a letter more, less or different, or two swapped."""
    letters = _alphabet(word)
    forms: set[str] = set()
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        forms.update(before + letter + after for letter in letters)
        if after:
            forms.add(before + after[1:])
            forms.update(before + letter + after[1:] for letter in letters)
            forms.add(before + after[1:2] + after[0] + after[2:])
    forms.discard(word)
    return forms


def _alphabet(word: str) -> str:
    """Return the letters of the script that a word is written in; where unknown, its own."""
    for first, last, others in _ALPHABETS:
        if any(first <= letter <= last for letter in word):
            return "".join(map(chr, range(ord(first), ord(last) + 1))) + others
    return "".join(sorted(set(word)))


def is_within_two(word: str, other: str) -> bool:
    """Return whether two words are at most two slips apart."""
    if abs(len(word) - len(other)) > 2 or len(set(word) ^ set(other)) > 4:
        return False
    previous: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(word, 1):
        before, previous, row = previous, row, [place]
        for column, theirs in enumerate(other, 1):
            cost = min(
                previous[column] + 1,
                row[-1] + 1,
                previous[column - 1] + (letter != theirs),
            )
            is_swapped = (
                column > 1 < place and word[place - 2 : place] == theirs + other[column - 2]
            )
            row.append(min(cost, before[column - 2] + 1) if is_swapped else cost)
        if min(row) > 2:
            return False
    return row[-1] <= 2


# Names in code ------------------------------------------------------------------------------------


def is_plain(word: str) -> bool:
    """Return whether a word, by its capitals, is neither a name in code nor an abbreviation."""
    return word.islower() or word.istitle()


def cuts(name: str) -> list[int]:
    """Return where a name in code or a number may be split, including both of its ends.

    "getUserById" and "ENG771" are split where their words begin, a number at its thousands, and a
    long number, such as that of a telephone, anywhere.
    """
    if not name.isascii() or (name.isalpha() and is_plain(name)):
        return [0, len(name)]
    words = list(_PARTS.finditer(name))
    places = {0, len(name), *(word.start() for word in words)}
    if len(words) <= _MOST_PARTS:
        for word in words:
            places.update(_cuts_of_number(word) if word[0].isdecimal() else ())
    return sorted(places)


def _cuts_of_number(number: re.Match[str]) -> Iterable[int]:
    start, end = number.span()
    if end - start < _SHORTEST_GROUPED:
        return (end - 3,) if end - start > 3 else ()
    return range(start + 1, end) if end - start <= _LONGEST_GROUPED else ()


def pieces(name: str, places: Sequence[int]) -> set[str]:
    """Return all the pieces that a name split at some of these places may have."""
    return {name[start:end] for start, end in _spans(name, places)}


def in_pieces(name: str, places: Sequence[int], known: Collection[str]) -> Iterator[list[str]]:
    """Yield the ways to split a name at some of these places into two or more known pieces."""
    following: dict[int, list[int]] = {}
    for start, end in _spans(name, places):
        if name[start:end] in known:
            following.setdefault(start, []).append(end)
    leading = {len(name)}  # places from which the end of the name can be reached
    for start in reversed(places):
        if not leading.isdisjoint(following.get(start, ())):
            leading.add(start)
    unfinished: list[tuple[int, list[str]]] = [(0, [])]
    while unfinished:
        start, way = unfinished.pop()
        if start == len(name):
            yield way
            continue
        ends = leading.intersection(following.get(start, ()))
        unfinished += [(end, [*way, name[start:end]]) for end in ends]


def _spans(name: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where each piece of a name begins and ends. A single digit is one before thousands."""
    for start, end in combinations(places, 2):
        if (start, end) == (0, len(name)):
            continue
        is_digit = end == start + 1 and name[start].isdecimal()
        if is_digit and start and name[start - 1].isdecimal():
            continue
        if is_digit and (digits := _DIGITS.match(name, end)) and len(digits[0]) % 3:
            continue
        yield start, end


# Compounds ----------------------------------------------------------------------------------------


def written_apart(word: str, *, is_english: bool) -> Iterator[tuple[str, str, str]]:
    """Yield how a word may be written as two, and the signs between them: "e-mail", "set up"."""
    if len(word) > _SHORTEST_APART:
        is_name = is_english and word.startswith(BEFORE_APOSTROPHES)
        yield word[:1], word[1:], HYPHENS + APOSTROPHES if is_name else HYPHENS
    for particle in _PARTICLES if is_english else ():
        if word.endswith(particle) and len(word) >= len(particle) + _SHORTEST_APART:
            # "cabin" does not match "a cab in Berlin".
            signs = HYPHENS if particle in ("in", "on") else f"{HYPHENS} "
            yield word.removesuffix(particle), particle, signs


def splits(word: str, links: Sequence[str], *, shortest: int) -> Iterator[tuple[str, str]]:
    """Yield the ways to split a word into two of ``shortest`` letters or more, without a link."""
    for start in range(shortest, len(word) - shortest + 1):
        for link in links:
            head = word[:start].removesuffix(link)
            if len(head) == start - len(link) >= shortest:
                yield head, word[start:]

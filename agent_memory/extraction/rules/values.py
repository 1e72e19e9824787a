"""Kinds of values: a date, a number of years, a name. Values of one slot are of one kind."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count
from typing import Final, NamedTuple

from agent_memory.text.normalize import DENSE, exact_form
from agent_memory.text.times import times_in

WORDS: Final = "words"
"""The kind of text that is not a value: "tight", "in the garage", "angry"."""
NAME: Final = "name"
CLOSED: Final = frozenset({"address", "date", "time", "number", "code", "colour"})
"""Kinds of which two are never true at once, nor one a more precise form of the other.

Of two names, the second may be where the first is ("Oslo", "Norway")."""

_NUMBERS: Final = {
    word: str(number)
    for first, step, words in (
        (1, 1, "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"),
        (15, 1, "fifteen sixteen seventeen eighteen nineteen"),
        (20, 10, "twenty thirty forty fifty sixty seventy eighty ninety"),
        (2, 1, "zwei drei vier fünf sechs sieben acht neun zehn"),
        (2, 1, "deux trois quatre cinq six sept huit neuf dix"),
        (2, 1, "dos tres cuatro cinco seis siete ocho nueve diez"),
    )
    for number, word in zip(count(first, step), words.split(), strict=False)
}
"""Number words, as digits."""
_DAY: Final = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|(?:lun|mar|mercre|jeu|vendre|same)di|dimanche|lunes|martes|miércoles|jueves|viernes|sábado"
    r"|domingo)"
)
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t|tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
TIME: Final = r"(?:\d{1,2}(?:[:.]\d\d)? ?(?:[ap]\.?m\.?|o'clock|uhr|h)|\d{1,2}:\d\d|noon|midnight)"
DATE: Final = (
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}[./]\d{{1,2}}(?:[./]\d{{2,4}})?|(?:next |this )?{_DAY}"
    rf"|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|(?:early |late |mid-?)?{_MONTH}(?: \d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? {_MONTH}(?: \d{{4}})?|\d{{1,2}}(?:st|nd|rd|th)|q[1-4])"
)
_PARTS_OF_A_DATE: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_DAY}", rf"\b{_MONTH}\b|\d[./-]\d", r"(?<!\d)\d{1,2}(?!\d)", r"\d{4}", TIME, r"q[1-4]"
    )
)  # fmt: skip
_OF_A_DATE: Final = re.compile(
    r"\b(?!of\b)(?:next|this|\d+(?=(?:st|nd|rd|th)\b)|[^\W\d]{3}|[\w:]+)"
)
"""A word of a date as it is compared: "5" of "5th", "jan" of "January"."""
_ONLY_DIGITS: Final = re.compile(r"\d[./-]\d")
_ANOTHER: Final = frozenset(("next", "this"))
_COLOURS: Final = frozenset(
    """
    red blue green yellow orange purple violet pink black white grey gray brown teal turquoise cyan
    magenta maroon navy beige gold silver plum lilac indigo crimson olive mint lavender coral
    """.split()
)
_PREPOSITION: Final = re.compile(r"^(?:on|at|by|in|from|around|about|until|the) ", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"(an?|the|my|our|his|her|their|your) ", re.IGNORECASE)
_CAPITAL: Final = r"(?:[a-z](?=[A-Z]))?[^\W\d_a-zß-öø-ÿ][\w'\u2019&.+#-]*"
"""A word of a name, "iPhone" too."""
_KINDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://\S+", "address"),
        (rf"{TIME}", "time"),
        (rf"{_DAY}s", "days"),
        (rf"{DATE}(?:,? (?:at )?{TIME})?", "date"),
        (r"\+?\d[\d ()/-]{5,}\d", "address"),
        (rf"\d{{1,5}}[a-z]?(?-i:(?: {_CAPITAL}){{2,4}})\.?", NAME),  # "12 Oak Street"
        (r"(?-i:[a-z][\w-]*(?:\.[a-z][\w-]*){2,})", "address"),  # a host, "db2.acme.example" too
        (r"\w*\d+(?:[.:-]\w+)+|[a-z]+-?\d+[a-z\d]*", "code"),
        (r"(?:version|port|room|gate|seat|floor|chapter|step) [\w.:-]*\d[\w.:-]*", "code"),
        (r"(?:~|\.{1,2})?/\S+|(?:[\w.-]+/)+[\w-]+\.\w+", "address"),  # a path
    )
)
_QUANTITY: Final = re.compile(
    rf"(?P<sign>[$€£¥]?) ?(?P<number>\d[\d.,]*k?|(?:{'|'.join(_NUMBERS)})\b)"
    r"(?P<unit>(?: ?[^\W\d]+| ?%){0,4})",
    re.IGNORECASE,
)
_NAME: Final = re.compile(
    rf"(?!I\b){_CAPITAL}"
    rf"(?: (?:(?:of|de|da|del|la|le|van|von|der|the|and|&) )?(?:{_CAPITAL}|\d+)){{0,4}}"
)
_DENSE: Final = re.compile(rf"[{DENSE}]")


class Value(NamedTuple):
    """A value: its kind and its form (values of one form are the same).

    ``is_cased`` is false for a name in a text that is all lower case: "angry" may be none.
    """

    kind: str
    form: str
    is_cased: bool = True

    @property
    def is_closed(self) -> bool:
        """Return whether another value of its kind cannot be true beside it."""
        return self.kind.partition(" ")[0] in CLOSED

    def has_all_of(self, other: Value) -> bool:
        """Return whether it says as much as another value of its kind: the year of a date too."""
        if self.kind != "date":
            return True
        return all(part.search(self.form) for part in _PARTS_OF_A_DATE if part.search(other.form))

    def goes_with(self, other: Value) -> bool:
        """Return whether both may be meant: the same date, once with its year, or no name.

        "My boss is angry" goes with "my boss is ines".
        """
        if not (self.is_cased and other.is_cased):
            return True
        if self.kind == other.kind == "time":
            return not _spellings(self.form).isdisjoint(_spellings(other.form))
        if self.kind != "date":
            return False
        words, others = (set(_OF_A_DATE.findall(date.form)) for date in (self, other))
        if _ONLY_DIGITS.search(self.form + other.form) or not _ANOTHER.isdisjoint(words ^ others):
            return False  # 05/06 is not 06/05
        return words <= others or others <= words

    @property
    def is_value(self) -> bool:
        """Return whether it is a value of any kind."""
        return self.kind != WORDS


def _spellings(time: str) -> set[str]:
    """Return how a time may be written: "9:00" is "9 am", or "9 pm"."""
    return {form for each in times_in(time) for form in (" ".join(each.words), *each.others)}


@lru_cache(maxsize=256)  # texts are compared in pairs, and each has a value or two
def value_of(text: str, *, is_cased: bool = True) -> Value:
    """Return a text as a value.

    In a text that is all lower case (``is_cased`` false), a name may be any two words.
    """
    text = text.strip(" .!?,;\"'")
    form = exact_form(text).lower() if text else ""
    bare = _PREPOSITION.sub("", _PREPOSITION.sub("", text, count=1), count=1)
    for pattern, kind in _KINDS:
        if pattern.fullmatch(bare):
            return Value(kind, exact_form(bare).lower())
    if match := _QUANTITY.fullmatch(bare):
        unit = f"{match['sign']}{match['unit']}".strip().lower()
        lead = text[: len(text) - len(bare)].strip().lower()
        number = match["number"].lower()
        written = form.replace(number, _NUMBERS.get(number, number), 1)
        return Value(" ".join(f"number {lead} {unit}".split()), written)
    if form in _COLOURS:
        return Value("colour", form)
    kind = _kind_of_words(text, is_cased=is_cased)
    return Value(kind, form.removeprefix("the "), is_cased or kind != NAME)


def _kind_of_words(text: str, *, is_cased: bool) -> str:
    """Return ``name``, ``a name`` or ``words``, including a preposition before it."""
    lead = ""
    rest = text
    for pattern in (_PREPOSITION, _ARTICLE):
        match = pattern.match(rest)
        if match and match[0].strip().lower() != "the":
            lead, rest = f"{lead}{match[0].lower().replace('an ', 'a ')}", rest[match.end() :]
    is_name = _NAME.fullmatch(rest.removeprefix("the ").removeprefix("The ")) is not None
    if not is_name and _DENSE.search(rest):
        is_name = len(rest) <= 12
    if not is_name and not is_cased and not lead:
        is_name = len(rest.split()) <= 2 and rest.split()[:1] not in (["the"], ["a"], ["in"])
    return f"{lead}{NAME}" if is_name else WORDS

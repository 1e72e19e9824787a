"""Corrections that name only a value: "No, I meant May 6", after "The launch is on May 5".

So are "no wait, Tuesday", "Sorry, 4pm", "Jonah, not Jonas" and "My birthday is May 5. Sorry, May
6.". A statement is made of them, if what their author said just before has one such value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from agent_memory.extraction.rules.values import DATE, TIME, value_of
from agent_memory.text.phrases import ASSISTANTS, any_of, pattern, words_of
from agent_memory.text.sentences import sentence_spans, sentences
from agent_memory.text.speech_acts import (
    is_asking,
    is_bare_name,
    is_denied,
    is_order,
    is_small_talk,
    without_request,
)

# What is said -------------------------------------------------------------------------------

_NAME: Final = r"[A-Z][\w'\u2019-]*(?: [A-Z][\w'\u2019-]*){0,3}"
_GAP: Final = r"[\s,.!:\u2013\u2014-]*"
_NO: Final = any_of(
    r"""
    (?<!oh )(?<!oh, )(?<!ah )(?<!ah, )(?:no|nope|nein|non)|correction|korrektur|typo|scratch that
    """
)
"""What says that something was wrong. "Oh no" may be about anything."""
_SORRY: Final = any_of(r"sorry|actually|oops|whoops|my (?:bad|mistake)|entschuldigung|pardon")
_PAUSE: Final = any_of(r"wait|hang on|hold on|halt|ah|oh|um+|uh+|hm+")
_LEAD: Final = rf"\W*(?:(?:{_NO}|{_SORRY}|{_PAUSE})\b{_GAP})*"
_MEANS: Final = any_of(
    r"""
    (?:I|we) (?:meant|mean)|(?:it|that) should (?:be|say)|make (?:it|that)|ich mein(?:te|e)
    je voulais dire
    """
)
_IS: Final = r"(?:(?:it|that)(?:'s| is| was)|it'll be|es ist|c'est)"
_WORD: Final = r"(?:[\w.,:/+-]|')+"
_SPELT: Final = r"(?:,? (?:with (?:an?|one|two|no) \W?\w{1,2}\W?s?|instead|sorry|actually))?"
_CORRECTION: Final = pattern(
    rf"(?![\s\S]{{100}})(?P<lead>{_LEAD})(?:(?P<means>{_MEANS}) |(?P<is>{_IS}) )?"
    rf"(?P<value>{_WORD}(?: {_WORD}){{0,4}}?)(?P<spelt>{_SPELT})[\s.!)]*"
)
_INSTEAD: Final = pattern(
    rf"(?![\s\S]{{100}})(?P<lead>{_LEAD})(?:(?:{_MEANS}|{_IS}) )?"
    rf"(?P<value>{_WORD}(?: {_WORD}){{0,3}}?)"
    rf"(?:,? (?:and )?not|,? instead of|,? rather than) (?P<gone>{_WORD}(?: {_WORD}){{0,3}})"
    r"[\s.!)]*"
)
"""A value, and the one that it is instead of: "Jonah, not Jonas"."""
_SAYS_NO: Final = pattern(rf"\b{_NO}\b")
_SAYS_SORRY: Final = pattern(rf"\b{_SORRY}\b")
_SAYS_WAIT: Final = pattern(r"\b(?:wait|hang on|hold on|halt)\b")
_SAYS_NEIN: Final = pattern(r"\W*nein\b")
_OFFERS_HELP: Final = pattern(
    r"\b(?:anything|something|what) else\b|\b(?:can|may|could) I (?:help|assist)\b"
    r"|\blet me know if\b"
)
"""What an assistant asks, whatever was said; no value answers it."""

_JUST_BEFORE: Final = 5
"""Sentences of the same message that a correction may be about."""

# What it may be about -----------------------------------------------------------------------

_PREPOSITION: Final = re.compile(r"(?:on|at|by|in|from|to|for|until|am|um) (?=\S)", re.IGNORECASE)
_NUMBER: Final = r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/-])"
_MEASURE: Final = re.compile(r"\d+(?:[.,]\d+)*(?P<unit> ?[^\W\d]+)")
_DURATION: Final = re.compile(r" ?(?:s|secs?|seconds?|mins?|minutes?|moments?|hours?)\b")
_TIMED: Final = re.compile(rf"\d|\b(?:{DATE}|{TIME})(?!\w)", re.IGNORECASE)
_TIMES: Final = re.compile(rf"\b(?:{DATE}|{TIME})(?!\w)", re.IGNORECASE)
_NAMED: Final = re.compile(rf"(?<=[\w,;:(\"] )(?!I\b){_NAME}|(?:^|[.!?] ){_NAME}(?=[,?])")
"""A name in a sentence, or one that is asked about: "Graz?"."""
_NAME_ALONE: Final = re.compile(_NAME)
_OWN_NAME: Final = re.compile(
    r"(?<=[\w,;:(\"] )(?!I\b)(?P<name>" + _NAME + r")"
    r"|^(?!(?:It|This|That|There|Here|He|She|They|We|I|My|Our|The|What|Who)\b)[A-Z][\w-]*"
    r"(?=['\u2019]s\b| (?:is|was|has|had|and|or|will|can|wohnt|hei\u00dft|\w+s|\w+ed)\b)"
)
"""A name in a sentence, or the one that it begins with: "Ann's boss", "Ann lives"."""
_BEFORE_NAME: Final = re.compile(
    r"(?:\b(?:is|was|are|were|called|named|in|at|to|from|for|ist|hei\u00dfe|hei\u00dft|bei|nach|est)"
    r"|['\u2019]s) $"
)
_IS_NO_THING: Final = pattern(
    words_of(
        "a an the it that this so sure yet really now today only just much me you us them very too"
        " here there any quite exactly again always all both either good bad right wrong never well"
        " maybe nothing something anything nobody somebody everything otherwise really yesterday"
        " sir madam ma'am man dude"
    )
)
_THING: Final = re.compile(r"[a-z]{4,}")
_ALLERGIC: Final = re.compile(r"(?<=\ballergic to )[a-z]+(?=\W*$)")
"""A thing in lower case that may have been meant otherwise: of an allergy, one is named."""
_SPELT_ALIKE: Final = 0.7
"""The share of letters that two names have in common, if one may be a slip for the other."""
_IS_ASSISTANT: Final = pattern(ASSISTANTS)
_LOWERED: Final = re.compile(
    r"(?:The|My|Our|We|It|This|That|Ich|Wir|Meine?|Unsere?|There|Je|Nous|Mon|Ma|Mes)\b"
)


class _Correction(NamedTuple):
    """A value to be put in the place of another (``gone``, if it is named), and how it is said."""

    value: str
    gone: str
    is_meant: bool
    """Whether it is said that this was meant: "No, I meant Linz"."""
    says_no: bool
    is_spelt: bool
    begins: str
    """How the correction begins: "No", "Nein"."""

    @property
    def bare(self) -> str:
        """Return the value without its preposition."""
        return _PREPOSITION.sub("", self.value, count=1)


def is_of_a_value_alone(text: str) -> bool:
    """Return whether a text corrects something that it does not name."""
    correction = _read(text)
    return correction is not None and correction.is_meant


def is_correction(text: str) -> bool:
    """Return whether a text begins with a correction of a value, whatever that belongs to."""
    correction = _read(next(iter(sentences(text[:200])), ""))
    if correction is None:
        return False
    is_certain = correction.is_meant or correction.gone != ""
    return is_certain or value_of(correction.value).is_closed


def offers_help(text: str) -> bool:
    """Return whether an assistant offers more, whatever was said: "Let me know if …"."""
    return _OFFERS_HELP.search(text) is not None


def is_instead(text: str) -> bool:
    """Return whether a text is only a value, and the one it is instead of: "Jonah, not Jonas"."""
    correction = _read(text)
    return correction is not None and correction.gone != ""


def corrected(text: str, earlier: str, between: Sequence[str], names: Collection[str] = ()) -> str:
    """Return a text that says what it corrects, if its author said that just before (``earlier``).

    It is as it was if it names more than a value, if there is not just one value of that kind, or
    if what others said ``between`` may have one: "No, I meant 21" may answer "Are you 20?". Nor is
    "No, Ben" a correction if one of the speakers (``names``) is called that. A sentence may also
    correct those before it in the text.
    """
    pieces: list[str] = []
    before: list[str] = []
    for begin, end in sentence_spans(text):
        written = text[begin:end].strip()
        made = (
            _made(written, " ".join(before[-_JUST_BEFORE:]), (), names)
            if before
            else _made(written, earlier, between, names)
        )
        pieces.append(text[begin:end] if made is None else text[begin:end].replace(written, made))
        before = [made] if made is not None else [*before[-_JUST_BEFORE:], written]
    return "".join(pieces)


def _read(text: str) -> _Correction | None:
    """Return what a sentence corrects, if it has nothing but a value."""
    match = _INSTEAD.fullmatch(text)
    if match is not None and _are_alike(match["value"], match["gone"]):
        gone = _PREPOSITION.sub("", match["gone"].strip(" .,"), count=1)
    else:
        match, gone = _CORRECTION.fullmatch(text), ""
    if match is None:
        return None
    lead, groups = match["lead"], match.groupdict()
    value, is_meant = match["value"].strip(" .,"), groups.get("means") is not None
    says_no = _SAYS_NO.search(lead) is not None
    is_sorry = says_no or _SAYS_SORRY.search(lead) is not None
    if not (gone or is_meant or is_sorry):
        # "Wait, it's Tuesday" and "wait, 5 minutes" are no corrections.
        is_now = groups.get("is") is not None and not _PREPOSITION.match(value)
        measure = _MEASURE.fullmatch(value)
        is_pause = measure is not None and _DURATION.fullmatch(measure["unit"]) is not None
        if is_now or is_pause or not _SAYS_WAIT.search(lead):
            return None
    if is_meant and not lead.strip() and "meant" not in match[0] and "meinte" not in match[0]:
        return None
    begins = "Nein" if _SAYS_NEIN.match(lead) else "No"
    return _Correction(value, gone, is_meant, says_no, bool(groups.get("spelt")), begins)


def _are_alike(value: str, gone: str) -> bool:
    """Return whether a value may be instead of another: two names, two days, two single words."""
    first, second = (_PREPOSITION.sub("", text.strip(" .,"), count=1) for text in (value, gone))
    if is_small_talk(first) and not is_bare_name(first):
        return False
    kind, other = value_of(first), value_of(second)
    if kind.is_closed or other.is_closed or _NAME_ALONE.fullmatch(second):
        return kind.kind == other.kind
    return first.isalpha() and second.isalpha() and not _IS_NO_THING.fullmatch(second)


def _made(part: str, earlier: str, between: Sequence[str], names: Collection[str]) -> str | None:
    """Return the statement that a correction makes of what was said before it, if it is certain."""
    correction = _read(part) if earlier else None
    if correction is None:
        return None
    bare = [without_request(sentence) for sentence in sentences(earlier)]
    known = [(sentence, match) for sentence in bare for match in _alike(correction, sentence)]
    if len(known) != 1:
        return None
    (sentence, match), value = known[0], correction.value
    later = bare[bare.index(sentence) + 1 :]
    is_answer = any(map(is_asking, later)) or (not correction.is_meant and any(map(_asks, between)))
    # "I don't live in Graz. No, Linz." says where, and corrects nothing.
    is_stated = not (is_asking(sentence) or is_denied(sentence))
    if is_answer or not is_stated or _is_mentioned(correction, sentence, between):
        return None
    if not value_of(value).has_all_of(value_of(match[0])) or _is_same(value, match[0]):
        return None  # the year would be lost, or nothing is new
    if _is_bare_name(correction) and not _is_name_meant(correction, sentence, match, names):
        return None
    if not _PREPOSITION.match(match[0]):
        value = correction.bare
    if correction.gone and match[0].islower():
        value = value[0].lower() + value[1:]  # "Coffee, not tea" begins a sentence
    whole = f"{sentence[: match.start()]}{value}{sentence[match.end() :]}"
    whole = re.sub(r"^(?:No|Nein), ", "", whole)
    if _LOWERED.match(whole):
        whole = whole[0].lower() + whole[1:]
    return f"{correction.begins}, {whole}"


def _is_same(value: str, other: str) -> bool:
    return value.lower().rstrip(".") == other.lower().rstrip(".")


def _asks(text: str) -> bool:
    """Return whether a text asks something that a value may answer."""
    asked = (part for part in sentences(text) if is_asking(part) or is_order(part))
    return any(not offers_help(part) for part in asked)


def _is_mentioned(correction: _Correction, sentence: str, between: Sequence[str]) -> bool:
    """Return whether others may have named another value since a sentence; an echo is none."""
    is_closed = value_of(correction.value).is_closed
    may_be_meant = _may_be_of_time_or_number if is_closed else _NAMED.search
    values = re.compile(rf"(?i:{_TIMES.pattern}|{_NUMBER})" if is_closed else _NAME)
    own = {match[0].lower().rstrip(".") for match in values.finditer(sentence)}
    parts = (part for text in between for part in sentences(text))
    return any(
        may_be_meant(
            part if is_asking(part) else values.sub(lambda m: _unless_own(m[0], own), part)
        )
        for part in parts
    )


def _unless_own(value: str, own: Collection[str]) -> str:
    return "it" if value.lower().rstrip(".") in own else value


def _may_be_of_time_or_number(text: str) -> bool:
    """Return whether a text has any number, also in words: "at 5?" may ask for a time."""
    words = re.findall(r"[\w-]+", text)
    return _TIMED.search(text) is not None or any(value_of(word).is_closed for word in words)


def _is_bare_name(correction: _Correction) -> bool:
    """Return whether a value is a name of which nothing says what it is the name of."""
    is_bare = not correction.gone and correction.bare == correction.value
    is_name = _NAME_ALONE.fullmatch(correction.value) is not None
    return is_bare and is_name and _TIMES.fullmatch(correction.value) is None


def _is_name_meant(
    correction: _Correction, sentence: str, match: re.Match[str], names: Collection[str]
) -> bool:
    """Return whether a name is surely instead of another, and not whom somebody speaks to."""
    value = correction.value
    is_called = value in names or _IS_ASSISTANT.fullmatch(value)
    is_empty = _IS_NO_THING.fullmatch(value) or (is_small_talk(value) and not is_bare_name(value))
    if is_called or is_empty or not _BEFORE_NAME.search(sentence[: match.start()]):
        return False
    alike = SequenceMatcher(None, value.lower(), match[0].lower()).ratio() >= _SPELT_ALIKE
    return correction.is_meant or correction.says_no or correction.is_spelt or alike


def _alike(correction: _Correction, sentence: str) -> Iterator[re.Match[str]]:
    """Yield the values in a sentence that are of the same kind, or the one that is named."""
    value, bare = correction.value, correction.bare
    if correction.gone:
        yield from re.finditer(rf"(?i)(?<!\w){re.escape(correction.gone)}(?!\w)", sentence)
        return
    for written in (rf"\b{DATE}(?!\w)", rf"\b{TIME}(?!\w)"):
        if re.fullmatch(written, bare, re.IGNORECASE):
            yield from re.finditer(written, sentence, re.IGNORECASE)
            return
    measure = _MEASURE.fullmatch(bare)
    if measure is not None or re.fullmatch(_NUMBER, bare):
        unit = rf"{re.escape(measure['unit'])}\b" if measure is not None else ""
        yield from _without_times(re.finditer(_NUMBER + unit, sentence), sentence)
    elif correction.is_meant and _THING.fullmatch(bare) and not _IS_NO_THING.fullmatch(bare):
        yield from _ALLERGIC.finditer(sentence)
    elif _is_bare_name(correction):
        yield from _without_times(_OWN_NAME.finditer(sentence), sentence)
    elif _NAME_ALONE.fullmatch(bare):
        preposition = value[: len(value) - len(bare)]
        yield from re.finditer(rf"\b{re.escape(preposition)}{_NAME}", sentence)


def _without_times(values: Iterator[re.Match[str]], sentence: str) -> Iterator[re.Match[str]]:
    """Yield the values in a sentence that are not in a date or a time of day."""
    spans = [match.span() for match in _TIMES.finditer(sentence)]
    for match in values:
        if not any(start <= match.start() < end for start, end in spans):
            yield match

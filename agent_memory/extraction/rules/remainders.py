"""What remains of a memory if only a part of it no longer holds.

"I speak French and German" and "I no longer speak German" leave "I speak French". Only two parts
can go: a sentence that nothing else in the text points to, and one member of a plain list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agent_memory.extraction.rules.conflicts import conflict, denied_by, words_of_statement
from agent_memory.extraction.rules.corrections import is_instead, is_of_a_value_alone
from agent_memory.extraction.rules.lists import joined_words, parts_of_list, without_member
from agent_memory.extraction.rules.readings import Reading, content_of, read
from agent_memory.extraction.rules.statements import speaker_and_text
from agent_memory.extraction.rules.values import value_of
from agent_memory.text.careful_typing import carefully_typed
from agent_memory.text.normalize import words_of
from agent_memory.text.sentences import sentence_spans, sentences
from agent_memory.text.stems import stems

_OF_ITSELF: Final = re.compile(r"(?:I|User)\b(?!['\u2019]s)")
"""How a sentence begins that can be read without those around it."""
_POINTS: Final = re.compile(
    r"\b(?:its?|he|him|his|she|hers?|they|them|theirs?|this|that|these|those|the|my|mine|ours?|us|we"
    r"|there|here|then|also|too|ones?|both|either|neither|each|all|such|so|same|others?|another"
    r"|else|instead|again|latter|former|more|but|since|because|if|unless|except|though|although"
    r"|however|while|when)\b",
    re.IGNORECASE,
)
"""Words that may point to what another sentence says, or that a condition joins to it."""
_VERB: Final = re.compile(
    r"(?!(?:The|This|That|My|Our|His|Her|Their)\b)[A-Z][\w-]*(?:['\u2019](?:ve|d))?"
    r"(?:['\u2019](?:m|re)(?= \w+ing\b)| (?:am|are|is)(?= \w+ing\b))?"
    r" (?:(?:have|\w+ly|always|often|usually|sometimes|still) )*(?P<verb>[a-z]+)"
)
"""The relation of a sentence to its subject: "I drive", "Eva drives"."""
_LIGHT: Final = stems(
    "project projects thing things stuff lot bit still usually often sometimes every always please"
    " old very quite remember remind join joined become became move moved live work use day week"
    " month year hour minute morning afternoon evening night weekend daily weekly once twice times"
    " since mg ml kg km miles lbs euros dollars"
)
"""Words of which nothing is left if all the others of a sentence are contradicted."""
_MEASURES: Final = ("date", "days", "time", "number", "colour")
"""Kinds of values that go with what they are of, unless the newer text has one as well."""


class _Part(NamedTuple):
    """A sentence: where it stands in a text, as it is written there, and its words alone."""

    begin: int
    end: int
    written: str
    bare: str


def remainder(text: str, newer: str) -> str | None:
    """Return what remains of a memory if a newer text is right: nothing, if it contradicts it all.

    ``None``: it contradicts only a part, or perhaps only that, and without it the rest cannot be
    written for certain. "I left Acme" would delete "I work at Acme as a nurse", which she still is.
    """
    spoken = speaker_and_text(text)[1]
    if newer == denial(text, spoken):
        return ""
    alone = speaker_and_text(newer)[1]
    if is_of_a_value_alone(alone) or is_instead(alone):
        return None  # "No, I meant June 4": what it is about is in the older text alone
    new = read(newer)
    if is_beside(newer, text) or not (spoken and text.endswith(spoken)):  # "Deadline: March 3"
        return _nothing(new, text)
    label = text[: -len(spoken)]
    parts = list(_parts(spoken))
    worded = [part for part in parts if part.bare]
    if len(worded) == 1:
        (only,) = worded
        rest = _left(new, label, only)
        return rest and f"{label}{spoken[: only.begin]}{rest}{spoken[only.end :]}"
    going = [part for part in worded if conflict(new, read(label + part.bare)) is not None]
    staying = [part for part in worded if part not in going]
    is_whole = all(_left(new, label, part) == "" for part in going)
    if not (going and is_whole and _stand_alone(new, going, staying)):
        return None
    return label + _without(spoken, parts, going) if staying else ""


def is_beside(newer: str, text: str) -> bool:
    """Return whether nothing in a text is contradicted by a newer one, as far as rules can say."""
    new, old = read(newer), read(text)
    is_clear = bool(content_of(newer))  # in "Forget that I moved" it is not what is to go
    return is_clear and conflict(new, old) is None and denied_by(new, old).isdisjoint(old.stems)


def denial(text: str, words: str) -> str:
    """Return the denial of some words of a text, or of all of it if they are all that it says."""
    speaker, spoken = speaker_and_text(text)
    denied = spoken if content_of(spoken) <= stems(words) else words
    return f"{speaker}: no longer {denied}" if speaker else f"no longer {denied}"


def _parts(text: str) -> Iterator[_Part]:
    """Yield the sentences of a text, with their list markers, and what has no words between."""
    for begin, end in sentence_spans(text):
        if written := text[begin:end].strip():
            first = text.index(written, begin)
            yield _Part(first, first + len(written), written, " ".join(sentences(written)))


def _without(text: str, parts: Sequence[_Part], going: Sequence[_Part]) -> str:
    """Return a text without some sentences; between the others is the wider of two spaces."""
    rest, space, end = "", "", 0
    for part in parts:
        space = max(space, text[end : part.begin], key=lambda gap: (gap.count("\n"), len(gap)))
        end = part.end
        if part not in going:
            rest += f"{space if rest else ''}{part.written}"
            space = ""
    return rest


def _left(new: Reading, label: str, part: _Part) -> str | None:
    """Return what is left of a sentence that is contradicted; ``None`` if that is not certain."""
    old = read(label + part.bare)
    denied = denied_by(new, old)
    if not denied or joined_words(old.text) <= joined_words(new.text):
        return _nothing(new, label + part.bare)
    if old.change.is_negated or not denied <= old.stems:
        return None
    begin = part.written.index(part.bare.split()[0])
    rest = without_member(part.written[begin:], denied, named=new.stems)
    return rest and part.written[:begin] + rest


def _nothing(new: Reading, text: str) -> str | None:
    """Return that nothing is left, if a newer text names or replaces all that another says."""
    old = read(text)
    against = conflict(new, old)
    gone = new.stems | (against.replaced if against is not None else frozenset())
    denied = denied_by(new, old)
    for known in old.statements:
        attribute = stems(known.attribute or "")  # none of "being", a stop word
        if attribute and attribute <= denied:
            gone |= words_of_statement(known, old)  # "Forget my PIN"
    is_measured = any(map(_is_measure, words_of(new.text)))
    words = [word for word in words_of(old.text) if is_measured or not _is_measure(word)]
    relation = _VERB.match(old.text)
    content = content_of(" ".join(words)) - _LIGHT
    content -= stems(relation["verb"]) if relation is not None else frozenset()
    subject = stems(relation[0]) if relation is not None else frozenset()
    # "Alice likes pasta" has no parts, whatever contradicts it; a request may say nothing any more.
    may_be_all = len(content - subject) == 1 or not content_of(new.text)
    is_single = may_be_all and old.is_one_sentence and not parts_of_list(old.text)
    return "" if content <= gone or is_single else None


def _is_measure(word: str) -> bool:
    return value_of(word).kind.split()[0] in _MEASURES


def _stand_alone(new: Reading, going: Sequence[_Part], staying: Sequence[_Part]) -> bool:
    """Return whether sentences say the same without others, and a text may not be about them."""
    about = new.stems.difference(*(content_of(part.bare) for part in going))
    return all(
        _OF_ITSELF.match(carefully_typed(part.bare))
        and not _POINTS.search(part.bare)
        and about.isdisjoint(content_of(part.bare))
        for part in staying
    )

"""Statements that can hold one value at a time: where somebody lives, what their favourite is.

Of two of the same subject and attribute, the later one is true. Only what is said plainly is read:
nothing denied, supposed, past or wished for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agent_memory.text.normalize import exact_form
from agent_memory.text.speech_acts import is_denied, is_supposed
from agent_memory.text.stems import stems

_APOSTROPHE: Final = "['\u2019]"
# Of each, whatever is said to be it is a value: "my boss is angry" would not be.
_THING: Final = (
    r"(?:(?:full|first|last|middle|user|preferred) )?name|nickname|age|birthday|pronouns|salary"
    r"|(?:(?:mobile|cell|work|home) )?(?:phone )?number|phone number|height|weight|shoe size"
    r"|(?:(?:work|home|personal|new) )?(?:e-?mail|email address|address)|blood type|time ?zone"
    r"|(?:native|preferred) language|mother tongue|job title|employer|budget|deadline"
)
_KIN: Final = (
    r"(?:dog|cat|pet|wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|son|daughter|brother"
    r"|sister|mother|father|mom|mum|dad|boss|manager|car|company|team|project)"
)
_NOW: Final = r"(?:now |currently |just |recently |finally |also |have |has |actually )*"
_VALUE: Final = r"(?P<value>[^\s.!?;][^.!?;]*(?:[.!?](?=\S)[^.!?;]*)*)"
_FAVOURITE: Final = r"(?P<thing>[a-z][\w -]{{1,30}}?)"
# In each, {who} says of whom: "I", "User", a name; {whose} "my", "User's".
_FORMS: Final = (
    (rf"{{whose}} (?:absolute )?favou?rite {_FAVOURITE} (?:is|has become) {_NOW}", "favourite"),
    (rf"{{whose}} (?P<thing>{_KIN}{_APOSTROPHE}s name|{_THING}) (?:is|has changed to) {_NOW}", ""),
    (rf"{{who}} {_NOW}(?:live|lives|living|reside|resides) in (?:the )?", "home"),
    (rf"{{am}} {_NOW}(?:living|based) in (?:the )?", "home"),
    (rf"{{who}} {_NOW}(?:moved|relocated) (?:back )?to (?:the )?", "home"),
    (rf"{{who}} {_NOW}(?:work|works) (?:at|for) ", "employer"),
    (rf"{{am}} {_NOW}working (?:at|for) ", "employer"),
    (rf"{{who}} {_NOW}(?:started (?:working |a (?:new )?job )?at|joined) ", "employer"),
    (rf"{{who}} {_NOW}(?:work|works) as (?:an? )?", "job"),
    (rf"{{am}} {_NOW}(?=\d{{{{1,3}}}} years old)", "age"),
)
_WHO: Final = rf"(?P<who>(?:I|we)(?:{_APOSTROPHE}(?:ve|re|d|ll))?|(?-i:[A-Z][\w-]{{0,30}}))"
_WHOSE: Final = rf"(?P<whose>my|(?-i:[A-Z][\w-]{{0,30}}){_APOSTROPHE}s)"
_AM: Final = (
    rf"(?:(?P<me>I(?:{_APOSTROPHE}m| am))|(?P<he>(?-i:[A-Z][\w-]{{0,30}}))(?:{_APOSTROPHE}s| is))"
)
_PATTERNS: Final = tuple(
    (
        re.compile(
            r"(?:(?:well|so|oh|hey|ok|actually|by the way|btw|and|but|also|now)[\s,]+)*"
            + form.format(who=_WHO, whose=_WHOSE, am=_AM)
            + _VALUE
            + r"\W*$",
            re.IGNORECASE,
        ),
        attribute,
    )
    for form, attribute in _FORMS
)
_THE_THING: Final = re.compile(
    r"(?:the|our) (?P<thing>[a-z][\w -]{1,40}?) is (?P<now>now |currently )?" + _VALUE + r"\W*$",
    re.IGNORECASE,
)
_PRONOUNS: Final = frozenset("he she it they you this that who she who there".split())
_SPEAKER: Final = re.compile(r"(?P<name>[^\s:][^:\n]{0,60}): (?=\S)")
# After the value: what is no part of it.
_TAIL: Final = re.compile(
    r"\s*,? (?:now|currently|these days|at the moment|too|anymore|and|but|since|because|for|with"
    r"|from|last|this|next|in (?:19|20)\d\d|as|when|where|which|though|again)\b.*$|,.*$",
    re.IGNORECASE,
)
_WHEN: Final = stems(
    "now currently these days moment too anymore last this next month year week summer again"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """Who (``""``: the user), of what, which value, in small letters.

    ``is_new`` tells that it was said to be so now, against what was; ``says_more`` that something
    else is said with it.
    """

    subject: str
    attribute: str
    value: str
    is_new: bool = False
    says_more: bool = False


def speaker_and_text(text: str) -> tuple[str, str]:
    """Return the speaker's name before a text, if there is one, and what was said."""
    match = _SPEAKER.match(text)
    return (match["name"].strip(), text[match.end() :]) if match else ("", text)


def statement(text: str) -> Statement | None:
    """Return what a text of one sentence states, ``None`` where it states nothing of the kind."""
    speaker, spoken = speaker_and_text(text)
    spoken = spoken.strip()
    if len(spoken) > 200 or is_supposed(spoken) or is_denied(spoken):
        return None
    for pattern, attribute in _PATTERNS:
        match = pattern.match(spoken)
        if match is not None:
            return _of(match, attribute, speaker)
    match = _THE_THING.match(spoken)
    if match is None:
        return None
    return _made("", f"the {match['thing']}", match["value"], is_new=match["now"] is not None)


def _of(match: re.Match[str], attribute: str, speaker: str) -> Statement | None:
    groups = match.groupdict()
    who = groups.get("who") or groups.get("he") or groups.get("whose") or "I"
    name = re.split(_APOSTROPHE, who)[0].lower()
    if name in _PRONOUNS:
        return None
    subject = speaker if name in ("i", "my", "we") else name
    thing = groups.get("thing") or ""
    is_new = re.search(
        r"\b(?:now|moved|relocated|changed|new|started|joined)\b", match[0], re.IGNORECASE
    )
    return _made(
        "" if subject.lower() in ("user", "the user") else subject,
        f"{attribute} {thing}".strip(),
        match["value"],
        is_new=is_new is not None,
    )


def _made(subject: str, attribute: str, value: str, *, is_new: bool) -> Statement | None:
    tail = _TAIL.search(value)
    short = exact_form(_TAIL.sub("", value).strip(" .!\"'")).lower()
    if not short or len(short.split()) > 8:
        return None
    spelled = attribute.lower().replace("favorite", "favourite").replace("color", "colour")
    says_more = tail is not None and bool(stems(tail[0]) - _WHEN)
    return Statement(subject.lower(), " ".join(spelled.split()), short, is_new, says_more)

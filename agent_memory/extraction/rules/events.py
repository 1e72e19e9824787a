"""Events that end what another text says, in other words than it has: "We broke up", "I quit".

Each is one plain sentence, and of the older text it must be certain that it is about the same. The
older text is asked about, never replaced.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.extraction.rules.changes import PAST, RECENTLY
from agent_memory.extraction.rules.readings import Reading
from agent_memory.extraction.rules.statements import AGE, EMPLOYER, JOB
from agent_memory.text.stems import stems

_LATELY: Final = rf"(?:{RECENTLY}|last \w+|recently|just now|on \w+day)"
_AUXILIARY: Final = r"(?:['\u2019]ve)?(?: (?:have|just|finally|recently|now|actually))*"


def _event(form: str) -> re.Pattern[str]:
    return re.compile(rf"{form}\W*", re.IGNORECASE)


_BROKE_UP: Final = _event(
    rf"(?:we|(?:she|he|they) and I){_AUXILIARY} (?:broke|broken|split) up(?: {_LATELY})?"
)
_PARTNERS: Final = frozenset("girlfriend boyfriend partner fiancé fiancée fiance fiancee".split())
# Without a time, what was quit is in the sentence before.
_QUIT: Final = _event(rf"I{_AUXILIARY} (?:quit|gave notice|handed in my notice) {_LATELY}")
_CALLED_OFF: Final = _event(
    r"(?:the|our|my) (?:trip|flight|holiday|vacation|visit|tour) to (?P<where>[^,;.!?]{1,40}?)"
    r" (?:is|was|got|has been|had to be) (?:now )?(?:cancell?ed|called off|scrapped|off)"
    rf"(?: {_LATELY})?"
)
_TRAVELS: Final = re.compile(
    r"(?:I|we)(?:['\u2019](?:m|re|ll)| am| are| will)?(?: (?:be|going to|planning to))*"
    r" (?:fly|go|travel|drive|head|leave|sail|visit|tour)(?:ing)?\b",
    re.IGNORECASE,
)
_TO_STOP: Final = _event(
    r"(?:(?:my|the|our) (?:[\w-]+ ){1,2}(?:told|advised|asked|ordered) me|I was (?:told|advised)"
    r"|I have) to (?:stop|quit)(?: (?:taking|using|eating|drinking))?"
    rf" (?!(?:for|by|at|in|to|on) )(?P<what>[^,;.!?]{{1,40}}?)(?: {_LATELY})?"
)
_TAKES: Final = re.compile(
    r"(?:I|we)(?:['\u2019](?:m|re)| am| are)?(?: (?:still|also|usually|often|always|now))*"
    r" (?:on|tak(?:e|ing)|us(?:e|ing)|eat(?:ing)?|drink(?:ing)?)\b",
    re.IGNORECASE,
)
_CHOSEN: Final = _event(
    r"let['\u2019]?s (?:use|go with|take|pick|choose) (?P<what>[^,;.!?]{1,60}?)"
    r" (?P<role>(?:for|as) [^,;.!?]{1,60})"
)
_LEFT_OUT: Final = _event(
    r"(?:(?:you|we) can |please |let['\u2019]?s )?(?:drop|skip|omit|leave out|leave off"
    r"|stop (?:using|passing)) (?:the )?(?P<what>--?[a-z][\w-]*)(?: (?:flag|option|switch))?"
    r"(?: (?:from now on|now|again|any ?more))?"
)
_PLACE: Final = "(?:prod(?:uction)?|staging|dev(?:elopment)?|ci|qa)"
_VERSION: Final = r"(?P<what>[A-Za-z][\w+#-]*(?: [A-Z][\w+#-]*)?) v?(?P<number>\d+(?:\.\w+)*)"
_UPGRADED: Final = _event(
    r"(?:(?:I|we)(?:['\u2019]ve| have)? )?(?:(?:just|finally|now|also) )*"
    r"(?:upgraded|updated|migrated|bumped|moved|switched)(?P<subject>(?: [\w.-]+){0,4}?) to "
    rf"{_VERSION}(?: (?:in|on) [a-z][\w-]*)?(?: {_LATELY})?"
)
_IS_SINCE: Final = _event(
    rf"(?P<subject>(?:the |our |my )[\w-]+|{_PLACE}|we)(?:['\u2019]re|(?: (?:is|are|runs?))?)"
    rf"(?: now)?(?: on)? {_VERSION}(?: now| (?:since|as of) {_LATELY})"
)
_IN_USE: Final = re.compile(rf"\b(?:on|uses?|using|runs?|running) {_VERSION}")
_IS_OURS: Final = re.compile(rf"(?:I|we|let['\u2019]?s|my|our|the|{_PLACE})\b", re.IGNORECASE)
_PLACES: Final = {
    **{word: word for word in stems("prod staging test dev local ci qa")},
    "production": "prod",
    "development": "dev",
}
"""Where something may run, by stem: what is so in one says nothing of another."""
_EVERY_TIME: Final = re.compile(r"\b(?:every|each|always|often|usually)\b", re.IGNORECASE)


def ended_by(new: Reading, old: Reading) -> str:
    """Return why an older text may no longer hold after what a newer says happened, or ``""``."""
    if not (new.is_one_sentence and old.is_one_sentence) or new.text.endswith("?"):
        return ""
    return (
        _of_people(new, old)
        or _of_plans(new, old)
        or _of_choices(new, old)
        or _of_versions(new, old)
    )


def _of_people(new: Reading, old: Reading) -> str:
    if _BROKE_UP.fullmatch(new.text) and old.owner in _PARTNERS:
        return "the relationship has ended"
    slots = {known.slot for known in old.statements}
    if _QUIT.fullmatch(new.text) and not slots.isdisjoint({("", EMPLOYER), ("", JOB)}):
        return "the work has ended"
    for stated in new.statements:
        if stated.attribute != AGE or not stated.subject or new.change.is_for_a_while:
            continue
        for known in old.statements:
            # "Our daughter Emma is 6" has a slot of her own, "Emma turned 7" is about her age.
            is_of_name = known.attribute.endswith(f" {stated.subject}")
            age = re.fullmatch(r"(\d{1,3})(?: years?(?: old)?)?", known.value.form)
            if is_of_name and age is not None and age[1] != stated.value.form:
                return "another age"
    return ""


def _of_plans(new: Reading, old: Reading) -> str:
    if trip := _CALLED_OFF.fullmatch(new.text):
        is_once = not (PAST.search(old.text) or _EVERY_TIME.search(old.text))
        is_planned = _TRAVELS.match(old.text) is not None and is_once
        return "it is called off" if is_planned and _has(old, trip["where"]) else ""
    if (stop := _TO_STOP.fullmatch(new.text)) and not old.change.is_negated:
        is_taken = _TAKES.match(old.text) is not None
        return "it is to stop" if is_taken and _has(old, stop["what"]) else ""
    return ""


def _of_choices(new: Reading, old: Reading) -> str:
    if left_out := _LEFT_OUT.fullmatch(new.text):
        is_named = re.search(rf"(?<!\S){re.escape(left_out['what'])}(?![\w-])", old.text)
        return "a part of it is left out" if is_named and not old.change.is_negated else ""
    chosen, before = _CHOSEN.fullmatch(new.text), _CHOSEN.fullmatch(old.text)
    if not (chosen and before and new.change.corrects):
        return ""
    is_other = stems(chosen["what"]) != stems(before["what"])
    role = stems(chosen["role"])
    is_same_role = bool(role) and role == stems(before["role"])
    return "another choice for the same" if is_other and is_same_role else ""


def _of_versions(new: Reading, old: Reading) -> str:
    newer = _UPGRADED.fullmatch(new.text) or _IS_SINCE.fullmatch(new.text)
    if newer is None or _IS_OURS.match(old.text) is None:
        return ""
    places, others = _places(new), _places(old)
    is_same_place = places <= others or (places == {"prod"} and not others)
    subject = stems(newer["subject"]) - _PLACES.keys()
    if not (is_same_place and subject <= old.stems):
        return ""
    return next(
        (
            "another version"
            for known in _IN_USE.finditer(old.text)
            if known["what"].lower() == newer["what"].lower() and known["number"] != newer["number"]
        ),
        "",
    )


def _has(old: Reading, words: str) -> bool:
    wanted = stems(words)
    return bool(wanted) and wanted <= old.stems


def _places(text: Reading) -> frozenset[str]:
    """Return where a text says that something runs, by one word for each place."""
    return frozenset(_PLACES[word] for word in text.stems & _PLACES.keys())

"""How a new text conflicts with an older one: surely, perhaps, or not at all.

It is sure only for another value of one of the speaker's slots, if both are of one closed kind,
such as two birthdays, or if the older value is named as gone ("Bergen, not Oslo"). Perhaps: another
value of a slot, the same said and denied, a thing that is no more, a sentence that differs in one
value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from agent_memory.extraction.rules.changes import (
    PAST,
    RECENTLY,
    Change,
    change_of,
    is_beside,
    is_but_once,
    is_what_happened,
    told_by_verb,
)
from agent_memory.extraction.rules.corrections import is_instead
from agent_memory.extraction.rules.events import ended_by
from agent_memory.extraction.rules.lists import parts_of_list
from agent_memory.extraction.rules.readings import (
    CLAUSE_JOINT,
    SIGNS,
    STATE_PATTERNS,
    Reading,
    content_of,
)
from agent_memory.extraction.rules.statements import (
    BEING,
    EMPLOYER,
    HOME,
    JOB,
    START,
    Statement,
    other_words_of,
    same_value,
)
from agent_memory.extraction.rules.successors import names_another, succeeded_by
from agent_memory.extraction.rules.values import NAME, Value, value_of
from agent_memory.text.clauses import main_clauses
from agent_memory.text.speech_acts import is_standing
from agent_memory.text.stems import stems

_ONE_EACH: Final = frozenset(
    {
        "age", "salary", "weight", "shoe size", "timezone", "postcode", "zip code",
    }
)  # fmt: skip
"""Slots of which the speaker has one, so another value is new even without a word of change.

Of others, two may share a name, and somebody may have two mail addresses. The height of an adult
never changes: one of two is wrong, and which, nobody says."""
_BIRTHDAY: Final = "birthday"
"""Never changes either, but may be said with the year, or as "5 May", and then says all of it."""
_SHARE: Final = 0.6
"""The share of the words of a denied thing that the older text must have."""
_TASTE: Final = re.compile(
    r"(?:I|we|[A-Z][\w-]+)(?: (?:really|also|do|much|now))* (?:like|love|enjoy|adore)s?\b",
    re.IGNORECASE,
)
"""What somebody likes, whatever they do."""
_LIKING: Final = stems("like love enjoy adore hate dislike loathe")
_MOST_BESIDE: Final = 8
"""Maximum words of a text per word that it has in common with a denied thing."""
_ENDS: Final = stems("stop stopped quit gave give given")
_ARTICLE: Final = re.compile(r"an? ")
_DOES_NOT: Final = re.compile(
    r"\S+(?: [\w'-]+)?? (?:(?:do|does|did)(?:n['\u2019]t| not)|never) (?P<verb>[a-z]+)",
    re.IGNORECASE,
)
_SPOUSES: Final = frozenset({"wife", "husband"})
_PARTED: Final = frozenset({("marital status", "divorced"), ("marital status", "widowed")})
_WORD: Final = re.compile(r"[^\s,;!?()\"]+")
_ADVERB: Final = frozenset(
    "now currently instead again anymore just recently actually new"
    " jetzt nun inzwischen maintenant désormais ahora".split()
)
_DECIDED: Final = re.compile(
    r"\b(?:decided|decision|agreed|chose|picked|settled|go(?:ing)? with|went with)\b", re.IGNORECASE
)
# "I switched to Emacs" says that something in use is no more, but not what.
_HAVE: Final = r"(?P<who>I|we|[A-Z][\w-]*)(?:['\u2019](?:ve|m|re|s))?(?: (?:have|has|am|is|are))?"
_SWITCHED_TO: Final = re.compile(
    rf"{_HAVE}(?: (?:just|now|recently|finally|since|all))*"
    r" (?:switched|converted|migrated|changed|defected)(?: (?:over|back))? to (?P<value>[^,;.!?]+)"
)
_USES: Final = re.compile(
    rf"{_HAVE}(?: (?:still|mostly|mainly|usually|currently|always|now|just))*"
    r" (?:uses?|using|drives?|driving|rides?|riding|drinks?|drinking|prefers?|runs?|running|on"
    r"|(?:write|code|work|program|edit|draw|bank|shop|fly|train|stream|develop)s?(?:ing)?"
    r" (?:in|with|on|at)) (?P<value>[^,;.!?]+)"
)
_PURPOSE: Final = re.compile(
    r" (?:for|as|at|on|in|with|because|since|last|this|and|these|now|every|when|instead"
    rf"|{RECENTLY})\b.*$"
)
_SINCE: Final = re.compile(rf" (?:since|as of) {RECENTLY}\W*$", re.IGNORECASE)
_CAPITALS: Final = r"[A-Z][\w-]*(?: [A-Z][\w-]*){0,2}"
_WIDER_PLACE: Final = re.compile(rf"(?:, {_CAPITALS}){{1,2}}\W*")
_BEYOND_JOB: Final = re.compile(r" (?:at|in|with|for|on|from|of|by|to|who|that)\b.*")
"""What "a nurse at Charité" says besides the job."""
_BOUND: Final = r"\b(?:before|after|until|than|exceed|past|by) (?:\S+ )?"
_NOW: Final = re.compile(r"\bnow\b", re.IGNORECASE)
_MOST_WORDS: Final = 5
"""Maximum words of a value in which two sentences differ."""


class Conflict(NamedTuple):
    """Why a text may conflict with an older one, and whether it surely replaces it."""

    why: str
    is_sure: bool = False
    is_bare: bool = False
    """Whether it is sure without a word of change: only if nothing else is said."""
    may_stay: bool = False
    """Whether the older may be true beside it: if it is not replaced, nothing is asked."""
    is_of_any: bool = False
    """Whether it may conflict with another text of the kind instead: the nearest is reviewed."""
    replaced: frozenset[str] = frozenset()
    """The stems of the older text that the newer has another value for."""


def conflict(new: Reading, old: Reading) -> Conflict | None:
    """Return how a new text conflicts with an older one, ``None`` if both can be true."""
    if new.speaker != old.speaker or new.is_quoted or old.is_quoted:
        return None
    if not new.change.is_unreal:
        for compare in (_of_slots, _of_states, _of_frames, _of_uses):
            if (reason := compare(new, old)) is not None:
                return reason
    if (reason := _of_denial(new, old) or _of_correction(new, old)) is not None:
        return reason
    why = ended_by(new, old) or succeeded_by(new, old)
    return Conflict(why) if why else None


def says_alike(new: Reading, old: Reading) -> bool:
    """Return whether two texts say the same but for words such as "again"; neither is unsure."""
    content = new.stems - SIGNS
    if new.is_quoted or old.is_quoted or not content or content != old.stems - SIGNS:
        return False
    is_certain = not (new.change.is_unreal or new.change.is_guessed or new.change.is_beside)
    is_same = (new.speaker, new.owner) == (old.speaker, old.owner)
    return is_certain and is_same and new.change.is_negated == old.change.is_negated


# Values ---------------------------------------------------------------------------------------


def _of_slots(new: Reading, old: Reading) -> Conflict | None:
    """Compare the values of the slots that both texts state."""
    if new.change.is_for_a_while and not new.change.corrects:
        return None
    for stated in new.statements:
        for known in old.statements:
            if not _is_same_slot(stated, known, new) or same_value(stated, known):
                continue
            if not _is_of_one_kind(stated, known, new):
                continue
            is_sure = _is_sure(stated, known, new, old)
            was_so = known.says_when and old.change.is_for_a_while and not known.value.is_closed
            may_go = was_so or stated.value.goes_with(known.value)
            if may_go and not (is_sure or _is_announced(new)):
                continue
            why = f"another value of {stated.slot[1]}"
            is_bare = not (_is_announced(new) or new.change.denied)
            return Conflict(
                why,
                is_sure=is_sure,
                is_bare=is_bare,
                may_stay=is_bare and stated.value.goes_with(known.value),
                replaced=words_of_statement(known, old),
            )
    return None


def _is_of_one_kind(stated: Statement, known: Statement, new: Reading) -> bool:
    """Return whether two values are alike; what "moved to 10" was "at 9:30".

    A new dog that is "a poodle" is another than "a beagle", as "an iPhone 15" is another phone.
    """
    value, other = stated.value, known.value
    if stated.is_another and all(_ARTICLE.match(each.form) for each in (value, other)):
        return True
    is_hour = value.kind == "number" and other.kind == "time" and len(value.form) <= len("10")
    return value.is_value and (value.kind == other.kind or (is_hour and new.change.is_new))


def _is_same_slot(stated: Statement, known: Statement, new: Reading) -> bool:
    is_other = stems(stated.origin).isdisjoint(stems(known.value.form))
    if stated.origin and is_other and stated.attribute in (HOME, EMPLOYER):
        return False  # "We moved from Jenkins to Argo" is not about a home
    if stated.attribute == BEING:  # one is a nurse, a mother and a fan of jazz
        return stated.slot == known.slot and _is_announced(new)
    if stated.is_another and stated.value.kind == known.value.kind == NAME:
        # "I have a new boss, her name is Ann", about "My boss is Karim".
        slots = {(each.subject, each.attribute.removesuffix(" name")) for each in (stated, known)}
        return len(slots) == 1
    if new.change.is_new and known.slot == (stated.subject, f"{stated.attribute}{START}"):
        return True  # "The presale was postponed to May 6", about "The presale starts on May 5"
    was_that = known.slot == (stated.subject, BEING) and stated.attribute == JOB
    return stated.slot == known.slot or (was_that and new.change.is_new)


def _is_sure(stated: Statement, known: Statement, new: Reading, old: Reading) -> bool:
    """Return whether a value surely replaces another, and nothing is lost with it."""
    if known.says_more or not old.is_one_sentence or old.change.is_beside or old.change.is_unreal:
        return False
    gone, origin = stems(known.value.form), stems(stated.origin)
    is_that_date = known.value.kind == "date" and value_of(stated.origin).goes_with(known.value)
    is_of_that = origin <= gone or gone <= origin or is_that_date
    if new.change.is_guessed or new.change.is_changed or not is_of_that:
        return False  # "I moved from Oslo to Rome in 2019" may be long over
    if gone and any(gone <= words for words in (*new.change.denied, origin)):
        # "I moved from Oslo to Rome as a girl", "and back" may be long ago, or over; and "8443
        # instead of 8080 on staging" is still 8080 elsewhere.
        return not stated.says_more or (stated.gone is not None and stems(stated.gone) <= gone)
    if stated.whose != known.whose or stated.says_more:
        return False  # "the" budget, ours, or that for the new car may not be mine
    # Two daughters may share a name; "my weight this morning" is different at noon.
    is_mine = stated.subject == new.speaker and not new.owner
    if not is_mine or is_beside(new.text) or is_beside(old.text):
        return False
    has_one = stated.whose != "the" and (
        stated.attribute in _ONE_EACH
        or stated.attribute.startswith("favourite ")
        or (stated.attribute == _BIRTHDAY and stated.value.goes_with(known.value))
    )
    is_meant = has_one or (_is_announced(new) and not stated.is_another)
    is_alike = stated.value.is_closed and stated.value.kind == known.value.kind
    return is_meant and is_alike and stated.value.has_all_of(known.value)


def _of_states(new: Reading, old: Reading) -> Conflict | None:
    """Compare states of which a person can be in only one at a time."""
    known_states = dict(old.states)
    for slot, state in dict(new.states).items():
        if known_states.get(slot, state) != state:
            matches = (pattern.match(old.text) for pattern, _ in STATE_PATTERNS.get(slot, ()))
            words = next((stems(match[0]) for match in matches if match), old.stems)
            return Conflict(f"another {slot}", replaced=words)
    ended: tuple[str, ...] = ()
    if old.owner in _SPOUSES and not _PARTED.isdisjoint(new.states):
        why, ended = "the marriage has ended", tuple(_SPOUSES)
    elif dict(new.states).get("employment") == "none":
        why, ended = "the work has ended", (EMPLOYER, JOB)
    words_of = [
        words_of_statement(known, old)
        for known in old.statements
        if known.attribute.removesuffix(" name") in ended
    ]
    if ended and (words_of or EMPLOYER not in ended):
        return Conflict(why, replaced=frozenset().union(*words_of))
    return None


def words_of_statement(known: Statement, text: Reading) -> frozenset[str]:
    """Return the stems of a text's words for a value, and of those before it in its clause."""
    before, value, after = text.text.lower().partition(known.value.form)
    if not value:
        return content_of(f"{known.attribute} {known.value.form}")
    lead = CLAUSE_JOINT.split(text.text[: len(before)])[-1]
    where = _WIDER_PLACE.fullmatch(text.text[-len(after) :]) if after else None
    in_place = where[0] if where is not None and known.attribute == HOME else ""
    if known.attribute in (JOB, BEING):
        value = _BEYOND_JOB.sub("", value)
    words = content_of(f"{lead} {known.attribute} {value} {in_place}")
    return words - stems(known.origin)


def _of_frames(new: Reading, old: Reading) -> Conflict | None:
    """Compare sentences that differ in one value: "The API runs on port 8080", "on port 8443".

    Whatever reason or remark follows, the clauses that state something are compared as well.
    """
    if not (new.is_one_sentence and old.is_one_sentence):
        return None
    if (whole := _of_frame(new.text, new.change, old.text)) is not None:
        return whole
    if names_another(new, old):
        return None
    for place, clause in enumerate(main_clauses(new.text)):
        for known_place, known in enumerate(main_clauses(old.text)):
            if clause.when and known.when and clause.when != known.when:
                continue  # a pill before breakfast, and one before bed
            if _differing(clause.text, known.text) is None:
                continue
            change = change_of(clause.text)
            is_beside = place or known_place or new.change.is_for_a_while
            if is_beside and not (change.is_new or change.corrects):
                continue
            if (against := _of_frame(clause.text, change, known.text)) is not None:
                return against
    return None


def _of_frame(text: str, change: Change, old: str) -> Conflict | None:
    """Compare two sentences, or two clauses, that may differ in one value."""
    is_then = change.is_changed and PAST.search(text) is not None
    if change.is_for_a_while or is_then:
        return None
    values = _differing(_SINCE.sub("", text), old)
    if values is None:
        return None
    value, known = values
    is_announced = change.is_new or change.corrects
    # One may have left both Oslo and Rome, but what is not before 10 is not before 9 either.
    is_denied_too = change.is_negated and change_of(old).is_negated and not change.corrects
    is_bound = re.search(_BOUND + re.escape(value.form), text.lower()) is not None
    is_limit = (value.is_closed and is_bound) or _NOW.search(text) is not None
    is_other = value.is_value and value.form != known.form and (is_limit or not is_denied_too)
    if not is_other or (value.goes_with(known) and not is_announced):
        return None
    # What happened twice happened twice, and so did what both Ann and Bob did ("joined Acme").
    is_of_another = text.split()[:1] != old.split()[:1]
    if (is_of_another or not is_announced) and PAST.search(text) is not None:
        return None
    is_rule = is_standing(text) and not change.is_negated
    if is_announced or is_rule or value.is_closed:
        return Conflict("it says the same of something else", replaced=stems(old))
    return None


def _is_announced(new: Reading) -> bool:
    """Return whether a text says that something is so now, or that something said was wrong."""
    return new.change.is_new or new.change.corrects


def _of_uses(new: Reading, old: Reading) -> Conflict | None:
    """Compare what somebody switched to with what they use: "I use Vim", "I switched to Emacs"."""
    switched, uses = _SWITCHED_TO.match(new.text), _USES.match(old.text)
    if not (switched and uses) or new.change.is_for_a_while:
        return None
    if _person(switched["who"]) != _person(uses["who"]):
        return None
    value, known = (value_of(_PURPOSE.sub("", match["value"])) for match in (switched, uses))
    if not value.is_value or value.kind != known.kind or value.form == known.form:
        return None
    end = uses.start("value") + len(_PURPOSE.sub("", uses["value"]))
    words = stems(old.text[:end])
    return Conflict("something was switched to", is_of_any=True, replaced=words)


def _person(who: str) -> str:
    return "I" if who in ("we", "We", "User") else who


def _differing(first: str, second: str) -> tuple[Value, Value] | None:
    """Return the one value of each in which two sentences differ, if both are of one kind."""
    words, others = _words(first), _words(second)
    lowered, others_lowered = [w.lower() for w in words], [w.lower() for w in others]
    shorter = min(len(words), len(others))
    start = 0
    while start < shorter and lowered[start] == others_lowered[start]:
        start += 1
    end = 0
    while end < shorter - start and lowered[-1 - end] == others_lowered[-1 - end]:
        end += 1
    for kept in (end, end - 1):  # "9:30" and "10" differ in kind, "9:30 Uhr" and "10 Uhr" are times
        span, other = words[start : len(words) - kept], others[start : len(others) - kept]
        if kept < 0 or start + kept < 2 or not (0 < len(span) <= _MOST_WORDS):
            return None
        if not 0 < len(other) <= _MOST_WORDS:
            return None
        value, known = value_of(" ".join(span)), value_of(" ".join(other))
        if value.kind == known.kind:
            return value, known
    return None


def _words(text: str) -> list[str]:
    words = [word.rstrip(".:") for word in _WORD.findall(text)]
    return [word for word in words if word.lower() not in _ADVERB]


# What is no more ------------------------------------------------------------------------------


def _of_denial(new: Reading, old: Reading) -> Conflict | None:
    """Compare what a text denies, or says to be no more, with what the other says."""
    new, old = _with_doing(new, old), _with_doing(old, new)
    others = _gone_elsewhere(new, old)
    if _TASTE.match(new.text) and not _TASTE.search(old.text):
        # "I like tea, not coffee" beside "I drink coffee at work".
        both = (new.stems & old.stems) - SIGNS - stems(new.owner)
        others.extend(
            each for each in {*new.change.denied}.difference(new.change.ended) if both <= each
        )
    # A talk that is called off is not what people talked about.
    verbs = told_by_verb(old.text) - told_by_verb(new.text)
    is_over = is_what_happened(old.text)
    others.extend(thing for thing in new.change.ended if is_over or verbs & thing)
    known = [thing for thing in new.change.ended if _is_not_so(old, thing)]
    others.extend(known)
    for words in new.change.denied:
        # "Jonah, not Jonas" does not say whose name it is.
        is_same_owner = new.owner == old.owner or not stems(new.owner).isdisjoint(words)
        if (
            (is_same_owner or is_instead(new.text))
            and words not in others
            and _is_about(old, words, _SHARE)
        ):
            return Conflict("it is said to hold no longer")
    content = new.stems - SIGNS
    if not content or new.change.is_negated == old.change.is_negated:
        return None
    is_same_owner = new.owner == old.owner
    # "Rex is not afraid any more", about "my dog Rex".
    is_named = is_same_owner or (new.owner != "" and stems(new.owner) <= old.stems)
    if is_named and any(_is_about(old, words, _SHARE) for words in new.ended):
        return Conflict("it is said to hold no longer")
    # "I don't smoke" goes with "I quit smoking".
    is_known = any(content <= gone for gone in (*known, *old.change.ended))
    is_once = is_but_once(new.text, old.text) and not new.change.corrects
    if not is_same_owner or is_known or is_once:
        return None
    common = len(content & old.stems)
    is_all = common >= _SHARE * len(old.stems - SIGNS)
    if common == len(content) and (is_all or _is_listed(new, old, content)):
        return Conflict("the same is said and denied")
    return None


def _with_doing(text: Reading, other: Reading) -> Reading:
    """Return a text that says "smoker" as if it said "smoking", if that is what another says.

    Not if that one is about a taste: a teacher may hate teaching.
    """
    if other.stems & _LIKING:
        return text
    for noun, verb in text.doers:
        is_named = re.match(r"(?:I|we|my|our)\b", other.text, re.IGNORECASE) is not None
        if is_named and verb <= other.stems and not noun <= other.stems:
            text = text._replace(stems=text.stems - noun | verb)
    return text


def _is_not_so(old: Reading, thing: frozenset[str]) -> bool:
    """Return whether an older text says already that something that has ended is not so.

    "I don't smoke", "I never drink coffee" or "I no longer smoke"; "I don't like it there" is more.
    """
    if thing in old.change.ended or any(thing <= words for words in old.ended):
        return True
    denied = _DOES_NOT.match(old.text)
    rest = old.stems - SIGNS - thing
    return old.change.is_negated and rest <= stems(denied["verb"] if denied else "")


def _is_listed(new: Reading, old: Reading, content: frozenset[str]) -> bool:
    """Return whether a list has a member of only these stems; "I never quit chess" denies none."""
    members = map(content_of, parts_of_list(old.text))
    return new.stems.isdisjoint(_ENDS) and any(words and words <= content for words in members)


def denied_by(new: Reading, old: Reading) -> frozenset[str]:
    """Return the stems of what a text denies of an older one; none if it says something else."""
    negated = (new.stems - SIGNS,) if new.change.is_negated != old.change.is_negated else ()
    denied = new.change.denied or new.ended or negated
    # "I no longer ski, but I still skate": what has ended is in a clause, and in all of it.
    return frozenset().union(*(w for w in denied if not any(other < w for other in denied)))


def _is_about(old: Reading, words: frozenset[str], share: float) -> bool:
    """Return whether a text has that share of some words, in a clause that is about them."""
    if len(words & old.stems) < share * len(words):
        return False
    for clause in (old.stems, *map(stems, CLAUSE_JOINT.split(old.text))):
        common = len(words & clause)
        if common and common >= share * len(words) and len(clause) <= _MOST_BESIDE * common:
            return True
    return False


def _gone_elsewhere(new: Reading, old: Reading) -> list[frozenset[str]]:
    """Return the values gone from slots that the older text does not state, nor is about.

    "My office is in Bergen, not Oslo" says nothing about "I live in Oslo", and "My vet is Lee, not
    Kim" nothing about "Kim has a dog".
    """
    known = [stems(statement.attribute) for statement in old.statements]
    about = stems(" ".join(other_words_of(new.text))) if not known else frozenset()
    return [
        stems(stated.gone)
        for stated in new.statements
        if stated.gone is not None
        and stated.attribute != BEING
        and not (_is_any(stems(stated.attribute), known) if known else about & old.stems)
    ]


def _is_any(attribute: frozenset[str], others: Sequence[frozenset[str]]) -> bool:
    """Return whether an attribute is one of others, in more or less detail: "demo for Ann"."""
    return any(attribute <= other or other <= attribute for other in others)


def _of_correction(new: Reading, old: Reading) -> Conflict | None:
    """Compare a text that corrects something with what it is most likely about."""
    if new.change.changes_mind and _DECIDED.search(old.text):
        return Conflict("minds were changed")
    content = new.stems - SIGNS
    if not new.change.corrects or new.change.is_beside or new.owner != old.owner:
        return None
    return Conflict("it corrects something") if content and _is_about(old, content, 0.5) else None
